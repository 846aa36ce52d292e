"""Axes, titles, colours and labels of the plots of results. Matplotlib is imported by the first plot without axes."""

from __future__ import annotations

import textwrap
from typing import Any

SKY = "#56B4E9"  # of the palette of Okabe and Ito 2008: visible on light and dark grounds
MAP = "cividis"  # of numbers, for readers with any colour vision
_NOTES = "dpfast notes"
_POINTS = 72  # in an inch
_ASPECT = 0.52  # of the mean width of a letter to the size of the font


def axes(ax: Any) -> Any:
    """Return the given axes, or the current ones of pyplot."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.gca()


def ink(ax: Any) -> Any:
    """Return the colour of the text of the axes, for lines that are to be seen on light and dark grounds."""
    return ax.xaxis.label.get_color()


def entitle(ax: Any, title: str, *notes: object) -> None:
    """Set a title, and below it the guarantee and other notes in small letters, in lines as long as the axes."""
    from matplotlib.font_manager import FontProperties

    for text in [text for text in ax.texts if text.get_gid() == _NOTES]:
        text.remove()  # of an earlier plot in the same axes
    size = FontProperties(size="x-small").get_size_in_points()
    width = ax.get_position().width * ax.figure.get_figwidth() * _POINTS
    longest = max(20, int(width / (_ASPECT * size)))
    lines = [line for note in notes for line in textwrap.wrap(plain(note), longest)]
    ax.set_title(plain(title), loc="left", fontsize="medium", pad=8 + 1.35 * size * len(lines))
    ax.annotate(
        "\n".join(lines),
        (0, 1),
        (0, 4),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize="x-small",
        linespacing=1.2,
        va="bottom",
        gid=_NOTES,
    )


def height_axis(ax: Any, height: str = "density") -> None:
    """Label the vertical axis of a density or the like, with complete numbers at its ticks, no common factor."""
    ax.set_ylabel(height)
    ax.yaxis.set_major_formatter("{x:.6g}")


def whole_ticks(axis: Any) -> None:
    """Set the ticks of an axis at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def plain(text: object) -> str:
    """Return a text in which Matplotlib sees no formula."""
    return str(text).replace("$", r"\$")


def with_unit(name: str, unit: str | None) -> str:
    """Return the label of an axis."""
    return name if unit is None else f"{plain(name)} ({plain(unit)})"


def percent(confidence: float) -> str:
    """Return a probability as a percentage."""
    return f"{100 * confidence:.10g} %"
