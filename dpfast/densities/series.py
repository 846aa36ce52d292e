"""Orthogonal series: noisy coefficients of a density in a cosine or trigonometric basis, and the resulting density.

Notation: ``psi_j = sqrt(2) phi_j`` on the unit interval, ``phi_j(u) = cos(pi j u)`` (cosine) or ``cos(2 pi u), sin(2 pi
u), cos(4 pi u), ...`` (trigonometric); the density is ``1 + sum_j beta_j psi_j``, where beta_j is the mean of psi_j.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast import _checks, _containers
from dpfast._kernels import _bins, _series
from dpfast._threads import each
from dpfast.densities.basis import BITS, cosine_table, most_terms, phases, width_of
from dpfast.grid import Grid, check_grid, check_missing, grid_for
from dpfast.laws import DiscreteLaplace, Independent, NoisyIntegers
from dpfast.mechanisms import Mechanism
from dpfast.mechanisms.explanation import Explain, explained
from dpfast.privacy import Privacy
from dpfast.random import BLOCK, RandomSource, bit_generator, streams
from dpfast.streaming import Chunks, Counts
from dpfast.theory.series import BASES, series_error, series_sensitivity, series_terms

_NODES = 2**14
_COARSE = 2**8  # up to this many nodes are compared in pairs
_MOST_SUM = 2**61  # bound on a release and on its center
_WEIGHT_BITS = 40  # precision of the weights of cells in draws
_CHUNK = 2**13  # number of draws whose words fit the cache
_SQRT2 = math.sqrt(2)


@dataclass(frozen=True, repr=False)
class SeriesCoefficients(Mechanism):
    """Release the first coefficients of a density in a cosine or trigonometric basis, with discrete Laplace noise.

    Pure epsilon-differential privacy for all coefficients together, under one replaced record; the number of records is
    public.

    Parameters
    ----------
    terms : int
        Number of coefficients, from 1 to 1024 and below the number of grid points.
    grid : Grid
        Public bounds and granularity of the data, in data units. The points half a step beyond its ends map to 0 and 1.
    epsilon : float
        Positive; rounded down to a double.
    basis : {"cosine", "trigonometric"}
        "cosine" is for any smooth density, "trigonometric" for periodic data (hours, angles).

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    Privacy: each record is mapped to one of at most 2**14 public nodes, and to the integer vector that a public table
    of ``round(2**20 phi_j)`` has for this node. The sums of these vectors are integers and do not depend on the order
    of the records. One record changes them by at most `sensitivity` in the l1 norm, which is about 1.217 (terms + 1/2)
    2**20 for the cosine basis and is computed from the table. Each sum gets discrete Laplace noise of scale exactly
    sensitivity / epsilon (https://dpfast.readthedocs.io/en/latest/proofs/series.html). The published scale is half of
    this for one term, and 0.82 of it for many: not private (`dpfast.theory.series_published_loss`).
    A record moves by at most one node, 2**-14 of the range: coefficient j of a smooth density is damped by ``(pi j /
    2**14)**2 / 24``, 4e-6 for j = 50.
    Cost: one pass over x, whatever the number of terms, and ``2**14 terms`` multiplications.
    Not implemented: noise of density exp(-n epsilon |v| / S2) in the l2 norm, which has less variance in real
    arithmetic, but has no exact sampler on integers here; and the exponential mechanism over synthetic data sets
    (Theorem 14), which has no exact sampler at all. A Markov chain within total variation tau of it on every data set
    would be (epsilon, (1 + e**epsilon) tau)-private, but no tau can be certified, and its rate is worse.

    References
    ----------
    Wasserman and Zhou 2010, "A statistical framework for differential privacy", orthogonal series, Theorem 15.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> mechanism = dpf.SeriesCoefficients(4, grid=dpf.Grid(0, 1), epsilon=1.0)
    >>> x = np.random.default_rng(0).beta(2, 2, 100_000)
    >>> bool(abs(mechanism(x)[1] - np.mean(np.sqrt(2) * np.cos(2 * np.pi * x))) < 0.01)
    True
    """

    terms: int
    grid: Grid = field(kw_only=True)
    epsilon: float = field(kw_only=True)
    basis: str = field(kw_only=True, default="cosine")

    def __post_init__(self) -> None:
        terms = _checks.whole("terms", self.terms, least=1)
        check_grid(self.grid)
        self.check_missing()
        most = most_terms(self.grid)
        if terms > most:
            raise ValueError(f"terms must be at most {most} on {self.grid.size} grid points, not {terms}")
        if self.basis not in BASES:
            raise ValueError(f"basis must be {' or '.join(map(repr, BASES))}, not {self.basis!r}")
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "epsilon", _checks.positive_down("epsilon", self.epsilon))
        if self.scale > 2**56:
            raise ValueError(f"epsilon={self.epsilon!r} needs noise of more than 2**36 records: use a larger epsilon")

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    @property
    def nodes(self) -> int:
        """Number of public points at which the basis is tabulated."""
        return min(self.grid.size, _NODES)

    @property
    def sensitivity(self) -> int:
        """Bound on the l1 change of the integer sums by one record, in units of 2**-20, at least 1. Public."""
        return max(1, _sensitivity(self.terms, self.basis, self.nodes, BITS))

    @property
    def scale(self) -> Fraction:
        """The exact scale of the noise on the integer sums, sensitivity / epsilon. Public."""
        return self.sensitivity / Fraction(self.epsilon)

    def __repr__(self) -> str:
        grid = self.grid
        return (
            f"<SeriesCoefficients release of {self.terms} {self.basis} coefficients of records on {grid.size} points "
            f"from {grid.lower!r} to {grid.upper!r}, step {grid.step!r}: {self.privacy}>"
        )

    def error(self, n: SupportsIndex, *, smoothness: float = 2.0, roughness: float = 1.0) -> float:
        """Upper bound on the mean integrated squared error of the raw series, in data units.

        `dpfast.theory.series_error` divided by the width of the bounds; n, smoothness and roughness are public
        assumptions.
        """
        bound = series_error(
            self.terms, n, epsilon=self.epsilon, smoothness=smoothness, roughness=roughness, basis=self.basis
        )
        return bound / width_of(self.grid)

    def check_records(self, n: SupportsIndex) -> int:
        n = super().check_records(n)
        _checks.code_range(n << (BITS + 2))
        return n

    def reading(self) -> Counts:
        def count(values: NDArray[Any], threads: int) -> NDArray[np.int64]:
            return _counts(values, self.grid, self.nodes, threads)

        def locate(values: NDArray[Any]) -> NDArray[np.int64]:
            return np.searchsorted(_least_codes(self.grid, self.nodes), self.grid.encode(values), side="right") - 1

        return Counts((self.nodes,), partial(_containers.vector, "x"), count, locate)

    def law_of(self, summary: tuple[NDArray[np.int64], int]) -> NoisyIntegers:
        counts, n = summary
        totals = np.empty(self.terms, np.int64)
        _series.sums(counts, cosine_table(self.nodes, BITS), *phases(self.terms, self.basis, self.nodes), totals)
        noise = Independent(DiscreteLaplace(self.scale), totals.size)
        return NoisyIntegers(totals, noise=noise, most=_MOST_SUM, decode=partial(_coefficients, n))


def _coefficients(n: int, sums: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(sums * (_SQRT2 / (n << BITS)))


@lru_cache(maxsize=256)
def _sensitivity(terms: int, basis: str, nodes: int, bits: int) -> int:
    """Integer upper bound on sum_j |phi_j(a) - phi_j(b)| over all nodes a and b, phi_j from the table.

    Up to `_COARSE` nodes are compared in pairs. Otherwise, with u and v half the sum and half the difference of the two
    angles, the sum is 2 sum_j |sin j u sin j v| (cosine: at most its value at u = v) or 2 sum_l |sin l v| (|sin l u| +
    |cos l u|) (at most sqrt(2) in brackets): a maximum over one angle, a multiple of pi / nodes. The last summand
    covers the rounding of the table (https://dpfast.readthedocs.io/en/latest/proofs/series.html).
    """
    table, period = cosine_table(nodes, bits).astype(np.int64), 4 * nodes
    if nodes <= _COARSE:
        starts, strides = phases(terms, basis, nodes)
        phi = table[(starts[:, None] + strides[:, None] * np.arange(nodes)) % period]
        return max(int(np.abs(phi - phi[:, [a]]).sum(axis=0).max()) for a in range(nodes))
    angle = np.arange(nodes + 1)
    if basis == "cosine":
        total = sum((1 << bits) - table[2 * j * angle % period] for j in range(1, terms + 1))
        return int(np.max(total)) + 3 * terms
    sines = [np.abs(table[(2 * j * angle - nodes) % period]) for j in range(1, (terms + 1) // 2 + 1)]
    paired, last = sum(sines[: terms // 2]), sines[-1] * (terms % 2)
    return math.ceil(float(np.max(2 * (_SQRT2 * paired + last)))) + 3 * terms


def _multiplier(grid: Grid, nodes: int) -> int:
    """The node of a code is ``floor(code * multiplier / 2**63)``."""
    return (nodes << 63) // grid.size


def _least_codes(grid: Grid, nodes: int) -> NDArray[np.int64]:
    """The least code of each node, about i size / nodes for node i."""
    return np.array([-((-i << 63) // _multiplier(grid, nodes)) for i in range(nodes)], np.int64)


def _counts(values: NDArray[Any], grid: Grid, nodes: int, workers: int) -> NDArray[np.int64]:
    """Count the records at each node."""
    multiplier = _multiplier(grid, nodes)

    def count(part: NDArray[Any]) -> NDArray[np.int64]:
        counts = np.zeros(nodes, np.int64)
        for start in range(0, part.shape[0], BLOCK):
            _series.add_counts(grid.encode(part[start : start + BLOCK]), multiplier, counts)
        return counts

    return np.asarray(np.sum(each(count, np.array_split(values, workers), workers), axis=0))


# ---- the density ----


@dataclass(frozen=True, eq=False, repr=False)
class SeriesDensity:
    """A released density, computed from noisy coefficients of a series. Public.

    The series ``q = 1 + sum_j b_j psi_j`` may be negative; the density is its positive part, scaled to integrate to 1
    over the cells of the grid: the bounds, widened by half a step on both sides. Picklable and immutable.

    Parameters
    ----------
    coefficients : ndarray of float64, shape (terms,)
        b, as released by `SeriesCoefficients`.
    grid : Grid
    n : int
        Number of records.
    privacy : Privacy
        The guarantee of the release.
    basis : {"cosine", "trigonometric"}

    Notes
    -----
    Privacy: all methods are post-processing and spend no budget.
    Cost: O(terms) per point for `pdf` and `cdf`, 45 times that for `quantile`; O(1) per draw.

    References
    ----------
    Hall and Murison 1993, for the positive part.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> ages = np.random.default_rng(0).normal(40, 12, 50_000)
    >>> density = dpf.density(ages, bounds=(0, 100), epsilon=1.0)
    >>> bool(abs(density.quantile(0.5) - 40) < 1), bool(0.03 < density.pdf(40) < 0.036)
    (True, True)
    >>> density.sample(1000).shape
    (1000,)
    """

    coefficients: NDArray[np.float64]
    grid: Grid
    n: int
    privacy: Privacy
    basis: str = "cosine"

    def __post_init__(self) -> None:
        coefficients = np.array(self.coefficients, dtype=np.float64)
        coefficients.flags.writeable = False
        object.__setattr__(self, "coefficients", coefficients)
        _checks.density_range(width_of(self.grid))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.coefficients, self.grid, self.n, self.privacy, self.basis)

    def __repr__(self) -> str:
        grid, m = self.grid, self.coefficients.size
        return (
            f"<{type(self).__name__} of {m} {self.basis} {'term' if m == 1 else 'terms'} from {grid.lower!r} to "
            f"{grid.upper!r}, n = {self.n}: {self.privacy}>"
        )

    def pdf(self, x: ArrayLike) -> Any:
        """The density at x, in data units; 0 outside, NaN at NaN. A float for a number, else an array."""
        u, shape = self._unit(x)
        heights = np.maximum(self._series(u), 0) / (self._positive.total * width_of(self.grid))
        return _shaped(np.where((u >= 0) & (u <= 1), heights, np.where(np.isnan(u), np.nan, 0.0)), shape)

    def cdf(self, x: ArrayLike) -> Any:
        """The probability of values up to x. A float for a number, else an array."""
        u, shape = self._unit(x)
        return _shaped(self._cdf(np.clip(u, 0, 1)), shape)

    def quantile(self, q: ArrayLike) -> Any:
        """The least x within the bounds with cdf(x) >= q, to 2**-53 of the range; NaN outside [0, 1]."""
        levels = np.asarray(q, dtype=np.float64)
        target = np.where((levels >= 0) & (levels <= 1), levels, np.nan).reshape(-1)
        edges, heights = self._cells
        cell = np.clip(np.searchsorted(heights, target) - 1, 0, edges.size - 2)
        u = _bisect(lambda u: self._cdf(u) - target, edges[cell], edges[cell + 1])
        grid = self.grid
        x = np.clip(grid.lower - grid.step / 2 + u * width_of(grid), grid.lower, grid.upper)
        return _shaped(np.where(np.isnan(target), np.nan, x), levels.shape)

    def sample(self, k: SupportsIndex, rng: RandomSource = None) -> NDArray[np.float64]:
        """Draw k independent synthetic records from the density, each rounded to the grid.

        Parameters
        ----------
        k : int
            Number of records; any number is free of privacy cost.
        rng : numpy.random.Generator or BitGenerator, optional
            Default: the secure generator.

        Returns
        -------
        ndarray of float64, shape (k,)
            Grid points; the probability of each is that of its cell under `cdf`.
        """
        out = np.empty(_checks.whole("k", k))
        for i, source in enumerate(streams(rng, -(-out.size // BLOCK))):
            left = out[i * BLOCK : (i + 1) * BLOCK]
            while left.size:
                cells = np.empty(min(left.size, _CHUNK), np.int32)
                self._law_of_cells.fill(source, cells)
                left = left[_series.fill_density(source, cells, **self._envelope, out=left) :]
        return out

    def error(self, *, smoothness: float = 2.0, roughness: float = 1.0) -> float:
        """Upper bound on the mean integrated squared error of the series, in data units, from public assumptions.

        `dpfast.theory.series_error`: bias for the assumed smoothness and roughness, sampling error, and noise.
        """
        mechanism = SeriesCoefficients(
            self.coefficients.size, grid=self.grid, epsilon=self.privacy.epsilon, basis=self.basis
        )
        return mechanism.error(self.n, smoothness=smoothness, roughness=roughness)

    @property
    def informative(self) -> bool:
        """Whether the expected squared change by noise is less than 1, the square of the uniform density.

        A function of public numbers. If False, use fewer terms or more budget, or expect no more accuracy than that of
        the uniform density.
        """
        m = self.coefficients.size
        scale = series_sensitivity(m, basis=self.basis) / (self.n * self.privacy.epsilon)
        return 2 * m * scale**2 < 1

    def plot(self, ax: Any = None) -> Any:
        """Plot the density with matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Default: the current axes.

        Returns
        -------
        matplotlib.axes.Axes
        """
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.gca()
        x = np.linspace(self.grid.lower, self.grid.upper, max(512, 16 * self.coefficients.size))
        ax.plot(x, self.pdf(x))
        ax.set_ylabel("density")
        return ax

    # The methods below work on the unit interval, u = (x - lower) / width + half a cell.

    def _unit(self, x: ArrayLike) -> tuple[NDArray[np.float64], tuple[int, ...]]:
        x = np.asarray(x, dtype=np.float64)
        return ((x - (self.grid.lower - self.grid.step / 2)) / width_of(self.grid)).reshape(-1), x.shape

    @cached_property
    def _waves(self) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """a, b and w of q(u) = sum_l a_l cos(l w u) + b_l sin(l w u)."""
        scaled = _SQRT2 * self.coefficients
        if self.basis == "cosine":
            return np.concatenate([[1.0], scaled]), np.zeros(scaled.size + 1), math.pi
        sines = np.zeros((scaled.size + 1) // 2)
        sines[: scaled.size // 2] = scaled[1::2]
        return np.concatenate([[1.0], scaled[::2]]), np.concatenate([[0.0], sines]), 2 * math.pi

    def _series(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        return _evaluate(*self._waves, u)

    def _slope(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        a, b, w = self._waves
        steps = w * np.arange(a.size)
        return _evaluate(steps * b, -steps * a, w, u)

    def _integral(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """The integral of q from 0 to u."""
        a, b, w = self._waves
        steps = w * np.arange(1, a.size)
        sines, cosines = np.append(0.0, a[1:] / steps), np.append(np.sum(b[1:] / steps), -b[1:] / steps)
        return u + _evaluate(cosines, sines, w, u)

    @cached_property
    def _positive(self) -> _Positive:
        """Intervals on which q is positive; a fine grid and the extrema next to its points bracket the zeros."""
        u = np.linspace(0, 1, max(1024, 32 * self.coefficients.size) + 1)
        q = self._series(u)
        inner = q[1:-1]
        near = (inner > 0) & (inner <= q[:-2]) & (inner <= q[2:]) | (inner < 0) & (inner >= q[:-2]) & (inner >= q[2:])
        i = np.flatnonzero(near) + 1
        falling = np.where(q[i] > 0, 1.0, -1.0)
        extrema = _bisect(lambda v: falling * self._slope(v), u[i - 1], u[i + 1])
        u = np.unique(np.concatenate([u, extrema]))
        q = self._series(u)
        i = np.flatnonzero((q[:-1] > 0) != (q[1:] > 0))
        rising = np.where(q[i + 1] > 0, 1.0, -1.0)
        zeros = _bisect(lambda v: rising * self._series(v), u[i], u[i + 1])
        knots = np.concatenate([[0.0], zeros, [1.0]])
        sign = (self._series((knots[:-1] + knots[1:]) / 2) > 0).astype(np.float64)
        integral = self._integral(knots)
        masses = sign * np.maximum(np.diff(integral), 0)
        return _Positive(knots, integral, sign, np.concatenate([[0.0], np.cumsum(masses)]))

    def _cdf(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        positive = self._positive
        i = np.clip(np.searchsorted(positive.knots, u, side="right") - 1, 0, positive.sign.size - 1)
        mass = positive.before[i] + positive.sign[i] * (self._integral(u) - positive.integral[i])
        return np.where(u == 1, 1.0, np.clip(mass / positive.total, 0, 1))

    @cached_property
    def _cells(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        edges = np.linspace(0, 1, 2**12 + 1)
        return edges, np.maximum.accumulate(self._cdf(edges))

    @cached_property
    def _law_of_cells(self) -> _bins.Weights:
        """Weights of the cells, proportional to the envelope."""
        envelope = self._envelope["envelope"]
        return _bins.Weights(np.rint(envelope / np.max(envelope) * 2.0**_WEIGHT_BITS).astype(np.int64))

    @cached_property
    def _envelope(self) -> dict[str, Any]:
        """Arguments of `fill_density`: q, bounds on q in cells (from the middle and the slope bound), the grid."""
        a, b, w = self._waves
        cells = 1 << max(12, (64 * self.coefficients.size - 1).bit_length())
        middle = self._series((np.arange(cells) + 0.5) / cells)
        sizes = np.hypot(a, b)
        margin = w / (2 * cells) * float(np.arange(a.size) @ sizes) + 1e-9 * float(np.sum(sizes))
        unit = float(np.max(middle + margin)) * 2.0**-_WEIGHT_BITS
        envelope = np.ceil(np.maximum(middle + margin, 0) / unit) * unit  # integers in units: cell weights
        squeeze = np.maximum(middle - margin, 0) / np.where(envelope > 0, envelope, 1)
        return {
            "cosines": a,
            "sines": b,
            "frequency": w,
            "envelope": envelope,
            "squeeze": squeeze,
            "size": self.grid.size,
            "first_code": self.grid.first,
            "step": self.grid.step,
        }


@dataclass(frozen=True, eq=False)
class _Positive:
    """The zeros of q and the ends, the integral of q at each, the signs between, and the positive mass before each."""

    knots: NDArray[np.float64]
    integral: NDArray[np.float64]
    sign: NDArray[np.float64]
    before: NDArray[np.float64]

    @property
    def total(self) -> float:
        return float(self.before[-1])


def _evaluate(
    cosines: NDArray[np.float64], sines: NDArray[np.float64], frequency: float, u: NDArray[np.float64]
) -> NDArray[np.float64]:
    out = np.empty(u.size)
    _series.evaluate(cosines, sines, frequency, np.ascontiguousarray(u), out)
    return out


def _bisect(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Sign changes of functions below 0 at `lower` but not at `upper`, to the last bits of a double in [0, 1]."""
    lower, upper = lower.copy(), upper.copy()
    for _ in range(45):
        middle = (lower + upper) / 2
        below = function(middle) < 0
        lower, upper = np.where(below, middle, lower), np.where(below, upper, middle)
    return upper


def _shaped(values: NDArray[np.float64], shape: tuple[int, ...]) -> Any:
    return values.reshape(shape) if shape else float(values[0])


def density(
    x: ArrayLike | Chunks,
    *,
    bounds: tuple[float, float] | None = None,
    epsilon: float,
    terms: int | str = "auto",
    smoothness: float = 2.0,
    roughness: float = 1.0,
    basis: str = "cosine",
    grid: Grid | None = None,
    missing: float | str | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> SeriesDensity:
    """Release a density as an orthogonal series with private coefficients; it can be plotted, evaluated and sampled.

    Pure epsilon-differential privacy under one replaced record; the number of records is public.

    Parameters
    ----------
    x : array_like of shape (n,)
        Private data: floats, integers or booleans of any stride, never modified. NaN and None count as the lower bound
        unless `missing` says otherwise.
    bounds : pair of float
        Public bounds in data units: values outside are clamped. Give either `bounds` or `grid`.
    epsilon : float
        Positive.
    terms : int or "auto"
        Number of coefficients. "auto" minimises the bound ``C^2 (m + 1)^(-2 gamma) + m / n + 2 m (S1 / (n epsilon))^2``
        of `dpfast.theory.series_error` (there with its small constants) over m, from public numbers only.
    smoothness, roughness : float
        gamma > 1/2 and C > 0 of this rule: ``sum_j j^(2 gamma) beta_j^2 <= C^2``, about gamma derivatives. Assumptions,
        not estimates; a rougher density requires a larger C. A normal density well within the bounds, of standard
        deviation s times their width, has ``C = 0.047 s^(-5/2)`` for gamma = 2: 15 for s = 0.1.
    basis : {"cosine", "trigonometric"}
        The trigonometric basis is for periodic data.
    grid : Grid, optional
        Instead of `bounds`.
    missing : float, "lower" or "half", optional
        See `dpfast.median`; not "drop", as the number of records is public.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Number of threads that read the data, -1 for one per core; the result does not depend on it.
    explain : bool or callable
        See `dpfast.median`.

    Returns
    -------
    SeriesDensity
        With ``pdf``, ``cdf``, ``quantile``, ``sample``, ``plot``, ``coefficients``, ``error``.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid; of the data, only shape and dtype are checked.

    Notes
    -----
    Privacy: `SeriesCoefficients`, then post-processing (https://dpfast.readthedocs.io/en/latest/proofs/series.html).
    Cost: one pass over x.

    References
    ----------
    Wasserman and Zhou 2010, Theorem 15.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> x = np.random.default_rng(0).beta(2, 3, 100_000)
    >>> dpf.density(x, bounds=(0, 1), epsilon=1.0)
    <SeriesDensity of 12 cosine terms from 0.0 to 1.0, n = 100000: epsilon = 1 (pure differential privacy) for one \
record replaced (the number of records is public)>
    """
    epsilon = _checks.positive_down("epsilon", epsilon)
    grid = grid_for(x, bounds, grid, missing)
    check_missing("SeriesCoefficients", (grid,), hides_n=False)
    bit_generator(rng)  # reject an invalid rng before reading the data
    values = x if isinstance(x, Chunks) else _containers.vector("x", x)
    n = _checks.records(values.records() if isinstance(values, Chunks) else values.shape[0])
    if isinstance(terms, str):
        if terms != "auto":
            raise ValueError(f"terms must be an integer or 'auto', not {terms!r}")
        terms = series_terms(
            n, epsilon=epsilon, smoothness=smoothness, roughness=roughness, basis=basis, most=most_terms(grid)
        )
    mechanism = SeriesCoefficients(terms, grid=grid, epsilon=epsilon, basis=basis)
    coefficients = explained(mechanism, explain, values)(values, rng=rng, workers=workers)
    return SeriesDensity(coefficients, grid, n, mechanism.privacy, basis)
