"""Synthetic records by the exponential mechanism under the Kolmogorov-Smirnov distance."""

from __future__ import annotations

import itertools
import math
import threading
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels._ks import Band, choose, decay, feasible
from dpfast._kernels._samplers import fill_bernoulli_exp, fill_geometric, fill_uniform, next_word
from dpfast.core import checks, containers
from dpfast.core.grid import Grid, check_grid
from dpfast.laws import Law
from dpfast.mechanisms import BoundedRange
from dpfast.random import RandomSource, bit_generator, blocks
from dpfast.streaming import Codes, ascending
from dpfast.theory.kolmogorov import exponential_distance

_MOST_RECORDS = 2**13 - 1

# A larger epsilon gives the same draws, and would overflow.
_LARGEST_EPSILON = 2.0**64

# Bound on the mean ratio of proposal to law: the mean number of rounds of a draw.
_ROUNDS = 4.0
# States of all bands that are cached for further draws from one law: 200 MB.
_MOST_STATES = 2**24

# log 2 to 2**-256.
_LOG2 = Fraction(0xB17217F7D1CF79ABC9E3B39803F2F6AF40F343267298B62D8A0D175B8BAAFA2C, 2**256)
# The weight of every block is at least this fraction of the largest.
_FLOOR = 2.0**-1000


@dataclass(frozen=True, repr=False)
class KolmogorovSmirnov(BoundedRange):
    """Release k synthetic records z with weight ``exp(-epsilon * n * rho(x, z) / 2)``, exactly.

    rho is the Kolmogorov-Smirnov distance, the largest difference of the two empirical distribution functions. Pure
    epsilon-differential privacy under one replaced record; the number of records is public.

    Parameters
    ----------
    k : int, optional
        Number of records, from 1 to 8191. Default: ``(epsilon * n)**(2/3) / 2`` rounded, inside 1..min(n, 1024).
    grid : Grid
        Public bounds and granularity of data and release, in data units.
    epsilon : float
        Positive; rounded down to a double.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    Prefer a perturbed histogram: n records drawn from one are closer to the data, and 20 n records closer still. Mean
    rho to quantiles of Beta(10, 10) at epsilon = 1, for the default k here, n records of the histogram of
    `dpfast.theory.perturbed_bins`, and 20 n records of it: 0.050, 0.031 and 0.014 for n = 1000; 0.013, 0.0085 and
    0.0031 for n = 10000. Too many records end up far from the data, since few vectors are near: 0.248 if n = k = 1000
    (`dpfast.theory.exponential_distance`). Ties at few points of a fine grid are matched badly: each point is a cell of
    its own, with a small volume.
    Privacy: n * rho changes by at most 1 with one record, so the exponential mechanism with exponent epsilon / 2 is
    epsilon-DP (https://dpfast.readthedocs.io/en/latest/proofs/kolmogorov.html). The law is exact: no float decides it.
    Every vector of k grid points is possible, whatever the data; the order of the points carries no information.
    Cost: O(n log n) to sort, and for a release 20 to 120 passes over at most 2 k + 1 bands of about 2 rho k + 1 states
    of 12 bytes each; on one core 0.6 s for n = k = 1000, 0.04 s for n = 100000, k = 500, 40 s for n = 10000, k = 4000.
    Timing is outside the guarantee: times of draws differed by at most a factor of 11 between datasets of 10,000
    records.

    References
    ----------
    Wasserman and Zhou 2010, "A statistical framework for differential privacy", section 5, without a sampler.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> from dpfast.densities import KolmogorovSmirnov
    >>> mechanism = KolmogorovSmirnov(50, grid=dpf.Grid(0, 100, step=1), epsilon=1.0)
    >>> mechanism
    <KolmogorovSmirnov release of 50 synthetic records on 101 points from 0.0 to 100.0, step 1.0: epsilon = 1 (pure \
differential privacy) for one record replaced (the number of records is public)>
    >>> z = mechanism(np.random.default_rng(0).integers(18, 90, 1000))
    >>> z.shape, bool(35 <= np.median(z) <= 73)
    ((50,), True)
    """

    k: int | None = None
    grid: Grid = field(kw_only=True)
    epsilon: float = field(kw_only=True)

    def __post_init__(self) -> None:
        check_grid(self.grid)
        self.check_missing()
        if self.k is not None:
            k = checks.whole("k", self.k, least=1)
            if k > _MOST_RECORDS:
                raise ValueError(f"k must be at most {_MOST_RECORDS}, not {k}: use a perturbed histogram")
            object.__setattr__(self, "k", k)
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))

    def __repr__(self) -> str:
        grid, count = self.grid, "" if self.k is None else f"{self.k} "
        return (
            f"<KolmogorovSmirnov release of {count}synthetic records on {grid.size} points from {grid.lower!r} to "
            f"{grid.upper!r}, step {grid.step!r}: {self.privacy}>"
        )

    def records(self, n: int) -> int:
        """Return the public number of synthetic records for n records."""
        if self.k is not None:
            return self.k
        best: float = min((self.epsilon * n) ** (2 / 3) / 2, 1024.0)
        return max(1, min(round(best), n))

    def error(self, n: SupportsIndex) -> float:
        """Approximate expected distance between release and data: `dpfast.theory.exponential_distance`."""
        n = checks.whole("n", n, least=1)
        return exponential_distance(n, k=self.records(n), epsilon=self.epsilon)

    def reading(self) -> Codes:
        return Codes((self.grid,), ascending)

    def law_of(self, codes: NDArray[np.int64]) -> KolmogorovSmirnovLaw:
        return KolmogorovSmirnovLaw(codes, self.records(codes.size), epsilon=self.epsilon, grid=self.grid)


