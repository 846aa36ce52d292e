"""Differentially private statistics: exact samplers on public integer grids, compiled kernels, NumPy in and out."""

from importlib.metadata import version as _version

from dpfast import (
    audit,
    densities,
    domains,
    families,
    laws,
    local,
    location,
    noise,
    prior,
    psi,
    random,
    regression,
    robust,
    smooth,
    statistics,
    streaming,
    theory,
)
from dpfast.aggregate import SampleAndAggregate, SufficientStatistics, mle
from dpfast.contributions import BoundedContributions, bound_contributions
from dpfast.densities import (
    Bins,
    Categories,
    Histogram,
    KolmogorovSmirnov,
    Marginals,
    NoisyMarginals,
    PerturbedHistogram,
    SeriesCoefficients,
    SeriesDensity,
    SmoothedHistogram,
    density,
    histogram,
    marginals,
    synthesize,
)
from dpfast.errors import BudgetError, EntropyError, PrivacyWarning, UtilityWarning
from dpfast.grid import FloatGrid, Grid
from dpfast.groups import by_group
from dpfast.ledger import Ledger
from dpfast.location import *  # noqa: F403
from dpfast.location.explaining import explain
from dpfast.mechanisms import (
    Covariance,
    Estimate,
    GlobalSensitivity,
    InverseSensitivity,
    Mechanism,
    MEstimator,
    NoisySums,
    Partitions,
    PartitionSelection,
    Quantiles,
    SecondMoments,
    Selection,
    SmoothSensitivity,
    bounds,
    covariance,
    interval,
    m_estimate,
    partitions,
    select,
)
from dpfast.privacy import Privacy, PrivacyProfile
from dpfast.regression import RegressionMoments, TheilSen, glm, linear_regression, theil_sen
from dpfast.robust import NestedBoxes, robust_mean
from dpfast.streaming import Chunks, Counted

__version__ = _version("dpfast")

__all__ = [
    "Bins",
    "BoundedContributions",
    "BudgetError",
    "Categories",
    "Chunks",
    "Counted",
    "Covariance",
    "EntropyError",
    "Estimate",
    "FloatGrid",
    "GlobalSensitivity",
    "Grid",
    "Histogram",
    "InverseSensitivity",
    "KolmogorovSmirnov",
    "Ledger",
    "MEstimator",
    "Marginals",
    "Mechanism",
    "NestedBoxes",
    "NoisyMarginals",
    "NoisySums",
    "PartitionSelection",
    "Partitions",
    "PerturbedHistogram",
    "Privacy",
    "PrivacyProfile",
    "PrivacyWarning",
    "Quantiles",
    "RegressionMoments",
    "SampleAndAggregate",
    "SecondMoments",
    "Selection",
    "SeriesCoefficients",
    "SeriesDensity",
    "SmoothSensitivity",
    "SmoothedHistogram",
    "SufficientStatistics",
    "TheilSen",
    "UtilityWarning",
    "audit",
    "bound_contributions",
    "bounds",
    "by_group",
    "covariance",
    "densities",
    "density",
    "domains",
    "explain",
    "families",
    "glm",
    "histogram",
    "interval",
    "laws",
    "linear_regression",
    "local",
    "m_estimate",
    "marginals",
    "mle",
    "noise",
    "partitions",
    "prior",
    "psi",
    "random",
    "regression",
    "robust",
    "robust_mean",
    "select",
    "smooth",
    "statistics",
    "streaming",
    "synthesize",
    "theil_sen",
    "theory",
]
__all__ += location.__all__


def __dir__() -> list[str]:
    """The public names. Modules that are not listed are not public."""
    return [*__all__, "__version__"]
