"""The density of a released series, and `density`, which releases one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _bins, _series
from dpfast.choosing import Explain, explained
from dpfast.core import checks, containers, plotting
from dpfast.core.grid import Grid, check_grid, check_missing, grid_for
from dpfast.core.privacy import Privacy
from dpfast.core.tabular import Tabular, html_table
from dpfast.core.types import Exact, Records
from dpfast.densities.basis import BITS, most_terms, width_of
from dpfast.densities.series import SeriesCoefficients
from dpfast.laws import DiscreteLaplace
from dpfast.random import BLOCK, RandomSource, bit_generator, streams
from dpfast.streaming import Chunks, records_of
from dpfast.theory.series import series_sensitivity, series_terms

_WEIGHT_BITS = 40  # precision of the weights of cells in draws
_CHUNK = 2**13  # number of draws whose words fit the cache
_SQRT2 = math.sqrt(2)
_TABULATED = 513  # points of a table of the density


@dataclass(frozen=True, eq=False, repr=False)
class SeriesDensity(Tabular):
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
        checks.density_range(width_of(self.grid))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.coefficients, self.grid, self.n, self.privacy, self.basis)

    def __repr__(self) -> str:
        grid, m = self.grid, self.coefficients.size
        return (
            f"<{type(self).__name__} of {m} {self.basis} {'term' if m == 1 else 'terms'} from {grid.lower!r} to "
            f"{grid.upper!r}, n = {self.n}: {self.privacy}>"
        )

    def _caption(self) -> str:
        return repr(self).strip("<>")

    def _as_columns(self) -> dict[str, NDArray[np.float64]]:
        """Return the density, the distribution function and the noise at evenly spaced points."""
        x = np.linspace(self.grid.lower, self.grid.upper, _TABULATED)
        return {"x": x, "density": self.pdf(x), "cdf": self.cdf(x), "noise": self.noise(x)}

    def _repr_html_(self) -> str:
        rows = [(f"{100 * q:g} %", self.quantile(q)) for q in (0.05, 0.25, 0.5, 0.75, 0.95)]
        return html_table(self._caption(), ["quantile", "value"], rows)

    def pdf(self, x: ArrayLike) -> Any:
        """Return the density at x, in data units; 0 outside, NaN at NaN. A float for a number, else an array."""
        u, shape = self._unit(x)
        heights = np.maximum(self._series(u), 0) / (self._positive.total * width_of(self.grid))
        return _shaped(np.where((u >= 0) & (u <= 1), heights, np.where(np.isnan(u), np.nan, 0.0)), shape)

    def cdf(self, x: ArrayLike) -> Any:
        """Return the probability of values up to x. A float for a number, else an array."""
        u, shape = self._unit(x)
        return _shaped(self._cdf(np.clip(u, 0, 1)), shape)

    def quantile(self, q: ArrayLike) -> Any:
        """Return the least x within the bounds with cdf(x) >= q, to 2**-53 of the range; NaN outside [0, 1]."""
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
        out = np.empty(checks.whole("k", k))
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
        return self._mechanism.error(self.n, smoothness=smoothness, roughness=roughness)

    @property
    def _mechanism(self) -> SeriesCoefficients:
        return SeriesCoefficients(
            self.coefficients.size, grid=self.grid, epsilon=self.privacy.epsilon, basis=self.basis
        )

    @property
    def informative(self) -> bool:
        """Whether the expected squared change by noise is less than 1, the square of the uniform density.

        A function of public numbers. If False, use fewer terms or more budget, or expect no more accuracy than that of
        the uniform density.
        """
        m = self.coefficients.size
        scale = series_sensitivity(m, basis=self.basis) / (self.n * self.privacy.epsilon)
        return 2 * m * scale**2 < 1

    @property
    def coefficient_noise(self) -> float:
        """The standard deviation of the noise on each coefficient. Public."""
        return math.sqrt(DiscreteLaplace(self._mechanism.scale).variance) * _SQRT2 / (self.n << BITS)

    def noise(self, x: ArrayLike) -> Any:
        """Return the standard deviation of the noise on the series at x, in data units; NaN outside. Public.

        That of uncorrelated noise on the coefficients. The density is the positive part of the series, divided by its
        integral.

        Examples
        --------
        >>> import numpy as np, dpfast as dpf
        >>> density = dpf.density(np.arange(1000) / 1000, bounds=(0, 1), epsilon=1.0, terms=4)
        >>> density.noise([0.0, 0.5]).round(3)
        array([0.031, 0.022])
        """
        u, shape = self._unit(x)
        m = self.coefficients.size
        if self.basis == "cosine":  # the sum of phi_j**2
            squares = _evaluate(np.array([m / 2, *[0.5] * m]), np.zeros(m + 1), 2 * math.pi, u)
        else:
            squares = m // 2 + m % 2 * np.cos(math.pi * (m + 1) * u) ** 2
        heights = _SQRT2 * self.coefficient_noise * np.sqrt(np.maximum(squares, 0)) / width_of(self.grid)
        return _shaped(np.where((u >= 0) & (u <= 1), heights, np.nan), shape)

    def plot(self, ax: Any = None, *, unit: str | None = None) -> Any:
        """Plot the density with Matplotlib, with two standard deviations of the noise.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Default: the current axes.
        unit : str, optional
            The unit of the data, for the label.

        Returns
        -------
        matplotlib.axes.Axes
        """
        ax = plotting.axes(ax)
        x = np.linspace(self.grid.lower, self.grid.upper, max(512, 16 * self.coefficients.size))
        heights, reach = self.pdf(x), 2 * self.noise(x)
        band = {"color": plotting.SKY, "alpha": 0.7, "linewidth": 0}
        ax.fill_between(x, np.maximum(heights - reach, 0), heights + reach, **band)
        ax.plot(x, heights, color=plotting.ink(ax))
        ax.set_xlabel(plotting.with_unit("value", unit))
        plotting.height_axis(ax)
        terms = f"{self.coefficients.size} {self.basis} term{'s' * (self.coefficients.size > 1)}"
        title = f"Private density of {self.n:,} records: {terms}"
        plotting.entitle(ax, title, self.privacy, "band: two standard deviations of the noise")
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
        """Return the integral of q from 0 to u."""
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
    def _law_of_cells(self) -> _bins.WeightedCells:
        """Weights of the cells, proportional to the envelope."""
        envelope = self._envelope["envelope"]
        return _bins.WeightedCells(np.rint(envelope / np.max(envelope) * 2.0**_WEIGHT_BITS).astype(np.int64))

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
    x: Records | Chunks,
    *,
    bounds: tuple[float, float] | None = None,
    epsilon: Exact,
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
    epsilon = checks.positive_down("epsilon", epsilon)
    grid = grid_for(x, bounds, grid, missing)
    check_grid(grid)
    checks.density_range(width_of(grid))  # of the released density, before the charge
    check_missing("SeriesCoefficients", (grid,), hides_n=False)
    bit_generator(rng)  # reject an invalid rng before reading the data
    values = x if isinstance(x, Chunks) else containers.vector("x", x)
    n = checks.records(records_of(values))
    if isinstance(terms, str):
        if terms != "auto":
            raise ValueError(f"terms must be an integer or 'auto', not {terms!r}")
        terms = series_terms(
            n, epsilon=epsilon, smoothness=smoothness, roughness=roughness, basis=basis, most=most_terms(grid)
        )
    mechanism = SeriesCoefficients(terms, grid=grid, epsilon=epsilon, basis=basis)
    coefficients = explained(mechanism, explain, values)(values, rng=rng, workers=workers)
    return SeriesDensity(coefficients, grid, n, mechanism.privacy, basis)
