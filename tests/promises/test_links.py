"""Links and paths in the documentation lead to files, and the index of the proof notes lists each note once."""

import ast
import re
from collections import Counter
from pathlib import Path

from tests.promises.test_layout import statements

ROOT = next(folder for folder in Path(__file__).parents if (folder / "pyproject.toml").exists())
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = [path for folder in ("bench", "dpfast", "examples", "src", "tests") for path in (ROOT / folder).rglob("*.*")]
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
PATH = re.compile(r"\b(?:bench|docs|dpfast|examples|src)/[\w/-]+\.(?:h|md|py|pyx|svg)\b")
INVENTED = {"dpfast/_kernels/_x.py", "src/x/_x.pyx"}  # stand for any kernel
MADE = {"examples/images/sphx_glr_plot_01_release_and_law_001.svg"}  # by the gallery, with the site


def broken_links(page):
    links = [link for link in LINK.findall(page.read_text("utf-8")) if not link.startswith("https://")]
    return [link for link in links if not (page.parent / link).exists()]


def test_links():
    found = {page.relative_to(ROOT).as_posix(): broken_links(page) for page in PAGES}
    assert {page: links for page, links in found.items() if links} == {}
    assert len(PAGES) > 100


def test_paths_named_in_sources():
    sources = [path for path in (*PAGES, *SOURCES) if path.suffix in {".h", ".md", ".pxd", ".py", ".pyi", ".pyx"}]
    named = {(path.name, name) for path in sources for name in PATH.findall(path.read_text("utf-8"))}
    named = {(path, name) for path, name in named if name not in INVENTED | MADE}
    assert [(path, name) for path, name in sorted(named) if not (ROOT / name).exists()] == []
    assert len(named) > 50


def test_docstrings_give_addresses_of_pages():
    """An installed wheel holds no docs, so docstrings name the pages of the site, each of which has its source."""
    configuration = (ROOT / "docs" / "conf.py").read_text("utf-8")
    [site] = re.findall(r'^SITE = "(\S+/)"$', configuration, re.MULTILINE)
    named, paths = set(), set()
    for module in (ROOT / "dpfast").rglob("*.py"):
        for node in statements(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                docstring = ast.get_docstring(node) or ""
                named |= set(re.findall(rf"{re.escape(site)}([^\s),;`]*[^\s),;`.:])", docstring))
                paths |= {(module.name, name) for name in PATH.findall(docstring) if name.startswith("docs/")}
    assert [name for name in sorted(named) if not (ROOT / "docs" / name).with_suffix(".md").exists()] == []
    assert sorted(paths) == []
    assert len(named) > 50


def test_every_threat_is_answered_by_a_test_that_names_it():
    rows = [line for line in (ROOT / "docs" / "threats.md").read_text("utf-8").splitlines() if line.startswith("| T")]
    for row in rows:
        texts = [(ROOT / "tests" / name).read_text("utf-8") for name in re.findall(r"`(\w+/\w+\.py)`", row)]
        for number in re.findall(r"\bT\d+\b", row.split("|")[1]):
            assert any(re.search(rf"T{number[1:]}\b", text) for text in texts), number
    assert len(rows) > 20


def test_every_proof_note_is_listed_once():
    folder = ROOT / "docs" / "proofs"
    listed = Counter(LINK.findall((folder / "README.md").read_text("utf-8")))
    notes = Counter(note.name for note in folder.glob("*.md") if note.name != "README.md")
    assert listed == notes, "docs/proofs/README.md needs a row for each note"
