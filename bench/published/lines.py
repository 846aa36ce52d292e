"""Lines and linear regression."""

import math
from functools import partial

import numpy as np

import dpfast as dpf
from bench.published.comparison import Case, Published
from bench.published.quantiles import exponential

TITLE = "Linear regression"
TEXT = """Lines: the root mean squared distance from the line of the population, at the x of the records, which are
    uniform in [0, 1]; y in [0, 1]. DPTheilSen: Alabi, McMillan, Sarathy, Smith and Vadhan 2022, medians of the
    predictions at 0.25 and 0.75 of all pairs of one or of ten random matchings, by the exponential mechanism in
    [-0.5, 1.5]; wide: the same with ten matchings, widened by 0.01. NoisyStats: by the same, Laplace noise on the
    sums. Planes: the root mean squared distance of predictions from those of least squares, rows within the ball of
    radius 3, labels within 8. AdaSSP: Wang 2018; boosted: Tang and others 2024, twenty rounds of sums of residuals
    clipped at 1, twice the deviation of the errors. Both are analysed for one added or removed record; here their
    noise is that of the least Gaussian mechanism for one replaced record, whose second moments are sqrt(2) apart.
    TukeyEM: Amin, Joseph, Ribero and Vassilvitskii 2022, fits of blocks of records, which need no bounds, as many as
    have the least error among three."""
DELTA = 1e-6
SLOPE, INTERCEPT = 0.6, 0.15
RADIUS, LABELS = 3.0, 8.0


def theil_sen(generator, x, y, epsilon, matchings, widening=0.0):
    """Each matching has epsilon / k, as a record is in one pair of each.

    With `widening`, a prediction is as good as the best one at that distance: the set of each score is wider by so much
    on both sides.
    """
    n, predictions = len(x) // 2 * 2, []
    for _ in range(matchings):
        order = generator.permutation(len(x))[:n].reshape(2, -1)
        (x0, x1), (y0, y1) = x[order], y[order]
        slopes = (y1 - y0) / np.where(x1 == x0, 1e-12, x1 - x0)
        middle = (y0 + y1) / 2 - slopes * (x0 + x1) / 2
        predictions.append(middle + np.array([[0.25], [0.75]]) * slopes)
    both = np.sort(np.hstack(predictions), axis=1)
    both = both + widening * np.where(np.arange(both.shape[1]) < both.shape[1] / 2, -1, 1)
    low, high = (exponential(generator, p, 0.5, (-0.5, 1.5), epsilon / (2 * matchings)) for p in both)
    slope = 2 * (high - low)
    return slope, low - slope / 4


def noisy_statistics(generator, x, y, epsilon):
    """Least squares from noisy sums of squares and of products, and a noisy intercept: a third of epsilon each."""
    n, (x, y) = len(x), (np.clip(x, 0, 1), np.clip(y, 0, 1))
    scale = 3 * (1 - 1 / n) / epsilon
    products, squares = ((x - x.mean()) @ (v - v.mean()) + generator.laplace(0, scale) for v in (y, x))
    if squares <= 0:
        return 0.0, 0.5
    slope = products / squares
    return slope, y.mean() - slope * x.mean() + generator.laplace(0, 3 * (1 + abs(slope)) / (n * epsilon))


def adaptive_ridge(generator, X, y, epsilon, delta, rounds=0, clip=1.0, chance=0.05):
    """The ridge is what the noise of the second moments needs, less a lower bound of their smallest eigenvalue.

    A third of mu squared each for the smallest eigenvalue, the second moments and the products with the labels; with
    `rounds`, the last third is for as many sums of clipped residuals, and each step adds their fit.
    """
    d = X.shape[1]
    mu = dpf.theory.gaussian_mu(epsilon, delta) / math.sqrt(3)
    X = X * np.minimum(1, RADIUS / np.maximum(np.linalg.norm(X, axis=1), 1e-12))[:, None]
    y, square = np.clip(y, -LABELS, LABELS), RADIUS**2
    moments, tail = X.T @ X, math.sqrt(2 * math.log(6 / delta))
    least = np.linalg.eigvalsh(moments)[0] + square / mu * (generator.normal() - tail)
    noise = np.triu(generator.normal(size=(d, d)))
    noise = noise + np.triu(noise, 1).T
    deviation = math.sqrt(2) * square / mu
    ridge = max(0.0, math.sqrt(d * math.log(2 * d * d / chance)) * deviation - max(0.0, least))
    inverse = np.linalg.inv(moments + deviation * noise + ridge * np.eye(d))
    if not rounds:
        return inverse @ (X.T @ y + 2 * RADIUS * LABELS / mu * generator.normal(size=d))
    theta = np.zeros(d)
    for _ in range(rounds):
        residuals = np.clip(y - X @ theta, -clip, clip)
        theta = theta + inverse @ (
            X.T @ residuals + 2 * RADIUS * clip * math.sqrt(rounds) / mu * generator.normal(size=d)
        )
    return theta


