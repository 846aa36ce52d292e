"""Parts of a budget that compose to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpfast.core.rounding import down, root_down


@dataclass(frozen=True)
class BudgetShare:
    """A share of a budget: epsilon, or the mu of Gaussian noise."""

    neighbors: str
    epsilon: Fraction = Fraction()
    mu_squared: Fraction = Fraction()

    def share(self, part: Fraction) -> BudgetShare:
        """Return a part of this budget; parts that sum to 1 compose to it."""
        return replace(self, epsilon=self.epsilon * part, mu_squared=self.mu_squared * part)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `NoisyMarginals`, rounded down."""
        amount = {"mu": root_down(self.mu_squared)} if self.mu_squared else {"epsilon": down(self.epsilon)}
        return {**amount, "neighbors": self.neighbors}
