"""Private logistic regression on texts and people, as in figure 7 of Duchi, Jordan and Wainwright.

A section of ``python -m bench.local_experiments``. Data: the words of spam messages and the census people of
``populations.DATA``, with the columns that are 1 in at least a tenth of the records; without the files, synthetic
records of the same shape. A run draws n people with replacement, both labels equally likely, from a random three
quarters, and tests on the others. The choice of columns and the greatest number of ones per record count as public.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bench.pages.populations import DATA
from bench.pages.tables import paragraph, table
from dpfast import local

EPSILONS = (0.5, 1.0, 2.0, 4.0)
LARGEST, DECAY = 3.0, 0.55  # the norm of the coefficients, a public guess, and the decay of the steps
HEADINGS = ("data", "n", "features", "epsilon", "method", "excess risk", "wrong predictions")


@dataclass(frozen=True)
class Population:
    """Records of bits with labels; `ones` is the greatest number of ones of a record, by clipping."""

    name: str
    X: np.ndarray
    y: np.ndarray
    ones: int


def load(name, file, *, ones, shape, label):
    """The frequent columns of a file of packed bits, or synthetic records: decreasing shares, a sparse model."""
    path = DATA / file
    if path.exists():
        with np.load(path) as stored:
            X = np.unpackbits(stored["X"], axis=1)[:, : int(stored["d"])]
            return Population(name, X[:, X.mean(axis=0) >= 0.1].astype(float), stored["y"].astype(bool), ones)
    rng = np.random.default_rng(0)
    n, d = shape
    shares = np.linspace(2 * ones / d, 0.1, d).clip(0.1, 0.9)
    X = (rng.random((n, d)) < shares).astype(float)
    t = (X - shares) @ np.where(np.arange(d) % 3, 0.5, -1.5) + math.log(label / (1 - label))
    return Population(f"{name} (synthetic)", X, rng.random(n) < 1 / (1 + np.exp(-t)), ones)


def populations():
    return (
        load("spam messages", "sms_spam_words.npz", ones=4, shape=(5574, 13), label=0.13),
        load("census people", "adult_binary.npz", ones=15, shape=(48_842, 34), label=0.24),
    )


def with_constant(X):
    return np.column_stack([X, np.ones(len(X))])


def newton(X, y):
    """The coefficients without privacy, the intercept last; a ridge of one record keeps them finite."""
    X, theta = with_constant(X), np.zeros(X.shape[1] + 1)
    for _ in range(30):
        p = 1 / (1 + np.exp(-X @ theta))
        curvature = (X * (p * (1 - p))[:, None]).T @ X + np.eye(X.shape[1])
        change = np.linalg.solve(curvature, X.T @ (p - y) + theta)
        theta -= change
        if np.abs(change).max() < 1e-8:
            break
    return theta


def shrunk(X, ones):
    """Scale rows with more than `ones` ones down, so that their sum is at most `ones`."""
    return X * np.minimum(1.0, ones / np.maximum(X.sum(axis=1, keepdims=True), 1.0))


def laplace_descent(samples, ones, rng):
    """The baseline: gradients with Laplace noise in each coordinate, all samples and epsilons in parallel.

    The l1 norm of a gradient is at most `ones` + 1, the noise of scale 2 (ones + 1) / epsilon. Steps by the same rule,
    with the root mean square norm of the noise instead of the norm of a report.
    """
    X = np.repeat(np.stack([with_constant(shrunk(X, ones)) for X, _ in samples], axis=1), len(EPSILONS), axis=1)
    y = np.repeat(np.stack([y for _, y in samples], axis=1), len(EPSILONS), axis=1)
    n, runs, d = X.shape
    scale = 2 * (ones + 1) / np.tile(EPSILONS, len(samples))
    theta, total = np.zeros((runs, d)), np.zeros((runs, d))
    pushes = LARGEST * np.arange(1, n + 1) ** -DECAY
    for begin in range(0, n, 1000):
        noise = rng.laplace(size=(min(1000, n - begin), runs, d))
        for i, draws in enumerate(noise, begin):
            total += theta
            residual = 1 / (1 + np.exp(-np.einsum("rd,rd->r", X[i], theta))) - y[i]
            z = residual[:, None] * X[i] + scale[:, None] * draws
            theta -= (pushes[i] / (scale * math.sqrt(2 * d)))[:, None] * z
            theta /= np.maximum(np.sqrt(np.einsum("rd,rd->r", theta, theta)) / LARGEST, 1.0)[:, None]
    return (total / n).reshape(len(samples), len(EPSILONS), d)


def private_fits(samples, ones, rng):
    """For each method the coefficients of each sample and epsilon."""
    d, longest = samples[0][0].shape[1], math.sqrt(ones)
    norms = {
        "half space": {"norm": "l2", "radius": longest, "bound": LARGEST * longest},
        "subset of signs": {"norm": "linf", "bound": LARGEST},
    }
    fits = {}
    for name, options in norms.items():
        protocols = [local.GradientDescent(d, epsilon, intercept=True, **options) for epsilon in EPSILONS]
        fits[name] = np.array([[protocol(X, y, rng=rng) for protocol in protocols] for X, y in samples])
    return {**fits, "Laplace": laplace_descent(samples, ones, rng)}


def scores(theta, X, y):
    """The mean log loss and the share of wrong predictions."""
    t = with_constant(X) @ theta
    return np.mean(np.logaddexp(0.0, np.where(y, -t, t))), np.mean((t > 0) != y)


def balanced(y, n, rng):
    """n records with replacement, in random order, each label with probability 1/2."""
    yes, no = np.flatnonzero(y), np.flatnonzero(~y)
    return np.where(rng.random(n) < 0.5, rng.choice(yes, n), rng.choice(no, n))


def summary(values):
    """Mean and standard error."""
    return float(np.mean(values)), float(np.std(values) / math.sqrt(len(values)))


def experiment(population, n, runs, rng):
    """(population, n, features, epsilon, method, excess risk, wrong predictions), the last two as `summary`."""
    samples, tests, floors = [], [], []
    for _ in range(runs):
        order = rng.permutation(len(population.y))
        cut = len(order) * 3 // 4
        parts = [(population.X[half], population.y[half]) for half in (order[:cut], order[cut:])]
        for (X, y), size, drawn in zip(parts, (n, 20_000), (samples, tests), strict=True):
            chosen = balanced(y, size, rng)
            drawn.append((X[chosen], y[chosen]))
        floors.append(scores(newton(*samples[-1]), *tests[-1]))
    floors = np.array(floors)
    about = (population.name, n, population.X.shape[1])
    found_rows = []
    fits = private_fits(samples, population.ones, rng)
    for k, epsilon in enumerate(EPSILONS):
        for name, thetas in fits.items():
            found = np.array([scores(theta, *test) for theta, test in zip(thetas[:, k], tests, strict=True)])
            found_rows.append((*about, epsilon, name, summary(found[:, 0] - floors[:, 0]), summary(found[:, 1])))
    found_rows.append((*about, math.inf, "no privacy", (0.0, 0.0), summary(floors[:, 1])))
    return found_rows


@lru_cache
def rows(quick):
    """Rows of `experiment` for every population and size."""
    rng, (spam, census) = np.random.default_rng(1), populations()
    runs, plans = (2, ((spam, 2000), (census, 2000))) if quick else (5, ((spam, 4000), (census, 36_000)))
    plans += () if quick else ((census, 200_000),)
    return [row for population, n in plans for row in experiment(population, n, runs, rng)]


def section(quick):
    """A table: risk and wrong predictions for each population, epsilon and method."""
    about = f"""Logistic regression with one private gradient step per person, n people drawn with both labels equally
        likely: the excess of the logarithmic loss on test data over that of a fit without privacy, and the share of
        wrong predictions, with standard errors. "half space" is equation (25), "subset of signs" is the hypercube for
        features in [-1, 1], "Laplace" is noise in each coordinate. The norm of the coefficients is at most
        {LARGEST:g}."""
    body = [
        [name, f"{n:,}", d, "∞" if epsilon == math.inf else f"{epsilon:g}", method, _shown(risk), _shown(wrong)]
        for name, n, d, epsilon, method, risk, wrong in rows(quick)
    ]
    return "\n".join(["## Logistic regression\n", paragraph(about), table(HEADINGS, body)])


def _shown(found):
    return "{:.3f} ± {:.3f}".format(*found)
