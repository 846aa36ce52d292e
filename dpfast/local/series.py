"""A density from people who trust nobody with their number: coefficients of a series, from one report each.

Notation: u in (0, 1) is a record's place between the bounds; ``phi_j = sqrt(2) cos(2 pi l u)`` for j = 2 l - 1 and
``sqrt(2) sin(2 pi l u)`` for j = 2 l (trigonometric), or ``sqrt(2) cos(pi j u)`` (cosine); the density is ``1 + sum_j
b_j phi_j``, b_j the mean of phi_j.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, SupportsIndex

import numpy as np
from numpy.random import BitGenerator
from numpy.typing import ArrayLike, NDArray

from dpfast import _checks, _containers
from dpfast._kernels import _randomize, _samplers
from dpfast.coin import Coin, coin
from dpfast.densities import SeriesDensity
from dpfast.densities.basis import cosine_table, most_terms, width_of
from dpfast.grid import Grid, grid_for
from dpfast.local.ball import L2Ball
from dpfast.local.hypercube import Hypercube, HypercubeLaw
from dpfast.local.randomizer import Aggregate
from dpfast.local.scalar import FiniteLaw, ScalarRandomizer, record
from dpfast.random import RandomSource, bit_generator
from dpfast.theory.series import BASES

_METHODS = ("one-frequency", "halfspace", "majority", "subset")
_DIRECTIONS = 2**16
_BITS = 30  # the sums of reports are in units of 2**-30
_ENTRIES = 2**18  # of a block of basis functions of many people
_MOST_OUTCOMES = 2**20
_SQRT2 = math.sqrt(2)


@dataclass(frozen=True)
class SeriesReports(ScalarRandomizer):
    """Release of the first coefficients of a density, each person for himself: the client and the server of `density`.

    Pure epsilon-local differential privacy.

    Parameters
    ----------
    terms : int
        Coefficients: from 1 to 1024, below the number of grid points, even for the trigonometric basis.
    epsilon : float
        At least 2**-40; rounded down to a double.
    grid : Grid
        Public bounds and granularity of the numbers, in data units. Numbers outside are clamped; NaN and missing ones
        are ``grid.missing``.
    method : {"auto", "one-frequency", "halfspace", "majority", "subset"}
        "auto" is the one of least variance, the first of these on a tie; all are exactly private.
    basis : {"trigonometric", "cosine"}
        The trigonometric one is that of the paper, for densities that are equal at both ends or periodic. The cosine
        basis is for any smooth density, with up to twice the variance; "majority" and "subset" only.

    Attributes
    ----------
    method : str
        The method in use, never "auto".

    Raises
    ------
    TypeError, ValueError
        Before any data are looked at.

    Notes
    -----
    A report, where K = terms / 2:

    - "one-frequency": a uniform frequency l of 1..K, and one of 2**16 directions. The angle 2 pi l u is rounded to a
      direction, unbiased; the report is uniform on the w directions next to it, or uniform on all others, as an exact
      coin says; w has the least variance. A uint32, ``2**16 (l - 1) + direction``. The limit of many directions is
      PrivUnit on the circle, the best that there is for one frequency; 2**16 lose less than one part in a million.
    - "halfspace": `L2Ball`, one bit about a half space of all terms, whose vector has norm sqrt(terms). A uint64.
    - "majority", "subset": `Hypercube` with the radius sqrt(2), equation (39) of the paper with its (26) corrected, and
      its better relative. Words of 64 bits.

    E|Z|^2 of a decoded report at epsilon = 1, in units of terms^2: 5.26, 5.78 to 7.36, 11.1 to 14.4, 9.37.
    Bytes: the numbers little-endian. Sums of "one-frequency" are integers, in units of ``scale * 2**-30``. Refused are
    numbers out of range and bits beyond the last sign that are not 0.

    Privacy: the number becomes an integer code on the public grid at the door, and only then is anything computed; an
    exact coin decides, rounded towards privacy (docs/proofs/local-series.md). Estimates are unbiased for the numbers
    on the grid but for 2e-9 of a coefficient.
    Cost: about 60 ns a report for "one-frequency", whatever the number of terms; of the others O(terms). The server
    keeps `terms` sums.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, section 5.2, equation (39); Bhowmick et al. 2018 and Asi, Feldman and Talwar 2022
    for the cap; mechanisms-b 8 of the specification.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> from dpfast import local
    >>> survey = local.SeriesReports(4, 1.0, grid=dpf.Grid(0, 24))
    >>> survey.method
    'one-frequency'
    >>> arrival = np.random.default_rng(0).normal(8.5, 2.0, 100_000)  # hours
    >>> reports = survey.randomize(arrival)
    >>> reports.dtype, reports.shape
    (dtype('uint32'), (100000,))
    >>> b = survey.estimate(reports)
    >>> bool(abs(b[0] - np.mean(np.sqrt(2) * np.cos(2 * np.pi * arrival / 24))) < 0.12)
    True
    """

    terms: int
    epsilon: float
    grid: Grid = field(kw_only=True)
    method: str = field(kw_only=True, default="auto")
    basis: str = field(kw_only=True, default="trigonometric")

    def __post_init__(self) -> None:
        terms, epsilon = _checks.whole("terms", self.terms, least=1), _checks.positive_down("epsilon", self.epsilon)
        coin(epsilon)
        if not isinstance(self.grid, Grid):
            raise TypeError(f"grid must be a dpfast.Grid, not {type(self.grid).__name__}")
        most = most_terms(self.grid)
        if terms > most:
            raise ValueError(f"terms must be at most {most} on {self.grid.size} grid points, not {terms}")
        _checks.choice("method", self.method, ("auto", *_METHODS))
        _checks.choice("basis", self.basis, BASES)
        if self.basis == "trigonometric" and terms % 2:
            raise ValueError(f"terms must be even for basis='trigonometric', cosines and sines in pairs, not {terms}")
        if self.basis == "cosine" and self.method in ("one-frequency", "halfspace"):
            raise ValueError(f"method={self.method!r} is for pairs of a cosine and a sine: not of basis='cosine'")
        method = best_method(terms, epsilon, self.basis)[0] if self.method == "auto" else self.method
        for name, value in (("terms", terms), ("epsilon", epsilon), ("method", method)):
            object.__setattr__(self, name, value)
        _checks.density_range(width_of(self.grid))

    @property
    def _plan(self) -> _Plan:
        return _plan(self.method, self.terms, self.epsilon)

    @property
    def report(self) -> np.dtype[Any]:
        return self._plan.report

    @property
    def scale(self) -> float:
        """The norm of a decoded report, or of its entries that are not 0 for "majority" and "subset". Public."""
        return self._plan.scale

    def _fill(self, source: BitGenerator, x: NDArray[Any], out: NDArray[Any]) -> None:
        self._plan.fill(source, _turns(self.grid, x), self.basis, out)

    def _valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return self._plan.valid(reports)

    def _sums(self, reports: NDArray[Any]) -> NDArray[Any]:
        return self._plan.sums(reports)

    def _aggregated(self, reports: NDArray[Any] | Aggregate, size: int) -> Aggregate:
        total = reports if isinstance(reports, Aggregate) else self.aggregate(reports)
        kind = self._plan.sums_dtype
        if total.sums.shape != (size,) or total.sums.dtype != kind:
            raise ValueError(f"the aggregate must hold {size} sums of {kind}, not {total.sums.size}")
        if total.n < 1:
            raise ValueError("an estimate needs at least one report that is not refused")
        return total

    def law(self, x: ArrayLike) -> FiniteLaw | HypercubeLaw:
        """The exact law of the report of one record. PRIVATE.

        Raises
        ------
        ValueError
            More than 2**20 outcomes; "halfspace", whose reports are 2**64.
        """
        return self._plan.law(_turns(self.grid, record(x)), self.basis)

    def decode(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        """For each report an unbiased estimate of ``phi_1..phi_terms`` at its record.

        NaN for a report that is refused. n times `terms` numbers: for coefficients use `estimate`, which needs no
        memory.
        """
        return super().decode(reports)

    def _values(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        out = np.empty((len(reports), self.terms))
        self._plan.decode(reports, out)
        return out

    def estimate(self, reports: NDArray[Any] | Aggregate) -> NDArray[np.float64]:
        """Unbiased estimates of the coefficients b, without reports that are refused."""
        total = self._aggregated(reports, self.terms)
        return np.asarray(total.sums * (self._plan.unit / total.n), dtype=np.float64)

    def density(self, reports: NDArray[Any] | Aggregate) -> LocalDensity:
        """The density that the reports, or their aggregate, give."""
        total = self._aggregated(reports, self.terms)
        return LocalDensity(self.estimate(total), self.grid, total.n, self.privacy, self.basis, randomizer=self)

    @property
    def second_moment(self) -> float:
        """E|Z|^2 of a decoded report, the same for all records. Public."""
        return self._plan.second_moment

    def variance(self, x: ArrayLike | None = None) -> Any:
        """Total variance of a decoded report at the record x; by default of the worst, or a bound for that.

        Parameters
        ----------
        x : array_like, optional
            One record or an array of them.

        Returns
        -------
        float or ndarray
            E|Z|^2 less ``|phi(x)|^2``, which for the trigonometric basis is terms.
        """
        if x is None:
            return self.second_moment - (self.terms if self.basis == "trigonometric" else 0.0)
        values = _containers.numbers("x", x if hasattr(x, "__len__") else [x])
        waves = _waves(_turns(self.grid, values.reshape(-1)), self.terms, self.basis)
        variances = self.second_moment - np.square(waves).sum(axis=1)
        return variances.reshape(values.shape) if hasattr(x, "__len__") else float(variances[0])

    @property
    def worst_variance(self) -> float:
        """The largest second moment of a decoded coefficient: of numbers drawn from a density, whose phi_j vary."""
        return self._plan.coordinate_moment

    def mise(self, n: SupportsIndex, coefficients: ArrayLike) -> float:
        """Mean integrated squared error of the series, if the density had these coefficients: exact.

        ``(E|Z|^2 - |b_1..k|^2) / n + sum_(j > k) b_j^2``, in data units (one over them).

        Parameters
        ----------
        n : int
            Reports, at least 1.
        coefficients : array_like
            b of an assumed density in this basis, at least `terms` of them. An assumption, never data.
        """
        n, b = _checks.whole("n", n, least=1), np.asarray(coefficients, dtype=np.float64)
        if b.ndim != 1 or b.size < self.terms:
            raise ValueError(f"coefficients must be at least {self.terms} in a row, not of shape {b.shape}")
        squares = np.square(b)
        inside, beyond = math.fsum(squares[: self.terms]), math.fsum(squares[self.terms :])
        return ((self.second_moment - inside) / n + beyond) / width_of(self.grid)

    def mise_bound(self, n: SupportsIndex, *, smoothness: float = 2.0, roughness: float = 1.0) -> float:
        """Upper bound on that error for all densities with ``sum_j j^(2 smoothness) b_j^2 <= roughness^2``.

        ``E|Z|^2 / n + C^2 (terms + 1)^(-2 smoothness)``, in data units (one over them).
        """
        bound = _bound(self.second_moment, self.terms, n, *_class(smoothness, roughness))
        return bound / width_of(self.grid)


# ---- what a report says ----


class _Plan(ABC):
    """A method with its numbers."""

    report: np.dtype[Any]
    sums_dtype: np.dtype[Any] = np.dtype(np.int64)
    scale: float
    unit: float  # of a sum
    second_moment: float  # E|Z|^2
    coordinate_moment: float  # the largest E Z_j^2

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
    """One of M directions, evenly spaced: uniform on the w next to the record's, or on the others, as a coin says.

    Parameters
    ----------
    epsilon : float
    directions : int
        M, a multiple of 4, at least 4.

    Attributes
    ----------
    width : int
        w, odd: of those the one of least variance.
    coin : Coin
        "keep" is: in the window.
    table : ndarray of int32
        ``round(2**30 cos(2 pi i / M))``.
    shrink : Fraction
        The mean of the direction reported is the record's, times this: rho = <mean, record>.
    """

    def __init__(self, epsilon: float, directions: int = _DIRECTIONS) -> None:
        self.directions, self.table = directions, cosine_table(directions // 4, _BITS)
        self.width = _best_width(self.table, coin(epsilon).ratio)
        self.coin: Coin = coin(epsilon, Fraction(self.width, directions - self.width))
        inside, outside = self.density
        self.shrink = (inside - outside) * self.near(1) / 2**_BITS

    @property
    def density(self) -> tuple[Fraction, Fraction]:
        """The probability of each direction in the window, and of each other."""
        p = self.coin.probability
        return p / self.width, (1 - p) / (self.directions - self.width)

    def near(self, harmonic: int) -> int:
        """The sum of the table's cosines of a multiple of the angle over the window; over all directions it is 0."""
        side = harmonic * np.arange(1, self.width // 2 + 1) % self.directions
        return int(self.table[0]) + 2 * int(self.table[side].sum(dtype=np.int64))

    def fill(self, source: BitGenerator, turns: NDArray[np.uint64], out: NDArray[np.uint32]) -> None:
        """Directions for angles in units of 2**-64 of a turn."""
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
        """The law of the direction of one angle, times a weight."""
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
    """The odd w with the largest rho, ``(E - 1) S_w / (E w + M - w)``, S_w the sum of the w largest cosines.

    In integers, so the same for client and server. S is concave in w and the denominator linear, so rho rises, then
    falls: bisection on the sign of its change.
    """
    m = table.size
    side = np.cumsum(table[1 : m // 4].astype(np.int64))
    top = int(table[0])

    def rises(i: int) -> bool:
        """Whether rho at w = 2 i + 3 is larger than at 2 i + 1."""
        sums = [top + 2 * int(side[j - 1]) if j else top for j in (i, i + 1)]
        costs = [(ratio - 1) * (2 * j + 1) + m for j in (i, i + 1)]
        return sums[1] * costs[0] > sums[0] * costs[1]

    first, last = 0, side.size  # rho does not rise from `last` on
    while first < last:
        middle = (first + last) // 2
        first, last = (middle + 1, last) if rises(middle) else (first, middle)
    return 2 * first + 1


@lru_cache(maxsize=64)
def circle(epsilon: float) -> Circle:
    """The circle of 2**16 directions at this epsilon."""
    return Circle(epsilon)


class _Frequency(_Plan):
    """One random frequency, and a direction near the record's angle at it."""

    def __init__(self, terms: int, epsilon: float) -> None:
        self._frequencies, self._circle = terms // 2, circle(epsilon)
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
            # integers of 30 bits, 2**16 of them: doubles add them exactly
            sums[start::2] = np.bincount(place, weights=wave, minlength=self._frequencies)
        return sums

    def _waves(self, reports: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
        """Place of the frequency, and the table's cosine and sine, which is the cosine a quarter of a turn before."""
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
            raise ValueError(f"the law of {2 * self._frequencies} terms has more than 2**20 outcomes")
        pmf: list[Fraction] = []
        for frequency in range(1, self._frequencies + 1):
            pmf += self._circle.pmf(int(turns[0]) * frequency % 2**64, Fraction(1, self._frequencies))
        return FiniteLaw(np.arange(len(pmf), dtype=np.uint32), tuple(pmf))


class _Vector(_Plan):
    """All basis functions at once, as a vector that another randomiser takes; a block of people at a time."""

    def __init__(self, vectors: Hypercube | L2Ball) -> None:
        self._vectors = vectors
        shape, kind = vectors.row
        self.report = np.dtype((kind, shape)) if shape else np.dtype(kind)
        self.scale, self.unit, self.second_moment = vectors.scale, vectors.unit, vectors.second_moment
        self.coordinate_moment = vectors.worst_variance
        if isinstance(vectors, L2Ball):
            self.sums_dtype = np.dtype(np.float64)

    def fill(self, source: BitGenerator, turns: NDArray[np.uint64], basis: str, out: NDArray[Any]) -> None:
        step = max(1, _ENTRIES // self._vectors.d)
        for start in range(0, turns.size, step):
            people = slice(start, start + step)
            self._vectors._fill(source, _waves(turns[people], self._vectors.d, basis), out[people])

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return self._vectors._valid(reports)

    def sums(self, reports: NDArray[Any]) -> NDArray[Any]:
        return self._vectors._sums(reports)

    def decode(self, reports: NDArray[Any], out: NDArray[np.float64]) -> None:
        self._vectors._decode(reports, out)

    def law(self, turns: NDArray[np.uint64], basis: str) -> HypercubeLaw:
        if isinstance(self._vectors, L2Ball):
            raise ValueError('the law of method="halfspace" is not written out: 2**64 reports')
        return self._vectors.law(_waves(turns, self._vectors.d, basis)[0])


def _halfspace(terms: int, epsilon: float) -> _Plan:
    return _Vector(L2Ball(terms, epsilon, radius=math.sqrt(terms), report="sign"))


def _cube(terms: int, epsilon: float, *, method: str) -> _Plan:
    return _Vector(Hypercube(terms, epsilon, radius=_SQRT2, method=method))


_PLANS: dict[str, Callable[[int, float], _Plan]] = {
    "one-frequency": _Frequency,
    "halfspace": _halfspace,
    "majority": partial(_cube, method="majority"),
    "subset": partial(_cube, method="subset"),
}


@lru_cache(maxsize=256)
def _plan(method: str, terms: int, epsilon: float) -> _Plan:
    return _PLANS[method](terms, epsilon)


@lru_cache(maxsize=4096)
def best_method(terms: int, epsilon: float, basis: str) -> tuple[str, float]:
    """The method with the least E|Z|^2, and that: of public parameters only."""
    names = _METHODS if basis == "trigonometric" else _METHODS[2:]
    moments = {name: _plan(name, terms, epsilon).second_moment for name in names}
    # Formulas of the same value differ by rounding: a tie goes to the first.
    least = min(moments.values()) * (1 + 1e-12)
    best = next(name for name in names if moments[name] <= least)
    return best, moments[best]


# ---- basis functions ----


def _turns(grid: Grid, x: NDArray[Any]) -> NDArray[np.uint64]:
    """The u of each record in units of 2**-64: the middle of its code's cell, to 2**-53."""
    u = (grid.encode(x) + 0.5) / grid.size
    return np.minimum(u * 2.0**53, 2.0**53 - 1).astype(np.uint64) << np.uint64(11)


def _waves(turns: NDArray[np.uint64], terms: int, basis: str) -> NDArray[np.float64]:
    """phi_1..phi_terms of each record, by rotation: contiguous, within rounding of the cube and of the ball."""
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


# ---- the density ----


@dataclass(frozen=True, eq=False, repr=False)
class LocalDensity(SeriesDensity):
    """A density made of `SeriesReports`: like `dpfast.SeriesDensity`, with the errors of the local model.

    Everything here is public; nothing here spends privacy.

    Parameters
    ----------
    coefficients, grid, n, privacy, basis
        As for `dpfast.SeriesDensity`.
    randomizer : SeriesReports
        What the people used.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> x = np.random.default_rng(0).beta(10, 10, 100_000)
    >>> density = local.density(x, bounds=(0, 1), epsilon=1.0)
    >>> bool(abs(density.pdf(0.5) - 3.52) < 0.5), density.sample(5).shape
    (True, (5,))
    """

    basis: str = "trigonometric"
    randomizer: SeriesReports = field(kw_only=True)

    def __reduce__(self) -> tuple[Any, ...]:
        made = partial(type(self), randomizer=self.randomizer)
        return made, (self.coefficients, self.grid, self.n, self.privacy, self.basis)

    def error(self, *, smoothness: float = 2.0, roughness: float = 1.0) -> float:
        """Upper bound on the mean integrated squared error of the series, in data units, from public assumptions."""
        return self.randomizer.mise_bound(self.n, smoothness=smoothness, roughness=roughness)

    @property
    def informative(self) -> bool:
        """Whether the noise is expected to change the series by less than the uniform density's square, 1."""
        return self.randomizer.second_moment < self.n


def density(
    x: ArrayLike,
    *,
    bounds: tuple[float, float] | None = None,
    epsilon: float,
    terms: int | str = "auto",
    smoothness: float = 2.0,
    roughness: float = 1.0,
    method: str = "auto",
    basis: str = "trigonometric",
    grid: Grid | None = None,
    rng: RandomSource = None,
    workers: int = 1,
) -> LocalDensity:
    """The density of numbers of which each person sends one private report: to plot, evaluate and draw from at will.

    Pure epsilon-local differential privacy, under any change of one person's number; nobody waits for anybody.
    `SeriesReports` has the client and the server apart.

    Parameters
    ----------
    x : array_like of shape (n,)
        Private data: floats, integers or booleans of any stride, never modified; NaN and None are missing.
    bounds : pair of float
        Public bounds in data units: numbers outside are clamped. Or `grid`.
    epsilon : float
        At least 2**-40; rounded down to a double.
    terms : int or "auto"
        Number of coefficients, even for the trigonometric basis. "auto" minimises the bound ``E|Z|^2 / n + C^2 (terms +
        1)^(-2 beta)``, a function of public numbers only: of order ``(n epsilon^2)^(1 / (2 beta + 2))``.
    smoothness, roughness : float
        beta > 1/2 and C > 0 of that rule: ``sum_j j^(2 beta) b_j^2 <= C^2``, about beta derivatives. Assumptions, not
        estimates; a rougher density wants a larger C.
    method, basis
        As for `SeriesReports`.
    grid : Grid, optional
        In place of `bounds`.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Threads; the result does not depend on it, for a given rng.

    Returns
    -------
    LocalDensity
        With ``pdf``, ``cdf``, ``quantile``, ``sample``, ``plot``, ``coefficients``, ``error``.

    Raises
    ------
    TypeError, ValueError
        Before any data are looked at, except for their shape and dtype.

    Notes
    -----
    Privacy: that of `SeriesReports`, then post-processing (docs/proofs/local-series.md). Cost: one report for each
    person.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, equation (39), Corollary 7; Hall and Murison 1993 for the positive part.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> x = np.random.default_rng(0).beta(10, 10, 100_000)
    >>> local.density(x, bounds=(0, 1), epsilon=1.0)
    <LocalDensity of 6 trigonometric terms from 0.0 to 1.0, n = 100000: epsilon = 1 (pure differential privacy) for \
any change of one record, against everyone but its owner>
    """
    epsilon = _checks.positive_down("epsilon", epsilon)
    grid = grid_for(x, bounds, grid)
    if isinstance(terms, str) and terms != "auto":
        raise ValueError(f"terms must be an integer or 'auto', not {terms!r}")
    _class(smoothness, roughness)
    make = partial(SeriesReports, epsilon=epsilon, grid=grid, method=method, basis=basis)
    least = 1 if basis == "cosine" else 2
    survey = make(least if isinstance(terms, str) else terms)  # wrong parameters are told before data are looked at
    bit_generator(rng)
    _checks.threads(workers)
    values = _containers.vector("x", x)
    n = _checks.records(values.shape[0])
    if isinstance(terms, str):
        survey = make(_best_terms(n, epsilon, *_class(smoothness, roughness), method, basis, most_terms(grid)))
    return survey.density(survey.aggregate(survey.randomize(values, rng=rng, workers=workers), workers=workers))


def _class(smoothness: float, roughness: float) -> tuple[float, float]:
    return _checks.between("smoothness", smoothness, 0.5, math.inf), _checks.positive("roughness", roughness)


def _bound(second_moment: float, terms: int, n: SupportsIndex, beta: float, c: float) -> float:
    return second_moment / _checks.whole("n", n, least=1) + c * c * math.pow(terms + 1, -2 * beta)


def _best_terms(n: int, epsilon: float, beta: float, c: float, method: str, basis: str, most: int) -> int:
    """The number of terms with the least bound; that falls, then rises, as E|Z|^2 is convex in them to rounding."""

    def bound(terms: int) -> float:
        moment = (
            best_method(terms, epsilon, basis)[1] if method == "auto" else _plan(method, terms, epsilon).second_moment
        )
        return _bound(moment, terms, n, beta, c)

    step = 2 if basis == "trigonometric" else 1
    terms = step
    while terms + step <= most and bound(terms + step) < bound(terms):
        terms += step
    return terms
