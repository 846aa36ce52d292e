"""Releases for many groups of records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast import _checks, _containers
from dpfast._kernels import _groups
from dpfast._threads import each
from dpfast.grid import Grid
from dpfast.laws import anywhere
from dpfast.mechanisms import InverseSensitivity, Mechanism, Quantiles, StatisticMechanism
from dpfast.random import RandomSource, Streams, bit_generator, streams
from dpfast.spending import spending

_BLOCK = 2**10  # number of groups that draw from one stream
_LARGEST = _groups.LARGEST_GROUP

_Draw = Callable[[int, int, np.random.BitGenerator], None]


def by_group(
    mechanism: Mechanism,
    x: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    num_groups: SupportsIndex | None = None,
    rng: RandomSource = None,
    workers: int = 1,
) -> NDArray[np.float64]:
    """Release one number, or vector, for each group of records; one epsilon covers all groups together.

    If the mechanism is for one replaced record, labels and groups are public and the same for neighbours. If it is for
    one record added or removed, they are private: the guarantee is for one record together with its label.

    Parameters
    ----------
    mechanism : Mechanism
        The release for each group: floats, or arrays of one shape.
    x : array_like of shape (n,), or (n, d) for a mechanism of rows
        Private data, of the kind that the mechanism requires; never modified. NaN counts as the lower bound unless the
        mechanism's grid says otherwise; for ``missing="half"`` by its position in its group.
    labels : array_like of int, shape (n,)
        The group of each record, 0..num_groups - 1, in any order. A record whose label is outside this range, masked or
        null is dropped. With private labels, a record whose label is not a whole number (NaN, None in a list, 0.5,
        text) is also dropped. A float that is a whole number is a valid label.
    offsets : array_like of int, shape (num_groups + 1,)
        Instead of `labels`, for records in the order of their groups: group g is ``x[offsets[g]:offsets[g + 1]]``.
        Nondecreasing from 0 to n, and public, as the layout of the records in memory.
    num_groups : int, optional
        G, public. Default for public labels: the largest label + 1.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Threads, -1 for one per core; the result does not depend on it.

    Returns
    -------
    ndarray of float64, shape (G,) or (G, ...)
        A random point of the grid for an empty group, and NaN if the mechanism releases None.

    Raises
    ------
    TypeError, ValueError
        A mechanism of scores, or one that does not release numbers; neither or both of `labels` and `offsets`; a number
        of labels that differs from the number of records; public labels that are not integers; private labels with a
        dtype of text, objects or dates; offsets that are out of order; `num_groups` missing with private labels; an
        empty public group without a grid for one number; errors of the mechanism.

    Notes
    -----
    Privacy: each record is in one group, so all releases together have the guarantee of one of them
    (docs/proofs/groups.md), and a ledger charges one. Each group's release has the law of the mechanism on its records,
    and groups are independent.
    Cost: for one quantile by `InverseSensitivity` a counting sort and one kernel call per 1024 groups, about a tenth of
    a loop over ``np.median`` for groups of 100; for other mechanisms a loop. Timing is outside the guarantee.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> rng = np.random.default_rng(0)
    >>> school, score = rng.integers(0, 50, 20_000), rng.normal(60, 10, 20_000)
    >>> median = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 100), epsilon=1.0)
    >>> released = dpf.by_group(median, score, labels=school, num_groups=50)
    >>> released.shape, bool(np.abs(released - 60).max() < 5)
    ((50,), True)
    """
    if not isinstance(mechanism, Mechanism):
        raise TypeError(f"mechanism must be a dpfast.Mechanism, not {type(mechanism).__name__}")
    _checks.reads_records(mechanism)
    if not mechanism.releases_numbers:
        raise TypeError(f"a {type(mechanism).__name__} does not release numbers, which by_group puts into one array")
    if (labels is None) == (offsets is None):
        raise TypeError("give either labels= or offsets=")
    threads, _ = _checks.threads(workers), bit_generator(rng)
    groups = None if num_groups is None else _checks.whole("num_groups", num_groups)
    if groups is None and offsets is None and mechanism.hides_n:
        raise TypeError("num_groups is needed: with neighbors='add-remove' labels are private")
    with spending(mechanism.privacy_profile, label=f"{mechanism!r} for each group", of=mechanism):
        values = _containers.numbers("x", x, dimensions=mechanism.dimensions)
        if values.ndim not in (1, 2):
            raise ValueError(f"x must have a record in each entry or row, not shape {_containers.shape_of(values)}")
        if offsets is not None:
            ends, order = _offsets(offsets, len(values), groups), None
        else:
            order = _containers.labels(labels, private=mechanism.hides_n)  # type: ignore[arg-type]
            if order.shape != (len(values),):
                raise ValueError("labels must have one entry for each record of x")
            if groups is None:
                groups = int(order.max(initial=-1)) + 1
            ends = np.zeros(groups + 1, np.int64)
        if isinstance(mechanism, InverseSensitivity) and mechanism.has_group_kernel:
            if values.ndim != 1:
                raise ValueError(f"x must be one-dimensional, not of shape {_containers.shape_of(values)}")
            return _quantiles(mechanism, values, order, ends, rng, threads)
        return _one_by_one(mechanism, values, order, ends, rng, threads)


def _offsets(offsets: Any, n: int, groups: int | None) -> NDArray[np.int64]:
    ends = np.ascontiguousarray(_containers.integers("offsets", offsets))
    if ends.ndim != 1 or ends.size < 1 or (groups is not None and ends.size != groups + 1):
        wanted = "num_groups + 1" if groups is None else groups + 1
        raise ValueError(f"offsets must have {wanted} entries")
    if ends[0] != 0 or ends[-1] != n or (np.diff(ends) < 0).any():
        raise ValueError("offsets must rise from 0 to the number of records of x")
    return ends


def _blocks(draw: _Draw, groups: int, rng: RandomSource, threads: int) -> None:
    """Call draw(start, stop, source) for blocks of groups, each with its own stream."""
    parts: Streams = streams(rng, -(-groups // _BLOCK))

    def block(i: int) -> None:
        draw(i * _BLOCK, min((i + 1) * _BLOCK, groups), parts[i])

    each(block, range(len(parts)), threads)


def _quantiles(
    mechanism: InverseSensitivity,
    values: NDArray[Any],
    labels: NDArray[np.int64] | None,
    offsets: NDArray[np.int64],
    rng: RandomSource,
    threads: int,
) -> NDArray[np.float64]:
    """Release quantiles by one kernel call per block; groups too large for an efficient sort are drawn one by one."""
    grid = mechanism.grid
    if grid.missing == "drop":
        labels, offsets = _without_missing(values, labels, offsets)
    if isinstance(grid, Grid) and values.dtype == np.float64 and values.flags.aligned:
        kernel: dict[str, Any] = {"lower": grid.lower, "upper": grid.upper, "step": grid.step, "first": grid.first}
        missing = grid.nan_value
    else:  # for other grids and dtypes, use codes as records on a grid from 0 with step 1
        absent = np.isnan(values) if values.dtype.kind == "f" and grid.missing == "half" else None
        values, missing = grid.with_missing(grid.nan_value).encode(values).astype(np.float64), 0.0
        kernel = {"lower": 0.0, "upper": float(grid.size - 1), "step": 1.0, "first": 0.0}
        if absent is not None:
            values[absent] = np.nan
    half = grid.missing == "half"
    if labels is not None:
        records = np.empty(len(values))
        _groups.by_label(labels, values, np.nan if half else missing, offsets, records)
    else:
        records = values.copy() if half else np.where(np.isnan(values), missing, values)
    if half:
        _fill_halves(records[: offsets[-1]], offsets, kernel["lower"], kernel["upper"])
    count = len(offsets) - 1
    codes, plan = np.empty(count, np.int64), mechanism.group_plan(offsets, _LARGEST)
    exact_grid = Grid(kernel["lower"], kernel["upper"], step=kernel["step"])

    def draw(start: int, stop: int, source: np.random.BitGenerator) -> None:
        out, ends = codes[start:stop], offsets[start : stop + 1]
        reached = 0
        while (reached := _groups.draw_quantiles(source, records, ends, reached, out, **plan, **kernel)) < len(out):
            group = records[ends[reached] : ends[reached + 1]]
            out[reached] = mechanism.draw_code(group, exact_grid, source)
            reached += 1

    _blocks(draw, count, rng, threads)
    return grid.decode(codes)


def _without_missing(
    values: NDArray[Any], labels: NDArray[np.int64] | None, offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Labels that are invalid where records are missing, and empty offsets."""
    if labels is None:
        labels = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    kept = labels if values.dtype.kind != "f" else np.where(np.isnan(values), -1, labels)
    return kept, np.zeros_like(offsets)


