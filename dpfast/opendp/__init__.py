"""Mechanisms of dpfast as OpenDP measurements: chained, composed and budgeted there, with the speed of dpfast.

    >>> import numpy as np, opendp.prelude as dp
    >>> import dpfast.opendp as dpf_opendp
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> space = dpf_opendp.array_domain(1000), dp.change_one_distance()
    >>> median = dpf_opendp.make_median(*space, 1.0, bounds=(0, 100))
    >>> 40 <= median(np.linspace(0, 100, 1000)) <= 60
    True
    >>> median.map(3)
    3.0

Both features are required because OpenDP cannot verify a measurement from outside; by enabling them, you trust this
module. It guarantees `Mechanism.privacy_map`, and that dtype, shape and number of records are checked before a
mechanism receives the data, since OpenDP does not check them at a release. See
https://dpfast.readthedocs.io/en/latest/guides/opendp.html.
"""

from dpfast.opendp.constructors import (
    make_histogram,
    make_mean,
    make_median,
    make_quantile,
    make_quantiles,
    make_robust_mean,
    make_trimmed_mean,
    register,
)
from dpfast.opendp.measurements import array_domain, make_measurement

__all__ = [
    "array_domain",
    "make_histogram",
    "make_mean",
    "make_measurement",
    "make_median",
    "make_quantile",
    "make_quantiles",
    "make_robust_mean",
    "make_trimmed_mean",
    "register",
]
