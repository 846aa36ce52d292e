"""Mechanisms. Each one consists of a reading of the records, the law of the release and a plan for n records."""

from dpfast.mechanisms.bounds import bounds
from dpfast.mechanisms.covariance import Covariance, SecondMoments, covariance
from dpfast.mechanisms.globally import GlobalSensitivity
from dpfast.mechanisms.inverse import InverseSensitivity
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.mestimation import MEstimator, m_estimate
from dpfast.mechanisms.moments import MomentPair
from dpfast.mechanisms.partitions import Partitions, PartitionSelection, partitions
from dpfast.mechanisms.plan import Plan
from dpfast.mechanisms.present import PresentMean
from dpfast.mechanisms.products import NoisyProducts
from dpfast.mechanisms.quantiles import Quantiles
from dpfast.mechanisms.ranged import BoundedRange
from dpfast.mechanisms.released import Estimate
from dpfast.mechanisms.resized import Resized
from dpfast.mechanisms.selection import Selection, select
from dpfast.mechanisms.smooth import SmoothSensitivity
from dpfast.mechanisms.statistic import StatisticMechanism
from dpfast.mechanisms.subsampled import Subsampled
from dpfast.mechanisms.sums import NoisySums
from dpfast.mechanisms.top import TopK, top_k

__all__ = [
    "BoundedRange",
    "Covariance",
    "Estimate",
    "GlobalSensitivity",
    "InverseSensitivity",
    "MEstimator",
    "Mechanism",
    "MomentPair",
    "NoisyProducts",
    "NoisySums",
    "PartitionSelection",
    "Partitions",
    "Plan",
    "PresentMean",
    "Quantiles",
    "Resized",
    "SecondMoments",
    "Selection",
    "SmoothSensitivity",
    "StatisticMechanism",
    "Subsampled",
    "TopK",
    "bounds",
    "covariance",
    "m_estimate",
    "partitions",
    "select",
    "top_k",
]
