"""Linear and logistic regression, and lines by Theil-Sen."""

import math

import numpy as np

import dpfast as dpf
from bench.logistic_accuracy import synthetic
from bench.peers.comparison import Job, Peer
from bench.peers.jobs.counts import REPLACED

TITLE = "Regressions"
TEXT = """Linear regression: the root mean squared distance of predictions from those of least squares without privacy,
    columns uniform in [-1, 1], labels in [-5, 5]. Logistic regression: percentage points of correct predictions lost to
    the fit without privacy, and the excess of the mean log loss over it, for 10,000 new rows; for diffprivlib with its
    default penalty and a hundred times more. Lines: the root mean squared error of the
    line at a standard normal x; OpenDP's with the best of several cuts, matchings and candidates."""
BOUND = 5.0
SLOPE, INTERCEPT, Y_BOUND, MATCHINGS, CANDIDATES = 1.7, 1.0, 9.0, 30, 1000


def _linear():
    for n, p, epsilon in ((1000, 3, 1.0), (10_000, 3, 1.0), (10_000, 8, 1.0), (10_000, 3, 0.3)):

        def draw(generator, n=n, p=p):
            X, slopes = generator.uniform(-1, 1, (n, p)), generator.normal(size=p)
            slopes *= math.sqrt(3) / np.linalg.norm(slopes)
            return X, np.clip(0.3 + X @ slopes + 0.5 * generator.normal(size=n), -BOUND, BOUND)

        def ours(X, y, p=p, epsilon=epsilon):
            fit = dpf.linear_regression(X, y, radius=math.sqrt(p), label_bound=BOUND, epsilon=epsilon)
            return np.append(fit.coefficients, fit.intercept)

        def error(released, X, y):
            A = np.column_stack([X, np.ones(len(X))])
            return np.mean((A @ (np.asarray(released) - np.linalg.lstsq(A, y, rcond=None)[0])) ** 2)

        public = {"limit": 1.0, "label_bound": BOUND, "epsilon": epsilon}
        yield Job(
            f"linear regression, {p} columns", "uniform", n, f"{epsilon:g}, {REPLACED}", draw, ours, error,
            (Peer("diffprivlib", "linear", public),), root=True, datasets=40, rounds=10,
        )  # fmt: skip


def _loss(values, chances):
    """The mean log loss of linear predictors for labels with these probabilities."""
    return np.mean(np.logaddexp(0, values) - chances * values)


def _logistic():
    for n, d, epsilon in ((1000, 5, 1.0), (10_000, 10, 0.5), (10_000, 10, 1.0), (30_000, 20, 1.0)):
        source, radius = synthetic(n, d), math.sqrt(d) + 1

        def draw(generator, source=source, d=d):
            from sklearn.linear_model import LogisticRegression

            sample = source(generator)
            best = LogisticRegression(C=math.inf, max_iter=1000).fit(sample.X, sample.y)
            X = sample.X * np.minimum(1, sample.radius / np.linalg.norm(sample.X, axis=1))[:, None]
            fresh, chances = sample.fresh[:10_000], sample.chances[:10_000]
            score = np.where(fresh @ best.coef_[0] + best.intercept_[0] > 0, chances, 1 - chances).mean()
            entropy = _loss(fresh @ best.coef_[0] + best.intercept_[0], chances)
            return X, sample.y, fresh, chances, np.array(score), np.array(entropy)

        def ours(X, y, fresh, chances, score, entropy, epsilon=epsilon, radius=radius):
            fit = dpf.glm(X, y, model="logistic", radius=radius, epsilon=epsilon)
            return np.append(fit.coefficients, fit.intercept)

        def lost(released, X, y, fresh, chances, score, entropy):
            right = np.where(fresh @ released[:-1] + released[-1] > 0, chances, 1 - chances).mean()
            return 100 * (score - right)

        def excess(released, X, y, fresh, chances, score, entropy):
            return _loss(fresh @ released[:-1] + released[-1], chances) - entropy

        public = {"radius": radius, "epsilon": epsilon}
        for name, error in (("points lost", lost), ("log loss", excess)):
            yield Job(
                f"logistic regression, {d} columns, {name}", "normal", n, f"{epsilon:g}, {REPLACED}", draw, ours, error,
                tuple(
                    Peer("diffprivlib", "logistic", {**public, "penalty": penalty}, f"C = {penalty:g}")
                    for penalty in (1.0, 0.01)
                ),
                datasets=20, rounds=5,
            )  # fmt: skip


def _lines():
    for kind, n, epsilon in (("normal", 1000, 0.5), ("normal", 1000, 2.0), ("outliers", 1000, 1.0)):

        def draw(generator, kind=kind, n=n):
            x, errors = generator.normal(size=n), generator.normal(size=n)
            if kind == "outliers":
                errors = np.where(generator.random(n) < 0.05, 20 * errors, errors)
            return x, INTERCEPT + SLOPE * x + errors

        def ours(x, y, epsilon=epsilon):
            fit = dpf.theil_sen(x, y, epsilon=epsilon, slope_bounds=(-5, 5), intercept_bounds=(-Y_BOUND, Y_BOUND))
            return np.append(fit.coefficients, fit.intercept)

        public = {"epsilon": epsilon, "y_bounds": (-Y_BOUND, Y_BOUND), "x_cuts": (-3.0, 3.0)}
        yield Job(
            "line by Theil-Sen", kind, n, f"{epsilon:g}, {REPLACED}", draw, ours,
            lambda released, x, y: (released[0] - SLOPE) ** 2 + (released[1] - INTERCEPT) ** 2,
            tuple(
                Peer("opendp", "line", {**public, "matchings": matchings, "candidates": CANDIDATES}, f"{matchings}")
                for matchings in (1, MATCHINGS)
            ),
            root=True, datasets=40, rounds=5,
        )  # fmt: skip


def jobs():
    yield from _linear()
    yield from _logistic()
    yield from _lines()
