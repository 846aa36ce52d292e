"""Neighbouring data sets that are hard for some mechanism: extremes, ties, missing and outlying records."""

from collections.abc import Iterator

import numpy as np

LOWER, UPPER = 0.0, 100.0


def replaced(n: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield a name and two arrays of n numbers that differ in one place."""
    half = n // 2
    low, spread = np.full(n, LOWER), np.linspace(LOWER, UPPER, n)
    middle = np.repeat([LOWER, UPPER], [half, n - half])
    for name, base, place, value in (
        ("all equal, one moved", low, 0, UPPER),
        ("half at each end", middle, half, LOWER),
        ("half at each end, one less", middle, half - 1, UPPER),
        ("ties", np.full(n, 50.0), n - 1, UPPER),
        ("spread", spread, 0, UPPER),
        ("missing", spread, 0, np.nan),
        ("outlier", low, n - 1, 1e9),
    ):
        other = base.copy()
        other[place] = value
        yield name, base, other


def added(n: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield a name, an array of n numbers, and the same with one more."""
    for name, base, value in (
        ("all equal, one more", np.full(n, LOWER), LOWER),
        ("an extreme", np.full(n, LOWER), UPPER),
        ("a new value", np.linspace(LOWER, UPPER, n), 42.0),
        ("ties", np.full(n, 28.0), 28.0),
        ("missing", np.linspace(LOWER, UPPER, n), np.nan),
        ("outlier", np.full(n, LOWER), 1e9),
    ):
        yield name, base, np.append(base, value)


def pairs(neighbors: str, n: int, *, rows: bool = False) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    for name, x, y in (added if neighbors == "add-remove" else replaced)(n):
        if not rows:
            yield name, x, y
            continue
        yield name + ", columns alike", np.stack([x, x], axis=1), np.stack([y, y], axis=1)
        yield (
            name + ", columns opposed",
            np.stack([x, UPPER - x], axis=1),
            np.stack([y, UPPER - y], axis=1),
        )
