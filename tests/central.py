"""All central mechanisms with options, found by the classes of the library, for tests that run over all of them."""

import dataclasses
import inspect

import numpy as np

import dpfast as dpf
from dpfast import domains
from dpfast.densities import KolmogorovSmirnov, PerturbedHistogram, RangeSums, SeriesCoefficients, SmoothedHistogram
from dpfast.regression import BlockFits, DesignMoments, GradientSums, LabelShares, ResidualScale
from dpfast.robust import IndependentColumns, RangeFreeBoxes, TukeyDepth
from dpfast.statistics import Count, Mean, Quantile, Statistic
from tests.reference.statistics import one_of_each


def relative(x, theta):
    """A psi of record and parameter: the distance in units of the parameter, clipped."""
    return min(max(1 - x / theta, -1.0), 1.0)


STATISTICS = [*one_of_each(), Quantile(0.0), Count((20.0, 35.0))]
LEVELS = {"a": dpf.Bins(5, bounds=(0, 100)), "b": dpf.Categories(range(0, 100, 7))}
# The parameters that a class of mechanisms needs or has beyond the grid, the statistic and epsilon; a domain and a
# mechanism are functions of the grid.
OPTIONS = {
    dpf.Covariance: [
        {"domain": lambda grid: domains.Ball(grid.upper), "delta": 1e-3},
        {"domain": lambda grid: domains.Ball(grid.upper, center=(50.0, 40.0)), "centered": False, "psd": False},
    ],
    dpf.GlobalSensitivity: [{}, {"noise": "discrete-laplace"}],
    dpf.InverseSensitivity: [
        {},
        {"radius": 0.5},
        {"measure": "dyadic", "selection": "permute-and-flip"},
        {"interpolate": True},
    ],
    dpf.MEstimator: [
        {"psi": dpf.psi.Huber(2.0)},
        {"psi": dpf.psi.Pinball(0.3), "prior": dpf.prior.Cauchy(30.0, 5.0)},
        {"psi": dpf.psi.Bivariate(relative, dpf.Grid(1.0, 99.0))},
    ],
    dpf.NestedBoxes: [{}, {"scale": (1.0, 2.0)}],
    dpf.NoisySums: [
        {"domain": domains.Box, "delta": 1e-3},
        {"domain": lambda grid: domains.Box((grid, dpf.Grid(-10, 1000))), "delta": 1e-3},
        {"domain": lambda grid: domains.Ball(grid.upper), "delta": 1e-3},
    ],
    dpf.NoisyMarginals: [
        {"columns": LEVELS, "marginals": [("a", "b"), ("a",)]},
        {"columns": LEVELS, "marginals": [("a", "b")], "delta": 0.1},
    ],
    dpf.PartitionSelection: [
        {"delta": 1e-3},
        {"domain": lambda grid: 500},
        {"domain": lambda grid: tuple(range(0, 100, 10))},
    ],
    dpf.PresentMean: [{"grid": lambda grid: grid.with_missing("drop")}],
    dpf.Quantiles: [{"qs": (0.1, 0.5, 0.9)}, {"qs": (0.25, 0.75), "stages": 2, "measure": "uniform"}],
    dpf.RegressionMoments: [
        {"domain": lambda grid: domains.Ball(grid.upper, center=50.0), "labels": domains.Ball(60.0, center=40.0)},
        {
            "domain": lambda grid: domains.Ball(grid.upper),
            "labels": domains.Ball(99.0),
            "delta": 1e-3,
            "intercept": False,
        },
    ],
    dpf.SampleAndAggregate: [
        {"family": "exponential", "bounds": (0.01, 1.0), "blocks": 4},
        {"family": "normal", "bounds": {"mean": (0.0, 99.0), "sd": (0.1, 30.0)}, "blocks": 3},
        {
            "family": "normal",
            "bounds": {"mean": (0.0, 99.0), "sd": (0.1, 30.0)},
            "blocks": 3,
            "noise": "gaussian",
            "delta": 1e-3,
        },
        {"family": "laplace", "bounds": {"location": (0.0, 99.0)}, "blocks": 3, "shuffle": 1},
        {"family": "normal", "bounds": {"mean": (0.0, 99.0)}, "blocks": 5, "combine": "winsorized", "epsilon": 900.0},
    ],
    dpf.Resized: [
        {"mechanism": lambda grid: dpf.InverseSensitivity(Quantile(0.5), grid=grid, epsilon=0.0625)},
        {"mechanism": lambda grid: dpf.Quantiles((0.25, 0.75), grid=grid, epsilon=0.0625), "missing": "drop"},
    ],
    dpf.SecondMoments: [{"domain": lambda grid: domains.Ball(grid.upper, center=50.0)}],
    dpf.SmoothSensitivity: [{}, {"delta": 1e-3}],
    dpf.Subsampled: [
        {"mechanism": lambda grid: dpf.InverseSensitivity(Quantile(0.5), grid=grid, epsilon=3.0), "share": 0.5},
        {"mechanism": lambda grid: dpf.GlobalSensitivity(Mean(), grid=grid, epsilon=3.0), "share": 1.0},
    ],
    dpf.SufficientStatistics: [
        {"family": "poisson", "bounds": (1.0, 90.0)},
        {"family": "exponential", "bounds": (0.01, 1.0), "noise": "gaussian", "delta": 1e-3},
        {"family": "normal", "bounds": {"mean": (0.0, 99.0), "sd": (0.1, 30.0)}},
        {"family": "gamma", "bounds": {"shape": (0.5, 20.0), "scale": (0.5, 20.0)}, "noise": "gaussian", "delta": 1e-3},
    ],
    dpf.TheilSen: [
        {"matchings": 3},
        {"slope_grid": dpf.Grid(-2, 2), "intercept_grid": dpf.Grid(-50, 50), "missing": 0.5},
        {"standard_error": True, "epsilon": 900.0},
    ],
    dpf.TopK: [
        {"k": 2, "keys": tuple(range(0, 100, 10))},
        {"k": 3, "keys": (50, 20, 30, 40, 10), "method": "peeling"},
        {"k": 2, "keys": (50, 20, 30), "method": "joint"},
    ],
    BlockFits: [
        {"domain": lambda grid: domains.Ball(grid.upper, center=50.0), "blocks": 3},
        {"domain": lambda grid: domains.Ball(grid.upper), "intercept": False},
    ],
    DesignMoments: [
        {"domain": lambda grid: domains.Ball(grid.upper, center=50.0), "delta": 1e-3},
        {"domain": lambda grid: domains.Ball(grid.upper), "intercept": False},
    ],
    GradientSums: [
        {
            "model": "logistic",
            "coefficients": (0.02, -0.5),
            "transform": ((1.0, 0.5), (0.0, 20.0)),
            "domain": lambda grid: domains.Ball(grid.upper, center=50.0),
            "clip": 20.0,
            "delta": 1e-3,
        },
        {
            "model": "huber",
            "coefficients": (0.3,),
            "transform": ((1.0,), (0.0,)),
            "domain": lambda grid: domains.Ball(grid.upper),
            "clip": 200.0,
            "bound": 5.0,
        },
        {
            "model": "multinomial",
            "coefficients": ((0.01, -0.5), (0.0, 0.5), (-0.01, 0.0)),
            "transform": ((1.0, 0.5), (0.0, 20.0)),
            "domain": lambda grid: domains.Ball(grid.upper, center=50.0),
            "clip": 20.0,
            "delta": 1e-3,
        },
    ],
    IndependentColumns: [{"dimension": 2, "delta": 1e-3}],
    LabelShares: [{"classes": 3}, {"classes": 2, "delta": 1e-3}],
    KolmogorovSmirnov: [{"k": 4}],
    PerturbedHistogram: [{"bins": 7}, {"bins": 5, "delta": 1e-6, "noise": "gaussian"}],
    RangeSums: [{"bins": 7}, {"bins": 5, "delta": 1e-6, "noise": "gaussian"}],
    RangeFreeBoxes: [{"step": 2.0**-10, "width": 8.0, "delta": 0.1, "epsilon": 40.0}],
    ResidualScale: [
        {
            "coefficients": (0.5,),
            "constant": 3.0,
            "domain": lambda grid: domains.Ball(grid.upper, center=50.0),
            "labels": domains.Ball(99.0),
            "q": 0.8,
        }
    ],
    SeriesCoefficients: [{"terms": 4}, {"terms": 3, "basis": "trigonometric"}],
    SmoothedHistogram: [{"bins": 7, "k": 5}],
}
ROWS = (
    dpf.Covariance,
    dpf.NestedBoxes,
    dpf.NoisyMarginals,
    dpf.NoisySums,
    dpf.RegressionMoments,
    dpf.SecondMoments,
    dpf.TheilSen,
    BlockFits,
    DesignMoments,
    GradientSums,
    IndependentColumns,
    LabelShares,
    RangeFreeBoxes,
    ResidualScale,
    TukeyDepth,
)  # a record is a row


