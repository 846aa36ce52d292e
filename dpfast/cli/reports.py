"""The command that releases a report."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from dpfast.cli.files import Output
from dpfast.cli.records import rng_of
from dpfast.core import checks
from dpfast.reports import ReportPlan
from dpfast.reports.report import FORMS
from dpfast.tables import TableError

_STDOUT = "-"


def write_report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Release what a plan declares, and write the report; a dry run touches no record."""
    rng, plan = rng_of(arguments), ReportPlan.read(arguments.plan)
    if arguments.file == "-":
        raise TableError("a report needs a file, not standard input: its header is read before")
    if arguments.dry_run:
        foreseen = plan.dry_run(arguments.file, ledger=arguments.ledger)
        return {"statistic": "dry-run", **foreseen.to_dict(), "text": str(foreseen)}
    to_file = arguments.output != _STDOUT
    if to_file:
        checks.choice("the ending of -o", Path(arguments.output).suffix, FORMS)
        inputs = [arguments.file, arguments.plan, arguments.ledger_file]
        output = Output(arguments.output, inputs, force=arguments.force)
    report = plan.run(arguments.file, ledger=arguments.ledger, rng=rng)
    written = {"statistic": "report", **report.to_dict()}
    if not to_file:
        return {**written, "output": None, "text": report.to_markdown().rstrip()}
    with output.writing() as place:
        Path(place).write_text(report.written(Path(arguments.output).suffix), encoding="utf-8")
    text = f"{len(report.releases)} releases in {arguments.output}  ({report.privacy})"
    return {**written, "output": arguments.output, "text": text}
