"""Base measures of the exponential mechanism: exact weights that favour round numbers, and of floats modest ones.

A measure is public. It has one integer weight for each release code 0..last, where code k is the value (first + k) *
step on evenly spaced points. https://dpfast.readthedocs.io/en/latest/proofs/base-measures.html
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast import _containers
from dpfast._kernels._measures import MOST_PARTS, Magnitudes, Measure
from dpfast.grid import FloatGrid

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


# Floats, by measurement (docs/results/bounds.md). A binade e, of numbers from 2**e to 2**(e + 1), has a weight
# proportional to (_NEAR + |e - _USUAL|)**-3; round numbers of k significant digits in the decade from 10**d have a share
# of _OF_DIGITS[k - 1], proportional to (_NEAR_DECADES + |d - _USUAL_DECADE|)**-3 and equally shared inside a decade.
_USUAL, _NEAR = 3, 12
_OF_ROUND, _OF_ZERO, _OF_DIGITS = 0.5, 0.0625, (0.3125, 0.3125, 0.3125)
_USUAL_DECADE, _NEAR_DECADES = 1, 4
_DECADES = range(-8, 40)
_POWER = -3


@lru_cache(maxsize=64)
def on_floats(grid: FloatGrid, measure: str | Table = "auto") -> Measure:
    """The weights of the codes of a grid of floats: modest magnitudes and round numbers have more."""
    if measure != "auto":
        raise ValueError("measure must be 'auto' or 'uniform' on a FloatGrid")
    return Measure(grid.size - 1, offset=grid.first, floats=_magnitudes(grid.digits, grid.resolution))


@lru_cache(maxsize=16)
def _magnitudes(digits: int, resolution: float) -> Magnitudes:
    """The weights of all floats of so many bits that are evenly spaced below the resolution."""
    grid = FloatGrid(digits, resolution=resolution)
    most = grid.size // 2  # the magnitude of the greatest point
    middle = 2 ** (digits - 1)  # the magnitude of the resolution
    octaves = most // middle
    # The first magnitude of each piece; on grids of whole numbers the middle is by binades, else in one.
    firsts = np.array([0, *(2**p for p in range(digits)), *(middle * k for k in range(2, octaves + 1))])
    sizes = np.diff(np.append(firsts, most + 1))
    binades = np.frexp(grid.decode(firsts - grid.first))[1] - 1.0
    whole = grid.value(1 - grid.first) >= 1
    share = 1.0 / (_NEAR + np.abs(binades - _USUAL)) ** -_POWER
    if not whole:
        inside = firsts < middle
        share[inside] = share[np.argmin(inside)] * sizes[inside] / middle
    else:
        share[0] = share[1]
    total = 2.0 ** min(61, max(50, digits + 24))
    slopes = np.maximum(np.rint(share * ((1 - _OF_ROUND) * total / 2 / share.sum() / sizes)), 1).astype(np.int64)
    points, more = _rounds(grid)
    more = np.maximum(np.rint(more * (_OF_ROUND * total)), 1).astype(np.int64)
    return Magnitudes(digits, slopes, points, more, (_magnitudes, (digits, resolution)))


def _rounds(grid: FloatGrid) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The magnitudes of the round numbers on an unbounded grid, ascending, and the share of each on each side of 0."""
    values, shares = [np.zeros(1)], [np.full(1, _OF_ZERO)]
    decades = np.array([(_NEAR_DECADES + abs(d - _USUAL_DECADE)) ** float(_POWER) for d in _DECADES])
    for d, share in zip(_DECADES, decades / decades.sum() / 2, strict=True):
        leading = np.arange(10 ** (len(_OF_DIGITS) - 1), 10 ** len(_OF_DIGITS))
        power = d - len(_OF_DIGITS) + 1
        values.append(leading / 10.0**-power if power < 0 else np.array([float(int(i) * 10**power) for i in leading]))
        weights = np.zeros(len(leading))
        for k, of_digits in enumerate(_OF_DIGITS, 1):
            multiples = leading % 10 ** (len(_OF_DIGITS) - k) == 0
            weights[multiples] += of_digits / multiples.sum()
        shares.append(share * weights)
    codes = grid.encode(np.concatenate(values)) + grid.first
    points, place = np.unique(codes, return_inverse=True)
    return points, np.bincount(place.reshape(-1), np.concatenate(shares))
