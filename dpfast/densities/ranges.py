"""Histograms for ranges: noisy sums of neighbouring cells, from which ranges of many cells follow with little noise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from dpfast.core import checks
from dpfast.core.divergences import gaussian_mu_down
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.rounding import root_up, up
from dpfast.core.traps import of_counts
from dpfast.densities.on_cells import OnCells
from dpfast.densities.released import Histogram
from dpfast.densities.weights import consistent
from dpfast.laws import DiscreteLaplace, Independent, NoisyIntegers, RoundedGaussian
from dpfast.mechanisms.factors import SquareRoot, exact_product, series_product, square_of_change, square_root
from dpfast.mechanisms.noisy_integers import FromIntegers
from dpfast.mechanisms.plan import Plan
from dpfast.streaming import Counts
from dpfast.theory.counts import CHANGED_COUNTS, NOISES

Integers = NDArray[np.int64]
Values = NDArray[np.float64]
MOST_CELLS = 2**20
_MOST_SCALE = 2**54
_MOST = 2**61  # of noisy sums, and of the estimates of prefix sums
_COARSE = 8  # bits of the factor of each of two columns
_FEW, _LOW = 2**48, 26  # records whose sums, with 12 bits of a factor, fit 64 bits; bits of the counts of more records


class CellSums(ABC):
    """Which sums of the cells get noise, by public numbers, and the estimates of the cells from the noisy sums.

    Parameters
    ----------
    size : int
        The number of cells.
    noise : DiscreteLaplace or RoundedGaussian
        Of each sum.

    Attributes
    ----------
    length : int
        The number of noisy sums.
    levels : int
        For trees, the number of sums that a record is in.
    """

    length: int
    levels: int = 1

    def __init__(self, size: int, noise: DiscreteLaplace | RoundedGaussian) -> None:
        self.size, self.noise = size, noise

    @property
    def pure(self) -> bool:
        """Whether the noise is discrete Laplace."""
        return isinstance(self.noise, DiscreteLaplace)

    @abstractmethod
    def of(self, counts: Integers) -> Integers:
        """Return the exact sums. PRIVATE."""

    @abstractmethod
    def prefixes(self, noisy: Values, n: int | None) -> Values:
        """Return estimates of the prefix sums of the cells, by least squares, from the noisy sums and n, if public."""

    @abstractmethod
    def variance(self, shares: Values, *, total: bool) -> float:
        """Return the variance of a sum of shares of the cells; `total`: the number of records is public."""

    @property
    @abstractmethod
    def lags(self) -> Values:
        """The covariance of each prefix sum with that of all cells, for a private total, in units of the noise's."""

    @property
    @abstractmethod
    def most_variance(self) -> float:
        """At least the variance of the estimate of any cell."""

    @abstractmethod
    def mean_variance(self, *, total: bool) -> float:
        """Return the mean variance of the prefix sums."""


# ---- pure noise: a tree ----


