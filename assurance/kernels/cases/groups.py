"""Levels of small groups: src/groups/groups.h."""

from assurance.kernels.case import cases

CASES = cases(__file__)

CASES.add(
    "shares",
    "dpfast_floor_share dpfast_ceil_share",
    "all fractions below 1 of 53 bits, all m below 2^62",
    2,
    (
        "groups.h",
        "(product + (((unsigned __int128)1 << plan->shift) - 1)) >> plan->shift",
        "((uint64_t)product + (((uint64_t)1 << plan->shift) - 1)) >> plan->shift",
    ),
    checks=("unsigned-overflow",),
)
CASES.add(
    "sort_columns",
    "dpfast_sort_columns",
    "4 codes, any column",
    5,
    ("groups.h", "for (ptrdiff_t b = a + 1; b < most; b++) {", "for (ptrdiff_t b = a + 1; b < most - a; b++) {"),
    size=4,
    shrunk=(("groups.h", "#define DPFAST_ABREAST 32", "#define DPFAST_ABREAST 2"),),
)
CASES.add(
    "take_few",
    "dpfast_take_few",
    "4 groups of any sizes",
    6,
    ("groups.h", "(boxes += (ptrdiff_t)n + 2) > DPFAST_TOGETHER", "(boxes += (ptrdiff_t)n) > DPFAST_TOGETHER"),
    size=4,
    shrunk=(("measure.h", "#define DPFAST_TOGETHER 384", "#define DPFAST_TOGETHER 8"),),
)
CASES.add(
    "group_levels",
    "dpfast_group_levels dpfast_level_ranks",
    "3 records, any ranks",
    5,
    (
        "groups.h",
        "const int64_t first = low < 1 ? 0 : codes[(low - 1) * apart];",
        "const int64_t first = low < 0 ? 0 : codes[(low - 1) * apart];",
    ),
    size=3,
    deep=(7, 9),
)
