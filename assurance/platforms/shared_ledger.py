"""One ledger, charged by several processes, one of them killed: `python -m assurance.platforms.shared_ledger FOLDER`.

Runs on every system: processes are spawned, not forked. At the end the file must have every charge that a process
noted as made, no more than the budget, and lines that end as they were written. With `text` the file is opened in the
text mode of Windows, and with `unlocked` without a lock: both must be found.
"""

import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

PROCESSES, CHARGES, BUDGET = 4, 40, 100  # fewer than all want
KILLED_AFTER = 3  # charges of the first process
FAULTS = {
    "text": "disk.BINARY = os.O_TEXT if hasattr(os, 'O_TEXT') else 0",
    "unlocked": (
        "disk.lock = disk.unlock = lambda file, **_: None\n"
        "seek = os.lseek\n"
        "os.lseek = lambda file, offset, how: (seek(file, offset, how), time.sleep(0.001))[0]"
    ),
}
SPEND = f"""
import os, sys, time
import dpfast as dpf
from dpfast.core import disk
exec(sys.argv[2])
ledger = dpf.Ledger({BUDGET}, path=sys.argv[1])
mechanism = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=dpf.Grid(0, 1), epsilon=1.0)
print("ready", flush=True)
sys.stdin.readline()
made = 0
for _ in range({CHARGES}):
    try:
        with ledger:
            mechanism([0.25, 0.5])
    except dpf.BudgetError:
        break
    made += 1
    print(made, flush=True)
"""


def spend(path: Path, fault: str) -> tuple[int, list[str]]:
    """The charges that processes noted as made, and what was wrong with them; the first process is killed early."""
    command = [sys.executable, "-W", "ignore", "-c", SPEND, str(path), FAULTS.get(fault, "")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    running = [subprocess.Popen(command, **pipes) for _ in range(PROCESSES)]
    for process in running:
        process.stdout.readline()
    for process in running:  # all begin at once
        with suppress(OSError):  # one that has ended
            process.stdin.write("\n")
            process.stdin.flush()
    for _ in range(KILLED_AFTER):
        running[0].stdout.readline()
    running[0].kill()
    outputs = [process.communicate()[0] for process in running[1:]]
    wrong = [
        f"a process ended: {output}" for process, output in zip(running[1:], outputs, strict=True) if process.returncode
    ]
    return KILLED_AFTER + sum(
        int(words[-1]) for words in map(str.split, outputs) if words and words[-1].isdigit()
    ), wrong


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    folder, fault = Path(sys.argv[1]), "".join(sys.argv[2:3])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"ledger-{time.time_ns()}.jsonl"
    made, wrong = spend(path, fault)
    data = path.read_bytes()
    if b"\r" in data or not data.endswith(b"\n"):
        wrong.append("lines of the file do not end as they were written")
    lines = data.splitlines()[1:]
    try:
        charges = [json.loads(line) for line in lines]
    except ValueError:
        wrong.append("a line of the file is damaged")
        charges = []
    if not made <= len(charges) <= BUDGET:
        wrong.append(f"{len(charges)} charges in the file, at least {made} made, {BUDGET} allowed")
    print("; ".join(wrong) or f"{len(charges)} charges of {PROCESSES} processes in the file, {BUDGET} allowed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
