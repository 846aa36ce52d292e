"""Marginals of tables, consistent tables, and synthetic records."""

from collections.abc import Iterator
from functools import partial
from itertools import combinations

import numpy as np

import dpfast as dpf
from bench import data
from bench.compare.clock import Floor, Job, power

BOUNDS = (0.0, 100.0)


def _table(n, d):
    """Columns that depend on one normal variable."""
    rng = np.random.default_rng(0)
    X = 50 + 10 * rng.normal(size=(n, 1)) + 8 * rng.normal(size=(n, d))
    return {f"column {j}": x for j, x in enumerate(np.ascontiguousarray(X.T))}


def _marginals(x, pairs):
    return dpf.marginals(x, dict.fromkeys(x, BOUNDS), pairs, epsilon=data.EPSILON, delta=1e-6)


def tables(size) -> Iterator[Job]:
    """Marginals of a tree of columns, consistent tables, and synthetic records of them."""
    n = size(10**4)
    for d in (4, 64):
        x = _table(n, d)
        bins = np.random.default_rng(1).integers(0, 16, (d, n))
        pairs = list(combinations(range(d), 2))
        count = lambda bins=bins, pairs=pairs: [np.bincount(16 * bins[a] + bins[b]) for a, b in pairs]  # noqa: E731
        floor = Floor("np.bincount of all pairs", count)
        yield Job(f"marginals, tree of {d} columns, n = {power(n)}", partial(_marginals, x, "tree"), (floor,))
    released = _marginals(_table(n, 24), "all")
    values = np.concatenate([table.reshape(-1) for table in released.counts.values()]).astype(np.float64)

    def read():
        for _ in range(100):
            np.maximum(values, 0.0)

    yield Job("consistent tables, all pairs of 24 columns", released.consistent, (Floor("100 np.maximum", read),))
    k, rng = size(10**6), np.random.default_rng(1)
    released = _marginals(_table(n, 20), "tree")
    floor = Floor("Generator.random", lambda: rng.random((20, k)))
    yield Job(f"synthetic records, 20 columns, k = {power(k)}", lambda: released.sample(k), (floor,))
    single = _marginals(_table(n, 1), "all")
    floor = Floor("Generator.random", lambda: rng.random(10 * k))
    yield Job(f"synthetic records, 1 column, k = {power(10 * k)}", lambda: single.sample(10 * k), (floor,))
