"""Shares of many yes-or-no answers under local privacy, figure 1 of Duchi, Jordan and Wainwright (section 6.2).

A section of ``python -m bench.local_experiments``. Each person has d bits, the estimate is the mean
vector, and the error is its largest coordinate. Samples are drawn with replacement from tables of data (folder
`DPFAST_DATA`), from independent bits in 27 columns as in the paper, with made-up shares, and, without the folder, from
independent bits with published shares.
"""

from functools import lru_cache

import numpy as np

from bench.pages.populations import DATA
from bench.pages.tables import digits, paragraph, size, table
from dpfast import local

EPSILON = 1.0
METHODS = ("none", "subset", "majority", "laplace")

# Shares of people who ever used a pain reliever without prescription (National Survey on Drug Use and Health 2014).
_SHARES = (0.048, 0.069, 0.029, 0.014, 0.017, 0.011, 0.089)


def populations():
    """Tables of 0 and 1 by name: real ones if their files exist, and simulated ones."""
    pain, drugs = DATA / "nsduh2014_pain_relievers.csv.gz", DATA / "drug_consumption_uci.csv.gz"
    rng, found = np.random.default_rng(0), {}
    if pain.exists():
        found["pain relievers"] = _read(pain)
    if drugs.exists():
        found["19 substances"] = (_read(drugs) >= 1).astype(np.uint8)
    drawn = {"independent": np.geomspace(0.3, 0.003, 27)}
    if not found:
        drawn["pain relievers, independent"] = np.array(_SHARES)
    for name, shares in drawn.items():
        found[name] = (rng.random((100_000, shares.size)) < shares).astype(np.uint8)
    return found


def _read(path):
    return np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.uint8)


def estimate(x, method, rng):
    """The mean of the rows of bits, each person with EPSILON."""
    n, d = x.shape
    if method == "none":
        return x.mean(axis=0)
    if method == "laplace":  # scale d / epsilon per bit; the sum of n draws is the difference of two gamma variables
        noise = rng.standard_gamma(n, d) - rng.standard_gamma(n, d)
        return x.mean(axis=0) + noise * d / (EPSILON * n)
    people = local.Hypercube(d, EPSILON, method=method)  # of 2 x - 1, in {-1, 1}^d
    return (people.estimate(people.randomize(2 * x.astype(np.int8) - 1, rng=rng)) + 1) / 2


@lru_cache
def rows(quick):
    """(population, d, n, method, mean error, its 5 % and 95 % quantile) of the largest error of a coordinate."""
    runs, sizes = (8, (1000, 10_000)) if quick else (100, (1000, 10_000, 100_000))
    rng, found = np.random.default_rng(1), []
    for name, people in populations().items():
        truth = people.mean(axis=0)
        for n in sizes:
            errors = np.array([_errors(people, truth, n, rng) for _ in range(runs)])
            low, high = np.quantile(errors, [0.05, 0.95], axis=0)
            for i, method in enumerate(METHODS):
                found.append((name, people.shape[1], n, method, errors[:, i].mean(), low[i], high[i]))
    return found


def _errors(people, truth, n, rng):
    x = people[rng.integers(0, len(people), n)]
    return [np.abs(estimate(x, method, rng) - truth).max() for method in METHODS]


def section(quick):
    """A table of mean errors, 5 % and 95 % quantiles, one line for each population and sample size."""
    lines = {}
    for name, d, n, method, *errors in rows(quick):
        mean, low, high = map(digits, errors)
        lines.setdefault((name, d, size(n)), []).append(mean if method == "none" else f"{mean} ({low} to {high})")
    about = f"""Shares of many yes-or-no answers, epsilon = {EPSILON:g}: the largest error of a coordinate, its mean and
        the range of 90 % of the runs. "majority" is equation (26), corrected to be private for even d; "subset" asks
        each person about a few coordinates; "Laplace" adds noise of scale d / epsilon to each coordinate, and loses a
        factor that grows as the square root of d."""
    headings = ["table", "d", "n", "not private", "subset", "majority", "Laplace"]
    body = table(headings, [[*key, *values] for key, values in lines.items()])
    return "\n".join(["## Many shares at once\n", paragraph(about), body])
