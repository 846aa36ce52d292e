"""Streams, and jobs in other libraries."""

import importlib
import os
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

import numpy as np

import dpfast as dpf
from bench import data
from bench.compare import clusters
from bench.compare.clock import Floor, Job, power
from bench.peers import installed

WORKERS_LIMIT = 1 / 1.7


def hosts(size) -> Iterator[Job]:
    """A median as an OpenDP measurement, if installed: at most 1.2 times the direct call, plus 1 ms."""
    if "OpenDP" not in installed.names():
        return
    n = size(10**6)
    x, mechanism, measurement = data.pay(n), data.median_mechanism(), _opendp_median(n)

    def and_a_while():
        mechanism(x)
        end = time.perf_counter() + 1e-3 / 1.2
        while time.perf_counter() < end:
            pass

    floors = Floor("the call itself", lambda: mechanism(x)), Floor("the same and 0.83 ms", and_a_while, 1.2)
    yield Job(f"median in OpenDP, n = {power(n)}", lambda: measurement(x), floors)


def _opendp_median(n):
    """The adapter's measurement of a median of n records."""
    adapter, dp = importlib.import_module("dpfast.opendp"), importlib.import_module("opendp.prelude")
    dp.enable_features("contrib", "honest-but-curious")
    space = adapter.array_domain(n), dp.change_one_distance()
    return adapter.make_measurement(*space, data.median_mechanism())


