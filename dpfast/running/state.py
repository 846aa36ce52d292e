"""The state of running totals: the records of a period, and the totals of all periods so far."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from dpfast.core import checks
from dpfast.core.spending import paid_before
from dpfast.laws import IntegerNoise
from dpfast.random import RandomSource, bit_generator
from dpfast.running.files import StateFile
from dpfast.running.schemes import MOST_EXACT
from dpfast.running.sole import Sole
from dpfast.streaming import Chunks, Counted, State

if TYPE_CHECKING:
    from dpfast.running.totals import Running

_MOST_NOISY = 2**62


class PeriodRecords(State):
    """The records of one period, or those that one worker has: mergeable, serialisable, PRIVATE. No release.

    Made by `Running.part`. Workers read records with parts of their own, which `RunningState.merge` adds to a period.
    """

    mechanism: Running

    def integers(self, most: int) -> Any:
        """Return the exact integers of the records, clamped to +-most. PRIVATE."""
        return self.mechanism.contents.integers(self._reading.summary(self.n), most)

    def release(self, **options: Any) -> NoReturn:
        """Refuse: the state of all periods releases their totals."""
        raise TypeError("a part has no release of its own: merge it into the RunningState of all periods")

    def __reduce__(self) -> tuple[Any, ...]:
        return PeriodRecords.from_bytes, (self.to_bytes(), self.mechanism)


class RunningState(Sole):
    """Running totals so far, PRIVATE. Made by `Running.start`, which charges all periods.

    In each period, `update` reads records and `release` returns the total of all periods so far. The exact totals and
    the source of further noise are inside, so that there is one state: it cannot be copied or pickled, and does not
    answer after a fork. With a file (``start(path=)``), a release is on disk before it is returned, and records since
    the last one after `save`.

    Attributes
    ----------
    mechanism : Running
    period : int
        The number of periods that are over. Public.
    position : int, str or None
        A place in the stream of records, set by you: `save` and `release` write it to the file, together with the
        records read so far, so that a restarted process knows where to read on.
    total : float, ndarray or None
        The last release, None before the first one. Public.
    standard_error : float
        Of the last release, from public numbers; 0 before the first one.
    """

    def __init__(self, mechanism: Running, rng: RandomSource = None, file: StateFile | None = None) -> None:
        super().__init__(mechanism, file)
        self.mechanism, self.period = mechanism, 0
        self.position: int | str | None = None
        self._rng, self._records, self._part = rng, 0, mechanism.part()
        # No record is read into a part whose period ends meanwhile, and lost: not by another thread, nor in chunks that
        # end the period themselves.
        self._reading, self._reads = threading.RLock(), 0
        self._totals = mechanism.scheme.start(mechanism.contents.shape)
        if file is not None:
            try:
                self._restore(file.found)
            except (KeyError, TypeError, ValueError, IndexError) as error:
                file.end()
                raise ValueError(f"the state {file.path} is damaged: {error}") from None

    def _restore(self, entries: list[dict[str, Any]]) -> None:
        """Continue with the periods and the records that a file has."""
        saved = None
        for entry in entries:
            if "period" in entry:
                if entry["period"] != self.period + 1 or self.period == self.mechanism.periods:
                    raise ValueError("a period is missing, or stands twice")
                self._end(_numbers(entry["integers"]), list(map(_numbers, entry["noisy"])), entry["records"])
                saved = None
            saved = entry.get("part", saved)
            self.position = entry.get("position", self.position)
        if saved is not None:
            restored = PeriodRecords.from_bytes(base64.b64decode(saved), self.mechanism)
            assert isinstance(restored, PeriodRecords)
            self._part = restored

    def __repr__(self) -> str:
        return f"<RunningState after {self.period} periods, private: {self.mechanism!r}>"

    def update(self, x: Any, *, workers: int = 1) -> None:
        """Read records of the current period: array_like, `Chunks` or `Counted`; it may be called many times.

        Parameters
        ----------
        x : array_like of shape (m,), Chunks or Counted
            For `Categories`, an array or list of keys.
        workers : int
            Threads that read the records; the totals do not depend on it.
        """
        several = isinstance(x, Chunks) and not isinstance(x, Counted)
        with self._open_part() as part:
            part.read(x if several else [x], workers=workers)

    def merge(self, part: PeriodRecords) -> None:
        """Add the records that a worker has read in a `Running.part` of the same parameters, once.

        Raises
        ------
        TypeError, ValueError
            If it is not a part, or of other parameters.
        """
        with self._open_part() as own:
            if not isinstance(part, PeriodRecords):
                raise TypeError(f"a RunningState merges with a PeriodRecords, not with {type(part).__name__}")
            own.merge(part)

    @contextmanager
    def _open_part(self) -> Iterator[PeriodRecords]:
        """Hold the records of the current period, which does not end in another thread meanwhile."""
        self.check_process()  # before the lock, as in `release`
        with self._reading:
            self._check_open()
            self._reads += 1
            try:
                yield self._part
            finally:
                self._reads -= 1

    def _check_open(self) -> None:
        self.check_process()
        self.check_open()
        if self.period == self.mechanism.periods:
            raise ValueError(f"all {self.period} periods are over")

    def release(self) -> Any:
        """End the period, which may be without records, and return the total of all periods so far.

        Returns
        -------
        float, or ndarray of shape (cells,)
            Unbiased, in data units; a mean is clamped to the bounds, and their middle before the first record.

        Raises
        ------
        ValueError
            After the last period.
        """
        self.check_process()  # before the lock, which another thread may have held when the process was forked
        with self._lock, self._reading:
            self._check_open()
            self.check_paid()
            if self._reads:
                raise ValueError("the period cannot end while its records are read: release after update")
            integers = self._part.integers(self.mechanism.scheme.most)
            source, noise, records = bit_generator(self._rng), self._totals.noise, self._part.n
            noisy = [_noisy(exact, noise, source) for exact in self._totals.exact(integers)]
            entry = {
                "period": self.period + 1,
                "records": records,
                "position": _position(self.position),
                "integers": np.asarray(integers).tolist(),
                "noisy": [np.asarray(number).tolist() for number in noisy],
            }
            try:
                if self._file is not None:  # what a crash leaves unwritten, nobody has seen
                    self._file.note(entry)
                self._end(integers, noisy, records)
            except BaseException:  # half of it: another try would count records twice, or draw other noise
                self.end("interrupted")
                raise
            return self.total

    def _end(self, integers: Any, noisy: list[Any], records: int) -> None:
        """End the period."""
        self._totals.add(integers, noisy)
        self._records += records
        self.period, self._part = self.period + 1, self.mechanism.part()

    def save(self) -> None:
        """Write the records of the current period, and `position`, to the file; they are on disk when this returns.

        Records that are read later, and not saved, are lost if the process ends before `release`. Each call adds a line
        to the file, as large as a part.
        """
        self.check_process()
        with self._lock, self._reading:
            self._check_open()
            if self._file is None:
                raise ValueError("a state without a file cannot be saved: start it with path=")
            part = base64.b64encode(self._part.to_bytes()).decode()
            self._file.note({"part": part, "position": _position(self.position)})

    @property
    def total(self) -> Any:
        if not self.period:
            return None
        return self.mechanism.contents.value(self._totals.estimate(), self._records)

    @property
    def standard_error(self) -> float:
        if not self.period:
            return 0.0
        mechanism = self.mechanism
        return mechanism.contents.error(mechanism.scheme.deviation(self.period), self._records)


def _noisy(exact: Any, noise: IntegerNoise, source: np.random.BitGenerator) -> Any:
    """Return exact integers, within +-2**61, plus noise; clamped, so that saturated draws are not seen."""
    if not np.ndim(exact):
        return min(max(int(exact) + paid_before(noise.draw)(source), -_MOST_NOISY), _MOST_NOISY)
    out = np.empty(exact.shape, np.int64)
    paid_before(noise.fill)(source, out)
    np.clip(out, -_MOST_NOISY - MOST_EXACT, _MOST_NOISY + MOST_EXACT, out=out)
    out += exact
    return np.clip(out, -_MOST_NOISY, _MOST_NOISY, out=out)


def _numbers(node: Any) -> Any:
    """Return the integer, or the array of integers, that a line of a file has."""
    if isinstance(node, list):
        numbers = np.array(node)
        if numbers.dtype != np.int64:
            raise ValueError("a number is not an integer of 64 bits")
        return numbers
    return checks.whole("a number", node, least=-_MOST_NOISY)


def _position(place: Any) -> int | str | None:
    if place is not None and type(place) not in (int, str):
        raise TypeError(f"position must be an int, a str or None, not {type(place).__name__}")
    return cast("int | str | None", place)
