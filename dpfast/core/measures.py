"""Base measures of the exponential mechanism: exact weights that favour round numbers, and of floats modest ones.

A measure is public. It has one integer weight for each release code 0..last, where code k is the value (first + k) *
step on evenly spaced points. https://dpfast.readthedocs.io/en/latest/proofs/base-measures.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._measures import MOST_PARTS, Magnitudes, Measure
from dpfast.core import containers
from dpfast.core.grid import FloatGrid

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
    """Return the measure as a parameter: one of `NAMES`, or a tuple of positive weights."""
    if isinstance(measure, str):
        if measure not in NAMES:
            raise ValueError(f"measure must be one of {', '.join(map(repr, NAMES))}, or weights, not {measure!r}")
        return measure
    if isinstance(measure, tuple | list | np.ndarray):
        table = containers.integers("measure", measure)
        weights = tuple(table.tolist())
        if table.ndim != 1 or not weights or min(weights) < 1:
            raise ValueError("measure must have a positive weight for each point")
        if sum(weights) >= _MOST_WEIGHT:
            raise ValueError("measure must have a total weight below 2**62")
        return weights
    raise TypeError(f"measure must be a name or a sequence of weights, not {type(measure).__name__}")


@lru_cache(maxsize=64)
def measure_on(measure: str | Table, first: int, last: int, step: float) -> Measure | None:
    """Return the weights of the codes 0..last, None if all of them are 1."""
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
    """Return the decimals that gain a factor of two or more at their share."""
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


# Floats: the shares of all weight, chosen by measurement (docs/results/bounds.md). 11/16 are on magnitudes: a binade e
# of numbers from 2**e to 2**(e + 1) has a part proportional to (12 + |e - 3|)**-3, the same for each of its floats.
# 1/16 each are on zero and on the numbers of 1, 2, 3 and 4 significant digits: the decade from 10**d has a part
# proportional to (4 + |d - 1|)**-3, the same for each of its numbers; those of four digits are in few decades.
_SIXTEENTH = 1 / 16
_DECADES_OF_DIGITS = {1: range(-8, 40), 2: range(-8, 40), 3: range(-8, 40), 4: range(6)}


def _binades(e: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((12 + np.abs(e - 3)) ** -3.0)


def _decades(d: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray((4.0 + np.abs(d - 1)) ** -3.0)


def on_floats(grid: FloatGrid, measure: str | Sequence[int]) -> Measure:
    """Return the weights of the codes of a grid of floats: modest magnitudes and round numbers have more."""
    if measure != "auto":
        raise ValueError("measure must be 'auto' or 'uniform' on a FloatGrid")
    return _on_floats(grid.size - 1, grid.first, grid.digits, grid.resolution)


@lru_cache(maxsize=64)
def _on_floats(last: int, first: int, digits: int, resolution: float) -> Measure:
    """Return the weights of the points, which do not depend on what a grid makes of missing records."""
    return Measure(last, offset=first, floats=_magnitudes(digits, resolution))


@lru_cache(maxsize=16)
def _magnitudes(digits: int, resolution: float) -> Magnitudes:
    """Return the weights of all floats of so many bits that are evenly spaced below the resolution."""
    grid = FloatGrid(digits, resolution=resolution)
    most = grid.size // 2  # the magnitude of the greatest point
    middle = 2 ** (digits - 1)  # the magnitude of the resolution
    octaves = most // middle
    # The first magnitude of each piece; on grids of whole numbers the middle is by binades, else in one.
    firsts = np.array([0, *(2**p for p in range(digits)), *(middle * k for k in range(2, octaves + 1))])
    sizes = np.diff(np.append(firsts, most + 1))
    binades = np.frexp(grid.decode(firsts - grid.first))[1] - 1.0
    share = _binades(binades)
    if grid.value(1 - grid.first) >= 1:
        share[0] = share[1]
    else:
        inside = firsts < middle
        share[inside] = _binades(binades[~inside][0] - 1) * sizes[inside] / middle
    total = 2.0 ** min(61, max(50, digits + 24))  # below 2**52 with up to 27 digits, for sums in doubles
    of_magnitudes = total * (1 - 5 * _SIXTEENTH) / 2 * share / share.sum()
    slopes = np.maximum(np.rint(of_magnitudes / sizes), 1).astype(np.int64)
    points, shares = _rounds(grid)
    more = np.maximum(np.rint(total * shares), 1).astype(np.int64)
    return Magnitudes(digits, slopes, points, more, (_magnitudes, (digits, resolution)))


def _rounds(grid: FloatGrid) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the magnitudes of the round numbers on an unbounded grid, ascending, and the share of each on each side of
    0.
    """
    decades = sorted(set().union(*_DECADES_OF_DIGITS.values()))
    most = {d: max(digits for digits, those in _DECADES_OF_DIGITS.items() if d in those) for d in decades}
    values = [np.zeros(1), *(_numbers(d, digits) for d, digits in most.items())]
    starts = dict(zip(decades, np.cumsum([len(part) for part in values]).tolist(), strict=False))
    codes = grid.encode(np.concatenate(values)) + grid.first
    fresh = np.append(True, codes[1:] != codes[:-1])
    place = np.cumsum(fresh) - 1  # some are one point, below the resolution or with few digits
    places, shares = [place[:1]], [np.full(1, _SIXTEENTH)]
    for digits, those in _DECADES_OF_DIGITS.items():
        weights, count = _decades(np.array(those)), 9 * 10 ** (digits - 1)  # numbers of each decade
        places += [place[starts[d] :: 10 ** (most[d] - digits)][:count] for d in those]
        shares.append(np.repeat(_SIXTEENTH / 2 * (weights / weights.sum()) / count, count))
    of_all, share = np.concatenate(places), np.concatenate(shares)
    share[1:][of_all[1:] == 0] *= 2  # those next to 0 are one point with their negatives
    return codes[fresh], np.bincount(of_all, share).astype(np.float64)


def _numbers(decade: int, digits: int) -> NDArray[np.float64]:
    """Return the numbers of so many significant digits from 10**decade on, ascending."""
    leading, power = np.arange(10.0 ** (digits - 1), 10.0**digits), decade - digits + 1
    return leading / 10.0**-power if power < 0 else leading * float(10**power)
