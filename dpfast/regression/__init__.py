"""Regressions by a trusted curator."""

from dpfast.regression.fit import Fit
from dpfast.regression.slopes import TheilSen, theil_sen

__all__ = ["Fit", "TheilSen", "theil_sen"]
