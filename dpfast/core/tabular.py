"""Results that are tables: for notebooks as HTML, and as frames of pandas, polars and Arrow."""

from __future__ import annotations

import html
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = Sequence[Any] | NDArray[Any]

_SHOWN = 10  # rows at the beginning and at the end of a long table
_LONGEST = 100  # characters of a cell
_LEFT, _RIGHT = (f' style="text-align: {side}"' for side in ("left", "right"))


class Tabular(ABC):
    """Base class of results that are tables; a subclass defines their columns and their caption."""

    @abstractmethod
    def _as_columns(self) -> Mapping[str, Column]:
        """Return the columns by name, equally long: arrays of numbers, or sequences of text, bytes,
        integers and None.
        """

    @abstractmethod
    def _caption(self) -> str:
        """Return a line about the table that states the guarantee."""

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the table as lists by the names of its columns: text, integers, floats and None."""
        return {str(name): list(map(_plain, _listed(column))) for name, column in self._as_columns().items()}

    def to_json(self) -> str:
        """Return the table as a JSON object: the kind of result, its guarantee, and its columns; null for NaN."""
        privacy = getattr(self, "privacy", None)
        stated = {"result": type(self).__name__, "guarantee": None if privacy is None else str(privacy)}
        return json.dumps({**stated, "columns": finite(self.to_columns())})

    def to_pandas(self) -> Any:
        """Return the table as a pandas.DataFrame, with the columns that the guide lists.

        https://dpfast.readthedocs.io/en/latest/guides/results.html
        """
        import pandas

        return pandas.DataFrame({name: whole_column(_listed(column)) for name, column in self._as_columns().items()})

    def to_polars(self) -> Any:
        """Return the table as a polars.DataFrame."""
        import polars

        return polars.DataFrame([_series(name, column) for name, column in self._as_columns().items()])

    def to_arrow(self) -> Any:
        """Return the table as a pyarrow.Table."""
        import pyarrow

        return pyarrow.table({name: pyarrow.array(_listed(column)) for name, column in self._as_columns().items()})

    def _repr_html_(self) -> str:
        columns = self._as_columns()
        length = len(next(iter(columns.values())))
        rows = [tuple(column[i] for column in columns.values()) for i in _ends(length)]
        return html_table(self._caption(), list(columns), rows, left_out=length - len(rows))


class Declared:
    """Base class of frozen dataclasses of public parameters with a guarantee: in notebooks a table of both."""

    def _repr_html_(self) -> str:
        public: tuple[Field[Any], ...] = fields(self) if is_dataclass(self) else ()
        rows = [(field.name, str(getattr(self, field.name))) for field in public if field.init]
        guarantee = getattr(self, "privacy", None)
        caption = type(self).__name__ + ("" if guarantee is None else f": {guarantee}")
        return html_table(caption, ["parameter", "value"], rows)


def html_table(
    caption: str, headings: Sequence[str], rows: Iterable[Sequence[Any]], *, left_out: int = 0, note: str = ""
) -> str:
    """Return a table in HTML, of escaped text and numbers. Its colours are those of the notebook.

    Parameters
    ----------
    caption : str
    headings : sequence of str
    rows : iterable of sequences
        Numbers are aligned to the right, all else to the left.
    left_out : int
        The number of rows that are left out after the first ten.
    note : str
        A text below the table.
    """
    body = list(rows)
    sides = [_RIGHT if body and _is_number(value) else _LEFT for value in (body[0] if body else headings)]
    head = "".join(f"<th{side}>{html.escape(str(name))}</th>" for name, side in zip(headings, sides, strict=True))
    lines = [f"<tr>{''.join(map(_cell, row))}</tr>" for row in body]
    if left_out:
        lines.insert(_SHOWN, f'<tr><td colspan="{len(headings)}"{_LEFT}>... {left_out:,} more rows ...</td></tr>')
    above = f"<p>{html.escape(caption)}</p>"
    below = f"<p>{html.escape(note)}</p>" if note else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return f'{above}<div style="overflow-x: auto">{table}</div>{below}'  # wide tables scroll on a telephone


def finite(value: Any) -> Any:
    """Return lists and mappings of numbers with None for NaN and text for infinities, which JSON does not have."""
    if isinstance(value, Mapping):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def whole_column(cells: Any) -> Any:
    """Return a list of whole numbers, some of which are missing, as a column of integers of pandas; others unchanged.

    pandas by itself would make floats of them.
    """
    if not isinstance(cells, list) or None not in cells or set(map(type, cells)) != {int, type(None)}:
        return cells
    import pandas

    try:
        return pandas.array(cells, dtype="Int64")
    except OverflowError:
        return cells


def unused(name: str, taken: Mapping[str, object]) -> str:
    """Return the name, with underscores if it is taken."""
    while name in taken:
        name += "_"
    return name


def _ends(length: int) -> Iterable[int]:
    """Return the places of the rows of a long table that are shown."""
    return range(length) if length <= 2 * _SHOWN else chain(range(_SHOWN), range(length - _SHOWN, length))


def _cell(value: Any) -> str:
    return f"<td{_RIGHT if _is_number(value) else _LEFT}>{html.escape(_shown(value))}</td>"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    """Return a value as text of limited length; floats to six digits."""
    text = f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _plain(value: Any) -> Any:
    """Return a cell as an object of Python; bytes as text."""
    value = value.item() if isinstance(value, np.generic) else value
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def _series(name: str, column: Column) -> Any:
    """Return a column of polars; of objects, if they are of several types."""
    import polars

    try:
        return polars.Series(name, _listed(column))
    except TypeError:
        return polars.Series(name, _listed(column), dtype=polars.Object)


def _listed(column: Column) -> Any:
    """Return an array of numbers unchanged; objects as a list, from which libraries infer a type."""
    return column.tolist() if isinstance(column, np.ndarray) and column.dtype == object else column
