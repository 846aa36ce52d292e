"""Labels of records and keys of groups: text, bytes, numbers and others, in one column or several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast import keys
from dpfast.core import containers
from dpfast.keys.cells import cell_bytes, cell_of

_KEY = "key"  # the name of a column of keys without a name, in tables that need one


@dataclass(frozen=True)
class GroupKeys:
    """The keys of the groups, which are public or released, in the order of the result.

    Parameters
    ----------
    listed : list
        Each key as a str, bytes or int, or a tuple of them for several columns; None for the group of missing labels.
    columns : list of columns
        The labels of the records.
    names : sequence of str or None
        The names of the columns.
    table : dpfast.keys.KeyTable, optional
        The places of the keys, if the types of the columns are known before records are read.
    others : bool
        Whether the last key is that of all other labels, which are not missing.
    """

    listed: list[Any]
    columns: list[Any]
    names: Sequence[Any]
    table: keys.KeyTable | None
    others: bool = False

    @classmethod
    def of(cls, labels: list[tuple[Any, Any]], given: Any, *, nulls: bool = False, others: Any = None) -> GroupKeys:
        """Read keys for these columns of labels, whose types are used, not their records.

        Parameters
        ----------
        labels : list of (name, column)
            See `label_columns`.
        given : sequence, column, index, table or tuple of ndarrays
            The keys; columns of them as a table, or as the tuple of a `Partitions`.
        nulls : bool
            Whether None may be a key of a single column: that of missing labels.
        others : key, optional
            A further key, of all other labels.

        Raises
        ------
        TypeError, ValueError
            Not a sequence with an order; a key that is missing, or cannot be in its column; keys of unequal lengths, or
            equal keys.
        """
        if isinstance(given, (str, bytes, set, frozenset)) or not isinstance(given, Iterable):
            raise TypeError(f"keys must be 'private' or a sequence of public keys in their order, not {given!r}")
        if (table := table_columns(given)) is not None:
            rows = list(zip(*(cells_of(column) for _, column in table), strict=True))
            names = [name for name, _ in table]
        elif isinstance(given, tuple) and given and all(isinstance(column, np.ndarray) for column in given):
            rows = list(zip(*map(_plain, given), strict=True))
            names = [None] * len(given)
        else:
            rows = cells_of(given)
            names = list(given.names) if library_of(given) == "pandas" and hasattr(given, "names") else [name_of(given)]
        width, null = len(labels), None
        if nulls and width == 1 and any(row is None for row in rows):
            null = next(place for place, row in enumerate(rows) if row is None)
            rows = [*rows[:null], *rows[null + 1 :]]
        if width == 1 and set(map(type, rows)) <= {str, bytes, int}:
            listed = rows
        elif width == 1 and isinstance(given, np.ndarray) and given.ndim == 1:  # a tuple in it is one key
            listed = _plain(given)
        elif isinstance(given, tuple) and len(given) == width > 1 and all(isinstance(c, np.ndarray) for c in given):
            listed = rows
        else:
            listed = _listed(rows, width)
        if len(set(listed)) < len(listed):
            raise ValueError("keys must differ from each other")
        named = names if len(names) == width else [None] * width
        columns, found = [column for _, column in labels], [str(name) for name, _ in labels if name is not None]
        if len(set(found)) < len(found):
            raise ValueError(f"the columns of labels must have different names, not {', '.join(map(repr, found))}")
        empty = [_empty(column) for column in columns]
        known = not any(column is None for column in empty)
        places = keys.public_table(listed, together(empty), "labels") if known else None
        every = listed if null is None else [*listed[:null], None, *listed[null:]]
        if others is not None:
            every = [*every, *_listed([others], width)]
            if len(set(every)) < len(every):
                raise ValueError(f"others must differ from the keys, not {others!r}")
        return cls(
            every,
            columns,
            [other if name is None else name for (name, _), other in zip(labels, named, strict=True)],
            places,
            others is not None,
        )

    def __len__(self) -> int:
        return len(self.listed)

    def places(self, threads: int = 1) -> NDArray[np.int64]:
        """Return the place of each record's label among the keys; -1 for one without a group."""
        columns = together(self.columns)
        null = self.listed.index(None) if None in self.listed else None
        known = [key for key in self.listed[: len(self) - self.others] if key is not None]
        if self.table is None:
            codes = keys.lookup(columns, known, "labels")
        else:
            codes = self.table.find(columns, "labels", threads=threads)
        if null is None and not self.others:
            return codes
        missing, unlisted = keys.KeyTable().add(columns) < 0, codes < 0
        if null is not None:
            codes[codes >= null] += 1
            codes[missing] = null
        if self.others:
            codes[unlisted & ~missing] = len(self) - 1
        return codes

    def column_names(self) -> list[str]:
        """Return a name for each column, also for those without one."""
        several = len(self.names) > 1
        return [str(name) if name else f"{_KEY}_{j}" if several else _KEY for j, name in enumerate(self.names)]


