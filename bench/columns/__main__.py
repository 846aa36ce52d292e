"""Write docs/results/columns.md: ``python -m bench.columns [--most N] [--only CASE] [--save FILE]``."""

import argparse
import json
from pathlib import Path

from bench.columns import runs, tally
from bench.columns.cases import CASES
from bench.pages import RESULTS


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.columns", description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=6000, help="calls of each case (6000, about one for each column)")
    parser.add_argument("--all", action="store_true", help="every case for every column, type and epsilon: hours")
    parser.add_argument("--only", action="append", choices=CASES, help="a case, printed; may be repeated")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the counts as JSON, such as before.json")
    parser.add_argument("--examples", type=int, default=3, help="absurd calls of each case to print")
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="FOLDER")
    options = parser.parse_args(arguments)
    shown = dict.fromkeys(CASES, 0)

    def outcomes():
        for call in runs.calls(None if options.all else options.most, options.only):
            outcome = call.run()
            if outcome is None:
                continue
            if outcome.kind in (runs.ABSURD, runs.BROKEN) and shown[call.case.name] < options.examples:
                shown[call.case.name] += 1
                print(outcome, flush=True)
            yield outcome

    counted = tally.count(outcomes())
    if options.save:
        options.save.write_text(json.dumps(counted) + "\n", encoding="utf-8")
    text = tally.page(counted)
    print(text)
    if not options.only:
        options.output.mkdir(parents=True, exist_ok=True)
        (options.output / "columns.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
