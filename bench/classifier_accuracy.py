"""The cost of privacy in scikit-learn: ``python -m bench.classifier_accuracy``, the tables in docs/results/sklearn.md.

Logistic regression: d independent standard normal columns, slopes of Euclidean norm 2 in a random direction, intercept
1/2; new people in each run. The loss is the share of correct predictions of new rows, relative to scikit-learn's fit
without penalty to the same people. Scalers: errors of the center and the scale of columns. Principal components: the
share of the variance that they capture, for normal rows with deviations 1, 1/2, 1/3, ... along random directions, in a
ball of 1.5 times the root of their total variance. diffprivlib's models are included if it is installed.
"""

import argparse
import math
import signal
from contextlib import contextmanager
from functools import partial

import numpy as np

from bench.logistic_accuracy import PEER as peer
from bench.pages.tables import size, table

SIZES = [(10**4, 2), (10**5, 2), (10**4, 10), (10**5, 10), (10**6, 10), (10**5, 50)]
EPSILONS = (0.5, 1.0, 2.0, 5.0)
FRESH = 50_000


def people(n, slopes, rng):
    X = rng.normal(size=(n, len(slopes)))
    return X, rng.random(n) < 1 / (1 + np.exp(-(X @ slopes + 0.5)))


def methods(d):
    """Functions that make an estimator from an epsilon and a random source; the peer keeps its default penalty."""
    from dpfast.sklearn import PrivateLogisticRegression

    radius = math.sqrt(d) + 1
    ours = partial(PrivateLogisticRegression, classes=(False, True))
    made = {"sums": partial(ours, radius=radius), "sums, delta = 1e-6": partial(ours, radius=radius, delta=1e-6)}
    made["blocks"] = partial(ours, method="blocks", bounds=(-3, 3))
    made["local"] = partial(ours, method="local", radius=radius, bound=2.5 * radius)
    if peer is not None:
        made["diffprivlib"] = partial(peer.LogisticRegression, data_norm=radius, max_iter=1000)
    return made


def seeds(name, rng, others):
    """The random source of an estimator: a seed from a separate generator for a peer."""
    return int(others.integers(2**31)) if name == "diffprivlib" else rng


def losses(n, d, runs, rng):
    """The accuracy without privacy, and the mean loss and its standard error by method and epsilon."""
    from sklearn.linear_model import LogisticRegression

    made, others = methods(d), np.random.default_rng(2)
    right, lost = [], {(name, epsilon): [] for epsilon in EPSILONS for name in made}
    for _ in range(runs):
        slopes = rng.normal(size=d)
        slopes *= 2 / np.linalg.norm(slopes)
        X, y = people(n, slopes, rng)
        fresh = people(FRESH, slopes, rng)
        right.append(LogisticRegression(C=math.inf).fit(X, y).score(*fresh))
        for name, epsilon in lost:
            model = made[name](epsilon=epsilon, random_state=seeds(name, rng, others))
            lost[name, epsilon].append(right[-1] - model.fit(X, y).score(*fresh))
    return np.mean(right), {key: (np.mean(x), np.std(x) / math.sqrt(runs)) for key, x in lost.items()}


def points(mean, error):
    """Percentage points, and the standard error in units of the last digit."""
    return f"{round(100 * mean, 1) + 0.0:.1f}({1000 * error:.0f})"


# ---- scalers ----

COLUMNS = 10


def contaminated(n, rng):
    """Normal columns with 1 % of the records at the upper bound."""
    X = rng.normal(size=(n, COLUMNS))
    X[rng.random(X.shape) < 0.01] = 10
    return X


def normal(n, rng):
    return rng.normal(size=(n, COLUMNS))


DATA = {"normal": (10.0, normal), "normal, bounds (-3, 3)": (3.0, normal), "1 % outliers": (10.0, contaminated)}


def scalers():
    """Functions that make a scaler, and the attribute that holds its centers."""
    from dpfast.sklearn import PrivateRobustScaler, PrivateStandardScaler

    made = {"robust": (partial(PrivateRobustScaler, unit_variance=True), "center_")}
    made["standard"] = (PrivateStandardScaler, "mean_")
    if peer is not None:
        made["diffprivlib"] = (peer.StandardScaler, "mean_")
    return made


