"""Tables that number distinct keys."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _keys
from dpfast._kernels._threads import each
from dpfast.core.foreign import swallowed
from dpfast.keys.cells import cell_bytes, cell_of, text_of
from dpfast.keys.columns import (
    OBJECT,
    Coded,
    Fixed,
    KeyColumn,
    Numbers,
    ObjectKeys,
    Offsets,
    Part,
    Several,
    column_of,
    floats_of,
)

Codes = NDArray[np.int64]
Keys = NDArray[Any] | tuple[NDArray[Any], ...]

SEED = int.from_bytes(os.urandom(8), "little")  # so that keys that collide cannot be chosen
_SIGN = np.uint64(2**63)
_PIECE = 2**17  # records that a thread looks up: it takes 20 us to start one, and these 4 ms
NUMBERS = ("integers", "unsigned", "floats")
KINDS = ("", "integers", "unsigned", "text", "bytes", "objects", "floats")  # states have their places: append


class Single:
    """The distinct keys of one column. `kind` and `dtype` are those of a `KeyColumn`, of all that were read."""

    def __init__(self, kind: str, dtype: np.dtype[Any]) -> None:
        self.kind, self.dtype = kind, dtype
        self._integers, self._spans = _keys.Integers(SEED), _keys.Spans(SEED)  # one of them is used

    def __len__(self) -> int:
        return len(self._integers if self.kind in NUMBERS else self._spans)

    def codes(self, column: KeyColumn, *, insert: bool, threads: int = 1) -> Codes:
        """Return the code of each record; a key that is not in the table is added if `insert`, else -1.

        Several threads look up keys; one adds them, so that their codes are in the order of the records.
        """
        if self.kind == "objects":
            column = as_objects(column)
        found = [self._part(part, insert, threads) for part in column.parts]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _part(self, part: Part, insert: bool, threads: int) -> Codes:
        if isinstance(part, Coded):
            values = np.append(self.codes(part.values, insert=insert), -1)
            places, last = part.places, len(part.values) - 1
            if places.min(initial=-1) < -1 or places.max(initial=-1) > last:
                places = np.where((places < 0) | (places > last), -1, places)
            return values[places]
        out = np.empty(part.n, np.int64)
        if insert or isinstance(part, ObjectKeys):
            self._write(part, out, insert)
        else:
            step = max(_PIECE, -(-part.n // threads))
            starts = range(0, part.n, step)
            each(
                lambda i: self._write(part.between(i, min(i + step, part.n)), out[i : i + step], False), starts, threads
            )
        return out

    def _write(self, part: Numbers | Offsets | Fixed | ObjectKeys, out: Codes, insert: bool) -> None:
        """Write the codes of a part."""
        if isinstance(part, Numbers):
            self._integers.group(part.values, part.missing, out, insert)
        else:
            self._grouped(part, out, insert)

    def _grouped(self, part: Offsets | Fixed | ObjectKeys, out: Codes | None, insert: bool) -> None:
        """Write the codes of a part; without `out` count the records."""
        if isinstance(part, Offsets):
            self._spans.group_offsets(part.offsets, part.data, part.missing, out, insert, out is None)
        elif isinstance(part, Fixed):
            self._spans.group_fixed(part.records, part.layout, part.missing, out, insert, out is None)
        else:
            with swallowed():
                self._spans.group_cells(part.cells, part.encode, out, insert, out is None)

    # ---- counts of text, bytes and objects; `dpfast.keys.counts.SortedRuns` counts integers ----

    def count(self, column: KeyColumn) -> None:
        """Add the records of a column to `counts`, and their keys to the table."""
        if self.kind == "objects":
            column = as_objects(column)
        for part in column.parts:
            if isinstance(part, Coded):
                places = part.places[(part.places >= 0) & (part.places < len(part.values))]
                self.add_counted(part.values, np.bincount(places, minlength=len(part.values)))
            elif not isinstance(part, Numbers):
                self._grouped(part, None, True)

    def add_counted(self, column: KeyColumn, counts: Codes) -> None:
        """Add counts of the entries of a column."""
        codes = self.codes(column, insert=True)
        self._spans.add_counts(codes[codes >= 0], counts[codes >= 0])

    def counts(self) -> Codes:
        """Return the number of records of each key that was counted, by code."""
        return self._spans.counts()

    def column(self) -> KeyColumn:
        """Return the distinct keys as a column, in the order of their codes."""
        if self.kind in NUMBERS:
            return KeyColumn(self.kind, self.dtype, (Numbers(self._integers.keys(), None),))
        ends, data = self._spans.keys()
        return KeyColumn(self.kind, self.dtype, (Offsets(np.append(0, ends), data, None),))

    def order(self) -> Codes:
        """Return the codes of the keys in increasing order; in objects integers precede text, and text bytes."""
        if self.kind in NUMBERS:
            return np.argsort(self._integers.keys())
        n = len(self)
        codes = np.arange(n)
        words, lengths = np.empty(n, np.uint64), np.empty(n, np.int64)
        self._spans.words(codes, 0, words, lengths)
        order = np.argsort(words)
        places, groups = _ties(np.arange(n), words[order])
        depth = 0
        while places.size:  # sort keys of equal beginning by their next bytes
            tied = order[places]
            words, lengths = np.empty(len(tied), np.uint64), np.empty(len(tied), np.int64)
            self._spans.words(tied, depth, words, lengths)
            inner = np.lexsort((lengths, words, groups))
            order[places] = tied[inner]
            places, groups = _ties(places, groups, words[inner], lengths[inner])
            depth += 8
        return order

    def integers(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """Keys in the dtype of the column, from the integers of `Numbers`."""
        if self.kind == "floats":
            return floats_of(numbers)
        return numbers.view(np.uint64) ^ _SIGN if self.kind == "unsigned" else numbers.astype(self.dtype)

    def values(self, codes: Codes) -> NDArray[Any]:
        """Return the keys with these codes, in the dtype of the column."""
        if self.kind in NUMBERS:
            return self.integers(self._integers.keys()[codes])
        ends, data = self._spans.keys()
        starts, stops, raw = np.append(0, ends)[codes].tolist(), ends[codes].tolist(), data.tobytes()
        decode: Callable[[bytes], Any] = {"text": text_of, "objects": cell_of}.get(self.kind, bytes)
        made = np.empty(len(starts), object)
        for i, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            made[i] = decode(raw[start:stop])
        return made


def _ties(places: Codes, *columns: NDArray[Any]) -> tuple[Codes, Codes]:
    """Return the places whose rows are equal to a neighbour's, and a number for each group of equal rows."""
    equal = np.ones(max(len(places) - 1, 0), bool)
    for column in columns:
        equal &= column[1:] == column[:-1]
    starts = np.append(True, ~equal)[: len(places)]
    tied = ~(starts & np.append(~equal, True)[: len(places)])
    return places[tied], np.cumsum(starts)[tied]


