"""The choice of a method for robust means by public numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from dpfast.core.divergences import bounded_range_epsilon_down
from dpfast.core.grid import Grid
from dpfast.robust.depth import SIZES
from dpfast.theory.robust import depth_error, medians_error

_REFERENCES = (0.0, 0.5, 0.9)  # correlations of any two columns
_WHITENED_RECORDS = 540.0  # for each column, times 1 / epsilon: fewer do not show locations and scales
_GAIN = 0.95
_MOST_RECORDS = {2: 2**20, 3: 3000}  # for depths, which take long for more


def compared(n: int, grids: Sequence[Grid], epsilon: float, delta: float) -> MethodErrors:
    """Return the comparison of the methods that serve, for records on these grids."""
    d, methods = len(grids), ["boxes"]
    if delta:
        share = bounded_range_epsilon_down(epsilon, delta, d)
        methods.insert(0 if (d + 1) * share > 2 * epsilon else 1, "columns")
    if d > 1 and not any(grid.resolves for grid in grids):
        methods.append("whitened")
    # In three dimensions the grid of depths may be too coarse for the records.
    if n <= _MOST_RECORDS.get(d, 0) and (d < 3 or max(grid.size for grid in grids) <= SIZES[d]):
        methods.append("depth")
    return MethodErrors(n, d, epsilon, delta, tuple(methods))


@dataclass(frozen=True)
class MethodErrors:
    """Expected errors of the methods, for normal records whose covariance is not known, and the method with the least.

    Parameters
    ----------
    n, d : int
    epsilon, delta : float
    methods : tuple of str
        Those that are compared; the first one is the default.

    Notes
    -----
    The error is the root mean square of the distance from the mean in the Mahalanobis norm of the records, its
    geometric mean over correlations of 0, 0.5 and 0.9 of any two columns. Public: it depends on no data.
    """

    n: int
    d: int
    epsilon: float
    delta: float
    methods: tuple[str, ...]

    def _error(self, method: str, correlation: float) -> float:
        if method == "boxes":
            return medians_error(self.n, self.d, self.epsilon, correlation=correlation)
        if method == "columns":
            share = bounded_range_epsilon_down(self.epsilon, self.delta, self.d)
            return medians_error(self.n, self.d, share, correlation=correlation, independent=True)
        if method == "depth":
            return depth_error(self.n, self.d, self.epsilon)
        if self.n * self.epsilon < _WHITENED_RECORDS * self.d:
            return math.inf
        return medians_error(self.n, self.d, self.epsilon / 2)

    @cached_property
    def errors(self) -> dict[str, float]:
        """The expected error of each method, in standard deviations."""

        def error(method: str) -> float:
            logs = [math.log(self._error(method, correlation)) for correlation in _REFERENCES]
            return math.exp(math.fsum(logs) / len(logs))

        return {method: error(method) for method in self.methods}

    @cached_property
    def method(self) -> str:
        """The method with the least expected error; the default unless another one has at least 5 % less."""
        best = min(self.methods, key=self.errors.__getitem__)
        return best if self.errors[best] < _GAIN * self.errors[self.methods[0]] else self.methods[0]

    def __str__(self) -> str:
        errors = ", ".join(f"{method} {error:.3g}" for method, error in self.errors.items())
        return f"method='auto': {self.method}. Expected errors in standard deviations, normal records: {errors}."
