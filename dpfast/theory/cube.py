"""Random signs for a vector in the cube [-1, 1]^d: the number of signs, and the scale that makes them unbiased."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from dpfast.core.coin import Coin, coin

# Subset sizes to compare: all up to `_SMALL`, then only the largest; other sizes gain less than one percent.
_SMALL = 96
_LARGEST = 1024

_HALF = (1.0, -1 / 8, 1 / 128, 5 / 1024, -21 / 32768, -399 / 262144, 869 / 4194304, 39325 / 33554432)
_LAST = -334477 / 2147483648


def gamma_ratio_half(x: float) -> float:
    """Gamma(x + 1/2) / Gamma(x) for x > 0, relative error below 4e-15.

    Gamma(x + 1/2) / Gamma(x) = x / (x + 1/2) Gamma(x + 3/2) / Gamma(x + 1) up to x >= 20, then the asymptotic series.
    """
    factor = 1.0
    while x < 20:
        factor *= x / (x + 0.5)
        x += 1
    series = _LAST
    for coefficient in reversed(_HALF):
        series = series / x + coefficient
    return factor * math.sqrt(x) * series


class Signs(NamedTuple):
    """The signs of a report: k of the d coordinates; at least tau of them agree if the coin shows "keep"."""

    method: str
    k: int
    tau: int
    scale: float

    @classmethod
    def of(cls, d: int, epsilon: float, method: str) -> Signs:
        """Return the signs of `method`; "auto" selects the method whose report has the smaller second moment."""
        majority = cls("majority", d, d // 2 + 1, majority_scale(d, coin(epsilon)))
        if method == "majority":
            return majority
        k, tau = best_subset(d, epsilon)
        subset = cls("subset", k, tau, float(threshold_scale(k, tau, subset_coin(k, tau, epsilon).ratio)))
        return subset if method == "subset" or d * subset.scale**2 / k < majority.scale**2 else majority


@lru_cache(maxsize=64)
def subset_coin(k: int, tau: int, epsilon: float) -> Coin:
    """Return the coin for k signs; at least tau of them agree if it shows "keep"."""
    inside, outside = masks(k, tau)
    return coin(epsilon, Fraction(inside[-1], outside[-1]))


@lru_cache(maxsize=64)
def masks(k: int, tau: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Numbers of masks of k bits, cumulated: with at most 0, 1, ..., k - tau ones; and from there on with more ones."""
    counts = [math.comb(k, ones) for ones in range(k + 1)]
    few, many = counts[: k - tau + 1], counts[k - tau + 1 :]
    return tuple(itertools.accumulate(few)), tuple(itertools.accumulate(many))


def threshold_scale(k: int, tau: int, ratio: Fraction) -> Fraction:
    """Return the factor B that makes a sign unbiased, for k signs at least tau of which agree with odds `ratio`.

    ``(E N + 2^k - N) / ((E - 1) C(k - 1, tau - 1))``, where N is the number of masks in the favoured set.
    """
    inside = masks(k, tau)[0][-1]
    return (ratio * inside + (1 << k) - inside) / ((ratio - 1) * math.comb(k - 1, tau - 1))


def majority_scale(d: int, fair: Coin) -> float:
    """B of all d signs: ``c / t``, minus 1 for even d, c the coin's gain, ``t = C(2m, m) / 4^m``, m = d // 2."""
    m = d // 2
    t = gamma_ratio_half(m) / (math.sqrt(math.pi) * m) if m else 1.0
    return fair.gain / t - (d % 2 == 0)


@lru_cache(maxsize=256)
def best_subset(d: int, epsilon: float) -> tuple[int, int]:
    """Return the number of signs k and the threshold tau with the least B^2 / k, up to rounding."""
    gain = math.expm1(min(epsilon, 44.36))
    best = (math.inf, 1, 1)
    for k in _sizes(d):
        for tau, agreeing, more in _tails(k):
            scale = (1 + gain * more) / (gain * agreeing * tau / k)  # C(k - 1, tau - 1) = C(k, tau) tau / k
            best = min(best, (scale * scale / k, k, tau))
    return best[1:]


def _sizes(d: int) -> list[int]:
    largest = min(d, _LARGEST)
    return [*range(1, min(d, _SMALL) + 1), *range(max(_SMALL, largest - 2) + 1, largest + 1)]


def _tails(k: int) -> Iterator[tuple[int, float, float]]:
    """Yield tau = k down to above k / 2, and the shares of masks with exactly and with at least tau agreements."""
    total, masks_of_tau, more = 2**k, 1, 0
    for tau in range(k, k // 2, -1):
        more += masks_of_tau
        yield tau, masks_of_tau / total, more / total
        masks_of_tau = masks_of_tau * tau // (k - tau + 1)
