"""A parser for the C of src/*/*.h, as far as the certified doubles use it: functions, statements and expressions."""

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOKEN = re.compile(
    r"\s+|/\*.*?\*/|//[^\n]*|#[^\n]*(?:\\\n[^\n]*)*"
    r"|(?P<number>0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]+(?:[pP][-+]?\d+)?[uUlL]*|\d+\.?\d*(?:[eE][-+]?\d+)?[uUlL]*)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<op><<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%&|^~!<>=?:,.(){}\[\];])",
    re.DOTALL,
)
QUALIFIERS = {"const", "static", "inline", "struct", "restrict", "DPFAST_CLONES", "volatile"}
TYPES = {
    "double", "uint64_t", "int64_t", "uint32_t", "int32_t", "uint8_t", "int", "void", "ptrdiff_t", "unsigned",
    "dpfast_sum", "dpfast_lanes", "dpfast_product", "dpfast_bounded", "dpfast_extra", "bitgen_t", "dpfast_measure",
    "scores_cut", "scores_piece",
}  # fmt: skip
LEVELS = [
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"),
    ("*", "/", "%"),
]  # fmt: skip
ASSIGN = {"=", "+=", "-=", "*=", "/=", "|=", "&=", "^=", "<<=", ">>="}


class Unsupported(Exception):
    """Text outside the subset of C that this parser reads."""


@dataclass(eq=False)
class Node:
    """A part of the syntax tree, and where its text begins and ends."""

    kind: str
    parts: tuple
    start: int = 0
    end: int = 0


@dataclass
class Function:
    """A function of a header: its parameters as (type, name), its body, its text and the comment before it."""

    name: str
    returns: str
    parameters: list
    body: Node
    text: str
    comment: str
    start: int = 0


@dataclass
class Header:
    """A source file and the functions that were read from it."""

    path: str
    text: str
    functions: dict = field(default_factory=dict)


def read(path):
    """The text of a source file of the project."""
    return (ROOT / path).read_text()


def tokens(text, base=0):
    """(kind, text, start, end) of each token; comments, white space and preprocessor lines are left out."""
    place, found = 0, []
    while place < len(text):
        match = TOKEN.match(text, place)
        if not match:
            raise Unsupported(f"cannot read {text[place : place + 20]!r}")
        if match.lastgroup:
            found.append((match.lastgroup, match.group(), base + place, base + match.end()))
        place = match.end()
    return found


