"""Simulations of the bias and skewness of block estimates that families state, and of the coverage of stated errors."""

import math

import numpy as np
import pytest
import scipy.special
from scipy.stats import norm

import dpfast as dpf
from bench.pages import coverage
from dpfast import families
from dpfast.families import Ranges
from tests.statistical import ALPHA

pytestmark = pytest.mark.slow

Z = norm.isf(ALPHA / 2)


def _of_gamma(x, shape, scale):
    trigamma = scipy.special.polygamma(1, shape)
    return (np.log(x / scale) - scipy.special.digamma(shape), shape - x / scale), [[trigamma, -1], [-1, shape]]


def _of_weibull(x, shape, scale):
    log, c = shape * np.log(x / scale), 1 - np.euler_gamma
    power = np.exp(log)
    return (1 + log - power * log, power - 1), [[math.pi**2 / 6 + c * c, -c], [-c, 1]]


def _of_beta(x, a, b):
    own, other, both = scipy.special.polygamma(1, [a, b, a + b])
    log, rest, together = scipy.special.digamma([a, b, a + b])
    return (np.log(x) - log + together, np.log1p(-x) - rest + together), [[own - both, -both], [-both, other - both]]


DRAWS = {
    families.Gamma: (lambda rng, n, shape, scale: rng.gamma(shape, scale, n), _of_gamma),
    families.Weibull: (lambda rng, n, shape, scale: scale * rng.weibull(shape, n), _of_weibull),
    families.Beta: (lambda rng, n, a, b: np.minimum(rng.beta(a, b, n), 1 - 2.0**-53), _of_beta),
}


def bias(family, theta, name, b, blocks, rng):
    """Bias of the corrected estimates of simulated blocks, and its standard error.

    The mean residual of the estimates after regression on the scores of blocks and products of these,
    less their known expectations.
    """
    draw, scores = DRAWS[type(family)]
    x = draw(rng, b * blocks, **theta)
    box = Ranges((name,), (theta[name] / 1e3,), (theta[name] * 1e3,))
    t = family.estimates((x,), blocks, box, corrected=True, workers=1)[:, 0]
    columns, information = scores(x, **theta)
    one, two = (column.reshape(blocks, b).mean(axis=1) for column in columns)
    products = [u * v - information[i][j] / b for u, v, i, j in ((one, one, 0, 0), (one, two, 0, 1), (two, two, 1, 1))]
    design = np.column_stack([np.ones(blocks), one, two, *products])
    weights = np.linalg.lstsq(design, t, rcond=None)[0]
    return weights[0] - theta[name], (t - design @ weights).std() / math.sqrt(blocks)


BIASES = [
    *[(families.Weibull(), {"shape": k, "scale": 3.0}, "scale") for k in (0.4, 0.8, 1.0, 2.0, 6.0)],
    *[(families.Gamma(), {"shape": k, "scale": 2.0}, "scale") for k in (0.05, 0.15, 0.6, 2.0, 20.0)],
    *[(families.Gamma(), {"shape": k, "scale": 2.0}, "shape") for k in (0.05, 0.15, 0.6, 2.0, 20.0)],
    *[(families.Beta(), {"a": a, "b": b}, "a") for a, b in ((0.3, 3.0), (3.0, 0.3), (2.0, 2.0))],
]


@pytest.mark.parametrize(("family", "theta", "name"), BIASES, ids=lambda value: str(value))
def test_the_remaining_bias_is_stated(family, theta, name):
    """In blocks of 20 and of 40: at most b2 / b**2, up to a fifth of a deviation / b**2."""
    known = family.reference(Ranges((name,), (theta[name] / 2,), (theta[name] * 2,)), theta)
    told, deviation = abs(family.second_order(name, known)[1]), family.information(name, known) ** -0.5
    for b in (20, 40):
        found, error = bias(family, theta, name, b, 60_000, np.random.default_rng(5))
        assert abs(found) * b * b < told + 0.2 * deviation + Z * error * b * b


