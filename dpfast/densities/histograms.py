"""Histograms and synthetic records: exact counts with discrete Laplace noise, and draws from a smoothed histogram."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.random import BitGenerator
from numpy.typing import ArrayLike, NDArray

from dpfast import _checks, _containers
from dpfast._kernels import _bins
from dpfast._threads import each
from dpfast.grid import Grid, grids_within, natural_step
from dpfast.laws import Law, NoisyIntegers
from dpfast.mechanism import Mechanism
from dpfast.privacy import Privacy, PrivacyProfile, _up
from dpfast.random import BLOCK, RandomSource, bit_generator, streams
from dpfast.streaming import Batch, Chunks, Counts, Values
from dpfast.theory.densities import CHANGED_COUNTS, noise_variance, perturbed_bins, perturbed_mise, smoothed_mise

MOST_CELLS = 2**24
MOST_COLUMNS = 4
_CHUNK = 2**13  # draws whose words stay in the cache and need no new pages

# Of a normal density whose three standard deviations each way fill the unit interval: the integrals of the squared
# derivative and of the square.
_DEVIATION = 1 / 6
_ASSUMED_ROUGHNESS = 1 / (4 * math.sqrt(math.pi) * _DEVIATION**3)
_ASSUMED_SQUARE = 1 / (2 * math.sqrt(math.pi) * _DEVIATION)

_Fill = Callable[[BitGenerator, NDArray[np.int32]], None]


@dataclass(frozen=True)
class Cells:
    """A box cut into bins on each axis: public, and what a histogram is a table of.

    Parameters
    ----------
    grids : tuple of Grid
        One for each column, at most 4.
    bins : tuple of int
        The bins of each axis; together at most 2**24 cells.

    Raises
    ------
    ValueError
        More bins than steps of a grid, or too many cells.

    Notes
    -----
    Edge i of b bins is the code round(i (size - 1) / b). Bin i holds the codes from its edge up to the next one, the
    last bin its upper edge too: a record belongs to the bin of its code (docs/proofs/histogram-bins.md).
    """

    grids: tuple[Grid, ...]
    bins: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.grids) <= MOST_COLUMNS:
            raise ValueError(f"a full grid of cells is for 1 to {MOST_COLUMNS} columns, not {len(self.grids)}")
        if len(self.bins) != len(self.grids):
            raise ValueError(f"bins must be one number or one for each of {len(self.grids)} columns, not {self.bins}")
        for count, grid in zip(self.bins, self.grids, strict=True):
            if not 1 <= count < grid.size:
                raise ValueError(f"bins must be between 1 and the {grid.size - 1} steps of the grid, not {count}")
        if math.prod(self.bins) > MOST_CELLS:
            raise ValueError(f"bins must make at most 2**24 cells, not {' x '.join(map(str, self.bins))}")

    def __len__(self) -> int:
        return math.prod(self.bins)

    @cached_property
    def codes(self) -> tuple[NDArray[np.int64], ...]:
        """The edges of each axis as grid codes."""
        return tuple(_edge_codes(grid.size - 1, count) for grid, count in zip(self.grids, self.bins, strict=True))

    @cached_property
    def edges(self) -> tuple[NDArray[np.float64], ...]:
        """The edges of each axis in data units."""
        return tuple(_frozen(grid.decode(codes)) for grid, codes in zip(self.grids, self.codes, strict=True))

    def volumes(self) -> NDArray[np.float64]:
        """Of each cell, in data units. A ValueError where they, or densities, would be beyond the range of float64."""
        volumes = np.ones(())
        with np.errstate(over="ignore"):
            for edges in self.edges:
                volumes = np.multiply.outer(volumes, np.diff(edges))
        for volume in (volumes.min(), volumes.max()):
            _checks.density_range(float(volume))
        return volumes

    def axes(self) -> list[_bins.Axis]:
        """What the kernels know of them."""
        return [_axis(grid, count) for grid, count in zip(self.grids, self.bins, strict=True)]

    def count(self, values: NDArray[Any], workers: int) -> NDArray[np.int64]:
        """The number of records in each cell. PRIVATE."""
        counts = np.empty(len(self), np.int64)
        _bins.count(values, self.axes(), counts, workers=workers)
        return counts.reshape(self.bins)

    def draw(
        self, fill: _Fill, k: int, rng: RandomSource, workers: int = 1, *, codes: bool = False
    ) -> NDArray[np.float64]:
        """Points of k cells, each uniform on the grid points of its cell; their codes, if those are wanted.

        `fill` draws the cells of a block.
        """
        points = np.empty((k, len(self.bins)))
        sources = streams(rng, -(-k // BLOCK))

        def draw(block: int) -> None:
            source = sources[block]
            for start in range(block * BLOCK, min((block + 1) * BLOCK, k), _CHUNK):
                draw_chunk(source, points[start : min(start + _CHUNK, (block + 1) * BLOCK)])

        def draw_chunk(source: BitGenerator, part: NDArray[np.float64]) -> None:
            cells = np.empty(len(part), np.int32)
            fill(source, cells)
            divisor = len(self)
            for a, (grid, count) in enumerate(zip(self.grids, self.bins, strict=True)):
                divisor = divisor // count if len(self.bins) > 1 else 0
                first, step = (0, 1.0) if codes else (grid.first, grid.step)
                _bins.fill_points(source, cells, self.codes[a], divisor, first, step, part[:, a])

        each(draw, range(len(sources)), workers)
        return points


def _plain(values: Any) -> Any:
    """A float where there is one number, else the array."""
    return np.asarray(values) if np.ndim(values) else float(values)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


@lru_cache(maxsize=64)
def _edge_codes(last: int, bins: int) -> NDArray[np.int64]:
    """round(i * last / bins) for i = 0..bins, halves up."""
    return _frozen(np.array([(2 * i * last + bins) // (2 * bins) for i in range(bins + 1)], dtype=np.int64))


@lru_cache(maxsize=64)
def _axis(grid: Grid, bins: int) -> _bins.Axis:
    """The least double of each bin but the first, by `Grid.encode` itself.

    It is (index - 1/2) step or the double next to it, index the one of the bin's first code: ties are rounded to even.
    """
    codes = _edge_codes(grid.size - 1, bins)[1:-1]
    middle = (codes + grid.first - 0.5) * grid.step
    candidates = np.stack([np.nextafter(middle, -np.inf), middle, np.nextafter(middle, np.inf)])
    reached = np.array([grid.encode(row) for row in candidates]) >= codes
    return _bins.Axis(np.where(reached, candidates, np.inf).min(axis=0), **grid.kernel)


@dataclass(frozen=True, eq=False, repr=False)
class Histogram:
    """A released histogram: everything in it is public or private already, and whatever is made of it stays private.

    Attributes
    ----------
    counts : ndarray of int64, shape `cells.bins`
        The noisy counts as released: unbiased, possibly negative.
    weights : ndarray of int64, same shape
        Made consistent: at least 0, not all 0; what the methods below are about.
    cells : Cells
        The box and its bins; `edges` in data units.
    n : int or None
        The number of records, where it is public.
    privacy : Privacy
    noise_error : float
        Mean integrated squared error, on the unit box, that the noise alone adds before clipping: from n, bins and
        epsilon; where n is private, from the released total in its place.

    Notes
    -----
    Post-processing of `counts`: spends nothing, however often it is used. The density is constant on each cell.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> ages = np.random.default_rng(0).integers(18, 90, 10_000)
    >>> histogram = dpf.histogram(ages, 4, bounds=(0, 100), epsilon=1.0)
    >>> histogram.edges
    array([  0.,  25.,  50.,  75., 100.])
    >>> bool(abs(histogram.cdf(50) - np.mean(ages < 50)) < 0.01)
    True
    >>> histogram.sample(3).shape
    (3,)
    """

    counts: NDArray[np.int64]
    weights: NDArray[np.int64]
    cells: Cells
    n: int | None
    privacy: Privacy
    noise_error: float = field(default=math.nan)

    def __post_init__(self) -> None:
        for name in ("counts", "weights"):
            object.__setattr__(self, name, _frozen(np.array(getattr(self, name))))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.counts, self.weights, self.cells, self.n, self.privacy, self.noise_error)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.cells.bins))
        records = "" if self.n is None else f" of {self.n} records"
        noisy = ", noise exceeds a uniform density's error" if self.noise_dominates else ""
        return f"<Histogram{records} in {shape} bins{noisy}: {self.privacy}>"

    @property
    def noise_dominates(self) -> bool:
        """Whether the noise alone exceeds 1, about the error of saying nothing, the uniform density: use fewer bins."""
        return self.noise_error > 1

    @property
    def edges(self) -> Any:
        """The edges of the bins in data units: an array, or a tuple with one for each column."""
        edges = self.cells.edges
        return edges[0] if len(edges) == 1 else edges

    @cached_property
    def density(self) -> NDArray[np.float64]:
        """The density on each cell, per data unit; integrates to 1.

        Cells so small or large that it could be beyond the range of float64 are a ValueError, whatever the counts.
        """
        return _frozen(np.asarray(self.weights / self.weights.sum() / self.cells.volumes()))

    def pdf(self, x: ArrayLike) -> Any:
        """The density at points, for r columns of shape (..., r): 0 outside, NaN at NaN. A float for one, or an array.

        On an edge it is that of the bin above, at the upper bound that of the last.
        """
        points = np.asarray(x, dtype=np.float64)
        if len(self.cells.bins) == 1:
            points = points[..., None]
        elif points.ndim == 0 or points.shape[-1] != len(self.cells.bins):
            raise ValueError(f"x must have {len(self.cells.bins)} columns, not shape {points.shape}")
        inside = np.ones(points.shape[:-1], dtype=bool)
        index = []
        for a, edges in enumerate(self.cells.edges):
            column = points[..., a]
            inside &= (column >= edges[0]) & (column <= edges[-1])
            index.append(np.clip(np.searchsorted(edges, column, side="right") - 1, 0, edges.size - 2))
        outside = np.where(np.isnan(points).any(axis=-1), np.nan, 0.0)
        return _plain(np.where(inside, self.density[tuple(index)], outside))

    def cdf(self, x: ArrayLike) -> Any:
        """The distribution function, of one column. A float for a number, else an array."""
        edges, shares = self._one_column()
        return _plain(np.interp(np.asarray(x, dtype=np.float64), edges, shares))

    def quantile(self, q: ArrayLike) -> Any:
        """The least x within the bounds with cdf(x) >= q, or the least that has a density; NaN outside [0, 1].

        Of one column. A float for a number, else an array.
        """
        edges, shares = self._one_column()
        levels = np.asarray(q, dtype=np.float64)
        levels = np.where((levels >= 0) & (levels <= 1), levels, np.nan)
        first, last = np.flatnonzero(self.weights)[[0, -1]]
        bins = np.clip(np.searchsorted(shares[1:], levels, side="left"), first, last)
        within = (levels - shares[bins]) / (shares[bins + 1] - shares[bins])
        return _plain(edges[bins] + within * (edges[bins + 1] - edges[bins]))

    def _one_column(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Edges, and the share of the total up to each."""
        if len(self.cells.bins) > 1:
            raise ValueError("cdf and quantile are for one column: sample() and pdf() are for several")
        sums = np.cumsum(self.weights)
        return self.cells.edges[0], np.concatenate([[0.0], sums / sums[-1]])

    def sample(self, k: SupportsIndex, rng: RandomSource = None, *, workers: int = 1) -> NDArray[np.float64]:
        """Independent synthetic records: a cell by weight, exactly, then a uniform grid point of the cell.

        Parameters
        ----------
        k : int
            How many, at least 0: any number spends nothing.
        rng : numpy.random.Generator or BitGenerator, optional
        workers : int
            Threads; the draws do not depend on it, for a given rng.

        Returns
        -------
        ndarray of float64, shape (k,), or (k, r) for r columns

        Notes
        -----
        Cost: about twice ``Generator.random(k)`` for one column.
        """
        threads, k = _checks.threads(workers), _checks.whole("k", k)
        points = self.cells.draw(_bins.Weights(self.weights.reshape(-1)).fill, k, rng, threads)
        return points[:, 0] if len(self.cells.bins) == 1 else points

    def error(self, *, roughness: float) -> float:
        """Mean integrated squared error to expect on the unit box, from an assumed roughness: never from data.

        `dpfast.theory.perturbed_mise`; divide by the volume of the bounds for data units.
        """
        n = max(int(self.weights.sum()), 1) if self.n is None else self.n
        return perturbed_mise(
            n,
            self.cells.bins,
            epsilon=self.privacy.epsilon,
            roughness=roughness,
            neighbors=self.privacy.neighbors,
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the density of one or two columns with matplotlib; the axes."""
        if len(self.cells.bins) > 2:
            raise ValueError("plot draws one or two columns")
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.gca()
        if len(self.cells.bins) == 1:
            ax.stairs(self.density, self.cells.edges[0], fill=True)
            ax.set_ylabel("density")
        else:
            ax.pcolormesh(*self.cells.edges, self.density.T)
        return ax


@dataclass(frozen=True, repr=False)
class _OnCells(Mechanism):
    """A release about the cells of a box."""

    bins: int | Sequence[int]
    grid: Grid | tuple[Grid, ...] = field(kw_only=True)
    epsilon: float = field(kw_only=True)

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grid of each column."""
        return _several(self.grid)

    @property
    def cells(self) -> Cells:
        """The box and its bins."""
        return Cells(self.grids, _several(self.bins))

    def _set_cells(self) -> None:
        """Check `grid` and `bins`; `bins` becomes a number for one column, else a number for each."""
        grids = _several(tuple(self.grid) if isinstance(self.grid, list) else self.grid)
        for grid in grids:
            if not isinstance(grid, Grid):
                raise TypeError(f"grid must be a dpfast.Grid or a tuple of them, not {type(grid).__name__}")
        cells = Cells(grids, whole_bins(self.bins, len(grids)))
        object.__setattr__(self, "grid", grids[0] if len(grids) == 1 else grids)
        object.__setattr__(self, "bins", cells.bins[0] if len(grids) == 1 else cells.bins)

    @property
    def dimensions(self) -> int:
        return min(len(self.grids), 2)

    def _columns(self, x: Any) -> NDArray[Any]:
        """The records as a table with a column for each axis."""
        r = len(self.grids)
        values = _containers.numbers("x", x, dimensions=self.dimensions)
        if values.ndim == 1 and r == 1:
            return values[:, None]
        if values.ndim != 2 or values.shape[1] != r:
            raise ValueError(f"x must have {r} column{'s' * (r > 1)}, not shape {_containers.shape_of(values)}")
        return values

    def _described(self) -> str:
        axes = (
            f"{count} bins of {grid.size} points from {grid.lower!r} to {grid.upper!r}"
            for count, grid in zip(self.cells.bins, self.grids, strict=True)
        )
        return " x ".join(axes)


def _several(one_or_more: Any) -> tuple[Any, ...]:
    return one_or_more if isinstance(one_or_more, tuple) else (one_or_more,)


def whole_bins(bins: Any, columns: int) -> tuple[int, ...]:
    """The bins of each axis: a number counts for all."""
    if isinstance(bins, (Sequence, np.ndarray)) and not isinstance(bins, str):
        return tuple(_checks.whole("each of bins", count, least=1) for count in bins)
    return (_checks.whole("bins", bins, least=1),) * columns


@dataclass(frozen=True, repr=False)
class PerturbedHistogram(_OnCells):
    """Release a histogram: exact counts plus discrete Laplace noise of scale 2 / epsilon on each.

    Pure epsilon-differential privacy under one replaced record, n public; or of scale 1 / epsilon under one record
    added or removed, n private.

    Parameters
    ----------
    bins : int, or sequence of ints
        Of every axis, or of each; at most 2**24 cells together.
    grid : Grid, or tuple of Grids
        Public bounds and granularity of the one column, or of each of up to 4.
    epsilon : float
        Positive; rounded down to a double.
    consistency : {"clip", "simplex"}
        What `Histogram.weights` are: noisy counts with negative ones set to 0 (the paper's), or the integers nearest to
        them that are at least 0 and sum to n. "clip" is better but where the noise is small.
    neighbors : {"replace-one", "add-remove"}

    Raises
    ------
    TypeError, ValueError
        Before any data are looked at.

    Notes
    -----
    Privacy: a replaced record changes the integer counts by at most 2 in the l1 norm, an added or removed one by 1;
    discrete Laplace noise of exactly that over epsilon, decided without floats; all else is post-processing
    (docs/proofs/perturbed-histogram.md). The loss is epsilon, not less.
    Cost: one pass over the records, a tenth to a fifth of ``np.histogram``, and the noise of each cell.

    References
    ----------
    Wasserman and Zhou 2010, section 4; Dwork, McSherry, Nissim and Smith 2006.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> from dpfast.densities import PerturbedHistogram
    >>> mechanism = PerturbedHistogram(10, grid=dpf.Grid(0, 100, step=1), epsilon=1.0)
    >>> mechanism(np.arange(100)).counts.shape
    (10,)
    """

    releases_numbers: ClassVar[bool] = False

    consistency: str = field(kw_only=True, default="clip")
    neighbors: str = field(kw_only=True, default="replace-one")

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _checks.positive_down("epsilon", self.epsilon))
        if self.neighbors not in CHANGED_COUNTS:
            known = " or ".join(map(repr, CHANGED_COUNTS))
            raise ValueError(f"neighbors must be {known}, not {self.neighbors!r}")
        if self.consistency not in ("clip", "simplex"):
            raise ValueError(f"consistency must be 'clip' or 'simplex', not {self.consistency!r}")
        if self.consistency == "simplex" and self.neighbors == "add-remove":
            raise ValueError("consistency='simplex' makes counts sum to n, which neighbors='add-remove' keeps private")
        _noise_scale(self.epsilon, self.neighbors)
        self._set_cells()

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, 0.0, self.neighbors)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        # A replaced record changes two counts by 1, each with noise of its own.
        changed = CHANGED_COUNTS[self.neighbors]
        return PrivacyProfile(self.privacy, (("pure", self.epsilon / changed, changed),))

    def __repr__(self) -> str:
        return f"<PerturbedHistogram of {self._described()}, {self.consistency}: {self.privacy}>"

    def reading(self) -> Counts:
        cells = self.cells
        return Counts(cells.bins, self._columns, cells.count)

    def law_of(self, summary: tuple[NDArray[np.int64], int]) -> NoisyIntegers:
        counts, n = summary
        return NoisyIntegers(
            counts,
            scale=_noise_scale(self.epsilon, self.neighbors),
            most=2**62 // len(self.cells),  # the total fits 64 bits
            decode=partial(self._histogram, n=n if self.neighbors == "replace-one" else None),
        )

    def release(
        self,
        x: ArrayLike,
        *,
        size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
        rng: RandomSource = None,
        workers: int = 1,
    ) -> Any:
        """`size` independent releases of the noisy counts, of shape (*size, *bins): EACH ONE spends the budget.

        One `Histogram`, as by a call, for None.
        """
        return super().release(x, size=size, rng=rng, workers=workers)

    def drawn(
        self, law: Callable[[], Law], size: SupportsIndex | tuple[SupportsIndex, ...] | None, rng: RandomSource
    ) -> Any:
        if size is None:
            return super().drawn(law, None, rng)
        shape = _checks.shape(size)
        bit_generator(rng)  # a wrong rng is told before data are looked at
        return law().sample(shape, rng=rng)

    def error(self, n: SupportsIndex, *, roughness: float) -> float:
        """Mean integrated squared error to expect for n records: `dpfast.theory.perturbed_mise`."""
        return perturbed_mise(n, self.cells.bins, epsilon=self.epsilon, roughness=roughness, neighbors=self.neighbors)

    def _histogram(self, counts: NDArray[np.int64], *, n: int | None) -> Histogram:
        """What is released for noisy counts: post-processing."""
        if self.consistency == "simplex" and n is not None:
            weights = _nearest_with_sum(counts.reshape(-1), n).reshape(counts.shape)
        else:
            weights = np.maximum(counts, 0)
        if not weights.any():
            weights = np.ones_like(weights)
        total = int(weights.sum()) if n is None else n
        noise_error = (counts.size / total) ** 2 * noise_variance(self.epsilon, neighbors=self.neighbors)
        return Histogram(counts, weights, self.cells, n, self.privacy, noise_error)