class Parser:
    """Recursive descent over the tokens of one function."""

    def __init__(self, found, text):
        self.tokens, self.text, self.at = [*found, ("end", "", len(text), len(text))], text, 0

    def peek(self, ahead=0):
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)][1]

    def take(self, expected=None):
        token = self.tokens[self.at]
        if expected is not None and token[1] != expected:
            raise Unsupported(f"expected {expected!r}, found {token[1]!r} near {self.text[token[2] : token[2] + 40]!r}")
        self.at += 1
        return token

    def node(self, kind, parts, start):
        return Node(kind, parts, start, self.tokens[self.at - 1][3])

    def here(self):
        return self.tokens[self.at][2]

    def is_type(self, ahead=0):
        return self.peek(ahead) in TYPES or self.peek(ahead) in QUALIFIERS

    # ---- statements ----

    def block(self):
        start = self.here()
        self.take("{")
        statements = []
        while self.peek() != "}":
            statements.append(self.statement())
        self.take("}")
        return self.node("block", tuple(statements), start)

    def statement(self):
        start, word = self.here(), self.peek()
        if word == "{":
            return self.block()
        if word == "if":
            self.take()
            self.take("(")
            condition = self.expression()
            self.take(")")
            then, other = self.statement(), None
            if self.peek() == "else":
                self.take()
                other = self.statement()
            return self.node("if", (condition, then, other), start)
        if word == "for":
            self.take()
            self.take("(")
            first = None
            if self.peek() == ";":
                self.take()
            else:
                first = self.simple()
            condition = None if self.peek() == ";" else self.expression()
            self.take(";")
            step = None if self.peek() == ")" else self.expression()
            self.take(")")
            return self.node("for", (first, condition, step, self.statement()), start)
        if word == "while":
            self.take()
            self.take("(")
            condition = self.expression()
            self.take(")")
            return self.node("while", (condition, self.statement()), start)
        if word in ("continue", "break"):
            self.take()
            self.take(";")
            return self.node(word, (), start)
        if word == "return":
            self.take()
            value = None if self.peek() == ";" else self.expression()
            self.take(";")
            return self.node("return", (value,), start)
        if word == "enum":
            self.take()
            self.take("{")
            name = self.take()[1]
            self.take("=")
            value = self.assignment()
            self.take("}")
            self.take(";")
            return self.node("declare", ("int", ((name, None, value),)), start)
        return self.simple()

    def simple(self):
        """A declaration or an expression, with its semicolon."""
        start = self.here()
        if not self.is_type():
            value = self.expression()
            self.take(";")
            return self.node("do", (value,), start)
        kind, declared = self.type_name(), []
        while True:
            pointer = False
            while self.peek() in ("*", "restrict", "const"):
                pointer |= self.take()[1] == "*"
            name, size, value = self.take()[1], None, None
            if self.peek() == "[":
                self.take()
                size = self.expression()
                self.take("]")
            if self.peek() == "=":
                self.take()
                value = self.initializer() if self.peek() == "{" else self.assignment()
            declared.append((name, "pointer" if pointer else size, value))
            if self.peek() != ",":
                break
            self.take()
        self.take(";")
        return self.node("declare", (kind, tuple(declared)), start)

    def initializer(self):
        start = self.here()
        self.take("{")
        values = []
        while self.peek() != "}":
            values.append(self.assignment())
            if self.peek() == ",":
                self.take()
        self.take("}")
        return self.node("list", tuple(values), start)

    def type_name(self):
        words = []
        while self.is_type() or (words and words[-1] == "unsigned" and self.peek() in ("int", "__int128")):
            words.append(self.take()[1])
        names = [word for word in words if word not in QUALIFIERS]
        return names[-1] if names else "int"

    # ---- expressions ----

    def expression(self):
        start, value = self.here(), self.assignment()
        while self.peek() == ",":
            self.take()
            value = self.node("comma", (value, self.assignment()), start)
        return value

    def assignment(self):
        start, left = self.here(), self.conditional()
        if self.peek() in ASSIGN:
            op = self.take()[1]
            return self.node("assign", (op, left, self.assignment()), start)
        return left

    def conditional(self):
        start, condition = self.here(), self.binary(0)
        if self.peek() != "?":
            return condition
        self.take()
        then = self.expression()
        self.take(":")
        return self.node("choose", (condition, then, self.conditional()), start)

    def binary(self, level):
        if level == len(LEVELS):
            return self.unary()
        start, left = self.here(), self.binary(level + 1)
        while self.peek() in LEVELS[level]:
            op = self.take()[1]
            right = self.binary(level + 1)
            left = self.node("binary", (op, left, right), start)
        return left

    def unary(self):
        start, word = self.here(), self.peek()
        if word in ("-", "+", "~", "!", "*", "&", "++", "--"):
            self.take()
            return self.node("unary", (word, self.unary()), start)
        if word == "(" and self.is_type(1):
            self.take()
            kind = self.type_name()
            while self.peek() == "*":
                self.take()
            self.take(")")
            value = self.initializer() if self.peek() == "{" else self.unary()
            return self.node("cast", (kind, value), start)
        return self.postfix()

    def postfix(self):
        start = self.here()
        kind, text, *_ = self.take()
        if text == "(":
            value = self.expression()
            self.take(")")
            value = self.node("paren", (value,), start)
        elif kind == "number":
            value = self.node("number", (text,), start)
        elif kind == "name":
            value = self.node("name", (text,), start)
        else:
            raise Unsupported(f"unexpected {text!r}")
        while self.peek() in ("(", "[", ".", "->", "++", "--"):
            op = self.take()[1]
            if op == "(":
                arguments = []
                while self.peek() != ")":
                    arguments.append(self.assignment())
                    if self.peek() == ",":
                        self.take()
                self.take(")")
                value = self.node("call", (value, tuple(arguments)), start)
            elif op == "[":
                index = self.expression()
                self.take("]")
                value = self.node("index", (value, index), start)
            elif op in ("++", "--"):
                value = self.node("unary", (op, value), start)
            else:
                value = self.node("member", (value, self.take()[1]), start)
        return value


def functions(path, text=None, wanted=None):
    """The functions of a header by name; `wanted` restricts them to these names."""
    text = read(path) if text is None else text
    pattern = re.compile(
        r"^(?:DPFAST_CLONES )?static (?:inline )?(?P<type>\w+) (?P<name>\w+)\((?P<parameters>[^)]*)\)\s*\{", re.M
    )
    found = {}
    for match in pattern.finditer(text):
        if wanted is not None and match["name"] not in wanted:
            continue
        depth, place = 0, text.index("{", match.end() - 1)
        for at in range(place, len(text)):
            depth += (text[at] == "{") - (text[at] == "}")
            if depth == 0:
                break
        before = re.search(r"/\*((?:(?!\*/).)*)\*/\s*\Z", text[: match.start()], re.DOTALL)
        comment = " ".join(re.sub(r"\n\s*\*", " ", before[1]).split()) if before else ""
        parameters = []
        for parameter in match["parameters"].split(","):
            words = re.findall(r"\w+|\*", parameter)
            names = [w for w in words if w not in QUALIFIERS]
            if names and names != ["void"]:
                parameters.append(("pointer" if "*" in names else names[0], names[-1]))
        try:
            body = Parser(tokens(text[place : at + 1], place), text).block()
        except Unsupported:
            body = None  # an error only if a proof needs it
        found[match["name"]] = Function(
            match["name"], match["type"], parameters, body, text[match.start() : at + 1], comment, match.start()
        )
    return found
