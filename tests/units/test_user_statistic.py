"""Statistics of users: the bound by brute force, the laws by the audit, and functions that fail, release or change."""

import pickle

import numpy as np
import pytest
from numpy.random import PCG64
from scipy.stats import norm

import dpfast as dpf
from dpfast import audit, smooth
from dpfast.statistics import Median, UserStatistic
from tests.cases import every
from tests.reference import gaps
from tests.reference.statistics import TRIMEAN, change_of_trimean, failing, sorted_trimean, trimean

SLACK = 2.0**-38


def median(codes):
    return codes[(len(codes) - 1) // 2]


def change_of_median(codes, k, last):
    padded = np.pad(codes, k + 1, constant_values=(0, last))
    rank = (len(codes) - 1) // 2
    return (padded[k + 1 :] - padded[: -k - 1])[rank : rank + k + 2].max()


def spread(codes):
    """Twice the range less the number of zeros: neither monotone nor a sum of gaps."""
    return int(max(2 * (codes[-1] - codes[0]) - np.count_nonzero(codes == 0), 0))


def by_definition(function):
    """The sensitivity at a distance, over all data."""
    plain = lambda data: function(np.array(data))  # noqa: E731
    return lambda codes, k, last: gaps.sensitivity_at(plain, tuple(codes.tolist()), k, last)


MEDIAN = UserStatistic(median, change_of_median)


@every("beta", [0.05, 0.6, 2.5])
@every("n, last", [(1, 5), (2, 4), (3, 3), (4, 2)])
@every("function, divisions", [(median, 1), (trimean, 4), (spread, 2)])
def test_the_bound_is_the_smooth_sensitivity_of_all_data(function, divisions, n, last, beta):
    statistic = UserStatistic(function, by_definition(function), divisions=divisions)
    exact = gaps.smooth_sensitivity(lambda data: int(function(np.array(data))), n, last, beta)
    grid, most = dpf.Grid(0, last, step=1), divisions * last
    for data, s in exact.items():
        found = smooth.smooth_sensitivity(statistic, data, grid=grid, beta=beta) * divisions
        whole = max(s, np.exp(-beta * n) * most, 1)  # where all records may differ, the range counts
        assert whole * (1 - 1e-12) <= found <= whole * (1 + 1e-10)


@every("beta", [0.05, 0.6])
@every("n, last", [(1, 6), (2, 5), (3, 4), (5, 2)])
def test_the_bound_of_gaps_is_smooth_and_not_below_the_change(n, last, beta):
    grid, growth = dpf.Grid(0, last, step=1), np.exp(beta + SLACK)
    every_data = gaps.datasets(n, last)
    found = {data: 4 * smooth.smooth_sensitivity(TRIMEAN, data, grid=grid, beta=beta) for data in every_data}
    for data, s in found.items():
        assert s >= gaps.local_sensitivity(sorted_trimean, data, last)
        assert all(s <= growth * found[other] for other in gaps.neighbors(data, last))


@every("delta", [0.0, 1e-6])
@every("n", [1, 2, 7, 1000])
def test_the_median_by_its_gaps_has_the_law_of_the_median(n, delta):
    options = {"grid": dpf.Grid(0, 1000, step=1), "epsilon": 0.5, "delta": delta}
    own, known = dpf.SmoothSensitivity(MEDIAN, **options), dpf.SmoothSensitivity(Median(), **options)
    for x in (np.random.default_rng(n).normal(400, 80, n), np.full(n, 1000.0), np.arange(n) % 2 * 1000.0):
        law, other = own.law(x), known.law(x)
        assert law.center == other.center
        assert law.noise.scale == pytest.approx(other.noise.scale, rel=1e-12)
        assert own(x, rng=PCG64(1)) in range(1001)


@every("delta", [0.0, 9e-4])
@every("epsilon", [0.5, 4.0])
@every("n", [1, 2, 3, 4])
@every("statistic", [TRIMEAN, MEDIAN, UserStatistic(spread, by_definition(spread), divisions=2, spread=True)])
def test_the_audit_certifies(statistic, n, epsilon, delta):
    grid = dpf.Grid(2, 8, step=1) if n < 4 else dpf.Grid(2, 4, step=1)
    mechanism = dpf.SmoothSensitivity(statistic, grid=grid, epsilon=epsilon, delta=delta)
    assert audit.verify(mechanism, n=n, values=3, ordered=False).holds


WRONG = {
    "that of no distance": lambda codes, k, last: change_of_median(codes, 0, last),
    "half": lambda codes, k, last: change_of_median(codes, k, last) // 2,
    "one distance less": lambda codes, k, last: change_of_median(codes, max(k - 1, 0), last),
    "the range of the records": lambda codes, k, last: codes[-1] - codes[0],
}


@every("wrong", list(WRONG))
def test_the_audit_rejects_a_sensitivity_that_is_too_small(wrong):
    """Positive controls: each differs from the right one, which the audit certifies, in one detail."""
    options = {"grid": dpf.Grid(0, 60, step=1), "epsilon": 4.0}
    right = dpf.SmoothSensitivity(MEDIAN, **options)
    assert audit.verify(right, n=5, values=4, ordered=False).holds
    found = dpf.SmoothSensitivity(UserStatistic(median, WRONG[wrong]), **options)
    assert not audit.verify(found, n=5, values=4, ordered=False).holds


def test_places_and_distances():
    grid = dpf.Grid(-4, 4, step=0.5)
    place = UserStatistic(lambda codes: 8 * int(codes[0]), lambda codes, k, last: 8 * last, divisions=8)
    distance = UserStatistic(lambda codes: codes[-1] - codes[0], lambda codes, k, last: last, spread=True)
    x = [-2.25, 1.0, 3.0]
    for statistic, exact in ((place, -2.0), (distance, 5.0)):
        law = dpf.SmoothSensitivity(statistic, grid=grid, epsilon=1.0).law(x)
        assert law.value(law.center) == exact
    ends = [
        UserStatistic(lambda codes, end=end: 0 if codes[-1] == 16 else end, lambda codes, k, last: 1)
        for end in (-1, 10**30)
    ]
    laws = [dpf.SmoothSensitivity(end, grid=grid, epsilon=1.0).law(x) for end in ends]
    assert [law.value(law.center) for law in laws] == [-4.0, 4.0]


def test_arrays_and_streams_are_sorted_and_unchanged():
    seen = []

    def function(codes):
        seen.append(codes.copy())
        codes[:] = 0  # its own copy
        return int(np.median(seen[-1]))

    statistic = UserStatistic(function, lambda codes, k, last: int(codes.sum()))
    mechanism = dpf.SmoothSensitivity(statistic, grid=dpf.Grid(0, 9, step=1), epsilon=1.0)
    x = np.array([7.0, 1.0, np.nan, 3.0])
    released = [mechanism(data, rng=PCG64(1)) for data in (x, x[::-1], dpf.Chunks([x[:1], x[1:]]))]
    assert len(set(released)) == 1
    made_up = (0, 3, 6, 9)
    assert {tuple(codes.tolist()) for codes in seen} == {made_up, (0, 1, 3, 7)}
    assert x[0] == 7.0
    grouped = dpf.by_group(mechanism, np.tile(x, 2), labels=[0] * 4 + [1] * 4)
    assert all(value in range(10) for value in np.ravel(grouped))


class TestFailures:
    GRID = dpf.Grid(0, 100, step=1)

    def test_data_on_which_a_function_fails_have_a_release(self):
        for statistic in (
            UserStatistic(failing, change_of_trimean, divisions=4),
            UserStatistic(trimean, lambda codes, k, last: 1 // int(codes[-1] > 3), divisions=4),
            UserStatistic(lambda codes: 3 if codes[-1] > 3 else 0.5, lambda codes, k, last: 1),
        ):
            mechanism = dpf.SmoothSensitivity(statistic, grid=self.GRID, epsilon=1.0)
            released = mechanism([0, 1, 2], rng=PCG64(1))
            assert isinstance(released, float)
            assert 0 <= released <= 100

    @every(
        "function, change, told",
        [
            (lambda codes: 1 // 0, change_of_trimean, "function fails for 3 made-up records.*ZeroDivisionError"),
            (trimean, lambda codes, k, last: codes[99], "sensitivity_at fails for 3 made-up records.*IndexError"),
            (lambda codes: 0.5, change_of_trimean, "the result of function must be an integer, not float"),
            (trimean, lambda codes, k, last: -1, "the result of sensitivity_at must be at least 0"),
        ],
    )
    def test_what_fails_for_made_up_records_is_told_before_a_charge(self, function, change, told):
        mechanism = dpf.SmoothSensitivity(UserStatistic(function, change), grid=self.GRID, epsilon=1.0)
        with dpf.Ledger(1) as ledger:
            with pytest.raises((TypeError, ValueError), match=told):
                mechanism([0, 1, 2])
            assert ledger.spent.epsilon == 0

    def test_a_release_in_a_function_is_refused_and_not_charged(self):
        def function(codes):
            return int(dpf.median(codes, bounds=(0, 100), epsilon=0.1))

        mechanism = dpf.SmoothSensitivity(UserStatistic(function, change_of_median), grid=self.GRID, epsilon=0.5)
        with dpf.Ledger(1) as ledger:
            with pytest.raises(dpf.BudgetError, match="refused"):
                mechanism([0, 1, 2])
            assert ledger.spent.epsilon == 0

    def test_a_release_that_hides_from_made_up_records_is_refused_too(self):
        asked = []

        def function(codes):
            if codes.tolist() == [7, 7, 7]:
                asked.append(True)
                return int(dpf.median(codes, bounds=(0, 100), epsilon=0.1))
            return 7

        mechanism = dpf.SmoothSensitivity(UserStatistic(function, change_of_median), grid=self.GRID, epsilon=0.5)
        with dpf.Ledger(1) as ledger:
            assert mechanism([7, 7, 7]) in range(101)
            assert asked
            assert ledger.spent.epsilon == 0.5

    @every(
        "parameters, error, told",
        [
            ((1, change_of_median), TypeError, "function must be a function, not int"),
            ((median, None), TypeError, "sensitivity_at must be a function, not NoneType"),
            ((lambda: 0, change_of_median), TypeError, "function must be a function of one argument, the sorted codes"),
            ((median, lambda codes: 0), TypeError, "sensitivity_at must be a function of three arguments, .* and the"),
            ((median, change_of_median, 0), ValueError, "divisions must be at least 1"),
            ((median, change_of_median, 2**20 + 1), ValueError, "divisions must be at most"),
            ((median, change_of_median, 1, 1), TypeError, "spread must be True or False"),
            ((median, change_of_median, 1, True, 3), TypeError, "name must be a string"),
        ],
    )
    def test_parameters(self, parameters, error, told):
        with pytest.raises(error, match=told):
            UserStatistic(*parameters)

    def test_grids_that_are_too_large(self):
        wide = UserStatistic(median, change_of_median, divisions=2**20)
        with pytest.raises(ValueError, match=r"must be below 2\*\*63"):
            dpf.SmoothSensitivity(wide, grid=dpf.Grid(0, 2.0**50, step=1), epsilon=1.0)
        far = dpf.Grid(-(2.0**1023), 2.0**1023, step=2.0**975)
        with pytest.raises(ValueError, match="beyond the range of float64"):
            dpf.SmoothSensitivity(UserStatistic(median, change_of_median, spread=True), grid=far, epsilon=1.0)


def test_it_is_a_parameter():
    mechanism = dpf.SmoothSensitivity(TRIMEAN, grid=dpf.Grid(0, 100, step=1), epsilon=1.0)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert "release of the trimean on 101 points" in repr(mechanism)
    assert mechanism.beta == 0.236
    published = dpf.SmoothSensitivity.as_published(TRIMEAN, grid=dpf.Grid(0, 100, step=1), epsilon=1.0, delta=1e-6)
    assert published.scale == 2.0
    with pytest.raises(TypeError, match="not a functional"):
        dpf.theory.influence_function(TRIMEAN, [1.0, 2.0], 3.0, 0.1)


def test_predicted_errors_are_those_of_releases():
    """With 64 imagined samples the quantile of the error is within a fifth."""
    mechanism, n = dpf.SmoothSensitivity(TRIMEAN, grid=dpf.Grid(0, 100), epsilon=1.0), 400
    rng = np.random.default_rng(1)
    errors = [abs(mechanism(rng.normal(50, 10, n), rng=rng) - 50) for _ in range(500)]
    assert mechanism.error(n, distribution=norm(50, 10)) == pytest.approx(np.quantile(errors, 0.95), rel=0.2)
    expected = mechanism.expected_error(n, norm(50, 10))
    assert expected.total == pytest.approx(np.mean(errors), rel=0.2)
    assert expected.sampling < expected.total
    with pytest.raises(ValueError, match=r"at most 2\*\*20 records"):
        mechanism.error(2**20 + 1, distribution=norm(50, 10))
