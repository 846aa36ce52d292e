"""Histograms, densities and synthetic records: release once, then plot, evaluate and draw as often as wanted."""

from dpfast.densities.histogram import Cells, Histogram, PerturbedHistogram, SmoothedHistogram, histogram
from dpfast.densities.synthesis import synthesize

__all__ = ["Cells", "Histogram", "PerturbedHistogram", "SmoothedHistogram", "histogram", "synthesize"]
