"""Priors: public weights for the parameter of an M-estimator, chosen before any data are read. They are free."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpfast.core import checks
from dpfast.core.grid import MAX_SIZE, Grid

__all__ = ["Cauchy"]

_REACH = MAX_SIZE // 2 - 1
_MOST_STEPS = 2**53


@dataclass(frozen=True)
class Cauchy:
    """The discretised Cauchy weight ``1 / (width**2 + (theta - center)**2)``: a guess, not a bound.

    Parameters
    ----------
    center : float
        In data units; rounded to a multiple of the step.
    width : float
        In data units, positive; rounded to a multiple of the step, at least one. Half of the weight is within `width`
        of `center`.

    Notes
    -----
    The weight of a grid point is a rational number, used without rounding.

    References
    ----------
    Chaudhuri and Hsu 2012, section 5.2: the prior for a parameter with an unknown range.

    Examples
    --------
    >>> import dpfast as dpf
    >>> prior = dpf.prior.Cauchy(0, 100)
    >>> prior.grid(0.5).size == 2**52 - 1
    True
    """

    center: float
    width: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", checks.real("center", self.center))
        object.__setattr__(self, "width", checks.positive("width", self.width))

    def __str__(self) -> str:
        return f"a Cauchy prior around {self.center:g}, width {self.width:g}"

    def grid(self, step: float) -> Grid:
        """Return the widest grid around the center: 2**51 - 1 multiples of `step` on each side. NaN goes to the center.

        Parameters
        ----------
        step : float
            A power of two in data units.

        Raises
        ------
        ValueError
            If the center is so far from 0 that the points are not exact in float64; use a larger step.
        """
        size = checks.positive("step", step)
        center = round(Fraction(self.center) / Fraction(size))
        if abs(center) + _REACH > _MOST_STEPS:
            raise ValueError(f"center={self.center!r} is too many steps of {step!r} from 0: use a larger step")
        return Grid((center - _REACH) * size, (center + _REACH) * size, step=size, missing=center * size)

    def codes(self, grid: Grid) -> tuple[int, int]:
        """Return the center and width in steps, the center counted from the lower bound.

        Raises
        ------
        ValueError
            If one of them is 2**53 steps or more.
        """
        step = Fraction(grid.step)
        center, width = round(Fraction(self.center) / step) - grid.first, max(1, round(Fraction(self.width) / step))
        if max(abs(center), width) >= _MOST_STEPS:
            raise ValueError(
                f"center and width of {self} must be within 2**53 steps of {grid.step!r}: use a larger step"
            )
        return center, width


def edges(center: int, width: int, last: int) -> NDArray[np.int64]:
    """Return the cuts in 1..last, at center and center +- width 2**j, between which the weight varies by at most 4x."""
    offsets = [width << j for j in range(64)]
    points = {center, *(center + offset for offset in offsets), *(center - offset for offset in offsets)}
    return np.array(sorted(point for point in points if 0 < point <= last), dtype=np.int64)
