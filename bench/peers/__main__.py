"""Errors and times relative to other libraries: ``python -m bench.peers`` writes docs/results/peers.md.

Sections are stored in the folder `--results`, and the page is made of all that are there, so that `--only` renews one.
With `--quick` nothing is written; without environments dpfast runs alone.
"""

import argparse
from pathlib import Path

from bench.pages import RESULTS
from bench.peers import page
from bench.peers.environments import Environments
from bench.peers.jobs import SECTIONS

STORED = Path("build") / "peers"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description="Errors and times relative to peers.")
    parser.add_argument("--environments", type=Path, metavar="FOLDER", help="one virtual environment for each peer")
    parser.add_argument("--create", action="store_true", help="make missing environments with pip")
    parser.add_argument("--only", action="append", choices=SECTIONS, help="a section to run; may be repeated")
    parser.add_argument("--job", help="print the jobs whose name starts with this, and store nothing")
    parser.add_argument("--seconds", type=float, default=4.0, help="at most, for each side of a comparison")
    parser.add_argument("--quick", action="store_true", help="few data sets and releases: a smoke test, printed")
    parser.add_argument("--results", type=Path, default=STORED, metavar="FOLDER", help="where sections are stored")
    parser.add_argument("--output", type=Path, metavar="FOLDER", default=RESULTS, help="the folder of the page")
    options = parser.parse_args(arguments)

    environments = Environments(options.environments)
    if options.create:
        environments.create()
    for name in environments.absent():
        print(f"{name} is not installed: its rows are left out", flush=True)
    chosen = options.only or list(SECTIONS)
    for name in chosen:
        run = {"quick": options.quick, "seconds": options.seconds, "only": options.job}
        with environments:
            section = page.measure(SECTIONS[name], environments, **run)
        if not (options.quick or options.job):
            page.store(options.results / f"{name}.json", section)
    if not (options.quick or options.job):
        page.write(options.output / "peers.md", options.results)


if __name__ == "__main__":
    main()
