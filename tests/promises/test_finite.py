"""At the extremes of float64 a release is a finite number on every dataset, or refused on all, by public numbers."""

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import local
from dpfast.statistics import InterquartileRange, Mean, Sum, Variance
from tests.cases import every
from tests.reference.statistics import RANK_CASES, one_of_each

LARGE = 1.7e308
BOUNDS = [
    (-LARGE, LARGE),
    (0.0, LARGE),
    (1e308, LARGE),
    (0.0, 5e-324),
    (0.0, 1e-310),
    (-1e160, 1e160),
    (1e16, 1e16 + 64),
]
N = 101


def datasets(lower, upper):
    """Nasty records: both ends, each end, all missing."""
    ends = np.where(np.arange(N) % 2, lower, upper)
    return [ends, np.full(N, float(lower)), np.full(N, float(upper)), np.full(N, np.nan)]


def outcomes(make, bounds):
    """The kinds of outcome over all datasets: one, and if numbers, then finite."""
    kinds = set()
    for x in datasets(*bounds):
        try:
            released = np.asarray(make(x), dtype=float)
        except ValueError as error:
            kinds.add(str(error))
        else:
            kinds.add("finite" if np.isfinite(released).all() else "not finite")
    return kinds


def several(mechanism):
    return lambda x: mechanism.release(x, size=20, rng=PCG64(1))


@pytest.mark.filterwarnings("ignore::dpfast.UtilityWarning")  # of grids that are far too coarse
@every("bounds", BOUNDS)
@every("epsilon", [1e-3, 1.0, 100.0])
def test_statistics(bounds, epsilon):
    grid = dpf.Grid(*bounds)
    for statistic in one_of_each(RANK_CASES):
        for options in ({}, {"radius": 3 * grid.step}):
            try:
                mechanism = dpf.InverseSensitivity(statistic, grid=grid, epsilon=epsilon, **options)
            except ValueError as error:
                assert "range of float64" in str(error)  # noqa: PT017
                continue
            assert outcomes(several(mechanism), bounds) == {"finite"}
            assert outcomes(mechanism, bounds) == {"finite"}
    for statistic in (Mean(), Sum(), Variance()):
        mechanism = dpf.GlobalSensitivity(statistic, grid=grid, epsilon=epsilon)
        assert len(kinds := outcomes(mechanism, bounds)) == 1
        assert "not finite" not in kinds


@pytest.mark.parametrize("make", [dpf.InverseSensitivity, dpf.SmoothSensitivity])
def test_a_range_beyond_float64_is_refused_without_data(make):
    options = {"epsilon": 1.0} | ({"delta": 1e-6} if make is dpf.SmoothSensitivity else {})
    with pytest.raises(ValueError, match="range of float64"):
        make(InterquartileRange(), grid=dpf.Grid(-LARGE, LARGE), **options)
    widest = make(InterquartileRange(), grid=dpf.Grid(0, LARGE), **options)
    assert outcomes(several(widest), (0, LARGE)) == {"finite"}


@every("bounds", BOUNDS)
@every("epsilon", [0.01, 10.0])
def test_densities(bounds, epsilon):
    def histogram(x):
        made = dpf.histogram(x, bounds=bounds, epsilon=epsilon, rng=PCG64(1))
        return np.concatenate(
            [made.edges, made.density, [made.quantile(0.5)], made.sample(3, np.random.default_rng(1))]
        )

    def series(x):
        made = dpf.density(x, bounds=bounds, epsilon=epsilon, rng=PCG64(1))
        return [*made.coefficients, made.pdf(bounds[0]), made.quantile(0.5), *made.sample(3, np.random.default_rng(1))]

    def reports(x):
        made = local.density(x, bounds=bounds, epsilon=epsilon, terms=2, rng=PCG64(1))
        return [*made.coefficients, made.pdf(bounds[0]), made.quantile(0.5), made.error()]

    def square(x):
        made = local.density(x, bounds=bounds, epsilon=epsilon, rng=PCG64(1))
        return [made.pdf(bounds[0]), made.quantile(0.5), *made.sample(3, np.random.default_rng(1))]

    for make in (histogram, series, reports, square):
        kinds = outcomes(make, bounds)
        assert len(kinds) == 1
        assert "not finite" not in kinds


@pytest.mark.filterwarnings("ignore::dpfast.UtilityWarning")  # of grids that are far too coarse
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("epsilon", [0.01, 10.0])
def test_local_means_and_medians(bounds, epsilon):
    public = {"bounds": bounds, "epsilon": epsilon, "rng": PCG64(1)}
    for function in (local.mean, local.median, local.median_naive):
        kinds = outcomes(lambda x, function=function: function(x, **public), bounds)
        assert len(kinds) == 1
        assert "not finite" not in kinds


@pytest.mark.host
def test_a_robust_scaler_of_too_wide_bounds_is_refused():
    scalers = pytest.importorskip("dpfast.sklearn")
    for x in datasets(-LARGE, LARGE):
        with pytest.raises(ValueError, match="range of float64"):
            scalers.PrivateRobustScaler(bounds=(-LARGE, LARGE), epsilon=1.0).fit(x[:, None])
        unscaled = scalers.PrivateRobustScaler(bounds=(-LARGE, LARGE), epsilon=1.0, with_scaling=False).fit(x[:, None])
        assert np.isfinite(unscaled.center_).all()
