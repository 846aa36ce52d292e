"""Private quantiles, trimmed and Winsorized means, interquartile ranges and Huber's estimate: one call each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._calls import Parameters
from dpfast.choosing import Explain
from dpfast.core import checks
from dpfast.core.grid import Grid, Points
from dpfast.core.types import Exact, Records
from dpfast.mechanisms.methods import range_of, release_of
from dpfast.random import RandomSource
from dpfast.statistics import (
    Huber,
    InterquartileRange,
    Median,
    Quantile,
    Statistic,
    TrimmedMean,
    WinsorizedMean,
)
from dpfast.statistics.named import quantile_of
from dpfast.streaming import Chunks

__all__ = [
    "huber",
    "iqr",
    "median",
    "quantile",
    "trimmed_mean",
    "winsorized_mean",
]


_MEDIAN, _RANGE = Median(), InterquartileRange()


def _with(kind: Callable[[Any], Statistic], parameter: Any) -> Statistic:
    """Return a statistic with one parameter: of equal floats the same object, by which `release_of` knows it."""
    return _with_float(kind, parameter) if type(parameter) is float else kind(parameter)


@lru_cache(maxsize=256)
def _with_float(kind: Callable[[Any], Statistic], parameter: float) -> Statistic:
    return kind(parameter)


@lru_cache(maxsize=256)
def _between(q: float, definition: str) -> Statistic | tuple[float, ...]:
    """Return `quantile_of`: of equal parameters the same object."""
    return quantile_of(q, definition)


def median(
    x: Records | Chunks,
    *,
    epsilon: Exact,
    bounds: tuple[float, float] | None = None,
    grid: Points | None = None,
    delta: Exact = 0.0,
    method: str = "auto",
    distribution: Any = None,
    measure: str | Sequence[int] = "auto",
    definition: str = "record",
    neighbors: str = "replace-one",
    missing: float | str | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> float:
    """Release the median of x, (epsilon, delta)-differentially private for one replaced record.

    It needs no bounds if n epsilon is at least 81. With less, a `UtilityWarning` says that the release may be far from
    all records: give bounds then. With ``neighbors="add-remove"`` it takes n epsilon of 39; n is private there, and the
    warning presumes 100 records.

    Parameters
    ----------
    x : array_like of shape (n,)
        Private data: float64, float32, integers or booleans, any stride, read-only or memory-mapped; never modified.
        NaN and None are left out, unless `missing` or a grid says otherwise. n >= 1, which counts them, is public but
        for `neighbors` "add-remove". Also `dpfast.Chunks` of such arrays.
    epsilon : float
        Positive.
    bounds : tuple of two floats, optional
        Public bounds in data units, chosen without knowledge of x; short for ``grid=Grid(*bounds)``, with step 1 if x
        has an integer or boolean dtype. They pay with few records.
    grid : Grid or FloatGrid, optional
        Instead of `bounds`. Default of both: `FloatGrid()`, which rounds to 25 significant bits, and values below
        6.1e-5 to multiples of 3.6e-12; if x has an integer or boolean dtype, its integers from -2**63 to 2**64, all up
        to 2**25 and those of 25 significant bits beyond. Smooth sensitivity needs bounds.
    delta : float
        What "auto" and "smooth-sensitivity" may use; a mechanism that is pure costs no delta.
    method : {"auto", "inverse-sensitivity", "interpolated", "smooth-sensitivity"}
        "auto" takes the mechanism that public numbers show to have less error, never data
        (https://dpfast.readthedocs.io/en/latest/guides/choosing.html); `dpfast.explain` shows the choice. For quantiles
        it is inverse sensitivity unless `distribution` is given. "interpolated" is inverse sensitivity with
        ``interpolate=True`` (`InverseSensitivity`), for one quantile of records without ties within bounds.
    distribution : object or pair of floats, optional
        For "auto": what you assume for the records, which must not be estimated from x. A distribution, like
        ``scipy.stats.norm(50, 15)``: the expected errors under it decide. Or typical values, like ``(20, 80)``, between
        which nine tenths of the records are: another method than the default is taken if it is better under each of
        three shapes with these values (https://dpfast.readthedocs.io/en/latest/guides/choosing.html).
    measure : {"auto", "uniform", "integers", "decimal", "dyadic"} or sequence of int
        Public weights of the grid points, see `InverseSensitivity`: "integers" for records that are whole numbers given
        as floats, such as ages, which it releases with less error. Only for inverse sensitivity; without bounds "auto",
        which favours modest magnitudes and round numbers, or "uniform".
    definition : {"record", "linear"}
        "record": the lower median, one of the records. "linear": ``np.median(x)``, the mean of the middle two for an
        even n, and ``np.quantile(x, q)``: a statistic of its own (`dpfast.statistics.LinearQuantile`) by inverse or
        smooth sensitivity, within bounds. It pays with few records and a large epsilon, and loses where many records
        are equal: of 40 zeros within (0, 100) at epsilon = 1 the lower median is 0, and this one 47 away on average.
    neighbors : {"replace-one", "add-remove"}
        "add-remove" protects the addition or removal of a record: the number of records is private, and may be 0. One
        quantile by inverse sensitivity has a mechanism of its own; all else uses a noisy number of the records, chosen
        at random, for a tenth of epsilon (`Resized`).
    missing : float, "lower", "half" or "drop", optional
        What NaN and None become: this value, clamped to the bounds; the lower bound; the lower and the upper bound at
        even and odd positions (from 0, in x or in each chunk), which moves a median little; or not a record.
        Quantiles by inverse sensitivity take "drop" at no cost, for a public number of records, too, and so does
        `mean`; all else needs ``neighbors="add-remove"`` for it. Default: that of `grid`, or "drop" where it is taken,
        else "lower". A `UtilityWarning` says so for columns of tables and masked arrays. See
        https://dpfast.readthedocs.io/en/latest/guides/missing.html.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Threads that read the data.
    explain : bool or callable
        True prints what the release does before it reads x: mechanism, guarantee, grid, missing values, expected error,
        all from public numbers; and afterwards that the release is at a bound, if it is. A function receives the texts
        instead.

    Returns
    -------
    float
        A point of the grid.

    Raises
    ------
    TypeError
        Both of `bounds` and `grid`, or neither for a method that needs bounds; data that are not numbers.
    ValueError
        A parameter out of range; x empty or not one-dimensional.

    Notes
    -----
    Privacy: `InverseSensitivity` (https://dpfast.readthedocs.io/en/latest/proofs/nested-intervals.html) or
    `SmoothSensitivity` (https://dpfast.readthedocs.io/en/latest/proofs/smooth-sensitivity.html). Cost: O(n), about two
    or three times ``x.sum()``.
    Without bounds, n epsilon must be at least 81 for the median and 438 for the 0.1- or the 0.9-quantile: with less,
    the many points far from the data may outweigh those near the quantile.
    ``InverseSensitivity(Quantile(q), grid=FloatGrid(), epsilon=epsilon).error(n, distribution=...)`` predicts it, and
    https://dpfast.readthedocs.io/en/latest/guides/bounds.html has a table. With more, bounds gain little.
    The lower median is one of the records, the smaller of the middle two for an even n; ``np.median`` is their mean.
    The mean distance from it, for standard normal records within (-10, 10), is .034 for 50 records at epsilon = 8, and
    .006 with ``definition="linear"``; .067 and .064 at epsilon = 2; .0018 and .0003 for 1,000 records at epsilon = 8.

    References
    ----------
    Asi and Duchi 2020; Chaudhuri and Hsu 2012, section 3.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> pay = np.random.default_rng(0).lognormal(10.5, 0.6, 100_000)
    >>> 36_000 < dpf.median(pay, epsilon=1.0) < 37_000
    True
    >>> 25_000 < dpf.median(pay[:400], bounds=(0, 200_000), epsilon=2.0) < 55_000
    True
    """
    statistic = _MEDIAN if definition == "record" else _between(0.5, definition)
    public = Parameters(bounds, grid, epsilon, delta, method, missing, distribution, neighbors, measure)
    return float(release_of(statistic, x, public, rng, workers, explain))


@overload
def quantile(
    x: Records | Chunks,
    q: float,
    *,
    epsilon: Exact,
    bounds: tuple[float, float] | None = None,
    grid: Points | None = None,
    delta: Exact = 0.0,
    method: str = "auto",
    distribution: Any = None,
    measure: str | Sequence[int] = "auto",
    definition: str = "record",
    neighbors: str = "replace-one",
    missing: float | str | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> float: ...


@overload
def quantile(
    x: Records | Chunks,
    q: Sequence[float] | NDArray[np.floating[Any]],
    *,
    epsilon: Exact,
    bounds: tuple[float, float] | None = None,
    grid: Points | None = None,
    delta: Exact = 0.0,
    method: str = "auto",
    distribution: Any = None,
    measure: str | Sequence[int] = "auto",
    definition: str = "record",
    neighbors: str = "replace-one",
    missing: float | str | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> NDArray[np.float64]: ...


def quantile(
    x: Records | Chunks,
    q: float | Sequence[float] | NDArray[np.floating[Any]],
    *,
    epsilon: Exact,
    bounds: tuple[float, float] | None = None,
    grid: Points | None = None,
    delta: Exact = 0.0,
    method: str = "auto",
    distribution: Any = None,
    measure: str | Sequence[int] = "auto",
    definition: str = "record",
    neighbors: str = "replace-one",
    missing: float | str | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> Any:
    """Release the order statistic of rank ``max(1, ceil(q * n))``, or several, (epsilon, delta)-differentially private.

    Neighbours: one replaced record. It needs no bounds if n epsilon min(q, 1 - q) is at least 50 for each q. With less,
    a `UtilityWarning` may say that the release may be far from all records.

    Parameters
    ----------
    x : array_like of shape (n,)
    q : float or sequence of float
        In [0, 1]. The q-quantile is a record, that of ``np.quantile(x, q, method="inverted_cdf")``, not a point between
        two, as NumPy has by default: that is ``definition="linear"``, for a float.
    epsilon : float
        Positive; for a sequence the total of all quantiles.
    bounds, grid, delta, method, distribution, measure, definition, neighbors, missing, rng, workers, explain
        See `median`, also for errors, missing values, cost and references. Several quantiles for "add-remove" use
        `Resized`.

    Returns
    -------
    float or ndarray
        Points of the grid, in the order of q; a larger q never has a smaller point.

    Notes
    -----
    Privacy: `InverseSensitivity` for a float, `Quantiles` for a sequence.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> pay = np.random.default_rng(0).lognormal(10.5, 0.6, 100_000)
    >>> 76_000 < dpf.quantile(pay, 0.9, epsilon=1.0) < 81_000
    True
    >>> low, high = dpf.quantile(pay, [0.1, 0.9], epsilon=1.0).tolist()
    >>> 16_000 < low < 18_000 and 76_000 < high < 81_000
    True
    """
    if type(q) is not float:
        q = tuple(q) if type(q) is list else checks.once(q)
    single = type(q) is float or (type(q) is not tuple and np.ndim(q) == 0)
    if definition != "record":
        statistic: Any = (_between if type(q) is float else quantile_of)(q, definition)
    else:
        statistic = _with(Quantile, q) if single else q if type(q) is tuple else checks.fractions("q", q)
    public = Parameters(bounds, grid, epsilon, delta, method, missing, distribution, neighbors, measure)
    return release_of(statistic, x, public, rng, workers, explain)


def trimmed_mean(
    x: Records | Chunks,
    trim: float,
    *,
    epsilon: Exact,
    bounds: tuple[float, float] | str | None = None,
    grid: Grid | None = None,
    delta: Exact = 0.0,
    method: str = "auto",
    distribution: Any = None,
    neighbors: str = "replace-one",
    missing: float | str | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> float:
    """Release the mean without the floor(trim * n) smallest and largest records, epsilon-differentially private.

    Neighbours: one replaced record.

    Parameters
    ----------
    x : array_like of shape (n,)
    trim : float
        Fraction cut from each side, in [0, 0.5), as in `scipy.stats.trim_mean`.
    bounds : tuple of two floats, or "private"
        See `mean`; bounds or a grid are needed.
    epsilon, grid, delta, method, distribution, neighbors, missing, rng, workers, explain
        See `median`, also for errors, privacy and references. NaN counts as the lower bound, with
        bounds="private" as a released median, unless `missing` says otherwise. Raises a ValueError also if the number
        of records in the mean times the number of grid points is 2**63 or more.

    Returns
    -------
    float
        ``lower + k * step / g``, g the number of records in the mean, k an integer.

    Notes
    -----
    Cost: O(n), about 0.15 times `scipy.stats.trim_mean`; the sum is an exact sum of integers.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> pay = np.random.default_rng(0).lognormal(10.5, 0.6, 100_000)
    >>> 38_000 < dpf.trimmed_mean(pay, 0.1, bounds=(0, 1_000_000), epsilon=1.0) < 40_000
    True
    """
    public = Parameters(bounds, grid, epsilon, delta, method, missing, distribution, neighbors)
    return float(release_of(_with(TrimmedMean, trim), x, public, rng, workers, explain))


def winsorized_mean(
    x: Records | Chunks,
    trim: float,
    *,
    epsilon: Exact,
    bounds: tuple[float, float] | str | None = None,
    grid: Grid | None = None,
    delta: Exact = 0.0,
    method: str = "auto",
    distribution: Any = None,
    neighbors: str = "replace-one",
    missing: float | str | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> float:
    """Release the Winsorized mean: floor(trim * n) records pulled in at each end, epsilon-differentially private.

    Neighbours: one replaced record.

    Parameters
    ----------
    x : array_like of shape (n,)
    trim : float
        Fraction on each side to replace by the nearest remaining record, in [0, 0.5).
    epsilon, bounds, grid, delta, method, distribution, neighbors, missing, rng, workers, explain
        See `trimmed_mean`, also for missing values, returns (g = n), errors, privacy, cost and references.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> pay = np.random.default_rng(0).lognormal(10.5, 0.6, 100_000)
    >>> 39_000 < dpf.winsorized_mean(pay, 0.1, bounds=(0, 1_000_000), epsilon=1.0) < 42_000
    True
    """
    public = Parameters(bounds, grid, epsilon, delta, method, missing, distribution, neighbors)
    return float(release_of(_with(WinsorizedMean, trim), x, public, rng, workers, explain))


def iqr(
    x: Records | Chunks,
    *,
    epsilon: Exact,
    bounds: tuple[float, float] | None = None,
    grid: Grid | None = None,
    delta: Exact = 0.0,
    method: str = "auto",
    distribution: Any = None,
    neighbors: str = "replace-one",
    missing: float | str | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> float:
    """Release the interquartile range, ``Quantile(0.75)`` minus ``Quantile(0.25)``, epsilon-differentially private.

    Neighbours: one replaced record. It needs no bounds if n epsilon is at least 173.

    Parameters
    ----------
    x : array_like of shape (n,)
    epsilon, bounds, grid, delta, method, distribution, neighbors, missing, rng, workers, explain
        See `median`, also for errors, privacy and references. NaN counts as the lower bound, and is left out without
        bounds, unless `missing` says otherwise. Within bounds "drop" needs ``neighbors="add-remove"``.

    Returns
    -------
    float
        A multiple of the step, at least 0; without bounds, the difference of two points of the grid, rounded.

    Notes
    -----
    Without bounds it is the difference of two quantiles, which `Quantiles` releases together.
    Cost: O(n), about 0.15 times ``np.percentile(x, [25, 75])``, plus levels**2 / 2 steps of half a nanosecond, levels =
    min(n, 2 (log(size) + 42) / epsilon).

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> pay = np.random.default_rng(0).lognormal(10.5, 0.6, 100_000)
    >>> 29_000 < dpf.iqr(pay, epsilon=1.0) < 31_000
    True
    """
    public = Parameters(bounds, grid, epsilon, delta, method, missing, distribution, neighbors)
    if bounds is None and not isinstance(grid, Grid) and method in ("auto", "inverse-sensitivity"):
        return range_of(release_of((0.25, 0.75), x, public, rng, workers, explain))
    return float(release_of(_RANGE, x, public, rng, workers, explain))


def huber(
    x: Records | Chunks,
    k: float,
    *,
    epsilon: Exact,
    bounds: tuple[float, float] | str | None = None,
    grid: Grid | None = None,
    delta: Exact = 0.0,
    method: str = "auto",
    distribution: Any = None,
    neighbors: str = "replace-one",
    missing: float | str | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> float:
    """Release Huber's estimate of location with corner k, epsilon-differentially private.

    It is the least grid point theta with ``sum(clip(theta - x, -k, k)) >= 0``. Neighbours: one replaced record.

    Parameters
    ----------
    x : array_like of shape (n,)
    k : float
        Positive, in data units; rounded to a multiple of the step, at least one.
    epsilon, bounds, grid, delta, method, distribution, neighbors, missing, rng, workers, explain
        See `trimmed_mean`, also for missing values, errors, privacy and references. The release is a point
        of the grid. With given bounds, `workers` has no effect.

    Notes
    -----
    Cost: three passes over x, 8 bytes per record, a sort of the records near the corners, of all if epsilon n is small;
    and log(size) bisections of at most 2 (log(size) + 42) / epsilon levels.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> pay = np.random.default_rng(0).lognormal(10.5, 0.6, 100_000)
    >>> 37_500 < dpf.huber(pay, 20_000, bounds=(0, 1_000_000), epsilon=1.0) < 38_500
    True
    """
    public = Parameters(bounds, grid, epsilon, delta, method, missing, distribution, neighbors)
    return float(release_of(_with(Huber, k), x, public, rng, workers, explain))
