"""Labels of records and public keys of groups: text, bytes or integers, in one column or several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfast.groups.keyed import library_of, name_of


@dataclass(frozen=True)
class PublicKeys:
    """The keys that a user gives.

    Parameters
    ----------
    listed : list
        The keys in their order, each as a str, bytes or int, or a tuple of them for several columns.
    names : sequence of str or None
        The names of the columns.
    index : pandas.Index, optional
        The keys as given, if they were an index of pandas.
    """

    listed: list[Any]
    names: Sequence[Any]
    index: Any = None


def public_keys(keys: Any) -> PublicKeys:
    """Read public keys from a sequence, a column, an index or a table.

    Raises
    ------
    TypeError, ValueError
        Not a sequence with an order; a key that is not text, bytes or a whole number; keys of unequal lengths or equal
        keys.
    """
    if isinstance(keys, (str, bytes, set, frozenset)) or not isinstance(keys, Iterable):
        raise TypeError(f"keys must be 'private' or a sequence of public keys in their order, not {keys!r}")
    index: Any = keys if library_of(keys) == "pandas" and hasattr(keys, "get_indexer") else None
    if (table := table_columns(keys)) is not None:
        rows = list(zip(*(_cells(column) for _, column in table), strict=True))
        names = [name for name, _ in table]
    else:
        rows = [tuple(row) if isinstance(row, (tuple, list)) else (row,) for row in _cells(keys)]
        names = [name_of(keys)] if index is None else list(index.names)
    widths = {len(row) for row in rows} or {len(names)}
    if len(widths) > 1 or not min(widths):
        raise ValueError("keys must all have one entry for each column of labels")
    [width] = widths
    listed = [tuple(map(_key, row)) if width > 1 else _key(row[0]) for row in rows]
    if len(set(listed)) < len(listed):
        raise ValueError("keys must differ from each other")
    return PublicKeys(listed, names if len(names) == width else [None] * width, index)


def label_columns(labels: Any) -> list[tuple[Any, Any]]:
    """The columns of labels with their names, which may be None."""
    if (table := table_columns(labels)) is not None:
        return table
    if isinstance(labels, (list, tuple)) and _are_columns(labels):
        return [(name_of(column), column) for column in labels]
    if isinstance(labels, np.ndarray) and labels.ndim == 2:
        return [(None, column) for column in labels.T]
    return [(name_of(labels), labels)]


def table_columns(table: Any) -> list[tuple[Any, Any]] | None:
    """The columns of a data frame or a table with their names; None for everything else."""
    library = library_of(table)
    if library == "pandas" and getattr(table, "ndim", 1) == 2:
        return [(name, table.iloc[:, j]) for j, name in enumerate(table.columns)]
    if library == "polars" and hasattr(table, "get_columns"):
        return [(column.name, column) for column in table.get_columns()]
    if library == "pyarrow" and hasattr(table, "schema"):
        return list(zip(table.schema.names, table.columns, strict=True))
    return None


def _are_columns(items: Sequence[Any]) -> bool:
    """Whether the items of a list are columns, which have a type, rather than labels; a tuple always has columns."""
    return isinstance(items, tuple) or (
        len(items) > 0 and all(hasattr(item, "dtype") or library_of(item) == "pyarrow" for item in items)
    )


def lookup(columns: list[Any], listed: list[Any]) -> Any:  # STAND-IN
    places = {key: i for i, key in enumerate(listed)}
    cells = [_cells(column) for column in columns]
    rows = cells[0] if len(cells) == 1 else list(zip(*cells, strict=True))
    return np.array([places.get(row, -1) for row in rows], np.int64)


def _cells(column: Any) -> list[Any]:
    for method in ("tolist", "to_list", "to_pylist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def _key(cell: Any) -> Any:
    """A key as a plain str, bytes or int."""
    if isinstance(cell, str):
        return str(cell)
    if isinstance(cell, bytes):
        return bytes(cell)
    whole = isinstance(cell, (float, np.floating)) and float(cell).is_integer()
    if whole or isinstance(cell, (int, np.integer, np.bool_)):
        return int(cell)
    raise TypeError(f"keys must be text, bytes or whole numbers, not {cell!r}")
