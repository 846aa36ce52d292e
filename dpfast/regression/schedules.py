"""Public schedules of regressions in several releases: the steps, and how they share a budget."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dpfast.core import checks
from dpfast.core.divergences import gaussian_mu_down
from dpfast.core.privacy import Privacy
from dpfast.core.rounding import down, root_down
from dpfast.domains import Ball

MOST_STEPS = 16
_MOST_UNIT = 2.0**200  # and its inverse: sizes in data units whose squares and quotients are doubles
_MANY_STEPS = 13  # beyond which fewer steps suffice for the noise
_LEAST_CLIP = 0.5
# Logistic gradients are clipped at least here, in units of z, or where noise is about this share of sampling, less for
# fewer records to a coefficient. For income by hours of 48,842 people, one of three columns or alone, the clip of other
# models has biases of 2 to 11 errors of sampling, since rows are not normal, and 0 to 20 % of intervals of 95 % held
# the coefficient for epsilon from 0.2 to 4; this one 92 to 100 %, but 0 to 5 % with a delta at epsilon 0.2, where noise
# does not allow it. For 2 to 20 normal columns and 2000 to 100,000 records the error is 0.7 to 1.03 times as large. A
# clip of twice the root of the number of coefficients had up to 1.13 times the error.
_WIDE_CLIP, _WIDE_NOISE, _RECORDS = 3.4, 0.25, 8000
_LEAST_NOISE = 1e-12  # with less, the schedule does not change
_MATCHED_MOMENTS, _MATCHED_CLIP = 0.25, 0.9  # the share of the second moments; the clip relative to that of steps
_LEAST_MATCHED = 3
_MOST_MATCHED = 64  # coefficients
_MOST_MATCHED_NOISE = 0.25  # of second moments, relative to the mean of those of rows of length 1
_LEAST_MATCHED_EPSILON = 2.0**-5  # the first gradients have a small share of it


class Schedule(NamedTuple):
    """The steps of `Descent`: the mean of the labels, second moments of the rows, then gradients.

    Shares are of mu**2 for Gaussian noise, else of epsilon. The gradients get the rest in proportion to 1, 2, 3, ...,
    or, if they are matched, to the second or fifth power of these.

    Attributes
    ----------
    labels, moments : float
        The shares of the mean of the labels and of the second moments.
    steps : int
        The number of gradients.
    clip : float
        The clip of a gradient, in units of the root mean square length of the transformed rows times the size of a
        residual.
    ridge : float
        Added to the second moments, in units of the largest eigenvalue of their noise.
    matching : bool
        For a logistic model with pure noise: whether coefficients are matched to all gradients so far, in place of
        steps against them.
    """

    labels: float
    moments: float
    steps: int
    clip: float
    ridge: float
    matching: bool = False


def schedule(n: int, p: int, privacy: Privacy, *, logistic: bool = False) -> Schedule:
    """Return the schedule for n records, p coefficients with the intercept, and a guarantee in mu or epsilon.

    With `logistic`, for a logistic model of two classes: gradients with pure noise are matched, unless there are more
    than 64 coefficients, or noise hides the second moments.

    Each step shrinks the distance to the solution by a factor, and the noise grows with the number of steps; so their
    number is proportional to the logarithm of n relative to the noise. A clip biases the coefficients away from 0, of
    which the fit removes most, and the noise is proportional to it; so it falls where there is much noise.

    Examples
    --------
    >>> import dpfast as dpf
    >>> from dpfast.regression import schedule
    >>> schedule(2200, 11, dpf.Privacy(10.0))
    Schedule(labels=0.02, moments=0.3, steps=4, clip=0.8, ridge=0.3, matching=False)
    >>> schedule(2200, 11, dpf.Privacy(10.0), logistic=True).matching
    True
    """
    if privacy.mu is not None:
        noise, growth, more, moments = 2 * math.sqrt(p) / (n * privacy.amount), 1.25, 3, 0.2
        clip, little, much = 1.0, 0.0005, 0.0005
    else:
        noise, growth, more, moments = 2 * p / (n * privacy.amount), 0.65, 0, 0.3
        clip, little, much = 0.8, 0.0005, 0.001
    noise = max(noise, _LEAST_NOISE)
    steps = round(growth * math.log(1 / noise)) if noise < 1 else 1
    steps = max(steps, min(steps + more, _MANY_STEPS))
    clip *= max(little / noise, 1.0) ** 0.25 * min(much / noise, 1.0) ** 0.2
    steps, clip = min(max(steps, 1), MOST_STEPS), max(clip, _LEAST_CLIP)
    matched = logistic and privacy.mu is None and _matched(n, p, privacy.amount)
    if matched:
        steps, clip = max(steps - 1, _LEAST_MATCHED), _MATCHED_CLIP * clip
    if logistic:
        wide = _WIDE_NOISE * math.sqrt(min(n / (_RECORDS * p), 1.0) / n) / noise
        clip = max(clip, min(_WIDE_CLIP / math.sqrt(p), wide))
    if matched:
        return Schedule(0.02, _MATCHED_MOMENTS, steps, clip, ridge=0.3, matching=True)
    return Schedule(labels=0.02, moments=moments, steps=steps, clip=clip, ridge=0.3)


def _matched(n: int, p: int, epsilon: float) -> bool:
    """Whether matched gradients are better than steps: unless noise hides the second moments."""
    noise = 1.6 * p**1.5 / (n * _MATCHED_MOMENTS * epsilon)
    return p <= _MOST_MATCHED and noise <= _MOST_MATCHED_NOISE and epsilon >= _LEAST_MATCHED_EPSILON


def amounts(privacy: Privacy) -> tuple[float | None, float | None]:
    """Return the mu of Gaussian steps, or the epsilon of others."""
    if privacy.unit == "rho":
        raise ValueError("privacy must be in epsilon or mu, not rho")
    if privacy.neighbors != "replace-one" or privacy.records != 1:
        raise ValueError("privacy must be for one record replaced")
    if privacy.mu is not None:
        return checks.positive_down("mu", privacy.mu), None
    epsilon, delta = checks.positive_down("epsilon", privacy.epsilon), checks.delta_down(privacy.delta)
    return (gaussian_mu_down(epsilon, delta), None) if delta else (None, epsilon)


def amount_of(share: Fraction, mu: float | None, epsilon: float | None) -> dict[str, float]:
    """Return the guarantee of a step: the squares of mu, or the epsilons, add up to at most those of the whole."""
    if mu is not None:
        return {"mu": root_down(share * Fraction(mu) ** 2)}
    assert epsilon is not None
    return {"epsilon": down(share * Fraction(epsilon))}


def check_units(domain: Ball, *sizes: float, center: float = 0.0) -> None:
    """Reject sizes in data units whose squares and quotients are not doubles: of rows, and of labels."""
    sizes, centers = (domain.radius, *sizes), (center, *np.atleast_1d(domain.center).tolist())
    if not (all(1 / _MOST_UNIT <= size <= _MOST_UNIT for size in sizes) and max(map(abs, centers)) <= _MOST_UNIT):
        raise ValueError("radius, center, label_bound and k must be within 2**-200 and 2**200: use other units")
