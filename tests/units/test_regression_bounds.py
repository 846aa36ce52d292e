"""Public bounds on the columns of regressions, in place of a radius; and the names of columns."""

import math

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast.regression import bounds as column_bounds
from dpfast.regression import linear_regression
from dpfast.regression.bounds import ColumnBounds
from tests.untouchable import Untouchable

LOWER, UPPER = np.array([-1.0, 0.0, 100.0]), np.array([3.0, 0.5, 300.0])
BOUNDS = np.column_stack([LOWER, UPPER])
MIDDLE, HALF = (LOWER + UPPER) / 2, (UPPER - LOWER) / 2
LINEAR = {"label_bound": 4.0, "epsilon": 1.0, "delta": 1e-3}
LOGISTIC = {"epsilon": 1.0, "delta": 1e-3}


def data(n=4000, seed=1):
    """Rows within the bounds but for some, and labels."""
    rng = np.random.default_rng(seed)
    scaled = rng.uniform(-1.1, 1.1, (n, 3))
    return MIDDLE + HALF * scaled, scaled @ [1.0, -1.0, 0.5] + 0.5 * rng.normal(size=n)


def by_hand(X):
    return (np.clip(X, LOWER, UPPER) - MIDDLE) / HALF


def numbers(fit):
    return np.concatenate([fit.coefficients, [fit.intercept], fit.standard_errors, [fit.intercept_error]])


@pytest.mark.parametrize("intercept", [True, False])
def test_bounds_are_a_map_of_the_rows(intercept):
    """The release is that of rows scaled by hand; the fit predicts the same, with the same errors of predictions."""
    X, y = data()
    for fit, labels, options in ((linear_regression, y, LINEAR), (dpf.glm, y > 0, LOGISTIC)):
        options = {**options, "intercept": intercept}
        found = fit(X, labels, bounds=BOUNDS, rng=PCG64(3), **options)
        plain = fit(by_hand(X), labels, radius=math.sqrt(3), rng=PCG64(3), **options)
        assert (type(found), found.privacy, found.n) == (type(plain), plain.privacy, 4000)
        assert isinstance(found.intercept, float)
        assert isinstance(found.intercept_error, float)
        np.testing.assert_allclose(found.coefficients * HALF, plain.coefficients, rtol=1e-9)
        np.testing.assert_allclose(found.standard_errors * HALF, plain.standard_errors, rtol=1e-9)
        rows = MIDDLE + HALF * np.random.default_rng(2).uniform(-1, 1, (50, 3))
        np.testing.assert_allclose(
            found.linear_predictor(rows), plain.linear_predictor(by_hand(rows)), rtol=1e-9, atol=1e-9
        )
        variances = []
        for made, given in ((found, rows), (plain, by_hand(rows))):
            given = np.column_stack([given, np.ones(50)])
            variances.append(np.sum(given @ made.covariance * given, axis=1))
        np.testing.assert_allclose(*variances, rtol=1e-6)


def test_bounds_with_several_classes():
    X = np.clip(data()[0], LOWER, UPPER)
    for classes, rows in ((3, X), (252, X[:50])):  # the errors of more than 1000 coefficients are not computed
        labels = np.random.default_rng(3).integers(0, 3, len(rows))
        options = {**LOGISTIC, "model": "multinomial", "classes": classes}
        found = dpf.glm(rows, labels, bounds=BOUNDS, rng=PCG64(3), **options)
        plain = dpf.glm(by_hand(rows), labels, radius=math.sqrt(3), rng=PCG64(3), **options)
        np.testing.assert_allclose(found.coefficients * HALF, plain.coefficients, rtol=1e-9)
        np.testing.assert_allclose(found.standard_errors * HALF, plain.standard_errors, rtol=1e-9)
        np.testing.assert_allclose(
            found.linear_predictor(rows), plain.linear_predictor(by_hand(rows)), rtol=1e-9, atol=1e-9
        )
        assert (found.covariance is None) == (classes == 252)
        if classes == 3:
            back = np.append(-MIDDLE / HALF, 1.0)
            variances = [back @ plain.covariance[i : i + 4, i : i + 4] @ back for i in (0, 4, 8)]
            np.testing.assert_allclose(found.intercept_error**2, variances, rtol=1e-6)


