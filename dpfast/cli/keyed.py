"""Releases for each key of a column: groups with public or private keys, and the keys themselves."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.cli.budgets import check_budget
from dpfast.cli.records import charging, format_of, guaranteed, hides_n, rng_of, tell
from dpfast.core import checks, traps
from dpfast.core.plotting import percent
from dpfast.core.privacy import Privacy
from dpfast.core.tabular import finite
from dpfast.groups import by_group
from dpfast.mechanisms import Mechanism
from dpfast.mechanisms.intervals import IntervalMechanism
from dpfast.mechanisms.partitions import PartitionSelection
from dpfast.mechanisms.released import or_none
from dpfast.streaming import Chunks
from dpfast.tables import TableError, WantedColumn, blocks, is_long, schema_type

Make = Callable[[Any, Any], Mechanism]  # from epsilon and delta


def check_groups(arguments: argparse.Namespace) -> None:
    """Reject options of groups that do not fit together."""
    if (arguments.group_by is None) != (arguments.keys is None):
        raise ValueError("--group-by and --keys (a file of public keys, or private) must be given together")
    if arguments.group_by and arguments.column is None and not counts_all(arguments):
        raise ValueError("--group-by needs --column")
    if arguments.keys == "private" and not hides_n(arguments):
        raise ValueError("--keys private needs --neighbors add-remove")
    if arguments.keys == "private" and not arguments.delta:
        raise ValueError("--keys private needs a positive --delta, such as 1e-6")


def counts_all(arguments: argparse.Namespace) -> bool:
    """Whether the records are only counted, so that no column of them is read."""
    return arguments.name == "count" and arguments.within is None and arguments.missing is None


def release_groups(
    make: Make,
    after: Callable[[Any], Any],
    arguments: argparse.Namespace,
    rng: np.random.Generator | None,
    reading: Callable[[Privacy, int | None], dict[str, Any]],
) -> dict[str, Any]:
    """Release a statistic for each group of records; private keys take all of delta and half of epsilon.

    `after` changes each release, and `reading` states what its guarantee is and how n records were read.
    """
    epsilon, delta = checks.positive_down("epsilon", arguments.epsilon), checks.delta_down(arguments.delta)
    names = arguments.group_by
    with charging(arguments):
        if arguments.keys == "private":
            options: dict[str, Any] = {"keys": "private", "partitions": PartitionSelection(epsilon / 2, delta)}
            mechanism = make(epsilon / 2, 0.0)
        else:
            options = {"keys": public_keys(arguments, names)}
            mechanism = make(epsilon, delta)
        check_budget(arguments.ledger, mechanism)
        labels, x = _labels_and_records(arguments, names)
        traps.warn([*traps.of_epsilon(epsilon), *traps.of_delta(delta)])  # of the keys and the groups together
        tell(mechanism, arguments, None)  # `by_group` knows how many records each group has
        released = by_group(mechanism, x, labels=tuple(labels) if len(names) > 1 else labels[0], rng=rng, **options)
    keys, estimates = list(released), isinstance(mechanism, IntervalMechanism)
    values = [after(release) for release in (released.array[:, 0] if estimates else released.array)]
    lines, more = list(map(_line, keys, values)), {}
    if estimates:
        ends = released.interval().tolist()
        lines = [
            line if math.isnan(pair[0]) else f"{line}, {between(arguments.interval, *pair)}"  # a group without records
            for line, pair in zip(lines, ends, strict=True)
        ]
        low, high = (finite([or_none(pair[end]) for pair in ends]) for end in (0, 1))
        more = {"low": low, "high": high, "confidence": arguments.interval}
    if released.counts is not None:
        more["counts"] = released.counts.tolist()
        if not counts_all(arguments):  # else the lines are counts themselves
            lines = [f"{line}, about {count} records" for line, count in zip(lines, more["counts"], strict=True)]
    if released.few is not None:
        more["few"] = released.few.tolist()
        lines = [f"{line}, few records" if few else line for line, few in zip(lines, more["few"], strict=True)]
    privacy = Privacy(epsilon, delta, mechanism.privacy.neighbors)
    report = reading(privacy, None if hides_n(arguments) else len(x))
    labels_are = "" if hides_n(arguments) else "the group of each record is public; "
    return {
        "group_by": names,
        "keys": keys,
        "values": finite(values),
        **more,
        **report,
        "reading": f"{report['reading']}; {labels_are}records of other keys are left out",
        "text": "\n".join([*lines, f"({len(keys)} groups; {privacy})"]),
    }


def between(confidence: float, low: float, high: float) -> str:
    """Return the words about an interval."""
    lower, upper = ("no bound" if or_none(end) is None else number(end) for end in (low, high))
    return f"{percent(confidence)} interval {lower} to {upper}"


def number(value: float) -> str:
    """Return a released number as text: of eight digits, and whole if it is greater."""
    return f"{value:.{max(8, len(f'{abs(value):.0f}'))}g}" if abs(value) < 1e15 else f"{value:.8g}"


def _labels_and_records(arguments: argparse.Namespace, names: list[str]) -> tuple[list[NDArray[Any]], NDArray[Any]]:
    """Return the columns of labels, and that of the records; zeros if these are only counted."""
    columns = [WantedColumn(name, text=True) for name in names]
    if counts_all(arguments):
        labels = _columns(arguments, columns)
        return labels, np.zeros(len(labels[0]))
    *labels, x = _columns(arguments, [*columns, WantedColumn(arguments.column)])
    return labels, x


def release_partitions(arguments: argparse.Namespace) -> dict[str, Any]:
    """Release the keys that enough records have, with noisy counts."""
    rng, names = rng_of(arguments), arguments.column
    if (arguments.keys is None) == (not arguments.delta):
        raise ValueError("give either a positive --delta, such as 1e-6, or the possible keys in a file: --keys FILE")
    domain = None if arguments.keys is None else tuple(public_keys(arguments, names))
    mechanism = PartitionSelection(
        arguments.epsilon,
        arguments.delta,
        contributions=arguments.contributions,
        neighbors=arguments.neighbors,
        domain=domain,
    )
    check_budget(arguments.ledger, mechanism)
    columns = [WantedColumn(name, text=True) for name in names]

    def read() -> Iterator[Any]:
        for found in _blocks(arguments, columns):
            yield found if len(names) > 1 else found[0]

    x = Chunks(read if is_long(arguments.file) else list(read()))
    next(iter(x), None)  # a wrong column costs nothing
    tell(mechanism, arguments, x)
    with charging(arguments):
        released = mechanism(x, rng=rng)
    keys, counts, privacy = _listed(released.keys), released.counts.tolist(), mechanism.privacy
    return {
        "statistic": "partitions",
        "columns": names,
        "keys": keys,
        "counts": counts,
        "contributions": arguments.contributions,
        **guaranteed(privacy),
        "reading": "records with an empty key are left out",
        "private": arguments.seed is None,
        "text": "\n".join([*map(_line, keys, counts), f"({len(keys)} keys; {privacy})"]),
    }


def public_keys(arguments: argparse.Namespace, names: list[str]) -> list[Any]:
    """Return the keys in a file, one in each row, in the type of the columns that they are for: texts or integers."""
    wanted = [WantedColumn(None if len(names) == 1 else str(j + 1), text=True) for j in range(len(names))]
    columns: list[list[Any]] = [[] for _ in names]
    try:
        for found in blocks(arguments.keys, wanted, replace(format_of(arguments), header=False)):
            for column, cells in zip(columns, found, strict=True):
                column += cells.tolist()
    except TableError as error:
        raise TableError(f"--keys takes a file with one key in each row, or private: {error}") from None
    columns = [as_in_schema(arguments.file, name, found) for name, found in zip(names, columns, strict=True)]
    rows = columns[0] if len(names) == 1 else list(zip(*columns, strict=True))
    keys = [key for key in rows if key is not None and key != (None,) * len(names)]  # no blank lines
    if not keys or len(set(keys)) < len(keys):
        raise TableError(f"--keys: {arguments.keys} must have at least one key, and each key once")
    return keys


def as_in_schema(path: str, name: str, keys: Sequence[Any]) -> list[Any]:
    """Return keys, which are texts, as integers if the schema of the file says that their column has integers."""
    if schema_type(path, name, text=True) != "integer":
        return list(keys)
    return [_whole(key) for key in keys]


def _whole(cell: str | None) -> int | None:
    try:
        return None if cell is None else int(cell)
    except ValueError:
        raise TableError(f"the keys of a column of integers must be integers, not {cell!r}") from None


def _blocks(arguments: argparse.Namespace, columns: list[WantedColumn]) -> Iterator[tuple[NDArray[Any], ...]]:
    return blocks(arguments.file, columns, format_of(arguments), True)


def _columns(arguments: argparse.Namespace, columns: list[WantedColumn]) -> list[NDArray[Any]]:
    """Columns of a file in memory."""
    empty = tuple(np.empty(0, object if column.text else np.float64) for column in columns)
    joined = [np.concatenate(parts) for parts in zip(empty, *_blocks(arguments, columns), strict=True)]
    if not hides_n(arguments):
        checks.records(len(joined[0]))
    return joined


def _listed(keys: Any) -> list[Any]:
    """Released keys as a list, of tuples for several columns."""
    return list(zip(*(column.tolist() for column in keys), strict=True)) if isinstance(keys, tuple) else keys.tolist()


def _line(key: Any, value: Any) -> str:
    words = ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)
    numbers = value if isinstance(value, list) else [value]
    shown = ", ".join("no records" if math.isnan(each) else number(each) for each in numbers)
    return f"{words if words.isprintable() else repr(words)}: {shown}"
