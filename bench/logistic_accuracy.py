"""Points of accuracy lost by private logistic regressions: ``python -m bench.logistic_accuracy``.

The loss is the share of correct predictions of new records, relative to scikit-learn's fit without penalty to the same
people, in percentage points, with its standard error in units of the last digit. Synthetic rows are normal with the
given deviations of columns and correlation, and labels follow a logistic model, with a linear predictor of deviation 2
around an intercept; predictions of 50,000 new rows are judged by the probabilities of their labels. Adult and spambase
(the folder DPFAST_DATA): a random part of the records for the fit, the others for the test. diffprivlib's regression is
included if it is installed, with its default penalty and ``data_norm=radius``, and three fits in each run. With public
bounds on columns in place of a radius, it gets rows clamped to them and scaled to [-1, 1].
"""

import argparse
import csv
import gzip
import math
import sys
import types
import warnings
from dataclasses import dataclass
from functools import cache

import numpy as np
from sklearn import linear_model

import dpfast as dpf
from bench.pages.populations import DATA
from bench.pages.tables import size, table

DELTA = 1e-6
FRESH = 50_000
PEER_FITS = 3


class _Earlier(linear_model.LogisticRegression):
    """With the parameter `multi_class`, which diffprivlib passes and new releases of scikit-learn do not have."""

    def __init__(self, *, multi_class=None, **parameters):
        super().__init__(**parameters)


def _peer():
    """diffprivlib's models; its trees do not import with new releases of scikit-learn, and are not needed here."""
    trees = types.ModuleType("diffprivlib.models.forest")
    trees.RandomForestClassifier = trees.DecisionTreeClassifier = object
    present = linear_model.LogisticRegression
    try:
        sys.modules.setdefault("diffprivlib.models.forest", trees)
        linear_model.LogisticRegression = _Earlier
        from diffprivlib import models
    except ImportError:
        return None
    finally:
        linear_model.LogisticRegression = present
    return models


PEER = _peer()


@dataclass(frozen=True)
class Sample:
    """Records for a fit, and rows for the test with the probability that their label is 1."""

    X: np.ndarray
    y: np.ndarray
    fresh: np.ndarray
    chances: np.ndarray
    radius: float
    width: np.ndarray | None = None  # public bounds on the magnitude of each column, in place of the radius

    def score(self, coefficients, intercept):
        return np.mean(np.where(self.fresh @ coefficients + intercept > 0, self.chances, 1 - self.chances))


def synthetic(n, d, *, scales=(1.0,), correlation=0.0, intercept=0.5, reach=None):
    """A function that draws a `Sample`; the radius is the root mean square length of a row plus the largest scale.

    With a reach, columns have public bounds, as a multiple of their deviations.
    """
    deviations = np.resize(scales, d)
    width = None if reach is None else reach * deviations
    root = np.linalg.cholesky((1 - correlation) * np.eye(d) + correlation)
    radius = math.sqrt(np.sum(deviations**2)) + max(scales)

    def draw(rng):
        slopes = rng.normal(size=d)
        slopes *= 2 / np.linalg.norm(root.T @ slopes)
        Z = rng.normal(size=(n + FRESH, d)) @ root.T
        chances = 1 / (1 + np.exp(-(Z @ slopes + intercept)))
        X, y = Z * deviations, rng.random(n) < chances[:n]
        return Sample(X[:n], y, X[n:], chances[n:], radius, width)

    return draw


def real(load, n, radius):
    """A function that draws a `Sample` of n of the records."""

    def draw(rng):
        X, y = load()
        order = rng.permutation(len(y))
        fit, test = order[:n], order[n:]
        return Sample(X[fit], y[fit], X[test], y[test].astype(float), radius)

    return draw


def _columns(name):
    with gzip.open(DATA / name, "rt") as file:
        rows = list(csv.DictReader(file))
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


EDUCATION = [  # in increasing order
    "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college",
    "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate",
]  # fmt: skip


@cache
def adult():
    """Ten columns of Adult, scaled by public numbers."""
    people = _columns("adult.csv.gz")
    education = np.array([EDUCATION.index(value) + 1 for value in people["education"]])
    columns = (
        (people["age"].astype(float) - 40) / 15,
        (education - 10) / 3,
        (people["hours_per_week"].astype(float) - 40) / 12,
        np.log1p(people["capital_gain"].astype(float)) / 4,
        np.log1p(people["capital_loss"].astype(float)) / 4,
        np.isin(people["marital_status"], ["Married-civ-spouse", "Married-AF-spouse"]),
        people["sex"] == "Male",
        np.isin(people["occupation"], ["Exec-managerial", "Prof-specialty"]),
        people["race"] == "White",
        people["native_country"] == "United-States",
    )
    return np.column_stack(columns).astype(float), people["income"].astype(int) == 1


@cache
def adult_binary():
    with np.load(DATA / "adult_binary.npz") as stored:
        X = np.unpackbits(stored["X"], axis=1)[:, : int(stored["d"])]
        return X.astype(float), stored["y"].astype(bool)


