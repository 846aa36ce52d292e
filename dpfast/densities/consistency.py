"""Consistent tables from noisy marginals: weighted least squares, by post-processing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _marginals
from dpfast.densities.junctions import Axes, Places, axes_of, bits_of

Values = NDArray[np.float64]
Names = tuple[Any, ...]

_SWEEPS = 1000  # most tables take less than 100, hard ones of few records and much noise several hundred
_STILL = 1e-9  # records by which no cell moves in the last sweep, if there are fewer
_ROUNDING = 1e-14  # the same, as a share of the largest count
_RAISE, _FOLD, _MEET, _ADD = range(4)  # kinds of steps, as in src/marginals/projections.h


def nearest_consistent(
    tables: Mapping[Names, NDArray[Any]], variances: Mapping[Names, float], total: float | None
) -> dict[Names, Values]:
    """Return the nonnegative tables with equal shared margins that are nearest to the given ones.

    Parameters
    ----------
    tables : mapping
        A table for each tuple of names, with an axis for each.
    variances : mapping
        The variance of each count of a table: squared distances are divided by it.
    total : float, optional
        The known sum of each table.

    Notes
    -----
    Dykstra's alternating projections between the nonnegative tables and those with equal margins, with momentum, in at
    most 1000 sweeps: the margins of the result differ by a small part of the noise
    (https://dpfast.readthedocs.io/en/latest/proofs/marginals.html).
    """
    sizes = {name: size for names, table in tables.items() for name, size in zip(names, table.shape, strict=True)}
    order = {name: i for i, name in enumerate(sizes)}
    places = {names: [order[name] for name in names] for names in tables}
    axes = {names: np.argsort(places[names]) for names in tables}
    shapes = [np.array(table.shape)[axes[names]] for names, table in tables.items()]
    sets, given = [tuple(sorted(each)) for each in places.values()], [variances[names] for names in tables]
    flat = [np.transpose(table, axes[names]).reshape(-1).astype(np.float64) for names, table in tables.items()]
    nearest = zip(tables, shapes, _Sweep(tuple(sizes.values()), sets, given, total).nearest(flat), strict=True)
    return {names: np.transpose(found.reshape(shape), np.argsort(axes[names])) for names, shape, found in nearest}


class _Sweep:
    """The steps of a sweep over tables of columns, for the kernel.

    Parameters
    ----------
    sizes : sequence of ints
        The number of bins of each column.
    sets : sequence of tuples of ints
        The columns of each table.
    variances : sequence of floats
    total : float, optional
    """

    def __init__(
        self, sizes: Sequence[int], sets: Sequence[Places], variances: Sequence[float], total: float | None
    ) -> None:
        self._sizes, self._sets, self._total = sizes, sets, total
        self._cells = [self._size(places) for places in sets]
        self._starts = list(accumulate(self._cells, initial=0))
        self._views = dict[tuple[Places, Places], int]()
        self._axes: list[tuple[Axes, int]] = []
        weights = np.array([1.0 / (variance * cells) for variance, cells in zip(variances, self._cells, strict=True)])
        self._table_weights = weights / weights.max()
        self._places, self._own = dict[tuple[int, Places], int](), [list[Places]() for _ in sets]
        self._groups, self._weights, self._end = list[list[int]](), list[float](), self._starts[-1]
        shared = _shared(sets, known=total is not None)
        for places, tables in shared.items():
            self._add_group(places, tables)
        self._up, self._down = list[tuple[int, ...]](), list[tuple[int, ...]]()
        for table in range(len(sets)):
            self._add_table(table)
        for group, (places, tables) in enumerate(shared.items()):
            self._add_meeting(group, places, tables)

    def nearest(self, tables: Sequence[Values]) -> list[Values]:
        """Return the nearest consistent tables."""
        values = np.concatenate([*tables, np.zeros(self._end - self._starts[-1] + max(self._cells))])
        if self._groups:
            largest = float(np.abs(values).max())
            _marginals.project(
                values,
                self._starts[-1],
                self._end - self._starts[-1],
                self._axes,
                np.array(self._up, np.int64),
                np.array(self._down, np.int64),
                np.array(self._groups, np.int64),
                np.array(self._weights),
                math.nan if self._total is None else float(self._total),
                _SWEEPS,
                max(_STILL, _ROUNDING * largest),
            )
        return np.split(np.maximum(values[: self._starts[-1]], 0.0), self._starts[1:-1])

    def _size(self, places: Places) -> int:
        return math.prod(self._sizes[place] for place in places)

    def _add_group(self, places: Places, tables: Sequence[int]) -> None:
        """Give the margins of these tables on shared columns their places."""
        cells, known = self._size(places), self._total is not None and not places
        own = self._table_weights[tables]
        self._groups.append([self._end, len(tables), cells, len(self._weights), known])
        self._weights += [cells * own.sum(), *(own / own.sum())]
        for table in tables:
            self._places[table, places] = self._end
            self._own[table].append(places)
            self._end += cells

    def _add_table(self, table: int) -> None:
        """Add the steps from a table to its margins, and back; each margin follows from the smallest larger one."""
        room, start, sources = self._end, self._starts[table], dict[Places, Places | None]()
        own = self._own[table]
        if own:
            self._up.append((_RAISE, start, room, self._cells[table]))
        for places in reversed(own):
            larger = [other for other in own if set(places) < set(other)]
            sources[places] = source = min(larger, key=self._size, default=None)
            place = room if source is None else self._places[table, source]
            view = self._view(self._sets[table] if source is None else source, places)
            self._up.append((_FOLD, place, self._places[table, places], view))
        for places in own:
            source = sources[places]
            place = start if source is None else self._places[table, source]
            view = self._view(self._sets[table] if source is None else source, places)
            self._down.append((_ADD, self._places[table, places], place, view))

    def _add_meeting(self, group: int, places: Places, tables: Sequence[int]) -> None:
        """Add the steps that make margins equal, and move all larger margins of each table accordingly."""
        self._up.append((_MEET, 0, 0, group))
        for table in tables:
            for larger in self._own[table]:
                if set(places) < set(larger):
                    view = self._view(larger, places)
                    self._up.append((_ADD, self._places[table, places], self._places[table, larger], view))

    def _view(self, places: Places, kept: Places) -> int:
        """Return the number of the view of a margin."""
        if (places, kept) not in self._views:
            self._views[places, kept] = len(self._axes)
            self._axes.append((axes_of(self._sizes, places, kept), self._size(kept)))
        return self._views[places, kept]


def _shared(sets: Sequence[Places], *, known: bool) -> dict[Places, list[int]]:
    """Return the sets of columns on which tables must agree, with few columns first, and the tables of each.

    These are the intersections of tables: if all tables of a set have further columns in common, it is left out. The
    empty set is one if the sum is known.
    """
    masks, having = [0] * len(sets), dict[int, int]()  # columns and tables as bits
    for table, places in enumerate(sets):
        for place in places:
            masks[table] |= 1 << place
            having[place] = having.get(place, 0) | 1 << table
    found = {0} if known else set()
    for mask in masks:
        found |= {mask & other for other in found}
        found.add(mask)
    shared = dict[Places, list[int]]()
    for mask in sorted(found, key=lambda mask: (mask.bit_count(), mask)):
        places, tables = bits_of(mask), (1 << len(sets)) - 1
        for place in places:
            tables &= having[place]
        if tables.bit_count() > 1 or (known and not mask):
            shared[places] = list(bits_of(tables))
    return shared
