"""Maximum-likelihood estimates in one call, by the mechanism of less expected error."""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import Any, SupportsIndex

from dpfast.aggregate.blocks import ranges_of
from dpfast.aggregate.choice import METHODS, choice_between, sums_for
from dpfast.aggregate.mechanism import SampleAndAggregate
from dpfast.aggregate.sufficient import PLANNED_N, SufficientStatistics
from dpfast.choosing import Choice, Explain, explained
from dpfast.core import checks
from dpfast.core.types import Bounds, Exact, Records
from dpfast.families.summed import summed
from dpfast.families.user import family_for, family_of
from dpfast.mechanisms import Mechanism
from dpfast.mechanisms.resized import resized
from dpfast.random import RandomSource
from dpfast.streaming import records_of

_OF_BLOCKS = ("blocks", "combine", "margin", "shuffle")  # parameters that sums do not have
_DEFAULTS = {field.name: field.default for field in fields(SampleAndAggregate)}
_PLAIN = frozenset({str, int, float, bool, type(None)})  # whose equality and type say all


def mle(
    x: Records,
    family: Any,
    *,
    epsilon: Exact,
    delta: Exact = 0.0,
    bounds: Bounds,
    method: str = "auto",
    noise: str = "auto",
    blocks: int | str = "auto",
    bias_correction: bool = True,
    combine: str = "auto",
    guess: Any = None,
    margin: float | str = "auto",
    shuffle: int | None = None,
    neighbors: str = "replace-one",
    missing: float | str | None = None,
    rng: RandomSource = None,
    workers: SupportsIndex = 1,
    explain: Explain = False,
) -> Any:
    """Release the maximum-likelihood estimate of the parameters of a family, from noisy sums or from blocks of records.

    Pure epsilon-differential privacy, or (epsilon, delta) with Gaussian noise, under one replaced record; the number of
    records is public.

    Parameters
    ----------
    x : array_like of shape (n,), or pair of arrays
        Private records. For a regression ``(X, y)``, of shapes (n, d) and (n,). Blocks leave out NaN and records
        outside the support of the family; for sums, NaN counts as `missing`, other records as the nearest possible one.
    family : str, Family, scipy.stats distribution or callable
        See `SampleAndAggregate`. The names "linear", "logistic" and "poisson-regression" mean a regression on an
        intercept and the columns of X.
    epsilon, delta, bounds, noise, blocks, bias_correction, combine, guess, margin, shuffle
        See `SampleAndAggregate`.
    method : {"auto", "blocks", "sums"}
        "blocks": `SampleAndAggregate`. "sums": `SufficientStatistics`, for Bernoulli, Poisson, geometric, exponential,
        Pareto, normal, lognormal, gamma and beta records with bounds on all parameters. "auto": the one of less
        expected error by n, epsilon, delta and the bounds only: at `guess`, or by the mean logarithm over the bounds
        with most weight in the middle; blocks if `blocks`, `combine`, `margin` or `shuffle` is given. Sums clamp
        records to an interval for parameters above a thousandth of their upper bound. Where the bounds of a single one
        span so much that, for values in them, sums are off by more than half of the value, and blocks are not, "auto"
        takes blocks. For two parameters a `UtilityWarning` asks for a `guess`. ``explain=True`` prints the comparison.
    neighbors : {"replace-one", "add-remove"}
        "add-remove" protects the addition or removal of a record, by sums and `dpfast.Resized`: the number of records
        is private. Not for blocks.
    missing : float or "drop", optional
        The value of missing records for sums, public; see `SufficientStatistics`. If some records may be missing, give
        one that is plausible for them, ``method="blocks"``, or, for "add-remove", "drop".
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Threads that read the data, -1 for one per core; the result does not depend on it.
    explain : bool or callable
        See `dpfast.median`.

    Returns
    -------
    float or ndarray
        In the order of the bounds; a float for one parameter.

    Raises
    ------
    TypeError, ValueError
        See `SampleAndAggregate` and `SufficientStatistics`.

    Notes
    -----
    Privacy and cost: one call of `SampleAndAggregate`
    (https://dpfast.readthedocs.io/en/latest/proofs/sample-and-aggregate.html) or `SufficientStatistics`
    (https://dpfast.readthedocs.io/en/latest/proofs/sufficient-statistics.html).
    https://dpfast.readthedocs.io/en/latest/results/efficiency.html compares their errors. The choice takes up to half a
    second for the first call with some public parameters, and is then cached.

    References
    ----------
    Smith 2008, "Efficient, differentially private point estimators".

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> waits = np.random.default_rng(0).exponential(2.0, 100_000)
    >>> rate = dpf.mle(waits, "exponential", bounds=(0.05, 5), epsilon=1.0)
    >>> bool(abs(rate - 0.5) < 0.05)
    True
    """
    whole, method = checks.positive_down("epsilon", epsilon), checks.choice("method", method, METHODS)
    given = family_for(family, x)

    def chosen(part: float, n: int | None, policy: Any) -> tuple[Mechanism, Choice | None]:
        by_blocks = _blocks(
            given,
            bounds,
            epsilon=part,
            delta=checks.delta_down(delta),
            noise=noise,
            blocks=blocks,
            bias_correction=bias_correction,
            combine=combine,
            guess=guess,
            margin=margin,
            shuffle=shuffle,
        )
        return _chosen(by_blocks, method, policy, n)

    if checks.choice("neighbors", neighbors, ("replace-one", "add-remove")) == "add-remove":
        if method == "blocks":
            raise ValueError("neighbors must be 'replace-one' for blocks, not 'add-remove': use method='sums'")
        if of_blocks := _of_blocks(blocks=blocks, combine=combine, margin=margin, shuffle=shuffle):
            raise ValueError(f"{of_blocks[0]} is a parameter of blocks, which are for neighbors='replace-one'")
        method = "sums"
        drops = isinstance(missing, str) and missing == "drop"
        policy, choice = None if drops else missing, None
        dropping = "drop" if drops else None
        mechanism: Mechanism = resized(lambda part: chosen(part, None, policy)[0], epsilon=whole, missing=dropping)
    else:
        mechanism, choice = chosen(whole, records_of(x), missing)
    return explained(mechanism, explain, x, choice)(x, rng=rng, workers=workers)  # type: ignore[arg-type]


