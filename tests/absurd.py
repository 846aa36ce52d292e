"""Columns that people have and mechanisms that they use: the share of absurd releases that came without a word.

A release is absurd, and judged, as in bench/columns, whose calls of functions run on the same columns. `JUDGED` has the
classes of mechanisms, `UNJUDGED` those without numbers of a column.
"""

from functools import partial

import numpy as np
from numpy.random import PCG64, Generator

import dpfast as dpf
from bench.columns.cases import CASES, Case, Release, near
from bench.columns.runs import Call
from bench.columns.tables import Column
from dpfast import domains
from dpfast.densities import KolmogorovSmirnov, PerturbedHistogram, RangeSums, SeriesCoefficients, SmoothedHistogram
from dpfast.regression import BlockFits, DesignMoments, GradientSums, LabelShares, ResidualScale
from dpfast.robust import IndependentColumns, RangeFreeBoxes, TukeyDepth
from dpfast.statistics import (
    Huber,
    InterquartileRange,
    Mean,
    Median,
    Quantile,
    Sum,
    TrimmedMean,
    Variance,
    WinsorizedMean,
)
from tests.records import installed, pick

NUMBERS = [40, 100, 500, 2000]
INFORMATION = [20.0, 30.0, 52.0, 60.0, 100.0, 400.0]  # n epsilon min(q, 1 - q)
GRIDS = [dpf.FloatGrid(), dpf.FloatGrid(), dpf.FloatGrid(20), dpf.FloatGrid(40), dpf.FloatGrid(25, missing=0.0)]

COLUMNS = {
    "ratings": lambda rng, n: rng.choice([1.0, 2.0, 3.0, 4.0, 5.0], n, p=[0.05, 0.1, 0.2, 0.3, 0.35]),
    "ages": lambda rng, n: np.clip(rng.normal(40, 14, n), 18, 95).round(),
    "pay": lambda rng, n: np.exp(rng.normal(10.5, 0.6, n)).round(-2),
    "lengths": lambda rng, n: rng.normal(170, 9, n),
    "temperatures": lambda rng, n: rng.normal(-4, 8, n).round(1),
    "years": lambda rng, n: rng.integers(1985, 2025, n).astype(float),
    "shares": lambda rng, n: rng.random(n).round(3),
    "counts": lambda rng, n: rng.poisson(3.0, n).astype(float),
}


def column(rng):
    """One of the columns."""
    name, n = pick(rng, sorted(COLUMNS)), pick(rng, NUMBERS)
    x = COLUMNS[name](rng, n)
    return Column("made up", name, x, labels=np.arange(n) % 3, partner=np.arange(n) % 10 * 1.0)


# ---- mechanisms: of a column and its information, the mechanism, its records, and the judge of what it releases ----


def _bounded(column):
    return dpf.Grid(*column.bounds)


def _epsilon(column, information, level=0.5):
    return min(information / level / column.n, 20.0)


_EXACT = {
    Mean: (lambda c, s: c.mean, lambda c: c.width),
    Sum: (lambda c, s: c.mean * c.n, lambda c: c.width * c.n),
    Variance: (lambda c, s: c.variance, lambda c: 3 * c.width**2),
    InterquartileRange: (lambda c, s: c.quantile(0.75) - c.quantile(0.25), None),
    Quantile: (lambda c, s: c.quantile(s.q), None),
    **dict.fromkeys((Median, TrimmedMean, WinsorizedMean, Huber), (lambda c, s: c.quantile(0.5), None)),
}


def _statistic(kind, statistics, column, information, rng, **options):
    """A statistic on a grid of floats if it is one of the records, else within bounds."""
    statistic = pick(rng, statistics)
    level = min(statistic.q, 1 - statistic.q) if isinstance(statistic, Quantile) else 0.5
    floats = kind is dpf.InverseSensitivity and statistic.order_only and rng.random() < 0.8
    grid = pick(rng, GRIDS) if floats else _bounded(column)
    made = kind(statistic, grid=grid, epsilon=_epsilon(column, information, level), **options)
    exact, scale = _EXACT[type(statistic)]
    width = column.range if floats else column.width
    return made, column.x, lambda released: near(released, exact(column, statistic), scale(column) if scale else width)


