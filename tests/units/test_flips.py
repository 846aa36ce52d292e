"""Permute-and-flip on nested intervals: the law, the draws on both paths, privacy with a control, and the gain."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from numpy.random import PCG64

import dpfast as dpf
from dpfast import Grid, InverseSensitivity, audit
from dpfast._kernels import _balls, _levels
from dpfast._kernels._measures import Measure
from dpfast.laws import FlippedIntervals, NestedIntervals
from dpfast.random import streams
from dpfast.statistics import Huber, InterquartileRange, Median, Quantile, TrimmedMean
from tests.cases import every
from tests.reference import laws as reference
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.kernel

GRID = Grid(0, 12, step=1)


def median(epsilon=1.0, statistic=None, grid=GRID, **options):
    return InverseSensitivity(
        statistic or Median(), grid=grid, epsilon=epsilon, selection="permute-and-flip", **options
    )


def law_of(lower, upper, last, epsilon, measure=None, depth=0, kind=FlippedIntervals):
    arguments = np.array(lower), np.array(upper)
    return kind(*arguments, epsilon=epsilon, last=last, grid=GRID, measure=measure, depth=depth)


class TestLaw:
    @settings(max_examples=40, deadline=None)
    @given(
        st.lists(st.integers(0, 9), min_size=2, max_size=10),
        st.sampled_from([1e-300, 1e-3, 0.5, 4.0, 60.0]),
        st.lists(st.integers(1, 4), min_size=10, max_size=10),
        st.booleans(),
    )
    def test_law_matches_its_definition(self, points, epsilon, weights, weighted):
        points = sorted(points[: len(points) // 2 * 2])
        lower, upper = points[: len(points) // 2][::-1], points[len(points) // 2 :]
        depth = 3 if lower[0] == upper[0] else 0
        weights = weights if weighted else [1] * 10
        law = law_of(lower, upper, 9, epsilon, Measure(9, table=weights), depth)
        p = reference.permute_and_flip(law.exponent(np.arange(10)).tolist(), weights, epsilon)
        np.testing.assert_allclose(law.pmf(np.arange(10)), [float(v) for v in p], rtol=1e-11)
        np.testing.assert_allclose(law.cdf(np.arange(10)), np.cumsum([float(v) for v in p]), rtol=1e-11)

    @every("last", [10**3, 10**6, 2**32, 2**52])
    @every("epsilon", [0.01, 1.0, 20.0])
    def test_large_grids_sum_to_one(self, last, epsilon):
        points = np.sort(np.random.default_rng(1).integers(0, last, 100))
        law = law_of(points[:50][::-1], points[50:], last, epsilon)
        assert law.cdf(last - 1) + law.pmf(last) == pytest.approx(1, abs=1e-11)

    @pytest.mark.parametrize("epsilon", [0.7, 2.0])
    def test_sample_follows_the_law(self, epsilon):
        """With a power check: the same counts refute epsilon x 0.8 and x 1.25, and the exponential mechanism."""
        lower, upper, last = [30, 20, 18, 2], [30, 33, 50, 55], 63
        for measure in (None, Measure(63, table=list(range(1, 65)))):
            counts = np.bincount(law_of(lower, upper, last, epsilon, measure).sample(150_000, PCG64(1)), minlength=64)
            for factor, kind, wrong in (
                (1, FlippedIntervals, False),
                (0.8, FlippedIntervals, True),
                (1.25, FlippedIntervals, True),
                (1, NestedIntervals, epsilon == 2),
            ):
                law = law_of(lower, upper, last, epsilon * factor, measure, kind=kind)
                if kind is FlippedIntervals or measure is None:
                    assert chi_square_rejects(counts, law.pmf(np.arange(64))) == wrong


class TestDraws:
    @pytest.mark.parametrize("epsilon", [1e-300, 1e-6, 0.01, 0.7, 5.0, 1e3])
    @pytest.mark.parametrize("last", [60, 2**30, 2**52 - 1])
    def test_fast_and_slow_paths_agree(self, epsilon, last):
        points = np.sort(np.random.default_rng(5).integers(0, last, 16))
        fast, slow = np.empty(300, np.int64), np.empty(300, np.int64)
        for out, exact in ((fast, False), (slow, True)):
            source = ScriptedBits(rest=PCG64(9))
            _levels.fill_flips(source, points[:8][::-1], points[8:], epsilon, last, out, exact=exact)
            assert source.used == 300 * 10
        np.testing.assert_array_equal(fast, slow)

    def test_words_next_to_a_tie_are_decided_exactly(self):
        """Two levels whose values are equal to 60 bits: the word of one is solved for that of the other."""
        sizes, epsilon, decided = [1, 5], 1.0, 0
        for seed in range(20):
            first = int(np.random.default_rng(seed).integers(2**62, 2**63)) * 2
            with mp.workdps(60):
                value = -mp.log(1 - mpf(first) / 2**64) + mpf(epsilon) / 2
                edge = mp.floor(mp.exp(5 * mp.log(1 - mp.exp(-value))) * 2**64)
            for word in (int(edge) - 2, int(edge) + 2):
                expected = int(word > edge)
                level = _balls.flip_level([first, word], lambda: 2**63, sizes, epsilon, 0)
                out = np.empty(1, np.int64)
                source = ScriptedBits([first, word], PCG64(3))
                _levels.fill_flips(source, np.array([3]), np.array([3]), epsilon, 5, out)
                assert (level == 1) == (out[0] != 3) == bool(expected)
                decided += expected
        assert decided == 20

    def test_extreme_words(self):
        for words in ([0, 0], [2**64 - 1, 2**64 - 1], [0, 2**64 - 1], [2**64 - 1, 0]):
            outs = []
            for exact in (False, True):
                source, out = ScriptedBits(words, PCG64(3)), np.empty(1, np.int64)
                _levels.fill_flips(source, np.array([3]), np.array([3]), 1.0, 5, out, exact=exact)
                outs.append((int(out[0]), source.used))
            assert outs[0] == outs[1]

    @every("statistic", [Median(), Quantile(0.9), InterquartileRange(), TrimmedMean(0.1)])
    @every("neighbors", ["replace-one", "add-remove"])
    def test_call_release_and_law_agree(self, statistic, neighbors):
        if neighbors == "add-remove" and not isinstance(statistic, Quantile):
            return
        m = median(0.7, statistic, Grid(0, 50, step=0.5), neighbors=neighbors)
        x = np.random.default_rng(4).normal(20, 8, 90).round()
        law = m.law(x)
        for seed in range(5):
            assert m(x, rng=PCG64(seed)) == law.value(law.sample(rng=PCG64(seed)))

    def test_levels_without_points_take_words_too(self):
        source, out = ScriptedBits(rest=PCG64(3)), np.empty(1, np.int64)
        _levels.fill_flips(source, np.array([4, 4, 4, 2, 0]), np.array([4, 4, 4, 7, 9]), 1.0, 9, out)
        assert source.used == 7


class TestPrivacy:
    @pytest.mark.parametrize(
        "options", [{}, {"neighbors": "add-remove"}, {"radius": 2.0}, {"measure": tuple(range(1, 14))}]
    )
    @pytest.mark.parametrize("epsilon", [0.3, 2.0])
    def test_certified(self, options, epsilon):
        n = 3 if "neighbors" in options else 4  # an added record makes four
        assert audit.verify(median(epsilon, **options), n=n, values=4, ordered=False).holds
        assert audit.verify(median(epsilon, Quantile(0.0), **options), n=3, values=4, ordered=False).holds

    def test_epsilon_for_half_of_it_is_rejected(self):
        assert not audit.verify(AtFullRate(Median(), grid=GRID, epsilon=1.0), n=4, values=4, ordered=False).holds
        added = AtFullRate(Median(), grid=GRID, epsilon=1.0, neighbors="add-remove")
        assert not audit.verify(added, n=3, values=4, ordered=False).holds

    def test_it_is_not_of_bounded_range(self):
        """The privacy loss of two neighbours has a range above epsilon, so a ledger by rho charges a pure release."""
        grid = Grid(0, 1, step=1)
        logs = [median(4.0, grid=grid).law(x).logpmf([0, 1]) for x in ([0.0], [1.0])]
        assert np.ptp(logs[0] - logs[1]) > 4.0 * 1.2
        assert median(1.0).privacy_profile.rho == pytest.approx(math.tanh(0.5))
        exponential = InverseSensitivity(Median(), grid=GRID, epsilon=1.0, selection="exponential")
        assert exponential.privacy_profile.rho < 0.13

    def test_repr_and_parameters(self):
        assert repr(median()).startswith("<InverseSensitivity release by permute-and-flip of the median on 13 points")
        with pytest.raises(ValueError, match="selection must be one of 'auto', 'exponential', 'permute-and-flip'"):
            InverseSensitivity(Median(), grid=GRID, epsilon=1.0, selection="gumbel")


class AtFullRate(InverseSensitivity):
    """The control: a unit of score at the cost of epsilon / 2 has the exponent epsilon."""

    def law_of(self, summary):
        law = super().law_of(summary)
        return law_of(law.lower, law.upper, law.support[1], 2 * law.epsilon, depth=law.depth)


class TestDefault:
    """selection="auto": permute-and-flip on few points where only epsilon counts."""

    @every(
        "statistic, grid, flips",
        [
            (Median(), Grid(0, 4095, step=1), True),
            (Median(), Grid(0, 4096, step=1), False),
            (Quantile(0.9), GRID, True),
            (InterquartileRange(), GRID, True),
            (TrimmedMean(0.1), GRID, False),
            (Huber(2.0), GRID, False),
            (Median(), dpf.FloatGrid(), False),
        ],
    )
    def test_it_follows_from_public_numbers(self, statistic, grid, flips):
        mechanism = InverseSensitivity(statistic, grid=grid, epsilon=1.0)
        assert mechanism.selection == ("permute-and-flip" if flips else "exponential")
        assert ("by permute-and-flip" in repr(mechanism)) == flips
        assert mechanism.privacy_profile.parts[0][0] == ("pure" if flips else "bounded-range")
        assert mechanism == InverseSensitivity(statistic, grid=grid, epsilon=1.0, selection=mechanism.selection)

    @pytest.mark.parametrize(
        ("options", "flips"),
        [
            ({"epsilon": 2.0}, True),
            ({"epsilon": 2.0, "delta": 1e-6}, True),
            ({"rho": 1.0}, False),
            ({"epsilon": 2.0, "delta": 1e-6, "composition": "renyi"}, False),
        ],
    )
    def test_a_ledger_that_composes_more_than_epsilon_turns_it_off(self, options, flips):
        ledger, x, family = dpf.Ledger(**options), np.array([3, 5, 9, 9]), "pure" if flips else "bounded-range"
        dpf.median(x, bounds=(0, 12), epsilon=0.25)
        with ledger:
            InverseSensitivity(Median(), grid=GRID, epsilon=0.25)(x)
            dpf.median(x, bounds=(0, 12), epsilon=0.25)
            dpf.iqr(x, bounds=(0, 12), epsilon=0.25)
            with ledger.spend(dpf.Privacy(0.1)):
                assert (InverseSensitivity(Median(), grid=GRID, epsilon=0.25).selection == "exponential") != flips
        charged = [charge.profile.parts[0][0] for charge in ledger.charges]
        assert charged[:3] == [family] * 3
        assert InverseSensitivity(Median(), grid=GRID, epsilon=0.25).selection == "permute-and-flip"

    def test_plans(self):
        plan = dpf.Ledger(
            2.0, 1e-6, plan=[InverseSensitivity(Median(), grid=GRID, epsilon=1.0, selection="exponential")]
        )
        with plan:
            dpf.median(np.array([3, 5, 9, 9]), bounds=(0, 12), epsilon=1.0)
        assert plan.remaining == dpf.Privacy(0.0)

    def test_all_ways_have_the_law_of_the_call(self):
        """Functions, streams, groups, releases and both neighbours: the same words give the same release."""
        x = np.random.default_rng(3).binomial(12, 0.4, 60)
        for neighbors in ("replace-one", "add-remove"):
            m = InverseSensitivity(Median(), grid=GRID, epsilon=0.3, neighbors=neighbors)
            assert isinstance(m.law(x), FlippedIntervals)
            state = m.start()
            for chunk in np.split(x, 3):
                state.update(chunk)
            for seed in range(8):
                expected = m(x, rng=PCG64(seed))
                [source] = streams(PCG64(seed), 1)
                group = dpf.by_group(m, x, offsets=[0, 60], rng=PCG64(seed))
                assert group[0] == m(x, rng=source)
                assert m.law(x).value(m.law(x).sample(rng=PCG64(seed))) == expected
                assert m(dpf.Chunks(np.split(x, 3)), rng=PCG64(seed)) == expected
                assert pickle.loads(pickle.dumps(state)).release(rng=PCG64(seed)) == expected
                if neighbors == "replace-one":
                    assert dpf.median(x, bounds=(0, 12), epsilon=0.3, rng=PCG64(seed)) == expected


def test_ties_have_no_more_noise_than_by_permute_and_flip_on_mid_ranks():
    """Mean over 12 samples of ages. OpenDP has the score |(1 - q) L - q R|, L records below and R above."""
    grid, codes, sums = Grid(0, 120, step=1), np.arange(121), {}
    for seed in range(12):
        x = np.clip(np.rint(np.random.default_rng(seed).normal(40, 14, 1000)), 0, 120)
        ordered = np.sort(x)
        for q in (0.5, 0.9):
            distances = np.abs(codes - ordered[Quantile(q).rank(1000) - 1])
            below, not_above = np.searchsorted(ordered, codes), np.searchsorted(ordered, codes, side="right")
            scores = np.abs((1 - q) * below - q * (1000 - not_above))
            for neighbors, sensitivity in (("replace-one", 1), ("add-remove", max(q, 1 - q))):
                for epsilon in (0.1, 0.3, 1.0):
                    ours = InverseSensitivity(Quantile(q), grid=grid, epsilon=epsilon, neighbors=neighbors).law(x)
                    theirs = flip(np.exp(-epsilon / 2 / sensitivity * (scores - scores.min())))
                    noise = np.array([ours.pmf(codes), theirs]) @ distances
                    sums[q, neighbors, epsilon] = sums.get((q, neighbors, epsilon), 0) + noise
    assert all(ours < 1.05 * theirs for ours, theirs in sums.values())


def flip(coins):
    """The probabilities of permute-and-flip in doubles: the midpoint rule in the logarithm of u."""
    u = np.exp(np.linspace(-25, 0, 2001)[:-1] + 0.00625)
    factors = np.log1p(-np.outer(coins, u))
    weights = np.exp(factors.sum(axis=0) - factors) @ u * coins
    return weights / weights.sum()


def test_less_error_than_the_exponential_mechanism_on_small_grids():
    x, grid = np.random.default_rng(1).binomial(100, 0.4, 1000).astype(float), Grid(0, 120, step=1)
    k = np.arange(grid.size)
    errors = [
        np.dot(
            InverseSensitivity(Median(), grid=grid, epsilon=0.1, selection=s).law(x).pmf(k), np.abs(k - np.median(x))
        )
        for s in ("permute-and-flip", "exponential")
    ]
    assert errors[0] * 1.15 < errors[1]
