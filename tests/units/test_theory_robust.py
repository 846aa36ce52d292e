"""The calculators for means of normal records."""

import itertools
import math

import numpy as np
import pytest

import dpfast as dpf
from dpfast import theory
from dpfast.statistics import Median


class TestRobust:
    """Sample sizes of the robust reduction: against their sums, and promises kept in simulation."""

    ALPHA = staticmethod(lambda eta: np.where(eta < 0.4, 0.5 + 2 * eta, 50.0))

    @pytest.mark.parametrize("d", [1, 4])
    @pytest.mark.parametrize("epsilon", [0.2, 2.0])
    def test_reduction(self, d, epsilon):
        """The least n by plain loops."""

        def excess(n):
            start = math.ceil(0.1 * n)
            scale = float(self.ALPHA(0.1))
            terms = (
                math.exp(-epsilon * t / 2 + d * math.log(2 * float(self.ALPHA(t / n)) / scale))
                for t in range(start, n + 1)
            )
            return math.fsum(terms) - 0.025

        n = theory.robust_sample_size(self.ALPHA, 0.1, dimension=d, epsilon=epsilon)
        assert excess(n) <= 0 < excess(n - 1)
        more = theory.robust_sample_size(self.ALPHA, 0.1, dimension=d, epsilon=epsilon, confidence=0.999)
        assert n < more < 2 * n

    def test_reduction_keeps_its_promise(self):
        """A median with scores within alpha(eta0), in one dimension: `InverseSensitivity` with that radius."""
        eta0, confidence, slack = 0.15, 0.9, 0.06
        from scipy.special import ndtri

        alpha = lambda eta: np.where(eta + slack < 0.45, ndtri(np.minimum(0.5 + eta + slack, 0.96)), 200.0)  # noqa: E731
        n = theory.robust_sample_size(alpha, eta0, dimension=1, epsilon=1.0, confidence=confidence)
        n = max(n, math.ceil(math.log(2 / 0.05) / (2 * slack**2)))
        radius = float(alpha(np.array([eta0]))[0])
        m = dpf.InverseSensitivity(Median(), grid=dpf.Grid(-100, 100), epsilon=1.0, radius=radius)
        rng = np.random.default_rng(1)
        misses = sum(abs(m(rng.normal(size=n), rng=rng)) > 2 * radius for _ in range(300))
        assert misses <= 300 * (1 - confidence)

    @pytest.mark.parametrize(("d", "contamination"), [(1, 0.0), (5, 0.0), (20, 0.05), (50, 0.0)])
    def test_gaussian_mean_keeps_its_promise(self, d, contamination):
        error = 0.3
        options = {"dimension": d, "epsilon": 1.0, "width": 2000.0, "contamination": contamination}
        n = theory.gaussian_mean_sample_size(error, **options)
        assert theory.gaussian_mean_error(n, **options) <= error < theory.gaussian_mean_error(n - 1, **options)
        m = dpf.NestedBoxes(grid=dpf.Grid(-1000, 1000), epsilon=1.0)
        rng = np.random.default_rng(d)
        errors = []
        for _ in range(40):
            x = rng.normal(size=(n, d))
            x[: int(contamination * n)] = 1000
            errors.append(np.abs(m(x, rng=rng)).max())
        assert np.mean(np.array(errors) > error) <= 0.05
        assert np.quantile(errors, 0.95) > error / 5

    def test_gaussian_mean_moves_the_right_way(self):
        base = {"dimension": 10, "epsilon": 1.0, "width": 2e6}
        n = theory.gaussian_mean_sample_size(0.1, **base)
        changes = {"dimension": 20, "epsilon": 0.5, "width": 1e60, "confidence": 0.999, "contamination": 0.01}
        for name, value in changes.items():
            assert theory.gaussian_mean_sample_size(0.1, **base | {name: value}) > n
        assert theory.gaussian_mean_error(5, **base) == 2e6
        options = {"epsilon": 0.05, "width": 100.0}
        terms = [theory.gaussian_mean_sample_size(0.1, dimension=d, **options) for d in (25, 50, 100, 200)]
        growth = [more / fewer for fewer, more in itertools.pairwise(terms)]  # towards d / (alpha epsilon): 2
        assert 1.6 < growth[0] < growth[1] < growth[2] < 2

    def test_a_step_bounds_what_an_adversary_can_do(self):
        options = {"dimension": 2, "epsilon": 1.0, "width": 100.0, "contamination": 0.1}
        with pytest.raises(ValueError, match="error must be larger than the error caused by contamination and step"):
            theory.gaussian_mean_sample_size(0.4, **options)
        n = theory.gaussian_mean_sample_size(0.4, step=2.0**-20, **options)
        assert theory.gaussian_mean_error(n, step=2.0**-20, **options) <= 0.4
        m = dpf.NestedBoxes(grid=dpf.Grid(-50, 50, step=2.0**-20), epsilon=1.0)
        rng = np.random.default_rng(3)
        for _ in range(20):  # a tenth of the rows at one point, off the center
            x = rng.normal(size=(n, 2))
            x[: n // 10] = 0.3
            assert np.abs(m(x, rng=rng)).max() <= 0.4

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"error": 0.0}, "error must be strictly between 0 and"),
            ({"error": 0.1, "contamination": 0.2}, "error must be larger than the error caused"),
            ({"error": 0.1, "epsilon": 0}, "epsilon must be positive"),
            ({"error": 0.1, "dimension": 0}, "dimension must be at least 1"),
        ],
    )
    def test_parameters(self, options, message):
        with pytest.raises(ValueError, match=message):
            theory.gaussian_mean_sample_size(**{"dimension": 2, "epsilon": 1.0, "width": 10.0, **options})
