"""Histograms, densities and synthetic records: release once, then plot, evaluate and sample without limit."""

from dpfast.densities.cells import Cells
from dpfast.densities.histograms import PerturbedHistogram, SmoothedHistogram, histogram
from dpfast.densities.kolmogorov import KolmogorovSmirnov, KolmogorovSmirnovLaw
from dpfast.densities.released import Histogram
from dpfast.densities.series import SeriesCoefficients, SeriesDensity, density
from dpfast.densities.synthesis import synthesize

__all__ = [
    "Cells",
    "Histogram",
    "KolmogorovSmirnov",
    "KolmogorovSmirnovLaw",
    "PerturbedHistogram",
    "SeriesCoefficients",
    "SeriesDensity",
    "SmoothedHistogram",
    "density",
    "histogram",
    "synthesize",
]