def label_columns(labels: Any) -> list[tuple[Any, Any]]:
    """Return the columns of labels with their names, which may be None."""
    if (table := table_columns(labels)) is not None:
        return table
    if library_of(labels) == "pandas" and hasattr(labels, "levels"):
        return [(name, labels.get_level_values(j)) for j, name in enumerate(labels.names)]
    if isinstance(labels, tuple):
        return [(name_of(column), column) for column in labels]
    if isinstance(labels, np.ndarray) and labels.ndim == 2:
        return [(None, column) for column in labels.T]
    return [(name_of(labels), labels)]


def together(columns: list[Any]) -> Any:
    """One column, or a tuple of several."""
    return columns[0] if len(columns) == 1 else tuple(columns)


def table_columns(table: Any) -> list[tuple[Any, Any]] | None:
    """Return the columns of a data frame, a table or a mapping with their names; None for everything else."""
    if isinstance(table, Mapping):
        return list(table.items())
    library = library_of(table)
    if library == "pandas" and getattr(table, "ndim", 1) == 2:
        return [(name, table.iloc[:, j]) for j, name in enumerate(table.columns)]
    if library == "polars" and hasattr(table, "get_columns"):
        return [(column.name, column) for column in table.get_columns()]
    if library == "pyarrow" and hasattr(table, "schema"):
        return list(zip(table.schema.names, table.columns, strict=True))
    return None


def library_of(x: Any) -> str | None:
    """Return the library of a column or a table; None for arrays and sequences."""
    library = type(x).__module__.partition(".")[0]
    return library if library in ("pandas", "polars", "pyarrow") else None


def kind_of(column: Any) -> str:
    """Return the kind of the keys of a column of labels, by its type."""
    empty = _empty(column)
    read = None if empty is None else keys.column_of(empty, "labels")
    return read.kind if isinstance(read, keys.KeyColumn) else "objects"


def name_of(x: Any) -> Any:
    """Return the name of a column, or None."""
    name = getattr(x, "name", None)
    return None if callable(name) or name == "" else name


def _empty(column: Any) -> Any:
    """Return a column of the same type without records; None if making one would require reading the records."""
    if containers.is_sequence(column):
        return []
    if hasattr(column, "dtype") or library_of(column):
        return (column.iloc if hasattr(column, "iloc") else column)[:0]
    return None


def cells_of(column: Any) -> list[Any]:
    """Return the cells of a column as objects of Python."""
    for method in ("tolist", "to_list", "to_pylist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def _listed(rows: list[Any], width: int) -> list[Any]:
    """Keys as plain objects, or tuples of them."""
    tuples = [tuple(row) if isinstance(row, (tuple, list)) else (row,) for row in rows]
    if any(len(row) != width for row in tuples):
        raise ValueError(
            f"a key must have an entry for each column of labels ({width}), as a tuple; several columns are a frame or "
            f"a tuple of columns"
        )
    return [tuple(map(_key, row)) if width > 1 else _key(row[0]) for row in tuples]


def _plain(column: NDArray[Any]) -> list[Any]:
    """Return the keys in an array as plain objects; those of an array of floats are floats, whole ones too."""
    return column.tolist() if column.dtype.kind == "f" else list(map(_key, column.tolist()))


def _key(cell: Any) -> Any:
    """Return a key as a plain object: an int for all whole numbers."""
    made = cell_bytes(cell)
    if made is None:
        raise TypeError(f"keys must be text, bytes, numbers, dates or UUIDs, not {cell!r}")
    return cell_of(made)
