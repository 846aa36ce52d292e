"""Errors of other libraries relative to those of dpfast, at equal bounds and epsilon."""

from functools import cache

import numpy as np

import dpfast as dpf
from bench.pages.location_accuracy import DATASETS, EPSILONS, QUICK, center, measure, mechanisms, ratio
from bench.pages.populations import populations
from bench.pages.tables import digits, paragraph, size, table
from bench.peers import installed
from dpfast.statistics import Quantile

CANDIDATES = 10_000  # of OpenDP's quantile, evenly spread
FEW = 100  # for a quick look
TIED_DATASETS, TIED_RELEASES = 60, 50
MOST = {"diffprivlib": 100_000}  # records; beyond, a call takes seconds
OURS = {"median": "inverse", "0.9-quantile": "inverse", "mean": "global"}
_QS = {"median": 0.5, "0.9-quantile": 0.9}


def _releases(name, population, n, epsilon, candidates):
    """Functions of n records, by peer."""
    public = {"n": n, "bounds": (population.grid.lower, population.grid.upper), "epsilon": epsilon}
    if name == "mean":
        return installed.means(**public)
    return installed.quantiles(_QS[name], **public, candidates=min(candidates, population.grid.size))


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
    middle = {peer: _typical(peer, sizes[1000], candidates) for peer in installed.names()}
    summary = "; ".join(f"{peer} {', '.join(of)}" for peer, of in middle.items())
    floors = ", ".join(f"{p.name} {digits(_spacing(p, candidates) / 4)}" for p in populations())
    versions = ", ".join(f"{name} {number}" for name, number in installed.versions().items()) or "none installed"
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
            table(["statistic", "data", "dpfast", *installed.names()], over_data),
            "Normal data, epsilon 1:",
            "",
            table(["statistic", "n", "dpfast", *installed.names()], over_sizes),
            *_ties(3 if quick else TIED_DATASETS),
        ]
    )


def _ties(datasets):
    """A table of quantiles of ages in whole years, with either kind of neighbours."""
    if installed.opendp is None:
        return
    n, [ages] = 1000, [population for population in populations() if population.name == "ages"]
    rows = [
        [
            f"{q}-quantile",
            neighbors,
            f"{epsilon:g}",
            *map(digits, _tied_errors(ages, n, q, neighbors, epsilon, datasets)),
        ]
        for q in (0.5, 0.9)
        for neighbors in ("replace-one", "add-remove")
        for epsilon in (0.1, 0.3, 1.0)
    ]
    text = f"""Ties: mean noise of quantiles of {n} ages in whole years, all whole years in [0, 120] being candidates,
        over {datasets} data sets: dpfast by default, which is permute-and-flip on so few points, and by the exponential
        mechanism, from their exact laws; OpenDP, permute-and-flip with another score, by {TIED_RELEASES} releases of
        each data set. On a single data set either library may have less noise: OpenDP where the ages next to the
        quantile are more frequent than the quantile itself."""
    yield paragraph(text)
    yield table(["statistic", "neighbors", "epsilon", "dpfast", "exponential", "OpenDP", "OpenDP / dpfast"], rows)


def _tied_errors(population, n, q, neighbors, epsilon, datasets):
    """The mean noise of both selections of dpfast and of OpenDP, and the last relative to the first."""
    statistic, grid = Quantile(q), population.grid
    own = [
        dpf.InverseSensitivity(statistic, grid=grid, epsilon=epsilon, neighbors=neighbors, **selection)
        for selection in ({}, {"selection": "exponential"})
    ]
    codes = np.arange(grid.size)
    public_n = n if neighbors == "replace-one" else None
    theirs = installed.opendp_quantile(q, public_n, grid.decode(codes).tolist(), epsilon)
    found = []
    for seed in range(datasets):
        x = population.sample(n, seed).astype(float)
        distances = np.abs(grid.decode(codes) - np.sort(x)[statistic.rank(n) - 1])
        by_law = [mechanism.law(x).pmf(codes) @ distances for mechanism in own]
        found.append([*by_law, np.mean([distances[int(theirs(x))] for _ in range(TIED_RELEASES)])])
    flips, exponential, others = np.mean(found, axis=0)
    return flips, exponential, others, ratio(others, flips)


def _cells(name, population, n, datasets, epsilons, candidates):
    ours = [_ours(name, population, n, epsilon, datasets) for epsilon in epsilons]
    theirs = [errors(name, population, n, epsilon, datasets, candidates) for epsilon in epsilons]
    yield " / ".join(map(digits, ours))
    for peer in installed.names():
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
