"""Medians, quantiles, means and histograms of long arrays, in one thread and in two."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from scipy.stats import trim_mean

import dpfast as dpf
from bench import data
from bench.compare.clock import Floor, Job, power, race
from bench.peers import installed
from dpfast.groups.sorting import sorted_by_label

SIZES = (10**4, 10**5, 10**6, 10**7, 10**8)


def median(size) -> Iterator[Job]:
    """One release of the median, against its rivals, a sum and a plain read of the same memory."""
    mechanism, polars = data.median_mechanism(), installed.polars
    sums, theirs = (6.0, 6.0, 4.0, 2.5, 1.5), (0.9, 0.5, 0.35, 0.25, None)
    for n, limit, rival in zip(map(size, SIZES), sums, theirs, strict=True):
        x = data.pay(n)
        floors = [Floor("x.sum()", x.sum, limit), Floor("plain read", partial(plain_read, x))]
        if polars is not None:
            floors.append(Floor("polars, Series.median", polars.Series(x).median, rival))
        floors.append(Floor("np.median", partial(np.median, x), 0.20 if n >= size(10**7) else None))
        others = installed.medians(x) if n == size(10**7) else {}
        yield Job(f"median, n = {power(n)}", partial(mechanism, x), tuple(floors), others)


def plain_read(x):
    """Read an array at the speed of memory, by vectors of NumPy's: the greatest word."""
    return x.view(np.int64).max()


def quantiles(size) -> Iterator[Job]:
    """Nine quantiles, against one median of the same array."""
    one, nine = data.median_mechanism(), data.deciles_mechanism()
    for n in map(size, SIZES):
        x = data.pay(n)
        floors = Floor("one median", partial(one, x), 2.5), Floor("plain read", partial(plain_read, x))
        yield Job(f"9 quantiles, n = {power(n)}", partial(nine, x), floors)
    x = data.pay(size(10**6))
    for m, seconds in ((99, 0.02), (999, 1.0)):
        mechanism = dpf.Quantiles(np.arange(1, m + 1) / (m + 1), grid=dpf.Grid(*data.BOUNDS), epsilon=data.EPSILON)
        floor = Floor(f"{seconds * 1e3:g} ms", seconds, 1.0)
        yield Job(f"joint quantiles, m = {m}, n = {power(x.size)}", partial(mechanism, x), (floor,))
    x = data.pay(size(10**7))
    options = {"bounds": data.BOUNDS, "epsilon": 1e-6, "neighbors": "add-remove"}
    run = partial(dpf.quantile, x, 0.9, **options)
    yield Job(f"add-remove quantile, epsilon = 1e-6, n = {power(x.size)}", run, (Floor("50 ms", 0.05, 1.0),))


def threads(size) -> Iterator[Job]:
    """Two threads, against one: at most 1 / 1.8, or what a plain read gains in this run, less 3 %."""
    n = size(10**8)
    x = data.pay(n)
    with ThreadPoolExecutor(1) as other:
        in_two = partial(_in_two, other, x)
        (one, two), _ = race([partial(plain_read, x), in_two], 1.0)
        limit = max(1 / 1.8, two / one / 0.97)
        for name, mechanism in (("median", data.median_mechanism()), ("9 quantiles", data.deciles_mechanism())):
            floor = Floor("workers=1", partial(mechanism, x), limit if name == "median" else None)
            yield Job(f"{name}, workers=2, n = {power(n)}", partial(mechanism, x, workers=2), (floor,))
        yield Job("(what memory allows: a plain read in 2 threads)", in_two, (Floor("1", partial(plain_read, x)),))