OF_GRID = ("domain", "grid", "mechanism")


def subclasses(kind):
    for child in kind.__subclasses__():
        yield child
        yield from subclasses(child)


def defined(kind):
    """The concrete classes of a kind that the library defines."""
    ours = {child for child in subclasses(kind) if child.__module__.startswith("dpfast.")}
    return {child for child in ours if not inspect.isabstract(child) and not child.__name__.startswith("_")}


KINDS = {kind for kind in defined(dpf.Mechanism) if kind.reads_records}
OPTIONS |= {kind: [{}] for kind in KINDS - OPTIONS.keys()}


def central(grid, epsilon=3.0, kinds=None, statistics=STATISTICS):
    """Every mechanism, with every statistic and every relation of neighbours that its constructor takes."""
    for kind in sorted(OPTIONS if kinds is None else kinds, key=lambda kind: kind.__name__):
        names = {field.name for field in dataclasses.fields(kind)}
        given = {name: value for name, value in {"epsilon": epsilon, "grid": grid}.items() if name in names}
        for statistic in statistics if "statistic" in names else [None]:
            for neighbors in ("replace-one", "add-remove") if "neighbors" in names else [None]:
                for given_options in OPTIONS[kind]:
                    options = {k: value(grid) if k in OF_GRID else value for k, value in given_options.items()}
                    chosen = {"statistic": statistic, "neighbors": neighbors}
                    chosen = {key: value for key, value in chosen.items() if value is not None}
                    try:
                        mechanism = kind(**{**given, **chosen, **options})
                    except (TypeError, ValueError) as error:
                        if statistic is None:
                            error.add_note(f"OPTIONS in tests/central.py needs an entry for {kind.__name__}")
                            raise
                    else:
                        yield mechanism


def name(mechanism):
    if not isinstance(mechanism, dpf.Mechanism):
        return None
    statistic = getattr(mechanism, "statistic", "")
    return f"{type(mechanism).__name__} {statistic} {mechanism.privacy.neighbors}".replace(" ", "-")


def takes_rows(mechanism):
    return isinstance(mechanism, ROWS)


def shaped(mechanism, x):
    """Numbers as the records that a mechanism takes: two columns for one of rows."""
    return np.stack([x, x[::-1]], axis=1) if takes_rows(mechanism) else x


def plain(release):
    """A release as an array; its counts or coefficients, of an object."""
    counts = getattr(release, "counts", release)
    return np.concatenate([table.reshape(-1) for table in counts.values()]) if isinstance(counts, dict) else counts


def same(a, b):
    return type(a) is type(b) and np.array_equal(plain(a), plain(b))


def outcome(release, *args, **options):
    """A release, or the message for a public number of records that it is not made for."""
    try:
        return release(*args, **options)
    except ValueError as error:
        return str(error)


STATISTIC_CLASSES = defined(Statistic)
