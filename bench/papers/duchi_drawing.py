"""Lines and bands of the figures: Okabe and Ito's colours, a marker and a dash for each role."""

from bench import pages

# Colour, marker and dash by the role of a line.
LOOKS = {
    "published": ("#0072B2", "o", "-"),
    "Laplace": ("#D55E00", "^", "--"),
    "better": ("#009E73", "s", "-."),
    "no privacy": ("#000000", "x", ":"),
}


def panels(rows, columns, *, size, **options):
    """A figure of panels, and the panels in a row."""
    figure, axes = pages.pyplot().subplots(rows, columns, figsize=size, squeeze=False, **options)
    return figure, axes.ravel()


def line(ax, look, label, x, mean, low=None, high=None, **options):
    """A line of means, with a band from `low` to `high` if given."""
    color, marker, dash = LOOKS[look]
    ax.plot(x, mean, color=color, marker=marker, ls=dash, fillstyle="none", label=label, **options)
    if low is not None:
        ax.fill_between(x, low, high, color=color, alpha=0.2, lw=0)
