"""What calls on few records cost beside their records, and what new public numbers cost."""

import itertools
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

import dpfast as dpf
from bench import data
from bench.asv import bench_fits
from bench.compare.clock import Floor, Job
from bench.compare.page import shown


def _at_most(microseconds):
    """A time in which a call must be done, whatever it replaces."""
    seconds = microseconds * 1e-6
    return Floor(shown(seconds, "s"), seconds, 1.0)


def likelihoods(size) -> Iterator[Job]:
    """Maximum likelihood by sums, n = 1e4, against the sums."""
    x, own = np.random.default_rng(0).gamma(2.0, 1.0, 10**4), {"epsilon": data.EPSILON}
    shares, sums = x / (1 + x), Floor("np.log(x).mean(), x.mean()", lambda: (np.log(x).mean(), x.mean()))
    families = {
        "exponential": (x, (0.01, 10.0), 150),
        "normal": (x, [(-10.0, 10.0), (0.1, 10.0)], 150),
        "gamma": (x, [(0.1, 10.0), (0.1, 10.0)], 500),
        "beta": (shares, [(0.1, 20.0), (0.1, 20.0)], 500),
    }
    for family, (records, bounds, microseconds) in families.items():
        run = partial(dpf.mle, records, family, bounds=bounds, **own)
        yield Job(f"mle, {family}, n = 1e4", run, (_at_most(microseconds), sums))


def small_regressions(size) -> Iterator[Job]:
    """Regressions of 10,000 records, against least squares and scikit-learn."""
    X, y = bench_fits.labels(10**4, 10)
    reals = X.sum(axis=1) + np.random.default_rng(0).normal(size=len(X))
    public = {"bounds": (-4.0, 4.0), "label_bound": 20.0, "epsilon": data.EPSILON}
    floors = _at_most(400), Floor("np.linalg.lstsq", lambda: np.linalg.lstsq(X, reals, rcond=None))
    yield Job("linear regression, 1e4 x 10", partial(dpf.linear_regression, X, reals, **public), floors)
    yield Job(
        "linear regression by sums, 1e4 x 10", partial(dpf.linear_regression, X, reals, method="sums", **public), floors
    )
    floors = (_at_most(8000),)
    if bench_fits.has_scikit():
        floors += (Floor("sklearn LogisticRegression", partial(bench_fits.scikit, (X, y), 1)),)
    for name, delta in (("glm", 0.0), ("glm, delta = 1e-6", 1e-6)):
        run = partial(dpf.glm, X, y, radius=5.0, epsilon=data.EPSILON, delta=delta)
        yield Job(f"{name}, 1e4 x 10", run, floors)


def private_bounds(size) -> Iterator[Job]:
    """Bounds that are released too, and a private number of records."""
    x, rows = data.pay(10**4), np.random.default_rng(0).normal(size=(100, 3))
    few, own = x[:100], {"epsilon": data.EPSILON}
    mean = Floor("np.mean", partial(np.mean, x))
    yield Job("mean, bounds='private', n = 1e4", partial(dpf.mean, x, bounds="private", **own), (_at_most(100), mean))
    yield Job("mean of 100 rows of 3", partial(dpf.mean, rows, bounds=(-5.0, 5.0), **own), (_at_most(40),))
    run = partial(dpf.covariance, rows, radius=5.0, **own)
    yield Job("covariance of 100 rows of 3", run, (_at_most(100), Floor("np.cov", lambda: np.cov(rows, rowvar=False))))
    own |= {"bounds": data.BOUNDS, "neighbors": "add-remove"}
    for name, call in (("median", dpf.median), ("mean", dpf.mean)):
        yield Job(f"{name} of a private number of records, n = 100", partial(call, few, **own), (_at_most(8),))


def pieces(size) -> Iterator[Job]:
    """Records that are counted, and chunks of few records."""
    x, public = data.pay(10**4), {"bounds": data.BOUNDS, "epsilon": data.EPSILON}
    counted = dpf.Counted(*np.unique(np.rint(x / 1000) * 1000, return_counts=True))
    yield Job("median of counted records", partial(dpf.median, counted, **public), (_at_most(40),))
    chunks = dpf.Chunks(np.array_split(x, 1000))
    yield Job("mean of 1000 chunks of 10 records", partial(dpf.mean, chunks, **public), (_at_most(2000),))


def new_numbers(size) -> Iterator[Job]:
    """Calls whose epsilon or number of records was never seen, against the same with numbers that were."""
    x, epsilons, numbers = data.pay(10**4), _epsilons(), itertools.cycle(range(1000, 10**4))
    calls = {
        "median": partial(dpf.median, x, bounds=data.BOUNDS),
        "trimmed mean": partial(dpf.trimmed_mean, x, 0.1, bounds=data.BOUNDS),
        "mean of 3 columns": partial(dpf.mean, x[:9999].reshape(-1, 3), bounds=data.BOUNDS),
        "gamma": partial(dpf.mle, x / 1e4, "gamma", bounds=[(0.1, 20.0), (0.01, 10.0)]),
        "interval of the median": partial(dpf.interval, "median", x, bounds=data.BOUNDS),
    }
    for name, call in calls.items():
        floor = Floor("epsilon seen before", partial(call, epsilon=data.EPSILON), 3.0)
        yield Job(f"{name}, a new epsilon", lambda call=call: call(epsilon=next(epsilons)), (floor,))
    interval = partial(dpf.interval, "median", bounds=data.BOUNDS, epsilon=data.EPSILON)
    floor = Floor("n seen before", lambda: interval(x[:5000]))
    yield Job("interval of the median, a new n", lambda: interval(x[: next(numbers)]), (floor,))


def _epsilons():
    return (1 + i / 2**20 for i in itertools.count(1))


def ledgers(size) -> Iterator[Job]:
    """A charged median, against the median; a ledger of 10,000 charges read from its file."""
    x, public = data.pay(100), {"bounds": data.BOUNDS, "epsilon": 2.0**-20}
    ledger = dpf.Ledger(10.0)

    def charged():
        with ledger:
            dpf.median(x, **public)

    floor = Floor("the same without a ledger", partial(dpf.median, x, **public))
    yield Job("median under a ledger", charged, (_at_most(15), floor))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        with dpf.Ledger(10.0, path=path):
            for n in range(1, max(size(10**4), 1) + 1):
                dpf.count(x, epsilon=n / 2**40)
        read = lambda: dpf.Ledger(10.0, path=path)  # noqa: E731
        yield Job("a ledger of 1e4 charges read", read, (_at_most(60_000), Floor("its bytes", path.read_bytes)))


def laws(size) -> Iterator[Job]:
    """Logarithms of probabilities of 1,000 vectors of three quantiles."""
    x = data.pay(1000)
    law = dpf.Quantiles([0.25, 0.5, 0.75], grid=dpf.Grid(*data.BOUNDS), epsilon=data.EPSILON).law(x)
    points = law.sample(1000)
    yield Job("logpmf of 1000 vectors of 3 quantiles", partial(law.logpmf, points), (_at_most(300),))