def _in_two(other, x):
    half = other.submit(plain_read, x[: x.size // 2])
    return max(plain_read(x[x.size // 2 :]), half.result())


def statistics(size) -> Iterator[Job]:
    """Means, variance and ranges of a long array."""
    x, public = data.pay(size(10**7)), {"bounds": data.BOUNDS, "epsilon": data.EPSILON}
    suffix = f"n = {power(x.size)}"
    mean = Floor("np.mean", lambda: np.mean(x), 2.0)
    yield Job(f"mean, {suffix}", lambda: dpf.mean(x, **public), (mean,))
    yield Job(f"variance, {suffix}", lambda: dpf.variance(x, **public), (Floor("np.var", lambda: np.var(x)),))
    trimmed = Floor("scipy.stats.trim_mean", lambda: trim_mean(x, 0.1), 0.25)
    yield Job(f"trimmed mean 10 %, {suffix}", lambda: dpf.trimmed_mean(x, 0.1, **public), (trimmed,))
    quartiles = Floor("np.percentile(x, [25, 75])", lambda: np.percentile(x, [25, 75]), 0.25)
    yield Job(f"interquartile range, {suffix}", lambda: dpf.iqr(x, **public), (quartiles,))
    inside = Floor("np.count_nonzero(inside)", lambda: np.count_nonzero((x >= 2e4) & (x <= 5e4)), 1.0)
    run = partial(dpf.count, x, within=(2e4, 5e4), epsilon=data.EPSILON)
    yield Job(f"count within, {suffix}", run, (inside,))
    options = public | {"epsilon": 1e-5}
    run = lambda: dpf.iqr(x, **options)  # noqa: E731
    yield Job(f"interquartile range, epsilon = 1e-5, {suffix}", run, (Floor("1 s", 1.0, 1.0),))


def orders(size) -> Iterator[Job]:
    """Orders that slow a selection down, against random order."""
    x, mechanism = data.pay(size(10**7)), data.median_mechanism()
    random = Floor("random order", lambda: mechanism(x), 1.5)
    for name, order in data.ORDERS.items():
        y = order(x)
        yield Job(f"median, {name}, n = {power(x.size)}", lambda y=y: mechanism(y), (random,))


def dtypes(size) -> Iterator[Job]:
    """Other dtypes, a stride and missing values, against NumPy's median of the same array."""
    x, mechanism = data.pay(size(10**7)), data.median_mechanism(step=1.0)
    for name, convert in data.TYPES.items():
        y = convert(x)
        floor = Floor("np.nanmedian", lambda y=y: np.nanmedian(y)) if "NaN" in name else None
        floor = floor or Floor("np.median", lambda y=y: np.median(y))
        yield Job(f"median, {name}, n = {power(x.size)}", lambda y=y: mechanism(y), (floor,))


def unbounded(size) -> Iterator[Job]:
    """Calls without bounds, against the same calls with bounds."""
    x = data.pay(size(10**7))
    deciles, chunks = np.arange(1, 10) / 10, dpf.Chunks.slices(x)
    calls = {
        "median": lambda **bounds: dpf.median(x, epsilon=data.EPSILON, **bounds),
        "9 quantiles": lambda **bounds: dpf.quantile(x, deciles, epsilon=data.EPSILON, **bounds),
        "median in chunks": lambda **bounds: dpf.median(chunks, epsilon=data.EPSILON, **bounds),
    }
    for name, call in calls.items():
        floor = Floor("with bounds", partial(call, bounds=data.BOUNDS), 1.15 if name == "median" else None)
        yield Job(f"{name} without bounds, n = {power(x.size)}", call, (floor,))
    mean = partial(dpf.mean, x, epsilon=data.EPSILON)
    floor = Floor("with bounds", partial(mean, bounds=data.BOUNDS))
    yield Job(f"mean, bounds='private', n = {power(x.size)}", partial(mean, bounds="private"), (floor,))


def grid(size) -> Iterator[Job]:
    """Values to codes, against the same map in NumPy."""
    x, points = data.pay(size(10**7)), dpf.Grid(*data.BOUNDS)
    floor = Floor("np.where, clip, rint, astype", lambda: data.encode_in_numpy(points, x))
    yield Job(f"Grid.encode, n = {power(x.size)}", lambda: points.encode(x), (floor,))


def histograms(size) -> Iterator[Job]:
    """Histograms of a long array and of two columns, and synthetic records."""
    n, rng = size(10**7), np.random.default_rng(1)
    x, public = data.pay(n), {"bounds": data.BOUNDS, "epsilon": data.EPSILON}
    floor = Floor("np.histogram", lambda: np.histogram(x, bins=1000, range=data.BOUNDS), 0.35)
    yield Job(f"histogram, 1000 bins, n = {power(n)}", lambda: dpf.histogram(x, 1000, **public), (floor,))
    part = x[: size(10**6)]
    smirnov = dpf.densities.KolmogorovSmirnov(grid=dpf.Grid(*data.BOUNDS), epsilon=data.EPSILON)
    floor = Floor("the histogram of the same", lambda: dpf.histogram(part, 1000, **public), 4.0)
    yield Job(f"Kolmogorov-Smirnov, n = {power(part.size)}", lambda: smirnov(part), (floor,))
    few, floor = data.pay(100), Floor("0.3 s", 0.3, 1.0)
    bins = 2**24 // (10**7 // n)
    yield Job(f"histogram, {power(bins)} bins, n = 100", lambda: dpf.histogram(few, bins, **public), (floor,))
    X, unit = rng.random((n, 2)), [(0.0, 1.0), (0.0, 1.0)]
    floor = Floor("np.histogram2d", lambda: np.histogram2d(X[:, 0], X[:, 1], bins=100, range=unit), 0.25)
    run = lambda: dpf.histogram(X, 100, bounds=unit, epsilon=data.EPSILON)  # noqa: E731
    yield Job(f"histogram, 100 x 100 bins, n = {power(n)}", run, (floor,))
    released = dpf.histogram(x, 1000, **public)
    floor = Floor("Generator.random", lambda: rng.random(n), 3.0)
    yield Job(f"synthetic records of 1000 bins, k = {power(n)}", lambda: released.sample(n), (floor,))


def groups(size) -> Iterator[Job]:
    """The medians of many groups, against a NumPy loop and, if installed, pandas."""
    mechanism, count = data.median_mechanism(), size(10**4)
    x, offsets = data.pay(100 * count), np.arange(0, 100 * count + 1, 100)
    rows = np.split(x, offsets[1:-1])
    floor = Floor("np.median of each", lambda: [np.median(row) for row in rows], 0.25)
    run = lambda: dpf.by_group(mechanism, x, offsets=offsets)  # noqa: E731
    yield Job(f"medians, {power(count)} groups of 100", run, (floor,))
    for count, limit in ((size(10**5), 0.5), (size(10**6), 0.3)):
        y, labels = data.pay(10 * count), data.labels(count, 10)
        pandas = installed.group_medians(y, labels)
        run = partial(dpf.by_group, mechanism, y, labels=labels, num_groups=count)
        name = f"medians, {power(count)} groups of 10, random labels"
        yield Job(name, run, tuple(Floor(name, run, limit) for name, run in pandas.items()))
        if limit == 0.3:
            floors = tuple(Floor(name, run, 0.17) for name, run in pandas.items())
            yield Job(f"{name}, workers=2", partial(run, workers=2), (*floors, Floor("workers=1", run)))
            yield from _sorts(labels, y, count)
    yield from _sums_of_groups(size)
    yield from _ranks_of_groups(size)
    private = data.median_mechanism(neighbors="add-remove")
    run = partial(dpf.by_group, private, y, labels=labels, num_groups=count)
    name = f"medians, {power(count)} groups of 10, random labels"
    yield Job(f"{name}, n private", run, tuple(Floor(name, run, 0.5) for name, run in pandas.items()))


def _sums_of_groups(size) -> Iterator[Job]:
    """Means, sums, variances and counts of groups, against pandas if installed."""
    count, grid = size(10**5), dpf.Grid(*data.BOUNDS)
    x, labels = data.pay(10 * count), data.labels(count, 10)
    private = {"neighbors": "add-remove"}
    cases = {
        "means": (dpf.statistics.Mean(), {}, "mean"),
        "sums": (dpf.statistics.Sum(), {}, "sum"),
        "variances": (dpf.statistics.Variance(), {}, "var"),
        "counts": (dpf.statistics.Count(), private, "count"),
        "means, n private": (dpf.statistics.Mean(), private, "mean"),
    }
    for name, (statistic, options, method) in cases.items():
        mechanism = dpf.GlobalSensitivity(statistic, grid=grid, epsilon=data.EPSILON, **options)
        run = partial(dpf.by_group, mechanism, x, labels=labels, num_groups=count)
        floors = tuple(Floor(name, run, 1.0) for name, run in installed.grouped(x, labels, method).items())
        yield Job(f"{name}, {power(count)} groups of 10, random labels", run, floors)


def _ranks_of_groups(size) -> Iterator[Job]:
    """Statistics of ranks of groups, against the medians or the quantiles of pandas, if installed."""
    count, grid, qs = size(10**4), dpf.Grid(*data.BOUNDS), [0.25, 0.5, 0.75]
    x, labels = data.pay(100 * count), data.labels(count, 100)
    public = {"grid": grid, "epsilon": data.EPSILON}
    medians, quantiles = installed.grouped(x, labels, "median"), installed.grouped(x, labels, "quantile", qs)
    cases = {
        "interquartile ranges": (dpf.InverseSensitivity(dpf.statistics.InterquartileRange(), **public), 1.5),
        "trimmed means": (dpf.InverseSensitivity(dpf.statistics.TrimmedMean(0.1), **public), 1.5),
        "Winsorized means": (dpf.InverseSensitivity(dpf.statistics.WinsorizedMean(0.1), **public), 1.5),
        "Huber's estimates": (dpf.InverseSensitivity(dpf.statistics.Huber(2e4), **public), 10.0),
        "medians with smooth noise": (dpf.SmoothSensitivity(dpf.statistics.Median(), **public), 10.0),
        "three quantiles": (dpf.Quantiles(qs, **public), 1.5),
    }
    for name, (mechanism, limit) in cases.items():
        rivals = quantiles if name == "three quantiles" else medians
        run = partial(dpf.by_group, mechanism, x, labels=labels, num_groups=count)
        floors = tuple(Floor(rival, theirs, limit) for rival, theirs in rivals.items())
        yield Job(f"{name}, {power(count)} groups of 100, random labels", run, floors)


def _sorts(labels, x, groups) -> Iterator[Job]:
    """Records in the order of their labels, in one thread and in two."""
    name, run = (
        f"records sorted by {power(groups)} labels, n = {power(x.size)}",
        partial(sorted_by_label, labels, x, 0.0),
    )
    whole = Floor("x[np.argsort(labels)]", lambda: x[np.argsort(labels)])
    read = Floor("plain read of labels and records", lambda: (labels.max(), plain_read(x)))
    yield Job(name, partial(run, groups, 1), (whole, read))
    yield Job(f"{name}, workers=2", partial(run, groups, 2), (Floor("workers=1", partial(run, groups, 1)),))


def series(size) -> Iterator[Job]:
    """Coefficients of an orthogonal series, and synthetic records."""
    x, rng = data.beta(size(10**6)), np.random.default_rng(1)
    mechanism = dpf.SeriesCoefficients(50, grid=dpf.Grid(0, 1), epsilon=data.EPSILON)
    floor = Floor("np.cos(np.pi * j * x).mean(), each j", lambda: data.cosine_means_in_numpy(x, 50), 0.2)
    yield Job(f"series of 50 terms, n = {power(x.size)}", lambda: mechanism(x), (floor,))
    density, k = dpf.density(x, bounds=(0, 1), epsilon=data.EPSILON), size(10**7)
    uniform = Floor("Generator.random", lambda: rng.random(k))
    yield Job(f"synthetic records of a series, k = {power(k)}", lambda: density.sample(k, rng), (uniform,))
