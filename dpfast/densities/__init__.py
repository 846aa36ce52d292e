"""Histograms, densities and synthetic records: release once, then plot, evaluate and sample without limit."""

from dpfast.densities.cells import Cells
from dpfast.densities.columns import Bins, Categories
from dpfast.densities.histograms import PerturbedHistogram, SmoothedHistogram, histogram
from dpfast.densities.kolmogorov import KolmogorovSmirnov, KolmogorovSmirnovLaw
from dpfast.densities.marginals import NoisyMarginals
from dpfast.densities.ranges import RangeHistogram, RangeSums
from dpfast.densities.released import Histogram
from dpfast.densities.released_marginals import Marginals
from dpfast.densities.released_series import SeriesDensity, density
from dpfast.densities.selected import marginals
from dpfast.densities.series import SeriesCoefficients
from dpfast.densities.synthesis import synthesize

__all__ = [
    "Bins",
    "Categories",
    "Cells",
    "Histogram",
    "KolmogorovSmirnov",
    "KolmogorovSmirnovLaw",
    "Marginals",
    "NoisyMarginals",
    "PerturbedHistogram",
    "RangeHistogram",
    "RangeSums",
    "SeriesCoefficients",
    "SeriesDensity",
    "SmoothedHistogram",
    "density",
    "histogram",
    "marginals",
    "synthesize",
]
