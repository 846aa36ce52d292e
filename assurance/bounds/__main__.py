"""The command: python -m assurance.bounds [--gappa PATH] [--only NAME] [--bounds N] [--record]."""

import argparse
import sys
import time

from assurance.bounds import claims, mutations, record
from assurance.bounds.gappa import Script, program
from assurance.bounds.proofs import HEADERS, Proof, log2_of
from assurance.bounds.suite import OWNERS, PROOFS
from assurance.bounds.values import Library


def rejected(table):
    """Lines of the table of changes: how many of each kind, and what rejects them."""
    for name, row in table.items():
        kinds = sorted({kind for kind, _ in row})
        text = [f"{sum(n for (k, _), n in row.items() if k == kind)} {kind}" for kind in kinds]
        by = [f"{sum(n for (_, v), n in row.items() if v == found)} {found}" for found in ("exact", "bounds", "record")]
        missed = sum(n for (_, found), n in row.items() if not found)
        mark, rest = ("!", f", {missed} MISSED") if missed else (" ", "")
        yield f"{mark} {name:28} {', '.join(text):44} {', '.join(by)}{rest}"


def tightened(proof):
    """For each power of two that a header claims: the first smaller one, which the same steps reject."""
    for name, claim in claims.CLAIMS.items():
        stated = proof.claims[name]
        proved = [s.proved for s in proof.steps if s.function == claim.function and s.claimed == stated]
        if proved and stated.numerator == 1:
            power = stated
            while power >= max(proved):
                power /= 2
            yield f"{claim.function:28} 2^{log2_of(stated):g} holds, 2^{log2_of(power):g} is rejected"


def shown(step):
    """The two bounds of a step, in words."""
    if step.unit == "exceptions":
        return ("holds" if step.holds else "FAILS"), ""
    if step.unit.startswith("of "):
        return f"{float(step.proved):.3f}", f"{float(step.claimed):g}"
    return f"2^{log2_of(step.proved):.2f}", f"2^{log2_of(step.claimed):g}"


def table(steps):
    """Lines of the table: function, range, unit, claimed and proved bound, method, seconds."""
    for step in steps:
        proved, claimed = shown(step)
        mark = " " if step.holds else "!"
        unit = "" if step.unit == "exceptions" else step.unit
        yield (
            f"{mark} {step.function:28} {step.range:58.58} {unit:18} {claimed:8} {proved:9} {step.method:30} "
            f"{step.seconds:6.2f}"
        )


def main():
    parser = argparse.ArgumentParser(prog="python -m assurance.bounds", description=__doc__)
    parser.add_argument("--gappa", help="the program gappa")
    parser.add_argument("--only", default="", help="only functions whose name contains this")
    parser.add_argument("--record", action="store_true", help="write the forms of the functions to the record")
    parser.add_argument("--bounds", type=int, metavar="N", help="prove the bounds of every N-th changed source, too")
    given = parser.parse_args()
    started = time.perf_counter()
    library = Library(*HEADERS)
    proof = Proof(library, claims.read(library), program(given.gappa))
    for name, prove in PROOFS.items():
        if given.only in name:
            before = len(proof.steps)
            prove(proof)
            print(*table(proof.steps[before:]), sep="\n", flush=True)
    failed = [step for step in proof.steps if not step.holds]
    if given.record and not failed:
        record.write(library)
    changed = record.changed(library)
    for name in changed:
        print(f"! {name} is not the function that was proved: check it, then run with --record")
    if not given.only:
        print("\nClaims made tighter", *tightened(proof), sep="\n")
        table_of = mutations.controls(library, OWNERS)
        print("\nChanged sources, and what rejects them", *rejected(table_of), sep="\n")
        failed += [name for name, row in table_of.items() if any(not found for _, found in row)]
    if given.bounds:
        some = mutations.controls(library, OWNERS, program(given.gappa), given.bounds)
        print(f"\nEvery {given.bounds}-th of them, bounds proved again", *rejected(some), sep="\n")
    print(f"\n{len(proof.steps)} steps, {Script.runs} runs of Gappa, {time.perf_counter() - started:.0f} s")
    return bool(failed or changed)


if __name__ == "__main__":
    sys.exit(main())
