"""Random public parameters, most of them extreme, and nasty data, for tests of the types of outcomes.

A *job* is a call with all public parameters fixed, records left open: ``job.run(records, rng)``. `jobs` draws them for
every central mechanism, every local randomiser and every function that takes records, by what the library defines;
`missing` names the parameters and classes without an entry here. Records and containers are those of tests/records.py.
`python -m tests.outcomes --help` for long runs.
"""

import argparse
import contextlib
import dataclasses
import importlib.util
import itertools
import statistics
import time

import numpy as np
from numpy.random import PCG64, Generator

import dpfast as dpf
from dpfast import local
from dpfast.densities import KolmogorovSmirnov, SmoothedHistogram
from dpfast.local.randomizer import Randomizer
from dpfast.robust import IndependentColumns, RangeFreeBoxes, TukeyDepth
from tests.central import KINDS, LEVELS, ROWS, STATISTIC_CLASSES, defined
from tests.kinds import kind_of, outcome
from tests.records import FORMS, ROW_FORMS, datasets, installed, pick
from tests.reference.statistics import FUNCTIONS as LOCATION
from tests.reference.statistics import PARAMETERS as STATISTIC_PARAMETERS
from tests.reference.statistics import QUADRATIC
from tests.regressions import REGRESSIONS, pairs

# ---- public parameters ----

EPSILONS = [1e-300, 1e-9, 1e-6, 1e-3, 0.1, 1.0, 1.0, 5.0, 20.0, 100.0, 1e6, 1e308]
DELTAS = [0.0, 1e-300, 1e-9, 1e-3, 0.3, 1 - 2.0**-53]
SIZES = [2, 3, 17, 101, 2**14, 2**18, 2**18 + 1, 2**36, 2**36 + 1, 2**52, 2**52, 2**52, 2**52]
STEPS = [2.0**-1074, 2.0**-1070, 2.0**-1022, 2.0**-30, 1.0, 1.0, 2.0**10, 2.0**500, 2.0**970]
QS = STATISTIC_PARAMETERS["q"]
LENGTHS = [5e-324, 1e-300, 0.5, 2.0, 1e15, 1e300, 1.7e308]
NUMBERS_OF_RECORDS = [1, 2, 3, 4, 7, 29, 65, 500, 4097, 10_000, 10_000, 10_000]  # above 4096 other loops run


def points(rng):
    """A grid of any kind."""
    if rng.random() < 0.2:
        options = {
            "resolution": pick(rng, [0.0, 2.0**-14, *STEPS]),
            "missing": pick(rng, [None, 0.0, 1e308, "half", "drop"]),
        }
        ends = pick(rng, [{}, {}, {"lower": 0.0}, {"lower": -1e9, "upper": 3.0}, {"upper": 1e308}])
        return dpf.FloatGrid(pick(rng, [1, 2, 20, 25, 40]), **options, **ends)
    return grid(rng)