def tukey_fit(generator, X, y, epsilon, delta, blocks):
    """Draw a fit by its approximate Tukey depth among those of blocks, after a test that deep ones are few.

    Depths along the axes are boxes of order statistics; the volumes of the boxes decide the test (half of epsilon).
    """
    n, d = X.shape
    order = generator.permutation(n)[: n // blocks * blocks].reshape(blocks, -1)
    fits = np.sort([np.linalg.lstsq(X[rows], y[rows], rcond=None)[0] for rows in order], axis=0)
    half = blocks // 2
    sides = np.array([fits[blocks - i] - fits[i - 1] for i in range(1, half + 1)])
    with np.errstate(divide="ignore"):
        volumes = np.log(sides).sum(axis=1)
    share, start = epsilon / 2, blocks // 4
    limit = math.log(delta / 8) - share
    distance = _distance_to_unsafe(volumes, share, limit, start)
    if distance + generator.laplace(0, 1 / share) <= math.log(1 / delta) / share:
        return np.zeros(d)
    outer, inner = volumes[start - 1 :], np.append(volumes[start:], -np.inf)
    rings = outer + np.log1p(-np.exp(np.minimum(inner - outer, -1e-15)))
    depths = np.arange(start, half + 1)
    chosen = np.argmax(rings + share / 2 * depths + generator.gumbel(size=len(depths)))
    return _in_ring(generator, fits, depths[chosen], half)


def _distance_to_unsafe(volumes, epsilon, limit, start):
    """The greatest k for which some g has log V(start - k - 1) - log V(start + k + g + 1) - epsilon g / 2 <= limit."""
    for k in range(start - 2, -1, -1):
        inner = volumes[start + k + 1 :]
        gaps = np.arange(1, len(inner) + 1)
        if len(inner) and (volumes[start - k - 2] - inner - epsilon * gaps / 2).min() <= limit:
            return k
    return -1


def _in_ring(generator, fits, depth, half):
    """A uniform point of the box of this depth that is not in the next."""
    low, high = fits[depth - 1], fits[len(fits) - depth]
    while True:
        point = generator.uniform(low, high)
        if depth == half or np.any((point < fits[depth]) | (point > fits[len(fits) - depth - 1])):
            return point


def _lines():
    for n, epsilon, deviation, heavy in ((500, 1.0, 0.1, False), (3000, 0.3, 0.05, False), (1500, 1.0, 0.03, True)):

        def draw(generator, n=n, deviation=deviation, heavy=heavy):
            x = generator.random(n)
            errors = generator.standard_t(2, n) if heavy else generator.normal(size=n)
            return x, np.clip(INTERCEPT + SLOPE * x + deviation * errors, 0, 1)

        def ours(x, y, epsilon=epsilon):
            fit = dpf.theil_sen(x, y, epsilon=epsilon, slope_bounds=(-4, 4), intercept_bounds=(-1.5, 2.5))
            return fit.coefficients[0], fit.intercept

        yield Case(
            "line", "errors t(2)" if heavy else "errors normal", n, f"{epsilon:g}", draw, ours,
            lambda released, x, y: np.mean((released[1] - INTERCEPT + (released[0] - SLOPE) * x) ** 2),
            (
                *[
                    Published(
                        f"DPTheilSen, {k} matching{'s' * (k > 1)}",
                        partial(theil_sen, epsilon=epsilon, matchings=k))
                    for k in (1, 10)
                ],
                Published("DPWideTheilSen", partial(theil_sen, epsilon=epsilon, matchings=10, widening=0.01)),
                Published("NoisyStats", partial(noisy_statistics, epsilon=epsilon)),
            ),
            root=True, datasets=40, rounds=20,
        )  # fmt: skip


def _planes():
    for n, d, epsilon in ((15_000, 3, 1.0), (20_000, 8, 0.5), (50_000, 5, 1.0)):

        def draw(generator, n=n, d=d):
            X, slopes = generator.normal(size=(n, d)), generator.normal(size=d)
            X *= np.minimum(1, RADIUS / np.linalg.norm(X, axis=1))[:, None]
            return X, np.clip(
                X @ (slopes * 1.5 / np.linalg.norm(slopes)) + 0.5 * generator.normal(size=n), -LABELS, LABELS
            )

        def ours(X, y, epsilon=epsilon, **bounds):
            return dpf.linear_regression(
                X, y, radius=RADIUS, epsilon=epsilon, delta=DELTA, intercept=False, **bounds
            ).coefficients

        def error(released, X, y):
            return np.mean((X @ (released - np.linalg.lstsq(X, y, rcond=None)[0])) ** 2)

        public = {"epsilon": epsilon, "delta": DELTA}
        shared = {
            "records": f"{d} columns",
            "n": n,
            "guarantee": f"({epsilon:g}, {DELTA:g})",
            "draw": draw,
            "error": error,
        }
        yield Case(
            "regression", ours=partial(ours, label_bound=LABELS), root=True, datasets=25, rounds=4, **shared,
            algorithms=(
                Published("AdaSSP", partial(adaptive_ridge, **public)),
                Published("boosted AdaSSP", partial(adaptive_ridge, **public, rounds=20)),
            ),
        )  # fmt: skip
        yield Case(
            "regression without bounds of labels", ours=ours, root=True, datasets=25, rounds=4, **shared,
            algorithms=tuple(
                Published(f"TukeyEM, {blocks} fits", partial(tukey_fit, **public, blocks=blocks))
                for blocks in (500, 1000, 2000) if n >= (d + 2) * blocks
            ),
        )  # fmt: skip


def cases():
    yield from _lines()
    yield from _planes()
