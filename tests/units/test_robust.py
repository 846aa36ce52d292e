"""Nested boxes: laws against plain loops, draws against laws, guarantees by enumeration, inputs, parameters."""

import copy
import dataclasses
import itertools
import math
import pickle
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64, default_rng

import dpfast as dpf
from dpfast import Grid, InverseSensitivity, NestedBoxes, Privacy, audit, robust, robust_mean
from dpfast._kernels import _balls, _boxes
from dpfast.laws import BehindTest, Boxes
from dpfast.robust import RangeFreeBoxes, boxes, columns, reduction
from dpfast.statistics import Huber, InterquartileRange, Mean, Median, Quantile, Sum, TrimmedMean
from tests.reference import boxes as reference
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects
from tests.untouchable import Untouchable

pytestmark = pytest.mark.kernel

GRID = Grid(0, 100, step=1)
SMALL = (Grid(0, 3, step=1), Grid(0, 5, step=1))
STATISTICS = [Median(), Quantile(0.3), TrimmedMean(0.2), Mean(), Huber(2.0), InterquartileRange()]


def mechanism(epsilon=1.0, statistic=None, grid=GRID, **options):
    return NestedBoxes(statistic or Median(), grid=grid, epsilon=epsilon, **options)


def normal(n, d, seed=0):
    return default_rng(seed).normal(50, 10, (n, d))


class TestLaw:
    @settings(max_examples=40)
    @given(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=7),
        st.sampled_from([1e-3, 0.1, 1.0, 4.0, 100.0]),
        st.sampled_from([0, 1, 2]),
    )
    def test_is_that_of_plain_loops(self, rows, epsilon, radius):
        m = NestedBoxes(grid=SMALL, epsilon=epsilon, radius=radius)
        law = m.law(np.array(rows))
        expected = reference.median_law(rows, (3, 5), epsilon, m.cap(len(rows), 2), radius)
        points = np.array(list(expected))
        np.testing.assert_array_equal(law.outcomes(), points)
        np.testing.assert_allclose(np.exp(law.logpmf(points)), [float(p) for p in expected.values()], rtol=1e-13)
        np.testing.assert_array_equal(
            law.score(points), [min(reference.score(rows, g, (3, 5), radius), len(law.lower) - 1) for g in expected]
        )

    def test_is_capped(self):
        """At this epsilon the cap bites before the breakdown point does."""
        rows = [(0, 0)] * 101
        m = NestedBoxes(grid=SMALL, epsilon=40.0)
        assert m.cap(101, 2) == 1 + math.ceil(2 / 40 * (math.log(24) + 42)) == 4
        expected = reference.median_law(rows, (3, 5), 40.0, 4)
        found = m.law(rows).logpmf(np.array(list(expected)))
        np.testing.assert_allclose(found, [math.log(p) for p in expected.values()], rtol=1e-13, atol=1e-13)

    @pytest.mark.parametrize("statistic", STATISTICS, ids=str)
    @pytest.mark.parametrize("radius", [0.0, 2.0])
    def test_one_column_is_inverse_sensitivity(self, statistic, radius):
        """The same law, and the same release for the same words."""
        x = normal(61, 1)
        one = InverseSensitivity(statistic, grid=GRID, epsilon=0.7, radius=radius)
        boxes = mechanism(0.7, statistic, radius=radius)
        k = np.arange(0, one.law(x[:, 0]).support[1] + 1, 7)
        np.testing.assert_allclose(boxes.law(x).logpmf(k[:, None]), one.law(x[:, 0]).logpmf(k), rtol=1e-12)
        for seed in range(50):
            assert boxes(x, rng=PCG64(seed)) == [one(x[:, 0], rng=PCG64(seed))]

    def test_outside_and_shapes(self):
        law = mechanism(grid=SMALL).law([[1, 2]])
        assert law.logpmf([[4, 0], [0, -1], [0, 0]])[:2].tolist() == [-math.inf, -math.inf]
        assert law.logpmf(np.zeros((2, 3, 2), int)).shape == (2, 3)
        assert law.sample((2, 3), PCG64(1)).shape == (2, 3, 2)
        assert law.sample(0, PCG64(1)).shape == (0, 2)
        assert law.sample(rng=PCG64(1)).shape == (2,)
        with pytest.raises(ValueError, match="at most 2\\*\\*20 points, not 104060401"):
            mechanism().law([[1, 2, 3, 4]]).outcomes()


