"""Histograms and synthetic records: exact counts with discrete Laplace noise, and draws from a smoothed histogram."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any, SupportsIndex

import numpy as np
from numpy.random import BitGenerator
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _bins
from dpfast.choosing import Explain, explained
from dpfast.core import checks, containers
from dpfast.core.divergences import gaussian_mu_down
from dpfast.core.grid import Grid, check_missing
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.rounding import up
from dpfast.core.types import Exact, Records
from dpfast.densities.bins import automatic_bins, table
from dpfast.densities.cells import Cells, is_whole
from dpfast.densities.on_cells import OnCells
from dpfast.densities.ranges import RangeSums
from dpfast.densities.released import Histogram
from dpfast.densities.weights import RULES, consistent
from dpfast.laws import Law, NoisyIntegers, ZeroSumLaplace
from dpfast.mechanisms.noisy_integers import FromIntegers
from dpfast.random import RandomSource, bit_generator
from dpfast.streaming import Chunks, Counts, Gathered, Values
from dpfast.theory.counts import CHANGED_COUNTS, CountNoise, count_noise
from dpfast.theory.densities import perturbed_mise, smoothed_mise

_BINS_OF_RANGES = 1024, 128  # for one column, and for each of two


@dataclass(frozen=True, repr=False)
class PerturbedHistogram(FromIntegers, OnCells):
    """Release a histogram: exact counts plus discrete Laplace noise of scale 2 / epsilon, given that its sum is 0.

    Pure epsilon-differential privacy under one replaced record, with n public; or with independent noise of scale 1 /
    epsilon under one record added or removed, with n private. With delta also Gaussian noise.

    Parameters
    ----------
    bins : int, or sequence of ints
        One number for all axes, or one per axis; at most 2**24 cells in total.
    grid : Grid, or tuple of Grids
        Public bounds and granularity of the column, or of each of up to 4 columns.
    epsilon : float
        Positive; rounded down to a double.
    consistency : {"auto", "simplex", "halves", "clip"}
        Definition of `Histogram.weights`. "simplex" takes the nearest nonnegative integers that sum to n, or to the sum
        of the noisy counts if n is private; "halves" does so from the whole to its halves, their halves and so on,
        which keeps sums of neighbouring cells; "auto" is "simplex" for up to 64 cells, else "halves". "clip" replaces
        negative noisy counts by 0, as in the paper.
    neighbors : {"replace-one", "add-remove"}
    delta : float
        In [0, 1); rounded down to a double.
    noise : {"auto", "discrete-laplace", "gaussian"}
        "auto" takes the noise of less variance for these parameters: Gaussian only with a large delta; otherwise the
        guarantee is pure. "discrete-laplace" noise is drawn given that its sum is 0 where Notes says so. "gaussian",
        for a ledger in mu or rho, needs a positive delta.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    Privacy: a replaced record changes the integer counts by at most 2 in the l1 norm, an added or removed one by 1. The
    scale of the discrete Laplace noise is exactly this divided by epsilon, and no float decides it; the rest is
    post-processing (https://dpfast.readthedocs.io/en/latest/proofs/perturbed-histogram.html). The loss is exactly
    epsilon.
    Up to 64 cells, under replacement, the noise is drawn given that its sum is 0: the noisy counts sum to n, and their
    noise has a standard deviation that is less than that of independent noise by a factor of 2.1, 1.6 and 1.4 for 2, 3
    and 4 cells at epsilon 1, 1.14 for 10. For more cells, where it would gain less than 2 %, the noise is independent.
    Weights: clipped noise has a positive mean, which biases sums of many cells. Prefix sums of 4,096 cells of lognormal
    records, n = 5,000, epsilon 0.5, are off by 1,730 records with "clip", 1,000 with "simplex", 110 with "halves"; the
    raw counts by 280.
    Run time: one pass over the records, a tenth to a fifth of ``np.histogram``, plus the noise of each cell.

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

    consistency: str = field(kw_only=True, default="auto")
    neighbors: str = field(kw_only=True, default="replace-one")
    delta: float = field(kw_only=True, default=0.0)
    noise: str = field(kw_only=True, default="auto")

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        object.__setattr__(self, "delta", checks.delta_down(self.delta))
        checks.choice("consistency", self.consistency, RULES)
        self._set_cells()
        chosen = self._chosen
        if (CHANGED_COUNTS[self.neighbors] / Fraction(self.epsilon) if chosen.sigma is None else chosen.sigma) > 2**56:
            raise ValueError(
                f"epsilon={self.epsilon!r} requires noise of more than 2**56 records: use a larger epsilon"
            )

    @property
    def _chosen(self) -> CountNoise:
        return count_noise(
            len(self.cells), epsilon=self.epsilon, delta=self.delta, neighbors=self.neighbors, noise=self.noise
        )

    @property
    def privacy(self) -> Privacy:
        return _privacy(self.epsilon, 0.0 if self._chosen.sigma is None else self.delta, self.neighbors)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        chosen, changed = self._chosen, CHANGED_COUNTS[self.neighbors]
        if chosen.sigma is not None:
            return PrivacyProfile(self.privacy, (("gaussian", gaussian_mu_down(self.epsilon, self.delta), 1),))
        if isinstance(chosen.law, ZeroSumLaplace):
            return PrivacyProfile(self.privacy, (("zero-sum-laplace", self.epsilon, 1, len(self.cells)),))
        # A replaced record changes two counts by 1; their noises are independent.
        return PrivacyProfile(self.privacy, (("discrete-laplace", self.epsilon / changed, changed),))

    def _enough(self) -> float:
        return 4 * math.sqrt(self._chosen.variance)  # records of a count that is hardly more than a guess

    def _explained_error(self, n: int | None) -> str:
        kind = "discrete Laplace" if self._chosen.sigma is None else "Gaussian"
        return (
            f"Expected error: {kind} noise of standard deviation {math.sqrt(self._chosen.variance):.3g} on each count"
        )

    def __repr__(self) -> str:
        return f"<PerturbedHistogram of {self._described()}, {self.consistency}: {self.privacy}>"

    def reading(self) -> Counts:
        cells = self.cells
        return Counts(cells.bins, self._columns, cells.count, cells.locate if len(self.grids) == 1 else None)

    def law_of(self, summary: tuple[NDArray[np.int64], int]) -> NoisyIntegers:
        counts, n = summary
        return NoisyIntegers(
            counts,
            noise=self._chosen.law,
            most=2**62 // counts.size,  # the total fits 64 bits
            decode=partial(self._histogram, n=n if self.neighbors == "replace-one" else None),
        )

    def error(self, n: SupportsIndex, *, roughness: float = 0.0) -> float:
        """Return the expected mean integrated squared error for n records: `dpfast.theory.perturbed_mise`.

        The roughness is an assumption; 0 leaves out the bias of bins, so that the rest needs none.
        """
        return perturbed_mise(
            n,
            self.cells.bins,
            epsilon=self.epsilon,
            roughness=roughness,
            delta=self.delta,
            neighbors=self.neighbors,
            noise=self.noise,
        )

    def _histogram(self, counts: NDArray[np.int64], *, n: int | None) -> Histogram:
        """Return the released histogram, from noisy counts by post-processing."""
        weights = consistent(counts, self.consistency, n)
        total = int(weights.sum()) if n is None else n
        noise_error = (counts.size / total) ** 2 * self._chosen.variance
        return Histogram(counts, weights, self.cells, n, self.privacy, noise_error)


class SmoothedSample(Law):
    """The law of k independent points of a smoothed histogram, uniform in each cell. PRIVATE: it holds the records.

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
        """The log probability of a single grid point, for each cell."""
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
        """Log probability of K = k, for codes of shape (..., draws), or (..., draws, r) for r columns."""
        codes = containers.integers("k", k)
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
        checks.outcomes(math.prod(sizes))
        codes = np.indices(sizes).reshape(len(sizes), -1).T
        return codes if len(self.cells.bins) == 1 else codes.reshape(len(codes), self.k, -1)

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        shape = (*checks.shape(size), self.k)

        def fill(source: BitGenerator, out: NDArray[np.int32]) -> None:
            _bins.fill_smoothed(source, self._values, self.cells.axes, self.units - 1, len(self.cells), out)

        codes = self.cells.draw(fill, math.prod(shape), rng, codes=True).astype(np.int64)
        return codes.reshape(shape if len(self.cells.bins) == 1 else (*shape, -1))

    def value(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return the released records for codes k, in data units."""
        codes = containers.integers("k", k)
        if len(self.cells.grids) == 1:
            return self.cells.grids[0].decode(codes)
        return np.stack([grid.decode(codes[..., a]) for a, grid in enumerate(self.cells.grids)], axis=-1)


@dataclass(frozen=True, repr=False)
class SmoothedHistogram(OnCells):
    """Release k synthetic records from a mixture of the histogram and the uniform distribution.

    Pure epsilon-differential privacy under one replaced record; the number of records is public.

    Parameters
    ----------
    bins : int, or sequence of ints
        One number for all axes, or one per axis; at most 2**24 cells in total.
    k : int
        Number of synthetic records, at least 1.
    grid : Grid, or tuple of Grids
        Public bounds and granularity of the column, or of each of up to 4 columns.
    epsilon : float
        Positive; rounded down to a double.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    Privacy: each synthetic record is in a uniformly drawn cell with probability delta, else in the cell of a uniformly
    drawn record; it is then uniform on the grid points of the cell. delta is m / (m + n (exp(epsilon / k) - 1)) for m
    cells and n records: the least for which k draws lose epsilon, rounded up to a multiple of 2**-64
    (https://dpfast.readthedocs.io/en/latest/proofs/smoothed-histogram.html). Cost: O(k), without a pass over the
    records. delta tends to 1 as k grows: `dpfast.theory.smoothed_optimum` weighs k against bins; for k of the order of
    n, use `PerturbedHistogram`.

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
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        object.__setattr__(self, "k", checks.whole("k", self.k, least=1))
        self._set_cells()

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        return PrivacyProfile(self.privacy, (("pure", up(Fraction(self.epsilon) / self.k), self.k),))

    def __repr__(self) -> str:
        return f"<SmoothedHistogram release of {self.k} draws from {self._described()}: {self.privacy}>"

    def delta(self, n: SupportsIndex) -> Fraction:
        """Return the weight of the uniform distribution for n records: public and exact."""
        return Fraction(_units(len(self.cells), checks.whole("n", n, least=1), self.k, self.epsilon), 2**64)

    def error(self, n: SupportsIndex, *, probabilities: ArrayLike, square_integral: float) -> float:
        """Return the expected mean integrated squared error of the draws' histogram: `dpfast.theory.smoothed_mise`."""
        return smoothed_mise(probabilities, square_integral, n=n, k=self.k, delta=float(self.delta(n)))

    def reading(self) -> Values:
        return Values(self.grids, self._columns)

    def law_of(self, batch: Gathered) -> SmoothedSample:
        cells, (values, threads) = self.cells, batch
        units = _units(len(cells), len(values), self.k, self.epsilon)
        return SmoothedSample(values, cells=cells, k=self.k, units=units, workers=threads)


@lru_cache(maxsize=256)
def _units(cells: int, n: int, k: int, epsilon: float) -> int:
    from dpfast._kernels._balls import smoothing

    return smoothing(cells, n, k, epsilon)


def histogram(
    X: Records | Chunks,
    bins: int | Sequence[int] | str = "auto",
    *,
    epsilon: Exact,
    bounds: Any = None,
    grid: Grid | Sequence[Grid] | None = None,
    method: str = "perturbed",
    consistency: str = "auto",
    neighbors: str = "replace-one",
    roughness: float | None = None,
    delta: Exact = 0.0,
    noise: str = "auto",
    workload: str = "cells",
    missing: float | str | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> Histogram:
    """Release a histogram of X, epsilon-differentially private for one replaced record.

    Parameters
    ----------
    X : array_like of shape (n,) or (n, r)
        Private data, r at most 4: any dtype, any stride, read-only or memory-mapped; never modified. Values outside
        the bounds count at the bounds, NaN at the lower bound unless `missing` says otherwise. n >= 1 is public, unless
        `neighbors` is "add-remove".
    bins : int, sequence of ints, or "auto"
        One number for all axes, or one per axis. "auto" minimises `dpfast.theory.perturbed_mise` for n, epsilon and
        `roughness`: with c bins per axis, m = c**r cells, roughness R and noise variance v::

            R / (12 c**2) + m / n + m**2 v / n**2

        Bins of integers and booleans, and of a grid of step 1, divide the whole numbers within the bounds: five bins
        within (1, 5) are one for each rating, with edges at halves. "auto" takes a number of bins with about equally
        many of them; another number than a divisor gives some bins one number more, with a `UtilityWarning` if that is
        a third or more.

    epsilon : float
        Positive.
    bounds : pair (lower, upper), r pairs, or for frames a mapping from column names to pairs
        Public bounds in data units, of all columns or of each, chosen without access to X; short for
        ``grid=Grid(*bounds)``, with step 1 if X declares an integer or boolean dtype.
    grid : Grid, or r Grids
        Instead of `bounds`.
    method : {"perturbed"}
    consistency : {"auto", "simplex", "halves", "clip"}
        How `Histogram.weights` follow from the noisy counts; see `PerturbedHistogram`.
    neighbors : {"replace-one", "add-remove"}
        "add-remove" protects the addition or removal of a record: half of the noise, n private, no "auto".
    roughness : float, optional
        Assumed integral of the squared gradient of the density on the unit box, for "auto". Default: that of a centred
        normal density with three standard deviations to each bound, 30.5 for one column.
    delta : float
        In [0, 1). Positive: (epsilon, delta)-differentially private, with Gaussian noise where that has less variance.
    noise : {"auto", "discrete-laplace", "gaussian"}
        See `PerturbedHistogram`.
    workload : {"cells", "ranges"}
        What is to be accurate: each cell, or sums of neighbouring cells, such as `Histogram.range` and
        `Histogram.cdf` of many narrow bins, by `RangeSums`. "ranges" is for one column, or two, and "auto" bins are
        then 1024, or 128 for each of two, or one for each whole number if these are fewer.
    missing : float, "lower", "half" or "drop", optional
        What NaN and None become in each column: this value, clamped to the bounds; the lower bound; the lower and the
        upper bound in even and odd records (from 0, in X or in each chunk); or no record, for records with NaN in any
        column, which needs ``neighbors="add-remove"``. Default: that of `grid`, else "lower". See
        https://dpfast.readthedocs.io/en/latest/guides/missing.html.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Number of threads that read the data.
    explain : bool or callable
        See `dpfast.median`.

    Returns
    -------
    Histogram

    Raises
    ------
    TypeError
        If neither or both of `bounds` and `grid` are given, or the data are not numeric.
    ValueError
        If a parameter is out of range, X is empty or of a wrong shape, or there are more than 2**24 cells.

    Notes
    -----
    Privacy: `PerturbedHistogram`, https://dpfast.readthedocs.io/en/latest/proofs/perturbed-histogram.html. Run time: a
    tenth to a fifth of ``np.histogram``.

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
    >>> ratings = np.repeat([1, 2, 3, 4, 5], [100, 200, 300, 50, 350])
    >>> dpf.histogram(ratings, 5, bounds=(1, 5), epsilon=1.0).edges
    array([0.5, 1.5, 2.5, 3.5, 4.5, 5.5])
    """
    if method != "perturbed":
        raise ValueError(f"method must be 'perturbed', not {method!r}")
    epsilon, delta = checks.positive_down("epsilon", epsilon), checks.delta_down(delta)
    workers = checks.threads(workers)
    bit_generator(rng)  # reject invalid arguments before reading the data
    values, grids, _ = table(X, bounds, grid, missing)
    check_missing("PerturbedHistogram", grids, hides_n=neighbors == "add-remove")
    if checks.choice("workload", workload, ("cells", "ranges")) == "ranges":
        ranges = _for_ranges(bins, grids, epsilon, consistency, neighbors, delta, noise)
        made: Histogram = explained(ranges, explain, values)(values, rng=rng, workers=workers)
        return made
    if isinstance(bins, str):
        if neighbors == "add-remove":
            raise ValueError(
                "bins='auto' is for a public number of records, which is private here: give a number of bins"
            )
        bins = automatic_bins(bins, values, grids, epsilon, roughness, delta=delta, noise=noise)
    plain = {type(bins), type(consistency), type(neighbors), type(noise)} <= {int, str}
    mechanism = (_kept if plain else _perturbed)(bins, grids, epsilon, consistency, neighbors, delta, noise)
    released: Histogram = explained(mechanism, explain, values)(values, rng=rng, workers=workers)
    return released


def _for_ranges(
    bins: Any, grids: tuple[Grid, ...], epsilon: float, consistency: Any, neighbors: Any, delta: float, noise: Any
) -> RangeSums:
    if consistency != "auto":
        raise ValueError(f"consistency must be 'auto' for workload='ranges', not {consistency!r}")
    if isinstance(bins, str):
        checks.choice("bins", bins, ("auto",))
        most = _BINS_OF_RANGES[len(grids) > 1]
        bins = tuple(min(most, grid.size if is_whole(grid) else most) for grid in grids)
    return RangeSums(bins, grid=grids, epsilon=epsilon, neighbors=neighbors, delta=delta, noise=noise)


def _perturbed(
    bins: Any, grids: tuple[Grid, ...], epsilon: float, consistency: Any, neighbors: Any, delta: float, noise: Any
) -> PerturbedHistogram:
    options = {"consistency": consistency, "neighbors": neighbors, "delta": delta, "noise": noise}
    return PerturbedHistogram(bins, grid=grids, epsilon=epsilon, **options)


_privacy = lru_cache(maxsize=256)(Privacy)
_kept = lru_cache(maxsize=256)(_perturbed)  # for calls that repeat their parameters
