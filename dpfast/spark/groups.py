"""`by_group`: a release for each group of the rows of a Spark frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast.core.privacy import total_up
from dpfast.core.spending import spending_together
from dpfast.groups.keyed import RELEASE, KeyedReleases, ReleasedColumn
from dpfast.groups.labels import GroupKeys
from dpfast.groups.releases import cost_for_each_group, keyed, selects
from dpfast.mechanisms import Mechanism, PartitionSelection
from dpfast.random import RandomSource, bit_generator, streams
from dpfast.spark import counting, states
from dpfast.spark.frames import ChosenColumns, quoted
from dpfast.spark.keys import check_width, key_types, names_of, select
from dpfast.spark.releases import check
from dpfast.streaming.state import Planned

_BLOCK = 2**10  # groups that draw from one stream, as in dpfast.by_group
_GROUP = "group_number"
_DTYPES = {str: "str", bytes: "object", int: "int64"}
_LEAST, _MOST = -(2**63), 2**63 - 1


def by_group(
    mechanism: Mechanism,
    frame: Any,
    columns: str | Sequence[str],
    *,
    labels: str | Sequence[str],
    keys: Any,
    partitions: PartitionSelection | None = None,
    y: str | None = None,
    contributions: SupportsIndex = 1,
    per_key: SupportsIndex | None = None,
    rng: RandomSource = None,
) -> KeyedReleases:
    """Release one number, or vector, for each group of the rows of a Spark frame; one epsilon covers all groups.

    If the mechanism is for one replaced record, labels and groups are public and the same for neighbours. If it is for
    one record added or removed, they are private: the guarantee is for one record together with its label.

    Parameters
    ----------
    mechanism : Mechanism
        The release for each group: floats, or arrays of one shape.
    frame, columns, y
        See `release`.
    labels : str or sequence of str
        The columns whose values name the group of a row: text, binary, integers or booleans. A row is dropped if a
        label is null or its group is not among the keys.
    keys : sequence
        Public keys of the groups, in the order of the result, as for `dpfast.by_group`. They must not come from private
        data: ``frame.select("region").distinct()`` is private. "private": the keys that `partitions` releases; needs
        ``neighbors="add-remove"``.
    partitions : dpfast.PartitionSelection, optional
        The selection of the keys for ``keys="private"``, charged in addition to the mechanism.
    contributions, per_key
        Of units with several records, see `dpfast.by_group`.
    rng
        See `Mechanism.release`.

    Returns
    -------
    dpfast.groups.KeyedReleases
        On the driver, as from `dpfast.by_group`. NaN for an empty group whose emptiness is public, that is, for one
        replaced record; otherwise an empty group is drawn like every other.
        ``spark.createDataFrame(released.to_pandas())`` makes a Spark frame.

    Raises
    ------
    TypeError, ValueError
        See `release`, before anything is charged; a column of labels of another type; keys that do not fit it.

    Notes
    -----
    Privacy: as for `dpfast.by_group`; a ledger charges one release of the mechanism. Keys are looked up by Spark, as
    whole values, in a join with the public keys.
    Cost: one query. For sums, and for all groups together at most 2**16 points of a grid, Spark groups and counts;
    otherwise it moves the rows of each group to one task, and a worker holds the records of one group at a time.

    Examples
    --------
    >>> import dpfast as dpf, dpfast.spark
    >>> mean = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=dpf.Grid(0, 100), epsilon=1.0)
    >>> frame = spark.sql("SELECT id % 2 AS school, id % 100 AS score FROM range(100000)")  # doctest: +SKIP
    >>> released = dpfast.spark.by_group(mean, frame, "score", labels="school", keys=[0, 1, 2])  # doctest: +SKIP
    >>> released.to_pandas().round()  # doctest: +SKIP
       school  score
    0       0   49.0
    1       1   50.0
    2       2    NaN
    """
    import pandas

    bit_generator(rng)
    chosen = ChosenColumns.of(frame, columns, y)
    check(mechanism, chosen)
    if not mechanism.releases_numbers:
        raise TypeError(f"a {type(mechanism).__name__} does not release numbers, which by_group puts into one table")
    names = names_of(labels, "labels")
    kinds = key_types(frame, names)
    made = [(name, pandas.Series([], dtype=_DTYPES[kind], name=name)) for name, kind in zip(names, kinds, strict=True)]
    costs, releasing = [cost_for_each_group(mechanism, contributions, per_key)], [mechanism]
    if selects(keys, partitions, mechanism.hides_n):
        assert partitions is not None
        check_width(partitions, len(names))
        costs, releasing = [partitions.cost, *costs], [partitions, *releasing]
        named = None
    else:
        named = GroupKeys.of(made, keys)
    privacy, counts = total_up([cost.profile for cost in costs]), None
    with spending_together(costs, of=releasing):
        if named is None:
            assert partitions is not None
            selected = select(partitions, frame, names, rng)
            named, counts = GroupKeys.of(made, selected.keys), selected.counts
        array = _draw(mechanism, _located(chosen, names, kinds, named.listed), len(named), rng)
    parts = list(mechanism.parts) or _parts(chosen, array)
    name = columns if isinstance(columns, str) else RELEASE
    noise = mechanism if mechanism.hides_n else None  # else it depends on sizes, which are not counted
    return keyed(named, [ReleasedColumn(name, array, parts, noise)], privacy, counts=counts)


def _parts(chosen: ChosenColumns, array: NDArray[np.float64]) -> list[str]:
    """Return the names of the numbers of one release."""
    if array.shape[1:] == (len(chosen.columns),):
        return list(chosen.columns)
    return [", ".join(map(str, place)) for place in np.ndindex(array.shape[1:])]


def _located(chosen: ChosenColumns, names: list[str], kinds: list[type], keys: list[Any]) -> ChosenColumns:
    """Return the records of the groups, with the number of the group of each in the column `_GROUP`."""
    import pyarrow

    rows = [(key if len(names) > 1 else (key,), number) for number, key in enumerate(keys)]
    fits = [(key, number) for key, number in rows if all(map(_fits, key, kinds))]
    types = {str: pyarrow.string(), bytes: pyarrow.binary(), int: pyarrow.int64()}
    labels = [f"label_{j}" for j in range(len(names))]
    parts = {
        label: pyarrow.array([key[j] for key, _ in fits], types[kind])
        for j, (label, kind) in enumerate(zip(labels, kinds, strict=True))
    }
    parts[_GROUP] = pyarrow.array([number for _, number in fits], pyarrow.int32())
    table = chosen.frame.sparkSession.createDataFrame(pyarrow.table(parts))
    read = [
        f"CAST({quoted(name)} AS BIGINT) AS {label}" if kind is int else f"{quoted(name)} AS {label}"
        for label, name, kind in zip(labels, names, kinds, strict=True)
    ]
    columns = [f"record_{j}" for j in range(len(chosen.names))]
    read += [f"{name} AS {column}" for name, column in zip(chosen.selected, columns, strict=True)]
    joined = chosen.frame.selectExpr(*read).join(table.hint("broadcast"), on=labels, how="inner")
    records, y = (columns, None) if chosen.y is None else (columns[:-1], columns[-1])
    return ChosenColumns(joined.selectExpr(_GROUP, *columns), tuple(records), y, chosen.several)


def _fits(part: Any, kind: type) -> bool:
    """Whether a column of labels of this type can hold a part of a key."""
    return _LEAST <= part <= _MOST if isinstance(part, int) and kind is int else isinstance(part, kind)


def _draw(mechanism: Mechanism, chosen: ChosenColumns, count: int, rng: RandomSource) -> NDArray[np.float64]:
    """Return a release for each group, in float64."""
    summaries = counting.summaries(mechanism, chosen, _GROUP, count)
    if summaries is None:
        read = states.groups(mechanism, chosen, _GROUP)
        summaries = {group: (state.plan(), state.summary()) for group, state in read.items()}
    released: dict[int, Any] = {}
    parts = streams(rng, -(-count // _BLOCK))
    for block in range(len(parts)):
        source = parts[block]
        for group in range(block * _BLOCK, min((block + 1) * _BLOCK, count)):
            if group in summaries or mechanism.hides_n:
                plan, summary = summaries[group] if group in summaries else _of_none(mechanism, chosen)
                made = plan.draw_from(summary, source)
                if made is not None:
                    released[group] = np.asarray(made, dtype=np.float64)
    out = np.full((count, *_shape(mechanism, chosen, released)), np.nan)
    for group, value in released.items():
        out[group] = value
    return out


def _of_none(mechanism: Mechanism, chosen: ChosenColumns) -> tuple[Planned, Any]:
    state = states.blank(mechanism, chosen).read([])
    return state.plan(), state.summary()


def _shape(mechanism: Mechanism, chosen: ChosenColumns, released: dict[int, Any]) -> tuple[int, ...]:
    """Return the shape of one release; of one without data, of which only the shape is used, if no group has any."""
    if mechanism.parts:
        return (len(mechanism.parts),)
    for value in released.values():
        return value.shape  # type: ignore[no-any-return]
    return (len(chosen.columns),) if chosen.several else ()