class TestDraws:
    def test_frequencies(self):
        law = mechanism(0.8, grid=SMALL).law([[0, 1], [1, 5], [1, 2], [3, 3], [2, 2]])
        p = np.exp(law.logpmf(law.outcomes()))
        assert math.fsum(p) == pytest.approx(1, abs=1e-14)
        k = law.sample(300_000, PCG64(1))
        counts = np.bincount(k[:, 0] * 6 + k[:, 1], minlength=24)
        assert not chi_square_rejects(counts, p)
        for factor in (0.9, 1.1):
            wrong = np.exp(factor * law.logpmf(law.outcomes()))
            assert chi_square_rejects(counts, wrong / wrong.sum())

    @pytest.mark.parametrize("statistic", STATISTICS, ids=str)
    @pytest.mark.parametrize("kept", [0, 3, 10**9])
    def test_a_call_is_a_draw_of_the_law(self, statistic, kept, monkeypatch):
        """The same words give the same release, whichever boxes were kept and whoever reads the columns."""
        monkeypatch.setattr(boxes, "_KEPT", 4 * kept)
        x = normal(40, 4)
        if not kept:
            x = x[:15]
        m = mechanism(2.0, statistic, grid=(GRID, Grid(0, 64, step=0.25), GRID, Grid(-100, 100)), radius=1.0)
        law = m.law(x)
        for seed in range(12):
            expected = law.value(law.sample(rng=PCG64(seed)))
            np.testing.assert_array_equal(m(x, rng=PCG64(seed)), expected)
            np.testing.assert_array_equal(m(x, rng=PCG64(seed), workers=3), expected)

    def test_anywhere(self):
        """At a small epsilon the last level is drawn: uniform, whatever was kept."""
        x = normal(9, 3)
        releases = np.array([mechanism(1e-9)(x, rng=PCG64(seed)) for seed in range(3000)])
        assert not chi_square_rejects(np.bincount(releases.reshape(-1).astype(int), minlength=101), [1 / 101] * 101)

    @pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 0.3, 5.0, 1e3])
    def test_ball_arithmetic_decides_alike(self, epsilon):
        rng = default_rng(5)
        for d, n in ((1, 1), (2, 4), (40, 30), (3, 200)):
            lower = -np.sort(rng.integers(0, 2**40, (n, d)), axis=0)
            upper = np.sort(rng.integers(0, 2**52, (n, d)), axis=0)
            volumes = _boxes.Volumes(n)
            for j in range(d):
                volumes.add_ranges(np.ascontiguousarray(lower[:, j]), np.ascontiguousarray(upper[:, j]))
            fast, slow = np.empty(8, np.int64), np.empty(8, np.int64)
            columns = lambda: (upper - lower + 1).T  # noqa: B023, E731
            volumes.fill_levels(PCG64(1), epsilon, columns, fast)
            volumes.fill_levels(PCG64(1), epsilon, columns, slow, exact=True)
            np.testing.assert_array_equal(fast, slow)

    def test_words_on_an_edge_go_to_ball_arithmetic(self):
        """The two words around each edge of the exact cumulative weights, and their neighbours."""
        widths = [[1, 3, 7, 50], [2, 2, 9, 40], [1, 8, 8, 10]]
        epsilon, n = 1.5, 4
        volumes = _boxes.Volumes(n)
        for column in widths:
            volumes.add_ranges(np.zeros(n, np.int64), np.array(column) - 1)
        products = [math.prod(column) for column in zip(*widths, strict=True)]
        from mpmath import mp, mpf

        with mp.workdps(60):
            q = mp.exp(-mpf(epsilon) / 2)
            weights = [(1 - q) * q**t * v for t, v in enumerate(products[:-1])] + [q ** (n - 1) * products[-1]]
            edges = [mp.fsum(weights[: t + 1]) / mp.fsum(weights) * 2**64 for t in range(n - 1)]
            for t, edge in enumerate(edges):
                word = int(mp.floor(edge))
                for near, expected in ((word - 1, t), (word + 1, t + 1)):
                    level = np.empty(1, np.int64)
                    volumes.fill_levels(ScriptedBits([near]), epsilon, lambda: widths, level)
                    assert level[0] == expected
                for digits in (0, 2**64 - 1):  # the next 64 bits of the uniform number decide
                    level, source = np.empty(1, np.int64), ScriptedBits([word, digits])
                    volumes.fill_levels(source, epsilon, lambda: widths, level)
                    assert (level[0], source.used) == ((t if digits == 0 else t + 1), 2)

    @settings(max_examples=30)
    @given(st.integers(1, 300), st.integers(0, 2**31))
    def test_volumes(self, d, seed):
        """The error of a product of d widths is within d 2**-52."""
        rng = default_rng(seed)
        widths = np.sort(rng.integers(1, 2 ** rng.integers(1, 63, d)[:, None], (d, 3)), axis=1)
        volumes, others = _boxes.Volumes(3), _boxes.Volumes(3)
        for j, column in enumerate(widths):
            (volumes if j % 3 else others).add_ranges(np.zeros(3, np.int64), column - 1)
        volumes.merge(others)
        assert volumes.columns == d
        for t in range(3):
            exact = math.prod(map(int, widths[:, t]))
            found = Fraction(float(volumes.mantissa[t])) * Fraction(2) ** int(volumes.exponent[t])
            assert 1 <= volumes.mantissa[t] < 2
            assert abs(found / exact - 1) <= Fraction(d + 1, 2**52)

    def test_window_and_ranges_agree(self):
        grid, levels = Grid(-8, 24, step=0.5), 9
        window = np.sort(default_rng(2).normal(8, 12, 2 * levels - 1))
        codes = grid.encode(window)
        lower, upper = np.maximum(codes[levels - 1 :: -1] - 3, 0), np.minimum(codes[levels - 1 :] + 3, grid.size - 1)
        a, b = _boxes.Volumes(levels + 1), _boxes.Volumes(levels + 1)
        low, high = np.empty(4, np.int64), np.empty(4, np.int64)
        a.add_window(window.copy(), 3, grid.size - 1, grid.lower, grid.upper, grid.step, grid.first, low, high, 2)
        b.add_ranges(np.append(lower, 0), np.append(upper, grid.size - 1))
        assert (a.mantissa * 2.0**a.exponent).tolist() == (b.mantissa * 2.0**b.exponent).tolist()
        assert (low.tolist(), high.tolist()) == (lower[2:6].tolist(), upper[2:6].tolist())

    def test_kernels_refuse_other_lengths(self):
        volumes, codes = _boxes.Volumes(3), np.zeros(4, np.int64)
        for bad in (
            lambda: volumes.add_ranges(codes, codes),
            lambda: volumes.merge(_boxes.Volumes(4)),
            lambda: volumes.add_window(np.zeros(9), 0, 1, 0.0, 1.0, 1.0, 0.0, codes, codes, 0),
            lambda: _boxes.transform(np.eye(2), np.zeros((3, 4)), np.zeros((2, 4))),
            lambda: _boxes.transform(np.eye(2), np.zeros((2, 4)), np.zeros((4, 2)).T),
        ):
            with pytest.raises(ValueError, match=r"boxes than|another number|fit together|contiguous"):
                bad()

    def test_many_dimensions(self):
        x = default_rng(1).normal(3, 1, (50, 10_000))
        release = mechanism(1e6, grid=Grid(-10, 10))(x)
        np.testing.assert_allclose(release, np.sort(x, axis=0)[24], atol=2**-20)
        assert np.ptp(mechanism(1.0, grid=Grid(-10, 10))(x)) > 19


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
    """A control: nothing outside the box before the last."""

    def law(self, X, *, workers=1):
        law = super().law(X)
        return Boxes(law.lower[:-1], law.upper[:-1], epsilon=self.epsilon, decode=law.value)


