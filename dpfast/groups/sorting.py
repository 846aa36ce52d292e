"""Records in the order of their groups: a counting sort, by ranges of labels if there are many groups."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _groups
from dpfast._kernels._threads import each

_TOGETHER = 2**12  # groups of a range: their places are in the first-level cache, most of their records in the second
_MOST_RANGES = 2**10
_DIGITS = 16
_FEW = 2**17  # groups whose places, and the next records of each, stay in the second-level cache
_PART = 2**16  # records of a thread, at least
_PAGE = 2**12  # bytes


def sorted_by_label(
    labels: NDArray[np.int64], values: NDArray[np.float64], missing: float, groups: int, threads: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the records of groups 0..groups - 1 in the order of their labels, and where each group begins.

    Group g is out[offsets[g]:offsets[g + 1]]. Stable; other labels are dropped, NaN becomes `missing`. The
    result does not depend on `threads`.
    """
    n, offsets = len(values), np.zeros(groups + 1, np.int64)
    out = np.empty(n)
    if groups < _FEW or n < _PART:
        _groups.by_label(labels, values, missing, offsets, out)
        return out, offsets
    shift = (max(_TOGETHER, -(-groups // _MOST_RANGES)) - 1).bit_length()
    shift = min(shift, _DIGITS)  # of a label within its range
    ranges, parts = (groups - 1 >> shift) + 1, min(threads, n // _PART)
    bounds = [n * i // parts for i in range(parts + 1)]
    counts, low = np.zeros((parts, ranges), np.int64), np.empty(n, np.uint16)

    def count(i: int) -> None:
        part = slice(bounds[i], bounds[i + 1])
        _groups.count_ranges(labels[part], groups, shift, counts[i])
        if parts > 1:  # each page is made by one thread: in `spread` several would write to it first, and each make one
            out[part][:: _PAGE // out.itemsize] = 0
            low[part][:: _PAGE // low.itemsize] = 0

    def spread(i: int) -> None:
        part = slice(bounds[i], bounds[i + 1])
        _groups.by_range(labels[part], values[part], missing, groups, shift, places[i], low, out)

    def sort(b: int) -> None:
        scratch = np.empty(n)  # whose size is public; no more of it is used than a range needs
        _groups.within_ranges(low, out, ends, b, min(b + step, ranges), shift, offsets, scratch)

    each(count, range(parts), threads)
    ends = np.zeros(ranges + 1, np.int64)
    np.cumsum(counts.sum(axis=0), out=ends[1:])
    places = ends[:-1] + np.cumsum(counts, axis=0) - counts  # of each part in each range
    each(spread, range(parts), threads)
    step = -(-ranges // (4 * parts))
    each(sort, range(0, ranges, step), threads)
    return out, offsets
