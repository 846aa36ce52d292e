"""The choice of noise for an integer of a public sensitivity."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from dpfast._kernels import _balls
from dpfast.core import checks
from dpfast.laws import DiscreteLaplace, Staircase


@lru_cache(maxsize=1024)
def kind_of_noise(noise: str, steps: int, epsilon: float) -> str:
    """Return the name of the noise; for "auto" that of less mean magnitude for an integer of this sensitivity."""
    if noise != "auto":
        return noise
    scale = steps / Fraction(epsilon)
    less = steps <= 2**56 and _balls.staircase_is_less(scale, steps, _balls.staircase_r(scale, steps))
    return "staircase" if less else "discrete-laplace"


@lru_cache(maxsize=1024)
def integer_noise(noise: str, steps: int, sensitivity: int, epsilon: float) -> DiscreteLaplace | Staircase:
    """Return the noise of this kind that makes an integer of this sensitivity epsilon-private.

    A constant, of sensitivity 0, has a range of a single code: clamping removes the noise.
    """
    scale = checks.noise_scale(sensitivity, epsilon) or Fraction(1)
    if sensitivity and kind_of_noise(noise, steps, epsilon) == "staircase":
        return Staircase(scale, checks.period(sensitivity))
    return DiscreteLaplace(scale)
