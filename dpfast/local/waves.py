"""The methods of `SeriesReports`: reports of the basis functions at one record."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.random import BitGenerator
from numpy.typing import NDArray

from dpfast._kernels import _randomize, _samplers
from dpfast.core.coin import Coin, coin
from dpfast.core.grid import Grid
from dpfast.densities.basis import cosine_table
from dpfast.local.ball import L2Ball
from dpfast.local.hypercube import Hypercube, HypercubeLaw
from dpfast.local.scalar import FiniteLaw

_DIRECTIONS = 2**16
_BITS = 30  # the sums of reports are in units of 2**-30
_ENTRIES = 2**18  # entries of a block of basis functions, one row per person
_MOST_OUTCOMES = 2**20
_SQRT2 = math.sqrt(2)


# ---- reports ----


class WaveMethod(ABC):
    """A method and its constants."""

    report: np.dtype[Any]
    sums_dtype: np.dtype[Any] = np.dtype(np.int64)
    scale: float
    unit: float  # factor that converts a sum
    second_moment: float  # E|Z|^2
    coordinate_moment: float  # the largest E Z_j^2
    share: Fraction  # see `LocalMechanism.share`

    @abstractmethod
    def fill(self, source: BitGenerator, turns: NDArray[np.uint64], basis: str, out: NDArray[Any]) -> None: ...

    @abstractmethod
    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]: ...

    @abstractmethod
    def sums(self, reports: NDArray[Any]) -> NDArray[Any]: ...

    @abstractmethod
    def decode(self, reports: NDArray[Any], out: NDArray[np.float64]) -> None: ...

    @abstractmethod
    def law(self, turns: NDArray[np.uint64], basis: str) -> FiniteLaw | HypercubeLaw: ...


class Circle:
    """One of M evenly spaced directions: a coin decides between the w next to the record's and the others.

    Parameters
    ----------
    epsilon : float
    directions : int
        M, a multiple of 4, at least 4.

    Attributes
    ----------
    width : int
        w: the odd number with the least variance.
    coin : Coin
        "keep" means inside the window.
    table : ndarray of int32
        ``round(2**30 cos(2 pi i / M))``.
    shrink : Fraction
        rho = <mean, record>: the mean of the reported direction is the record's direction times this.
    """

    def __init__(self, epsilon: float, directions: int = _DIRECTIONS) -> None:
        self.directions, self.table = directions, cosine_table(directions // 4, _BITS)
        self.width = _best_width(self.table, coin(epsilon).ratio)
        self.coin: Coin = coin(epsilon, Fraction(self.width, directions - self.width))
        inside, outside = self.density
        self.shrink = (inside - outside) * self.near(1) / 2**_BITS

    @property
    def density(self) -> tuple[Fraction, Fraction]:
        """The probability of each direction in the window, and of each direction outside it."""
        p = self.coin.probability
        return p / self.width, (1 - p) / (self.directions - self.width)

    def near(self, harmonic: int) -> int:
        """Return the sum over the window of the table's cosines of a multiple of the angle; over all directions it is
        0.
        """
        side = harmonic * np.arange(1, self.width // 2 + 1) % self.directions
        return int(self.table[0]) + 2 * int(self.table[side].sum(dtype=np.int64))

    def fill(self, source: BitGenerator, turns: NDArray[np.uint64], out: NDArray[np.uint32]) -> None:
        """Write the reported directions for angles in units of 2**-64 of a turn."""
        dither, steps = np.empty(turns.size, np.uint64), np.empty(turns.size, np.uint32)
        _samplers.fill_words(source, dither)
        _randomize.fill_windows(
            source, np.zeros(turns.size, np.uint32), self.width, self.directions, self.coin.threshold, steps
        )
        shift = np.uint64(64 - (self.directions.bit_length() - 1))
        nearest = (turns + (dither >> np.uint64(64) - shift)) >> shift  # sums modulo a turn
        first = nearest.astype(np.uint32) + np.uint32(self.directions - self.width // 2)
        np.remainder(first + steps, self.directions, out=out)

    def pmf(self, turns: int, weight: Fraction = Fraction(1)) -> list[Fraction]:
        """Return the law of the reported direction for one angle, times a weight."""
        each = 2**64 // self.directions
        lower, part = turns // each, Fraction(turns % each, each)
        inside, outside = self.density
        first, second = (
            (np.arange(self.directions) - rounded + self.width // 2) % self.directions < self.width
            for rounded in (lower, lower + 1)
        )
        mixed = [weight * ((1 - part) * a + part * b) for a in (outside, inside) for b in (outside, inside)]
        return [mixed[case] for case in (2 * first + second).tolist()]


def _best_width(table: NDArray[np.int32], ratio: Fraction) -> int:
    """Return the odd w with the largest rho, ``(E - 1) S_w / (E w + M - w)``, S_w the sum of the w largest cosines.

    Computed in integers, so client and server agree. S is concave in w and the denominator linear, so rho rises, then
    falls: bisection on the sign of its change.
    """
    m = table.size
    side = np.cumsum(table[1 : m // 4].astype(np.int64))
    top = int(table[0])

    def rises(i: int) -> bool:
        """Whether rho is larger at w = 2 i + 3 than at 2 i + 1."""
        sums = [top + 2 * int(side[j - 1]) if j else top for j in (i, i + 1)]
        costs = [(ratio - 1) * (2 * j + 1) + m for j in (i, i + 1)]
        return sums[1] * costs[0] > sums[0] * costs[1]

    first, last = 0, side.size  # rho does not rise at `last` or later
    while first < last:
        middle = (first + last) // 2
        first, last = (middle + 1, last) if rises(middle) else (first, middle)
    return 2 * first + 1


@lru_cache(maxsize=64)
def circle(epsilon: float) -> Circle:
    """Return the `Circle` with 2**16 directions at this epsilon."""
    return Circle(epsilon)


class _Frequency(WaveMethod):
    """One random frequency, and a random direction, likely near the record's angle at this frequency."""

    def __init__(self, terms: int, epsilon: float) -> None:
        self._frequencies, self._circle = terms // 2, circle(epsilon)
        self.share = Fraction(self._circle.width, _DIRECTIONS)
        self.report = np.dtype(np.uint32)
        rho = float(self._circle.shrink)
        self.scale = self._frequencies * _SQRT2 / rho
        self.unit = self.scale * 2.0**-_BITS
        self.second_moment = self.scale**2
        inside, outside = self._circle.density
        second = float((inside - outside) * abs(self._circle.near(2)) / 2**_BITS)
        self.coordinate_moment = self.second_moment / self._frequencies * (1 + second) / 2

    def fill(self, source: BitGenerator, turns: NDArray[np.uint64], basis: str, out: NDArray[Any]) -> None:
        frequency = np.empty(turns.size, np.uint64)
        _samplers.fill_uniform(source, self._frequencies - 1, frequency)
        direction = np.empty(turns.size, np.uint32)
        self._circle.fill(source, turns * (frequency + np.uint64(1)), direction)
        out[:] = frequency.astype(np.uint32) * np.uint32(_DIRECTIONS) + direction

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(reports < self._frequencies * _DIRECTIONS)

    def sums(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        place, cosine, sine = self._waves(reports)
        sums = np.empty(2 * self._frequencies, np.int64)
        for start, wave in enumerate((cosine, sine)):
            # 2**16 integers of 30 bits: their sum is exact in doubles
            sums[start::2] = np.bincount(place, weights=wave, minlength=self._frequencies)
        return sums

    def _waves(self, reports: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
        """Index of the frequency, and the table's cosine and sine (the cosine a quarter of a turn earlier)."""
        directions = reports & np.uint32(_DIRECTIONS - 1)
        quarter = np.uint32(_DIRECTIONS // 4)
        table = self._circle.table
        place = (reports >> np.uint32(16)).astype(np.int64)
        return place, table[directions], table[(directions - quarter) & np.uint32(_DIRECTIONS - 1)]

    def decode(self, reports: NDArray[Any], out: NDArray[np.float64]) -> None:
        place, cosine, sine = self._waves(reports)
        out[:] = 0.0
        rows = np.arange(len(reports))
        out[rows, 2 * place], out[rows, 2 * place + 1] = cosine * self.unit, sine * self.unit

    def law(self, turns: NDArray[np.uint64], basis: str) -> FiniteLaw:
        if self._frequencies * _DIRECTIONS > _MOST_OUTCOMES:
            raise ValueError(
                f"the law of {2 * self._frequencies} terms has more than 2**20 outcomes: use audit.distinguish"
            )
        pmf: list[Fraction] = []
        for frequency in range(1, self._frequencies + 1):
            pmf += self._circle.pmf(int(turns[0]) * frequency % 2**64, Fraction(1, self._frequencies))
        return FiniteLaw(np.arange(len(pmf), dtype=np.uint32), tuple(pmf))


class _Vector(WaveMethod):
    """All basis functions at once, as a vector for another randomiser; computed in blocks of people."""

    def __init__(self, vectors: Hypercube | L2Ball) -> None:
        self._vectors = vectors
        shape, kind = vectors.row
        self.report = np.dtype((kind, shape)) if shape else np.dtype(kind)
        self.scale, self.unit, self.second_moment = vectors.scale, vectors.unit, vectors.second_moment
        self.coordinate_moment, self.share = vectors.worst_variance, vectors.share
        if isinstance(vectors, L2Ball):
            self.sums_dtype = np.dtype(np.float64)

    def fill(self, source: BitGenerator, turns: NDArray[np.uint64], basis: str, out: NDArray[Any]) -> None:
        step = max(1, _ENTRIES // self._vectors.d)
        for start in range(0, turns.size, step):
            people = slice(start, start + step)
            self._vectors.fill(source, waves_of(turns[people], self._vectors.d, basis), out[people])

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return self._vectors.valid(reports)

    def sums(self, reports: NDArray[Any]) -> NDArray[Any]:
        return self._vectors.sums(reports)

    def decode(self, reports: NDArray[Any], out: NDArray[np.float64]) -> None:
        self._vectors.decode_into(reports, out)

    def law(self, turns: NDArray[np.uint64], basis: str) -> HypercubeLaw:
        if isinstance(self._vectors, L2Ball):
            raise ValueError('the law of method="halfspace" has more than 2**20 outcomes: use audit.distinguish')
        return self._vectors.law(waves_of(turns, self._vectors.d, basis)[0])


def _halfspace(terms: int, epsilon: float) -> WaveMethod:
    return _Vector(L2Ball(terms, epsilon, radius=math.sqrt(terms), report="sign"))


def _cube(terms: int, epsilon: float, *, method: str) -> WaveMethod:
    return _Vector(Hypercube(terms, epsilon, radius=_SQRT2, method=method))


METHODS: dict[str, Callable[[int, float], WaveMethod]] = {
    "one-frequency": _Frequency,
    "halfspace": _halfspace,
    "majority": partial(_cube, method="majority"),
    "subset": partial(_cube, method="subset"),
}


@lru_cache(maxsize=256)
def method_of(method: str, terms: int, epsilon: float) -> WaveMethod:
    """Return the method of this name for a number of terms."""
    return METHODS[method](terms, epsilon)


@lru_cache(maxsize=4096)
def best_method(terms: int, epsilon: float, basis: str) -> tuple[str, float]:
    """Return the method with the least E|Z|^2, and its E|Z|^2; from public parameters only."""
    names = list(METHODS) if basis == "trigonometric" else ["majority", "subset"]
    moments = {name: method_of(name, terms, epsilon).second_moment for name in names}
    # Equal values computed by different formulas differ by rounding: a tie goes to the first method.
    least = min(moments.values()) * (1 + 1e-12)
    best = next(name for name in names if moments[name] <= least)
    return best, moments[best]


# ---- basis functions ----


def turns_of(grid: Grid, x: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the u of each record in units of 2**-64: the middle of its code's cell, rounded to 2**-53."""
    u = (grid.encode(x) + 0.5) / grid.size
    return np.minimum(u * 2.0**53, 2.0**53 - 1).astype(np.uint64) << np.uint64(11)


def waves_of(turns: NDArray[np.uint64], terms: int, basis: str) -> NDArray[np.float64]:
    """phi_1..phi_terms of each record, by rotation; contiguous, inside the cube and the ball up to rounding."""
    u = turns.astype(np.float64) * 2.0**-64
    angle = (2 * math.pi if basis == "trigonometric" else math.pi) * u
    turn = np.exp(1j * angle)
    out = np.empty((u.size, terms))
    wave = np.full(u.size, _SQRT2, dtype=np.complex128)
    if basis == "cosine":
        for j in range(terms):
            wave *= turn
            out[:, j] = wave.real
    else:
        for j in range(0, terms, 2):
            wave *= turn
            out[:, j], out[:, j + 1] = wave.real, wave.imag
    return out
