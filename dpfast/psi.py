"""The functions psi of M-estimators: bounded and nondecreasing, converted to a table of integers.

An M-estimate is the theta at which the sum of psi(theta - x) over the records crosses 0. The mechanism does not use a
psi in data units but its `Psi.table`: integers at the knots and integer slopes between them, on the differences of a
grid. https://dpfast.readthedocs.io/en/latest/proofs/score-laws.html
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.core import callbacks, checks, containers
from dpfast.core.foreign import foreign
from dpfast.core.grid import Grid

if TYPE_CHECKING:
    from scipy import LowLevelCallable

__all__ = ["Function", "Huber", "Logistic", "Pinball", "Psi", "Table"]

# The range of a psi in the units of its table: with fewer than 2**63 records all sums are below 2**125.
_UNITS = 2**60
_SUBDIVISIONS = 32  # evaluations of a function from one power of two to the next
_TOLERANCE = 2.0**-14  # relative to the range
_LARGEST_DENOMINATOR = 2**20


@dataclass(frozen=True, eq=False)
class IntegerTable:
    """A psi in integers: nondecreasing, linear between integer knots, constant outside.

    Attributes
    ----------
    knots : ndarray of int64
        Differences theta - x in steps of the grid, ascending, at least two.
    values : ndarray of int64
        psi at the knots, in arbitrary units; below 2**61 in magnitude.
    slopes : ndarray of int64
        The slope between each two adjacent knots, at least 0.
    """

    knots: NDArray[np.int64]
    values: NDArray[np.int64]
    slopes: NDArray[np.int64]

    @classmethod
    def of(cls, knots: Sequence[int], start: int, slopes: Sequence[int]) -> IntegerTable:
        """Make a table from the value at the first knot and the slopes, not all 0; drop redundant knots."""
        kept, values, kinds = [knots[0]], [start], [0]
        for left, slope in zip(knots[:-1], slopes, strict=True):
            if slope != kinds[-1]:
                kept.append(left)
                values.append(values[-1] + kinds[-1] * (left - kept[-2]))
                kinds.append(slope)
        if kinds[-1]:
            kept.append(knots[-1])
            values.append(values[-1] + kinds[-1] * (knots[-1] - kept[-2]))
            kinds.append(0)
        return cls(*(np.array(part, dtype=np.int64) for part in (kept[1:], values[1:], kinds[1:-1])))

    @classmethod
    def rounded(cls, knots: Sequence[int], values: Sequence[Fraction]) -> IntegerTable:
        """Make a table from values at the knots, nondecreasing and not all equal; their range is about 2**60 units.

        Each slope is rounded so that it leads as near as possible to the next value: within half the gap in steps.
        """
        unit = _UNITS / (values[-1] - values[0])
        start = value = round(values[0] * unit)
        slopes = []
        for (left, right), target in zip(pairwise(knots), values[1:], strict=True):
            slopes.append(max(0, round((target * unit - value) / (right - left))))
            value += slopes[-1] * (right - left)
        return cls.of(knots, start, slopes)

    def __call__(self, differences: ArrayLike) -> NDArray[np.int64]:
        """Return psi at integer differences."""
        d = np.clip(containers.integers("differences", differences), self.knots[0], self.knots[-1])
        stretch = np.clip(np.searchsorted(self.knots, d, side="right") - 1, 0, len(self.slopes) - 1)
        return np.asarray(self.values[stretch] + self.slopes[stretch] * (d - self.knots[stretch]))

    def spread(self, last: int) -> int:
        """W, the largest change of psi(theta - x) by one record in 0..last, over all theta in 0..last."""
        bends = np.concatenate([[0, last], self.knots, self.knots + last])
        theta = bends[(bends >= 0) & (bends <= last)]
        return int((self(theta) - self(theta - last)).max())


class Psi(ABC):
    """A public, bounded, nondecreasing function of the difference theta - x, in data units."""

    @abstractmethod
    def table(self, grid: Grid) -> IntegerTable:
        """Return the integer table on the differences of a grid; raises a ValueError if the function is not a psi
        there.
        """


@dataclass(frozen=True)
class Huber(Psi):
    """``clip(theta - x, -k, k)``: the mean of records near theta; a farther record counts like one at distance k.

    Parameters
    ----------
    k : float
        The corner, in data units, positive; rounded to a multiple of the grid's step, at least one. A corner beyond
        the width of the grid has no effect.

    Examples
    --------
    >>> import dpfast as dpf
    >>> dpf.psi.Huber(2.0).table(dpf.Grid(0, 10, step=0.5))([-9, -4, -1, 0, 1, 4, 9])
    array([-4, -4, -1,  0,  1,  4,  4])
    """

    k: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checks.positive("k", self.k))

    def __str__(self) -> str:
        return f"Huber's psi with corner {self.k:g}"

    def table(self, grid: Grid) -> IntegerTable:
        corner = max(1, round(min(self.k / grid.step, grid.size - 1)))
        return IntegerTable.of([-corner, corner], -corner, [1])


@dataclass(frozen=True)
class Pinball(Psi):
    """``1 - q`` if x <= theta, else ``-q``: the q-quantile. ``Pinball(0.5)`` is half the sign, for the median.

    If many records are equal, the sum jumps over 0 and its magnitude is not informative: prefer `dpfast.quantile`.

    Parameters
    ----------
    q : float
        In [0, 1]; replaced by the nearest fraction with denominator at most 2**20.
    """

    q: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", checks.fraction("q", self.q))

    def __str__(self) -> str:
        return f"the pinball psi of the {self.q:g}-quantile"

    def table(self, grid: Grid) -> IntegerTable:
        q = Fraction(self.q).limit_denominator(_LARGEST_DENOMINATOR)
        return IntegerTable.of([-1, 0], -q.numerator, [q.denominator])


@dataclass(frozen=True)
class Table(Psi):
    """A piecewise linear psi, constant outside the knots.

    Parameters
    ----------
    knots : sequence of float
        Strictly ascending differences theta - x in data units, at least two; they need not be on the grid. Two knots
        less than a step apart act as a jump.
    values : sequence of float
        psi at the knots, in any unit: nondecreasing, the first at most 0, the last at least 0, not all 0.

    Notes
    -----
    On the differences of the grid the function is exact except for the rounding of slopes: an error of at most g 2**-61
    of its range, g the distance of adjacent knots in steps.

    Examples
    --------
    >>> import dpfast as dpf
    >>> hampel = dpf.psi.Table([-4, -2, 2, 4], [-1, -0.75, 0.75, 1])
    >>> 2.0 < dpf.m_estimate([1, 2, 3, 50] * 100, hampel, bounds=(0, 100), epsilon=2.0) < 3.5
    True
    """

    knots: tuple[float, ...]
    values: tuple[float, ...]

    def __init__(self, knots: Sequence[float] | NDArray[Any], values: Sequence[float] | NDArray[Any]) -> None:
        for name, numbers in (("knots", knots), ("values", values)):
            try:
                object.__setattr__(self, name, tuple(checks.real(f"each of {name}", number) for number in numbers))
            except TypeError as error:
                raise TypeError(f"{name} must be a sequence of numbers: {error}") from None
        if len(self.knots) != len(self.values) or len(self.knots) < 2:
            raise ValueError(
                f"knots and values must have the same length, at least 2, not {len(self.knots)}, {len(self.values)}"
            )
        if not all(left < right for left, right in pairwise(self.knots)):
            raise ValueError(f"knots must be strictly ascending, not {self.knots!r}")
        _check_values(self.knots, self.values)

    def __str__(self) -> str:
        return f"a psi of {len(self.knots)} knots"

    def table(self, grid: Grid) -> IntegerTable:
        # On the integers the function is linear between adjacent points of `near`.
        last, step = grid.size - 1, Fraction(grid.step)
        places = [Fraction(knot) / step for knot in self.knots]
        near = {nearest(place) for place in places for nearest in (math.floor, math.ceil)}
        differences = [-last, *sorted(place for place in near if -last < place < last), last]
        values = [self._at(places, difference) for difference in differences]
        _check_values([float(d * step) for d in differences], values)
        return IntegerTable.rounded(differences, values)

    def _at(self, places: list[Fraction], difference: int) -> Fraction:
        if difference <= places[0]:
            return Fraction(self.values[0])
        for (left, right), (low, high) in zip(pairwise(places), pairwise(map(Fraction, self.values)), strict=True):
            if difference <= right:
                return low + (high - low) * (difference - left) / (right - left)
        return Fraction(self.values[-1])


class _Tabulated(Psi):
    """A function tabulated on the differences 0, +-1, +-2, ... steps, with a spacing that grows away from 0."""

    @abstractmethod
    def at(self, difference: float) -> float:
        """Return the value of the function at a difference in data units."""

    def values(self, differences: list[float]) -> Sequence[float]:
        """Return the value of the function at each difference."""
        return [self.at(difference) for difference in differences]

    def table(self, grid: Grid) -> IntegerTable:
        places = _places(grid.size - 1)
        differences = [place * grid.step for place in places]
        values = [checks.real("each value of psi", value) for value in self.values(differences)]
        _check_values(differences, values)
        kept = _worth_a_knot(places, values)
        return IntegerTable.rounded([places[i] for i in kept], [Fraction(values[i]) for i in kept])


@dataclass(frozen=True)
class Logistic(_Tabulated):
    """``tanh((theta - x) / (2 scale))``: the likelihood equation of the logistic distribution; a smooth Huber's psi.

    Parameters
    ----------
    scale : float
        In data units, positive: the scale of the logistic distribution.

    Notes
    -----
    The mechanism uses a piecewise linear table like `Function`, bounded and monotone, accurate to 2**-12.
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checks.positive("scale", self.scale))

    def __str__(self) -> str:
        return f"the logistic psi of scale {self.scale:g}"

    def at(self, difference: float) -> float:
        return math.tanh(difference / self.scale / 2)


