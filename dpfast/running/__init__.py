"""Answers over time and on demand: running totals of a stream, and questions whether a value is above a threshold.

`Running` releases a total after each of many periods, under one guarantee for all of them. `AboveThreshold` answers any
number of questions, and pays for those that it answers by yes. Both are charged once, when a state is started; a state
cannot be copied, because a copy would answer again with other noise.
"""

from dpfast.running.state import PeriodRecords, RunningState
from dpfast.running.threshold import AboveThreshold, ThresholdState
from dpfast.running.totals import Running

__all__ = ["AboveThreshold", "PeriodRecords", "Running", "RunningState", "ThresholdState"]
