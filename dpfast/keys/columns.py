"""Columns of keys in users' containers, read without a copy where their layout allows it.

Whether a column is accepted, and the kind of its keys, depends on its type and dtype only, never on its values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpfast.core import containers
from dpfast.core.foreign import foreign
from dpfast.keys.cells import cell_bytes, text_bytes, text_of

Mask = NDArray[np.uint8]
_SIGN, _ALL_BUT_SIGN = np.uint64(2**63), np.int64(2**63 - 1)


def _cut(missing: Mask | None, start: int, stop: int) -> Mask | None:
    return None if missing is None else missing[start:stop]


@dataclass(frozen=True)
class Numbers:
    """Keys as 64-bit integers in their order; unsigned ones with their first bit flipped, floats as `ordered_bits`."""

    values: NDArray[np.int64]
    missing: Mask | None

    @property
    def n(self) -> int:
        return len(self.values)

    def between(self, start: int, stop: int) -> Numbers:
        """Return these records."""
        return Numbers(self.values[start:stop], _cut(self.missing, start, stop))


@dataclass(frozen=True)
class Offsets:
    """Keys data[offsets[i]:offsets[i + 1]]."""

    offsets: NDArray[Any]
    data: NDArray[np.uint8]
    missing: Mask | None

    @property
    def n(self) -> int:
        return len(self.offsets) - 1

    def between(self, start: int, stop: int) -> Offsets:
        """Return these records."""
        return Offsets(self.offsets[start : stop + 1], self.data, _cut(self.missing, start, stop))


@dataclass(frozen=True)
class Fixed:
    """Keys of a fixed number of bytes, in a layout of `dpfast._kernels._keys`."""

    records: NDArray[np.uint8]
    layout: str
    missing: Mask | None

    @property
    def n(self) -> int:
        return len(self.records)

    def between(self, start: int, stop: int) -> Fixed:
        """Return these records."""
        return Fixed(self.records[start:stop], self.layout, _cut(self.missing, start, stop))


@dataclass(frozen=True)
class ObjectKeys:
    """Keys that are Python objects."""

    cells: list[Any]
    encode: Callable[[Any], bytes | None]

    @property
    def n(self) -> int:
        return len(self.cells)


@dataclass(frozen=True)
class Coded:
    """Keys by their places in a list of values; negative places are missing."""

    places: NDArray[np.int64]
    values: KeyColumn

    @property
    def n(self) -> int:
        return len(self.places)


Part = Numbers | Offsets | Fixed | ObjectKeys | Coded


@dataclass(frozen=True)
class KeyColumn:
    """A column of keys of one kind; "" if its type says nothing.

    The kinds are "integers", "unsigned", "floats", "text", "bytes" and "objects".

    `dtype` is that of released keys.
    """

    kind: str
    dtype: np.dtype[Any]
    parts: tuple[Part, ...]

    ndim: ClassVar[int] = 2  # a reading adds empty chunks as well, which have a dtype

    def __len__(self) -> int:
        return sum(part.n for part in self.parts)


@dataclass(frozen=True)
class Several:
    """Columns of equal length, whose rows are the keys."""

    columns: tuple[KeyColumn, ...]

    ndim: ClassVar[int] = 2  # a reading adds empty chunks as well, which have a dtype

    def __len__(self) -> int:
        return len(self.columns[0])


OBJECT = np.dtype(object)


def column_of(x: Any, name: str = "keys") -> KeyColumn | Several:
    """Read a column of keys, or several.

    Parameters
    ----------
    x : array_like of shape (n,), or (n, k), frame, or tuple of k columns
        Integers, floats, booleans, text or bytes: a list, a NumPy array (also masked, of fixed-width text or objects),
        a column of pandas (a MultiIndex has several), polars or Arrow (also dictionary-encoded). NaN and null are
        missing. Cells of lists and columns of objects may also be Decimal, Fraction, UUID, date, time, datetime, IP
        addresses, and tuples or lists of keys. Equal numbers are the same key; numbers, text and bytes are different
        keys; anything else is missing. Categories of pandas are objects.

    Notes
    -----
    A tuple is a tuple of columns if all its entries are lists or arrays, else a list of keys.

    Raises
    ------
    TypeError, ValueError
        For another dtype or shape, or columns of different lengths.
    """
    with foreign():
        columns = _columns(x, name)
        if columns is None:
            return _column(x, name)
    if not columns:
        raise ValueError(f"{name} must have at least one column")
    if len(columns) == 1:
        return columns[0]
    if len(set(map(len, columns))) > 1:
        raise ValueError(f"the columns of {name} must be equally long")
    return Several(tuple(columns))


def _columns(x: Any, name: str) -> list[KeyColumn] | None:
    """Return the columns of a frame, a tuple or a matrix; None for a single column."""
    library = type(x).__module__.partition(".")[0]
    if isinstance(x, np.ndarray):
        if x.ndim not in (1, 2):
            raise ValueError(f"{name} must have one or two dimensions, not {x.ndim}")
        return [_column(x[:, j], name) for j in range(x.shape[1])] if x.ndim == 2 else None
    if isinstance(x, tuple) and x and all(map(_is_column, x)):
        return [_column(column, name) for column in x]
    if library == "polars" and hasattr(x, "get_columns"):
        return [_column(column, name) for column in x.get_columns()]
    if library == "pyarrow" and hasattr(x, "schema"):
        return [_column(column, name) for column in x.columns]
    if library == "pandas" and hasattr(x, "levels"):
        return [_column(x.get_level_values(j), name) for j in range(x.nlevels)]
    if library == "pandas" and getattr(x, "ndim", 1) == 2:
        return [_column(x.iloc[:, j], name) for j in range(x.shape[1])]
    return None


def _is_column(x: Any) -> bool:
    """Whether an entry of a tuple is a column, rather than a key."""
    return (
        containers.is_sequence(x)
        or getattr(x, "ndim", 1 if hasattr(x, "__arrow_c_array__") or hasattr(x, "__arrow_c_stream__") else 0) == 1
    )


def _column(x: Any, name: str) -> KeyColumn:
    if type(x) is np.ndarray or isinstance(x, np.ma.MaskedArray):
        return _from_numpy(x, name)
    if containers.is_sequence(x):
        return _from_cells(list(x))
    library = type(x).__module__.partition(".")[0]
    if library == "pandas":
        return _from_pandas(x, name)
    if library == "polars" and hasattr(x, "to_arrow"):
        if str(x.dtype) in ("Object", "Int128", "UInt128"):  # Arrow has the addresses of objects, and no such integers
            return _from_cells(x.to_list())
        x = x.to_arrow()
    x = containers.imported(x)
    if containers.is_arrow(x):
        return _from_arrow(x, name)
    if isinstance(x, (str, bytes)) or not hasattr(x, "__array__"):
        raise TypeError(f"{name} must be a column of keys, not {type(x).__name__}")
    return _from_numpy(np.asarray(x), name)


def _from_cells(cells: list[Any], encode: Callable[[Any], bytes | None] = cell_bytes) -> KeyColumn:
    return KeyColumn("objects" if encode is cell_bytes else "text", OBJECT, (ObjectKeys(cells, encode),))


def _from_numpy(array: NDArray[Any], name: str) -> KeyColumn:
    if array.ndim != 1:
        raise ValueError(f"each column of {name} must be one-dimensional, not of shape {containers.shape_of(array)}")
    missing = None
    if isinstance(array, np.ma.MaskedArray):
        missing, array = _mask(np.ma.getmaskarray(array)), np.asarray(array.data)
    kind = array.dtype.kind
    if kind in "iub":
        return _integers(array, missing)
    if kind == "f":
        if array.dtype.itemsize > 8:
            raise _refused(name, containers.name_of(array.dtype))
        return _floats(array, missing)
    if kind == "O" or kind == "T":
        cells = array.tolist()
        if missing is not None:
            cells = [None if absent else cell for cell, absent in zip(cells, missing, strict=True)]
        return _from_cells(cells, cell_bytes if kind == "O" else text_bytes)
    if kind in "SU":
        plain = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False))
        records = plain.view(np.uint8).reshape(len(plain), plain.dtype.itemsize)
        part = Fixed(records, "padded" if kind == "S" else "ucs4", missing)
        return KeyColumn("bytes" if kind == "S" else "text", OBJECT, (part,))
    raise _refused(name, containers.name_of(array.dtype))


def _refused(name: str, kind: str) -> TypeError:
    return TypeError(f"{name} must be numbers, text or bytes, or a list of other keys, not {kind}")


def _mask(missing: Any) -> Mask:
    return np.ascontiguousarray(missing, dtype=np.bool_).view(np.uint8)


def _integers(array: NDArray[Any], missing: Mask | None) -> KeyColumn:
    dtype = array.dtype.newbyteorder("=")
    if dtype == np.uint64:
        flipped = (array.astype(dtype, copy=False) ^ _SIGN).view(np.int64)
        return KeyColumn("unsigned", dtype, (Numbers(flipped, missing),))
    return KeyColumn("integers", dtype, (Numbers(np.ascontiguousarray(array, dtype=np.int64), missing),))


def ordered_bits(floats: NDArray[np.float64]) -> NDArray[np.int64]:
    """Integers in the order of floats, the same for both zeros: their bits, of negative ones all but the sign flipped.

    The same flips lead back.
    """
    bits = (floats + 0.0).view(np.int64)
    return bits ^ ((bits >> 63) & _ALL_BUT_SIGN)


def floats_of(ordered: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the floats of `ordered_bits`."""
    return (ordered ^ ((ordered >> 63) & _ALL_BUT_SIGN)).view(np.float64)


