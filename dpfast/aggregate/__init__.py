"""Private maximum likelihood: means of the estimates of blocks, and noisy sums of sufficient statistics."""

from dpfast.aggregate.blocks import COMBINE
from dpfast.aggregate.likelihood import mle
from dpfast.aggregate.mechanism import SampleAndAggregate
from dpfast.aggregate.state import BlockState
from dpfast.aggregate.sufficient import SufficientStatistics

__all__ = [
    "COMBINE",
    "BlockState",
    "SampleAndAggregate",
    "SufficientStatistics",
    "mle",
]
