"""Ledgers: privacy budgets for all releases together, kept for a thread, a process or a file."""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, SupportsIndex

from dpfast.core import checks
from dpfast.core.composition import counted, delta_up, event
from dpfast.core.divergences import Part
from dpfast.core.foreign import active, blocks
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.rounding import up
from dpfast.core.spending import Carrier, Cost, Ticket, check_heard, known, spending
from dpfast.core.tabular import Tabular
from dpfast.core.traps import Cautious, Trap, of_delta, of_epsilon
from dpfast.core.types import Exact, Records
from dpfast.errors import BudgetError
from dpfast.ledger.accounts import (
    COMPOSITIONS,
    Account,
    BasicAccount,
    ConcentratedAccount,
    GaussianAccount,
    PlannedAccount,
    RenyiAccount,
)
from dpfast.ledger.callers import advice_for_callers
from dpfast.ledger.journal import (
    FORMAT,
    LEDGER,
    NOTED,
    VERSION,
    Charge,
    Journal,
    Note,
    charge_from_json,
    charge_to_json,
    check_parts,
    privacy_to_json,
    profile_from_json,
    profile_to_json,
)
from dpfast.ledger.notes import SpentBy, amounts, note_now, noting
from dpfast.random import RandomSource

_REPLACED = ", charged for one record replaced"  # after labels of releases for one record added or removed
# The ledgers entered in this context, each with the one active before it.
_entered: ContextVar[tuple[tuple[Ledger, Any], ...]] = ContextVar("dpfast_ledgers", default=())

# Lists of the charges of this context, each with the ledger that is charged.
_receipts: ContextVar[tuple[tuple[Ledger, list[Charge]], ...]] = ContextVar("dpfast_receipts", default=())


class Release(Protocol):
    """An object with a public guarantee, such as a mechanism or a batch of local reports."""

    @property
    def privacy_profile(self) -> PrivacyProfile:
        """The guarantee."""


