"""Formulas of docstrings, which are written to be read in a terminal, as LaTeX: ``exp(-epsilon |z| / s)``."""

import re
from collections.abc import Iterator

GREEK = {"alpha", "beta", "gamma", "delta", "epsilon", "eta", "theta", "kappa", "lambda", "mu", "pi", "rho", "sigma"}
GREEK |= {"tau", "phi", "psi", "Gamma", "Phi", "Psi"}
FUNCTIONS = {"exp", "log", "ln", "sinh", "cosh", "tanh", "min", "max", "sup", "inf"}
LARGE = {"sum": r"\sum", "prod": r"\prod"}
FENCES = {"floor": (r"\lfloor ", r"\rfloor "), "ceil": (r"\lceil ", r"\rceil "), "sqrt": (r"\sqrt{", "}")}
SIGNS = {"->": r"\to ", "*": r"\cdot ", "<=": r"\le ", ">=": r"\ge ", "{": r"\{", "}": r"\}", "||": r"\Vert "}
TOKEN = re.compile(r"\s*(\d+(?:\.\d+)?(?:e-?\d+)?|[A-Za-z]\w*|\*\*|->|<=|>=|\|\||[-+*/^=<>,:()|{}_])")
CODE = re.compile(r"[\"'\[\]@`]|\.\.|\w\.\w*[A-Za-z]|\w=|=\w|==|//")
MARKS = re.compile(rf"\^|\*\*|\bP\(|\|\w|\b(?:{'|'.join(['Phi', *FUNCTIONS, *FENCES])})[({{]|\b(?:sum|prod|max|sup)_")
TERM = re.compile(rf"(?:\b(?:{'|'.join(GREEK)})\b.*[-+*/=<>] )|(?:[-+*/=<>] .*\b(?:{'|'.join(GREEK)})\b)")


def latex(text: str) -> str | None:
    """Return the LaTeX of a formula, or None if the text is code, or has names that are not those of a formula."""
    text = " ".join(text.split())
    if CODE.search(text) or text.count("(") != text.count(")") or not (MARKS.search(text) or TERM.search(text)):
        return None
    tokens, at = [], 0
    while at < len(text):
        if not (token := TOKEN.match(text, at)):
            return None
        tokens.append((token[1], text[at] == " "))
        at = token.end()
    try:
        return "".join(pieces(Tokens(tokens))).strip()
    except (ValueError, IndexError):
        return None


class Tokens:
    """The tokens of a formula, each with whether a space precedes it."""

    def __init__(self, tokens: list[tuple[str, bool]]) -> None:
        self.tokens, self.at = tokens, 0

    def follows(self, *signs: str) -> bool:
        """Whether one of these is next, without a space before it."""
        return self.at < len(self.tokens) and self.tokens[self.at] in [(sign, False) for sign in signs]

    def take(self) -> tuple[str, bool]:
        """Return the next token."""
        self.at += 1
        return self.tokens[self.at - 1]

    def group(self) -> str:
        """Return the LaTeX within the parentheses that open here."""
        start, depth = self.at + 1, 0
        while True:
            depth += {"(": 1, ")": -1}.get(self.take()[0], 0)
            if not depth:
                return "".join(pieces(Tokens(self.tokens[start : self.at - 1])))


def pieces(tokens: Tokens) -> Iterator[str]:
    """Yield the LaTeX of tokens, one after the other."""
    after_operand = False
    while tokens.at < len(tokens.tokens):
        token, spaced = tokens.take()
        starts = token[0].isalnum() or token in ("(", "|", "||")
        if spaced and starts and after_operand:
            yield r"\,"
        if token in ("^", "**"):
            yield "^{" + script(tokens) + "}"
        elif token == "_":
            yield "_{" + script(tokens) + "}"
        elif token in FENCES and tokens.follows("("):
            opening, closing = FENCES[token]
            yield opening + tokens.group() + closing
        elif token[0].isalpha():
            yield name(token, tokens)
        else:
            yield SIGNS.get(token, token)
        after_operand = token[0].isalnum() or token in (")", "|", "||", "^", "**", "_")


def script(tokens: Tokens) -> str:
    """Return what is raised or lowered: a sign, and a number, a name or what is in parentheses."""
    sign = tokens.take()[0] if tokens.follows("-") else ""
    if tokens.follows("("):
        return sign + tokens.group()
    token = tokens.take()[0]
    if not token[0].isalnum():
        raise ValueError(token)
    if not token[0].isalpha():
        return sign + token
    return sign + name(token, tokens) + (f"({tokens.group()})" if tokens.follows("(") else "")


def name(token: str, tokens: Tokens) -> str:
    """Return a name, with its subscript: of a letter its digits, else what follows the underscore."""
    base, underscore, below = token.partition("_")
    if digits := re.fullmatch(rf"([A-Za-z]|{'|'.join(GREEK)})(\d+)", base):
        base, underscore, below = digits[1], "_", digits[2] + underscore + below
    if underscore and not below:
        if not tokens.follows("("):
            raise ValueError(token)
        inner = tokens.group()
        below = inner if base in LARGE else f"({inner})"
    elif len(below) > 1 and below not in GREEK and not below.isdigit():
        raise ValueError(token)
    elif below in GREEK:
        below = f"\\{below} "
    if base in GREEK or base in FUNCTIONS:
        shown = f"\\{base} "
    else:
        shown = LARGE.get(base, base if len(base) == 1 else rf"\mathrm{{{base}}}")
    return shown + f"_{{{below}}}" * bool(below)
