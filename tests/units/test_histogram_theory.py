"""Numbers of bins chosen from n, and the calculators for histograms."""

import math

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import beta, norm

import dpfast as dpf
from dpfast import Grid
from dpfast.densities import SmoothedHistogram
from dpfast.densities.bins import ASSUMED_ROUGHNESS, ASSUMED_SQUARE, automatic_bins
from tests.cases import every

pytestmark = pytest.mark.kernel


class TestAutomaticBins:
    def test_the_rule(self):
        for n, epsilon, r in ((100, 1.0, 1), (10_000, 0.1, 1), (50_000, 1.0, 2), (5, 1e-3, 1), (10**6, 20.0, 3)):
            for roughness in (0.0, 3.0, 99.5652):

                def error(c, n=n, epsilon=epsilon, r=r, roughness=roughness):
                    return dpf.theory.perturbed_mise(n, (c,) * r, epsilon=epsilon, roughness=roughness)

                found = dpf.theory.perturbed_bins(n, epsilon=epsilon, roughness=roughness, dimension=r)
                assert error(found) == min(map(error, range(1, 700)))

    def test_the_rule_with_a_delta(self):
        """Gaussian noise is better from some number of cells on."""
        for n, epsilon, delta in ((100, 0.1, 0.1), (1000, 0.01, 0.05), (1000, 1.0, 1e-6)):

            def error(c, n=n, epsilon=epsilon, delta=delta):
                return dpf.theory.perturbed_mise(n, c, epsilon=epsilon, roughness=30.5, delta=delta)

            found = dpf.theory.perturbed_bins(n, epsilon=epsilon, roughness=30.5, delta=delta)
            assert error(found) == min(map(error, range(1, 300)))
            pure = dpf.theory.perturbed_bins(n, epsilon=epsilon, roughness=30.5)
            assert error(found) <= dpf.theory.perturbed_mise(n, pure, epsilon=epsilon, roughness=30.5)

    def test_only_public_numbers_count(self):
        for x in ([0.5] * 1000, [math.nan] * 1000, np.linspace(0, 1, 1000)):
            assert dpf.histogram(x, bounds=(0, 1), epsilon=1.0).cells.bins == (16,)
        wide = dpf.histogram([0.5] * 1000, bounds=(0, 1), epsilon=1.0, roughness=99.5652)
        assert wide.cells.bins == (23,)
        assert dpf.histogram(np.ones(1000, int), bounds=(0, 5), epsilon=1.0).cells.bins == (6,)
        assert automatic_bins("auto", np.zeros((10**5, 4)), (Grid(0, 1),) * 4, 1.0, 1e30) == (64,) * 4

    def test_assumed_roughness(self):

        x = np.linspace(-1, 2, 300_001)
        p = norm(0.5, 1 / 6).pdf(x)
        assert trapezoid(np.gradient(p, x) ** 2, x) == pytest.approx(ASSUMED_ROUGHNESS, rel=1e-6)
        assert trapezoid(p**2, x) == pytest.approx(ASSUMED_SQUARE, rel=1e-6)


