"""Answers whether values are above a threshold, of which only those by yes are paid for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
from numpy.random import BitGenerator

from dpfast._kernels import _samplers
from dpfast.core import checks
from dpfast.core.privacy import Privacy
from dpfast.core.spending import paid_before
from dpfast.core.traps import Trap, of_threshold
from dpfast.laws import DiscreteLaplace
from dpfast.random import RandomSource, bit_generator
from dpfast.running.files import StateFile
from dpfast.running.sole import Sole
from dpfast.running.started import Started

_MOST = 2**61  # of thresholds and values
_MOST_SCALE = 2**54
_SATURATED = 2**63 - 1
_PARTS = 2**20  # of epsilon, of which the noise of the threshold has a whole number


@dataclass(frozen=True, repr=False)
class AboveThreshold(Started["ThresholdState"]):
    """Answer whether private values are at least a threshold, until a number of answers were yes. The sparse vector.

    Epsilon-differentially private for all answers together, however many are no; charged once, when a state is started.

    Parameters
    ----------
    threshold : int
        Public, within +-2**61.
    epsilon : float
        Positive; rounded down to a double.
    answers : int
        c, the number of answers by yes after which the state is closed.
    monotone : bool
        True if a changed record never raises one value and lowers another, for example for counts when a record is
        added or removed (NOT when one is replaced). The noise on values is then halved.
    neighbors : {"replace-one", "add-remove"}
        The neighbours for which a record changes each value by at most 1.

    Raises
    ------
    TypeError, ValueError
        An invalid parameter.

    Notes
    -----
    Privacy: each value may depend on earlier answers, and changes by at most 1 if one record changes. The threshold has
    discrete Laplace noise of scale 1 / epsilon_1, drawn once, and each value that of scale 2 c / epsilon_2, or c /
    epsilon_2 if they are monotone; epsilon_1 + epsilon_2 = epsilon, in rationals, and epsilon_2 / epsilon_1 is about
    (2 c)**(2/3), or c**(2/3): https://dpfast.readthedocs.io/en/latest/proofs/above-threshold.html. Only the answers are
    released. Cost: 4 us for each.

    References
    ----------
    Dwork and Roth 2014, section 3.6; Lyu, Su and Li 2017, "Understanding the sparse vector technique for differential
    privacy", algorithm 7.

    Examples
    --------
    >>> import dpfast as dpf
    >>> state = dpf.AboveThreshold(1000, epsilon=1.0).start()
    >>> [state(visits) for visits in (20, 510, 400, 1900)]
    [False, False, False, True]
    >>> state.closed
    True
    """

    threshold: int
    epsilon: float = field(kw_only=True)
    answers: int = field(kw_only=True, default=1)
    monotone: bool = field(kw_only=True, default=False)
    neighbors: str = field(kw_only=True, default="replace-one")

    def __post_init__(self) -> None:
        number = checks.rational("threshold", self.threshold)
        if number.denominator != 1 or abs(number) > _MOST:
            raise ValueError(f"threshold must be a whole number within +-2**61, not {self.threshold!r}")
        object.__setattr__(self, "threshold", int(number))
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        object.__setattr__(self, "answers", checks.whole("answers", self.answers, least=1))
        object.__setattr__(self, "monotone", checks.flag("monotone", self.monotone))
        checks.choice("neighbors", self.neighbors, ("replace-one", "add-remove"))
        if max(self.scales) > _MOST_SCALE:
            raise ValueError(f"epsilon={self.epsilon!r} needs noise of more than 2**54: use a larger epsilon")

    def _traps(self) -> Iterator[Trap]:
        yield from super()._traps()
        yield from of_threshold(self.threshold, self.error(1))

    @cached_property
    def scales(self) -> tuple[Fraction, Fraction]:
        """The scale of the noise of the threshold, and that of each value. Public."""
        epsilon, times = Fraction(self.epsilon), self.answers * (1 if self.monotone else 2)
        share = Fraction(max(1, round(_PARTS / (1 + float(min(times, _MOST)) ** (2 / 3)))), _PARTS)
        return 1 / (share * epsilon), times / ((1 - share) * epsilon)

    @property
    def privacy(self) -> Privacy:
        """The guarantee of all answers together."""
        return Privacy(self.epsilon, 0.0, self.neighbors)

    def __repr__(self) -> str:
        kind = "monotone values" if self.monotone else "values"
        until = f"until {self.answers} are" if self.answers > 1 else "until one is"
        return f"<AboveThreshold answers whether {kind} are at least {self.threshold}, {until}: {self.privacy}>"

    def error(self, t: SupportsIndex, *, confidence: float = 0.95) -> int:
        """Return how far a value may be on the wrong side of the threshold in any of t answers.

        With probability `confidence`, all values with the answer yes are at least the threshold less this, and all with
        no are below the threshold plus this. Public.

        Examples
        --------
        >>> import dpfast as dpf
        >>> dpf.AboveThreshold(1000, epsilon=1.0).error(100)
        36
        """
        count, missed = checks.whole("t", t, least=1), 1 - checks.between("confidence", confidence, 0, 1)
        of_limit, of_value = map(DiscreteLaplace, self.scales)
        return of_limit.magnitude(1 - missed / 2) + of_value.magnitude(1 - missed / (2 * count))

    def explanation(self) -> str:
        """Return a short text about the answers: guarantee and error. Public.

        Examples
        --------
        >>> import dpfast as dpf
        >>> print(dpf.AboveThreshold(1000, epsilon=1.0).explanation())
        AboveThreshold answers whether values are at least 1000, until one is: epsilon = 1 (pure differential privacy) \
