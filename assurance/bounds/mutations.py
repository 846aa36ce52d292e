"""Changes of the source that the proofs must reject: a last bit, an order of operations, a claim below what holds.

Each change is made to the text of a header in memory. What rejects it is one of
- the exact checks of a proof: coefficients that are to be nearest doubles, the form of an expression;
- a bound, by Gappa, balls or rationals, that is above the claim;
- the recorded form of the function.
"""

import math
from collections import Counter
from dataclasses import dataclass

from assurance.bounds import claims, record
from assurance.bounds.gappa import Unproved
from assurance.bounds.proofs import Proof
from assurance.bounds.source import Unsupported
from assurance.bounds.values import Run

ELEMENTARY = ("dpfast_exp_neg", "dpfast_normal_shoulder")  # coefficients as small as margins
MARGINS = ("dpfast_round_exponential", "dpfast_neg_log_product", "dpfast_box", "dpfast_below_exp_neg_within")
INVERSE = {"+": "-", "-": "+", "*": "/", "/": "*"}


@dataclass(frozen=True)
class Mutation:
    """A piece of text of a function and what replaces it."""

    function: str
    header: str
    kind: str
    start: int
    end: int
    text: str

    def applied(self, library):
        """The sources with this change."""
        text = library.headers[self.header]
        return library.altered(self.function, text[: self.start] + self.text + text[self.end :])


def nodes(node):
    """All nodes of a syntax tree, the outer ones first."""
    yield node
    for part in node.parts:
        yield from _inner(part)


def _inner(part):
    if hasattr(part, "kind"):
        yield from nodes(part)
    elif isinstance(part, tuple):
        for piece in part:
            yield from _inner(piece)


def is_constant(node):
    """Whether a node is a constant expression of doubles."""
    if node.kind == "number":
        return "." in node.parts[0] or "p" in node.parts[0].lower()
    if node.kind == "binary" and node.parts[0] in "*/+-":
        both = [n.kind == "number" or is_constant(n) for n in node.parts[1:]]
        return all(both) and any(is_constant(n) for n in node.parts[1:])
    return node.kind == "paren" and is_constant(node.parts[0])


def last_bits(library, name):
    """Each constant double of a function, one unit in the last place up and down."""
    run, header, done = Run(library, name), library.texts[name], -1
    for node in nodes(library.functions[name].body):
        if node.start >= done and is_constant(node):
            done = node.end
            x = float(run.value(node).constant)
            for to in (math.inf, -math.inf):
                other = math.nextafter(x, to)
                yield Mutation(name, header, "last bit", node.start, node.end, other.hex())


def halved(library, name):
    """Each constant of a margin, by its size, halved."""
    run, header = Run(library, name), library.texts[name]
    for node in nodes(library.functions[name].body):
        if node.kind == "number" and is_constant(node):
            x = float(run.value(node).constant)
            if 2.0**-66 < x < 2.0**-30 or (x in (2.0, 3.0, 16.0, 1.125, 4.0) and name in MARGINS):
                yield Mutation(name, header, "halved", node.start, node.end, (x / 2).hex())


def reordered(library, name):
    """(x op y) op z written as x op (y op z), with the operator that keeps the value."""
    header = library.texts[name]
    text = library.headers[header]
    for node in nodes(library.functions[name].body):
        if node.kind != "binary" or node.parts[1].kind != "binary" or node.parts[0] not in INVERSE:
            continue
        outer, (inner, one, two), three = node.parts[0], node.parts[1].parts, node.parts[2]
        if inner in INVERSE and (inner in "+-") == (outer in "+-"):
            second = outer if inner in "+*" else INVERSE[outer]
            pieces = [text[n.start : n.end] for n in (one, two, three)]
            new = f"{pieces[0]} {inner} ({pieces[1]} {second} {pieces[2]})"
            yield Mutation(name, header, "order", node.start, node.end, new)


def swapped(library, name):
    """Two neighbouring statements of a function that exchange their places."""
    header = library.texts[name]
    text = library.headers[header]
    for node in nodes(library.functions[name].body):
        if node.kind != "block":
            continue
        for one, two in zip(node.parts, node.parts[1:], strict=False):
            if one.kind == two.kind == "do":
                new = text[two.start : two.end] + text[one.end : two.start] + text[one.start : one.end]
                yield Mutation(name, header, "order", one.start, two.end, new)


def mutations(library, names):
    """All changes of these functions that change what they compute."""
    for name in names:
        before = record.forms(library, [name])
        for make in (last_bits, reordered, swapped, *([halved] if name not in ELEMENTARY else [])):
            for mutation in make(library, name):
                try:
                    if record.forms(mutation.applied(library), [name]) != before:
                        yield mutation
                except Unsupported:
                    yield mutation


def verdict(mutation, library, proofs, gappa):
    """What rejects a change: "exact" checks, "bounds", the "record" or nothing, "". Without Gappa proofs stop at it."""
    try:
        changed = mutation.applied(library)
        for prove in proofs:
            proof = Proof(changed, claims.read(library), gappa or NONE)
            try:
                prove(proof)
            except SystemExit:
                if gappa:
                    raise
            if not all(step.holds for step in proof.steps):
                return "bounds" if all(step.claimed for step in proof.steps if not step.holds) else "exact"
    except Unproved as error:
        return "bounds" if "no bound of" in str(error) else "exact"
    except REFUSED:
        return "exact"
    return "record" if record.changed(changed, [mutation.function]) else ""


NONE = "/none"
REFUSED = (
    Unsupported,
    ValueError,
    ZeroDivisionError,
    OverflowError,
    KeyError,
    StopIteration,
    IndexError,
    AttributeError,
)


def controls(library, proofs, gappa=None, every=1):
    """{function: {(kind, verdict): number}} over every n-th change of each recorded function.

    Unchanged, the sources must pass what rejects the changes.
    """
    table = {}
    for names, prove in proofs:
        same = Mutation(names[0], library.texts[names[0]], "none", 0, 0, "")
        if found := verdict(same, library, [prove], None):
            raise Unproved(f"{names[0]} is rejected unchanged: {found}")
    places = Counter()
    for mutation in mutations(library, (*record.WHOLE, *record.TEXTS)):
        if places[mutation.function] % every == 0:
            own = [prove for names, prove in proofs if mutation.function in names]
            found = verdict(mutation, library, own, gappa)
            row = table.setdefault(mutation.function, {})
            row[mutation.kind, found] = row.get((mutation.kind, found), 0) + 1
        places[mutation.function] += 1
    return table
