"""Synthetic records: `synthesize` and the methods it chooses from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from dpfast import _checks, _containers
from dpfast.densities.bins import ASSUMED_DEVIATION, ASSUMED_SQUARE, automatic_bins, bins_by, table
from dpfast.densities.histograms import PerturbedHistogram, SmoothedHistogram
from dpfast.densities.kolmogorov import KolmogorovSmirnov
from dpfast.densities.series import density
from dpfast.grid import Grid
from dpfast.random import RandomSource, bit_generator
from dpfast.streaming import Chunks
from dpfast.theory.densities import smoothed_optimum


@dataclass(frozen=True)
class Request:
    """What a method is asked for, all checked but `bins`.

    Attributes
    ----------
    values : ndarray of shape (n,) or (n, r), or Chunks
        Private.
    grids : tuple of r Grids
    k : int
    bins : int, sequence of ints, or str
    epsilon : float
    rng : numpy.random.Generator, BitGenerator or None
    workers : int
    """

    values: NDArray[Any] | Chunks
    grids: tuple[Grid, ...]
    k: int
    bins: int | Sequence[int] | str
    epsilon: float
    rng: RandomSource
    workers: int


def _perturbed(request: Request) -> NDArray[np.float64]:
    bins = request.bins
    if isinstance(bins, str):
        bins = automatic_bins(bins, request.values, request.grids, request.epsilon)
    mechanism = PerturbedHistogram(bins, grid=request.grids, epsilon=request.epsilon)
    released = mechanism(request.values, rng=request.rng, workers=request.workers)
    return np.asarray(released.sample(request.k, request.rng, workers=request.workers))


def _smoothed(request: Request) -> NDArray[np.float64]:
    bins = request.bins
    if isinstance(bins, str):
        bins = bins_by(
            lambda n: (
                smoothed_optimum(
                    _assumed_cdf,
                    ASSUMED_SQUARE,
                    n=n,
                    epsilon=request.epsilon,
                    k=request.k,
                    dimensions=len(request.grids),
                ).bins
            ),
            bins,
            request.values,
            request.grids,
        )
    mechanism = SmoothedHistogram(bins, k=request.k, grid=request.grids, epsilon=request.epsilon)
    return np.asarray(mechanism(request.values, rng=request.rng, workers=request.workers))


def _column(request: Request, method: str) -> NDArray[Any] | Chunks:
    """The one column of records, for the methods of one dimension, which have no bins."""
    if len(request.grids) != 1:
        raise ValueError(f"method={method!r} is for one column, not for {len(request.grids)}: use 'perturbed'")
    if request.bins != "auto":
        raise ValueError(f"method={method!r} has no bins, {request.bins!r} were given")
    values = request.values
    if isinstance(values, Chunks):
        return Chunks(lambda: (_containers.numbers("X", piece, dimensions=1).reshape(-1) for piece in values))
    return values.reshape(-1)


def _kolmogorov_smirnov(request: Request) -> NDArray[np.float64]:
    column = _column(request, "ks")
    mechanism = KolmogorovSmirnov(request.k, grid=request.grids[0], epsilon=request.epsilon)
    return np.asarray(mechanism(column, rng=request.rng, workers=request.workers))


def _series(request: Request) -> NDArray[np.float64]:
    column, [grid] = _column(request, "series"), request.grids
    released = density(column, grid=grid, epsilon=request.epsilon, rng=request.rng, workers=request.workers)
    return np.asarray(released.sample(request.k, request.rng))


def _assumed_cdf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(ndtr((x - 0.5) / ASSUMED_DEVIATION))


METHODS: dict[str, Callable[[Request], NDArray[np.float64]]] = {
    "perturbed": _perturbed,
    "smoothed": _smoothed,
    "ks": _kolmogorov_smirnov,
    "series": _series,
}


def synthesize(
    X: ArrayLike | Chunks,
    k: SupportsIndex,
    *,
    epsilon: float,
    bounds: Any = None,
    grid: Grid | Sequence[Grid] | None = None,
    method: str = "perturbed",
    bins: int | Sequence[int] | str = "auto",
    rng: RandomSource = None,
    workers: int = 1,
) -> NDArray[np.float64]:
    """Release k synthetic records that resemble those of X, epsilon-differentially private for one replaced record.

    Parameters
    ----------
    X : array_like of shape (n,) or (n, r)
        Private data, r at most 4, as for `histogram`; n >= 1 is public.
    k : int
        Synthetic records, at least 1.
    epsilon, bounds, grid
        As for `histogram`.
    method : {"perturbed", "smoothed", "ks", "series"}
        "perturbed" draws from one `PerturbedHistogram`: any number of records. "smoothed" draws from the
        `SmoothedHistogram`, where every draw takes its share of the budget: for few records from many. "ks" is the
        exponential mechanism `KolmogorovSmirnov`, at most 8191 records, and "series" draws from `density`, any number;
        both for one column.
    bins : int, sequence of ints, or "auto"
        As for `histogram`; for "perturbed" and "smoothed" only. "auto" of "smoothed" takes the number with the least
        `dpfast.theory.smoothed_mise` for n, k and epsilon under a normal density whose three standard deviations reach
        the bounds.
    rng, workers
        As for `histogram`.

    Returns
    -------
    ndarray of float64, shape (k,) or (k, r) as X has
        Grid points inside the bounds, independent given the release: whole numbers where the step is 1.

    Raises
    ------
    TypeError, ValueError
        As `histogram`; an unknown method.

    Notes
    -----
    Privacy: docs/proofs/perturbed-histogram.md, smoothed-histogram.md, kolmogorov.md, series.md. Cost: O(n + k); O(k)
    for "smoothed"; for "ks" see `KolmogorovSmirnov`.

    References
    ----------
    Wasserman and Zhou 2010, section 4.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> ages = np.random.default_rng(0).integers(18, 90, 10_000)
    >>> twins = dpf.synthesize(ages, 5000, bounds=(0, 100), epsilon=1.0)
    >>> bool(abs(np.mean(twins) - np.mean(ages)) < 3)
    True
    """
    if method not in METHODS:
        raise ValueError(f"method must be {' or '.join(map(repr, METHODS))}, not {method!r}")
    k, epsilon = _checks.whole("k", k, least=1), _checks.positive_down("epsilon", epsilon)
    threads = _checks.threads(workers)
    bit_generator(rng)  # all told before data are looked at
    values, grids, dimensions = table(X, bounds, grid)
    records = METHODS[method](Request(values, grids, k, bins, epsilon, rng, threads))
    return records.reshape(k, len(grids)) if dimensions == 2 else records.reshape(k)
