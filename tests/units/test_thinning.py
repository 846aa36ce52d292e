"""Draws from a few of many nested intervals: levels, scores and depth by definition, and the exact law of a draw."""

import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64

from dpfast import Grid, InverseSensitivity
from dpfast._kernels import _levels
from dpfast.laws import NestedIntervals
from dpfast.mechanisms import thinning
from dpfast.statistics import InterquartileRange, Median, Quantile
from dpfast.streaming import Chunks
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.kernel

GRID = Grid(0, 15, step=1)
LEVELS = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0])


class Listed(thinning.Levels):
    """Levels from arrays of all of them."""

    def __init__(self, lower, upper, last):
        super().__init__(len(lower), last)
        self._lower, self._upper = lower, upper

    def box(self, t):
        return int(self._lower[t]), int(self._upper[t])

    def score(self, code):
        return next((t for t in range(self.count) if self._lower[t] <= code <= self._upper[t]), self.count)


def levels_of(mechanism, x):
    """The levels of a mechanism of an array, and those of the law of all levels."""
    grid, n = mechanism.grid, len(x)
    law = mechanism.law(x)
    count = len(law.lower)
    if isinstance(mechanism.statistic, InterquartileRange):
        found = thinning.DifferenceLevels(mechanism.reading().of(x), last=grid.size - 1)
    elif mechanism.hides_n:
        ranked = thinning.Ranked.of_private_n(Fraction(mechanism.statistic.level), n)
        found = thinning.RankLevels(x, ranked, count=count, grid=grid)
    else:
        ranked = thinning.Ranked.of_public_n(mechanism.statistic.rank(n))
        found = thinning.RankLevels(x, ranked, count=count, grid=grid)
    return found, Listed(law.lower, law.upper, grid.size - 1), law


@pytest.mark.parametrize(("places", "blocks"), [(1, 1), (3, 2), (2**8, 2**10)])
def test_blocks_of_places_spare_no_least_value(places, blocks, monkeypatch):
    """By all values: of ascending numbers with and without ties, and of sums with a function that falls."""
    monkeypatch.setattr(thinning, "_PLACES", places)
    monkeypatch.setattr(thinning, "_BLOCKS", blocks)
    rng = np.random.default_rng(places)
    for n in (1, 2, 7, 1000):
        for most in (1, 5, 10**9):
            for _ in range(20):
                first, second = np.sort(rng.integers(0, most, (2, n)), axis=1)
                assert thinning._least_difference(first, second) == np.min(first - second)
                falling = first[::-1] * rng.integers(1, 3)
                assert thinning._least_sum(lambda j, falling=falling: falling[j], n) == np.min(np.arange(n) + falling)


@given(
    st.lists(st.integers(0, 15) | st.sampled_from([0, 7, 15]), min_size=1, max_size=30),
    LEVELS,
    st.sampled_from(["add-remove", "replace-one", "iqr"]),
)
def test_levels_are_those_of_the_law(codes, q, kind):
    x = np.array(codes, float)
    statistic = InterquartileRange() if kind == "iqr" else Quantile(q)
    neighbors = "replace-one" if kind == "iqr" else kind
    mechanism = InverseSensitivity(statistic, grid=GRID, epsilon=1e-3, neighbors=neighbors, selection="exponential")
    found, listed, law = levels_of(mechanism, x)
    every = list(range(found.count))
    assert found.boxes(every) == [listed.box(t) for t in every]
    assert [found.score(g) for g in range(16)] == [listed.score(g) for g in range(16)]
    if not mechanism._one_sided:
        assert found.depth() == listed.depth() == law.depth


@given(
    st.lists(st.integers(0, 15) | st.sampled_from([0, 7, 15]), min_size=1, max_size=60),
    st.floats(1e-3, 3.0),
    st.integers(0, 3),
    st.booleans(),
)
def test_proposals_times_coins_are_the_law(codes, epsilon, radius, deep):
    n, rank = len(codes), (len(codes) + 1) // 2
    padded = np.concatenate([np.zeros(n, np.int64), np.sort(codes), np.full(n, 15)])
    t = np.arange(max(rank, n - rank + 1))
    lower, upper = padded[n + rank - 1 - t], padded[n + rank - 1 + t]
    levels = Listed(lower, upper, 15)
    depth = levels.depth() if deep else 0
    widened = np.maximum(lower - radius, 0), np.minimum(upper + radius, 15)
    law = NestedIntervals(*widened, epsilon=epsilon, last=15, grid=GRID, depth=depth)

    chosen, stride, units = thinning.chosen_of(levels.count, depth, epsilon)
    boxes = np.array(levels.boxes(chosen) or [(0, 15)])
    proposals = NestedIntervals(
        np.maximum(boxes[:, 0] - radius, 0),
        np.minimum(boxes[:, 1] + radius, 15),
        epsilon=epsilon * stride,
        last=15,
        grid=GRID,
        depth=units,
    )
    every = np.arange(16)
    coins = -epsilon / 2 * (law.exponent(every) % stride)
    assert np.all(coins >= -0.5)
    np.testing.assert_allclose(np.diff(proposals.logpmf(every) + coins - law.logpmf(every)), 0, atol=1e-9)


