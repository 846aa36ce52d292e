"""Reports: what was released from a table, what it cost, and files of both."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from dpfast.core.privacy import Privacy, PrivacyProfile, stated, total_up
from dpfast.core.tabular import Tabular, finite
from dpfast.densities import Histogram
from dpfast.densities.cells import is_whole
from dpfast.groups.keyed import RELEASE, KeyedReleases
from dpfast.ledger.outputs import InputFile
from dpfast.mechanisms import Estimate
from dpfast.mechanisms.released import or_none
from dpfast.reports.notes import FEW, GENERAL, PUBLIC_GROUPS
from dpfast.reports.pages import Document, Page, Section, csv_page

NOT_PRIVATE = "made with a given generator: reproducible, hence NOT private"
_NUMBERS = {"value", "low", "high"}
HEADINGS = ("release", "group", "value", "low", "high", "standard_error", "records", "few")
_BESIDE = ("low", "high", "error", "count", FEW)  # the columns of the last ones
_NUMBERS_OF_RESULTS = ("value", RELEASE, "estimate", "density", "count")
_SHAPES = ("share", "cdf", "noise")  # of histograms and densities, which JSON has
_LEFT_OUT = ("weight", "confidence", "at_bound")  # of histograms, which have a share; of estimates


@dataclass(frozen=True)
class TableRelease:
    """A release from a table.

    Attributes
    ----------
    title : str
        What it is.
    result : object
        As the function returned it.
    profiles : tuple of PrivacyProfile
        What the ledger was charged.
    rows : mapping of str to tuple
        What several numbers are, by what it is called: the levels of quantiles, the parameters of a family.
    keys : tuple of str
        The columns of keys, of groups.
    note : str
        What a reader must know: public bounds, what missing cells count as, whose groups are public.
    """

    title: str
    result: Any
    profiles: tuple[PrivacyProfile, ...]
    rows: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    note: str = ""

    @property
    def privacy(self) -> Privacy:
        """The guarantee of this release alone."""
        return total_up(self.profiles)

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        """The numbers of the result, as lists by the names of their columns."""
        if isinstance(self.result, Tabular):
            found = self.result.to_columns()
            own = "value" in self.keys
            named = {name if own or name != RELEASE else "value": cells for name, cells in found.items()}
            found = {name: cells for name, cells in named.items() if name not in _LEFT_OUT or name in self.keys}
            if "value" in found and not own:
                found["value"] = [None if hidden else x for x, hidden in zip(found["value"], self._hidden, strict=True)]
            found |= {name: cells for name, cells in self._of_groups.items() if name not in found}
            if (
                isinstance(self.result, KeyedReleases)
                and self.result.has_noise_intervals
                and not _NUMBERS & {*self.keys}
            ):
                found["value"] = np.clip(found["value"], found["low"], found["high"]).tolist()
            return found
        if isinstance(self.result, (list, tuple, np.ndarray)):
            values = {"value": np.asarray(self.result).reshape(-1).tolist()}
            return {**{name: list(cells) for name, cells in self.rows.items()}, **values}
        return {"value": [self.result]}

    @property
    def untold(self) -> int:
        """The number of estimates that tell nothing, by their released intervals."""
        return sum(self._hidden)

    @property
    def _hidden(self) -> Iterator[bool]:
        """Whether each value tells nothing: its interval is all of its public range, in which it may be anywhere."""
        releases = self.result.values() if isinstance(self.result, Mapping) else [self.result]
        for each in releases:
            known = isinstance(each, Estimate) and each.bounds is not None
            yield known and each.low <= each.bounds[0] and each.high >= each.bounds[1]

    @property
    def _of_groups(self) -> dict[str, list[Any]]:
        """The ends of what noise can have done, where it is known, and which groups have few records."""
        more: dict[str, list[Any]] = {}
        if not isinstance(self.result, KeyedReleases):
            return more
        if self.result.has_noise_intervals:
            more |= zip(("low", "high"), self.result.interval().T.tolist(), strict=True)
        few = self.result.few
        return more if few is None else {**more, FEW: few.tolist()}

    @property
    def _bounded(self) -> dict[str, list[Any]]:
        """The columns, with None for an end of an interval that has no bound."""
        ends = {name: list(map(or_none, self.columns[name])) for name in ("low", "high") if name in self.columns}
        return {**self.columns, **{name: cells for name, cells in ends.items() if name not in self.keys}}

    def table(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a table of all numbers: `HEADINGS` says what is in them, None for what is not known."""
        columns = self._bounded
        # By their usual names, which end in "_" if a column of keys has the name.
        usual = {name.rstrip("_"): cells for name, cells in columns.items() if name not in self.keys}
        numbers = [name for name in usual if name.startswith("q=")]
        numbers = numbers or [next(name for name in (*_NUMBERS_OF_RESULTS, *usual) if name in usual)]
        beside = [usual.get(name, []) if name not in numbers else [] for name in _BESIDE]
        told = {name for name in usual if name not in (*numbers, *_BESIDE, *_SHAPES)}
        named = [(name, cells) for name, cells in columns.items() if name in self.keys or name.rstrip("_") in told]
        joint = " to " if isinstance(self.result, Histogram) else ", "
        for row in range(len(usual[numbers[0]])):
            group = [_label(name, cells[row]) for name, cells in named]
            more = [cells[row] if cells else None for cells in beside]
            for number in numbers:
                parts = group if len(numbers) == 1 else [*group, number]
                yield self.title, joint.join(parts), usual[number][row], *more

    def to_dict(self) -> dict[str, Any]:
        """Return the release with its guarantee as an object of JSON."""
        return {
            "title": self.title,
            "privacy": stated(self.privacy),
            "note": self.note,
            "columns": finite(self._bounded),
        }


