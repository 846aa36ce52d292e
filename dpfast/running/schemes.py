"""How running totals of vectors of integers are released: the law of the noise, and the estimates of the totals.

`Running.scheme` shows a scheme to everybody, so it draws nothing: the state, which is charged, adds the noise.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.core.rounding import root_up
from dpfast.laws import DiscreteLaplace, IntegerNoise, RoundedGaussian
from dpfast.mechanisms.factors import SquareRoot, WeightedRoot, square_root

Integers = NDArray[np.int64]
Values = NDArray[np.float64]
MOST_PERIODS = 2**20
MOST_EXACT = 2**61
_MOST_SCALE = 2**54
_MOST_WEIGHTED = 4096  # periods, whose errors take 0.1 s: a time proportional to the square of their number


class Totals(ABC):
    """The exact totals and the noisy numbers so far. PRIVATE."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme, self._done = scheme, 0

    @property
    def noise(self) -> IntegerNoise:
        """The noise of each of the exact numbers of the next period."""
        return self._scheme.noise

    @abstractmethod
    def exact(self, x: Any) -> list[Any]:
        """Return the exact numbers that get noise in the next period, with these integers."""

    @abstractmethod
    def add(self, x: Any, noisy: list[Any]) -> None:
        """End the next period, with these integers and noisy numbers."""

    @abstractmethod
    def estimate(self) -> Any:
        """Return the estimate of the totals of all periods so far, from noisy numbers alone: 0 for none."""


class Scheme(ABC):
    """A way to release running totals of integers, from public numbers.

    Parameters
    ----------
    periods : int
    noise : DiscreteLaplace or RoundedGaussian
        Of each noisy number.

    Attributes
    ----------
    most : int
        The integers of a period are clamped to +-most, so that all exact numbers fit 64 bits.
    gaussian : bool
        Whether the noise is Gaussian, and the guarantee not pure.
    """

    most: int
    gaussian: bool

    def __init__(self, periods: int, noise: DiscreteLaplace | RoundedGaussian) -> None:
        self.periods, self.noise = periods, noise

    @abstractmethod
    def deviation(self, period: int) -> float:
        """Return the standard deviation of the estimate after this period, at least 1."""

    @abstractmethod
    def greatest_deviation(self, period: int) -> float:
        """Return the greatest of the deviations of the first periods, at least one of them."""

    @abstractmethod
    def difference(self, early: int, late: int) -> float:
        """Return the standard deviation of the difference of the estimates after two periods, 1 <= early < late."""

    @abstractmethod
    def start(self, shape: tuple[int, ...]) -> Totals:
        """Return the totals before the first period, of integers of this shape, () or (cells,)."""

    @property
    @abstractmethod
    def described(self) -> list[Any]:
        """What determines the noise and the estimates, as JSON. Public."""


# ---- Gaussian noise: the square root of the matrix of ones ----


class Factored(Scheme):
    """Gaussian noise on ``C x``, C the square root, and ``A C**-1`` of these noisy numbers as estimates.

    Parameters
    ----------
    factor : SquareRoot
    square : int
        The square of the l2 norm by which a record changes the integers of its period.
    per_unit : int
        The number of periods in which a unit has a record.
    mu : float
        The guarantee of all periods.
    distance : int
        The least distance of two of these periods.

    References
    ----------
    Fichtenberger, Henzinger and Upadhyay 2023; Henzinger, Upadhyay and Upadhyay 2023; Denisov et al. 2022.
    """

    gaussian = True

    def __init__(self, factor: SquareRoot, *, square: int, per_unit: int, mu: float, distance: int = 1) -> None:
        periods = len(factor.column)
        sigma = root_up(square * factor.square(per_unit, distance) / Fraction(mu) ** 2)
        if sigma > _MOST_SCALE:
            raise ValueError(f"mu={mu!r} needs noise of more than 2**54 steps: use a larger mu or a coarser step")
        super().__init__(periods, RoundedGaussian(sigma))
        self.factor, self.most = factor, MOST_EXACT // int(factor.column.sum())

    @cached_property
    def _unit(self) -> float:
        return math.sqrt(self.noise.variance) / 2.0**self.factor.bits

    @cached_property
    def _deviations(self) -> NDArray[np.float64]:
        return np.asarray(self._unit * np.sqrt(np.cumsum(self.factor.estimate**2)))

    def deviation(self, period: int) -> float:
        return float(self._deviations[period - 1])

    greatest_deviation = deviation  # they increase

    def difference(self, early: int, late: int) -> float:
        steps = self.factor.estimate[:late].copy()
        steps[late - early :] -= self.factor.estimate[:early]
        return float(self._unit * np.linalg.norm(steps))

    @property
    def described(self) -> list[Any]:
        return ["root", self.factor.bits, self.factor.width, str(self.noise.scale)]

    def start(self, shape: tuple[int, ...]) -> Totals:
        return _Products(self, shape)


