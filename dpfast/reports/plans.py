"""Reports that a file declares: what to release from a table, for which part of the budget."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from decimal import Decimal
from inspect import signature
from pathlib import Path
from typing import Any

from dpfast.core.privacy import Privacy, in_short, stated
from dpfast.core.traps import about, presumed_numbers, trying
from dpfast.core.words import meant, of_arrays
from dpfast.errors import BudgetError
from dpfast.ledger import Ledger
from dpfast.ledger.outputs import InputFile
from dpfast.random import RandomSource
from dpfast.reports.facts import Facts
from dpfast.reports.notes import PUBLIC_GROUPS, PUBLIC_SIZES
from dpfast.reports.pages import Document, Page, Section, csv_page
from dpfast.reports.report import Report, TableRelease
from dpfast.reports.sources import File, Imagined, check_categories, source_of
from dpfast.reports.table import Table, unit_of
from dpfast.statistics import Count, Quantile
from dpfast.statistics.named import WITH_INTERVAL, named
from dpfast.tables import Format, TableError, WantedColumn

_ASSUMED = 10_000  # records of a dry run, unless the plan or the header of a file says how many
_SMALLEST, _IF_EQUAL = "; the smallest one has ", "; if all groups were equal, each would have "
_NOTHING = Imagined(0, {}, set(), ())  # a table whose records nobody reads
_EXACT = {"epsilon", "delta", "share"}
# The methods that a release may name, with the arguments that it must have besides its column.
METHODS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("median", "mean", "sum", "variance", "std", "iqr", "count", "density", "bounds"), ()),
    **dict.fromkeys(("partitions", "histogram"), ()),
    "quantile": ("q",),
    "trimmed_mean": ("trim",),
    "winsorized_mean": ("trim",),
    "huber": ("k",),
    "top_k": ("k",),
    "mle": ("family",),
    "linear_regression": ("features", "label"),
    "glm": ("features", "label"),
}
_ALONE = ("method", "distribution", "measure", "definition")  # parameters of numbers without an interval
_MULTIPLE = ("linear_regression", "glm")  # have features instead of a column


class IncompleteReportError(Exception):
    """Some releases of a report were made, and are spent, before another one failed.

    Attributes
    ----------
    report : Report
        Of the releases that were made.
    """

    def __init__(self, text: str, report: Report) -> None:
        super().__init__(text)
        self.report = report


@dataclass(frozen=True)
class ReportPlan:
    """What a report releases.

    Attributes
    ----------
    title : str
    epsilon, delta, neighbors
        The budget, for the ledger that is made if none is given; see `dpfast.Table`.
    unit, columns, format
        See `dpfast.Table`.
    records : int, optional
        The number of records that a dry run assumes, if it is public.
    releases : list of mapping
        Each with ``statistic``, the name of a method of `dpfast.Table`, and the arguments of that method.
    """

    title: str = "Report"
    epsilon: Any = None
    delta: Any = 0.0
    neighbors: str | None = None
    unit: Any = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    format: Mapping[str, Any] = field(default_factory=dict)
    records: int | None = None
    releases: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def read(cls, path: str) -> ReportPlan:
        """Read a plan from a TOML file, in which each ``[[release]]`` is one.

        Raises
        ------
        OSError
        ValueError, TypeError
            If it is no TOML, or has entries that mean nothing.
        """
        try:
            given = tomllib.loads(Path(path).read_text("utf-8"), parse_float=Decimal)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: {error}") from None
        found = {name: _plain(name, value) for name, value in given.items()}
        releases = found.pop("release", [])
        known = keys_of_plans()["plan"]
        if unknown := sorted(set(found) - set(known)):
            raise ValueError(f"{path} has no use for {unknown[0]!r}: it takes {', '.join(known)} and [[release]]")
        if not isinstance(releases, list) or not releases:
            raise ValueError(f"{path} needs at least one [[release]]")
        return cls(**found, releases=tuple(releases))

    def __post_init__(self) -> None:
        checked = tuple(_checked(release, number) for number, release in enumerate(self.releases, 1))
        object.__setattr__(self, "releases", checked)

    def ledger(self) -> Ledger:
        """Return a ledger of the budget of the plan."""
        return self._table(_NOTHING, None, None).ledger

    def run(self, data: Any, *, ledger: Ledger | None = None, rng: RandomSource = None) -> Report:
        """Release all of it, and return the report.

        A dry run comes before, so that nothing is released if an entry is invalid or the whole does not fit; and
        another one with the number of records, if it is public, of which a release may need more.

        Raises
        ------
        BudgetError
            If the budget does not suffice for all releases together.
        IncompleteReportError
            If a release fails after others are made, with the report of these.
        """
        with trying():
            foreseen = self.dry_run(data, ledger=ledger)
        foreseen.check(ledger)
        table = self._table(data, ledger, rng)
        table.records.load(foreseen.wanted)  # a column that cannot be read costs nothing
        if (n := table.records.public_n) not in (None, foreseen.n):
            with trying():
                self._imagined(data, ledger, n)
        try:
            for _ in _released(table, self.releases):
                pass
        except Exception as error:  # such as a budget that another process took meanwhile
            if not table.releases:
                raise
            made = f"{len(table.releases)} of {len(self.releases)} releases are made, and their epsilon is spent"
            raise IncompleteReportError(f"{error}: {made}", table.report(self.title)) from error
        return table.report(self.title)

    def dry_run(self, data: Any = None, *, ledger: Ledger | None = None) -> DryRun:
        """Return what the releases would cost and their expected errors, without touching a record.

        The releases are made from imagined records, of the types that the schema of a file declares, and as many as it
        declares if their number is public.
        """
        return self._imagined(data, ledger)

    def _imagined(self, data: Any, ledger: Ledger | None, known: int | None = None) -> DryRun:
        """Return the dry run; of the number of records, if it is known, without groups, whose sizes are not."""
        source = None if data is None else source_of(data, [*self.columns], Format(**self.format))
        made = self._table(_NOTHING, ledger, None)
        facts, public = made.columns, made.ledger.privacy.neighbors == "replace-one"
        declared = source.records() if isinstance(source, File) and public else None
        n = known or self.records or declared or _ASSUMED
        integers = {name for name in _named(self) if source is not None and source.declares_integers(name)}
        units, _ = unit_of(self.unit)
        texts: list[str] = []
        empty = None if ledger is None else _emptied(ledger)
        names = None
        with suppress(TableError):  # a dry run needs no file
            names = None if source is None else source.names()
        table = self._table(
            Imagined(n, facts, integers, units, names), empty, None, explain=known is None and texts.append
        )
        told: list[tuple[str, ...]] = []
        for _ in _released(table, self.releases, groups=known is None):
            told.append(tuple(text.replace(_SMALLEST, _IF_EQUAL) for text in texts))
            texts.clear()
        shown = {release.keys for release in table.releases if PUBLIC_GROUPS in release.note}
        for place, release in enumerate(table.releases):
            if release.keys in shown and release.title.startswith("count by "):
                told[place] += (PUBLIC_SIZES,)
        if source is not None:
            source.check(table.records.wanted)
            check_categories(source, facts)
        inputs = (source.input,) if isinstance(source, File) else ()
        says_n = self.records is not None or declared is not None
        budget = table.ledger.privacy
        shares = tuple(f" (share = {entry['share']})" if "share" in entry else "" for entry in self.releases)
        wanted = table.records.wanted
        stated_n = n if public else None
        return DryRun(self.title, table.releases, tuple(told), budget, stated_n, wanted, inputs, says_n, shares)

    def _table(self, data: Any, ledger: Ledger | None, rng: RandomSource, explain: Any = False) -> Table:
        budget: dict[str, Any] = {"ledger": ledger}
        if ledger is not None and (self.epsilon is not None or self.delta or self.neighbors):
            raise ValueError("the budget is that of the ledger: leave epsilon, delta and neighbors out of the plan")
        if ledger is None:
            if self.epsilon is None:
                raise ValueError("the plan needs epsilon, the budget of the report, or a ledger")
            budget = {"epsilon": self.epsilon, "delta": self.delta, "neighbors": self.neighbors}
        return Table(data, **budget, unit=self.unit, columns=self.columns, format=self.format, rng=rng, explain=explain)


@dataclass(frozen=True)
class DryRun(Document):
    """What the releases of a plan would cost, and the errors to expect; no record was touched.

    Attributes
    ----------
    title : str
    releases : tuple of TableRelease
        From imagined records.
    texts : tuple of tuples of str
        The explanations of each release.
    budget : Privacy
    n : int or None
        The number of imagined records; None if it is private.
    wanted : tuple of WantedColumn
        The columns that the releases read.
    inputs : tuple of InputFile
        The files that they would read, which `save` never replaces.
    known : bool
        Whether the plan or the file says how many records there are.
    shares : tuple of str
        The share of the budget that the plan gives each release, "" for an epsilon.
    """

    title: str
    releases: tuple[TableRelease, ...]
    texts: tuple[tuple[str, ...], ...]
    budget: Privacy
    n: int | None
    wanted: tuple[WantedColumn, ...]
    inputs: tuple[InputFile, ...] = ()
    known: bool = True
    shares: tuple[str, ...] = ()

    @property
    def _costs(self) -> list[str]:
        """What each release would be charged, with its share."""
        shares = self.shares or ("",) * len(self.releases)
        return [f"{made.privacy.short}{share}" for made, share in zip(self.releases, shares, strict=True)]

    @property
    def _imagined(self) -> str:
        """How many records there are, and how to say it."""
        if self.n is None:
            *some, most = (f"{number:,}" for number in presumed_numbers())
            return f"their number is private: errors are for {', '.join(some)} and {most} of them, in each group if any"
        ask = "" if self.known else "; records = 40_000 in a plan would say how many there are, if this is public"
        return f"{self.n:,} imagined records{ask}"

    @property
    def privacy(self) -> Privacy:
        """The guarantee of all releases together."""
        return Report(self.title, self.releases, self.budget).privacy

    def check(self, ledger: Ledger | None) -> None:
        """Raise a BudgetError if a ledger of epsilon has not enough left for all releases together.

        Other ledgers may add up to less than what `privacy` states.
        """
        if ledger is not None and ledger.sums_epsilons and not ledger.affords(self.privacy):
            raise BudgetError(f"the report of {self.privacy.short} does not fit: {in_short(ledger.remaining)} is left")

    def to_dict(self) -> dict[str, Any]:
        """Return the dry run as an object of JSON."""
        return {
            "title": self.title,
            "records": self.n,
            "privacy": stated(self.privacy),
            "budget": stated(self.budget),
            "releases": [
                {"title": release.title, "privacy": stated(release.privacy), "explanation": list(texts)}
                for release, texts in zip(self.releases, self.texts, strict=True)
            ],
        }

    def to_json(self) -> str:
        """Return the dry run as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    def to_csv(self) -> str:
        """Return what each release would cost, and its explanation, as CSV, a release in each line."""
        texts = [*map(" ".join, self.texts), None, None]  # of all together, and of the budget
        spending = Report(self.title, self.releases, self.budget).spending
        rows = [(*spent, text and " ".join(text.split())) for spent, text in zip(spending, texts, strict=True)]
        return csv_page(("release", "cost", "explanation"), rows)

    def _page(self) -> Page:
        """Return what HTML and Markdown show."""
        sections = [
            Section(release.title, " ".join([f"{cost}.", *" ".join(texts).split()]), {})
            for release, cost, texts in zip(self.releases, self._costs, self.texts, strict=True)
        ]
        summary = f"No record was touched; {self._imagined}."
        spending = Report(self.title, self.releases, self.budget).spending
        return Page(f"{self.title}: dry run", summary, sections, spending, "What would be spent")

    def __str__(self) -> str:
        lines = [f"{self.title}: dry run, no record was touched; {self._imagined}"]
        for release, cost, texts in zip(self.releases, self._costs, self.texts, strict=True):
            lines += ["", f"{release.title}: {cost}"]
            lines += [f"  {line}" for text in texts for line in text.splitlines()]
        return "\n".join([*lines, "", f"all together: {self.privacy.short}", f"budget: {self.budget.short}"])


