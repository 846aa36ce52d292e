"""What a release may cost: a part of a budget, for each record of a unit."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import repeat
from typing import Any

from dpfast.core import checks
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.rounding import down
from dpfast.core.types import Exact
from dpfast.ledger import Ledger
from dpfast.mechanisms import PartitionSelection

_PURE = ("inverse-sensitivity", "interpolated", "global-sensitivity")  # methods that take no delta


@dataclass(frozen=True)
class ReleaseCost:
    """What a release may cost.

    Attributes
    ----------
    unit_epsilon : Fraction
        For a unit of the table.
    unit_delta : float
    per_unit : int
        The records of a unit; two for a replaced record, which is one removed and one added, if that is what the
        release is for.
    neighbors : str
        What the release is for.
    """

    unit_epsilon: Fraction
    unit_delta: float
    per_unit: int = 1
    neighbors: str = "replace-one"

    @property
    def epsilon(self) -> Fraction:
        """The epsilon for each record of a unit."""
        if self.per_unit == 1:
            return self.unit_epsilon
        return Fraction(down(self.unit_epsilon)) / self.per_unit  # so that the unit's, rounded up, is within the share

    @property
    def hides_n(self) -> bool:
        """Whether the number of records is private."""
        return self.neighbors == "add-remove"

    @property
    def delta(self) -> float:
        """The delta for each record, whose guarantee for all of them (`Privacy.group_up`) has that of the unit."""
        if self.per_unit == 1 or not self.unit_delta:
            return self.unit_delta
        each, whole = float(self.epsilon), float(self.unit_epsilon)
        growth = math.expm1(each) / math.expm1(whole) if whole < 700 else 0.0
        return self.unit_delta * growth * (1 - 2.0**-38)  # above the rounding of `Privacy.group_up`

    def half(self) -> ReleaseCost:
        """Return half of epsilon, and all of delta, for the selection of private keys."""
        return replace(self, unit_epsilon=self.unit_epsilon / 2)

    def pure(self) -> ReleaseCost:
        """Return the cost without a delta."""
        return replace(self, unit_delta=0.0)

    def parameters_for(self, function: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a function with the neighbours, and the delta where it uses one."""
        known, given = _parameters(function), dict(options)
        if self.delta and "delta" in known and given.get("method", "auto") not in _PURE:
            given["delta"] = self.delta
        if "neighbors" in known:
            given["neighbors"] = self.neighbors
        elif self.hides_n:
            raise ValueError(
                f"{function.__name__} is for one record replaced: it needs a table with neighbors='replace-one', "
                "without a unit, and another policy for missing records than 'drop'"
            )
        return given

    def for_unit(self) -> ReleaseCost:
        """Return the cost of a mechanism that is for units itself."""
        return replace(self, per_unit=1)


@cache
def _parameters(function: Callable[..., Any]) -> frozenset[str]:
    """Return the names of the parameters of a function."""
    return frozenset(inspect.signature(function).parameters)


def as_written(amount: Any) -> Any:
    """Return an amount of privacy as the decimal that is written, as it is in a plan, if it is a float.

    Ten of 0.1 are then the budget, although the doubles are more than it.
    """
    is_plain = isinstance(amount, float) and 0 < amount < math.inf
    return Fraction(repr(float(amount))) if is_plain else amount


def cost_of(
    budget: Privacy, epsilon: Exact | None, share: Exact | None, delta: Exact, *, hides_n: bool = False
) -> ReleaseCost:
    """Return the cost that a user gives: an epsilon, or a share of a budget.

    `hides_n` for a release that is for one record added or removed, whatever the budget is for.
    """
    if (epsilon is None) == (share is None):
        raise TypeError("give epsilon= or share=, a part of the budget such as 0.2")
    delta = as_written(delta)
    neighbors = "add-remove" if hides_n else budget.neighbors
    per_unit = budget.per_unit or (1 if neighbors == budget.neighbors else 2)
    if share is None:
        return ReleaseCost(
            checks.positive_rational("epsilon", as_written(epsilon)), checks.delta_down(delta), per_unit, neighbors
        )
    part = checks.positive_rational("share", as_written(share))
    if part > 1:
        raise ValueError(f"share must be at most 1, not {share!r}")
    if budget.unit != "epsilon":
        raise TypeError(f"a share is of a budget of epsilon, not of {budget.unit}: give epsilon=")
    of_delta = checks.delta_down(delta) if delta else down(part * Fraction(budget.delta))
    return ReleaseCost(part * Fraction(budget.epsilon), of_delta, per_unit, neighbors)


def keys_for(
    names: Sequence[str], public: list[Any] | None, cost: ReleaseCost, *, per_unit: int | None, per_key: int | None
) -> tuple[dict[str, Any], Any]:
    """Return the parameters of the keys of groups, and what is left of epsilon for each record.

    Keys are `public` or, if that is None, private ones of these columns, which take half of epsilon and all of delta.
    """
    if public is not None:
        return {"keys": public}, cost.epsilon
    if not cost.delta:
        raise ValueError(
            f"keys of {', '.join(names)} are private: give their categories, in columns=, a plan or "
            "--categories, or a delta such as 1e-6, for which those of enough records are found"
        )
    half = cost.half()
    chosen = half if per_unit is None else half.for_unit()
    selection = PartitionSelection(
        checks.positive_down("epsilon", chosen.epsilon), chosen.delta, contributions=per_unit or 1, per_key=per_key
    )
    return {"keys": "private", "partitions": selection}, half.epsilon


def charged(ledger: Ledger, call: Callable[[], Any]) -> tuple[Any, tuple[PrivacyProfile, ...]]:
    """Call a function under a ledger; return its result, and the profile of each release that it charged."""
    with ledger.receipt() as charges:
        result = ledger.call(call)
    return result, tuple(profile for charge in charges for profile in repeat(charge.profile, charge.times))
