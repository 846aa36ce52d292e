"""Budgets: what all releases together may tell about one record, kept for a thread, a process or a file."""

from __future__ import annotations

import json
import math
import os
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, SupportsIndex

from numpy.typing import ArrayLike

from dpfast import _checks
from dpfast.errors import BudgetError
from dpfast.mechanism import Mechanism
from dpfast.privacy import Privacy, PrivacyProfile, _up
from dpfast.random import RandomSource
from dpfast.spending import Ticket, active, blocks, known, spending

_FORMAT = "dpfast-ledger"
_VERSION = 1
_COMPOSITIONS = ("basic", "renyi")
_ORDERS = [1 + 2.0 ** (i / 8) for i in range(-64, 129)]
_BUCKET = 1e-4  # of privacy losses in a plan, at most
_SPARE = 1 + 2.0**-30  # of what is computed in doubles
_ROUNDING = Fraction(1, 2**40)  # of a budget: far more than sums of rounded decimals lack, and of no use to anyone


@dataclass(frozen=True)
class Charge:
    """One line of a ledger; public, as are the parameters of mechanisms.

    Parameters
    ----------
    label : str
        What was released, as the mechanism prints.
    profile : PrivacyProfile
        What one release costs.
    times : int
        How many there were.
    """

    label: str
    profile: PrivacyProfile
    times: int = 1


# The ledgers entered in this context, each with what was active before.
_entered: ContextVar[tuple[tuple[Ledger, Any], ...]] = ContextVar("dpfast_ledgers", default=())


