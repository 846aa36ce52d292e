"""The draws of all groups: one kernel call per block of groups, or the mechanism for each group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast import _containers
from dpfast._kernels import _groups
from dpfast._kernels._threads import each
from dpfast.grid import Grid
from dpfast.groups.sorting import sorted_by_label
from dpfast.laws import anywhere
from dpfast.mechanisms import InverseSensitivity, Mechanism, Quantiles, StatisticMechanism
from dpfast.random import RandomSource, Streams, streams
from dpfast.streaming import Counted

_BLOCK = 2**10  # number of groups that draw from one stream
_CALLS, _BLOCKS = 16, 2**5  # calls of a thread, at least; blocks of a call, at most
_LARGEST = _groups.LARGEST_GROUP

LABELS = "labels must have one entry for each record of x"
OFFSETS = "offsets must rise from 0 to the number of records of x"

_Draw = Callable[[int, int, np.random.BitGenerator], None]


@dataclass(frozen=True)
class Groups:
    """The groups of records: by labels 0..count - 1, other labels being in no group, or by offsets.

    `sparse` means that an empty group releases NaN; it is for public groups only.
    """

    count: int
    labels: NDArray[np.int64] | None = None
    offsets: NDArray[np.int64] | None = None
    sparse: bool = False

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """Group g is the records ends[g] to ends[g + 1] in the order of the groups."""
        if self.labels is None:
            assert self.offsets is not None
            return self.offsets
        ends = np.zeros(self.count + 1, np.int64)
        np.cumsum(np.bincount(self._kept, minlength=self.count), out=ends[1:])
        return ends

    def check_records(self, n: int) -> None:
        """Raise a ValueError if these are not the groups of n records."""
        if self.labels is not None and len(self.labels) != n:
            raise ValueError(LABELS)
        if self.offsets is not None and self.offsets[-1] != n:
            raise ValueError(OFFSETS)

    def sizes(self, x: Any) -> NDArray[np.int64]:
        """The number of records of each group of x, which may be counted, or the entries that have labels."""
        if not isinstance(x, Counted):
            return np.diff(self.ends)
        self.check_records(len(x.counts))
        counts = x.counts[self._order] if self.labels is not None else x.counts
        return np.diff(np.append(0, np.cumsum(counts))[self.ends])

    @cached_property
    def _inside(self) -> NDArray[np.bool_]:
        assert self.labels is not None
        return (self.labels >= 0) & (self.labels < self.count)

    @cached_property
    def _kept(self) -> NDArray[np.int64]:
        assert self.labels is not None
        return self.labels if self._inside.all() else self.labels[self._inside]

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        """The places of the records in the order of their groups, by sorts of 16 bits, which take linear time."""
        order = np.argsort((self._kept & 0xFFFF).astype(np.uint16), kind="stable")
        for shift in range(16, (self.count - 1).bit_length(), 16):
            digits = ((self._kept >> shift) & 0xFFFF).astype(np.uint16)
            order = order[np.argsort(digits[order], kind="stable")]
        return order if len(order) == len(self._inside) else np.flatnonzero(self._inside)[order]

    def sort(self, values: NDArray[Any] | Counted, threads: int) -> NDArray[Any] | Counted:
        """The records in the order of their groups."""
        if self.labels is None:
            return values
        if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype == np.float64 and values.flags.aligned:
            out, offsets = sorted_by_label(self.labels, values, np.nan, self.count, threads)
            return out[: offsets[-1]]
        return values[self._order]


def draw(
    mechanism: Mechanism, values: NDArray[Any] | Counted, groups: Groups, rng: RandomSource, threads: int
) -> NDArray[np.float64]:
    """A release for each group, in float64."""
    if isinstance(values, Counted):
        return _one_by_one(mechanism, values, groups, rng, threads)
    if isinstance(mechanism, InverseSensitivity) and mechanism.has_group_kernel:
        if values.ndim != 1:
            raise ValueError(f"x must be one-dimensional, not of shape {_containers.shape_of(values)}")
        return _quantiles(mechanism, values, groups, rng, threads)
    return _one_by_one(mechanism, values, groups, rng, threads)


def _blocks(draw: _Draw, groups: int, rng: RandomSource, threads: int) -> None:
    """Call draw(start, stop, source) for blocks of groups, each with its own stream; several blocks of the same source.

    Threads wait for the lock of the interpreter before and after a call, which takes longer than the call's Python.
    """
    parts: Streams = streams(rng, -(-groups // _BLOCK))
    step = min(max(len(parts) // (_CALLS * threads), 1), _BLOCKS) if parts.shared else 1

    def blocks(i: int) -> None:
        draw(i * _BLOCK, min((i + step) * _BLOCK, groups), parts[i])

    each(blocks, range(0, len(parts), step), threads)


def _quantiles(
    mechanism: InverseSensitivity,
    values: NDArray[Any],
    groups: Groups,
    rng: RandomSource,
    threads: int,
) -> NDArray[np.float64]:
    """Release quantiles by one kernel call per block; groups too large for an efficient sort are drawn one by one."""
    grid, labels = mechanism.grid, groups.labels
    if grid.missing == "drop":
        labels = _without_missing(values, groups)
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
        records, offsets = sorted_by_label(labels, values, np.nan if half else missing, groups.count, threads)
    else:
        offsets = groups.ends
        records = values.copy() if half else np.where(np.isnan(values), missing, values)
    if half:
        _fill_halves(records[: offsets[-1]], offsets, kernel["lower"], kernel["upper"])
    codes, plan = np.empty(groups.count, np.int64), mechanism.group_plan(offsets, _LARGEST)
    exact_grid = Grid(kernel["lower"], kernel["upper"], step=kernel["step"])

    def draw(start: int, stop: int, source: np.random.BitGenerator) -> None:
        out, ends = codes[start:stop], offsets[start : stop + 1]
        reached = 0
        while (reached := _groups.draw_quantiles(source, records, ends, reached, out, **plan, **kernel)) < len(out):
            group = records[ends[reached] : ends[reached + 1]]
            out[reached] = mechanism.draw_code(group, exact_grid, source)
            reached += 1

    _blocks(draw, groups.count, rng, threads)
    released = grid.decode(codes)
    if groups.sparse:
        released[np.diff(offsets) == 0] = np.nan
    return released


def _without_missing(values: NDArray[Any], groups: Groups) -> NDArray[np.int64]:
    """Labels that are invalid where records are missing."""
    labels = np.repeat(np.arange(groups.count), np.diff(groups.ends)) if groups.labels is None else groups.labels
    return labels if values.dtype.kind != "f" else np.where(np.isnan(values), -1, labels)


def _fill_halves(records: NDArray[np.float64], offsets: NDArray[np.int64], lower: float, upper: float) -> None:
    """Replace NaN by the lower bound at even positions in a group, by the upper one at odd positions."""
    absent = np.flatnonzero(np.isnan(records))
    starts = offsets[np.searchsorted(offsets, absent, side="right") - 1]
    records[absent] = np.where((absent - starts) % 2, upper, lower)


def _one_by_one(
    mechanism: Mechanism,
    values: NDArray[Any] | Counted,
    groups: Groups,
    rng: RandomSource,
    threads: int,
) -> NDArray[np.float64]:
    """Release with any mechanism, one group after another."""
    values, ends = groups.sort(values, threads), groups.ends
    before = np.append(0, np.cumsum(values.counts))[ends] if isinstance(values, Counted) else ends
    empty = np.diff(before) == 0
    scalar = isinstance(mechanism, StatisticMechanism) and not isinstance(mechanism, Quantiles)
    if empty.any() and not (scalar or mechanism.hides_n or groups.sparse):
        raise ValueError(f"group {int(np.flatnonzero(empty)[0])} is empty: {type(mechanism).__name__} needs records")
    released: list[Any] = [None] * groups.count

    def draw(start: int, stop: int, source: np.random.BitGenerator) -> None:
        for g in range(start, stop):
            if mechanism.hides_n or not empty[g]:
                released[g] = mechanism.part(values[ends[g] : ends[g + 1]], rng=source)
            elif scalar:
                measure = getattr(mechanism, "base_measure", None)
                released[g] = anywhere(mechanism.grid, source, measure)  # type: ignore[attr-defined]

    _blocks(draw, groups.count, rng, threads)
    out = np.full((groups.count, *_shape(mechanism, values, released)), np.nan)
    for g, value in enumerate(released):
        if value is not None:
            out[g] = value
    if groups.sparse:
        out[empty] = np.nan
    return out


def _shape(mechanism: Mechanism, values: NDArray[Any] | Counted, released: list[Any]) -> tuple[int, ...]:
    """The shape of one release. Only groups without records, and failed tests of rows, release None."""
    if isinstance(mechanism, Quantiles):
        return (len(mechanism.qs),)
    made = next((value for value in released if value is not None), None)
    if made is None and mechanism.hides_n:  # a release without data, of which only the shape is used
        made = mechanism.part(values[:0], rng=np.random.PCG64(0))
    if made is None:
        return () if isinstance(values, Counted) else values.shape[1:]
    return np.shape(made)
