"""Regressions by a trusted curator."""

from dpfast.regression.fit import Fit
from dpfast.regression.gradients import DesignMoments, GradientSums, Transform

__all__ = ["DesignMoments", "Fit", "GradientSums", "Transform"]
