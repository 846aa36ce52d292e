"""Public schedules of descents: the steps, and how they share a budget."""

from __future__ import annotations

import math
from typing import NamedTuple

from dpfast.privacy import Privacy

_MOST_STEPS = 16


class Schedule(NamedTuple):
    """The steps of `Descent`: the mean of the labels, second moments of the rows, then gradients.

    Shares are of mu**2 for Gaussian noise, else of epsilon. Gradients get the rest, in proportion to 1, 2, 3, ...

    Attributes
    ----------
    labels, moments : float
        The shares of the mean of the labels and of the second moments.
    steps : int
        The number of gradients.
    clip : float
        Of a gradient, in units of the root mean square length of the transformed rows times the scale of residuals.
    ridge : float
        Added to the second moments, in units of the size of their noise.
    rate : float
        Of a step, in units of the inverse curvature at the mean of the labels; `most_rate` is its largest value.
    most_rate : float
    """

    labels: float
    moments: float
    steps: int
    clip: float = 0.75
    ridge: float = 0.3
    rate: float = 1.5
    most_rate: float = 12.0


def schedule(n: int, d: int, privacy: Privacy) -> Schedule:
    """The schedule for n records, d coefficients with the intercept, and a guarantee in epsilon or in mu.

    A step shrinks the distance to the solution by a factor, and the noise grows with the number of steps; so their
    number is the logarithm of n relative to the noise.
    """
    if privacy.mu is not None:
        noise, growth, moments = 2 * math.sqrt(d) / (n * float(privacy.mu)), 1.25, 0.15
    else:
        noise, growth, moments = 2 * d / (n * float(privacy.epsilon)), 0.625, 1 / 3
    steps = round(growth * math.log(1 / noise)) if noise < 1 else 1
    return Schedule(labels=0.02, moments=moments, steps=min(max(steps, 1), _MOST_STEPS))
