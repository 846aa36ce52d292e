"""Releases of sums of many groups of records: one pass over the records, then the noise of all groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _samplers, _segments
from dpfast.core import checks, containers
from dpfast.core.spending import STEP, refuse
from dpfast.laws import Staircase
from dpfast.mechanisms.integer_noise import integer_noise, kind_of_noise
from dpfast.mechanisms.plan import Draw, Grouping, Plan
from dpfast.statistics import Count, Mean, Sum, UnboundedStatistic, Variance
from dpfast.streaming import Counted

_MOST = 2**61  # of sums of codes, and of those of records in steps of the grid
_MOST_RECORDS = 2**32  # whose square is a word
_FAR = 2.0**300  # from where on squares of steps, or their inverses, may leave the normal doubles
_LEAST_EPSILON = 2.0**-34  # below it a level of staircase noise takes more words

Integers = NDArray[np.int64]
Fill = Callable[[np.random.BitGenerator, slice, Integers], None]


class _Centers(NamedTuple):
    """What the noise of each group is added to.

    Parameters
    ----------
    codes : ndarray of int64
        The exact statistics in release codes.
    lasts : ndarray of int64
        The largest release code of each; -1 for an empty group of public size.
    sensitivities : ndarray of int64
        In release codes; any for a constant, whose largest code is 0.
    sizes : ndarray of int64
        The numbers of records; 1 for an empty group of public size.
    """

    codes: Integers
    lasts: Integers
    sensitivities: Integers
    sizes: Integers


class GroupsOfSums(Plan):
    """The plan of a release from sums, which draws those of many groups by two kernels, whatever their number."""

    mechanism: Any

    def groups(self, values: Any, groups: Grouping, threads: int = 1) -> Draw:
        one_by_one = self.mechanism.jointly and not self.mechanism.on_pairs
        if isinstance(values, Counted) or one_by_one or not self._fits(len(values)):
            return super().groups(values, groups, threads)
        mechanism, statistic, grid = self.mechanism, self.mechanism.statistic, self.mechanism.grid
        sums = groups.sums(self._codes(values), grid.size - 1, half=grid.missing == "half", squares=statistic.squares)
        if mechanism.on_pairs:
            return self._pairs(sums)
        centers = self._private(sums) if mechanism.hides_n else self._public(sums)
        fill = self._noise(centers)

        def draw(start: int, stop: int, source: np.random.BitGenerator) -> NDArray[np.float64]:
            refuse(STEP, mechanism)  # it may have been made outside of a ledger
            part = slice(start, stop)
            codes = centers.codes[part].copy()
            fill(source, part, codes)
            return self._values(codes, centers, part)

        return draw

    def _fits(self, n: int) -> bool:
        """Whether the kernels can add n records of a statistic that they know; public, but for the least n."""
        statistic, grid = self.mechanism.statistic, self.mechanism.grid
        known = type(statistic) in (Mean, Sum, Count, Variance)
        reach = max(abs(grid.first), abs(grid.first + grid.size - 1), grid.size)
        near = 1 / _FAR < grid.step < _FAR and self.mechanism.epsilon > _LEAST_EPSILON
        return known and near and n < _MOST_RECORDS and n * reach < _MOST

    def _codes(self, values: Any) -> Integers:
        """Return the codes of the records, -1 for those that are replaced by their place or left out."""
        statistic, grid = self.mechanism.statistic, self.mechanism.grid
        records = containers.vector("x", values)
        whole = grid.with_missing(grid.nan_value) if grid.resolves else grid
        counts = isinstance(statistic, Count)
        codes: Integers = np.zeros(len(records), np.int64) if counts else whole.encode(records)
        if grid.resolves and records.dtype.kind == "f":
            codes[np.isnan(records)] = -1
        kept = statistic.kept(records) if counts else None
        return codes if kept is None else np.where(kept, codes, -1)

    def _public(self, sums: Integers) -> _Centers:
        """Return the centers of groups of public sizes."""
        statistic, last = self.mechanism.statistic, self.mechanism.grid.size - 1
        sizes, totals = sums[:, 0], sums[:, 1]
        lasts = sizes * last
        sensitivities = np.zeros(len(sizes), np.int64)
        sensitivities += last
        if isinstance(statistic, Variance):
            totals, lasts, sensitivities = np.zeros((3, len(sizes)), np.int64)
            _segments.spreads(sums, last, totals, lasts, sensitivities)
        empty = sizes == 0
        return _Centers(totals, np.where(empty, -1, lasts), sensitivities, np.where(empty, 1, sizes))

    def _private(self, sums: Integers) -> _Centers:
        """Return the centers of groups of private sizes, whose range is that of all totals."""
        statistic, grid = self.mechanism.statistic, self.mechanism.grid
        assert isinstance(statistic, UnboundedStatistic)
        (first, last), sizes = statistic.range(grid), sums[:, 0]
        exact = sizes if isinstance(statistic, Count) else sizes * grid.first + sums[:, 1]
        lasts, sensitivities = np.zeros((2, len(sums)), np.int64)
        lasts += last - first
        sensitivities += statistic.one_record(grid)
        return _Centers(np.minimum(np.maximum(exact, first), last) - first, lasts, sensitivities, sizes)

    def _noise(self, centers: _Centers) -> Fill:
        """Return a function that adds the noise of a range of groups to their codes."""
        mechanism, whole = self.mechanism, self.mechanism.grid.size - 1
        epsilon, lasts, sensitivities = mechanism.epsilon, centers.lasts, centers.sensitivities
        most = int(np.maximum.reduce(sensitivities, initial=0))
        if most > epsilon * 2.0**55:
            checks.noise_scale(most, epsilon)
        if kind_of_noise(mechanism.noise, mechanism.steps, epsilon) != "staircase":
            return lambda source, part, codes: _samplers.add_discrete_laplace(
                source, sensitivities[part], epsilon, lasts[part], whole, codes
            )
        distinct, places = np.unique(np.maximum(sensitivities, 1), return_inverse=True)
        stairs = [integer_noise("staircase", mechanism.steps, s, epsilon) for s in distinct.tolist()]
        periods = [law.s for law in stairs if isinstance(law, Staircase)]
        widths = [law.r for law in stairs if isinstance(law, Staircase)]
        return lambda source, part, codes: _samplers.add_staircase(
            source, places[part], epsilon, periods, widths, lasts[part], whole, codes
        )

    def _values(self, codes: Integers, centers: _Centers, part: slice) -> NDArray[np.float64]:
        """Return what release codes of a range of groups mean."""
        statistic, grid = self.mechanism.statistic, self.mechanism.grid
        sizes, out = centers.sizes[part], np.empty(len(codes))
        if isinstance(statistic, Variance):
            _segments.spread_values(codes, sizes, grid.size - 1, grid.step**2, out)
            empty = np.flatnonzero(centers.lasts[part] < 0)
            out[empty] = grid.decode(codes[empty])
            return out
        if self.mechanism.hides_n:
            least, _ = statistic.range(grid)
            return np.asarray((codes + least).astype(np.float64) * statistic.unit(grid))
        numerators = sizes * grid.first + codes
        if isinstance(statistic, Sum):
            return np.asarray(numerators.astype(np.float64) * grid.step)
        _segments.quotients(numerators, sizes, grid.step, out)
        return out

    def _pairs(self, sums: Integers) -> Draw:
        """Return the draws of means of groups of private sizes."""
        mechanism, half_width = self.mechanism, self.mechanism.grid.size - 1
        centers = np.stack([2 * sums[:, 1] - sums[:, 0] * half_width, sums[:, 0]], axis=1)

        def draw(start: int, stop: int, source: np.random.BitGenerator) -> NDArray[np.float64]:
            refuse(STEP, mechanism)
            made: NDArray[np.float64] = mechanism.noisy_quotients(centers[start:stop], source)
            return made

        return draw
