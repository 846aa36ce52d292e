"""Ranges of histograms, and the most frequent keys."""

import math
from functools import partial

import numpy as np

import dpfast as dpf
from bench.published.comparison import Case, Published
from bench.published.populations import INCOMES, MODES, WAITING

TITLE = "Ranges and frequent keys"
TEXT = """Ranges: the root mean squared error, in records, of the sums of 300 random ranges of cells. Each cell by
    itself: Dwork, McSherry, Nissim and Smith 2006. Trees: Hay, Rastogi, Miklau and Suciu 2010, with least squares, of 2
    branches, and of 16 as Qardaji, Yang and Li 2013 advise. Wavelets: Xiao, Wang and Gehrke 2010. A replaced record
    changes two cells by 1. Frequent keys: the mean distance of the count of the i-th released key from the i-th largest
    count, i = 1, ..., k. One person may have a record of each key, as in the papers. Peeling by Gumbel noise, added
    once: Durfee and Rogers 2019; by one-shot Laplace noise of scale k / epsilon: Qiao, Su and Zhang 2021; joint:
    Gillenwater, Joseph, Munoz and Ribero 2022. One record per person: Laplace noise on all counts."""
WORST = """the default for units with records of many keys is the joint mechanism, which keeps the greatest of the k
    differences small: 306 records for 20 of 1,000 keys, where peeling has 389; on average it has more. With typical
    counts and `aim="mean"` the choice is by the mean difference for such counts."""
PAIRS = np.random.default_rng(11).integers(0, 2**20, (300, 2))


def cells(generator, counts, epsilon):
    return np.cumsum(counts + generator.laplace(0, 2 / epsilon, counts.size))


def tree(generator, counts, epsilon, branches):
    """Noise of scale 2 h / epsilon on each of h levels, the root left out as n is public; then least squares."""
    levels = [counts.astype(float)]
    while levels[-1].size > branches:
        levels.append(levels[-1].reshape(-1, branches).sum(axis=1))
    height = len(levels)
    noisy = [level + generator.laplace(0, 2 * height / epsilon, level.size) for level in levels]
    combined = [noisy[0]]
    for l in range(1, height):  # noqa: E741
        below = combined[-1].reshape(-1, branches).sum(axis=1)
        power = branches**l
        combined.append(((branches - 1) * power * noisy[l] + (power - 1) * below) / (branches * power - 1))
    fixed = combined[-1] + (counts.sum() - combined[-1].sum()) / combined[-1].size
    for l in range(height - 2, -1, -1):  # noqa: E741
        sums = combined[l].reshape(-1, branches).sum(axis=1)
        fixed = combined[l] + np.repeat((fixed - sums) / branches, branches)
    return np.cumsum(fixed)


def wavelets(generator, counts, epsilon):
    """Haar coefficients: half the difference of the means of two halves of size s changes by 1 / (2 s).

    The noise is inversely proportional to the size; log2(cells) coefficients change for each record, and the mean is
    public.
    """
    means, steps = counts.astype(float), []
    height = int(math.log2(counts.size))
    for l in range(height):  # noqa: E741
        pairs, size = means.reshape(-1, 2), 2**l
        scale = 2 * height / epsilon / (2 * size)
        steps.append((pairs[:, 0] - pairs[:, 1]) / 2 + generator.laplace(0, scale, len(pairs)))
        means = pairs.mean(axis=1)
    for step in reversed(steps):
        means = np.column_stack([means + step, means - step]).ravel()
    return np.cumsum(means)


def _squared_ranges(cumulative, counts):
    """The mean squared error of sums of random ranges of cells."""
    ends = np.sort(PAIRS % (counts.size + 1), axis=1)
    off = np.concatenate([[0], cumulative]) - np.concatenate([[0], np.cumsum(counts)])
    return np.mean((off[ends[:, 1]] - off[ends[:, 0]]) ** 2)


def _ranges():
    for population, n, size, epsilon in (
        (WAITING, 3000, 1024, 1.0),
        (INCOMES, 20_000, 4096, 0.3),
        (MODES, 8000, 256, 0.5),
    ):
        grid = dpf.Grid(0, size - 1, step=1)
        width = (population.grid.upper - population.grid.lower) / size

        def draw(generator, population=population, n=n, size=size, width=width):
            codes = (population.values(generator.random(n)) - population.grid.lower) // width
            return (np.bincount(np.clip(codes, 0, size - 1).astype(np.int64), minlength=size),)

        def ours(counts, grid=grid, size=size, epsilon=epsilon):
            records = np.repeat(np.arange(size), counts)
            released = dpf.histogram(records, size, grid=grid, epsilon=epsilon, workload="ranges")
            return np.cumsum(released.counts)

        public = {"epsilon": epsilon}
        yield Case(
            f"ranges of {size:,} cells", population.name, n, f"{epsilon:g}", draw, ours, _squared_ranges,
            (
                Published("each cell", partial(cells, **public)),
                Published("tree of 2", partial(tree, **public, branches=2)),
                *([Published("tree of 16", partial(tree, **public, branches=16))] * (size != 1024)),
                Published("wavelets", partial(wavelets, **public)),
            ),
            root=True, datasets=20, rounds=30,
        )  # fmt: skip


