"""Parametric families for `dpfast.mle`: what is estimated on each block of records."""

from dpfast.families.family import AdditiveFamily, BlockFamily, Box, Column, Family

__all__ = [
    "AdditiveFamily",
    "BlockFamily",
    "Box",
    "Column",
    "Family",
]
