"""Predict errors from an assumed distribution of the records, by simulated ("imagined") samples, never from data.

An assumed distribution is public, and so is everything computed from it. A fixed seed draws the imagined samples: only
the order statistics that the mechanism reads, from the spacings of uniform order statistics, so the cost does not grow
with n. The mechanism's own law is computed for each imagined sample.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from itertools import islice
from typing import Any, Protocol

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dpfast.core.foreign import foreign
from dpfast.core.grid import FloatGrid, Grid, Points
from dpfast.laws import IntegerNoise, ScalarLaw
from dpfast.statistics import Huber, Statistic, Summary, UserStatistic
from dpfast.streaming import Integers

Array = NDArray[np.float64]
Cdf = Callable[[NDArray[np.int64]], NDArray[np.float64]]

# The number of imagined samples, a power of two for Sobol points. The error of a probability is then about 1 / 500.
SAMPLES = 256
_SEED = 20120912
_MOST_EVEN = 2**26
_EVEN, _MOST_IMAGINED = 2**12, 2**20  # records, of which a statistic of the user is computed
_AT_ONCE = 2**18
_LARGEST = sys.float_info.max
_TAIL, _MIDDLE = 1e-13, 2.0**-7
_CELLS = 2**11
_NODES, _FEWER, _DOUBT, _STEPS = (32, 40), 16, 2.0**-41, 20
_ROOT = math.sqrt(2 * math.pi)


@cache
def _edges() -> NDArray[np.float64]:
    """Return the ends and the middles of the cells of the levels."""
    tail = np.geomspace(_TAIL, _MIDDLE, 1024)
    middle = np.linspace(_MIDDLE, 1 - _MIDDLE, 2**13)
    ends = np.concatenate([[0.0], tail, middle[1:-1], 1 - tail[::-1], [1.0]])
    return np.insert((ends[1:] + ends[:-1]) / 2, np.arange(ends.size), ends)


class Assumed:
    """The distribution that the caller assumes for the records: its quantile function, moments and integrals.

    Parameters
    ----------
    distribution : object
        An object like a frozen distribution of ``scipy.stats``, with `ppf`, for means and variances also `mean` and
        `var`.

    Notes
    -----
    Integrals of the quantile function are sums over about 10000 cells, by Gauss's two-point rule. The cells have mass
    2**-13 in the middle; in the outer 1/128 on each side their mass is proportional to the distance from the end.
    """

    def __init__(self, distribution: Any) -> None:
        if not callable(getattr(distribution, "ppf", None)):
            raise TypeError(
                f"distribution must have a quantile function ppf, like scipy.stats.norm(), not "
                f"{type(distribution).__name__}"
            )
        self._distribution = distribution

    def points(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the quantile function."""
        with foreign():
            x = np.asarray(self._distribution.ppf(u), dtype=np.float64)
        if x.shape != u.shape or np.isnan(x).any():
            raise ValueError("the quantile function ppf of the assumed distribution must give a number for every level")
        return x

    def moment(self, name: str) -> float:
        """`mean` or `var`."""
        if not callable(function := getattr(self._distribution, name, None)):
            raise TypeError(f"distribution must have a method {name} for this statistic")
        with foreign():
            return float(function())

    @cached_property
    def nodes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Points of the distribution and their masses: the two Gauss points of each cell."""
        halves = np.diff(_edges())
        left, right = _edges()[1::2] - halves[::2] / math.sqrt(3), _edges()[1::2] + halves[::2] / math.sqrt(3)
        return self.points(np.stack([left, right], axis=1).reshape(-1)), halves

    def integral(self, heights: NDArray[np.float64]) -> Callable[[Any], Any]:
        """Return the integral from 0 to u of the function of the level with these values at the nodes."""
        sums = np.concatenate([[0.0], np.cumsum(heights * self.nodes[1])])
        return lambda u: np.interp(u, _edges(), sums)

    def clamped_moments(
        self, lower: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean and the variance of a record clamped to each of several pairs of bounds."""
        x, mass = self.nodes
        first, last = np.searchsorted(x, lower), np.searchsorted(x, upper)
        below, above = np.append(0.0, np.cumsum(mass))[first], np.append(np.cumsum(mass[::-1])[::-1], 0.0)[last]

        def moment(power: int) -> NDArray[np.float64]:
            sums = np.append(0.0, np.cumsum(mass * x**power))
            return np.asarray(below * lower**power + sums[last] - sums[first] + above * upper**power)

        mean = moment(1)
        return mean, np.maximum(moment(2) - mean**2, 0.0)

    # The interface that `Statistic.functional` uses.

    def quantile(self, level: Fraction, *, above: bool = False) -> float:
        """Return the quantile function. (`above` is ignored: the limit from above differs only at a jump.)"""
        return float(self.points(np.array([float(level)]))[0])

    def between(self, start: Fraction, stop: Fraction) -> float:
        """Return the integral of the quantile function."""
        if start == 0 and stop == 1:
            return self.moment("mean")
        total = self.integral(self.nodes[0])
        return float(total(float(stop)) - total(float(start)))

    def variance(self) -> float:
        return self.moment("var")

    def huber(self, k: Fraction) -> float:
        """Return the root of the mean of clip(theta - X, -k, k)."""
        x, mass = self.nodes
        corner = float(k)
        low, high = float(x[1]) - corner, float(x[-2]) + corner
        while low < (middle := (low + high) / 2) < high:
            low, high = (low, middle) if np.sum(mass * np.clip(middle - x, -corner, corner)) >= 0 else (middle, high)
        return high


