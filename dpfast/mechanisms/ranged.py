"""Mechanisms whose privacy loss has a range of epsilon: exponential mechanisms."""

from __future__ import annotations

from abc import abstractmethod

from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.mechanisms.mechanism import Mechanism


class BoundedRange(Mechanism):
    """Base class of pure mechanisms by scores, in which the losses of neighbours differ by at most epsilon."""

    epsilon: float

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        return PrivacyProfile(self.privacy, (("bounded-range", self.epsilon, 1),))

    @abstractmethod
    def __repr__(self) -> str:
        """Return what is released, and the guarantee."""
