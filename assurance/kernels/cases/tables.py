"""Tables of series, and matchings of records: src/series/series.h, src/slopes/slopes.h."""

from assurance.kernels.case import cases

CASES = cases(__file__)

CASES.add(
    "node",
    "dpfast_node",
    "up to 256 codes, 4 nodes",
    2,
    (
        "series.h",
        "(ptrdiff_t)(((unsigned __int128)code * multiplier) >> 63)",
        "(ptrdiff_t)(((uint64_t)code * multiplier) >> 63)",
    ),
    size=4,
)
CASES.add(
    "code_at",
    "dpfast_code_at",
    "all positions, up to 256 codes",
    2,
    (
        "series.h",
        "(int64_t)(((unsigned __int128)position * size) >> 64)",
        "(int64_t)(((unsigned __int128)position * size) >> 63)",
    ),
)
CASES.add(
    "matching",
    "slopes_of_matching slopes_between slopes_end",
    "2 to 5 records, all matchings",
    6,
    ("slopes.h", "if (count > b + 1)\n            count = b + 1;", "if (count > b + 2)\n            count = b + 2;"),
    size=5,
)
