"""Private means, sums, counts, variances and standard deviations: one call each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dpfast._kernels._calls import Parameters
from dpfast.choosing import Explain, explained
from dpfast.core import checks
from dpfast.core.grid import Grid
from dpfast.core.types import Exact, Records
from dpfast.location.rows import moment_of
from dpfast.mechanisms.methods import count_of, release_of
from dpfast.random import RandomSource
from dpfast.statistics import (
    Mean,
    Sum,
    Variance,
)
from dpfast.streaming import Chunks

__all__ = [
    "count",
    "mean",
    "std",
    "sum",
    "variance",
]


_MEAN, _SUM, _VARIANCE = Mean(), Sum(), Variance()


def mean(
    x: Records | Chunks,
    *,
    epsilon: Exact,
    bounds: Any = None,
    grid: Grid | Sequence[Grid] | None = None,
    center: Any = None,
    radius: float | None = None,
    delta: Exact = 0.0,
    method: str = "auto",
    distribution: Any = None,
    neighbors: str = "replace-one",
    missing: float | str | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> Any:
    """Release the mean of numbers or rows, (epsilon, delta)-differentially private for one replaced record.

    Parameters
    ----------
    x : array_like of shape (n,) or (n, d)
        Numbers, or a record in each row; data frames, too. Of NaN and None see `missing`.
    bounds : pair (lower, upper), d pairs, or for frames a mapping from column names to pairs; or "private"
        Public bounds in data units, chosen without knowledge of x. For rows, one pair for all columns or one for each:
        ``[(0, 1), (0, 9)]``, or ``{"share": (0, 1), "grade": (0, 9)}``. For numbers, "private" finds bounds with a
        tenth to a half of epsilon, from quantiles moved outward; the rest releases the mean. n epsilon must be at least
        448 (https://dpfast.readthedocs.io/en/latest/guides/bounds.html).
    grid : Grid, or d of them
        Instead of `bounds`.
    radius, center : float
        For rows, instead of `bounds`: an l2 ball in data units around a public center, one number or d, by default 0.
        Rows outside are moved to the nearest point; a row with NaN or an infinity becomes the center.
    delta : float
        0 for numbers. For rows a positive delta allows Gaussian noise, used where its expected size is less.
    method : {"auto", "global-sensitivity", "inverse-sensitivity", "smooth-sensitivity", "private-bounds"}
        "auto" takes the mechanism that public numbers show to have less error: see `median`. "global-sensitivity":
        noise of scale width / (n epsilon), width the distance of the bounds. The others are for numbers: inverse
        sensitivity is better only for records near a bound, or with large epsilon. "private-bounds" first finds
        narrower bounds inside `bounds` privately, for bounds that may be several times too wide. It needs n epsilon of
        at least 384, and loses the few records that are far from all others, such as the ones among many zeros, so that
        "auto" takes it only if `distribution` is given, a pair of typical values suffices
        (https://dpfast.readthedocs.io/en/latest/guides/bounds.html).
    neighbors : {"replace-one", "add-remove"}
        "add-remove" protects the addition or removal of a record: the number of records is private, and may be 0. The
        mean is the quotient of a noisy sum and a noisy count, within the bounds. Other methods, bounds="private" and
        rows use a noisy number of the records, chosen at random, for a tenth of epsilon (`Resized`).
    missing : float, "lower", "half" or "drop", optional
        What NaN and None become: this value, clamped to the bounds; the lower bound; the lower and the upper bound at
        even and odd positions (from 0, of the record in x or in each chunk), together like the middle of the bounds; or
        not a record. The mean of numbers takes "drop" at no cost (`PresentMean`): but for fewer than about 10 / epsilon
        missing records, which count as the middle of the bounds. All else needs ``neighbors="add-remove"`` for it.
        Default: that of `grid`, or "drop" where it is taken, else "lower", with a `UtilityWarning` for columns of
        tables and masked arrays; with bounds="private" a median that is released first. Not with a radius. See
        https://dpfast.readthedocs.io/en/latest/guides/missing.html.
    epsilon, distribution, rng, workers, explain
        See `median`, also for errors. Raises a ValueError also if the number of records is public and, times the number
        of grid points, 2**63 or more, for floats 2**62, of an even number of points 2**61, and for rows 2**61.

    Returns
    -------
    float, or ndarray of shape (d,)
        For numbers ``lower + k * step / n``, k an integer, within the bounds; for "add-remove", or with missing ones,
        k and n are noisy.

    Notes
    -----
    Privacy: `GlobalSensitivity` (https://dpfast.readthedocs.io/en/latest/proofs/global-sensitivity.html,
    https://dpfast.readthedocs.io/en/latest/proofs/add-remove.html), `PresentMean` of floats
    (https://dpfast.readthedocs.io/en/latest/proofs/missing.html), for rows `NoisySums`
    (https://dpfast.readthedocs.io/en/latest/proofs/rows.html): the noise of all coordinates together costs epsilon and
    delta. Within bounds and for delta = 0, the expected noise of a coordinate is ``(d + 1) width / (2 n epsilon)``;
    splitting epsilon over the columns gives ``d width / (n epsilon)``. Cost: about 1.3 times ``np.mean(x)``, for rows
    at most that of ``np.mean(x, axis=0)``; the sum is an exact sum of integers.

    References
    ----------
    Dwork, McSherry, Nissim and Smith 2006; for rows Hardt and Talwar 2010, Balle and Wang 2018.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> pay = np.random.default_rng(0).lognormal(10.5, 0.6, 100_000)
    >>> abs(dpf.mean(pay, bounds=(0, 200_000), epsilon=1.0) - 43_400) < 300
    True
    >>> abs(dpf.mean(pay, bounds="private", epsilon=1.0) - 43_400) < 400
    True
    >>> abs(dpf.mean(pay, bounds=(0, 1e9), epsilon=1.0, method="private-bounds") - 43_400) < 400
    True
    >>> abs(dpf.mean(pay, bounds=(0, 200_000), epsilon=1.0, neighbors="add-remove") - 43_400) < 300
    True
    >>> X = np.random.default_rng(0).random((10_000, 3)) * [1, 10, 100]
    >>> bool(np.abs(dpf.mean(X, bounds=[(0, 1), (0, 10), (0, 100)], epsilon=1.0) / [1, 10, 100] - 0.5).max() < 0.02)
    True
    >>> dpf.mean(X, radius=100.0, center=[0.5, 5, 50], epsilon=1.0, delta=1e-6).shape
    (3,)
    """
    public = Parameters(bounds, grid, epsilon, delta, method, missing, distribution, neighbors)
    return moment_of(_MEAN, x, public, center, radius, rng, workers, explain)


def sum(
    x: Records | Chunks,
    *,
    epsilon: Exact,
    bounds: Any = None,
    grid: Grid | Sequence[Grid] | None = None,
    center: Any = None,
    radius: float | None = None,
    delta: Exact = 0.0,
    method: str = "auto",
    distribution: Any = None,
    neighbors: str = "replace-one",
    missing: float | str | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> Any:
    """Release the sum of numbers or rows, (epsilon, delta)-differentially private for one replaced record.

    Parameters
    ----------
    x : array_like of shape (n,) or (n, d)
    method : {"auto", "global-sensitivity", "private-bounds"}
        Noise of scale width / epsilon, width the distance of the bounds; or, for numbers, narrower bounds found
        privately, which "auto" compares for an assumed distribution: see `mean`.
    neighbors : {"replace-one", "add-remove"}
        "add-remove" protects the addition or removal of a record: the number of records is private, and the noise has
        the scale of the larger bound in magnitude / epsilon.
    epsilon, bounds, grid, center, radius, delta, distribution, missing, rng, workers, explain
        See `mean`, also for missing values, errors, privacy, cost and references. The default of `missing` is 0, within
        the bounds: then the sum is that of the records that are present, as for "drop" with "add-remove".

    Returns
    -------
    float, or ndarray of shape (d,)
        For numbers a multiple of the step (rounded to float64), between ``n * lower`` and ``n * upper`` if n is public.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> days = np.random.default_rng(0).integers(0, 30, 10_000)
    >>> 143_000 < dpf.sum(days, bounds=(0, 30), epsilon=1.0) < 146_000
    True
    """
    public = Parameters(bounds, grid, epsilon, delta, method, missing, distribution, neighbors)
    return moment_of(_SUM, x, public, center, radius, rng, workers, explain)


def count(
    x: Records | Chunks,
    *,
    epsilon: Exact,
    within: tuple[float, float] | None = None,
    neighbors: str = "add-remove",
    missing: float | str | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> int:
    """Release the number of records, epsilon-differentially private for one record added or removed.

    Parameters
    ----------
    x : array_like of shape (n,)
        Private data, never modified: numbers, where NaN and None count, too, unless `missing` is "drop". n = 0 is
        allowed. Also `dpfast.Chunks`. To count the records with a property of each record, select them first:
        ``x[x > limit]``.
    epsilon : float
        Positive.
    within : pair of float, optional
        Public. Count only x with lower <= x <= upper, compared as float64, which excludes NaN. Bounds may be infinite.
    neighbors : {"add-remove"}
        For one replaced record the number of all records is public.
    missing : float, "lower" or "drop", optional
        "drop" counts the records that are not missing; the others, of which "lower" is the default, count all.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        As for other functions, but without effect: one thread compares the records with `within`.
    explain : bool or callable
        See `median`.

    Returns
    -------
    int
        At least 0; exact up to 2**53, rounded to float64 above.

    Raises
    ------
    TypeError, ValueError
        Parameters of a wrong type or out of range, x of a wrong shape or dtype; never because of the values in x.

    Notes
    -----
    Privacy: `GlobalSensitivity` with ``Count()`` under "add-remove",
    https://dpfast.readthedocs.io/en/latest/proofs/add-remove.html: discrete Laplace noise of scale 1 / epsilon, exact,
    then clamped to 0. For one replaced record the number of all records is public; count the records in a range by
    `dpfast.sum` of booleans. Cost: O(1), or one comparison pass for `within`.

    References
    ----------
    Ghosh, Roughgarden and Sundararajan 2009, "Universally utility-maximizing privacy mechanisms".

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> ages = np.random.default_rng(0).integers(0, 100, 10_000)
    >>> 9_950 < dpf.count(ages, epsilon=1.0) < 10_050
    True
    >>> 7_900 < dpf.count(ages, within=(18, float("inf")), epsilon=1.0) < 8_500
    True
    """
    checks.choice("neighbors", neighbors, ("add-remove",))
    return int(explained(count_of(within, epsilon, missing), explain, x)(x, rng=rng, workers=workers))


def variance(
    x: Records | Chunks,
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
    """Release the population variance of x (NumPy's ddof=0), epsilon-differentially private for one replaced record.

    Parameters
    ----------
    x : array_like of shape (n,)
    method : {"auto", "global-sensitivity", "private-bounds", "moments"}
        Noise of scale ``width**2 (n - 1) / (n**2 epsilon)``, width the distance of the bounds, which "auto" takes
        without a `distribution`; narrower bounds found privately, see `mean`, for bounds that may be several times too
        wide; or noise on the sum and the sum of squares together (`MomentPair`), which is 3 times less where the mean
        is near the middle of the bounds, and up to 1.25 times more where it is near one of them. Within bounds found
        privately the same pair is taken if the released quantiles show tails on both sides.
    distribution : object or pair (low, high), optional
        Public: what "auto" assumes of the records, see `mean`; it then takes the method of least expected error.
    epsilon, bounds, grid, delta, neighbors, missing, rng, workers, explain
        See `mean`, also for missing values, errors, privacy and references.

    Returns
    -------
    float
        At least 0, at most ``width**2 / 4``.

    Notes
    -----
    Cost: about 0.8 times ``np.var(x)``; the sums are exact sums of integers.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> days = np.random.default_rng(0).integers(0, 30, 10_000)
    >>> 72 < dpf.variance(days, bounds=(0, 30), epsilon=1.0) < 78
    True
    """
    public = Parameters(bounds, grid, epsilon, delta, method, missing, distribution, neighbors)
    return float(release_of(_VARIANCE, x, public, rng, workers, explain))


def std(
    x: Records | Chunks,
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
    """Release the population standard deviation of x, the square root of a release of `variance`.

    Parameters
    ----------
    x : array_like of shape (n,)
    epsilon, bounds, grid, delta, method, distribution, missing, rng, workers, explain
        See `variance`, also for missing values, errors, privacy, cost and references.

    Returns
    -------
    float
        At least 0, at most half the distance of the bounds.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> days = np.random.default_rng(0).integers(0, 30, 10_000)
    >>> 8.4 < dpf.std(days, bounds=(0, 30), epsilon=1.0) < 8.9
    True
    """
    public = Parameters(bounds, grid, epsilon, delta, method, missing, distribution, neighbors)
    return math.sqrt(release_of(_VARIANCE, x, public, rng, workers, explain))
