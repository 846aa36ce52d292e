"""Differentially private statistics: exact samplers on public integer grids, compiled kernels, NumPy in and out.

Modules are imported when one of their names is first used, so that a program loads only the parts that it needs.
"""

from importlib import import_module

# NumPy imports some of its parts when they are first used, and threads that do so at once fail: they import each other.
import numpy.ma
import numpy.polynomial
import numpy.random
import numpy.typing  # noqa: F401

# The public names by the module that defines them. `__init__.pyi` has the same names for type checkers.
_NAMES = {
    "dpfast.aggregate": "SampleAndAggregate SufficientStatistics mle",
    "dpfast.groups.contributions": "BoundedContributions bound_contributions contribution_limit",
    "dpfast.densities": (
        "Bins Categories Histogram KolmogorovSmirnov Marginals NoisyMarginals PerturbedHistogram SeriesCoefficients "
        "SeriesDensity SmoothedHistogram density histogram marginals synthesize"
    ),
    "dpfast.errors": "BudgetError EntropyError PrivacyWarning UtilityWarning",
    "dpfast.core.grid": "FloatGrid Grid",
    "dpfast.groups": "by_group interval",
    "dpfast.ledger": "Ledger",
    "dpfast.location": "count huber iqr mean median quantile std sum trimmed_mean variance winsorized_mean",
    "dpfast.location.explaining": "explain",
    "dpfast.mechanisms": (
        "Covariance Estimate GlobalSensitivity InverseSensitivity MEstimator Mechanism MomentPair NoisySums "
        "PartitionSelection Partitions PresentMean Quantiles Resized SecondMoments Selection SmoothSensitivity "
        "Subsampled TopK bounds covariance m_estimate partitions select top_k"
    ),
    "dpfast.core.privacy": "Privacy PrivacyProfile",
    "dpfast.reports": "Table",
    "dpfast.regression": "RegressionMoments TheilSen glm linear_regression theil_sen",
    "dpfast.robust": "NestedBoxes robust_mean",
    "dpfast.running": "AboveThreshold Running",
    "dpfast.streaming": "Chunks Counted",
}
_MODULES = (
    "audit densities domains families laws local noise prior psi random regression robust running smooth statistics "
    "streaming theory timing"
)
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

import_module("dpfast._kernels")  # an error for sources that are not compiled

__all__ = sorted([*_MODULES.split(), *_MODULE_OF])


def __getattr__(name: str) -> object:
    if name in _MODULE_OF:
        from dpfast.core.words import advised

        value = advised(getattr(import_module(_MODULE_OF[name]), name))
    elif name == "__version__":
        from importlib.metadata import version

        value = version("dpfast")
    else:
        value = _module(name)
    return globals().setdefault(name, value)  # one object for all threads


def _module(name: str) -> object:
    from dpfast.core.words import unknown

    if name.startswith("_"):
        raise AttributeError(unknown(name))
    try:
        return import_module(f"dpfast.{name}")
    except ModuleNotFoundError as error:
        if error.name == f"dpfast.{name}":
            raise AttributeError(unknown(name)) from None
        raise


def __dir__() -> list[str]:
    """Return the public names. Modules that are not listed are not public."""
    return [*__all__, "__version__"]
