"""``method="auto"`` of `dpfast.mle`: blocks or sums, by their expected errors at assumed parameters, never by data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpfast.aggregate.clamping import assumed
from dpfast.aggregate.mechanism import SampleAndAggregate
from dpfast.aggregate.sufficient import SufficientStatistics
from dpfast.core.spending import sums_epsilons
from dpfast.core.tabular import html_table
from dpfast.families.summed import summed

METHODS = ("auto", "blocks", "sums")
_BITS = 3  # of n that the choice depends on


@dataclass(frozen=True)
class LikelihoodChoice:
    """A mechanism that was chosen for a maximum-likelihood estimate, and why. Public: it depends on no data.

    Attributes
    ----------
    method : {"blocks", "sums"}
    mechanism : SampleAndAggregate or SufficientStatistics
    reason : str
    errors : mapping from names of methods to ndarray of shape (m, p)
        The root mean squared error of each parameter at each assumed value; empty if there was a single candidate.
    assumed : ndarray of shape (m, p)
        The assumed parameters.
    """

    method: str
    mechanism: SampleAndAggregate | SufficientStatistics
    reason: str
    errors: dict[str, NDArray[np.float64]]
    assumed: NDArray[np.float64]

    def __str__(self) -> str:
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join([*lines, *self._notes()])

    def _repr_html_(self) -> str:
        headings, *rows = self._rows() or [["method"], [self.method]]
        return html_table(repr(self.mechanism).strip("<>"), headings, rows, note="\n".join(self._notes()))

    def _notes(self) -> list[str]:
        measure = "Error: root mean squared; geometric mean over the assumed values, and at one of them."
        return [*([measure] if self.errors else []), f"Taken: {self.method}, because {self.reason}."]

    def _rows(self) -> list[list[str]]:
        """Return the headings, and the errors of the candidates: over the bounds, and at the middle of the assumed
        values.
        """
        if not self.errors:
            return []
        names, middle = [name for name, _ in self.mechanism.bounds], len(self.assumed) // 2
        at = self.assumed[middle]
        rows = [
            [
                "method",
                *(f"error of {name}" for name in names),
                *(f"at {name} = {x:.4g}" for name, x in zip(names, at, strict=True)),
                "",
            ]
        ]
        for method, errors in self.errors.items():
            numbers = [*np.exp(_weights(self.assumed) @ np.log(errors)), *errors[middle]]
            rows.append([method, *(f"{x:.3g}" for x in numbers), "taken" if method == self.method else ""])
        return rows


def rounded_down(n: int) -> int:
    """n, or the next smaller number of three significant bits, so that few numbers of records need a choice."""
    shift = max(n.bit_length() - _BITS, 0)
    return n >> shift << shift


def choice_between(blocks: SampleAndAggregate, n: int, missing: float | None) -> LikelihoodChoice:
    """Return the choice for about n records.

    Parameters
    ----------
    blocks : SampleAndAggregate
    n : int
        At least 1.
    missing : float or None
        See `SufficientStatistics`.
    """
    return _chosen(blocks, rounded_down(n), missing, sums_epsilons())


@lru_cache(maxsize=256)
def _chosen(blocks: SampleAndAggregate, n: int, missing: float | None, by_epsilon: bool) -> LikelihoodChoice:
    names, nothing = tuple(name for name, _ in blocks.bounds), np.empty((0, len(blocks.bounds)))
    if summed(blocks.family, names) is None:
        reason = "sums need an exponential family with bounds for all of its parameters, each once"
        return LikelihoodChoice("blocks", blocks, reason, {}, nothing)
    sums = sums_for(blocks, n, missing)
    if not by_epsilon and sums.privacy_profile.rho > blocks.privacy_profile.rho:
        sums = replace(sums, noise="k-norm")
        if sums.privacy_profile.rho > blocks.privacy_profile.rho:
            reason = "sums cost more of the active ledger, which composes by more than epsilon"
            return LikelihoodChoice("blocks", blocks, reason, {}, nothing)
    theta = assumed(sums.model, [pair for _, pair in blocks.bounds], sums.guessed)
    of_sums = sums.deviations(n, theta)
    try:
        of_blocks = np.array([blocks.deviations(n, dict(zip(names, at, strict=True))) for at in theta.tolist()])
    except (ValueError, ArithmeticError, np.linalg.LinAlgError):
        return LikelihoodChoice("sums", sums, "the error of blocks is not known for so few records", {}, nothing)
    with np.errstate(all="ignore"):
        ratios = np.log(of_sums / of_blocks).mean(axis=1)
    ratios = np.where(np.isnan(ratios), 0.0, ratios)
    ratio = math.exp(float(ratios @ _weights(theta)))
    errors = {"blocks": of_blocks, "sums": of_sums}
    where = "at the guess" if sums.guess is not None else "on average over the bounds, most weight in the middle"
    if ratio < 1:
        return LikelihoodChoice("sums", sums, f"its error is {ratio:.2g} times that of blocks {where}", errors, theta)
    return LikelihoodChoice(
        "blocks", blocks, f"the error of sums is {ratio:.3g} times that of blocks {where}", errors, theta
    )


def _weights(theta: NDArray[np.float64]) -> NDArray[np.float64]:
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
