"""Standard scaler and principal components as estimators of scikit-learn: one release of sums of products each."""

import math
import pickle
import warnings

import numpy as np
import pytest
from numpy.random import PCG64, Generator

import dpfast as dpf

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpfast.sklearn import PrivateHistogramDensity, PrivatePCA, PrivateStandardScaler
from dpfast.sklearn.moments import ColumnMoments

BOUNDS = [(0, 100), (0, 10), dpf.Grid(-20, 20, missing=-3.0)]
BALL = {"radius": 60.0, "center": [50.0, 5.0, -3.0]}
X = np.random.default_rng(0).normal([50, 5, -3], [10, 1, 2], (5000, 3))
MAKERS = {
    "scaler in a box": lambda **given: PrivateStandardScaler(bounds=BOUNDS, **given),
    "scaler in a ball": lambda **given: PrivateStandardScaler(**BALL, **given),
    "mean alone": lambda **given: PrivateStandardScaler(bounds=BOUNDS, with_std=False, **given),
    "components": lambda **given: PrivatePCA(2, **BALL, **given),
    "components around a center": lambda **given: PrivatePCA(**BALL, centered=False, whiten=True, **given),
}


def _learnt(fitted):
    return {name: value for name, value in vars(fitted).items() if name.endswith("_")}


def _bytes(fitted):
    return pickle.dumps([np.asarray(v).tolist() for v in _learnt(fitted).values() if not isinstance(v, dpf.Privacy)])


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
class TestBoth:
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_spends_the_budget_once(self, make, delta):
        ledger = dpf.Ledger(1.0, delta)
        with ledger:
            fitted = make(epsilon=1.0, delta=delta).fit(X)
            with pytest.raises(dpf.BudgetError):
                make(epsilon=0.01).fit(X)
            fitted.transform(X)
            fitted.inverse_transform(fitted.transform(X))
        [charge] = ledger.charges
        assert charge.label.startswith(type(fitted).__name__ + ": <")
        assert ledger.spent.epsilon == fitted.privacy_.epsilon == 1.0
        assert ledger.spent.delta == fitted.privacy_.delta <= delta

    def test_folds_charge_the_ledger_in_threads(self, make):
        from joblib import parallel_config

        pipe = make_pipeline(make(epsilon=0.5), PrivateHistogramDensity(bounds=(-8, 8), epsilon=0.5, bins=3))
        ledger = dpf.Ledger(100.0)
        with ledger, parallel_config("threading", n_jobs=2):
            cross_val_score(pipe, X, cv=4)
        assert ledger.spent.epsilon == 4.0

    def test_default_is_not_reproducible_and_a_state_is(self, make):
        def learnt(state):
            return _bytes(make(random_state=state).fit(X))

        assert learnt(None) != learnt(None)
        assert learnt(7) == learnt(7) != learnt(8)
        assert learnt(Generator(PCG64(1))) == learnt(Generator(PCG64(1)))

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_outcomes_do_not_depend_on_values(self, make, delta):
        broken, far = X.copy(), X.copy()
        broken[::3] = [math.nan, math.inf, -math.inf]
        far[::2] *= 1e300
        shown = set()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for rows in (X, broken, far, 0 * X, np.full_like(X, math.nan), np.full_like(X, 1e308)):
                fitted = make(delta=delta).fit(rows)
                learnt = _learnt(fitted)
                for name, value in learnt.items():
                    assert value is None or isinstance(value, dpf.Privacy) or np.isfinite(value).all(), name
                back = fitted.inverse_transform(fitted.transform(broken))
                shown.add(str([back.shape, [(name, type(v), getattr(v, "shape", v)) for name, v in learnt.items()
                                            if not isinstance(v, float)]]))  # fmt: skip
        assert len(shown) == 1

    def test_one_row_and_one_column(self, make):
        fitted = make().set_params(**({"bounds": (0, 1)} if "box" in str(make) else {})).fit(X[:1])
        assert np.isfinite(fitted.transform(X[:1])).all()
        options = fitted.get_params() | ({"bounds": (0, 1)} if "bounds" in fitted.get_params() else {"center": 0.0})
        options |= {"n_components": None} if "n_components" in options else {"radius": None, "center": None}
        assert np.isfinite(type(fitted)(**options).fit_transform(X[:9, :1])).all()

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_data_frames(self, make, library):
        frame = pytest.importorskip(library).DataFrame(dict(zip("abc", X.T, strict=True)))
        fitted, arrays = make(random_state=1).fit(frame), make(random_state=1).fit(X)
        assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
        assert np.array_equal(fitted.transform(frame), arrays.transform(X))
        out = fitted.set_output(transform=library).transform(frame)
        assert list(out.columns) == list(fitted.get_feature_names_out())
        assert np.array_equal(out.to_numpy(), arrays.transform(X))

    def test_dtypes_and_strides(self, make):
        single = X.astype(np.float32)
        expected = _bytes(make(random_state=1).fit(single.astype(np.float64)))
        for rows in (single, np.asfortranarray(single), np.repeat(single, 2, axis=0)[::2]):
            assert _bytes(make(random_state=1).fit(rows)) == expected

    def test_input_is_not_modified_and_pickles(self, make):
        rows = X.copy()
        fitted = make(random_state=1).fit(rows)
        fitted.transform(rows)
        assert np.array_equal(rows, X)
        assert np.array_equal(pickle.loads(pickle.dumps(fitted)).transform(X), fitted.transform(X))
        assert _bytes(clone(fitted).fit(X)) == _bytes(fitted)

    @pytest.mark.parametrize(
        ("wrong", "error", "message"),
        [
            ({"epsilon": 0}, ValueError, "epsilon must be positive"),
            ({"delta": -1e-6}, ValueError, "delta"),
            ({"delta": 1.0}, ValueError, "delta"),
            ({"random_state": "x"}, (TypeError, ValueError), "SeedSequence"),
        ],
    )
    def test_wrong_parameters(self, make, wrong, error, message):
        ledger = dpf.Ledger(1.0)
        with ledger, pytest.raises(error, match=message):
            make().set_params(**wrong).fit(X)
        assert ledger.charges == ()


