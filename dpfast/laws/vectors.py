"""Laws of noise on vectors of integers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast import _checks
from dpfast._kernels import _knorm
from dpfast.laws.rounded import IntegerNoise
from dpfast.random import BLOCK, RandomSource, blocks, streams

Scales: TypeAlias = Sequence[float | Fraction] | NDArray[Any]


class VectorNoise(ABC):
    """Noise on vectors of d integers.

    Parameters
    ----------
    dimension : int
        d, at least 1.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    @abstractmethod
    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """The natural logarithm of P(Z = z), z of shape (..., d)."""

    @abstractmethod
    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        """Fill `out`, of shape (m, d), with exact draws, each coordinate saturated at +-(2**63 - 1)."""

    def fill_blocks(self, rng: RandomSource, out: NDArray[np.int64]) -> None:
        """Fill `out`, of shape (m, d), in blocks of rows, each from its own stream."""
        rows = max(BLOCK // self.dimension, 1)
        sources = streams(rng, -(-len(out) // rows))
        for i in range(len(sources)):
            self.fill(sources[i], out[i * rows : (i + 1) * rows])


class Independent(VectorNoise):
    """Independent noise of one law on each coordinate.

    Parameters
    ----------
    noise : IntegerNoise
    dimension : int
    """

    def __init__(self, noise: IntegerNoise, dimension: int) -> None:
        super().__init__(dimension)
        self.noise = noise

    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.noise.logpmf(z).sum(axis=-1))

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        self.noise.fill(source, out.reshape(-1))

    def fill_blocks(self, rng: RandomSource, out: NDArray[np.int64]) -> None:
        for source, block in blocks(rng, out.reshape(-1)):
            self.noise.fill(source, block)


class RoundedBox(VectorNoise):
    """Noise of density proportional to ``exp(-max_i |z_i| / scales_i)``, each coordinate rounded to an integer.

    Parameters
    ----------
    scales : sequence of floats or Fractions, or ndarray
        One for each of the d coordinates, in (0, 2**56]; their exact values are used.

    Notes
    -----
    Probabilities have a relative error of about 1e-12, and up to d 2**-52 max |z_i| more if the scales differ
    (docs/proofs/knorm.md). Cost of one: of order d**3.
    """

    def __init__(self, scales: Scales) -> None:
        self.scales = _checks.scales(scales)
        super().__init__(self.scales.size)
        self._doubles = self.scales.astype(np.float64)

    @property
    def expected_size(self) -> NDArray[np.float64]:
        """The expectation of each |z_i| before rounding."""
        return (self.dimension + 1) / 2 * self._doubles

    @property
    def variance(self) -> NDArray[np.float64]:
        """The variance of each z_i before rounding."""
        return (self.dimension + 1) * (self.dimension + 2) / 3 * self._doubles**2

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        _knorm.fill_box(source, self.scales, out)

    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(z) is the integral over r of exp(-r) times the volume of the cell of z in r times the box, normalised.

        From `start`, the least r with such a volume, each side of the intersection grows from `side` at the rate
        `slope` until it is 1; between these ends the volume is a polynomial.
        """
        slope = np.where(z == 0, 2.0, 1.0) * self._doubles
        nearest = np.maximum(np.abs(z) - 0.5, 0.0)
        leading = np.argmax(nearest / self._doubles, axis=-1, keepdims=True)
        first, leader = np.take_along_axis(nearest, leading, -1), self._doubles[leading]
        start = (first / leader)[..., 0]
        side = np.maximum(first * (slope / leader) - nearest, 0.0)
        ends = np.sort(np.maximum((1 - side) / slope, 0.0), axis=-1)
        total = -ends[..., -1]
        before = np.zeros_like(start)
        for end in np.moveaxis(ends, -1, 0):
            total = np.logaddexp(total, self._log_piece(before, end, side, slope))
            before = end
        return np.asarray(total - start - math.lgamma(self.dimension + 1) - np.log(2 * self._doubles).sum())

    def _log_piece(
        self, low: NDArray[np.float64], high: NDArray[np.float64], side: NDArray[np.float64], slope: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The natural logarithm of the integral of exp(-r) prod_i min(side_i + slope_i r, 1) from low to high.

        Without what is beyond the quantile 1 - 1e-20 of Gamma(d + 1) after `low`.
        """
        d = self.dimension
        reach = min(1 / self._doubles.min(), d + 10 * math.sqrt(d) + 60)
        parts = math.ceil(reach / 8)
        nodes, weights = np.polynomial.legendre.leggauss(16 + d // 2)
        half = np.minimum(high - low, reach) / parts / 2
        total = np.full(np.shape(low), -np.inf)
        with np.errstate(divide="ignore"):
            for part in range(parts):
                r = (low + (2 * part + 1) * half)[..., None] + half[..., None] * nodes
                sides = np.minimum(side[..., None, :] + slope[..., None, :] * r[..., None], 1.0)
                terms = np.log(weights) - r + np.log(sides).sum(axis=-1)
                total = np.logaddexp(total, np.logaddexp.reduce(terms, axis=-1) + np.log(half))
        return total
