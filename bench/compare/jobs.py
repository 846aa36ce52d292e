"""The jobs of ``bench.compare`` and their floors, in groups."""

import math
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec

import numpy as np
from numpy.random import PCG64, Generator
from scipy.stats import trim_mean

import dpfast as dpf
from bench import data
from bench.asv import bench_fits
from bench.asv.bench_descent import numpy_descent
from bench.asv.bench_hosts import opendp_median
from bench.compare import clusters
from bench.compare.clock import Floor, Job
from bench.peers import installed
from dpfast import local
from dpfast.random import SecureBitGenerator

WORKERS_LIMIT = 1 / 1.7


def power(n):
    """10000000 as 1e7."""
    return f"{n:.0e}".replace("e+0", "e")


def median(size) -> Iterator[Job]:
    """One release of the median of a long array."""
    mechanism = data.median_mechanism()
    for n in (size(10**7), size(10**8)):
        x = data.pay(n)
        floors = Floor("np.median", lambda x=x: np.median(x), 0.20), Floor("x.sum()", x.sum, 3.0)
        others = installed.medians(x) if n <= 10**7 else {}
        yield Job(f"median, n = {power(n)}", lambda x=x: mechanism(x), floors, others)
        if n == size(10**8):
            one = Floor("workers=1", lambda x=x: mechanism(x), WORKERS_LIMIT)
            yield Job(f"median, workers=2, n = {power(n)}", lambda x=x: mechanism(x, workers=2), (one,))
            with ThreadPoolExecutor(1) as other:
                sum_in_two = partial(_sum_in_two, other, x)
                yield Job("(what memory allows: x.sum() in 2 threads)", sum_in_two, (Floor("x.sum()", x.sum),))


