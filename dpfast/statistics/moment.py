"""Statistics that are functions of sums: mean, sum, count, variance."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.core import checks, containers
from dpfast.core.grid import Grid
from dpfast.statistics.rank import TrimmedSum
from dpfast.statistics.statistic import Distribution, Statistic, scaled

__all__ = [
    "Count",
    "Mean",
    "MomentStatistic",
    "Sum",
    "UnboundedStatistic",
    "Variance",
]

_MOST_TOTAL = 2**61  # of a sum or count with a private number of records


class MomentStatistic(Statistic):
    """A polynomial of n, the sum of the codes and the sum of their squares."""

    squares = False  # whether the sum of squares is needed
    steady = False  # whether the sensitivity in release codes is `steps` for every n

    @property
    def selects(self) -> bool:
        """Whether records outside of bounds are left out."""
        return False

    @abstractmethod
    def exact(self, n: int, total: int, squares: int) -> int:
        """Return the integer T, before any coarsening."""

    @abstractmethod
    def span(self, grid: Grid, n: int) -> int:
        """Return the largest T for n records; the smallest is 0."""

    @abstractmethod
    def sensitivity(self, grid: Grid, n: int) -> int:
        """Return the largest change of T if one of n records is replaced."""

    def coarseness(self, grid: Grid, n: int) -> int:
        """Return the public power of two by which T is divided, with rounding, to give a release code."""
        return 1

    def steps(self, grid: Grid) -> int:
        """Return a lower bound of the sensitivity in release codes, for every n for which it is not 0; 1 by default."""
        return 1

    def scale_of_codes(self, grid: Grid, n: int) -> tuple[Fraction, Fraction]:
        """Return the value of release code 0, and the difference of the values of two consecutive codes."""
        last = self.last(grid, n)
        origin = Fraction(self.value(grid, n, 0))
        return origin, (Fraction(self.value(grid, n, last)) - origin) / last if last else Fraction(1)


class UnboundedStatistic(MomentStatistic):
    """A statistic that does not need n: an integer total to which each record adds a bounded amount."""

    @abstractmethod
    def total(self, grid: Grid, n: int, codes: int) -> int:
        """Return the exact total of n records whose codes sum to `codes`."""

    @abstractmethod
    def one_record(self, grid: Grid) -> int:
        """Return the largest change of the total by one added or removed record."""

    @abstractmethod
    def range(self, grid: Grid) -> tuple[int, int]:
        """Return the public range to which the total is clamped."""

    @abstractmethod
    def unit(self, grid: Grid) -> float:
        """Return the value of one unit of the total, in data units."""

    def decode_total(self, grid: Grid, codes: ArrayLike | int) -> Any:
        """Return the floats for totals, counted from the least total."""
        (first, _), unit = self.range(grid), self.unit(grid)
        if isinstance(codes, int):
            return scaled(first + codes, 1, unit)
        k = containers.integers("codes", codes)
        values = [scaled(first + code, 1, unit) for code in k.reshape(-1).tolist()]
        return np.array(values, dtype=np.float64).reshape(k.shape) if k.ndim else values[0]


@dataclass(frozen=True)
class Mean(TrimmedSum, MomentStatistic):
    """The mean of all records, ``lower + T * step / n`` for the sum T of the codes."""

    steady = True

    def __str__(self) -> str:
        return "mean"

    def cut(self, n: int) -> int:
        return 0

    def functional(self, distribution: Distribution) -> Any:
        return distribution.between(Fraction(0), Fraction(1))

    def exact(self, n: int, total: int, squares: int) -> int:
        return total

    def span(self, grid: Grid, n: int) -> int:
        return n * (grid.size - 1)

    def sensitivity(self, grid: Grid, n: int) -> int:
        return grid.size - 1

    def steps(self, grid: Grid) -> int:
        return grid.size - 1

    def scale_of_codes(self, grid: Grid, n: int) -> tuple[Fraction, Fraction]:
        return Fraction(grid.lower), Fraction(grid.step) / n


@dataclass(frozen=True)
class Sum(UnboundedStatistic):
    """The sum of all records, ``n * lower + T * step`` for the sum T of the codes."""

    steady = True

    def __str__(self) -> str:
        return "sum"

    def last(self, grid: Grid, n: int) -> int:
        return checks.code_range(self.span(grid, n))

    def value(self, grid: Grid, n: int, code: int) -> float:
        return scaled(grid.first * n + code, 1, grid.step)

    def exact(self, n: int, total: int, squares: int) -> int:
        return total

    def span(self, grid: Grid, n: int) -> int:
        return n * (grid.size - 1)

    def sensitivity(self, grid: Grid, n: int) -> int:
        return grid.size - 1

    def steps(self, grid: Grid) -> int:
        return grid.size - 1

    def scale_of_codes(self, grid: Grid, n: int) -> tuple[Fraction, Fraction]:
        return n * Fraction(grid.lower), Fraction(grid.step)

    def total(self, grid: Grid, n: int, codes: int) -> int:
        return n * grid.first + codes

    def one_record(self, grid: Grid) -> int:
        return max(abs(grid.first), abs(grid.first + grid.size - 1))

    def range(self, grid: Grid) -> tuple[int, int]:
        return 0 if grid.lower >= 0 else -_MOST_TOTAL, 0 if grid.upper <= 0 else _MOST_TOTAL

    def unit(self, grid: Grid) -> float:
        return grid.step


@dataclass(frozen=True)
class Count(UnboundedStatistic):
    """The number of records, for mechanisms that keep it private.

    Parameters
    ----------
    within : pair of float, optional
        Count only x with lower <= x <= upper, compared as float64, which excludes NaN. Bounds may be infinite.
    """

    within: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.within is not None:
            object.__setattr__(self, "within", checks.interval("within", self.within))

    def __str__(self) -> str:
        return "count" if self.within is None else "count of values from {!r} to {!r}".format(*self.within)

    @property
    def selects(self) -> bool:
        return self.within is not None

    @property
    def example(self) -> float:
        """A value that is counted."""
        lower, upper = (0.0, 0.0) if self.within is None else self.within
        return min(max(0.0, lower), upper)

    def kept(self, values: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Return a mask of the records that are counted; None if all are."""
        if self.within is None:
            return None
        lower, upper = (np.array([end]) for end in self.within)  # an array: NumPy 1 would convert a scalar to float32
        with np.errstate(invalid="ignore"):  # a signalling NaN
            return np.asarray((values >= lower) & (values <= upper))

    def last(self, grid: Grid, n: int) -> int:
        return n

    def value(self, grid: Grid, n: int, code: int) -> float:
        return float(code)

    def exact(self, n: int, total: int, squares: int) -> int:
        return n

    def span(self, grid: Grid, n: int) -> int:
        return n

    def sensitivity(self, grid: Grid, n: int) -> int:
        return 0

    def total(self, grid: Grid, n: int, codes: int) -> int:
        return n

    def one_record(self, grid: Grid) -> int:
        return 1

    def range(self, grid: Grid) -> tuple[int, int]:
        return 0, _MOST_TOTAL

    def unit(self, grid: Grid) -> float:
        return 1.0