class _Products(Totals):
    """The integers of all periods, which are PRIVATE, and the noisy products with the factor."""

    def __init__(self, scheme: Factored, shape: tuple[int, ...]) -> None:
        super().__init__(scheme)
        self._unit = 2.0**-scheme.factor.bits
        # The ends of these are the coefficients of the last integers.
        self._column = np.ascontiguousarray(scheme.factor.column[::-1])
        self._estimate = np.ascontiguousarray(scheme.factor.estimate[::-1])
        self._integers = np.zeros((scheme.periods, *shape), np.int64)
        self._noisy = np.zeros((scheme.periods, *shape))

    def exact(self, x: Any) -> list[Any]:
        done = self._done
        self._integers[done] = x
        return [np.dot(self._column[-1 - done :], self._integers[: done + 1])]

    def add(self, x: Any, noisy: list[Any]) -> None:
        self._integers[self._done] = x
        [self._noisy[self._done]] = noisy
        self._done += 1

    def estimate(self) -> Any:
        done = self._done
        return np.dot(self._estimate[len(self._estimate) - done :], self._noisy[:done]) * self._unit


class Weighted(Factored):
    """The same for units of one period, which is multiplied by an integer weight before the square root.

    Later columns of the square root are shorter, as they are cut off. With weights all are as long as the first, so
    that later periods have less noise: the greatest error is 0.92, 0.94 and 0.95 times that without for 24, 365 and
    4,096 periods. The factor optimised for 24 periods has 0.90.

    Parameters
    ----------
    factor : WeightedRoot
    square, mu
        See `Factored`.

    References
    ----------
    Kalinin, McKenna, Upadhyay and Lampert 2025.
    """

    factor: WeightedRoot

    def __init__(self, factor: WeightedRoot, *, square: int, mu: float) -> None:
        super().__init__(factor, square=square, per_unit=1, mu=mu)
        self.most //= int(factor.weights[-1])

    @cached_property
    def _deviations(self) -> NDArray[np.float64]:
        return np.asarray(self._unit * np.sqrt(self.factor.squares))

    def greatest_deviation(self, period: int) -> float:
        return float(np.max(self._deviations[:period]))

    def difference(self, early: int, late: int) -> float:
        steps = self.factor.row(late)
        steps[late - early :] -= self.factor.row(early)
        return float(self._unit * np.linalg.norm(steps))

    @property
    def described(self) -> list[Any]:
        return ["weighted root", self.factor.bits, self.periods, str(self.noise.scale)]

    def start(self, shape: tuple[int, ...]) -> Totals:
        return _WeightedProducts(self, shape)


class _WeightedProducts(_Products):
    """The weighted integers of all periods, which are PRIVATE, the noisy products, and the estimates of the totals."""

    def __init__(self, scheme: Weighted, shape: tuple[int, ...]) -> None:
        super().__init__(scheme, shape)
        self._weights = scheme.factor.weights
        self._estimate = np.ascontiguousarray(scheme.factor.inverse[::-1])
        self._total = np.zeros(shape) if shape else 0.0

    def exact(self, x: Any) -> list[Any]:
        return super().exact(x * self._weights[self._done])

    def add(self, x: Any, noisy: list[Any]) -> None:
        weight = self._weights[self._done]
        super().add(x * weight, noisy)
        self._total = self._total + super().estimate() / weight

    def estimate(self) -> Any:
        return self._total


def factored(periods: int, *, square: int, mu: float, per_unit: int, distance: int) -> Factored:
    """Return the scheme with Gaussian noise that has the least greatest error for so many periods."""
    if per_unit == 1 and periods <= _MOST_WEIGHTED:
        return Weighted(_weighted_root(periods), square=square, mu=mu)
    factor = square_root(periods, per_unit, distance)
    return Factored(factor, square=square, per_unit=per_unit, mu=mu, distance=distance)


_weighted_root = lru_cache(maxsize=16)(WeightedRoot)


# ---- pure noise: trees ----


