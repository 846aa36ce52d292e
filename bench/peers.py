"""What other libraries do for the same job. Each is an optional import and silently absent when it is not installed."""

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
    # Its models break on new releases of scikit-learn, and nothing here needs them.
    sys.modules.setdefault("diffprivlib.models", types.ModuleType("diffprivlib.models"))
    import diffprivlib
except ImportError:
    diffprivlib = None

try:
    import pydp
    import pydp.algorithms.laplacian
except ImportError:
    pydp = None


def versions():
    """The versions of what is installed."""
    installed = {"opendp": opendp, "diffprivlib": diffprivlib, "python-dp": pydp}
    return {name: version(name) for name, module in installed.items() if module is not None}


def medians(x, *, slow=100_000):
    """A median under epsilon 1 by each peer, of x or, where that takes minutes, of its first `slow` values."""
    few = x[:slow]
    label = "" if few.size == x.size else f", n = {few.size:,}"
    sides = {}
    if opendp is not None:
        release = _opendp_median(x.size)
        sides["OpenDP"] = lambda: release(x)
    if diffprivlib is not None:
        sides[f"diffprivlib{label}"] = lambda: diffprivlib.tools.median(few, epsilon=data.EPSILON, bounds=data.BOUNDS)
    if pydp is not None:
        sides[f"pydp{label}"] = lambda: _pydp_median(few)
    return sides


def _opendp_median(n):
    """A thousand candidates; the size of the dataset is known, which allows less noise."""
    space = opendp.vector_domain(opendp.atom_domain(T=float, nan=False), size=n), opendp.symmetric_distance()
    candidates = [float(value) for value in np.linspace(*data.BOUNDS, 1000)]

    def at_scale(scale):
        quantile = opendp.m.then_private_quantile(
            opendp.max_divergence(), candidates=candidates, alpha=0.5, scale=scale
        )
        return space >> quantile

    return opendp.binary_search_chain(at_scale, d_in=2, d_out=data.EPSILON, bounds=(1e-3, 1e6))


def _pydp_median(x):
    algorithm = pydp.algorithms.laplacian.Median(
        epsilon=data.EPSILON, lower_bound=data.BOUNDS[0], upper_bound=data.BOUNDS[1], dtype="float"
    )
    return algorithm.quick_result(list(x))


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
