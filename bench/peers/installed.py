"""The same jobs in other libraries. Each is an optional import, and is omitted silently if not installed."""

import contextlib
import sys
import types
from importlib.metadata import version

import numpy as np

from bench import data

try:
    import opendp.prelude as opendp

    opendp.enable_features("contrib")
except ImportError:
    opendp = None

try:
    # Its models do not import with new releases of scikit-learn, and are not needed here.
    sys.modules.setdefault("diffprivlib.models", types.ModuleType("diffprivlib.models"))
    import diffprivlib
except ImportError:
    diffprivlib = None

try:
    import pydp
    import pydp.algorithms.laplacian
except ImportError:
    pydp = None


try:
    import pandas
except ImportError:
    pandas = None

try:
    import polars
except ImportError:
    polars = None


def names():
    """Names of the installed libraries, as in the tables."""
    sides = {"OpenDP": opendp, "diffprivlib": diffprivlib, "pydp": pydp}
    return [name for name, module in sides.items() if module is not None]


def versions():
    """Versions of the installed libraries."""
    installed = {"opendp": opendp, "diffprivlib": diffprivlib, "python-dp": pydp}
    return {name: version(name) for name, module in installed.items() if module is not None}


def medians(x, *, slow=100_000):
    """A median under epsilon 1 by each peer, of x or, if that takes minutes, of its first `slow` values."""
    few = x[:slow]
    label = "" if few.size == x.size else f", n = {few.size:,}"
    return {
        name if name == "OpenDP" else name + label: lambda release=release, y=x if name == "OpenDP" else few: release(y)
        for name, release in quantiles(0.5, n=x.size, bounds=data.BOUNDS, epsilon=data.EPSILON).items()
    }


def group_medians(x, labels):
    """The median of each group, not private."""
    return grouped(x, labels, "median")


def grouped(x, labels, method, *options):
    """A statistic of each group by a method of pandas' groupby, not private."""
    if pandas is None:
        return {}
    frame = pandas.DataFrame({"x": x, "label": labels})
    return {f"pandas groupby.{method}": lambda: getattr(frame.groupby("label")["x"], method)(*options)}


def quantiles(q, *, n, bounds, epsilon, candidates=1000):
    """A function of n records by each peer that releases their q-quantile."""
    lower, upper = map(float, bounds)
    sides = {}
    if opendp is not None:
        sides["OpenDP"] = opendp_quantile(q, n, np.linspace(lower, upper, candidates).tolist(), epsilon)
    if diffprivlib is not None:
        sides["diffprivlib"] = lambda x: diffprivlib.tools.quantile(x, q, epsilon=epsilon, bounds=(lower, upper))
    if pydp is not None:
        public = {"epsilon": epsilon, "lower_bound": lower, "upper_bound": upper, "dtype": "float"}
        sides["pydp"] = lambda x: pydp.algorithms.laplacian.Percentile(percentile=q, **public).quick_result(list(x))
    return sides


def means(*, n, bounds, epsilon):
    """A function of n records by each peer that releases their mean."""
    lower, upper = map(float, bounds)
    sides = {}
    if opendp is not None:
        clamped = _opendp_records(n) >> opendp.t.then_clamp((lower, upper)) >> opendp.t.then_mean()
        at_scale = lambda scale: clamped >> opendp.m.then_laplace(scale)  # noqa: E731
        sides["OpenDP"] = opendp.binary_search_chain(at_scale, d_in=2, d_out=epsilon, bounds=(1e-9, 1e12))
    if diffprivlib is not None:
        sides["diffprivlib"] = lambda x: diffprivlib.tools.mean(x, epsilon=epsilon, bounds=(lower, upper))
    if pydp is not None:
        public = {"epsilon": epsilon, "lower_bound": lower, "upper_bound": upper, "dtype": "float"}
        sides["pydp"] = lambda x: pydp.algorithms.laplacian.BoundedMean(**public).quick_result(list(x))
    return sides


def _opendp_records(n):
    """A public number of records allows less noise; one replaced record is a distance of 2. None: a private number."""
    return opendp.vector_domain(opendp.atom_domain(T=float, nan=False), size=n), opendp.symmetric_distance()


