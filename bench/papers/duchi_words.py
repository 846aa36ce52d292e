"""Private logistic regression on the words of messages: figure 7 of Duchi, Jordan and Wainwright (section 6.3).

Data: the 500 most frequent words of spam and other messages; without the file, synthetic records of the same shape. A
run draws n people with replacement, both labels equally likely, from a random three quarters, and tests on the others,
drawn the same way. The choice of words and the greatest number of words per record count as public.
"""

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bench import pages
from bench.pages.tables import check, paragraph, table
from bench.papers import Result, data, duchi_drawing
from dpfast import local

EPSILONS = (1.0, 2.0, 4.0)
LARGEST, DECAY = 3.0, 0.55  # the norm of the coefficients, a public guess, and the decay of the steps
# Panels of the figure: the least share of the messages a word is in, and the greatest number of words of a message.
PANELS = {"at least 0.5 %": (0.005, 25), "at least 10 %": (0.1, 4)}
METHODS = {"half space": "published", "subset of signs": "better", "Laplace": "Laplace"}


@dataclass(frozen=True)
class Population:
    """Records of bits with labels; `ones` is the greatest number of ones of a record, by clipping."""

    name: str
    X: np.ndarray
    y: np.ndarray
    ones: int


@lru_cache
def population(panel):
    """The words of a panel, or synthetic records: decreasing shares, a sparse model."""
    least, ones = PANELS[panel]
    path = data.find("sms_spam_words.npz")
    if path:
        with np.load(path) as stored:
            X = np.unpackbits(stored["X"], axis=1)[:, : int(stored["d"])]
            return Population(
                "spam messages", X[:, X.mean(axis=0) >= least].astype(float), stored["y"].astype(bool), ones
            )
    rng = np.random.default_rng(0)
    n, d = 5574, 13 if least > 0.05 else 430
    shares = np.geomspace(0.3, least, d)
    X = (rng.random((n, d)) < shares).astype(float)
    t = (X - shares) @ np.where(np.arange(d) % 3, 0.5, -1.5) + math.log(0.13 / 0.87)
    return Population("synthetic messages", X, rng.random(n) < 1 / (1 + np.exp(-t)), ones)


def with_constant(X):
    return np.column_stack([X, np.ones(len(X))])


def newton(X, y, counts):
    """The coefficients without privacy, the intercept last; a ridge of one record keeps them finite."""
    X, y, counts = with_constant(X[counts > 0]), y[counts > 0], counts[counts > 0]
    theta = np.zeros(X.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-X @ theta))
        curvature = (X * (counts * p * (1 - p))[:, None]).T @ X + np.eye(X.shape[1])
        change = np.linalg.solve(curvature, X.T @ (counts * (p - y)) + theta)
        theta -= change
        if np.abs(change).max() < 1e-8:
            break
    return theta


def shrunk(X, ones):
    """Scale rows with more than `ones` ones down, so that their sum is at most `ones`."""
    return X * np.minimum(1.0, ones / np.maximum(X.sum(axis=1, keepdims=True), 1.0))


def laplace_descent(X, y, ones, rng):
    """The baseline: gradients with Laplace noise in each coordinate, for all epsilons side by side.

    The l1 norm of a gradient is at most `ones` + 1, the noise of scale 2 (ones + 1) / epsilon. Steps by the same rule,
    with the root mean square norm of the noise instead of the norm of a report.
    """
    X = with_constant(shrunk(X, ones))
    n, d = X.shape
    scale = 2 * (ones + 1) / np.array(EPSILONS)[:, None]
    theta, total = np.zeros((len(EPSILONS), d)), np.zeros((len(EPSILONS), d))
    pushes = LARGEST * np.arange(1, n + 1) ** -DECAY / (scale * math.sqrt(2 * d))
    for begin in range(0, n, 1000):
        noise = scale * rng.laplace(size=(min(1000, n - begin), len(EPSILONS), d))
        for i, draws in enumerate(noise, begin):
            total += theta
            residual = 1 / (1 + np.exp(-theta @ X[i])) - y[i]
            theta -= pushes[:, i, None] * (residual[:, None] * X[i] + draws)
            theta /= np.maximum(np.sqrt((theta * theta).sum(axis=1)) / LARGEST, 1.0)[:, None]
    return total / n


def private_fits(X, y, ones, rng):
    """For each method the coefficients, a row for each epsilon."""
    d, longest = X.shape[1], math.sqrt(ones)
    norms = {
        "half space": {"norm": "l2", "radius": longest, "bound": LARGEST * longest},
        "subset of signs": {"norm": "linf", "bound": LARGEST},
    }
    fits = {
        name: [local.GradientDescent(d, epsilon, intercept=True, **options)(X, y, rng=rng) for epsilon in EPSILONS]
        for name, options in norms.items()
    }
    return {**fits, "Laplace": laplace_descent(X, y, ones, rng)}


def wrong(theta, X, y):
    """The share of wrong predictions."""
    return float(np.mean((with_constant(X) @ theta > 0) != y))


