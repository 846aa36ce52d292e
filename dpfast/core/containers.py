"""Conversion of users' containers to arrays of numbers. It depends on type, dtype and shape only, never on values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AnySet
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.core import columns
from dpfast.core.checks import candidates, exact, is_real
from dpfast.core.columns import PartedColumn, Rows
from dpfast.core.foreign import foreign, swallowed

_SUPPORTED = frozenset(np.dtype(code) for code in "?bhilqBHILQefd")
_SCORES = frozenset(np.dtype(kind) for kind in (np.float64, np.int64, np.uint64))
# Types of cells that NumPy converts like `_float`, and types that NumPy converts although they are not real numbers.
_PLAIN = frozenset({float, int, bool, type(None), *(dtype.type for dtype in _SUPPORTED)})
_NO_FLOATS = (complex, np.complexfloating, np.datetime64, np.timedelta64)
_MOST_DIMENSIONS = 32
_MOST_PLACES = 400  # digits of a decimal score before or after the point: others are outside the range of float64
_ZERO = Fraction(0)
MOST_COUNTED = 2**52  # records that counts may stand for
# An object with one of these attributes declares how to read it, like an object with a buffer.
_DECLARATIONS = (
    "dtype",
    "__array__",
    "__array_interface__",
    "__array_struct__",
    "__arrow_c_array__",
    "__arrow_c_stream__",
)
_INTEGERS = {f"{s}int{b}" for s in ("", "u") for b in (8, 16, 32, 64)}
_FLOATS = {"halffloat", "float", "double"}
_ARROW = {"null", "bool"} | _FLOATS | _INTEGERS
_POLARS = {"null", "boolean", "float16", "float32", "float64"} | _INTEGERS


def without_records(x: Any) -> Any:
    """Return a container of the type and dtype of x that has no records, without code of others.

    None for lists, columns of objects and containers of other libraries: code of others, or cells, say what they hold.
    """
    kind = type(x)
    if kind in (str, bytes, bool, int, float) or (kind.__module__ == "numpy" and issubclass(kind, np.generic)):
        return x  # it has no records itself, such as the name of a column in place of the column
    if kind in (np.ndarray, np.recarray, np.memmap, np.ma.MaskedArray):
        return x[:0] if x.ndim else x
    library = kind.__module__.partition(".")[0]
    if library == "pandas":
        dtypes = x.dtypes if kind.__name__ == "DataFrame" else [x.dtype] if kind.__name__ == "Series" else []
    elif library in ("polars", "pyarrow") and hasattr(kind, "__len__"):
        columns = _table(x) if column_names(x) is not None else (x,)
        dtypes = [getattr(part, "dtype", getattr(part, "type", None)) for part in columns or ()]
    else:
        return None
    own = [type(of).__module__.partition(".")[0] in ("numpy", library) for of in dtypes]
    if not own or not all(own) or any(str(of) in ("object", "Object") for of in dtypes):
        return None
    return x.iloc[:0] if library == "pandas" else x[:0]


def declares_integers(x: Any) -> bool:
    """Whether x has an integer or boolean dtype: an array, a column of a table, all its columns; never a list."""
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "iub"
    if is_lazy(x):
        return False
    x = imported(x)
    if is_arrow(x):
        return str(x.type).startswith(("int", "uint", "bool"))
    if _is_polars(x):
        return str(x.dtype).startswith(("Int", "UInt", "Boolean"))
    if (columns := _table(x)) is not None:
        return len(columns) > 0 and all(map(declares_integers, columns))
    if (dtypes := getattr(x, "dtypes", None)) is not None and getattr(x, "ndim", 1) == 2:
        return len(dtypes) > 0 and all(dtype.kind in "iub" for dtype in dtypes)
    if hasattr(type(x), "declares_integers"):  # Chunks
        return bool(x.declares_integers())
    return getattr(getattr(x, "dtype", None), "kind", None) in ("i", "u", "b")


def may_be_missing(x: Any) -> bool:
    """Whether records of x may be missing, by its type alone: not in integers and booleans of NumPy."""
    if hasattr(type(x), "may_be_missing"):  # Chunks
        return bool(x.may_be_missing())
    if type(x).__name__ == "DataFrame" and type(x).__module__.partition(".")[0] == "pandas":
        return any(not isinstance(dtype, np.dtype) or dtype.kind not in "iub" for dtype in x.dtypes)
    dtype = getattr(x, "dtype", None)
    return not isinstance(dtype, np.dtype) or dtype.kind not in "iub" or isinstance(x, np.ma.MaskedArray)


def marks_missing(x: Any) -> bool:
    """Whether x is a masked array, or a column of a table that can have missing cells, by its type alone."""
    of_tables = type(x).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow")
    return isinstance(x, np.ma.MaskedArray) or (of_tables and may_be_missing(x))


def vector(name: str, x: Any) -> NDArray[Any]:
    """Convert x to a one-dimensional array of numbers in native byte order, without a copy if possible.

    A masked entry and a null become NaN, and so does, in a sequence, None and any other cell that is not a number. A
    dtype of text, objects, dates or complex numbers raises a TypeError; decimals of Arrow and polars are numbers.
    """
    if type(x) is np.ndarray and x.ndim == 1 and x.dtype in _SUPPORTED:
        return x
    array = numbers(name, x, dimensions=1)
    if array.ndim != 1:
        names = column_names(x) if array.ndim == 2 else None
        hint = f": pass one column, such as {name}[{names[0]!r}]" if names else ""
        raise ValueError(f"{name} must be one-dimensional, not of shape {shape_of(array)}{hint}")
    return array


def is_lazy(x: Any) -> bool:
    """Whether x is a lazy frame of polars, of which even attributes would be computed."""
    return type(x).__name__ == "LazyFrame"


def check_in_memory(name: str, x: Any) -> None:
    """Raise a TypeError for records that are not in memory, or not dense, which says what to pass instead."""
    library = type(x).__module__.partition(".")[0]
    if is_lazy(x):
        raise TypeError(f"{name} must hold numbers, not a lazy frame: pass {name}.collect()")
    if library.endswith("duckdb"):
        raise TypeError(f"{name} must hold numbers, not a relation of DuckDB: pass a column of {name}.df()")
    if library == "scipy" and hasattr(x, "toarray"):
        raise TypeError(f"{name} must hold numbers, not a sparse array: pass {name}.toarray()")


def column(name: str, x: Any) -> Any:
    """Convert x like `vector`, but leave a container that would be copied where it is, for kernels: a `PartedColumn`.

    Its numbers are the same: 64-bit integers that may be missing are rounded to doubles.
    """
    if isinstance(x, PartedColumn) or (type(x) is np.ndarray and x.ndim == 1 and x.dtype in _SUPPORTED):
        return x
    with foreign(), np.errstate(all="ignore"):
        check_in_memory(name, x)
        found = _column(x)
    return vector(name, x) if found is None else found


def _column(x: Any) -> Any:
    """Return the column of a container of numbers that are not one array; None for an empty one and all others."""
    if isinstance(x, np.ndarray):
        if x.ndim != 1 or not x.size or x.dtype.newbyteorder("=") not in _SUPPORTED:
            return None
        if type(x) is np.ma.MaskedArray:
            return columns.of_masked(np.ma.getdata(x), np.ma.getmask(x))
        whole = x.dtype.kind in "iu" and x.dtype.itemsize == 8  # the codes of 64-bit integers are not rounded twice
        copied = whole or x.dtype.isnative or isinstance(x, np.ma.MaskedArray)  # of a class of the user
        return None if copied else PartedColumn([columns.ColumnPart(x)])
    if is_sequence(x) or not _has_entries(type(x)) or not len(x):
        return None
    if _is_extension(x) and x.dtype.kind in "iuf":
        return _extension(getattr(x, "array", x))  # of a Series or an Index
    x = _chunked(x) if _is_polars(x) else imported(x)
    return columns.of_arrow(x) if is_arrow(x) else None


def _extension(x: Any) -> Any:
    """Return the column of an extension array of pandas, which has no public view of its numbers and its mask."""
    values, mask = (getattr(x, name, None) for name in ("_data", "_mask"))
    if isinstance(values, np.ndarray) and isinstance(mask, np.ndarray):
        whole = values.ndim == 1 and values.dtype in _SUPPORTED and mask.shape == values.shape and mask.dtype == bool
        return columns.of_masked(values, mask) if whole else None
    x = x.__arrow_array__() if hasattr(x, "__arrow_array__") else x
    return columns.of_arrow(x) if is_arrow(x) else None


def _chunked(x: Any) -> Any:
    """Return a column of polars as Arrow's, without a copy, or itself if pyarrow is not installed."""
    try:
        import pyarrow
    except ImportError:
        return x
    return pyarrow.chunked_array(x)


