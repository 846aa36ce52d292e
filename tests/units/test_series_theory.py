"""Orthogonal series: the calculators of errors and rates."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dpfast import Grid, Privacy, SeriesCoefficients, SeriesDensity
from dpfast.theory import series_error, series_published_loss, series_sensitivity, series_terms

pytestmark = pytest.mark.kernel

BASES = ("cosine", "trigonometric")
EVERY = pytest.mark.parametrize("basis", BASES)
SQRT2 = math.sqrt(2)


def mechanism(terms=4, grid=None, epsilon=1.0, basis="cosine"):
    return SeriesCoefficients(terms, grid=grid or Grid(0, 1), epsilon=epsilon, basis=basis)


def density_of(coefficients, basis="cosine", grid=None):
    return SeriesDensity(np.array(coefficients), grid or Grid(0, 1), 1000, Privacy(1.0), basis)


class TestTheory:
    def test_error_terms(self):
        """Term by term against the formula; no noise for an infinite epsilon."""
        expected = 0.25 * 5.0**-3 + (4 + 0.5 / SQRT2 * math.sqrt(sum((2 * j) ** -3.0 for j in range(1, 5)))) / 100
        assert_allclose(series_error(4, 100, smoothness=1.5, roughness=0.5), expected, rtol=1e-14)
        noise = 8 * (series_sensitivity(4) / 200) ** 2
        assert_allclose(series_error(4, 100, epsilon=2, smoothness=1.5, roughness=0.5), expected + noise, rtol=1e-14)

    @EVERY
    def test_terms_are_the_best(self, basis):
        for n, epsilon, gamma, c in ((100, 1.0, 2, 1.0), (10**4, 0.1, 1, 2.0), (10**6, 5.0, 3, 0.3)):
            public = {"epsilon": epsilon, "smoothness": gamma, "roughness": c, "basis": basis}
            errors = [series_error(m, n, **public) for m in range(1, 200)]
            assert series_terms(n, **public) == 1 + int(np.argmin(errors))
        assert series_terms(10**6, most=3) == 3

    @pytest.mark.parametrize("s", [0.05, 0.1])
    def test_roughness_of_a_normal_density(self, s):
        """What the docstring of `density` says to assume."""
        u = (np.arange(4000) + 0.5) / 4000
        p = np.exp(-((u - 0.5) ** 2) / (2 * s * s))
        j = np.arange(1, 200)
        beta = SQRT2 * np.cos(np.pi * np.outer(j, u)) @ p / p.sum()
        assert math.sqrt(np.sum(j**4.0 * beta**2)) == pytest.approx(0.047 * s**-2.5, rel=0.02)

    @pytest.mark.parametrize("gamma", [0.75, 1.5, 2.0])
    def test_rates_of_the_bound(self, gamma):
        """The bound at its best m falls with the published exponent, two decades, and as minimax."""
        n = np.array([10**6, 10**7, 10**8])
        errors = [series_error(series_terms(int(k), smoothness=gamma, most=10**5), int(k), smoothness=gamma) for k in n]
        slope = np.polyfit(np.log(n), np.log(errors), 1)[0]
        assert slope == pytest.approx(-2 * gamma / (2 * gamma + 1), abs=0.05)

    @pytest.mark.slow
    def test_rate_of_the_mechanism(self):
        """Simulated from 1e4 to 1e6 records, terms by the rule for smoothness 1: slope -2/3 within 0.05."""
        beta = 0.25 * np.arange(1, 401) ** -1.5
        true, rng = density_of(beta), np.random.default_rng(7)
        sizes = [10_000, 31_623, 100_000, 316_228, 1_000_000]
        errors = []
        for n in sizes:
            m = mechanism(series_terms(n, epsilon=5.0, smoothness=1.0, roughness=0.18), epsilon=5.0)
            runs = [np.sum((m(true.sample(n, rng), rng=rng) - beta[: m.terms]) ** 2) for _ in range(24)]
            errors.append(np.mean(runs) + np.sum(beta[m.terms :] ** 2))
        slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
        assert slope == pytest.approx(-2 / 3, abs=0.05)
        assert slope != pytest.approx(-1 / 3, abs=0.05)  # the exponential mechanism's

    def test_published_losses(self):
        """The losses of the published bounds relative to the least noise."""
        for terms, cosine, trigonometric in ((1, 2.0, 2.0), (2, 1.5625, 1.4142), (40, 1.2325, 1.0503)):
            assert series_published_loss(terms, 1.0) == pytest.approx(cosine, abs=1e-4)
            found = series_published_loss(terms, 1.0, basis="trigonometric")
            assert found == pytest.approx(trigonometric, rel=1e-3)
        assert series_published_loss(1, 1.0, mechanism="exponential") == pytest.approx(SQRT2)
        assert series_published_loss(2, 1.0, mechanism="exponential") < 1

    def test_bad_parameters(self):
        with pytest.raises(ValueError, match="norm must be 1 or 2"):
            series_sensitivity(3, norm=3)
        with pytest.raises(ValueError, match="mechanism must be 'perturbation' or 'exponential'"):
            series_published_loss(3, 1.0, mechanism="minimax")
        with pytest.raises(ValueError, match="roughness must be positive"):
            series_error(3, 10, roughness=0)
