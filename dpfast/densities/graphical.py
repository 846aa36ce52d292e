"""Graphical models: the distribution on a junction tree that fits noisy counts of sets of columns. Post-processing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _marginals
from dpfast.densities.junctions import Axes, Junctions, Places, with_places

Values = NDArray[np.float64]
Bins = NDArray[np.uint16]

# The weight of entropy: a difference from the most precise counts by so many of their standard deviations changes the
# logarithm of the distribution by 1. docs/proofs/cliques.md
_ENTROPY = 0.1


class Noisy(NamedTuple):
    """Noisy counts of a set of columns, flat, and the variance of their noise."""

    counts: Values
    variance: float

    def and_also(self, other: Noisy) -> Noisy:
        """Return the counts and their variance that follow from two releases of the same counts."""
        share = other.variance / (self.variance + other.variance)
        return Noisy(share * self.counts + (1 - share) * other.counts, share * self.variance)


@dataclass(frozen=True)
class Graphical:
    """A distribution of records, by its tables on the cliques of a junction tree.

    Attributes
    ----------
    junctions : Junctions
    tables : list of flat ndarrays
        The expected records in the cells of each clique, with equal shared margins.
    potentials : dict from sets of columns to flat ndarrays
        The distribution is proportional to the product of their exponentials.
    """

    junctions: Junctions
    tables: list[Values]
    potentials: dict[Places, Values]

    def margin(self, places: Places) -> Values:
        """Return the margin on columns of a clique, flat."""
        return self._margin_of(self.junctions.smallest(places), places)

    def _margin_of(self, clique: int, places: Places) -> Values:
        tree = self.junctions
        out = np.empty(tree.size(places))
        _marginals.fold(self.tables[clique], tree.axes(tree.cliques[clique], places), out)
        return out

    def _rows_of(self, clique: int, place: int, shared: Places) -> Values:
        """Return the margin on a column and shared columns, a row for each bin of the column."""
        places = with_places(shared, (place,))
        table = self._margin_of(clique, places).reshape(self.junctions.shape(places))
        return np.moveaxis(table, places.index(place), 0).reshape(self.junctions.sizes[place], -1)

    @np.errstate(all="ignore")  # no count decides what a caller's error state raises
    def pairs(self) -> dict[Places, Values]:
        """Return the margins on all pairs of columns, flat, also of columns that are in no clique together."""
        tree, found = self.junctions, dict[Places, Values]()
        for i, clique in enumerate(tree.cliques):
            for pair in combinations(clique, 2):
                if pair not in found:
                    found[pair] = self._margin_of(i, pair)
        for target, shared, far, message in self._messages():
            given = message / _positive(self._margin_of(target, shared))
            for b in tree.cliques[target]:
                if b not in shared:
                    tables = np.split(
                        np.asarray(given @ self._rows_of(target, b, shared).T), np.cumsum(tree.shape(far))[:-1]
                    )
                    for a, table in zip(far, tables, strict=True):
                        found.setdefault((min(a, b), max(a, b)), (table if a < b else table.T).reshape(-1))
        return found

    def _messages(self) -> Iterator[tuple[int, Places, Places, Values]]:
        """Yield, for each clique and neighbour of it, their shared columns, the columns that lie beyond these, and the
        margins of each such column with the shared ones, a row for each bin.
        """
        tree, sent = self.junctions, dict[tuple[int, int], tuple[Places, Values]]()
        around = tree.neighbors
        order = [(edge.child, edge.parent, edge.shared) for edge in reversed(tree.edges)]
        order += [(edge.parent, edge.child, edge.shared) for edge in tree.edges]
        for source, target, shared in order:
            own = [place for place in tree.cliques[source] if place not in shared]
            rows, far = [self._rows_of(source, place, shared) for place in own], tuple(own)
            for other, between in around[source].items():
                if other != target:
                    beyond, message = sent[other, source]
                    rows.append(self._forwarded(source, message, between, shared))
                    far += beyond
            sent[source, target] = far, np.concatenate(rows) if rows else np.empty((0, tree.size(shared)))
            yield target, shared, *sent[source, target]

    def _forwarded(self, clique: int, message: Values, given: Places, wanted: Places) -> Values:
        """Return the margins with `given` columns of a clique as those with `wanted` columns of it."""
        tree, both = self.junctions, with_places(given, wanted)
        kept, lost, new = (
            [place for place in both if place in given and place in wanted],
            [place for place in given if place not in wanted],
            [place for place in wanted if place not in given],
        )
        scaled = (message / _positive(self._margin_of(clique, given))).reshape(-1, *tree.shape(given))
        left = np.transpose(scaled, [*(given.index(p) + 1 for p in kept), 0, *(given.index(p) + 1 for p in lost)])
        joint = self._margin_of(clique, both).reshape(tree.shape(both))
        right = np.transpose(joint, [both.index(place) for place in (*kept, *lost, *new)])
        shared, summed = tree.size(tuple(kept)), tree.size(tuple(lost))
        product = left.reshape(shared, -1, summed) @ right.reshape(shared, summed, -1)
        product = product.reshape(*tree.shape(tuple(kept)), len(message), *tree.shape(tuple(new)))
        axes = [kept.index(place) if place in kept else len(kept) + 1 + new.index(place) for place in wanted]
        return np.transpose(product, [len(kept), *axes]).reshape(len(message), -1)

    def draw(self, k: int, source: np.random.BitGenerator) -> Bins:
        """Draw the bins of k records, a row for each column: whole cells of each clique in turn, given shared columns.

        Each cell gets its share of the records with the same bins of the shared columns, rounded down or up.
        """
        tree = self.junctions
        bins = np.empty((len(tree.sizes), k), np.uint16)
        for clique, shared in [(0, ()), *((edge.child, edge.shared) for edge in tree.edges)]:
            places = tree.cliques[clique]
            new = tuple(place for place in places if place not in shared)
            table = self.tables[clique].reshape(tree.shape(places))
            table = np.transpose(table, [places.index(place) for place in (*shared, *new)])
            weights = np.ascontiguousarray(table).reshape(tree.size(shared), -1)
            cells = np.zeros(k, np.uint32)
            for i, place in enumerate(shared):
                if i:
                    cells *= np.uint32(tree.sizes[place])
                cells += bins[place]
            _marginals.draw(source, weights, cells)
            if len(new) == 1:
                bins[new[0]] = cells
                continue
            for place, labels in zip(new, np.indices(tree.shape(new), np.uint16), strict=True):
                np.take(labels.reshape(-1), cells, out=bins[place], mode="clip")
        return bins


def estimated_total(noisy: Mapping[Places, Noisy]) -> float:
    """Return the number of records by the sums of noisy counts, at least 1."""
    weights = {places: 1 / (each.variance * each.counts.size) for places, each in noisy.items()}
    total = sum(weights[places] * each.counts.sum() for places, each in noisy.items())
    return max(float(total) / sum(weights.values()), 1.0)


@np.errstate(all="ignore")
def fitted(
    junctions: Junctions,
    noisy: Mapping[Places, Noisy],
    total: float,
    *,
    start: Mapping[Places, Values] | None = None,
    sweeps: int,
    tolerance: float,
) -> Graphical:
    """Return the distribution that fits noisy counts, each in a clique.

    It has the least sum of squared distances from the counts, each divided by its variance, less a small multiple of
    the entropy. The potentials of `start` are where the fit starts, with at most so many sweeps, until one moves fewer
    than `tolerance` records.

    Notes
    -----
    Coordinate ascent: a sweep goes through the cliques along the tree and fits each to its counts, one after the other.

    References
    ----------
    Jirousek and Preucil 1995, "On the effective implementation of the iterative proportional fitting procedure";
    McKenna, Sheldon and Miklau 2019, "Graphical-model based estimation and inference for differential privacy".
    """
    start = start or {}
    potentials = {places: start.get(places, np.zeros(each.counts.size)).copy() for places, each in noisy.items()}
    homes = {places: junctions.smallest(places) for places in noisy}
    tables = _tables(junctions, potentials, homes)
    variances = np.array([each.variance for each in noisy.values()])
    spreads = _ENTROPY * variances / np.sqrt(variances.min())
    work = _Work(junctions, homes, tables, [np.ones(junctions.size(edge.shared)) for edge in junctions.edges])
    counts = [each.counts for each in noisy.values()]
    shifts = np.array([(each.sum() - total) / each.size for each in counts])
    arguments = counts, list(potentials.values()), shifts, spreads, work.separators, float(total)
    work.sweep(work.passes, *arguments, 1, 0.0)
    for table in (*tables, *work.separators):
        table *= total / tables[0].sum()
    work.sweep(work.tour, *arguments, sweeps, float(tolerance))
    return Graphical(junctions, tables, potentials)


def _tables(junctions: Junctions, potentials: Mapping[Places, Values], homes: Mapping[Places, int]) -> list[Values]:
    """Return the products of the exponentials of the potentials of each clique, in proportion."""
    logs = [np.zeros(junctions.shape(clique)) for clique in junctions.cliques]
    for places, each in potentials.items():
        clique = junctions.cliques[homes[places]]
        logs[homes[places]] += each.reshape([junctions.sizes[p] if p in places else 1 for p in clique])
    return [np.exp(log - log.max()).reshape(-1) for log in logs]


@dataclass(frozen=True)
class _Work:
    """The steps of a sweep, for the kernel."""

    junctions: Junctions
    homes: Mapping[Places, int]
    tables: list[Values]
    separators: list[Values]
    views: list[tuple[Axes, int]] = field(default_factory=list)

    def sweep(self, steps: Sequence[Sequence[int]], *arguments: object) -> None:
        if steps:
            _marginals.sweep(self.tables, self.views, np.array(steps, np.int64), *arguments)  # type: ignore[arg-type]

    def _view(self, clique: int, places: Places) -> int:
        tree = self.junctions
        self.views.append((tree.axes(tree.cliques[clique], places), tree.size(places)))
        return len(self.views) - 1

    def _fit(self, target: int, places: Places) -> list[int]:
        home = self.homes[places]
        return [home, self._view(home, places), 0, 0, target, 0]

    def _pass(self, source: int, target: int, number: int) -> list[int]:
        shared = self.junctions.edges[number].shared
        return [source, self._view(source, shared), target, self._view(target, shared), -1, number]

    @property
    def passes(self) -> list[list[int]]:
        """Messages that make the tables of all cliques margins of one distribution."""
        edges = list(enumerate(self.junctions.edges))
        up = [self._pass(edge.child, edge.parent, i) for i, edge in reversed(edges)]
        return up + [self._pass(edge.parent, edge.child, i) for i, edge in edges]

    @property
    def tour(self) -> list[list[int]]:
        """A walk along the tree and back, which fits each clique when it has the latest messages."""
        fits: dict[int, list[list[int]]] = {}
        for target, places in enumerate(self.homes):
            fits.setdefault(self.homes[places], []).append(self._fit(target, places))
        tour, path = list(fits.get(0, ())), list[tuple[int, list[int]]]()
        for i, edge in enumerate(self.junctions.edges):
            while path and path[-1][0] != edge.parent:
                tour.append(path.pop()[1])
            tour += [self._pass(edge.parent, edge.child, i), *fits.get(edge.child, ())]
            path.append((edge.child, self._pass(edge.child, edge.parent, i)))
        return tour + [back for _, back in reversed(path)]


def _positive(sums: Values) -> Values:
    """Return sums to divide by, with 1 where they are 0."""
    return np.where(sums > 0, sums, 1.0)
