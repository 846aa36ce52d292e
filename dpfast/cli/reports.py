"""The command that releases a report."""

from __future__ import annotations

import argparse
import os
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from textwrap import wrap
from typing import Any

from dpfast.cli.keyed import as_in_schema
from dpfast.cli.output import UnfinishedError, released_to
from dpfast.cli.records import rng_of
from dpfast.core import checks
from dpfast.core.words import meant
from dpfast.ledger import Note
from dpfast.ledger.notes import noting
from dpfast.ledger.outputs import Output
from dpfast.reports import ReportPlan
from dpfast.reports.pages import FORMS, Document
from dpfast.reports.plans import METHODS, IncompleteReportError, keys_of_plans
from dpfast.statistics.named import named
from dpfast.tables import TableError
from dpfast.tables.format import PLAIN

_STDOUT = "-"
_IN_PLANS = ("epsilon", "delta", "neighbors", "unit", "bounds", "categories", "missing")


def write_report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Release what a plan declares, and write the report; a dry run touches no record."""
    rng, plan = rng_of(arguments), _plan(arguments)
    if arguments.file == "-":
        raise TableError("a report needs a file, not standard input: its header is read before")
    outputs = _outputs(arguments)
    names = " and ".join(output.path for output in outputs)
    if arguments.dry_run:
        foreseen = plan.dry_run(arguments.file, ledger=arguments.ledger)
        for output in outputs:
            with output.writing() as place:
                _write(foreseen, place, output)
        text = f"dry run in {names}  (no record was touched)" if outputs else str(foreseen)
        return {"statistic": "dry-run", **foreseen.to_dict(), "text": text}
    try:
        with noting(Note(purpose=arguments.purpose)):
            report = plan.run(arguments.file, ledger=arguments.ledger, rng=rng)
    except IncompleteReportError as error:
        raise UnfinishedError(str(error)) from None
    written = {"statistic": "report", **report.to_dict()}
    if not outputs:
        return {**written, "output": None, "text": report.to_markdown().rstrip()}
    for output in outputs:
        with released_to(output) as place:
            _write(report, place, output)
    made = len(report.releases)
    untold = f"; {report.untold} of the rows have no information" if report.untold else ""
    text = f"{made} release{'s' * (made != 1)} in {names}  ({report.privacy}{untold})"
    paths = [output.path for output in outputs]
    return {**written, "output": paths[0] if len(paths) == 1 else paths, "text": text}


def _outputs(arguments: argparse.Namespace) -> list[Output]:
    """Return the files of the report; none for standard output."""
    paths = arguments.output or [_STDOUT]
    if paths == [_STDOUT]:
        return []
    if _STDOUT in paths:
        raise ValueError("-o - is standard output, and must be the only one")
    for path in paths:
        checks.choice("the ending of -o", Path(path).suffix, FORMS)
    if len({os.path.realpath(path) for path in paths}) < len(paths):
        raise ValueError("-o must not name a file twice")
    inputs = [arguments.file, arguments.plan, arguments.ledger_file]
    return [Output(path, inputs, force=arguments.force) for path in paths]


def _write(document: Document, place: Path, output: Output) -> None:
    place.write_text(document.written(Path(output.path).suffix), encoding="utf-8")


def keys_in_help() -> str:
    """Return the keys of a plan, as the help shows them."""
    lines = ["keys of REPORT.toml, and of its releases by statistic:"]
    for name, found in keys_of_plans().items():
        lines += wrap(", ".join(found), 100, initial_indent=f"  {name:<18}", subsequent_indent=" " * 20)
    return "\n".join([*lines, "", "https://dpfast.readthedocs.io/en/latest/guides/report.html"])


_SHORT = [" ".join([name, *needed]) for name, needed in METHODS.items() if len(needed) < 2 and needed != ("family",)]
_RELEASE = re.compile(r"([\w-]+)(?: ([\d.,]+))?(?: of (.+?))?(?: by (.+))?$")
_REGRESSION = re.compile(r"(?:linear[ _-])?regression of (.+) on (.+)$")


def _plan(arguments: argparse.Namespace) -> ReportPlan:
    """Return the plan in a file, or that of ``--release``, whose releases have equal shares."""
    if (arguments.plan is None) == (not arguments.release):
        raise ValueError("give either REPORT.toml or --release, as in --release 'median of pay by region'")
    marks = {name: getattr(arguments, name) for name in ("delimiter", "encoding", "decimal", "thousands")}
    given = {name: mark for name, mark in marks.items() if mark != getattr(PLAIN, name)}
    given |= {"header": False} if arguments.no_header else {}
    if arguments.plan is not None:
        if given_twice := [name for name in _IN_PLANS if getattr(arguments, name)]:
            raise ValueError(f"--{given_twice[0]} is for --release: REPORT.toml declares it")
        plan = ReportPlan.read(arguments.plan)
        return replace(plan, format={**plan.format, **given})
    if arguments.epsilon is None and arguments.ledger is None:
        raise ValueError("--epsilon is needed, the budget of all releases together, or --ledger FILE")
    columns: dict[str, dict[str, Any]] = {}
    for fact in ("bounds", "categories", "missing"):
        for name, value in getattr(arguments, fact):
            given_keys = as_in_schema(arguments.file, name, value) if fact == "categories" else value
            columns.setdefault(name, {})[fact] = given_keys
    share = Fraction(1, len(arguments.release))
    return ReportPlan(
        epsilon=arguments.epsilon,
        delta=arguments.delta,
        neighbors=arguments.neighbors,
        unit=arguments.unit,
        columns=columns,
        format=given,
        releases=tuple(_release(words) | {"share": share} for words in arguments.release),
    )


def _release(words: str) -> dict[str, Any]:
    """Return the release in words such as "quantile 0.9 of pay by region"."""
    if fit := _REGRESSION.match(words):
        return {"statistic": "linear_regression", "label": fit[1], "features": re.split(", ?", fit[2])}
    found = _RELEASE.match(words)
    name = named(found[1]) if found else ""
    needed = METHODS.get(name)
    if found and needed is None and (other := meant(name, METHODS)):
        raise ValueError(f"--release {words!r}: did you mean {other}?")
    if name == "histogram" and found and found[2]:
        needed = ("bins",)
    if found is None or needed is None or len(needed) > 1 or bool(found[2]) != bool(needed):
        raise ValueError(
            f"--release must be STATISTIC of COLUMN, or STATISTIC of COLUMN by COLUMN, as in 'quantile 0.9 of pay by "
            f"region', not {words!r}; statistics are {', '.join(_SHORT)}, histogram bins, and regression of COLUMN on "
            "COLUMN,COLUMN; all else needs a plan"
        )
    if not found[3] and (name != "count" or not found[4]):
        other = f" or {name} by COLUMN" if name == "count" else ""
        raise ValueError(f"--release {words!r} needs a column: {name} of COLUMN{other}")
    entry: dict[str, Any] = {"statistic": name}
    if needed:
        numbers = [int(text) if text.isdecimal() else float(text) for text in found[2].split(",")]
        entry[needed[0]] = numbers if len(numbers) > 1 else numbers[0]
    if found[3]:
        entry["column"] = found[3]
    if found[4]:
        entry["by"] = found[4].split(",")
    return entry
