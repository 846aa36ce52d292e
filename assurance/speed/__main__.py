"""The instructions of small calls and of kernels: a nonzero status if one has grown by more than 5 %.

python -m assurance.speed                     # compare with the record; needs valgrind and gcc; about a minute
python -m assurance.speed --record            # write the record, after a change that is meant
python -m assurance.speed --against REVISION  # compare with a build of another revision, about two minutes

In another environment than that of the record (compiler, Python, libraries), counts are compared with a build of the
revision that wrote the record.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

from assurance.speed import counts
from assurance.speed.counts import FOLDER, RECORD, ROOT, Counts
from assurance.speed.worker import CONTROLS

LIMIT = 1.05
HOW = "`python -m assurance.speed --record` in this environment records them"


def judged(found: Counts, before: Counts) -> list[str]:
    """Print the table of counts; the failures."""
    failures = []
    print(f"{'instructions':48} {'before':>12} {'now':>12}  ratio")
    for name, count in found.items():
        case = CONTROLS.get(name, name)
        if case not in before:
            print(f"{name:48} {'-':>12} {count:12,}")
            failures.append(f"{name}: no count before; {HOW}")
            continue
        ratio = count / before[case]
        print(f"{name:48} {before[case]:12,} {count:12,}  {ratio:.3f}")
        if name in CONTROLS:
            if count / min(found[case], before[case]) <= LIMIT:
                failures.append(f"{name}: it is slower and was not rejected")
        elif ratio > LIMIT:
            failures.append(f"{name}: {count:,} instructions, {ratio - 1:+.1%}; the limit is {LIMIT - 1:+.0%}")
    missing = sorted(before.keys() - found.keys())
    failures += [f"{name}: counted before, but not now; {HOW}" for name in missing]
    faster = [name for name, count in found.items() if name not in CONTROLS and count * LIMIT < before.get(name, 0)]
    if faster:
        print(f"Faster by more than 5 %: {', '.join(faster)}. Record them, so that the gain is guarded.")
    return failures


def tree_of(revision: str) -> Path:
    """The sources of a revision, with its kernels built."""
    tree = FOLDER / "before"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", revision], check=True, cwd=ROOT, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(tree)], check=True, input=archive)
    build = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace", "--parallel", "2"]
    subprocess.run(build, check=True, cwd=tree, stdout=subprocess.DEVNULL)
    return tree


def recorded_at() -> str | None:
    """The revision that wrote the record; None outside a clone of the repository, or if it is not committed."""
    log = ["git", "log", "-1", "--format=%H", "--", str(RECORD)]
    try:
        return subprocess.run(log, check=True, cwd=ROOT, capture_output=True, text=True).stdout.strip() or None
    except (OSError, subprocess.CalledProcessError):
        return None


def compared(revision: str) -> int:
    """Compare with a build of a revision, by the same compiler for the same Python."""
    print(f"Compared with a build of revision {revision}.")
    before = counts.counted(tree_of(revision))
    return reported(judged(counts.counted(), {name: n for name, n in before.items() if name not in CONTROLS}))


def reported(failures: list[str]) -> int:
    for failure in failures:
        print(f"FAILED: {failure}")
    return bool(failures)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m assurance.speed", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--record", action="store_true", help="write the counts of this environment")
    parser.add_argument("--against", metavar="REVISION", help="compare with a build of this revision of git")
    options = parser.parse_args(arguments)
    if not (shutil.which("valgrind") and shutil.which("gcc")):
        print("SKIPPED: counts of instructions need valgrind (Debian: apt-get install valgrind) and gcc")
        return 0
    if options.against:
        return compared(options.against)
    here = counts.environment()
    if options.record:
        found = {name: count for name, count in counts.counted().items() if name not in CONTROLS}
        RECORD.write_text(json.dumps({"environment": here, "counts": found}, indent=1) + "\n")
        print(f"Recorded {len(found)} counts in {RECORD.relative_to(ROOT)}.")
        return 0
    record = json.loads(RECORD.read_text())
    there = record["environment"]
    others = [f"{name} {here.get(name)} instead of {old}" for name, old in there.items() if here.get(name) != old]
    if not others:
        return reported(judged(counts.counted(), record["counts"]))
    print(f"The counts were recorded in another environment: {'; '.join(others)}. Its counts do not apply here; {HOW}.")
    revision = recorded_at()
    if revision is None:
        print("SKIPPED: the revision that wrote the record is not known here, so that there is nothing to compare with")
        return 0
    return compared(revision)


if __name__ == "__main__":
    sys.exit(main())
