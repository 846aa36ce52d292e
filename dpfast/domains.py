"""Public domains of records in rows, and the map from rows to vectors of integers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _rows, _select
from dpfast._kernels._threads import each
from dpfast.core import checks, containers
from dpfast.core.columns import Rows
from dpfast.core.grid import Grid, resolved

__all__ = ["Ball", "Box", "Domain"]

Integers = NDArray[np.int64]
Values = NDArray[np.float64]
LIMB = 52  # a sum of codes is high 2**52 + low, 0 <= low < 2**52: rows 0 and 1 of an array
_NUMBERS_A_WORKER = 2**20  # with fewer numbers a second thread does not pay off
_MOST_STEPS = 2**26  # in the radius of a ball: squared norms are exact in double
_PRODUCT_DIGITS = 23  # of the radius of a ball in steps, for products of codes
_LEAST_STEP = 2.0**-1022  # its inverse is a double
_PART = 40  # bits


class Domain(ABC):
    """A public set of rows of d numbers, and an exact map from any row to a code, a vector of d integers.

    The map applies to each record separately, so it costs no privacy.
    """

    def __repr__(self) -> str:
        return f"<{self}>"

    @property
    @abstractmethod
    def columns(self) -> int | None:
        """The number of columns d; None for any."""

    def check_columns(self, d: int) -> None:
        """Raise a ValueError unless rows may have d columns."""
        if self.columns not in (None, d):
            raise ValueError(f"X must have {self.columns} columns, like the {self}, not {d}")

    def columns_of(self, dimension: SupportsIndex | None) -> int:
        """Return the number of columns d, given by the domain or by `dimension`; raises an error unless they agree."""
        if dimension is not None:
            d = checks.whole("dimension", dimension, least=1)
            self.check_columns(d)
            return d
        if self.columns is None:
            raise TypeError("give dimension=, the number of columns, because the domain is for any number of them")
        return self.columns

    def records(self, X: ArrayLike) -> NDArray[Any]:
        """Return the rows as an array of numbers, without a copy if possible."""
        rows = containers.matrix("X", X)
        self.check_columns(rows.shape[1])
        return rows

    def encode(self, X: ArrayLike) -> Integers:
        """Return the codes of the rows, an array of shape (n, d). Private data."""
        rows = self._resolved(self.records(X))
        out = np.empty(rows.shape, np.int64)
        self._encode(rows, out)
        return out

    def _resolved(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the rows after the policy for missing records."""
        return rows

    def add(self, rows: NDArray[Any], sums: Integers, threads: int) -> None:
        """Add the codes of all rows to exact sums, an array of shape (2, d)."""
        _add_in_parts(self._add, rows, sums=sums, threads=threads)

    @property
    @abstractmethod
    def reach(self) -> int:
        """The largest coordinate of a code, in magnitude."""

    @property
    @abstractmethod
    def magnitude(self) -> float:
        """The largest coordinate of a row, in magnitude, in data units."""

    @property
    @abstractmethod
    def coarsest(self) -> float:
        """The largest step."""

    # From sums of codes with noise, an array of shape (..., d), to released values: post-processing.

    @abstractmethod
    def means(self, sums: Integers, n: int) -> Values:
        """Return the means of n rows, moved into the domain."""

    @abstractmethod
    def sums(self, sums: Integers, n: int) -> Values:
        """Return the sums of n rows, moved to where those of n rows in the domain are."""

    @abstractmethod
    def free_sums(self, sums: Integers, most: int) -> Values:
        """Return the sums of any number of rows, from sums counted from 0, clamped to 0 on a side where that is a
        bound.

        The magnitude of `sums` is at most `most`.
        """

    @abstractmethod
    def _encode(self, rows: NDArray[Any], out: Integers) -> None: ...

    @abstractmethod
    def _add(self, rows: NDArray[Any], sums: Integers) -> None: ...


