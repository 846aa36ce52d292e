"""States of a mechanism on Spark's Python workers, merged there in a tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from dpfast.mechanisms import Mechanism
from dpfast.spark.frames import ChosenColumns
from dpfast.streaming import State

_SCHEMA = "state binary"


def blank(mechanism: Mechanism, chosen: ChosenColumns) -> State:
    """Return the empty state for records of these columns; raises what the mechanism raises for such records."""
    state = mechanism.start()
    rows = np.empty((0, len(chosen.columns)))
    if chosen.y is not None:
        state.update((rows, np.empty(0)))
    else:
        state.update(rows if chosen.several else np.empty(0))
    return state


def read(mechanism: Mechanism, chosen: ChosenColumns, mergers: int) -> State:
    """Return the state of a mechanism after reading a frame in all passes. PRIVATE."""
    state = blank(mechanism, chosen)
    while True:
        for part in _parts(mechanism, chosen, state.to_bytes(), mergers):
            state.merge(State.from_bytes(part, mechanism))
        if state.number == state.passes:
            return state
        state.next_pass()


def _parts(mechanism: Mechanism, chosen: ChosenColumns, start: bytes, mergers: int) -> list[bytes]:
    """Yield the states of `mergers` tasks, which together have read all records in one pass."""
    names = chosen.without_frame()

    def read(batches: Iterable[Any]) -> Iterator[Any]:
        mine = State.from_bytes(start, mechanism)
        for batch in batches:
            mine.update(names.records(batch))
        yield _row(mine)

    def merge(batches: Iterable[Any]) -> Iterator[Any]:
        mine = State.from_bytes(start, mechanism)
        for batch in batches:
            for state in batch.column(0):
                mine.merge(State.from_bytes(state.as_py(), mechanism))
        yield _row(mine)

    rows = chosen.frame.selectExpr(*chosen.selected)
    states = rows.mapInArrow(read, _SCHEMA).repartition(mergers).mapInArrow(merge, _SCHEMA)
    return [bytes(row.state) for row in states.collect()]


def groups(mechanism: Mechanism, chosen: ChosenColumns, by: str) -> dict[int, State]:
    """Return the state of each group with records after all passes, by its number in the column `by`. PRIVATE.

    A worker holds the records of one group at a time.
    """
    names, start = chosen.without_frame(), blank(mechanism, chosen).to_bytes()

    def read(key: tuple[Any, ...], table: Any) -> Any:
        import pyarrow

        state = State.from_bytes(start, mechanism).read([names.records(table.select(list(names.names)))])
        return pyarrow.table({"number": pyarrow.array([key[0].as_py()], pyarrow.int32()), **_column(state)})

    made = chosen.frame.groupBy(by).applyInArrow(read, f"number int, {_SCHEMA}")
    return {row.number: State.from_bytes(bytes(row.state), mechanism) for row in made.collect()}


def _row(state: State) -> Any:
    import pyarrow

    return pyarrow.record_batch(_column(state))


def _column(state: State) -> dict[str, Any]:
    import pyarrow

    return {"state": pyarrow.array([state.to_bytes()], pyarrow.binary())}
