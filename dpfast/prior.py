"""Priors: public weights for the parameter of an M-estimator, chosen before any data are read. They are free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpfast.core import checks
from dpfast.core.grid import MAX_SIZE, Grid

__all__ = ["Cauchy", "PointWeights"]

_REACH = MAX_SIZE // 2 - 1
_MOST_STEPS = 2**53
_MOST_WEIGHTS, _MOST_RATIO = 2**16, 2**20


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


@dataclass(frozen=True)
class PointWeights:
    """A weight for each point of a grid, in any unit: one of last year's histogram, or of an expert.

    Parameters
    ----------
    weights : sequence of int
        Positive, as many as the grid has points, at most 2**16; the largest is at most 2**20 times the smallest.

    Notes
    -----
    A release draws points without the prior until one is kept, with a probability of its weight over the largest:
    https://dpfast.readthedocs.io/en/latest/proofs/score-laws.html. So it takes long if the weights near the records are
    small.

    Examples
    --------
    >>> import dpfast as dpf
    >>> prior = dpf.prior.PointWeights([1, 2, 4, 2, 1])
    >>> mechanism = dpf.MEstimator(dpf.psi.Pinball(0.5), grid=dpf.Grid(0, 4, step=1), epsilon=1.0, prior=prior)
    >>> dpf.audit.verify(mechanism, n=2).holds
    True
    """

    weights: Sequence[int]

    def __post_init__(self) -> None:
        given = checks.once(self.weights)
        if np.ndim(given) != 1 or not 1 <= len(given) <= _MOST_WEIGHTS:
            raise ValueError(f"weights must be a sequence of 1 to {_MOST_WEIGHTS} integers")
        weights = tuple(checks.whole("each weight", weight, least=1) for weight in given)
        if max(weights) > _MOST_RATIO * min(weights):
            raise ValueError(f"the largest weight must be at most {_MOST_RATIO} times the smallest")
        object.__setattr__(self, "weights", weights)

    def __str__(self) -> str:
        return f"a prior of {len(self.weights)} weights"

    def check(self, grid: Grid) -> None:
        """Raise a ValueError if the grid has another number of points."""
        if grid.size != len(self.weights):
            raise ValueError(
                f"the prior must have a weight for each of the {grid.size} points, not {len(self.weights)}"
            )


def edges(center: int, width: int, last: int) -> NDArray[np.int64]:
    """Return the cuts in 1..last, at center and center +- width 2**j, between which the weight varies by at most 4x."""
    offsets = [width << j for j in range(64)]
    points = {center, *(center + offset for offset in offsets), *(center - offset for offset in offsets)}
    return np.array(sorted(point for point in points if 0 < point <= last), dtype=np.int64)
