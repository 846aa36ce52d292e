"""The joint inverse sensitivity mechanism: several quantiles under one budget."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _groups
from dpfast._kernels._chain import MOST_FREE, Chain, GroupChain, GroupStage, WideChain, draw_groups, fill_multiset
from dpfast._kernels._measures import Measure
from dpfast._kernels._multisets import draw as draw_multiset
from dpfast._kernels._multisets import weight_of_all, weights_of_all
from dpfast._kernels._narrow import NarrowChain
from dpfast._kernels._samplers import next_word
from dpfast.core import checks, containers, measures
from dpfast.core.grid import FloatGrid, Grid, Points, check_points
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.spending import STEP, refuse
from dpfast.core.spending import imagined as allowed
from dpfast.core.traps import Trap
from dpfast.core.types import Exact
from dpfast.laws import TAIL, Law
from dpfast.mechanisms.assumptions import SAMPLES, Assumed, ImaginedRanks, sobol, target
from dpfast.mechanisms.foreseen import Foreseen
from dpfast.mechanisms.grouped import SortedGroups, sizes_of
from dpfast.mechanisms.plan import Draw, Grouping, Plan
from dpfast.mechanisms.slots import Slots
from dpfast.mechanisms.statistic import StatisticMechanism
from dpfast.mechanisms.usefulness import enough_for_quantiles, of_quantiles
from dpfast.random import RandomSource, bit_generator, blocks
from dpfast.statistics import Quantile
from dpfast.streaming import Counted, Ordered, PresentRanks, Ranks, Selected, absent_in

_DRAWS = 16  # per imagined sample, to predict an error
_TWO_STAGES = 16  # the least number of targets for two stages by default
_MOST_IN_TWO = (
    MOST_FREE + 1
) ** 2 - 1  # targets with a base measure: those of the first stage, and between two of them
_FAST_ROUNDS = 8  # in vain, before those of the wide chain
_ROOM = 60  # in logarithms of weights, for narrow windows: walks away from the ranks, and doubts of 2**-30


@dataclass(frozen=True, repr=False)
class Quantiles(StatisticMechanism):
    """Release several quantiles together: each sorted vector o of grid points with weight ``exp(-epsilon / 2 * S(o))``.

    S(o) is the least number of records to replace so that the order statistics of all ranks ``max(1, ceil(q * n))``
    become o together. Pure epsilon-differential privacy for all of them together under one replaced record; the number
    of records is public. For one quantile the law is that of `InverseSensitivity` with ``Quantile(q)``.

    Parameters
    ----------
    qs : sequence of float
        In [0, 1], in any order, possibly repeated; at least one.
    grid : Grid or FloatGrid
        Public bounds and granularity of data and release, in data units. ``missing="drop"`` leaves out missing records
        at no cost, as far as the ranks of the others are distinct; n counts them.
    epsilon : float
        Positive, the total for all quantiles; rounded down to a double.
    measure : {"auto", "uniform", "integers", "decimal", "dyadic"} or sequence of int
        The public base measure, as for `InverseSensitivity`: the weight of a vector is multiplied by the weights of its
        entries. On a `FloatGrid`, "auto" favours modest magnitudes and round numbers. Other measures than "uniform" are
        for at most 16,640 quantiles in two stages and 128 in one; for more, "auto" is "uniform".
    stages : {None, 1, 2}
        2 first releases every b-th of m targets, b about sqrt(m), with half of the budget, then the targets between
        them with the other half. None, the default, uses 2 for m >= 64, and for m >= 16 if epsilon n < 60 (m + 1).

    Raises
    ------
    TypeError, ValueError
        A wrong parameter, before any data are read.

    Notes
    -----
    Privacy: S, and S capped at a public number, change by at most 1 with one record, so the exponential mechanism of
    exponent epsilon / 2 is epsilon-DP; two stages compose
    (https://dpfast.readthedocs.io/en/latest/proofs/joint-quantiles.html,
    https://dpfast.readthedocs.io/en/latest/proofs/missing.html). The law is exact: no float decides it. The
    release is monotone: a larger q never has a smaller quantile.
    Cost: O(n) to select and O(w) to draw, w the number of order statistics in the windows: 4 m (log C + 42) / epsilon
    for m ranks and C sorted vectors of m grid points, four times as many in two stages, at most m n. Where few records
    are equal, the second stage weighs those next to the ranks only, with the same releases.
    Memory: two bytes per record and 24 per order statistic, for many of them only those between two targets of the
    first stage. For some data, such as many equal records on a grid of 2**40 points, a draw needs numbers that doubles
    do not hold: about ten times as slow, with 48 further bytes. Timing is outside the guarantee.
    The mean error in rank is about 1.9 sqrt(m + 1) / epsilon, compared with 2 m / epsilon for separate releases with
    epsilon / m each.

    References
    ----------
    Gillenwater, Joseph and Kulesza 2021, "Differentially private quantiles" (JointExp; here with the constant for a
    replaced record, and ties); Asi and Duchi 2020.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> mechanism = dpf.Quantiles([0.25, 0.5, 0.75], grid=dpf.Grid(0, 100, step=1), epsilon=1.0)
    >>> mechanism
    <Quantiles release of 3 quantiles from 0.25 to 0.75 on 101 points from 0.0 to 100.0, step 1.0: epsilon = 1 (pure \
differential privacy) for one record replaced (the number of records is public)>
    >>> ages = np.random.default_rng(0).integers(18, 90, 10_000)
    >>> bool(np.all(np.abs(mechanism(ages) - [36, 54, 72]) <= 2))
    True
    """

    fills_empty_groups: ClassVar[bool] = False

    qs: Sequence[float]
    grid: Points = field(kw_only=True)
    epsilon: float = field(kw_only=True)
    measure: str | Sequence[int] = field(kw_only=True, default="auto")
    stages: int | None = field(kw_only=True, default=None)

    if TYPE_CHECKING:  # epsilon may be given exactly

        def __init__(
            self,
            qs: Sequence[float],
            *,
            grid: Points,
            epsilon: Exact,
            measure: str | Sequence[int] = "auto",
            stages: int | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        qs = checks.fractions("qs", self.qs)
        check_points(self.grid)
        self.check_missing()
        if self.stages not in (None, 1, 2):
            raise ValueError(f"stages must be None, 1 or 2, not {self.stages!r}")
        object.__setattr__(self, "qs", qs)
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        object.__setattr__(self, "measure", measures.checked(self.measure))
        self.base_measure  # noqa: B018  # reject a measure that does not fit the grid

    @cached_property
    def base_measure(self) -> Measure | None:
        """The weights of the grid points, public; None if all are equal."""
        most = MOST_FREE if self.stages == 1 else _MOST_IN_TWO
        if self.measure == "uniform" or (self.measure == "auto" and len(self.qs) > most):
            return None
        if len(self.qs) > most:
            in_one = " in one stage" if self.stages == 1 else ""
            raise ValueError(f"measure must be 'auto' or 'uniform' for more than {most} quantiles{in_one}")
        grid = self.grid
        if isinstance(grid, FloatGrid):
            return measures.on_floats(grid, self.measure)
        return measures.measure_on(self.measure, round(grid.lower / grid.step), grid.size - 1, grid.step)

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        if self.stages == 1 or (self.stages is None and len(self.qs) < _TWO_STAGES):
            return PrivacyProfile(self.privacy, (("bounded-range", self.epsilon, 1),))
        return PrivacyProfile(self.privacy)  # the composition of two stages is not of bounded range

    def __repr__(self) -> str:
        m = len(self.qs)
        which = f"the {self.qs[0]:g}-quantile" if m == 1 else f"{m} quantiles from {min(self.qs):g} to {max(self.qs):g}"
        measure = self.measure if isinstance(self.measure, str) else "by weights"
        favoured = "" if measure == "auto" else f", measure {measure}"
        return f"<Quantiles release of {which} on {self.grid}{favoured}: {self.privacy}>"

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(f"q={q}" for q in self.qs)

    @property
    def leaves_out(self) -> bool:
        """Whether missing records are left out, as far as the ranks of the others are distinct (`Joint.layout_of`)."""
        return self.grid.missing == "drop"

    @property
    def absent_last(self) -> bool:
        """Whether missing records are sorted after all others, as the greatest point, and not before them."""
        return False

    @property
    def sorting(self) -> Points:
        """The grid by which records are sorted, where missing ones are a point: those that are not left out are it."""
        grid = self.grid
        return grid.with_missing(grid.upper if self.absent_last else "lower") if self.leaves_out else grid

    def slots(self, n: int, ranks: tuple[int, ...]) -> Slots:
        """Return how missing records change the ranks of n records."""
        return Slots(n, ranks)

    def law_of(self, windows: _Windows) -> JointQuantiles:
        return self.plan(windows.layout.n + windows.layout.absent)._joint(windows)

    def reading(self) -> Ranks:
        def wanted(n: int, absent: int = 0) -> list[tuple[int, int]]:
            plan = self.plan(n)
            return plan.among_all(plan.layout_of(absent))

        def finish(order: Ordered, absent: int = 0) -> _Windows:
            plan = self.plan(order.n)
            layout = plan.layout_of(absent)
            return _Windows.of(layout, [order.window(first, last) for first, last in plan.among_all(layout)])

        kind = PresentRanks if self.leaves_out else Ranks
        return kind(self.sorting, wanted, finish)

    if TYPE_CHECKING:

        def plan(self, n: SupportsIndex | None = None) -> Joint: ...

    def _make_plan(self, n: int | None) -> Plan:
        return JointOfGroups(self, n) if n is None else Joint(self, checks.records(n))

    def _enough(self) -> float:
        return enough_for_quantiles(self.grid, self.qs, self.epsilon) if isinstance(self.grid, Grid) else 0.0

    @property
    def ranks_away(self) -> float:
        """The ranks between a release and its quantile on average, to about 15 %."""
        return 1.9 * math.sqrt(len(set(self.qs)) + 1) / self.epsilon

    def _foreseen_of_many(self, n: int) -> Foreseen:
        level = min(self.qs, key=lambda q: abs(q - 0.5))
        return Foreseen.of_rank(self.ranks_away, level, n)

    def _error_under(self, n: int, assumed: Assumed, confidence: float) -> NDArray[np.float64]:
        population = [target(Quantile(q), assumed) for q in self.qs]
        releases = self.imagined_releases(n, assumed, _imagined(len(set(self.qs))), _DRAWS)
        return np.asarray(np.quantile(np.abs(releases - population), confidence, axis=0, method="inverted_cdf"))

    def imagined_releases(self, n: int, assumed: Assumed, samples: int, draws: int) -> NDArray[np.float64]:
        """Releases from imagined samples of an assumed distribution, so many of each: no data are read."""
        plan = self.plan(n)
        layout, places, stages = plan.layout, plan.places, plan.stages
        ranks, measure = layout.ranks, self.base_measure
        imagined = ImaginedRanks(n, ranks.tolist(), min(stages.reach + 1, n), sobol(len(ranks))[:samples])
        rng, releases = np.random.Generator(np.random.PCG64(0)), []
        for u in imagined:
            codes = self.grid.encode(assumed.points(u))
            windows = _Windows.of(layout, [codes])
            law = JointQuantiles(windows, stages, places=places, grid=self.grid, measure=measure)
            with allowed():
                releases.append(law.value(law.sample(draws, rng)))
        return np.concatenate(releases)


def _imagined(m: int) -> int:
    """Return the number of imagined samples to predict an error: few for many targets, whose chain
    is slow to set up.
    """
    return SAMPLES if m <= 4 else SAMPLES // 4


@dataclass(frozen=True)
class _Stages:
    """The public plan: the targets of each stage, its share of epsilon, and its cap less one."""

    coarse: tuple[int, ...]
    epsilon: float
    reach_coarse: int
    reach: int

    @classmethod
    def of(
        cls, m: int, n: int, last: int, epsilon: float, stages: int | None, measure: Measure | None = None
    ) -> _Stages:
        skewed = m >= _TWO_STAGES and epsilon * n < 60 * (m + 1)
        two = m >= 64 or skewed if stages is None else stages == 2
        block = math.isqrt(m) + 1  # ceil(sqrt(m + 1))
        coarse = tuple(range(block - 1, m, block)) if two else ()
        share = min(epsilon / 2, epsilon - epsilon / 2) if coarse else epsilon  # a half, rounded down
        reach_coarse = _reach(share, last, len(coarse), measure) if coarse else 0
        # S may equal reach_coarse at the pins alone.
        reach = reach_coarse + _reach(share, last, m - len(coarse), measure)
        return cls(coarse, share, min(reach_coarse, n), min(reach, n))

    def within(self, n: int) -> _Stages:
        """Return the plan for n of the records, the others being missing: no score is above n."""
        return (
            self if self.reach <= n else replace(self, reach_coarse=min(self.reach_coarse, n), reach=min(self.reach, n))
        )


def _reach(epsilon: float, last: int, m: int, measure: Measure | None) -> int:
    """T = ceil(2 / epsilon (log C + 42)): sorted vectors with a score above T have total weight e**-42.

    C is the weight of all sorted vectors of m codes, relative to the least weight of one of them.
    """
    per_log = 2 / epsilon if epsilon else math.inf
    return math.ceil(min(per_log * (_log_vectors(last, m, measure) + TAIL), 2.0**62))


def _log_vectors(last: int, m: int, measure: Measure | None) -> float:
    least = 1 if measure is None else measure.least
    return _public_log_weight(measure, last, m) - m * math.log(least)


@lru_cache(maxsize=64)
def _public_log_weight(measure: Measure | None, last: int, length: int) -> float:
    """Return the logarithm of the weight of all vectors of the grid; of long ones with a measure a bound, by parts."""
    if measure is None or length <= MOST_FREE:
        return math.log(weight_of_all(measure, 0, last, length))
    parts, rest = divmod(length, MOST_FREE)
    return parts * _public_log_weight(measure, last, MOST_FREE) + _public_log_weight(measure, last, rest)


class _Layout(NamedTuple):
    """The public places of codes around the ranks: x_i is entry ``bases[j] + i`` for i within reach + 1 of ranks[j]."""

    ranks: NDArray[np.int64]
    bases: NDArray[np.int64]
    n: int
    last: int
    stretches: list[tuple[int, int]]  # the first and last rank of the records between `before` and `after`
    before: NDArray[np.int64]  # x_(-1) and x_0, as far as they are needed
    after: NDArray[np.int64]  # x_(n+1)
    absent: int = 0  # the number of records that are left out, besides the n

    @classmethod
    def around(cls, ranks: NDArray[np.int64], reach: int, n: int, last: int, absent: int = 0) -> _Layout:
        firsts, lasts = np.maximum(ranks - reach - 1, -1), np.minimum(ranks + reach + 1, n + 1)
        heads = np.flatnonzero(np.concatenate([[True], firsts[1:] > lasts[:-1] + 1]))
        firsts, lasts = firsts[heads], lasts[np.append(heads[1:], ranks.size) - 1]
        starts = np.concatenate([[0], np.cumsum(lasts - firsts + 1)[:-1]])
        which = np.searchsorted(heads, np.arange(ranks.size), side="right") - 1
        inside = np.maximum(firsts, 1).tolist(), np.minimum(lasts, n).tolist()
        before, after = np.arange(firsts[0], 1) - 1, last + 1 + np.arange(lasts[-1] - n)
        return cls(ranks, (starts - firsts)[which], n, last, list(zip(*inside, strict=True)), before, after, absent)


class Joint(Plan):
    """A joint draw for n records: the layout, the index of the rank of each q (`places`), and the stages."""

    mechanism: Quantiles

    def __init__(self, mechanism: Quantiles, n: int) -> None:
        super().__init__(mechanism, n)
        last, measure = mechanism.grid.size - 1, mechanism.base_measure
        ranks, places = np.unique([Quantile(q).rank(n) for q in mechanism.qs], return_inverse=True)
        self.stages = _Stages.of(len(ranks), n, last, mechanism.epsilon, mechanism.stages, measure)
        self.layout, self.places = _Layout.around(ranks, self.stages.reach, n, last), places.reshape(-1)

    def layout_of(self, absent: int) -> _Layout:
        """Return the layout if so many of the n records are missing, a private number: that of the others, and of those
        missing ones that count as an end of the grid because there would be no such ranks without them.
        """
        if not absent:
            return self.layout
        slots = self.mechanism.slots(self.layout.n, tuple(self.layout.ranks.tolist()))
        left_out = slots.left_out(absent)
        n, ranks = slots.n - left_out, np.array(slots.ranks_without(left_out))
        return _Layout.around(ranks, self.stages.within(n).reach, n, self.layout.last, left_out)

    def among_all(self, layout: _Layout) -> list[tuple[int, int]]:
        """Return the stretches of a layout among all records, with those that are left out."""
        before = 0 if self.mechanism.absent_last else layout.absent
        return [(first + before, last + before) for first, last in layout.stretches]

    def read(self, values: Any, threads: int = 1) -> tuple[Plan, _Windows]:
        if type(values) is not np.ndarray or self.mechanism.resolves:
            return super().read(values, threads)
        # Without a reading, whose functions take a tenth of a short release: the stretches are apart, and so complete.
        layout, selected = self.layout, None
        if self.mechanism.leaves_out:
            selected = Selected.if_none_is_missing(values, layout.stretches, self._grid, threads=threads)
            layout = layout if selected is not None else self.layout_of(absent_in(values))
        if selected is None:
            selected = Selected.of(values, self.among_all(layout), self._grid, threads=threads)
        return self, _Windows.of(layout, selected.stretches)

    @cached_property
    def _grid(self) -> Points:
        """The grid of selections, made once."""
        return self.mechanism.sorting

    def _joint(self, windows: _Windows) -> JointQuantiles:
        """Return the law of the quantiles, which is private, like the windows."""
        mechanism, places, stages = self.mechanism, self.places, self.stages.within(windows.layout.n)
        measure = mechanism.base_measure
        return JointQuantiles(windows, stages, places=places, grid=mechanism.grid, measure=measure)

    def draw_from(self, summary: _Windows, source: np.random.BitGenerator) -> Any:
        law = self._joint(summary)
        return law.value(law._draw(source))

    @cached_property
    def traps(self) -> tuple[Trap, ...]:  # type: ignore[override]
        grid, levels = self.mechanism.grid, tuple(sorted(set(self.mechanism.qs)))
        if not isinstance(grid, FloatGrid):
            return ()
        epsilon = self.stages.epsilon  # of the first of two stages, on which the second depends
        return tuple(of_quantiles(grid, self.mechanism.base_measure, levels, self.layout.n, epsilon))


@dataclass(frozen=True, eq=False)
class _Windows:
    """Sorted codes around the ranks, in the places of a layout."""

    layout: _Layout
    codes: NDArray[np.int64]

    @classmethod
    def of(cls, layout: _Layout, stretches: list[NDArray[np.int64]]) -> _Windows:
        """From the codes of the records of each stretch."""
        return cls(layout, np.concatenate([layout.before, *stretches, layout.after]))


class _Proposals:
    """A chain that proposes outputs, its total weight B, and the probability w / (w + B) of going anywhere."""

    def __init__(self, chain: Chain, log_anywhere: float, log_vectors: float) -> None:
        self.chain = chain
        self.log_total = math.log(chain.total) + chain.exponent * math.log(2) if chain.total else -math.inf
        self.share_anywhere = 1 / (1 + math.exp(min(self.log_total - log_anywhere, 700.0)))
        # A bound of its error: that of B, and of the logarithms.
        size = 2 * chain.margin + 2.0**-48 * math.fsum(map(abs, (log_anywhere, self.log_total, log_vectors, 2.0**10)))
        self.doubt_anywhere = min(2 * size * self.share_anywhere, 1.0) + 2.0**-52

    @cached_property
    def total(self) -> Fraction:
        """The total weight, raised so that no output is proposed with less than its own."""
        chain = self.chain.whole()
        return Fraction(chain.total) * Fraction(2) ** chain.exponent * (1 + Fraction(chain.margin))


class _Stage:
    """The law of some targets given the pinned ones: P(o) proportional to ``exp(-epsilon / 2 * min(S(o), reach + 1))``.

    o ranges over the sorted vectors with the pinned values; the weights of its entries in the measure are a further
    factor. The law is a mixture: a part with weight q**(reach + 1) per vector, and a part proposed by a chain inside
    the windows, which hold all o with S <= reach, and accepted by a coin. Any chain gives the same law: the fast one,
    or the wide one where the fast one proposes in vain.
    """

    def __init__(
        self,
        windows: _Windows,
        targets: Sequence[int],
        epsilon: float,
        reach: int,
        pins: dict[int, int],
        measure: Measure | None = None,
    ) -> None:
        layout = windows.layout
        self._measure, self._last = measure, layout.last
        self._epsilon, self._reach, self._pins, self._n = epsilon, reach, pins, layout.n
        self._drawing = threading.Lock()  # the chain stores its last walk
        index = np.asarray(targets, dtype=np.int64)
        ranks = layout.ranks[index]
        lowers = np.zeros(index.size, np.int64)
        uppers = lowers + layout.last
        for j, code in sorted(pins.items()):
            lowers[j:] = code
        for j, code in sorted(pins.items(), reverse=True):
            uppers[: j + 1] = code
        self._lowers, self._uppers = lowers, uppers
        firsts, lasts = np.maximum(ranks - reach, 0), np.minimum(ranks + reach, layout.n)
        self._windows = windows.codes, layout.bases[index], ranks, firsts, lasts, lowers, uppers
        self._arguments = *self._windows, epsilon / 4, reach, measure
        self._log_vectors = math.log(self._vectors) if pins else _public_log_weight(measure, layout.last, index.size)
        self._log_anywhere = self._log_vectors - epsilon / 2 * (reach + 1)

    @cached_property
    def _quick(self) -> _Proposals:
        """Those of the fast chain, which narrow windows spare where bounds show that they decide the same."""
        return self._fast if self._narrow is None else self._propose(self._narrow)

    @cached_property
    def _fast(self) -> _Proposals:
        return self._propose(Chain(*self._arguments) if self._narrow is None else self._narrow.whole())

    @cached_property
    def _wide(self) -> _Proposals:
        return self._propose(WideChain(*self._arguments))

    @cached_property
    def _narrow(self) -> NarrowChain | None:
        """The fast chain in narrow windows, if they spare half of the states and their bounds hold at all pins."""
        if not self._pins:
            return None
        vectors, half = self._log_prefixes(), self._epsilon / 2
        room = float(vectors.max()) + _ROOM
        if room > self._reach * half or 2 * self._states(near := math.ceil(room / half)) > self._states(self._reach):
            return None
        if not self._holds_pins(near):
            return None
        chain = NarrowChain(partial(Chain, *self._arguments), near, vectors, *self._arguments)
        return chain if chain.is_bounded else None

    def _states(self, reach: int) -> int:
        """Return the number of indices within reach of the ranks, and between the ranks of the pins."""
        ranks = self._windows[2]
        pins = np.concatenate([[0], ranks[sorted(self._pins)], [self._n]])
        after = np.searchsorted(pins, ranks)
        return int(np.sum(np.minimum(ranks + reach, pins[after]) - np.maximum(ranks - reach, pins[after - 1])))

    def _holds_pins(self, near: int) -> bool:
        """Whether all indices that a pin can have are less than `near` from its rank."""
        codes, bases, ranks = self._windows[:3]
        index = np.array(sorted(self._pins))
        first, last = np.maximum(ranks[index] - near + 1, 0), np.minimum(ranks[index] + near, self._n + 1)
        pins = self._lowers[index]
        return bool(np.all((codes[bases[index] + first] < pins) & (pins < codes[bases[index] + last])))

    def _propose(self, chain: Chain) -> _Proposals:
        return _Proposals(chain, self._log_anywhere, self._log_vectors)

    def _log_prefixes(self) -> NDArray[np.float64]:
        """Return the logarithm of the weight of all sorted vectors from the target after the last
        pin to each target.
        """
        logs = np.zeros(len(self._lowers) + 1)  # before the first target none
        for j, length in self._blocks():
            weights = weights_of_all(self._measure, int(self._lowers[j]), int(self._uppers[j]), length)
            logs[j + 1 : j + length + 1] = [math.log(weight) for weight in weights[1:]]
        for j, code in self._pins.items():
            logs[j + 1] = math.log(weight_of_all(self._measure, code, code, 1))
            logs[j + 1] += 0.0 if j - 1 in self._pins else logs[j]
        return logs[1:]

    @cached_property
    def _vectors(self) -> int:
        """The weight of all sorted vectors with the pinned values."""
        weight = math.prod(weight_of_all(self._measure, code, code, 1) for code in self._pins.values())
        for j, length in self._blocks():
            weight *= weight_of_all(self._measure, int(self._lowers[j]), int(self._uppers[j]), length)
        return weight

    @property
    def log_total(self) -> float:
        """The logarithm of Z, with relative error e**-42 in Z; exact up to rounding if the windows hold all records."""
        inside = self._wide.log_total
        return inside if self._reach == self._n else float(np.logaddexp(self._log_anywhere, inside))

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """Yield the first target and the number of targets of each block between pins."""
        targets = len(self._lowers)
        free = [j for j in range(targets) if j not in self._pins]
        for j in free:
            if j == 0 or j - 1 in self._pins:
                yield j, next(i for i in range(j, targets + 1) if i == targets or i in self._pins) - j

    def scores(self, vectors: NDArray[np.int64]) -> NDArray[np.int64]:
        """min(S(o), reach + 1) of each row."""
        out = np.empty(len(vectors), np.int64)
        self._fast.chain.scores(np.ascontiguousarray(vectors), out)
        return out

    def logpmf(self, vectors: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the natural logarithms of the probabilities of rows."""
        inside = np.all(vectors[:, 1:] >= vectors[:, :-1], axis=1)
        inside &= np.all((self._lowers <= vectors) & (vectors <= self._uppers), axis=1)
        found = np.full(len(vectors), -np.inf)
        if inside.any():
            o = vectors[inside]
            found[inside] = -self._epsilon / 2 * self.scores(o) - self.log_total
            if self._measure is not None:
                weights = self._measure.weights(o.reshape(-1), o.reshape(-1)).reshape(o.shape)
                found[inside] += np.log(weights).sum(axis=1)
        return found

    def draw(self, source: np.random.BitGenerator, *, exact: bool = False, void: int = 0) -> NDArray[np.int64]:
        """Draw once, after so many rounds in vain.

        `exact` decides every choice in exact arithmetic, with the same output for the same words.
        """
        for rounds in itertools.count(void):
            proposals = self._quick if rounds < _FAST_ROUNDS else self._wide
            if self._sends_anywhere(next_word(source), source, proposals, exact):
                break
            with self._drawing:
                o = proposals.chain.draw(source, exact=exact)
                if o is None or (score := proposals.chain.score(o)) > self._reach:
                    continue
                if self._accepts(next_word(source), source, proposals, score, exact):
                    return o
        return self.anywhere(source)

    def _sends_anywhere(self, word: int, source: np.random.BitGenerator, proposals: _Proposals, exact: bool) -> bool:
        if not exact and abs(word * 2.0**-64 - proposals.share_anywhere) > proposals.doubt_anywhere:
            return word * 2.0**-64 < proposals.share_anywhere
        from dpfast._kernels._balls import goes_anywhere

        return goes_anywhere(
            word, lambda: next_word(source), self._epsilon, self._reach + 1, self._vectors, proposals.total
        )

    def anywhere(self, source: np.random.BitGenerator) -> NDArray[np.int64]:
        """Draw any sorted vector with the pinned values, by the measure."""
        o = self._lowers.copy()
        for j, length in self._blocks():
            first, last, run = int(self._lowers[j]), int(self._uppers[j]), o[j : j + length]
            if self._measure is None:
                fill_multiset(source, first, last - first + 1, run)
            else:
                run[:] = draw_multiset(self._measure, first, last, length, lambda: next_word(source))
        return o

    def _accepts(
        self, word: int, source: np.random.BitGenerator, proposals: _Proposals, score: int, exact: bool
    ) -> bool:
        """Toss the coin: True with probability (q**score - q**(reach + 1)) / (the chain's weight)."""
        chain = proposals.chain
        doubt = 4 * chain.margin + math.exp(-self._epsilon / 2 * (self._reach + 1 - score)) + 2.0**-40
        if not exact and chain.certain and (word >> 11) * 2.0**-53 < 1 - doubt - 2.0**-50:
            return True
        odds, runs = chain.odds()
        counts = [weight_of_all(self._measure, start, start + width - 1, length) for start, width, length in runs]
        if not exact and not chain.certain and word >> 16 and self._is_far_below(proposals, odds, counts, score):
            return False
        from dpfast._kernels._balls import keeps, proposed_weight

        proposed = proposed_weight(odds, counts, proposals.total)
        return keeps(word, lambda: next_word(source), self._epsilon, score, self._reach + 1, proposed)

    def _is_far_below(
        self,
        proposals: _Proposals,
        odds: Sequence[tuple[float, NDArray[np.float64]]],
        counts: Sequence[int],
        score: int,
    ) -> bool:
        """Whether the coin of an output that was raised has a probability below e**-40 < 2**-57."""
        log_odds = math.fsum(math.log(weight) - math.log(weights.sum()) for weight, weights in odds)
        log_proposed = proposals.log_total + log_odds - math.fsum(map(math.log, counts))
        return -self._epsilon / 2 * score - log_proposed < -40


class StageOfGroups(_Stage):
    """The stage of all groups of one size, whose codes `draws` changes; it decides what doubles leave open."""

    def __init__(self, plan: Joint) -> None:
        mechanism, layout, stages = plan.mechanism, plan.layout, plan.stages
        blank = [np.zeros(last - first + 1, np.int64) for first, last in layout.stretches]
        windows, targets = _Windows.of(layout, blank), range(len(layout.ranks))
        super().__init__(windows, targets, stages.epsilon, stages.reach, {}, mechanism.base_measure)
        self._chain = GroupChain(*self._arguments)
        read = [np.arange(first, last + 1) for first, last in layout.stretches]
        ranks = np.concatenate([np.zeros(len(layout.before), np.int64), *read, np.zeros(len(layout.after), np.int64)])
        self.draws = GroupStage(
            self._chain,
            windows.codes,
            ranks,
            plan.places.astype(np.int64),
            stages.epsilon,
            stages.reach,
            layout.last,
            (self._log_anywhere, self._log_vectors),
            self,
        )

    def goes_anywhere(self, word: int, source: np.random.BitGenerator) -> bool:
        return self._sends_anywhere(word, source, self._propose(self._chain), exact=True)

    def keeps(self, word: int, source: np.random.BitGenerator, score: int) -> bool:
        return self._accepts(word, source, self._propose(self._chain), score, exact=False)

    def rest(self, source: np.random.BitGenerator) -> NDArray[np.int64]:
        """Draw by the wide chain, after rounds of the fast one in vain."""
        self.__dict__.pop("_wide", None)  # that of another group
        return self.draw(source, void=_FAST_ROUNDS)


class JointOfGroups(SortedGroups):
    """The joint draws of each of many groups by one kernel; if records are to be left out, one by one."""

    def groups(self, values: Any, groups: Grouping, threads: int = 1) -> Draw:
        one_by_one = self.mechanism.leaves_out and not isinstance(values, Counted) and values.ndim == 1
        if one_by_one and absent_in(values):
            return Plan.groups(self, values, groups, threads)
        return super().groups(values, groups, threads)

    def _draws(self, records: NDArray[np.float64], ends: NDArray[np.int64], on: Grid) -> Draw:
        mechanism: Quantiles = self.mechanism
        largest = _groups.LARGEST_GROUP
        stages: list[GroupStage | None] = [None] * (largest + 1)
        for n in sizes_of(ends, largest):
            plan = Joint(mechanism, n)
            stages[n] = None if plan.stages.coarse else StageOfGroups(plan).draws
        where: dict[str, Any] = {"lower": on.lower, "upper": on.upper, "step": on.step, "first": on.first}
        drawing = threading.Lock()  # the chains store their last walks

        def draw(start: int, stop: int, source: np.random.BitGenerator) -> NDArray[np.float64] | None:
            refuse(STEP, mechanism)  # it may have been made outside of a ledger
            parts = ends[start : stop + 1]
            codes = np.zeros((stop - start, len(mechanism.qs)), np.int64)

            def kernel(first: int) -> int:
                return draw_groups(source, records, parts, first, codes, stages, rounds=_FAST_ROUNDS, **where)

            with drawing:
                large = self.stepwise(kernel, records, parts, on, source)
            empty = np.diff(parts) == 0
            if empty.all():
                return None
            values = mechanism.grid.decode(codes)
            values[empty] = np.nan
            for place, release in large.items():
                values[place] = release
            return values

        return draw


class JointQuantiles(Law):
    """The law of a joint release of quantiles: vectors of grid codes in the order of the qs.

    Made by ``Quantiles.law``. `logpmf(k)` and `value(k)` take codes of shape (..., m), and `sample(size)` returns them;
    `outcomes()` lists all of them on small grids.
    """

    def __init__(
        self,
        windows: _Windows,
        stages: _Stages,
        *,
        places: NDArray[np.intp],
        grid: Points,
        measure: Measure | None = None,
    ) -> None:
        self.grid, self._measure = grid, measure
        self._windows, self._stages, self._places = windows, stages, places
        self._all = range(len(windows.layout.ranks))
        if stages.coarse:
            self._first = _Stage(windows, stages.coarse, stages.epsilon, stages.reach_coarse, {}, measure)
        else:
            self._first = _Stage(windows, self._all, stages.epsilon, stages.reach, {}, measure)

    def outcomes(self) -> NDArray[np.int64]:
        m, size = len(self._all), self.grid.size
        checks.outcomes(math.comb(size - 1 + m, m))
        vectors = np.array(list(itertools.combinations_with_replacement(range(size), m)), np.int64)
        return vectors[:, self._places]

    def _second(self, pinned: NDArray[np.int64]) -> _Stage:
        pins = dict(zip(self._stages.coarse, pinned.tolist(), strict=True))
        return _Stage(self._windows, self._all, self._stages.epsilon, self._stages.reach, pins, self._measure)

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = containers.integers("k", k)
        vectors = codes.reshape(-1, codes.shape[-1])
        o = vectors[:, np.unique(self._places, return_index=True)[1]]
        found = np.full(len(o), -np.inf)
        alike = np.flatnonzero(np.all(o[:, self._places] == vectors, axis=1))
        pinned = o[alike][:, list(self._stages.coarse) or slice(None)]
        found[alike] = self._first.logpmf(pinned)
        if self._stages.coarse:
            possible = alike[found[alike] > -np.inf]
            each, which = np.unique(o[possible][:, list(self._stages.coarse)], axis=0, return_inverse=True)
            for i, pins in enumerate(each):
                rows = possible[which.reshape(-1) == i]
                found[rows] += self._second(pins).logpmf(o[rows])
        return found.reshape(codes.shape[:-1])

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        if size is None:
            return self._draw(bit_generator(rng))
        shape = checks.shape(size)
        out = np.empty((math.prod(shape), len(self._places)), np.int64)
        for source, block in blocks(rng, np.arange(len(out))):
            for i in block:
                out[i] = self._draw(source)
        return out.reshape(*shape, -1) if out.size else out.reshape(*shape, out.shape[1])

    def _draw(self, source: np.random.BitGenerator, *, exact: bool = False) -> NDArray[np.int64]:
        o = self._first.draw(source, exact=exact)
        if self._stages.coarse:
            o = self._second(o).draw(source, exact=exact)
        return np.asarray(o[self._places])

    def value(self, k: ArrayLike) -> Any:
        return self.grid.decode(k)
