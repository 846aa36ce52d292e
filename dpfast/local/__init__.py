"""Local privacy: nobody is trusted with raw data; each person sends one randomised report.

One file per estimation problem. Neighbours here are any two values of one person's record.
"""

from dpfast.local.ball import L2Ball
from dpfast.local.hypercube import Hypercube
from dpfast.local.randomizer import Aggregate, Randomizer

__all__ = ["Aggregate", "Hypercube", "L2Ball", "Randomizer"]
