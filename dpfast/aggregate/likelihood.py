"""Maximum-likelihood estimates in one call, by the mechanism of less expected error."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, SupportsIndex

from numpy.typing import ArrayLike

from dpfast import _checks
from dpfast.aggregate.choice import METHODS, LikelihoodChoice, choice_between, sums_for
from dpfast.aggregate.mechanism import SampleAndAggregate
from dpfast.aggregate.plan import Bounds
from dpfast.aggregate.sufficient import PLANNED_N, SufficientStatistics
from dpfast.families.user import family_for
from dpfast.mechanisms.explanation import Explain, explained
from dpfast.random import RandomSource
from dpfast.streaming import Chunks, Counted

_OF_BLOCKS = ("blocks", "combine", "margin", "shuffle")  # parameters that sums do not have
_DEFAULTS = {field.name: field.default for field in fields(SampleAndAggregate)}


def mle(
    x: ArrayLike,
    family: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    bounds: Bounds,
    noise: str = "auto",
    blocks: int | str = "auto",
    bias_correction: bool = True,
    combine: str = "auto",
    guess: Any = None,
    margin: float | str = "auto",
    shuffle: int | None = None,
    rng: RandomSource = None,
    workers: SupportsIndex = 1,
    explain: Explain = False,
) -> Any:
    """Release the maximum-likelihood estimate of the parameters of a family by sample and aggregate.

    Pure epsilon-differential privacy, or (epsilon, delta) with Gaussian noise, under one replaced record; the number of
    records is public.

    Parameters
    ----------
    x : array_like of shape (n,), or pair of arrays
        Private records; NaN and records outside the support of the family are left out. For a regression ``(X, y)``, of
        shapes (n, d) and (n,).
    family : str, Family, scipy.stats distribution or callable
        See `SampleAndAggregate`. The names "linear", "logistic" and "poisson-regression" mean a regression on an
        intercept and the columns of X.
    epsilon, delta, bounds, noise, blocks, bias_correction, combine, guess, margin, shuffle
        See `SampleAndAggregate`.
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
        See `SampleAndAggregate`.

    Notes
    -----
    Privacy and cost: one call of `SampleAndAggregate` (docs/proofs/sample-and-aggregate.md).

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
    by_blocks = SampleAndAggregate(
        family_for(family, x),
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        noise=noise,
        blocks=blocks,
        bias_correction=bias_correction,
        combine=combine,
        guess=guess,
        margin=margin,
        shuffle=shuffle,
    )
    choice = _choice(by_blocks, _checks.choice("method", method, METHODS), missing, _records_of(x))
    mechanism = choice if isinstance(choice, Mechanism) else choice.mechanism
    comparison = choice if isinstance(choice, LikelihoodChoice) else None
    return explained(mechanism, explain, x, comparison)(x, rng=rng, workers=workers)  # type: ignore[arg-type]


def _choice(
    blocks: SampleAndAggregate, method: str, missing: float | None, n: int | None
) -> LikelihoodChoice | SampleAndAggregate | SufficientStatistics:
    """The mechanism of a method, or the choice of "auto"."""
    given = [name for name in _OF_BLOCKS if getattr(blocks, name) != _DEFAULTS[name]]
    if method == "sums":
        if given:
            raise ValueError(f"{given[0]} is a parameter of blocks: leave it out for method='sums'")
        return sums_for(blocks, n or PLANNED_N, (("missing", missing),))
    if missing is not None and (method == "blocks" or given):
        raise ValueError("missing is a parameter of sums: blocks leave missing records out")
    if method == "blocks" or given or not n:
        return blocks
    return choice_between(blocks, n, (("missing", missing),))


def _records_of(x: Any) -> int | None:
    """The public number of records, if x is an array of numbers, counted values or chunks."""
    if isinstance(x, (Chunks, Counted)):
        return x.records()
    return (
        len(x) if hasattr(type(x), "__len__") and getattr(x, "ndim", None) != 0 and not isinstance(x, tuple) else None
    )
