"""The public grid: bounds, a power-of-two step, and the map from values to integer codes."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast import _checks, _containers
from dpfast._kernels import _grid

MAX_SIZE = 2**52
_MAX_STEPS_FROM_ZERO = 2**53
_DEFAULT_SIZE = 2**32
_LARGEST = sys.float_info.max


@dataclass(frozen=True, init=False, repr=False)
class Grid:
    """A public grid of equally spaced points between two bounds.

    A value is clamped to the bounds, then rounded to the nearest point (half to even). The map is exact and applies to
    each record separately, so it costs no privacy. NaN goes to a public point, infinities to the bounds.

    Parameters
    ----------
    lower, upper : float
        Finite bounds in data units, ``lower < upper``, chosen without knowledge of the data. They are widened to
        multiples of `step`.
    step : float, optional
        A power of two in data units: the granularity of every release. Default: the smallest step with at most 2**32
        points and indices that are exact in float64 (``max(|lower|, |upper|) / step <= 2**53``).
    missing : float, optional
        The value of NaN, None and unreadable cells. Default: `lower`.

    Attributes
    ----------
    lower, upper, step, missing : float
    size : int
        The number of points, at most 2**52.

    Raises
    ------
    TypeError, ValueError
        Bounds that are not finite numbers in order; a step that is not a power of two; bounds too wide for the step.

    Notes
    -----
    Privacy: a grid spends none; the codes are private data. Cost: O(1); `encode` is O(n).
    Source: the idea is the snapping of Mironov 2012, applied once, to the input (docs/proofs/grid.md).

    Examples
    --------
    >>> import dpfast as dpf
    >>> grid = dpf.Grid(0, 100, step=0.5)
    >>> grid.encode([-3, 0.25, 0.75, 50.2, float("nan"), float("inf")])
    array([  0,   0,   2, 100,   0, 200])
    >>> grid.decode([0, 1, 200])
    array([  0. ,   0.5, 100. ])
    """

    lower: float
    upper: float
    step: float
    missing: float
    size: int = field(init=False, compare=False, repr=False)
    first: int = field(init=False, compare=False, repr=False)  # the index of lower: lower == first * step
    _shift: int = field(init=False, compare=False, repr=False)

    def __init__(self, lower: float, upper: float, step: float | None = None, missing: float | None = None) -> None:
        for name, bound in (("lower", lower), ("upper", upper)):
            _checks.real(name, bound)
        low_exact, high_exact = _checks.exact(lower), _checks.exact(upper)
        if not low_exact < high_exact:
            raise ValueError(f"lower must be below upper, not lower={lower!r}, upper={upper!r}")
        width = _least_step(low_exact, high_exact, _DEFAULT_SIZE) if step is None else _checks.real("step", step)
        if math.frexp(width)[0] != 0.5:
            raise ValueError(f"step must be a power of two, not {step!r}")
        first, last = _outward(low_exact, high_exact, width)
        if not _fits(first, last, MAX_SIZE):
            raise ValueError(
                f"bounds ({lower!r}, {upper!r}) with step {width!r} need more than 2**52 points, or more than 2**53 "
                f"steps from 0: use step={_least_step(low_exact, high_exact, MAX_SIZE)!r} or more, as in "
                f"grid=Grid(lower, upper, step=...), or narrower bounds"
            )
        if max(abs(first), abs(last)) * Fraction(width) > Fraction(_LARGEST):
            raise ValueError(f"bounds ({lower!r}, {upper!r}) widened to step {width!r} overflow: use narrower bounds")
        low, high = first * width, last * width
        where = low if missing is None else min(max(_checks.real("missing", missing), low), high)
        for name, value in {
            "lower": low,
            "upper": high,
            "step": width,
            "missing": where,
            "size": last - first + 1,
            "first": first,
            "_shift": math.frexp(width)[1] - 1,
        }.items():
            object.__setattr__(self, name, value)

    def encode(self, values: ArrayLike) -> NDArray[np.int64]:
        """The codes of the values, integers in [0, size), in order.

        Parameters
        ----------
        values : array_like of shape (n,)
            Floats, integers or booleans of any stride; None counts as NaN in a list.

        Returns
        -------
        ndarray of int64, shape (n,)
            Private data.
        """
        x = _containers.vector("values", values)
        if x.dtype.kind == "b":
            x = x.view(np.uint8)
        elif x.dtype == np.float16:
            x = x.astype(np.float32)
        if not x.flags.aligned:
            x = x.copy()
        out = np.empty(x.shape[0], np.int64)
        _grid.encode(
            x,
            out,
            lower=self.lower,
            upper=self.upper,
            step=self.step,
            missing=self.missing,
            first=self.first,
            shift=self._shift,
        )
        return out

    def decode(self, codes: ArrayLike) -> NDArray[np.float64]:
        """The exact values of integer codes in [0, size)."""
        return np.asarray(_containers.integers("codes", codes) + self.first, dtype=np.float64) * self.step

    def value(self, code: int) -> float:
        """The exact value of one code."""
        return (self.first + code) * self.step

    @property
    def kernel(self) -> dict[str, float]:
        """The keyword arguments that describe the grid to the kernels of selection."""
        return {"lower": self.lower, "upper": self.upper, "step": self.step, "missing": self.missing}

    def __repr__(self) -> str:
        missing = "" if self.missing == self.lower else f", missing={self.missing!r}"
        return f"Grid({self.lower!r}, {self.upper!r}, step={self.step!r}{missing})"


def _outward(lower: Fraction, upper: Fraction, step: float) -> tuple[int, int]:
    """The bounds in steps, rounded outward."""
    return math.floor(lower / Fraction(step)), math.ceil(upper / Fraction(step))


def _fits(first: int, last: int, size: int) -> bool:
    return last - first < size and max(abs(first), abs(last)) <= _MAX_STEPS_FROM_ZERO


def _least_step(lower: Fraction, upper: Fraction, size: int) -> float:
    """The smallest power of two with at most `size` points and all indices exact in float64."""
    least = float(max((upper - lower) / size, max(abs(lower), abs(upper)) / _MAX_STEPS_FROM_ZERO))
    step = math.ldexp(1.0, max(math.frexp(least)[1] - 2, -1074)) if least else math.ulp(0.0)
    while not _fits(*_outward(lower, upper, step), size):
        step *= 2
    return step


def check_grid(grid: Any) -> None:
    """Raise a TypeError if `grid` is not a `Grid`."""
    if not isinstance(grid, Grid):
        raise TypeError(f"grid must be a dpfast.Grid, not {type(grid).__name__}")


def grid_for(x: Any, bounds: Any, grid: Grid | None) -> Grid:
    """The given grid, or the grid with the given bounds; exactly one of the two must be given."""
    _checks.bounds_or_grid(bounds, grid)
    return Grid(*_checks.pair("bounds", bounds), step=natural_step(x)) if grid is None else grid


def grids_within(bounds: Any, step: float | None) -> Grid | tuple[Grid, ...]:
    """The grid within a pair of bounds, or the grids within several pairs."""
    if np.ndim(bounds) < 2:
        return Grid(*_checks.pair("bounds", bounds), step=step)
    return tuple(Grid(*_checks.pair("each of bounds", pair), step=step) for pair in bounds)


def natural_step(x: Any) -> float | None:
    """1 if x has an integer or boolean dtype, else None, the default of `Grid`."""
    return 1.0 if _containers.declares_integers(x) else None
