"""The clock of ``bench.compare``: a job and its floors take turns, and the least time of each counts."""

import gc
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

SECONDS_A_ROW = 2.5  # of turns, unless three turns take longer
SHORTEST = 2e-3  # seconds; shorter calls are repeated in a loop
MOST_TURNS = 100


def power(n):
    """10000000 as 1e7."""
    return f"{n:.0e}".replace("e+0", "e")


@dataclass(frozen=True)
class Floor:
    """A baseline of a job, a call or a number of seconds, and the greatest allowed ratio (None: for information)."""

    name: str
    run: Callable | float
    limit: float | None = None


@dataclass(frozen=True)
class Job:
    """One job: our call, its floors, other libraries' calls."""

    name: str
    run: Callable
    floors: tuple[Floor, ...]
    peers: dict[str, Callable] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """One line of the table; `unit` is the unit of `dpfast`, `floor` and `peers`, s or B."""

    job: str
    dpfast: float
    floor_name: str
    floor: float
    limit: float | None
    peers: dict[str, float]
    turns: int
    unit: str = "s"

    @property
    def ratio(self):
        return self.dpfast / self.floor

    @property
    def ok(self):
        return None if self.limit is None else self.ratio <= self.limit


def race(sides, seconds=SECONDS_A_ROW, least=3):
    """The least time of one call of each side, and the number of turns; in a turn every side runs once."""
    loops = [_loops(run) for run in sides]
    best = [math.inf] * len(sides)
    start, turn = time.perf_counter(), 0
    gc.collect()
    gc.disable()
    try:
        while turn < least or (turn < MOST_TURNS and time.perf_counter() - start < seconds):
            for i, run in enumerate(sides):
                best[i] = min(best[i], _clock(run, loops[i]) / loops[i])
            turn += 1
    finally:
        gc.enable()
    return best, turn


def _clock(run, loops):
    turns = itertools.repeat(None, loops)
    start = time.perf_counter()
    for _ in turns:
        run()
    return time.perf_counter() - start


def _loops(run):
    """The number of calls that take `SHORTEST`, after a warm-up call: the first in a thread makes its generator."""
    run()
    loops = 1
    while (seconds := _clock(run, loops)) < SHORTEST:
        loops = max(2 * loops, math.ceil(1.2 * loops * SHORTEST / max(seconds, 1e-7)))
    return loops


def measure(job, *, quick):
    """The rows of a job, one per floor. Peers run afterwards, in three turns."""
    timed = [floor for floor in job.floors if callable(floor.run)]
    (ours, *best), turns = race([job.run, *(floor.run for floor in timed)], 0.1 if quick else SECONDS_A_ROW)
    theirs = dict(zip(timed, best, strict=True))
    others = {name: race([run], 0.0, 1 if quick else 3)[0][0] for name, run in job.peers.items()}
    for i, floor in enumerate(job.floors):
        seconds = theirs.get(floor, floor.run)
        yield Row(job.name, ours, floor.name, seconds, floor.limit, others if i == 0 else {}, turns)