def test_the_units_of_columns_do_not_matter():
    X, y = data()
    units = np.array([2.0**-30, 1.0, 2.0**30])
    for fit, labels, options in ((linear_regression, y, LINEAR), (dpf.glm, y > 0, LOGISTIC)):
        plain = fit(X, labels, bounds=BOUNDS, rng=PCG64(1), **options)
        found = fit(X * units, labels, bounds=BOUNDS * units[:, None], rng=PCG64(1), **options)
        assert np.array_equal(found.coefficients * units, plain.coefficients)
        assert found.intercept == plain.intercept


def test_bounds_serve_columns_that_a_radius_hides():
    """The error of the slope of a column a thousand times narrower than another one, in its units."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (20_000, 2)) * [1.0, 0.001]
    y = X @ [1.0, 1000.0] + 0.5 * rng.normal(size=20_000)
    width = [1.0, 0.001]
    scaled = linear_regression(X, y, bounds=[(-half, half) for half in width], rng=PCG64(1), **LINEAR)
    plain = linear_regression(X, y, radius=math.hypot(*width), rng=PCG64(1), **LINEAR)
    assert abs(scaled.coefficients[1] - 1000) < 100 < 500 < abs(plain.coefficients[1] - 1000)


def test_records_outside_and_missing():
    """Columns are clamped one by one, infinities too; a record with NaN in its row is in the middle, with label 0."""
    X, y = data(400)
    X[::7, 0], X[1::7, 1], X[2::7, 2] = 1e300, -np.inf, np.inf
    holes = X.copy()
    holes[::5, 1] = np.nan
    missing = np.arange(400) % 5 == 0
    filled = np.where(missing[:, None], MIDDLE, np.clip(X, LOWER, UPPER)), np.where(missing, 0.0, y)
    found, wanted = (
        linear_regression(*records, bounds=BOUNDS, rng=PCG64(1), **LINEAR) for records in ((holes, y), filled)
    )
    assert np.array_equal(numbers(found), numbers(wanted))


def test_pieces_and_dtypes(monkeypatch):
    X, y = data(1000)
    X = np.rint(X)
    for fit, labels, options in ((linear_regression, y, LINEAR), (dpf.glm, y > 0, LOGISTIC)):
        options = {"bounds": [(-1, 3), (-1, 2), (-1, 300)], **options}

        def numbers_of(*records, fit=fit, options=options):
            return numbers(fit(*records, rng=PCG64(7), **options))

        wanted = numbers_of(X, labels)
        for rows in (
            X.astype(np.float32),
            X.astype(np.int16),
            X.astype(">f8"),
            np.asfortranarray(X),
            X[:, ::-1][:, ::-1],
        ):
            assert np.array_equal(numbers_of(rows, labels), wanted)
        assert np.array_equal(numbers_of((X, labels)), wanted)
        pieces = [(X[:0], labels[:0]), (X[:300], labels[:300]), np.column_stack([X[300:], labels[300:]])]
        assert np.array_equal(numbers_of(dpf.Chunks(pieces)), wanted)
        monkeypatch.setattr(column_bounds, "_NUMBERS", 100)
        assert np.array_equal(numbers_of(X, labels), wanted)
        assert np.array_equal(numbers_of(dpf.Chunks(pieces)), wanted)
        monkeypatch.undo()


def test_one_charge():
    X, y = data(500)
    for call in (
        lambda: linear_regression(X, y, bounds=(-1, 300), **LINEAR),
        lambda: dpf.glm(X, y > 0, bounds=(-1, 300), **LOGISTIC),
    ):
        with dpf.Ledger(5.0, 0.1) as ledger:
            fit = call()
        [charge] = ledger.charges
        assert charge.profile.privacy == fit.privacy == dpf.Privacy(1.0, 1e-3)


def test_a_start_is_in_the_units_of_the_data():
    """One step of a fit begins where an exact fit in the units of the data is."""
    X, y = data(200_000)
    options = {"bounds": BOUNDS, "epsilon": 100.0, "delta": 1e-3, "rng": PCG64(1)}
    first = dpf.glm(X, y > 0, **options)
    again = dpf.glm(X, y > 0, start=first, steps=1, **options)
    fresh = dpf.glm(X, y > 0, steps=1, **options)
    distances = [np.abs((fit.coefficients - first.coefficients) * HALF).max() for fit in (again, fresh)]
    assert distances[0] < 0.1 < 0.5 < distances[1]
    with pytest.raises(TypeError, match=r"start must be a dpfast\.regression\.Fit of 3 columns"):
        dpf.glm(X, y > 0, start=linear_regression(X[:, :2], y, radius=3.0, label_bound=1.0, epsilon=1.0), **options)


@pytest.mark.parametrize("fit", [linear_regression, dpf.glm])
def test_bad_parameters(fit):
    options = LINEAR if fit is linear_regression else LOGISTIC
    records = Untouchable(), Untouchable()
    for given, error, message in (
        ({}, TypeError, r"give either radius= or bounds=\(lower, upper\)"),
        ({"radius": 1.0, "bounds": (0, 1)}, TypeError, "give either radius= or bounds="),
        ({"bounds": (0, 1), "center": 1.0}, TypeError, "center must be left out"),
        ({"bounds": (0, 1), "center": [0.0, 0.0]}, TypeError, "center must be left out"),
        ({"bounds": ("a", "b")}, TypeError, "the lower end of bounds must be a real number"),
        ({"bounds": (0, math.nan)}, ValueError, "the upper end of bounds must be finite"),
        ({"bounds": (1, 1)}, ValueError, "lower must be below upper in bounds, not lower=1, upper=1"),
        ({"bounds": (0, 2.0**101)}, ValueError, r"within \+-2\*\*100"),
        ({"bounds": (0, 2.0**-100)}, ValueError, r"2\*\*-99"),
        ({"bounds": (0, 1), "epsilon": 0.0}, ValueError, "epsilon"),
    ):
        with pytest.raises(error, match=message):
            fit(*records, **{**options, **given})
    X, y = data(20)
    for records in ((X, y), (dpf.Chunks([(X, y)]),)):
        with pytest.raises(ValueError, match="X must have 2 columns, like bounds, not 3"):
            fit(*records, bounds=[(0, 1), (0, 2)], **options)


def test_the_largest_numbers():
    """Fits are finite for the widest and narrowest bounds; label bounds beyond that are refused."""
    X, y = data(50)
    for bounds in (
        (-(2.0**100), 2.0**100),
        (0, 2.0**-99),
        (2.0**100 - 2.0**60, 2.0**100),
        [(low, 2.0**100) for low in range(3)],
    ):
        for fit in (
            linear_regression(X, y, bounds=bounds, **{**LINEAR, "label_bound": 2.0**100}),
            dpf.glm(X, y, model="huber", bounds=bounds, label_bound=2.0**199, k=2.0**-199, **LOGISTIC),
        ):
            assert np.isfinite(numbers(fit)).all()
            assert np.isfinite(fit.covariance).all()
    with pytest.raises(ValueError, match="beyond the range of float64"):
        linear_regression(X, y, bounds=(0, 2.0**-99), **{**LINEAR, "label_bound": 2.0**250})
    assert ColumnBounds((-4, 8)).domain(9).radius == 3.0


# ---- names ----


@pytest.mark.host
def test_names_of_the_columns_of_data_frames():
    pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    X, y = data(100)
    columns = {"age": X[:, 0], "a much longer name": X[:, 1], "<b>": X[:, 2]}
    for fit, options in ((linear_regression, LINEAR), (dpf.glm, LOGISTIC)):
        for table in (pandas.DataFrame(columns), polars.DataFrame(columns), pyarrow.table(columns)):
            made = fit(table, y, bounds=BOUNDS, rng=PCG64(1), **options)
            assert made.names == ("age", "a much longer name", "<b>")
            text = repr(made).splitlines()
            assert [line.split("  ")[0] for line in text[2:]] == ["age", "a much longer name", "<b>", "intercept"]
            assert len({len(line.rstrip(">")) for line in text[1:]}) == 1
            assert ">&lt;b&gt;</td>" in made._repr_html_()
        frame = pandas.DataFrame(columns)
        assert fit((frame, y), radius=1.0, **options).names == made.names
        assert fit(dpf.Chunks([(frame, y)]), radius=1.0, **options).names == made.names
        assert fit(dpf.Chunks([frame.assign(y=y)]), radius=1.0, **options).names == made.names
        assert fit(frame.set_axis([1, 2, 3], axis=1), y, radius=1.0, **options).names == ("1", "2", "3")
        assert fit(X, y, radius=1.0, **options).names is None
        assert fit(dpf.Chunks([(X, y)]), radius=1.0, **options).names is None
