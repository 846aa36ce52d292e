"""Base measures of the exponential mechanism on evenly spaced points: exact weights that favour round numbers.

A measure is public. It has one integer weight for each release code 0..last, where code k is the value (first + k) *
step. https://dpfast.readthedocs.io/en/latest/proofs/base-measures.html
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np

from dpfast import _containers
from dpfast._kernels._measures import MOST_PARTS, Measure

NAMES = ("auto", "uniform", "dyadic", "integers", "decimal")
Table = tuple[int, ...]

_MOST_POINTS = 2**40  # for counts of multiples that are exact in doubles
_MOST_WEIGHT = 2**62
_FINE = 64  # each code weighs this much besides its parts
_FEW_POINTS = 4096  # up to which, for "auto", it weighs 1: permute-and-flip gains where few candidates are equal
# "auto": each part has this weight in all, relative to the uniform measure. Finer multiples would not gain a factor 2.
_AUTO_SHARE = Fraction(1, 64)
_LEAST_MULTIPLES = 8
_DENOMINATORS = (1, 5, 25)  # of a spacing in codes, odd for exact counts


def checked(measure: Any) -> str | Table:
    """The measure as a parameter: one of `NAMES`, or a tuple of positive weights."""
    if isinstance(measure, str):
        if measure not in NAMES:
            raise ValueError(f"measure must be one of {', '.join(map(repr, NAMES))}, or weights, not {measure!r}")
        return measure
    if isinstance(measure, tuple | list | np.ndarray):
        table = _containers.integers("measure", measure)
        weights = tuple(table.tolist())
        if table.ndim != 1 or not weights or min(weights) < 1:
            raise ValueError("measure must have a positive weight for each point")
        if sum(weights) >= _MOST_WEIGHT:
            raise ValueError("measure must have a total weight below 2**62")
        return weights
    raise TypeError(f"measure must be a name or a sequence of weights, not {type(measure).__name__}")


@lru_cache(maxsize=64)
def measure_on(measure: str | Table, first: int, last: int, step: float) -> Measure | None:
    """The weights of the codes 0..last, None if all of them are 1."""
    size = last + 1
    if isinstance(measure, tuple):
        if len(measure) != size:
            raise ValueError(f"measure must have {size} weights, one for each point of the grid, not {len(measure)}")
        return Measure(last, table=measure)
    unit = 1 / Fraction(step)
    if measure == "uniform" or (measure == "integers" and unit == 1) or (measure == "auto" and size > _MOST_POINTS):
        return None
    if size > _MOST_POINTS:
        raise ValueError(f"measure={measure!r} needs a grid of at most 2**40 points, not {size}")
    spacings = _SPACINGS[measure](unit, size)
    if not spacings and measure == "auto":
        return None
    if not spacings:
        raise ValueError(f"measure={measure!r} favours no point of this grid: use 'uniform'")
    share = _AUTO_SHARE if measure == "auto" else Fraction(1, len(spacings))
    fine = 1 if measure == "auto" and size <= _FEW_POINTS else _FINE
    parts = [(max(int(fine * share * spacing), 1), spacing.denominator, spacing.numerator) for spacing in spacings]
    return Measure(last, fine, first % spacings[-1].numerator, parts)  # the period of all parts


def _auto(unit: Fraction, size: int) -> list[Fraction]:
    """The decimals that gain a factor of two or more at their share."""
    return [spacing for spacing in _decimals(unit, size) if spacing * _AUTO_SHARE > 1]


def _integers(unit: Fraction, size: int) -> list[Fraction]:
    return [unit] if 1 < unit < size else []


def _decimals(unit: Fraction, size: int) -> list[Fraction]:
    """0.01, 0.1, 1, 10, ... in codes: 1, and the others of which there are at least eight multiples."""

    def spacings() -> Iterator[Fraction]:
        for k in count(-2):
            spacing = unit * Fraction(10) ** k
            if k > 0 and spacing * _LEAST_MULTIPLES > size:
                return
            fits = spacing * (1 if k == 0 else _LEAST_MULTIPLES) <= size
            if spacing >= 2 and fits and spacing.denominator in _DENOMINATORS:
                yield spacing

    return list(spacings())


def _dyadics(unit: Fraction, size: int) -> list[Fraction]:
    """2, 4, 8, ... codes, with at least 64 multiples."""
    return [Fraction(2**j) for j in range(1, MOST_PARTS) if 2**j * 64 <= size]


_SPACINGS = {"auto": _auto, "dyadic": _dyadics, "integers": _integers, "decimal": _decimals}
