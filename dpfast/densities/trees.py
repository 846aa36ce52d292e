"""Trees of pairs of columns: synthetic records by post-processing of released marginals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.densities.consistency import Names, Values

Edges = list[tuple[Any, Any]]  # (parent, or None for a root, and column), each parent before its columns


def forest(names: Sequence[Any], pairs: Sequence[Names]) -> Edges:
    """Return the columns in an order in which each follows its parent, which is None for the first column of each tree.

    Raises a ValueError if a marginal has more than two columns, or pairs form a circle.
    """
    if any(len(pair) > 2 for pair in pairs) or not acyclic(pairs):
        raise ValueError("synthetic records need pairs of columns without circles: use Marginals.measurements and mbi")
    neighbors: dict[Any, list[Any]] = {name: [] for name in names}
    for a, b in (pair for pair in pairs if len(pair) == 2):
        neighbors[a].append(b)
        neighbors[b].append(a)
    edges, seen = [], set()
    for root in names:
        waiting = [(None, root)]
        while waiting:
            parent, name = waiting.pop()
            if name not in seen:
                seen.add(name)
                edges.append((parent, name))
                waiting.extend((name, other) for other in neighbors[name])
    return edges


def acyclic(pairs: Sequence[Names]) -> bool:
    """Whether pairs form no circle."""
    tree = Components()
    return all(tree.join(*pair) for pair in pairs if len(pair) == 2)


class Components:
    """The components of a graph that grows by edges."""

    def __init__(self) -> None:
        self._parents: dict[Any, Any] = {}

    def find(self, name: Any) -> Any:
        """Return the representative of the component of a column."""
        while (parent := self._parents.get(name, name)) != name:
            name = parent
        return name

    def join(self, a: Any, b: Any) -> bool:
        """Join two columns, and return whether they were in different components."""
        first, second = self.find(a), self.find(b)
        if first == second:
            return False
        self._parents[first] = second
        return True


def draw_bins(
    tables: Mapping[Names, Values], sizes: Mapping[Any, int], edges: Edges, k: int, rng: np.random.Generator
) -> dict[Any, NDArray[np.int64]]:
    """Draw the bins of k records: each column given its parent, with shares that are rounded at random."""
    drawn: dict[Any, NDArray[np.int64]] = {}
    for parent, name in edges:
        if parent is None:
            given, weights = np.zeros(k, np.int64), _margin(tables, name, sizes[name])[None, :]
        else:
            table = tables[parent, name] if (parent, name) in tables else tables[name, parent].T
            given, weights = drawn[parent], table
        drawn[name] = _draw_given(given, np.maximum(weights, 0.0), rng)
    return drawn


def _margin(tables: Mapping[Names, Values], name: Any, size: int) -> Values:
    """Return the weights of the bins of a column, from any table that has it; equal ones if none does."""
    for names, table in tables.items():
        if name in names:
            others = tuple(axis for axis, other in enumerate(names) if other != name)
            return np.asarray(table.sum(axis=others))
    return np.ones(size)


def _draw_given(given: NDArray[np.int64], weights: Values, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return a bin for each record by the row of weights of its given bin.

    The records of each row, in random order, take the quantiles (i + u) / m of its distribution, u uniform: each bin
    gets its share of the m records, up to one. A row without weight has the distribution of all rows.
    """
    weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, weights.sum(axis=0))
    weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0)
    sums = np.cumsum(weights, axis=1)
    cumulative = sums / sums[:, -1:]
    order = rng.permutation(len(given))
    order = order[np.argsort(given[order], kind="stable")]
    counts = np.bincount(given, minlength=len(weights))
    starts = np.cumsum(counts) - counts
    rows = given[order]
    rank = np.arange(len(given)) - starts[rows]
    places = (rank + rng.random(len(weights))[rows]) / counts[rows]
    steps = (cumulative + np.arange(len(weights))[:, None]).reshape(-1)
    found = np.searchsorted(steps, rows + places, side="right") - rows * weights.shape[1]
    drawn = np.empty(len(given), np.int64)
    drawn[order] = np.clip(found, 0, weights.shape[1] - 1)
    return drawn
