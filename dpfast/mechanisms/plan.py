"""What is public for a number of records, and the release by it: the road of the records of every mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpfast.core.grid import Points, resolved
from dpfast.core.spending import STEP, hook_plan, refuse
from dpfast.core.traps import Trap, of_few_within_bounds
from dpfast.laws import Law
from dpfast.streaming import Begun, Chunks, Counted, Reading

if TYPE_CHECKING:
    from dpfast.mechanisms.mechanism import Mechanism

_RESOLVED = 2**18  # records in which missing ones are resolved at once: an even number
_COPIED = 2**22  # records that are copied to resolve missing ones; more are read as a stream

Draw = Callable[[int, int, np.random.BitGenerator], "NDArray[np.float64] | None"]


class Grouping(Protocol):
    """The public groups of records, or groups of private sizes of which only the number is public."""

    @property
    def count(self) -> int:
        """The number of groups."""

    def sorted(
        self, values: Any, threads: int, *, missing: float = math.nan, dropped: NDArray[np.bool_] | None = None
    ) -> tuple[Any, NDArray[np.int64]]:
        """Return the records in the order of their groups, and where each group begins and ends.

        NaN may become `missing`, and records that are `dropped` are left out.
        """

    def sums(self, codes: NDArray[np.int64], last: int, *, half: bool, squares: bool) -> NDArray[np.int64]:
        """Return the number of records of each group, the sum of their codes and, if wanted, the two words of that of
        the squares, in columns.

        Codes are 0..last, or below 0 for missing records: these become 0 and `last` by their place in the group, or are
        left out. `last` times the number of all records is below 2**62.
        """


class Plan:
    """What is public for a release from n records, and the release itself. Made by `Mechanism.plan`.

    Arrays, states, groups, other libraries and laws release by the same plan. Its numbers are public: it holds no
    records. Its draws are steps of a release that a caller charges: they are refused while a `dpfast.Ledger` is active
    that did not pay for them.

    Parameters
    ----------
    mechanism : Mechanism
    n : int or None
        The public number of records. None: it is private, or known only once the records are read.

    Attributes
    ----------
    traps : tuple of Trap
        Warnings that a release from n records deserves.
    """

    traps: tuple[Trap, ...] = ()  # computed on demand it is in the way of all attributes, a tenth of a short release

    def __init__(self, mechanism: Mechanism, n: int | None) -> None:
        self.mechanism, self.n = mechanism, n
        if n is not None and n < mechanism.enough:
            self.traps = tuple(self._within_bounds(n))

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        hook_plan(cls)

    def traps_of(self, n: int) -> Iterable[Trap]:
        """Return the traps of a release from n records, a public or a released number; for a plan without n."""
        return self._within_bounds(n) if self.mechanism.hides_n else self.mechanism.plan(n).traps

    def _within_bounds(self, n: int) -> Iterator[Trap]:
        mechanism = self.mechanism
        return of_few_within_bounds(n, mechanism.enough, mechanism.privacy.unit, mechanism.privacy.amount)

    def __repr__(self) -> str:
        return f"<Plan for n = {self.n} of {self.mechanism!r}>"

    def reading(self) -> Reading:
        """Return an empty reading of the records: `Mechanism.reading`."""
        return self.mechanism.reading()

    def law_of(self, summary: Any) -> Law:
        """Return the exact law of the release, given the summary from a reading. PRIVATE, like the summary."""
        return self.mechanism.law_of(summary)

    def draw(self, values: Any, source: np.random.BitGenerator, threads: int = 1) -> Any:
        """Draw a release from records.

        Parameters
        ----------
        values : ndarray, Labelled or Chunks
            The records, from `Mechanism.values_of`; n of them, if n is not None.
        source : numpy.random.BitGenerator
        threads : int
            Read the records; the release does not depend on them.
        """
        plan, summary = self.read(values, threads)
        return plan.draw_from(summary, source)

    def draw_from(self, summary: Any, source: np.random.BitGenerator) -> Any:
        """Draw a release from the summary of the records."""
        law = self.law_of(summary)
        return law.value(law.sample(rng=source))

    def draws(self, summary: Any, shape: tuple[int, ...], source: np.random.BitGenerator) -> NDArray[Any]:
        """Draw as many releases of one summary as the shape has entries."""
        return self.mechanism.sampled(self.law_of(summary), shape, source)

    def read(self, values: Any, threads: int = 1) -> tuple[Plan, Any]:
        """Return the plan for the number of the records, and their summary. PRIVATE."""
        mechanism = self.mechanism
        if isinstance(values, Counted):
            mechanism.check_missing()
            n, summary = self.reading().of_counted(*values.resolved(mechanism.resolving))
            return (self if self.n == n else mechanism.plan(n)), summary
        if isinstance(values, Chunks):
            if isinstance(values, Begun):
                state = values.whole(threads)
            else:
                state = mechanism.start()
                state.watches = self.n is None and not mechanism.hides_n  # else the caller of this plan warns
                state.read(values, workers=threads)
            return mechanism.plan(state.n), state.summary()
        if self.n is None:
            plan = mechanism.plan_for(values)
            if plan.n is not None:
                return plan.read(values, threads)
        mechanism.check_missing()
        if mechanism.resolves:
            if len(values) > _COPIED:
                return self.read(Chunks([values]), threads)
            values = np.concatenate(list(mechanism.resolved(values)))
        return self, self.reading().of(values, threads)

    def groups(self, values: Any, groups: Grouping, threads: int = 1) -> Draw:
        """Return a function that draws the releases of groups of records, of any sizes: of the plan without n.

        Parameters
        ----------
        values : ndarray, Labelled or Counted
        groups : Grouping
        threads : int

        Returns
        -------
        callable
            ``draw(start, stop, source)`` returns the releases of the groups start..stop - 1 in one array, each with the
            law of `draw`, and from its words in this order, unless noise is drawn for all at once; of an empty group of
            public size that of `Mechanism.of_no_records`, NaN for None. It returns None if all are None. Threads may
            call it at the same time.
        """
        mechanism, private = self.mechanism, self.mechanism.hides_n
        values, ends = groups.sorted(values, threads)

        def draw(start: int, stop: int, source: np.random.BitGenerator) -> NDArray[np.float64] | None:
            refuse(STEP, mechanism)  # it may have been made outside of a ledger
            made = []
            for first, last in zip(ends[start:stop].tolist(), ends[start + 1 : stop + 1].tolist(), strict=True):
                part = values[first:last]
                if (part.records() if isinstance(part, Counted) else last - first) or private:
                    records = mechanism.values_of(part)
                    made.append(mechanism.plan_for(records).draw(records, source))
                else:
                    made.append(mechanism.of_no_records(source))
            present = [i for i, value in enumerate(made) if value is not None]
            if not present:
                return None
            out = np.full((len(made), *np.shape(made[present[0]])), np.nan)
            for i in present:
                out[i] = made[i]
            return out

        return draw


hook_plan(Plan)


def resolutions(values: NDArray[Any], grids: tuple[Points, ...]) -> Iterator[NDArray[Any]]:
    """Yield the records of a chunk with missing ones resolved, in pieces that are small enough to be copied."""
    for start in range(0, max(len(values), 1), _RESOLVED):
        yield resolved(np.asarray(values[start : start + _RESOLVED]), grids)
