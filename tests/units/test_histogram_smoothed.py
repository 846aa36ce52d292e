"""Smoothed histograms and synthetic records: laws by their definition, privacy, methods."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.random import PCG64, Generator

import dpfast as dpf
from dpfast import Grid, Privacy
from dpfast._kernels import _bins
from dpfast.densities import Cells, SmoothedHistogram
from dpfast.densities.histograms import SmoothedSample, _units
from dpfast.densities.synthesis import METHODS
from tests.cases import every
from tests.reference import bins as reference
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.filterwarnings("ignore:.* do not divide evenly"),  # laws of uneven bins, too
]


def smoothed_law(mechanism, data, units=None):
    """The law with another weight than the admissible one, for controls."""
    values = np.array(data, dtype=float)[:, None]
    units = int(mechanism.delta(len(data)) * 2**64) if units is None else units
    return SmoothedSample(values, cells=mechanism.cells, k=mechanism.k, units=units, workers=1)


def smoothed_losses(mechanism, n, factor=1):
    """The largest log-ratio of all pairs of neighbours, over all outcomes; delta times a factor."""
    size = mechanism.grid.size
    outcomes = np.array(list(itertools.product(range(size), repeat=mechanism.k)))
    units = int(mechanism.delta(n) * factor * 2**64)
    every = list(itertools.product(range(size), repeat=n))
    laws = {data: smoothed_law(mechanism, data, units).logpmf(outcomes) for data in every}
    assert all(abs(np.exp(logs).sum() - 1) < 1e-12 for logs in laws.values())
    return max(
        (laws[a] - laws[b]).max() for a in every for b in every if sum(x != y for x, y in zip(a, b, strict=True)) == 1
    )


class TestSmoothed:
    @every("n, bins, k", [(1, 2, 1), (2, 3, 2), (3, 3, 2), (3, 2, 3), (2, 4, 3)])
    @every("epsilon", [1e-3, 1.0, 20.0])
    def test_the_condition_is_exact_on_every_small_data_set(self, n, bins, k, epsilon):
        mechanism = SmoothedHistogram(bins, k=k, grid=Grid(0, 4, step=1), epsilon=epsilon)
        assert mechanism.privacy == Privacy(epsilon)
        rounding = k * 2.0**-64 / float(mechanism.delta(n))  # of delta, up
        assert epsilon - rounding - 1e-12 < smoothed_losses(mechanism, n) <= epsilon + 1e-12
        assert smoothed_losses(mechanism, n, Fraction(99, 100)) > epsilon + min(0.009 * epsilon, 0.009 * k)

    def test_certificate(self):
        grids = (Grid(0, 2, step=1), Grid(0, 1, step=1))
        for mechanism in (
            SmoothedHistogram(3, k=2, grid=Grid(0, 4, step=1), epsilon=0.5),
            SmoothedHistogram((2, 1), k=2, grid=grids, epsilon=0.5),
        ):
            certificate = dpf.audit.verify(mechanism, n=2, values=3)
            assert certificate.holds
            assert abs(certificate.epsilon - 0.5) < 1e-12

    def test_control_a_smaller_delta_is_refused_a_certificate(self):
        class Eager(SmoothedHistogram):
            def law(self, x, *, workers=1):
                exact = super().law(x)
                return smoothed_law(self, np.ravel(x), exact.units * 99 // 100)

        certificate = dpf.audit.verify(Eager(3, k=2, grid=Grid(0, 4, step=1), epsilon=0.5), n=2, values=3)
        assert not certificate.holds
        assert certificate.epsilon > 0.5 + 1e-3

    def test_too_many_outcomes_to_list(self):
        with pytest.raises(ValueError, match="at most 2\\*\\*20 points"):
            SmoothedHistogram(3, k=3, grid=Grid(0, 1), epsilon=0.5).law([0.5]).outcomes()

    def test_one_cell_is_free(self):
        assert smoothed_losses(SmoothedHistogram(1, k=2, grid=Grid(0, 4, step=1), epsilon=1.0), 2) == 0

    def test_published_loss(self):
        assert dpf.theory.smoothed_epsilon(0.3, cells=3, n=3, k=2) == pytest.approx(2.407945608651872, abs=1e-14)

    @pytest.mark.parametrize("bins", [2, 3])
    def test_the_law_is_that_of_a_slow_twin(self, bins):
        mechanism = SmoothedHistogram(bins, k=2, grid=Grid(0, 4, step=1), epsilon=1.0)
        exact = reference.smoothed([0, 3, 3], reference.edges(mechanism.grid, bins), 2, mechanism.delta(3))
        assert sum(exact.values()) == 1
        logs = mechanism.law([0, 3, 3]).logpmf(np.array(list(exact)))
        np.testing.assert_allclose(np.exp(logs), [float(p) for p in exact.values()], rtol=1e-13)
        assert mechanism.law([0, 3, 3]).logpmf([[0, 5], [-1, 0]]).tolist() == [-math.inf] * 2

    def test_samples_have_the_law(self):
        mechanism = SmoothedHistogram(3, k=2, grid=Grid(0, 4, step=1), epsilon=2.0)
        law = mechanism.law([0, 3, 3])
        draws = law.sample(200_000, PCG64(1))
        assert draws.shape == (200_000, 2)
        found = np.bincount(draws @ [5, 1], minlength=25)
        outcomes = np.array(list(itertools.product(range(5), repeat=2)))
        assert not chi_square_rejects(found, np.exp(law.logpmf(outcomes)))
        for factor in (0.9, 1.1):
            other = smoothed_law(mechanism, [0, 3, 3], int(law.units * factor))
            assert chi_square_rejects(found, np.exp(other.logpmf(outcomes)))

    def test_several_columns(self):
        grids = (Grid(0, 3, step=1), Grid(0, 2, step=1))
        mechanism = SmoothedHistogram((2, 2), k=1, grid=grids, epsilon=1.5)
        law = mechanism.law([[0, 0], [3, 2], [3, 0]])
        outcomes = np.array([[[a, b]] for a in range(4) for b in range(3)])
        p = np.exp(law.logpmf(outcomes))
        assert abs(p.sum() - 1) < 1e-12
        draws = law.sample(100_000, PCG64(1))
        assert draws.shape == (100_000, 1, 2)
        assert not chi_square_rejects(np.bincount(draws[:, 0] @ [3, 1], minlength=12), p)
        assert mechanism([[0, 0]], rng=PCG64(1)).shape == (1, 2)
        np.testing.assert_array_equal(law.value(np.array([[1, 2]])), [[1.0, 2.0]])

    @every("cells", [2, 1000, 2**24])
    @every("n, k", [(1, 1), (100, 3), (10**9, 1), (1000, 10**6)])
    @every("epsilon", [1e-3, 1.0, 20.0, 1e300])
    def test_delta_is_the_least_admissible_multiple(self, cells, n, k, epsilon):
        units = _units(cells, n, k, epsilon)
        if epsilon / k > 700:
            assert units == 1
            return
        with mp.workprec(400):

            def loss(t):
                delta = mpf(t) / 2**64
                return k * mp.log((1 - delta) * cells / (n * delta) + 1)

            assert loss(units) <= epsilon
            assert units == 1 or loss(units - 1) > epsilon
        assert 1 <= units <= 2**64
        assert dpf.theory.smoothed_delta(epsilon, cells=cells, n=n, k=k) <= units * 2.0**-64 * (1 + 1e-12)

    def test_always_uniform_at_the_end_of_the_words(self):
        """Where delta rounds to 1, no word leads to a record."""
        out = np.empty(3, np.int32)
        words = [2**64 - 1] * 3 + [0, 2**63, 2**64 - 1]
        axes = Cells((Grid(0, 1),), (4,)).axes
        _bins.fill_smoothed(ScriptedBits(words), np.zeros((1, 1)), axes, 2**64 - 1, 4, out)
        assert out.tolist() == [0, 2, 3]
        _bins.fill_smoothed(ScriptedBits(words), np.full((1, 1), 0.3), axes, 2**64 - 2, 4, out)
        assert out.tolist() == [1, 1, 1]

    def test_what_draws_use_does_not_depend_on_records(self):
        used = set()
        for data in ([0.1] * 5, [0.9] * 5, [math.nan] * 5):
            source = PCG64(1)
            SmoothedHistogram(7, k=100, grid=Grid(0, 1), epsilon=1.0)(data, rng=source)
            used.add(source.random_raw())
        assert len(used) == 1


class TestSynthesize:
    @every("method", METHODS)
    def test_shapes_and_grid(self, method):
        rng = np.random.default_rng(1)
        for x, bounds, shape in (
            (rng.random(500), (0, 1), (7,)),
            (rng.random((500, 1)), (0, 1), (7, 1)),
            (rng.random((500, 2)), [(0, 1), (0.25, 3)], (7, 2)),
            (rng.random((500, 4)), (0, 1), (7, 4)),
        ):
            if x.shape[1:] > (1,) and method in ("ks", "series", "quantiles"):
                with pytest.raises(ValueError, match=f"method='{method}' supports one column"):
                    dpf.synthesize(x, 7, bounds=bounds, epsilon=1.0, method=method)
                continue
            draws = dpf.synthesize(x, 7, bounds=bounds, epsilon=1.0, method=method, rng=PCG64(1))
            assert (draws.shape, draws.dtype) == (shape, np.float64)
            grid = Grid(0, 1)
            if bounds == (0, 1):
                np.testing.assert_array_equal(grid.decode(grid.encode(draws.ravel())), draws.ravel())
        whole = dpf.synthesize(np.arange(100), 50, bounds=(0, 99), epsilon=1.0, method=method)
        assert (whole == np.rint(whole)).all()
        assert whole.min() >= 0
        assert whole.max() <= 99

    def test_methods_are_the_mechanisms(self):
        x = np.random.default_rng(1).random(300)
        rng = Generator(PCG64(5))
        released = dpf.histogram(x, 5, bounds=(0, 1), epsilon=1.0, rng=rng)
        expected = released.sample(10, rng)
        found = dpf.synthesize(x, 10, bounds=(0, 1), epsilon=1.0, bins=5, rng=Generator(PCG64(5)))
        np.testing.assert_array_equal(found, expected)
        expected = SmoothedHistogram(5, k=10, grid=Grid(0, 1), epsilon=1.0)(x, rng=PCG64(5))
        options = {"bounds": (0, 1), "epsilon": 1.0, "bins": [5], "method": "smoothed"}
        np.testing.assert_array_equal(dpf.synthesize(x, 10, **options, rng=PCG64(5)), expected)
        expected = dpf.KolmogorovSmirnov(10, grid=Grid(0, 1), epsilon=1.0)(x, rng=PCG64(5))
        found = dpf.synthesize(x, 10, bounds=(0, 1), epsilon=1.0, method="ks", rng=PCG64(5))
        np.testing.assert_array_equal(found, expected)
        rng = Generator(PCG64(5))
        expected = dpf.density(x, bounds=(0, 1), epsilon=1.0, rng=rng).sample(10, rng)
        found = dpf.synthesize(x, 10, bounds=(0, 1), epsilon=1.0, method="series", rng=Generator(PCG64(5)))
        np.testing.assert_array_equal(found, expected)

    @pytest.mark.parametrize("method", ["ks", "series", "quantiles"])
    def test_bins_are_for_histograms(self, method):
        with pytest.raises(ValueError, match="does not use bins"):
            dpf.synthesize([0.5], 3, bounds=(0, 1), epsilon=1.0, method=method, bins=5)

    def test_synthetic_records_resemble(self):
        x = np.random.default_rng(1).beta(5, 2, 100_000)
        cases = (("perturbed", 50_000, 0.01), ("smoothed", 200, 0.12), ("ks", 200, 0.12), ("series", 50_000, 0.01))
        cases = (*cases, ("quantiles", 50_000, 0.01))
        for method, k, close in cases:
            draws = dpf.synthesize(x, k, bounds=(0, 1), epsilon=1.0, method=method, rng=PCG64(1))
            assert abs(draws.mean() - x.mean()) < close

    def test_unknown_methods(self):
        with pytest.raises(ValueError, match=r"method must be one of 'auto', .*, not 'magic'"):
            dpf.synthesize([0.5], 3, bounds=(0, 1), epsilon=1.0, method="magic")
