"""Checks of public parameters, and their messages; `containers` reads private data."""

from __future__ import annotations

import math
import operator
import os
import re
from collections.abc import Callable, Mapping, Sequence, Set
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

# A decimal or a ratio; limited exponents keep exact arithmetic cheap.
_SPELLED = re.compile(r"\s*[+-]?(\d+/\d+|(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?)\s*", re.ASCII)
_MOST_DIGITS = 9999
# Least width or volume of the domain of a density: its inverse is far below the largest float64.
_LEAST_SIZE = 2.0**-960

_MOST_SCALE = 2.0**56  # of noise, in steps

_BEYOND_DOUBLES = "a release could be beyond the range of float64: use narrower bounds"


def reads_records(mechanism: Any) -> None:
    """Check that a mechanism is called with records, not with scores."""
    if not mechanism.reads_records:
        raise TypeError(f"a {type(mechanism).__name__} takes scores, all of which one record may change, not records")


def real(name: str, value: Any) -> float:
    """Check a finite number and return it as a float."""
    number = value if type(value) is float else _to_float(name, value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, not {value!r}")
    return number


def _to_float(name: str, value: Any) -> float:
    if type(value) is not int and not is_real(value):
        raise TypeError(f"{name} must be a real number, not {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def is_real(value: Any) -> bool:
    """Whether a value is a real number of Python or NumPy, not a boolean or a time.

    It tests abstract classes, which takes half a microsecond: test for plain floats and integers first.
    """
    return isinstance(value, (Real, Decimal, np.floating)) and not isinstance(value, (bool, np.bool_, np.timedelta64))


def exact(value: Any) -> Fraction:
    """Return the exact value of a finite real number."""
    _computable("a number", value)
    return Fraction(*value.as_integer_ratio()) if hasattr(value, "as_integer_ratio") else Fraction(int(value))


def rational(name: str, value: Any) -> Fraction:
    """Return the exact value of a privacy parameter, a number or a string: "0.1", "1e-6" or "1/3"."""
    if isinstance(value, str):
        if not _SPELLED.fullmatch(value):
            raise ValueError(f"{name} must be a number, such as '0.1', '1e-6' or '1/3', not {value!r}")
    elif type(value) is not int and not is_real(value):
        raise TypeError(f"{name} must be a real number, not {type(value).__name__}")
    _computable(name, value)
    try:
        return Fraction(value) if isinstance(value, str) else exact(value)
    except (OverflowError, ValueError, ZeroDivisionError):  # infinity, NaN, thousands of digits, n/0
        raise ValueError(f"{name} must be finite, not {value!r}") from None


def _computable(name: str, value: Any) -> None:
    """Check that the digits of a decimal do not exhaust memory."""
    if isinstance(value, Decimal) and abs(value.adjusted()) > _MOST_DIGITS:
        raise ValueError(f"{name} must have an exponent of at most {_MOST_DIGITS}, not {value!r}")


def rational_or_double(name: str, value: Any) -> float | Fraction:
    """`rational`, but a double if the number equals one or is out of their range. A double may be NaN."""
    if isinstance(value, float):
        return float(value)
    number = rational(name, value)
    try:
        double = float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    return double if double == number else number


def positive_down(name: str, value: Any) -> float:
    """Check a positive privacy parameter and return a double, rounded toward more privacy (down)."""
    number = _down(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be positive, not {value!r}")
    return number


def delta_down(value: Any) -> float:
    """Check a delta in [0, 1) and return a double, rounded toward more privacy (down)."""
    number = _down("delta", value)
    if not 0 <= number < 1:
        raise ValueError(f"delta must be at least 0 and below 1, not {value!r}")
    return number


def _down(name: str, value: Any) -> float:
    """Return the largest double that is not above a finite number."""
    if isinstance(value, float) or (type(value) is int and abs(value) <= 2**53):
        return real(name, float(value))
    number = rational(name, value)
    try:
        double = float(number)
    except OverflowError:
        raise ValueError(f"{name} must be finite, not {value!r}") from None
    return double if double <= number else math.nextafter(double, -math.inf)


def scale(value: Any, step: float = 1.0, name: str = "scale") -> float | Fraction:
    """Check a noise scale in data units and return its exact value in steps; a Fraction remains a Fraction."""
    if type(value) is float and step == 1 and 0 < value <= _MOST_SCALE:
        return value
    real(name, value)
    steps = value if step == 1 and isinstance(value, float) else exact(value) / Fraction(step)
    if not 0 < steps <= _MOST_SCALE:
        unit = "" if step == 1 else f" steps of {step!r}"
        raise ValueError(f"{name} must be positive and at most 2**56{unit}, not {value!r}")
    return steps


def scales(value: Any, most_bits: int = 56) -> NDArray[Any]:
    """Check the scales of noise on several integers and return their exact values: doubles, or else objects."""
    array = value.copy() if isinstance(value, np.ndarray) and value.dtype == np.float64 else _exact_scales(value)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"scales must be a sequence of at least one number, not an array of shape {array.shape}")
    if not ((array > 0) & (array <= 2**most_bits)).all():
        raise ValueError(f"each of scales must be positive and at most 2**{most_bits}")
    return array


def _exact_scales(value: Any) -> NDArray[Any]:
    try:
        numbers = [scale(part, name="each of scales") for part in value]
    except TypeError as error:
        raise TypeError(f"scales must be a sequence of numbers, one for each coordinate: {error}") from None
    doubles = [float(number) for number in numbers]
    return np.array(doubles) if doubles == numbers else np.array(numbers, dtype=object)


def fraction(name: str, value: Any) -> float:
    """Check a number in [0, 1]."""
    number = real(name, value)
    if not 0 <= number <= 1:
        share = f": write {number / 100:g} for {number:g} %" if 1 < number <= 100 else ""
        raise ValueError(f"{name} must be between 0 and 1, not {value!r}{share}")
    return number


def positive(name: str, value: Any) -> float:
    """Check a positive number that is not a privacy parameter."""
    number = real(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be positive, not {value!r}")
    return number


def radius(value: Any) -> float:
    """Check a positive radius with a finite inverse in float64."""
    number = positive("radius", value)
    if not math.isfinite(1 / number):
        raise ValueError(f"radius must be at least 2**-1023, not {value!r}")
    return number


def choice(name: str, value: Any, options: Sequence[str]) -> str:
    """Check that a value is one of the options. A class of text that compares in its own way is none of them."""
    if not (type(value) is str or _is_text(value)) or value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, not {value!r}")
    text: str = value
    return text


def _is_text(value: Any) -> bool:
    return any(
        isinstance(value, text) and (type(value).__eq__, type(value).__ne__) == (text.__eq__, text.__ne__)
        for text in (str, np.str_)
    )


def trim(value: Any) -> float:
    """Check a fraction to trim from each side, in [0, 0.5)."""
    number = real("trim", value)
    if not 0 <= number < 0.5:
        raise ValueError(f"trim must be at least 0 and below 0.5, not {value!r}")
    return number


def code_range(last: int) -> int:
    """Check that computations with the largest code of a release, a public number, fit 64 bits."""
    if last >= 2**63 - 1:
        raise ValueError(f"records times grid points must be below 2**63, not {last}: use a coarser step")
    return last


def released_range(ends: Callable[[], tuple[float, float]]) -> None:
    """Check that the least and largest released floats, functions of public numbers, are finite."""
    try:
        ends()
    except OverflowError:
        raise ValueError(_BEYOND_DOUBLES) from None


def finite_scale(scale: float) -> float:
    """Check that the largest magnitude of a number in a decoded report, or its square, is finite; it is public."""
    if not math.isfinite(scale):
        raise ValueError(_BEYOND_DOUBLES)
    return scale


def density_range(size: float) -> None:
    """Check that the width or volume of the domain of a density, a public number, and its inverse are finite."""
    if not _LEAST_SIZE <= size < math.inf:
        raise ValueError(
            f"densities over {size:g} data units could be beyond the range of float64: use another unit for the data"
        )


def noise_scale(sensitivity: int, epsilon: float | Fraction) -> Fraction:
    """Return the exact scale of the noise in release codes, sensitivity / epsilon; checks that it is at most 2**56."""
    scale = sensitivity / Fraction(epsilon)
    if scale > 2**56:
        raise ValueError(
            f"epsilon={float(epsilon)!r} needs noise of more than 2**56 steps of the grid: use a coarser step"
        )
    return scale


def period(sensitivity: SupportsIndex) -> int:
    """Check the sensitivity that staircase noise is made for, in units of the integers."""
    number = whole("sensitivity", sensitivity, least=1)
    if number > 2**56:
        raise ValueError(f"sensitivity must be at most 2**56 for staircase noise, not {number}")
    return number


def fractions(name: str, values: Any) -> tuple[float, ...]:
    """Check a sequence of at least one number in [0, 1]."""
    try:
        numbers = tuple(fraction(f"each of {name}", value) for value in values)
    except TypeError as error:
        raise TypeError(f"{name} must be a sequence of numbers between 0 and 1: {error}") from None
    if not numbers:
        raise ValueError(f"{name} must not be empty")
    return numbers


def whole(name: str, value: SupportsIndex, *, least: int = 0) -> int:
    """Check an integer that is at least `least`."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be an integer, not a boolean")
    try:
        number = int.__index__(operator.index(value))  # an integer of a subclass may compare as it likes
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, not {number}")
    return number


def one_or_none(name: str, value: SupportsIndex | None) -> int | None:
    """Check a limit that is 1 or None."""
    if value is None:
        return None
    if (number := whole(name, value, least=1)) > 1:
        raise ValueError(f"{name} must be 1 or None, not {number}")
    return number


def threads(workers: SupportsIndex) -> int:
    """Return the number of threads: `workers`, at least 1, or for -1 the number of cores that this process may use."""
    if type(workers) is int and workers > 0:
        return workers
    number = whole("workers", workers, least=-1)
    if number == 0:
        raise ValueError("workers must be at least 1, or -1 for all cores, not 0")
    return number if number > 0 else _cores()


def _cores() -> int:
    """Return the number of cores that this process may use, or of all cores if the system does not
    report it (macOS).
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def shape(size: SupportsIndex | tuple[SupportsIndex, ...] | None) -> tuple[int, ...]:
    """Return the shape of an array of draws, () for None."""
    if size is None:
        return ()
    return tuple(whole("size", part) for part in (size if isinstance(size, tuple) else (size,)))


def positive_rational(name: str, value: Any) -> Fraction:
    """Check a positive number and return its exact value."""
    number = rational(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be positive, not {value!r}")
    return number


def nonnegative_rational(name: str, value: Any) -> Fraction:
    """Check a number that is at least 0 and return its exact value."""
    number = rational(name, value)
    if number < 0:
        raise ValueError(f"{name} must be at least 0, not {value!r}")
    return number


def flag(name: str, value: Any) -> bool:
    """Check a boolean."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, not {type(value).__name__}")
    return bool(value)


def candidates(n: int) -> int:
    """Check the public number of candidates: at least one."""
    if n < 1:
        raise ValueError("scores is empty: a selection needs at least one candidate (their number is public)")
    return n


def outcomes(count: int) -> int:
    """Check that a law has few enough outcomes for verification to list them."""
    if count > 2**20:
        raise ValueError(
            f"verify compares laws on at most 2**20 points, not {count}: use a coarser grid, fewer records or values, "
            f"or audit.distinguish"
        )
    return count


def records(n: int) -> int:
    """Check the public number of records: at least one."""
    if n < 1:
        raise ValueError("x is empty: a release needs at least one record (n = 0 is public)")
    return n


def once(value: Any) -> Any:
    """Public numbers, alone or in nested sequences, as objects that every later reading finds the same.

    Objects of classes of the user are read here, and nowhere else.
    """
    if type(value) in _FIXED or isinstance(value, (np.generic, str)):
        return value
    if isinstance(value, np.ndarray) or hasattr(value, "__array__"):
        return np.array(value)
    if isinstance(value, Sequence):
        return tuple(once(entry) for entry in value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return operator.index(value) if hasattr(value, "__index__") else value


_FIXED = frozenset({float, int, bool, type(None), Fraction, Decimal})


def bounds_or_grid(bounds: Any, grid: Any) -> None:
    """Check that exactly one of the two is given."""
    if (bounds is None) == (grid is None):
        raise TypeError(
            "give either bounds=(lower, upper) or grid=Grid(...): public bounds on the values; dpfast.bounds(x, "
            "epsilon=...) finds bounds privately"
        )


def _in_order(value: Any) -> Any:
    """Return the entries of a pair; a TypeError for a mapping, which unpacks into its keys, and for a set, in any
    order.
    """
    if isinstance(value, (Mapping, Set)):
        raise TypeError
    return value


def pair(name: str, value: Any) -> tuple[Any, Any]:
    """Check a pair of finite numbers and return them, each read once."""
    try:
        lower, upper = map(once, _in_order(value))
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a pair (lower, upper){_private(value)}") from None
    real(f"the lower end of {name}", lower)
    real(f"the upper end of {name}", upper)
    return lower, upper


def bounds_of(
    value: Any,
    names: Callable[[], Sequence[str] | None] = lambda: None,
    *,
    name: str = "bounds",
    part: str = "column",
    whole: type | tuple[type, ...] = (),
) -> Any:
    """Check the bounds of several columns, each number read once: a pair for all, or a tuple of a pair for each.

    They are a pair (lower, upper), one pair for each column, or a mapping from the `names` of all columns to pairs, in
    any order; `names` returns None for data without names. So two pairs are those of two columns. An object of the
    classes `whole` stands in place of a pair, as it is.
    """
    if isinstance(value, whole):
        return value
    if isinstance(value, Mapping):
        return _named_bounds(value, names(), name, part, whole)
    value = once(value)
    if not _is_several(value):
        raise ValueError(f"{_form(name, part)}, not {value!r}{_private(value) if part == 'column' else ''}")
    entries = list(value)
    if not any(isinstance(entry, whole) or _is_several(entry) for entry in entries):
        if len(entries) != 2:
            raise ValueError(f"{_form(name, part)}, not {len(entries)} numbers")
        return _ordered(name, entries)
    hint = _SWAPPED if len(entries) == 2 else ""
    if not all(isinstance(entry, whole) or (_is_several(entry) and len(entry) == 2) for entry in entries):
        raise ValueError(f"{_form(name, part)}{hint}")
    return tuple(
        entry if isinstance(entry, whole) else _ordered(f"{name} of {part} {j}", entry, hint)
        for j, entry in enumerate(entries)
    )


def _private(value: Any) -> str:
    """Return what stands for bounds="private" where it has no meaning."""
    return ": dpfast.bounds(x, epsilon=...) finds bounds privately" if isinstance(value, str) else ""


_SWAPPED = "; for an array of lower bounds and one of upper bounds write list(zip(lowers, uppers))"


def _form(name: str, part: str) -> str:
    return f"{name} must be a pair (lower, upper), or one pair for each {part}: [(lower, upper), ...]"


def _is_several(entry: Any) -> bool:
    """Whether a value that was read `once` has entries."""
    return isinstance(entry, tuple) or (isinstance(entry, np.ndarray) and entry.ndim > 0)


def _named_bounds(
    value: Mapping[Any, Any], names: Sequence[str] | None, name: str, part: str, whole: type | tuple[type, ...]
) -> tuple[Any, ...]:
    """Return the pairs of a mapping, in the order of the names."""
    if names is None:
        raise ValueError(f"{name} by name need a frame, whose {part}s have names: {_form(name, part)} in order")
    given = {str(key): once(entry) for key, entry in value.items()}
    if len({*names}) < len(names) or len(given) < len(value) or given.keys() != {*names}:
        known = len(given) == len(value) and given.keys() < {*names}
        hint = f": pass x[{list(given)}]" if known and part == "column" else ""
        raise ValueError(
            f"{name} must name each {part} once, {', '.join(names)}, not {', '.join(map(str, value))}{hint}"
        )
    entries = [(key, given[key]) for key in names]
    return tuple(entry if isinstance(entry, whole) else _ordered(f"{name} of {key}", entry) for key, entry in entries)


def _ordered(name: str, value: Any, hint: str = "") -> tuple[Any, Any]:
    """Check a pair of numbers in order."""
    lower, upper = pair(name, value)
    if not exact(lower) < exact(upper):
        raise ValueError(f"lower must be below upper in {name}, not lower={lower!r}, upper={upper!r}{hint}")
    return lower, upper


def interval(name: str, value: Any) -> tuple[float, float]:
    """Check the ends of a range, in order and possibly infinite, and return them as floats."""
    try:
        lower, upper = (_to_float(f"each of {name}", end) for end in _in_order(value))
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a pair of numbers (lower, upper)") from None
    if not lower <= upper:
        raise ValueError(f"{name} must be in order, not ({lower!r}, {upper!r})")
    return lower, upper


def between(name: str, value: Any, lower: float, upper: float) -> float:
    """Check a number strictly between two others."""
    number = real(name, value)
    if not lower < number < upper:
        raise ValueError(f"{name} must be strictly between {lower:g} and {upper:g}, not {value!r}")
    return number


def nonnegative(name: str, value: Any) -> float:
    """Check a number that is at least 0."""
    number = real(name, value)
    if number < 0:
        raise ValueError(f"{name} must be at least 0, not {value!r}")
    return number
