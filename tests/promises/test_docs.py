"""The examples in docstrings, README, CONTRIBUTING and docs run unchanged."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import dpfast

ROOT = Path(__file__).parents[2]
FOUND = [m.name for m in pkgutil.walk_packages(dpfast.__path__, "dpfast.")]
MODULES = ["dpfast", *(name for name in FOUND if "._kernels" not in name and name != "dpfast.__main__")]


# Modules and pages that need optional libraries.
HOSTS = {
    "bounds": "pandas",
    "dpfast.opendp": "opendp",
    "dpfast.pipeline_dp": "pipeline_dp",
    "dpfast.polars": "polars",
    "dpfast.sklearn": "sklearn",
    "duckdb": "duckdb",
    "groups": "pandas polars",
    "hosts": "pandas polars pyarrow duckdb dask.array sklearn",
    "ledger": "dp_accounting",
    "missing": "pandas",
    "pipeline-dp": "pipeline_dp",
    "results": "pandas matplotlib",
    "shuffling": "dp_accounting",
    "spark": "pyspark pandas",
    "units": "pandas",
}
HOSTS |= {name.removeprefix("dpfast."): library for name, library in HOSTS.items()}


def of_hosts(name, value):
    """A case, which is one of other libraries if its module or page needs them."""
    return pytest.param(value, id=name, marks=[pytest.mark.host] if name in HOSTS else [])


@pytest.mark.parametrize("name", [of_hosts(name, name) for name in MODULES])
def test_docstring_examples(name):
    if name in HOSTS:
        pytest.importorskip(HOSTS[name])
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


PAGES = [page for page in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]) if ">>>" in page.read_text()]


@pytest.mark.parametrize("page", [of_hosts(page.stem, page) for page in PAGES])
def test_examples_in(page):
    for library in HOSTS.get(page.stem, "").split():
        pytest.importorskip(library)
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


# Abstract classes, errors and results: not called by users.
NOT_CALLED = {"BudgetError", "EntropyError", "Histogram", "Mechanism", "PrivacyWarning", "UtilityWarning"}


def test_every_public_function_and_mechanism_has_an_example():
    called = [name for name in dpfast.__all__ if callable(getattr(dpfast, name)) and name not in NOT_CALLED]
    assert [name for name in called if ">>>" not in getattr(dpfast, name).__doc__] == []
    assert len(called) > 50