def gumbel_peeling(generator, counts, k, epsilon):
    """Each peel is the exponential mechanism of monotone scores, with epsilon / k."""
    return np.argsort(-(counts + generator.gumbel(0, k / epsilon, counts.size)))[:k]


def laplace_peeling(generator, counts, k, epsilon):
    """One-sided changes of all counts by at most 1: Laplace noise of scale k / epsilon for the identities of k keys."""
    return np.argsort(-(counts + generator.laplace(0, k / epsilon, counts.size)))[:k]


def joint_top(generator, counts, k, epsilon):
    """Draw all k keys by -max_i (c_(i) - c of the i-th key), sensitivity 1, monotone: exponent epsilon / 2.

    All sequences with the same largest difference are counted: the i-th key has any of those with counts above a limit
    that are left, and limits fall with i.
    """
    order = np.argsort(-counts, kind="stable")
    ordered = counts[order]
    losses = (ordered[:k, None] - ordered[None, :]).astype(float)
    distinct = np.unique(np.maximum(losses, 0))

    def logarithm(limit):
        places = np.searchsorted(-ordered, -(ordered[:k] - limit), side="right") - np.arange(k)
        return np.log(places).sum() if places.min() > 0 else -np.inf

    totals = np.array([logarithm(limit) for limit in distinct])
    before = np.concatenate([[-np.inf], totals[:-1]])
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = totals + np.log1p(-np.exp(before - totals))
    weights = np.where(np.isnan(exact), -np.inf, exact) - epsilon / 2 * distinct
    limit = distinct[np.argmax(weights + generator.gumbel(size=weights.size))]
    return order[_sequence(generator, ordered, k, limit)]


def _sequence(generator, ordered, k, limit):
    """Places of k different keys, each within the limit, at least one at it: by rejection of the others."""
    allowed = np.searchsorted(-ordered, -(ordered[:k] - limit), side="right")
    for _ in range(10_000):
        chosen = []
        for i in range(k):
            left = np.setdiff1d(np.arange(allowed[i]), chosen, assume_unique=True)
            chosen.append(int(generator.choice(left)))
        if not limit or np.max(ordered[:k] - ordered[chosen]) == limit:
            break
    return np.array(chosen)


def _missed(released, counts):
    k = len(released)
    return np.abs(np.sort(counts)[::-1][:k] - counts[released]).mean()


def _tops():
    for d, k, epsilon, n, power in ((100, 5, 0.1, 3000, 1.1), (1000, 20, 0.3, 30_000, 0.9)):
        keys = list(range(d))
        shares = 1 / np.arange(1, d + 1) ** power

        def draw(generator, n=n, shares=shares):
            return (generator.permutation(generator.poisson(n * shares / shares.sum())),)

        def ours(counts, mechanism):
            return mechanism(np.repeat(np.arange(counts.size), counts)).astype(np.int64)

        public = {"k": k, "epsilon": epsilon}
        persons = {"epsilon": epsilon, "contributions": d, "per_key": 1}
        single = dpf.TopK(k, keys, epsilon=epsilon)
        aimed = {"typical": (n * shares / shares.sum()).tolist(), "aim": "mean"}
        for option, given in (("", {}), (", typical counts given", aimed)):
            yield Case(
                f"top {k} of {d:,}, all keys for a person{option}", "Zipf", n, f"{epsilon:g}, add-remove", draw,
                partial(ours, mechanism=dpf.TopK(k, keys, **given, **persons)), _missed,
                (
                    Published("Gumbel peeling", partial(gumbel_peeling, **public), WORST),
                    Published("Laplace, one shot", partial(laplace_peeling, **public), WORST),
                    Published("joint", partial(joint_top, **public), WORST),
                ),
                datasets=20, rounds=20,
            )  # fmt: skip
        yield Case(
            f"top {k} of {d:,}, one key for a person", "Zipf", n, f"{epsilon:g}, add-remove", draw,
            partial(ours, mechanism=single), _missed,
            (Published("Laplace noise on counts", partial(laplace_peeling, k=k, epsilon=k * epsilon)),),
            datasets=20, rounds=20,
        )  # fmt: skip


def cases():
    yield from _ranges()
    yield from _tops()
