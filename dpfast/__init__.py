"""Differentially private statistics: exact samplers on public integer grids, compiled kernels, NumPy in and out."""

from importlib.metadata import version as _version

from dpfast import audit, noise, random, statistics, theory
from dpfast.errors import EntropyError
from dpfast.grid import Grid
from dpfast.inverse import InverseSensitivity
from dpfast.location import median, quantile
from dpfast.mechanism import Mechanism
from dpfast.privacy import Privacy

__version__ = _version("dpfast")

__all__ = [
    "EntropyError",
    "Grid",
    "InverseSensitivity",
    "Mechanism",
    "Privacy",
    "audit",
    "median",
    "noise",
    "quantile",
    "random",
    "statistics",
    "theory",
]
