"""Medians, single quantiles and several at once."""

import numpy as np

import dpfast as dpf
from bench.peers.comparison import Job, Peer
from bench.peers.jobs.counts import ONE, REPLACED
from bench.peers.records import drawer, named

TITLE = "Quantiles"
CANDIDATES, LEAVES, TREE = 10_000, 1024, (5, 16)
TEXT = f"""Errors are mean distances from the quantile of the records. Where q n is half an odd number, as for most
    n here, one record is the quantile by every definition; where q n is a whole number, all points between two records
    are quantiles, and errors are distances from the nearest of them. OpenDP chooses among {CANDIDATES:,} evenly spaced
    candidates, or all points of the grid if there are fewer. Nine deciles: OpenDP with equal parts of epsilon, and from
    a consistent tree of {LEAVES:,} bins; python-dp from a tree of height {TREE[0]} and {TREE[1]} branches."""
# Records, q, n, epsilon and neighbours of single quantiles.
SINGLE = (
    ("normal", 0.5, 301, 1.0, REPLACED),
    ("normal", 0.5, 1001, 0.1, REPLACED),
    ("normal", 0.5, 1001, 1.0, REPLACED),
    ("normal", 0.5, 1001, 4.0, REPLACED),
    ("normal", 0.5, 1000, 4.0, REPLACED),
    ("normal", 0.5, 1001, 1.0, ONE),
    ("lognormal", 0.5, 1001, 1.0, REPLACED),
    ("lognormal", 0.5, 10_001, 1.0, REPLACED),
    ("lognormal", 0.5, 10_001, 1.0, ONE),
    ("lognormal", 0.9, 1005, 1.0, REPLACED),
    ("lognormal", 0.9, 1005, 0.1, ONE),
    ("lognormal, [0, 1e8]", 0.5, 1001, 1.0, REPLACED),
    ("Student-t(2)", 0.9, 1005, 1.0, REPLACED),
    ("ages", 0.5, 1001, 0.1, REPLACED),
    ("ages", 0.9, 1005, 0.1, REPLACED),
    ("ages", 0.9, 1005, 0.1, ONE),
    ("hours", 0.9, 1005, 0.1, REPLACED),
    ("hours", 0.9, 1005, 0.1, ONE),
    ("Likert", 0.5, 301, 0.1, REPLACED),
    ("real pay", 0.5, 1001, 1.0, REPLACED),
    ("real pay", 0.9, 1005, 1.0, REPLACED),
    ("real pay", 0.5, 10_001, 0.1, ONE),
)
DECILES = [q / 10 for q in range(1, 10)]
LOWER = """for an even n dpfast releases the lower of the two middle records, while diffprivlib draws evenly between the
    two, where this error is 0; for odd n the two laws are the same."""

FLIPS = """OpenDP selects by permute-and-flip among 10,000 candidates, whose distances are about as large as the error
    here. On such a grid it has less error than the exponential mechanism: by simulation of both on these candidates,
    1.12 times for the median of normal data, and for lognormal data like pay 1.20 times with 10,001 records at
    epsilon = 0.1, 1.02 times for the 0.9-quantile. dpfast has it on a grid of a larger step: 96 instead of 113 for
    these 10,001 records, with ``step=256`` and ``selection="permute-and-flip"`` of `InverseSensitivity`."""


def distance(q):
    """From the set of q-quantiles of x, mean over q."""

    def error(released, x):
        ordered, ranks = np.sort(x), np.multiply(q, x.size)
        low = ordered[np.maximum(np.ceil(ranks - 1e-9).astype(int) - 1, 0)]
        high = ordered[np.minimum(np.floor(ranks + 1e-9).astype(int), x.size - 1)]
        return np.mean(np.maximum(0.0, np.maximum(low - released, released - high)))

    return error


def _single():
    for name, q, n, epsilon, neighbors in SINGLE:
        if (population := named().get(name)) is None:
            continue
        lower, upper = float(population.grid.lower), float(population.grid.upper)
        public = {"q": q, "lower": lower, "upper": upper, "epsilon": epsilon}
        known = n if neighbors == REPLACED else None
        candidates = min(CANDIDATES, population.grid.size)
        other = (
            Peer("diffprivlib", "quantile", public, why=LOWER if n % 2 == 0 else "")
            if neighbors == REPLACED
            else Peer("pydp", "quantile", public)
        )
        yield Job(
            "median" if q == 0.5 else f"{q:g}-quantile", name, n, f"{epsilon:g}, {neighbors}", drawer(population, n),
            lambda x, p=population, q=q, e=epsilon, neighbors=neighbors: dpf.quantile(
                x, q, grid=p.grid, epsilon=e, neighbors=neighbors
            ),
            distance(q),
            (Peer("opendp", "quantile", {**public, "n": known, "candidates": candidates}, why=FLIPS), other),
            datasets=50, rounds=60, slow=4,
        )  # fmt: skip


def _deciles():
    for name, n, epsilon in (
        ("normal", 1000, 1.0),
        ("lognormal", 1000, 1.0),
        ("lognormal", 10_000, 1.0),
        ("hours", 1000, 1.0),
        ("real pay", 10_000, 1.0),
    ):
        if (population := named().get(name)) is None:
            continue
        lower, upper = float(population.grid.lower), float(population.grid.upper)
        public = {"qs": DECILES, "lower": lower, "upper": upper, "epsilon": epsilon}
        sized, (height, branching) = {**public, "n": n}, TREE
        yield Job(
            "nine deciles", name, n, f"{epsilon:g}, {REPLACED}", drawer(population, n),
            lambda x, p=population, e=epsilon: dpf.quantile(x, DECILES, grid=p.grid, epsilon=e),
            distance(DECILES),
            (
                Peer("opendp", "quantiles", {**sized, "candidates": min(CANDIDATES, population.grid.size)}, "split"),
                Peer("opendp", "tree_quantiles", {**sized, "leaves": LEAVES}, "tree"),
                Peer("diffprivlib", "quantiles", public),
                Peer(
                    "pydp", "quantiles",
                    {**public, "epsilon": epsilon / 2, "height": height, "branching": branching}, "half of epsilon",
                ),
            ),
            rounds=20,
        )  # fmt: skip


def jobs():
    yield from _single()
    yield from _deciles()
