"""Laws of integers with noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.core import checks, containers
from dpfast.laws.law import Law, ScalarLaw
from dpfast.laws.rounded import IntegerNoise
from dpfast.laws.vectors import VectorNoise
from dpfast.random import RandomSource, bit_generator, blocks


class NoisyIntegers(Law):
    """Noise on integers, clamped to +-most.

    Parameters
    ----------
    center : ndarray of int64, of any shape
        The exact integers, within +-2**61, and strictly within if `most` is 2**62.
    noise : VectorNoise
        Its dimension is the number of integers.
    most : int
        Public, at most 2**62.
    decode : callable
        Converts integers, an array of shape ``(..., *center.shape)``, to released values.
    """

    def __init__(
        self,
        center: NDArray[np.int64],
        *,
        noise: VectorNoise,
        most: int,
        decode: Callable[[NDArray[np.int64]], Any],
    ) -> None:
        self.center, self.noise, self.most, self._decode = center, noise, most, decode

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return the natural logarithm of P(K = k), k of shape ``(..., *center.shape)``, before clamping."""
        distance = (containers.integers("k", k) - self.center).astype(np.float64)
        return self.noise.logpmf(distance.reshape(*distance.shape[: distance.ndim - self.center.ndim], -1))

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        """Draw exactly: int64 of shape ``(*size, *center.shape)``."""
        out = self.noise.draws(size, rng)
        return add_clamped(out.reshape(*out.shape[:-1], *self.center.shape), self.center, self.most)

    def value(self, k: ArrayLike) -> Any:
        return self._decode(containers.integers("k", k))


def add_clamped(noise: NDArray[np.int64], center: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Add the center, within +-2**61, to noise in place, clamped to +-most: `NoisyIntegers` for one center or many."""
    # Clamp the noise first, so that the sum does not overflow; its limit is so wide that the clamped sum does not
    # change.
    _clamp(noise, most + 2**61)
    noise += center
    return _clamp(noise, most)


def _clamp(array: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Clamp to +-most in place, in less time than `numpy.clip` if the entries are few."""
    np.maximum(array, -most, out=array)
    return np.minimum(array, most, out=array)


class ClampedNoise(ScalarLaw):
    """The law of ``clamp(center + Z)`` on 0..last, Z rounded noise, with the mass beyond each end as an atom there.

    Parameters
    ----------
    noise : IntegerNoise
    center : int
        The exact statistic, in 0..last.
    last : int
        The support is 0..last, with both ends included, since clamping follows the noise. 0 for a constant.
    decode : callable
        Converts codes to values.

    Notes
    -----
    With c = center, ``P(k) = P(Z = k - c)`` for 0 < k < last, ``P(0) = P(Z <= -c)`` and ``P(last) = P(Z >= last - c)``
    (https://dpfast.readthedocs.io/en/latest/proofs/global-sensitivity.html).
    """

    def __init__(self, noise: IntegerNoise, *, center: int, last: int, decode: Callable[[ArrayLike], Any]) -> None:
        self.noise, self.center, self._decode = noise, center, decode
        self.support = (0, last)

    def _log_at_least(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the natural logarithm of P(Z >= z), any z."""
        tail = self.noise.log_tail(np.maximum(np.where(z > 0, z, 1 - z), 1.0))
        return np.where(z > 0, tail, np.log1p(-np.exp(tail)))

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = containers.integers("k", k)
        first, last = self.support
        if first == last:
            return np.where(codes == first, 0.0, -np.inf)
        z = np.asarray(np.clip(codes, first, last) - self.center, dtype=np.float64)
        ends = np.where(codes == first, self._log_at_least(-z), self._log_at_least(z))
        return np.select(
            [(codes < first) | (codes > last), (codes > first) & (codes < last)], [-np.inf, self.noise.logpmf(z)], ends
        )

    def cdf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = containers.integers("k", k)
        first, last = self.support
        inside = np.clip(codes, first, last)
        below = np.exp(self._log_at_least(np.asarray(self.center - inside, dtype=np.float64)))
        return np.select([codes < first, codes >= last], [0.0, 1.0], below)

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        if size is None:
            return self._draw(bit_generator(rng))
        shape = checks.shape(size)
        out = np.empty(math.prod(shape), np.int64)
        for source, block in blocks(rng, out):
            self._fill(source, block)
        return out.reshape(shape)

    def _draw(self, source: np.random.BitGenerator) -> int:
        """Return the first entry of `_fill`, in Python's integers."""
        first, last = self.support
        if first == last:
            return first
        return min(max(self.center + self.noise.draw(source), first), last)

    def _fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        first, last = self.support
        if first == last:
            out[:] = first
            return
        self.noise.fill(source, out)
        np.clip(out, first - self.center, last - self.center, out=out)  # before the sum, which could overflow
        out += self.center

    def value(self, k: ArrayLike) -> Any:
        values = self._decode(k)
        if isinstance(values, float):
            return float(values)
        array = np.asarray(values)
        return array if array.ndim else float(array)
