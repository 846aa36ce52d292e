"""Local privacy: nobody is trusted with raw data; each person sends one randomised report.

One file per estimation problem. Neighbours here are any two values of one person's record.
"""

from dpfast.local.location import MedianDescent, mean, median, median_naive
from dpfast.local.randomizer import Aggregate, Randomizer

__all__ = ["Aggregate", "MedianDescent", "Randomizer", "mean", "median", "median_naive"]
