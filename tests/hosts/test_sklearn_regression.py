"""Private linear regression as an estimator of scikit-learn: one release of sums of products."""

import math
import pickle
import warnings

import numpy as np
import pytest
from numpy.random import PCG64, Generator

import dpfast as dpf

pytest.importorskip("sklearn")
from joblib import parallel_config
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpfast.sklearn import PrivateLinearRegression, PrivateStandardScaler

BALLS = {"radius": 6.0, "label_bound": 12.0, "center": [1.0, 0.0], "label_center": 3.0}


def _model(n, seed=0):
    """Rows around (1, 0), slopes 2 and -1, intercept 1/2, noise of deviation 1."""
    rng = np.random.default_rng(seed)
    rows = rng.normal([1, 0], 1, (n, 2))
    return rows, rows @ [2.0, -1.0] + 0.5 + rng.normal(size=n)


ROWS, TARGETS = _model(2000)


def _learnt(model):
    return model.coef_.tobytes() + np.float64(model.intercept_).tobytes()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_is_the_building_block(intercept, delta):
    options = {"epsilon": 1.0, "delta": delta}
    model = PrivateLinearRegression(fit_intercept=intercept, random_state=Generator(PCG64(5)), **BALLS, **options)
    model.fit(ROWS, TARGETS)
    fit = dpf.linear_regression(ROWS, TARGETS, intercept=intercept, rng=Generator(PCG64(5)), **BALLS, **options)
    assert model.coef_.tolist() == fit.coefficients.tolist()
    assert model.intercept_ == fit.intercept
    assert model.standard_errors_.tolist() == fit.standard_errors.tolist()
    assert model.fit_.interval().tolist() == fit.interval().tolist()
    assert model.privacy_ == fit.privacy == dpf.Privacy(1.0)  # pure noise is less for few columns
    assert np.array_equal(model.predict(ROWS), fit.predict(ROWS))


def test_near_the_fit_without_privacy():
    rows, targets = _model(50_000, seed=1)
    exact = LinearRegression().fit(rows, targets)
    for epsilon, close in ((1.0, True), (0.0003, False)):
        model = PrivateLinearRegression(epsilon=epsilon, random_state=1, **BALLS).fit(rows, targets)
        assert (np.abs(model.coef_ - exact.coef_).max() < 0.03) == close
        assert (abs(model.score(rows, targets) - exact.score(rows, targets)) < 0.01) == close


def test_spends_the_budget_once():
    ledger = dpf.Ledger(1.0)
    with ledger:
        fitted = PrivateLinearRegression(epsilon=1.0, **BALLS).fit(ROWS, TARGETS)
        with pytest.raises(dpf.BudgetError):
            PrivateLinearRegression(epsilon=0.001, **BALLS).fit(ROWS, TARGETS)
        fitted.predict(ROWS)
        fitted.score(ROWS, TARGETS)
    assert ledger.spent.epsilon == 1.0
    assert [charge.label.split(":")[0] for charge in ledger.charges] == ["PrivateLinearRegression"]


def test_gaussian_noise_is_charged_with_its_tight_profile():
    ledger, rows = dpf.Ledger(3.0, 1e-5, composition="renyi"), np.tile(ROWS, 10)
    with ledger:
        for _ in range(4):  # a sum of 4 by addition
            model = PrivateLinearRegression(radius=6.0, label_bound=12.0, epsilon=1.0, delta=1e-6).fit(rows, TARGETS)
    assert model.privacy_ == dpf.Privacy(1.0, 1e-6)
    ball, labels = dpf.domains.Ball(6.0), dpf.domains.Ball(12.0)
    mechanism = dpf.RegressionMoments(domain=ball, labels=labels, epsilon=1.0, delta=1e-6)
    assert [charge.profile for charge in ledger.charges] == [mechanism.privacy_profile] * 4


def test_a_search_charges_the_ledger_for_every_fit():
    pipe = make_pipeline(
        PrivateStandardScaler(bounds=(-5, 5), epsilon=0.5),
        PrivateLinearRegression(radius=4.0, label_bound=12.0, epsilon=0.5),
    )
    ledger = dpf.Ledger(100.0)
    with ledger, parallel_config("threading", n_jobs=2):
        search = GridSearchCV(pipe, {"privatelinearregression__radius": [2.0, 4.0]}, cv=3).fit(ROWS, TARGETS)
    assert ledger.spent.epsilon == 7.0
    search.best_estimator_.fit(ROWS, TARGETS)  # carries the ledger, also outside
    assert ledger.spent.epsilon == 8.0


def test_default_is_not_reproducible_and_a_state_is():
    def learnt(state):
        return _learnt(PrivateLinearRegression(random_state=state, **BALLS).fit(ROWS, TARGETS))

    assert learnt(None) != learnt(None)
    assert learnt(7) == learnt(7) != learnt(8)


