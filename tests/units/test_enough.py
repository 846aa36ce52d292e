"""Releases within bounds from too few records: what is said of them, and whether it is true."""

import math
import warnings
from functools import partial

import numpy as np
import pytest

import dpfast as dpf
from dpfast import local, robust
from dpfast.statistics import (
    Huber,
    InterquartileRange,
    Mean,
    Median,
    Quantile,
    Sum,
    TrimmedMean,
    Variance,
    WinsorizedMean,
)

UNIT = dpf.Grid(0, 1)
FEW = "too few for this release at epsilon"
TWO = (UNIT, dpf.Grid(0, 1, step=2.0**-10))


def _inverse(statistic, epsilon):
    return dpf.InverseSensitivity(statistic, grid=UNIT, epsilon=epsilon)


# A mechanism of epsilon, the number of columns, and what the error is measured by, for records that are spread evenly
# over bounds of width 1: twice their standard deviation (None: of a sum), or the value of a measure of spread.
TWICE = 1 / math.sqrt(3)
MADE = {
    "mean": (lambda e: dpf.GlobalSensitivity(Mean(), grid=UNIT, epsilon=e), 0, TWICE),
    "sum": (lambda e: dpf.GlobalSensitivity(Sum(), grid=UNIT, epsilon=e), 0, None),
    "variance": (lambda e: dpf.GlobalSensitivity(Variance(), grid=UNIT, epsilon=e), 0, 1 / 12),
    "pair of moments": (lambda e: dpf.MomentPair(grid=UNIT, epsilon=e), 0, 1 / 12),
    "trimmed mean": (lambda e: _inverse(TrimmedMean(0.1), e), 0, TWICE),
    "Winsorized mean": (lambda e: _inverse(WinsorizedMean(0.2), e), 0, TWICE),
    "Huber": (lambda e: _inverse(Huber(0.2), e), 0, TWICE),
    "interquartile range": (lambda e: _inverse(InterquartileRange(), e), 0, 1 / 2),
    "greatest": (lambda e: _inverse(Quantile(1), e), 0, TWICE),
    "M-estimate": (lambda e: dpf.MEstimator(dpf.psi.Logistic(0.2), grid=UNIT, epsilon=e), 0, TWICE),
    "smooth median": (lambda e: dpf.SmoothSensitivity(Median(), grid=UNIT, epsilon=e, delta=1e-6), 0, TWICE),
    "smooth median, pure": (lambda e: dpf.SmoothSensitivity(Median(), grid=UNIT, epsilon=e), 0, TWICE),
    "smooth trimmed mean": (
        lambda e: dpf.SmoothSensitivity(TrimmedMean(0.1), grid=UNIT, epsilon=e, delta=1e-5),
        0,
        TWICE,
    ),
    "mean of rows": (lambda e: dpf.NoisySums(Mean(), domain=dpf.domains.Box(TWO), epsilon=e), 2, TWICE),
    "Gaussian": (lambda e: dpf.NoisySums(Mean(), domain=dpf.domains.Box(TWO), epsilon=e, delta=1e-6), 2, TWICE),
    "boxes": (lambda e: robust.NestedBoxes(grid=TWO, epsilon=e), 2, TWICE),
}


def _told(call, *arguments):
    """Return the warnings of a call that say that records are too few."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call(*arguments)
    return [one for one in found if FEW in str(one.message)]


def _even(n, columns):
    x = (np.arange(n) + 0.5) / n
    rng = np.random.default_rng(n)
    return np.stack([rng.permutation(x) for _ in range(columns)], axis=1) if columns else x


@pytest.mark.parametrize("epsilon", [0.05, 0.7])
@pytest.mark.parametrize("name", MADE)
def test_the_error_is_where_it_is_said(name, epsilon):
    """From so many evenly spread records on the error is about half of their deviation, or a quarter of a spread.

    Clamping to the bounds makes it less, above all for noise with heavy tails; it is never near a half or the double of
    it.
    """
    make, columns, scale = MADE[name]
    mechanism = make(epsilon)
    n = math.ceil(mechanism.enough)
    released = mechanism.release(_even(n, columns), size=400, rng=np.random.default_rng(1)).reshape(400, -1)
    exact = {"sum": n / 2, "variance": 1 / 12, "pair of moments": 1 / 12, "greatest": 1.0}.get(name, 0.5)
    error = np.sqrt(np.mean((released - exact) ** 2, axis=0)).max() / (scale or n * TWICE)
    assert 0.11 < error < 0.34


@pytest.mark.parametrize("name", MADE)
def test_it_warns_below_that_number_before_the_charge(name):
    mechanism = MADE[name][0](0.3)
    n = math.ceil(mechanism.enough)
    assert not mechanism.plan(n).traps
    with dpf.Ledger(epsilon=0.1) as ledger:  # less than a release costs
        with pytest.warns(dpf.UtilityWarning, match=FEW), pytest.raises(dpf.BudgetError):
            mechanism(_even(n - 1, MADE[name][1]))
        assert not ledger.charges
    with pytest.warns(dpf.UtilityWarning, match=f"takes about {n:,} records"):
        mechanism(_even(max(n // 2, 2), MADE[name][1]))


@pytest.mark.parametrize(
    ("call", "enough"),
    [
        (lambda x, e: dpf.linear_regression(x[:, None], x, bounds=(0, 1), label_bound=1, epsilon=e), 28),
        (lambda x, e: dpf.glm(x[:, None], x > 0.5, bounds=(0, 1), epsilon=e), 28),
        (lambda x, e: dpf.theil_sen(x, x, slope_bounds=(-9, 9), intercept_bounds=(-9, 9), epsilon=e), 92),
        (lambda x, e: dpf.covariance(np.stack([x, x], axis=1), radius=2, epsilon=e), 62),
        (lambda x, e: dpf.mle(x, "normal", bounds=[(0, 1), (0.1, 1)], epsilon=e), 24),
        (lambda x, e: dpf.histogram(x, bounds=(0, 1), bins=4, epsilon=e), 10),
        (lambda x, e: dpf.density(x, bounds=(0, 1), epsilon=e, terms=1), 4),
        (lambda x, e: local.mean(x, bounds=(0, 1), epsilon=e), 57),
        (lambda x, e: local.median(x, bounds=(0, 1), epsilon=e), 57),
        (lambda x, e: local.quantile(x, 0.2, bounds=(0, 1), epsilon=e), 57),
    ],
)
def test_functions_warn_at_their_own_numbers(call, enough):
    """Each by public numbers alone: for records that are all equal, spread, or missing."""
    few = enough // 2
    for x in (np.linspace(0, 1, few), np.full(few, 0.5), np.full(few, np.nan)):
        assert len(_told(call, x, 1.0)) == 1
    assert not _told(call, np.linspace(0, 1, 2 * enough), 1.0)


@pytest.mark.parametrize("function", [dpf.mean, dpf.median, dpf.std, dpf.iqr])
def test_a_private_number_of_records_is_not_presumed(function):
    for n in (1, 30, 3000):
        assert not _told(partial(function, bounds=(0, 1), epsilon=0.01, neighbors="add-remove"), np.zeros(n))


def test_what_has_no_bounds_or_speaks_for_itself_states_no_number():
    silent = [
        dpf.InverseSensitivity(Median(), grid=dpf.FloatGrid(), epsilon=0.01),
        dpf.GlobalSensitivity(dpf.statistics.Count(), grid=UNIT, epsilon=0.01, neighbors="add-remove"),
    ]
    assert [mechanism.enough for mechanism in silent] == [0, 0]
