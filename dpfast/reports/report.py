"""Reports: what was released from a table, what it cost, and files of both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpfast.core.privacy import Privacy, PrivacyProfile, stated, total_up
from dpfast.core.tabular import Tabular, finite
from dpfast.densities import Histogram
from dpfast.densities.cells import is_whole
from dpfast.groups.keyed import RELEASE, KeyedReleases
from dpfast.ledger.outputs import InputFile
from dpfast.reports.notes import FEW, PUBLIC_GROUPS
from dpfast.reports.pages import Document, Page, Section, csv_page

NOT_PRIVATE = "made with a given generator: reproducible, hence NOT private"
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
    qs : tuple of float
        The levels of several quantiles.
    keys : tuple of str
        The columns of keys, of groups.
    note : str
        What a reader must know: public bounds, what missing cells count as, whose groups are public.
    """

    title: str
    result: Any
    profiles: tuple[PrivacyProfile, ...]
    qs: tuple[float, ...] = ()
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
            named = {"value" if name == RELEASE else name: cells for name, cells in found.items()}
            found = {name: cells for name, cells in named.items() if name not in _LEFT_OUT or name in self.keys}
            return {**found, **{name: cells for name, cells in self._of_groups.items() if name not in found}}
        if isinstance(self.result, (list, tuple, np.ndarray)):
            values = {"value": np.asarray(self.result).reshape(-1).tolist()}
            return {"q": list(self.qs), **values} if self.qs else values
        return {"value": [self.result]}

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

    def to_dict(self) -> dict[str, Any]:
        """Return the release with its guarantee as an object of JSON."""
        return {
            "title": self.title,
            "privacy": stated(self.privacy),
            "note": self.note,
            "columns": finite(self.columns),
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
    >>> table = dpf.Table({"age": [31, 45, 27, 62] * 100}, epsilon=2, columns={"age": {"bounds": (0, 120)}})
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
        """Return the numbers as CSV, one in each line: the release, the row, the column and the value."""
        numbers = [
            (release.title, i, name, cell)
            for release in self.releases
            for name, cells in release.columns.items()
            for i, cell in enumerate(cells)
        ]
        return csv_page([*numbers, ("guarantee", 0, "text", self.guarantee)])

    def _page(self) -> Page:
        """Return what HTML and Markdown show."""
        return Page(self.title, self.guarantee, list(self._sections()), self.spending, "What was spent")

    def _sections(self) -> Iterator[Section]:
        for release in self.releases:
            cells = {name: list(map(str, x)) if name in release.keys else x for name, x in release.columns.items()}
            few = [] if FEW in release.keys else cells.pop(FEW, [])
            for i in np.flatnonzero(few):
                cells[release.keys[-1]][i] += f" ({FEW})"
            whole = isinstance(release.result, Histogram) and is_whole(release.result.cells.grids[0])
            yield Section(release.title, f"{release.privacy.short}. {release.note}".removesuffix(" "), cells, whole)

    def _repr_html_(self) -> str:
        return self.to_html()

    def __repr__(self) -> str:
        return self.to_markdown()
