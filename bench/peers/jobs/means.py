"""Means, variances and standard deviations of numbers."""

import numpy as np
from scipy import stats

import dpfast as dpf
from bench.peers.comparison import Job, Peer
from bench.peers.jobs.counts import ONE, REPLACED
from bench.peers.records import drawer, named

TITLE = "Means and variances"
TEXT = """Errors are mean distances from the mean, the variance (divided by n) or the standard deviation of the records,
    also for records beyond the bounds. OpenDP has no mean with a private number of records: its rows are a sum around
    the middle of the bounds and a count, with three splits of epsilon. python-dp finds bounds with a part of
    epsilon if it gets none. One replaced record costs python-dp twice the epsilon of an added one, so that its pair of
    moments has half of epsilon; "moments" is the best pair at the whole epsilon, with noise on both sums together, in
    place of noise on the variance, the default without an assumed distribution."""
TOWARD_ZERO = """the noise exceeds the quantity: a variance of 1, where the bounds allow 400. python-dp subtracts the
    square of a noisy mean, which moves its releases toward 0, near the true value here."""
SHARES = (0.1, 0.2, 0.4)
# Records, n and epsilon of means for one replaced record.
MEANS = (
    ("normal", 300, 1.0),
    ("normal", 1000, 1.0),
    ("normal", 10_000, 1.0),
    ("lognormal", 1000, 0.1),
    ("lognormal", 1000, 1.0),
    ("lognormal", 10_000, 1.0),
    ("lognormal, [0, 1e7]", 1000, 1.0),
    ("lognormal, [0, 1e8]", 1000, 1.0),
    ("lognormal, [0, 1e8]", 10_000, 1.0),
    ("outliers", 1000, 1.0),
    ("ages", 1000, 1.0),
    ("Likert", 300, 1.0),
    ("Likert", 100, 4.0),
    ("real pay", 1000, 1.0),
    ("real pay", 10_000, 1.0),
)


def _peers(n, grid, epsilon):
    public = {"lower": float(grid.lower), "upper": float(grid.upper), "epsilon": epsilon}
    return public, (Peer("opendp", "mean", {**public, "n": n}), Peer("diffprivlib", "mean", public))


def from_mean(released, x):
    return abs(float(released) - x.mean())


def _means():
    for name, n, epsilon in MEANS:
        if (population := named().get(name)) is None:
            continue
        _, peers = _peers(n, population.grid, epsilon)
        yield Job(
            "mean", name, n, f"{epsilon:g}, {REPLACED}", drawer(population, n),
            lambda x, p=population, e=epsilon: dpf.mean(x, grid=p.grid, epsilon=e),
            from_mean, peers, rounds=60,
        )  # fmt: skip


def _wide():
    """The same with bounds that are found inside the given ones."""
    for name, n, method in (
        ("lognormal, [0, 1e7]", 1000, {"method": "private-bounds"}),
        ("lognormal, [0, 1e8]", 1000, {"method": "private-bounds"}),
        ("lognormal, [0, 1e8]", 10_000, {"method": "private-bounds"}),
        ("lognormal, [0, 1e8]", 1000, {"distribution": stats.lognorm(0.6, scale=np.exp(10.5))}),
        ("real pay", 10_000, {"method": "private-bounds"}),
    ):
        if (population := named().get(name)) is None:
            continue
        _, peers = _peers(n, population.grid, 1.0)
        option = "private-bounds" if "method" in method else "distribution given"
        yield Job(
            f"mean, {option}", name, n, f"1, {REPLACED}", drawer(population, n),
            lambda x, p=population, method=method: dpf.mean(x, grid=p.grid, epsilon=1.0, **method),
            from_mean, peers, rounds=60,
        )  # fmt: skip


def _private_size():
    for name, n, epsilon in (
        ("normal", 1000, 1.0),
        ("lognormal", 1000, 1.0),
        ("lognormal", 10_000, 0.1),
        ("lognormal, [0, 1e8]", 10_000, 1.0),
        ("ages", 1000, 1.0),
        ("Likert", 300, 1.0),
        ("real pay", 10_000, 1.0),
    ):
        if (population := named().get(name)) is None:
            continue
        public, _ = _peers(n, population.grid, epsilon)
        shares = tuple(
            Peer("opendp", "private_size_mean", {**public, "share": share}, f"count {share:.0%}") for share in SHARES
        )
        yield Job(
            "mean", name, n, f"{epsilon:g}, {ONE}", drawer(population, n),
            lambda x, p=population, e=epsilon: dpf.mean(x, grid=p.grid, epsilon=e, neighbors="add-remove"),
            from_mean, (Peer("pydp", "mean", public), *shares), rounds=60,
        )  # fmt: skip


def _bounds():
    """One replaced record costs twice the epsilon of an added one, so the peer has half of it."""
    for name, n, epsilon in (("lognormal", 1000, 1.0), ("lognormal", 10_000, 1.0), ("normal", 1000, 2.0)):
        population = named()[name]
        yield Job(
            "mean without bounds", name, n, f"{epsilon:g}, {REPLACED}", drawer(population, n),
            lambda x, e=epsilon: dpf.mean(x, bounds="private", epsilon=e),
            from_mean, (Peer("pydp", "unbounded_mean", {"epsilon": epsilon / 2}),), rounds=60,
        )  # fmt: skip


def _variances():
    for name, n, epsilon in (
        ("normal", 1000, 1.0),
        ("normal", 300, 0.1),
        ("lognormal", 1000, 1.0),
        ("lognormal", 10_000, 1.0),
        ("hours", 1000, 1.0),
        ("real pay", 10_000, 1.0),
    ):
        if (population := named().get(name)) is None:
            continue
        public, _ = _peers(n, population.grid, epsilon)
        # One replaced record costs twice the epsilon of an added one.
        halved = {**public, "epsilon": epsilon / 2}
        for job, exact, function, method in (
            ("variance", np.var, dpf.variance, "auto"),
            ("variance", np.var, dpf.variance, "moments"),
            ("deviation", np.std, dpf.std, "auto"),
            ("deviation", np.std, dpf.std, "moments"),
        ):
            yield Job(
                {"variance": "variance", "deviation": "standard deviation"}[job] + ", moments" * (method != "auto"),
                name, n, f"{epsilon:g}, {REPLACED}", drawer(population, n),
                lambda x, f=function, p=population, e=epsilon, m=method: f(x, grid=p.grid, epsilon=e, method=m),
                lambda released, x, exact=exact: abs(float(released) - exact(x)),
                (
                    Peer("opendp", job, {**public, "n": n}),
                    Peer("diffprivlib", job, public),
                    Peer("pydp", job, halved, "half of epsilon", TOWARD_ZERO if n == 300 else ""),
                ),
                rounds=60,
            )  # fmt: skip


def jobs():
    yield from _means()
    yield from _wide()
    yield from _private_size()
    yield from _bounds()
    yield from _variances()