def matrix(name: str, x: Any) -> NDArray[Any]:
    """Convert x to a two-dimensional array of numbers, a record in each row, like `vector`; at least one column."""
    array = numbers(name, x, dimensions=2)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"{name} must be two-dimensional, a record in each row, not of shape {shape_of(array)}")
    return array


def rows(name: str, x: Any) -> Any:
    """Convert x like `matrix`, but leave the columns of floats of a frame where they are: `Rows`."""
    if isinstance(x, Rows):
        return x
    if not (isinstance(x, np.ndarray) or is_lazy(x)):
        with foreign():
            named = None if is_sequence(x) else column_names(x)
            parts = _table(x) if named else None
            if parts and len(parts[0]):
                read = [column(f"column {of!r} of {name}", part) for of, part in zip(named or (), parts, strict=True)]
                if all(part.dtype.kind == "f" for part in read):
                    return Rows(read)
    return matrix(name, x)


def shape_of(array: NDArray[Any]) -> str:
    """Return the shape as text, without the number of records, which may be private."""
    return "()" if array.ndim == 0 else f"({', '.join(['n', *map(str, array.shape[1:])])}{',' * (array.ndim == 1)})"


def numbers(name: str, x: Any, *, dimensions: int = _MOST_DIMENSIONS) -> NDArray[Any]:
    """Convert x to an array of numbers of any shape, like `vector`.

    The conversion depends on the type and dtype of x only, never on its values, not even on whether any is missing:
    each record is mapped separately. A container with a dtype is read with this dtype. Every other sequence is a list
    of cells and becomes float64 for any content. A type that can hold missing integers also becomes float64. Floats are
    not copied if NumPy can view them, that is, without nulls and in one piece.

    `dimensions` is the number of dimensions that records should have: beyond it, a row among other cells is a cell.
    """
    if type(x) is np.memmap:
        x = np.asarray(x)  # a slice of a memmap takes many times as long as one of an array
    if type(x) is np.ndarray and x.dtype in _SUPPORTED:
        return x
    with foreign(), np.errstate(all="ignore"):  # a conversion may read a signalling NaN, or overflow to infinity
        check_in_memory(name, x)
        x = imported(x)
        if is_sequence(x):
            return _from_sequence(name, x, dimensions)
        if is_real(x) or isinstance(x, bool):
            return _floats([x]).reshape(())
        if is_arrow(x):
            return _from_arrow(name, x)
        if _is_polars(x):
            return _from_polars(name, x)
        if (columns := _table(x)) is not None:
            named = zip(column_names(x) or (), columns, strict=True)
            read = [numbers(f"column {column!r} of {name}", values) for column, values in named]
            return np.column_stack(read) if read else np.empty((0, 0))
        if _is_extension(x):
            if x.dtype.kind not in "biuf" and not str(x.dtype).startswith("decimal"):
                raise TypeError(f"{name} must hold numbers, not dtype {x.dtype.name}{_converted(x.dtype.name)}")
            return np.asarray(x.to_numpy(dtype=np.float64, na_value=np.nan))
        if not _declares(x):
            if not hasattr(x, "__dlpack__"):
                raise TypeError(f"{name} must hold numbers, not {_described(x)}")
            x = np.from_dlpack(x)
        array: NDArray[Any] = np.asarray(x)
        if array.dtype.kind not in "biuf":
            kind = name_of(array.dtype)
            raise TypeError(f"{name} must hold numbers, not dtype {kind}{_converted(kind)}")
        if isinstance(x, np.ma.MaskedArray):
            array = np.where(np.ma.getmaskarray(x), np.nan, array.astype(np.float64))
        if array.dtype not in _SUPPORTED:
            array = array.astype(np.float64 if array.dtype.kind == "f" else array.dtype.newbyteorder("="))
        return array


