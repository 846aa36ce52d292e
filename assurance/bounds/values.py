"""Symbolic execution: what a C function computes, as a graph of correctly rounded operations.

Loops with constant bounds are unrolled. Constants are folded as a compiler folds them, rounded to the nearest double.
The compiler may neither contract nor reassociate (-ffp-contract=off), so every double operation rounds once.
"""

import hashlib
import math
import re
import struct
from fractions import Fraction
from typing import ClassVar

from assurance.bounds.source import Unsupported, functions, read

WIDTHS = {"uint64_t": 64, "int64_t": 64, "ptrdiff_t": 64, "int32_t": 32, "uint32_t": 32, "int": 32, "uint8_t": 8}
UNSIGNED = {"uint64_t", "uint32_t", "uint8_t"}
DOUBLE_OPS = {"+": "add", "-": "sub", "*": "mul", "/": "div"}


def nearest(fraction):
    """The double nearest to a rational number, as a Fraction."""
    return Fraction(float(fraction))


def bits_of(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def double_of(bits):
    return struct.unpack("<d", struct.pack("<Q", bits & (2**64 - 1)))[0]


class Value:
    """An operation on values; equal ones are the same object. `kind` is a C type."""

    known: ClassVar[dict] = {}
    __slots__ = ("args", "kind", "op")

    def __new__(cls, op, args, kind):
        key = (op, args, kind)
        if key not in cls.known:
            value = object.__new__(cls)
            value.op, value.args, value.kind = op, args, kind
            cls.known[key] = value
        return cls.known[key]

    def __repr__(self):
        return f"{self.op}({', '.join(map(str, self.args))})"

    @property
    def constant(self):
        return self.args[0] if self.op == "const" else None


def real(x):
    return Value("const", (Fraction(x),), "double")


def integer(x, kind="int"):
    bits = WIDTHS[kind]
    x %= 2**bits
    if kind not in UNSIGNED and x >= 2 ** (bits - 1):
        x -= 2**bits
    return Value("const", (x,), kind)


def free(name, kind="double"):
    return Value("input", (name,), kind)


def literal(text):
    bare = text.rstrip("uUlL") if not re.search(r"[.pP]", text) else text
    if re.fullmatch(r"0[xX][0-9a-fA-F]+|\d+", bare):
        x = int(bare, 0)
        kind = "uint64_t" if "u" in text.lower()[-3:] or x >= 2**63 else "int64_t" if x >= 2**31 else "int"
        return integer(x, kind)
    return real(Fraction(float.fromhex(text) if text[:2].lower() == "0x" else nearest(Fraction(text))))


def convert(value, kind):
    if value.kind == kind or kind not in (*WIDTHS, "double"):
        return value
    if value.constant is not None:
        return real(nearest(value.constant)) if kind == "double" else integer(int(value.constant), kind)
    return Value("cast", (value,), kind)


def usual(a, b):
    """The usual arithmetic conversions."""
    if "double" in (a.kind, b.kind):
        kind = "double"
    elif "uint64_t" in (a.kind, b.kind):
        kind = "uint64_t"
    elif max(WIDTHS.get(a.kind, 64), WIDTHS.get(b.kind, 64)) == 64:
        kind = "int64_t"
    else:
        kind = "int"
    return convert(a, kind), convert(b, kind), kind


def as_bits(a):
    return a.args[0] if a.op == "double" else Value("bits", (a,), "uint64_t")


def as_double(a):
    if a.constant is not None:
        return real(Fraction(double_of(a.constant)))
    return a.args[0] if a.op == "bits" else Value("double", (a,), "double")


def integer_result(op, a, b, kind):
    if op == "/":
        q = abs(a) // abs(b)
        return integer(q if (a < 0) == (b < 0) else -q, kind)
    table = {
        "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "&": lambda: a & b, "|": lambda: a | b,
        "^": lambda: a ^ b, "<<": lambda: a << b, ">>": lambda: a >> b, "%": lambda: a % b,
    }  # fmt: skip
    return integer(table[op](), kind)


COMPARE = {
    "<": lambda a, b: a < b, ">": lambda a, b: a > b, "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip
EXACTLY = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b}


def operate(op, a, b):
    """a op b, both converted as C does."""
    if op in ("<<", ">>"):
        if a.constant is not None and b.constant is not None:
            return integer_result(op, a.constant, b.constant, a.kind)
        return Value(op, (a, b), a.kind)
    a, b, kind = usual(a, b)
    if op in COMPARE:
        if a.constant is not None and b.constant is not None:
            return integer(int(COMPARE[op](a.constant, b.constant)))
        return Value(op, (a, b), "int")
    if op in ("&&", "||"):
        return Value(op, (a, b), "int")
    if kind == "double":
        if a.constant is not None and b.constant is not None:
            return real(nearest(EXACTLY[DOUBLE_OPS[op]](a.constant, b.constant)))
        return Value(DOUBLE_OPS[op], (a, b), kind)
    if a.constant is not None and b.constant is not None:
        return integer_result(op, a.constant, b.constant, kind)
    if op == "&":
        for one, other in ((a, b), (b, a)):
            if one.constant is not None and one.constant in (-1, 2 ** WIDTHS[kind] - 1):
                return other
    return Value(op, (a, b), kind)


class Return(Exception):
    """The value of a return statement."""


class Run:
    """One execution of a function: its result, its variables, and what it stored through pointers."""

    def __init__(self, library, name, arguments=None, assume=None, opaque=()):
        self.library, self.assume, self.opaque = library, assume or {}, opaque
        self.function = library.functions[name]
        if self.function.body is None:
            raise Unsupported(f"{name} is outside the subset of C that is read here")
        self.variables, self.stores, self.used = {}, {}, set()
        for place, (kind, parameter) in enumerate(self.function.parameters):
            given = (arguments or {}).get(parameter, (arguments or {}).get(place))
            self.variables[parameter] = free(parameter, kind) if given is None else given
        self.kinds = {parameter: kind for kind, parameter in self.function.parameters}
        self.result = None

    def whole(self):
        """Execute the function."""
        self.result = self.sequence([self.function.body])
        if missed := set(self.assume) - self.used:
            raise Unsupported(f"{self.function.name} has no condition {missed}")
        return self

    def only(self, *names):
        """Execute nothing but the declarations of and assignments to these variables, in their order."""
        seen = set()

        def visit(node):
            if node.kind == "declare":
                for declared in node.parts[1]:
                    if declared[0] in names and declared[2] is not None:
                        seen.add(declared[0])
                        self.declare(node.parts[0], declared)
            elif node.kind == "assign" and node.parts[1].kind == "name" and node.parts[1].parts[0] in names:
                seen.add(node.parts[1].parts[0])
                self.value(node)
            else:
                for part in node.parts:
                    for inner in part if isinstance(part, tuple) else (part,):
                        if hasattr(inner, "kind"):
                            visit(inner)

        visit(self.function.body)
        if missed := set(names) - seen:
            raise Unsupported(f"{self.function.name} does not set {missed}")
        return self

    def source(self, node):
        start = self.function.start
        return " ".join(self.function.text[node.start - start : node.end - start].split())

    # ---- statements ----

    def sequence(self, statements):
        """The returned value of these statements, or None."""
        for place, node in enumerate(statements):
            if node.kind == "block":
                return self.sequence([*node.parts, *statements[place + 1 :]])
            if node.kind == "return":
                return convert(self.value(node.parts[0]), self.function.returns) if node.parts[0] else None
            if node.kind == "if":
                condition, then, other = node.parts
                truth = self.truth(condition)
                rest = list(statements[place + 1 :])
                if truth is None:
                    before, asked = dict(self.variables), self.value(condition)
                    one = self.sequence([then, *rest])
                    self.variables = before
                    two = self.sequence([*([other] if other else []), *rest])
                    if one is None or two is None:
                        raise Unsupported(f"the branch {self.source(condition)!r} does not return")
                    return self.choice(asked, one, two)
                if truth:
                    return self.sequence([then, *rest])
                return self.sequence([*([other] if other else []), *rest])
            self.statement(node)
        return None

    def truth(self, node):
        text = self.source(node)
        if text in self.assume:
            self.used.add(text)
            return self.assume[text]
        value = self.value(node)
        return None if value.constant is None else bool(value.constant)

    def statement(self, node):
        if node.kind == "declare":
            for declared in node.parts[1]:
                self.declare(node.parts[0], declared)
        elif node.kind == "do":
            self.value(node.parts[0])
        elif node.kind == "for":
            first, condition, step, body = node.parts
            self.statement(first)
            for _ in range(1000):
                truth = self.truth(condition)
                if truth is None:
                    raise Unsupported(f"the loop {self.source(node)[:60]!r} has no constant bound")
                if not truth:
                    return
                if self.sequence([body]) is not None:
                    raise Unsupported("return in a loop")
                self.value(step)
        elif node.kind == "block":
            self.sequence(node.parts)
        else:
            raise Unsupported(node.kind)

    def declare(self, kind, declared):
        name, size, value = declared
        self.kinds[name] = "pointer" if size == "pointer" else kind
        if value is None or value.kind == "list":
            self.variables[name] = free(name, kind)
        else:
            self.variables[name] = convert(self.value(value), kind)

    # ---- expressions ----

    def choice(self, condition, then, other):
        then, other, kind = usual(then, other)
        return then if then is other else Value("choose", (condition, then, other), kind)

    def value(self, node):
        return getattr(self, "_" + node.kind)(node, *node.parts)

    def _paren(self, node, inner):
        return self.value(inner)

    def _number(self, node, text):
        return literal(text)

    def _name(self, node, name):
        if name not in self.variables:
            if name in self.library.macros:
                return self.library.macros[name]
            self.variables[name] = free(name, self.kinds.get(name, "double"))
        return self.variables[name]

    def _comma(self, node, first, second):
        self.value(first)
        return self.value(second)

    def _member(self, node, value, name):
        return free(self.source(node))

    def _index(self, node, value, index):
        return free(self.source(node), "uint64_t" if self.source(value) in ("words", "rest", "radii") else "double")

    def _assign(self, node, op, target, value):
        result = self.value(value)
        if op != "=":
            result = operate(op[:-1], self.value(target), result)
        if target.kind == "name":
            name = target.parts[0]
            self.variables[name] = result = convert(result, self.kinds.get(name, result.kind))
        else:
            self.stores[self.source(target)] = result
        return result

    def _choose(self, node, condition, then, other):
        truth = self.truth(condition)
        if truth is not None:
            return self.value(then if truth else other)
        return self.choice(self.value(condition), self.value(then), self.value(other))

    def _binary(self, node, op, left, right):
        text = self.source(node)
        if text in self.assume:
            self.used.add(text)
            return integer(int(self.assume[text]))
        return operate(op, self.value(left), self.value(right))

    def _unary(self, node, op, inner):
        if op in ("++", "--"):
            self.variables[inner.parts[0]] = operate("+" if op == "++" else "-", self.value(inner), integer(1))
            return self.variables[inner.parts[0]]
        if op == "*":
            return free(self.source(node))
        if op == "&":
            return free(self.source(node), "pointer")
        value = self.value(inner)
        if op == "-":
            if value.constant is not None:
                return real(-value.constant) if value.kind == "double" else integer(-value.constant, value.kind)
            return Value("neg", (value,), value.kind)
        if op == "~" and value.constant is not None:
            return integer(~value.constant, value.kind)
        return Value(op, (value,), value.kind)

    def _cast(self, node, kind, value):
        return convert(self.value(value), kind)

    def _call(self, node, function, arguments):
        name = function.parts[0]
        if name in ("UINT64_C", "INT64_C"):
            return convert(self.value(arguments[0]), name.lower()[:-2] + "_t")
        given = [self.value(a) for a in arguments]
        if name == "dpfast_bits":
            return as_bits(given[0])
        if name == "dpfast_double":
            return as_double(convert(given[0], "uint64_t"))
        if name in ("__builtin_sqrt", "__builtin_fabs", "fabs"):
            return Value(name.replace("__builtin_", ""), (given[0],), "double")
        if name in self.library.functions and name not in self.opaque and self.opaque != "all":
            inner = Run(self.library, name, dict(enumerate(given)), None, self.opaque)
            kinds = [kind for kind, _ in inner.function.parameters]
            for place, kind in enumerate(kinds):
                if kind != "pointer":
                    inner.variables[inner.function.parameters[place][1]] = convert(given[place], kind)
            inner.assume = {k: v for k, v in self.assume.items() if k in inner.function.text}
            inner.whole()
            self.used |= inner.used
            for place, (kind, parameter) in enumerate(inner.function.parameters):
                if kind == "pointer" and "*" + parameter in inner.stores and arguments[place].kind == "unary":
                    self.variables[arguments[place].parts[1].parts[0]] = inner.stores["*" + parameter]
            return inner.result
        kind = self.library.functions[name].returns if name in self.library.functions else "double"
        return Value("call", (name, *given), kind)


MACROS = {"DPFAST_UNDECIDED": integer(-(2**63), "int64_t"), "INT64_MAX": integer(2**63 - 1, "int64_t")}


class Library:
    """The functions of some headers. `texts` may replace the text of a header."""

    def __init__(self, *paths, texts=None):
        self.functions, self.texts, self.macros = {}, {}, dict(MACROS)
        for path in paths:
            text = (texts or {}).get(path)
            found = functions(path, text) if text is not None else functions(path)
            for name, function in found.items():
                self.functions[name] = function
                self.texts[name] = path
        self.headers = {path: (texts or {}).get(path) or read(path) for path in paths}
        for text in self.headers.values():
            for name, value in re.findall(r"^#define (\w+) \(?(-?0x[0-9a-f.]+p[-+]?\d+|-?\d+)\)?\s", text, re.M):
                self.macros[name] = literal(value) if value[0] != "-" else integer(int(value))

    def altered(self, name, text):
        """The library with one function replaced by the one of that name in another text of its header."""
        other = object.__new__(Library)
        other.texts, other.macros, path = self.texts, self.macros, self.texts[name]
        other.headers = {**self.headers, path: text}
        other.functions = {**self.functions, **functions(path, text, {name})}
        return other

    def run(self, name, arguments=None, assume=None, opaque=()):
        return Run(self, name, arguments, assume, opaque).whole()

    def run_only(self, name, names, opaque="all"):
        """The variables of a function that has loops and branches, from the statements that set them alone."""
        return Run(self, name, opaque=opaque).only(*names)

    def canonical(self, name):
        """The text of the graph of a function, calls left as calls."""
        return canonical(self.run(name, opaque="all"))


def canonical(run):
    """The result and the stores of a run as numbered operations, in one fixed order."""
    numbers, lines = {}, []

    def visit(value):
        if not isinstance(value, Value):
            return str(value)
        if value not in numbers:
            args = [visit(a) for a in value.args]
            numbers[value] = f"v{len(numbers)}"
            lines.append(f"{numbers[value]} = {value.kind} {value.op}({', '.join(args)})")
        return numbers[value]

    visit_all = [("return", run.result), *sorted(run.stores.items())]
    ends = [f"{name} {visit(value)}" for name, value in visit_all if value is not None]
    return "\n".join(lines + ends)


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def evaluate(value, inputs, memory=None):
    """The value in doubles and machine integers, for concrete inputs."""
    memory = {} if memory is None else memory
    if value in memory:
        return memory[value]
    op, args = value.op, value.args
    if op == "const":
        result = float(args[0]) if value.kind == "double" else args[0]
    elif op == "input":
        result = inputs[args[0]]
    elif op == "choose":
        result = evaluate(args[1] if evaluate(args[0], inputs, memory) else args[2], inputs, memory)
    else:
        result = _apply(value, op, [evaluate(a, inputs, memory) if isinstance(a, Value) else a for a in args])
    memory[value] = result
    return result


def _apply(value, op, given):
    if op in EXACTLY:
        return EXACTLY[op](*given)
    if op == "sqrt":
        return math.sqrt(given[0])
    if op == "fabs":
        return abs(given[0])
    if op == "bits":
        return bits_of(given[0])
    if op == "double":
        return double_of(given[0])
    if op == "cast":
        return float(given[0]) if value.kind == "double" else integer(int(given[0]), value.kind).constant
    if op == "neg":
        return -given[0] if value.kind == "double" else integer(-given[0], value.kind).constant
    if op == "~":
        return integer(~given[0], value.kind).constant
    if op in COMPARE:
        return int(COMPARE[op](*given))
    if op == "&&":
        return int(bool(given[0]) and bool(given[1]))
    if op == "||":
        return int(bool(given[0]) or bool(given[1]))
    return integer_result(op, *given, value.kind).constant
