"""What every mechanism of the library can do, and promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, SupportsIndex

import numpy as np

from dpfast import _checks
from dpfast.laws import Law
from dpfast.mechanisms.prediction import Predicted
from dpfast.privacy import Privacy, PrivacyProfile
from dpfast.random import RandomSource, bit_generator
from dpfast.spending import LAW, Carrier, charged, hook, refused
from dpfast.streaming import Chunks, Reading, State


class Mechanism(Predicted, Carrier, ABC):
    """A private release: public parameters and a guarantee, no data and no state.

    Subclasses are frozen dataclasses: picklable, hashable, equal when their parameters are.

    Attributes
    ----------
    reads_records : bool
        Of the class: whether it is called with records, of which the guarantee is for one. False for scores, which one
        record may change all at once.
    ordered : bool
        Of the class: whether the law depends on the order of the records. Then neighbours are data of which one entry
        differs, with all others in their places.
    releases_numbers : bool
        Of the class: whether a release is a float or an array; an object that holds several arrays is none.
    """

    reads_records: ClassVar[bool] = True
    ordered: ClassVar[bool] = False
    releases_numbers: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        hook(cls)  # every release is charged to an active ledger

    @property
    @abstractmethod
    def privacy(self) -> Privacy:
        """The guarantee for one changed record."""

    @property
    def dimensions(self) -> int:
        """Of the array of records, public: 1, a number in each entry, or 2, a record in each row."""
        return 1

    @property
    def privacy_profile(self) -> PrivacyProfile:
        """The same in more detail, where more is known: what a `dpfast.Ledger` composes."""
        return PrivacyProfile(self.privacy)

    def privacy_map(self, d_in: SupportsIndex) -> Privacy:
        """The guarantee for `d_in` changed records (group privacy), rounded up; none for 0."""
        return self.privacy.group_up(_checks.whole("d_in", d_in))

    def reading(self) -> Reading:
        """A new `dpfast.streaming.Reading`, which makes the summary of the records that `law_of` takes.

        It depends on public parameters only. Arrays, streams, groups and other frameworks all read records by it.

        Raises
        ------
        TypeError
            A mechanism that does not read records from a stream.
        """
        raise TypeError(f"a {type(self).__name__} release does not read records from a stream")

    @refused(LAW)
    def law_of(self, summary: Any) -> Law:
        """The exact distribution of the release, given the summary that a reading made. PRIVATE, as the summary is."""
        raise TypeError(f"a {type(self).__name__} release does not read records from a stream")

    def check_records(self, n: int) -> int:
        """Returns n, the number of records, or raises a ValueError if it is public and not supported.

        Called before any record is read, in a stream when the first pass is over.
        """
        return n if n > 0 or self.privacy.neighbors == "add-remove" else _checks.records(n)

    @refused(LAW)
    def law(self, x: Any, *, workers: int = 1) -> Law:
        """The exact distribution of the release. PRIVATE: it depends on the data; for audits, tests and simulation."""
        return self.law_of(self._summary(x, workers))

    def _summary(self, x: Any, workers: int) -> Any:
        """The summary of records in an array or in `Chunks`."""
        threads = _checks.threads(workers)
        if isinstance(x, Chunks):
            return self.start().read(x, workers=workers).summary()
        reading = self.reading()
        values = reading.records(x)
        self.check_records(len(values))
        return reading.of(values, threads)

    @charged
    def __call__(self, x: Any, *, rng: RandomSource = None, workers: int = 1) -> Any:
        """One release of the statistic of x, a float or an ndarray; spends the budget of `privacy` once.

        Parameters
        ----------
        x : array_like of shape (n,)
            Private data: floats, integers or booleans of any stride, never modified; NaN and None are missing. Or
            `dpfast.Chunks` of such arrays.
        rng : numpy.random.Generator or BitGenerator, optional
            Makes the run reproducible, hence not private. Default: the secure generator.
        workers : int
            Threads that read the data, -1 for one per core; the result does not depend on it.
        """
        return self.drawn(lambda: self.law(x, workers=workers), None, rng)

    @charged
    def release(
        self,
        x: Any,
        *,
        size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
        rng: RandomSource = None,
        workers: int = 1,
    ) -> Any:
        """`size` independent releases, for audits and simulations: EACH ONE spends the budget.

        Parameters as for a call; `size` is a shape, or None for one release as by a call.
        """
        if size is None:
            return self(x, rng=rng, workers=workers)
        return self.drawn(lambda: self.law(x, workers=workers), size, rng)

    def drawn(
        self, law: Callable[[], Law], size: SupportsIndex | tuple[SupportsIndex, ...] | None, rng: RandomSource
    ) -> Any:
        """A release, or `size` of them, by a law that is made when all else is checked."""
        shape = None if size is None else _checks.shape(size)
        bit_generator(rng)  # a wrong rng raises before data are read
        made = law()
        values: Any = made.value(made.sample(shape, rng=rng))
        return values if shape is None else np.asarray(values, dtype=np.float64)

    def start(self) -> State:
        """The state of a stream of which nothing is read yet: for data in chunks, or on several machines.

        Raises
        ------
        TypeError
            A mechanism that does not read records: a selection among scores, a randomiser of local privacy.

        Examples
        --------
        >>> import dpfast as dpf
        >>> state = dpf.GlobalSensitivity(dpf.statistics.Sum(), grid=dpf.Grid(0, 10, step=1), epsilon=1e3).start()
        >>> for chunk in [[1, 2], [3], []]:
        ...     state.update(chunk)
        >>> state.release()
        6.0
        """
        return State(self)

    @cached_property
    def hides_n(self) -> bool:
        """Whether the number of records is private."""
        return self.privacy.neighbors == "add-remove"
