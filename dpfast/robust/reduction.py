"""The reduction from robust to private estimation, for small sets of candidates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dpfast.core import callbacks, checks, containers
from dpfast.core.foreign import foreign
from dpfast.core.grid import Grid, check_grid, check_number
from dpfast.core.spending import EXACT, refused, spending
from dpfast.mechanisms import Selection
from dpfast.random import RandomSource, bit_generator
from dpfast.statistics import RankStatistic

if TYPE_CHECKING:
    from scipy import LowLevelCallable


@refused(EXACT)
def score(
    statistic: RankStatistic,
    x: ArrayLike,
    theta: float,
    radius: float = 0.0,
    *,
    grid: Grid,
    workers: int = 1,
) -> int:
    """Return the least number of records of x to replace to bring the statistic within `radius` of theta. PRIVATE.

    Parameters
    ----------
    statistic : RankStatistic
        ``Median()``, ``TrimmedMean(0.1)``, ``Huber(2.0)`` or another one of `dpfast.statistics`.
    x : array_like of shape (n,)
    theta, radius : float
        In data units, with their exact values; radius at least 0.
    grid : Grid
        Public bounds and granularity of the records.
    workers : int

    Returns
    -------
    int
        The least t for which [theta - radius, theta + radius] intersects the attack range of t replaced records. It
        changes by at most 1 if one record is replaced, as `reduce` requires of a score.

    Raises
    ------
    ValueError
        If no data give such an estimate: theta is more than `radius` outside the grid. Depends on parameters only.

    Notes
    -----
    Privacy: none. A building block, which an active `dpfast.Ledger` refuses outside of `reduce`. For order statistics
    it is the least number such that the estimate is within `radius`; for sums, values between the ends of the attack
    range may be unattainable (https://dpfast.readthedocs.io/en/latest/proofs/monotone-statistics.html).
    Cost: that of `InverseSensitivity`, for up to n / 2 levels.

    Examples
    --------
    >>> import dpfast as dpf
    >>> dpf.robust.score(dpf.statistics.Median(), [1, 2, 3, 4, 5], 4.5, 0.5, grid=dpf.Grid(0, 10, step=1))
    1
    """
    if not isinstance(statistic, RankStatistic):
        raise TypeError(f"statistic must have an attack range, like Median(), not {statistic!r}")
    check_grid(grid)
    check_number(grid)
    checks.real("theta", theta)
    checks.nonnegative("radius", radius)
    threads = checks.threads(workers)
    values = containers.vector("x", x)
    n = checks.records(values.shape[0])
    unit = Fraction(grid.step) / statistic.codes_per_step(n)
    center, reach = (checks.exact(theta) - Fraction(statistic.value(grid, n, 0))) / unit, checks.exact(radius) / unit
    first, last = math.ceil(center - reach), math.floor(center + reach)
    if last < 0 or first > statistic.last(grid, n):
        raise ValueError(f"no records on {grid!r} give an estimate within {radius!r} of theta={theta!r}")
    lower, upper = statistic.attack_range(statistic.reading(grid, statistic.breakdown).of(values, threads))
    apart = (lower > min(last, 2**63 - 1)) | (upper < max(first, -(2**63)))
    return int(np.count_nonzero(apart))


def reduce(
    score: Callable[[Any], float] | LowLevelCallable,
    candidates: Iterable[Any],
    *,
    epsilon: float,
    rng: RandomSource = None,
) -> Any:
    """Release one of finitely many candidates by a robustness score: the black-box reduction, epsilon-private.

    Candidate c is chosen with probability proportional to ``exp(-epsilon / 2 * score(c))``. Neighbours differ in one
    replaced record of the data that `score` uses.

    Parameters
    ----------
    score : callable or scipy.LowLevelCallable
        A function of a candidate: the least number of records to replace to bring a robust estimator within a public
        distance of it; an integer, a float or a Fraction, with its exact value. Lower is better. YOU must ensure, for
        the privacy to hold, that the score changes by at most 1 if one record is replaced, and that the function
        reveals nothing else about the data, for example by an exception; `dpfast.audit.lipschitz` checks the score on
        small data. A candidate with an infinite, NaN or None score is not chosen, unless all scores are. A function
        pointer is called without the GIL: ``double (double)`` for numbers, ``double (int, double *)`` for rows of this
        many, either with a final ``void *`` for your private data
        (https://dpfast.readthedocs.io/en/latest/guides/c-api.html).
    candidates : iterable
        Public; at least one.
    epsilon : float
        Positive.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.

    Returns
    -------
    object
        One of the candidates.

    Notes
    -----
    Privacy: the exponential mechanism with exponent epsilon / 2, exactly, by `dpfast.select`
    (https://dpfast.readthedocs.io/en/latest/proofs/selection.html); the slides' exponent epsilon is 2 epsilon-DP. Cost:
    one score per candidate and a selection among them.

    References
    ----------
    Hopkins, Kamath, Majid and Narayanan 2023; Cockerell and Jayant 2023, "Robustness implies privacy", slides.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> x, grid = np.random.default_rng(0).normal(3, 1, 1000), dpf.Grid(-10, 10)
    >>> score = lambda c: dpf.robust.score(dpf.statistics.Median(), x, c, 0.1, grid=grid)
    >>> dpf.robust.reduce(score, range(-10, 11), epsilon=1.0)
    3
    """
    epsilon = checks.positive_down("epsilon", epsilon)
    source = bit_generator(rng)
    pointer = callbacks.is_pointer(score)
    if not callable(score) and not pointer:
        raise TypeError(f"score must be a function of a candidate, not {type(score).__name__}")
    if not pointer:
        callbacks.check_takes("score", score, "a candidate")
    choices = list(candidates)
    if not choices:
        raise ValueError("candidates must not be empty")
    scores = callbacks.over("score", score, choices) if pointer else lambda: map(score, choices)
    mechanism = Selection(epsilon=epsilon)
    with spending(mechanism.privacy_profile, label=f"robust.reduce to one of {len(choices)} candidates", exact=True):
        with foreign():
            distances = _exact(list(scores()))
        return choices[mechanism([-distance for distance in distances], rng=source)]


def _exact(scores: list[Any]) -> list[Fraction | float]:
    """Return the exact scores, so that a difference of 1 stays 1: rounded to doubles, 2/3 and 5/3 are further apart."""
    return containers.exact_scores(scores, missing=math.inf)
