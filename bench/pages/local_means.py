"""Mean and median pay under local privacy, figures 5 and 6 and table 1 of Duchi, Jordan and Wainwright (section 6.1).

A section of ``python -m bench.local_experiments``. The population is the pay of 2010 of the University of
California (folder `DPFAST_DATA`), or, without the file, made-up lognormal pay with a Pareto tail.
"""

from functools import lru_cache

import numpy as np

from bench.pages.populations import DATA
from bench.pages.tables import digits, paragraph, table
from dpfast import local

_PAY = DATA / "uc_pay_2010_2023.csv.gz"
MOMENTS = (1.2, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0)
MEAN_EPSILONS = (0.5, 1.0, 2.0)
VARIANTS = {
    "as published": {"method": "laplace", "truncation": "paper"},
    "best T, Laplace": {"method": "laplace"},
    "best T, codebook": {},
}
# Widths of the bounds in units of about the median.
RADII = (1.5, 2.0, 4.0, 8.0, 16.0)
MEDIAN_EPSILON = 1.0
_UNIT = 25_000.0


def population():
    """Yearly pay, at least 0, and its description."""
    if _PAY.exists():
        year, gross = np.loadtxt(_PAY, delimiter=",", skiprows=1, usecols=(0, 3)).T
        return np.maximum(gross[year == 2010], 0.0), "pay of 2010, University of California"
    rng = np.random.default_rng(0)
    pay = rng.lognormal(np.log(_UNIT), 1.0, 25_000)
    return np.where(rng.random(pay.size) < 0.02, 150_000 * (1 + rng.pareto(3.0, pay.size)), pay), "made-up pay"


@lru_cache
def mean_rows(quick):
    """(epsilon, moment, variant, mean absolute error / mean): half of the people in each run, moments known exactly."""
    pay, _ = population()
    runs, rng, found = 4 if quick else 100, np.random.default_rng(1), []
    moments = MOMENTS[::3] if quick else MOMENTS
    largest = pay.max()
    for epsilon in MEAN_EPSILONS:
        for moment in moments:
            scale = largest * np.mean((pay / largest) ** moment) ** (1 / moment)
            for variant, options in VARIANTS.items():
                public = {"epsilon": epsilon, "moment": moment, "scale": scale, **options}
                errors = [
                    abs(local.mean(rng.choice(pay, pay.size // 2, replace=False), rng=rng, **public) - pay.mean())
                    for _ in range(runs)
                ]
                found.append((epsilon, moment, variant, np.mean(errors) / pay.mean()))
    return found


@lru_cache
def median_rows(quick):
    """(radius, method, mean gap, 5 % and 95 % quantile), gap = E|X - estimate| - E|X - median| over the median."""
    pay, _ = population()
    runs, rng, found = 4 if quick else 100, np.random.default_rng(2), []
    ordered = np.sort(pay)
    center = np.median(pay)

    def gap(theta):
        return (np.abs(ordered - theta).mean() - np.abs(ordered - center).mean()) / center

    for radius in RADII[::2] if quick else RADII:
        public = {"bounds": (0.0, radius * _UNIT), "epsilon": MEDIAN_EPSILON}
        methods = {
            "descent, averaging steps": lambda x, p=public: local.median(x, **p, rng=rng),
            "descent, minimax steps": lambda x, p=public: local.median(x, **p, steps="minimax", rng=rng),
            "naive": lambda x, p=public: local.median_naive(x, **p, rng=rng),
        }
        for name, release in methods.items():
            gaps = [gap(release(rng.choice(pay, pay.size))) for _ in range(runs)]
            found.append((radius, name, np.mean(gaps), *np.quantile(gaps, [0.05, 0.95])))
    return found


def section(quick):
    """Two tables: means against the assumed moment, medians against the width of the bounds."""
    pay, name = population()
    lines, best = {}, {}
    for epsilon, moment, variant, error in mean_rows(quick):
        lines.setdefault((f"{epsilon:g}", f"{moment:g}"), []).append(digits(error))
        least = best.get((epsilon, variant), (np.inf, 0.0))
        best[epsilon, variant] = min(least, (error, moment))
    about_means = f"""Means of {name}, {pay.size // 2:,} of {pay.size:,} people drawn, values clipped at a threshold
        that depends on an assumed moment: mean absolute error in units of the mean, {pay.mean():,.0f}. "as published"
        is equation (10) with T = (n epsilon^2)^(1/2k); "best T" minimises the proved bound; "codebook" is
        `Interval`."""
    means = table(["epsilon", "moment", *VARIANTS], [[*key, *values] for key, values in lines.items()])
    winners = [
        [f"{epsilon:g}", *(f"{digits(best[epsilon, v][0])} (k = {best[epsilon, v][1]:g})" for v in VARIANTS)]
        for epsilon in MEAN_EPSILONS
    ]
    gaps = {}
    for radius, method, mean, low, high in median_rows(quick):
        gaps.setdefault(f"{radius:g}", {})[method] = f"{digits(mean)} ({digits(low)} to {digits(high)})"
    about_medians = f"""Medians of {pay.size:,} people drawn with replacement, epsilon = {MEDIAN_EPSILON:g}, bounds from
        0 to r times {_UNIT:,.0f}: E|X - estimate| - E|X - median| in units of the median, its mean and the range of 90
        % of the runs. "naive" is the median of values with Laplace noise, equation (41)."""
    methods = list(next(iter(gaps.values())))
    medians = table(["r", *methods], [[radius, *(row[m] for m in methods)] for radius, row in gaps.items()])
    parts = [
        "## Means under a moment\n",
        paragraph(about_means),
        means,
        paragraph("The best moment for each, chosen with hindsight (table 1 of the paper):"),
        table(["epsilon", *VARIANTS], winners),
        "## Medians\n",
        paragraph(about_medians),
        medians,
    ]
    return "\n".join(parts)
