"""Public bounds on the columns of rows, and the map of rows within them to one scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpfast.core import checks
from dpfast.domains import Ball
from dpfast.regression.fit import Fit
from dpfast.streaming import Chunks, Labelled, names_of_columns

Values = NDArray[np.float64]
AnyFit = TypeVar("AnyFit", bound=Fit)

_NUMBERS = 2**21  # in a piece of scaled rows
_MOST = 2.0**100  # magnitude of a bound, and the inverse of the least width


@dataclass(frozen=True)
class ColumnBounds:
    """The rows of which each column is between public bounds, clamped to them and scaled to [-1, 1].

    The map applies to each record by itself, so it costs no privacy. NaN stays NaN, and an infinity is at a bound.

    Parameters
    ----------
    bounds : pair (lower, upper), or one pair for each column
        See `dpfast.core.checks.bounds_of`, also for `names`.
    """

    middle: Values
    half: Values

    def __init__(self, bounds: Any, names: Callable[[], Sequence[str] | None] = lambda: None) -> None:
        lower, upper = np.array(checks.bounds_of(bounds, names), np.float64).T
        if not np.all((np.maximum(np.abs(lower), np.abs(upper)) <= _MOST) & (upper - lower >= 2 / _MOST)):
            raise ValueError("bounds must be within +-2**100, and each lower one below the upper one by 2**-99 or more")
        object.__setattr__(self, "middle", (lower + upper) / 2)
        object.__setattr__(self, "half", (upper - lower) / 2)

    @property
    def columns(self) -> int | None:
        """The number of columns; None for any."""
        return len(self.half) if self.half.ndim else None

    @property
    def size(self) -> float:
        """The largest factor that the map of a fit to data units multiplies by."""
        return float(np.max(np.maximum(np.abs(self.middle), 1.0) / self.half)) + 1.0

    def domain(self, d: int | None = None) -> Ball:
        """Return the domain of the scaled rows; of rows with one column as long as their number is unknown."""
        if d is not None and self.columns not in (None, d):
            raise ValueError(f"X must have {self.columns} columns, like bounds, not {d}")
        return Ball(math.sqrt(d or self.columns or 1))

    def scaled(self, records: Labelled | Chunks) -> Labelled | Chunks:
        """Return the records with scaled rows; many are made in pieces, anew for each pass."""
        if isinstance(records, Labelled) and records.rows.size <= _NUMBERS:
            self.domain(records.columns)
            return Labelled(self._scaled(records.rows), records.labels)
        pieces = records if isinstance(records, Chunks) else (records,)

        def opened() -> Iterator[Any]:
            for piece in pieces:
                records = Labelled.of(piece)
                self.domain(records.columns)
                step = max(1, _NUMBERS // records.columns)
                for start in range(0, max(len(records), 1), step):
                    part = records[start : start + step]
                    yield self._scaled(part.rows), part.labels

        return Chunks(opened)

    def _scaled(self, rows: NDArray[Any]) -> Values:
        with np.errstate(all="ignore"):  # rows may contain NaN, infinities or huge numbers
            scaled = rows.astype(np.float64)
            np.clip(scaled, self.middle - self.half, self.middle + self.half, out=scaled)
            scaled -= self.middle
            scaled /= self.half
        return scaled

    def in_data_units(self, fit: AnyFit) -> AnyFit:
        """Return a fit to scaled rows, in the units of the data."""
        d, predictors = fit.coefficients.shape[-1], fit.coefficients.shape[:-1]
        back = np.diag(np.append(np.broadcast_to(1 / self.half, d), 1.0))
        back[d, :d] = -self.middle / self.half
        moved = fit.intercept + fit.coefficients @ back[d, :d]
        scaled = replace(
            fit,
            coefficients=fit.coefficients / self.half,
            intercept=moved if predictors else float(moved),
            standard_errors=fit.standard_errors / self.half,
        )
        if fit.covariance is None:  # and errors are NaN
            return scaled
        every = np.kron(np.eye(math.prod(predictors)), back)
        covariance = (every @ fit.covariance @ every.T).astype(np.float64)
        errors = np.sqrt(np.maximum(np.diag(covariance)[d :: d + 1], 0.0))
        return replace(scaled, intercept_error=errors if predictors else float(errors[0]), covariance=covariance)

    def of_scaled_rows(self, fit: AnyFit) -> AnyFit:
        """Return the coefficients of a fit in the units of the data, for scaled rows; its errors are not converted."""
        with np.errstate(all="ignore"):
            coefficients, middle = np.broadcast_arrays(fit.coefficients, self.middle)
            intercept = fit.intercept + np.sum(coefficients * middle, axis=-1)
            return replace(fit, coefficients=coefficients * self.half, intercept=intercept)


def given_bounds(X: Any, bounds: Any, radius: Any, center: Any) -> ColumnBounds | None:
    """Return the bounds of the columns of X, or None; checks that either they or a radius is given,
    and no center too.
    """
    if (bounds is None) == (radius is None):
        raise TypeError("give either radius= or bounds=(lower, upper): public, chosen without knowledge of the data")
    if bounds is None:
        return None
    if np.ndim(center) or center != 0:
        raise TypeError("center must be left out with bounds=: rows are centered between them")
    return ColumnBounds(bounds, partial(names_of_columns, X))
