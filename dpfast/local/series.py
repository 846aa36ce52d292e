"""Density estimation under local differential privacy: coefficients of a series, from one report per person.

Notation: u in (0, 1) is the relative position of a record between the bounds. The density is ``1 + sum_j b_j phi_j``,
where b_j is the mean of phi_j and, for the cosine basis, ``phi_j = sqrt(2) cos(pi j u)``; for the trigonometric basis,
``phi_j = sqrt(2) cos(2 pi l u)`` for j = 2 l - 1 and ``sqrt(2) sin(2 pi l u)`` for j = 2 l.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, SupportsIndex

import numpy as np
from numpy.random import BitGenerator
from numpy.typing import ArrayLike, NDArray

from dpfast.core import checks, containers
from dpfast.core.coin import coin
from dpfast.core.grid import Grid, check_grid, check_number, grid_for
from dpfast.core.traps import of_epsilon, warn
from dpfast.core.types import Exact, Records
from dpfast.densities import SeriesDensity
from dpfast.densities.basis import most_terms, width_of
from dpfast.local.hypercube import HypercubeLaw
from dpfast.local.randomizer import Aggregate
from dpfast.local.scalar import FiniteLaw, ScalarRandomizer, record
from dpfast.local.square import SquareWave, SquareWaveDensity
from dpfast.local.waves import METHODS, WaveMethod, best_method, method_of, turns_of, waves_of
from dpfast.random import RandomSource, bit_generator
from dpfast.theory.series import BASES

# The C of `density`. Varied: 1, 3, 4, 6, 8, 10 and 20, for the cosine basis and records that are lognormal (pay),
# exponential, normal, uniform and von Mises, n = 1e4 and 1e5, epsilon = 1 and 2. Of these, 6 is the least for which the
# L1 error on pay is below that of the trigonometric basis with C = 1 in all four settings; smaller ones smooth too much
# (1 has 0.43 at n = 1e5, epsilon = 1, where 6 has 0.12), larger ones add noise to flat densities.
_ROUGHNESS = 6.0


@dataclass(frozen=True)
class SeriesReports(ScalarRandomizer):
    """Local randomiser for the first coefficients of a density: the client and the server of `density`.

    Pure epsilon-local differential privacy.

    Parameters
    ----------
    terms : int
        Number of coefficients: from 1 to 1024, below the number of grid points; even for the trigonometric basis.
    epsilon : float
        At least 2**-40; rounded down to a double.
    grid : Grid
        Public bounds and granularity of the numbers, in data units. Numbers outside are clamped; NaN and missing ones
        become ``grid.missing``.
    method : {"auto", "one-frequency", "halfspace", "majority", "subset"}
        "auto" selects the method of least variance, the first listed on a tie. All are exactly private. The first two
        need the trigonometric basis.
    basis : {"cosine", "trigonometric"}
        "cosine" is for any smooth density. "trigonometric", the basis of the paper, is for densities that are periodic
        or equal at both ends, with about half the variance; for others its series stays wrong near the ends, whatever n
        is.

    Attributes
    ----------
    method : str
        The method in use, never "auto".

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    Reports, with K = terms / 2:

    - "one-frequency": a uniform frequency l of 1..K, and one of 2**16 directions. The angle 2 pi l u is rounded to a
      direction without bias; an exact coin decides whether the report is uniform on the w directions next to it or
      uniform on all others; w has the least variance. A uint32, ``2**16 (l - 1) + direction``. In the limit of many
      directions this is PrivUnit on the circle, which is optimal for one frequency; 2**16 directions lose less than one
      part in a million.
    - "halfspace": `L2Ball`, one bit about a half space, for the vector of all terms, of norm sqrt(terms). A uint64.
    - "majority", "subset": `Hypercube` with radius sqrt(2): equation (39) of the paper with its (26) corrected, and a
      more accurate variant. Words of 64 bits.

    E|Z|^2 of a decoded report at epsilon = 1, in units of terms^2, in this order: 5.26, 5.78 to 7.36, 11.1 to 14.4,
    9.37; "auto" takes the last for the cosine basis. Bytes: the numbers little-endian. Sums of "one-frequency" are
    integers, in units of ``scale * 2**-30``. Refused: numbers out of range, and nonzero bits beyond the last sign.

    Privacy: the number is first rounded to an integer code on the public grid, and everything else is computed from the
    code; the deciding coin is exact and rounded towards privacy
    (https://dpfast.readthedocs.io/en/latest/proofs/local-series.html). Estimates are unbiased for the numbers on the
    grid, up to 2e-9 of a coefficient.
    Cost: about 60 ns per report for "one-frequency", whatever the number of terms; O(terms) for the others. The server
    keeps `terms` sums.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, section 5.2, equation (39); Bhowmick et al. 2018 and Asi, Feldman and Talwar 2022
    for the cap.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> from dpfast import local
    >>> survey = local.SeriesReports(4, 1.0, grid=dpf.Grid(0, 24), basis="trigonometric")  # hours are periodic
    >>> survey.method
    'one-frequency'
    >>> arrival = np.random.default_rng(0).normal(8.5, 2.0, 100_000)
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
    basis: str = field(kw_only=True, default="cosine")

    def __post_init__(self) -> None:
        terms, epsilon = checks.whole("terms", self.terms, least=1), checks.positive_down("epsilon", self.epsilon)
        coin(epsilon)
        check_grid(self.grid)
        check_number(self.grid)
        most = most_terms(self.grid)
        if terms > most:
            raise ValueError(f"terms must be at most {most} on {self.grid.size} grid points, not {terms}")
        checks.choice("method", self.method, ("auto", *METHODS))
        checks.choice("basis", self.basis, BASES)
        if self.basis == "trigonometric" and terms % 2:
            raise ValueError(f"terms must be even for basis='trigonometric' (pairs of cosine and sine), not {terms}")
        if self.basis == "cosine" and self.method in ("one-frequency", "halfspace"):
            raise ValueError(f"method={self.method!r} requires basis='trigonometric': pairs of cosine and sine")
        method = best_method(terms, epsilon, self.basis)[0] if self.method == "auto" else self.method
        for name, value in (("terms", terms), ("epsilon", epsilon), ("method", method)):
            object.__setattr__(self, name, value)
        checks.density_range(width_of(self.grid))

    @property
    def _method(self) -> WaveMethod:
        return method_of(self.method, self.terms, self.epsilon)

    @property
    def report(self) -> np.dtype[Any]:
        return self._method.report

    @property
    def scale(self) -> float:
        """The norm of a decoded report, or of its entries that are not 0 for "majority" and "subset". Public."""
        return self._method.scale

    def fill(self, source: BitGenerator, x: NDArray[Any], out: NDArray[Any]) -> None:
        self._method.fill(source, turns_of(self.grid, x), self.basis, out)

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return self._method.valid(reports)

    def sums(self, reports: NDArray[Any]) -> NDArray[Any]:
        return self._method.sums(reports)

    def _aggregated(self, reports: NDArray[Any] | Aggregate, size: int) -> Aggregate:
        total = self.own(reports) if isinstance(reports, Aggregate) else self.aggregate(reports)
        kind = self._method.sums_dtype
        if total.sums.shape != (size,) or total.sums.dtype != kind:
            raise ValueError(f"the aggregate must hold {size} sums of {kind}, not {total.sums.size}")
        if total.n < 1:
            raise ValueError("an estimate needs at least one report that is not refused")
        return total

    def law(self, x: ArrayLike) -> FiniteLaw | HypercubeLaw:
        """Return the exact law of the report of one record. PRIVATE.

        Raises
        ------
        ValueError
            If there are more than 2**20 outcomes; "halfspace" has 2**64.
        """
        return self._method.law(turns_of(self.grid, record(x)), self.basis)

    def decode(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        """Decode each report into an unbiased estimate of ``phi_1..phi_terms`` at its record.

        A refused report becomes NaN. The result has n times `terms` numbers: to estimate coefficients, use `estimate`,
        which does not need this memory.
        """
        return super().decode(reports)

    def _values(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        out = np.empty((len(reports), self.terms))
        self._method.decode(reports, out)
        return out

    def estimate(self, reports: NDArray[Any] | Aggregate) -> NDArray[np.float64]:
        """Unbiased estimates of the coefficients b; refused reports are left out."""
        total = self._aggregated(reports, self.terms)
        return np.asarray(total.sums * (self._method.unit / total.n), dtype=np.float64)

    def density(self, reports: NDArray[Any] | Aggregate) -> LocalDensity:
        """Return the density estimated from the reports or their aggregate."""
        total = self._aggregated(reports, self.terms)
        return LocalDensity(self.estimate(total), self.grid, total.n, self.privacy, self.basis, randomizer=self)

    @property
    def share(self) -> Fraction:
        return self._method.share

    @property
    def second_moment(self) -> float:
        """E|Z|^2 of a decoded report, the same for all records. Public."""
        return self._method.second_moment

    def variance(self, x: ArrayLike | None = None) -> Any:
        """Total variance of a decoded report for the record x; by default for the worst record, or a bound on it.

        Parameters
        ----------
        x : array_like, optional
            One record or an array of them.

        Returns
        -------
        float or ndarray
            E|Z|^2 - ``|phi(x)|^2``; for the trigonometric basis, ``|phi(x)|^2`` is terms.
        """
        if x is None:
            return self.second_moment - (self.terms if self.basis == "trigonometric" else 0.0)
        values = containers.numbers("x", x if hasattr(x, "__len__") else [x])
        waves = waves_of(turns_of(self.grid, values.reshape(-1)), self.terms, self.basis)
        variances = self.second_moment - np.square(waves).sum(axis=1)
        return variances.reshape(values.shape) if hasattr(x, "__len__") else float(variances[0])

    @property
    def worst_variance(self) -> float:
        """The largest second moment of a decoded coefficient, including the variation of phi_j over the density."""
        return self._method.coordinate_moment

    def mise(self, n: SupportsIndex, coefficients: ArrayLike) -> float:
        """Exact mean integrated squared error of the series, for a density with these coefficients.

        ``(E|Z|^2 - |b_1..k|^2) / n + sum_(j > k) b_j^2``, in 1 / data unit.

        Parameters
        ----------
        n : int
            Number of reports, at least 1.
        coefficients : array_like
            b of an assumed density in this basis, at least `terms` of them. An assumption, never computed from data.
        """
        n, b = checks.whole("n", n, least=1), np.asarray(coefficients, dtype=np.float64)
        if b.ndim != 1 or b.size < self.terms:
            raise ValueError(f"coefficients must be a vector of at least {self.terms}, not of shape {b.shape}")
        squares = np.square(b)
        inside, beyond = math.fsum(squares[: self.terms]), math.fsum(squares[self.terms :])
        return ((self.second_moment - inside) / n + beyond) / width_of(self.grid)

    def mise_bound(self, n: SupportsIndex, *, smoothness: float = 2.0, roughness: float = 1.0) -> float:
        """Upper bound on `mise` for all densities with ``sum_j j^(2 smoothness) b_j^2 <= roughness^2``.

        ``E|Z|^2 / n + C^2 (terms + 1)^(-2 smoothness)``, in 1 / data unit.
        """
        bound = _bound(self.second_moment, self.terms, n, *_class(smoothness, roughness))
        return bound / width_of(self.grid)


# ---- the density ----


@dataclass(frozen=True, eq=False, repr=False)
class LocalDensity(SeriesDensity):
    """Density estimated from `SeriesReports`: a `dpfast.SeriesDensity` with the errors of the local model.

    All attributes are public, and no method spends privacy.

    Parameters
    ----------
    coefficients, grid, n, privacy, basis
        See `dpfast.SeriesDensity`.
    randomizer : SeriesReports
        The randomiser that produced the reports.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> x = np.random.default_rng(0).beta(10, 10, 100_000)
    >>> density = local.density(x, bounds=(0, 1), epsilon=1.0, method="series")
    >>> bool(abs(density.pdf(0.5) - 3.52) < 0.5), density.sample(5).shape
    (True, (5,))
    """

    basis: str = "cosine"
    randomizer: SeriesReports = field(kw_only=True)

    def __reduce__(self) -> tuple[Any, ...]:
        made = partial(type(self), randomizer=self.randomizer)
        return made, (self.coefficients, self.grid, self.n, self.privacy, self.basis)

    def error(self, *, smoothness: float = 2.0, roughness: float = _ROUGHNESS) -> float:
        """Upper bound on the mean integrated squared error of the series, in data units, from public assumptions."""
        return self.randomizer.mise_bound(self.n, smoothness=smoothness, roughness=roughness)

    @property
    def coefficient_noise(self) -> float:
        """The standard deviation of each coefficient, of sampling and noise together, for the worst record."""
        return math.sqrt(self.randomizer.worst_variance / self.n)

    @property
    def informative(self) -> bool:
        """Whether the expected squared change by noise is less than 1, the square of the uniform density."""
        return self.randomizer.second_moment < self.n


def density(
    x: Records,
    *,
    bounds: tuple[float, float] | None = None,
    epsilon: Exact,
    terms: int | str = "auto",
    smoothness: float | None = None,
    roughness: float | None = None,
    method: str = "auto",
    basis: str | None = None,
    grid: Grid | None = None,
    rng: RandomSource = None,
    workers: int = 1,
) -> SquareWaveDensity | LocalDensity:
    """Estimate a density from one private report per person; it can be plotted, evaluated and sampled.

    Pure epsilon-local differential privacy, under any change of one person's number. Non-interactive. `SquareWave` and
    `SeriesReports` provide the client and the server separately.

    Parameters
    ----------
    x : array_like of shape (n,)
        Private data: floats, integers or booleans of any stride, never modified. NaN and None count as the lower bound,
        or as the value that ``grid.missing`` is.
    bounds : pair of float
        Public bounds in data units: numbers outside are clamped. Give either `bounds` or `grid`.
    epsilon : float
        At least 2**-40; rounded down to a double.
    terms : int or "auto"
        Number of coefficients of a series, even for the trigonometric basis. "auto" minimises the bound ``E|Z|^2 / n +
        C^2 (terms + 1)^(-2 beta)``, which uses public numbers only; it is of order ``(n epsilon^2)^(1 / (2 beta +
        2))``.
    smoothness, roughness : float, optional
        beta > 1/2 and C > 0 of this rule, 2 and 6 by default: ``sum_j j^(2 beta) b_j^2 <= C^2``, about beta
        derivatives. Assumptions, not estimates; a rougher density requires a larger C. For beta = 2 and the cosine
        basis, a normal density of standard deviation s times the width of the bounds, well within them, has ``C = 0.047
        s^(-5/2)``: 15 for s = 0.1.
    method : {"auto", "square-wave", "series", "one-frequency", "halfspace", "majority", "subset"}
        "square-wave" is `SquareWave`, for a density of any shape. "series" is `SeriesReports`, the others are its
        methods. "auto" is "square-wave", unless `terms`, `smoothness`, `roughness` or `basis` is given, which are of
        series.
    basis : {"cosine", "trigonometric"}, optional
        See `SeriesReports`; "cosine" by default. "trigonometric" for periodic numbers, such as hours or angles.
    grid : Grid, optional
        Instead of `bounds`.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Number of threads; for a given rng the result does not depend on it.

    Returns
    -------
    SquareWaveDensity or LocalDensity
        With ``pdf``, ``cdf``, ``quantile``, ``sample``, ``plot``; that of a series also with ``coefficients`` and
        ``error``.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid; of the data, only shape and dtype are checked.

    Notes
    -----
    Errors, square wave relative to a cosine series: the geometric mean over eight densities of the Wasserstein distance
    to the records is 0.19 to 0.58 at n epsilon^2 of 1e3 or more (0.06 to 0.5 for lognormal pay within wide bounds), 0.7
    to 0.9 at 1e2 and 1.05 at most; that of the L1 error of the density is 0.5 to 0.95. For records that are known to be
    smooth, a series with the right `roughness` has a smoother density.
    Privacy: that of `SquareWave` or `SeriesReports`, then post-processing
    (https://dpfast.readthedocs.io/en/latest/proofs/local-interval.html,
    https://dpfast.readthedocs.io/en/latest/proofs/local-series.html). Cost: one report per person.

    References
    ----------
    Li et al. 2020, "Estimating numerical distributions under local differential privacy"; Duchi, Jordan and Wainwright
    2018, equation (39), Corollary 7; Hall and Murison 1993 for the positive part.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> x = np.random.default_rng(0).beta(10, 10, 100_000)
    >>> local.density(x, bounds=(0, 1), epsilon=1.0)
    <SquareWaveDensity of 1024 cells from 0.0 to 1.0, n = 100000: epsilon = 1 (pure differential privacy) for any \
change of one record, against everyone but its owner>
    >>> local.density(x, bounds=(0, 1), epsilon=1.0, method="series")
    <LocalDensity of 9 cosine terms from 0.0 to 1.0, n = 100000: epsilon = 1 (pure differential privacy) for \
any change of one record, against everyone but its owner>
    """
    epsilon = checks.positive_down("epsilon", epsilon)
    warn(of_epsilon(epsilon))
    grid = grid_for(x, bounds, grid)
    if isinstance(terms, str) and terms != "auto":
        raise ValueError(f"terms must be an integer or 'auto', not {terms!r}")
    checks.choice("method", method, ("auto", "square-wave", "series", *METHODS))
    of_series = terms != "auto" or any(given is not None for given in (smoothness, roughness, basis))
    if method == "square-wave" and of_series:
        raise ValueError("terms, smoothness, roughness and basis are of series, not of method='square-wave'")
    if not of_series and method in ("auto", "square-wave"):
        wave = SquareWave(grid, epsilon)
        values, _, workers = _read(x, rng, workers)
        return wave.density(wave.aggregate(wave.randomize(values, rng=rng, workers=workers), workers=workers))
    beta, c = _class(2.0 if smoothness is None else smoothness, _ROUGHNESS if roughness is None else roughness)
    method, basis = "auto" if method == "series" else method, "cosine" if basis is None else basis
    make = partial(SeriesReports, epsilon=epsilon, grid=grid, method=method, basis=basis)
    least = 1 if basis == "cosine" else 2
    survey = make(least if isinstance(terms, str) else terms)  # reject invalid parameters before reading the data
    values, n, workers = _read(x, rng, workers)
    if isinstance(terms, str):
        survey = make(_best_terms(n, epsilon, beta, c, method, basis, most_terms(grid)))
    return survey.density(survey.aggregate(survey.randomize(values, rng=rng, workers=workers), workers=workers))


def _read(x: Records, rng: RandomSource, workers: int) -> tuple[NDArray[Any], int, int]:
    """Return the records, their number and that of threads, after all that is public is checked."""
    bit_generator(rng)
    threads = checks.threads(workers)
    values = containers.vector("x", x)
    return values, checks.records(values.shape[0]), threads


def _class(smoothness: float, roughness: float) -> tuple[float, float]:
    return checks.between("smoothness", smoothness, 0.5, math.inf), checks.positive("roughness", roughness)


def _bound(second_moment: float, terms: int, n: SupportsIndex, beta: float, c: float) -> float:
    return second_moment / checks.whole("n", n, least=1) + c * c * math.pow(terms + 1, -2 * beta)


def _best_terms(n: int, epsilon: float, beta: float, c: float, method: str, basis: str, most: int) -> int:
    """Return the number of terms with the least bound, which falls, then rises: E|Z|^2 is convex in them up to
    rounding.
    """

    def bound(terms: int) -> float:
        moment = (
            best_method(terms, epsilon, basis)[1]
            if method == "auto"
            else method_of(method, terms, epsilon).second_moment
        )
        return _bound(moment, terms, n, beta, c)

    step = 2 if basis == "trigonometric" else 1
    terms = step
    while terms + step <= most and bound(terms + step) < bound(terms):
        terms += step
    return terms
