"""Coverage and width of `dpfast.interval`: ``python -m bench.intervals`` prints docs/results/intervals.md."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

import dpfast as dpf
from bench.pages.tables import digits, size, table

CONFIDENCE, SEED = 0.95, 20261122
_CELLS = 2**20


@dataclass(frozen=True)
class Population:
    """A distribution by its quantile function, with bounds that an analyst would choose without the data."""

    name: str
    bounds: tuple[float, float]
    ppf: Callable

    def clamped_moments(self):
        x = np.clip(self.ppf((np.arange(_CELLS) + 0.5) / _CELLS), *self.bounds)
        return x.mean(), x.std()


POPULATIONS = {
    population.name: population
    for population in (
        Population("normal", (-10.0, 10.0), ndtri),
        Population("uniform", (0.0, 1.0), lambda u: u),
        Population("lognormal", (0.0, 500_000.0), lambda u: np.exp(10.5 + 0.6 * ndtri(u))),
        Population("Pareto", (0.0, 1000.0), lambda u: (1 - u) ** (-1 / 1.2)),
        Population("ages", (0.0, 120.0), lambda u: 18 + np.floor(73 * u)),
        Population("ratings", (0.0, 10.0), lambda u: 1.0 + np.searchsorted([0.1, 0.25, 0.52, 0.8], u)),
        Population("60 % zeros", (-10.0, 100.0), lambda u: -np.log1p(-np.clip((u - 0.6) / 0.4, 0, 1))),
        Population("5 % ones", (0.0, 1.0), lambda u: np.where(u > 0.95, 1.0, 0.0)),
    )
}


@dataclass(frozen=True)
class Setting:
    """One row: a population, a statistic ("mean", "count" or the level of a quantile), n, epsilon, bounds or not."""

    population: str
    statistic: str | float
    n: int
    epsilon: float
    bounded: bool = True

    @property
    def _of(self):
        return POPULATIONS[self.population]

    def target(self):
        """The population value, or the exact count."""
        if self.statistic == "count":
            return self.n
        if self.statistic == "mean":
            return self._of.clamped_moments()[0]
        return float(self._of.ppf(np.array([self.statistic]))[0])

    def width(self):
        """The width of the usual interval without privacy: normal for a mean, of order statistics for a quantile."""
        if self.statistic == "count":
            return 0.0
        if self.statistic == "mean":
            return 2 * -ndtri((1 - CONFIDENCE) / 2) * self._of.clamped_moments()[1] / np.sqrt(self.n)
        ranks = binom.ppf([(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], self.n, self.statistic)
        low, high = self._of.ppf(np.clip(ranks / self.n, 0, 1 - 0.5 / self.n))
        return float(high - low)

    def estimates(self, count):
        """`count` estimates with intervals, of independent samples, as rows (value, low, high)."""
        rng = np.random.default_rng(SEED)
        options = {"epsilon": self.epsilon, "confidence": CONFIDENCE, "rng": rng}
        if self.bounded and self.statistic != "count":
            options["bounds"] = self._of.bounds
        quantile = isinstance(self.statistic, float)
        statistic = dpf.statistics.Quantile(self.statistic) if quantile else self.statistic
        return np.array([tuple(dpf.interval(statistic, self.sample(rng), **options)) for _ in range(count)])

    def sample(self, rng):
        return self._of.ppf(rng.random(self.n))

    def covered(self, estimates):
        """The number of intervals that contain the target."""
        return int(np.count_nonzero((estimates[:, 1] <= self.target()) & (self.target() <= estimates[:, 2])))


SETTINGS = [
    *(Setting(name, 0.5, 1000, 1.0) for name in POPULATIONS),
    *(Setting(name, 0.5, 20_000, 1.0, False) for name in ("normal", "lognormal", "Pareto", "ages", "60 % zeros")),
    *(Setting(name, 0.9, 20_000, 0.5) for name in ("normal", "lognormal", "Pareto", "ages", "ratings", "60 % zeros")),
    Setting("lognormal", 0.5, 50, 4.0),
    Setting("lognormal", 0.5, 1000, 0.1),
    Setting("lognormal", 0.9, 1000, 4.0, False),
    Setting("ages", 0.5, 200, 4.0),
    Setting("ratings", 0.5, 5000, 2.0, False),
    Setting("lognormal", 0.5, 1_000_000, 1.0, False),
    Setting("ages", 0.5, 1_000_000, 0.1),
    *(Setting(name, "mean", 50, 4.0) for name in ("normal", "lognormal", "Pareto", "5 % ones")),
    *(Setting(name, "mean", 1000, 1.0) for name in ("normal", "lognormal", "Pareto", "60 % zeros", "5 % ones")),
    *(Setting(name, "mean", 20_000, 1.0) for name in ("lognormal", "ages")),
    Setting("lognormal", "mean", 1000, 0.1),
    Setting("lognormal", "mean", 1_000_000, 1.0),
    Setting("ages", "count", 500, 0.1),
    Setting("ages", "count", 500, 1.0),
]


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.intervals", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few samples: a smoke test")
    quick = parser.parse_args(arguments).quick
    rows = []
    for setting in SETTINGS:
        count = 5 if quick else 100 if setting.n > 100_000 else 1000
        estimates, usual = setting.estimates(count), setting.width()
        with np.errstate(over="ignore"):  # of all floats
            widths = estimates[:, 2] - estimates[:, 1]
        name = f"{setting.statistic}-quantile" if isinstance(setting.statistic, float) else setting.statistic
        middle = float(np.median(widths))
        rows.append(
            [
                setting.population if setting.statistic != "count" else "any",
                name,
                size(setting.n),
                f"{setting.epsilon:g}",
                "yes" if setting.bounded and setting.statistic != "count" else "no",
                f"{100 * setting.covered(estimates) / count:.1f} %",
                digits(middle) if middle else "0",
                digits(middle / usual) if usual else "",
            ]
        )
    headings = ["population", "statistic", "n", "epsilon", "bounds", "coverage", "width", "relative to no privacy"]
    print(table(headings, rows))


if __name__ == "__main__":
    main()
