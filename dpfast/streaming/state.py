"""The state of a mechanism that reads its records in chunks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex

from dpfast.core import checks
from dpfast.core.spending import EXACT, LAW, Bearer, Cost, Ticket, refused, spending_together
from dpfast.core.traps import Trap, warn
from dpfast.random import RandomSource, bit_generator

if TYPE_CHECKING:
    from numpy.random import BitGenerator

    from dpfast.laws import Law
from dpfast.core.grid import Points
from dpfast.streaming.chunks import Chunks, joined
from dpfast.streaming.counted import Counted
from dpfast.streaming.reading import Array, Reading
from dpfast.streaming.wire import DAMAGED, check_same, fingerprint, opened, read_whole, sealed

# ---- states ----


class Planned(Protocol):
    """The part of a plan that a state uses."""

    @property
    def traps(self) -> tuple[Trap, ...]: ...

    def law_of(self, summary: Any, /) -> Law: ...

    def draw_from(self, summary: Any, source: BitGenerator, /) -> Any: ...

    def draws(self, summary: Any, shape: tuple[int, ...], source: BitGenerator, /) -> Any: ...


class Streamed(Protocol):
    """The part of `dpfast.Mechanism` that a state uses."""

    _ticket: Ticket | None

    @property
    def cost(self) -> Cost: ...

    @property
    def resolving(self) -> tuple[Points, ...]: ...

    def plan(self, n: int | None = None, /) -> Planned: ...

    def reading(self) -> Reading: ...

    def check_missing(self) -> None: ...

    def resolved(self, values: Array, /) -> Iterator[Array]: ...


class State(Bearer):
    """The state of a mechanism that reads a stream: mergeable, serialisable, PRIVATE. Made by ``mechanism.start()``.

    A state reads chunks in one or more passes, each over the same records. Merge states that read different chunks in
    the same pass, in any order; then advance the merged state to the next pass, and read that with copies of it.

    Attributes
    ----------
    mechanism : Mechanism
    passes : int
        The number of passes: public, a function of the mechanism's parameters only.
    number : int
        The current pass, from 1.
    n : int
        The number of records read in the current pass (for `Count`, of counted records; for ``missing="drop"``, of
        those that are not missing, except for quantiles). It is public if and only if the mechanism's number of
        records is public.

    Notes
    -----
    Privacy: a state and its bytes are private data, like the records. Only the value of `release` is a release; each
    one spends the budget of ``mechanism.privacy``. A state is not a secret sharing and contains no noise.
    All passes must read the same records. A different number of records raises a ValueError. The same number of
    different records raises no error: the counts of the first pass are kept, surplus records in a cell of codes are
    dropped, missing ones get the least code of the cell, and sums are clamped to their possible range. The guarantee
    does not hold in this case: it requires passes over the same records. For ``missing="half"``, the position of a
    missing record is that in its chunk: chunks must then be the same in all passes, whatever state reads them.
    A state is not thread-safe; ``workers`` are.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> mechanism = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 100), epsilon=1.0)
    >>> state, chunks = mechanism.start(), np.split(np.random.default_rng(0).normal(50, 10, 100_000), 10)
    >>> state.passes
    2
    >>> for chunk in chunks:
    ...     state.update(chunk)
    >>> state.next_pass()
    >>> for chunk in chunks:
    ...     state.update(chunk)
    >>> 49 < state.release() < 51
    True
    """

    def __init__(self, mechanism: Streamed) -> None:
        mechanism.check_missing()
        self.mechanism = mechanism
        self.number, self.n = 1, 0
        self._reading = mechanism.reading()
        self._records: int | None = None  # the number in the first pass, once it is over
        self.watches = True  # whether to warn of that number

    @property
    def passes(self) -> int:
        """The number of passes. Public."""
        return self._reading.passes

    def __repr__(self) -> str:
        return f"<State of pass {self.number} of {self.passes}, private, for {self.mechanism!r}>"

    def update(self, chunk: Any, *, workers: int = 1) -> None:
        """Read a chunk of records in the current pass.

        Parameters
        ----------
        chunk : array_like of shape (m,) or (m, d), or Counted
            Records of the shape that the mechanism requires; m may be 0.
        workers : int
            Threads that read the data, -1 for one per core; the result does not depend on it.
        """
        threads = checks.threads(workers)
        if isinstance(chunk, Counted):
            if self.n + chunk.records() > _MOST_RECORDS:
                raise ValueError("a state cannot count more than 2**62 records")
            self.n += self._reading.add_counted(*chunk.resolved(self.mechanism.resolving))
            return
        for values in self.mechanism.resolved(self._reading.records(chunk)):
            if len(values) or values.ndim > 1:
                self._reading.add(values, threads)
            self.n += len(values)

    def read(self, chunks: Iterable[Any], *, workers: int = 1) -> State:
        """Read chunks in the current and all following passes; return the state itself, ready for `release`."""
        joins = self._reading.joins and not self.mechanism.resolving  # "half" goes by places in a chunk
        while True:
            for chunk in joined(chunks) if joins else chunks:
                self.update(chunk, workers=workers)
            if self.number == self.passes:
                return self
            self.next_pass()

    def merge(self, other: State) -> None:
        """Add the records that another state of the same mechanism has read in the same pass.

        Raises
        ------
        TypeError, ValueError
            If `other` is not a state, belongs to another mechanism or another pass, or had different records around the
            wanted ranks in earlier passes. Mechanisms with different functions without a name count as different
            (see `to_bytes`).
        """
        if not isinstance(other, State):
            raise TypeError(f"a state merges with a state, not with {type(other).__name__}")
        if other is self:
            raise ValueError("a state does not merge with itself: its records would count twice")
        check_same(self.mechanism, other.mechanism)
        if other.number != self.number:
            raise ValueError(f"states of pass {self.number} and pass {other.number} do not merge")
        if other._records != self._records:
            raise ValueError(f"states of {self._records} and {other._records} records do not merge")
        if self.n + other.n > _MOST_RECORDS:
            raise ValueError("states of more than 2**62 records together do not merge")
        self._reading.merge(other._reading)
        self.n += other.n

    def next_pass(self) -> None:
        """Advance to the next pass, which reads all records again.

        Raises
        ------
        ValueError
            After the last pass, without records, or with another number of records than in the first pass.
        """
        if self.number == self.passes:
            raise ValueError(f"pass {self.number} is the last: release")
        self._watch(self.plan())
        self._records = self.n if self._records is None else self._records
        self._reading.advance(self._records)
        self.number, self.n = self.number + 1, 0

    @property
    def _ticket(self) -> Ticket | None:
        return self.mechanism._ticket

    @refused(LAW)
    def law(self) -> Law:
        """Return the exact law of the release, after the last pass. PRIVATE."""
        return self.plan().law_of(self.summary())

    @refused(EXACT)
    def summary(self) -> Any:
        """Return the summary for the law, after the last pass. PRIVATE."""
        self._check_last()
        self.plan()
        return self._reading.summary(self.n)

    def _check_last(self) -> None:
        if self.number != self.passes:
            raise ValueError(f"pass {self.number} of {self.passes}: call next_pass, and read the records again")

    def release(
        self, *, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None
    ) -> Any:
        """Release, after the last pass. Each call spends the budget, like ``mechanism.release`` of all records.

        Parameters
        ----------
        size, rng
            See `Mechanism.release`, which gives the same releases for the same generator.
        """
        shape, source = checks.shape(size), bit_generator(rng)
        self._check_last()  # an error that does not depend on the data costs no privacy
        if self.passes == 1:
            self._watch(self.plan())
        with spending_together((self.mechanism.cost._replace(times=math.prod(shape)),), of=(self,)):
            plan, summary = self.plan(), self.summary()
            return plan.draw_from(summary, source) if size is None else plan.draws(summary, shape, source)

    def plan(self) -> Planned:
        """Return the mechanism's plan for the number of records, after a whole pass; raises a ValueError for a wrong
        one.
        """
        if self._records not in (None, self.n):
            raise ValueError(
                f"pass {self.number} read {self.n} records, the first pass {self._records}: chunks must be "
                f"the same in all passes"
            )
        return self.mechanism.plan(self.n)

    def _watch(self, plan: Planned) -> None:
        """Warn, after the first pass, of what a public number of records says about the use of a release."""
        if self.watches and self.number == 1 and plan.traps:
            warn(plan.traps)

    # docs/guides/streaming.md describes the layout of the bytes.

    def to_bytes(self) -> bytes:
        """Serialise the state for another process or machine; a documented, versioned format, not pickle. PRIVATE.

        Raises
        ------
        TypeError
            If the mechanism has a function that its module does not define by name, a lambda or a local function: the
            bytes could not identify it.
        """
        header = {
            "mechanism": fingerprint(self.mechanism),
            "pass": self.number,
            "n": self.n,
            "records": self._records,
        }
        return sealed(header, self._reading.pack())

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, mechanism: Streamed) -> State:
        """Restore the state that `to_bytes` serialised, for the same mechanism.

        Raises
        ------
        ValueError
            For damaged bytes, another version of the format, or the state of another mechanism.
        """
        header, held = opened(bytes(data))
        state = cls(mechanism)
        if header.get("mechanism") != fingerprint(mechanism):
            raise ValueError(f"the state belongs to another mechanism than {mechanism!r}")
        number, n, records = (header.get(name) for name in ("pass", "n", "records"))
        state.number, state.n = read_whole(number, state.passes), read_whole(n, _MOST_RECORDS)
        if state.number < 1 or (records is None) != (state.number == 1):
            raise ValueError(DAMAGED)
        first = state.n
        if records is not None:
            first = state._records = read_whole(records, _MOST_RECORDS)
            mechanism.plan(first)
        state._reading.unpack(held, first, state.number)
        return state

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.to_bytes(), self.mechanism)


class Begun(Chunks):
    """Chunks of unknown length whose first pass a state has read, before a release is charged. PRIVATE."""

    def __init__(self, chunks: Chunks, state: State, threads: int) -> None:
        super().__init__(lambda: iter(chunks))
        for chunk in chunks:
            state.update(chunk, workers=threads)
        self._n, self._state = state.n, state
        state.watches = False  # the caller warns
        if state.passes > 1:
            state.next_pass()

    def whole(self, threads: int) -> State:
        """Return the state after all passes."""
        return self._state if self._state.passes == 1 else self._state.read(self, workers=threads)


def _restored(data: bytes, mechanism: Streamed) -> State:
    return State.from_bytes(data, mechanism)


_MOST_RECORDS = 2**62
