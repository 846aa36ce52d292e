"""Rows, regressions, fits and M-estimates."""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

import dpfast as dpf
from bench import data
from bench.asv import bench_fits
from bench.compare.clock import Floor, Job, power


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
    for d, limit in ((100, 0.70), (1000, 0.5)):
        x = np.random.default_rng(0).normal(size=(size(10**5), d))
        floor = Floor("np.median(X, axis=0)", lambda x=x: np.median(x, axis=0), limit)
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


def m_estimates(size) -> Iterator[Job]:
    """M-estimates by the exponential mechanism, against a sort."""
    grid = dpf.Grid(*data.BOUNDS)
    psis = {
        "Huber's": dpf.psi.Huber(20_000.0),
        "logistic": dpf.psi.Logistic(20_000.0),
        "user's": dpf.psi.Function(data.user_psi),
    }
    huber = dpf.MEstimator(psis["Huber's"], grid=grid, epsilon=data.EPSILON)
    for x in map(data.pay, map(size, (10**6, 10**7))):
        floor = Floor("np.sort", partial(np.sort, x), 1.0)
        for name, psi in psis.items():
            mechanism = dpf.MEstimator(psi, grid=grid, epsilon=data.EPSILON)
            yield Job(f"{name} psi, n = {power(x.size)}", partial(mechanism, x), (floor,))
        run = partial(dpf.huber, x, 20_000.0, grid=grid, epsilon=data.EPSILON)
        yield Job(f"huber, n = {power(x.size)}", run, (Floor("m_estimate, Huber's psi", partial(huber, x)),))
    many = data.pay(size(10**6))
    mechanism = dpf.MEstimator(psis["logistic"], grid=grid, epsilon=1e-4)
    floor = Floor("np.sort", partial(np.sort, many))
    yield Job(f"logistic psi, epsilon = 0.0001, n = {power(many.size)}", partial(mechanism, many), (floor,))
    few = data.pay(size(10**4))
    floor = Floor("np.sort", partial(np.sort, few))
    yield Job(f"Huber's psi, n = {power(few.size)}", partial(huber, few), (floor,))


def block_fits(size) -> Iterator[Job]:
    """Logistic regressions of all blocks, against a loop over scikit-learn if installed, otherwise SciPy."""
    for d, limit in ((10, 0.1), (50, 0.25)):
        records = bench_fits.labels(size(10**6), d)
        blocks = len(records[0]) // 5000
        if bench_fits.has_scikit():
            floor = Floor("sklearn LogisticRegression", partial(bench_fits.scikit, records, blocks), limit)
        else:
            floor = Floor("scipy.optimize.minimize", partial(bench_fits.scipy_logistic, records, blocks), 2 * limit)
        name = f"{blocks} logistic regressions of 5,000 x {d}"
        yield Job(name, partial(bench_fits.logistic, records, blocks), (floor,))


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
    floor = Floor("np.log(x).mean(), x.mean()", lambda: (np.log(x).mean(), x.mean()), 1.0)
    yield Job(f"mle, gamma shape, n = {power(n)}", lambda: gamma(x), (floor,))
    own = lambda block: 1 / block.mean()  # noqa: E731
    few = x[: 10**5]
    runs = lambda: [own(few[i : i + 20]) for i in range(0, few.size, 20)]  # noqa: E731
    run = partial(dpf.mle, few, own, bounds=(1e-6, 1.0), epsilon=data.EPSILON)
    yield Job(f"mle by a callable, n = {power(few.size)}", run, (Floor("a call for every 20 records", runs, 20.0),))
