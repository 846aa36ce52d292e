"""Laws of noise on vectors of integers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _samplers
from dpfast.laws.rounded import IntegerNoise, RoundedGaussian
from dpfast.random import BLOCK, RandomSource, blocks, streams


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


class RoundedGaussians(VectorNoise):
    """Independent rounded Gaussian noise with a standard deviation for each coordinate.

    Parameters
    ----------
    scales : sequence of float or Fraction
        As that of `RoundedGaussian`.
    """

    def __init__(self, scales: Sequence[float | Fraction]) -> None:
        super().__init__(len(scales))
        self.scales = tuple(scales)

    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        laws = map(RoundedGaussian, self.scales)
        return np.asarray(np.sum([law.logpmf(z[..., j]) for j, law in enumerate(laws)], axis=0))

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        _samplers.fill_rounded_gaussians(source, self.scales, out)