class TestStandardScaler:
    @pytest.mark.parametrize("given", [{"bounds": BOUNDS}, BALL], ids=["box", "ball"])
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_near_the_scaler_without_privacy(self, given, delta):
        private = PrivateStandardScaler(epsilon=1000.0, delta=delta, random_state=1, **given).fit(X)
        exact = StandardScaler().fit(X)
        assert np.abs((private.mean_ - exact.mean_) / exact.scale_).max() < 0.01
        assert np.abs(private.scale_ / exact.scale_ - 1).max() < 0.01
        assert np.abs(private.var_ / exact.var_ - 1).max() < 0.02
        assert private.n_samples_seen_ == exact.n_samples_seen_

    def test_each_rule_of_noise_is_taken(self):
        """K-norm noise for few columns, Gaussian noise for many if delta allows it, and less than the other."""
        for d, noise in ((1, "k-norm"), (3, "k-norm"), (100, "gaussian")):
            moments = ColumnMoments(dpf.domains.Box(dpf.Grid(0, 1)), d, 1.0, 1e-6)
            assert moments.mechanism.noise == noise
            pure = ColumnMoments(dpf.domains.Box(dpf.Grid(0, 1)), d, 1.0, 0.0)
            assert pure.mechanism.noise == "k-norm"
            deviations = [m.mechanism.noise_deviation(1)[-1] / m.weight for m in (moments, pure)]
            assert deviations[0] <= deviations[1]
            assert (deviations[0] < deviations[1]) == (noise == "gaussian")

    @pytest.mark.parametrize("domain", [dpf.domains.Box(dpf.Grid(-2, 7)), dpf.domains.Ball(3.0, center=2.0)], ids=str)
    @pytest.mark.parametrize("delta", [0.0, 1e-2])
    def test_the_rows_are_inside_the_domain_of_the_mechanism(self, domain, delta):
        """The mechanism clamps nothing but rounding, so means of squares have no bias; a smaller domain would."""
        rng = np.random.default_rng(1)
        rows = rng.normal(size=(300, 40))
        rows = np.vstack(
            [2 + 3 * np.eye(40), 2 + 3 * rows / np.linalg.norm(rows, axis=1)[:, None], np.full((1, 40), 2.0)]
        )
        rows = np.vstack([rows, rng.choice([-2.0, 7.0], (20, 40))]) if isinstance(domain, dpf.domains.Box) else rows
        moments = ColumnMoments(domain, 40, 1.0, delta)
        lifted, inside = moments.rows(rows), moments.mechanism.domain
        assert lifted[:, 40:] == pytest.approx(moments.weight * lifted[:, :40] ** 2)
        if isinstance(inside, dpf.domains.Ball):
            distances = np.linalg.norm(lifted - inside.center_of(80), axis=1)
            assert 0.99 < distances.max() / inside.radius < 1 + 1e-12
        else:
            assert np.array_equal(inside.encode(lifted), inside.encode(np.clip(lifted, [-1] * 40 + [0] * 40, 1)))

    @pytest.mark.parametrize("given", [{"bounds": (-3, 3)}, {"radius": 5.0}], ids=["box", "ball"])
    def test_noise_is_as_stated(self, given):
        rows = np.clip(np.random.default_rng(2).normal(size=(400, 2)), -3, 3)
        model = PrivateStandardScaler(epsilon=1.0, random_state=1, **given)
        moments = ColumnMoments(model._domain(2), 2, 1.0, 0.0)
        expected = moments.mechanism.noise_deviation(400) * np.append(moments.half, moments.half**2 / moments.weight)
        rng, errors = Generator(PCG64(3)), []
        for _ in range(600):
            fitted = model.set_params(random_state=rng).fit(rows)
            errors.append(
                [*(fitted.mean_ - rows.mean(axis=0)), *(fitted.var_ + fitted.mean_**2 - (rows**2).mean(axis=0))]
            )
        ratios = np.std(errors, axis=0) / expected
        assert np.abs(ratios - 1).max() < 0.25

    def test_constant_columns_get_a_finite_scale(self):
        fitted = PrivateStandardScaler(bounds=(0, 10), epsilon=1.0).fit(np.full((1000, 3), 4.0))
        moments = ColumnMoments(dpf.domains.Box(dpf.Grid(0, 10)), 3, 1.0, 0.0)
        assert (fitted.scale_ >= 5 * math.sqrt(moments.mechanism.noise_deviation(1000)[-1])).all()
        assert PrivateStandardScaler(bounds=(0.0, 5e-324)).fit(np.zeros((9, 1))).scale_.tolist() == [1.0]

    def test_what_is_not_used_is_not_released(self):
        neither = PrivateStandardScaler(bounds=BOUNDS, with_mean=False, with_std=False)
        with dpf.Ledger(1e-9) as ledger:
            assert np.array_equal(neither.fit_transform(X), X)
        assert ledger.charges == ()
        assert neither.mean_ is neither.var_ is neither.scale_ is None
        mean = PrivateStandardScaler(bounds=BOUNDS, with_std=False, random_state=Generator(PCG64(1))).fit(X)
        grids = [dpf.Grid(0, 100), dpf.Grid(0, 10), BOUNDS[2]]
        direct = dpf.NoisySums(dpf.statistics.Mean(), domain=dpf.domains.Box(grids), epsilon=1.0)
        assert mean.mean_.tolist() == direct(X, rng=Generator(PCG64(1))).tolist()
        assert np.array_equal(mean.transform(X), X - mean.mean_)
        scale = PrivateStandardScaler(bounds=BOUNDS, with_mean=False).fit(X)
        assert np.array_equal(scale.transform(X), X / scale.scale_)

    def test_missing_values(self):
        rows = X.copy()
        rows[::2, 2] = math.nan
        in_box = PrivateStandardScaler(bounds=BOUNDS, epsilon=1e4).fit(rows)
        assert in_box.mean_[2] == pytest.approx((rows[1::2, 2].mean() - 3.0) / 2, abs=0.05)
        half = PrivateStandardScaler(bounds=dpf.Grid(-10, 10, missing="half"), epsilon=1e4).fit(rows)
        assert half.mean_[2] == pytest.approx((rows[1::2, 2].mean() - 10.0) / 2, abs=0.05)  # at even positions
        with pytest.raises(ValueError, match="missing='drop' makes the number of records private"):
            PrivateStandardScaler(bounds=dpf.Grid(-10, 10, missing="drop")).fit(X)
        in_ball = PrivateStandardScaler(epsilon=1e4, **BALL).fit(rows)
        filled = np.where(np.isnan(rows).any(axis=1)[:, None], BALL["center"], rows)
        assert in_ball.var_ == pytest.approx(filled.var(axis=0), abs=0.5)

    @pytest.mark.parametrize(
        ("wrong", "error", "message"),
        [
            ({"bounds": None}, ValueError, "bounds must be given"),
            ({"bounds": [(0, 1), (0, 1)]}, ValueError, "one for each column: 3, not 2"),
            ({"bounds": (1, 0)}, ValueError, "lower must be below upper"),
            ({"bounds": (-1e200, 1e200)}, ValueError, "range of float64"),
            ({"radius": 1.0}, TypeError, "not both"),
            ({"center": 1.0}, TypeError, "not both"),
            ({"bounds": None, "radius": 0}, ValueError, "radius must be positive"),
            ({"bounds": None, "radius": 1.0, "center": [0, 0]}, ValueError, "X must have 2 columns"),
            ({"with_mean": 1}, TypeError, "with_mean must be True or False"),
        ],
    )
    def test_wrong_parameters(self, wrong, error, message):
        with pytest.raises(error, match=message):
            PrivateStandardScaler(**{"bounds": BOUNDS, **wrong}).fit(X)


