"""Command line: `python -m assurance.referees [--quick] [--only NAME] [--page]`."""

import argparse
import sys
import warnings
from pathlib import Path

from assurance.referees import reports

PAGE = Path("build/referees.md")
PARTS = {
    "samplers": reports.samplers,
    "reference": reports.reference,
    "mechanisms": reports.mechanisms,
    "functions": reports.functions,
    "replay": reports.replays,
    "bugs": reports.bugs,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m assurance.referees", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer draws, and one of eight mechanisms")
    parser.add_argument("--only", choices=PARTS, action="append", help="one part; may be repeated")
    parser.add_argument("--page", action="store_true", help=f"also write the tables to {PAGE}")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # of coarse grids, which are meant
    failures, text = [], ""
    for name in given.only or PARTS:
        for table in PARTS[name](quick=given.quick):
            print(table, flush=True)
            text += f"{table}\n"
            failures += [f"{table.title}: {failure}" for failure in table.failures]
    if given.page:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(text)
    for failure in failures:
        print("FAILED", failure)
    return bool(failures)


sys.exit(main())
