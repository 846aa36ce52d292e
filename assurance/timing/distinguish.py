"""How well a threshold on times tells two classes apart."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta


class Advantage(NamedTuple):
    """P(time beyond a threshold) of one class less that of the other, and an interval for it."""

    estimate: float
    lower: float
    upper: float

    @property
    def releases(self) -> float:
        """Releases after which a majority of times names the class with probability 0.95, if `lower` is the advantage.

        The number of times beyond the threshold differs by n a and has a standard deviation of at most sqrt(n) / 2.
        """
        return (1.645 / self.lower) ** 2 if self.lower > 0 else math.inf


def advantage(first: NDArray[np.float64], second: NDArray[np.float64], level: float = 0.95) -> Advantage:
    """The advantage of the best threshold of the even times on the odd ones, by Clopper-Pearson intervals."""
    edges = np.quantile(np.concatenate([first[::2], second[::2]]), np.linspace(0.01, 0.99, 99))
    gaps = np.array([np.mean(first[::2] > edge) - np.mean(second[::2] > edge) for edge in edges])
    best = int(np.argmax(np.abs(gaps)))
    more, less = (first, second) if gaps[best] > 0 else (second, first)
    a, b = int(np.sum(more[1::2] > edges[best])), int(np.sum(less[1::2] > edges[best]))
    n, m = more[1::2].size, less[1::2].size
    low, high = interval(a, n, level), interval(b, m, level)
    return Advantage(a / n - b / m, low[0] - high[1], low[1] - high[0])


def interval(count: int, n: int, level: float) -> tuple[float, float]:
    """Clopper and Pearson; both intervals of a difference together have the level."""
    tail = (1 - level) / 4
    lower = float(beta.ppf(tail, count, n - count + 1)) if count else 0.0
    upper = float(beta.ppf(1 - tail, count + 1, n - count)) if count < n else 1.0
    return lower, upper