class Ledger:
    """A privacy budget: releases are recorded before they look at data, and refused where they do not fit.

    All releases together are (epsilon, delta)-differentially private for the given neighbours, also if each is chosen
    after the ones before were seen.

    Parameters
    ----------
    epsilon : float
        Positive. A Fraction, a Decimal or a string ("0.1", "1/3") is taken exactly.
    delta : float
        In [0, 1), likewise. Default: 0, for pure releases.
    neighbors : {"replace-one", "add-remove", "local"}
        Of all releases: others are a ValueError, for guarantees of different neighbours do not add up. A ledger for
        "local" is that of one person, or of people who all answer the same questions.
    composition : {"basic", "renyi"}
        How costs add up. "basic": epsilons and deltas, as exact rationals. "renyi": Renyi divergences of one order,
        which is fixed when the ledger is made: a filter, tighter for many small releases; needs delta > 0, of which one
        half is for the composition, the other for releases with a delta of their own. Both stay valid when releases are
        chosen adaptively.
    plan : sequence of Mechanism or PrivacyProfile, optional
        Instead of `composition`: all releases, declared beforehand, composed by their privacy loss distributions
        (needs ``dp-accounting``). Mostly the tightest, and valid for the plan only: releases must follow it, in its
        order, each with the profile of its place. A BudgetError if the plan does not fit.
    path : path-like, optional
        A file that outlives the process: made if it does not exist, else continued, with the same parameters. Several
        processes may share it; every charge is on disk before the release.

    Raises
    ------
    TypeError, ValueError
        A parameter of a wrong type or out of range; a file of another ledger, of another version, or damaged.
    BudgetError
        A plan that does not fit. From a release: what it costs does not fit (nothing is recorded). From `law` and all
        else that is an exact function of the data; from a release in another thread while a block is open.

    Notes
    -----
    **What is charged.** ``with ledger:`` charges what this context releases, by any function or mechanism of dpfast,
    once: what a mechanism does inside is part of it, but what a source of `Chunks` releases to make records is not.
    ``release(size=k)`` costs k times. Other threads have other contexts, in which releases are refused while the block
    is open: use ``with ledger:`` or `Ledger.release` there; tasks of asyncio inherit it, and go on to pay when the
    block is over. A mechanism that is pickled in the block is charged in other processes through the file, or refused;
    functions that are called there are not seen. Noise from `dpfast.noise` is refused, unless its use is declared, as
    is anything of your own::

        with ledger.spend(dpf.Privacy(0.5)):
            total = int(x.sum()) + dpf.noise.laplace(Fraction(2))

    Local randomisers need a ledger for "local", and are a ValueError elsewhere.
    **What is spent stays spent**: a release that raises is paid for, and so is one that a crash cuts off. Wrong
    parameters that are seen before cost nothing.
    **Doubles are the numbers they are**: 0.1 is a little more than a tenth, and ten of them do not fit into 1. Give
    strings ("0.1"), Decimals or Fractions, which are exact: a ledger keeps them, mechanisms round them down.
    Privacy: docs/proofs/composition.md; guide: docs/guides/ledger.md. Only releases through this ledger are counted;
    reading the data otherwise is not seen. Cost: some tens of microseconds a release; with `path` a write to disk. A
    forked process cannot go on with a ledger without `path`, which would be spent twice.

    References
    ----------
    Rogers, Roth, Ullman and Vadhan 2016, "Privacy odometers and filters"; Feldman and Zrnic 2021, "Individual privacy
    accounting via a Renyi filter"; Zhu, Dong and Wang 2022, "Optimal accounting of differential privacy via
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
        epsilon: float,
        delta: float = 0.0,
        *,
        neighbors: str = "replace-one",
        composition: str = "basic",
        plan: Sequence[Mechanism | PrivacyProfile] | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        _checks.positive_down("epsilon", epsilon)
        _checks.delta_down(delta)
        self._privacy = Privacy(epsilon, delta, neighbors)
        _checks.choice("composition", composition, _COMPOSITIONS)
        if plan is not None:
            if composition != "basic":
                raise ValueError(f"composition must be left out with a plan, not {composition!r}")
            self._account: _Account = _Plan(self._privacy, [_profile(item) for item in plan])
        else:
            self._account = _Renyi(self._privacy) if composition == "renyi" else _Basic(self._privacy)
        self._blank = copy(self._account)
        self._charges: list[Charge] = []
        self._lock = threading.Lock()
        self._forked = False
        self._journal = None if path is None else _Journal(os.fspath(path), self._header())
        self._name = secrets.token_hex(16)
        known[self._name] = self
        if self._journal is not None:
            with self._journal.locked() as journal:
                self._catch_up(journal)

    # ---- what there is ----

    @property
    def privacy(self) -> Privacy:
        """The guarantee of all releases together: the budget."""
        return self._privacy

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What was released, in order; with `path` by all processes."""
        with self._current():
            return tuple(self._charges)

    @property
    def spent(self) -> Privacy:
        """The sums of the epsilons and deltas so far, rounded up: for "renyi" and plans the true loss is less."""
        with self._current():
            return Privacy(_up(self._account.epsilon), min(1.0, _up(self._account.delta)), self._privacy.neighbors)

    @property
    def remaining(self) -> Privacy:
        """The most that one more release, of which no more than this is known, can cost; rounded down."""
        with self._current():
            epsilon, delta = self._account.remaining()
            return Privacy(_down(epsilon), _down(delta), self._privacy.neighbors)

    def affords(self, release: Mechanism | PrivacyProfile | Privacy, *, times: SupportsIndex = 1) -> bool:
        """Whether so many releases fit now; others may take the place before they are made."""
        profile, count = _profile(release), _checks.whole("times", times)
        self._same_neighbors(profile)
        with self._current():
            return self._account.fits(profile, count)

    def __repr__(self) -> str:
        return f"<Ledger of {self._privacy}; {self._account.name} composition, {len(self._charges)} charges>"

    # ---- spending ----

    def __enter__(self) -> Ledger:
        self._enter()
        blocks.append(self._name)
        return self

    def __exit__(self, *exception: object) -> None:
        blocks.remove(self._name)
        self._leave()

    def _enter(self) -> None:
        entered = _entered.get()
        if entered and entered[-1][0] is not self:
            raise ValueError("another ledger is active: a release is charged to one")
        _entered.set((*entered, (self, active.get())))
        active.set(self)

    def _leave(self) -> None:
        *entered, (_, before) = _entered.get()
        _entered.set(tuple(entered))
        active.set(before)

    @contextmanager
    def _active(self) -> Iterator[None]:
        """Active for one release or declared cost; unlike by a `with` block, other threads are not refused then."""
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def _ticket(self) -> Ticket:
        """What finds this ledger from other contexts, and from other processes if it has a file."""
        return Ticket(self._name, None if self._journal is None else self.__reduce__())

    def release(
        self,
        mechanism: Any,
        x: ArrayLike,
        *,
        size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
        rng: RandomSource = None,
        **options: Any,
    ) -> Any:
        """``mechanism.release(x, size=size, rng=rng)``, charged to this ledger from any thread.

        Raises
        ------
        BudgetError
            It does not fit; `x` was not looked at.
        """
        if not getattr(getattr(type(mechanism), "release", None), "charged", False):
            raise TypeError(f"mechanism must be a dpfast.Mechanism, not {type(mechanism).__name__}")
        with self._active():
            return mechanism.release(x, size=size, rng=rng, **options)

    @contextmanager
    def spend(
        self, cost: Privacy | PrivacyProfile | Mechanism, *, times: SupportsIndex = 1, label: str = "declared"
    ) -> Iterator[None]:
        """Pay for what is done in the block, at a cost that you declare and answer for; nothing in it is charged."""
        profile, count = _profile(cost), _checks.whole("times", times)
        with self._active(), spending(profile, label=str(label), times=count, declared=True):
            yield

    def reserve(self, profile: PrivacyProfile, *, times: int = 1, label: str = "declared") -> None:
        """Record `times` releases of a profile, or raise a BudgetError; what every charge passes."""
        times = _checks.whole("times", times)
        self._same_neighbors(profile)
        charge = Charge(label, profile, times)
        with self._current() as journal:
            if not self._account.fits(profile, times):
                raise BudgetError(self._account.refusal(profile, times))
            if journal is None:
                self._add(charge)
            else:
                journal.append(_charge_to_json(charge))
                self._catch_up(journal)

    def _same_neighbors(self, profile: PrivacyProfile) -> None:
        mine, theirs = self._privacy.neighbors, profile.privacy.neighbors
        if mine != theirs:
            raise ValueError(f"neighbors must be {mine!r} in this ledger, not {theirs!r}: the two do not add up")

    @contextmanager
    def _current(self) -> Iterator[_Journal | None]:
        """The state of this moment, which nobody else changes."""
        if self._forked and self._journal is None:
            raise BudgetError("this ledger was made before a fork, and is its parent's: use path=")
        with self._lock:
            if self._journal is None:
                yield None
                return
            with self._journal.locked() as journal:
                self._catch_up(journal)
                yield journal

    def _catch_up(self, journal: _Journal) -> None:
        charges, end = journal.read()  # all, or none
        for charge in charges:
            self._add(charge)
        journal.seen = end

    def _add(self, charge: Charge) -> None:
        self._charges.append(charge)
        self._account.add(charge.profile, charge.times)

    def _after_fork(self) -> None:
        self._forked, self._lock = True, threading.Lock()
        if self._journal is not None:  # a thread of the parent may have been adding charges
            self._charges, self._account = [], copy(self._blank)
            self._journal.after_fork()

    # ---- as JSON ----

    def _header(self) -> dict[str, Any]:
        header: dict[str, Any] = {
            _FORMAT: _VERSION,
            "epsilon": _number_to_json(self._privacy.epsilon),
            "delta": _number_to_json(self._privacy.delta),
            "neighbors": self._privacy.neighbors,
            "composition": self._account.name,
        }
        if isinstance(self._account, _Plan):
            header["plan"] = [_profile_to_json(profile) for profile in self._account.plan]
        return header

    def to_json(self) -> str:
        """Budget and charges as a JSON object, version 1."""
        with self._current():
            return json.dumps({**self._header(), "charges": [_charge_to_json(charge) for charge in self._charges]})

    @classmethod
    def from_json(cls, text: str) -> Ledger:
        """The ledger that `to_json` wrote, without `path`: whoever goes on with two copies spends twice.

        Raises
        ------
        ValueError
            Another text or another version; charges beyond the budget.
        """
        fields = _object(text)
        charges = fields.pop("charges", None)
        if not isinstance(charges, list):
            raise ValueError("this is no ledger: it has no list of charges")
        ledger = cls._from_header(fields)
        for entry in charges:
            charge = _charge_from_json(entry)
            try:
                ledger.reserve(charge.profile, times=charge.times, label=charge.label)
            except BudgetError as error:
                raise ValueError(f"this ledger is damaged: {error}") from None
        return ledger

    @classmethod
    def _from_header(cls, header: dict[str, Any]) -> Ledger:
        _check_version(header)
        try:
            plan = header.get("plan")
            return cls(
                header["epsilon"],
                header["delta"],
                neighbors=header["neighbors"],
                composition="basic" if plan is not None else header["composition"],
                plan=None if plan is None else [_profile_from_json(entry) for entry in plan],
            )
        except (KeyError, TypeError, BudgetError) as error:
            raise ValueError(f"this is no ledger: {error}") from None

    def __reduce__(self) -> Any:
        if self._journal is None:
            raise TypeError("a ledger without path cannot be pickled or copied: two copies would spend twice")
        return _reopened, (self._journal.path, self._header())


