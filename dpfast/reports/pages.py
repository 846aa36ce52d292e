"""Pages of a report: Markdown, and HTML in one file, with drawings of histograms and of intervals."""

from __future__ import annotations

import html
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpfast.core import checks
from dpfast.core.plotting import legible_ends
from dpfast.ledger.outputs import InputFile, Output
from dpfast.mechanisms.released import ENDLESS

FORMS = (".html", ".json", ".csv", ".md")


class Section(NamedTuple):
    """A release on a page.

    Attributes
    ----------
    title, cost : str
    columns : dict of lists
        Empty for no table.
    whole : bool
        Whether the bins of a histogram are of whole numbers, with edges at halves.
    """

    title: str
    cost: str
    columns: dict[str, list[Any]]
    whole: bool = False


_STYLE = """\
body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}
h1{font-size:1.7rem}h2{font-size:1.2rem;margin-top:2.2rem}
.guarantee{border-left:4px solid #0072b2;padding:.4rem .8rem;background:#f2f7fb}
.cost{color:#555;margin:.2rem 0 .6rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .8rem;border-bottom:1px solid #ddd;text-align:left}td.number,th.number{text-align:right}
svg{max-width:100%;height:auto;margin:.4rem 0}svg text{font:12px system-ui,sans-serif;fill:#333}
.wide{overflow-x:auto}"""
_PAGE = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>
{style}</style></head>
<body>
{body}
</body></html>
"""
_INK, _FILL, _GREY = "#0072b2", "#56b4e9", "#999999"  # of the palette of Okabe and Ito 2008
_DIGITS = 6
_FORMULA = re.compile(r"[=@\t]|[+-](?![\d.]*$)")  # what a spreadsheet would compute, unless it is a number


class Page(NamedTuple):
    """What HTML and Markdown show.

    Attributes
    ----------
    title, guarantee : str
    sections : sequence of Section
    spending : sequence of pairs of str
        What is released, and its cost.
    heading : str
        That of the spending.
    notes : sequence of str
        What is true of several sections.
    """

    title: str
    guarantee: str
    sections: Sequence[Section]
    spending: Sequence[tuple[str, str]]
    heading: str
    notes: Sequence[str] = ()

    @property
    def spent(self) -> dict[str, list[Any]]:
        """The table of the spending."""
        return {"release": [what for what, _ in self.spending], "cost": [cost for _, cost in self.spending]}


class Document(ABC):
    """What is printed, or saved as a file, in one of several forms."""

    inputs: tuple[InputFile, ...]  # that it was made from

    @abstractmethod
    def _page(self) -> Page:
        """Return what HTML and Markdown show."""

    def to_html(self) -> str:
        """Return it as one page of HTML without other files."""
        return html_page(self._page())

    def to_markdown(self) -> str:
        """Return it as Markdown."""
        return markdown_page(self._page())

    @abstractmethod
    def to_json(self) -> str:
        """Return it as JSON."""

    @abstractmethod
    def to_csv(self) -> str:
        """Return it as CSV."""

    def save(self, path: Any, *, force: bool = False) -> None:
        """Write a ``.html``, ``.json``, ``.csv`` or ``.md`` file.

        Raises
        ------
        ValueError
            For another ending.
        TableError
            If the file exists, unless `force` is true; if it is a ledger, or has the data; if it cannot be written.
        """
        text = self.written(Path(path).suffix)
        with Output(str(path), self.inputs, force=force).writing() as place:
            place.write_text(text, encoding="utf-8")

    def written(self, suffix: str) -> str:
        """Return it in the form of files with this ending."""
        forms = (self.to_html, self.to_json, self.to_csv, self.to_markdown)
        return dict(zip(FORMS, forms, strict=True))[checks.choice("the ending of a report", suffix, FORMS)]()


def csv_page(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return CSV of numbers and texts; None and NaN are empty cells."""
    return "\n".join([",".join(map(_quoted, row)) for row in (headings, *rows)]) + "\n"


def _quoted(cell: Any) -> str:
    text = "" if cell is None or cell != cell else str(cell)
    if isinstance(cell, str) and _FORMULA.match(text):
        text = f"'{text}"
    return '"{}"'.format(text.replace('"', '""')) if set(text) & set(',"\r\n') else text


def html_page(page: Page) -> str:
    """Return a page of HTML without other files."""
    parts = [f"<h1>{html.escape(page.title)}</h1>", f'<p class="guarantee">{html.escape(page.guarantee)}</p>']
    for section in page.sections:
        parts += [f"<h2>{html.escape(section.title)}</h2>", f'<p class="cost">{html.escape(section.cost)}</p>']
        parts += [drawing(section), _html_table(_legible(section)) if section.columns else ""]
    if page.notes:
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in page.notes)
        parts += ["<h2>Notes</h2>", f"<ul>{notes}</ul>"]
    parts += [f"<h2>{page.heading}</h2>", _html_table(page.spent)]
    body = "\n".join(filter(None, parts))
    return _PAGE.format(title=html.escape(page.title), style=_STYLE, body=body)


