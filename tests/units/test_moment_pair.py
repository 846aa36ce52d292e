"""The variance by a pair of sums: the unit ball by enumeration, the law, the audit, and errors."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy
from numpy.random import PCG64

import dpfast as dpf
from dpfast.laws import PairOfMoments
from tests.cases import every
from tests.statistical import ALPHA


def changes(last):
    """All changes of (sum of c, sum of c (c - last)) by one replaced code."""
    codes = range(last + 1)
    return {(a - b, a * (a - last) - b * (b - last)) for a, b in itertools.product(codes, repeat=2)}


class TestNorm:
    @every("last", [1, 2, 3, 4, 7, 16, 33])
    def test_unit_ball_holds_every_change_and_no_more(self, last):
        noise = PairOfMoments(last, Fraction(1))
        norms = [noise.norm(*change) for change in changes(last)]
        assert max(norms) == 1
        corners = scipy.spatial.ConvexHull(np.array(sorted(changes(last)))).vertices if last > 2 else []
        points = np.array(sorted(changes(last)))
        for corner in corners:  # for even codes in the middle all corners are at the boundary
            assert last % 2 or noise.norm(*points[corner].tolist()) == 1

    def test_is_a_norm(self):
        noise = PairOfMoments(6, Fraction(1))
        pairs = list(itertools.product(range(-13, 14, 2), range(-25, 26, 5)))
        for z, v in itertools.product(pairs, repeat=2):
            assert noise.norm(z[0] + v[0], z[1] + v[1]) <= noise.norm(*z) + noise.norm(*v)
        for (s, t), k in itertools.product(pairs, (2, 3)):
            assert noise.norm(k * s, k * t) == k * noise.norm(s, t)
            assert noise.norm(s, t) >= Fraction(abs(s), 12) + Fraction(abs(t), 18)  # proposals

    def test_loss_of_every_pair_of_data_sets(self):
        """Exact: the exponents at all points of a window differ by at most epsilon times 1."""
        last = 4
        noise, window = PairOfMoments(last, Fraction(1)), list(itertools.product(range(-9, 10), range(-9, 10)))
        worst = max(abs(noise.norm(s, t) - noise.norm(s - d, t - e)) for d, e in changes(last) for s, t in window)
        assert worst == 1

    def test_squares_of_halves_are_rejected(self):
        """With both sensitivities of halves of the bounds, M / 2 and M**2 / 4, one replaced record has loss 2."""
        last = 8
        halves = max(max(Fraction(2 * abs(d), last), Fraction(4 * abs(e), last * last)) for d, e in changes(last))
        assert halves == 2


class TestLaw:
    @every("last, epsilon", [(1, 1.0), (4, 0.7), (5, 2.0), (12, 3.0)])
    def test_draws_have_the_law(self, last, epsilon):
        noise, count = PairOfMoments(last, Fraction(epsilon)), 8000
        drawn = noise.draws(count, PCG64(last))
        values, counts = np.unique(drawn, axis=0, return_counts=True)
        expected = count * np.exp(noise.logpmf(values.astype(float)))
        large = expected >= 10
        observed, wanted = (np.append(x[large], count - x[large].sum()) for x in (counts, expected))
        assert np.sum((observed - wanted) ** 2 / wanted) < scipy.stats.chi2.isf(ALPHA, len(wanted) - 1)
        for factor in (0.8, 1.25):
            wrong = count * np.exp(PairOfMoments(last, Fraction(epsilon * factor)).logpmf(values.astype(float)))
            wanted = np.append(wrong[large], max(count - wrong[large].sum(), 1.0))
            assert np.sum((observed - wanted) ** 2 / wanted) > scipy.stats.chi2.isf(ALPHA, len(wanted) - 1)

    def test_variances(self):
        noise = PairOfMoments(1000, Fraction(1))
        drawn = noise.draws(6000, PCG64(2)).astype(float)
        np.testing.assert_allclose(np.mean(drawn**2, axis=0), noise.variances, rtol=0.15)
        assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.1

    def test_audit_verifies_the_mechanism(self):
        class Windowed(dpf.MomentPair):
            """With the outcomes in a window that has all but 1e-10 of the probability."""

            def law(self, x, *, workers=1):
                law = super().law(x, workers=workers)
                law.outcomes = lambda: np.array(list(itertools.product(range(-40, 47), range(-40, 41))))
                law.value = lambda k: k
                return law

        certificate = dpf.audit.verify(Windowed(grid=dpf.Grid(0, 2, step=1), epsilon=2.0), n=3, values=3)
        assert certificate.holds
        assert certificate.epsilon == pytest.approx(2.0, rel=1e-6)

    def test_audit_rejects_noise_for_half_of_the_sum(self):
        class Halved(dpf.MomentPair):
            @property
            def privacy(self):
                return dpf.Privacy(self.epsilon / 2)

            def law(self, x, *, workers=1):
                law = super().law(x, workers=workers)
                law.outcomes = lambda: np.array(list(itertools.product(range(-40, 47), range(-40, 41))))
                law.value = lambda k: k
                return law

        assert not dpf.audit.verify(Halved(grid=dpf.Grid(0, 2, step=1), epsilon=2.0), n=3, values=3).holds


class TestVariance:
    def test_is_the_variance_for_a_huge_epsilon(self):
        x = np.random.default_rng(1).uniform(-3, 5, 1001)
        made = dpf.MomentPair(grid=dpf.Grid(-4, 6), epsilon=1e12)
        assert made(x) == pytest.approx(x.var(), rel=1e-5)
        assert made(dpf.Chunks([x[:7], x[7:]])) == pytest.approx(x.var(), rel=1e-5)
        assert dpf.std(x, bounds=(-4, 6), epsilon=1e3, method="moments") == pytest.approx(x.std(), rel=1e-3)

    @every(
        "low, high, mean, deviation",
        [(-4.0, 4.0, 0.0, 1.0), (0.0, 100.0, 50.0, 3.0), (0.0, 100.0, 30.0, 10.0), (-8.0, 8.0, 6.0, 0.5)],
    )
    def test_noise_is_the_predicted_one(self, low, high, mean, deviation):
        x = np.random.default_rng(1).normal(mean, deviation, 20_000)
        made = dpf.MomentPair(grid=dpf.Grid(low, high), epsilon=1.0)
        law = made.law(x)
        errors = law.value(law.center + law.noise.draws(3000, PCG64(5))) - x.var()
        inside = made.noise_deviation(len(x), mean)
        if inside < deviation**2 / 5:  # not clamped
            assert math.sqrt(np.mean(errors**2)) == pytest.approx(inside, rel=0.1)

    def test_choice_by_a_distribution(self):
        """The least error: moments in the middle of the bounds, noise on the variance at a bound, narrower bounds."""
        told = []
        for assumed, wanted in (
            (scipy.stats.norm(50, 15), "moments"),
            (scipy.stats.expon(0, 25), "global-sensitivity"),
            (scipy.stats.norm(50, 5), "private-bounds"),
        ):
            x = assumed.rvs(2000, random_state=1)
            dpf.variance(x, bounds=(0, 100), epsilon=1.0, distribution=assumed, explain=told.append)
            assert f"Taken: {wanted}" in told[-1]
        dpf.std(x, bounds=(0, 100), epsilon=1.0, distribution=scipy.stats.norm(45, 14), explain=told.append)
        assert "Taken: moments" in told[-1]
        dpf.variance(x, bounds=(0, 100), epsilon=1.0, explain=told.append)
        assert "GlobalSensitivity" in told[-1]

    def test_choice_within_a_ledger(self):
        """A law of imagined records is no law of the data: the choice is made, and the release charged."""
        x, norm = np.arange(100.0), scipy.stats.norm(49.5, 29)
        mechanism = dpf.MomentPair(grid=dpf.Grid(0, 100, step=1), epsilon=0.71)
        expected = mechanism.expected_error(100, norm)
        with dpf.Ledger(2.0) as ledger:
            assert mechanism.expected_error(100, norm) == expected
            for distribution in (norm, (20, 80)):
                dpf.variance(x, bounds=(0, 100), epsilon=0.71, distribution=distribution)
        assert ledger.spent.epsilon == 2 * Fraction(0.71)

    def test_parameters(self):
        grid = dpf.Grid(0, 1)
        with pytest.raises(TypeError, match=r"statistic must be Variance\(\)"):
            dpf.MomentPair(dpf.statistics.Mean(), grid=grid, epsilon=1.0)
        with pytest.raises(ValueError, match=r"epsilon must be at least 2\*\*-24"):
            dpf.MomentPair(grid=grid, epsilon=2.0**-25)
        with pytest.raises(ValueError, match=r"n must be at most 2\*\*30"):
            dpf.MomentPair(grid=grid, epsilon=1.0).plan(2**30 + 1)
        with pytest.raises(ValueError, match="a release could be beyond the range of float64"):
            dpf.MomentPair(grid=dpf.Grid(-3e166, -2.9e166, step=2.0**530), epsilon=1.0)