def divergence(m, n, grids, values=3):
    return audit.verify(m, n=n, values=values, grids=grids, ordered=False)


class TestPrivacy:
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
    @pytest.mark.parametrize(("n", "radius"), [(1, 0.0), (2, 0.0), (3, 1.0)])
    def test_two_dimensions(self, epsilon, n, radius):
        grids = (Grid(0, 2, step=1), Grid(0, 3, step=1))
        assert audit.verify(NestedBoxes(grid=grids, epsilon=epsilon, radius=radius), n=n, values=2).holds
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
        assert divergence(NestedBoxes(statistic, grid=grids, epsilon=1.0), 4, grids).holds

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
        """T12: the sensitivity, by enumeration; and the score is at most that of the slides, over rows at once."""
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
    @pytest.mark.parametrize(("epsilon", "delta", "width", "radius", "values"), TESTS)
    @pytest.mark.parametrize("high", [2, 8, 100])
    def test_one_dimension(self, epsilon, delta, width, radius, values, high):
        m = RangeFreeBoxes(step=1, width=width, epsilon=epsilon, delta=delta, radius=radius)
        certificate = divergence(m, m.least_records(1) + 1, [Grid(0, high, step=1)], values)
        assert certificate.holds
        assert certificate.delta < 0.9 * delta

    @pytest.mark.parametrize(("epsilon", "delta"), [(4.0, 0.3), (8.0, 0.1)])
    @pytest.mark.parametrize("high", [1, 30])
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
        wrong = dataclasses.replace(m.plan(1), **change)
        monkeypatch.setattr(RangeFreeBoxes, "plan", lambda self, d: wrong)
        certificate = divergence(m, n, grids)
        assert certificate.delta > 2 * m.delta
        assert not certificate.holds

    @pytest.mark.parametrize("radius", [0, 2])
    def test_law_is_that_of_plain_loops(self, radius):
        m = RangeFreeBoxes(step=1, width=3, epsilon=4.0, delta=0.05, radius=radius)
        plan, n = m.plan(2), m.least_records(2) + 4
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
        """Nothing but failure: data of too wide a spread, on two scales, cannot be told apart by it."""
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
        plan = m.plan(1)
        assert (plan.cap, plan.threshold, m.least_records(1)) == (62, 36, 199)
        for x in (np.zeros((198, 1)), np.full((198, 1), np.nan)):
            with pytest.raises(ValueError, match="X must have at least 199 records, not 198: with these parameters"):
                m(x)
        assert m.law(np.zeros((199, 1))).logpmf([[BehindTest.FAILURE]]) < math.log(0.5)
        with pytest.raises(ValueError, match="the 0-quantile can be moved anywhere by one record"):
            RangeFreeBoxes(Quantile(0), step=1, width=9, epsilon=1.0, delta=0.1)(np.zeros((9, 1)))
        low = RangeFreeBoxes(Quantile(0.1), step=1, width=99, epsilon=1.0, delta=1e-6)
        assert 980 <= low.least_records(1) <= 1000

    @pytest.mark.parametrize("epsilon", [0.01, 1.0, 1e6])
    @pytest.mark.parametrize("delta", [0.3, 1e-9, 1e-300])
    def test_the_numbers_of_the_test(self, epsilon, delta):
        from mpmath import mp, mpf

        for d, radius in ((1, 0), (3, 4), (200, 0)):
            m = RangeFreeBoxes(step=1, width=50, epsilon=epsilon, delta=delta, radius=radius)
            plan = m.plan(d)
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