def _emptied(ledger: Ledger) -> Ledger:
    """Return a ledger of the same budget without charges."""
    return Ledger.from_json(json.dumps({**json.loads(ledger.to_json()), "charges": []}))


_ELSEWHERE = ("explain", "grid", "progress", "self", "start", "workers")  # parameters that a plan has no use for
_OF_ALL = ("epsilon", "share", "delta")
_OF_ROWS = ("center", "radius")


def keys_of_plans() -> dict[str, tuple[str, ...]]:
    """Return the keys of a plan, those of its tables, those of all releases, and the others by statistic."""
    plan, facts, format = (tuple(part.name for part in fields(made)) for made in (ReportPlan, Facts, Format))
    return {
        "plan": plan[:-1],  # without the releases
        "[columns.NAME]": facts,
        "[format]": format,
        "[[release]]": ("statistic", *_OF_ALL),
        **{name: _keys_of(name) for name in METHODS},
    }


def _keys_of(name: str) -> tuple[str, ...]:
    """Return the keys of a release of a statistic, first those that it needs."""
    left_out = {*_ELSEWHERE, *_OF_ALL, *(() if name in _MULTIPLE else _OF_ROWS)}
    own = [key for key in signature(getattr(Table, name)).parameters if key not in left_out]
    needed = [*([] if name in (*_MULTIPLE, "count") else ["column"]), *METHODS[name]]
    of_interval = ["by", "interval", "others", "per_key"] if name in WITH_INTERVAL else []
    return tuple(dict.fromkeys([*needed, *own, *of_interval]))


