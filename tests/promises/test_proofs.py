"""T18: each sampler carries a proof note, and each note names the test that ties it to the code."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.cases import every
from tests.promises.test_layout import statements

ROOT = Path(__file__).parents[2]
PROOFS = sorted(note for note in (ROOT / "docs" / "proofs").glob("*.md") if note.stem != "README")


CHECKED = re.compile(r"`(tests/[\w/]+\.py)(?:::([\w:]+))?`")


def named_tests(text):
    """The (file, name) of every test a "Checked by:" paragraph of a note names."""
    found = []
    for paragraph in re.findall(r"Checked by:?(.*?)(?:\n\s*\n|\Z)", text, re.DOTALL | re.IGNORECASE):
        found += CHECKED.findall(paragraph)
    return found


@cache
def names_in(path):
    """The names of functions and classes of a file; None if there is none."""
    if not path.exists():
        return None
    nodes = (ast.FunctionDef, ast.ClassDef)
    return {node.name for node in statements(ast.parse(path.read_text())) if isinstance(node, nodes)}


def missing_tests(found):
    """Those whose file or name does not exist."""
    missing = []
    for file, name in found:
        defined = names_in(ROOT / file)
        if defined is None or not set(filter(None, name.split("::"))) <= defined:
            missing.append((file, name))
    return missing


class TestT18:
    """T18: each sampler carries a proof note, and each note names the test that ties it to the code."""

    @every("note", PROOFS or [None], ids=lambda note: note.stem if note else "none")
    def test_notes_name_their_tests(self, note):
        if note is None:
            pytest.skip("no proof notes")
        found = named_tests(note.read_text())
        assert found, f"{note.name} has no line 'Checked by: `tests/...`'"
        assert missing_tests(found) == []

    def test_control(self):
        note = (
            "Text.\n\nChecked by: `tests/promises/test_proofs.py::TestT18`,\n`tests/test_none.py` and "
            "`tests/scripted.py::none`.\n\n`tests/x.py` is in another paragraph."
        )
        assert missing_tests(named_tests(note)) == [("tests/test_none.py", ""), ("tests/scripted.py", "none")]
        assert named_tests("no such line: `tests/promises/test_proofs.py`") == []

    def test_code_refers_to_notes(self):
        """Every note a docstring refers to exists, where there are notes."""
        if len(PROOFS) < 2:
            pytest.skip("the notes are not written yet")
        sources = [*(ROOT / "dpfast").rglob("*.py"), *(ROOT / "src").glob("*/*.[ph]*")]
        named = {name for path in sources for name in re.findall(r"/proofs/([\w-]+)\.(?:md|html)", path.read_text())}
        assert len(named) > 20
        assert named <= {note.stem for note in PROOFS}
