"""Releases of Dask collections: states are made where the chunks are and merged in a tree; needs `dask`.

Nothing but states moves, as bytes, and the one draw is made by the caller. A lost worker does no harm: a chunk that is
read again gives the same state.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, SupportsIndex

from dpfast import _checks
from dpfast.local.randomizer import Aggregate, Randomizer
from dpfast.mechanism import Mechanism
from dpfast.random import RandomSource, bit_generator
from dpfast.spending import spending
from dpfast.streaming import State


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
        Any that has a state (`Mechanism.start`).
    x : dask.array.Array, dask.dataframe.Series or DataFrame, or sequence of Delayed
        Private records, of shape (n,) or (n, d) as the mechanism takes them, in chunks of rows.
    size, rng
        As for `Mechanism.release`.
    branches : int
        States that are merged by one task, at least 2.

    Returns
    -------
    As `Mechanism.release`.

    Notes
    -----
    Privacy: `mechanism`'s. The scheduler and the workers see the records, as they must, and states, which are PRIVATE.
    With a `dpfast.Ledger` the release is charged before anything is computed.
    Cost: the collection is computed once for each pass of the mechanism: persist it if that is dear and it fits.

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
    _checks.whole("branches", branches, least=2)
    mechanism.start()
    with spending(mechanism.privacy_profile, times=times, label=repr(mechanism)):
        return state(mechanism, x, branches=branches).release(size=size, rng=rng)


def state(mechanism: Mechanism, x: Any, *, branches: SupportsIndex = 8) -> State:
    """The state of a mechanism that has read a Dask collection in all its passes. PRIVATE. Parameters as `release`."""
    from dask.delayed import delayed

    many = _checks.whole("branches", branches, least=2)
    made, chunks = mechanism.start(), _chunks(x)
    while True:
        blank = delayed(made.to_bytes(), pure=True)
        read = [delayed(_read)(mechanism, blank, chunk) for chunk in chunks]
        made = State.from_bytes(_reduced(read or [blank], _merged, mechanism, many), mechanism)
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
    return Aggregate.from_bytes(_reduced(parts, _added, randomizer, many))


def _chunks(x: Any) -> list[Any]:
    """The chunks of a collection, in the order of their rows."""
    if hasattr(x, "rechunk"):
        rows = x.rechunk(dict.fromkeys(range(1, x.ndim), -1)) if x.ndim > 1 else x
        return list(rows.to_delayed().ravel())
    return list(x.to_delayed() if hasattr(x, "to_delayed") else x)


def _reduced(parts: list[Any], merge: Callable[..., bytes], of: Any, branches: int) -> bytes:
    """The one that is left when `branches` neighbours at a time are merged."""
    from dask.delayed import delayed

    while len(parts) > 1:
        parts = [delayed(merge)(of, parts[i : i + branches]) for i in range(0, len(parts), branches)]
    data: bytes = parts[0].compute()
    return data


def _read(mechanism: Mechanism, blank: bytes, chunk: Any) -> bytes:
    made = State.from_bytes(blank, mechanism)
    made.update(chunk)
    return made.to_bytes()


def _merged(mechanism: Mechanism, states: list[bytes]) -> bytes:
    first, *others = (State.from_bytes(data, mechanism) for data in states)
    for other in others:
        first.merge(other)
    return first.to_bytes()


def _aggregated(randomizer: Randomizer, reports: Any) -> bytes:
    return randomizer.aggregate(reports).to_bytes()


def _added(_: Randomizer, aggregates: list[bytes]) -> bytes:
    first, *others = map(Aggregate.from_bytes, aggregates)
    return sum(others, start=first).to_bytes()
