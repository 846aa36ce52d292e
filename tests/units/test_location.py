"""``dpfast.median`` and ``dpfast.quantile``: bounds or grid, and equality with the mechanism."""

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast
from dpfast import Grid, InverseSensitivity
from dpfast.statistics import Median, Quantile
from tests.cases import every
from tests.untouchable import Untouchable

X = np.random.default_rng(0).integers(0, 101, 501)


@pytest.mark.parametrize("seed", range(3))
def test_is_the_mechanism(seed):
    grid = Grid(0, 100, step=0.5)
    one = InverseSensitivity(Median(), grid=grid, epsilon=0.1)(X, rng=PCG64(seed))
    assert dpfast.median(X, grid=grid, epsilon=0.1, rng=PCG64(seed)) == one
    two = InverseSensitivity(Quantile(0.9), grid=grid, epsilon=0.1)(X, rng=PCG64(seed))
    assert dpfast.quantile(X, 0.9, grid=grid, epsilon=0.1, rng=PCG64(seed)) == two


def released(x):
    return {dpfast.median(x, bounds=(0, 100), epsilon=1e-9, rng=PCG64(seed)) % 1 for seed in range(20)}


@pytest.mark.host
def test_declared_integers_have_step_one():
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    ones = [X, X.astype(np.uint8), X > 50, np.ma.array(X), pandas.Series(X), pandas.Series(X, dtype="Int64")]
    ones += [arrow.array(X), arrow.chunked_array([X]), pandas.Series(X, dtype="int64[pyarrow]"), arrow.array(X > 50)]
    for x in ones:
        assert released(x) == {0}
    for x in (X.tolist(), X.astype(float), arrow.array(X.astype(float)), pandas.Series(X.astype(float)), range(100)):
        if not isinstance(x, range):
            assert len(released(x)) > 10


@every(
    "options, error, message",
    [
        ({"method": "smooth-sensitivity"}, TypeError, "give either bounds="),
        ({"bounds": (0, 1), "grid": Grid(0, 1)}, TypeError, "give either bounds="),
        ({"bounds": 3}, TypeError, r"bounds must be a pair \(lower, upper\)"),
        ({"bounds": (0, 1, 2)}, TypeError, "bounds must be a pair"),
        ({"bounds": ("0", 1)}, TypeError, "the lower end of bounds must be a real number, not str"),
        ({"bounds": (0, float("inf"))}, ValueError, "the upper end of bounds must be finite, not inf"),
        ({"bounds": (1, 1)}, ValueError, "lower must be below upper"),
        ({"grid": (0, 1)}, TypeError, r"grid must be a dpfast\.Grid or FloatGrid, not tuple"),
        (
            {"bounds": (0, 1), "delta": 1e-6, "method": "inverse-sensitivity"},
            ValueError,
            "delta must be 0 for method='inverse-sensitivity'",
        ),
        (
            {"bounds": (0, 1), "method": "inverse-sensitivity", "distribution": 3},
            ValueError,
            "distribution is for method='auto', not 'inverse-sensitivity'",
        ),
        ({"bounds": (0, 1), "distribution": 3}, TypeError, "distribution must have a quantile function ppf"),
        ({"bounds": (0, 1), "delta": -1}, ValueError, "delta must be at least 0 and below 1, not -1"),
        ({"bounds": (0, 1), "delta": "none"}, ValueError, "delta must be a number, such as '0.1'"),
        (
            {"bounds": (0, 1), "method": "magic"},
            ValueError,
            "method must be 'auto' or 'inverse-sensitivity' or 'interpolated' or 'smooth-sensitivity', not 'magic'",
        ),
        ({"bounds": (0, 1), "epsilon": 0}, ValueError, "epsilon must be positive, not 0"),
        ({"bounds": (0, 1), "epsilon": [1]}, TypeError, "epsilon must be a real number, not list"),
        ({"bounds": (0, 1), "workers": 0}, ValueError, "workers must be at least 1, or -1 for all cores, not 0"),
        ({"bounds": (0, 1), "rng": 3}, TypeError, "rng must be None"),
    ],
)
def test_parameters_are_checked_before_data(options, error, message):
    with pytest.raises(error, match=message):
        dpfast.median(Untouchable(), **{"epsilon": 1.0, **options})
    with pytest.raises(error, match=message):
        dpfast.quantile(Untouchable(), 0.5, **{"epsilon": 1.0, **options})


def test_a_cached_mechanism_lets_no_boolean_in():
    """1 and True are equal keys of a cache."""
    assert 0 <= dpfast.median([1.0], bounds=(0, 1), epsilon=1) <= 1
    for value in (True, np.bool_(True)):
        with pytest.raises(TypeError, match="epsilon must be a real number, not bool"):
            dpfast.median([1.0], bounds=(0, 1), epsilon=value)
    with pytest.raises(TypeError, match="bounds must be a real number, not bool"):
        dpfast.median([1.0], bounds=(False, True), epsilon=1)


@pytest.mark.filterwarnings("ignore::dpfast.errors.UtilityWarning")
@every("bounds", [(0.1, 1e300), (-1e300, 1e300), (0.0, 1.7e308)])
@every("trim", [0.0, 0.1, 0.4])
def test_automatic_methods_for_bounds_whose_squares_are_no_doubles(bounds, trim):
    for function in (dpfast.winsorized_mean, dpfast.trimmed_mean):
        assert np.isfinite(function(np.arange(100.0), trim, bounds=bounds, epsilon=1.0))


def test_accuracy():
    x = np.random.default_rng(0).lognormal(10, 0.6, 100_000)
    for q in (0.1, 0.5, 0.9):
        value = dpfast.quantile(x, q, bounds=(0, 1e6), epsilon=1.0, rng=PCG64(1))
        assert abs(np.mean(x <= value) - q) < 1e-3
