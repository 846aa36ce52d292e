"""Streams: src/stream/stream.h."""

from assurance.kernels.case import cases

CASES = cases(__file__)

CASES.add(
    "stream_add",
    "stream_add",
    "3 records in 2 cells",
    5,
    ("stream.h", "rest += cell != first;", "rest += 1;"),
    size=3,
)
CASES.add(
    "stream_cell",
    "stream_cell",
    "all codes, up to 2^10 tables of 2^20 cells",
    2,
    ("stream.h", "return (uint64_t)(mark - 2) << level->bits", "return (uint64_t)(mark - 1) << level->bits"),
)
CASES.add(
    "stream_values",
    "stream_values",
    "3 records of any bits, of which 2 may differ",
    5,
    ("stream.h", "if (found == STREAM_FEW || rare > 1)", "if (found > STREAM_FEW || rare > 1)"),
    size=3,
    shrunk=(("stream.h", "#define STREAM_FEW 16", "#define STREAM_FEW 2"),),
)
CASES.add(
    "stream_pick",
    "stream_pick stream_found stream_add_group",
    "a group of 16 records in 2 cells",
    17,
    ("stream.h", "            hits += marked[k];", "            hits += 1;"),
)
CASES.add(
    "stream_walk",
    "stream_walk stream_code stream_cell stream_add",
    "2 records, 2 levels",
    5,
    ("stream.h", "else if (mark == 1 && sink->copied < sink->capacity)", "else if (mark == 1)"),
    size=2,
    shrunk=(("stream.h", "#define STREAM_HITS 1024 ", "#define STREAM_HITS 2 "),),
)
