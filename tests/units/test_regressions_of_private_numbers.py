"""Regressions of a private number of records: their guarantee, what is left out, and what they refuse."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import audit
from dpfast.mechanisms.resized import NoisySize
from dpfast.regression import sized
from tests.cases import every

N = 6000
HIDDEN = {"neighbors": "add-remove", "missing": "drop"}
BOUNDS = {"bounds": (-1.0, 1.0)}
LINEAR = {**BOUNDS, "label_bound": 6.0}


def records():
    """Records of which the cells of a column are missing where it is large, so that means mislead."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, 2))
    y = 3 + X @ [1.0, -2.0] + rng.normal(size=N) / 4
    X[(X[:, 0] > 0) & (rng.random(N) < 0.8), 0] = np.nan
    return X, y


@every("options", [{}, {"method": "sums"}, {"method": "residuals"}, {"delta": 1e-6}], ids=str)
def test_records_with_missing_cells_are_left_out(options):
    X, y = records()
    fit = dpf.linear_regression(X, y, **LINEAR, **HIDDEN, epsilon=4.0, rng=PCG64(1), **options)
    assert np.abs(fit.coefficients - [1, -2]).max() < 0.15
    assert fit.n is None
    assert fit.privacy == dpf.Privacy(4.0, options.get("delta", 0.0), "add-remove")
    wrong = dpf.linear_regression(X, y, **LINEAR, epsilon=4.0, rng=PCG64(1), **options)
    assert abs(wrong.coefficients[0] - 1) > 0.5


def test_blocks_and_generalised_models():
    X, y = records()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "epsilon = .*is above 20")
        fit = dpf.linear_regression(X, y, radius=1.5, **HIDDEN, epsilon=40.0, rng=PCG64(1))
    assert np.abs(fit.coefficients - [1, -2]).max() < 0.3
    fit = dpf.glm(X, np.where(y > 3, "yes", "no"), classes=["no", "yes"], **BOUNDS, **HIDDEN, epsilon=8, rng=PCG64(1))
    assert fit.coefficients[0] > 2
    assert fit.coefficients[1] < -4
    assert fit.privacy == dpf.Privacy(8.0, 0.0, "add-remove")
    named = dpf.glm(X[:0], y[:0], model="huber", k=1.0, label_bound=6, **BOUNDS, neighbors="add-remove", epsilon=1)
    assert np.isfinite(named.coefficients).all()


@every(
    "fit, options",
    [
        (dpf.linear_regression, {**LINEAR, "method": "sums"}),
        (dpf.linear_regression, {**LINEAR, "method": "residuals"}),
        (dpf.linear_regression, {"radius": 1.5, "epsilon": 18.0}),
        (dpf.glm, {**BOUNDS, "model": "huber", "k": 1.0, "label_bound": 6.0}),
    ],
    ids=str,
)
def test_chunks_have_the_fit_of_their_records_in_one_array(fit, options):
    X, y = records()
    table = np.column_stack([X, y])
    pieces = [(X[:10], y[:10]), table[10:10], table[10:4000], (X[4000:], y[4000:])]
    given = {"epsilon": 4.0, **options, **HIDDEN}
    wanted = fit(X, y, **given, rng=PCG64(1))
    for chunks in (dpf.Chunks(pieces), dpf.Chunks(lambda: iter(pieces))):
        found = fit(chunks, **given, rng=PCG64(1))
        assert np.array_equal(found.coefficients, wanted.coefficients)
        assert found.n is None
    other = fit(dpf.Chunks(pieces[:3]), **given, rng=PCG64(1))
    assert not np.array_equal(other.coefficients, wanted.coefficients)


@every("records", [0, 1, 7], ids=str)
@pytest.mark.parametrize("method", ["auto", "sums", "residuals"])
def test_few_records_raise_and_warn_of_nothing(records, method):
    X, y = np.ones((records, 3)), np.full(records, np.nan)
    fit = dpf.linear_regression(X, y, **LINEAR, **HIDDEN, epsilon=0.5, method=method)
    assert np.isfinite(fit.coefficients).all()