def _noise_scale(epsilon: float, neighbors: str) -> Fraction:
    scale = CHANGED_COUNTS[neighbors] / Fraction(epsilon)
    if scale > 2**56:
        raise ValueError(f"epsilon={epsilon!r} needs noise of more than 2**56 records: use a larger epsilon")
    return scale


def _nearest_with_sum(counts: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """The integers >= 0 that sum to n and are nearest to `counts` in the l2 norm.

    They are max(counts - t, 0) for the largest integer t that leaves a sum of at least n, less 1 in as many positive
    places as the sum is too large; of the choices, all equally near, places as far apart as can be are taken.
    """
    falling = np.sort(counts)[::-1]
    sums = np.cumsum(falling)
    sizes = np.arange(1, counts.size + 1)
    last = int(np.flatnonzero(falling * sizes > sums - n)[-1])  # of those that stay positive after the shift
    t = (int(sums[last]) - n) // (last + 1)
    nearest = np.maximum(counts - t, 0)
    positive = np.flatnonzero(nearest)
    excess = int(nearest.sum()) - n
    nearest[positive[np.arange(excess) * positive.size // max(excess, 1)]] -= 1
    return nearest


class SmoothedSample(Law):
    """The law of k independent points: of a smoothed histogram's cells, uniform inside. PRIVATE: it holds the records.

    Parameters
    ----------
    values : ndarray of shape (n, r)
    cells : Cells
    k : int
    units : int
        The weight of the uniform distribution on the cells, in units of 2**-64.
    workers : int
    """

    def __init__(self, values: NDArray[Any], *, cells: Cells, k: int, units: int, workers: int) -> None:
        self.cells, self.k, self.units = cells, k, units
        self._values, self._workers = values, workers

    @cached_property
    def log_probabilities(self) -> NDArray[np.float64]:
        """The logarithm of the probability of one grid point of each cell."""
        counts = self.cells.count(self._values, self._workers)
        delta = self.units * 2.0**-64
        kept = float(1 - Fraction(self.units, 2**64))
        logs: NDArray[np.float64] = np.log(kept * counts / len(self._values) + delta / len(self.cells))
        for a, codes in enumerate(self.cells.codes):
            points = np.diff(codes)
            points[-1] += 1
            logs -= np.log(points).reshape([-1 if b == a else 1 for b in range(len(self.cells.bins))])
        return logs

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Natural logarithm of P(K = k), for codes of shape (..., draws), or (..., draws, r) for r columns."""
        codes = _containers.integers("k", k)
        if len(self.cells.bins) == 1:
            codes = codes[..., None]
        inside = np.ones(codes.shape[:-1], dtype=bool)
        index = []
        for a, edges in enumerate(self.cells.codes):
            column = codes[..., a]
            inside &= (column >= 0) & (column <= edges[-1])
            index.append(np.clip(np.searchsorted(edges, column, side="right") - 1, 0, edges.size - 2))
        return np.asarray(np.where(inside, self.log_probabilities[tuple(index)], -np.inf).sum(axis=-1))

    def outcomes(self) -> NDArray[np.int64]:
        sizes = [grid.size for grid in self.cells.grids] * self.k
        _checks.outcomes(math.prod(sizes))
        codes = np.indices(sizes).reshape(len(sizes), -1).T
        return codes if len(self.cells.bins) == 1 else codes.reshape(len(codes), self.k, -1)

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        shape = (*_checks.shape(size), self.k)

        def fill(source: BitGenerator, out: NDArray[np.int32]) -> None:
            _bins.fill_smoothed(source, self._values, self.cells.axes(), self.units - 1, len(self.cells), out)

        codes = self.cells.draw(fill, math.prod(shape), rng, codes=True).astype(np.int64)
        return codes.reshape(shape if len(self.cells.bins) == 1 else (*shape, -1))

    def value(self, k: ArrayLike) -> NDArray[np.float64]:
        """The records that are released for k, in data units."""
        codes = _containers.integers("k", k)
        if len(self.cells.grids) == 1:
            return self.cells.grids[0].decode(codes)
        return np.stack([grid.decode(codes[..., a]) for a, grid in enumerate(self.cells.grids)], axis=-1)


@dataclass(frozen=True, repr=False)
class SmoothedHistogram(_OnCells):
    """Release k synthetic records from a mixture of the histogram and the uniform distribution.

    Pure epsilon-differential privacy under one replaced record; the number of records is public.

    Parameters
    ----------
    bins : int, or sequence of ints
        Of every axis, or of each; at most 2**24 cells together.
    k : int
        Synthetic records, at least 1.
    grid : Grid, or tuple of Grids
        Public bounds and granularity of the one column, or of each of up to 4.
    epsilon : float
        Positive; rounded down to a double.

    Raises
    ------
    TypeError, ValueError
        Before any data are looked at.

    Notes
    -----
    Privacy: each record is, with probability delta, of a uniform cell, else of the cell of a uniform record; then
    uniform on the grid points of the cell. delta is m / (m + n (exp(epsilon / k) - 1)) for m cells and n records, the
    least for which k draws lose epsilon, rounded up to a multiple of 2**-64 (docs/proofs/smoothed-histogram.md).
    Cost: O(k), no pass over the records. The more draws, the nearer is delta to 1: `dpfast.theory.smoothed_optimum`
    weighs them against bins; for k of the order of n use `PerturbedHistogram`.

    References
    ----------
    Wasserman and Zhou 2010, section 4, Theorem 5.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> from dpfast.densities import SmoothedHistogram
    >>> mechanism = SmoothedHistogram(10, k=100, grid=dpf.Grid(0, 100, step=1), epsilon=1.0)
    >>> mechanism(np.random.default_rng(0).integers(18, 90, 10_000)).shape
    (100,)
    """

    k: int = field(kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _checks.positive_down("epsilon", self.epsilon))
        object.__setattr__(self, "k", _checks.whole("k", self.k, least=1))
        self._set_cells()

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        return PrivacyProfile(self.privacy, (("pure", _up(Fraction(self.epsilon) / self.k), self.k),))

    def __repr__(self) -> str:
        return f"<SmoothedHistogram release of {self.k} draws from {self._described()}: {self.privacy}>"

    def delta(self, n: SupportsIndex) -> Fraction:
        """The weight of the uniform distribution for n records: public, exact."""
        return Fraction(_units(len(self.cells), _checks.whole("n", n, least=1), self.k, self.epsilon), 2**64)

    def error(self, n: SupportsIndex, *, probabilities: ArrayLike, square_integral: float) -> float:
        """Mean integrated squared error to expect of the draws' histogram: `dpfast.theory.smoothed_mise`."""
        return smoothed_mise(probabilities, square_integral, n=n, k=self.k, delta=float(self.delta(n)))

    def reading(self) -> Values:
        return Values(self.grids, self._columns)

    def law_of(self, batch: Batch) -> SmoothedSample:
        cells, (values, threads) = self.cells, batch
        units = _units(len(cells), len(values), self.k, self.epsilon)
        return SmoothedSample(values, cells=cells, k=self.k, units=units, workers=threads)


@lru_cache(maxsize=256)
def _units(cells: int, n: int, k: int, epsilon: float) -> int:
    from dpfast._kernels._balls import smoothing

    return smoothing(cells, n, k, epsilon)


def histogram(
    X: ArrayLike | Chunks,
    bins: int | Sequence[int] | str = "auto",
    *,
    epsilon: float,
    bounds: Any = None,
    grid: Grid | Sequence[Grid] | None = None,
    method: str = "perturbed",
    consistency: str = "clip",
    neighbors: str = "replace-one",
    roughness: float | None = None,
    rng: RandomSource = None,
    workers: int = 1,
) -> Histogram:
    """Release a histogram of X, epsilon-differentially private for one replaced record.

    Parameters
    ----------
    X : array_like of shape (n,) or (n, r)
        Private data, r at most 4: any dtype, any stride, read-only or memory-mapped; never modified. Values outside the
        bounds count at them, NaN at ``grid.missing``. n >= 1 is public, unless `neighbors` is "add-remove".
    bins : int, sequence of ints, or "auto"
        Of every axis, or of each. "auto" takes the number with the least `dpfast.theory.perturbed_mise` for n, epsilon
        and `roughness`: c bins an axis, m = c**r cells, R the roughness and v the variance of the noise::

            R / (12 c**2) + m / n + m**2 v / n**2

    epsilon : float
        Positive.
    bounds : pair of floats, or r pairs
        Public bounds in data units, of all columns or of each, chosen without looking at X; short for
        ``grid=Grid(*bounds)``, with step 1 if X declares an integer or boolean dtype.
    grid : Grid, or r Grids
        Instead of `bounds`.
    method : {"perturbed"}
    consistency : {"clip", "simplex"}
        How `Histogram.weights` are made of noisy counts (`PerturbedHistogram`).
    neighbors : {"replace-one", "add-remove"}
        The second for one record added or removed: half of the noise, n private, no "auto".
    roughness : float, optional
        Assumed integral of the squared gradient of the density on the unit box, for "auto". Default: that of a normal
        density whose mean is the middle and whose three standard deviations reach the bounds, 30.5 for one column.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Threads that read the data.

    Returns
    -------
    Histogram

    Raises
    ------
    TypeError
        Neither or both of `bounds` and `grid`; data that are not numbers.
    ValueError
        A parameter out of range; X empty or of a shape that does not fit; more than 2**24 cells.

    Notes
    -----
    Privacy: `PerturbedHistogram`, docs/proofs/perturbed-histogram.md. Cost: a tenth to a fifth of ``np.histogram``.

    References
    ----------
    Wasserman and Zhou 2010, section 4.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> ages = np.random.default_rng(0).integers(18, 90, 10_000)
    >>> histogram = dpf.histogram(ages, 10, bounds=(0, 100), epsilon=1.0)
    >>> bool(abs(histogram.counts[0]) < 100)
    True
    >>> bool(40 < histogram.quantile(0.5) < 65)
    True
    """
    if method != "perturbed":
        raise ValueError(f"method must be 'perturbed', not {method!r}")
    epsilon = _checks.positive_down("epsilon", epsilon)
    _checks.threads(workers)
    bit_generator(rng)  # all told before data are looked at
    values, grids, _ = table(X, bounds, grid)
    if isinstance(bins, str):
        if neighbors == "add-remove":
            raise ValueError("bins='auto' needs a public number of records, which neighbors='add-remove' has not")
        bins = automatic_bins(bins, values, grids, epsilon, roughness)
    mechanism = PerturbedHistogram(
        bins,
        grid=grids,
        epsilon=epsilon,
        consistency=consistency,
        neighbors=neighbors,
    )
    released: Histogram = mechanism(values, rng=rng, workers=workers)
    return released


def table(
    X: ArrayLike | Chunks, bounds: Any, grid: Grid | Sequence[Grid] | None
) -> tuple[NDArray[Any] | Chunks, tuple[Grid, ...], int]:
    """The records as numbers of shape (n,) or (n, r), or in chunks; a grid for each column; one or two dimensions.

    A list is read as rows whatever it holds where there are several grids, else only if all of its cells are rows.
    """
    _checks.bounds_or_grid(bounds, grid)
    given = grids_within(bounds, natural_step(X)) if grid is None else grid
    given = given if isinstance(given, Grid) else tuple(given)
    dimensions = 1 if isinstance(given, Grid) else min(len(given), 2)
    first = next(iter(X), ()) if isinstance(X, Chunks) else X
    piece = _containers.numbers("X", first, dimensions=dimensions)
    values = X if isinstance(X, Chunks) else piece
    if piece.ndim not in (1, 2):
        raise ValueError(f"X must have one or two dimensions, not shape {_containers.shape_of(piece)}")
    r = 1 if piece.ndim == 1 else piece.shape[1]
    if not 1 <= r <= MOST_COLUMNS:
        raise ValueError(f"X must have 1 to {MOST_COLUMNS} columns for a full grid of cells, not {r}")
    grids = (given,) * r if isinstance(given, Grid) else given
    if len(grids) != r:
        raise ValueError(f"bounds and grid must be for one column or for each of {r}, not for {len(grids)}")
    return values, grids, piece.ndim


def automatic_bins(
    bins: str, values: NDArray[Any] | Chunks, grids: tuple[Grid, ...], epsilon: float, roughness: float | None = None
) -> tuple[int, ...]:
    """The bins of each axis by the rule of `histogram`, from the number of records."""
    r = len(grids)
    rough = r * _ASSUMED_ROUGHNESS * _ASSUMED_SQUARE ** (r - 1) if roughness is None else roughness
    return bins_by(lambda n: perturbed_bins(n, epsilon=epsilon, roughness=rough, dimensions=r), bins, values, grids)


def bins_by(
    rule: Callable[[int], int], bins: str, values: NDArray[Any] | Chunks, grids: tuple[Grid, ...]
) -> tuple[int, ...]:
    """The bins of each axis for "auto": `rule` of the number of records, as far as grids and 2**24 cells allow."""
    if bins != "auto":
        raise ValueError(f"bins must be a number, a number for each column or 'auto', not {bins!r}")
    n = values.records() if isinstance(values, Chunks) else len(values)
    best, most = rule(_checks.records(n)), int(MOST_CELLS ** (1 / len(grids)) + 1e-9)
    return tuple(min(best, most, grid.size - 1) for grid in grids)
