"""The cost of privacy in scikit-learn: ``python -m bench.classifier_accuracy``, the tables in docs/guides/sklearn.md.

Logistic regression: d independent standard normal columns, slopes of Euclidean norm 2 in a random direction, intercept
1/2; new people in each run. The loss is the share of correct predictions of new rows, relative to scikit-learn's fit
without penalty to the same people. Scalers: the errors of the center and the scale of columns. diffprivlib's models are
included if they are installed and work with this scikit-learn.
"""

import argparse
import math
import sys
import types
from functools import partial

import numpy as np

from bench.pages.tables import size, table

# diffprivlib's trees do not import with new releases of scikit-learn, and are not needed here.
_TREES = types.ModuleType("diffprivlib.models.forest")
_TREES.RandomForestClassifier = _TREES.DecisionTreeClassifier = object
try:
    sys.modules.setdefault("diffprivlib.models.forest", _TREES)
    from diffprivlib import models as peer
except ImportError:
    peer = None

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
    made = {"aggregate": partial(ours, bounds=(-3, 3))}
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

COLUMNS, SPAN = 10, 10.0


def contaminated(n, rng):
    """Normal columns with 1 % of the records at the upper bound."""
    X = rng.normal(size=(n, COLUMNS))
    X[rng.random(X.shape) < 0.01] = SPAN
    return X


DATA = {"normal": lambda n, rng: rng.normal(size=(n, COLUMNS)), "1 % outliers": contaminated}


def scalers():
    """Functions that make a scaler, and the attribute that holds its centers."""
    from dpfast.sklearn import PrivateRobustScaler

    made = {"robust": (partial(PrivateRobustScaler, unit_variance=True), "center_")}
    if peer is not None:
        made["diffprivlib"] = (peer.StandardScaler, "mean_")
    return made


def scaler_rows(runs):
    """Root mean squared errors of the center 0 and of the scale 1 of standard normal columns, by epsilon."""
    rng, others = np.random.default_rng(3), np.random.default_rng(4)
    for kind, draw in DATA.items():
        for n in (10**3, 10**4, 10**5):
            for name, (make, center) in scalers().items():
                row = []
                for epsilon in EPSILONS:
                    errors = []
                    for _ in range(runs):
                        source = seeds(name, rng, others)
                        fitted = make(epsilon=epsilon, bounds=(-SPAN, SPAN), random_state=source).fit(draw(n, rng))
                        errors.append([getattr(fitted, center), fitted.scale_ - 1])
                    row.append(" / ".join(f"{x:.2g}" for x in np.sqrt(np.mean(np.square(errors), axis=(0, 2)))))
                yield [kind, size(n), name, *row]


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.classifier_accuracy", description=__doc__.split(":")[0])
    parser.add_argument("--runs", type=int, default=20)
    runs, rng, rows = parser.parse_args(arguments).runs, np.random.default_rng(1), []
    epsilons = [f"epsilon = {epsilon:g}" for epsilon in EPSILONS]
    print(table(["data", "n", "scaler", *epsilons], scaler_rows(runs)), flush=True)
    for n, d in SIZES:
        right, lost = losses(n, d, runs, rng)
        for name in methods(d):
            row = [points(*lost[name, epsilon]) for epsilon in EPSILONS]
            rows.append([size(n), d, f"{100 * right:.1f}", name, *row])
    print(table(["n", "d", "% correct", "method", *epsilons], rows))


if __name__ == "__main__":
    main()
