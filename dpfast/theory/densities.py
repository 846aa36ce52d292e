"""Wasserman and Zhou (2010): privacy and errors of histograms and synthetic records; theorems 5 to 8, both tables.

Densities are on the unit box [0, 1]^r: divide an integrated squared error by the volume of the bounds to convert it to
data units. Notation: m is the number of cells, r of columns, k of synthetic records; epsilon is the paper's alpha. All
results follow from public parameters and assumed distributions, never from data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.core import checks
from dpfast.core.least import least
from dpfast.theory.counts import MOST_BALANCED, noise_variance

_MOST_CELLS = 2**24


def smoothed_epsilon(delta: float, *, cells: SupportsIndex, n: SupportsIndex, k: SupportsIndex) -> float:
    """Exact privacy loss of k records drawn from a smoothed histogram: ``k log((1 - delta) m / (n delta) + 1)``.

    Parameters
    ----------
    delta : float
        Weight of the uniform density in the mixture with the histogram, in (0, 1]. (Not a failure probability.)
    cells : int
        Number of cells m, at least 2: with one cell the release does not depend on the data.
    n, k : int
        Number of records and of draws, at least 1.

    Returns
    -------
    float
        The largest log-ratio of the probabilities of a release under two data sets that differ in one record, up to
        rounding. It is attained if all draws fall in a cell with one record or none.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    Wasserman and Zhou 2010, Theorem 5, equation (4): stated there as sufficient, but exact.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.smoothed_epsilon(0.3, cells=3, n=3, k=2), 12)
    2.407945608652
    """
    weight = checks.fraction("delta", delta)
    m, n, k = checks.whole("cells", cells, least=2), checks.whole("n", n, least=1), checks.whole("k", k, least=1)
    if weight == 0:
        raise ValueError("delta must be positive: the histogram itself has no finite privacy loss")
    return k * math.log1p((1 - weight) * m / (n * weight))


def smoothed_delta(epsilon: float, *, cells: SupportsIndex, n: SupportsIndex, k: SupportsIndex) -> float:
    """Least weight of the uniform density for which k draws from a smoothed histogram are epsilon-private.

    Parameters
    ----------
    epsilon : float
        Positive.
    cells, n, k : int
        Number of cells m, records n and draws k, at least 1 each.

    Returns
    -------
    float
        ``m / (m + n (exp(epsilon / k) - 1))``, up to rounding; a release rounds it up to a multiple of 2**-64.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Equation (4) solved for delta. The paper's approximation (5), m k / (n epsilon), is larger, and may exceed 1.

    References
    ----------
    Wasserman and Zhou 2010, Theorem 5.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.smoothed_delta(1.0, cells=11, n=10_000, k=148), 4)
    0.1396
    """
    epsilon = checks.positive_down("epsilon", epsilon)
    m, n, k = (checks.whole(name, v, least=1) for name, v in (("cells", cells), ("n", n), ("k", k)))
    return _delta(epsilon, m, n, k)


def _delta(epsilon: float, m: int, n: int, k: int) -> float:
    rate = epsilon / k
    return m / (m + n * math.expm1(rate)) if rate < 700 else 0.0


def smoothed_mise(
    probabilities: ArrayLike, square_integral: float, *, n: SupportsIndex, k: SupportsIndex, delta: float
) -> float:
    """Mean integrated squared error of the histogram of k records drawn from a smoothed histogram.

    Parameters
    ----------
    probabilities : array_like
        Probabilities of the m equal cells under the assumed density p; they sum to 1.
    square_integral : float
        Integral of p**2 over the unit box; at least m times the sum of the squared probabilities.
    n, k : int
        Number of records and of draws, at least 1.
    delta : float
        Weight of the uniform density, in [0, 1]; a release uses `smoothed_delta`.

    Returns
    -------
    float
        Exact: expectation over data, the choice of records and draws.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    With P the probabilities, q = (1 - delta) P + delta / m, and e = q^2 + (1 - delta)^2 P (1 - P) / n the second moment
    of a cell's probability in the smoothed histogram::

        int p^2 - 2 m sum q P + m sum [e + (q - e) / k]

    References
    ----------
    Wasserman and Zhou 2010, equation (6).

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> from scipy.stats import beta
    >>> thirds = np.diff(beta(10, 10).cdf(np.arange(4) / 3))
    >>> delta = dpf.theory.smoothed_delta(1.0, cells=3, n=1000, k=34)
    >>> round(dpf.theory.smoothed_mise(thirds, 2.5414541452651447, n=1000, k=34, delta=delta), 4)
    0.2818
    """
    shares = np.asarray(probabilities, dtype=np.float64).ravel()
    if not (shares.size and np.all(shares >= 0) and abs(shares.sum() - 1) < 1e-6):
        raise ValueError("probabilities must be nonnegative and sum to 1")
    n, k = checks.whole("n", n, least=1), checks.whole("k", k, least=1)
    squares = float(np.square(shares).sum())
    integral = checks.positive("square_integral", square_integral)
    return _smoothed_mise(squares, integral, shares.size, n, k, checks.fraction("delta", delta))


def _smoothed_mise(squares: float, square_integral: float, m: int, n: int, k: int, delta: float) -> float:
    """`smoothed_mise` as a function of sum P^2, on which alone it depends."""
    kept = 1 - delta
    cross = kept * squares + delta / m  # sum q P
    second = kept**2 * squares + (2 * kept + delta) * delta / m + kept**2 * (1 - squares) / n  # sum e
    return square_integral - 2 * m * cross + m * (second + (1 - second) / k)


@dataclass(frozen=True)
class SmoothedChoice:
    """The result of `smoothed_optimum`.

    Attributes
    ----------
    bins : int
        Number of bins on each axis.
    k : int
        Number of draws.
    delta : float
        Weight of the uniform density.
    mise : float
        Mean integrated squared error of the histogram of the draws.
    """

    bins: int
    k: int
    delta: float
    mise: float


def smoothed_optimum(
    cdf: Callable[[NDArray[np.float64]], ArrayLike],
    square_integral: float,
    *,
    n: SupportsIndex,
    epsilon: float,
    k: SupportsIndex | None = None,
    bins: Iterable[SupportsIndex] | None = None,
    dimension: SupportsIndex = 1,
) -> SmoothedChoice:
    """Numbers of bins and draws of the smoothed histogram with the least error, for an assumed density.

    Parameters
    ----------
    cdf : callable
        Vectorised distribution function on [0, 1] of an assumed density, the same for each independent column.
    square_integral : float
        Integral over [0, 1] of the square of that density.
    n : int
        Number of records, at least 1.
    epsilon : float
        Positive.
    k : int, optional
        Number of draws. Default: the best of 60 values in geometric progression from 1 to n.
    bins : iterable of int, optional
        Candidate numbers of bins per axis. Default: 1 to 64, then in steps of a tenth to 4096, with at most 2**24
        cells.
    dimension : int
        Number of columns, at least 1.

    Returns
    -------
    SmoothedChoice

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    Wasserman and Zhou 2010, section 4, which gives orders; here the exact error is minimised.

    Examples
    --------
    >>> import dpfast as dpf
    >>> from scipy.stats import beta
    >>> best = dpf.theory.smoothed_optimum(beta(10, 10).cdf, 2.5414541452651447, n=1000, epsilon=1.0)
    >>> best.bins, best.k, round(best.mise, 4)
    (3, 34, 0.2818)
    """
    n, r = checks.whole("n", n, least=1), checks.whole("dimension", dimension, least=1)
    epsilon = checks.positive_down("epsilon", epsilon)
    integral = checks.positive("square_integral", square_integral) ** r
    draws = [checks.whole("k", k, least=1)] if k is not None else sorted({round(x) for x in np.geomspace(1, n, 60)})
    best: SmoothedChoice | None = None
    for c in _few_bins(r) if bins is None else (checks.whole("bins", c, least=1) for c in bins):
        shares = np.diff(np.asarray(cdf(np.arange(c + 1) / c), dtype=np.float64))
        squares = float(np.square(shares).sum()) ** r
        for drawn in draws:
            delta = _delta(epsilon, c**r, n, drawn)
            mise = _smoothed_mise(squares, integral, c**r, n, drawn, delta)
            if best is None or mise < best.mise:
                best = SmoothedChoice(c, drawn, delta, mise)
    if best is None:
        raise ValueError("bins must not be empty")
    return best


def _few_bins(dimensions: int) -> list[int]:
    numbers = list(range(1, 65))
    while numbers[-1] < 4096:
        numbers.append(min(4096, numbers[-1] * 11 // 10))
    return [c for c in numbers if c**dimensions <= _MOST_CELLS]


def perturbed_mise(
    n: SupportsIndex,
    bins: SupportsIndex | Sequence[SupportsIndex],
    *,
    epsilon: float,
    roughness: float,
    delta: float = 0.0,
    neighbors: str = "replace-one",
    noise: str = "auto",
) -> float:
    """Mean integrated squared error of a perturbed histogram before clipping, from an assumed roughness.

    Parameters
    ----------
    n : int
        Number of records, at least 1.
    bins : int, or sequence of ints
        Number of bins, one for all columns or one per column; at least 1.
    epsilon : float
        Positive.
    roughness : float
        At least 0: the integral of the squared gradient of the density over the unit box.
    delta, neighbors, noise
        See `noise_variance`.

    Returns
    -------
    float
        ``R / (12 c^2) + m / n + m^2 v / n^2``, where c is the least number of bins on an axis, m the number of cells
        and v the variance of the noise. An upper bound if axes have unequal numbers of bins.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    The three terms are the bias for narrow bins, the sampling error (without the small part -int p^2 / n) and the exact
    noise, with v of `noise_variance`, about 8 / epsilon^2 for many cells. Clipping reduces a large last term.

    References
    ----------
    Wasserman and Zhou 2010, Theorem 8 (1), with its constants.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.perturbed_mise(1000, 10, epsilon=0.1, roughness=99.5652), 4)
    0.1551
    """
    n, rough = checks.whole("n", n, least=1), checks.nonnegative("roughness", roughness)
    each = [checks.whole("bins", c, least=1) for c in (bins if isinstance(bins, Sequence) else (bins,))]
    m = math.prod(each)
    variance = noise_variance(epsilon, cells=m, delta=delta, neighbors=neighbors, noise=noise)
    return mise_with_noise(each, n, rough, (m / n) ** 2 * variance)


def mise_with_noise(bins: Sequence[int], n: int, roughness: float, noise_error: float) -> float:
    """`perturbed_mise`, given the part of it that the noise has."""
    return roughness / (12 * min(bins) ** 2) + math.prod(bins) / n + noise_error


def perturbed_bins(
    n: SupportsIndex,
    *,
    epsilon: float,
    roughness: float,
    dimension: SupportsIndex = 1,
    delta: float = 0.0,
    neighbors: str = "replace-one",
    noise: str = "auto",
) -> int:
    """Return the number of bins on each axis that minimises `perturbed_mise`.

    Parameters
    ----------
    n, epsilon, roughness, delta, neighbors, noise
        See `perturbed_mise`.
    dimension : int
        Number of columns r, at least 1.

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    The order n^(1 / (2 + r)) of Theorem 8 holds for large n epsilon; it ignores the noise, whose constant matters.

    References
    ----------
    Wasserman and Zhou 2010, Theorem 8 (1).

    Examples
    --------
    >>> import dpfast as dpf
    >>> [dpf.theory.perturbed_bins(n, epsilon=e, roughness=99.5652) for n, e in ((100, 1), (1000, 1), (1000, 0.1))]
    [9, 23, 10]
    """
    n, r = checks.whole("n", n, least=1), checks.whole("dimension", dimension, least=1)
    rough = checks.nonnegative("roughness", roughness)

    def error(c: int) -> float:
        return perturbed_mise(
            n, (c,) * r, epsilon=epsilon, roughness=rough, delta=delta, neighbors=neighbors, noise=noise
        )

    def rises(c: int) -> bool:
        return error(c + 1) >= error(c)

    # The error is convex in c up to the most cells with balanced noise, if that is Laplace, and above them.
    last = least(lambda c: (c + 1) ** r > MOST_BALANCED)
    below = range(1, last + 1) if delta else [least(lambda c: c >= last or rises(c))]
    return min(*below, last + least(lambda c: rises(last + c)), key=error)
