"""Levels of small groups: src/groups.h."""

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
    "sort_few",
    "dpfast_sort_few",
    "3 codes",
    17,
    ("groups.h", "ranks[k] += keys[i] < keys[k];", "ranks[k] += keys[i] <= keys[k];"),
    size=3,
)
CASES.add(
    "group_levels",
    "dpfast_group_levels dpfast_level_ranks",
    "3 records, any ranks",
    5,
    (
        "groups.h",
        "const int64_t first = low < 1 ? 0 : codes[low - 1]",
        "const int64_t first = low < 0 ? 0 : codes[low - 1]",
    ),
    size=3,
    deep=(7, 9),
)
