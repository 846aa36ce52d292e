"""First guesses of a new user: what is natural is taken, and all else names the right word."""

import copy
import inspect
import pickle
import pydoc
import traceback

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import local
from dpfast._kernels._advice import PublicFunction
from tests.cases import every
from tests.untouchable import Untouchable

pytestmark = pytest.mark.kernel

X = Untouchable()  # no record is read for any of these calls
GRID = dpf.Grid(0, 100)
QUARTILES = dpf.Quantiles([0.25, 0.75], grid=GRID, epsilon=1.0)
BOUNDS = {"bounds": (0, 100), "epsilon": 1.0}
GUESSES = [
    (lambda: dpf.median(X, eps=1), "'eps': did you mean 'epsilon'?"),
    (lambda: dpf.median(X, budget=1.0), "'budget': did you mean 'epsilon'?"),
    (lambda: dpf.median(X, epsilonn=1.0), "'epsilonn': did you mean 'epsilon'?"),
    (lambda: dpf.median(X, 1.0), "write median(x, epsilon=...), and other parameters by keyword"),
    (lambda: dpf.median(X), "write median(x, epsilon=...)"),
    (lambda: dpf.median(epsilon=1.0), "write median(x, epsilon=...)"),
    (lambda: dpf.median(X, epsilon=1.0, range=(0, 100)), "did you mean 'bounds'?"),
    (lambda: dpf.median(X, epsilon=1.0, lower=0, upper=100), "write bounds=(lower, upper)"),
    (lambda: dpf.median(X, epsilon=1.0, axis=0), "x holds numbers, one for each record"),
    (lambda: dpf.median(X, epsilon=1.0, seed=1), "did you mean 'rng'?"),
    (lambda: dpf.median(X, epsilon=1.0, random_state=1), "did you mean 'rng'?"),
    (lambda: dpf.median(X, epsilon=1.0, n_jobs=2), "did you mean 'workers'?"),
    (lambda: dpf.median(X, epsilon=1.0, mechanism="smooth-sensitivity"), "did you mean 'method'?"),
    (lambda: dpf.median(X, epsilon=1.0, nonsense=1), "it takes x, epsilon, bounds, grid, delta, method"),
    (lambda: dpf.mean(X, range=(0, 1), epsilon=1.0), "did you mean 'bounds'?"),
    (lambda: dpf.mean(X, limits=(0, 1), epsilon=1.0), "did you mean 'bounds'?"),
    (lambda: dpf.mean(X, (0, 1), 1.0), "write mean(x, epsilon=...)"),
    (lambda: dpf.mean([1.0], epsilon=1.0), "dpfast.bounds(x, epsilon=...) finds bounds privately"),
    (lambda: dpf.mean(X, dropna=True, **BOUNDS), "did you mean 'missing'?"),
    (lambda: dpf.mean(X, weights=[1], **BOUNDS), "records have no weights"),
    (lambda: dpf.mean(X, sensitivity=1, **BOUNDS), "epsilon, delta and the bounds determine the noise"),
    (lambda: dpf.mean(X, accountant=None, **BOUNDS), "enter a dpfast.Ledger"),
    (lambda: dpf.mean(X, rho=0.1, **BOUNDS), "Ledger(rho=...)"),
    (lambda: dpf.sum(X, clip=(0, 1), epsilon=1.0), "did you mean 'bounds' or 'radius'?"),
    (lambda: dpf.std(X, ddof=1, **BOUNDS), "the release is that of ddof=0"),
    (lambda: dpf.count(X), "write count(x, epsilon=...)"),
    (lambda: dpf.count(X, epsilon=1.0, bounds=(0, 1)), "did you mean 'within'?"),
    (lambda: dpf.count(X, epsilon=1.0, condition=None), "did you mean 'within'?"),
    (lambda: dpf.quantile(X, epsilon=1.0), "write quantile(x, q, epsilon=...)"),
    (lambda: dpf.quantile(X, p=0.5, epsilon=1.0), "did you mean 'q'?"),
    (lambda: dpf.quantile(X, qs=[0.5], epsilon=1.0), "did you mean 'q'?"),
    (lambda: dpf.quantile(X, quantiles=[0.5], epsilon=1.0), "did you mean 'q'?"),
    (lambda: dpf.quantile(X, 0.5, 1.0), "write quantile(x, q, epsilon=...)"),
    (lambda: dpf.quantile(X, 0.5, epsilon=1.0, interpolation="linear"), "a quantile is a record"),
    (lambda: dpf.quantile(X, 50, epsilon=1.0), "q must be between 0 and 1, not 50"),
    (lambda: dpf.trimmed_mean(X, **BOUNDS), "write trimmed_mean(x, trim, epsilon=...)"),
    (lambda: dpf.trimmed_mean(X, proportiontocut=0.1, **BOUNDS), "did you mean 'trim'?"),
    (lambda: dpf.huber(X, **BOUNDS), "write huber(x, k, epsilon=...)"),
    (lambda: dpf.histogram([1.0], epsilon=1.0), "give either bounds=(lower, upper) or grid=Grid(...)"),
    (lambda: dpf.histogram(X, bins=10, range=(0, 1), epsilon=1.0), "did you mean 'bounds'?"),
    (lambda: dpf.histogram(X, 10, (0, 1), 1.0), "write histogram(X, epsilon=...)"),
    (lambda: dpf.histogram(X, n_bins=10, **BOUNDS), "did you mean 'bins'?"),
    (lambda: dpf.histogram(X, 10, density=True, **BOUNDS), "the result has counts and density"),
    (lambda: dpf.synthesize(X, n_samples=100, epsilon=1.0), "did you mean 'k'?"),
    (lambda: dpf.synthesize(X, 100, schema={}, epsilon=1.0), "did you mean 'columns'?"),
    (lambda: dpf.covariance(X, radius=1, missing="drop", epsilon=1.0), "a row with NaN counts as the center"),
    (lambda: dpf.density(X, neighbors="add-remove", **BOUNDS), "for one record replaced; histogram takes neighbors"),
    (lambda: dpf.m_estimate(X, None, neighbors="add-remove", **BOUNDS), "huber and trimmed_mean take neighbors"),
    (lambda: dpf.marginals(X, {}, missing="drop", epsilon=1.0), "Categories(values, missing=key), Grid(lower, upper, "),
    (
        lambda: dpf.partitions(X, keys=["a", "b"], epsilon=1.0),
        "multiple values for argument 'keys': did you mean 'domain'?",
    ),
    (
        lambda: dpf.histogram(np.array(["a", "b"]), 2, **BOUNDS),
        "dpfast.partitions(x, domain=[...], epsilon=...) counts text",
    ),
    (
        lambda: dpf.Quantiles([0.5], grid=GRID, neighbors="add-remove", epsilon=1.0),
        "dpf.Resized(dpf.Quantiles(...), epsi",
    ),
    (
        lambda: dpf.InverseSensitivity(dpf.statistics.Mean(), grid=GRID, neighbors="add-remove", epsilon=1.0),
        "dpf.GlobalSensitivity takes both, and dpf.Resized(dpf.InverseSensitivity(...), epsilon=...) hides n",
    ),
    (
        lambda: dpf.InverseSensitivity(dpf.statistics.Huber(1), grid=GRID, neighbors="add-remove", epsilon=1.0),
        "'add-remove': dpf.Resized(dpf.InverseSensitivity(...), epsilon=...) hides n",
    ),
    (
        lambda: dpf.GlobalSensitivity(dpf.statistics.Median(), grid=GRID, epsilon=1.0),
        "not Median(): dpf.InverseSensitivity and dpf.SmoothSensitivity take it",
    ),
    (lambda: dpf.robust_mean(X, neighbors="add-remove", epsilon=1.0), "for one record replaced; mean takes neighbors"),
    (lambda: dpf.synthesize(X, neighbors="add-remove", epsilon=1.0), "histogram and marginals take neighbors"),
    (lambda: dpf.theil_sen(X, X, neighbors="add-remove", epsilon=1.0), "linear_regression takes neighbors"),
    (lambda: dpf.interval("iqr", X, **BOUNDS), "no interval is known for 'iqr', which dpfast.iqr releases alone"),
    (lambda: dpf.interval("quantile", X, **BOUNDS), "as in dpfast.statistics.Quantile(0.9), instead of 'quantile'"),
    (lambda: dpf.mle(X, model="normal", **BOUNDS), "did you mean 'family'?"),
    (lambda: dpf.mle("normal", X, **BOUNDS), "family, which is after the records"),
    (lambda: dpf.mle(X, "normal", epsilon=1.0), "write mle(x, family, epsilon=..., bounds=...)"),
    (lambda: dpf.interval(X, "median", epsilon=1.0), "statistic, which is first"),
    (lambda: dpf.interval(X, epsilon=1.0), "write interval(statistic, x, epsilon=...)"),
    (lambda: dpf.interval("median", X, epsilon=1.0, level=0.9), "did you mean 'confidence'?"),
    (lambda: dpf.interval("median", X, epsilon=1.0, alpha=0.05), "did you mean 'confidence'?"),
    (lambda: dpf.glm(X, X, family="logistic", epsilon=1.0), "did you mean 'model'?"),
    (lambda: dpf.glm(X, X, epsilon=1.0), "give either radius= or bounds="),
    (lambda: dpf.glm(X, X, fit_intercept=True, radius=1.0, epsilon=1.0), "did you mean 'intercept'?"),
    (lambda: dpf.glm(X, X, data_norm=1.0, epsilon=1.0), "did you mean 'radius'?"),
    (lambda: dpf.linear_regression(X, X, x_bounds=(0, 1), y_bounds=(0, 1), epsilon=1.0), "did you mean 'bounds'?"),
    (lambda: dpf.linear_regression(X, X, y_bounds=(0, 1), epsilon=1.0), "did you mean 'label_bound'?"),
    (lambda: dpf.by_group(QUARTILES, X, groups=X), "did you mean 'labels' or 'keys'?"),
    (lambda: dpf.by_group(QUARTILES, X, by=X), "did you mean 'labels'?"),
    (lambda: dpf.by_group(QUARTILES, X, X), "write by_group(mechanism, x, labels=...)"),
    (lambda: dpf.by_group(QUARTILES, X, labels=X, epsilon=1.0), "the mechanism has its epsilon"),
    (lambda: dpf.by_group("median", X, labels=X), "mechanism must be a dpfast.Mechanism, with its epsilon"),
    (lambda: dpf.partitions(X, epsilon=1.0, delta=1e-6, max_contributions=3), "did you mean 'contributions'?"),
    (lambda: dpf.partitions(X, 1.0), "write partitions(keys, epsilon=...)"),
    (lambda: dpf.bound_contributions(X, X, limit=3), "did you mean 'per_unit'?"),
    (lambda: dpf.bound_contributions(X, X), "write bound_contributions(unit, *arrays, per_unit=...)"),
    (lambda: dpf.covariance(X, epsilon=1.0), "write covariance(X, radius=..., epsilon=...)"),
    (lambda: dpf.covariance(X, **BOUNDS), "did you mean 'radius'?"),
    (lambda: dpf.robust_mean(X, range=(0, 1), epsilon=1.0), "did you mean 'bounds'?"),
    (lambda: dpf.select([1, 2]), "write select(scores, epsilon=...)"),
    (lambda: dpf.theil_sen(X, X, **BOUNDS), "did you mean 'slope_bounds' or 'intercept_bounds'?"),
    (lambda: dpf.m_estimate(X, loss="huber", epsilon=1.0), "did you mean 'psi'?"),
    (lambda: dpf.bounds(X, epsilon=1.0, confidence=0.9), "did you mean 'coverage'?"),
    (lambda: dpf.marginals(X, epsilon=1.0), "write marginals(X, columns, epsilon=...)"),
    (lambda: dpf.Ledger(eps=1.0), "did you mean 'epsilon'?"),
    (lambda: dpf.Quantiles(q=[0.5], grid=GRID, epsilon=1.0), "did you mean 'qs'?"),
    (lambda: dpf.Quantiles([0.5], **BOUNDS), "did you mean 'grid'?"),
    (lambda: dpf.Quantiles([0.5], GRID, 1.0), "write Quantiles(qs, grid=..., epsilon=...)"),
    (lambda: dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=GRID, eps=1.0), "did you mean 'epsilon'?"),
    (lambda: dpf.InverseSensitivity("median", grid=GRID, epsilon=1.0), "statistic must be one of dpfast.statistics"),
    (lambda: local.median(X, epsilon=1.0), "write median(x, bounds=..., epsilon=...)"),
    (lambda: local.glm(X, X, family="logistic", epsilon=1.0), "did you mean 'model'?"),
    (lambda: local.Categorical(5, eps=1.0), "did you mean 'epsilon'?"),
    (lambda: local.Categorical(epsilon=1.0), "write Categorical(k, epsilon)"),
    (lambda: local.Interval(1.0, range=(0, 1)), "did you mean 'bounds'?"),
]