for one record replaced (the number of records is public).
        With probability 0.95, no value of 100 is more than 36 on the wrong side of the threshold.
        """
        parts = (
            repr(self).strip("<>"),
            f"With probability 0.95, no value of 100 is more than {self.error(100)} on the wrong side of the threshold",
        )
        return "\n".join(f"{part}." for part in parts)

    @property
    def header(self) -> dict[str, Any]:
        return {"noise": [str(scale) for scale in self.scales]}

    def _begin(self, rng: RandomSource, file: StateFile | None) -> ThresholdState:
        return ThresholdState(self, rng, file)


class ThresholdState(Sole):
    """A noisy threshold, PRIVATE, with which values are compared. Made by `AboveThreshold.start`, which charges it.

    Call it with a value: it returns True or False, and raises a ValueError once it is closed. It cannot be copied or
    pickled, and does not answer after a fork. With a file (``start(path=)``), an answer by yes is on disk before it is
    returned; answers by no leave nothing to keep.

    Attributes
    ----------
    mechanism : AboveThreshold
    positive : int
        The number of answers by yes so far. Public, like `closed`.
    """

    def __init__(self, mechanism: AboveThreshold, rng: RandomSource = None, file: StateFile | None = None) -> None:
        super().__init__(mechanism, file)
        self.mechanism, self.positive, self._rng = mechanism, 0, rng
        start, self._noise = map(DiscreteLaplace, mechanism.scales)
        drawn = mechanism.threshold + unbounded(start, bit_generator(rng))
        found = [] if file is None else [entry["threshold"] for entry in file.found if "threshold" in entry]
        self._threshold = found[0] if found else drawn
        if file is not None:
            self.positive = sum("positive" in entry for entry in file.found)
            if len(found) > 1 or type(self._threshold) is not int or self.positive > mechanism.answers:
                file.end()
                raise ValueError(f"the state {file.path} is damaged: it has other thresholds or answers than it can")
            if not found:
                file.note({"threshold": drawn})

    @property
    def closed(self) -> bool:
        """Whether all answers by yes are given."""
        return self.positive == self.mechanism.answers

    def __repr__(self) -> str:
        return f"<ThresholdState after {self.positive} answers by yes, private: {self.mechanism!r}>"

    def __call__(self, value: Any) -> bool:
        """Return whether a value plus noise is at least the noisy threshold.

        Parameters
        ----------
        value : int or float
            Private; of sensitivity 1. Fractions of a float are dropped, by rounding down, which keeps its sensitivity;
            NaN counts as -inf, and infinities as +-2**61.

        Raises
        ------
        ValueError
            If all answers by yes are given.
        """
        number = _whole(value)
        self.check_process()  # before the lock, which another thread may have held when the process was forked
        with self._lock:
            self.check_open()
            self.check_paid()
            if self.closed:
                raise ValueError(f"all {self.mechanism.answers} answers by yes are given: start another state")
            answer = number + unbounded(self._noise, bit_generator(self._rng)) >= self._threshold
            if answer:
                try:
                    if self._file is not None:  # what a crash leaves unwritten, nobody has seen
                        self._file.note({"positive": self.positive + 1})
                    self.positive += 1
                except BaseException:  # half of it: the file may count an answer that the state does not
                    self.end("interrupted")
                    raise
            return answer


def _whole(value: Any) -> int:
    """Return the greatest integer up to a number of 64 bits or of Python, clamped to +-2**61."""
    if isinstance(value, (int, np.integer, np.bool_)):
        number = int(value)
    elif isinstance(value, (float, np.float32, np.float16)):
        number = -_MOST if math.isnan(value) else math.floor(min(max(float(value), -(2.0**61)), 2.0**61))
    else:
        raise TypeError(f"a value must be an int or a float, not {type(value).__name__}")
    return min(max(number, -_MOST), _MOST)


def unbounded(noise: DiscreteLaplace, source: BitGenerator) -> int:
    """Draw discrete Laplace noise of any size: a saturated draw goes on with a geometric one, which has no memory."""
    drawn: int = paid_before(noise.draw)(source)
    size = last = abs(drawn)
    while last == _SATURATED:
        last = _samplers.one_geometric(source, noise.scale)
        size += last
    return size if drawn > 0 else -size