# The sensitivity in release codes is near 2**32: its rounding is then below 2**-31 of the noise for epsilon <= 2.
_RESOLUTION = 32
_LARGEST_CODE = 2**62
_MOST_STEPS = 2**20  # with this many at least, a profile is nearly that of infinitely many


@dataclass(frozen=True)
class Variance(MomentStatistic):
    """The population variance (NumPy's ``ddof=0``): ``T * (step / n)**2`` for ``T = n sum(x**2) - sum(x)**2``.

    One replaced record changes T by at most ``(n - 1) M**2``, M = size - 1, and this bound is attained; T is at most
    ``floor(n**2 / 4) M**2``. A release code is T / `coarseness`, rounded.
    """

    squares = True

    def __str__(self) -> str:
        return "variance"

    def functional(self, distribution: Distribution) -> Any:
        return distribution.variance()

    def turns(self, sample: Distribution, moved: Callable[[float], Distribution]) -> list[Any]:
        return [sample.between(Fraction(0), Fraction(1))]

    def exact(self, n: int, total: int, squares: int) -> int:
        return n * squares - total**2

    def span(self, grid: Grid, n: int) -> int:
        return n**2 // 4 * (grid.size - 1) ** 2

    def sensitivity(self, grid: Grid, n: int) -> int:
        return (n - 1) * (grid.size - 1) ** 2

    def coarseness(self, grid: Grid, n: int) -> int:
        excess = max(self.sensitivity(grid, n) >> _RESOLUTION, self.span(grid, n) // _LARGEST_CODE)
        return 1 << excess.bit_length()

    def steps(self, grid: Grid) -> int:
        return min((grid.size - 1) ** 2, _MOST_STEPS)

    def scale_of_codes(self, grid: Grid, n: int) -> tuple[Fraction, Fraction]:
        return Fraction(), self.coarseness(grid, n) * (Fraction(grid.step) / n) ** 2

    def last(self, grid: Grid, n: int) -> int:
        unit = self.coarseness(grid, n)
        if n > 1 and self.sensitivity(grid, n) < self.steps(grid) * unit:  # only if n is above 2**42
            raise ValueError(f"n={n} is too large for the variance: at most 2**42 records")
        return -(-self.span(grid, n) // unit)

    def value(self, grid: Grid, n: int, code: int) -> float:
        top, bottom = grid.step.as_integer_ratio()
        span = min(code * self.coarseness(grid, n), self.span(grid, n))
        return span * top**2 / (n * bottom) ** 2
