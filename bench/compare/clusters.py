"""Jobs on local Dask clusters of single-threaded processes. Dask is an optional import."""

from contextlib import contextmanager
from pathlib import Path

import numpy as np

import dpfast.dask
from bench import data

CHUNK = 2**22  # 32 MB: workers end a pass at about the same time
QUIET = {
    "distributed.admin.system-monitor.interval": "60s",
    "distributed.admin.tick.interval": "1s",
    "distributed.worker.profile.enabled": False,
}


@contextmanager
def client(processes):
    """A running cluster. Its heartbeats are rare, because two clusters run at once on few cores."""
    from dask import config
    from distributed import Client, LocalCluster

    with (
        config.set(QUIET),
        LocalCluster(n_workers=processes, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as started,
    ):
        yield started


def collections(n, folder):
    """n records in delayed chunks: generated where they are read, or read from a file in the page cache."""
    from dask import array, delayed

    pieces = [(start, min(CHUNK, n - start)) for start in range(0, n, CHUNK)]
    path = Path(folder) / "pay"
    with path.open("wb") as file:
        for start, size in pieces:
            np.random.default_rng(start).lognormal(10.5, 0.6, size).tofile(file)
    return {
        "generated": list(array.random.default_rng(0).lognormal(10.5, 0.6, n, chunks=CHUNK).to_delayed()),
        "mapped": [delayed(data.mapped_chunk)(path, *piece) for piece in pieces],
    }


def release(on, mechanism, chunks):
    """A release by the workers of a client."""
    with on.as_current():
        return dpfast.dask.release(mechanism, chunks)


def total(on, chunks):
    """The sum of the chunks by Dask alone, as often as a release reads them."""
    from dask import compute, delayed

    with on.as_current():
        return [sum(compute(*(delayed(np.sum)(chunk) for chunk in chunks))) for _ in range(2)]
