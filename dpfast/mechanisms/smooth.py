"""The smooth sensitivity bound and mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _gaps, _groups, _select
from dpfast.core import checks, containers
from dpfast.core.grid import Grid, check_grid, check_number
from dpfast.core.privacy import Privacy
from dpfast.core.spending import EXACT, STEP, refuse, refused
from dpfast.laws import ClampedNoise
from dpfast.mechanisms.assumptions import (
    Assumed,
    Uniform,
    averaged_noise,
    error,
    samples_of_records,
    summaries,
    target,
    target_of_user,
)
from dpfast.mechanisms.calibration import LEAST_BETA, NOISES, SLACK, SMOOTHNESS, calibrated, privacy_down, valid_region
from dpfast.mechanisms.expectations import expected_error, expected_error_of_user
from dpfast.mechanisms.grouped import SortedGroups, fits, released, sizes_of
from dpfast.mechanisms.plan import Draw, Plan
from dpfast.mechanisms.prediction import Expected
from dpfast.mechanisms.statistic import StatisticMechanism
from dpfast.mechanisms.usefulness import enough_for_error
from dpfast.statistics import (
    InterquartileRange,
    LinearQuantile,
    Mean,
    Median,
    OrderStatistic,
    Quantile,
    RankStatistic,
    Summary,
    TrimmedMean,
    UserStatistic,
    WinsorizedMean,
)
from dpfast.statistics.rank import TrimmedSum
from dpfast.streaming import Chunks, Integers, Reading

_MOST_SCALE = 2.0**56
_SAMPLES_OF_USER = 64  # imagined samples of all records, for the error of a statistic of the user


@refused(EXACT)
def smooth_sensitivity(statistic: RankStatistic | UserStatistic, x: ArrayLike, *, grid: Grid, beta: float) -> float:
    """Return a beta-smooth bound on how much one record can change the statistic. PRIVATE: a building block, not a
    release.

    ``max over data y of exp(-beta d(x, y)) LS(y)``, d the number of replaced records, LS the local sensitivity, over
    data inside the public bounds; at least one release code (one step, or step / g for a mean of g records). For a
    Winsorized mean it is an upper bound of this maximum, at most three times larger; for a statistic of the user it is
    as good as the sensitivity that the user states for each distance.

    Parameters
    ----------
    statistic : dpfast.statistics.RankStatistic or dpfast.statistics.UserStatistic
        A statistic with gaps, which is any except `dpfast.statistics.Huber`, or one of the user.
    x : array_like of shape (n,)
        Private data; NaN goes to ``grid.missing``.
    grid : Grid
    beta : float
        At least 2**-30.

    Returns
    -------
    float
        In data units, rounded up: not below the exact value, and smooth with ``beta + 2**-38``, for which `calibrate`
        allows.

    Raises
    ------
    TypeError, ValueError
        A parameter out of range; x empty or not one-dimensional.

    Notes
    -----
    Proof in https://dpfast.readthedocs.io/en/latest/proofs/smooth-sensitivity.html. Cost: O(n) to select, O(K log K)
    for the maximum, K = ``log(size) / beta``.

    References
    ----------
    Nissim, Raskhodnikova and Smith 2007, definition 2.2 and proposition 3.4.

    Examples
    --------
    >>> import dpfast as dpf
    >>> from dpfast.smooth import smooth_sensitivity
    >>> s = smooth_sensitivity(dpf.statistics.Median(), [1, 2, 4, 7, 9], grid=dpf.Grid(0, 10, step=1), beta=1.0)
    >>> round(s, 6)  # 7 - 4, the gap above the median, beats e**-1 (9 - 4), e**-1 (7 - 2), ...
    3.0
    """
    _check_kinds(statistic, grid)
    check_number(grid)
    beta = checks.real("beta", beta)
    if not beta >= LEAST_BETA:
        raise ValueError(f"beta must be at least 2**-30, not {beta!r}")
    values = containers.vector("x", x)
    n = checks.records(values.shape[0])
    smooth_bound = _smooth_bound(statistic, n, grid.size - 1, beta)
    reading = statistic.reading(grid, lambda _: len(smooth_bound.discounts) + 1)
    _, bound = smooth_bound.around(statistic, reading.of(values))
    return bound * grid.step / statistic.codes_per_step(n)


def _check_kinds(statistic: Any, grid: Any) -> None:
    if not isinstance(statistic, RankStatistic | UserStatistic):
        raise TypeError(
            f"statistic must be a rank statistic or a UserStatistic of dpfast.statistics, not "
            f"{type(statistic).__name__}"
        )
    check_grid(grid)


@dataclass(frozen=True)
class _SmoothBound:
    """The public plan of a bound.

    One record changes T by x_(H+1) - x_(L) or x_(H) - x_(L-1), `inner` times, and by the gaps at both corners. `pairs`
    holds the windows of the summary whose middles are the ranks L and H.
    """

    pairs: tuple[tuple[int, int], ...]
    corners: tuple[int, int]
    inner: int
    discounts: NDArray[np.float64]

    @property
    def weight(self) -> int:
        """The number of gaps that one record can change."""
        return self.inner + sum(self.corners)

    def around(self, statistic: Any, summary: Summary) -> tuple[int, float]:
        """Return the exact statistic and its smooth bound, in release codes."""
        reach = len(self.discounts)
        windows = tuple(window[reach : reach + 1] for window in summary.windows)
        center, _ = statistic.attack_range(Summary(summary.grid, summary.n, 1, windows, summary.total))
        return int(center[0]), self.bound_up(summary.windows)

    def bound_up(self, windows: tuple[Integers, ...]) -> float:
        """Return the smooth bound in release codes, at least 1, allowing for rounding. Each gap counts at least 1 /
        weight.
        """
        inner, (first, last), least, largest = self.inner, self.corners, 1 / self.weight, 0.0
        for low, high in self.pairs:
            found = _gaps.stretches(windows[low], windows[high], first + last > 0, self.discounts)
            gaps = [gap if gap > least else least for gap in found]
            if first + last:  # for each direction the gap of the sum, and those of both corners
                both = gaps[:3], gaps[3:]
                gaps = [math.fsum((inner * gap, first * left, last * right)) for gap, left, right in both]
            else:
                gaps = [inner * gap for gap in gaps]
            largest = max(largest, *gaps)
        return largest * (1 + SLACK)


@dataclass(frozen=True)
class _StatedBound:
    """The public plan of a bound from the sensitivity that a user states for each distance.

    `weight` is the number of release codes in a step.
    """

    weight: int
    last: int
    discounts: NDArray[np.float64]

    def around(self, statistic: Any, summary: Summary) -> tuple[int, float]:
        """Return the exact statistic and its smooth bound, at least 1, in release codes."""
        [codes] = summary.windows
        largest, most = 1.0, self.weight * self.last
        for k, discount in enumerate(self.discounts.tolist()):
            if discount * most <= largest:
                break
            largest = max(largest, discount * statistic.change_at(codes, k, self.last))
        return statistic.exact(codes, self.last), largest * (1 + SLACK)


@lru_cache(maxsize=16)
def _smooth_bound(
    statistic: RankStatistic | UserStatistic, n: int, last: int, beta: float
) -> _SmoothBound | _StatedBound:
    if isinstance(statistic, UserStatistic):
        return _StatedBound(statistic.divisions, last, _discounts(float(statistic.divisions * last), n, beta))
    gaps, ranks = statistic.gaps(n), statistic.ranks(n)
    pairs = tuple((ranks.index(low), ranks.index(high)) for low, high in gaps)
    ratio = float(last * (gaps.inner + sum(gaps.corners)))
    return _SmoothBound(pairs, gaps.corners, gaps.inner, _discounts(ratio, n, beta))


def _discounts(ratio: float, n: int, beta: float) -> NDArray[np.float64]:
    """Return the discounts of the distances at which a change of `ratio` counts more than 1, at most those to n + 1."""
    return _gaps.weights(beta, ratio, min(n + 2, math.ceil(math.log(ratio) / beta * (1 + 2.0**-16)) + 2))


@dataclass(frozen=True, repr=False)
class SmoothSensitivity(StatisticMechanism):
    """Release a statistic with noise proportional to its smooth sensitivity: ``clamp(T + round(scale S X))``.

    (epsilon, delta)-differentially private under one replaced record; the number of records is public. X is Laplace for
    delta > 0 and Student's t with 3 degrees of freedom for delta = 0; S is the smooth sensitivity, at least one step.

    Parameters
    ----------
    statistic : dpfast.statistics.RankStatistic or dpfast.statistics.UserStatistic
        For example ``Median()`` or ``TrimmedMean(0.1)``; any except `dpfast.statistics.Huber`. A `UserStatistic` is a
        function of the user, with the sensitivity that it has at each distance.
    grid : Grid
        Public bounds and granularity of data and release, in data units.
    epsilon : float
        Positive; rounded down to a double.
    delta : float
        In [0, 1); rounded down.
    noise : {None, "laplace", "student-t"}
        None: "laplace" if delta > 0, else "student-t".
    beta : float, optional
        Public smoothness, at least 2**-30. Default for Laplace noise: the largest with scale S / (0.5 epsilon), or
        S / (0.75 epsilon) for averages. Default for Student-t noise: 0.236 epsilon, or 0.05 epsilon for averages, and
        for trimmed and Winsorized means of few records up to 0.23 epsilon: see `calibration`.

    Attributes
    ----------
    beta, scale : float
        Public: the noise has scale ``scale * S`` for a beta-smooth S; for few records with those of `calibration`.

    Raises
    ------
    TypeError, ValueError
        A wrong parameter, before any data are read.

    Notes
    -----
    Privacy: https://dpfast.readthedocs.io/en/latest/proofs/smooth-sensitivity.html. The statistic is an integer number
    of steps and the noise is rounded continuous noise, so the release is a function of the continuous mechanism; the
    law is exact (https://dpfast.readthedocs.io/en/latest/proofs/rounded-laplace.html,
    https://dpfast.readthedocs.io/en/latest/proofs/rounded-student.html). The granularity does not depend on S.
    Cost: O(n) to select and O(K log K) for S, K = ``log(size) / beta`` order statistics on each side. Timing is outside
    the guarantee. `InverseSensitivity`, which has no delta, is mostly more accurate for order statistics up to epsilon
    = 1; Student-t noise is more accurate for trimmed means of many records, and at epsilon = 4
    (https://dpfast.readthedocs.io/en/latest/results/accuracy.html). ``method="auto"`` of functions compares both
    (https://dpfast.readthedocs.io/en/latest/guides/choosing.html).

    References
    ----------
    Nissim, Raskhodnikova and Smith 2007; Chaudhuri and Hsu 2012, equation (3), with constants that hold for every
    epsilon (`as_published`, `valid_region`); Bun and Steinke 2019 for Student-t.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> from dpfast.statistics import Median
    >>> mechanism = dpf.SmoothSensitivity(Median(), grid=dpf.Grid(0, 100, step=1), epsilon=1.0, delta=1e-6)
    >>> mechanism
    <SmoothSensitivity release of the median on 101 points from 0.0 to 100.0, step 1.0, laplace noise, beta = 0.0530, \
scale = 2.0000: epsilon = 1, delta = 1e-06 for one record replaced (the number of records is public)>
    >>> ages = np.random.default_rng(0).integers(18, 90, 100_000)
    >>> 20 <= mechanism(ages) <= 90
    True
    """

    statistic: RankStatistic | UserStatistic
    grid: Grid = field(kw_only=True)
    epsilon: float = field(kw_only=True)
    delta: float = field(kw_only=True, default=0.0)
    noise: str = field(kw_only=True, default=None)  # type: ignore[assignment]
    beta: float = field(kw_only=True, default=None)  # type: ignore[assignment]
    scale: float = field(init=False)

    def __post_init__(self) -> None:
        _check_kinds(self.statistic, self.grid)
        epsilon, delta, noise = privacy_down(self.epsilon, self.delta, self.noise)
        beta, scale = calibrated(epsilon, delta, noise, self.beta, averages=_averages(self.statistic))
        for name, value in {"epsilon": epsilon, "delta": delta, "noise": noise, "beta": beta, "scale": scale}.items():
            object.__setattr__(self, name, value)
        self.check_missing()
        self.statistic.last(self.grid, 1)  # reject a grid that fails for every n
        self.check_scale(1, scale)

    @classmethod
    def as_published(
        cls, statistic: RankStatistic | UserStatistic, *, grid: Grid, epsilon: float, delta: float
    ) -> SmoothSensitivity:
        """Return the estimator of Chaudhuri and Hsu 2012, equation (3): noise of scale ``2 S / epsilon``.

        S is smooth with ``beta = epsilon / (2 log(1/delta))``. The parameters are those of the class. Raises a
        ValueError if these constants are not private (`valid_region`); otherwise they add more noise than needed. (The
        paper has unbounded data; here S is finite because the grid is.)

        Examples
        --------
        >>> import dpfast as dpf
        >>> published = dpf.SmoothSensitivity.as_published
        >>> published(dpf.statistics.Median(), grid=dpf.Grid(0, 8, step=1), epsilon=1.0, delta=1e-6).scale
        2.0
        """
        region = valid_region(epsilon, delta)
        if not region.holds:
            raise ValueError(
                f"the published constants are not private at epsilon={region.epsilon!r}, delta={region.delta!r}: delta "
                f"would be {region.ratio:.3g} times larger; they hold up to epsilon={region.largest_epsilon:.4g}"
            )
        mechanism = cls(statistic, grid=grid, epsilon=epsilon, delta=delta, noise="laplace", beta=region.beta)
        object.__setattr__(mechanism, "scale", max(region.scale, mechanism.scale))
        return mechanism

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    def calibration(self, n: SupportsIndex) -> tuple[float, float]:
        """Return the smoothness beta and the matching scale of the noise for n records. Public.

        They are `beta` and `scale`, except for Student-t noise with the default beta on the mean without m records at
        each end, or with these replaced, and on a point between two records, of which the side with fewer has m: then
        beta is ``10 / (m + 1)``, at least 0.05 epsilon, so that bounds far from the records, which m + 1 replaced
        records reach, count with a factor of at most e**-10; and at most 0.23 epsilon, or 0.2 epsilon if
        ``(m + 1) epsilon`` is below 15, where they count in any case.

        Parameters
        ----------
        n : int
            The number of records, at least 1.

        Returns
        -------
        beta, scale : float

        Examples
        --------
        >>> import dpfast as dpf
        >>> trimmed = dpf.statistics.TrimmedMean(0.1)
        >>> mechanism = dpf.SmoothSensitivity(trimmed, grid=dpf.Grid(0, 100), epsilon=1.0)
        >>> [round(mechanism.calibration(n)[0], 3) for n in (100, 1000, 10_000)]
        [0.2, 0.099, 0.05]
        """
        n = checks.whole("n", n, least=1)
        default = SMOOTHNESS * self.epsilon
        if (
            self.noise == "laplace"
            or self.beta != default
            or not isinstance(self.statistic, LinearQuantile | TrimmedSum)
        ):
            return self.beta, self.scale
        if not (left_out := self.statistic.cut(n)):
            return self.beta, self.scale
        most = (0.2 if (left_out + 1) * self.epsilon < 15 else 0.23) * self.epsilon
        return _calibrated(self.epsilon, self.noise, min(max(10 / (left_out + 1), default), most))

    def __repr__(self) -> str:
        grid = self.grid
        return (
            f"<SmoothSensitivity release of the {self.statistic} on {grid.size} points from {grid.lower!r} to "
            f"{grid.upper!r}, step {grid.step!r}, {self.noise} noise, beta = {self.beta:.4f}, scale = "
            f"{self.scale:.4f}: {self.privacy}>"
        )

    if TYPE_CHECKING:

        def plan(self, n: SupportsIndex | None = None) -> SmoothNoise: ...

    def _make_plan(self, n: int | None) -> Plan:
        return SmoothOfGroups(self, n) if n is None else SmoothNoise(self, checks.records(n))

    def reading(self) -> Reading:
        return self.statistic.reading(self.grid, lambda n: self.plan(n).levels)

    def law_of(self, summary: Summary) -> ClampedNoise:
        plan = self.plan(summary.n)
        return plan._law_around(*plan.bound.around(self.statistic, summary))

    def _enough(self) -> float:
        """Of records spread evenly, t move an order statistic by t / n of the bounds, an average by less."""
        if isinstance(self.statistic, UserStatistic):
            return 0.0
        grown = 1.0 if _averages(self.statistic) else max(1.0, math.exp(self.beta - 1) / self.beta)
        deviation = math.sqrt(2.0 if self.noise == "laplace" else 3.0)
        return enough_for_error(deviation * self.scale * grown)

    def _expected_under(self, n: int, assumed: Assumed) -> Expected:
        if isinstance(self.statistic, UserStatistic):
            return expected_error_of_user(self.law_of, self.statistic, assumed, self.grid, n)
        return expected_error(self.law_of, self.statistic, assumed, self.grid, n, self.plan(n).levels)

    def _error_under(self, n: int, assumed: Assumed, confidence: float) -> float:
        statistic, grid, bound = self.statistic, self.grid, self.plan(n).bound
        if isinstance(statistic, UserStatistic):
            population = target_of_user(statistic, assumed, grid, n)
            imagined = samples_of_records(assumed, grid, n, _SAMPLES_OF_USER)
        else:
            population = target(statistic, assumed)
            imagined = summaries(statistic, assumed, grid, n, len(bound.discounts) + 1)
        last = statistic.last(grid, n)
        centers, bounds = zip(*(bound.around(statistic, summary) for summary in imagined), strict=True)
        noise, scales = NOISES[self.noise](1.0), self.calibration(n)[1] * np.array(bounds)
        # a tail of rounded noise is one of the continuous noise at (z - 1/2) / scale
        cdf = averaged_noise(lambda z: noise.log_tail((z - 0.5) / scales + 0.5), centers, last)
        ends = statistic.value(grid, n, 0), statistic.value(grid, n, last)
        return error(cdf, last, ends, population, confidence)

    def _error_at_density(self, n: int, density: float, confidence: float) -> float:
        if not isinstance(self.statistic, OrderStatistic):
            raise TypeError(f"a density does not determine the error of the {self.statistic}: give distribution=")
        return self._error_under(n, Assumed(Uniform(self.grid, self.statistic.level, density)), confidence)

    def check_scale(self, weight: int, scale: float) -> None:
        """Check the sampler's limit against the largest bound that any data can have."""
        if scale * weight * self.grid.size > _MOST_SCALE:
            raise ValueError(
                f"epsilon={self.epsilon!r} is too small for a grid of {self.grid.size} points: the noise could exceed "
                "2**56 steps; use a larger step"
            )


class SmoothNoise(Plan):
    """A draw with noise of a smooth bound for n records, from an array where the wanted ranks are next to each other.

    Attributes
    ----------
    bound : _SmoothBound or _StatedBound
    levels : int
        The number of order statistics on each side of a rank, its own included.
    """

    mechanism: SmoothSensitivity
    n: int
    bound: Any

    def __init__(self, mechanism: SmoothSensitivity, n: int) -> None:
        super().__init__(mechanism, n)
        statistic, grid = mechanism.statistic, mechanism.grid
        self._last, (beta, self._scale) = statistic.last(grid, n), mechanism.calibration(n)
        self.bound = _smooth_bound(statistic, n, grid.size - 1, beta)
        mechanism.check_scale(self.bound.weight, self._scale)
        self.levels = len(self.bound.discounts) + 1
        self._noise, self._decode = NOISES[mechanism.noise], partial(statistic.decode, grid, n)
        self._summed = None
        if isinstance(statistic, OrderStatistic | TrimmedSum):
            ranks = statistic.ranks(n)
            if ranks[-1] - ranks[0] <= 2 * self.levels - 1:
                self._summed = ranks[0] - self.levels + 1, ranks[-1] + self.levels - 1
        elif isinstance(statistic, UserStatistic):
            statistic.rehearse(grid, n)
        self._grid, self._kernel = grid, grid.kernel

    def for_groups(self) -> _gaps.GroupBound:
        """Return what is public of the releases of groups of n records, for `_gaps.draw_groups`."""
        statistic: Any = self.mechanism.statistic
        bound = self.bound
        first, *rest = statistic.ranks(self.n)
        difference = isinstance(statistic, InterquartileRange)
        final = rest[-1] if rest else first
        return _gaps.GroupBound(
            first, final, bound.pairs, difference, bound.corners[0], bound.discounts, self._scale, self._last
        )

    def _law_around(self, center: int, bound: float) -> ClampedNoise:
        """Return the law for the exact statistic and its smooth bound, in release codes."""
        return ClampedNoise(self._noise(self._scale * bound), center=center, last=self._last, decode=self._decode)

    def draw(self, values: Any, source: np.random.BitGenerator, threads: int = 1) -> float:
        if self._summed is None or self.mechanism.resolves or isinstance(values, Chunks):
            return float(super().draw(values, source, threads))
        (first, last), reach = self._summed, self.levels - 1
        codes = self._grid.encode(_select.window(values, first, last, workers=threads, **self._kernel))
        corner, size = self.bound.corners[0], 2 * reach + 1  # of the part around one rank
        center = int(codes[reach])
        if last - first == 2 * reach and not corner:
            windows = codes, codes
        else:
            inside = codes[reach : len(codes) - reach]
            center = int(inside.sum()) + corner * int(inside[0] + inside[-1])
            windows = codes[:size], codes[-size:]
        law = self._law_around(center, self.bound.bound_up(windows))
        return float(law.value(law.sample(rng=source)))


class SmoothOfGroups(SortedGroups):
    """The draws of each of many groups by one kernel."""

    def _fits(self, n: int) -> bool:
        statistic = self.mechanism.statistic
        known = type(statistic) in (Median, Quantile, TrimmedMean, WinsorizedMean, Mean, InterquartileRange)
        return known and fits(self.mechanism, n)

    def _draws(self, records: NDArray[np.float64], ends: NDArray[np.int64], on: Grid) -> Draw:
        mechanism: SmoothSensitivity = self.mechanism
        largest = _groups.LARGEST_GROUP
        bounds: list[_gaps.GroupBound | None] = [None] * (largest + 1)
        for n in sizes_of(ends, largest):
            bounds[n] = mechanism.plan(n).for_groups()
        options: dict[str, Any] = {"bounds": bounds, "slack": SLACK, "student": mechanism.noise == "student-t"}
        options |= {"lower": on.lower, "upper": on.upper, "step": on.step, "first": on.first, "whole": on.size - 1}

        def draw(start: int, stop: int, source: np.random.BitGenerator) -> NDArray[np.float64]:
            refuse(STEP, mechanism)  # it may have been made outside of a ledger
            codes, parts = np.zeros(stop - start, np.int64), ends[start : stop + 1]

            def kernel(first: int) -> int:
                return _gaps.draw_groups(source, records, parts, first, codes, **options)

            large = self.stepwise(kernel, records, parts, on, source)
            return released(mechanism, codes, parts, large)

        return draw


@lru_cache(maxsize=256)
def _calibrated(epsilon: float, noise: str, beta: float) -> tuple[float, float]:
    """Return the calibration of pure noise for a given beta."""
    return calibrated(epsilon, 0.0, noise, beta, averages=True)


def _averages(statistic: RankStatistic | UserStatistic) -> bool:
    """Whether one record changes a sum over many ranks, rather than the gap between two adjacent ranks."""
    return isinstance(statistic, RankStatistic) and any(low < high for low, high in statistic.gaps(1000))