@pytest.mark.parametrize("case", coverage.CASES, ids=lambda case: case.name)
def test_the_skewness_of_blocks(case):
    """Within a third and 1.5, where a block is long enough; the square root of the block is in it."""
    rng, b, blocks = np.random.default_rng(6), 200, 4000
    theta = {**case.theta(rng), **({"p": 0.3, "r": 2.0, "mean": 14 / 3} if "r" in case.released else {})}
    for name in case.released:
        low, high = case.family.space(name)
        box = Ranges((name,), (max(low, theta[name] - 1e6),), (min(high, theta[name] + 1e6),))
        data = case.family.records(case.draw(rng, b * blocks, theta))
        t = case.family.estimates(data, blocks, box, corrected=True, workers=1)[:, 0]
        assert np.isfinite(t).all()
        found = np.mean((t - t.mean()) ** 3) / t.std() ** 3 * math.sqrt(b)
        told = case.family.skewness(name, case.family.reference(box, theta))
        assert abs(found - told) < abs(told) / 3 + 1.5 + Z * math.sqrt(6 * b / blocks), name


PARAMETERS = [(case, parameter) for case in coverage.CASES for parameter in case.released]


@pytest.mark.parametrize(("case", "parameter"), PARAMETERS, ids=lambda value: getattr(value, "name", value))
def test_stated_errors_hold(case, parameter):
    """Six random settings of up to 20,000 records; `bench.pages.coverage` has more, and larger ones.

    The error of a coefficient grows with its size: at far-out releases the stated error is larger than the true one.
    """
    rng, chance = np.random.default_rng(coverage.SEED), 0.02  # of 60 data sets and 4,000 releases
    least, greatest = coverage.extremes(coverage.survey(case, parameter, rng, 6, (200, 20_000), 10**5))
    assert least is None or least > coverage.LEAST - chance
    if case.name not in ("logistic", "Poisson regression"):
        assert greatest is None or greatest < coverage.MOST + chance / 2


def test_half_of_a_stated_error_does_not_hold():
    """The control."""
    mechanism = dpf.SampleAndAggregate("weibull", bounds={"scale": (0.2, 5.0)}, epsilon=1.0)
    [case] = (case for case in coverage.CASES if case.name == "Weibull")
    trial = coverage.Setting(case, "scale", {"shape": 1.5, "scale": 1.0}, mechanism, 5000)
    away = np.abs(coverage.releases(trial, np.random.default_rng(7), 10**5) - 1.0)
    told = mechanism.error(5000, trial.theta)
    assert np.mean(away <= told) > coverage.LEAST
    assert np.mean(away <= told / 2) < coverage.LEAST - 0.1


def test_no_error_is_stated_where_the_expansions_fail():
    """Counts that are nearly Poisson, labels that are nearly certain: the distance to the farther bound."""
    counts = dpf.SampleAndAggregate("negativebinomial", bounds={"r": (0.5, 50)}, epsilon=1.0, blocks=100)
    for n, told in ((10_000, False), (1_000_000, True)):
        error = counts.error(n, {"r": 8.0, "p": 0.7})
        assert (error == 42.0) == (not told)
    labels = dpf.SampleAndAggregate(families.LogisticRegression(1), bounds={"x0": (-8, 8)}, epsilon=1.0, blocks=100)
    assert labels.error(10_000, {"intercept": 4.0, "x0": 2.0}) == 10.0
    assert labels.error(1_000_000, {"intercept": 4.0, "x0": 2.0}) < 1.0


def test_longer_blocks_where_short_ones_are_not_trusted():
    mechanism = dpf.SampleAndAggregate("negativebinomial", bounds={"r": (1, 64)}, epsilon=1.0, guess={"p": 0.6})
    reach = mechanism.family.reach("r", mechanism.family.reference(mechanism.box, {"p": 0.6}))
    assert reach > 2 * mechanism.family.least_block
    for n in (10**5, 10**7):
        assert n / mechanism.block_count(n) >= reach
    assert 200 / mechanism.block_count(200) < reach
