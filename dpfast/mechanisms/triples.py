"""The variance of a private number of records: noise on a sum, a sum of squares and a count together."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpfast.core import checks
from dpfast.core.grid import Grid
from dpfast.laws import LatticeBox, NoisyIntegers
from dpfast.streaming import CodeSums

_BITS = 32  # of the largest square of a record in release codes
_MOST = 2**61


@dataclass(frozen=True)
class Triples:
    """The triples (sum of u, sum of 2 u**2 - h**2, count) for the codes u from -h to h, twice those of the grid less h.

    One record changes a triple by at most (h, h**2, 1). The sums of squares are divided by a public power of two and
    rounded.

    Parameters
    ----------
    grid : Grid
    epsilon : float
    """

    grid: Grid
    epsilon: float

    @property
    def half_width(self) -> int:
        """H."""
        return self.grid.size - 1

    @cached_property
    def unit(self) -> int:
        """The power of two by which sums of squares are divided."""
        return 1 << max((self.half_width**2).bit_length() - _BITS, 0)

    @property
    def changes(self) -> tuple[int, int, int]:
        """The largest changes of the three integers by one record."""
        return self.half_width, -(-(self.half_width**2) // self.unit), 1

    @cached_property
    def noise(self) -> LatticeBox:
        return LatticeBox([checks.noise_scale(change, self.epsilon) for change in self.changes])

    def center(self, sums: CodeSums) -> NDArray[np.int64]:
        """Return the triple of the records, clamped."""
        n, total, squares = sums
        h, unit = self.half_width, self.unit
        doubled = 8 * squares - 8 * h * total + n * h**2  # the sum of 2 u**2 - h**2
        exact = 2 * total - n * h, (2 * doubled + unit) // (2 * unit), n
        return np.array([min(max(k, 1 - _MOST), _MOST - 1) for k in exact], np.int64)

    def law(self, sums: CodeSums) -> NoisyIntegers:
        """Return the law of the noisy triple. PRIVATE."""
        return NoisyIntegers(self.center(sums), noise=self.noise, most=_MOST, decode=self.variance)

    def variance(self, triples: NDArray[np.int64]) -> NDArray[np.float64] | float:
        """Return the variances of triples, of shape (..., 3), in data units.

        Within 0 and that of records at both ends; of a count that is not positive, that of records all over the grid.
        """
        total, squares, n = np.moveaxis(triples.astype(np.float64), -1, 0)
        h, count = float(self.half_width), np.maximum(n, 1.0)
        first = np.where(n > 0, np.clip(total / count, -h, h), 0.0)
        second = np.where(n > 0, np.clip((squares * self.unit / count / h**2 + 1) / 2, 0.0, 1.0), 1 / 3)
        found = np.clip(second - (first / h) ** 2, 0.0, 1.0) * self.largest
        return found if found.ndim else float(found)

    @property
    def largest(self) -> float:
        """The largest variance: that of records at both ends."""
        return float((Fraction(self.grid.step) * self.half_width / 2) ** 2)
