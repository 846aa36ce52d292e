"""The noise of perturbed histograms: of sum 0, Gaussian, and the choice between them."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import Grid, Privacy
from dpfast.densities import PerturbedHistogram
from dpfast.laws import RoundedGaussian
from tests.cases import every
from tests.windows import Windowed

pytestmark = pytest.mark.filterwarnings("ignore:.* do not divide evenly")  # laws of uneven bins, too


class TestBalanced:
    @pytest.mark.parametrize("epsilon", [0.1, 2.0])
    def test_noise_up_to_64_cells_sums_to_0(self, epsilon):
        grid = Grid(0, 100, step=1)
        for bins, balanced in ((1, True), (2, True), (64, True), (65, False)):
            counts = PerturbedHistogram(bins, grid=grid, epsilon=epsilon).release([5] * 9, size=500, rng=PCG64(1))
            assert (counts.sum(axis=1) == 9).all() == balanced
            variance = dpf.theory.noise_variance(epsilon, cells=bins)
            exact = np.zeros(bins, np.int64)
            exact[5 * bins // 100] = 9
            assert (variance == 0) == (bins == 1)
            assert abs((counts - exact).var() - variance) <= 6 * 2.5 * variance / math.sqrt(500)
        cells = np.arange(1, 65)
        variances = [dpf.theory.noise_variance(epsilon, cells=k) for k in cells]
        assert (np.diff([*variances, dpf.theory.noise_variance(epsilon)]) > 0).all()

    def test_the_law_of_balanced_noise(self):
        law = PerturbedHistogram(3, grid=Grid(0, 3, step=1), epsilon=0.7).law([0, 0, 1, 3])
        assert law.center.tolist() == [2, 1, 1]
        window = np.array(list(itertools.product(range(-90, 91), repeat=2)))
        z = np.column_stack([window, -window.sum(axis=1)])
        p = np.exp(law.logpmf(z + law.center))
        assert abs(p.sum() - 1) < 1e-12
        assert abs((p * z[:, 2] ** 2).sum() - dpf.theory.noise_variance(0.7, cells=3)) < 1e-9
        assert law.logpmf(np.array([2, 1, 2])) == -math.inf
        ratio = law.logpmf(np.array([2, 1, 1])) - law.logpmf(np.array([4, 0, 0]))
        assert abs(float(ratio) - 4 * 0.35) < 1e-12

    @pytest.mark.parametrize("factor", [1, 0.9])
    def test_certificate_of_three_cells(self, factor):
        """Noise of 0.9 times the scale is rejected."""
        mechanism = PerturbedHistogram(3, grid=Grid(0, 3, step=1), epsilon=3.0)
        claimed = Windowed(mechanism, 18)
        if factor < 1:
            claimed._law = PerturbedHistogram(3, grid=mechanism.grid, epsilon=3.0 / factor).law
        certificate = dpf.audit.verify(claimed, n=2)
        assert certificate.holds == (factor == 1)
        assert abs(certificate.epsilon - 3 / factor) < 1e-12


class TestGaussian:
    GRID = Grid(0, 3, step=1)

    @every("neighbors, change", [("replace-one", 2), ("add-remove", 1)])
    @every("epsilon, delta", [(1.0, 1e-6), (0.1, 1e-3), (8.0, 1e-12)])
    def test_the_scale_is_that_of_the_l2_change(self, epsilon, delta, neighbors, change):
        mechanism = PerturbedHistogram(
            3, grid=self.GRID, epsilon=epsilon, delta=delta, neighbors=neighbors, noise="gaussian"
        )
        assert mechanism.privacy == Privacy(epsilon, delta, neighbors)
        [(family, mu, times)] = mechanism.privacy_profile.parts
        sigma = mechanism.law(np.array([0, 3])).noise.noise.scale
        assert (family, times) == ("gaussian", 1)
        assert change / (sigma * mu) ** 2 > 1 - 2.0**-50
        assert change / Fraction(sigma) ** 2 <= Fraction(mu) ** 2
        assert Privacy(mu=mu, neighbors=neighbors).delta_up(epsilon) <= delta
        assert sigma == pytest.approx(math.sqrt(change) * dpf.theory.gaussian_scale(epsilon, delta), rel=1e-14)
        variance = dpf.theory.noise_variance(epsilon, delta=delta, neighbors=neighbors, noise="gaussian")
        counts = mechanism.release(np.array([0, 0, 3]), size=20_000, rng=PCG64(1))
        assert abs((counts - [2, 0, 1]).var() / variance - 1) < 6 * math.sqrt(2 / 60_000)
        assert mechanism(np.array([0, 0, 3])).noise_error > 0

    @every("sigma", [0.1, 0.3, 0.7, 1.9, 2.0, 7.5])
    def test_the_variance_of_rounded_noise(self, sigma):
        z = np.arange(-400, 401)
        exact = (np.exp(RoundedGaussian(sigma).logpmf(z)) * z**2).sum()
        assert RoundedGaussian(sigma).variance == pytest.approx(exact, rel=1e-10)

    @pytest.mark.parametrize(
        ("epsilon", "delta", "gaussian"), [(1.0, 1e-6, False), (0.1, 0.1, True), (0.01, 0.02, True)]
    )
    def test_the_noise_of_less_variance(self, epsilon, delta, gaussian):
        mechanism = PerturbedHistogram(70, grid=Grid(0, 100, step=1), epsilon=epsilon, delta=delta)
        assert mechanism.privacy == Privacy(epsilon, delta if gaussian else 0.0)
        found = dpf.theory.noise_variance(epsilon, delta=delta)
        both = [
            dpf.theory.noise_variance(epsilon, delta=delta, noise=noise) for noise in ("gaussian", "discrete-laplace")
        ]
        assert found == min(both) == both[not gaussian]
        laplace = PerturbedHistogram(70, grid=mechanism.grid, epsilon=epsilon, delta=delta, noise="discrete-laplace")
        assert laplace.privacy == Privacy(epsilon)
        assert laplace.error(100, roughness=1.0) >= mechanism.error(100, roughness=1.0)
        released = dpf.histogram([5.0], 70, grid=mechanism.grid, epsilon=epsilon, delta=delta)
        assert released.privacy == mechanism.privacy

    def test_a_ledger_of_mu_takes_gaussian_noise_only(self):
        x = np.arange(4)
        with dpf.Ledger(mu=1.0) as ledger:
            dpf.histogram(x, 2, grid=self.GRID, epsilon=1.0, delta=1e-6, noise="gaussian")
            assert ledger.spent.mu == dpf.theory.gaussian_mu(1.0, 1e-6)
            with pytest.raises(dpf.BudgetError):
                dpf.histogram(x, 2, grid=self.GRID, epsilon=1.0, delta=1e-6)
