"""The statistics of scalar records that mechanisms release."""

from dpfast.statistics.moment import Count, Mean, MomentStatistic, Sum, UnboundedStatistic, Variance
from dpfast.statistics.rank import (
    Gaps,
    Huber,
    InterquartileRange,
    Median,
    OrderStatistic,
    Quantile,
    RankStatistic,
    Summary,
    TrimmedMean,
    WinsorizedMean,
)
from dpfast.statistics.statistic import Distribution, Statistic

__all__ = [
    "Count",
    "Distribution",
    "Gaps",
    "Huber",
    "InterquartileRange",
    "Mean",
    "Median",
    "MomentStatistic",
    "OrderStatistic",
    "Quantile",
    "RankStatistic",
    "Statistic",
    "Sum",
    "Summary",
    "TrimmedMean",
    "UnboundedStatistic",
    "Variance",
    "WinsorizedMean",
]
