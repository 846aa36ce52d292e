"""The site: every public name has its place in the API reference, and the check of links finds what it should."""

import ast
import importlib
import importlib.util
import inspect
from collections import Counter
from pathlib import Path

import dpfast
from tests.cases import every

ROOT = next(folder for folder in Path(__file__).parents if (folder / "pyproject.toml").exists())
ADAPTERS = ("dask", "opendp", "pipeline_dp", "polars", "sklearn", "spark")


def loaded(path):
    """The module of a file outside the packages."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def defined(module):
    """The public names of a module, read from its source, as its library may be absent."""
    path = ROOT / "dpfast" / module
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    body = ast.parse(source.read_text("utf-8")).body
    for node in body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return [node.name for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name[0] != "_"]


def public():
    """The (module, name) of each public name."""
    for name in dpfast.__all__:
        thing = getattr(dpfast, name)
        if inspect.ismodule(thing):
            yield from ((thing.__name__, inner) for inner in getattr(thing, "__all__", None) or defined(name))
        else:
            yield "dpfast", name
    for module in ADAPTERS:
        yield from ((f"dpfast.{module}", name) for name in defined(module))


def is_adapter(module):
    return module.removeprefix("dpfast.") in ADAPTERS


def identity(module, name):
    """The object of a name, by its identity: several modules may export it. In an adapter the name itself."""
    if is_adapter(module):
        return module, name
    return id(inspect.unwrap(getattr(importlib.import_module(module), name)))  # of one that advises, the function


LISTED = [(module, name) for _, module, name in loaded(ROOT / "docs" / "_extensions" / "listing.py").listed()]


def unlisted(listed):
    """The public names that no page of docs/api lists, under any of their modules."""
    found = {identity(module, name) for module, name in listed}
    return sorted({(module, name) for module, name in public() if identity(module, name) not in found})


def test_every_public_name_is_in_the_reference():
    assert unlisted(LISTED) == [], "list these names on a page of docs/api"


def test_the_check_finds_names_that_are_not_listed():
    assert unlisted([entry for entry in LISTED if entry[1] not in {"Grid", "release"}]) == [
        ("dpfast", "Grid"),
        ("dpfast.dask", "release"),
        ("dpfast.spark", "release"),
    ]


def test_no_object_is_listed_twice():
    counts = Counter(identity(module, name) for module, name in LISTED)
    assert [entry for entry in LISTED if counts[identity(*entry)] > 1] == []
    assert [name for module, name in LISTED if is_adapter(module) and name not in defined(module.split(".")[1])] == []


@every(
    "text, latex",
    [
        ("exp(-epsilon / 2 * score(g))", r"\exp (-\epsilon /2\cdot \mathrm{score}(g))"),
        ("P(z) = sinh(1/(2 scale))", r"P(z)=\sinh (1/(2\,\mathrm{scale}))"),
        ("sum_j j^(2 beta) b_j^2 <= C^2", r"\sum_{j}\,j^{2\,\beta }\,b_{j}^{2}\le C^{2}"),
        ("floor(n**2 / 4) M**-2", r"\lfloor n^{2}/4\rfloor \,M^{-2}"),
        ("x_(k2) - x_(k1) >= q**weight(j)", r"x_{(k_{2})}-x_{(k_{1})}\ge q^{\mathrm{weight}(j)}"),
        ("dpf.Grid(0, 2**8)", None),
        ("epsilon=1.0", None),
        ("n * log_outcomes**2", None),
        ("exp(-1", None),
        ("size + 1", None),
    ],
)
def test_formulas_of_docstrings(text, latex):
    assert loaded(ROOT / "docs" / "_extensions" / "formulas.py").latex(text) == latex


PAGE = '<h1 id="top">A</h1><a href="{}">b</a><link rel="next" href="https://example.org"><img src="{}">'


@every(
    "link, picture, fault",
    [
        ("b.html#there", "p.png", ""),
        ("https://example.org/#x", "p.png", ""),
        ("c.html", "p.png", "c.html, which does not exist"),
        ("b.html#here", "p.png", "b.html#here, which has no such anchor"),
        ("#here", "p.png", "#here, which has no such anchor"),
        ("b.html", "https://example.org/p.png", "fetches https://example.org/p.png"),
        ("b.html", "q.png", "q.png, which does not exist"),
    ],
)
def test_the_check_of_the_site_finds(link, picture, fault, tmp_path):
    (tmp_path / "a.html").write_text(PAGE.format(link, picture))
    (tmp_path / "b.html").write_text('<p id="there">')
    (tmp_path / "p.png").touch()
    found = list(loaded(ROOT / ".ci" / "check_site.py").faults(tmp_path))
    assert [found[0].endswith(fault), len(found)] == [True, 1] if fault else found == []


def test_the_check_of_the_site_reads_style_sheets(tmp_path):
    (tmp_path / "a.css").write_text('@import "https://example.org/font.css"; b { background: url(p.png) }')
    assert list(loaded(ROOT / ".ci" / "check_site.py").faults(tmp_path)) == [
        "a.css fetches https://example.org/font.css"
    ]
