"""Tables and paragraphs in Markdown, and checks of their figures."""

import math
import textwrap

import numpy as np


def paragraph(text, bullet=""):
    """Wrap a text at 120 columns."""
    words, rest = " ".join(text.split()), " " * len(bullet)
    return textwrap.fill(words, 120, initial_indent=bullet, subsequent_indent=rest, break_on_hyphens=False) + "\n"


def table(headings, rows):
    """Rows of texts or numbers under their headings."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def digits(value):
    """Two significant digits, three above 100, in ordinary notation; a dash for None."""
    if value is None:
        return "-"
    if value == math.inf:
        return "∞"
    if abs(value) < 1e-9:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if not -3 <= size < 6:
        return f"{value:.1e}".replace("e-0", "e-").replace("e+0", "e")
    places = 1 - size if size < 2 else 2 - size
    return f"{round(value, places):,.{max(places, 0)}f}"


def size(n):
    """1000000 as 1e6; small numbers unchanged."""
    return f"{n:.0e}".replace("e+0", "e") if n >= 10_000 else str(n)


def check(name, found, expected, tolerance):
    """Exit if figures differ from the expected ones."""
    if not np.all(np.abs(np.asarray(found) - expected) <= tolerance):
        raise SystemExit(f"{name}: found {found}, expected {expected} within {tolerance}")


def slope(sizes, errors):
    """The slope of log error against log size."""
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])
