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
from scipy.stats import norm

import dpfast as dpf
from dpfast import local
from dpfast.densities import KolmogorovSmirnov, SmoothedHistogram
from dpfast.local.randomizer import Randomizer
from dpfast.robust import IndependentColumns, RangeFreeBoxes, TukeyDepth
from tests.central import KINDS, ROWS, STATISTIC_CLASSES, defined
from tests.kinds import kind_of, outcome
from tests.parameters import (
    COLUMNS,
    EPSILONS,
    LENGTHS,
    NUMBERS_OF_RECORDS,
    PARAMETERS,
    family,
    grid,
)
from tests.records import FORMS, ROW_FORMS, datasets, installed, pick
from tests.reference.statistics import FUNCTIONS as LOCATION
from tests.reference.statistics import PARAMETERS as STATISTIC_PARAMETERS
from tests.reference.statistics import QUADRATIC
from tests.regressions import REGRESSIONS, pairs
from tests.surveys import SURVEYS


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
            return np.asarray(released)

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
        local.L2Ball(
            2,
            epsilon,
            radius=pick(rng, LENGTHS),
            method=pick(rng, ["auto", "halfspace", "directions", "privunit"]),
            directions=pick(rng, [2, 64]),
        ),
        2,
    ),
    local.SquareWave: lambda rng, epsilon: (
        local.SquareWave(grid(rng), epsilon),
        0,
    ),
    local.SeriesReports: lambda rng, epsilon: (
        local.SeriesReports(
            pick(rng, [2, 8]),
            epsilon,
            grid=grid(rng),
            **pick(
                rng,
                [
                    {"method": "auto"},
                    {"method": "majority"},
                    {"method": "one-frequency", "basis": "trigonometric"},
                    {"method": "halfspace", "basis": "trigonometric"},
                ],
            ),
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
    **SURVEYS,
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
        x, epsilon=epsilon, selection="permute-and-flip", rng=source
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
    "marginals in rounds": lambda x, source, epsilon: dpf.marginals(
        x, COLUMNS, "adaptive", epsilon=epsilon, delta=1e-6, rng=source
    ),
    "marginals, add-remove": lambda x, source, epsilon: dpf.marginals(
        x,
        {0: (-1.0, 99.0), 1: dpf.Categories([0, 1]), 2: dpf.Categories([3, 99])},
        "all",
        epsilon=epsilon,
        neighbors="add-remove",
        rng=source,
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
    "variance, bounds inside bounds": by_options("variance", bounds=(-1.0, 1e6), method="private-bounds"),
    "std, private bounds": by_options("std", bounds="private"),
    "mean, private bounds, half of missing": by_options("mean", bounds="private", missing="half"),
    "density, half of missing": by_options("density", missing="half"),
    "robust_mean, half of missing": by_options("robust_mean", missing="half"),
    "mean, missing left out": by_options("mean", **LEFT_OUT),
    "median, no bounds, missing left out": by_options("median", bounds=None, **LEFT_OUT),
    "histogram, missing left out": by_options("histogram", 7, **LEFT_OUT),
    "sum of rows, missing left out": by_options("sum", **LEFT_OUT),
    "count, missing left out": by_options("count", bounds=None, missing="drop"),
}
ASSUMED = {"a distribution": norm(40, 5), "typical values": (20.0, 60.0)}  # for method="auto"
FUNCTIONS |= {
    f"{name}, {kind}": by_options(name, *arguments, distribution=assumed)
    for name, arguments in {
        "mean": (), "sum": (), "std": (), "median": (), "quantile": (0.9,), "iqr": (), "trimmed_mean": (0.1,)
    }.items()
    for kind, assumed in ASSUMED.items()
}  # fmt: skip
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
ROWS_OF |= {"synthesize a table": 3, "marginals": 3, "marginals in rounds": 3, "marginals, add-remove": 3}
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