@dataclass(frozen=True)
class Function(_Tabulated):
    """Any bounded, nondecreasing function of theta - x. `MEstimator` converts a callable to this class.

    Parameters
    ----------
    function : callable or scipy.LowLevelCallable
        A function of a float, a difference in data units, with finite values: nondecreasing, at most 0 on the left and
        at least 0 on the right. It must be public, like every parameter; it is called when a mechanism is built, never
        with data. A function pointer, ``double (double)`` or ``double (double, void *)``, is called without the GIL.

    Notes
    -----
    The mechanism uses a table: a piecewise linear function that is within 2**-14 of the range of the function at the
    differences 0, +-1, ..., +-64 steps and at 32 more for every doubling of the distance. When the mechanism is built,
    the function is checked to be finite and nondecreasing at these differences.
    """

    function: Callable[[float], float] | LowLevelCallable

    def __post_init__(self) -> None:
        if not callable(self.function) and not callbacks.is_pointer(self.function):
            raise TypeError(f"function must be callable, not {type(self.function).__name__}")
        if not callbacks.is_pointer(self.function):
            callbacks.check_takes("psi", self.function, "the difference theta - x")

    def __hash__(self) -> int:
        pointer = callbacks.is_pointer(self.function)
        return hash(callbacks.identity(self.function) if pointer else self.function)

    def __str__(self) -> str:
        return f"the psi {getattr(self.function, '__name__', type(self.function).__name__)}"

    def at(self, difference: float) -> float:
        return self.values([difference])[0]

    def values(self, differences: list[float]) -> Sequence[float]:
        if callbacks.is_pointer(self.function):
            return callbacks.over("function", self.function, differences)()
        with foreign():
            return [self.function(difference) for difference in differences]


