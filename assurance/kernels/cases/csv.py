"""Delimited text: src/csv/csv.h."""

from assurance.kernels.case import cases

CASES = cases(__file__)

CASES.add(
    "csv_unquote",
    "csv_unquote csv_find",
    "texts of 0 to 3 bytes",
    5,
    ("csv.h", "        if (end - p < 2)\n", "        if (end - p < 1)\n"),
    size=3,
    deep=(10, 12),
)
CASES.add(
    "csv_first",
    "csv_first csv_zeros",
    "all words of 8 bytes",
    9,
    (
        "csv.h",
        "return (word - UINT64_C(0x0101010101010101)) & ~word &",
        "return (word - UINT64_C(0x0101010101010101)) &",
    ),
)
CASES.add(
    "csv_number",
    "csv_numbers csv_number csv_strip csv_is_space csv_digits csv_find",
    "cells of 4 bytes",
    6,
    ("csv.h", "while (p < end && csv_is_space(end[-1]))", "while (csv_is_space(end[-1]))"),
    size=4,
    deep=(6, 8),
)
CASES.add(
    "csv_digits",
    "csv_digits",
    "2 bytes after any number",
    4,
    ("csv.h", "*number < UINT64_MAX / 10; p++)", "*number <= UINT64_MAX / 10; p++)"),
    size=2,
    checks=("unsigned-overflow",),
)
CASES.add(
    "csv_scaled",
    "csv_scaled csv_power_of_two",
    "all numbers from 2^53 on and exponents",
    2,
    ("csv.h", "const uint64_t five = CSV_FIVES[-exponent];", "const uint64_t five = CSV_FIVES[1 - exponent];"),
)
