"""Pages of docs/results, made of sections, and the command line that writes them.

A section is a function ``section(quick) -> str`` of Markdown that starts with its own heading; a figure is a function
``figure(quick, path)`` that draws an SVG.
"""

import argparse
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"


def pyplot(size=8):
    """Matplotlib's pyplot with a given font size, set up so that a drawing depends on its numbers only."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"svg.hashsalt": "dpfast", "svg.fonttype": "none", "font.size": size})
    return pyplot


def save(figure, path):
    """Save the drawing as an SVG with the same bytes in every run."""
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


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
    head = f"# {title}\n\nMade by `python -m bench.{name}`; do not edit it by hand.\n"
    first, *rest = texts.values()
    (folder / f"{name}.md").write_text("\n".join([head, first, f"![{caption}]({name}.svg)\n", *rest]), encoding="utf-8")
