"""Composition of privacy losses: the delta of parts together at an epsilon, and their event of dp-accounting.

With dp-accounting, distributions of losses give the curve; without it, closed forms do, which are larger for parts of
several kinds. Proof: https://dpfast.readthedocs.io/en/latest/proofs/composition.html.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.core import shuffling
from dpfast.core.divergences import (
    Part,
    concentrated_delta_up,
    gaussian_delta_up,
    has_epsilon,
    rho_up,
    zero_sum_share_up,
)
from dpfast.core.rounding import down, up

_BUCKET = 1e-4  # largest width of a bucket of privacy losses
_SPARE = 1 + 2.0**-30  # allowance for rounding of values computed in doubles
_MOST_BUCKETS = 2.0**20  # of the losses of one part
_NOISES = ("gaussian", "laplace", "discrete-laplace", "concentrated")
# Steps of discrete Laplace noise whose event is its own: of more, dp-accounting makes lists, of 1e5 steps for 0.3 s, of
# 1e9 beyond the memory, and continuous noise of epsilon + epsilon**2 / 4e6 is as good.
_MOST_STEPS = 1000
_NEGLIGIBLE = -60.0  # logarithm of a delta of shuffled reports beyond which no loss is distinguished


def counted(parts: Iterable[tuple[Part, int]]) -> dict[Part, int]:
    """Return how often each part is made, of those that reveal anything."""
    counts: dict[Part, int] = {}
    for part, times in parts:
        if part.parameter and times:
            counts[part] = counts.get(part, 0) + times
    return counts


def delta_up(parts: dict[Part, int], epsilon: Fraction) -> float:
    """Return the delta of all parts together, rounded up: the least of the closed forms and of the losses."""
    exact = exact_delta_up(parts, epsilon)
    if exact is not None:
        return exact
    rho = sum((times * rho_up(part) for part, times in parts.items()), Fraction())
    delta = concentrated_delta_up(rho, epsilon)
    pure = {part: times for part, times in parts.items() if has_epsilon(part.family)}
    left = epsilon - sum((times * Fraction(part.parameter) for part, times in pure.items()), Fraction())
    if pure and left >= 0:  # epsilons add up to those of the rest, whatever its delta
        delta = min(delta, delta_up({part: times for part, times in parts.items() if part not in pure}, left))
    if any(part.family == "concentrated" for part in parts):
        return delta
    try:
        return min(delta, delta_of_losses_up(parts, epsilon))
    except ImportError:
        return delta


def exact_delta_up(parts: dict[Part, int], epsilon: Fraction) -> float | None:
    """Return 0 if the epsilons sum to at most this one, or the curve of a Gaussian, rounded up; else None."""
    sums = sum((times * Fraction(part.parameter) for part, times in parts.items()), Fraction())
    if sums <= epsilon and all(has_epsilon(part.family) for part in parts):
        return 0.0
    if all(part.family == "gaussian" for part in parts):
        squared = sum((times * Fraction(part.parameter) ** 2 for part, times in parts.items()), Fraction())
        return float(gaussian_delta_up(squared, epsilon))
    return None


def delta_of_losses_up(parts: dict[Part, int], epsilon: Fraction) -> float:
    """Return the delta of all parts by distributions of losses, rounded up. Requires dp-accounting.

    1 where a loss may exceed 2**20, which would take buckets wider than 1.
    """
    costs = list(map(_typical, parts))
    bucket = max(min(_BUCKET, max(min(costs) / 100, max(costs) / 1e5)), max(map(_reach, parts)) / _MOST_BUCKETS)
    if bucket > 1:
        return 1.0
    losses = None
    for part, times in parts.items():
        more = part._replace(parameter=max(up(Fraction(part.parameter)), bucket * 2.0**-40))  # invertible in doubles
        composed = _loss_distribution(more, bucket).self_compose(times)
        losses = composed if losses is None else losses.compose(composed)
    assert losses is not None
    return min(1.0, float(losses.get_delta_for_epsilon(down(epsilon))) * _SPARE + 2.0**-44)


def event(parts: dict[Part, int]) -> Any:
    """Return the ``dp_accounting.DpEvent`` of all parts together. Its accountants then bound at least as much.

    Noise alone has its own events. With anything else, each epsilon is the event of a randomised response, whose losses
    no release exceeds: accountants take it for one relation, events of Laplace noise for another only.
    """
    try:
        from dp_accounting import dp_event
    except ImportError:
        raise ImportError("an event needs dp-accounting: pip install dp-accounting") from None
    noise, events = all(part.family in _NOISES for part in parts), []
    for part, times in parts.items():
        parameter = up(Fraction(part.parameter))
        if part.family == "concentrated":
            one: Any = dp_event.ZCDpEvent(parameter)
        elif part.family == "gaussian":
            one = dp_event.GaussianDpEvent(down(1 / Fraction(parameter)))
        elif noise and part.family == "laplace":
            one = dp_event.LaplaceDpEvent(down(1 / Fraction(parameter)))
        elif noise and part.steps > _MOST_STEPS:
            one = dp_event.LaplaceDpEvent(down(1 / Fraction(laplace_epsilon_up(parameter, part.steps))))
        elif noise:
            one = dp_event.DiscreteLaplaceDpEvent(up(Fraction(parameter) / part.steps), part.steps)
        else:  # a share of 2 / (1 + e**epsilon) is drawn at random, rounded down by more than the error of doubles
            share = 2 * math.exp(-parameter) / (1 + math.exp(-parameter)) * (1 - 2.0**-50)
            one = dp_event.RandomizedResponseDpEvent(share, 2) if share else dp_event.NonPrivateDpEvent()
            # One by one: dp-accounting 0.6 counts a `SelfComposedDpEvent` of a randomised response only once.
            events += [one] * (times - 1)
            times = 1
        events.append(one if times == 1 else dp_event.SelfComposedDpEvent(one, times))
    if not events:
        return dp_event.NoOpDpEvent()
    return events[0] if len(events) == 1 else dp_event.ComposedDpEvent(events)


def laplace_epsilon_up(epsilon: float, steps: int) -> float:
    """Return an epsilon of Laplace noise that dominates discrete Laplace noise of epsilon and so many steps or more.

    https://dpfast.readthedocs.io/en/latest/proofs/global-sensitivity.html
    """
    return up(Fraction(epsilon) + (Fraction(epsilon) / steps) ** 2 / 4)


def _typical(part: Part) -> float:
    """Return a privacy loss to be expected of a part, at least nearly: its parameter, or less if it is of shuffled
    reports.
    """
    return shuffling.curve(part.batch).typical if part.family == "shuffled" else up(Fraction(part.parameter))


def _reach(part: Part) -> float:
    """Return the largest privacy loss of a part; of a Gaussian or shuffled reports, one that is
    hardly ever exceeded.
    """
    if part.family == "shuffled":
        return _far(part)
    cost = up(Fraction(part.parameter))
    return cost * (cost / 2 + 10) if part.family == "gaussian" else cost


def _loss_distribution(part: Part, bucket: float) -> Any:
    """Return the distribution of the privacy losses, rounded up to multiples of `bucket`."""
    try:
        from dp_accounting.pld import common, pld_pmf, privacy_loss_distribution
    except ImportError:
        raise ImportError("distributions of losses need dp-accounting: pip install dp-accounting") from None
    family, epsilon = part.family, part.parameter
    if family == "laplace":
        return privacy_loss_distribution.from_laplace_mechanism(
            float(1 / epsilon) * (1 - 2.0**-50), value_discretization_interval=bucket
        )
    if family == "gaussian":
        return privacy_loss_distribution.from_gaussian_mechanism(
            float(1 / epsilon) * (1 - 2.0**-50), value_discretization_interval=bucket
        )
    if family == "pure":
        pure = common.DifferentialPrivacyParameters(epsilon, 0.0)
        return privacy_loss_distribution.from_privacy_parameters(pure, value_discretization_interval=bucket)
    reach = math.ceil((_far(part) if family == "shuffled" else epsilon) / bucket)
    places = list(range(-reach, reach + 1))
    divergences = [_CURVES[family](max(-epsilon, min(i * bucket, epsilon)), part) for i in places]
    return privacy_loss_distribution.PrivacyLossDistribution(
        pld_pmf.create_pmf_pessimistic_connect_dots(bucket, places, divergences)
    )


def _bounded_range_curve(t: float, part: Part) -> float:
    """Return the largest hockey-stick divergence at t of laws whose loss has a range of epsilon (Dong, Durfee and
    Rogers).
    """
    epsilon = part.parameter
    return math.expm1((t - epsilon) / 2) ** 2 / -math.expm1(-epsilon)


def _discrete_laplace_curve(t: float, part: Part) -> float:
    """Return the hockey-stick divergence at t of discrete Laplace noise, ``P(Z < j) - exp(t) P(Z < j - s)``."""
    epsilon, s = part.parameter, part.steps
    j = math.ceil((epsilon - t) / (2 * epsilon) * s)  # the loss of z is above t if z < j
    rate = epsilon / s
    q = math.exp(-rate)
    return -(math.expm1(-rate * j) + q * math.expm1(t - rate * (s - j))) / (1 + q)


def _staircase_curve(t: float, part: Part) -> float:
    """Return the hockey-stick divergence at t of the losses epsilon, 0 and -epsilon of staircase noise."""
    s, top, q, rest = part.steps, 2 * part.r - 1, math.exp(-part.parameter), -math.expm1(-part.parameter)
    crossed, total = min(top, s), top + (2 * s - top) * q
    most = (crossed + (s - crossed) * q) / total
    none = rest * (max(top - s, 0) + q * max(s - top, 0)) / total
    return most * -math.expm1(t - part.parameter) + none * -math.expm1(min(t, 0.0))


def _zero_sum_curve(t: float, part: Part) -> float:
    """Return the hockey-stick divergence at t of the losses epsilon, 0 and -epsilon of zero-sum Laplace noise."""
    most, x = zero_sum_share_up(part), math.exp(-part.parameter)
    none = 1 - most * (1 + x)
    return most * -math.expm1(t - part.parameter) + none * -math.expm1(min(t, 0.0))


def _far(part: Part) -> float:
    """Return the privacy loss from which the delta of shuffled reports is negligible."""
    curve = shuffling.curve(part.batch)
    return next(e for e, logarithm in zip(curve.epsilons, curve.logarithms, strict=True) if logarithm <= _NEGLIGIBLE)


def _shuffled_curve(t: float, part: Part) -> float:
    """Return a bound of the hockey-stick divergence at t of shuffled reports, at t < 0 ``1 - e^t (1 - delta(-t))``."""
    epsilons, deltas = _shuffled_points(part)
    delta = float(np.interp(math.exp(abs(t)), epsilons, deltas))
    return delta if t >= 0 else -math.expm1(t) + math.exp(t) * delta


@lru_cache(maxsize=64)
def _shuffled_points(part: Part) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the points (exp(epsilon), delta) between which the curve of delta is a straight line."""
    curve = shuffling.curve(part.batch)
    return np.exp(curve.epsilons), np.exp(curve.logarithms)


_CURVES = {
    "bounded-range": _bounded_range_curve,
    "discrete-laplace": _discrete_laplace_curve,
    "shuffled": _shuffled_curve,
    "staircase": _staircase_curve,
    "zero-sum-laplace": _zero_sum_curve,
}