def _converted(kind: str) -> str:
    """Return how to make numbers of a column of some type, by its name."""
    kind = kind.lower()
    if kind.startswith(("date", "time", "duration")):
        return ": pass numbers, such as days since a public date"
    if kind.startswith("dictionary"):
        return ": pass its values as numbers, such as by x.dictionary_decode().cast('float64')"
    if kind == "object":
        return ": convert it first, such as by x.astype(float)"
    if kind.startswith(("str", "bytes", "utf", "large_str")):
        return ": dpfast.partitions(x, domain=[...], epsilon=...) counts text and other keys"
    if kind.startswith(("categor", "enum")):
        return ": convert it to numbers first, or count its keys by dpfast.by_group with labels= and keys="
    return ""


def _described(x: Any) -> str:
    """Return what x is, if it is no container of records, and what to pass in its place."""
    if isinstance(x, (str, bytes, bytearray)):
        return "text"
    if isinstance(x, Mapping):
        return "a mapping: pass a list of its values"
    if isinstance(x, AnySet):
        return "a set, which has no equal records: pass a list"
    kind = "None" if x is None else f"a {type(x).__name__}"
    if isinstance(x, Iterator):
        return f"{kind}, which can be read once: pass a list, or pieces by dpfast.Chunks"
    return kind + (": pass a list" if isinstance(x, Iterable) else "")


