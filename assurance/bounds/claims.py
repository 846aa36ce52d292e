"""The claimed bounds, read from the comments of the headers; tests compare them with the proof notes."""

import re
from dataclasses import dataclass
from fractions import Fraction

from assurance.bounds.source import ROOT, Unsupported


@dataclass(frozen=True)
class Claim:
    """A bound 2^-n or a decimal: the pattern finds it in the comment of a function, or in the text of the header."""

    header: str
    function: str
    pattern: str
    note: str | None = None
    in_note: str | None = None

    def read(self, library):
        """The bound as the source states it."""
        if self.function:
            return value(self.pattern, library.functions[self.function].comment, self.function)
        return value(self.pattern, library.headers[self.header], self.header)

    def noted(self):
        """The bound as the proof note states it."""
        text = " ".join((ROOT / "docs" / "proofs" / self.note).read_text().split())
        return value(self.in_note, text, self.note)


def value(pattern, text, where):
    match = re.search(pattern, " ".join(text.split()))
    if not match:
        raise Unsupported(f"{where} does not state {pattern}")
    kind, number = next((k, n) for k, n in match.groupdict().items() if n is not None)
    return Fraction(1, 2 ** int(number)) if kind.startswith("power") else Fraction(number)


POWER = r"2\^-(?P<power>\d+)"
NUMBER = r"(?P<number>[\d.]+)"
NORMAL, CENTER, SHOULDER = "src/shared/normal.h", "dpfast_normal_of_center", "dpfast_normal_of_shoulder"
GAUSSIAN = "rounded-gaussian.md"
DOUBLES = "certified-doubles.md"
CLAIMS = {
    "from_word": Claim("src/shared/certified.h", "dpfast_from_word", rf"Relative error <= {POWER}"),
    "atanh_tail": Claim(
        "src/shared/certified.h", "dpfast_atanh_tail", rf"\|s\| < 0\.1716 the rest is < {POWER}", DOUBLES,
        rf"rest <= v\^11 / \(23 \(1 - v\)\) < {POWER}",
    ),
    "log": Claim(
        "src/shared/certified.h", "dpfast_log", rf"\|result - exact\| <= {POWER} \(\|exact\| \+ 1\)", DOUBLES,
        rf"log x: \|result - exact\| <= {POWER} \(\|exact\| \+ 1\)",
    ),
    "neg_log_word": Claim(
        "src/shared/certified.h", "dpfast_neg_log_word", rf"\|result - exact\| <= {POWER} \(exact \+ 1\)", DOUBLES,
        rf"-log of a word: \|result - exact\| <= {POWER} \(exact \+ 1\)",
    ),
    "exp_neg": Claim(
        "src/shared/certified.h", "dpfast_exp_neg", rf"relative error <= {POWER} \(1 \+ y\)", DOUBLES,
        rf"exp\(-y\): relative error <= {POWER} \(1 \+ y\)",
    ),
    "one_minus_exp_neg": Claim(
        "src/shared/certified.h", "dpfast_one_minus_exp_neg", rf"relative error <= {POWER}", DOUBLES,
        rf"1 - exp\(-y\): relative error <= {POWER}",
    ),
    "atan": Claim(
        "src/shared/certified.h", "dpfast_atan", rf"relative error <= {POWER}", "rounded-student.md",
        rf"atan z.{{0,60}} relative error <= {POWER}",
    ),
    "student_tail": Claim(
        "src/shared/certified.h", "dpfast_student_tail", rf"relative error <= {POWER}", "rounded-student.md",
        rf"tail in doubles: relative error <= {POWER}",
    ),
    "center_slope": Claim(
        NORMAL, CENTER, rf"within \({NUMBER} z \+ 10\) 2\^-53", GAUSSIAN,
        rf"z = x \(N / D\) is within \*\*\({NUMBER} z",
    ),
    "center_constant": Claim(
        NORMAL, CENTER, rf"z \+ {NUMBER}\) 2\^-53", GAUSSIAN,
        rf"z = x \(N / D\) is within \*\*\([\d.]+ z \+ {NUMBER}\)",
    ),
    "shoulder_slope": Claim(
        NORMAL, SHOULDER, rf"within \({NUMBER} z \+ 8\) 2\^-53", GAUSSIAN,
        rf"z = x P\(t\) is within \*\*\({NUMBER} z",
    ),
    "shoulder_constant": Claim(
        NORMAL, SHOULDER, rf"z \+ {NUMBER}\) 2\^-53", GAUSSIAN,
        rf"z = x P\(t\) is within \*\*\([\d.]+ z \+ {NUMBER}\)",
    ),
    "tail_slope": Claim(
        NORMAL, "dpfast_normal_of_tail", rf"within {NUMBER} z 2\^-53", GAUSSIAN, rf"is within \*\*{NUMBER} z u\*\*"
    ),
    "weights": Claim(
        "src/shared/measure.h", "dpfast_interval_weights", rf"relative error <= {POWER}", "base-measures.md",
        rf"each, {POWER} in all",
    ),
    "decayed": Claim("src/descent/descent.h", "dpfast_decayed", rf"relative error of {POWER}"),
    "powers": Claim("src/descent/descent.h", "dpfast_powers", rf"to a relative error of {POWER}"),
}  # fmt: skip


def read(library):
    """All claims of the sources."""
    return {name: claim.read(library) for name, claim in CLAIMS.items()}
