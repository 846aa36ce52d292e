"""Sample and aggregate: a private mean of the maximum-likelihood estimates of blocks of the records."""

from dpfast.aggregate.mechanism import SampleAndAggregate, mle
from dpfast.aggregate.plan import COMBINE
from dpfast.aggregate.state import BlockState
from dpfast.aggregate.sufficient import SufficientStatistics

__all__ = [
    "COMBINE",
    "BlockState",
    "SampleAndAggregate",
    "SufficientStatistics",
    "mle",
]
