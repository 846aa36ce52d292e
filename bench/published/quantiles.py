"""Medians and quantiles of bounded numbers."""

import math
from functools import partial

import numpy as np
from scipy.special import logsumexp

import dpfast as dpf
from bench.peers.records import drawer
from bench.published.comparison import Case, Published
from bench.published.populations import HEAVY, INCOMES, MODES, NORMAL, SCORES, WAITING

TITLE = "Medians and quantiles"
TEXT = """Mean distances from the quantile of the records. Smooth sensitivity: Nissim, Raskhodnikova and Smith 2007,
    with Cauchy noise, or, for a delta, Laplace noise. Propose-test-release: Dwork and Lei 2009; the proposed bound is
    one and a half times what the test needs for the density of the population, which no analyst knows, and a failed
    test releases the middle of the bounds. Exponential mechanism: Smith 2011, on distances of ranks, uniform within
    the bounds; in a trimmed range, the bounds are two such quantiles, of 0.05 and 0.95, of a quarter of epsilon each.
    Unbounded: Durfee 2023, a search upward from 0 in steps of 0.1 %, with exponential noise; dpfast has no bounds in
    that row. Approximate quantiles: Kaplan, Schnapp and Stemmer 2022, the recursion of halves. JointExp: Gillenwater,
    Joseph and Kulesza 2021."""
DELTA = 1e-6
ROUND = """the middle of the population is 0, the roundest of numbers, to which the measure of the grid gives more
    weight than to those around it: releases move from the median of the records towards that of the population. With
    ``measure="uniform"`` of `InverseSensitivity` the errors are those of the exponential mechanism."""
DECILES = tuple(np.arange(1, 10) / 10)


def exponential(generator, x, q, bounds, epsilon, count=None):
    """Draw a number by the distance of its rank from that of the q-quantile: sensitivity 1 for one replaced record."""
    points = np.concatenate([[bounds[0]], np.sort(np.clip(x, *bounds)), [bounds[1]]])
    scores = -np.abs(np.arange(len(x) + 1) - q * len(x))
    i = _drawn(generator, epsilon / 2 * scores + _logarithm(np.diff(points)))
    return generator.uniform(points[i], points[i + 1])


def _logarithm(widths):
    with np.errstate(divide="ignore"):
        return np.log(widths)


def _drawn(generator, logarithms):
    """An index with probability proportional to the exponential of its logarithm."""
    return int(np.argmax(logarithms + generator.gumbel(size=logarithms.shape)))


def trimmed_range(generator, x, q, bounds, epsilon):
    inner = sorted(exponential(generator, x, level, bounds, epsilon / 4) for level in (0.05, 0.95))
    return exponential(generator, x, q, inner, epsilon / 2)


def local_sensitivities(x, bounds):
    """The local sensitivities of the median at distances k = 0, 1, ..., of sorted records, odd in number."""
    n, middle = len(x), len(x) // 2
    padded = np.concatenate([np.full(n, bounds[0]), x, np.full(n, bounds[1])])
    for k in range(n):
        ends = padded[n + middle : n + middle + k + 2]
        yield (ends - padded[n + middle - k - 1 : n + middle + 1]).max()


def smooth_sensitivity(x, bounds, beta):
    """The greatest of the local sensitivities at distance k, times exp(-beta k)."""
    found, width = 0.0, bounds[1] - bounds[0]
    for k, size in enumerate(local_sensitivities(np.sort(np.clip(x, *bounds)), bounds)):
        found = max(found, math.exp(-beta * k) * size)
        if math.exp(-beta * (k + 1)) * width <= found:
            break
    return found


def smooth_median(generator, x, bounds, epsilon, delta=0.0):
    """Cauchy noise has beta = epsilon / 6 and scale 6 S / epsilon, Laplace noise epsilon / (2 log(2 / delta))."""
    if delta:
        size = smooth_sensitivity(x, bounds, epsilon / (2 * math.log(2 / delta)))
        released = np.median(x) + generator.laplace(0, 2 * size / epsilon)
    else:
        size = smooth_sensitivity(x, bounds, epsilon / 6)
        released = np.median(x) + 6 * size / epsilon * generator.standard_cauchy()
    return np.clip(released, *bounds)


