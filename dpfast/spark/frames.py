"""The columns of Spark frames: their types, and the SQL of their codes on a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpfast.core.grid import Grid

_NUMBERS = frozenset({"boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "void"})


@dataclass(frozen=True)
class ChosenColumns:
    """The columns of a frame that have the records.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Private.
    columns : tuple of str
        The columns of the records, in their order.
    y : str or None
        The column of the labels, for records with labels.
    several : bool
        Whether a record is a row.
    """

    frame: Any
    columns: tuple[str, ...]
    y: str | None
    several: bool

    @classmethod
    def of(cls, frame: Any, columns: str | Sequence[str], y: str | None = None) -> ChosenColumns:
        """Check names and types against the schema, which is public."""
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        if not names:
            raise ValueError("columns must name at least one column")
        types = types_of(frame)
        for name in (*names, *([] if y is None else [y])):
            check_name(name, types)
            if types[name] not in _NUMBERS:
                raise TypeError(f"column {name!r} must hold numbers, not {types[name]}: cast it to double")
        return cls(frame, names, y, not isinstance(columns, str))

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that are read."""
        return self.columns if self.y is None else (*self.columns, self.y)

    @property
    def selected(self) -> list[str]:
        """The SQL of `names`."""
        return list(map(quoted, self.names))

    def records(self, batch: Any) -> Any:
        """Return the records of an Arrow batch of `names`, as a mechanism takes them."""
        if self.y is not None:
            return batch.select(list(range(len(self.columns)))), batch.column(len(self.columns))
        return batch if self.several else batch.column(0)

    def without_frame(self) -> ChosenColumns:
        """Return the names alone, for workers."""
        return ChosenColumns(None, self.columns, self.y, self.several)


def types_of(frame: Any) -> dict[str, str]:
    """Return the type of each column by its name; a name that several columns share has the type ""."""
    names = [field.name for field in frame.schema.fields]
    types = [field.dataType.simpleString() for field in frame.schema.fields]
    return {name: kind if names.count(name) == 1 else "" for name, kind in zip(names, types, strict=True)}


def check_name(name: Any, types: dict[str, str]) -> None:
    """Check that a name stands for one column."""
    if not isinstance(name, str):
        raise TypeError(f"a column is given by its name, not by a {type(name).__name__}: select it under a name first")
    if name not in types:
        raise ValueError(f"the frame has no column {name!r}")
    if not types[name]:
        raise ValueError(f"several columns of the frame are named {name!r}: rename all but one")


def quoted(name: str) -> str:
    """Return a name of a column in SQL."""
    return "`" + name.replace("`", "``") + "`"


def code(grid: Grid, name: str) -> str:
    """Return the SQL of the code of a column on a grid, as of `Grid.encode`; of missing records if their value is a
    number.

    Java rounds, compares and divides doubles like NumPy, and the step is a power of two: the code is exact.
    """
    x = f"CAST({quoted(name)} AS DOUBLE)"
    lower, upper, step = (f"{number!r}D" for number in (grid.lower, grid.upper, grid.step))
    [missing] = grid.encode([grid.nan_value]).tolist()
    return (
        f"CASE WHEN {x} > {lower} AND {x} < {upper} THEN CAST(rint({x} / {step}) AS BIGINT) - {grid.first}L "
        f"WHEN {x} <= {lower} THEN 0L WHEN {x} IS NULL OR isnan({x}) THEN {missing}L ELSE {grid.size - 1}L END"
    )


def present(name: str) -> str:
    """Return the SQL condition that a record is not missing."""
    x = f"CAST({quoted(name)} AS DOUBLE)"
    return f"{x} IS NOT NULL AND NOT isnan({x})"
