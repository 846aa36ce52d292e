"""The state of running totals: the records of a period, and the totals of all periods so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from dpfast.random import RandomSource, bit_generator
from dpfast.running.sole import Sole
from dpfast.streaming import Chunks, Counted, State

if TYPE_CHECKING:
    from dpfast.running.totals import Running


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
    answer after a fork.

    Attributes
    ----------
    mechanism : Running
    period : int
        The number of periods that are over. Public.
    standard_error : float
        Of the last release, from public numbers; 0 before the first one.
    """

    def __init__(self, mechanism: Running, rng: RandomSource = None) -> None:
        super().__init__()
        self.mechanism, self.period = mechanism, 0
        self._rng, self._records, self._part = rng, 0, mechanism.part()
        self._totals = mechanism.scheme.start(mechanism.contents.shape)

    def __repr__(self) -> str:
        return f"<RunningState after {self.period} of {self.mechanism.periods} periods, private: {self.mechanism!r}>"

    def update(self, x: Any, *, workers: int = 1) -> None:
        """Read records of the current period: array_like, `Chunks` or `Counted`; it may be called many times.

        Parameters
        ----------
        x : array_like of shape (m,), Chunks or Counted
            For `Categories`, an array or list of keys.
        workers : int
            Threads that read the records; the totals do not depend on it.
        """
        self._check_open()
        several = isinstance(x, Chunks) and not isinstance(x, Counted)
        self._part.read(x if several else [x], workers=workers)

    def merge(self, part: PeriodRecords) -> None:
        """Add the records that a worker has read in a `Running.part` of the same parameters, once.

        Raises
        ------
        TypeError, ValueError
            If it is not a part, or of other parameters.
        """
        self._check_open()
        if not isinstance(part, PeriodRecords):
            raise TypeError(f"a RunningState merges with a PeriodRecords, not with {type(part).__name__}")
        self._part.merge(part)

    def _check_open(self) -> None:
        self.check_process()
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
        with self._lock:
            self._check_open()
            mechanism, part = self.mechanism, self._part
            source = bit_generator(self._rng)
            estimate = self._totals.step(part.integers(mechanism.scheme.most), source)
            self._records += part.n
            self.period, self._part = self.period + 1, mechanism.part()
            return mechanism.contents.value(estimate, self._records)

    @property
    def standard_error(self) -> float:
        if not self.period:
            return 0.0
        mechanism = self.mechanism
        return mechanism.contents.error(mechanism.scheme.deviation(self.period), self._records)
