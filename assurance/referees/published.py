"""Laws as their publications state them, in 40 digits, and tests of draws against them.

A law is a dictionary from outcome to probability, cut where less than 1e-25 is left.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from mpmath import mp, mpf
from scipy.stats import chi2, norm

ALPHA = 1e-9
DIGITS = 40
Law = dict[int, mpf]


def _symmetric(weight: Callable[[int], mpf], normalised: bool = False) -> Law:
    with mp.workdps(DIGITS):
        found, z = {0: weight(0)}, 0
        while found[z] > mpf(10) ** -25:
            z += 1
            found[z] = found[-z] = weight(z)
        total = mpf(1) if normalised else mp.fsum(found.values())
        return {z: p / total for z, p in found.items()}


def discrete_laplace(scale: Fraction | float) -> Law:
    """Ghosh, Roughgarden and Sundararajan 2009; Canonne, Kamath and Steinke 2020."""
    s = _exact(scale)
    return _symmetric(lambda z: mp.tanh(1 / (2 * s)) * mp.exp(-z / s), normalised=True)


def rounded_laplace(scale: Fraction | float) -> Law:
    """Laplace noise (Dwork et al. 2006), rounded; also Mironov's snapping (2012), in units of its grid."""
    s = _exact(scale)

    def weight(z: int) -> mpf:
        return -mp.expm1(-1 / (2 * s)) if z == 0 else mp.exp(-z / s) * mp.sinh(1 / (2 * s))

    return _symmetric(weight, normalised=True)


def rounded_gaussian(sigma: float) -> Law:
    s = _exact(sigma)
    return _symmetric(
        lambda z: (mp.erfc((z - 0.5) / (s * mp.sqrt(2))) - mp.erfc((z + 0.5) / (s * mp.sqrt(2)))) / 2, True
    )


def discrete_gaussian(variance: Fraction | float) -> Law:
    """Canonne, Kamath and Steinke 2020, definition 1."""
    v = _exact(variance)
    return _symmetric(lambda z: mp.exp(-(mpf(z) ** 2) / (2 * v)))


def staircase(epsilon: float, sensitivity: int, r: int) -> Law:
    """Geng and Viswanath 2016, on the integers: steps of length `sensitivity` after a first one of r."""
    return _symmetric(lambda z: mp.exp(-mpf(epsilon) * math.floor(1 + Fraction(z - r, sensitivity))))


def exponential(scores: list[float], rate: float) -> Law:
    """McSherry and Talwar 2007."""
    with mp.workdps(DIGITS):
        weights = [mp.exp(mpf(rate) * score) for score in scores]
        return {i: w / mp.fsum(weights) for i, w in enumerate(weights)}


def permute_and_flip(scores: list[float], rate: float) -> Law:
    """McKenna and Sheldon 2020, algorithm 1, over all permutations."""
    with mp.workdps(DIGITS):
        heads = [mp.exp(mpf(rate) * (score - max(scores))) for score in scores]
        found = dict.fromkeys(range(len(scores)), mpf(0))
        orders = list(itertools.permutations(range(len(scores))))
        for order in orders:
            tails = mpf(1)
            for i in order:
                found[i] += tails * heads[i] / len(orders)
                tails *= 1 - heads[i]
        return found


def randomised_response(k: int, epsilon: float) -> Law:
    """Warner 1965; Kairouz, Oh and Viswanath 2014: the true category, 0, or one of k - 1 others."""
    with mp.workdps(DIGITS):
        other = 1 / (mp.exp(mpf(epsilon)) + k - 1)
        return {0: 1 - (k - 1) * other, **dict.fromkeys(range(1, k), other)}


def _exact(number: Fraction | float) -> mpf:
    exact = Fraction(number)
    with mp.workdps(DIGITS):
        return mpf(exact.numerator) / exact.denominator


def scaled(law: Callable[..., Law], *given: float, factor: float) -> Law:
    """The law with its first parameter changed."""
    return law(given[0] * factor, *given[1:])


def shifted(law: Law, by: int = 1) -> Law:
    return {z + by: p for z, p in law.items()}


@dataclass(frozen=True)
class Cells:
    """Intervals of outcomes of nearly equal probability, and their probabilities."""

    last: np.ndarray  # of each cell but the last one
    probabilities: np.ndarray

    @classmethod
    def of(cls, law: Law, draws: int, most: int = 64) -> "Cells":
        share = max(1 / most, 50 / draws)
        last, probabilities, held = [], [], 0.0
        for z in sorted(law):
            held += float(law[z])
            if held >= share:
                last.append(z)
                probabilities.append(held)
                held = 0.0
        probabilities[-1] += held
        return cls(np.array(last[:-1]), np.array(probabilities))

    def counts(self, draws: np.ndarray) -> np.ndarray:
        return np.bincount(np.searchsorted(self.last, draws), minlength=len(self.probabilities))


def p_value(draws: np.ndarray, law: Law) -> float:
    """Of the worse of Pearson's test and, for numbers, normal tests of the means of Z and |Z|; times their number."""
    cells = Cells.of(law, len(draws))
    expected = len(draws) * cells.probabilities
    statistic = float(((cells.counts(draws) - expected) ** 2 / expected).sum())
    found = [float(chi2.sf(statistic, len(expected) - 1))]
    if min(law) < 0:
        z, p = np.array(sorted(law), float), np.array([float(law[k]) for k in sorted(law)])
        for function in (np.abs, np.positive):
            mean = p @ function(z)
            spread = math.sqrt((p @ (function(z) - mean) ** 2) / len(draws))
            found.append(2 * float(norm.sf(abs(function(draws.astype(float)).mean() - mean) / spread)))
    return min(1.0, len(found) * min(found))


def two_samples(a: np.ndarray, b: np.ndarray, law: Law) -> float:
    """The p-value of Pearson's test that two samples have one law; the cells are those of a public law."""
    cells = Cells.of(law, min(len(a), len(b)))
    counts = np.stack([cells.counts(a), cells.counts(b)]).astype(float)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    statistic = float(((counts - expected) ** 2 / np.maximum(expected, 1e-300)).sum())
    return float(chi2.sf(statistic, counts.shape[1] - 1))
