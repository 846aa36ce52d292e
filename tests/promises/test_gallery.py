"""The examples of docs/gallery: that each compiles, is listed, states what is private, and uses names that exist.

The build of the site runs them.
"""

import ast
import re
from pathlib import Path

import pytest

import dpfast
from tests.cases import every

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
EXAMPLES = sorted(GALLERY.glob("plot_*.py"))


def test_examples_are_numbered():
    """The gallery lists the examples by their names, and runs no other file."""
    numbers = [int(re.fullmatch(r"plot_(\d\d)_[a-z_]+", path.stem)[1]) for path in EXAMPLES]
    assert numbers == list(range(1, len(EXAMPLES) + 1))
    assert len(numbers) >= 10
    assert {path.name for path in GALLERY.glob("*.py")} - {path.name for path in EXAMPLES} == {"gallery_style.py"}


def public_name(node):
    """The object that a chain such as ``dpf.statistics.Median`` names; an AttributeError if there is none."""
    if isinstance(node, ast.Attribute):
        return getattr(public_name(node.value), node.attr)
    return {"dpf": dpfast, "local": dpfast.local}[node.id]


def public_names(tree):
    """The chains of attributes that start at the library."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            root = node
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root.id in ("dpf", "local"):
                yield node


@every("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path):
    tree = ast.parse(path.read_text())
    compile(tree, path.name, "exec")
    title, underline, *text = ast.get_docstring(tree).splitlines()
    assert underline == "=" * len(title)
    about = " ".join(text)
    assert "**Private**" in about
    assert "**Public**" in about
    if "rng" in path.read_text():
        assert re.search(r"\bseed", about, re.IGNORECASE)
        assert "not private" in about
    names = list(public_names(tree))
    assert names
    for name in names:
        public_name(name)


def test_unknown_names_are_found():
    [name] = public_names(ast.parse("dpf.medians(pay)"))
    with pytest.raises(AttributeError):
        public_name(name)


@pytest.mark.host
def test_curves_differ_without_colour_and_drawings_repeat(tmp_path):
    """Curves that coincide all show, the legend is below the axes, and a drawing depends on its numbers only."""
    pytest.importorskip("matplotlib")
    from bench import pages

    pyplot, same = pages.pyplot(), ([1, 10, 100], [3, 2, 1])
    drawn = []
    for name in ("one", "other"):
        figure, axes = pyplot.subplots()
        pages.draw(axes, {f"curve {k}": same for k in range(7)})
        pages.legend(figure, axes)
        pages.save(figure, tmp_path / name)
        drawn.append((tmp_path / name).read_bytes())
    assert drawn[0] == drawn[1]
    for style in ("get_marker", "get_color", "get_linewidth"):
        assert len({getattr(line, style)() for line in axes.lines}) == 7
    figure.canvas.draw()
    assert figure.legends[0].get_window_extent().y1 < axes.get_window_extent().y0
    pyplot.close("all")
