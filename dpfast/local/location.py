"""Means, medians and quantiles under local differential privacy."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from dpfast import noise
from dpfast.choosing import Choice, Explain, Known, tell
from dpfast.core import checks, containers
from dpfast.core.grid import Grid
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.spending import spending
from dpfast.core.traps import of_epsilon, of_few_within_bounds, warn, warn_of
from dpfast.core.types import Exact, Records
from dpfast.local.descent import MedianDescent
from dpfast.local.interval import Interval
from dpfast.local.questions import clip, ordered
from dpfast.local.search import QuantileSearch
from dpfast.mechanisms.usefulness import enough_for_error
from dpfast.random import RandomSource, bit_generator
from dpfast.streaming import records_of
from dpfast.theory.local_rates import local_truncation


@overload
def median(
    x: Records,
    *,
    bounds: tuple[float, float],
    epsilon: Exact,
    steps: str | tuple[float, float] = "averaging",
    start: float | None = None,
    burn_in: int = 0,
    method: str = "auto",
    density: float | None = None,
    size: None = None,
    rng: RandomSource = None,
    explain: Explain = False,
) -> float: ...


@overload
def median(
    x: Records,
    *,
    bounds: tuple[float, float],
    epsilon: Exact,
    steps: str | tuple[float, float] = "averaging",
    start: float | None = None,
    burn_in: int = 0,
    method: str = "auto",
    density: float | None = None,
    size: SupportsIndex | tuple[SupportsIndex, ...],
    rng: RandomSource = None,
    explain: Explain = False,
) -> NDArray[np.float64]: ...


def median(
    x: Records,
    *,
    bounds: tuple[float, float],
    epsilon: Exact,
    steps: str | tuple[float, float] = "averaging",
    start: float | None = None,
    burn_in: int = 0,
    method: str = "auto",
    density: float | None = None,
    size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    rng: RandomSource = None,
    explain: Explain = False,
) -> Any:
    """Estimate the median by a sequence of private questions, simulated; each person reveals one private bit.

    Pure epsilon-local differential privacy, under any change of one person's number. Sequential: the question to each
    person depends on the earlier answers; `MedianDescent` and `QuantileSearch` provide the client and the server
    separately.

    Parameters
    ----------
    x : array_like of shape (n,)
        Private data of any numeric dtype, one number for each person, in an order that does not depend on the data.
        Never modified.
    bounds, epsilon, steps, start, burn_in
        See `MedianDescent`. n must be greater than `burn_in`.
    method : {"auto", "descent", "search"}
        "descent" is `MedianDescent`, accurate where the bounds are near the numbers; "search" is `QuantileSearch`, for
        wide bounds. "auto" is "descent" if one of `steps`, `start` and `burn_in` is given; otherwise the one with the
        smaller expected error under `density`, or, without it, "search" if n is above 6 times the least number of
        people that a search asks, else "descent". It depends on public numbers only: n, epsilon, the width of the
        bounds and `density`. https://dpfast.readthedocs.io/en/latest/guides/local.html compares both.
    density : float, optional
        Assumed density of the numbers at their median, in 1 / data unit; for method="auto" only.
    size : int or tuple of ints, optional
        The shape of an array of independent runs: EACH RUN spends epsilon. None returns one run.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    explain : bool or callable
        True prints the protocol, its guarantee and why it is taken, before anything is charged; a function receives the
        text.

    Returns
    -------
    float, or ndarray of float64
        Inside the bounds.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    Privacy, accuracy and cost: `MedianDescent`, `QuantileSearch`,
    https://dpfast.readthedocs.io/en/latest/proofs/median-descent.html.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, equation (11).

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> pay = np.random.default_rng(0).lognormal(10.0, 0.5, 100_000)
    >>> estimate = local.median(pay, bounds=(0, 100_000), epsilon=1.0)
    >>> bool(abs(estimate - np.median(pay)) < 1500)
    True
    """
    checks.choice("method", method, ("auto", "descent", "search"))
    epsilon = checks.positive_down("epsilon", epsilon)
    bounds = checks.once(bounds)
    descent = MedianDescent(bounds=bounds, epsilon=epsilon, steps=steps, start=start, burn_in=burn_in)
    search = QuantileSearch(bounds=bounds, epsilon=epsilon)
    given = (steps, start, burn_in) != ("averaging", None, 0)
    if method == "search" and given:
        raise ValueError("steps, start and burn_in are parameters of method='descent'")
    if density is not None:
        checks.positive("density", density)
    if method == "auto" and given:
        method = "descent"
    bit_generator(rng)
    shape = None if size is None else checks.shape(size)
    times = math.prod(shape or ())
    warn_of(descent)
    _warn_of_few(records_of(x), epsilon)
    if explain is not False:
        tell(_explanation(descent, search, method, records_of(x), density), explain)
    with spending(descent.privacy_profile, label=f"local median by method={method!r} in {bounds!r}", times=times):
        values = containers.vector("x", x)
        if method == "auto":
            method = _median_choice(descent, search, checks.records(values.shape[0]), density).method
        protocol: MedianDescent | QuantileSearch = search if method == "search" else descent
        return protocol.release(values, size=shape, rng=rng)


def _median_choice(descent: MedianDescent, search: QuantileSearch, n: int, density: float | None) -> Choice:
    """Return the choice by expected error; without a density, "search" if it may ask less than a tenth of n."""
    candidates = {"descent": descent, "search": search}
    if density is None:
        most = 6 * search.least_users
        taken, people = ("search", "more than") if n > most else ("descent", "at most")
        return Choice(candidates, taken, f"there are {people} {most:,} people, beyond whom a search is close")
    errors = {"descent": descent.wide_error(n, density=density), "search": search.error(n, density=density)}
    taken = "search" if errors["search"] < errors["descent"] else "descent"
    rows = {method: (error,) for method, error in errors.items()}
    legend = f"Expected error: with confidence 0.95, in data units, of n = {n:,} people and this density."
    known = Known(("expected error",), rows, legend)
    return Choice(candidates, taken, "its expected error is less", known=lambda: known)


def _explanation(
    descent: MedianDescent, search: QuantileSearch, method: str, n: int | None, density: float | None
) -> str:
    """Return the text about a local median: the choice of "auto", if n is known, the protocol and the guarantee."""
    choice = _median_choice(descent, search, n, density) if method == "auto" and n else None
    protocols: dict[str, Any] = {"descent": descent, "search": search, "auto": "a protocol that n decides"}
    protocol = protocols[method] if choice is None else choice.mechanism
    text = f"Local median by {protocol}: {descent.privacy_profile.privacy}. Each person reveals one private bit."
    return text if choice is None else f"{choice.comparison}\n{text}"


@overload
def quantile(
    x: Records,
    q: float,
    *,
    bounds: tuple[float, float],
    epsilon: Exact,
    step: float | None = None,
    size: None = None,
    rng: RandomSource = None,
) -> float: ...


@overload
def quantile(
    x: Records,
    q: float,
    *,
    bounds: tuple[float, float],
    epsilon: Exact,
    step: float | None = None,
    size: SupportsIndex | tuple[SupportsIndex, ...],
    rng: RandomSource = None,
) -> NDArray[np.float64]: ...


def quantile(
    x: Records,
    q: float,
    *,
    bounds: tuple[float, float],
    epsilon: Exact,
    step: float | None = None,
    size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    rng: RandomSource = None,
) -> Any:
    """Estimate a quantile by noisy binary search and gradient descent, simulated; each person reveals one private bit.

    Pure epsilon-local differential privacy, under any change of one person's number. Sequential: the question to each
    person depends on the earlier answers; `QuantileSearch` provides the client and the server separately.

    Parameters
    ----------
    x : array_like of shape (n,)
        Private data of any numeric dtype, one number for each person, in an order that does not depend on the data.
        Never modified.
    q : float
        In (0, 1).
    bounds, epsilon, step
        See `QuantileSearch`.
    size : int or tuple of ints, optional
        The shape of an array of independent runs: EACH RUN spends epsilon. None returns one run.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.

    Returns
    -------
    float, or ndarray of float64
        Inside the bounds.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    Privacy, accuracy and cost: `QuantileSearch`, https://dpfast.readthedocs.io/en/latest/proofs/median-descent.html.
    For a far quantile of few people, the estimate is biased towards the median.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> pay = np.random.default_rng(0).lognormal(10.0, 0.5, 100_000)
    >>> estimate = local.quantile(pay, 0.25, bounds=(0, 1e8), epsilon=1.0)
    >>> bool(abs(estimate / np.quantile(pay, 0.25) - 1) < 0.05)
    True
    """
    epsilon = checks.positive_down("epsilon", epsilon)
    search = QuantileSearch(bounds=bounds, epsilon=epsilon, q=q, step=step)
    warn_of(search)
    _warn_of_few(records_of(x), epsilon)
    return search.release(x, size=size, rng=rng)


def median_naive(
    x: Records, *, bounds: tuple[float, float], epsilon: Exact, rng: RandomSource = None, workers: int = 1
) -> float:
    """Median of numbers with Laplace noise added by each person; for comparison only, since its bias persists.

    Pure epsilon-local differential privacy, under any change of one person's number. Non-interactive.

    Parameters
    ----------
    x, bounds, rng
        See `median`.
    epsilon : float
        Positive; rounded down to a double.
    workers : int
        Number of threads; for a given rng the result does not depend on it.

    Returns
    -------
    float
        Inside the bounds.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    Each number is rounded to a public grid of at most 2**32 points, and exact noise of scale D / epsilon is added,
    where D is the width of the grid. The median of the noisy numbers equals that of the numbers only for symmetric
    distributions, so this estimate does not converge to the median: use `median`.
    Privacy: global sensitivity D, exact noise (https://dpfast.readthedocs.io/en/latest/proofs/rounded-laplace.html).
    Cost: O(n log n).

    References
    ----------
    Duchi, Jordan and Wainwright 2018, equation (41).

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> skewed = np.random.default_rng(0).lognormal(0.0, 1.0, 100_000)
    >>> bool(local.median_naive(skewed, bounds=(0, 16), epsilon=1.0) > 1.2 * np.median(skewed))
    True
    """
    lower, upper = ordered(bounds)
    halves = _noisy(x, (lower, upper), epsilon, rng, workers) / 2  # so that the sum of two cannot overflow
    return clip(2 * float(np.median(halves)), lower, upper)


def mean(
    x: Records,
    *,
    epsilon: Exact,
    bounds: tuple[float, float] | None = None,
    moment: float | None = None,
    scale: float = 1.0,
    method: str = "auto",
    objective: str = "worst",
    truncation: str = "optimal",
    rng: RandomSource = None,
    workers: int = 1,
) -> float:
    """Estimate the mean from one private report per person.

    Pure epsilon-local differential privacy, under any change of one person's number. Non-interactive.

    Parameters
    ----------
    x : array_like of shape (n,)
        Private data of any numeric dtype; never modified. NaN and missing count as 0 or as the bound nearest to 0.
    epsilon : float
        Positive, at least 2**-40 for "two-point"; rounded down to a double.
    bounds : pair of float
        Public, in data units: a number outside counts as the nearer bound. Give either `bounds` or `moment`.
    moment : float
        A public assumption: ``E|X|**moment <= scale**moment``, with `moment` above 1; infinity means that X is in
        [-scale, scale]. The numbers are clipped to [-T, T]; T follows from n, epsilon and the assumption.
    scale : float
        Positive, in data units; only with `moment`.
    method, objective : str
        The method and the objective of `Interval`, which randomises each number: "auto" has the least variance, for the
        worst record or on average over the range.
    truncation : {"optimal", "paper"}
        "optimal" minimises the bound `dpfast.theory.local_mean_upper_bound` (of "laplace" for that method; otherwise of
        "two-point", where T is slightly too small for the other methods). "paper" is T = scale (n epsilon^2)^(1/(2
        moment)), of the same order but with many times the error.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Number of threads; for a given rng the result does not depend on it.

    Returns
    -------
    float
        Clipped to the bounds or to [-scale, scale], which must contain the mean. Apart from that, unbiased for the mean
        of the clipped numbers.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, or neither or both of `bounds` and `moment` are given, before any data are read.

    Notes
    -----
    Privacy: that of `Interval` (https://dpfast.readthedocs.io/en/latest/proofs/local-interval.html). In addition to the
    sampling variance, the variance of the estimate is at most ``Interval(epsilon, bounds=...).variance() / n``: for
    "two-point" ``c^2 r^2 / n`` with c = coth(epsilon / 2) and r half the width, for "laplace"
    ``8 r^2 / (n epsilon^2)``.
    Cost: O(n).

    References
    ----------
    Duchi, Jordan and Wainwright 2018, Corollary 1 and equation (10).

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> x = np.random.default_rng(0).standard_t(3, 100_000)
    >>> bool(abs(local.mean(x, epsilon=1.0, moment=2, scale=1.8)) < 0.4)
    True
    >>> bool(abs(local.mean(x > 1, epsilon=1.0, bounds=(0, 1)) - np.mean(x > 1)) < 0.03)
    True
    """
    if (bounds is None) == (moment is None):
        raise TypeError("exactly one of bounds and moment must be given")
    epsilon = checks.positive_down("epsilon", epsilon)
    warn(of_epsilon(epsilon))
    Interval(
        epsilon, bounds=(0.0, 1.0), method=method, objective=objective
    )  # reject invalid parameters before reading the data
    bit_generator(rng)
    workers = checks.threads(workers)
    if bounds is not None:
        lower, upper = inside = ordered(bounds)
        values = containers.vector("x", x)
        _warn_of_few(checks.records(values.shape[0]), epsilon)
    else:
        assert moment is not None
        noisy = "laplace" if method == "laplace" else "two-point"
        truncate = partial(
            local_truncation, epsilon=epsilon, moment=moment, scale=scale, method=noisy, truncation=truncation
        )
        truncate(1)
        values = containers.vector("x", x)
        upper = truncate(checks.records(values.shape[0]))
        lower, inside = -upper, (-float(scale), float(scale))
    randomizer = Interval(epsilon, bounds=(lower, upper), method=method, objective=objective)
    reports = randomizer.randomize(values, rng=rng, workers=workers)
    return clip(float(randomizer.estimate(reports)), *inside)


def _warn_of_few(n: int | None, epsilon: float) -> None:
    """Warn if an estimate from so many reports is a guess.

    One bit of each person, as by "two-point" and the sequential protocols, gives a mean with a standard error of
    ``coth(epsilon / 2) / 2`` widths of the bounds over the root of n, and the rank of a number with that share.
    """
    warn(of_few_within_bounds(n, enough_for_error(1 / (2 * math.tanh(epsilon / 2))) ** 2, "epsilon", epsilon))


def _noisy(
    x: Records, bounds: tuple[float, float], epsilon: Exact, rng: RandomSource, workers: int
) -> NDArray[np.float64]:
    """Return the numbers rounded to a grid, plus exact Laplace noise of scale width / epsilon."""
    grid = Grid(*bounds, missing=clip(0.0, *bounds))
    width = checks.exact(grid.upper) - checks.exact(grid.lower)
    epsilon = checks.positive_down("epsilon", epsilon)
    warn(of_epsilon(epsilon))
    scale = width / Fraction(epsilon)
    profile = PrivacyProfile(Privacy(epsilon, neighbors="local"), (("laplace", epsilon, 1),))
    with spending(profile, label=f"Laplace noise on each number in {bounds!r}"):
        values = containers.vector("x", x)
        checks.records(values.shape[0])
        return noise.add_laplace(values, scale=scale, grid=grid, rng=rng, workers=workers)
