"""The layout of the sources that import-linter cannot check: private names, public names, sizes of files."""

import ast
import re
import rlcompleter
from pathlib import Path

import pytest

import dpfast

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "dpfast").rglob("*.py"))
CODE = [path for folder in ("dpfast", "tests", "bench", "examples") for path in sorted((ROOT / folder).rglob("*.py"))]
PRIVATE_MODULES = {path.stem for path in MODULES if path.stem.startswith("_")} | {
    path.stem for path in (ROOT / "src").glob("*.pyx")
}
# Names of NumPy, and of `typing.NamedTuple`.
FOREIGN = {"_bit_generator", "_replace"}


def is_private(name):
    return name.startswith("_") and not name.endswith("__") and name not in PRIVATE_MODULES


def names_bound(tree):
    """Names of functions, classes, variables and attributes that a module defines."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg


def private_names_of_others(tree):
    """Private names that a module imports, or reads from an object, without defining them itself."""
    own = set(names_bound(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpfast"):
            yield from (alias.name for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own | FOREIGN:
            base = node.value
            if not (isinstance(base, ast.Name) and base.id in ("self", "cls")):
                yield node.attr


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_uses_private_names_of_another(path):
    assert sorted(private_names_of_others(ast.parse(path.read_text()))) == []


def test_the_check_finds_private_names():
    source = "from dpfast.grid import _outward, Grid\nfrom dpfast import _checks\nx._hidden\nx._own = 1\nx._own\n"
    assert sorted(private_names_of_others(ast.parse(source))) == ["_hidden", "_outward"]


def indices_from_the_end(source):
    """Indices below zero, outside of docstrings and comments."""
    code = re.sub(r"#.*", "", re.sub(r'""".*?"""', "", source, flags=re.DOTALL))
    return re.findall(r"[\w)\]]\[-\d+\]", code)


@pytest.mark.parametrize("path", sorted((ROOT / "src").glob("*.pyx")), ids=lambda path: path.name)
def test_no_kernel_counts_indices_from_the_end(path):
    # Kernels are compiled without `wraparound`: what NumPy makes of such an index depends on its version.
    assert indices_from_the_end(path.read_text()) == []


def test_the_check_finds_indices_from_the_end():
    assert indices_from_the_end('"""x[-1]"""\nx[-1]\ny = x[-2:]  # x[-3]\n') == ["x[-1]"]


def test_completion_shows_public_names_only():
    shown = set(dir(dpfast))
    assert shown == {*dpfast.__all__, "__version__"}
    completer = rlcompleter.Completer({"dpf": dpfast})
    completed = {match.removeprefix("dpf.").rstrip("()") for match in completer.attr_matches("dpf.")}
    assert completed == set(dpfast.__all__)


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_of_code_have_at_most_600_lines(path):
    lines = len(path.read_text().splitlines())
    assert lines <= 600, f"{path.relative_to(ROOT)} has {lines} lines: split it by subject"