def _add_in_parts(add: Callable[..., None], rows: Any, *labels: NDArray[Any], sums: Integers, threads: int) -> None:
    """Call ``add(rows, *labels, sums)``, or the same for parts of the rows on several threads."""
    if isinstance(rows, Rows):
        for places, block in rows.blocks():
            add(block, *(array[places] for array in labels), sums)
        return
    parts = max(1, min(threads, rows.size // _NUMBERS_A_WORKER))
    if parts == 1:
        add(rows, *labels, sums)
        return

    def total_of(part: tuple[NDArray[Any], ...]) -> Integers:
        total = np.zeros_like(sums)
        add(*part, total)
        return total

    pieces = [np.array_split(array, parts) for array in (rows, *labels)]
    for total in each(total_of, list(zip(*pieces, strict=True)), parts):
        sums += total
        carry(sums)


def carry(sums: Integers) -> None:
    """Restore 0 <= low < 2**52 in sums."""
    sums[0] += sums[1] >> LIMB
    sums[1] &= 2**LIMB - 1


@dataclass(frozen=True, repr=False)
class Box(Domain):
    """The rows whose columns are on grids: a value is clamped to the bounds and rounded to a grid point by itself.

    Parameters
    ----------
    grid : Grid or sequence of d Grids
        Public bounds and granularity, in data units: one grid for any number of columns, or a grid for each column. NaN
        becomes what ``grid.missing`` says, by the position of its row for "half"; "drop" leaves out rows with NaN.

    Notes
    -----
    The code of a row has the codes of its values, `Grid.encode`, as coordinates.

    Examples
    --------
    >>> import dpfast as dpf
    >>> box = dpf.domains.Box(dpf.Grid(0, 10, step=1))
    >>> box.encode([[3.2, 12.0], [float("nan"), 0.0]])
    array([[ 3, 10],
           [ 0,  0]])
    """

    grid: Grid | tuple[Grid, ...]

    def __post_init__(self) -> None:
        if isinstance(self.grid, Grid):
            return
        grids = tuple(self.grid) if isinstance(self.grid, Sequence) else ()
        if not grids or not all(isinstance(grid, Grid) for grid in grids):
            raise TypeError("grid must be a dpfast.Grid, or one for each column")
        object.__setattr__(self, "grid", grids)

    def __str__(self) -> str:
        first, *others = dict.fromkeys(self.grids)
        if others:
            return f"box of grids of {self.columns} columns"
        columns = "each column" if self.columns is None else f"each of {self.columns} columns"
        return f"box from {first.lower!r} to {first.upper!r}, step {first.step!r}, in {columns}"

    @property
    def columns(self) -> int | None:
        return None if isinstance(self.grid, Grid) else len(self.grid)

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grids of the columns; a single one if all columns share it."""
        return (self.grid,) if isinstance(self.grid, Grid) else self.grid

    def grids_of(self, d: int) -> tuple[Grid, ...]:
        """Return the grids of d columns."""
        return (self.grid,) * d if isinstance(self.grid, Grid) else self.grid

    @property
    def reach(self) -> int:
        return int(self.widths.max())

    @property
    def magnitude(self) -> float:
        return max(max(abs(grid.lower), abs(grid.upper)) for grid in self.grids)

    @property
    def coarsest(self) -> float:
        return max(grid.step for grid in self.grids)

    @cached_property
    def widths(self) -> Integers:
        """The last code of each grid."""
        return np.array([grid.size - 1 for grid in self.grids])

    @cached_property
    def origins(self) -> Integers:
        """The least point of each grid, in steps from 0."""
        return np.array([grid.first for grid in self.grids])

    @cached_property
    def distances(self) -> Integers:
        """The largest magnitude of a point of each grid, in steps."""
        return np.asarray(np.maximum(np.abs(self.origins), np.abs(self.origins + self.widths)))

    @cached_property
    def steps(self) -> Values:
        """The step of each grid."""
        return np.array([grid.step for grid in self.grids])

    def means(self, sums: Integers, n: int) -> Values:
        whole, rest = np.divmod(np.clip(sums, 0, n * self.widths), n)
        return np.asarray((self.origins + whole + rest / n) * self.steps)

    def sums(self, sums: Integers, n: int) -> Values:
        # The sum in steps in two parts, so that it is rounded once.
        origins = [n * origin for origin in self.origins.tolist()]
        inside = np.clip(sums, 0, n * self.widths)
        high = np.array([origin >> _PART for origin in origins]) + (inside >> _PART)
        low = np.array([origin & (2**_PART - 1) for origin in origins]) + (inside & (2**_PART - 1))
        return np.asarray((high * 2.0**_PART + low) * self.steps)

    def free_sums(self, sums: Integers, most: int) -> Values:
        lower, upper = self.origins, self.origins + self.widths
        return np.asarray(np.clip(sums, np.where(lower >= 0, 0, -most), np.where(upper <= 0, 0, most)) * self.steps)

    @cached_property
    def _described(self) -> Values:
        """The numbers that describe each grid to the kernel, in columns."""
        return np.array([[grid.lower, grid.upper, grid.step, grid.nan_value, grid.first] for grid in self.grids]).T

    def _resolved(self, rows: NDArray[Any]) -> NDArray[Any]:
        return resolved(rows, self.grids)

    def _encode(self, rows: NDArray[Any], out: Integers) -> None:
        for j, grid in enumerate(self.grids_of(rows.shape[1])):
            out[:, j] = grid.encode(rows[:, j])

    def add(self, rows: Any, sums: Integers, threads: int) -> None:
        if not isinstance(rows, Rows) and abs(rows.strides[0]) > abs(rows.strides[1]):
            super().add(rows, sums, threads)
            return
        # Columns that are apart, each by itself: to put them side by side takes as long as to sum them.
        columns = rows.columns if isinstance(rows, Rows) else rows.T
        for j, (column, grid) in enumerate(zip(columns, self.grids_of(len(columns)), strict=True)):
            total, *_ = _select.moments(
                column, first=grid.first, squares=False, absent=False, workers=threads, **grid.kernel
            )
            sums[:, j] += total >> LIMB, total & (2**LIMB - 1)
        carry(sums)

    def _add(self, rows: NDArray[Any], sums: Integers) -> None:
        shape = self._described.shape[0], rows.shape[1]
        _rows.add_grids(rows, sums, grids=np.ascontiguousarray(np.broadcast_to(self._described, shape)))


@dataclass(frozen=True, init=False, repr=False)
class Ball(Domain):
    """The rows within a distance `radius` of a public center, in the l2 norm, as multiples of a step from the center.

    A row outside is moved to the nearest point of the ball; a row with NaN or an infinity is the center.

    Parameters
    ----------
    radius : float
        Positive, in data units, chosen without knowledge of the data.
    center : float or d floats
        One number for all of any number of columns, or d.
    step : float, optional
        A power of two, at least ``radius * 2**-26`` and at most `radius`: the granularity of a row. Default: the
        smallest with ``radius / step < 2**26``.

    Raises
    ------
    TypeError, ValueError
        Parameters of a wrong type or out of range; numbers of the ball beyond float64.

    Notes
    -----
    The code of a row v is (v - center) / step, moved to the ball of radius ``(1 - 2**-24) radius`` if it is outside
    that, and rounded. If the squared norm of the code exceeds ``floor((radius / step)**2)``, which an exact comparison
    of integers decides, its coordinates are truncated toward 0 instead, after shrinking them if necessary. So the codes
    of two rows differ by at most ``2 radius / step`` in the l2 norm, for any floats
    (https://dpfast.readthedocs.io/en/latest/proofs/rows.html).

    Examples
    --------
    >>> import dpfast as dpf
    >>> ball = dpf.domains.Ball(5.0, step=1.0)
    >>> ball.encode([[3.0, 4.0], [30.0, 40.0], [1.2, float("inf")]])
    array([[3, 4],
           [3, 4],
           [0, 0]])
    """

    radius: float
    center: float | tuple[float, ...] = field(kw_only=True)
    step: float = field(kw_only=True)

    def __init__(self, radius: float, *, center: Any = 0.0, step: float | None = None) -> None:
        radius = checks.positive("radius", radius)
        if step is None:
            step = max(math.ldexp(1.0, math.frexp(radius)[1] - 26), _LEAST_STEP)
        if math.frexp(checks.positive("step", step))[0] != 0.5:
            raise ValueError(f"step must be a power of two, not {step!r}")
        if step < _LEAST_STEP or not 1 <= radius / step <= _MOST_STEPS:
            raise ValueError(
                f"radius must be 1 to 2**26 steps, and a step at least 2**-1022, not radius={radius!r}, step={step!r}"
            )
        if np.ndim(center):
            center = tuple(checks.real("each of center", part) for part in center)
            if not center:
                raise ValueError("center must have at least one coordinate")
        else:
            center = checks.real("center", center)
        for name, value in {"radius": radius, "center": center, "step": float(step)}.items():
            object.__setattr__(self, name, value)
        checks.finite_scale(self.magnitude)

    def __str__(self) -> str:
        center = f"{len(self.center)} coordinates" if isinstance(self.center, tuple) else repr(self.center)
        return f"ball of radius {self.radius!r} around {center}, step {self.step!r}"

    @property
    def columns(self) -> int | None:
        return len(self.center) if isinstance(self.center, tuple) else None

    @property
    def ratio(self) -> float:
        """The radius in steps, exact."""
        return self.radius / self.step

    @cached_property
    def most(self) -> int:
        """The largest squared norm of a code, ``floor((radius / step)**2)``."""
        return math.floor(Fraction(self.ratio) ** 2)

    @property
    def reach(self) -> int:
        return math.isqrt(self.most)

    @property
    def coarsest(self) -> float:
        return self.step

    @property
    def magnitude(self) -> float:
        return float(np.abs(self.center).max()) + self.radius

    def means(self, sums: Integers, n: int) -> Values:
        return np.asarray(np.asarray(self.center) + _shortened(sums / n, self.ratio) * self.step)

    def sums(self, sums: Integers, n: int) -> Values:
        return np.asarray(n * np.asarray(self.center) + _shortened(sums.astype(np.float64), n * self.ratio) * self.step)

    def free_sums(self, sums: Integers, most: int) -> Values:
        return np.asarray(sums * self.step)

    def center_of(self, d: int) -> Values:
        """Return the center of d columns."""
        return np.ascontiguousarray(np.broadcast_to(np.array(self.center, dtype=np.float64), (d,)))

    def _kernel(self, d: int) -> dict[str, Any]:
        """Return the keyword arguments that describe the ball to the kernel."""
        most = float(self.most)
        return {"center": self.center_of(d), "inverse": 1 / self.step, "radius": self.ratio, "most": most}

    def for_products(self) -> Ball:
        """Return the same ball, if necessary with a coarser step: ``radius / step < 2**23``, as
        products of codes need.
        """
        return self.with_digits(_PRODUCT_DIGITS)

    def with_digits(self, digits: int) -> Ball:
        """Return the same ball, if necessary with a coarser step: ``radius / step < 2**digits``."""
        step = max(self.step, math.ldexp(1.0, math.frexp(self.radius)[1] - digits))
        return self if step == self.step else Ball(self.radius, center=self.center, step=step)

    def add_products(self, rows: NDArray[Any], sums: Integers, threads: int) -> None:
        """Add the products of codes, and the codes, to exact sums in the order of `_rows.add_products`."""
        add = partial(_rows.add_products, **self._kernel(rows.shape[1]))
        _add_in_parts(add, rows, sums=sums, threads=threads)

    def add_labelled_products(
        self, rows: NDArray[Any], labels: NDArray[Any], ball: Ball, sums: Integers, threads: int
    ) -> None:
        """Do the same for records with labels in a `ball` of one column, whose codes come after those of the row."""
        own = {f"label_{name}": value for name, value in ball._kernel(1).items()}
        add = partial(_rows.add_labelled_products, **self._kernel(rows.shape[1]), **own)
        _add_in_parts(add, rows, labels, sums=sums, threads=threads)

    def add_gradients(
        self, rows: NDArray[Any], labels: NDArray[Any], sums: Integers, threads: int, **options: Any
    ) -> None:
        """Add clipped gradients of the records to exact sums, with the options of `_rows.add_gradients`."""
        add = partial(_rows.add_gradients, **self._kernel(rows.shape[1]), **options)
        _add_in_parts(add, rows, labels, sums=sums, threads=threads)

    def residuals(self, rows: NDArray[Any], labels: Values, slopes: Values) -> Values:
        """Replace labels by their distances from the products of codes and slopes, and return them; 0 for NaN."""
        _rows.take_residuals(rows, labels, slopes=slopes, **self._kernel(rows.shape[1]))
        return labels

    def _encode(self, rows: NDArray[Any], out: Integers) -> None:
        _rows.encode_ball(rows, out, **self._kernel(rows.shape[1]))

    def _add(self, rows: NDArray[Any], sums: Integers) -> None:
        _rows.add_ball(rows, sums, **self._kernel(rows.shape[1]))


def _shortened(vectors: Values, most: float) -> Values:
    """Vectors along the last axis, those longer than `most` shortened to it."""
    norms = np.sqrt(np.sum(vectors**2, axis=-1, keepdims=True))
    return np.asarray(vectors * (most / np.maximum(norms, most)))
