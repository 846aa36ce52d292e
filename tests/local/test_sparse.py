"""Sparse means under local privacy: coverage of the threshold, supports, bounds, threats."""

import doctest
import importlib
import math

import numpy as np
import pytest
from numpy.random import PCG64, Generator
from scipy.stats import binom

import dpfast as dpf
from dpfast import local
from tests.cases import every
from tests.statistical import ALPHA

threshold = dpf.theory.local_sparse_threshold


def means(method, n, d, runs, *, epsilon=1.0, theta=0.0, seed=1):
    """The means of n reports each, of records that are theta everywhere."""
    people = local.Hypercube(d, epsilon, method=method)
    x = np.broadcast_to(np.float32(theta), (n, d))
    source = Generator(PCG64(seed))
    return np.array([people.estimate(people.randomize(x, rng=source)) for _ in range(runs)])


@pytest.mark.parametrize(
    ("method", "n", "d"), [("majority", 300, 20), ("subset", 300, 20), ("subset", 800, 100), ("majority", 200, 1)]
)
def test_the_threshold_covers_as_often_as_it_says(method, n, d):
    """P(max|z - theta| <= lambda) >= confidence, in the worst case theta = 0; half of lambda does not."""
    runs, confidence = 600, 0.9
    errors = np.abs(means(method, n, d, runs)).max(axis=1)
    needed = binom.ppf(ALPHA, runs, confidence)
    bound = threshold(n, d, epsilon=1.0, confidence=confidence, method=method)
    assert np.count_nonzero(errors <= bound) >= needed
    assert np.count_nonzero(errors <= bound / 2) < needed


def test_the_threshold_is_not_far_from_the_quantile():
    """A tight bound: within a factor of 1.4 of the 90 % quantile."""
    errors = np.abs(means("subset", 2000, 20, 300)).max(axis=1)
    assert threshold(2000, 20, epsilon=1.0, confidence=0.9, method="subset") < 1.4 * np.quantile(errors, 0.9)


@every("epsilon", [0.1, 1.0, 4.0])
@every("n, d", [(10, 3), (100, 1000), (10**6, 50), (10**5, 1)])
def test_the_threshold_is_the_smaller_of_both_bounds(n, d, epsilon):
    found = []
    for method in ("majority", "subset"):
        people = local.Hypercube(d, epsilon, method=method, radius=2.0)
        risk = math.log(2 * d / 0.05)
        hoeffding = people.scale * math.sqrt(2 * risk / n)
        variance = people.variance() / d
        bernstein = math.sqrt(2 * variance * risk / n) + people.scale * risk / (3 * n)
        found.append(threshold(n, d, epsilon=epsilon, radius=2.0, method=method))
        assert found[-1] == pytest.approx(min(hoeffding, bernstein))
    assert threshold(n, d, epsilon=epsilon, radius=2.0) == min(found)
    assert min(found) == pytest.approx(2 * threshold(n, d, epsilon=epsilon))


def test_bernstein_gains_match_the_specification():
    """About 1.25 at epsilon = 1 for long vectors and many people."""
    options = {"epsilon": 1.0}
    gain = threshold(10**7, 1000, method="majority", **options) / threshold(10**7, 1000, method="subset", **options)
    assert 1.2 < gain < 1.25


@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_support_and_error_are_as_stated(kind):
    """Off the support zero, exactly; on it 2 lambda at most; large coordinates are found: in 9 of 10 runs at least."""
    n, d, runs, confidence = 2000, 30, 120, 0.9
    bound = threshold(n, d, epsilon=4.0, confidence=confidence)
    theta = np.zeros(d)
    theta[[2, 11, 29]] = 2.1 * bound, -min(1.0, 3 * bound), bound / 3
    assert 2.1 * bound < 1
    total = dpf.theory.local_sparse_mean_bound(n, d, 3, epsilon=4.0, confidence=confidence)
    assert total == pytest.approx(12 * bound**2)
    rng, good = Generator(PCG64(1)), 0
    for _ in range(runs):
        records = np.where(rng.random((n, d)) < (1 + theta) / 2, 1, -1).astype(np.int8)  # theta is their expectation
        estimate = local.sparse_mean(records, epsilon=4.0, confidence=confidence, threshold=kind, rng=rng)
        found = np.flatnonzero(estimate)
        good += (
            set(found) <= {2, 11, 29}
            and {2, 11} <= set(found)
            and np.abs(estimate - theta).max() <= 2 * bound
            and np.sum((estimate - theta) ** 2) <= total
        )
    needed = binom.ppf(ALPHA, runs, confidence)
    assert good >= needed
    beside = np.abs(means("subset", n, d - 3, runs, epsilon=4.0)).max(axis=1)
    assert np.count_nonzero(beside <= bound / 2) < needed  # half of lambda finds too much


