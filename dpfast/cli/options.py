"""The options of the commands."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any, NoReturn

from dpfast.cli.output import show, warn
from dpfast.cli.singles import LOWER, SINGLE
from dpfast.core import checks
from dpfast.core.words import meant

_PRIVATE_BOUNDS = "--private-bounds"
_TYPES = ("number", "integer")
_FILES = "CSV (also .gz, .bz2, .xz, .zip, .zst), Parquet with pyarrow, or - for standard input"


class Parser(argparse.ArgumentParser):
    """An argument parser with one-line errors that reads -1e6 as a number, not as an option."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._negative_number_matcher = re.compile(r"-(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$", re.IGNORECASE)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; ``--bounds private`` has another number of values than a pair, and so is an option of its own."""
        words = list(sys.argv[1:] if args is None else args)
        if _PRIVATE_BOUNDS in self._option_string_actions:
            while ("--bounds", "private") in (pairs := [*pairwise(words)]):
                place = pairs.index(("--bounds", "private"))
                words[place : place + 2] = [_PRIVATE_BOUNDS]
        return super().parse_known_args(words, namespace)

    def error(self, message: str) -> NoReturn:
        if found := re.match(r"argument COMMAND: invalid choice: '(.+?)' \(choose from (.*)\)", message):
            commands = re.findall(r"[\w-]+", found[2])
            other = meant(found[1], commands)
            hint = f"did you mean {other}? " if other else _in_report(found[1])
            message = f"no command {found[1]!r}: {hint}{', '.join(commands)}"
        warn(f"{self.prog}: error: {message}")
        raise SystemExit(2)

    def _print_message(self, message: str, file: Any = None) -> None:
        if sys.stdout is not None:  # help on request
            show(message, spent=False)


def _in_report(name: str) -> str:
    """Return how a report releases a statistic that has no command of its own; nothing if none has this name."""
    from dpfast.reports.plans import METHODS
    from dpfast.statistics.named import named

    needed = METHODS.get(named(name))
    if needed is None or len(needed) > 1:
        return ""
    words = " ".join([name, *map(str.upper, needed)])
    return f"dpfast report FILE --release '{words} of COLUMN' releases it; commands are "


class _NoInterval(argparse.Action):
    """Refuse an interval of a statistic for which none is known."""

    def __call__(self, parser: argparse.ArgumentParser, *given: Any, **options: Any) -> None:
        known = [*(name for name, command in SINGLE.items() if command.interval), "count", "quantiles"]
        parser.error(f"no interval is known for this statistic: {', '.join(known)} have --interval")


def exact(text: str) -> Fraction:
    """Return the exact value of a decimal or a ratio."""
    try:
        return checks.rational("", text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).strip()) from None


