"""Interpolated scores of quantiles: sensitivity, law, draws on both paths, privacy with controls, gain."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from numpy.random import PCG64

import dpfast as dpf
from dpfast import Grid, InverseSensitivity, audit
from dpfast._kernels import _levels
from dpfast.laws import InterpolatedIntervals
from dpfast.statistics import InterquartileRange, Median, Quantile
from tests.cases import every
from tests.reference import laws as reference
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.kernel


def median(epsilon=1.0, statistic=None, last=12, **options):
    given_options = {"grid": Grid(0, last, step=1), "epsilon": epsilon, "interpolate": True} | options
    return InverseSensitivity(statistic or Median(), **given_options)


def change(scores, n, last):
    """The largest change of a score by one replaced record, over all datasets of n codes from 0 to last."""
    datasets = list(itertools.combinations_with_replacement(range(last + 1), n))
    table = {data: scores(data) for data in datasets}
    return max(
        abs(a - b)
        for data in datasets
        for i, code in itertools.product(range(n), range(last + 1))
        for a, b in zip(table[data], table[tuple(sorted((*data[:i], code, *data[i + 1 :])))], strict=True)
    )


class TestScore:
    @every("n, last", [(1, 7), (2, 7), (3, 6), (4, 5), (5, 3)])
    def test_one_record_changes_it_by_at_most_one(self, n, last):
        """Exactly 1, in rationals. A scale that is the same for all gaps, the width of the one above, is refuted."""

        def scaled(data):
            (x, *_), width = data, max(data[min(1, n - 1)] - data[0], 1)
            return [Fraction(abs(code - x), width) for code in range(last + 1)]

        for k in range(1, n + 1):
            assert change(lambda data, k=k: reference.interpolated_scores(data, k, last), n, last) == 1
        assert change(scaled, n, last) > 1

    @given(st.lists(st.integers(0, 12), min_size=1, max_size=9), st.floats(0, 1), st.sampled_from([0.1, 2.0, 30.0]))
    def test_the_law_follows_its_definition(self, records, q, epsilon):
        mechanism, k = median(epsilon, Quantile(q)), Quantile(q).rank(len(records))
        law = mechanism.law(np.array(records, float))
        scores = reference.interpolated_scores(records, k, 12)
        cap, padded = len(law.lower) - 1, [0] * 9 + sorted(records) + [12] * 9
        center, ties = padded[k + 8], (padded[k + 8 - t] == padded[k + 8 + t] for t in range(cap))
        depth = sum(itertools.takewhile(bool, ties)) - 1
        exponents = [0 if code == center else float(min(s, cap)) + depth for code, s in enumerate(scores)]
        p = [float(v) for v in reference.inverse_sensitivity(exponents, epsilon, np.inf)]
        np.testing.assert_allclose(law.score(np.arange(13)), [min(float(s), cap) for s in scores], atol=1e-14)
        np.testing.assert_allclose(law.pmf(np.arange(13)), p, rtol=1e-11)
        np.testing.assert_allclose(law.cdf(np.arange(13)), np.cumsum(p), rtol=1e-11)

    @every("last", [10**6, 2**32, 2**52 - 1])
    @every("epsilon", [1e-300, 1.0, 1024.0])
    def test_large_grids_sum_to_one(self, last, epsilon):
        points = np.sort(np.random.default_rng(1).integers(0, last, 101))
        law = InterpolatedIntervals(points[50::-1], points[50:], epsilon=epsilon, last=last, grid=Grid(0, 1))
        assert law.cdf(last - 1) + law.pmf(last) == pytest.approx(1, abs=1e-9)
        inside = points[[3, 50, 60]] + 5
        np.testing.assert_allclose(law.cdf(inside) - law.cdf(inside - 1), law.pmf(inside), atol=1e-12)


class TestDraws:
    @pytest.mark.parametrize("epsilon", [0.7, 4.0])
    def test_sample_follows_the_law(self, epsilon):
        """With a power check: the same counts refute epsilon x 0.8 and x 1.25, and scores that are not interpolated."""
        x = np.array([2, 9, 9, 20, 31, 33, 50, 55, 60.0])
        counts = np.bincount(median(epsilon, last=63).law(x).sample(200_000, PCG64(1)), minlength=64)
        for factor in (1, 0.8, 1.25):
            expected = median(epsilon * factor, last=63).law(x).pmf(np.arange(64))
            assert chi_square_rejects(counts, expected) == (factor != 1)
        stepwise = median(epsilon, last=63, interpolate=False, selection="exponential", measure="uniform")
        assert chi_square_rejects(counts, stepwise.law(x).pmf(np.arange(64)))

    @pytest.mark.parametrize("epsilon", [1e-300, 0.01, 5.0, 100.0])
    @pytest.mark.parametrize("last", [60, 2**30, 2**52 - 1])
    def test_fast_and_slow_paths_agree(self, epsilon, last):
        points = np.sort(np.random.default_rng(5).integers(0, last, 17))
        for depth, low in ((0, points[8::-1]), (3, np.append([points[8]] * 4, points[4::-1]))):
            high = np.append([points[8]] * 4, points[12:]) if depth else points[8:]
            outs = []
            for exact in (False, True):
                source, out = ScriptedBits(rest=PCG64(9)), np.empty(50, np.int64)
                _levels.fill_interpolated(source, low, high, epsilon, last, out, depth, exact=exact)
                outs.append((out.tolist(), source.used))
            assert outs[0] == outs[1]

    def test_coins_next_to_their_edge_are_decided_exactly(self):
        """The point at 1 of 2 steps: the first digits of exp(-1/4), epsilon = 1, whose further ones are 0 or 1."""
        with mp.workdps(60):
            edge = int(mp.floor(mp.exp(-mpf(1) / 4) * 2**64))
        for last_bits, accepted in ((0, True), (2**64 - 1, False)):
            words = [0, 2**63, edge, last_bits, 0, 0, 0]
            source, out = ScriptedBits(words, PCG64(3)), np.empty(1, np.int64)
            _levels.fill_interpolated(source, np.array([0, 0]), np.array([0, 2]), 1.0, 2, out)
            assert (out[0] == 1) == accepted

    def test_call_release_law_and_groups_agree(self):
        x = np.random.default_rng(4).normal(20, 8, 90).round()
        for statistic, options in itertools.product(
            (Median(), Quantile(0.9), Quantile(0.0)),
            ({}, {"grid": Grid(0, 50, step=0.5)}, {"grid": dpf.FloatGrid(missing="lower")}),
        ):
            m = median(0.7, statistic, **options)
            law = m.law(x)
            for seed in range(5):
                expected = law.value(law.sample(rng=PCG64(seed)))
                assert m(x, rng=PCG64(seed)) == m(dpf.Chunks.slices(x, 7), rng=PCG64(seed)) == expected
        groups = dpf.by_group(
            median(20.0, last=50), np.repeat([3.0, 7.0], 60), labels=np.repeat([0, 1], 60), rng=PCG64(1)
        )
        np.testing.assert_array_equal(groups, [3.0, 7.0])


class Cut(InverseSensitivity):
    """Wrong: in the last gap, before the points that all have the greatest score, the score rises by a step."""

    def _levels(self, n):
        return min(3, super()._levels(n))

    def _boxes(self, summary):
        lower, upper, depth = super()._boxes(summary)
        return np.append(lower[:-1], lower[-2]), np.append(upper[:-1], upper[-2]), depth


class Capped(InverseSensitivity):
    """The public cap of the library, made small by hand: the law changes, and stays private."""

    def _levels(self, n):
        return min(3, super()._levels(n))


class AtFullRate(InverseSensitivity):
    """Wrong: epsilon for epsilon / 2."""

    def law_of(self, summary):
        return replace(median(2 * self.epsilon, self.statistic), grid=self.grid).law_of(summary)


class TestPrivacy:
    @pytest.mark.parametrize("epsilon", [0.3, 2.0, 6.0])
    def test_certified(self, epsilon):
        for statistic, n, values in ((Median(), 4, 5), (Quantile(0.9), 3, 6), (Quantile(0.0), 3, 5)):
            assert audit.verify(median(epsilon, statistic, values - 1), n=n, values=values, ordered=False).holds

    def test_the_cap_is_private_and_a_cut_is_not(self):
        options = {"grid": Grid(0, 8, step=1), "epsilon": 4.0, "interpolate": True}
        assert audit.verify(Capped(Median(), **options), n=3, values=9, ordered=False).holds
        assert not audit.verify(Cut(Median(), **options), n=3, values=9, ordered=False).holds

    def test_epsilon_for_half_of_it_is_rejected(self):
        wrong = AtFullRate(Median(), grid=Grid(0, 5, step=1), epsilon=2.0, interpolate=True)
        assert not audit.verify(wrong, n=4, values=6, ordered=False).holds

    @every(
        "options, error, message",
        [
            ({"interpolate": 1}, TypeError, "interpolate must be True or False, not 1"),
            ({"statistic": InterquartileRange()}, ValueError, "which is not a quantile"),
            ({"neighbors": "add-remove"}, ValueError, "interpolate must be False for neighbors='add-remove'"),
            ({"radius": 1.0}, ValueError, "interpolate must be False for radius=1.0"),
            ({"measure": tuple(range(1, 14))}, ValueError, "interpolate must be False for measure="),
            ({"selection": "permute-and-flip"}, ValueError, "interpolate must be False for selection="),
            ({"epsilon": 1025.0}, ValueError, "epsilon must be at most 1024 with interpolate=True"),
        ],
    )
    def test_bad_parameters(self, options, error, message):
        with pytest.raises(error, match=message):
            median(**options)


def test_the_noise_is_less_without_ties_and_more_with_them():
    """The expected distance from the median under both laws: the ratios of the docstring, for normal records."""

    def noise(x, grid, **options):
        law = InverseSensitivity(Median(), grid=grid, measure="uniform", selection="exponential", **options).law(x)
        starts = np.unique(np.concatenate([law.lower, law.upper, law.support]))
        knots = np.unique(np.concatenate([a + (b - a) * np.arange(9) // 8 for a, b in itertools.pairwise(starts)]))
        masses = np.diff(law.cdf(knots))
        middles = (knots[1:] + knots[:-1] + 1) / 2 - law.lower[0]
        return float(np.sum(masses * np.abs(middles)))

    rng, grid = np.random.default_rng(2), Grid(-16, 16, step=2.0**-26)
    for epsilon, ratio in ((1.0, 0.97), (2.0, 0.90), (4.0, 0.73), (8.0, 0.48)):
        samples = [rng.normal(size=501) for _ in range(20)]
        with_steps = sum(noise(x, grid, epsilon=epsilon) for x in samples)
        assert sum(noise(x, grid, epsilon=epsilon, interpolate=True) for x in samples) / with_steps == pytest.approx(
            ratio, abs=0.02
        )
    tied, grid = [np.rint(rng.normal(scale=3, size=101)) for _ in range(20)], Grid(-16, 16, step=0.25)
    with_steps = sum(noise(x, grid, epsilon=4.0) for x in tied)
    assert sum(noise(x, grid, epsilon=4.0, interpolate=True) for x in tied) > 1.1 * with_steps