def test_two_rounds_are_as_stated():
    """The recipe of `local_sparse_rounds_bound`: the right support and a small error in 9 of 10 runs at least."""
    n, d, runs, confidence = 4000, 30, 100, 0.9
    least, error = dpf.theory.local_sparse_rounds_bound(n, d, 2, epsilon=4.0, confidence=confidence)
    assert least == 2 * threshold(n // 2, d, epsilon=4.0, confidence=0.95) < 1
    assert error == pytest.approx(2 * threshold(n // 2, 2, epsilon=4.0, confidence=0.95) ** 2)
    assert error < dpf.theory.local_sparse_mean_bound(n, d, 2, epsilon=4.0, confidence=confidence) / 4
    assert error > 4 * local.Hypercube(2, 4.0).second_moment / n  # the mean squared error, with n / 2 people, and more
    theta = np.zeros(d)
    theta[[4, 17]] = least, -least
    rng, good, small = Generator(PCG64(4)), 0, 0
    for _ in range(runs):
        x = np.where(rng.random((n, d)) < (1 + theta) / 2, 1, -1).astype(np.int8)
        first = local.sparse_mean(x[: n // 2], epsilon=4.0, confidence=0.95, threshold="hard", rng=rng)
        kept = np.flatnonzero(first)
        people = local.Hypercube(kept.size, 4.0)
        estimate = np.zeros(d)
        estimate[kept] = people.estimate(people.randomize(x[n // 2 :, kept], rng=rng))
        square = np.sum((estimate - theta) ** 2)
        good += kept.tolist() == [4, 17] and square <= error
        small += square <= error / 30
    needed = binom.ppf(ALPHA, runs, confidence)
    assert good >= needed > small  # a thirtieth of the bound does not hold
    with pytest.raises(ValueError, match="at most dimension = 3, not 4"):
        dpf.theory.local_sparse_rounds_bound(10, 3, 4, epsilon=1.0)


def test_soft_and_hard_by_definition():
    rng = Generator(PCG64(3))
    x = rng.uniform(-3, 3, (5000, 12)) * (np.arange(12) < 4) + np.where(np.arange(12) < 2, 2.0, 0.0)
    options = {"epsilon": 2.0, "radius": 3.0}
    bound = threshold(5000, 12, **options)
    method = min(("majority", "subset"), key=lambda m: threshold(5000, 12, method=m, **options))
    people = local.Hypercube(12, 2.0, radius=3.0, method=method)
    z = people.estimate(people.randomize(x, rng=PCG64(5)))
    soft = np.clip(np.sign(z) * np.maximum(np.abs(z) - bound, 0), -3, 3)
    hard = np.clip(np.where(np.abs(z) > bound, z, 0), -3, 3)
    np.testing.assert_array_equal(local.sparse_mean(x, rng=PCG64(5), **options), soft)
    np.testing.assert_array_equal(local.sparse_mean(x, rng=PCG64(5), threshold="hard", **options), hard)
    np.testing.assert_array_equal(local.sparse_mean(x, rng=PCG64(5), workers=2, **options), soft)
    assert np.count_nonzero(soft) >= 2


# ---- threats ----

AWKWARD = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 0.3]


def test_shape_and_type_depend_on_public_things_only():
    """T10, without warnings."""
    for value in AWKWARD:
        x = np.full((4, 3), 0.1)
        x[1, 2] = value
        estimate = local.sparse_mean(x, epsilon=1.0, rng=PCG64(1))
        assert (estimate.shape, estimate.dtype) == ((3,), np.float64)
        assert np.all(np.abs(estimate) <= 1)
    ends = local.sparse_mean(np.full((50_000, 2), math.inf), epsilon=2.0)
    assert np.all(ends > 0.8)
    assert not local.sparse_mean(np.full((50_000, 2), math.nan), epsilon=2.0, rng=PCG64(1)).any()


def test_the_threshold_never_sees_data():
    """T21: two datasets, the same stream: the estimate of the same reports is the same."""
    x = np.zeros((1000, 4))
    y = x + 1e-18  # rounds to the same corner probabilities
    np.testing.assert_array_equal(
        local.sparse_mean(x, epsilon=1.0, rng=PCG64(1)), local.sparse_mean(y, epsilon=1.0, rng=PCG64(1))
    )


def test_dtypes_strides_and_inputs_left_alone():
    x = Generator(PCG64(1)).integers(-1, 2, (2000, 5)).astype(float)
    x[:, 0] = 1
    expected = local.sparse_mean(x, epsilon=3.0, rng=PCG64(2))
    assert expected.any()
    wide = np.zeros((4000, 10))
    wide[::2, ::2] = x
    locked = x.copy()
    locked.flags.writeable = False
    for other in (x.astype(np.float32), x.astype(np.int8), np.asfortranarray(x), wide[::2, ::2], locked, x.tolist()):
        before = np.array(other)
        np.testing.assert_array_equal(local.sparse_mean(other, epsilon=3.0, rng=PCG64(2)), expected)
        np.testing.assert_array_equal(other, before)


def test_parameters_are_told_before_data_are_looked_at():
    wrong = [
        ({"epsilon": 0.0}, ValueError, "epsilon"),
        ({"radius": 0.0}, ValueError, "radius"),
        ({"confidence": 1.0}, ValueError, "confidence"),
        ({"threshold": "none"}, ValueError, "threshold"),
        ({"rng": 3}, TypeError, "rng"),
        ({"workers": 0}, ValueError, "workers"),
    ]
    for options, error, match in wrong:
        with pytest.raises(error, match=match):
            local.sparse_mean("not read", **{"epsilon": 1.0, **options})
    with pytest.raises(ValueError, match="empty"):
        local.sparse_mean(np.empty((0, 3)), epsilon=1.0)
    with pytest.raises(ValueError, match="two-dimensional"):
        local.sparse_mean(np.zeros(3), epsilon=1.0)
    with pytest.raises(ValueError, match="method"):
        threshold(10, 3, epsilon=1.0, method="best")
    with pytest.raises(ValueError, match="sparsity"):
        dpf.theory.local_sparse_mean_bound(10, 3, 4, epsilon=1.0)


def test_docstring_examples():
    tests = doctest.testmod(importlib.import_module("dpfast.local.sparse"))
    assert tests.attempted > 3
    assert tests.failed == 0
