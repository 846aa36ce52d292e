"""Mechanisms with Gaussian noise, or with other noise for a pure guarantee."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

from dpfast.core import checks
from dpfast.core.divergences import gaussian_mu_down
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.streaming import Reading


@dataclass(frozen=True, repr=False)
class GaussianOrPure(Mechanism):
    """Base class of mechanisms that take epsilon and delta, or the mu of Gaussian differential privacy."""

    epsilon: float | None = field(kw_only=True, default=None)
    delta: float = field(kw_only=True, default=0.0)
    mu: float | None = field(kw_only=True, default=None)

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.mu is None) or (self.mu is not None and self.delta):
            raise TypeError("give epsilon, with or without delta, or mu")
        for name in ("epsilon", "mu"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checks.positive_down(name, getattr(self, name)))
        object.__setattr__(self, "delta", checks.delta_down(self.delta))

    @property
    def privacy(self) -> Privacy:
        return Privacy(mu=self.mu) if self.epsilon is None else Privacy(self.epsilon, self.delta)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        return PrivacyProfile(self.privacy, (("gaussian", self.gaussian_mu, 1),) if self.gaussian_mu else ())

    @property
    def gaussian_mu(self) -> float | None:
        """The guarantee in Gaussian differential privacy; None for a pure guarantee."""
        if self.epsilon is None:
            return self.mu
        return gaussian_mu_down(self.epsilon, self.delta) if self.delta else None

    @property
    def amount(self) -> float:
        """The mu of Gaussian noise, else epsilon: the noise has the scale sensitivity / amount."""
        amount = self.gaussian_mu or self.epsilon
        assert amount is not None
        return amount

    @abstractmethod
    def reading(self) -> Reading:
        """Return an empty reading of the records."""
