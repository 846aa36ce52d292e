"""Answers at public times: a padded run time and an exact random delay, and what they cost."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

from flint import arb

from dpfast._kernels import _balls, _samplers
from dpfast.core import checks
from dpfast.core.privacy import Privacy
from dpfast.core.rounding import up
from dpfast.core.types import Exact
from dpfast.random import RandomSource, bit_generator

_T = TypeVar("_T")
_SECOND = 10**9  # in nanoseconds, the unit of all times below


@dataclass(frozen=True)
class AnswerTime:
    """The time of an answer: a public time after its request plus a random delay, whatever the work takes.

    The answer is released `seconds` plus the delay after the request. If the work is not finished by then, the answer
    is withheld. The delay is discrete Laplace noise in nanoseconds, shifted and clamped to 0..2 `reach`.

    Parameters
    ----------
    seconds : float
        Positive, public: longer than the work takes for any data. Like all times below, an exact number (a Fraction, a
        Decimal or a string is exact); rounded up to nanoseconds.
    stability : float
        Positive: the lag of an answer, from the time that it is due until the client has it, changes by at most this
        many seconds if one record changes. The delay hides such a change.
    epsilon : float
        Positive: the privacy cost of the time of one answer.
    delta : float
        In (0, 1): the probability, up to a factor of at most 1, that the delay does not hide that change.
    overrun : float
        In [0, 1): for any data, the work takes longer than `seconds` with at most this probability.

    Attributes
    ----------
    scale : Fraction
        Of the delay, in nanoseconds: stability / epsilon.
    reach : int
        The median delay, in nanoseconds: the least with ``P(Z >= reach) + P(Z > reach - stability) <= delta``.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, or if the scale is above 2**56 nanoseconds.

    Notes
    -----
    Privacy: `stability` and `overrun` are assumptions about the machine, which you must justify; a measurement supports
    them and does not prove them. Under them an (epsilon', delta')-DP release and its time together have the guarantee
    of `privacy` (https://dpfast.readthedocs.io/en/latest/proofs/answer-time.html). Not covered: a load of the machine
    by withheld work, which continues, and whatever else other clients can measure.

    References
    ----------
    Ratliff and Vadhan 2024, "A framework for differential privacy against timing attacks"; Haeberlen, Pierce and
    Narayan 2011, "Differential privacy under fire", for public time limits.

    Examples
    --------
    >>> import asyncio, dpfast as dpf
    >>> at = dpf.timing.AnswerTime("3", stability="1e-6", epsilon="0.001", delta="1e-9", overrun="1e-9")
    >>> round(at.reach / 1e9, 3)
    0.021
    >>> middle = asyncio.run(at.run(lambda: dpf.median([23, 45, 31, 62], bounds=(0, 100), epsilon=0.5)))
    >>> together = at.privacy(dpf.Privacy(0.5))
    >>> float(together.epsilon), round(together.delta, 11)
    (0.501, 3.65e-09)
    """

    seconds: Exact
    stability: Exact
    epsilon: Exact
    delta: Exact
    overrun: Exact
    reach: int = field(init=False)

    def __post_init__(self) -> None:
        for name in ("seconds", "stability", "epsilon"):
            object.__setattr__(self, name, checks.positive_rational(name, getattr(self, name)))
        delta, overrun = checks.rational("delta", self.delta), checks.rational("overrun", self.overrun)
        if not 0 < delta < 1:
            raise ValueError(f"delta must be in (0, 1), not {self.delta!r}")
        if not 0 <= overrun < 1:
            raise ValueError(f"overrun must be in [0, 1), not {self.overrun!r}")
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "overrun", overrun)
        checks.scale(self.scale)
        object.__setattr__(self, "reach", _reach(self._stable, self.scale, Fraction(self.delta)))

    @property
    def _padding(self) -> int:
        return math.ceil(Fraction(self.seconds) * _SECOND)

    @property
    def _stable(self) -> int:
        return math.ceil(Fraction(self.stability) * _SECOND)

    @property
    def scale(self) -> Fraction:
        """The scale of the delay, in nanoseconds."""
        return Fraction(self._stable) / Fraction(self.epsilon)

    def delay(self, rng: RandomSource = None) -> int:
        """Draw a delay in nanoseconds, exactly."""
        noise = _samplers.one_discrete_laplace(bit_generator(rng), self.scale)
        return min(max(self.reach + noise, 0), 2 * self.reach)

    def privacy(self, release: Privacy) -> Privacy:
        """Return the guarantee of an (epsilon, delta)-DP release together with the time of its answer, rounded up."""
        if release.unit != "epsilon":
            raise ValueError(f"release must have an epsilon, not a {release.unit}")
        epsilon = Fraction(release.epsilon) + Fraction(self.epsilon)
        both = 1 + Fraction(_balls.upper(lambda: arb(_balls.rational(epsilon)).exp()))
        delta = Fraction(release.delta) + Fraction(self.delta) + both * Fraction(self.overrun)
        return Privacy(
            epsilon,
            min(up(delta), 1.0),
            neighbors=release.neighbors,
            records=release.records,
            per_unit=release.per_unit,
        )

    async def run(self, work: Callable[[], _T], *, rng: RandomSource = None) -> _T:
        """Call `work` in a thread, and return its result, or raise its exception, at the time of the answer.

        Charge the release in `work`, or before: a withheld answer has spent its budget.

        Raises
        ------
        TimeoutError
            At the time of the answer, if the work is not finished. Its result is lost.
        """
        due = time.monotonic_ns() + self._padding + self.delay(rng)
        task = asyncio.ensure_future(asyncio.to_thread(work))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # a lost exception is not logged
        while (left := due - time.monotonic_ns()) > 0:
            await asyncio.sleep(left / _SECOND)
        if not task.done():
            raise TimeoutError("the answer was not ready at its public time; it is withheld, and its budget is spent")
        return task.result()


def _reach(stability: int, scale: Fraction, delta: Fraction) -> int:
    """Return the least m, or one more, with (q**m + q**(m - stability + 1)) / (1 + q) <= delta, q = exp(-1 / scale)."""

    def least() -> arb:
        rate = 1 / _balls.rational(scale)
        q = (-arb(rate)).exp()
        tails = (1 + (-arb(rate * (stability - 1))).exp()) / ((1 + q) * _balls.rational(delta))
        return tails.log() / rate + stability - 1

    return max(stability, math.ceil(_balls.upper(least)))