@dataclass(frozen=True)
class _Block:
    """The levels first..last, proposed together as vectors within level `last`, with weight ``weight * 2**exponent``.

    `above` is `first` minus the least of all levels.
    """

    first: int
    above: int
    last: int
    weight: float
    exponent: int


class KolmogorovSmirnovLaw(Law):
    """The law of k synthetic records: P(z) proportional to ``exp(-epsilon * n * rho(x, z) / 2)``, z of shape (..., k).

    Parameters
    ----------
    codes : ndarray of int64, shape (n,)
        The data, sorted.
    k : int
        Number of synthetic records.
    epsilon : float
    grid : Grid

    Notes
    -----
    The distance has the levels t = 0..`last`, with rho = t / last, and level t has weight exp(-rate t). The law is a
    mixture over the sets {level of z <= t}. A draw picks a block of levels, then a uniform vector within its last
    level; coins make the law exact, whatever the blocks and the doubles in them
    (https://dpfast.readthedocs.io/en/latest/proofs/kolmogorov.html).
    Cost: the first draw plans the blocks; `logpmf`, `distances` and `mean_distance` need the volume of every level with
    non-negligible weight.
    """

    def __init__(self, codes: NDArray[np.int64], k: int, *, epsilon: float, grid: Grid) -> None:
        n = codes.size
        common = math.gcd(n, k)
        self.k, self.grid = k, grid
        self.last = n * k // common
        self._codes, self._n, self._k = codes, n // common, k // common
        self._rate = Fraction(min(epsilon, _LARGEST_EPSILON)) / (2 * self._k)
        self._margin = Fraction((2 * k + 2) * (k + 16), 2**52) + Fraction(1, 2**44)
        self._sure = 1 - 4 * float(self._margin) - 2.0**-50
        self._intensity = k / grid.size
        self._volumes: dict[int, tuple[float, int]] = {}
        self._bands: dict[int, Band] = {}
        self._plan: list[_Block] = []
        self._planning = threading.RLock()

    def _rate_as_float(self) -> float:
        return max(float(self._rate), math.ulp(0.0))

    # The volume of a level t: the share of all vectors with level <= t.

    def _band(self, level: int, *, keep: bool) -> Band:
        return Band(self._codes, self.grid.size, self.k, self._n, self._k, level, self._intensity, keep=keep)

    def _feasible(self, level: int) -> bool:
        return feasible(self._codes, self.k, self._n, self._k, level)

    def _first_level(self) -> int:
        """Return the least level of any vector."""
        low, high = -1, self.last
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._feasible(middle) else (middle, high)
        return high

    def _volume(self, level: int) -> tuple[float, int]:
        """Return the volume of a feasible level in units common to all levels, with an exponent of 2."""
        if level not in self._volumes:
            band = self._band(level, keep=False)
            self._volumes[level] = band.part, band.exponent
        return self._volumes[level]

    def log_volume(self, level: int) -> float:
        """Log volume of a level, at most `last`."""
        if level < 0 or not self._feasible(level):
            return -math.inf
        part, exponent = self._volume(level)
        unit = math.lgamma(self.k + 1) - self.k * math.log(self._intensity * self.grid.size)
        return math.log(part) + exponent * math.log(2) + unit

    def _levels(self) -> tuple[range, NDArray[np.float64], float]:
        """Levels with all but e**-45 of the probability, their log volumes, and `log_normalizer`."""
        rate, first, total = self._rate_as_float(), self._first_level(), -math.inf
        log_volumes: list[float] = []
        for level in range(first, self.last + 1):
            log_volumes.append(self.log_volume(level))
            slice_ = 0.0 if level == self.last else math.log(-math.expm1(-rate))
            total = float(np.logaddexp(total, log_volumes[-1] - rate * level + slice_))
            if -rate * (level + 1) < total - 45:
                break
        return range(first, first + len(log_volumes)), np.array(log_volumes), total

    @property
    def log_normalizer(self) -> float:
        """Logarithm of the mean of exp(-epsilon * n * rho / 2) over all vectors."""
        return self._levels()[2]

    def distances(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the values of rho and their probabilities."""
        levels, log_volumes, total = self._levels()
        shells = np.exp(log_volumes - float(self._rate) * np.asarray(levels) - total)
        below = np.exp(log_volumes[:-1] - float(self._rate) * np.asarray(levels[1:]) - total)
        return np.asarray(levels) / self.last, shells - np.concatenate([[0.0], below])

    def mean_distance(self) -> float:
        """Return the expectation of rho."""
        values, probabilities = self.distances()
        return math.fsum(values * probabilities)

    def level(self, z: NDArray[np.int64]) -> int:
        """``rho(x, z) * last`` for one vector of codes."""
        z = np.sort(z)
        gaps = [
            self._k * self._codes.searchsorted(z, side=side) - self._n * z.searchsorted(z, side=side)
            for side in ("left", "right")
        ]
        return int(np.abs(gaps).max())

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = containers.integers("k", k)
        rows = codes.reshape(-1, codes.shape[-1])
        inside = np.all((rows >= 0) & (rows < self.grid.size), axis=1)
        levels = np.array([self.level(z) for z in rows])
        log_total = self.log_normalizer + self.k * math.log(self.grid.size)
        logs = np.where(inside, -float(self._rate) * levels - log_total, -np.inf)
        return logs.reshape(codes.shape[:-1])

    def outcomes(self) -> NDArray[np.int64]:
        size = self.grid.size
        numbers = np.arange(checks.outcomes(size**self.k))
        return numbers[:, None] // size ** np.arange(self.k) % size  # their digits

    # Draws.

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        if size is None:
            return self._draw(bit_generator(rng))
        shape = checks.shape(size)
        out = np.empty((math.prod(shape), self.k), np.int64)
        for source, block in blocks(rng, np.arange(len(out))):
            for i in block:
                out[i] = self._draw(source)
        return out.reshape(*shape, self.k)

    def value(self, k: ArrayLike) -> Any:
        return self.grid.decode(k)

    def _ends(self) -> list[int]:
        """Last levels of the blocks; a proposal weighs at most `_ROUNDS` times the law. All choices are exact.

        Computed in logarithms: on data with ties, the masses of blocks differ by factors of e to the thousands.
        """
        rate, step = self._rate_as_float(), self._k
        ends = [self._first_level()]

        def log_mass(level: int) -> float:
            """Return a lower bound on the logarithm of the total."""
            return self.log_volume(level) - rate * level

        most = max(log_mass(ends[0]), log_mass(self.last))
        while ends[-1] + step < self.last and -rate * ends[-1] > most - 3:
            ends.append(ends[-1] + step)
            most = max(most, log_mass(ends[-1]))
            step *= 2
        if ends[-1] < self.last:
            ends.append(self.last)
        masses = [self._log_masses(before, end) for before, end in itertools.pairwise([ends[0] - 1, *ends])]
        while True:
            logs = np.array(masses).T
            proposed, kept = np.exp(logs - logs[0].max())
            widest = int((proposed - kept).argmax())
            before, end = ends[widest - 1] if widest else ends[0] - 1, ends[widest]
            if proposed.sum() <= _ROUNDS * kept.sum() or end == before + 1:
                return ends
            middle = (before + end) // 2
            ends.insert(widest, middle)
            masses[widest : widest + 1] = self._log_masses(before, middle), self._log_masses(middle, end)

    def _log_masses(self, before: int, end: int) -> tuple[float, float]:
        """Logarithms of the mass that a block proposes, and of a lower bound on the part that the law keeps."""
        slices = self._log_slice(before, end)
        return slices + self.log_volume(end), slices + self.log_volume(end if end == before + 1 else before)

    def _log_slice(self, before: int, end: int) -> float:
        """Logarithm of the sum over the levels t in before + 1..end of the weights in the mixture."""
        rate = self._rate_as_float()
        rest = 0.0 if end == self.last else math.log(-math.expm1(-rate * (end - before)))
        return rest - rate * (before + 1)

    def _blocks(self) -> list[_Block]:
        """Return the blocks; weights exp(-rate above) (1 - exp(-rate length)) volume(last) are right to 2**-45 or
        larger.
        """
        ends = self._ends()
        parts, exponents = [], []
        for before, end in itertools.pairwise([ends[0] - 1, *ends]):
            halvings, rest = divmod(self._rate * (before + 1 - ends[0]), _LOG2)
            length = math.inf if end == self.last else float(self._rate * (end - before))
            part, exponent = self._volume(end)
            parts.append(part * decay(float(rest), length))
            exponents.append(exponent - halvings)
        unit = max(e + math.frexp(p)[1] for p, e in zip(parts, exponents, strict=True))
        return [
            _Block(before + 1, before + 1 - ends[0], end, max(math.ldexp(part, exponent - unit), _FLOOR), unit)
            for (before, end), part, exponent in zip(
                itertools.pairwise([ends[0] - 1, *ends]), parts, exponents, strict=True
            )
        ]

    def _planned(self) -> list[_Block]:
        with self._planning:
            if not self._plan:
                self._plan = self._blocks()
            return self._plan

    def _kept_band(self, level: int) -> Band:
        with self._planning:
            band = self._bands.get(level)
            if band is None:
                band = self._band(level, keep=True)
                if band.states + sum(other.states for other in self._bands.values()) > _MOST_STATES:
                    self._bands.clear()
                self._bands[level] = band
            return band

    def _draw(self, source: np.random.BitGenerator, *, exact: bool = False) -> NDArray[np.int64]:
        """One draw. With `exact`, every choice is made in exact arithmetic: same words, same output."""
        plan = self._planned()
        weights = np.array([block.weight for block in plan])
        while True:
            block = plan[choose(source, weights, exact=exact)]
            band = self._kept_band(block.last)
            z, path, certain = band.draw(source, exact=exact)
            certain &= block.weight > _FLOOR
            if self._corrected(source, block, band, path, certain and not exact) and self._within(source, block, z):
                return z

    def _corrected(
        self, source: np.random.BitGenerator, block: _Block, band: Band, path: NDArray[np.int64], certain: bool
    ) -> bool:
        """Return the coin that corrects rounding: true weight of block and path / (proposed weight * (1 + margin))."""
        word = next_word(source)
        if certain and (word >> 11) * 2.0**-53 < self._sure:
            return True
        from dpfast._kernels._balls import keeps_path

        return keeps_path(
            word,
            lambda: next_word(source),
            self._rate,
            block.above,
            None if block.last == self.last else block.last - block.first + 1,
            Fraction(block.weight) * Fraction(2) ** block.exponent * (1 + self._margin),
            band.odds(path),
            [
                (Fraction(self._intensity) * int(width), int(count))
                for width, count in zip(np.diff(band.edges), np.diff(path), strict=True)
            ],
        )

    def _within(self, source: np.random.BitGenerator, block: _Block, z: NDArray[np.int64]) -> bool:
        """Return the coin that undoes the block: whether the level of z is at most that of a random
        slice of the block.
        """
        excess = self.level(z) - block.first
        if excess <= 0:
            return True
        if block.last == self.last:
            return _happens(source, self._rate * excess)
        length = block.last - block.first + 1
        return excess <= _slice(source, self._rate, length)


def _happens(source: np.random.BitGenerator, gamma: Fraction) -> bool:
    """Return True with probability exp(-gamma)."""
    coin = np.empty(1, np.uint8)
    fill_bernoulli_exp(source, gamma, coin)
    return bool(coin[0])


def _slice(source: np.random.BitGenerator, rate: Fraction, length: int) -> int:
    """Draw j from 0..length - 1 with probability proportional to exp(-rate j)."""
    if rate * length > 1:
        j = np.empty(1, np.int64)
        while True:
            fill_geometric(source, 1 / rate, j)
            if j[0] < length:
                return int(j[0])
    place = np.empty(1, np.uint64)
    while True:
        fill_uniform(source, length - 1, place)
        if _happens(source, rate * int(place[0])):
            return int(place[0])
