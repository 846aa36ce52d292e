"""Public domains of the columns of a table, and the columns of users' tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast import keys
from dpfast._kernels import _bins
from dpfast.core import checks, containers
from dpfast.core.grid import Grid, Points, check_points, natural_step, unbounded
from dpfast.core.traps import Trap
from dpfast.densities.cells import (
    CHUNK,
    axis_with,
    check_bins,
    edges_at,
    equal_codes,
    even_bins,
    is_whole,
    numbers_between,
    span,
    traps_of_bins,
)

Codes = NDArray[np.uint16]
MOST_BINS = 2**16
_OTHER = "the further category of missing and unlisted keys is None: leave out missing=, or name a category"


class Column(ABC):
    """A public division of the values of a column into bins, which are numbered from 0."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of bins."""

    @abstractmethod
    def encode(self, name: str, values: Any) -> Codes:
        """Return the bin of each value of a column. PRIVATE."""

    @abstractmethod
    def draw(self, bins: Codes, rng: np.random.Generator) -> NDArray[Any]:
        """Return a value in each of these bins."""

    @property
    @abstractmethod
    def labels(self) -> tuple[Any, ...]:
        """A name for each bin."""


@dataclass(frozen=True)
class Categories(Column):
    """The categories of a column of keys.

    Parameters
    ----------
    values : sequence of keys
        Distinct public keys: text, bytes or integers (also booleans), of the kind of the column.
    missing : key, optional
        The category of missing keys and of those that are not listed. Default: a further category, None.

    Examples
    --------
    >>> import dpfast as dpf
    >>> dpf.Categories(["a", "b"]).labels
    ('a', 'b', None)
    >>> dpf.Categories([0, 1], missing=0).size
    2
    """

    values: Sequence[Any]
    missing: Any = None

    def __post_init__(self) -> None:
        if isinstance(self.values, (str, bytes)) or not hasattr(self.values, "__iter__"):
            raise TypeError(f"values must be a sequence of keys, not {type(self.values).__name__}")
        values = np.asarray(self.values).tolist() if hasattr(self.values, "dtype") else list(self.values)
        object.__setattr__(self, "values", tuple(values))
        if not 1 <= len(values) < MOST_BINS:
            raise ValueError(f"values must be 1 to 65535 keys, not {len(values)}")
        keys.public_table(values, values, "values")  # reject missing and duplicate keys
        if self.missing is not None:
            self._position(self.missing)

    def _position(self, key: Any) -> int:
        place = int(keys.lookup([key], list(self.values), "values")[0])
        if place < 0:
            raise ValueError("missing must be one of the values")
        return place

    @property
    def size(self) -> int:
        return len(self.values) + (self.missing is None)

    @property
    def labels(self) -> tuple[Any, ...]:
        return (*self.values, *((None,) if self.missing is None else ()))

    def encode(self, name: str, values: Any) -> Codes:
        places = keys.lookup(values, list(self.values), name)
        other = len(self.values) if self.missing is None else self._position(self.missing)
        return np.where(places < 0, other, places).astype(np.uint16)

    def draw(self, bins: Codes, rng: np.random.Generator) -> NDArray[Any]:
        whole = all(type(label) is int for label in self.labels)
        listed = np.empty(self.size, np.int64 if whole else object)
        listed[:] = self.labels
        return listed.take(bins)


