"""Randomisers of vectors, in the ball and on the hypercube: constants, laws, losses, reports and aggregates."""

import copy
import doctest
import importlib
import itertools
import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.random import PCG64, Generator
from scipy.stats import norm

from dpfast import audit, local
from dpfast._kernels import _bits, _directions
from dpfast.core.coin import coin
from dpfast.theory.cube import masks, threshold_scale
from tests.reference import hypercube as reference
from tests.reference.directions import direction
from tests.scripted import ScriptedBits
from tests.statistical import ALPHA, chi_square_rejects, kolmogorov_rejects

pytestmark = pytest.mark.kernel

RATIOS = [Fraction(3, 2), Fraction(3), Fraction(20)]
LIMIT = norm.isf(ALPHA / 2)

EVERY = [
    local.Hypercube(5, 1.0, method="majority"),
    local.Hypercube(6, 2.0, method="majority", radius=2.0),
    local.Hypercube(7, 2.0, method="subset"),
    local.Hypercube(70, 8.0),
    local.L2Ball(1, 1.0),
    local.L2Ball(5, 1.0, radius=2.0),
    local.L2Ball(5, 1.0, radius=2.0, report="sign"),
    local.L2Ball(4, 2.0, method="privunit"),
    local.L2Ball(5, 1.0, radius=2.0, method="directions"),
    local.L2Ball(4, 2.0, method="directions", directions=9, report="vector"),
]
NAMES = [f"{type(m).__name__} {m.d} {m.method} {getattr(m, 'report', '')}".strip() for m in EVERY]
every = pytest.mark.parametrize("mechanism", EVERY, ids=NAMES)


# ---- exact laws, d = 1..6 ----


