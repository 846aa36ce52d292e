"""`python -m assurance.fuzz --help`."""

import argparse
import sys
import time

from assurance.fuzz.targets import TARGETS, Outcome, Target, fuzz, minimise, missing

LONGEST_CONTROL = 600.0  # seconds until a fault must be found, on a busy machine


def controls(targets: list[Target], seed: int) -> bool:
    """Whether the fuzzer of each target finds each of its faults; prints a line for each."""
    good = True
    for target in targets:
        for fault in target.faults:
            started = time.monotonic()
            outcome = fuzz(target, LONGEST_CONTROL, fault, seed)
            good &= outcome.found is not None
            what = "found" if outcome.found else "NOT FOUND"
            seconds = time.monotonic() - started
            print(
                f"control  {what}  {target.name}: {fault.name}  ({outcome.executions:,} runs, {seconds:.1f} s)",
                flush=True,
            )
    return good


def report(target: Target, outcome: Outcome, seconds: float) -> None:
    print(
        f"{target.name:<8} {target.language:<7} {outcome.executions:>10,} executions in {seconds:5.0f} s, "
        f"{outcome.edges:>6,} edges, {outcome.kept:>5,} inputs kept, {'FAULT' if outcome.found else 'nothing found'}",
        flush=True,
    )
    if outcome.found:
        _, _, raised = outcome.report.partition("Uncaught Python exception")
        print(f"{raised[:3000]}\n{outcome.report[-1500:]}\ninput that breaks a promise: {outcome.found}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m assurance.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="in all, with builds and controls")
    parser.add_argument("--target", choices=[target.name for target in TARGETS], action="append")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-controls", action="store_true")
    parser.add_argument("--minimise", action="store_true", help="then replace the corpora by smaller ones")
    given = parser.parse_args()
    if (sentence := missing()) is not None:
        print(sentence, file=sys.stderr)
        return 2
    started = time.monotonic()
    targets = [target for target in TARGETS if given.target is None or target.name in given.target]
    good = given.no_controls or controls(targets, given.seed)
    for i, target in enumerate(targets):
        begun = time.monotonic()
        left = 60 * given.minutes - (begun - started)
        outcome = fuzz(target, left / (len(targets) - i), None, given.seed)
        report(target, outcome, time.monotonic() - begun)
        good &= outcome.found is None
        if given.minimise:
            print(f"{target.name:<8} corpus of {minimise(target):,} bytes", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