@dataclass(frozen=True)
class Bins(Column):
    """The bins of a column of numbers.

    Parameters
    ----------
    bins : int or sequence of floats
        The number of bins of equal width, for a Grid; or the increasing inner edges in data units: a value at an edge
        belongs to the bin above it. Bins of integers and booleans, and those of a Grid of step 1, divide the whole
        numbers within the bounds. Default: a number from the public size and budget of a release.
    bounds : pair of floats
        Public bounds, short for ``grid=Grid(*bounds)``, with step 1 if a column declares an integer or boolean dtype.
        Without bounds and grid, and without edges, the edges are quantiles that a part of the budget pays for.
    grid : Grid or FloatGrid
        Instead of `bounds`. Missing numbers of a grid with ``missing="drop"``, the default of a FloatGrid and without
        bounds, have a further bin, None, whose synthetic records are NaN. Integers and booleans of NumPy have none.

    Examples
    --------
    >>> import dpfast as dpf
    >>> dpf.Bins(4, bounds=(0, 100)).labels
    ('[0, 25)', '[25, 50)', '[50, 75)', '[75, 100]')
    >>> dpf.Bins(5, grid=dpf.Grid(1, 5, step=1)).labels
    ('1', '2', '3', '4', '5')
    >>> dpf.Bins([0, 1000], grid=dpf.FloatGrid()).size  # with one for missing numbers
    4
    """

    bins: int | Sequence[float] | None = None
    bounds: tuple[float, float] | None = field(default=None, kw_only=True)
    grid: Points | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.bounds is not None:
            object.__setattr__(self, "bounds", checks.pair("bounds", self.bounds))
            checks.bounds_or_grid(self.bounds, self.grid)
            _grid(*self.bounds, None)  # reject bounds that make no grid
        if self.grid is not None:
            check_points(self.grid)
            if self.grid.missing == "half":
                raise ValueError("missing must be a number, 'lower' or 'drop' for a column of a table, not 'half'")
        if self.bins is not None and not isinstance(self.bins, (Sequence, np.ndarray)):
            object.__setattr__(self, "bins", checks.whole("bins", self.bins, least=1))
        elif self.bins is not None:
            object.__setattr__(self, "bins", tuple(checks.real("each of bins", edge) for edge in self.bins))
        if self.bins is not None and not self.private:
            self.within(None).cuts  # noqa: B018  # reject edges that do not fit the grid

    @property
    def private(self) -> bool:
        """Whether the edges are quantiles to be released."""
        no_edges = self.bins is None or isinstance(self.bins, int)
        return no_edges and self.bounds is None and not isinstance(self.grid, Grid)

    def within(self, step: float | None, *, missing: bool = True) -> Bins:
        """Return the same bins with a grid: in place of the bounds, or of floats, which are integers if a step is
        given, and of which some may be missing.
        """
        if self.grid is not None:
            return self
        if self.bounds is None:
            return Bins(self.bins, grid=unbounded(step is not None).with_missing("drop" if missing else "lower"))
        return Bins(self.bins, grid=_grid(*self.bounds, step))

    def with_bins(self, bins: int) -> Bins:
        """Return these bins, or about `bins` of them unless given: not uneven, at most the steps or whole numbers."""
        if self.bins is not None or self.grid is None:
            return self
        return Bins(even_bins(self.grid, min(bins, span(self.grid)), MOST_BINS), grid=self.grid)

    @cached_property
    def cuts(self) -> NDArray[np.int64]:
        """The first code of each bin but the first."""
        assert self.grid is not None
        if isinstance(self.bins, tuple):
            edges = np.array(self.bins, dtype=np.float64)
            cuts = self.grid.encode(np.ceil(edges) if is_whole(self.grid) else edges)
            if np.any(np.diff(cuts, prepend=0) < 1):
                raise ValueError("bins must be increasing edges on different points of the grid, above its lower bound")
        else:
            assert isinstance(self.bins, int)
            check_bins(self.grid, self.bins)
            cuts = equal_codes(self.grid, self.bins)[1:-1]
        if len(cuts) + self._sets_apart >= MOST_BINS:
            raise ValueError(f"bins must be at most 65536 with that of missing numbers, not {len(cuts) + 1}")
        return cuts

    @property
    def _axis(self) -> _bins.Axis:
        assert isinstance(self.grid, Grid)
        return axis_with(self.grid, self.cuts)

    @property
    def _sets_apart(self) -> bool:
        """Whether missing numbers have a bin of their own, the last one."""
        return self.grid is not None and self.grid.missing == "drop"

    @property
    def size(self) -> int:
        return len(self.cuts) + 1 + self._sets_apart

    @cached_property
    def edges(self) -> NDArray[np.float64]:
        """The first point of each bin, and the last point of the last one, in data units; whole numbers: the halves."""
        assert self.grid is not None
        return edges_at(self.grid, np.concatenate([[0], self.cuts, [self.grid.size - 1]]))

    @property
    def labels(self) -> tuple[str | None, ...]:
        made = self.within(None)
        return (*made._intervals, None) if made._sets_apart else made._intervals

    @property
    def _intervals(self) -> tuple[str, ...]:
        assert self.grid is not None
        if is_whole(self.grid):
            return tuple(f"{a:.9g}" if a == b else f"{a:.9g} to {b:.9g}" for a, b in numbers_between(self.edges))
        shown = [f"{edge:.9g}" for edge in self.edges]
        closing = [")"] * (len(shown) - 2) + ["]"]
        return tuple(f"[{a}, {b}{end}" for a, b, end in zip(shown, shown[1:], closing, strict=False))

    def encode(self, name: str, values: Any) -> Codes:
        numbers = containers.vector(name, values)
        if not self._sets_apart or numbers.dtype.kind != "f":
            return self._located(numbers)
        absent = np.isnan(numbers)
        return np.where(absent, self.size - 1, self._located(np.where(absent, 0, numbers))).astype(np.uint16)

    def _located(self, numbers: NDArray[Any]) -> Codes:
        assert self.grid is not None
        if isinstance(self.grid, Grid):
            bins = np.empty(len(numbers), np.int32)
            _bins.locate(numbers[:, None], [self._axis], bins)
            return bins.astype(np.uint16)
        return np.searchsorted(self.cuts, self.grid.encode(numbers), side="right").astype(np.uint16)

    def draw(self, bins: Codes, rng: np.random.Generator) -> NDArray[np.float64]:
        """Uniform between the edges of the bin; beyond the outer edges of a FloatGrid, as far as twice the next bin.
        NaN for missing numbers.
        """
        if not self._sets_apart:
            return self._drawn(bins, rng)
        absent = bins == self.size - 1
        return np.where(absent, np.nan, self._drawn(np.where(absent, 0, bins), rng))

    def _drawn(self, bins: Codes, rng: np.random.Generator) -> NDArray[np.float64]:
        grid = self.grid
        assert grid is not None
        edges = np.concatenate([[0], self.cuts, [grid.size - 1]])
        if isinstance(grid, Grid):
            drawn = np.empty(len(bins))
            for first in range(0, len(bins), CHUNK):
                cells = bins[first : first + CHUNK].astype(np.int32)
                part = drawn[first : first + CHUNK]
                _bins.fill_points(rng.bit_generator, cells, edges, 0, grid.first, grid.step, part)
            return drawn
        starts, ends = edges[:-1], np.append(self.cuts, grid.size) - 1  # the first and last codes
        low, high = grid.decode(starts), grid.decode(ends)
        if len(self.cuts):
            with np.errstate(over="ignore"):
                before, after = (high[0] - 2 * (high[1] - low[1]), low[-1] + 2 * (high[-2] - low[-2]))
            single = len(self.cuts) == 1
            low[0] = high[0] if single else max(before, grid.lower)
            high[-1] = low[-1] if single else min(after, grid.upper)
        share = rng.random(len(bins))
        return np.asarray(grid.decode(grid.encode((1 - share) * low[bins] + share * high[bins])))