def balanced(y, rows, n, rng):
    """n of the rows with replacement, in random order, each label with probability 1/2."""
    yes, no = rows[y[rows]], rows[~y[rows]]
    return np.where(rng.random(n) < 0.5, rng.choice(yes, n), rng.choice(no, n))


def experiment(population, n, runs, rng):
    """{(epsilon, method): share of wrong predictions in each run}, epsilon = inf for no privacy."""
    X, y, found = population.X, population.y, {}
    for _ in range(runs):
        order = rng.permutation(len(y))
        cut = len(order) * 3 // 4
        drawn, test = (balanced(y, *part, rng) for part in ((order[:cut], n), (order[cut:], 5000)))
        fits = private_fits(X[drawn], y[drawn], population.ones, rng)
        shares = {
            (epsilon, name): theta for name, each in fits.items() for epsilon, theta in zip(EPSILONS, each, strict=True)
        }
        shares[math.inf, "no privacy"] = newton(X, y, np.bincount(drawn, minlength=len(y)))
        for key, theta in shares.items():
            found.setdefault(key, []).append(wrong(theta, X[test], y[test]))
    return {key: np.array(values) for key, values in found.items()}


def sizes(quick):
    return (500,) if quick else (4000, 20_000, 100_000)


def runs(quick, n):
    return 2 if quick else 25 if n < 50_000 else 5


@lru_cache
def rows(quick):
    """{(panel, n): `experiment`}."""
    rng = np.random.default_rng(1)
    return {(panel, n): experiment(population(panel), n, runs(quick, n), rng) for panel in PANELS for n in sizes(quick)}


def draw(quick, path):
    """Figure 7 as lines: a column for each panel of the paper, a row for each n."""
    every = sizes(quick)
    figure, axes = duchi_drawing.panels(
        len(every), len(PANELS), size=(5.6, 1.2 + 2.2 * len(every)), sharex=True, sharey=True
    )
    for ax, (n, panel) in zip(axes, itertools.product(every, PANELS), strict=True):
        found = rows(quick)[panel, n]
        for method, look in METHODS.items():
            values = [found[epsilon, method] for epsilon in EPSILONS]
            mean, error = np.mean(values, axis=1), np.std(values, axis=1) / math.sqrt(len(values[0]))
            duchi_drawing.line(ax, look, method, EPSILONS, mean, mean - 2 * error, mean + 2 * error)
        ax.axhline(found[math.inf, "no privacy"].mean(), color="black", ls=":", label="no privacy")
        ax.axhline(0.5, color="gray", lw=0.8, label="guessing")
        ax.set(xscale="log", ylim=(0, 0.6))
        ax.set_title(f"{population(panel).X.shape[1]} words, n = {n:,}, {runs(quick, n)} runs")
        pages.ticks(ax.xaxis, EPSILONS)
    for ax in axes[-len(PANELS) :]:
        ax.set_xlabel("epsilon, local privacy")
    for ax in axes[:: len(PANELS)]:
        ax.set_ylabel("wrong predictions")
    pages.legend(figure, axes[0])
    pages.save(figure, path)


def compute(quick):
    body, said = [], []
    for (panel, n), found in rows(quick).items():
        d = population(panel).X.shape[1]
        for epsilon, method in [*((e, m) for e in EPSILONS for m in METHODS), (math.inf, "no privacy")]:
            values = found[epsilon, method]
            shown = f"{values.mean():.3f} ± {values.std() / math.sqrt(len(values)):.3f}"
            body.append([panel, d, f"{n:,}", "∞" if epsilon == math.inf else f"{epsilon:g}", method, shown])
        wins = sum(int(found[e, "half space"].mean() < found[e, "Laplace"].mean()) for e in EPSILONS)
        check("figure 7: a fit without privacy is best", int(found[math.inf, "no privacy"].mean() < 0.45), 1, 0)
        if n == sizes(quick)[-1]:
            best = found[EPSILONS[-1], "half space"].mean(), found[EPSILONS[-1], "Laplace"].mean()
            said.append(
                f"{d} words: half space {best[0]:.2f}, Laplace {best[1]:.2f}, no privacy "
                f"{found[math.inf, 'no privacy'].mean():.2f}, half space better for {wins} of {len(EPSILONS)} epsilons"
            )
    n = sizes(quick)[-1]
    text = f"""{population("at least 10 %").name.capitalize()}: share of wrong predictions on messages that were not
        used, mean and standard error, one private gradient step per person, both labels equally likely. "half space"
        is equation (25), the paper's choice, "subset of signs" is the hypercube for features in [-1, 1], "Laplace" is
        noise in each coordinate. Norm of the coefficients at most {LARGEST:g}. Runs: {runs(quick, sizes(quick)[0])},
        or {runs(quick, n)} for the largest n."""
    return Result(
        f"wrong predictions at n = {n:,} and epsilon {EPSILONS[-1]:g}: {'; '.join(said)}",
        "the order of the methods, yes; the data are spam messages, as the blog posts are not public",
        paragraph(text) + "\n" + table(["words in", "words", "n", "epsilon", "method", "wrong predictions"], body),
    )