def _reopened(path: str, header: dict[str, Any]) -> Ledger:
    ledger = Ledger._from_header(header)
    ledger._journal = _Journal(path, header, make=False)
    return ledger


def _after_fork_in_child() -> None:
    for ledger in list(known.values()):
        ledger._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _profile(release: Any) -> PrivacyProfile:
    if isinstance(release, PrivacyProfile):
        return release
    if isinstance(release, Privacy):
        return PrivacyProfile(release)
    profile = getattr(release, "privacy_profile", None)
    if not isinstance(profile, PrivacyProfile):
        raise TypeError(f"a dpfast.Mechanism, Privacy or PrivacyProfile is needed, not {type(release).__name__}")
    return profile


# ---- how costs add up: docs/proofs/composition.md ----


class _Account:
    """Sums of costs against a budget."""

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
            f"{_cost(Privacy(_down(epsilon), _down(delta)))} is left"
        )

    def _lacks_little(self, profile: PrivacyProfile, times: int) -> bool:
        """Whether it is only because of the rounding of decimals to doubles that so many do not fit."""
        (epsilon, delta), cost = self.remaining(), profile.privacy
        return all(
            times * Fraction(wanted) <= left + Fraction(budget) * _ROUNDING
            for wanted, left, budget in (
                (cost.epsilon, epsilon, self._budget.epsilon),
                (cost.delta, delta, self._budget.delta),
            )
        )


