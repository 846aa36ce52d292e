"""The populations of the accuracy tables, each with its public bounds."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import ndtri

import dpfast as dpf
from bench.papers.data import folder

DATA = folder()
_PAY = DATA / "uc_pay_2010_2023.csv.gz"


@dataclass(frozen=True)
class Population:
    """A distribution with the parameters that an analyst would choose without the data: bounds, step, Huber's corner.

    `values` maps uniform numbers in (0, 1) to records; evenly spaced numbers give a small copy of the population.
    """

    name: str
    note: str
    grid: dpf.Grid
    corner: float
    values: Callable
    symmetric: bool = False

    def sample(self, n, seed):
        return self.values(np.random.default_rng(seed).random(n))

    def even(self, n):
        return self.values((np.arange(n) + 0.5) / n)


def _student2(u):
    return (2 * u - 1) / np.sqrt(2 * u * (1 - u))


def _with_outliers(u):
    share = 0.05
    return np.where(u < share, 20 * ndtri(u / share), ndtri((u - share) / (1 - share)))


def _ages(u):
    return np.floor(105 * (1 - (1 - u) ** 0.4) ** (1 / 1.5)).astype(np.int64)


@cache
def _real_pay():
    return np.loadtxt(_PAY, delimiter=",", skiprows=1, usecols=3)


def _drawn_pay(u):
    pay = _real_pay()
    return pay[(u * pay.size).astype(np.int64)]


@cache
def populations():
    """All populations; the real pay only if its file exists."""
    grid = dpf.Grid
    synthetic = [
        Population("normal", "N(0, 1) in [-20, 20]", grid(-20, 20, step=2.0**-15), 1.345, ndtri, True),
        Population(
            "Student-t(2)",
            "Student's t with 2 degrees of freedom in [-1000, 1000]",
            grid(-1000, 1000, step=2.0**-10),
            1.345,
            _student2,
            True,
        ),
        Population(
            "outliers",
            "95 % N(0, 1), 5 % N(0, 20²) in [-200, 200]",
            grid(-200, 200, step=2.0**-12),
            1.345,
            _with_outliers,
            True,
        ),
        Population(
            "lognormal",
            "exp N(10.5, 0.6²), like pay, in [0, 1,000,000]",
            grid(0, 1e6, step=1),
            20_000.0,
            lambda u: np.exp(10.5 + 0.6 * ndtri(u)),
        ),
        Population("ages", "whole years in [0, 120]", grid(0, 120, step=1), 20.0, _ages),
    ]
    real = Population(
        "real pay",
        "University of California 2010-2023, drawn with replacement, in [0, 2,000,000]",
        grid(0, 2e6, step=1),
        20_000.0,
        _drawn_pay,
    )
    return [*synthetic, real] if _PAY.exists() else synthetic
