"""Accounts of a budget: basic composition, Renyi composition, and plans."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

from dpfast.core.composition import counted, delta_of_losses_up, exact_delta_up
from dpfast.core.privacy import Privacy, PrivacyProfile, shown
from dpfast.core.rounding import down, root_down, root_up, up
from dpfast.errors import BudgetError
from dpfast.ledger.journal import number_to_json

COMPOSITIONS = ("basic", "renyi")
_ORDERS = [1 + 2.0 ** (i / 8) for i in range(-64, 129)]
_ROUNDING = Fraction(1, 2**36)  # of a budget: far above the rounding errors of its shares, and negligible


# ---- composition of costs: docs/proofs/composition.md ----


# An exact sum or cost as the integers of a fraction, whose arithmetic is a tenth of the time of `Fraction`; None if it
# is infinite.
Ratio = tuple[int, int] | None
_ZERO: Ratio = (0, 1)


class Account:
    """The sum of the costs so far, compared with a budget."""

    name: str

    def __init__(self, budget: Privacy) -> None:
        self._budget = budget
        self._total = self._delta = _ZERO
        self._last: tuple[PrivacyProfile | None, Ratio, Ratio] = None, _ZERO, _ZERO  # a profile, and its cost

    def add(self, profile: PrivacyProfile, times: int) -> None:
        if times:
            cost, delta = self._prepared(profile)
            self._total, self._delta = _plus(self._total, times, cost), _plus(self._delta, times, delta)

    def copy(self) -> Self:
        """Return an account with the same sums."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def _prepared(self, profile: PrivacyProfile) -> tuple[Ratio, Ratio]:
        """Return what a release adds to the two sums, from the last call if that was for the same object."""
        last, cost, delta = self._last
        if last is not profile:
            cost, delta = map(_ratio, self._cost(profile))
            self._last = profile, cost, delta
        return cost, delta

    def _cost(self, profile: PrivacyProfile) -> tuple[Fraction | float, Fraction | float]:
        """Return what a release adds to the two sums."""
        return profile.privacy.epsilon, profile.privacy.delta

    def spent(self) -> Privacy:
        """Return the sums, rounded up."""
        total = math.inf if self._total is None else up(_fraction(self._total))
        return self._guarantee(epsilon=total, delta=min(1.0, up(_fraction(self._delta))))

    def _guarantee(self, **amounts: Any) -> Privacy:
        """Return a guarantee for the neighbours, or the units, of the budget."""
        return Privacy(**amounts, neighbors=self._budget.neighbors, per_unit=self._budget.per_unit)

    def fits(self, profile: PrivacyProfile, times: int) -> bool:
        raise NotImplementedError

    def after(self, profile: PrivacyProfile, times: int) -> Self | None:
        """Return the account with more releases, or None if they do not fit."""
        if not self.fits(profile, times):
            return None
        made = self.copy()
        made.add(profile, times)
        return made

    def remaining(self) -> Privacy:
        raise NotImplementedError

    def refusal(self, profile: PrivacyProfile, times: int) -> str:
        what = "a release" if times == 1 else f"{times} releases"
        k = self._budget.per_unit
        units = "" if k is None else f" for a unit of at most {k} record{'s' * (k > 1)}"
        left = _stated(self.remaining(), number_to_json)  # all digits: rounded down, not up
        price = _stated(self._price(profile), shown)
        return f"{what} of {price}{units} {'does' if times == 1 else 'do'} not fit: {left} is left"

    def _price(self, profile: PrivacyProfile) -> Privacy:
        """Return the cost of a release, as a refusal states it."""
        return profile.privacy


def _ratio(amount: Fraction | float) -> Ratio:
    return None if amount == math.inf else amount.as_integer_ratio()


def _fraction(ratio: Ratio) -> Fraction:
    assert ratio is not None  # a release of infinite cost never fits
    return Fraction(*ratio)


