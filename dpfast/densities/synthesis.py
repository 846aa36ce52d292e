"""Synthetic records: `synthesize` and its methods."""

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
from dpfast.streaming import Chunks, Counted
from dpfast.theory.densities import smoothed_optimum


@dataclass(frozen=True)
class Request:
    """The arguments of a method; all are checked except `bins`.

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
    """The single column of records, for one-dimensional methods, which have no bins."""
    if len(request.grids) != 1:
        raise ValueError(f"method={method!r} supports one column, not {len(request.grids)}: use 'perturbed'")
    if request.bins != "auto":
        raise ValueError(f"method={method!r} does not use bins, but bins={request.bins!r} was given")
    values = request.values
    if isinstance(values, Chunks):
        return Chunks(lambda: map(_flat, values))
    return values.reshape(-1)


def _flat(piece: Any) -> Any:
    """The numbers of a piece of one column; `Counted` unchanged."""
    return piece if isinstance(piece, Counted) else _containers.numbers("X", piece, dimensions=1).reshape(-1)


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
    missing: float | str | None = None,
    rng: RandomSource = None,
    workers: int = 1,
) -> NDArray[np.float64]:
    """Release k synthetic records that resemble those of X, epsilon-differentially private for one replaced record.

    Parameters
    ----------
    X : array_like of shape (n,) or (n, r)
        Private data, with r at most 4, as in `histogram`; n >= 1 is public. NaN counts as the lower bound unless
        `missing` says otherwise.
    k : int
        Number of synthetic records, at least 1.
    epsilon, bounds, grid
        See `histogram`.
    method : {"perturbed", "smoothed", "ks", "series"}
        "perturbed" draws any number of records from one `PerturbedHistogram`. "smoothed" draws from the
        `SmoothedHistogram`, where every draw spends its share of the budget: for few records from large data. "ks" is
        the exponential mechanism `KolmogorovSmirnov`, with at most 8191 records; "series" draws any number of records
        from `density`; both support one column only.
    bins : int, sequence of ints, or "auto"
        See `histogram`; only for "perturbed" and "smoothed". With "smoothed", "auto" minimises
        `dpfast.theory.smoothed_mise` for n, k and epsilon under a centred normal density with three standard deviations
        to each bound.
    missing, rng, workers
        See `histogram`; `missing` is not "drop", as the number of records is public.

    Returns
    -------
    ndarray of float64, shape (k,) or (k, r), like X
        Grid points inside the bounds, independent given the release; integers if the step is 1.

    Raises
    ------
    TypeError, ValueError
        As in `histogram`, or if the method is unknown.

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
    bit_generator(rng)  # reject invalid arguments before reading the data
    values, grids, dimensions = table(X, bounds, grid, missing)
    records = METHODS[method](Request(values, grids, k, bins, epsilon, rng, threads))
    return records.reshape(k, len(grids)) if dimensions == 2 else records.reshape(k)
