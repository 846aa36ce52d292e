"""Releases by key, in the form of the library that the records came from."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.groups.labels import GroupKeys, library_of, name_of

_SHOWN = 10  # keys in a repr
_RELEASE = "release"  # the name of a column of releases without a name, in tables that need one


class KeyedReleases(Mapping[Any, Any]):
    """The release of each group by its key: a mapping, and an array in the order of the keys.

    Parameters
    ----------
    keys : sequence
        The keys: text, bytes, integers, or tuples of them for several columns of keys.
    array : ndarray of float64, shape (G,) or (G, ...)
        The releases.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.groups import KeyedReleases
    >>> released = KeyedReleases(["north", "south"], np.array([2.5, np.nan]))
    >>> released["north"], list(released), released.array
    (2.5, ['north', 'south'], array([2.5, nan]))
    """

    def __init__(self, keys: Sequence[Hashable], array: NDArray[np.float64]) -> None:
        self._places = {key: i for i, key in enumerate(keys)}
        self.array = array

    def __getitem__(self, key: Any) -> Any:
        release = self.array[self._places[key]]
        return release if release.ndim else float(release)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.array, dtype) if copy or dtype is not None else self.array

    def __repr__(self) -> str:
        shown = [f"{key!r}: {np.asarray(release).tolist()}" for key, release in islice(self.items(), _SHOWN)]
        return f"KeyedReleases({{{', '.join(shown + ['...'] * (len(self) > _SHOWN))}}})"


@dataclass(frozen=True)
class Column:
    """The releases of one mechanism for all groups.

    Parameters
    ----------
    name : str or None
        None for the only mechanism of a call.
    array : ndarray of float64, shape (G,) or (G, ...)
        The releases.
    parts : sequence of str
        The names of the numbers of one release, unless it is a single number.
    """

    name: str | None
    array: NDArray[np.float64]
    parts: Sequence[str]

    def numbers(self, default: Any) -> dict[Any, NDArray[np.float64]]:
        """The columns of numbers by name: that of the mechanism or, without one, `default`."""
        if self.array.ndim == 1:
            return {default if self.name is None else self.name: self.array}
        names = self.parts if self.name is None else [f"{self.name} {part}" for part in self.parts]
        return dict(zip(names, self.array.reshape(len(self.array), len(names)).T, strict=True))


def result(keys: GroupKeys, columns: Sequence[Column], x: Any) -> Any:
    """The releases of all mechanisms, as a frame if the labels or the records were in one."""
    library = next(filter(None, map(library_of, (*keys.columns, x))), None)
    if library == "pandas":
        return _pandas(keys, columns, name_of(x))
    if library in ("polars", "pyarrow"):
        taken, default = keys.column_names(), str(name_of(x) or _RELEASE)
        numbers = _numbers(columns, _RELEASE if default in taken else default)
        if both := sorted(set(taken) & set(numbers)):
            raise ValueError(f"{both[0]!r} names both a column of keys and a release: rename one")
        return (_polars if library == "polars" else _arrow)(keys, numbers)
    if columns[0].name is None:
        return KeyedReleases(keys.listed, columns[0].array)
    return {column.name: KeyedReleases(keys.listed, column.array) for column in columns}


def _numbers(columns: Sequence[Column], default: Any) -> dict[Any, NDArray[np.float64]]:
    return {name: array for column in columns for name, array in column.numbers(default).items()}


def _pandas(keys: GroupKeys, columns: Sequence[Column], name: Any) -> Any:
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


def _pandas_level(cells: list[Any], column: Any, name: Any) -> Any:
    """Keys with the dtype of their column of labels, unless that is categorical, of floats or of booleans."""
    import pandas

    dtype = column.dtype if library_of(column) == "pandas" else None
    if hasattr(dtype, "categories") or getattr(dtype, "kind", "O") in "fb":
        dtype = None
    try:
        return pandas.Index(cells, dtype=dtype, name=name)
    except (TypeError, ValueError, OverflowError):  # public keys of another type
        return pandas.Index(cells, name=name)


def _polars(keys: GroupKeys, numbers: dict[str, NDArray[np.float64]]) -> Any:
    import polars

    def series(name: str, cells: list[Any], column: Any) -> Any:
        dtype = column.dtype if library_of(column) == "polars" else None
        if dtype is not None and not (dtype.is_integer() or dtype == polars.Binary):
            dtype = None if dtype.is_float() or dtype in (polars.Boolean, polars.Null, polars.Object) else polars.String
        try:
            return polars.Series(name, cells, dtype=dtype)
        except (TypeError, OverflowError, polars.exceptions.PolarsError):  # public keys of another type
            return polars.Series(name, cells)

    made = map(series, keys.column_names(), keys.cells(), keys.columns)
    return polars.DataFrame([*made, *(polars.Series(name, array) for name, array in numbers.items())])


def _arrow(keys: GroupKeys, numbers: dict[str, NDArray[np.float64]]) -> Any:
    import pyarrow

    def array(cells: list[Any], column: Any) -> Any:
        kind = getattr(column, "type", None)
        kind = getattr(kind, "value_type", kind)
        try:
            return pyarrow.array(cells, kind)
        except (TypeError, OverflowError, pyarrow.ArrowException):  # public keys of another type
            return pyarrow.array(cells)

    made = dict(zip(keys.column_names(), map(array, keys.cells(), keys.columns), strict=True))
    return pyarrow.table({**made, **{name: pyarrow.array(values) for name, values in numbers.items()}})
