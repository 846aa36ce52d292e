"""Arrays of numbers from what users hold data in: of private data only type, dtype and shape decide, never a value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._checks import candidates, exact, is_real

_SUPPORTED = frozenset(np.dtype(code) for code in "?bhilqBHILQefd")
_SCORES = frozenset(np.dtype(kind) for kind in (np.float64, np.int64, np.uint64))
# Types of cells that NumPy reads as `_float` does; what NumPy makes a number of though it is none.
_PLAIN = frozenset({float, int, bool, type(None), *(dtype.type for dtype in _SUPPORTED)})
_NO_FLOATS = (complex, np.complexfloating, np.datetime64, np.timedelta64)
_MOST_DIMENSIONS = 32
_MOST_PLACES = 400  # of a decimal score before or after the point: others are beyond the doubles
_ZERO = Fraction(0)
# By any of these an object says how it is to be read, as one with a buffer does.
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


def declares_integers(x: Any) -> bool:
    """Whether x declares by its dtype that it holds integers or booleans: array, Series, Arrow data; not a list."""
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "iub"
    x = _imported(x)
    if _is_arrow(x):
        return str(x.type).startswith(("int", "uint", "bool"))
    if _is_polars(x):
        return str(x.dtype).startswith(("Int", "UInt", "Boolean"))
    if hasattr(type(x), "declares_integers"):  # Chunks
        return bool(x.declares_integers())
    return getattr(getattr(x, "dtype", None), "kind", None) in ("i", "u", "b")


def vector(name: str, x: ArrayLike) -> NDArray[Any]:
    """A one-dimensional array of numbers in native byte order, without a copy where x is one already.

    A masked entry, a null and, in a sequence, None and whatever else is no number become NaN. A dtype of text, objects,
    dates or complex numbers is a TypeError.
    """
    if type(x) is np.ndarray and x.ndim == 1 and x.dtype in _SUPPORTED:
        return x
    array = numbers(name, x, dimensions=1)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, not of shape {shape_of(array)}")
    return array


def matrix(name: str, x: ArrayLike) -> NDArray[Any]:
    """A two-dimensional array of numbers, a record in each row and at least one column; else as `vector`."""
    array = numbers(name, x, dimensions=2)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"{name} must be two-dimensional, a record in each row, not of shape {shape_of(array)}")
    return array


def shape_of(array: NDArray[Any]) -> str:
    """The shape without the number of records, which may be private."""
    return "()" if array.ndim == 0 else f"({', '.join(['n', *map(str, array.shape[1:])])}{',' * (array.ndim == 1)})"


def numbers(name: str, x: Any, *, dimensions: int = _MOST_DIMENSIONS) -> NDArray[Any]:
    """An array of numbers of any shape; else as `vector`.

    How x is converted depends on its type and dtype only, never on its values, not even on whether any is missing: each
    record is mapped by itself. What declares a dtype is read as declared. Every other sequence is a list of cells: it
    becomes float64, whatever it holds. A type that can hold missing integers is converted to float64, too. Floats are
    not copied where NumPy can look at them: without nulls and in one piece.

    `dimensions` are those that records should have: from there on, a row among the cells of a sequence is a cell.
    """
    if type(x) is np.ndarray and x.dtype in _SUPPORTED:
        return x
    with np.errstate(all="ignore"):  # a conversion may meet a signalling NaN, or overflow to infinity
        x = _imported(x)
        if is_sequence(x):
            return _from_sequence(name, x, dimensions)
        if is_real(x) or isinstance(x, bool):
            return _floats([x]).reshape(())
        if _is_arrow(x):
            return _from_arrow(name, x)
        if _is_polars(x):
            return _from_polars(name, x)
        if (columns := _table(x)) is not None:
            return np.column_stack([numbers(name, column) for column in columns]) if columns else np.empty((0, 0))
        if _is_extension(x):
            if x.dtype.kind not in "biuf":
                raise TypeError(f"{name} must hold numbers, not dtype {x.dtype.name}")
            return np.asarray(x.to_numpy(dtype=np.float64, na_value=np.nan))
        array: NDArray[Any] = np.asarray(x)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"{name} must hold numbers, not dtype {name_of(array.dtype)}")
        if isinstance(x, np.ma.MaskedArray):
            array = np.where(np.ma.getmaskarray(x), np.nan, array.astype(np.float64))
        if array.dtype not in _SUPPORTED:
            array = array.astype(np.float64 if array.dtype.kind == "f" else array.dtype.newbyteorder("="))
        return array


def name_of(dtype: np.dtype[Any]) -> str:
    """The name of a dtype, without the length of its longest text."""
    return dtype.type.__name__.rstrip("_")


def is_sequence(x: Any) -> bool:
    """Whether x has entries and declares no dtype: a list, tuple, range, deque, or an object of a class like them."""
    return type(x) in (list, tuple) or (_has_entries(type(x)) and not _declares(x))


def _has_entries(kind: type) -> bool:
    """Whether objects of a class have entries, and are no text."""
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
    """Whether x is a column of a dtype of pandas' own."""
    dtype = getattr(x, "dtype", None)
    return not isinstance(dtype, np.dtype) and hasattr(dtype, "kind") and hasattr(x, "to_numpy")


