"""The median by gradient descent, one private bit per person."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast._kernels import _descent
from dpfast.core import checks, containers
from dpfast.core.coin import coin
from dpfast.core.types import Records
from dpfast.local.questions import ThresholdProtocol, clip, doubles, ordered
from dpfast.random import BLOCK, RandomSource, bit_generator

# The named step sequences: (scale / width of the bounds, decay).
_STEPS = {"averaging": (1.0, 2 / 3), "minimax": (math.sqrt(0.5), 0.5)}


class DescentState(NamedTuple):
    """The state of a `MedianDescent`; public, like everything the server holds.

    Parameters
    ----------
    theta : float
        The threshold in the question to the next person.
    users : int
        Reports received.
    total : float
        The sum of the thetas asked so far, without the burn-in.
    refused : int
        Number of refused reports; they do not change the other fields.
    """

    theta: float
    users: int
    total: float
    refused: int = 0


@dataclass(frozen=True, kw_only=True)
class MedianDescent(ThresholdProtocol):
    """Protocol for the median by gradient descent; each person reveals one private bit.

    Pure epsilon-local differential privacy. Sequential: each person is asked whether a public number theta is at least
    their own number, and theta depends on all earlier reports.

    Parameters
    ----------
    bounds : pair of float
        Public, in data units. A number outside counts as the nearer bound; NaN and missing ones as 0, or as the bound
        nearest to 0.
    epsilon : float
        At least 2**-40; rounded down to a double. Above 44.3 a report is still false once in 2**64.
    steps : {"averaging", "minimax"} or pair of float
        A pair (scale, decay): report i = 1, 2, ... moves theta by ``scale * i**-decay`` data units, with a positive
        scale and a decay in [0, 1]. "averaging" is (D, 2/3), where D is the width of the bounds; "minimax"
        (D / sqrt(2), 1/2) has the least proved bound, `gap_bound`, but usually the larger error.
    start : float, optional
        The first theta; clipped to the bounds. Default: the middle.
    burn_in : int
        This many initial thetas are left out of the average. Useful for wide bounds, where the search for the median
        takes a large part of n. Leaving out half of n doubles the variance.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    With g = +1 if theta_i >= x_i, else -1 (+1 at a tie, so that both reports are always possible), W = +1 with
    probability e^epsilon / (1 + e^epsilon), else -1, and c = coth(epsilon / 2), which removes the bias of W::

        theta_(i+1) = clip(theta_i - eta_i c W g, lower, upper),    eta_i c = scale i**-decay

    and the estimate is the mean of theta_1..theta_n, each taken before its report.

    Privacy: the report is g or -g, decided by an exact coin that is rounded towards privacy. So for every theta the
    server may send, the person's number changes the probability of a report by at most the factor e^epsilon
    (https://dpfast.readthedocs.io/en/latest/proofs/median-descent.html). A person who answers twice spends epsilon
    twice.
    Accuracy: for decay in (1/2, 1) and a density f at the median, n times the variance tends to ``c^2 / (4 f^2)``,
    see `error`: privacy multiplies the effective n by ``tanh(epsilon / 2)^2``.
    Run time: about 15 ns per person, or 3 ns if many repetitions run side by side.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, section 3.2.2, equation (11); Polyak and Juditsky 1992, "Acceleration of
    stochastic approximation by averaging".

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> hours = np.random.default_rng(0).gamma(4.0, 2.0, 100_000)
    >>> survey = local.MedianDescent(bounds=(0, 24), epsilon=1.0)
    >>> bool(abs(survey(hours) - np.median(hours)) < 0.3)
    True

    The same protocol, message by message:

    >>> state = survey.begin()
    >>> for x in hours[:1000]:
    ...     report = survey.respond(state.theta, x)  # on the person's device
    ...     state = survey.update(state, report)  # on the server
    >>> bool(0 < survey.estimate(state) < 24)
    True
    """

    bounds: tuple[float, float]
    epsilon: float
    steps: str | tuple[float, float] = "averaging"
    start: float | None = None
    burn_in: int = 0
    _scale: float = field(init=False, compare=False, repr=False)
    _decay: float = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        lower, upper = ordered(self.bounds)
        epsilon = checks.positive_down("epsilon", self.epsilon)
        coin(epsilon)
        if isinstance(self.steps, str):
            if self.steps not in _STEPS:
                raise ValueError(f"steps must be 'averaging', 'minimax' or a pair (scale, decay), not {self.steps!r}")
            share, decay = _STEPS[self.steps]
            steps: str | tuple[float, float] = self.steps
            scale = share * (upper - lower)
        else:
            first, second = checks.pair("steps", self.steps)
            scale, decay = checks.positive("the scale of steps", first), checks.fraction("the decay of steps", second)
            steps = (scale, decay)
        if not math.isfinite(scale + max(abs(lower), abs(upper))):
            raise ValueError("steps could overflow float64: use narrower bounds")
        start = (
            (lower + upper) / 2 if self.start is None else clip(checks.real("start", self.start) + 0.0, lower, upper)
        )
        for name, value in {
            "bounds": (lower, upper),
            "epsilon": epsilon,
            "steps": steps,
            "start": start,
            "burn_in": checks.whole("burn_in", self.burn_in),
            "_scale": scale,
            "_decay": decay,
        }.items():
            object.__setattr__(self, name, value)

    def step(self, i: SupportsIndex) -> float:
        """Distance that report i = 1, 2, ... moves theta, in data units."""
        return float(self._pushes(checks.whole("i", i, least=1), 1)[0])

    def _pushes(self, first: int, count: int) -> NDArray[np.float64]:
        out = np.empty(count)
        _descent.fill_pushes(first, self._scale, self._decay, out)
        return out

    # ---- the server ----

    def begin(self) -> DescentState:
        """Return the state before the first report."""
        assert self.start is not None
        return DescentState(self.start, 0, 0.0)

    def update(self, state: DescentState, report: int) -> DescentState:
        """Return the state after one more report, 0 or 1; any other report is refused and only counted."""
        if not isinstance(report, (int, float, np.generic)) or report not in (0, 1):
            return state._replace(refused=state.refused + 1)
        push = self.step(state.users + 1)
        moved = state.theta - push if report else state.theta + push
        counted = state.theta if state.users >= self.burn_in else 0.0
        return DescentState(clip(moved, *self.bounds), state.users + 1, state.total + counted, state.refused)

    def estimate(self, state: DescentState) -> float:
        """Return the mean of the thetas so far, without the burn-in."""
        return clip(state.total / self._counted(state.users), *self.bounds)

    def _counted(self, n: int) -> int:
        if n <= self.burn_in:
            raise ValueError(f"n must be above burn_in = {self.burn_in}, not {n}")
        return n - self.burn_in

    # ---- both, in one process ----

    def release(
        self,
        x: Records,
        *,
        size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
        rng: RandomSource = None,
    ) -> Any:
        """Run the protocol `size` times independently, for simulations: EACH RUN spends the epsilon of every person."""
        shape, source = checks.shape(size), bit_generator(rng)
        values = containers.vector("x", x)
        counted = self._counted(checks.records(values.shape[0]))
        assert self.start is not None
        theta, total = np.full(math.prod(shape), self.start), np.zeros(math.prod(shape))
        self._descend(source, values[: self.burn_in], 1, theta, total)
        total[:] = 0
        self._descend(source, values[self.burn_in :], self.burn_in + 1, theta, total)
        estimates = np.clip(total / counted, *self.bounds)
        return float(estimates[0]) if size is None else estimates.reshape(shape)

    def _descend(
        self, source: Any, x: NDArray[Any], first: int, theta: NDArray[np.float64], total: NDArray[np.float64]
    ) -> None:
        """Ask the people in x, numbered from `first`, in blocks that fit the cache."""
        lower, upper = self.bounds
        block = max(1, BLOCK // max(theta.size, 1))
        for begin in range(0, x.shape[0], block):
            records = doubles(x[begin : begin + block])
            push = self._pushes(first + begin, records.shape[0])
            missing = clip(0.0, lower, upper)
            _descent.descend(source, self.coin.threshold, records, push, 0.0, lower, upper, missing, theta, total)

    # ---- what to expect ----

    def error(self, n: SupportsIndex, *, density: float, confidence: float = 0.95) -> float:
        """Predict the error for n people from a public assumption; uses no data and costs no privacy.

        Parameters
        ----------
        n : int
            Number of people, greater than the burn-in.
        density : float
            Assumed density f of the numbers at their median, in 1 / data unit; positive.
        confidence : float
            In (0, 1).

        Returns
        -------
        float
            With probability about `confidence`, the estimate is this close to the median of the distribution: it is
            asymptotically normal with variance ``c^2 / (4 f^2 (n - burn_in))``. A large-sample approximation that
            ignores the effect of the start; estimate +- error is a confidence interval as good as the assumption.

        Raises
        ------
        ValueError
            If a parameter is out of range, or the decay of the steps is outside (1/2, 1), where this is not proved.
        """
        counted, f = self._counted(checks.whole("n", n, least=1)), checks.positive("density", density)
        if not 0.5 < self._decay < 1:
            raise ValueError(f"error requires steps with a decay between 1/2 and 1, not {self._decay!r}")
        quantile = float(scipy.special.ndtri((1 + checks.between("confidence", confidence, 0, 1)) / 2))
        return quantile * self.coin.gain / (2 * f * math.sqrt(counted))

    def wide_error(self, n: SupportsIndex, *, density: float, confidence: float = 0.95) -> float:
        """Predict the error with the effect of wide bounds, for the default steps; from a public assumption.

        `error` times ``sqrt(1 + (c D f)^(3/2) / sqrt(n))``, where D is the width of the bounds. In simulations of
        normal data with D f from 1.6 to 110, epsilon from 0.3 to 4 and n from 500 to 50,000, the root mean square error
        was 0.5 to 1.8 times this one with the median in the middle of the bounds, and up to 2.8 times at 0.4 D from it.
        """
        lower, upper = self.bounds
        spread = self.coin.gain * (upper - lower) * checks.positive("density", density)
        n = checks.whole("n", n, least=1)
        return self.error(n, density=density, confidence=confidence) * math.sqrt(1 + spread**1.5 / math.sqrt(n))

    def gap_bound(self, n: SupportsIndex) -> float:
        """Bound ``E|X - estimate| - E|X - median|``, for every n and every distribution on the bounds.

        In data units, averaged over the run: ``D^2 / (2 m eta_n) + c^2 / (2 m) sum(eta_i)``, with m = n - burn_in and
        the sum over the i after the burn-in. For steps="minimax" without burn-in, at most ``sqrt(2) D c / sqrt(n)``.
        """
        n = checks.whole("n", n, least=1)
        m, (lower, upper), c = self._counted(n), self.bounds, self.coin.gain
        total = sum(
            math.fsum(self._pushes(first, min(BLOCK, n + 1 - first))) for first in range(self.burn_in + 1, n + 1, BLOCK)
        )
        return c / (2 * m) * ((upper - lower) ** 2 / self.step(n) + total)
