"""Releases, states and sums of reports of Dask collections."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any, SupportsIndex

from dpfast.aggregate import BlockState, SampleAndAggregate
from dpfast.core import checks
from dpfast.core.spending import spending, spending_together
from dpfast.dask import tasks
from dpfast.local.randomizer import Aggregate, Randomizer
from dpfast.mechanisms import Mechanism
from dpfast.mechanisms.mechanism import not_mechanism
from dpfast.random import RandomSource, bit_generator
from dpfast.regression import Corrections, Descent, Fit
from dpfast.streaming import State

_MESSAGE = 2**14  # up to this many bytes are sent with every task, more only once


def release(
    mechanism: Mechanism | Descent | Corrections,
    x: Any,
    *,
    size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    rng: RandomSource = None,
    branches: SupportsIndex = 8,
) -> Any:
    """Release a central mechanism on a Dask collection, as for the same records in memory.

    Parameters
    ----------
    mechanism : Mechanism
        Any mechanism with a state (`Mechanism.start`), or `SampleAndAggregate` of an additive family. Also a
        `dpfast.regression.Descent` or `Corrections` before its first release: all its releases are made, and the result
        is its `Fit`.
    x : dask.array.Array, dask.dataframe.Series or DataFrame, Delayed or sequence of Delayed
        Private records, of shape (n,) or (n, d) as the mechanism requires, in chunks of rows. For records with labels a
        pair (X, y) of an array or frame and an array or series, whose chunks have the same rows; or a frame whose last
        column has the labels.
    size, rng
        See `Mechanism.release`. `size` must be None for these two.
    branches : int
        Number of states that one task merges, at least 2. A worker holds this many states: choose few for a mechanism
        with many columns, whose states are large (https://dpfast.readthedocs.io/en/latest/guides/streaming.html).

    Returns
    -------
    Any
        See `Mechanism.release`; a `Fit` of a `Descent` or of `Corrections`.

    Raises
    ------
    ImportError
        Before anything is charged: a worker of a `dask.distributed` cluster cannot import dpfast.

    Notes
    -----
    Privacy: that of `mechanism`. The scheduler and the workers have access to the records, as they must, and to states,
    which are PRIVATE. With a `dpfast.Ledger` the release is charged before anything is computed.
    Cost: the collection is computed once for each pass of the mechanism; persist it if computing it is expensive and it
    fits. `SampleAndAggregate` forms blocks by position: it takes one pass, after another one that counts the rows of
    chunks if their lengths are unknown.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf, dpfast.dask
    >>> import dask.array as da  # doctest: +SKIP
    >>> median = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 100), epsilon=1.0)
    >>> ages = da.random.default_rng(0).normal(50, 10, 1_000_000, chunks=100_000)  # doctest: +SKIP
    >>> 49 < dpf.dask.release(median, ages) < 51  # doctest: +SKIP
    True
    """
    # Invalid parameters are rejected before anything is charged, and so is a cluster that cannot compute it.
    shape = None if size is None else checks.shape(size)
    times = math.prod(shape or ())
    source = bit_generator(rng)
    many = checks.whole("branches", branches, least=2)
    if isinstance(mechanism, (Descent, Corrections)):
        if size is not None or mechanism.done:
            raise ValueError(
                f"{type(mechanism).__name__} makes all its releases at once: size must be None, and no release made "
                "before"
            )
        chunks = tasks.chunks_of(x)
        _check_workers()
        return _descended(mechanism, chunks, many, rng)
    if not isinstance(mechanism, Mechanism):
        raise TypeError(not_mechanism(mechanism))
    if isinstance(mechanism, SampleAndAggregate):
        least = 2 * mechanism.family.least_block if mechanism.blocks == "auto" else int(mechanism.blocks)
        mechanism.block_sums(least)
    else:
        mechanism.start()
    chunks = tasks.chunks_of(x)
    _check_workers()
    with spending_together((mechanism.cost._replace(times=times),), of=(mechanism,)):
        if isinstance(mechanism, SampleAndAggregate):
            sums = _block_sums(mechanism, x, chunks, many)
            plan = mechanism.plan(sums.n)
            return plan.draw_from(sums, source) if shape is None else plan.draws(sums, shape, source)
        return _state(mechanism, chunks, many).release(size=shape, rng=rng)


def state(mechanism: Mechanism, x: Any, *, branches: SupportsIndex = 8) -> State:
    """Return the state of a mechanism after reading a Dask collection in all passes. PRIVATE. See `release`."""
    many, chunks = checks.whole("branches", branches, least=2), tasks.chunks_of(x)
    _check_workers()
    return _state(mechanism, chunks, many)


def _state(mechanism: Mechanism, chunks: list[Any], branches: int) -> State:
    """Return the state of a mechanism after reading the chunks in all passes. PRIVATE."""
    from dask.delayed import delayed

    made = mechanism.start()
    while True:
        if chunks:
            blank: Any = made.to_bytes()
            if len(blank) > _MESSAGE:
                blank = delayed(blank)
            read, merge = (delayed(partial(task, mechanism), pure=False) for task in (tasks.read, tasks.merged))
            made = tasks.reduced([read(blank, chunk) for chunk in chunks], partial(merge, blank), branches)
        if made.number == made.passes:
            return made
        made.next_pass()


def aggregate(randomizer: Randomizer, reports: Any, *, branches: SupportsIndex = 8) -> Aggregate:
    """Aggregate the reports of a local randomiser in a Dask collection, for its ``estimate``.

    Parameters
    ----------
    randomizer : dpfast.local randomiser
    reports : dask.array.Array, or sequence of Delayed
        Reports from `Randomizer.randomize`, in chunks of rows.
    branches : int
        Number of aggregates that one task adds, at least 2.

    Returns
    -------
    Aggregate
        The aggregate of all reports; sums of doubles are rounded in the order of the tree.
    """
    from dask.delayed import delayed

    many = checks.whole("branches", branches, least=2)
    parts = [delayed(tasks.aggregated)(randomizer, chunk) for chunk in tasks.chunks_of(reports)]
    if not parts:
        raise ValueError("the collection has no chunks")
    _check_workers()
    return Aggregate.from_bytes(tasks.reduced(parts, delayed(tasks.added), many))


def _check_workers() -> None:
    """Raise an ImportError if workers of a cluster lack dpfast: tasks that they cannot read would wait for ever."""
    from dask.base import get_scheduler

    client: Any = getattr(get_scheduler(), "__self__", None)  # of the bound method of a client of dask.distributed
    if hasattr(type(client), "scheduler_info"):
        found = client.run(exec, "import dpfast.dask", {}, on_error="return")
        lacking = sorted(worker for worker, error in found.items() if isinstance(error, ImportError))
        if lacking:
            raise ImportError(f"dpfast cannot be imported on the workers {', '.join(lacking)}: {found[lacking[0]]}")


def _descended(descent: Descent | Corrections, chunks: list[Any], branches: int, rng: RandomSource) -> Fit:
    """Return the fit after all releases, charged together."""
    with spending(descent.privacy_profile, label=repr(descent)):
        while (mechanism := descent.mechanism) is not None:
            descent.advance(_state(mechanism, chunks, branches).release(rng=rng))
    return descent.result


def _block_sums(mechanism: SampleAndAggregate, x: Any, chunks: list[Any], branches: int) -> BlockState:
    """Return the sums over the blocks of a collection, with each chunk at its position. PRIVATE."""
    from dask.delayed import delayed

    *starts, end = itertools.accumulate(tasks.lengths(x, chunks), initial=0)
    n = checks.records(end)
    read, merge = (delayed(partial(task, mechanism, n), pure=False) for task in (tasks.summed, tasks.together))
    parts = [read(start, chunk) for start, chunk in zip(starts, chunks, strict=True)]
    made: BlockState = tasks.reduced(parts, merge, branches)
    return made
