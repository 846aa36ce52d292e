"""Jobs in python-dp, for one added or removed record, and partition selection, which PipelineDP takes from it."""

from importlib.metadata import version

import numpy as np
import pydp.algorithms.laplacian as laplacian
import serve
from pydp.algorithms.numerical_mechanisms import GaussianMechanism, LaplaceMechanism
from pydp.algorithms.partition_selection import create_truncated_geometric_partition_strategy
from pydp.algorithms.quantile_tree import QuantileTree


def _bounded(name, lower, upper, epsilon, kind="float"):
    number = float if kind == "float" else int
    bounds = {} if lower is None else {"lower_bound": number(lower), "upper_bound": number(upper)}
    made = getattr(laplacian, name)(epsilon=epsilon, dtype=kind, **bounds)
    return lambda x: made.quick_result(x.tolist())


def count(epsilon):
    made = laplacian.Count(epsilon=epsilon, dtype="float")
    return lambda x: made.quick_result(x.tolist())


def total(lower, upper, epsilon, integers):
    released = _bounded("BoundedSum", lower, upper, epsilon, "int64" if integers else "float")
    return lambda x: released(x.astype(np.int64) if integers else x)


def mean(lower, upper, epsilon):
    return _bounded("BoundedMean", lower, upper, epsilon)


def unbounded_mean(epsilon):
    """The bounds are found with a part of epsilon."""
    return _bounded("BoundedMean", None, None, epsilon)


def variance(lower, upper, epsilon):
    return _bounded("BoundedVariance", lower, upper, epsilon)


def deviation(lower, upper, epsilon):
    return _bounded("BoundedStandardDeviation", lower, upper, epsilon)


def quantile(q, lower, upper, epsilon):
    public = {"lower_bound": lower, "upper_bound": upper, "dtype": "float"}
    made = laplacian.Percentile(epsilon=epsilon, percentile=q, **public)
    return lambda x: made.quick_result(x.tolist())


def quantiles(qs, lower, upper, epsilon, height, branching):
    def release(x):
        tree = QuantileTree(lower, upper, height, branching)
        for value in x.tolist():
            tree.add_entry(value)
        return tree.compute_quantiles(epsilon, 0.0, 1, 1, qs, "laplace")

    return release


def integer_noise(epsilon, sensitivity):
    noise = LaplaceMechanism(epsilon=epsilon, sensitivity=sensitivity)
    return lambda zeros: [noise.add_noise(0) for _ in zeros]


def gaussian_scale(epsilon, delta):
    noise = GaussianMechanism(epsilon, delta, 1.0)
    return lambda: noise.std


def partitions(epsilon, delta, share):
    """What is released, by key, -1 for keys that are not; the counts take a share of epsilon, 0 for keys alone."""
    strategy = create_truncated_geometric_partition_strategy(epsilon * (1 - share), delta, 1)
    noise = LaplaceMechanism(epsilon=epsilon * share, sensitivity=1) if share else None

    def release(keys, most):
        released = np.full(most, -1.0)
        for key, size in enumerate(np.bincount(keys, minlength=most)):
            if size and strategy.should_keep(int(size)):
                released[key] = noise.add_noise(int(size)) if share else size
        return released

    return release


if __name__ == "__main__":
    serve.main(globals(), version("python-dp"))