class TestPCA:
    @pytest.mark.parametrize("options", [{}, {"whiten": True}, {"delta": 1e-6}, {"centered": False}], ids=str)
    def test_near_the_components_without_privacy(self, options):
        private = PrivatePCA(2, epsilon=1e4, random_state=1, **BALL, **options).fit(X)
        exact = PCA(2, whiten="whiten" in options).fit(X)
        assert private.components_ == pytest.approx(np.abs(exact.components_), abs=0.05)
        assert np.array_equal(private.mean_ == BALL["center"], [not private.centered] * 3)
        assert private.mean_ == pytest.approx(exact.mean_, abs=0.5)
        for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_", "noise_variance_"):
            assert getattr(private, name) == pytest.approx(getattr(exact, name), rel=0.02), name
        signs = np.sign(private.components_[[0, 1], [0, 2]] * exact.components_[[0, 1], [0, 2]])
        tolerance = 0.2 if "whiten" in options else 0.6
        assert private.transform(X) == pytest.approx(exact.transform(X) * signs, abs=tolerance)
        back = private.inverse_transform(private.transform(X))
        assert back == pytest.approx(exact.inverse_transform(exact.transform(X)), abs=0.5)

    @pytest.mark.parametrize("centered", [True, False])
    def test_is_the_building_block(self, centered):
        fitted = PrivatePCA(epsilon=1.0, centered=centered, random_state=Generator(PCG64(5)), **BALL).fit(X)
        released = dpf.Covariance(
            domain=dpf.domains.Ball(60.0, center=(50.0, 5.0, -3.0)), epsilon=1.0, centered=centered
        )(X, rng=Generator(PCG64(5)))
        rebuilt = (fitted.components_.T * fitted.explained_variance_) @ fitted.components_
        assert rebuilt * 4999 / 5000 == pytest.approx(released, abs=1e-9)
        assert fitted.components_ @ fitted.components_.T == pytest.approx(np.eye(3))
        assert (np.diff(fitted.explained_variance_) <= 0).all()

    def test_signs_do_not_depend_on_the_solver(self):
        components = PrivatePCA(**BALL).fit(X).components_
        assert (np.take_along_axis(components, np.abs(components).argmax(axis=1)[:, None], axis=1) > 0).all()

    @pytest.mark.parametrize("d", [1, 4, 60])
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    @pytest.mark.parametrize("centered", [True, False])
    def test_noise_alone_stays_near_its_level(self, d, delta, centered):
        ratios = []
        for seed in range(20):
            model = PrivatePCA(radius=1.0, delta=delta, centered=centered, random_state=seed)
            fitted = model.fit(np.zeros((1000, d)))
            ratios.append(fitted.explained_variance_[0] / fitted.noise_level_)
        assert (0.85 if d == 60 else 0.05) < np.mean(ratios) < 1.1

    @pytest.mark.parametrize(
        ("wrong", "error", "message"),
        [
            ({"radius": None}, ValueError, "radius must be given"),
            ({"radius": -1}, ValueError, "radius must be positive"),
            ({"center": [0, 0]}, ValueError, "X must have 2 columns"),
            ({"n_components": 0}, ValueError, "n_components must be at least 1"),
            ({"n_components": 4}, ValueError, "at most the number of columns, 3, not 4"),
            ({"n_components": 0.9}, TypeError, "n_components must be an integer"),
            ({"whiten": 1}, TypeError, "whiten must be True or False"),
            ({"centered": None}, TypeError, "centered must be True or False"),
        ],
    )
    def test_wrong_parameters(self, wrong, error, message):
        ledger = dpf.Ledger(1.0)
        with ledger, pytest.raises(error, match=message):
            PrivatePCA(**{**BALL, **wrong}).fit(X)
        assert ledger.charges == ()

    def test_more_columns_than_rows(self):
        rows = np.random.default_rng(0).normal(size=(5, 30))
        assert PrivatePCA(7, radius=8.0).fit_transform(rows).shape == (5, 7)
