"""The error of ``method="auto"`` relative to the best of the mechanisms that it compares."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

import dpfast as dpf
from bench.pages.location_accuracy import mean_absolute
from bench.pages.populations import Population, populations
from bench.pages.tables import digits, paragraph, size, table
from dpfast.laws import ScalarLaw

EPSILONS = (0.1, 1.0, 4.0)
DATASETS = {100: 30, 1000: 16, 10_000: 6}
WIDER = (1, 100)  # the bounds, in units of those of the population
TRIM = 0.1
CLOSE = 1.1  # of the best, relative to its error


def _trimmed(x):
    cut = math.floor(TRIM * x.size)
    return np.sort(x)[cut : x.size - cut].mean()


def _winsorized(x):
    x, cut = np.sort(x), math.floor(TRIM * x.size)
    return x.clip(x[cut], x[x.size - cut - 1]).mean()


def _quantile(x):
    return np.sort(x)[math.ceil(0.9 * x.size) - 1]


# Functions: what they take after x, and the exact statistic.
JOBS = {
    "trimmed_mean": ((TRIM,), _trimmed),
    "winsorized_mean": ((TRIM,), _winsorized),
    "mean": ((), np.mean),
    "median": ((), lambda x: np.sort(x)[(x.size - 1) // 2]),
    "quantile": ((0.9,), _quantile),
}


class Assumed:
    """A population as the distribution that a user assumes: a fine copy of it."""

    def __init__(self, population):
        self._values = np.sort(population.even(2**20).astype(np.float64))

    def ppf(self, u):
        return self._values[np.minimum((np.asarray(u) * self._values.size).astype(np.int64), self._values.size - 1)]

    def mean(self):
        return float(self._values.mean())


@dataclass(frozen=True)
class Row:
    """One setting: mean absolute errors to the population value by method, and the methods that are taken.

    `taken` is the choice without an assumption, `typical` that with two quantiles of the population as typical values,
    `assumed` the one with the population as `distribution`.
    """

    function: str
    population: Population
    wider: int
    n: int
    epsilon: float
    default: str
    taken: str
    typical: str
    assumed: str
    errors: dict

    @property
    def best(self):
        """The method with the least error."""
        return min(self.errors, key=self.errors.get)

    def to_best(self, method):
        """The error of a method relative to the least."""
        return self.errors[method] / self.errors[self.best]


_assumed = cache(Assumed)


def typical(population):
    """The quantiles 0.05 and 0.95, to one digit; with the upper one a step higher if they are equal."""
    low, high = (float(f"{x:.0e}") for x in _assumed(population).ppf([0.05, 0.95]))
    return (low, high) if low < high else (low, low + population.grid.step)


def _wide(grid, factor):
    """Bounds that are so many times wider, with the same step."""
    lower = grid.lower * factor
    return dpf.Grid(lower, lower + (grid.upper - grid.lower) * factor, step=grid.step)


def _error(mechanism, x, target, seed):
    """E|release - target|: from the law, or from draws where there is no law of numbers."""
    try:
        law = mechanism.law(x)
    except TypeError:
        law = None
    if isinstance(law, ScalarLaw):
        return mean_absolute(law, target)
    generator = np.random.default_rng(seed)
    return np.mean([abs(mechanism(x, rng=generator) - target) for _ in range(8)])


def measured(function, population, wider, n, epsilon, datasets):
    """The row of a setting."""
    arguments, statistic = JOBS[function]
    public = {"n": n, "grid": _wide(population.grid, wider), "epsilon": epsilon}
    alone = dpf.explain(function, *arguments, **public)
    assuming = dpf.explain(function, *arguments, **public, distribution=_assumed(population))
    between = dpf.explain(function, *arguments, **public, distribution=typical(population))
    candidates = {**alone.candidates, **assuming.candidates}
    target = statistic(population.even(2**20).astype(float))
    errors = {method: [] for method in candidates}
    for seed in range(datasets):
        x = population.sample(n, seed)
        for method, mechanism in candidates.items():
            try:
                errors[method].append(_error(mechanism, x, target, seed))
            except ValueError:  # too few records, by their public number
                errors[method].append(math.inf)
    means = {method: max(float(np.mean(each)), 1e-12) for method, each in errors.items()}
    methods = alone.default, alone.method, between.method, assuming.method
    return Row(function, population, wider, n, epsilon, *methods, means)


@cache
def rows(quick=False):
    """Every setting."""
    sizes = {100: 3, 1000: 2} if quick else DATASETS
    return [
        measured(function, population, wider, n, epsilon, datasets)
        for function in JOBS
        for population in populations()
        for wider in WIDER
        for n, datasets in sizes.items()
        for epsilon in EPSILONS
    ]


def section(quick):
    """How often "auto" is within 10 % of the best mechanism, with and without an assumption, and where it is not."""
    summary = []
    for function in JOBS:
        of = [row for row in rows(quick) if row.function == function]
        ways = ("default", "taken", "typical", "assumed")
        summary.append([function, f"{len(of)}", *(cell for way in ways for cell in _share(of, way))])
    names = ("default", "auto", "auto, typical values", "auto, distribution=")
    ways = [f"{name}, {what}" for name in names for what in ("close", "worst")]
    far = [row for row in rows(quick) if max(map(row.to_best, (row.assumed, row.typical, row.taken))) > CLOSE]
    lines = [
        [
            row.function,
            row.population.name,
            f"x {row.wider}",
            size(row.n),
            f"{row.epsilon:g}",
            row.best,
            f"{row.taken} ({digits(row.to_best(row.taken))})",
            f"{row.typical} ({digits(row.to_best(row.typical))})",
            f"{row.assumed} ({digits(row.to_best(row.assumed))})",
        ]
        for row in far
    ]
    headings = ["function", "data", "bounds", "n", "epsilon", "best", *names[1:]]
    text = """Expected errors E|release - population value| relative to the least of the mechanisms that are compared:
        how many settings are close, that is within 10 % of it, and the largest ratio. Without an assumption, "auto" may
        not lose more than 2 % against the default for any reference distribution (docs/guides/choosing.md), so that it
        keeps the default where another mechanism is better for these data but worse for others; with `distribution=`,
        here that of the data, it takes the best; typical values are the quantiles 0.05 and 0.95, to one digit. Bounds
        are those of the accuracy tables, and 100 times wider. The second table has all settings beyond 10 %."""
    return "\n".join([paragraph(text), table(["function", "settings", *ways], summary), table(headings, lines)])


def _share(of, way):
    ratios = [row.to_best(getattr(row, way)) for row in of]
    return f"{sum(ratio <= CLOSE for ratio in ratios)}", digits(max(ratios))
