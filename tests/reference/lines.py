"""Slow twins of Theil-Sen regression: matchings by a table, slopes one by one."""

import math


def matching(n, turn):
    """The pairs of one round of the circle method: the last of an even number of records stands in the middle."""
    places = n if n % 2 else n - 1
    pairs = [((turn + i) % places, (turn - i) % places) for i in range(1, (places - 1) // 2 + 1)]
    return pairs if n % 2 else [*pairs, (turn, n - 1)]


def slope(dx, dy):
    """The slope of a line, NaN if there is none."""
    if dx == 0 or not math.isfinite(dx) or math.isnan(dy):
        return math.nan
    try:
        return dy / dx
    except OverflowError:
        return math.copysign(math.inf, dy) * math.copysign(1.0, dx)


def end(index):
    """Which end stands for a missing slope: the leading bit of a Weyl sequence."""
    return (index + 1) * 0x9E3779B97F4A7C15 % 2**64 >= 2**63


def slopes(x, y, k, ends):
    """The slopes of the pairs of k rounds, spread evenly; one of the ends where there is none."""
    n, found = len(x), []
    rounds = n if n % 2 else n - 1
    for j in range(k):
        for i, (a, b) in enumerate(matching(n, j * rounds // k)):
            value = slope(x[a] - x[b], y[a] - y[b])
            found.append(ends[end(i + j * (n // 2))] if math.isnan(value) else value)
    return found
