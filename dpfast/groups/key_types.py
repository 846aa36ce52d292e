"""The types of columns of keys in tables of pandas, polars and Arrow: those of the labels, whatever these hold."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dpfast.core.tabular import whole_column
from dpfast.groups.labels import kind_of, library_of


@dataclass(frozen=True)
class KeyType:
    """The type of a column of labels, known without its cells.

    Parameters
    ----------
    kind : str
        See `labels.kind_of`.
    library : str, optional
        That of the column: "pandas", "polars" or "pyarrow".
    dtype : object, optional
        Of the column in its library, if it can hold any keys. Not the categories of a column, which may come from
        private data.
    is_categorical : bool
        Whether the column has categories in pandas: keys then have a dtype by themselves.
    """

    kind: str = "objects"
    library: str | None = None
    dtype: Any = None
    is_categorical: bool = False

    @classmethod
    def of(cls, column: Any) -> KeyType:
        """Return the type of a column of labels."""
        library, dtype = library_of(column), None
        if library == "pandas":
            dtype = column.dtype
            if hasattr(dtype, "categories"):
                return cls(kind_of(column), library, None, is_categorical=True)
            if getattr(dtype, "kind", "O") in "fb":
                dtype = None
        elif library == "polars":
            dtype = column.dtype if column.dtype.is_integer() else None
        elif library == "pyarrow":
            from pyarrow import types

            dtype = getattr(column.type, "value_type", column.type)
            if types.is_floating(dtype) or types.is_boolean(dtype):
                dtype = None
        return cls(kind_of(column), library, dtype)

    def _own(self, library: str) -> Any:
        return self.dtype if self.library == library else None

    def _kind(self, cells: list[Any]) -> str:
        """Return the kind of keys: of labels that are floats, those that users give as integers, released ones
        never.
        """
        whole = set(map(type, cells)) - {type(None)} == {int}
        return "integers" if self.kind == "floats" and whole else self.kind

    def pandas(self, cells: list[Any]) -> Any:
        """Return keys as a pandas.Index, in the dtype of the labels or, if that is not one of keys, by its kind."""
        import pandas

        if None in cells and self._kind(cells) == "integers":
            return pandas.Index(whole_column(cells))
        dtype = self._own("pandas")
        if dtype is None and not self.is_categorical:
            kinds = {"integers": "int64", "unsigned": "uint64", "floats": "float64", "text": "str"}
            dtype = kinds.get(self._kind(cells))
        for wanted in (dtype, None):
            with suppress(TypeError, ValueError, OverflowError):  # keys of another type, or surrogates in text
                return pandas.Index(cells, dtype=wanted)
        return pandas.Index(cells, dtype=object)

    def polars(self, name: str, cells: list[Any]) -> Any:
        """Return keys as a polars.Series."""
        import polars

        kinds = {"integers": polars.Int64, "unsigned": polars.UInt64, "floats": polars.Float64}
        dtype = self._own("polars")
        if dtype is None:
            dtype = (kinds | {"text": polars.String, "bytes": polars.Binary}).get(self._kind(cells))
        for wanted in (dtype, None):
            with suppress(TypeError, ValueError, OverflowError, polars.exceptions.PolarsError):
                return polars.Series(name, cells, dtype=wanted)
        return polars.Series(name, cells, dtype=polars.Object)

    def arrow(self, cells: list[Any]) -> Any:
        """Return keys as a pyarrow.Array.

        Raises a TypeError for keys that no type of Arrow can hold together.
        """
        import pyarrow

        kinds = {"integers": "int64", "unsigned": "uint64", "floats": "double", "text": "string", "bytes": "binary"}
        dtype = self._own("pyarrow") or kinds.get(self._kind(cells))
        if dtype is not None or len(set(map(type, cells)) - {type(None)}) <= 1:  # Arrow would make bytes of text
            for wanted in (dtype, None):
                with suppress(TypeError, ValueError, OverflowError, pyarrow.ArrowException):
                    return pyarrow.array(cells, wanted)
        raise TypeError("Arrow has no type for these keys: use to_pandas() or to_polars()")