@lru_cache(maxsize=256, typed=True)  # 1 and True are different keys
def _grid(lower: Any, upper: Any, step: float | None) -> Grid:
    """Return a grid, whose exact arithmetic takes longer than the counts of a small table."""
    return Grid(lower, upper, step=step)


def column_of(given: Any) -> Column:
    """Return the domain of a column from what users give: categories, bounds, a grid, or a domain."""
    if isinstance(given, Column):
        return given
    if given is None or isinstance(given, Points):
        return Bins(grid=given)
    if isinstance(given, tuple) and len(given) == 2 and all(map(checks.is_real, given)):
        return Bins(bounds=given)
    if containers.is_sequence(given) or isinstance(given, (np.ndarray, range)):
        _check_meant(given)
        return Categories(given)
    raise TypeError(
        f"a column must be a pair of bounds, a Grid, Bins, or a list of categories, not {type(given).__name__}"
    )


def _check_meant(given: Any) -> None:
    """Reject two numbers in a list or an array, which may be meant as bounds; a range is a list of categories."""
    if not isinstance(given, range) and np.shape(given) == (2,) and all(map(checks.is_real, given)):
        low, high = given[0], given[1]
        raise TypeError(
            f"two numbers in a list may be bounds or categories: write the tuple ({low}, {high}) for bounds, or "
            f"dpf.Categories([{low}, {high}]) for two categories"
        )