@dataclass(frozen=True, repr=False)
class Report(Document):
    """What was released from a table, with the guarantee of all releases together. Everything in it is released.

    Attributes
    ----------
    title : str
    releases : tuple of TableRelease
    budget : Privacy
        That of the ledger.
    private : bool
        False if a given generator made the releases reproducible.
    inputs : tuple of InputFile
        The files that the releases read, which `save` never replaces.

    Examples
    --------
    >>> import dpfast as dpf
    >>> columns = {"age": {"bounds": (0, 120), "missing": "lower"}}
    >>> table = dpf.Table({"age": [31, 45, 27, 62] * 100}, epsilon=2, columns=columns)
    >>> mean = table.mean("age", share=0.5)
    >>> report = table.report("Ages")
    >>> print(report.to_markdown().splitlines()[0])
    # Ages
    >>> report.privacy.epsilon
    1.0
    """

    title: str
    releases: tuple[TableRelease, ...]
    budget: Privacy
    private: bool = True
    inputs: tuple[InputFile, ...] = ()

    @property
    def privacy(self) -> Privacy:
        """The guarantee of all releases of the report together."""
        profiles = [profile for release in self.releases for profile in release.profiles]
        nothing = Privacy(0.0, neighbors=self.budget.neighbors, per_unit=self.budget.per_unit)
        return total_up(profiles) if profiles else nothing

    @property
    def guarantee(self) -> str:
        """The guarantee in a sentence."""
        sentence = f"All numbers of this report together: {self.privacy}."
        shown = [name for release in self.releases if PUBLIC_GROUPS in release.note for name in release.keys]
        if shown:
            sentence += f" Taken as public: which records are in which group of {', '.join(dict.fromkeys(shown))}."
        return sentence if self.private else f"{sentence} But they are {NOT_PRIVATE}."

    @property
    def untold(self) -> int:
        """The number of estimates that tell nothing, by their released intervals."""
        return sum(release.untold for release in self.releases)

    @property
    def spending(self) -> list[tuple[str, str]]:
        """What each release cost, all together, and the budget, in short."""
        rows = [(release.title, release.privacy.short) for release in self.releases]
        return [*rows, ("all together", self.privacy.short), ("budget", self.budget.short)]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as an object of JSON."""
        return {
            "title": self.title,
            "guarantee": self.guarantee,
            "private": self.private,
            "privacy": stated(self.privacy),
            "budget": stated(self.budget),
            "releases": [release.to_dict() for release in self.releases],
        }

    def to_json(self) -> str:
        """Return the report as JSON; null for NaN."""
        return json.dumps(self.to_dict(), indent=1)

    def to_csv(self) -> str:
        """Return a table of all numbers as CSV, each with its interval in a line, and the guarantee in the last one.

        Its columns are those of a spreadsheet: release, group, value, low, high, standard_error, records, few. A cell
        is empty where nothing is known.
        """
        rows = [row for release in self.releases for row in release.table()]
        return csv_page(HEADINGS, [*rows, ("guarantee", self.guarantee, *[None] * (len(HEADINGS) - 2))])

    def _page(self) -> Page:
        """Return what HTML and Markdown show."""
        return Page(
            self.title, self.guarantee, list(self._sections()), self.spending, "What was spent", self._common_notes
        )

    @property
    def _common_notes(self) -> list[str]:
        """The sentences of several notes, which pages say once."""
        return [text for text in GENERAL if sum(text in release.note for release in self.releases) > 1]

    def _sections(self) -> Iterator[Section]:
        for release in self.releases:
            cells = {name: list(map(str, x)) if name in release.keys else x for name, x in release.columns.items()}
            if release.title.startswith("count by ") and "count" not in release.keys:
                cells.pop("count", None)  # that of the selection of private keys, beside the release
            few = [] if FEW in release.keys else cells.pop(FEW, [])
            for i in np.flatnonzero(few):
                cells[release.keys[-1]][i] += f" ({FEW})"
            whole = isinstance(release.result, Histogram) and is_whole(release.result.cells.grids[0])
            note = release.note
            for text in self._common_notes:
                note = note.replace(text, "")
            yield Section(release.title, " ".join(f"{release.privacy.short}. {note}".split()), cells, whole)

    def _repr_html_(self) -> str:
        return self.to_html()

    def __repr__(self) -> str:
        return self.to_markdown()


def _label(name: str, cell: Any) -> str:
    """Return what a number is of, as text: the level of a quantile with its name, the end of a bin with six digits."""
    text = f"{cell:.6g}" if isinstance(cell, float) else str(cell)
    return f"q={text}" if name == "q" else text