class TestInputs:
    X: ClassVar = np.random.default_rng(4).integers(0, 100, (37, 5))

    @pytest.mark.parametrize(
        "convert",
        [
            np.asfortranarray,
            lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
            lambda x: x[::-1].copy()[::-1],
            lambda x: x.astype(np.float32),
            lambda x: x.astype(np.uint8),
            lambda x: x.astype(">f8"),
            lambda x: x.astype(np.int16),
            lambda x: x.tolist(),
            lambda x: np.ascontiguousarray(x[:, ::-1])[:, ::-1],
        ],
    )
    @pytest.mark.parametrize("statistic", [Median(), TrimmedMean(0.1)], ids=str)
    def test_any_layout(self, convert, statistic):
        x = self.X.astype(float)
        x.setflags(write=False)
        m = mechanism(statistic=statistic)
        y = convert(x)
        before = np.array(y, copy=True).tobytes()
        for seed in range(3):
            np.testing.assert_array_equal(m(y, rng=PCG64(seed)), m(x, rng=PCG64(seed)))
        assert np.array(y).tobytes() == before

    def test_order_of_records_does_not_matter(self):
        y = default_rng(1).permutation(self.X)
        for options in ({}, {"transform": default_rng(2).normal(size=(5, 5))}):
            m = mechanism(**options)
            np.testing.assert_array_equal(m(self.X, rng=PCG64(1)), m(y, rng=PCG64(1)))

    @pytest.mark.parametrize("grid", [GRID, Grid(0, 100, step=1, missing=50)])
    def test_bad_values_are_public_codes(self, grid):
        """T10, T14: NaN, infinities and values beyond the bounds are as good as their codes; nothing else shows."""
        x = self.X.astype(float)
        x[:6, 1] = [np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e300]
        y = self.X.astype(float)
        y[:6, 1] = [grid.missing, 100, 0, 0, 0, 100]
        for seed in range(5):
            release = mechanism(grid=grid)(x, rng=PCG64(seed))
            np.testing.assert_array_equal(release, mechanism(grid=grid)(y, rng=PCG64(seed)))
            assert (release.shape, release.dtype) == ((5,), np.float64)
        lost = np.full((37, 5), np.nan)
        for m in (mechanism(), mechanism(transform=np.eye(5)), RangeFreeBoxes(step=1, width=9, epsilon=9, delta=0.1)):
            m(lost)
            m(np.where(x > 0, np.inf, -np.inf))

    def test_on_the_grid(self):
        """T1: releases are points of the public grid."""
        grid = Grid(-1, 1, step=2.0**-9)
        values = mechanism(0.5, grid=grid).release(default_rng(1).normal(size=(30, 3)), size=300, rng=PCG64(1))
        assert (values.shape, np.all(values * 2**9 == np.rint(values * 2**9))) == ((300, 3), True)

    @pytest.mark.parametrize("x", [[1.0, 2.0], np.zeros((2, 2, 2)), np.zeros((3, 0)), 1.0])
    def test_shape(self, x):
        with pytest.raises(ValueError, match="X must be two-dimensional, a record in each row, not of shape"):
            mechanism()(x)

    def test_no_records(self):
        with pytest.raises(ValueError, match="x is empty"):
            mechanism()(np.zeros((0, 3)))
        with pytest.raises(TypeError, match="X must hold numbers"):
            mechanism()(np.array([["a", "b"]]))

    def test_degenerate(self):
        """T7: one record on two points is randomised response in each of d corners."""
        law = mechanism(grid=[Grid(0, 1, step=1)] * 2).law([[1, 0]])
        p = np.exp(law.logpmf([[1, 0], [0, 0], [0, 1], [1, 1]]))
        np.testing.assert_allclose(p, np.array([1, *[math.exp(-0.5)] * 3]) / (1 + 3 * math.exp(-0.5)))


