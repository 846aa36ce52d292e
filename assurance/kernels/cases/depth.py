"""Tukey depth: src/depth/depth.h."""

from assurance.kernels.case import cases

CASES = cases(__file__)

CASES.add(
    "turns_back",
    "dpfast_turns_back",
    "all codes of 32 bits",
    2,
    ("depth.h", "a->x * b->y - a->y * b->x < 0);", "2 * a->x * b->y - 2 * a->y * b->x < 0);"),
)
CASES.add(
    "gcd",
    "dpfast_gcd dpfast_magnitude",
    "all integers below 8 in magnitude",
    9,
    ("depth.h", "        a = b, b = rest;\n", "        a = rest, b = rest;\n"),
)
CASES.add(
    "floor_ratio",
    "dpfast_floor_ratio",
    "all integers of 4 bits, by 3",
    2,
    ("depth.h", "return q - (a % b != 0 && a < 0);", "return q - (a < 0);"),
)
CASES.add(
    "sort_rays",
    "dpfast_sort_rays dpfast_turns_back",
    "3 rays in runs of 2",
    5,
    ("depth.h", "(j >= stop || !dpfast_turns_back(from + i, from + j))", "!dpfast_turns_back(from + i, from + j)"),
    size=3,
    shrunk=(
        (
            "depth.h",
            "for (ptrdiff_t start = 0; start < n; start += 8)",
            "for (ptrdiff_t start = 0; start < n; start += 2)",
        ),
        ("depth.h", "i < n && i < start + 8; i++", "i < n && i < start + 2; i++"),
        ("depth.h", "for (ptrdiff_t width = 8; width < n;", "for (ptrdiff_t width = 2; width < n;"),
    ),
)