def _released(table: Table, releases: Sequence[Mapping[str, Any]], *, groups: bool = True) -> Iterator[None]:
    """Make one release after another, and yield after each; without `groups` those of all records only."""
    for number, release in enumerate(releases, 1):
        if "by" in release and not groups:
            continue
        place = f"release {number}, {release['statistic']}"
        try:
            with about(place):
                release_entry(table, dict(release))
        except (TypeError, ValueError, BudgetError, TableError) as error:
            raise type(error)(f"{place}: {error}") from None
        yield


def release_entry(table: Table, entry: dict[str, Any]) -> None:
    """Call the method of a table that an entry names."""
    name = entry.pop("statistic")
    default = name in WITH_INTERVAL and not any(key in entry for key in _ALONE)
    default = default and not isinstance(entry.get("q"), list) and "column" in entry
    default = default and not _finds_bounds(table, name, entry)
    wanted = entry.pop("interval", default)
    if wanted is False:
        first = [] if name in (*_MULTIPLE, "count") else [entry.pop("column", None)]
        getattr(table, name)(*first, *(entry.pop(part) for part in METHODS[name]), **entry)
        return
    statistic: Any = Quantile(entry.pop("q")) if name == "quantile" else name
    if name == "count" and "within" in entry:
        statistic = Count(tuple(entry.pop("within")))
    confidence = {} if wanted is True else {"confidence": float(wanted)}
    table.interval(statistic, entry.pop("column"), **confidence, **entry)


