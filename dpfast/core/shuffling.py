"""Certified bounds of the delta of shuffled reports.

Of n reports that are private with epsilon0, shuffled, the delta at epsilon is at most E[(H_1 + ... + H_n)_+] / n for
independent H of few values. The sum over all outcomes takes O(sqrt(n)) steps in doubles, with bounds of their rounding
errors. Proofs of all formulas: https://dpfast.readthedocs.io/en/latest/proofs/shuffling.html.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from dpfast._kernels import _balls

MOST = 2**34  # records; delta decreases in their number
_MOST_EPSILON = 40  # of one report: beyond, shuffling is not counted
_TAIL = 75  # each tail that is cut off has a probability of at most exp(-75)
_FLOOR = 1e-250  # more than all underflow
_SMALLEST = 1e-280  # of the first probability of a series
_LEAST = 1e-100  # lower bounds below it are not used, as underflow is not bounded in that direction
_UNIT = 2.0**-53
_FAR_LOG = -140.0  # of the logarithm of a delta: beyond, a bound by moments is used alone
_NEXT_ORDER = 1 + 2.0**-6
_DIGITS = 40  # binary digits of thresholds
_FEW = 32  # numbers of third categories that are not spread
_LONGEST = 2**16  # steps between two sums that are computed afresh
# Standard deviations of the number of reports of third categories, and the points between which it is spread.
_POINTS = (
    (1e-5, (0.0,)),
    (1e-3, (0.0, 2.0, 5.0)),
    (math.inf, (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0)),
)


class Batch(NamedTuple):
    """Shuffled reports of n records.

    Attributes
    ----------
    epsilon : float
        The guarantee of one report.
    n : int
    k : float
        2 for any reports. More for reports of which a share of at most 1 / k supports a record, if those have e^epsilon
        times the probability of all others: k-ary randomised response with k categories, or a hash of them.
    """

    epsilon: float
    n: int
    k: float = 2


class _Bounds(NamedTuple):
    lower: float
    upper: float


@lru_cache(maxsize=4096)
def delta_up(batch: Batch, epsilon: Fraction) -> float:
    """Return a delta with which the batch is private at epsilon, rounded up."""
    if epsilon >= Fraction(batch.epsilon):
        return 0.0
    alone, batch = _alone_up(batch, epsilon), batch._replace(n=min(batch.n, MOST))
    if batch.n == 1 or batch.epsilon > _MOST_EPSILON:
        return alone
    growth = _balls.upper(lambda: arb(batch.epsilon).exp())
    threshold = _exp_down(epsilon)
    logarithm = _log_delta_up(batch, epsilon)
    by_moments = math.exp(min(logarithm, 0.0)) * (1 + 2.0**-40) + 5e-324
    if logarithm < _FAR_LOG:
        return min(alone, by_moments)
    return min(alone, by_moments, _HockeyStick(growth, threshold, batch.n, batch.k).spread_up())


@lru_cache(maxsize=4096)
def delta_down(batch: Batch, epsilon: Fraction) -> float:
    """Return a delta below which k-ary randomised response of n reports is not private, rounded down; needs k above 2.

    That of n - 1 records in one category and a record that is moved between two others.
    """
    if epsilon >= Fraction(batch.epsilon) or batch.epsilon > _MOST_EPSILON or batch.n > MOST:
        return 0.0
    growth = -_balls.upper(lambda: -arb(batch.epsilon).exp())
    threshold = _balls.upper(lambda: arb(_rational(epsilon)).exp())
    if not threshold < growth:
        return 0.0
    return _HockeyStick(growth, threshold, batch.n, batch.k).bounds(Fraction()).lower


def _alone_up(batch: Batch, epsilon: Fraction) -> float:
    """Return the delta of one report by itself."""
    b, e = arb(batch.epsilon), _rational(epsilon)
    return min(1.0, _balls.upper(lambda: -(e - b).expm1() / (1 + (arb(batch.k) - 1) * (-b).exp())))


def epsilon_up(batch: Batch, delta: float) -> float:
    """Return an epsilon, at most one part in 2**24 above the least, at which `delta_up` is at most delta."""
    return _crossing(delta_up, batch, delta)[1]


def epsilon_down(batch: Batch, delta: float) -> float:
    """Return an epsilon, at most one part in 2**24 below the greatest, up to which `delta_down` is above delta; 0 for
    none.
    """
    return _crossing(delta_down, batch, delta)[0]


def _crossing(curve: Callable[[Batch, Fraction], float], batch: Batch, delta: float) -> tuple[float, float]:
    """Two close epsilons with a delta of the curve above this one and not above it, if it is above at 0.

    Regula falsi of the root of the logarithm of delta, which is nearly linear, with a bisection in between.
    """

    def height(epsilon: float) -> float:
        found = curve(batch, Fraction(epsilon))
        return math.sqrt(-math.log(min(1.0, max(found, _FLOOR))))

    def above(epsilon: float) -> bool:
        return curve(batch, Fraction(epsilon)) > delta

    low, high = 0.0, batch.epsilon
    if not above(low):
        return 0.0, 0.0
    target = math.sqrt(-math.log(max(delta, _FLOOR)))
    reached = [height(low), height(high)]
    turn = 0
    while high - low > high * 2.0**-24:
        share = (target - reached[0]) / (reached[1] - reached[0]) if reached[1] > reached[0] else 0.5
        place = 0.5 if turn % 3 == 2 else share + (2.0**-25 if turn % 3 else -(2.0**-25))
        middle = min(max(low + place * (high - low), low + (high - low) / 2**12), high - (high - low) / 2**12)
        if not low < middle < high:
            break
        if above(middle):
            low, reached[0] = middle, height(middle)
        else:
            high, reached[1] = middle, height(middle)
        turn += 1
    return low, high


def _log_delta_up(batch: Batch, epsilon: Fraction) -> float:
    """Return a bound of the logarithm of delta, as x_+ is at most ``exp(r x - 1) / r`` for any rate
    r; close far out.
    """
    n, k, e = batch.n, batch.k, _rational(epsilon)
    E, t = math.exp(batch.epsilon), math.exp(float(epsilon))
    terms = [(1 / (E + k - 1), E - t), (1 / (E + k - 1), 1 - E * t), ((k - 2) / (E + k - 1), 1 - t)]
    rest = 1 - sum(share for share, _ in terms)
    low, high = 0.0, 700 / (E - t) if t < E else 1.0
    for _ in range(60):  # of the derivative of n log M(r) - log r
        rate = (low + high) / 2
        powers = [(share * math.exp(rate * value), value) for share, value in terms]
        slope = n * sum(power * value for power, value in powers) / (rest + sum(power for power, _ in powers))
        low, high = (low, rate) if slope * rate > 1 else (rate, high)

    def bound() -> arb:
        growth, threshold, kinds = arb(batch.epsilon).exp(), arb(e).exp(), arb(k)
        share = 1 / (growth + kinds - 1)
        r = arb(rate)
        mean = share * (r * (growth - threshold)).expm1() + share * (r * (1 - growth * threshold)).expm1()
        mean += share * (kinds - 2) * (r * (1 - threshold)).expm1()
        return n * mean.log1p() - 1 - (n * r).log()

    return _balls.upper(bound)


def _exp_down(epsilon: Fraction) -> float:
    return max(1.0, -_balls.upper(lambda: -arb(_rational(epsilon)).exp()))


# ---- the curve of delta, its Renyi divergences and rho ----


class Curve(NamedTuple):
    """A convex curve through points of (exp(epsilon), delta) that is nowhere below the delta of a batch.

    Attributes
    ----------
    epsilons, logarithms : list of floats
        From epsilon 0 on, the logarithms of delta. Beyond the last point it is 0.
    typical : float
        The standard deviation of the privacy loss, nearly.
    """

    epsilons: list[float]
    logarithms: list[float]
    typical: float


@lru_cache(maxsize=64)
def curve(batch: Batch) -> Curve:
    """Return a curve whose points are dense where the privacy loss is likely."""
    typical = math.sqrt(2 * math.pi) * delta_up(batch, Fraction())
    epsilons: list[float] = []
    logarithms: list[float] = []
    place = 0.0
    while (epsilon := place * typical) < batch.epsilon:
        at = Fraction(epsilon)
        logarithm = _log_delta_up(batch, at)
        if logarithm >= _FAR_LOG:
            logarithm = math.log(delta_up(batch, at)) + 2.0**-40
        while len(epsilons) > 1 and _above_chord(epsilons[-2:], logarithms[-2:], epsilon, logarithm):
            epsilons.pop()
            logarithms.pop()
        epsilons.append(epsilon)
        logarithms.append(logarithm)
        place += max(0.125, place / 64)
    return Curve([*epsilons, batch.epsilon], [*logarithms, -math.inf], typical)


def _above_chord(epsilons: list[float], logarithms: list[float], epsilon: float, logarithm: float) -> bool:
    """Whether the second one of three points is above the chord of the others."""
    first, second, third = (math.exp(x - epsilon) for x in (*epsilons, epsilon))
    start, middle, end = (math.exp(y - logarithms[0]) for y in (*logarithms, logarithm))
    return (middle - start) * (third - first) > (end - start) * (second - first)


def renyi(batch: Batch, order: arb) -> arb:
    """Return a bound of the Renyi divergence of an order above 1: that of the curve.

    The integral of ``a (a - 1) (t**(a - 2) + t**(-a - 1)) delta(log t)`` from 1 on, plus 1, is the a-th moment.
    """
    total, last = arb(0), None
    for epsilon, logarithm in zip(*curve(batch)[:2], strict=True):
        t, power = arb(epsilon).exp(), (order * epsilon).exp()
        delta = arb(logarithm).exp() if logarithm > -math.inf else arb(0)
        weight = order * power / t - (order - 1) / power  # an antiderivative of the weight, and of t times it
        linear = (order - 1) * power - order * t / power
        if last is not None:
            slope = (delta - last[1]) / (t - last[0])
            total += (delta - slope * t) * (weight - last[2]) + slope * (linear - last[3])
        last = t, delta, weight, linear
    return total.log1p() / (order - 1)


@lru_cache(maxsize=64)
def rho_up(batch: Batch) -> float:
    """Return a rho of the batch, rounded up: of each interval of orders the divergence of the last, over the first."""
    bound = batch.epsilon
    low, rho = 1.0, 0.0
    while rho * low < bound:  # at orders a above, the divergence is at most the epsilon of one report
        high = low * _NEXT_ORDER
        divergence = min(bound, _balls.upper(lambda: renyi(batch, arb(high))))  # noqa: B023
        rho, low = max(rho, _balls.upper(lambda: arb(divergence) / low)), high  # noqa: B023
    return rho


class _HockeyStick:
    """``E[(h1 N1 + h2 N2 - (e - 1) (c (n - T) + g))_+] / n`` with T = N1 + N2 telling reports among n.

    h1 = E - e, h2 = 1 - E e for doubles E > e >= 1 with their exact values. T is binomial with the share 2 / (E + k -
    1), N1 given T binomial with 1/2, and c = (k - 2) / (E + k - 3).
    """

    def __init__(self, growth: float, threshold: float, n: int, kinds: float) -> None:
        self.n, self.k = n, (k := Fraction(kinds))
        self.E, self.e = Fraction(growth), Fraction(threshold)
        self.gap = (self.E - 1) * (1 + self.e)  # h1 - h2
        self.odds = 2 / (self.E + k - 3)  # of a telling report
        self.c = Fraction(k - 2) / (self.E + k - 3)
        self.first, self.chances, self.chance_error = _binomial(n, self.odds)
        top = float((self.E - self.e) / (self.E + k - 1))
        self.cut = 2 * math.exp(-_TAIL) * (top + float(self.e - 1)) * 1.01 + _FLOOR

    def bounds(self, g: Fraction) -> _Bounds:
        """Return the value for one g, whose c (n - T) + g is at least 0, and without c or with the least g."""
        slope = (self.E * self.e - 1 - (self.e - 1) * self.c) / self.gap  # in [1/2, 1]
        start = slope * self.first + (self.e - 1) * (self.c * self.n + g) / self.gap
        whole = math.floor(start)
        steps = np.arange(self.chances.size, dtype=np.int64)
        fixed = steps * math.floor(slope * 2**_DIGITS) + math.floor((start - whole) * 2**_DIGITS)
        k = np.maximum((fixed >> _DIGITS) + (whole + 1), 0)  # at most the least integer above the threshold
        above = (k - whole) - fixed * 2.0**-_DIGITS  # from the threshold to k; 2**-_DIGITS a step too much at most
        reached = int(np.searchsorted(k - steps <= self.first, True))  # k - T decreases
        with np.errstate(over="ignore", invalid="ignore"):  # far below any delta of interest: bounds are then 0 and inf
            tails, means, tail_errors, mean_errors = _tails(self.first + reached, k[reached:])
            chances, above = self.chances[reached:], above[reached:]
            total = float(np.sum(chances * (above * tails + means)))
            error = float(np.sum(chances * ((above + 1) * tail_errors + mean_errors)))
            short = float(np.sum(chances * tails)) * (self.chances.size + 1) * 2.0**-_DIGITS
        relative = self.chance_error + (self.chances.size + 16) * _UNIT
        factor = float(self.gap / self.n)
        upper = factor * (total + error) * (1 + 2 * relative) + self.cut
        lower = factor * (total - error - short) * (1 - 2 * relative)
        return _Bounds(lower if lower > _LEAST else 0.0, upper if upper < math.inf else math.inf)

    def spread_up(self) -> float:
        """Return the mean over g, the centred number of reports of third categories, spread to few points: an upper
        bound.
        """
        if not self.c:
            return self.bounds(Fraction()).upper
        trials = self.n - self.first
        first, chances, error = _binomial(trials, self.c / (1 - self.c))
        places = self._places(trials, first, first + chances.size - 1)
        at = np.clip(np.searchsorted(places, np.arange(first, first + chances.size), side="right") - 1, 0, None)
        low = places[at]
        high = places[np.minimum(at + 1, len(places) - 1)]
        share = (np.arange(first, first + chances.size) - low) / np.maximum(high - low, 1)
        weights = np.bincount(at, chances * (1 - share), len(places))
        weights[1:] += np.bincount(at, chances * share, len(places))[:-1]
        relative = error + (chances.size + 16) * _UNIT
        value, total = math.inf, 0.0
        for place, weight in zip(places, weights, strict=True):
            value = min(value, self.bounds(int(place) - self.c * trials).upper)  # it decreases in the place
            total += float(weight) * value if weight else 0.0
        return total * (1 + 2 * relative) + self.cut

    def _places(self, trials: int, least: int, most: int) -> NDArray[np.int64]:
        """Integers from `least` to `most`, the denser the more the number of third reports matters."""
        if most - least <= _FEW:
            return np.arange(least, most + 1)
        mean, spread = float(self.c * trials), math.sqrt(float(self.c * (1 - self.c) * trials))
        telling = float(self.gap**2 / 4 * self.n * 2 / (self.E + self.k - 1))
        ratio = (float(self.e - 1) * spread) ** 2 / telling
        points = next(points for most_ratio, points in _POINTS if ratio <= most_ratio)
        inner = [round(mean + sign * spread * point) for point in points for sign in (-1, 1)]
        return np.array(sorted({least, most, *(place for place in inner if least < place < most)}), np.int64)


def _binomial(n: int, odds: Fraction) -> tuple[int, NDArray[np.float64], float]:
    """Return the probabilities of a binomial number with these odds, from the first one of a window on, and a relative
    error.

    Below the window, and above it, the probability is at most exp(-75), also for n - 1 trials and the number plus 1.
    """
    share = float(odds / (1 + odds))
    mean, variance = n * share, n * share * float(1 / (1 + odds))
    width = _TAIL / 3 + math.sqrt(_TAIL**2 / 9 + 2 * _TAIL * variance) + 2
    first, last = max(0, math.floor(mean - width) - 1), min(n, math.ceil(mean + width) + 1)
    mode = min(max(math.floor(mean), first), last)
    at = _balls.upper(lambda: _log_binomial(n, mode, odds).exp())
    t = np.arange(first, last, dtype=np.float64)
    ratios = (n - t) / (t + 1) * float(odds)
    above = np.cumprod(ratios[mode - first :])
    below = np.cumprod(1 / ratios[: mode - first][::-1])[::-1]
    chances = at * np.concatenate([below, [1.0], above])
    return first, chances, 8 * (chances.size + 1) * _UNIT


def _log_binomial(n: int, t: int, odds: Fraction) -> arb:
    r = _rational(odds)
    ways = arb(n + 1).lgamma() - arb(t + 1).lgamma() - arb(n - t + 1).lgamma()
    return ways + t * arb(r).log() - n * arb(1 + r).log()


def _tails(first: int, k: NDArray[np.int64]) -> tuple[NDArray[np.float64], ...]:
    """P(X >= k_i) and E[(X - k_i)_+] of X, binomial with T = first + i trials and 1/2, and bounds of their errors.

    k_i increases with i by 0 or 1, T / 2 <= k_i + 1, k_i <= T. Recurrences in i, started afresh by series now and then.
    """
    size = k.size
    tails, means, tail_errors, mean_errors = np.empty((4, size))
    start = 0
    while start < size:
        stop = min(size, start + min(_LONGEST, max(8, (first + start) // 64)))
        piece = slice(start, stop)
        tails[piece], means[piece], tail_errors[piece], mean_errors[piece] = _recurrence(first + start, k[piece])
        start = stop
    return tails, means, tail_errors, mean_errors


def _recurrence(trials: int, k: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64], float, float]:
    at, tail, mean, error = _series(trials, int(k[0]))
    n, steps = trials + np.arange(k.size, dtype=np.float64), k.size
    up = k[1:] > k[:-1]
    now, places = n[:-1] + 1, k[:-1].astype(np.float64)
    mass = at * np.concatenate([[1.0], np.cumprod(now / (2 * np.where(up, places + 1, now - places)))])
    change = np.where(up, -0.5 * mass[:-1], 0.5 * mass[:-1] * (places / (now - places)))
    tails = np.cumsum(np.concatenate([[tail], change]))
    grown = np.where(up, -0.5 * (tails[:-1] - mass[:-1]), 0.5 * tails[:-1])
    means = np.cumsum(np.concatenate([[mean], grown]))
    relative = error + (4 * steps + 8) * _UNIT
    tail_error = tail * error + float(np.abs(change).sum()) * relative + steps * _UNIT * float(np.abs(tails).max())
    mass_error = float(mass.max()) * relative
    mean_error = (
        mean * error
        + steps / 2 * (tail_error + mass_error)
        + steps * _UNIT * float(np.abs(means).max() + np.abs(tails).max())
    )
    return tails, means, 1.01 * tail_error, 1.01 * mean_error


def _series(trials: int, k: int) -> tuple[float, float, float, float]:
    """P(X = k), P(X >= k) and E[(X - k)_+], not below them except for rounding, and a bound of their relative error.

    The error is 1, and the numbers are too large, if they are below 1e-280.
    """
    exact = _balls.upper(lambda: _log_binomial(trials, k, Fraction(1)).exp())
    at = max(_SMALLEST, exact)
    count = min(trials - k, 64 + 5 * math.isqrt(trials + 1))
    m = np.arange(1, count + 1, dtype=np.float64)
    terms = np.cumprod((trials - k - m + 1) / (k + m))
    tail, mean = 1 + float(terms.sum()), float((m * terms).sum())
    rest = (trials - k - count) / (k + count + 1)
    if rest > 0:
        last = float(terms[-1]) * rest / (1 - rest)
        tail, mean = tail + last, mean + last * (count + 1 / (1 - rest))
    return at, at * tail, at * mean, 1.0 if exact < _SMALLEST else (4 * count + 16) * _UNIT


def _rational(x: Fraction) -> fmpq:
    return fmpq(x.numerator, x.denominator)
