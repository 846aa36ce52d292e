"""The commands and their options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from dpfast.cli.options import (
    Parser,
    add_column,
    add_common,
    add_delta,
    add_explain,
    add_file,
    add_force,
    add_format,
    add_groups,
    add_interval,
    add_json,
    add_neighbors,
    add_purpose,
    bin_count,
    exact,
    named_bounds,
    named_list,
    named_number,
    named_policy,
    named_range,
    number,
    refuse_interval,
    whole,
)
from dpfast.cli.singles import AT_BOUND, DROP, SINGLE

_EXIT_CODES = """\
exit codes:
  0    released
  1    verify: the mechanism violates its guarantee
  2    bad arguments, file or ledger: nothing is released, one line on standard error
  3    the release could not be written, but its epsilon is spent
  4    over the budget of the ledger: nothing is released or charged
  130  interrupted
"""


def make_parser(only: str | None = None) -> Parser:
    """Return the parser of the command line, with the options of one command, or of all.

    The options of the others take time, because their choices are those of many modules.
    """
    parser = Parser(
        prog="dpfast",
        description="Differentially private statistics of the columns of a file.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    for name, command in _COMMANDS.items():
        words = command.words
        made: Parser = commands.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.")
        made.set_defaults(run=command.run, name=name)
        if only in (None, name):
            command.add(made)
    return parser


def command_in(words: list[str]) -> str | None:
    """Return the command among the words of a command line, the first that is no option; None if it is not known."""
    first = next((word for word in words if not word.startswith("-")), None)
    return first if first in _COMMANDS else None


class _Version(argparse.Action):
    """Print the version, which takes time to find."""

    def __call__(self, parser: argparse.ArgumentParser, *given: Any, **options: Any) -> None:
        from importlib.metadata import version

        parser.exit(message=f"dpfast {version('dpfast')}\n")


def _add_demo(parser: Parser) -> None:
    parser.add_argument("--rows", type=whole, default=1_000_000, help="people on the payroll (default 1,000,000)")
    parser.add_argument("--epsilon", type=exact, default=1.0, help="total budget (default 1)")
    add_common(parser)


def _add_single(name: str, parser: Parser) -> None:
    single = SINGLE[name]
    add_column(parser, bounded=single.bounded, findable=single.findable, missing=single.missing)
    if name == "trimmed-mean":
        parser.add_argument("--trim", type=number, default=0.1, help="fraction cut from each side (default 0.1)")
    add_delta(parser, "with smooth-sensitivity")
    parser.add_argument(
        "--method",
        default=single.method,
        help=f"{single.methods}, or auto, the one of less error by public numbers; default {single.method}",
    )
    add_groups(parser)
    if single.interval:
        add_interval(parser)
    else:
        refuse_interval(parser)
    add_neighbors(parser)
    add_explain(parser)
    add_common(parser)


def _add_count(parser: Parser) -> None:
    add_file(parser)
    parser.add_argument(
        "--within", type=number, nargs=2, metavar=("LOWER", "UPPER"), help="public: count only cells between them"
    )
    parser.add_argument("--missing", choices=("drop",), help="drop: do not count empty or non-numeric cells")
    add_delta(parser, "with --keys private")
    add_groups(parser)
    add_interval(parser)
    add_explain(parser)
    add_common(parser)
    parser.set_defaults(neighbors="add-remove")


def _add_quantiles(parser: Parser) -> None:
    add_column(parser, bounded=False, missing=DROP)
    parser.add_argument(
        "-q", type=number, nargs="+", action="extend", help="one or several, also as -q .1 -q .9; default .25 .5 .75"
    )
    add_groups(parser)
    add_interval(parser)
    add_delta(parser, "with --keys private")
    add_neighbors(parser)
    add_explain(parser)
    add_common(parser)


def _add_partitions(parser: Parser) -> None:
    add_file(parser, column=False)
    parser.add_argument("--column", nargs="+", required=True, metavar="C", help="one, or several for tuples of keys")
    add_delta(parser, "as is needed without --keys")
    parser.add_argument("--keys", metavar="FILE", help="the possible keys, public, one in each row of a CSV file")
    parser.add_argument("--contributions", type=whole, default=1, help="most records of one person (default 1)")
    add_neighbors(parser, default="add-remove")
    add_explain(parser)
    add_common(parser)


def _add_fit(parser: Parser) -> None:
    from dpfast.aggregate import COMBINE
    from dpfast.families.user import named

    add_file(parser)
    parser.add_argument("--family", required=True, choices=named(), help=f"{', '.join(named())}")
    parser.add_argument(
        "--bounds", type=named_range, nargs="+", required=True, metavar="NAME=LOWER,UPPER", help="public"
    )
    parser.add_argument(
        "--blocks", type=bin_count, default="auto", help="a number, or auto (default), from public numbers"
    )
    parser.add_argument("--combine", default="auto", choices=COMBINE, help="default auto")
    parser.add_argument("--no-bias-correction", action="store_true", help="do not correct the bias of block estimates")
    parser.add_argument("--shuffle", type=whole, metavar="SEED", help="public; for a file that is sorted or drifts")
    add_common(parser)


def _add_regression(parser: Parser) -> None:
    from dpfast.cli.regressions import MODELS
    from dpfast.regression.linear import METHODS

    add_file(parser, column=False)
    parser.add_argument("--features", nargs="+", required=True, metavar="C", help="columns of the rows")
    parser.add_argument("--label", required=True, metavar="C", help="column of the labels")
    parser.add_argument(
        "--type", choices=("number",), help="declares that columns are numbers, unless they have categories; for CSV"
    )
    parser.add_argument(
        "--categories",
        type=named_list,
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=A,B,...",
        help="public categories of features; each but the first has a coefficient",
    )
    parser.add_argument(
        "--label-values",
        nargs=2,
        metavar=("NEGATIVE", "POSITIVE"),
        help="public: the two labels of --model logistic, which needs them, such as no yes",
    )
    parser.add_argument("--model", choices=MODELS, default="linear", help="default linear")
    parser.add_argument(
        "--radius", type=number, required=True, help="public bound on the distance of a row of features from the center"
    )
    parser.add_argument(
        "--label-bound",
        type=number,
        help="public bound on the distance of a label from the label center; not for --model logistic; without it a "
        "linear model is fitted to blocks of records",
    )
    parser.add_argument("--center", type=number, nargs="+", default=[0.0], metavar="X", help="public; default 0")
    parser.add_argument("--label-center", type=number, default=0.0, help="public, for --model linear; default 0")
    parser.add_argument("--method", choices=METHODS, help="for --model linear; default auto, by public numbers")
    parser.add_argument("--k", type=number, help="Huber's corner, for --model huber")
    parser.add_argument("--no-intercept", action="store_true", help="fit without a constant")
    parser.add_argument(
        "--neighbors",
        choices=("replace-one", "add-remove"),
        help="add-remove keeps the number of records private; default replace-one, with --missing drop add-remove",
    )
    parser.add_argument(
        "--missing",
        choices=("drop", "half"),
        help="records with an empty or non-numeric cell: drop leaves them out, the default with --neighbors "
        "add-remove; half, for few of them, counts each as one at the centers, as is done else, with a warning",
    )
    add_delta(parser, "for Gaussian noise")
    add_common(parser)


def _add_histogram(parser: Parser) -> None:
    add_column(parser)
    parser.add_argument(
        "--bins", type=bin_count, default="auto", help="a number, or auto (default), from public numbers"
    )
    add_delta(parser, "for Gaussian noise where it is less")
    add_neighbors(parser)
    parser.add_argument("--plot", metavar="FILE", help="also plot it to this .png, .svg or .pdf file, with matplotlib")
    add_force(parser)
    add_common(parser)


def _add_synthesis(parser: Parser) -> None:
    from dpfast.densities.synthesis import METHODS

    add_column(parser, missing=AT_BOUND)
    parser.add_argument("-k", type=whole, required=True, help="number of records")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="CSV file to write, or - to print it")
    add_force(parser)
    parser.add_argument("--method", default="auto", choices=("auto", *METHODS), help="default auto")
    parser.add_argument(
        "--bins", type=bin_count, default="auto", help="a number, or auto (default), from public numbers"
    )
    add_common(parser)


def _add_report(parser: Parser) -> None:
    from dpfast.cli.reports import keys_in_help

    parser.epilog, parser.formatter_class = keys_in_help(), argparse.RawDescriptionHelpFormatter
    parser.add_argument("file", metavar="DATA", help="CSV, also compressed, or Parquet")
    parser.add_argument("plan", metavar="REPORT.toml", nargs="?", help="budget, columns, releases; or --release")
    parser.add_argument(
        "--release",
        action="append",
        default=[],
        metavar="WORDS",
        help="without a plan, one or several: 'median of pay by region', 'quantile 0.9 of pay', 'count by region'",
    )
    add_format(parser)
    parser.add_argument("--epsilon", type=exact, help="budget of all of them, in equal shares")
    add_delta(parser, "for private keys")
    parser.add_argument(
        "--neighbors", choices=("replace-one", "add-remove"), help="default replace-one; with --unit add-remove"
    )
    for option, kind, form, words in (
        ("--bounds", named_bounds, "NAME=LOWER,UPPER", "public bounds of columns, or NAME=private"),
        ("--categories", named_list, "NAME=A,B,...", "public keys of columns"),
        ("--missing", named_policy, "NAME=VALUE", "what missing cells count as: a number, lower, half or drop"),
    ):
        parser.add_argument(option, type=kind, nargs="+", action="extend", default=[], metavar=form, help=words)
    parser.add_argument(
        "--unit",
        type=named_number,
        metavar="NAME=K",
        help="the column that says whose record each is, and the most records of one: the guarantee is for persons",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        action="append",
        help=".html, .json, .csv or .md, several by -o for each; default -: Markdown, printed",
    )
    add_force(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="print charges and expected errors; no record is touched"
    )
    parser.add_argument("--ledger", metavar="FILE", help="the budget, if the plan has none; see dpfast ledger")
    add_purpose(parser)
    add_common(parser)


def _add_ledger(parser: Parser) -> None:
    from dpfast.ledger.journal import NOTED

    parser.add_argument("file", metavar="FILE", help="made if it does not exist and a budget is given")
    parser.add_argument("--epsilon", type=exact, help="budget; or give --rho or --mu")
    parser.add_argument("--delta", type=exact, help="default 0")
    parser.add_argument("--rho", type=exact, help="budget of zero-concentrated differential privacy")
    parser.add_argument("--mu", type=exact, help="budget of Gaussian differential privacy")
    parser.add_argument("--neighbors", choices=("replace-one", "add-remove"), help="default replace-one")
    parser.add_argument("--per-unit", type=whole, metavar="K", help="for one person with at most K records; add-remove")
    parser.add_argument("--composition", choices=("basic", "renyi"), help="default basic")
    parser.add_argument("--by", choices=NOTED, help="what is spent by what is noted of the releases, instead of each")
    add_json(parser)


def _add_verify(parser: Parser) -> None:
    from dpfast.cli.certificates import CERTIFIED

    parser.add_argument("mechanism", metavar="MECHANISM", choices=CERTIFIED, help=", ".join(CERTIFIED))
    parser.add_argument("--trim", type=number, default=0.1, help="for trimmed and Winsorized means (default 0.1)")
    parser.add_argument("-q", type=number, default=0.5, help="for quantile (default 0.5)")
    parser.add_argument("--epsilon", type=exact, default=1.0, help="of the mechanism (default 1)")
    add_delta(parser, "with smooth-sensitivity")
    parser.add_argument(
        "--method", help="inverse-sensitivity, smooth-sensitivity or global-sensitivity; or one of a local randomiser"
    )
    parser.add_argument(
        "--bounds", type=number, nargs=2, default=[0.0, 20.0], metavar=("LOWER", "UPPER"), help="default 0 20"
    )
    parser.add_argument("--step", type=number, default=1.0, help="a power of two (default 1)")
    parser.add_argument("--records", type=whole, default=3, help="records in each dataset (default 3)")
    parser.add_argument("--values", type=whole, default=4, help="distinct values of a record (default 4)")
    add_json(parser)


def _add_completion(parser: Parser) -> None:
    from dpfast.cli.completion import SHELLS

    parser.add_argument("shell", choices=SHELLS)


class _Command(NamedTuple):
    """A command: its words in the help, the function that runs it, and the one that adds its options."""

    words: str
    where: str
    add: Callable[[Parser], None]

    def run(self, arguments: argparse.Namespace) -> dict[str, Any]:
        """Import the function, and call it."""
        module, _, function = self.where.partition(":")
        found: dict[str, Any] = getattr(import_module(f"dpfast.cli.{module}"), function)(arguments)
        return found


def _commands() -> dict[str, _Command]:
    single = {
        name: _Command(f"release the {found.words} of a column", "numbers:release_one", partial(_add_single, name))
        for name, found in SINGLE.items()
    }
    return {
        "demo": _Command("make a payroll file and release its quartiles", "demonstration:demonstrate", _add_demo),
        **single,
        "count": _Command("release the number of records, which is private", "numbers:release_count", _add_count),
        "quantiles": _Command("release quantiles of a column together", "numbers:release_quantiles", _add_quantiles),
        "partitions": _Command(
            "release the keys that enough records have, with noisy counts", "keyed:release_partitions", _add_partitions
        ),
        "mle": _Command(
            "release parameters of a family of distributions, fitted to a column", "fits:release_fit", _add_fit
        ),
        "regress": _Command(
            "release a regression of a column on others", "regressions:release_regression", _add_regression
        ),
        "histogram": _Command(
            "release a histogram of a column of numbers (of text: count --group-by)",
            "densities:release_histogram",
            _add_histogram,
        ),
        "synthesize": _Command(
            "write synthetic records that resemble a column", "densities:write_synthetic", _add_synthesis
        ),
        "report": _Command(
            "release all that a plan declares, for one budget, as one report", "reports:write_report", _add_report
        ),
        "ledger": _Command(
            "make a budget for several commands, or show what is left of it", "budgets:show_ledger", _add_ledger
        ),
        "verify": _Command(
            "certify a mechanism on every small dataset; exit code 1 if broken", "certificates:verify", _add_verify
        ),
        "completion": _Command(
            "print the code that completes commands and options in a shell", "completion:completion", _add_completion
        ),
        "schema": _Command("print the JSON Schema of what --json prints", "schema:schema", lambda parser: None),
    }


_COMMANDS = _commands()
