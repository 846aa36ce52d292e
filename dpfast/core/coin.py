"""The private decision of a local randomiser, to keep or to lie, by an exact 64-bit coin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from dpfast.core import checks

_WORD = 2**64
# Below this epsilon, 64 bits are too few for a nearly fair coin.
LEAST_EPSILON = 2.0**-40


@dataclass(frozen=True)
class Coin:
    """A coin that shows "keep" with probability ``threshold / 2**64``: a uniform 64-bit word is below `threshold`.

    Parameters
    ----------
    threshold : int
        In 1..2**64 - 1.
    odds : Fraction
        The odds of "keep" at epsilon = 0: the ratio of the numbers of reports behind "keep" and "lie".

    Notes
    -----
    The coin is exact, not an approximation of an ideal one. Estimators remove the bias of reports with its
    `probability`, `ratio` and `gain`, so estimates are exactly unbiased, and the loss is exactly `epsilon`.
    """

    threshold: int
    odds: Fraction = Fraction(1)

    @property
    def probability(self) -> Fraction:
        """P(keep)."""
        return Fraction(self.threshold, _WORD)

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of the probabilities of a report under two inputs: e**epsilon for this coin."""
        return Fraction(self.threshold, _WORD - self.threshold) / self.odds

    @property
    def epsilon(self) -> float:
        """The privacy loss ``log(ratio)``, to a unit in the last place. `coin` bounds the exact `ratio`."""
        excess = self.ratio - 1
        return math.log1p(float(excess)) if excess < 1 else math.log(self.ratio)

    @property
    def gain(self) -> float:
        """The factor ``1 / (2 P(keep) - 1)`` that removes the bias of a kept or flipped sign; coth(epsilon / 2)."""
        return float(1 / (2 * self.probability - 1))


@lru_cache(maxsize=256)
def coin(epsilon: float, odds: Fraction = Fraction(1)) -> Coin:
    """Return the 64-bit coin of probability ``odds e^epsilon / (odds e^epsilon + 1)``, rounded down, toward more
    privacy.

    Parameters
    ----------
    epsilon : float
        At least 2**-40, a double. From 44.4 on the coin with even odds is constant: it shows "lie" once in 2**64.
    odds : Fraction
        Positive. For a report inside or outside a set of w of M reports: w / (M - w).

    Raises
    ------
    ValueError
        If `epsilon` is too small, or if 64 bits leave less than half of epsilon at these odds.

    Notes
    -----
    Privacy (https://dpfast.readthedocs.io/en/latest/proofs/reflection.html): rounding down reduces the ratio of "keep"
    to "lie", which remains at least 1. Cost: 20 us for the first call, then cached.
    """
    from dpfast._kernels._balls import keep_threshold

    epsilon = checks.positive_down("epsilon", epsilon)
    if epsilon < LEAST_EPSILON:
        raise ValueError(f"epsilon must be at least 2**-40 for a local randomiser, not {epsilon!r}")
    threshold = min(keep_threshold(epsilon, odds), _WORD - 1)
    if threshold < 1 or Coin(threshold, odds).epsilon < min(epsilon, 44.0) / 2:
        raise ValueError(f"epsilon={epsilon!r} would lose more than half in a 64-bit coin with odds {float(odds):g}")
    return Coin(threshold, odds)
