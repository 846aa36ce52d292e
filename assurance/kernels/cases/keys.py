"""Hash tables of keys: src/keys/keys.h."""

from assurance.kernels.case import cases

CASES = cases(__file__)

CASES.add(
    "load",
    "dpfast_load",
    "0 to 8 bytes",
    2,
    ("keys.h", "memcpy(&last, bytes + length - 4, 4);", "memcpy(&last, bytes + length - 3, 4);"),
)
CASES.add(
    "span_hash",
    "dpfast_span_hash dpfast_load dpfast_mixed dpfast_folded",
    "20 bytes",
    4,
    ("keys.h", "for (; at + 8 < length; at += 8)", "for (; at < length; at += 8)"),
    size=20,
    deep=(100, 14),
)
CASES.add(
    "utf8",
    "dpfast_utf8",
    "all 2^32 code points",
    5,
    ("keys.h", "out[0] = (uint8_t)(0xff << (7 - more) | point);", "out[0] = (uint8_t)(0xff << (6 - more) | point);"),
)
CASES.add(
    "span",
    "dpfast_span dpfast_utf8",
    "records of 8 bytes",
    10,
    ("keys.h", "while (points && text[points - 1] == 0)", "while (text[points - 1] == 0)"),
    size=2,
    deep=(6, 26),
)
CASES.add(
    "span_offsets",
    "dpfast_span",
    "2 records of up to 8 bytes",
    4,
    (
        "keys.h",
        "const int32_t *ends = (const int32_t *)column->offsets + i;",
        "const int32_t *ends = (const int32_t *)column->offsets + i + 1;",
    ),
    size=8,
)
CASES.add(
    "integer_code",
    "dpfast_integer_code dpfast_append",
    "3 keys in a table of 4 slots",
    5,
    (
        "keys.h",
        "&& table->slots[place].hash != hash)\n        place = (place + 1) & table->mask;",
        "&& table->slots[place].hash != hash)\n        place = place + 1;",
    ),
    size=3,
)
CASES.add(
    "key_words",
    "dpfast_key_words",
    "2 keys of 9 bytes, depths 0, 8 and 16",
    9,
    ("keys.h", "word = word << 8 | (j < length ?", "word = word << 8 | (j <= length ?"),
    size=9,
)
CASES.add(
    "span_code",
    "dpfast_span_code dpfast_append",
    "2 strings of up to 2 bytes in a table of 4 slots",
    5,
    ("keys.h", "if (table->numbers[code] - start == length\n", "if (table->numbers[code] - start >= length\n"),
    size=2,
)