def cells_of(column: KeyColumn) -> list[Any]:
    """Return the keys of a column as objects of Python, None for a missing one."""
    first = column.parts[0] if len(column.parts) == 1 else None
    if isinstance(first, ObjectKeys) and set(map(type, first.cells)) <= {int, str, bytes}:
        return first.cells
    single = Single(column.kind or "objects", column.dtype)
    codes = single.codes(column, insert=True)
    cells = [*single.values(np.arange(len(single))).tolist(), None]
    return [cells[code] for code in codes.tolist()]


def as_objects(column: KeyColumn) -> KeyColumn:
    """Return a column of any kind as one of objects."""
    if column.kind in ("objects", ""):
        return column
    return KeyColumn("objects", OBJECT, (ObjectKeys(cells_of(column), cell_bytes),))


class Multiple:
    """The distinct rows of several columns."""

    def __init__(self, singles: Sequence[Single]) -> None:
        self.singles = tuple(singles)
        self._rows = _keys.Spans(SEED)

    def __len__(self) -> int:
        return len(self._rows)

    def codes(self, columns: Several, *, insert: bool, threads: int = 1) -> Codes:
        """Return the code of each row; -1 where a column is missing, and for a new row unless `insert`."""
        pairs = zip(self.singles, columns.columns, strict=True)
        rows = np.stack([single.codes(column, insert=insert, threads=threads) for single, column in pairs], axis=1)
        out = np.empty(len(rows), np.int64)
        self._grouped(rows, out, insert)
        return out

    def _grouped(self, rows: Codes, out: Codes | None, insert: bool) -> None:
        """Write the codes of rows of the columns' codes; without `out` count the records."""
        missing = np.any(rows < 0, axis=1).view(np.uint8)
        records = rows.view(np.uint8).reshape(len(rows), 8 * rows.shape[1])
        self._rows.group_fixed(records, "rows", missing, out, insert, out is None)

    def count(self, columns: Several) -> None:
        """Add the records to `counts`, and their rows to the table."""
        pairs = zip(self.singles, columns.columns, strict=True)
        self._grouped(np.stack([single.codes(column, insert=True) for single, column in pairs], axis=1), None, True)

    def add_counted(self, columns: Several, counts: Codes) -> None:
        """Add counts of the rows of columns."""
        codes = self.codes(columns, insert=True)
        self._rows.add_counts(codes[codes >= 0], counts[codes >= 0])

    def counts(self) -> Codes:
        """Return the number of records of each row that was counted, by code."""
        return self._rows.counts()

    def column(self) -> Several:
        """Return the distinct rows as columns, in the order of their codes."""
        pairs = zip(self.singles, self.rows().T, strict=True)
        columns = [(single.column(), np.ascontiguousarray(places)) for single, places in pairs]
        return Several(tuple(KeyColumn(c.kind, c.dtype, (Coded(places, c),)) for c, places in columns))

    def rows(self) -> Codes:
        """Return the codes of the columns, of shape (keys, k)."""
        return self._rows.keys()[1].view(np.int64).reshape(len(self), len(self.singles))

    def order(self) -> Codes:
        """Return the codes of the rows in increasing order, by the first column first."""
        ranks = []
        for single, column in zip(self.singles, self.rows().T, strict=True):
            rank = np.empty(len(single), np.int64)
            rank[single.order()] = np.arange(len(single))
            ranks.append(rank[column])
        return np.lexsort(ranks[::-1])

    def values(self, codes: Codes) -> tuple[NDArray[Any], ...]:
        """Return the keys with these codes, an array for each column."""
        rows = self.rows()[codes]
        return tuple(single.values(rows[:, j]) for j, single in enumerate(self.singles))


