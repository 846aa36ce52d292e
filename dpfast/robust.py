"""Robust estimates released privately: location in d dimensions by nested boxes, and the general reduction."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast import _callbacks, _checks, _containers
from dpfast._kernels import _boxes, _select
from dpfast._least import least
from dpfast._threads import each
from dpfast.grid import Grid, grids_within, natural_step
from dpfast.laws import TAIL, BehindTest, Boxes, score_cap
from dpfast.mechanism import Mechanism
from dpfast.privacy import Privacy, PrivacyProfile
from dpfast.random import RandomSource, bit_generator
from dpfast.selection import Selection
from dpfast.spending import EXACT, refused, spending
from dpfast.statistics import Codes, Huber, Median, OrderStatistic, RankStatistic, Summary
from dpfast.streaming import Chunks, Columns, Reading, columns_between, shares
from dpfast.theory.robust import gaussian_mean_error

if TYPE_CHECKING:
    from scipy import LowLevelCallable

_LEAST_EPSILON, _LARGEST_EPSILON = 2.0**-28, 64.0  # of a test; what is above 64 is not spent

_TRANSFORMED_ROWS = 256
_KEPT = 2**20  # boxes times columns that may always be kept


def robust_mean(
    X: ArrayLike | Chunks,
    *,
    epsilon: float,
    bounds: Any = None,
    grid: Grid | Sequence[Grid] | None = None,
    delta: float = 0.0,
    radius: float = 0.0,
    statistic: RankStatistic = Median(),  # noqa: B008  (frozen)
    scale: float | Sequence[float] | None = None,
    transform: ArrayLike | None = None,
    step: float | None = None,
    width: float | None = None,
    rng: RandomSource = None,
    workers: int = 1,
) -> NDArray[np.float64] | None:
    """Release the location of records in d dimensions, (epsilon, delta)-differentially private for one replaced record.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Private data, a record in each row: floats, integers or booleans of any strides, never modified. NaN goes to
        ``grid.missing`` (to 0 without bounds). n >= 1 and d >= 1 are public.
    epsilon : float
        Positive, for all coordinates together.
    bounds : pair of floats, or d pairs
        Public bounds in data units, chosen without looking at X; short for grids of these bounds, with step 1 if X
        declares an integer or boolean dtype (and there is no `transform`).
    grid : Grid or d of them
        Instead of `bounds`.
    delta : float
        0 with bounds; positive without: then a test may fail, see Returns.
    radius : float
        At least 0, in data units, rounded to a multiple of the step: every value within `radius` of a possible value
        of the statistic scores as well as that value.
    statistic : RankStatistic
        The robust estimator of each coordinate: ``Median()``, ``TrimmedMean(0.1)``, ``Huber(2.0)``, or another one of
        `dpfast.statistics`. Without bounds an order statistic.
    scale : float or d floats, optional
        Public scales of the coordinates: `radius`, `width` and the corner of `Huber` are multiples of them. Default: 1.
    transform : array_like of shape (d, d), optional
        A public invertible matrix A, a rotation or whitening: everything is done on the records A x, bounds and steps
        included, and the release is taken back by the inverse of A.
    step, width : float
        Instead of bounds: the granularity, a power of two, and a guess of the spread of the middle of the data in each
        coordinate, for the test: it passes if most of the records are close together on that scale.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Threads that read the columns; the result does not depend on it.

    Returns
    -------
    ndarray of shape (d,), or None
        None, without bounds only, is the private failure of the test: try a greater `width` on a new budget.

    Raises
    ------
    TypeError
        Neither or both of `bounds` and `grid`, where `step` and `width` do not stand in for them; no numbers.
    ValueError
        A parameter out of range; X empty or of another shape; without bounds, fewer records than the test can ever pass
        with, which the message names.

    Notes
    -----
    Privacy: `NestedBoxes` with bounds, `RangeFreeBoxes` without; docs/proofs/nested-boxes.md.
    Below about n = 2 d log(size) / epsilon records the release is noise, a point anywhere in the bounds; more closely,
    for medians, below n = 4 d log(bounds / spread) / epsilon, since "anywhere" weighs exp(-epsilon n / 4) times its
    volume. Well above, privacy moves each coordinate by at most about 2 d / (n epsilon f), f the density at its median,
    besides the sampling error, and a fraction of adversarial records moves it about as little as it moves the medians.
    Cost: a selection in each column, about 0.4 times ``np.median(X, axis=0)``; memory for a few columns.

    References
    ----------
    Hopkins, Kamath, Majid and Narayanan 2023, "Robustness implies privacy in statistical estimation"; Asi and Duchi
    2020; Dwork and Lei 2009 for the test without bounds.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> X = np.random.default_rng(0).normal(size=(20_000, 5)) + [0, 1, 2, 3, 4]
    >>> X[:2000] = 1e9
    >>> release = dpf.robust_mean(X, bounds=(-1e6, 1e6), epsilon=1.0)
    >>> bool(np.abs(release - [0, 1, 2, 3, 4]).max() < 0.25)
    True
    >>> release = dpf.robust_mean(X, epsilon=1.0, delta=1e-9, step=2**-10, width=1.0)
    >>> bool(np.abs(release - [0, 1, 2, 3, 4]).max() < 0.25)
    True
    """
    delta = _checks.delta_down(delta)
    options: dict[str, Any] = {"epsilon": epsilon, "radius": radius, "scale": scale, "transform": transform}
    mechanism: NestedBoxes | RangeFreeBoxes
    if bounds is None and grid is None:
        if step is None or width is None or not delta:
            raise TypeError(
                "give bounds=(lower, upper) or grid=Grid(...): public bounds on the values; or, for none, delta > 0, "
                "step and width"
            )
        mechanism = RangeFreeBoxes(statistic, step=step, width=width, delta=delta, **options)
    else:
        if delta:
            raise ValueError(f"delta must be 0 with bounds, where the release is pure, not {delta!r}")
        if step is not None or width is not None:
            raise TypeError("step and width are for releases without bounds: give a grid for the step")
        if bounds is not None and grid is not None:
            raise TypeError("give either bounds=(lower, upper) or grid=Grid(...), not both")
        grids: Any = grids_within(bounds, natural_step(X) if transform is None else None) if grid is None else grid
        mechanism = NestedBoxes(statistic, grid=grids, **options)
    release: NDArray[np.float64] | None = mechanism(X, rng=rng, workers=workers)
    return release


@dataclass(frozen=True, repr=False)
class _CoordinateWise(Mechanism):
    """A statistic of each column, in public units."""

    statistic: RankStatistic = field(default_factory=Median)
    epsilon: float = field(kw_only=True)
    radius: float = field(kw_only=True, default=0.0)
    scale: float | tuple[float, ...] | None = field(kw_only=True, default=None)
    transform: tuple[tuple[float, ...], ...] | None = field(kw_only=True, default=None)

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, RankStatistic):
            raise TypeError(
                f"statistic must have an attack range, as Median() or TrimmedMean(0.1) have, not {self.statistic!r}"
            )
        values = {
            "epsilon": _checks.positive_down("epsilon", self.epsilon),
            "radius": _checks.nonnegative("radius", self.radius),
            "scale": _scales(self.scale),
            "transform": _matrix(self.transform),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_dimensions(self) -> None:
        """Parameters for different numbers of columns fit no data."""
        given = dict(self._dimensions())
        if len(set(given.values())) > 1:
            parts = ", ".join(f"{name}: {d}" for name, d in given.items())
            raise ValueError(f"parameters must be for one number of columns ({parts})")

    def _scale(self, j: int) -> float:
        if self.scale is None:
            return 1.0
        return self.scale[j] if isinstance(self.scale, tuple) else self.scale

    def _dimensions(self) -> Iterator[tuple[str, int]]:
        """What fixes the number of columns."""
        if isinstance(self.scale, tuple):
            yield "scale", len(self.scale)
        if self.transform is not None:
            yield "transform", len(self.transform)

    @property
    def dimensions(self) -> int:
        return 2

    def _matrix(self, X: ArrayLike) -> NDArray[Any]:
        records = _containers.matrix("X", X)
        self._check_columns(records.shape[1])
        return records

    def _transformed(self, records: NDArray[Any], threads: int) -> NDArray[Any]:
        return records if self.transform is None else _transformed(records, np.array(self.transform), threads)

    def _check_columns(self, columns: int) -> None:
        for name, d in self._dimensions():
            if d != columns:
                raise ValueError(f"X must have {d} columns, as many as {name}, not {columns}")

    def _restored(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values before `transform`: any map of a release is as private as the release."""
        if self.transform is None:
            return values
        return np.asarray(np.linalg.solve(np.array(self.transform), values[..., None])[..., 0])

    def _described(self) -> str:
        within = f" within {self.radius!r}" if self.radius else ""
        return f"coordinate-wise {self.statistic}{within}"