@every("guess, advice", GUESSES)
def test_first_guesses(guess, advice):
    with dpf.Ledger(1.0) as ledger, pytest.raises((TypeError, ValueError)) as caught:
        guess()
    assert advice in str(caught.value)
    assert not ledger.charges


def test_what_is_natural_is_taken():
    x = np.random.default_rng(0).normal(50, 10, 400)
    for k in (None, 400):
        assert dpf.synthesize(x, k, epsilon=1.0, rng=PCG64(1)).shape == (400,)
        assert dpf.synthesize(np.stack([x, x], 1), k, method="tree", **BOUNDS).shape == (400, 2)
    assert 40 < dpf.quantile(x, q=0.5, epsilon=1.0) < 60
    assert dpf.quantile(x, q=np.array([0.25, 0.75]), epsilon=1.0).shape == (2,)
    assert dpf.histogram(x, bins=5, **BOUNDS).counts.shape == (5,)
    assert dpf.explain(dpf.median, n=100, epsilon=1.0).method == dpf.explain("median", n=100, epsilon=1.0).method


@every(
    "name, right",
    [("var", "variance"), ("percentile", "quantile"), ("kde", "density"), ("cov", "covariance"), ("nothing", None)],
)
def test_names_of_other_libraries(name, right):
    with pytest.raises(AttributeError) as caught:
        getattr(dpf, name)
    assert str(caught.value).endswith(f"attribute {name!r}" + (f": did you mean dpfast.{right}?" if right else ""))


