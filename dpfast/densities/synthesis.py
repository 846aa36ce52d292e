"""Synthetic records: `synthesize` and its methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast.choosing import Explain, explained, tell
from dpfast.core import checks, containers
from dpfast.core.grid import FloatGrid, Grid, Points, grid_with, grids_within, natural_step, unbounded
from dpfast.core.types import Exact, Records
from dpfast.densities.bins import ASSUMED_DEVIATION, ASSUMED_SQUARE, automatic_bins, bins_by, table, whole_bins
from dpfast.densities.cells import MOST_COLUMNS
from dpfast.densities.choice import synthesis_choice
from dpfast.densities.columns import Bins, Categories, DataColumns, check_different, columns_of, whole_columns
from dpfast.densities.frames import like
from dpfast.densities.histograms import PerturbedHistogram, SmoothedHistogram
from dpfast.densities.interpolation import are_better, draw_between, quantile_levels
from dpfast.densities.kolmogorov import KolmogorovSmirnov
from dpfast.densities.released_series import density
from dpfast.densities.selected import marginals_of, release_marginals
from dpfast.mechanisms import Quantiles
from dpfast.random import RandomSource, bit_generator
from dpfast.streaming import Chunks, Counted, records_of
from dpfast.theory.densities import smoothed_optimum


@dataclass(frozen=True)
class Request:
    """The arguments of a method; all are checked except `bins`.

    Attributes
    ----------
    values : ndarray of shape (n,) or (n, r), or Chunks
        Private.
    grids : tuple of r Grids, or a FloatGrid for r = 1
    k : int
    bins : int, sequence of ints, or str
    epsilon : float
    rng : numpy.random.Generator, BitGenerator or None
    workers : int
    explain : bool or callable
    """

    values: NDArray[Any] | Chunks
    grids: tuple[Any, ...]
    k: int
    bins: int | Sequence[int] | str
    epsilon: float
    rng: RandomSource
    workers: int
    explain: Explain = False


def _perturbed(request: Request) -> NDArray[np.float64]:
    bins = request.bins
    if isinstance(bins, str):
        bins = automatic_bins(bins, request.values, request.grids, request.epsilon)
    mechanism = PerturbedHistogram(bins, grid=request.grids, epsilon=request.epsilon)
    released = explained(mechanism, request.explain, request.values)(
        request.values, rng=request.rng, workers=request.workers
    )
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
                    dimension=len(request.grids),
                ).bins
            ),
            bins,
            request.values,
            request.grids,
        )
    mechanism = SmoothedHistogram(bins, k=request.k, grid=request.grids, epsilon=request.epsilon)
    made = explained(mechanism, request.explain, request.values)
    return np.asarray(made(request.values, rng=request.rng, workers=request.workers))


def _column(request: Request, method: str) -> NDArray[Any] | Chunks:
    """Return the single column of records, for one-dimensional methods, which have no bins."""
    if len(request.grids) != 1:
        raise ValueError(f"method={method!r} supports one column, not {len(request.grids)}: use 'perturbed'")
    if request.bins != "auto":
        raise ValueError(f"method={method!r} does not use bins, but bins={request.bins!r} was given")
    values = request.values
    if isinstance(values, Chunks):
        return Chunks(lambda: map(_flat, values))
    return values.reshape(-1)


def _flat(piece: Any) -> Any:
    """Return the numbers of a piece of one column; `Counted` unchanged."""
    return piece if isinstance(piece, Counted) else containers.numbers("X", piece, dimensions=1).reshape(-1)


def _kolmogorov_smirnov(request: Request) -> NDArray[np.float64]:
    column = _column(request, "ks")
    mechanism = KolmogorovSmirnov(request.k, grid=request.grids[0], epsilon=request.epsilon)
    made = explained(mechanism, request.explain, column)
    return np.asarray(made(column, rng=request.rng, workers=request.workers))


def _series(request: Request) -> NDArray[np.float64]:
    column, [grid] = _column(request, "series"), request.grids
    released = density(
        column,
        grid=grid,
        epsilon=request.epsilon,
        rng=request.rng,
        workers=request.workers,
        explain=request.explain,
    )
    return np.asarray(released.sample(request.k, request.rng))


def _quantiles(request: Request) -> NDArray[np.float64]:
    column, [grid] = _column(request, "quantiles"), request.grids
    n, epsilon = checks.records(records_of(column)), request.epsilon
    mechanism = Quantiles(quantile_levels(n, epsilon, grid), grid=grid, epsilon=epsilon)
    if isinstance(grid, Grid):  # an outer one of many quantiles that is beyond all records moves few of those drawn
        mechanism.plan(n).traps = ()
    released = explained(mechanism, request.explain, column)(column, rng=request.rng, workers=request.workers)
    return draw_between(released, request.k, grid, request.rng)


def _automatic(request: Request) -> str:
    """Return the method for "auto", by public numbers: quantiles for one column and enough records, without bins."""
    if len(request.grids) > 1 or request.bins != "auto":
        return "perturbed"
    n = checks.records(records_of(request.values))
    return "quantiles" if are_better(n, request.epsilon, request.grids[0]) else "perturbed"


def _unbounded(X: Any, grid: Any, missing: float | str | None) -> tuple[NDArray[Any] | Chunks, tuple[Points], int]:
    """Return the records of a single column on floats, as `table` returns them."""
    floats = grid_with(unbounded(containers.declares_integers(X)) if grid is None else grid, missing)
    first = next(iter(X), ()) if isinstance(X, Chunks) else X
    piece = containers.numbers("X", first.values if isinstance(first, Counted) else first, dimensions=1)
    if piece.ndim not in (1, 2) or (piece.ndim == 2 and piece.shape[1] != 1):
        raise ValueError(f"X must have one column without bounds, not shape {containers.shape_of(piece)}")
    return (X if isinstance(X, Chunks) else piece), (floats,), piece.ndim


def _assumed_cdf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(scipy.special.ndtr((x - 0.5) / ASSUMED_DEVIATION))


METHODS: dict[str, Callable[[Request], NDArray[np.float64]]] = {
    "perturbed": _perturbed,
    "smoothed": _smoothed,
    "ks": _kolmogorov_smirnov,
    "series": _series,
    "quantiles": _quantiles,
}


def _check_table(method: str, *others: Any) -> None:
    """Raise an error if the arguments of other methods are given with `columns`."""
    if method not in ("auto", "tree"):
        raise ValueError(f"method must be 'tree' or 'auto' with columns, not {method!r}")
    if others != (None, None, None, "auto"):
        raise TypeError("columns has the domains: leave out bounds, grid, missing and bins")


def _is_wide(X: Any) -> bool:
    """Whether X has rows of more than four numbers."""
    shape: Any = containers.numbers("X", X).shape if containers.is_sequence(X) else getattr(X, "shape", ())
    return len(shape) == 2 and bool(shape[1] > MOST_COLUMNS)


def _domains(X: Any, bounds: Any, grid: Any, missing: Any, bins: Any) -> dict[Any, Bins]:
    """Return the domains of the columns of rows of numbers."""
    d = containers.matrix("X", X).shape[1]
    checks.bounds_or_grid(bounds, grid)
    given = grid_with(grids_within(bounds, natural_step(X), X) if grid is None else grid, missing)
    grids = (given,) * d if isinstance(given, Points) else tuple(given)
    if len(grids) != d:
        raise ValueError(f"bounds and grid must be for one column or for each of {d}, not for {len(grids)}")
    numbers = (None,) * d if isinstance(bins, str) and bins == "auto" else whole_bins(bins, d)
    if len(numbers) != d:
        raise ValueError(f"bins must be one number or one for each of {d} columns, not {bins!r}")
    names = containers.column_names(X) or range(d)
    check_different(names, names)
    return {name: Bins(number, grid=part) for name, number, part in zip(names, numbers, grids, strict=True)}


def synthesize(
    X: Records | Mapping[Any, Any] | Chunks,
    k: SupportsIndex | None = None,
    *,
    epsilon: Exact,
    delta: Exact = 0.0,
    bounds: Any = None,
    grid: Points | Sequence[Grid] | None = None,
    columns: Mapping[Any, Any] | None = None,
    pairs: str | Sequence[Sequence[Any]] = "auto",
    method: str = "auto",
    bins: int | Sequence[int] | str = "auto",
    missing: float | str | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> Any:
    """Release k synthetic records that resemble those of X, epsilon-differentially private for one replaced record.

    Parameters
    ----------
    X : array_like of shape (n,) or (n, r), or a table
        Private data, as in `histogram`; n >= 1 is public. Missing records count as the lower bound; of a single column
        without bounds they are left out, unless `missing` says otherwise. With `columns`, a frame or another table, as
        in `marginals`, where missing numbers of columns without bounds come out as NaN.
    k : int, optional
        Number of synthetic records, at least 1. Default: n.
    epsilon, bounds, grid
        See `histogram`. A single column needs no bounds with "quantiles", and `grid` may be a `FloatGrid`.
    delta : float
        In [0, 1). Only for "tree": with Gaussian noise where that is less.
    columns : mapping from names to domains, optional
        Public domains of the columns of a table, as in `marginals`, instead of bounds and grid. For "tree" alone.
    pairs : {"auto", "adaptive", "tree", "all"}, or sequence of tuples of names
        The columns that the records follow together, as in `marginals`. For "tree" alone.
    method : {"auto", "quantiles", "tree", "perturbed", "smoothed", "ks", "series"}
        "quantiles" draws any number of records of one column between about ``sqrt(n epsilon) / 2`` jointly released
        quantiles, at most 127: close where the data are, for any width of the bounds. Without bounds they are at most
        ``n epsilon / 120``, and below n epsilon = 270 a `UtilityWarning` says that records may be far from all others.
        "perturbed" draws any number of records from one `PerturbedHistogram`. "smoothed" draws from the
        `SmoothedHistogram`, where every draw spends its share of the budget: for few records from large data. "ks" is
        the exponential mechanism `KolmogorovSmirnov`, with at most 8191 records; "series" draws any number of records
        from `density`; both support one column only. "tree" draws any number of records with any number of columns from
        `marginals`: single columns and pairs of them. "auto" is "tree" for a table or for more than four columns;
        "quantiles" for one column, without `bins`, if n epsilon is at least 200 or if there are no bounds; else
        "perturbed".
    bins : int, sequence of ints, or "auto"
        See `histogram`; only for "perturbed" and "smoothed". With "smoothed", "auto" minimises
        `dpfast.theory.smoothed_mise` for n, k and epsilon under a centred normal density with three standard deviations
        to each bound.
    missing, rng, workers, explain
        See `histogram`. ``missing="drop"`` is for "quantiles", whose records are then like those that are present, and
        for "tree", where missing numbers come out as NaN. `explain` also has the choice of "auto" for one column, which
        `dpfast.explain` shows without data.

    Returns
    -------
    ndarray of float64, shape (k,) or (k, r), like X; or a table of the kind of X
        Grid points, inside the bounds; integers if the step is 1. A table is of pandas, polars or Arrow, a dict or a
        structured array.

    Raises
    ------
    TypeError, ValueError
        As in `histogram`, or if the method is unknown.

    Notes
    -----
    Privacy: https://dpfast.readthedocs.io/en/latest/proofs/perturbed-histogram.html,
    https://dpfast.readthedocs.io/en/latest/proofs/smoothed-histogram.html,
    https://dpfast.readthedocs.io/en/latest/proofs/kolmogorov.html,
    https://dpfast.readthedocs.io/en/latest/proofs/series.html,
    https://dpfast.readthedocs.io/en/latest/proofs/joint-quantiles.html,
    https://dpfast.readthedocs.io/en/latest/proofs/marginals.html. Cost: O(n + k); O(k) for "smoothed"; for "ks" see
    `KolmogorovSmirnov`, for "quantiles" `Quantiles`.

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
    >>> pay = np.random.default_rng(0).lognormal(10, 1, 10_000)
    >>> bool(abs(np.median(dpf.synthesize(pay, 5000, epsilon=1.0)) - np.exp(10)) < 2000)
    True
    """
    checks.choice("method", method, ("auto", *METHODS, "tree"))
    k = None if k is None else checks.whole("k", k, least=1)
    epsilon = checks.positive_down("epsilon", epsilon)
    threads = checks.threads(workers)
    bit_generator(rng)  # reject invalid arguments before reading the data
    delta = checks.delta_down(delta)
    if columns is not None:
        _check_table(method, bounds, grid, missing, bins)
    elif method == "tree" or (method == "auto" and _is_wide(X)):
        columns = _domains(X, bounds, grid, missing, bins)
    if columns is not None:
        columns = dict(domains := columns_of(columns))
        names = [name for name, _ in domains]
        marginals_of(pairs, names)  # reject wrong names before reading the data
        released = release_marginals(
            X, columns, pairs, epsilon, delta, "replace-one", rng, threads, explain, sampled=True
        )
        given = DataColumns(X, names)
        whole = whole_columns(domains, given)
        drawn = released.sample(given.n if k is None else k, rng)
        labels = {name: column.labels for name, column in domains if isinstance(column, Categories)}
        return like(X, {name: x.astype(np.int64) if name in whole else x for name, x in drawn.items()}, labels)
    if delta or pairs != "auto":
        raise ValueError("delta must be 0, and pairs 'auto', unless the method is 'tree'")
    values: NDArray[Any] | Chunks
    grids: tuple[Points, ...]
    unbounded = bounds is None and (grid is None or isinstance(grid, FloatGrid))
    if unbounded and method in ("auto", "quantiles") and bins == "auto":
        values, grids, dimensions = _unbounded(X, grid, missing)
    else:
        values, grids, dimensions = table(X, bounds, grid, missing)
    k = checks.records(records_of(values)) if k is None else k
    request = Request(values, grids, k, bins, epsilon, rng, threads, explain)
    chosen = _automatic(request) if method == "auto" else method
    if chosen != "quantiles" and any(getattr(part, "missing", None) == "drop" for part in grids):
        raise ValueError(
            f"missing='drop' is for method='quantiles' of one column, which leaves missing records out, and for "
            f"'tree', where they come out as NaN, not for {chosen!r}"
        )
    if method == "auto" and len(grids) == 1 and bins == "auto" and explain is not False:
        choice = synthesis_choice(k, n=checks.records(records_of(values)), epsilon=epsilon, grid=grids[0])
        tell(choice.comparison, explain)
    records = METHODS[chosen](request)
    return records.reshape(k, len(grids)) if dimensions == 2 else records.reshape(k)
