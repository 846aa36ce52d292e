"""What a harness is: a C function, what it covers, how deep, and the change of the source that it must reject."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assurance.headers import HEADERS

HERE = Path(__file__).parent

# Switched on for every harness; those of `Case.checks` come on top.
ALWAYS = (
    "bounds",
    "pointer",
    "pointer-overflow",
    "pointer-primitive",
    "signed-overflow",
    "undefined-shift",
    "div-by-zero",
)


@dataclass(frozen=True)
class Edit:
    """A replacement in a header, whose text must occur exactly once."""

    header: str
    old: str
    new: str

    def of(self, text: str) -> str:
        """The text of the header with the replacement. Raises LookupError unless the old text occurs once."""
        found = text.count(self.old)
        if found != 1:
            raise LookupError(f"{self.header} holds {found} times, not once: {self.old!r}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Case:
    """One harness: the function `check_NAME` of the C file beside the module that lists it."""

    name: str
    source: Path
    covers: tuple[str, ...]
    depth: str
    unwind: int
    control: Edit
    checks: tuple[str, ...] = ()  # "unsigned-overflow", "conversion", "float-overflow", "nan"
    size: int = 0  # the macro SIZE of the harness
    deep: tuple[int, int] | None = None  # SIZE and unwinding with --deep
    shrunk: tuple[Edit, ...] = field(default=())  # constants made smaller, so that few records fill a block
    loops: tuple[str, ...] = ()  # loops with bounds of their own: "function.number:bound"


def cases(path: str) -> "Cases":
    """The list to which a module adds the harnesses of the C file beside it."""
    return Cases(Path(path).with_suffix(".c"))


class Cases(list[Case]):
    """Harnesses of one C file."""

    def __init__(self, source: Path) -> None:
        super().__init__()
        self.source = source

    def add(self, name: str, covers: str, depth: str, unwind: int, control: Sequence[str], **options) -> None:
        """Add the harness `check_NAME`; `covers` names functions, separated by spaces, `control` is an `Edit`."""
        shrunk = tuple(Edit(*edit) for edit in options.pop("shrunk", ()))
        options = {"shrunk": shrunk, **options}
        self.append(Case(name, self.source, tuple(covers.split()), depth, unwind, Edit(*control), **options))


_NAME = re.compile(r"(\w+)\s*\(")
_NOT_NAMES = {"if", "for", "while", "switch", "return", "sizeof", "defined", "__attribute__"}


def functions_of(text: str) -> set[str]:
    """The names of the functions that a header defines: of each definition at the left margin, before its brace."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"\\\n", " ", text)
    text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    names, depth, start = set(), 0, 0
    for i, character in enumerate(text):
        if character == "{":
            if depth == 0:
                head = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", text[start:i].strip())
                name = next((m[1] for m in _NAME.finditer(head) if m[1] not in _NOT_NAMES), None)
                if name and "=" not in head and not head.startswith("typedef"):
                    names.add(name)
            depth += 1
        elif character == "}":
            depth -= 1
            start = i + 1
        elif character == ";" and depth == 0:
            start = i + 1
    return names


def all_functions() -> set[tuple[str, str]]:
    """Pairs of a header and a function that it defines."""
    return {(header, name) for header, path in HEADERS.items() for name in functions_of(path.read_text())}


if __name__ == "__main__":
    sys.stdout.writelines(f"{header} {name}\n" for header, name in sorted(all_functions()))
