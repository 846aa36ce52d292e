"""Junction trees: sets of columns, such that a distribution follows from its margins on them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_CELLS = 2**24
Places = tuple[int, ...]  # columns by their numbers, in increasing order
Axes = NDArray[np.int64]


class Edge(NamedTuple):
    """A clique and the one before it in the tree, by their numbers, and the columns that both have."""

    parent: int
    child: int
    shared: Places


@dataclass(frozen=True)
class Junctions:
    """A junction tree of columns with numbers of bins.

    Attributes
    ----------
    sizes : tuple of ints
        The number of bins of each column.
    cliques : tuple of tuples of ints
        The columns of each clique; each column is in one, and no clique in another.
    """

    sizes: tuple[int, ...]
    cliques: tuple[Places, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], sets: Iterable[Places]) -> Junctions:
        """Return a junction tree in which each of the sets of columns is in a clique."""
        return cls(
            tuple(sizes), tuple(bits_of(mask) for mask in triangulated(CellCounts(sizes), graph(len(sizes), sets)))
        )

    @property
    def cells(self) -> int:
        """The number of cells of all tables."""
        return sum(self.size(clique) for clique in self.cliques)

    def check(self) -> None:
        """Raise a ValueError for too many cells."""
        if self.cells > MOST_CELLS:
            raise ValueError(
                f"synthetic records need marginals whose junction tree has at most 2**24 cells, not {self.cells}: use "
                "fewer pairs that form circles, or fewer bins"
            )

    def size(self, places: Places) -> int:
        """Return the number of cells of a set of columns."""
        return math.prod(self.sizes[place] for place in places)

    def shape(self, places: Places) -> tuple[int, ...]:
        """Return the shape of the table of a set of columns."""
        return tuple(self.sizes[place] for place in places)

    def has(self, places: Places) -> bool:
        """Whether a clique has all these columns."""
        return any(set(places) <= set(clique) for clique in self.cliques)

    def smallest(self, places: Places) -> int:
        """Return the number of the smallest clique that has all these columns."""
        wanted = set(places)
        holding = (i for i, clique in enumerate(self.cliques) if wanted <= set(clique))
        return min(holding, key=lambda i: self.size(self.cliques[i]))

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """The edges of the tree from clique 0: each clique is a parent before its children, depth first.

        A spanning tree with as many shared columns as possible is a junction tree (Jensen and Jensen 1994).
        """
        m = len(self.cliques)
        pairs = [(i, j, _shared(self.cliques[i], self.cliques[j])) for i in range(m) for j in range(i)]
        pairs.sort(key=lambda pair: (-len(pair[2]), self.size(pair[2])))
        components, neighbors = list(range(m)), [list[tuple[int, Places]]() for _ in range(m)]
        for i, j, shared in pairs:
            if components[i] != components[j]:
                old, new = components[i], components[j]
                components = [new if component == old else component for component in components]
                neighbors[i].append((j, shared))
                neighbors[j].append((i, shared))
        found, waiting, seen = list[Edge](), [Edge(-1, 0, ())], set[int]()
        while waiting:
            edge = waiting.pop()
            seen.add(edge.child)
            found.append(edge)
            waiting += [Edge(edge.child, i, shared) for i, shared in neighbors[edge.child] if i not in seen]
        return tuple(found[1:])

    @cached_property
    def neighbors(self) -> tuple[dict[int, Places], ...]:
        """The neighbours of each clique in the tree, and the columns that both have."""
        found = tuple(dict[int, Places]() for _ in self.cliques)
        for parent, child, shared in self.edges:
            found[parent][child] = found[child][parent] = shared
        return found

    def axes(self, clique: Places, kept: Places) -> Axes:
        """Return how the cells of a clique's table map to those of its margin on these columns, for the kernel."""
        return axes_of(self.sizes, clique, kept)


def axes_of(sizes: Sequence[int], places: Places, kept: Places) -> Axes:
    """Return how the cells of a table of columns map to those of its margin on some of them, for the kernel."""
    strides, stride = dict[int, int](), 1
    for place in reversed(kept):
        strides[place] = stride
        stride *= sizes[place]
    merged: list[tuple[int, int]] = []
    for place in places:
        size, step = sizes[place], strides.get(place, 0)
        if size == 1:
            continue
        if merged and (merged[-1][1] != 0) == (step != 0):
            merged[-1] = merged[-1][0] * size, step
        else:
            merged.append((size, step))
    return np.array(merged or [(1, 0)], np.int64).T.copy()


class CellCounts(dict[int, int]):
    """The number of cells of each set of columns, which are bits."""

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__({0: 1})
        self._sizes = sizes

    def __missing__(self, mask: int) -> int:
        lowest = mask & -mask
        self[mask] = found = self._sizes[lowest.bit_length() - 1] * self[mask ^ lowest]
        return found


def triangulated(cells: CellCounts, neighbors: list[int]) -> list[int]:
    """Return the maximal cliques, as bits, of a graph to which edges are added: each column in turn, the one with the
    fewest cells together with its neighbours, joins these and leaves.
    """
    neighbors = list(neighbors)
    costs = {place: cells[mask | 1 << place] for place, mask in enumerate(neighbors)}
    found = list[int]()
    while costs:
        place = min(costs, key=costs.__getitem__)
        del costs[place]
        around = neighbors[place]
        clique = around | 1 << place
        if all(clique & ~other for other in found):
            found.append(clique)
        rest = around
        while rest:
            one = rest & -rest
            rest ^= one
            other = one.bit_length() - 1
            neighbors[other] = (neighbors[other] | around) & ~(one | 1 << place)
            costs[other] = cells[neighbors[other] | one]
    return found


def with_places(places: Places, others: Places) -> Places:
    """Return the columns of two sets."""
    return tuple(sorted({*places, *others}))


def cells_of(cells: CellCounts, neighbors: list[int]) -> int:
    """Return the number of cells of the junction tree of a graph."""
    return sum(cells[mask] for mask in triangulated(cells, neighbors))


def graph(d: int, sets: Iterable[Places]) -> list[int]:
    """Return the neighbours of each of d columns, as bits: those that are in a set with it."""
    neighbors = [0] * d
    for places in sets:
        mask = sum(1 << place for place in places)
        for place in places:
            neighbors[place] |= mask & ~(1 << place)
    return neighbors


def with_pair(neighbors: list[int], pair: Places) -> list[int]:
    """Return a graph with one more edge."""
    a, b = pair
    joined = list(neighbors)
    joined[a] |= 1 << b
    joined[b] |= 1 << a
    return joined


def bits_of(mask: int) -> Places:
    """Return the columns of a set of bits."""
    return tuple(place for place in range(mask.bit_length()) if mask >> place & 1)


def _shared(one: Places, other: Places) -> Places:
    return tuple(place for place in one if place in other)
