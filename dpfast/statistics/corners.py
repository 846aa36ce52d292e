"""The few records that decide Huber's estimate and its attack range: those near its corners."""

from __future__ import annotations

import numpy as np

from dpfast._kernels import _levels
from dpfast.streaming import Integers

_FEW = 2**13  # records that are sorted in less time
_CELLS = 2**13

Rest = tuple[int, int, int, int, int, int]


def near_corners(codes: Integers, corner: int, last: int, levels: int) -> tuple[Integers, Rest] | None:
    """Return the sorted codes near the corners of the estimate, and what `huber_ranges` takes of the others.

    None if all codes must be sorted: if they are few, or the estimate moves by the corner, or to the ends of the data.

    The sum of clip(theta - x, -corner, corner) falls in each code x, and t records change it by at most 2 t corner.
    So counts of codes by cells, all at the lower or all at the upper ends of these, enclose all estimates in integers.
    """
    if len(codes) <= _FEW or 4 * len(codes) * last >= 2**63:
        return None
    shift = max(last.bit_length() - _CELLS.bit_length() + 1, 0)
    counts = np.zeros((last >> shift) + 1, np.int64)
    _levels.count_cells(codes, shift, counts)
    starts, allowed = np.arange(counts.size + 1) << shift, 2 * corner * (levels - 1)
    below = _clipped_sums(counts, starts[:-1], starts, corner) + allowed < 0
    reached = _clipped_sums(counts, starts[1:] - 1, starts, corner) - allowed >= 0
    least = int(starts[np.count_nonzero(below) - 1]) if below[0] else 0
    greatest = min(int(starts[np.argmax(reached)]), last) if reached[-1] else last
    if greatest - least >= 2 * corner:
        return None
    near, rest = _levels.near_corners(codes, corner, least, greatest)
    return (near, rest) if min(rest[0], rest[2]) >= levels - 1 else None


def _clipped_sums(counts: Integers, codes: Integers, thetas: Integers, corner: int) -> Integers:
    """Return the sums of clip(theta - x, -corner, corner) over so many records x of each of the ascending codes."""
    numbers = np.concatenate([[0], np.cumsum(counts)])
    totals = np.concatenate([[0], np.cumsum(counts * codes)])
    first, final = (np.searchsorted(codes, thetas + side) for side in (-corner, corner))
    inside = (numbers[final] - numbers[first]) * thetas - (totals[final] - totals[first])
    beyond = numbers[first] - (numbers[-1] - numbers[final])
    return np.asarray(corner * beyond + inside)
