"""What charges are for: notes of a block, and sums of a ledger by what they say."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from dpfast.core.privacy import Privacy, in_short
from dpfast.core.tabular import Tabular
from dpfast.ledger.journal import Note, noted

_NOTHING = Note()
_noted: ContextVar[Note] = ContextVar("dpfast_notes", default=_NOTHING)

_SECONDS = 86_400  # of a day


def note_now() -> Note:
    """Return the note of a charge that is made now."""
    return _on(int(time.time() // _SECONDS), _noted.get())


@lru_cache(maxsize=256)  # so that charges share notes
def _on(day: int, note: Note) -> Note:
    return replace(note, day=time.strftime("%Y-%m-%d", time.gmtime(day * _SECONDS)))


@contextmanager
def noting(note: Note) -> Iterator[None]:
    """Add a note to the charges of a block; what it leaves open is that of the block around."""
    token = _noted.set(replace(_noted.get(), **noted(note)))
    try:
        yield
    finally:
        _noted.reset(token)


def amounts(costs: Iterable[Privacy]) -> dict[str, list[Any]]:
    """Return the columns of a table of costs."""
    listed = list(costs)
    return {
        "unit": [privacy.unit for privacy in listed],
        "amount": [float(privacy.amount) for privacy in listed],
        "delta": [float(privacy.delta) for privacy in listed],
    }


@dataclass(frozen=True, repr=False)
class SpentBy(Tabular):
    """What a ledger has spent, by the columns, days, sources or purposes of its charges, from `Ledger.spent_by`.

    Attributes
    ----------
    what : {"column", "day", "source", "purpose"}
    privacy : Privacy
        What is spent together: `Ledger.spent`.
    spent : mapping of str or None to Privacy
        The sums of the charges with this note, rounded up; of those without one for None, which is last.
    releases : mapping of str or None to int
        The number of releases.
    """

    what: str
    privacy: Privacy
    spent: Mapping[str | None, Privacy]
    releases: Mapping[str | None, int]

    def __getitem__(self, key: str | None) -> Privacy:
        return self.spent[key]

    def _as_columns(self) -> dict[str, list[Any]]:
        keys: dict[str, list[Any]] = {self.what: list(self.spent), "releases": list(self.releases.values())}
        return {**keys, **amounts(self.spent.values())}

    def _caption(self) -> str:
        return f"Spent by {self.what}, together {self.privacy}"

    def __str__(self) -> str:
        lines = [f"{self._caption()}{':' if self.spent else ''}"]
        for key, privacy in self.spent.items():
            name, n = f"without a {self.what}" if key is None else key, self.releases[key]
            lines.append(f"{name}: {in_short(privacy)} ({n:,} release{'s' * (n != 1)})")
        return "\n".join(lines)

    __repr__ = __str__
