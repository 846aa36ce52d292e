"""The five papers: each theorem, algorithm, figure and table, computed and compared with what the paper says.

``python -m bench.papers`` writes docs/papers: one page for each `Paper`, made of its items. An `Item` has the paper's
name for it, the paper's claim, the functions of dpfast that belong to it, and ``compute(quick) -> Result``, which exits
(`bench.pages.tables.check`) where a figure is not as expected. Data files are found with `bench.papers.data.find`.
"""

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.pages import colophon
from bench.pages.tables import paragraph, table

PAGES = Path(__file__).resolve().parents[2] / "docs" / "papers"


@dataclass(frozen=True)
class Result:
    """What was computed for an item.

    found: one line for the summary table. agrees: "yes", or why the result differs from the paper. text: Markdown for
    the item's section, without a heading.
    """

    found: str
    agrees: str = "yes"
    text: str = ""


@dataclass(frozen=True)
class Item:
    """A theorem, algorithm, figure or table of a paper.

    name: the paper's name for it, with a subject. claim: what the paper says, one or two sentences. functions: dotted
    names, such as "dpfast.theory.lower_bound" or "bench.pages.histogram_accuracy.errors". error: where the paper errs,
    if it does; the computation shows it. draw: ``draw(quick, path)`` draws an SVG (`bench.pages.save`), with a caption.
    """

    name: str
    claim: str
    functions: tuple[str, ...]
    compute: Callable[[bool], Result]
    error: str = ""
    draw: Callable[[bool, Path], None] | None = None
    caption: str = ""

    @property
    def key(self) -> str:
        """The name up to its subject, for the command line: "Theorem 8 (2): distances" is "theorem-8-2"."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.partition(":")[0].lower()).strip("-")


@dataclass(frozen=True)
class Paper:
    """A page: its key is the name of the file and the word for the command line."""

    key: str
    title: str
    reference: str
    about: str
    items: tuple[Item, ...]


def resolve(name: str) -> Any:
    """The object of a dotted name: a module, or an attribute of a module or of a class."""
    module, parts = name, []
    while True:
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError:
            module, _, part = module.rpartition(".")
            if not module:
                raise
            parts.insert(0, part)
            continue
        for part in parts:
            found = getattr(found, part)
        return found


def command(paper: Paper, item: Item) -> str:
    return f"python -m bench.papers --only {paper.key}/{item.key}"


def section(paper: Paper, item: Item, result: Result, *, drawn: bool) -> str:
    """The Markdown of an item."""
    names = ", ".join(f"`{name}`" for name in item.functions)
    parts = [
        f"## {item.name}\n",
        paragraph(item.claim),
        paragraph(f"Functions: {names}. Command:") + f"`{command(paper, item)}`\n",
        paragraph(f"**Found**: {result.found}"),
    ]
    if item.error:
        parts.append(paragraph(f"**Where the paper errs**: {item.error}"))
    if result.text:
        parts.append(result.text)
    if drawn:
        parts.append(_picture(paper, item))
    return "\n".join(parts)


def _picture(paper: Paper, item: Item) -> str:
    return f"![{item.caption}]({paper.key}-{item.key}.svg)\n"


def page(paper: Paper, results: dict[str, Result]) -> str:
    """The Markdown of a paper: the table of its items, and a section for each."""
    rows = []
    for item in paper.items:
        result = results[item.key]
        names = [f"`{name.removeprefix('dpfast.')}`" for name in item.functions if name.startswith("dpfast.")]
        first = "<br>".join([item.name, f"`{item.key}`", *names])
        rows.append([first, item.claim, result.found, result.agrees])
    drawn = [item for item in paper.items if item.draw is not None]
    flat = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    parts = [
        f"# {paper.title}\n",
        paragraph(paper.about),
        *(_picture(paper, item) for item in drawn[:1]),
        paragraph(f"**Reference**: {paper.reference}"),
        "## Items\n",
        paragraph("Below each item are its key, for the command line, and its functions, without `dpfast.`."),
        table(["item", "the paper", "found", "agrees"], flat),
        *(section(paper, item, results[item.key], drawn=item.draw is not None) for item in paper.items),
        colophon(f"bench.papers --only {paper.key}"),
    ]
    return "\n".join(parts)