def markdown_page(page: Page) -> str:
    """Return a page of Markdown."""
    parts = [f"# {page.title}", page.guarantee]
    for section in page.sections:
        parts += [f"## {section.title}", f"*{section.cost}*"]
        parts += [_markdown_table(_legible(section))] if section.columns else []
    if page.notes:
        parts += ["## Notes", "\n".join(f"- {note}" for note in page.notes)]
    return "\n\n".join([*parts, f"## {page.heading}", _markdown_table(page.spent)]) + "\n"


def text_cells(columns: dict[str, list[Any]]) -> list[list[str]]:
    """Return the rows of a table as text; a value of None is one that tells nothing."""
    found = [
        ["no information" if cell is None and name == "value" else shown(cell) for cell in cells]
        for name, cells in columns.items()
    ]
    return [list(row) for row in zip(*found, strict=True)]


def shown(cell: Any) -> str:
    """Return a cell as text, a number with six digits and marks between thousands."""
    if cell is None:
        return ""
    if isinstance(cell, bool) or not isinstance(cell, (int, float)):
        return str(cell)
    if isinstance(cell, int):
        return f"{cell:,}"
    if math.isnan(cell):
        return "no records"
    if abs(cell) >= ENDLESS:
        return "no bound"
    if cell and (abs(cell) >= 1e15 or abs(cell) < 1e-4):
        return f"{cell:.{_DIGITS}g}"
    places = max(0, _DIGITS - 1 - math.floor(math.log10(abs(cell)))) if cell else 0
    text = f"{cell:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _is_histogram(columns: dict[str, list[Any]]) -> bool:
    return {"lower", "upper", "count", "low", "high", "share"} <= set(columns)


def _legible(section: Section) -> dict[str, list[Any]]:
    """Return a table to read: edges of bins to a hundredth of their width, whole numbers as such, shares in percent."""
    columns = section.columns
    if not _is_histogram(columns):
        return columns
    percent = [round(100 * share, 2) for share in columns["share"]]
    others = {name: columns[name] for name in ("count", "low", "high")}
    return {**dict(zip(("from", "to"), _ends(section), strict=True)), **others, "share in %": percent}


def _ends(section: Section) -> list[list[Any]]:
    """Return the ends of bins; of those of whole numbers their least and largest ones."""
    lower, upper = section.columns["lower"], section.columns["upper"]
    if section.whole:
        return [[math.ceil(x) for x in lower], [math.floor(x) for x in upper]]
    places = 2 - math.floor(math.log10(min(b - a for a, b in zip(lower, upper, strict=True))))
    return [[round(x, places) if places > 0 else round(x) for x in ends] for ends in (lower, upper)]


def _is_number(cells: Sequence[Any]) -> bool:
    return bool(cells) and all(isinstance(cell, (int, float)) or cell is None for cell in cells)