def test_a_ledger_is_charged_once_for_number_and_fit():
    X, y = records()
    ledger = dpf.Ledger(3, 1e-5, neighbors="add-remove")
    with ledger:
        dpf.linear_regression(X, y, **LINEAR, **HIDDEN, epsilon=1.0)
        dpf.glm(X, y > 3, **BOUNDS, **HIDDEN, epsilon=1.0, delta=1e-6)
    assert [charge.profile.privacy.epsilon for charge in ledger.charges] == [1, 1]
    assert [charge.label.partition(":")[0] for charge in ledger.charges] == [
        "<linear regression",
        "<logistic regression",
    ]
    with ledger, pytest.raises(dpf.errors.BudgetError):
        dpf.linear_regression(X, y, **LINEAR, **HIDDEN, epsilon=1.5)
    assert ledger.spent.epsilon == 2


@every(
    "options, message",
    [
        ({"missing": "drop"}, "missing='drop' makes the number of records private"),
        ({"neighbors": "add-remove", "missing": "half"}, "missing must be None or 'drop' for a regression, not 'half'"),
        ({"neighbors": "none"}, "neighbors must be"),
        ({"neighbors": "add-remove", "epsilon": 1e-4}, "must be at least 0.00244"),
        ({"neighbors": "add-remove", "bounds": [(0, 1)] * 3}, "X must have 3 columns, like bounds, not 2"),
    ],
    ids=str,
)
def test_what_costs_nothing(options, message):
    X, y = records()
    ledger = dpf.Ledger(3, neighbors="add-remove")
    for call in (dpf.linear_regression, dpf.glm):
        bound = {"label_bound": 6.0} if call is dpf.linear_regression else {}
        with ledger, pytest.raises(ValueError, match=message.replace("(", r"\(")):
            call(X, y, **{**BOUNDS, "epsilon": 1.0, **bound, **options})
    assert ledger.charges == ()
    pieces = dpf.Chunks([(X, y), (X[:, :1], y)])
    with ledger, pytest.raises(ValueError, match="chunks must have 2 columns like the first one, not 1"):
        dpf.linear_regression(pieces, **LINEAR, neighbors="add-remove", epsilon=1.0)
    assert ledger.charges == ()


def test_what_is_explained():
    X, y = records()
    texts = []
    dpf.linear_regression(X, y, **LINEAR, **HIDDEN, epsilon=1.0, explain=texts.append)
    for words in ("10 % is for the number of records", "are left out", "depends on the private number of records"):
        assert words in texts[0]


@dataclass(frozen=True)
class Constant:
    """A regression as the audit calls it: the constant of a fit."""

    epsilon: float

    @property
    def privacy(self):
        return dpf.Privacy(self.epsilon, 0.0, "add-remove")

    def release(self, x, *, size, rng):
        y = np.asarray(x, np.float64)
        X = np.zeros((len(y), 1))
        options = {"radius": 1.0, "label_bound": 1.0, "epsilon": self.epsilon, "method": "sums"}
        return np.array(
            [dpf.linear_regression(X, y, **options, neighbors="add-remove", rng=rng).intercept for _ in range(size)]
        )


def test_the_audit_rejects_the_exact_number(monkeypatch):
    """The control: a sample whose size is the number of records, which one more record changes."""
    one, two = np.ones(40), np.ones(41)
    release = Constant(1.0)
    few = {"trials": 75, "confidence": 0.99}  # enough for releases that never agree: log(.89 / .11) > 2
    assert audit.distinguish(release, one, two, **few, rng=PCG64(1)) <= 1

    class Exact(NoisySize):
        def drawn(self, n, source):
            return 1 if n == 40 else 10**4

    monkeypatch.setattr(sized, "NoisySize", Exact)
    assert audit.distinguish(release, one, two, **few, rng=PCG64(1)) > 1.5
