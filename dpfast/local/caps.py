"""Constants of the randomisers of directions: a cap of the sphere, and the best of many random directions.

U is uniform on the sphere of d dimensions, U_1 its coordinate along the record. All numbers are public.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast.core.quadrature import gauss_legendre
from dpfast.theory.cube import gamma_ratio_half

# A cap this many standard deviations of a coordinate away is too rare for a coin of 64 bits.
_HIGHEST = 12.0

# Integrals over U_1 = sin(angle), of density cos(angle)^(d - 2), are sums over panels of Gauss and Legendre's rule: 64
# of 16 nodes. For 2, 64 and 1024 directions in 2 to 10**6 dimensions, four times as many panels change no scale by more
# than 2e-10 of itself.
_PANELS, _NODES = 64, 16


def cap_share(d: int, height: Any) -> Any:
    """Return P(U_1 >= height), for heights of at least 0."""
    return scipy.special.betainc((d - 1) / 2, 0.5, (1 - height) * (1 + height)) / 2


def cap_moment(d: int, height: float) -> float:
    """E[U_1; U_1 >= height]: ``(1 - height^2)^((d - 1) / 2) / (2 sqrt(pi) gamma_ratio_half(d / 2))``."""
    return math.exp(_log_cap_moment(d, height))


def _log_cap_moment(d: int, height: float) -> float:
    return (d - 1) / 2 * math.log1p(-height * height) - math.log(2 * math.sqrt(math.pi) * gamma_ratio_half(d / 2))


@lru_cache(maxsize=256)
def best_height(d: int, epsilon: float) -> float:
    """Return the height h of the cap with the least scale: it minimises ``(1 + (E - 1) Q(h)) / E[U_1; U_1 >= h]``."""
    from scipy.optimize import minimize_scalar  # slow to import

    gain = math.expm1(min(epsilon, 44.36))

    def log_scale(height: float) -> float:
        return math.log1p(gain * float(cap_share(d, height))) - _log_cap_moment(d, height)

    bounds = (0.0, min(1.0, _HIGHEST / math.sqrt(d)))
    return float(minimize_scalar(log_scale, bounds=bounds, method="bounded", options={"xatol": 1e-10 * bounds[1]}).x)


class Best(NamedTuple):
    """A uniform one of the m of K independent random directions that are the nearest to a record."""

    m: int
    along: float  # E<u, r>
    square: float  # E<u, r>^2


@lru_cache(maxsize=256)
def best_directions(d: int, epsilon: float, count: int) -> Best:
    """Return the m for which a report, of one of the m best with odds ``e^epsilon m / (count - m)``, has the least
    scale: it minimises ``(1 + (E - 1) m / count) / (m E<u, r>)``, as for caps.
    """
    m = np.arange(1, count // 2 + 1)
    along, square = _best_moments(d, count)
    gain = math.expm1(min(epsilon, 44.36))
    chosen = int(np.argmin(np.log1p(gain * m / count) - np.log(m * along)))
    return Best(int(m[chosen]), float(along[chosen]), float(square[chosen]))


@lru_cache(maxsize=8)
def _best_moments(d: int, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return E<u, r> and E<u, r>^2 of a uniform one of the m best of `count` directions, for m = 1..count / 2.

    A direction of height x is one of the m best if fewer than m of the others are above it, which has the probability
    ``I_F(count - m, m)``, F = P(U_1 <= x), by the law of order statistics.
    """
    last = math.asin(min(1.0, _HIGHEST / math.sqrt(d)))
    nodes, weights = gauss_legendre(_NODES)
    angle = last / _PANELS * (np.arange(1 - _PANELS, _PANELS, 2)[:, None] + nodes).reshape(-1)
    height = np.sin(angle)
    density = np.tile(weights, _PANELS) * np.exp((d - 2) * np.log(np.cos(angle)))
    density /= density.sum()
    above = cap_share(d, np.abs(height))
    below = np.where(height < 0, above, 1 - above)
    m = np.arange(1, count // 2 + 1)[:, None]
    among = scipy.special.betainc(count - m, m, below) * density * (count / m)
    return among @ height, among @ np.square(height)
