"""Errors of other libraries against those of dpfast, at equal bounds and epsilon."""

from functools import cache

import numpy as np

from bench import peers
from bench.location_accuracy import DATASETS, EPSILONS, QUICK, center, measure, mechanisms
from bench.populations import populations
from bench.tables import digits, size, table

CANDIDATES = 10_000  # of OpenDP's quantile, evenly spread
MOST = {"diffprivlib": 100_000}  # records; beyond, a call takes seconds
OURS = {"median": "inverse", "0.9-quantile": "inverse", "mean": "global"}
_QS = {"median": 0.5, "0.9-quantile": 0.9}


def releases(name, population, n, epsilon):
    """By peer, a function of n records."""
    public = {"n": n, "bounds": (population.grid.lower, population.grid.upper), "epsilon": epsilon}
    if name == "mean":
        return peers.means(**public)
    return peers.quantiles(_QS[name], **public, candidates=min(CANDIDATES, population.grid.size))


@cache
def errors(name, population, n, epsilon, datasets):
    """Mean distance of one release of each data set from the statistic of the data, by peer."""
    sides = {p: run for p, run in releases(name, population, n, epsilon).items() if n <= MOST.get(p, n)}
    exact = next(m for mechanism, m in mechanisms(name, population, epsilon) if mechanism == OURS[name])
    found = {peer: [] for peer in sides}
    for seed in range(datasets):
        x = population.grid.decode(population.grid.encode(population.sample(n, seed)))
        law = exact.law(x)
        own = law.value(center(law))
        for peer, run in sides.items():
            found[peer].append(abs(run(x) - own))
    return {peer: float(np.mean(of)) for peer, of in found.items()}


def section(quick):
    """Two tables: over data, and over n."""
    sizes = QUICK if quick else DATASETS
    over_data = [
        [name, population.name, *_cells(name, population, 1000, sizes[1000], EPSILONS)]
        for name in OURS
        for population in populations()
    ]
    over_sizes = [
        [name, size(n), *_cells(name, populations()[0], n, datasets, (1.0,))]
        for name in OURS
        for n, datasets in sizes.items()
    ]
    versions = ", ".join(f"{name} {number}" for name, number in peers.versions().items()) or "none installed"
    return f"""## Other libraries

{versions}. Noise of dpfast ({", ".join(f"{name}: {mechanism} sensitivity" for name, mechanism in OURS.items())}), then
the noise of the others over it: above 1 is worse than dpfast. Same data, same bounds, same stated epsilon. For OpenDP and
diffprivlib, as for dpfast, that is for one replaced record of a known number; pydp states it for one added or removed
record, does not know n, and for one replaced record spends twice as much. OpenDP chooses among {CANDIDATES:,} even
candidates, or all grid points if fewer, so its error ends at a quarter of their spacing, here 0.001 for the normal data.
One call for each data set, none of them seeded: the standard error of a ratio is about 11 % at n = 1000 and up to 30 % at
n = 1e6. A dash: not run, a call takes seconds.

n = 1000, epsilon {" / ".join(f"{epsilon:g}" for epsilon in EPSILONS)}:

{table(["statistic", "data", "dpfast", *peers.names()], over_data)}
Normal data, epsilon 1:

{table(["statistic", "n", "dpfast", *peers.names()], over_sizes)}"""


def _cells(name, population, n, datasets, epsilons):
    ours = [measure(population, n, datasets)[name, OURS[name], epsilon].noise for epsilon in epsilons]
    theirs = [errors(name, population, n, epsilon, datasets) for epsilon in epsilons]
    yield " / ".join(map(digits, ours))
    for peer in peers.names():
        ratios = [error[peer] / own if peer in error else None for error, own in zip(theirs, ours, strict=True)]
        yield " / ".join(map(digits, ratios))
