"""Pages of docs/results, made of sections, and the command line that writes them.

A section is a function ``section(quick) -> str`` of Markdown that starts with its own heading; a figure is a function
``figure(quick, path)`` that draws an SVG.
"""

import argparse
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
STYLE = RESULTS.parent / "gallery" / "dpfast.mplstyle"
MARKERS = "os^DvPX*"


def pyplot():
    """Matplotlib's pyplot in the style of the gallery, set up so that a drawing depends on its numbers only."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    pyplot.style.use(STYLE)
    return pyplot


def draw(axes, curves, **looks):
    """Draw curves, (x, y) by name, on logarithmic axes. Each has its own marker, and the later ones are thinner and
    smaller, so that curves that coincide all show. looks: options of some of the curves, by name.
    """
    for place, (marker, (name, points)) in enumerate(zip(MARKERS, curves.items(), strict=False)):
        size = {"markersize": 8.5 - 0.8 * place, "linewidth": 2.8 - 0.25 * place, "fillstyle": "none"}
        axes.loglog(*points, label=name, **{"marker": marker, **size, **looks.get(name, {})})


def ticks(axis, places):
    """Show these places, and no others, on a logarithmic axis."""
    axis.set_ticks(places, [f"{place:,.10g}" for place in places])
    axis.set_ticks([], minor=True)


def legend(figure, axes, ncols=2):
    """Put a legend of the curves of `axes` below the figure, where it covers nothing."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=ncols)


def save(figure, path):
    """Save the drawing as an SVG with the same bytes in every run."""
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def colophon(command):
    """Return the last line of a page that `python -m <command>` writes."""
    return f"Made by `python -m {command}`, which overwrites this page.\n"


def write(name, title, sections, *, figure, caption, arguments=None):
    """The command ``python -m bench.<name>``: write <name>.md, with the figure after the first section, and <name>.svg.

    ``--quick`` uses small sizes and prints the sections, as a smoke test; ``--only`` prints one section; ``--output``
    writes to another folder.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m bench.{name}", description=f"Writes docs/results/{name}.md: {title}."
    )
    parser.add_argument(
        "--only", action="append", choices=[*sections, "figure"], help="print a section; may be repeated"
    )
    parser.add_argument("--quick", action="store_true", help="small and few data sets: a smoke test, printed")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="write to this folder instead of docs/results")
    options = parser.parse_args(arguments)

    texts = {}
    for key, section in sections.items():
        if key in (options.only or sections):
            texts[key] = section(options.quick)
            print(texts[key], flush=True)
    folder = options.output or (None if options.quick or options.only else RESULTS)
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    figure(options.quick, folder / f"{name}.svg")
    first, *rest = texts.values()
    parts = [f"# {title}\n", first, f"![{caption}]({name}.svg)\n", *rest, colophon(f"bench.{name}")]
    (folder / f"{name}.md").write_text("\n".join(parts), encoding="utf-8")
