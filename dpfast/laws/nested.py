"""Laws of selections by score: on nested intervals, on nested boxes, and behind a test."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _boxes, _levels, _samplers
from dpfast._kernels._measures import Measure
from dpfast._kernels._samplers import in_one_piece
from dpfast.core import checks, containers
from dpfast.core.grid import Points
from dpfast.core.quadrature import gauss_legendre
from dpfast.laws.law import Law, ScalarLaw
from dpfast.random import BLOCK, RandomSource, bit_generator, blocks

# The scores below the cap leave at most e**-42 < 2**-60 of the probability to all others.
TAIL = 42.0

_EIGHTHS = np.arange(1, 8)
_NODES, _PANELS, _BLOCK = 48, 64, 2**17  # of the quadrature of permute-and-flip


def score_cap(epsilon: float, log_outcomes: float) -> int:
    """Return the public cap on scores, ``1 + ceil(2 / epsilon * (log_outcomes + 42))``.

    All scores from the cap on get the same weight. At most 2**30 + 1, the limit of the error bound of the sums of
    weights (https://dpfast.readthedocs.io/en/latest/proofs/certified-choice.html).
    """
    return 1 + math.ceil(min(2 / epsilon * (log_outcomes + TAIL), 2.0**30))


def distinct(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the different codes, ascending. For the few codes of a law `np.unique` takes several times as long."""
    ascending = np.sort(codes)
    return np.asarray(ascending[np.append(True, ascending[1:] != ascending[:-1])])


class NestedIntervals(ScalarLaw):
    """P(k) proportional to ``exp(-epsilon / 2 * exponent(k))`` times the weight of k in a base measure.

    score(k) is the least t with k in [lower[t], upper[t]], at most the number of levels; exponent(k) is ``score(k) +
    depth`` for a positive score, else 0.

    Parameters
    ----------
    lower, upper : ndarray of int64, shape (levels,)
        Nested intervals of codes inside 0..last: `lower` nonincreasing, `upper` nondecreasing.
    epsilon : float
    last : int
        The support is 0..last.
    grid : Grid or FloatGrid
    decode : callable, optional
        Converts codes to values. Default: ``grid.decode``.
    measure : Measure, optional
        The weights of 0..last. Default: all equal.
    depth : int
        0, or the greatest t for which the interval t is one point.

    Notes
    -----
    Drawn as a mixture (https://dpfast.readthedocs.io/en/latest/proofs/nested-intervals.html): with q = exp(-epsilon /
    2), draw level 0 with weight ``(1 - q**(depth + 1)) weight(lower[0]..upper[0])``, level t with weight
    ``(1 - q) q**(t + depth) weight(lower[t]..upper[t])``, or the whole support with weight
    ``q**(levels + depth) weight(0..last)``; then draw a point of it by its weight.
    """

    def __init__(
        self,
        lower: NDArray[np.int64],
        upper: NDArray[np.int64],
        *,
        epsilon: float,
        last: int,
        grid: Points,
        decode: Callable[[ArrayLike], Any] | None = None,
        measure: Measure | None = None,
        depth: int = 0,
    ) -> None:
        self.lower, self.upper, self.epsilon, self.grid, self.measure = lower, upper, epsilon, grid, measure
        self.depth = depth
        self._decode = grid.decode if decode is None else decode
        self.support = (0, last)
        # The codes at which the score changes, and the probability of each stretch of equal score.
        edges = distinct(np.concatenate([lower, upper + 1, [0, last + 1]]))
        self._starts = edges[:-1]
        weights = self.weights(self._starts, edges[1:] - 1)
        self._logs = self._log_probabilities(self.exponent(self._starts), weights)
        self._before = np.concatenate([[0.0], np.cumsum(np.exp(self._logs) * weights)])

    def _log_probabilities(self, exponents: NDArray[np.int64], weights: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the log-probability per unit of weight of each stretch of equal score."""
        logs = -self.epsilon / 2 * exponents
        top = logs.max()
        return np.asarray(logs - top - math.log(math.fsum(np.exp(logs - top) * weights)))

    def score(self, k: ArrayLike) -> NDArray[np.int64]:
        """Return the least number of replaced records that moves the statistic to k, capped at the number of levels."""
        codes = containers.integers("k", k)
        too_low = len(self.lower) - np.searchsorted(self.lower[::-1], codes, side="right")
        too_high = np.searchsorted(self.upper, codes, side="left")
        return np.asarray(np.maximum(too_low, too_high))

    @property
    def knots(self) -> NDArray[np.int64]:
        """Codes between which the probability is about even where all points weigh the same."""
        return np.concatenate([self.lower, self.upper + 1])

    def exponent(self, k: ArrayLike) -> NDArray[np.int64]:
        """Return the score, and the depth besides for a positive score."""
        score = self.score(k)
        return np.asarray(np.where(score > 0, score + self.depth, 0))

    def weights(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the weights of the stretches first[i]..last[i] of the support in the base measure."""
        return last - first + 1 if self.measure is None else self.measure.weights(first, last)

    def _inside(self, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        return (codes >= self.support[0]) & (codes <= self.support[1])

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = containers.integers("k", k)
        inside = np.clip(codes, *self.support).reshape(-1)
        weights = self.weights(inside, inside).reshape(codes.shape)
        stretch = np.searchsorted(self._starts, inside, side="right") - 1
        logs = np.log(weights) + self._logs[stretch].reshape(codes.shape)
        return np.where(self._inside(codes), logs, -np.inf)

    def cdf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = np.clip(containers.integers("k", k), -1, self.support[1])
        stretch = np.maximum(np.searchsorted(self._starts, codes, side="right") - 1, 0)
        starts = self._starts[stretch]
        inside = self.weights(starts.reshape(-1), codes.reshape(-1)).reshape(codes.shape)
        below = np.minimum(self._before[stretch] + inside * np.exp(self._logs[stretch]), 1.0)
        return np.where(codes < 0, 0.0, np.where(codes == self.support[1], 1.0, below))

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        shape = checks.shape(size)
        out = np.empty(math.prod(shape), np.int64)
        if size is None:
            self._fill(bit_generator(rng), out)
            return int(out[0])
        for source, block in blocks(rng, out):
            self._fill(source, block)
        return out.reshape(shape)

    def _fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        _levels.fill(source, self.lower, self.upper, self.epsilon, self.support[1], out, self.measure, self.depth)

    def value(self, k: ArrayLike) -> Any:
        values = np.asarray(self._decode(k))
        return values if values.ndim else float(values)


@cache
def _flip_rule() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points and weights for the integral over (0, 1) of permute-and-flip.

    Panels double in length up to 1, because the integrand decays like exp(-u * sum(sizes * coins)).
    """
    nodes, weights = gauss_legendre(_NODES)
    ends = np.concatenate([[0.0], 2.0 ** np.arange(-_PANELS, 1)])
    half = np.diff(ends)[:, None] / 2
    return (ends[:-1, None] + half * (nodes + 1)).reshape(-1), (half * weights).reshape(-1)


class FlippedIntervals(NestedIntervals):
    """The law of permute-and-flip on the points of `NestedIntervals`, each as often as it weighs.

    P(k) is weight(k) times the integral over u in (0, 1) of ``p_k / (1 - p_k u) * prod_j (1 - p_j u)**weight(j)``, p =
    exp(-epsilon / 2 * exponent): the release is uniform among the points whose coin of probability p shows heads.

    Notes
    -----
    Drawn by levels (https://dpfast.readthedocs.io/en/latest/proofs/permute-and-flip.html): permute-and-flip releases
    the point of the greatest ``E - epsilon / 2 * exponent``, E standard exponentials, and the greatest of N of them is
    -log(1 - U**(1 / N)).
    """

    def _log_probabilities(self, exponents: NDArray[np.int64], weights: NDArray[np.int64]) -> NDArray[np.float64]:
        distinct, place = np.unique(exponents, return_inverse=True)
        sizes = np.bincount(place, weights=weights)
        coins = np.exp(-self.epsilon / 2 * distinct)
        points, shares = _flip_rule()
        totals = np.zeros(len(distinct))
        together = max(_BLOCK // len(distinct), 1)  # of the points: all at once would take much memory
        for start in range(0, len(points), together):
            factors = np.log1p(-np.outer(coins, points[start : start + together]))
            product = sizes @ factors
            totals += np.exp(product - factors) @ shares[start : start + together]
        return np.asarray((np.log(totals) - self.epsilon / 2 * distinct)[place])

    def _fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        _levels.fill_flips(source, self.lower, self.upper, self.epsilon, self.support[1], out, self.measure, self.depth)


class InterpolatedIntervals(NestedIntervals):
    """The law of `NestedIntervals` with a score that rises linearly in each gap, instead of by a step at its start.

    The ends lower[t] and upper[t] have the score t, for the least such t; a point between two ends has the score of the
    inner end plus its share of the way; points beyond all ends have the score of the last. All points weigh the same.

    Parameters
    ----------
    lower, upper : ndarray of int64, shape (levels + 1,)
        Codes inside 0..last: `lower` nonincreasing, `upper` nondecreasing, lower[0] = upper[0].
    epsilon, last, grid, decode, depth
        See `NestedIntervals`; epsilon is at most 2**10.

    Notes
    -----
    Drawn by rejection (https://dpfast.readthedocs.io/en/latest/proofs/interpolation.html): a proposal from
    `NestedIntervals` with the scores rounded down is accepted with probability exp(-epsilon / 2 * share).
    """

    def __init__(
        self,
        lower: NDArray[np.int64],
        upper: NDArray[np.int64],
        *,
        epsilon: float,
        last: int,
        grid: Points,
        decode: Callable[[ArrayLike], Any] | None = None,
        depth: int = 0,
    ) -> None:
        self.lower, self.upper, self.epsilon, self.grid, self.measure = lower, upper, epsilon, grid, None
        self.depth = depth
        self._decode = grid.decode if decode is None else decode
        self.support = (0, last)
        ends = np.unique(np.concatenate([lower, upper]))
        # The ends, and the first point of each stretch between two of them: the score is linear in a stretch.
        starts = np.unique(np.concatenate([ends, ends + 1, [0]]))
        self._starts = starts[starts <= last]
        stops = np.append(self._starts[1:], last + 1) - 1
        first, final = self.exponent(self._starts), self.exponent(stops)
        self._slopes = -epsilon / 2 * (final - first) / np.maximum(stops - self._starts, 1)
        logs = -epsilon / 2 * first
        masses = logs + np.log(_geometric(self._slopes, stops - self._starts + 1))
        total = np.logaddexp.reduce(masses)
        self._logs = logs - total
        self._before = np.concatenate([[0.0], np.cumsum(np.exp(masses - total))])

    def score(self, k: ArrayLike) -> NDArray[np.float64]:  # type: ignore[override]
        """Return the score, at most that of the last ends."""
        codes = containers.integers("k", k)
        return np.maximum(_interpolated(codes, self.upper), _interpolated(-codes, -self.lower))

    @property
    def knots(self) -> NDArray[np.int64]:
        parts = [
            np.asarray(ends)[:-1, None] + np.diff(ends)[:, None] * _EIGHTHS // 8 for ends in (self.lower, self.upper)
        ]
        return np.concatenate([super().knots, *(part.reshape(-1) for part in parts)])

    def exponent(self, k: ArrayLike) -> NDArray[np.float64]:  # type: ignore[override]
        """Return the score, and the depth besides for a positive score."""
        score = self.score(k)
        return np.where(score > 0, score + self.depth, 0.0)

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = containers.integers("k", k)
        inside = np.clip(codes, *self.support)
        stretch = np.searchsorted(self._starts, inside, side="right") - 1
        logs = self._logs[stretch] + self._slopes[stretch] * (inside - self._starts[stretch])
        return np.where(self._inside(codes), logs, -np.inf)

    def cdf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = np.clip(containers.integers("k", k), -1, self.support[1])
        stretch = np.maximum(np.searchsorted(self._starts, codes, side="right") - 1, 0)
        inside = _geometric(self._slopes[stretch], codes - self._starts[stretch] + 1)
        below = np.minimum(self._before[stretch] + inside * np.exp(self._logs[stretch]), 1.0)
        return np.where(codes < 0, 0.0, np.where(codes == self.support[1], 1.0, below))

    def _fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        _levels.fill_interpolated(source, self.lower, self.upper, self.epsilon, self.support[1], out, self.depth)


def _interpolated(codes: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the score of codes above ends[0], with the scores 0, 1, ... of the ends, the least for equal ends; 0
    below.
    """
    after = np.searchsorted(ends, codes)
    outer, inner = np.minimum(after, len(ends) - 1), np.clip(after - 1, 0, len(ends) - 1)
    share = (codes - ends[inner]) / np.maximum(ends[outer] - ends[inner], 1)
    between = (after > 0) & (after < len(ends))
    return np.where(between, inner + share, np.where(after, len(ends) - 1.0, 0.0))


def _geometric(slope: NDArray[np.float64], count: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the sum of exp(slope * i) over i = 0..count - 1."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return np.where(slope == 0, count, np.expm1(slope * count) / np.expm1(slope))


class Boxes(Law):
    """P(k) proportional to ``exp(-epsilon / 2 * score(k))`` on the vectors k in the last of several nested boxes.

    score(k) is the least t with lower[t] <= k <= upper[t] in every coordinate.

    Parameters
    ----------
    lower, upper : ndarray of int64, shape (boxes, d)
        The least and largest code of each coordinate: `lower` nonincreasing, `upper` nondecreasing down the columns.
    epsilon : float
    decode : callable
        Converts vectors of codes, an array of shape (..., d), to values.

    Notes
    -----
    Drawn as a mixture (https://dpfast.readthedocs.io/en/latest/proofs/nested-boxes.html): with q = exp(-epsilon / 2),
    draw box t with weight ``(1 - q) q**t volume(t)``, the last box with ``q**t volume(t)``; then draw a uniform point
    of it.
    """

    def __init__(
        self,
        lower: NDArray[np.int64],
        upper: NDArray[np.int64],
        *,
        epsilon: float,
        decode: Callable[[NDArray[np.int64]], Any],
    ) -> None:
        self.lower, self.upper, self.epsilon, self._decode = lower, upper, epsilon, decode
        self._volumes = _boxes.Volumes(len(lower))
        for low, high in zip(lower.T, upper.T, strict=True):
            self._volumes.add_ranges(np.ascontiguousarray(low), np.ascontiguousarray(high))
        logs = np.log(self._volumes.mantissa) + math.log(2) * self._volumes.exponent
        logs -= epsilon / 2 * np.arange(len(lower))
        with np.errstate(divide="ignore"):  # if epsilon / 2 is 0 in doubles, only the last box has weight
            logs[:-1] += np.log(-np.expm1(-epsilon / 2))
        self._log_total = float(logs.max() + math.log(math.fsum(np.exp(logs - logs.max()))))

    def score(self, k: ArrayLike) -> NDArray[np.int64]:
        """Return the least t whose box contains k; the number of boxes for vectors outside all boxes."""
        codes = containers.integers("k", k)
        scores = np.zeros(codes.shape[:-1], np.int64)
        for low, high, column in zip(self.lower.T, self.upper.T, np.moveaxis(codes, -1, 0), strict=True):
            too_low = len(low) - np.searchsorted(low[::-1], column, side="right")
            too_high = np.searchsorted(high, column, side="left")
            scores = np.maximum(scores, np.maximum(too_low, too_high))
        return scores

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        scores = self.score(k)
        return np.where(scores < len(self.lower), -self.epsilon / 2 * scores - self._log_total, -np.inf)

    def outcomes(self) -> NDArray[np.int64]:
        low, high = self.lower[-1], self.upper[-1]
        checks.outcomes(math.prod((high - low + 1).tolist()))
        axes = [np.arange(first, last + 1) for first, last in zip(low, high, strict=True)]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        shape = checks.shape(size)
        levels = np.empty(math.prod(shape), np.int64)
        out = np.empty((levels.size, self.lower.shape[1]), np.int64)
        if size is None:
            self._fill(bit_generator(rng), levels, out)
            return out[0]
        for i, (source, block) in enumerate(blocks(rng, levels)):
            self._fill(source, block, out[i * BLOCK : (i + 1) * BLOCK])
        return out.reshape(*shape, -1) if out.size else out.reshape(*shape, out.shape[1])

    def _fill(self, source: np.random.BitGenerator, levels: NDArray[np.int64], out: NDArray[np.int64]) -> None:
        lower, upper = np.ascontiguousarray(self.lower), np.ascontiguousarray(self.upper)
        with in_one_piece(source):
            self._volumes.fill_levels(source, self.epsilon, lambda: (self.upper - self.lower + 1).T, levels)
            _boxes.fill_points(source, lower, upper, levels, out)

    def value(self, k: ArrayLike) -> Any:
        return self._decode(containers.integers("k", k))


class BehindTest(Law):
    """A law of vectors behind a noisy test, with `FAILURE` in every coordinate if the test fails.

    The test passes if discrete Laplace noise, P(Z = z) proportional to ``exp(-epsilon |z|)``, is at least `margin`. The
    value of a failure is None for one draw, and NaN in every coordinate among several.

    Parameters
    ----------
    law : Boxes
        The law given that the test passes.
    margin : int
    epsilon : float
        The epsilon of the test.
    """

    FAILURE = -(2**63)

    def __init__(self, law: Boxes, *, margin: int, epsilon: float) -> None:
        self.law, self.margin, self.epsilon = law, margin, epsilon
        # P(Z >= m) = exp(-epsilon m) / (1 + exp(-epsilon)) for m >= 0, and P(Z >= m) = 1 - P(Z >= 1 - m).
        log_tail = -epsilon * max(margin, 1 - margin) - math.log1p(math.exp(-epsilon))
        self._log_pass, self._log_fail = log_tail, math.log1p(-math.exp(log_tail))
        if margin < 1:
            self._log_pass, self._log_fail = self._log_fail, self._log_pass

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = containers.integers("k", k)
        return np.where(self._failed(codes), self._log_fail, self._log_pass + self.law.logpmf(codes))

    def _failed(self, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.asarray(np.all(codes == self.FAILURE, axis=-1))

    def outcomes(self) -> NDArray[np.int64]:
        inside = self.law.outcomes()
        return np.concatenate([np.full((1, inside.shape[1]), self.FAILURE), inside])

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        noise = np.empty(math.prod(checks.shape(size)), np.int64)
        _samplers.fill_discrete_laplace(bit_generator(rng), 1 / Fraction(self.epsilon), noise)
        codes = self.law.sample(size, rng)
        return np.where(noise.reshape(*codes.shape[:-1], 1) >= self.margin, codes, self.FAILURE)

    def value(self, k: ArrayLike) -> Any:
        codes = containers.integers("k", k)
        failed = self._failed(codes)[..., None]
        values = np.where(failed, np.nan, self.law.value(np.where(failed, 0, codes)))
        return None if codes.ndim == 1 and failed[0] else values


def anywhere(grid: Points, source: np.random.BitGenerator, measure: Measure | None = None) -> float:
    """Draw a point of the grid, uniform or by a measure: the release for an empty group."""
    out, whole = np.empty(1, np.int64), np.array([grid.size - 1])
    _levels.fill(source, np.zeros(1, np.int64), whole, 1.0, grid.size - 1, out, measure)
    return grid.value(int(out[0]))
