"""The records of a table: columns that are read once, for units of at most so many records."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.core import containers
from dpfast.core.containers import may_be_missing
from dpfast.core.privacy import Privacy
from dpfast.core.traps import of_cells_at_the_bound, warn
from dpfast.groups.contributions import bound_contributions, taken
from dpfast.groups.labels import cells_of, together
from dpfast.keys import column_of
from dpfast.ledger.outputs import InputFile
from dpfast.random import RandomSource
from dpfast.reports.facts import Facts
from dpfast.reports.notes import is_within, says_missing
from dpfast.reports.predictors import Predictor
from dpfast.reports.sources import File, Source
from dpfast.tables import TableError, WantedColumn

_PRIVATE = "'private' finds them for means, sums and variances without intervals"


class TableColumns:
    """The columns of a source, each of them read once.

    Parameters
    ----------
    source : Source
    facts : mapping of str to Facts
        What is publicly known of columns.
    unit : tuple of str
        The columns that say whose record each one is; empty if a unit is a record.
    budget : Privacy
        Says how many records a unit has at most, and whether their number is public.
    rng : numpy.random.Generator or BitGenerator, optional
        Chooses the records of a unit that has more.
    """

    def __init__(
        self, source: Source, facts: Mapping[str, Facts], unit: tuple[str, ...], budget: Privacy, rng: RandomSource
    ) -> None:
        self._source, self._facts, self._unit, self._budget, self._rng = source, facts, unit, budget, rng
        self._read: dict[WantedColumn, Any] = {}
        self._keep: NDArray[np.bool_] | None = None
        self._length: int | None = None
        self._lock = threading.Lock()

    @property
    def wanted(self) -> tuple[WantedColumn, ...]:
        """The columns that were read."""
        return tuple(self._read)

    @property
    def public_n(self) -> int | None:
        """The number of records, once a column is read; None if it is private, as that of units is."""
        return self._length if self._budget.neighbors == "replace-one" else None

    def presumed(self, by: Sequence[str]) -> int | None:
        """Return how many records a release has at most, or a group of it if all are equal, by public numbers only."""
        keys = self.categories(by) if by else [()]
        return None if self.public_n is None or keys is None else self.public_n // len(keys)

    def load(self, wanted: Sequence[WantedColumn]) -> None:
        """Read columns at once, before they are needed."""
        self._get(list(wanted))

    def check(self, names: Sequence[str]) -> None:
        """Raise a TableError if columns are known not to be there, by the public names of all columns."""
        self._source.check_names(names)

    def facts(self, name: str | None) -> Facts:
        """Return what is publicly known of a column."""
        if isinstance(name, (list, tuple)):
            raise TypeError(f"column must be the name of one column, not {list(name)!r}")
        return self._facts.get(name or "", Facts())

    def categories(self, names: Sequence[str]) -> list[Any] | None:
        """Return the public keys of groups by columns; None if they are private."""
        each = [self.facts(name).categories for name in names]
        found = [categories for categories in each if categories is not None]
        if len(found) < len(each):
            return None
        return list(found[0]) if len(found) == 1 else list(itertools.product(*found))

    def values(self, name: str) -> Any:
        """Return a column of numbers."""
        return self._get([WantedColumn(name)])[0]

    def labels(self, names: Sequence[str]) -> dict[str, Any]:
        """Return columns of keys by their names."""
        wanted = [self._label(name) for name in names]
        found = self._get(wanted)
        return {
            name: column if each.text or not isinstance(self._source, File) else _whole(column)
            for name, column, each in zip(names, found, wanted, strict=True)
        }

    def rows(self, predictors: Sequence[Predictor]) -> NDArray[np.float64]:
        """Return the columns of a regression as rows of numbers, NaN for a missing cell."""
        found = self._get([predictor.column for predictor in predictors])
        return np.column_stack(
            [predictor.numbers(_cells(column, predictor)) for column, predictor in zip(found, predictors, strict=True)]
        )

    def is_full(self, predictor: Predictor) -> bool:
        """Whether a column cannot have missing cells: one of integers or booleans of NumPy."""
        dtype = getattr(self._get([predictor.column])[0], "dtype", None)
        return not predictor.categories and isinstance(dtype, np.dtype) and dtype.kind in "iub"

    @property
    def path(self) -> str | None:
        """The file of the table, if it is one."""
        return self._source.path if isinstance(self._source, File) else None

    @property
    def inputs(self) -> tuple[InputFile, ...]:
        """The files that are read."""
        return (self._source.input,) if isinstance(self._source, File) else ()

    def declares_integers(self, name: str) -> bool:
        """Whether a column of floats is known to hold integers."""
        stated = self.facts(name).type
        return self._source.declares_integers(name) if stated is None else stated == "integer"

    def hides_n(self, by: Sequence[str], column: str, options: Mapping[str, Any], *, free: bool = False) -> bool:
        """Whether a release must be for one record added or removed: of private keys, or without missing records.

        `free` for means and quantiles, which leave these out for one record replaced, too.
        """
        drops = not free and options.get("missing", self.facts(column).missing) == "drop"
        return drops or (bool(by) and self.categories(by) is None)

    def parameters(
        self,
        column: str,
        x: Any,
        *,
        order: bool,
        besides: Mapping[str, Any],
        hint: str | None = None,
        clamps: bool = True,
    ) -> dict[str, Any]:
        """Return what the facts of a column say to a function; `order` for one that needs no bounds.

        Bounds or a grid among the parameters of the call take the place of those of the facts. If it `clamps` values to
        bounds, warn where missing cells count as the lower one and nobody said so: by the type of the column, always.
        """
        facts = self.facts(column)
        if clamps and is_within(facts, besides) and not says_missing(facts, besides) and may_be_missing(x):
            warn(of_cells_at_the_bound(column))
            facts = replace(facts, missing="lower")  # said: the function need not warn again
        if facts.is_text:
            raise TypeError(f"{column!r} is text, of which there are no numbers: count(by={column!r}) counts its keys")
        given: dict[str, Any] = {} if facts.missing is None else {"missing": facts.missing}
        if {"bounds", "grid"} & set(besides):
            return given
        whole = not containers.declares_integers(x) and self.declares_integers(column)
        grid = facts.points(whole=whole)
        if isinstance(facts.bounds, tuple):
            given |= {"bounds": facts.bounds} if grid is None else {"grid": grid}
        elif facts.bounds == "private" and not order and hint is None:
            given["bounds"] = "private"
        elif not order:
            private = ", not 'private'" if facts.bounds == "private" else ""
            raise TypeError(
                f"bounds of {column!r} are needed{private}: (lower, upper) in columns= or in a plan, or --bounds "
                f"{column}=LOWER,UPPER; {hint or _PRIVATE}"
            )
        elif grid is not None:
            given["grid"] = grid
        return given

    def _label(self, name: str) -> WantedColumn:
        return WantedColumn(name, text=self.facts(name).is_text is not False)

    def _get(self, wanted: list[WantedColumn]) -> list[Any]:
        """Return columns, of the records that are kept of each unit."""
        with self._lock:
            if self._unit and self._keep is None:
                unit = [self._label(name) for name in self._unit]
                self._load([*unit, *wanted])
                keep = self._kept([self._read[column] for column in unit])
                self._read, self._keep = {column: taken(x, keep) for column, x in self._read.items()}, keep
            self._load(wanted)
            return [self._read[column] for column in wanted]

    def once_per_key(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """Return which records are kept if a unit has at most one, at random, for each key of these columns."""
        unit = self._get([self._label(name) for name in self._unit])
        return self._kept(unit, keys=together([*self.labels(names).values()]), per_key=1)

    def _kept(self, unit: list[Any], **limits: Any) -> NDArray[np.bool_]:
        """Return which records are kept of each unit."""
        keep = np.zeros(len(column_of(unit[0])), np.bool_)
        limits |= {"per_unit": self._budget.per_unit or 1, "rng": self._rng}
        keep[bound_contributions(together(unit), np.arange(len(keep)), **limits)] = True
        return keep

    def _load(self, wanted: list[WantedColumn]) -> None:
        """Read columns that are not read yet; of a file, at first also all others that are declared."""
        if isinstance(self._source, File) and not self._read:
            wanted = [*wanted, *(WantedColumn(name, facts.is_text is True) for name, facts in self._facts.items())]
        missing = [column for column in dict.fromkeys(wanted) if column not in self._read]
        if not missing:
            return
        for column, found in zip(missing, self._source.read(missing), strict=True):
            if self._length not in (None, len(found)):
                raise TableError("the columns of a table must be equally long")
            self._length = len(found)
            self._read[column] = found if self._keep is None else taken(found, self._keep)


def _whole(numbers: NDArray[np.float64]) -> np.ma.MaskedArray[Any, Any]:
    """Return integers, masked where a number is missing or none."""
    with np.errstate(invalid="ignore"):
        is_whole = (numbers == np.floor(numbers)) & (np.abs(numbers) < 2**53)
        return np.ma.MaskedArray(np.where(is_whole, numbers, 0).astype(np.int64), ~is_whole)


def _cells(column: Any, predictor: Predictor) -> NDArray[Any]:
    """Return a column as numbers or, for categories that are text, as objects."""
    if not predictor.column.text:
        return containers.vector(predictor.name, column).astype(np.float64)
    cells = cells_of(column)
    out = np.empty(len(cells), object)
    out[:] = cells
    return out
