"""Medians and quantiles: one function per statistic, one line on a mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast import _checks
from dpfast.grid import Grid
from dpfast.inverse import InverseSensitivity
from dpfast.mechanism import Mechanism
from dpfast.quantiles import Quantiles
from dpfast.random import RandomSource
from dpfast.statistics import Median, Quantile, Statistic

_METHODS = ("inverse-sensitivity",)


def median(
    x: ArrayLike,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    grid: Grid | None = None,
    delta: float = 0.0,
    method: str = "inverse-sensitivity",
    rng: RandomSource = None,
    workers: int = 1,
) -> float:
    """Release the lower median of x, epsilon-differentially private for one replaced record.

    Parameters
    ----------
    x : array_like of shape (n,)
        Private data: float64, float32, integers or booleans, any stride, read-only or memory-mapped; never modified.
        NaN (and None in a list) goes to ``grid.missing``. n >= 1 is public.
    epsilon : float
        Positive.
    bounds : tuple of two floats
        Public bounds in data units, chosen without looking at x; short for ``grid=Grid(*bounds)``, with step 1 if x
        declares an integer or boolean dtype.
    grid : Grid
        Instead of `bounds`.
    delta : float
        Must be 0: the mechanism is pure.
    method : {"inverse-sensitivity"}
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Threads that read the data.

    Returns
    -------
    float
        A point of the grid.

    Raises
    ------
    TypeError
        Neither or both of `bounds` and `grid`; data that are not numbers.
    ValueError
        A parameter out of range; x empty or not one-dimensional.

    Notes
    -----
    Privacy: `InverseSensitivity`, docs/proofs/nested-intervals.md. Cost: O(n), about two or three times ``x.sum()``.

    References
    ----------
    Asi and Duchi 2020; Chaudhuri and Hsu 2012, section 3.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> pay = np.random.default_rng(0).lognormal(10.5, 0.6, 100_000)
    >>> 36_000 < dpf.median(pay, bounds=(0, 1_000_000), epsilon=1.0) < 37_000
    True
    """
    value: float = _mechanism(Median(), x, bounds, grid, epsilon, delta, method)(x, rng=rng, workers=workers)
    return value


@overload
def quantile(
    x: ArrayLike,
    q: float,
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    grid: Grid | None = None,
    delta: float = 0.0,
    method: str = "inverse-sensitivity",
    rng: RandomSource = None,
    workers: int = 1,
) -> float: ...
@overload
def quantile(
    x: ArrayLike,
    q: Sequence[float] | NDArray[np.floating[Any]],
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    grid: Grid | None = None,
    delta: float = 0.0,
    method: str = "inverse-sensitivity",
    rng: RandomSource = None,
    workers: int = 1,
) -> NDArray[np.float64]: ...
def quantile(
    x: ArrayLike,
    q: float | Sequence[float] | NDArray[np.floating[Any]],
    *,
    epsilon: float,
    bounds: tuple[float, float] | None = None,
    grid: Grid | None = None,
    delta: float = 0.0,
    method: str = "inverse-sensitivity",
    rng: RandomSource = None,
    workers: int = 1,
) -> Any:
    """Release the order statistic of rank ``max(1, ceil(q * n))``, or several, epsilon-differentially private.

    Neighbours: one replaced record.

    Parameters
    ----------
    x : array_like of shape (n,)
    q : float or sequence of float
        In [0, 1].
    epsilon : float
        Positive; for a sequence the total of all quantiles.
    bounds, grid, delta, method, rng, workers
        As for `median`, with the same errors, cost and references.

    Returns
    -------
    float or ndarray
        Points of the grid, in the order of q; they never decrease where q increases.

    Notes
    -----
    Privacy: `InverseSensitivity` for a float, `Quantiles` for a sequence.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> pay = np.random.default_rng(0).lognormal(10.5, 0.6, 100_000)
    >>> 76_000 < dpf.quantile(pay, 0.9, bounds=(0, 1_000_000), epsilon=1.0) < 81_000
    True
    >>> low, high = dpf.quantile(pay, [0.1, 0.9], bounds=(0, 1_000_000), epsilon=1.0).tolist()
    >>> 16_000 < low < 18_000 and 76_000 < high < 81_000
    True
    """
    statistic = Quantile(q) if np.ndim(q) == 0 else _checks.fractions("q", q)  # type: ignore[arg-type]
    return _mechanism(statistic, x, bounds, grid, epsilon, delta, method)(x, rng=rng, workers=workers)


def _mechanism(
    statistic: Statistic | tuple[float, ...],
    x: Any,
    bounds: tuple[float, float] | None,
    grid: Grid | None,
    epsilon: float,
    delta: float,
    method: str,
) -> Mechanism:
    if method not in _METHODS:
        raise ValueError(f"method must be {' or '.join(map(repr, _METHODS))}, not {method!r}")
    if _checks.delta_down(delta):
        raise ValueError(f"delta must be 0 for method={method!r}, which is pure, not {delta!r}")
    epsilon = _checks.positive_down("epsilon", epsilon)  # before the cache, where 1 and True are the same key
    if (bounds is None) == (grid is None):
        raise TypeError("give either bounds=(lower, upper) or grid=Grid(...): public bounds on the values")
    if bounds is None:
        return _of(statistic, grid, epsilon)  # type: ignore[arg-type]
    lower, upper = _checks.pair("bounds", bounds)
    return _bounded(statistic, lower, upper, 1.0 if _checks.declares_integers(x) else None, epsilon)


@lru_cache(maxsize=256)
def _bounded(
    statistic: Statistic | tuple[float, ...], lower: float, upper: float, step: float | None, epsilon: float
) -> Mechanism:
    return _of(statistic, Grid(lower, upper, step=step), epsilon)


def _of(statistic: Statistic | tuple[float, ...], grid: Grid, epsilon: float) -> Mechanism:
    if isinstance(statistic, tuple):
        return Quantiles(statistic, grid=grid, epsilon=epsilon)
    return InverseSensitivity(statistic, grid=grid, epsilon=epsilon)
