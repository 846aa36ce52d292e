"""Private estimates with intervals, in one call: of all records, or of each group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, SupportsIndex, overload

from dpfast._kernels._calls import Calls, Parameters
from dpfast.choosing import Explain, explained
from dpfast.core import checks
from dpfast.core.containers import declares_integers
from dpfast.core.foreign import active
from dpfast.core.grid import FloatGrid, Grid, Points, checked_policy, grid_for, unbounded
from dpfast.core.spending import sums_epsilons
from dpfast.core.traps import warn_of
from dpfast.core.types import Exact, Records
from dpfast.groups.keyed import KeyedReleases
from dpfast.groups.releases import by_group
from dpfast.mechanisms import Estimate, Mechanism, PartitionSelection
from dpfast.mechanisms.intervals import interval_for
from dpfast.mechanisms.methods import policy_for, warn_of_missing
from dpfast.random import RandomSource
from dpfast.statistics import Count, Mean, Median, Quantile, Statistic, Sum, Variance
from dpfast.statistics.named import STATISTICS, WITH_INTERVAL
from dpfast.streaming import Chunks

_UNUSED = Grid(0, 1, step=1)  # a count uses no grid
_calls = Calls(frozenset([Grid, FloatGrid, Median, Quantile, Mean, Variance, Sum, Count]))  # the mechanisms of calls


@overload
def interval(
    statistic: str | Statistic,
    x: Records | Chunks,
    *,
    epsilon: Exact,
    bounds: tuple[float, float] | None = None,
    grid: Points | None = None,
    confidence: float = 0.95,
    neighbors: str | None = None,
    missing: float | str | None = None,
    labels: None = None,
    keys: None = None,
    partitions: None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> Estimate: ...


@overload
def interval(
    statistic: str | Statistic,
    x: Any,
    *,
    epsilon: Exact,
    bounds: tuple[float, float] | None = None,
    grid: Points | None = None,
    confidence: float = 0.95,
    neighbors: str | None = None,
    missing: float | str | None = None,
    labels: Any,
    keys: Iterable[Any],
    partitions: PartitionSelection | None = None,
    others: Any = None,
    contributions: SupportsIndex = 1,
    per_key: SupportsIndex | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> KeyedReleases: ...


def interval(
    statistic: str | Statistic,
    x: Any,
    *,
    epsilon: Exact,
    bounds: tuple[float, float] | None = None,
    grid: Points | None = None,
    confidence: float = 0.95,
    neighbors: str | None = None,
    missing: float | str | None = None,
    labels: Any = None,
    keys: Any = None,
    partitions: PartitionSelection | None = None,
    others: Any = None,
    contributions: SupportsIndex = 1,
    per_key: SupportsIndex | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> Any:
    """Release an estimate with an interval that contains the population value with probability `confidence`.

    Epsilon-differentially private for one replaced record (a count: one added or removed): epsilon is spent once, for
    the estimate and the interval. The interval is a function of public numbers and private releases only. It includes
    the sampling error of independent records and the noise.

    Parameters
    ----------
    statistic : str or object of dpfast.statistics
        "median", "mean", "variance", "std", "sum" or "count"; `Median()`, `Quantile(q)`, `Mean()`, `Variance()`,
        `Sum()` or `Count(within)`. The interval is for

        - a median or quantile: the quantile of the population, for any population;
        - a mean: that of the population, clamped to the bounds;
        - a variance or std: that of the population, clamped to the bounds, for any population; wide;
        - a sum or count: that of these records (clamped to the bounds), not of a population: it covers the noise.

    x : array_like of shape (n,)
        Private data, as for `median`; also `dpfast.Chunks`, which are read several times for a quantile.
    epsilon : float
        Positive.
    bounds : pair of float
        Public bounds. Quantiles need none if n epsilon min(q, 1 - q) is at least 200; a count takes none.
    grid : Grid, or for quantiles FloatGrid
        Instead of `bounds`.
    confidence : float
        In (0, 1).
    neighbors : {"replace-one", "add-remove"}, optional
        "add-remove" protects the addition or removal of a record, and is the default of a count: the number of records
        is private. Sums and counts have noise for it; the others use a noisy number of the records, chosen at random,
        for a tenth of epsilon (`Resized`).
    missing : float, "lower", "half" or "drop", optional
        What a missing record becomes, as for `median`; the interval is for the population after this. "drop" is for
        quantiles and means, of which it is the default, and for "add-remove". Of floats, which may be missing, the
        interval of a mean is wider by what the noise on the number of missing records can do: if none are, by 5 % for
        20,000 normal records at epsilon = 1, up to twice as wide for few records near a bound. ``missing="lower"``
        avoids that.
    labels, keys, partitions, others, contributions, per_key
        Of groups, see `by_group`: an estimate with an interval for each key, for one epsilon together. With one
        replaced record the labels and the sizes of groups are public; with one added or removed they are private.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Threads that read the data.
    explain : bool or callable
        See `dpfast.median`.

    Returns
    -------
    Estimate
        With attributes `value`, `low`, `high`, `confidence` and `privacy`. It unpacks into ``value, low, high``.
    KeyedReleases
        With `labels`: a mapping of each key to its Estimate, whose guarantee covers all groups together. Each interval
        contains the value of its group with probability `confidence`, not all of them at once. NaN for an empty group
        whose emptiness is public.

    Raises
    ------
    TypeError
        A statistic without an interval, such as a trimmed mean; missing bounds; data that are not numbers.
    ValueError
        A parameter out of range; x empty or of a wrong shape.

    Notes
    -----
    Quantiles: 45 % of epsilon release the quantile and a candidate for each end by `Quantiles`, 40 % count the records
    beyond the candidates, and 15 % are kept for further candidates, for ends that the counts do not
    confirm. An end without a confirmed candidate is that of the grid: with few records the interval is the whole grid,
    and for a `FloatGrid` all floats. The quantile is that of the population rounded to the grid.
    Means: three fifths of epsilon release the mean and two fifths the variance. The interval is that of a normal
    variable plus the noise, widened for skewness; its coverage is measured
    (https://dpfast.readthedocs.io/en/latest/guides/intervals.html), not proved. Cost: about 1.5 times that of three
    quantiles together by `quantile`; for a mean, that of a variance.

    References
    ----------
    https://dpfast.readthedocs.io/en/latest/proofs/intervals.html; Maurer and Pontil 2009, "Empirical Bernstein bounds
    and sample variance penalization".

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> pay = np.random.default_rng(0).lognormal(10.5, 0.6, 100_000)
    >>> median = dpf.interval("median", pay, epsilon=1.0)
    >>> median.low <= np.exp(10.5) <= median.high and median.high - median.low < 2000
    True
    >>> value, low, high = dpf.interval("mean", pay, bounds=(0, 500_000), epsilon=1.0)
    >>> low <= value <= high and high - low < 600
    True
    >>> region = np.array(["north", "south"])[np.arange(100_000) % 2]
    >>> by_region = dpf.interval("median", pay, labels=region, keys=["south", "north"], epsilon=1.0)
    >>> list(by_region), bool(abs(by_region["south"].value - np.exp(10.5)) < 1000)
    (['south', 'north'], True)
    """
    if isinstance(bounds, str):
        raise TypeError(
            f"bounds must be a pair (lower, upper), not {bounds!r}, for an interval: dpfast.bounds(x, epsilon=...) "
            "finds bounds privately"
        )
    public = Parameters(bounds, grid, epsilon, missing=missing, neighbors=neighbors)
    made = _kept(statistic, x, public, confidence)
    warn_of_missing(made, getattr(made, "statistic", None), x, public)
    if all(given is None for given in (labels, keys, partitions, others, per_key)) and contributions == 1:
        return explained(made, explain, x)(x, rng=rng, workers=workers)
    if labels is None or keys is None:
        raise TypeError("labels= and keys= must be given together, for groups")
    warn_of(made)
    groups = {"labels": labels, "keys": keys, "partitions": partitions, "others": others}
    groups |= {"contributions": contributions, "per_key": per_key}
    return by_group(made, x, **groups, rng=rng, workers=workers, explain=explain)


def _kept(statistic: Any, x: Any, public: Parameters, confidence: float) -> Mechanism:
    """Return the mechanism of `estimator`, from the cache of calls. It never keeps an error."""
    sums, of = active.get() is None or sums_epsilons(), (statistic, confidence)
    made: Mechanism | None = _calls.find(of, x, public, sums)
    if made is None:
        given = public.bounds, public.grid, public.epsilon, confidence, public.neighbors, public.missing
        made = estimator(statistic, x, *given)
        _calls.keep(of, x, public, sums, made)
    return made


def estimator(
    statistic: object,
    x: Any,
    bounds: tuple[float, float] | None,
    grid: Points | None,
    epsilon: Exact,
    confidence: float,
    neighbors: str | None,
    missing: float | str | None,
) -> Mechanism:
    """Return the mechanism that `interval` calls. Of x it uses the type."""
    root = statistic == "std"
    if isinstance(statistic, str):
        names = [name for name in sorted(WITH_INTERVAL) if name != "quantile"]  # which has a level
        if statistic in STATISTICS and statistic not in names:
            raise ValueError(
                "statistic must have its level, as in dpfast.statistics.Quantile(0.9), instead of 'quantile'"
                if statistic == "quantile"
                else f"no interval is known for {statistic!r}, which dpfast.{statistic} releases alone; there are some "
                f"of {', '.join(names)} and of Quantile(q)"
            )
        statistic = WITH_INTERVAL[checks.choice("statistic", statistic, names)]()
    if not isinstance(statistic, Statistic):
        raise TypeError(
            f"statistic, which is first, must be a name, such as 'median', or an object of dpfast.statistics, not "
            f"{getattr(statistic, '__name__', type(statistic).__name__)}"
        )
    missing, epsilon = checked_policy(missing), checks.positive_down("epsilon", epsilon)
    given = checks.choice("neighbors", neighbors or _default(statistic), ("replace-one", "add-remove"))
    if isinstance(statistic, Count):
        if bounds is not None or grid is not None:
            raise TypeError("a count takes neither bounds nor a grid")
        if missing == "half":
            raise ValueError("missing must be a number, 'lower' or 'drop' for a count, not 'half'")
        unused = _UNUSED.with_missing("drop" if missing == "drop" else None)
        return interval_for(statistic, unused, epsilon, confidence, given, root=root)
    is_quantile = isinstance(statistic, (Median, Quantile))
    if is_quantile and bounds is None and grid is None:
        points: Points = unbounded(declares_integers(x)).with_missing(missing)
    else:
        public = Parameters(bounds, grid, missing=missing, neighbors=given)
        # Of a mean this makes the interval wider, up to twice for few records near a bound. Else, with a quarter of the
        # records missing, one of a width of 500 was 22,000 away from their mean, without a word.
        policy = policy_for(statistic, x, public, free=is_quantile or isinstance(statistic, Mean))
        points = grid_for(x, bounds, grid, policy)  # type: ignore[arg-type]
    drops = isinstance(points, Grid) and points.missing == "drop" and given == "replace-one"
    if drops and not (is_quantile or isinstance(statistic, Mean)):
        raise ValueError(
            f"missing must be a number, 'lower' or 'half' for the interval of the {statistic} with a public number of "
            f"records, not 'drop'"
        )
    return interval_for(statistic, points, epsilon, confidence, given, root=root)


def _default(statistic: Statistic) -> str:
    return "add-remove" if isinstance(statistic, Count) else "replace-one"