def _floats(array: NDArray[Any], missing: Mask | None) -> KeyColumn:
    """Floats, of which all but NaN are keys."""
    with np.errstate(all="ignore"):  # a signalling NaN
        values = array.astype(np.float64)
        absent = np.isnan(values)
        bits = ordered_bits(np.where(absent, 0.0, values))
    if missing is not None:
        absent |= missing != 0
    return KeyColumn("floats", values.dtype, (Numbers(bits, _mask(absent)),))


def _from_pandas(x: Any, name: str) -> KeyColumn:
    array, dtype = getattr(x, "array", x), x.dtype
    if isinstance(dtype, np.dtype):
        return _from_numpy(x.to_numpy(), name)
    if hasattr(array, "categories"):
        categories = _from_cells(array.categories.tolist())  # their dtype may be a guess of pandas from the records
        return _coded(np.asarray(array.codes, dtype=np.int64), categories)
    if hasattr(dtype, "storage"):  # text
        if dtype.storage == "pyarrow":
            return _from_arrow(array.__arrow_array__(), name)
        return _from_cells(list(array), text_bytes)
    if hasattr(dtype, "pyarrow_dtype"):
        return _from_arrow(array.__arrow_array__(), name)
    if not hasattr(dtype, "numpy_dtype"):
        raise _refused(name, f"dtype {dtype.name}")
    missing = _mask(array.isna())
    if dtype.kind in "iub":
        wide = dtype.numpy_dtype
        return _integers(array.to_numpy(dtype=wide, na_value=wide.type(0)), missing)
    if dtype.kind == "f":
        return _floats(array.to_numpy(dtype=np.float64, na_value=np.nan), missing)
    raise _refused(name, f"dtype {dtype.name}")


