"""`python -m assurance.endurance --help`."""

import argparse
import resource
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from assurance.endurance import flat
from assurance.endurance.check import Check, Violation, found
from assurance.endurance.disk import Disk
from assurance.endurance.drawing import MEDIAN, Forks, Releases, Threads
from assurance.endurance.ledgers import Ledgers
from assurance.endurance.streams import Streams
from tests.releases import X

CHECKS: tuple[type[Check], ...] = (Releases, Threads, Forks, Ledgers, Streams, Disk)
WARM = 0.2  # the part of the time before the samples of memory that count
MOST_VIOLATIONS = 20


def processor_seconds() -> float:
    """Of this process and of its children that have ended."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


# ---- controls ----


def leaks(iterations: int = 12_000) -> dict[str, Callable[[], bool]]:
    """Controls of the samples: 1 kB, a file or a thread that stays at each iteration must be found, and only those."""

    def samples_of(keep: Callable[[int], object]) -> list[flat.Sample]:
        kept = []
        every = iterations // 40
        samples = []
        for i in range(iterations):
            MEDIAN(X)
            kept.append(keep(i))
            if i % every == 0 and i > iterations // 5:
                samples.append(flat.sample())
        for item in kept:
            if hasattr(item, "close"):
                item.close()
            if hasattr(item, "set"):
                item.set()
        return samples

    def waiting(i: int) -> threading.Event | None:
        if i % 1000:
            return None
        event = threading.Event()
        threading.Thread(target=event.wait, daemon=True).start()
        return event

    return {
        "no fault: found nothing": lambda: not flat.grown(samples_of(lambda i: None)),
        "1 kB an iteration": lambda: "resident bytes" in flat.grown(samples_of(lambda i: bytes(1024))),
        "a file": lambda: (
            "file descriptors" in flat.grown(samples_of(lambda i: open("/dev/null") if i % 1000 == 0 else None))
        ),
        "a thread": lambda: "threads" in flat.grown(samples_of(waiting)),
    }


def controls(folder: Path, seed: int) -> bool:
    """Whether each check finds each of its faults; prints one line for each."""
    runs: list[tuple[str, Callable[[], bool]]] = []
    for kind in CHECKS:
        name = kind.__name__.lower()
        runs.append(
            (f"{name}: no fault: found nothing", lambda kind=kind, name=name: not found(kind(folder / name, seed)))
        )
        for i, fault in enumerate(kind.faults):
            made = lambda kind=kind, place=folder / f"{name}-{i}", fault=fault: kind(place, seed, fault)  # noqa: E731
            runs.append((f"{name}: {fault}", lambda made=made: found(made())))
    runs += [(f"flat: {name}", run) for name, run in leaks().items()]
    good = True
    for name, run in runs:
        started = time.monotonic()
        holds = run()
        good &= holds
        print(f"control  {'holds' if holds else 'FAILS'}  {name}  ({time.monotonic() - started:.1f} s)", flush=True)
    return good


# ---- the run ----


class Run:
    """Steps of all checks in turn until the time is over."""

    def __init__(self, checks: list[Check], minutes: float, pace: float | None) -> None:
        self.checks, self.seconds, self.pace = checks, 60 * minutes, pace
        self.samples: list[flat.Sample] = []
        self.violations: list[str] = []
        self._begun, self._spent = time.monotonic(), processor_seconds()
        self._minute, self._sampled = 1, 0.0

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._begun

    @property
    def busy(self) -> float:
        """The processor seconds of the run."""
        return processor_seconds() - self._spent

    def go(self) -> None:
        while self.elapsed < self.seconds and len(self.violations) < MOST_VIOLATIONS:
            for check in self.checks:
                self._step(check)
                if self.pace:
                    time.sleep(max(0.0, self.busy / self.pace - self.elapsed))
            if self.elapsed - self._sampled > min(5.0, self.seconds / 200):
                self._sampled = self.elapsed
                self.samples.append(flat.sample())
            if self.elapsed > 60 * self._minute:
                self._minute = int(self.elapsed / 60) + 1
                self._progress()
        self.violations += [f"memory: {name} grew beyond the bound" for name in sorted(flat.grown(self.warm))]

    @property
    def warm(self) -> list[flat.Sample]:
        """The samples after the warm-up."""
        return self.samples[int(WARM * len(self.samples)) :]

    def _step(self, check: Check) -> None:
        check.counts["steps"] += 1
        try:
            check.step()
        except Exception as error:
            if not isinstance(error, Violation):
                traceback.print_exc()
            self.violations.append(f"{type(check).__name__.lower()}: {error}")
            print(f"VIOLATION  {self.violations[-1]}", flush=True)

    def _progress(self) -> None:
        done = ", ".join(f"{type(check).__name__.lower()} {check.counts['steps']}" for check in self.checks)
        now = flat.sample()
        print(
            f"{self.elapsed / 60:5.1f} min  steps: {done}; {now.resident / 2**20:.1f} MiB, {now.blocks} blocks, "
            f"{now.files} files, {now.threads} threads; {100 * self.busy / self.elapsed:.0f} % of a core; "
            f"{len(self.violations)} violations",
            flush=True,
        )

    def table(self) -> None:
        """Print what was done."""
        print(f"\n{self.elapsed / 60:.1f} minutes, {self.busy:.0f} s of processor time")
        for check in self.checks:
            print(
                f"{type(check).__name__.lower():<10} {', '.join(f'{n:,} {what}' for what, n in check.counts.items())}"
            )
        for name, amount in flat.growth(self.warm).items() if self.warm else ():
            print(f"{'flat':<10} {name}: {amount:+,.0f} (bound {flat.BOUNDS[name]:,})")
        for violation in self.violations:
            print(f"VIOLATION  {violation}")
        print(f"{len(self.violations)} violations", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m assurance.endurance", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--pace", type=float, help="the largest part of one core to use, such as 0.4")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-controls", action="store_true")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="endurance-"))
    checks: list[Check] = []
    try:
        if not given.no_controls and not controls(folder, given.seed):
            return 1
        checks += [kind(folder / kind.__name__, given.seed) for kind in CHECKS]
        run = Run(checks, given.minutes, given.pace)
        run.go()
        run.table()
        return 1 if run.violations else 0
    finally:
        for check in checks:
            check.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
