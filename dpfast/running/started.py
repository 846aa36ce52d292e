"""What releases many times and is charged once: the object of public parameters that starts a state."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any, Generic, SupportsIndex, TypeVar

from dpfast.core import checks
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.spending import Carrier, Cost, budget_here, spending
from dpfast.core.tabular import Declared
from dpfast.core.traps import Cautious
from dpfast.random import RandomSource, bit_generator
from dpfast.running.files import StateFile
from dpfast.running.sole import check_charged
from dpfast.streaming.wire import fingerprint

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

    def start(
        self, *, path: str | os.PathLike[str] | None = None, moved: bool = False, rng: RandomSource = None
    ) -> _State:
        """Charge all releases, and return the state before the first one; or go on with the state in a file.

        Parameters
        ----------
        path : path-like, optional
            A file that outlives the process, as private as the records: created if it does not exist, after the charge;
            otherwise continued without one, with the same parameters. Every answer is on disk before it is returned.
            One process at a time holds the file, on a file system with locks.
        moved : bool
            True promises that the file in `path` was moved, changed or restored from a backup by you, and that no
            other copy of it has answered since, or ever will. Otherwise such a file is refused.
        rng : numpy.random.Generator or BitGenerator, optional
            Makes the releases reproducible, hence not private. Default: the secure generator.

        Raises
        ------
        ValueError
            For a file that is open elsewhere, copied, damaged or of other parameters.
        FileNotFoundError
            For ``moved=True`` without a file in `path`.
        BudgetError
            Where it does not fit, or in the block of a ledger that was not charged for the state in the file.
        """
        bit_generator(rng)
        promised = checks.flag("moved", moved)
        if path is None:
            if promised:
                raise TypeError("moved needs path, the file that was moved")
            with spending(self.privacy_profile, label=repr(self), of=self):
                return self._begin(rng, None)
        file = StateFile(path, {"of": repr(self).strip("<>"), "parameters": fingerprint(self), **self.header})
        if file.begun():
            if (budget := budget_here()) is not None:
                check_charged(budget, repr(self))
            file.resume(moved=promised)
            return self._begin(rng, file)
        if promised:
            raise FileNotFoundError(f"there is no state in {file.path}: without moved=True it is started there")
        with spending(self.privacy_profile, label=repr(self), of=self):
            file.create()
            return self._begin(rng, file)

    @property
    @abstractmethod
    def header(self) -> dict[str, Any]:
        """What the file of a state says of the noise, beside the parameters. Public."""

    @abstractmethod
    def _begin(self, rng: RandomSource, file: StateFile | None) -> _State:
        """Return the state, which is charged, with what its file has found."""
