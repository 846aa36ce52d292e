"""Exact laws of releases. A law depends on private data and is never released; proofs and audits use it."""

from dpfast.laws.law import IndependentLaws, Law, ScalarLaw
from dpfast.laws.nested import TAIL, BehindTest, Boxes, NestedIntervals, anywhere, score_cap
from dpfast.laws.noisy import ClampedNoise, NoisyIntegers
from dpfast.laws.rounded import RoundedGaussian, RoundedLaplace, RoundedNoise, RoundedStudent3

__all__ = [
    "TAIL",
    "BehindTest",
    "Boxes",
    "ClampedNoise",
    "IndependentLaws",
    "Law",
    "NestedIntervals",
    "NoisyIntegers",
    "RoundedGaussian",
    "RoundedLaplace",
    "RoundedNoise",
    "RoundedStudent3",
    "ScalarLaw",
    "anywhere",
    "score_cap",
]
