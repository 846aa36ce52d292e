"""Exact draws: src/shared/draws.h."""

from assurance.kernels.case import cases

CASES = cases(__file__)

CASES.add(
    "below",
    "dpfast_below",
    "all words, sizes below 2^6, 1 rejection",
    4,
    (
        "draws.h",
        "if ((uint64_t)product < n) {\n        uint64_t unfair = -n % n;\n        while",
        "if ((uint64_t)product < n) {\n        uint64_t unfair = n % (n - 1);\n        while",
    ),
    size=6,
)
CASES.add(
    "uniform",
    "dpfast_uniform",
    "ranges below 2^6 and the full one, 2 words",
    4,
    (
        "draws.h",
        "return last + 1 == 0 ? word : dpfast_below(source, word, last + 1);",
        "return dpfast_below(source, word, last + 1);",
    ),
    size=6,
)
CASES.add(
    "bernoulli",
    "dpfast_bernoulli",
    "denominators below 2^6, 1 word",
    4,
    ("draws.h", "while (numerator < denominator) {", "while (numerator <= denominator) {"),
    size=6,
)
CASES.add(
    "first_above",
    "dpfast_first_above",
    "4 weights",
    5,
    (
        "draws.h",
        "high = middle;\n        else\n            low = middle + 1;\n    }\n    return low;\n}\n\n/* The index i",
        "high = middle;\n        else\n            low = middle;\n    }\n    return low;\n}\n\n/* The index i",
    ),
    size=4,
    deep=(20, 21),
)
CASES.add(
    "choose",
    "dpfast_choose dpfast_choose_weight dpfast_add dpfast_from_word",
    "3 weights, of any value",
    4,
    ("draws.h", "if (low < n - 1 && cumulative[low] - target < margin)", "if (cumulative[low + 1] - target < margin)"),
    size=3,
)
CASES.add(
    "refined",
    "dpfast_halvings dpfast_doubtful dpfast_count_doubtful dpfast_refined dpfast_refine",
    "all words, coarse draws and scales from 2^34 to 2^56",
    2,
    ("draws.h", "return exponent > 34 ? exponent - 29 : 0;", "return exponent > 34 ? exponent - 23 : 0;"),
)