def frames(size) -> Iterator[Job]:
    """Columns of polars, if installed, against its own statistics, which use all cores."""
    polars = installed.polars
    if polars is None:
        return
    n, count = size(10**7), size(10**4)
    x, mechanism, public = polars.Series("pay", data.pay(n)), data.median_mechanism(), data.BOUNDS
    floor = Floor("Series.median", x.median)
    yield Job(f"median of a polars Series, n = {power(n)}", lambda: mechanism(x), (floor,))
    floor = Floor("Series.mean", x.mean)
    run = lambda: dpf.mean(x, bounds=public, epsilon=data.EPSILON)  # noqa: E731
    yield Job(f"mean of a polars Series, n = {power(n)}", run, (floor,))
    names = np.array([f"group {i:05d}" for i in range(count)])
    frame = polars.DataFrame({"key": names[data.labels(count, n // count)], "pay": x})
    keys, middle = names.tolist(), polars.col("pay").median()
    floor = Floor("group_by(...).agg(median)", lambda: frame.group_by("key").agg(middle))
    groups = {"labels": frame["key"], "keys": keys}
    for name, workers in (("", 1), (", workers=2", 2)):
        run = partial(dpf.by_group, mechanism, frame["pay"], **groups, workers=workers)
        yield Job(f"medians of {power(count)} groups of a polars frame{name}, n = {power(n)}", run, (floor,))


def inputs(size) -> Iterator[Job]:
    """The same numbers in other containers, against the median of a plain array of float64."""
    x, mechanism = np.rint(data.pay(size(10**7))), data.median_mechanism(step=1.0)
    floor = Floor("array of float64", partial(mechanism, x), 1.5)
    for name, column in _containers(x).items():
        yield Job(f"median, {name}, n = {power(x.size)}", partial(mechanism, column), (floor,))
    rows = data.pay(size(10**7)).reshape(-1, 10)
    means = partial(dpf.mean, bounds=data.BOUNDS, epsilon=data.EPSILON)
    floor = Floor("array of float64", partial(means, rows), 1.5)
    for name, frame in _frames(rows).items():
        yield Job(f"mean of 10 columns, {name}, n = {power(len(rows))}", partial(means, frame), (floor,))


def _containers(x):
    """Integers as other libraries hold them, with nulls and in pieces, and arrays of other kinds."""
    whole, absent = x.astype(np.int64), np.random.default_rng(1).random(x.size) < 0.01
    found = {"big-endian": x.astype(">f8"), "masked": np.ma.array(x, mask=absent)}
    if find_spec("pandas"):
        pandas = importlib.import_module("pandas")
        found["pandas Int64"] = pandas.Series(whole, dtype="Int64")
    if installed.polars is not None:
        column = installed.polars.Series(whole)
        nulls = installed.polars.Series(np.where(absent, -1, whole)).replace(-1, None)
        pieces = installed.polars.concat([column[i::8] for i in range(8)], rechunk=False)
        found |= {"polars Int64": column, "polars Int64 with nulls": nulls, "polars Int64 in 8 pieces": pieces}
    if find_spec("pyarrow"):
        found["Arrow int64"] = importlib.import_module("pyarrow").array(whole)
    return found


def _frames(rows):
    columns = {f"x{j}": np.ascontiguousarray(column) for j, column in enumerate(rows.T)}
    found = {}
    if find_spec("pandas"):
        found["pandas"] = importlib.import_module("pandas").DataFrame(columns)
    if installed.polars is not None:
        found["polars"] = installed.polars.DataFrame(columns)
    if find_spec("pyarrow"):
        found["Arrow"] = importlib.import_module("pyarrow").table(columns)
    return found


def scalers(size) -> Iterator[Job]:
    """Preprocessing of columns, if scikit-learn is installed, against its own."""
    if not find_spec("sklearn"):
        return
    theirs, ours = importlib.import_module("sklearn.preprocessing"), importlib.import_module("dpfast.sklearn")
    x = np.random.default_rng(0).normal(size=(size(10**6), 10))
    public = {"bounds": (-5.0, 5.0), "epsilon": data.EPSILON}
    for name in ("StandardScaler", "QuantileTransformer"):
        model, floor = getattr(ours, f"Private{name}")(**public), getattr(theirs, name)()
        run = partial(model.fit, x)
        yield Job(f"Private{name}, n = {power(len(x))}, d = 10", run, (Floor(name, partial(floor.fit, x), 1.5),))


def streams(size) -> Iterator[Job]:
    """Generated chunks, and chunks of files in the page cache, against the sum of each chunk and a plain read of it."""
    n = size(records_that_fit())
    mechanisms = {"median": data.median_mechanism(), "9 quantiles": data.deciles_mechanism()}
    with tempfile.TemporaryDirectory() as folder:
        for name, chunks in data.streams(n, folder).items():
            for what, mechanism in mechanisms.items():
                limit = 2.2 if (name, what) == ("memmap", "median") else None
                floors = [Floor("sum of the chunks", partial(_summed, chunks), limit)]
                if name == "memmap":
                    floors.append(Floor("two plain reads", partial(_read_twice, chunks)))
                yield Job(f"{what}, {name}, in chunks, n = {power(n)}", partial(mechanism, chunks), tuple(floors))
    with tempfile.TemporaryDirectory() as folder:
        n = size(10**8)
        chunks = data.two_values(n, folder)
        for what, mechanism in mechanisms.items():
            limit = 1.3 if what == "median" else None
            floor = Floor("random values", partial(mechanism, chunks["random"]), limit)
            run = partial(mechanism, chunks["two values"])
            yield Job(f"{what}, memmap of two values, n = {power(n)}", run, (floor,))


def _summed(chunks):
    return sum(chunk.sum() for chunk in chunks)


def _read_twice(chunks):
    return [max(chunk.view(np.int64).max() for chunk in chunks) for _ in range(2)]


def records_that_fit():
    """1e9, if a file of so many records fits into free memory as it must to be read at its speed, else 1e8."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 10**9 if free > 8e9 * 1.2 else 10**8


def dask(size) -> Iterator[Job]:
    """A Dask job on two processes against the same job on one, if Dask is installed; also without dpfast.

    The scheduler is a third process. Chunks of a file in the page cache take almost no time to read, so the overhead of
    the scheduler is visible; these rows are for information.
    """
    if find_spec("distributed") is None:
        return
    n, middle, deciles = size(2 * 10**8), ("median", data.median_mechanism()), ("9 quantiles", data.deciles_mechanism())
    jobs = {"generated": (WORKERS_LIMIT, (middle, deciles)), "mapped": (None, (middle,))}
    with tempfile.TemporaryDirectory() as folder, clusters.client(1) as one, clusters.client(2) as two:
        for name, chunks in clusters.collections(n, folder).items():
            limit, mechanisms = jobs[name]
            for what, mechanism in mechanisms:
                floor = Floor("1 process", partial(clusters.release, one, mechanism, chunks), limit)
                run = partial(clusters.release, two, mechanism, chunks)
                yield Job(f"Dask, 2 processes, {what}, {name}, n = {power(n)}", run, (floor,))
            floor = Floor("1 process", partial(clusters.total, one, chunks))
            yield Job(f"(what Dask allows: 2 sums of them, {name})", partial(clusters.total, two, chunks), (floor,))
