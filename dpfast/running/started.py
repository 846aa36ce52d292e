"""What releases many times and is charged once: the object of public parameters that starts a state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, SupportsIndex, TypeVar

from dpfast.core import checks
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.spending import Carrier, Cost, spending
from dpfast.core.tabular import Declared
from dpfast.core.traps import Cautious
from dpfast.random import RandomSource, bit_generator

_State = TypeVar("_State")


class Started(Declared, Cautious, Carrier, ABC, Generic[_State]):
    """Base class of frozen dataclasses of public parameters whose state is charged once, when it is started."""

    @property
    @abstractmethod
    def privacy(self) -> Privacy:
        """The guarantee of all releases of a state together."""

    @property
    def privacy_profile(self) -> PrivacyProfile:
        """The guarantee that a `dpfast.Ledger` composes."""
        return PrivacyProfile(self.privacy)

    @property
    def cost(self) -> Cost:
        """What a ledger is charged for a state."""
        return Cost(repr(self), self.privacy_profile)

    def privacy_map(self, d_in: SupportsIndex) -> Privacy:
        """Return the guarantee for `d_in` changed records or units (group privacy), rounded up."""
        return self.privacy.group_up(checks.whole("d_in", d_in))

    def start(self, *, rng: RandomSource = None) -> _State:
        """Charge all releases, and return the state before the first one.

        Parameters
        ----------
        rng : numpy.random.Generator or BitGenerator, optional
            Makes the releases reproducible, hence not private. Default: the secure generator.
        """
        bit_generator(rng)
        with spending(self.privacy_profile, label=repr(self), of=self):
            return self._begin(rng)

    @abstractmethod
    def _begin(self, rng: RandomSource) -> _State:
        """Return the state, which is charged."""