def _finds_bounds(table: Table, name: str, entry: Mapping[str, Any]) -> bool:
    """Whether a release finds bounds by itself, which has no interval."""
    column, known = entry["column"], None
    if isinstance(column, str) and name not in ("median", "quantile", "count"):  # which need none
        known = table.records.facts(column).bounds
    return bool(entry.get("bounds", known) == "private")


def _checked(release: Any, number: int) -> dict[str, Any]:
    """Return an entry with the name of its method; reject one without a statistic, or without what its method needs."""
    name = named(str(release.get("statistic"))) if isinstance(release, Mapping) else None
    if name not in METHODS:
        if name and (function := of_arrays(name)) is not None:
            raise ValueError(f"release {number}: no plan has {name}: {function}")
        other = meant(name, METHODS) if name else None
        hint = f": did you mean {other!r}? it is" if other else ":"
        raise ValueError(f"release {number} needs a statistic{hint} one of {', '.join(METHODS)}")
    needed = [*METHODS[name], *([] if name in (*_MULTIPLE, "count") else ["column"])]
    if missing := [part for part in needed if part not in release]:
        raise ValueError(f"release {number}, {name}, needs {missing[0]!r}")
    if release.get("interval", False) is not False and (hint := _without_interval(name, release)):
        raise ValueError(f"release {number}, {name}, has no interval: {hint}")
    return {**release, "statistic": name}


def _without_interval(name: str, release: Mapping[str, Any]) -> str:
    """Return what to do instead of an interval where a release has none."""
    if name not in WITH_INTERVAL:
        return f"leave out interval, which is for {', '.join(WITH_INTERVAL)}"
    if alone := [key for key in _ALONE if key in release]:
        return f"{alone[0]!r} is for the number alone, with interval = false"
    if isinstance(release.get("q"), list):
        return (
            "several quantiles are released together, with interval = false; each in a [[release]] of its own has one"
        )
    return ""


def _named(plan: ReportPlan) -> Iterator[str]:
    """Yield the names of the columns that releases read as numbers."""
    for release in plan.releases:
        if isinstance(release.get("column"), str) and release["statistic"] not in ("partitions", "top_k"):
            yield release["column"]


def _plain(name: str, value: Any) -> Any:
    """Return decimals of TOML as floats, except of amounts of privacy, which are exact."""
    if isinstance(value, dict):
        return {key: _plain(key, part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(name, part) for part in value]
    return float(value) if isinstance(value, Decimal) and name not in _EXACT else value
