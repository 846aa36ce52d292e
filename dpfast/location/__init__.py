"""Private statistics of scalar records: one function for each statistic."""

from dpfast.location import moments, ranks
from dpfast.location.moments import *  # noqa: F403
from dpfast.location.ranks import *  # noqa: F403

__all__: list[str] = []
__all__ += moments.__all__
__all__ += ranks.__all__
