"""`partitions`: the keys of the rows of a Spark frame that may be released."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from dpfast.core.spending import spending_together
from dpfast.core.traps import warn_of
from dpfast.groups.labels import together
from dpfast.keys import KeyCounts, column_of, lookup
from dpfast.mechanisms import Partitions, PartitionSelection
from dpfast.random import RandomSource, bit_generator
from dpfast.spark.frames import check_name, quoted, types_of

TYPES = {"string": str, "binary": bytes} | dict.fromkeys(("boolean", "tinyint", "smallint", "int", "bigint"), int)


def partitions(
    frame: Any,
    columns: str | Sequence[str],
    *,
    epsilon: float,
    delta: float = 0.0,
    contributions: SupportsIndex = 1,
    per_key: SupportsIndex | None = None,
    neighbors: str = "add-remove",
    domain: SupportsIndex | Sequence[Any] | None = None,
    rng: RandomSource = None,
) -> Partitions:
    """Release the keys that enough rows of a Spark frame have, with noisy counts: partition selection.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Private records, one in each row, of a classic session or of Spark Connect.
    columns : str or sequence of str
        The column of the keys, or several, whose values together are a key: text, binary, integers or booleans, which
        are 0 and 1. A row with a null is left out.
    epsilon, delta, contributions, per_key, neighbors, domain
        See `dpfast.PartitionSelection`.
    rng
        See `Mechanism.release`.

    Returns
    -------
    Partitions
        On the driver; see `dpfast.partitions`.

    Raises
    ------
    TypeError, ValueError
        Before anything is charged: see `dpfast.PartitionSelection`; a column that is not in the schema, or has another
        type.

    Notes
    -----
    Privacy: that of `dpfast.partitions`. Spark counts the rows of each key; the keys are selected on the driver, which
    receives all distinct keys with their counts, PRIVATE.
    Cost: one query, ``groupBy(columns).count()``; memory of the distinct keys on the driver.

    Examples
    --------
    >>> import dpfast as dpf, dpfast.spark
    >>> frame = spark.sql("SELECT CAST(sqrt(id) AS INT) AS word FROM range(10000)")  # doctest: +SKIP
    >>> released = dpfast.spark.partitions(frame, "word", epsilon=1.0, delta=1e-6)  # doctest: +SKIP
    >>> 80 < len(released) < 100  # doctest: +SKIP
    True
    """
    selection = PartitionSelection(
        epsilon,
        delta,
        contributions=contributions,  # type: ignore[arg-type]
        per_key=per_key,  # type: ignore[arg-type]
        neighbors=neighbors,
        domain=domain,  # type: ignore[arg-type]
    )
    warn_of(selection)
    bit_generator(rng)
    names = names_of(columns, "columns")
    key_types(frame, names)
    check_width(selection, len(names))
    with spending_together((selection.cost,), of=(selection,)):
        return select(selection, frame, names, rng)


def names_of(columns: str | Sequence[str], what: str) -> list[str]:
    """Return the names of columns."""
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names:
        raise ValueError(f"{what} must name at least one column")
    return names


def key_types(frame: Any, names: Sequence[str]) -> list[type]:
    """Return the Python type of the keys in each column, from the schema, which is public."""
    types = types_of(frame)
    for name in names:
        check_name(name, types)
        if types[name] not in TYPES:
            raise TypeError(f"column {name!r} must hold text, binary or integers, not {types[name]}: cast it")
    return [TYPES[types[name]] for name in names]


def check_width(selection: PartitionSelection, columns: int) -> None:
    """Check that the domain fits the number of columns."""
    domain = selection.domain
    if isinstance(domain, int) and columns > 1:
        raise TypeError("keys must be in one column for a number as domain")
    if isinstance(domain, tuple) and (len(domain[0]) if isinstance(domain[0], tuple) else 1) != columns:
        raise ValueError(f"keys of the domain must have {columns} entries each, one for each column")


def select(selection: PartitionSelection, frame: Any, names: Sequence[str], rng: RandomSource) -> Partitions:
    """Release the keys, on the driver, from the exact counts of Spark."""
    released: Partitions = selection.plan().draw_from(_summary(selection, frame, names), bit_generator(rng))
    return released


def _summary(selection: PartitionSelection, frame: Any, names: Sequence[str]) -> Any:
    """Return the counts of the keys, for the law. PRIVATE."""
    types = types_of(frame)
    labels = [f"key_{j}" for j in range(len(names))]
    read = [
        f"CAST({quoted(name)} AS INT) AS {label}" if types[name] == "boolean" else f"{quoted(name)} AS {label}"
        for name, label in zip(names, labels, strict=True)
    ]
    present = " AND ".join(f"{label} IS NOT NULL" for label in labels)
    table = frame.selectExpr(*read).where(present).groupBy(*labels).count().toArrow()
    keys = together([table.column(label) for label in labels])
    counts = np.asarray(table.column("count")).astype(np.int64, copy=False)
    if not isinstance(selection.domain, tuple):
        counted = KeyCounts()
        counted.add_counted(column_of(keys), counts)
        return counted.sorted()
    places = lookup(keys, selection.domain)
    listed = np.zeros(len(selection.domain), np.int64)
    np.add.at(listed, places[places >= 0], counts[places >= 0])
    return listed, int(listed.sum())
