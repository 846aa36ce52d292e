"""Private logistic regression as an estimator of scikit-learn: by sums, by blocks, and local."""

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
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from dpfast import families, local
from dpfast.sklearn import PrivateLogisticRegression, PrivateRobustScaler
from tests.statistical import ALPHA

SUMS = {"classes": (0, 1), "radius": 4.0}
BLOCKS = {"classes": (0, 1), "method": "blocks", "bounds": (-10, 10)}
LOCAL = {"classes": (0, 1), "method": "local", "radius": 2.0}


def _model(n, d=2, seed=0):
    """Rows of independent normals, the slopes 2, -1, 0, ... and the intercept 1/2."""
    rng = np.random.default_rng(seed)
    rows, slopes = rng.normal(size=(n, d)), np.array([2.0, -1.0, *[0.0] * d])[:d]
    return rows, (rng.random(n) < 1 / (1 + np.exp(-(rows @ slopes + 0.5)))).astype(int)


ROWS, TARGETS = _model(2000)


def _learnt(model):
    return model.coef_.tobytes() + model.intercept_.tobytes()


@pytest.mark.parametrize("options", [SUMS, BLOCKS, LOCAL], ids=["sums", "blocks", "local"])
class TestEveryLogistic:
    def test_spends_epsilon_once(self, options):
        neighbors = "local" if options is LOCAL else "replace-one"
        ledger = dpf.Ledger(1.0, neighbors=neighbors)
        with ledger:
            fitted = PrivateLogisticRegression(epsilon=1.0, **options).fit(ROWS, TARGETS)
            with pytest.raises(dpf.errors.BudgetError):
                PrivateLogisticRegression(epsilon=0.001, **options).fit(ROWS, TARGETS)
            fitted.predict_proba(ROWS)
            fitted.score(ROWS, TARGETS)
        assert ledger.spent.epsilon == 1.0
        assert len(ledger.charges) == 1
        assert fitted.privacy_ == dpf.Privacy(1.0, neighbors=neighbors)
        other = "local" if neighbors == "replace-one" else "replace-one"
        with dpf.Ledger(1.0, neighbors=other), pytest.raises(ValueError, match="the two do not add up"):
            PrivateLogisticRegression(epsilon=0.1, **options).fit(ROWS, TARGETS)

    def test_the_guarantee_is_that_of_the_fit(self, options):
        model = PrivateLogisticRegression(epsilon=2.0, **options)
        assert not hasattr(model, "privacy_")
        model.fit(ROWS, TARGETS).set_params(epsilon=0.5)
        assert model.privacy_.epsilon == 2.0
        assert model.fit(ROWS, TARGETS).privacy_.epsilon == 0.5

    def test_default_is_not_reproducible_and_a_state_is(self, options):
        def learnt(state):
            return _learnt(PrivateLogisticRegression(random_state=state, **options).fit(ROWS, TARGETS))

        assert learnt(None) != learnt(None)
        assert learnt(7) == learnt(7)
        assert learnt(7) != learnt(8)
        assert learnt(Generator(PCG64(1))) == learnt(Generator(PCG64(1)))
        assert learnt(np.random.RandomState(1)) == learnt(np.random.RandomState(1))

    @pytest.mark.parametrize(
        ("wrong", "error", "message"),
        [
            ({"classes": None}, ValueError, "classes must be given"),
            ({"classes": (0,)}, ValueError, "classes must be a pair"),
            ({"classes": "01"}, ValueError, "classes must be a pair"),
            ({"classes": 1}, ValueError, "classes must be a pair"),
            ({"classes": (1, 1.0)}, ValueError, "classes must be different"),
            ({"classes": (0, math.nan)}, ValueError, "each of classes must be finite"),
            ({"classes": (0, "one")}, TypeError, "each of classes must be a real number, not str"),
            ({"classes": (0, None)}, TypeError, "each of classes must be a real number, not NoneType"),
            ({"method": "exact"}, ValueError, "method"),
            ({"fit_intercept": 1}, TypeError, "fit_intercept must be True or False"),
            ({"epsilon": 0}, ValueError, "epsilon must be positive"),
            ({"random_state": "x"}, (TypeError, ValueError), "SeedSequence"),
        ],
    )
    def test_wrong_parameters(self, options, wrong, error, message):
        ledger = dpf.Ledger(1.0, neighbors="local" if options is LOCAL else "replace-one")
        with ledger, pytest.raises(error, match=message):
            PrivateLogisticRegression(**{**options, **wrong}).fit(ROWS, TARGETS)
        assert ledger.charges == ()

    def test_wrong_shapes(self, options):
        model = PrivateLogisticRegression(**options)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.fit(ROWS, TARGETS[1:])
        with pytest.raises(ValueError, match="y should be a 1d array"):
            model.fit(ROWS, ROWS)
        with pytest.raises(ValueError, match="requires y to be passed"):
            model.fit(ROWS, None)
        with pytest.raises(TypeError, match="y must hold numbers, not dtype"):
            model.fit(ROWS, TARGETS.astype(str))
        with pytest.raises(TypeError, match="y must hold text, like classes, not dtype int64"):
            model.set_params(classes=("no", "yes")).fit(ROWS, TARGETS)

    @pytest.mark.parametrize("intercept", [True, False])
    def test_outcomes_do_not_depend_on_values(self, options, intercept):
        broken, constant = ROWS.copy(), np.full_like(ROWS, 3.0)
        broken[::3] = [math.nan, math.inf]
        none, third = np.full(2000, math.nan), np.where(np.arange(2000) % 3, TARGETS, 7.5)
        signalling = np.full(2000, 0x7FA00000, np.uint32).view(np.float32)
        datasets = [(ROWS, TARGETS), (np.stack([signalling] * 2, axis=1), signalling)]
        datasets += [(broken, TARGETS), (constant, TARGETS), (np.zeros_like(ROWS), TARGETS)]
        datasets += [(ROWS, labels) for labels in (0 * TARGETS, TARGETS**0, none, third, 1e300 * TARGETS)]
        shown = set()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for rows, labels in datasets:
                model = PrivateLogisticRegression(fit_intercept=intercept, **options).fit(rows, labels)
                assert np.isfinite(np.append(model.coef_, model.intercept_)).all()
                assert model.predict_proba(broken).shape == (2000, 2)
                shown.add(
                    str(
                        {
                            name: (type(v), getattr(v, "shape", None if name == "fit_" else v))
                            for name, v in sorted(vars(model).items())
                        }
                    )
                )
        assert len(shown) == 1

    def test_labels(self, options):
        def learnt(classes, y):
            return _learnt(PrivateLogisticRegression(random_state=1, **{**options, "classes": classes}).fit(ROWS, y))

        text = np.where(TARGETS == 1, "yes", "no")
        expected = learnt((0, 1), TARGETS)
        masked = np.arange(2000) % 3 == 0
        holes = learnt((0, 1), np.where(masked, math.nan, TARGETS))
        assert learnt((0, 1), np.ma.array(TARGETS, mask=masked)) == holes != expected
        assert learnt(("no", "yes"), np.ma.array(text, mask=masked)) == holes
        for y in (TARGETS.tolist(), TARGETS.astype(bool), TARGETS.astype(np.float32), TARGETS.astype(np.uint8)):
            assert learnt((1, 0), y) == learnt((False, True), y) == expected
        assert learnt((-1, 1), 2 * TARGETS - 1) == learnt((0.5, 0.75), 0.5 + TARGETS / 4) == expected
        for y in (text, text.astype(object), text.tolist(), tuple(text.tolist())):
            assert learnt(("yes", "no"), y) == expected
        with pytest.warns(DataConversionWarning):
            assert learnt((0, 1), TARGETS[:, None]) == expected

        missing = learnt((0, 1), np.where(np.arange(2000) % 3, TARGETS, math.nan))
        assert missing != expected
        for other in (2, -1, 0.5, math.inf):
            assert learnt((0, 1), np.where(np.arange(2000) % 3, TARGETS, other)) == missing
        for other in (None, math.nan, 3, "maybe", "", ["yes"], np.array([1, 2])):
            y = text.tolist()
            y[::3] = [other] * len(y[::3])
            assert learnt(("no", "yes"), y) == missing
            objects = np.empty(2000, object)
            for i, label in enumerate(y):
                objects[i] = label
            assert learnt(("no", "yes"), objects) == missing
        for other in (None, "maybe", [1], [], (1, 2), 10**400):
            y = TARGETS.tolist()
            y[::3] = [other] * len(y[::3])
            assert learnt((0, 1), y) == missing
        fractions = np.where(TARGETS == 1, 0.2, 0.1)
        assert learnt((0.1, 0.2), fractions) == learnt((0.1, 0.2), fractions.astype(np.float32)) == expected

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_data_frames(self, options, library):
        lib = pytest.importorskip(library)
        frame = lib.DataFrame({"a": ROWS[:, 0], "b": ROWS[:, 1]})
        text = lib.Series(np.where(TARGETS == 1, "yes", "no").tolist())
        first = PrivateLogisticRegression(random_state=1, **options).fit(ROWS, TARGETS)
        second = PrivateLogisticRegression(random_state=1, **options).fit(frame, lib.Series(TARGETS))
        third = PrivateLogisticRegression(random_state=1, **{**options, "classes": ("no", "yes")}).fit(frame, text)
        assert second.feature_names_in_.tolist() == ["a", "b"]
        assert _learnt(first) == _learnt(second) == _learnt(third)
        assert set(third.predict(frame)) == {"no", "yes"}

    def test_predictions(self, options):
        model = PrivateLogisticRegression(epsilon=100.0, random_state=1, **{**options, "classes": ("b", "a")})
        model.fit(ROWS, np.where(TARGETS == 1, "b", "a"))
        odds = model.decision_function(ROWS)
        assert np.array_equal(odds, ROWS @ model.coef_[0] + model.intercept_[0])
        assert model.classes_.tolist() == ["a", "b"]
        assert model.predict(ROWS).tolist() == np.where(odds > 0, "b", "a").tolist()
        assert np.allclose(np.log(model.predict_proba(ROWS)), model.predict_log_proba(ROWS))
        assert np.allclose(np.diff(model.predict_log_proba(ROWS), axis=1)[:, 0], odds)
        assert model.score(ROWS, np.where(TARGETS == 1, "b", "a")) > 0.7
        assert model.predict([[math.nan, 0.0]]).tolist() == ["a"]

    def test_pickled_cloned_and_in_a_pipeline(self, options):
        scaler = PrivateRobustScaler(bounds=(-5, 5), epsilon=5.0, unit_variance=True, random_state=1)
        pipe = make_pipeline(scaler, PrivateLogisticRegression(epsilon=5.0, random_state=1, **options)).fit(
            3 + ROWS / 2, TARGETS
        )
        assert np.array_equal(pickle.loads(pickle.dumps(pipe)).predict_proba(ROWS), pipe.predict_proba(ROWS))
        assert clone(pipe).fit(3 + ROWS / 2, TARGETS).score(3 + ROWS / 2, TARGETS) > 0.6

    def test_input_is_not_modified(self, options):
        rows, labels = ROWS.copy(), TARGETS.copy()
        PrivateLogisticRegression(**options).fit(rows, labels).predict(rows)
        assert np.array_equal(rows, ROWS)
        assert np.array_equal(labels, TARGETS)


