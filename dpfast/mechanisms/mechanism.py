"""The base class of all mechanisms."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, ClassVar, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast import _checks
from dpfast._tabular import Described
from dpfast._traps import Cautious, Trap, warn
from dpfast.grid import Points, check_missing, resolved
from dpfast.laws import Law
from dpfast.mechanisms.prediction import Predicted
from dpfast.mechanisms.recent import without_recent
from dpfast.privacy import Privacy, PrivacyProfile
from dpfast.random import RandomSource, bit_generator
from dpfast.spending import LAW, Carrier, charged, hook, refuse, refused
from dpfast.streaming import Begun, Chunks, Counted, Reading, State, known_records

_RESOLVED = 2**18  # records in which missing ones are resolved at once: an even number
_COPIED = 2**22  # records that are copied to resolve missing ones; more are read as a stream


class Mechanism(Predicted, Described, Cautious, Carrier):
    """A private release, described by public parameters and a guarantee. It holds no data and has no state.

    Subclasses are frozen dataclasses: picklable, hashable, and equal if their parameters are equal.

    Attributes
    ----------
    reads_records : bool
        Class attribute: whether it is called with records, of which the guarantee protects one. False for scores: one
        record may change all of them.
    ordered : bool
        Whether the law depends on the order of the records, as it does for a grid with ``missing="half"``. Neighbours
        then differ in one entry, with all others in the same places.
    releases_numbers : bool
        Class attribute: whether a release is a float or an array, rather than an object that holds several arrays.
    counts_records : bool
        Class attribute: whether a call counts the records of chunks before it reads them, because its steps depend on
        their number.
    """

    reads_records: ClassVar[bool] = True
    releases_numbers: ClassVar[bool] = True
    counts_records: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        hook(cls)  # charge every release to the active ledger

    def __getstate__(self) -> Any:
        return without_recent(super().__getstate__())

    @property
    @abstractmethod
    def privacy(self) -> Privacy:
        """The guarantee for one changed record."""

    @property
    def dimensions(self) -> int:
        """The public number of dimensions of the array of records: 1 for numbers, 2 for a record in each row."""
        return 1

    @property
    def privacy_profile(self) -> PrivacyProfile:
        """The guarantee that a `dpfast.Ledger` composes: `privacy`, or a tighter description where one is known."""
        return PrivacyProfile(self.privacy)

    def privacy_map(self, d_in: SupportsIndex) -> Privacy:
        """The guarantee for `d_in` changed records (group privacy), rounded up; epsilon = 0 for 0 records."""
        return self.privacy.group_up(_checks.whole("d_in", d_in))

    @property
    def points(self) -> tuple[Points, ...]:
        """The public grids of the records, ``grids`` or `grid`: one for each column, a single one for all, or none."""
        for given in (getattr(self, "grids", None), getattr(self, "grid", None)):
            grids = (given,) if isinstance(given, Points) else given
            if isinstance(grids, (tuple, list)) and grids and all(isinstance(grid, Points) for grid in grids):
                return tuple(grids)
        return ()

    @cached_property
    def resolves(self) -> bool:
        """Whether missing records are replaced by position, or left out, before they are read."""
        return any(grid.resolves for grid in self.points)

    @property
    def ordered(self) -> bool:
        return any(grid.missing == "half" for grid in self.points)

    def check_missing(self) -> None:
        """Raise a ValueError if a grid's policy for missing records does not fit the guarantee.

        Constructors call it, and every reading of records.
        """
        if self.resolves:
            check_missing(type(self).__name__, self.points, hides_n=self.hides_n)

    def resolved(self, values: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Yield the records of a chunk, from `Reading.records`, with missing ones resolved, in pieces if any can be."""
        if not self.resolves:
            yield values
            return
        for start in range(0, max(len(values), 1), _RESOLVED):
            yield resolved(values[start : start + _RESOLVED], self.points)

    def reading(self) -> Reading:
        """Return an empty `dpfast.streaming.Reading`, which makes the summary of the records that `law_of` takes.

        It depends on public parameters only. Arrays, streams, groups and other frameworks all read records with it.

        Raises
        ------
        TypeError
            If the mechanism does not read records from a stream.
        """
        raise TypeError(f"a {type(self).__name__} release does not read records from a stream")

    @refused(LAW)
    def law_of(self, summary: Any) -> Law:
        """The exact distribution of the release, given the summary from a reading. PRIVATE, like the summary."""
        raise TypeError(f"a {type(self).__name__} release does not read records from a stream")

    def check_records(self, n: SupportsIndex) -> int:
        """Return n, the number of records, or raise a ValueError if n is public and not supported.

        Called before any record of an array is read, and after the first pass of a stream.
        """
        n = operator.index(n)
        return n if n > 0 or self.privacy.neighbors == "add-remove" else _checks.records(n)

    @refused(LAW)
    def law(self, x: Any, *, workers: int = 1) -> Law:
        """The exact distribution of the release, for audits, tests and simulations. PRIVATE: it depends on the data."""
        return self.law_of(self._summary(x, workers))

    def _summary(self, x: Any, workers: int) -> Any:
        """The summary of the records of an array or of `Chunks`."""
        threads = _checks.threads(workers)
        if isinstance(x, Chunks):
            return x.summary(threads) if isinstance(x, Begun) else self._read(x, threads)
        self.check_missing()
        reading = self.reading()
        values = reading.records(x)
        self.check_records(len(values))
        if self.resolves:
            if len(values) > _COPIED:
                return self._read([values], threads)
            values = np.concatenate(list(self.resolved(values)))
        return reading.of(values, threads)

    def _read(self, chunks: Iterable[Any], threads: int) -> Any:
        """The summary of the records of chunks, of whose number `watch` has warned."""
        state = self.start()
        state.watches = False
        return state.read(chunks, workers=threads).summary()

    @charged
    def __call__(self, x: Any, *, rng: RandomSource = None, workers: int = 1) -> Any:
        """Release the statistic of x, a float or an ndarray; spends the budget of `privacy` once.

        Parameters
        ----------
        x : array_like of shape (n,)
            Private data: floats, integers or booleans of any stride, never modified; NaN and None are missing. Also
            `dpfast.Chunks` of such arrays, and `dpfast.Counted` values.
        rng : numpy.random.Generator or BitGenerator, optional
            Makes the run reproducible, hence not private. Default: the secure generator.
        workers : int
            Threads that read the data, -1 for one per core; the result does not depend on it.
        """
        return self.drawn(lambda: self.law(x, workers=workers), None, rng)

    def traps_of(self, n: int) -> tuple[Trap, ...]:
        """Warnings that a release from n records deserves, n public."""
        return ()

    def watch(self, x: Any, rng: RandomSource = None, workers: int = 1) -> Any:
        n = known_records(x)
        if n is None and isinstance(x, Chunks):
            bit_generator(rng)  # reject it before records are read
            if not self.counts_records:
                return Begun(x, self.start(), workers)
            n = x.records()
        if n and (traps := self.traps_of(n)):
            warn(traps)
        return x

    def part(self, x: Any, *, rng: RandomSource = None, workers: int = 1) -> Any:
        """Make a release that is a part of another one, which is charged for it and warns of its own traps."""
        refuse("a part of a release is charged with the whole: call the mechanism", self)
        whole = type(self).__call__
        return getattr(whole, "__wrapped__", whole)(self, x, rng=rng, workers=workers)

    @overload
    def release(self, x: Any, *, size: None = None, rng: RandomSource = None, workers: int = 1) -> Any: ...

    @overload
    def release(
        self,
        x: Any,
        *,
        size: SupportsIndex | tuple[SupportsIndex, ...],
        rng: RandomSource = None,
        workers: int = 1,
    ) -> NDArray[Any]: ...

    @overload
    def release(
        self,
        x: Any,
        *,
        size: SupportsIndex | tuple[SupportsIndex, ...] | None,
        rng: RandomSource = None,
        workers: int = 1,
    ) -> Any: ...

    @charged
    def release(
        self,
        x: Any,
        *,
        size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
        rng: RandomSource = None,
        workers: int = 1,
    ) -> Any:
        """Make `size` independent releases, for audits and simulations: EACH ONE spends the budget.

        The other parameters are those of a call; `size` is a shape, or None for one release, like a call.
        """
        if size is None:
            return self.part(x, rng=rng, workers=workers)
        return self.drawn(lambda: self.law(x, workers=workers), size, rng)

    def release_counts(
        self,
        codes: ArrayLike,
        counts: ArrayLike,
        *,
        size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
        rng: RandomSource = None,
    ) -> Any:
        """Release from counts by grid code, such as a histogram that an SQL engine made: EACH ONE spends the budget.

        Parameters
        ----------
        codes : array_like of shape (m,)
            Private codes of the mechanism's grid, in any order and not necessarily distinct; see
            `dpfast.Counted.of_codes`. `Grid.sql` makes the expression that computes them.
        counts : array_like of shape (m,)
            The number of records of each code; see `dpfast.Counted`.
        size, rng
            See `release`.

        Returns
        -------
        Any
            Like `release` of the records that are counted, with the same law.

        Raises
        ------
        TypeError
            If the records of the mechanism are not numbers on one grid.

        Notes
        -----
        For values instead of codes, or for the bins of a histogram, pass `dpfast.Counted` to `release`.

        Examples
        --------
        >>> import dpfast as dpf
        >>> median = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 100, step=1), epsilon=1.0)
        >>> median.release_counts([20, 30, 40], [250_000, 500_000_000, 249_999])
        30.0
        """
        if len(self.points) != 1 or self.dimensions != 1:
            raise TypeError(
                f"a {type(self).__name__} takes no counts of codes: its records are not numbers on one grid"
            )
        return self.release(Counted.of_codes(self.points[0], codes, counts), size=size, rng=rng)

    def drawn(
        self, law: Callable[[], Law], size: SupportsIndex | tuple[SupportsIndex, ...] | None, rng: RandomSource
    ) -> Any:
        """Make one release, or `size` of them, from a law that is computed after all other checks."""
        shape = None if size is None else _checks.shape(size)
        bit_generator(rng)  # reject a wrong rng before reading data
        made = law()
        values: Any = made.value(made.sample(shape, rng=rng))
        return values if shape is None else np.asarray(values, dtype=np.float64)

    def explanation(self, n: SupportsIndex | None = None) -> str:
        """A short text about the release: mechanism, guarantee, grid, missing records, expected error. Public.

        Parameters
        ----------
        n : int, optional
            The number of records, if it is public.

        Examples
        --------
        >>> import dpfast as dpf
        >>> grid = dpf.Grid(0, 100, step=1, missing=50)
        >>> print(dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=grid, epsilon=0.5).explanation(1000))
        GlobalSensitivity release of the mean of records on 101 points from 0.0 to 100.0, step 1.0: epsilon = 0.5 \
(pure differential privacy) for one record replaced (the number of records is public).
        Missing records (NaN, None, null) count as 50.
        Expected error, besides that of sampling: noise of scale 0.2 for n = 1000.
        """
        count = None if n is None else _checks.whole("n", n)
        parts = (repr(self).strip("<>"), self._explained_missing(), self._explained_error(count))
        return "\n".join(f"{part}." for part in parts if part)

    def _explained_missing(self) -> str:
        """What missing records become."""
        what = [_missing_in(grid) for grid in dict.fromkeys(self.points)]
        return f"Missing records (NaN, None, null) {', '.join(dict.fromkeys(what))}" if what else ""

    def _explained_error(self, n: int | None) -> str:
        """A sentence on the expected error, from public numbers; "" if they do not give it."""
        predicted = type(self).error is not Predicted.error
        return "The mechanism's error(n, ...) predicts the error from public assumptions" if predicted else ""

    def noise_interval(
        self, release: float, confidence: float = 0.95, *, n: SupportsIndex | None = None
    ) -> tuple[float, float]:
        """The values of the exact statistic for which the noise leads to this release with probability `confidence`.

        `GlobalSensitivity` documents it; the noise of other mechanisms has no public scale.

        Raises
        ------
        TypeError
            If the spread of the release depends on the data: `dpfast.interval` makes an estimate with an interval.
        """
        raise TypeError(
            f"the spread of a {type(self).__name__} release depends on the data: dpfast.interval releases a statistic "
            f"together with an interval"
        )

    def start(self) -> State:
        """Return the empty state of a stream, for data in chunks or on several machines.

        Raises
        ------
        TypeError
            If the mechanism does not read records, like a selection among scores or a randomiser of local privacy.

        Examples
        --------
        >>> import dpfast as dpf
        >>> state = dpf.GlobalSensitivity(dpf.statistics.Sum(), grid=dpf.Grid(0, 10, step=1), epsilon=20).start()
        >>> for chunk in [[1, 2], [3], []]:
        ...     state.update(chunk)
        >>> abs(state.release() - 6) < 10
        True
        """
        return State(self)

    @cached_property
    def hides_n(self) -> bool:
        """Whether the number of records is private."""
        return self.privacy.neighbors == "add-remove"


def _missing_in(grid: Points) -> str:
    """What missing records become on a grid."""
    if grid.missing == "drop":
        return "are left out"
    if grid.missing == "half":
        return f"count as {grid.lower:.9g} at even positions and as {grid.upper:.9g} at odd ones"
    return f"count as {grid.missing:.9g}" + (", the lower bound" if grid.missing == grid.lower else "")
