"""Records with labels, and the released fit of a regression."""

import html

import numpy as np
import pytest

import dpfast as dpf
from dpfast.regression import Fit
from dpfast.streaming import Labelled

X, Y = np.arange(12.0).reshape(6, 2), np.arange(6)


def test_pairs_and_matrices():
    for records in (Labelled.of((X, Y)), Labelled.of(np.column_stack([X, Y])), Labelled.of(Labelled.of((X, Y)))):
        assert len(records) == 6
        assert records.columns == 2
        np.testing.assert_array_equal(records.rows, X)
        np.testing.assert_array_equal(records.labels, Y)
        np.testing.assert_array_equal(records[np.array([4, 1])].rows, X[[4, 1]])
    assert Labelled.of((X.astype(np.float32)[::2], Y[::-2])).rows.dtype == np.float32
    assert "5." not in repr(Labelled.of((X, Y)))


@pytest.mark.host
def test_containers():
    pandas, polars, arrow = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    wanted = Labelled.of((X, Y))
    pairs = [(pandas.DataFrame(X), pandas.Series(Y)), (polars.DataFrame(X), polars.Series(Y)), (X.tolist(), Y.tolist())]
    pairs += [(arrow.table({"a": X[:, 0], "b": X[:, 1]}), arrow.array(Y)), pandas.DataFrame(np.column_stack([X, Y]))]
    for pair in pairs:
        made = Labelled.of(pair)
        np.testing.assert_array_equal(made.rows, wanted.rows)
        np.testing.assert_array_equal(made.labels, wanted.labels)


def test_bad_records():
    with pytest.raises(ValueError, match="X and y must be equally long, not 6 and 5"):
        Labelled.of((X, Y[1:]))
    with pytest.raises(ValueError, match="rows of at least two columns"):
        Labelled.of(X[:, :1])
    with pytest.raises(ValueError, match="X must be two-dimensional"):
        Labelled.of(Y)
    with pytest.raises(ValueError, match="y must be one-dimensional"):
        Labelled.of((X, X))
    with pytest.raises(TypeError, match="x must be a pair"):
        Labelled.pair(X)
    with pytest.raises(TypeError, match="y must hold numbers"):
        Labelled.of((X, np.array(["a"] * 6)))


def test_a_fit():
    fit = Fit(np.array([2.0, -1.0]), 0.5, np.array([0.1, 0.2]), 0.05, dpf.Privacy(1.0), n=1000)
    np.testing.assert_allclose(fit.predict(X), 2 * X[:, 0] - X[:, 1] + 0.5)
    low, high = fit.interval(0.5).T
    np.testing.assert_allclose((low + high) / 2, fit.coefficients)
    np.testing.assert_allclose((high - low) / 2, 0.6744897501960817 * fit.standard_errors)
    np.testing.assert_allclose(np.diff(fit.intercept_interval(0.5)), 2 * 0.6744897501960817 * 0.05)
    assert fit.interval(0.99)[0, 0] < fit.interval(0.9)[0, 0]
    assert html.escape(str(fit.privacy)) in fit._repr_html_()
    assert repr(fit).count("\n") == fit._repr_html_().count("<tr>") == 4
    with pytest.raises(ValueError, match="X must have 2 columns, not 3"):
        fit.predict(np.ones((4, 3)))
    with pytest.raises(ValueError, match="confidence must be strictly between 0 and 1"):
        fit.interval(1.0)


def test_a_fit_of_several_predictors():
    fit = Fit(np.eye(3, 2), np.arange(3.0), np.ones((3, 2)), np.ones(3), dpf.Privacy(1.0))
    np.testing.assert_allclose(fit.linear_predictor(X), X @ np.eye(2, 3) + np.arange(3))
    assert fit.interval().shape == (3, 2, 2)
    assert fit.intercept_interval().shape == (3, 2)
    assert "2: intercept" in repr(fit)
