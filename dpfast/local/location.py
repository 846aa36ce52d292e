"""Means and medians under local differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from dpfast import _checks, _containers, noise
from dpfast._kernels import _descent, _samplers
from dpfast.coin import Coin, coin
from dpfast.grid import Grid
from dpfast.local.interval import Interval
from dpfast.local.randomizer import LocalMechanism
from dpfast.privacy import Privacy, PrivacyProfile
from dpfast.random import BLOCK, RandomSource, bit_generator
from dpfast.spending import EXACT, refused, spending
from dpfast.theory.local_rates import local_truncation

# The named step sequences: (scale / width of the bounds, decay).
_STEPS = {"averaging": (1.0, 2 / 3), "minimax": (math.sqrt(0.5), 0.5)}


class Descent(NamedTuple):
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
class MedianDescent(LocalMechanism):
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
    (docs/proofs/median-descent.md). A person who answers twice spends epsilon twice.
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
        lower, upper = _bounds(self.bounds)
        epsilon = _checks.positive_down("epsilon", self.epsilon)
        coin(epsilon)
        if isinstance(self.steps, str):
            if self.steps not in _STEPS:
                raise ValueError(f"steps must be 'averaging', 'minimax' or a pair (scale, decay), not {self.steps!r}")
            share, decay = _STEPS[self.steps]
            steps: str | tuple[float, float] = self.steps
            scale = share * (upper - lower)
        else:
            first, second = _checks.pair("steps", self.steps)
            scale, decay = _checks.positive("the scale of steps", first), _checks.fraction("the decay of steps", second)
            steps = (scale, decay)
        if not math.isfinite(scale + max(abs(lower), abs(upper))):
            raise ValueError("steps could overflow float64: use narrower bounds")
        start = (
            (lower + upper) / 2 if self.start is None else _clip(_checks.real("start", self.start) + 0.0, lower, upper)
        )
        for name, value in {
            "bounds": (lower, upper),
            "epsilon": epsilon,
            "steps": steps,
            "start": start,
            "burn_in": _checks.whole("burn_in", self.burn_in),
            "_scale": scale,
            "_decay": decay,
        }.items():
            object.__setattr__(self, name, value)

    @property
    def coin(self) -> Coin:
        """The coin that decides whether a report is true; its gain is c in the formulas."""
        return coin(self.epsilon)

    def step(self, i: SupportsIndex) -> float:
        """Distance that report i = 1, 2, ... moves theta, in data units."""
        return float(self._pushes(_checks.whole("i", i, least=1), 1)[0])

    def _pushes(self, first: int, count: int) -> NDArray[np.float64]:
        out = np.empty(count)
        _descent.fill_pushes(first, self._scale, self._decay, out)
        return out

    # ---- the person ----

    def respond(self, theta: float, x: float | None, *, rng: RandomSource = None) -> int:
        """Return one person's report on the question theta: 1 for "theta >= x", 0 for "below"; it may be false.

        Parameters
        ----------
        theta : float
            From the server, which need not be trusted.
        x : float
            Private.
        rng : numpy.random.Generator or BitGenerator, optional
            Makes the report reproducible, hence not private. Default: the secure generator.
        """
        truth, source = self._truth(theta, x), bit_generator(rng)
        return int(truth == (_samplers.next_word(source) < self.coin.threshold))

    @refused(EXACT)
    def probability(self, theta: float, x: float | None) -> Fraction:
        """The exact probability of the report 1. PRIVATE: it depends on x; for audits."""
        keep = self.coin.probability
        return keep if self._truth(theta, x) else 1 - keep

    def _truth(self, theta: float, x: float | None) -> bool:
        value = float(_containers.numbers("x", [x])[0])
        lower, upper = self.bounds
        return _checks.real("theta", theta) >= _clip(0.0 if math.isnan(value) else value, lower, upper)

    # ---- the server ----

    def begin(self) -> Descent:
        """The state before the first report."""
        assert self.start is not None
        return Descent(self.start, 0, 0.0)

    def update(self, state: Descent, report: int) -> Descent:
        """The state after one more report, 0 or 1; any other report is refused and only counted."""
        if not isinstance(report, (int, float, np.generic)) or report not in (0, 1):
            return state._replace(refused=state.refused + 1)
        push = self.step(state.users + 1)
        moved = state.theta - push if report else state.theta + push
        counted = state.theta if state.users >= self.burn_in else 0.0
        return Descent(_clip(moved, *self.bounds), state.users + 1, state.total + counted, state.refused)

    def estimate(self, state: Descent) -> float:
        """The mean of the thetas so far, without the burn-in."""
        return _clip(state.total / self._counted(state.users), *self.bounds)

    def _counted(self, n: int) -> int:
        if n <= self.burn_in:
            raise ValueError(f"n must be above burn_in = {self.burn_in}, not {n}")
        return n - self.burn_in

    # ---- both, in one process ----

    def __call__(self, x: ArrayLike, *, rng: RandomSource = None) -> float:
        """Run the whole protocol on an array, one person after the other: `release` with one repetition."""
        return float(self.release(x, rng=rng))

    def release(
        self,
        x: ArrayLike,
        *,
        size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
        rng: RandomSource = None,
    ) -> Any:
        """Run the protocol `size` times independently, for simulations: EACH RUN spends the epsilon of every person.

        Parameters
        ----------
        x : array_like of shape (n,)
            Private data of any numeric dtype, one number for each person, in the order in which they are asked; the
            order must not depend on the data. Never modified.
        size : int or tuple of ints, optional
            The shape of the result; None returns one run, a float.
        rng : numpy.random.Generator or BitGenerator, optional
            Makes the run reproducible, hence not private. Default: the secure generator.
        """
        shape, source = _checks.shape(size), bit_generator(rng)
        values = _containers.vector("x", x)
        counted = self._counted(_checks.records(values.shape[0]))
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
            records = _doubles(x[begin : begin + block])
            push = self._pushes(first + begin, records.shape[0])
            missing = _clip(0.0, lower, upper)
            _descent.descend(source, self.coin.threshold, records, push, lower, upper, missing, theta, total)

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
        counted, f = self._counted(_checks.whole("n", n, least=1)), _checks.positive("density", density)
        if not 0.5 < self._decay < 1:
            raise ValueError(f"error requires steps with a decay between 1/2 and 1, not {self._decay!r}")
        quantile = float(ndtri((1 + _checks.between("confidence", confidence, 0, 1)) / 2))
        return quantile * self.coin.gain / (2 * f * math.sqrt(counted))

    def gap_bound(self, n: SupportsIndex) -> float:
        """Bound ``E|X - estimate| - E|X - median|``, for every n and every distribution on the bounds.

        In data units, averaged over the run: ``D^2 / (2 m eta_n) + c^2 / (2 m) sum(eta_i)``, with m = n - burn_in and
        the sum over the i after the burn-in. For steps="minimax" without burn-in, at most ``sqrt(2) D c / sqrt(n)``.
        """
        n = _checks.whole("n", n, least=1)
        m, (lower, upper), c = self._counted(n), self.bounds, self.coin.gain
        total = sum(
            math.fsum(self._pushes(first, min(BLOCK, n + 1 - first))) for first in range(self.burn_in + 1, n + 1, BLOCK)
        )
        return c / (2 * m) * ((upper - lower) ** 2 / self.step(n) + total)


def median(
    x: ArrayLike,
    *,
    bounds: tuple[float, float],
    epsilon: float,
    steps: str | tuple[float, float] = "averaging",
    start: float | None = None,
    burn_in: int = 0,
    size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    rng: RandomSource = None,
) -> Any:
    """Estimate the median by private gradient descent, simulated; each person reveals one private bit.

    Pure epsilon-local differential privacy, under any change of one person's number. Sequential: the question to each
    person depends on the earlier answers; `MedianDescent` provides the client and the server separately.

    Parameters
    ----------
    x : array_like of shape (n,)
        Private data of any numeric dtype, one number for each person, in an order that does not depend on the data.
        Never modified.
    bounds, epsilon, steps, start, burn_in
        See `MedianDescent`. n must be greater than `burn_in`.
    size : int or tuple of ints, optional
        The shape of an array of independent runs: EACH RUN spends epsilon. None returns one run.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.

    Returns
    -------
    float, or ndarray of float64
        Inside the bounds.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    Privacy, accuracy and cost: `MedianDescent`, docs/proofs/median-descent.md.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, equation (11).

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> pay = np.random.default_rng(0).lognormal(10.0, 0.5, 100_000)
    >>> estimate = local.median(pay, bounds=(0, 100_000), epsilon=1.0)
    >>> bool(abs(estimate - np.median(pay)) < 1500)
    True
    """
    protocol = MedianDescent(bounds=bounds, epsilon=epsilon, steps=steps, start=start, burn_in=burn_in)
    return protocol.release(x, size=size, rng=rng)


def median_naive(
    x: ArrayLike, *, bounds: tuple[float, float], epsilon: float, rng: RandomSource = None, workers: int = 1
) -> float:
    """Median of numbers with Laplace noise added by each person; for comparison only, since its bias persists.

    Pure epsilon-local differential privacy, under any change of one person's number. Non-interactive.

    Parameters
    ----------
    x, bounds, rng
        See `median`.
    epsilon : float
        Positive; rounded down to a double.
    workers : int
        Number of threads; for a given rng the result does not depend on it.

    Returns
    -------
    float
        Inside the bounds.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    Each number is rounded to a public grid of at most 2**32 points, and exact noise of scale D / epsilon is added,
    where D is the width of the grid. The median of the noisy numbers equals that of the numbers only for symmetric
    distributions, so this estimate does not converge to the median: use `median`.
    Privacy: global sensitivity D, exact noise (docs/proofs/rounded-laplace.md). Cost: O(n log n).

    References
    ----------
    Duchi, Jordan and Wainwright 2018, equation (41).

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> skewed = np.random.default_rng(0).lognormal(0.0, 1.0, 100_000)
    >>> bool(local.median_naive(skewed, bounds=(0, 16), epsilon=1.0) > 1.2 * np.median(skewed))
    True
    """
    lower, upper = _bounds(bounds)
    halves = _noisy(x, (lower, upper), epsilon, rng, workers) / 2  # so that the sum of two cannot overflow
    return _clip(2 * float(np.median(halves)), lower, upper)


def mean(
    x: ArrayLike,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    moment: float | None = None,
    scale: float = 1.0,
    method: str = "auto",
    objective: str = "worst",
    truncation: str = "optimal",
    rng: RandomSource = None,
    workers: int = 1,
) -> float:
    """Estimate the mean from one private report per person.

    Pure epsilon-local differential privacy, under any change of one person's number. Non-interactive.

    Parameters
    ----------
    x : array_like of shape (n,)
        Private data of any numeric dtype; never modified. NaN and missing count as 0 or as the bound nearest to 0.
    epsilon : float
        Positive, at least 2**-40 for "two-point"; rounded down to a double.
    bounds : pair of float
        Public, in data units: a number outside counts as the nearer bound. Give either `bounds` or `moment`.
    moment : float
        A public assumption: ``E|X|**moment <= scale**moment``, with `moment` above 1; infinity means that X is in
        [-scale, scale]. The numbers are clipped to [-T, T]; T follows from n, epsilon and the assumption.
    scale : float
        Positive, in data units; only with `moment`.
    method, objective : str
        The method and the objective of `Interval`, which randomises each number: "auto" has the least variance, for the
        worst record or on average over the range.
    truncation : {"optimal", "paper"}
        "optimal" minimises the bound `dpfast.theory.local_mean_upper_bound` (of "laplace" for that method; otherwise of
        "two-point", where T is slightly too small for the other methods). "paper" is T = scale (n epsilon^2)^(1/(2
        moment)), of the same order but with many times the error.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Number of threads; for a given rng the result does not depend on it.

    Returns
    -------
    float
        Clipped to the bounds or to [-scale, scale], which must contain the mean. Apart from that, unbiased for the mean
        of the clipped numbers.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, or neither or both of `bounds` and `moment` are given, before any data are read.

    Notes
    -----
    Privacy: that of `Interval` (docs/proofs/local-interval.md). In addition to the sampling variance, the variance of
    the estimate is at most ``Interval(epsilon, bounds=...).variance() / n``: for "two-point" ``c^2 r^2 / n`` with
    c = coth(epsilon / 2) and r half the width, for "laplace" ``8 r^2 / (n epsilon^2)``.
    Cost: O(n).

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 1 and equation (10).

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> x = np.random.default_rng(0).standard_t(3, 100_000)
    >>> bool(abs(local.mean(x, epsilon=1.0, moment=2, scale=1.8)) < 0.4)
    True
    >>> bool(abs(local.mean(x > 1, epsilon=1.0, bounds=(0, 1)) - np.mean(x > 1)) < 0.03)
    True
    """
    if (bounds is None) == (moment is None):
        raise TypeError("exactly one of bounds and moment must be given")
    epsilon = _checks.positive_down("epsilon", epsilon)
    Interval(
        epsilon, bounds=(0.0, 1.0), method=method, objective=objective
    )  # reject invalid parameters before reading the data
    bit_generator(rng)
    _checks.threads(workers)
    if bounds is not None:
        lower, upper = inside = _bounds(bounds)
        values = _containers.vector("x", x)
        _checks.records(values.shape[0])
    else:
        assert moment is not None
        noisy = "laplace" if method == "laplace" else "two-point"
        truncate = partial(
            local_truncation, epsilon=epsilon, moment=moment, scale=scale, method=noisy, truncation=truncation
        )
        truncate(1)
        values = _containers.vector("x", x)
        upper = truncate(_checks.records(values.shape[0]))
        lower, inside = -upper, (-float(scale), float(scale))
    randomizer = Interval(epsilon, bounds=(lower, upper), method=method, objective=objective)
    reports = randomizer.randomize(values, rng=rng, workers=workers)
    return _clip(float(randomizer.estimate(reports)), *inside)


def _noisy(
    x: ArrayLike, bounds: tuple[float, float], epsilon: float, rng: RandomSource, workers: int
) -> NDArray[np.float64]:
    """The numbers rounded to a grid, plus exact Laplace noise of scale width / epsilon."""
    grid = Grid(*bounds, missing=_clip(0.0, *bounds))
    width = _checks.exact(grid.upper) - _checks.exact(grid.lower)
    epsilon = _checks.positive_down("epsilon", epsilon)
    scale = width / Fraction(epsilon)
    profile = PrivacyProfile(Privacy(epsilon, neighbors="local"), (("laplace", epsilon, 1),))
    with spending(profile, label=f"Laplace noise on each number in {bounds!r}"):
        values = _containers.vector("x", x)
        _checks.records(values.shape[0])
        return noise.add_laplace(values, scale=scale, grid=grid, rng=rng, workers=workers)


def _bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    """Finite ordered bounds as doubles, of finite width; -0.0 becomes 0.0, which the kernel requires."""
    lower, upper = (float(bound) + 0.0 for bound in _checks.pair("bounds", bounds))
    if not lower < upper:
        raise ValueError(f"bounds must be in order, lower < upper, not {bounds!r}")
    if not math.isfinite(upper - lower):
        raise ValueError("the width of bounds overflows float64: use narrower bounds")
    return lower, upper


def _clip(value: float, lower: float, upper: float) -> float:
    return min(max(value, lower), upper)


def _doubles(x: NDArray[Any]) -> NDArray[np.float64]:
    """A contiguous array of doubles: x itself if it is one."""
    with np.errstate(all="ignore"):  # a signalling NaN
        return np.require(x, np.float64, ["C", "A"])
