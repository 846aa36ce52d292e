"""Regressions by a trusted curator."""

from dpfast.regression.fit import Fit
from dpfast.regression.gradients import DesignMoments, GradientSums, Transform
from dpfast.regression.linear import RegressionMoments, linear_regression
from dpfast.regression.slopes import TheilSen, theil_sen

__all__ = [
    "DesignMoments",
    "Fit",
    "GradientSums",
    "RegressionMoments",
    "TheilSen",
    "Transform",
    "linear_regression",
    "theil_sen",
]
