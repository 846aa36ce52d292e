"""Errors of orthogonal series against their bounds and rates, in simulation: ``section(quick)`` is Markdown.

``python -m bench.series_experiment [--quick]``; fixed seeds, nothing private.
"""

import argparse

import numpy as np
from scipy.stats import beta as beta_distribution

import dpfast as dpf

SMOOTHNESS = (1.0, 1.5)
EPSILONS = (0.1, 1.0)


def _true(smoothness):
    """Coefficients j^(-smoothness - 1/2): as rough as the ellipsoid of this smoothness allows."""
    coefficients = 0.25 * np.arange(1, 401) ** -(smoothness + 0.5)
    return dpf.SeriesDensity(coefficients, dpf.Grid(0, 1), 1, dpf.Privacy(1.0))


def _error(true, n, *, smoothness, epsilon, runs, rng):
    """Terms by the rule, and the mean integrated squared error by Parseval."""
    roughness = 0.25 / np.sqrt(2 * smoothness)  # so that the bias of the rule is the tail of the coefficients
    terms = dpf.theory.series_terms(n, epsilon=epsilon, smoothness=smoothness, roughness=roughness)
    mechanism = dpf.SeriesCoefficients(terms, grid=dpf.Grid(0, 1), epsilon=epsilon)
    wanted = true.coefficients
    errors = [np.sum((mechanism(true.sample(n, rng), rng=rng) - wanted[:terms]) ** 2) for _ in range(runs)]
    return terms, np.mean(errors) + np.sum(wanted[terms:] ** 2)


def _slope(n, errors):
    return np.polyfit(np.log(n), np.log(errors), 1)[0]


def _rates(quick):
    sizes = [10_000, 31_623, 100_000, 316_228, 1_000_000]
    runs, rng = 6 if quick else 60, np.random.default_rng(1)
    yield f"Mean integrated squared error from n = 1e4 to 1e6 ({runs} runs each), terms by the rule, cosine basis.\n"
    yield "Where the noise, of order terms^3 / (n epsilon)^2, is not yet small the error falls faster than the rate.\n"
    yield "| smoothness | epsilon | terms | error at 1e4 | error at 1e6 | slope | Theorem 15 | Theorem 14 |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for smoothness in SMOOTHNESS:
        true, rate = _true(smoothness), -2 * smoothness / (2 * smoothness + 1)
        for epsilon in EPSILONS:
            found = [_error(true, n, smoothness=smoothness, epsilon=epsilon, runs=runs, rng=rng) for n in sizes]
            terms, errors = zip(*found, strict=True)
            yield (
                f"| {smoothness:g} | {epsilon:g} | {terms[0]} to {terms[-1]} | {errors[0]:.2e} | {errors[-1]:.2e} "
                f"| {_slope(sizes, errors):.3f} | {rate:.3f} | {rate / 2:.3f} |"
            )


def _projection(quick):
    """The series, the density made of it, and the uniform density, for Beta(10, 10)."""
    runs, rng = 20 if quick else 400, np.random.default_rng(2)
    u = (np.arange(4000) + 0.5) / 4000
    target = beta_distribution(10, 10).pdf(u)
    yield f"\nBeta(10, 10), 8 terms, {runs} runs: the series, made a density, and the uniform density.\n"
    yield "| n | epsilon | series | density | uniform |"
    yield "| --- | --- | --- | --- | --- |"
    for n in (100, 1000, 10_000):
        for epsilon in EPSILONS:
            errors = []
            for _ in range(runs):
                x = rng.beta(10, 10, n)
                d = dpf.density(x, bounds=(0, 1), epsilon=epsilon, terms=8, rng=rng)
                j = np.arange(1, 9)
                q = 1 + np.sqrt(2) * d.coefficients @ np.cos(np.pi * np.outer(j, u))
                errors.append([np.mean((q - target) ** 2), np.mean((d.pdf(u) - target) ** 2)])
            series, density = np.mean(errors, axis=0)
            yield f"| {n} | {epsilon:g} | {series:.4g} | {density:.4g} | {np.mean((1 - target) ** 2):.4g} |"


def section(quick: bool) -> str:
    """The tables, in Markdown."""
    return "\n".join([*_rates(quick), *_projection(quick)]) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    print(section(parser.parse_args().quick), end="")
