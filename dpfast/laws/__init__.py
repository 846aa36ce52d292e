"""Exact laws of releases. A law depends on private data and is never released; proofs and audits use it."""

from dpfast.laws.law import IndependentLaws, Law, ScalarLaw
from dpfast.laws.nested import TAIL, BehindTest, Boxes, FlippedIntervals, NestedIntervals, anywhere, score_cap
from dpfast.laws.noisy import ClampedNoise, NoisyIntegers
from dpfast.laws.rounded import (
    DiscreteLaplace,
    IntegerNoise,
    RoundedGaussian,
    RoundedLaplace,
    RoundedStudent3,
    Staircase,
)
from dpfast.laws.vectors import Independent, RoundedBox, VectorNoise

__all__ = [
    "TAIL",
    "BehindTest",
    "Boxes",
    "ClampedNoise",
    "DiscreteLaplace",
    "FlippedIntervals",
    "Independent",
    "IndependentLaws",
    "IntegerNoise",
    "Law",
    "NestedIntervals",
    "NoisyIntegers",
    "RoundedBox",
    "RoundedGaussian",
    "RoundedLaplace",
    "RoundedStudent3",
    "ScalarLaw",
    "Staircase",
    "VectorNoise",
    "anywhere",
    "score_cap",
]
