"""Every dependence that `taint` finds, and why it is there: case, kind, file, the start of the line, verdict.

Verdicts: "rare" is a branch that is taken with a small probability, which docs/assurance/timing.md states; "constant"
one whose condition is the same for all secrets (a tail is evaluated at a point of each of its pieces; a number is
rounded by another way only 2^52 steps from zero); "rounds" a loop of independent tries, whose number is independent of
the accepted result; "cache" an address in a small array, which changes no count of instructions; "leak" a time that
depends on the draw or on the record.
"""

from __future__ import annotations

REASONS = {
    "rejected word": "rare",  # n 2^-64 a word: at most 2^-32 where n < 2^32
    "undecided": "rare",
    "64 equal digits": "rare",
    "piece of the tail": "constant",
    "rounding far from zero": "constant",
    "crowded chunk": "rare",  # 2^-38 for each of the two counts of a chunk
    "tie": "rounds",
    "places of large draws": "cache",
    "entry of a table": "cache",
    "word of a set": "cache",
    "size of the draw": "leak",
    "open digits": "leak",
    "weight of the mask": "leak",
}

_REJECTED = ("branch", "draws.h", "if ((uint64_t)product < n)", "rejected word")

EXPECTED: dict[str, list[tuple[str, str, str, str]]] = {
    "on_level": [_REJECTED],
    "rounded_gaussian": [
        ("address", "normal.h", "place[count] = place[size - 1 - i + count]", "places of large draws"),
        ("address", "normal.h", "last[left] = last[shoulders - 1 - j + left]", "places of large draws"),
        ("address", "normal.h", "rest[j] = words[", "places of large draws"),
        ("address", "normal.h", "int64_t found = out[place[j]]", "places of large draws"),
        ("address", "normal.h", "out[last[j]] = ", "places of large draws"),
        ("branch", "normal.h", "if (__builtin_expect(count > most, 0))", "crowded chunk"),
    ],
    "rounded_gaussian_one": [("branch", "normal.h", "if (__builtin_expect(count > most, 0))", "crowded chunk")],
    "rounded_student3": [
        ("branch", "certified.h", "if (c < 1.0)", "piece of the tail"),
        ("branch", "certified.h", "if (c < 2.5)", "piece of the tail"),
        ("branch", "draws.h", "if (!(k < 0x1p51)", "undecided"),
        ("branch", "draws.h", "if (!(dpfast_secret_student_tail(", "undecided"),
        ("branch", "draws.h", "if ((k > 0) & !(dpfast_secret_student_tail(", "undecided"),
    ],
    "bernoulli": [("branch", "draws.h", "if (word != digits)", "64 equal digits")],
    "uniform": [_REJECTED],
    "box": [("branch", "knorm.h", "return error < 0x1p-11 &&", "undecided")],
    "ball": [
        *(
            (kind, "knorm.h", text, "size of the draw")
            for kind in ("branch", "address")
            for text in [
                "place[count] = i;",
                "for (int32_t j = 0; j < count; j++)",
                "rest[j] = words[place[j]];",
                "drawn[j] = dpfast_normal_of_shoulder(",
                "z[place[j]] = drawn[j];",
                "if (rest[j] >> 56 == 0)",
                "if (rest[j] >> 12 != 0)",
                "double tail = z[place[j]]",
                "dpfast_extra *added",
                "added->",
            ]
        ),
        ("branch", "knorm.h", "double norm_error = norm > 0.0", "undecided"),
        ("branch", "knorm.h", "return error < 0x1p-11 &&", "undecided"),
        ("branch", "knorm.h", "return (dpfast_bounded){error < 0x1p-6", "undecided"),
    ],
    "encode": [("branch", "grid.h", "return __builtin_rint(", "rounding far from zero")],
    "encode_floats": [("branch", "grid.h", "double below = __builtin_rint(", "rounding far from zero")],
    "encode_integers": [("branch", "grid.h", "return __builtin_rint(", "rounding far from zero")],
    "encode_one": [("branch", "grid.h", "return (int64_t)(__builtin_rint(", "rounding far from zero")],
    "window": [_REJECTED],
    "interval": [_REJECTED],
    "dither": [
        ("address", "randomize.h", "low = low[half] <= x", "entry of a table"),
        ("address", "randomize.h", "double part = (x - low[0])", "entry of a table"),
    ],
    "close_lanes": [
        ("branch", "randomize.h", "for (; open; open &= open - 1)", "open digits"),
        ("branch", "randomize.h", "if (source->next_uint64(source->state) >> DPFAST_DIGITS < rest)", "open digits"),
    ],
    "subset": [
        _REJECTED,
        ("address", "randomize.h", "uint64_t taken = ", "word of a set"),
        ("address", "randomize.h", "out[place >> 6] |=", "word of a set"),
        ("address", "randomize.h", "out[x >> 6] |=", "word of a set"),
    ],
    "line": [_REJECTED],
    "round_bits": [("branch", "bits.h", "while (open)", "open digits")],
    "flip_minority": [
        ("branch", "bits.h", "if (2 * ones != d)", "tie"),
        ("branch", "bits.h", "} else if (coin >> 1 < -threshold)", "tie"),
    ],
    "ones": [
        ("branch", "bits.h", "if (words[0] < threshold)", "weight of the mask"),
        ("branch", "bits.h", "if (digits[middle] < word)", "weight of the mask"),
        ("branch", "bits.h", "return low < n && digits[low] == word", "weight of the mask"),
    ],
    "flip_weight": [
        ("branch", "bits.h", "while (ones != weight)", "weight of the mask"),
        ("branch", "bits.h", "if (bit == (ones > weight))", "weight of the mask"),
        ("address", "bits.h", "uint64_t bit = mask[place >> 6]", "weight of the mask"),
        ("address", "bits.h", "mask[place >> 6] ^=", "weight of the mask"),
        _REJECTED,
    ],
}

# What must be found, and the one that must not.
CONTROLS = {"control_loop": {"branch"}, "control_address": {"address"}, "control_masks": set()}
