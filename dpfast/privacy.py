"""What a release guarantees: epsilon, delta and the neighbours they speak of."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from dpfast import _checks

_NEIGHBORS = {
    "replace-one": "{} replaced (the number of records is public)",
    "add-remove": "{} added or removed",
    "local": "any change of {}, against everyone but its owner",
}


@dataclass(frozen=True)
class Privacy:
    """A privacy guarantee: (epsilon, delta) differential privacy under a stated relation of neighbours.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In [0, 1]; 0 is pure differential privacy.
    neighbors : {"replace-one", "add-remove", "local"}
    records : int
        How many changed records the guarantee is for (`Mechanism.privacy_map`); shown, not compared.

    Examples
    --------
    >>> import dpfast as dpf
    >>> print(dpf.Privacy(1.0))
    epsilon = 1 (pure differential privacy) for one record replaced (the number of records is public)
    """

    epsilon: float
    delta: float = 0.0
    neighbors: str = "replace-one"
    records: int = field(default=1, compare=False)

    def __post_init__(self) -> None:
        if self.neighbors not in _NEIGHBORS:
            raise ValueError(f"neighbors must be one of {', '.join(map(repr, _NEIGHBORS))}, not {self.neighbors!r}")
        if not (self.epsilon >= 0 and 0 <= self.delta <= 1):
            raise ValueError(f"epsilon must be at least 0 and delta in [0, 1], not {self.epsilon!r}, {self.delta!r}")

    def __str__(self) -> str:
        if self.delta:
            promise = f"epsilon = {_shown(self.epsilon)}, delta = {_shown(self.delta)}"
        else:
            promise = f"epsilon = {_shown(self.epsilon)} (pure differential privacy)"
        changed = "one record" if self.records == 1 else f"{self.records} records"
        return f"{promise} for {_NEIGHBORS[self.neighbors].format(changed)}"

    def group_up(self, records: int) -> Privacy:
        """The guarantee for k changed records at once, rounded up.

        k epsilon, and delta (e^(k epsilon) - 1)/(e^epsilon - 1); nothing for k = 0.
        """
        k = _checks.whole("records", records)
        if k == 0:
            return Privacy(0.0, 0.0, self.neighbors)
        if k == 1:
            return self
        epsilon = _up(Fraction(self.epsilon) * k) if math.isfinite(self.epsilon) else math.inf
        return Privacy(epsilon, self._group_delta_up(k), self.neighbors, k)

    def _group_delta_up(self, k: int) -> float:
        if self.delta == 0:
            return 0.0
        if self.epsilon == 0:
            return min(1.0, _up(Fraction(self.delta) * k))
        # Exponents below 700 with one rounding, exp and expm1 right to a few units in the last place: below 2**-42.
        if self.epsilon > 700 or Fraction(self.epsilon) * (k - 1) > 700 or k > 2**1000:
            return 1.0
        growth = math.exp((k - 1) * self.epsilon) * math.expm1(-k * self.epsilon) / math.expm1(-self.epsilon)
        return min(1.0, self.delta * growth * (1 + 2.0**-40))


def _shown(x: float) -> str:
    """All digits: a guarantee that was rounded up is not shown rounded down."""
    return repr(float(x)).removesuffix(".0")


def _up(x: Fraction) -> float:
    """The least double that is not below x."""
    try:
        y = float(x)
    except OverflowError:
        return math.inf
    return y if Fraction(y) >= x else math.nextafter(y, math.inf)
