"""Bounded contributions: src/bounding/bounding.h."""

from assurance.kernels.case import cases

CASES = cases(__file__)

CASES.add(
    "thin",
    "dpfast_thin dpfast_thin_quotas dpfast_request_quota",
    "2 records in 2 groups or in none",
    4,
    (
        "bounding.h",
        "dpfast_quota *quota = quotas + (codes[i] < 0 ? groups : codes[i]);",
        "dpfast_quota *quota = quotas + codes[i];",
    ),
    size=2,
)
CASES.add(
    "begin_group",
    "dpfast_begin_group dpfast_pack",
    "3 records in 2 groups",
    5,
    (
        "bounding.h",
        "i < sorted->n && ((words[i] ^ first) & ~last) == 0; i++) {",
        "((words[i] ^ first) & ~last) == 0; i++) {",
    ),
    size=3,
)
CASES.add(
    "thin_sorted",
    "dpfast_thin_sorted dpfast_begin_group dpfast_pack",
    "3 records in 2 groups",
    5,
    ("bounding.h", "        if (i == sorted->end)\n", "        if (i > sorted->end)\n"),
    size=3,
)
CASES.add(
    "bound_units",
    "dpfast_bound_units dpfast_take_slot dpfast_kept dpfast_request",
    "3 records of 2 units, at most 1 or 2 of each",
    9,
    ("bounding.h", "return place < all->limit ? reservoir->start + place : -1;", "return reservoir->start + place;"),
    size=3,
)
