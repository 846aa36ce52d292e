"""Nonnegative weights from the noisy counts of a histogram, by post-processing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

RULES = ("auto", "simplex", "halves", "clip")
MOST_AT_ONCE = 64  # cells that "auto" projects together

Counts = NDArray[np.int64]


def consistent(counts: Counts, rule: str, n: int | None) -> Counts:
    """Nonnegative weights, not all 0, from counts of any shape, by one of `RULES`; n is the number of records or None.

    The sum of the weights is n, or the sum of the counts, at least 1; with "clip" it follows from the noise.
    """
    if rule == "auto":
        rule = "simplex" if counts.size <= MOST_AT_ONCE else "halves"
    if rule == "clip":
        weights = np.maximum(counts, 0)
    else:
        total = max(int(counts.sum()), 1) if n is None else n
        project = nearest_with_sum if rule == "simplex" else nearest_by_halves
        weights = project(counts.reshape(-1), total).reshape(counts.shape)
    return weights if weights.any() else np.ones_like(weights)


def nearest_with_sum(counts: Counts, n: int) -> Counts:
    """Return the nonnegative integers that sum to n and are nearest to `counts` in the l2 norm.

    They are max(counts - t, 0) for the largest integer t that leaves a sum of at least n, minus 1 at as many positive
    positions as the sum is too large. All choices of positions are equally near; they are spread evenly.
    """
    excess, positive = -n, 0
    for count in np.sort(counts)[::-1].tolist():
        if count * positive <= excess:
            break  # this count and all that are smaller become 0
        excess, positive = excess + count, positive + 1
    t, excess = divmod(excess, positive)
    nearest = np.maximum(counts - t, 0)
    if excess:
        nearest[np.flatnonzero(nearest)[np.arange(excess) * positive // excess]] -= 1
    return nearest


def nearest_by_halves(counts: Counts, n: int) -> Counts:
    """Nonnegative integers that sum to n, from the whole to its halves, their halves and so on.

    The sum of a part is divided between its two halves: nearest to their counts in the least squares over its cells,
    then nonnegative. One projection of all cells together takes away from every small count what the noise added to
    the others, so that sums of neighbouring cells are biased; here a part that holds many records keeps them.
    """
    sums, nearest = np.zeros(counts.size + 1, np.int64), np.zeros_like(counts)
    np.cumsum(counts, out=sums[1:])
    low, high, totals = np.array([0]), np.array([counts.size]), np.array([n], np.int64)
    while low.size:
        middle = (low + high) // 2
        first, second = sums[middle] - sums[low], sums[high] - sums[middle]
        excess = np.rint((totals - first - second) * ((middle - low) / (high - low))).astype(np.int64)
        divided = np.clip(first + excess, 0, totals)  # 0 for a single cell, which is its own second half
        low, high = np.append(low, middle), np.append(middle, high)
        totals = np.append(divided, totals - divided)
        single = high - low == 1
        nearest[low[single]] = totals[single]
        divisible = (totals > 0) & ~single  # most parts of many cells are empty, and are not visited again
        low, high, totals = low[divisible], high[divisible], totals[divisible]
    return nearest
