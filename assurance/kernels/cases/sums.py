"""Sums of codes: src/select/sums.h."""

from assurance.kernels.case import cases

CASES = cases(__file__)

CASES.add(
    "trimmed_sums",
    "sums_correction",
    "all counts below 2^62, all codes",
    2,
    # Products of 64 bits, as in _select.pyx before commit ecf3442: 2049 records could wrap them.
    (
        "sums.h",
        "const sums_signed clamped = bracket, entry = window;",
        "const int64_t clamped = bracket, entry = window;",
    ),
)
CASES.add(
    "trimmed_sums_of_few",
    "sums_correction",
    "3 codes of 4 bits",
    4,
    ("sums.h", "+ (outer - ranks) * entry;", "+ (outer + collected - ranks) * entry;"),
    size=3,
    deep=(6, 7),
)
