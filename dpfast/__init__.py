"""Differentially private statistics: exact samplers on public integer grids, compiled kernels, NumPy in and out."""

from importlib.metadata import version as _version

from dpfast import audit, local, noise, random, smooth, statistics, theory
from dpfast.errors import EntropyError
from dpfast.globally import GlobalSensitivity
from dpfast.grid import Grid
from dpfast.inverse import InverseSensitivity
from dpfast.location import (
    huber,
    iqr,
    mean,
    median,
    quantile,
    std,
    sum,
    trimmed_mean,
    variance,
    winsorized_mean,
)
from dpfast.mechanism import Mechanism
from dpfast.privacy import Privacy
from dpfast.quantiles import Quantiles
from dpfast.smooth import SmoothSensitivity

__version__ = _version("dpfast")

__all__ = [
    "EntropyError",
    "GlobalSensitivity",
    "Grid",
    "InverseSensitivity",
    "Mechanism",
    "Privacy",
    "Quantiles",
    "SmoothSensitivity",
    "audit",
    "huber",
    "iqr",
    "local",
    "mean",
    "median",
    "noise",
    "quantile",
    "random",
    "smooth",
    "statistics",
    "std",
    "sum",
    "theory",
    "trimmed_mean",
    "variance",
    "winsorized_mean",
]
