"""Public schedules of descents: the steps, and how they share a budget."""

from __future__ import annotations

import math
from typing import NamedTuple

from dpfast.privacy import Privacy

_MOST_STEPS = 16
_LEAST_NOISE = 1e-12  # with less, the schedule does not change
_CLIPPED_NOISE = 0.0005  # relative to the signal, below which gradients are clipped less


class Schedule(NamedTuple):
    """The steps of `Descent`: the mean of the labels, second moments of the rows, then gradients.

    Shares are of mu**2 for Gaussian noise, else of epsilon. The gradients get the rest in proportion to 1, 2, 3, ...

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
    """

    labels: float
    moments: float
    steps: int
    clip: float
    ridge: float


def schedule(n: int, p: int, privacy: Privacy) -> Schedule:
    """The schedule for n records, p coefficients with the intercept, and a guarantee in mu or epsilon.

    Each step shrinks the distance to the solution by a factor, and the noise grows with the number of steps; so their
    number is proportional to the logarithm of n relative to the noise. A clip biases the coefficients away from 0, and
    the noise is proportional to it; so it grows where there is little noise.

    Examples
    --------
    >>> import dpfast as dpf
    >>> from dpfast.regression import schedule
    >>> schedule(10_000, 11, dpf.Privacy(1.0))
    Schedule(labels=0.02, moments=0.2, steps=4, clip=0.8, ridge=0.3)
    """
    if privacy.mu is not None:
        noise, growth, clip = 2 * math.sqrt(p) / (n * privacy.amount), 1.25, 1.0
    else:
        noise, growth, clip = 2 * p / (n * privacy.amount), 0.65, 0.8
    noise = max(noise, _LEAST_NOISE)
    steps = round(growth * math.log(1 / noise)) if noise < 1 else 1
    clip *= max(1.0, _CLIPPED_NOISE / noise) ** 0.25
    return Schedule(labels=0.02, moments=0.2, steps=min(max(steps, 1), _MOST_STEPS), clip=clip, ridge=0.3)
