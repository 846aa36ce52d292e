"""The law of several integers with the noise of a box, clamped."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.core import checks, containers
from dpfast.core.quadrature import gauss_legendre
from dpfast.laws.law import Law
from dpfast.laws.vectors import RoundedBox
from dpfast.random import RandomSource

_PART = 8.0  # of an integral over exp(-r)
_FAR = 60.0  # beyond the place where a volume is 1e-20 of its mean


class ClampedBox(Law):
    """The law of ``clamp(center + Z)``, coordinate i on 0..last_i, Z rounded noise of a box.

    Parameters
    ----------
    noise : RoundedBox
    center : sequence of int
        The exact integers, each in 0..last_i.
    last : sequence of int
        Each at least 1.
    decode : callable
        Converts vectors of integers, an array of shape (..., d), to values.

    Notes
    -----
    The probability of a product of intervals, the cells of rounding or all beyond an end, is the integral over r of
    exp(-r) times the volume of the product within r times the box, over d! times the volume of the box.
    """

    def __init__(
        self,
        noise: RoundedBox,
        *,
        center: Sequence[int],
        last: Sequence[int],
        decode: Callable[[NDArray[np.int64]], Any],
    ) -> None:
        self.noise, self._decode = noise, decode
        self.center, self.last = np.array(center, np.int64), np.array(last, np.int64)

    def outcomes(self) -> NDArray[np.int64]:
        checks.outcomes(math.prod((self.last + 1).tolist()))
        axes = [np.arange(last + 1) for last in self.last]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes, scales = containers.integers("k", k), self.noise.scales.astype(np.float64)
        z = (codes - self.center).astype(np.float64)
        lower = np.where(codes == 0, -np.inf, (z - 0.5) / scales)  # in units of the scales
        upper = np.where(codes == self.last, np.inf, (z + 0.5) / scales)
        inside = np.all((codes >= 0) & (codes <= self.last), axis=-1)
        return np.where(inside, self._log_mass(lower, upper), -np.inf)

    def _log_mass(self, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> NDArray[np.float64]:
        d = self.noise.dimension
        ends = np.abs(np.concatenate([lower, upper], axis=-1))
        start = np.max(np.maximum(np.maximum(lower, -upper), 0.0), axis=-1)  # no volume before
        ends = np.sort(np.clip(np.where(np.isinf(ends), 0.0, ends), start[..., None], None), axis=-1)
        before, total = start, np.full(start.shape, -np.inf)
        for end in np.moveaxis(ends, -1, 0):
            total = np.logaddexp(total, self._log_piece(before, end, lower, upper))
            before = end
        # Beyond the last end the volume is a polynomial of degree d.
        nodes, weights = np.polynomial.laguerre.laggauss(d + 1)
        rest = self._log_volume(before[..., None] + nodes, lower, upper) + np.log(weights)
        total = np.logaddexp(total, np.logaddexp.reduce(rest, axis=-1) - before)
        return np.asarray(total - math.lgamma(d + 1) - d * math.log(2))

    def _log_piece(
        self,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the natural logarithm of the integral over r from low to high, between which the volume is a
        polynomial.
        """
        reach = np.minimum(high - low, self.noise.dimension + 10 * math.sqrt(self.noise.dimension) + _FAR)
        parts = max(math.ceil(float(reach.max(initial=0.0)) / _PART), 1)
        nodes, weights = gauss_legendre(24)
        half, total = reach / parts / 2, np.full(low.shape, -np.inf)
        with np.errstate(divide="ignore"):
            for part in range(parts):
                r = (low + (2 * part + 1) * half)[..., None] + half[..., None] * nodes
                terms = self._log_volume(r, lower, upper) - r + np.log(weights)
                total = np.logaddexp(total, np.logaddexp.reduce(terms, axis=-1) + np.log(half))
        return total

    @staticmethod
    def _log_volume(
        r: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the natural logarithm of the volume between the ends within r times the box, r of
        shape (..., nodes).
        """
        sides = np.minimum(upper[..., None, :], r[..., None]) - np.maximum(lower[..., None, :], -r[..., None])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(sides, 0.0)).sum(axis=-1))

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        """Draw exactly: int64 of shape ``(*size, d)``."""
        out = self.noise.draws(size, rng)
        np.clip(out, -self.center, self.last - self.center, out=out)  # before the sum, which could overflow
        out += self.center
        return out

    def value(self, k: ArrayLike) -> Any:
        return self._decode(containers.integers("k", k))
