"""Means and variances of columns from one private release of their sums and sums of squares."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.core import checks
from dpfast.core.grid import Grid, check_missing
from dpfast.domains import Ball, Box
from dpfast.mechanisms import NoisySums
from dpfast.statistics import Mean
from dpfast.streaming import Chunks

Values = NDArray[np.float64]

_NUMBERS = 2**14  # in a piece: with them and what is made of them, a cache of a core is full


class ColumnMoments:
    """A mechanism for the means of d columns and of their squares, and the rows that it reads.

    A row x of the domain becomes (u, weight u**2) for u = (x - middle) / half, which has the columns of a box between
    -1 and 1 and a ball in the unit ball. The map applies to each record separately, so it costs no privacy. The
    mechanism takes these rows in a domain of its own, which clamps them again: floats decide nothing.

    Parameters
    ----------
    domain : Box or Ball
    d : int
    epsilon, delta : float

    Attributes
    ----------
    mechanism : NoisySums
    """

    def __init__(self, domain: Box | Ball, d: int, epsilon: float, delta: float) -> None:
        domain.check_columns(d)
        self.domain, self.d = domain, d
        if isinstance(domain, Box):
            check_missing(type(self).__name__, domain.grids, hides_n=False)
            self.middle, self.half = _middles_and_halves(domain.grids_of(d))
            self.weight, self.mechanism = _in_a_box(d, epsilon, delta)
        else:
            self.middle, self.half = domain.center_of(d), np.full(d, domain.radius)
            self.weight, self.mechanism = _in_a_ball(d, epsilon, delta)
        checks.finite_scale(float(self.half.max()) ** 2 if self.half.max() < 2.0**512 else math.inf)

    def pieces(self, X: NDArray[Any]) -> Chunks:
        """Return the rows of the mechanism in pieces, each made when it is read: all take five times the memory of
        X.
        """
        step = 2 * max(1, _NUMBERS // (2 * self.d))  # even, so that missing records at even positions stay there

        def opened() -> Iterator[Values]:
            return (self.rows(X[start : start + step]) for start in range(0, len(X), step))

        return Chunks(opened)

    def rows(self, X: NDArray[Any]) -> Values:
        """Return the rows of the mechanism, (n, 2 d)."""
        codes = self.domain.encode(X)
        if isinstance(self.domain, Box):
            u = (2 * codes - self.domain.widths) / self.domain.widths
        else:
            u = codes / self.domain.ratio
        return np.hstack([u, self.weight * u * u])

    def read(self, release: Values, n: int) -> tuple[Values, Values]:
        """Return the means and the standard deviations of the columns, in data units, from a release.

        A variance below the standard deviation of its noise counts as that.
        """
        d, deviations = self.d, self.mechanism.noise_deviation(n)
        u, square = release[:d], release[d:] / self.weight
        noise = np.hypot(deviations[d:] / self.weight, 2 * u * deviations[:d])
        variance = np.maximum(square - u * u, noise)
        return self.middle + self.half * u, self.half * np.sqrt(variance)


def _middles_and_halves(grids: tuple[Grid, ...]) -> tuple[Values, Values]:
    """Return the middles and the half widths of the bounds."""
    lower, upper = (np.array([getattr(grid, end) / 2 for grid in grids]) for end in ("lower", "upper"))
    return upper + lower, upper - lower


def _in_a_box(d: int, epsilon: float, delta: float) -> tuple[float, NoisySums]:
    """Return the weight of squares, and the mechanism, for numbers u between -1 and 1: the one with less noise on
    squares.

    K-norm noise by the box of (u, u**2); or Gaussian noise in the smallest ball that contains all (u, sqrt(3) u**2):
    around u = 0, u**2 = 2/3, of squared radius 4/3 for each column.
    """
    box = Box((Grid(-1, 1),) * d + (Grid(0, 1),) * d)
    made = [(1.0, NoisySums(Mean(), domain=box, epsilon=epsilon, noise="k-norm"))]
    if delta:
        center = (0.0,) * d + (2 / math.sqrt(3),) * d
        ball = Ball(math.sqrt(4 * d / 3), center=center)
        made.append((math.sqrt(3), NoisySums(Mean(), domain=ball, epsilon=epsilon, delta=delta, noise="gaussian")))
    return min(made, key=lambda pair: float(pair[1].noise_deviation(1)[-1]) / pair[0])


def _in_a_ball(d: int, epsilon: float, delta: float) -> tuple[float, NoisySums]:
    """Return the weight of squares, and the mechanism, for rows u in the unit ball.

    All (u, weight u**2) are in a ball around u = 0, u**2 = 1 / d. The weight c with c**2 = sqrt(d) / 2 minimises the
    sum of the squared errors of means and scales, relative to the scales, for rows near the surface.
    """
    square = math.sqrt(d) / 2
    center = (0.0,) * d + (math.sqrt(square) / d,) * d
    ball = Ball(math.sqrt(1 + square * (1 - 1 / d)), center=center)
    return math.sqrt(square), NoisySums(Mean(), domain=ball, epsilon=epsilon, delta=delta)
