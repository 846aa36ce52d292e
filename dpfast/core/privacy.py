"""Privacy guarantees: epsilon and delta, rho or mu, and the relation of neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpfast.core import checks, composition
from dpfast.core.divergences import (
    FAMILIES,
    WITH_STEPS,
    Part,
    concentrated_delta_up,
    gaussian_delta_up,
    has_epsilon,
    pure_delta_up,
    renyi_up,
    rho_up,
)
from dpfast.core.rounding import double_up, down, root_up, up
from dpfast.core.types import Exact

_NEIGHBORS = {
    "replace-one": "{} replaced (the number of records is public)",
    "add-remove": "{} added or removed",
    "local": "any change of {}, against everyone but its owner",
}
_CHANGES = {"replace-one": "{} replaced", "add-remove": "{} added or removed", "local": "any change of {}"}
_KINDS = {
    "epsilon": "pure differential privacy",
    "rho": "zero-concentrated differential privacy",
    "mu": "Gaussian differential privacy",
}
_BY_UNITS = (
    "neighbors must be 'add-remove' for units, not {!r}: a unit is added or removed together with its records, and "
    "their number is private; give the mechanism neighbors='add-remove'"
)
_MISSING: Any = None  # epsilon, where rho or mu is given


@dataclass(frozen=True, repr=False)
class Privacy:
    """A privacy guarantee: (epsilon, delta), rho-zero-concentrated or mu-Gaussian differential privacy.

    Parameters
    ----------
    epsilon : float
        At least 0. A Fraction, a Decimal or a string ("0.1", "1/3") is exact; it is stored as a Fraction unless it is
        equal to a double. Infinite if `rho` or `mu` is given instead.
    delta : float
        In [0, 1]; exact like `epsilon`. 0 is pure differential privacy. With `rho`: the probability of an event that is
        set aside (approximate concentrated privacy). 0 with `mu`.
    neighbors : {"replace-one", "add-remove", "local"}
    records : int
        The number of changed records of the guarantee (`Mechanism.privacy_map`), or of changed units if `per_unit` is
        given; shown, not compared.
    rho : float, optional
        The Renyi divergence of each order a above 1 between neighbours is at most rho a.
    mu : float, optional
        Neighbours are at most as easy to distinguish as normal distributions of variance 1 whose means are mu apart.
    per_unit : int, optional
        The guarantee is for a unit, such as a person, with at most this many records, which are added or removed
        together (`for_units`, `dpfast.bound_contributions`); shown, not compared. Needs neighbors="add-remove".

    Notes
    -----
    https://dpfast.readthedocs.io/en/latest/proofs/concentration.html,
    https://dpfast.readthedocs.io/en/latest/proofs/bounded-contributions.html

    References
    ----------
    Dwork, McSherry, Nissim and Smith 2006; Bun and Steinke 2016, "Concentrated differential privacy"; Dong, Roth and Su
    2022, "Gaussian differential privacy".

    Examples
    --------
    >>> import dpfast as dpf
    >>> print(dpf.Privacy(1.0))
    epsilon = 1 (pure differential privacy) for one record replaced (the number of records is public)
    >>> dpf.Privacy(mu=0.25)
    Privacy(mu=0.25, delta=0.0, neighbors='replace-one', records=1)
    """

    epsilon: float = _MISSING
    delta: float = 0.0
    neighbors: str = "replace-one"
    records: int = field(default=1, compare=False)
    rho: float | None = field(default=None, kw_only=True)
    mu: float | None = field(default=None, kw_only=True)
    per_unit: int | None = field(default=None, kw_only=True, compare=False)

    if TYPE_CHECKING:  # amounts may be given exactly

        def __init__(
            self,
            epsilon: Exact = ...,
            delta: Exact = 0.0,
            neighbors: str = "replace-one",
            records: int = 1,
            *,
            rho: Exact | None = None,
            mu: Exact | None = None,
            per_unit: int | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        checks.choice("neighbors", self.neighbors, tuple(_NEIGHBORS))
        if self.per_unit is not None:
            object.__setattr__(self, "per_unit", checks.whole("per_unit", self.per_unit, least=1))
            if self.neighbors != "add-remove":
                raise ValueError(_BY_UNITS.format(self.neighbors))
        if self.epsilon is _MISSING and (self.rho is not None or self.mu is not None):
            object.__setattr__(self, "epsilon", math.inf)
        if self.epsilon is _MISSING:
            raise TypeError("epsilon, rho or mu must be given")
        if (self.rho is not None) + (self.mu is not None) + (self.epsilon != math.inf) > 1:
            raise TypeError("only one of epsilon, rho and mu can be given")
        unit = self.unit
        for name in (unit, "delta"):
            object.__setattr__(self, name, checks.rational_or_double(name, getattr(self, name)))
        if not (self.epsilon >= 0 and 0 <= self.delta <= 1):
            raise ValueError(f"{unit} must be at least 0 and delta in [0, 1], not {self.amount!r}, {self.delta!r}")
        if unit != "epsilon" and not 0 <= self.amount < math.inf:
            raise ValueError(f"{unit} must be finite and at least 0, not {self.amount!r}")
        if self.mu is not None and self.delta:
            raise ValueError(f"delta must be 0 with mu, not {self.delta!r}")

    @property
    def unit(self) -> str:
        """The parameter that the guarantee is stated in: "epsilon", "rho" or "mu"."""
        return "mu" if self.mu is not None else "epsilon" if self.rho is None else "rho"

    @property
    def amount(self) -> float:
        """The epsilon, rho or mu."""
        amount: float = getattr(self, self.unit)
        return amount

    def __repr__(self) -> str:
        names = (self.unit, "delta", "neighbors", "records", *(["per_unit"] if self.per_unit else []))
        return f"Privacy({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def __str__(self) -> str:
        stated = f"{self.unit} = {shown(self.amount)}"
        if self.delta:
            stated += f", delta = {_few_digits_up(self.delta, 6)}"
        if self.unit != "epsilon" or not self.delta:
            stated += f" ({_KINDS[self.unit]})"
        return f"{stated} for {_NEIGHBORS[self.neighbors].format(self._changed)}"

    @property
    def short(self) -> str:
        """The guarantee in a few words, with epsilon rounded up to six digits, and delta to three.

        Examples
        --------
        >>> import dpfast as dpf
        >>> dpf.Privacy("0.1", 1e-6).short
        'epsilon = 0.1, delta = 1e-06 for one record replaced'
        """
        delta = f", delta = {_few_digits_up(self.delta, 3)}" if self.delta else ""
        stated = f"{self.unit} = {_few_digits_up(self.amount, 6)}{delta}"
        return f"{stated} for {_CHANGES[self.neighbors].format(self._changed)}"

    @property
    def _changed(self) -> str:
        """What neighbours differ in."""
        what = "record" if self.per_unit is None else "unit"
        changed = f"one {what}" if self.records == 1 else f"{self.records} {what}s"
        if self.per_unit is not None:
            changed += f" of at most {self.per_unit} record{'s' * (self.per_unit > 1)}"
        return changed

    def group_up(self, records: int) -> Privacy:
        """Return the guarantee for k changed records (or units, if it is for units) at once, rounded up.

        epsilon becomes k epsilon, and delta becomes delta (e^(k epsilon) - 1)/(e^epsilon - 1); rho becomes k^2 rho, and
        mu becomes k mu; all are 0 for k = 0. Where rho or mu exceeds the doubles, epsilon is infinite. Raises a
        ValueError for rho with a positive delta: no group guarantee is known.
        """
        k = checks.whole("records", records)
        if k == 0:
            return Privacy(0.0, 0.0, self.neighbors, per_unit=self.per_unit)
        if k == 1:
            return self
        if self.unit == "rho" and self.delta:
            raise ValueError(f"delta must be 0 for the group guarantee of rho, not {self.delta!r}")
        if self.unit != "epsilon":
            amount = up(Fraction(self.amount) * (k if self.unit == "mu" else k**2))
            stated: dict[str, Any] = {self.unit: amount} if amount < math.inf else {"epsilon": math.inf}
            return Privacy(**stated, neighbors=self.neighbors, records=k, per_unit=self.per_unit)
        epsilon = up(Fraction(self.epsilon) * k) if math.isfinite(self.epsilon) else math.inf
        return Privacy(epsilon, self._group_delta_up(k), self.neighbors, k, per_unit=self.per_unit)

    def for_units(self, per_unit: int) -> Privacy:
        """Return the guarantee for one unit with at most `per_unit` records, which are added or removed together.

        The group guarantee of `per_unit` records (`group_up`). A guarantee that is already for units of at least as
        many records is returned unchanged.

        Raises
        ------
        ValueError
            If the neighbours are not "add-remove", if the guarantee is for units with fewer records, or like
            `group_up`.

        Examples
        --------
        >>> import dpfast as dpf
        >>> print(dpf.Privacy(0.5, neighbors="add-remove").for_units(3))
        epsilon = 1.5 (pure differential privacy) for one unit of at most 3 records added or removed
        """
        k = checks.whole("per_unit", per_unit, least=1)
        if self.neighbors != "add-remove":
            raise ValueError(_BY_UNITS.format(self.neighbors))
        if self.per_unit is None:
            if self.records != 1:
                raise ValueError(f"records must be 1 for a guarantee of units, not {self.records}")
            return replace(self.group_up(k), records=1, per_unit=k)
        if self.per_unit < k:
            raise ValueError(
                f"per_unit must be at most {self.per_unit}, the records of a unit in this guarantee, not {k}"
            )
        return self

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

    def delta_up(self, epsilon: float) -> float:
        """Return a delta with which this guarantee implies (epsilon, delta) differential privacy, rounded up.

        The least for a guarantee in epsilon (Kairouz, Oh and Viswanath 2015) or in mu (Balle and Wang 2018); for rho
        that of Canonne, Kamath and Steinke 2020, which is close to the least.

        Examples
        --------
        >>> import dpfast as dpf
        >>> f"{dpf.Privacy(mu=0.25).delta_up(1.0):.4g}"
        '2.924e-06'
        """
        target = checks.nonnegative_rational("epsilon", epsilon)
        aside = Fraction(self.delta)
        if self.unit == "mu":
            delta = gaussian_delta_up(Fraction(self.amount) ** 2, target)
        elif self.unit == "rho":
            delta = concentrated_delta_up(Fraction(self.amount), target)
        elif self.epsilon <= target:
            delta = 0.0
        else:
            delta = pure_delta_up(Fraction(self.epsilon), target) if math.isfinite(self.epsilon) else 1.0
        return up(aside + (1 - aside) * Fraction(delta))

    def epsilon_up(self, delta: float) -> float:
        """Return the least double epsilon whose `delta_up` is at most delta; infinity if it is beyond 2**1000, for mu
        2**20.

        Examples
        --------
        >>> import dpfast as dpf
        >>> round(dpf.Privacy(mu=0.25).epsilon_up(1e-6), 4)
        1.0607
        """
        delta = checks.delta_down(delta)

        def suffices(epsilon: float) -> bool:
            return self.delta_up(epsilon) <= delta

        if delta < self.delta or (self.unit != "epsilon" and not delta and self.amount):
            return math.inf
        return _least(suffices)

    def dp_event(self) -> Any:
        """Return the guarantee as a ``dp_accounting.DpEvent``, for accountants there; see `PrivacyProfile.dp_event`."""
        return PrivacyProfile(self).dp_event()


def _least(suffices: Callable[[float], bool]) -> float:
    """Return the least double, at least 0, with a property that all greater ones have; infinity if it is beyond
    2**1000.
    """
    if suffices(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while not suffices(high):
        low, high = high, 2 * high
        if high > 2.0**1000:
            return math.inf
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class PrivacyProfile:
    """The privacy loss of a release, in the detail that composition can use.

    Except for an event of probability `failure`, the release reveals at most as much as the adaptive composition of its
    parts.

    Parameters
    ----------
    privacy : Privacy
        The guarantee of the release by itself. If a part is Gaussian or concentrated, no epsilon is finite at delta 0:
        (epsilon, delta) is then a point on the curve of the parts, or the guarantee is stated in mu or rho.
    parts : sequence of (family, epsilon, times), optional
        Families: "pure", any epsilon-differentially private release; "bounded-range", a release whose privacy loss has
        a range of epsilon for any two neighbours, for example any exponential mechanism; "laplace", an integer or real
        number of sensitivity s plus Laplace noise of scale s / epsilon, rounded or not; "discrete-laplace", (family,
        epsilon, times, s), an integer of sensitivity s plus noise z of probability proportional to ``exp(-epsilon |z| /
        s)``, s = 1 by default; "staircase", (family, epsilon, times, s, r), one of probability proportional to
        ``exp(-epsilon floor(1 + (|z| - r) / s))``; "zero-sum-laplace", (family, epsilon, times, k), k counts, of which
        a record may raise one by 1 and lower another, plus noise z of sum 0 with probability proportional to
        ``exp(-epsilon sum |z| / 2)``; "shuffled", (family, epsilon, times, n, k), n reports in random order, each of
        them epsilon-locally private; k is 2, the default, or that of `dpfast.local.Shuffled` for its randomiser;
        "gaussian", (family, mu, times), numbers of l2 sensitivity D plus Gaussian noise of standard deviation D / mu,
        rounded to integers or not; "concentrated", (family, rho, times), any rho-zero-concentrated release. Default:
        one part with the parameter of `privacy`.
    failure : float, optional
        The probability of the event that is set aside, at most the delta of `privacy`. Default: that delta; 0 where a
        part is Gaussian or concentrated (except parts of parameter 0, or made 0 times) and `privacy` is stated in
        epsilon, whose delta is then that of the parts. A release with both states `privacy` in rho, or `failure`.

    Notes
    -----
    https://dpfast.readthedocs.io/en/latest/proofs/composition.html,
    https://dpfast.readthedocs.io/en/latest/proofs/concentration.html

    Examples
    --------
    >>> import dpfast as dpf
    >>> median = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 100), epsilon=1.0)
    >>> median.privacy_profile.parts, round(median.privacy_profile.rho, 6)
    ((('bounded-range', 1.0, 1),), 0.123302)
    >>> round(dpf.PrivacyProfile(dpf.Privacy(1.0)).rho, 6)
    0.462117
    >>> dpf.PrivacyProfile(dpf.Privacy(mu=0.25), [("gaussian", 0.125, 4)]).mu
    0.25
    """

    privacy: Privacy
    parts: tuple[tuple[str, float, int] | tuple[str, float, int, int] | tuple[str, float, int, int, float], ...] = ()
    failure: float = field(kw_only=True, default=_MISSING)

    def __post_init__(self) -> None:
        if not isinstance(self.privacy, Privacy):
            raise TypeError(f"privacy must be a dpfast.Privacy, not {type(self.privacy).__name__}")
        if self.privacy.amount == math.inf:
            raise ValueError("epsilon must be finite in a profile, not inf: state privacy in rho or mu")
        parts = self.parts or ((_DEFAULTS[self.privacy.unit], self.privacy.amount, 1),)
        try:
            checked = tuple(_part(*part) for part in parts)
        except (TypeError, ValueError):
            raise ValueError(
                "parts must be of the form (family, epsilon, times), with further integers for "
                f"{', '.join(map(repr, WITH_STEPS))}, not {parts!r}"
            ) from None
        for family, parameter, _, *shape in checked:
            if family not in FAMILIES:
                raise ValueError(f"family must be one of {', '.join(map(repr, FAMILIES))}, not {family!r}")
            if not 0 <= parameter < math.inf:
                raise ValueError(f"the parameter of a part must be finite and at least 0, not {parameter!r}")
            if shape and family not in WITH_STEPS:
                raise ValueError(f"parts of the family {family!r} have no steps")
        object.__setattr__(self, "parts", checked)
        given = self.usual_failure if self.failure is _MISSING else self.failure
        failure = checks.rational_or_double("failure", given)
        if not 0 <= failure <= self.privacy.delta:
            raise ValueError(f"failure must be at least 0 and at most delta, not {failure!r}")
        object.__setattr__(self, "failure", failure)

    @property
    def usual_failure(self) -> float:
        """The default of `failure`: the delta of `privacy`, but 0 if that is the delta of Gaussian or concentrated
        parts.
        """
        delta = self.privacy.delta
        on_a_curve = (
            delta
            and self.privacy.unit == "epsilon"
            and not all(has_epsilon(family) for family, parameter, times, *_ in self.parts if times and parameter)
        )
        return 0.0 if on_a_curve else delta

    def each_part(self) -> list[tuple[Part, int]]:
        """Return the parts, and how many times each is made."""
        return [(Part(family, parameter, *shape), times) for family, parameter, times, *shape in self.parts]

    def for_units(self, per_unit: int, *, per_key: int | None = None) -> PrivacyProfile:
        """Return the profile for one unit with at most `per_unit` records, which are added or removed together.

        With ``per_key=1`` the release is one of many on disjoint groups of records, such as those of `dpfast.by_group`,
        and a unit has at most one record in each group: `per_unit` releases of one record compose. Parts are then made
        `per_unit` times as often, so that rho is `per_unit` and mu sqrt(`per_unit`) times that of one record.

        Without it the records may be in the same group. Parts that are all "gaussian" have mu times `per_unit`. One
        part made once keeps its family, with its parameter times `per_unit` ("concentrated": times `per_unit`**2),
        unless it is a "staircase" or "zero-sum-laplace". Other parts become one of the family "pure" or "concentrated",
        that of the smaller rho. A profile with a positive `failure` becomes `Privacy.for_units` alone. Errors are those
        of `Privacy.for_units`.

        Notes
        -----
        https://dpfast.readthedocs.io/en/latest/proofs/bounded-contributions.html

        Examples
        --------
        >>> import dpfast as dpf
        >>> noisy = dpf.PrivacyProfile(dpf.Privacy(mu=0.25, neighbors="add-remove"))
        >>> noisy.for_units(3).parts
        (('gaussian', 0.75, 1),)
        """
        k = checks.whole("per_unit", per_unit, least=1)
        if checks.one_or_none("per_key", per_key) and self.privacy.per_unit is None:
            self.privacy.for_units(1)  # raises for other neighbours
            return self._repeated(k)
        privacy = self.privacy.for_units(k)
        return self if privacy is self.privacy else self._of_group(privacy, k)

    def _repeated(self, k: int) -> PrivacyProfile:
        """Return the profile of k such releases, of different records of a unit."""
        stated, aside = self.privacy, Fraction(self.privacy.delta)
        amount = Fraction(stated.amount)
        given: dict[str, Any] = {stated.unit: root_up(k * amount**2) if stated.unit == "mu" else up(k * amount)}
        privacy = Privacy(**given, delta=min(1.0, up(k * aside)), neighbors=stated.neighbors, per_unit=k)
        parts = ((family, parameter, times * k, *shape) for family, parameter, times, *shape in self.parts)
        repeated = PrivacyProfile(privacy, (*parts,), failure=min(privacy.delta, up(k * Fraction(self.failure))))
        return repeated._with_gaussian_delta()

    def for_replaced(self) -> PrivacyProfile:
        """Return the profile for one replaced record, of a guarantee for one record added or removed.

        A replaced record is one removed and one added: the group guarantee of two, with parts as in `for_units`.

        Raises
        ------
        ValueError
            If the neighbours are not "add-remove"; for units, two of which a replaced record may change; or for rho
            with a positive delta, whose group guarantee is not known.

        Notes
        -----
        https://dpfast.readthedocs.io/en/latest/proofs/bounded-contributions.html

        Examples
        --------
        >>> import dpfast as dpf
        >>> count = dpf.PrivacyProfile(dpf.Privacy(0.5, neighbors="add-remove"))
        >>> print(count.for_replaced().privacy)
        epsilon = 1 (pure differential privacy) for one record replaced (the number of records is public)
        """
        stated = self.privacy
        if stated.neighbors != "add-remove" or stated.records != 1 or stated.per_unit is not None:
            raise ValueError(f"neighbors must be 'add-remove' for one record, not {stated}")
        doubled = replace(stated.group_up(2), neighbors="replace-one", records=1, per_unit=None)
        return self._of_group(doubled, 2)

    def _of_group(self, privacy: Privacy, k: int) -> PrivacyProfile:
        """Return the profile for k records at once, whose guarantee is `privacy`."""
        if self.failure:
            return PrivacyProfile(privacy)
        return PrivacyProfile(privacy, (*self._parts_of_group(privacy, k),), failure=0.0)._with_gaussian_delta()

    def _with_gaussian_delta(self) -> PrivacyProfile:
        """Return the profile with the delta of its Gaussian parts at its epsilon, if that is smaller than the stated
        one.
        """
        privacy, squared = self.privacy, self.mu_squared
        if privacy.unit != "epsilon" or not privacy.delta or squared is None:
            return self
        delta = min(privacy.delta, gaussian_delta_up(squared, Fraction(privacy.epsilon)))
        return replace(self, privacy=replace(privacy, delta=delta))

    def _parts_of_group(self, privacy: Privacy, k: int) -> Iterator[tuple[Any, ...]]:
        """Yield the parts for k records at once, whose guarantee is `privacy`, without `failure`."""
        parts = self.each_part()
        single = len(parts) == 1 and parts[0][1] == 1 and parts[0][0].family in _CLOSED
        if single or all(part.family == "gaussian" for part, _ in parts):
            for part, times in parts:
                shape = (part.steps * k,) if part.family == "discrete-laplace" else ()
                growth = k**2 if part.family == "concentrated" else k
                yield part.family, up(Fraction(part.parameter) * growth), times, *shape
            return
        concentrated = up(self.exact_rho * k**2)
        if privacy.unit == "epsilon" and not privacy.delta:
            pure = Part("pure", double_up(privacy.epsilon))
            if rho_up(pure) <= concentrated:
                yield "pure", pure.parameter, 1
                return
        yield "concentrated", concentrated, 1

    @property
    def rho(self) -> float:
        """The guarantee in zero-concentrated differential privacy, rounded up (except for the event of `failure`).

        The sum over the parts of the least rho of their families: epsilon tanh(epsilon / 2) for "pure", epsilon +
        exp(-epsilon) - 1 for "laplace", between the two for "discrete-laplace", more than that but at most that of
        "pure" for "staircase" of the r of `dpfast.noise.staircase`, less than "pure" for "zero-sum-laplace",
        about a quarter of "pure" for "bounded-range", mu**2 / 2 for "gaussian".

        References
        ----------
        Harrison and Manurangsi 2026, "Exact zCDP characterizations for fundamental differentially private mechanisms".
        """
        return up(self.exact_rho)

    @property
    def exact_rho(self) -> Fraction:
        """The sum that `rho` rounds up: of doubles, and of the exact rho of "gaussian" and "concentrated" parts."""
        return sum((times * rho_up(part) for part, times in self.each_part()), Fraction())

    @property
    def mu(self) -> float | None:
        """The guarantee in Gaussian differential privacy, rounded up: of Gaussian parts alone, else None."""
        squared = self.mu_squared
        return None if squared is None else root_up(squared)

    @property
    def mu_squared(self) -> Fraction | None:
        """The square of `mu`, exactly: the sum of those of the parts."""
        if self.failure or any(part.family != "gaussian" for part, _ in self.each_part()):
            return None
        return sum((times * Fraction(part.parameter) ** 2 for part, times in self.each_part()), Fraction())

    def delta(self, epsilon: float) -> float:
        """Return a delta with which the release is (epsilon, delta) differentially private, rounded up.

        The least of what `privacy` implies, of sums of the epsilons, of the exact curve of Gaussian parts, of that of
        rho, and, if dp-accounting is installed, of the distributions of the losses of the parts.

        Examples
        --------
        >>> import dpfast as dpf
        >>> twice = dpf.PrivacyProfile(dpf.Privacy(mu=0.5), [("gaussian", 0.25, 4)])
        >>> [f"{twice.delta(epsilon):.3g}" for epsilon in (0.5, 1, 2)]
        ['0.0524', '0.00683', '9.44e-06']
        """
        target = checks.nonnegative_rational("epsilon", epsilon)
        stated = self.privacy.delta_up(epsilon)
        if stated == 0 or (self.failure and self.failure >= stated):
            return stated
        parts = composition.counted(self.each_part())
        return min(stated, up(Fraction(self.failure) + Fraction(composition.delta_up(parts, target))))

    def dp_event(self) -> Any:
        """Return the parts as a ``dp_accounting.DpEvent``. Requires dp-accounting.

        Parts that are all noise have the events of it; discrete Laplace noise of more than 1000 steps has that of
        continuous noise of slightly larger epsilon, which dominates it. Give accountants
        ``NeighboringRelation.ADD_OR_REMOVE_ONE`` for them, whatever the neighbours of `privacy` are, which the events
        have taken into account. If there are others, each epsilon is the event of a randomised response, whose losses
        are at least as large: it needs ``REPLACE_ONE``. Never give ``REPLACE_SPECIAL``: accountants then take less than
        half of these losses, without a word. rho is ``dp_accounting.ZCDpEvent``, which only the Renyi accountant takes.

        Raises
        ------
        ValueError
            If `failure` is positive, for which there is no event: add it to the delta of the others.
        """
        if self.failure:
            raise ValueError(f"failure must be 0 for an event, not {self.failure!r}: add it to the delta of the others")
        return composition.event(composition.counted(self.each_part()))

    def renyi_up(self, order: float) -> float:
        """Return the largest Renyi divergence of this order, above 1, between neighbours; both are rounded up.

        The sum over the parts; some release of each family attains it. Except for the event of `failure`.

        References
        ----------
        Mironov 2017, "Renyi differential privacy", table II; Dong, Durfee and Rogers 2020 for the two-point laws of
        bounded range.
        """
        above = up(checks.rational("order", order))
        if not 1 < above < math.inf:
            raise ValueError(f"order must be above 1 and a double, not {order!r}")
        return up(sum((times * renyi_up(part, above) for part, times in self.each_part()), Fraction()))


# The families to which a part for k records belongs again.
_CLOSED = ("pure", "bounded-range", "laplace", "discrete-laplace", "concentrated")

# The family of a release that states its guarantee only.
_DEFAULTS = {"epsilon": "pure", "rho": "concentrated", "mu": "gaussian"}


def total_up(profiles: Sequence[PrivacyProfile]) -> Privacy:
    """Return the guarantee of several releases of the same records together, rounded up.

    Sums of epsilons and deltas, or of squares of mu; of releases whose guarantees are not stated alike, of rhos. If one
    of them is for units of several records, all are.

    Raises
    ------
    ValueError
        If their neighbours differ, or a guarantee for units is not known (`Privacy.for_units`).
    """
    if len({profile.privacy.neighbors for profile in profiles}) > 1:
        raise ValueError("neighbors must be the same for guarantees to add up")
    first = profiles[0].privacy
    per_unit = min((p.privacy.per_unit for p in profiles if p.privacy.per_unit is not None), default=None)
    if per_unit is not None:
        profiles = [profile.for_units(per_unit) for profile in profiles]
    if len(profiles) == 1:
        return profiles[0].privacy
    guarantees = [profile.privacy for profile in profiles]
    units = {guarantee.unit for guarantee in guarantees}
    shared: dict[str, Any] = {"neighbors": first.neighbors, "per_unit": per_unit}
    if units == {"mu"}:
        squares = sum((Fraction(guarantee.amount) ** 2 for guarantee in guarantees), Fraction())
        return Privacy(mu=root_up(squares), **shared)
    if units == {"epsilon"}:
        shared["epsilon"] = up(sum((Fraction(guarantee.epsilon) for guarantee in guarantees), Fraction()))
        aside = sum((Fraction(guarantee.delta) for guarantee in guarantees), Fraction())
    else:
        shared["rho"] = up(sum((profile.exact_rho for profile in profiles), Fraction()))
        aside = sum((Fraction(profile.failure) for profile in profiles), Fraction())
    return Privacy(delta=min(1.0, up(aside)), **shared)


def _part(family: str, epsilon: Any, times: Any, *shape: Any) -> tuple[Any, ...]:
    """Return a checked part: an epsilon as a double, rounded up; steps only where they are not 1, and of a staircase,
    r.
    """
    parameter = checks.rational_or_double("epsilon", epsilon)
    if has_epsilon(family):
        parameter = double_up(parameter)
    part = (family, parameter, checks.whole("times", times))
    if family == "staircase":
        s, r = (checks.whole("steps and r", number, least=1) for number in shape)
        if r > s:
            raise ValueError(f"r must be at most the steps, not {r}")
        return (*part, s, r)
    if family == "shuffled":
        n, *categories = shape
        (k,) = categories or (2,)
        return (*part, checks.whole("n", n, least=1), _kinds(k))
    if not shape:
        return part
    (steps,) = shape
    return part if checks.whole("steps", steps, least=1) == 1 else (*part, int(steps))


def _kinds(k: Any) -> float:
    """Return the k of shuffled reports: a double, rounded down; an int if it is whole."""
    kinds = down(checks.rational("k", k))
    if not 2 <= kinds < math.inf:
        raise ValueError(f"k must be at least 2, not {k!r}")
    return int(kinds) if kinds == int(kinds) else kinds


def _few_digits_up(amount: float | Fraction, digits: int) -> str:
    """Return a number of a guarantee, as `shown`, with so many digits, rounded up."""
    text = shown(amount)
    text = shown(up(Fraction(amount))) if "/" in text else text
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(text)):.{digits}g}"


def in_short(privacy: Privacy) -> str:
    """Return the amounts of a guarantee, or what is left of a budget, to six digits."""
    delta = f", delta = {float(privacy.delta):.6g}" if privacy.delta else ""
    return f"{privacy.unit} = {float(privacy.amount):.6g}{delta}"


def stated(privacy: Privacy) -> dict[str, Any]:
    """Return a guarantee as an object of JSON."""
    return {
        privacy.unit: as_given(privacy.amount),
        "delta": as_given(privacy.delta),
        "neighbors": privacy.neighbors,
        "per_unit": privacy.per_unit,
    }


def as_given(amount: float | Fraction) -> float:
    """Return a number of a guarantee as it was given: 0.1 for the double that is 0.1 rounded down."""
    return float(Fraction(shown(amount))) if math.isfinite(amount) else float(amount)


def shown(x: float | Fraction) -> str:
    """Return a number of a guarantee with all digits, or as a ratio: one that was rounded up is not shown rounded down.

    Of a ratio, and of a double that is a decimal of up to 15 digits rounded down, as 0.1 given as text is, the decimal.
    """
    decimal = f"{float(x):.15g}"
    if isinstance(x, Fraction):
        return decimal if Fraction(decimal) == x else str(x)
    above = math.isfinite(x) and Fraction(decimal) >= Fraction(x)
    return (repr(float(decimal)) if above else repr(x)).removesuffix(".0")
