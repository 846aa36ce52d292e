"""The data of the comparisons, each with bounds that an analyst would choose without it."""

from functools import cache

import numpy as np
from scipy.special import ndtri

import dpfast as dpf
from bench.pages.populations import Population, populations


def _hours(u):
    """Hours per week: 45 % work exactly 40."""
    around = np.clip(np.rint(38 + 14 * ndtri((u * 7919) % 1 * 0.9998 + 1e-4)), 0, 100)
    return np.where(u < 0.45, 40.0, around)


def _likert(u):
    return 1.0 + np.searchsorted([0.1, 0.25, 0.5, 0.85], u)


def _pay(u):
    return np.exp(10.5 + 0.6 * ndtri(u))


@cache
def named():
    """All populations by name; the real pay only if its file exists."""
    made = [
        *populations(),
        Population("hours", "whole hours per week in [0, 100], 45 % at 40", dpf.Grid(0, 100, step=1), 10.0, _hours),
        Population("Likert", "answers from 1 to 5", dpf.Grid(1, 5, step=1), 1.0, _likert),
        Population("lognormal, [0, 1e7]", "the same in [0, 1e7]", dpf.Grid(0, 1e7, step=1), 2e4, _pay),
        Population("lognormal, [0, 1e8]", "the same in [0, 1e8]", dpf.Grid(0, 1e8, step=1), 2e4, _pay),
    ]
    return {population.name: population for population in made}


def drawer(population, n):
    """A function that draws n records on the grid, as floats, from a generator."""

    def draw(generator):
        u = generator.random(n)
        return (population.grid.decode(population.grid.encode(population.values(u))),)

    return draw
