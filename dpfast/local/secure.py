"""Sums by secure aggregation: each person adds a share of the noise, and only the sum is seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.core import checks, containers
from dpfast.core.divergences import concentrated_delta_up
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.rounding import down, up
from dpfast.core.spending import refused
from dpfast.core.tabular import Declared
from dpfast.core.traps import Cautious
from dpfast.domains import Ball, Box
from dpfast.laws.shares import GaussianShare, LaplaceShare
from dpfast.random import RandomSource, bit_generator

_LEAST_EPSILON, _MOST_EPSILON = 2.0**-40, 2.0**10
_MOST_BITS = 62  # of a sum
_LEAST_DELTA = (
    2.0**-1000
)  # for Gaussian noise: 2**-20 of it is a double, which the searches for rho and multiplier reach
_WRAPS = 2.0**-40  # probability that a sum leaves its range
_ASIDE = Fraction(1, 2**20)  # the largest part of delta for the difference from discrete Gaussian noise
_USE = "one report is not private, only the sum is: report inside `with ledger.spend(secure_sum):`"


@dataclass(frozen=True)
class SecureSum(Declared, Cautious):
    """A private sum of n vectors by secure aggregation: integer reports modulo 2**bits, the noise split among them.

    Each client codes its vector to integers, adds its share of the noise and reports the result modulo 2**bits. A
    secure aggregation protocol, which is not part of this library, shows the server the sum of the reports modulo
    2**bits and nothing else. (epsilon, delta)-differential privacy under one replaced record, even if `dropouts`
    clients do not report, or reveal their shares of the noise to the server.

    Parameters
    ----------
    domain : dpfast.domains.Ball, dpfast.domains.Box or int
        The public domain of a vector; an int k is for one of the categories 0..k - 1, to be counted.
    n : int
        The number of clients that are asked to report, at least 1; public.
    epsilon : float
        Positive; rounded down to a double.
    delta : float
        At least 0 and below 1; below 2**-1000 for discrete Laplace noise alone, which a ball does not have.
    dropouts : int
        The number of clients that may drop out or be dishonest, below n. The noise of the others is enough.
    dimension : int, optional
        The number of columns d; required if the domain is for any number of them.
    noise : {"auto", "laplace", "gaussian"}
        "gaussian" needs a delta of at least 2**-1000. "auto" takes the noise of less variance; the attribute holds the
        choice.

    Attributes
    ----------
    bits : int
        Reports and sums are integers modulo 2**bits.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, or the sum needs more than 62 bits.

    Notes
    -----
    A report by itself is hardly private: the shares of n - dropouts clients together are the noise. Under "laplace" the
    sum of n - dropouts shares is discrete Laplace noise exactly, with the scale d w_j / epsilon for the width w_j of
    each of d columns of a box, or 2 / epsilon for categories. Under "gaussian" each share is discrete Gaussian noise,
    and a bound of the difference between their sum and discrete Gaussian noise is part of delta; codes are multiplied
    by a public power of two, if that needs it. More reporting clients add more noise, which is post-processing.
    Reduction modulo 2**bits is post-processing, too: where a sum wraps around, which has a probability of at most
    2**-40, the estimate is wrong, but no less private
    (https://dpfast.readthedocs.io/en/latest/proofs/secure-aggregation.html). Records outside the domain are moved into
    it like those of `dpfast.NoisySums`; a value that is not a category counts as 0. A dishonest client can move the sum
    anywhere: the reports are not checked.

    References
    ----------
    Kairouz, Liu and Steinke 2021, "The distributed discrete Gaussian mechanism for federated learning with secure
    aggregation"; Ghazi, Golowich, Kumar, Pagh and Velingker 2020, "On the power of multiple anonymous messages";
    Canonne, Kamath and Steinke 2020, "The discrete Gaussian for differential privacy".

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> poll = dpf.local.SecureSum(4, n=1000, epsilon=1.0, dropouts=100)
    >>> poll.noise, poll.bits
    ('laplace', 11)
    >>> answers = np.arange(950) % 4
    >>> reports = [poll.report([answer]) for answer in answers]
    >>> total = poll.aggregate(np.concatenate(reports))
    >>> bool(np.abs(poll.sums(total, reported=950) - 237.5).max() < 60)
    True
    """

    domain: Ball | Box | int
    n: int = field(kw_only=True)
    epsilon: float = field(kw_only=True)
    delta: float = field(kw_only=True, default=0.0)
    dropouts: int = field(kw_only=True, default=0)
    dimension: int | None = field(kw_only=True, default=None)
    noise: str = field(kw_only=True, default="auto")

    def __post_init__(self) -> None:
        if not isinstance(self.domain, (Ball, Box)):
            object.__setattr__(
                self, "domain", checks.whole("domain, a Ball, a Box or a number k,", self.domain, least=2)
            )
        object.__setattr__(self, "n", checks.whole("n", self.n, least=1))
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        if not _LEAST_EPSILON <= self.epsilon <= _MOST_EPSILON:
            raise ValueError(f"epsilon must be from 2**-40 to 2**10, not {self.epsilon!r}")
        object.__setattr__(self, "delta", checks.delta_down(self.delta))
        object.__setattr__(self, "dropouts", checks.whole("dropouts", self.dropouts))
        if self.dropouts >= self.n:
            raise ValueError(f"dropouts must be below n = {self.n}, not {self.dropouts}")
        d = self.domain if isinstance(self.domain, int) else self.domain.columns_of(self.dimension)
        object.__setattr__(self, "dimension", d)
        if isinstance(self.domain, Box) and any(grid.missing == "drop" for grid in self.domain.grids):
            raise ValueError("missing must not be 'drop': every client reports")
        checks.choice("noise", self.noise, ("auto", "laplace", "gaussian"))
        if self.noise == "auto":
            object.__setattr__(self, "noise", self._better())
        if self.noise == "gaussian" and self.delta < _LEAST_DELTA:
            raise ValueError(f"delta must be positive for Gaussian noise, at least 2**-1000, not {self.delta!r}")
        if self.noise == "laplace" and isinstance(self.domain, Ball):
            raise ValueError(
                "a ball needs Gaussian noise: give a delta of at least 2**-1000, and noise='gaussian' or 'auto'"
            )
        if self.bits > _MOST_BITS:
            raise ValueError(f"the sum needs {self.bits} bits, more than {_MOST_BITS}: use a coarser step")

    # ---- the noise ----

    def _better(self) -> str:
        if isinstance(self.domain, Ball) or self.delta < _LEAST_DELTA:
            return "laplace" if self.delta < _LEAST_DELTA else "gaussian"
        laplace = sum(2 * scale**2 for scale in self._scales)
        return "gaussian" if sum(self._variances) < laplace else "laplace"

    @cached_property
    def _columns(self) -> int:
        assert self.dimension is not None  # set by the constructor
        return self.dimension

    @cached_property
    def _widths(self) -> tuple[int, ...]:
        """The largest change of each column by one record, in steps."""
        if isinstance(self.domain, int):
            return (1,) * self.domain
        if isinstance(self.domain, Ball):
            return (2 * self.domain.reach,) * self._columns
        return tuple(grid.size - 1 for grid in self.domain.grids_of(self._columns))

    @property
    def _scales(self) -> list[Fraction]:
        """Of discrete Laplace noise in each column: the sum of the changes over them is at most epsilon."""
        changed = 2 if isinstance(self.domain, int) else self._columns
        return [Fraction(width * changed) / Fraction(self.epsilon) for width in self._widths]

    @property
    def _variances(self) -> list[Fraction]:
        """Of discrete Gaussian noise in each column: the squares of the changes over twice them add up to rho."""
        rho = 2 * Fraction(_rho_down(self.epsilon, self.delta))
        if isinstance(self.domain, Ball):
            return [4 * self.domain.most / rho] * self._columns
        changed = 2 if isinstance(self.domain, int) else self._columns
        return [width**2 * changed / rho for width in self._widths]

    @property
    def rho(self) -> float:
        """The concentrated guarantee of the sum: of discrete Gaussian noise, or what epsilon implies for "laplace"."""
        return self.privacy_profile.rho if self.noise == "laplace" else _rho_down(self.epsilon, self.delta)

    @property
    def honest(self) -> int:
        """The number of clients whose shares are the noise of the guarantee, ``n - dropouts``."""
        return self.n - self.dropouts

    @cached_property
    def multiplier(self) -> int:
        """The public power of two that codes are multiplied by; 1 for Laplace noise."""
        factor = 1
        if self.noise == "gaussian":
            while self._failure(factor) > _ASIDE * Fraction(self.delta):  # it falls to the least double, at most
                factor *= 2
        return factor

    def _failure(self, factor: int, shares: int | None = None) -> Fraction:
        """Return the probability that is set aside because shares add up to discrete Gaussian noise nearly only.

        `shares` is the number of them, by default that of the guarantee.
        """
        ratios: dict[Fraction, int] = {}
        for variance in self._variances:
            ratios[variance] = ratios.get(variance, 0) + 1
        total = Fraction()
        for variance, columns in ratios.items():
            ratio = GaussianShare(variance * factor**2 / self.honest).log_ratio_up(shares or self.honest)
            if ratio == math.inf:
                return Fraction(1)
            total += columns * Fraction(ratio)
        return total

    @cached_property
    def _shares(self) -> Sequence[LaplaceShare | GaussianShare]:
        """The law of a client's noise in each column."""
        if self.noise == "laplace":
            return [LaplaceShare(scale, self.honest) for scale in self._scales]
        factor = Fraction(self.multiplier**2, self.honest)
        return [GaussianShare(variance * factor) for variance in self._variances]

    @property
    def deviation(self) -> NDArray[np.float64]:
        """The standard deviation of the noise of the sum of n reports, in data units, for each column."""
        share = self.n / self.honest
        if self.noise == "laplace":
            squares = [2 * (q := math.exp(-1 / scale)) / (1 - q) ** 2 for scale in self._scales]
        else:
            squares = [float(variance) for variance in self._variances]
        return np.sqrt(np.array(squares) * share) * self._steps

    # ---- the guarantee ----

    @property
    def privacy(self) -> Privacy:
        """The guarantee of the sum for one replaced record, with at least ``n - dropouts`` honest clients."""
        return Privacy(self.epsilon, self.delta if self.noise == "gaussian" else 0.0)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        """The guarantee in the form that a `dpfast.Ledger` composes."""
        if self.noise == "laplace":
            return PrivacyProfile(self.privacy)
        failure = up(self._failure(self.multiplier))
        return PrivacyProfile(self.privacy, (("concentrated", self.rho, 1),), failure=failure)

    def privacy_of(self, honest: SupportsIndex) -> Privacy:
        """Return the guarantee of the sum if this many clients are honest and report.

        With "laplace" it holds with at least ``n - dropouts`` only; fewer raise a ValueError. With "gaussian" rho is
        inversely proportional to their number.
        """
        h = checks.whole("honest", honest, least=1)
        if h > self.n:
            raise ValueError(f"honest must be at most n = {self.n}, not {h}")
        if self.noise == "laplace":
            if h < self.honest:
                raise ValueError(
                    f"honest must be at least {self.honest} for Laplace noise, not {h}: choose more dropouts"
                )
            return self.privacy
        rho = up(Fraction(self.rho) * self.honest / h)
        return Privacy(rho=rho, delta=up(self._failure(self.multiplier, h)))

    # ---- reports and sums ----

    @cached_property
    def bits(self) -> int:
        """Digits of the reports: the sums of n codes and their noise wrap around with probability 2**-40 at most."""
        return max(1, (max(high - low for low, high in self._ranges)).bit_length())

    @cached_property
    def _ranges(self) -> list[tuple[int, int]]:
        """The least and the largest sum of each column, in steps times the multiplier."""
        least = -self.domain.reach if isinstance(self.domain, Ball) else 0
        ranges = []
        for width, share in zip(self._widths, self._shares, strict=True):
            tail = _tail(share, self.n, self._columns)
            low = self.n * least * self.multiplier - tail
            ranges.append((low, low + self.n * width * self.multiplier + 2 * tail))
        return ranges

    @property
    def _steps(self) -> NDArray[np.float64]:
        if isinstance(self.domain, int):
            return np.ones(self.domain)
        if isinstance(self.domain, Ball):
            return np.full(self._columns, self.domain.step)
        return np.array([grid.step for grid in self.domain.grids_of(self._columns)])

    @refused(_USE)
    def report(self, X: ArrayLike, *, rng: RandomSource = None) -> NDArray[np.uint64]:
        """Return the reports of clients, a row of integers modulo 2**bits for each row of X. PRIVATE until they are
        summed.

        Parameters
        ----------
        X : array_like
            A vector of d numbers per client, shape (m, d); for categories, one integer per client, shape (m,).
        rng : numpy.random.Generator or BitGenerator, optional
            Makes the run reproducible, hence not private. Default: the secure generator.
        """
        codes = self._codes(X)
        source = bit_generator(rng)
        column = np.empty(len(codes), np.int64)
        for j, share in enumerate(self._shares):
            codes[:, j] *= self.multiplier
            if column.size:
                share.fill(source, column)
                codes[:, j] += column
        return codes.view(np.uint64) & self._mask

    def _codes(self, X: ArrayLike) -> NDArray[np.int64]:
        if not isinstance(self.domain, int):
            rows = self.domain.records(X)
            if rows.shape[1] != self._columns:
                raise ValueError(f"X must have {self._columns} columns, not {rows.shape[1]}")
            return np.ascontiguousarray(self.domain.encode(rows))
        values = containers.vector("X", X)
        with np.errstate(invalid="ignore"):
            inside = (values >= 0) & (values < self.domain) & (values == np.floor(values))
            places = np.where(inside, values, 0).astype(np.int64)
        codes = np.zeros((values.size, self.domain), np.int64)
        codes[np.arange(values.size), places] = 1
        return codes

    @property
    def _mask(self) -> np.uint64:
        return np.uint64(2**self.bits - 1)

    def aggregate(self, reports: ArrayLike) -> NDArray[np.uint64]:
        """Return the sum of the rows of reports, or of such sums, modulo 2**bits: what secure aggregation computes."""
        rows = np.asarray(reports)
        if rows.dtype != np.uint64 or rows.ndim != 2 or rows.shape[1] != self._columns:
            raise ValueError(
                f"reports must be rows of {self._columns} unsigned 64-bit integers, not {rows.dtype} of {rows.shape}"
            )
        return np.asarray(rows.sum(axis=0, dtype=np.uint64)) & self._mask

    def sums(self, total: ArrayLike, *, reported: SupportsIndex) -> NDArray[np.float64]:
        """Return the estimated sums of the vectors of the clients that reported, in data units; counts for categories.

        Parameters
        ----------
        total : array_like
            The sum of the reports, from `aggregate` or from a secure aggregation protocol.
        reported : int
            The number of clients whose reports are in the sum, public; at most n.

        Returns
        -------
        ndarray of shape (d,)
            Moved into the range of sums of so many vectors of a box or ball; counts are not moved.
        """
        h = self._reported(reported)
        steps = self._decoded(total)
        if isinstance(self.domain, int):
            return steps
        return self.domain.sums(self._whole(steps), h)

    def means(self, total: ArrayLike, *, reported: SupportsIndex) -> NDArray[np.float64]:
        """Return the estimated means of the vectors of the clients that reported, or frequencies; see `sums`."""
        h = self._reported(reported)
        steps = self._decoded(total)
        if isinstance(self.domain, int):
            return steps / h
        return self.domain.means(self._whole(steps), h)

    def _whole(self, steps: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.rint(steps).astype(np.int64)

    def _reported(self, reported: SupportsIndex) -> int:
        h = checks.whole("reported", reported, least=1)
        if h > self.n:
            raise ValueError(f"reported must be at most n = {self.n}, not {h}")
        return h

    def _decoded(self, total: ArrayLike) -> NDArray[np.float64]:
        """Return the sums in steps: the integers of their ranges with these residues, over the multiplier."""
        residues = np.asarray(total)
        if residues.dtype != np.uint64 or residues.shape != (self._columns,):
            raise ValueError(
                f"total must be {self._columns} unsigned 64-bit integers, not {residues.dtype} of {residues.shape}"
            )
        modulus = 2**self.bits
        whole = [
            low + (residue - low) % modulus for residue, (low, _) in zip(residues.tolist(), self._ranges, strict=True)
        ]
        return np.array(whole, np.float64) / self.multiplier


def _tail(share: LaplaceShare | GaussianShare, n: int, columns: int) -> int:
    """Return a number that the noise of n shares exceeds in magnitude with probability 2**-40 / columns at most.

    Discrete Gaussian noise is sub-Gaussian with its variance; of a negative binomial number of size r = n / m, P(X >=
    B) <= 2**r exp(-B / (2 scale)).
    """
    log = math.log(2 * columns / _WRAPS)
    if isinstance(share, GaussianShare):
        return math.ceil(math.sqrt(2 * float(share.variance) * n * log) * 1.0001) + 1
    return math.ceil(2 * float(share.scale) * (n / share.shares * math.log(2) + log) * 1.0001) + 1


@lru_cache(maxsize=256)
def _rho_down(epsilon: float, delta: float) -> float:
    """Return the greatest rho, to one part in 2**30, that implies (epsilon, delta) with a part of 2**-20 of delta to
    spare.

    For a delta from `_LEAST_DELTA` to below 1. The loops end, because the delta of rho increases from the least double,
    for small rho, to 1, for large ones, and that to be met is between them.
    """
    target, allowed = Fraction(epsilon), down(Fraction(delta) * (1 - _ASIDE))

    def fits(rho: float) -> bool:
        return concentrated_delta_up(Fraction(rho), target) <= allowed

    low = epsilon
    while not fits(low):
        low /= 2
    high = 2 * low
    while fits(high):
        low, high = high, 2 * high
    while high > low * (1 + 2.0**-30) and low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
