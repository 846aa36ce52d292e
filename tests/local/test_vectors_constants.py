"""Constants of the randomisers of vectors, against high precision and definitions."""

import math
from fractions import Fraction

import mpmath
import pytest

from dpfast import local
from dpfast.core.coin import coin
from dpfast.theory.cube import best_subset, gamma_ratio_half, threshold_scale
from tests.cases import every

pytestmark = pytest.mark.kernel


# ---- constants and variances ----


@every("x", [0.5, 1.0, 1.5, 3.0, 10.5, 19.5, 20.0, 500.0, 5e5, 5e8])
def test_gamma_ratio(x):
    with mpmath.workdps(60):
        exact = mpmath.gamma(mpmath.mpf(x) + 0.5) / mpmath.gamma(x) if x < 1e4 else _large_ratio(x)
        assert abs(mpmath.mpf(gamma_ratio_half(x)) / exact - 1) < 4e-15


def _large_ratio(x):
    with mpmath.workdps(80):
        return mpmath.exp(mpmath.loggamma(mpmath.mpf(x) + 0.5) - mpmath.loggamma(mpmath.mpf(x)))


def test_halfspace_constants():
    table = {
        1: 2.163953413738653,
        2: 3.399130073655964,
        3: 4.327906827477317,
        10: 8.365046665637724,
        100: 27.053417034210206,
        1000: 85.7431178985843,
        10**6: 2712.112727902525,
    }
    for d, scale in table.items():
        assert local.L2Ball(d, 1.0).scale == pytest.approx(scale, rel=1e-13)
    assert local.L2Ball(10, 1.0, radius=3.0).scale == pytest.approx(3 * table[10], rel=1e-13)


def test_majority_constants():
    table = {
        1: 2.163953413738653,
        2: 3.3279068274772916,
        3: 4.327906827477292,
        4: 4.770542436636389,
        5: 5.770542436636389,
        6: 5.924650923963664,
        10: 7.793207522493544,
        11: 8.793207522493544,
        100: 26.18902058593226,
        101: 27.18902058593226,
        1000: 84.78600017006104,
        10**6: 2711.114083959227,
    }
    for d, scale in table.items():
        assert local.Hypercube(d, 1.0, method="majority").scale == pytest.approx(scale, rel=1e-12)


@every("epsilon", [0.01, 1.0, 8.0])
@every("d", [1, 2, 3, 4, 7, 50, 51, 999, 10_000, 10**6])
def test_constants_by_definition(d, epsilon):
    """(25), (26) and PrivUnit against 50 digits, for the coin as it is."""
    with mpmath.workdps(50):
        p = mpmath.mpf(coin(epsilon).threshold) / 2**64
        c, half = 1 / (2 * p - 1), mpmath.mpf(d) / 2
        ratio = mpmath.exp(mpmath.loggamma(half + 0.5) - mpmath.loggamma(half))
        assert abs(local.L2Ball(d, epsilon).scale / (c * mpmath.sqrt(mpmath.pi) * ratio) - 1) < 1e-12
        t = mpmath.binomial(2 * (d // 2), d // 2) / mpmath.mpf(4) ** (d // 2)
        majority = local.Hypercube(d, epsilon, method="majority").scale
        assert abs(majority / (c / t - (d % 2 == 0)) - 1) < 1e-12
        cap = local.L2Ball(d, epsilon, method="privunit")
        if d > 1:
            h, e = mpmath.mpf(cap.height), mpmath.exp(epsilon)
            a = (mpmath.mpf(d) - 1) / 2
            share = mpmath.betainc(a, 0.5, 0, 1 - h * h, regularized=True) / 2
            log_moment = a * mpmath.log(1 - h * h) - mpmath.log(2 * mpmath.sqrt(mpmath.pi) * ratio)
            error = abs(cap.scale * (e - 1) * mpmath.exp(log_moment) / (1 + (e - 1) * share) - 1)
            assert error < (1e-12 if d <= 10_000 else 1e-10)  # the incomplete beta function's


@every(
    "epsilon, k, tau, moment",
    [
        (0.25, 1, 1, 64.668),
        (0.5, 1, 1, 16.671),
        (1, 1, 1, 4.6827),
        (1.5, 2, 2, 2.3088),
        (2, 2, 2, 1.3221),
        (3, 3, 3, 0.67134),
        (4, 4, 4, 0.42154),
        (8, 1000, 544, 0.1331),
    ],
)
def test_best_subsets(epsilon, k, tau, moment):
    mechanism = local.Hypercube(1000, epsilon)
    assert (mechanism.method, mechanism.k, mechanism.tau) == ("subset", k, tau)
    assert mechanism.variance() / 1000**2 == pytest.approx(moment, rel=1e-3)
    assert mechanism.variance() <= local.Hypercube(1000, epsilon, method="majority").variance()


@pytest.mark.parametrize("epsilon", [0.3, 1.7, 2.6, 5.0])
def test_best_subset_by_trying_all(epsilon):
    ratio = Fraction(math.exp(epsilon))
    tried = {
        (k, tau): threshold_scale(k, tau, ratio) ** 2 / k for k in range(1, 15) for tau in range(k // 2 + 1, k + 1)
    }
    assert min(tried, key=tried.get) == best_subset(14, epsilon)


@every(
    "d, epsilon, height, p, scale",
    [
        (2, 1, 0.308287, 0.644638, 3.2437293127),
        (10, 1, 0.128318, 0.597757, 7.79311461235),
        (100, 1, 0.0398299, 0.590116, 25.1067417317),
        (1000, 1, 0.0125715, 0.589404, 79.5448145209),
        (2, 4, 0.858880, 0.918533, 1.16430726698),
        (10, 4, 0.462532, 0.817882, 2.16201219783),
        (100, 4, 0.151068, 0.793571, 6.61952619778),
        (3, 2, math.tanh(0.5), 1 / (1 + math.exp(-1)), 2.163953),
    ],
)
def test_privunit_constants(d, epsilon, height, p, scale):
    mechanism = local.L2Ball(d, epsilon, method="privunit")
    assert mechanism.height == pytest.approx(height, abs=1e-6)
    assert float(mechanism._cap[2].probability) == pytest.approx(p, abs=1e-6)
    assert mechanism.scale == pytest.approx(scale, rel=1e-6 if d == 3 else 5e-12)
    assert mechanism.scale < local.L2Ball(d, epsilon).scale
