"""Private releases of robust estimates: location in d dimensions, and the general reduction."""

from dpfast.robust.boxes import NestedBoxes
from dpfast.robust.depth import TukeyDepth
from dpfast.robust.independent import IndependentColumns
from dpfast.robust.mean import robust_mean
from dpfast.robust.range_free import RangeFreeBoxes, SpreadTest
from dpfast.robust.reduction import reduce, score

__all__ = [
    "IndependentColumns",
    "NestedBoxes",
    "RangeFreeBoxes",
    "SpreadTest",
    "TukeyDepth",
    "reduce",
    "robust_mean",
    "score",
]
