"""Sections of comparisons, stored with the commit and the load of the machine, and the page that is made of them."""

import json
import math
import os
import subprocess
import time
from pathlib import Path

import numpy as np

from bench.pages.tables import digits, paragraph, table
from bench.peers.comparison import rows
from bench.peers.jobs import SECTIONS

LIMIT = 1.05
HEADINGS = ["job", "records", "n", "guarantee", "dpfast", "peer", "its error", "error ratio", "time ratio"]


def measure(section, environments, *, quick, seconds, only=None):
    """Run the jobs of a section, print their rows, and return them as plain objects."""
    found, loads = [], []
    for job in section.jobs():
        if only is not None and not job.name.startswith(only):
            continue
        for row in rows(job, environments, quick=quick, seconds=seconds):
            found.append(row.stored())
            print(" | ".join(cells(found[-1])), flush=True)
        loads.append(os.getloadavg()[0])
    load = float(np.mean(loads)) if loads else 0.0
    return {"rows": found, "commit": commit(), "load": load, "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())}


def commit():
    """The commit of the code that runs, with a plus sign if tracked files differ from it."""
    options = {"capture_output": True, "text": True, "check": False, "cwd": Path(__file__).parent}
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], **options).stdout.strip()
    changed = subprocess.run(["git", "status", "--porcelain", "-uno", "--", "../../dpfast", "../../src"], **options)
    return head + ("+" if changed.stdout.strip() else "")


def store(path, section):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(section, indent=1), encoding="utf-8")


def quotient(value, error):
    """A ratio with its standard error in units of the last digit."""
    if math.isnan(value):
        return "-"
    places = 3 if value < 0.1 else 2
    return f"{value:.{places}f}({error * 10**places:.0f})"


def cells(row):
    """The cells of one row of the tables."""
    size = "-" if row["n"] is None else f"{row['n']:,}"
    sizes = digits(row["ours"]), "-" if math.isnan(row["theirs"]) else digits(row["theirs"])
    found = quotient(row["ratio"], row["error"])
    times = "-" if math.isnan(row["times"]) else digits(row["times"])
    marked = f"**{found}**" if row["ratio"] > LIMIT else found
    return row["name"], row["records"], size, row["guarantee"], sizes[0], row["peer"], sizes[1], marked, times


def _text(name, stored):
    """The heading, the paragraphs and the table of one section."""
    section, rows = SECTIONS[name], stored["rows"]
    run = f"""Commit {stored["commit"]}, {stored["date"]}, load of the machine {stored["load"]:.1f}."""
    reasons = sorted({(row["name"], row["peer"], row["why"]) for row in rows if row["why"]})
    lines = [f"## {section.TITLE}", "", paragraph(section.TEXT), paragraph(run), table(HEADINGS, map(cells, rows))]
    if reasons:
        lines += ["Ratios above 1.05:", ""]
        lines += [paragraph(f"{job}, {peer}: {why}", "- ") for job, peer, why in reasons]
    return "\n".join(lines)


def unexplained(rows):
    """Rows in which dpfast has more error than a peer, without a sentence that says why."""
    return [row for row in rows if row["ratio"] > LIMIT + 2 * row["error"] and not row["why"]]


def write(path, folder):
    """The page from the stored sections."""
    sections = {name: json.loads((folder / f"{name}.json").read_text()) for name in SECTIONS
                if (folder / f"{name}.json").exists()}  # fmt: skip
    found = [row for stored in sections.values() for row in stored["rows"]]
    measured = [row for row in found if not math.isnan(row["ratio"])]
    versions = sorted({f"{row['peer'].split(',')[0]} {row['version']}" for row in measured})
    above = [row for row in measured if row["ratio"] > LIMIT]
    text = f"""{len(measured)} comparisons of dpfast with {", ".join(versions)}, each in an environment of its own
        (bench/peers/pins), at the same guarantee and neighbours and with the same public numbers: bounds, and n for one
        replaced record. "Error ratio" is the error of dpfast divided by that of the peer: below 1 dpfast has less
        error. Both sides release the same data sets; the standard error is in units of the last digit, in brackets.
        {len(above)} of the ratios are above {LIMIT}, in bold, each with a reason below its table. "Time ratio" is the
        time of one call of dpfast, as a user would write it, divided by that of the peer, both medians in one run of a
        machine that does other work too: only its order of magnitude counts."""
    guarantee = """Guarantees are taken as each library states them. dpfast's hold for the program. diffprivlib's and
        python-dp's noise is in floating point, and diffprivlib's quantiles, regressions and components have no proof
        for it; OpenDP's rows of second moments, components and lines use its "idealized numerics"."""
    body = [_text(name, stored) for name, stored in sections.items()]
    head = "# Other libraries\n\nMade by `python -m bench.peers`; do not edit it by hand.\n"
    path.write_text("\n".join([head, paragraph(text), paragraph(guarantee), *body]), encoding="utf-8")
    for row in unexplained(measured):
        print(f"UNEXPLAINED: {' | '.join(cells(row))}")