def _reader(make: Callable[[str], Any], what: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return make(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be {what}, not {text!r}") from None

    return read


def _delimiter(text: str) -> str:
    character = "\t" if text in ("tab", "\\t") else text
    if len(character) != 1 or not character.isascii() or character in '"\r\n':
        raise ValueError
    return character


def _encoding(text: str) -> str:
    from dpfast.tables import check_encoding

    try:
        return check_encoding(text)
    except LookupError:
        raise ValueError from None


number, whole = _reader(float, "a number"), _reader(int, "an integer")
policy = _reader(
    lambda text: text if text in ("lower", "half", "drop") else float(text), "a number, lower, half or drop"
)
delimiter = _reader(_delimiter, "one ASCII character or tab, not a quote or the end of a line")
encoding = _reader(_encoding, "an encoding of text, as utf-8, latin-1 or utf-16")
bin_count = _reader(lambda text: text if text == "auto" else int(text), "an integer or auto")


def named_range(text: str) -> tuple[str, tuple[float, float]]:
    """Return the name and the bounds in NAME=LOWER,UPPER."""
    try:
        name, ends = text.split("=")
        lower, upper = map(float, ends.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be NAME=LOWER,UPPER, as in scale=0.1,50, not {text!r}") from None
    return name, (lower, upper)


def named_bounds(text: str) -> tuple[str, Any]:
    """Return the name and the bounds in NAME=LOWER,UPPER or NAME=private."""
    name, _, ends = text.partition("=")
    return (name, ends) if name and ends == "private" else named_range(text)


def named_number(text: str) -> tuple[str, int]:
    """Return the name and the whole number of NAME=K."""
    name, sign, number = text.rpartition("=")
    if not (name and sign):
        raise argparse.ArgumentTypeError(f"must be NAME=K, not {text!r}")
    return name, whole(number)


def named_policy(text: str) -> tuple[str, Any]:
    """Return the name and the policy in NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, as in pay=half, not {text!r}")
    return name, policy(value)


def named_list(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the name and the values in NAME=A,B,..."""
    name, equals, values = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"must be NAME=A,B,..., as in region=north,south, not {text!r}")
    return name, tuple(values.split(","))


def add_column(
    parser: argparse.ArgumentParser, *, bounded: bool = True, findable: bool = False, missing: str = LOWER
) -> None:
    """Add the options of a column and its grid; `findable` if the bounds may be found privately.

    `missing` says what the default of missing cells is.
    """
    add_file(parser)
    hint = "public" if bounded else "public; not needed if n epsilon min(q, 1 - q) >= 50 for each quantile"
    hint += "; or private: found privately, for a part of epsilon" if findable else ""
    required = bounded and not findable  # the command says so
    parser.add_argument("--bounds", type=number, nargs=2, required=required, metavar=("LOWER", "UPPER"), help=hint)
    if findable:
        hidden = argparse.SUPPRESS
        parser.add_argument(_PRIVATE_BOUNDS, dest="bounds", action="store_const", const="private", help=hidden)
    parser.add_argument("--step", type=number, help="granularity, a power of two; default 1 for integers, else fine")
    parser.add_argument(
        "--type", choices=_TYPES, help="type of the column, public: number (default) or integer; not needed for Parquet"
    )
    parser.add_argument(
        "--missing",
        type=policy,
        metavar="VALUE",
        help="what empty or non-numeric cells count as: a number; lower, the lower bound; half, each bound by turns; "
        f"drop, not as records; {missing}",
    )


def add_neighbors(parser: argparse.ArgumentParser, default: str = "replace-one") -> None:
    """Add the option of the neighbours, for commands of which a mechanism can hide the number of records."""
    parser.add_argument(
        "--neighbors",
        choices=("replace-one", "add-remove"),
        default=default,
        help=f"add-remove keeps the number of records private (default {default})",
    )


def add_file(parser: argparse.ArgumentParser, *, column: bool = True) -> None:
    """Add the options of a file and a budget."""
    parser.add_argument("file", metavar="FILE", help=_FILES)
    if column:
        parser.add_argument("--column", metavar="C", help="name in the header; not needed for a file of one column")
    add_format(parser)
    parser.add_argument("--epsilon", type=exact, required=True, help="privacy budget of this command")
    parser.add_argument(
        "--ledger", metavar="FILE", help="charge the release to this budget, see dpfast ledger; exit code 4 if over it"
    )
    add_purpose(parser)


def add_purpose(parser: argparse.ArgumentParser) -> None:
    """Add the option of what is noted in a ledger."""
    parser.add_argument("--purpose", metavar="TEXT", help="what it is for, noted in the ledger")


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how CSV is written."""
    parser.add_argument("--no-header", action="store_true", help="the first row is data; columns are numbers from 1")
    parser.add_argument("--delimiter", type=delimiter, default=",", help="between the cells of CSV, or tab; default ,")
    parser.add_argument(
        "--encoding", type=encoding, default="utf-8", help="of CSV, as latin-1 or utf-16; default utf-8"
    )
    parser.add_argument("--decimal", choices=(".", ","), default=".", help="mark before the decimals; default .")
    parser.add_argument(
        "--thousands", choices=(",", ".", " ", "'", "_"), help="mark between thousands, which is left out of numbers"
    )


def add_delta(parser: argparse.ArgumentParser, more: str) -> None:
    """Add the option of a delta."""
    parser.add_argument("--delta", type=exact, default=0.0, help=f"0 (default), or more {more}")


def add_groups(parser: argparse.ArgumentParser) -> None:
    """Add the options of groups."""
    parser.add_argument("--group-by", nargs="+", metavar="C", help="release for each key in these columns; with --keys")
    parser.add_argument(
        "--keys",
        metavar="FILE",
        help="public keys, one in each row of a CSV file without a header; or private, for half of epsilon and --delta",
    )


def add_explain(parser: argparse.ArgumentParser) -> None:
    """Add the option of an explanation."""
    parser.add_argument(
        "--explain", action="store_true", help="also print the mechanism, its guarantee and its error to standard error"
    )


def add_interval(parser: argparse.ArgumentParser) -> None:
    """Add the option of an interval."""
    parser.add_argument(
        "--interval",
        type=number,
        nargs="?",
        const=0.95,
        metavar="CONFIDENCE",
        help="also release an interval for the population value, of one statistic; without CONFIDENCE of 0.95",
    )


def refuse_interval(parser: argparse.ArgumentParser) -> None:
    """Let the option of an interval say which commands have it; the help is silent about it."""
    parser.add_argument("--interval", nargs="?", action=_NoInterval, help=argparse.SUPPRESS)


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options of all commands that release."""
    parser.add_argument("--seed", type=whole, help="reproducible, hence not private")
    add_json(parser)


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add the option to replace files, for commands that write one."""
    parser.add_argument("--force", action="store_true", help="replace the file to write if it exists")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option of JSON."""
    parser.add_argument("--json", action="store_true", help="print JSON, see dpfast schema")
