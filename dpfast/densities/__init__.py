"""Distributions released whole: synthetic records that follow the data."""

from dpfast.densities.kolmogorov import KolmogorovSmirnov, KolmogorovSmirnovLaw

__all__ = ["KolmogorovSmirnov", "KolmogorovSmirnovLaw"]
