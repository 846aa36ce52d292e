"""The inverse sensitivity mechanism: pure epsilon-differential privacy for every statistic with an attack range."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _groups, _levels
from dpfast._kernels._measures import Measure
from dpfast.core import checks, measures
from dpfast.core.grid import FloatGrid, Grid, Points, check_grid, check_points
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.spending import sums_epsilons
from dpfast.core.traps import Trap, of_private_n, presumed_numbers
from dpfast.core.types import Exact
from dpfast.laws import FlippedIntervals, InterpolatedIntervals, NestedIntervals, score_cap
from dpfast.mechanisms.assumptions import Assumed, averaged, error, error_on_floats, huber_law, summaries, target
from dpfast.mechanisms.expectations import expected_error, law_for
from dpfast.mechanisms.foreseen import GUESS, Foreseen
from dpfast.mechanisms.grouped import QuantilesOfGroups, RanksOfGroups
from dpfast.mechanisms.plan import Plan
from dpfast.mechanisms.prediction import Expected
from dpfast.mechanisms.statistic import StatisticMechanism
from dpfast.mechanisms.thinning import MOST_LEVELS, MOST_SQUARED_LEVELS, DifferenceLevels, Levels, Ranked, RankLevels
from dpfast.mechanisms.thinning import draw as draw_thinly
from dpfast.mechanisms.usefulness import (
    EVEN_RANGE,
    OF_SELECTION,
    enough_for_error,
    enough_for_quantiles,
    least_product,
    of_quantiles,
)
from dpfast.statistics import (
    Huber,
    InterquartileRange,
    Mean,
    MomentStatistic,
    OrderStatistic,
    RankStatistic,
    Statistic,
    Summary,
    TrimmedMean,
    UserStatistic,
    WinsorizedMean,
)
from dpfast.statistics.rank import TrimmedSum
from dpfast.streaming import Chunks, Ordered, PresentRanks, Ranks, Reading
from dpfast.theory.quantiles import quantile_error

_SELECTIONS = ("exponential", "permute-and-flip")
_FEW_POINTS = 4096
_KINDS = {  # of the statistics, besides quantiles, whose groups a kernel draws
    Mean: _levels.SUM,
    TrimmedMean: _levels.SUM,
    WinsorizedMean: _levels.SUM,
    InterquartileRange: _levels.DIFFERENCE,
    Huber: _levels.HUBER,
}
_MOST_INTERPOLATED = 2.0**10  # epsilon, as a draw takes 1 + epsilon / 2 proposals


@dataclass(frozen=True, repr=False)
class InverseSensitivity(StatisticMechanism):
    """Release a statistic by inverse sensitivity: each grid point g with weight ``exp(-epsilon / 2 * score(g))``.

    score(g) is the least t such that g lies in the statistic's attack range: replacing t records can move the statistic
    to g, or to both sides of g. The statistic itself has the score -t for the greatest t such that replacing t records
    cannot move it: below 0 where records are tied. Pure epsilon-differential privacy under one replaced record; the
    number of records is public. For quantiles also under one record added or removed, with a private number of records:
    score(g) is then the least number of records to add or remove so that g is a q-quantile, and for the 0- and the
    1-quantile the weight is ``exp(-epsilon * score(g))``, with the score 0 for the statistic.

    Parameters
    ----------
    statistic : dpfast.statistics.RankStatistic
        ``Median()``, ``Quantile(0.9)``, ``TrimmedMean(0.1)``, ``WinsorizedMean(0.1)``, ``Mean()``, ``Huber(2.0)`` or
        ``InterquartileRange()``.
    grid : Grid or FloatGrid
        Public bounds and granularity of data and release, in data units. A `FloatGrid`, which needs no bounds, is for
        quantiles. For one quantile ``missing="drop"`` leaves out missing records at no cost, also for "replace-one",
        where n counts them: the law is that of the records that are present, without any the base measure.
    epsilon : float
        Positive; rounded down to a double. Above about 20 the release is the exact statistic except with negligible
        probability: private in name only.
    radius : float
        At least 0, in data units, rounded to a multiple of the step: every value within `radius` of a possible value of
        the statistic scores as well as that value. 0 by default, and always on a `FloatGrid`.
    neighbors : {"replace-one", "add-remove"}
        "add-remove" is for one quantile: n is private and may be 0, and a q-quantile is any g with at most q n records
        below and at least q n records at or below g. The median then has half the error at the same epsilon; the
        0-quantile is any point up to the least record, the 1-quantile any point from the greatest record on. On a
        `FloatGrid`, the warning of too few records presumes 100, as n is private: `explanation` says how many it takes.
    measure : {"auto", "uniform", "integers", "decimal", "dyadic"} or sequence of int
        The public base measure: the weight of each point is multiplied by its weight in the measure. More weight on
        round numbers reduces the error for records with ties, such as ages given as floats, and increases it for other
        data. "uniform": equal weights. "integers": half of the total weight is on the multiples of 1, in data units.
        "decimal": half of it is on the multiples of 0.01, 0.1, 1, 10, ... in equal shares (for fractions, on the
        nearest points); of 1 always, of the others if the grid has at least eight. "dyadic": half of it is on the
        multiples of 2, 4, 8, ... steps in equal shares, if the grid has at least 64.
        "auto", the default: each of the multiples of "decimal" that are more than 64 steps apart has 1/64 of the weight
        of all points, which costs continuous data at most 2 % of their error; for quantiles on grids of at most 2**40
        points, else "uniform". On a `FloatGrid`, "auto" has 11/16 of the weight on modest magnitudes, and 1/16 each on
        zero and on the numbers of 1, 2, 3 and 4 significant digits; there is only "uniform" besides. A sequence: a
        positive weight for each point of the grid, chosen without knowledge of the data. The trimmed, the Winsorized
        and the plain mean have only "uniform".
    selection : {"auto", "exponential", "permute-and-flip"}
        Permute-and-flip never has a larger expected score: on grids of at most some thousand points it has less error,
        up to 2 times less. It costs more in a ledger by rho, as its privacy loss is not of bounded range, and takes a
        random word for each level. "auto", the default, stands for one of the two from the constructor on:
        permute-and-flip for quantiles and interquartile ranges on grids of at most 4096 points, but "exponential"
        within the block of a `Ledger` that composes by more than epsilon (``rho=``, ``composition="renyi"``,
        ``plan=``). For such a ledger, give ``selection="exponential"`` to a mechanism made outside of its block.

    interpolate : bool
        True for a quantile under "replace-one": the score rises linearly from each order statistic to the next, instead
        of by a step. For records without ties the noise is then 0.97, 0.90, 0.73 and 0.48 times as large at epsilon 1,
        2, 4 and 8; it may be larger for records with ties that are a few steps apart. Epsilon is at most 1024, with the
        exponential mechanism, radius 0 and the measure "uniform", which "auto" then stands for.

    Raises
    ------
    TypeError, ValueError
        From the constructor: a wrong parameter; a measure that favours no point of the grid. From a call, once n is
        known: for a mean of g records, g times the number of grid points is 2**63 or more.

    Notes
    -----
    Privacy: the score changes by at most 1 with one record, so the exponential mechanism of exponent epsilon / 2 is
    epsilon-DP with any public base measure (https://dpfast.readthedocs.io/en/latest/proofs/base-measures.html). Capping
    the score at a public number preserves this and makes a window of order statistics sufficient
    (https://dpfast.readthedocs.io/en/latest/proofs/nested-intervals.html,
    https://dpfast.readthedocs.io/en/latest/proofs/add-remove.html,
    https://dpfast.readthedocs.io/en/latest/proofs/missing.html). For the 0- and the 1-quantile under "add-remove" a
    record moves all scores in the same direction, and the exponent is epsilon. The law is exact: no float decides it.
    Cost: O(n) to select, about the time of two or three sums of x, and O(window) to draw, window = 4 (log(size) + 42) /
    epsilon order statistics; with a measure, size is the weight of all points over the least weight: on `FloatGrid()`
    the window is 1.14 times as wide. A window of more than 2**16 order statistics is not drawn from as a whole: a call
    then takes some hundred of them and a few passes, for any epsilon. Timing is outside the guarantee.

    References
    ----------
    Asi and Duchi 2020, "Near instance-optimality in differential privacy"; Chaudhuri and Hsu 2012 (the problem).

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> from dpfast.statistics import Median
    >>> mechanism = dpf.InverseSensitivity(Median(), grid=dpf.Grid(0, 100, step=1), epsilon=1.0)
    >>> mechanism
    <InverseSensitivity release by permute-and-flip of the median on 101 points from 0.0 to 100.0, step 1.0: epsilon \
= 1 (pure differential privacy) for one record replaced (the number of records is public)>
    >>> ages = np.random.default_rng(0).integers(18, 90, 1000)
    >>> 50 <= mechanism(ages) <= 58
    True
    """

    statistic: RankStatistic
    grid: Points = field(kw_only=True)
    epsilon: float = field(kw_only=True)
    radius: float = field(kw_only=True, default=0.0)
    neighbors: str = field(kw_only=True, default="replace-one")
    measure: str | Sequence[int] = field(kw_only=True, default="auto")
    selection: str = field(kw_only=True, default="auto")
    interpolate: bool = field(kw_only=True, default=False)

    if TYPE_CHECKING:  # epsilon may be given exactly

        def __init__(
            self,
            statistic: RankStatistic,
            *,
            grid: Points,
            epsilon: Exact,
            radius: float = 0.0,
            neighbors: str = "replace-one",
            measure: str | Sequence[int] = "auto",
            selection: str = "auto",
            interpolate: bool = False,
        ) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic):
            raise TypeError(f"statistic must be one of dpfast.statistics, not {type(self.statistic).__name__}")
        statistic: Any = self.statistic
        if not isinstance(statistic, RankStatistic):
            other = "SmoothSensitivity" if isinstance(statistic, UserStatistic) else "GlobalSensitivity"
            raise TypeError(f"the {statistic} has no attack range in a few order statistics: use {other}")
        (check_points if self.statistic.order_only else check_grid)(self.grid)
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        checks.choice("neighbors", self.neighbors, ("replace-one", "add-remove"))
        checks.choice("selection", self.selection, ("auto", *_SELECTIONS))
        if self.hides_n and not isinstance(self.statistic, OrderStatistic):
            other = "dpf.GlobalSensitivity takes both, and " if isinstance(statistic, MomentStatistic) else ""
            raise ValueError(
                f"neighbors must be 'replace-one' for the {statistic}, not 'add-remove': {other}"
                "dpf.Resized(dpf.InverseSensitivity(...), epsilon=...) hides n"
            )
        object.__setattr__(self, "radius", checks.nonnegative("radius", self.radius))
        if self.radius and isinstance(self.grid, FloatGrid):
            raise ValueError(f"radius must be 0 on a FloatGrid, not {self.radius!r}")
        self.check_missing()
        self.statistic.last(self.grid, 1)  # reject a grid that fails for every n
        object.__setattr__(self, "measure", measures.checked(self.measure))
        self.base_measure  # noqa: B018  # reject a measure that does not fit the grid
        if self.interpolate is not False:
            self._check_interpolation()
        if self.selection == "auto":
            object.__setattr__(self, "selection", _SELECTIONS[self._gains_by_flips and sums_epsilons()])

    @property
    def leaves_out(self) -> bool:
        """Whether the law is that of the records that are not missing; n, of all, may be public: for one quantile."""
        return self.grid.missing == "drop" and isinstance(self.statistic, OrderStatistic) and not self.interpolate

    def _check_interpolation(self) -> None:
        if self.interpolate is not True:
            raise TypeError(f"interpolate must be True or False, not {self.interpolate!r}")
        if not isinstance(self.statistic, OrderStatistic):
            raise ValueError(f"interpolate must be False for the {self.statistic}, which is not a quantile")
        others = {"neighbors": self.hides_n, "radius": self.radius > 0, "selection": self._flips}
        others["measure"] = self.base_measure is not None
        for name, excluded in others.items():
            if excluded:
                raise ValueError(f"interpolate must be False for {name}={getattr(self, name)!r}")
        if self.epsilon > _MOST_INTERPOLATED:
            raise ValueError(f"epsilon must be at most 1024 with interpolate=True, not {self.epsilon!r}")

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, 0.0, self.neighbors)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        return PrivacyProfile(self.privacy, (("pure" if self._flips else "bounded-range", self.epsilon, 1),))

    @property
    def _flips(self) -> bool:
        return self.selection == "permute-and-flip"

    @property
    def _gains_by_flips(self) -> bool:
        """Whether permute-and-flip has less error, by public numbers
        (https://dpfast.readthedocs.io/en/latest/proofs/permute-and-flip.html).
        """
        statistic = self.statistic
        few = self.grid.size <= _FEW_POINTS and isinstance(self.grid, Grid) and not self.interpolate
        return isinstance(statistic, OrderStatistic | InterquartileRange) and few

    def __repr__(self) -> str:
        within = f" within {self.radius!r}" if self.radius else ""
        measure = self.measure if isinstance(self.measure, str) else "by weights"
        favoured = "" if measure == "auto" else f", measure {measure}"
        chosen = " by permute-and-flip" if self._flips else " with interpolated scores" if self.interpolate else ""
        return (
            f"<InverseSensitivity release{chosen} of the {self.statistic}{within} on {self.grid}{favoured}: "
            f"{self.privacy}>"
        )

    def cap(self, n: SupportsIndex) -> int:
        """Return the public cap on the score for n records: all scores from the cap on get the same weight.

        ``1 + ceil(2 / epsilon * (log(V) + 42))`` for V possible releases, or V the total weight of the base measure
        over its least weight, with 2 epsilon in place of epsilon if the exponent is epsilon. The points at the cap
        together have at most e**-42 of the probability.
        """
        base = self.base_measure
        count = checks.whole("n", n)
        releases = self.statistic.last(self.grid, count) + 1 if base is None else base.total / base.least
        return score_cap(self._rate, math.log(releases))

    @cached_property
    def base_measure(self) -> Measure | None:
        """The weights of the grid points, public; None if all are equal."""
        grid, statistic = self.grid, self.statistic
        if self.measure == "uniform" or (self.measure == "auto" and not isinstance(statistic, OrderStatistic)):
            return None
        if self.measure == "auto" and self.interpolate:
            return None
        if isinstance(grid, FloatGrid):
            return measures.on_floats(grid, self.measure)
        at, after = statistic.value(grid, 1, 0), statistic.value(grid, 1, 1)
        if after - at != grid.step or statistic.codes_per_step(2) != 1:
            raise ValueError(
                f"measure must be 'auto' or 'uniform' for the {statistic}, which is no multiple of the step"
            )
        return measures.measure_on(self.measure, round(at / grid.step), statistic.last(grid, 1), grid.step)

    @property
    def _rate(self) -> float:
        """Twice the exponent per unit of score: epsilon, or 2 epsilon if a record moves all scores in one direction."""
        return min(2 * self.epsilon, sys.float_info.max) if self._one_sided else self.epsilon

    @property
    def _one_sided(self) -> bool:
        """Whether a record moves all scores in one direction."""
        return self.hides_n and _level(self.statistic) in (0, 1)

    if TYPE_CHECKING:

        def plan(self, n: SupportsIndex | None = None) -> FromLevels: ...

    def _make_plan(self, n: int | None) -> Plan:
        if n is not None:
            return (FromFewLevels if self._thins(checks.records(n)) else FromLevels)(self, n)
        options: dict[str, Any]
        if (kind := _KINDS.get(type(self.statistic))) is not None:
            options = {
                "kind": kind,
                "epsilon": self.epsilon,
                "corner": self.statistic.corner(self.grid) if isinstance(self.statistic, Huber) else 0,
                "measure": self.base_measure,
                "flips": self._flips,
            }
            return RanksOfGroups(self, options, self._row)
        if not isinstance(self.statistic, OrderStatistic) or self.interpolate:
            return super()._make_plan(n)
        options = {
            "epsilon": self._rate,
            "cap": self.cap(1),
            "q": _share(_level(self.statistic)) if self.hides_n else None,
            "radius": self._radius_codes(1),
            "last": self.grid.size - 1,
            "deep": not self._one_sided,
            "measure": self.base_measure,
            "flips": self._flips,
        }
        return (FromPrivateLevels if self.hides_n else QuantilesOfGroups)(self, options)

    def _row(self, n: int) -> tuple[int, ...]:
        """Return what is public of a group of n records, for `_levels.draw_groups`."""
        statistic, levels, ranks = self.statistic, self.plan(n).levels, self.statistic.ranks(n)
        corner = statistic.corner(n) if isinstance(statistic, TrimmedSum) else 0
        return levels, ranks[0], ranks[-1], corner, statistic.last(self.grid, n), self._radius_codes(n)

    def _thins(self, n: int) -> bool:
        """Whether a draw for n records reads a few of the levels only: the levels are many, and their law allows it."""
        if not isinstance(self.statistic, OrderStatistic | InterquartileRange):
            return False
        count = self._private_levels(n) if self.hides_n else self._levels(n)
        most = MOST_LEVELS if isinstance(self.statistic, OrderStatistic) else MOST_SQUARED_LEVELS
        return count > most and isinstance(self.grid, Grid) and not (self._flips or self.interpolate)

    def reading(self) -> Reading:
        if not self.hides_n:
            if not self.leaves_out:
                return self.statistic.reading(self.grid, lambda n: self.plan(n).levels)
            ranks = self.statistic.reading(self.grid, self._levels)
            assert isinstance(ranks, Ranks)
            return PresentRanks.of_the_rest(ranks, Summary(self.grid, 0, 0, ()))

        def finish(order: Ordered) -> _PrivateWindow:
            n = order.n
            return _PrivateWindow(n, order.window(*self._stretch(n)) if n else self._empty_window())

        ranks = Ranks(self.grid, lambda n: [self._stretch(n)], finish)
        empty = _PrivateWindow(0, self._empty_window())
        return PresentRanks.of_the_rest(ranks, empty) if self.leaves_out else ranks

    def law_of(self, summary: Summary | _PrivateWindow) -> NestedIntervals:
        lower, upper, depth = self._boxes(summary)
        if self.interpolate:
            last = self.grid.size - 1
            return InterpolatedIntervals(lower, upper, epsilon=self._rate, last=last, grid=self.grid, depth=depth)
        return (FlippedIntervals if self._flips else NestedIntervals)(
            lower,
            upper,
            epsilon=self._rate,
            last=self.statistic.last(self.grid, summary.n),
            grid=self.grid,
            decode=partial(self.statistic.decode, self.grid, summary.n),
            measure=self.base_measure,
            depth=depth,
        )

    def _enough(self) -> float:
        statistic, grid = self.statistic, self.grid
        if not isinstance(grid, Grid):
            return 0.0
        if not isinstance(statistic, OrderStatistic):
            spread = EVEN_RANGE if isinstance(statistic, InterquartileRange) else None
            return enough_for_error(OF_SELECTION, self.epsilon, spread=spread)
        per_record = max(statistic.level, 1 - statistic.level) if self.hides_n else 1.0
        return enough_for_quantiles(grid, [statistic.level], self.epsilon, per_record)

    def _explained_error(self, n: int | None) -> str:
        text, statistic, grid = super()._explained_error(n), self.statistic, self.grid
        if not isinstance(statistic, OrderStatistic) or not isinstance(grid, FloatGrid) or self._one_sided:
            return text
        least = least_product(grid, self.base_measure, (statistic.level,), self._per_record)
        reached = "" if n is None else f": here it is {n * self.epsilon:.3g}"
        if self.hides_n:
            least_n = presumed_numbers()[0]
            reached = f", and a warning presumes {least_n:,} records, as n is private: release dpfast.count before"
        return f"{text}. A release on floats requires that n epsilon is at least {least:.3g}{reached}"

    @property
    def _per_record(self) -> float:
        """By how many records one that is changed moves the number below a point, of an order statistic."""
        assert isinstance(self.statistic, OrderStatistic)
        return float(max(self.statistic.level, 1 - self.statistic.level)) if self.hides_n else 1.0

    def _foreseen_of_many(self, n: int) -> Foreseen | None:
        """Return the ranks between a release and the quantile; of other statistics the error for even records."""
        statistic, grid = self.statistic, self.grid
        if not isinstance(statistic, OrderStatistic) or self._one_sided:
            return super()._foreseen_of_many(n)
        few = isinstance(grid, FloatGrid) and any(self.plan().traps_of(n))
        return GUESS if few else Foreseen.of_rank(2 / self.epsilon * self._per_record, statistic.level, n)

    def _expected_under(self, n: int, assumed: Assumed) -> Expected:
        if self.hides_n:
            return self._with_public_n().expected_error(n, assumed)
        if isinstance(self.grid, FloatGrid):
            raise TypeError("no expected error is known on a FloatGrid: use error(n, distribution=...)")
        # With or without interpolation, the same imagined samples.
        levels = min(self.cap(n), self.statistic.breakdown(n)) + isinstance(self.statistic, OrderStatistic)
        return expected_error(self.law_of, self.statistic, assumed, self.grid, n, levels)

    def _error_under(self, n: int, assumed: Assumed, confidence: float) -> float:
        statistic, grid = self.statistic, self.grid
        if self.hides_n:
            return self._with_public_n()._error_under(n, assumed, confidence)
        population, last, levels = target(statistic, assumed), statistic.last(grid, n), self._levels(n)
        if isinstance(statistic, Huber):
            cdf = huber_law(statistic, assumed, grid, n, levels, partial(law_for, self.law_of))
        else:
            cdf = averaged([law_for(self.law_of, sample) for sample in summaries(statistic, assumed, grid, n, levels)])
        if isinstance(grid, FloatGrid):
            return error_on_floats(cdf, grid, population, confidence)
        ends = statistic.value(grid, n, 0), statistic.value(grid, n, last)
        return error(cdf, last, ends, population, confidence)

    def _error_at_density(self, n: int, density: float, confidence: float) -> float:
        if not isinstance(self.statistic, OrderStatistic):
            raise TypeError(f"a density does not determine the error of the {self.statistic}: give distribution=")
        if self.radius:
            raise TypeError("a density does not determine the error with a radius: give distribution=")
        if isinstance(self.grid, FloatGrid):
            raise TypeError("a density does not determine the error on a FloatGrid: give distribution=")
        if self.hides_n:
            return self._with_public_n()._error_at_density(n, density, confidence)
        q, width = self.statistic.level, self.grid.upper - self.grid.lower
        return quantile_error(n, q, density=density, width=width, epsilon=self.epsilon, confidence=confidence)

    def _with_public_n(self) -> InverseSensitivity:
        """Return the "replace-one" mechanism with the same error to within a rank: its weight per rank is the same."""
        q = _level(self.statistic)
        epsilon, grid = float(Fraction(self._rate) / max(q, 1 - q)), self.grid.with_missing("lower")
        return replace(self, epsilon=epsilon, grid=grid, neighbors="replace-one")

    def _stretch(self, n: int) -> tuple[int, int]:
        """Return the first and last rank needed if n is private; outside 1..n one rank on each side is enough."""
        first, final = self._private_ranks(n)
        return min(max(int(first[-1]), 0), n), max(min(int(final[-1]), n + 1), 1)

    def _private_ranks(self, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the ranks between which the points of score at most t lie, for t below the cap; all points from t = n
        on.
        """
        return private_ranks(_level(self.statistic), n, self._private_levels(n))

    def _private_levels(self, n: int) -> int:
        """Return the number of levels if n is private: all points have a score of at most n."""
        return min(self.cap(n), max(n, 1))

    def _empty_window(self) -> NDArray[np.int64]:
        """Return the codes of the ranks 0 and 1 of an empty data set."""
        return np.array([0, self.grid.size - 1])

    def _private_boxes(self, window: _PrivateWindow) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the least and greatest code of score at most t, if n is private."""
        n, codes = window
        start, stop = self._stretch(n)
        first, final = self._private_ranks(n)
        return codes[np.clip(first, start, stop) - start], codes[np.clip(final, start, stop) - start]

    def _boxes(self, summary: Summary | _PrivateWindow) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """Return the intervals of the points of score at most t for all levels t, and the depth.

        The intervals are the attack ranges, widened by the radius.
        """
        if isinstance(summary, _PrivateWindow):
            (lower, upper), last = self._private_boxes(summary), self.grid.size - 1
        elif not summary.n:  # all records are missing
            lower, upper = np.split(self._empty_window(), 2)
            return lower, upper, 0
        else:
            (lower, upper), last = self.statistic.attack_range(summary), self.statistic.last(self.grid, summary.n)
        ties = int((lower != upper).argmax()) if lower[-1] != upper[-1] else len(lower)  # they are nested
        depth = 0 if self._one_sided else max(ties - 1, 0)
        depth = min(depth, len(lower) - 2) if self.interpolate else depth
        radius = self._radius_codes(summary.n)
        if radius == 0:
            return lower, upper, depth
        return np.maximum(lower - radius, 0), upper + np.minimum(last - upper, radius), depth

    def _levels(self, n: int) -> int:
        """Return the number of levels, public like the number of order statistics that they need.

        With interpolation there is one more, at which the last gaps end.
        """
        return min(self.cap(n), self.statistic.breakdown(n)) + self.interpolate

    def _radius_codes(self, n: int) -> int:
        """Return the radius in release codes, rounded."""
        if not self.radius:
            return 0
        codes = self.radius / self.grid.step * self.statistic.codes_per_step(n)
        return round(min(codes, self.statistic.last(self.grid, n)))


class _PrivateWindow(NamedTuple):
    """n and the codes of the ranks that the mechanism needs."""

    n: int
    codes: NDArray[np.int64]


def _level(statistic: Statistic) -> Fraction:
    """Return the q of a quantile as an exact fraction."""
    assert isinstance(statistic, OrderStatistic)
    return Fraction(statistic.level)


def private_ranks(q: Fraction, n: int, levels: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``ceil(q n - t c)`` and ``floor(q n + t c) + 1``, c = max(q, 1 - q), t = 0..levels - 1; levels at most n + 1.

    Adding or removing t records can make the points between the order statistics of these ranks a q-quantile.
    """
    first, final = np.empty(levels, np.int64), np.empty(levels, np.int64)
    _groups.private_ranks(_share(q), n, first, final)
    return first, final


def _share(q: Fraction) -> tuple[int, int, bool]:
    """Return a quantile's q for the kernels: ``numerator * 2**-shift``, and whether it is at least 1/2."""
    return q.numerator, q.denominator.bit_length() - 1, q >= Fraction(1, 2)


class Leveled(Plan):
    """A draw from nested intervals, the levels."""

    mechanism: InverseSensitivity

    def draw_from(self, summary: Summary | _PrivateWindow, source: np.random.BitGenerator) -> float:
        mechanism, out = self.mechanism, np.empty(1, np.int64)
        statistic, grid, rate = mechanism.statistic, mechanism.grid, mechanism._rate
        lower, upper, depth = mechanism._boxes(summary)
        last = statistic.last(grid, summary.n)
        if mechanism.interpolate:
            _levels.fill_interpolated(source, lower, upper, rate, last, out, depth)
        else:
            fill = _levels.fill_flips if mechanism._flips else _levels.fill
            fill(source, lower, upper, rate, last, out, mechanism.base_measure, depth)
        return statistic.value(grid, summary.n, int(out[0]))

    def _kernel(self, last: int, levels: int, **options: int) -> _levels.RankDraw:
        """Return the kernel for so many levels of an order statistic or a sum of several, with this last code."""
        mechanism, grid = self.mechanism, self.mechanism.grid
        even, _ = grid.evenly(np.empty(0))
        return _levels.RankDraw(
            mechanism._rate,
            mechanism._radius_codes(self.n or 1),
            even.lower,
            even.upper,
            even.step,
            even.first,
            last,
            mechanism.base_measure,
            levels=levels,
            flips=mechanism._flips,
            interpolates=mechanism.interpolate,
            deep=not mechanism._one_sided,
            floats=grid.floats if isinstance(grid, FloatGrid) else None,
            **options,
        )

    def _few(self, levels: Levels, n: int, source: np.random.BitGenerator) -> float:
        """Draw from very many levels, by a few of them."""
        mechanism, radius = self.mechanism, self.mechanism._radius_codes(n)
        measure, deep = mechanism.base_measure, not mechanism._one_sided
        code = draw_thinly(source, levels, epsilon=mechanism._rate, deep=deep, radius=radius, measure=measure)
        return mechanism.statistic.value(mechanism.grid, n, code)

    def _ranked(self, values: NDArray[Any], ranked: Ranked, count: int, threads: int) -> RankLevels:
        """Return the levels of an order statistic of the records of an array."""
        grid, radius = self.mechanism.grid, self.mechanism._radius_codes(1)
        assert isinstance(grid, Grid)
        return RankLevels(values, ranked, count=count, grid=grid, radius=radius, threads=threads)


class FromLevels(Leveled):
    """A draw for a public number of records, from an array by a kernel where the wanted ranks are next to each other.

    Attributes
    ----------
    levels : int
    """

    n: int

    def __init__(self, mechanism: InverseSensitivity, n: int) -> None:
        super().__init__(mechanism, n)
        self.levels = mechanism._levels(n)

    @cached_property
    def traps(self) -> tuple[Trap, ...]:  # type: ignore[override]
        mechanism, statistic = self.mechanism, self.mechanism.statistic
        if not (isinstance(mechanism.grid, FloatGrid) and isinstance(statistic, OrderStatistic)):
            return ()
        levels = (statistic.level,)
        return tuple(of_quantiles(mechanism.grid, mechanism.base_measure, levels, self.n, mechanism.epsilon))

    @cached_property
    def _direct(self) -> _Direct | None:
        mechanism, statistic, n = self.mechanism, self.mechanism.statistic, self.n
        if mechanism.resolves or not isinstance(statistic, OrderStatistic | TrimmedSum):
            return None
        ranks, reach = statistic.ranks(n), self.levels - 1
        records = ranks[-1] - ranks[0] + 1
        if records > 2 * self.levels:  # the windows around both ranks are not one
            return None
        corner = statistic.corner(n) if isinstance(statistic, TrimmedSum) else 0
        draw = self._kernel(statistic.last(mechanism.grid, n), self.levels, records=records, corner=corner)
        value = statistic.valued(mechanism.grid, n)
        missing = math.nan if mechanism.leaves_out else mechanism.grid.nan_value  # NaN: the kernel counts them
        return _Direct(draw.release, ranks[0] - reach, ranks[-1] + reach, missing, value)

    def draw(self, values: Any, source: np.random.BitGenerator, threads: int = 1) -> float:
        if (direct := self._direct) is None or isinstance(values, Chunks):
            return float(super().draw(values, source, threads))
        release, first, last, missing, value = direct
        code = release(source, values, first, last, missing, threads)
        return value(code) if code >= 0 else self._draw_present(values, -code, source, threads)

    def _draw_present(self, values: NDArray[Any], k: int, source: np.random.BitGenerator, threads: int) -> float:
        """Draw without the k > 0 records that are missing: they count as the least, and the ranks begin after them."""
        mechanism, n = self.mechanism, self.n - k
        if not n:
            return self.draw_from(Summary(mechanism.grid, 0, 0, ()), source)
        direct = FromLevels(mechanism, n)._direct
        assert direct is not None
        first, last, lower = direct.first + k, direct.last + k, mechanism.grid.lower
        return direct.value(direct.release(source, values, first, last, lower, threads))


class _Direct(NamedTuple):
    """The kernel that draws from an array, the ranks of its window, and what NaN and a release code stand for."""

    release: Callable[..., int]
    first: int
    last: int
    missing: float
    value: Callable[[int], float]


class FromFewLevels(FromLevels):
    """A draw from very many levels, for a public number of records: it reads a few of them."""

    def draw(self, values: Any, source: np.random.BitGenerator, threads: int = 1) -> float:
        statistic = self.mechanism.statistic
        reads = isinstance(values, Chunks) or self.mechanism.resolves or self.mechanism.leaves_out
        if reads or not isinstance(statistic, OrderStatistic):
            return float(Plan.draw(self, values, source, threads))
        ranked = Ranked.of_public_n(statistic.rank(self.n))
        return self._few(self._ranked(values, ranked, self.levels, threads), self.n, source)

    def draw_from(self, summary: Summary | _PrivateWindow, source: np.random.BitGenerator) -> float:
        if isinstance(self.mechanism.statistic, OrderStatistic):
            return super().draw_from(summary, source)
        assert isinstance(summary, Summary)
        mechanism, n = self.mechanism, self.n
        last, radius = mechanism.statistic.last(mechanism.grid, n), mechanism._radius_codes(n)
        return self._few(DifferenceLevels(summary, last=last, radius=radius), n, source)


class FromPrivateLevels(QuantilesOfGroups, Leveled):
    """A draw for a private number of records: nothing that depends on it is kept."""

    def __init__(self, mechanism: InverseSensitivity, options: dict[str, Any]) -> None:
        super().__init__(mechanism, options)
        self._cap, self._q = options["cap"], options["q"]

    @cached_property
    def _release(self) -> Callable[..., int]:
        return self._kernel(self.options["last"], self._cap).release_between

    @property
    def traps(self) -> tuple[Trap, ...]:  # type: ignore[override]
        """The traps of a presumed number of records, where there are no bounds: within them any number may do."""
        return tuple(of_private_n(self.traps_of)) if isinstance(self.mechanism.grid, FloatGrid) else ()

    def traps_of(self, n: int) -> Iterable[Trap]:
        mechanism, level = self.mechanism, _level(self.mechanism.statistic)
        if not isinstance(mechanism.grid, FloatGrid):
            return super().traps_of(n)
        measure, per_record = mechanism.base_measure, float(max(level, 1 - level))
        return of_quantiles(mechanism.grid, measure, (float(level),), n, mechanism.epsilon, per_record)

    def draw(self, values: Any, source: np.random.BitGenerator, threads: int = 1) -> float:
        mechanism = self.mechanism
        if isinstance(values, Chunks):
            return float(super().draw(values, source, threads))
        n, drops = len(values), mechanism.leaves_out
        if self._cap > MOST_LEVELS and not drops and mechanism._thins(n):
            ranked = Ranked.of_private_n(_level(mechanism.statistic), n)
            return self._few(self._ranked(values, ranked, mechanism._private_levels(n), threads), n, source)
        # NaN: the kernel counts the missing records. Then they count as the least, and the ranks begin after them.
        code = self._drawn(values, 0, math.nan if drops else mechanism.grid.nan_value, source, threads)
        code = code if code >= 0 else self._drawn(values, -code, mechanism.grid.lower, source, threads)
        return float(mechanism.grid.value(code))

    def _drawn(
        self, values: NDArray[Any], absent: int, missing: float, source: np.random.BitGenerator, threads: int
    ) -> int:
        n = len(values) - absent
        ranks = np.empty((2, min(self._cap, max(n, 1))), np.int64)
        low, high = ranks
        _groups.private_ranks(self._q, n, low, high)
        return self._release(source, values, low, high, absent, missing, threads)