def _unknown(n: int) -> KeyColumn:
    """Return a column whose type says nothing about its keys, all of which are missing."""
    return KeyColumn("", OBJECT, (ObjectKeys([None] * n, cell_bytes),))


def _coded(places: NDArray[np.int64], values: KeyColumn) -> KeyColumn:
    return KeyColumn(values.kind, values.dtype, (Coded(places, values),))


_ARROW_INTEGERS = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_ARROW_SPANS = {
    "string": ("text", np.int32),
    "large_string": ("text", np.int64),
    "binary": ("bytes", np.int32),
    "large_binary": ("bytes", np.int64),
}
_ARROW_VIEWS = {"string_view": "large_string", "binary_view": "large_binary"}


def _from_arrow(x: Any, name: str) -> KeyColumn:
    chunks = list(x.chunks) if hasattr(x, "chunks") else [x]
    if not chunks:
        chunks = [_empty(x.type)]
    columns = [_from_arrow_chunk(chunk, name) for chunk in chunks]
    return KeyColumn(columns[0].kind, columns[0].dtype, tuple(part for column in columns for part in column.parts))


def _empty(kind: Any) -> Any:
    import pyarrow

    return pyarrow.array([], kind)


def _from_arrow_chunk(x: Any, name: str) -> KeyColumn:
    kind = str(x.type)
    if hasattr(x, "dictionary"):
        values = x.dictionary
        while hasattr(values, "dictionary"):
            values = values.dictionary_decode()
        return _coded(np.asarray(x.indices.cast("int64").fill_null(-1)), _from_arrow(values, name))
    missing = _mask(x.is_null().to_numpy(zero_copy_only=False)) if x.null_count else None
    if kind == "null":
        return _unknown(len(x))
    if kind in _ARROW_INTEGERS:
        return _integers((x.fill_null(0) if missing is not None else x).to_numpy(), missing)
    if kind == "bool":
        return _integers(x.fill_null(False).to_numpy(zero_copy_only=False), missing)
    if kind in ("halffloat", "float", "double"):
        return _floats(np.asarray(x.to_numpy(zero_copy_only=False)), missing)
    if kind in _ARROW_VIEWS:
        x = x.cast(_ARROW_VIEWS[kind])
        kind = str(x.type)
    if kind in _ARROW_SPANS and kind.endswith("string") and not _is_utf8(x):  # different bytes may be the same text
        cells = [
            None if cell is None else text_of(cell) for cell in x.cast(kind.replace("string", "binary")).to_pylist()
        ]
        return _from_cells(cells, text_bytes)
    if kind in _ARROW_SPANS:
        what, width = _ARROW_SPANS[kind]
        _, offsets, data = x.buffers()
        if offsets is None or len(x) == 0:
            ends = np.zeros(len(x) + 1, width)
        else:
            ends = np.frombuffer(offsets, width, len(x) + 1, x.offset * np.dtype(width).itemsize)
        spans = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
        return KeyColumn(what, OBJECT, (Offsets(ends, spans, missing),))
    if kind.startswith("fixed_size_binary"):
        return _from_arrow_chunk(x.cast("binary"), name)
    raise _refused(name, f"Arrow's {kind}")


def _is_utf8(x: Any) -> bool:
    try:
        x.validate(full=True)
    except ValueError:
        return False
    return True
