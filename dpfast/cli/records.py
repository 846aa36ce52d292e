"""The column of a command: its grid, its records and a release of them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast.choosing import explained
from dpfast.cli.budgets import check_budget
from dpfast.cli.output import warn
from dpfast.core import checks, traps
from dpfast.core.grid import Grid, Points, unbounded
from dpfast.core.privacy import Privacy, as_given
from dpfast.mechanisms import Mechanism
from dpfast.streaming import Chunks, records_of
from dpfast.tables import IN_THE_HEADER, Format, column_names, no_column, open_column, schema_type

OF_TEXT = "of a column of text the release means nothing"  # said where no schema and no --type declares numbers
UNREAD = "empty or non-numeric cells"  # stated in each answer, whatever the cells contain


def rng_of(arguments: argparse.Namespace) -> np.random.Generator | None:
    """Return the generator of a seed, or None."""
    return None if arguments.seed is None else np.random.default_rng(checks.whole("seed", arguments.seed))


def grid_of(arguments: argparse.Namespace) -> Grid:
    """Return the grid of bounds and step."""
    return Grid(arguments.bounds[0], arguments.bounds[1], step=arguments.step)


def column_grid(arguments: argparse.Namespace, *, free: bool = False) -> Grid:
    """Return the grid of a column, with step 1 if it is declared as integer; sets `type` and `missing`.

    Missing cells of which nothing is said are left out where this is `free`, and where the number of records is private
    anyway. Else they count as the lower bound, of which `warn_of_cells` warns.
    """
    lower, upper = arguments.bounds
    if arguments.missing is None and (free or hides_n(arguments)):
        arguments.missing = "drop"
    arguments.unsaid = arguments.missing is None
    grid = Grid(lower, upper, step=arguments.step, missing=arguments.missing)  # raises before the file is opened
    settle_type(arguments)
    if arguments.step is None and arguments.type == "integer":
        grid = Grid(lower, upper, step=1.0, missing=arguments.missing)
    arguments.missing = grid.missing
    return grid


def column_points(arguments: argparse.Namespace, *, free: bool = False) -> Points:
    """`column_grid`, or without --bounds the grid of floats for the type of the column; sets `type` and `missing`."""
    if arguments.bounds is not None:
        return column_grid(arguments, free=free)
    if arguments.step is not None:
        raise ValueError("--step needs --bounds")
    settle_type(arguments)
    grid = unbounded(arguments.type == "integer").with_missing(arguments.missing)
    arguments.missing = grid.missing
    return grid


def settle_type(arguments: argparse.Namespace) -> None:
    """Set the type of the column: as declared by an option, else by the schema of the file; and whether one is."""
    declared = arguments.type or schema_type(arguments.file, arguments.column)
    arguments.declared, arguments.type = declared is not None, declared or "number"


def read(arguments: argparse.Namespace) -> NDArray[np.float64] | Chunks:
    """Return the records of a column, or the chunks of a long one."""
    x = open_column(arguments.file, arguments.column, format_of(arguments), progress=True)
    if not isinstance(x, Chunks) and not hides_n(arguments):
        checks.records(x.size)
    return x


def check_columns(arguments: argparse.Namespace, names: Sequence[str]) -> None:
    """Raise a TableError if a file lacks a column, by its header or schema; standard input is read once, later."""
    known = None if arguments.file == "-" else column_names(arguments.file, format_of(arguments))
    for name in names if known is not None else ():
        if (known or []).count(name) != 1:
            raise no_column(name, known or [], IN_THE_HEADER)


def first_column(arguments: argparse.Namespace) -> str | None:
    """Return a column of a CSV file whose records are only counted; None if it has one, or is read once."""
    if arguments.file == "-" or schema_type(arguments.file, None) is not None:
        return None
    names = column_names(arguments.file, format_of(arguments))
    return None if names is not None and len(names) < 2 else names[0] if names else "1"


def format_of(arguments: argparse.Namespace) -> Format:
    """Return how the file of a command is written, if it is CSV."""
    return Format(
        not arguments.no_header, arguments.delimiter, arguments.encoding, arguments.decimal, arguments.thousands
    )


@contextmanager
def charging(arguments: argparse.Namespace) -> Iterator[None]:
    """Charge the releases of a block to the ledger of the command, if it has one, with a note of what they are for."""
    if arguments.ledger is None:
        yield
        return
    source = None if arguments.file == "-" else arguments.file
    with arguments.ledger as ledger, ledger.noting(column=_column(arguments), source=source, purpose=arguments.purpose):
        yield


def _column(arguments: argparse.Namespace) -> str | None:
    """Return the columns that a command reads."""
    if features := getattr(arguments, "features", None):
        return ", ".join([*features, arguments.label])
    column: str | list[str] | None = getattr(arguments, "column", None)
    return ", ".join(column) if isinstance(column, list) else column


def hides_n(arguments: argparse.Namespace) -> bool:
    """Whether the number of records is private."""
    return getattr(arguments, "neighbors", None) == "add-remove"


def tell(mechanism: Mechanism, arguments: argparse.Namespace, x: Any) -> None:
    """Print the warnings that a release deserves, and with --explain its explanation, to standard error."""
    warn_of_cells(arguments)
    explained(mechanism, warn if getattr(arguments, "explain", False) else False, x)


def warn_of_cells(arguments: argparse.Namespace) -> None:
    """Warn, once the file is known to be good, if missing cells count as the lower bound and nobody said so."""
    if getattr(arguments, "unsaid", False):
        traps.warn(traps.of_cells_at_the_bound(arguments.column))


def release(
    mechanism: Mechanism,
    arguments: argparse.Namespace,
    rng: np.random.Generator | None,
    x: NDArray[np.float64] | Chunks | None = None,
) -> Answer:
    """Release a statistic of the column, or of x; also return the number of records, if public."""
    check_budget(arguments.ledger, mechanism)
    x = read(arguments) if x is None else x
    tell(mechanism, arguments, x)
    if isinstance(x, Chunks) and not mechanism.counts_first:
        state = mechanism.start().read(x)
        value, n = state.release(rng=rng), state.n
    else:
        value, n = mechanism(x, rng=rng), records_of(x)
    return Answer(value, None, "") if hides_n(arguments) else Answer(value, n, f"{n:,} records; ")


class Answer(NamedTuple):
    """A release, the number of records, and a text with it, "" if n is private."""

    value: Any
    n: int | None
    story: str


def guaranteed(privacy: Privacy) -> dict[str, Any]:
    """Return a guarantee as the fields of a report."""
    return {
        "epsilon": as_given(privacy.epsilon),
        "delta": as_given(privacy.delta),
        "neighbors": privacy.neighbors,
    }


def context(privacy: Privacy, grid: Points | None, n: int | None, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the public facts of a release that every report states."""
    return {
        "n": n,
        **guaranteed(privacy),
        "step": grid.step if isinstance(grid, Grid) else None,
        "type": arguments.type,
        "missing": arguments.missing,
        "reading": f"read as type {arguments.type}; {UNREAD} {_become(grid, arguments.missing)} (--missing)"
        + ("" if arguments.declared else f"; {OF_TEXT}"),
        "private": arguments.seed is None,
    }


def _become(grid: Points | None, missing: Any) -> str:
    """Return what unread cells become; without a grid, the bounds are found privately."""
    if grid is None:
        stands = "a median that is released first" if missing is None else f"--missing {missing}"
        return f"do not move the bounds, and count as {stands}"
    if grid.missing == "drop":
        return "are left out"
    if grid.missing == "half":
        return f"count as {grid.lower:.12g} at even positions and as {grid.upper:.12g} at odd ones"
    return f"count as {grid.missing:.12g}"