def _scales(scale: Any) -> float | tuple[float, ...] | None:
    if scale is None:
        return None
    if np.ndim(scale) == 0:
        return _checks.positive("scale", scale)
    return tuple(_checks.positive("each of scale", part) for part in scale)


def _matrix(transform: Any) -> tuple[tuple[float, ...], ...] | None:
    if transform is None:
        return None
    matrix = _containers.matrix("transform", transform).astype(np.float64)
    if matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise ValueError(f"transform must be a square matrix of finite numbers, not of shape {matrix.shape}")
    if np.linalg.matrix_rank(matrix) < len(matrix):
        raise ValueError("transform must be invertible")
    return tuple(map(tuple, matrix.tolist()))


def _transformed(records: NDArray[Any], matrix: NDArray[np.float64], threads: int) -> NDArray[np.float64]:
    """`matrix` times each record, columns contiguous: a map of each record by itself, the same on every machine."""
    n, d = records.shape
    out = np.empty((d, n))

    def fill(start: int) -> None:
        rows = slice(start, start + _TRANSFORMED_ROWS)
        with np.errstate(all="ignore"):
            x = np.ascontiguousarray(records[rows].T, dtype=np.float64)
        _boxes.transform(matrix, x, out[:, rows])

    each(fill, range(0, n, _TRANSFORMED_ROWS), threads)
    return out.T


