"""What is assumed of records to compare mechanisms: a distribution, typical values, or references within bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast.core import checks
from dpfast.core.grid import Grid
from dpfast.mechanisms.assumptions import Affine, Assumed, is_fixed

_SCALES = (1e-3, 1e-2, 1e-1, 1.0)  # of references, relative to the bounds; narrow ones first, which decide most often
_CENTER = (3 - math.sqrt(5)) / 2  # of the bounds: not a round number of any grid
_MOST_TYPICAL = 2.0**400  # squares of records far outside of them are doubles
_TYPICAL = np.array([0.05, 0.95])  # the levels of typical values


class Reference(NamedTuple):
    """A distribution under which candidates are compared: its shape, its width in units of the bounds."""

    shape: str
    scale: float
    assumed: Assumed


@dataclass(frozen=True)
class _Shape:
    """A standard distribution: its quantile function and mean."""

    ppf: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    center: float = 0.0

    def mean(self) -> float:
        return self.center


_LOGNORMAL = Assumed(_Shape(lambda u: np.exp(0.6 * scipy.special.ndtri(u)), math.exp(0.18)))
_HEAVY = Assumed(_Shape(lambda u: (2 * u - 1) / np.sqrt(2 * u * (1 - u))))
_NORMAL = Assumed(_Shape(lambda u: np.asarray(scipy.special.ndtri(u))))


@lru_cache(maxsize=4)
def references(grid: Grid) -> tuple[Reference, ...]:
    """Return the reference distributions of records on a grid: those that spread over several of its points.

    They keep their nodes, 1.6 MB for a grid.
    """
    whole = grid.upper - grid.lower
    middle, found = grid.lower + _CENTER * whole, []
    for scale in _SCALES:
        width = scale * whole
        if width >= 8 * grid.step or scale == 1:
            found += [
                Reference("lognormal", scale, Affine(_LOGNORMAL, grid.lower, width / 8)),
                Reference("Student-t(2)", scale, Affine(_HEAVY, middle, width / 8)),
                Reference("normal", scale, Affine(_NORMAL, middle, width / 4)),
            ]
    return tuple(found)


class Typical(NamedTuple):
    """Typical values that a user assumes: nine tenths of the records are between them."""

    low: float
    high: float

    def references_within(self, grid: Grid | None) -> tuple[Reference, ...]:
        """Return the three shapes with these quantiles, for records within the bounds of a grid."""
        found = []
        for shape, base in (("lognormal", _LOGNORMAL), ("Student-t(2)", _HEAVY), ("normal", _NORMAL)):
            first, last = base.points(_TYPICAL).tolist()
            scale = (self.high - self.low) / (last - first)
            found.append(Reference(shape, 1.0, Affine(base, self.low - first * scale, scale, grid)))
        return tuple(found)


def assumption(distribution: Any) -> Any:
    """Return what a user assumes: None, `Typical` values of a pair (low, high), or an object with a
    quantile function.
    """
    if isinstance(distribution, Typical):
        return distribution
    if isinstance(distribution, tuple | list):
        low, high = checks.interval("distribution", distribution)
        if not (low < high and math.isfinite(high - low)):
            raise ValueError(f"typical values must be finite and different, not ({low!r}, {high!r})")
        if max(abs(low), abs(high)) > _MOST_TYPICAL:
            raise ValueError(f"typical values must be within 2**400, not ({low!r}, {high!r})")
        return Typical(low, high)
    if distribution is not None:
        Assumed(distribution)
    return distribution


def references_of(assumed: Any, grid: Grid | None) -> tuple[Reference, ...]:
    """Return the distributions under which candidates are compared, for an `assumption` and a grid of the records."""
    if assumed is None:
        return () if grid is None else references(grid)
    return (_references_under if is_fixed(assumed) else _references_under.__wrapped__)(assumed, grid)


@lru_cache(maxsize=4)
def _references_under(assumed: Any, grid: Grid | None) -> tuple[Reference, ...]:
    if isinstance(assumed, Typical):
        return assumed.references_within(grid)
    return (Reference("assumed", 1.0, Assumed(assumed)),)