def _plus(total: Ratio, times: int, cost: Ratio) -> Ratio:
    """Return the total and `times` costs, exactly; infinite if one of the two is."""
    if not times or cost == _ZERO:
        return total
    if total is None or cost is None:
        return None
    (n, d), (m, e) = total, cost
    if d == e:  # not reduced: the denominator does not grow
        return n + times * m, d
    n, d = n * e + times * m * d, d * e
    divisor = math.gcd(n, d)
    return n // divisor, d // divisor


def _less(whole: Fraction, spent: Ratio) -> Fraction | float:
    return -math.inf if spent is None else whole - Fraction(*spent)


def _at_most(total: Ratio, whole: Ratio) -> bool:
    if total is None or whole is None:
        return whole is None
    return total[0] * whole[1] <= whole[0] * total[1]


def _stated(privacy: Privacy, number: Callable[[float], Any]) -> str:
    amount = f"{privacy.unit} = {number(privacy.amount)}"
    return f"{amount}, delta = {number(privacy.delta)}" if privacy.delta else amount


class BasicAccount(Account):
    """Sums of epsilons and of deltas."""

    name = "basic"
    _negligible = _ROUNDING

    def fits(self, profile: PrivacyProfile, times: int) -> bool:
        return not times or self._within(self._ratios, profile, times)

    def after(self, profile: PrivacyProfile, times: int) -> Self | None:
        total, delta = self._sums(profile, times)
        whole, deltas = self._ratios
        if times and not (_at_most(total, whole) and _at_most(delta, deltas)):
            return None
        made = self.copy()
        made._total, made._delta = total, delta
        return made

    def _within(self, limits: tuple[Ratio, Ratio], profile: PrivacyProfile, times: int) -> bool:
        """Whether the two sums stay within these limits after the releases."""
        return all(map(_at_most, self._sums(profile, times), limits))

    def _sums(self, profile: PrivacyProfile, times: int) -> tuple[Ratio, Ratio]:
        """Return the two sums after the releases."""
        cost, delta = self._prepared(profile)
        return _plus(self._total, times, cost), _plus(self._delta, times, delta)

    @cached_property
    def _ratios(self) -> tuple[Ratio, Ratio]:
        """What the two sums must not exceed."""
        whole, deltas = self._limits()
        return _ratio(whole), _ratio(deltas)

    def _limits(self) -> tuple[Fraction, Fraction]:
        """Return what the two sums must not exceed."""
        return Fraction(self._budget.amount), Fraction(self._budget.delta)

    def refusal(self, profile: PrivacyProfile, times: int) -> str:
        refusal = super().refusal(profile, times)
        if self._prepared(profile)[0] is None:
            return f"{refusal}. {self._advice()}"
        unit, (whole, deltas) = self._budget.unit, self._limits()
        more = 1 + _ROUNDING
        if profile.privacy.unit != unit or not self._within(
            (_ratio(whole * more), _ratio(deltas * more)), profile, times
        ):
            no_delta = unit == "epsilon" and not self._budget.delta and profile.privacy.delta > 0
            return f"{refusal}, and no delta: Ledger(epsilon, delta) is a budget with one" if no_delta else refusal
        return (
            f"{refusal}. Floats are not exactly the decimals that they print as; 0.1 is a little more than 1/10: give "
            f"{unit}s, deltas and budgets as strings, {unit}='0.1', or as Fraction(1, 10), which are exact"
        )

    def _advice(self) -> str:
        return "Its epsilon is infinite at delta 0: state it with an epsilon and a delta, or use Ledger(mu=) or (rho=)"

    def remaining(self) -> Privacy:
        """Return the rest of the budget, rounded down: nothing, if it is a rounding error of shares in doubles."""
        amount, delta = (
            Fraction(rest) if rest > whole * self._negligible else Fraction()
            for whole, rest in zip(self._limits(), self.rest(), strict=True)
        )
        return self._privacy(amount, delta)

    def rest(self) -> tuple[Fraction | float, Fraction | float]:
        """Return what is left of the two sums, exactly; minus infinity if a file has charges of infinite cost."""
        whole, deltas = self._limits()
        return _less(whole, self._total), _less(deltas, self._delta)

    def _privacy(self, amount: Fraction, delta: Fraction) -> Privacy:
        """Return the rest of the budget, rounded down."""
        return self._guarantee(epsilon=down(amount), delta=down(delta))


