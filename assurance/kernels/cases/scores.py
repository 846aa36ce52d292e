"""Score laws: src/scores/scores.h, src/scores/score_cells.h."""

from assurance.kernels.case import cases

CASES = cases(__file__)

CASES.add(
    "scores_cell",
    "scores_cell_of scores_least",
    "all magnitudes below 2^53, up to 256 cells a doubling",
    3,
    (
        "score_cells.h",
        "return exponent < fine ? ((leading << exponent) + one - 1) >> fine",
        "return exponent < fine ? (leading << exponent) >> fine",
    ),
)
CASES.add(
    "edges_up_to",
    "scores_edges_up_to",
    "4 edges",
    5,
    (
        "scores.h",
        "low = middle + 1;\n        else\n            high = middle;\n    }\n    return low;",
        "low = middle;\n        else\n            high = middle;\n    }\n    return low;",
    ),
    size=4,
    deep=(20, 22),
)
CASES.add(
    "scores_bernoulli",
    "scores_bernoulli",
    "all fractions up to 2^110, 1 attempt of 2 words",
    4,
    (
        "scores.h",
        "const uint64_t low_mask = top ? ~(uint64_t)0 : ~(uint64_t)0 >> __builtin_clzll(low);",
        "const uint64_t low_mask = ~(uint64_t)0 >> __builtin_clzll(low);",
    ),
)
CASES.add(
    "bucket",
    "scores_bucket",
    "all differences below 2^53",
    2,
    ("scores.h", "const int64_t sign = d >> 63, magnitude = d ^ sign;", "const int64_t sign = d >> 63, magnitude = d;"),
)
