"""Student-t noise on trimmed means of few records, whose smoothness depends on their number."""

import itertools

import numpy as np
import pytest

import dpfast as dpf
from dpfast import audit, smooth
from dpfast.statistics import Median, TrimmedMean, WinsorizedMean


class TestFewRecords:
    def test_calibration(self):
        mechanism = dpf.SmoothSensitivity(TrimmedMean(0.1), grid=dpf.Grid(0, 100), epsilon=1.0)
        for n, beta in (
            (1, 0.05),
            (9, 0.05),
            (10, 0.2),
            (139, 0.2),
            (140, 0.23),
            (399, 0.23),
            (1000, 10 / 101),
            (2000, 0.05),
            (10**6, 0.05),
        ):
            assert mechanism.calibration(n) == smooth.calibrate(1.0, 0.0, noise="student-t", beta=beta)
        for other in (
            dpf.SmoothSensitivity(Median(), grid=dpf.Grid(0, 100), epsilon=1.0),
            dpf.SmoothSensitivity(TrimmedMean(0.0), grid=dpf.Grid(0, 100), epsilon=1.0),
            dpf.SmoothSensitivity(TrimmedMean(0.1), grid=dpf.Grid(0, 100), epsilon=1.0, beta=0.1),
            dpf.SmoothSensitivity(TrimmedMean(0.1), grid=dpf.Grid(0, 100), epsilon=1.0, delta=1e-6),
        ):
            assert {other.calibration(n) for n in (10, 399, 10**6)} == {(other.beta, other.scale)}

    @pytest.mark.parametrize("statistic", [TrimmedMean(0.25), WinsorizedMean(0.25)])
    def test_it_is_private(self, statistic):
        mechanism = dpf.SmoothSensitivity(statistic, grid=dpf.Grid(0, 4, step=1), epsilon=2.0)
        assert mechanism.calibration(4)[0] == 0.4
        assert audit.verify(mechanism, n=4, values=4, ordered=False).holds

    def test_the_scale_of_another_beta_is_not(self):
        """Wrong: the scale of the least beta with the smooth bound of the largest."""

        class Mixed(dpf.SmoothSensitivity):
            def calibration(self, n):
                return super().calibration(n)[0], self.scale

        wrong = Mixed(TrimmedMean(0.25), grid=dpf.Grid(0, 63, step=1), epsilon=2.0)
        assert not audit.verify(wrong, n=4, values=4, ordered=False).holds

    def test_the_noise_is_less(self):
        """Trimmed means of 300 normal records with wide bounds: less than half of that of the least beta."""
        x, grid = np.random.default_rng(3).normal(size=300), dpf.Grid(-40, 60)
        default = dpf.SmoothSensitivity(TrimmedMean(0.1), grid=grid, epsilon=1.0)
        least = dpf.SmoothSensitivity(TrimmedMean(0.1), grid=grid, epsilon=1.0, beta=0.0500001)
        assert 2 * default.law(x).noise.scale < least.law(x).noise.scale


def test_a_single_record_that_is_left_counts_for_all_that_it_replaces():
    """A draw from an array has the law of one from the summary, for every number of records and share."""
    grid = dpf.Grid(0, 100, step=1)
    for n, trim in itertools.product(range(1, 8), (0.0, 0.2, 0.34, 0.4, 0.49)):
        for statistic in (dpf.statistics.WinsorizedMean(trim), dpf.statistics.TrimmedMean(trim)):
            mechanism = dpf.SmoothSensitivity(statistic, grid=grid, epsilon=1.0, delta=1e-6)
            x = np.full(n, 40.0)
            law = mechanism.law(x)
            assert law.value(law.center) == 40.0
            drawn = law.sample(rng=np.random.PCG64(1))
            assert mechanism(x, rng=np.random.PCG64(1)) == law.value(drawn)
