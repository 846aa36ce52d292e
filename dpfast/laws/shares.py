"""Shares of noise: independent draws of many people whose sum has a wanted law."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial

import numpy as np
from flint import arb
from numpy.random import BitGenerator
from numpy.typing import NDArray

from dpfast._kernels import _balls, _samplers

_MOST_MEAN = 256  # of one Poisson number, drawn by inversion


@dataclass(frozen=True)
class LaplaceShare:
    """The difference of two negative binomial numbers; the sum of m shares is discrete Laplace noise exactly.

    Each number has the law ``(1 - q)**(1/m) comb(k + 1/m - 1, k) q**k``, ``q = exp(-1 / scale)``; m of them add up to a
    geometric number.

    Parameters
    ----------
    scale : Fraction
        Of the discrete Laplace noise, at most 2**56.
    shares : int
        m, at least 1.

    Notes
    -----
    A negative binomial number is the sum of a Poisson number of logarithmic ones, ``P(k)`` proportional to
    ``q**k / k``. The terms of all entries together are a Poisson number; each falls into a uniformly random entry and
    sign. https://dpfast.readthedocs.io/en/latest/proofs/secure-aggregation.html
    """

    scale: Fraction
    shares: int

    def fill(self, source: BitGenerator, out: NDArray[np.int64]) -> None:
        """Fill a one-dimensional array with independent shares, exactly."""
        out[:] = 0
        places = np.empty(self._events(source, 2 * out.size), np.uint64)
        if places.size:
            _samplers.fill_uniform(source, 2 * out.size - 1, places)
        for place in places.tolist():
            out[place >> 1] += self._logarithmic(source) * (1 if place & 1 else -1)

    def _events(self, source: BitGenerator, numbers: int) -> int:
        """Return a Poisson number of mean ``-log(1 - q) numbers / m``: that of the logarithmic terms of so many
        numbers.
        """
        mean = numbers / self.shares * max(-math.log(-math.expm1(-1 / float(self.scale))), 1e-300)
        chunks = max(1, math.ceil(mean / _MOST_MEAN))

        def part() -> arb:
            return -((-self._rate()).expm1() * -1).log() * numbers / (self.shares * chunks)

        return sum(_balls.poisson(*_draw(source), part) for _ in range(chunks))

    def _rate(self) -> arb:
        return arb(_balls.rational(1 / self.scale))

    @cached_property
    def _levels(self) -> int:
        """The least j with 2**j >= scale."""
        return (math.ceil(self.scale) - 1).bit_length()

    def _logarithmic(self, source: BitGenerator) -> int:
        """Return a logarithmic number, by rejection.

        Levels have equal probability. On level j numbers are uniform on 2**j..2**(j + 1) - 1, kept with probability
        ``2**j q**k / k``; on the last one 2**j plus a geometric number, kept with ``q**(2**j) / ((1 - q) k)``, at most
        1.
        """
        while True:
            level = _below(source, self._levels + 1)
            if level < self._levels:
                k = (1 << level) + _below(source, 1 << level)
                if _below(source, k) < 1 << level and _balls.below_exp_neg(*_draw(source), k / self.scale):
                    return k
                continue
            tail = np.empty(1, np.int64)
            _samplers.fill_geometric(source, self.scale, tail)
            k = (1 << level) + int(tail[0])
            if _balls.below(*_draw(source), partial(self._tail_edge, level, k)):
                return k

    def _tail_edge(self, level: int, k: int) -> arb:
        return (-self._rate() * (1 << level)).exp() / (-(-self._rate()).expm1() * k)


@dataclass(frozen=True)
class GaussianShare:
    """Discrete Gaussian noise on the integers, ``P(z)`` proportional to ``exp(-z**2 / (2 variance))``.

    The sum of m shares is nearly discrete Gaussian noise of m times the variance: all probabilities agree within a
    factor of ``exp(log_ratio_up(m))``.
    """

    variance: Fraction

    def fill(self, source: BitGenerator, out: NDArray[np.int64]) -> None:
        """Fill a one-dimensional array with independent shares, exactly."""
        _samplers.fill_discrete_gaussian(source, self.variance, out)

    def log_ratio_up(self, shares: int) -> float:
        """Return a bound of ``|log(P(sum = z) / Q(z))|`` over all z, Q discrete Gaussian; rounded up.

        ``(m - 1) log((1 + theta) / (1 - theta))`` for the theta of
        https://dpfast.readthedocs.io/en/latest/proofs/secure-aggregation.html; infinite if the variance is too small
        for it.
        """
        if shares == 1:
            return 0.0

        def bound() -> arb:
            x = (-(arb.pi() ** 2) * _balls.rational(self.variance)).exp()
            theta = 2 * x / (1 - x**3)
            return (shares - 1) * ((1 + theta) / (1 - theta)).log()

        return _balls.upper(bound) if self.variance > Fraction(1, 8) else math.inf


def _draw(source: BitGenerator) -> tuple[int, Callable[[], int]]:
    """Return a word, and a function that draws more of them."""
    more = partial(_samplers.next_word, source)
    return more(), more


def _below(source: BitGenerator, n: int) -> int:
    """Uniform on 0..n - 1, exactly; n <= 2**63."""
    out = np.empty(1, np.uint64)
    _samplers.fill_uniform(source, n - 1, out)
    return int(out[0])
