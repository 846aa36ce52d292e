"""What a parametric family is: the estimate of each block of records, its bias, and what one record tells.

Two ways to write one, both frozen dataclasses:

- `AdditiveFamily`, if the estimate is a function of a few sums of a number for each record: `columns` names the sums
  (they are taken in exact fixed point, in one pass, also of a stream), `estimate` turns them into estimates, all blocks
  at once.
- `BlockFamily`, if a fit looks at the records of a block more than once: `fit` is given the records of one block, or
  of many and where each starts.

Nothing here is a privacy event: whatever the estimate of a block is, one record changes it alone, and the mechanism
clamps it to a public box. So a fit may fail (NaN), be inexact, or be the user's own.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast import _containers
from dpfast._kernels import _blocks
from dpfast._threads import each

Theta = Mapping[str, float]

NOTHING: Theta = MappingProxyType({})

LARGEST = sys.float_info.max
_MOST_SIZES = 2**12  # of blocks, for which values are kept
_BATCH = 2**14  # blocks whose sums and estimates are made at once: their memory is used again


@dataclass(frozen=True)
class Box:
    """The public ranges of the parameters to be released, in their order.

    Attributes
    ----------
    names : tuple of str
    lower, upper : tuple of float
        Finite, ``lower < upper`` for each parameter.
    logs : tuple of str
        Those of the names for which not the estimates but their logarithms are asked (`Family.logarithmic`).
    """

    names: tuple[str, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    logs: tuple[str, ...] = ()

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def range(self, name: str) -> tuple[float, float]:
        """The range of one parameter."""
        i = self.names.index(name)
        return self.lower[i], self.upper[i]

    def middle(self) -> dict[str, float]:
        """A public value of each parameter: the geometric mean of a positive range, the midpoint of another."""
        return {
            name: math.sqrt(low) * math.sqrt(high) if low > 0 else low / 2 + high / 2
            for name, low, high in zip(self.names, self.lower, self.upper, strict=True)
        }


class Family(ABC):
    """A parametric family of distributions: subclasses are frozen dataclasses.

    A family of several parameters releases those that the bounds name. To write one, see `AdditiveFamily` and
    `BlockFamily`.
    """

    least: ClassVar[int] = 2
    """Records of a block below which it has no estimate."""

    defaults: ClassVar[Theta] = NOTHING
    """What `reference` assumes of parameters of which nothing is known."""

    skewness_factors: ClassVar[Theta] = NOTHING
    """The factor of each parameter in `skewness`; 1 by default."""

    logarithmic: ClassVar[tuple[str, ...]] = ()
    """Positive parameters whose estimates can be averaged by their logarithms: `log_bias` and `log_second_order` know
    them. An estimate of which has a standard deviation in proportion to the parameter, more or less."""

    @property
    def least_block(self) -> int:
        """Records that ``blocks="auto"`` gives a block at least: with fewer, skewness and clamping spoil the mean."""
        return 20

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Every parameter that can be estimated, other parametrisations of the same included."""

    @property
    def default(self) -> tuple[str, ...]:
        """The parameters that bounds given as one pair stand for."""
        return self.names[:1]

    def space(self, name: str) -> tuple[float, float]:
        """The closed interval that the bounds of a parameter must lie in."""
        return -math.inf, math.inf

    def records(self, x: ArrayLike) -> tuple[NDArray[Any], ...]:
        """The records as arrays of equal length, from what the caller gave: checked by shape and dtype only."""
        return (_containers.vector("x", x),)

    @abstractmethod
    def estimates(
        self, data: tuple[NDArray[Any], ...], blocks: int, box: Box, *, corrected: bool, workers: int
    ) -> NDArray[np.float64]:
        """The estimates of all blocks, of shape (blocks, len(box.names)); NaN where there is none.

        Parameters
        ----------
        data : tuple of ndarray
            What `records` gave.
        blocks : int
            k: record i of n belongs to block ``i * k // n``.
        box : Box
            Which parameters, and where they can be. It may guide a fit (a start, an end of a search, the resolution of
            a sum); clamping to it is the mechanism's.
        corrected : bool
            Whether to take off the bias of order 1 / (size of the block).
        workers : int
            Threads; the result does not depend on it.
        """

    def reference(self, box: Box, known: Theta = NOTHING) -> dict[str, float]:
        """A public value of every parameter that `information`, `bias` and `second_order` need.

        What is known comes first, also in another parametrisation; then the middle of the box; then `defaults`.
        """
        return {**self.defaults, **box.middle(), **known}

    def information(self, name: str, theta: Theta) -> float:
        """Fisher information of one record about a parameter, the others unknown: 1 / (n variance of the MLE)."""
        raise TypeError(f"the Fisher information of {type(self).__name__} about {name} is not known")

    def bias(self, name: str, theta: Theta) -> float:
        """b1: the estimate of a block of b records that is not corrected has the bias b1 / b + O(1 / b**2)."""
        raise TypeError(f"the bias of {type(self).__name__} for {name} is not known")

    def second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        """(v2, b2): a corrected estimate has the variance 1 / (b I) + v2 / b**2 and at most the bias b2 / b**2."""
        raise TypeError(f"the second-order terms of {type(self).__name__} for {name} are not known")

    def skewness(self, name: str, theta: Theta) -> float:
        """About the skewness of a block's estimate, times the square root of its records: for the bias of a clamp.

        With V = 1 / I it is ``V' / sqrt(V)`` for the mean of a distribution, twice that for a natural parameter of an
        exponential family; `skewness_factors` has the factors of others.
        """
        at = theta[name]
        step = 1e-3 * (abs(at) if self.space(name)[0] == 0 else self.information(name, theta) ** -0.5)
        low, high = (1 / self.information(name, {**theta, name: at + h}) for h in (-step, step))
        slope = (high - low) / (2 * step)
        return self.skewness_factors.get(name, 1.0) * slope * math.sqrt(self.information(name, theta))

    def reach(self, name: str, theta: Theta) -> float:
        """The fewest records in a block for which `second_order` holds at theta; with fewer, the error is not known."""
        return 0.0

    def log_bias(self, name: str, estimate: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
        """The bias of the logarithms of corrected estimates, each from so many records, to second order; finite."""
        raise TypeError(f"the logarithm of an estimate of {name} has a bias that {type(self).__name__} does not know")

    def log_second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        """(v2, b2) of the logarithm of a corrected estimate, less `log_bias`."""
        raise TypeError(f"the second-order terms of {type(self).__name__} for the logarithm of {name} are not known")

    def averaged(
        self, name: str, estimate: NDArray[np.float64], count: NDArray[np.float64], box: Box, *, corrected: bool
    ) -> NDArray[np.float64]:
        """What of the estimates of the blocks is averaged: they themselves, or their logarithms less `log_bias`."""
        if name not in box.logs:
            return estimate
        logs = logarithms(estimate)
        if not corrected:
            return logs
        logs -= self.log_bias(name, estimate, count)
        return logs


def determined(name: str, sources: Iterable[Theta], **by: Callable[[float], float]) -> float:
    """A parameter, from the first source that has it or another that determines it."""
    for source in sources:
        if name in source:
            return source[name]
        for other, function in by.items():
            if other in source:
                return function(source[other])
    raise KeyError(name)


def reciprocal(x: float) -> float:
    """A mean from a rate, a scale from a rate."""
    return 1 / x


def logarithms(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each by itself, bit for bit: -inf for what is not positive, inf for inf, NaN for NaN."""
    return np.asarray(_blocks.logs(np.ascontiguousarray(x)))


Function = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def for_counts(function: Function, count: NDArray[np.float64]) -> NDArray[np.float64]:
    """A function of each count by itself, computed once for every whole number from the least to the greatest.

    What it returns is kept, so it is one of a module, no lambda.
    """
    least = float(count.min())
    sizes = int(count.max() - least) + 1
    if sizes > _MOST_SIZES:
        return function(count)
    values = _for_sizes(function, least, sizes)
    # Most often blocks are of n // k records and of one more.
    few = sizes <= 2
    out: NDArray[np.float64]
    out = np.where(count == least, values[0], values[-1]) if few else values[(count - least).astype(np.intp)]
    return out


@lru_cache(maxsize=64)
def _for_sizes(function: Function, least: float, sizes: int) -> NDArray[np.float64]:
    return function(least + np.arange(float(sizes)))


def digamma_deficits(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log x - digamma x: minus the mean logarithm of a gamma number of shape x and mean 1."""
    deficits: NDArray[np.float64] = _blocks.polygammas(np.ascontiguousarray(x))[0]
    return deficits


@dataclass(frozen=True)
class Column:
    """A sum over the records of a block: of fixed-point numbers, each a function of one record and public numbers.

    Parameters
    ----------
    kind : str
        What is summed: ``"value"``; ``"square"``, value and square; ``"wide"``, a value of any scale; ``"log"``, log x;
        ``"log-square"``, log x and its square; ``"log1m"``, log(1 - x).
    center : float
        What is subtracted from a value first.
    step : float
        The unit of the fixed point, a power of two: a value is rounded to it and clamped to within 2**51 steps of the
        center (2**47 for squares). Logarithms have the step 2**-37 whatever is said here; wide values are clamped to
        2**50 steps and rounded to 2**-50 steps.
    """

    kind: str
    center: float = 0.0
    step: float = 1.0


class AdditiveFamily(Family):
    """A family whose estimate is a function of a few sums over the records of a block.

    A subclass gives `names`, `columns`, `estimate`, `support` and, for the number of blocks and the error,
    `information`, `bias` and `second_order`.
    """

    @property
    def support(self) -> tuple[float, float]:
        """The closed interval of possible records. All others, NaN among them, are left out of their block."""
        return -LARGEST, LARGEST

    @abstractmethod
    def columns(self, box: Box) -> tuple[Column, ...]:
        """What is summed. It depends on public numbers only."""

    @abstractmethod
    def estimate(
        self, count: NDArray[np.float64], sums: tuple[NDArray[np.float64], ...], box: Box, *, corrected: bool
    ) -> Iterable[NDArray[np.float64]]:
        """The estimates of each parameter of the box, from the sums of all blocks: each from its own, bit for bit.

        Parameters
        ----------
        count : ndarray of shape (k,)
            Records of each block that are in the support, at least `least`.
        sums : tuple of ndarray of shape (k,)
            For each column one, in the units of the records: the sum. For a column with squares two: the sum, and the
            sum of squared deviations from the mean of the block.
        """

    def state(
        self, n: int, blocks: int, box: Box, *, start: int = 0, part: tuple[int, int] | None = None
    ) -> _blocks.BlockSums:
        """Sums to be updated with chunks of the records from position `start` of n on, and merged with others.

        With `part` those of some blocks only, from the first record of the first of them on.
        """
        low, high = self.support
        columns = [(column.kind, column.center, column.step) for column in self.columns(box)]
        return _blocks.BlockSums(n, blocks, columns, lower=low, upper=high, start=start, part=part)

    def estimates(
        self, data: tuple[NDArray[Any], ...], blocks: int, box: Box, *, corrected: bool, workers: int
    ) -> NDArray[np.float64]:
        [x], n = data, data[0].shape[0]
        out = np.empty((blocks, len(box.names)))
        batches = -(-blocks // _BATCH)
        threads = min(workers, batches)

        def run(i: int) -> None:
            cuts = [*range(batches * i // threads * _BATCH, min(batches * (i + 1) // threads * _BATCH, blocks), _BATCH)]
            state = self.state(n, blocks, box, part=(cuts[0], min(cuts[0] + _BATCH, blocks)))
            for first in cuts:
                last = min(first + _BATCH, blocks)
                if first > cuts[0]:
                    state.restart(first, last)
                state.update(x[-(-n * first // blocks) : -(-n * last // blocks)], workers=workers // threads)
                out[first:last] = self.finish(state, box, corrected=corrected)

        each(run, range(threads), threads)
        return out

    def finish(self, state: _blocks.BlockSums, box: Box, *, corrected: bool) -> NDArray[np.float64]:
        """The estimates of the blocks of a state, once it has seen their records."""
        count, *sums = state.totals()
        few = count < self.least
        counted = np.maximum(count, self.least) if few.any() else count
        out = np.empty((len(count), len(box.names)))
        with np.errstate(all="ignore"):
            estimates = self.estimate(counted, tuple(sums), box, corrected=corrected)
            for i, (name, estimate) in enumerate(zip(box.names, estimates, strict=True)):
                if np.shape(estimate) != count.shape:  # it could be broadcast: one number for all
                    raise ValueError(f"{type(self).__name__}.estimate must give one number for each block")
                out[:, i] = self.averaged(name, estimate, counted, box, corrected=corrected)
        out[few] = np.nan
        return out


class BlockFamily(Family):
    """A family whose fit looks at the records of a block more than once.

    A subclass gives `names`, `fit` and, for the number of blocks and the error, `information`, `bias` and
    `second_order`; `records` and `present` too, if a record is more than a number (a regression).

    Examples
    --------
    A family of medians, slowly:

    >>> import numpy as np
    >>> from dataclasses import dataclass
    >>> from dpfast.families import BlockFamily, Box
    >>> @dataclass(frozen=True)
    ... class Middle(BlockFamily):
    ...     names = ("location",)
    ...
    ...     def fit(self, x, *, offsets, box, corrected):
    ...         return np.array([[np.median(x[a:b])] for a, b in zip(offsets, offsets[1:])])
    >>> box = Box(("location",), (0.0,), (9.0,))
    >>> Middle().estimates((np.arange(9.0),), 3, box, corrected=True, workers=1).tolist()
    [[1.0], [4.0], [7.0]]
    """

    many: ClassVar[bool] = False
    """Whether `fit` is given many blocks at once, for speed. By default it is given one, and cannot mix them up."""

    @property
    def support(self) -> tuple[float, float]:
        """The closed interval of possible records. All others, NaN among them, are left out of their block."""
        return -LARGEST, LARGEST

    @abstractmethod
    def fit(self, *data: NDArray[Any], offsets: NDArray[np.int64], box: Box, corrected: bool) -> NDArray[np.float64]:
        """The estimates of one block, or of many, of shape (len(offsets) - 1, len(box.names)); NaN where a fit fails.

        The estimate of a block must be a function of its records (and public numbers) alone, bit for bit, wherever they
        lie in memory, whatever the other blocks hold and whatever was fitted before: privacy rests on it. An exception
        or another shape counts as a failed fit: with `many`, an exception of each block by itself, a shape of all.

        Parameters
        ----------
        *data : ndarray
            What `records` gave of these blocks, less the records that are not `present`: the first axis counts records.
            C-contiguous float64, read-only.
        offsets : ndarray of int64
            Block j holds the records ``offsets[j]`` to ``offsets[j + 1] - 1``; perhaps none.
        """

    def present(self, *data: NDArray[Any]) -> NDArray[np.bool_]:
        """Which records are possible: a number in the support, a row of finite numbers."""
        low, high = self.support
        mask = np.ones(data[0].shape[0], np.bool_)
        for part in data:
            rows = part.reshape(part.shape[0], -1)
            mask &= np.all((rows >= low) & (rows <= high), axis=1)
        return mask

    def estimates(
        self, data: tuple[NDArray[Any], ...], blocks: int, box: Box, *, corrected: bool, workers: int
    ) -> NDArray[np.float64]:
        n = data[0].shape[0]
        parts = tuple(np.ascontiguousarray(part, dtype=np.float64) for part in data)
        offsets = _blocks.offsets(n, blocks)
        mask = self.present(*parts)
        if not mask.all():
            offsets = np.concatenate([[0], np.cumsum(mask)])[offsets]
            parts = tuple(part[mask] for part in parts)
        out = np.full((blocks, len(box.names)), np.nan)
        cuts = sorted({blocks * i // (4 * workers) for i in range(4 * workers + 1)} if workers > 1 else {0, blocks})

        def fit(first: int, last: int) -> None:
            start, stop = offsets[first], offsets[last]
            inside = tuple(part[start:stop] for part in parts)
            for part in inside:
                part.setflags(write=False)
            try:
                with np.errstate(all="ignore"):
                    fitted = self.fit(*inside, offsets=offsets[first : last + 1] - start, box=box, corrected=corrected)
                    estimates = np.asarray(fitted, dtype=np.float64)
            except Exception:  # of one block: the others may not fail with it
                if last - first > 1:
                    one_by_one(first, last)
                return
            if estimates.shape == (last - first, len(box.names)):  # any other could be broadcast: one number for all
                out[first:last] = estimates

        def one_by_one(first: int, last: int) -> None:
            for j in range(first, last):
                fit(j, j + 1)

        run = fit if self.many else one_by_one
        each(lambda cut: run(*cut), list(pairwise(cuts)), workers)
        count = np.diff(offsets).astype(np.float64)
        counted = np.maximum(count, self.least)
        with np.errstate(all="ignore"):
            for i, name in enumerate(box.names):
                out[:, i] = self.averaged(name, out[:, i], counted, box, corrected=corrected)
        out[count < self.least] = np.nan
        return out
