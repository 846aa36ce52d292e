"""Accounts of a budget: basic composition, Renyi composition, and plans."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from dpfast.errors import BudgetError
from dpfast.ledger.journal import number_to_json
from dpfast.privacy import Privacy, PrivacyProfile
from dpfast.rounding import down, up

COMPOSITIONS = ("basic", "renyi")
_ORDERS = [1 + 2.0 ** (i / 8) for i in range(-64, 129)]
_BUCKET = 1e-4  # largest width of a bucket of privacy losses in a plan
_SPARE = 1 + 2.0**-30  # allowance for rounding of values computed in doubles
_ROUNDING = Fraction(1, 2**40)  # of a budget: far above the rounding error of sums of decimals, and negligible


# ---- composition of costs: docs/proofs/composition.md ----


class Account:
    """The sum of the costs so far, compared with a budget."""

    name: str

    def __init__(self, budget: Privacy) -> None:
        self._budget = budget
        self.epsilon = self.delta = Fraction()

    def add(self, profile: PrivacyProfile, times: int) -> None:
        self.epsilon += times * Fraction(profile.privacy.epsilon)
        self.delta += times * Fraction(profile.privacy.delta)

    def fits(self, profile: PrivacyProfile, times: int) -> bool:
        raise NotImplementedError

    def remaining(self) -> tuple[Fraction, Fraction]:
        raise NotImplementedError

    def refusal(self, profile: PrivacyProfile, times: int) -> str:
        epsilon, delta = self.remaining()
        what = "a release" if times == 1 else f"{times} releases"
        return f"{what} of {_cost(profile.privacy)} {'does' if times == 1 else 'do'} not fit: " + (
            f"{_cost(Privacy(down(epsilon), down(delta)))} is left"
        )

    def _lacks_little(self, profile: PrivacyProfile, times: int) -> bool:
        """Whether the releases do not fit only because of the rounding of decimals to doubles."""
        (epsilon, delta), cost = self.remaining(), profile.privacy
        return all(
            times * Fraction(wanted) <= left + Fraction(budget) * _ROUNDING
            for wanted, left, budget in (
                (cost.epsilon, epsilon, self._budget.epsilon),
                (cost.delta, delta, self._budget.delta),
            )
        )


def _cost(privacy: Privacy) -> str:
    epsilon = f"epsilon = {number_to_json(privacy.epsilon)}"
    return f"{epsilon}, delta = {number_to_json(privacy.delta)}" if privacy.delta else epsilon


class BasicAccount(Account):
    """Sums of epsilons and of deltas."""

    name = "basic"

    def fits(self, profile: PrivacyProfile, times: int) -> bool:
        if not math.isfinite(profile.privacy.epsilon):
            return times == 0
        epsilon, delta = self.remaining()
        return times * Fraction(profile.privacy.epsilon) <= epsilon and times * Fraction(profile.privacy.delta) <= delta

    def refusal(self, profile: PrivacyProfile, times: int) -> str:
        refusal = super().refusal(profile, times)
        if not math.isfinite(profile.privacy.epsilon) or not self._lacks_little(profile, times):
            return refusal
        return (
            f"{refusal}. Floats are not exactly the decimals that they print as; 0.1 is a little more than 1/10: give "
            "epsilons, deltas and budgets as strings, epsilon='0.1', or as Fraction(1, 10), which are exact"
        )

    def remaining(self) -> tuple[Fraction, Fraction]:
        return Fraction(self._budget.epsilon) - self.epsilon, Fraction(self._budget.delta) - self.delta


class RenyiAccount(Account):
    """Sums of Renyi divergences of one public order, the best one for many small releases."""

    name = "renyi"

    def __init__(self, budget: Privacy) -> None:
        super().__init__(budget)
        if not budget.delta:
            raise ValueError("delta must be positive for composition='renyi', not 0.0")
        self._half = Fraction(budget.delta) / 2
        self._left = Fraction()
        if down(self._half):
            self.order = max(_ORDERS, key=lambda order: self._room(order) / order)
            self._left = Fraction(self._room(self.order))
        if self._left <= 0:
            raise ValueError(f"delta={budget.delta!r} is too small for composition='renyi': use 'basic'")

    def _room(self, order: float) -> float:
        """The divergence that implies (epsilon, delta / 2), rounded down: Canonne, Kamath, Steinke 2020, prop. 12."""
        epsilon, delta = down(Fraction(self._budget.epsilon)), down(self._half)
        cost = -(math.log(delta) + math.log(order)) / (order - 1) + math.log1p(-1 / order)
        return epsilon - cost - (epsilon + abs(math.log(delta)) / (order - 1) + 1) * 2.0**-40

    def _cost(self, profile: PrivacyProfile, times: int) -> Fraction:
        return times * Fraction(profile.renyi_up(self.order))

    def add(self, profile: PrivacyProfile, times: int) -> None:
        super().add(profile, times)
        self._left -= self._cost(profile, times)

    def fits(self, profile: PrivacyProfile, times: int) -> bool:
        if times * Fraction(profile.privacy.delta) > self._half - self.delta:
            return False
        return self._cost(profile, times) <= self._left

    def remaining(self) -> tuple[Fraction, Fraction]:
        """The largest epsilon of a pure release that fits, by bisection."""
        low, high = 0.0, self._budget.epsilon
        for _ in range(60):
            middle = (low + high) / 2
            if self.fits(PrivacyProfile(Privacy(middle)), 1):
                low = middle
            else:
                high = middle
        return Fraction(low), self._half - self.delta


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
        if plan:
            delta = _planned_delta(plan, Fraction(budget.epsilon))
            if delta > budget.delta:
                raise BudgetError(f"the plan needs delta = {delta:.3g} at epsilon = {budget.epsilon!r}")
        self._next = 0

    def add(self, profile: PrivacyProfile, times: int) -> None:
        super().add(profile, times)
        self._next += times

    def fits(self, profile: PrivacyProfile, times: int) -> bool:
        last = self._next + times
        return last <= len(self.plan) and all(planned == profile for planned in self.plan[self._next : last])

    def remaining(self) -> tuple[Fraction, Fraction]:
        if self._next == len(self.plan):
            return Fraction(), Fraction()
        planned = self.plan[self._next].privacy
        return Fraction(planned.epsilon), Fraction(planned.delta)

    def refusal(self, profile: PrivacyProfile, times: int) -> str:
        if self._next == len(self.plan):
            return f"all {len(self.plan)} releases of the plan were made"
        return f"release {self._next + 1} of the plan is one of {self.plan[self._next]}, not {times} of {profile}"


def _planned_delta(plan: list[PrivacyProfile], epsilon: float | Fraction) -> float:
    """The delta of the whole plan, rounded up, by the discretised privacy loss distributions of dp-accounting."""
    counts: dict[tuple[str, float], int] = {}
    delta = Fraction()
    for profile in plan:
        delta += Fraction(profile.privacy.delta)
        for family, cost, times in profile.parts:
            counts[family, cost] = counts.get((family, cost), 0) + times
    counts = {key: times for key, times in counts.items() if key[1] and times}
    if sum((times * Fraction(cost) for (_, cost), times in counts.items()), Fraction()) <= Fraction(epsilon):
        return up(delta)
    costs = [cost for _, cost in counts]
    bucket = min(_BUCKET, max(min(costs) / 100, max(costs) / 1e5))
    losses = None
    for (family, cost), times in counts.items():
        composed = _loss_distribution(family, cost, bucket).self_compose(times)
        losses = composed if losses is None else losses.compose(composed)
    assert losses is not None
    return min(1.0, up(delta) + float(losses.get_delta_for_epsilon(down(Fraction(epsilon)))) * _SPARE + 2.0**-44)


def _loss_distribution(family: str, epsilon: float, bucket: float) -> Any:
    """The distribution of the privacy losses, rounded up to multiples of `bucket`."""
    try:
        from dp_accounting.pld import common, pld_pmf, privacy_loss_distribution
    except ImportError:
        raise ImportError("a plan needs dp-accounting: pip install dp-accounting") from None
    if family == "laplace":
        return privacy_loss_distribution.from_laplace_mechanism(
            1 / epsilon * (1 - 2.0**-50), value_discretization_interval=bucket
        )
    if family == "pure":
        pure = common.DifferentialPrivacyParameters(epsilon, 0.0)
        return privacy_loss_distribution.from_privacy_parameters(pure, value_discretization_interval=bucket)
    # The divergence at t is at most this for all laws whose loss has a range of epsilon (Dong, Durfee and Rogers).
    reach = math.ceil(epsilon / bucket)
    places = list(range(-reach, reach + 1))
    divergences = [
        max(0.0, math.expm1((epsilon - max(-epsilon, min(i * bucket, epsilon))) / 2)) ** 2
        * math.exp(max(-epsilon, min(i * bucket, epsilon)))
        / math.expm1(epsilon)
        for i in places
    ]
    return privacy_loss_distribution.PrivacyLossDistribution(
        pld_pmf.create_pmf_pessimistic_connect_dots(bucket, places, divergences)
    )