@pytest.mark.parametrize("kind", ["add-remove", "replace-one", "iqr"])
def test_draws_fit_the_law_of_all_levels(kind):
    rng = np.random.default_rng(5)
    x = np.round(np.clip(rng.normal(7, 3, 400), 0, 15))
    statistic = InterquartileRange() if kind == "iqr" else Median()
    neighbors = "replace-one" if kind == "iqr" else kind
    build = {"grid": GRID, "neighbors": neighbors, "selection": "exponential", "measure": "uniform"}
    mechanism = InverseSensitivity(statistic, epsilon=0.01, **build)
    found, _, law = levels_of(mechanism, x)
    source = PCG64(3)
    draws = [thinning.draw(source, found, epsilon=0.01) for _ in range(1000)]
    observed = np.bincount(draws, minlength=16)
    assert not chi_square_rejects(observed, np.exp(law.logpmf(np.arange(16))))
    other = InverseSensitivity(statistic, epsilon=0.02, **build).law(x)
    assert chi_square_rejects(observed, np.exp(other.logpmf(np.arange(16))))


def test_exact_decisions_give_the_same_draws():
    x = np.round(np.random.default_rng(2).uniform(0, 15, 300))
    ranked = thinning.Ranked.of_public_n(150)
    levels = thinning.RankLevels(x, ranked, count=150, grid=GRID)
    pairs = [
        [thinning.draw(PCG64(seed), levels, epsilon=0.02, exact=exact) for exact in (False, True)] for seed in range(50)
    ]
    assert all(fast == slow for fast, slow in pairs)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_a_call_with_many_levels(neighbors):
    x = np.random.default_rng(1).normal(size=200_000)
    options = {"grid": Grid(-8, 8, step=2.0**-20), "epsilon": 1e-6, "neighbors": neighbors}
    mechanism = InverseSensitivity(Median(), **options)
    assert mechanism._thins(len(x))
    releases = [mechanism(x, rng=PCG64(seed)) for seed in range(40)]
    assert all(-8 <= release <= 8 for release in releases)
    assert np.ptp(releases) > 4  # epsilon n is 0.2: almost uniform
    again = [mechanism(x[::-1], rng=PCG64(seed), workers=2) for seed in range(3)]
    assert again == releases[:3]
    missing = np.where(np.arange(len(x)) < 5, np.nan, x)
    assert -8 <= mechanism(missing, rng=PCG64(1)) <= 8
    with pytest.raises(ValueError, match="workers"):
        mechanism(x, workers=0)


def test_an_interquartile_range_with_many_levels():
    x = np.random.default_rng(1).normal(size=400_000)
    mechanism = InverseSensitivity(InterquartileRange(), grid=Grid(-8, 8, step=2.0**-20), epsilon=1e-2)
    releases = [mechanism(x, rng=PCG64(seed)) for seed in range(5)]
    np.testing.assert_allclose(releases, 1.349, atol=0.05)
    assert mechanism(Chunks(np.array_split(x, 3)), rng=PCG64(0)) == releases[0]


def test_coins():
    coin = _levels.draw_coin
    assert coin(ScriptedBits([2**63 - 2**40]), Fraction(np.log(2)))
    assert not coin(ScriptedBits([2**63 + 2**40]), Fraction(np.log(2)))
    assert coin(ScriptedBits([2**64 - 1]), Fraction(0))
    assert coin(ScriptedBits([2**64 - 1]), Fraction(0), exact=True)


def test_draws_with_a_lock_that_a_thread_takes_once():
    """As in NumPy 1.25."""

    levels = Listed([4, 2, 0], [4, 6, 15], 15)
    codes = []
    for lock in (threading.Lock(), threading.RLock()):
        source = ScriptedBits([2**63, 2**62, 2**61, 1, 2, 3, 4, 5, 6])
        source.lock = lock
        codes.append(thinning.draw(source, levels, epsilon=0.1))
    assert codes[0] == codes[1]