def _inverse(column, information, rng):
    options = {"selection": pick(rng, ["exponential", "permute-and-flip"])}
    statistics = [Median(), Quantile(0.1), Quantile(0.25), Quantile(0.9), InterquartileRange()]
    statistics += [TrimmedMean(0.1), WinsorizedMean(0.25), Huber(column.width / 10), Mean()]
    return _statistic(dpf.InverseSensitivity, statistics, column, information, rng, **options)


def _moment(column, information, rng):
    noise = pick(rng, ["auto", "discrete-laplace", "staircase"])
    return _statistic(dpf.GlobalSensitivity, [Mean(), Sum(), Variance()], column, information, rng, noise=noise)


def _present(column, information, rng):
    made = dpf.PresentMean(grid=_bounded(column).with_missing("drop"), epsilon=_epsilon(column, information))
    return made, column.x, lambda released: near(released, column.mean, column.width)


def _moments(column, information, rng):
    return _statistic(dpf.MomentPair, [Variance()], column, information, rng)


def _smooth(column, information, rng):
    delta = pick(rng, [0.0, 1e-6])
    statistics = [Median(), Quantile(0.25), TrimmedMean(0.1), WinsorizedMean(0.25), InterquartileRange()]
    return _statistic(dpf.SmoothSensitivity, statistics, column, information, rng, delta=delta)


def _quantiles(column, information, rng):
    qs = pick(rng, [(0.5,), (0.25, 0.75), (0.1, 0.5, 0.9), tuple(np.linspace(0.05, 0.95, 19).tolist())])
    made = dpf.Quantiles(qs, grid=pick(rng, GRIDS), epsilon=_epsilon(column, information, qs[0]))
    return made, column.x, lambda released: near(released, [column.quantile(q) for q in qs], column.range)


def _inside(column, released, scale):
    return Release(released, *column.ends, scale)


def _within_bounds(kind, options, column, information, rng):
    """A location of one column or two equal ones."""
    options = {name: value(column) if callable(value) else value for name, value in options.items()}
    made = kind(**options, epsilon=_epsilon(column, information))
    rows = column.x if kind is dpf.MEstimator else np.stack([column.x, column.x[::-1]], axis=1)
    return made, rows, partial(_inside, column, scale=column.width)


def _range_free(column, information, rng):
    step = 2.0 ** np.floor(np.log2(column.range / 1000))
    made = RangeFreeBoxes(Median(), step=step, width=column.range, delta=1e-6, epsilon=20.0)
    rows = np.stack([column.x, column.x[::-1]], axis=1)

    def judged(released):  # None where the private test fails
        return _inside(column, column.x if released is None else released, column.range)

    return made, rows, judged


def _line(column, information, rng):
    made = dpf.TheilSen(epsilon=_epsilon(column, information, 0.25))
    places = np.array([2.0, 5.0, 7.0])
    rows = np.stack([column.partner, column.x], axis=1)
    return made, rows, lambda released: _inside(column, released[0] * places + released[1], column.range)


def _family(kind, column, information, rng):
    bounds = {"mean": column.bounds, "sd": (column.width / 100, column.width)}
    made = kind("normal", bounds=bounds, epsilon=_epsilon(column, information))
    return made, column.x, lambda released: near(released, [column.mean, column.variance**0.5], column.width)


def _density(kind, options, column, information, rng):
    """Synthetic records."""
    made = kind(grid=_bounded(column), epsilon=_epsilon(column, information), **options)
    return made, column.x, partial(_inside, column, scale=column.width)


def _counts(column, information, rng):
    noise = pick(rng, ["discrete-laplace", "gaussian"])
    delta = 1e-6 if noise == "gaussian" else 0.0
    epsilon = _epsilon(column, information)
    made = PerturbedHistogram(bins=7, grid=_bounded(column), epsilon=epsilon, noise=noise, delta=delta)
    return made, column.x, lambda released: Release(released.counts, 0, column.n, column.n)


def _counts_for_ranges(column, information, rng):
    made = RangeSums(bins=7, grid=_bounded(column), epsilon=_epsilon(column, information))
    return made, column.x, lambda released: Release(released.counts, 0, column.n, column.n)