def doubles(array: NDArray[Any]) -> NDArray[np.float64]:
    """Return an array of numbers as a contiguous one of float64."""
    if array.dtype == np.float64 and array.flags.c_contiguous:
        return array
    with np.errstate(all="ignore"):  # a signalling NaN, a long double beyond float64
        return np.ascontiguousarray(array, dtype=np.float64)


def cell(x: Any) -> NDArray[np.float64]:
    """Return the number in one cell, by itself, as `numbers` reads it in a list: an array of length 1."""
    if type(x) in (float, int):
        return _floats([x])
    with foreign(), np.errstate(all="ignore"):
        return _floats([x])


def name_of(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype, without the length of the longest text."""
    return dtype.type.__name__.rstrip("_")


def is_sequence(x: Any) -> bool:
    """Whether x has entries and no dtype: a list, tuple, range, deque, or an object of a similar class."""
    return type(x) in (list, tuple) or (_has_entries(type(x)) and not _declares(x))


def _has_entries(kind: type) -> bool:
    """Whether objects of a class have entries and are not text."""
    return (
        hasattr(kind, "__len__")
        and hasattr(kind, "__getitem__")
        and not issubclass(kind, (str, bytes, bytearray, Mapping))
    )


def _declares(x: Any) -> bool:
    if any(hasattr(x, name) for name in _DECLARATIONS):
        return True
    try:
        memoryview(x)
    except TypeError:
        return False
    return True


def _is_extension(x: Any) -> bool:
    """Whether x is a column with an extension dtype of pandas."""
    dtype = getattr(x, "dtype", None)
    return not isinstance(dtype, np.dtype) and hasattr(dtype, "kind") and hasattr(x, "to_numpy")


def imported(x: Any) -> Any:
    """Import data of another Arrow library into pyarrow by the C data interface, without a copy."""
    if isinstance(x, np.ndarray) or hasattr(x, "dtype") or hasattr(x, "columns") or is_arrow(x):
        return x
    for method, name in (("__arrow_c_array__", "array"), ("__arrow_c_stream__", "chunked_array")):
        if hasattr(x, method):
            try:
                import pyarrow
            except ImportError:
                raise TypeError(f"pyarrow is needed to read {type(x).__name__}, which is not installed") from None
            return getattr(pyarrow, name)(x)
    return x


def _from_arrow(name: str, x: Any) -> NDArray[Any]:
    kind = str(x.type)
    if kind not in _ARROW and not kind.startswith("decimal"):
        raise TypeError(f"{name} must hold numbers, not Arrow's {kind}{_converted(kind)}")
    if getattr(x, "num_chunks", 0) == 1:  # several pieces are concatenated
        x = x.chunk(0)
    if kind not in _FLOATS:
        x = x.cast("float64", safe=False)
    return np.asarray(x)


def _is_polars(x: Any) -> bool:
    return type(x).__name__ == "Series" and type(x).__module__.partition(".")[0] == "polars"


def _from_polars(name: str, x: Any) -> NDArray[Any]:
    kind = str(x.dtype)
    if kind.lower() not in _POLARS and not kind.startswith("Decimal"):
        raise TypeError(f"{name} must hold numbers, not polars' {kind}{_converted(kind)}")
    return np.asarray(x.to_numpy() if kind.startswith("Float") else x.cast(float).to_numpy())


def column_names(x: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a data frame or a table, or of `Chunks` of them; None for other containers."""
    if hasattr(type(x), "named_columns"):  # Chunks
        names: tuple[str, ...] | None = x.named_columns()
        return names
    library = type(x).__module__.partition(".")[0]
    if is_lazy(x):
        return None
    if library in ("pandas", "polars") and getattr(x, "ndim", 2) == 2 and hasattr(x, "columns"):
        return tuple(map(str, x.columns))
    if library == "pyarrow" and hasattr(x, "schema"):
        return tuple(map(str, x.schema.names))
    return None


def _table(x: Any) -> list[Any] | None:
    """Return the columns of a data frame or a table; None if NumPy converts it by dtypes alone."""
    library = type(x).__module__.partition(".")[0]
    if library == "polars" and hasattr(x, "get_columns"):
        return list(x.get_columns())
    if library == "pyarrow" and hasattr(x, "schema"):
        return list(x.columns)
    if library == "pandas" and hasattr(x, "dtypes") and x.ndim == 2:
        dtypes = list(x.dtypes)
        kinds = {dtype.kind if isinstance(dtype, np.dtype) else "O" for dtype in dtypes}
        if "O" in kinds or ("b" in kinds and len(kinds) > 1):  # NumPy would make one array of objects
            return [x.iloc[:, j] for j in range(len(dtypes))]
    return None


def is_arrow(x: Any) -> bool:
    """Whether x is an array or a chunked array of Arrow."""
    return (
        not hasattr(x, "dtype")
        and hasattr(x, "type")
        and hasattr(x, "cast")
        and (hasattr(x, "__arrow_c_array__") or hasattr(x, "__arrow_c_stream__"))
    )


def _from_sequence(name: str, x: Sequence[Any], dimensions: int) -> NDArray[np.float64]:
    """Convert a sequence to float64. Like in a column of a table, a cell that is not a number is missing, not an error.

    Among rows, which must have equal length, any other item is a missing row. From `dimensions` on, the items must be
    all rows, otherwise all are cells.
    """
    cells = x if type(x) is list else list(x)
    shape: tuple[int, ...] = (len(cells),)
    while len(shape) < _MOST_DIMENSIONS and (kinds := set(filter(_has_entries, set(map(type, cells))))):
        with swallowed():
            rows = [_entries(cell) if type(cell) in kinds else None for cell in cells]
        lengths = {len(row) for row in rows if row is not None}
        if not lengths or (len(shape) >= dimensions and None in rows):
            break
        if len(lengths) > 1:
            raise TypeError(f"{name} must hold numbers in rows of equal length")
        [width] = lengths
        missing = [None] * width
        cells = [entry for row in rows for entry in (missing if row is None else row)]
        shape = (*shape, width)
    return _floats(cells).reshape(shape)


def _entries(cell: Any) -> Sequence[Any] | None:
    """Return the entries of a row; None for an object without entries, for example a zero-dimensional array."""
    if type(cell) in (list, tuple):
        return cell  # type: ignore[no-any-return]
    try:
        plain = type(cell) is np.ndarray and cell.dtype in _SUPPORTED and cell.ndim == 1
        return cell.tolist() if plain else list(cell)
    except Exception:  # raised by a class of the user
        return None


def _floats(cells: list[Any]) -> NDArray[np.float64]:
    if _PLAIN.issuperset(map(type, cells)):
        with suppress(OverflowError):  # an integer beyond float64
            return np.array(cells, dtype=np.float64)
    with swallowed():
        return np.array([_float(cell) for cell in cells], dtype=np.float64)


def _float(value: Any) -> float:
    """Return the number in a cell, or its text as a number; NaN for any other cell."""
    try:
        if isinstance(value, _NO_FLOATS) or (isinstance(value, np.ma.MaskedArray) and np.ma.getmaskarray(value).any()):
            return math.nan
        return float(value)
    except OverflowError:  # then also beyond every bound
        return _infinity(value)
    except Exception:  # raised by a class of the user
        return math.nan


def _infinity(value: Any) -> float:
    try:
        return math.inf if value > 0 else -math.inf
    except Exception:  # not a number either
        return math.nan


def scores(x: Any) -> NDArray[Any] | list[Fraction | float]:
    """Return the exact scores of candidates: a contiguous array of float64, int64 or uint64, or a list from
    `exact_scores`.

    A null, a masked entry and, in a sequence, None and any other item that is not a number become 0; NaN counts as 0
    for readers of the result. The conversion may depend on the values, but never changes one.
    """
    array: NDArray[Any] | list[Any]
    if type(x) is np.ndarray and x.dtype in _SCORES:
        array = x
    else:
        with foreign():
            array = _listed_scores(list(x)) if is_sequence(x) else _score_array(x)
    if isinstance(array, list):
        candidates(len(array))
        return array
    if array.ndim != 1:
        raise ValueError(f"scores must be one-dimensional, not of shape {array.shape}")
    candidates(array.shape[0])
    return array if array.flags.c_contiguous and array.flags.aligned else np.array(array)


def exact_scores(values: Iterable[Any], missing: Fraction | float = _ZERO) -> list[Fraction | float]:
    """Return the exact values of scores, or infinities; `missing` for NaN, None and anything else
    that is not a number.
    """
    with swallowed():
        return [exact_score(value, missing) for value in values]


def exact_score(value: Any, missing: Fraction | float = _ZERO) -> Fraction | float:
    """Return the exact value of one score, see `exact_scores`."""
    if type(value) is np.ndarray and value.ndim == 0:
        value = value[()]
    try:
        if isinstance(value, Rational):
            return Fraction(int(value.numerator), int(value.denominator))
        if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) <= _MOST_PLACES:
            return exact(value)
        number = value if isinstance(value, (float, np.floating)) else _float(value)
        if number != number:
            return missing
        if abs(number) == math.inf:
            return math.inf if number > 0 else -math.inf
        return exact(number)
    except Exception:  # raised by a class of the user
        return missing


