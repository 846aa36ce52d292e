"""The parts that all choices share, and the caches of calls with the same public parameters."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast.choosing import Choice, Known, built, gainful, near_least, rounded_down, rounded_up, split
from dpfast.core.recent import recent


def test_a_choice_is_a_table():
    rows = {"first": (1.0, 8, "a text"), "second": (None, 2048, "")}
    calls = []

    def known():
        calls.append(1)
        return Known(("error", "bits", "what"), rows, "Error: in units.")

    choice = Choice(
        {"first": 1, "second": 2}, "second", "it is", limits={"first": "too long", "third": "none"}, known=known
    )
    assert not calls  # the numbers are computed for a table only
    assert (choice.mechanism, choice.default) == (2, "first")
    assert choice.table == [
        ["method", "error", "bits", "what", ""],
        ["first", "1", "8", "a text", "too long"],
        ["second", "unknown", "2,048", "", "taken"],
        ["third", "", "", "", "none"],
    ]
    assert str(choice).endswith("Error: in units.\nTaken: second, because it is.\n2")
    assert "<td" in choice._repr_html_()
    assert calls == [1]
    assert Choice({"only": 1}, "only", "it is").comparison == "method\nonly    taken\nTaken: only, because it is."


def test_candidates_that_cannot_be_built():
    def fails(error):
        raise error

    candidates, limits = built({"a": lambda: 1, "b": lambda: fails(ValueError("too small"))}, required="a")
    assert (candidates, limits) == ({"a": 1}, {"b": "too small"})
    with pytest.raises(TypeError, match="wrong"):
        built({"a": lambda: fails(TypeError("wrong")), "b": lambda: 1}, required="a")
    with pytest.raises(ZeroDivisionError):
        built({"a": lambda: 1, "b": lambda: 1 / 0}, required="a")


def test_rules():
    assert near_least({"a": 1.0, "b": 1.02, "c": 1.03}) == ["a", "b"]
    assert near_least({}) == []
    costs = {"a": 1.0, "b": 0.96, "c": 0.94, "d": math.inf}.__getitem__
    assert gainful("ab", costs, "a") == "a"
    assert gainful("abc", costs, "a") == "c"
    assert gainful("bc", costs, "a") == "c"
    assert gainful("d", costs, "a") == "d"
    assert [rounded_down(n) for n in (0, 1, 7, 9, 1023, 10_000)] == [0, 1, 7, 8, 896, 8192]
    assert [rounded_up(x) for x in (1.0, 1.01, 31.5, 0.1)] == [1.0, 1.0625, 32.0, 0.1015625]
    assert all(x <= rounded_up(x) <= 17 / 16 * x for x in np.geomspace(1e-300, 1e300, 999).tolist())


def test_split():
    assert split({"a": 0.25, "b": Fraction(3, 4), "c": 0}) == "Of epsilon, 25 % is for a and 75 % for b"
    assert split({"a": 1, "b": 1, "c": 2}, "mu") == "Of mu, 25 % is for a, 25 % for b and 50 % for c"
    assert split({"a": 1.0, "b": 0.0}) == ""


class Counted:
    def __init__(self):
        self.calls = 0

    @recent
    def double(self, x):
        self.calls += 1
        return 2 * x


def test_the_last_result_is_kept():
    made = Counted()
    assert [made.double(x) for x in (1, 1, 2, 2, 1)] == [2, 2, 4, 4, 2]
    assert made.calls == 3


X = np.random.default_rng(0).normal(size=(300, 2))
PUBLIC = {"radius": 3.0, "label_bound": 3.0, "epsilon": 1.0}


def test_rows_that_share_a_mechanism_check_each_parameter():
    """Of equal parameters of another type, or other columns, there is another mechanism; errors are not kept."""
    rows, release = np.random.default_rng(1).normal(size=(50, 9)), np.random.PCG64
    for _ in range(2):
        for x, bounds in ((rows, (-1, 1)), (rows[:, :8], (-1, 1)), (rows, (-2.0, 2.0)), (rows.astype(int), (-1, 1))):
            step = 1 if x.dtype.kind == "i" else None
            box = dpf.domains.Box(dpf.Grid(*bounds, step))
            made = dpf.NoisySums(dpf.statistics.Mean(), domain=box, epsilon=1.0, noise="k-norm")
            found = dpf.mean(x, bounds=bounds, epsilon=1.0, rng=release(1))
            np.testing.assert_array_equal(found, made(x, rng=release(1)))
            assert (found != dpf.sum(x, bounds=bounds, epsilon=1.0, rng=release(1))).any()
        for centered in (True, False):
            made = dpf.Covariance(domain=dpf.domains.Ball(3.0), epsilon=1.0, centered=centered)
            found = dpf.covariance(rows, radius=3.0, epsilon=1.0, centered=centered, rng=release(1))
            np.testing.assert_array_equal(found, made(rows, rng=release(1)))
        with pytest.raises(TypeError, match="centered"):
            dpf.covariance(rows, radius=3.0, epsilon=1.0, centered=1)
        with pytest.raises(ValueError, match="radius"):
            dpf.covariance(rows, radius=-3.0, epsilon=1.0)


def test_calls_that_share_a_mechanism_check_each_parameter():
    """True and 1 are equal, but a flag must be one or the other."""
    dpf.linear_regression(X, X[:, 0], **PUBLIC, intercept=True)
    with pytest.raises(TypeError, match="intercept"):
        dpf.linear_regression(X, X[:, 0], **PUBLIC, intercept=1)
    options = {"bounds": (0.05, 5), "epsilon": 1.0}
    waits = np.abs(X[:, 0])
    dpf.mle(waits, "exponential", **options, bias_correction=True)
    for wrong in (1, [True]):
        with pytest.raises(TypeError, match="bias_correction"):
            dpf.mle(waits, "exponential", **options, bias_correction=wrong)
    with pytest.raises(ValueError, match="noise"):
        dpf.mle(waits, "exponential", **options, noise="none")


def test_calls_that_share_a_mechanism_release_the_same():
    def fit(n):
        return dpf.linear_regression(X[:n], X[:n, 0], **PUBLIC, rng=PCG64(1)).coefficients

    first = fit(300)
    fit(100)  # another number of records
    assert np.array_equal(fit(300), first)


def test_copies_do_not_have_what_calls_left():
    ball = dpf.domains.Ball(3.0)
    made = dpf.RegressionMoments(domain=ball, labels=ball, epsilon=1.0)
    before = pickle.dumps(made)
    made((X, X[:, 0]))
    deviations = made.noise_deviation(300, dimension=2)
    deviations[:] = 0  # a copy of what is kept
    assert made.noise_deviation(300, dimension=2)[0, 0] > 0
    assert pickle.dumps(made) == before
