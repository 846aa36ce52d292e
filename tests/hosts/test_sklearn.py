"""Estimators of scikit-learn: its own checks, charges of fits, and fitted attributes."""

import math
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.random import PCG64, Generator

import dpfast as dpf

pytest.importorskip("sklearn")
from joblib import parallel_config
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler
from sklearn.utils.estimator_checks import check_estimator

from dpfast.sklearn import (
    PrivateHistogramDensity,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivatePCA,
    PrivateQuantileTransformer,
    PrivateRobustScaler,
    PrivateStandardScaler,
)

ESTIMATORS = [PrivateRobustScaler, PrivateQuantileTransformer, PrivateHistogramDensity]
OPTIONS = {"bounds": (-100, 100), "random_state": 0}
X = np.random.default_rng(0).normal([50, 5, -3], [10, 1, 2], (5000, 3))
BOUNDS = [(0, 100), (0, 10), dpf.Grid(-20, 20, missing=-3.0)]

OBJECTS = "what an array of objects holds would decide whether it can be read: an exception that depends on data"
MISSING = "whether a label is missing is private: an error for one would tell"
LABELS = "which labels occur is private: "
NOT_APPLICABLE = {
    "check_classifiers_classes": LABELS + "they are the parameter `classes`, where the check wants those of each y",
    "check_classifiers_regression_target": LABELS + "an error for labels that are not whole would tell",
    "check_classifier_not_supporting_multiclass": LABELS + "an error for a third one would tell",
    "check_supervised_y_no_nan": LABELS + "an error for a missing one would tell",
}
MORE = dict.fromkeys(
    ("check_classifiers_train", "check_decision_proba_consistency"),
    LABELS + "two of three classes in y are still a model of three",
)
TOO_FEW = {"check_classifiers_one_label": "signs along ten random directions may not tell that all labels are equal"}

SUMS = {"classes": (0, 1), "radius": 10.0}
BLOCKS = {"classes": (0, 1), "method": "blocks", "bounds": (-10, 10)}
LOCAL = {"classes": (0, 1), "method": "local", "radius": 2.0}


@pytest.mark.filterwarnings("always::dpfast.errors.PrivacyWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        PrivateHistogramDensity(bounds=(-1, 1), epsilon=25.0),
        PrivateQuantileTransformer(bounds=(-1, 1), epsilon=25.0),
        PrivateRobustScaler(bounds=(-1, 1), epsilon=25.0),
        PrivateStandardScaler(bounds=(-1, 1), epsilon=25.0),
        PrivateStandardScaler(bounds=(-1, 1), delta=0.5),
        PrivatePCA(radius=1.0, epsilon=25.0),
        PrivatePCA(radius=1.0, delta=0.5),
        PrivateLinearRegression(radius=1.0, label_bound=1.0, epsilon=25.0),
        PrivateLinearRegression(radius=1.0, label_bound=1.0, delta=0.5),
        PrivateLogisticRegression(**SUMS, epsilon=25.0),
        PrivateLogisticRegression(**SUMS, delta=0.5),
        PrivateLogisticRegression(**BLOCKS, blocks=4, epsilon=25.0),
        PrivateLogisticRegression(**LOCAL, epsilon=25.0),
    ],
)
def test_a_weak_guarantee_is_told_once(estimator):
    with pytest.warns(dpf.PrivacyWarning, match="delta = 0.5 is|epsilon = 25 is") as told:
        estimator.fit(X[:400, :1] / 100, (X[:400, 1] > 5).astype(float))
    assert sum(issubclass(one.category, dpf.PrivacyWarning) for one in told) == 1


def _expected_failures(estimator):
    if isinstance(estimator, PrivateLinearRegression):
        return {"check_dtype_object": OBJECTS, "check_supervised_y_no_nan": MISSING}
    if not isinstance(estimator, PrivateLogisticRegression):
        return {"check_dtype_object": OBJECTS}
    directions = estimator.method == "local" and estimator.norm == "l2"
    several = MORE if len(estimator.classes) > 2 else {}
    return {"check_dtype_object": OBJECTS, **NOT_APPLICABLE, **several, **(TOO_FEW if directions else {})}


