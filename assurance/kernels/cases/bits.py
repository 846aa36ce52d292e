"""Rows of bits: src/shared/bits.h, src/shared/mix.h."""

from assurance.kernels.case import cases

CASES = cases(__file__)

CASES.add(
    "inside",
    "dpfast_inside dpfast_words_of",
    "all lengths up to 2^62",
    2,
    ("bits.h", "return left >= 64 ? ~(uint64_t)0", "return left > 64 ? ~(uint64_t)0"),
)
CASES.add(
    "class",
    "dpfast_class",
    "4 edges",
    6,
    ("bits.h", "return low < n && digits[low] == word ? -1 : low;", "return digits[low] == word ? -1 : low;"),
    size=4,
    deep=(20, 22),
)
CASES.add(
    "public_subset",
    "dpfast_subset dpfast_mix dpfast_next_mixed dpfast_uniform",
    "2 of 3 places, 256 seeds",
    4,
    ("bits.h", "uint64_t last = (uint64_t)(d - k + i), place", "uint64_t last = (uint64_t)(d + i), place"),
)
CASES.add(
    "add_rows",
    "dpfast_add_rows",
    "8 rows of a word, any counters up to 240",
    10,
    ("bits.h", "DPFAST_ADD3(two, f, two, c, d);", "DPFAST_ADD3(two, f, two, c, c);"),
)
CASES.add(
    "count_columns",
    "dpfast_count_columns dpfast_add_words dpfast_add_strip dpfast_add_ones "
    "dpfast_popcount dpfast_add_planes dpfast_spread_planes",
    "9 rows of a word",
    66,
    ("bits.h", "for (ptrdiff_t row = i; row < end; row++)", "for (ptrdiff_t row = i; row <= end; row++)"),
    size=9,
)
CASES.add(
    "add_planes",
    "dpfast_add_planes",
    "a word of counters, any sums that do not wrap",
    18,
    ("bits.h", "carry &= sum;", "carry = sum;"),
)
CASES.add(
    "spread_planes",
    "dpfast_spread_planes",
    "all planes",
    10,
    ("bits.h", "(x ^ x >> 14) & 0x0000CCCC0000CCCCu", "(x ^ x >> 14) & 0x0000CCCC0000CCC8u"),
)
CASES.add(
    "flip_minority",
    "dpfast_flip_minority dpfast_popcount",
    "rows of 66 bits, 1 tie",
    4,
    ("bits.h", "words[length - 1] &= dpfast_inside(d, length - 1);", ""),
    size=66,
)
CASES.add(
    "flip_weight",
    "dpfast_flip_weight dpfast_fix_weight dpfast_popcount dpfast_uniform",
    "masks of 3 bits, 3 places",
    5,
    ("bits.h", "mask[length - 1] &= dpfast_inside(k, length - 1);", ""),
    size=3,
)
CASES.add(
    "ones",
    "dpfast_ones dpfast_class",
    "2 edges of each kind",
    4,
    ("bits.h", "return index < 0 ? -1 : favoured + 1 + index;", "return favoured + 1 + index;"),
    size=2,
)
CASES.add(
    "up_code",
    "dpfast_up_code",
    "all doubles",
    2,
    ("bits.h", "size = size < 1.0 ? size : 1.0;", "size = size < 2.0 ? size : 2.0;"),
)
CASES.add(
    "have_ones",
    "dpfast_have_ones dpfast_rows_have_ones",
    "a row of 64, 65 and 130 bits",
    5,
    ("bits.h", "uint64_t beyond = ~dpfast_inside(d, words - 1);", "uint64_t beyond = ~dpfast_inside(d, words);"),
)
