"""Synthetic tables of categories."""

import itertools

import numpy as np

import dpfast as dpf
from bench.peers.comparison import Job, Peer
from bench.peers.jobs.counts import ONE

TITLE = "Synthetic tables"
DELTA = 1e-6
SIZES = (5, 5, 8, 2)
TEXT = """The mean total variation distance between the pairs of columns of as many synthetic records and those of the
    records: four columns of 5, 5, 8 and 2 categories, two pairs of them dependent. OpenDP's MST and AIM give each
    column one more category, of missing values; its synthetic records are left out here. They take half a minute for a
    release: few data sets, one release of each."""


def _table(n):
    def draw(generator):
        a, c = generator.integers(0, SIZES[0], n), generator.integers(0, SIZES[2], n)
        b = (a + generator.integers(0, 2, n)) % SIZES[1]
        d = (c > 3) ^ (generator.random(n) < 0.1)
        return (np.column_stack([a, b, c, d]).astype(np.int64),)

    return draw


def _distance(released, X):
    complete = released[~np.isnan(released).any(axis=1)]
    released, found = complete.astype(np.int64), []
    for i, j in itertools.combinations(range(len(SIZES)), 2):
        pairs = (np.bincount(Z[:, i] * SIZES[j] + Z[:, j], minlength=SIZES[i] * SIZES[j]) / len(Z)
                 for Z in (released, X))  # fmt: skip
        first, second = pairs
        found.append(np.abs(first - second).sum() / 2)
    return np.mean(found)


def _ours(X, epsilon, delta):
    names = [f"c{j}" for j in range(len(SIZES))]
    columns = {name: dpf.Categories(range(size), missing=0) for name, size in zip(names, SIZES, strict=True)}
    public = {"epsilon": epsilon, "delta": delta, "neighbors": ONE}
    marginals = dpf.marginals(dict(zip(names, X.T, strict=True)), columns, **public)
    made = marginals.sample(len(X))
    return np.column_stack([np.asarray(made[name]) for name in names])


def jobs():
    for n, epsilon in ((5000, 1.0), (1000, 0.5)):
        public = {"sizes": SIZES, "epsilon": epsilon, "delta": DELTA}
        yield Job(
            "synthetic table", "4 columns", n, f"({epsilon:g}, {DELTA:g}), {ONE}", _table(n),
            lambda X, e=epsilon: _ours(X, e, DELTA), _distance,
            tuple(Peer("mbi", "synthetic", {**public, "algorithm": kind}, kind) for kind in ("MST", "AIM")),
            datasets=5, rounds=1,
        )  # fmt: skip
