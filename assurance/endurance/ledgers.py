"""Budgets in files that several processes share, and that SIGKILL and loss of power interrupt."""

import fcntl
import json
import os
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import dpfast as dpf
from assurance.endurance.check import Check, Counters, Noted, Violation, ended, forked, killed
from tests.threads import in_threads

RECORDS = np.arange(20.0)
MEDIAN = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 100, step=1), epsilon=0.25)
BUDGETS: list[dict[str, Any]] = [
    {"epsilon": 25},
    {"epsilon": "50.1"},
    {"rho": "3.125"},
    {"epsilon": 10, "delta": "1e-6", "composition": "renyi"},
]
SPENT = {"epsilon": lambda epsilon: epsilon, "rho": lambda epsilon: epsilon**2 / 2}


def charges_in(path: Path) -> list[dict[str, Any]]:
    """The charges in a file, read under its lock by other code than that of the library; a torn last line is none."""
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            lines = file.read().split(b"\n")[:-1]
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)
    try:
        entries = [json.loads(line) for line in lines]
        valid = not entries or "dpfast-ledger" in entries[0]
        if valid and all({"label", "times", "parts", "epsilon"} <= entry.keys() for entry in entries[1:]):
            return entries[1:]
    except ValueError:
        pass
    raise Violation(f"a ledger has a damaged line: {path}")


class Ledgers(Check):
    """Processes of two threads each release under one budget, until it is spent; SIGKILL ends them at random moments.

    After each kill the file is valid, its charges do not exceed the budget, and they include every release that has
    read its records. The same holds after a loss of power, which keeps the part of the file that was flushed to disk.
    """

    faults = ("no flush to disk", "a charge after the release", "no lock", "a torn line that is left in the file")
    processes, threads, kills = 3, 2, 5

    def __init__(self, folder: Path, seed: int = 0, fault: str | None = None) -> None:
        super().__init__(folder, seed, fault)
        self._shared = Counters("started", "read", "done", "refused", slots=self.processes * self.threads)
        self._disk = Counters("flushed", slots=1)
        self._path: Path | None = None
        self._made = 0

    def step(self) -> None:
        if self._path is None:
            self._begin()
        slots = range(self.processes)
        running = {slot: self._start(slot) for slot in slots}
        try:
            for _ in range(self.kills):
                slot = self.random.choice(slots)
                moment = self.random.uniform(0, 0.03)
                child = running.pop(slot)
                status = ended(child, moment)
                self._stopped(killed(child) if status is None else status)
                self._examine()
                running[slot] = self._start(slot)
        finally:
            statuses = [killed(child) for child in running.values()]
        for status in statuses:
            self._stopped(status)
        self._examine()
        if self.fault == "no flush to disk" or self.random.random() < 0.5:
            self._lose_power()
        self._examine(reopen=True)

    def _begin(self) -> None:
        self._made += 1
        self._budget = self.random.choice(BUDGETS[:2] if self.fault else BUDGETS)
        self._path = self.folder / f"ledger-{self._made}"
        self._shared.clear()
        self._disk.clear()
        dpf.Ledger(**self._budget, path=self._path)
        self._disk["flushed"][0] = self._path.stat().st_size
        self.counts["ledgers"] += 1

    def _start(self, process: int) -> int:
        self.counts["processes"] += 1
        return forked(lambda: self._spend(process), quiet=self.fault is not None)

    def _stopped(self, status: int) -> None:
        self.require(status in (0, -9), f"a process that releases under a ledger ended with status {status}")
        self.counts["kills"] += status == -9

    # ---- in the child process ----

    def _spend(self, process: int) -> None:
        """Release in several threads until the budget refuses."""
        flush, flushed = os.fsync, self._disk["flushed"]

        def fsync(file: int) -> None:
            flush(file)
            if not os.path.isdir(f"/proc/self/fd/{file}"):
                flushed[0] = os.fstat(file).st_size

        os.fsync = fsync
        if self.fault == "no flush to disk":
            os.fsync = lambda file: None
        if self.fault == "no lock":
            self._unlock()
        if self.fault == "a torn line that is left in the file":
            os.ftruncate = lambda file, size: None
            self._tear()
        ledger = dpf.Ledger(**self._budget, path=self._path)
        in_threads(lambda i: self._release(ledger, process * self.threads + i), self.threads)

    def _release(self, ledger: dpf.Ledger, slot: int) -> None:
        started, read, done, refused = (self._shared[name] for name in ("started", "read", "done", "refused"))

        def note() -> None:
            read[slot] += 1

        while True:
            started[slot] += 1
            try:
                if self.fault == "a charge after the release":
                    MEDIAN(Noted(RECORDS, note))
                    ledger.reserve(MEDIAN.privacy_profile)
                else:
                    ledger.release(MEDIAN, Noted(RECORDS, note))
            except dpf.BudgetError:
                refused[slot] += 1
                return
            done[slot] += 1

    def _unlock(self) -> None:
        """Take no lock, and let other processes run between the search for the end of the file and the write."""
        seek = os.lseek

        def lseek(file: int, offset: int, how: int) -> int:
            place = seek(file, offset, how)
            time.sleep(0.001)
            return place

        fcntl.flock, os.lseek = lambda file, how: None, lseek

    def _tear(self) -> None:
        """Leave half of a line, as a writer does that is killed between two writes."""
        with self._path.open("ab") as file:
            file.write(b'{"label": "torn')

    # ---- in the parent ----

    def _lose_power(self) -> None:
        """Keep what was flushed to disk, and a random part of what was written later."""
        size, flushed = self._path.stat().st_size, int(self._disk["flushed"][0])
        os.truncate(self._path, self.random.randint(min(flushed, size), size) if not self.fault else flushed)
        self.counts["losses of power"] += 1

    def _examine(self, reopen: bool = False) -> None:
        """Compare the file with the counters of the processes."""
        read, done = (int(self._shared[name].sum()) for name in ("read", "done"))
        charges = charges_in(self._path)
        started, refused = (int(self._shared[name].sum()) for name in ("started", "refused"))
        times = sum(charge["times"] for charge in charges)
        self.require(times >= done, f"{done} releases were acknowledged, {times} are charged")
        self.require(times >= read, f"{read} releases have read records, {times} are charged")
        self.require(times <= started, f"{started} releases were started, {times} are charged")
        for unit, cost in SPENT.items():
            if unit in self._budget and "composition" not in self._budget:
                spent = sum(charge["times"] * cost(Fraction(charge["epsilon"])) for charge in charges)
                self.require(spent <= Fraction(self._budget[unit]), f"{unit} = {spent} is charged of {self._budget}")
        self.counts["examinations"] += 1
        if reopen:
            self._reopen(charges, bool(refused))

    def _reopen(self, charges: list[dict[str, Any]], refused: bool) -> None:
        """Let the library read the file, add up its charges, and say whether another release fits."""
        try:
            ledger = dpf.Ledger.open(self._path)
            again = dpf.Ledger.from_json(ledger.to_json())  # refuses charges beyond the budget
        except ValueError as error:
            raise Violation(f"a ledger cannot be opened: {error}") from None
        self.require(len(ledger.charges) == len(charges), "the library reads another number of charges")
        if refused and not again.affords(MEDIAN):
            self.counts["charges"] += len(charges)
            self._path.unlink()
            self._path = None
