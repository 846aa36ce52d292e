"""The one private decision of a local randomiser: keep or lie, an exact coin of 64 bits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from dpfast import _checks

_WORD = 2**64
# Below, 64 bits say too little about a coin that is nearly fair.
_LEAST_EPSILON = 2.0**-40


@dataclass(frozen=True)
class Coin:
    """A coin that shows "keep" with probability ``threshold / 2**64``: a uniform 64-bit word is below `threshold`.

    Parameters
    ----------
    threshold : int
        In 1..2**64 - 1.
    odds : Fraction
        The odds of "keep" at epsilon = 0: what "keep" and "lie" stand for is so many times as large in number.

    Notes
    -----
    The coin is what it is, not an approximation of an ideal one: whoever removes the bias of a report computes with
    `probability`, `ratio` and `gain`, so estimates are unbiased exactly, and the loss is `epsilon`, exactly.
    """

    threshold: int
    odds: Fraction = Fraction(1)

    @property
    def probability(self) -> Fraction:
        """P(keep)."""
        return Fraction(self.threshold, _WORD)

    @property
    def ratio(self) -> Fraction:
        """Largest ratio of the probabilities of one report under two inputs: the e**epsilon of this coin."""
        return Fraction(self.threshold, _WORD - self.threshold) / self.odds

    @property
    def epsilon(self) -> float:
        """The privacy loss ``log(ratio)``, to a unit in the last place; `ratio` is exact, and what `coin` bounds."""
        excess = self.ratio - 1
        return math.log1p(float(excess)) if excess < 1 else math.log(self.ratio)

    @property
    def gain(self) -> float:
        """``1 / (2 P(keep) - 1)``, at even odds ``coth(epsilon / 2)``: what a kept-or-flipped sign is multiplied by."""
        return float(1 / (2 * self.probability - 1))


@lru_cache(maxsize=256)
def coin(epsilon: float, odds: Fraction = Fraction(1)) -> Coin:
    """The 64-bit coin of probability ``odds e^epsilon / (odds e^epsilon + 1)``, rounded down: towards privacy.

    Parameters
    ----------
    epsilon : float
        At least 2**-40, a double. From 44.4 on the coin of even odds is the last one, "lie" once in 2**64.
    odds : Fraction
        Positive. For "inside a set of w of M reports or outside": w / (M - w).

    Raises
    ------
    ValueError
        `epsilon` too small; odds for which 64 bits leave less than half of epsilon.

    Notes
    -----
    Privacy (docs/proofs/reflection.md): rounding down lowers the ratio of "keep" to "lie", which stays at least 1.
    Cost: 20 us once, then cached. Reference: mechanisms-b 1.0.
    """
    from dpfast._kernels._balls import keep_threshold

    epsilon = _checks.positive_down("epsilon", epsilon)
    if epsilon < _LEAST_EPSILON:
        raise ValueError(f"epsilon must be at least 2**-40 for a local randomiser, not {epsilon!r}")
    threshold = min(keep_threshold(epsilon, odds), _WORD - 1)
    if threshold < 1 or Coin(threshold, odds).epsilon < min(epsilon, 44.0) / 2:
        raise ValueError(
            f"epsilon={epsilon!r} is more than half lost in a coin of 64 bits with odds of {float(odds):g}"
        )
    return Coin(threshold, odds)