@pytest.mark.parametrize(
    "estimator",
    [
        PrivateRobustScaler(**OPTIONS),
        PrivateRobustScaler(bounds=(-100, 100)),
        PrivateQuantileTransformer(**OPTIONS),
        PrivateQuantileTransformer(output_distribution="normal", **OPTIONS),
        PrivateHistogramDensity(**OPTIONS),
        PrivateStandardScaler(**OPTIONS),
        PrivateStandardScaler(delta=1e-6, radius=100.0, center=1.0),
        PrivatePCA(radius=100.0, epsilon=1000.0, random_state=0),
        PrivatePCA(1, radius=100.0, delta=1e-6, centered=False, whiten=True),
        PrivateLinearRegression(radius=10.0, label_bound=10.0, epsilon=1000.0, random_state=0),
        PrivateLinearRegression(radius=10.0, label_bound=10.0, epsilon=1e9, delta=1e-6),
        PrivateLogisticRegression(epsilon=1000.0, random_state=0, **SUMS),
        PrivateLogisticRegression(epsilon=1e9, delta=1e-6, **SUMS),
        PrivateLogisticRegression(epsilon=1000.0, random_state=0, classes=(0, 1, 2), radius=10.0),
        PrivateLogisticRegression(blocks=1, epsilon=1000.0, random_state=0, **BLOCKS),
        PrivateLogisticRegression(blocks=1, epsilon=1e9, **BLOCKS),
        PrivateLogisticRegression(epsilon=20.0, random_state=0, **LOCAL),
        PrivateLogisticRegression(epsilon=20.0, random_state=0, norm="linf", **LOCAL),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore")
def test_checks_of_scikit_learn(estimator):
    expected = _expected_failures(estimator)
    found = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    assert len(found) > 30
    assert [(each["check_name"], each["exception"]) for each in found if each["status"] == "failed"] == []
    assert [each["check_name"] for each in found if each["expected_to_fail"] and each["status"] == "passed"] == []


@pytest.fixture
def processes():
    """End the processes that loky started."""
    yield
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)


@pytest.mark.usefixtures("processes")
class TestLedgersOfWorkers:
    """A fit charges the ledger that was active at its start, in any worker, or is refused."""

    MODEL = PrivateHistogramDensity(bounds=(-100, 100), bins=3)

    @staticmethod
    def search(model, ledger, backend):
        """Six fits in two workers, and one here."""
        with ledger, parallel_config(backend, n_jobs=2):
            return GridSearchCV(model, {model.steps[1][0] + "__bins": [3, 4]}, cv=3).fit(X[:300, :1])

    @pytest.mark.parametrize(("backend", "file"), [("threading", False), ("threading", True), ("loky", True)])
    def test_charge_it(self, tmp_path, backend, file):
        ledger = dpf.Ledger(100.0, path=tmp_path / "ledger" if file else None)
        model = make_pipeline(PrivateRobustScaler(bounds=(0, 100)), self.MODEL)
        found = self.search(model, ledger, backend)
        assert ledger.spent.epsilon == 14.0
        assert sorted(charge.label.split(":")[0] for charge in ledger.charges) == sorted(
            ["PrivateRobustScaler", "PrivateHistogramDensity"] * 7
        )
        found.best_estimator_.fit(X[:300, :1])  # carries the ledger, also outside
        assert ledger.spent.epsilon == 16.0

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
    def test_or_are_refused_where_the_ledger_has_no_file(self):
        ledger = dpf.Ledger(100.0)
        with pytest.raises(ValueError, match="which cannot be charged from here: give the ledger a path="):
            self.search(make_pipeline(PrivateRobustScaler(bounds=(0, 100)), self.MODEL), ledger, "loky")
        assert ledger.charges == ()

    @pytest.mark.parametrize("made", [lambda model: model, clone], ids=["outside", "inside"])
    def test_clones_that_are_made_in_other_threads(self, made):
        """joblib starts later folds in its own threads."""
        ledger = dpf.Ledger(100.0)
        with ledger, parallel_config("threading", n_jobs=2):
            cross_val_score(made(self.MODEL), X[:300, :1], cv=9)
        assert ledger.spent.epsilon == 9.0
        MODEL = clone(self.MODEL)
        MODEL.fit(X)
        self.MODEL.fit(X)  # the loan has ended
        assert ledger.spent.epsilon == 9.0

    def test_an_estimator_that_the_ledger_never_saw_is_refused(self):
        def fit():
            return clone(self.MODEL).fit(X)

        other = PrivateHistogramDensity(bounds=(-100, 100), bins=3)
        with dpf.Ledger(100.0) as ledger, ThreadPoolExecutor(1) as pool:
            for work in (fit, lambda: other.fit(X)):
                with pytest.raises(dpf.BudgetError, match="active in another thread"):
                    pool.submit(work).result()
            pickled = pool.submit(pickle.dumps, other).result()
        with pytest.raises(dpf.BudgetError, match="cannot be charged from here"):
            pickle.loads(pickled).fit(X)
        with ledger:
            pickle.loads(pickled).fit(X)
        assert ledger.spent.epsilon == 1.0

    def test_carried_state_is_not_a_parameter(self):
        with dpf.Ledger(100.0):
            inside = clone(self.MODEL)
        assert repr(inside) == repr(self.MODEL)
        assert inside.get_params() == self.MODEL.get_params()


@pytest.mark.parametrize("make", ESTIMATORS)
class TestAll:
    @pytest.mark.parametrize("composition", ["basic", "renyi"])
    def test_a_fit_beyond_the_budget_is_not_charged(self, make, composition):
        ledger = dpf.Ledger(0.5, 1e-6, composition=composition)
        with ledger, pytest.raises(dpf.BudgetError, match="3 releases of epsilon"):
            make(bounds=BOUNDS, epsilon=1.4).fit(X)
        assert ledger.charges == ()

    def test_spends_epsilon_once(self, make):
        ledger = dpf.Ledger(1.0)
        with ledger:
            fitted = make(bounds=BOUNDS, epsilon=1.0).fit(X)
            with pytest.raises(dpf.errors.BudgetError):
                make(bounds=BOUNDS, epsilon=0.001).fit(X)
        assert 0.999 < ledger.spent.epsilon <= 1.0
        assert [charge.times for charge in ledger.charges] == [3]  # all columns at once
        assert fitted.privacy_ == dpf.Privacy(1.0)
        with ledger:  # calls after a fit are free
            if hasattr(fitted, "transform"):
                fitted.inverse_transform(fitted.transform(X))
            else:
                fitted.score_samples(X)
                fitted.sample(10)

    def test_ten_exact_tenths_fit(self, make):
        with dpf.Ledger("1") as ledger:
            for _ in range(10):
                make(bounds=(0, 100), epsilon="0.1").fit(X)
        assert 1 - 1e-12 < ledger.spent.epsilon <= 1

    def test_default_is_not_reproducible_and_a_state_is(self, make):
        def learnt(state):
            fitted = make(bounds=BOUNDS, epsilon=0.1, random_state=state).fit(X)
            return [v for k, v in sorted(vars(fitted).items()) if k in ("center_", "quantiles_", "histograms_")]

        def same(a, b):
            return pickle.dumps(learnt(a)) == pickle.dumps(learnt(b))

        assert not same(None, None)
        assert same(7, 7)
        assert not same(7, 8)
        assert same(Generator(PCG64(1)), Generator(PCG64(1)))
        assert same(np.random.RandomState(1), np.random.RandomState(1))

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"bounds": [(0, 1), (0, 1)]}, ValueError, "bounds must be one pair, or one for each column: 3, not 2"),
            ({"bounds": (1, 0)}, ValueError, "lower must be below upper"),
            ({"bounds": (0, 1), "epsilon": 0}, ValueError, "epsilon must be positive"),
            ({"bounds": (0, 1), "random_state": "x"}, (TypeError, ValueError), "SeedSequence"),
        ],
    )
    def test_wrong_parameters(self, make, options, error, message):
        with pytest.raises(error, match=message):
            make(**options).fit(X)

    def test_only_quantiles_need_no_bounds(self, make):
        if make is PrivateRobustScaler:
            assert make(epsilon=1e6).fit(X).center_ == pytest.approx(np.median(X, axis=0), rel=0.1)
        else:
            with pytest.raises(ValueError, match="bounds must be given"):
                make().fit(X)

    def test_outcomes_do_not_depend_on_values(self, make):
        changed = X.copy()
        changed[0] = [math.nan, math.inf, -math.inf]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            first, second = (make(bounds=BOUNDS, random_state=1).fit(data) for data in (X, changed))
        assert vars(first).keys() == vars(second).keys()
        for name in ("center_", "scale_", "quantiles_"):
            if hasattr(first, name):
                assert getattr(first, name).shape == getattr(second, name).shape
        with pytest.raises(TypeError, match="X must hold numbers, not dtype object"):
            make(bounds=BOUNDS).fit(X.astype(object))
        with pytest.raises(TypeError, match="pattern of stored entries would depend"):
            make(bounds=BOUNDS).fit(pytest.importorskip("scipy.sparse").csr_array(X))

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_data_frames(self, make, library):
        frame = pytest.importorskip(library).DataFrame(dict(zip("abc", X.T, strict=True)))
        fitted = make(bounds=BOUNDS, random_state=1).fit(frame)
        assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
        arrays = make(bounds=BOUNDS, random_state=1).fit(X)
        if hasattr(fitted, "transform"):
            assert np.array_equal(fitted.transform(frame), arrays.transform(X))
        else:
            assert np.array_equal(fitted.score_samples(frame), arrays.score_samples(X))


