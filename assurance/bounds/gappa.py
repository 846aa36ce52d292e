"""Gappa scripts from the graphs of values.py, and what Gappa proves about them."""

import re
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

from assurance.bounds.source import ROOT
from assurance.bounds.values import Value, real

SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
BUILT = ROOT / "build" / "trixie" / "run" / "gappa"


class Unproved(Exception):
    """Gappa finds no bound, or a bound is above the claim."""


def program(path=None):
    """The path of Gappa."""
    found = path or shutil.which("gappa") or (str(BUILT) if BUILT.exists() else None)
    if not found or not Path(found).exists():
        raise SystemExit(
            "Gappa is missing: install Debian's package gappa, or run .ci/debian trixie build/trixie gappa"
        )
    return found


def number(x):
    """A rational number in Gappa's notation; one that is not dyadic as a quotient."""
    x = Fraction(x)
    shift = x.denominator.bit_length() - 1
    if x.denominator == 1 << shift:
        return f"{x.numerator}b-{shift}" if shift else str(x.numerator)
    return f"({x.numerator} / {x.denominator})"


def widened(x, up, places=1100):
    """A dyadic number not below (above) x."""
    scaled = Fraction(x) * 2**places
    return Fraction(
        -(-scaled.numerator // scaled.denominator) if up else scaled.numerator // scaled.denominator, 2**places
    )


class Script:
    """Definitions of rounded values, and of the same values in exact arithmetic; hypotheses, goals and hints.

    `names` maps a value to (its name among the rounded values, its name among the exact ones).
    """

    seconds, runs = 0.0, 0

    def __init__(self, options=()):
        self.lines, self.hypotheses, self.goals, self.hints = ["@rnd = float<ieee_64,ne>;"], [], [], []
        self.names, self.options, self.count = {}, options, 0

    def define(self, name, text):
        self.lines.append(f"{name} = {text};")
        return name

    def double(self, name, value, low=None, high=None):
        """A double of this range for the value, the same in exact arithmetic."""
        self.define(name, f"rnd({name}_)")
        self.names[value] = (name, name)
        if low is not None:
            self.between(name, low, high)
        return name

    def integer(self, name, value, low, high):
        """An integer of this range."""
        self.define(name, f"fixed<0,dn>({name}_)")
        self.names[value] = (name, name)
        self.between(name, low, high)
        return name

    def bind(self, value, name, exact=None):
        """Names of a value: as rounded, and in exact arithmetic."""
        self.names[value] = (name, exact or name)

    def between(self, name, low, high):
        self.hypotheses.append(f"{name} in [{number(widened(low, False))}, {number(widened(high, True))}]")

    def within(self, text, bound):
        """The hypothesis |text| <= bound."""
        self.hypotheses.append(f"|{text}| <= {number(widened(bound, True))}")

    def ask(self, text):
        self.goals.append(text)

    def hint(self, text):
        self.hints.append(text)

    def rounded(self, value, label=None):
        """The name of the value as the doubles compute it."""
        return self._emit(value, 0, label)

    def exact(self, value, label=None):
        """The name of the same operations without rounding, from the same inputs."""
        return self._emit(value, 1, label)

    def _emit(self, value, side, label):
        memory = self.names
        if value in memory and memory[value][side]:
            return memory[value][side]
        if value.constant is not None:
            return number(value.constant)
        if value.op == "neg":
            text = f"-{self._emit(value.args[0], side, None)}"
        elif value.op in SYMBOLS:
            one, two = (self._emit(a, side, None) for a in value.args)
            text = f"{one} {SYMBOLS[value.op]} {two}"
        elif value.op in ("sqrt", "fabs"):
            inner = self._emit(value.args[0], side, None)
            text = f"sqrt({inner})" if value.op == "sqrt" else f"|{inner}|"
        else:
            raise Unproved(f"{value.op} is not an operation on doubles")
        self.count += 1
        name = label or f"{'re'[side]}{self.count}"
        plain = side == 1 or value.op in ("neg", "fabs")
        self.define(name, text if plain else f"rnd({text})")
        pair = list(memory.get(value, (None, None)))
        pair[side] = name
        memory[value] = tuple(pair)
        return name

    def text(self):
        conclusion = " /\\ ".join(f"{goal} in ?" for goal in self.goals)
        hypotheses = " /\\ ".join(self.hypotheses)
        return "\n".join(
            [*self.lines, "{ " + hypotheses + " -> " + conclusion + " }", *(h + ";" for h in self.hints), ""]
        )

    def prove(self, path=None):
        """The interval that Gappa proves for each goal, as (low, high) of Fractions."""
        script = self.text()
        done = subprocess.run(
            [program(path), *self.options], input=script, capture_output=True, text=True, timeout=120, check=False
        )
        Script.runs += 1
        found = {}
        for goal in self.goals:
            bare = re.sub(r"\s", "", goal)
            for line in (done.stdout + done.stderr).splitlines():
                head, _, tail = line.strip().partition(" in [")
                if tail and re.sub(r"\s", "", head) == bare:
                    found[goal] = ends(tail)
        if done.returncode or len(found) < len(set(self.goals)):
            missing = [goal for goal in self.goals if goal not in found]
            raise Unproved(f"no bound of {missing} from\n{script}\n{(done.stdout + done.stderr).strip()[-400:]}")
        return [found[goal] for goal in self.goals]


def ends(text):
    """The ends of an interval as Gappa prints it: 3b-5 {0.09375, 2^(-3.4)}, ..."""
    low, high = re.match(r"([-\d.eb+]+)[^,]*(?:\{[^}]*\})?[^,]*, ([-\d.eb+]+)", re.sub(r"\{[^}]*\}", "", text)).groups()
    return dyadic(low), dyadic(high)


def dyadic(text):
    mantissa, _, exponent = text.partition("b")
    return Fraction(mantissa) * Fraction(2) ** int(exponent or 0)


def magnitude(interval):
    """The greatest magnitude of an interval."""
    return max(abs(interval[0]), abs(interval[1]))


def constant(value, name):
    """A double constant of the source, or an error that names it."""
    if not isinstance(value, Value) or value.constant is None:
        raise Unproved(f"{name} is not a constant")
    return value.constant


__all__ = ["Script", "Unproved", "constant", "dyadic", "magnitude", "number", "program", "real"]
