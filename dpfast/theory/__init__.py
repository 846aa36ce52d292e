"""What the theory promises: lower and upper bounds and sample sizes, one function per theorem.

Every bound takes public parameters and assumptions about the distribution, never data, and costs no privacy. Only
`influence_function` and `gross_error_sensitivity` look at a sample; what they return is as private as the sample.
"""

from dpfast.theory.influence import gross_error_sensitivity, influence_function
from dpfast.theory.location import (
    linear_upper_bound,
    lower_bound,
    lower_bound_scale,
    pure_lower_bound,
    smooth_sensitivity_bound,
    smooth_upper_bound,
)
from dpfast.theory.mestimation import m_estimator_sample_size
from dpfast.theory.quantiles import quantile_error, sample_size
from dpfast.theory.series import (
    series_error,
    series_published_loss,
    series_rate,
    series_sensitivity,
    series_terms,
)

__all__ = [
    "gross_error_sensitivity",
    "influence_function",
    "linear_upper_bound",
    "lower_bound",
    "lower_bound_scale",
    "m_estimator_sample_size",
    "pure_lower_bound",
    "quantile_error",
    "sample_size",
    "series_error",
    "series_published_loss",
    "series_rate",
    "series_sensitivity",
    "series_terms",
    "smooth_sensitivity_bound",
    "smooth_upper_bound",
]
