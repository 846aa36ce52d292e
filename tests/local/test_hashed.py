"""HashedCategorical: exact laws, transforms against their definition, variances, refusals, parameters."""

import math
import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from dpfast import local
from dpfast._kernels import _randomize, _samplers
from dpfast.core.coin import Coin, coin
from dpfast.local.hashed import best_field, keys_of
from dpfast.random import streams
from tests.cases import every
from tests.reference import local as reference
from tests.statistical import chi_square_rejects, exceeds

EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0)


# ---- privacy ----


@every("epsilon", EPSILONS)
@every("k, cells", [(2, 256), (5, 256), (2**40, 256)])
def test_laws_are_private_and_unbiased_exactly(epsilon, k, cells):
    survey = local.HashedCategorical(k, epsilon, cells=cells)
    if survey.outcomes > 2**16:
        pytest.skip("too many reports to enumerate")
    records = [0, 1, k - 1, k // 2, 10**9 % k]
    laws = [survey.law(x) for x in records]
    assert all(sum(law.pmf) == 1 for law in laws)
    ratio = reference.largest_ratio([law.pmf for law in laws])
    assert ratio == survey.coin.ratio
    assert not exceeds(ratio, epsilon)
    assert math.log(ratio) == pytest.approx(epsilon, rel=1e-12)
    supported = survey.supported(laws[0].reports, records)
    q = Fraction(survey.width, survey.prime)
    for x, law in zip(records, laws, strict=True):
        for v, column in zip(records, supported.T, strict=True):
            near = sum(p for p, s in zip(law.pmf, column, strict=True) if s)
            if x == v:
                assert near == survey.coin.probability
            elif not survey.hashed:
                assert near == q


def test_controls():
    """A coin that is rounded up, and the odds of another width, are rejected."""
    prime, width = best_field(1.0)
    odds = Fraction(width, prime - width)
    made = coin(1.0, odds)
    wrong = Coin(made.threshold + 1, odds)
    for p, w, private in ((made.probability, width, True), (wrong.probability, width, False)):
        assert exceeds(p / w / ((1 - p) / (prime - w)), 1.0) != private
    p = made.probability  # for one residue more
    assert exceeds(p / (width - 1) / ((1 - p) / (prime - width + 1)), 1.0)


def test_samples_follow_the_law():
    survey = local.HashedCategorical(2**40, 1.0, cells=256)
    law = survey.law(12345)
    counts = np.bincount(survey.randomize(np.full(400_000, 12345), rng=PCG64(1)), minlength=survey.outcomes)
    assert not chi_square_rejects(counts, law.pmf)
    assert chi_square_rejects(counts, survey.law(54321).pmf)


# ---- the server ----


FIELDS = [(2, 3, 1), (2, 4, 1), (3, 2, 1), (7, 2, 2), (5, 3, 2), (5, 1, 4), (11, 1, 3), (67, 1, 3)]


@pytest.mark.parametrize(("prime", "digits", "width"), FIELDS)
def test_supports_by_definition(prime, digits, width):
    """Several functions side by side, some without reports, and one alone; they are added to what is there."""
    size, source = prime**digits, np.random.default_rng(prime + digits)
    functions, cells = np.array([0, 3, 4, *range(6, 23)]), np.arange(size * prime)
    two = [source.integers(0, 5, cells.size) for _ in range(2)]
    expected = [1 + np.array(reference.hyperplanes(count.tolist(), prime, digits, width)) for count in two]
    counts = [two[i % 2] for i in range(functions.size)]
    reports = np.concatenate([np.repeat(j * cells.size + cells, c) for j, c in zip(functions, counts, strict=True)])
    ends = np.cumsum([0, *(count.sum() for count in counts)])
    for kind in (np.uint32, np.uint64):
        one_by_one = np.zeros((24, size), np.int64)
        _randomize.add_reports(reports.astype(kind), prime, digits, width, one_by_one)
        for lanes in (1, 16, 32):
            sums = np.ones((24, size), np.int64)
            _randomize.add_functions(reports.astype(kind), ends, functions, prime, digits, width, lanes, sums)
            np.testing.assert_array_equal(sums[functions[::2]], np.tile(expected[0], (10, 1)))
            np.testing.assert_array_equal(sums[functions[1::2]], np.tile(expected[1], (10, 1)))
            assert (sums[[1, 2, 5, 23]] == 1).all()
            np.testing.assert_array_equal(one_by_one[functions], sums[functions] - 1)
    alone = np.full(size, 5, np.int64)
    _randomize.add_function(reports[: ends[1]].astype(np.uint16), prime, digits, width, alone)
    np.testing.assert_array_equal(alone - 4, expected[0])


@pytest.mark.parametrize("most", [2**8 - 1, 2**8, 2**16 - 1, 2**16])
def test_counts_have_room(most):
    """So many equal reports, which are counted in the narrowest type, support their cells."""
    prime, digits, width = 3, 2, 2
    size = prime**digits
    expected = most * np.array(reference.hyperplanes([0, 0, 0, 0, 1] + [0] * 22, prime, digits, width))
    assert expected.max() == most
    reports, sums = np.full(most, 4, np.uint32), np.zeros((2, size), np.int64)
    _randomize.add_functions(reports, np.array([0, most]), np.array([0]), prime, digits, width, 16, sums)
    np.testing.assert_array_equal(sums[0], expected)
    alone = np.zeros(size, np.int64)
    _randomize.add_function(reports, prime, digits, width, alone)
    np.testing.assert_array_equal(alone, expected)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_reports_of_a_function_are_put_together(kind):
    reports = np.random.default_rng(1).integers(0, 100, 500).astype(kind)
    ends, out = np.empty(4, np.int64), np.empty_like(reports)
    assert _randomize.group_functions(reports, 20, ends, out) == np.count_nonzero(reports < 60)
    for j, (start, end) in enumerate(pairwise(ends.tolist())):
        assert out[start:end].tolist() == reports[reports // 20 == j].tolist()


@pytest.mark.parametrize("n", [1, 300, 20_000])
@pytest.mark.parametrize("epsilon", [1.0, 3.0, 5.0])
def test_few_and_many_reports_are_counted_alike(epsilon, n):
    """The road that few reports take against the sums over digits."""
    survey = local.HashedCategorical(2**30, epsilon, cells=2**14)
    reports = survey.randomize(np.arange(n), rng=PCG64(3))
    sums, order = np.zeros((survey.hashes, survey.buckets), np.int64), np.sort(reports)
    starts = np.searchsorted(order // (survey.buckets * survey.prime), np.arange(survey.hashes + 1))
    kind, functions = (survey.prime, survey.digits, survey.width), np.arange(survey.hashes)
    if survey.hashes > 1:
        _randomize.add_functions(order, starts, functions, *kind, 1, sums)
    else:
        _randomize.add_function(order, *kind, sums[0])
    np.testing.assert_array_equal(survey.aggregate(reports).sums, sums.reshape(-1))


@pytest.mark.parametrize(("k", "epsilon"), [(40, 1.0), (2**40, 0.1), (2**40, 5.0), (2**64, 3.0)])
def test_reports_and_estimates_are_those_of_numpy(k, epsilon):
    """The kernels against the definition in NumPy, for the same words."""
    survey = local.HashedCategorical(k, epsilon, cells=2**12, seed=7)
    x = np.random.default_rng(1).integers(0, k - 1, 300, np.uint64, endpoint=True)
    reports = survey.randomize(x, rng=PCG64(2))
    source = streams(PCG64(2), 1)[0]
    drawn, heights = np.empty(x.size, np.uint64), np.empty(x.size, np.uint32)
    _samplers.fill_uniform(source, survey.hashes * survey.buckets - 1, drawn)
    windows = survey.width, survey.prime, survey.coin.threshold
    _randomize.fill_windows(source, np.zeros(x.size, np.uint32), *windows, heights)
    assert [survey.supported(r[None], [v])[0, 0] for r, v in zip(reports, x, strict=True)] == (
        heights < survey.width
    ).tolist()
    assert (reports // survey.prime == drawn).all()
    total, keys = survey.aggregate(reports), x[:20]
    shares = survey.supported(reports, keys)
    counts = shares.sum(axis=0)
    if survey.hashed:  # the support of a report counts for the cell of its own function
        sums = total.sums.reshape(survey.hashes, survey.buckets)
        cells = survey._bucket(np.arange(survey.hashes, dtype=np.uint64)[:, None], keys[None, :])
        np.testing.assert_array_equal(counts, np.take_along_axis(sums, cells.astype(int), 1).sum(axis=0))
    p, q = survey.support
    expected = (counts / total.n - float(q)) / float(p - q)
    np.testing.assert_array_equal(survey.estimate(total, keys), expected)


@pytest.mark.parametrize(("k", "epsilon"), [(40, 1.0), (2**40, 0.1), (2**64, 3.0)])
def test_aggregates_count_the_supports(k, epsilon):
    survey = local.HashedCategorical(k, epsilon, cells=2**12)
    x = np.random.default_rng(1).integers(0, 30, 3000)
    reports = survey.randomize(x, rng=PCG64(2))
    keys = [0, 7, 29, k - 1]
    total = survey.aggregate(reports)
    halves = survey.aggregate(reports[:1000]) + survey.aggregate(reports[1000:], workers=2)
    assert total == halves
    p, q = survey.support
    shares = survey.supported(reports, np.array(keys, np.uint64)).mean(axis=0)
    expected = (shares - float(q)) / float(p - q) if not survey.hashed else None
    found = survey.estimate(total, np.array(keys, np.uint64))
    if expected is not None:
        np.testing.assert_allclose(found, expected, atol=1e-12)
        np.testing.assert_allclose(survey.estimate(total)[[0, 7, 29]], expected[:3], atol=1e-12)
    np.testing.assert_array_equal(found, survey.estimate(reports, np.array(keys, np.uint64)))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_standard_error_is_that_of_the_estimates(epsilon):
    source, n = Generator(PCG64(1)), 100_000
    survey = local.HashedCategorical(2**30, epsilon)
    x = np.where(source.random(n) < 0.3, 5, source.integers(0, 2**30, n))
    total = survey.aggregate(survey.randomize(x, rng=source))
    keys = source.integers(0, 2**30, 4000)
    z = survey.estimate(total, keys) / survey.standard_error(n)
    assert 0.9 < np.std(z) < 1.1
    assert abs(np.mean(z)) < 0.5
    assert abs(survey.estimate(total, [5])[0] - np.mean(x == 5)) < 6 * survey.standard_error(n, 0.3)
    assert survey.error(n) >= 1.9 * survey.standard_error(n)


@every("epsilon", [0.05, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 3.968, 5.0])
def test_near_the_least_variance(epsilon):
    """Within 1.7 % of optimal subset selection, for many keys; a fixed prime of 2 (Hadamard) loses much more."""
    survey = local.HashedCategorical(2**30, epsilon)
    subset = local.Categorical(4000, epsilon, "subset")
    best = float(subset._method.variances[1])
    small = local.HashedCategorical(4000, epsilon)
    assert small.standard_error(1) ** 2 / best < 1.03
    assert survey.loss < 1.017
    if epsilon >= 1:
        assert float(local.Categorical(4000, epsilon, "hadamard")._method.variances[1]) / best > 1.2


def test_projection_of_candidates():
    survey = local.HashedCategorical(2**40, 1.0)
    reports = survey.randomize(np.zeros(1000, int), rng=PCG64(1))
    keys = np.arange(200)
    plain, projected = survey.estimate(reports, keys), survey.estimate(reports, keys, project=True)
    assert plain.min() < 0
    assert projected.min() >= 0
    assert projected.sum() <= 1 + 1e-12


# ---- input ----


def test_records_that_are_no_keys_count_as_0():
    x = np.array([np.nan, -1.0, 0.5, 2.0**70, np.inf, 3.0])
    assert keys_of(x, 2**64).tolist() == [0, 0, 0, 0, 0, 3]
    assert keys_of(np.array([-1, 5, 6]), 6).tolist() == [0, 5, 0]
    assert keys_of(np.array([-1, 5, -(2**63)]), 2**64).tolist() == [0, 5, 0]
    assert keys_of(np.array([[0, 7], [1, 3]])[:, 1], 7).tolist() == [0, 3]
    assert keys_of(np.array([2.0**63, 2.0**64]), 2**64).tolist() == [2**63, 0]
    assert keys_of(np.array([True, False]), 2).tolist() == [1, 0]
    assert keys_of(np.array([2**64 - 1], np.uint64), 2**64).tolist() == [2**64 - 1]
    assert keys_of(np.array([2**53], np.float32), 2**54).tolist() == [2**53]


def test_refused_reports():
    survey = local.HashedCategorical(2**40, 1.0)
    reports = survey.randomize(np.arange(100), rng=PCG64(1))
    hostile = np.append(reports, np.array([survey.outcomes, 2**32 - 1], reports.dtype))
    assert survey.aggregate(hostile).refused == 2
    assert survey.aggregate(hostile).n == 100
    np.testing.assert_array_equal(survey.estimate(hostile, [1, 2]), survey.estimate(reports, [1, 2]))


def test_shapes_bytes_and_values():
    survey = local.HashedCategorical(2**40, 1.0)
    assert survey.randomize(5).shape == ()
    assert survey.randomize([]).shape == (0,)
    reports = survey.randomize([1, 2, 3], rng=PCG64(1))
    assert survey.from_bytes(survey.to_bytes(reports)).tolist() == reports.tolist()
    assert (survey.randomize([1, 2, 3], rng=PCG64(1), workers=2) == reports).all()
    assert pickle.loads(pickle.dumps(survey)) == survey != local.HashedCategorical(2**40, 1.0, seed=1)
    with pytest.raises(ValueError, match="bytes for each report"):
        survey.from_bytes(b"123")


@every(
    "args, options",
    [((1, 1.0), {}), ((2**64 + 1, 1.0), {}), ((5, 0.0), {}), ((5, 1.0), {"cells": 100}), ((5, 1.0), {"seed": 2**64})],
)
def test_bad_parameters(args, options):
    with pytest.raises(ValueError, match="must"):
        local.HashedCategorical(*args, **options)


def test_lists_of_keys_around_2_63():
    survey = local.HashedCategorical(2**64, 4.0)
    reports = survey.randomize(np.array([2**63 + 1, 2**64 - 1] * 500, np.uint64), rng=PCG64(1))
    keys = [1, 2**63, 2**63 + 1, 2**64 - 1]
    array = np.array(keys, np.uint64)
    assert (survey.supported(reports, keys) == survey.supported(reports, array)).all()
    estimates = survey.estimate(reports, keys)
    assert (estimates == survey.estimate(reports, array)).all()
    assert estimates == pytest.approx([0, 0, 0.5, 0.5], abs=0.2)


def test_bad_arguments():
    survey = local.HashedCategorical(2**40, 1.0)
    reports = survey.randomize([1, 2], rng=PCG64(1))
    for call in (
        lambda: survey.estimate(reports),
        lambda: survey.estimate(reports[:0], [1]),
        lambda: survey.estimate(reports, [2**40]),
        lambda: survey.estimate(local.HashedCategorical(2**40, 2.0).aggregate(reports), [1]),
        lambda: survey.aggregate(reports[:, None]),
        lambda: survey.law(1),
    ):
        with pytest.raises(ValueError, match=r"must|needs|supports"):
            call()
    with pytest.raises(TypeError, match="array of uint32"):
        survey.aggregate(reports.astype(np.int64))
    with pytest.raises(TypeError, match="integer"):
        survey.estimate(reports, [0.5])
