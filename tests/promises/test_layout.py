"""The layout of the sources that import-linter cannot check: private names, public names, sizes of functions."""

import ast
import re
import rlcompleter
from collections import Counter
from pathlib import Path

import dpfast

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "dpfast").rglob("*.py"))
FOLDERS = ("assurance", "bench", "dpfast", "examples", "tests")
CODE = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
PRIVATE_MODULES = (
    {path.stem for path in MODULES if path.stem.startswith("_")}
    | {"_kernels"}
    | {path.stem for path in (ROOT / "src").glob("*/*.pyx")}
)
# Names of NumPy, and of `typing.NamedTuple`.
FOREIGN = {"_bit_generator", "_replace"}
LONGEST = {ast.FunctionDef: 75, ast.AsyncFunctionDef: 75, ast.ClassDef: 350}  # lines of code


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


def offenders(paths, found_in):
    """What a function finds in the text of each file, by file, where it finds anything."""
    found = {str(path.relative_to(ROOT)): sorted(found_in(path.read_text())) for path in paths}
    return {path: each for path, each in found.items() if each}


def test_no_module_uses_private_names_of_another():
    assert len(MODULES) > 100
    assert offenders(MODULES, lambda text: private_names_of_others(ast.parse(text))) == {}


def test_the_check_finds_private_names():
    source = "from dpfast.core.grid import _outward, Grid\nfrom dpfast import _kernels\nx._hidden\nx._own = 1\nx._own\n"
    assert sorted(private_names_of_others(ast.parse(source))) == ["_hidden", "_outward"]


def unmarked(text):
    """Lines that skip a test without a library, where neither it nor its class or file is marked `host`.

    `.ci/run` runs the marked tests with the libraries, and no others. What tests share may skip where one is marked.
    """
    tree = ast.parse(text)
    lines = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Assign)]
    if any(line.startswith("pytestmark = ") and ".host" in line for line in lines):
        return

    def visit(node, marked):
        for inner in ast.iter_child_nodes(node):
            by = marked or any("host" in ast.unparse(each) for each in getattr(inner, "decorator_list", ()))
            if isinstance(inner, ast.Call) and ast.unparse(inner.func).endswith("importorskip") and not by:
                yield inner.lineno
            yield from visit(inner, by)

    shared = ".mark.host" in text
    for node in tree.body:
        if not shared or isinstance(node, ast.ClassDef) or (getattr(node, "name", None) or "").startswith("test"):
            yield from visit(ast.Module([node], []), marked=False)


def test_tests_that_need_a_library_are_marked():
    tests = [path for path in (ROOT / "tests").rglob("test_*.py") if path.parent.name != "hosts"]
    assert len(tests) > 150
    assert offenders(tests, unmarked) == {}


def test_the_check_finds_tests_without_a_mark():
    skips = "pytest.importorskip('pandas')\n"
    marked, shared = f"@pytest.mark.host\ndef test():\n    {skips}", f"def made():\n    {skips}"
    assert list(unmarked(f"def test():\n    {skips}{marked}")) == [2]
    assert list(unmarked(shared + marked)) == list(unmarked(f"pytestmark = pytest.mark.host\n{skips}")) == []
    assert list(unmarked(shared)) == [2]


def indices_from_the_end(source):
    """Indices below zero, outside of docstrings and comments."""
    code = re.sub(r"#.*", "", re.sub(r'""".*?"""', "", source, flags=re.DOTALL))
    return re.findall(r"[\w)\]]\[-\d+\]", code)


def test_no_kernel_counts_indices_from_the_end():
    # Kernels are compiled without `wraparound`: what NumPy makes of such an index depends on its version.
    kernels = sorted((ROOT / "src").glob("*/*.pyx"))
    assert len(kernels) > 30
    assert offenders(kernels, indices_from_the_end) == {}


def test_the_check_finds_indices_from_the_end():
    assert indices_from_the_end('"""x[-1]"""\nx[-1]\ny = x[-2:]  # x[-3]\n') == ["x[-1]"]


def test_completion_shows_public_names_only():
    shown = set(dir(dpfast))
    assert shown == {*dpfast.__all__, "__version__"}
    completer = rlcompleter.Completer({"dpf": dpfast})
    completed = {match.removeprefix("dpf.").rstrip("()") for match in completer.attr_matches("dpf.")}
    assert completed == set(dpfast.__all__)


# Names of what a user chooses in its own module: the loss of `psi`, the statistic and the model of one name, and the
# table of `psi` beside that of records.
OF_ONE_NAME = {"Huber", "Logistic", "Poisson", "Table"}


def classes(path):
    """Names of the classes that a module of Python or Cython defines."""
    return re.findall(r"^(?:cdef )?class (\w+)", path.read_text(), re.MULTILINE)


def test_class_names_are_unique():
    paths = [*MODULES, *(ROOT / "src").glob("*/*.pyx")]
    count = Counter(name for path in paths for name in classes(path))
    assert {name for name, times in count.items() if times > 1} == OF_ONE_NAME
    assert len(count) > 400


def test_flat_files_are_few():
    """What has no package is a public module, or that of the command line."""
    flat = {path.stem for path in (ROOT / "dpfast").glob("*.py")}
    assert len(flat) <= 12
    assert flat <= {*dpfast.__all__, "__init__", "__main__", "errors", "polars", "pipeline_dp"}


def statements(node):
    """A node and the statements in it, at any depth: expressions, which `ast.walk` has too, are most of a tree."""
    yield node
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, name, ()) if not isinstance(node, ast.expr) else ():
            yield from statements(inner)


def too_long(text, longest=LONGEST):
    """Functions and classes with more lines of code than the limit of their kind, without comments and docstrings."""
    code = {i for i, line in enumerate(text.splitlines(), 1) if line.strip() and not line.lstrip().startswith("#")}
    nodes = [node for node in statements(ast.parse(text)) if isinstance(node, (ast.Module, *longest))]
    for node in nodes:
        if ast.get_docstring(node, clean=False) is not None:
            code -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    for node in nodes[1:]:  # the first is the module
        if node.end_lineno - node.lineno < (most := longest[type(node)]):
            continue
        lines = sum(line in code for line in range(node.lineno, node.end_lineno + 1))
        if lines > most:
            yield f"{node.name} has {lines} lines of code, more than {most}: split it by subject"


def test_functions_and_classes_are_short():
    assert len(CODE) > 500
    assert offenders(CODE, too_long) == {}


def test_the_check_finds_long_functions_and_classes():
    body = '    """A docstring\n    of two lines."""\n\n    # Why.\n    x = 1\n    return x\n'
    source = f"def f():\n{body}\n\nasync def g():\n{body}\n\nclass A:\n    def f(self):\n        pass\n"
    assert list(too_long(source, dict.fromkeys(LONGEST, 3))) == []
    found = list(too_long(source, dict.fromkeys(LONGEST, 2)))
    assert [line.split(" ", 1)[0] for line in found] == ["f", "g", "A"]
    assert found[0] == "f has 3 lines of code, more than 2: split it by subject"