@dataclass(frozen=True, repr=False)
class NestedBoxes(_CoordinateWise):
    """Release a robust location in d dimensions: each grid point g with weight ``exp(-epsilon / 2 * score(g))``.

    score(g) is the greatest, over the coordinates, of the least numbers of records to replace so that the statistic of
    that coordinate can be on both sides of g, or at g: the points of score at most t are a box, the product of the
    attack ranges. Pure epsilon-differential privacy under one replaced record (row); the number of records is public.

    Parameters
    ----------
    statistic : dpfast.statistics.RankStatistic
        Of each column. Default: ``Median()``.
    grid : Grid or sequence of d Grids
        Public bounds and granularity of data and release, in data units; one for all columns, of any number, or d.
    epsilon : float
        Positive, for all coordinates together; rounded down to a double.
    radius, scale, transform
        As for `robust_mean`.

    Raises
    ------
    TypeError, ValueError
        Before any data are looked at; from a call, about its shape only.

    Notes
    -----
    Privacy: each coordinate's score changes by at most 1 with one record, so their maximum does; the rest as for
    `InverseSensitivity`, whose law this is for d = 1 (docs/proofs/nested-boxes.md). The law is exact: no float decides
    it. A `transform` acts on each record by itself, and its inverse on the release.
    Cost: a selection in each column and O(d levels), levels = min(n / 2, 2 (d log(size) + 42) / epsilon) for a median:
    where that reaches far into the data the columns are sorted. A second look at the data, of the same cost, is taken
    where the level drawn is far from ``2 (d + 1) / epsilon``. Timing is outside the guarantee.

    References
    ----------
    Hopkins, Kamath, Majid and Narayanan 2023; Asi and Duchi 2020.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> mechanism = dpf.NestedBoxes(grid=dpf.Grid(-1000, 1000), epsilon=1.0)
    >>> mechanism
    <NestedBoxes release of the coordinate-wise median on 4194304001 points from -1000.0 to 1000.0 in each coordinate: \
epsilon = 1 (pure differential privacy) for one record replaced (the number of records is public)>
    >>> X = np.random.default_rng(0).normal(size=(10_000, 3)) + [1, 2, 3]
    >>> bool(np.abs(mechanism(X) - [1, 2, 3]).max() < 0.1)
    True
    """

    grid: Grid | tuple[Grid, ...] = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.grid, Grid):
            grids = tuple(self.grid) if isinstance(self.grid, Sequence) else ()
            if not grids or not all(isinstance(grid, Grid) for grid in grids):
                raise TypeError("grid must be a dpfast.Grid, or one for each column")
            object.__setattr__(self, "grid", grids)
        self._check_dimensions()

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grid of each column; of every column, if there is one for all."""
        return (self.grid,) if isinstance(self.grid, Grid) else self.grid

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        return PrivacyProfile(self.privacy, (("bounded-range", self.epsilon, 1),))

    def __repr__(self) -> str:
        grid = self.grid
        if isinstance(grid, Grid):
            where = f"{grid.size} points from {grid.lower!r} to {grid.upper!r} in each coordinate"
        else:
            where = f"grids of {len(grid)} coordinates"
        return f"<NestedBoxes release of the {self._described()} on {where}: {self.privacy}>"

    def cap(self, n: int, d: int) -> int:
        """The public number of scores that are told apart for n records: all from here on count alike.

        ``1 + ceil(2 / epsilon * (log(V) + 42))`` for V possible releases: together they have at most e**-42 of the
        probability.
        """
        if isinstance(self.grid, Grid):
            volume = d * math.log(self._column(0, n).last + 1)
        else:
            volume = math.fsum(math.log(self._column(j, n).last + 1) for j in range(d))
        return score_cap(self.epsilon, volume)

    def __call__(self, X: ArrayLike | Chunks, *, rng: RandomSource = None, workers: int = 1) -> NDArray[np.float64]:
        source = bit_generator(rng)
        if isinstance(X, Chunks):
            return np.asarray(self.start().read(X, workers=workers).release(rng=source))
        threads, records = _checks.threads(workers), self._matrix(X)
        n, d = records.shape
        levels = self._levels(self.check_records(n), d)
        records = self._transformed(records, threads)
        kept = _Kept.around(2 * (d + 1) / self.epsilon, levels, n, d)

        def read(part: range) -> _boxes.Volumes:
            volumes = _boxes.Volumes(levels + 1)
            for j, values in columns_between(records, part.start, part.stop):
                self._column(j, n).multiply(values, levels, volumes, kept, j)
            return volumes

        volumes, *others = each(read, shares(d, threads), threads)
        for other in others:
            volumes.merge(other)
        level = np.empty(1, np.int64)
        volumes.fill_levels(source, self.epsilon, lambda: self._widths(records, levels), level)
        lower, upper = self._box(records, levels, int(level[0]), kept)
        codes = np.empty((1, d), np.int64)
        _boxes.fill_points(source, lower, upper, np.zeros(1, np.int64), codes)
        return self._decode(n, codes[0])

    def reading(self) -> Columns:
        def reading(j: int, d: int) -> Reading:
            column = self._column(j, 1)
            return column.statistic.reading(column.grid, lambda n: self._levels(n, d))

        passes = max(self.statistic.reading(grid, lambda n: 1).passes for grid in self.grids)
        return Columns(reading, self._matrix, self._check_columns, passes, self._transformed)

    def law_of(self, summaries: list[Summary]) -> Boxes:
        """The exact law of the release. PRIVATE. Holds all boxes: 16 d levels bytes."""
        n, d, levels = summaries[0].n, len(summaries), summaries[0].levels
        lower, upper = np.zeros((levels + 1, d), np.int64), np.empty((levels + 1, d), np.int64)
        for j, summary in enumerate(summaries):
            column = self._column(j, n)
            lower[:-1, j], upper[:-1, j] = column.widened(summary)
            upper[-1, j] = column.last
        return Boxes(lower, upper, epsilon=self.epsilon, decode=lambda codes: self._decode(n, codes))

    def error(
        self,
        n: SupportsIndex,
        *,
        deviation: float,
        dimension: SupportsIndex | None = None,
        confidence: float = 0.95,
        contamination: float = 0.0,
    ) -> float:
        """Upper bound on the greatest error of a coordinate, for normal records: `dpfast.theory.gaussian_mean_error`.

        Parameters
        ----------
        n : int
            Records, at least 1.
        deviation : float
            Positive: the assumed standard deviation of each coordinate, in data units.
        dimension : int, optional
            d; needed where one grid serves all columns.
        confidence : float
            In (0, 1).
        contamination : float
            In [0, 0.5): the fraction of the records that an adversary replaces.

        Raises
        ------
        TypeError
            Another statistic than the median, a radius, scale or transform: no theory tells their error.
        """
        if self.statistic != Median() or self.radius or self.scale is not None or self.transform is not None:
            raise TypeError("the error is known for medians without radius, scale and transform only")
        deviation = _checks.positive("deviation", deviation)
        if dimension is None:
            if isinstance(self.grid, Grid):
                raise TypeError("give dimension=, the number of columns, as one grid serves them all")
            dimension = len(self.grids)
        return deviation * gaussian_mean_error(
            n,
            dimension=dimension,
            epsilon=self.epsilon,
            width=max(grid.upper - grid.lower for grid in self.grids) / deviation,
            confidence=confidence,
            contamination=contamination,
            step=max(grid.step for grid in self.grids) / deviation,
        )

    def _dimensions(self) -> Iterator[tuple[str, int]]:
        yield from super()._dimensions()
        if not isinstance(self.grid, Grid):
            yield "grid", len(self.grid)

    def _levels(self, n: int, d: int) -> int:
        """How many levels are looked at: public, like the number of order statistics they need."""
        return min(self.cap(n, d), self.statistic.breakdown(n))

    def _column(self, j: int, n: int) -> _Column:
        grid, statistic, scale = (
            self.grid if isinstance(self.grid, Grid) else self.grid[j],
            self.statistic,
            self._scale(j),
        )
        if isinstance(statistic, Huber):
            statistic = replace(statistic, k=statistic.k * scale)
        last = statistic.last(grid, n)
        radius = round(min(self.radius * scale / grid.step * statistic.records(n), last))
        return _Column(statistic, grid, n, last, radius)

    def _widths(self, records: NDArray[Any], levels: int) -> Iterator[Sequence[int]]:
        n, d = records.shape
        for j, values in columns_between(records, 0, d):
            column = self._column(j, n)
            lower, upper = column.ranges(values, levels)
            yield [*(upper - lower + 1).tolist(), column.last + 1]

    def _box(self, records: NDArray[Any], levels: int, level: int, kept: _Kept) -> tuple[Codes, Codes]:
        n, d = records.shape
        if level in kept.levels:
            i = level - kept.levels.start
            return np.ascontiguousarray(kept.lower[None, :, i]), np.ascontiguousarray(kept.upper[None, :, i])
        lower, upper = np.zeros((1, d), np.int64), np.empty((1, d), np.int64)
        if level == levels:
            upper[0] = [self._column(j, n).last for j in range(d)]
        else:
            for j, values in columns_between(records, 0, d):
                low, high = self._column(j, n).ranges(values, levels)
                lower[0, j], upper[0, j] = low[level], high[level]
        return lower, upper

    def _decode(self, n: int, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        columns = [self._column(j, n) for j in range(codes.shape[-1])]
        values = [column.statistic.decode(column.grid, n, codes[..., j]) for j, column in enumerate(columns)]
        return self._restored(np.stack(values, axis=-1))


@dataclass(frozen=True)
class _Kept:
    """The boxes of the levels that are likely to be drawn, for each column: how many depends on public numbers only."""

    levels: range
    lower: Codes
    upper: Codes

    @classmethod
    def around(cls, likely: float, levels: int, n: int, d: int) -> _Kept:
        count = min(levels, max(_KEPT // d, n // 16))
        start = max(0, min(int(min(likely, levels)) - count // 2, levels - count))
        return cls(range(start, start + count), np.empty((d, count), np.int64), np.empty((d, count), np.int64))


@dataclass(frozen=True)
class _Column:
    """One coordinate: its statistic, and public numbers."""

    statistic: RankStatistic
    grid: Grid
    n: int
    last: int
    radius: int

    def ranges(self, values: NDArray[Any], levels: int) -> tuple[Codes, Codes]:
        """The attack ranges of all levels, widened by the radius."""
        return self.widened(self.statistic.reading(self.grid, lambda _: levels).of(values))

    def widened(self, summary: Summary) -> tuple[Codes, Codes]:
        """The attack ranges of a summary, widened by the radius."""
        lower, upper = self.statistic.attack_range(summary)
        return np.maximum(lower - self.radius, 0), upper + np.minimum(self.last - upper, self.radius)

    def multiply(self, values: NDArray[Any], levels: int, volumes: _boxes.Volumes, kept: _Kept, j: int) -> None:
        """The widths of all levels into the volumes, and the ends of those kept into row j."""
        grid = self.grid
        if isinstance(self.statistic, OrderStatistic):
            rank = self.statistic.rank(self.n)
            window = _select.window(values, rank - levels + 1, rank + levels - 1, **grid.kernel, workers=1)
            volumes.add_window(
                window,
                self.radius,
                self.last,
                grid.lower,
                grid.upper,
                grid.step,
                grid.first,
                kept.lower[j],
                kept.upper[j],
                kept.levels.start,
            )
            return
        lower, upper = self.ranges(values, levels)
        volumes.add_ranges(np.append(lower, 0), np.append(upper, self.last))
        where = slice(kept.levels.start, kept.levels.stop)
        kept.lower[j], kept.upper[j] = lower[where], upper[where]


@dataclass(frozen=True, repr=False)
class RangeFreeBoxes(_CoordinateWise):
    """Release a robust location in d dimensions without bounds on it, or None: propose, test, release.

    A noisy count of replacements says whether the middle of the data is closer together than `width` in the mean of
    the coordinates; if so a point of score at most T is released as by `NestedBoxes`, else None, which tells nothing
    more. (epsilon, delta)-differential privacy under one replaced record (row); the number of records is public.

    Parameters
    ----------
    statistic : dpfast.statistics.Median or Quantile
        Of each column.
    step : float
        A power of two in data units: the granularity of data and release. Records count as at most 2**51 steps from 0.
    width : float
        Public guess of the spread, in data units, at least one step: the test can pass if T + 1 + m records on each
        side of the statistic are about as close as this; see `plan`.
    epsilon, delta : float
        Positive, in all; rounded down to doubles.
    radius, scale, transform
        As for `robust_mean`.

    Raises
    ------
    TypeError, ValueError
        Before any data are looked at. From a call, about its shape: fewer records than the test can ever pass with.

    Notes
    -----
    Privacy: docs/proofs/nested-boxes.md, by enumeration of small cases too, None being one of the outcomes. The test is
    in exact integers, its noise an exact discrete Laplace. Cost: as `NestedBoxes`, with a window of public width.

    References
    ----------
    Dwork and Lei 2009, "Differential privacy and robust statistics"; Hopkins, Kamath, Majid and Narayanan 2023.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> mechanism = dpf.robust.RangeFreeBoxes(step=2**-10, width=1.0, epsilon=1.0, delta=1e-6)
    >>> X = np.random.default_rng(0).normal(size=(5_000, 2)) + [1e6, -1e3]
    >>> bool(np.abs(mechanism(X) - [1e6, -1e3]).max() < 0.1)
    True
    >>> mechanism(1e6 * X) is None
    True
    """

    step: float = field(kw_only=True)
    width: float = field(kw_only=True)
    delta: float = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.statistic, OrderStatistic):
            raise TypeError(f"statistic must be an order statistic without bounds, not {self.statistic!r}")
        object.__setattr__(self, "step", _checks.positive("step", self.step))
        object.__setattr__(self, "width", _checks.positive("width", self.width))
        self._check_dimensions()
        delta = _checks.delta_down(self.delta)
        if not delta:
            raise ValueError(f"delta must be positive without bounds, not {self.delta!r}")
        object.__setattr__(self, "delta", delta)
        if self.epsilon < _LEAST_EPSILON:
            raise ValueError(f"epsilon must be at least 2**-28 without bounds, not {self.epsilon!r}")
        for scale in self.scale if isinstance(self.scale, tuple) else (self._scale(0),):
            if not self.step <= self.width * scale <= self.step * 2**51:
                raise ValueError(f"width must be from 1 to 2**51 steps, not {self.width * scale / self.step:g}")
            if self.radius * scale > self.step * 2**50:
                raise ValueError(f"radius must be at most 2**50 steps, not {self.radius * scale / self.step:g}")
        _ = self.grid

    @property
    def grid(self) -> Grid:
        """All multiples of the step that are at most 2**51 steps from 0: no bounds of the mechanism's."""
        return Grid(-(2.0**51) * self.step, (2.0**51 - 1) * self.step, step=self.step, missing=0.0)

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    def __repr__(self) -> str:
        return (
            f"<RangeFreeBoxes release of the {self._described()} in steps of {self.step!r}, tested for a spread of "
            f"{self.width!r}: {self.privacy}>"
        )

    def plan(self, d: int) -> Plan:
        """The public numbers of the test in d dimensions."""
        radii = self._radii(d)
        widths = [math.floor(self.width * self._scale(j) / self.step) for j in range(d)]
        base = math.prod(2 * radius + 1 for radius in radii)
        allowed = math.prod(width + 1 + 2 * radius for width, radius in zip(widths, radii, strict=True))
        return _plan(self.epsilon, self.delta, base, allowed)

    def _radii(self, d: int) -> list[int]:
        return [round(self.radius * self._scale(j) / self.step) for j in range(d)]

    def least_records(self, d: int) -> int:
        """The least n for which the test can pass with probability 1/2 or more; a ValueError if there is none."""
        needed = self.plan(d).needed
        return least(
            lambda n: self._room(n) >= needed,
            most=2**62,
            too_many=f"the {self.statistic} can be moved anywhere by one record: there is no release without bounds",
        )

    def _room(self, n: int) -> int:
        """The number of replaced records that can move the statistic anywhere."""
        assert isinstance(self.statistic, OrderStatistic)
        rank = self.statistic.rank(n)
        return min(rank, n - rank + 1)

    def reading(self) -> Columns:
        def reading(j: int, d: int) -> Reading:
            return self.statistic.reading(self.grid, lambda n: self._boxes(n, d))

        return Columns(reading, self._matrix, self._check_columns, reading(0, 1).passes, self._transformed)

    def _boxes(self, n: int, d: int) -> int:
        """How many boxes are looked at: public. A ValueError for too few records."""
        plan = self.plan(d)
        room = self._room(n)
        if room < plan.needed:
            raise ValueError(
                f"X must have at least {self.least_records(d)} records, not {n}: with these parameters the test can "
                f"never pass"
            )
        return min(room, plan.cap + 2 + plan.reach)

    def law_of(self, summaries: list[Summary]) -> BehindTest:
        """The exact law of the release, failure included. PRIVATE."""
        d, first = len(summaries), int(self.grid.first)
        plan, ranges = self.plan(d), [self.statistic.attack_range(summary) for summary in summaries]
        lower, upper = (np.stack(ends, axis=1) for ends in zip(*ranges, strict=True))
        radii = np.array(self._radii(d))
        lower, upper = lower + (first - radii), upper + (first + radii)
        law = Boxes(lower[: plan.cap + 1], upper[: plan.cap + 1], epsilon=plan.epsilon, decode=self._decode)
        return BehindTest(law, margin=plan.threshold - plan.slack(lower, upper), epsilon=plan.test_epsilon)

    def _decode(self, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._restored(np.asarray(codes * self.step, dtype=np.float64))


@dataclass(frozen=True)
class Plan:
    """The public numbers of a test: docs/proofs/nested-boxes.md.

    Attributes
    ----------
    epsilon, test_epsilon : float
        The shares of the release and of the test.
    cap : int
        T: points of a score above it are never released.
    threshold : int
        m: what the noisy count of replacements must reach.
    bound : int
        B: the test counts how many replacements can be made before box T + 1 may hold more points.
    reach : int
        The count is cut off here, where the test passes but for a probability of e**-42.
    """

    epsilon: float
    test_epsilon: float
    cap: int
    threshold: int
    bound: int
    reach: int

    @property
    def needed(self) -> int:
        """Replacements that must not move the statistic anywhere: T + 2 + m."""
        return self.cap + 2 + self.threshold

    def slack(self, lower: Codes, upper: Codes) -> int:
        """The greatest r with at most `bound` points in box T + 1 + r, or -1: exact, by bisection. PRIVATE."""
        low, high = self.cap, len(lower) - 1  # box `low` counts as within the bound
        while low < high:
            middle = (low + high + 1) // 2
            if math.prod((upper[middle] - lower[middle] + 1).tolist()) <= self.bound:
                low = middle
            else:
                high = middle - 1
        return low - self.cap - 1


@lru_cache(maxsize=64)
def _plan(epsilon: float, delta: float, base: int, allowed: int) -> Plan:
    """The split, of 63, that needs the fewest records: `base` points have score 0, boxes of `allowed` may pass."""
    from dpfast._kernels._balls import tested_bound, tested_threshold

    growth = math.log(allowed) - math.log(base)

    def shares(part: int) -> tuple[float, float]:
        release = min(epsilon, _LARGEST_EPSILON) * part / 64
        return release, _down(Fraction(epsilon) - Fraction(release))

    def cap(release: float) -> int:
        log_small = math.log(delta) - release - math.log1p(math.exp(-release / 2))
        return max(0, math.ceil(2 / release * (growth - log_small)) - 1)

    def needed(part: int) -> float:
        release, test = shares(part)
        return cap(release) + max(0.0, -math.log(delta) / test)

    release, test = shares(min(range(1, 64), key=needed))
    levels = cap(release)
    threshold = tested_threshold(test, delta)
    bound = tested_bound(release, delta, levels + 1, base)
    return Plan(release, test, levels, threshold, bound, threshold + math.ceil(TAIL / test))


def _down(x: Fraction) -> float:
    """The greatest double that is not above x."""
    y = float(x)
    return y if Fraction(y) <= x else math.nextafter(y, 0.0)


@refused(EXACT)
def score(
    estimator: RankStatistic,
    x: ArrayLike,
    theta: float,
    radius: float = 0.0,
    *,
    grid: Grid,
    workers: int = 1,
) -> int:
    """The least number of records of x to replace so that the estimator can be within `radius` of theta. PRIVATE.

    Parameters
    ----------
    estimator : RankStatistic
        ``Median()``, ``TrimmedMean(0.1)``, ``Huber(2.0)`` or another one of `dpfast.statistics`.
    x : array_like of shape (n,)
    theta, radius : float
        In data units, taken as the numbers they are; radius at least 0.
    grid : Grid
        Public bounds and granularity of the records.
    workers : int

    Returns
    -------
    int
        The least t for which [theta - radius, theta + radius] meets the attack range of t replaced records. It changes
        by at most 1 where one record is replaced: a score for `reduce`.

    Raises
    ------
    ValueError
        No data at all give such an estimate: theta is more than `radius` outside the grid; parameters only.

    Notes
    -----
    Privacy: none; a building block, which an active `dpfast.Ledger` refuses outside of `reduce`. For order statistics
    it is the least number such that the estimate is within `radius`; for sums, values between the ends of the attack
    range need not be reached (docs/proofs/monotone-statistics.md).
    Cost: as for `InverseSensitivity`, for up to n / 2 levels.

    Examples
    --------
    >>> import dpfast as dpf
    >>> dpf.robust.score(dpf.statistics.Median(), [1, 2, 3, 4, 5], 4.5, 0.5, grid=dpf.Grid(0, 10, step=1))
    1
    """
    if not isinstance(estimator, RankStatistic):
        raise TypeError(f"estimator must have an attack range, as Median() has, not {estimator!r}")
    if not isinstance(grid, Grid):
        raise TypeError(f"grid must be a dpfast.Grid, not {type(grid).__name__}")
    _checks.real("theta", theta)
    _checks.nonnegative("radius", radius)
    threads = _checks.threads(workers)
    values = _containers.vector("x", x)
    n = _checks.records(values.shape[0])
    unit = Fraction(grid.step) / estimator.records(n)
    center, reach = (_checks.exact(theta) - Fraction(estimator.value(grid, n, 0))) / unit, _checks.exact(radius) / unit
    first, last = math.ceil(center - reach), math.floor(center + reach)
    if last < 0 or first > estimator.last(grid, n):
        raise ValueError(f"no records on {grid!r} give an estimate within {radius!r} of theta={theta!r}")
    lower, upper = estimator.attack_range(estimator.reading(grid, estimator.breakdown).of(values, threads))
    apart = (lower > min(last, 2**63 - 1)) | (upper < max(first, -(2**63)))
    return int(np.count_nonzero(apart))


def reduce(
    score: Callable[[Any], float] | LowLevelCallable,
    candidates: Iterable[Any],
    *,
    epsilon: float,
    rng: RandomSource = None,
) -> Any:
    """Release one of finitely many candidates by a robustness score: the black-box reduction, epsilon-private.

    Candidate c is chosen with probability proportional to ``exp(-epsilon / 2 * score(c))``; neighbours: one replaced
    record of the data that `score` looks at.

    Parameters
    ----------
    score : callable or scipy.LowLevelCallable
        Of a candidate: the least number of records to replace so that a robust estimator comes within a public distance
        of it; an integer, a float or a Fraction, taken as exactly the number it is. Lower is better. YOUR promise, on
        which the privacy rests: it changes by at most 1 where one record is replaced, and nothing else about the data
        shows, no exception either; `dpfast.audit.lipschitz` checks it on small data. A candidate whose score is
        infinite, NaN or None is not chosen, unless all are. A pointer to a function is called without the GIL:
        ``double (double)`` for numbers, ``double (int, double *)`` for rows of as many, either with a ``void *`` at the
        end, where your private data may be (docs/guides/c-api.md).
    candidates : iterable
        Public; at least one.
    epsilon : float
        Positive.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.

    Returns
    -------
    object
        One of the candidates.

    Notes
    -----
    Privacy: the exponential mechanism with exponent epsilon / 2, exactly, by `dpfast.select`
    (docs/proofs/selection.md); the slides' exponent epsilon is 2 epsilon-DP. Cost: one score for each candidate, and a
    selection among them.

    References
    ----------
    Hopkins, Kamath, Majid and Narayanan 2023; Cockerell and Jayant 2023, "Robustness implies privacy", slides.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> x, grid = np.random.default_rng(0).normal(3, 1, 1000), dpf.Grid(-10, 10)
    >>> score = lambda c: dpf.robust.score(dpf.statistics.Median(), x, c, 0.1, grid=grid)
    >>> dpf.robust.reduce(score, range(-10, 11), epsilon=1.0)
    3
    """
    epsilon = _checks.positive_down("epsilon", epsilon)
    source = bit_generator(rng)
    pointer = _callbacks.is_pointer(score)
    if not callable(score) and not pointer:
        raise TypeError(f"score must be a function of a candidate, not {type(score).__name__}")
    choices = list(candidates)
    if not choices:
        raise ValueError("candidates must not be empty")
    scores = _callbacks.over("score", score, choices) if pointer else lambda: map(score, choices)
    mechanism = Selection(epsilon=epsilon)
    with spending(mechanism.privacy_profile, label=f"robust.reduce to one of {len(choices)} candidates"):
        return choices[mechanism([-_distance(distance) for distance in scores()], rng=source)]


def _distance(score: Any) -> Fraction | float:
    """A score exactly, so that a difference of 1 is one of 1: rounded to doubles, 2/3 and 5/3 are further apart."""
    return _containers.exact_score(score, missing=math.inf)
