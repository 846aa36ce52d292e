"""Releases of Dask collections: states are made where the chunks are and merged in a tree; needs `dask`.

Nothing but states moves, as their bytes, and the one draw is made by the caller. A lost worker does no harm: a chunk
that is read again gives the same state.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any, SupportsIndex

from dpfast import _checks
from dpfast.aggregate import BlockState, SampleAndAggregate
from dpfast.local.randomizer import Aggregate, Randomizer
from dpfast.mechanisms import Mechanism
from dpfast.random import RandomSource, bit_generator
from dpfast.spending import spending
from dpfast.streaming import State

_MESSAGE = 2**14  # bytes that are sent with every task, rather than once for all


def release(
    mechanism: Mechanism,
    x: Any,
    *,
    size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    rng: RandomSource = None,
    branches: SupportsIndex = 8,
) -> Any:
    """A release of a central mechanism on a Dask collection: that of the same records in memory.

    Parameters
    ----------
    mechanism : Mechanism
        Any that has a state (`Mechanism.start`), and `SampleAndAggregate` of a family that is made of sums.
    x : dask.array.Array, dask.dataframe.Series or DataFrame, Delayed or sequence of Delayed
        Private records, of shape (n,) or (n, d) as the mechanism takes them, in chunks of rows.
    size, rng
        As for `Mechanism.release`.
    branches : int
        States that are merged by one task, at least 2. A worker holds as many: choose few for a mechanism of many
        columns, whose states are large (docs/guides/streaming.md).

    Returns
    -------
    As `Mechanism.release`.

    Notes
    -----
    Privacy: `mechanism`'s. The scheduler and the workers see the records, as they must, and states, which are PRIVATE.
    With a `dpfast.Ledger` the release is charged before anything is computed.
    Cost: the collection is computed once for each pass of the mechanism: persist it if that is dear and it fits.
    `SampleAndAggregate` makes blocks by position: it is one pass, and one before that counts the rows of chunks whose
    lengths are not known.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf, dpfast.dask
    >>> import dask.array as da  # doctest: +SKIP
    >>> median = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 100), epsilon=1.0)
    >>> ages = da.random.default_rng(0).normal(50, 10, 1_000_000, chunks=100_000)  # doctest: +SKIP
    >>> 49 < dpf.dask.release(median, ages) < 51  # doctest: +SKIP
    True
    """
    # What is wrong without the data costs nothing.
    times = math.prod(_checks.shape(size))
    bit_generator(rng)
    many = _checks.whole("branches", branches, least=2)
    if isinstance(mechanism, SampleAndAggregate):
        least = 2 * mechanism.family.least_block if mechanism.blocks == "auto" else int(mechanism.blocks)
        mechanism.block_sums(least)
    else:
        mechanism.start()
    chunks = _chunks(x)
    with spending(mechanism.privacy_profile, times=times, label=repr(mechanism), of=mechanism):
        if isinstance(mechanism, SampleAndAggregate):
            return mechanism.drawn(lambda: mechanism.law_of(_block_sums(mechanism, x, chunks, many)), size, rng)
        return state(mechanism, chunks, branches=many).release(size=size, rng=rng)


def state(mechanism: Mechanism, x: Any, *, branches: SupportsIndex = 8) -> State:
    """The state of a mechanism that has read a Dask collection in all its passes. PRIVATE. Parameters as `release`."""
    from dask.delayed import delayed

    many = _checks.whole("branches", branches, least=2)
    made, chunks = mechanism.start(), _chunks(x)
    while True:
        if chunks:
            blank: Any = made.to_bytes()
            if len(blank) > _MESSAGE:
                blank = delayed(blank)
            read, merge = (delayed(partial(task, mechanism), pure=False) for task in (_read, _merged))
            made = _reduced([read(blank, chunk) for chunk in chunks], partial(merge, blank), many)
        if made.number == made.passes:
            return made
        made.next_pass()


def aggregate(randomizer: Randomizer, reports: Any, *, branches: SupportsIndex = 8) -> Aggregate:
    """The aggregate of the reports of a local randomiser in a Dask collection, for its `estimate`.

    Parameters
    ----------
    randomizer : dpfast.local randomiser
    reports : dask.array.Array, or sequence of Delayed
        As `Randomizer.randomize` gives them, in chunks of rows.
    branches : int
        Aggregates that are added by one task, at least 2.

    Returns
    -------
    Aggregate
        That of all reports; sums of doubles are rounded in the order of the tree.
    """
    from dask.delayed import delayed

    many = _checks.whole("branches", branches, least=2)
    parts = [delayed(_aggregated)(randomizer, chunk) for chunk in _chunks(reports)]
    if not parts:
        raise ValueError("the collection has no chunks")
    return Aggregate.from_bytes(_reduced(parts, delayed(_added), many))


def _block_sums(mechanism: SampleAndAggregate, x: Any, chunks: list[Any], branches: int) -> BlockState:
    """The sums over blocks of a collection, each chunk at its position. PRIVATE."""
    from dask.delayed import delayed

    *starts, end = itertools.accumulate(_lengths(x, chunks), initial=0)
    n = _checks.records(end)
    read, merge = (delayed(partial(task, mechanism, n), pure=False) for task in (_summed, _together))
    parts = [read(start, chunk) for start, chunk in zip(starts, chunks, strict=True)]
    made: BlockState = _reduced(parts, merge, branches)
    return made


def _chunks(x: Any) -> list[Any]:
    """The chunks of a collection, in the order of their rows."""
    from dask.delayed import Delayed

    if isinstance(x, Delayed):
        return [x]
    if hasattr(type(x), "rechunk"):  # of the type: a frame has its columns as attributes
        rows = x.rechunk(dict.fromkeys(range(1, x.ndim), -1)) if x.ndim > 1 else x
        return list(rows.to_delayed().ravel())
    return list(x.to_delayed() if hasattr(type(x), "to_delayed") else x)


def _lengths(x: Any, chunks: list[Any]) -> list[int]:
    """The numbers of rows of the chunks: computed if the collection does not know them."""
    import dask

    known = x.chunks[0] if hasattr(type(x), "chunks") else (math.nan,)
    if any(map(math.isnan, known)):
        known = dask.compute(*(dask.delayed(len)(chunk) for chunk in chunks))
    return list(map(int, known))


def _reduced(parts: list[Any], merge: Callable[[list[Any]], Any], branches: int) -> Any:
    """The one that is left when `branches` neighbours at a time are merged, each time by a task."""
    while len(parts) > 1:
        parts = [merge(parts[i : i + branches]) for i in range(0, len(parts), branches)]
    return parts[0].compute()


# ---- what tasks do: they change nothing that they are given ----


def _read(mechanism: Mechanism, blank: bytes, chunk: Any) -> State:
    made = State.from_bytes(blank, mechanism)
    made.update(chunk)
    return made


def _merged(mechanism: Mechanism, blank: bytes, states: list[State]) -> State:
    made = State.from_bytes(blank, mechanism)
    for other in states:
        made.merge(other)
    return made


def _summed(mechanism: SampleAndAggregate, n: int, position: int, chunk: Any) -> BlockState:
    made = mechanism.block_sums(n, position=position)
    made.update(chunk)
    return made


def _together(mechanism: SampleAndAggregate, n: int, states: list[BlockState]) -> BlockState:
    made = mechanism.block_sums(n)
    for other in states:
        made.merge(other)
    return made


def _aggregated(randomizer: Randomizer, reports: Any) -> bytes:
    return randomizer.aggregate(reports).to_bytes()


def _added(aggregates: list[bytes]) -> bytes:
    first, *others = map(Aggregate.from_bytes, aggregates)
    return sum(others, start=first).to_bytes()
