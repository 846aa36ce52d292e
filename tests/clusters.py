"""A cluster of Dask: workers that are processes, and may be ended."""

import contextlib


@contextlib.contextmanager
def two_workers(folder, start="forkserver", **options):
    """The client of a cluster of two workers. They are forked from a process that has imported Dask, for which each
    takes 2 s less of a processor than where it is spawned, as by default.
    """
    import dask
    import distributed

    with (
        dask.config.set({"distributed.worker.multiprocessing-method": start}),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            local_directory=str(folder),
            **options,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
