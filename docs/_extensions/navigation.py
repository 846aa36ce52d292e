"""The navigation at the side: the sections, and what surrounds the page. The theme's own holds every page on each."""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx


def entries(app: Sphinx, parent: str, chain: set[str], page: str) -> list[dict[str, Any]]:
    """Return the pages below a page; below those of the chain, theirs."""
    found = []
    for name in app.env.toctree_includes.get(parent, ()):
        title = app.env.titles[name].astext() if name in app.env.titles else name
        if title.startswith("dpfast."):
            title = title.rpartition(".")[2]
        children = entries(app, name, chain, page) if name in chain else []
        found.append({"name": name, "title": title, "children": children, "on": name in chain})
    return found


def add_sections(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.Node | None) -> None:
    """Give the template its sections, and the theme no tree to walk."""
    context.pop("toctree", None)
    parents = {child: name for name, children in app.env.toctree_includes.items() for child in children}
    chain, at = set(), page
    while at and at not in chain:
        chain.add(at)
        at = parents.get(at, "")
    context["sections"] = entries(app, app.config.root_doc, chain, page)


def setup(app: Sphinx) -> dict[str, bool]:
    """Run before the theme looks for a tree."""
    app.connect("html-page-context", add_sections, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