def _places(last: int) -> list[int]:
    """Return the differences -last, ..., -2, -1, 0, 1, 2, ..., last: all up to 64, then 32 for every doubling."""
    right = list(range(1, min(2 * _SUBDIVISIONS, last)))
    for shift in range(1, max(last.bit_length(), 1)):
        right += [place << shift for place in range(_SUBDIVISIONS, 2 * _SUBDIVISIONS) if place << shift < last]
    right.append(last)
    return [*(-place for place in reversed(right)), 0, *right]


def _worth_a_knot(places: Sequence[int], values: Sequence[float]) -> list[int]:
    """Return the indices between which the values are linear to 2**-14 of their range: a greedy choice from first to
    last.
    """
    tolerance = (values[-1] - values[0]) * _TOLERANCE
    kept, least, most = [0], -math.inf, math.inf  # range of slopes from the last kept index that fit all values since
    for i in range(1, len(places)):
        run, rise = places[i] - places[kept[-1]], values[i] - values[kept[-1]]
        if not least <= rise / run <= most:
            kept.append(i - 1)
            run, rise = places[i] - places[i - 1], values[i] - values[i - 1]
            least, most = -math.inf, math.inf
        least, most = max(least, (rise - tolerance) / run), min(most, (rise + tolerance) / run)
    return [*kept, len(places) - 1]


def _check_values(differences: Sequence[float], values: Sequence[Any]) -> None:
    for (left, right), (low, high) in zip(pairwise(differences), pairwise(values), strict=True):
        if high < low:
            raise ValueError(f"psi must not decrease, but it does from the difference {left!r} to {right!r}")
    if not values[0] <= 0 <= values[-1] or values[0] == values[-1]:
        raise ValueError(
            f"psi must go from at most 0 to at least 0, and not be 0 throughout, on differences from "
            f"{differences[0]!r} to {differences[-1]!r}; it goes from {float(values[0])!r} to {float(values[-1])!r}"
        )