def _fill_halves(records: NDArray[np.float64], offsets: NDArray[np.int64], lower: float, upper: float) -> None:
    """Replace NaN by the lower bound at even positions in a group, by the upper one at odd positions."""
    absent = np.flatnonzero(np.isnan(records))
    starts = offsets[np.searchsorted(offsets, absent, side="right") - 1]
    records[absent] = np.where((absent - starts) % 2, upper, lower)


def _one_by_one(
    mechanism: Mechanism,
    values: NDArray[Any],
    labels: NDArray[np.int64] | None,
    offsets: NDArray[np.int64],
    rng: RandomSource,
    threads: int,
) -> NDArray[np.float64]:
    """Release with any mechanism, one group after another."""
    if labels is not None:
        inside = (labels >= 0) & (labels < len(offsets) - 1)
        kept = labels if inside.all() else labels[inside]
        counts = np.bincount(kept, minlength=len(offsets) - 1)
        order = np.argsort(kept, kind="stable")
        values = (values if inside.all() else values[inside])[order]
        np.cumsum(counts, out=offsets[1:])
    count = len(offsets) - 1
    empty = np.diff(offsets) == 0
    scalar = isinstance(mechanism, StatisticMechanism) and not isinstance(mechanism, Quantiles)
    if empty.any() and not scalar and not mechanism.hides_n:
        raise ValueError(f"group {int(np.flatnonzero(empty)[0])} is empty: {type(mechanism).__name__} needs records")
    released: list[Any] = [None] * count

    def draw(start: int, stop: int, source: np.random.BitGenerator) -> None:
        for g in range(start, stop):
            if empty[g] and not mechanism.hides_n:
                released[g] = anywhere(mechanism.grid, source)  # type: ignore[attr-defined]
            else:
                released[g] = mechanism(values[offsets[g] : offsets[g + 1]], rng=source)

    _blocks(draw, count, rng, threads)
    shape = next((np.shape(value) for value in released if value is not None), values.shape[1:])  # only rows give None
    out = np.full((count, *shape), np.nan)
    for g, value in enumerate(released):
        if value is not None:
            out[g] = value
    return out
