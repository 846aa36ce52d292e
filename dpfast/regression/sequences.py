"""Regressions that are a sequence of releases, each with parameters from the earlier ones: made here in one call."""

from __future__ import annotations

import sys
from typing import Any, Protocol

from dpfast.core.privacy import PrivacyProfile
from dpfast.core.spending import spending
from dpfast.mechanisms import Mechanism
from dpfast.random import RandomSource
from dpfast.regression.fit import Fit
from dpfast.streaming import Chunks, Labelled, labelled_or_chunks, names_of_columns


class Sequence(Protocol):
    """A regression as a sequence of releases: `Descent` and `Corrections`."""

    done: int

    @property
    def mechanism(self) -> Mechanism | None: ...

    @property
    def total(self) -> int: ...

    @property
    def privacy_profile(self) -> PrivacyProfile: ...

    @property
    def result(self) -> Fit: ...

    def advance(self, release: Any, /) -> None: ...


def completed(
    sequence: Sequence, records: Labelled | Chunks, *, rng: RandomSource, workers: int, progress: bool = False
) -> Fit:
    """Make all releases from records, charged together, once, and return the result."""
    with spending(sequence.privacy_profile, label=repr(sequence)):
        while (mechanism := sequence.mechanism) is not None:
            _show(sequence, progress)
            sequence.advance(mechanism(records, rng=rng, workers=workers))
        _show(sequence, progress)
    return sequence.result


def _show(sequence: Sequence, progress: bool) -> None:
    if progress and sys.stderr.isatty():
        end = "\n" if sequence.mechanism is None else ""
        print(f"\rrelease {sequence.done} of {sequence.total}", end=end, file=sys.stderr, flush=True)


def records_for(X: Any, y: Any) -> tuple[Labelled | Chunks, int, int, tuple[str, ...] | None]:
    """Return the records, the numbers of records and of columns, and the names of the columns; chunks are counted."""
    records = labelled_or_chunks(X, y)
    if not isinstance(records, Chunks):
        return records, len(records), records.columns, names_of_columns(X)
    pieces = [(len(part), part.columns, names) for part, names in map(_piece, records)]
    if not pieces:
        raise ValueError("X has no pieces: the first piece gives the number of columns")
    return records, sum(n for n, *_ in pieces), *pieces[0][1:]


def _piece(given: Any) -> tuple[Labelled, tuple[str, ...] | None]:
    return Labelled.of(given), names_of_columns(given, labelled=True)
