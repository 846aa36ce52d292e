"""The statistics by the names of the functions that release them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpfast.core import checks
from dpfast.statistics.moment import Count, Mean, Sum, Variance
from dpfast.statistics.rank import Huber, InterquartileRange, Median, Quantile, TrimmedMean, WinsorizedMean
from dpfast.statistics.statistic import Statistic


def _quantile(q: Any) -> Statistic | tuple[float, ...]:
    return Quantile(q) if np.ndim(q) == 0 else checks.fractions("q", q)


# That of each function of numbers.
STATISTICS: dict[str, Callable[..., Statistic | tuple[float, ...]]] = {
    "huber": Huber,
    "iqr": InterquartileRange,
    "mean": Mean,
    "median": Median,
    "quantile": _quantile,
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