def _listed_scores(x: list[Any]) -> NDArray[Any] | list[Fraction | float]:
    kinds = set(map(type, x))
    if kinds <= {float, np.float64}:
        return np.array(x, dtype=np.float64)
    if kinds <= {int, bool, np.int64}:
        with suppress(OverflowError):
            return np.array(x, dtype=np.int64)
    return exact_scores(x)


def _score_array(x: Any) -> NDArray[Any] | list[Fraction | float]:
    x = imported(x)
    if is_arrow(x):
        kind = str(x.type)
        if kind not in _ARROW:
            raise TypeError(f"scores must hold numbers, not Arrow's {kind}")
        array: NDArray[Any] = np.asarray((x if "int" in kind else x.cast("float64")).fill_null(0))
    elif _is_polars(x):
        kind = str(x.dtype)
        if kind.lower() not in _POLARS:
            raise TypeError(f"scores must hold numbers, not polars' {kind}")
        array = (x if "Int" in kind else x.cast(float)).fill_null(0).to_numpy()
    elif _is_extension(x):
        if x.dtype.kind not in "biuf":
            raise TypeError(f"scores must hold numbers, not dtype {x.dtype.name}")
        wide = {"i": np.int64, "u": np.uint64}.get(x.dtype.kind, np.float64)
        zero = False if x.dtype.kind == "b" else 0
        array = np.asarray(x.to_numpy(dtype=wide, na_value=zero))
    else:
        array = np.asarray(x.filled(0) if isinstance(x, np.ma.MaskedArray) else x)
    if array.dtype.kind not in "biufO":
        raise TypeError(f"scores must hold numbers, not dtype {name_of(array.dtype)}")
    if array.dtype.kind == "O" and array.ndim == 0:
        raise TypeError(f"scores must hold numbers, not a {type(x).__name__}")
    if array.ndim != 1:
        return array
    if array.dtype.kind == "O" or array.dtype.itemsize > 8:  # longer floats do not fit float64
        return exact_scores(array)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    with np.errstate(all="ignore"):  # a signalling NaN
        return array.astype(np.float64)


