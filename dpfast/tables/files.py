"""Columns of files: names, formats, and errors of reading."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast.streaming import Chunks
from dpfast.tables.format import PLAIN, Format
from dpfast.tables.parquet import parquet_blocks, parquet_names, parquet_records, parquet_type
from dpfast.tables.progress import progress_bar
from dpfast.tables.text import header_of, text_blocks
from dpfast.tables.unpacking import opened

IN_MEMORY = 2**28  # bytes; a longer file is read in chunks, once for each pass

_PARQUET = (".parquet", ".pq")


class WantedColumn(NamedTuple):
    """A column that is wanted: its name in the header, or its number from 1; None is the only column.

    Its cells are read as numbers or, with `text`, as objects: texts, or integers if a Parquet file says so, and None
    where they are empty. A byte b that is no text in the encoding becomes the character U+DC00 + b (`surrogateescape`
    of Python), so that different bytes are different texts.
    """

    name: str | None
    text: bool = False


def read_column(
    path: str, column: str | None, format: Format = PLAIN, *, progress: bool = False
) -> NDArray[np.float64]:
    """Read one column.

    Parameters
    ----------
    path : str
        A ``.csv`` or ``.parquet`` file, or ``-`` for CSV on standard input. Of CSV also ``.gz``, ``.bz2``, ``.xz``,
        ``.zst``, and ``.zip`` of one file.
    column : str or None
        Name in the header, or with ``header=False`` number from 1. None: the only column.
    format : Format
        How CSV is written.
    progress : bool
        Whether to show the progress, if standard error is a terminal.

    Returns
    -------
    ndarray of float64, shape (rows,)
        Private data; NaN for a cell that is empty, missing or not a number. Memory: at most 16 bytes per row.

    Notes
    -----
    The division of the file into rows is public: a stray quote that swallows line ends changes the number of records.
    Each line is a row, a blank one too, whose cells are all missing: in a file of one column a blank line is how a
    missing cell is written, and n must not depend on these.
    Without a header, the number of cells in the first row is public too. Cells raise no errors: a cell that is missing
    in a short row, or is not a number, is NaN, whatever its length. Beyond the result, memory is a few MB, or
    a few times the longest row.
    """
    return _joined([values for (values,) in blocks(path, [WantedColumn(column)], format, progress)])


def open_column(
    path: str, column: str | None, format: Format = PLAIN, *, progress: bool = False
) -> NDArray[np.float64] | Chunks:
    """Open one column: as an array from `read_column`, or as chunks if the file has more than `IN_MEMORY` bytes.

    Parameters: see `read_column`. A file without the requested column raises here, not later.
    """
    if not is_long(path):
        return read_column(path, column, format, progress=progress)
    chunks = Chunks(lambda: (values for (values,) in blocks(path, [WantedColumn(column)], format, progress)))
    next(iter(chunks), None)
    return chunks


def is_long(path: str) -> bool:
    """Whether a file has more than `IN_MEMORY` bytes; False for standard input, which is read once."""
    return path != "-" and Path(path).is_file() and Path(path).stat().st_size > IN_MEMORY


def schema_type(path: str, column: str | None, *, text: bool = False) -> str | None:
    """Return the type of a column in the schema of a file: "number" or "integer", with `text` "integer" or "text".

    None for CSV, which has no schema.

    Raises for a Parquet file without this column, or with another type. Reads no cells.
    """
    return parquet_type(path, column, text) if path.endswith(_PARQUET) else None


def column_names(path: str, format: Format = PLAIN) -> list[str] | None:
    """Return the names of the columns, in the header of a CSV file or the schema of a Parquet file, which are public.

    None for CSV without a header. Reads no cells of records.
    """
    if path.endswith(_PARQUET):
        return parquet_names(path)
    if not format.header:
        return None
    with opened(path) as (_, plain):
        return header_of(plain, format)


def record_count(path: str) -> int | None:
    """Return the number of records that a Parquet file declares; None for CSV. Reads no cells."""
    return parquet_records(path) if path.endswith(_PARQUET) else None


def blocks(
    path: str, columns: Sequence[WantedColumn], format: Format = PLAIN, progress: bool = False
) -> Iterator[tuple[NDArray[Any], ...]]:
    """Read columns in one pass, a block of rows at a time: an array for each column.

    Parameters: see `read_column`.
    """
    names, texts = [column.name for column in columns], [column.text for column in columns]
    if path.endswith(_PARQUET):
        yield from parquet_blocks(path, names, texts, progress)
        return
    with opened(path) as (raw, plain), progress_bar(_size(raw), "B", progress and raw.seekable()) as show:
        for found in text_blocks(plain, names, texts, format):
            if raw.seekable():
                show(raw.tell())
            yield found


def _size(raw: Any) -> int:
    try:
        return os.fstat(raw.fileno()).st_size
    except OSError:
        return 0  # a stream that is not a file


def _joined(parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.concatenate(parts) if parts else np.empty(0)
