"""Estimators for scikit-learn whose fit is differentially private, so that the fitted parameters can be published.

The fitted parameters are a release, epsilon- or (epsilon, delta)-differentially private for one replaced row;
everything else is post-processing and free. Bounds are public parameters, chosen without access to the data: they have
no default.
Guide: https://dpfast.readthedocs.io/en/latest/guides/sklearn.html
"""

from dpfast.sklearn.decomposition import PrivatePCA
from dpfast.sklearn.density import PrivateHistogramDensity
from dpfast.sklearn.linear_model import PrivateLinearRegression, PrivateLogisticRegression
from dpfast.sklearn.preprocessing import PrivateQuantileTransformer, PrivateRobustScaler, PrivateStandardScaler

__all__ = [
    "PrivateHistogramDensity",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivatePCA",
    "PrivateQuantileTransformer",
    "PrivateRobustScaler",
    "PrivateStandardScaler",
]
