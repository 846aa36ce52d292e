"""Local differential privacy: there is no trusted curator, and each person sends one randomised report.

Each file covers one estimation problem. Any two values of one person's record are neighbours.
"""

from dpfast.core.words import advised
from dpfast.local.attributes import Attributes
from dpfast.local.ball import L2Ball
from dpfast.local.categories import Binary, Categorical
from dpfast.local.chosen import randomizer_for
from dpfast.local.descent import MedianDescent
from dpfast.local.hashed import HashedCategorical
from dpfast.local.hitters import HeavyHitters
from dpfast.local.hypercube import Hypercube
from dpfast.local.interval import Interval
from dpfast.local.location import mean, median, median_naive, quantile
from dpfast.local.randomizer import Aggregate, Randomizer
from dpfast.local.regression import GradientDescent, glm
from dpfast.local.scalar import FiniteLaw
from dpfast.local.search import QuantileSearch
from dpfast.local.secure import SecureSum
from dpfast.local.series import LocalDensity, SeriesReports, density
from dpfast.local.shuffling import Shuffled
from dpfast.local.simplex import project
from dpfast.local.sparse import sparse_mean
from dpfast.local.square import SquareWave, SquareWaveDensity

__all__ = [
    "Aggregate",
    "Attributes",
    "Binary",
    "Categorical",
    "FiniteLaw",
    "GradientDescent",
    "HashedCategorical",
    "HeavyHitters",
    "Hypercube",
    "Interval",
    "L2Ball",
    "LocalDensity",
    "MedianDescent",
    "QuantileSearch",
    "Randomizer",
    "SecureSum",
    "SeriesReports",
    "Shuffled",
    "SquareWave",
    "SquareWaveDensity",
    "density",
    "glm",
    "mean",
    "median",
    "median_naive",
    "project",
    "quantile",
    "randomizer_for",
    "sparse_mean",
]

globals().update({name: advised(globals()[name]) for name in __all__})
