"""Variances and standard deviations of bounded numbers."""

import math
from functools import partial

import numpy as np
from scipy import stats

import dpfast as dpf
from bench.peers.records import drawer
from bench.published.comparison import Case, Published
from bench.published.populations import INCOMES, NORMAL, SCORES, WAITING

TITLE = "Variances and standard deviations"
TEXT = """Mean distances from the variance or the standard deviation of the records. Two sums: the first two moments
    around the middle of the bounds with half of epsilon each. Clipped pairs: Karwa and Vadhan 2018, half of epsilon for
    the fullest of the binades of differences of neighbours in the order of the records, half for their squares, clipped
    three binades above. CoinPress: Biswas, Dong, Kamath and Ullman 2020, three or six rounds on such pairs, for normal
    data."""
DELTA = 1e-6
DEFAULT = """without a `distribution` the default has noise on the variance, in proportion to the square of the width.
    Two sums have less where the mean is near the middle of the bounds, and more where it is near one of them; any
    `distribution=` chooses."""
LITTLE = """with few records the four quantiles take a large share of epsilon and reach far beyond the data; with more
    records the order is the other one."""


def two_sums(generator, x, bounds, epsilon):
    middle, reach, n = sum(bounds) / 2, (bounds[1] - bounds[0]) / 2, len(x)
    away = np.clip(x, *bounds) - middle
    first = away.mean() + generator.laplace(0, 4 * reach / (n * epsilon))
    second = (away**2).mean() + generator.laplace(0, 2 * reach**2 / (n * epsilon))
    return max(0.0, second - first**2)


def pair_halves(x):
    """Half the squared differences of neighbours: means of the variance, each record in one pair."""
    return np.diff(x[: len(x) // 2 * 2].reshape(-1, 2)).ravel() ** 2 / 2


def clipped_pairs(generator, x, bounds, epsilon, finest=2.0**-10, above=3):
    halves = pair_halves(np.clip(x, *bounds))
    edges = 2.0 ** np.arange(math.log2(finest), math.ceil(math.log2((bounds[1] - bounds[0]) ** 2)) + 1)
    counts = np.histogram(np.clip(halves, edges[0], edges[-1]), edges)[0] + generator.laplace(
        0, 4 / epsilon, len(edges) - 1
    )
    limit = edges[np.argmax(counts)] * 2.0**above
    noise = generator.laplace(0, 2 * limit / (len(halves) * epsilon))
    return max(0.0, np.minimum(halves, limit).mean() + noise)


def coinpress_variance(generator, x, bounds, mu, largest, rounds, beta=0.01):
    """Clip halves of squares, which are a variance times a chi-square, by an upper bound of it that falls."""
    halves, upper = pair_halves(np.clip(x, *bounds)), largest
    m, tail = len(halves), stats.norm.isf(beta / rounds)
    for share in [*[0.25 / (rounds - 1)] * (rounds - 1), 0.75]:
        limit = upper * stats.chi2.isf(beta / (m * rounds), 1)
        noise = limit / m / (mu * math.sqrt(share))
        found = np.minimum(halves, limit).mean() + noise * generator.normal()
        upper = min(upper, max(found + tail * noise, 0) / max(1 - tail * math.sqrt(2 / m), 0.1))
    return max(0.0, found)


def root_of(algorithm, generator, x, **public):
    """The standard deviation by an algorithm for variances."""
    return math.sqrt(algorithm(generator, x, **public))


def cases():
    for population, n, epsilon, assumed in (
        (NORMAL, 3000, 1.0, stats.norm(0, 2)),
        (SCORES, 800, 0.5, stats.laplace(100, 12)),
        (WAITING, 2000, 1.0, stats.gamma(2, scale=6)),
        (INCOMES, 4000, 2.0, stats.pareto(2.5, scale=20_000)),
    ):
        bounds = float(population.grid.lower), float(population.grid.upper)
        public = {"bounds": bounds, "epsilon": epsilon}
        for name, function, with_public, exact in (
            ("variance", dpf.variance, partial, np.var),
            ("standard deviation", dpf.std, partial(partial, root_of), np.std),
        ):
            moments = Published("two sums", with_public(two_sums, **public), DEFAULT)
            pairs = Published("clipped pairs", with_public(clipped_pairs, **public), LITTLE)
            for option, given, algorithms in (
                ("", {}, (moments,)),
                (", private bounds", {"method": "private-bounds"}, (pairs,)),
                (", distribution given", {"distribution": assumed}, (moments, pairs)),
            ):
                yield Case(
                    name + option, population.name, n, f"{epsilon:g}", drawer(population, n),
                    partial(function, grid=population.grid, epsilon=epsilon, **given),
                    lambda released, x, exact=exact: abs(float(released) - exact(x)), algorithms,
                )  # fmt: skip
    for n, epsilon in ((2000, 1.0), (6000, 0.5)):
        bounds = float(NORMAL.grid.lower), float(NORMAL.grid.upper)
        public = {"bounds": bounds, "mu": dpf.theory.gaussian_mu(epsilon, DELTA), "largest": 400.0}
        yield Case(
            "variance, distribution given", NORMAL.name, n, f"({epsilon:g}, {DELTA:g})", drawer(NORMAL, n),
            partial(dpf.variance, grid=NORMAL.grid, epsilon=epsilon, distribution=stats.norm(0, 2)),
            lambda released, x: abs(float(released) - x.var()),
            tuple(
                Published(f"CoinPress, {k} rounds", partial(coinpress_variance, **public, rounds=k))
                for k in (3, 6)
            ),
        )  # fmt: skip
