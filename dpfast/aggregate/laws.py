"""The laws of sample-and-aggregate releases: noisy means of the estimates of blocks, plain or Winsorized."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.aggregate.noise import SumsNoise
from dpfast.core import checks, containers
from dpfast.core.grid import Grid
from dpfast.laws import (
    ClampedBox,
    ClampedNoise,
    IndependentLaws,
    Law,
    RoundedBox,
    RoundedGaussian,
    RoundedLaplace,
    ScalarLaw,
)
from dpfast.mechanisms import Quantiles
from dpfast.random import RandomSource, bit_generator
from dpfast.statistics import Mean

_BATCH = 2**14  # estimates that are rounded at a time
_MOST_PAIRS = 2**12  # pairs of quartiles, on 90 points

Decode: TypeAlias = Callable[..., Any]
Window: TypeAlias = tuple[int, int]  # the least and the greatest code


def parameter_of(grid: Grid, k: int, bounds: tuple[float, float], logs: bool, codes: ArrayLike) -> Any:
    """Return the parameter values of sums of codes over k blocks, clipped to the bounds."""
    means = np.asarray(Mean().decode(grid, k, codes))
    if logs:
        with np.errstate(over="ignore"):  # noise may be far beyond the bounds
            means = np.exp(means)
    return np.clip(means, *bounds)


def sum_of_codes(grid: Grid, values: NDArray[np.float64]) -> int:
    """Return the sum of the codes of values, computed in batches to save memory."""
    batches = range(0, len(values), _BATCH)
    return sum(int(grid.encode(values[start : start + _BATCH]).sum()) for start in batches)


def noisy_sums(
    noise: SumsNoise, totals: Sequence[int], widths: Sequence[int], lasts: Sequence[int], decodes: Sequence[Decode]
) -> Law:
    """Return the law of sums of codes, each in 0..last, with noise for their widths; `decodes`
    convert sums to values.
    """
    scales = [noise.scale(width) for width in widths]
    if noise.kind == "k-norm" and len(totals) > 1:
        return ClampedBox(RoundedBox(scales), center=totals, last=lasts, decode=partial(_decoded, decodes))
    kind = RoundedGaussian if noise.kind == "gaussian" else RoundedLaplace
    laws = [
        ClampedNoise(kind(scale), center=total, last=last, decode=decode)
        for scale, total, last, decode in zip(scales, totals, lasts, decodes, strict=True)
    ]
    return laws[0] if len(laws) == 1 else IndependentLaws(laws)


def _decoded(decodes: Sequence[Decode], codes: NDArray[np.int64]) -> NDArray[np.float64]:
    columns = np.moveaxis(codes, -1, 0)
    return np.stack([np.asarray(decode(column)) for decode, column in zip(decodes, columns, strict=True)], axis=-1)


class Windowed:
    """The codes of the estimates of one parameter, and a window around their private quartiles.

    The quartiles q1 <= q3 are released jointly (`Quantiles`); the window is their midpoint plus and minus `widening`
    times q3 - q1, at least one code each way, inside the grid. Without widening it is the grid.

    Parameters
    ----------
    codes : ndarray of int64, shape (k,)
    grid : Grid
    widening : float or None
    epsilon : Fraction
        For the quartiles.
    """

    def __init__(self, codes: NDArray[np.int64], grid: Grid, widening: float | None, epsilon: Fraction) -> None:
        self._codes, self._widening, self._size = codes, widening, grid.size
        self.last = checks.code_range(len(codes) * (grid.size - 1))
        if widening is not None:
            quartiles = Quantiles(
                (0.25, 0.75), grid=Grid(0, grid.size - 1, step=1), epsilon=checks.positive_down("epsilon", epsilon)
            )
            self._quartiles = quartiles.law_of(quartiles.reading().of(codes.astype(np.float64)))

    def window(self, first: int, third: int) -> Window:
        """Return the least and greatest code of the window around two quartiles."""
        assert self._widening is not None
        reach = max(math.ceil(self._widening * (third - first)), 1)
        return max((first + third) // 2 - reach, 0), min((first + third + 1) // 2 + reach, self._size - 1)

    def drawn(self, source: np.random.BitGenerator) -> Window:
        """Draw the quartiles, and return their window."""
        if self._widening is None:
            return 0, self._size - 1
        return self.window(*self._quartiles.sample(rng=source).tolist())

    def windows(self) -> list[tuple[float, Window]]:
        """Return the natural logarithm of the probability of each pair of quartiles, and its window."""
        if self._widening is None:
            return [(0.0, (0, self._size - 1))]
        size = self._size
        if size * (size + 1) // 2 > _MOST_PAIRS:
            raise ValueError(
                f"a law that is a sum over pairs of quartiles is computed on at most 90 points, not {size}"
            )
        pairs = np.stack(np.triu_indices(size), axis=1)
        weights = self._quartiles.logpmf(pairs).tolist()
        return [(weight, self.window(*pair)) for weight, pair in zip(weights, pairs.tolist(), strict=True)]

    def total(self, window: Window) -> int:
        """Return the sum of the codes, clipped to a window."""
        return int(np.clip(self._codes, *window).sum())


class WinsorizedMeansLaw(Law):
    """The law of means of codes that are clipped to windows around their private quartiles.

    Parameters
    ----------
    columns : sequence of Windowed
        One for each parameter.
    noise : SumsNoise
        Of the sums of the clipped codes, which one record changes by at most the widths of the windows.
    decodes : sequence of callable
        Convert sums of codes to values.
    """

    def __init__(self, columns: Sequence[Windowed], noise: SumsNoise, decodes: Sequence[Decode]) -> None:
        self._columns, self._noise, self._decodes = columns, noise, decodes

    def given(self, windows: Sequence[Window]) -> Any:
        """Return the law of the release given the windows."""
        totals = [column.total(window) for column, window in zip(self._columns, windows, strict=True)]
        widths = [high - low for low, high in windows]
        return noisy_sums(self._noise, totals, widths, [column.last for column in self._columns], self._decodes)

    @cached_property
    def _mixture(self) -> list[tuple[float, Any]]:
        """The natural logarithm of the probability of the windows of all parameters, and the law given these."""
        found: dict[tuple[Window, ...], list[float]] = {}
        for choice in itertools.product(*(column.windows() for column in self._columns)):
            weights, windows = zip(*choice, strict=True)
            found.setdefault(windows, []).append(math.fsum(weights))
        return [(float(np.logaddexp.reduce(weights)), self.given(windows)) for windows, weights in found.items()]

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        logs: NDArray[np.float64] = np.logaddexp.reduce(
            [weight + law.logpmf(k) for weight, law in self._mixture], axis=0
        )
        return logs

    def outcomes(self) -> NDArray[np.int64]:
        outcomes: NDArray[np.int64] = self._mixture[0][1].outcomes()
        return outcomes

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        source = bit_generator(rng)
        if size is None:
            return self.given([column.drawn(source) for column in self._columns]).sample(rng=source)
        shape = checks.shape(size)
        out = np.array([self.sample(rng=source) for _ in range(math.prod(shape))], dtype=np.int64)
        return out.reshape(*shape, *self._item_shape)

    @property
    def _item_shape(self) -> tuple[int, ...]:
        return (len(self._columns),)

    def value(self, k: ArrayLike) -> Any:
        return _decoded(self._decodes, containers.integers("k", k))


class WinsorizedMeanLaw(WinsorizedMeansLaw, ScalarLaw):
    """The law of the mean of one parameter."""

    def __init__(self, column: Windowed, noise: SumsNoise, decode: Decode) -> None:
        super().__init__([column], noise, [decode])
        self.support = (0, column.last)

    def cdf(self, k: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(np.sum([math.exp(weight) * law.cdf(k) for weight, law in self._mixture], axis=0))

    @property
    def _item_shape(self) -> tuple[int, ...]:
        return ()

    def value(self, k: ArrayLike) -> Any:
        values = np.asarray(self._decodes[0](k))
        return values if values.ndim else float(values)
