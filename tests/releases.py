"""All public functions, mechanisms and randomisers that release, with small budgets, for tests of ledgers."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.random import PCG64

import dpfast as dpf
from dpfast import Grid, laws, local, noise, robust
from tests.central import central
from tests.reference.statistics import FUNCTIONS

GRID = Grid(0, 100, step=1)
X = np.arange(100.0)
MEDIAN = dpf.InverseSensitivity(dpf.statistics.Median(), grid=GRID, epsilon=0.25, selection="exponential")
MEAN = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=GRID, epsilon=0.25)
E = {"epsilon": 0.25}
B = {"bounds": (0, 100), **E}


def by_name(name):
    """Call a function of `dpfast.location`."""
    arguments, _ = FUNCTIONS[name]
    return getattr(dpf, name)(X, *arguments, **(E if name == "count" else B))


# Every public function that releases, by name.
RELEASES = {
    **{f"dpf.{name}": partial(by_name, name) for name in FUNCTIONS},
    "dpf.mean": lambda: [
        dpf.mean(X, **B),
        dpf.mean(X[:, None], **B),
        dpf.mean(np.tile(X, 16), method="private-bounds", **B),
    ],
    "dpf.sum": lambda: [dpf.sum(X, **B), dpf.sum(X[:, None], radius=100.0, **E)],
    "dpf.quantile": lambda: [dpf.quantile(X, 0.3, **B), dpf.quantile(X, [0.2, 0.7], **B)],
    "dpf.m_estimate": lambda: dpf.m_estimate(X, dpf.psi.Huber(5.0), **B),
    "dpf.bounds": lambda: dpf.bounds(np.tile(X, 16), **E),
    "dpf.interval": lambda: [
        *(dpf.interval(name, X, **B) for name in ("median", "mean", "std", "sum")),
        dpf.interval("median", X, **E),
    ],
    "dpf.histogram": lambda: dpf.histogram(X, 5, **B),
    "dpf.density": lambda: dpf.density(X, **B),
    "dpf.synthesize": lambda: [
        *(dpf.synthesize(X, 5, method=method, **B) for method in ("perturbed", "smoothed", "ks", "series")),
        dpf.synthesize(X, 5, method="quantiles", **B),
        dpf.synthesize({"a": X, "b": X % 3}, 5, columns={"a": (0, 100), "b": [0, 1, 2]}, **E),
    ],
    "dpf.covariance": lambda: dpf.covariance(X[:, None], radius=100.0, **E),
    "dpf.linear_regression": lambda: dpf.linear_regression(X[:, None], X, radius=100.0, label_bound=100.0, **E),
    "dpf.glm": lambda: [
        dpf.glm(X[:, None], X > 50, radius=100.0, **E),
        dpf.glm(X[:, None], X // 40, model="multinomial", classes=3, radius=100.0, **E),
    ],
    "dpf.by_group": lambda: [
        dpf.by_group(MEDIAN, X, labels=np.arange(100) % 7),
        dpf.by_group(MEDIAN, X, labels=["a", "b"] * 50, keys=["b", "c"]),
        dpf.by_group({"median": MEDIAN, "mean": MEAN}, X, labels=["a", "b"] * 50, keys=["b", "c"]),
    ],
    "dpf.contribution_limit": lambda: dpf.contribution_limit(X, **E),
    "dpf.partitions": lambda: dpf.partitions(X, domain=100, **E),
    "dpf.select": lambda: dpf.select([1, 2, 3], **E),
    "dpf.top_k": lambda: [
        dpf.top_k(X, 1, keys=range(100), **E),
        dpf.top_k(X, 3, keys=range(100), **E),
    ],
    "dpf.marginals": lambda: [
        dpf.marginals({"a": X, "b": X % 3}, {"a": (0, 100), "b": [0, 1, 2]}, **E),
        dpf.marginals(np.stack([X] * 3, axis=1), {0: (0, 100), 1: dpf.Bins(), 2: (0, 100)}, **E),
    ],
    "dpf.mle": lambda: [
        dpf.mle(X + 1, "exponential", bounds=(0.001, 1.0), epsilon=0.25, blocks=4),
        dpf.mle(X + 1, "exponential", bounds=(0.001, 1.0), epsilon=0.25),
    ],
    "dpf.theil_sen": lambda: dpf.theil_sen(X, X, **E),
    "dpf.robust_mean": lambda: [
        dpf.robust_mean(X[:, None], **B),
        dpf.robust_mean(np.stack([X, X[::-1]], axis=1), method="depth", **B),
        dpf.robust_mean(np.stack([X, X[::-1]], axis=1), method="whitened", **B),
    ],
    "robust.reduce": lambda: robust.reduce(
        lambda c: robust.score(dpf.statistics.Median(), X, c, grid=GRID), range(3), **E
    ),
    "robust.robust_mean": lambda: robust.robust_mean(X[:, None], **B),
    "local.density": lambda: local.density(X, **B),
    "local.glm": lambda: local.glm(X[:, None], X > 50, **E),
    "local.mean": lambda: local.mean(X, **B),
    "local.median": lambda: local.median(X, **B),
    "local.median_naive": lambda: local.median_naive(X, **B),
    "local.quantile": lambda: local.quantile(X, 0.5, **B),
    "local.sparse_mean": lambda: local.sparse_mean(X[:, None], **E),
}
TIMES = {
    "dpf.by_group": 4,
    "dpf.glm": 2,
    "dpf.interval": 5,
    "dpf.mean": 3,
    "dpf.mle": 2,
    "dpf.robust_mean": 3,
    "dpf.sum": 2,
    "dpf.quantile": 2,
    "dpf.marginals": 2,
    "dpf.synthesize": 6,
    "dpf.top_k": 2,
}
NEIGHBORS = {
    "dpf.contribution_limit": "add-remove",
    "dpf.count": "add-remove",
    "dpf.partitions": "add-remove",
    "dpf.top_k": "add-remove",
    **{name: "local" for name in RELEASES if name.startswith("local")},
}

# These release nothing, or return a value that is documented as private.
NO_RELEASE = {
    "dpf.bound_contributions",
    "dpf.explain",
    "local.project",
    "local.randomizer_for",
    "robust.score",
    "noise.laplace",
    "noise.discrete_laplace",
    "noise.staircase",
    "noise.geometric",
    "noise.add_laplace",
    "noise.gaussian",
    "noise.add_gaussian",
    "noise.box",
    "noise.ball",
}
NOISE = [
    lambda: noise.laplace(1.0),
    lambda: noise.discrete_laplace(1.0),
    lambda: noise.staircase(1.0, 2),
    lambda: noise.geometric(1.0),
    lambda: noise.add_laplace(X, scale=1.0, grid=GRID),
    lambda: noise.gaussian(1.0),
    lambda: noise.add_gaussian(X, sigma=1.0, grid=GRID),
    lambda: noise.box([1.0, 2.0]),
    lambda: noise.ball([1.0, 2.0]),
    lambda: laws.DiscreteLaplace(1.0).draw(PCG64(1)),
    lambda: laws.RoundedGaussian(1.0).fill(PCG64(1), np.empty(2, np.int64)),
    lambda: laws.Staircase(1.0, 2).draw(PCG64(1)),
    lambda: laws.RoundedBox([1.0, 2.0]).draws(3, PCG64(1)),
]

SMOOTH = dpf.SmoothSensitivity(dpf.statistics.Median(), grid=GRID, epsilon=0.25, delta=1e-6)
MECHANISMS = [
    *central(GRID, 0.25, statistics=(dpf.statistics.Median(), dpf.statistics.Mean(), dpf.statistics.Count())),
    dpf.MomentPair(grid=GRID, epsilon=0.25),
    dpf.PresentMean(grid=GRID.with_missing("drop"), epsilon=0.25),
    dpf.Selection(epsilon=0.25),
    dpf.Selection(epsilon=0.25, selection="permute-and-flip"),
]
LOCAL = [
    local.Binary(0.25),
    local.Categorical(4, 0.25),
    local.Interval(0.25, bounds=(0, 100)),
    local.L2Ball(3, 0.25),
    local.Hypercube(4, 0.25),
    local.SeriesReports(2, 0.25, grid=GRID),
    local.SquareWave((0, 1), 0.25),
]


def in_thread(function):
    """What it returns or raises in a new thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()
