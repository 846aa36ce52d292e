"""Sample and aggregate: a maximum-likelihood estimate on each block of the records, and a private mean of them."""

from dpfast.aggregate.mechanism import SampleAndAggregate, mle
from dpfast.aggregate.plan import COMBINE
from dpfast.aggregate.state import BlockState

__all__ = [
    "COMBINE",
    "BlockState",
    "SampleAndAggregate",
    "mle",
]
