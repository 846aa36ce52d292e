"""The API reference: a page for each name that docs/api lists, and links between docstrings."""

import collections
import contextlib
import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import formulas
import listing
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

LOGGER = logging.getLogger(__name__)
LITERAL = re.compile(r"``.+?``|^\s*(?:>>>|\.\.\. ).*$", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"(?<![`:\w])`([^`]+)`(?![`_])")
PARAMETER = re.compile(r"^( *)(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.+)$", re.MULTILINE)
CLASS = re.compile(r"(?<![\w\"'`.])((?:\w+\.)*[A-Z]\w+)(?![\w\"'`])")
OTHERS = ("argparse", "dask", "decimal", "matplotlib", "mbi", "numpy", "opendp", "pandas", "pipeline_dp", "polars")
OTHERS += ("pyarrow", "pyspark", "scipy", "sklearn", "tqdm", "self", "list")


def named(module: str, name: str) -> Any:
    """Return the object of this name in a module."""
    return getattr(importlib.import_module(module), name)


@functools.cache
def documented() -> dict[int, str]:
    """Return the path of each listed object, by its identity."""
    return {id(inspect.unwrap(named(module, name))): f"{module}.{name}" for _, module, name in listing.listed()}


def kind_of(member: Any) -> str:
    """Return the kind of a member of a class: a property or a method of this library, or "" for all else."""
    if isinstance(member, (property, functools.cached_property)):
        return "property"
    here = str(getattr(member, "__module__", None) or "dpfast").startswith("dpfast")
    return "method" if inspect.isroutine(member) and here else ""


def members(cls: type) -> Iterator[tuple[str, Any, type]]:
    """Name, object and defining class of each public member that has a docstring."""
    for name in dict.fromkeys(name for base in cls.__mro__ for name in vars(base)):
        for base in cls.__mro__:
            member = vars(base).get(name)
            if member.__doc__ and kind_of(member) and base.__module__.startswith("dpfast"):
                if not name.startswith("_"):
                    yield name, member, base
                break


def member_path(cls: type, name: str) -> str | None:
    """Where a member of a listed class is documented: with the listed class that defines it, else with this one."""
    for found, _, base in members(cls):
        if found == name:
            path = documented().get(id(base), documented().get(id(cls)))
            return path and f"{path}.{name}"
    return None


def stub(module: str, name: str) -> str:
    """Return the page of a name."""
    thing = named(module, name)
    title = f"{module}.{name}"
    lines = [title, "=" * len(title), "", f".. currentmodule:: {module}", ""]
    if inspect.isclass(thing):
        own, inherited = [], []
        for member, value, base in members(thing):
            path = documented().get(id(base))
            if base is thing or path is None:
                own += ["", f"   .. auto{kind_of(value)}:: {member}"]
            else:
                inherited.append(f":py:obj:`~{path}.{member}`")
        lines += [f".. autoclass:: {name}", *own]
        if inherited:
            lines += ["", ".. rubric:: Inherited", "", ", ".join(sorted(inherited))]
    elif inspect.isroutine(thing):
        lines += [f".. autofunction:: {name}"]
    else:
        lines += [f".. py:data:: {name}", "", f"   ``{thing!r}``"]
    return "\n".join(lines) + "\n"


def write_stubs(app: Sphinx) -> None:
    """Write the pages of all names, those only that differ, and remove what is no longer listed."""
    folder = Path(app.srcdir) / "api" / "generated"
    folder.mkdir(exist_ok=True)
    pages = {f"{module}.{name}.rst": stub(module, name) for _, module, name in listing.listed()}
    for path in folder.iterdir():
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


class Names(SphinxDirective):
    """A table of names of one module with the first sentence of each, and their pages."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Parse the table and a toctree of the pages."""
        module = self.arguments[0]
        page = Path(self.env.docname).name
        first = next(page for page, listed, _ in listing.listed() if listed == module)
        lines = [".. list-table::", "   :class: names", ""]
        for name in self.content:
            thing = named(module, name)
            described = inspect.isclass(thing) or inspect.isroutine(thing)
            summary = (inspect.getdoc(thing) if described else None) or "A type or constant."
            text = resolved(re.split(r"\n\n|(?<=[.:])\s", summary)[0], thing, None, self.config.html_baseurl)
            lines += [f"   * - :py:obj:`~{module}.{name}`", "     - " + " ".join(text.split()).rstrip(":")]
        lines += ["", ".. toctree::", "   :hidden:", ""]
        lines += [f"   generated/{module}.{name}" for name in self.content]
        if page == first and module not in self.env.domaindata["py"]["modules"]:
            lines = [f".. py:module:: {module}", "", *lines]
        return self.parse_lines(lines)

    def parse_lines(self, lines: list[str]) -> list[nodes.Node]:
        """Return the nodes of lines of reStructuredText."""
        node = nodes.container()
        self.state.nested_parse(StringList(lines, source=self.get_source_info()[0]), self.content_offset, node)
        return node.children