def plain(x, *, epsilon, scale=1.0):
    """Divide."""
    return x * scale / epsilon


class TestPublicFunction:
    """It is the function, apart from the advice."""

    def test_calls(self):
        told = []
        public = PublicFunction(plain, lambda function, error: told.append((function, str(error))))
        assert (
            public(6.0, epsilon=2.0) == public(x=6.0, epsilon=2.0, scale=1.0) == public(*[6.0], **{"epsilon": 2.0}) == 3
        )
        assert list(map(public, [])) == told == []
        for given, named in (
            ((), {}),
            ((1.0,), {}),
            ((1.0, 2.0), {"epsilon": 1.0}),
            ((1.0,), {"epsilon": 1.0, "e": 1}),
        ):
            with pytest.raises(TypeError) as wanted:
                plain(*given, **named)
            with pytest.raises(TypeError) as caught:
                public(*given, **named)
            assert told.pop() == (plain, str(wanted.value)) == (plain, str(caught.value))
            assert not told

    def test_errors_of_the_function_are_its_own(self):
        """Also a TypeError: advice is for arguments that the function does not take."""
        told = []
        public = PublicFunction(plain, lambda function, error: told.append(error))
        for x, epsilon, error in ((1.0, 0.0, ZeroDivisionError), ("a", 1.0, TypeError), (None, 1.0, TypeError)):
            with pytest.raises(error) as caught:
                public(x, epsilon=epsilon)
            assert [frame.name for frame in traceback.extract_tb(caught.tb)][1:] == ["plain"]
        assert not told

    def test_advice_that_fails_changes_nothing(self):
        def fails(function, error):
            raise RuntimeError

        with pytest.raises(TypeError, match=r"unexpected keyword argument 'eps'$"):
            PublicFunction(plain, fails)(1.0, eps=1.0)

    def test_it_is_shown_as_the_function(self):
        for public in (dpf.median, local.median, dpf.by_group):
            function = inspect.unwrap(public)
            assert inspect.isfunction(function)
            assert inspect.isroutine(public)
            assert inspect.signature(public) == inspect.signature(function)
            assert (public.__name__, public.__doc__) == (function.__name__, function.__doc__)
            assert repr(public) == repr(function)
            assert f"{public.__name__}(" in pydoc.plain(pydoc.render_doc(public))
            assert inspect.unwrap(pickle.loads(pickle.dumps(public))) is function
            assert inspect.unwrap(copy.deepcopy(public)) is function

    def test_it_is_bound_like_a_function(self):
        class Half:
            of = PublicFunction(lambda self, x: x / 2, print)

        assert Half().of(3.0) == 1.5
        assert isinstance(Half.of, PublicFunction)
