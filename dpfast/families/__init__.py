"""Parametric families for `dpfast.mle`, which estimates their parameters on each block of records."""

from dpfast.families.continuous import Beta, Exponential, Gamma, Lognormal, Normal, Pareto
from dpfast.families.counts import Bernoulli, Geometric, Poisson
from dpfast.families.family import AdditiveFamily, BlockFamily, Family, Ranges, RecordSum
from dpfast.families.fitted import Laplace, NegativeBinomial, Weibull
from dpfast.families.regression import LinearRegression, LogisticRegression, PoissonRegression
from dpfast.families.user import Custom, Scipy

__all__ = [
    "AdditiveFamily",
    "Bernoulli",
    "Beta",
    "BlockFamily",
    "Custom",
    "Exponential",
    "Family",
    "Gamma",
    "Geometric",
    "Laplace",
    "LinearRegression",
    "LogisticRegression",
    "Lognormal",
    "NegativeBinomial",
    "Normal",
    "Pareto",
    "Poisson",
    "PoissonRegression",
    "Ranges",
    "RecordSum",
    "Scipy",
    "Weibull",
]