def _sum_in_two(other, x):
    half = other.submit(x[: x.size // 2].sum)
    return x[x.size // 2 :].sum() + half.result()


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


def call(size) -> Iterator[Job]:
    """One small call: the overhead of Python and of the checks."""
    x, mechanism = data.pay(100), data.median_mechanism()
    floor = Floor("np.median", lambda: np.median(x), 1.0)
    yield Job("one call, n = 100, mechanism built", lambda: mechanism(x), (floor,), installed.medians(x))
    floor = Floor("np.median", lambda: np.median(x))
    release = lambda: dpf.median(x, bounds=data.BOUNDS, epsilon=data.EPSILON)  # noqa: E731
    yield Job("one call, n = 100, dpf.median(...)", release, (floor,))


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


def noise(size) -> Iterator[Job]:
    """Exact noise of the secure generator, against NumPy's noise, which is neither exact nor secure."""
    n, rng = size(10**6), np.random.default_rng(1)
    for scale, name in ((1.0, "1"), (1e3, "1e3"), (2.0**20, "2**20")):
        floor = Floor("Generator.laplace", lambda s=scale: rng.laplace(0.0, s, n), 0.75)
        others = installed.laplaces(scale, 1000) if scale == 1e3 else {}
        run = lambda s=scale: dpf.noise.laplace(s, n)  # noqa: E731
        yield Job(f"rounded Laplace, scale {name}, {power(n)} draws", run, (floor,), others)
    for sigma, name in ((1.0, "1"), (1e3, "1e3"), (2.0**30, "2**30")):
        floor = Floor("Generator.standard_normal", lambda: rng.standard_normal(n), 1.0)
        run = lambda s=sigma: dpf.noise.gaussian(s, n)  # noqa: E731
        yield Job(f"rounded Gaussian, sigma {name}, {power(n)} draws", run, (floor,))
    for name, draw in (("box", dpf.noise.box), ("ball", dpf.noise.ball)):
        floor = Floor("Generator.standard_normal", lambda: rng.standard_normal((n // 100, 100)))
        run = lambda draw=draw: draw(np.full(100, 1e3), n // 100)  # noqa: E731
        yield Job(f"noise by the norm of a {name}, scale 1e3, {power(n)} coordinates, d = 100", run, (floor,))
    scale, p = 1e3, -math.expm1(-1e-3)
    floor = Floor("difference of 2 Generator.geometric", lambda: rng.geometric(p, n) - rng.geometric(p, n))
    run = lambda: dpf.noise.discrete_laplace(scale, n)  # noqa: E731
    yield Job(f"discrete Laplace, scale 1e3, {power(n)} draws", run, (floor,))
    floor = Floor("Generator.geometric", lambda: rng.geometric(p, n))
    yield Job(f"geometric, scale 1e3, {power(n)} draws", lambda: dpf.noise.geometric(scale, n), (floor,))


def random(size) -> Iterator[Job]:
    """The secure generator against PCG64, which is not secure."""
    secure, pcg = SecureBitGenerator(), PCG64(1)
    ours, theirs = Generator(secure), Generator(pcg)
    for n in (size(10**6), size(10**7)):
        floor = Floor("PCG64.random_raw", lambda n=n: pcg.random_raw(n), 1.0)
        yield Job(f"secure words, n = {power(n)}", lambda n=n: secure.random_raw(n), (floor,))
        floor = Floor("Generator(PCG64).random", lambda n=n: theirs.random(n), 1.5)
        yield Job(f"secure Generator.random, n = {power(n)}", lambda n=n: ours.random(n), (floor,))


def grid(size) -> Iterator[Job]:
    """Values to codes, against the same map in NumPy."""
    x, points = data.pay(size(10**7)), dpf.Grid(*data.BOUNDS)
    floor = Floor("np.where, clip, rint, astype", lambda: data.encode_in_numpy(points, x))
    yield Job(f"Grid.encode, n = {power(x.size)}", lambda: points.encode(x), (floor,))


def local_vectors(size) -> Iterator[Job]:
    """Vectors of a thousand numbers randomised, and packed reports summed."""
    n = size(1000)
    lines = data.local_randomizers(n, 1000)
    bits = Floor("rng.random((n, d)) < p", lines["numpy bits"], 1.0)
    normals = Floor("rng.standard_normal((n, d))", lines["numpy normals"], 1.3)
    jobs = (("Hypercube", "majority", bits), ("Hypercube", "subset", bits), ("L2Ball", "halfspace", normals))
    for name, method, floor in jobs:
        yield Job(f"{name}, {method}, n = d = 1000", lines[method], (floor,))
    yield Job("L2Ball, halfspace, one bit, n = d = 1000", lines["sign"], (normals,))
    normals = Floor(normals.name, normals.run)
    yield Job("L2Ball, privunit, n = d = 1000", lines["privunit"], (normals,))
    mechanism = local.Hypercube(1000, data.EPSILON, method="majority")
    reports = mechanism.randomize(np.zeros((size(10**5), 1000), np.float32))
    floor = Floor("np.unpackbits(reports).sum(0)", lambda: data.unpacked_sums(reports), 0.2)
    yield Job(f"Hypercube sums, {power(size(10**5))} reports", lambda: mechanism.aggregate(reports), (floor,))


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


def rows(size) -> Iterator[Job]:
    """Means of the columns, in a box and in a ball."""
    x = np.random.default_rng(0).normal(size=(size(10**6), 20))
    floor = Floor("X.mean(axis=0)", lambda: x.mean(axis=0), 1.5)
    public = {"box": {"bounds": (-5.0, 5.0)}, "ball": {"radius": 5.0, "delta": 1e-6}}
    for name, options in public.items():
        options["epsilon"] = data.EPSILON
        yield Job(f"mean in a {name}, n = {power(len(x))}, d = 20", lambda o=options: dpf.mean(x, **o), (floor,))


def robust(size) -> Iterator[Job]:
    """A location estimate in d dimensions, against the medians of the columns."""
    mechanism = dpf.NestedBoxes(grid=dpf.Grid(-1000, 1000), epsilon=data.EPSILON)
    for d in (100, 1000):
        x = np.random.default_rng(0).normal(size=(size(10**5), d))
        floor = Floor("np.median(X, axis=0)", lambda x=x: np.median(x, axis=0), 0.70)
        yield Job(f"robust_mean, n = {power(len(x))}, d = {d}", lambda x=x: mechanism(x), (floor,))


def covariances(size) -> Iterator[Job]:
    """A covariance matrix of rows, against NumPy's and against the product alone."""
    for n, d in ((size(10**6), 20), (size(10**5), 100)):
        x = np.random.default_rng(0).normal(size=(n, d))
        mechanism = dpf.Covariance(domain=dpf.domains.Ball(2 * math.sqrt(d)), epsilon=data.EPSILON, delta=1e-6)
        floors = Floor("np.cov", lambda x=x: np.cov(x, rowvar=False), 1.0), Floor("X.T @ X", lambda x=x: x.T @ x)
        yield Job(f"covariance, n = {power(n)}, d = {d}", lambda x=x, mechanism=mechanism: mechanism(x), floors)


def linear_regressions(size) -> Iterator[Job]:
    """A linear regression with its errors, against NumPy's least squares and against the product alone."""
    for n, d in ((size(10**6), 20), (size(10**5), 100)):
        x = np.random.default_rng(0).normal(size=(n, d))
        y = x.sum(axis=1)
        public = {"radius": 2 * math.sqrt(d), "label_bound": 3 * math.sqrt(d), "epsilon": data.EPSILON, "delta": 1e-6}
        floors = (
            Floor("np.linalg.lstsq", lambda x=x, y=y: np.linalg.lstsq(x, y, rcond=None), 1.0),
            Floor("X.T @ X", lambda x=x: x.T @ x, 2.0 if d == 20 else None),
        )
        yield Job(
            f"linear regression, n = {power(n)}, d = {d}",
            lambda x=x, y=y, public=public: dpf.linear_regression(x, y, **public),
            floors,
        )


def selection(size) -> Iterator[Job]:
    """One exact selection from many candidates, and from a few, against Gumbel noise in NumPy, which is not exact."""
    rng = np.random.default_rng(1)
    for n, limit in ((size(10**6), 2.0), (10, None)):
        scores = rng.normal(0.0, 10.0, n)
        floor = Floor(
            "(scores + rng.gumbel(size=n)).argmax()", lambda s=scores: (s + rng.gumbel(size=s.size)).argmax(), limit
        )
        for name, method in (("select", "exponential"), ("permute-and-flip", "permute-and-flip")):
            run = partial(dpf.select, scores, epsilon=data.EPSILON, method=method)
            yield Job(f"{name}, {n:,} candidates", run, (floor,))


def m_estimates(size) -> Iterator[Job]:
    """M-estimates by the exponential mechanism, against a sort."""
    x, grid = data.pay(size(10**6)), dpf.Grid(*data.BOUNDS)
    mechanism = dpf.MEstimator(dpf.psi.Huber(20_000.0), grid=grid, epsilon=data.EPSILON)
    floor = Floor("np.sort", lambda: np.sort(x), 1.5)
    yield Job(f"Huber's M-estimate, n = {power(x.size)}", lambda: mechanism(x), (floor,))


def block_fits(size) -> Iterator[Job]:
    """Logistic regressions of all blocks, against a loop over scikit-learn if installed, otherwise SciPy."""
    records = bench_fits.labels(size(10**6), 10)
    blocks = len(records[0]) // 5000
    if bench_fits.has_scikit():
        floor = Floor("sklearn LogisticRegression", lambda: bench_fits.scikit(records, blocks), 0.1)
    else:
        floor = Floor("scipy.optimize.minimize", lambda: bench_fits.scipy_logistic(records, blocks), 0.2)
    name = f"{blocks} logistic regressions of 5,000 x 10"
    yield Job(name, lambda: bench_fits.logistic(records, blocks), (floor,))


def estimates(size) -> Iterator[Job]:
    """Private maximum likelihood, against the sums that non-private estimators need."""
    n, rng = size(10**7), np.random.default_rng(0)
    x = rng.gamma(2.0, 1.0, n)
    rate = dpf.SampleAndAggregate("exponential", bounds=(0.2, 5), epsilon=1.0)
    floor = Floor("x.sum()", x.sum, 2.0)
    yield Job(f"mle, exponential rate, n = {power(n)}", lambda: rate(x), (floor,))
    normal = dpf.SampleAndAggregate("normal", bounds={"mean": (-10, 10), "sd": (0.1, 5)}, epsilon=1.0)
    floor = Floor("x.mean(), x.std()", lambda: (x.mean(), x.std()), 2.0)
    yield Job(f"mle, normal mean and sd, n = {power(n)}", lambda: normal(x), (floor,))
    gamma = dpf.SampleAndAggregate("gamma", bounds={"shape": (0.1, 10)}, epsilon=1.0)
    floor = Floor("np.log(x).mean(), x.mean(), twice", lambda: [(np.log(x).mean(), x.mean()) for _ in range(2)], 1.0)
    yield Job(f"mle, gamma shape, n = {power(n)}", lambda: gamma(x), (floor,))


def histograms(size) -> Iterator[Job]:
    """Histograms of a long array and of two columns, and synthetic records."""
    n, rng = size(10**7), np.random.default_rng(1)
    x, public = data.pay(n), {"bounds": data.BOUNDS, "epsilon": data.EPSILON}
    floor = Floor("np.histogram", lambda: np.histogram(x, bins=1000, range=data.BOUNDS), 0.35)
    yield Job(f"histogram, 1000 bins, n = {power(n)}", lambda: dpf.histogram(x, 1000, **public), (floor,))
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
    count = size(10**5)
    y, labels = data.pay(10 * count), data.labels(count, 10)
    floors = tuple(Floor(name, run, 0.5) for name, run in installed.group_medians(y, labels).items())
    for name, m in {"": mechanism, ", n private": data.median_mechanism(neighbors="add-remove")}.items():
        run = lambda m=m: dpf.by_group(m, y, labels=labels, num_groups=count)  # noqa: E731
        yield Job(f"medians, {power(count)} groups of 10{name}", run, floors)


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
    run = lambda: dpf.by_group(mechanism, frame["pay"], labels=frame["key"], keys=keys)  # noqa: E731
    yield Job(f"medians of {power(count)} groups of a polars frame, n = {power(n)}", run, (floor,))


def series(size) -> Iterator[Job]:
    """Coefficients of an orthogonal series, and synthetic records."""
    x, rng = data.beta(size(10**6)), np.random.default_rng(1)
    mechanism = dpf.SeriesCoefficients(50, grid=dpf.Grid(0, 1), epsilon=data.EPSILON)
    floor = Floor("np.cos(np.pi * j * x).mean(), each j", lambda: data.cosine_means_in_numpy(x, 50), 0.2)
    yield Job(f"series of 50 terms, n = {power(x.size)}", lambda: mechanism(x), (floor,))
    density, k = dpf.density(x, bounds=(0, 1), epsilon=data.EPSILON), size(10**7)
    uniform = Floor("Generator.random", lambda: rng.random(k))
    yield Job(f"synthetic records of a series, k = {power(k)}", lambda: density.sample(k, rng), (uniform,))


def local_privacy(size) -> Iterator[Job]:
    """Local randomisers, k = 100, against NumPy code that is neither exact nor secure."""
    x, few = data.categories(size(10**6)), data.categories(size(10**5))
    surveys = {m: local.Categorical(data.CATEGORIES, data.EPSILON, m) for m in ("k-rr", "oue", "olh")}
    floor = Floor("where(random < p, x, (x + integers) % k)", lambda: data.respond_in_numpy(x), 1.0)
    yield Job(f"k-ary randomised response, {power(x.size)}", lambda: surveys["k-rr"].randomize(x), (floor,))
    floor = Floor("random((n, k)) < q", lambda: data.encode_unary_in_numpy(few), 0.5)
    yield Job(f"unary encoding (OUE), {power(few.size)}", lambda: surveys["oue"].randomize(few), (floor,))
    reports = surveys["olh"].randomize(few)
    floor = Floor("NumPy hash and count, each category", lambda: data.count_hashes_in_numpy(reports), 0.5)
    yield Job(f"count of hashed reports, {power(few.size)}", lambda: surveys["olh"].aggregate(reports), (floor,))


def descents(size) -> Iterator[Job]:
    """Local medians by private gradient descent: one long run, and many runs side by side."""
    x, public = np.random.default_rng(0).lognormal(size=size(10**6)), {"bounds": (0.0, 4.0), "epsilon": data.EPSILON}
    floor = Floor("x.size steps of 20 ns", partial(time.sleep, 20e-9 * x.size), 1.0)
    yield Job(f"local median, n = {power(x.size)}", lambda: dpf.local.median(x, **public), (floor,))
    y = x[: size(10**4)]
    floor = Floor("NumPy, a step of all runs at a time", lambda: numpy_descent(y, 400), 0.5)
    yield Job(f"local median, 400 runs, n = {power(y.size)}", lambda: dpf.local.median(y, **public, size=400), (floor,))


def regressions(size) -> Iterator[Job]:
    """Logistic regression by private gradient descent, one step per person."""
    X, y = data.regression(size(10**5), 20)
    rng, public = np.random.default_rng(1), {"epsilon": data.EPSILON}
    floor = Floor("2 products and d standard normals a row", lambda: data.products_and_normals_in_numpy(X, rng), 2.0)
    for norm in ("l2", "linf"):
        run = partial(local.glm, X, y, norm=norm, **public)
        yield Job(f"local glm, {norm}, n = {power(len(X))}, d = 20", run, (floor,))


def hosts(size) -> Iterator[Job]:
    """A median as an OpenDP measurement, if installed: at most 1.2 times the direct call, plus 1 ms."""
    if "OpenDP" not in installed.names():
        return
    n = size(10**6)
    x, mechanism, measurement = data.pay(n), data.median_mechanism(), opendp_median(n)

    def and_a_while():
        mechanism(x)
        end = time.perf_counter() + 1e-3 / 1.2
        while time.perf_counter() < end:
            pass

    floors = Floor("the call itself", lambda: mechanism(x)), Floor("the same and 0.83 ms", and_a_while, 1.2)
    yield Job(f"median in OpenDP, n = {power(n)}", lambda: measurement(x), floors)


def streams(size) -> Iterator[Job]:
    """Generated chunks, and chunks of a file in the page cache, against the sum of each chunk."""
    n = size(10**8)
    with tempfile.TemporaryDirectory() as folder:
        for name, chunks in data.streams(n, folder).items():
            floor = Floor("sum of the chunks", lambda c=chunks: sum(chunk.sum() for chunk in c), 3.0)
            for what, mechanism in (("median", data.median_mechanism()), ("9 quantiles", data.deciles_mechanism())):
                run = partial(mechanism, chunks)
                yield Job(f"{what} of {name} chunks, n = {power(n)}", run, (floor,))


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


GROUPS = {
    "median": median,
    "statistics": statistics,
    "orders": orders,
    "dtypes": dtypes,
    "call": call,
    "unbounded": unbounded,
    "noise": noise,
    "random": random,
    "grid": grid,
    "hosts": hosts,
    "rows": rows,
    "robust": robust,
    "covariances": covariances,
    "linear-regressions": linear_regressions,
    "local-vectors": local_vectors,
    "selection": selection,
    "m-estimates": m_estimates,
    "block-fits": block_fits,
    "estimates": estimates,
    "histograms": histograms,
    "groups": groups,
    "frames": frames,
    "series": series,
    "local": local_privacy,
    "descents": descents,
    "regressions": regressions,
    "streams": streams,
    "dask": dask,
}
