"""Nested boxes and base measures: src/shared/levels.h, src/shared/measure.h."""

from assurance.kernels.case import cases

CASES = cases(__file__)

CASES.add(
    "difference_ranges",
    "dpfast_difference_ranges",
    "2 levels",
    4,
    ("levels.h", "for (ptrdiff_t b = 0; b < n - a; b++) {", "for (ptrdiff_t b = 0; b <= n - a; b++) {"),
    size=2,
    deep=(4, 8),
)
CASES.add(
    "shifted_sums",
    "dpfast_shifted_sums",
    "2 levels, 2 records",
    6,
    ("levels.h", "below += low[-t] - high[1 - t];", "below += low[-t] - high[2 - t];"),
    size=2,
    deep=(3, 9),
)
CASES.add(
    "depth",
    "dpfast_depth",
    "4 levels",
    6,
    ("levels.h", "while (depth + 1 < n && low", "while (depth < n && low"),
    size=4,
    deep=(20, 22),
)
CASES.add(
    "place_in_gap",
    "dpfast_place_in_gap",
    "3 levels",
    6,
    ("levels.h", "if (end == code)\n        return;", ""),
    size=3,
    deep=(10, 13),
)
CASES.add(
    "shell_weights",
    "dpfast_shell_weights dpfast_interval_weight",
    "2 levels, 3 codes",
    5,
    (
        "levels.h",
        "const int64_t box = t < n ? dpfast_interval_weight",
        "const int64_t box = t <= n ? dpfast_interval_weight",
    ),
    size=2,
)
CASES.add(
    "point_at",
    "dpfast_point_at dpfast_interval_weight",
    "tables of 5 codes",
    7,
    ("measure.h", "if (table[middle + 1] > place)", "if (table[middle] > place)"),
    size=4,
    deep=(16, 18),
)