class Tree(Scheme):
    """Discrete Laplace noise on the sums of nested blocks of periods, and least squares.

    A total is the sum of the fewest blocks that make it up. Blocks become smaller with the number of those that it has
    already: a block of level l from which totals may take m more blocks has those of level l - 1 from which they may
    take m, m - 1, ..., 0, one after the other; a block of level 0 is a period. So it has ``binom(m + l, l)`` periods.

    Parameters
    ----------
    periods : int
    levels : int
    change : int
        The l1 norm by which a record changes the integers of its period.
    per_unit, distance : int
        See `Factored`.
    epsilon : float
        The guarantee of all periods.

    Attributes
    ----------
    blocks : int
        The greatest number of blocks of a total: the least one with ``binom(blocks + levels, levels) > periods``.

    Notes
    -----
    The estimate of a block is the mean of its own noisy sum and of the sum of the estimates of its parts, weighted by
    the inverse of their variances: no block that is complete tells more, so this is least squares over all of them.
    Blocks of powers of a number of periods have greatest errors that are 15 % larger for 365 periods and 28 % for
    10,000, as all totals but few have fewer blocks than the last ones; noise of another scale for each level gained 1 %
    there.

    References
    ----------
    Dwork, Naor, Pitassi and Rothblum 2010; Chan, Shi and Song 2011; Honaker 2015.
    """

    gaussian = False

    def __init__(
        self, periods: int, *, levels: int, change: int, per_unit: int, epsilon: float, distance: int = 1
    ) -> None:
        scale = levels * change * min(per_unit, -(-periods // distance)) / Fraction(epsilon)
        if scale > _MOST_SCALE:
            raise ValueError(f"epsilon={epsilon!r} needs noise of more than 2**54 steps: use a larger epsilon")
        super().__init__(periods, DiscreteLaplace(scale))
        self.levels, self.blocks = levels, _blocks(periods, levels)
        self.most = MOST_EXACT // periods

    @cached_property
    def weights(self) -> list[Values]:
        """For each level, and 0, 1, ... more blocks: the variance of the estimate, in units of that of the noise.

        It is also the weight of the block's own noisy sum.
        """
        found = [np.ones(self.blocks + 1)]
        while len(found) < self.levels:
            found.append(1 / (1 + 1 / np.cumsum(found[-1])))
        return found

    @cached_property
    def _sums(self) -> list[Values]:
        """For each level, the variance of the sum of blocks with m, m - 1, ..., 0 more."""
        return [np.cumsum(weights) for weights in self.weights]

    @cached_property
    def _ends(self) -> list[Integers]:
        """For each level, the number of periods of blocks with m, m - 1, ..., 0 more."""
        found = [np.arange(1, self.blocks + 2)]
        while len(found) < self.levels:
            found.append(np.cumsum(found[-1]))
        return found

    @property
    def described(self) -> list[Any]:
        return ["blocks", self.blocks, self.levels, str(self.noise.scale)]

    def _path(self, period: int) -> list[tuple[int, int]]:
        """Return, from the largest level, which blocks make up the first periods: with m, m - 1, ..., q + 1 more."""
        found, m = [], self.blocks
        for ends in reversed(self._ends):
            q = int(np.searchsorted(ends, ends[m] - period))
            period -= int(ends[m] - ends[q])
            found.append((m, q))
            m = q
        return found

    def deviation(self, period: int) -> float:
        made = zip(reversed(self._sums), self._path(period), strict=True)
        return math.sqrt(self.noise.variance * sum(float(sums[m] - sums[q]) for sums, (m, q) in made))

    def greatest_deviation(self, period: int) -> float:
        """Return that of `blocks` single periods: the first total that takes as many blocks as any."""
        return math.sqrt(self.noise.variance * min(period, self.blocks))

    def difference(self, early: int, late: int) -> float:
        """Of the blocks that are not in both totals; those of the earlier one are parts of a block of the later one."""
        paths = list(zip(reversed(range(self.levels)), self._path(early), self._path(late), strict=True))
        while paths[0][1] == paths[0][2]:
            paths.pop(0)
        (top, (_, first), (_, last)), *below = paths
        variance, shared = self._sums[top][first] - self._sums[top][last], 1.0
        for level, (m, q), (start, end) in below:
            sums = self._sums[level]
            shared *= 1 - self.weights[level + 1][m]  # of a part, in the estimate of the block at the top that it is in
            variance += (sums[m] - sums[q]) * (1 - 2 * shared) + sums[start] - sums[end]
        return math.sqrt(self.noise.variance * float(variance))

    def start(self, shape: tuple[int, ...]) -> Totals:
        return _BlockSums(self, shape)


def _blocks(periods: int, levels: int) -> int:
    """Return the least number of blocks for which totals of so many periods are enough."""
    return bisect_left(range(periods), periods + 1, key=lambda blocks: math.comb(blocks + levels, levels))


class _BlockSums(Totals):
    """The exact sums of the blocks that are not complete, which are PRIVATE, and the estimates of their parts."""

    def __init__(self, tree: Tree, shape: tuple[int, ...]) -> None:
        super().__init__(tree)
        self._weights = tree.weights
        self._more = [tree.blocks] * tree.levels  # that totals may take in the current block of each level
        # Python's numbers take half the time of arrays without dimensions.
        self._exact: list[Any] = [np.zeros(shape, np.int64) if shape else 0] * tree.levels
        self._estimates: list[Any] = [np.zeros(shape) if shape else 0.0] * tree.levels

    def exact(self, x: Any) -> list[Any]:
        sums = [x]
        for more, above in zip(self._more, self._exact[:-1], strict=False):
            if more:
                break
            sums.append(above + sums[-1])
        return sums

    def add(self, x: Any, noisy: list[Any]) -> None:
        parts: Any = 0.0
        for level, (exact, own) in enumerate(zip(self.exact(x), noisy, strict=True)):
            if level:
                parts = self._estimates[level - 1]
                self._exact[level - 1], self._estimates[level - 1] = exact * 0, parts * 0
            weight = float(self._weights[level][self._more[level]])
            self._exact[level] = self._exact[level] + exact
            self._estimates[level] = self._estimates[level] + (weight * own + (1 - weight) * parts)
        self._more[: level + 1] = [self._more[level] - 1] * (level + 1)
        self._done += 1

    def estimate(self) -> Any:
        return sum(self._estimates)


def best_tree(periods: int, **options: Any) -> Tree:
    """Return the tree with the least greatest deviation, by public numbers."""
    trees = [Tree(periods, levels=levels, **options) for levels in range(1, max(2, periods.bit_length() + 1))]
    return min(trees, key=lambda tree: tree.greatest_deviation(periods))


# ---- any number of periods ----


class Growing(Scheme):
    """Schemes for more and more periods, one after the other: for an unknown number of periods.

    A record is in one period, and so in one of them, of which each has the whole guarantee. They are for 16, 256,
    65,536 and then 2**20 periods each. Trees have 4,096 after 256, since their errors are as large after the first
    periods as after the last: without, the greatest error is up to 2.5 times that for a known number of periods, not
    1.9.

    Parameters
    ----------
    scheme_for : callable
        Returns the scheme for a number of periods.
    """

    def __init__(self, scheme_for: Callable[[int], Scheme]) -> None:
        self._of = lru_cache(maxsize=None)(scheme_for)  # of one of a few numbers of periods
        longest = self._of(MOST_PERIODS)
        super().__init__(2**62, longest.noise)
        self.most, self.gaussian = longest.most, longest.gaussian
        self._sizes = (16, 256, 65_536, MOST_PERIODS) if self.gaussian else (16, 256, 4096, 65_536, MOST_PERIODS)

    def parts(self, period: int) -> Iterator[tuple[Scheme, int]]:
        """Yield the schemes of the first periods, and how many periods of each are over; the last one has some."""
        for size in itertools.chain(self._sizes, itertools.repeat(MOST_PERIODS)):
            if not period:
                return
            done = min(period, size)
            yield self._of(size), done
            period -= done

    def next_part(self, period: int) -> Scheme:
        """Return the scheme of the period after this one."""
        *_, (scheme, _) = self.parts(period + 1)
        return scheme

    def deviation(self, period: int) -> float:
        return math.sqrt(sum(scheme.deviation(done) ** 2 for scheme, done in self.parts(period)))

    def greatest_deviation(self, period: int) -> float:
        variance = most = 0.0
        for scheme, done in self.parts(period):
            most = max(most, variance + scheme.greatest_deviation(done) ** 2)
            variance += scheme.deviation(done) ** 2
        return math.sqrt(most)

    def difference(self, early: int, late: int) -> float:
        before, after = list(self.parts(early)), list(self.parts(late))
        scheme, done = before[-1]
        variance = sum(scheme.deviation(done) ** 2 for scheme, done in after[len(before) :])
        if done < after[len(before) - 1][1]:
            variance += scheme.difference(done, after[len(before) - 1][1]) ** 2
        return math.sqrt(variance)

    @property
    def described(self) -> list[Any]:
        return ["growing", *self._sizes, *self._of(self._sizes[0]).described]

    def start(self, shape: tuple[int, ...]) -> Totals:
        return _InTurn(self, shape)


class _InTurn(Totals):
    """The totals of the current scheme, and the estimates of the totals of those that are over."""

    _scheme: Growing

    def __init__(self, scheme: Growing, shape: tuple[int, ...]) -> None:
        super().__init__(scheme)
        self._shape, self._over = shape, np.zeros(shape) if shape else 0.0
        self._begin()

    def _begin(self) -> None:
        part = self._scheme.next_part(self._done)
        self._current, self._left = part.start(self._shape), part.periods

    @property
    def noise(self) -> IntegerNoise:
        return self._current.noise

    def exact(self, x: Any) -> list[Any]:
        return self._current.exact(x)

    def add(self, x: Any, noisy: list[Any]) -> None:
        self._current.add(x, noisy)
        self._done, self._left = self._done + 1, self._left - 1
        if not self._left:
            self._over = self._over + self._current.estimate()
            self._begin()

    def estimate(self) -> Any:
        return self._over + self._current.estimate()