def tested_median(generator, x, bounds, epsilon, delta, proposed):
    """Half of epsilon for the test that the bound holds at all records nearby, half for the noise."""
    sizes = local_sensitivities(np.sort(np.clip(x, *bounds)), bounds)
    distance = next(k for k, size in enumerate(sizes) if size > proposed)
    if distance + generator.laplace(0, 2 / epsilon) <= 2 * math.log(1 / (2 * delta)) / epsilon:
        return sum(bounds) / 2
    return np.clip(np.median(x) + generator.laplace(0, 2 * proposed / epsilon), *bounds)


def unbounded_quantile(generator, x, q, epsilon, step=1.001):
    """A replaced record changes all counts in one direction, so each of two exponential noises has half of epsilon."""
    edges = step ** np.arange(25_000) - 1
    counts = np.searchsorted(np.sort(x), edges)
    above = counts + generator.exponential(2 / epsilon, edges.shape) >= q * len(x) + generator.exponential(2 / epsilon)
    return edges[np.argmax(above)]


def approximate_quantiles(generator, x, levels, bounds, epsilon):
    """The middle level first, then those on each side among the records there.

    On each step a record is in one part, so a replaced one costs epsilon_0 within a part, and max(q, 1 - q) epsilon_0
    in each of two; the parts of a step cost the most of these, and all steps together epsilon.
    """
    costs = []

    def plan(levels, step=0, low=0.0, high=1.0):
        if levels:
            level, q, sides = _halved(levels, low, high)
            costs.append((step, max(1.0, 2 * max(q, 1 - q))))
            plan(sides[0], step + 1, low, level)
            plan(sides[1], step + 1, level, high)

    plan(tuple(levels))
    share = epsilon / sum(max(c for step, c in costs if step == s) for s in {step for step, _ in costs})

    def released(levels, x, bounds, low=0.0, high=1.0):
        if not levels:
            return []
        level, q, sides = _halved(levels, low, high)
        found = exponential(generator, x, q, bounds, share)
        left = released(sides[0], x[x <= found], (bounds[0], found), low, level)
        return [*left, found, *released(sides[1], x[x > found], (found, bounds[1]), level, high)]

    return np.array(released(tuple(levels), np.clip(x, *bounds), bounds))


def _halved(levels, low, high):
    """The middle level, its place among the records between two others, and the levels on its sides."""
    middle = len(levels) // 2
    level = levels[middle]
    return level, (level - low) / (high - low), (levels[:middle], levels[middle + 1 :])


def joint_exponential(generator, x, levels, bounds, epsilon):
    """Draw all quantiles at once, by the counts of records between neighbours: sensitivity 2 for one replaced record.

    The first j quantiles end with a run of r in the gap i between records; a[j][i, r - 1] is the logarithm of the sum
    of their weights, where the gap has its width to the power r over r! of room.
    """
    n, m = len(x), len(levels)
    points = np.concatenate([[bounds[0]], np.sort(np.clip(x, *bounds)), [bounds[1]]])
    widths, gaps = _logarithm(np.diff(points)), np.arange(n + 1)
    shares = np.diff([0.0, *levels, 1.0]) * n
    cost = lambda j, counts: -epsilon / 4 * np.abs(counts - shares[j])  # noqa: E731
    between = gaps[:, None] - gaps
    a, entered = [], []
    for j in range(m):
        if j == 0:
            enter = cost(0, gaps)
        else:
            totals = logsumexp(a[j - 1], axis=1)
            steps = np.where(between > 0, cost(j, between), -np.inf) + totals
            enter = logsumexp(steps, axis=1)
        entered.append(enter + widths)
        runs = np.full((n + 1, m), -np.inf)
        runs[:, 0] = entered[j]
        if j:
            stays = cost(j, 0) + widths[:, None] - np.log(np.arange(2, m + 1))
            runs[:, 1:] = np.where(np.isneginf(a[j - 1][:, :-1]), -np.inf, a[j - 1][:, :-1] + stays)
        a.append(runs)
    chosen, weights = [], a[-1] + cost(m, n - gaps)[:, None]
    j = m - 1
    while j >= 0:
        i, r = divmod(_drawn(generator, weights.ravel()), m)
        chosen += [i] * (r + 1)
        j -= r + 1
        if j >= 0:
            earlier = np.where(gaps < i, cost(j + 1, i - gaps), -np.inf)
            weights = a[j] + earlier[:, None]
    places = np.array(chosen)
    return np.sort(generator.uniform(points[places], points[places + 1]))