class TreeSums(CellSums):
    """The sums of blocks of cells, of blocks of these, and so on; the last block of each kind may have fewer parts.

    Parameters
    ----------
    size : int
    branches : tuple of int
        The parts of a block of each kind, from those of cells to the block of all, at least 2.
    change : int
        How many blocks of one kind a record changes by 1.
    epsilon : float

    Notes
    -----
    The block of all cells has no noisy sum: a public number of records is exact, and a private one is the sum of the
    largest blocks. A noisy sum of its own would take a share of the budget of all others, and costs 8 to 13 % of the
    error of prefix sums for 256 to 4,096 cells.

    References
    ----------
    Hay, Rastogi, Miklau and Suciu 2010, "Boosting the accuracy of differentially private histograms".
    """

    def __init__(self, size: int, branches: tuple[int, ...], *, change: int, epsilon: float) -> None:
        self.branches, self.sizes = branches or (1,), _sizes(size, branches)
        self.levels = len(self.branches)
        scale = self.levels * change / Fraction(epsilon)
        if scale > _MOST_SCALE:
            raise ValueError(f"epsilon={epsilon!r} needs noise of more than 2**54 records: use a larger epsilon")
        super().__init__(size, DiscreteLaplace(scale))
        self.length = sum(self.sizes[: self.levels])

    def of(self, counts: Integers) -> Integers:
        blocks, made = counts, [counts]
        for level in range(self.levels - 1):
            blocks = self._joined(blocks, level)
            made.append(blocks)
        return np.concatenate(made)

    def _joined(self, values: NDArray[Any], level: int) -> NDArray[Any]:
        """Return the sums over the parts of each block of the next kind."""
        return np.asarray(np.add.reduceat(values, np.arange(0, self.sizes[level], self.branches[level])))

    def _parents(self, level: int) -> Integers:
        """Return the block of the next kind of each block."""
        return np.arange(self.sizes[level]) // self.branches[level]

    def _split(self, values: Values) -> list[Values]:
        """Return the parts of a vector of all sums, one for each kind of block."""
        return np.split(values, np.cumsum(self.sizes[: self.levels])[:-1])

    @cached_property
    def _spread(self) -> list[tuple[Values, Values]]:
        """For each kind: the variance of the best estimate of a block from its own parts, and its sum over siblings.

        In units of the variance of the noise.
        """
        variances, made = np.ones(self.size), []
        for level in range(self.levels):
            sums = self._joined(variances, level)
            made.append((variances, sums))
            if level + 1 < self.levels:
                variances = 1 / (1 + 1 / sums)
        return made

    def prefixes(self, noisy: Values, n: int | None) -> Values:
        own, spread = self._split(noisy), self._spread
        best = [own[0]]
        for level in range(1, self.levels):
            parts = self._joined(best[-1], level - 1)
            weight = spread[level][0]  # of the own sum: a block's variance is that share of the noise's
            best.append(weight * own[level] + (1 - weight) * parts)
        whole = None if n is None else np.array([float(n)])
        for level in range(self.levels - 1, -1, -1):
            values, (variances, sums) = best[level], spread[level]
            if whole is not None:
                parents = self._parents(level)
                excess = whole - self._joined(values, level)
                values = values + variances / sums[parents] * excess[parents]
            whole = values
        assert whole is not None
        return np.cumsum(whole)

    def variance(self, shares: Values, *, total: bool) -> float:
        adjoints, above = [], shares
        for level in range(self.levels):  # of the shares of the excess that go to the parts
            if level < self.levels - 1 or total:
                variances, sums = self._spread[level]
                shared = self._joined(above * variances, level) / sums
                adjoints.append(above - shared[self._parents(level)])
                above = shared
            else:
                adjoints.append(above)
        found, below = 0.0, np.zeros(self.sizes[self.levels - 1])
        for level in range(self.levels - 1, -1, -1):
            weight = self._spread[level][0] if level else 1.0
            together = adjoints[level] + below
            found += float(np.sum((weight * together) ** 2))
            if level:
                below = ((1 - weight) * together)[self._parents(level - 1)]
        return self.noise.variance * found

    @cached_property
    def lags(self) -> Values:
        """The estimates from a unit of noise in each of the largest blocks, whose sum is the number of records."""
        unit = np.zeros(self.length)
        unit[-self.sizes[self.levels - 1] :] = 1.0
        return self.prefixes(unit, None)

    @property
    def most_variance(self) -> float:
        """Return that of the noise: the noisy count of a cell alone is an unbiased estimate, too."""
        return self.noise.variance

    def mean_variance(self, *, total: bool) -> float:
        """As if all blocks of a kind had equally many parts."""
        return self.noise.variance * _mean_variance(self.branches, total=total)