def _imported(x: Any) -> Any:
    """Data of an Arrow library other than pyarrow, by way of the C data interface: pyarrow's, without a copy."""
    if isinstance(x, np.ndarray) or hasattr(x, "dtype") or hasattr(x, "columns") or _is_arrow(x):
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
    if kind not in _ARROW:
        raise TypeError(f"{name} must hold numbers, not Arrow's {kind}")
    if getattr(x, "num_chunks", 0) == 1:  # an array in several pieces is put together
        x = x.chunk(0)
    if kind not in _FLOATS:
        x = x.cast("float64", safe=False)
    return np.asarray(x)


def _is_polars(x: Any) -> bool:
    return type(x).__name__ == "Series" and type(x).__module__.partition(".")[0] == "polars"


def _from_polars(name: str, x: Any) -> NDArray[Any]:
    kind = str(x.dtype)
    if kind.lower() not in _POLARS:
        raise TypeError(f"{name} must hold numbers, not polars' {kind}")
    return np.asarray(x.to_numpy() if kind.startswith("Float") else x.cast(float).to_numpy())


def _table(x: Any) -> list[Any] | None:
    """The columns of a data frame or a table, unless NumPy makes an array of it by dtypes alone."""
    library = type(x).__module__.partition(".")[0]
    if library == "polars" and hasattr(x, "get_columns"):
        return list(x.get_columns())
    if library == "pyarrow" and hasattr(x, "schema"):
        return list(x.columns)
    if library == "pandas" and hasattr(x, "dtypes") and x.ndim == 2:
        dtypes = list(x.dtypes)
        if not all(isinstance(dtype, np.dtype) for dtype in dtypes):
            return [x.iloc[:, j] for j in range(len(dtypes))]
    return None


def _is_arrow(x: Any) -> bool:
    return (
        not hasattr(x, "dtype")
        and hasattr(x, "type")
        and hasattr(x, "cast")
        and (hasattr(x, "__arrow_c_array__") or hasattr(x, "__arrow_c_stream__"))
    )


def _from_sequence(name: str, x: Sequence[Any], dimensions: int) -> NDArray[np.float64]:
    """A sequence as float64: as a column of a table, where a cell that is no number is missing, not an error.

    Among rows, which are of one length, whatever else is a missing one. Of `dimensions` on, all are rows or all cells.
    """
    cells = x if type(x) is list else list(x)
    shape: tuple[int, ...] = (len(cells),)
    while len(shape) < _MOST_DIMENSIONS and (kinds := set(filter(_has_entries, set(map(type, cells))))):
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
    """The entries of a row; None for what has none after all, an array of no dimensions for one."""
    if type(cell) in (list, tuple):
        return cell  # type: ignore[no-any-return]
    try:
        plain = type(cell) is np.ndarray and cell.dtype in _SUPPORTED and cell.ndim == 1
        return cell.tolist() if plain else list(cell)
    except Exception:  # of a class that is not ours
        return None


