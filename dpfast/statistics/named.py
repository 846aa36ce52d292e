"""The statistics by the names of the functions that release them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpfast.core import checks
from dpfast.statistics.moment import Count, Mean, Sum, Variance
from dpfast.statistics.rank import (
    Huber,
    InterquartileRange,
    LinearQuantile,
    Median,
    Quantile,
    TrimmedMean,
    WinsorizedMean,
)
from dpfast.statistics.statistic import Statistic


def quantile_of(q: Any, definition: str = "record") -> Statistic | tuple[float, ...]:
    """Return the q-quantile as a record or, "linear", as a point between two; of several q their levels."""
    if checks.choice("definition", definition, ("record", "linear")) == "record":
        return Quantile(q) if np.ndim(q) == 0 else checks.fractions("q", q)
    if np.ndim(q):
        raise ValueError("definition must be 'record' for several quantiles, which are released together")
    return LinearQuantile(q)


def median_of(definition: str = "record") -> Statistic | tuple[float, ...]:
    """Return the median by a definition."""
    return Median() if definition == "record" else quantile_of(0.5, definition)


# That of each function of numbers.
STATISTICS: dict[str, Callable[..., Statistic | tuple[float, ...]]] = {
    "huber": Huber,
    "iqr": InterquartileRange,
    "mean": Mean,
    "median": median_of,
    "quantile": quantile_of,
    "std": Variance,
    "sum": Sum,
    "trimmed_mean": TrimmedMean,
    "variance": Variance,
    "winsorized_mean": WinsorizedMean,
}
# Those with an interval, and the count of records.
WITH_INTERVAL: dict[str, Callable[..., Any]] = {
    **{name: STATISTICS[name] for name in ("mean", "median", "quantile", "std", "sum", "variance")},
    "count": Count,
}


def named(name: str) -> str:
    """Return the name of a statistic or of a function, which may have hyphens."""
    return name.replace("-", "_")
