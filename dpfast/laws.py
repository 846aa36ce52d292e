"""Exact laws of releases. A law depends on private data and is never released; proofs and audits use it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

from dpfast import _checks, _containers
from dpfast._kernels import _boxes, _levels, _samplers
from dpfast.grid import Grid
from dpfast.random import BLOCK, RandomSource, bit_generator, blocks

# The scores below the cap leave at most e**-42 < 2**-60 of the probability to all others.
TAIL = 42.0


def score_cap(epsilon: float, log_outcomes: float) -> int:
    """The public cap on scores, ``1 + ceil(2 / epsilon * (log_outcomes + 42))``.

    All scores from the cap on get the same weight. At most 2**30 + 1, the limit of the error bound of the sums of
    weights (docs/proofs/certified-choice.md).
    """
    return 1 + math.ceil(min(2 / epsilon * (log_outcomes + TAIL), 2.0**30))


class Law(ABC):
    """A distribution on grid codes, or on vectors of codes, and the values of the codes."""

    @abstractmethod
    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """The natural logarithm of P(K = k); -inf outside the support."""

    @abstractmethod
    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        """Draw exactly: an array of int64 of shape `size`, or one draw for None."""

    def outcomes(self) -> NDArray[np.int64]:
        """All possible k, along the first axis; raises a ValueError for more than 2**20."""
        raise TypeError(f"the outcomes of {type(self).__name__} cannot be listed")

    @abstractmethod
    def value(self, k: ArrayLike) -> Any:
        """The floats that are released for k."""


class ScalarLaw(Law):
    """A distribution on the integers first..last of `support`."""

    support: tuple[int, int]

    def outcomes(self) -> NDArray[np.int64]:
        first, last = self.support
        _checks.outcomes(last - first + 1)
        return np.arange(first, last + 1)

    def pmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """P(K = k)."""
        return np.exp(self.logpmf(k))

    @abstractmethod
    def cdf(self, k: ArrayLike) -> NDArray[np.float64]:
        """P(K <= k)."""

    @abstractmethod
    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        """Draw exactly: an int for size None, else an array of int64."""

    @abstractmethod
    def value(self, k: ArrayLike) -> Any:
        """The float that is released for k; an array for an array."""


class NestedIntervals(ScalarLaw):
    """P(k) proportional to ``exp(-epsilon / 2 * min(score(k), levels))``.

    score(k) is the least t with k in [lower[t], upper[t]].

    Parameters
    ----------
    lower, upper : ndarray of int64, shape (levels,)
        Nested intervals of codes inside 0..last: `lower` nonincreasing, `upper` nondecreasing.
    epsilon : float
    last : int
        The support is 0..last.
    grid : Grid
    decode : callable, optional
        Converts codes to values. Default: ``grid.decode``.

    Notes
    -----
    Drawn as a mixture (docs/proofs/nested-intervals.md): with q = exp(-epsilon / 2), draw level t with weight
    ``(1 - q) q**t (upper[t] - lower[t] + 1)``, or the whole support with weight ``q**levels (last + 1)``; then draw a
    uniform point of it.
    """

    def __init__(
        self,
        lower: NDArray[np.int64],
        upper: NDArray[np.int64],
        *,
        epsilon: float,
        last: int,
        grid: Grid,
        decode: Callable[[ArrayLike], Any] | None = None,
    ) -> None:
        self.lower, self.upper, self.epsilon, self.grid = lower, upper, epsilon, grid
        self._decode = grid.decode if decode is None else decode
        self.support = (0, last)
        # The codes at which the score changes, and the probability of each stretch of equal score.
        edges = np.unique(np.concatenate([lower, upper + 1, [0, last + 1]]))
        self._starts, lengths = edges[:-1], np.diff(edges)
        exponents = -epsilon / 2 * self.score(self._starts)
        top = exponents.max()
        masses = np.exp(exponents - top) * lengths
        self._log_total = float(top + math.log(math.fsum(masses)))
        self._before = np.concatenate([[0.0], np.cumsum(masses / math.fsum(masses))])

    def score(self, k: ArrayLike) -> NDArray[np.int64]:
        """The least number of replaced records that moves the statistic to k, capped at the number of levels."""
        codes = _containers.integers("k", k)
        too_low = len(self.lower) - np.searchsorted(self.lower[::-1], codes, side="right")
        too_high = np.searchsorted(self.upper, codes, side="left")
        return np.asarray(np.maximum(too_low, too_high))

    def _inside(self, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        return (codes >= self.support[0]) & (codes <= self.support[1])

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = _containers.integers("k", k)
        return np.where(self._inside(codes), -self.epsilon / 2 * self.score(codes) - self._log_total, -np.inf)

    def cdf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = np.clip(_containers.integers("k", k), -1, self.support[1])
        stretch = np.maximum(np.searchsorted(self._starts, codes, side="right") - 1, 0)
        inside = codes - self._starts[stretch] + 1
        below = np.minimum(self._before[stretch] + inside * self.pmf(self._starts[stretch]), 1.0)
        return np.where(codes < 0, 0.0, np.where(codes == self.support[1], 1.0, below))

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        shape = _checks.shape(size)
        out = np.empty(math.prod(shape), np.int64)
        if size is None:
            self._fill(bit_generator(rng), out)
            return int(out[0])
        for source, block in blocks(rng, out):
            self._fill(source, block)
        return out.reshape(shape)

    def _fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        _levels.fill(source, self.lower, self.upper, self.epsilon, self.support[1], out)

    def value(self, k: ArrayLike) -> Any:
        values = np.asarray(self._decode(k))
        return values if values.ndim else float(values)


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
    Drawn as a mixture (docs/proofs/nested-boxes.md): with q = exp(-epsilon / 2), draw box t with weight ``(1 - q) q**t
    volume(t)``, the last box with ``q**t volume(t)``; then draw a uniform point of it.
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
        """The least t whose box contains k; the number of boxes for vectors outside all boxes."""
        codes = _containers.integers("k", k)
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
        _checks.outcomes(math.prod((high - low + 1).tolist()))
        axes = [np.arange(first, last + 1) for first, last in zip(low, high, strict=True)]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        shape = _checks.shape(size)
        levels = np.empty(math.prod(shape), np.int64)
        out = np.empty((levels.size, self.lower.shape[1]), np.int64)
        if size is None:
            self._fill(bit_generator(rng), levels, out)
            return out[0]
        for i, (source, block) in enumerate(blocks(rng, levels)):
            self._fill(source, block, out[i * BLOCK : (i + 1) * BLOCK])
        return out.reshape(*shape, -1) if out.size else out.reshape(*shape, out.shape[1])

    def _fill(self, source: np.random.BitGenerator, levels: NDArray[np.int64], out: NDArray[np.int64]) -> None:
        self._volumes.fill_levels(source, self.epsilon, lambda: (self.upper - self.lower + 1).T, levels)
        lower, upper = np.ascontiguousarray(self.lower), np.ascontiguousarray(self.upper)
        _boxes.fill_points(source, lower, upper, levels, out)

    def value(self, k: ArrayLike) -> Any:
        return self._decode(_containers.integers("k", k))


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
        codes = _containers.integers("k", k)
        return np.where(self._failed(codes), self._log_fail, self._log_pass + self.law.logpmf(codes))

    def _failed(self, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.asarray(np.all(codes == self.FAILURE, axis=-1))

    def outcomes(self) -> NDArray[np.int64]:
        inside = self.law.outcomes()
        return np.concatenate([np.full((1, inside.shape[1]), self.FAILURE), inside])

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        noise = np.empty(math.prod(_checks.shape(size)), np.int64)
        _samplers.fill_discrete_laplace(bit_generator(rng), 1 / Fraction(self.epsilon), noise)
        codes = self.law.sample(size, rng)
        return np.where(noise.reshape(*codes.shape[:-1], 1) >= self.margin, codes, self.FAILURE)

    def value(self, k: ArrayLike) -> Any:
        codes = _containers.integers("k", k)
        failed = self._failed(codes)[..., None]
        values = np.where(failed, np.nan, self.law.value(np.where(failed, 0, codes)))
        return None if codes.ndim == 1 and failed[0] else values


class NoisyIntegers(Law):
    """Independent discrete Laplace noise on integers: ``P(k) = prod_j tanh(1 / 2s) exp(-|k_j - c_j| / s)``.

    The draws are clamped to +-most.

    Parameters
    ----------
    center : ndarray of int64, of any shape
        c, within +-2**61, and strictly within if `most` is 2**62.
    scale : Fraction
        s, at most 2**56.
    most : int
        Public, at most 2**62.
    decode : callable
        Converts integers to released values.
    """

    def __init__(
        self,
        center: NDArray[np.int64],
        *,
        scale: Fraction,
        most: int,
        decode: Callable[[NDArray[np.int64]], Any],
    ) -> None:
        self.center, self.scale, self.most, self._decode = center, scale, most, decode

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """The natural logarithm of P(K = k), k of shape (..., *center.shape), before clamping."""
        rate = float(1 / self.scale)
        distance = np.abs(_containers.integers("k", k) - self.center).astype(np.float64)
        axes = tuple(range(-self.center.ndim, 0))
        return np.asarray(np.sum(math.log(math.tanh(rate / 2)) - rate * distance, axis=axes))

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        """Draw exactly: int64 of shape (*size, *center.shape)."""
        shape = (*_checks.shape(size), *self.center.shape)
        out = np.empty(math.prod(shape), np.int64)
        for source, block in [(bit_generator(rng), out)] if size is None else blocks(rng, out):
            _samplers.fill_discrete_laplace(source, self.scale, block)
        # Clamp the noise first, so that the sum does not overflow; its limit is so wide that the clamped sum does not
        # change.
        np.clip(out, -self.most - 2**61, self.most + 2**61, out=out)
        draws = out.reshape(shape)
        draws += self.center
        return np.clip(draws, -self.most, self.most, out=draws)

    def value(self, k: ArrayLike) -> Any:
        return self._decode(_containers.integers("k", k))


class RoundedNoise(ABC):
    """Symmetric noise on the integers: round(scale * X), X of a continuous law.

    Parameters
    ----------
    scale : float or Fraction
        In (0, 2**56], in units of the integers; its exact value is used. Must be a float for Student's t.
    """

    def __init__(self, scale: float | Fraction) -> None:
        self.scale = scale

    @abstractmethod
    def log_tail(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """The natural logarithm of P(Z >= z), z >= 1."""

    @abstractmethod
    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """The natural logarithm of P(Z = z)."""

    @abstractmethod
    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        """Fill `out` with exact draws, saturated at +-(2**63 - 1)."""


class RoundedLaplace(RoundedNoise):
    """``P(0) = 1 - exp(-1/(2 scale))``, ``P(z) = exp(-|z|/scale) sinh(1/(2 scale))``."""

    def __init__(self, scale: float | Fraction) -> None:
        super().__init__(scale)
        self._rate = float(1 / scale)

    def log_tail(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return (0.5 - z) * self._rate - math.log(2)

    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        one_cell = math.log(-math.expm1(-self._rate)) - math.log(2)
        at_zero = math.log(-math.expm1(-self._rate / 2))
        return np.where(z == 0, at_zero, (0.5 - np.abs(z)) * self._rate + one_cell)

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        _samplers.fill_rounded_laplace(source, self.scale, out)


class RoundedStudent3(RoundedNoise):
    """round(scale * T), T Student's t with 3 degrees of freedom. Probabilities have relative error about 1e-14.

    In units of c = t / sqrt(3) the density of |T| is ``(4 / pi) / (1 + c**2)**2``. A cell z of width h = 1 / (scale
    sqrt(3)) is far enough from the poles at +-i for Gauss-Legendre quadrature: at least 2 z half-widths.
    """

    _NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
    # atan y - y / (1 + y**2) = y**3 (2/3 - 4/5 y**2 + 6/7 y**4 - ...)
    _SERIES = tuple((-1) ** n * (2 * n + 2) / (2 * n + 3) for n in range(30, -1, -1))

    def __init__(self, scale: float | Fraction) -> None:
        super().__init__(float(scale))
        self._width = 1 / (self.scale * math.sqrt(3))

    def log_tail(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        c = (z - 0.5) * self._width
        near, y, far = np.minimum(c, 1), 1 / np.clip(c, 1, 2), 1 / np.maximum(c, 2)
        with np.errstate(under="ignore"):
            series = np.polyval(self._SERIES, far**2)
        tails = (
            np.log(math.pi / 2 - np.arctan(near) - near / (1 + near**2)),
            np.log(np.arctan(y) - y / (1 + y**2)),
            np.log(series) + 3 * np.log(far),
        )
        return np.where(c < 1, tails[0], np.where(c < 2, tails[1], tails[2])) - math.log(math.pi)

    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        half = self._width / 2
        center = np.abs(z) * self._width
        total = np.zeros(np.shape(z))
        for node, weight in zip(*_quadrature(), strict=True):
            total += weight * (np.hypot(1, center) / np.hypot(1, center + node * half)) ** 4
        cell = np.log(total) - 4 * np.log(np.hypot(1, center))
        at_zero = math.log(2 / math.pi * (math.atan(half) + half / (1 + half * half)))
        return np.where(z == 0, at_zero, cell + math.log(self._width / math.pi))

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        _samplers.fill_rounded_student3(source, self.scale, out)


@cache
def _quadrature() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights of Gauss and Legendre, 20 on [-1, 1]; they take milliseconds to compute."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    return nodes, weights


class RoundedGaussian(RoundedNoise):
    """round(scale * Z), Z standard normal; probabilities to 1e-12, relative, out to 40 scales.

    A cell over which the density changes by a factor of at most e**2 is integrated by Gauss-Legendre quadrature, any
    other is the difference of two tails.
    """

    def _log_above(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Natural logarithm of the mass above z / scale."""
        return np.asarray(log_ndtr(-z / float(self.scale)))

    def log_tail(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._log_above(z - 0.5)

    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        distance = np.abs(np.asarray(z, dtype=np.float64))
        narrow = distance + 0.5 <= 2 * float(self.scale) ** 2
        pieces = [narrow, ~narrow & (distance == 0)]
        cells = [self._narrow_cell, self._wide_cell_at_zero, self._wide_cell]
        return np.asarray(np.piecewise(distance, pieces, cells))

    def _narrow_cell(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        scale = float(self.scale)
        center, total = z / scale, np.zeros(z.shape)
        for node, weight in zip(*_quadrature(), strict=True):
            offset = node / (2 * scale)
            total += weight / 2 * np.exp(-offset * (center + offset / 2))
        return np.log(total) - center**2 / 2 - math.log(scale * math.sqrt(2 * math.pi))

    def _wide_cell_at_zero(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.log1p(-2 * np.exp(self._log_above(z + 0.5))))

    def _wide_cell(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        below, above = self._log_above(z - 0.5), self._log_above(z + 0.5)
        return below + np.log1p(-np.exp(above - below))

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        _samplers.fill_rounded_gaussian(source, self.scale, out)


class ClampedNoise(ScalarLaw):
    """The law of ``clamp(center + Z)`` on 0..last, Z rounded noise, with the mass beyond each end as an atom there.

    Parameters
    ----------
    noise : RoundedNoise
    center : int
        The exact statistic, in 0..last.
    last : int
        The support is 0..last, with both ends included, since clamping follows the noise. 0 for a constant.
    decode : callable
        Converts codes to values.

    Notes
    -----
    With c = center, ``P(k) = P(Z = k - c)`` for 0 < k < last, ``P(0) = P(Z <= -c)`` and ``P(last) = P(Z >= last - c)``
    (docs/proofs/global-sensitivity.md).
    """

    def __init__(self, noise: RoundedNoise, *, center: int, last: int, decode: Callable[[ArrayLike], Any]) -> None:
        self.noise, self.center, self._decode = noise, center, decode
        self.support = (0, last)

    def _log_at_least(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """The natural logarithm of P(Z >= z), any z."""
        tail = self.noise.log_tail(np.maximum(np.where(z > 0, z, 1 - z), 1.0))
        return np.where(z > 0, tail, np.log1p(-np.exp(tail)))

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = _containers.integers("k", k)
        first, last = self.support
        if first == last:
            return np.where(codes == first, 0.0, -np.inf)
        z = np.asarray(np.clip(codes, first, last) - self.center, dtype=np.float64)
        ends = np.where(codes == first, self._log_at_least(-z), self._log_at_least(z))
        return np.select(
            [(codes < first) | (codes > last), (codes > first) & (codes < last)], [-np.inf, self.noise.logpmf(z)], ends
        )

    def cdf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = _containers.integers("k", k)
        first, last = self.support
        inside = np.clip(codes, first, last)
        below = np.exp(self._log_at_least(np.asarray(self.center - inside, dtype=np.float64)))
        return np.select([codes < first, codes >= last], [0.0, 1.0], below)

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        shape = _checks.shape(size)
        out = np.empty(math.prod(shape), np.int64)
        for source, block in [(bit_generator(rng), out)] if size is None else blocks(rng, out):
            self._fill(source, block)
        return int(out[0]) if size is None else out.reshape(shape)

    def _fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        first, last = self.support
        if first == last:
            out[:] = first
            return
        self.noise.fill(source, out)
        np.clip(out, first - self.center, last - self.center, out=out)  # before the sum, which could overflow
        out += self.center

    def value(self, k: ArrayLike) -> Any:
        values = np.asarray(self._decode(k))
        return values if values.ndim else float(values)


def anywhere(grid: Grid, source: np.random.BitGenerator) -> float:
    """Draw a uniform point of the grid: the release for an empty group."""
    out, whole = np.empty(1, np.int64), np.array([grid.size - 1])
    _levels.fill(source, np.zeros(1, np.int64), whole, 1.0, grid.size - 1, out)
    return grid.value(int(out[0]))


class IndependentLaws(Law):
    """The law of a vector of independent integers. The last axis of k has the coordinates.

    Parameters
    ----------
    laws : sequence of ScalarLaw
        One for each coordinate.
    """

    def __init__(self, laws: Sequence[ScalarLaw]) -> None:
        self.laws = tuple(laws)

    def _columns(self, k: ArrayLike) -> list[tuple[ScalarLaw, NDArray[np.int64]]]:
        return list(zip(self.laws, np.moveaxis(_containers.integers("k", k), -1, 0), strict=True))

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(np.sum([law.logpmf(column) for law, column in self._columns(k)], axis=0))

    def outcomes(self) -> NDArray[np.int64]:
        _checks.outcomes(math.prod(law.support[1] - law.support[0] + 1 for law in self.laws))
        axes = [law.outcomes() for law in self.laws]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        source = bit_generator(rng)
        return np.stack([np.asarray(law.sample(size, rng=source)) for law in self.laws], axis=-1)

    def value(self, k: ArrayLike) -> NDArray[np.float64]:
        return np.stack([np.asarray(law.value(column)) for law, column in self._columns(k)], axis=-1)
