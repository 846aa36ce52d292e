"""Columns of Parquet files, with pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.core import columns
from dpfast.tables.errors import TableError, listed, no_column
from dpfast.tables.progress import progress_bar

_ROWS = 2**20
_LOOKED = 2**12  # cells among which equal ones are looked for first


def parquet_blocks(
    path: str, names: Sequence[str | None], texts: Sequence[bool], progress: bool
) -> Iterator[tuple[NDArray[Any], ...]]:
    """Yield the columns of these names, in blocks of rows: objects if `texts` says so, else float64."""
    with _open(path) as file, progress_bar(file.metadata.num_rows, " records", progress) as show:
        found = [_column(path, file, name, text)[0] for name, text in zip(names, texts, strict=True)]
        done = 0
        for batch in file.iter_batches(batch_size=_ROWS, columns=list(dict.fromkeys(found))):
            done += len(batch)
            show(done)
            cells = [batch.column(name) for name in found]
            yield tuple(
                _objects(column) if text else _numbers(column) for column, text in zip(cells, texts, strict=True)
            )


def _numbers(column: Any) -> NDArray[np.float64]:
    """Doubles, NaN for a null.

    The numbers are read where they are: a cast or a conversion by pyarrow imports its functions and pandas first, half
    of the time of a command.
    """
    read = columns.of_arrow(column) if len(column) else None
    return np.asarray(column.cast("float64", safe=False) if read is None else read, np.float64)


def _objects(column: Any) -> NDArray[np.object_]:
    """Integers or texts. If few are distinct, equal cells are one object, which takes an eighth of the time; to look
    for equal ones takes three times as long if there are none.
    """
    from pyarrow import types

    if not types.is_dictionary(column.type):
        if 2 * len(column[:_LOOKED].unique()) > min(len(column), _LOOKED):
            out = np.empty(len(column), object)
            out[:] = _cells(column)
            return out
        column = column.dictionary_encode()
    distinct = _cells(column.dictionary)
    objects = np.empty(len(distinct) + 1, object)
    objects[:-1] = distinct  # the last one stays None, for a null
    places = np.nan_to_num(_numbers(column.indices), nan=len(distinct))
    found: NDArray[np.object_] = objects[places.astype(np.int64)]
    return found


def _cells(column: Any) -> list[Any]:
    """Integers, or texts as UTF-8, in which a byte b that is none is U+DC00 + b: a file may hold other bytes."""
    from pyarrow import types

    if types.is_integer(column.type):
        return list(column.to_pylist())
    cells = column.cast("large_binary").to_pylist()
    return [None if cell is None else cell.decode("utf-8", "surrogateescape") for cell in cells]


def parquet_type(path: str, column: str | None, text: bool = False) -> str:
    """Return the type of a column in the schema: "number" or "integer", with `text` "integer" or "text"."""
    with _open(path) as file:
        return _column(path, file, column, text)[1]


def parquet_records(path: str) -> int:
    """Return the number of rows that a file declares."""
    with _open(path) as file:
        return int(file.metadata.num_rows)


def parquet_names(path: str) -> list[str]:
    """Return the names of the columns in the schema."""
    with _open(path) as file:
        return list(file.schema_arrow.names)


@contextmanager
def _open(path: str) -> Iterator[Any]:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise TableError("reading Parquet requires pyarrow: pip install 'dpfast[parquet]'") from None
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (OSError, arrow.ArrowException) as error:
        raise TableError(f"cannot read {path}: {type(error).__name__}") from None


def _column(path: str, file: Any, column: str | None, text: bool) -> tuple[str, str]:
    """Return the name of a column in a file, and its type in the schema: number, integer or text."""
    from pyarrow import types

    names = file.schema_arrow.names
    name = names[0] if column is None and len(names) == 1 else column
    if name is None:
        raise TableError(f"name a column with --column: {listed(names)}")
    if names.count(name) != 1:
        raise no_column(name, names, f" in {path}")
    kind = file.schema_arrow.field(name).type
    if types.is_integer(kind) or (types.is_boolean(kind) and not text):
        return name, "integer"
    if (types.is_floating(kind) or types.is_decimal(kind)) and not text:
        return name, "integer" if types.is_decimal(kind) and kind.scale <= 0 else "number"
    plain = kind.value_type if types.is_dictionary(kind) else kind
    if text and (types.is_string(plain) or types.is_large_string(plain)):
        return name, "text"
    raise TableError(f"column {name!r} does not hold {'texts or integers' if text else 'numbers'}")