class Ledger(Tabular, Cautious):
    """A privacy budget. It records each release before data are read, and refuses a release that does not fit.

    All releases together are (epsilon, delta)-differentially private for the given neighbours, or rho-zero-concentrated
    or mu-Gaussian differentially private, even if each one is chosen adaptively, given the previous ones.

    Parameters
    ----------
    epsilon : float
        Positive. A Fraction, a Decimal or a string ("0.1", "1/3") is exact. Give one of epsilon, rho and mu.
    delta : float
        In [0, 1); exact like `epsilon`. Default: 0, for pure releases. With rho: for releases that are private except
        for an event of positive probability (`PrivacyProfile.failure`). 0 with mu.
    rho : float
        Positive: a budget of zero-concentrated differential privacy. Every release is charged the rho of its
        ``privacy_profile``. The budget implies ``ledger.privacy.epsilon_up(delta)`` for any delta.
    mu : float
        Positive: a budget of Gaussian differential privacy, for releases of Gaussian parts only. The squares of their
        mu add up. ``dpfast.theory.gaussian_mu(epsilon, delta)`` is the mu that implies (epsilon, delta).
    neighbors : {"replace-one", "add-remove", "local"}
        The neighbours of the budget. A budget for "replace-one" also pays for releases with "add-remove": a replaced
        record is one removed and one added, so each costs its guarantee for two records (`PrivacyProfile.for_replaced`,
        in epsilon twice as much), and the label of the charge says so. Other neighbours raise a ValueError, because
        guarantees for different neighbours do not add up. A ledger for "local" is for one person, or for people who all
        answer the same questions.
    composition : {"basic", "renyi"}
        The composition of costs. "basic" sums epsilons and deltas as exact rationals. "renyi" sums Renyi divergences of
        one order, fixed when the ledger is made: a filter, tighter for many small releases. It needs delta > 0: one
        half is for the composition, the other for releases with a delta of their own. Both are valid for adaptively
        chosen releases. With rho and mu: "basic".
    plan : sequence of Mechanism or PrivacyProfile, optional
        Instead of `composition`: all releases, declared beforehand, composed by their privacy loss distributions
        (needs ``dp-accounting``). Mostly the tightest, but valid only for the plan: releases must follow its order,
        each with the declared profile. Raises a BudgetError if the plan does not fit.
    per_unit : int, optional
        The budget is for a unit, such as a person, with at most this many records in the data of each release: see
        `dpfast.bound_contributions`. Every release is charged its guarantee for that many records, by
        `PrivacyProfile.for_units`; a guarantee that is already for such units is charged as it is. The ledger and
        every release need ``neighbors="add-remove"``.
    path : path-like, optional
        A file that outlives the process: created if it does not exist, otherwise continued, with the same parameters
        (`open` takes them from the file). Several processes may share it; every charge is on disk before the release.

    Raises
    ------
    TypeError, ValueError
        A parameter of a wrong type or out of range; a file that is damaged or belongs to another ledger or version.
    BudgetError
        A plan that does not fit. From a release: its cost does not fit (it is not recorded). From ``law`` and every
        other exact function of the data. From a release in another thread while a block is open.

    Notes
    -----
    **Charges.** ``with ledger:`` charges each release in this context, by any function or mechanism of dpfast, once:
    steps inside a mechanism are part of its release, but what containers of records and functions of yours release
    while it runs is charged separately.
    ``release(size=k)`` costs k times. Other threads have other contexts, in which releases are refused while the block
    is open: use ``with ledger:`` or `Ledger.release` there. Tasks of asyncio inherit the context, and are still charged
    after the end of the block. A mechanism pickled in the block is charged in other processes through the file, or
    refused; functions called there are not tracked. Noise from `dpfast.noise` is refused unless you declare its cost,
    which also works for code of your own::

        with ledger.spend(dpf.Privacy(0.5)):
            total = int(x.sum()) + dpf.noise.laplace(Fraction(2))

    Local randomisers need a ledger for "local" and raise a ValueError with others.
    **No refunds.** A release that raises an exception or is interrupted by a crash is charged. Wrong parameters that
    are detected before the charge cost nothing.
    **Exact doubles.** 0.1 is a little more than a tenth, and ten of them do not fit into 1. Strings ("0.1"), Decimals
    and Fractions are exact: a ledger stores them, mechanisms round them down.
    Privacy: https://dpfast.readthedocs.io/en/latest/proofs/composition.html; guide:
    https://dpfast.readthedocs.io/en/latest/guides/ledger.html. Only releases through this ledger are counted; other
    access to the data is not tracked. Cost: tens of microseconds per release; with `path` a write to disk. A forked
    process cannot continue a ledger without `path`, which would be spent twice.

    References
    ----------
    Rogers, Roth, Ullman and Vadhan 2016, "Privacy odometers and filters"; Feldman and Zrnic 2021, "Individual privacy
    accounting via a Renyi filter"; Koskela, Tobaben and Honkela 2023, "Individual privacy accounting with Gaussian
    differential privacy"; Zhu, Dong and Wang 2022, "Optimal accounting of differential privacy via
    characteristic function", for plans.

    Examples
    --------
    >>> import dpfast as dpf
    >>> ledger = dpf.Ledger(1.0)
    >>> with ledger:
    ...     middle = dpf.median([23, 45, 31, 62], bounds=(0, 100), epsilon=0.75)
    >>> ledger.remaining
    Privacy(epsilon=0.25, delta=0.0, neighbors='replace-one', records=1)
    >>> mean = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=dpf.Grid(0, 100), epsilon=0.5)
    >>> ledger.release(mean, [23, 45, 31, 62])
    Traceback (most recent call last):
    ...
    dpfast.errors.BudgetError: a release of epsilon = 0.5 does not fit: epsilon = 0.25 is left
    """

    def __init__(
        self,
        epsilon: Exact | None = None,
        delta: Exact = 0.0,
        *,
        rho: Exact | None = None,
        mu: Exact | None = None,
        neighbors: str = "replace-one",
        composition: str = "basic",
        plan: Sequence[Release | PrivacyProfile] | None = None,
        per_unit: int | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        amounts: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "mu": mu}
        for unit, amount in amounts.items():
            if amount is not None:
                checks.positive_down(unit, amount)
        if path is not None and all(amount is None for amount in amounts.values()):
            raise TypeError("epsilon, rho or mu must be given, as in the file if it exists; Ledger.open(path) reads it")
        checks.delta_down(delta)
        self._privacy = Privacy(delta=delta, neighbors=neighbors, **amounts, per_unit=per_unit)
        checks.choice("composition", composition, COMPOSITIONS)
        if self._privacy.unit != "epsilon" and (plan is not None or composition != "basic"):
            raise ValueError(f"composition and plan must be left out with {self._privacy.unit}")
        if plan is not None:
            if composition != "basic":
                raise ValueError(f"composition must be left out with a plan, not {composition!r}")
            self._account: Account = PlannedAccount(self._privacy, [self._cost(item) for item in plan])
        elif composition == "renyi":
            self._account = RenyiAccount(self._privacy)
        else:
            self._account = _BASIC[self._privacy.unit](self._privacy)
        self._blank = self._account.copy()
        self._charges: list[Charge] = []
        self._last: tuple[Cost, Charge] | None = None  # a cost, and what was charged
        self._lock = threading.Lock()
        self._forked = False
        self._journal = None if path is None else Journal(os.fspath(path), self._header())
        self._name = secrets.token_hex(16)
        known[self._name] = self
        if self._journal is not None:
            with self._journal.locked() as journal:
                self._catch_up(journal)

    # ---- the state of the budget ----

    @property
    def privacy(self) -> Privacy:
        """The guarantee of all releases together: the budget."""
        return self._privacy

    @property
    def sums_epsilons(self) -> bool:
        """Whether the cost of a release is its epsilon and delta alone, as for ``Ledger(epsilon, delta)``."""
        return type(self._account) is BasicAccount

    @property
    def charges(self) -> tuple[Charge, ...]:
        """The charges in order; with `path` those of all processes."""
        with self._current():
            return tuple(self._charges)

    def has(self, label: str) -> bool:
        """Whether a release of this label was charged."""
        return any(charge.label in (label, f"{label}{_REPLACED}") for charge in self.charges)

    @property
    def spent(self) -> Privacy:
        """The sums of the epsilons and deltas so far, rounded up; for "renyi" and plans the true loss is smaller.

        For a budget of rho or mu, the rho or mu so far. ``ledger.spent.delta_up(epsilon)`` is the delta at an epsilon,
        if the costs were not chosen after seeing answers; the budget holds in any case.
        """
        with self._current():
            return self._account.spent()

    @property
    def remaining(self) -> Privacy:
        """The largest epsilon and delta, rho or mu of one more release without a finer profile; rounded down.

        0 for a rest below 2**-36 of the budget, which is the rounding error of shares, or mu below 2**-36 of it.
        """
        with self._current():
            return self._account.remaining()

    def spent_by(self, what: str) -> SpentBy:
        """Return what the charges have spent by what their notes say: a table.

        Parameters
        ----------
        what : {"column", "day", "source", "purpose"}
            Days are known of all charges, the rest of those in a block of `noting`, of a `dpfast.Table` and of the
            command line.

        Returns
        -------
        SpentBy
            Its sums are those of `spent`, for the charges with each note.

        Examples
        --------
        >>> import dpfast as dpf
        >>> ledger = dpf.Ledger(1)
        >>> with ledger, ledger.noting(column="age"):
        ...     middle = dpf.median([23, 45, 31, 62], bounds=(0, 100), epsilon=0.25)
        ...     spread = dpf.std([23, 45, 31, 62], bounds=(0, 100), epsilon=0.5)
        >>> ledger.spent_by("column")["age"].epsilon
        0.75
        """
        name = checks.choice("what", what, NOTED)
        sums: dict[str | None, tuple[Account, int]] = {}
        together, charges = self._blank.copy(), self.charges
        for charge in charges:
            together.add(charge.profile, charge.times)
            noted = getattr(charge.note, name)
            account, releases = sums.get(noted) or (self._blank.copy(), 0)
            account.add(charge.profile, charge.times)
            sums[noted] = account, releases + charge.times
        keys: list[str | None] = [noted for noted in sums if noted is not None]
        keys += [None] if None in sums else []
        spent = {noted: sums[noted][0].spent() for noted in keys}
        return SpentBy(name, together.spent(), spent, {noted: sums[noted][1] for noted in keys})

    def delta(self, epsilon: float) -> float:
        """Return a delta with which all releases so far are (epsilon, delta) differentially private, rounded up.

        It is the curve of `PrivacyProfile.delta` for all charges together, if their costs were not chosen after seeing
        answers; the budget holds in any case.
        """
        target = checks.nonnegative_rational("epsilon", epsilon)
        charges = self.charges
        failure = sum((charge.times * Fraction(charge.profile.failure) for charge in charges), Fraction())
        return min(self.spent.delta_up(epsilon), up(failure + Fraction(delta_up(_parts(charges), target))))

    def dp_event(self) -> Any:
        """Return all charges as one ``dp_accounting.DpEvent``; errors are those of `PrivacyProfile.dp_event`."""
        charges = self.charges
        for charge in charges:
            if charge.profile.failure:
                charge.profile.dp_event()  # raises
        return event(_parts(charges))

    def affords(self, release: Release | PrivacyProfile | Privacy, *, times: SupportsIndex = 1) -> bool:
        """Whether `times` releases fit now; concurrent releases may use the budget before they are made."""
        profile, count = self._cost(release), checks.whole("times", times)
        self._same_neighbors(profile)
        with self._current():
            return self._account.fits(profile, count)

    def _traps(self) -> Iterator[Trap]:
        yield from of_epsilon(self._privacy.epsilon)
        yield from of_delta(self._privacy.delta)

    def _caption(self) -> str:
        left = ", ".join(
            f"{what} {privacy.unit} = {float(privacy.amount):.6g}"
            for what, privacy in (("spent", self.spent), ("remaining", self.remaining))
        )
        return f"Ledger of {self._privacy}; {self._account.name} composition; {left}"

    def _as_columns(self) -> dict[str, list[Any]]:
        """Return the charges: the release, the number of releases, the unit and the amount of the guarantee, its delta,
        and what is noted.
        """
        charges = self.charges
        stated = [charge.profile.privacy for charge in charges]
        return {
            "release": [
                charge.label.partition(f": {privacy}")[0].strip("<>")
                for charge, privacy in zip(charges, stated, strict=True)
            ],
            "times": [charge.times for charge in charges],
            **amounts(stated),
            **{name: [getattr(charge.note, name) for charge in charges] for name in NOTED},
        }

    def __repr__(self) -> str:
        return f"<Ledger of {self._privacy}; {self._account.name} composition, {len(self._charges)} charges>"

    # ---- spending ----

    # An interrupt is raised where a function begins, after a call of C and in loops. None enters or leaves half a
    # block: one before `_leave` has begun lets the block open, in which releases are charged.

    def __enter__(self) -> Ledger:
        self._enter([self._name])
        return self

    def __exit__(self, *exception: object) -> None:
        self._leave([self._name])

    def _enter(self, names: list[str]) -> None:
        """Activate the ledger, in a block that is listed by these names."""
        entered, before, listed = _entered.get(), active.get(), blocks
        if entered and entered[-1][0] is not self:
            raise ValueError("another ledger is active: a release is charged to only one")
        try:
            _entered.set((*entered, (self, before)))
            active.set(self)
            listed += names  # the last step, and no call
        except BaseException:
            _entered.set(entered)
            active.set(before)
            raise

    def _leave(self, names: list[str]) -> None:
        *entered, (_, before) = _entered.get()
        try:
            for name in names:
                blocks.remove(name)
        finally:
            try:
                _entered.set(tuple(entered))
            finally:
                active.set(before)

    def _active(self) -> AbstractContextManager[None]:
        """Activate the ledger for one release or declared cost; unlike in a `with` block, other threads may release."""
        return _Active(self)

    def _ticket(self) -> Ticket:
        """Return a handle that finds this ledger from other contexts, and from other processes if it has a file."""
        return Ticket(self._name, None if self._journal is None else self.__reduce__())

    def release(
        self,
        mechanism: Any,
        x: Records,
        *,
        size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
        rng: RandomSource = None,
        **options: Any,
    ) -> Any:
        """``mechanism.release(x, size=size, rng=rng)``, charged to this ledger from any thread.

        Raises
        ------
        BudgetError
            If it does not fit; `x` is then not read.
        """
        if not getattr(getattr(type(mechanism), "release", None), "charged", False):
            raise TypeError(f"mechanism must be a dpfast.Mechanism, not {type(mechanism).__name__}")
        with self._active():
            return mechanism.release(x, size=size, rng=rng, **options)

    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """``function(*args, **options)``, whose releases are charged to this ledger, from any thread.

        Raises
        ------
        BudgetError
            If one does not fit.
        """
        with self._active():
            return function(*args, **options)

    @contextmanager
    def spend(
        self, cost: Privacy | PrivacyProfile | Release, *, times: SupportsIndex = 1, label: str | None = None
    ) -> Iterator[None]:
        """Charge the cost that you declare, and must justify, for the block; nothing else is charged in it.

        The label of the charge is by default "declared"; of a mechanism that of its releases.
        """
        profile, count = _profile(cost), checks.whole("times", times)
        if label is None:
            label = repr(cost) if isinstance(cost, Carrier) else "declared"
        with self._active(), spending(profile, label=str(label), times=count, declared=True):
            yield

    def noting(
        self, *, column: str | None = None, source: str | None = None, purpose: str | None = None
    ) -> AbstractContextManager[None]:
        """Note with the charges of a block what they are for, which is public.

        It activates no ledger: ``with ledger, ledger.noting(purpose="census"):``. Blocks in a block note what those
        around leave open. The day of a charge is noted anyway. See `spent_by`.

        Parameters
        ----------
        column : str, optional
            What was released from. A `dpfast.Table` and the command line note it.
        source : str, optional
            The data. The command line, and a `dpfast.Table` of a file, note the file.
        purpose : str, optional
            What for.
        """
        return noting(Note(None, column, source, purpose))

    @contextmanager
    def receipt(self) -> Iterator[list[Charge]]:
        """Yield a list to which each charge of the block is added, but for those of other threads.

        Examples
        --------
        >>> import dpfast as dpf
        >>> ledger = dpf.Ledger(1)
        >>> with ledger.receipt() as charges:
        ...     ledger.reserve(dpf.PrivacyProfile(dpf.Privacy(0.25)), times=2)
        >>> [(charge.profile.privacy.epsilon, charge.times) for charge in charges]
        [(0.25, 2)]
        """
        charges: list[Charge] = []
        token = _receipts.set((*_receipts.get(), (self, charges)))
        try:
            yield charges
        finally:
            _receipts.reset(token)

    def reserve(self, profile: PrivacyProfile, *, times: int = 1, label: str = "declared") -> None:
        """Record `times` releases of a profile, or raise a BudgetError."""
        self.reserve_all([Cost(label, profile, checks.whole("times", times))])

    def reserve_all(self, costs: Sequence[Cost]) -> None:
        """Record all these costs, or raise a BudgetError and record none of them. Every charge uses this method."""
        check_heard()
        note = note_now()
        charges = [self._charge_of(cost, note) for cost in costs]
        self._record(charges, lambda i: self._on_relation(costs[i]))
        for ledger, receipt in _receipts.get():
            if ledger is self:
                receipt.extend(charge for charge in charges if charge.times)

    def _record(self, charges: list[Charge], hint: Callable[[int], str]) -> None:
        """Record all these charges, or raise a BudgetError, with a hint on the one that does not fit, and record none
        of them.
        """
        with self._current():
            account, journal = self._account, self._journal
            for i, charge in enumerate(charges):
                after = account.after(charge.profile, charge.times)
                if after is None:
                    where = f"of {len(charges)} costs of one call, number {i + 1}: " if len(charges) > 1 else ""
                    refusal = account.refusal(charge.profile, charge.times)
                    raise BudgetError(where + refusal + hint(i) + advice_for_callers())
                account = after
            charges = [charge for charge in charges if charge.times]
            if journal is None:
                self._account = account
                self._charges.extend(charges)
            else:
                for charge in charges:
                    journal.append(charge_to_json(charge))
                self._catch_up(journal)

    def _charge_of(self, cost: Cost, note: Note) -> Charge:
        """Return the charge of a cost after its checks: the last one, or its profile, if it was of the same objects."""
        last = self._last
        if last is not None and last[0] is cost and last[1].note is note:
            return last[1]
        if last is not None and last[0].profile is cost.profile:
            profile = last[1].profile
        else:
            profile = self._cost(cost.profile)
            self._same_neighbors(profile)
            check_parts(profile)
        charge = Charge(self._label(cost), profile, cost.times, note)
        self._last = cost, charge
        return charge

    def _cost(self, release: Release | PrivacyProfile | Privacy) -> PrivacyProfile:
        """Return the profile that is charged: for the units or the neighbours of the budget."""
        profile, per_unit = _profile(release), self._privacy.per_unit
        if self._converts(profile):
            return profile.for_replaced()
        return profile if per_unit is None else profile.for_units(per_unit)

    def _converts(self, profile: PrivacyProfile) -> bool:
        """Whether a release for one record added or removed is charged for one replaced record."""
        return (self._privacy.neighbors, profile.privacy.neighbors) == ("replace-one", "add-remove")

    def _label(self, cost: Cost) -> str:
        return f"{cost.label}{_REPLACED}" if self._converts(cost.profile) else cost.label

    def _on_relation(self, cost: Cost) -> str:
        """Return a note on a cost that is larger than that of its release."""
        if not self._converts(cost.profile):
            return ""
        return ". A replaced record is one removed and one added, which costs twice the epsilon of this release"

    def _same_neighbors(self, profile: PrivacyProfile) -> None:
        mine, theirs = self._privacy.neighbors, profile.privacy.neighbors
        if mine != theirs:
            give = ": give the release neighbors='add-remove'" if theirs == "replace-one" != mine != "local" else ""
            raise ValueError(f"neighbors must be {mine!r} in this ledger, not {theirs!r}: the two do not add up{give}")

    def _current(self) -> AbstractContextManager[Any]:
        """Return a block that holds the lock, in which the state is up to date."""
        if self._journal is not None:
            return self._locked(self._journal)
        if self._forked:
            raise BudgetError("this ledger was made before a fork, and is its parent's: use path=")
        return self._lock  # by itself, in a tenth of the time of a block

    @contextmanager
    def _locked(self, journal: Journal) -> Iterator[None]:
        with self._lock, journal.locked():
            self._catch_up(journal)
            yield

    def _catch_up(self, journal: Journal) -> None:
        charges, end = journal.read()  # all or none of them
        alike = Counter(map(id, charges))  # equal lines are one object
        distinct = {id(charge): charge for charge in charges}
        for charge in distinct.values():
            try:
                self._check_kind(charge.profile)
            except ValueError as error:
                raise journal.damaged(charges.index(charge), error) from None
        account = self._account.copy()
        for key, charge in distinct.items():
            account.add(charge.profile, charge.times * alike[key])
        self._account, journal.seen = account, end  # at once: an interrupt before this leaves all to be read again
        self._charges.extend(charges)

    def _check_kind(self, profile: PrivacyProfile) -> None:
        """Raise a ValueError unless a charge that is read is for the neighbours and units of the budget."""
        self._same_neighbors(profile)
        if self._cost(profile) is not profile:
            raise ValueError(f"per_unit must be {self._privacy.per_unit} in this ledger, not None")

    def _after_fork(self) -> None:
        self._forked, self._lock = True, threading.Lock()
        if self._journal is not None:  # a thread of the parent may have been adding charges at the fork
            self._charges, self._account = [], self._blank.copy()
            self._journal.after_fork()

    # ---- as JSON ----

    def _header(self) -> dict[str, Any]:
        header: dict[str, Any] = {
            FORMAT: VERSION,
            **privacy_to_json(self._privacy),
            "composition": self._account.name,
        }
        if isinstance(self._account, PlannedAccount):
            header["plan"] = [profile_to_json(profile) for profile in self._account.plan]
        return header

    def to_json(self) -> str:
        """Budget and charges as a JSON object, version 1."""
        with self._current():
            return json.dumps({**self._header(), "charges": [charge_to_json(charge) for charge in self._charges]})

    @classmethod
    def from_json(cls, text: str) -> Ledger:
        """Restore the ledger that `to_json` wrote, without `path`. Continuing two copies would spend the budget twice.

        Raises
        ------
        ValueError
            For another text or version, or charges beyond the budget.
        """
        fields = LEDGER.parse(text)
        charges = fields.pop("charges", None)
        if not isinstance(charges, list):
            raise ValueError("not a ledger: it has no list of charges")
        ledger = cls._from_header(fields)
        for entry in charges:
            try:
                charge = charge_from_json(entry)
                ledger._check_kind(charge.profile)
                ledger._record([charge], lambda _: "")
            except (ValueError, BudgetError) as error:
                raise ValueError(f"this ledger is damaged: {error}") from None
        return ledger

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Ledger:
        """Continue the ledger in a file, with the budget that the file states.

        Raises
        ------
        FileNotFoundError
            A missing file: ``Ledger(..., path=path)`` creates it.
        ValueError
            A file that is not a ledger, is damaged or has another version.
        """
        try:
            with Path(path).open("rb") as file:
                header = LEDGER.parse(file.readline())
        except FileNotFoundError:
            name = os.fspath(path)
            raise FileNotFoundError(f"no ledger {name}: make it by dpf.Ledger(epsilon, path={name!r})") from None
        return cls._from_header(header, path)

    @classmethod
    def _from_header(cls, header: dict[str, Any], path: str | os.PathLike[str] | None = None) -> Ledger:
        LEDGER.check(header)
        try:
            plan = header.get("plan")
            return cls(
                header.get("epsilon"),
                header["delta"],
                rho=header.get("rho"),
                mu=header.get("mu"),
                neighbors=header["neighbors"],
                composition="basic" if plan is not None else header["composition"],
                plan=None if plan is None else [profile_from_json(entry) for entry in plan],
                per_unit=header.get("per_unit"),
                path=path,
            )
        except (KeyError, TypeError, BudgetError) as error:
            raise ValueError(f"not a ledger: {error}") from None

    def __reduce__(self) -> Any:
        if self._journal is None:
            raise TypeError("a ledger without path cannot be pickled or copied: two copies would spend twice")
        return _reopened, (self._journal.path, self._header())


