"""The examples in docstrings, README and CONTRIBUTING run as they stand."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import dpfast

ROOT = Path(__file__).parents[1]
MODULES = ["dpfast", *(f"dpfast.{m.name}" for m in pkgutil.iter_modules(dpfast.__path__) if m.name != "__main__")]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_examples_in(name):
    result = doctest.testfile(str(ROOT / name), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_every_public_function_has_an_example():
    functions = (
        "median",
        "quantile",
        "mean",
        "sum",
        "variance",
        "std",
        "trimmed_mean",
        "winsorized_mean",
        "iqr",
        "huber",
        "m_estimate",
    )
    mechanisms = ("InverseSensitivity", "GlobalSensitivity", "MEstimator", "SmoothSensitivity")
    for name in (*functions, *mechanisms, "Grid", "Privacy"):
        assert ">>>" in getattr(dpfast, name).__doc__, name
