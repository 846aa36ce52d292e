"""The file of a ledger, to which processes append charges under a lock."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpfast.core import checks
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.ledger import disk

FORMAT = "dpfast-ledger"
VERSION = 1
_FIELDS = {"label", "times", "epsilon", "rho", "mu", "delta", "neighbors", "per_unit", "parts", "failure"}


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
    """

    label: str
    profile: PrivacyProfile
    times: int = 1


# ---- JSON, and the file ----


def json_object(text: str | bytes) -> dict[str, Any]:
    """Read a text that is a JSON object, in which no name stands twice."""
    try:
        fields = json.loads(text, object_pairs_hook=_distinct)
    except (ValueError, RecursionError):
        raise ValueError("not a ledger: it is not JSON, or a name stands twice") from None
    if not isinstance(fields, dict):
        raise ValueError("not a ledger: it is not a JSON object")
    return fields


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError
    return fields


def check_version(header: dict[str, Any]) -> None:
    """Raise a ValueError unless the header is that of a ledger of this version."""
    if FORMAT not in header:
        raise ValueError(f"not a ledger: it has no {FORMAT!r}")
    if header[FORMAT] != VERSION:
        raise ValueError(f"this ledger has version {header[FORMAT]!r}: this dpfast reads only version {VERSION}")


def profile_to_json(profile: PrivacyProfile) -> dict[str, Any]:
    """Return the JSON fields of a privacy profile."""
    parts = [[family, number_to_json(parameter), *counts] for family, parameter, *counts in profile.parts]
    fields = {**privacy_to_json(profile.privacy), "parts": parts}
    usual = PrivacyProfile(profile.privacy, profile.parts).failure
    written = profile.failure or profile.failure != usual  # a positive one always, so that a lost delta is noticed
    return {**fields, "failure": number_to_json(profile.failure)} if written else fields


def profile_from_json(fields: dict[str, Any]) -> PrivacyProfile:
    """Return the privacy profile with these JSON fields."""
    amount = {unit: _number(fields[unit]) for unit in ("epsilon", "rho", "mu") if unit in fields}
    units = {"per_unit": fields["per_unit"]} if "per_unit" in fields else {}
    privacy = Privacy(delta=_number(fields["delta"]), neighbors=fields["neighbors"], **amount, **units)
    parts = tuple((str(family), _number(parameter), *counts) for family, parameter, *counts in fields["parts"])
    failure = {"failure": _number(fields["failure"])} if "failure" in fields else {}
    return PrivacyProfile(privacy, parts, **failure)


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


def _number(value: Any) -> Any:
    number = checks.rational_or_double("a cost", value)
    if not 0 <= number < math.inf:
        raise ValueError(f"a cost must be finite and at least 0, not {value!r}")
    return number


def charge_to_json(charge: Charge) -> dict[str, Any]:
    """Return the JSON fields of a charge."""
    return {"label": charge.label, "times": charge.times, **profile_to_json(charge.profile)}


def charge_from_json(fields: Any) -> Charge:
    """Return the charge with these JSON fields. Raises a ValueError for one that dpfast does not write: it may hide a
    cost.
    """
    try:
        if unknown := sorted(set(fields) - _FIELDS):
            raise ValueError(f"a charge has no {unknown[0]!r}")
        times, profile = checks.whole("times", fields["times"], least=1), profile_from_json(fields)
        check_parts(profile)
        return Charge(str(fields["label"]), profile, times)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"this ledger is damaged: {error}") from None


def check_parts(profile: PrivacyProfile) -> None:
    """Raise a ValueError unless the guarantee and the parts of a cost, beside its failure, are positive or all 0."""
    stated = profile.privacy.amount or profile.privacy.delta > profile.failure
    parts = any(part.parameter and times for part, times in profile.each_part())
    if bool(stated) != parts:
        raise ValueError(f"the guarantee and the parts of a cost must be positive, or all 0, not {profile!r}")


class Journal:
    """A file of JSON lines, first the budget and then each charge, appended under a lock and flushed to disk.

    An incomplete last line is a charge whose writer crashed before the release; it is removed.
    """

    def __init__(self, path: str, header: dict[str, Any], *, make: bool = True) -> None:
        self.path, self._header, self._file = os.path.abspath(path), header, -1
        self.seen = 0  # the owner has read the file up to this offset
        if make:
            with self.locked(os.O_CREAT):
                self._begin()

    @contextmanager
    def locked(self, flags: int = 0) -> Iterator[Journal]:
        """Open the file and hold its lock until the end of the block."""
        self._file = os.open(self.path, os.O_RDWR | disk.BINARY | flags, 0o600)  # no program started by this has it
        try:
            disk.lock(self._file)
            try:
                yield self
            finally:
                disk.unlock(self._file)
        finally:
            file, self._file = self._file, -1
            os.close(file)

    def after_fork(self) -> None:
        """In a child process: close the file that a thread of the parent had open, and read everything again."""
        self.seen = 0
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _begin(self) -> None:
        """Write the header of a new file, and flush file and directory. Leave any other file unchanged."""
        line = _line(self._header)
        size = os.fstat(self._file).st_size
        if size < len(line) and line.startswith(disk.read(self._file, size, 0)):  # new, or torn while it was created
            os.ftruncate(self._file, 0)
            self.append(self._header)
            disk.flush_directory(os.path.dirname(self.path))

    def read(self) -> tuple[list[Charge], int]:
        """Return the charges after `seen`, and the offset of their end. Never truncates a file that is not a valid
        ledger.
        """
        size = os.fstat(self._file).st_size
        if size < self.seen:
            raise ValueError(f"the ledger {self.path} is shorter than it was")
        new = disk.read(self._file, size - self.seen, self.seen)
        *lines, torn = new.split(b"\n")
        if self.seen == 0:
            if not lines:
                raise ValueError(f"{self.path} is not a ledger: its first line is incomplete")
            self._check_header(json_object(lines.pop(0)))
        charges, end = [charge_from_json(json_object(line)) for line in lines], size - len(torn)
        if torn:
            os.ftruncate(self._file, end)
        return charges, end

    def _check_header(self, header: dict[str, Any]) -> None:
        check_version(header)
        for name in sorted({*header, *self._header}):
            if header.get(name) != self._header.get(name):
                raise ValueError(
                    f"the ledger {self.path} has {name} = {header.get(name)!r}, not {self._header.get(name)!r}"
                )

    def append(self, entry: dict[str, Any]) -> None:
        """Append a line; it is on disk when this returns."""
        line = memoryview(_line(entry))
        os.lseek(self._file, 0, os.SEEK_END)
        while line:
            line = line[os.write(self._file, line) :]
        disk.flush(self._file)


def _line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry).encode() + b"\n"
