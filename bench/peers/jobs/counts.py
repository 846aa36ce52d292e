"""Counts, sums, histograms, selections and keys."""

import numpy as np

import dpfast as dpf
from bench.peers.comparison import Job, Peer
from bench.peers.records import drawer, named

TITLE = "Counts, sums, histograms and keys"
TEXT = """Errors are mean distances from the exact value of the records; of a histogram, from the count of a cell; of a
    selection, from the largest score. Histograms: negative counts are moved to 0 on both sides, and with a public
    number of records dpfast projects on counts with this sum (`consistency="simplex"`). Keys: the number of keys of a
    Zipf law (exponent 1.5, 10,000 records) that are not released, and the mean distance of the counts of those that
    are. OpenDP 0.16 states for a threshold T the delta P(1 + noise > T), but releases counts of T, too (its issue
    2922): its threshold is one higher here, so that the stated delta holds. PipelineDP takes its selection of keys from
    python-dp. diffprivlib states no neighbours for counts and histograms; their sensitivity is that of one added or
    removed record."""
ONE = "add-remove"
REPLACED = "replace-one"


def distance(released, x):
    """For counts."""
    return abs(float(released) - x.size)


def from_sum(released, x):
    return abs(float(released) - x.sum())


def from_counts(cells):
    return lambda released, x: np.abs(np.asarray(released) - np.bincount(x.astype(int), minlength=cells)).mean()


def _counts():
    for epsilon in (0.1, 1.0, 2.0):
        public = {"epsilon": epsilon}
        yield Job(
            "count", "any", 1000, f"{epsilon:g}, {ONE}",
            lambda generator: (np.ones(1000),),
            lambda x, public=public: dpf.count(x, **public),
            distance,
            (Peer("opendp", "count", public), Peer("diffprivlib", "count", public), Peer("pydp", "count", public)),
            datasets=1, rounds=20_000,
        )  # fmt: skip


def _sums():
    for name, n, epsilon in (("Likert", 1000, 1.0), ("Likert", 1000, 4.0), ("hours", 1000, 1.0), ("ages", 300, 0.1)):
        population = named()[name]
        lower, upper = population.grid.lower, population.grid.upper
        public = {"lower": lower, "upper": upper, "epsilon": epsilon, "integers": True}
        yield Job(
            "sum", name, n, f"{epsilon:g}, {REPLACED}", drawer(population, n),
            lambda x, p=population, e=epsilon: dpf.sum(x, grid=p.grid, epsilon=e),
            from_sum,
            (Peer("opendp", "total", {**public, "n": n}), Peer("diffprivlib", "total", public)),
            datasets=1, rounds=20_000,
        )  # fmt: skip
        yield Job(
            "sum", name, n, f"{epsilon:g}, {ONE}", drawer(population, n),
            lambda x, p=population, e=epsilon: dpf.sum(x, grid=p.grid, epsilon=e, neighbors="add-remove"),
            from_sum,
            (Peer("opendp", "total", {**public, "n": None}), Peer("pydp", "total", public)),
            datasets=1, rounds=20_000,
        )  # fmt: skip


def _noise():
    for epsilon, sensitivity in ((0.1, 1), (1.0, 1), (1.0, 10), (4.0, 10)):
        public = {"epsilon": epsilon, "sensitivity": sensitivity}
        mechanism = dpf.GlobalSensitivity(dpf.statistics.Sum(), grid=dpf.Grid(0, sensitivity, step=1), epsilon=epsilon)
        records = np.tile([0, sensitivity], 500)  # far from the ends of the range of sums
        yield Job(
            f"noise on an integer of sensitivity {sensitivity}", "any", None, f"{epsilon:g}",
            lambda generator: (np.zeros(1000, np.int64),),
            lambda x, m=mechanism, records=records: m.release(records, size=x.size) - records.sum(),
            lambda released, x: np.abs(released).mean(),
            tuple(Peer(worker, "integer_noise", public) for worker in ("opendp", "diffprivlib", "pydp")),
            datasets=1, rounds=100,
        )  # fmt: skip