def _cost(privacy: Privacy) -> str:
    epsilon = f"epsilon = {_number_to_json(privacy.epsilon)}"
    return f"{epsilon}, delta = {_number_to_json(privacy.delta)}" if privacy.delta else epsilon


class _Basic(_Account):
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
            f"{refusal}. Floats are not quite the decimals that they are written as, 0.1 is a little more than 1/10: "
            "give epsilons, deltas and budgets as strings, epsilon='0.1', or as Fraction(1, 10), which are exact"
        )

    def remaining(self) -> tuple[Fraction, Fraction]:
        return Fraction(self._budget.epsilon) - self.epsilon, Fraction(self._budget.delta) - self.delta


class _Renyi(_Account):
    """Sums of Renyi divergences of one public order, the one that leaves the most for small releases."""

    name = "renyi"

    def __init__(self, budget: Privacy) -> None:
        super().__init__(budget)
        if not budget.delta:
            raise ValueError("delta must be positive for composition='renyi', not 0.0")
        self._half = Fraction(budget.delta) / 2
        if _down(self._half):
            self.order = max(_ORDERS, key=lambda order: self._room(order) / order)
            self._left = Fraction(self._room(self.order))
        if not _down(self._half) or self._left <= 0:
            raise ValueError(f"delta={budget.delta!r} is too small for composition='renyi': use 'basic'")

    def _room(self, order: float) -> float:
        """The divergence that implies (epsilon, delta / 2), rounded down: Canonne, Kamath, Steinke 2020, prop. 12."""
        epsilon, delta = _down(Fraction(self._budget.epsilon)), _down(self._half)
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
        """By bisection: the largest epsilon of a pure release."""
        low, high = 0.0, self._budget.epsilon
        for _ in range(60):
            middle = (low + high) / 2
            if self.fits(PrivacyProfile(Privacy(middle)), 1):
                low = middle
            else:
                high = middle
        return Fraction(low), self._half - self.delta