class TestScaler:
    def test_near_the_scaler_without_privacy(self):
        options = {"quantile_range": (10.0, 90.0), "unit_variance": True}
        private = PrivateRobustScaler(bounds=BOUNDS, epsilon=3.0, random_state=1, **options).fit(X)
        exact = RobustScaler(**options).fit(X)
        assert np.abs((private.center_ - exact.center_) / exact.scale_).max() < 0.1
        assert np.abs(private.scale_ / exact.scale_ - 1).max() < 0.1

    def test_what_is_not_used_is_not_released(self):
        neither = PrivateRobustScaler(bounds=BOUNDS, with_centering=False, with_scaling=False)
        with dpf.Ledger(1e-9) as ledger:
            assert np.array_equal(neither.fit_transform(X), X)
        assert ledger.charges == ()
        half = PrivateRobustScaler(bounds=BOUNDS, with_centering=False).fit(X)
        assert half.center_ is None

    def test_the_split(self):
        grids, rng = [dpf.Grid(0, 100), dpf.Grid(0, 10), BOUNDS[2]], Generator(PCG64(5))
        scaler = PrivateRobustScaler(bounds=BOUNDS, epsilon=0.75, random_state=Generator(PCG64(5))).fit(X)
        for j, grid in enumerate(grids):
            middle, low, high = dpf.Quantiles([0.5, 0.25, 0.75], grid=grid, epsilon=0.25)(X[:, j], rng=rng)
            assert (scaler.center_[j], scaler.scale_[j]) == (middle, high - low)

    def test_equal_quantiles(self):
        scaler = PrivateRobustScaler(bounds=dpf.Grid(0, 1, step=1), epsilon=100.0).fit(np.ones((1000, 1)))
        assert scaler.scale_.tolist() == [1.0]

    def test_input_is_not_modified(self):
        data = X.copy()
        scaler = PrivateRobustScaler(bounds=BOUNDS).fit(data)
        back = scaler.inverse_transform(scaler.transform(data))
        assert np.array_equal(data, X)
        assert np.allclose(back, X)

    def test_in_a_pipeline(self):
        pipe = make_pipeline(PrivateRobustScaler(bounds=BOUNDS), PrivateHistogramDensity(bounds=(-8, 8))).fit(X)
        assert np.isfinite(clone(pipe).fit(X).score_samples(X)).mean() > 0.9
        assert pickle.loads(pickle.dumps(pipe)).score(X) == pipe.score(X)

    def test_missing_entries_are_left_out_of_their_column(self):
        rows = np.random.default_rng(0).normal([50, 5], [10, 1], (10_000, 2))
        rows[::2, 0], rows[::4, 1] = math.nan, math.nan
        without = PrivateRobustScaler(epsilon=1.0).fit(rows)
        within = PrivateRobustScaler(bounds=[(0, 100), (0, 10)], epsilon=1.0, missing="drop").fit(rows)
        for scaler in (without, within):
            assert np.abs(scaler.center_ - [50, 5]).max() < 2
        assert PrivateRobustScaler(bounds=[(0, 100), (0, 10)], epsilon=1.0).fit(rows).center_[1] < 4.9
        options = {"bounds": [(0, 100), (0, 10)], "epsilon": 1.0}
        assert np.abs(PrivateStandardScaler(**options, missing=5.0).fit(rows).mean_ - [27.5, 5]).max() < 1
        with pytest.raises(ValueError, match="missing='drop' makes the number of records private"):
            PrivateStandardScaler(**options, missing="drop").fit(rows)

    @pytest.mark.parametrize("wrong", [(75, 25), (-1, 50), (0, 101)])
    def test_wrong_range(self, wrong):
        with pytest.raises(ValueError, match="quantile_range"):
            PrivateRobustScaler(bounds=BOUNDS, quantile_range=wrong).fit(X)

    @pytest.mark.parametrize("bounds", [(0.0, 5e-324), (-10.0, 10.0), (0.0, 1e308)])
    def test_no_row_makes_a_warning(self, bounds):
        scaler = PrivateRobustScaler(bounds=bounds, epsilon=1.0, random_state=0).fit(np.full((9, 1), bounds[1]))
        rows = np.array([[-1.7e308], [1.7e308], [np.inf], [-np.inf], [np.nan], [5e-324]])
        assert scaler.inverse_transform(scaler.transform(rows)).shape == rows.shape
        assert scaler.inverse_transform(rows).shape == rows.shape


