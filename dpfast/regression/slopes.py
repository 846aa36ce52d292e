"""Theil-Sen regression: the median of slopes through pairs of records, then the median of the residuals."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, SupportsIndex, TypeAlias

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _slopes
from dpfast._kernels._threads import each
from dpfast.choosing import Explain, explained, split
from dpfast.core import checks, containers
from dpfast.core.grid import FloatGrid, Grid, Points, check_points
from dpfast.core.measures import on_floats
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.traps import Trap
from dpfast.core.types import Exact, Records
from dpfast.laws import Law
from dpfast.mechanisms import InverseSensitivity, Mechanism
from dpfast.mechanisms.plan import Plan
from dpfast.mechanisms.usefulness import enough_for_quantiles, of_quantiles
from dpfast.random import RandomSource, bit_generator
from dpfast.regression.fit import Fit
from dpfast.statistics import Median, Quantile, RankStatistic
from dpfast.streaming import Chunks, Labelled, check_labels_given, names_of_columns

Values = NDArray[np.float64]
Decode: TypeAlias = Callable[[ArrayLike], Values]

_SLOPE_SHARE = Fraction(2, 3)  # of epsilon; the intercept has the rest
_SPREAD_SHARE = Fraction(1, 4)  # of that of the slope, for its standard error
# The spread is that of the slopes within this distance of ranks from the median, times epsilon, or in deviations.
_LEAST_RADIUS, _DEVIATIONS = 12, 2
_NORMAL = 1.959963984540054  # the 0.975-quantile
_FEWEST, _MOST = 10, 100  # matchings for "auto"
_SLOPES = 2**22  # for "auto", unless the fewest matchings have more


@dataclass(frozen=True, repr=False)
class TheilSen(Mechanism):
    """Release the slope and the intercept of a line by medians, epsilon-differentially private.

    The slope is the median of the slopes through pairs of records, and the intercept the median of ``y - slope * x``,
    by `InverseSensitivity` with 2/3 and 1/3 of epsilon. Neighbours: one replaced record, all others in the same places;
    the number of records is public. A record is a pair of numbers: a call takes a tuple (x, y) of two vectors, or an
    array of shape (n, 2).

    Parameters
    ----------
    slope_grid, intercept_grid : Grid or FloatGrid
        The possible releases. On a `FloatGrid`, the default, n epsilon must be at least 300: with less, a release may
        be any float.
    epsilon : float
        Positive; rounded down to a double.
    matchings : int or "auto"
        k, at least 1: every record is in one pair of each matching (but for one record, if n is odd), each time with
        another partner, so that there are at most n - 1 matchings (n for odd n); a larger k means all of them. The
        noise does not depend on k. The variance of sampling does: for normal x and errors it is (1.10 + 3.84 / k) / n,
        in units of the variance of the errors over that of x, where least squares has 1 / n. "auto": 2**22 / n, but at
        least 10 and at most 100.
    standard_error : bool
        Whether also to release the standard error of the slope, with a quarter of its share of epsilon: the slope plus
        and minus 1.96 of them contains the population slope with a probability of 95 %, if errors are independent of
        x. It needs n epsilon of about 600 (`plan` raises an error for less), and the noise of the slope is
        4/3 times as large.
    missing : float or "half", optional
        The slope of a pair of records with the same x, or with a missing or an infinite x. "half": the least or the
        greatest point of the grid, by a public sequence that has both equally often, which does not move the median.
        Default: "half".

    Raises
    ------
    TypeError, ValueError
        From the constructor: a wrong parameter. From a call, once n is known: fewer than two records, or too few for a
        standard error.

    Notes
    -----
    Privacy: pairs are made by position, so one record changes at most k of the slopes, and their median is released
    with epsilon / k for each slope (https://dpfast.readthedocs.io/en/latest/proofs/theil-sen.html). A slope is a
    quotient of two differences in doubles, a function of two records; the grid rounds it, and infinite ones go to its
    ends. Missing residuals go to
    both ends of the grid. Records in a public order that follows y, as in a sorted file, do not harm: pairs are of all
    distances.
    Cost: n k / 2 slopes and the selection of their median, 8 bytes for each.

    References
    ----------
    Theil 1950; Sen 1968; Alabi, McMillan, Sarathy, Smith and Vadhan 2022, "Differentially private simple linear
    regression", for the matchings.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=10_000)
    >>> line = dpf.TheilSen(epsilon=1.0)(np.stack([x, 1 + 2 * x + rng.standard_t(2, 10_000)], axis=1))
    >>> bool(np.abs(line - [2, 1]).max() < 0.2)
    True
    """

    slope_grid: Points = field(default_factory=FloatGrid)
    intercept_grid: Points = field(default_factory=FloatGrid)
    epsilon: float = field(kw_only=True)
    matchings: int | str = field(kw_only=True, default="auto")
    standard_error: bool = field(kw_only=True, default=False)
    missing: float | str | None = field(kw_only=True, default=None)

    counts_first = "pairs are made by position, which requires all records in their order: use Chunks"
    ordered: ClassVar[bool] = True  # pairs are made by position

    def __post_init__(self) -> None:
        check_points(self.slope_grid)
        check_points(self.intercept_grid)
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        if self.matchings != "auto":
            if isinstance(self.matchings, str):
                raise ValueError(f"matchings must be an integer or 'auto', not {self.matchings!r}")
            object.__setattr__(self, "matchings", checks.whole("matchings", self.matchings, least=1))
        object.__setattr__(self, "standard_error", checks.flag("standard_error", self.standard_error))
        if self.missing is None:
            object.__setattr__(self, "missing", "half")
        elif self.missing != "half":
            if isinstance(self.missing, str):
                raise ValueError(f"missing must be a number or 'half', not {self.missing!r}")
            object.__setattr__(self, "missing", checks.real("missing", self.missing))
        self._shares  # noqa: B018  # reject an epsilon that is too small for shares

    @cached_property
    def _shares(self) -> tuple[float, float, float]:
        """The parts of epsilon for the slope, the intercept and the spread, rounded down; the last may be 0."""
        total = Fraction(self.epsilon)
        slopes = _SLOPE_SHARE * total
        spread = _SPREAD_SHARE * slopes if self.standard_error else Fraction(0)
        rest = checks.positive_down("epsilon", slopes - spread), checks.positive_down("epsilon", total - slopes)
        return *rest, checks.positive_down("epsilon", spread) if spread else 0.0

    def _explained_split(self, n: int | None) -> str:
        return split(dict(zip(("the slope", "the intercept", "the standard error"), self._shares, strict=True)))

    def _explained_missing(self) -> str:
        if isinstance(self.missing, float):
            return f"Missing numbers (NaN, None, null) count as {self.missing:.9g}"
        return "Slopes with a missing number are at the lower and the upper end in turn"

    def matching_count(self, n: SupportsIndex) -> int:
        """Return the number k of matchings for n records. Public."""
        n = checks.whole("n", n, least=2)
        wanted = min(max(_SLOPES // n, _FEWEST), _MOST) if self.matchings == "auto" else int(self.matchings)
        return min(wanted, _turns(n))

    def error(self, n: SupportsIndex, *, deviation: float, spread: float, center: float = 0.0) -> Values:
        """Return the root of the expected squared error of the slope and of the intercept, sampling error included.

        Parameters
        ----------
        n : int
            The number of records, at least 2.
        deviation, spread : float
            The assumed standard deviations of the errors and of x, both normal and independent; positive.
        center : float
            The assumed mean of x.

        Returns
        -------
        ndarray of shape (2,)

        Notes
        -----
        The slope through a pair has the density spread / (pi deviation) at the slope of the line. A release is about
        2 k / epsilon ranks from the median, with the epsilon of the slope; this needs n epsilon of 300 or more.

        Examples
        --------
        >>> import dpfast as dpf
        >>> dpf.TheilSen(epsilon=1.0).error(10_000, deviation=1.0, spread=2.0).round(4)
        array([0.0055, 0.0127])
        """
        n, (slope, intercept, _) = checks.whole("n", n, least=2), self._shares
        deviation, spread = checks.positive("deviation", deviation), checks.positive("spread", spread)
        k = self.matching_count(n)
        slopes, density = k * (n // 2), spread / (math.pi * deviation)
        sampling = math.sqrt((1 + 2 * (k - 1) / 9) / slopes) / 2  # of the share of slopes below that of the line
        of_slope = math.hypot(sampling, math.sqrt(8) * k / (slope * slopes)) / density
        at_median = math.sqrt(2 * math.pi) * deviation * math.hypot(0.5 / math.sqrt(n), math.sqrt(8) / (intercept * n))
        return np.array([of_slope, math.hypot(at_median, checks.real("center", center) * of_slope)])

    @property
    def dimensions(self) -> int:
        return 2

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        return PrivacyProfile(self.privacy, tuple(("bounded-range", share, 1) for share in self._shares if share))

    def __repr__(self) -> str:
        pairs = "pairs" if self.matchings == "auto" else f"pairs in {self.matchings} matchings"
        error = " with its standard error" if self.standard_error else ""
        return (
            f"<TheilSen release of a line by medians: slope of {pairs}{error}, on {self.slope_grid}; intercept on "
            f"{self.intercept_grid}: {self.privacy}>"
        )

    def _foresee(self, x: Any, threads: int) -> tuple[Plan | None, Any]:
        if isinstance(x, Chunks) and x.known is None:  # all records are needed at once
            x = _columns(x)
        plan, _ = super()._foresee(x[0] if isinstance(x, tuple) and len(x) == 2 else x, threads)
        return plan, x

    def values_of(self, x: Any) -> Labelled:
        """Return the vectors of x and y as doubles; of `Chunks` together, because pairs are made by position."""
        rows, labels = _columns(x)
        return Labelled(rows[:, np.newaxis], labels)

    if TYPE_CHECKING:

        def plan(self, n: SupportsIndex | None = None) -> Steps: ...

    @property
    def _medians(self) -> tuple[tuple[Points, float], tuple[Points, float]]:
        """The grids of the slope and of the intercept, with their epsilon for n records."""
        slope, intercept, _ = self._shares
        return (self.slope_grid, slope / 2), (self.intercept_grid, intercept)

    def _enough(self) -> float:
        grids = [(grid, share) for grid, share in self._medians if isinstance(grid, Grid)]
        return max((enough_for_quantiles(grid, (0.5,), share) for grid, share in grids), default=0.0)

    def _make_plan(self, n: int | None) -> Plan:
        if n is None:
            return super()._make_plan(n)
        if n < 2:
            raise ValueError(f"a line needs at least two records, not {n}")
        return self._steps(n)

    def _steps(self, n: int) -> Steps:
        """Return the steps for n records. One record changes k slopes, so each has a share of 1 / k."""
        (slope, intercept, spread), k = self._shares, self.matching_count(n)
        for_slope = _by_range(Median(), self.slope_grid, _part(slope, k))
        for_intercept = _by_range(Median(), self.intercept_grid, intercept)
        if not self.standard_error:
            return Steps(self, n, for_slope, for_intercept)
        slopes, part = k * (n // 2), _part(spread, k)
        sampling = math.sqrt(slopes * (1 + 2 * (k - 1) / 9)) / 2
        radius = max(_LEAST_RADIUS / part, _DEVIATIONS * sampling)
        if radius > slopes / 4:
            raise ValueError(f"{n} records are too few for a standard error at epsilon={self.epsilon!r}")
        for_spread = _by_range(Quantile(2 * radius / slopes), _magnitudes(self.slope_grid), part)
        scale = _half_width(sampling, 2 / for_slope.epsilon) / radius / _NORMAL
        return Steps(self, n, for_slope, for_intercept, for_spread, scale)

    def law_of(self, lines: _PairSlopes) -> TheilSenLaw:
        """Return the exact law of the release, given the slopes of the pairs. PRIVATE."""
        plan = self.plan(len(lines.y))
        law = plan.slope.law(lines.slopes, workers=lines.threads)

        def given(slope: float) -> list[Law]:
            return [step.law(records, workers=lines.threads) for step, records, _ in plan.given(lines, slope)]

        return TheilSenLaw(law, given, plan.decodes)


class _PairSlopes(NamedTuple):
    """The records, and the slopes of their pairs."""

    x: Values
    y: Values
    slopes: Values
    threads: int

    def residuals(self, slope: float) -> Values:
        """Y - slope * x, with NaN at both ends of the line."""
        with np.errstate(all="ignore"):  # overflow to infinity, NaN
            found = self.y - slope * self.x
        _slopes.ends(np.flatnonzero(np.isnan(found)), -math.inf, math.inf, found)
        return found

    def distances(self, slope: float) -> Values:
        """Return the distances of the slopes from one."""
        with np.errstate(over="ignore"):
            return np.abs(self.slopes - slope)


class Steps(Plan):
    """A draw of a line through n records, in steps that each have a mechanism.

    Attributes
    ----------
    slope, intercept, spread : InverseSensitivity
        The mechanisms of the slope, of the intercept and of the spread of the slopes, None without a standard error.
    scale : float
        The factor of the standard error.
    """

    mechanism: TheilSen

    def __init__(
        self,
        mechanism: TheilSen,
        n: int,
        slope: InverseSensitivity,
        intercept: InverseSensitivity,
        spread: InverseSensitivity | None = None,
        scale: float = 1.0,
    ) -> None:
        super().__init__(mechanism, n)
        self.slope, self.intercept, self.spread, self.scale = slope, intercept, spread, scale

    @cached_property
    def traps(self) -> tuple[Trap, ...]:  # type: ignore[override]
        """The traps of the medians without bounds: n / 2 slopes of each matching, which a record changes by one."""
        without_bounds = (
            trap
            for grid, share in self.mechanism._medians
            if isinstance(grid, FloatGrid)
            for trap in of_quantiles(grid, on_floats(grid, "auto"), (0.5,), self.n or 0, share)
        )
        return tuple(without_bounds)[:1]

    def read(self, values: Labelled, threads: int = 1) -> tuple[Plan, _PairSlopes]:
        """Return the plan and the slopes of the pairs. PRIVATE."""
        missing, rows, labels = self.mechanism.missing, values.rows[:, 0], values.labels
        ends = (missing, missing) if isinstance(missing, float) else (-math.inf, math.inf)
        slopes = slopes_of_pairs(rows, labels, self.mechanism.matching_count(len(labels)), ends, threads)
        return self.mechanism.plan(len(labels)), _PairSlopes(rows, labels, slopes, threads)

    def draw_from(self, summary: _PairSlopes, source: np.random.BitGenerator) -> Values:
        def drawn(step: InverseSensitivity, records: Values) -> float:
            return float(step.plan(len(records)).draw(records, source, summary.threads))

        slope = drawn(self.slope, summary.slopes)
        rest = [scale * drawn(step, records) for step, records, scale in self.given(summary, slope)]
        return np.array([slope, *rest])

    def given(self, lines: _PairSlopes, slope: float) -> list[tuple[InverseSensitivity, Values, float]]:
        """Return the steps after the slope: a mechanism, the values for it, and the factor of its release."""
        steps = [(self.intercept, lines.residuals(slope), 1.0)]
        return steps if self.spread is None else [*steps, (self.spread, lines.distances(slope), self.scale)]

    @property
    def decodes(self) -> list[Decode]:
        """Convert the codes of each released number to its values."""
        decodes: list[Decode] = [self.slope.grid.decode, self.intercept.grid.decode]
        return decodes if self.spread is None else [*decodes, self._error]

    def _error(self, codes: ArrayLike) -> Values:
        assert self.spread is not None
        return self.scale * self.spread.grid.decode(codes)


class TheilSenLaw(Law):
    """The law of a line: vectors of the codes of its slope, its intercept and, if released, the spread of the slopes.

    Parameters
    ----------
    slopes : NestedIntervals
        Of the slope.
    given : callable
        ``given(slope)`` returns the laws of the other entries, given the released slope.
    decodes : sequence of callable
        Convert the codes of each entry to values.
    """

    def __init__(self, slopes: Law, given: Callable[[float], list[Law]], decodes: Sequence[Decode]) -> None:
        self._slopes, self._decodes = slopes, decodes
        self._given = lru_cache(maxsize=1)(lambda code: given(slopes.value(code)))

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = containers.integers("k", k)
        flat = codes.reshape(-1, codes.shape[-1])
        logs = self._slopes.logpmf(flat[:, 0])
        for slope in np.unique(flat[logs > -math.inf, 0]).tolist():
            [inside] = np.nonzero(flat[:, 0] == slope)
            for law, column in zip(self._given(slope), flat[inside, 1:].T, strict=True):
                logs[inside] += law.logpmf(column)
        return logs.reshape(codes.shape[:-1])

    def outcomes(self) -> NDArray[np.int64]:
        axes = [self._slopes.outcomes(), *(law.outcomes() for law in self._given(0))]
        checks.outcomes(math.prod(map(len, axes)))
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        source = bit_generator(rng)
        if size is None:
            slope = self._slopes.sample(rng=source)
            return np.array([slope, *(law.sample(rng=source) for law in self._given(slope))])
        shape = checks.shape(size)
        draws = [self.sample(rng=source) for _ in range(math.prod(shape))]
        return np.array(draws, dtype=np.int64).reshape(*shape, len(self._decodes))

    def value(self, k: ArrayLike) -> Any:
        columns = np.moveaxis(containers.integers("k", k), -1, 0)
        return np.stack([decode(column) for decode, column in zip(self._decodes, columns, strict=True)], axis=-1)


def slopes_of_pairs(x: Values, y: Values, matchings: int, ends: tuple[float, float], threads: int = 1) -> Values:
    """Return the slopes of the pairs of `matchings` rounds of a round-robin tournament of the records, spread evenly.

    Pairs without a slope get one of the two `ends`, by their public index. x and y are contiguous.
    """
    pairs, turns = len(x) // 2, _turns(len(x))
    slopes = np.empty((matchings, pairs))

    def fill(j: int) -> None:
        _slopes.slopes(x, y, j * turns // matchings, j * pairs, *ends, slopes[j])

    each(fill, range(matchings), threads)
    return slopes.reshape(-1)


def _turns(n: int) -> int:
    """Return the number of rounds of a tournament of n: every two records are a pair in one of them."""
    return n - 1 + n % 2


def _columns(x: Any) -> tuple[Values, Values]:
    """Return the vectors of x and y as doubles."""
    pieces = [_labelled(piece) for piece in (x if isinstance(x, Chunks) else (x,))]
    with np.errstate(invalid="ignore"):  # a signalling NaN
        parts = [np.stack([piece.rows[:, 0], piece.labels]).astype(np.float64) for piece in pieces]
    rows, labels = np.concatenate(parts, axis=1) if parts else np.empty((2, 0))
    return rows, labels


def _labelled(x: Any) -> Labelled:
    """Return a piece of records, whose x may be a vector."""
    if isinstance(x, tuple) and len(x) == 2 and getattr(x[0], "ndim", 1) == 1:
        x = containers.vector("x", x[0])[:, np.newaxis], x[1]
    records = Labelled.of(x)
    if records.columns != 1:
        raise ValueError(f"a line has one x for each y, not {records.columns} columns")
    return records


def _by_range(statistic: RankStatistic, grid: Points, epsilon: float) -> InverseSensitivity:
    """Return the mechanism of a step, with a privacy loss of bounded range."""
    grid = grid.with_missing("lower")  # there is no NaN, for which leaving out would look
    return InverseSensitivity(statistic, grid=grid, epsilon=epsilon, selection="exponential")


def _part(epsilon: float, k: int) -> float:
    """Return the share of one of k slopes, rounded down."""
    return checks.positive_down("epsilon", Fraction(epsilon) / k)


def _magnitudes(grid: Points) -> Points:
    """Return the points for distances of slopes on a grid."""
    if isinstance(grid, FloatGrid):
        return FloatGrid(grid.digits, resolution=grid.resolution, lower=0.0)
    return Grid(0.0, min(grid.upper - grid.lower, sys.float_info.max / 2), step=grid.step)


@lru_cache
def _half_width(sampling: float, noise: float) -> float:
    """Return the distance in ranks within which the slope is from the population slope with probability 95 %.

    Two errors add up: that of sampling, normal with deviation `sampling`, and that of the mechanism, of density ``exp(-
    |t| / noise) / (2 noise)``. The width itself has an error of the same form, relative to 1, with a scale of at most 1
    / 12 (https://dpfast.readthedocs.io/en/latest/proofs/theil-sen.html).
    """
    from scipy.optimize import brentq  # slow to import

    t = np.linspace(-12, 12, 241)
    weights = np.exp(-np.abs(t))
    weights /= weights.sum()
    widths = np.maximum(1 + t[::6] / _LEAST_RADIUS, 0.0)[:, np.newaxis]

    def excess(width: float) -> float:
        beyond = 2 * scipy.special.ndtr((t * noise - width * widths) / sampling) @ weights
        return float(weights[::6] @ beyond / weights[::6].sum()) - 0.05

    return float(brentq(excess, 0.0, 10 * (sampling + noise)))


def theil_sen(
    x: Records | Chunks,
    y: Records | None = None,
    *,
    epsilon: Exact,
    slope_bounds: tuple[float, float] | None = None,
    intercept_bounds: tuple[float, float] | None = None,
    matchings: int | str = "auto",
    standard_error: bool = False,
    missing: float | str | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> Fit:
    """Fit a line by the medians of slopes and of residuals (Theil and Sen), epsilon-differentially private.

    Neighbours: one replaced record, all others in the same places; the number of records is public. Outliers hardly
    move the fit, and it needs no bounds if n epsilon is at least 300.

    Parameters
    ----------
    x, y : array_like of shape (n,)
        Private data, n >= 2; never modified. Also `dpfast.Chunks` of pairs (x, y) or of tables of two columns for x,
        without y.
    epsilon : float
        Positive: 2/3 of it for the slope, 1/3 for the intercept.
    slope_bounds, intercept_bounds : tuple of two floats, optional
        Public ranges, for few records: short for a `Grid` of `TheilSen`. Default: all floats of 25 significant bits,
        and multiples of 3.6e-12 below 6.1e-5 (`FloatGrid`).
    matchings, standard_error, missing
        See `TheilSen`.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Threads that read the data, -1 for one per core; the result does not depend on it.
    explain : bool or callable
        See `dpfast.median`.

    Returns
    -------
    Fit
        With one coefficient. Its standard error is NaN without `standard_error`, and that of the intercept always.

    Raises
    ------
    TypeError, ValueError
        See `TheilSen`; x and y of different lengths.

    Notes
    -----
    Privacy and cost: one release by `TheilSen` (https://dpfast.readthedocs.io/en/latest/proofs/theil-sen.html).

    References
    ----------
    See `TheilSen`.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> rng = np.random.default_rng(0)
    >>> years = rng.uniform(0, 30, 10_000)
    >>> pay = 30_000 + 1_000 * years + 5_000 * rng.standard_t(2, 10_000)
    >>> fit = dpf.theil_sen(years, pay, epsilon=1.0)
    >>> bool(abs(fit.coefficients[0] - 1_000) < 50), abs(fit.intercept - 30_000) < 1_000
    (True, True)
    >>> fit = dpf.theil_sen(years, pay, epsilon=1.0, standard_error=True)
    >>> low, high = fit.interval(0.95)[0].tolist()
    >>> 900 < low < high < 1_100
    True
    """
    mechanism = TheilSen(
        _grid(slope_bounds, "slope_bounds"),
        _grid(intercept_bounds, "intercept_bounds"),
        epsilon=checks.positive_down("epsilon", epsilon),
        matchings=matchings,
        standard_error=standard_error,
        missing=missing,
    )
    check_labels_given(x, y)
    names = _names(x)
    records: Any = x if y is None else (x, y)
    slope, intercept, *errors = explained(mechanism, explain, x)(records, rng=rng, workers=workers).tolist()
    error = errors[0] if errors else math.nan
    found = np.array([slope]), intercept, np.array([error]), math.nan
    return Fit(*found, mechanism.privacy, n=_length(x), names=names)


def _grid(bounds: tuple[float, float] | None, name: str) -> Points:
    return FloatGrid() if bounds is None else Grid(*checks.pair(name, bounds))


def _names(x: Any) -> tuple[str, ...] | None:
    """Return the name of the column of x, of a data frame or of a column that has one."""
    names = names_of_columns(x)
    if names is not None:
        return names if len(names) == 1 else None
    name = getattr(x, "name", None)
    return (name,) if isinstance(name, str) and name else None


def _length(x: Any) -> int:
    return sum(len(_labelled(piece)) for piece in x) if isinstance(x, Chunks) else len(x)