def _distance(q):
    return lambda released, x: abs(float(released) - np.sort(x)[max(0, math.ceil(q * len(x)) - 1)])


def _distances(levels):
    return lambda released, x: np.abs(np.asarray(released) - np.quantile(x, levels, method="inverted_cdf")).mean()


def _singles():
    for population, n, q, epsilon in (
        (WAITING, 401, 0.5, 0.7),
        (INCOMES, 2001, 0.5, 0.3),
        (MODES, 801, 0.5, 1.5),
        (SCORES, 501, 0.5, 0.5),
        (HEAVY, 1501, 0.5, 2.0),
        (WAITING, 1203, 0.75, 0.5),
    ):
        bounds = float(population.grid.lower), float(population.grid.upper)
        public = {"q": q, "bounds": bounds, "epsilon": epsilon}
        found = [
            Published("exponential mechanism", partial(exponential, **public), ROUND if population is HEAVY else ""),
            Published("exponential, trimmed range", partial(trimmed_range, **public)),
        ]
        if q == 0.5:
            found.append(
                Published("smooth sensitivity, Cauchy", partial(smooth_median, bounds=bounds, epsilon=epsilon))
            )
        yield Case(
            f"{q:g}-quantile" if q != 0.5 else "median", population.name, n, f"{epsilon:g}", drawer(population, n),
            partial(dpf.quantile, q=q, grid=population.grid, epsilon=epsilon), _distance(q), tuple(found),
        )  # fmt: skip


def _tested():
    """With a delta, which dpfast does not spend on one quantile."""
    for population, n, epsilon in ((WAITING, 1001, 1.0), (NORMAL, 4001, 0.8)):
        bounds, width = (float(population.grid.lower), float(population.grid.upper)), 0.01
        slope = np.diff(population.values(np.array([0.5 - width / 2, 0.5 + width / 2])))[0] / width
        needed = (2 * math.log(1 / (2 * DELTA)) / epsilon + 1) / n * slope
        public = {"bounds": bounds, "epsilon": epsilon, "delta": DELTA}
        yield Case(
            "median", population.name, n, f"({epsilon:g}, {DELTA:g})", drawer(population, n),
            partial(dpf.median, grid=population.grid, epsilon=epsilon), _distance(0.5),
            (
                Published("propose-test-release", partial(tested_median, **public, proposed=1.5 * needed)),
                Published("smooth sensitivity, Laplace", partial(smooth_median, **public)),
            ),
        )  # fmt: skip


def _unbounded():
    for population, n, q, epsilon in ((INCOMES, 2001, 0.5, 1.0), (WAITING, 2003, 0.9, 1.0)):
        yield Case(
            f"{q:g}-quantile, no upper bound", population.name, n, f"{epsilon:g}", drawer(population, n),
            partial(dpf.quantile, q=q, epsilon=epsilon), _distance(q),
            (Published("unbounded", partial(unbounded_quantile, q=q, epsilon=epsilon)),),
        )  # fmt: skip


def _several():
    for population, n, levels, epsilon in (
        (WAITING, 1500, DECILES, 1.0),
        (INCOMES, 800, DECILES, 2.0),
        (MODES, 1000, (0.25, 0.5, 0.75), 0.5),
        (SCORES, 1200, DECILES, 0.7),
    ):
        bounds = float(population.grid.lower), float(population.grid.upper)
        public = {"levels": levels, "bounds": bounds, "epsilon": epsilon}
        yield Case(
            f"{len(levels)} quantiles", population.name, n, f"{epsilon:g}", drawer(population, n),
            partial(dpf.quantile, q=levels, grid=population.grid, epsilon=epsilon), _distances(levels),
            (
                Published("approximate quantiles", partial(approximate_quantiles, **public)),
                Published("JointExp", partial(joint_exponential, **public)),
            ),
            datasets=30, rounds=10,
        )  # fmt: skip


def cases():
    yield from _singles()
    yield from _tested()
    yield from _unbounded()
    yield from _several()
