"""The laws of sample-and-aggregate releases: noisy means of the estimates of blocks, plain or Winsorized."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast import _checks
from dpfast.grid import Grid
from dpfast.laws import ClampedNoise, RoundedLaplace, ScalarLaw
from dpfast.mechanisms import Quantiles
from dpfast.random import RandomSource, bit_generator
from dpfast.statistics import Mean

_BATCH = 2**14  # estimates that are rounded at a time
_MOST_PAIRS = 2**12  # pairs of quartiles, on 90 points


def parameter_of(grid: Grid, k: int, bounds: tuple[float, float], logs: bool, codes: ArrayLike) -> Any:
    """The parameter values of sums of codes over k blocks, clipped to the bounds."""
    means = np.asarray(Mean().decode(grid, k, codes))
    if logs:
        with np.errstate(over="ignore"):  # noise may be far beyond the bounds
            means = np.exp(means)
    return np.clip(means, *bounds)


def sum_of_codes(grid: Grid, values: NDArray[np.float64]) -> int:
    """The sum of the codes of values, computed in batches to save memory."""
    batches = range(0, len(values), _BATCH)
    return sum(int(grid.encode(values[start : start + _BATCH]).sum()) for start in batches)


def noisy_sum(total: int, k: int, grid: Grid, scale: Fraction, decode: Callable[..., Any]) -> ClampedNoise:
    """The law of a sum of k codes with Laplace noise of this scale; `decode` converts sums to values."""
    last = _checks.code_range(k * (grid.size - 1))
    return ClampedNoise(RoundedLaplace(scale), center=total, last=last, decode=decode)


class WinsorizedMeanLaw(ScalarLaw):
    """The law of a mean of codes that are clipped to a window around their private quartiles.

    Half of `epsilon` is for a joint release of the quartiles q1 <= q3 (`Quantiles`); the window is their midpoint plus
    and minus `widening` times q3 - q1, at least one code each way, inside the grid. The other half is for the sum of
    the clipped codes, which one code changes by at most the width of the window.

    Parameters
    ----------
    codes : ndarray of int64, shape (k,)
    grid : Grid
    widening : float
    epsilon : Fraction
    decode : callable
        Converts sums of codes to values.
    """

    def __init__(
        self, codes: NDArray[np.int64], grid: Grid, widening: float, epsilon: Fraction, decode: Callable[..., Any]
    ) -> None:
        self._codes, self._grid, self._widening, self._decode = codes, grid, widening, decode
        quartiles = Quantiles(
            (0.25, 0.75), grid=Grid(0, grid.size - 1, step=1), epsilon=_checks.positive_down("epsilon", epsilon / 2)
        )
        self._half = epsilon / 2
        self._quartiles = quartiles.law_of(quartiles.reading().of(codes.astype(np.float64)))
        self.support = (0, _checks.code_range(codes.shape[0] * (grid.size - 1)))

    def window(self, first: int, third: int) -> tuple[int, int]:
        """The least and greatest code of the window around two quartiles."""
        reach = max(math.ceil(self._widening * (third - first)), 1)
        return max((first + third) // 2 - reach, 0), min((first + third + 1) // 2 + reach, self._grid.size - 1)

    def given(self, first: int, third: int) -> ClampedNoise:
        """The law of the release given the quartiles."""
        low, high = self.window(first, third)
        total = int(np.clip(self._codes, low, high).sum())
        return noisy_sum(total, len(self._codes), self._grid, (high - low) / self._half, self._decode)

    @cached_property
    def _mixture(self) -> list[tuple[float, ClampedNoise]]:
        """The probability of each pair of quartiles and the law given this pair."""
        size = self._grid.size
        if size * (size + 1) // 2 > _MOST_PAIRS:
            raise ValueError(
                f"a law that is a sum over pairs of quartiles is computed on at most 90 points, not {size}"
            )
        pairs = np.stack(np.triu_indices(size), axis=1)
        weights = self._quartiles.logpmf(pairs)
        return [(float(weight), self.given(*pair)) for weight, pair in zip(weights, pairs.tolist(), strict=True)]

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        logs: NDArray[np.float64] = np.logaddexp.reduce(
            [weight + law.logpmf(k) for weight, law in self._mixture], axis=0
        )
        return logs

    def cdf(self, k: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(np.sum([math.exp(weight) * law.cdf(k) for weight, law in self._mixture], axis=0))

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        source = bit_generator(rng)
        if size is None:
            return self.given(*self._quartiles.sample(rng=source).tolist()).sample(rng=source)
        shape = _checks.shape(size)
        out = [self.sample(rng=source) for _ in range(math.prod(shape))]
        return np.array(out, dtype=np.int64).reshape(shape)

    def value(self, k: ArrayLike) -> Any:
        values = np.asarray(self._decode(k))
        return values if values.ndim else float(values)
