"""The bytes of single keys: equal for equal keys of a kind, and numbers, text and bytes in their order.

Numbers are the same key if they are equal, whatever their type. A key that is decoded is the int, else the float, else
the Decimal, else the Fraction of its value.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from uuid import UUID

import numpy as np

from dpfast.keys.numbers import number_bytes, number_of

_TEXT, _BYTES = b"\3", b"\4"  # after the numbers
_DATE, _LOCAL, _INSTANT, _SPAN = b"\5", b"\6", b"\7", b"\x08"
_ID, _WORDS, _ROW = b"\x09", b"\x0a", b"\x0c"  # `dpfast.keys.numbers` has 11
_EPOCH, _STEP = datetime(1, 1, 1), timedelta(microseconds=1)
_MOST_STEPS = (datetime.max - _EPOCH) // _STEP
# Types with one text for each value, and how it is read.
_SPELLED = {time: time.fromisoformat, IPv4Address: IPv4Address, IPv6Address: IPv6Address}
_NAMES = {kind.__name__: kind for kind in _SPELLED}


def text_bytes(cell: Any) -> bytes | None:
    """Return the UTF-8 of text; None for anything else."""
    if type(cell) is not str:
        try:
            if not isinstance(cell, str):
                return None
        except Exception:  # raised by a class of the user
            return None
    return str.encode(cell, "utf-8", "surrogatepass")


def cell_bytes(cell: Any) -> bytes | None:
    """Return the type and value of a key; None for a missing one, which is anything that is not listed here.

    Numbers, text, bytes, dates, times, UUIDs, IP addresses, and tuples or lists of these, none of them missing.
    """
    if type(cell) is str:
        return _TEXT + cell.encode("utf-8", "surrogatepass")
    if type(cell) is int:
        return number_bytes(cell)
    try:
        if isinstance(cell, str):
            return _TEXT + str.encode(cell, "utf-8", "surrogatepass")
        if isinstance(cell, (bytes, bytearray)):
            return bytes.join(b"", (_BYTES, cell))
        if isinstance(cell, np.timedelta64):  # an integer of NumPy
            return _time_bytes(cell)
        if isinstance(cell, (int, float, Decimal, Fraction, np.number, np.bool_)):
            return number_bytes(cell)
        return _other_bytes(cell)
    except Exception:  # raised by a class of the user
        return None


def _other_bytes(cell: Any) -> bytes | None:
    if isinstance(cell, (tuple, list)):
        return _row_bytes(list(cell))
    if isinstance(cell, UUID):
        return _ID + cell.int.to_bytes(16, "big")
    if isinstance(cell, np.datetime64):
        return _time_bytes(cell)
    if isinstance(cell, datetime):
        return _datetime_bytes(cell, getattr(cell, "nanosecond", 0)) if cell == cell else None  # not NaT
    if isinstance(cell, timedelta):
        return _span_bytes(cell, getattr(cell, "nanoseconds", 0))
    if isinstance(cell, date):
        return _DATE + cell.toordinal().to_bytes(4, "big")
    if type(cell) in _SPELLED:
        return _WORDS + f"{type(cell).__name__} {cell}".encode()
    return None


def _row_bytes(cells: list[Any]) -> bytes | None:
    """Return the keys of a row, each with an end that no key contains."""
    parts = [cell_bytes(cell) for cell in cells]
    found = [part for part in parts if part is not None]
    whole = len(found) == len(parts)
    return _ROW + b"".join(part.replace(b"\0", b"\0\xff") + b"\0\0" for part in found) if whole else None


def _time_bytes(cell: np.datetime64 | np.timedelta64) -> bytes | None:
    """Return a time of NumPy: an object of Python, or one in microseconds and the nanoseconds beyond."""
    found: Any = cell.item()
    if not isinstance(found, int):
        return None if found is None else cell_bytes(found)
    instant = isinstance(cell, np.datetime64)
    whole: Any = cell.astype("datetime64[us]" if instant else "timedelta64[us]")
    beyond = int((cell - whole) // np.timedelta64(1, "ns"))
    return _datetime_bytes(whole.item(), beyond) if instant else _span_bytes(whole.item(), beyond)


def _datetime_bytes(cell: datetime, nanoseconds: int) -> bytes | None:
    """Return the steps since the first day, in UTC if there is a time zone, and the nanoseconds beyond."""
    offset = cell.utcoffset()
    # Not `replace`, which makes a damaged object of a Timestamp of pandas if it is called on the base class.
    plain = datetime(cell.year, cell.month, cell.day, cell.hour, cell.minute, cell.second, cell.microsecond)
    steps = (plain - _EPOCH) // _STEP - (0 if offset is None else offset // _STEP)
    if not 0 <= steps <= _MOST_STEPS:
        return None
    return (_LOCAL if offset is None else _INSTANT) + steps.to_bytes(8, "big") + nanoseconds.to_bytes(2, "big")


def _span_bytes(cell: timedelta, nanoseconds: int) -> bytes:
    """Return the nanoseconds of a duration, which may be negative."""
    return _SPAN + (1000 * (cell // _STEP) + nanoseconds + 2**127).to_bytes(16, "big")


def cell_of(data: bytes) -> Any:
    """Return the key with these `cell_bytes`; bytes that belong to no key, from a damaged state,
    are a key themselves.
    """
    try:
        return _decoded(data[:1], data[1:])
    except (ArithmeticError, LookupError, ValueError):
        return data


def _decoded(tag: bytes, rest: bytes) -> Any:
    if tag == _TEXT:
        return text_of(rest)
    if tag == _BYTES:
        return rest
    if tag == _ID:
        return UUID(bytes=rest)
    if tag == _DATE:
        return date.fromordinal(int.from_bytes(rest, "big"))
    if tag in (_LOCAL, _INSTANT):
        return _datetime_of(tag, int.from_bytes(rest[:8], "big"), int.from_bytes(rest[8:], "big"))
    if tag == _SPAN:
        steps, beyond = divmod(int.from_bytes(rest, "big") - 2**127, 1000)
        return np.timedelta64(1000 * steps + beyond, "ns") if beyond else steps * _STEP
    if tag == _WORDS:
        name, _, text = rest.decode().partition(" ")
        return _SPELLED[_NAMES[name]](text)
    if tag == _ROW:
        return tuple(cell_of(part.replace(b"\0\xff", b"\0")) for part in _parts(rest))
    return number_of(tag + rest)


def _parts(rest: bytes) -> list[bytes]:
    """Return the parts of a row: each zero byte in them is followed by 255, and their ends by zero."""
    parts, start, place = [], 0, rest.find(b"\0")
    while place >= 0:
        if rest[place + 1 : place + 2] == b"\0":
            parts.append(rest[start:place])
            start = place + 2
        place = rest.find(b"\0", place + 2)
    return parts


def _datetime_of(tag: bytes, steps: int, nanoseconds: int) -> Any:
    made = _EPOCH + steps * _STEP
    if nanoseconds:
        return np.datetime64(made, "ns") + np.timedelta64(nanoseconds, "ns")
    return made if tag == _LOCAL else made.replace(tzinfo=UTC)


def text_of(data: bytes) -> str:
    """Return the text with this UTF-8, for any bytes: those that are not UTF-8 become surrogates."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape")