class KeyTable:
    """A code for each distinct key of the columns that it reads: 0, 1, 2, ... by first appearance. PRIVATE.

    Columns of different kinds make the keys objects. Memory is that of the distinct keys.

    Examples
    --------
    >>> from dpfast.keys import KeyTable
    >>> table = KeyTable()
    >>> table.add(["b", "a", None, "b"]), table.add(["c", "a"])
    (array([ 0,  1, -1,  0]), array([2, 1]))
    >>> len(table), table.keys, table.values(table.order())
    (3, array(['b', 'a', 'c'], dtype=object), array(['a', 'b', 'c'], dtype=object))
    """

    def __init__(self) -> None:
        self._store: Single | Multiple | None = None

    def __len__(self) -> int:
        return 0 if self._store is None else len(self._store)

    def __repr__(self) -> str:
        return "<KeyTable of private keys>"

    @property
    def columns(self) -> int:
        """The number of columns of a key, 1 before the first column is read."""
        return len(self._store.singles) if isinstance(self._store, Multiple) else 1

    def add(self, column: Any) -> Codes:
        """Return the code of each record, -1 for a missing key; new keys get the next codes."""
        return self._codes(column_of(column), insert=True)

    def find(self, column: Any, name: str = "keys", *, threads: int = 1) -> Codes:
        """Return the code of each record, -1 for a key that is missing or not in the table."""
        return self._codes(column_of(column, name), insert=False, threads=threads)

    def _codes(self, column: KeyColumn | Several, *, insert: bool, threads: int = 1) -> Codes:
        if isinstance(column, KeyColumn) and not column.kind:
            return np.full(len(column), -1)
        store: Any = fitting(self._store, column)
        self._store = store
        codes: Codes = store.codes(column, insert=insert, threads=threads)
        return codes

    def order(self) -> Codes:
        """Return the codes of the keys in increasing order. It does not depend on the order of the records."""
        return np.zeros(0, np.int64) if self._store is None else self._store.order()

    def values(self, codes: Codes) -> Keys:
        """Return the keys with these codes: an array, or a tuple with one for each column."""
        return np.empty(0, object) if self._store is None else self._store.values(codes)

    @property
    def keys(self) -> Keys:
        """The keys in the order of their codes."""
        return self.values(np.arange(len(self)))

    def merge(self, other: KeyTable) -> Codes:
        """Add the keys of another table; return the code here of each of its codes."""
        return np.zeros(0, np.int64) if other._store is None else self._codes(other._store.column(), insert=True)