class TestTheory:
    BETA, SQUARE = beta(10, 10), 2.5414541452651447

    @every(
        "n, epsilon, bins, k, mise",
        [
            (100, 1.0, 3, 9, 0.43147),
            (1000, 1.0, 3, 34, 0.28183),
            (10**4, 1.0, 11, 148, 0.15607),
            (10**5, 1.0, 17, 626, 0.06602),
            (1000, 0.1, 3, 9, 0.43427),
            (10**5, 0.1, 11, 160, 0.15542),
        ],
    )
    def test_published_best_smoothed_histograms(self, n, epsilon, bins, k, mise):
        best = dpf.theory.smoothed_optimum(self.BETA.cdf, self.SQUARE, n=n, epsilon=epsilon)
        assert (best.bins, best.k, round(best.mise, 5)) == (bins, k, mise)
        assert best.delta == dpf.theory.smoothed_delta(epsilon, cells=bins, n=n, k=k)
        shares = np.diff(self.BETA.cdf(np.arange(bins + 1) / bins))
        assert dpf.theory.smoothed_mise(shares, self.SQUARE, n=n, k=k, delta=best.delta) == pytest.approx(best.mise)
        only = dpf.theory.smoothed_optimum(self.BETA.cdf, self.SQUARE, n=n, epsilon=epsilon, k=k, bins=[bins])
        assert only == best

    def test_smoothed_mise_is_that_of_the_mechanism(self):
        n, k, m = 60, 20, 5
        mechanism, rng = SmoothedHistogram(m, k=k, grid=Grid(0, 1), epsilon=8.0), np.random.default_rng(1)
        shares = np.diff(self.BETA.cdf(np.arange(m + 1) / m))
        errors = []
        for _ in range(1500):
            draws = mechanism(rng.beta(10, 10, n), rng=rng)
            q = np.histogram(draws, m, (0, 1))[0] / k
            errors.append(self.SQUARE - 2 * m * (q * shares).sum() + m * (q * q).sum())
        exact = mechanism.error(n, probabilities=shares, square_integral=self.SQUARE)
        assert exact == dpf.theory.smoothed_mise(shares, self.SQUARE, n=n, k=k, delta=float(mechanism.delta(n)))
        assert abs(np.mean(errors) - exact) < 5 * np.std(errors) / math.sqrt(1500)
        without = dpf.theory.smoothed_mise(shares, self.SQUARE, n=n, k=k, delta=0.0)
        assert abs(np.mean(errors) - without) > 5 * np.std(errors) / math.sqrt(1500)

    def test_published_bins_of_the_perturbed_histogram(self):
        """For independent noise; with noise of sum 0 more bins are better where they are few."""
        cases = {(100, 1.0): 9, (100, 0.1): 3, (1000, 1.0): 23, (1000, 0.1): 10, (1000, 0.01): 3}
        for (n, epsilon), bins in cases.items():
            independent = dpf.theory.noise_variance(epsilon)

            def error(c, n=n, variance=independent):
                return 99.5652 / (12 * c * c) + c / n + (c / n) ** 2 * variance

            assert min(range(1, 100), key=error) == bins
            found = dpf.theory.perturbed_bins(n, epsilon=epsilon, roughness=99.5652)
            assert bins <= found <= bins + 1
            assert dpf.theory.perturbed_mise(n, found, epsilon=epsilon, roughness=99.5652) < error(bins)
        assert [dpf.theory.perturbed_bins(n, epsilon=1e9, roughness=99.5652) for n in (100, 1000)] == [12, 26]

    def test_approximation_5(self):
        exact = dpf.theory.smoothed_delta(0.5, cells=10, n=10**7, k=30)
        assert exact == pytest.approx(10 * 30 / (10**7 * 0.5), rel=0.02)
        assert dpf.theory.smoothed_epsilon(exact, cells=10, n=10**7, k=30) == pytest.approx(0.5, rel=1e-12)

    def test_noise_without_end(self):
        """epsilon so small that its square is no double."""
        for epsilon in (1e-160, 1e-300, 5e-324):
            assert dpf.theory.noise_variance(epsilon) > 1e300
            assert dpf.theory.perturbed_bins(10**6, epsilon=epsilon, roughness=30.0) == 1
            assert dpf.theory.series_terms(10**6, epsilon=epsilon) == 1
            for release in (dpf.histogram, dpf.density):
                with pytest.raises(ValueError, match="use a larger epsilon"):
                    release([0.5], bounds=(0, 1), epsilon=epsilon)

    @every(
        "call, message",
        [
            (lambda t: t.smoothed_epsilon(0.0, cells=3, n=3, k=2), "delta must be positive"),
            (lambda t: t.smoothed_epsilon(0.5, cells=1, n=3, k=2), "cells must be at least 2"),
            (lambda t: t.smoothed_delta(0.0, cells=3, n=3, k=2), "epsilon must be positive"),
            (lambda t: t.smoothed_mise([0.5, 0.6], 1.0, n=3, k=2, delta=0.5), "sum to 1"),
            (lambda t: t.smoothed_optimum(norm.cdf, 1.0, n=3, epsilon=1.0, bins=[]), "bins must not be empty"),
            (lambda t: t.perturbed_mise(3, 0, epsilon=1.0, roughness=1.0), "bins must be at least 1"),
            (lambda t: t.noise_variance(1.0, neighbors="local"), "neighbors must be"),
        ],
    )
    def test_bad_parameters(self, call, message):
        with pytest.raises(ValueError, match=message):
            call(dpf.theory)