def opendp_quantile(q, n, candidates, epsilon):
    """A function of n records that releases their q-quantile; for n None, of any private number of records."""

    def at_scale(scale, candidates=candidates):
        quantile = opendp.m.then_private_quantile(opendp.max_divergence(), candidates=candidates, alpha=q, scale=scale)
        return _opendp_records(n) >> quantile

    few, d_in = candidates[:2], 1 if n is None else 2  # the scale does not depend on the number of candidates
    return at_scale(
        opendp.binary_search_param(lambda scale: at_scale(scale, few), d_in=d_in, d_out=epsilon, bounds=(1e-3, 1e6))
    )


def laplaces(scale, n):
    """Laplace noise on n values by each peer."""
    sides = {}
    if opendp is not None:
        integers = _opendp_laplace("i64", scale)
        floats = _opendp_laplace("f64", scale)
        zeros = np.zeros(n, np.int64), np.zeros(n)
        sides[f"OpenDP int, n = {n:,}"] = lambda: integers(zeros[0])
        sides[f"OpenDP float, n = {n:,}"] = lambda: floats(zeros[1])
    if diffprivlib is not None:
        mechanism = diffprivlib.mechanisms.Laplace(epsilon=1.0, sensitivity=scale)
        sides[f"diffprivlib, n = {n:,}"] = lambda: [mechanism.randomise(0.0) for _ in range(n)]
    if pydp is not None:
        with contextlib.suppress(AttributeError):
            noise = pydp.algorithms.numerical_mechanisms.LaplaceMechanism(epsilon=1.0, sensitivity=scale)
            sides[f"pydp, n = {n:,}"] = lambda: [noise.add_noise(0.0) for _ in range(n)]
    return sides


def _opendp_laplace(kind, scale):
    atoms = opendp.atom_domain(T=kind) if kind == "i64" else opendp.atom_domain(T=kind, nan=False)
    return (opendp.vector_domain(atoms), opendp.l1_distance(T=kind)) >> opendp.m.then_laplace(scale)


def gaussians(epsilon, delta):
    """The standard deviation for an l2 sensitivity of 1, and a function that draws n values, by peer."""
    sides = {}
    if opendp is not None:
        space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l2_distance(T="f64")

        def at_scale(scale):
            private = opendp.c.make_zCDP_to_approxDP(space >> opendp.m.then_gaussian(scale))
            return opendp.c.make_fix_delta(private, delta)

        scale = opendp.binary_search_param(at_scale, d_in=1.0, d_out=(epsilon, delta), bounds=(0.5, 1e4))
        noise = space >> opendp.m.then_gaussian(scale)
        sides["OpenDP"] = scale, lambda n: noise(np.zeros(n, np.int64))
    if diffprivlib is not None:
        analytic = diffprivlib.mechanisms.GaussianAnalytic(epsilon=epsilon, delta=delta, sensitivity=1.0)
        # Its standard deviation has no public name.
        sides["diffprivlib"] = analytic._scale, lambda n: [analytic.randomise(0.0) for _ in range(n)]
    return sides


def integers(sensitivity, epsilon):
    """A function that draws n values of noise for an integer, or for each of a vector of l1 sensitivity, by peer."""
    sides = {}
    if opendp is not None:
        noise = _opendp_laplace("i64", sensitivity / epsilon)
        sides["OpenDP"] = lambda n: noise(np.zeros(n, np.int64))
    if diffprivlib is not None:
        geometric = diffprivlib.mechanisms.Geometric(epsilon=epsilon, sensitivity=sensitivity)
        sides["diffprivlib"] = lambda n: [geometric.randomise(0) for _ in range(n)]
    return sides


def column_means(X, epsilon):
    """The means of columns in [0, 1] under epsilon for all together, by peer."""
    n, d = X.shape
    sides = {}
    if opendp is not None:
        space = opendp.vector_domain(opendp.atom_domain(T=float, nan=False)), opendp.l1_distance(T=float)
        noise = space >> opendp.m.then_laplace(d / (n * epsilon))
        sides["OpenDP"] = lambda: noise(X.mean(axis=0))
    if diffprivlib is not None:
        sides["diffprivlib"] = lambda: diffprivlib.tools.mean(X, epsilon=epsilon, bounds=(0.0, 1.0), axis=0)
    return sides
