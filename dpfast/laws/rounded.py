"""Laws of symmetric noise on the integers."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, wraps
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast._kernels import _balls, _samplers
from dpfast.core.quadrature import gauss_legendre
from dpfast.core.spending import guard_noise

_MOST_RATE = Fraction(2**1000)  # beyond which no second level has any probability in doubles

_Logs = Callable[[Any, NDArray[np.float64]], NDArray[np.float64]]


def _quiet(method: _Logs) -> _Logs:
    """Return a method that ends in -inf where doubles end, whatever errors a caller of it has NumPy raise."""

    @wraps(method)
    def quiet(self: Any, z: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(all="ignore"):
            return method(self, z)

    return quiet


class IntegerNoise(ABC):
    """Symmetric noise on the integers. In the block of a `dpfast.Ledger` only the steps of a release draw it.

    Parameters
    ----------
    scale : float or Fraction
        In (0, 2**56], in units of the integers; its exact value is used. Must be a float for Student's t.
    """

    def __init__(self, scale: float | Fraction) -> None:
        self.scale = scale

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        guard_noise(cls)

    @abstractmethod
    def log_tail(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the natural logarithm of P(Z >= z), z >= 1."""

    @abstractmethod
    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the natural logarithm of P(Z = z)."""

    @abstractmethod
    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        """Fill `out` with exact draws, saturated at +-(2**63 - 1)."""

    def cdf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(Z <= z) for integers z."""
        with np.errstate(all="ignore"):  # a tail may be below all doubles
            tail = np.exp(self.log_tail(np.where(z < 0, -z, z + 1)))
        return np.where(z < 0, tail, 1 - tail)

    _recent: tuple[float, int] | None = None  # the last confidence, and its magnitude

    def magnitude(self, confidence: float) -> int:
        """Return the least m with P(|Z| <= m) >= confidence, in (0, 1); a probability within 2**-40 of it counts as
        less.
        """
        recent = self._recent
        if recent is None or recent[0] != confidence:
            recent = self._recent = confidence, self._magnitude(confidence)
        return recent[1]

    def _magnitude(self, confidence: float) -> int:
        allowed = math.log((1 - confidence) / 2) - 2.0**-40

        def beyond(m: int) -> bool:
            return float(self.log_tail(np.array([m + 1.0]))[0]) > allowed

        low, high = -1, 1
        while beyond(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if beyond(middle) else (low, middle)
        return high

    def draw(self, source: np.random.BitGenerator) -> int:
        """One exact draw: the same as `fill` makes for one entry."""
        out = np.empty(1, np.int64)
        self.fill(source, out)
        return int(out[0])


guard_noise(IntegerNoise)


class DiscreteLaplace(IntegerNoise):
    """``P(z) = tanh(1/(2 scale)) exp(-|z|/scale)``."""

    def __init__(self, scale: float | Fraction) -> None:
        super().__init__(scale)
        self._rate = float(1 / scale)

    @_quiet
    def log_tail(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return -self._rate * z - math.log1p(math.exp(-self._rate))

    @_quiet
    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(math.log(math.tanh(self._rate / 2)) - self._rate * np.abs(z))

    @property
    def variance(self) -> float:
        deviation = (
            math.sqrt(0.5) / math.sinh(self._rate / 2) if 0 < self._rate < 700 else 0.0 if self._rate else math.inf
        )
        return deviation * deviation

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        _samplers.fill_discrete_laplace(source, self.scale, out)

    @cached_property
    def _rounded(self) -> float:
        return float(self.scale)

    def draw(self, source: np.random.BitGenerator) -> int:
        return _samplers.one_discrete_laplace(source, self.scale, self._rounded)


class Staircase(IntegerNoise):
    """``P(z) = exp(-epsilon level) / total``, level = floor((|z| - r) / s) + 1, with period s and epsilon = s / scale.

    ``total = 2 r - 1 + 2 s / (exp(epsilon) - 1)``; with s = 1 it is discrete Laplace.

    Parameters
    ----------
    scale : float or Fraction
        See `IntegerNoise`.
    s : int
        In 1..2**56: the sensitivity of the integer that it is added to.
    r : int, optional
        In 1..s: level 0 is |z| < r. Default: the r with the least mean of |z|, ceil(s / (1 + exp(epsilon / 2))).
    """

    def __init__(self, scale: float | Fraction, s: int, r: int | None = None) -> None:
        super().__init__(scale)
        self.s, self.r = s, _balls.staircase_r(scale, s) if r is None else r
        self._epsilon = float(min(s / Fraction(scale), _MOST_RATE))
        with np.errstate(over="ignore"):
            self._beyond = float(s / np.expm1(self._epsilon))  # one side's mass beyond a level, over a point's on it
        self._log_total = math.log(2 * self.r - 1 + 2 * self._beyond)

    def _level(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.floor((z - self.r) / self.s) + 1)

    @_quiet
    def log_tail(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        level = self._level(z)
        rest = np.maximum(self.r + level * self.s - z, 0.0)  # integers from z on its level
        return np.asarray(np.log(rest + self._beyond) - self._epsilon * level - self._log_total)

    @_quiet
    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(-self._epsilon * self._level(np.abs(z)) - self._log_total)

    @property
    def variance(self) -> float:
        """By the sums of squares below the first integer r + s K of each level, K geometric, a polynomial of K."""
        odds, r, s = self._beyond / self.s, self.r, self.s
        moments = 1.0, odds, odds * (1 + 2 * odds), odds * (1 + 6 * odds * (1 + odds))
        factors = (r - 1) * r * (2 * r - 1), s * (6 * r * (r - 1) + 1), 3 * s**2 * (2 * r - 1), 2 * s**3
        return math.fsum(map(operator.mul, factors, moments)) / (3 * math.exp(self._log_total))

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        _samplers.fill_staircase(source, self.scale, self.s, self.r, out)


class RoundedLaplace(IntegerNoise):
    """round(scale * L), L standard Laplace.

    ``P(0) = 1 - exp(-1/(2 scale))``, ``P(z) = exp(-|z|/scale) sinh(1/(2 scale))``.
    """

    def __init__(self, scale: float | Fraction) -> None:
        super().__init__(scale)
        self._rate = float(1 / scale)

    @_quiet
    def log_tail(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return (0.5 - z) * self._rate - math.log(2)

    @_quiet
    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        one_cell = math.log(-math.expm1(-self._rate)) - math.log(2)
        at_zero = math.log(-math.expm1(-self._rate / 2))
        return np.where(z == 0, at_zero, (0.5 - np.abs(z)) * self._rate + one_cell)

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        _samplers.fill_rounded_laplace(source, self.scale, out)

    def draw(self, source: np.random.BitGenerator) -> int:
        return _samplers.one_rounded_laplace(source, self.scale)


class RoundedStudent3(IntegerNoise):
    """round(scale * T), T Student's t with 3 degrees of freedom. Probabilities have relative error about 1e-14.

    In units of c = t / sqrt(3) the density of |T| is ``(4 / pi) / (1 + c**2)**2``. A cell z of width h = 1 / (scale
    sqrt(3)) is far enough from the poles at +-i for Gauss-Legendre quadrature: at least 2 z half-widths.
    """

    # atan y - y / (1 + y**2) = y**3 (2/3 - 4/5 y**2 + 6/7 y**4 - ...)
    _SERIES = tuple((-1) ** n * (2 * n + 2) / (2 * n + 3) for n in range(30, -1, -1))

    def __init__(self, scale: float | Fraction) -> None:
        super().__init__(float(scale))
        self._width = 1 / (self.scale * math.sqrt(3))

    @_quiet
    def log_tail(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        c = (z - 0.5) * self._width
        near, y, far = np.minimum(c, 1), 1 / np.clip(c, 1, 2), 1 / np.maximum(c, 2)
        series = np.polyval(self._SERIES, far**2)
        tails = (
            np.log(math.pi / 2 - np.arctan(near) - near / (1 + near**2)),
            np.log(np.arctan(y) - y / (1 + y**2)),
            np.log(series) + 3 * np.log(far),
        )
        return np.where(c < 1, tails[0], np.where(c < 2, tails[1], tails[2])) - math.log(math.pi)

    @_quiet
    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        half = self._width / 2
        center = np.abs(z) * self._width
        total = np.zeros(np.shape(z))
        for node, weight in zip(*gauss_legendre(20), strict=True):
            total += weight * (np.hypot(1, center) / np.hypot(1, center + node * half)) ** 4
        cell = np.log(total) - 4 * np.log(np.hypot(1, center))
        at_zero = math.log(2 / math.pi * (math.atan(half) + half / (1 + half * half)))
        return np.where(z == 0, at_zero, cell + math.log(self._width / math.pi))

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        _samplers.fill_rounded_student3(source, self.scale, out)

    def draw(self, source: np.random.BitGenerator) -> int:
        return _samplers.one_rounded_student3(source, float(self.scale))


class RoundedGaussian(IntegerNoise):
    """round(scale * Z), Z standard normal; probabilities to 1e-12, relative, out to 40 scales.

    A cell over which the density changes by a factor of at most e**2 is integrated by Gauss-Legendre quadrature, any
    other is the difference of two tails.
    """

    def _log_above(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Natural logarithm of the mass above z / scale."""
        return np.asarray(scipy.special.log_ndtr(-z / float(self.scale)))

    @_quiet
    def log_tail(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._log_above(z - 0.5)

    @_quiet
    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        distance = np.abs(np.asarray(z, dtype=np.float64))
        narrow = distance + 0.5 <= 2 * float(self.scale) ** 2
        pieces = [narrow, ~narrow & (distance == 0)]
        cells = [self._narrow_cell, self._wide_cell_at_zero, self._wide_cell]
        return np.asarray(np.piecewise(distance, pieces, cells))

    def _narrow_cell(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        scale = float(self.scale)
        center, total = z / scale, np.zeros(z.shape)
        for node, weight in zip(*gauss_legendre(20), strict=True):
            offset = node / (2 * scale)
            total += weight / 2 * np.exp(-offset * (center + offset / 2))
        return np.log(total) - center**2 / 2 - math.log(scale * math.sqrt(2 * math.pi))

    def _wide_cell_at_zero(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.log1p(-2 * np.exp(self._log_above(z + 0.5))))

    def _wide_cell(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        below, above = self._log_above(z - 0.5), self._log_above(z + 0.5)
        return below + np.log1p(-np.exp(above - below))

    @property
    def variance(self) -> float:
        """``scale**2 + 1/12`` to all digits from scale 2 on."""
        scale = float(self.scale)
        if scale >= 2:
            return scale * scale + 1 / 12
        z = np.arange(1.0, 100.0)
        with np.errstate(all="ignore"):
            return float((2 * z - 1) @ (2 * np.exp(self.log_tail(z))))

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        _samplers.fill_rounded_gaussian(source, self.scale, out)

    def draw(self, source: np.random.BitGenerator) -> int:
        return _samplers.one_rounded_gaussian(source, self.scale)
