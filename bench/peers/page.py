"""Sections of comparisons, stored with the commit and the load of the machine, and the page that is made of them."""

import json
import math
import os
import time

import numpy as np

from bench.pages import colophon, commit
from bench.pages.tables import digits, paragraph, table
from bench.peers.comparison import quotient, rows
from bench.peers.jobs import SECTIONS

LIMIT = 1.05
HEADINGS = ["job", "records", "n", "guarantee", "dpfast", "peer", "its error", "error ratio", "time ratio"]


def measure(section, environments, *, quick, seconds, only=None):
    """Run the jobs of a section, print their rows, and return them as plain objects."""
    found, lines, loads = [], [], [os.getloadavg()[0]]
    for line in section.lines(quick=quick, seconds=seconds) if hasattr(section, "lines") else ():
        lines.append(line)
        print(" | ".join(line), flush=True)
    for job in section.jobs() if hasattr(section, "jobs") else ():
        if only is not None and not job.name.startswith(only):
            continue
        for row in rows(job, environments, quick=quick, seconds=seconds):
            found.append(row.stored())
            print(" | ".join(cells(found[-1])), flush=True)
        loads.append(os.getloadavg()[0])
    date = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return {"rows": found, "lines": lines, "commit": commit(), "load": float(np.mean(loads)), "date": date}


def store(path, section):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(section, indent=1), encoding="utf-8")


def cells(row):
    """The cells of one row of the tables."""
    size = "-" if row["n"] is None else f"{row['n']:,}"
    sizes = digits(row["ours"]), "-" if math.isnan(row["theirs"]) else digits(row["theirs"])
    found = quotient(row["ratio"], row["error"])
    times = "-" if math.isnan(row["times"]) else digits(row["times"])
    marked = f"**{found}**" if row["ratio"] > LIMIT else found
    return row["name"], row["records"], size, row["guarantee"], sizes[0], row["peer"], sizes[1], marked, times


def reasons(section):
    """Why dpfast has more error, by what identifies a row."""
    jobs = section.jobs() if hasattr(section, "jobs") else ()
    return {(job.name, job.records, job.n, job.guarantee, peer.name): peer.why for job in jobs for peer in job.peers}


def _losses(section, rows):
    """Rows above the limit, each with its reason: that of the job, or that it may be chance; empty if there is none."""
    known = reasons(section)
    for row in rows:
        if row["ratio"] > LIMIT:
            key = tuple(row[name] for name in ("name", "records", "n", "guarantee", "peer"))
            chance = row["ratio"] <= LIMIT + 2 * row["error"]
            yield row, known.get(key) or (f"within two standard errors of {LIMIT}." if chance else "")


def _text(name, stored):
    """The heading, the paragraphs and the table of one section."""
    section, rows = SECTIONS[name], stored["rows"]
    run = f"""Commit {stored["commit"]}, {stored["date"]}, load of the machine {stored["load"]:.1f}."""
    lines = [f"## {section.TITLE}", "", paragraph(section.TEXT), paragraph(run)]
    if rows:
        lines.append(table(HEADINGS, map(cells, rows)))
    if stored["lines"]:
        lines.append(table(section.HEADINGS, stored["lines"]))
    told = {}
    for row, why in _losses(section, rows):
        told.setdefault(why, []).append(f"{row['name']}, {row['records']}, {row['guarantee']}, {row['peer']}")
    if told:
        lines += [f"Ratios above {LIMIT}:", ""]
        lines += [paragraph(f"{'; '.join(names)}: {why or 'not explained.'}", "- ") for why, names in told.items()]
    return "\n".join(lines)


def unexplained(sections):
    """Rows in which dpfast has more error than a peer, without a sentence that says why."""
    return [row for name, stored in sections.items() for row, why in _losses(SECTIONS[name], stored["rows"]) if not why]


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
    guarantee = """Guarantees are taken as each library states them. dpfast's hold for the program. diffprivlib computes
        means, quantiles, regressions and components in floating point; OpenDP's rows of second moments, components and
        lines need its feature "idealized-numerics". Algorithms of papers, which no library has, are on a page of
        [their own](published.md)."""
    body = [_text(name, stored) for name, stored in sections.items()]
    parts = ["# Other libraries\n", paragraph(text), paragraph(guarantee), *body, colophon("bench.peers")]
    path.write_text("\n".join(parts), encoding="utf-8")
    for row in unexplained(sections):
        print(f"UNEXPLAINED: {' | '.join(cells(row))}")
