"""Releases by key, in the form of the library that the records came from."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.core import plotting
from dpfast.core.tabular import Tabular, unused
from dpfast.groups.labels import GroupKeys, kind_of, library_of, name_of
from dpfast.mechanisms import Mechanism

_SHOWN = 10  # keys in a repr
_KEY = "key"  # the name of a column of keys without a name
_RELEASE = "release"  # the name of a column of releases without a name, in tables that need one


class KeyedReleases(Tabular, Mapping[Any, Any]):
    """The release of each group by its key: a mapping, and an array in the order of the keys.

    Parameters
    ----------
    keys : sequence
        The keys: text, bytes, numbers or the like, or tuples of them for several columns of keys.
    array : ndarray of float64, shape (G,) or (G, ...)
        The releases.
    names : sequence of str, optional
        The names of the columns of keys, for tables. Default: "key", or "key_0", "key_1" and so on.
    parts : sequence of str, optional
        The names of the numbers of a release, if it is not a single one.
    mechanism : Mechanism, optional
        The mechanism that made each of the releases.
    sizes : ndarray of int, shape (G,), optional
        The numbers of records of the groups, if they are public.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.groups import KeyedReleases
    >>> released = KeyedReleases(["north", "south"], np.array([2.5, np.nan]))
    >>> released["north"], list(released), released.array
    (2.5, ['north', 'south'], array([2.5, nan]))
    """

    def __init__(
        self,
        keys: Sequence[Hashable],
        array: NDArray[np.float64],
        names: Sequence[str] = (),
        parts: Sequence[str] = (),
        mechanism: Mechanism | None = None,
        sizes: NDArray[np.int64] | None = None,
    ) -> None:
        self._places = {key: i for i, key in enumerate(keys)}
        self.array, self._names, self._parts = array, list(names), list(parts)
        self._mechanism, self._sizes = mechanism, sizes

    def __getitem__(self, key: Any) -> Any:
        release = self.array[self._places[key]]
        return release if release.ndim else float(release)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.array, dtype) if copy or dtype is not None else self.array

    def _caption(self) -> str:
        what = "Groups" if self._mechanism is None else repr(self._mechanism).strip("<>")
        return f"{what}; releases for {len(self):,} groups"

    def _as_columns(self) -> dict[str, Any]:
        """Return the keys, in a column or several, and the numbers of the releases."""
        keys = list(self)
        several = bool(keys) and isinstance(keys[0], tuple)
        cells = [list(column) for column in zip(*keys, strict=True)] if several else [keys]
        names = self._names or ([f"{_KEY}_{j}" for j in range(len(cells))] if several else [_KEY])
        columns: dict[str, Any] = dict(zip(names, cells, strict=True))
        numbers = self.array.reshape(len(keys), -1).T
        parts = (self._parts or [str(j) for j in range(len(numbers))]) if self.array.ndim > 1 else [_RELEASE]
        return {**columns, **{unused(part, columns): x for part, x in zip(parts, numbers, strict=True)}}

    def interval(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """Intervals for the exact statistic of each group, each by itself: what the noise can have done.

        Those of `Mechanism.noise_interval`; NaN for a group without a release.

        Parameters
        ----------
        confidence : float
            In (0, 1).

        Returns
        -------
        ndarray of float64, shape (G, 2)

        Raises
        ------
        TypeError
            If the spread of the releases depends on the data, as that of medians does, or the mechanism is not known.
        """
        if self._mechanism is None or self.array.ndim > 1:
            raise TypeError("the noise of these releases is not known")
        sizes = [None] * len(self) if self._sizes is None else self._sizes.tolist()
        return np.array(
            [
                (np.nan, np.nan) if np.isnan(x) else self._mechanism.noise_interval(x, confidence, n=n)
                for x, n in zip(self.array.tolist(), sizes, strict=True)
            ]
        ).reshape(-1, 2)

    def plot(self, ax: Any = None, *, unit: str | None = None, confidence: float = 0.95) -> Any:
        """Plot the release of each group with Matplotlib, with the interval of the noise where it is known.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Default: the current axes.
        unit : str, optional
            The unit of the releases, for the label of the axis.
        confidence : float
            Of the intervals, see `interval`.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            If a release is not a single number.
        """
        if self.array.ndim > 1:
            raise ValueError("plot supports releases of a single number for each group")
        reach, notes = None, [] if self._mechanism is None else [self._mechanism.privacy]
        with suppress(TypeError):
            low, high = self.interval(confidence).T
            reach = np.array([self.array - low, high - self.array])
        ax = plotting.axes(ax)
        ink = plotting.ink(ax)
        names = [plotting.plain(", ".join(map(str, key)) if isinstance(key, tuple) else key) for key in self]
        ax.errorbar(self.array, names, xerr=reach, fmt="o", capsize=4, color=ink, markerfacecolor=plotting.SKY)
        ax.invert_yaxis()
        ax.set_xlabel(plotting.with_unit("release", unit))
        title = f"Private releases for {len(self):,} groups"
        if reach is not None:
            title += f", {plotting.percent(confidence)} intervals of the noise"
        plotting.entitle(ax, title, *notes)
        return ax

    def __repr__(self) -> str:
        shown = [f"{key!r}: {np.asarray(release).tolist()}" for key, release in islice(self.items(), _SHOWN)]
        return f"KeyedReleases({{{', '.join(shown + ['...'] * (len(self) > _SHOWN))}}})"


@dataclass(frozen=True)
class ReleasedColumn:
    """The releases of one mechanism for all groups.

    Parameters
    ----------
    name : str or None
        None for the only mechanism of a call.
    array : ndarray of float64, shape (G,) or (G, ...)
        The releases.
    parts : sequence of str
        The names of the numbers of one release, unless it is a single number.
    mechanism : Mechanism, optional
    sizes : ndarray of int64, shape (G,), optional
        The numbers of records of the groups, if they are public.
    """

    name: str | None
    array: NDArray[np.float64]
    parts: Sequence[str]
    mechanism: Mechanism | None = None
    sizes: NDArray[np.int64] | None = None

    def keyed(self, keys: GroupKeys) -> KeyedReleases:
        """Return the releases by key."""
        return KeyedReleases(keys.listed, self.array, keys.column_names(), self.parts, self.mechanism, self.sizes)

    def numbers(self, default: Any) -> dict[Any, NDArray[np.float64]]:
        """Return the columns of numbers by name: that of the mechanism or, without one, `default`."""
        if self.array.ndim == 1:
            return {default if self.name is None else self.name: self.array}
        names = self.parts if self.name is None else [f"{self.name} {part}" for part in self.parts]
        return dict(zip(names, self.array.reshape(len(self.array), len(names)).T, strict=True))


def result(keys: GroupKeys, columns: Sequence[ReleasedColumn], x: Any) -> Any:
    """Return the releases of all mechanisms, as a frame if the labels or the records were in one."""
    library = next(filter(None, map(library_of, (*keys.columns, x))), None)
    if library == "pandas":
        return _pandas(keys, columns, name_of(x))
    if library in ("polars", "pyarrow"):
        levels = _levels(keys, _polars_level if library == "polars" else _arrow_level)
        if levels is not None:
            default = str(name_of(x) or _RELEASE)
            numbers = _numbers(columns, _RELEASE if default in levels else default)
            if both := sorted(set(levels) & set(numbers)):
                raise ValueError(f"{both[0]!r} names both a column of keys and a release: rename one")
            return (_polars if library == "polars" else _arrow)(levels, numbers)
    if columns[0].name is None:
        return columns[0].keyed(keys)
    return {column.name: column.keyed(keys) for column in columns}


def _levels(keys: GroupKeys, level: Callable[[str, list[Any], Any], Any]) -> dict[str, Any] | None:
    """Return the columns of keys by name; None if the library cannot hold one of them."""
    names = keys.column_names()
    made = dict(zip(names, map(level, names, keys.cells(), keys.columns), strict=True))
    return None if any(column is None for column in made.values()) else made


def _numbers(columns: Sequence[ReleasedColumn], default: Any) -> dict[Any, NDArray[np.float64]]:
    return {name: array for column in columns for name, array in column.numbers(default).items()}


def _pandas(keys: GroupKeys, columns: Sequence[ReleasedColumn], name: Any) -> Any:
    import pandas

    if keys.index is not None:
        index = keys.index.rename(keys.names if len(keys.names) > 1 else keys.names[0])
    else:
        made = list(map(_pandas_level, keys.cells(), keys.columns, keys.names))
        index = made[0] if len(made) == 1 else pandas.MultiIndex.from_arrays(made)
    numbers = _numbers(columns, name)
    if len(columns) == 1 and columns[0].name is None and columns[0].array.ndim == 1:
        return pandas.Series(columns[0].array, index=index, name=name)
    return pandas.DataFrame(numbers, index=index)


def _kind(cells: list[Any], column: Any) -> str:
    """Return the kind of keys in a column of labels: of floats, those that users give as integers,
    released ones never.
    """
    kind = kind_of(column)
    return "integers" if kind == "floats" and cells and set(map(type, cells)) == {int} else kind


def _pandas_level(cells: list[Any], column: Any, name: Any) -> Any:
    """Keys with the dtype of their column of labels or, if that is not one of keys, by its kind.

    Those of a categorical column have a dtype by themselves, because categories may come from private data.
    """
    import pandas

    dtype = column.dtype if library_of(column) == "pandas" else None
    if hasattr(dtype, "categories"):
        dtype = None
    elif dtype is None or getattr(dtype, "kind", "O") in "fb":
        kinds = {"integers": "int64", "unsigned": "uint64", "floats": "float64", "text": "str"}
        dtype = kinds.get(_kind(cells, column))
    for wanted in (dtype, None):
        with suppress(TypeError, ValueError, OverflowError):  # keys of another type, or surrogates in text
            return pandas.Index(cells, dtype=wanted, name=name)
    return pandas.Index(cells, dtype=object, name=name)


def _polars_level(name: str, cells: list[Any], column: Any) -> Any:
    import polars

    kinds = {"integers": polars.Int64, "unsigned": polars.UInt64, "floats": polars.Float64}
    dtype: Any = (kinds | {"text": polars.String, "bytes": polars.Binary}).get(_kind(cells, column))
    if library_of(column) == "polars" and column.dtype.is_integer():
        dtype = column.dtype
    for wanted in (dtype, None):
        with suppress(TypeError, ValueError, OverflowError, polars.exceptions.PolarsError):
            return polars.Series(name, cells, dtype=wanted)
    return polars.Series(name, cells, dtype=polars.Object)


def _polars(levels: dict[str, Any], numbers: dict[str, NDArray[np.float64]]) -> Any:
    import polars

    return polars.DataFrame([*levels.values(), *(polars.Series(name, array) for name, array in numbers.items())])


def _arrow_level(name: str, cells: list[Any], column: Any) -> Any:
    import pyarrow

    kinds = {"integers": "int64", "unsigned": "uint64", "floats": "double", "text": "string", "bytes": "binary"}
    dtype: Any = kinds.get(_kind(cells, column))
    if library_of(column) == "pyarrow":
        own = getattr(column.type, "value_type", column.type)
        dtype = own if not (pyarrow.types.is_floating(own) or pyarrow.types.is_boolean(own)) else dtype
    if dtype is None and len(set(map(type, cells))) > 1:  # Arrow would make bytes of text
        return None
    for wanted in (dtype, None):
        with suppress(TypeError, ValueError, OverflowError, pyarrow.ArrowException):
            return pyarrow.array(cells, wanted)
    return None


def _arrow(levels: dict[str, Any], numbers: dict[str, NDArray[np.float64]]) -> Any:
    import pyarrow

    return pyarrow.table({**levels, **{name: pyarrow.array(values) for name, values in numbers.items()}})
