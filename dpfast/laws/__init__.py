"""Exact laws of releases. A law depends on private data and is never released; proofs and audits use it."""

from dpfast.laws.clamped import ClampedBox
from dpfast.laws.depth import DepthLaw
from dpfast.laws.lattice import PairOfMoments, SumAndCount, ZeroSumLaplace
from dpfast.laws.law import IndependentLaws, Law, ScalarLaw
from dpfast.laws.matrices import WishartDifference
from dpfast.laws.nested import (
    TAIL,
    BehindTest,
    Boxes,
    FlippedIntervals,
    InterpolatedIntervals,
    NestedIntervals,
    anywhere,
    score_cap,
)
from dpfast.laws.noisy import ClampedNoise, NoisyIntegers, add_clamped
from dpfast.laws.rounded import (
    DiscreteLaplace,
    IntegerNoise,
    RoundedGaussian,
    RoundedLaplace,
    RoundedStudent3,
    Staircase,
)
from dpfast.laws.vectors import (
    DiscreteLaplaces,
    Independent,
    IndependentRuns,
    LatticeBox,
    NormNoise,
    RoundedBall,
    RoundedBox,
    RoundedGaussians,
    VectorNoise,
)

__all__ = [
    "TAIL",
    "BehindTest",
    "Boxes",
    "ClampedBox",
    "ClampedNoise",
    "DepthLaw",
    "DiscreteLaplace",
    "DiscreteLaplaces",
    "FlippedIntervals",
    "Independent",
    "IndependentLaws",
    "IndependentRuns",
    "IntegerNoise",
    "InterpolatedIntervals",
    "LatticeBox",
    "Law",
    "NestedIntervals",
    "NoisyIntegers",
    "NormNoise",
    "PairOfMoments",
    "RoundedBall",
    "RoundedBox",
    "RoundedGaussian",
    "RoundedGaussians",
    "RoundedLaplace",
    "RoundedStudent3",
    "ScalarLaw",
    "Staircase",
    "SumAndCount",
    "VectorNoise",
    "WishartDifference",
    "ZeroSumLaplace",
    "add_clamped",
    "anywhere",
    "score_cap",
]