class ConcentratedAccount(BasicAccount):
    """Sums of rhos, and of the probabilities of events that are set aside."""

    def _cost(self, profile: PrivacyProfile) -> tuple[Fraction | float, Fraction | float]:
        return profile.exact_rho, profile.failure

    def _price(self, profile: PrivacyProfile) -> Privacy:
        rho = profile.rho
        return Privacy(rho=rho, delta=profile.failure) if rho < math.inf else profile.privacy

    def _privacy(self, amount: Fraction, delta: Fraction) -> Privacy:
        return self._guarantee(rho=down(amount), delta=down(delta))

    def spent(self) -> Privacy:
        return self._guarantee(rho=up(_fraction(self._total)), delta=min(1.0, up(_fraction(self._delta))))


class GaussianAccount(BasicAccount):
    """Sums of squares of mu."""

    _negligible = _ROUNDING**2

    def _cost(self, profile: PrivacyProfile) -> tuple[Fraction | float, Fraction | float]:
        squared = profile.mu_squared
        return (math.inf if squared is None else squared), 0.0

    def _limits(self) -> tuple[Fraction, Fraction]:
        return Fraction(self._budget.amount) ** 2, Fraction()

    def _price(self, profile: PrivacyProfile) -> Privacy:
        mu = profile.mu
        return profile.privacy if mu is None or mu == math.inf else Privacy(mu=mu)

    def _advice(self) -> str:
        return "It is not Gaussian and has no mu: use Ledger(rho=)"

    def _privacy(self, amount: Fraction, delta: Fraction) -> Privacy:
        return self._guarantee(mu=root_down(amount))

    def spent(self) -> Privacy:
        return self._guarantee(mu=root_up(_fraction(self._total)))


class RenyiAccount(Account):
    """Sums of Renyi divergences of one public order, the best one for many small releases."""

    name = "renyi"

    def __init__(self, budget: Privacy) -> None:
        super().__init__(budget)
        if not budget.delta:
            raise ValueError("delta must be positive for composition='renyi', not 0.0")
        half = Fraction(budget.delta) / 2  # for the composition; as much is left for releases
        room = 0.0
        if down(half):
            rooms = {order: self._room(order, down(half)) for order in _ORDERS}
            self.order = max(_ORDERS, key=lambda order: rooms[order] / order)
            room = rooms[self.order]
        if room <= 0:
            raise ValueError(f"delta={budget.delta!r} is too small for composition='renyi': use 'basic'")
        self._divergences = _DivergenceAccount(budget, self.order, (Fraction(room), half))

    def _room(self, order: float, delta: float) -> float:
        """Return the divergence that implies (epsilon, delta), rounded down: Canonne, Kamath, Steinke 2020, prop.
        12.
        """
        epsilon = down(Fraction(self._budget.epsilon))
        cost = -(math.log(delta) + math.log(order)) / (order - 1) + math.log1p(-1 / order)
        return epsilon - cost - (epsilon + abs(math.log(delta)) / (order - 1) + 1) * 2.0**-40

    def copy(self) -> Self:
        made = super().copy()
        made._divergences = self._divergences.copy()
        return made

    def add(self, profile: PrivacyProfile, times: int) -> None:
        super().add(profile, times)
        self._divergences.add(profile, times)

    def fits(self, profile: PrivacyProfile, times: int) -> bool:
        return self._divergences.fits(profile, times)

    def remaining(self) -> Privacy:
        """Return the largest epsilon of a pure release that fits, by bisection."""
        low, high = 0.0, float(self._budget.epsilon)
        for _ in range(60):
            middle = low + (high - low) / 2
            if self.fits(PrivacyProfile(Privacy(middle)), 1):
                low = middle
            else:
                high = middle
        _, failures = self._divergences.rest()
        return self._guarantee(epsilon=low, delta=down(Fraction(failures)))


