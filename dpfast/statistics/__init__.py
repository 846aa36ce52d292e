"""The statistics of scalar records that mechanisms release."""

from dpfast.statistics import moment, rank, statistic, user
from dpfast.statistics.moment import *  # noqa: F403
from dpfast.statistics.rank import *  # noqa: F403
from dpfast.statistics.statistic import *  # noqa: F403
from dpfast.statistics.user import *  # noqa: F403

__all__: list[str] = []
__all__ += moment.__all__
__all__ += rank.__all__
__all__ += statistic.__all__
__all__ += user.__all__
