"""The columns of a regression: numbers, or public categories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.tables import WantedColumn


@dataclass(frozen=True)
class Predictor:
    """A column of a regression.

    Attributes
    ----------
    name : str
        Of the column.
    categories : tuple of str or of int
        Public. Each but the first becomes a column of the regression, which is 1 for its records and 0 for others; a
        record of none of them is missing. Empty for a column of numbers.
    filled : float, optional
        What a missing number becomes. Default: it stays missing.
    """

    name: str
    categories: tuple[Any, ...] = ()
    filled: float | None = None

    @property
    def names(self) -> list[str]:
        """The names of the columns of the regression."""
        return [f"{self.name}={category}" for category in self.categories[1:]] or [self.name]

    @property
    def values(self) -> list[float]:
        """The categories as numbers, if all of them are numbers; else empty."""
        try:
            values = [float(category) for category in self.categories]
        except ValueError:
            return []
        return [] if any(map(math.isnan, values)) else values

    @property
    def column(self) -> WantedColumn:
        """How the file is read: as text for categories that are not numbers."""
        return WantedColumn(self.name, text=bool(self.categories) and not self.values)

    def numbers(self, cells: NDArray[Any]) -> NDArray[np.float64]:
        """Return the columns of the regression from the cells of a file, NaN for a missing cell."""
        if not self.categories:
            return cells if self.filled is None else np.where(np.isnan(cells), self.filled, cells)
        values: Sequence[Any] = self.values or self.categories
        found = np.stack([cells == value for value in values], axis=1)
        return np.where(found.any(axis=1, keepdims=True), found[:, 1:].astype(np.float64), np.nan)
