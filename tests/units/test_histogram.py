"""Histograms: counts against a slow twin, laws against enumeration, privacy on every small data set."""

import itertools
import math
import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64, Generator

import dpfast as dpf
from dpfast import Grid, Privacy
from dpfast._kernels import _bins
from dpfast.densities import Cells, PerturbedHistogram, SmoothedHistogram
from dpfast.densities.weights import nearest_with_sum
from dpfast.laws import ZeroSumLaplace
from tests.cases import every
from tests.reference import bins as reference
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects
from tests.windows import Windowed

pytestmark = pytest.mark.kernel

SPECIAL = [0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, -5e-324, 1e308, -1e308, 0.5, 1.0, 1e-300]
GRIDS = [
    Grid(0, 1),
    Grid(-3, 5, step=0.25, missing=1.0),
    Grid(0, 7, step=1),
    Grid(0, 8, step=1, missing=3),
    Grid(1e15, 1e15 + 64, step=0.125),
    Grid(-1e308, 1e308),
    Grid(0, 1e-320),
    Grid(2.0**52 + 2, 2.0**53, step=1),
    Grid(-(2.0**41), 2.0**41, step=2.0**-9),
    Grid(1e6, 1e6 + 1),
    Grid(-1, 2**16, step=0.5),
]


def around(grid, bins):
    """Doubles on and next to every threshold, half a step off the edges, and beyond the bounds."""
    codes = Cells((grid,), (bins,)).codes[0] + grid.first
    middles = np.concatenate([(codes - 0.5) * grid.step, codes * grid.step])
    with np.errstate(over="ignore"):
        near = np.concatenate([middles, np.nextafter(middles, -np.inf), np.nextafter(middles, np.inf)])
    return np.concatenate([near, SPECIAL])


