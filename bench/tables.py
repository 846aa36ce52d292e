"""Tables in Markdown."""

import math


def table(headings, rows):
    """Rows of texts or numbers under their headings."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def digits(value):
    """Two significant digits, three above 100, as a person would write them; a dash for nothing."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size < -3:
        return f"{value:.1e}".replace("e-0", "e-")
    places = 1 - size if size < 2 else 2 - size
    return f"{round(value, places):,.{max(places, 0)}f}"


def size(n):
    """1000000 as 1e6; small ones as they are."""
    return f"{n:.0e}".replace("e+0", "e") if n >= 10_000 else str(n)
