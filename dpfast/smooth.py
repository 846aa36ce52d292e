"""Smooth sensitivity: the bound, the calibration of its noise, and the range of the published constants."""

from dpfast.mechanisms import SmoothSensitivity
from dpfast.mechanisms.calibration import PublishedConstants, calibrate, laplace_beta_max, valid_region
from dpfast.mechanisms.smooth import smooth_sensitivity

__all__ = [
    "PublishedConstants",
    "SmoothSensitivity",
    "calibrate",
    "laplace_beta_max",
    "smooth_sensitivity",
    "valid_region",
]
