"""Laws of noise on integers that one record changes together: K-norm noise on lattices, drawn by rejection."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast._kernels import _samplers
from dpfast.core import checks
from dpfast.laws.vectors import VectorNoise

_LARGEST = 2**63 - 1
_MOST_PROPOSED = 2**14  # integers in one round, which stay in the cache


class RejectedLaplace(VectorNoise):
    """Noise drawn by rejection from independent discrete Laplace noise, exactly.

    A proposal with an excess of m is accepted with probability ``exp(-m / scale)``, as a geometric draw of this scale
    that is at least m. Rounds end with probability 1.

    Parameters
    ----------
    dimension : int
    scale : Fraction
        In (0, 2**56].
    """

    def __init__(self, dimension: int, scale: Fraction) -> None:
        super().__init__(dimension)
        self.scale = scale

    @property
    @abstractmethod
    def acceptance(self) -> float:
        """The probability that a proposal is accepted; public."""

    @abstractmethod
    def _propose(self, source: np.random.BitGenerator, rows: int, out: NDArray[np.int64]) -> int:
        """Fill the first rows of `out` with the vectors accepted of so many proposals; return their number."""

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        most, filled = max(_MOST_PROPOSED // self.dimension, 1), 0
        while filled < len(out):
            rows = min(math.ceil(2 * (len(out) - filled) / self.acceptance), most)
            filled += self._propose(source, rows, out[filled:])


class ZeroSumLaplace(RejectedLaplace):
    """``P(z)`` proportional to ``exp(-sum |z| / scale)`` on the k integers z whose sum is 0.

    It is the law of independent discrete Laplace noise, given that its sum is 0. With x = exp(-2 / scale), the sum of
    the weights is ``A(x) / (1 - x)**(k - 1)``, where A has the coefficients ``comb(k - 1, i)**2``
    (https://dpfast.readthedocs.io/en/latest/proofs/perturbed-histogram.html).

    Parameters
    ----------
    dimension : int
        k, at least 1.
    scale : Fraction
        In (0, 2**56].
    """

    @property
    def _rate(self) -> float:
        """-log(x); at most 2**20, where x is 0 in doubles."""
        return min(float(2 / self.scale), 2.0**20)

    @cached_property
    def _terms(self) -> NDArray[np.float64]:
        """Natural logarithms of the terms of A(x)."""
        i, k = np.arange(self.dimension), self.dimension
        return np.asarray(
            2 * (scipy.special.gammaln(k) - scipy.special.gammaln(i + 1) - scipy.special.gammaln(k - i))
            - i * self._rate
        )

    @cached_property
    def _log_of_terms(self) -> float:
        """The natural logarithm of A(x), whatever a caller raises for: far terms are below all doubles."""
        with np.errstate(all="ignore"):
            return float(scipy.special.logsumexp(self._terms))

    @cached_property
    def acceptance(self) -> float:
        """``A(q**2) / (1 + q)**(2 k - 2)``, q = exp(-1 / scale): that two binomial numbers are equal."""
        log_of_sum = math.log1p(math.exp(-self._rate / 2))
        return math.exp(self._log_of_terms - 2 * (self.dimension - 1) * log_of_sum)

    @cached_property
    def variance(self) -> float:
        """The variance of each integer.

        z is the difference of two independent uniform vectors of k integers from 0 on with the same sum s, where P(s)
        is proportional to ``comb(s + k - 1, k - 1)**2 x**s``.
        """
        k, rate = self.dimension, self._rate
        with np.errstate(all="ignore"):
            i, shares = np.arange(k), np.exp(self._terms - self._log_of_terms)
        mean = float(i @ shares)
        # Its mean and variance are sums of those of the powers of x in A(x) and in (1 - x)**(1 - 2 k).
        odds = 1 / math.expm1(rate) if rate < 700 else 0.0
        expected = mean + (2 * k - 1) * odds
        spread = float((i - mean) ** 2 @ shares) + (2 * k - 1) * odds * (1 + odds)
        return 2 * (k - 1) / (k * k * (k + 1)) * (spread + expected * (expected + k)) if k > 1 else 0.0

    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        log_sum = self._log_of_terms - (self.dimension - 1) * math.log(-math.expm1(-self._rate))
        return np.where(z.sum(axis=-1) == 0, -float(1 / self.scale) * np.abs(z).sum(axis=-1) - log_sum, -np.inf)

    def _propose(self, source: np.random.BitGenerator, rows: int, out: NDArray[np.int64]) -> int:
        return _samplers.fill_zero_sums(source, self.scale, rows, 2**62 // self.dimension, out)


class SumAndCount(RejectedLaplace):
    """``P(s, c)`` proportional to ``exp(-epsilon max(|s| / h, |c|))`` on the pairs with s - h c even.

    These are the possible changes of (the sum of codes within +-h, all odd or all even, and their number); one record
    changes the pair by a point of the rectangle |s| <= h, |c| <= 1.

    Parameters
    ----------
    half_width : int
        h, at least 1.
    epsilon : Fraction
        At least h / 2**55.
    """

    def __init__(self, half_width: int, epsilon: Fraction) -> None:
        super().__init__(2, 2 * half_width / epsilon)
        checks.scale(self.scale)
        self.half_width, self.epsilon, self._count_scale = half_width, epsilon, 2 / epsilon

    @cached_property
    def _log_sum(self) -> float:
        """The natural logarithm of the sum of the weights.

        ``2 h x / (1 - x)**2 + coth(epsilon / 2) coth(epsilon / h)``, x = exp(-epsilon): for c = +-b there are h b + 1
        pairs with |s| <= h b.
        """
        epsilon, h = float(self.epsilon), self.half_width
        # log of h / (2 sinh(epsilon / 2)**2) and of the other term
        sinh = epsilon / 2 + math.log(-math.expm1(-epsilon)) - math.log(2)
        inside = math.log(h) - math.log(2) - 2 * sinh
        outside = -math.log(math.tanh(epsilon / 2)) - math.log(math.tanh(float(self.epsilon / h)))
        return float(np.logaddexp(inside, outside))

    @cached_property
    def acceptance(self) -> float:
        proposed = math.tanh(float(self.epsilon) / 4) * math.tanh(float(self.epsilon / (4 * self.half_width)))
        return min(1.0, math.exp(self._log_sum + math.log(proposed)))

    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        s, c = z[..., 0], z[..., 1]
        norm = np.maximum(np.abs(s) / self.half_width, np.abs(c))
        return np.where((s - self.half_width * c) % 2 == 0, -float(self.epsilon) * norm - self._log_sum, -np.inf)

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        if len(out) == 1:
            out[0] = self.draw(source)
        else:
            super().fill(source, out)

    def draw(self, source: np.random.BitGenerator) -> tuple[int, int]:
        """Draw one pair. Python tests the few proposals in a third of the time of arrays."""
        h, rows = self.half_width, math.ceil(2 / self.acceptance)  # at most 8
        while True:
            sums = geometrics(source, self.scale, (3, rows), 2**61).tolist()
            counts = geometrics(source, self._count_scale, (2, rows), 2**61 // h).tolist()
            for first, second, threshold, more, less in zip(*sums, *counts, strict=True):
                s, c = first - second, more - less
                excess = abs(abs(s) - h * abs(c))
                if excess % 2 == 0 and threshold >= excess:
                    return min(max(s, -_LARGEST), _LARGEST), min(max(c, -_LARGEST), _LARGEST)

    def _propose(self, source: np.random.BitGenerator, rows: int, out: NDArray[np.int64]) -> int:
        first, second, threshold = geometrics(source, self.scale, (3, rows), 2**61)
        more, less = geometrics(source, self._count_scale, (2, rows), 2**61 // self.half_width)
        s, c = first - second, more - less
        excess = np.abs(s) - self.half_width * np.abs(c)
        accepted = (excess % 2 == 0) & (threshold >= np.abs(excess))
        kept = np.array([s[accepted], c[accepted]]).T[: len(out)]
        out[: len(kept)] = np.clip(kept, -_LARGEST, _LARGEST) if kept.dtype == object else kept
        return len(kept)


class PairOfMoments(RejectedLaplace):
    """``P(s, t)`` proportional to ``exp(-epsilon |(s, t)|)`` on pairs of integers, in the norm of changes of two sums.

    For codes c in 0..last, a replaced one changes (the sum of c, the sum of c (c - last)) by (d, d e), |d| + |e| <=
    last. The convex hull of these pairs is the unit ball of the norm: ``|s| <= last``, ``|t| <= last**2 / 4`` for |s|
    at most last / 2, and ``|t| <= |s| (last - |s|)`` beyond (https://dpfast.readthedocs.io/en/latest/proofs/moment-pair.html).

    Parameters
    ----------
    last : int
        At least 1, at most 2**16.
    epsilon : Fraction
        At least 2**-24.
    """

    def __init__(self, last: int, epsilon: Fraction) -> None:
        super().__init__(2, 2 * last / epsilon)
        checks.scale(self.scale)
        self.last, self.epsilon = last, epsilon
        self._second_scale = Fraction(last * last, 2) / epsilon

    acceptance = 5 / 12  # of large scales; for small ones more

    @property
    def variances(self) -> tuple[float, float]:
        """The variances of both integers, for large scales.

        A pair is a gamma(3) number over epsilon times a uniform point of the unit ball.
        """
        size = float(self.last / self.epsilon) ** 2
        return 2.94 * size, 12 * 51 / 2800 * size * self.last**2

    def norm(self, s: int, t: int) -> Fraction:
        """Return the norm of a pair, exact."""
        s, t, last = abs(s), abs(t), self.last
        return Fraction(4 * t, last * last) if s * last <= 2 * t else Fraction(s * s, last * s - t)

    @cached_property
    def _log_sum(self) -> float:
        """The natural logarithm of the sum of the weights: a sum of up to 2**22 terms, beyond these the integral."""
        reach = 45 * self.last / float(self.epsilon)
        sides = (2 * int(reach) + 1) * (2 * int(reach * self.last / 4) + 1)
        if sides > 2**22:
            return math.log(5 / 3 * self.last**3 / float(self.epsilon) ** 2)
        s, t = (np.arange(-int(most), int(most) + 1) for most in (reach, reach * self.last / 4))
        return float(scipy.special.logsumexp(self._weights(s[:, None], t[None, :])))

    def _weights(self, s: NDArray[Any], t: NDArray[Any]) -> NDArray[np.float64]:
        s, t, last = np.abs(s).astype(np.float64), np.abs(t).astype(np.float64), float(self.last)
        flat = s * last <= 2 * t
        with np.errstate(divide="ignore", invalid="ignore"):
            norm = np.where(flat, 4 * t / last**2, s * s / np.where(flat, 1.0, last * s - t))
        return np.asarray(-float(self.epsilon) * norm)

    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._weights(z[..., 0], z[..., 1]) - self._log_sum

    def _propose(self, source: np.random.BitGenerator, rows: int, out: NDArray[np.int64]) -> int:
        more, less = geometrics(source, self.scale, (2, rows), 2**60)
        above, below = geometrics(source, self._second_scale, (2, rows), 2**60)
        kept, coin = 0, np.empty(1, np.uint8)
        for s, t in zip((more - less).tolist(), (above - below).tolist(), strict=True):
            if kept == len(out):
                break
            # The norm is at least |s| / last and 4 |t| / last**2, and so at least their mean, of which proposals are.
            excess = self.norm(s, t) - Fraction(abs(s), 2 * self.last) - Fraction(2 * abs(t), self.last**2)
            _samplers.fill_bernoulli_exp(source, self.epsilon * excess, coin)
            if coin[0]:
                out[kept] = max(-_LARGEST, min(s, _LARGEST)), max(-_LARGEST, min(t, _LARGEST))
                kept += 1
        return kept


def geometrics(source: np.random.BitGenerator, scale: Fraction, shape: tuple[int, ...], most: int) -> NDArray[Any]:
    """Exact draws with ``P(g) = (1 - q) q**g``, q = exp(-1 / scale), as int64 if all are below `most`.

    Otherwise they are Python integers. The law has no memory: a draw of `most` or above is `most` plus a new draw.
    """
    out = np.empty(math.prod(shape), np.int64)
    _samplers.fill_geometric(source, scale, out)
    if out.max(initial=0) < most:
        return out.reshape(shape)
    far = np.flatnonzero(out >= most)
    total = np.minimum(out, most).astype(object)
    while far.size:
        more = np.empty(far.size, np.int64)
        _samplers.fill_geometric(source, scale, more)
        total[far] += np.minimum(more, most)
        far = far[more >= most]
    return total.reshape(shape)
