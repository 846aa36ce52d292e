"""What is publicly known of a column: its type, its bounds, its categories, what missing cells become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from dpfast.core import checks
from dpfast.core.grid import Grid, Points, checked_policy, unbounded

_TYPES = ("number", "integer", "text")
_FORM = "columns must be a mapping from names to facts, as in columns={'pay': {'bounds': (0, 500_000)}}"


@dataclass(frozen=True)
class Facts:
    """Public facts of a column; all of them are optional, and none may come from the data.

    Attributes
    ----------
    type : {"number", "integer", "text"}, optional
        Default: that of a frame or a Parquet file; of CSV "number", and "text" for labels of groups.
    bounds : pair of float, or "private"
        Where values are clamped. "private": they are found privately, for means, sums and variances.
    step : float, optional
        Granularity within `bounds`, a power of two. Default: 1 for integers, else fine.
    categories : sequence of text or of integers, optional
        All keys of groups by this column, in their order. Records of other keys are left out.
    missing : float, "lower", "half" or "drop", optional
        What a missing cell becomes, see `dpfast.median`. Default: it is left out where this costs nothing, of quantiles
        and where the number of records is private anyway; else "lower", with a warning.
    """

    type: str | None = None
    bounds: Any = None
    step: float | None = None
    categories: tuple[Any, ...] | None = None
    missing: float | str | None = None

    def __post_init__(self) -> None:
        if self.type is not None:
            checks.choice("type", self.type, _TYPES)
        if self.bounds is not None and self.bounds != "private":
            object.__setattr__(self, "bounds", checks.interval("bounds", self.bounds))
        if self.step is not None and not isinstance(self.bounds, tuple):
            raise ValueError("step needs bounds=(lower, upper)")
        if self.categories is not None:
            object.__setattr__(self, "categories", _listed(self.categories))
        object.__setattr__(self, "missing", checked_policy(self.missing))
        self.points(whole=False)  # rejects a step or a missing value that does not fit

    @property
    def is_text(self) -> bool | None:
        """Whether labels of this column are text; None if nothing says so."""
        if self.categories is not None:
            return isinstance(self.categories[0], str)
        return None if self.type is None else self.type == "text"

    @property
    def filled(self) -> float | None:
        """What a missing number is in a regression; None if it is missing there, too."""
        if self.missing == "lower" and isinstance(self.bounds, tuple):
            return float(self.bounds[0])
        return self.missing if isinstance(self.missing, float) else None

    def points(self, *, whole: bool) -> Points | None:
        """Return the grid of records that no dtype declares as integers; None for the default of `bounds`."""
        if not isinstance(self.bounds, tuple):
            return unbounded(True) if whole and self.bounds is None else None
        step = self.step if self.step is not None else 1.0 if whole else None
        lower, upper = self.bounds
        made = Grid(lower, upper, step=step, missing=self.missing)
        return None if step is None else made


def _listed(categories: Any) -> tuple[Any, ...]:
    if isinstance(categories, (str, bytes, set, frozenset)) or not isinstance(categories, Sequence):
        raise TypeError(f"categories must be a sequence in its order, not {type(categories).__name__}")
    listed = tuple(categories)
    if len(set(map(type, listed))) != 1 or not isinstance(listed[0], (str, int)) or len(set(listed)) < len(listed):
        raise ValueError("categories must be different texts, or different integers, at least one")
    return listed


def facts_of(columns: Any) -> dict[str, Facts]:
    """Return the facts of each column that a user gives."""
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise TypeError(f"{_FORM}, not {type(columns).__name__}")
    return {str(name): _facts(str(name), given) for name, given in columns.items()}


def _facts(name: str, given: Any) -> Facts:
    if isinstance(given, Facts):
        return given
    if not isinstance(given, Mapping):
        raise TypeError(f"{_FORM}; for {name!r} it is {type(given).__name__}")
    known = [field.name for field in fields(Facts)]
    if unknown := sorted(set(given) - set(known)):
        raise TypeError(f"column {name!r} has no fact {unknown[0]!r}: it takes {', '.join(known)}")
    try:
        return Facts(**given)
    except (TypeError, ValueError) as error:
        raise type(error)(f"column {name!r}: {error}") from None