def _floats(cells: list[Any]) -> NDArray[np.float64]:
    if _PLAIN.issuperset(map(type, cells)):
        with suppress(OverflowError):  # an integer beyond the doubles
            return np.array(cells, dtype=np.float64)
    return np.array([_float(cell) for cell in cells], dtype=np.float64)


def _float(value: Any) -> float:
    """The number that a cell is or spells; NaN for all others, whatever they are."""
    if isinstance(value, _NO_FLOATS) or (isinstance(value, np.ma.MaskedArray) and np.ma.getmaskarray(value).any()):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # beyond every bound, too
        return _infinity(value)
    except Exception:  # of a class that is not ours
        return math.nan


def _infinity(value: Any) -> float:
    try:
        return math.inf if value > 0 else -math.inf
    except Exception:  # no number either
        return math.nan


def scores(x: Any) -> NDArray[Any] | list[Fraction | float]:
    """Scores of candidates, exactly: a contiguous array of float64, int64 or uint64, or a list as of `exact_score`.

    A null, a masked entry and, in a sequence, None and whatever else is no number are 0, as NaN is for those who read
    the result. How x is converted changes no value, whatever it depends on.
    """
    array: NDArray[Any] | list[Any]
    if type(x) is np.ndarray and x.dtype in _SCORES:
        array = x
    else:
        array = _listed_scores(list(x)) if is_sequence(x) else _score_array(x)
    if isinstance(array, list):
        candidates(len(array))
        return array
    if array.ndim != 1:
        raise ValueError(f"scores must be one-dimensional, not of shape {array.shape}")
    candidates(array.shape[0])
    return array if array.flags.c_contiguous and array.flags.aligned else np.array(array)


def exact_score(value: Any, missing: Fraction | float = _ZERO) -> Fraction | float:
    """The number that a score is, or an infinity; `missing` for NaN, None and whatever else is no number."""
    if type(value) is np.ndarray and value.ndim == 0:
        value = value[()]
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


def _listed_scores(x: list[Any]) -> NDArray[Any] | list[Fraction | float]:
    kinds = set(map(type, x))
    if kinds <= {float, np.float64}:
        return np.array(x, dtype=np.float64)
    if kinds <= {int, bool, np.int64}:
        with suppress(OverflowError):
            return np.array(x, dtype=np.int64)
    return [exact_score(value) for value in x]


def _score_array(x: Any) -> NDArray[Any] | list[Fraction | float]:
    x = _imported(x)
    if _is_arrow(x):
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
    if array.dtype.kind == "O" or array.dtype.itemsize > 8:  # longer floats are no doubles
        return [exact_score(value) for value in array]
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    with np.errstate(all="ignore"):  # a signalling NaN
        return array.astype(np.float64)


def integers(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """An array of integers of any shape."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, not dtype {name_of(array.dtype)}")
    return array.astype(np.int64, copy=False)


def labels(x: ArrayLike, *, private: bool) -> NDArray[np.int64]:
    """The group of each record, negative where a label is none: no whole number, missing, masked, beyond 2**53.

    Private labels are read as `numbers` are, whatever they are; of public ones those of a type that declares integers,
    others only if they are `integers`.
    """
    if not (private or declares_integers(x)):
        return integers("labels", x)
    array = numbers("labels", x, dimensions=1)
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # a signalling NaN
            array = array.astype(np.float64)
            array = np.where((array == np.floor(array)) & (np.abs(array) < 2**53), array, -1)
    return array.astype(np.int64, copy=False)