class TestTransform:
    def test_is_the_mechanism_on_transformed_records(self):
        """Where the products are exact: every step is that of the transformed records, and the inverse at the end."""
        x = default_rng(1).integers(-20, 20, (50, 3))
        matrix = np.array([[1, 2, 0], [0, 1, -1], [1, 0, 1]])
        plain, m = mechanism(), mechanism(transform=matrix)
        for seed in range(5):
            release = m(x, rng=PCG64(seed), workers=2)
            np.testing.assert_allclose(matrix @ release, plain(x @ matrix.T, rng=PCG64(seed)), rtol=1e-12, atol=1e-9)

    def test_each_record_by_itself(self):
        """Bit for bit: the others, their number and their place do not matter."""
        rng = default_rng(1)
        matrix, x = rng.normal(size=(7, 7)), rng.normal(size=(700, 7))
        together = columns._transformed(x, matrix, 2)
        np.testing.assert_allclose(together, x @ matrix.T, rtol=1e-12, atol=1e-12)
        y = x.copy()
        y[5] = [np.nan, np.inf, *[1e300] * 5]
        np.testing.assert_array_equal(np.delete(columns._transformed(y, matrix, 1), 5, 0), np.delete(together, 5, 0))
        for i in (0, 3, 255, 256, 699):
            np.testing.assert_array_equal(columns._transformed(x[i : i + 1], matrix, 1)[0], together[i])

    def test_whitening_helps(self):
        rng = default_rng(3)
        root = np.array([[1.0, 0.0], [1000.0, 1.0]])
        x = rng.normal(size=(4000, 2)) @ root.T + [5, 7]
        release = robust_mean(x, bounds=(-1e4, 1e4), epsilon=1.0, transform=np.linalg.inv(root), rng=PCG64(1))
        residual = np.linalg.inv(root) @ (release - [5, 7])
        assert np.abs(residual).max() < 0.1


