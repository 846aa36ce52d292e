"""The draws of all groups: one kernel call per block of groups, or the mechanism for each group."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _segments
from dpfast._kernels._threads import each
from dpfast.core.traps import Trap, warn
from dpfast.groups.sorting import sorted_by_label
from dpfast.mechanisms import Mechanism
from dpfast.random import RandomSource, Streams, streams
from dpfast.streaming import Counted

_BLOCK = 2**10  # number of groups that draw from one stream
_CALLS, _BLOCKS = 16, 2**5  # calls of a thread, at least; blocks of a call, at most

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

    def sizes(self, values: Any) -> NDArray[np.int64]:
        """Return the number of records of each group; of those that are counted, not of their values."""
        if not isinstance(values, Counted):
            return np.diff(self.ends)
        self.check_records(len(values.counts))
        counts, ends = self.sorted(values.counts, 1)
        return np.diff(np.append(0, np.cumsum(counts))[ends])

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

    def sorted(
        self,
        values: Any,
        threads: int,
        *,
        missing: float = math.nan,
        dropped: NDArray[np.bool_] | None = None,
    ) -> tuple[Any, NDArray[np.int64]]:
        """Return the records in the order of their groups, and where each group begins and ends.

        NaN in doubles becomes `missing`, and records that are `dropped` are left out.
        """
        if dropped is not None and dropped.any():
            labels = np.repeat(np.arange(self.count), np.diff(self.ends)) if self.labels is None else self.labels
            return Groups(self.count, np.where(dropped, -1, labels)).sorted(values, threads, missing=missing)
        if self.labels is None:
            return values if math.isnan(missing) else np.where(np.isnan(values), missing, values), self.ends
        if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype == np.float64 and values.flags.aligned:
            out, ends = sorted_by_label(self.labels, values, missing, self.count, threads)
            self.__dict__["ends"] = ends  # so that `ends` need not count again
            return out[: ends[-1]], ends
        return values[self._order], self.ends

    def sums(self, codes: NDArray[np.int64], last: int, *, half: bool, squares: bool) -> NDArray[np.int64]:
        """Return the number of records of each group, the sum of their codes and, if wanted, the two words of that of
        the squares, in columns: `Grouping.sums`.
        """
        out = np.zeros((self.count, 4 if squares else 2), np.int64)
        if self.labels is None:
            _segments.add_by_offset(np.ascontiguousarray(self.ends), codes, last, half, out)
        else:
            _segments.add_by_label(self.labels, codes, last, half, out)
            if half or np.minimum.reduce(codes, initial=0) >= 0:  # no record is left out: `ends` need not count again
                ends = self.__dict__["ends"] = np.zeros(self.count + 1, np.int64)
                np.add.accumulate(out[:, 0], out=ends[1:])
        return out


def draw(
    mechanism: Mechanism, values: NDArray[Any] | Counted, groups: Groups, rng: RandomSource, threads: int
) -> NDArray[np.float64]:
    """Return a release for each group, in float64; NaN for None, and for an empty group if groups are sparse."""
    fills = mechanism.hides_n or mechanism.fills_empty_groups
    drawn = mechanism.plan().groups(values, groups, threads)  # sorts the records, which counts the groups
    empty = np.zeros(0, np.int64) if fills and not groups.sparse else np.flatnonzero(groups.sizes(values) == 0)
    if empty.size and not (fills or groups.sparse):
        raise ValueError(f"group {int(empty[0])} is empty: {type(mechanism).__name__} needs records")
    parts: list[tuple[int, NDArray[np.float64]]] = []

    def block(start: int, stop: int, source: np.random.BitGenerator) -> None:
        made = drawn(start, stop, source)
        if made is not None:
            parts.append((start, made))

    _blocks(block, groups.count, rng, threads)
    shape = parts[0][1].shape[1:] if parts else _shape(mechanism, values)
    out = np.full((groups.count, *shape), np.nan)
    for start, part in parts:
        out[start : start + len(part)] = part
    out[empty] = np.nan
    return out


def warn_of_groups(mechanism: Mechanism, sizes: NDArray[np.int64] | None) -> None:
    """Warn if groups have too few records for the mechanism to be of use. None: sizes are private."""
    if sizes is None:
        warn(mechanism.plan().traps)
        return
    sizes = sizes[sizes > 0]
    smallest = int(sizes.min()) if sizes.size else 0
    if smallest and (traps := mechanism.plan(smallest).traps):
        distinct, groups = np.unique(sizes, return_counts=True)
        first = bisect.bisect_left(distinct, True, key=lambda n: not mechanism.plan(int(n)).traps)
        few = f"{int(groups[:first].sum()):,} of {sizes.size:,} groups have few records, see .few of releases by key"
        warn(Trap(trap.category, f"{few}. Of the smallest: {trap.text}") for trap in traps)


def _blocks(draw: _Draw, groups: int, rng: RandomSource, threads: int) -> None:
    """Call draw(start, stop, source) for blocks of groups, each with its own stream; several blocks of the same source.

    Threads wait for the lock of the interpreter before and after a call, which takes longer than the call's Python.
    """
    parts: Streams = streams(rng, -(-groups // _BLOCK))
    if not parts.shared:
        step = 1
    elif threads == 1:
        step = max(len(parts), 1)
    else:
        step = min(max(len(parts) // (_CALLS * threads), 1), _BLOCKS)

    def blocks(i: int) -> None:
        draw(i * _BLOCK, min((i + step) * _BLOCK, groups), parts[i])

    each(blocks, range(0, len(parts), step), threads)


def _shape(mechanism: Mechanism, values: NDArray[Any] | Counted) -> tuple[int, ...]:
    """Return the shape of one release, if none has been made: of no groups, of groups without
    records, of failed tests.
    """
    if mechanism.parts:
        return (len(mechanism.parts),)
    if mechanism.hides_n:
        return np.shape(mechanism.plan().draw(mechanism.values_of(values[:0]), np.random.PCG64(0)))
    return () if isinstance(values, Counted) else values.shape[1:]
