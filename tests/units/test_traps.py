"""Warnings about public parameters: where, once, and never by data."""

import copy
import dataclasses
import inspect
import pickle
import re
import warnings

import numpy as np
import pytest
from scipy.stats import norm

import dpfast as dpf
from dpfast import local, regression
from dpfast.densities import RangeSums
from tests.cases import every

pytestmark = [
    pytest.mark.filterwarnings("always:epsilon = .* is above 20"),
    pytest.mark.filterwarnings("always:delta = .* is not below 0.001"),
]

ABOVE = r"epsilon = \S+ is above 20"
X = np.random.default_rng(0).normal(50, 10, 200)
ROWS = np.random.default_rng(0).uniform(-0.5, 0.5, (200, 2))
GRID = dpf.Grid(0, 128, step=1)
MEAN = {"statistic": dpf.statistics.Mean(), "grid": GRID}


def told(call):
    """The categories and texts of the warnings of a call, and the files that they name."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    return [(warning.category, str(warning.message), warning.filename) for warning in seen]


CALLS = {
    "m_estimate": lambda e: dpf.m_estimate(X, dpf.psi.Huber(5.0), bounds=(0, 100), epsilon=e),
    "median": lambda e: dpf.median(X, epsilon=e),
    "mean": lambda e: dpf.mean(X, bounds=(0, 100), epsilon=e),
    "sum": lambda e: dpf.sum(X, bounds=(0, 100), epsilon=e),
    "variance": lambda e: dpf.variance(X, bounds=(0, 100), epsilon=e),
    "std": lambda e: dpf.std(X, bounds=(0, 100), epsilon=e),
    "quantile": lambda e: dpf.quantile(X, [0.1, 0.9], epsilon=e),
    "trimmed_mean": lambda e: dpf.trimmed_mean(X, 0.1, bounds=(0, 100), epsilon=e),
    "winsorized_mean": lambda e: dpf.winsorized_mean(X, 0.1, bounds=(0, 100), epsilon=e),
    "iqr": lambda e: dpf.iqr(X, epsilon=e),
    "huber": lambda e: dpf.huber(X, 5.0, bounds=(0, 100), epsilon=e),
    "mean of rows": lambda e: dpf.mean(ROWS, bounds=(-1, 1), epsilon=e),
    "count": lambda e: dpf.count(X, epsilon=e),
    "interval": lambda e: dpf.interval("median", X, epsilon=e),
    "bounds": lambda e: dpf.bounds(X, epsilon=e),
    "histogram": lambda e: dpf.histogram(X, 5, bounds=(0, 100), epsilon=e),
    "density": lambda e: dpf.density(X, bounds=(0, 100), epsilon=e),
    "synthesize": lambda e: dpf.synthesize(X, 5, bounds=(0, 100), epsilon=e),
    "synthesize by series": lambda e: dpf.synthesize(X, 5, bounds=(0, 100), epsilon=e, method="series"),
    "synthesize by tree": lambda e: dpf.synthesize({"a": [1, 2]}, 5, columns={"a": dpf.Categories([1, 2])}, epsilon=e),
    "marginals": lambda e: dpf.marginals({"a": [1, 2]}, {"a": dpf.Categories([1, 2])}, epsilon=e),
    "contribution_limit": lambda e: dpf.contribution_limit([1, 2], epsilon=e),
    "partitions": lambda e: dpf.partitions(["a"], epsilon=e, delta=1e-6),
    "select": lambda e: dpf.select([1, 2], epsilon=e),
    "top_k": lambda e: dpf.top_k([1, 2], 1, keys=[1, 2, 3], epsilon=e),
    "top_k of private keys": lambda e: dpf.top_k([1, 2], 1, keys="private", epsilon=e, delta=1e-6),
    "covariance": lambda e: dpf.covariance(ROWS, radius=1.0, epsilon=e),
    "robust_mean": lambda e: dpf.robust_mean(ROWS, bounds=(-1, 1), epsilon=e),
    "linear_regression": lambda e: dpf.linear_regression(ROWS, ROWS[:, 0], radius=1.0, label_bound=1.0, epsilon=e),
    "glm": lambda e: dpf.glm(ROWS, ROWS[:, 0] > 0, model="logistic", radius=1.0, epsilon=e),
    "theil_sen": lambda e: dpf.theil_sen(X, X[::-1], epsilon=e),
    "mle": lambda e: dpf.mle(X, "normal", bounds={"mean": (0, 100), "sd": (1, 50)}, epsilon=e),
    "local.mean": lambda e: local.mean(X, bounds=(0, 100), epsilon=e),
    "local.median": lambda e: local.median(X, bounds=(0, 100), epsilon=e),
    "local.median_naive": lambda e: local.median_naive(X, bounds=(0, 100), epsilon=e),
    "local.quantile": lambda e: local.quantile(X, 0.3, bounds=(0, 100), epsilon=e),
    "local.density": lambda e: local.density(X, bounds=(0, 100), epsilon=e, terms=2),
    "local.glm": lambda e: local.glm(ROWS, ROWS[:, 0] > 0, epsilon=e),
    "local.sparse_mean": lambda e: local.sparse_mean(ROWS, epsilon=e),
    "local.randomizer_for": lambda e: local.randomizer_for(16, e),
    "a mechanism": lambda e: dpf.GlobalSensitivity(**MEAN, epsilon=e),
    "a randomizer": lambda e: local.Binary(e),
    "a protocol": lambda e: local.MedianDescent(bounds=(0, 100), epsilon=e),
    "a descent": lambda e: regression.Descent(
        "logistic", n=100, d=2, domain=dpf.domains.Ball(1.0), privacy=dpf.Privacy(e)
    ),
    "a ledger": lambda e: dpf.Ledger(e),
}


@every("name", CALLS)
def test_a_large_epsilon_is_told_once_at_the_line_of_the_user(name):
    for _ in range(2):  # again, with the mechanism from a cache
        [(category, text, file)] = told(lambda: CALLS[name](25.0))
        assert category is dpf.PrivacyWarning
        assert re.match(r"epsilon = 25 is above 20: .* factor of e\*\*25, .*use a smaller epsilon$", text)
        assert file == __file__
    assert told(lambda: CALLS[name](20.0)) == []


SMOOTH = {"bounds": (0, 100), "epsilon": 1.0, "method": "smooth-sensitivity"}
GAUSSIAN = {"radius": 1.0, "epsilon": 1.0}
LISTED = {"a": [1, 2]}, {"a": dpf.Categories([1, 2])}

DELTAS = {
    "mean": lambda d: dpf.mean(ROWS, delta=d, **GAUSSIAN),
    "sum": lambda d: dpf.sum(ROWS, delta=d, **GAUSSIAN),
    "covariance": lambda d: dpf.covariance(ROWS, delta=d, **GAUSSIAN),
    "median": lambda d: dpf.median(X, delta=d, **SMOOTH),
    "quantile": lambda d: dpf.quantile(X, 0.3, delta=d, **SMOOTH),
    "trimmed_mean": lambda d: dpf.trimmed_mean(X, 0.1, delta=d, **SMOOTH),
    "winsorized_mean": lambda d: dpf.winsorized_mean(X, 0.1, delta=d, **SMOOTH),
    "iqr": lambda d: dpf.iqr(X, delta=d, **SMOOTH),
    "histogram": lambda d: dpf.histogram(X, 5, bounds=(0, 100), epsilon=1.0, delta=d),
    "synthesize": lambda d: dpf.synthesize(LISTED[0], 5, columns=LISTED[1], epsilon=1.0, delta=d),
    "marginals": lambda d: dpf.marginals(*LISTED, epsilon=1.0, delta=d),
    "partitions": lambda d: dpf.partitions(["a"], epsilon=1.0, delta=d),
    "top_k": lambda d: dpf.top_k(["a"], 1, keys="private", epsilon=1.0, delta=d),
    "robust_mean": lambda d: dpf.robust_mean(ROWS, bounds=(-1, 1), epsilon=1.0, delta=d, method="columns"),
    "linear_regression": lambda d: dpf.linear_regression(ROWS, ROWS[:, 0], label_bound=1.0, delta=d, **GAUSSIAN),
    "glm": lambda d: dpf.glm(ROWS, ROWS[:, 0] > 0, model="logistic", delta=d, **GAUSSIAN),
    "mle": lambda d: dpf.mle(X, "normal", bounds={"mean": (0, 100), "sd": (1, 50)}, epsilon=1.0, delta=d),
    "a mechanism": lambda d: dpf.PartitionSelection(1.0, d),
    "a ledger": lambda d: dpf.Ledger(1.0, d),
    "a batch": lambda d: local.Shuffled(local.Binary(1.0), n=1000, delta=d),
    "a secure sum": lambda d: local.SecureSum(3, n=10, epsilon=1.0, delta=d),
    "a descent": lambda d: regression.Descent(
        "logistic", n=100, d=2, domain=dpf.domains.Ball(1.0), privacy=dpf.Privacy(1.0, d)
    ),
}


@every("name", DELTAS)
def test_a_large_delta_is_told_once_at_the_line_of_the_user(name):
    for delta in (0.5, 1e-3, 1e-3):
        [(category, text, file)] = told(lambda delta=delta: DELTAS[name](delta))
        assert category is dpf.PrivacyWarning
        assert re.match(rf"delta = {delta} is not below 0.001: .*; use a delta far below 1 / n, such as 1e-6$", text)
        assert file == __file__
    assert told(lambda: DELTAS[name](9e-4)) == []


def test_a_method_of_the_name_is_not_a_delta():
    assert told(lambda: dpf.SmoothedHistogram(4, k=9, grid=GRID, epsilon=1.0)) == []


def test_copies_and_releases_are_silent():
    with pytest.warns(dpf.PrivacyWarning, match=ABOVE):
        mechanism = dpf.GlobalSensitivity(**MEAN, epsilon=30.0)
    state = mechanism.start()
    for call in (
        lambda: mechanism(X),
        lambda: mechanism.release(X, size=3),
        lambda: state.read([X]).release(),
        lambda: pickle.loads(pickle.dumps(mechanism)),
        lambda: copy.copy(mechanism),
        lambda: dpf.by_group(mechanism, X, labels=np.zeros(200, int)),
    ):
        assert told(call) == []
    assert len(told(lambda: dataclasses.replace(mechanism, epsilon=40.0))) == 1


def test_a_warning_that_is_an_error_precedes_the_charge():
    with pytest.warns(dpf.PrivacyWarning):
        ledger = dpf.Ledger(30.0)
    with ledger, warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(dpf.PrivacyWarning, match=ABOVE):
            dpf.median(X, epsilon=25.0)
    assert ledger.charges == ()


class TestUtility:
    @pytest.mark.parametrize(
        ("trap", "fine", "message"),
        [
            (
                lambda: dpf.mean(X, bounds=(0, 1e6), epsilon=0.1, distribution=norm(50, 10)),
                lambda: dpf.mean(X, bounds=(0, 1e4), epsilon=0.1, distribution=norm(50, 10)),
                "the bounds are 3e+04 times wider than the range of nine tenths of the assumed records",
            ),
            (
                lambda: dpf.mean(X, bounds=(0, 1e6), epsilon=0.1, distribution=(30, 70)),
                lambda: dpf.mean(X, bounds=(0, 1e4), epsilon=0.1, distribution=[30, 70]),
                "the bounds are 2.5e+04 times wider than the range of nine tenths of the assumed records",
            ),
            (
                lambda: dpf.median(X, grid=dpf.Grid(0, 128, step=16), epsilon=1.0, distribution=norm(50, 10)),
                lambda: dpf.median(X, grid=dpf.Grid(0, 128, step=0.5), epsilon=1.0, distribution=norm(50, 10)),
                "the step of the grid, 16, is more than the expected error under the assumed distribution",
            ),
            (
                lambda: dpf.huber(X, 0.5, grid=GRID, epsilon=1.0),
                lambda: dpf.huber(X, 1.0, grid=GRID, epsilon=1.0),
                "the corner k = 0.5 is less than the step of the grid, 1,",
            ),
            (
                lambda: dpf.MEstimator(dpf.psi.Huber(0.5), grid=GRID, epsilon=1.0),
                lambda: dpf.MEstimator(dpf.psi.Huber(1.0), grid=GRID, epsilon=1.0),
                "the corner k = 0.5 is less than the step of the grid, 1,",
            ),
            (
                lambda: dpf.noise.add_laplace(X, scale=0.5, grid=GRID),
                lambda: dpf.noise.add_laplace(X, scale=1.0, grid=GRID),
                "noise of scale 0.5 is less than the step of the grid, 1,",
            ),
            (
                lambda: dpf.noise.add_gaussian(X, sigma=0.5, grid=GRID),
                lambda: dpf.noise.add_gaussian(X, sigma=1.0, grid=GRID),
                "noise of scale 0.5 is less than the step of the grid, 1,",
            ),
            (
                lambda: dpf.histogram(X, 100, bounds=(0, 128), epsilon=0.05, workload="ranges"),
                lambda: dpf.histogram(X, 100, bounds=(0, 128), epsilon=1.0, workload="ranges"),
                "a sum of neighbouring cells has a standard error of",
            ),
            (
                lambda: dpf.Subsampled(RangeSums(129, grid=GRID, epsilon=1.0), 0.1)(X),
                lambda: dpf.Subsampled(RangeSums(129, grid=GRID, epsilon=1.0), 0.9)(X),
                "a sum of neighbouring cells has a standard error of",
            ),
            (
                lambda: dpf.top_k(X, 3, keys=range(128), epsilon=0.1, neighbors="replace-one"),
                lambda: dpf.top_k(X, 3, keys=range(128), epsilon=1.0, neighbors="replace-one"),
                "a key may be out of order by",
            ),
            (
                lambda: dpf.AboveThreshold(20, epsilon=1.0),
                lambda: dpf.AboveThreshold(21, epsilon=1.0),
                "with this epsilon a value may be 21 on the wrong side of the threshold, 20",
            ),
        ],
        ids=[
            *("width", "typical", "step", "huber", "psi", "laplace", "gaussian"),
            *("ranges", "subsampled", "top_k", "threshold"),
        ],
    )
    def test_traps(self, trap, fine, message):
        for _ in range(2):
            [(category, text, file)] = told(trap)
            assert category is dpf.UtilityWarning
            assert text.startswith(message)
            assert file == __file__
        assert told(fine) == []

    def test_the_step_of_whole_numbers_is_natural(self):
        ages = X.astype(int)
        assert told(lambda: dpf.median(ages, bounds=(0, 128), epsilon=20.0, distribution=norm(50, 10))) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda x: dpf.median(x, epsilon=25.0),
        lambda x: dpf.mean(x, bounds=(0, 1), epsilon=25.0),
        lambda x: dpf.histogram(x, 5, bounds=(0, 1), epsilon=25.0),
        lambda x: dpf.interval("mean", x, bounds=(0, 1), epsilon=25.0),
        lambda x: dpf.median(x, grid=dpf.Grid(0, 128, step=16), epsilon=1.0, distribution=norm(50, 10)),
    ],
)
def test_warnings_do_not_depend_on_data(call):
    records = [np.zeros(200), np.full(200, np.nan), np.full(200, 1e308), X]
    [only] = {str(told(lambda x=x: call(x))) for x in records}
    assert only != "[]"


def test_every_public_function_with_an_epsilon_is_here():
    public = [(name, getattr(dpf, name)) for name in dpf.__all__]
    public += [(f"local.{name}", getattr(local, name)) for name in local.__all__]
    releasing = {name for name, f in public if inspect.isroutine(f) and "epsilon" in inspect.signature(f).parameters}
    assert releasing - {"explain"} == releasing & set(CALLS)
    with_delta = {name for name, f in public if inspect.isroutine(f) and "delta" in inspect.signature(f).parameters}
    pure = {"explain", "huber", "variance", "std"}  # no method of theirs has a delta
    assert with_delta - pure == with_delta & set(DELTAS)