def _histograms():
    n = 1000
    for name, cells, epsilon in (("Likert", 5, 1.0), ("hours", 101, 1.0), ("hours", 101, 0.1), ("two values", 2, 1.0)):

        def draw(generator, name=name):
            if name == "two values":
                return ((generator.random(n) < 0.3).astype(np.int64),)
            (x,) = drawer(named()[name], n)(generator)
            return ((x - named()[name].grid.lower).astype(np.int64),)

        def ours(x, cells=cells, epsilon=epsilon, neighbors=ONE):
            public = {"grid": dpf.Grid(0, cells, step=0.5), "epsilon": epsilon, "neighbors": neighbors}
            consistency = "simplex" if neighbors == REPLACED else "clip"
            return dpf.histogram(x + 0.5, cells, consistency=consistency, **public).weights

        public = {"cells": cells, "epsilon": epsilon}
        yield Job(
            f"histogram of {cells} cells", name, n, f"{epsilon:g}, {ONE}", draw, ours, from_counts(cells),
            (Peer("opendp", "histogram", {**public, "d_in": 1}), Peer("diffprivlib", "histogram", public)),
            datasets=1, rounds=2000,
        )  # fmt: skip
        yield Job(
            f"histogram of {cells} cells", name, n, f"{epsilon:g}, {REPLACED}", draw,
            lambda x, ours=ours: ours(x, neighbors=REPLACED), from_counts(cells),
            (Peer("opendp", "histogram", {**public, "d_in": 2}),),
            datasets=1, rounds=2000,
        )  # fmt: skip


def _selections():
    for size, epsilon in ((10, 1.0), (1000, 1.0)):

        def draw(generator, size=size):
            return (np.floor(20 * generator.random(size)),)

        public = {"epsilon": epsilon, "sensitivity": 1.0}
        yield Job(
            f"best of {size} scores", "uniform scores to 20", None, f"{epsilon:g}", draw,
            lambda scores, e=epsilon: dpf.select(scores, epsilon=e, selection="permute-and-flip"),
            lambda chosen, scores: scores.max() - scores[int(chosen)],
            (
                Peer("opendp", "select", public),
                Peer("diffprivlib", "select", {**public, "method": "permute-and-flip"}, "permute-and-flip"),
                Peer("diffprivlib", "select", {**public, "method": "exponential"}, "exponential"),
            ),
            datasets=40, rounds=400, slow=3,
        )  # fmt: skip


def _keys():
    n, most = 10_000, np.array(2000)  # no sample has more keys

    def draw(generator):
        return np.unique(np.minimum(generator.zipf(1.5, n), 10**6), return_inverse=True)[1].astype(np.int64), most

    def ours(keys, most, epsilon, delta):
        released = dpf.partitions(keys, epsilon=epsilon, delta=delta)
        found = np.full(most, -1.0)
        found[np.asarray(released.keys)] = released.counts
        return found

    def missed(released, keys, most):
        return np.count_nonzero(released[: keys.max() + 1] < 0)

    def from_sizes(released, keys, most):
        seen = released >= 0
        return np.abs(released - np.bincount(keys, minlength=most))[seen].mean()

    for epsilon, delta in ((1.0, 1e-6), (0.1, 1e-6), (3.0, 1e-9)):
        public = {"epsilon": epsilon, "delta": delta}
        both = Peer("pydp", "partitions", {**public, "share": 0.5}, "half for counts")
        alone = Peer("pydp", "partitions", {**public, "share": 0.0}, "keys without counts")
        for name, error, peers in (
            ("keys missed", missed, (Peer("opendp", "partitions", public), both, alone)),
            ("counts of keys", from_sizes, (Peer("opendp", "partitions", public), both)),
        ):
            yield Job(
                name, "Zipf 1.5", n, f"({epsilon:g}, {delta:g}), {ONE}", draw,
                lambda keys, most, e=epsilon, d=delta: ours(keys, most, e, d), error, peers,
                datasets=10, rounds=30,
            )  # fmt: skip


def jobs():
    yield from _counts()
    yield from _sums()
    yield from _noise()
    yield from _histograms()
    yield from _selections()
    yield from _keys()