def fitting(store: Single | Multiple | None, column: KeyColumn | Several) -> Single | Multiple:
    """Return the store for a column: a new one, or the given one if it holds keys of the same kind."""
    if isinstance(column, Several):
        if store is None:
            return Multiple([_single(None, part) for part in column.columns])
        if not isinstance(store, Multiple) or len(store.singles) != len(column.columns):
            raise TypeError(f"keys must have the same columns in all chunks, not {len(column.columns)} in one of them")
        pairs = zip(store.singles, column.columns, strict=True)
        store.singles = tuple(_single(single, part) for single, part in pairs)
        return store
    if isinstance(store, Multiple):
        raise TypeError("keys must have the same columns in all chunks, not a single one in one of them")
    return _single(store, column)


def _single(store: Single | None, column: KeyColumn) -> Single:
    if store is None:
        return Single(column.kind or "objects", column.dtype)
    if column.kind == store.kind:
        store.dtype = np.result_type(store.dtype, column.dtype)
    elif column.kind and store.kind != "objects":
        made = Single("objects", OBJECT)
        made.add_counted(store.column(), np.append(store.counts(), np.zeros(len(store), np.int64))[: len(store)])
        return made  # with the same codes
    return store


DTYPES = [np.dtype(code) for code in "?bhiqBHIQOd"]


