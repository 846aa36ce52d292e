"""The noise of several sums of codes at once, by public numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import scipy

from dpfast.core import checks
from dpfast.core.divergences import gaussian_mu_down
from dpfast.core.rounding import down, root_up, up
from dpfast.theory.quantiles import normal_plus_box_error

NOISE = ("auto", "k-norm", "gaussian")
_TOO_MUCH = "noise of more than 2**56 steps of the grid: use a coarser step"


@dataclass(frozen=True)
class SumsNoise:
    """The noise of p sums that one record changes by at most their widths, all of them at once.

    "k-norm": of density proportional to ``exp(-epsilon max_i |z_i| / width_i)``, Laplace noise for p = 1. "gaussian":
    independent, each of standard deviation ``width_i sqrt(p) / mu``, mu that of (epsilon, delta).

    Parameters
    ----------
    kind : {"k-norm", "gaussian"}
    parameters : int
        p.
    epsilon : Fraction
    delta : float
        Positive for "gaussian".
    """

    kind: str
    parameters: int
    epsilon: Fraction
    delta: float

    @classmethod
    def chosen(cls, noise: str, parameters: int, epsilon: Fraction, delta: float) -> SumsNoise:
        """Return the noise of this kind; for "auto", the one of less variance."""
        norm = cls("k-norm", parameters, epsilon, delta)
        if noise == "k-norm" or not delta:
            return norm
        gaussian = cls("gaussian", parameters, epsilon, delta)
        return gaussian if noise == "gaussian" or gaussian.laplace_epsilon > norm.laplace_epsilon else norm

    @cached_property
    def mu(self) -> float:
        return gaussian_mu_down(down(self.epsilon), self.delta)

    @property
    def laplace_epsilon(self) -> float:
        """The epsilon of Laplace noise with the same variance on one sum of the same width."""
        p = self.parameters
        return self.mu * math.sqrt(2 / p) if self.kind == "gaussian" else _norm_share(p) * float(self.epsilon)

    def scale(self, width: int) -> Fraction | float:
        """Return the scale of the noise of a sum of this width: width / epsilon, or the standard
        deviation, rounded up.
        """
        if self.kind == "k-norm":
            return checks.noise_scale(width, self.epsilon)
        sigma = up(width * Fraction(root_up(self.parameters / Fraction(self.mu) ** 2)))
        if sigma > 2**56:
            raise ValueError(f"epsilon={float(self.epsilon)!r}, delta={self.delta!r} need {_TOO_MUCH}")
        return sigma

    def error(self, deviation: float, width: float, confidence: float) -> float:
        """Return the error that a normal variable of this deviation and the noise have with this confidence."""
        if self.kind == "gaussian":
            sigma = width * math.sqrt(self.parameters) / self.mu
            return math.hypot(deviation, sigma) * float(scipy.special.ndtri((1 + confidence) / 2))
        return normal_plus_box_error(deviation, width / float(self.epsilon), self.parameters, confidence)


def _norm_share(p: int) -> float:
    """1 for p = 1; the variance of a coordinate of K-norm noise is ``(p + 1)(p + 2) / 3 (width / epsilon)**2``."""
    return math.sqrt(6 / ((p + 1) * (p + 2)))