def _three_classes(n, seed=0):
    """Rows of three columns, the largest of which is the class of most rows: "a", "b" or "c"."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3))
    return rows, np.array(["a", "b", "c"])[np.argmax(2 * rows + rng.gumbel(size=(n, 3)), axis=1)]


THREE = {"classes": ("c", "a", "b"), "radius": 4.0}


class TestSeveralClasses:
    def test_is_the_building_block(self):
        rows, labels = _three_classes(2000)
        model = PrivateLogisticRegression(random_state=Generator(PCG64(5)), delta=1e-6, **THREE)
        model.fit(rows, labels)
        codes = np.searchsorted(["a", "b", "c"], labels)
        fit = dpf.glm(
            rows, codes, model="multinomial", classes=3, radius=4.0, epsilon=1.0, delta=1e-6, rng=Generator(PCG64(5))
        )
        assert model.classes_.tolist() == ["a", "b", "c"]
        assert model.coef_.tolist() == fit.coefficients.tolist()
        assert model.intercept_.tolist() == fit.intercept.tolist()
        assert np.allclose(model.predict_proba(rows), fit.probability(rows))
        assert model.privacy_ == fit.privacy == dpf.Privacy(1.0, 1e-6)

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_near_the_fit_without_privacy(self, delta):
        """Predictions of new rows; the control has a thousandth of the budget."""
        rows, labels = _three_classes(20_000)
        held, truth = _three_classes(20_000, seed=1)
        exact = LogisticRegression(C=math.inf).fit(rows, labels).score(held, truth)
        model = PrivateLogisticRegression(random_state=1, delta=delta, **THREE).fit(rows, labels)
        assert exact - 0.005 < model.score(held, truth)
        assert model.set_params(epsilon=0.001).fit(rows, labels).score(held, truth) < exact - 0.01

    def test_predictions(self):
        rows, labels = _three_classes(5000)
        model = PrivateLogisticRegression(epsilon=100.0, random_state=1, **THREE).fit(rows, labels)
        t = model.decision_function(rows)
        assert t.shape == (5000, 3)
        assert np.allclose(t, rows @ model.coef_.T + model.intercept_)
        assert np.allclose(t.sum(axis=1), 0)
        assert model.predict(rows).tolist() == model.classes_[t.argmax(axis=1)].tolist()
        chances = model.predict_proba(rows)
        assert np.allclose(chances.sum(axis=1), 1)
        assert np.allclose(np.log(chances), model.predict_log_proba(rows))
        assert np.allclose(np.diff(np.log(chances)), np.diff(t))
        assert model.predict([[math.nan, 0.0, 1.0]]).tolist() == ["a"]
        assert model.predict_proba([[math.inf, 0.0, 1.0]]).shape == (1, 3)

    def test_labels(self):
        """Other labels are missing; which classes occur does not matter."""
        rows, labels = _three_classes(900)
        codes = np.searchsorted(["a", "b", "c"], labels)

        def learnt(classes, y):
            model = PrivateLogisticRegression(random_state=1, **{**THREE, "classes": classes}).fit(rows, y)
            assert model.coef_.shape == (3, 3)
            assert model.predict_proba(rows).shape == (900, 3)
            return _learnt(model)

        expected = learnt(("a", "b", "c"), labels)
        for y in (codes, codes.tolist(), codes.astype(np.float32), codes.astype(np.uint8)):
            assert learnt((2, 0, 1), y) == expected
        assert learnt((0.5, 1.5, 2.5), codes + 0.5) == expected
        assert learnt(("a", "b", "c"), labels.astype(object)) == expected
        missing = learnt((0, 1, 2), np.where(np.arange(900) % 3, codes, math.nan))
        for other in (-1, 3, 0.5, math.inf):
            assert learnt((0, 1, 2), np.where(np.arange(900) % 3, codes, other)) == missing
        assert learnt((0, 1, 2), codes % 2) != expected
        assert learnt((0, 1, 2), np.full(900, 7)) != expected

    @pytest.mark.parametrize("method", ["blocks", "local"])
    def test_only_sums(self, method):
        model = PrivateLogisticRegression(method=method, bounds=(-3, 3), **THREE)
        with pytest.raises(ValueError, match="classes must be a pair, or more for method='sums'"):
            model.fit(*_three_classes(100))

    def test_spends_epsilon_once(self):
        ledger = dpf.Ledger(1.0)
        with ledger:
            PrivateLogisticRegression(**THREE).fit(*_three_classes(500))
        assert ledger.spent.epsilon == 1.0
        assert ledger.charges[0].label.startswith("PrivateLogisticRegression: <glm, multinomial, of rows in a ball")


@pytest.mark.parametrize("options", [BLOCKS, LOCAL], ids=["blocks", "local"])
def test_rows_that_are_sorted_by_label(options):
    rows, labels = _model(100_000, seed=1)
    order = np.argsort(labels)
    wrong = []
    for shuffle in (3, None):
        model = PrivateLogisticRegression(epsilon=8.0, shuffle=shuffle, random_state=1, **options)
        model.fit(rows[order], labels[order])
        wrong.append(np.abs([*model.coef_[0] - [2, -1], model.intercept_[0] - 0.5]).max())
    assert wrong[0] < 0.9 < wrong[1]


@pytest.mark.parametrize("options", [BLOCKS, LOCAL], ids=["blocks", "local"])
def test_wrong_shuffle(options):
    with pytest.raises(ValueError, match="shuffle must be at least 0"):
        PrivateLogisticRegression(shuffle=-1, **options).fit(ROWS, TARGETS)


class TestSums:
    @pytest.mark.parametrize("given", [{}, {"delta": 1e-6}, {"center": [0.5, 0.0]}, {"fit_intercept": False}], ids=str)
    def test_is_the_building_block(self, given):
        model = PrivateLogisticRegression(random_state=Generator(PCG64(5)), **SUMS, **given).fit(ROWS, TARGETS)
        options = {{"fit_intercept": "intercept"}.get(name, name): value for name, value in given.items()}
        fit = dpf.glm(ROWS, TARGETS, radius=4.0, epsilon=1.0, rng=Generator(PCG64(5)), **options)
        assert model.coef_.tolist() == [fit.coefficients.tolist()]
        assert model.intercept_.tolist() == [fit.intercept]
        assert model.fit_.standard_errors.tolist() == fit.standard_errors.tolist()
        assert model.privacy_ == fit.privacy == dpf.Privacy(1.0, given.get("delta", 0.0))
        assert model.predict_proba(ROWS)[:, 1] == pytest.approx(fit.probability(ROWS))

    def test_is_the_default_where_a_radius_is_given(self):
        def learnt(**given):
            return _learnt(PrivateLogisticRegression(classes=(0, 1), random_state=1, **given).fit(ROWS, TARGETS))

        assert learnt(radius=4.0) == learnt(radius=4.0, bounds=(-3, 3)) == learnt(radius=4.0, method="sums")
        assert learnt(bounds=(-3, 3)) == learnt(bounds=(-3, 3), method="blocks")

    def test_all_steps_are_one_charge(self):
        ledger = dpf.Ledger(2.0, 1e-5, composition="renyi")
        with ledger:
            for _ in range(3):  # a sum of 3 by addition
                PrivateLogisticRegression(delta=1e-6, **SUMS).fit(ROWS, TARGETS)
        mu = ledger.charges[0].profile.mu
        assert (
            mu
            == dpf.NoisySums(
                dpf.statistics.Mean(), domain=dpf.domains.Ball(1.0), epsilon=1.0, delta=1e-6, noise="gaussian"
            ).gaussian_mu
        )
        assert len(ledger.charges) == 3
        assert ledger.charges[0].label.startswith("PrivateLogisticRegression: <glm, logistic, of rows in a ball")

    @pytest.mark.parametrize("backend", ["threading"])
    def test_a_search_charges_the_ledger_for_every_fit(self, backend):
        ledger = dpf.Ledger(100.0)
        with ledger, parallel_config(backend, n_jobs=2):
            search = GridSearchCV(PrivateLogisticRegression(**SUMS), {"radius": [3.0, 4.0]}, cv=3).fit(ROWS, TARGETS)
        assert ledger.spent.epsilon == 7.0
        search.best_estimator_.fit(ROWS, TARGETS)  # carries the ledger, also outside
        assert ledger.spent.epsilon == 8.0

    @pytest.mark.parametrize(
        ("wrong", "error", "message"),
        [
            ({"radius": None}, ValueError, "radius must be given"),
            ({"radius": 0}, ValueError, "radius must be positive"),
            ({"center": [0.0]}, ValueError, "X must have 1 columns"),
            ({"delta": 1.0}, ValueError, "delta"),
            ({"method": "blocks", "bounds": (-1, 1), "delta": 1e-6}, ValueError, "delta must be 0 for method='blocks'"),
            ({"method": "local", "delta": 1e-6}, ValueError, "delta must be 0 for method='local'"),
        ],
    )
    def test_wrong_parameters(self, wrong, error, message):
        ledger = dpf.Ledger(1.0)
        with ledger, pytest.raises(error, match=message):
            PrivateLogisticRegression(**{**SUMS, **wrong}).fit(ROWS, TARGETS)
        assert ledger.charges == ()

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_near_the_fit_without_privacy(self, delta):
        """Where blocks lose 8 points."""
        rows, labels = _model(10_000, d=10, seed=4)
        held, truth = _model(50_000, d=10, seed=5)
        exact = LogisticRegression(C=math.inf).fit(rows, labels).score(held, truth)
        model = PrivateLogisticRegression(classes=(0, 1), radius=math.sqrt(10) + 1, delta=delta, random_state=1)
        assert exact - 0.005 < model.fit(rows, labels).score(held, truth)
        assert model.set_params(epsilon=0.001).fit(rows, labels).score(held, truth) < exact - 0.01
        model.set_params(method="blocks", bounds=(-3, 3), epsilon=1.0, delta=0.0)
        assert model.fit(rows, labels).score(held, truth) < exact - 0.01

    def test_one_row_more_columns_than_rows_and_separable_classes(self):
        rng = np.random.default_rng(0)
        for rows in (ROWS[:1], rng.normal(size=(5, 30)), np.column_stack([TARGETS, TARGETS]), 1e12 * ROWS):
            labels = TARGETS[: len(rows)]
            model = PrivateLogisticRegression(classes=(0, 1), radius=float(np.abs(rows).max() + 1)).fit(rows, labels)
            assert np.isfinite(model.predict_proba(rows)).all()


class TestBlocks:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"blocks": 7, "shuffle": None},
            {"bounds": [(-1, 3), (-2, 2), (0, 1)], "combine": "winsorized"},
            {"fit_intercept": False, "spread": (1.0, 2.0)},
        ],
        ids=str,
    )
    def test_is_the_building_block(self, options):
        model = PrivateLogisticRegression(random_state=Generator(PCG64(5)), **{**BLOCKS, **options})
        model.fit(ROWS, TARGETS)
        family = families.LogisticRegression(
            ("x", "y"), intercept=options.get("fit_intercept", True), spread=options.get("spread", 1.0)
        )
        names = [name for name in ("x", "y", "intercept") if name in family.names]
        pairs = options.get("bounds", [BLOCKS["bounds"]] * 3)
        released = dpf.mle(
            (ROWS, TARGETS),
            family,
            bounds=dict(zip(names, pairs, strict=False)),
            epsilon=1.0,
            blocks=options.get("blocks", "auto"),
            combine=options.get("combine", "mean"),
            shuffle=options.get("shuffle", 0),
            rng=Generator(PCG64(5)),
        )
        assert [*model.coef_[0], *model.intercept_][: len(names)] == released.tolist()
        if len(names) == 2:
            assert model.intercept_.tolist() == [0.0]

    def test_one_coefficient(self):
        model = PrivateLogisticRegression(fit_intercept=False, **BLOCKS).fit(ROWS[:, :1], TARGETS)
        assert (model.coef_.shape, model.intercept_.tolist()) == ((1, 1), [0.0])

    @pytest.mark.parametrize(
        ("wrong", "error", "message"),
        [
            ({"bounds": None}, ValueError, "bounds must be given"),
            ({"bounds": [(0, 1)] * 2}, ValueError, "bounds must be one pair, or one for each coefficient: 3, not 2"),
            ({"bounds": (1, 0)}, ValueError, "lower must be below upper"),
            ({"bounds": dpf.Grid(0, 1)}, ValueError, "bounds must be a pair"),
            ({"blocks": 2001}, ValueError, "their number is public"),
            ({"blocks": "all"}, ValueError, "blocks must be a number or 'auto'"),
            ({"combine": "median"}, ValueError, "combine"),
            ({"spread": (1.0, 1.0, 1.0)}, ValueError, "spread must be one number or 2"),
        ],
    )
    def test_wrong_parameters(self, wrong, error, message):
        with pytest.raises(error, match=message):
            PrivateLogisticRegression(**{**BLOCKS, **wrong}).fit(ROWS, TARGETS)

    def test_two_blocks_are_needed(self):
        with pytest.raises(ValueError, match="at least 100 records, two blocks of 50, not 99"):
            PrivateLogisticRegression(**BLOCKS).fit(ROWS[:99], TARGETS[:99])
        PrivateLogisticRegression(**BLOCKS).fit(ROWS[:100], TARGETS[:100])

    def test_accuracy(self):
        n, truth = 200_000, {"x0": 2.0, "x1": -1.0, "intercept": 0.5}
        rows, labels = _model(n, seed=3)
        options = {"bounds": (-4, 4), "epsilon": 16.0, "blocks": 800}
        model = PrivateLogisticRegression(classes=(0, 1), random_state=1, **options).fit(rows, labels)
        close = dpf.SampleAndAggregate(families.LogisticRegression(2), **options).error(
            n, truth, confidence=1 - ALPHA / 3
        )[[1, 2, 0]]
        released, expected = np.append(model.coef_[0], model.intercept_), np.array([*truth.values()])
        assert (np.abs(released - expected) < close).all()
        for scale in (0.9, 1.1):
            assert not (np.abs(released - scale * expected) < close).all()

    def test_wide_bounds(self):
        rows, labels = _model(100_000, seed=7)
        errors = []
        for combine in ("winsorized", "mean"):
            model = PrivateLogisticRegression(
                classes=(0, 1), bounds=(-300, 300), combine=combine, epsilon=1.0, random_state=1
            )
            errors.append(np.abs(model.fit(rows, labels).coef_[0] - [2, -1]).max())
        assert errors[0] < 0.15 < errors[1]

    def test_near_the_fit_without_privacy(self):
        rows, labels = _model(50_000, d=5, seed=4)
        held, truth = _model(50_000, d=5, seed=5)
        exact = LogisticRegression(C=math.inf).fit(rows, labels).score(held, truth)
        model = PrivateLogisticRegression(classes=(0, 1), bounds=(-3, 3), random_state=1).fit(rows, labels)
        assert exact - 0.01 < model.score(held, truth)
        assert model.set_params(epsilon=0.001).fit(rows, labels).score(held, truth) < exact - 0.01


class TestLocal:
    @pytest.mark.parametrize(
        "options",
        [{}, {"shuffle": None}, {"norm": "linf", "radius": 1.5}, {"fit_intercept": False, "bound": 3.0}],
        ids=str,
    )
    def test_is_the_building_block(self, options):
        options = {**LOCAL, **options}
        model = PrivateLogisticRegression(random_state=Generator(PCG64(5)), **options).fit(ROWS, TARGETS)
        order = Generator(PCG64(0)).permutation(2000) if options.get("shuffle", 0) == 0 else np.arange(2000)
        intercept = options.get("fit_intercept", True)
        released = local.glm(
            ROWS[order],
            TARGETS[order],
            epsilon=1.0,
            intercept=intercept,
            rng=Generator(PCG64(5)),
            **{name: options[name] for name in ("radius", "norm", "bound") if name in options},
        )
        assert [*model.coef_[0], *model.intercept_][: len(released)] == released.tolist()
        assert len(released) == 2 + intercept

    @pytest.mark.parametrize(
        ("wrong", "error", "message"),
        [
            ({"radius": None}, ValueError, "radius must be given"),
            ({"radius": 0}, ValueError, "radius must be positive"),
            ({"norm": "l1"}, ValueError, "norm"),
            ({"bound": -1}, ValueError, "bound must be positive"),
            ({"shuffle": 0.5}, TypeError, "shuffle must be an integer"),
        ],
    )
    def test_wrong_parameters(self, wrong, error, message):
        with pytest.raises(error, match=message):
            PrivateLogisticRegression(**{**LOCAL, **wrong}).fit(ROWS, TARGETS)

    def test_accuracy(self):
        n, runs, slope = 100_000, 30, 2.0
        options = {"epsilon": 4.0, "radius": 1.0}
        rng, released = np.random.default_rng(6), []
        for run in range(runs):
            rows = rng.uniform(-1, 1, (n, 1))
            labels = rng.random(n) < 1 / (1 + np.exp(-slope * rows[:, 0]))
            model = PrivateLogisticRegression(
                classes=(False, True), method="local", fit_intercept=False, random_state=run, **options
            )
            released.append(model.fit(rows, labels).coef_[0, 0])
        study = local.GradientDescent(1, **options)
        [close] = study.error(n, rows[:1000], [slope], confidence=1 - ALPHA) / math.sqrt(runs)
        assert abs(np.mean(released) - slope) < close
        for scale in (0.9, 1.1):
            assert not abs(np.mean(released) - scale * slope) < close
