"""One column of a CSV or Parquet file as float64, at once or in chunks; unreadable cells are NaN.

Messages never contain data.
"""

from __future__ import annotations

import gzip
import io
import itertools
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dpfast.streaming import Chunks

IN_MEMORY = 2**28  # bytes; a longer file is read in chunks, once for each pass

_ROWS = 2**16
_PARQUET = (".parquet", ".pq")


class TableError(Exception):
    """A file or column that cannot be read; the message is one line without data."""


def read_column(path: str, column: str | None, *, header: bool = True, progress: bool = False) -> NDArray[np.float64]:
    """Read one column.

    Parameters
    ----------
    path : str
        A ``.csv``, ``.csv.gz`` or ``.parquet`` file, or ``-`` for CSV on standard input.
    column : str or None
        Name in the header, or with ``header=False`` number from 1. None: the only column.
    header : bool
        Whether the first row names the columns.
    progress : bool
        Whether to show the progress, if standard error is a terminal.

    Returns
    -------
    ndarray of float64, shape (rows,)
        Private data; NaN for a cell that is empty, missing or not a number. Memory: at most 16 bytes per row.

    Notes
    -----
    The division of the file into rows is public: a stray quote that swallows line ends changes the number of records.
    Without a header, the number of cells in the first row is public too. Cells raise no errors: a cell that is missing
    in a short row, or is not a number in UTF-8, is NaN, whatever its length.
    """
    blocks = list(_blocks(path, column, header, progress))
    return np.concatenate(blocks) if blocks else np.empty(0)


def open_column(
    path: str, column: str | None, *, header: bool = True, progress: bool = False
) -> NDArray[np.float64] | Chunks:
    """Open one column: as an array from `read_column`, or as chunks if the file has more than `IN_MEMORY` bytes.

    Parameters: see `read_column`. A file without the requested column raises here, not later.
    """
    if path == "-" or not Path(path).is_file() or Path(path).stat().st_size <= IN_MEMORY:
        return read_column(path, column, header=header, progress=progress)
    chunks = Chunks(lambda: _blocks(path, column, header, progress))
    next(iter(chunks), None)
    return chunks


def schema_type(path: str, column: str | None) -> str | None:
    """The type of a column in the schema of a file: "number" or "integer"; None for CSV, which has no schema.

    Raises for a Parquet file without this column, or with another type. Reads no cells.
    """
    if not path.endswith(_PARQUET):
        return None
    with _parquet(path, column) as (_, _, kind):
        return kind


def _blocks(path: str, column: str | None, header: bool, progress: bool) -> Iterator[NDArray[np.float64]]:
    if path.endswith(_PARQUET):
        yield from _parquet_blocks(path, column, progress)
        return
    try:
        with _open(path) as (raw, lines):
            yield from _csv_blocks(_shown(lines, raw, progress), column, header)
    except zlib.error:
        raise TableError(f"cannot read {path}: damaged") from None
    except (OSError, EOFError) as error:
        raise TableError(f"cannot read {path}: {getattr(error, 'strerror', None) or type(error).__name__}") from None


class _open:
    """Context manager for the bytes of a file, to show the progress, and its lines of text."""

    def __init__(self, path: str) -> None:
        if path == "-" and sys.stdin is None:
            raise TableError("standard input is closed")
        self.raw: BinaryIO = sys.stdin.buffer if path == "-" else Path(path).open("rb")  # noqa: SIM115
        plain: BinaryIO = gzip.GzipFile(fileobj=self.raw) if path.endswith(".gz") else self.raw  # type: ignore[assignment]
        self.lines = io.TextIOWrapper(plain, encoding="utf-8-sig", errors="replace", newline="")

    def __enter__(self) -> tuple[BinaryIO, io.TextIOWrapper]:
        return self.raw, self.lines

    def __exit__(self, *error: object) -> None:
        self.lines.detach()
        if self.raw is not sys.stdin.buffer:
            self.raw.close()


def _csv_blocks(lines: Iterator[str], column: str | None, header: bool) -> Iterator[NDArray[np.float64]]:
    rows = _rows(lines)
    first = next(rows, None)
    if first is None:
        raise TableError("the file is empty")
    if not header:
        rows = itertools.chain([first], rows)
        first = first or [""]
    index = _index(first, column, header)
    while block := list(itertools.islice(rows, _ROWS)):
        # In a file of one column, a blank line is a record with a missing cell: n does not depend on missing cells.
        yield _numbers([row[index] if index < len(row) else "" for row in block if row or len(first) == 1])


def _rows(lines: Iterator[str]) -> Iterator[list[str]]:
    """The rows of a CSV file as in `csv.reader`, whose limit on the length of cells is global to the process."""
    for line in lines:
        if '"' in line:
            yield _quoted_cells(line) or _parsed(line, lines)
        else:
            text = line.rstrip("\r\n")
            yield text.split(",") if text else []


