"""Shares of many yes-or-no answers under local privacy: figure 1 of Duchi, Jordan and Wainwright (section 6.2).

Each person has d bits, the estimate is the mean vector. As in the paper, bits are drawn independently of each other
with given shares: here those of the 19 substances and 7 pain relievers of two surveys, and of any pain reliever, or
made-up ones without the files.
"""

from functools import lru_cache

import numpy as np

from bench import pages
from bench.pages.tables import check, digits, paragraph, size, table
from bench.papers import Result, data, duchi_drawing
from dpfast import local

PEOPLE = 959_715  # of the paper, in a year of emergency department visits
EPSILON = 0.5
METHODS = {"no privacy": "no privacy", "subset": "better", "majority": "published", "Laplace": "Laplace"}
ERRORS = {"largest error of a share": lambda away: np.abs(away).max(), "l2 error": lambda away: np.sqrt(away @ away)}


def population():
    """27 shares, and where they come from."""
    files = [data.find(name) for name in ("drug_consumption_uci.csv.gz", "nsduh2014_pain_relievers.csv.gz")]
    if None in files:
        return np.geomspace(0.3, 0.003, 27), "made-up shares"
    substances, relievers = (np.loadtxt(file, delimiter=",", skiprows=1) >= 1 for file in files)
    shares = [*substances.mean(axis=0), *relievers.mean(axis=0), relievers.any(axis=1).mean()]
    return np.array(shares), "shares of two surveys: 19 substances, 7 pain relievers, and any pain reliever"


def people_of(shares, count, rng):
    """Rows of independent bits, with each share exact up to one person."""
    x = np.zeros((count, shares.size), np.int8)
    for j, share in enumerate(shares):
        x[rng.permutation(count)[: round(share * count)], j] = 1
    return x


def estimate(x, method, rng, epsilon=EPSILON):
    """The mean of the rows of bits."""
    n, d = x.shape
    if method == "no privacy":
        return x.mean(axis=0)
    if method == "Laplace":  # scale d / epsilon per bit; the sum of n draws is the difference of two gamma variables
        noise = rng.standard_gamma(n, d) - rng.standard_gamma(n, d)
        return x.mean(axis=0) + noise * d / (epsilon * n)
    people = local.Hypercube(d, epsilon, method=method)  # of 2 x - 1, in {-1, 1}^d
    return (people.estimate(people.randomize(2 * x - 1, rng=rng)) + 1) / 2


def runs(quick):
    return 10 if quick else 100


@lru_cache
def rows(quick):
    """For each (n, method) the errors of all runs, a column for each of ERRORS."""
    rng, found = np.random.default_rng(1), {}
    count = PEOPLE // 50 if quick else PEOPLE
    people = people_of(population()[0], count, rng)
    truth = people.mean(axis=0)
    for n in (100, 1000, 10_000, count) if quick else (100, 1000, 10_000, 100_000, count):
        errors = np.empty((runs(quick), len(METHODS), len(ERRORS)))
        for run in range(runs(quick)):
            x = people if n == count else people[rng.choice(count, n, replace=False)]
            for i, method in enumerate(METHODS):
                away = estimate(x, method, rng) - truth
                errors[run, i] = [error(away) for error in ERRORS.values()]
        found.update({(n, method): errors[:, i] for i, method in enumerate(METHODS)})
    return found


def draw(quick, path):
    """A panel for each error: mean and 5 to 95 % of the runs against n."""
    figure, axes = duchi_drawing.panels(2, 1, size=(5.6, 6.4), sharex=True)
    found, shares = rows(quick), population()[0]
    sizes = sorted({n for n, _ in found})
    for k, (ax, name) in enumerate(zip(axes, ERRORS, strict=True)):
        for method, look in METHODS.items():
            shown = sizes if method != "no privacy" else sizes[:-1]  # with all people it has no error
            values = [found[n, method][:, k] for n in shown]
            bands = np.quantile(values, [0.05, 0.95], axis=1)
            label = "(26), all signs" if method == "majority" else method
            duchi_drawing.line(ax, look, label, shown, np.mean(values, axis=1), *bands)
        ax.set(xscale="log", yscale="log", ylabel=name)
    axes[0].set_title(f"{shares.size} shares, {EPSILON:g}-locally private:\nmean and 5 to 95 % of {runs(quick)} runs")
    axes[-1].set_xlabel("people n")
    pages.legend(figure, axes[0])
    pages.save(figure, path)


def compute(quick):
    found, (shares, name) = rows(quick), population()
    d, sizes = shares.size, sorted({n for n, _ in found})
    body = []
    for n in sizes:
        cells = []
        for k in range(len(ERRORS)):
            for method in METHODS:
                values = found[n, method][:, k]
                low, high = np.quantile(values, [0.05, 0.95])
                cells.append(
                    digits(values.mean()) + ("" if method == "no privacy" else f" ({digits(low)}-{digits(high)})")
                )
        body.append([size(n) if n < 500_000 else f"{n:,}", *cells])
    last = sizes[-1]
    squares = {method: np.mean(found[last, method][:, 1] ** 2) for method in METHODS}
    expected = {m: local.Hypercube(d, EPSILON, method=m).second_moment / 4 for m in ("subset", "majority")}
    expected["Laplace"] = 2 * d**3 / EPSILON**2
    for method, value in expected.items():  # all people are asked: only the randomisers' noise is left
        check(f"squared error, {method}", squares[method] / (value / last), 1.0, 0.6 if quick else 0.3)
    ratio, gain = squares["Laplace"] / squares["majority"], np.sqrt(expected["Laplace"] / expected["majority"])
    separated = [n for n in sizes if found[n, "majority"][:, 1].max() < found[n, "Laplace"][:, 1].min()]
    check("the worst run of (26) below the best of Laplace noise", len(separated), len(sizes), 0)
    text = f"""{name[0].upper() + name[1:]}, as independent bits of {last:,} people; epsilon = {EPSILON:g};
        {runs(quick)} runs, each with n people drawn without replacement. Mean error and range of 90 % of the runs.
        "majority" is equation (26), here with an odd d, where the published constant is right; "subset" asks each
        person about a few columns; "Laplace" adds noise of scale d / epsilon to each bit."""
    headings = ["n", *(f"{error}: {method}" for error in ("largest", "l2") for method in METHODS)]
    return Result(
        f"with all {last:,} people, Laplace noise has {ratio:.0f} times the mean squared error of (26) "
        f"({2 * d**3 / EPSILON**2 / expected['majority']:.1f} by formula), {np.sqrt(ratio):.1f} times the error; every "
        "run of (26) is closer than every run of Laplace noise; a subset of the columns has "
        f"{squares['subset'] / squares['majority']:.2f} times the squared error of (26)",
        f"yes, if the factor of five is that of the error: by formula it is {gain:.2f}; our shares differ",
        paragraph(text) + "\n" + table(headings, body),
    )
