"""Selection among scored candidates by the exponential mechanism or permute-and-flip, with exact laws."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _choice
from dpfast.core import checks, containers
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.traps import warn_of
from dpfast.core.types import Exact
from dpfast.laws import Law, ScalarLaw
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.plan import Plan
from dpfast.random import RandomSource, bit_generator, blocks

# The error bounds of the kernels hold for rates in this range; outside it, exponents are rounded from exact values.
_LEAST_RATE, _LARGEST_RATE = 2.0**-900, 2.0**900


@overload
def select(
    scores: ArrayLike | Sequence[float | Fraction],
    *,
    epsilon: Exact,
    sensitivity: float | Fraction = 1,
    monotone: bool = False,
    selection: str = "exponential",
    size: None = None,
    rng: RandomSource = None,
) -> int: ...


@overload
def select(
    scores: ArrayLike | Sequence[float | Fraction],
    *,
    epsilon: Exact,
    sensitivity: float | Fraction = 1,
    monotone: bool = False,
    selection: str = "exponential",
    size: SupportsIndex | tuple[SupportsIndex, ...],
    rng: RandomSource = None,
) -> NDArray[np.int64]: ...


def select(
    scores: ArrayLike | Sequence[float | Fraction],
    *,
    epsilon: Exact,
    sensitivity: float | Fraction = 1,
    monotone: bool = False,
    selection: str = "exponential",
    size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    rng: RandomSource = None,
) -> Any:
    """Release the index of a candidate with a high score, epsilon-differentially private.

    Neighbours are data sets for which the scores have the given sensitivity. Only the index is released: the scores are
    private, their number is public.

    Parameters
    ----------
    scores : array_like of shape (n,)
        Private; higher is better. Floats of any kind, integers of any dtype, or a list of Python integers, floats and
        Fractions of any size, each with its exact value; never modified. NaN, None and nulls count as 0. -inf is never
        selected and +inf beats every finite score. Equal infinities are equal scores: if all scores are -inf, all
        candidates are equally likely. n >= 1.
    epsilon : float
        Positive; rounded down to a double. With `size`, the epsilon of each selection.
    sensitivity : int, float or Fraction
        The largest change of any score by one record: positive and public; its exact value is used.
    monotone : bool
        True if a change of one record never raises one score and lowers another, for example for counts when a record
        is added or removed (NOT when one is replaced). The exponent is then not halved.
    selection : {"exponential", "permute-and-flip"}
        Permute-and-flip never has a lower expected score, but costs up to four times as much under zero-concentrated
        privacy (`Selection.rho`) and has no shortcut for many candidates.
    size : int or tuple of ints, optional
        The shape of independent selections: EACH ONE spends epsilon. Default: a single selection.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.

    Returns
    -------
    int, or ndarray of int64
        In 0..n - 1.

    Raises
    ------
    TypeError
        Scores of a dtype that is not numeric, a parameter of a wrong type.
    ValueError
        No candidates, scores of another shape, a parameter out of range.

    Notes
    -----
    Privacy: with rate = epsilon / (2 sensitivity), or epsilon / sensitivity if monotone, candidate i has probability
    proportional to ``exp(rate * scores[i])``, exactly: ball arithmetic decides if doubles with a proved error bound
    cannot (https://dpfast.readthedocs.io/en/latest/proofs/selection.html). Permute-and-flip visits the candidates in
    random order and selects the first one whose coin shows heads, with probability
    ``exp(rate * (scores[i] - max(scores)))``.
    Cost: two passes over the scores and one random word, a fraction of the time of ``(scores + gumbel).argmax()`` in
    NumPy; permute-and-flip takes a word for each candidate. Timing is outside the guarantee.

    References
    ----------
    McSherry and Talwar 2007, "Mechanism design via differential privacy"; McKenna and Sheldon 2020, "Permute-and-flip:
    a new mechanism for differentially private selection"; Ilvento 2020, "Implementing the exponential mechanism with
    base-2 differential privacy", on the failures of implementations in doubles.

    Examples
    --------
    >>> import dpfast as dpf
    >>> votes = [812, 997, 301]
    >>> dpf.select(votes, epsilon=1.0)
    1
    >>> dpf.select(votes, epsilon=1.0, selection="permute-and-flip", size=(2, 3)).shape
    (2, 3)
    """
    try:
        mechanism = _mechanism(epsilon, sensitivity, monotone, selection)
    except TypeError:  # not hashable: the constructor names the wrong parameter
        epsilon = checks.positive_down("epsilon", epsilon)
        mechanism = Selection(epsilon=epsilon, sensitivity=sensitivity, monotone=monotone, selection=selection)
    warn_of(mechanism)
    return mechanism(scores, rng=rng) if size is None else mechanism.release(scores, size=size, rng=rng)


@lru_cache(maxsize=256, typed=True)
def _mechanism(epsilon: Exact, sensitivity: float | Fraction, monotone: bool, selection: str) -> Selection:
    exact = checks.positive_down("epsilon", epsilon)
    return Selection(epsilon=exact, sensitivity=sensitivity, monotone=monotone, selection=selection)


@dataclass(frozen=True, repr=False, kw_only=True)
class Selection(Mechanism):
    """Release the index of a candidate with a high score: the mechanism of `select`.

    Epsilon-differentially private for neighbours for which the scores have the given sensitivity. Call it with the
    scores.

    Parameters
    ----------
    epsilon, sensitivity, monotone, selection
        See `select`.
    neighbors : {"replace-one", "add-remove"}
        The neighbours for which the sensitivity and the guarantee hold.

    Examples
    --------
    >>> import dpfast as dpf
    >>> mechanism = dpf.Selection(epsilon=1.0, monotone=True, neighbors="add-remove")
    >>> mechanism
    <Selection by the exponential mechanism, monotone scores of sensitivity 1: epsilon = 1 (pure differential privacy) \
for one record added or removed>
    >>> mechanism.law([0, 1]).pmf([0, 1]).round(4)
    array([0.2689, 0.7311])
    >>> mechanism.rho
    0.12330156148224454
    """

    reads_records: ClassVar[bool] = False

    epsilon: float
    sensitivity: float | Fraction = 1
    monotone: bool = False
    selection: str = "exponential"
    neighbors: str = "replace-one"

    def __post_init__(self) -> None:
        if not isinstance(self.selection, str) or self.selection not in _LAWS:
            raise ValueError(f"selection must be {' or '.join(map(repr, _LAWS))}, not {self.selection!r}")
        if not isinstance(self.neighbors, str) or self.neighbors not in ("replace-one", "add-remove"):
            raise ValueError(f"neighbors must be 'replace-one' or 'add-remove' here, not {self.neighbors!r}")
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        object.__setattr__(self, "sensitivity", checks.positive_rational("sensitivity", self.sensitivity))
        object.__setattr__(self, "monotone", checks.flag("monotone", self.monotone))

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, 0.0, self.neighbors)

    @property
    def rho(self) -> float:
        """The guarantee in zero-concentrated differential privacy, rounded up: the mechanism is rho-zCDP.

        For the exponential mechanism, whose privacy loss has a range of epsilon, the least rho of that range: about
        epsilon**2 / 8. For permute-and-flip, whose privacy loss has a larger range, the rho of any pure release:
        epsilon * tanh(epsilon / 2).
        """
        return self.privacy_profile.rho

    def error(self, n: SupportsIndex, *, confidence: float = 0.95) -> float:
        """How far the score of the selected one of n candidates may be below the best, for any scores.

        With probability `confidence` it is at most this far; in the worst case all others are equally far below the
        best. Permute-and-flip is never worse.

        Parameters
        ----------
        n : int
            The number of candidates, at least 1.
        confidence : float
            In (0, 1).

        Returns
        -------
        float
            In units of the scores.

        Examples
        --------
        >>> import dpfast as dpf
        >>> round(dpf.Selection(epsilon=1.0).error(1000), 2)
        19.7
        """
        n, share = checks.whole("n", n, least=1), checks.between("confidence", confidence, 0, 1)
        odds = (n - 1) * share / (1 - share)
        return max(math.log(odds), 0.0) / float(self.rate) if odds else 0.0

    @cached_property
    def rate(self) -> Fraction:
        """The exact increase of the log-probability per unit of score."""
        return Fraction(self.epsilon) / (Fraction(self.sensitivity) * (1 if self.monotone else 2))

    @property
    def privacy_profile(self) -> PrivacyProfile:
        return PrivacyProfile(self.privacy, ((_LAWS[self.selection].family, self.epsilon, 1),))

    def __repr__(self) -> str:
        name = "the exponential mechanism" if self.selection == "exponential" else self.selection
        scores = "monotone scores" if self.monotone else "scores"
        return f"<Selection by {name}, {scores} of sensitivity {self.sensitivity}: {self.privacy}>"

    def values_of(self, x: ArrayLike | Sequence[float | Fraction]) -> Any:
        """Return the scores of the candidates as an array, or as exact numbers."""
        return containers.scores(x)

    def _make_plan(self, n: int | None) -> Plan:
        return _FromScores(self, n if n is None else checks.candidates(n))

    def law_of(self, scores: Any) -> SelectionLaw:
        """Return the exact law of the index, given the scores. PRIVATE."""
        return _LAWS[self.selection](*self._exponents(scores.copy()))

    def sampled(self, law: Law, shape: tuple[int, ...], source: np.random.BitGenerator) -> NDArray[Any]:
        return np.asarray(law.sample(shape, rng=source))

    def _exponents(
        self, scores: NDArray[Any] | list[Fraction | float]
    ) -> tuple[NDArray[np.float64], float, Sequence[Fraction | float]]:
        """Return the arguments of a kernel: doubles, a rate, and the exact exponents rate * (largest score - score)."""
        rate = self.rate
        if isinstance(scores, np.ndarray):
            rounded = self._rounded_rate
            if _LEAST_RATE <= rounded <= _LARGEST_RATE:
                doubles = scores if scores.dtype == np.float64 else _choice.below_largest(scores)
                return doubles, rounded, _Exponents(scores, rate)
            scores = [containers.exact_score(score) for score in scores.tolist()]
        top = max(scores)
        exact = [_exponent(score, top, rate) for score in scores]
        return np.array([-_double(exponent) for exponent in exact]), 1.0, exact

    @cached_property
    def _rounded_rate(self) -> float:
        return _double(self.rate)


class _FromScores(Plan):
    """A draw of the index of a candidate, from the scores of n candidates."""

    mechanism: Selection

    def read(self, values: Any, threads: int = 1) -> tuple[Plan, Any]:
        return self, values

    def draw(self, values: Any, source: np.random.BitGenerator, threads: int = 1) -> int:
        """Draw once, without a law; one thread reads the scores."""
        mechanism, out = self.mechanism, np.empty(1, np.int64)
        _LAWS[mechanism.selection].fill(source, *mechanism._exponents(values), out)
        return int(out[0])


def _exponent(score: Fraction | float, top: Fraction | float, rate: Fraction) -> Fraction | float:
    """Return the exact rate times the distance to the largest score; the distance between equal
    infinite scores is 0.
    """
    if score == top:
        return Fraction(0)
    if isinstance(score, float) or isinstance(top, float):  # an infinity
        return math.inf
    return rate * (top - score)


def _double(exponent: Fraction | float) -> float:
    try:
        return float(exponent)
    except OverflowError:
        return math.inf


class _Exponents(Sequence["Fraction | float"]):
    """The exact exponents of an array of scores, each computed on access."""

    def __init__(self, scores: NDArray[Any], rate: Fraction) -> None:
        self._scores, self._rate = scores, rate

    @cached_property
    def _top(self) -> Fraction | float:
        scores = self._scores
        return containers.exact_score(_choice.largest(scores) if scores.dtype == np.float64 else int(scores.max()))

    def __len__(self) -> int:
        return len(self._scores)

    def __getitem__(self, i: Any) -> Any:
        return _exponent(containers.exact_score(self._scores[i].item()), self._top, self._rate)


class SelectionLaw(ScalarLaw):
    """The law of the index of a candidate; made by ``Selection.law``. `value` is the index itself.

    Probabilities are doubles; `sample` is exact.
    """

    family: ClassVar[str]  # a family of `PrivacyProfile`
    fill: ClassVar[Callable[..., None]]

    def __init__(self, scores: NDArray[np.float64], rate: float, exponents: Sequence[Fraction | float]) -> None:
        self._arguments = scores, rate, exponents
        self.support = (0, len(scores) - 1)

    @abstractmethod
    def _log_probabilities(self, exponents: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-probabilities of all candidates."""

    @cached_property
    def _logs(self) -> NDArray[np.float64]:
        scores, rate, _ = self._arguments
        return self._log_probabilities(_choice.exponents(scores, rate))

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = containers.integers("k", k)
        inside = (codes >= 0) & (codes <= self.support[1])
        return np.where(inside, self._logs[np.where(inside, codes, 0)], -np.inf)

    def cdf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = np.clip(containers.integers("k", k), -1, self.support[1])
        below = np.append(np.minimum(np.cumsum(np.exp(self._logs[:-1])), 1.0), [1.0, 0.0])
        return np.asarray(below[codes])

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        shape = checks.shape(size)
        out = np.empty(math.prod(shape), np.int64)
        for source, block in [(bit_generator(rng), out)] if size is None else blocks(rng, out):
            type(self).fill(source, *self._arguments, block)
        return int(out[0]) if size is None else out.reshape(shape)

    def value(self, k: ArrayLike) -> Any:
        codes = containers.integers("k", k)
        return codes if codes.ndim else int(codes)


class ExponentialLaw(SelectionLaw):
    """``P(i) = exp(-y_i) / sum_j exp(-y_j)``, y the exponents."""

    family = "bounded-range"
    fill = staticmethod(_choice.fill_choice)

    def _log_probabilities(self, exponents: NDArray[np.float64]) -> NDArray[np.float64]:
        return -exponents - math.log(math.fsum(np.exp(-exponents)))


class PermuteAndFlipLaw(SelectionLaw):
    """``P(i) = p_i * integral over u in (0, 1) of prod over j != i of (1 - p_j u)``, ``p = exp(-y)``.

    This is p_i E[1 / (1 + others)], others the number of heads among the other coins. The integrand is a polynomial of
    degree n - 1, which Gauss-Legendre quadrature with n / 2 nodes integrates: O(n**2), for audits of few candidates.
    """

    family = "pure"
    fill = staticmethod(_choice.fill_permute_and_flip)

    def _log_probabilities(self, exponents: NDArray[np.float64]) -> NDArray[np.float64]:
        from scipy.special import roots_legendre

        nodes, weights = roots_legendre(len(exponents) // 2 + 1)
        coins = np.exp(-exponents)
        logs = np.full(len(exponents), -np.inf)
        for u, log_weight in zip((1 + nodes) / 2, np.log(weights / 2), strict=True):
            factors = np.log1p(-coins * u)
            logs = np.logaddexp(logs, log_weight + (math.fsum(factors) - factors))
        return np.asarray(logs - exponents)


_LAWS: dict[str, type[SelectionLaw]] = {"exponential": ExponentialLaw, "permute-and-flip": PermuteAndFlipLaw}
