"""``method="auto"`` of `dpfast.mle`: blocks or sums, by their expected errors at assumed parameters, never by data."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.aggregate.clamping import USELESS, assumed, relative_errors, within
from dpfast.aggregate.mechanism import SampleAndAggregate
from dpfast.aggregate.sufficient import SufficientStatistics
from dpfast.choosing import Choice, Known, rounded_down, rounded_up
from dpfast.core.spending import sums_epsilons
from dpfast.families.summed import summed

Values = NDArray[np.float64]

METHODS = ("auto", "blocks", "sums")


def choice_between(blocks: SampleAndAggregate, n: int, missing: float | None) -> Choice:
    """Return the choice for about n records.

    Parameters
    ----------
    blocks : SampleAndAggregate
    n : int
        At least 1.
    missing : float or None
        See `SufficientStatistics`.
    """
    found = _chosen(blocks, rounded_down(n), missing, sums_epsilons())
    if len(found.candidates) == 1:
        return found
    known = partial(_errors, found.candidates["sums"], blocks, n)
    return Choice(found.candidates, found.method, found.reason, limits=found.limits, known=known)


@lru_cache(maxsize=256)
def _chosen(blocks: SampleAndAggregate, n: int, missing: float | None, by_epsilon: bool) -> Choice:
    names = tuple(name for name, _ in blocks.bounds)
    if summed(blocks.family, names) is None:
        limit = "sums need an exponential family with bounds for all of its parameters, each once"
        return Choice({"blocks": blocks}, "blocks", limit, limits={"sums": limit})
    sums = sums_for(blocks, n, missing)
    if not by_epsilon and sums.privacy_profile.rho > blocks.privacy_profile.rho:
        sums = replace(sums, noise="k-norm")
        if sums.privacy_profile.rho > blocks.privacy_profile.rho:
            limit = "sums cost more of the active ledger, which composes by more than epsilon"
            return Choice({"blocks": blocks}, "blocks", limit, limits={"sums": limit})
    public = {part.name: getattr(blocks, part.name) for part in fields(blocks) if part.init}
    public["epsilon"] = rounded_up(blocks.epsilon)
    theta, of_sums, of_blocks = _deviations(n, missing, sums.noise, **public)
    if of_blocks is None:
        limit = "the error of blocks is not known for so few records"
        return Choice({"sums": sums}, "sums", limit, limits={"blocks": limit})
    if len(names) == 1 and (worst := sums.worst(n)[0]) > USELESS >= (instead := _worst(blocks, sums, n)):
        limit = (
            f"the bounds span so much that, for some values in them, sums of clamped records have an error of "
            f"{worst:.3g} times the value, blocks of at most {instead:.2g} times"
        )
        return Choice({"blocks": blocks}, "blocks", limit, limits={"sums": limit})
    with np.errstate(all="ignore"):
        ratios = np.log(of_sums / of_blocks).mean(axis=1)
    ratios = np.where(np.isnan(ratios), 0.0, ratios)
    ratio = math.exp(float(ratios @ _weights(theta)))
    where = "at the guess" if sums.guess is not None else "on average over the bounds, most weight in the middle"
    less = f"its error is {ratio:.2g} times that of blocks {where}"
    more = f"the error of sums is {ratio:.3g} times that of blocks {where}"
    return Choice(
        {"blocks": blocks, "sums": sums},
        *(("sums", less) if ratio < 1 else ("blocks", more)),
    )


@lru_cache(maxsize=256)
def _deviations(n: int, missing: float | None, kind: str, **public: Any) -> tuple[Values, Values, Values | None]:
    """Return assumed parameters, and the deviations of sums with this kind of noise and of blocks, None if not known.

    `public` has the parameters of blocks. Calls with about this epsilon share them.
    """
    blocks = SampleAndAggregate(**public)
    sums = replace(sums_for(blocks, n, missing), noise=kind)
    theta = assumed(sums.model, [pair for _, pair in blocks.bounds], sums.guessed)
    of_sums = sums.deviations(n, theta)
    try:
        return theta, of_sums, _of_blocks(blocks, n, theta)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError):
        return theta, of_sums, None


def _of_blocks(blocks: SampleAndAggregate, n: int, theta: Values) -> Values:
    """Return the deviations of blocks at assumed parameters."""
    names = [name for name, _ in blocks.bounds]
    return np.array([blocks.deviations(n, dict(zip(names, at, strict=True))) for at in theta.tolist()])


def _worst(blocks: SampleAndAggregate, sums: SufficientStatistics, n: int) -> float:
    """Return the largest relative error of blocks within the bounds of one parameter."""
    theta = within(sums.model, [pair for _, pair in blocks.bounds])
    return float(relative_errors(sums.model, theta, _of_blocks(blocks, n, theta)).max())


def _errors(sums: SufficientStatistics, blocks: SampleAndAggregate, n: int) -> Known:
    """Return the root mean squared errors of both at assumed parameters: on average, and in the middle.

    They are those of this number of records and of epsilon itself, where a choice rounds both.
    """
    names, theta = sums.model.names, assumed(sums.model, [pair for _, pair in blocks.bounds], sums.guessed)
    errors = {"blocks": _of_blocks(blocks, n, theta), "sums": sums.deviations(n, theta)}
    middle, weights = len(theta) // 2, _weights(theta)
    at = [f"at {name} = {x:.4g}" for name, x in zip(names, theta[middle], strict=True)]
    rows = {
        method: (*np.exp(weights @ np.log(found)).tolist(), *found[middle].tolist()) for method, found in errors.items()
    }
    legend = "Error: root mean squared; geometric mean over the assumed values, and at one of them."
    return Known((*(f"error of {name}" for name in names), *at), rows, legend)


def _weights(theta: Values) -> Values:
    """Return the weights of the assumed values, in the order of `assumed`: falling from the middle of the bounds."""
    m, p = theta.shape
    count = round(m ** (1 / p))
    one = (count + 1 - np.abs(2 * np.arange(count) + 1 - count)) ** 4.0
    product = one if p == 1 else np.outer(one, one).ravel()
    return np.asarray(product / product.sum())


def sums_for(blocks: SampleAndAggregate, n: int, missing: float | None) -> SufficientStatistics:
    """Return the mechanism of sums with the parameters of one of blocks, planned for n records."""
    return SufficientStatistics(
        blocks.family,
        bounds=blocks.bounds,
        epsilon=blocks.epsilon,
        delta=blocks.delta,
        noise=blocks.noise,
        bias_correction=blocks.bias_correction,
        guess=blocks.guess if isinstance(blocks.guess, tuple) else None,
        planned_n=n,
        missing=missing,
    )