class Affine(Assumed):
    """The distribution of ``shift + scale * X``, X of an assumed distribution, whose nodes it uses; scale > 0.

    With a grid, its variance is that of records clamped there: Student's t(2), a reference, has no other.
    """

    def __init__(self, base: Assumed, shift: float, scale: float, grid: Grid | None = None) -> None:
        self._base, self._shift, self._scale, self._grid = base, shift, scale, grid

    def points(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._moved(self._base.points(u))

    def _moved(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):  # infinite beyond the range of doubles, and cut at the bounds like the rest
            return self._shift + self._scale * values

    def moment(self, name: str) -> float:
        if name == "var" and self._grid is not None:
            return code_moments(self, self._grid)[1] * self._grid.step**2
        moment = self._base.moment(name)
        return self._scale**2 * moment if name == "var" else self._shift + self._scale * moment

    @cached_property
    def nodes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        values, masses = self._base.nodes
        return self._moved(values), masses


class Uniform:
    """The uniform distribution with this density whose q-quantile is the middle of the grid."""

    def __init__(self, grid: Grid, q: float, density: float) -> None:
        self._center, self._q, self._density = (grid.lower + grid.upper) / 2, q, density

    def ppf(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._center + (u - self._q) / self._density


class _Even:
    """The uniform distribution over the bounds of a grid."""

    def __init__(self, grid: Grid) -> None:
        self._lower, self._upper = grid.lower, grid.upper

    def ppf(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._lower * (1 - u) + self._upper * u

    def mean(self) -> float:
        return self._lower / 2 + self._upper / 2

    def var(self) -> float:
        return (self._upper - self._lower) ** 2 / 12


@lru_cache(maxsize=64)
def evenly_over(grid: Grid) -> Assumed:
    """Return the distribution of records that are spread evenly over the bounds."""
    return Assumed(_Even(grid))


def is_fixed(assumed: Any) -> bool:
    """Whether results for a distribution or a statistic may be kept: its hash is one of its values, or it is of SciPy.

    An object with the hash of its identity may change and keep its hash; those of SciPy have such a hash, too.
    """
    kind = type(assumed)
    hashed: Any = kind.__hash__  # None for a list
    by_value = assumed is None or (hashed is not None and hashed is not object.__hash__)
    return by_value or kind.__module__.startswith("scipy.stats")


class Predicting(Protocol):
    """A mechanism with a hash that predicts its error."""

    def __hash__(self) -> int: ...

    def _error_under(self, n: int, assumed: Assumed, confidence: float) -> Any: ...


def error_under(mechanism: Predicting, n: int, distribution: Any, confidence: float) -> Any:
    """Return the error of a release from n records of an assumed distribution: at once, if it was asked for before."""
    if not is_fixed(distribution):
        return mechanism._error_under(n, Assumed(distribution), confidence)
    found = _error_under(mechanism, n, distribution, confidence)
    return found.copy() if isinstance(found, np.ndarray) else found


@lru_cache(maxsize=256)
def _error_under(mechanism: Predicting, n: int, distribution: Any, confidence: float) -> Any:
    return mechanism._error_under(n, Assumed(distribution), confidence)


def target(statistic: Statistic, assumed: Assumed) -> float:
    """Return the population value."""
    value = float(statistic.functional(assumed))
    if not math.isfinite(value):
        raise ValueError(f"the {statistic} of the assumed distribution is not finite")
    return value


@cache
def sobol(dimensions: int) -> NDArray[np.float64]:
    """Return the fixed low-discrepancy points in the interior of the cube."""
    from scipy.stats import qmc

    points = qmc.Sobol(dimensions, scramble=True, seed=_SEED).random(SAMPLES)
    points = np.asarray(np.clip(points, 2.0**-40, 1 - 2.0**-40))
    points.flags.writeable = False
    return points


def _interior(rng: np.random.Generator, d: int, head: int, tail: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the first `head` and last `tail` of d - 1 sorted uniform points, drawn by their d spacings; head + tail <
    d.
    """
    spacings = rng.standard_exponential(head + tail)
    total = spacings.sum() + rng.standard_gamma(d - head - tail)
    return np.cumsum(spacings[:head]) / total, 1 - np.cumsum(spacings[head:])[::-1] / total


class ImaginedRanks:
    """Many draws of the uniform order statistics of n records around given ranks.

    Parameters
    ----------
    n : int
    ranks : sequence of int
        Distinct and sorted; the draws at these ranks cover their joint law evenly.
    reach : int
        The largest distance of a drawn rank from one of `ranks`.
    cube : ndarray of shape (samples, len(ranks))
        Points from `sobol`, one per imagined sample.

    Attributes
    ----------
    spans : list of pairs
        The first and last rank of each stretch of ranks that are drawn.
    """

    def __init__(self, n: int, ranks: Sequence[int], reach: int, cube: NDArray[np.float64]) -> None:
        self._n, self._ranks = n, list(ranks)
        self.spans: list[tuple[int, int]] = []
        for rank in self._ranks:
            first, last = max(rank - reach, 1), min(rank + reach, n)
            if self.spans and first <= self.spans[-1][1] + 1:
                first = self.spans.pop()[0]
            self.spans.append((first, last))
        at, columns, previous = np.zeros(len(cube)), [], 0
        for rank, levels in zip(self._ranks, cube.T, strict=True):
            at = at + (1 - at) * scipy.special.betaincinv(rank - previous, n + 1 - rank, levels)
            columns.append(at)
            previous = rank
        self._at = np.stack(columns, axis=1)

    def __iter__(self) -> Iterator[NDArray[np.float64]]:
        """Yield the points of all stretches, in order."""
        rng = np.random.Generator(np.random.PCG64(_SEED))
        span_of = {rank: span for rank in self._ranks for span in self.spans if span[0] <= rank <= span[1]}
        fences = [(0, (0, 0)), *((rank, span_of[rank]) for rank in self._ranks), (self._n + 1, (self._n + 1,) * 2)]
        for row in self._at:
            places = [0.0, *row.tolist(), 1.0]
            parts: list[NDArray[np.float64]] = []
            for j in range(len(fences) - 1):
                (left, left_span), (right, right_span) = fences[j], fences[j + 1]
                head = min(left_span[1], right - 1) - left
                tail = right - max(right_span[0], left + 1) if left_span != right_span else 0
                after, before = _interior(rng, right - left, head, tail)
                width = places[j + 1] - places[j]
                parts += [np.array([places[j]])] if j else []
                parts += [places[j] + width * after, places[j] + width * before]
            yield np.concatenate(parts)


def summaries(
    statistic: Any, assumed: Assumed, grid: Points, n: int, levels: int, samples: int = SAMPLES
) -> Iterator[Summary]:
    """Yield the summaries that `RankStatistic.reading` would make of the first imagined samples of n records.

    The sum of the records between two stretches is drawn from its normal approximation, given the ends of both.
    """
    ranks, reach = statistic.ranks(n), levels - 1
    different = sorted(set(ranks))
    cube = sobol(len(different) + 1)[:samples]
    imagined = ImaginedRanks(n, different, reach, cube[:, :-1])
    codes_of_nodes = _codes(assumed.nodes[0], grid)
    first, second = assumed.integral(codes_of_nodes), assumed.integral(codes_of_nodes**2)
    for (u, x), z in zip(_points(imagined, assumed), scipy.special.ndtri(cube[:, -1]).tolist(), strict=True):
        codes = grid.encode(x)
        pieces = dict(zip(imagined.spans, _cut(codes, imagined.spans), strict=True))
        windows = tuple(_padded(pieces, rank, reach, n, grid.size - 1) for rank in ranks)
        total = _sum(ranks, pieces, u, first, second, z) if statistic.adds else 0
        yield Summary(grid, n, levels, windows, total)


def samples_of_records(assumed: Assumed, grid: Points, n: int, samples: int) -> Iterator[Summary]:
    """Yield the summaries of imagined samples of n records with all of their codes, for a statistic of the user."""
    if n > _MOST_IMAGINED:
        raise ValueError(f"the error of this release is computed for at most 2**20 records, not {n}")
    rng = np.random.Generator(np.random.PCG64(_SEED))
    for _ in range(samples):
        codes = grid.encode(assumed.points(np.sort(rng.uniform(2.0**-40, 1 - 2.0**-40, n))))
        yield Summary(grid, n, 1, (codes,))


def target_of_user(statistic: UserStatistic, assumed: Assumed, grid: Points, n: int) -> float:
    """Return about the population value of a statistic of the user: that of an evenly spaced sample."""
    size = min(max(n, _EVEN), _MOST_IMAGINED)
    codes = grid.encode(even_records(assumed, size))
    return statistic.value(grid, size, statistic.exact(codes, grid.size - 1))


def _points(imagined: ImaginedRanks, assumed: Assumed) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Levels and points in large batches: a call of a SciPy distribution costs as much as thousands of points."""
    at_once = max(1, _AT_ONCE // sum(last - first + 1 for first, last in imagined.spans))
    rows = iter(imagined)
    while block := list(islice(rows, at_once)):
        yield from zip(block, assumed.points(np.stack(block)), strict=True)


def _codes(x: NDArray[np.float64], grid: Points) -> NDArray[np.float64]:
    return grid.encode(x).astype(np.float64)


def _cut(codes: Integers, spans: list[tuple[int, int]]) -> list[Integers]:
    return np.split(codes, np.cumsum([last - first + 1 for first, last in spans])[:-1])


def _padded(pieces: dict[tuple[int, int], Integers], rank: int, reach: int, n: int, most: int) -> Integers:
    """Return the codes of the ranks rank - reach .. rank + reach: 0 below rank 1, `most` above rank n."""
    (first, _), codes = next(item for item in pieces.items() if item[0][0] <= rank <= item[0][1])
    inside = codes[max(rank - reach, 1) - first : min(rank + reach, n) - first + 1]
    below, above = max(0, 1 - (rank - reach)), max(0, rank + reach - n)
    return np.concatenate([np.zeros(below, np.int64), inside, np.full(above, most, np.int64)])


def _sum(
    ranks: tuple[int, ...],
    pieces: dict[tuple[int, int], Integers],
    u: NDArray[np.float64],
    integral: Callable[[Any], Any],
    of_squares: Callable[[Any], Any],
    z: float,
) -> int:
    """Return the sum of the codes from the first to the last of two ranks."""
    spans, codes = list(pieces), list(pieces.values())
    first, last = ranks
    if len(spans) == 1:
        return int(codes[0][first - spans[0][0] : last - spans[0][0] + 1].sum())
    between = spans[1][0] - spans[0][1] - 1
    ends = u[codes[0].size - 1 : codes[0].size + 1]
    mass = float(ends[1] - ends[0])
    mean = float(np.diff(integral(ends))[0]) / mass
    variance = max(0.0, float(np.diff(of_squares(ends))[0]) / mass - mean**2)
    normal = round(between * mean + math.sqrt(between * variance) * z)
    return int(codes[0][first - spans[0][0] :].sum()) + normal + int(codes[1][: last - spans[1][0] + 1].sum())


def code_moments(assumed: Assumed, grid: Grid) -> tuple[float, float, float]:
    """Mean, variance and fourth central moment of the code of a record."""
    x, mass = _codes(assumed.nodes[0], grid), assumed.nodes[1]
    mean = float(np.sum(mass * x))
    return mean, float(np.sum(mass * (x - mean) ** 2)), float(np.sum(mass * (x - mean) ** 4))


def normal_points() -> NDArray[np.float64]:
    """Return `SAMPLES` standard normal quantiles, at evenly spaced levels."""
    return np.asarray(scipy.special.ndtri((np.arange(SAMPLES) + 0.5) / SAMPLES))


def even_records(assumed: Assumed, n: int) -> NDArray[np.float64]:
    """Return the evenly spaced sample of n records: the quantiles of the levels (i + 1/2) / n."""
    if n > _MOST_EVEN:
        raise ValueError(f"the error of this release is computed for at most 2**26 records, not {n}")
    return assumed.points((np.arange(n) + 0.5) / n)


def huber_law(
    statistic: Huber, assumed: Assumed, grid: Points, n: int, levels: int, law: Callable[[Summary], ScalarLaw]
) -> Cdf:
    """Return the average over samples of P(K <= k) for Huber's estimate: the law of an evenly spaced sample, normally
    shifted.

    One sample is enough for the noise, which depends on averages over the many records near and beyond the corners.
    """
    even = grid.encode(even_records(assumed, n))
    cdf = law(Summary(grid, n, levels, (even,))).cdf
    x, mass = assumed.nodes
    # The asymptotic deviation: sqrt(E clip(X - theta)**2) / (P(|X - theta| < k) sqrt(n)).
    away = np.clip(x, grid.lower, grid.upper) - float(statistic.functional(assumed))
    inside = float(np.sum(mass[np.abs(away) < statistic.k]))
    deviation = math.sqrt(float(np.sum(mass * np.clip(away, -statistic.k, statistic.k) ** 2)) / n) / max(inside, 1 / n)
    shifts = np.rint(normal_points() * min(deviation / grid.step, grid.size)).astype(np.int64)
    return lambda k: np.asarray(cdf(k[:, None] - shifts).mean(axis=1))


def averaged(laws: Sequence[ScalarLaw]) -> Cdf:
    """Return the average of P(K <= k) over the laws."""
    return lambda k: np.asarray(np.mean([law.cdf(k) for law in laws], axis=0))


def averaged_noise(
    log_tail: Callable[[NDArray[np.float64]], NDArray[np.float64]], centers: ArrayLike, last: int
) -> Cdf:
    """Return the average of P(K <= k) for ``clamp(center + Z)`` on 0..last: see ``dpfast.laws.ClampedNoise.cdf``.

    `log_tail` is that of Z, or of the Z of each center.
    """
    middles = np.asarray(centers, dtype=np.float64)

    def cdf(k: NDArray[np.int64]) -> NDArray[np.float64]:
        z = middles - k[:, None]
        tail = np.exp(log_tail(np.where(z > 0, z, 1 - z)))
        below = np.where(z > 0, tail, 1 - tail).mean(axis=1)
        return np.select([k < 0, k >= last], [0.0, 1.0], below)

    return cdf


def normal_plus_noise_error(deviation: float, noise: IntegerNoise, unit: float, confidence: float) -> float:
    """Return the least t with ``P(|deviation Z + unit K| <= t) >= confidence``, Z standard normal, K the noise; to 1 in
    10000.

    The magnitudes of K are summed over at most `_CELLS` cells, each by its middle, out to one of mass e**-45. Newton's
    steps enclose the result narrowly. It is then found by bisection, so that on every machine it is the same double.
    Where Gauss's rule of few nodes has the same sum over the cells to 2**-43, the steps take this rule; where it is
    less exact, they start at its result and take its slope; for a noise of more than twice the deviation they do not.
    """
    with np.errstate(all="ignore"):  # what is beyond doubles is 0 or inf, whatever a caller raises for
        cells = _magnitudes(noise, unit)

        def inside(t: float, masses: Array, places: Array) -> float:
            inner = scipy.special.ndtr((t - places) / deviation) - scipy.special.ndtr((-t - places) / deviation)
            return float(np.sum(masses * inner))

        low, high = 0.0, 10 * deviation + float(cells[1][-1])
        spread, t = unit * float(noise.scale), float(scipy.special.ndtri((1 + confidence) / 2)) * deviation
        smooth, left, right = deviation > spread / 2, 0.0, 0.0
        count = _NODES[0] if deviation > spread else _FEWER
        rough = _Sum(*(_rule(noise, unit, count) if smooth else cells), deviation)
        if smooth:
            t = rough.quantile(confidence, min(t * math.hypot(1, math.sqrt(2) * spread / deviation), high / 2), high)
        if deviation > spread:
            found, slope = rough.at(t)
            finer, _ = _Sum(*_rule(noise, unit, _NODES[1]), deviation).at(t)
            doubt = _DOUBT / max(slope * t, 2.0**-60)  # relative
            if max(abs(found - finer), abs(found - confidence)) < _DOUBT / 4 and doubt < 2.0**-32:
                left, right = t - doubt * t, t + doubt * t
        if not right:
            left, right = _enclosed(lambda t: confidence - inside(t, *cells), rough.slope, low, high, t)
        while high - low > 1e-9 * high:
            middle = (low + high) / 2
            if not low < middle < high:  # neighbours below the normal doubles, which are no finer
                break
            reached = middle >= right or (middle > left and inside(middle, *cells) >= confidence)
            low, high = (low, middle) if reached else (middle, high)
        return high


class _Sum:
    """The probability ``P(|deviation Z + K| <= t)``, and its slope, where |K| has these masses at these places."""

    def __init__(self, masses: Array, places: Array, deviation: float) -> None:
        self._deviation, self._total = deviation, float(masses.sum())
        self._masses, self._shifts = np.append(masses, masses), np.append(-places, places) / deviation

    def at(self, t: float) -> tuple[float, float]:
        """Return both."""
        inside = scipy.special.ndtr(self._shifts + t / self._deviation)
        return float(self._masses @ inside) - self._total, self.slope(t)

    def slope(self, t: float) -> float:
        z = self._shifts + t / self._deviation
        return float(self._masses @ np.exp(z * z / -2)) / (self._deviation * _ROOT)

    def quantile(self, confidence: float, t: float, most: float) -> float:
        """Return the t with this probability, by Newton's steps from t within 0..most, or where these end."""
        for _ in range(_STEPS):
            found, slope = self.at(t)
            step = (confidence - found) / slope if slope else 0.0
            t = min(max(t + step, t / 2), (t + most) / 2)
            if abs(step) < 2.0**-28 * t:  # its square is that of the next
                break
        return t


@lru_cache(maxsize=64)
def _magnitudes(noise: IntegerNoise, unit: float) -> tuple[Array, Array]:
    """Return masses and middles of cells of ``unit |K|``."""
    with np.errstate(divide="ignore", over="ignore"):  # far out
        reach = 2 ** int(np.argmax(noise.log_tail(np.ldexp(1.0, np.arange(128))) <= -45))
    width = -(-reach // _CELLS)
    starts = np.arange(1.0, reach + 1, width)
    tails = np.exp(noise.log_tail(np.append(starts, starts[-1] + width)))
    masses = np.append(1 - 2 * tails[0], 2 * (tails[:-1] - tails[1:]))
    return masses, np.append(0.0, unit * (starts + (width - 1) / 2))


def _rule(noise: IntegerNoise, unit: float, count: int) -> tuple[Array, Array]:
    """Return the weights and the nodes of Gauss's rule of so many nodes for the cells of ``unit |K|``."""
    weights, nodes = _unit_rule(noise, count)
    return weights, unit * nodes


@lru_cache(maxsize=64)
def _unit_rule(noise: IntegerNoise, count: int) -> tuple[Array, Array]:
    """Return the rule for a unit of 1, from the recurrence of the orthogonal polynomials of the masses."""
    total, diagonal, off = _recurrence(noise, max(_NODES) if count in _NODES else count)
    nodes, vectors = scipy.linalg.eigh_tridiagonal(diagonal[:count], off[: count - 1])
    return total * vectors[0] ** 2, nodes


@lru_cache(maxsize=64)
def _recurrence(noise: IntegerNoise, count: int) -> tuple[float, Array, Array]:
    """Return the sum of the masses, and the coefficients for so many nodes (Lanczos), fewer of as few places."""
    masses, places = _magnitudes(noise, 1.0)
    kept = masses > 0
    masses, places = masses[kept], places[kept]
    count = min(count, masses.size)
    basis, diagonal, off = np.zeros((count, masses.size)), np.empty(count), np.zeros(count)
    vector = np.sqrt(masses / masses.sum())
    for i in range(count):
        basis[i] = vector
        vector = places * vector
        diagonal[i] = basis[i] @ vector
        if i + 1 < count:
            vector = vector - diagonal[i] * basis[i] - off[i - 1] * basis[i - 1]
            vector = vector - basis[: i + 1].T @ (basis[: i + 1] @ vector)  # again: orthogonality to rounding
            off[i] = np.linalg.norm(vector)
            if off[i] == 0:
                return float(masses.sum()), diagonal[: i + 1], off[:i]
            vector = vector / off[i]
    return float(masses.sum()), diagonal, off[:-1]


def _enclosed(
    lacking: Callable[[float], float], slope: Callable[[float], float], low: float, high: float, t: float
) -> tuple[float, float]:
    """Return the ends within low..high, to 1 in 10**10, between which a decreasing function changes its sign, by
    Newton's steps.

    `slope` is the magnitude of its derivative; t is where the first step starts. Each step goes a little too far, so
    that the last two enclose the place. A step beyond the ends is a bisection instead.
    """
    while high - low > 1e-10 * high:
        if not low < t < high:
            t = (low + high) / 2
        if not low < t < high:  # neighbours
            break
        value = lacking(t)
        low, high = (t, high) if value > 0 else (low, t)
        steepness = slope(t)
        step = value / steepness if steepness else math.inf
        t += step + math.copysign(2.0**-35 * t, step)
    return low, high


def error(cdf: Cdf, last: int, ends: tuple[float, float], target: float, confidence: float) -> float:
    """Return the least t with P(|release - target| <= t) >= confidence, to 1 in 1000.

    Parameters
    ----------
    cdf : callable
        P(K <= k) for an array of codes k.
    last : int
        The largest code; the smallest is 0.
    ends : pair of floats
        The releases of the codes 0 and last; the releases between them are equally spaced.
    target, confidence : float
    """
    bottom, top = ends
    unit = (top - bottom) / last if last else 1.0

    def within(low: NDArray[np.float64], high: NDArray[np.float64]) -> tuple[Integers, Integers]:
        first = np.clip(np.ceil((low - bottom) / unit), 0, last + 1).astype(np.int64)
        return first, np.clip(np.floor((high - bottom) / unit), -1, last).astype(np.int64)

    farthest = max(abs(top - target), abs(bottom - target))
    return _least_error(cdf, within, farthest, 63, target, confidence)


def error_on_floats(cdf: Cdf, grid: FloatGrid, target: float, confidence: float) -> float:
    """`error` for releases that are the points of a grid of floats."""
    farthest = min(max(grid.upper / 2 - target / 2, target / 2 - grid.lower / 2), _LARGEST / 2) * 2
    return _least_error(cdf, grid.codes_within, farthest, 2098, target, confidence)


def _least_error(
    cdf: Cdf,
    within: Callable[[NDArray[np.float64], NDArray[np.float64]], tuple[Integers, Integers]],
    farthest: float,
    octaves: int,
    target: float,
    confidence: float,
) -> float:
    """Return the least t to 1 in 1000, at most `farthest`, and below ``farthest * 2**-octaves`` to as much.

    `within` gives the first and last code between two values.
    """

    def reached(t: NDArray[np.float64]) -> NDArray[np.bool_]:
        with np.errstate(over="ignore"):
            first, last = within(target - t, target + t)
        below, up_to = np.split(cdf(np.concatenate([first - 1, last])), 2)
        return np.asarray((up_to - below >= confidence) | (t >= farthest))

    t = np.append(0.0, np.ldexp(farthest, np.arange(-octaves, 1)))
    for _ in range(2):
        least = int(np.argmax(reached(t)))
        t = np.linspace(t[max(least - 1, 0)], t[least], 33)
    return float(t[int(np.argmax(reached(t)))])
