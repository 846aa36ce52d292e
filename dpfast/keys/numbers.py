"""The bytes of numbers as keys, equal for equal numbers of any type, and in their order up to differences of 2**-64."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

_BELOW, _INTEGERS, _ABOVE = b"\0", b"\1", b"\2"  # integers of 64 bits, and those beyond
_MOST = 2**64 - 1
_LEAST_EXPONENT, _MOST_EXPONENT = -4000, 4000  # of the last digit of a Decimal that is compared with other numbers
_DECIMAL = b"\x0b"


def number_bytes(cell: Any) -> bytes | None:
    """Return the bytes of a real number; None for NaN and complex numbers."""
    if isinstance(cell, int):
        return _integer_bytes(int.__add__(cell, 0))
    if isinstance(cell, (np.integer, np.bool_)):
        return _integer_bytes(int(cell))
    if isinstance(cell, Decimal):
        return _decimal_bytes(cell)
    if isinstance(cell, (float, np.floating)):
        if not np.isfinite(cell):
            return None if cell != cell else _ABOVE + _MOST.to_bytes(8, "big") if cell > 0 else _BELOW + bytes(8)
        return _ratio_bytes(*cell.as_integer_ratio())
    return _ratio_bytes(cell.numerator, cell.denominator) if isinstance(cell, Fraction) else None


def _integer_bytes(number: int) -> bytes:
    if -(2**63) <= number < 2**63:
        return _INTEGERS + (number + 2**63).to_bytes(8, "big")
    length = (number.bit_length() + 7) // 8
    past: int = 256**length
    if number > 0:
        return _ABOVE + length.to_bytes(8, "big") + number.to_bytes(length, "big")
    return _BELOW + (_MOST - length).to_bytes(8, "big") + (past - 1 + number).to_bytes(length, "big")


def _ratio_bytes(numerator: int, denominator: int) -> bytes:
    """Return the integer below, then 64 bits of the rest for the order, then the rest in full; nothing if there is
    none.
    """
    whole, rest = divmod(numerator, denominator)
    if not rest:
        return _integer_bytes(whole)
    leading = (rest << 64) // denominator
    return _integer_bytes(whole) + leading.to_bytes(8, "big") + f"{rest:x}/{denominator:x}".encode()


def _decimal_bytes(cell: Decimal) -> bytes | None:
    sign, digits, exponent = cell.as_tuple()
    if not isinstance(exponent, int):  # an infinity, or no number
        return number_bytes(float(cell)) if cell.is_infinite() else None
    significant = bytes(digits).rstrip(b"\0")
    exponent += len(digits) - len(significant)
    if not significant:
        return _integer_bytes(0)
    if _LEAST_EXPONENT <= exponent <= _MOST_EXPONENT:
        return _ratio_bytes(*cell.as_integer_ratio())
    # Its ratio may not fit into memory. No float and hardly an integer is equal to it.
    return _DECIMAL + f"{sign}{exponent} ".encode() + significant


def number_of(data: bytes) -> int | float | Decimal | Fraction:
    """Return the number with these bytes; a ValueError, or another one of arithmetic, if they belong to none."""
    tag, rest = data[:1], data[1:]
    if tag == _DECIMAL:
        head, _, digits = rest.partition(b" ")
        return Decimal((head[0] - ord("0"), tuple(digits), int(head[1:])))
    if tag == _INTEGERS:
        whole, rest = int.from_bytes(rest[:8], "big") - 2**63, rest[8:]
    else:
        length = int.from_bytes(rest[:8], "big")
        if tag == _ABOVE and length == _MOST:
            return math.inf
        if tag == _BELOW and length == 0:
            return -math.inf
        length = length if tag == _ABOVE else _MOST - length
        if length > len(rest):
            raise ValueError("the bytes belong to no number")
        number, rest = int.from_bytes(rest[8 : 8 + length], "big"), rest[8 + length :]
        whole = number if tag == _ABOVE else number + 1 - 256**length
    if not rest:
        return whole
    above, below = rest[8:].split(b"/")
    return _shortest(whole + Fraction(int(above, 16), int(below, 16)))


def _shortest(value: Fraction) -> float | Decimal | Fraction:
    """Return a number that is not whole, as a float or Decimal if one is equal to it."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isfinite(number) and Fraction(number) == value:
        return number
    rest, twos, fives = value.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest > 1:
        return value
    places = max(twos, fives)
    digits = Decimal(value.numerator * (10**places // value.denominator))
    return Decimal((digits.as_tuple().sign, digits.as_tuple().digits, -places))
