"""The page of run times, from the rows of a whole run."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.compare.clock import Row

_IS_TIME = re.compile(r"[0-9.]+ (s|ms|us|ns)")
INTRODUCTION = """# Run time

Run time of each job next to the call that it replaces, or next to what it must not exceed, in one process:
`python -m bench.compare --page docs/results/run_time.md` made this page. One thread, float64 and the least time of
interleaved turns, unless a row says otherwise. *Ratio* is dpfast over the other, *aim* the greatest ratio that is
meant; a ratio above its aim is in bold. The machine: {machine}.

Processors differ. Between an AMD EPYC (Zen 5) and the Intel Xeon machines that were seen, ratios of the same job
differed by up to 3, most where the speed of memory decides: a mean of 1e7 records took 0.57 and 1.9 of `np.mean`.
What a job cannot go below, by counting bytes and operations, is on the page of [speed](../assurance/speed.md), also
where an aim is missed.
"""


def page(machine: Mapping[str, Any], groups: Mapping[str, tuple[Callable[..., Any], Sequence[Row]]]) -> str:
    """Return the page: for each group by name what it says about itself, and a table of its rows."""
    known = ", ".join(f"{name} {value}" for name, value in machine.items() if value is not None and name != "load")
    parts = [INTRODUCTION.format(machine=known)]
    for name, (made, rows) in groups.items():
        title = name.replace("-", " ").capitalize()
        parts.append(f"## {title}\n\n{_sentence(made)}\n\n{_table(rows)}\n")
    return "\n".join(parts)


def _sentence(made: Callable[..., Any]) -> str:
    return " ".join((made.__doc__ or "").split("\n\n")[0].split())


def _table(rows: Sequence[Row]) -> str:
    with_peers = any(row.peers for row in rows)
    headings = ["job", "dpfast", "next to", "ratio", "aim", *(["other libraries"] if with_peers else [])]
    lines = [headings, ["---"] * len(headings)]
    before = None
    for row in rows:
        ratio = f"{row.ratio:.2f}"
        cells = [
            "" if row.job == before else row.job,
            "" if row.job == before else shown(row.dpfast, row.unit),
            row.floor_name if _IS_TIME.fullmatch(row.floor_name) else f"{row.floor_name}, {shown(row.floor, row.unit)}",
            f"**{ratio}**" if row.ok is False else ratio,
            "" if row.limit is None else f"{row.limit:.3g}",
        ]
        if with_peers:
            cells.append(peers_of(row))
        lines.append(cells)
        before = row.job
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def peers_of(row: Row) -> str:
    """Return the times of other libraries."""
    return "; ".join(f"{name} {shown(value, row.unit)}" for name, value in row.peers.items())


def shown(value: float, unit: str) -> str:
    """A time or a size with its unit."""
    if unit == "B":
        return f"{value / 1e6:.3g} MB"
    for factor, name in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if value * factor >= 1:
            return f"{value * factor:.3g} {name}"
    return f"{value * 1e9:.3g} ns"