def _mean_variance(branches: tuple[float, ...], *, total: bool) -> float:
    """Return the mean variance of the prefix sums of a tree, in units of that of the noise.

    By the variances of the sum before a block, of the block, and their covariance, from the largest blocks to the
    cells; their means over the place of a block among its siblings.
    """
    variances = [1.0]
    for parts in branches[:-1]:
        variances.append(1 / (1 + 1 / (parts * variances[-1])))
    before = both = block = 0.0
    for level in range(len(branches) - 1, -1, -1):
        parts, variance = branches[level], variances[level]
        if level == len(branches) - 1 and not total:  # independent
            before, both, block = variance * (parts - 1) / 2, 0.0, variance
            continue
        of = parts * variance
        share, square = (parts - 1) / (2 * parts), (parts - 1) * (2 * parts - 1) / (6 * parts**2)
        before, both, block = (
            before + 2 * share * both + square * block + of * (share - square),
            (both + share * block - of * share) / parts,
            block / parts**2 + variance * (1 - 1 / parts),
        )
    return before + 2 * both + block


def _sizes(size: int, branches: tuple[int, ...]) -> list[int]:
    """Return how many blocks of each kind there are, from the cells to one block of all."""
    sizes = [size]
    for parts in branches:
        sizes.append(-(-sizes[-1] // parts))
    return sizes


# ---- Gaussian noise: the square root of the matrix of ones ----


class RootSums(CellSums):
    """The products of the cells with the square root C of the matrix of ones, in integers.

    Parameters
    ----------
    factor : SquareRoot
    change : int
        The number of cells that a record changes by 1.
    mu : float
    """

    def __init__(self, factor: SquareRoot, *, change: int, mu: float) -> None:
        sigma = root_up(square_of_change([factor], change) / Fraction(mu) ** 2)
        super().__init__(len(factor.column), RoundedGaussian(_bounded(sigma)))
        self.factor, self.length = factor, self.size

    def of(self, counts: Integers) -> Integers:
        if counts.sum() < _FEW:
            return exact_product(counts, self.factor.column)
        # Sums of more records may not fit 64 bits: those of high and of low bits do, and the sums are clamped.
        high, low = (exact_product(part, self.factor.column) for part in (counts >> _LOW, counts & 2**_LOW - 1))
        clamped: Integers = np.minimum((np.minimum(high, _MOST >> _LOW) << _LOW) + low, _MOST)
        return clamped

    @property
    def _unit(self) -> float:
        return 2.0**-self.factor.bits

    @cached_property
    def lags(self) -> Values:
        estimate = self.factor.estimate
        return series_product(estimate[::-1], estimate, self.size) * self._unit**2

    def prefixes(self, noisy: Values, n: int | None) -> Values:
        found = series_product(self.factor.estimate, noisy, self.size) * self._unit
        if n is not None:
            found += self.lags * ((n - found[-1]) / self.lags[-1])
        return found

    def variance(self, shares: Values, *, total: bool) -> float:
        steps = shares - np.append(shares[1:], 0.0)  # of the prefix sums
        products = series_product(self.factor.estimate, steps[::-1], self.size)
        found = float(products @ products)
        found *= self._unit**2
        if total:
            found -= float(steps @ self.lags) ** 2 / float(self.lags[-1])
        return self.noise.variance * max(found, 0.0)

    @property
    def most_variance(self) -> float:
        """Return that of the last cell for a private total: the sums of squares of differences grow along the cells."""
        return self.variance(np.eye(1, self.size, self.size - 1)[0], total=False)

    def mean_variance(self, *, total: bool) -> float:
        found = np.cumsum(self.factor.estimate**2) * self._unit**2
        if total:
            found = found - self.lags**2 / self.lags[-1]
        return self.noise.variance * float(found.mean())


# ---- two columns ----


class RectangleSums:
    """The sums of the rows of cells, and of these those of each row: noisy sums of rectangles.

    The matrix is the Kronecker product of those of the axes, and so is its least squares inverse.

    Parameters
    ----------
    axes : pair of CellSums
        Both trees, whose block of all cells has a noisy sum, or both roots.
    change : int
        The number of cells that a record changes by 1.
    epsilon, mu : float, optional
        One of them.
    """

    def __init__(
        self, axes: tuple[CellSums, CellSums], *, change: int, epsilon: float | None = None, mu: float | None = None
    ) -> None:
        self.axes = axes
        self.noise: DiscreteLaplace | RoundedGaussian
        first, second = axes
        if isinstance(first, TreeSums) and isinstance(second, TreeSums):
            assert epsilon is not None
            scale: Any = first.levels * second.levels * change / Fraction(epsilon)
            weight, self.noise = first.size * second.size, DiscreteLaplace(_bounded(scale))
        else:
            assert isinstance(first, RootSums)
            assert isinstance(second, RootSums)
            assert mu is not None
            scale = root_up(square_of_change([first.factor, second.factor], change) / Fraction(mu) ** 2)
            weight = int(first.factor.column.sum()) * int(second.factor.column.sum())
            self.noise = RoundedGaussian(_bounded(scale))
        self.length, self._most = first.length * second.length, _MOST // weight  # the latter of the count of a cell

    @property
    def pure(self) -> bool:
        """Whether the noise is discrete Laplace."""
        return isinstance(self.axes[0], TreeSums)

    @property
    def levels(self) -> int:
        """The number of sums that a record is in."""
        return math.prod(axis.levels for axis in self.axes if isinstance(axis, TreeSums))

    def of(self, counts: Integers) -> Integers:
        """Return the exact sums. PRIVATE."""
        first, second = self.axes
        sums = np.apply_along_axis(first.of, 0, np.minimum(counts, self._most))
        return np.apply_along_axis(second.of, 1, sums).reshape(-1)

    def prefixes(self, noisy: Values, n: int | None) -> Values:
        """Return estimates of the sums of the rectangles from the first cell, from the noisy sums and n, if public."""
        first, second = self.axes
        table = noisy.reshape(first.length, second.length)
        found = np.apply_along_axis(lambda column: first.prefixes(column, None), 0, table)
        found = np.apply_along_axis(lambda row: second.prefixes(row, None), 1, found)
        if n is not None:
            lags = np.outer(first.lags, second.lags)
            found += lags * ((n - found[-1, -1]) / lags[-1, -1])
        return found

    def variance(self, shares: tuple[Values, Values], *, total: bool) -> float:
        """Return the variance of the sum of the products of shares of rows and columns."""
        variance, covariance, last = 1.0, 1.0, 1.0
        for axis, share in zip(self.axes, shares, strict=True):
            variance *= axis.variance(share, total=False) / axis.noise.variance
            covariance *= float((share - np.append(share[1:], 0.0)) @ axis.lags)
            last *= float(axis.lags[-1])
        return self.noise.variance * max(variance - total * covariance**2 / last, 0.0)

    @property
    def most_variance(self) -> float:
        """At least the variance of the estimate of any cell."""
        return self.noise.variance * math.prod(axis.most_variance / axis.noise.variance for axis in self.axes)

    def mean_variance(self, *, total: bool) -> float:
        """Return the mean variance of the sums of rectangles from the first cell."""
        means = [axis.mean_variance(total=False) / axis.noise.variance for axis in self.axes]
        known = [float(np.mean(axis.lags**2) / axis.lags[-1]) for axis in self.axes]
        return self.noise.variance * (math.prod(means) - total * math.prod(known))


def _bounded(scale: Any) -> Any:
    """Return a scale, or raise a ValueError if it is too large."""
    if scale > _MOST_SCALE:
        raise ValueError("epsilon and delta need noise of more than 2**54: use a larger epsilon")
    return scale


# ---- the choice ----


@lru_cache(maxsize=64)
def sums_for(
    sizes: tuple[int, ...], *, epsilon: float, delta: float, neighbors: str, noise: str
) -> CellSums | RectangleSums:
    """Return the sums with the least mean variance of prefix sums, by public numbers, for one column or two."""
    checks.choice("noise", noise, NOISES)
    if noise == "gaussian" and not delta:
        raise ValueError("delta must be positive for Gaussian noise, not 0.0")
    change = CHANGED_COUNTS[checks.choice("neighbors", neighbors, tuple(CHANGED_COUNTS))]
    total = neighbors == "replace-one"
    candidates: list[Any] = []
    if noise != "gaussian":
        if len(sizes) == 1:
            candidates.append(TreeSums(*sizes, _best_branches(*sizes, total=total), change=change, epsilon=epsilon))
        else:
            candidates.append(RectangleSums(_each(_best_tree, sizes), change=change, epsilon=epsilon))
    if noise != "discrete-laplace" and delta:
        mu = gaussian_mu_down(epsilon, delta)
        if len(sizes) == 1:
            candidates.append(RootSums(square_root(*sizes), change=change, mu=mu))
        else:
            candidates.append(RectangleSums(_each(_coarse_root, sizes), change=change, mu=mu))
    return min(candidates, key=lambda sums: sums.mean_variance(total=total))  # type: ignore[no-any-return]


def _each(make: Callable[[int], CellSums], sizes: tuple[int, ...]) -> tuple[CellSums, CellSums]:
    first, second = map(make, sizes)
    return first, second


def _best_tree(size: int) -> CellSums:
    """Return the tree of an axis: noise grows with the product of the numbers of kinds, one factor for each axis."""
    return TreeSums(size, _best_branches(size, total=False), change=1, epsilon=1.0)


def _coarse_root(size: int) -> CellSums:
    """Return the root of an axis with few bits, so that exact sums fit 64 bits: 0.2 % more error for each axis."""
    return RootSums(SquareRoot(size, _COARSE), change=1, mu=1.0)


def _best_branches(size: int, *, total: bool) -> tuple[int, ...]:
    """Return the parts of a block of each kind with the least mean variance of prefix sums.

    For each number of kinds, equal numbers, or those of a descent from these which changes one at a time; the number of
    the largest blocks follows from the others, and is not rounded meanwhile, which would end the descent. Noise of
    another scale for each kind was at most 1 % better.
    """

    def error(branches: tuple[int, ...], largest: float) -> float:
        """Of the prefix sums; the scale of the noise grows with the number of kinds."""
        return (len(branches) + 1) ** 2 * _mean_variance((*branches, largest), total=total)

    found: list[tuple[int, ...]] = [()]
    for kinds in range(2, size.bit_length()):
        best: tuple[int, ...] = ()
        better: tuple[int, ...] = (max(2, round(size ** (1 / kinds))),) * (kinds - 1)
        found.append(better)
        while better != best:
            best = better
            better = min([best, *_neighbors(best)], key=lambda some: error(some, size / math.prod(some)))
        found.append(best)
    least = min(found, key=lambda some: error(some, _sizes(size, some)[-1]))
    return (*least, _sizes(size, least)[-1]) if size > 1 else ()


def _neighbors(branches: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the numbers of parts that differ by 1 in one place."""
    for place, parts in enumerate(branches):
        for other in (max(2, parts - 1), parts + 1):
            yield *branches[:place], other, *branches[place + 1 :]


# ---- the mechanism, and what it releases ----


@dataclass(frozen=True, eq=False, repr=False)
class RangeHistogram(Histogram):
    """A released histogram whose ranges of many cells have little noise: that of `Histogram`, with other errors.

    Attributes
    ----------
    counts : ndarray of int64
        The estimates of the counts, by least squares from the noisy sums, rounded so that each prefix sum is off by at
        most 1/2. Unbiased but for this.
    weights : ndarray of int64
        Nonnegative: the prefix sums of `counts` are replaced by the nearest ones that increase from 0 to n. Of two
        columns, by the rule "halves" of `PerturbedHistogram`.
    sums : CellSums or RectangleSums
        Which sums were released, and their noise.

    Notes
    -----
    Of two columns, `range` and `standard_error` take pairs of ends, (low_0, low_1) and (high_0, high_1), and sum up
    `counts`: weights, which are not negative, would be biased for rectangles of many cells with few records.
    """

    sums: CellSums | RectangleSums = field(kw_only=True)

    def range(self, low: Any, high: Any) -> float:
        """Return the number of records from `low` to `high`, both included: see `Histogram.range`, and above.

        Of two columns it is between 0 and n, if that is public.
        """
        if len(self.cells.bins) == 1:
            return super().range(low, high)
        first, second = self._rectangle(low, high)
        total = float(first @ self.counts @ second)
        return min(max(total, 0.0), math.inf if self.n is None else float(self.n))

    def standard_error(self, low: Any = -math.inf, high: Any = math.inf) -> float:
        """Return the standard deviation of the noise in the number of records from `low` to `high`. Public."""
        if len(self.cells.bins) == 1:
            return super().standard_error(low, high)
        shares = self._rectangle(*((end, end) if np.ndim(end) == 0 else end for end in (low, high)))
        return math.sqrt(self._variance(shares))

    def _rectangle(self, low: Any, high: Any) -> tuple[Values, Values]:
        """Return the share of each row, and of each column, of cells that a rectangle has."""
        for name, ends in (("low", low), ("high", high)):
            if np.shape(ends) != (2,):
                raise ValueError(f"{name} must be a pair of numbers for two columns, not {ends!r}")
        first, second = (self._shares(axis, low[axis], high[axis]) for axis in (0, 1))
        return first, second

    def __reduce__(self) -> tuple[Any, ...]:
        fields = self.counts, self.weights, self.cells, self.n, self.privacy, self.noise_error
        return _remade, (fields, self.sums)

    def _variance(self, shares: Any) -> float:
        return self.sums.variance(shares, total=self.n is not None)

    def _reach(self, confidence: float) -> int:
        """By Chebyshev's inequality, as estimates add noise of several kinds, and are rounded by 1/2 at each corner."""
        corners = 2.0 ** (len(self.cells.bins) - 1)
        return math.ceil(math.sqrt(self.sums.most_variance / (1 - confidence)) + corners)


def _remade(fields: tuple[Any, ...], sums: CellSums | RectangleSums) -> RangeHistogram:
    return RangeHistogram(*fields, sums=sums)


@dataclass(frozen=True, repr=False)
class RangeSums(FromIntegers, OnCells):
    """Release noisy sums of neighbouring cells, from which ranges of many cells follow with little noise.

    Pure differential privacy under one replaced record, with n public, or under one record added or removed, with n
    private. With delta also Gaussian noise.

    Parameters
    ----------
    bins : int, or pair of ints
        At most 2**20 cells in total.
    grid : Grid, or pair of Grids
        Public bounds and granularity of the column, or of each of two.
    epsilon : float
        Positive; rounded down to a double.
    neighbors : {"replace-one", "add-remove"}
    delta : float
        In [0, 1); rounded down to a double.
    noise : {"auto", "discrete-laplace", "gaussian"}
        "auto" takes what has less error in prefix sums, by public numbers.

    Notes
    -----
    Privacy: with discrete Laplace noise, the sums of blocks of cells of a few sizes; a record changes one block of each
    size, two if it is replaced; of two columns, blocks of each pair of sizes. With Gaussian noise, the products of the
    counts with an integer matrix, the rounded square root of the matrix of ones, or one for each of two columns; a
    record adds one of its columns, or the difference of two. The scale is exactly the change divided
    by the budget, and the estimates follow from the noisy sums alone
    (https://dpfast.readthedocs.io/en/latest/proofs/ranges.html).
    Error: prefix sums of 4,096 cells of lognormal records, n = 5,000, epsilon 0.5: 38 records, with delta = 1e-6 26,
    where the counts of `PerturbedHistogram` add up to errors of 247, and its weights to 127. Of 256 cells, n = 50,000,
    epsilon 1: 12, where these are 29 and 16. Rectangles of 1,024 x 1,024 cells, epsilon 1: 173, with delta 55, where
    independent cells add up to some 1,400.
    Run time: one pass over the records, and a few over the cells.

    References
    ----------
    Hay, Rastogi, Miklau and Suciu 2010; Fichtenberger, Henzinger and Upadhyay 2023.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> from dpfast.densities import RangeSums
    >>> mechanism = RangeSums(100, grid=dpf.Grid(0, 100, step=1 / 16), epsilon=1.0)
    >>> histogram = mechanism(np.arange(10_000) / 100)
    >>> abs(histogram.range(20, 60) - 4000) < 100
    True
    """

    neighbors: str = field(kw_only=True, default="replace-one")
    delta: float = field(kw_only=True, default=0.0)
    noise: str = field(kw_only=True, default="auto")

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        object.__setattr__(self, "delta", checks.delta_down(self.delta))
        self._set_cells()
        if len(self.grids) > 2:
            raise ValueError(f"grid must be one grid or two for ranges, not {len(self.grids)}")
        if len(self.cells) > MOST_CELLS:
            raise ValueError(f"bins must be at most 2**20 cells for ranges, not {len(self.cells)}")
        self.sums  # noqa: B018  # reject an invalid noise, and too small an epsilon

    @cached_property
    def sums(self) -> CellSums | RectangleSums:
        """The sums that get noise."""
        return sums_for(
            self.cells.bins, epsilon=self.epsilon, delta=self.delta, neighbors=self.neighbors, noise=self.noise
        )

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, 0.0 if self.sums.pure else self.delta, self.neighbors)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        sums = self.sums
        if not sums.pure:
            return PrivacyProfile(self.privacy, (("gaussian", gaussian_mu_down(self.epsilon, self.delta), 1),))
        changed = sums.levels * CHANGED_COUNTS[self.neighbors]
        return PrivacyProfile(self.privacy, (("discrete-laplace", up(Fraction(self.epsilon) / changed), changed),))

    def __repr__(self) -> str:
        return f"<RangeSums of {self._described()}: {self.privacy}>"

    def _make_plan(self, n: int | None) -> Plan:
        plan = super()._make_plan(n)
        if n is not None:
            error = math.sqrt(self.sums.mean_variance(total=True))
            plan.traps = tuple(of_counts(error, n, "a sum of neighbouring cells"))
        return plan

    def reading(self) -> Counts:
        cells = self.cells
        return Counts(cells.bins, self._columns, cells.count, cells.locate)

    def law_of(self, summary: tuple[Integers, int]) -> NoisyIntegers:
        counts, n = summary
        public = n if self.neighbors == "replace-one" else None
        noise = Independent(self.sums.noise, self.sums.length)
        return NoisyIntegers(
            self.sums.of(counts), noise=noise, most=_MOST, decode=lambda noisy: self._histogram(noisy, public)
        )

    def _histogram(self, noisy: Integers, n: int | None) -> RangeHistogram:
        prefixes = np.clip(self.sums.prefixes(noisy.astype(np.float64), n), -_MOST, _MOST)
        counts = _differences(np.rint(prefixes)).astype(np.int64)
        if prefixes.ndim == 1:
            shares: Any = np.eye(1, len(counts), len(counts) // 2)[0]
            weights = _increasing(prefixes, n)
        else:
            weights = consistent(np.clip(counts, -(2**40), 2**40), "halves", n)
            shares = tuple(np.eye(1, size, size // 2)[0] for size in counts.shape)
        variance = self.sums.variance(shares, total=n is not None)
        noise_error = (counts.size / max(int(weights.sum()), 1)) ** 2 * variance
        return RangeHistogram(counts, weights, self.cells, n, self.privacy, noise_error, sums=self.sums)


def _differences(prefixes: Values) -> Values:
    """Return the cells of prefix sums along each axis."""
    for axis in range(prefixes.ndim):
        prefixes = np.diff(prefixes, axis=axis, prepend=0.0)
    return prefixes


def _increasing(prefixes: Values, n: int | None) -> Integers:
    """Return the cells of the nearest prefix sums that increase from 0 to n, or to the last one."""
    most = max(prefixes[-1], 1.0) if n is None else float(n)
    increasing = np.rint(np.clip(scipy.optimize.isotonic_regression(prefixes).x, 0.0, most))
    increasing[-1] = round(most)
    weights = np.diff(increasing, prepend=0.0).astype(np.int64)
    return weights if weights.any() else np.ones_like(weights)
