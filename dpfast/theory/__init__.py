"""Theoretical guarantees: lower and upper bounds on errors, and sample sizes; one function per theorem.

Every bound takes public parameters and assumptions about the distribution, never data, and costs no privacy. Only
`influence_function` and `gross_error_sensitivity` take a sample; their results are as private as the sample.
"""

from dpfast.theory.aggregate import (
    aggregate_efficiency,
    aggregate_sample_size,
    block_count,
    block_excess,
    clamp_bias,
    clamp_margin,
)
from dpfast.theory.converse import ImpliedRobustness, implied_failure, implied_robustness, required_failure
from dpfast.theory.counts import noise_variance
from dpfast.theory.densities import (
    perturbed_bins,
    perturbed_mise,
    smoothed_delta,
    smoothed_epsilon,
    smoothed_mise,
    smoothed_optimum,
)
from dpfast.theory.gaussian import gaussian_mu, gaussian_scale
from dpfast.theory.influence import gross_error_sensitivity, influence_function
from dpfast.theory.kolmogorov import (
    exponential_distance,
    exponential_tail,
    small_ball_probability,
)
from dpfast.theory.local_lower_bounds import (
    local_ball_mean_lower_bound,
    local_ball_mean_upper_bound,
    local_density_lower_bound,
    local_logistic_lower_bound,
    local_sparse_mean_lower_bound,
)
from dpfast.theory.local_rates import (
    local_mean_lower_bound,
    local_mean_upper_bound,
    local_median_lower_bound,
    local_median_upper_bound,
    local_truncation,
)
from dpfast.theory.local_sparse import (
    local_sparse_mean_bound,
    local_sparse_rounds_bound,
    local_sparse_threshold,
)
from dpfast.theory.local_testing import (
    local_assouad,
    local_contraction,
    local_effective_sample_size,
    local_fano,
    local_le_cam,
    local_testing_error,
)
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
from dpfast.theory.robust import (
    depth_error,
    gaussian_mean_error,
    gaussian_mean_sample_size,
    medians_error,
    robust_sample_size,
)
from dpfast.theory.series import (
    series_error,
    series_published_loss,
    series_sensitivity,
    series_terms,
)

__all__ = [
    "ImpliedRobustness",
    "aggregate_efficiency",
    "aggregate_sample_size",
    "block_count",
    "block_excess",
    "clamp_bias",
    "clamp_margin",
    "depth_error",
    "exponential_distance",
    "exponential_tail",
    "gaussian_mean_error",
    "gaussian_mean_sample_size",
    "gaussian_mu",
    "gaussian_scale",
    "gross_error_sensitivity",
    "implied_failure",
    "implied_robustness",
    "influence_function",
    "linear_upper_bound",
    "local_assouad",
    "local_ball_mean_lower_bound",
    "local_ball_mean_upper_bound",
    "local_contraction",
    "local_density_lower_bound",
    "local_effective_sample_size",
    "local_fano",
    "local_le_cam",
    "local_logistic_lower_bound",
    "local_mean_lower_bound",
    "local_mean_upper_bound",
    "local_median_lower_bound",
    "local_median_upper_bound",
    "local_sparse_mean_bound",
    "local_sparse_mean_lower_bound",
    "local_sparse_rounds_bound",
    "local_sparse_threshold",
    "local_testing_error",
    "local_truncation",
    "lower_bound",
    "lower_bound_scale",
    "m_estimator_sample_size",
    "medians_error",
    "noise_variance",
    "perturbed_bins",
    "perturbed_mise",
    "pure_lower_bound",
    "quantile_error",
    "required_failure",
    "robust_sample_size",
    "sample_size",
    "series_error",
    "series_published_loss",
    "series_sensitivity",
    "series_terms",
    "small_ball_probability",
    "smooth_sensitivity_bound",
    "smooth_upper_bound",
    "smoothed_delta",
    "smoothed_epsilon",
    "smoothed_mise",
    "smoothed_optimum",
]
