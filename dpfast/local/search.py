"""A quantile by noisy binary search and gradient descent from there, one private bit per person."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast._kernels import _descent, _samplers
from dpfast.core import checks, containers
from dpfast.core.coin import coin
from dpfast.core.types import Records
from dpfast.local.questions import ThresholdProtocol, clip, doubles, ordered
from dpfast.random import BLOCK, RandomSource, bit_generator

_EVIDENCE = 4.0  # log likelihood ratio at which a test decides
_SPREAD = 4.0  # a test ends after its expected number of reports and this many standard deviations
_RUN = 6  # after so many decisions in one direction the end of the bracket is tested
_DECAY = 2 / 3
_FIRST = 2**13  # from this person on, neighbours share a power
_WIDTHS = 1.2  # of the bracket: the scale of the steps of the descent
_LEAST_STEP = 2.0**-40  # in units of the bounds
_LEAST_DOUBLE = 2.0**-1074
_TESTS = 10  # undecided tests around the quantile, and of the ends, in a typical search


class Search(NamedTuple):
    """The state of a `QuantileSearch`; public, like everything the server holds.

    Parameters
    ----------
    theta : float
        The threshold in the question to the next person.
    lower, upper : float
        The bracket. During the descent its width determines the scale of the steps.
    phase : {"middle", "right", "left", "end", "upper", "lower", "descent"}
        The place of theta in the bracket that is tested: the middle, the middle of its right or of its left half, an
        end after several decisions in one direction, or the upper or lower end as the last check; or "descent".
    ones, zeros : int
        Reports of the test so far.
    right : int
        The outcome of the test on the right or at the upper end: 1 if theta is above the quantile, -1 below, 0
        undecided.
    run : int
        The number of consecutive decisions in one direction, with the sign of that direction.
    users : int
        Reports received.
    asked : int
        Thetas of the descent so far.
    total : float
        Their sum.
    refused : int
        Number of refused reports; they do not change the other fields.
    """

    theta: float
    lower: float
    upper: float
    phase: str = "middle"
    ones: int = 0
    zeros: int = 0
    right: int = 0
    run: int = 0
    users: int = 0
    asked: int = 0
    total: float = 0.0
    refused: int = 0


@dataclass(frozen=True, kw_only=True)
class QuantileSearch(ThresholdProtocol):
    """Protocol for a quantile by noisy binary search, and gradient descent from there: one private bit per person.

    Pure epsilon-local differential privacy. Sequential: each person is asked whether a public number theta is at least
    their own number, and theta depends on all earlier reports. Unlike `MedianDescent`, it needs no bounds near the
    numbers: twice the width costs about one more test.

    Parameters
    ----------
    bounds : pair of float
        Public, in data units. A number outside counts as the nearer bound; NaN and missing ones as 0, or as the bound
        nearest to 0.
    epsilon : float
        At least 2**-40; rounded down to a double. Above 44.3 a report is still false once in 2**64.
    q : float
        In (0, 1); 0.5 is the median.
    step : float, optional
        Public, in data units: the search ends at a bracket of this width.
        Default: the width of the bounds times 2**-40. It matters where many people have equal numbers.
    most : int, optional
        At most this many people are asked in the search. Default: not limited; `release` takes half of n then.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    A sequential test at theta compares the share of ones with 1 / 2, which it has at the median, and with the
    shares where 9/10 or 1/10 of the numbers are below theta. It decides "above" or "below" the median at a
    likelihood ratio of e^4, on the wrong side with probability at most e^-4, or it ends undecided. The search
    halves the bracket until the tests at its middle and quarters are undecided; after six decisions in one
    direction it tests the end of the bracket, and moves a wrong one. Then, or where that end is undecided, it tests
    both ends and moves each undecided one outward by a width, until both are decided. Then the descent starts in
    the middle::

        theta_(i+1) = clip(theta_i + s i^(-2/3) (2 r - 2 report), lower, upper)

    where r = P(report 1) at the quantile, s is 1.2 times the width of the bracket, and i counts all reports. The
    estimate is the mean of these thetas.

    Privacy: the report is the truth or its opposite, decided by an exact coin that is rounded towards privacy. So for
    every theta the server may send, the person's number changes the probability of a report by at most the factor
    e^epsilon (https://dpfast.readthedocs.io/en/latest/proofs/median-descent.html). Each person answers once, hence
    spends epsilon once.
    Accuracy: see `error`. Beyond q = 0.1 and 0.9 it holds for large n only.
    Run time: about 15 ns per person in the descent, and 30 us per test.

    References
    ----------
    Karp and Kleinberg 2007, "Noisy binary search and its applications"; Wald 1945; Polyak and Juditsky 1992.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> pay = np.random.default_rng(0).lognormal(10.0, 0.5, 100_000)
    >>> survey = local.QuantileSearch(bounds=(0, 1e9), epsilon=1.0, q=0.9)
    >>> bool(abs(survey(pay) / np.quantile(pay, 0.9) - 1) < 0.05)
    True

    The same protocol, message by message:

    >>> state = survey.begin()
    >>> for x in pay[:2000]:
    ...     report = survey.respond(state.theta, x)  # on the person's device
    ...     state = survey.update(state, report)  # on the server
    >>> bool(0 < survey.estimate(state) < 1e9)
    True
    """

    bounds: tuple[float, float]
    epsilon: float
    q: float = 0.5
    step: float | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        lower, upper = ordered(self.bounds)
        epsilon = checks.positive_down("epsilon", self.epsilon)
        coin(epsilon)
        if not math.isfinite(8 * (upper - lower) + max(abs(lower), abs(upper))):
            raise ValueError("steps could overflow float64: use narrower bounds")
        q = checks.between("q", self.q, 0, 1)
        least = max((upper - lower) * _LEAST_STEP, _LEAST_DOUBLE)
        step = least if self.step is None else checks.positive("step", self.step)
        most = None if self.most is None else checks.whole("most", self.most)
        for name, value in {
            "bounds": (lower, upper),
            "epsilon": epsilon,
            "q": q,
            "step": step,
            "most": most,
        }.items():
            object.__setattr__(self, name, value)
        if not 0 < self._share(self.q) < 1:
            raise ValueError(f"q must differ from 0 and 1 by more than the coin resolves, not {self.q!r}")

    def _share(self, below: float) -> float:
        """P(report 1) where a share `below` of the numbers is at most theta."""
        keep = float(self.coin.probability)
        return (1 - keep) + below * (2 * keep - 1)

    @cached_property
    def _evidence(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """What a report of 1 and of 0 add to the evidence for "above", and for "below"."""
        shares = self._share(0.9), self._share(0.1)
        above, below = ((math.log(2 * p), math.log(2 * (1 - p))) for p in shares)
        return above, below

    @cached_property
    def limit(self) -> int:
        """The largest number of reports in a test; far from the median it decides before, but for 4 deviations."""
        (one, zero), p = self._evidence[0], self._share(1.0)
        drift, variance = p * one + (1 - p) * zero, p * (1 - p) * (one - zero) ** 2
        length = _EVIDENCE / drift
        return math.ceil(length + _SPREAD * math.sqrt(length * variance) / drift)

    def _decision(self, ones: Any, zeros: Any) -> Any:
        """1 where a test with these reports decides "above", -1 where it decides "below", else 0."""
        (one_above, zero_above), (one_below, zero_below) = self._evidence
        above = one_above * ones + zero_above * zeros >= _EVIDENCE
        return 1 * above - 1 * (one_below * ones + zero_below * zeros >= _EVIDENCE)

    # ---- the server ----

    def begin(self) -> Search:
        """Return the state before the first report."""
        lower, upper = self.bounds
        state = Search(_middle(lower, upper), lower, upper)
        return state._replace(phase="descent") if self.most == 0 else state

    def update(self, state: Search, report: int) -> Search:
        """Return the state after one more report, 0 or 1; any other report is refused and only counted."""
        if not isinstance(report, (int, float, np.generic)) or report not in (0, 1):
            return state._replace(refused=state.refused + 1)
        if state.phase != "descent":
            return self._tested(state, int(report), 1 - int(report))
        users = state.users + 1
        push = float(self._pushes(users, 1, state)[0])
        moved = state.theta + self._lean * push - (push if report else -push)
        return state._replace(
            theta=clip(moved, *self.bounds), users=users, asked=state.asked + 1, total=state.total + state.theta
        )

    @property
    def _lean(self) -> float:
        return 2 * self._share(self.q) - 1

    def _pushes(self, first: int, count: int, state: Search) -> NDArray[np.float64]:
        """As by `fill_pushes` alone: there, too, each of the first is the product of the scale and a power."""
        out, scale = np.empty(count), _WIDTHS * (state.upper - state.lower)
        few = min(count, max(_FIRST - first, 0))
        np.multiply(_powers()[first - 1 : first - 1 + few], scale, out=out[:few])
        _descent.fill_pushes(first + few, scale, _DECAY, out[few:])
        return out

    def _tested(self, state: Search, ones: int, zeros: int) -> Search:
        """Return the state after more reports of a test, which decide it at the last of them or not at all."""
        theta, lower, upper, phase, right, run = (
            state.theta, state.lower, state.upper, state.phase, state.right, state.run
        )  # fmt: skip
        ones, zeros, users = state.ones + ones, state.zeros + zeros, state.users + ones + zeros
        decision = int(self._decision(ones, zeros))
        if decision or ones + zeros >= self.limit:
            phase, lower, upper, run, right = _MOVES[phase](state, decision, self.bounds)
            theta, ones, zeros = _question(phase, lower, upper, run), 0, 0
        assert self.step is not None
        if upper - lower <= self.step or (self.most is not None and users >= self.most):
            phase, theta = "descent", _middle(lower, upper)
        return Search(
            theta, lower, upper, phase, ones, zeros, right, run, users, state.asked, state.total, state.refused
        )  # fmt: skip

    def estimate(self, state: Search) -> float:
        """Return the mean of the thetas of the descent; before it, the middle of the bracket."""
        if not state.asked:
            return _middle(state.lower, state.upper)
        return clip(state.total / state.asked, *self.bounds)

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
        n = checks.records(values.shape[0])
        made = (
            self
            if self.most is not None
            else QuantileSearch(bounds=self.bounds, epsilon=self.epsilon, q=self.q, step=self.step, most=n // 2)
        )
        runs = math.prod(shape)
        together = made._together if runs > 1 and n <= BLOCK else made._one_by_one
        estimates = np.array([made.estimate(state) for state in together(source, values, runs)])
        return float(estimates[0]) if size is None else estimates.reshape(shape)

    def _one_by_one(self, source: Any, x: NDArray[Any], runs: int) -> Iterator[Search]:
        """Yield the last states of so many runs."""
        for _ in range(runs):
            state = self._search(source, x)
            yield self._descend(source, state, x[state.users :]) if state.users < x.shape[0] else state

    def _together(self, source: Any, x: NDArray[Any], runs: int) -> Iterator[Search]:
        """Yield the same, some descents side by side."""
        n, records, (lower, upper), width = x.shape[0], doubles(x), self.bounds, _descent.RUNS
        powers, factors, lanes = np.empty(n), np.empty(n), np.zeros((n, width), np.uint16)
        _descent.fill_powers(1, _DECAY, powers, factors)
        for begin in range(0, runs, width):
            states = []
            for run in range(min(width, runs - begin)):
                states.append(state := self._search(source, x))
                _descent.fill_coins(source, self.coin.threshold, lanes, run, state.users)
            first, scale, theta = np.full(width, n), np.zeros(width), np.full(width, lower)
            for run, state in enumerate(states):
                first[run], scale[run], theta[run] = state.users, _WIDTHS * (state.upper - state.lower), state.theta
            total, public = np.zeros(width), (self._lean, lower, upper, clip(0.0, lower, upper))
            _descent.descend_together(
                lanes, self.coin.threshold, records, powers, factors, *public, first, scale, theta, total
            )
            for state, last, added in zip(states, theta.tolist(), total.tolist(), strict=False):
                yield state._replace(theta=last, users=n, asked=n - state.users, total=added)

    def _search(self, source: Any, x: NDArray[Any]) -> Search:
        """Return the state after the search, or after all of x."""
        state = self.begin()
        while state.phase != "descent" and state.users < x.shape[0]:
            state = self._ask(source, state, doubles(x[state.users : state.users + BLOCK]))
        return state

    def _ask(self, source: Any, state: Search, x: NDArray[np.float64]) -> Search:
        """Ask people until the search ends, or all of x are asked."""
        lower, upper = self.bounds
        words, evidence = np.empty(x.size, np.uint64), np.array(self._evidence)
        _samplers.fill_words(source, words)
        asked, threshold = state.users, self.coin.threshold
        public = lower, upper, clip(0.0, lower, upper), evidence, _EVIDENCE
        while state.phase != "descent" and (start := state.users - asked) < x.size:
            reach = self.limit - state.ones - state.zeros
            if self.most is not None:
                reach = min(reach, self.most - state.users)
            end, before = start + reach, (state.ones, state.zeros)
            ones, zeros = _descent.ask(words[start:end], threshold, x[start:end], state.theta, *public, *before)
            state = self._tested(state, ones - state.ones, zeros - state.zeros)
        return state

    def _descend(self, source: Any, state: Search, x: NDArray[Any]) -> Search:
        lower, upper = self.bounds
        theta, total = np.array([state.theta]), np.zeros(1)
        for begin in range(0, x.shape[0], BLOCK):
            records = doubles(x[begin : begin + BLOCK])
            push = self._pushes(state.users + 1 + begin, records.shape[0], state)
            missing = clip(0.0, lower, upper)
            _descent.descend(
                source, self.coin.threshold, records, push, self._lean, lower, upper, missing, theta, total
            )
        asked = state.asked + x.shape[0]
        return state._replace(theta=float(theta[0]), users=state.users + asked, asked=asked, total=float(total[0]))

    # ---- what to expect ----

    def users(self, density: float) -> float:
        """About how many people a search asks, from an assumed density at the quantile; uses no data.

        Parameters
        ----------
        density : float
            In 1 / data unit; positive.
        """
        lower, upper = self.bounds
        halvings = max(0.0, math.log2(checks.positive("density", density) * (upper - lower)))
        (one, zero), p = self._evidence[0], self._share(1.0)
        return self.least_users + halvings * _EVIDENCE / (p * one + (1 - p) * zero)

    @property
    def least_users(self) -> int:
        """About how many people a search asks at the least, where the bounds are near the numbers."""
        return _TESTS * self.limit

    def error(self, n: SupportsIndex, *, density: float, confidence: float = 0.95) -> float:
        """Predict the error for n people from a public assumption; uses no data and costs no privacy.

        Parameters
        ----------
        n : int
            Number of people.
        density : float
            Assumed density f of the numbers at their quantile, in 1 / data unit; positive.
        confidence : float
            In (0, 1).

        Returns
        -------
        float
            With probability about `confidence`, the estimate is this close to the quantile of the distribution: it is
            asymptotically normal with variance ``c^2 r (1 - r) / (f^2 m)``, c = coth(epsilon / 2), where m is n without
            the people asked in the search (`users`, at most `most` or half of n). A large-sample approximation: at
            n = 10,000, epsilon = 1, the root mean squared error of medians was 1.09 to 1.15 times that of all n people.
        """
        n, f = checks.whole("n", n, least=1), checks.positive("density", density)
        quantile = float(scipy.special.ndtri((1 + checks.between("confidence", confidence, 0, 1)) / 2))
        searched = min(self.users(f), n // 2 if self.most is None else self.most)
        r = self._share(self.q)
        return quantile * self.coin.gain * math.sqrt(r * (1 - r) / max(n - searched, 1)) / f


@lru_cache(maxsize=1)
def _powers() -> NDArray[np.float64]:
    """Return the powers ``i**-_DECAY`` of the first people, each computed by itself."""
    out = np.empty(_FIRST - 1)
    _descent.fill_pushes(1, 1.0, _DECAY, out)
    out.flags.writeable = False
    return out


def _middle(lower: float, upper: float) -> float:
    return lower + (upper - lower) / 2


def _question(phase: str, lower: float, upper: float, run: int) -> float:
    """Theta in a phase."""
    if phase in ("middle", "descent"):
        return _middle(lower, upper)
    if phase == "right":
        return _middle(_middle(lower, upper), upper)
    if phase == "left":
        return _middle(lower, _middle(lower, upper))
    if phase == "end":
        return upper if run < 0 else lower
    return upper if phase == "upper" else lower


# What follows a test: the phase, lower, upper, run and right of the next state.
_Next = tuple[str, float, float, int, int]


def _after_middle(state: Search, decision: int, bounds: tuple[float, float]) -> _Next:
    if not decision:
        return "right", state.lower, state.upper, state.run, state.right
    run = state.run + decision if state.run * decision > 0 else decision
    lower, upper = (state.lower, state.theta) if decision > 0 else (state.theta, state.upper)
    end = upper if run < 0 else lower
    phase = "end" if abs(run) >= _RUN and bounds[0] < end < bounds[1] else "middle"
    return phase, lower, upper, run, state.right


def _after_right(state: Search, decision: int, bounds: tuple[float, float]) -> _Next:
    if decision < 0:  # the quantile is further to the right
        return "middle", state.theta, state.upper, 0, state.right
    return "left", state.lower, state.upper, state.run, decision


def _after_left(state: Search, decision: int, bounds: tuple[float, float]) -> _Next:
    if decision > 0:  # the quantile is further to the left
        return "middle", state.lower, state.theta, 0, state.right
    if not decision and not state.right:
        return "upper", state.lower, state.upper, state.run, state.right
    upper = _middle(_middle(state.lower, state.upper), state.upper) if state.right else state.upper
    return "middle", state.theta if decision else state.lower, upper, state.run, state.right


def _after_end(state: Search, decision: int, bounds: tuple[float, float]) -> _Next:
    """Move the bracket beyond an end that the quantile is beyond, to four times its width."""
    if not decision:
        return "upper", state.lower, state.upper, 0, state.right
    if decision * state.run < 0:
        return "middle", state.lower, state.upper, 0, state.right
    return _beyond(state, decision, state.run, bounds)


def _beyond(state: Search, decision: int, run: int, bounds: tuple[float, float]) -> _Next:
    """Return the bracket beyond the end that the decision shows to be on the wrong side."""
    lower, upper, reach = state.lower, state.upper, 4 * (state.upper - state.lower)
    lower, upper = (upper, min(upper + reach, bounds[1])) if decision < 0 else (max(lower - reach, bounds[0]), lower)
    return "middle", lower, upper, run, state.right


def _after_upper(state: Search, decision: int, bounds: tuple[float, float]) -> _Next:
    if decision < 0 and state.upper < bounds[1]:
        return _beyond(state, decision, _RUN * decision, bounds)
    return "lower", state.lower, state.upper, state.run, decision


def _after_lower(state: Search, decision: int, bounds: tuple[float, float]) -> _Next:
    if decision > 0 and state.lower > bounds[0]:
        return _beyond(state, decision, _RUN * decision, bounds)
    width = state.upper - state.lower
    lower = state.lower if decision else max(state.lower - width, bounds[0])
    upper = state.upper if state.right else min(state.upper + width, bounds[1])
    wider = (lower, upper) != (state.lower, state.upper)
    return "upper" if wider else "descent", lower, upper, state.run, state.right


_MOVES = {
    "middle": _after_middle,
    "right": _after_right,
    "left": _after_left,
    "end": _after_end,
    "upper": _after_upper,
    "lower": _after_lower,
}
