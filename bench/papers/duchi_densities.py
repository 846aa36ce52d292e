"""Densities under local privacy, section 5.2 of Duchi, Jordan and Wainwright: errors of every method, and the rate.

Errors are mean integrated squared errors on the unit interval.
"""

from functools import partial

import numpy as np
from scipy.stats import beta as beta_distribution

import dpfast as dpf
from bench.pages.tables import check, paragraph, size, slope, table
from bench.papers import Result
from dpfast import local

METHODS = ("majority", "halfspace", "subset", "one-frequency")
_UNIT = dpf.Grid(0, 1)
_BASIS = "trigonometric"  # that of the paper
_POINTS = (np.arange(20_000) + 0.5) / 20_000


def coefficients(pdf, terms):
    """Coefficients of a density on the unit interval in the trigonometric basis."""
    angles = 2 * np.pi * np.outer(np.arange(1, terms // 2 + 1), _POINTS)
    waves = np.sqrt(2) * np.stack([np.cos(angles), np.sin(angles)], axis=1).reshape(terms, -1)
    return waves @ pdf / _POINTS.size


def error_rows(quick):
    """(epsilon, n, method, terms, error): exact errors for Beta(10, 10), with the best number of terms for each."""
    b, found = coefficients(beta_distribution(10, 10).pdf(_POINTS), 40), []
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        for n in (10_000, 1_000_000):
            for method in METHODS:
                errors = {
                    terms: local.SeriesReports(terms, epsilon, grid=_UNIT, method=method, basis=_BASIS).mise(n, b)
                    for terms in range(2, 20, 2)
                }
                terms = min(errors, key=errors.get)
                found.append((epsilon, n, method, terms, errors[terms]))
    return found


def density_rows(quick):
    """(n, formula, series found, density found, uniform), six terms at epsilon = 1, for Beta(10, 10)."""
    runs, rng, found = 5 if quick else 200, np.random.default_rng(1), []
    pdf = beta_distribution(10, 10).pdf(_POINTS)
    b = coefficients(pdf, 60)
    for n in (1000, 10_000, 100_000):
        errors = []
        for _ in range(runs):
            density = local.density(rng.beta(10, 10, n), bounds=(0, 1), epsilon=1.0, terms=6, basis=_BASIS, rng=rng)
            series = np.sum((density.coefficients - b[:6]) ** 2) + np.sum(b[6:] ** 2)
            errors.append([series, np.mean((density.pdf(_POINTS) - pdf) ** 2)])
        series, projected = np.mean(errors, axis=0)
        formula = density.randomizer.mise(n, b)
        check(f"error, n = {n}", series, formula, 6 * np.std(np.array(errors)[:, 0]) / np.sqrt(runs))
        found.append((n, formula, series, projected, np.mean((1 - pdf) ** 2)))
    return found


def rate_rows(quick):
    """(smoothness, terms at both ends, slope found, slope of Corollary 7): terms by the rule, errors exact."""
    sizes, found = [10**k for k in range(6, 13)], []
    for smoothness in (1.0, 1.5, 2.0):
        b = 0.25 * np.arange(1, 4001) ** -(smoothness + 0.5)
        roughness = 0.25 / np.sqrt(2 * smoothness)  # so that the bias of the rule is the tail of the coefficients
        surveys = [_by_the_rule(n, smoothness, roughness) for n in sizes]
        errors = [survey.mise(n, b) for survey, n in zip(surveys, sizes, strict=True)]
        expected, is_ = -smoothness / (smoothness + 1), slope(sizes, errors)
        check(f"rate, smoothness {smoothness}", is_, expected, 0.03)
        found.append((smoothness, surveys[0].terms, surveys[-1].terms, is_, expected))
    return found


def _by_the_rule(n, smoothness, roughness):
    make = partial(local.SeriesReports, epsilon=1.0, grid=_UNIT, method="one-frequency", basis=_BASIS)
    surveys = map(make, range(2, 1024, 2))
    best = next(surveys)
    for survey in surveys:
        options = {"smoothness": smoothness, "roughness": roughness}
        if survey.mise_bound(n, **options) >= best.mise_bound(n, **options):
            break
        best = survey
    return best


def compute(quick):
    """Three tables: the methods, series and density, the rate."""
    lines = {}
    errors = error_rows(quick)
    for epsilon, n, _, terms, error in errors:
        lines.setdefault((f"{epsilon:g}", size(n)), []).append(f"{error:.2g} ({terms})")
    about_methods = """Exact mean integrated squared error for Beta(10, 10), each method with its best number of terms
        (in brackets): equation (39) with (26), corrected to be private, or with (25); a few signs; and one random
        frequency with a window on the circle."""
    rows = [[size(n), *(f"{error:.3g}" for error in each)] for n, *each in density_rows(quick)]
    about_density = """Six terms at epsilon = 1, one frequency: the error by formula, and in simulations the errors of
        the series, of the density made of it, and of the uniform density."""
    rates = [
        [f"{s:g}", f"{first} to {last}", f"{found:.3f}", f"{expected:.3f}"]
        for s, first, last, found, expected in rate_rows(quick)
    ]
    about_rates = """Slopes of the exact error against n from 1e6 to 1e12 on logarithmic scales: number of terms by the
        rule, coefficients that decrease as j^(-smoothness - 1/2). Corollary 7 has -2 s / (2 s + 2)."""
    parts = [
        paragraph(about_methods),
        table(["epsilon", "n", *METHODS], [[*key, *values] for key, values in lines.items()]),
        paragraph(about_density),
        table(["n", "formula", "series", "density", "uniform"], rows),
        paragraph(about_rates),
        table(["smoothness", "terms", "slope found", "Corollary 7"], rates),
    ]
    least = {method: error for epsilon, n, method, _, error in errors if (epsilon, n) == (1.0, 1_000_000)}
    return Result(
        f"Beta(10, 10), epsilon 1, n = 1e6: (26), corrected, {least['majority']:.2g}, (25) {least['halfspace']:.2g}, "
        f"one random frequency {least['one-frequency']:.2g}; slopes {', '.join(row[2] for row in rates)} against "
        f"{', '.join(row[3] for row in rates)}",
        "yes, after the correction of (26); other mechanisms have less error",
        "\n".join(parts),
    )