def _coefficients(column, information, rng):
    made = SeriesCoefficients(terms=4, grid=_bounded(column), epsilon=_epsilon(column, information))
    return made, column.x, lambda released: Release(released, -1.5, 1.5, 1.5)


def _second_moments(kind, column, information, rng):
    radius = 1.5 * float(np.abs(column.bounds).max())
    options = {"delta": 1e-6} if kind is dpf.Covariance else {}
    made = kind(domain=domains.Ball(radius), epsilon=_epsilon(column, information), **options)
    rows = np.stack([column.x, column.x[::-1]], axis=1)
    return made, rows, lambda released: near(released, 0.0, radius**2)


def _sums(column, information, rng):
    made = dpf.NoisySums(
        statistic=Mean(), domain=domains.Box(_bounded(column)), epsilon=_epsilon(column, information), delta=1e-6
    )
    rows = np.stack([column.x, column.x[::-1]], axis=1)
    return made, rows, lambda released: near(released, column.mean, column.width)


JUDGED = {
    dpf.Covariance: partial(_second_moments, dpf.Covariance),
    dpf.GlobalSensitivity: _moment,
    dpf.MomentPair: _moments,
    dpf.PresentMean: _present,
    dpf.InverseSensitivity: _inverse,
    dpf.MEstimator: partial(
        _within_bounds, dpf.MEstimator, {"psi": lambda c: dpf.psi.Huber(c.width / 10), "grid": _bounded}
    ),
    dpf.NestedBoxes: partial(_within_bounds, dpf.NestedBoxes, {"statistic": Median(), "grid": _bounded}),
    dpf.NoisySums: _sums,
    dpf.Quantiles: _quantiles,
    dpf.SampleAndAggregate: partial(_family, dpf.SampleAndAggregate),
    dpf.SecondMoments: partial(_second_moments, dpf.SecondMoments),
    dpf.SmoothSensitivity: _smooth,
    dpf.SufficientStatistics: partial(_family, dpf.SufficientStatistics),
    dpf.TheilSen: _line,
    IndependentColumns: partial(
        _within_bounds, IndependentColumns, {"statistic": Median(), "grid": _bounded, "dimension": 2, "delta": 1e-6}
    ),
    KolmogorovSmirnov: partial(_density, KolmogorovSmirnov, {"k": 20}),
    PerturbedHistogram: _counts,
    RangeSums: _counts_for_ranges,
    RangeFreeBoxes: _range_free,
    SeriesCoefficients: _coefficients,
    SmoothedHistogram: partial(_density, SmoothedHistogram, {"bins": 7, "k": 20}),
    TukeyDepth: partial(_within_bounds, TukeyDepth, {"grid": _bounded}),
}
UNJUDGED = {
    dpf.NoisyMarginals: "counts of a table; the functions that draw records from them are judged",
    dpf.PartitionSelection: "keys",
    dpf.RegressionMoments: "a step of a regression, in a ball whose radius is public",
    dpf.Resized: "has a private number of records, of which no warning can tell",
    dpf.Subsampled: "releases by another mechanism, from fewer records, which has the warnings",
    dpf.TopK: "keys",
    BlockFits: "coefficients of columns, which are no numbers of a column",
    DesignMoments: "a step of a regression, in a ball whose radius is public",
    GradientSums: "a step of a regression, clipped at a public number",
    LabelShares: "shares of classes",
    ResidualScale: "a step of a regression, at most four public label bounds",
}


def calls(kind, seed):
    """Endless calls of a class of mechanisms, or of all functions of bench/columns for "local"."""
    rng = Generator(PCG64(seed))
    while True:
        of, information = column(rng), pick(rng, INFORMATION)
        for case in CASES.values() if kind == "local" else [_case(kind, information, int(rng.integers(2**32)))]:
            _, _, host = case.function.partition("dpfast.")  # a function of dpfast.sklearn needs that library
            if not case.private_n and (not host or installed(host)):
                yield Call(case, of, "float64", _epsilon(of, information, case.level))


def _case(kind, information, seed):
    """A call of a mechanism with parameters that a seed tells."""

    def run(column, x, epsilon, rng):
        made, records, judged = JUDGED[kind](column, information, Generator(PCG64(seed)))
        return judged(made(records, rng=rng))

    return Case(f"{kind.__name__} {seed}", kind.__name__, run)
