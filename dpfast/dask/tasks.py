"""The chunks of a Dask collection, the tasks that read and merge them, and the tree of tasks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dpfast.aggregate import BlockState, SampleAndAggregate
from dpfast.local.randomizer import Aggregate, Randomizer
from dpfast.mechanisms import Mechanism
from dpfast.streaming import State


def chunks_of(x: Any) -> list[Any]:
    """Return the chunks of a collection, in the order of their rows."""
    from dask.delayed import Delayed

    if isinstance(x, Delayed):
        return [x]
    if isinstance(x, tuple) and len(x) == 2 and all(hasattr(type(part), "to_delayed") for part in x):
        rows, labels = map(chunks_of, x)
        if len(rows) != len(labels):
            raise ValueError(f"X and y must have the same chunks of rows, not {len(rows)} and {len(labels)} chunks")
        return list(zip(rows, labels, strict=True))
    if hasattr(type(x), "rechunk"):  # on the type, since a frame has its columns as attributes
        rows = x.rechunk(dict.fromkeys(range(1, x.ndim), -1)) if x.ndim > 1 else x
        return list(rows.to_delayed().ravel())
    return list(x.to_delayed() if hasattr(type(x), "to_delayed") else x)


def lengths(x: Any, chunks: list[Any]) -> list[int]:
    """Return the numbers of rows of the chunks; computed if the collection does not have them."""
    import dask

    known = x.chunks[0] if hasattr(type(x), "chunks") else (math.nan,)
    if any(map(math.isnan, known)):
        known = dask.compute(*(dask.delayed(len)(chunk) for chunk in chunks))
    return list(map(int, known))


def reduced(parts: list[Any], merge: Callable[[list[Any]], Any], branches: int) -> Any:
    """Merge the parts in a tree, `branches` neighbours in each task, and compute the result."""
    while len(parts) > 1:
        parts = [merge(parts[i : i + branches]) for i in range(0, len(parts), branches)]
    return parts[0].compute()


# The tasks. They do not modify their arguments.


def read(mechanism: Mechanism, blank: bytes, chunk: Any) -> State:
    """Read a chunk into a state like `blank`."""
    made = State.from_bytes(blank, mechanism)
    made.update(chunk)
    return made


def merged(mechanism: Mechanism, blank: bytes, states: list[State]) -> State:
    """Merge states that began like `blank`."""
    made = State.from_bytes(blank, mechanism)
    for other in states:
        made.merge(other)
    return made


def summed(mechanism: SampleAndAggregate, n: int, position: int, chunk: Any) -> BlockState:
    """Add a chunk at its position to the sums over blocks."""
    made = mechanism.block_sums(n, position=position)
    made.update(chunk)
    return made


def together(mechanism: SampleAndAggregate, n: int, states: list[BlockState]) -> BlockState:
    """Merge sums over blocks."""
    made = mechanism.block_sums(n)
    for other in states:
        made.merge(other)
    return made


def aggregated(randomizer: Randomizer, reports: Any) -> bytes:
    """Aggregate the reports of a chunk."""
    return randomizer.aggregate(reports).to_bytes()


def added(aggregates: list[bytes]) -> bytes:
    """Add aggregates."""
    first, *others = map(Aggregate.from_bytes, aggregates)
    return sum(others, start=first).to_bytes()
