"""Where the columns of a table come from: frames, files, queries, or imagined records."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpfast.core import containers
from dpfast.core.foreign import foreign
from dpfast.ledger.outputs import InputFile
from dpfast.reports.facts import Facts
from dpfast.tables import (
    IN_THE_HEADER,
    Format,
    TableError,
    WantedColumn,
    blocks,
    column_names,
    no_column,
    record_count,
    schema_type,
)


class Source(ABC):
    """A table of private records, of which columns are read by name."""

    _where: ClassVar[str] = IN_THE_HEADER  # that its names are

    @abstractmethod
    def read(self, wanted: Sequence[WantedColumn]) -> list[Any]:
        """Return these columns, in one pass over the records."""

    def names(self) -> Sequence[str] | None:
        """Return the names of all columns, which are public; None if they are not known before a query."""
        return None

    def check_names(self, names: Sequence[str]) -> None:
        """Raise a TableError if a column is known not to be there, or to be there several times."""
        if (known := self.names()) is None:
            return
        for name in names:
            if known.count(name) != 1:
                raise no_column(name, known, self._where)

    def check(self, wanted: Sequence[WantedColumn]) -> None:
        """Raise a TableError if a schema, which is public, says that a column is missing or of another type."""
        return

    def declares_integers(self, name: str) -> bool:
        """Whether the schema of a file says that a column has integers, which are read as floats."""
        return False

    def has_integer_keys(self, name: str) -> bool:
        """Whether the schema of a file says that a column has integers, which are its keys as they are."""
        return False


class Frame(Source):
    """Columns in memory: a frame of pandas or polars, a table of Arrow, or a mapping of columns."""

    _where = ""

    def __init__(self, data: Any) -> None:
        self._data = data

    def read(self, wanted: Sequence[WantedColumn]) -> list[Any]:
        self.check_names([str(column.name) for column in wanted])
        with foreign():
            return [self._data[column.name] for column in wanted]

    def names(self) -> list[str]:
        names = self._data if isinstance(self._data, Mapping) else containers.column_names(self._data) or ()
        return list(map(str, names))


class File(Source):
    """Columns of a CSV or a Parquet file."""

    def __init__(self, path: str, format: Format) -> None:
        self.path, self.format = path, format
        self.input = InputFile.at(path)
        self._state: tuple[int, ...] | None = None
        self._types: dict[str, str | None] = {}  # in the schema

    def names(self) -> list[str] | None:
        return self._names

    @cached_property
    def _names(self) -> list[str] | None:
        return column_names(self.path, self.format)

    def read(self, wanted: Sequence[WantedColumn]) -> list[NDArray[Any]]:
        status = os.stat(self.path)
        state = status.st_ino, status.st_size, status.st_mtime_ns
        if self._state not in (None, state):
            raise TableError("the file has changed since columns of it were read: make another table")
        self._state = state
        empty = tuple(np.empty(0, object if column.text else np.float64) for column in wanted)
        pieces = blocks(self.path, wanted, self.format)
        return [np.concatenate(parts) for parts in zip(empty, *pieces, strict=True)]

    def check(self, wanted: Sequence[WantedColumn]) -> None:
        for column in wanted:
            schema_type(self.path, column.name, text=column.text)

    def declares_integers(self, name: str) -> bool:
        if name not in self._types:
            self._types[name] = schema_type(self.path, name)
        return self._types[name] == "integer"

    def has_integer_keys(self, name: str) -> bool:
        return schema_type(self.path, name, text=True) == "integer"

    def records(self) -> int | None:
        """Return the number of records that the file declares; None for CSV."""
        return record_count(self.path)


class Query(Source):
    """Columns of a lazy frame of polars, a relation of DuckDB or a frame of Spark, by one query for all of them."""

    def __init__(self, data: Any, declared: Sequence[str]) -> None:
        self._data, self._declared = data, list(declared)
        self._frame: Frame | None = None
        if not declared:
            raise TypeError("of a lazy frame, a relation or a frame of Spark, name the columns to read in columns=")

    def read(self, wanted: Sequence[WantedColumn]) -> list[Any]:
        if unknown := [str(column.name) for column in wanted if column.name not in self._declared]:
            raise TypeError(
                f"name {unknown[0]!r} in columns=, {{}} if nothing is known of it: one query reads them all"
            )
        if self._frame is None:
            with foreign():
                self._frame = Frame(_collected(self._data, self._declared))
        return self._frame.read(wanted)


class Imagined(Source):
    """Records that nobody has: to learn charges and expected errors without touching a record.

    Parameters
    ----------
    n : int
    facts : mapping of str to Facts
        The records have the categories of a column by turns, and else the middle of its bounds.
    integers : set of str
        The columns of integers.
    unit : sequence of str
        The columns of units, of which each record is another one unless all of them have categories.
    names : sequence of str, optional
        The names of all columns.
    """

    def __init__(
        self,
        n: int,
        facts: Mapping[str, Facts],
        integers: set[str],
        unit: Sequence[str],
        names: Sequence[str] | None = None,
    ) -> None:
        self._n, self._facts, self._integers, self._unit, self._names = n, facts, integers, unit, names

    def names(self) -> Sequence[str] | None:
        return self._names

    def read(self, wanted: Sequence[WantedColumn]) -> list[NDArray[Any]]:
        return [self._column(column) for column in wanted]

    def _column(self, column: WantedColumn) -> NDArray[Any]:
        facts = self._facts.get(str(column.name), Facts())
        if column.name in self._unit and facts.categories is None:
            return np.arange(self._n)
        if facts.categories is not None or column.text:
            keys = np.array(facts.categories or ["imagined"], object if column.text else None)
            return keys[np.arange(self._n) % len(keys)]
        lower, upper = facts.bounds if isinstance(facts.bounds, tuple) else (0.0, 0.0)
        return np.full(self._n, (lower + upper) / 2)

    def declares_integers(self, name: str) -> bool:
        return name in self._integers


def check_categories(source: Source, facts: Mapping[str, Facts]) -> None:
    """Raise a TableError if the categories of a column are texts, and the schema of a file says integers."""
    for name, each in facts.items():
        if each.categories is not None and each.is_text and source.has_integer_keys(name):
            raise TableError(f"column {name!r} holds integers: its categories must be, too, not {each.categories[0]!r}")


def source_of(data: Any, declared: Sequence[str], format: Format) -> Source:
    """Return the source of what a user gives, by its type."""
    if isinstance(data, Source):
        return data
    if isinstance(data, (str, os.PathLike)):
        return File(os.fspath(data), format)
    library = type(data).__module__.partition(".")[0]
    if (library, type(data).__name__) == ("polars", "LazyFrame") or library in ("duckdb", "_duckdb", "pyspark"):
        return Query(data, declared)
    if isinstance(data, Mapping) or containers.column_names(data) is not None:
        return Frame(data)
    raise TypeError(
        "data must be a frame of pandas, polars or Spark, a lazy frame, a table of Arrow, a relation of DuckDB, a "
        f"mapping of columns, or the path of a CSV or Parquet file, not {type(data).__name__}"
    )


def _collected(data: Any, names: list[str]) -> Any:
    library = type(data).__module__.partition(".")[0]
    if library == "polars":
        return data.select(names).collect()
    if library == "pyspark":
        chosen = data.select(*names)
        return chosen.toArrow() if hasattr(chosen, "toArrow") else chosen.toPandas()
    quoted = ", ".join('"{}"'.format(name.replace('"', '""')) for name in names)
    return data.project(quoted).to_arrow_table()