def _quoted_cells(line: str) -> list[str] | None:
    """The cells of a line if its quotes enclose whole cells, each on this line and without inner quotes; else None."""
    texts = line.split('"')
    cells = '"'.join(texts[::2]).rstrip("\r\n").split(",")
    if len(texts) % 2 == 0 or cells.count('"') != len(texts) // 2:
        return None
    quoted = iter(texts[1::2])
    return [next(quoted) if cell == '"' else cell for cell in cells]


def _parsed(line: str, lines: Iterator[str]) -> list[str]:
    """The cells of any row. A quote at the start of a cell opens a quotation; elsewhere it is an ordinary character.

    A quotation extends to the next single quote, possibly over several lines, or to the end of the file; two quotes in
    a row inside it stand for one.
    """
    cells: list[str] = []
    at = 0
    while True:
        parts = []
        if line.startswith('"', at):
            at += 1
            while (end := line.find('"', at)) < 0 or line.startswith('"', end + 1):
                if end >= 0:
                    parts.append(line[at : end + 1])
                    at = end + 2
                    continue
                parts.append(line[at:])
                line, at = next(lines, ""), 0
                if not line:
                    return [*cells, "".join(parts)]
            parts.append(line[at:end])
            at = end + 1
        end = line.find(",", at)
        parts.append(line[at:end] if end >= 0 else line[at:].rstrip("\r\n"))
        cells.append("".join(parts))
        if end < 0:
            return cells
        at = end + 1


def _index(first: list[str], column: str | None, header: bool) -> int:
    if column is None:
        if len(first) != 1:
            raise TableError(f"the file has {len(first)} columns: name one with --column")
        return 0
    if header:
        if column not in first:
            raise TableError(f"no column {column!r} in the header")
        if first.count(column) > 1:
            raise TableError(f"several columns in the header are named {column!r}: rename all but one")
        return first.index(column)
    if not column.isdecimal() or not 1 <= int(column) <= len(first):
        raise TableError(f"without a header the column is a number from 1 to {len(first)}, not {column!r}")
    return int(column) - 1


def _numbers(cells: list[str]) -> NDArray[np.float64]:
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        return np.array([_number(cell) for cell in cells], dtype=np.float64)


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def _parquet_blocks(path: str, column: str | None, progress: bool) -> Iterator[NDArray[np.float64]]:
    with _parquet(path, column) as (file, name, _), _bar(file.metadata.num_rows, " records", progress) as advance:
        for batch in file.iter_batches(batch_size=_ROWS * 16, columns=[name]):
            cells = batch.column(0)
            yield cells.cast("float64", safe=False).to_numpy(zero_copy_only=False)
            advance(len(cells))


@contextmanager
def _parquet(path: str, column: str | None) -> Iterator[tuple[Any, str, str]]:
    """A Parquet file, the name of the column in it, and its type in the schema: number or integer."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise TableError("reading Parquet requires pyarrow: pip install 'dpfast[parquet]'") from None
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            name = names[0] if column is None and len(names) == 1 else column
            if name is None or name not in names:
                raise TableError(f"no column {column!r} in {path}" if column else "name a column with --column")
            if names.count(name) > 1:
                raise TableError(f"several columns of {path} are named {name!r}: rename all but one")
            kind = file.schema_arrow.field(name).type
            if not (arrow.types.is_integer(kind) or arrow.types.is_floating(kind)):
                raise TableError(f"column {name!r} does not hold numbers")
            yield file, name, "integer" if arrow.types.is_integer(kind) else "number"
    except (OSError, arrow.ArrowException) as error:
        raise TableError(f"cannot read {path}: {type(error).__name__}") from None


def _shows(progress: bool) -> bool:
    return progress and sys.stderr is not None and sys.stderr.isatty()


def _shown(lines: Iterator[str], raw: BinaryIO, progress: bool) -> Iterator[str]:
    """The lines, with a progress bar on a terminal."""
    # Return the lines themselves if nothing is shown: a generator that ends early would close them.
    return _counted(lines, raw) if _shows(progress) and raw.seekable() else lines


def _counted(lines: Iterator[str], raw: BinaryIO) -> Iterator[str]:
    at = 0
    with _bar(os.fstat(raw.fileno()).st_size, "B", True) as advance:
        for number, line in enumerate(lines):
            if number % _ROWS == 0:
                advance(raw.tell() - at)
                at = raw.tell()
            yield line


@contextmanager
def _bar(total: int, unit: str, progress: bool) -> Iterator[Callable[[int], None]]:
    """Show the progress on a terminal, with a bar by tqdm if it is installed, else as a percentage."""
    if not _shows(progress):
        yield lambda count: None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        done = 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            print(f"\rreading {100 * done // max(total, 1)} %", end="", file=sys.stderr, flush=True)

        yield advance
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    else:
        with tqdm(total=total, unit=unit, unit_scale=True, desc="reading", leave=False) as bar:
            yield bar.update
