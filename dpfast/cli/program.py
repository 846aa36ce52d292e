"""One run of a command, and the exit codes."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from dpfast.cli.commands import command_in, make_parser
from dpfast.cli.completion import complete, is_completing
from dpfast.cli.messages import in_options
from dpfast.cli.output import UnfinishedError, show, telling, warn
from dpfast.errors import BudgetError, EntropyError

_NOT_PRIVATE = "a seed makes this reproducible, hence NOT private: for tests only"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    try:
        words = sys.argv[1:] if argv is None else list(argv)
        parser = make_parser(None if is_completing() else command_in(words) or "")
        complete(parser)
        arguments = parser.parse_args(words)
        with telling(vars(arguments)):
            return _run(arguments)
    except UnfinishedError as error:
        warn(f"dpfast: error: {error}")
        return 3
    except KeyboardInterrupt:
        warn("dpfast: interrupted: if a release was made, it is lost and its epsilon is spent")
        return 130


def _run(arguments: argparse.Namespace) -> int:
    try:
        if sys.stdout is None:
            raise OSError("standard output is closed: nothing is released")
        path = arguments.ledger_file = getattr(arguments, "ledger", None)
        arguments.ledger = None if path is None else _ledger(path)
        with nullcontext([]) if path is None else arguments.ledger.receipt() as charges:
            report: dict[str, Any] = arguments.run(arguments)
        lines, aside = [report.pop("text")], report.pop("aside", False)
        if "reading" in report:
            lines.append(f"({report['reading']})")
        if path and arguments.ledger:
            from dpfast.cli.budgets import budget_report, charged

            lines.append(f"({charged(charges, arguments.ledger, report.get('neighbors'))} in {path})")
            report.update(budget_report(path, arguments.ledger))
    except BudgetError as error:
        warn(f"dpfast: error: {error}: nothing is released")
        return 4
    except _expected() as error:
        warn(f"dpfast: error: {in_options(_message(error), vars(arguments))}")
        return 2
    if (
        getattr(arguments, "seed", None) is not None and "NOT private" not in lines[0]
    ):  # as a printed report says itself
        lines.append(f"({_NOT_PRIVATE})")
    if aside:  # standard output has what the command wrote
        warn("\n".join(lines))
        return 0
    text = json.dumps(report) if getattr(arguments, "json", False) else "\n".join(lines)
    show(text + "\n", spent=bool({"reading", "guarantee"} & set(report)))
    return 0 if report.get("holds", True) else 1


def _ledger(path: str) -> Any:
    from dpfast.cli.budgets import open_ledger

    return open_ledger(path)


def _expected() -> tuple[type[Exception], ...]:
    """Return the errors of arguments and files, for which nothing is released."""
    from dpfast.tables import TableError

    return TypeError, ValueError, OSError, TableError, MemoryError, EntropyError


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.strerror}: {error.filename}"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
