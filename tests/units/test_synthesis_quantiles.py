"""Synthetic numbers between jointly released quantiles."""

import warnings

import numpy as np
import pytest
from numpy.random import PCG64, Generator
from scipy import stats

import dpfast as dpf
from dpfast.densities.interpolation import draw_between, quantile_levels
from tests.untouchable import Untouchable

SETS = {
    "lognormal": (stats.lognorm(1), (0, 1000)),
    "far bounds": (stats.norm(50, 1), (0, 100_000)),
    "Pareto": (stats.pareto(1.2), (0, 1e6)),
}


def distance(draws, law):
    return stats.kstest(draws, law.cdf).statistic


@pytest.mark.parametrize("name", SETS)
def test_skewed_columns_are_followed(name):
    """The distance of Kolmogorov and Smirnov, where a histogram within the bounds fails."""
    law, bounds = SETS[name]
    x = law.rvs(4000, random_state=Generator(PCG64(3)))
    close = {bounds: dpf.synthesize(x, 20_000, bounds=bounds, epsilon=1.0, rng=PCG64(4))}
    close[None] = dpf.synthesize(x, 20_000, epsilon=1.0, rng=PCG64(4))
    for draws in close.values():
        assert distance(draws, law) < 0.07
    histogram = dpf.synthesize(x, 20_000, bounds=bounds, epsilon=1.0, method="perturbed", rng=PCG64(4))
    assert distance(histogram, law) > 0.3


def test_draws_have_the_given_quantiles():
    quantiles, grid = np.array([10.0, 20.0, 40.0, 80.0]), dpf.Grid(0, 1000, step=0.5)
    draws = draw_between(quantiles, 200_000, grid, PCG64(1))
    shares = (draws[:, None] <= quantiles).mean(axis=0)
    np.testing.assert_allclose(shares, [0.125, 0.375, 0.625, 0.875], atol=0.01)
    assert (draws.min(), draws.max()) == (5.0, 100.0)
    assert np.isin(draws, grid.decode(np.arange(grid.size))).all()


def test_no_quantiles_lead_out_of_the_grid():
    grid = dpf.FloatGrid()
    for quantiles in ([-np.inf, np.inf, np.inf], [-np.inf] * 3, [0.0, 0.0, np.inf], [-np.inf, 0.0, 1.0]):
        released = np.clip(quantiles, grid.lower, grid.upper)
        with np.errstate(all="raise"):
            draws = draw_between(released, 1000, grid, PCG64(1))
        assert np.isfinite(draws).all()
    assert (draw_between(np.full(3, 7.0), 9, dpf.Grid(0, 10, step=1), PCG64(1)) == 7).all()


def test_knots_near_the_largest_double_are_in_order():
    """Half of the last distance on either side, where twice a quantile is no double."""
    grid = dpf.FloatGrid()
    for sign in (1, -1):
        quantiles = np.sort(sign * np.array([1e308, 1.5e308, 1.7e308]))
        draws = sign * draw_between(quantiles, 20_000, grid, PCG64(1))
        assert draws.min() == pytest.approx(0.75e308, rel=1e-3)
        assert draws.max() <= sign * (grid.upper if sign > 0 else grid.lower)


GRID = dpf.Grid(0, 1000, step=1)
SETTINGS = ((1, 1e-300), (1000, 1.0), (10**6, 4.0), (9, 1e300))


@pytest.mark.parametrize(("grid", "counts"), [(GRID, [3, 16, 127, 127]), (dpf.FloatGrid(), [3, 8, 127, 127])])
def test_levels_are_public(grid, counts):
    assert [len(quantile_levels(n, epsilon, grid)) for n, epsilon in SETTINGS] == counts
    np.testing.assert_array_equal(quantile_levels(20, 0.1, grid), np.array([1, 3, 5]) / 6)


@pytest.mark.parametrize("n", [400, 2000])
def test_without_bounds_records_are_near_the_others(n):
    """The control: with as many quantiles as within bounds, all floats alike, some record is a million times larger."""
    x = np.random.default_rng(3).lognormal(10, 0.6, n)
    few, many = (quantile_levels(n, 1.0, grid) for grid in (dpf.FloatGrid(), GRID))
    far = {}
    for levels in (few, many):
        measure = "auto" if levels == few else "uniform"
        mechanism = dpf.Quantiles(levels, grid=dpf.FloatGrid(), epsilon=1.0, measure=measure)
        far[levels] = any(np.abs(mechanism.release(x, size=200, rng=PCG64(4))).max(axis=1) > 1e11)
    assert not far[few]
    assert far[many]


def test_few_records_without_bounds_give_a_warning():
    """The same on all data, and before the budget is charged."""
    for x in (np.zeros(250), np.full(250, np.nan)):
        with dpf.Ledger(epsilon=5.0) as ledger, warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(dpf.UtilityWarning, match="give bounds"):
                dpf.synthesize(x, 3, epsilon=1.0)
        assert not ledger.charges


def test_the_method_is_chosen_by_public_numbers():
    """The same method on all data of equal size: below n epsilon = 200 a histogram, then quantiles."""
    for x in (np.zeros(199), np.arange(199.0), np.full(199, np.nan)):
        for bins, epsilon, method in (("auto", 1.0, "perturbed"), ("auto", 1.01, "quantiles"), (5, 9.0, "perturbed")):
            one, other = (
                dpf.synthesize(x, 9, bounds=(0, 99), epsilon=epsilon, bins=bins, method=chosen, rng=PCG64(1))
                for chosen in ("auto", method)
            )
            np.testing.assert_array_equal(one, other)


def test_the_cost_is_that_of_the_quantiles():
    ledger = dpf.Ledger(rho=1.0)
    with ledger:
        dpf.synthesize(np.arange(500.0), 9, epsilon=1.0)
    [charge] = ledger.charges
    assert charge.times == 1
    assert float(ledger.spent.rho) == pytest.approx(
        dpf.Quantiles([0.1, 0.9], grid=dpf.Grid(0, 1), epsilon=1.0).privacy_profile.rho
    )


@pytest.mark.parametrize(
    "options",
    [
        {"method": "perturbed"},
        {"grid": dpf.FloatGrid(), "method": "series"},
        {"epsilon": -1.0},
        {"bounds": (0, 1), "k": 0},
    ],
)
def test_wrong_parameters_are_rejected_before_reading(options):
    given = {"k": 3, "epsilon": 1.0, **options}
    with pytest.raises((TypeError, ValueError)):
        dpf.synthesize(Untouchable(), given.pop("k"), **given)


def test_one_column_only_without_bounds():
    assert dpf.synthesize(np.arange(1000.0)[:, None], 4, epsilon=1.0).shape == (4, 1)
    with pytest.raises(ValueError, match="one column without bounds"):
        dpf.synthesize(np.ones((100, 2)), 4, epsilon=1.0)
