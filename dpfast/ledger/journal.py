"""The file of a ledger, to which processes append charges under a lock."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dpfast.core import checks, disk
from dpfast.core.lines import LineFile, LineFormat
from dpfast.core.privacy import Privacy, PrivacyProfile

FORMAT = "dpfast-ledger"
VERSION = 1
LEDGER = LineFormat("ledger", FORMAT, VERSION)
NOTED = ("day", "column", "source", "purpose")
_NEEDED = {"label", "times", "delta", "neighbors", "parts"}
_RESTORED = "https://dpfast.readthedocs.io/en/latest/guides/ledger.html#after-a-crash-or-a-restore"
_FIELDS = {*_NEEDED, "epsilon", "rho", "mu", "per_unit", "failure", *NOTED}


@dataclass(frozen=True, slots=True)
class Note:
    """What is known of a charge besides its cost. It is public. None for what nobody said.

    Parameters
    ----------
    day : str, optional
        Of the charge, as 2026-01-31, in UTC.
    column, source, purpose : str, optional
        What was released from, in which data, and what for: see `Ledger.noting`.
    """

    day: str | None = None
    column: str | None = None
    source: str | None = None
    purpose: str | None = None

    def __post_init__(self) -> None:
        for name in NOTED:
            text = getattr(self, name)
            if text is not None and type(text) is not str:
                raise TypeError(f"{name} must be text or None, not {type(text).__name__}")


@dataclass(frozen=True)
class Charge:
    """One line of a ledger. It is public, like the parameters of mechanisms.

    Parameters
    ----------
    label : str
        A description of the release: the mechanism as printed.
    profile : PrivacyProfile
        The cost of one release.
    times : int
        The number of releases.
    note : Note
        When and what for. Charges are equal whatever it is.
    """

    label: str
    profile: PrivacyProfile
    times: int = 1
    note: Note = field(default=Note(), compare=False)


# ---- JSON, and the file ----


def profile_to_json(profile: PrivacyProfile) -> dict[str, Any]:
    """Return the JSON fields of a privacy profile."""
    parts = [[family, number_to_json(parameter), *counts] for family, parameter, *counts in profile.parts]
    fields = {**privacy_to_json(profile.privacy), "parts": parts}
    # A positive one always, so that a lost delta is noticed.
    written = profile.failure or profile.failure != profile.usual_failure
    return {**fields, "failure": number_to_json(profile.failure)} if written else fields


def profile_from_json(fields: dict[str, Any]) -> PrivacyProfile:
    """Return the privacy profile with these JSON fields."""
    amount = {unit: fields[unit] for unit in ("epsilon", "rho", "mu") if unit in fields}
    units = {"per_unit": fields["per_unit"]} if "per_unit" in fields else {}
    privacy = Privacy(delta=fields["delta"], neighbors=fields["neighbors"], **amount, **units)
    failure = {"failure": fields["failure"]} if "failure" in fields else {}
    return PrivacyProfile(privacy, tuple(map(tuple, fields["parts"])), **failure)


def privacy_to_json(privacy: Privacy) -> dict[str, Any]:
    """Return the JSON fields of a guarantee: its epsilon, rho or mu, delta and neighbors, and the records of a unit if
    any.
    """
    units = {} if privacy.per_unit is None else {"per_unit": privacy.per_unit}
    return {
        privacy.unit: number_to_json(privacy.amount),
        "delta": number_to_json(privacy.delta),
        "neighbors": privacy.neighbors,
        **units,
    }


def number_to_json(x: float | Fraction) -> float | str:
    """Return a double unchanged, any other number as a ratio: "1/10"."""
    return str(x) if isinstance(x, Fraction) else x


def charge_to_json(charge: Charge) -> dict[str, Any]:
    """Return the JSON fields of a charge."""
    return {"label": charge.label, "times": charge.times, **profile_to_json(charge.profile), **noted(charge.note)}


def noted(note: Note) -> dict[str, str]:
    """Return what a note says."""
    return {name: text for name in NOTED if (text := getattr(note, name)) is not None}


def charge_from_json(fields: Any) -> Charge:
    """Return the charge with these JSON fields. Raises a ValueError for one that dpfast does not write: it may hide a
    cost.
    """
    try:
        if missing := _NEEDED - fields.keys():
            raise ValueError(f"a charge needs {min(missing)!r}")
        if unknown := fields.keys() - _FIELDS:
            raise ValueError(f"a charge has no {min(unknown)!r}")
        times, profile = checks.whole("times", fields["times"], least=1), profile_from_json(fields)
        check_parts(profile)
        return Charge(str(fields["label"]), profile, times, Note(*map(fields.get, NOTED)))
    except (AttributeError, TypeError) as error:
        raise ValueError(f"it is not a charge: {error}") from None


@lru_cache(maxsize=1024)  # most releases of a day are like others
def _charge_of(line: bytes) -> Charge:
    return charge_from_json(LEDGER.parse(line))


def check_parts(profile: PrivacyProfile) -> None:
    """Raise a ValueError unless the guarantee and the parts of a cost, beside its failure, are positive or all 0."""
    stated = profile.privacy.amount or profile.privacy.delta > profile.failure
    parts = any(parameter and times for _, parameter, times, *_ in profile.parts)
    if bool(stated) != parts:
        raise ValueError(f"the guarantee and the parts of a cost must be positive, or all 0, not {profile!r}")


class Journal(LineFile):
    """The file of a ledger: its budget, and then each charge."""

    def __init__(self, path: str, header: dict[str, Any], *, make: bool = True) -> None:
        super().__init__(path, header, LEDGER)
        if make:
            with self.locked(os.O_CREAT):
                self.begin()

    def read(self) -> tuple[list[Charge], int]:
        """Return the charges after `seen`, and the offset of their end. Never truncates a file that is not a valid
        ledger.
        """
        if os.fstat(self._file).st_size < self.seen:
            raise ValueError(
                f"the ledger {self.path} is shorter than it was: a backup was restored, or lines were removed, and "
                f"charges are forgotten. Put back the longer file; if it is lost, open this one again, and reserve "
                f"what is missing before the next release: {_RESTORED}"
            )
        lines, end, torn = self.lines()
        charges: list[Charge] = []
        for line in lines:
            try:
                charges.append(_charge_of(line))
            except ValueError as error:
                raise self.damaged(len(charges), error) from None
        if torn:
            self.cut(end)
        return charges, end

    def damaged(self, i: int, error: ValueError) -> ValueError:
        """Return the error of the charge that is number i after `seen`."""
        before = disk.read(self._file, self.seen, 0).count(b"\n") or 1  # the header, before the first reading
        return ValueError(
            f"line {before + i + 1} of the ledger {self.path} is damaged: {error}. Put the line back from a copy of "
            f"the file, or a charge there that costs at least as much; without it, its cost is forgotten: {_RESTORED}"
        )
