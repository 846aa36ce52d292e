"""The error of ``method="auto"`` relative to that of each mechanism that it can take."""

from dataclasses import dataclass

import numpy as np

import dpfast as dpf
from bench.pages.location_accuracy import center, mean_absolute
from bench.pages.populations import Population, populations
from bench.pages.tables import digits, size, table
from dpfast.laws import ScalarLaw

EPSILONS = (0.1, 0.5, 1.0, 4.0)
DATASETS = {100: 60, 300: 50, 1000: 40, 10_000: 12, 100_000: 4}
WIDER = (1, 100)  # the bounds, in units of those of the population
TRIM = 0.1


def _trimmed(x, cut):
    return np.sort(x)[cut : x.size - cut].mean()


def _winsorized(x, cut):
    return np.sort(x).clip(np.partition(x, cut)[cut], np.partition(x, x.size - cut - 1)[x.size - cut - 1]).mean()


# Functions: what they take after x, and the exact statistic.
JOBS = {
    "trimmed_mean": ((TRIM,), lambda x: _trimmed(x, int(TRIM * x.size))),
    "winsorized_mean": ((TRIM,), lambda x: _winsorized(x, int(TRIM * x.size))),
    "mean": ((), np.mean),
}


@dataclass(frozen=True)
class Row:
    """Mean absolute errors of a function in one setting, by method: to the population value, and to the data's."""

    function: str
    population: Population
    wider: int
    n: int
    epsilon: float
    taken: str
    default: str
    totals: dict
    noise: dict

    @property
    def best(self):
        """The method with the least error."""
        return min(self.totals, key=self.totals.get)

    @property
    def to_best(self):
        """The error of "auto" relative to the best single choice."""
        return self.totals[self.taken] / self.totals[self.best]

    @property
    def to_default(self):
        """The error of "auto" relative to the default."""
        return self.totals[self.taken] / self.totals[self.default]

    @property
    def noise_to_default(self):
        """The noise of "auto" relative to that of the default."""
        return self.noise[self.taken] / self.noise[self.default]


def _wide(grid, factor):
    """Bounds that are so many times wider, with the same step."""
    lower = grid.lower * factor
    return dpf.Grid(lower, lower + (grid.upper - grid.lower) * factor, step=grid.step)


def _errors(mechanism, x, exact, target, seed):
    """E|release - target| and E|release - exact|: from the law, or from draws where it is not a law of numbers."""
    try:
        law = mechanism.law(x)
    except TypeError:
        law = None
    if isinstance(law, ScalarLaw):
        return mean_absolute(law, target), mean_absolute(law, law.value(center(law)))
    draws = mechanism.release(x, size=32, rng=np.random.default_rng(seed))
    return np.abs(draws - target).mean(), np.abs(draws - exact).mean()


def measured(function, population, wider, n, epsilon, datasets):
    """The row of a setting."""
    arguments, statistic = JOBS[function]
    choice = dpf.explain(function, *arguments, n=n, grid=_wide(population.grid, wider), epsilon=epsilon)
    target = statistic(population.even(2**20).astype(float))
    totals, noise = ({method: [] for method in choice.candidates} for _ in range(2))
    for seed in range(datasets):
        x = population.sample(n, seed)
        exact = statistic(x.astype(float))
        for method, mechanism in choice.candidates.items():
            total, own = _errors(mechanism, x, exact, target, seed)
            totals[method].append(total)
            noise[method].append(own)
    means = ({method: float(np.mean(errors)) for method, errors in part.items()} for part in (totals, noise))
    return Row(function, population, wider, n, epsilon, choice.method, choice.default, *means)


def rows(quick=False):
    """Every setting in which several mechanisms are compared."""
    sizes = {100: 3, 1000: 2} if quick else DATASETS
    for function in JOBS:
        for population in populations():
            for wider in WIDER:
                for n, datasets in sizes.items():
                    for epsilon in EPSILONS:
                        yield measured(function, population, wider, n, epsilon, datasets)


def section(quick):
    """The table of errors of "auto" relative to the best single choice and to the default."""
    headings = ["function", "data", "bounds", "n", "epsilon", "taken", "best", "auto / best", "auto / default", "noise"]
    lines = [
        [
            row.function,
            row.population.name,
            f"x {row.wider}",
            size(row.n),
            f"{row.epsilon:g}",
            row.taken,
            row.best,
            digits(row.to_best),
            digits(row.to_default),
            digits(row.noise_to_default),
        ]
        for row in rows(quick)
        if len(row.totals) > 1
    ]
    return table(headings, lines)
