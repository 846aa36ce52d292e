"""Errors relative to published algorithms: ``python -m bench.published`` writes docs/results/published.md.

It takes about half an hour; ``--quick`` prints a smoke test and writes nothing. A new ``--seed`` draws other data sets.
"""

import argparse
import itertools
from pathlib import Path

from bench.pages import RESULTS, colophon, commit
from bench.pages.tables import digits, paragraph, table
from bench.published import counts, lines, means, quantiles, reports, spreads, tables
from bench.published.comparison import HEADINGS, LIMIT, rows

SECTIONS = {"quantiles": quantiles, "means": means, "spreads": spreads, "lines": lines, "counts": counts,
            "reports": reports, "tables": tables}  # fmt: skip


def section(module, seed, *, seconds, quick):
    """The text of a section, and its rows, printed as they are found."""
    found = []
    for case in module.cases():
        for row in rows(case, seed, seconds=seconds, quick=quick):
            found.append(row)
            print(" | ".join(row.cells(digits)), flush=True)
    parts = [f"## {module.TITLE}\n", paragraph(module.TEXT), table(HEADINGS, [row.cells(digits) for row in found])]
    lost = sorted((row for row in found if row.lost), key=lambda row: row.reason)
    if lost:
        parts += [f"Ratios above {LIMIT}:\n"]
    for reason, group in itertools.groupby(lost, key=lambda row: row.reason):
        names = "; ".join(f"{row.case.name}, {row.case.records}, {row.algorithm.name}" for row in group)
        parts.append(paragraph(f"{names}: {reason or 'not explained.'}", "- "))
    return "\n".join(parts), found


def page(sections, seed):
    found = [row for _, of in sections for row in of]
    above = sum(row.lost for row in found)
    text = f"""{len(found)} comparisons of dpfast with algorithms from papers, at the same guarantee and neighbours (one
        replaced record, n public, unless it says otherwise; reports of local privacy: any two records), with the same
        public numbers. "Error ratio" is the error of dpfast divided by that of the algorithm: below 1 dpfast has less
        error; its standard error is in units of the last digit, in brackets. {above} of the ratios are above {LIMIT},
        in bold, each with a reason below its table."""
    method = f"""The algorithms are prototypes in floating point, written from the papers (bench/published): their
        guarantees hold for real numbers, those of dpfast for the program. Where a paper states neighbours that differ
        in the presence of a record, the noise is scaled to the neighbours here. The populations were not used to tune
        dpfast, except that the choice of noise for a variance within private bounds was checked on them. Data sets of
        seed {seed}; commit {commit()}."""
    return "\n".join(
        ["# Published algorithms\n", paragraph(text), paragraph(method), *[text for text, _ in sections],
         colophon("bench.published")]
    )  # fmt: skip


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.published", description="Errors relative to papers.")
    parser.add_argument("--only", action="append", choices=SECTIONS, help="a section to print; may be repeated")
    parser.add_argument("--seconds", type=float, default=4.0, help="at most, for each side of a comparison")
    parser.add_argument("--seed", type=int, default=20_261_129, help="of the data sets")
    parser.add_argument("--quick", action="store_true", help="few data sets and releases: a smoke test, printed")
    parser.add_argument("--output", type=Path, metavar="FOLDER", default=RESULTS, help="the folder of the page")
    options = parser.parse_args(arguments)
    limits = {"seconds": options.seconds, "quick": options.quick}
    found = [section(SECTIONS[name], options.seed, **limits) for name in options.only or SECTIONS]
    for row in (row for _, of in found for row in of if row.lost and not row.reason):
        print(f"UNEXPLAINED: {' | '.join(row.cells(digits))}")
    if not (options.quick or options.only):
        (options.output / "published.md").write_text(page(found, options.seed), encoding="utf-8")


if __name__ == "__main__":
    main()
