"""Distances of the exponential mechanism under the Kolmogorov-Smirnov distance, theorem 12 of Wasserman and Zhou."""

import math
from functools import lru_cache

import numpy as np
from scipy.stats import beta

import dpfast as dpf
from bench.pages.tables import check, paragraph, slope, table
from dpfast.densities import KolmogorovSmirnov

DRAWS = {True: 20, False: 200}
DISTRIBUTIONS = {"Beta(10, 10)": beta(10, 10), "Beta(2, 3)": beta(2, 3)}


def root_of_size(n, peak):
    """The cube root of 3 n / log(peak): its square is k, and 2 / root the rate, of Theorem 12 at epsilon = 1."""
    return (3 * n / math.log(peak)) ** (1 / 3)


@lru_cache
def found_slopes(quick):
    """For each distribution the slope of the mean distance from its quantiles against n, and the rows of the table."""
    sizes = [1000, 10_000] if quick else [1000, 3162, 10_000, 31_623, 100_000]
    draws, rng, rows, slopes = DRAWS[quick], np.random.default_rng(12), [], {}
    mechanism = KolmogorovSmirnov(grid=dpf.Grid(0, 1), epsilon=1.0)
    for name, distribution in DISTRIBUTIONS.items():
        means, peak = [], distribution.pdf(np.linspace(0, 1, 1001)).max()
        for n in sizes:
            law = mechanism.law(distribution.ppf((np.arange(n) + 0.5) / n))
            means.append(np.mean([law.level(z) / law.last for z in law.sample(draws, rng)]))
            expected = mechanism.error(n)
            check(f"distance, {name}, n = {n}", means[-1], expected, (0.3 if quick else 0.15) * expected)
            cells = f"{n:,}", law.k, f"{means[-1]:.4f}", f"{expected:.4f}", f"{2 / root_of_size(n, peak):.4f}"
            rows.append([name, *cells])
        slopes[name] = slope(sizes, means)
    return slopes, rows


def section(quick):
    """Mean distances from the data, for the default number of records."""
    _, rows = found_slopes(quick)
    about = f"""Mean distance of `KolmogorovSmirnov` from n quantiles of a distribution ({DRAWS[quick]} releases,
        epsilon = 1, the default number k of synthetic records); the expected distance `exponential_distance`, which is
        (pi^2 / (2 k n epsilon))^(1/3); and the rate of Theorem 12, of order n^(-1/3). The distance decreases as
        n^(-5/9) while k grows as n^(2/3), so the distance from the true distribution decreases at the rate of the data,
        n^(-1/2)."""
    headings = ["data", "n", "k", "found", "expected", "Theorem 12"]
    return paragraph(about) + "\n" + table(headings, rows)