class _Plan(_Account):
    """The declared releases, one after the other."""

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
    """The delta of the whole plan, by dp-accounting's discretised privacy loss distributions, rounded up."""
    counts: dict[tuple[str, float], int] = {}
    delta = Fraction()
    for profile in plan:
        delta += Fraction(profile.privacy.delta)
        for family, cost, times in profile.parts:
            counts[family, cost] = counts.get((family, cost), 0) + times
    counts = {key: times for key, times in counts.items() if key[1] and times}
    if sum((times * Fraction(cost) for (_, cost), times in counts.items()), Fraction()) <= Fraction(epsilon):
        return _up(delta)
    costs = [cost for _, cost in counts]
    bucket = min(_BUCKET, max(min(costs) / 100, max(costs) / 1e5))
    losses = None
    for (family, cost), times in counts.items():
        composed = _loss_distribution(family, cost, bucket).self_compose(times)
        losses = composed if losses is None else losses.compose(composed)
    assert losses is not None
    return min(1.0, _up(delta) + float(losses.get_delta_for_epsilon(_down(Fraction(epsilon)))) * _SPARE + 2.0**-44)


def _loss_distribution(family: str, epsilon: float, bucket: float) -> Any:
    """The distribution of the losses, rounded up to multiples of `bucket`."""
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
    # Of any two laws whose loss has a range of epsilon, the divergence at t is at most this (Dong, Durfee and Rogers).
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


def _down(x: Fraction) -> float:
    """The greatest double that is not above x, at least 0."""
    y = float(max(x, Fraction()))
    return y if Fraction(y) <= x else max(0.0, math.nextafter(y, 0.0))


# ---- JSON, and the file ----


def _object(text: str | bytes) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("this is no ledger: it is not JSON") from None
    if not isinstance(fields, dict):
        raise ValueError("this is no ledger: it is no JSON object")
    return fields


def _check_version(header: dict[str, Any]) -> None:
    if _FORMAT not in header:
        raise ValueError(f"this is no ledger: it has no {_FORMAT!r}")
    if header[_FORMAT] != _VERSION:
        raise ValueError(f"this ledger is of version {header[_FORMAT]!r}: this dpfast knows version {_VERSION} only")


def _profile_to_json(profile: PrivacyProfile) -> dict[str, Any]:
    privacy = profile.privacy
    return {
        "epsilon": _number_to_json(privacy.epsilon),
        "delta": _number_to_json(privacy.delta),
        "neighbors": privacy.neighbors,
        "parts": [list(part) for part in profile.parts],
    }


def _profile_from_json(fields: dict[str, Any]) -> PrivacyProfile:
    privacy = Privacy(_number(fields["epsilon"]), _number(fields["delta"]), fields["neighbors"])
    parts = tuple((str(family), _number(epsilon), times) for family, epsilon, times in fields["parts"])
    return PrivacyProfile(privacy, parts)


