"""What a proof hands in: its steps, each a claim with the bound that was proved; and algebra that the proofs share."""

import math
import re
import time
from dataclasses import dataclass, field
from fractions import Fraction

from assurance.bounds import balls
from assurance.bounds.gappa import Script, Unproved, magnitude
from assurance.bounds.values import Library, nearest

U = Fraction(1, 2**53)
HEADERS = (
    "src/shared/certified.h", "src/shared/normal.h", "src/shared/draws.h", "src/choice/choice.h",
    "src/shared/measure.h", "src/shared/levels.h", "src/gaps/gaps.h", "src/boxes/boxes.h", "src/knorm/knorm.h",
    "src/scores/scores.h", "src/descent/descent.h", "src/shared/chain.h",
)  # fmt: skip


@dataclass
class Step:
    """One bound: what it is about, for which inputs, what is claimed and what was proved, in the same unit."""

    function: str
    range: str
    unit: str
    claimed: Fraction
    proved: Fraction
    method: str
    seconds: float = 0.0

    @property
    def holds(self):
        return self.proved <= self.claimed


@dataclass
class Proof:
    """The proofs of one run: the sources, the claims, and the steps so far."""

    library: Library
    claims: dict
    gappa: str | None = None
    steps: list = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)

    def step(self, *given):
        now = time.perf_counter()
        self.steps.append(Step(*given, seconds=now - self.started))
        self.started = now
        return self.steps[-1].proved

    def holds(self, function, statement, truth, method):
        """A statement that is true or false: claimed and proved as 0 exceptions."""
        self.step(function, statement, "exceptions", Fraction(0), Fraction(int(not truth)), method)

    def relative(self, value, inputs, options=()):
        """Gappa's bound of |rounded / exact - 1| of a value; `inputs` maps values to (name, low, high)."""
        script = Script(options)
        for inner, (name, low, high) in inputs.items():
            script.double(name, inner, low, high)
        rounded, exact = script.rounded(value), script.exact(value)
        script.ask(f"({rounded} - {exact}) / {exact}")
        return magnitude(script.prove(self.gappa)[0])

    def absolute(self, value, inputs, options=()):
        """Gappa's bound of |rounded - exact| of a value."""
        script = Script(options)
        for inner, (name, low, high) in inputs.items():
            script.double(name, inner, low, high)
        script.ask(f"{script.rounded(value)} - {script.exact(value)}")
        return magnitude(script.prove(self.gappa)[0])


def nearest_to(real):
    """The double nearest to a real number given as a ball."""
    low, high = (nearest(end) for end in balls.ends(real))
    if low != high:
        raise Unproved("the ball is too wide to round")
    return low


def expand(value, symbols):
    """A value in exact arithmetic as a polynomial: {(powers of the symbols): coefficient}."""
    if value in symbols:
        return {tuple(int(value is s) for s in symbols): Fraction(1)}
    if value.constant is not None:
        return {(0,) * len(symbols): Fraction(value.constant)}
    if value.op == "neg":
        return {m: -c for m, c in expand(value.args[0], symbols).items()}
    if value.op not in ("add", "sub", "mul", "div"):
        raise Unproved(f"{value} is not a polynomial")
    one, two = (expand(a, symbols) for a in value.args)
    if value.op == "div":
        if list(two) != [(0,) * len(symbols)]:
            raise Unproved("division by a symbol")
        return {m: c / two[m0] for m, c in one.items() for m0 in two}
    found = {}
    if value.op == "mul":
        for m, c in one.items():
            for k, d in two.items():
                power = tuple(a + b for a, b in zip(m, k, strict=True))
                found[power] = found.get(power, 0) + c * d
    else:
        sign = 1 if value.op == "add" else -1
        for m in {**one, **two}:
            found[m] = one.get(m, 0) + sign * two.get(m, 0)
    return {m: c for m, c in found.items() if c}


def series_difference(coefficients, exact, radius, rest):
    """A bound of |sum of (c_k - exact(k)) x^k| + rest for |x| <= radius."""
    return sum(abs(c - exact(k)) * radius**k for k, c in coefficients.items()) + rest


def powers(value, symbol):
    """The coefficients of a polynomial in one symbol."""
    return {m[0]: c for m, c in expand(value, [symbol]).items()}


def find(value, op):
    """All values of an operation in a graph, the deepest first."""
    seen, found = set(), []

    def visit(inner):
        if not hasattr(inner, "op") or inner in seen:
            return
        seen.add(inner)
        for a in inner.args:
            visit(a)
        if inner.op == op:
            found.append(inner)

    visit(value)
    return found


def log2_of(x):
    """log2 of a positive rational number, for printing."""
    x = Fraction(x)
    if x <= 0:
        return -math.inf
    shift = x.numerator.bit_length() - x.denominator.bit_length()
    return shift + math.log2(float(x / Fraction(2) ** shift))


def power_of_two(match):
    """2^-n for the n that a pattern found."""
    return Fraction(1, 2 ** int(match))


def decimal(text):
    return Fraction(re.sub(r"\s", "", text))
