"""Densities released once, then evaluated, plotted and drawn from at will."""

from dpfast.densities.series import SeriesCoefficients, SeriesDensity, density

__all__ = ["SeriesCoefficients", "SeriesDensity", "density"]