class TestContract:
    def test_value(self):
        m = mechanism(0.5, scale=[1, 2], grid=[GRID, GRID], transform=np.eye(2), radius=3)
        free = RangeFreeBoxes(step=1, width=2, epsilon=1, delta=0.1, scale=np.array([1.0, 2.0]))
        for made in (m, free):
            for twin in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), dataclasses.replace(made)):
                assert (twin, hash(twin)) == (made, hash(made))
            with pytest.raises(dataclasses.FrozenInstanceError):
                made.epsilon = 2.0
        assert m.privacy == m.privacy_map(1) == Privacy(0.5)
        assert free.privacy == Privacy(1.0, 0.1)
        assert (m.grids, mechanism().grids) == ((GRID, GRID), (GRID,))
        assert repr(m) == (
            "<NestedBoxes release of the coordinate-wise median within 3.0 on grids of 2 coordinates: epsilon = 0.5 "
            "(pure differential privacy) for one record replaced (the number of records is public)>"
        )
        assert "tested for a spread of 2.0: epsilon = 1, delta = 0.1" in repr(free)

    def test_scale(self):
        """Radii and corners are multiples of it."""
        x = normal(30, 2)
        scaled = mechanism(radius=1.5, scale=(2, 4)).law(x)
        for j, radius in enumerate((3, 6)):
            one = mechanism(radius=radius).law(x[:, [j]])
            np.testing.assert_array_equal(scaled.lower[:-1, [j]], one.lower[: len(scaled.lower) - 1])
        huber = mechanism(statistic=Huber(1.5), scale=4.0).law(x)
        np.testing.assert_array_equal(huber.lower, mechanism(statistic=Huber(6.0)).law(x).lower)

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"epsilon": 0}, ValueError, "epsilon must be positive"),
            ({"radius": -1}, ValueError, "radius must be at least 0"),
            ({"scale": 0}, ValueError, "scale must be positive"),
            ({"scale": [1, -1]}, ValueError, "each of scale must be positive"),
            ({"transform": [[1, 2]]}, ValueError, "transform must be a square matrix"),
            ({"transform": [[1, math.nan], [0, 1]]}, ValueError, "transform must be a square matrix of finite"),
            ({"transform": [[1, 2], [2, 4]]}, ValueError, "transform must be invertible"),
            ({"statistic": Sum()}, TypeError, "statistic must have an attack range"),
            ({"statistic": "median"}, TypeError, "statistic must have an attack range"),
            ({"grid": (0, 1)}, TypeError, r"grid must be a dpfast\.Grid, or one for each column"),
            ({"grid": []}, TypeError, r"grid must be a dpfast\.Grid, or one for each column"),
            ({"grid": [GRID] * 2, "scale": [1, 2, 3]}, ValueError, r"one number of columns \(scale: 3, grid: 2\)"),
            ({"scale": [1, 2], "transform": np.eye(3)}, ValueError, r"one number of columns \(scale: 2, transform: 3"),
        ],
    )
    def test_parameters(self, options, error, message):
        with pytest.raises(error, match=message):
            NestedBoxes(**{"grid": GRID, "epsilon": 1.0, **options})

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"delta": 0}, ValueError, "delta must be positive without bounds"),
            ({"delta": 1}, ValueError, "delta must be at least 0 and below 1"),
            ({"step": 0.3}, ValueError, "step must be a power of two"),
            ({"width": 0.5}, ValueError, r"width must be from 1 to 2\*\*51 steps, not 0\.5"),
            ({"width": math.inf}, ValueError, "width must be finite"),
            ({"radius": 2.0**51}, ValueError, r"radius must be at most 2\*\*50 steps"),
            ({"statistic": Mean()}, TypeError, "statistic must be an order statistic without bounds"),
            ({"epsilon": 1e-9}, ValueError, r"epsilon must be at least 2\*\*-28"),
            ({"scale": [1, 1], "transform": np.eye(3)}, ValueError, "one number of columns"),
        ],
    )
    def test_parameters_without_bounds(self, options, error, message):
        with pytest.raises(error, match=message):
            RangeFreeBoxes(**{"step": 1.0, "width": 2.0, "epsilon": 1.0, "delta": 0.1, **options})

    def test_columns(self):
        for options in ({"scale": [1, 2]}, {"transform": np.eye(2)}, {"grid": [GRID] * 2}):
            with pytest.raises(ValueError, match=f"X must have 2 columns, like {next(iter(options))}, not 3"):
                mechanism(**options)(np.zeros((4, 3)))

    @pytest.mark.parametrize("workers", [2, 3, 8])
    def test_threads_read_the_same_boxes(self, workers):
        x = normal(400, 5)
        for m in (mechanism(), RangeFreeBoxes(step=2**-10, width=64.0, epsilon=4.0, delta=0.1)):
            one, several = m.law(x), m.law(x, workers=workers)
            for law in (one, several):
                assert m(x, rng=PCG64(1), workers=workers).tolist() == law.value(law.sample(rng=PCG64(1))).tolist()
            one, several = getattr(one, "law", one), getattr(several, "law", several)
            np.testing.assert_array_equal(one.lower, several.lower)
            np.testing.assert_array_equal(one.upper, several.upper)

    def test_least_epsilon(self):
        """Half of it is 0 in doubles: all boxes but the last weigh nothing."""
        law = mechanism(epsilon=5e-324).law(np.full((5, 2), 3.0))
        assert law.logpmf([3, 3]) == law.logpmf([0, 0]) == pytest.approx(-2 * math.log(GRID.size))