class TestQuantileTransformer:
    def test_uniform_and_normal(self):
        uniform = PrivateQuantileTransformer(bounds=BOUNDS, epsilon=3.0, random_state=1).fit_transform(X)
        assert np.abs(np.quantile(uniform, [0.1, 0.5, 0.9], axis=0).T - [0.1, 0.5, 0.9]).max() < 0.05
        normal = PrivateQuantileTransformer(
            bounds=BOUNDS, epsilon=3.0, random_state=1, output_distribution="normal"
        ).fit(X)
        assert np.abs(np.quantile(normal.transform(X), 0.5, axis=0)).max() < 0.1
        assert np.allclose(normal.inverse_transform(normal.transform(X)), X, atol=1e-3)

    def test_ends_are_the_bounds(self):
        fitted = PrivateQuantileTransformer(bounds=BOUNDS, n_quantiles=3).fit(X)
        assert fitted.quantiles_[[0, -1]].T.tolist() == [[0, 100], [0, 10], [-20, 20]]
        assert fitted.references_.tolist() == [0, 0.25, 0.5, 0.75, 1]
        assert fitted.transform([[-1e9, 1e9, math.nan]])[0, :2].tolist() == [0.0, 1.0]
        assert math.isnan(fitted.transform([[0, 0, math.nan]])[0, 2])

    def test_ties_go_to_the_middle(self):
        grid = dpf.Grid(0, 2, step=1)
        fitted = PrivateQuantileTransformer(bounds=grid, n_quantiles=3, epsilon=1000.0).fit(np.ones((999, 1)))
        assert fitted.transform([[0], [1], [2]])[:, 0].tolist() == [0.0, 0.5, 1.0]

    @pytest.mark.parametrize(
        "wrong", [{"n_quantiles": 0}, {"n_quantiles": 1.5}, {"output_distribution": "cauchy"}], ids=str
    )
    def test_wrong_parameters(self, wrong):
        with pytest.raises((TypeError, ValueError), match=next(iter(wrong))):
            PrivateQuantileTransformer(bounds=BOUNDS, **wrong).fit(X)


