"""Every check of an argument, and every message. Of private data only shape and dtype are looked at, never values."""

from __future__ import annotations

import math
import operator
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

# A decimal or a ratio; exponents and what they make are small enough to compute with.
_SPELLED = re.compile(r"\s*[+-]?(\d+/\d+|(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?)\s*", re.ASCII)
_MOST_DIGITS = 9999
_SUPPORTED = frozenset(np.dtype(code) for code in "?bhilqBHILQefd")
_SCORES = frozenset(np.dtype(kind) for kind in (np.float64, np.int64, np.uint64))
# Of what a density is over: its inverse is far from the end of the range of float64.
_LEAST_SIZE = 2.0**-960
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


def reads_records(mechanism: Any) -> None:
    """That a mechanism is called with records, not with scores."""
    if not mechanism.reads_records:
        raise TypeError(
            f"a {type(mechanism).__name__} takes scores, which one record may change all at once, no records"
        )


def real(name: str, value: Any) -> float:
    """A finite float."""
    number = value if type(value) is float else _to_float(name, value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, not {value!r}")
    return number


def _to_float(name: str, value: Any) -> float:
    if type(value) is not int and not _is_real(value):
        raise TypeError(f"{name} must be a real number, not {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _is_real(value: Any) -> bool:
    """Asks abstract classes, which takes half a microsecond: plain floats and integers do not come here."""
    return isinstance(value, (Real, Decimal, np.floating)) and not isinstance(value, (bool, np.bool_, np.timedelta64))


def exact(value: Any) -> Fraction:
    """The number that a finite real number is."""
    _computable("a number", value)
    return Fraction(*value.as_integer_ratio()) if hasattr(value, "as_integer_ratio") else Fraction(int(value))


def rational(name: str, value: Any) -> Fraction:
    """The number that a privacy parameter is, exactly, or that a string spells: "0.1", "1e-6" or "1/3"."""
    if isinstance(value, str):
        if not _SPELLED.fullmatch(value):
            raise ValueError(f"{name} must be a number, such as '0.1', '1e-6' or '1/3', not {value!r}")
    elif type(value) is not int and not _is_real(value):
        raise TypeError(f"{name} must be a real number, not {type(value).__name__}")
    _computable(name, value)
    try:
        return Fraction(value) if isinstance(value, str) else exact(value)
    except (OverflowError, ValueError, ZeroDivisionError):  # infinity, NaN, thousands of digits, n/0
        raise ValueError(f"{name} must be finite, not {value!r}") from None


def _computable(name: str, value: Any) -> None:
    """That the digits of a decimal do not fill the memory."""
    if isinstance(value, Decimal) and abs(value.adjusted()) > _MOST_DIGITS:
        raise ValueError(f"{name} must have an exponent of at most {_MOST_DIGITS}, not {value!r}")


def rational_or_double(name: str, value: Any) -> float | Fraction:
    """As `rational`: a double where the number is one or beyond them, else a Fraction. A double may be NaN."""
    if isinstance(value, float):
        return float(value)
    number = rational(name, value)
    try:
        double = float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    return double if double == number else number


def positive_down(name: str, value: Any) -> float:
    """A positive privacy parameter as a double, rounded toward more privacy (down)."""
    number = _down(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be positive, not {value!r}")
    return number


def delta_down(value: Any) -> float:
    """A delta in [0, 1), rounded toward more privacy (down)."""
    number = _down("delta", value)
    if not 0 <= number < 1:
        raise ValueError(f"delta must be at least 0 and below 1, not {value!r}")
    return number


def _down(name: str, value: Any) -> float:
    """The greatest double that is not above a finite number."""
    if isinstance(value, float) or (type(value) is int and abs(value) <= 2**53):
        return real(name, float(value))
    number = rational(name, value)
    try:
        double = float(number)
    except OverflowError:
        raise ValueError(f"{name} must be finite, not {value!r}") from None
    return double if double <= number else math.nextafter(double, -math.inf)


def scale(value: Any, step: float = 1.0) -> float | Fraction:
    """A noise scale in steps, taken as the number it is: a Fraction stays exact."""
    real("scale", value)
    steps = value if step == 1 and isinstance(value, float) else exact(value) / Fraction(step)
    if not 0 < steps <= 2**56:
        unit = "" if step == 1 else f" steps of {step!r}"
        raise ValueError(f"scale must be positive and at most 2**56{unit}, not {value!r}")
    return steps


def fraction(name: str, value: Any) -> float:
    """A number in [0, 1]."""
    number = real(name, value)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must be between 0 and 1, not {value!r}")
    return number


def positive(name: str, value: Any) -> float:
    """A positive number that is no privacy parameter."""
    number = real(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be positive, not {value!r}")
    return number


def choice(name: str, value: Any, options: Sequence[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, not {value!r}")
    return value


def trim(value: Any) -> float:
    """A fraction to cut from each side, in [0, 0.5)."""
    number = real("trim", value)
    if not 0 <= number < 0.5:
        raise ValueError(f"trim must be at least 0 and below 0.5, not {value!r}")
    return number


def code_range(last: int) -> int:
    """The largest code of a release: what is computed with codes must fit 64 bits. Made of public numbers only."""
    if last >= 2**63 - 1:
        raise ValueError(f"records times grid points must be below 2**63, not {last}: use a coarser step")
    return last


def released_range(ends: Callable[[], tuple[float, float]]) -> None:
    """The least and the greatest float that can be released, a function of public numbers, must be finite."""
    try:
        ends()
    except OverflowError:
        raise ValueError("a release could be beyond the range of float64: use narrower bounds") from None


def density_range(size: float) -> None:
    """The width or volume over which a density is, a function of public numbers: it and its inverse must be finite."""
    if not _LEAST_SIZE <= size < math.inf:
        raise ValueError(
            f"densities over {size:g} data units could be beyond the range of float64: use another unit for the data"
        )


def noise_scale(sensitivity: int, epsilon: float) -> Fraction:
    """Sensitivity / epsilon, exactly; in release codes."""
    scale = sensitivity / Fraction(epsilon)
    if scale > 2**56:
        raise ValueError(f"epsilon={epsilon!r} needs noise of more than 2**56 steps of the grid: use a coarser step")
    return scale


def fractions(name: str, values: Any) -> tuple[float, ...]:
    """At least one number in [0, 1]."""
    try:
        numbers = tuple(fraction(f"each of {name}", value) for value in values)
    except TypeError as error:
        raise TypeError(f"{name} must be a sequence of numbers between 0 and 1: {error}") from None
    if not numbers:
        raise ValueError(f"{name} must not be empty")
    return numbers


def whole(name: str, value: SupportsIndex, *, least: int = 0) -> int:
    """An integer, at least `least`."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be an integer, not a boolean")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, not {number}")
    return number


def threads(workers: SupportsIndex) -> int:
    """A number of threads: at least 1, or -1 for one per core that this process may use."""
    number = whole("workers", workers, least=-1)
    if number == 0:
        raise ValueError("workers must be at least 1, or -1 for all cores, not 0")
    return number if number > 0 else _cores()


def _cores() -> int:
    """Cores that this process may use; where the system does not say (macOS), cores that there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def shape(size: SupportsIndex | tuple[SupportsIndex, ...] | None) -> tuple[int, ...]:
    """The shape of an array of draws; None is one draw."""
    if size is None:
        return ()
    return tuple(whole("size", part) for part in (size if isinstance(size, tuple) else (size,)))


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
        if _is_real(x) or isinstance(x, bool):
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


def candidates(n: int) -> int:
    """The public number of candidates: at least one."""
    if n < 1:
        raise ValueError("scores is empty: a selection needs at least one candidate (their number is public)")
    return n


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


def positive_rational(name: str, value: Any) -> Fraction:
    """A positive number, exactly the rational it is."""
    number = rational(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be positive, not {value!r}")
    return number


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, not {type(value).__name__}")
    return bool(value)


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


def outcomes(count: int) -> int:
    """How many outcomes a law may have for verification to list them."""
    if count > 2**20:
        raise ValueError(f"verify compares laws on at most 2**20 points, not {count}")
    return count


def records(n: int) -> int:
    """The public number of records: at least one."""
    if n < 1:
        raise ValueError("x is empty: a release needs at least one record (n = 0 is public)")
    return n


def bounds_or_grid(bounds: Any, grid: Any) -> None:
    """Exactly one of the two is given."""
    if (bounds is None) == (grid is None):
        raise TypeError("give either bounds=(lower, upper) or grid=Grid(...): public bounds on the values")


def pair(name: str, value: Any) -> tuple[Any, Any]:
    """Two finite numbers, as they are."""
    try:
        lower, upper = value
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a pair (lower, upper)") from None
    real(f"the lower of {name}", lower)
    real(f"the upper of {name}", upper)
    return lower, upper


def interval(name: str, value: Any) -> tuple[float, float]:
    """The ends of a range, in order, as doubles; infinite ones, too."""
    try:
        lower, upper = (_to_float(f"each of {name}", end) for end in value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a pair of numbers (lower, upper)") from None
    if not lower <= upper:
        raise ValueError(f"{name} must be in order, not ({lower!r}, {upper!r})")
    return lower, upper


def between(name: str, value: Any, lower: float, upper: float) -> float:
    """A number strictly between two others."""
    number = real(name, value)
    if not lower < number < upper:
        raise ValueError(f"{name} must be strictly between {lower:g} and {upper:g}, not {value!r}")
    return number


def nonnegative(name: str, value: Any) -> float:
    """A number, at least 0."""
    number = real(name, value)
    if number < 0:
        raise ValueError(f"{name} must be at least 0, not {value!r}")
    return number