class TestBins:
    @every("grid", GRIDS)
    def test_the_bin_of_a_record_is_that_of_its_code(self, grid):
        for bins in sorted({1, 2, 3, 5, 7, min(64, grid.size - 1), min(1000, grid.size - 1)}):
            cells = Cells((grid,), (bins,))
            x = around(grid, bins)
            found = np.empty(x.size, np.int32)
            _bins.locate(x[:, None], cells.axes, found)
            expected = np.searchsorted(cells.codes[0], grid.encode(x), side="right") - 1
            np.testing.assert_array_equal(found, np.minimum(expected, bins - 1))
            assert cells.codes[0].tolist() == reference.edges(grid, bins)

    def test_guesses_and_searches_are_both_met(self):
        every = [Cells((grid,), (min(511, grid.size - 1),)).axes[0] for grid in GRIDS]
        assert {axis.certified for axis in every} == {True, False}
        assert Cells((Grid(0, 1e6),), (1000,)).axes[0].certified

    def test_an_uncertified_guess_is_wrong(self):
        """Positive control: the guess of bins at 1e15 falls between thresholds as its rounding likes."""
        grid = Grid(1e15, 1e15 + 64, step=0.125)
        x = grid.lower + np.arange(0, 64, 0.125)
        lower, scale = grid.lower - grid.step / 2, 511 / (64 + grid.step)
        guess = ((x - lower) * scale).astype(int)
        exact = np.minimum(np.searchsorted(Cells((grid,), (511,)).codes[0], grid.encode(x), side="right") - 1, 510)
        assert np.abs(guess - exact).max() == 1

    @given(st.data())
    def test_counts_match_the_slow_twin(self, data):
        r = data.draw(st.integers(1, 4))
        grids = tuple(data.draw(st.sampled_from(GRIDS)) for _ in range(r))
        bins = tuple(data.draw(st.integers(1, min(7, grid.size - 1))) for grid in grids)
        values = st.floats(width=32) | st.sampled_from([0.0, 1.0, 5.0, math.nan, math.inf, -math.inf])
        rows = data.draw(st.lists(st.tuples(*[values] * r), min_size=1, max_size=20))
        kinds = [np.float64, np.float32]
        if all(math.isfinite(v) and v == int(v) and abs(v) < 100 for row in rows for v in row):
            kinds += [np.int64, np.int16, np.int8]
        x = np.array(rows, data.draw(st.sampled_from(kinds))).reshape(len(rows), r)
        twisted = data.draw(
            st.sampled_from(
                [
                    lambda x: x,
                    np.asfortranarray,
                    lambda x: np.repeat(x, 2, axis=0)[::2],
                    lambda x: x[::-1][::-1],
                    lambda x: np.concatenate([x, x], axis=1)[:, :r],
                ]
            )
        )(x)
        twisted.flags.writeable = False
        before = twisted.tobytes()
        found = Cells(grids, bins).count(twisted, 1)
        assert found.shape == bins
        assert found.reshape(-1).tolist() == reference.counts(x.tolist(), grids, bins)
        assert twisted.tobytes() == before

    @every("kind", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"])
    @every("step", [0.5, 1.0, 8.0])
    def test_dtypes(self, kind, step):
        grid = Grid(0, 96, step=step)
        rng = np.random.default_rng(1)
        info = np.iinfo(kind) if kind[0] in "iu" else None
        x = rng.integers(0, 100, 5000).astype(kind)
        if info is not None:
            x[:3] = [info.min, info.max, info.max // 2]
        found = Cells((grid,), (5,)).count(x[:, None], 1)
        codes = grid.encode(x)
        edges = Cells((grid,), (5,)).codes[0]
        assert found.tolist() == np.bincount(np.searchsorted(edges[1:-1], codes, side="right"), minlength=5).tolist()

    @pytest.mark.parametrize("bins", [(3,), (5000,), (70, 90)])
    def test_threads_give_the_same_counts(self, bins):
        x = np.random.default_rng(1).random((700_001, len(bins)))
        cells = Cells((Grid(0, 1),) * len(bins), bins)
        alone = cells.count(x, 1)
        assert alone.sum() == len(x)
        np.testing.assert_array_equal(alone, cells.count(x, 2))
        np.testing.assert_array_equal(alone, cells.count(x[::-1], 7))
        expected, _ = np.histogramdd(
            np.stack([g.encode(c) for g, c in zip(cells.grids, x.T, strict=True)]).T, cells.codes
        )
        np.testing.assert_array_equal(alone, expected)

    def test_wrong_arguments_of_the_kernel(self):
        axes = Cells((Grid(0, 1),), (3,)).axes
        with pytest.raises(ValueError, match="a column for each"):
            _bins.count(np.zeros((3, 2)), axes, np.empty(3, np.int64))
        with pytest.raises(TypeError, match="no keys are defined"):
            _bins.count(np.zeros((3, 1), "O"), axes, np.empty(3, np.int64))


class TestDraws:
    def test_cells_match_the_words(self):
        rng = np.random.default_rng(1)
        for weights in ([5], [0, 3, 0, 0, 1, 0], rng.integers(0, 3, 500), rng.integers(0, 2**50, 999), [2**62, 1, 0]):
            weights = np.asarray(weights, np.int64)
            words = [0, 1, 2**63, 2**64 - 1, *rng.integers(0, 2**64, 500, dtype=np.uint64).tolist()]
            source, out = ScriptedBits(words, PCG64(1)), np.empty(len(words), np.int32)
            _bins.WeightedCells(weights).fill(source, out)
            sums, total = np.cumsum(weights), int(weights.sum())
            ranks = [word * total >> 64 for word in words]
            fair = [(word * total) % 2**64 >= 2**64 % total for word in words]
            expected = np.searchsorted(sums, ranks, side="right")
            assert source.used >= len(words) + fair.count(False)
            np.testing.assert_array_equal(out[fair], expected[fair])
            assert (weights[out] > 0).all()

    def test_points_match_the_words(self):
        rng = np.random.default_rng(2)
        edges = np.array([0, 1, 5, 1000, 2**52], np.int64)
        cells = rng.integers(0, 12, 300).astype(np.int32)  # 4 bins of an axis that varies every 3 cells
        words = rng.integers(0, 2**64, 300, dtype=np.uint64).tolist()
        out = np.zeros((300, 2))
        _bins.fill_points(ScriptedBits(words), cells, edges, 3, -7, 0.5, out[:, 1])
        expected = []
        for c, word in zip(cells.tolist(), words, strict=True):
            b = c // 3 % 4
            width = int(edges[b + 1] - edges[b]) + (b == 3)
            expected.append((int(edges[b]) + (word * width >> 64) - 7) * 0.5)
        np.testing.assert_array_equal(out[:, 1], expected)
        assert (out[:, 0] == 0).all()
        alone = np.empty(300)
        _bins.fill_points(ScriptedBits(words), cells // 3 % 4, edges, 0, -7, 0.5, alone)
        np.testing.assert_array_equal(alone, expected)

    def test_samples_of_a_histogram(self):
        grid = Grid(0, 5, step=0.5)
        released = PerturbedHistogram(3, grid=grid, epsilon=1.0)([0.5] * 60 + [2.5] * 30 + [4.5] * 70, rng=PCG64(1))
        law = np.repeat(released.weights / released.weights.sum() / [3, 4, 4], [3, 4, 4])
        draws = (2 * released.sample(200_000, PCG64(2))).astype(int)
        assert not chi_square_rejects(np.bincount(draws, minlength=11), law)
        for factor in (0.9, 1.1):
            wrong = law * np.repeat([factor, 1, 1], [3, 4, 4])
            assert chi_square_rejects(np.bincount(draws, minlength=11), wrong / wrong.sum())

    def test_samples_of_several_columns(self):
        grids = (Grid(0, 3, step=1), Grid(0, 2, step=0.5), Grid(0, 1, step=1))
        rows = [(0, 0, 0)] * 50 + [(3, 2, 1)] * 80 + [(2, 0.5, 0)] * 70
        released = PerturbedHistogram((2, 2, 1), grid=grids, epsilon=2.0)(rows, rng=PCG64(1))
        draws = (released.sample(100_000, PCG64(3)) * [1, 2, 1]).astype(int)
        found = np.histogramdd(draws, [np.arange(5), np.arange(6), np.arange(3)])[0]
        points = np.multiply.outer(np.multiply.outer([2, 2, 2, 2], [2, 2, 3, 3, 3]), [2, 2])
        law = released.weights[np.ix_([0, 0, 1, 1], [0, 0, 1, 1, 1], [0, 0])] / released.weights.sum() / points
        assert not chi_square_rejects(found.ravel(), law.ravel())
        assert draws.shape == (100_000, 3)

    def test_draws_do_not_depend_on_threads_and_do_on_the_call(self):
        released = dpf.histogram(np.arange(100), 10, bounds=(0, 100), epsilon=1.0, rng=PCG64(1))
        k = 3 * 2**16 + 5
        rng = Generator(PCG64(2))
        first, again = released.sample(k, rng), released.sample(k, rng)
        np.testing.assert_array_equal(first, released.sample(k, PCG64(2), workers=3))
        assert (first != again).any()
        assert released.sample(0).shape == (0,)
        assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 6 / math.sqrt(k)


class TestPerturbed:
    def test_the_law_is_a_product_of_discrete_laplaces(self):
        mechanism = PerturbedHistogram((1, 2), grid=(Grid(0, 1), Grid(0, 1)), epsilon=0.35, neighbors="add-remove")
        law = mechanism.law(np.array([[0.1, 0.1], [0.2, 0.7]]))
        assert law.center.tolist() == [[1, 1]]
        window = np.array(list(itertools.product(range(-120, 121), repeat=2))).reshape(-1, 1, 2)
        p = np.exp(law.logpmf(window))
        assert abs(p.sum() - 1) < 1e-12
        assert abs((p * (window[:, 0, 0] - 1) ** 2).sum() - dpf.theory.noise_variance(0.7)) < 1e-9
        ratio = law.logpmf(np.array([[1, 1]])) - law.logpmf(np.array([[4, -1]]))
        assert abs(float(ratio) - 5 * 0.35) < 1e-12

    def test_samples_have_the_law(self):
        mechanism = PerturbedHistogram(2, grid=Grid(0, 1), epsilon=0.5, neighbors="add-remove")
        counts = mechanism.release(np.array([0.1, 0.1, 0.9]), size=100_000, rng=PCG64(1))
        assert counts.shape == (100_000, 2)
        z = np.arange(-60, 61)
        for column, exact in ((0, 2), (1, 1)):
            found = np.bincount(np.clip(counts[:, column] - exact, -60, 60) + 60, minlength=121)
            for factor, wrong in ((1.0, False), (0.9, True), (1.1, True)):
                s = 2.0 * factor
                assert chi_square_rejects(found, math.tanh(0.5 / s) * np.exp(-np.abs(z) / s)) == wrong
        assert abs(np.corrcoef(counts.T)[0, 1]) < 6 / math.sqrt(100_000)

    @staticmethod
    def losses(laws, pairs, reach=8):
        """The largest log-ratio of every pair on a window; beyond the window the ratio is constant.

        Counts whose noise sums to 0 all have the same sum.
        """
        first = next(iter(laws.values()))
        window = np.array(list(itertools.product(range(-reach, reach + 1), repeat=first.center.size)))
        if isinstance(first.noise, ZeroSumLaplace):
            window = window[window.sum(axis=1) == first.center.sum()]
        logs = {data: law.logpmf(window) for data, law in laws.items()}
        return [(logs[a] - logs[b]).max() for a, b in pairs]

    @every("bins, step", [(1, 1), (2, 1), (4, 1), (3, 2)])
    @every("epsilon", [1e-3, 1.0, 20.0])
    def test_privacy_of_one_replaced_record_on_every_small_data_set(self, epsilon, bins, step):
        mechanism = PerturbedHistogram(bins, grid=Grid(0, 3 * step, step=step), epsilon=epsilon)
        assert mechanism.privacy == Privacy(epsilon)
        every = list(itertools.product(range(0, 4 * step, step), repeat=3 if bins < 4 else 2))
        laws = {data: mechanism.law(data) for data in every}
        pairs = [(a, b) for a in every for b in every if sum(x != y for x, y in zip(a, b, strict=True)) == 1]
        losses = self.losses(laws, pairs)
        assert max(losses) <= epsilon + 1e-12
        assert abs(max(losses) - (epsilon if bins > 1 else 0)) < 1e-12

    @pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
    def test_certificate(self, neighbors):
        """On a window that leaves out less than 1e-9 of every law; the second loses 2 epsilon under replacement."""
        mechanism = PerturbedHistogram(2, grid=Grid(0, 3, step=1), epsilon=1.0, neighbors=neighbors)
        certificate = dpf.audit.verify(Windowed(mechanism, 46))
        assert certificate.holds == (neighbors == "replace-one")
        assert abs(certificate.epsilon - (1 if certificate.holds else 2)) < 1e-12

    def test_privacy_of_one_added_record_on_every_small_data_set(self):
        mechanism = PerturbedHistogram(4, grid=Grid(0, 3, step=1), epsilon=1.0, neighbors="add-remove")
        assert mechanism.privacy == Privacy(1.0, 0.0, "add-remove")
        every = [data for n in range(4) for data in itertools.product(range(4), repeat=n)]
        laws = {data: mechanism.law(np.array(data)) for data in every}
        pairs = [(a, (*a, v)) for a in every if len(a) < 3 for v in range(4)]
        losses = self.losses(laws, [*pairs, *(pair[::-1] for pair in pairs)])
        assert abs(max(losses) - 1) < 1e-12

    def test_control_the_scale_of_added_records_does_not_do_for_replaced_ones(self):
        mechanism = PerturbedHistogram(4, grid=Grid(0, 3, step=1), epsilon=1.0, neighbors="add-remove")
        laws = {data: mechanism.law(data) for data in ((0, 0), (0, 3))}
        [loss] = self.losses(laws, [((0, 0), (0, 3))])
        assert abs(loss - 2) < 1e-12

    def test_what_is_clamped_is_public(self):
        """Noise near 2**61: sums are clamped where neighbours clamp alike, and the weights' total fits 64 bits."""
        mechanism = PerturbedHistogram(70, grid=Grid(0, 1), epsilon=2.0**-55)
        counts = mechanism.release([0.5], size=100, rng=PCG64(1))
        assert np.abs(counts).max() <= 2**62 // 70
        for seed in range(5):
            released = mechanism([0.5] * 5, rng=PCG64(seed))
            assert 0 < released.weights.sum() < 2**62
            assert released.sample(5, PCG64(1)).shape == (5,)

    def test_a_release(self):
        x = np.random.default_rng(1).random(10_000)
        released = dpf.histogram(x, 20, bounds=(0, 1), epsilon=1.0, rng=PCG64(1))
        exact = np.histogram(x, released.edges)[0]
        assert np.abs(released.counts - exact).max() < 80
        assert released.n == 10_000
        assert released.counts.dtype == released.weights.dtype == np.int64
        assert not released.counts.flags.writeable
        assert abs(np.sum(released.density * np.diff(released.edges)) - 1) < 1e-12
        assert "10000 records in 20 bins: epsilon = 1" in repr(released)
        twin = pickle.loads(pickle.dumps(released))
        np.testing.assert_array_equal(twin.counts, released.counts)
        assert (twin.cells, twin.privacy) == (released.cells, released.privacy)


class TestHistogram:
    @staticmethod
    def of(weights, grid, **options):
        mechanism = PerturbedHistogram(len(weights), grid=grid, epsilon=1.0, **options)
        return mechanism._histogram(np.array(weights), n=max(sum(weights), 1))

    def test_functions_of_one_column(self):
        released = self.of([0, 3, 0, 1, -4], Grid(0, 10, step=0.5), consistency="clip")
        assert released.weights.tolist() == [0, 3, 0, 1, 0]
        assert released.edges.tolist() == [0, 2, 4, 6, 8, 10]
        np.testing.assert_allclose(released.density, [0, 0.375, 0, 0.125, 0])
        np.testing.assert_allclose(
            released.pdf([-1, 0, 2, 3.9, 7, 10, 10.1, math.nan]), [0, 0, 0.375, 0.375, 0.125, 0, 0, math.nan]
        )
        np.testing.assert_allclose(released.cdf([-1, 2, 3, 4, 5, 7, 99]), [0, 0, 0.375, 0.75, 0.75, 0.875, 1])
        np.testing.assert_allclose(released.quantile([0, 0.375, 0.75, 0.875, 1]), [2, 3, 4, 7, 8])
        assert released.quantile(0.75) == 4
        assert {type(f(0.5)) for f in (released.pdf, released.cdf, released.quantile)} == {float}
        assert {f([[0.5]]).shape for f in (released.pdf, released.cdf, released.quantile)} == {(1, 1)}
        np.testing.assert_array_equal(np.isnan(released.quantile([0.5, math.nan, -0.1, 1.1])), [0, 1, 1, 1])
        assert math.isnan(released.cdf(math.nan))
        q = np.linspace(0.001, 1, 500)
        np.testing.assert_allclose(released.cdf(released.quantile(q)), q)

    def test_never_changes_and_pickles(self):
        counts = np.array([3, -1, 4])
        released = PerturbedHistogram(3, grid=Grid(0, 1), epsilon=1.0).law([0.5]).value(counts)
        assert counts.flags.writeable
        counts[0] = 7
        assert released.counts[0] == 3
        twin = pickle.loads(pickle.dumps(released))
        for each in (released, twin):
            for array in (each.counts, each.weights, each.density, each.edges):
                with pytest.raises(ValueError, match="read-only"):
                    array[0] = 1
        assert repr(twin) == repr(released)
        np.testing.assert_array_equal(twin.sample(5, PCG64(1)), released.sample(5, PCG64(1)))

    def test_functions_of_several_columns(self):
        x = np.random.default_rng(1).random((500, 2))
        released = dpf.histogram(x, (2, 3), bounds=[(0, 1), (0, 2)], epsilon=5.0, rng=PCG64(1))
        assert released.counts.shape == (2, 3)
        assert [edges.size for edges in released.edges] == [3, 4]
        volume = np.multiply.outer(np.diff(released.edges[0]), np.diff(released.edges[1]))
        assert abs((released.density * volume).sum() - 1) < 1e-12
        assert released.pdf([0.1, 1.9]) == released.density[0, 2]
        assert released.pdf([[0.1, 2.1], [-1, 0]]).tolist() == [0, 0]
        assert math.isnan(released.pdf([math.nan, 0.5]))
        for call in (lambda: released.cdf(0), lambda: released.quantile(0.5)):
            with pytest.raises(ValueError, match="support one column only"):
                call()
        with pytest.raises(ValueError, match="2 columns"):
            released.pdf([0.1, 0.2, 0.3])

    def test_all_counts_clipped_gives_the_uniform_density(self):
        released = self.of([-1, -5, 0], Grid(0, 1), consistency="clip")
        assert released.weights.tolist() == [1, 1, 1]
        np.testing.assert_allclose(released.pdf([0.1, 0.9]), 1)

    @given(st.lists(st.integers(-20, 20), min_size=1, max_size=8), st.integers(1, 30))
    def test_simplex_is_the_nearest(self, noisy, n):
        nearest = nearest_with_sum(np.array(noisy), n)
        assert nearest.min() >= 0
        assert nearest.sum() == n
        assert int(((nearest - noisy) ** 2).sum()) == reference.nearest_with_sum(noisy, n)

    def test_simplex_of_large_counts(self):
        for noisy in ([2**61, -(2**61)], [-(2**61)] * 2, [2**60, 2**60 - 1]):
            nearest = nearest_with_sum(np.array(noisy), 10)
            assert (nearest.sum(), nearest.min() >= 0) == (10, True)

    def test_simplex_keeps_n(self):
        released = dpf.histogram(range(50), 8, bounds=(0, 49), epsilon=0.1, consistency="simplex", rng=PCG64(1))
        assert released.weights.sum() == 50

    def test_where_noise_dominates(self):
        """8 m^2 / (n epsilon)^2 above 1: the uniform density would be better."""
        x = [0.5] * 100
        noisy = dpf.histogram(x, 20, bounds=(0, 1), epsilon=0.1, rng=PCG64(1))
        assert noisy.noise_dominates
        assert "noise exceeds" in repr(noisy)
        assert noisy.noise_error == (20 / 100) ** 2 * dpf.theory.noise_variance(0.1, cells=20)
        assert not dpf.histogram(x, 3, bounds=(0, 1), epsilon=0.1, rng=PCG64(1)).noise_dominates
        others = [dpf.histogram([v] * 100, 20, bounds=(0, 1), epsilon=0.1, rng=PCG64(1)) for v in (0, math.nan)]
        assert {other.noise_error for other in others} == {noisy.noise_error}

    def test_n_is_kept_private_where_records_are_added(self):
        for x in ([], [0.5], [0.5] * 9):
            x = np.array(x, float)
            released = dpf.histogram(x, 4, bounds=(0, 1), epsilon=1.0, neighbors="add-remove", rng=PCG64(1))
            assert released.n is None
            assert released.noise_error == (4 / released.weights.sum()) ** 2 * dpf.theory.noise_variance(
                1.0, neighbors="add-remove"
            )
            assert released.error(roughness=1.0) > 0

    def test_error_is_predicted(self):
        """p = 1/2 + x, so R = 1: the mean over releases, before clipping."""
        rng, n, m = np.random.default_rng(1), 2000, 6
        mechanism = PerturbedHistogram(m, grid=Grid(0, 1), epsilon=0.2)
        expected = mechanism.error(n, roughness=1.0)
        shares = np.diff((lambda x: (x + x * x) / 2)(np.arange(m + 1) / m))
        errors = []
        for _ in range(400):
            x = (-1 + np.sqrt(1 + 8 * rng.random(n))) / 2
            q = mechanism.release(x, size=1, rng=rng)[0] / n
            errors.append(13 / 12 - 2 * m * (q * shares).sum() + m * (q * q).sum())
        assert abs(np.mean(errors) - (expected - 13 / 12 / n)) < 5 * np.std(errors) / 20
        assert mechanism([0.5] * n).error(roughness=1.0) == expected

    @pytest.mark.host
    def test_plot(self):
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("Agg")
        from matplotlib import pyplot

        _, ax = pyplot.subplots()
        released = dpf.histogram([[1, 2], [3, 4]], 2, bounds=(0, 4), epsilon=1.0, rng=PCG64(1))
        assert released.plot(ax) is ax
        assert self.of([1, 2], Grid(0, 1)).plot() is pyplot.gca()
        pyplot.close("all")
        column = dpf.histogram(np.repeat([1.0, 2.0, 6.0], 100), 2, bounds=(0, 8), epsilon=1.0, rng=PCG64(1))
        for height, unit_height in (("density", 300 * 4), ("count", 1), ("share", 300)):
            _, ax = pyplot.subplots()
            column.plot(ax, height=height)
            np.testing.assert_allclose(ax.patches[0].get_data().values, column.weights / unit_height)
            ends = np.array([segment[:, 1] for segment in ax.collections[0].get_segments()])
            np.testing.assert_allclose(ends, column.interval() / unit_height)
            assert ax.get_ylabel() == height
        with pytest.raises(ValueError, match="height must be"):
            column.plot(height="width")
        with pytest.raises(ValueError, match="one or two columns"):
            dpf.histogram([[1, 2, 3]], 2, bounds=(0, 4), epsilon=1.0).plot()
        pyplot.close("all")


BAD = {
    "neither": ({"bounds": None}, TypeError, "give either bounds"),
    "both": ({"grid": Grid(0, 1)}, TypeError, "give either bounds"),
    "no grid": ({"bounds": None, "grid": 5}, TypeError, "iterable|grid must be"),
    "grid of text": ({"bounds": None, "grid": ["x"]}, TypeError, "grid must be a dpfast.Grid"),
    "bounds in disorder": ({"bounds": (1, 0)}, ValueError, "lower must be below upper"),
    "too many bounds": ({"bounds": [(0, 1), (0, 1)]}, ValueError, "for one column or for each of 1, not for 2"),
    "epsilon": ({"epsilon": 0}, ValueError, "epsilon must be positive"),
    "tiny epsilon": ({"epsilon": 1e-20}, ValueError, "use a larger epsilon"),
    "no bins": ({"bins": 0}, ValueError, "bins must be at least 1"),
    "bins of text": ({"bins": "many"}, ValueError, "'auto', not 'many'"),
    "half a bin": ({"bins": 2.5}, TypeError, "bins must be an integer"),
    "bins of two": ({"bins": (2, 2)}, ValueError, "one for each of 1 columns"),
    "more bins than steps": ({"bins": 9, "bounds": None, "grid": Grid(0, 4, step=0.5)}, ValueError, "the 8 steps"),
    "more bins than numbers": ({"bins": 10, "bounds": None, "grid": Grid(0, 8, step=1)}, ValueError, "the 9 whole"),
    "too many cells": ({"bins": 2**24 + 1}, ValueError, "at most 2\\*\\*24 cells"),
    "workers": ({"workers": 0}, ValueError, "workers must be"),
    "rng": ({"rng": 5}, TypeError, "rng must be"),
}


@every("name", BAD)
@every("function", ["histogram", "synthesize"])
def test_bad_parameters(function, name):
    change, error, message = BAD[name]
    options = {"bounds": (0, 1), "epsilon": 1.0, "bins": 3, **change}
    call = partial(dpf.histogram, [0.5]) if function == "histogram" else partial(dpf.synthesize, [0.5], 2)
    with pytest.raises(error, match=message):
        call(**options)


@given(
    st.integers(1, 2**52 - 1).flatmap(lambda last: st.tuples(st.just(last), st.integers(1, min(last, 5000)))),
    st.sampled_from([1.0, 2.0]),
    st.data(),
)
def test_few_records_are_counted_by_their_codes(sizes, step, data):
    last, bins = sizes
    cells = Cells((Grid(0, last * step, step=step),), (bins,))
    codes = data.draw(st.lists(st.integers(0, last) | st.sampled_from(cells.codes[0].tolist()), max_size=20))
    x = np.array(codes, float)[:, None] * step
    counts = np.zeros(bins, np.int64)
    _bins.count(x, cells.axes, counts)
    np.testing.assert_array_equal(cells._count_few(x), counts)
    divided = last + (step == 1)
    assert cells.codes[0].tolist() == [*((2 * i * divided + bins) // (2 * bins) for i in range(bins)), last]


def test_no_error_state_ends_a_release():
    """An edge at 0 within the least bounds, whose neighbours are the least doubles."""
    with np.errstate(all="raise"):
        assert dpf.histogram([0.0], 2, bounds=(-(2.0**-1000), 2.0**-1000), epsilon=1.0).counts.shape == (2,)


def test_bad_parameters_of_one_function():
    for options, message in (
        ({"method": "smoothed"}, "method must be 'perturbed'"),
        ({"consistency": "mend"}, "consistency must be"),
        ({"neighbors": "local"}, "neighbors must be"),
        ({"noise": "gaussian"}, "delta must be positive for Gaussian noise"),
        ({"noise": "student-t"}, "noise must be one of"),
        ({"delta": 1.0}, "delta must be at least 0 and below 1"),
        ({"neighbors": "add-remove", "bins": "auto"}, "private here: give a number of bins"),
    ):
        with pytest.raises(ValueError, match=message):
            dpf.histogram([0.5], bounds=(0, 1), epsilon=1.0, **{"bins": 2, **options})
    for k, error in ((0, ValueError), (2.5, TypeError)):
        with pytest.raises(error, match="k must be"):
            dpf.synthesize([0.5], k, bounds=(0, 1), epsilon=1.0)


@pytest.mark.parametrize("x", [[], np.zeros((0, 2))])
def test_no_records(x):
    for call in (
        lambda: dpf.histogram(x, 2, bounds=(0, 1), epsilon=1.0),
        lambda: dpf.histogram(x, bounds=(0, 1), epsilon=1.0),
        lambda: dpf.synthesize(x, 2, bounds=(0, 1), epsilon=1.0),
        lambda: dpf.synthesize(x, 2, bounds=(0, 1), epsilon=1.0, method="smoothed"),
    ):
        with pytest.raises(ValueError, match="x is empty"):
            call()


@pytest.mark.parametrize("shape", [(3, 5), (2, 2, 2), (3, 0), ()])
def test_shapes_that_do_not_fit(shape):
    with pytest.raises(ValueError, match="X must have"):
        dpf.histogram(np.zeros(shape), 2, bounds=(0, 1), epsilon=1.0)
    with pytest.raises(ValueError, match="x must have 1 column, not shape"):
        PerturbedHistogram(2, grid=Grid(0, 1), epsilon=1.0)(np.zeros((3, 2)))


def test_mechanisms_are_frozen_hashable_and_picklable():
    for mechanism in (
        PerturbedHistogram([2, 3], grid=(Grid(0, 1), Grid(0, 2)), epsilon=1.0, consistency="simplex"),
        SmoothedHistogram(4, k=3, grid=Grid(0, 1), epsilon=1.0),
    ):
        twin = pickle.loads(pickle.dumps(mechanism))
        assert twin == mechanism
        assert hash(twin) == hash(mechanism)
        assert "epsilon = 1" in repr(mechanism)
        assert mechanism.privacy_map(2).epsilon == 2
        with pytest.raises(AttributeError):
            mechanism.epsilon = 3.0


@every("special", SPECIAL)
def test_a_special_record_is_its_clamped_twin(special):
    """T14, and T10: shapes and types are the same for all data."""
    grid = Grid(0, 1, step=2.0**-10, missing=0.25)
    twin = 0.25 if math.isnan(special) else min(max(special, 0.0), 1.0)
    rest = np.random.default_rng(1).random(50)
    one, other = np.append(rest, special), np.append(rest, twin)
    for bins in (1, 4, 1000):
        a, b = (dpf.histogram(x, bins, grid=grid, epsilon=1.0, rng=PCG64(1)) for x in (one, other))
        np.testing.assert_array_equal(a.counts, b.counts)
        a, b = (dpf.synthesize(x, 9, grid=grid, epsilon=1.0, method="smoothed", rng=PCG64(1)) for x in (one, other))
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("epsilon", [1e-3, 20.0])
@pytest.mark.parametrize("bins", [1, 1000])
def test_one_record(epsilon, bins):
    """T7: n = 1, more bins than records, noise still present; in a single bin the count is n, which is public."""
    mechanism = PerturbedHistogram(bins, grid=Grid(0, 1), epsilon=epsilon)
    counts = mechanism.release([0.3], size=300_000 // bins, rng=PCG64(1))
    assert (np.count_nonzero(counts - mechanism.law([0.3]).center) > 0) == (bins > 1)
    assert dpf.synthesize([0.3], 5, bounds=(0, 1), epsilon=epsilon, bins=bins, rng=PCG64(1)).shape == (5,)
    smoothed = dpf.synthesize([0.3], 5, bounds=(0, 1), epsilon=epsilon, bins=bins, method="smoothed", rng=PCG64(1))
    assert ((smoothed >= 0) & (smoothed <= 1)).all()
