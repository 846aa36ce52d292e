"""Platforms and versions are the same wherever the project states them."""

import re
import tomllib
from pathlib import Path

import pytest

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


def test_the_address_of_the_site():
    address = PROJECT["project"]["urls"]["Documentation"]
    assert f"({address})" in (ROOT / "README.md").read_text()
    assert f"\nurl: {address}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_conda_recipe_has_the_same_requirements():
    """By lines, as `name >=version`, lower case; ziglang is for Windows alone."""
    lines = (ROOT / "conda/recipe.yaml").read_text().splitlines()

    def listed(key, end):
        start = lines.index(f"  {key}:")
        return [line.strip("- ") for line in lines[start + 1 : lines.index(end, start)]]

    def conda(requirements):
        plain = [name for name in requirements if "sys_platform" not in name]
        return [re.sub(r"(?<=\w)(?=[<>=])", " ", name.lower(), count=1) for name in plain]

    project = PROJECT["project"]
    assert f'  version: "{project["version"]}"' in lines
    assert listed("host", "  run:") == ["python", "pip", *conda(PROJECT["build-system"]["requires"])]
    assert listed("run", "") == [f"python {project['requires-python']}", *conda(project["dependencies"])]
    stated = {"license": "license", "summary": "description"}
    assert {f"  {there}: {project[here]}" for there, here in stated.items()} <= set(lines)
    assert f"  documentation: {project['urls']['Documentation']}" in lines