def _blocks(family: Any, bounds: Any, **options: Any) -> SampleAndAggregate:
    """Return the mechanism of blocks; the one that calls share, for a name and parameters of plain types."""
    if type(family) is not str or not _PLAIN.issuperset(map(type, options.values())):
        return SampleAndAggregate(family, bounds=bounds, **options)
    plain = _plain(bounds)
    ranges = _ranges(family, plain) if plain else ranges_of(family_of(family), bounds)
    return _shared(family, ranges, **options)


def _plain(bounds: Any) -> Any:
    """Return bounds as tuples, whose equality says all; None unless they are of numbers of Python."""
    if type(bounds) is float or type(bounds) is int:
        return bounds
    parts = tuple(map(_plain, bounds)) if type(bounds) is tuple or type(bounds) is list else (None,)
    return None if None in parts else parts


@lru_cache(maxsize=256)
def _ranges(family: str, bounds: Any) -> Any:
    return ranges_of(family_of(family), bounds)


@lru_cache(maxsize=256, typed=True)
def _shared(family: str, bounds: Any, **options: Any) -> SampleAndAggregate:
    return SampleAndAggregate(family, bounds=bounds, **options)


def _sums(blocks: SampleAndAggregate, n: int, missing: Any) -> SufficientStatistics:
    """Return the mechanism of sums; the one that calls share, for a family of the library and a plain value."""
    of_library = summed(blocks.family, tuple(name for name, _ in blocks.bounds)) is not None
    return (_shared_sums if of_library and type(missing) in _PLAIN else sums_for)(blocks, n, missing)


_shared_sums = lru_cache(maxsize=256, typed=True)(sums_for)


def _of_blocks(**options: Any) -> list[str]:
    """Return which parameters of blocks are given."""
    return [name for name, value in options.items() if value != _DEFAULTS[name]]


def _chosen(blocks: SampleAndAggregate, method: str, missing: Any, n: int | None) -> tuple[Mechanism, Choice | None]:
    """Return the mechanism of a method; for "auto" also its choice."""
    given = _of_blocks(**{name: getattr(blocks, name) for name in _OF_BLOCKS})
    if method == "sums":
        if given:
            raise ValueError(f"{given[0]} is a parameter of blocks: leave it out for method='sums'")
        return _sums(blocks, n or PLANNED_N, missing), None
    if missing is not None and (method == "blocks" or given):
        raise ValueError("missing is a parameter of sums: blocks leave missing records out")
    if method == "blocks" or given or not n:
        return blocks, None
    choice = choice_between(blocks, n, missing)
    return choice.mechanism, choice
