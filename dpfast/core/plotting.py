"""Axes, titles, colours and labels of the plots of results. Matplotlib is imported by the first plot without axes."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

SKY = "#56B4E9"  # of the palette of Okabe and Ito 2008: visible on light and dark grounds
MAP = "cividis"  # of numbers, for readers with any colour vision
_NOTES = "dpfast notes"
_POINTS = 72  # in an inch
_FARTHEST = 1e150  # that is drawn
_WIDEST, _FARTHEST_AWAY = 30.0, 1000.0
_SMALLEST = 3.0  # letters of many rows, in points
_MARGIN = 0.05  # of an axis, beyond what is legible
_OFF_SCALE = "dpfast beyond"  # the mark of arrows in axes
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


def rows_of_intervals(ax: Any, places: Any, values: ArrayLike, reach: Any = None) -> None:
    """Draw a dot and an interval in each row, also beside those that are there; arrows stand for what is off the axis.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    places : sequence
        Of the rows, from above: numbers or names.
    values : array_like of shape (n,)
        NaN for a row without a dot.
    reach : array of shape (2, n), optional
        How far the interval is to the left and to the right.
    """
    middles = np.clip(np.asarray(values, np.float64), -_FARTHEST, _FARTHEST)
    if reach is not None:
        with np.errstate(over="ignore"):  # of an end that is no bound
            both = np.clip(np.asarray(values) + [[-1.0], [1.0]] * np.asarray(reach), -_FARTHEST, _FARTHEST)
        reach = np.abs(both - middles)
    row = ax.get_position().height * ax.figure.get_figheight() * _POINTS / max(len(middles), 1)
    sizes = {"capsize": min(4, row / 4), "markersize": min(6, row / 2)}
    ax.errorbar(middles, places, xerr=reach, fmt="o", color=ink(ax), markerfacecolor=SKY, **sizes)
    for label in ax.get_yticklabels():
        label.set_fontsize(min(label.get_fontsize(), max(0.9 * row, _SMALLEST)))
    for mark in [*ax.texts, *ax.lines]:
        if mark.get_gid() == _OFF_SCALE:
            mark.remove()  # of fewer rows
    rows = np.concatenate([_drawn_rows(container) for container in ax.containers if hasattr(container, "has_xerr")])
    ends = legible_ends(rows[:, 1], rows[:, 2])
    known = rows[~np.isnan(rows[:, 1])]
    if ends is None or (known[:, 1].min() >= ends[0] and known[:, 2].max() <= ends[1]):
        return
    margin = (ends[1] - ends[0] or 1.0) * _MARGIN
    left, right = ends[0] - margin, ends[1] + margin
    ax.set_xlim(left, right)
    for value, low, high, place in known:
        for beyond, end, side in ((low < left, left, "<"), (high > right, right, ">")):
            if beyond:
                ax.plot([end], [place], side, color=ink(ax), clip_on=False, gid=_OFF_SCALE)
        if not left <= value <= right:
            where, end = ("left", left) if value < left else ("right", right)
            ax.annotate(
                f"{value:.3g}",
                (end, place),
                (6 if where == "left" else -6, 5),
                textcoords="offset points",
                ha=where,
                fontsize="x-small",
                gid=_OFF_SCALE,
            )


def _drawn_rows(container: Any) -> NDArray[np.float64]:
    """Return the value, the ends of the interval and the place of each row of errorbars."""
    line, _, bars = container.lines
    values = np.asarray(line.get_xdata(orig=False), np.float64)
    places = np.asarray(line.get_ydata(orig=False), np.float64)
    ends = np.stack([values, values], axis=1)
    if bars:
        segments = bars[0].get_segments()
        ends = np.array([part[:, 0] if len(part) else (math.nan, math.nan) for part in segments])
    return np.column_stack([values, ends, places])


def legible_ends(low: ArrayLike, high: ArrayLike) -> tuple[float, float] | None:
    """Return the ends of an axis in which most of these released intervals are legible; None if there are none.

    One that is 30 times wider than usual, or 1000 times farther away, does not widen it: the usual width is that of a
    quarter of them, or half of the distances from their middle.
    """
    ends = np.stack([np.asarray(low, np.float64), np.asarray(high, np.float64)])
    ends = ends[:, (np.abs(ends) < _FARTHEST).all(axis=0)]  # not of NaN
    if not ends.size:
        return None
    widths, centers = ends[1] - ends[0], ends.mean(axis=0)
    away = np.abs(centers - np.quantile(centers, 0.5, method="lower"))
    usual = max(np.quantile(widths, 0.25, method="lower"), np.quantile(away, 0.5, method="lower"))
    kept = (widths <= _WIDEST * usual) & (away <= _FARTHEST_AWAY * usual) if usual > 0 else widths == widths.min()
    return float(ends[0, kept].min()), float(ends[1, kept].max())


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