class TestDensity:
    def test_integrates_to_one(self):
        density = PrivateHistogramDensity(bounds=(-20, 100), epsilon=3.0).fit(X[:, :1])
        points = np.linspace(-20, 100, 12_001)[:-1, None] + 0.005
        assert np.exp(density.score_samples(points)).mean() * 120 == pytest.approx(1, abs=1e-3)

    def test_joint_and_independent(self):
        z = np.random.default_rng(1).normal(size=20_000)
        pairs = np.column_stack([z, z])
        on, off = [[0.5, 0.5]], [[1.5, -1.5]]
        scores = {}
        for joint in (False, True):
            density = PrivateHistogramDensity(bounds=(-4, 4), epsilon=5.0, bins=16, joint=joint, random_state=1)
            density.fit(pairs)
            assert len(density.histograms_) == (1 if joint else 2)
            scores[joint] = density.score_samples(on)[0] - density.score_samples(off)[0]
            sample = density.sample(2000, random_state=3)
            assert sample.shape == (2000, 2)
            assert (np.corrcoef(sample.T)[0, 1] > 0.8) == joint
        assert scores[True] > scores[False] + 1

    def test_outside(self):
        density = PrivateHistogramDensity(bounds=(0, 1)).fit(np.full((100, 2), 0.5))
        assert density.score_samples([[2.0, 0.5]]).tolist() == [-math.inf]

    @pytest.mark.parametrize("joint", [False, True])
    @pytest.mark.parametrize("library", ["numpy", "pandas"])
    def test_ratings_are_points(self, joint, library):
        """As in `histogram`, five bins hold one rating each, of integers and not of floats."""
        make = np.asarray if library == "numpy" else pytest.importorskip(library).DataFrame
        ratings = np.repeat([1, 2, 3, 4, 5], [100, 200, 300, 50, 350])
        rows = np.column_stack([ratings, ratings[::-1]])
        density = PrivateHistogramDensity(bounds=(1, 5), epsilon=20.0, bins=5, joint=joint, random_state=1)
        density.fit(make(rows))
        for histogram in density.histograms_:
            edges = histogram.edges if joint else [histogram.edges]
            assert all(edge.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5] for edge in edges)
        shares = np.array([0.1, 0.2, 0.3, 0.05, 0.35])
        if not joint:
            found = np.exp(density.score_samples(np.column_stack([[1, 2, 3, 4, 5], [5] * 5])))
            assert found == pytest.approx(shares * 0.35, abs=0.01)
        assert set(np.unique(density.sample(1000, random_state=2))) == {1, 2, 3, 4, 5}
        assert clone(density).set_params(bins="auto").fit(make(rows)).histograms_[0].weights.size in (5, 25)
        of_floats = clone(density).fit(make(rows.astype(float))).histograms_[0]
        assert np.array(of_floats.edges)[..., 0].max() == 1

    def test_uneven_bins_of_whole_numbers_are_told_before_the_charge(self):
        density = PrivateHistogramDensity(bounds=(1, 5), bins=3)
        with pytest.warns(dpf.UtilityWarning, match="do not divide evenly into 3 bins") as told:
            density.fit(np.ones((100, 2), int))
        assert len(told) == 1
        with dpf.Ledger(epsilon=1.0) as ledger, warnings.catch_warnings():
            warnings.simplefilter("error", dpf.UtilityWarning)
            with pytest.raises(dpf.UtilityWarning):
                density.fit(np.ones((100, 2), int))
        assert ledger.charges == ()

    def test_few_records_for_fits_of_blocks_are_told_before_the_charge(self):
        regression, rows, labels = PrivateLinearRegression(radius=2.0), np.zeros((50, 3)), np.zeros(50)
        with pytest.warns(dpf.UtilityWarning, match="too few for fits of blocks of 3 columns") as told:
            regression.fit(rows, labels)
        assert len(told) == 1
        with dpf.Ledger(epsilon=1.0) as ledger, warnings.catch_warnings():
            warnings.simplefilter("error", dpf.UtilityWarning)
            with pytest.raises(dpf.UtilityWarning):
                regression.fit(rows, labels)
        assert ledger.charges == ()

    def test_too_many_columns_for_one_histogram(self):
        with pytest.raises(ValueError, match="4"):
            PrivateHistogramDensity(bounds=(0, 1), joint=True, bins=2).fit(np.zeros((10, 5)))


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_guarantee_is_that_of_the_fit(kind):
    estimator = kind(epsilon=2.0, **OPTIONS)
    assert not hasattr(estimator, "privacy_")
    estimator.fit(X).set_params(epsilon=0.5)
    assert estimator.privacy_ == dpf.Privacy(2.0)
    assert estimator.fit(X).privacy_ == dpf.Privacy(0.5)
