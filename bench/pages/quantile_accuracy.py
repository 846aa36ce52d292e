"""Rank errors of many quantiles: released jointly, or one at a time under shares of epsilon."""

import numpy as np

import dpfast as dpf
from bench.pages.tables import digits, paragraph, table
from bench.peers import installed

EPSILON = 1.0
GRID = dpf.Grid(0, 1e6)
# Numbers of quantiles, and the number of releases of each.
RUNS = {1: 300, 2: 300, 9: 60, 33: 20, 63: 8, 99: 6}
MOST_ALONE = 9  # peers take seconds to release more


def rank_error(ordered, ranks, values):
    """Mean distance in ranks; 0 where the released value covers the rank."""
    below, not_above = np.searchsorted(ordered, values), np.searchsorted(ordered, values, side="right")
    return np.mean(np.maximum(0, np.maximum(below + 1 - ranks, ranks - not_above)))


def errors(x, m, runs):
    """Mean rank error of m quantiles at m equal steps, by library; one at a time each has epsilon / m."""
    qs = np.arange(1, m + 1) / (m + 1)
    ordered, ranks, rng = np.sort(x), np.maximum(1, np.ceil(qs * x.size)), np.random.default_rng(2)
    share = {"bounds": (GRID.lower, GRID.upper), "epsilon": EPSILON / m}
    alone = [dpf.Quantiles([q], grid=GRID, epsilon=share["epsilon"]).release(x, size=runs, rng=rng) for q in qs]
    releases = {
        "joint": dpf.Quantiles(qs, grid=GRID, epsilon=EPSILON).release(x, size=runs, rng=rng),
        "one at a time": np.concatenate(alone, axis=1),
    }
    if m <= MOST_ALONE:
        each = [installed.quantiles(q, n=x.size, candidates=10_000, **share) for q in qs]
        for peer in each[0]:
            releases[peer] = np.array([[release[peer](x) for release in each] for _ in range(min(runs, 30))])
    return {name: np.mean([rank_error(ordered, ranks, values) for values in of]) for name, of in releases.items()}


def section(quick):
    """The table, for lognormal data."""
    n = 1000 if quick else 10_000
    x = np.random.default_rng(1).lognormal(10, 1, n)
    measured = {m: errors(x, m, 2 if quick else runs) for m, runs in RUNS.items() if not quick or m <= 2}
    rows = [
        [m, *(digits(error.get(name)) for name in columns), digits(error["one at a time"] / error["joint"])]
        for m, error in measured.items()
        if (columns := ["joint", "one at a time", *installed.names()])
    ]
    text = f"""Mean rank error of m quantiles of {n:,} lognormal records in [0, 1,000,000], with epsilon {EPSILON:g} for
        all of them together: released jointly by `dpf.Quantiles`, then one at a time with epsilon / m each, by dpfast
        and by other libraries (a dash: not run). *gain* is the error of dpfast one at a time over its joint error."""
    headings = ["m", "joint", "one at a time", *installed.names(), "gain"]
    return "\n".join(["## Many quantiles at once", "", paragraph(text), table(headings, rows)])
