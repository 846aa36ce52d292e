"""Errors of orthogonal series against their bounds and rates, in simulation: theorems 14 and 15."""

from functools import lru_cache

import numpy as np
from scipy.stats import beta as beta_distribution

import dpfast as dpf
from bench.pages.tables import check, paragraph, slope, table

RUNS = {True: 6, False: 100}
SMOOTHNESS = (1.0, 1.5)
EPSILONS = (0.1, 1.0)


def true(smoothness):
    """Coefficients j^(-smoothness - 1/2): as rough as the ellipsoid of this smoothness allows."""
    coefficients = 0.25 * np.arange(1, 401) ** -(smoothness + 0.5)
    return dpf.SeriesDensity(coefficients, dpf.Grid(0, 1), 1, dpf.Privacy(1.0))


def _error(population, n, *, smoothness, epsilon, runs, rng):
    """Terms by the rule, and the mean integrated squared error by Parseval."""
    roughness = 0.25 / np.sqrt(2 * smoothness)  # so that the bias of the rule is the tail of the coefficients
    terms = dpf.theory.series_terms(n, epsilon=epsilon, smoothness=smoothness, roughness=roughness)
    mechanism = dpf.SeriesCoefficients(terms, grid=dpf.Grid(0, 1), epsilon=epsilon)
    wanted = population.coefficients
    errors = [np.sum((mechanism(population.sample(n, rng), rng=rng) - wanted[:terms]) ** 2) for _ in range(runs)]
    return terms, np.mean(errors) + np.sum(wanted[terms:] ** 2)


def _expected(terms, n, *, smoothness, epsilon):
    """The bound of the rule, with the bias of the coefficients themselves."""
    options = {"epsilon": epsilon, "smoothness": smoothness}
    bound = dpf.theory.series_error(terms, n, roughness=1e-9, **options)
    return bound + np.sum(true(smoothness).coefficients[terms:] ** 2)


@lru_cache
def found_slopes(quick):
    """For each (smoothness, epsilon) the slope found, and the rows of the table."""
    sizes = [round(10 ** (4 + i / 2)) for i in range(4 if quick else 5)]
    runs, rng, rows, slopes = RUNS[quick], np.random.default_rng(1), [], {}
    for smoothness in SMOOTHNESS:
        population, rate = true(smoothness), -2 * smoothness / (2 * smoothness + 1)
        for epsilon in EPSILONS:
            options = {"smoothness": smoothness, "epsilon": epsilon}
            terms, errors = zip(*(_error(population, n, runs=runs, rng=rng, **options) for n in sizes), strict=True)
            predicted = slope(sizes, [_expected(m, n, **options) for m, n in zip(terms, sizes, strict=True)])
            found = slopes[smoothness, epsilon] = slope(sizes, errors)
            check(f"slope, series, {options}", found, predicted, 0.2 if quick else 0.05)
            if epsilon >= 1 and not quick:
                check(f"rate, series, {options}", found, rate, 0.05)
            numbers = [f"{value:.3f}" for value in (found, predicted, rate, rate / 2)]
            ends = f"{terms[0]} to {terms[-1]}", f"{errors[0]:.2e}", f"{errors[-1]:.2e}"
            rows.append([f"{smoothness:g}", f"{epsilon:g}", *ends, *numbers])
    return slopes, rows


def rates(quick):
    """Slopes of the error against n."""
    _, rows = found_slopes(quick)
    about = f"""Mean integrated squared error, {RUNS[quick]} runs each, n from 1e4 to 1e6 (quick: 3e5): cosine basis,
        number of terms by the rule `series_terms`, coefficients that decrease as j^(-smoothness - 1/2). Theorem 15 is
        for n epsilon so large that the noise, of order terms^3 / (n epsilon)^2, is below the sampling error, terms / n:
        at epsilon = 1 the slopes over these two decades are within 0.05 of it. At epsilon = 0.1 the noise matters and
        the error decreases faster: the expected slope is that of the sum of bias, sampling error and noise."""
    headings = ["smoothness", "epsilon", "terms", "first error", "last error", "slope found"]
    return paragraph(about) + "\n" + table([*headings, "expected", "Theorem 15", "Theorem 14"], rows)


def projection(quick):
    """The series, the density made of it, and the uniform density, for Beta(10, 10)."""
    runs, rng, rows = 20 if quick else 400, np.random.default_rng(2), []
    u = (np.arange(4000) + 0.5) / 4000
    target = beta_distribution(10, 10).pdf(u)
    waves = np.sqrt(2) * np.cos(np.pi * np.outer(np.arange(1, 9), u))
    for n in (100, 1000, 10_000):
        for epsilon in EPSILONS:
            errors = []
            for _ in range(runs):
                d = dpf.density(rng.beta(10, 10, n), bounds=(0, 1), epsilon=epsilon, terms=8, rng=rng)
                q = 1 + d.coefficients @ waves
                errors.append([np.mean((q - target) ** 2), np.mean((d.pdf(u) - target) ** 2)])
            series, density = np.mean(errors, axis=0)
            uniform = np.mean((1 - target) ** 2)
            rows.append([f"{n:,}", f"{epsilon:g}", f"{series:.4g}", f"{density:.4g}", f"{uniform:.4g}"])
    about = f"""Beta(10, 10), 8 terms, {runs} runs: errors of the series, of the density made of it, and of the uniform
        density."""
    return paragraph(about) + "\n" + table(["n", "epsilon", "series", "density", "uniform"], rows)
