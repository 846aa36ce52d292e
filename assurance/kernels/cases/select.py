"""Selection: src/shared/select.h, src/shared/odd.h and the integers of src/shared/grid.h."""

from assurance.kernels.case import cases

CASES = cases(__file__)

CASES.add(
    "odd",
    "dpfast_odd",
    "all pairs of 64 bits",
    2,
    ("odd.h", "(magnitude - dropped) | (DPFAST_ODD_DROPPED + 1)", "magnitude + (DPFAST_ODD_DROPPED + 1)"),
)
CASES.add(
    "round_up",
    "select_round_up",
    "all integers of 64 bits, shifts 1, 2, 63 and 64",
    2,
    (
        "select.h",
        "return (value & (half | (half - 1))) > half - odd;",
        "return (value & (half | (half - 1))) >= half - odd;",
    ),
)
CASES.add(
    "position",
    "select_position dpfast_mix",
    "strata of up to 8 records, 2^52 strata",
    2,
    ("select.h", "(ptrdiff_t)(((h >> 32) * (uint64_t)width) >> 32)", "(ptrdiff_t)((h * (uint64_t)width) >> 32)"),
    size=8,
    deep=(2000, 2),
)
CASES.add(
    "image",
    "select_image select_key_of_image",
    "all doubles",
    2,
    (
        "select.h",
        "return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;",
        "return bits >> 63 ? bits : bits | UINT64_C(1) << 63;",
    ),
)
CASES.add(
    "sort_run",
    "select_sort_run select_order",
    "all orders of 8 keys",
    9,
    ("select.h", "select_order(x, 2, 4), select_order(x, 3, 5);", "select_order(x, 2, 4);"),
)
CASES.add(
    "sort_room",
    "select_sort_room",
    "1 to 64 keys",
    6,
    ("select.h", "return (n + runs - 1) / runs * runs;", "return n / runs * runs;"),
    size=64,
)
CASES.add(
    "double_of",
    "select_double_of_uint64 select_double_of_int64 select_double_of_bits",
    "all integers of 64 bits",
    2,
    ("select.h", "return (high - (0x1p84 + 0x1p63 + 0x1p52)) + low;", "return (high - (0x1p84 + 0x1p52)) + low;"),
)
CASES.add(
    "half",
    "select_half",
    "all finite halves",
    2,
    ("select.h", "(value & 0x7fff) << 13", "(value & 0x7fff) << 12"),
)
CASES.add(
    "rounded",
    "select_round_int64 select_round_uint64 select_odd_int64 select_odd_uint64",
    "all integers of 64 bits, all shifts",
    2,
    (
        "select.h",
        "return select_double_of_uint64((value >> (shift - 1) >> 1)",
        "return select_double_of_uint64((value >> shift)",
    ),
)
CASES.add(
    "sample",
    "select_sample select_fetch select_positions select_position",
    "2 strata of 1 or 2 keys",
    3,
    ("select.h", "places[i] = select_position(start + i, width, secret);", "places[i] = (start + i + 1) * width;"),
)
CASES.add(
    "merge_twins",
    "select_merge_twins",
    "runs of up to 3 keys, in all orders",
    9,
    ("select.h", "left_back -= take_left;", "left_back -= 1;"),
    size=3,
)
CASES.add(
    "part_of",
    "select_part_of",
    "up to 8 parts of any lengths",
    9,
    ("select.h", "low + (high - low + 1) / 2", "low + (high - low) / 2"),
    size=8,
)
CASES.add(
    "hide_bits",
    "select_hide_bits select_hide_four",
    "up to 12 keys, first bits 0 to 15",
    9,
    ("select.h", "valid += (bit + 7) / 8; i + 8 <= count", "valid += 1; i + 8 <= count"),
    size=12,
    loops=("select_hide_bits.1:2", "select_hide_four.0:5"),
)
CASES.add(
    "hide_bytes",
    "select_hide_bytes",
    "up to 8 keys",
    9,
    ("select.h", "-(uint64_t)(absent[i] != 0)", "-(uint64_t)(absent[i] > 1)"),
    size=8,
)
