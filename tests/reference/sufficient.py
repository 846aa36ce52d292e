"""The moments of clamped statistics by definition, as sums over dense points, and codes one record at a time."""

import math
from fractions import Fraction

import numpy as np
from scipy import stats

STATISTICS = {"value": lambda x: x, "log": np.log, "log1m": lambda x: np.log1p(-x)}

DISTRIBUTIONS = {
    "bernoulli": lambda theta: stats.bernoulli(theta["p"]),
    "poisson": lambda theta: stats.poisson(theta["mean"]),
    "geometric": lambda theta: stats.geom(theta["p"]),
    "exponential": lambda theta: stats.expon(scale=1 / theta["rate"]),
    "pareto": lambda theta: stats.pareto(theta["shape"]),
    "normal": lambda theta: stats.norm(theta["mean"], theta["sd"]),
    "lognormal": lambda theta: stats.lognorm(theta["sigma"], scale=math.exp(theta["mu"])),
    "gamma": lambda theta: stats.gamma(theta["shape"], scale=theta["scale"]),
    "beta": lambda theta: stats.beta(theta["a"], theta["b"]),
}


def points(distribution, low, high):
    """Records from low to high and their masses, with all mass beyond an end on it: Gauss points in 50 panels."""
    if hasattr(distribution.dist, "pmf"):
        x = np.arange(low, high + 1.0)
        inside = distribution.pmf(x[1:-1])
        return x, np.concatenate([[distribution.cdf(low)], inside, [distribution.sf(high - 1)]])
    nodes, weights = np.polynomial.legendre.leggauss(40)
    edges = np.linspace(low, high, 51)
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    x = (middle[:, None] + half[:, None] * nodes).ravel()
    masses = (half[:, None] * weights).ravel() * distribution.pdf(x)
    x, masses = np.append(x, [low, high]), np.append(masses, [distribution.cdf(low), distribution.sf(high)])
    return x, masses


def moments(family, theta, columns, squares, record_bounds):
    """The means and covariances of the statistics of a clamped record, each scaled to 0..1."""
    low, high = map(float, record_bounds)
    x, masses = points(DISTRIBUTIONS[family](theta), low, high)
    found = []
    for kind in columns:
        ends = [float(STATISTICS[kind](end)) for end in (low, high)]
        found.append((STATISTICS[kind](x) - min(ends)) / (max(ends) - min(ends)))
    if squares:
        found.append((2 * found[0] - 1) ** 2)
    statistics = np.array(found)
    means = statistics @ masses
    left = statistics - means[:, None]
    return means, (left * masses) @ left.T


def codes(values, grid):
    """The code of each value by exact arithmetic: clamped, then rounded to nearest, half to even."""
    found = []
    for value in values:
        clamped = min(max(grid.missing if math.isnan(value) else value, grid.lower), grid.upper)
        found.append(round(Fraction(clamped) / Fraction(grid.step)) - grid.first)
    return found
