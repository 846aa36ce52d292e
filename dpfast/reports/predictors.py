"""The columns of a regression: numbers, or public categories."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.reports.facts import Facts
from dpfast.reports.notes import Read
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


def distinct(names: list[str]) -> list[str]:
    """Return the names of columns of a release, which must be different ones."""
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"columns of a release must be different: {twice[0]!r} is named twice")
    return names


class Variables:
    """The columns of a regression, with what is publicly known of them.

    Parameters
    ----------
    features : sequence of str
    label : str
        A number, or one of two categories.
    facts : function of a name
        Returns what is known of a column.
    """

    def __init__(self, features: Sequence[str], label: str, facts: Callable[[str], Facts]) -> None:
        self._facts = {name: facts(name) for name in distinct([*features, label])}
        *self.features, self.label = (
            Predictor(name, found.categories or (), found.filled) for name, found in self._facts.items()
        )
        if self.label.categories and len(self.label.categories) != 2:
            raise ValueError(f"the label {label!r} must be a number, or have two categories")

    @property
    def all(self) -> list[Predictor]:
        """The columns, last the label."""
        return [*self.features, self.label]

    @property
    def names(self) -> list[str]:
        """The names of the coefficients."""
        return [name for each in self.features for name in each.names]

    def drops(self, missing: Any, *, hidden: bool) -> bool:
        """Whether records with a missing cell are left out: where the call or the facts of a column say so.

        Where nothing is said of a column, only if the number of records is `hidden` anyway, so that it costs nothing.
        """
        return "drop" in (missing, *(facts.missing for facts in self._facts.values())) or (hidden and bool(self.unsaid))

    @property
    def unsaid(self) -> list[Predictor]:
        """The columns of whose missing cells nothing is said."""
        return [each for each in self.all if self._facts[each.name].missing is None]

    def read(self, *, features: bool, label: bool, drops: bool) -> dict[str, Read]:
        """Return how each column is read: `features` and `label` within the bounds of their facts or not."""
        clamped = [features] * len(self.features) + [label]
        return {
            name: Read(
                facts.bounds if clamps else None,
                None if drops and facts.filled is None else facts.missing,
            )
            for (name, facts), clamps in zip(self._facts.items(), clamped, strict=True)
        }

    def bounds(self) -> list[tuple[float, float]]:
        """Return the bounds of the columns of rows; those of categories are 0 and 1."""
        found: list[tuple[float, float]] = []
        for each in self.features:
            given = (0.0, 1.0) if each.categories else self._facts[each.name].bounds
            if not isinstance(given, tuple):
                raise TypeError(
                    f"a regression needs bounds of all features, and {each.name!r} has none: (lower, upper) in "
                    f"columns= or in a plan, or --bounds {each.name}=LOWER,UPPER; or radius= of the release"
                )
            found += [given] * len(each.names)
        return found
