"""Regressions by a trusted curator."""

from dpfast.regression.blocks import BlockFits
from dpfast.regression.corrections import Corrections
from dpfast.regression.descent import Descent
from dpfast.regression.fit import Fit
from dpfast.regression.generalised import glm
from dpfast.regression.gradients import DesignMoments, GradientSums, Transform
from dpfast.regression.labels import LabelShares
from dpfast.regression.linear import linear_regression
from dpfast.regression.models import LogisticFit, MultinomialFit, PoissonFit
from dpfast.regression.moments import RegressionMoments
from dpfast.regression.residuals import ResidualScale
from dpfast.regression.schedules import Schedule, schedule
from dpfast.regression.slopes import TheilSen, theil_sen

__all__ = [
    "BlockFits",
    "Corrections",
    "Descent",
    "DesignMoments",
    "Fit",
    "GradientSums",
    "LabelShares",
    "LogisticFit",
    "MultinomialFit",
    "PoissonFit",
    "RegressionMoments",
    "ResidualScale",
    "Schedule",
    "TheilSen",
    "Transform",
    "glm",
    "linear_regression",
    "schedule",
    "theil_sen",
]
