"""A dashboard of a year: visits by page after each hour, the leading pages, an alarm, and a median of each day.

    pip install '.[examples]'
    python examples/dashboard.py --hours 48                   # two days of made-up visits, a million a day
    python examples/dashboard.py --hours 8760 --kills 20      # a year, 0.1 s for each hour; killed 20 times
    python examples/dashboard.py --quick                      # 26 hours of a thousand visits, in seconds
    python examples/service.py --dashboard dashboard/public.json      # serves GET /dashboard

One process reads the visits, and has the states in a folder: a ledger, running totals and an alarm. It writes public
numbers to a file, and web servers see that file only. Two workers read the visits of each hour in parts, which are
merged. Whatever kills the process, the next one goes on: no hour has two totals, no visit is lost or counted twice, and
the ledger has the two charges of the year. Medians have a budget of their own, for replaced visits, one for each day
and ten to spare, because a process that is killed between a charge and its release has spent the charge.

A visit is protected here. Persons with visits in up to k hours are protected by ``per_unit=k``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpfast as dpf

PAGES = ["home", "search", "item", "basket", "payment", "help", "other"]
HOURS = 365 * 24
VISITS = dpf.Running(dpf.Categories(PAGES), periods=HOURS, rho="0.05", neighbors="add-remove")
ALARM = dpf.AboveThreshold(1500, epsilon="0.3", answers=12, monotone=True, neighbors="add-remove")
MEDIAN = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 10_000, step=1), epsilon="0.02")

# The budgets of the year: visits by page and alarms, rho = 0.05 + 0.3**2 / 2; 365 medians and 10 to spare.
BUDGET = {"rho": "0.095", "neighbors": "add-remove"}
BUDGET_OF_MEDIANS = {"epsilon": "7.5"}
WORKERS = 2


# ---- made-up visits; the same at each reading, as a log is ----


def visits(hour: int, worker: int, size: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the places of the pages, and the milliseconds, of the visits of an hour that a worker reads."""
    rng = np.random.default_rng([hour, worker])
    pages = rng.choice(len(PAGES), size, p=[0.3, 0.25, 0.2, 0.1, 0.05, 0.02, 0.08])
    return pages, rng.lognormal(5.0, 0.8, size)


def failures(hour: int) -> int:
    """Return the number of visits of an hour that failed: many on one day of the month."""
    return int(np.random.default_rng([hour, WORKERS]).poisson(3000 if hour % 720 == 500 else 400))


def part(hour: int, worker: int, size: int) -> Any:
    """Read the visits of an hour that a worker has; it has no noise, and is private."""
    made = VISITS.part()
    made.update(np.array(PAGES)[visits(hour, worker, size)[0]])
    return made


# ---- the process that reads them ----


