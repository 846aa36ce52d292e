"""Every check of an argument, and every message. Of private data only shape and dtype are looked at, never values."""

from __future__ import annotations

import math
import operator
import os
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

_SUPPORTED = frozenset(np.dtype(code).str for code in "?bhilqBHILQefd")


def real(name: str, value: Any) -> float:
    """A finite float."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (Real, Decimal, np.floating)):
        raise TypeError(f"{name} must be a real number, not {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, not {value!r}")
    return number


def exact(value: Any) -> Fraction:
    """The number that a finite real number is."""
    return Fraction(*value.as_integer_ratio()) if hasattr(value, "as_integer_ratio") else Fraction(int(value))


def positive_down(name: str, value: Any) -> float:
    """A positive privacy parameter as a double, rounded toward more privacy (down)."""
    number = real(name, value)
    if Fraction(number) > exact(value):
        number = math.nextafter(number, 0.0)
    if number <= 0:
        raise ValueError(f"{name} must be positive, not {value!r}")
    return number


def delta_down(value: Any) -> float:
    """A delta in [0, 1), rounded toward more privacy (down)."""
    number = real("delta", value)
    if not 0 <= number < 1:
        raise ValueError(f"delta must be at least 0 and below 1, not {value!r}")
    return positive_down("delta", value) if number else 0.0


def scale(value: Any) -> float | Fraction:
    """A noise scale, taken as the number it is: a Fraction stays exact."""
    number = real("scale", value)
    if not 0 < number <= 2.0**56:
        raise ValueError(f"scale must be positive and at most 2**56, not {value!r}")
    return number if isinstance(value, float) else exact(value)


def fraction(name: str, value: Any) -> float:
    """A number in [0, 1]."""
    number = real(name, value)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must be between 0 and 1, not {value!r}")
    return number


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
    return number if number > 0 else len(os.sched_getaffinity(0))


def shape(size: SupportsIndex | tuple[SupportsIndex, ...] | None) -> tuple[int, ...]:
    """The shape of an array of draws; None is one draw."""
    if size is None:
        return ()
    return tuple(whole("size", part) for part in (size if isinstance(size, tuple) else (size,)))


def declares_integers(x: Any) -> bool:
    """Whether x declares by its dtype that it holds integers or booleans: array, Series, Arrow data; not a list."""
    kind = getattr(getattr(x, "dtype", None), "kind", None)
    if kind is None and any(hasattr(x, name) for name in ("__arrow_c_array__", "__arrow_c_stream__")):
        return str(getattr(x, "type", "")).startswith(("int", "uint", "bool"))
    return kind in ("i", "u", "b")


def vector(name: str, x: ArrayLike) -> NDArray[Any]:
    """A one-dimensional array of numbers in native byte order, without a copy where x is one already.

    None, a masked entry and a null become NaN. Text, objects, dates and complex numbers are a TypeError.
    """
    if type(x) is np.ndarray and x.ndim == 1 and x.dtype.str in _SUPPORTED:
        return x
    if isinstance(x, np.ma.MaskedArray):
        x = np.ma.filled(x.astype(np.float64), np.nan)
    elif not hasattr(x, "dtype") and isinstance(x, (list, tuple)):
        x = _float64(name, x)
    array: NDArray[Any] = np.asarray(x)
    if array.dtype.kind == "O" and getattr(getattr(x, "dtype", None), "kind", "O") in "iufb":
        array = x.to_numpy(dtype=np.float64, na_value=np.nan)  # type: ignore[union-attr]  # a nullable Series
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold numbers, not dtype {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, not of shape {array.shape}")
    if array.dtype.str not in _SUPPORTED:
        native = np.float64 if array.dtype.kind == "f" else array.dtype.newbyteorder("=")
        array = array.astype(native)
    return array


def _float64(name: str, x: list[Any] | tuple[Any, ...]) -> NDArray[np.float64]:
    if any(isinstance(value, (str, bytes, complex)) for value in x):
        raise TypeError(f"{name} must hold numbers, not text or complex numbers")
    try:
        return np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must hold numbers and None only, in one dimension") from None


def records(n: int) -> int:
    """The public number of records: at least one."""
    if n < 1:
        raise ValueError("x is empty: a release needs at least one record (n = 0 is public)")
    return n


def pair(name: str, value: Any) -> tuple[float, float]:
    """Two finite floats."""
    try:
        lower, upper = value
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a pair (lower, upper)") from None
    return real(f"the lower of {name}", lower), real(f"the upper of {name}", upper)
