"""Regressions by a trusted curator."""

from dpfast.regression.fit import Fit
from dpfast.regression.gradients import DesignMoments, GradientSums, Transform
from dpfast.regression.linear import RegressionMoments, linear_regression

__all__ = ["DesignMoments", "Fit", "GradientSums", "RegressionMoments", "Transform", "linear_regression"]
