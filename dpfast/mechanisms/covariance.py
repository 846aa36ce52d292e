"""Second moments and covariance matrices of records in rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast import _checks
from dpfast._divergences import gaussian_mu_down
from dpfast.domains import LIMB, Ball
from dpfast.laws import NoisyIntegers, RoundedGaussians, VectorNoise, WishartDifference
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.privacy import Privacy, PrivacyProfile
from dpfast.rounding import root_up, up
from dpfast.streaming import RowProducts, VectorSums

_MOST = 2**61  # of a sum in release codes
_MOST_SCALE = 2.0**56
_DIGITS = 22  # of the largest squared norm in release codes

Values = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class _NoisyProducts(Mechanism):
    """A mechanism that adds noise to the sum of the products v v' of the codes of rows, and to the sum of the codes.

    Both sums are vectors of the entries of one symmetric matrix, the sum of a a' for a = (v, 1), in the order of
    `numpy.triu_indices` without the last entry, which is n. Release codes are products in units of a power of two.
    """

    domain: Ball = field(kw_only=True)
    epsilon: float = field(kw_only=True)
    delta: float = field(kw_only=True, default=0.0)

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Ball):
            raise TypeError(f"domain must be a dpfast.domains.Ball, not {type(self.domain).__name__}")
        object.__setattr__(self, "domain", self.domain.for_products())
        object.__setattr__(self, "epsilon", _checks.positive_down("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _checks.delta_down(self.delta))
        _checks.finite_scale(math.ldexp(self.domain.radius, 40) * self.domain.radius)
        self._check_columns(self.domain.columns or 1)

    @property
    @abstractmethod
    def with_sums(self) -> bool:
        """Whether the sums of the codes are released with the products."""

    @abstractmethod
    def _value(self, products: Values, sums: Values, n: int) -> Values:
        """The release, from means of products and of codes over n rows, in steps of the domain."""

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        return PrivacyProfile(self.privacy, (("gaussian", self.mu, 1),) if self.mu else ())

    @property
    def mu(self) -> float | None:
        """The guarantee in Gaussian differential privacy; None if delta is 0."""
        return gaussian_mu_down(self.epsilon, self.delta) if self.delta else None

    @property
    def dimensions(self) -> int:
        return 2

    def __repr__(self) -> str:
        return f"<{type(self).__name__} release of rows in a {self.domain}: {self.privacy}>"

    # ---- noise, public ----

    def weight(self, d: int) -> int:
        """The number c in place of 1 in a = (v, c), for which sensitivity and noise are computed; 0 without sums.

        ``c**2`` is about ``most / (2 sqrt(d))``, which is close to the best unless the mean of the rows is near 0 or
        near the surface of the ball (docs/proofs/covariance.md).
        """
        return max(1, math.isqrt(math.isqrt(self.domain.most**2 // (4 * d)))) if self.with_sums else 0

    def shift(self, n: int) -> int:
        """The release code of a product is the product divided by this power of two, and rounded."""
        most = self.domain.most
        return max(0, most.bit_length() - _DIGITS, (n * most).bit_length() - 60)

    def scales(self, n: int, d: int) -> list[float]:
        """The scales of the noise on all entries: standard deviations for delta > 0, else those of `WishartDifference`.

        A replaced record changes the sum of a a' by b b' - a a', |a|**2 and |b|**2 at most `most` + c**2: at most sqrt(2)
        times this in the Frobenius norm and twice this in the nuclear norm. Rounding to release codes changes each
        product by at most 1: the matrix by at most d in the one and by d**1.5 in the other norm.
        """
        c, shift = self.weight(d), self.shift(n)
        size = Fraction(self.domain.most + c**2, 2**shift)
        if self.mu:
            scale = (size + (math.isqrt(d**2 // 2) + 1 if shift else 0)) / Fraction(self.mu)
            diagonal = root_up(2 * scale**2)
        else:
            scale = (size + (Fraction(math.isqrt(d**3) + 1, 2) if shift else 0)) / Fraction(self.epsilon)
            diagonal = up(scale)
        row, column = self._entries(d)
        ends = up(scale * 2**shift / c) if c else 0.0
        return np.where(column == d, ends, np.where(row == column, diagonal, up(scale))).tolist()

    def deviations(self, n: int, d: int) -> Values:
        """The standard deviations of the noise on the means of a a', a = (x - center, 1): (d + 1, d + 1), or (d, d).

        In data units, before rounding. The noise on different entries is uncorrelated.
        """
        row, column = self._entries(d)
        scales = np.array(self.scales(n, d))
        if not self.mu:
            side = d + self.with_sums
            scales *= np.sqrt(np.where(row == column, 4, 2) * (side + 1))
        step = self.domain.step
        return self._matrix(scales * np.where(column == d, step, 2.0 ** self.shift(n) * step * step) / n, d)

    def _entries(self, d: int) -> NDArray[np.int64]:
        """The rows and columns of the entries."""
        entries = np.stack(np.triu_indices(d + 1))[:, :-1]
        return entries if self.with_sums else entries[:, entries[1] < d]

    def _noise(self, n: int, d: int) -> VectorNoise:
        scales = self.scales(n, d)
        return RoundedGaussians(scales) if self.mu else WishartDifference(d + self.with_sums, list(map(Fraction, scales)))

    def _check_columns(self, d: int) -> None:
        if max(self.scales(1, d)) > _MOST_SCALE:
            raise ValueError(
                f"epsilon={self.epsilon!r} and delta={self.delta!r} need noise of more than 2**56 steps: use larger ones"
            )

    # ---- the release ----

    def check_records(self, n: int) -> int:
        if super().check_records(n) * self.domain.reach >= _MOST:
            raise ValueError(f"n times the steps in the radius must be below 2**61, not {n * self.domain.reach}")
        return n

    def reading(self) -> RowProducts:
        return RowProducts(self.domain, self._check_columns)

    def law_of(self, summary: VectorSums) -> NoisyIntegers:
        n, d = summary.n, summary.dimension
        return NoisyIntegers(
            self._codes(summary), noise=self._noise(n, d), most=_MOST, decode=partial(self._decode, n=n, d=d)
        )

    def _codes(self, summary: VectorSums) -> NDArray[np.int64]:
        d, shift = summary.dimension, self.shift(summary.n)
        (high, low), column = summary.sums, np.triu_indices(d + 1)[1][:-1]
        rounded = (high << (LIMB - shift)) + ((low + (1 << shift >> 1)) >> shift)
        codes = np.where(column == d, (high << LIMB) + low, rounded)
        return codes if self.with_sums else codes[column < d]

    def _decode(self, codes: NDArray[np.int64], *, n: int, d: int) -> Values:
        row, column = self._entries(d)
        means = codes * (np.where(column == d, 1.0, 2.0 ** self.shift(n)) / n)
        matrix = self._matrix(means, d)
        return self._value(matrix[..., :d, :d], matrix[..., :d, d:], n)

    def _matrix(self, entries: Values, d: int) -> Values:
        """The symmetric matrices of these entries, with 1 in the last place of those with sums."""
        row, column = self._entries(d)
        matrix = np.ones((*entries.shape[:-1], d + self.with_sums, d + self.with_sums))
        matrix[..., row, column] = matrix[..., column, row] = entries
        return matrix