@cache
def spambase():
    """Logarithms of the frequencies and run lengths; those of run lengths divided by 4."""
    columns = _columns("spambase.csv.gz")
    y = columns.pop("spam").astype(int) == 1
    X = np.log1p(np.column_stack([column.astype(float) for column in columns.values()]))
    X[:, -3:] /= 4
    return X, y


# Name, n, columns, epsilons, source.
SETTINGS = [
    ("normal", 10**3, 10, (1.0,), synthetic(10**3, 10)),
    ("normal", 10**4, 10, (0.5, 1.0), synthetic(10**4, 10)),
    ("normal", 3 * 10**4, 20, (1.0,), synthetic(3 * 10**4, 20)),
    ("normal", 10**5, 10, (0.5, 1.0), synthetic(10**5, 10)),
    ("normal", 10**5, 50, (0.5,), synthetic(10**5, 50)),
    ("normal, intercept 3", 10**4, 10, (0.5, 1.0), synthetic(10**4, 10, intercept=3.0)),
    ("scales 1, 0.3", 3 * 10**4, 10, (1.0,), synthetic(3 * 10**4, 10, scales=(1, 0.3), correlation=0.5)),
    ("scales 1, 0.1, 0.01", 10**4, 9, (1.0,), synthetic(10**4, 9, scales=(1, 0.1, 0.01), correlation=0.3)),
    (
        "the same, bounds of columns",
        10**4,
        9,
        (1.0,),
        synthetic(10**4, 9, scales=(1, 0.1, 0.01), correlation=0.3, reach=4.0),
    ),
    ("Adult", 3 * 10**4, 10, (0.5, 1.0, 2.0), real(adult, 3 * 10**4, 4.0)),
    ("Adult, all columns", 3 * 10**4, 120, (0.5, 1.0, 2.0), real(adult_binary, 3 * 10**4, 4.0)),
    ("spambase", 3600, 57, (1.0, 2.0), real(spambase, 3600, 4.0)),
]


def ours(sample, epsilon, delta, rng):
    public = (
        {"radius": sample.radius}
        if sample.width is None
        else {"bounds": np.column_stack([-sample.width, sample.width])}
    )
    fit = dpf.glm(sample.X, sample.y, model="logistic", epsilon=epsilon, delta=delta, rng=rng, **public)
    return fit.coefficients, fit.intercept


def theirs(sample, epsilon, seed):
    X, radius, width = sample.X, sample.radius, 1.0
    if sample.width is not None:
        width, radius = sample.width, math.sqrt(X.shape[1])
        X = np.clip(X / width, -1, 1)
    model = PEER.LogisticRegression(epsilon=epsilon, data_norm=radius, max_iter=1000, random_state=seed)
    model.fit(X, sample.y)
    return model.coef_[0] / width, model.intercept_[0]


def losses(draw, epsilons, runs, rng):
    """The accuracy without privacy, and for each epsilon the losses of each method."""
    right, lost = [], {(epsilon, name): [] for epsilon in epsilons for name in ("gaussian", "pure", "peer")}
    for run in range(runs):
        sample = draw(rng)
        best = linear_model.LogisticRegression(C=math.inf, max_iter=1000).fit(sample.X, sample.y)
        right.append(sample.score(best.coef_[0], best.intercept_[0]))
        for epsilon in epsilons:
            fits = {"gaussian": [ours(sample, epsilon, DELTA, rng)], "pure": [ours(sample, epsilon, 0.0, rng)]}
            if PEER is not None:
                fits["peer"] = [theirs(sample, epsilon, PEER_FITS * run + i) for i in range(PEER_FITS)]
            for name, made in fits.items():
                lost[epsilon, name].append(np.mean([right[-1] - sample.score(*fit) for fit in made]))
    return np.mean(right), lost


def points(values):
    """Percentage points with three decimals below 1, else with two, and the standard error."""
    if not values:
        return "-"
    mean, error = 100 * np.mean(values), 100 * np.std(values, ddof=1) / math.sqrt(len(values))
    places = 3 if abs(mean) < 1 else 2
    return f"{round(mean, places) + 0.0:.{places}f}({error * 10**places:.0f})"


def rows(settings, runs):
    for name, n, d, epsilons, draw in settings:
        right, lost = losses(draw, epsilons, runs, np.random.default_rng([1, n, d]))
        for epsilon in epsilons:
            cells = [points(lost[epsilon, key]) for key in ("gaussian", "pure", "peer")]
            yield [name, size(n), d, f"{100 * right:.1f}", f"{epsilon:g}", *cells]


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.logistic_accuracy", description=__doc__.split(":")[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", help="the settings whose name starts with this")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    chosen = [setting for setting in SETTINGS if setting[0].startswith(options.only or "")]
    headings = ["records", "n", "d", "% correct", "epsilon", "dpf.glm, delta = 1e-6", "dpf.glm, pure", "diffprivlib"]
    print(table(headings, rows(chosen, options.runs)))


if __name__ == "__main__":
    main()
