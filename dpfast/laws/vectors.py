"""Laws of noise on vectors of integers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast._kernels import _knorm, _samplers
from dpfast.core import checks
from dpfast.core.quadrature import gauss_legendre
from dpfast.core.spending import guard_noise
from dpfast.laws.rounded import DiscreteLaplace, IntegerNoise, RoundedGaussian
from dpfast.random import BLOCK, RandomSource, bit_generator, blocks, streams

Scales: TypeAlias = Sequence[float | Fraction] | NDArray[Any]


class VectorNoise(ABC):
    """Noise on vectors of d integers. In the block of a `dpfast.Ledger` only the steps of a release draw it.

    Parameters
    ----------
    dimension : int
        d, at least 1.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        guard_noise(cls)

    @abstractmethod
    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the natural logarithm of P(Z = z), z of shape (..., d)."""

    @abstractmethod
    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        """Fill `out`, of shape (m, d), with exact draws, each coordinate saturated at +-(2**63 - 1)."""

    def draws(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None, rng: RandomSource) -> NDArray[np.int64]:
        """Exact draws, an array of shape ``(*size, d)``; a single one comes from one stream."""
        shape = checks.shape(size)
        out = np.empty((math.prod(shape), self.dimension), np.int64)
        if size is None:
            self.fill(bit_generator(rng), out)
        else:
            self.fill_blocks(rng, out)
        return out.reshape(*shape, self.dimension)

    def fill_blocks(self, rng: RandomSource, out: NDArray[np.int64]) -> None:
        """Fill `out`, of shape (m, d), in blocks of rows, each from its own stream."""
        rows = max(BLOCK // self.dimension, 1)
        sources = streams(rng, -(-len(out) // rows))
        for i in range(len(sources)):
            self.fill(sources[i], out[i * rows : (i + 1) * rows])


class Independent(VectorNoise):
    """Independent noise of one law on each coordinate.

    Parameters
    ----------
    noise : IntegerNoise
    dimension : int
    """

    def __init__(self, noise: IntegerNoise, dimension: int) -> None:
        super().__init__(dimension)
        self.noise = noise

    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.noise.logpmf(z).sum(axis=-1))

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        self.noise.fill(source, out.reshape(-1))

    def fill_blocks(self, rng: RandomSource, out: NDArray[np.int64]) -> None:
        for source, block in blocks(rng, out.reshape(-1)):
            self.noise.fill(source, block)


class RoundedGaussians(VectorNoise):
    """Independent rounded Gaussian noise with a standard deviation for each coordinate.

    Parameters
    ----------
    scales : sequence of float or Fraction
        As that of `RoundedGaussian`.
    """

    def __init__(self, scales: Sequence[float | Fraction]) -> None:
        super().__init__(len(scales))
        self.scales = tuple(scales)

    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        laws = map(RoundedGaussian, self.scales)
        return np.asarray(np.sum([law.logpmf(z[..., j]) for j, law in enumerate(laws)], axis=0))

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        _samplers.fill_rounded_gaussians(source, self.scales, out)


class DiscreteLaplaces(VectorNoise):
    """Independent discrete Laplace noise with a scale for each coordinate.

    Parameters
    ----------
    scales : sequence of float or Fraction
        As that of `DiscreteLaplace`.
    """

    def __init__(self, scales: Sequence[float | Fraction]) -> None:
        super().__init__(len(scales))
        self._laws = tuple(map(DiscreteLaplace, scales))

    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.sum([law.logpmf(z[..., j]) for j, law in enumerate(self._laws)], axis=0))

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        for j, law in enumerate(self._laws):
            column = np.empty(len(out), np.int64)
            law.fill(source, column)
            out[:, j] = column


class IndependentRuns(VectorNoise):
    """Independent noise of one law on each run of coordinates.

    Parameters
    ----------
    runs : sequence of (IntegerNoise, int)
        The laws, and for how many coordinates.
    """

    def __init__(self, runs: Sequence[tuple[IntegerNoise, int]]) -> None:
        super().__init__(sum(length for _, length in runs))
        self.runs = tuple(runs)

    def _slices(self) -> Iterator[tuple[IntegerNoise, slice]]:
        start = 0
        for noise, length in self.runs:
            yield noise, slice(start, start + length)
            start += length

    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.sum([noise.logpmf(z[..., run]).sum(axis=-1) for noise, run in self._slices()], axis=0))

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        for noise, run in self._slices():
            part = np.empty(out[:, run].shape, np.int64)
            noise.fill(source, part.reshape(-1))
            out[:, run] = part


class NormNoise(VectorNoise):
    """Noise of density proportional to exp(-||z||), by a norm with a scale for each coordinate.

    Parameters
    ----------
    scales : sequence of floats or Fractions, or ndarray
        One for each of the d coordinates, in (0, 2**56]; their exact values are used.
    """

    _MOST_BITS = 56

    def __init__(self, scales: Scales) -> None:
        self.scales = checks.scales(scales, self._MOST_BITS)
        super().__init__(self.scales.size)
        self._doubles = self.scales.astype(np.float64)

    @property
    @abstractmethod
    def expected_size(self) -> NDArray[np.float64]:
        """The expectation of each |z_i|, before rounding."""

    @property
    @abstractmethod
    def variance(self) -> NDArray[np.float64]:
        """The variance of each z_i, before rounding."""


class RoundedBox(NormNoise):
    """Noise of density proportional to ``exp(-max_i |z_i| / scales_i)``, each coordinate rounded to an integer.

    Parameters
    ----------
    scales : sequence of floats or Fractions, or ndarray
        See `NormNoise`.

    Notes
    -----
    Probabilities have a relative error of about 1e-12, and up to d 2**-52 max |z_i| more if the scales differ
    (https://dpfast.readthedocs.io/en/latest/proofs/knorm.html). Cost of one: of order d**3.
    """

    @property
    def expected_size(self) -> NDArray[np.float64]:
        return (self.dimension + 1) / 2 * self._doubles

    @property
    def variance(self) -> NDArray[np.float64]:
        return (self.dimension + 1) * (self.dimension + 2) / 3 * self._doubles**2

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        _knorm.fill_box(source, self.scales, out)

    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(z) is the integral over r of exp(-r) times the volume of the cell of z in r times the box, normalised.

        From ``start``, the least r with such a volume, each side of the intersection grows from ``side`` at the rate
        ``slope`` until it is 1; between these ends the volume is a polynomial.
        """
        slope = np.where(z == 0, 2.0, 1.0) * self._doubles
        nearest = np.maximum(np.abs(z) - 0.5, 0.0)
        leading = np.argmax(nearest / self._doubles, axis=-1, keepdims=True)
        first, leader = np.take_along_axis(nearest, leading, -1), self._doubles[leading]
        start = (first / leader)[..., 0]
        side = np.maximum(first * (slope / leader) - nearest, 0.0)
        ends = np.sort(np.maximum((1 - side) / slope, 0.0), axis=-1)
        total = -ends[..., -1]
        before = np.zeros_like(start)
        for end in np.moveaxis(ends, -1, 0):
            total = np.logaddexp(total, self._log_piece(before, end, side, slope))
            before = end
        return np.asarray(total - start - math.lgamma(self.dimension + 1) - np.log(2 * self._doubles).sum())

    def _log_piece(
        self, low: NDArray[np.float64], high: NDArray[np.float64], side: NDArray[np.float64], slope: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the natural logarithm of the integral of exp(-r) prod_i min(side_i + slope_i r, 1) from low to high.

        The part beyond the quantile 1 - 1e-20 of Gamma(d + 1) after `low` is left out.
        """
        d = self.dimension
        reach = min(1 / self._doubles.min(), d + 10 * math.sqrt(d) + 60)
        parts = math.ceil(reach / 8)
        nodes, weights = gauss_legendre(16 + d // 2)
        half = np.minimum(high - low, reach) / parts / 2
        total = np.full(np.shape(low), -np.inf)
        with np.errstate(divide="ignore"):
            for part in range(parts):
                r = (low + (2 * part + 1) * half)[..., None] + half[..., None] * nodes
                sides = np.minimum(side[..., None, :] + slope[..., None, :] * r[..., None], 1.0)
                terms = np.log(weights) - r + np.log(sides).sum(axis=-1)
                total = np.logaddexp(total, np.logaddexp.reduce(terms, axis=-1) + np.log(half))
        return total


class RoundedBall(NormNoise):
    """Noise of density proportional to ``exp(-||z / scales||_2)``, each coordinate rounded to an integer.

    Parameters
    ----------
    scales : sequence of floats or Fractions, or ndarray
        See `NormNoise`.

    Notes
    -----
    Probabilities are available for at most three scales that are at least 1/64 and differ by a factor of at most 16,
    with a relative error of about 1e-12 (https://dpfast.readthedocs.io/en/latest/proofs/knorm.html).
    """

    _LEAST, _MOST_RATIO = 2.0**-6, 16.0
    _POINTS = 2**20  # of quadrature at a time

    @property
    def expected_size(self) -> NDArray[np.float64]:
        d = self.dimension
        cosine = math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2)) / math.sqrt(math.pi)
        return d * cosine * self._doubles

    @property
    def variance(self) -> NDArray[np.float64]:
        return (self.dimension + 1) * self._doubles**2

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        _knorm.fill_ball(source, self.scales, out)

    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(z) is the integral of exp(-||x||) over the cell of z in units of the scales, normalised."""
        d, widths = self.dimension, 1 / self._doubles
        if d > 3 or widths.max() > min(1 / self._LEAST, self._MOST_RATIO * widths.min()):
            raise TypeError(
                "probabilities are available for at most three scales, at least 1/64 and within a factor of 16"
            )
        rows = np.reshape(z, (-1, d))
        points, weights = _product_rule([_composite_rule(-0.5, 0.5, parts) for parts in self._parts()])
        most = max(1, self._POINTS // len(weights))
        means = [self._log_means(rows[i : i + most], points, weights) for i in range(0, len(rows), most)]
        total = np.concatenate([np.empty(0), *means])
        total[~rows.any(axis=1)] = math.log(self._mean_around_origin())
        ball = math.lgamma(d + 1) + d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1)
        return np.asarray((total - ball + np.log(widths).sum()).reshape(np.shape(z)[:-1]))

    def _parts(self) -> list[int]:
        """Into how many parts to divide a cell along each axis, so that none is long or flat."""
        widths = 1 / self._doubles
        return [math.ceil(width / min(4.0, widths.min())) for width in widths]

    def _log_means(
        self, z: NDArray[np.float64], points: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the natural logarithm of the mean of exp(-||x||) over the cells of z, except that of 0."""
        center = np.sqrt(((z / self._doubles) ** 2).sum(axis=-1))
        norm = np.sqrt((((z[:, None, :] + points) / self._doubles) ** 2).sum(axis=-1))
        return np.asarray(np.log(np.exp(center[:, None] - norm) @ weights) - center)

    def _mean_around_origin(self) -> float:
        """Return the mean of exp(-||x||) over the cell of 0: over the cones from 0 to the sides of one of its 2**d
        parts.
        """
        d, sides, total = self.dimension, 0.5 / self._doubles, 0.0
        for i in range(d):
            rules = [_composite_rule(0.0, 1.0, parts) for parts in self._parts()]
            rules[i] = (np.ones(1), np.ones(1))
            points, weights = _product_rule(rules)
            norm = np.sqrt(((points * sides) ** 2).sum(axis=-1))
            total += float(weights @ (math.gamma(d) * scipy.special.gammainc(d, norm) / norm**d))
        return total


Rule: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]


def _composite_rule(low: float, high: float, parts: int) -> Rule:
    """Points and weights of Gauss and Legendre, 20 in each of equal parts of an interval, for the mean over it."""
    nodes, weights = gauss_legendre(20)
    starts = np.arange(parts)[:, None]
    points = low + (high - low) * (starts + (nodes + 1) / 2) / parts
    return points.reshape(-1), np.tile(weights / (2 * parts), parts)


def _product_rule(rules: Sequence[Rule]) -> Rule:
    """Return the product of rules for the axes: points of shape (m, d), and their weights."""
    points = np.stack(np.meshgrid(*(points for points, _ in rules), indexing="ij"), axis=-1).reshape(-1, len(rules))
    return points, reduce(np.multiply.outer, (weights for _, weights in rules)).reshape(-1)


class LatticeBox(NormNoise):
    """The law ``P(z)`` proportional to ``exp(-max_i |z_i| / scales_i)`` on vectors of at most three integers.

    Parameters
    ----------
    scales : sequence of floats or Fractions, or ndarray
        At most three, in (0, 2**54]; their exact values are used.

    Notes
    -----
    A vector of integers plus this noise is epsilon-DP if its difference between neighbours always lies in the box of
    half-widths w_i and the scales, which are public, are w_i / epsilon. For d = 1 it is discrete Laplace noise; for
    large scales it tends to that of `RoundedBox`, for small ones its error is less. Probabilities have a relative error
    of about 1e-12, or 2e-11 if two scales are above 2**16; moments 1e-12, or 1e-7 if two scales are above 2**10
    (https://dpfast.readthedocs.io/en/latest/proofs/knorm.html).
    """

    _MOST_BITS = 54
    _WIDE = 2.0**16  # two scales above it are taken as continuous in the sums over the lattice
    _WIDE_IN_MOMENTS = 2.0**10
    _FAR = 60.0  # max |z_i| / scales_i beyond which the lattice has less than 1e-15 of any moment
    _FARTHEST = 700.0  # beyond which probabilities underflow

    def __init__(self, scales: Scales) -> None:
        super().__init__(scales)
        if self.dimension > 3:
            raise ValueError(f"scales must be at most three, not {self.dimension}: use RoundedBox")

    @property
    def expected_size(self) -> NDArray[np.float64]:
        """The expectation of each |z_i|."""
        return self._moments(1)

    @property
    def variance(self) -> NDArray[np.float64]:
        """The variance of each z_i."""
        return self._moments(2)

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        _knorm.fill_lattice_box(source, self.scales, out)

    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            return np.asarray(-np.max(np.abs(z) / self._doubles, axis=-1) - math.log(self._total))

    @cached_property
    def _total(self) -> float:
        """The sum of exp(-max_i |z_i| / scales_i) over the lattice."""
        return self._sum([0] * self.dimension, self._WIDE)

    def _moments(self, power: int) -> NDArray[np.float64]:
        rows = power * np.eye(self.dimension + 1, self.dimension, dtype=int)
        *sums, total = (self._sum(row, self._WIDE_IN_MOMENTS) for row in rows.tolist())
        return np.array(sums) / total

    def _sum(self, powers: list[int], most: float) -> float:
        """Return the sum of ``prod_i |z_i|**powers_i exp(-max_i |z_i| / scales_i)`` over the lattice.

        It is the integral over r of exp(-r) times the sum of the powers over the points within r scales_i. The part of
        all coordinates but the widest changes at the ends |z_i| / scales_i; by parts, its growth at each end is
        multiplied with the integral of the rest beyond that end.
        """
        order = np.argsort(self._doubles)
        wide = [i for j, i in enumerate(order) if j == len(order) - 1 or self._doubles[i] > most]
        narrow = [i for i in order if i not in wide]
        steps = [np.arange(1, 2 + int(self._FAR * self._doubles[i])) for i in narrow]
        with np.errstate(over="ignore"):
            ends = np.concatenate([[0.0], *(step / self._doubles[i] for step, i in zip(steps, narrow, strict=True))])
        owners = np.concatenate([[-1], *(np.full(step.size, i) for step, i in zip(steps, narrow, strict=True))])
        ascending = np.argsort(ends, kind="stable")[: np.count_nonzero(ends <= self._FARTHEST)]
        ends, owners = ends[ascending], owners[ascending]
        inside = np.ones(ends.size)
        for i in narrow:
            inside *= _power_sum(np.cumsum(owners == i, dtype=float), powers[i])
        growth = np.diff(inside, prepend=0.0)
        if len(wide) == 1:
            beyond = _power_sum_beyond(ends, float(self._doubles[wide[0]]), powers[wide[0]])
        else:
            factors = [2 * self._doubles[i] ** (powers[i] + 1) / (powers[i] + 1) for i in wide]
            order_of_r = 1 + sum(powers[i] + 1 for i in wide)
            beyond = math.prod(factors) * math.gamma(order_of_r) * scipy.special.gammaincc(order_of_r, ends)
        return float(growth @ beyond)


def _power_sum(most: NDArray[np.float64], power: int) -> NDArray[np.float64]:
    """Return the sum of |z|**power over the integers |z| <= most, power 0 to 2."""
    return (2 * most + 1, most * (most + 1), most * (most + 1) * (2 * most + 1) / 3)[power]


def _power_sum_beyond(start: NDArray[np.float64], scale: float, power: int) -> NDArray[np.float64]:
    """Return the integral over r > start of exp(-r) times the sum of |z|**power over the integers |z| <= r scale."""
    most = np.floor(start * scale)
    first, q, loss = most + 1, math.exp(-1 / scale), -math.expm1(-1 / scale)
    powers = (1 / loss, first / loss + q / loss**2, first**2 / loss + 2 * first * q / loss**2 + q * (1 + q) / loss**3)
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(-start) * _power_sum(most, power) + 2 * np.exp(-first / scale) * powers[power]
