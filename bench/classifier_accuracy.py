"""What privacy costs a logistic regression: ``python -m bench.classifier_accuracy``, the table in docs/sklearn.md.

d independent standard normal columns, slopes of Euclidean norm 2 in a random direction, intercept 1/2; fresh people in
each run. Right predictions of fresh rows that are lost against scikit-learn's fit without penalty to the same people.
"""

import argparse
import math

import numpy as np

from bench.tables import size, table

SIZES = [(10**4, 2), (10**5, 2), (10**4, 10), (10**5, 10), (10**6, 10), (10**5, 50)]
EPSILONS = (0.5, 1.0, 2.0, 5.0)
FRESH = 50_000


def people(n, slopes, rng):
    X = rng.normal(size=(n, len(slopes)))
    return X, rng.random(n) < 1 / (1 + np.exp(-(X @ slopes + 0.5)))


def methods(d):
    radius = math.sqrt(d) + 1
    return {"aggregate": {"bounds": (-3, 3)}, "local": {"method": "local", "radius": radius, "bound": 2.5 * radius}}


def losses(n, d, runs, rng):
    """The share that is right without privacy, and the mean loss and its standard error by method and epsilon."""
    from sklearn.linear_model import LogisticRegression

    from dpfast.sklearn import PrivateLogisticRegression

    right, lost = [], {(name, epsilon): [] for epsilon in EPSILONS for name in methods(d)}
    for _ in range(runs):
        slopes = rng.normal(size=d)
        slopes *= 2 / np.linalg.norm(slopes)
        X, y = people(n, slopes, rng)
        fresh = people(FRESH, slopes, rng)
        right.append(LogisticRegression(C=math.inf).fit(X, y).score(*fresh))
        for name, epsilon in lost:
            options = {"classes": (False, True), "epsilon": epsilon, "random_state": rng, **methods(d)[name]}
            lost[name, epsilon].append(right[-1] - PrivateLogisticRegression(**options).fit(X, y).score(*fresh))
    return np.mean(right), {key: (np.mean(x), np.std(x) / math.sqrt(runs)) for key, x in lost.items()}


def points(mean, error):
    """Hundredths, and the standard error in units of the last digit."""
    return f"{round(100 * mean, 1) + 0.0:.1f}({1000 * error:.0f})"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.classifier_accuracy", description=__doc__.split(":")[0])
    parser.add_argument("--runs", type=int, default=20)
    runs, rng, rows = parser.parse_args(arguments).runs, np.random.default_rng(1), []
    for n, d in SIZES:
        right, lost = losses(n, d, runs, rng)
        for name in methods(d):
            row = [points(*lost[name, epsilon]) for epsilon in EPSILONS]
            rows.append([size(n), d, f"{100 * right:.1f}", name, *row])
    print(table(["n", "d", "% right", "method", *(f"epsilon = {epsilon:g}" for epsilon in EPSILONS)], rows))


if __name__ == "__main__":
    main()
