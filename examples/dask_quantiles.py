"""Private quantiles of distributed data: a Dask cluster of two processes on this machine.

    pip install '.[dask]'
    python examples/dask_quantiles.py --rows 100000000

Each worker generates its chunks, reads them, and sends only the states of the mechanism; records stay on the worker.
"""

from __future__ import annotations

import argparse
import time

import dask.array as da
from distributed import Client, LocalCluster

import dpfast as dpf
import dpfast.dask

CHUNK = 2**22  # rows: 32 MB


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--workers", type=int, default=2, help="processes with one thread each")
    options = parser.parse_args(arguments)
    mechanism = dpf.Quantiles([0.25, 0.5, 0.75], grid=dpf.Grid(0, 1_000_000), epsilon=options.epsilon)
    pay = da.random.default_rng(1).lognormal(10.8, 0.55, options.rows, chunks=CHUNK)
    with (
        LocalCluster(n_workers=options.workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        start = time.perf_counter()
        quartiles = dpf.dask.release(mechanism, pay)
        seconds = time.perf_counter() - start
    print("quartiles:", ", ".join(f"{value:,.2f}" for value in quartiles))
    print(f"{options.rows:,} rows in {seconds:.1f} s; {mechanism.privacy}")


if __name__ == "__main__":
    main()