@pytest.mark.parametrize("intercept", [True, False])
def test_outcomes_do_not_depend_on_values(intercept):
    broken = ROWS.copy()
    broken[::3] = [math.nan, math.inf]
    missing = np.where(np.arange(2000) % 3, TARGETS, math.nan)
    datasets = [(ROWS, TARGETS), (broken, TARGETS), (ROWS, missing), (ROWS, 0 * TARGETS), (0 * ROWS, TARGETS)]
    datasets += [(1e300 * ROWS, -1e300 * TARGETS), (np.full_like(ROWS, math.nan), TARGETS), (ROWS[:, [0, 0]], TARGETS)]
    shown = set()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows, labels in datasets:
            model = PrivateLinearRegression(fit_intercept=intercept, **BALLS).fit(rows, labels)
            assert np.isfinite([*model.coef_, *model.standard_errors_, model.intercept_]).all()
            assert model.predict(broken).shape == (2000,)
            shown.add(str({name: (type(v), getattr(v, "shape", None)) for name, v in sorted(vars(model).items())}))
    assert len(shown) == 1


def test_missing_values_count_as_the_centers():
    broken, filled = ROWS.copy(), ROWS.copy()
    labels = TARGETS.copy()
    broken[::3, 0], labels[::3] = math.nan, 3.0
    filled[::3] = BALLS["center"]
    both = [
        PrivateLinearRegression(random_state=1, method="sums", **BALLS).fit(rows, y)
        for rows, y in ((broken, TARGETS), (filled, labels))
    ]
    assert _learnt(both[0]) == _learnt(both[1])
    assert math.isnan(both[0].predict([[math.nan, 0.0]])[0])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(library):
    lib = pytest.importorskip(library)
    frame = lib.DataFrame({"a": ROWS[:, 0], "b": ROWS[:, 1]})
    first = PrivateLinearRegression(random_state=1, **BALLS).fit(ROWS, TARGETS)
    second = PrivateLinearRegression(random_state=1, **BALLS).fit(frame, lib.Series(TARGETS))
    names = getattr(StandardScaler().fit(frame), "feature_names_in_", None)  # scikit-learn 1.6 finds none in polars 2
    assert np.array_equal(getattr(second, "feature_names_in_", None), names)
    assert names is not None or library == "polars"
    assert _learnt(first) == _learnt(second)
    assert first.predict(ROWS) == pytest.approx(second.predict(frame))


def test_dtypes_and_shapes():
    rows, labels = ROWS.astype(np.float32), TARGETS.astype(np.float32)
    expected = _learnt(PrivateLinearRegression(random_state=1, **BALLS).fit(rows.astype(float), labels.astype(float)))
    for X, y in (
        (rows, labels),
        (np.asfortranarray(rows), np.repeat(labels, 2)[::2]),
        (rows.tolist(), labels.tolist()),
    ):
        assert _learnt(PrivateLinearRegression(random_state=1, **BALLS).fit(X, y)) == expected
    with pytest.warns(DataConversionWarning):
        assert _learnt(PrivateLinearRegression(random_state=1, **BALLS).fit(rows, labels[:, None])) == expected
    whole = PrivateLinearRegression(random_state=1, **BALLS).fit(
        np.rint(ROWS).astype(int), np.rint(TARGETS).astype(int)
    )
    assert _learnt(whole) == _learnt(
        PrivateLinearRegression(random_state=1, **BALLS).fit(np.rint(ROWS), np.rint(TARGETS))
    )


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"radius": None}, ValueError, "radius must be given"),
        ({"label_bound": None, "method": "sums"}, TypeError, "label_bound must be given"),
        ({"method": "least"}, ValueError, "method must be"),
        ({"radius": 0}, ValueError, "radius must be positive"),
        ({"label_bound": -1}, ValueError, "radius must be positive"),
        ({"center": [0.0] * 3}, ValueError, "X must have 3 columns"),
        ({"fit_intercept": 1}, TypeError, "intercept must be True or False"),
        ({"epsilon": 0}, ValueError, "epsilon must be positive"),
        ({"delta": 2}, ValueError, "delta"),
        ({"random_state": "x"}, (TypeError, ValueError), "SeedSequence"),
    ],
)
def test_wrong_parameters(wrong, error, message):
    ledger = dpf.Ledger(1.0)
    with ledger, pytest.raises(error, match=message):
        PrivateLinearRegression(**{**BALLS, **wrong}).fit(ROWS, TARGETS)
    assert ledger.charges == ()


def test_wrong_shapes():
    model = PrivateLinearRegression(**BALLS)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(ROWS, TARGETS[1:])
    with pytest.raises(ValueError, match="y should be a 1d array"):
        model.fit(ROWS, ROWS)
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(ROWS, None)
    with pytest.raises(TypeError, match="y must hold numbers, not dtype"):
        model.fit(ROWS, TARGETS.astype(str))


def test_pickled_and_cloned():
    model = PrivateLinearRegression(random_state=1, **BALLS).fit(ROWS, TARGETS)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(ROWS), model.predict(ROWS))
    assert _learnt(clone(model).fit(ROWS, TARGETS)) == _learnt(model)
