"""Parametric families: the estimate on each block of records, its bias, and the Fisher information of one record.

There are two ways to write one, both as frozen dataclasses:

- `AdditiveFamily`, if the estimate is a function of a few sums over the records: `columns` defines the sums (exact, in
  fixed point, in one pass, also over a stream), and `estimate` turns them into estimates, for all blocks at once.
- `BlockFamily`, if a fit reads the records of a block more than once: `fit` receives the records of one block, or of
  many blocks together with their offsets.

Privacy does not depend on the estimate of a block: one record changes the estimate of its own block only, and the
mechanism clamps that to a public box. So a fit may fail (NaN), be inexact, or be written by the user.
"""

from __future__ import annotations

import math
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _blocks
from dpfast._kernels._threads import each
from dpfast.core import containers
from dpfast.core.foreign import swallowed
from dpfast.core.spending import known
from dpfast.errors import BudgetError

Theta = Mapping[str, float]

NOTHING: Theta = MappingProxyType({})

LARGEST = sys.float_info.max
_MOST_SIZES = 2**12  # block sizes for which values are cached
_BATCH = 2**12  # blocks whose sums and estimates are computed at once: in the cache, and below what malloc maps anew


def _refuse_releases(rehearse: Callable[[], object]) -> None:
    """Raise the BudgetError of a call with made-up records; none of its other exceptions, and no warnings."""
    with warnings.catch_warnings(), swallowed(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            rehearse()
        except BudgetError:
            raise
        except Exception:  # it may need other records than these
            return


@dataclass(frozen=True)
class Ranges:
    """The public ranges of the parameters to be released, in order.

    Attributes
    ----------
    names : tuple of str
    lower, upper : tuple of float
        Finite, ``lower < upper`` for each parameter.
    logs : tuple of str
        Names of the parameters whose logarithms are estimated in place of the parameters (`Family.logarithmic`).
    """

    names: tuple[str, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    logs: tuple[str, ...] = ()

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def range(self, name: str) -> tuple[float, float]:
        """Return the range of one parameter."""
        i = self.names.index(name)
        return self.lower[i], self.upper[i]

    def middle(self) -> dict[str, float]:
        """Return a public value of each parameter: the geometric mean of a positive range, else the midpoint."""
        return {
            name: math.sqrt(low) * math.sqrt(high) if low > 0 else low / 2 + high / 2
            for name, low, high in zip(self.names, self.lower, self.upper, strict=True)
        }


class Family(ABC):
    """Base class of parametric families of distributions; subclasses are frozen dataclasses.

    A family with several parameters releases the ones named in the bounds. To write a family, see `AdditiveFamily` and
    `BlockFamily`.
    """

    least: ClassVar[int] = 2
    """Number of records below which a block has no estimate."""

    defaults: ClassVar[Theta] = NOTHING
    """Values that `reference` assumes for unknown parameters."""

    skewness_factors: ClassVar[Theta] = NOTHING
    """The factor of each parameter in `skewness`; 1 by default."""

    logarithmic: ClassVar[tuple[str, ...]] = ()
    """Positive parameters whose estimates can be averaged by their logarithms; `log_bias` and `log_second_order` cover
    them. The standard deviation of such an estimate is roughly proportional to the parameter."""

    @property
    def least_block(self) -> int:
        """Least number of records per block for ``blocks="auto"``: with fewer, skewness and clamping bias the mean."""
        return 20

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """All parameters that can be estimated, including alternative parametrisations."""

    @property
    def default(self) -> tuple[str, ...]:
        """The parameters to which a single pair of bounds refers."""
        return self.names[:1]

    def space(self, name: str) -> tuple[float, float]:
        """Return the closed interval that the bounds of a parameter must lie in."""
        return -math.inf, math.inf

    def records(self, x: ArrayLike) -> tuple[NDArray[Any], ...]:
        """Convert the caller's data to arrays of equal length; only shape and dtype are checked."""
        return (containers.vector("x", x),)

    @property
    def _is_foreign(self) -> bool:
        """Whether estimates run code that the library does not own."""
        return type(self).__module__.partition(".")[0] != "dpfast"

    @abstractmethod
    def estimates(
        self, data: tuple[NDArray[Any], ...], blocks: int, box: Ranges, *, corrected: bool, workers: int
    ) -> NDArray[np.float64]:
        """Return the estimates of all blocks, of shape (blocks, len(box.names)); NaN for a block without an estimate.

        Parameters
        ----------
        data : tuple of ndarray
            The return value of `records`.
        blocks : int
            Number of blocks k: record i of n belongs to block ``i * k // n``.
        box : Ranges
            The parameters to estimate, and their ranges. It may guide a fit (a start, an end of a search, the
            resolution of a sum); the mechanism does the clamping.
        corrected : bool
            Whether to subtract the bias of order 1 / (size of the block).
        workers : int
            Number of threads; the result does not depend on it.
        """

    def reference(self, box: Ranges, known: Theta = NOTHING) -> dict[str, float]:
        """Return a public value for every parameter that `information`, `bias` and `second_order` need.

        It is taken from `known`, possibly in another parametrisation; else from the middle of the box; else `defaults`.
        """
        return {**self.defaults, **box.middle(), **known}

    def information(self, name: str, theta: Theta) -> float:
        """Fisher information of one record about a parameter, with the others unknown: 1 / (n variance of the MLE)."""
        raise TypeError(f"{type(self).__name__} does not define the Fisher information about {name}")

    def bias(self, name: str, theta: Theta) -> float:
        """b1: the uncorrected estimate of a block of b records has the bias b1 / b + O(1 / b**2)."""
        raise TypeError(f"{type(self).__name__} does not define the bias for {name}")

    def second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        """(v2, b2): a corrected estimate has variance 1 / (b I) + v2 / b**2 and a bias of at most b2 / b**2."""
        raise TypeError(f"{type(self).__name__} does not define the second-order terms for {name}")

    def skewness(self, name: str, theta: Theta) -> float:
        """Approximate skewness of a block's estimate times the square root of its size, for the bias by clamping.

        With V = 1 / I it is ``V' / sqrt(V)`` for the mean of a distribution, and twice that for a natural parameter of
        an exponential family; `skewness_factors` has the factors of other parameters.
        """
        at = theta[name]
        step = 1e-3 * (abs(at) if self.space(name)[0] == 0 else self.information(name, theta) ** -0.5)
        low, high = (1 / self.information(name, {**theta, name: at + h}) for h in (-step, step))
        slope = (high - low) / (2 * step)
        return self.skewness_factors.get(name, 1.0) * slope * math.sqrt(self.information(name, theta))

    def reach(self, name: str, theta: Theta) -> float:
        """Least block size for which `second_order` holds at theta; the error for smaller blocks is unknown."""
        return 0.0

    def log_bias(self, name: str, estimate: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
        """Second-order bias of the logarithms of corrected estimates, each from `count` records; finite."""
        raise TypeError(f"the bias of the logarithm of {name} is not defined by {type(self).__name__}")

    def log_second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        """(v2, b2) of the logarithm of a corrected estimate, minus `log_bias`."""
        raise TypeError(f"{type(self).__name__} does not define the second-order terms for the logarithm of {name}")

    def averaged(
        self, name: str, estimate: NDArray[np.float64], count: NDArray[np.float64], box: Ranges, *, corrected: bool
    ) -> NDArray[np.float64]:
        """Return the values to average: the estimates of the blocks, or their logarithms minus `log_bias`."""
        if name not in box.logs:
            return estimate
        logs = logarithms(estimate)
        if not corrected:
            return logs
        logs -= self.log_bias(name, estimate, count)
        return logs


def determined(name: str, sources: Iterable[Theta], **by: Callable[[float], float]) -> float:
    """Return a parameter from the first source that contains it or a parameter that determines it."""
    for source in sources:
        if name in source:
            return source[name]
        for other, function in by.items():
            if other in source:
                return function(source[other])
    raise KeyError(name)


def reciprocal(x: float) -> float:
    """Convert a rate to a mean or a scale."""
    return 1 / x


def logarithms(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithm of each number, independent of the others bit for bit; -inf if it is not positive."""
    return np.asarray(_blocks.logs(np.ascontiguousarray(x)))


Function = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def for_counts(function: Function, count: NDArray[np.float64]) -> NDArray[np.float64]:
    """Apply a function to each count, computed once for every integer from the least to the greatest.

    The values are cached by function, so the function must be defined at module level, not a lambda.
    """
    least = float(count.min())
    sizes = int(count.max() - least) + 1
    if sizes > _MOST_SIZES:
        return function(count)
    values = _for_sizes(function, least, sizes)
    # Usually, blocks have n // k or n // k + 1 records.
    few = sizes <= 2
    out: NDArray[np.float64]
    out = np.where(count == least, values[0], values[-1]) if few else values[(count - least).astype(np.intp)]
    return out


@lru_cache(maxsize=64)
def _for_sizes(function: Function, least: float, sizes: int) -> NDArray[np.float64]:
    return function(least + np.arange(float(sizes)))


def digamma_deficits(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log x - digamma x: minus the mean logarithm of a gamma variate of shape x and mean 1."""
    deficits: NDArray[np.float64] = _blocks.polygammas(np.ascontiguousarray(x))[0]
    return deficits


@dataclass(frozen=True)
class RecordSum:
    """A sum over the records of a block, in fixed point; each term depends on one record and public numbers only.

    Parameters
    ----------
    kind : str
        The terms: ``"value"``; ``"square"``, value and square; ``"wide"``, a value of any scale; ``"log"``, log x;
        ``"log-square"``, log x and its square; ``"log1m"``, log(1 - x).
    center : float
        Subtracted from each value first.
    step : float
        The unit of the fixed point, a power of two: values are rounded to it and clamped to within 2**51 steps of the
        center (2**47 for squares). Logarithms always use the step 2**-37; wide values are clamped to 2**50 steps and
        rounded to 2**-50 steps.
    """

    kind: str
    center: float = 0.0
    step: float = 1.0


class AdditiveFamily(Family):
    """Base class of families whose estimate is a function of a few sums over the records of a block.

    A subclass provides `names`, `columns`, `estimate`, `support` and, for the number of blocks and the error,
    `information`, `bias` and `second_order`.
    """

    @property
    def support(self) -> tuple[float, float]:
        """The closed interval of possible records. Others, including NaN, are left out of their block."""
        return -LARGEST, LARGEST

    @abstractmethod
    def columns(self, box: Ranges) -> tuple[RecordSum, ...]:
        """Return the sums to compute; a function of public numbers only."""

    @abstractmethod
    def estimate(
        self, count: NDArray[np.float64], sums: tuple[NDArray[np.float64], ...], box: Ranges, *, corrected: bool
    ) -> Iterable[NDArray[np.float64]]:
        """Return the estimates of each parameter of the box; those of a block depend on its own sums only, bit for bit.

        Parameters
        ----------
        count : ndarray of shape (k,)
            Number of records of each block in the support, at least `least`.
        sums : tuple of ndarray of shape (k,)
            In the units of the records. One array per column: the sum. Two for a column with squares: the sum, and the
            sum of squared deviations from the mean of the block.
        """

    def state(
        self, n: int, blocks: int, box: Ranges, *, start: int = 0, part: tuple[int, int] | None = None
    ) -> _blocks.BlockSums:
        """Return sums that can be updated with chunks of the records from position `start` of n on, and merged.

        With `part`, the sums of these blocks only, from the first record of the first block on.
        """
        low, high = self.support
        columns = [(column.kind, column.center, column.step) for column in self.columns(box)]
        return _blocks.BlockSums(n, blocks, columns, lower=low, upper=high, start=start, part=part)

    def estimates(
        self, data: tuple[NDArray[Any], ...], blocks: int, box: Ranges, *, corrected: bool, workers: int
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

    def finish(self, state: _blocks.BlockSums, box: Ranges, *, corrected: bool) -> NDArray[np.float64]:
        """Return the estimates of the blocks of a complete state."""
        count, *sums = state.totals()
        few = count < self.least
        counted = np.maximum(count, self.least) if few.any() else count
        out = np.empty((len(count), len(box.names)))
        if known and self._is_foreign:
            one = np.full(1, float(self.least))
            _refuse_releases(lambda: list(self.estimate(one, tuple(one for _ in sums), box, corrected=corrected)))
        with np.errstate(all="ignore"):
            estimates = self._estimated(counted, tuple(sums), box, corrected=corrected)
            for i, (name, estimate) in enumerate(zip(box.names, estimates, strict=True)):
                if np.shape(estimate) != count.shape:  # or a single number would be broadcast
                    raise ValueError(f"{type(self).__name__}.estimate must give one number for each block")
                out[:, i] = self.averaged(name, estimate, counted, box, corrected=corrected)
        out[few] = np.nan
        return out

    def _estimated(
        self, count: NDArray[np.float64], sums: tuple[NDArray[np.float64], ...], box: Ranges, *, corrected: bool
    ) -> list[NDArray[np.float64]]:
        """Return the estimates of each parameter; after an exception those of one block after the other, which may be
        NaN.
        """
        try:
            with swallowed():
                return list(self.estimate(count, sums, box, corrected=corrected))
        except Exception:  # in one block; it must not affect the others
            if len(count) == 1:
                return [np.full(1, np.nan) for _ in box.names]
        blocks = [slice(j, j + 1) for j in range(len(count))]
        parts = [self._estimated(count[j], tuple(s[j] for s in sums), box, corrected=corrected) for j in blocks]
        return [np.concatenate(estimates) for estimates in zip(*parts, strict=True)]


class BlockFamily(Family):
    """Base class of families whose fit reads the records of a block more than once.

    A subclass provides `names`, `fit` and, for the number of blocks and the error, `information`, `bias` and
    `second_order`; also `records` and `present`, if a record is more than one number (a regression).

    Examples
    --------
    A family of medians, without attention to speed:

    >>> import numpy as np
    >>> from dataclasses import dataclass
    >>> from dpfast.families import BlockFamily, Ranges
    >>> @dataclass(frozen=True)
    ... class Middle(BlockFamily):
    ...     names = ("location",)
    ...
    ...     def fit(self, x, *, offsets, box, corrected):
    ...         return np.array([[np.median(x[a:b])] for a, b in zip(offsets, offsets[1:])])
    >>> box = Ranges(("location",), (0.0,), (9.0,))
    >>> Middle().estimates((np.arange(9.0),), 3, box, corrected=True, workers=1).tolist()
    [[1.0], [4.0], [7.0]]
    """

    many: ClassVar[bool] = False
    """Whether `fit` receives many blocks at once, for speed. By default it receives one, so it cannot mix them up."""

    @property
    def support(self) -> tuple[float, float]:
        """The closed interval of possible records. Others, including NaN, are left out of their block."""
        return -LARGEST, LARGEST

    @abstractmethod
    def fit(self, *data: NDArray[Any], offsets: NDArray[np.int64], box: Ranges, corrected: bool) -> NDArray[np.float64]:
        """Return the estimates of one or many blocks, of shape (len(offsets) - 1, len(box.names)); NaN where a fit
        fails.

        Privacy requires that the estimate of a block is a function of its records (and public numbers) alone, bit for
        bit, wherever they are in memory, whatever the other blocks contain and whatever was fitted before. An exception
        or a wrong shape counts as a failed fit, and a release in it is refused (see `rehearse`). With `many`, blocks
        are then fitted one by one after an exception, but all fail after a wrong shape.

        Parameters
        ----------
        *data : ndarray
            The return value of `records` for these blocks, without the records that are not `present`; the first axis
            counts records. C-contiguous float64, read-only.
        offsets : ndarray of int64
            Block j has the records ``offsets[j]`` to ``offsets[j + 1] - 1``; it may be empty.
        """

    def present(self, *data: NDArray[Any]) -> NDArray[np.bool_]:
        """Mask of the records that are possible: a number in the support, or a row of finite numbers."""
        low, high = self.support
        mask = np.ones(data[0].shape[0], np.bool_)
        for part in data:
            rows = part.reshape(part.shape[0], -1)
            mask &= np.all((rows >= low) & (rows <= high), axis=1)
        return mask

    def rehearse(self, *data: NDArray[Any], box: Ranges, corrected: bool) -> None:
        """Fit one block of made-up records, whose exceptions are heard: that of a release says that it is refused.

        It is called before the blocks if there is a ledger, for families that users define.
        """
        self.fit(*data, offsets=np.array([0, data[0].shape[0]]), box=box, corrected=corrected)

    def _check_free(self, data: tuple[NDArray[Any], ...], size: int, box: Ranges, *, corrected: bool) -> None:
        """Raise a BudgetError if a fit releases whatever its records are: `size` of them, spread over the bounds."""
        with np.errstate(all="ignore"):
            low, high = np.clip(box.range(box.names[0]), *self.support).tolist()
            spread = np.linspace(low, high, size)
        shapes = [(size, *part.shape[1:]) for part in data]
        made = [np.broadcast_to(spread.reshape(-1, *[1] * (len(shape) - 1)), shape).copy() for shape in shapes]
        _refuse_releases(lambda: self.rehearse(*made, box=box, corrected=corrected))

    def estimates(
        self, data: tuple[NDArray[Any], ...], blocks: int, box: Ranges, *, corrected: bool, workers: int
    ) -> NDArray[np.float64]:
        n = data[0].shape[0]
        if known and self._is_foreign:
            self._check_free(data, -(-n // blocks), box, corrected=corrected)
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
                with swallowed(), np.errstate(all="ignore"):
                    fitted = self.fit(*inside, offsets=offsets[first : last + 1] - start, box=box, corrected=corrected)
                    estimates = np.asarray(fitted, dtype=np.float64)
            except Exception:  # in one block; it must not affect the others
                if last - first > 1:
                    one_by_one(first, last)
                return
            if estimates.shape == (last - first, len(box.names)):  # or a single number would be broadcast
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
