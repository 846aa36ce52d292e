"""Synthetic numbers between jointly released quantiles."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpfast.core.grid import FloatGrid, Points
from dpfast.random import RandomSource, bit_generator

LEAST_PRODUCT = 200  # n epsilon from which quantiles are the better method
_LEAST, _MOST = 3, 127
_BLOCK = 2**15  # records that are drawn at a time: with 2**12, calls take a third longer
_BEYOND = 60  # least product of epsilon and the records beyond the last quantile, for a quantile near them among floats


def are_better(n: int, epsilon: float, grid: Points) -> bool:
    """Whether quantiles are the better method for one column, by public numbers.

    They are the only one without bounds, and where missing records are left out.
    """
    return isinstance(grid, FloatGrid) or grid.missing == "drop" or n * epsilon >= LEAST_PRODUCT


def quantile_levels(n: int, epsilon: float, grid: Points) -> tuple[float, ...]:
    """Return the levels (i + 1/2) / m of the quantiles to release: m is about ``sqrt(n epsilon) / 2``, from 3 to 127.

    More quantiles follow the distribution more closely but have more noise: m / n epsilon times a logarithm in the
    tails, 1 / m between two quantiles. Without bounds m is at most ``n epsilon / 120``: with fewer records beyond the
    last quantile it may be far from all records.
    """
    product = min(n * epsilon, 1e9)
    most = min(product / (2 * _BEYOND), _MOST) if isinstance(grid, FloatGrid) else _MOST
    m = max(math.floor(min(round(math.sqrt(product) / 2), most)), _LEAST)
    return tuple((i + 0.5) / m for i in range(m))


def draw_between(quantiles: NDArray[np.float64], k: int, grid: Points, rng: RandomSource) -> NDArray[np.float64]:
    """Draw k numbers from the distribution with these quantiles at the levels (i + 1/2) / m, m >= 2, on grid points.

    It is uniform between two neighbouring quantiles, and beyond the last ones for half of the last distance.
    """
    with np.errstate(over="ignore"):
        before = quantiles[0] - (quantiles[1] - quantiles[0])
        after = quantiles[-1] + (quantiles[-1] - quantiles[-2])
    knots = np.clip(np.concatenate([[before], quantiles, [after]]), grid.lower, grid.upper)
    generator, drawn = np.random.Generator(bit_generator(rng)), np.empty(k)
    for start in range(0, k, _BLOCK):
        block = drawn[start : start + _BLOCK]
        share = generator.random(len(block))
        share *= len(quantiles)
        share += 0.5
        below = share.astype(np.int64)
        share -= below
        above = knots[1:].take(below)
        above *= share
        np.subtract(1.0, share, out=share)
        share *= knots.take(below)
        share += above
        block[:] = grid.decode(grid.encode(share))
    return drawn
