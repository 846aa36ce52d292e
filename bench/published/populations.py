"""Populations of the cases, other than those by which dpfast was tuned, each with public bounds."""

import numpy as np
from scipy import stats

import dpfast as dpf
from bench.pages.populations import Population

_GAMMA, _PARETO = stats.gamma(2, scale=6), stats.pareto(2.5, scale=20_000)


def _modes(u):
    """Three fifths around 20, two fifths around 60."""
    share = 0.6
    low, high = stats.norm(20, 5).ppf(np.minimum(u / share, 1)), stats.norm(60, 8).ppf(np.maximum(u - share, 0) / 0.4)
    return np.where(u < share, low, high)


WAITING = Population("waiting times", "gamma(2), mean 12, in [0, 200]", dpf.Grid(0, 200), 12.0, _GAMMA.ppf)
INCOMES = Population("incomes", "Pareto(2.5) from 20,000, in [0, 2e6]", dpf.Grid(0, 2e6, step=1), 3e4, _PARETO.ppf)
MODES = Population("two modes", "N(20, 5) and N(60, 8), in [-100, 300]", dpf.Grid(-100, 300), 20.0, _modes)
SCORES = Population(
    "scores",
    "whole numbers, Laplace around 100, in [0, 200]",
    dpf.Grid(0, 200, step=1),
    15.0,
    lambda u: np.rint(stats.laplace(100, 12).ppf(u)),
    symmetric=True,
)
NORMAL = Population("normal", "N(3, 2) in [-50, 50]", dpf.Grid(-50, 50), 2.7, stats.norm(3, 2).ppf, symmetric=True)
HEAVY = Population("t(3)", "Student's t(3) in [-200, 200]", dpf.Grid(-200, 200), 1.3, stats.t(3).ppf, symmetric=True)
ALL = (WAITING, INCOMES, MODES, SCORES, NORMAL, HEAVY)
