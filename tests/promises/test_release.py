"""Platforms and versions are the same wherever the project states them."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import dpfast

ROOT = next(folder for folder in Path(__file__).parents if (folder / "pyproject.toml").exists())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SUPPORTED = "Linux on x86-64 and arm64, Python 3.11 or later, free-threaded builds included"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/stability.md", "docs/guides/wheels.md"])
def test_pages_state_the_same_platforms(page):
    assert SUPPORTED in " ".join((ROOT / page).read_text().split())


def test_metadata_and_wheels_are_for_these_platforms():
    project, wheels = PROJECT["project"], PROJECT["tool"]["cibuildwheel"]
    systems = [name for name in project["classifiers"] if name.startswith("Operating System")]
    assert systems == ["Operating System :: POSIX :: Linux"]
    assert any("Free Threading" in name for name in project["classifiers"])
    assert project["requires-python"] == ">=3.11"
    assert {wheels[system]["environment"]["DPFAST_UNVERIFIED"] for system in ("macos", "windows")} == {"1"}
    assert {"manylinux-x86_64-image", "manylinux-aarch64-image"} <= set(wheels["linux"])
    assert {"cp311-*", "cp314t-*"} <= set(wheels["build"].split())


def test_citation_and_changelog_have_the_version():
    version = PROJECT["project"]["version"]
    assert dpfast.__version__ == version
    assert re.search(rf"^version: {re.escape(version)}$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert re.search(rf"^## .*\b{re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(), re.M)


@pytest.mark.host
def test_the_recipe_of_conda_has_the_requirements():
    """Those of Linux: conda's recipe is for no other system."""
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text())
    assert recipe["context"]["version"] == PROJECT["project"]["version"]
    assert recipe["about"]["summary"] == PROJECT["project"]["description"]
    assert recipe["about"]["license"] == PROJECT["project"]["license"]
    assert recipe["about"]["documentation"] in PROJECT["project"]["urls"]["Documentation"]

    def requirements(listed):
        return {Requirement(one) for one in listed if "sys_platform" not in one and "${{" not in one}

    given = recipe["requirements"]
    assert requirements(given["run"]) == requirements([*PROJECT["project"]["dependencies"], "python"])
    built = requirements([*PROJECT["build-system"]["requires"], "python", "pip"])
    assert requirements(given["host"]) == {Requirement(str(one).lower()) for one in built}
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert recipe["build"]["skip"] == f'not linux or match(python, "<{oldest}")'


def test_the_address_of_the_site():
    address = PROJECT["project"]["urls"]["Documentation"]
    assert f"({address})" in (ROOT / "README.md").read_text()
    assert f"\nurl: {address}\n" in (ROOT / "CITATION.cff").read_text()