def scaler_rows(runs):
    """Root mean squared errors of the center 0 and of the scale 1 of standard normal columns, by epsilon."""
    rng, others = np.random.default_rng(3), np.random.default_rng(4)
    for kind, (span, draw) in DATA.items():
        for n in (10**3, 10**4, 10**5):
            for name, (make, center) in scalers().items():
                row = []
                for epsilon in EPSILONS:
                    errors = []
                    for _ in range(runs):
                        source = seeds(name, rng, others)
                        fitted = make(epsilon=epsilon, bounds=(-span, span), random_state=source).fit(draw(n, rng))
                        errors.append([getattr(fitted, center), fitted.scale_ - 1])
                    row.append(" / ".join(f"{x:.2g}" for x in np.sqrt(np.mean(np.square(errors), axis=(0, 2)))))
                yield [kind, size(n), name, *row]


# ---- principal components ----

KEPT = 2
COMPONENT_EPSILONS = (0.1, 0.5, 1.0, 2.0)
SECONDS = 10


def decompositions(radius):
    """Functions that make principal components around 0 from an epsilon and a random source."""
    from dpfast.sklearn import PrivatePCA

    ours = partial(PrivatePCA, KEPT, radius=radius, centered=False)
    made = {"PrivatePCA": ours, "PrivatePCA, delta = 1e-6": partial(ours, delta=1e-6)}
    if peer is not None:
        made["diffprivlib"] = partial(peer.PCA, KEPT, data_norm=radius, centered=True)
    return made


def captured(make, n, d, epsilon, runs, rng, others, name):
    """The mean share of the variance of the best components that the released ones have; "-" if a fit takes long."""
    deviations, shares = 1 / np.arange(1, d + 1), []
    for _ in range(runs):
        directions = np.linalg.qr(rng.normal(size=(d, d)))[0] * deviations
        try:
            with limited(SECONDS):
                model = make(epsilon=epsilon, random_state=seeds(name, rng, others))
                model.fit(rng.normal(size=(n, d)) @ directions.T)
        except TimeoutError:
            return "-"
        shares.append(np.sum((model.components_ @ directions) ** 2) / np.sum(deviations[:KEPT] ** 2))
    return f"{np.mean(shares):.3f}"


@contextmanager
def limited(seconds):
    """Raise a TimeoutError in the block after some seconds."""

    def stop(signum, frame):
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def component_rows(runs):
    rng, others = np.random.default_rng(5), np.random.default_rng(6)
    for n, d in ((10**3, 5), (10**4, 5), (300, 10), (10**3, 10), (10**4, 10), (10**4, 50)):
        radius = 1.5 * math.sqrt(np.sum(1 / np.arange(1, d + 1) ** 2))
        for name, make in decompositions(radius).items():
            yield [size(n), d, name, *(captured(make, n, d, e, runs, rng, others, name) for e in COMPONENT_EPSILONS)]


def heads(epsilons):
    return [f"epsilon = {epsilon:g}" for epsilon in epsilons]


def show_scalers(runs):
    print(table(["data", "n", "scaler", *heads(EPSILONS)], scaler_rows(runs)), flush=True)


def show_components(runs):
    print(table(["n", "d", "estimator", *heads(COMPONENT_EPSILONS)], component_rows(runs)), flush=True)


def show_classifiers(runs):
    rng, rows = np.random.default_rng(1), []
    for n, d in SIZES:
        right, lost = losses(n, d, runs, rng)
        for name in methods(d):
            row = [points(*lost[name, epsilon]) for epsilon in EPSILONS]
            rows.append([size(n), d, f"{100 * right:.1f}", name, *row])
    print(table(["n", "d", "% correct", "method", *heads(EPSILONS)], rows), flush=True)


SECTIONS = {"scalers": show_scalers, "components": show_components, "classifiers": show_classifiers}


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.classifier_accuracy", description=__doc__.split(":")[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", choices=SECTIONS)
    options = parser.parse_args(arguments)
    for name, show in SECTIONS.items():
        if options.only in (None, name):
            show(options.runs)


if __name__ == "__main__":
    main()