def _number_to_json(x: float | Fraction) -> float | str:
    """A double as it is, another number as a ratio: "1/10"."""
    return str(x) if isinstance(x, Fraction) else x


def _number(value: Any) -> Any:
    number = _checks.rational_or_double("a cost", value)
    if not 0 <= number < math.inf:
        raise ValueError(f"a cost must be finite and at least 0, not {value!r}")
    return number


def _charge_to_json(charge: Charge) -> dict[str, Any]:
    return {"label": charge.label, "times": charge.times, **_profile_to_json(charge.profile)}


def _charge_from_json(fields: Any) -> Charge:
    try:
        return Charge(str(fields["label"]), _profile_from_json(fields), _checks.whole("times", fields["times"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"this ledger is damaged: {error}") from None


class _Journal:
    """A file of JSON lines, the budget first, then each charge: appended under a lock and flushed to the disk.

    A last line without an end is a charge whose writer crashed before the release: it is cut off.
    """

    def __init__(self, path: str, header: dict[str, Any], *, make: bool = True) -> None:
        self.path, self._header, self._file = os.path.abspath(path), header, -1
        self.seen = 0  # up to here the owner has taken what there is
        if make:
            with self.locked(os.O_CREAT):
                self._begin()

    @contextmanager
    def locked(self, flags: int = 0) -> Iterator[_Journal]:
        """The file, opened and ours alone until the block ends."""
        import fcntl

        self._file = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            yield self
        finally:
            file, self._file = self._file, -1
            fcntl.flock(file, fcntl.LOCK_UN)  # a child forked meanwhile has the file open, too
            os.close(file)

    def after_fork(self) -> None:
        """In a child: let go of what a thread of the parent had open, and read all again."""
        self.seen = 0
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _begin(self) -> None:
        """Write the header of a new file, for good: file and directory. What else is there stays as it is."""
        line = _line(self._header)
        size = os.fstat(self._file).st_size
        if size < len(line) and line.startswith(_pread(self._file, size, 0)):  # or torn while it was made
            os.ftruncate(self._file, 0)
            self.append(self._header)
            directory = os.open(os.path.dirname(self.path), os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)

    def read(self) -> tuple[list[Charge], int]:
        """The charges behind `seen`, and where they end. Nothing is cut off a file that is not a sound ledger."""
        size = os.fstat(self._file).st_size
        if size < self.seen:
            raise ValueError(f"the ledger {self.path} is shorter than it was")
        new = _pread(self._file, size - self.seen, self.seen)
        *lines, torn = new.split(b"\n")
        if self.seen == 0:
            if not lines:
                raise ValueError(f"{self.path} is no ledger: its first line has no end")
            self._check_header(_object(lines.pop(0)))
        charges, end = [_charge_from_json(_object(line)) for line in lines], size - len(torn)
        if torn:
            os.ftruncate(self._file, end)
        return charges, end

    def _check_header(self, header: dict[str, Any]) -> None:
        _check_version(header)
        for name in sorted({*header, *self._header}):
            if header.get(name) != self._header.get(name):
                raise ValueError(
                    f"the ledger {self.path} has {name} = {header.get(name)!r}, not {self._header.get(name)!r}"
                )

    def append(self, entry: dict[str, Any]) -> None:
        """A line at the end, on the disk when this returns."""
        line = memoryview(_line(entry))
        os.lseek(self._file, 0, os.SEEK_END)
        while line:
            line = line[os.write(self._file, line) :]
        os.fsync(self._file)


def _line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry).encode() + b"\n"


def _pread(file: int, count: int, offset: int) -> bytes:
    parts = []
    while count and (part := os.pread(file, count, offset)):
        parts.append(part)
        offset, count = offset + len(part), count - len(part)
    return b"".join(parts)
