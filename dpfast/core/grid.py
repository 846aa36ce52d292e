"""Public grids, of evenly spaced points or of floats: the maps from values to integer codes and back."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _grid
from dpfast.core import checks, containers

MAX_SIZE = 2**52
_MAX_STEPS_FROM_ZERO = 2**53
_DEFAULT_SIZE = 2**32
_LARGEST = sys.float_info.max
_LEAST_NORMAL = sys.float_info.min
_MOST_DIGITS = 40
_ROUNDER = 3 * 2**51  # integers below a third of it in magnitude, added to it, are in 2**52..2**53


class Points(ABC):
    """Public points in order, with integer codes from 0: a `Grid` or a `FloatGrid`.

    Attributes
    ----------
    lower, upper : float
        The ends, which values are clamped to.
    missing : float, "half" or "drop"
        What NaN becomes: this value, each end at alternating positions, or not a record.
    size : int
        The number of points, at most 2**52.
    step : float
        The distance of neighbouring points. A `FloatGrid` raises a TypeError: its points are in order only.
    first : int
        The index of `lower`, counted from 0.0.
    """

    lower: float
    upper: float
    missing: float | str
    size: int
    step: float
    first: int

    @property
    def resolves(self) -> bool:
        """Whether missing records are replaced or left out by `resolved`, before kernels see the records."""
        return isinstance(self.missing, str)

    @property
    def nan_value(self) -> float:
        """The value of NaN in the kernels, which only read NaN if `missing` is a number."""
        return self.lower if isinstance(self.missing, str) else self.missing

    @property
    def _said(self) -> str:
        """What a text about the points adds on missing records: nothing for the lower bound of a Grid."""
        if self.missing == self.lower and isinstance(self, Grid):
            return ""
        return f", missing: {self.missing!r}"

    def with_missing(self, missing: float | str | None) -> Self:
        """Return the same points, with another value or policy for missing records; None keeps it."""
        return self if missing is None else replace(self, missing=missing)  # type: ignore[type-var]

    @abstractmethod
    def encode(self, values: ArrayLike) -> NDArray[np.int64]:
        """Return the codes of the values, integers in [0, size), in order."""

    @abstractmethod
    def decode(self, codes: ArrayLike) -> NDArray[np.float64]:
        """Return the exact values of integer codes in [0, size)."""

    @abstractmethod
    def value(self, code: int) -> float:
        """Return the exact value of one code."""

    @property
    @abstractmethod
    def kernel(self) -> dict[str, float]:
        """The keyword arguments that describe the grid to the kernels of selection."""

    @abstractmethod
    def evenly(self, values: NDArray[Any], out: NDArray[np.float64] | None = None) -> tuple[Grid, NDArray[Any]]:
        """Return a grid of evenly spaced points, and values that have the codes of `values` on it, for kernels of
        codes.

        They are in `values`, or in `out` if that is given and conversion is needed.
        """


@dataclass(frozen=True, init=False, repr=False)
class Grid(Points):
    """A public grid of equally spaced points between two bounds.

    A value is clamped to the bounds, then rounded to the nearest point (half to even). The map is exact and applies to
    each record separately, so it costs no privacy. NaN goes to a public point, infinities to the bounds.

    Parameters
    ----------
    lower, upper : float
        Finite bounds in data units, ``lower < upper``, chosen without knowledge of the data. They are widened to
        multiples of `step`.
    step : float, optional
        A power of two in data units: the granularity of every release. Default: the smallest step with at most 2**32
        points and indices that are exact in float64 (``max(|lower|, |upper|) / step <= 2**53``).
    missing : float, "lower", "half" or "drop", optional
        The value of NaN, None and unreadable cells, clamped to the bounds. Default: "lower", the lower bound. "half":
        missing records at even positions (from 0) in the array, or in each chunk, count as the lower bound, those at
        odd positions as the upper one. "drop": they are left out, which makes the number of the others private. A
        mechanism takes "half" only for ``neighbors="replace-one"`` and "drop" only for ``neighbors="add-remove"``,
        besides `InverseSensitivity` of one quantile, `Quantiles` and `PresentMean`, which always take "drop".

    Attributes
    ----------
    lower, upper, step : float
    missing : float, "half" or "drop"
        The lower bound for "lower".
    size : int
        The number of points, at most 2**52.

    Raises
    ------
    TypeError, ValueError
        Bounds that are not finite numbers in order; a step that is not a power of two; bounds too wide for the step.

    Notes
    -----
    Privacy: a grid spends none; the codes are private data. Missing records:
    https://dpfast.readthedocs.io/en/latest/proofs/missing.html. Cost: O(1); `encode` is O(n).
    Source: the idea is the snapping of Mironov 2012, applied once, to the input
    (https://dpfast.readthedocs.io/en/latest/proofs/grid.html).

    Examples
    --------
    >>> import dpfast as dpf
    >>> grid = dpf.Grid(0, 100, step=0.5)
    >>> grid.encode([-3, 0.25, 0.75, 50.2, float("nan"), float("inf")])
    array([  0,   0,   2, 100,   0, 200])
    >>> grid.decode([0, 1, 200])
    array([  0. ,   0.5, 100. ])
    """

    lower: float
    upper: float
    step: float
    missing: float | str
    size: int = field(init=False, compare=False, repr=False)
    first: int = field(init=False, compare=False, repr=False)  # the index of lower: lower == first * step
    _shift: int = field(init=False, compare=False, repr=False)

    def __init__(
        self, lower: float, upper: float, step: float | None = None, missing: float | str | None = None
    ) -> None:
        for name, bound in (("lower", lower), ("upper", upper)):
            checks.real(name, bound)
        low_exact, high_exact = checks.exact(lower), checks.exact(upper)
        if not low_exact < high_exact:
            raise ValueError(f"lower must be below upper, not lower={lower!r}, upper={upper!r}")
        width = _least_step(low_exact, high_exact, _DEFAULT_SIZE) if step is None else checks.real("step", step)
        if math.frexp(width)[0] != 0.5:
            near = f", such as 2**{math.frexp(width)[1] - 1}" if width > 0 else ""
            raise ValueError(f"step must be a power of two{near}, not {step!r}")
        first, last = _outward(low_exact, high_exact, width)
        if not _fits(first, last, MAX_SIZE):
            raise ValueError(
                f"bounds ({lower!r}, {upper!r}) with step {width!r} need more than 2**52 points, or more than 2**53 "
                f"steps from 0: use step={_least_step(low_exact, high_exact, MAX_SIZE)!r} or more, as in "
                f"grid=Grid(lower, upper, step=...), or narrower bounds"
            )
        if max(abs(first), abs(last)) * Fraction(width) > Fraction(_LARGEST):
            raise ValueError(f"bounds ({lower!r}, {upper!r}) widened to step {width!r} overflow: use narrower bounds")
        low, high = first * width, last * width
        for name, value in {
            "lower": low,
            "upper": high,
            "step": width,
            "missing": _policy(missing, low, high),
            "size": last - first + 1,
            "first": first,
            "_shift": math.frexp(width)[1] - 1,
        }.items():
            object.__setattr__(self, name, value)

    def encode(self, values: ArrayLike) -> NDArray[np.int64]:
        """Return the codes of the values, integers in [0, size), in order.

        Parameters
        ----------
        values : array_like of shape (n,)
            Floats, integers or booleans of any stride; None counts as NaN in a list.

        Returns
        -------
        ndarray of int64, shape (n,)
            Private data. Without the missing records for ``missing="drop"``.
        """
        x = _readable(values)
        x = resolved(x, (self,)) if self.resolves else x
        out = np.empty(len(x), np.int64)
        _grid.encode(
            x,
            out,
            lower=self.lower,
            upper=self.upper,
            step=self.step,
            missing=self.nan_value,
            first=self.first,
            shift=self._shift,
        )
        return out

    def decode(self, codes: ArrayLike) -> NDArray[np.float64]:
        """Return the exact values of integer codes in [0, size)."""
        return np.asarray(containers.integers("codes", codes) + self.first, dtype=np.float64) * self.step

    def value(self, code: int) -> float:
        """Return the exact value of one code."""
        return (self.first + code) * self.step

    def sql(self, column: str) -> str:
        """Return the SQL expression of the code of a column, as of `encode`: exact in engines with IEEE doubles
        (DuckDB).

        `column`, an SQL expression, is part of the result as it is; its numbers are cast to doubles first. The code of
        NULL and NaN is NULL, a missing record for ``mechanism.release_counts``. Example:
        https://dpfast.readthedocs.io/en/latest/guides/duckdb.html.
        """
        x, last = f"CAST({column} AS DOUBLE)", self.size - 1
        lower, upper, step = (f"{number:.16e}" for number in (self.lower, self.upper, self.step))
        t, f = f"{x} / {step}", f"floor({x} / {step})"
        if max(abs(self.first), abs(self.first + last)) <= _ROUNDER // 3:  # then adding it rounds to an integer
            code = f"({t} + {_ROUNDER}e0) - ({_ROUNDER + self.first}e0)"
        else:
            up = f"{t} - {f} > 5e-1 OR ({t} - {f} = 5e-1 AND {f} - 2e0 * floor({f} / 2e0) = 1e0)"
            code = f"{f} - ({self.first}e0) + CASE WHEN {up} THEN 1e0 ELSE 0e0 END"
        inside = f"WHEN {x} > {lower} AND {x} < {upper} THEN CAST({code} AS BIGINT)"
        return f"CASE {inside} WHEN isnan({x}) THEN NULL WHEN {x} >= {upper} THEN {last} WHEN {x} <= {lower} THEN 0 END"

    @property
    def kernel(self) -> dict[str, float]:
        """The keyword arguments that describe the grid to the kernels of selection."""
        return {"lower": self.lower, "upper": self.upper, "step": self.step, "missing": self.nan_value}

    def evenly(self, values: NDArray[Any], out: NDArray[np.float64] | None = None) -> tuple[Grid, NDArray[Any]]:
        return self, values

    def __str__(self) -> str:
        return f"{self.size} points from {self.lower!r} to {self.upper!r}, step {self.step!r}{self._said}"

    def __repr__(self) -> str:
        missing = "" if self.missing == self.lower else f", missing={self.missing!r}"
        return f"Grid({self.lower!r}, {self.upper!r}, step={self.step!r}{missing})"


@dataclass(frozen=True, init=False, repr=False)
class FloatGrid(Points):
    """A public grid of floats: all doubles of few significant bits, in order. It needs no bounds.

    Order statistics need nothing but order, so `InverseSensitivity` of a quantile and `Quantiles` take a FloatGrid in
    place of a `Grid`; mechanisms that do arithmetic on records do not. A value is rounded to the nearest point (half to
    even), and infinities go to the ends; the map is exact, monotone, and applies to each record separately.

    Parameters
    ----------
    digits : int
        The number of significant bits, from 1 to 40: from `resolution` on, rounding has a relative error of at most
        ``2**-digits``. By default 25, about 7 decimal digits.
    resolution : float
        A power of two in data units, or 0. Below it the points are evenly spaced, ``resolution * 2**(1 - digits)``
        apart, as they are from `resolution` to ``2 * resolution``: the many floats near 0 would attract a release that
        is near 0 on the scale of the data. By default 2**-14, so that points near 0 are 3.6e-12 apart; for data below
        1e-9, choose another resolution or another unit. 0 is the same as 2**-1022, below which doubles are evenly
        spaced.
    lower, upper : float
        Bounds in data units, ``lower < upper``, which are widened to points; infinite by default.
    missing : float, "lower", "half" or "drop", optional
        The value of NaN, None and unreadable cells, as for `Grid`. Default: "drop", which quantiles take at no cost:
        the lower bound is about -1.8e308 here. What cannot leave records out refuses it, and names `missing`.

    Attributes
    ----------
    digits : int
    resolution, lower, upper : float
        `lower` and `upper` are finite: the ends are the least and the greatest point.
    missing : float, "half" or "drop"
    size : int
        The number of points: 2**35 by default, about ``2**(digits + 11)`` for resolution 0.

    Raises
    ------
    TypeError, ValueError
        Bounds that are not numbers in order; digits that are not an integer from 1 to 40; a resolution that is neither
        0 nor a power of two.

    Notes
    -----
    Privacy: a grid spends none; the codes are private data. The proofs of mechanisms that use only the order of the
    codes hold unchanged (https://dpfast.readthedocs.io/en/latest/proofs/float-grid.html). Cost: O(1); `encode` is O(n),
    and selection needs it for a few order statistics only.
    Without bounds, almost all points are far beyond all data: a release from too few records may be far from all of
    them, although modest and round numbers weigh more. A `UtilityWarning` says so before, from public numbers,
    unless the number of records is private (https://dpfast.readthedocs.io/en/latest/guides/bounds.html).

    Examples
    --------
    >>> import dpfast as dpf
    >>> dpf.FloatGrid()
    FloatGrid(25, resolution=6.103515625e-05)
    >>> grid = dpf.FloatGrid(3, resolution=0)
    >>> grid.decode(grid.encode([1.1, 1.2, 1000.0, -0.3])).tolist()
    [1.0, 1.25, 1024.0, -0.3125]
    >>> dpf.FloatGrid(2, resolution=1, lower=-1, upper=8).decode(range(11)).tolist()
    [-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0]
    """

    digits: int
    resolution: float
    lower: float
    upper: float
    missing: float | str
    size: int = field(init=False, compare=False, repr=False)
    first: int = field(init=False, compare=False, repr=False)  # the index of lower
    _unit: float = field(init=False, compare=False, repr=False)  # the distance of points near 0

    def __init__(
        self,
        digits: int = 25,
        *,
        resolution: float = 2.0**-14,
        lower: float = -math.inf,
        upper: float = math.inf,
        missing: float | str | None = None,
    ) -> None:
        digits = checks.whole("digits", digits, least=1)
        if digits > _MOST_DIGITS:
            raise ValueError(f"digits must be at most {_MOST_DIGITS}, not {digits}")
        least = checks.nonnegative("resolution", resolution)
        if least and math.frexp(least)[0] != 0.5:
            raise ValueError(f"resolution must be 0 or a power of two, not {resolution!r}")
        low, high = checks.interval("lower and upper", (lower, upper))
        if not low < high:
            raise ValueError(f"lower must be below upper, not lower={lower!r}, upper={upper!r}")
        least = least if least > _LEAST_NORMAL else 0.0
        self._set(digits=digits, resolution=least, _unit=math.ldexp(max(least, _LEAST_NORMAL), 1 - digits))
        most = ((2047 - self._octave) << (digits - 1)) - 1  # the index of 2**1024, less 1
        self._set(first=0, lower=self._point(-most), upper=self._point(most), missing=0.0)
        first, last = self._index(low), self._index(high)
        first -= self._point(first) > low and first > -most
        last += self._point(last) < high and last < most
        first, last = min(first, most - 1), max(last, 1 - most)
        self._set(first=first, size=last - first + 1, lower=self._point(first), upper=self._point(last))
        self._set(missing=_policy("drop" if missing is None else missing, self.lower, self.upper))

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _index(self, value: float) -> int:
        """Return the index of the point nearest to a value, while `first` is 0."""
        return int(self._codes(np.array([value]))[0])

    def _point(self, index: int) -> float:
        """Return the point of an index, counted from 0.0."""
        magnitude = abs(index)
        octave = max((magnitude >> (self.digits - 1)) - 1, 0)
        leading = magnitude - (octave << (self.digits - 1))
        return math.copysign(math.ldexp(leading * self._unit, octave), index)

    @property
    def _octave(self) -> int:
        """The number of octaves of normal doubles below the resolution."""
        return math.frexp(max(self.resolution, _LEAST_NORMAL))[1] + 1021

    def _codes(self, x: NDArray[Any], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the codes as doubles."""
        codes = np.empty(x.shape[0]) if out is None else out
        _grid.encode_floats(x, codes, **self.floats)
        return codes

    @property
    def floats(self) -> dict[str, Any]:
        """The keyword arguments that describe the grid to the kernels that compute codes."""
        return {
            "lower": self.lower,
            "upper": self.upper,
            "missing": self.nan_value,
            "resolution": max(self.resolution, _LEAST_NORMAL),
            "unit": self._unit,
            "origin": self._octave << 52,
            "first": self.first,
            "shift": 53 - self.digits,
        }

    def encode(self, values: ArrayLike) -> NDArray[np.int64]:
        """Return the codes of the values, integers in [0, size), in order; see `Grid.encode`."""
        return self._codes(resolved(_readable(values), (self,))).astype(np.int64)

    def decode(self, codes: ArrayLike) -> NDArray[np.float64]:
        """Return the exact values of integer codes in [0, size)."""
        index = np.asarray(containers.integers("codes", codes) + self.first)
        magnitude = np.abs(index)
        octave = np.maximum((magnitude >> (self.digits - 1)) - 1, 0)
        leading = magnitude - (octave << (self.digits - 1))
        return np.asarray(np.ldexp(np.sign(index) * leading * self._unit, octave))

    def value(self, code: int) -> float:
        """Return the exact value of one code."""
        return self._point(code + self.first)

    @property
    def step(self) -> float:  # type: ignore[override]
        """A TypeError: there is not one step."""
        raise TypeError(_ORDER_ONLY)

    def sql(self, column: str) -> str:
        """Raise a TypeError: codes of floats have no short SQL expression."""
        raise TypeError("a FloatGrid has no SQL expression of its codes: use Grid(lower, upper)")

    @property
    def kernel(self) -> dict[str, float]:
        """The keyword arguments that describe the grid to the kernels of selection, which round nothing for step 0."""
        return {"lower": self.lower, "upper": self.upper, "step": 0.0, "missing": self.nan_value}

    @cached_property
    def _even(self) -> Grid:
        return Grid(0, self.size - 1, step=1)

    def evenly(self, values: NDArray[Any], out: NDArray[np.float64] | None = None) -> tuple[Grid, NDArray[Any]]:
        return self._even, self._codes(_readable(values), out)

    def codes_within(
        self, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the least code with a value of at least `low` and the greatest with one of at most `high`,
        elementwise.
        """
        first, last = self.encode(low), self.encode(high)
        return first + (self.decode(first) < low), last - (self.decode(last) > high)

    def __str__(self) -> str:
        near = f", evenly spaced below {self.resolution!r}" if self.resolution else ""
        return f"the floats of {self.digits} bits from {self.lower!r} to {self.upper!r}{near}{self._said}"

    def __repr__(self) -> str:
        unbounded = FloatGrid(self.digits, resolution=self.resolution)
        given = [f"{self.digits}, resolution={self.resolution!r}"]
        given += [
            f"{name}={getattr(self, name)!r}"
            for name in ("lower", "upper")
            if getattr(self, name) != getattr(unbounded, name)
        ]
        given += [f"missing={self.missing!r}"] if self.missing != unbounded.missing else []
        return f"FloatGrid({', '.join(given)})"


_ORDER_ONLY = (
    "a FloatGrid is for quantiles, which need only the order of its points; other releases need evenly spaced points: "
    "give bounds=(lower, upper) or grid=Grid(...)"
)


def checked_policy(missing: Any) -> float | str | None:
    """Check ``missing=``: a finite number, "lower", "half", "drop", or None for the default."""
    if missing is None:
        return None
    if isinstance(missing, str):
        return checks.choice("missing", missing, ("lower", "half", "drop"))
    return checks.real("missing", missing)


def _policy(missing: Any, lower: float, upper: float) -> float | str:
    """Return the value of missing records within the bounds, "half" or "drop"."""
    policy = checked_policy(missing)
    if isinstance(policy, float):
        return min(max(policy, lower), upper)
    return lower if policy is None or policy == "lower" else policy


def resolved(values: NDArray[Any], grids: Sequence[Points]) -> NDArray[Any]:
    """Return the records of a chunk, of shape (m,) or (m, d), after "half" and "drop"; a row of them is one record.

    For "half", NaN in an even record of the chunk becomes the lower bound of its column, in an odd one the upper bound;
    for "drop", records with NaN in such a column are left out. `grids` has a grid for each column, or one for all.
    """
    if values.dtype.kind != "f" or not any(grid.resolves for grid in grids):
        return values
    columns = 1 if values.ndim == 1 else values.shape[1]
    each = tuple(grids) * columns if len(grids) == 1 else grids
    with np.errstate(all="ignore"):  # a signalling NaN
        out = values.astype(np.float64)
        kept = np.ones(len(out), bool)
        for column, grid in zip(out.reshape(len(out), columns).T, each, strict=True):
            if grid.missing == "drop":
                kept &= ~np.isnan(column)
            elif grid.missing == "half":
                absent = np.flatnonzero(np.isnan(column))
                column[absent] = np.take((grid.lower, grid.upper), absent % 2)
    return out if kept.all() else out.take(np.flatnonzero(kept), axis=0)


def check_missing(kind: str, grids: Sequence[Points], *, hides_n: bool) -> None:
    """Raise a ValueError if the policy for missing records does not fit the guarantee of a kind of mechanism."""
    policies = {grid.missing for grid in grids if isinstance(grid, Points)}
    if "drop" in policies and not hides_n:
        raise ValueError(
            f"missing='drop' makes the number of records private: it needs neighbors='add-remove', not a public number "
            f"of records, as in this {kind} release; where there is no such parameter, give a number, 'lower' or 'half'"
        )
    if "half" in policies and hides_n:
        raise ValueError(
            f"missing='half' needs neighbors='replace-one', not 'add-remove', as in this {kind} release: one record "
            f"removed would change the parity of all later positions; give a number, or 'drop'"
        )


def check_number(grid: Points) -> None:
    """Raise a ValueError unless missing records have a value: for functions that map each record by itself."""
    if grid.resolves:
        raise ValueError(f"missing must be a number or 'lower' here, not {grid.missing!r}")


def _readable(values: ArrayLike) -> NDArray[Any]:
    """Return a vector of numbers of a dtype that the kernels read."""
    x = containers.vector("values", values)
    if x.dtype.kind == "b":
        x = x.view(np.uint8)
    elif x.dtype == np.float16:
        with np.errstate(invalid="ignore"):  # a signalling NaN, on arm64
            x = x.astype(np.float32)
    return x if x.flags.aligned else x.copy()


def _outward(lower: Fraction, upper: Fraction, step: float) -> tuple[int, int]:
    """Return the bounds in steps, rounded outward."""
    return math.floor(lower / Fraction(step)), math.ceil(upper / Fraction(step))


def _fits(first: int, last: int, size: int) -> bool:
    return last - first < size and max(abs(first), abs(last)) <= _MAX_STEPS_FROM_ZERO


def _least_step(lower: Fraction, upper: Fraction, size: int) -> float:
    """Return the smallest power of two with at most `size` points and all indices exact in float64."""
    least = float(max((upper - lower) / size, max(abs(lower), abs(upper)) / _MAX_STEPS_FROM_ZERO))
    step = math.ldexp(1.0, max(math.frexp(least)[1] - 2, -1074)) if least else math.ulp(0.0)
    while not _fits(*_outward(lower, upper, step), size):
        step *= 2
    return step


def check_points(grid: Any) -> None:
    """Raise a TypeError if `grid` is neither a `Grid` nor a `FloatGrid`."""
    if not isinstance(grid, Points):
        raise TypeError(f"grid must be a dpfast.Grid or FloatGrid, not {type(grid).__name__}")


def check_grid(grid: Any) -> None:
    """Raise a TypeError if `grid` is not a `Grid`, whose points are evenly spaced."""
    if isinstance(grid, FloatGrid):
        raise TypeError(_ORDER_ONLY)
    if not isinstance(grid, Grid):
        raise TypeError(f"grid must be a dpfast.Grid, not {type(grid).__name__}")


def grid_for(x: Any, bounds: Any, grid: Grid | None, missing: float | str | None = None) -> Grid:
    """Return the given grid, or the grid with the given bounds; exactly one of the two must be given."""
    checks.bounds_or_grid(bounds, grid)
    if grid is None:
        lower, upper = checks.pair("bounds", bounds)
        made_of = _shared if type(lower) in (int, float) and type(upper) in (int, float) else Grid
        return made_of(lower, upper, natural_step(x), missing)
    made: Grid = grid_with(grid, missing)
    return made


_shared = lru_cache(maxsize=256, typed=True)(Grid)  # within plain numbers, whatever the epsilon is


def grid_with(grid: Any, missing: float | str | None) -> Any:
    """Return a grid, or several, with another policy for missing records; None keeps that of each."""
    if missing is None:
        return grid
    if isinstance(grid, Sequence):
        return tuple(grid_with(part, missing) for part in grid)
    check_points(grid)
    return grid.with_missing(missing)


def unbounded(integers: bool) -> FloatGrid:
    """Return the grid of floats for records without bounds, or of integers."""
    return _INTEGERS if integers else _FLOATS


def integers_within(lower: float, upper: float) -> FloatGrid:
    """Return the floats that are integers."""
    return FloatGrid(resolution=math.ldexp(1.0, FloatGrid().digits - 1), lower=lower, upper=upper)


_FLOATS, _INTEGERS = FloatGrid(), integers_within(-(2.0**63), 2.0**64)


def grids_within(bounds: Any, step: float | None, x: Any = None) -> Grid | tuple[Grid, ...]:
    """Return the grid within a pair of bounds, or the grids within one pair for each column, which x may name."""
    found = checks.bounds_of(bounds, partial(containers.column_names, x))
    grids = tuple(Grid(lower, upper, step) for lower, upper in (found if isinstance(found[0], tuple) else [found]))
    return grids if isinstance(found[0], tuple) else grids[0]


def natural_step(x: Any) -> float | None:
    """1 if x has an integer or boolean dtype, else None, the default of `Grid`."""
    return 1.0 if containers.declares_integers(x) else None


def coarser(grid: Grid, most: int) -> Grid:
    """Return the grid with at most this many points between the same bounds, widened to its step."""
    while grid.size > most:
        factor = 2 ** max(1, (grid.size // most).bit_length() - 1)
        grid = Grid(grid.lower, grid.upper, step=grid.step * factor, missing=grid.missing)
    return grid
