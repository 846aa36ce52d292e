"""How running totals of vectors of integers are released: the law of the noise, and the estimates of the totals.

`Running.scheme` shows a scheme to everybody, so it draws nothing: the state, which is charged, adds the noise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.core.rounding import root_up
from dpfast.laws import DiscreteLaplace, IntegerNoise, RoundedGaussian
from dpfast.mechanisms.factors import SquareRoot

Integers = NDArray[np.int64]
MOST_PERIODS = 2**20
_FIRST = 16  # periods, if their number is not known
MOST_EXACT = 2**61
_MOST_SCALE = 2**54


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

    References
    ----------
    Fichtenberger, Henzinger and Upadhyay 2023; Henzinger, Upadhyay and Upadhyay 2023; Denisov et al. 2022.
    """

    gaussian = True

    def __init__(self, factor: SquareRoot, *, square: int, per_unit: int, mu: float) -> None:
        periods = len(factor.column)
        sigma = root_up(square * factor.square(min(per_unit, periods)) / Fraction(mu) ** 2)
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
        return ["root", self.factor.bits, str(self.noise.scale)]

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


# ---- pure noise: trees ----


class Tree(Scheme):
    """Discrete Laplace noise on the sums of blocks of 1, b, b**2, ... periods, and least squares.

    Parameters
    ----------
    periods : int
    levels : int
        The number of block sizes; b is the least number for which b blocks of the largest size are enough.
    change : int
        The l1 norm by which a record changes the integers of its period.
    per_unit : int
        See `Factored`.
    epsilon : float
        The guarantee of all periods.

    Notes
    -----
    A total is the sum of the best estimates of the fewest blocks that make it up. That of a block is the mean of its
    own noisy sum and of the estimates of its b parts, weighted by the inverse of their variances: no block that is
    complete tells more, so this is least squares over all of them.

    References
    ----------
    Dwork, Naor, Pitassi and Rothblum 2010; Chan, Shi and Song 2011; Honaker 2015.
    """

    gaussian = False

    def __init__(self, periods: int, *, levels: int, change: int, per_unit: int, epsilon: float) -> None:
        scale = levels * change * min(per_unit, periods) / Fraction(epsilon)
        if scale > _MOST_SCALE:
            raise ValueError(f"epsilon={epsilon!r} needs noise of more than 2**54 steps: use a larger epsilon")
        super().__init__(periods, DiscreteLaplace(scale))
        self.levels, self.branches = levels, _least_base(periods, levels)
        self.most = MOST_EXACT // periods

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """The variance of the estimate of a block of each size, in units of that of the noise.

        It is also the weight of its own noisy sum.
        """
        found = [1.0]
        while len(found) < self.levels:
            found.append(1 / (1 + 1 / (self.branches * found[-1])))
        return tuple(found)

    @property
    def described(self) -> list[Any]:
        return ["tree", self.branches, self.levels, str(self.noise.scale)]

    def _blocks(self, period: int) -> Iterator[int]:
        """Yield how many blocks of each size make up the first periods, from the smallest size."""
        for _ in range(self.levels - 1):
            period, rest = divmod(period, self.branches)
            yield rest
        yield period

    def deviation(self, period: int) -> float:
        variance = sum(count * weight for count, weight in zip(self._blocks(period), self.weights, strict=True))
        return math.sqrt(self.noise.variance * variance)

    def greatest_deviation(self, period: int) -> float:
        """Of this period, or of one with a digit less in one place and the greatest digits after it."""
        size, latest = 1, [period]
        for _ in range(self.levels - 1):
            size *= self.branches
            latest.append(period // size * size - 1)
        return max(self.deviation(end) for end in latest if end > 0)

    def difference(self, early: int, late: int) -> float:
        """Of the blocks that are not in both totals; those of the earlier one are parts of a block of the later one."""
        before, after = list(self._blocks(early)), list(self._blocks(late))
        top = max(level for level in range(self.levels) if before[level] != after[level])
        shares = np.array(self.weights[: top + 1])
        # The covariance of the estimate of a block with that of the one at the top that it is in.
        shared = shares[:top] * np.cumprod((1 - shares[1:])[::-1])[::-1]
        variance = (after[top] - before[top]) * shares[top] + np.dot(after[:top], shares[:top])
        variance += np.dot(before[:top], shares[:top] - 2 * shared)
        return math.sqrt(self.noise.variance * variance)

    def start(self, shape: tuple[int, ...]) -> Totals:
        return _BlockSums(self, shape)


def _least_base(number: int, digits: int) -> int:
    """Return the least b with b**digits >= number."""
    base = max(1, round(math.pow(number, 1 / digits)) - 1)
    while pow(base, digits) < number:
        base += 1
    return base


class _BlockSums(Totals):
    """The exact sums of the blocks that are not complete, which are PRIVATE, and the estimates of their parts."""

    def __init__(self, tree: Tree, shape: tuple[int, ...]) -> None:
        super().__init__(tree)
        self._weights, self._branches = tree.weights, tree.branches
        # Python's numbers take half the time of arrays without dimensions.
        self._exact: list[Any] = [np.zeros(shape, np.int64) if shape else 0] * tree.levels
        self._estimates: list[Any] = [np.zeros(shape) if shape else 0.0] * tree.levels

    def exact(self, x: Any) -> list[Any]:
        done, sums = self._done + 1, [x]
        for above in self._exact[:-1]:
            done, rest = divmod(done, self._branches)
            if rest:
                break
            sums.append(above + sums[-1])
        return sums

    def add(self, x: Any, noisy: list[Any]) -> None:
        parts: Any = 0.0
        for level, (exact, own) in enumerate(zip(self.exact(x), noisy, strict=True)):
            if level:
                parts = self._estimates[level - 1]
                self._exact[level - 1], self._estimates[level - 1] = exact * 0, parts * 0
            weight = self._weights[level]
            self._exact[level] = self._exact[level] + exact
            self._estimates[level] = self._estimates[level] + (weight * own + (1 - weight) * parts)
        self._done += 1

    def estimate(self) -> Any:
        return sum(self._estimates)


def best_tree(periods: int, **options: Any) -> Tree:
    """Return the tree with the least greatest deviation, by public numbers."""
    trees = [Tree(periods, levels=levels, **options) for levels in range(1, max(2, periods.bit_length() + 1))]
    return min(trees, key=lambda tree: tree.greatest_deviation(periods))


# ---- any number of periods ----


class Growing(Scheme):
    """Schemes for 16, 256, 65,536 and then 2**20 periods each, one after the other: for an unknown number of periods.

    A record is in one period, and so in one of them, of which each has the whole guarantee.

    Parameters
    ----------
    scheme_for : callable
        Returns the scheme for a number of periods.
    """

    def __init__(self, scheme_for: Callable[[int], Scheme]) -> None:
        self._of = lru_cache(maxsize=None)(scheme_for)  # of one of four numbers of periods
        longest = self._of(MOST_PERIODS)
        super().__init__(2**62, longest.noise)
        self.most, self.gaussian = longest.most, longest.gaussian

    def parts(self, period: int) -> Iterator[tuple[Scheme, int]]:
        """Yield the schemes of the first periods, and how many periods of each are over; the last one has some."""
        size = _FIRST
        while period:
            done = min(period, size)
            yield self._of(size), done
            period, size = period - done, min(size * size, MOST_PERIODS)

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
        return ["growing", _FIRST, *self._of(_FIRST).described]

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
