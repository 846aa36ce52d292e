"""Privacy guarantees: epsilon, delta and the relation of neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from dpfast import _checks
from dpfast.rounding import double_up, up

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
        At least 0. A Fraction, a Decimal or a string ("0.1", "1/3") is exact; it is stored as a Fraction unless it is
        equal to a double.
    delta : float
        In [0, 1], exact like `epsilon`; 0 is pure differential privacy.
    neighbors : {"replace-one", "add-remove", "local"}
    records : int
        The number of changed records of the guarantee (`Mechanism.privacy_map`); shown, not compared.

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
        for name in ("epsilon", "delta"):
            object.__setattr__(self, name, _checks.rational_or_double(name, getattr(self, name)))
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

        epsilon becomes k epsilon, and delta becomes delta (e^(k epsilon) - 1)/(e^epsilon - 1); both are 0 for k = 0.
        """
        k = _checks.whole("records", records)
        if k == 0:
            return Privacy(0.0, 0.0, self.neighbors)
        if k == 1:
            return self
        epsilon = up(Fraction(self.epsilon) * k) if math.isfinite(self.epsilon) else math.inf
        return Privacy(epsilon, self._group_delta_up(k), self.neighbors, k)

    def _group_delta_up(self, k: int) -> float:
        if self.delta == 0:
            return 0.0
        if self.epsilon == 0:
            return min(1.0, up(Fraction(self.delta) * k))
        # Exponents below 700 with one rounding, exp and expm1 accurate to a few ulp: a relative error below 2**-42.
        if self.epsilon > 700 or Fraction(self.epsilon) * (k - 1) > 700 or k > 2**1000:
            return 1.0
        growth = math.exp((k - 1) * self.epsilon) * math.expm1(-k * self.epsilon) / math.expm1(-self.epsilon)
        return min(1.0, self.delta * growth * (1 + 2.0**-40))


@dataclass(frozen=True)
class PrivacyProfile:
    """The privacy loss of a release, in the detail that composition can use.

    Except for an event of probability `privacy.delta`, the release reveals at most as much as the adaptive composition
    of its parts.

    Parameters
    ----------
    privacy : Privacy
        The guarantee of the release by itself.
    parts : sequence of (family, epsilon, times), optional
        Families: "pure", any epsilon-differentially private release; "bounded-range", a release whose privacy loss has
        a range of epsilon for any two neighbours, for example any exponential mechanism; "laplace", an integer or real
        number of sensitivity s plus Laplace noise of scale s / epsilon, rounded or not. Default: one "pure" part.

    Notes
    -----
    docs/proofs/composition.md

    Examples
    --------
    >>> import dpfast as dpf
    >>> median = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 100), epsilon=1.0)
    >>> median.privacy_profile.parts, median.privacy_profile.rho
    ((('bounded-range', 1.0, 1),), 0.125)
    >>> dpf.PrivacyProfile(dpf.Privacy(1.0)).rho
    0.5
    """

    privacy: Privacy
    parts: tuple[tuple[str, float, int], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.privacy, Privacy):
            raise TypeError(f"privacy must be a dpfast.Privacy, not {type(self.privacy).__name__}")
        parts = self.parts or (("pure", self.privacy.epsilon, 1),)
        try:
            checked = tuple(
                (family, double_up(_checks.rational_or_double("epsilon", epsilon)), _checks.whole("times", times))
                for family, epsilon, times in parts
            )
        except (TypeError, ValueError):
            raise ValueError(f"parts must be of the form (family, epsilon, times), not {parts!r}") from None
        for family, epsilon, _ in checked:
            if family not in _CONCENTRATION:
                raise ValueError(f"family must be one of {', '.join(map(repr, _CONCENTRATION))}, not {family!r}")
            if not 0 <= epsilon < math.inf:
                raise ValueError(f"the epsilon of a part must be finite and at least 0, not {epsilon!r}")
        object.__setattr__(self, "parts", checked)

    @property
    def rho(self) -> float:
        """The guarantee in zero-concentrated differential privacy, rounded up; delta-approximate if delta > 0.

        The sum over the parts of epsilon**2 / 8 for a bounded range, else epsilon**2 / 2, and of at most epsilon.
        """
        return up(sum((times * _rho(family, Fraction(epsilon)) for family, epsilon, times in self.parts), Fraction()))

    def renyi_up(self, order: float) -> float:
        """An upper bound on the Renyi divergence of this order, above 1, between neighbours (apart from delta).

        References
        ----------
        Mironov 2017, "Renyi differential privacy", table II; Bun and Steinke 2016, "Concentrated differential privacy";
        Cesar and Rogers 2021 for mechanisms of bounded range.
        """
        order = _checks.real("order", order)
        if order <= 1:
            raise ValueError(f"order must be above 1, not {order!r}")
        return up(
            sum((times * Fraction(_renyi(family, epsilon, order)) for family, epsilon, times in self.parts), Fraction())
        )


# rho / epsilon**2 of each family.
_CONCENTRATION = {"pure": Fraction(1, 2), "bounded-range": Fraction(1, 8), "laplace": Fraction(1, 2)}


def _rho(family: str, epsilon: Fraction) -> Fraction:
    return min(_CONCENTRATION[family] * epsilon**2, epsilon)


def _renyi(family: str, epsilon: float, order: float) -> float:
    """An upper bound for one part: the least known bound, in doubles with an allowance of 2**-40 for rounding."""
    bounds = [up(_rho(family, Fraction(epsilon)) * Fraction(order)), epsilon]
    if order * epsilon < 700:  # otherwise the logarithm below is nearly epsilon
        rise, fall = math.exp(order * epsilon), math.exp(-(order - 1) * epsilon)
        moment = (rise + fall) / (1 + math.exp(epsilon))  # of randomised response
        if family == "laplace":
            rise, fall = math.exp((order - 1) * epsilon), math.exp(-order * epsilon)
            moment = min(moment, (order * rise + (order - 1) * fall) / (2 * order - 1))
        bounds.append(math.log(moment * (1 + 2.0**-40)) / (order - 1) * (1 + 2.0**-40))
    return min(bounds)


def _shown(x: float | Fraction) -> str:
    """Show all digits, or a ratio, so that a guarantee that was rounded up is not printed rounded down."""
    return str(x) if isinstance(x, Fraction) else repr(x).removesuffix(".0")
