"""Tukey depth: src/depth.h."""

from assurance.kernels.case import cases

CASES = cases(__file__)

CASES.add(
    "turns_back",
    "dpfast_turns_back",
    "all codes of 32 bits",
    2,
    ("depth.h", "a->x * b->y - a->y * b->x < 0);", "2 * a->x * b->y - 2 * a->y * b->x < 0);"),
)