def columns_of(given: Any) -> tuple[tuple[Any, Column], ...]:
    """Return the names and domains of columns, from a mapping or from pairs."""
    pairs = given.items() if isinstance(given, Mapping) else given
    try:
        columns = tuple((name, column_of(column)) for name, column in pairs)
    except (TypeError, ValueError) as error:
        if isinstance(given, Mapping):
            raise
        raise TypeError("columns must be a mapping from names to domains") from error
    if not columns:
        raise ValueError("columns must name at least one column")
    if len(dict(columns)) < len(columns):
        raise ValueError("columns must have different names")
    return columns


class DataColumns:
    """The columns of a user's table: a mapping, a frame, a structured array, or rows of numbers or keys.

    Parameters
    ----------
    x : mapping, data frame, table of Arrow, structured array, or array_like of shape (n, d)
    names : sequence
        The names of the wanted columns, which for rows are in the order of the columns.
    """

    def __init__(self, x: Any, names: Sequence[Any]) -> None:
        self._names = list(names)
        self._columns = dict(zip(self._names, self._read(x), strict=True))
        lengths = {_length(column) for column in self._columns.values()}
        if len(lengths) > 1:
            raise ValueError("the columns of x must be equally long")
        [self.n] = lengths

    def __getitem__(self, name: Any) -> Any:
        return self._columns[name]

    def _read(self, x: Any) -> list[Any]:
        containers.check_in_memory("x", x)
        if hasattr(type(x), "named_columns"):  # Chunks
            raise TypeError("x must be a whole table, not Chunks: marginals read it several times")
        if isinstance(x, Mapping):
            return [x[list(x)[_place(name, list(x))]] for name in self._names]
        known = containers.column_names(x)
        if known is not None:
            return [_column_at(x, _place(name, known)) for name in self._names]
        if isinstance(x, np.ndarray) and x.dtype.names is not None:
            return [x[x.dtype.names[_place(name, x.dtype.names)]] for name in self._names]
        if not (isinstance(x, np.ndarray) and x.ndim == 2):
            x = containers.matrix("x", x)
        if x.shape[1] != len(self._names):
            raise ValueError(f"x must have {len(self._names)} columns, not shape {containers.shape_of(x)}")
        return [x[:, j] for j in range(x.shape[1])]


def _place(name: Any, names: Sequence[Any]) -> int:
    """Return the place of a name among the names of columns, which are text in frames."""
    for wanted in (name, str(name)):
        if wanted in names:
            check_different(names, [wanted])
            return list(names).index(wanted)
    raise ValueError(f"x has no column {name!r}")


def check_different(names: Sequence[Any], wanted: Sequence[Any]) -> None:
    """Raise a ValueError if several columns of a frame have the same one of the wanted names."""
    for name in wanted:
        if list(names).count(name) > 1:
            raise ValueError(f"several columns of x are named {name!r}: rename all but one")


def _column_at(x: Any, place: int) -> Any:
    """Return a column of a data frame or a table."""
    if hasattr(x, "iloc"):
        return x.iloc[:, place]
    return x.get_columns()[place] if hasattr(x, "get_columns") else x.column(place)


def _length(column: Any) -> int:
    if not hasattr(column, "__len__"):
        raise TypeError(f"a column must be a sequence or an array, not {type(column).__name__}")
    return len(column)


def whole_columns(columns: Sequence[tuple[Any, Column]], table: DataColumns) -> set[Any]:
    """Return the names of the columns of integers within bounds."""
    return {
        name
        for name, column in columns
        if isinstance(column, Bins) and column.bounds is not None and containers.declares_integers(table[name])
    }


def resolved_columns(
    columns: Sequence[tuple[Any, Column]], table: DataColumns, bins: int
) -> tuple[tuple[Any, Column], ...]:
    """Return the columns with grids in place of bounds, of the natural step of each column, and numbers of bins."""
    made = []
    for name, column in columns:
        if isinstance(column, Bins):
            given = table[name]
            column = column.within(natural_step(given), missing=containers.may_be_missing(given)).with_bins(bins)
        made.append((name, column))
    return tuple(made)


def traps_of_columns(columns: Sequence[tuple[Any, Column]]) -> Iterator[Trap]:
    """Yield the traps of numbers of bins that users gave."""
    for _, column in columns:
        if isinstance(column, Bins) and isinstance(column.bins, int) and isinstance(column.grid, Grid):
            yield from traps_of_bins([column.grid], [column.bins])