class TestRobustMean:
    def test_bounds(self):
        x = normal(300, 2)
        for bounds, grid in (
            ((0, 100), Grid(0, 100)),
            (((0, 100), (20, 80)), (Grid(0, 100), Grid(20, 80))),
            (np.array([[0, 100], [20, 80]]), (Grid(0, 100), Grid(20, 80))),
        ):
            release = robust_mean(x, bounds=bounds, epsilon=1.0, rng=PCG64(1))
            np.testing.assert_array_equal(release, mechanism(grid=grid)(x, rng=PCG64(1)))
            np.testing.assert_array_equal(release, robust_mean(x, grid=grid, epsilon=1.0, rng=PCG64(1), workers=2))
        whole = robust_mean(x.astype(int), bounds=(0, 100), epsilon=1.0)
        assert np.all(whole == np.rint(whole))

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({}, TypeError, "give bounds"),
            ({"delta": 0.1}, TypeError, "give bounds"),
            ({"step": 1.0, "width": 2.0}, TypeError, "give bounds"),
            ({"bounds": (0, 1), "grid": GRID}, TypeError, "not both"),
            ({"bounds": (0, 1), "delta": 0.1}, ValueError, "delta must be 0 with bounds"),
            ({"bounds": (0, 1), "step": 1.0}, TypeError, "step and width are for releases without bounds"),
            ({"bounds": (0, 1, 2)}, TypeError, "bounds must be a pair"),
            ({"bounds": ((0, 1), (1, 0))}, ValueError, "lower must be below upper"),
        ],
    )
    def test_parameters(self, options, error, message):
        with pytest.raises(error, match=message):
            robust_mean(Untouchable(), epsilon=1.0, **options)

    def test_against_adversaries(self):
        """A tenth of the rows at a corner of the bounds: off by no more than medians are."""
        x = default_rng(1).normal(size=(20_000, 10))
        x[::10] = 1e6
        release = robust_mean(x, bounds=(-1e6, 1e6), epsilon=1.0, rng=PCG64(1))
        assert np.abs(release - np.median(x, axis=0)).max() < 0.03


class TestScore:
    @settings(max_examples=60)
    @given(
        st.lists(st.integers(0, 3), min_size=1, max_size=3),
        st.sampled_from([Median(), Quantile(0.3), Huber(1.0)]),
        st.sampled_from([(0, 0), (0.5, 0.5), (2, 1), (1.5, 0.75), (-1, 1), (1, 0)]),
    )
    def test_is_the_least_number_of_replaced_records(self, x, statistic, target):
        grid, (theta, radius) = Grid(0, 3, step=1), target
        least = math.inf
        for y in itertools.product(range(4), repeat=len(x)):
            value = InverseSensitivity(statistic, grid=grid, epsilon=1.0).law(y).lower[0]
            if abs(value - theta) <= radius:
                least = min(least, sum(a != b for a, b in zip(x, y, strict=True)))
        assert robust.score(statistic, x, theta, radius, grid=grid) == least

    def test_sums_and_ranges(self):
        x, grid = [0, 2, 4, 8, 10], Grid(0, 10, step=1)
        assert robust.score(Mean(), x, 4.8, 1e-9, grid=grid) == 0
        assert robust.score(Mean(), x, 6.8, 1e-9, grid=grid) == 1
        assert robust.score(InterquartileRange(), x, 6.0, grid=grid) == 0
        assert robust.score(Median(), x, -1.0, 1.0, grid=grid) == 2

    def test_parameters(self):
        for bad in ({"theta": math.nan}, {"radius": -1}, {"estimator": Sum()}, {"theta": 120.0}):
            arguments = {"estimator": Median(), "theta": 1.0, "radius": 0.0, **bad}
            with pytest.raises((TypeError, ValueError), match=r"theta|radius|estimator"):
                robust.score(x=[1, 2], grid=GRID, **arguments)
        with pytest.raises(TypeError, match=r"grid must be a dpfast\.Grid, not tuple"):
            robust.score(Median(), [1, 2], 1.0, grid=(0, 4))


