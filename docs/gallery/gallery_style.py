"""The style of the gallery's pictures. Keep this file and dpfast.mplstyle next to an example that you run."""

from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
GREY = "#595959"
NEIGHBORS = {
    "replace-one": "one record replaced",
    "add-remove": "one record added or removed",
    "local": "any change of one person's record, without a trusted server",
}


def use():
    """Set the style. sphinx-gallery resets it after each example."""
    plt.style.use(Path(__file__).with_name("dpfast.mplstyle"))


def guarantee(privacy):
    """Return the guarantee in one line."""
    delta = f", delta = {float(privacy.delta):g}" if privacy.delta else ""
    return f"{privacy.unit} = {float(privacy.amount):g}{delta}, {NEIGHBORS[privacy.neighbors]}"


def heading(ax, title, note):
    """Set the title, with a note below it, usually the guarantee."""
    ax.set_title(title, pad=18)
    ax.annotate(note, (0, 1), (0, 5), xycoords="axes fraction", textcoords="offset points", color=GREY, size="small")


def legend(figure, ax, ncols=2):
    """Put a legend of the lines of `ax` below the figure, where it covers nothing."""
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower left", ncols=ncols)


def interval(law, mass=0.9):
    """Return the central interval of an exact law that holds at least this mass, in data units."""
    return [law.value(quantile(law, q)) for q in ((1 - mass) / 2, (1 + mass) / 2)]


def quantile(law, q):
    """Return the least code k with P(K <= k) >= q."""
    low, high = law.support
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if law.cdf(middle) >= q else (middle + 1, high)
    return low


def on_axis(axis, pattern="{x:,.0f}"):
    """Show the ticks of an axis in full, for example as 40,000 and not as 4e4."""
    if axis.get_scale() == "linear":
        axis.set_major_locator(plt.MaxNLocator(6))
    axis.set_major_formatter(pattern)
    axis.set_minor_formatter(plt.NullFormatter())


def log_ticks(axis, places):
    """Show these places, and no others, on a logarithmic axis."""
    axis.set_ticks(places, [f"{place:,.10g}" for place in places])
    axis.set_ticks([], minor=True)


def svg_scraper(*block, **options):
    """Save the figures of an example as SVG, for sphinx-gallery."""
    from sphinx_gallery.scrapers import matplotlib_scraper

    return matplotlib_scraper(*block, format="svg", metadata={"Date": None, "Creator": None}, **options)


def spread(releases, mass=0.9):
    """Return the central interval of each column of releases that holds this share of the rows."""
    return np.quantile(releases, [(1 - mass) / 2, (1 + mass) / 2], axis=0)
