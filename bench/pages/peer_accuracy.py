"""Errors of other libraries relative to those of dpfast, at equal bounds and epsilon."""

from functools import cache

import numpy as np

from bench import peers
from bench.pages.location_accuracy import DATASETS, EPSILONS, QUICK, center, measure, mechanisms, ratio
from bench.pages.populations import populations
from bench.pages.tables import digits, paragraph, size, table

CANDIDATES = 10_000  # of OpenDP's quantile, evenly spread
FEW = 100  # for a quick look
MOST = {"diffprivlib": 100_000}  # records; beyond, a call takes seconds
OURS = {"median": "inverse", "0.9-quantile": "inverse", "mean": "global"}
_QS = {"median": 0.5, "0.9-quantile": 0.9}


def _releases(name, population, n, epsilon, candidates):
    """Functions of n records, by peer."""
    public = {"n": n, "bounds": (population.grid.lower, population.grid.upper), "epsilon": epsilon}
    if name == "mean":
        return peers.means(**public)
    return peers.quantiles(_QS[name], **public, candidates=min(candidates, population.grid.size))


@cache
def errors(name, population, n, epsilon, datasets, candidates):
    """Mean distance of one release of each data set from the statistic of the data, by peer."""
    sides = {p: run for p, run in _releases(name, population, n, epsilon, candidates).items() if n <= MOST.get(p, n)}
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
    sizes, candidates = (QUICK, FEW) if quick else (DATASETS, CANDIDATES)
    over_data = [
        [name, population.name, *_cells(name, population, 1000, sizes[1000], EPSILONS, candidates)]
        for name in OURS
        for population in populations()
    ]
    over_sizes = [
        [name, size(n), *_cells(name, populations()[0], n, datasets, (1.0,), candidates)]
        for name in OURS
        for n, datasets in sizes.items()
    ]
    middle = {peer: _typical(peer, sizes[1000], candidates) for peer in peers.names()}
    summary = "; ".join(f"{peer} {', '.join(of)}" for peer, of in middle.items())
    floors = ", ".join(f"{p.name} {digits(_spacing(p, candidates) / 4)}" for p in populations())
    versions = ", ".join(f"{name} {number}" for name, number in peers.versions().items()) or "none installed"
    ours = ", ".join(f"{name} by {mechanism} sensitivity" for name, mechanism in OURS.items())
    text = f"""Noise of dpfast ({ours}), then the noise of the other libraries relative to it: above 1 is worse than
        dpfast. All use the same data, bounds and stated epsilon. For OpenDP and diffprivlib, as for dpfast, epsilon is
        for one replaced record and a public number of records; pydp states it for one added or removed record, does not
        use n, and spends twice as much for one replaced record. OpenDP chooses among {candidates:,} evenly spaced
        candidates, or all grid points if there are fewer, so its error levels off at a quarter of their spacing
        ({floors}). One unseeded call per data set: the standard error of a ratio is about 11 % at n = 1000 and up to 30
        % at n = 1e6. A dash: not run, because a call takes seconds. Versions: {versions}."""
    typical = f"""The next table is for n = 1000 and epsilon {" / ".join(f"{epsilon:g}" for epsilon in EPSILONS)}.
        Medians over data at epsilon 1: {summary or "none"}."""
    return "\n".join(
        [
            "## Other libraries",
            "",
            paragraph(text),
            paragraph(typical),
            table(["statistic", "data", "dpfast", *peers.names()], over_data),
            "Normal data, epsilon 1:",
            "",
            table(["statistic", "n", "dpfast", *peers.names()], over_sizes),
        ]
    )


def _cells(name, population, n, datasets, epsilons, candidates):
    ours = [_ours(name, population, n, epsilon, datasets) for epsilon in epsilons]
    theirs = [errors(name, population, n, epsilon, datasets, candidates) for epsilon in epsilons]
    yield " / ".join(map(digits, ours))
    for peer in peers.names():
        ratios = [ratio(error[peer], own) if peer in error else None for error, own in zip(theirs, ours, strict=True)]
        yield " / ".join(map(digits, ratios))


def _spacing(population, candidates):
    return (population.grid.upper - population.grid.lower) / (min(candidates, population.grid.size) - 1)


def _ours(name, population, n, epsilon, datasets):
    return measure(population, n, datasets)[name, OURS[name], epsilon].noise


def _typical(peer, datasets, candidates):
    """The median over data of the ratio at n = 1000 and epsilon 1, for each statistic."""
    for name in OURS:
        settings = [(name, population, 1000, 1.0, datasets) for population in populations()]
        yield f"{name} {digits(np.median([ratio(errors(*s, candidates)[peer], _ours(*s)) for s in settings]))}"