def pack_columns(columns: KeyColumn | Several) -> list[Any]:
    """Distinct keys, from the `column` of a store, as nested lists of integers and arrays of int64."""
    if isinstance(columns, Several):
        return [pack_columns(column) for column in columns.columns]
    [part] = columns.parts
    head = [KINDS.index(columns.kind), next(i for i, dtype in enumerate(DTYPES) if dtype == columns.dtype)]
    if isinstance(part, Coded):
        return [*head, part.places, pack_columns(part.values)]
    if isinstance(part, Numbers):
        return [*head, part.values]
    assert isinstance(part, Offsets)
    padded = np.zeros(-(-len(part.data) // 8) * 8, np.uint8)
    padded[: len(part.data)] = part.data
    return [*head, np.asarray(part.offsets, np.int64), padded.view("<i8").astype(np.int64)]


# ---- columns as a whole ----


def read(column: Any, name: str = "keys") -> tuple[Codes, KeyTable]:
    """Return the code of each record, -1 for a missing key, and the table of the distinct keys. PRIVATE.

    Examples
    --------
    >>> from dpfast import keys
    >>> codes, table = keys.read([30, 10, None, 30])
    >>> codes, table.keys
    (array([ 0,  1, -1,  0]), array([30, 10], dtype=object))
    """
    table = KeyTable()
    return table._codes(column_of(column, name), insert=True), table


def lookup(column: Any, public_keys: Any, name: str = "keys") -> Codes:
    """Return the place of each record's key in a list of public keys, -1 for a key that is missing or not in the list.

    Parameters
    ----------
    column : column of keys, or several
        Private. `column_of` lists what it may be.
    public_keys : sequence of keys, or a column; tuples of keys for several columns
        Distinct, none missing, and of the kind of the column.

    Raises
    ------
    TypeError, ValueError
        For public keys of another kind, missing or duplicate public keys, or a column that cannot be read.

    Examples
    --------
    >>> from dpfast import keys
    >>> keys.lookup(["b", "z", "a", None], ["a", "b"])
    array([ 1, -1,  0, -1])
    """
    records = column_of(column, name)
    return _table_of(public_keys, records, name)._codes(records, insert=False)


def public_table(public_keys: Any, column: Any, name: str = "keys") -> KeyTable:
    """Return the table of public keys, their places being the codes, for columns of the same type as a given one:
    `lookup`.
    """
    return _table_of(public_keys, column_of(column, name), name)


def _table_of(public_keys: Any, records: KeyColumn | Several, name: str) -> KeyTable:
    columns = records.columns if isinstance(records, Several) else (records,)
    wanted = _public_columns(public_keys, [part.kind for part in columns], name)
    table = KeyTable()
    found = table._codes(wanted[0] if len(wanted) == 1 else Several(wanted), insert=True)
    if (found < 0).any():
        raise ValueError(f"the public {name} must not be missing")
    if len(table) < len(found):
        raise ValueError(f"the public {name} must be distinct")
    return table


def _public_columns(public_keys: Any, kinds: list[str], name: str) -> tuple[KeyColumn, ...]:
    """Public keys as columns of the given kinds."""
    if isinstance(public_keys, (str, bytes)):
        raise TypeError(f"the public {name} must be a sequence of keys, not {type(public_keys).__name__}")
    if len(kinds) == 1:
        given = [public_keys if hasattr(public_keys, "dtype") else _listed(public_keys)]
    else:
        rows = _listed(public_keys)
        if rows is not public_keys and not isinstance(public_keys, np.ndarray):
            if not all(isinstance(row, (tuple, list)) and len(row) == len(kinds) for row in rows):
                raise ValueError(f"the public {name} must be tuples of {len(kinds)} keys")
            given = [list(cells) for cells in zip(*rows, strict=True)] if rows else [[] for _ in kinds]
        else:
            given = [public_keys]
    columns: list[KeyColumn] = []
    for keys in given:
        read_keys = column_of(keys, name)
        columns.extend(read_keys.columns if isinstance(read_keys, Several) else (read_keys,))
    if len(columns) != len(kinds):
        raise ValueError(f"the public {name} must have {len(kinds)} columns, not {len(columns)}")
    return tuple(_of_kind(column, kind, name) for column, kind in zip(columns, kinds, strict=True))


def _listed(public_keys: Any) -> Any:
    """Return the entries of a sequence as a list; a frame or an array as it is."""
    if hasattr(public_keys, "columns") or isinstance(public_keys, np.ndarray) or not hasattr(public_keys, "__len__"):
        return public_keys
    return list(public_keys)


def _of_kind(column: KeyColumn, kind: str, name: str) -> KeyColumn:
    """Return a column of public keys as one of another kind."""
    if column.kind == kind or not kind:
        return column
    cells = cells_of(column)
    if kind == "objects":
        return KeyColumn(kind, OBJECT, (ObjectKeys(cells, cell_bytes),))
    types: Any = {"text": str, "bytes": bytes, "floats": (int, float)}.get(kind, int)
    if not all(isinstance(cell, types) for cell in cells):
        what = kind if kind in ("text", "bytes", "floats") else "integers"
        raise TypeError(f"public keys must be {what}, like the {name} of the records")
    if kind == "floats":
        if not all(_is_double(cell) for cell in cells):
            raise ValueError(f"public keys must be doubles, like the floats of the {name}")
        return column_of(np.array(cells, np.float64), name)  # type: ignore[return-value]
    dtype: Any = {"integers": np.int64, "unsigned": np.uint64}.get(kind, object)
    limits = np.iinfo(dtype) if dtype is not object else None
    if limits is not None and not all(limits.min <= cell <= limits.max for cell in cells):
        raise ValueError(f"public keys must be in the range of the integers of the {name}")
    if limits is not None:
        return column_of(np.array(cells, dtype), name)  # type: ignore[return-value]
    return KeyColumn(kind, OBJECT, (ObjectKeys(cells, lambda cell: (cell_bytes(cell) or b"")[1:]),))


def _is_double(number: int | float) -> bool:
    try:
        return float(number) == number
    except OverflowError:
        return False