def grid(rng):
    """A grid of any size and step, next to zero, around it or as far from it as grids may be."""
    while True:
        size, step = pick(rng, SIZES), pick(rng, STEPS)
        first = pick(rng, [0, -(size // 2), 1 - size, 2**53 - size + 1, -(2**53)])
        with contextlib.suppress(ValueError):
            made = dpf.Grid(first * step, (first + size - 1) * step, step=step)
            return (
                made
                if rng.random() < 0.7
                else dataclasses.replace(made, missing=pick(rng, [made.upper, 0.0, "half", "drop"]))
            )


def statistic(rng):
    """A statistic of any class; tests/reference/statistics.py has the values of its parameters."""
    kind = pick(rng, sorted(STATISTIC_CLASSES, key=lambda kind: kind.__name__))
    return kind(**{field.name: pick(rng, STATISTIC_PARAMETERS[field.name]) for field in dataclasses.fields(kind)})


def family(rng):
    """A family with bounds, as options of `SampleAndAggregate` and `SufficientStatistics`."""
    return pick(
        rng,
        [
            {"family": "exponential", "bounds": (1e-3, 1e3)},
            {"family": "normal", "bounds": {"mean": (-1e9, 1e9), "sd": (1e-6, 1e6)}},
            {"family": "normal", "bounds": {"mean": (0.0, 99.0)}},
            {"family": "laplace", "bounds": {"location": (0.0, 99.0)}},
            {"family": "gamma", "bounds": {"shape": (0.1, 10.0), "scale": (0.1, 50.0)}},
            {"family": "weibull", "bounds": {"shape": (0.5, 3.0)}},
            {"family": "lognormal", "bounds": {"mu": (-3.0, 3.0)}},
            {"family": "lognormal", "bounds": {"mu": (-3.0, 3.0), "sigma": (0.0, 1e3)}},
            {"family": "beta", "bounds": {"a": (0.5, 9.0)}},
            {"family": "beta", "bounds": {"a": (0.01, 9.0), "b": (0.0, 1e4)}},
            {"family": "pareto", "bounds": (0.0, 10.0)},
            {"family": "poisson", "bounds": (0.1, 1e3)},
            {"family": "geometric", "bounds": (0.01, 0.99)},
            {"family": "bernoulli", "bounds": (0.01, 0.99)},
            {"family": np.mean, "bounds": (0.0, 99.0), "guess": None},
        ],
    )


def domain(rng):
    """A domain of rows of any kind and size, for any number of columns or for two."""
    while True:
        radius, center = pick(rng, LENGTHS), pick(rng, [0.0, 0.0, 1e300, (3.0, -4e15)])
        step = pick(rng, [None, None, *STEPS])
        boxes = dpf.domains.Box(pick(rng, [grid(rng), (grid(rng), grid(rng))]))
        with contextlib.suppress(ValueError):
            return pick(rng, [boxes, dpf.domains.Ball(radius, center=center, step=step), possible_keys(rng)])


def possible_keys(rng):
    """The keys that partition selection may release."""
    return pick(rng, [None, None, 1, 100, 2**40, 2**63, (3, 1, 2), ("a", "b")])


def label_ball(rng):
    """A domain of labels of any size."""
    while True:
        with contextlib.suppress(ValueError):
            return dpf.domains.Ball(pick(rng, LENGTHS), center=pick(rng, [0.0, 0.0, -4e15]))


COLUMNS = {0: (-1.0, 99.0), 1: dpf.Bins(), 2: [3, 99]}
# The values of each parameter, drawn for each job; None stands for the default.
PARAMETERS = {
    "statistic": statistic,
    "grid": points,
    "domain": domain,
    "labels": label_ball,
    "intercept": lambda rng: pick(rng, [True, False]),
    "epsilon": lambda rng: pick(rng, EPSILONS),
    "delta": lambda rng: pick(rng, DELTAS),
    "gdp": lambda rng: None,  # in place of epsilon
    "radius": lambda rng: pick(rng, [None, None, *LENGTHS]),
    "measure": lambda rng: pick(
        rng, [None, "uniform", "dyadic", "integers", "decimal", (1, 2**40), tuple(range(1, 18))]
    ),
    "interpolate": lambda rng: pick(rng, [None, True, False]),
    "selection": lambda rng: pick(rng, [None, "exponential", "permute-and-flip"]),
    "neighbors": lambda rng: pick(rng, ["replace-one", "add-remove"]),
    "noise": lambda rng: pick(
        rng, [None, "laplace", "student-t", "discrete-laplace", "staircase", "gaussian", "k-norm"]
    ),
    "beta": lambda rng: pick(rng, [None, None, 2.0**-30, 1e-3, 0.5, 50.0]),
    "qs": lambda rng: tuple(pick(rng, QS) for _ in range(int(rng.integers(1, 5)))),
    "stages": lambda rng: pick(rng, [None, 1, 2]),
    "k": lambda rng: pick(rng, [1, 7, 100, 100]),
    "psi": lambda rng: pick(
        rng, [dpf.psi.Huber(2.0), dpf.psi.Huber(1e300), dpf.psi.Pinball(0.3), dpf.psi.Logistic(2.0)]
    ),
    "prior": lambda rng: pick(rng, [None, dpf.prior.Cauchy(0.0, 1.0), dpf.prior.Cauchy(30.0, 5.0)]),
    "scale": lambda rng: pick(rng, [None, 1e-300, (1.0, 1e9), (1e-9, 1e300)]),
    "transform": lambda rng: pick(rng, [None, None, ((1.0, 1e300), (0.0, 1.0)), ((0.6, 0.8), (-0.8, 0.6))]),
    "step": lambda rng: pick(rng, STEPS),
    "width": lambda rng: pick(rng, LENGTHS),
    "dimension": lambda rng: pick(rng, [2, 2, 2, 300]),
    "bins": lambda rng: pick(rng, [1, 2, 7, 1000]),
    "consistency": lambda rng: pick(rng, [None, "clip", "simplex"]),
    "terms": lambda rng: pick(rng, [1, 4, 64]),
    "basis": lambda rng: pick(rng, ["cosine", "trigonometric"]),
    "blocks": lambda rng: pick(rng, [None, 1, 2, 3, 100]),
    "bias_correction": lambda rng: pick(rng, [True, False]),
    "combine": lambda rng: pick(rng, ["auto", "mean", "geometric", "winsorized"]),
    "guess": lambda rng: pick(rng, [None, None, "worst"]),
    "planned_n": lambda rng: pick(rng, [None, 1, 10**9]),
    "record_bounds": lambda rng: pick(rng, [None, None, (0.25, 0.75), (0.0, 99.0), (-1e9, 1e300)]),
    "margin": lambda rng: pick(rng, ["auto", 0.0, 10.0]),
    "centered": lambda rng: pick(rng, [True, False]),
    "psd": lambda rng: pick(rng, [True, False]),
    "slope_grid": points,
    "intercept_grid": points,
    "model": lambda rng: pick(rng, ["logistic", "poisson", "huber", "multinomial", "multinomial"]),
    "coefficients": lambda rng: pick(
        rng, [(0.0, 0.0), (0.5, -3.0), (1e300, -1e300), ((0.5, -3.0),) * 2, ((0.0, 0.0), (1e300, 0.0), (-3.0, 1e300))]
    ),
    "classes": lambda rng: pick(rng, [2, 3, 300]),
    "clip": lambda rng: pick(rng, [1e-100, 0.3, 1.0, 1e6, 1e100]),
    "bound": lambda rng: pick(rng, [None, 1e-9, 1.0, 1e9]),
    "contributions": lambda rng: pick(rng, [None, 1, 3, 1000]),
    "per_key": lambda rng: pick(rng, [None, 1]),
    "matchings": lambda rng: pick(rng, [None, 1, 3, 1000]),
    "standard_error": lambda rng: pick(rng, [True, False]),
    "missing": lambda rng: pick(rng, [None, 0.0, 1e308]),
    "shuffle": lambda rng: pick(rng, [None, 0, 7]),
    "columns": lambda rng: pick(rng, [LEVELS, {"a": (0, 1), "b": dpf.Bins([0, 3], grid=dpf.FloatGrid())}]),
    "marginals": lambda rng: pick(rng, [[("a", "b")], [("b",), ("a", "b"), ("a",)]]),
    "weights": lambda rng: pick(rng, [None, None, (1.0,), (1.0, 1e-9, 1e9)]),
}


@dataclasses.dataclass(frozen=True)
class Job:
    """A call with its public parameters; `rows` is the number of columns of the records, 0 for a vector."""

    label: str
    call: object
    n: int
    rows: int = 0
    forms: frozenset = frozenset()  # of FORMS that its argument does not take

    def run(self, records, rng):
        return self.call(records, rng)


def mechanism(kind, rng):
    """A mechanism of one class, by parameters that its constructor takes."""
    takes_family = "family" in {field.name for field in dataclasses.fields(kind)}
    while True:
        options = family(rng) if takes_family else {}
        for name in parameters(kind):
            if name not in options:
                options[name] = PARAMETERS[name](rng)
        with contextlib.suppress(TypeError, ValueError):  # that there are no other exceptions is tested by this
            return kind(**{name: value for name, value in options.items() if value is not None})


LARGEST = {KolmogorovSmirnov: 500, dpf.SampleAndAggregate: 500, SmoothedHistogram: 500, RangeFreeBoxes: 500}
LARGEST |= {dpf.TheilSen: 500}
LARGEST |= {dpf.MEstimator: 4097, dpf.NestedBoxes: 4097, IndependentColumns: 4097, TukeyDepth: 4097}


def central_jobs(kind, rng, n=None):
    """Releases by one class of mechanisms, by a call or by groups; of n records, or any number."""
    while True:
        made = mechanism(kind, rng)
        sizes = [n for n in NUMBERS_OF_RECORDS if n <= LARGEST.get(kind, 10_000)]
        statistic = getattr(made, "statistic", None)
        if isinstance(statistic, QUADRATIC) and made.epsilon < 1e-2:
            sizes = [n for n in sizes if n <= 500]
        if made.privacy.neighbors == "add-remove":
            sizes.append(0)
        size = pick(rng, sizes) if n is None else n
        rows = 2 if issubclass(kind, ROWS) else 0
        yield Job(f"{made!r}, n={size}", lambda x, source, made=made: made(x, rng=source), size, rows)
        if kind.releases_numbers and rng.random() < 0.5:
            yield from group_jobs(made, size, rows, rng)


def group_jobs(made, n, rows, rng):
    ends = np.sort(rng.integers(0, n + 1, 2))
    offsets = np.concatenate([[0], ends, [n]])

    def groups(x, source):
        released = dpf.by_group(made, x, offsets=offsets, rng=source)
        return np.nan_to_num(released) if isinstance(made, RangeFreeBoxes) else released  # NaN where a test fails

    # Counted records have public numbers in each group, which are not those of offsets: a group may be empty.
    without = {"chunks", "counted"} if made.privacy.neighbors == "replace-one" else {"chunks"}
    yield Job(f"groups {offsets.tolist()} of {made!r}", groups, n, rows, frozenset(without))
    if made.privacy.neighbors == "add-remove" and not rows:

        def labelled(labels, source):
            return dpf.by_group(made, np.arange(n, dtype=float), labels=labels, num_groups=3, rng=source)

        def keyed(labels, source):
            released = dpf.by_group(made, np.arange(n, dtype=float), labels=labels, keys=[1, 0, 2**40], rng=source)
            return released["release"].to_numpy() if hasattr(released, "columns") else np.asarray(released)

        yield Job(f"private labels of {made!r}, n={n}", labelled, n, 0, frozenset({"chunks"}))
        yield Job(f"private labels with keys of {made!r}, n={n}", keyed, n, 0, frozenset({"chunks", "tuple"}))


RANDOMIZERS = {
    local.Binary: lambda rng, epsilon: (local.Binary(epsilon), 0),
    local.Categorical: lambda rng, epsilon: (
        local.Categorical(
            pick(rng, [2, 3, 50]), epsilon, pick(rng, ["auto", "k-rr", "subset", "oue", "olh", "hadamard"])
        ),
        0,
    ),
    local.Hypercube: lambda rng, epsilon: (
        local.Hypercube(2, epsilon, radius=pick(rng, LENGTHS), method=pick(rng, ["auto", "majority", "subset"])),
        2,
    ),
    local.Interval: lambda rng, epsilon: (
        local.Interval(
            epsilon,
            bounds=pick(rng, [(0.0, 1.0), (-1e300, 1e300), (1e16, 2e16), (-5e-324, 5e-324)]),
            objective=pick(rng, ["worst", "average"]),
        ),
        0,
    ),
    local.L2Ball: lambda rng, epsilon: (
        local.L2Ball(2, epsilon, radius=pick(rng, LENGTHS), method=pick(rng, ["auto", "halfspace", "privunit"])),
        2,
    ),
    local.SeriesReports: lambda rng, epsilon: (
        local.SeriesReports(
            pick(rng, [2, 8]),
            epsilon,
            grid=grid(rng),
            method=pick(rng, ["auto", "one-frequency", "halfspace", "majority"]),
        ),
        0,
    ),
}


def estimated(statistic, **options):
    """The numbers of an estimate, as a function of records."""
    return lambda x, source, epsilon: tuple(dpf.interval(statistic, x, epsilon=epsilon, rng=source, **options))


FRAMES = frozenset({"pandas.DataFrame", "pandas.nullable", "pyarrow.table", "polars.DataFrame"})
# Functions that take records, the number of columns, and the forms that they do not take.
FUNCTIONS = {
    **REGRESSIONS,
    "local.median": lambda x, source, epsilon: local.median(x, bounds=(-1.0, 99.0), epsilon=epsilon, rng=source),
    "local.median, search": lambda x, source, epsilon: local.median(
        x, bounds=(-1.0, 1e6), epsilon=epsilon, method="search", rng=source
    ),
    "local.quantile": lambda x, source, epsilon: local.quantile(
        x, 0.9, bounds=(-1.0, 99.0), epsilon=epsilon, rng=source
    ),
    "local.HashedCategorical": lambda x, source, epsilon: local.HashedCategorical(2**40, epsilon).randomize(
        x, rng=source
    ),
    "local.HeavyHitters": lambda x, source, epsilon: local.HeavyHitters(epsilon, 32).randomize(x, rng=source),
    "local.Attributes": lambda x, source, epsilon: local.Attributes([3, 50], epsilon).randomize(x, rng=source),
    "local.Attributes, split": lambda x, source, epsilon: local.Attributes([3, 50], epsilon, "split").randomize(
        x, rng=source
    ),
    "local.median_naive": lambda x, source, epsilon: local.median_naive(
        x, bounds=(-1.0, 99.0), epsilon=epsilon, rng=source
    ),
    "local.mean": lambda x, source, epsilon: local.mean(x, bounds=(-1.0, 99.0), epsilon=epsilon, rng=source),
    "local.mean of moments": lambda x, source, epsilon: local.mean(x, moment=2.0, epsilon=epsilon, rng=source),
    "local.density": lambda x, source, epsilon: (
        local.density(x, bounds=(-1.0, 99.0), epsilon=epsilon, rng=source).coefficients
    ),
    "local.sparse_mean": lambda x, source, epsilon: local.sparse_mean(x, epsilon=epsilon, radius=2.0, rng=source),
    "robust_mean": lambda x, source, epsilon: dpf.robust_mean(
        x, bounds=(-1.0, 99.0), epsilon=epsilon, delta=1e-6, rng=source
    ),
    "robust_mean of columns": lambda x, source, epsilon: dpf.robust_mean(
        x, bounds=(-1.0, 99.0), epsilon=epsilon, delta=1e-6, method="columns", rng=source
    ),
    "robust_mean by depth": lambda x, source, epsilon: dpf.robust_mean(
        x, bounds=(-1.0, 99.0), epsilon=epsilon, method="depth", rng=source
    ),
    "robust_mean, whitened": lambda x, source, epsilon: dpf.robust_mean(
        x, bounds=(-1.0, 99.0), epsilon=epsilon, delta=1e-6, method="whitened", rng=source
    ),
    "noise.add_laplace": lambda x, source, epsilon: dpf.noise.add_laplace(
        x, scale=1.0, grid=dpf.Grid(-1, 99), rng=source
    ),
    "noise.add_gaussian": lambda x, source, epsilon: dpf.noise.add_gaussian(
        x, sigma=1.0, grid=dpf.Grid(-1, 99), rng=source
    ),
    "select": lambda x, source, epsilon: dpf.select(x, epsilon=epsilon, rng=source),
    "select, permute-and-flip": lambda x, source, epsilon: dpf.select(
        x, epsilon=epsilon, method="permute-and-flip", rng=source
    ),
    "bounds": lambda x, source, epsilon: dpf.bounds(x, epsilon=epsilon, rng=source),
    "interval, no bounds": estimated(dpf.statistics.Quantile(0.9)),
    "interval of a count": estimated("count"),
    **{f"interval of a {name}": estimated(name, bounds=(-1.0, 99.0)) for name in ("mean", "median", "std", "sum")},
    "median, no bounds": lambda x, source, epsilon: dpf.median(x, epsilon=epsilon, rng=source),
    "quantile, no bounds": lambda x, source, epsilon: dpf.quantile(x, [0.1, 0.6], epsilon=epsilon, rng=source),
    "iqr, no bounds": lambda x, source, epsilon: dpf.iqr(x, epsilon=epsilon, rng=source),
    "mean, private bounds": lambda x, source, epsilon: dpf.mean(x, bounds="private", epsilon=epsilon, rng=source),
    "variance, private bounds": lambda x, source, epsilon: dpf.variance(
        x, bounds="private", epsilon=epsilon, rng=source
    ),
    "trimmed_mean, private bounds": lambda x, source, epsilon: dpf.trimmed_mean(
        x, 0.1, bounds="private", epsilon=epsilon, rng=source
    ),
    "median, private bounds": lambda x, source, epsilon: dpf.median(
        x, bounds="private", epsilon=epsilon, method="smooth-sensitivity", rng=source
    ),
    "mean, add-remove": lambda x, source, epsilon: dpf.mean(
        x, bounds=(-1.0, 99.0), epsilon=epsilon, neighbors="add-remove", rng=source
    ),
    "sum, add-remove": lambda x, source, epsilon: dpf.sum(
        x, bounds=(-1.0, 99.0), epsilon=epsilon, neighbors="add-remove", rng=source
    ),
    "histogram, Gaussian": lambda x, source, epsilon: dpf.histogram(
        x, 7, bounds=(-1.0, 99.0), epsilon=epsilon, delta=1e-6, noise="gaussian", rng=source
    ),
    "synthesize": lambda x, source, epsilon: dpf.synthesize(x, 7, bounds=(0.0, 1.0), epsilon=epsilon, rng=source),
    "synthesize a table": lambda x, source, epsilon: dpf.synthesize(
        x, 7, bounds=(-1.0, 99.0), bins=3, method="tree", epsilon=epsilon, rng=source
    ),
    "marginals": lambda x, source, epsilon: dpf.marginals(x, COLUMNS, epsilon=epsilon, delta=1e-6, rng=source),
    "marginals, add-remove": lambda x, source, epsilon: dpf.marginals(
        x, {0: (-1.0, 99.0), 1: [0, 1], 2: [3, 99]}, "all", epsilon=epsilon, neighbors="add-remove", rng=source
    ),
    "synthesize, no bounds": lambda x, source, epsilon: dpf.synthesize(x, 7, epsilon=epsilon, rng=source),
}
BY_NAME = {name: arguments for name, (arguments, _) in LOCATION.items()}
BY_NAME |= {"quantile of several": ([0.1, 0.9],), "histogram": (7,), "density": ()}


def by_name(name):
    """One of the functions of the library, by bounds."""
    function, options = getattr(dpf, name.split()[0]), {} if name == "count" else {"bounds": (-1.0, 99.0)}

    def call(x, source, epsilon):
        return function(x, *BY_NAME[name], epsilon=epsilon, rng=source, **options)

    return call


def fitted(name, **options):
    """The fitted attributes of an estimator of dpfast.sklearn, by name."""

    def call(x, source, epsilon):
        made = getattr(__import__("dpfast.sklearn").sklearn, name)(epsilon=epsilon, random_state=1, **options)
        learnt = vars(made.fit(*pairs(x)) if name.endswith("Regression") else made.fit(x))
        return sorted((key, kind_of(value)) for key, value in learnt.items() if key.endswith("_"))

    return call


def by_options(name, *arguments, **options):
    """One of the functions of the library, with bounds unless the options have others or the function has none."""
    function, given = getattr(dpf, name), {"bounds": (-1.0, 99.0)} | options
    given = {name: value for name, value in given.items() if value is not None}
    return lambda x, source, epsilon: function(x, *arguments, epsilon=epsilon, rng=source, **given)


LEFT_OUT = {"neighbors": "add-remove", "missing": "drop"}
FUNCTIONS |= {
    "mean, half of missing": by_options("mean", missing="half"),
    "mean, bounds inside bounds": by_options("mean", bounds=(-1.0, 1e6), method="private-bounds"),
    "mean, private bounds, half of missing": by_options("mean", bounds="private", missing="half"),
    "density, half of missing": by_options("density", missing="half"),
    "robust_mean, half of missing": by_options("robust_mean", missing="half"),
    "mean, missing left out": by_options("mean", **LEFT_OUT),
    "median, no bounds, missing left out": by_options("median", bounds=None, **LEFT_OUT),
    "histogram, missing left out": by_options("histogram", 7, **LEFT_OUT),
    "sum of rows, missing left out": by_options("sum", **LEFT_OUT),
    "count, missing left out": by_options("count", bounds=None, missing="drop"),
}
FUNCTIONS |= {name: by_name(name) for name in BY_NAME}
ESTIMATORS = {
    "PrivateRobustScaler": fitted("PrivateRobustScaler", bounds=(-1.0, 99.0)),
    "PrivateStandardScaler": fitted("PrivateStandardScaler", bounds=(-1.0, 99.0)),
    "PrivateStandardScaler, ball": fitted("PrivateStandardScaler", radius=99.0, delta=1e-6),
    "PrivatePCA": fitted("PrivatePCA", radius=99.0),
    "PrivateQuantileTransformer": fitted("PrivateQuantileTransformer", bounds=(-1.0, 99.0), n_quantiles=5),
    "PrivateHistogramDensity": fitted("PrivateHistogramDensity", bounds=(-1.0, 99.0), bins=3),
    "PrivateLinearRegression": fitted("PrivateLinearRegression", radius=99.0, label_bound=1.0),
    "PrivateLogisticRegression": fitted("PrivateLogisticRegression", radius=99.0, classes=(0.0, 1.0)),
    "PrivateLogisticRegression, three classes": fitted(
        "PrivateLogisticRegression", radius=99.0, classes=(0.0, 1.0, 2.0)
    ),
    "PrivateLogisticRegression, blocks": fitted(
        "PrivateLogisticRegression", bounds=(-3.0, 3.0), classes=(0.0, 1.0), method="blocks", blocks=2
    ),
    "PrivateLogisticRegression, local": fitted(
        "PrivateLogisticRegression", radius=1.0, classes=(0.0, 1.0), method="local"
    ),
}
if importlib.util.find_spec("sklearn"):
    FUNCTIONS |= ESTIMATORS
ROWS_OF = dict.fromkeys(ESTIMATORS, 3) | {"local.sparse_mean": 3, "robust_mean": 3, "robust_mean of columns": 3}
ROWS_OF |= {"synthesize a table": 3, "marginals": 3, "marginals, add-remove": 3}
ROWS_OF |= {"robust_mean by depth": 2, "robust_mean, whitened": 3}
ROWS_OF |= {"robust_mean, half of missing": 3, "sum of rows, missing left out": 3}
ROWS_OF |= {"local.Attributes": 2, "local.Attributes, split": 2}
ROWS_OF |= {name: 2 if name.startswith("theil") else 3 for name in REGRESSIONS}
# A regression takes pairs.
NOT_TAKEN = {name: FRAMES for name in ROWS_OF if name in REGRESSIONS or "Regression" in name}


def local_jobs(rng, n=None):
    """Reports of randomisers, and local estimates."""
    while True:
        epsilon, size = pick(rng, EPSILONS), pick(rng, NUMBERS_OF_RECORDS[:8]) if n is None else n
        for make in RANDOMIZERS.values():
            try:
                made, rows = make(rng, epsilon)
            except (TypeError, ValueError):
                continue
            yield Job(
                f"{made!r}, n={size}",
                lambda x, source, made=made: made.randomize(x, rng=source),
                size,
                rows,
                frozenset({"chunks"}),
            )
        for name, call in FUNCTIONS.items():
            yield Job(
                f"{name}, epsilon={epsilon}, n={size}",
                lambda x, source, call=call, epsilon=epsilon: call(x, source, epsilon),
                size,
                ROWS_OF.get(name, 0),
                frozenset({"chunks"}) | NOT_TAKEN.get(name, frozenset()),
            )


def parameters(kind):
    """The names of the parameters of a class of mechanisms that are drawn one by one."""
    names = [field.name for field in dataclasses.fields(kind) if field.init]
    return [name for name in names if name != "family" and (name != "bounds" or "family" not in names)]


def missing():
    """Missing entries for parameters and classes that the library defines, with their places."""
    place = "PARAMETERS of tests/outcomes.py"
    for kind in KINDS:
        yield from (f"{name} of {kind.__name__} in {place}" for name in parameters(kind) if name not in PARAMETERS)
    place = "PARAMETERS of tests/reference/statistics.py"
    for kind in STATISTIC_CLASSES:
        names = {field.name for field in dataclasses.fields(kind)} - set(STATISTIC_PARAMETERS)
        yield from (f"{name} of {kind.__name__} in {place}" for name in names)
    place = "RANDOMIZERS of tests/outcomes.py"
    yield from (f"{kind.__name__} in {place}" for kind in defined(Randomizer) - set(RANDOMIZERS))


# ---- outcomes ----


def forms_of(job):
    forms = ROW_FORMS if job.rows else FORMS
    return [name for name in forms if name not in job.forms and installed(name)]


def records_for(job, rng):
    """Nasty records for a job; the bounds of its grid are where they change."""
    made = getattr(job.call, "__defaults__", None) or ()
    own = next((m.grid for m in made if isinstance(getattr(m, "grid", None), (dpf.Grid, dpf.FloatGrid))), None)
    lower, upper = (own.lower, own.upper) if own else pick(rng, [(0.0, 1.0), (-1.7e308, 1.7e308), (0.0, 99.0)])
    for x in datasets(rng, job.n * max(job.rows, 1), lower, upper):
        yield x.reshape(job.n, job.rows) if job.rows else x


def none_is_a_release(kinds):
    """A private test may fail: None, where others have an array."""
    values = {kind for kind in kinds if kind != "None"}
    return len(values) == 1 and len(next(iter(values))) == 4


def differing(job, rng, most_forms=4, seconds=30.0):
    """Outcomes of a job on nasty data, by container, wherever there are several or one that should not be."""
    wrong = {}
    names = forms_of(job)
    chosen = names if len(names) <= most_forms else rng.choice(names, most_forms, replace=False).tolist()
    found = {name: {} for name in {"float64", "float32", "list", *chosen} - job.forms}
    for x in records_for(job, rng):
        for name, seen in found.items():
            form = (ROW_FORMS if job.rows else FORMS)[name]
            kind = outcome(job, form(x, rng), seconds=seconds)
            if kind[0] == "TookTooLong":
                return {name: {kind}}
            seen.setdefault(kind, x)
    for name, seen in found.items():
        kinds = set(seen)
        bad = [kind for kind in kinds if kind[0] not in ("ValueError", "TypeError") and len(kind) == 2]
        infinite = [kind for kind in kinds if len(kind) == 4 and not kind[3]]
        if (len(kinds) > 1 and not none_is_a_release(kinds)) or bad or infinite:
            wrong[name] = kinds
    return wrong


def jobs(kind, seed, n=None):
    """Endless jobs for a class of mechanisms, or "local"."""
    rng = Generator(PCG64(seed))
    return local_jobs(rng, n) if kind == "local" else central_jobs(kind, rng, n)


EVERY = [*sorted(KINDS, key=lambda kind: kind.__name__), "local"]


def slowest(kind, count, seed, n=10_000):
    """The greatest ratio of the time on one dataset to the median over all, over jobs of one kind with n records."""
    worst = (0.0, "", "")
    rng = Generator(PCG64(seed))
    for job in itertools.islice(jobs(kind, seed, n), count):
        times = []
        for x in records_for(job, rng):
            repeats = []
            for seed_of_draw in range(3):
                start = time.perf_counter()
                outcome(job, x, seed=seed_of_draw, seconds=120.0)
                repeats.append(time.perf_counter() - start)
            times.append(min(repeats))
        ratio = max(times) / statistics.median(times)
        worst = max(worst, (ratio, job.label, f"{max(times):.4f} s"))
    return worst


def main():
    parser = argparse.ArgumentParser(description="types of outcome on nasty data, for random public parameters")
    parser.add_argument("--jobs", type=int, default=100, help="of each class of mechanisms")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="part of the name of a class")
    parser.add_argument("--times", action="store_true", help="ratios of times instead, at 10,000 records")
    options = parser.parse_args()
    kinds = {kind if isinstance(kind, str) else kind.__name__: kind for kind in EVERY}
    if not any(options.only in name for name in kinds):
        parser.error(f"--only must be a part of one of {', '.join(kinds)}; 'local' has all functions")
    for name, kind in kinds.items():
        if options.only not in name:
            continue
        if options.times:
            ratio, label, slowest_time = slowest(kind, options.jobs, options.seed)
            print(f"{name}: {ratio:.1f} times the median, {slowest_time}: {label}", flush=True)
            continue
        start, rng, failed = time.perf_counter(), Generator(PCG64(options.seed)), 0
        for job in itertools.islice(jobs(kind, options.seed), options.jobs):
            for form, kinds in differing(job, rng).items():
                failed += 1
                print(f"  {job.label} as {form}: {sorted(map(str, kinds))}", flush=True)
        print(f"{name}: {options.jobs} jobs, {failed} differ, {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
