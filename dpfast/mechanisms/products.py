"""The noise on sums of products of the codes of records, for second moments and regressions."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast.core import checks
from dpfast.core.recent import recent
from dpfast.core.rounding import root_up, up
from dpfast.domains import LIMB, Ball
from dpfast.laws import NoisyIntegers, RoundedBall, RoundedGaussians, VectorNoise, WishartDifference
from dpfast.mechanisms.gaussian import GaussianOrPure
from dpfast.mechanisms.plan import Plan
from dpfast.streaming import ProductSums, RowProducts

_MOST = 2**61  # of a sum in release codes
_MOST_SCALE = 2.0**56
_DIGITS = 22  # of the largest squared norm in release codes
_GREATEST = 2.0**140  # in a release, in squared steps: products of two means of up to 2**61, for 2**17 columns

Values = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class NoisyProducts(GaussianOrPure):
    """A mechanism that adds noise to the sum of a a' over the records, a = (v, c), v the codes of a record.

    The sum is a vector of the entries of a symmetric matrix, in the order of `numpy.triu_indices` without the last
    entry, which is n c**2. Release codes of products of codes are in units of a power of two.
    """

    domain: Ball = field(kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Ball):
            raise TypeError(f"domain must be a dpfast.domains.Ball, not {type(self.domain).__name__}")
        object.__setattr__(self, "domain", self.domain.for_products())
        super().__post_init__()
        for ball in self._balls:
            checks.finite_scale(_GREATEST * ball.step * ball.step)
        self._check_columns(self.domain.columns or 1)

    @property
    def with_sums(self) -> bool:
        """Whether the sums of the codes are released with the products."""
        return True

    @property
    def _balls(self) -> tuple[Ball, ...]:
        """The balls of the codes: of the row, and of the label if records have one."""
        return (self.domain,)

    @abstractmethod
    def _weights(self, d: int) -> tuple[Fraction, ...]:
        """Return the weights of the codes of each ball in a, then the number c, for rows of d columns."""

    @abstractmethod
    def _release(self, moments: Values, d: int) -> Values:
        """Return the release, from the means of a a' without weights, or of v v' without sums, in steps."""

    @property
    def dimensions(self) -> int:
        return 2

    # ---- noise, public ----

    @cached_property
    def _most(self) -> int:
        """The largest product of two codes of a record."""
        return max(ball.most for ball in self._balls)

    @cached_property
    def _reach(self) -> int:
        """The largest code."""
        return max(ball.reach for ball in self._balls)

    def shift(self, n: SupportsIndex) -> int:
        """Return the release code of a product is the product divided by this power of two, and rounded."""
        count = checks.whole("n", n)
        return max(0, self._most.bit_length() - _DIGITS, (count * self._most).bit_length() - 60)

    @recent
    def scales(self, n: SupportsIndex, d: SupportsIndex) -> tuple[float, ...]:
        """Return the scales of the noise on all entries: standard deviations for delta > 0, else those of the pure
        noise.

        A replaced record changes the sum of a a' by b b' - a a', and ``|a|**2`` and ``|b|**2`` are at most ``size``.
        The Frobenius norm of the change is at most sqrt(2) times that, its nuclear norm at most twice that. Rounding to
        release codes adds at most 1, times the weights, to each entry: ``rounded`` to the Frobenius norm.
        """
        d = checks.whole("d", d, least=1)
        *codes, c = self._weights(d)
        shift, squares = self.shift(n), [weight**2 for weight in codes]
        size = sum((w * ball.most for w, ball in zip(squares, self._balls, strict=True)), c**2) / 2**shift
        rounded = sum(squares[1:], d * squares[0]) if shift else Fraction(0)
        if self.gaussian_mu:
            scale = (size + _root_above(rounded**2 / 2)) / Fraction(self.gaussian_mu)
            diagonal = 2 * scale**2
        elif self._by_norm(d):
            scale = (size + _root_above(rounded**2 / 2)) / Fraction(self.amount)
            diagonal = 2 * scale**2
        else:
            scale = (size + _root_above(self._codes(d) * rounded**2) / 2) / Fraction(self.amount)
            diagonal = scale**2
        weights = [*codes, c / 2**shift]
        off = np.array([[up(scale / (a * b)) if a and b else 0.0 for a in weights] for b in weights])
        on = np.array([root_up(diagonal / w**4) if w else 0.0 for w in weights])
        row, column = self._entries(d)
        ball = np.maximum(np.arange(self._codes(d) + 1) - d + 1, 0)  # of each code, and the place of c
        return tuple(np.where(row == column, on[ball[row]], off[ball[row], ball[column]]).tolist())

    def noise_deviation(self, n: SupportsIndex, *, dimension: SupportsIndex | None = None) -> Values:
        """Return the standard deviations of the noise on the entries of the release, as the mean of a a'.

        In data units, before rounding. The noise on different entries is uncorrelated.

        Parameters
        ----------
        n : int
            The number of records, at least 1.
        dimension : int, optional
            d; required if the domain is for any number of columns.

        Returns
        -------
        ndarray of shape (d + 1, d + 1), (d, d) for `Covariance` with ``centered=False``, (d + 2, d + 2) with a label
        """
        n, d = checks.whole("n", n, least=1), self.domain.columns_of(dimension)
        self._check_columns(d)
        return self._deviations(n, d).copy()

    @recent
    def _deviations(self, n: int, d: int) -> Values:
        row, column = self._entries(d)
        deviations = np.array(self.scales(n, d))
        if self._by_norm(d):
            deviations *= math.sqrt(len(deviations) + 1)
        elif not self.gaussian_mu:
            deviations *= np.sqrt(np.where(row == column, 4, 2) * (self._side(d) + 1))
        matrix = self._matrix(deviations * np.where(column == self._codes(d), 1.0, 2.0 ** self.shift(n)) / n, d)
        matrix[self._codes(d) :, self._codes(d) :] = 0.0
        return matrix * self._units(d) * self._units(d)[:, None]

    def error(self, n: SupportsIndex, *, dimension: SupportsIndex | None = None) -> Values:
        """Return the root of the expected squared noise on each entry, in data units: `noise_deviation`, without
        assumptions.

        Rounding and later steps, such as ``psd=True``, are left out.

        Parameters
        ----------
        n, dimension
            See `noise_deviation`.

        Returns
        -------
        ndarray
            Of the shape of the release.
        """
        return self.noise_deviation(n, dimension=dimension)

    def _explained_error(self, n: int | None) -> str:
        kind = "Gaussian" if self.gaussian_mu else "pure"
        return f"The noise is {kind}; the mechanism's noise_deviation(n, ...) is its size"

    def _by_norm(self, d: int) -> bool:
        """Whether pure noise is that of the Frobenius norm, which has less variance below four rows of the matrix."""
        return False

    def _codes(self, d: int) -> int:
        """Return the number of codes of a record."""
        return d + len(self._balls) - 1

    def _side(self, d: int) -> int:
        """Return the number of rows of the matrix."""
        return self._codes(d) + self.with_sums

    def _units(self, d: int) -> Values:
        """Return the steps of the codes, then 1."""
        first, *others = (ball.step for ball in self._balls)
        return np.array([first] * d + others + [1.0] * self.with_sums)

    @recent
    def _entries(self, d: int) -> NDArray[np.int64]:
        """Return the rows and columns of the entries."""
        codes = self._codes(d)
        entries = np.stack(np.triu_indices(codes + 1))[:, :-1]
        return entries if self.with_sums else entries[:, entries[1] < codes]

    @recent
    def _noise(self, n: int, d: int) -> VectorNoise:
        scales = self.scales(n, d)
        if self.gaussian_mu:
            return RoundedGaussians(scales)
        return RoundedBall(scales) if self._by_norm(d) else WishartDifference(self._side(d), scales)

    @recent
    def _check_columns(self, d: int) -> None:
        if max(*self.scales(1, d), *self.scales(_MOST // self._reach, d)) > _MOST_SCALE:
            raise ValueError(f"{self.privacy} needs noise of more than 2**56: use a larger epsilon")

    # ---- the release ----

    def _make_plan(self, n: int | None) -> Plan:
        if n is not None and n * self._reach >= _MOST:
            raise ValueError(f"n times the steps in the radius must be below 2**61, not {n * self._reach}")
        return super()._make_plan(n)

    def reading(self) -> RowProducts:
        return RowProducts(self.domain, self._check_columns)

    def law_of(self, summary: ProductSums) -> NoisyIntegers:
        n, d = summary.n, summary.codes - len(self._balls) + 1
        return NoisyIntegers(
            self._release_codes(summary), noise=self._noise(n, d), most=_MOST, decode=partial(self._decode, n=n, d=d)
        )

    def _release_codes(self, summary: ProductSums) -> NDArray[np.int64]:
        shift = self.shift(summary.n)
        (high, low), column = summary.sums, _columns(summary.codes)
        rounded = (high << (LIMB - shift)) + ((low + (1 << shift >> 1)) >> shift)
        release_codes = np.where(column == summary.codes, (high << LIMB) + low, rounded)
        return np.asarray(release_codes if self.with_sums else release_codes[column < summary.codes])

    def _decode(self, release_codes: NDArray[np.int64], *, n: int, d: int) -> Values:
        column = self._entries(d)[1]
        means = release_codes * (np.where(column == self._codes(d), 1.0, 2.0 ** self.shift(n)) / n)
        return self._release(self._matrix(means, d), d)

    def _matrix(self, entries: Values, d: int) -> Values:
        """Return the symmetric matrices of these entries, with 1 in the last place of those with sums."""
        row, column = self._entries(d)
        matrix = np.ones((*entries.shape[:-1], self._side(d), self._side(d)))
        matrix[..., row, column] = matrix[..., column, row] = entries
        return matrix


@lru_cache(maxsize=64)
def _columns(codes: int) -> NDArray[np.int64]:
    """Return the column of each entry of the sums of this number of codes, and of their products."""
    return np.triu_indices(codes + 1)[1][:-1]


def _root_above(x: Fraction) -> Fraction:
    return Fraction(root_up(x))
