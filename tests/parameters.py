"""Random public parameters of mechanisms and functions, most of them extreme, for tests/outcomes.py."""

import contextlib
import dataclasses
from fractions import Fraction

import numpy as np

import dpfast as dpf
from tests.central import LEVELS, STATISTIC_CLASSES
from tests.records import pick
from tests.reference.statistics import PARAMETERS as STATISTIC_PARAMETERS

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


COLUMNS = {0: (-1.0, 99.0), 1: dpf.Bins(), 2: dpf.Categories([3, 99])}
# The values of each parameter, drawn for each job; None stands for the default.
PARAMETERS = {
    "statistic": statistic,
    "grid": points,
    "domain": domain,
    "labels": label_ball,
    "intercept": lambda rng: pick(rng, [True, False]),
    "epsilon": lambda rng: pick(rng, EPSILONS),
    "delta": lambda rng: pick(rng, DELTAS),
    "mu": lambda rng: None,  # in place of epsilon
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
        rng,
        [
            dpf.psi.Huber(2.0),
            dpf.psi.Huber(1e300),
            dpf.psi.Pinball(0.3),
            dpf.psi.Logistic(2.0),
            dpf.psi.Bivariate(lambda x, theta: float(np.sign(theta - x))),
            dpf.psi.Bivariate(lambda x, theta: theta - float(x > 0), dpf.Grid(0, 1)),
        ],
    ),
    "prior": lambda rng: pick(rng, [None, dpf.prior.Cauchy(0.0, 1.0), dpf.prior.Cauchy(30.0, 5.0)]),
    "scale": lambda rng: pick(rng, [None, 1e-300, (1.0, 1e9), (1e-9, 1e300)]),
    "transform": lambda rng: pick(rng, [None, None, ((1.0, 1e300), (0.0, 1.0)), ((0.6, 0.8), (-0.8, 0.6))]),
    "step": lambda rng: pick(rng, STEPS),
    "width": lambda rng: pick(rng, LENGTHS),
    "dimension": lambda rng: pick(rng, [2, 2, 2, 300]),
    "bins": lambda rng: pick(rng, [1, 2, 7, 1000]),
    "consistency": lambda rng: pick(rng, [None, "auto", "clip", "halves", "simplex"]),
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
    "coefficient_grid": lambda rng: pick(rng, [dpf.FloatGrid(), dpf.Grid(-9.0, 9.0, step=0.5)]),
    "constant": lambda rng: pick(rng, [0.0, -3.5, 1e6]),
    "q": lambda rng: pick(rng, [0.0, 0.3, 0.8, 1.0]),
    "slope_grid": points,
    "intercept_grid": points,
    "model": lambda rng: pick(rng, ["logistic", "poisson", "huber", "multinomial", "multinomial"]),
    "coefficients": lambda rng: pick(
        rng, [(0.0, 0.0), (0.5, -3.0), (1e300, -1e300), ((0.5, -3.0),) * 2, ((0.0, 0.0), (1e300, 0.0), (-3.0, 1e300))]
    ),
    "classes": lambda rng: pick(rng, [2, 3, 300]),
    "clip": lambda rng: pick(rng, [1e-100, 0.3, 1.0, 1e6, 1e100]),
    "bound": lambda rng: pick(rng, [None, 1e-9, 1.0, 1e9]),
    "filled": lambda rng: pick(rng, [None, 1e-9, 0.3]),
    "contributions": lambda rng: pick(rng, [None, 1, 3, 1000]),
    "per_key": lambda rng: pick(rng, [None, 1]),
    "matchings": lambda rng: pick(rng, [None, 1, 3, 1000]),
    "standard_error": lambda rng: pick(rng, [True, False]),
    "missing": lambda rng: pick(rng, [None, 0.0, 1e308, "drop"]),
    "shuffle": lambda rng: pick(rng, [None, 0, 7]),
    "columns": lambda rng: pick(rng, [LEVELS, {"a": (0, 1), "b": dpf.Bins([0, 3], grid=dpf.FloatGrid())}]),
    "marginals": lambda rng: pick(rng, [[("a", "b")], [("b",), ("a", "b"), ("a",)]]),
    "weights": lambda rng: pick(rng, [None, None, (1.0,), (1.0, 1e-9, 1e9)]),
    "keys": lambda rng: pick(rng, [(0, 1, 2), tuple(range(100)), (7, -(2**63), 2**64), ("a", "b")]),
    "method": lambda rng: pick(rng, [None, "auto", "counts", "peeling", "joint"]),
    "typical": lambda rng: pick(rng, [None, None, (3.0, 2.0), (0.0, 1e300, 7.0)]),
    "aim": lambda rng: pick(rng, ["greatest", "mean"]),
    "share": lambda rng: pick(rng, [1e-3, 0.5, 1.0, Fraction(1, 3)]),
    "mechanism": lambda rng: pick(
        rng,
        [
            dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 99), epsilon=pick(rng, [1e-6, 1.0])),
            dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=dpf.Grid(0, 99, missing="half"), epsilon=1.0),
            dpf.GlobalSensitivity(dpf.statistics.Variance(), grid=dpf.Grid(-1e9, 1e300), epsilon=0.5),
        ],
    ),
}
