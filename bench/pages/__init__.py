"""Pages of docs/results, made of sections, for the command `bench.pages`.

A section is a function ``section(quick) -> str`` of Markdown that starts with its own heading; a figure is a function
``figure(quick, path)`` that draws an SVG.
"""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
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


def commit():
    """The commit of the code that runs, with a plus sign if tracked files differ from it."""
    options = {"capture_output": True, "text": True, "check": False, "cwd": Path(__file__).parent}
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], **options).stdout.strip()
    changed = subprocess.run(["git", "status", "--porcelain", "-uno", "--", "../../dpfast", "../../src"], **options)
    return head + ("+" if changed.stdout.strip() else "")


@dataclass(frozen=True)
class Page:
    """A page of docs/results, its sections by name, and the drawing after the first of them."""

    title: str
    sections: dict[str, Callable[[bool], str]]
    figure: Callable[[bool, Path], None]
    caption: str


def write(name, page, options):
    """Write the page <name>.md and its figure <name>.svg, or print the sections that `options` say."""
    texts = {}
    for key, section in page.sections.items():
        if key in (options.only or page.sections):
            texts[key] = section(options.quick)
            print(texts[key], flush=True)
    folder = options.output or (None if options.quick or options.only else RESULTS)
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    page.figure(options.quick, folder / f"{name}.svg")
    first, *rest = texts.values()
    picture = f"![{page.caption}]({name}.svg)\n"
    parts = [f"# {page.title}\n", first, picture, *rest, colophon(f"bench.pages {name}")]
    (folder / f"{name}.md").write_text("\n".join(parts), encoding="utf-8")
