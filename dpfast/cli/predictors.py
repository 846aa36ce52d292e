"""The columns of a regression: numbers, or public categories, as the command line or a schema declares them."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.tables import TableError, WantedColumn, schema_type


@dataclass(frozen=True)
class Predictor:
    """A column of a regression.

    Attributes
    ----------
    name : str
        Of the column.
    categories : tuple of str
        Public. Each but the first becomes a column of the regression, which is 1 for its records and 0 for others; a
        record of none of them is missing. Empty for a column of numbers.
    """

    name: str
    categories: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the columns of the regression."""
        return [f"{self.name}={category}" for category in self.categories[1:]] or [self.name]

    @property
    def _values(self) -> list[float]:
        """The categories as numbers, if all of them are numbers."""
        try:
            values = [float(category) for category in self.categories]
        except ValueError:
            return []
        return [] if any(map(math.isnan, values)) else values

    @property
    def column(self) -> WantedColumn:
        """How the file is read: as text for categories that are not numbers."""
        return WantedColumn(self.name, text=bool(self.categories) and not self._values)

    def check_type(self, arguments: argparse.Namespace) -> None:
        """Raise an error unless the command line or the schema of the file declares this type."""
        found = schema_type(arguments.file, self.name, text=self.column.text)
        if self.column.text and found == "integer":
            raise TableError(f"the categories of {self.name!r}, a column of integers, must be integers")
        if found is None and not self.categories and arguments.type is None:
            raise ValueError(
                "CSV declares no types: give --type number for features and labels that are numbers, and for others "
                "--categories NAME=A,B,... or --label-values"
            )

    def numbers(self, cells: NDArray[Any]) -> NDArray[np.float64]:
        """Return the columns of the regression from the cells of a file, NaN for a missing cell."""
        if not self.categories:
            return cells
        values: Sequence[Any] = self._values or self.categories
        found = np.stack([cells == value for value in values], axis=1)
        return np.where(found.any(axis=1, keepdims=True), found[:, 1:].astype(np.float64), np.nan)


def predictors_of(arguments: argparse.Namespace) -> list[Predictor]:
    """Return the features of a regression."""
    given = dict(arguments.categories)
    if len(given) < len(arguments.categories) or not set(given) <= set(arguments.features):
        raise ValueError("--categories must name features, each of them once")
    return [_checked(name, given.get(name, ()), "--categories") for name in arguments.features]


def labels_of(arguments: argparse.Namespace) -> Predictor:
    """Return the label of a regression."""
    if (arguments.label_values is None) == (arguments.model == "logistic"):
        if arguments.label_values is None:
            raise ValueError("--model logistic needs --label-values, as in --label-values no yes or --label-values 0 1")
        raise ValueError("--label-values is for --model logistic")
    return _checked(arguments.label, tuple(arguments.label_values or ()), "--label-values")


def _checked(name: str, categories: tuple[str, ...], option: str) -> Predictor:
    made = Predictor(name, categories)
    values: Sequence[Any] = made._values or categories
    if categories and (len(values) < 2 or len(set(values)) < len(values) or "" in categories):
        raise ValueError(f"{option} must give different values, at least two, for {name!r}")
    return made
