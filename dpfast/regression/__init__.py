"""Regressions by a trusted curator."""

from dpfast.regression.fit import Fit
from dpfast.regression.linear import RegressionMoments, linear_regression

__all__ = ["Fit", "RegressionMoments", "linear_regression"]
