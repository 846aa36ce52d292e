"""The base class of the checks, processes that they fork, and counters that survive the kill of a process."""

import mmap
import os
import select
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np

LONGEST = 120.0  # seconds that a child process may take


class Violation(Exception):
    """A promise that did not hold."""


class Check:
    """A part of the mixed work, done in short steps.

    Parameters
    ----------
    folder : Path
        An empty folder for its files.
    seed : int
    fault : str, optional
        One of `faults`: a step then does its work wrongly, and must raise a `Violation` after at most `patience` steps.
    """

    faults: tuple[str, ...] = ()
    patience = 20

    def __init__(self, folder: Path, seed: int = 0, fault: str | None = None) -> None:
        self.folder, self.random, self.fault = folder, Random(seed), fault
        self.counts: Counter[str] = Counter()
        folder.mkdir(parents=True, exist_ok=True)

    def step(self) -> None:
        """Work for a fraction of a second, or raise a `Violation`. All child processes and threads have then ended."""
        raise NotImplementedError

    def close(self) -> None:
        """Give back what the constructor took."""

    def require(self, holds: bool, message: str) -> None:
        if not holds:
            raise Violation(message)


def found(check: Check) -> bool:
    """Whether the check finds its fault."""
    try:
        for _ in range(check.patience):
            check.step()
    except Violation:
        return True
    finally:
        check.close()
    return False


class Counters:
    """Integers in memory that parent and children share; each entry has one writer at a time."""

    def __init__(self, *names: str, slots: int) -> None:
        memory = np.frombuffer(mmap.mmap(-1, 8 * len(names) * slots), np.int64).reshape(len(names), slots)
        self._rows = dict(zip(names, memory, strict=True))

    def __getitem__(self, name: str) -> np.ndarray:
        return self._rows[name]

    def clear(self) -> None:
        for row in self._rows.values():
            row[:] = 0


def forked(function: Callable[[], None], quiet: bool = False) -> int:
    """Run the function in a child process; its number. The child prints its errors, unless it is quiet."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        function()
        status = 0
    except BaseException:
        if not quiet:
            traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def ended(child: int, after: float = LONGEST) -> int | None:
    """The status of a child process that ends by itself in that many seconds, negative for a signal; None if not."""
    process = os.pidfd_open(child)
    try:
        ready, _, _ = select.select([process], [], [], after)
    finally:
        os.close(process)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if ready else None


def killed(child: int) -> int:
    """The status of a child process after SIGKILL, which comes too late if it has ended by itself."""
    os.kill(child, signal.SIGKILL)
    status = ended(child)
    if status is None:
        raise Violation("a process did not end by SIGKILL")
    return status


class Noted:
    """Records that call a function when a mechanism reads them."""

    def __init__(self, records: np.ndarray, note: Callable[[], None]) -> None:
        self._records, self._note = records, note
        self._read = False

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        if not self._read:
            self._read = True
            self._note()
        return self._records if dtype is None else self._records.astype(dtype)
