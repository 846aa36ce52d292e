"""Local randomisers and the keystream: src/randomize.h, src/secure.h."""

from assurance.kernels.case import cases

CASES = cases(__file__)

CASES.add(
    "secure_word",
    "secure_uint64 secure_uint32",
    "all places and generations",
    2,
    (
        "secure.h",
        "if (__builtin_expect((stream->next == SECURE_WORDS) | (stream->generation != secure_forks), 0))",
        "if (__builtin_expect(stream->generation != secure_forks, 0))",
    ),
)
