"""Record and replay: the same draws on two neighbours, and the exact loss of each of them by the laws.

The idea is that of Re:cord-play (Cebere et al. 2026): run a program on one data set and record what its primitives
draw; run it on a neighbour and let the primitives return the recorded draws. All else must be equal: the number and
kinds of the primitives, and what the program makes of the draws. In dpfast a primitive is a law, so that the privacy
loss of the recorded draws is a difference of two exact log-probabilities, and their sum must be at most epsilon.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
from numpy.random import PCG64

from dpfast.laws import Law
from dpfast.laws.keyed import KeyedCounts

TOLERANCE = 1e-5  # of a loss: the log-probabilities of box noise of scale 3e9 have errors of 2e-6


class Differs(Exception):
    """A replay asked for other draws than those recorded."""


@dataclass
class Tape:
    """The draws of one run, with the laws that made them; on replay, the log-probabilities under the laws now."""

    draws: list[tuple[type, Any, float, Any]] = field(default_factory=list)
    loss: float = 0.0
    place: int = 0
    inside: bool = False

    def record(self, law: Law, sample: Callable[..., Any], size: Any, rng: Any) -> Any:
        if isinstance(law, KeyedCounts):
            raise TypeError("draws that mean counts of the keys of the data")
        if self.inside:  # a law made of laws draws from them: the outer one is the primitive
            return sample(law, size, rng)
        self.inside = True
        try:
            drawn = sample(law, size, rng)
        finally:
            self.inside = False
        self.draws.append((type(law), _copy(drawn), _log_probability(law, drawn), getattr(rng, "state", None)))
        return drawn

    def replay(self, law: Law, sample: Callable[..., Any], size: Any, rng: Any) -> Any:
        if self.place == len(self.draws):
            raise Differs(f"one more draw, from {type(law).__name__}")
        kind, drawn, recorded, state = self.draws[self.place]
        if type(law) is not kind:
            raise Differs(f"a draw from {type(law).__name__} in place of {kind.__name__}")
        self.place += 1
        if state is not None:
            rng.state = state  # what follows, such as synthetic records of a released density, draws the same words
        now = _log_probability(law, drawn)
        if recorded != now:  # equal infinities have no difference
            self.loss += recorded - now
        return _copy(drawn)


def _copy(drawn: Any) -> Any:
    return drawn.copy() if isinstance(drawn, np.ndarray) else drawn


def _log_probability(law: Law, drawn: Any) -> float:
    """The log-probability of the draws; NaN for a law that has no formula for it."""
    try:
        return float(np.sum(law.logpmf(drawn)))
    except (TypeError, NotImplementedError):
        return math.nan


def _laws(kind: type = Law) -> Iterator[type]:
    for child in kind.__subclasses__():
        yield child
        yield from _laws(child)


@contextlib.contextmanager
def _through(draw: Callable[..., Any]) -> Iterator[None]:
    """Let every law draw by `draw(law, its own sample, size, rng)`."""
    with contextlib.ExitStack() as stack:
        for kind in dict.fromkeys(_laws()):
            if "sample" not in kind.__dict__:
                continue
            own = kind.__dict__["sample"]

            def sample(law: Law, size: Any = None, rng: Any = None, *, _own: Any = own) -> Any:
                return draw(law, _own, size, rng)

            stack.enter_context(mock.patch.object(kind, "sample", sample))
        yield


@dataclass(frozen=True)
class Replayed:
    """What the replays on one pair show."""

    draws: int  # of laws, in one run
    loss: float  # the largest of all runs
    fault: str  # a difference beside the draws, "" without one
    excess: float  # the mean of max(0, 1 - exp(epsilon - loss)), at most delta
    runs: int

    def violates(self, delta: float) -> bool:
        """Whether the loss is above epsilon, for delta > 0 too often for chance: Hoeffding's bound, 1e-9."""
        if delta == 0:
            return self.excess > 0
        if self.excess <= delta:
            return False
        p, q = min(self.excess, 1 - 1e-15), delta
        return self.runs * (p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))) > math.log(1e9)


def replayed(run: Callable[[Any, Any], Any], x: Any, y: Any, *, epsilon: float, runs: int, seed: int = 1) -> Replayed:
    """Record ``run(x, rng)`` and replay it on y, `runs` times."""
    losses, fault, draws = [], "", 0
    for i in range(runs):
        tape = Tape()
        with _through(tape.record):
            first = _outcome(run, x, PCG64(seed + i))
        with _through(tape.replay):
            second = _outcome(run, y, PCG64(seed + i))
        draws = max(draws, len(tape.draws))
        losses.append(tape.loss)
        if math.isnan(tape.loss):
            raise TypeError("a law without probabilities")
        if isinstance(second, Differs):
            fault = fault or str(second)
        elif tape.place < len(tape.draws):
            fault = fault or f"{len(tape.draws) - tape.place} draws fewer"
        elif not _same(first, second):
            fault = fault or "another release from the same draws"
    excess = math.fsum(-math.expm1(epsilon - loss) for loss in losses if loss > epsilon + TOLERANCE) / runs
    return Replayed(draws, max(losses), fault, excess, runs)


def _outcome(run: Callable[[Any, Any], Any], data: Any, rng: Any) -> Any:
    try:
        return run(data, rng)
    except TypeError:
        raise
    except Exception as error:
        return error


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, Exception) or isinstance(second, Exception):
        return type(first) is type(second) and str(first) == str(second)
    return repr(first) == repr(second) if type(first) is type(second) else False