class Dashboard:
    """The states of the year in a folder, and its public numbers."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self.size = folder, size
        with dpf.Ledger(**BUDGET, path=folder / "year.ledger"):  # charged by the first process
            self.visits = VISITS.start(path=folder / "visits.state")
            self.alarm = ALARM.start(path=folder / "alarm.state")
        self.medians = dpf.Ledger(**BUDGET_OF_MEDIANS, path=folder / "medians.ledger")
        self.public: dict[str, Any] = {"totals": {}, "alarms": [], "medians": {}}
        if (folder / "public.json").exists():
            self.public = json.loads((folder / "public.json").read_text())
        if self.alarm.positive > len(self.public["alarms"]):
            self.public["alarms"].append(self.visits.period)  # of this hour or the last one
        self._told()  # what a killed process had released, and not told

    def run(self, until: int, workers: Executor) -> None:
        """Read the visits of all hours up to this one, and tell their public numbers."""
        while self.visits.period < until:
            hour = self.visits.period
            for made in workers.map(part, [hour] * WORKERS, range(WORKERS), [self.size] * WORKERS):
                self.visits.merge(made)
            rings = not self.alarm.closed and self.alarm(failures(hour))
            self.visits.release()
            if rings:
                self.public["alarms"].append(hour)
            self._told()

    def _told(self) -> None:
        """Write the public numbers: all follow from releases that are on disk, or are charged and released here."""
        hour = self.visits.period
        if not hour:
            return
        last = [*self.public["totals"].items()][-24:]  # what leaders need
        self.public["totals"] = {**dict(last), str(hour): self.visits.total.round(1).tolist()}
        self.public["standard error"] = round(self.visits.standard_error, 1)
        self.public["leaders"] = self._leaders(hour)
        day = hour // 24
        if day and str(day) not in self.public["medians"]:
            self.public["medians"][str(day)] = self._median(day)
        text = self.folder / "public.json.new"
        text.write_text(json.dumps(self.public))
        os.replace(text, self.folder / "public.json")

    def _leaders(self, hour: int) -> list[str]:
        """Return the pages with most visits in the last 24 hours: from releases, without a charge."""
        totals = self.public["totals"]
        last = np.array(totals[str(hour)]) - np.array(totals.get(str(hour - 24), 0.0))
        return [[*PAGES, "missing"][place] for place in np.argsort(-last)[:3]]

    def _median(self, day: int) -> float:
        """Release the median time of a day, which is one window."""
        hours = range(24 * (day - 1), 24 * day)
        times = np.concatenate([visits(hour, worker, self.size)[1] for hour in hours for worker in range(WORKERS)])
        return float(self.medians.release(MEDIAN, times))


def read(folder: Path, hours: int, size: int) -> None:
    """Go on until this hour."""
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as workers:
        Dashboard(folder, size).run(hours, workers)


# ---- a simulation of processes that are killed ----


def simulate(folder: Path, hours: int, size: int, kills: int) -> None:
    """Read in processes of which some are killed, and check what they leave."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, "--folder", str(folder), "--hours", str(hours), "--visits", str(size)]
    for left in range(kills, -1, -1):
        process = subprocess.Popen([*command, "--read"], start_new_session=True)
        goal = done(folder) + max(1, (hours - done(folder)) // (left + 1))
        while left and process.poll() is None and done(folder) < goal:
            time.sleep(0.01)
        if left:
            time.sleep(random.random() / 20)  # at any place of an hour
            with contextlib.suppress(ProcessLookupError):  # it may have read the last hour by now
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    check(folder, hours, size)


def done(folder: Path) -> int:
    """Return how many hours are public."""
    public = folder / "public.json"
    return max(map(int, json.loads(public.read_text())["totals"])) if public.exists() else 0


def check(folder: Path, hours: int, size: int) -> None:
    """Compare charges with the stated budgets and those of two states, and totals with the visits."""
    ledger, public = dpf.Ledger.open(folder / "year.ledger"), json.loads((folder / "public.json").read_text())
    medians = dpf.Ledger.open(folder / "medians.ledger")
    counts = sum(
        np.bincount(visits(hour, worker, size)[0], minlength=len(PAGES) + 1)
        for hour in range(hours)
        for worker in range(WORKERS)
    )
    totals, error = np.array(public["totals"][str(hours)]), public["standard error"]
    worst, (low, high) = np.abs(totals - counts).max(), VISITS.noise_interval(totals, hours)
    print(f"{hours} hours, {counts.sum():,} visits: totals within {worst:.0f}, standard error {error}")
    for page, total, least, most, count in zip([*PAGES, "missing"], totals, low, high, counts, strict=True):
        print(f"{page:8} {total:13,.1f}, with probability 0.95 {least:,.1f} to {most:,.1f}; visits {count:11,}")
    print(f"alarms: {public['alarms']}; leaders: {', '.join(public['leaders'])}")
    print(f"year: {len(ledger.charges)} charges, rho = {ledger.spent.rho:g} of {float(ledger.privacy.rho):g} is spent")
    print(f"medians: {len(medians.charges)} charges, epsilon = {medians.spent.epsilon:g} is spent")
    with dpf.Ledger(**BUDGET) as stated:
        VISITS.start(), ALARM.start()
    assert len(ledger.charges) == 2
    assert ledger.spent == stated.spent
    assert worst < 8 * error


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("dashboard"), help="of the states; it is private")
    parser.add_argument("--hours", type=int, default=48)
    parser.add_argument("--visits", type=int, default=20_833, help="that each of two workers reads in an hour")
    parser.add_argument("--kills", type=int, default=2, help="processes that are killed")
    parser.add_argument("--quick", action="store_true", help="26 hours of 1,000 visits")
    parser.add_argument("--read", action="store_true", help="read in this process, without checks")
    options = parser.parse_args()
    if options.quick:
        options.hours, options.visits = 26, 500
    if options.read:
        read(options.folder, options.hours, options.visits)
    else:
        simulate(options.folder, options.hours, options.visits, options.kills)


if __name__ == "__main__":
    main()
