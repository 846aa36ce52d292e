"""Score laws: src/scores.h."""

from assurance.kernels.case import cases

CASES = cases(__file__)

CASES.add(
    "scores_flag",
    "scores_flag",
    "all codes, knots and intervals",
    3,
    (
        "scores.h",
        "const uint64_t inside = (uint64_t)(right - left - 1);",
        "const uint64_t inside = (uint64_t)(right - left);",
    ),
)
CASES.add(
    "scores_ramp",
    "scores_ramp",
    "2 codes, all positions and gaps",
    3,
    ("scores.h", "d = d < 0 ? 0 : d;", ""),
    size=2,
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
