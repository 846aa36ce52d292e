"""The black-box tester: learned events on releases of neighbours, with a certified lower bound on epsilon."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import PCG64

from dpfast import audit

CONFIDENCE = 1 - 1e-9
PILOT = (200, 5000)  # releases of each side of each pair, at least and at most: a twentieth of all
PILOT_CONFIDENCE = 0.9  # of bounds that only choose a pair
MOST_NUMBERS = 8 * 10**6  # in the releases of one side

Pair = tuple[str, Any, Any]


@dataclass(frozen=True)
class Finding:
    """The certified lower bound on epsilon at the claimed delta, on the pair that a pilot found worst."""

    epsilon: float
    delta: float
    bound: float
    draws: int
    pairs: int
    worst: str
    seconds: float

    @property
    def refuted(self) -> bool:
        return self.bound > self.epsilon


def bound(
    mechanism: Any,
    x: Any,
    y: Any,
    draws: int,
    *,
    events: str = "learned",
    confidence: float = CONFIDENCE,
    seed: int = 1,
) -> float:
    """A lower bound on epsilon from `draws` releases on each side."""
    return audit.distinguish(mechanism, x, y, trials=draws, confidence=confidence, events=events, rng=PCG64(seed))


def examine(mechanism: Any, pairs: Iterable[Pair], draws: int, *, seed: int = 1) -> Finding:
    """A few releases on each pair choose the worst one, and new ones on it give the bound."""
    start, pairs = time.process_time(), list(pairs)
    pilot = min(max(draws // 20, PILOT[0]), PILOT[1])
    tried = [
        bound(mechanism, x, y, pilot, confidence=PILOT_CONFIDENCE, seed=seed + 1 + i)
        for i, (_, x, y) in enumerate(pairs)
    ]
    worst = int(np.argmax(tried))
    name, x, y = pairs[worst]
    found = bound(mechanism, x, y, draws, seed=seed)
    privacy = mechanism.privacy
    spent = time.process_time() - start
    return Finding(float(privacy.epsilon), float(privacy.delta), found, draws, len(pairs), name, spent)


def affordable(release: Callable[[int], Any], most: int, seconds: float) -> int:
    """The largest of 1000, 2000, 5000, 10000, ... draws up to `most` that take about `seconds`, by a first try."""
    release(10)
    start = time.process_time()
    numbers = np.asarray(release(1000))
    each = max(time.process_time() - start, 1e-6) / 1000
    limit = min(most, seconds / each, MOST_NUMBERS / max(numbers[0].size, 1))
    steps = [first * 10**power for power in range(3, 7) for first in (1, 2, 5)]
    return max([step for step in steps if step <= limit], default=1000)
