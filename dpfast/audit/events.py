"""Events that separate the releases on two data sets, for `dpfast.audit.distinguish`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Columns = Sequence[Floats]  # releases, one array for each of their numbers

_FITTED = 2**16  # releases of each side that a score is learned from, at most
_CELLS = 64  # values or quantiles of a number that a learned score tells apart, at most
_QUANTILES = np.unique(np.concatenate([np.linspace(0, 1, 65), 2.0 ** -np.arange(7, 21), 1 - 2.0 ** -np.arange(7, 21)]))
_NAN = np.finfo(np.float64).max  # stands for NaN, which has no place in an order
_RIDGE = 1e-3  # of the weights of a score, relative to the number of releases


class Event(NamedTuple):
    """The event that a statistic of a release is in ``[low, high]``."""

    statistic: Callable[[Columns], Floats]
    low: float
    high: float

    def count(self, columns: Columns) -> int:
        """Return the number of releases in the event."""
        values = self.statistic(columns)
        return int(np.count_nonzero((values >= self.low) & (values <= self.high)))


class ChosenEvent(NamedTuple):
    """An event, the bound that it gives on the samples it was chosen by, and the side where it is likelier."""

    bound: float
    event: Event
    side: int


def best_event(a: Columns, b: Columns, delta: float, confidence: float, *, learned: bool) -> ChosenEvent:
    """Return the event of the largest bound: on one number of a release, or on a score learned from all of them."""
    statistics: list[Callable[[Columns], Floats]] = [
        make(i) for i in range(len(a)) for make in (_Value, _LowestBit, _TrailingZeros)
    ]
    if learned:
        fitted = min(len(a[0]) // 2, _FITTED)
        statistics.append(Score.fit([s[:fitted] for s in a], [s[:fitted] for s in b]))
        a, b = [s[fitted:] for s in a], [s[fitted:] for s in b]
    return max((_best_of(statistic, a, b, delta, confidence) for statistic in statistics), key=lambda best: best.bound)


def _best_of(
    statistic: Callable[[Columns], Floats], a: Columns, b: Columns, delta: float, confidence: float
) -> ChosenEvent:
    values = [np.sort(statistic(columns)) for columns in (a, b)]
    low, high = np.array(list(_intervals(np.concatenate(values)))).T
    counts = [np.searchsorted(s, high, "right") - np.searchsorted(s, low, "left") for s in values]
    bounds = [log_ratio_down(counts[i], counts[1 - i], len(values[0]), delta, confidence) for i in (0, 1)]
    side = int(np.max(bounds[1]) > np.max(bounds[0]))
    place = int(np.argmax(bounds[side]))
    return ChosenEvent(float(bounds[side][place]), Event(statistic, float(low[place]), float(high[place])), side)


def _intervals(pooled: Floats) -> Iterator[tuple[float, float]]:
    """Yield intervals up to and from quantiles of the pooled values, and the most common values."""
    for edge in np.unique(np.quantile(pooled, _QUANTILES, method="inverted_cdf")):
        yield -np.inf, edge
        yield edge, np.inf
    values, counts = np.unique(pooled, return_counts=True)
    for value in values[np.argsort(-counts, kind="stable")[:64]]:
        yield value, value


@dataclass(frozen=True)
class _Value:
    """One number of a release; NaN counts as the largest double."""

    place: int

    def __call__(self, columns: Columns) -> Floats:
        values = columns[self.place]
        return np.where(np.isnan(values), _NAN, values)


@dataclass(frozen=True)
class _LowestBit:
    """The granularity of one number: the largest k with a multiple of 2**k; large for 0 and non-finite values."""

    place: int

    def __call__(self, columns: Columns) -> Floats:
        return lowest_bit(columns[self.place])


@dataclass(frozen=True)
class _TrailingZeros:
    """The number of the last bits of the mantissa that are 0."""

    place: int

    def __call__(self, columns: Columns) -> Floats:
        bits = np.ascontiguousarray(columns[self.place]).view(np.uint64) & np.uint64(2**52 - 1)
        last = bits & (~bits + np.uint64(1))
        return np.where(bits > 0, np.frexp(last.astype(np.float64))[1] - 1, 52).astype(np.float64)


def lowest_bit(values: Floats) -> Floats:
    """Return the largest k with a value a multiple of 2**k; large for 0 and non-finite values."""
    mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))
    digits = np.ldexp(np.abs(mantissa), 53).astype(np.int64)
    zeros = np.frexp((digits & -digits).astype(np.float64))[1] - 1
    return np.where(digits > 0, exponent - 53 + zeros, 2000).astype(np.float64)


@dataclass(frozen=True)
class _CellRatios:
    """Estimated log-ratios of the probabilities of the cells of a number: values, and the gaps between them."""

    edges: NDArray[Any]
    log_ratios: Floats

    @classmethod
    def fit(cls, a: NDArray[Any], b: NDArray[Any]) -> Self:
        pooled = np.concatenate([a, b])
        values, counts = np.unique(pooled, return_counts=True)
        common = values[np.argsort(-counts, kind="stable")[:_CELLS]]
        spread = np.sort(pooled)[np.linspace(0, len(pooled) - 1, _CELLS).astype(np.intp)]
        edges = values if len(values) <= 2 * _CELLS else np.unique(np.concatenate([common, spread]))
        first = cls(edges, np.zeros(2 * len(edges) + 1))
        counts_a, counts_b = (np.bincount(first._cells(s), minlength=2 * len(edges) + 1) for s in (a, b))
        return cls(edges, np.log((counts_a + 1) / (counts_b + 1)))

    def _cells(self, values: NDArray[Any]) -> NDArray[np.intp]:
        places = np.searchsorted(self.edges, values)
        equal = self.edges[np.minimum(places, len(self.edges) - 1)] == values
        return np.asarray(2 * places + equal)

    def __call__(self, values: NDArray[Any]) -> Floats:
        return self.log_ratios[self._cells(values)]


@dataclass(frozen=True)
class Score:
    """A weighted sum of the log-ratios of many features of a release: a logistic regression, as in DP-Sniper.

    The features are the cells of each number, of the difference of each two adjacent numbers, of their lowest bits, and
    of the whole release.
    """

    cells: tuple[_CellRatios, ...]
    weights: Floats

    @classmethod
    def fit(cls, a: Columns, b: Columns) -> Self:
        cells = tuple(_CellRatios.fit(mine, theirs) for mine, theirs in zip(_features(a), _features(b), strict=True))
        rows = np.concatenate([_log_ratios(cells, a), _log_ratios(cells, b)])
        return cls(cells, _logistic(rows, np.repeat([1.0, 0.0], [len(a[0]), len(b[0])])))

    def __call__(self, columns: Columns) -> Floats:
        total = np.zeros(len(columns[0]))
        for weight, cells, values in zip(self.weights, self.cells, _features(columns), strict=True):
            if weight:
                total += weight * cells(values)
        return total


def _features(columns: Columns) -> Iterator[NDArray[Any]]:
    hashed = np.zeros(len(columns[0]), np.uint64)
    for i, column in enumerate(columns):
        values = np.where(np.isnan(column), _NAN, column) + 0.0
        yield values
        yield lowest_bit(column)
        if i + 1 < len(columns):
            with np.errstate(invalid="ignore", over="ignore"):
                yield np.nan_to_num(columns[i + 1] - column, nan=_NAN)
        hashed = (hashed ^ values.view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        hashed ^= hashed >> np.uint64(29)
    yield hashed


def _log_ratios(cells: Sequence[_CellRatios], columns: Columns) -> Floats:
    return np.stack([cell(values) for cell, values in zip(cells, _features(columns), strict=True)], axis=1)


def _logistic(rows: Floats, labels: Floats) -> Floats:
    """Ridge-penalised logistic weights, which make the log-ratios of dependent features one score; by Newton steps."""
    n, d = rows.shape
    penalty = _RIDGE * n * np.eye(d)
    weights = np.zeros(d)
    for _ in range(8):
        p = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        gradient = rows.T @ (labels - p) - penalty @ weights
        hessian = (rows * (p * (1 - p))[:, None]).T @ rows + penalty
        weights += np.linalg.solve(hessian, gradient)
    return weights


def log_ratio_down(mine: Any, theirs: Any, trials: int, delta: float, confidence: float) -> Any:
    """Lower confidence bound on log((P(E) - delta) / Q(E)) from counts; Clopper-Pearson, with half of the risk each."""
    from scipy.stats import beta

    hits, others = np.asarray(mine), np.asarray(theirs)
    risk = (1 - confidence) / 2
    lower = np.where(hits > 0, beta.ppf(risk, hits, trials - hits + 1), 0.0)
    upper = np.where(others < trials, beta.ppf(1 - risk, others + 1, trials - others), 1.0)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(lower - delta, 0.0)) - np.log(upper)
