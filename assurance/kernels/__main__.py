"""Check the integer arithmetic of the kernels, each harness with its positive control. docs/assurance/kernels.md"""

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from assurance.kernels import checker
from assurance.kernels.case import Case
from assurance.kernels.cases import all_cases

_MISSING = "CBMC was not found: install Debian's package cbmc, or run `.ci/debian trixie build/trixie cbmc`."


def check(cbmc: str, case: Case, options: argparse.Namespace) -> tuple[bool, float, str]:
    """Whether the harness holds and its control is rejected, the seconds, and a row of the table."""
    found = checker.run(cbmc, case, options.deep, False, options.limit, options.solver)
    control = checker.run(cbmc, case, options.deep, True, options.limit, options.solver)
    verdict = "holds" if found.holds else found.error or f"FAILS: {'; '.join(found.failed)}"
    rejected = "NOT REJECTED" if control.holds else control.error or control.failed[0]
    seconds = found.seconds + control.seconds
    change = f"{case.control.header}: {' '.join(case.control.old.split())} -> {' '.join(case.control.new.split())}"
    row = f"{case.name} | {' '.join(case.covers)} | {case.depth} | {found.properties} | {seconds:.1f} | {verdict}"
    good = found.holds and not control.holds and not control.error
    return good, seconds, f"{row} | {change} | {rejected}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m assurance.kernels", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help="one harness, or all of one C file")
    parser.add_argument("--cbmc", metavar="PATH", help="the program, else that of the search path or of build/trixie")
    parser.add_argument("--solver", metavar="PATH", help="a SAT solver that reads DIMACS, instead of CBMC's own")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--deep", action="store_true", help="larger inputs, which take long")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="of a processor, for each run of CBMC")
    options = parser.parse_args()
    options.limit = options.limit or (3600 if options.deep else 120)

    cbmc = checker.find(options.cbmc)
    if cbmc is None:
        print(_MISSING)
        return 2
    wanted = set(options.only or ())
    cases = [case for case in all_cases() if not wanted or {case.name, case.source.stem} & wanted]
    if not cases:
        print(f"no harness is named {', '.join(sorted(wanted))}")
        return 2
    print("harness | functions | depth | properties | seconds | verdict | control | rejected by", flush=True)
    bad, total = [], 0.0
    with ThreadPoolExecutor(options.jobs) as pool:
        for case, (good, seconds, row) in zip(cases, pool.map(lambda c: check(cbmc, c, options), cases), strict=True):
            print(row, flush=True)
            total += seconds
            if not good:
                bad.append(case.name)
    print(f"{len(cases)} harnesses, {total:.0f} s of CPU; {', '.join(bad) + ' failed' if bad else 'all hold'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
