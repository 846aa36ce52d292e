"""Nested boxes, with and without bounds: guarantees by enumeration, with controls."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64, default_rng

from dpfast import Grid, NestedBoxes, Privacy, audit
from dpfast._kernels import _balls
from dpfast.laws import BehindTest, Boxes
from dpfast.robust import RangeFreeBoxes
from dpfast.statistics import Median, Quantile
from tests.cases import every
from tests.reference import boxes as reference
from tests.reference.statistics import RANK_CASES, one_of_each
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.kernel

GRID = Grid(0, 100, step=1)
SMALL = (Grid(0, 3, step=1), Grid(0, 5, step=1))
STATISTICS = one_of_each(RANK_CASES)


def mechanism(epsilon=1.0, statistic=None, grid=GRID, **options):
    return NestedBoxes(statistic or Median(), grid=grid, epsilon=epsilon, **options)


def normal(n, d, seed=0):
    return default_rng(seed).normal(50, 10, (n, d))


class Halved(NestedBoxes):
    """A control: the exponent epsilon * score of the slides."""

    @property
    def privacy(self):
        return Privacy(self.epsilon / 2)


class Summed(NestedBoxes):
    """A control: the sum of the scores of the coordinates with the exponent of their maximum."""

    def law(self, X, *, workers=1):
        law = super().law(X)
        points = law.outcomes()
        single = [Boxes(law.lower[:, [j]], law.upper[:, [j]], epsilon=1.0, decode=None) for j in range(points.shape[1])]
        logs = -self.epsilon / 2 * sum(one.score(points[:, [j]]) for j, one in enumerate(single)).astype(float)
        law.logpmf = lambda k: logs - np.log(np.exp(logs).sum())
        return law


class Truncated(NestedBoxes):
    """A control: no mass outside the box before the last."""

    def law(self, X, *, workers=1):
        law = super().law(X)
        return Boxes(law.lower[:-1], law.upper[:-1], epsilon=self.epsilon, decode=law.value)


def divergence(m, n, grids, values=3):
    return audit.verify(m, n=n, values=values, grids=grids, ordered=False)


class TestPrivacy:
    @every("epsilon", [0.1, 1.0, 4.0])
    @every("n, radius", [(1, 0.0), (2, 0.0), (3, 1.0)])
    def test_two_dimensions(self, epsilon, n, radius):
        grids = (Grid(0, 2, step=1), Grid(0, 3, step=1))
        assert audit.verify(NestedBoxes(grid=grids, epsilon=epsilon, radius=radius), n=n, values=2, ordered=False).holds
        certificate = divergence(NestedBoxes(grid=grids, epsilon=epsilon, radius=radius), n, grids)
        assert certificate.holds
        assert certificate.epsilon > 0.3 * epsilon

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
    def test_three_dimensions(self, epsilon):
        grids = [Grid(0, 2, step=1)] * 3
        for n in (1, 2, 3):
            assert divergence(NestedBoxes(grid=grids, epsilon=epsilon), n, grids, values=2).holds

    @pytest.mark.parametrize("statistic", STATISTICS[1:], ids=str)
    def test_other_statistics(self, statistic):
        grids = [Grid(0, 2, step=1)] * 2
        assert divergence(NestedBoxes(statistic, grid=grids, epsilon=1.0), 3, grids).holds

    def test_transform_and_scale(self):
        m = NestedBoxes(
            grid=[Grid(-4, 4, step=1)] * 2, epsilon=1.0, radius=1, scale=(1, 2), transform=[[1, 1], [1, -1]]
        )
        assert divergence(m, 2, m.grids).holds

    @pytest.mark.parametrize(("control", "n"), [(Halved, 2), (Summed, 2), (Truncated, 3)])
    def test_controls(self, control, n):
        grids = [Grid(0, 8, step=1)] * 2
        assert not divergence(control(grid=grids, epsilon=1.0), n, grids).holds
        assert divergence(NestedBoxes(grid=grids, epsilon=1.0), n, grids).holds

    def test_score_changes_by_one(self):
        """T12: the sensitivity, by enumeration; and the score is at most that of the slides, for many rows at once."""
        rows, lasts = list(itertools.product(range(3), repeat=2)), (2, 2)
        points, n = rows, 3
        score = {x: [reference.score(x, g, lasts) for g in points] for x in itertools.product(rows, repeat=n)}
        for x, mine in score.items():
            for i, row in itertools.product(range(n), rows):
                theirs = score[(*x[:i], row, *x[i + 1 :])]
                assert all(abs(a - b) <= 1 for a, b in zip(mine, theirs, strict=True))
        medians = {x: tuple(sorted(c)[1] for c in zip(*x, strict=True)) for x in score}
        for x in list(score)[::37]:
            for g, s in zip(points, score[x], strict=True):
                distances = [sum(a != b for a, b in zip(x, y, strict=True)) for y in score if medians[y] == g]
                assert s <= min(distances)


TESTS = [  # epsilon, delta, width, radius, values
    (0.1, 0.45, 1, 0, 2),
    (1.0, 0.3, 1, 0, 3),
    (2.0, 0.1, 2, 1, 3),
    (4.0, 0.1, 1, 0, 3),
    (4.0, 0.01, 2, 1, 3),
    (8.0, 1e-4, 8, 0, 3),
]


class TestWithoutBounds:
    @every("epsilon, delta, width, radius, values", TESTS)
    @every("high", [2, 100])
    def test_one_dimension(self, epsilon, delta, width, radius, values, high):
        m = RangeFreeBoxes(step=1, width=width, epsilon=epsilon, delta=delta, radius=radius)
        certificate = divergence(m, m.least_records(1) + 1, [Grid(0, high, step=1)], values)
        assert certificate.holds
        assert certificate.delta < 0.9 * delta

    @pytest.mark.parametrize(("epsilon", "delta", "high"), [(4.0, 0.3, 1), (8.0, 0.1, 30)])
    def test_two_dimensions(self, epsilon, delta, high):
        m = RangeFreeBoxes(step=1, width=1, epsilon=epsilon, delta=delta)
        n = m.least_records(2)
        assert n <= 13
        assert divergence(m, n, [Grid(0, high, step=1)] * 2, values=2).holds

    @pytest.mark.parametrize(
        ("change", "high"), [({"threshold": -9}, 100), ({"bound": 10**9}, 100), ({"threshold": -9, "cap": 0}, 2)]
    )
    def test_controls(self, change, high, monkeypatch):
        """No test, a bound for any spread, a release of the median alone: each is caught."""
        m = RangeFreeBoxes(step=1, width=1, epsilon=4.0, delta=0.001)
        n = m.least_records(1)
        grids = [Grid(0, high, step=1)]
        assert divergence(m, n, grids).holds
        wrong = dataclasses.replace(m.test(1), **change)
        monkeypatch.setattr(RangeFreeBoxes, "test", lambda self, d: wrong)
        certificate = divergence(m, n, grids)
        assert certificate.delta > 2 * m.delta
        assert not certificate.holds

    @pytest.mark.parametrize("radius", [0, 2])
    def test_law_is_that_of_plain_loops(self, radius):
        m = RangeFreeBoxes(step=1, width=3, epsilon=4.0, delta=0.05, radius=radius)
        plan, n = m.test(2), m.least_records(2) + 4
        for seed, spread in ((1, 1), (2, 2), (3, 4), (4, 9)):
            rows = default_rng(seed).integers(-spread, spread + 1, (n, 2)) - 1000
            law = m.law(rows)
            options = {k: v for k, v in dataclasses.asdict(plan).items() if k != "reach"}
            expected = reference.tested_law(rows.tolist(), radius=radius, **options)
            points = law.outcomes()
            assert {tuple(g) for g in points.tolist()[1:]} == set(expected) - {None}
            found = np.exp(law.logpmf(points))
            exact = [float(expected[None]), *(float(expected[tuple(g)]) for g in points.tolist()[1:])]
            np.testing.assert_allclose(found, exact, rtol=1e-11, atol=1e-18)

    def test_frequencies(self):
        m = RangeFreeBoxes(step=1, width=2, epsilon=4.0, delta=0.05)
        rows = [[0], [1]] * (m.least_records(1) // 2 + 1) + [[9]] * 3
        law = m.law(rows)
        assert isinstance(law, BehindTest)
        points, k = law.outcomes(), law.sample(40_000, PCG64(3))
        counts = [np.count_nonzero(np.all(k == point, axis=1)) for point in points]
        p = np.exp(law.logpmf(points))
        assert 0.001 < p[0] < 0.999
        assert not chi_square_rejects(counts, p)
        assert chi_square_rejects(counts, [p[0] * 0.8, *(p[1:] * (1 - p[0] * 0.8) / (1 - p[0]))])
        values = m.release(rows, size=(50, 4), rng=PCG64(3))
        assert values.shape == (50, 4, 1)
        assert 0 < np.isnan(values).mean() < 1

    def test_failure_is_none(self):
        """Always a failure: data of too wide a spread, on two scales, have the same law."""
        m = RangeFreeBoxes(step=2.0**-10, width=1, epsilon=1.0, delta=1e-9)
        x = normal(600, 2)
        for scale in (1e3, 1e9):
            assert m(x * scale, rng=PCG64(1)) is None
            assert np.isnan(m.release(x * scale, size=3, rng=PCG64(1))).all()
        release = m(x / 100 + 1e9)
        assert release.dtype == np.float64
        np.testing.assert_allclose(release, 1e9 + np.median(x / 100, axis=0), atol=0.2)

    def test_least_records(self):
        m = RangeFreeBoxes(step=1, width=99, epsilon=1.0, delta=1e-6)
        plan = m.test(1)
        assert (plan.cap, plan.threshold, m.least_records(1)) == (62, 36, 199)
        for x in (np.zeros((198, 1)), np.full((198, 1), np.nan)):
            with pytest.raises(ValueError, match="X must have at least 199 records, not 198: with these parameters"):
                m(x)
        assert m.law(np.zeros((199, 1))).logpmf([[BehindTest.FAILURE]]) < math.log(0.5)
        with pytest.raises(ValueError, match="the 0-quantile can be moved anywhere by one record"):
            RangeFreeBoxes(Quantile(0), step=1, width=9, epsilon=1.0, delta=0.1)(np.zeros((9, 1)))
        low = RangeFreeBoxes(Quantile(0.1), step=1, width=99, epsilon=1.0, delta=1e-6)
        assert 980 <= low.least_records(1) <= 1000

    @every("epsilon", [0.01, 1.0, 1e6])
    @every("delta", [0.3, 1e-9, 1e-300])
    def test_the_numbers_of_the_test(self, epsilon, delta):
        from mpmath import mp, mpf

        for d, radius in ((1, 0), (3, 4), (200, 0)):
            m = RangeFreeBoxes(step=1, width=50, epsilon=epsilon, delta=delta, radius=radius)
            plan = m.test(d)
            assert Fraction(plan.epsilon) + Fraction(plan.test_epsilon) <= Fraction(epsilon)
            with mp.workdps(60 + 4 * d):
                e, f = mpf(plan.epsilon), mpf(plan.test_epsilon)
                assert mp.exp(-f * plan.threshold) / (1 + mp.exp(-f)) <= delta
                bound = (
                    mpf(delta) * mp.exp(e * (plan.cap + 1) / 2) * (2 * radius + 1) ** d / (mp.exp(e / 2) + mp.exp(e))
                )
                assert plan.bound <= bound < (plan.bound + 1) * (1 + mpf(2) ** -50)
                assert plan.bound >= mpf(50 + 1 + 2 * radius) ** d * (1 - mpf(2) ** -30)

    def test_decisions_at_an_edge(self):
        """The threshold is the least, or one more."""
        assert _balls.tested_threshold(math.log(2), 1 / 3) in (1, 2)
        assert _balls.tested_threshold(1.0, 0.9) == 0
