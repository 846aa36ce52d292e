"""Local randomisers and the keystream: src/randomize/randomize.h, src/descent/descent.h, src/secure/secure.h."""

from assurance.kernels.case import cases

CASES = cases(__file__)

CASES.add(
    "secure_word",
    "secure_uint64 secure_uint32 secure_is_used secure_refilled",
    "all places and generations",
    2,
    (
        "secure.h",
        "return (stream->next == SECURE_WORDS) | (stream->generation != secure_forks);",
        "return stream->generation != secure_forks;",
    ),
)
CASES.add(
    "window",
    "dpfast_window dpfast_either dpfast_mask",
    "up to 63 categories, 1 rejection",
    3,
    ("randomize.h", "width & dpfast_mask(place >= start)", "width & dpfast_mask(place > start)"),
)
CASES.add(
    "random_subset",
    "dpfast_subset dpfast_either dpfast_mask",
    "2 of up to 4 categories, no rejection",
    4,
    ("randomize.h", "        place += place >= x;\n", ""),
    size=4,
)
CASES.add(
    "row",
    "dpfast_row",
    "all numbers of up to 2^30 rows",
    2,
    ("randomize.h", "uint32_t row = (uint32_t)words[1] & last;", "uint32_t row = (uint32_t)words[1];"),
)
CASES.add(
    "threshold_bits",
    "dpfast_threshold_bits dpfast_close_lanes",
    "all words and thresholds, 2 open lanes",
    9,
    ("randomize.h", "bits[i] |= open[i] & ones & ~words[i];", "bits[i] |= open[i] & ones & words[i];"),
)
CASES.add(
    "hadamard",
    "dpfast_hadamard dpfast_butterflies",
    "1, 2 and 4 entries of 4 bits, blocks of 2 at most",
    5,
    ("randomize.h", "x[i + 3 * step] = b - d;", "x[i + 3 * step] = d - b;"),
    size=4,
    shrunk=(("randomize.h", "while (block > 2048)", "while (block > 2)"),),
)
CASES.add(
    "count_lines",
    "dpfast_count_lines",
    "1 line and 1 of padding, 2 categories",
    4,
    ("randomize.h", "DPFAST_PRIME & -(uint32_t)(h < room)", "DPFAST_PRIME & -(uint32_t)(h <= room)"),
    size=1,
    shrunk=(("randomize.h", "enum { ABREAST = 256 };", "enum { ABREAST = 2 };"),),
)
CASES.add(
    "settle",
    "dpfast_settle dpfast_split_lanes",
    "4 lanes, in chunks of 3",
    6,
    ("descent.h", "if (lanes[i] == top && (source", "if (lanes[i] >= top && (source"),
    shrunk=(("descent.h", "#define DPFAST_LANE_CHUNK 256", "#define DPFAST_LANE_CHUNK 3"),),
)
