"""The table of ratios: ``python -m bench.compare [--only GROUP] [--json FILE] [--page FILE] [--quick]``.

Each row runs a job of dpfast, its baseline (the floor, mostly the non-private NumPy call) and installed peers in one
process. dpfast and its floors take turns, so that other load on the machine affects them equally; the table shows the
least time of each and their ratio. Calls are as a user would write them: they allocate their results.
"""

import argparse
import itertools
import json
import os
import platform
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import version

import dpfast as dpf
from bench.compare import commands, memory, startup
from bench.compare.clock import Row, measure
from bench.compare.jobs import GROUPS
from bench.compare.page import page, peers_of, shown
from bench.peers import installed

PROCESSES = {
    "memory": memory.rows,
    "startup": startup.rows,
    "commands": commands.rows,
}  # groups of rows that take processes of their own
HEADINGS = ("job", "dpfast", "floor", "ratio", "target", "ok", "peers")
WIDTHS = (43, 9, 46, 5, 7, 3, 0)


def cells(row, *, quick):
    """The cells of a row; `quick` sizes are not compared with the targets."""
    ok = "-" if quick or row.ok is None else "yes" if row.ok else "NO"
    floor = f"{row.floor_name} {shown(row.floor, row.unit)}"
    limit = "" if row.limit is None else f"<= {row.limit:.2f}"
    return row.job, shown(row.dpfast, row.unit), floor, f"{row.ratio:.2f}", limit, ok, peers_of(row)


def line(texts):
    """A row of a Markdown table, its columns aligned."""
    return "| " + " | ".join(text.ljust(width) for text, width in zip(texts, WIDTHS, strict=True)) + " |"


def cpu():
    """The model of the processor."""
    try:
        with open("/proc/cpuinfo") as file:
            return next(text.split(":", 1)[1].strip() for text in file if text.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def environment():
    """Versions and hardware that the figures depend on."""
    return {
        "python": platform.python_version(),
        "dpfast": dpf.__version__,
        "numpy": version("numpy"),
        **installed.versions(),
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description="Ratios to NumPy and to peers.")
    parser.add_argument(
        "--only", action="append", choices=[*GROUPS, *PROCESSES], help="a group of rows; may be repeated"
    )
    parser.add_argument("--json", metavar="FILE", help="also write the results to this file")
    parser.add_argument("--page", metavar="FILE", help="also write them as a page of the documentation")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the sizes: a smoke test without verdicts")
    options = parser.parse_args(arguments)
    wanted = options.only or [*GROUPS, *PROCESSES]

    where = environment()
    print(", ".join(f"{name} {value}" for name, value in where.items() if value is not None))
    print("Least time of interleaved turns; ratio = dpfast / floor; 1 thread unless stated; float64 unless stated.")
    if options.quick:
        print("--quick: a hundredth of the sizes, so the targets are shown but not judged.")
    print()
    print(line(HEADINGS))
    print(line(["---"] * len(HEADINGS)))

    found: dict[str, list[Row]] = {}
    for name, row in _rows(wanted, quick=options.quick):
        found.setdefault(name, []).append(row)
        print(line(cells(row, quick=options.quick)), flush=True)
    if options.page:
        with open(options.page, "w") as file:
            file.write(page(where, {name: ((GROUPS | PROCESSES)[name], rows) for name, rows in found.items()}))
    if options.json:
        rows = itertools.chain.from_iterable(found.values())
        results = [asdict(row) | {"ratio": row.ratio, "ok": None if options.quick else row.ok} for row in rows]
        report = {"environment": where, "quick": options.quick, "statistic": "minimum", "rows": results}
        with open(options.json, "w") as file:
            json.dump(report, file, indent=1)


def _rows(wanted, *, quick) -> Iterator[tuple[str, Row]]:
    def size(n):
        return n // 100 if quick else n

    for name, jobs in GROUPS.items():
        if name in wanted:
            for job in jobs(size):
                yield from ((name, row) for row in measure(job, quick=quick))
    for name, rows in PROCESSES.items():
        if name in wanted:
            yield from ((name, row) for row in rows(size))


if __name__ == "__main__":
    main()
