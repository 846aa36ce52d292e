"""Exact output laws. A law depends on private data and is never released: it is what proofs and audits talk about."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast import _checks
from dpfast._kernels import _levels
from dpfast.grid import Grid
from dpfast.random import RandomSource, bit_generator, blocks


class Law(ABC):
    """A distribution on grid codes, or on vectors of them, and the values that they stand for."""

    @abstractmethod
    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Natural logarithm of P(K = k); -inf outside the support."""

    @abstractmethod
    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        """Exact draws, as arrays of int64 of shape `size`; one draw for None."""

    @abstractmethod
    def value(self, k: ArrayLike) -> Any:
        """The floats that are released for k."""


class ScalarLaw(Law):
    """A distribution on the integers first..last of `support`."""

    support: tuple[int, int]

    def pmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """P(K = k)."""
        return np.exp(self.logpmf(k))

    @abstractmethod
    def cdf(self, k: ArrayLike) -> NDArray[np.float64]:
        """P(K <= k)."""

    @abstractmethod
    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        """Exact draws: an int for size None, else an array of int64."""

    @abstractmethod
    def value(self, k: ArrayLike) -> Any:
        """The float that is released for k; an array for an array."""


class NestedIntervals(ScalarLaw):
    """P(k) proportional to ``exp(-epsilon / 2 * min(score(k), levels))``.

    score(k) is the least t with k in [lower[t], upper[t]].

    Parameters
    ----------
    lower, upper : ndarray of int64, shape (levels,)
        Nested intervals of codes inside 0..last: `lower` nonincreasing, `upper` nondecreasing.
    epsilon : float
    last : int
        The support is 0..last.
    grid : Grid
        Turns codes into values.

    Notes
    -----
    Drawn as a mixture (docs/proofs/nested-intervals.md): with q = exp(-epsilon / 2), level t with weight
    ``(1 - q) q**t (upper[t] - lower[t] + 1)``, or anywhere with weight ``q**levels (last + 1)``; then a uniform point.
    """

    def __init__(
        self, lower: NDArray[np.int64], upper: NDArray[np.int64], *, epsilon: float, last: int, grid: Grid
    ) -> None:
        self.lower, self.upper, self.epsilon, self.grid = lower, upper, epsilon, grid
        self.support = (0, last)
        # Where the score changes, and the probability of each stretch of equal score.
        edges = np.unique(np.concatenate([lower, upper + 1, [0, last + 1]]))
        self._starts, lengths = edges[:-1], np.diff(edges)
        exponents = -epsilon / 2 * self.score(self._starts)
        top = exponents.max()
        masses = np.exp(exponents - top) * lengths
        self._log_total = float(top + math.log(math.fsum(masses)))
        self._before = np.concatenate([[0.0], np.cumsum(masses / math.fsum(masses))])

    def score(self, k: ArrayLike) -> NDArray[np.int64]:
        """The least number of replaced records that puts the statistic at k, capped at the number of levels."""
        codes = np.asarray(k, dtype=np.int64)
        too_low = len(self.lower) - np.searchsorted(self.lower[::-1], codes, side="right")
        too_high = np.searchsorted(self.upper, codes, side="left")
        return np.asarray(np.maximum(too_low, too_high))

    def _inside(self, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        return (codes >= self.support[0]) & (codes <= self.support[1])

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = np.asarray(k, dtype=np.int64)
        return np.where(self._inside(codes), -self.epsilon / 2 * self.score(codes) - self._log_total, -np.inf)

    def cdf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = np.clip(np.asarray(k, dtype=np.int64), -1, self.support[1])
        stretch = np.maximum(np.searchsorted(self._starts, codes, side="right") - 1, 0)
        inside = codes - self._starts[stretch] + 1
        below = self._before[stretch] + inside * self.pmf(self._starts[stretch])
        return np.where(codes >= 0, np.minimum(below, 1.0), 0.0)

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        shape = _checks.shape(size)
        out = np.empty(math.prod(shape), np.int64)
        if size is None:
            self._fill(bit_generator(rng), out)
            return int(out[0])
        for source, block in blocks(rng, out):
            self._fill(source, block)
        return out.reshape(shape)

    def _fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        _levels.fill(source, self.lower, self.upper, self.epsilon, self.support[1], out)

    def value(self, k: ArrayLike) -> Any:
        values = self.grid.decode(k)
        return values if values.ndim else float(values)
