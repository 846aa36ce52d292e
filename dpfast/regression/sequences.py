"""Regressions that are a sequence of releases, each with parameters from the earlier ones: made here in one call."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.spending import spending
from dpfast.core.traps import Cautious, Trap, of_delta, of_epsilon
from dpfast.mechanisms import Mechanism
from dpfast.random import RandomSource
from dpfast.regression.fit import Fit
from dpfast.regression.schedules import amount_of
from dpfast.streaming import Chunks, Labelled, labelled_or_chunks, names_of_columns


class Sequence(Cautious, ABC):
    """Base class of regressions that are a sequence of releases: `Descent` and `Corrections`.

    A subclass sets the attributes, and says what follows from a release (`_read`) and what is released next (`_next`).

    Attributes
    ----------
    mechanism : Mechanism or None
        What to release next; None after the last release.
    done : int
        The number of releases so far.
    """

    n: int
    privacy: Privacy
    mechanism: Mechanism | None
    done: int
    _mu: float | None
    _epsilon: float | None
    _parts: tuple[Fraction, ...]  # the share of each release

    def _traps(self) -> Iterator[Trap]:
        yield from of_epsilon(self.privacy.epsilon)
        yield from of_delta(self.privacy.delta)

    @abstractmethod
    def _begin(self) -> None:
        """Forget all releases; copies do not notice."""

    @property
    def total(self) -> int:
        return len(self._parts)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        """The guarantee of all releases together."""
        return PrivacyProfile(self.privacy, (("gaussian", self._mu, 1),) if self._mu else ())

    def _amount(self, step: int) -> dict[str, Any]:
        """Return the guarantee of a step: the squares of mu, or the epsilons, add up to at most those of the whole."""
        return amount_of(self._parts[step], self._mu, self._epsilon)

    def advance(self, release: ArrayLike) -> None:
        """Continue with a release of `mechanism`; a release costs privacy, this function does not.

        Parameters
        ----------
        release : array_like
            A release of `mechanism`, of its shape.

        Raises
        ------
        ValueError
            All releases are made already.
        """
        mechanism = self.mechanism
        if mechanism is None:
            raise ValueError("all releases are made: see result")
        self._read(mechanism, np.asarray(release, dtype=np.float64))
        self.done += 1
        self.mechanism = None if self.done == self.total else self._next()

    @abstractmethod
    def _read(self, mechanism: Mechanism, values: NDArray[np.float64]) -> None:
        """Take in a release."""

    @abstractmethod
    def _next(self) -> Mechanism:
        """Return the mechanism of the next release."""

    @property
    @abstractmethod
    def result(self) -> Fit:
        """The fit, after the last release; before it, a ValueError is raised."""

    def _check_complete(self) -> None:
        if self.mechanism is not None:
            raise ValueError(f"{self.total - self.done} of {self.total} releases are missing")


def completed(
    sequence: Sequence, records: Labelled | Chunks, *, rng: RandomSource, workers: int, progress: bool = False
) -> Fit:
    """Make all releases of a sequence from records, charged together, once, and return the result.

    They are made by a copy: calls with the same public parameters share the sequence.
    """
    sequence = copy(sequence)
    sequence._begin()
    # What is computed from releases may overflow or underflow: no error state of a caller ends it after the charge.
    with np.errstate(all="ignore"):
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
    """Return the records, the numbers of records and columns, and the names of the columns; check and count chunks."""
    records = labelled_or_chunks(X, y)
    if not isinstance(records, Chunks):
        return records, len(records), records.columns, names_of_columns(X)
    pieces = [(len(part), part.columns, names) for part, names in map(_piece, records)]
    if not pieces:
        raise ValueError("X has no pieces: the first piece gives the number of columns")
    d = pieces[0][1]
    if other := [columns for _, columns, _ in pieces if columns != d]:
        raise ValueError(f"chunks must have {d} columns like the first one, not {other[0]}")
    return records, sum(n for n, *_ in pieces), *pieces[0][1:]


def _piece(given: Any) -> tuple[Labelled, tuple[str, ...] | None]:
    return Labelled.of(given), names_of_columns(given, labelled=True)