@pytest.mark.parametrize("ratio", [*RATIOS, coin(0.5).ratio])
@pytest.mark.parametrize("d", range(1, 7))
def test_every_threshold_is_unbiased_with_that_ratio_exactly(d, ratio):
    for tau in range(d // 2 + 1, d + 1):
        weights, scale = reference.threshold(d, tau, ratio)
        assert threshold_scale(d, tau, ratio) == scale
        assert reference.is_unbiased(d, weights, scale)
        assert reference.loss_ratio(weights) == ratio


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("d", [2, 4, 6])
def test_controls_of_the_same_check(d, ratio):
    """F1: the published even majority loses log(1 + e^epsilon). F2: ties on one side of the same coin lose as much."""
    weights, scale = reference.published_even(d, ratio)
    assert reference.is_unbiased(d, weights, scale)
    assert reference.loss_ratio(weights) == 1 + ratio
    t = Fraction(math.comb(d, d // 2), 2**d)
    assert reference.loss_ratio(reference.ties_lied(d, ratio)) == ratio * (1 + t) / (1 - t) > ratio
    assert reference.threshold(d, d // 2 + 1, ratio)[1] < scale


def test_ties_kept_can_turn_the_estimate_round():
    """F2, d = 2, epsilon < log 3: the sign agrees less often than not."""
    weights = reference.ties_kept(2, Fraction(3, 2))
    assert reference.unbiased(2, weights)[1] < 0
    assert reference.unbiased(2, reference.ties_kept(2, Fraction(4)))[1] > 0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("d", range(1, 7))
def test_mechanisms_have_the_constants_of_their_coin(d, epsilon):
    majority = local.Hypercube(d, epsilon, method="majority")
    assert majority.scale == pytest.approx(float(reference.threshold(d, d // 2 + 1, coin(epsilon).ratio)[1]), rel=1e-14)
    subset = local.Hypercube(d, epsilon, method="subset", radius=3.0)
    inside, outside = masks(subset.k, subset.tau)
    ratio = coin(epsilon, Fraction(inside[-1], outside[-1])).ratio
    with mpmath.workdps(60):
        assert 0 <= mpmath.exp(mpmath.mpf(epsilon)) - mpmath.mpf(ratio.numerator) / ratio.denominator < 1e-14
    exact = reference.threshold(subset.k, subset.tau, ratio)[1] * 3 * d / subset.k
    assert subset.scale == pytest.approx(float(exact), rel=1e-15)


@pytest.mark.parametrize(
    ("mechanism", "x"),
    [
        (local.Hypercube(3, 1.0, method="majority", radius=2.0), [0.5, -2.0, math.nan]),
        (local.Hypercube(4, 0.5, method="majority"), [0.25, 1.0, -7.0, 0.0]),
        (local.Hypercube(4, 8.0, method="subset"), [0.25, 1.0, -7.0, 0.0]),
    ],
)
def test_law_is_the_rational_one(mechanism, x):
    d, tau = mechanism.d, mechanism.tau
    assert mechanism.k == d
    inside, outside = masks(d, tau)
    odds = Fraction(1) if mechanism.method == "majority" else Fraction(inside[-1], outside[-1])
    weights = reference.threshold(d, tau, coin(mechanism.epsilon, odds).ratio)[0]
    exact = reference.law([Fraction(reference.up_code(v, mechanism.radius), 2**48) for v in x], weights)
    law = mechanism.law(x)
    for z, logpmf in zip(law.signs.tolist(), law.logpmf(law.outcomes()), strict=True):
        assert math.exp(logpmf) == pytest.approx(float(exact[tuple(z)]), rel=1e-13)
    mean = np.exp(law.logs) @ law.signs * mechanism.scale
    np.testing.assert_allclose(mean, mechanism._meant(np.array([x]))[0], atol=1e-12)


@pytest.mark.parametrize(("d", "method"), [(3, "majority"), (4, "majority"), (4, "subset"), (5, "subset")])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_loss_of_all_pairs_of_records(d, method, epsilon):
    mechanism = local.Hypercube(d, epsilon, method=method)
    laws = np.array([mechanism.law(x).logs for x in itertools.product((-1.0, 0.3, 1.0), repeat=d)])
    loss = (laws.max(axis=0) - laws.min(axis=0)).max()
    assert epsilon - 1e-9 < loss <= epsilon + 1e-12
    np.testing.assert_allclose(np.exp(laws).sum(axis=1), 1, rtol=1e-13)


# ---- draws against the law ----


@pytest.mark.parametrize(
    ("mechanism", "x"),
    [
        (local.Hypercube(1, 1.0), [-1.0]),
        (local.Hypercube(5, 1.0, method="majority"), [1.0, -1.0, 0.5, -1.0, math.nan]),
        (local.Hypercube(6, 1.0, method="majority"), [1.0, -1.0, 0.5, 0.0, 1.0, -0.9]),
        (local.Hypercube(12, 2.0, method="majority"), [1.0, -1.0] * 5 + [0.3, 0.0]),
        (local.Hypercube(6, 2.0, method="subset"), [1.0, -1.0, 0.5, 0.0, 0.3, -0.9]),
        (local.Hypercube(12, 6.0, method="subset"), [1.0, -1.0] * 6),
    ],
    ids=lambda value: f"{value.d} {value.method}" if isinstance(value, local.Hypercube) else "",
)
def test_output_law(mechanism, x):
    """Every report, and, where wrong parameters show better, the number of signs that agree with the record."""
    n, law = 200_000, mechanism.law(x)
    vectors = np.rint(mechanism.decode(mechanism.randomize(np.tile(x, (n, 1)), rng=PCG64(1))) / mechanism.scale)
    digits = 3 ** np.arange(mechanism.d)
    order = np.argsort((law.signs + 1) @ digits)
    found = np.searchsorted(((law.signs + 1) @ digits)[order], (vectors.astype(int) + 1) @ digits)
    counts = np.bincount(found, minlength=order.size)
    assert counts.sum() == n
    assert not chi_square_rejects(counts, np.exp(law.logs)[order])
    agree = (law.signs[order] == np.sign(x)).sum(axis=1)
    for factor in (1.0, 0.9, 1.1):
        other = copy.copy(mechanism)
        object.__setattr__(other, "epsilon", mechanism.epsilon * factor)
        p = np.bincount(agree, weights=np.exp(other.law(x).logs)[order])
        assert chi_square_rejects(np.bincount(agree, weights=counts), p) == (factor != 1)


# ---- scripted words: bit for bit ----


def packed(bits):
    words = [0] * -(-len(bits) // 64)
    for j, bit in enumerate(bits):
        words[j // 64] |= bit << (j % 64)
    return words


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 64, 65, 130])
def test_majority_twin(d):
    rng, threshold = Generator(PCG64(d)), coin(1.0).threshold
    for seed in range(60):
        x = rng.uniform(-4, 4, d)
        x[rng.random(d) < 0.1] = math.nan
        words, plan = PCG64(seed).random_raw(4 * d + 8).tolist(), ScriptedBits(rest=PCG64(seed))
        if seed % 2:  # the first lane equals the first digits of its code
            words[0] = words[0] & ~0xFFFF | (reference.up_code(x[0], 3.0) >> 32) & 0xFFFF
        source, plan = ScriptedBits(words, PCG64(99)), ScriptedBits(words, PCG64(99))
        out = np.empty((1, -(-d // 64)), np.uint64)
        _bits.randomize_majority(source, x[None], 1 / 3.0, threshold, out)
        expected = reference.majority(lambda plan=plan: plan._next(None), x.tolist(), 3.0, threshold)
        assert out[0].tolist() == packed(expected)
        assert source.used == plan.used


@pytest.mark.parametrize(("d", "k", "tau"), [(1, 1, 1), (5, 1, 1), (5, 3, 3), (9, 4, 3), (7, 7, 5), (200, 70, 40)])
def test_subset_twin(d, k, tau):
    rng = Generator(PCG64(d))
    inside, outside = masks(k, tau)
    threshold = coin(1.0, Fraction(inside[-1], outside[-1])).threshold
    for seed in range(60):
        x = rng.uniform(-4, 4, d)
        words = PCG64(seed).random_raw(2 * k + 8).tolist()
        if seed % 2 and k > 1:  # a number of ones that 64 digits do not decide
            edges = outside if seed % 4 == 1 and len(outside) > 1 else inside
            place = (k < d) + -(-k // 4)
            words[place] = 0 if edges is inside else 2**64 - 1
            words[place + 1] = (edges[0] << 64) // edges[-1] % 2**64
        source, plan = ScriptedBits(words, PCG64(99)), ScriptedBits(words, PCG64(99))
        out = np.empty((1, -(-k // 64) + (k < d)), np.uint64)
        _bits.randomize_threshold(source, x[None], 1 / 3.0, threshold, k, _bits.Masks(inside, outside), out)
        signs = reference.subset_signs(lambda plan=plan: plan._next(None), x.tolist(), 3.0, threshold, k, tau)
        assert out[0].tolist() == ([] if signs[0] is None else [signs[0]]) + packed(signs[1])
        assert source.used == plan.used


def test_subsets_match_the_seed_and_are_uniform():
    seeds = PCG64(1).random_raw(60_000)
    out = np.empty((seeds.size, 3), np.int64)
    _bits.subsets(seeds, 6, out)
    assert out[:50].tolist() == [reference.subset(seed, 6, 3) for seed in seeds[:50].tolist()]
    sets = (1 << out).sum(axis=1)
    values, counts = np.unique(sets, return_counts=True)
    assert values.size == 20
    assert not chi_square_rejects(counts, [Fraction(1, 20)] * 20)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 9, 100])
def test_halfspace_twin(d):
    rng, threshold = Generator(PCG64(d)), coin(1.0).threshold
    x, words = rng.normal(size=(200, d)) / math.sqrt(d), PCG64(d).random_raw((200, 3))
    reports, vectors = np.empty(200, np.uint64), np.empty((200, d))
    _directions.randomize_halfspace(words, x, 1 / 1.5, threshold, reports)
    _directions.expand(reports, True, 2.0, vectors)
    for row, (seed, keep, rounding), report, vector in zip(x, words.tolist(), reports.tolist(), vectors, strict=True):
        u = direction(seed >> 1, d)
        length = min(1.0, np.linalg.norm(row) / 1.5)
        own = (rounding >> 1) < (1 + Fraction(length)) * 2**62
        side = bool(u @ row >= 0) == own
        assert report == seed & ~1 | int(side == (keep < threshold))
        np.testing.assert_allclose(vector, 2.0 * u * (1 if report & 1 else -1), rtol=0, atol=1e-13)
    again = np.empty((200, d))
    _directions.randomize_vectors(words, x, 1 / 1.5, threshold, 2.0, again)
    np.testing.assert_array_equal(again, vectors)


def test_directions_are_uniform():
    """Along any axis u_1 has the law of a sphere, coordinates do not correlate, and fourth moments are right."""
    n, d = 100_000, 3
    out = np.empty((n, d))
    _directions.expand(PCG64(5).random_raw(n), True, 1.0, out)  # the last bit is a fair sign
    for axis in (out[:, 0], out[:, 2], out @ np.ones(d) / math.sqrt(d)):
        assert not kolmogorov_rejects(axis, lambda u: (1 + u) / 2)
    assert kolmogorov_rejects(out[:, 0] * 0.9, lambda u: (1 + u) / 2)
    wide = np.empty((20_000, 64))
    _directions.expand(PCG64(6).random_raw(20_000), True, 8.0, wide)
    second = wide.T @ wide / 20_000
    deviation = np.sqrt((wide**2).T @ wide**2 / 20_000 - second**2) / math.sqrt(20_000)
    assert (np.abs(second - np.eye(64)) / deviation).max() < 8
    assert np.mean(wide**4) == pytest.approx(3 * 64 / 66, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [m for m in EVERY if m.d < 70], ids=lambda m: NAMES[EVERY.index(m)])
def test_mean_and_variance(mechanism):
    """Means and second moments of decoded reports, against a wrong scale."""
    n, d = 400_000, mechanism.d
    v = np.linspace(1.0, -0.2, d) * mechanism.radius
    v = v if isinstance(mechanism, local.Hypercube) else v / max(1.0, np.linalg.norm(v) / (0.9 * mechanism.radius))
    vectors = mechanism.decode(mechanism.randomize(np.broadcast_to(v, (n, d)), rng=PCG64(2)))

    def rejects(scale):
        z = np.abs(vectors.mean(axis=0) * scale - v) / (vectors.std(axis=0) / math.sqrt(n))
        return z.max() > LIMIT

    assert not rejects(1.0)
    assert rejects(0.9)
    assert rejects(1.1)
    squares = np.square(vectors - v).sum(axis=1)
    z = (squares.mean() - mechanism.variance(v)) / max(squares.std(), 1e-9) * math.sqrt(n)
    assert abs(z) < LIMIT
    assert abs(squares.mean() * 1.21 - mechanism.variance(v)) / squares.std() * math.sqrt(n) > LIMIT
    assert mechanism.variance(v) < mechanism.variance() == mechanism.variance(np.zeros(d))
    assert mechanism.variance(np.array([v, v])).tolist() == [mechanism.variance(v)] * 2
    spread = np.square(vectors).mean(axis=0).max()
    assert spread <= mechanism.worst_variance * (1 + 6 * math.sqrt(3 / n)) + np.square(v).max()


@pytest.mark.slow
@every
def test_error_covers_as_often_as_it_says(mechanism):
    n, runs = 400, 200
    v = np.zeros(mechanism.d)
    vectors = mechanism.decode(mechanism.randomize(np.broadcast_to(v, (n * runs, v.size)), rng=PCG64(3)))
    errors = np.abs(vectors.reshape(runs, n, -1).mean(axis=1)[:, 0])
    for confidence in (0.5, 0.9):
        covered = np.count_nonzero(errors <= mechanism.error(n, confidence))
        assert abs(covered - confidence * runs) < 6.2 * math.sqrt(runs * confidence * (1 - confidence)) + 1
    assert mechanism.error(4 * n) == pytest.approx(mechanism.error(n) / 2)


# ---- threats ----


@every
def test_every_bit_flips_both_ways(mechanism):
    """T9, and sign(0) is never 0: for records at corners, at 0 and without numbers."""
    for value in (-1.0, 0.0, 1.0, math.nan, math.inf):
        x = np.full((8000, mechanism.d), value * mechanism.radius)
        vectors = mechanism.decode(mechanism.randomize(x, rng=PCG64(4)))
        assert np.all((vectors > 0).any(axis=0))
        assert np.all((vectors < 0).any(axis=0))
        if isinstance(mechanism, local.Hypercube):
            assert np.all(np.count_nonzero(vectors, axis=1) == mechanism.k)
        else:
            np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), mechanism.scale, rtol=1e-12)


AWKWARD = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 0.0, 0.3]


@every
def test_shape_and_type_depend_on_public_things_only(mechanism):
    """T10, without warnings (they are errors)."""
    seen = set()
    for value in AWKWARD:
        x = np.full((3, mechanism.d), 0.1)
        x[1, -1] = value
        reports = mechanism.randomize(x, rng=PCG64(1))
        decoded = mechanism.decode(reports)
        assert np.isfinite(decoded).all()
        assert np.isfinite(mechanism.variance(x)).all()
        seen.add((reports.shape, reports.dtype, decoded.shape, mechanism.randomize(x[1], rng=PCG64(1)).shape))
    assert len(seen) == 1
    assert mechanism.randomize(np.empty((0, mechanism.d))).shape == (0, *reports.shape[1:])
    assert mechanism.decode(reports[0]).tolist() == decoded[0].tolist()


@pytest.mark.parametrize("d", [1, 2, 9])
def test_only_one_bit_depends_on_the_record_and_the_coin_decides_it(d):
    """Lemma R in the code: for every record, the coin keeps or flips the one bit, and the seed is the word's."""
    threshold, words = coin(1.0).threshold, PCG64(1).random_raw((len(AWKWARD), 3))
    x = np.zeros((len(AWKWARD), d))
    x[:, 0] = AWKWARD
    answers = []
    for last in (threshold - 1, threshold):
        words[:, 1], out = last, np.empty(len(AWKWARD), np.uint64)
        _directions.randomize_halfspace(words, x, 1.0, threshold, out)
        assert np.all(out >> np.uint64(1) == words[:, 0] >> np.uint64(1))
        answers.append(out)
    assert np.all(answers[0] ^ answers[1] == 1)


def test_awkward_records_follow_the_docstring():
    """Means of reports for NaN, infinities, long, tiny and huge vectors."""
    n, mechanism = 100_000, local.L2Ball(2, 4.0, radius=2.0)
    root = math.sqrt(2)
    meant = {
        (math.nan, 1.0): (0, 0),
        (math.inf, 1e300): (2, 0),
        (-math.inf, math.inf): (-root, root),
        (30.0, 40.0): (1.2, 1.6),
        (1e308, 1e308): (root, root),
        (1e-310, 0.0): (0, 0),
        (0.0, 1.0): (0, 1),
    }
    for x, mean in meant.items():
        found = mechanism.estimate(mechanism.randomize(np.broadcast_to(np.array(x), (n, 2)), rng=PCG64(7)))
        assert np.abs(found - mean).max() < LIMIT * mechanism.scale / math.sqrt(n)
        np.testing.assert_allclose(mechanism._meant(np.array([x])), [mean], atol=1e-300, rtol=1e-15)


def test_one_dimension_is_two_point_response():
    c = coin(1.0).gain
    for mechanism in (local.L2Ball(1, 1.0, method="privunit"), local.Hypercube(1, 1.0)):
        vectors = mechanism.decode(mechanism.randomize(np.full((200_000, 1), 0.4), rng=PCG64(1)))
        assert np.unique(vectors).tolist() == [-mechanism.scale, mechanism.scale]
        assert mechanism.scale == pytest.approx(c, rel=4e-15)
        plus = np.count_nonzero(vectors > 0)
        assert not chi_square_rejects([plus, 200_000 - plus], [0.5 + 0.2 / c, 0.5 - 0.2 / c])
        assert chi_square_rejects([plus, 200_000 - plus], [0.5 + 0.2, 0.5 - 0.2])


class Projected:
    """The first coordinates of reports, for an auditor."""

    def __init__(self, mechanism, claim=None):
        self.mechanism, self.privacy = mechanism, (claim or mechanism).privacy

    def release(self, x, size, rng):
        reports = self.mechanism.randomize(np.broadcast_to(x, (size, len(x))), rng=rng)
        return self.mechanism.decode(reports)[:, 0]


@pytest.mark.parametrize("method", ["halfspace", "directions", "privunit"])
def test_nothing_distinguishes_more_than_epsilon(method):
    """T16, with a coin of twice the epsilon as the control."""
    x, y = [1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]
    claim = local.L2Ball(3, 1.0, method=method)
    found = audit.distinguish(Projected(claim), x, y, trials=50_000, rng=PCG64(1))
    assert 0.9 < found <= 1
    wrong = Projected(local.L2Ball(3, 2.0, method=method), claim)
    assert audit.distinguish(wrong, x, y, trials=20_000, rng=PCG64(1)) > 1.5
    assert audit.distinguish(Projected(claim), x, [0.0] * 3, trials=20_000, rng=PCG64(2)) <= 1


def test_privunit_is_in_its_cap_as_often_as_the_coin_says():
    mechanism = local.L2Ball(10, 2.0, method="privunit")
    r = np.eye(10)[0]
    heights = mechanism.randomize(np.broadcast_to(r, (200_000, 10)), rng=PCG64(1))[:, 0] / mechanism.scale
    height, _, inside = mechanism._cap
    hits = np.count_nonzero(heights >= height)
    p = float(inside.probability)
    assert not chi_square_rejects([hits, 200_000 - hits], [p, 1 - p])
    assert inside.epsilon == pytest.approx(2.0, rel=1e-12)
    z = (np.mean(heights**2) - mechanism._square_along()) / np.std(heights**2) * math.sqrt(200_000)
    assert abs(z) < LIMIT


# ---- reports: sums, bytes, streams ----


@pytest.mark.parametrize("d", [1, 63, 64, 65, 200, 2100, 16_500])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 247, 248, 249, 1003])
def test_columns_are_counted(n, d):
    words = -(-d // 64)
    reports = PCG64(n).random_raw((n, words))
    reports[: n // 2] |= reports[: n // 2] << np.uint64(1)
    counts = np.zeros(64 * words, np.int64)
    _bits.count_columns(reports, counts)
    expected = np.unpackbits(reports.astype("<u8").view(np.uint8), axis=1, bitorder="little").sum(axis=0, dtype=int)
    assert counts.tolist() == (expected.tolist() if n else [0] * 64 * words)


@every
def test_aggregates_merge_and_bytes_come_back(mechanism):
    rng = Generator(PCG64(1))
    x = rng.uniform(-1, 1, (1000, mechanism.d)) / mechanism.d
    reports = mechanism.randomize(x, rng=PCG64(2))
    whole = mechanism.aggregate(reports)
    parts = mechanism.aggregate(reports[:300]) + mechanism.aggregate(reports[300:], workers=2)
    assert whole.n == parts.n == 1000
    np.testing.assert_allclose(whole.sums, parts.sums, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(mechanism.estimate(parts), mechanism.decode(reports).mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(mechanism.estimate(reports), mechanism.estimate(whole))
    data = mechanism.to_bytes(reports)
    np.testing.assert_array_equal(mechanism.from_bytes(data), reports)
    assert data[: len(mechanism.to_bytes(reports[0]))] == mechanism.to_bytes(reports[0])
    assert mechanism.from_bytes(b"").shape == (0, *reports.shape[1:])
    with pytest.raises(ValueError, match="bytes"):
        mechanism.from_bytes(data + b"x")
    with pytest.raises(ValueError, match="at least one report"):
        mechanism.estimate(reports[:0])
    with pytest.raises(TypeError, match="dtype"):
        mechanism.decode(reports.astype(np.float32))
    with pytest.raises(ValueError, match="shape"):
        mechanism.decode(reports.reshape(1, 1, -1))
    with pytest.raises(ValueError, match="sums"):
        mechanism.estimate(local.Aggregate(3, np.zeros(mechanism.d + 1)))


@pytest.mark.slow
def test_a_million_reports_travel_as_bytes():
    for mechanism in (local.Hypercube(8, 1.0), local.L2Ball(2, 1.0, report="sign")):
        reports = mechanism.randomize(np.zeros((1_000_000, mechanism.d), np.float32), rng=PCG64(1))
        data = mechanism.to_bytes(reports)
        assert len(data) == 1_000_000 * (16 if isinstance(mechanism, local.Hypercube) else 8)
        assert np.array_equal(mechanism.from_bytes(data), reports)
        assert np.abs(mechanism.estimate(mechanism.from_bytes(data))).max() < LIMIT * mechanism.error(10**6)


def test_padding_is_zero_and_layouts_match_the_documentation():
    mechanism = local.Hypercube(70, 8.0, method="majority")
    reports = mechanism.randomize(np.ones((2000, 70)), rng=PCG64(1))
    assert reports.shape == (2000, 2)
    assert np.all(reports[:, 1] >> np.uint64(6) == 0)
    assert mechanism.decode(reports)[0, 65] == mechanism.scale * (
        2 * int(reports[0, 1] >> np.uint64(1) & np.uint64(1)) - 1
    )
    subset = local.Hypercube(7, 2.0)
    reports = subset.randomize(np.ones((2000, 7)), rng=PCG64(1))
    assert np.all(reports[:, 1] < 2**subset.k)
    places = subset.subset(reports)
    assert places[3].tolist() == subset.subset(reports[3]).tolist() == reference.subset(int(reports[3, 0]), 7, 2)
    signs = 2 * (reports[:, 1, None] >> np.arange(2, dtype=np.uint64) & np.uint64(1)).astype(int) - 1
    np.testing.assert_array_equal(np.take_along_axis(subset.decode(reports), places, axis=1), signs * subset.scale)
    assert local.Hypercube(3, 1.0, method="majority").subset(np.zeros(1, np.uint64)).tolist() == [0, 1, 2]


@every
def test_dtypes_strides_and_inputs_left_alone(mechanism):
    d = mechanism.d
    x = Generator(PCG64(1)).integers(-2, 3, (50, d)).astype(float)
    expected = mechanism.randomize(x, rng=PCG64(2))
    wide = np.zeros((100, 2 * d))
    wide[::2, ::2] = x
    locked = x.copy()
    locked.flags.writeable = False
    others = [x.astype(np.float32), x.astype(np.int8), x.astype(">f8"), np.asfortranarray(x), wide[::2, ::2], locked]
    for other in (*others, x.tolist(), x[::-1][::-1]):
        before = copy.deepcopy(other)
        np.testing.assert_array_equal(mechanism.randomize(other, rng=PCG64(2)), expected)
        np.testing.assert_array_equal(other, before)
    np.testing.assert_array_equal(mechanism.randomize(x[0], rng=PCG64(2)), mechanism.randomize(x[:1], rng=PCG64(2))[0])


@pytest.mark.parametrize("report", ["vector", "sign"])
def test_float_sums_do_not_depend_on_workers(report):
    """Sums of doubles depend on their order, so the parts that are summed may not follow the number of threads."""
    mechanism = local.L2Ball(256, 1.0, method="halfspace", report=report)
    reports = mechanism.randomize(np.zeros((2500, 256)), rng=PCG64(1))
    one, *others = (mechanism.aggregate(reports, workers=workers) for workers in (1, 2, 3, 8))
    assert [other == one for other in others] == [True] * 3
    assert mechanism.estimate(reports).tolist() == mechanism.estimate(one).tolist()
    cut = mechanism.aggregate(reports[:700]) + mechanism.aggregate(reports[700:])
    assert cut != one  # the control: here the order matters
    np.testing.assert_allclose(cut.sums, one.sums, rtol=0, atol=1e-9 * np.abs(one.sums).max())


def test_results_do_not_depend_on_workers():
    x = np.zeros((600, 1000))
    for mechanism in (local.Hypercube(1000, 1.0, method="majority"), local.L2Ball(1000, 1.0, report="sign")):
        one, two = (mechanism.randomize(x, rng=PCG64(3), workers=workers) for workers in (1, 2))
        np.testing.assert_array_equal(one, two)
        assert len({row.tobytes() for row in one}) == 600
        assert not np.array_equal(mechanism.randomize(x[:5]), mechanism.randomize(x[:5]))


@every
def test_frozen_hashable_picklable(mechanism):
    again = pickle.loads(pickle.dumps(mechanism))
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    assert again.scale == mechanism.scale
    assert mechanism.privacy.neighbors == "local"
    assert mechanism.privacy.epsilon == mechanism.epsilon


@pytest.mark.parametrize("method", ["halfspace", "directions", "privunit"])
def test_variances_of_huge_records(method):
    """They are moved to the sphere, whatever floating-point errors a caller raises for."""
    huge = np.full((2, 5), 1.7e308) * [[1], [-1]]
    for radius in (1.0, 1e-300, 1e150):
        mechanism = local.L2Ball(5, 1.0, radius=radius, method=method)
        with np.errstate(all="raise"):
            found = mechanism.variance([*huge, [math.inf, 0, 0, -math.inf, 1.0], [math.nan, 0, 0, 0, 1e308]])
        expected = mechanism.second_moment - np.array([1.0, 1.0, 1.0, 0.0]) * radius * radius
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", [local.Hypercube, local.L2Ball])
def test_parameters(kind):
    for wrong in (0, -1, math.nan, math.inf, 2.0**-41):
        with pytest.raises(ValueError, match="epsilon"):
            kind(3, wrong)
    for wrong in (0.0, -1.0, math.inf, 1e-310):
        with pytest.raises(ValueError, match="radius"):
            kind(3, 1.0, radius=wrong)
    with pytest.raises(ValueError, match="d must be"):
        kind(0, 1.0)
    with pytest.raises(ValueError, match="method"):
        kind(3, 1.0, method="best")
    with pytest.raises(ValueError, match="float64"):
        kind(3, 1.0, radius=1e308)
    with pytest.raises(ValueError, match="shape"):
        kind(3, 1.0).randomize(np.zeros((2, 4)))
    with pytest.raises(TypeError, match="numbers"):
        kind(3, 1.0).randomize(np.array(["a", "b", "c"]))
    with pytest.raises(TypeError, match="rng"):
        kind(3, 1.0).randomize(np.zeros(3), rng=1)
    assert kind(3, 800.0).scale > 0


@pytest.mark.parametrize("name", ["ball", "hypercube"])
def test_docstring_examples(name):
    tests = doctest.testmod(importlib.import_module(f"dpfast.local.{name}"))
    assert tests.attempted > 3
    assert tests.failed == 0


def test_parameters_of_reports_and_laws():
    with pytest.raises(ValueError, match="sign"):
        local.L2Ball(3, 1.0, method="privunit", report="sign")
    with pytest.raises(ValueError, match="outcomes"):
        local.Hypercube(30, 1.0, method="majority").law(np.zeros(30))
    with pytest.raises(ValueError, match="one record"):
        local.Hypercube(3, 1.0).law(np.zeros((2, 3)))