class TestReduce:
    @pytest.mark.slow
    def test_frequencies(self):
        scores = {"a": 3, "b": 0, "c": 1.7, "d": 1, "e": math.inf, "f": math.nan}
        counts = dict.fromkeys(scores, 0)
        source = PCG64(1)
        for _ in range(20_000):
            counts[robust.reduce(scores.get, scores, epsilon=1.5, rng=source)] += 1
        weights = {c: math.exp(-0.75 * s) for c, s in {"a": 3, "b": 0, "c": 1.7, "d": 1, "e": 99, "f": 99}.items()}
        for factor, wrong in ((1.0, False), (0.9, True), (1.1, True)):
            p = np.array([w**factor for w in weights.values()])
            assert chi_square_rejects(list(counts.values()), p / p.sum()) == wrong

    def test_extremes(self):
        assert robust.reduce(lambda c: 7, ["only"], epsilon=1.0) == "only"
        assert robust.reduce(lambda c: abs(c - 4), range(9), epsilon=1e3) == 4
        assert {robust.reduce(lambda c: math.inf, "ab", epsilon=1.0, rng=PCG64(s)) for s in range(40)} == {"a", "b"}
        assert robust.reduce(lambda c: 10**400 * c, range(3), epsilon=1e-6) == 0
        assert robust.reduce(lambda c: Fraction(10**400 * c), range(3), epsilon=1e-6) == 0
        assert robust.reduce(lambda c: [None, np.array(3)][c], range(2), epsilon=1.0) == 1
        with pytest.raises(ValueError, match="candidates must not be empty"):
            robust.reduce(float, [], epsilon=1.0)
        with pytest.raises(ValueError, match="epsilon must be positive"):
            robust.reduce(float, [1], epsilon=0)
        with pytest.raises(TypeError, match="score must be a function of a candidate, not list"):
            robust.reduce([0, 1], [0, 1], epsilon=1)

    def test_scores_count_exactly(self):
        """A score that changes by 1 must not change by more on its way; as doubles these do."""
        low, high = Fraction(2, 3), Fraction(5, 3)
        assert reduction._distance(high) - reduction._distance(low) == 1
        assert Fraction(float(high)) - Fraction(float(low)) > 1
        assert reduction._distance(np.array(3)) == 3
        for exact in (Fraction(2, 3), 2**60 + 1, 2**70 + 1):
            assert reduction._distance(np.array(exact)) == exact
        assert reduction._distance(math.nan) == reduction._distance(None) == math.inf

    def test_is_the_median(self):
        """With the score of the median the choice among all points of the grid is the mechanism on that grid."""
        x, grid = [1, 1, 4, 7], Grid(0, 8, step=1)
        scores = {c: robust.score(Median(), x, c, grid=grid) for c in range(9)}
        law = InverseSensitivity(Median(), grid=grid, epsilon=1.0).law(x)
        assert law.score(np.arange(9)).tolist() == list(scores.values())


class TestError:
    MECHANISM = NestedBoxes(grid=Grid(-1000, 1000), epsilon=1.0)

    @pytest.mark.slow
    def test_covers_normal_records(self):
        """In data units, contaminated or not; the bound is at most six times what happens."""
        rng = np.random.default_rng(3)
        for n, d, deviation in ((2000, 2, 3.0), (8000, 5, 0.5)):
            bound = self.MECHANISM.error(n, deviation=deviation, dimension=d)
            errors = [np.abs(self.MECHANISM(rng.normal(0, deviation, (n, d)), rng=rng)).max() for _ in range(40)]
            assert max(errors) < bound < 6 * max(errors)
            assert bound < self.MECHANISM.error(n, deviation=deviation, dimension=d, contamination=0.05)

    def test_is_the_theorem(self):
        grids = (Grid(0, 100), Grid(0, 400))
        found = NestedBoxes(grid=grids, epsilon=0.5).error(5000, deviation=2.0)
        expected = dpf.theory.gaussian_mean_error(
            5000, dimension=2, epsilon=0.5, width=200.0, step=max(g.step for g in grids) / 2
        )
        assert found == 2 * expected

    def test_sample_size_is_the_inverse(self):
        n = self.MECHANISM.sample_size(0.5, deviation=1.0, dimension=3)
        assert self.MECHANISM.error(n, deviation=1.0, dimension=3) <= 0.5
        assert self.MECHANISM.error(n - 1, deviation=1.0, dimension=3) > 0.5

    def test_what_no_theory_tells(self):
        with pytest.raises(TypeError, match="dimension="):
            self.MECHANISM.error(100, deviation=1.0)
        for options in ({"statistic": Mean()}, {"radius": 1.0}, {"scale": 2.0}):
            with pytest.raises(TypeError, match="medians"):
                NestedBoxes(**{"grid": Grid(0, 1), "epsilon": 1.0, **options}).error(100, deviation=1.0, dimension=2)


def test_exports():
    assert (dpf.robust.reduce, dpf.robust_mean, dpf.NestedBoxes) == (
        robust.reduce,
        robust.robust_mean,
        robust.NestedBoxes,
    )
