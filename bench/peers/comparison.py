"""One job of dpfast and of its peers on the same data sets: errors, their ratios and standard errors, and times."""

import itertools
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from bench.peers.environments import PEERS, Environments, PeerError
from bench.peers.workers.serve import collect

MANY = 10  # data sets from which the spread over data sets gives the standard error


@dataclass(frozen=True)
class Peer:
    """A job of a worker, with its public numbers; `note` tells variants of one peer apart, `why` explains a loss."""

    worker: str
    job: str
    public: dict
    note: str = ""
    why: str = ""

    @property
    def name(self):
        return f"{PEERS[self.worker]}, {self.note}" if self.note else PEERS[self.worker]


@dataclass(frozen=True)
class Job:
    """A row of the page for each peer.

    `draw` makes the arrays of one data set from a generator; `ours` and the jobs of the peers take them and return a
    release, whose error is `error(release, *arrays)`. With `root` the errors are squares, and the page has the roots of
    their means.
    """

    name: str
    records: str
    n: int | None
    guarantee: str
    draw: Callable
    ours: Callable
    error: Callable
    peers: tuple[Peer, ...]
    root: bool = False
    datasets: int = 40
    rounds: int = 60  # of a peer; four times as many of dpfast, if time allows
    slow: float = 1.0  # how much longer than other jobs a peer may take


@dataclass(frozen=True)
class Row:
    """What the page shows of one comparison."""

    name: str
    records: str
    n: int | None
    guarantee: str
    peer: str
    version: str
    ours: float
    theirs: float
    ratio: float
    error: float
    times: float

    def stored(self):
        return asdict(self)


def ratio(ours, theirs):
    """The ratio of the means of two arrays of errors (data sets, releases), and its standard error.

    From many data sets, or from single releases, the error is that of the ratio over data sets like these, from few
    data sets that of the releases alone.
    """
    top, bottom = ours.mean(), theirs.mean()
    found = top / bottom if bottom else math.nan
    if len(ours) >= MANY or (len(ours) > 1 and 1 in (ours.shape[1], theirs.shape[1])):
        left = ours.mean(axis=1) - found * theirs.mean(axis=1)
        return found, float(left.std(ddof=1) / math.sqrt(len(left)) / bottom)
    spreads = [_spread(errors) / errors.mean() if errors.mean() else 0.0 for errors in (ours, theirs)]
    return found, float(found * math.hypot(*spreads))


def _spread(errors):
    """The standard error of the mean over the releases of each data set."""
    sets, releases = errors.shape
    if releases < 2:
        return 0.0
    return math.sqrt(np.sum(errors.var(axis=1, ddof=1) / releases)) / sets


def quotient(value, error):
    """A ratio with its standard error in units of the last digit."""
    if math.isnan(value):
        return "-"
    places = 3 if value < 0.1 else 2
    return f"{value:.{places}f}({error * 10**places:.0f})"


def rows(job: Job, environments: Environments, *, quick: bool, seconds: float):
    """A `Row` for each peer that is there; without one, dpfast alone."""
    generator = np.random.default_rng([2026, len(job.name), job.n or 0])
    datasets = [job.draw(generator) for _ in range(min(job.datasets, 2) if quick else job.datasets)]
    rounds, seconds = (2, 0.2) if quick else (job.rounds, seconds)

    def errors(releases):
        return np.array([[job.error(r, *arrays) for r in of] for of, arrays in zip(releases, datasets, strict=True)])

    releases, our_time = collect(job.ours, datasets, rounds=4 * rounds, seconds=seconds)
    ours = errors(releases)
    found = []
    for worker, group in itertools.groupby(job.peers, key=lambda peer: peer.worker):
        if environments.python(worker) is None:
            continue
        peers = list(group)
        asked = [(peer.job, peer.public) for peer in peers]
        limits = {"rounds": rounds, "seconds": job.slow * seconds}
        version, results = environments.run(worker, asked, datasets, **limits)
        for peer, result in zip(peers, results, strict=True):
            if isinstance(result, PeerError):
                print(f"FAILED: {job.name}, {job.records}, {peer.name}: {result}", flush=True)
                continue
            releases, time = result
            theirs = errors(releases)
            relative, error = ratio(ours, theirs)
            sizes = float(ours.mean()), float(theirs.mean())
            if job.root:
                sizes = tuple(map(math.sqrt, sizes))
                relative, error = math.sqrt(relative), error / (2 * math.sqrt(relative))
            found.append(
                Row(job.name, job.records, job.n, job.guarantee, peer.name, version, *sizes, relative, error,
                    our_time / time)
            )  # fmt: skip
    if not found:
        size = float(ours.mean())
        alone = math.sqrt(size) if job.root else size
        found.append(Row(job.name, job.records, job.n, job.guarantee, "-", "", alone, *[math.nan] * 4))
    return found
