"""The base class of all mechanisms."""

from __future__ import annotations

import math
import operator
from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.core import checks, containers
from dpfast.core.foreign import active, blocks
from dpfast.core.grid import Points, check_missing
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.recent import is_recent
from dpfast.core.spending import LAW, Carrier, Cost, charging, hook, refused, spending_together
from dpfast.core.tabular import Declared
from dpfast.core.traps import Cautious, presumed_numbers, warn
from dpfast.laws import Law
from dpfast.mechanisms.foreseen import GUESS, Foreseen, in_words
from dpfast.mechanisms.plan import Plan, resolutions
from dpfast.mechanisms.prediction import Predicted
from dpfast.random import RandomSource, bit_generator
from dpfast.streaming import Begun, Chunks, Counted, Labelled, Reading, State, known_records

UNKNOWN_ERROR = "Expected error: it depends on the records, and on their private number"


class Mechanism(Predicted, Declared, Cautious, Carrier):
    """A private release, described by public parameters and a guarantee. It holds no data and has no state.

    Subclasses are frozen dataclasses: picklable, hashable, and equal if their parameters are equal.

    Attributes
    ----------
    reads_records : bool
        Class attribute: whether it is called with records, of which the guarantee protects one. False for scores: one
        record may change all of them.
    reads_all : bool
        Class attribute: whether all records are read, and not only those with listed keys, whose number is private.
    ordered : bool
        Whether the law depends on the order of the records, as it does for a grid with ``missing="half"``. Neighbours
        then differ in one entry, with all others in the same places.
    fills_empty_groups : bool
        Class attribute: whether an empty group of public size has a release, that of `of_no_records`.
    parts : tuple of str
        The public names of the numbers of a release, if they have names.
    counts_first : str
        Class attribute: why a release needs the number of records before it reads them, so that it has no `State`; ""
        for most.
    releases_numbers : bool
        Class attribute: whether a release is a float or an array, rather than an object that holds several arrays.
    """

    _recent: Plan | None = None  # that of the last n

    reads_records: ClassVar[bool] = True
    reads_all: ClassVar[bool] = True
    fills_empty_groups: ClassVar[bool] = False
    counts_first: ClassVar[str] = ""
    releases_numbers: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        hook(cls)  # charge every release to the active ledger

    def __getstate__(self) -> Any:
        return _without_plan(super().__getstate__())

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

    @property
    def cost(self) -> Cost:
        """What a ledger charges for a release; computed once if the mechanism is frozen, as it should be."""
        kept: Cost | None = self.__dict__.get("_cost")
        if kept is None:
            kept = Cost(repr(self), self.privacy_profile)
            if getattr(getattr(type(self), "__dataclass_params__", None), "frozen", False):
                self.__dict__["_cost"] = kept
        return kept

    def privacy_map(self, d_in: SupportsIndex) -> Privacy:
        """Return the guarantee for `d_in` changed records (group privacy), rounded up; epsilon = 0 for 0 records."""
        return self.privacy.group_up(checks.whole("d_in", d_in))

    @property
    def points(self) -> tuple[Points, ...]:
        """The public grids of the records, ``grids`` or ``grid``: one for each column, one for all, or none."""
        for given in (getattr(self, "grids", None), getattr(self, "grid", None)):
            grids = (given,) if isinstance(given, Points) else given
            if isinstance(grids, (tuple, list)) and grids and all(isinstance(grid, Points) for grid in grids):
                return tuple(grids)
        return ()

    @cached_property
    def resolves(self) -> bool:
        """Whether missing records are replaced by position, or left out, before they are read."""
        return any(grid.resolves for grid in self.points) and not self.leaves_out

    @property
    def leaves_out(self) -> bool:
        """Whether readings and kernels leave out missing records, which are among the n records."""
        return False

    @property
    def resolving(self) -> tuple[Points, ...]:
        """The grids by which missing records are resolved before they are read; none if none are."""
        return self.points if self.resolves else ()

    @property
    def ordered(self) -> bool:
        return any(grid.missing == "half" for grid in self.points)

    def check_missing(self) -> None:
        """Raise a ValueError if a grid's policy for missing records does not fit the guarantee.

        Constructors call it, and every reading of records.
        """
        if self.resolves:
            check_missing(type(self).__name__.lstrip("_"), self.points, hides_n=self.hides_n)

    def resolved(self, values: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Yield the records of a chunk, from `Reading.records`, with missing ones resolved, in pieces if any can be."""
        return resolutions(values, self.resolving) if self.resolves else iter((values,))

    def reading(self) -> Reading:
        """Return an empty `dpfast.streaming.Reading`, which makes the summary of the records that `law_of` takes.

        It depends on public parameters only. Arrays, streams, groups and other frameworks all read records with it.

        Raises
        ------
        TypeError
            If the mechanism does not read records from a stream.
        """
        raise TypeError(self.counts_first or f"a {type(self).__name__} release does not read records from a stream")

    @refused(LAW)
    def law_of(self, summary: Any) -> Law:
        """Return the exact distribution of the release, given the summary from a reading. PRIVATE, like the summary."""
        raise TypeError(f"a {type(self).__name__} release does not read records from a stream")

    def plan(self, n: SupportsIndex | None = None) -> Plan:
        """Return what is public for a release from n records, which draws it. Computed once for the last n.

        Parameters
        ----------
        n : int, optional
            The number of records. None: it is not known yet; a private number is None, too.

        Raises
        ------
        ValueError
            If n is public and not supported.
        """
        number = None
        if not (n is None or self.hides_n) and self.reads_all:
            number = n if type(n) is int else int.__index__(operator.index(n))
        recent = self._recent
        if recent is None or recent.n != number:
            if self.resolves:
                self.check_missing()
            recent = self.__dict__["_recent"] = self._make_plan(number)
        return recent

    def plan_for(self, values: Any) -> Plan:
        """Return the plan for records from `values_of`, by their public numbers."""
        return self.plan(self.number_of(values))

    def _make_plan(self, n: int | None) -> Plan:
        """Compute the plan, which `plan` keeps: a subclass of `Plan` for a mechanism with public numbers of its own."""
        if n is not None:
            checks.records(n)
        return Plan(self, n)

    def values_of(self, x: Any) -> Any:
        """Return x as records: an array of numbers, `Labelled`, or `Chunks`. Checks only its shape and dtype."""
        return x if isinstance(x, Chunks) else self.reading().records(x)

    def check_type(self, x: Any) -> None:
        """Raise the error of records of the type, dtype and width of x, which are public: before a release is charged.

        Lists and columns of objects say what they hold by their cells only, so that their error comes later.
        """
        for piece in x.listed if isinstance(x, Chunks) else (x,):
            if self.reads_records and (empty := containers.without_records(piece)) is not None:
                self.values_of(empty)

    def number_of(self, values: Any) -> int | None:
        """Return the number of records from `values_of`; None if it is known only once they are read."""
        if isinstance(values, Chunks):
            return values.records() if self.counts_first else values.known
        return len(values)

    @property
    def parts(self) -> tuple[str, ...]:
        return ()

    def of_no_records(self, source: np.random.BitGenerator) -> Any:
        """Draw the release of an empty group of public size; None if there is none."""

    @refused(LAW)
    def law(self, x: Any, *, workers: int = 1) -> Law:
        """Return the exact distribution of the release, for audits, tests and simulations. PRIVATE: it depends on the
        data.
        """
        threads, values = checks.threads(workers), self.values_of(x)
        plan, summary = self.plan_for(values).read(values, threads)
        return plan.law_of(summary)

    @charging
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
        source, threads = bit_generator(rng), checks.threads(workers)
        if type(x) is np.ndarray and x.ndim and not self.counts_first:
            plan = self._recent
            if plan is None or plan.n != x.shape[0]:  # this call of `plan` is a twentieth of a short release
                plan = self.plan(x.shape[0])
        else:
            plan, x = self._foresee(x, threads)
        if plan is not None and plan.traps:
            warn(plan.traps)
        if not blocks and active.get() is None and self._ticket is None:  # free, as `spending` finds in more steps
            if type(x) is np.ndarray and plan is not None:  # `_drawn`, without a call
                return plan.draw.__wrapped__(plan, self.values_of(x), source, threads)  # type: ignore[attr-defined]
            return self._drawn(x, None, source, threads, plan)
        self.check_type(x)
        with spending_together((self.cost,), of=(self,)):
            return self._drawn(x, None, source, threads, plan)

    def _foresee(self, x: Any, threads: int) -> tuple[Plan | None, Any]:
        """Return the plan for x before a release is charged, and what the release reads: x, or its chunks, counted.

        Without a plan, the number of records is known only to code of others. Raises a ValueError if it is
        public and not supported, or if the policy for missing records is not.
        """
        self.check_missing()
        n = len(x) if isinstance(x, Labelled) else known_records(x)
        if n is None and isinstance(x, Chunks) and not self.hides_n:
            if self.counts_first:
                n = x.records()
            else:  # their first pass is read now, at no extra cost
                x = Begun(x, self.start(), threads)
                n = x.known
        return self.plan(n) if n is not None or self.hides_n else None, x

    def _drawn(
        self, x: Any, shape: tuple[int, ...] | None, source: np.random.BitGenerator, threads: int, plan: Plan | None
    ) -> Any:
        """Read the records of a release that is charged, and draw it."""
        values = self.values_of(x)
        if plan is None:
            plan = self.plan_for(values)
            if plan.traps:
                warn(plan.traps)
        elif type(x) is not np.ndarray and (n := self.number_of(values)) is not None:
            plan = self.plan(n)  # the one there is, unless containers count otherwise than their records
        if shape is None:
            # The charge is made: `draw` would ask for it again, in a tenth of the time of a short release.
            return plan.draw.__wrapped__(plan, values, source, threads)  # type: ignore[attr-defined]
        plan, summary = plan.read(values, threads)
        return plan.draws(summary, shape, source)

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

    @charging
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
            return self(x, rng=rng, workers=workers)
        shape, source, threads = checks.shape(size), bit_generator(rng), checks.threads(workers)
        plan, x = self._foresee(x, threads)
        if plan is not None and plan.traps:
            warn(plan.traps)
        self.check_type(x)
        with spending_together((self.cost._replace(times=math.prod(shape)),), of=(self,)):
            return self._drawn(x, shape, source, threads, plan)

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

    def sampled(self, law: Law, shape: tuple[int, ...], source: np.random.BitGenerator) -> NDArray[Any]:
        """Draw as many releases of a law as the shape has entries, in one array."""
        return np.asarray(law.value(law.sample(shape, rng=source)), dtype=np.float64)

    def explanation(self, n: SupportsIndex | None = None) -> str:
        """Return a short text about the release: mechanism, guarantee, grid, budgets of its steps, missing records,
        expected error. Public.

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
        Expected error, besides that of sampling: about 0.2 for n = 1,000.
        """
        count = None if n is None else checks.whole("n", n)
        what = repr(self).strip("<>")
        known = self._explained_split(count), self._explained_missing(), self._explained_error(count)
        parts = what, *known, self._explained_few(count)
        return "\n".join(f"{part}." for part in parts if part)

    def _explained_split(self, n: int | None) -> str:
        """Return how the steps of a release split its budget; "" if it has a single one."""
        return ""

    def _explained_missing(self) -> str:
        """Return what missing records become."""
        what = [_missing_in(grid) for grid in dict.fromkeys(self.points)]
        return f"Missing records (NaN, None, null) {', '.join(dict.fromkeys(what))}" if what else ""

    def _explained_error(self, n: int | None) -> str:
        """Return a sentence on the expected error, from public numbers; "" if they do not give it."""
        found = {number: self.foreseen(number) for number in (presumed_numbers() if n is None else (n,))}
        known = {number: error for number, error in found.items() if error is not None}
        if len(known) == len(found):
            return in_words(known)
        predicted = type(self).error is not Predicted.error
        return "The mechanism's error(n, ...) predicts the error from public assumptions" if predicted else ""

    def foreseen(self, n: SupportsIndex) -> Foreseen | None:
        """Return the error to expect of a release from n records; None if public numbers do not give it."""
        number = checks.whole("n", n)
        found = self._foreseen_of_many(max(number, 1))
        return found and (GUESS if number < max(self.enough, 1) else found.or_guess(number))

    def _foreseen_of_many(self, n: int) -> Foreseen | None:
        """Return the error to expect of a release from n records, whether they are enough or not."""
        return None

    def _explained_few(self, n: int | None) -> str:
        """Return how many records it takes, if there may be fewer."""
        if (n is not None and n >= self.enough) or not self.enough:
            return ""
        if math.isinf(self.enough):
            return "It may be anywhere within its bounds"
        return f"With fewer than about {math.ceil(self.enough):,} records it may be anywhere within its bounds"

    def noise_interval(
        self, release: float, confidence: float = 0.95, *, n: SupportsIndex | None = None
    ) -> tuple[float, float]:
        """Return the values of the exact statistic for which the noise leads to this release with probability
        `confidence`.

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

    @cached_property
    def enough(self) -> float:
        """About the least number of records of which a release tells more than its public bounds do.

        With fewer the release is a guess, and warns if their number is public. 0: it has no bounds, or says itself how
        little it tells, like an interval.
        """
        return self._enough()

    def _enough(self) -> float:
        return 0.0


# The attributes that calls leave, and copies do not have, besides those of `recent`.
_LEFT = {"_cost", "enough", "hides_n", "resolves"}


def _without_plan(state: Any) -> Any:
    """Return the state of a mechanism for copies, without what calls left; of a subclass with slots it is a pair."""
    if isinstance(state, tuple):
        return _without_plan(state[0]), *state[1:]
    return state and {name: value for name, value in state.items() if not (name in _LEFT or is_recent(name))}


def not_mechanism(given: Any) -> str:
    """Return the message for what is given in place of a mechanism, such as a function of the library."""
    return (
        f"mechanism must be a dpfast.Mechanism, with its epsilon, not "
        f"{getattr(given, '__name__', type(given).__name__)}: pass such as "
        f"dpfast.InverseSensitivity(dpfast.statistics.Median(), grid=..., epsilon=...)"
    )


def _missing_in(grid: Points) -> str:
    """Return what missing records become on a grid."""
    if grid.missing == "drop":
        return "are left out"
    if grid.missing == "half":
        return f"count as {grid.lower:.9g} at even positions and as {grid.upper:.9g} at odd ones"
    return f"count as {grid.missing:.9g}" + (", the lower bound" if grid.missing == grid.lower else "")
