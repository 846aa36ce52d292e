"""The modules that an import of the library loads, and an import from sources that are not compiled."""

import ast
import inspect
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import dpfast
from dpfast.location import explaining

SLOW = {
    "scipy.stats",
    "scipy.optimize",
    "scipy.special",
    "dask",
    "distributed",
    "opendp",
    "pandas",
    "pipeline_dp",
    "polars",
    "pyarrow",
    "pyspark",
    "sklearn",
}


def modules_after(program):
    command = [sys.executable, "-c", f"import sys, dpfast; {program}; print(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize(
    "program", ["dpfast.median([1.0, 2.0, 3.0], epsilon=1.0, bounds=(0, 8))", "dpfast.noise.laplace(1.0)"]
)
def test_a_first_call_imports_what_it_needs(program):
    loaded = modules_after(program)
    assert "dpfast._kernels._samplers" in loaded
    assert not loaded & SLOW
    assert not loaded & {"dpfast.audit", "dpfast.densities", "dpfast.families", "dpfast.local", "dpfast.regression"}


def test_the_import_itself_loads_nothing_else():
    assert {name for name in modules_after("None") if name.startswith("dpfast")} == {"dpfast", "dpfast._kernels"}


def test_threads_that_use_different_names_first():
    """Python detects circles of waiting threads, and gives one of them a module that is not complete."""
    program = """
import os, random
from tests.threads import in_threads
sys.setswitchinterval(1e-5)
for seed in range(2):
    if (child := os.fork()) == 0:  # each has imported nothing yet
        names = random.Random(seed).sample(dpfast.__all__, 24)
        in_threads(lambda i: getattr(dpfast, names[i]), 24)
        os._exit("dpfast.errors" not in sys.modules)
    assert os.waitpid(child, 0)[1] == 0, seed
"""
    assert "dpfast.errors" not in modules_after(f"exec({program!r})")


def test_type_checkers_see_the_public_names():
    stub = ast.parse(Path(dpfast.__file__).with_suffix(".pyi").read_text())
    imports = [(node.module, alias) for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    module_of = {alias.asname: module for module, alias in imports}  # a checker hides what is imported under no name
    assert all(alias.asname == alias.name for _, alias in imports)
    assert sorted(module_of) == dpfast.__all__
    for name, module in module_of.items():
        value = import_module(f"dpfast.{name}") if module == "dpfast" else getattr(import_module(module), name)
        assert inspect.unwrap(getattr(dpfast, name)) is value


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="module 'dpfast' has no attribute 'medain'"):
        dpfast.medain  # noqa: B018
    assert not hasattr(dpfast, "__wrapped__")
    assert not hasattr(dpfast, "__main__")


def test_sources_that_are_not_compiled(tmp_path):
    """Python in a clone finds the sources before an installed dpfast: the error says what to do."""
    sources = Path(dpfast.__file__).parent
    shutil.copytree(sources, tmp_path / "dpfast", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    command = [sys.executable, "-c", "import dpfast"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 1
    assert "ImportError: dpfast is imported from its sources" in found.stderr


def test_explain_does_not_depend_on_what_was_imported():
    calls = ["'synthesize', 9, n=100, epsilon=1.0", "'randomizer_for', 16, epsilon=1.0", "'magic', epsilon=1.0"]
    program = f"""
import os, flint, scipy.optimize, dpfast as dpf  # the former once for all children
for modules in ((), ("dpfast.densities.synthesis", "dpfast.local")):
    for call in {calls}:
        if (child := os.fork()) == 0:  # what a call imports is lost with its process
            for module in modules:
                __import__(module)
            try:
                print(repr(str(eval(f"dpf.explain({{call}})"))), flush=True)
            except ValueError as error:
                print(repr(str(error)), flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    texts = told.splitlines()
    assert texts[:3] == texts[3:]
    assert ["must be one of" in text for text in texts[:3]] == [False, False, True]


def test_explain_knows_all_choices():
    """Those of the library that need no records, besides those for statistics; two functions explain themselves."""
    paths = sorted(Path(dpfast.__file__).parent.rglob("*.py"))
    text = "\n".join(path.read_text() for path in paths)
    found = re.findall(r"^def (\w+)\([^)]*\) -> Choice:", text, re.MULTILINE)
    source = Path(explaining.__file__).read_text()
    unknown = {
        "by_errors",
        "by_noise",
        "choice_among",
        "choice_between",
        "choice_for",
        "_chosen",
        "_median_choice",
        "_noise_choice",
    }
    assert {name for name in found if f'"{name}"' not in source} == unknown
