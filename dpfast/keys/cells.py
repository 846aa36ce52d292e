"""The bytes of single keys: equal for equal keys of a kind, and in the order of the keys."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_INTEGERS, _TEXT, _BYTES = b"\1", b"\3", b"\4"
_BELOW, _ABOVE = b"\0", b"\2"  # integers beyond 64 bits
_MOST = 2**64 - 1


def text_bytes(cell: Any) -> bytes | None:
    """The UTF-8 of text; None for anything else."""
    if type(cell) is not str:
        try:
            if not isinstance(cell, str):
                return None
        except Exception:  # raised by a class of the user
            return None
    return str.encode(cell, "utf-8", "surrogatepass")


def cell_bytes(cell: Any) -> bytes | None:
    """The type and value of an integer, text or bytes; None for a missing key."""
    if type(cell) is str:
        return _TEXT + cell.encode("utf-8", "surrogatepass")
    try:
        number = whole_cell(cell)
        if number is not None:
            return _integer_bytes(number)
        if isinstance(cell, str):
            return _TEXT + str.encode(cell, "utf-8", "surrogatepass")
        return bytes.join(b"", (_BYTES, cell)) if isinstance(cell, bytes) else None
    except Exception:  # raised by a class of the user
        return None


def whole_cell(cell: Any) -> int | None:
    """The integer in a cell: an int, a boolean or an integral float; None for anything else."""
    if type(cell) is int:
        return cell
    if isinstance(cell, int):
        return int.__add__(cell, 0)
    if isinstance(cell, (np.integer, np.bool_)):
        return int(cell)
    if isinstance(cell, (float, np.floating)):
        number = float(cell)
        return int(number) if math.isfinite(number) and number == math.floor(number) and number == cell else None
    return None


def _integer_bytes(number: int) -> bytes:
    if -(2**63) <= number < 2**63:
        return _INTEGERS + (number + 2**63).to_bytes(8, "big")
    length = (number.bit_length() + 7) // 8
    past: int = 256**length
    if number > 0:
        return _ABOVE + length.to_bytes(8, "big") + number.to_bytes(length, "big")
    return _BELOW + (_MOST - length).to_bytes(8, "big") + (past - 1 + number).to_bytes(length, "big")


def cell_of(data: bytes) -> int | str | bytes:
    """The key with these `cell_bytes`."""
    tag, rest = data[:1], data[1:]
    if tag == _TEXT:
        return text_of(rest)
    if tag == _BYTES:
        return rest
    if tag == _INTEGERS:
        return int.from_bytes(rest, "big") - 2**63
    number = int.from_bytes(rest[8:], "big")
    return number if tag == _ABOVE else number + 1 - 256 ** (len(rest) - 8)


def text_of(data: bytes) -> str:
    """The text with this UTF-8, for any bytes: those that are not UTF-8 become surrogates."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape")