def _html_table(columns: dict[str, list[Any]]) -> str:
    sides = [' class="number"' if _is_number(cells) else "" for cells in columns.values()]
    head = "".join(f"<th{side}>{html.escape(name)}</th>" for name, side in zip(columns, sides, strict=True))
    rows = [
        "".join(f"<td{side}>{html.escape(cell)}</td>" for cell, side in zip(row, sides, strict=True))
        for row in text_cells(columns)
    ]
    body = "".join(f"<tr>{row}</tr>\n" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def _markdown_table(columns: dict[str, list[Any]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    rules = ["---:" if _is_number(cells) else "---" for cells in columns.values()]
    return "\n".join([line(list(columns)), line(rules), *map(line, text_cells(columns))])


# ---- drawings ----

_WIDTH, _HEIGHT, _LINE, _TICKS, _LONGEST = 640, 200, 24, 6, 36


def drawing(section: Section) -> str:
    """Return a drawing of a histogram, or of estimates with intervals by key; "" for other tables."""
    columns = section.columns
    if _is_histogram(columns):
        starts, ends = _ends(section)
        numbers = (columns[name] for name in ("lower", "upper", "count", "low", "high"))
        return _bars([*starts, ends[-1]], *numbers)
    if {"value", "low", "high"} <= set(columns):
        keys = [name for name in columns if name not in ("value", "low", "high", "count", "confidence", "at_bound")]
        labels = [", ".join(map(str, row)) for row in zip(*(columns[name] for name in keys), strict=True)]
        name = section.title.removesuffix(", with interval").partition(" by ")[0]
        return _lines(labels, columns["value"], columns["low"], columns["high"], name) if labels else ""
    return ""


def _bars(
    labels: list[Any], lower: list[float], upper: list[float], count: list[int], low: list[int], high: list[int]
) -> str:
    """Return bars of the noisy counts, with the range of the noise, and labels of the edges."""
    left, right, most = lower[0], upper[-1], max([1, *high])
    across, down = _scale(left, right, 0, _WIDTH), _scale(0, most, _HEIGHT, 8)
    parts = []
    for a, b, value, least, greatest in zip(lower, upper, count, low, high, strict=True):
        x, width, top = across(a), across(b) - across(a), down(max(value, 0))
        middle = x + width / 2
        size = f'width="{max(width - 1, 0.5):.1f}" height="{_HEIGHT - top:.1f}"'
        parts.append(f'<rect x="{x:.1f}" y="{top:.1f}" {size} stroke="none"/>')
        parts.append(f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{down(least):.1f}" y2="{down(greatest):.1f}"/>')
    places = [*map(across, lower), across(right)]
    axis = "".join(
        f'<text x="{places[i]:.1f}" y="{_HEIGHT + 16}" text-anchor="{_anchor(i, len(lower))}">{shown(labels[i])}</text>'
        for i in range(0, len(places), math.ceil(len(lower) / _TICKS))
    )
    axis += f'<text x="{_WIDTH}" y="12" text-anchor="end">highest bar: {shown(max(count))} records</text>'
    return _svg(_HEIGHT + 24, parts, axis, "noisy counts, with the range of the noise")


def _anchor(place: int, last: int) -> str:
    return {0: "start", last: "end"}.get(place, "middle")


def _lines(labels: list[str], value: list[float | None], low: list[float], high: list[float], name: str) -> str:
    """Return a dot and an interval for each label, one below the other, and an axis with the name of the value.

    Rows that tell nothing are grey; these, and others of absurd width, do not widen the axis. Arrows stand for what is
    beyond it.
    """
    rows = list(zip(labels, value, low, high, strict=True))
    ends = legible_ends(*(np.array([row[i] for row in rows if row[1] is not None], np.float64) for i in (2, 3)))
    if ends is None or ends[0] == ends[1]:
        return ""
    ticks, begin, end = round_ticks(*ends), _WIDTH * 2 / 5, _WIDTH - 12
    across = _scale(ticks[0], ticks[-1], begin, end)
    parts, texts = [], []
    for i, (label, middle, *both) in enumerate(rows):
        y = _LINE * (i + 0.5)
        texts.append(f'<text x="{begin - 12}" y="{y + 4}" text-anchor="end">{html.escape(_cut(label))}</text>')
        if middle is None or not math.isnan(middle):
            ink = _GREY if middle is None or any(abs(x) >= ENDLESS for x in both) else _INK
            places = [across(x) for x in both]
            x1, x2 = (min(max(x, begin), end) for x in places)
            parts.append(f'<line x1="{x1:.1f}" x2="{x2:.1f}" y1="{y}" y2="{y}" stroke="{ink}"/>')
            parts += [_arrow(begin, y, -6, ink)] * (places[0] < begin) + [_arrow(end, y, 6, ink)] * (places[1] > end)
            if middle is not None and begin <= across(middle) <= end:
                parts.append(f'<circle cx="{across(middle):.1f}" cy="{y}" r="4" stroke="{ink}"/>')
    bottom = _LINE * len(labels) + 14
    texts += [f'<text x="{across(x):.1f}" y="{bottom}" text-anchor="middle">{shown(x)}</text>' for x in ticks[:-1]]
    texts.append(f'<text x="{_WIDTH}" y="{bottom}" text-anchor="end">{shown(ticks[-1])}</text>')
    middle_of_axis = (begin + end) / 2
    texts.append(f'<text x="{middle_of_axis}" y="{bottom + 16}" text-anchor="middle">{html.escape(name)}</text>')
    return _svg(bottom + 22, parts, "".join(texts), "estimates and their intervals")


def _cut(label: str) -> str:
    """Return a label that fits beside a drawing."""
    return label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"


def _arrow(x: float, y: float, reach: float, ink: str) -> str:
    """Return the head of an arrow at the end of an axis."""
    return f'<path d="M{x + reach:g} {y}l{-reach:g} -4v8z" fill="{ink}" stroke="none"/>'


def round_ticks(least: float, greatest: float) -> list[float]:
    """Return five multiples of 1, 2 or 5 times a power of ten, of which the outer ones are around both numbers."""
    power = 10.0 ** (math.floor(math.log10(greatest - least)) - 1)
    for step in (part * power for power in (power, 10 * power) for part in (1, 2, 5)):
        first = math.floor(least / step)
        if math.ceil(greatest / step) <= first + 4:
            break
    return [float(f"{k * step:.12g}") for k in range(first, first + 5)]


def _svg(height: float, parts: list[str], texts: str, words: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height:g}" width="{_WIDTH}" role="img" aria-label="{words}">'
        f'<g fill="{_FILL}" stroke="{_INK}">{"".join(parts)}</g>{texts}</svg>'
    )


def _scale(left: float, right: float, begin: float, end: float) -> Any:
    width = right - left or 1.0
    return lambda x: begin + (end - begin) * ((min(max(x, -1e300), 1e300) - left) / width)