class _DivergenceAccount(BasicAccount):
    """Sums of Renyi divergences of one order, and of the probabilities of events that are set aside."""

    def __init__(self, budget: Privacy, order: float, limits: tuple[Fraction, Fraction]) -> None:
        super().__init__(budget)
        self._order, self._most = order, limits

    def _cost(self, profile: PrivacyProfile) -> tuple[Fraction | float, Fraction | float]:
        return profile.renyi_up(self._order), profile.failure

    def _limits(self) -> tuple[Fraction, Fraction]:
        return self._most


class PlannedAccount(Account):
    """The declared releases, which must be made in order."""

    name = "plan"

    def __init__(self, budget: Privacy, plan: list[PrivacyProfile]) -> None:
        super().__init__(budget)
        self.plan = plan
        for profile in plan:
            if profile.privacy.neighbors != budget.neighbors:
                raise ValueError(
                    f"neighbors must be {budget.neighbors!r} in the plan, not {profile.privacy.neighbors!r}"
                )
        if not _within_sums(plan, budget):
            delta = planned_delta(plan, Fraction(budget.epsilon))
            if delta > budget.delta:
                raise BudgetError(f"the plan needs delta = {delta:.3g} at epsilon = {budget.epsilon!r}")
        self._next = 0

    def add(self, profile: PrivacyProfile, times: int) -> None:
        super().add(profile, times)
        self._next += times

    def fits(self, profile: PrivacyProfile, times: int) -> bool:
        last = self._next + times
        return last <= len(self.plan) and all(planned == profile for planned in self.plan[self._next : last])

    def remaining(self) -> Privacy:
        """Return the next release of the plan."""
        if self._next >= len(self.plan):
            return self._guarantee(epsilon=0.0)
        return self.plan[self._next].privacy

    def refusal(self, profile: PrivacyProfile, times: int) -> str:
        if self._next >= len(self.plan):
            return f"all {len(self.plan)} releases of the plan were made"
        return f"release {self._next + 1} of the plan is one of {self.plan[self._next]}, not {times} of {profile}"


def _within_sums(plan: list[PrivacyProfile], budget: Privacy) -> bool:
    """Whether the sums of the stated epsilons and deltas stay within the budget."""
    stated = [profile.privacy for profile in plan]
    if any(privacy.epsilon == math.inf for privacy in stated):
        return False
    epsilon = sum((Fraction(privacy.epsilon) for privacy in stated), Fraction())
    delta = sum((Fraction(privacy.delta) for privacy in stated), Fraction())
    return epsilon <= Fraction(budget.epsilon) and delta <= Fraction(budget.delta)


def planned_delta(plan: list[PrivacyProfile], epsilon: float | Fraction) -> float:
    """Return the delta of the whole plan, rounded up: exact sums, the curve of a Gaussian, or losses by dp-accounting.

    1 where a loss may exceed 2**20, which would take buckets wider than 1.
    """
    for profile in plan:
        if any(part.family == "concentrated" for part, _ in profile.each_part()):
            raise ValueError(f"a plan needs distributions of losses, which parts stated in rho do not have: {profile}")
    delta = sum((Fraction(profile.failure) for profile in plan), Fraction())
    parts = counted(part for profile in plan for part in profile.each_part())
    exact = exact_delta_up(parts, Fraction(epsilon))
    if exact is not None:
        return min(1.0, up(delta + Fraction(exact)))
    return min(1.0, up(delta) + delta_of_losses_up(parts, Fraction(epsilon)))
