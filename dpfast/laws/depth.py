"""The exponential mechanism of Tukey depth on a grid in two or three dimensions."""

from __future__ import annotations

import bisect
import copy
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _boxes, _depth, _samplers
from dpfast.core import checks, containers
from dpfast.laws.law import Law
from dpfast.random import RandomSource, bit_generator

Integers = NDArray[np.int64]

_LISTED = 2**20  # grid points of which `logpmf` computes all depths
_MOST_RECORDS = 256  # for `logpmf` on any other grid
_STARTING = {2: 32, 3: 64}  # normals of the first envelope
_DIGITS = 2**12  # the greatest coefficient of these
_WASTED = 8  # rejected proposals before a new envelope
_LEAST_RATE = Fraction(1, 2**56)  # for draws of geometric numbers
_SPREAD = 16  # the levels of an envelope t steps below its top are t / 16 apart


class DepthLaw(Law):
    """P(y) proportional to ``exp(epsilon / 2 * max(depth(y), floor))`` on all points y of a grid.

    depth(y) is the least number of records in a closed half-space that contains y.

    Parameters
    ----------
    records : ndarray of int64, shape (n, d)
        Codes, d = 2 or 3.
    sizes : tuple of int
        The number of points of each coordinate.
    epsilon : float
    floor : int
        Less than the greatest depth of a grid point.
    levels : int
        At least 1: how far below the top the envelope distinguishes depths. It does not change the law.
    decode : callable
        Converts vectors of codes, an array of shape (..., d), to values.

    Notes
    -----
    Drawn by rejection (https://dpfast.readthedocs.io/en/latest/proofs/tukey-depth.html): a finite set of half-spaces
    bounds the depth from above, by nested polytopes whose grid points are counted exactly; a proposal y with the bound
    h is accepted with probability ``exp(-epsilon / 2 * (h - depth(y)))``, and a rejected one adds the half-space that
    shows its depth.
    """

    def __init__(
        self,
        records: Integers,
        sizes: tuple[int, ...],
        *,
        epsilon: float,
        floor: int,
        levels: int,
        decode: Callable[[Integers], Any],
    ) -> None:
        self.sizes, self.epsilon, self.floor, self._levels, self._decode = sizes, epsilon, floor, levels, decode
        self._records = np.ascontiguousarray(records)

    def depth(self, k: ArrayLike) -> Integers:
        """Return the depths of points, the last axis of k."""
        codes = np.ascontiguousarray(containers.integers("k", k))
        out = np.empty(codes.size // len(self.sizes), np.int64)
        _depth.Depths(self._records).fill(codes.reshape(-1, len(self.sizes)), out)
        return out.reshape(codes.shape[:-1])

    @cached_property
    def _log_total(self) -> float:
        """The logarithm of the sum of ``exp(epsilon / 2 * (max(depth, floor) - n))``."""
        n, rate = len(self._records), self.epsilon / 2
        if len(self.sizes) > 2 or n > _MOST_RECORDS or math.prod(self.sizes) <= _LISTED:
            exponents = self._exponent(self.outcomes())
            return float(exponents.max() + math.log(math.fsum(np.exp(exponents - exponents.max()))))
        k = np.arange(self.floor + 1, n + 1)
        counts = _Directions(self._records, self.sizes, _all_normals(self._records)).counts(k)
        logs = np.full(len(k) + 1, rate * (self.floor - n) + math.log(math.prod(self.sizes)))
        with np.errstate(divide="ignore"):
            logs[1:] = rate * (k - n) + np.log(-np.expm1(-rate)) + np.log(counts)
        return float(logs.max() + math.log(math.fsum(np.exp(logs - logs.max()))))

    def _exponent(self, k: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(self.epsilon / 2 * (np.maximum(self.depth(k), self.floor) - len(self._records)))

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return the natural logarithm of P(K = k).

        Raises a ValueError for grids of more than 2**20 points, unless there are two columns and at most 256 records.
        """
        codes = containers.integers("k", k)
        inside = np.all((codes >= 0) & (codes < np.array(self.sizes)), axis=-1)
        return np.where(inside, self._exponent(codes) - self._log_total, -np.inf)

    def outcomes(self) -> Integers:
        checks.outcomes(math.prod(self.sizes))
        return np.stack(np.meshgrid(*map(np.arange, self.sizes), indexing="ij"), axis=-1).reshape(-1, len(self.sizes))

    @cached_property
    def _start(self) -> _Directions:
        start = _Directions(self._records, self.sizes, _starting_normals(self._records))
        start.envelope(self.floor, self._levels)
        return start

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        shape, source = checks.shape(size), bit_generator(rng)
        directions, depths = copy.copy(self._start), _depth.Depths(self._records)
        draws = [self._draw(source, directions, depths) for _ in range(math.prod(shape))]
        return draws[0] if size is None else np.array(draws, np.int64).reshape(*shape, len(self.sizes))

    def _draw(self, source: np.random.BitGenerator, directions: _Directions, depths: _depth.Depths) -> Integers:
        envelope, wasted = directions.envelope(self.floor, self._levels), 0
        while True:
            point = envelope.draw(source, self.epsilon)
            # The proposal is accepted if its depth is at least `enough`.
            enough = envelope.bound(point) - _slack(source, self.epsilon, len(self._records))
            if enough <= self.floor:
                return point
            if directions.bound(point) >= enough:
                normal = np.empty(len(point), np.int64)
                if depths.at(point, normal, enough) >= enough:
                    return point
                directions.add(normal)
            wasted += 1
            if wasted % _WASTED == 0:
                envelope = directions.envelope(self.floor, self._levels)

    def value(self, k: ArrayLike) -> Any:
        return self._decode(containers.integers("k", k))


def _slack(source: np.random.BitGenerator, epsilon: float, n: int) -> int:
    """Return a geometric number, at least k with probability exp(-epsilon / 2 * k) for all k up to n."""
    rate = Fraction(epsilon) / 2
    out = np.empty(1, np.int64)
    if rate >= _LEAST_RATE:
        _samplers.fill_geometric(source, 1 / rate, out)
        return int(out[0])
    coin, place = np.empty(1, np.uint8), np.empty(1, np.uint64)
    _samplers.fill_bernoulli_exp(source, n * rate, coin)
    below, coin[0] = not coin[0], 0
    while below and not coin[0]:
        _samplers.fill_uniform(source, n - 1, place)
        _samplers.fill_bernoulli_exp(source, int(place[0]) * rate, coin)
    return int(place[0]) if below else n


class _Directions:
    """Normals of half-spaces, and in the same row the products of each with all records, in order. PRIVATE."""

    def __init__(self, records: Integers, sizes: tuple[int, ...], normals: Integers) -> None:
        self._records, self._sizes = records, sizes
        self._normals = np.unique(normals, axis=0)
        self._products = np.stack([_products(records, normal) for normal in self._normals])
        self.count = len(self._normals)
        self._envelope: _Envelope | None = None

    @property
    def normals(self) -> Integers:
        return self._normals[: self.count]

    @property
    def products(self) -> Integers:
        return self._products[: self.count]

    def add(self, normal: Integers) -> None:
        """Add a normal; full arrays are replaced by longer ones, so that copies of this object keep theirs."""
        if self.count == len(self._normals):
            self._normals, self._products = _twice(self._normals), _twice(self._products)
        self._normals[self.count] = normal
        self._products[self.count] = _products(self._records, normal)
        self.count += 1

    def bound(self, point: Integers) -> int:
        """Return the least number of records in the half-space of a normal that has the point on its edge."""
        return _depth.bound(self.normals, self.products, point)

    def counts(self, k: Integers) -> Integers:
        """Return the number of grid points of each P_k."""
        return _Polytopes(self.normals, self.products, self._sizes).counts(k)

    def envelope(self, floor: int, levels: int) -> _Envelope:
        """Return the envelope of all normals so far."""
        if self._envelope is None or len(self._envelope.normals) != self.count:
            self._envelope = _Envelope(self.normals, self.products, self._sizes, floor, levels)
        return self._envelope


class _Envelope:
    """Nested polytopes P_k, each with all grid points of depth k: at most the k-th greatest product with each normal.

    Level t has the points of P_(top - t), or of a larger one of these; the last level has all points of the grid.
    """

    def __init__(self, normals: Integers, products: Integers, sizes: tuple[int, ...], floor: int, levels: int) -> None:
        self.normals, self._products, self._sizes = normals, products, sizes
        self._polytopes = _Polytopes(normals, products, sizes)
        k = range(floor + 1, products.shape[1] + 1)
        self.top = bisect.bisect_left(k, True, key=lambda k: not self._polytopes.counts(np.array([k]))[0]) + floor
        self._steps = _steps(min(self.top - floor, levels))
        counts = np.append(self._polytopes.counts(self.top - np.array(self._steps[:-1])), math.prod(sizes))
        self._widths = np.repeat(counts, np.diff(self._steps, prepend=-1))
        self._volumes = _boxes.Volumes(len(self._widths))
        self._volumes.add_ranges(np.zeros_like(self._widths), self._widths - 1)

    def draw(self, source: np.random.BitGenerator, epsilon: float) -> Integers:
        """Return a grid point with probability proportional to ``exp(epsilon / 2 * bound)``."""
        level, index = np.empty(1, np.int64), np.empty(1, np.uint64)
        self._volumes.fill_levels(source, epsilon, lambda: [self._widths.tolist()], level)
        t = self._steps[bisect.bisect_left(self._steps, level[0])]
        _samplers.fill_uniform(source, int(self._widths[level[0]]) - 1, index)
        if t == self._steps[-1]:
            return np.array(np.unravel_index(int(index[0]), self._sizes), np.int64)
        return self._polytopes.point(self.top - t, int(index[0]))

    def bound(self, point: Integers) -> int:
        """Return the top minus the least level that has the point: at least its depth and the floor."""
        below = self.top - _depth.bound(self.normals, self._products, point)
        place = bisect.bisect_left(self._steps, below, hi=len(self._steps) - 1)
        return self.top - (self._steps[place - 1] + 1 if place else 0)


class _Polytopes:
    """The polytopes P_k of some normals: the grid points with products at most the k-th greatest of the records."""

    def __init__(self, normals: Integers, products: Integers, sizes: tuple[int, ...]) -> None:
        lines = np.zeros((len(normals), 3), np.int64)
        lines[:, : len(sizes)] = normals
        self._order, above, below = _ordered(lines.tolist())
        self._products, self._dimension = products, len(sizes)
        last = (sizes[0] - 1, sizes[2] - 1 if len(sizes) > 2 else 0)
        self._kernel = _depth.Polytopes(lines[self._order], above, below, last)

    def counts(self, k: Integers) -> Integers:
        """Return the number of grid points of each P_k."""
        out = np.empty(len(k), np.int64)
        self._kernel.counts(np.ascontiguousarray(self._products[self._order[None, :], -k[:, None]]), out)
        return out

    def point(self, k: int, index: int) -> Integers:
        """Return the point of this index of P_k."""
        point = np.empty(3, np.int64)
        self._kernel.point(self._products[self._order, -k], index, point)
        return point[: self._dimension].copy()


def _twice(rows: Integers) -> Integers:
    """Return the rows, and space for as many."""
    longer = np.empty((2 * len(rows), rows.shape[1]), np.int64)
    longer[: len(rows)] = rows
    return longer


def _products(records: Integers, normal: Integers) -> Integers:
    products: Integers = records[:, 0] * normal[0]
    for column, coefficient in zip(records.T[1:], normal[1:], strict=True):
        products += column * coefficient
    products.sort()
    return products


def _steps(most: int) -> list[int]:
    """0, 1, ... `most`, with greater steps at greater numbers."""
    steps = [0]
    while steps[-1] < most:
        steps.append(min(steps[-1] + max(1, steps[-1] // _SPREAD), most))
    return steps


def _ordered(lines: list[list[int]]) -> tuple[Integers, int, int]:
    """Return the order of the lines for `_depth.Polytopes`, and the numbers of lines of the first two kinds."""

    def slope(i: int) -> Fraction:
        return Fraction(lines[i][0], abs(lines[i][1]))

    above = sorted((i for i, line in enumerate(lines) if line[1] > 0), key=slope)
    below = sorted((i for i, line in enumerate(lines) if line[1] < 0), key=slope)
    level = [i for i, line in enumerate(lines) if line[1] == 0]
    return np.array([*above, *below, *level]), len(above), len(below)


def _all_normals(records: Integers) -> Integers:
    """Return the axes and the normals of all lines through two records, which bound all sets of some depth in the
    plane.
    """
    first, second = np.triu_indices(len(records), 1)
    x, y = (records[first] - records[second]).T
    axes = np.eye(2, dtype=np.int64)
    normals = np.stack([-y, x], axis=1)[(x != 0) | (y != 0)]
    return np.concatenate([axes, -axes, normals, -normals])


def _starting_normals(records: Integers) -> Integers:
    """Return the axes, and normals in all directions of the space in which the middle of the records is round."""
    d = records.shape[1]
    axes = np.eye(d, dtype=np.int64)
    middle = np.median(records, axis=0)
    spread = np.maximum(np.median(np.abs(records - middle), axis=0), 1.0)
    scaled = (records - middle) / spread
    inner = scaled[np.abs(scaled).max(axis=1) <= 3]
    values, vectors = np.linalg.eigh(inner.T @ inner / max(len(inner), 1) + 1e-6 * np.eye(d))
    turned = _sphere(d) @ (vectors / np.sqrt(values)) @ vectors.T / spread
    rounded = np.rint(turned / np.abs(turned).max(axis=1, keepdims=True) * _DIGITS).astype(np.int64)
    return np.concatenate([axes, -axes, rounded // np.gcd.reduce(rounded, axis=1, keepdims=True)])


def _sphere(d: int) -> NDArray[np.float64]:
    """Return the unit vectors that are spread evenly."""
    count = _STARTING[d]
    angles: NDArray[np.float64] = np.arange(count, dtype=np.float64)
    if d == 2:
        turns = 2 * np.pi * angles / count
        return np.stack([np.cos(turns), np.sin(turns)], axis=1)
    heights = 1 - (2 * angles + 1) / count
    turns = np.pi * (3 - math.sqrt(5)) * angles
    radii = np.sqrt(1 - heights**2)
    return np.stack([radii * np.cos(turns), radii * np.sin(turns), heights], axis=1)
