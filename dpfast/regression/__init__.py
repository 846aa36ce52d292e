"""Regressions by a trusted curator."""

from dpfast.regression.fit import Fit

__all__ = ["Fit"]