class _Active:
    """A block in which a ledger is active, see `Ledger._active`."""

    __slots__ = ("_ledger",)

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __enter__(self) -> None:
        self._ledger._enter([])

    def __exit__(self, *exception: object) -> None:
        self._ledger._leave([])


def _parts(charges: Sequence[Charge]) -> dict[Part, int]:
    return counted((part, charge.times * times) for charge in charges for part, times in charge.profile.each_part())


def _reopened(path: str, header: dict[str, Any]) -> Ledger:
    ledger = Ledger._from_header(header)
    ledger._journal = Journal(path, header, make=False)
    return ledger


def _after_fork_in_child() -> None:
    for ledger in list(known.values()):
        ledger._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


# The sums of a budget in each unit.
_BASIC = {"epsilon": BasicAccount, "rho": ConcentratedAccount, "mu": GaussianAccount}


def _profile(release: Any) -> PrivacyProfile:
    if isinstance(release, PrivacyProfile):
        return release
    if isinstance(release, Privacy):
        return PrivacyProfile(release)
    profile = getattr(release, "privacy_profile", None)
    if not isinstance(profile, PrivacyProfile):
        raise TypeError(f"a dpfast.Mechanism, Privacy or PrivacyProfile is needed, not {type(release).__name__}")
    return profile
