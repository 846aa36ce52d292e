"""The nested-interval law: pmf, cdf and draws against brute force over all datasets, and one draw against many."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from numpy.random import PCG64, Generator
from scipy.special import ndtr

from dpfast import Grid, InverseSensitivity
from dpfast._kernels import _levels
from dpfast.laws import DiscreteLaplace, NestedIntervals, RoundedGaussian, RoundedLaplace, RoundedStudent3, Staircase
from dpfast.statistics import Median, Quantile
from tests.reference import laws as reference
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects

STATISTICS = [Median(), *(Quantile(q) for q in (0, 0.3, 0.5, 0.9, 1))]


def brute_force(statistic, data, last, epsilon, cap, radius):
    """P of every code: scores by trying every replacement of every record, that of the statistic minus its depth."""
    k = statistic.rank(len(data))
    codes = range(last + 1)
    scores = [reference.score(lambda d: reference.order_statistic(d, k), data, g, codes) for g in codes]
    scores[scores.index(0)] = -min(reference.depth(lambda d: reference.order_statistic(d, k), data, codes), cap - 1)
    near = [min(s for h, s in enumerate(scores) if abs(g - h) <= radius) for g in range(last + 1)]
    return reference.inverse_sensitivity(near, epsilon, cap)


@settings(max_examples=80)
@given(
    st.sampled_from(STATISTICS),
    st.lists(st.integers(0, 5), min_size=1, max_size=4),
    st.sampled_from([1e-6, 0.1, 1.0, 3.7, 40.0]),
    st.integers(0, 2),
)
def test_law_is_the_brute_force_law(statistic, data, epsilon, radius):
    grid = Grid(-1, 1.5, step=0.5)
    mechanism = InverseSensitivity(
        statistic, grid=grid, epsilon=epsilon, radius=radius * grid.step, selection="exponential"
    )
    law = mechanism.law(grid.decode(data))
    p = brute_force(statistic, data, grid.size - 1, epsilon, mechanism.cap(len(data)), radius)
    k = np.arange(grid.size)
    assert law.support == (0, grid.size - 1)
    np.testing.assert_allclose(law.pmf(k), [float(v) for v in p], rtol=1e-12)
    np.testing.assert_allclose(law.logpmf(k), [float(mp.log(v)) for v in p], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(law.cdf(k), [float(mp.fsum(p[: i + 1])) for i in k], rtol=1e-12)


@st.composite
def intervals(draw, largest=60):
    """Nested intervals of any number of levels, the cap binding or not."""
    last = draw(st.integers(0, largest))
    points = draw(st.lists(st.integers(0, last), min_size=2, max_size=14))
    points = sorted(points[: len(points) // 2 * 2])
    middle = len(points) // 2
    lower, upper = np.array(points[:middle][::-1]), np.array(points[middle:])
    return lower.astype(np.int64), upper.astype(np.int64), last


def definition(lower, upper, last, epsilon):
    levels = len(lower)
    scores = [next((t for t in range(levels) if lower[t] <= g <= upper[t]), levels) for g in range(last + 1)]
    return scores, reference.inverse_sensitivity(scores, epsilon, levels)


def law_of(lower, upper, last, epsilon):
    return NestedIntervals(lower, upper, epsilon=epsilon, last=last, grid=Grid(0, max(last, 1), step=1))


@settings(max_examples=150)
@given(intervals(), st.sampled_from([1e-300, 1e-6, 0.5, 4.0, 1e3]))
def test_law_matches_its_definition(case, epsilon):
    lower, upper, last = case
    law = law_of(lower, upper, last, epsilon)
    scores, p = definition(lower, upper, last, epsilon)
    k = np.arange(last + 1)
    assert law.score(k).tolist() == scores
    with mp.workdps(50):
        np.testing.assert_allclose(law.logpmf(k), [float(mp.log(v)) for v in p], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(law.cdf(k), [float(mp.fsum(p[: i + 1])) for i in k], rtol=1e-12, atol=1e-300)


def test_outside_the_support():
    law = law_of(np.array([2, 1]), np.array([2, 4]), 5, 1.0)
    outside = np.array([-(2**62), -1, 6, 2**62])
    assert law.pmf(outside).tolist() == [0] * 4
    assert law.logpmf(outside).tolist() == [-np.inf] * 4
    assert law.cdf(outside).tolist() == [0, 0, 1, 1]
    assert law.pmf([[0, 1], [2, 3]]).shape == (2, 2)
    assert law.pmf(2).shape == ()


def test_values_of_codes():
    law = InverseSensitivity(Median(), grid=Grid(-1, 1, step=0.5), epsilon=1.0).law([0.0])
    assert law.value(0) == -1
    assert isinstance(law.value(3), float)
    assert law.value([0, 4]).tolist() == [-1, 1]


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_sample_follows_the_law(epsilon):
    """With a power check: the same counts refute epsilon x 0.9 and x 1.1."""
    lower, upper, last = np.array([30, 20, 18, 2]), np.array([30, 33, 50, 55]), 63
    counts = np.bincount(law_of(lower, upper, last, epsilon).sample(2_000_000, PCG64(1)), minlength=last + 1)
    for factor, wrong in ((1, False), (0.9, True), (1.1, True)):
        p = definition(lower, upper, last, epsilon * factor)[1]
        assert chi_square_rejects(counts, p) == wrong


def test_the_mechanism_draws_from_the_law():
    """The fused kernel itself, not only the law: chi-square of calls, refuted at other epsilons."""
    x = np.array([3.0, 3.0, 9.0, 14.0, 2.0])
    mechanism = InverseSensitivity(Median(), grid=Grid(0, 15, step=1), epsilon=1.0)
    source = PCG64(7)
    counts = np.bincount([int(mechanism(x, rng=source)) for _ in range(60_000)], minlength=16)
    for epsilon, wrong in ((1.0, False), (0.7, True), (1.4, True)):
        law = InverseSensitivity(Median(), grid=mechanism.grid, epsilon=epsilon).law(x)
        assert chi_square_rejects(counts, law.pmf(np.arange(16))) == wrong


def draw_one(source, lower, upper, epsilon, last, depth=0, *, exact):
    out = np.empty(1, np.int64)
    _levels.fill(source, lower, upper, epsilon, last, out, None, depth, exact=exact)
    return int(out[0])


def fused(source, window, epsilon, radius, last, *, exact, levels=0):
    draw = _levels.RankDraw(epsilon, radius, 0.0, float(last), 1.0, 0.0, last, levels=levels)
    return draw.draw(source, window, exact=exact)


def boxes(window, radius, last):
    codes = np.clip(np.rint(np.clip(window, 0, last)), 0, last).astype(np.int64)
    lower, upper = codes[len(codes) // 2 :: -1], codes[len(codes) // 2 :]
    depth = max(i for i in range(len(lower)) if lower[i] == upper[i])
    return np.maximum(lower - radius, 0), np.minimum(upper + radius, last), depth


def windows(rng):
    """Sorted windows with padding, ties, halves and values far outside the bounds."""
    for last in (1, 2, 100, 2**20, 2**45, 2**52 - 1):
        for levels in (1, 2, 3, 40):
            for spread in (0.0, 1e-6, 0.3, 2.0):
                x = np.sort(rng.uniform(0.5 - spread, 0.5 + spread, 2 * levels - 1) * last)
                if spread == 0.3:
                    x = np.round(x * 2) / 2
                padding = int(rng.integers(0, levels))
                x[: padding // 2], x[len(x) - padding :] = -np.inf, np.inf
                yield x, last


@pytest.mark.parametrize("epsilon", [1e-300, 1e-6, 0.01, 0.7, 5.0, 60.0, 1e3])
def test_a_call_is_a_draw_from_its_law(epsilon):
    """Bit-identical for the same words, on the fast and on the slow path, with kept powers, and all use as many."""
    rng = np.random.default_rng(3)
    for i, (window, last) in enumerate(windows(rng)):
        radius = int(rng.choice([0, 0, 1, 7, last]))
        radius = min(radius, last)
        lower, upper, depth = boxes(window, radius, last)
        sources = [ScriptedBits(rest=PCG64(i)) for _ in range(5)]
        draws = [
            fused(sources[0], window, epsilon, radius, last, exact=False),
            fused(sources[4], window, epsilon, radius, last, exact=False, levels=len(lower)),
            draw_one(sources[1], lower, upper, epsilon, last, depth, exact=False),
            fused(sources[2], window, epsilon, radius, last, exact=True),
            draw_one(sources[3], lower, upper, epsilon, last, depth, exact=True),
        ]
        assert len(set(draws)) == 1
        assert 0 <= draws[0] <= last
        assert len({source.used for source in sources}) == 1


@settings(max_examples=100)
@given(
    st.sampled_from(STATISTICS),
    st.lists(st.floats(-3, 3) | st.sampled_from([np.nan, np.inf, -np.inf, 0.5]), min_size=1, max_size=30),
    st.floats(1e-6, 1e3),
    st.floats(0, 5),
    st.integers(0, 2**32),
)
def test_call_release_and_law_agree(statistic, data, epsilon, radius, seed):
    mechanism = InverseSensitivity(statistic, grid=Grid(-2, 2, missing=1), epsilon=epsilon, radius=radius)
    x = np.array(data)
    law = mechanism.law(x)
    called = mechanism(x, rng=PCG64(seed))
    assert called == law.value(law.sample(rng=PCG64(seed))) == mechanism.release(x, rng=Generator(PCG64(seed)))
    many = mechanism.release(x, size=(2, 3), rng=PCG64(seed))
    assert many.shape == (2, 3)
    assert many.tolist() == law.value(law.sample((2, 3), rng=PCG64(seed))).tolist()


EDGE_EPSILONS = [1e-6, 0.1, 1.0, 20.0, 1e3]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EDGE_EPSILONS)
def test_a_hundred_thousand_draws_agree_with_the_slow_path(epsilon):
    rng = np.random.default_rng(5)
    points = np.sort(rng.integers(0, 2**30, 16))
    lower, upper, last = points[:8][::-1].copy(), points[8:].copy(), 2**30
    fast, slow = np.empty(25_000, np.int64), np.empty(25_000, np.int64)
    _levels.fill(PCG64(9), lower, upper, epsilon, last, fast)
    _levels.fill(PCG64(9), lower, upper, epsilon, last, slow, exact=True)
    np.testing.assert_array_equal(fast, slow)


def edges_of(lower, upper, last, epsilon):
    """The cumulative weights of the levels, as fractions of the total, to 40 digits."""
    with mp.workdps(60):
        rate = mpf(epsilon) / 2
        widths = [int(b - a + 1) for a, b in zip(lower, upper, strict=True)]
        weights = [-mp.expm1(-rate) * mp.exp(-rate * t) * w for t, w in enumerate(widths)]
        weights.append(mp.exp(-rate * len(widths)) * (last + 1))
        total = mp.fsum(weights)
        return [mp.fsum(weights[: i + 1]) / total for i in range(len(widths))]


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 3.0])
def test_words_next_to_the_edges(epsilon):
    """The hardest words: the level is right on both paths, and doubles alone would get some of them wrong."""
    points = np.sort(np.random.default_rng(2).integers(0, 2**30, 20))
    lower, upper, last = points[:10][::-1].copy(), points[10:].copy(), 2**30
    edges = edges_of(lower, upper, last, epsilon)
    naive = np.array([float(e) for e in edges])
    hard = surprised = 0
    for level, edge in enumerate(edges):
        with mp.workdps(60):
            word = int(mp.floor(edge * 2**64))
        for w in (word - 2, word - 1, word + 1, word + 2):
            if not 0 <= w < 2**64:
                continue
            expected = level if w < word else level + 1
            if any(mp.floor(e * 2**64) in (w, w + 1, w - 1) for i, e in enumerate(edges) if i != level):
                continue
            first = int(lower[expected]) if expected < len(lower) else 0
            width = int(upper[expected]) - first + 1 if expected < len(lower) else last + 1
            for exact in (False, True):  # the second word picks the middle of the level's box
                source = ScriptedBits([w, 2**63 + 12345], PCG64(0))
                assert draw_one(source, lower, upper, epsilon, last, exact=exact) == first + width // 2
                assert source.used == 2
            hard += 1
            surprised += int(np.searchsorted(naive, w * 2.0**-64, side="right")) != expected
    assert hard > 10
    assert surprised > 0, "positive control: plain doubles decide some of these words wrongly"


def test_a_draw_uses_two_words():
    """T6: the words of the common path; undecided levels and rejected points draw more, with tiny probability."""
    mechanism = InverseSensitivity(Median(), grid=Grid(0, 100), epsilon=1.0)
    x = np.random.default_rng(1).uniform(0, 100, 999)
    for seed in range(200):
        source = ScriptedBits(rest=PCG64(seed))
        lower, upper = mechanism.law(x).lower, mechanism.law(x).upper
        draw_one(source, lower, upper, 1.0, mechanism.grid.size - 1, exact=False)
        assert source.used == 2


def test_shapes_and_blocks():
    law = InverseSensitivity(Median(), grid=Grid(0, 9, step=1), epsilon=1.0).law([3.0, 4.0])
    assert isinstance(law.sample(rng=PCG64(1)), int)
    assert law.sample((), PCG64(1)).shape == ()
    assert law.sample(0, PCG64(1)).shape == (0,)
    long = law.sample(2**16 + 5, PCG64(1))
    assert long[: 2**16].tolist() == law.sample(2**16, PCG64(1)).tolist()
    with pytest.raises(ValueError, match="size must be at least 0"):
        law.sample(-1)


def test_exhaustive_with_scripted_words():
    """Exact frequencies: all words of a coarse script give the law to the resolution of the script."""
    lower, upper, last, epsilon = np.array([4, 3]), np.array([4, 5]), 7, 1.0
    steps = 64
    counts = np.zeros(last + 1)
    for a, b in itertools.product(range(steps), repeat=2):
        words = [((2 * a + 1) << 63) // steps, ((2 * b + 1) << 63) // steps]
        counts[draw_one(ScriptedBits(words, PCG64(0)), lower, upper, epsilon, last, exact=False)] += 1
    p = [Fraction(float(v)) for v in definition(lower, upper, last, epsilon)[1]]
    np.testing.assert_allclose(counts / steps**2, [float(v) for v in p], atol=4 / steps)


def test_codes_are_integers():
    law = InverseSensitivity(Median(), grid=Grid(0, 8, step=1), epsilon=1.0).law([3.0])
    for function in (law.pmf, law.logpmf, law.cdf, law.value):
        with pytest.raises(TypeError, match="must be integers"):
            function([0.5])


def test_the_error_state_of_a_caller_does_not_decide_about_noise():
    """Probabilities and variances that are below all doubles are 0."""
    far = np.array([-(2.0**62), -1e6, 0, 1, 1e6, 2.0**62])
    kinds = DiscreteLaplace, RoundedLaplace, RoundedStudent3, RoundedGaussian
    for noise, scale in itertools.product(kinds, (0.01, 1, 1e4)):
        with np.errstate(all="raise"):
            law = noise(scale)
            assert np.all(np.diff(law.cdf(far)) >= 0)
            assert np.all(np.diff(law.logpmf(far[2:])) <= 0)
            assert np.all(np.diff(law.log_tail(far[3:])) <= 0)
    with np.errstate(all="raise"):
        assert [RoundedGaussian(scale).variance for scale in (0.01, 0.05)] == [0.0, pytest.approx(2 * ndtr(-10.0))]
        assert Staircase(2.0, 3).cdf(far)[-1] == 1.0
        assert np.exp(Staircase(1e-300, 2**56).logpmf(np.array([0.0]))) == 1.0
