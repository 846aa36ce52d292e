"""Nested boxes: laws against plain loops, draws against laws, inputs, parameters."""

import copy
import dataclasses
import inspect
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
from dpfast import Grid, InverseSensitivity, NestedBoxes, Privacy, robust, robust_mean
from dpfast._kernels import _boxes
from dpfast.robust import RangeFreeBoxes, boxes, columns
from dpfast.statistics import Huber, Mean, Median, Sum, TrimmedMean
from tests.cases import every
from tests.reference import boxes as reference
from tests.reference.statistics import RANK_CASES, one_of_each
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects
from tests.untouchable import Untouchable

pytestmark = pytest.mark.kernel

GRID = Grid(0, 100, step=1)
SMALL = (Grid(0, 3, step=1), Grid(0, 5, step=1))
STATISTICS = one_of_each(RANK_CASES)


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

    @every("statistic", STATISTICS, ids=str)
    @every("radius", [0.0, 2.0])
    def test_one_column_is_inverse_sensitivity(self, statistic, radius):
        """The same law, and the same release for the same words, on a grid without ties."""
        x, grid = normal(61, 1), Grid(0, 100, step=2.0**-7)
        one = InverseSensitivity(statistic, grid=grid, epsilon=0.7, radius=radius, measure="uniform")
        boxes = mechanism(0.7, statistic, grid=grid, radius=radius)
        assert one.law(x[:, 0]).depth == 0
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

    @every("statistic", STATISTICS, ids=str)
    @every("kept", [0, 3, 10**9])
    def test_a_call_is_a_draw_of_the_law(self, statistic, kept, monkeypatch):
        """The same words give the same release, for any kept boxes and any reader of the columns."""
        monkeypatch.setattr(boxes, "_KEPT", 4 * kept)
        x = normal(40, 4)
        if not kept:
            x = x[:15]
        m = mechanism(2.0, statistic, grid=(GRID, Grid(0, 64, step=0.25), GRID, Grid(-100, 100)), radius=1.0)
        law = m.law(x)
        for seed in range(5):
            expected = law.value(law.sample(rng=PCG64(seed)))
            np.testing.assert_array_equal(m(x, rng=PCG64(seed)), expected)
            np.testing.assert_array_equal(m(x, rng=PCG64(seed), workers=3), expected)

    def test_anywhere(self):
        """At a small epsilon the last level is drawn: uniform, for any kept boxes."""
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


class TestInputs:
    X: ClassVar = np.random.default_rng(4).integers(0, 100, (37, 5))

    @every(
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
    @every("statistic", [Median(), TrimmedMean(0.1)], ids=str)
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
        """T10, T14: NaN, infinities and values beyond the bounds act through their codes only."""
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
        """With exact products, every step works on the transformed records, and the inverse comes last."""
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

    @every(
        "options, error, message",
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

    @every(
        "options, error, message",
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
        """Half of it is 0 in doubles: all boxes but the last have weight 0."""
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

    @every(
        "options, error, message",
        [
            ({}, TypeError, "give bounds"),
            ({"delta": 0.1}, TypeError, "give bounds"),
            ({"step": 1.0, "width": 2.0}, TypeError, "give bounds"),
            ({"bounds": (0, 1), "grid": GRID}, TypeError, "not both"),
            ({"bounds": (0, 1), "method": "median"}, ValueError, "method must be one of"),
            ({"bounds": (0, 1), "delta": 0.1, "epsilon": 0.0}, ValueError, "epsilon must be positive"),
            ({"bounds": (0, 1), "step": 1.0}, TypeError, "step and width are for releases without bounds"),
            ({"bounds": (0, 1, 2)}, ValueError, "bounds must be a pair"),
            ({"bounds": ((0, 1), (1, 0))}, ValueError, "lower must be below upper"),
        ],
    )
    def test_parameters(self, options, error, message):
        with pytest.raises(error, match=message):
            robust_mean(Untouchable(), **{"epsilon": 1.0, **options})

    def test_against_adversaries(self):
        """A tenth of the rows at a corner of the bounds: off by no more than medians are."""
        x = default_rng(1).normal(size=(20_000, 10))
        x[::10] = 1e6
        release = robust_mean(x, bounds=(-1e6, 1e6), epsilon=1.0, rng=PCG64(1))
        assert np.abs(release - np.median(x, axis=0)).max() < 0.03


def test_exports():
    assert (dpf.robust.reduce, inspect.unwrap(dpf.robust_mean), dpf.NestedBoxes) == (
        robust.reduce,
        robust.robust_mean,
        robust.NestedBoxes,
    )
