"""The command ``python -m bench.papers``: write docs/papers/<paper>.md and its figures.

``--only PAPER`` writes one page, ``--only PAPER/ITEM`` prints one item; both may be repeated. ``--quick`` uses small
sizes and prints, as a smoke test; ``--output`` writes to another folder; ``--data`` is the folder of the data files
(``python -m bench.papers.data``), made-up data are used instead of missing ones.
"""

import argparse
import os
from pathlib import Path

from bench.papers import PAGES, Item, Paper, page, section
from bench.papers.data import VARIABLE
from bench.papers.registry import PAPERS


def main(arguments: list[str] | None = None) -> None:
    choices = [name for paper in PAPERS for name in (paper.key, *(f"{paper.key}/{item.key}" for item in paper.items))]
    parser = argparse.ArgumentParser(prog="python -m bench.papers", description="Writes docs/papers.")
    parser.add_argument("--only", action="append", choices=choices, metavar="PAPER[/ITEM]", help=", ".join(choices))
    parser.add_argument("--quick", action="store_true", help="small and few data sets: a smoke test, printed")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="write to this folder instead of docs/papers")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help=f"data files; default: ${VARIABLE}")
    options = parser.parse_args(arguments)
    if options.data:
        os.environ[VARIABLE] = str(options.data)

    folder = options.output or (None if options.quick else PAGES)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    for paper in PAPERS:
        whole = not options.only or paper.key in options.only
        chosen = [item for item in paper.items if whole or f"{paper.key}/{item.key}" in options.only]
        results = {}
        for item in chosen:
            results[item.key] = item.compute(options.quick)
            print(section(paper, item, results[item.key], drawn=False), flush=True)
            _draw(paper, item, options.quick, folder)
        if folder and whole:
            (folder / f"{paper.key}.md").write_text(page(paper, results), encoding="utf-8")


def _draw(paper: Paper, item: Item, quick: bool, folder: Path | None) -> None:
    if folder and item.draw:
        item.draw(quick, folder / f"{paper.key}-{item.key}.svg")


if __name__ == "__main__":
    main()
