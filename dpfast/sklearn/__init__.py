"""Estimators of scikit-learn whose fit is differentially private: what is fitted can be published.

What `fit` learns is a release, epsilon-differentially private for one replaced row; all else is post-processing and
costs nothing. Bounds are public parameters, chosen without looking at the data: they have no default.
Guide: docs/guides/sklearn.md
"""

from dpfast.sklearn.density import PrivateHistogramDensity
from dpfast.sklearn.linear_model import PrivateLogisticRegression
from dpfast.sklearn.preprocessing import PrivateQuantileTransformer, PrivateRobustScaler

__all__ = [
    "PrivateHistogramDensity",
    "PrivateLogisticRegression",
    "PrivateQuantileTransformer",
    "PrivateRobustScaler",
]