def integers(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """Convert to an int64 array of any shape."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, not dtype {name_of(array.dtype)}")
    return array.astype(np.int64, copy=False)


def counts(name: str, x: Any) -> NDArray[np.int64]:
    """Convert x to a vector of counts from 0 to `MOST_COUNTED`; NaN, null and negative numbers become 0.

    Also decimals, which engines return for sums of integers.
    """
    with foreign():
        x = imported(x)
        if is_arrow(x) and str(x.type).startswith("decimal"):
            x = x.cast("float64")
        elif _is_polars(x) and str(x.dtype).startswith(("Decimal", "Int128")):
            x = x.cast(float)
        elif isinstance(x, np.ndarray) and x.dtype.kind == "O":
            x = list(x)
        array = vector(name, x)
    if array.dtype.kind == "f":
        with np.errstate(all="ignore"):  # a signalling NaN
            return np.clip(np.nan_to_num(array.astype(np.float64)), 0, MOST_COUNTED).astype(np.int64)
    if array.dtype == np.uint64:
        array = np.minimum(array, np.uint64(MOST_COUNTED))
    return np.clip(array.astype(np.int64), 0, MOST_COUNTED)


def labels(x: ArrayLike, *, private: bool) -> NDArray[np.int64]:
    """Return the group of each record; negative if its label is invalid: not a whole number, missing, masked, or beyond
    2**53.

    Private labels of any kind are read with `numbers`, and so are public labels with an integer dtype; other public
    labels must be `integers`.
    """
    if isinstance(x, (str, bytes)):
        raise TypeError(f"labels without keys must hold numbers, not text: pass a column, such as x[{x!r}]")
    if not (private or declares_integers(x)):
        if np.asarray(x).dtype.kind in "USTO":
            kind = name_of(np.asarray(x).dtype)
            raise TypeError(f"labels without keys must be integers, not dtype {kind}: give keys=[...], all public keys")
        return integers("labels without keys", x)
    array = numbers("labels without keys", x, dimensions=1)
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # a signalling NaN
            array = array.astype(np.float64)
            array = np.where((array == np.floor(array)) & (np.abs(array) < 2**53), array, -1)
    return array.astype(np.int64, copy=False)
