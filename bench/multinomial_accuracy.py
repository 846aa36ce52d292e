"""Points of accuracy lost by private multinomial regressions: ``python -m bench.multinomial_accuracy``.

As in `bench.logistic_accuracy`, for K classes: rows are standard normal, the slopes of each class have a random
direction and length 1.6, and intercepts are normal with deviation 1/2; for unequal classes each intercept has 0.7 less
than the one before. Predictions of 30,000 new rows are judged by the probabilities of their classes. The public radius
is sqrt(d) + 1.
"""

import argparse
import math
import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax
from sklearn import linear_model

import dpfast as dpf
from bench.logistic_accuracy import DELTA, PEER, PEER_FITS, points
from bench.pages.tables import size, table

FRESH = 30_000
EPSILONS = (0.5, 1.0, 2.0)
HEADINGS = ["classes", "n", "d", "K", "% correct", "epsilon", "`glm`, delta", "`glm`", "diffprivlib"]


@dataclass(frozen=True)
class Sample:
    """Records for a fit, and rows for the test with the probabilities of their classes."""

    X: np.ndarray
    y: np.ndarray
    fresh: np.ndarray
    chances: np.ndarray
    radius: float

    def score(self, coefficients, intercepts):
        chosen = np.argmax(self.fresh @ coefficients.T + intercepts, axis=1)
        return np.mean(self.chances[np.arange(len(self.fresh)), chosen])


def synthetic(n, d, classes, step, rng):
    """A `Sample`, with `step` between the intercepts of one class and the next."""
    slopes = rng.normal(size=(classes, d))
    slopes *= 1.6 / np.linalg.norm(slopes, axis=1, keepdims=True)
    intercepts = rng.normal(size=classes) / 2 - step * np.arange(classes)
    X = rng.normal(size=(n + FRESH, d))
    chances = softmax(X @ slopes.T + intercepts, axis=1)
    y = np.sum(chances[:n].cumsum(axis=1) < rng.random((n, 1)), axis=1).clip(max=classes - 1)
    return Sample(X[:n], y, X[n:], chances[n:], math.sqrt(d) + 1)


# Name, n, columns, classes, step of the intercepts.
SETTINGS = [
    ("equal", 10**4, 5, 3, 0.0),
    ("equal", 3 * 10**4, 10, 4, 0.0),
    ("unequal", 3 * 10**4, 10, 4, 0.7),
]


def ours(sample, classes, epsilon, delta, rng):
    options = {"radius": sample.radius, "epsilon": epsilon, "delta": delta, "rng": rng}
    fit = dpf.glm(sample.X, sample.y, model="multinomial", classes=classes, **options)
    return fit.coefficients, fit.intercept


def theirs(sample, epsilon, seed):
    model = PEER.LogisticRegression(epsilon=epsilon, data_norm=sample.radius, max_iter=1000, random_state=seed)
    model.fit(sample.X, sample.y)
    return model.coef_, model.intercept_


def losses(n, d, classes, step, runs, rng, epsilons=EPSILONS):
    """The accuracy without privacy, and for each epsilon the losses of each method."""
    right, lost = [], {(epsilon, name): [] for epsilon in epsilons for name in ("gaussian", "pure", "peer")}
    for run in range(runs):
        sample = synthetic(n, d, classes, step, rng)
        best = linear_model.LogisticRegression(C=math.inf, max_iter=1000).fit(sample.X, sample.y)
        right.append(sample.score(best.coef_, best.intercept_))
        for epsilon in epsilons:
            fits = {
                "gaussian": [ours(sample, classes, epsilon, DELTA, rng)],
                "pure": [ours(sample, classes, epsilon, 0.0, rng)],
            }
            if PEER is not None:
                fits["peer"] = [theirs(sample, epsilon, PEER_FITS * run + i) for i in range(PEER_FITS)]
            for name, made in fits.items():
                lost[epsilon, name].append(np.mean([right[-1] - sample.score(*fit) for fit in made]))
    return np.mean(right), lost


def rows(settings, runs):
    rng = np.random.default_rng(1)
    for name, n, d, classes, step in settings:
        right, lost = losses(n, d, classes, step, runs, rng)
        for epsilon in EPSILONS:
            cells = [points(lost[epsilon, key]) for key in ("gaussian", "pure", "peer")]
            yield [name, size(n), d, classes, f"{100 * right:.1f}", f"{epsilon:g}", *cells]


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.multinomial_accuracy", description=__doc__.split(":")[0])
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # of the peer
    print(table(HEADINGS, rows(SETTINGS, options.runs)))


if __name__ == "__main__":
    main()
