"""Independent columns: the composition against enumeration, laws against the columns, guarantees with controls."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.random import PCG64, default_rng
from scipy.special import comb

import dpfast as dpf
from dpfast import Chunks, Grid, InverseSensitivity, Ledger, NestedBoxes, Privacy, PrivacyProfile, audit, robust_mean
from dpfast.core.divergences import (
    Part,
    bounded_range_delta_up,
    bounded_range_epsilon_down,
    concentrated_delta_up,
    rho_up,
)
from dpfast.robust import IndependentColumns
from dpfast.statistics import Huber, Median, TrimmedMean
from tests.cases import every
from tests.reference.statistics import RANK_CASES, one_of_each
from tests.untouchable import Untouchable

GRID = Grid(0, 100, step=1)
STATISTICS = one_of_each(RANK_CASES)


def mechanism(epsilon=1.0, statistic=None, grid=GRID, dimension=3, delta=1e-3, **options):
    return IndependentColumns(
        statistic or Median(), grid=grid, dimension=dimension, epsilon=epsilon, delta=delta, **options
    )


def normal(n, d, seed=0):
    return default_rng(seed).normal(50, 10, (n, d))


def divergence(part, places, target):
    """The hockey-stick divergence of a product of two-point pairs with losses t and t - part, by enumeration."""
    total = mpf(0)
    for low in itertools.product([False, True], repeat=len(places)):
        p = q = mpf(1)
        for is_low, t in zip(low, places, strict=True):
            share = (mp.exp(t) - 1) / (mp.exp(part) - 1)
            p *= share if is_low else 1 - share
            q *= share * mp.exp(part - t) if is_low else (1 - share) * mp.exp(-t)
        total += max(p - mp.exp(target) * q, mpf(0))
    return total


def divergences_of_equal(part, places, times, target):
    """`divergence` of equal losses, in doubles, for each of an array of places."""
    low, t = np.arange(times + 1), np.asarray(places)[:, None]
    share = np.expm1(t) / np.expm1(part)
    p = share**low * (1 - share) ** (times - low)
    q = p * np.exp(low * part - times * t)
    return np.maximum(p - np.exp(target) * q, 0) @ comb(times, low)


class TestComposition:
    @every("part", [0.05, 0.7, 4.0])
    @every("times", [1, 2, 4])
    def test_is_the_largest_divergence_of_two_point_laws(self, part, times):
        """At least that of every product, and attained by one with equal losses."""
        e = mpf(part)
        with mp.workdps(30):
            for share in (0.0, 0.3, 0.8):
                target = share * times * part
                bound = bounded_range_delta_up(part, times, Fraction(target))
                equal = divergences_of_equal(part, part * np.arange(1, 4000) / 4000, times, target).max()
                assert equal * (1 - 1e-9) <= bound <= equal * (1 + 1e-5)
                rng = default_rng(times)
                for _ in range(8):
                    places = [mpf(t) for t in rng.uniform(0, part, times)]
                    assert divergence(e, places, mpf(target)) <= bound
                best = [((target + (low + 1) * e) / (times + 1)) for low in range(times)]
                exact = max(divergence(e, [min(t, e)] * times, mpf(target)) for t in best)
                assert exact <= mpf(bound) <= exact * (1 + mpf(2) ** -51)

    @pytest.mark.parametrize("part", [0.1, 1.0, 3.0])
    def test_one_release_has_its_closed_form(self, part):
        for target in (0.0, 0.5 * part, 0.9 * part):
            exact = (math.exp(part / 2) - math.exp(target / 2)) ** 2 / math.expm1(part)
            assert bounded_range_delta_up(part, 1, Fraction(target)) == pytest.approx(exact, rel=1e-12)
        assert bounded_range_delta_up(part, 3, Fraction(part) * 3) == 0.0

    @every("epsilon, delta", [(1.0, 1e-6), (0.1, 1e-9), (4.0, 1e-3), (1e-9, 0.3), (50.0, 1e-6)])
    @every("times", [1, 2, 20, 100])
    def test_the_share_is_the_greatest(self, epsilon, delta, times):
        share, target = bounded_range_epsilon_down(epsilon, delta, times), Fraction(epsilon)
        assert share * times >= epsilon * (1 - 1e-15)
        assert bounded_range_delta_up(share, times, target) <= delta
        assert bounded_range_delta_up(share * (1 + 2.0**-18), times, target) > delta

    def test_it_is_tighter_than_rho(self):
        for times in (20, 100, 256):
            share = bounded_range_epsilon_down(1.0, 1e-6, times)
            rho = times * rho_up(Part("bounded-range", share))
            assert concentrated_delta_up(rho, Fraction(1)) > 1.5e-6
        exact, bound = (bounded_range_epsilon_down(1.0, 1e-6, times) for times in (256, 257))
        assert 0.9 < bound / exact < 0.96

    @pytest.mark.parametrize("times", [1, 2, 300])
    def test_extremes(self, times):
        assert bounded_range_epsilon_down(1.0, 0.0, times) == pytest.approx(1 / times)
        assert bounded_range_epsilon_down(1e308, 0.5, times) == pytest.approx(1e308 / times)
        assert 0 < bounded_range_epsilon_down(5e-324, 1e-6, times) < 1e-4
        assert bounded_range_epsilon_down(5e-324, 5e-324, times) <= 1e-322


class TestLaw:
    @every("statistic", STATISTICS, ids=str)
    @every("radius", [0.0, 2.0])
    def test_is_inverse_sensitivity_in_each_column(self, statistic, radius):
        x, m = normal(31, 3), mechanism(2.0, statistic, radius=radius)
        one = InverseSensitivity(statistic, grid=GRID, epsilon=m.share, radius=radius, selection="exponential")
        law, columns = m.law(x), [one.law(column) for column in x.T]
        k = default_rng(1).integers(0, columns[0].support[1] + 1, (50, 3))
        expected = sum(column.logpmf(codes) for column, codes in zip(columns, k.T, strict=True))
        np.testing.assert_allclose(law.logpmf(k), expected, rtol=1e-12)
        for seed in range(20):
            source = PCG64(seed)
            np.testing.assert_array_equal(m(x, rng=PCG64(seed)), [one(column, rng=source) for column in x.T])

    @pytest.mark.parametrize("statistic", [Median(), TrimmedMean(0.1), Huber(3.0)], ids=str)
    def test_a_call_is_a_draw_of_the_law(self, statistic):
        x = normal(40, 4)
        grids = (GRID, Grid(0, 64, step=0.25), GRID, Grid(-100, 100))
        matrix = default_rng(2).normal(size=(4, 4))
        for options in ({}, {"transform": matrix}, {"scale": (1.0, 2.0, 3.0, 4.0)}):
            m = mechanism(3.0, statistic, grid=grids, dimension=4, radius=1.0, **options)
            law = m.law(x)
            for seed in range(6):
                expected = law.value(law.sample(rng=PCG64(seed)))
                np.testing.assert_array_equal(m(x, rng=PCG64(seed)), expected)
                np.testing.assert_array_equal(m(x, rng=PCG64(seed), workers=3), expected)
                pieces = Chunks([x[:7], x[7:]])
                np.testing.assert_array_equal(m(pieces, rng=PCG64(seed)), expected)
        assert m.release(x, size=(5, 2), rng=PCG64(1)).shape == (5, 2, 4)

    def test_columns(self):
        with pytest.raises(ValueError, match="X must have 3 columns, like dimension, not 2"):
            mechanism()(np.zeros((4, 2)))


class Whole(IndependentColumns):
    """A control: four times epsilon for each column, whose losses reach half of that."""

    @property
    def share(self):
        return 4 * self.epsilon


class TestPrivacy:
    @every("epsilon, delta", [(0.5, 0.01), (1.0, 0.1), (3.0, 0.001)])
    @every("statistic", [Median(), TrimmedMean(0.25)], ids=str)
    def test_by_enumeration(self, epsilon, delta, statistic):
        for d, n in ((2, 1), (2, 3), (3, 1)):
            grid = Grid(0, 4, step=1)
            options = {"grid": [grid] * d, "epsilon": epsilon, "delta": delta, "dimension": d}
            certificate = audit.verify(IndependentColumns(statistic, **options), n=n, values=2, ordered=False)
            assert certificate.holds
            assert certificate.delta <= delta
            assert not audit.verify(Whole(statistic, **options), n=n, values=2, ordered=False).holds

    def test_the_charge_is_nearly_reached(self):
        """One record on two points in each column is a two-point law with losses +-share / 2, not the worst one."""
        m = mechanism(1.0, grid=Grid(0, 1, step=1), dimension=4, delta=1e-3)
        certificate = audit.verify(
            IndependentColumns(grid=[Grid(0, 1, step=1)] * 4, dimension=4, epsilon=1.0, delta=1e-3), n=1, values=2
        )
        half = mpf(m.share) / 2
        assert certificate.delta == pytest.approx(float(divergence(2 * half, [half] * 4, 1.0)), rel=1e-6, abs=1e-12)
        assert certificate.delta <= 1e-3

    def test_profile(self):
        m = mechanism(1.0, dimension=20, delta=1e-6)
        profile = m.privacy_profile
        assert (profile.privacy, profile.failure) == (Privacy(1.0, 1e-6), 0.0)
        assert profile.parts == (("bounded-range", m.share, 20),)
        assert profile.rho == pytest.approx(20 * m.share**2 / 8, rel=1e-2)
        again = Ledger.from_json(self.charged(Ledger(2.0, 1e-5), m).to_json())
        assert again.charges[0].profile == profile
        for ledger in (Ledger(1.0, 1e-6), Ledger(rho=profile.rho), Ledger(1.0, 1e-6, plan=[m])):
            self.charged(ledger, m)
            with pytest.raises(dpf.BudgetError):
                ledger.release(m, Untouchable())

    @staticmethod
    def charged(ledger, m):
        ledger.release(m, normal(30, m.dimension))
        return ledger

    @pytest.mark.parametrize("failure", [-1e-9, 0.2, math.nan])
    def test_a_wrong_failure(self, failure):
        with pytest.raises(ValueError, match="failure"):
            PrivacyProfile(Privacy(1.0, 0.1), failure=failure)

    @every(
        "options, message",
        [
            ({"dimension": 0}, "dimension must be at least 1"),
            ({"delta": 1.0}, "delta must be at least 0 and below 1"),
            ({"epsilon": 0.0}, "epsilon must be positive"),
            ({"epsilon": 5e-324, "delta": 0.0}, "epsilon is too small for 3 columns"),
            ({"grid": [GRID] * 2}, r"one number of columns \(dimension: 3, grid: 2\)"),
            ({"scale": [1, 2]}, r"one number of columns \(dimension: 3, scale: 2\)"),
        ],
    )
    def test_parameters(self, options, message):
        with pytest.raises(ValueError, match=message):
            mechanism(**options)


class TestRobustMean:
    @pytest.mark.parametrize("d", [2, 40])
    def test_takes_the_better_one(self, d):
        x, public = normal(200, d), {"bounds": (0, 100), "epsilon": 1.0}
        boxes = NestedBoxes(grid=Grid(0, 100), epsilon=1.0)(x, rng=PCG64(1))
        columns = mechanism(grid=Grid(0, 100), dimension=d, delta=1e-6)
        alone = columns(x, rng=PCG64(1))
        assert columns.favoured == (d == 40)
        for data in (x, x.tolist(), Chunks([x[:0], x[:9], x[9:]])):
            for method, expected in (
                ("auto", alone if d == 40 else boxes),
                ("boxes", boxes),
                ("columns", alone),
            ):
                found = robust_mean(data, delta=1e-6, method=method, rng=PCG64(1), **public)
                np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(robust_mean(data, rng=PCG64(1), **public), boxes)

    def test_error_to_expect(self):
        """The mean absolute noise of both mechanisms is the one that the choice between them assumes."""
        n, d, draws = 4000, 24, 400
        x = default_rng(5).normal(size=(n, d))
        density, center = 1 / math.sqrt(2 * math.pi), np.median(x, axis=0)
        columns = mechanism(grid=Grid(-50, 50), dimension=d, delta=1e-6)
        boxes = NestedBoxes(grid=Grid(-50, 50), epsilon=1.0)
        for m, expected in ((columns, 2 / columns.share), (boxes, d + 1)):
            noise = np.abs(m.release(x, size=draws, rng=PCG64(2)) - center).mean()
            assert noise == pytest.approx(expected / (n * density), rel=0.1)

    def test_fewer_records(self):
        """Half of the records that boxes need are enough for a release near the center of the data."""
        n, d = 500, 20
        x = default_rng(6).normal(size=(n, d))
        columns = mechanism(grid=Grid(-100, 100), dimension=d, delta=1e-6)
        boxes = NestedBoxes(grid=Grid(-100, 100), epsilon=1.0)
        near = [np.abs(m.release(x, size=50, rng=PCG64(1))).mean(axis=1) < 1 for m in (columns, boxes)]
        assert columns.favoured
        assert near[0].mean() > 0.9
        assert near[1].mean() == 0

    def test_error(self):
        m = mechanism(grid=Grid(-1000, 1000), dimension=30, delta=1e-6)
        error = m.error(5000, deviation=1.0)
        assert 0.1 < error < 0.3
        x = default_rng(3).normal(size=(5000, 30))
        assert np.abs(m.release(x, size=100, rng=PCG64(3))).max(axis=1).mean() < error
        with pytest.raises(TypeError, match="the error is known only for medians"):
            mechanism(radius=1.0).error(10, deviation=1.0)
