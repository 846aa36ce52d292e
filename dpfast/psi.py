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
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.core import callbacks, checks, containers
from dpfast.core.foreign import foreign
from dpfast.core.grid import Grid, check_grid

if TYPE_CHECKING:
    from scipy import LowLevelCallable

__all__ = ["Bivariate", "Function", "Huber", "Logistic", "Pinball", "Psi", "Table"]

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

    def of_records(self, codes: NDArray[np.int64], theta: int) -> NDArray[np.float64]:
        """Return psi(theta - x) of the records at one theta."""
        return self(theta - codes).astype(np.float64)

    def spread(self, last: int) -> int:
        """W, the largest change of psi(theta - x) by one record in 0..last, over all theta in 0..last."""
        bends = np.concatenate([[0, last], self.knots, self.knots + last])
        theta = bends[(bends >= 0) & (bends <= last)]
        return int((self(theta) - self(theta - last)).max())


@dataclass(frozen=True, eq=False)
class RecordTable:
    """A psi of two arguments in integers: nondecreasing in theta, in each argument linear between points of a table.

    Attributes
    ----------
    values : ndarray of int64
        At the records 0, `record_gap`, 2 `record_gap`, ..., a row each, and the parameters 0, `parameter_gap`, ..., up
        to and beyond the last code of both grids; at most 2**26 in magnitude.
    record_gap, parameter_gap : int
        Powers of two, in steps of the grids.
    """

    values: NDArray[np.int64]
    record_gap: int
    parameter_gap: int

    def of_records(self, codes: NDArray[np.int64], theta: int) -> NDArray[np.float64]:
        """Return psi(x, theta) of the records at one theta, about."""
        i, after = divmod(theta, self.parameter_gap)
        column = self.values[:, i] * float(self.parameter_gap - after)
        if after:
            column = column + self.values[:, i + 1] * float(after)
        places = np.arange(len(column)) * float(self.record_gap)
        return np.asarray(np.interp(codes, places, column) * self.record_gap)

    def spread(self, last: int) -> int:
        """W, the largest change of psi by one record, over all theta: `record_gap` `parameter_gap` times that of the
        values, since a psi that is linear between points is greatest at one of them.
        """
        return int(np.ptp(self.values, axis=0).max()) * self.record_gap * self.parameter_gap


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
            told = "the difference theta - x (for one of record and parameter use dpfast.psi.Bivariate)"
            callbacks.check_takes("psi", self.function, told)

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


@dataclass(frozen=True)
class Bivariate:
    """Any bounded function of a record and a parameter that does not decrease in the parameter: psi(x, theta).

    Condition 3 of Chaudhuri and Hsu: the M-estimate is the theta at which the sum of psi(x, theta) crosses 0. The
    parameter need not be on the scale of the records.

    Parameters
    ----------
    function : callable or scipy.LowLevelCallable
        A function of two floats, a record and a parameter in data units, with finite values. It must be public, like
        every parameter; it is called when a mechanism is built, never with data. A function pointer, ``double (int,
        double *)`` or ``double (int, double *, void *)``, is called without the GIL.
    grid : Grid, optional
        Public bounds and granularity of the parameter and the release. Default: the grid of the records.

    Notes
    -----
    The mechanism uses a table: a function that is linear between 129 to 257 evenly spaced points of the bounds of the
    records, and as many of those of the parameter, or between all points of a smaller grid, to 2**-26 of the largest
    magnitude. So give bounds in which the function is not much curved within 1/128. When the mechanism is built, the
    function is checked at these points. Cost: up to 66,000 calls for each function and grid, and a pass over the
    records for each release; the draw does not depend on their number.

    Examples
    --------
    The shape a of a Pareto law of records above 1, whose score ``log(x) - 1 / a`` is clipped:

    >>> import math, numpy as np, dpfast as dpf
    >>> def score(x, a):
    ...     return min(max(a * math.log(x) - 1, -1), 2)
    >>> pareto = dpf.psi.Bivariate(score, grid=dpf.Grid(0.5, 8))
    >>> x = 1 + np.random.default_rng(0).pareto(3.0, 20_000)
    >>> 2.5 < dpf.m_estimate(x, pareto, bounds=(1, 5), epsilon=1.0) < 4.5
    True
    """

    function: Callable[[float, float], float] | LowLevelCallable
    grid: Grid | None = None

    def __post_init__(self) -> None:
        if not callbacks.is_pointer(self.function):
            if not callable(self.function):
                raise TypeError(f"function must be callable, not {type(self.function).__name__}")
            callbacks.check_takes("psi", self.function, "the record x", "the parameter theta")
        if self.grid is not None:
            check_grid(self.grid)

    def __hash__(self) -> int:
        pointer = callbacks.is_pointer(self.function)
        return hash((callbacks.identity(self.function) if pointer else self.function, self.grid))

    def __str__(self) -> str:
        return f"the psi {getattr(self.function, '__name__', type(self.function).__name__)} of two arguments"

    def table(self, grid: Grid) -> RecordTable:
        """Return the integer table for records on a grid; raises a ValueError if the function is not a psi there."""
        return _record_table(self, grid, grid if self.grid is None else self.grid)

    def values(self, points: list[tuple[float, float]]) -> Sequence[float]:
        """Return the value of the function at each pair of a record and a parameter."""
        if callbacks.is_pointer(self.function):
            return callbacks.over("function", self.function, points)()
        with foreign():
            return [self.function(x, theta) for x, theta in points]


@lru_cache(maxsize=8)
def _record_table(psi: Bivariate, records: Grid, parameters: Grid) -> RecordTable:
    (record_gap, rows), (parameter_gap, columns) = _evenly(records), _evenly(parameters)
    found = psi.values([(x, theta) for x in rows for theta in columns])
    values = np.array([checks.real("each value of psi", value) for value in found]).reshape(len(rows), len(columns))
    falls = np.argwhere(values[:, 1:] < values[:, :-1])
    if len(falls):
        i, j = falls[0].tolist()
        raise ValueError(
            f"psi must not decrease in theta, but it does from {columns[j]!r} to {columns[j + 1]!r} for the record "
            f"{rows[i]!r}"
        )
    if not values[:, 0].min() <= 0 <= values[:, -1].max():
        raise ValueError(
            f"psi must be at most 0 for the least theta and some record, and at least 0 for the largest; it goes from "
            f"{values[:, 0].min().item()!r} to {values[:, -1].max().item()!r}"
        )
    bits = 26 - math.frexp(float(np.abs(values).max()))[1]
    table = RecordTable(np.rint(np.ldexp(values, bits)).astype(np.int64), record_gap, parameter_gap)
    if not table.spread(0):
        raise ValueError("psi must depend on the record: it is the same for all, to 2**-26 of its largest magnitude")
    table.values.flags.writeable = False
    return table


def _evenly(grid: Grid) -> tuple[int, list[float]]:
    """Return the steps between the points of a table, a power of two, and the points: the last ones may be equal."""
    last = grid.size - 1
    gap = 1 << max(0, (last - 1).bit_length() - 8)
    return gap, [grid.value(min(place, last)) for place in range(0, last + gap, gap)]


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
