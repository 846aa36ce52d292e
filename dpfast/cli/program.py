"""The commands and their options, and one run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from dpfast.aggregate import COMBINE
from dpfast.cli.certificates import CERTIFIED, LOCAL, verify
from dpfast.cli.demonstration import demonstrate
from dpfast.cli.densities import release_histogram, write_synthetic
from dpfast.cli.numbers import SINGLE, release_fit, release_one, release_quantiles
from dpfast.cli.options import (
    Parser,
    add_column,
    add_common,
    add_file,
    add_interval,
    add_neighbors,
    bin_count,
    exact,
    named_range,
    number,
    whole,
)
from dpfast.cli.output import UnwrittenError, show, warn
from dpfast.densities.synthesis import METHODS
from dpfast.errors import EntropyError
from dpfast.families.user import named
from dpfast.tables import TableError

_NOT_PRIVATE = "a seed makes this reproducible, hence NOT private: for tests only"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    try:
        return _run(_parser().parse_args(argv))
    except UnwrittenError as error:
        warn(f"dpfast: error: {error}")
        return 3
    except KeyboardInterrupt:
        warn("dpfast: interrupted: if a release was made, it is lost and its epsilon is spent")
        return 130


def _run(arguments: argparse.Namespace) -> int:
    try:
        if sys.stdout is None:
            raise TableError("standard output is closed: nothing is released")
        report: dict[str, Any] = arguments.run(arguments)
    except (TypeError, ValueError, OSError, TableError, MemoryError, EntropyError) as error:
        warn(f"dpfast: error: {getattr(error, 'strerror', None) or str(error) or type(error).__name__}")
        return 2
    if getattr(arguments, "seed", None) is not None:
        warn(f"dpfast: {_NOT_PRIVATE}")
    text = report.pop("text") + (f"\n({report['reading']})" if "reading" in report else "")
    show((json.dumps(report) if arguments.json else text) + "\n", spent="reading" in report)
    return 0 if report.get("holds", True) else 1


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="dpfast", description="Differentially private statistics of one column of a file.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)

    demo = commands.add_parser("demo", help="make a payroll file and release its quartiles")
    demo.add_argument("--rows", type=whole, default=1_000_000, help="people on the payroll (default 1,000,000)")
    demo.add_argument("--epsilon", type=exact, default=1.0, help="total budget (default 1)")
    add_common(demo)
    demo.set_defaults(run=demonstrate)

    for name, (words, make, method) in SINGLE.items():
        one = commands.add_parser(name, help=f"release the {words} of a column")
        add_column(one, bounded=name not in ("median", "iqr"))
        if name == "trimmed-mean":
            one.add_argument("--trim", type=number, default=0.1, help="fraction cut from each side (default 0.1)")
        one.add_argument("--delta", type=exact, default=0.0, help="0 (default), or more with smooth-sensitivity")
        one.add_argument("--method", default=method, help=f"default {method}")
        if name in ("median", "mean"):
            add_interval(one)
        add_neighbors(one)
        add_common(one)
        one.set_defaults(run=release_one, name=name, make=make)

    several = commands.add_parser("quantiles", help="release quantiles of a column together")
    add_column(several, bounded=False)
    several.add_argument("-q", type=number, nargs="+", default=[0.25, 0.5, 0.75], help="default 0.25 0.5 0.75")
    add_interval(several)
    add_common(several)
    several.set_defaults(run=release_quantiles)

    fit = commands.add_parser("mle", help="release parameters of a family of distributions, fitted to a column")
    add_file(fit)
    fit.add_argument("--family", required=True, choices=named(), help=f"{', '.join(named())}")
    fit.add_argument("--bounds", type=named_range, nargs="+", required=True, metavar="NAME=LOWER,UPPER", help="public")
    fit.add_argument(
        "--blocks", type=bin_count, default="auto", help="a number, or auto (default), from public numbers"
    )
    fit.add_argument("--combine", default="auto", choices=COMBINE, help="default auto")
    fit.add_argument("--no-bias-correction", action="store_true", help="do not correct the bias of block estimates")
    fit.add_argument("--shuffle", type=whole, metavar="SEED", help="public; for a file that is sorted or drifts")
    add_common(fit)
    fit.set_defaults(run=release_fit)

    bars = commands.add_parser("histogram", help="release a histogram of a column")
    add_column(bars)
    bars.add_argument("--bins", type=bin_count, default="auto", help="a number, or auto (default), from public numbers")
    bars.add_argument(
        "--delta", type=exact, default=0.0, help="0 (default), or more for Gaussian noise where it is less"
    )
    add_neighbors(bars)
    bars.add_argument("--plot", metavar="FILE", help="also plot it to this .png, .svg or .pdf file, with matplotlib")
    add_common(bars)
    bars.set_defaults(run=release_histogram)

    twins = commands.add_parser("synthesize", help="write synthetic records that resemble a column")
    add_column(twins)
    twins.add_argument("-k", type=whole, required=True, help="number of records")
    twins.add_argument("-o", "--output", metavar="FILE", required=True, help="CSV file to write")
    twins.add_argument("--method", default="perturbed", choices=METHODS, help="default perturbed")
    twins.add_argument(
        "--bins", type=bin_count, default="auto", help="a number, or auto (default), from public numbers"
    )
    add_common(twins)
    twins.set_defaults(run=write_synthetic)

    check = commands.add_parser("verify", help="certify a mechanism on every small dataset; exit code 1 if broken")
    names = [*CERTIFIED, *LOCAL]
    check.add_argument("mechanism", metavar="MECHANISM", choices=names, help=", ".join(names))
    check.add_argument("--trim", type=number, default=0.1, help="for trimmed and Winsorized means (default 0.1)")
    check.add_argument("-q", type=number, default=0.5, help="for quantile (default 0.5)")
    check.add_argument("--epsilon", type=exact, default=1.0)
    check.add_argument("--delta", type=exact, default=0.0, help="0 (default), or more with smooth-sensitivity")
    check.add_argument(
        "--method", help="inverse-sensitivity, smooth-sensitivity or global-sensitivity; or one of a local randomiser"
    )
    check.add_argument("--bounds", type=number, nargs=2, default=[0.0, 20.0], metavar=("LOWER", "UPPER"))
    check.add_argument("--step", type=number, default=1.0, help="a power of two")
    check.add_argument("--records", type=whole, default=3, help="records in each dataset (default 3)")
    check.add_argument("--values", type=whole, default=4, help="distinct values of a record (default 4)")
    check.add_argument("--json", action="store_true", help="print JSON")
    check.set_defaults(run=verify)
    return parser