@functools.cache
def namespaces(module: str) -> list[dict[str, Any]]:
    """Where to look for a name in a docstring of a module: there, in its packages, and among names listed once."""
    parts = module.split(".")
    modules = [importlib.import_module(".".join(parts[:end])) for end in range(len(parts), 0, -1)]
    count = collections.Counter(name for _, _, name in listing.listed())
    once = {name: named(module, name) for _, module, name in listing.listed() if count[name] == 1}
    return [*(vars(module) for module in modules), {"dpfast": modules[-1]}, once]


def path_of(name: str, spaces: list[dict[str, Any]]) -> str | None:
    """Where a name is documented, "" if it is that of an object without a page, None if there is no such object."""
    first, *rest = name.split(".")
    for space in spaces:
        if first not in space:
            continue
        found = space[first]
        for part in rest:
            if inspect.isclass(found) and part in attributes(found):
                return member_path(found, part) or ""
            found = getattr(found, part, None)
        if id(inspect.unwrap(found)) in documented():
            return documented()[id(inspect.unwrap(found))]
        if inspect.ismodule(found) and found.__name__ in {module for _, module, _ in listing.listed()}:
            return found.__name__
        if found is not None:
            return ""
    return None


@functools.cache
def attributes(cls: type) -> set[str]:
    """Return the names of the members, fields and instance attributes of a class of this library."""
    names = set()
    for base in cls.__mro__:
        if base.__module__.startswith("dpfast"):
            names |= {*vars(base), *vars(base).get("__annotations__", ())}
            with contextlib.suppress(OSError, TypeError):
                names |= set(re.findall(r"\bself\.(\w+)", inspect.getsource(base)))
    return names


def parameters(thing: Any) -> set[str]:
    """Return the names of the parameters of an object, and what its docstring lists."""
    names = set()
    with contextlib.suppress(TypeError, ValueError):
        names |= set(inspect.signature(thing).parameters)
    for _, found, _ in PARAMETER.findall(inspect.getdoc(thing) or ""):
        names |= set(found.replace("*", "").split(", "))
    return names


def returned(thing: Any, spaces: list[dict[str, Any]]) -> list[type]:
    """Return the classes of this library that the annotation or the section of what is returned names."""
    texts = [str(getattr(thing, "__annotations__", {}).get("return", ""))]
    texts += re.findall(r"^Returns\n-+\n(.*?)(?:\n\n|\Z)", inspect.getdoc(thing) or "", re.DOTALL | re.MULTILINE)
    names = {name for text in texts for name in re.findall(r"\b[A-Z]\w+", text)}
    found = [space[name] for name in names for space in spaces if inspect.isclass(space.get(name))]
    return [cls for cls in found if cls.__module__.startswith("dpfast")]


def resolved(text: str, thing: Any, owner: type | None, site: str) -> str:
    """Return a docstring with addresses and names as links, and formulas. `owner` is the class of a
    method or property.
    """
    text = re.sub(rf"{re.escape(site)}([\w/-]+)\.html", r":doc:`/\1`", text)
    thing = getattr(thing, "fget", None) or getattr(thing, "func", None) or thing
    owner = thing if inspect.isclass(thing) else owner
    spaces = namespaces(getattr(thing, "__module__", None) or "dpfast")
    classes = [owner] * (owner is not None) + returned(thing, spaces)
    known = parameters(thing) | (parameters(owner) if owner else set())

    def link(match: re.Match[str]) -> str:
        shown = " ".join(match[1].split())
        name = re.match(r"\.?([\w.]*)", shown)[1]
        paths = [member_path(cls, name) or "" for cls in classes if name in attributes(cls)]
        paths += [""] * (name in known or name.split(".")[0] in OTHERS)
        path = paths[0] if paths else path_of(name, spaces)
        if path is None:
            LOGGER.warning("`%s` in the docstring of %s is unknown", shown, thing)
        return f":py:obj:`{shown} <{path}>`" if path else f"``{shown}``"

    def plain(part: str) -> str:
        return NAME.sub(link, part).replace("|", r"\|")

    def types(match: re.Match[str]) -> str:
        kinds = CLASS.sub(lambda m: f":py:obj:`{m[1]} <{path}>`" if (path := path_of(m[1], spaces)) else m[1], match[3])
        return f"{match[1]}{match[2]} : {kinds}"

    pieces, start = [], 0
    for literal in LITERAL.finditer(text):
        formula = formulas.latex(literal[0].strip("`")) if literal[0].startswith("``") else None
        pieces += [plain(text[start : literal.start()]), f":math:`{formula}`" if formula else literal[0]]
        start = literal.end()
    return PARAMETER.sub(types, "".join([*pieces, plain(text[start:])]))


def process(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Resolve the names of a docstring, before numpydoc formats it."""
    owner = None
    if what in ("method", "property", "attribute"):
        module, _, cls = name.rpartition(".")[0].rpartition(".")
        owner = named(module, cls)
    lines[:] = resolved("\n".join(lines), thing, owner, app.config.html_baseurl).split("\n")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive and the handlers."""
    app.add_directive("names", Names)
    app.connect("builder-inited", write_stubs, priority=100)
    app.connect("autodoc-process-docstring", process, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
