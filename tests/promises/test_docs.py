"""The examples in docstrings, README and CONTRIBUTING run as they stand."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import dpfast

pytestmark = pytest.mark.host

ROOT = Path(__file__).parents[2]
FOUND = [m.name for m in pkgutil.walk_packages(dpfast.__path__, "dpfast.")]
MODULES = ["dpfast", *(name for name in FOUND if "._kernels" not in name and name != "dpfast.__main__")]


# What a module is the road from, if it is not required.
HOSTS = {"dpfast.opendp": "opendp", "dpfast.sklearn": "sklearn"}


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    if name in HOSTS:
        pytest.importorskip(HOSTS[name])
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/guides/ledger.md", "docs/guides/streaming.md"])
def test_examples_in(name):
    result = doctest.testfile(str(ROOT / name), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


# Abstract, an error, a result: nothing to call.
NOT_CALLED = {"BudgetError", "EntropyError", "Histogram", "Mechanism"}


@pytest.mark.parametrize(
    "name", [name for name in dpfast.__all__ if callable(getattr(dpfast, name)) and name not in NOT_CALLED]
)
def test_every_public_function_and_mechanism_has_an_example(name):
    assert ">>>" in getattr(dpfast, name).__doc__
