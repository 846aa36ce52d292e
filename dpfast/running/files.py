"""Files of states: what they hold survives the process, and is not answered from twice."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any
from weakref import WeakSet

from dpfast.core import disk
from dpfast.core.lines import LineFile, LineFormat

STATE = LineFormat("state", "dpfast-running", 1)
_BEGUN = re.compile(rb'\{"at": (\d+),')
# Nanoseconds from the time in the last line to that of the last change of the file: file systems stamp by a tick of up
# to 10 ms, some by whole seconds. `end` waits until no copy of an earlier line can be restored in so short a time.
_NEAR, _FAR = 15 * 10**6, 10**10
_TRIES = 16


class StateFile(LineFile):
    """The file of a state, which one process holds open and locked: PRIVATE, like the state.

    Every line has the time at which it was written. The file system keeps the time of the last change of a file, which
    a copy, a restored backup or an editor cannot set: if it is not that of the last line, to 15 ms where it keeps such
    times, this may not be the file that answered last. So is a file of another number (inode) than the one that was
    last opened.

    Parameters
    ----------
    path : path-like
    header : dict
        Public numbers that must be the same when the state is continued.
    """

    def __init__(self, path: str | os.PathLike[str], header: dict[str, Any]) -> None:
        super().__init__(os.fspath(path), {STATE.name: STATE.version, **header}, STATE)
        self.found: list[dict[str, Any]] = []  # the entries when it was opened
        self.ended = "closed"  # why no more lines are written
        self._at = self._ahead = 0  # the last time that was written, and what the file system's clock is ahead
        self._within = _NEAR

    def begun(self) -> bool:
        """Whether there is a file with a complete header and line. Public.

        A header alone has no time and no number of a file: copies of it would all start without a charge. Raises a
        ValueError for a file with another header, before a state is charged for.
        """
        try:
            with Path(self.path).open("rb") as file:
                header, line = file.readline(), file.readline()
        except FileNotFoundError:
            return False
        self.check_first(header)
        return line.endswith(b"\n")

    def _check_header(self, header: dict[str, Any]) -> None:
        """Name both releases if their parameters differ, by the text "of", which itself may be of another version."""
        self.form.check(header)
        if header.get("parameters") != self._header["parameters"]:
            raise ValueError(
                f"the state {self.path} was started with other parameters, as {header.get('of')}, not as "
                f"{self._header['of']}: give those, or start another state in another file"
            )
        super()._check_header({**header, "of": self._header["of"]})

    def create(self) -> None:
        """Create the file, and hold it."""
        self._hold(os.O_CREAT)
        try:
            self.begin()
            self.found, end, _ = self.entries()
            if self.found:
                raise ValueError(f"the state {self.path} was started by another process meanwhile")
            self.cut(end)
        except BaseException:
            self.close()
            raise
        self._opened()

    def resume(self, *, moved: bool) -> None:
        """Hold the file, and read what it has. Raises a ValueError if it may not be the one that answered last."""
        self._hold()
        try:
            number, changed = os.fstat(self._file).st_ino, disk.changed(self._file)
            self.found, end, torn = self.entries()
            if not moved:
                self._check_last(number, changed, torn)
        except BaseException:
            self.close()
            raise
        if torn:
            self.cut(end)
        self._opened()

    def _hold(self, flags: int = 0) -> None:
        try:
            self.open(flags, wait=False)
        except BlockingIOError:
            raise ValueError(f"the state {self.path} is open elsewhere: a state answers in one process") from None

    def _check_last(self, number: int, changed: int, torn: bytes) -> None:
        """Compare number and time of the file with its lines, the last of which a crash may have left incomplete."""
        try:
            opened = [entry["file"] for entry in self.found if "file" in entry][-1]
            within = [entry["within"] for entry in self.found if "within" in entry][-1]
            begun = _BEGUN.match(torn)
            last = int(begun[1]) if begun else self.found[-1]["at"]
            apart = abs(changed - last) > within or (torn and not begun)  # too short to have a time
        except (IndexError, KeyError, TypeError):
            raise ValueError(f"the state {self.path} is damaged: its lines have no times") from None
        if number != opened or apart:
            raise ValueError(
                f"the state {self.path} was copied, moved, restored or changed after it was last written: if the "
                f"original has answered since, a copy would answer again with other noise. Give moved=True if it has "
                f"not, and never will; else start another state"
            )

    def _opened(self) -> None:
        held.add(self)
        self.ended = ""
        self.note({"file": os.fstat(self._file).st_ino, "within": self._within})

    def note(self, entry: dict[str, Any]) -> None:
        """Append a line with its time; it is on disk when this returns. After an error no more lines are written."""
        if self.ended:
            raise ValueError(f"the state {self.path} is {self.ended}: start it again from its file")
        try:
            self._stamp(entry)
            self._confirm()
            disk.flush(self._file)
            if self._confirm():  # a file system of a network has its own clock, and may not have been told before
                disk.flush(self._file)
        except BaseException:  # the line may be on disk or not, which only the file can tell
            self.end("not written")
            raise

    def _stamp(self, entry: dict[str, Any]) -> None:
        """Write a line with the time that the file system will keep, as far as it can be foretold."""
        text = json.dumps(entry)[1:]
        self._at = time.time_ns() + self._ahead
        self.write(f'{{"at": {self._at}, {text}\n'.encode())

    def _confirm(self) -> bool:
        """Write lines of a time alone until the last one has that of the file: this may have been interrupted.

        Returns whether any was written.
        """
        for tries in range(2 * _TRIES):
            apart = disk.changed(self._file) - self._at
            if abs(apart) <= self._within:
                return tries > 0
            self._ahead += apart
            if tries == _TRIES:
                self._within = _FAR
            self._stamp({"within": self._within})
        raise ValueError(f"the file system of {self.path} keeps no times of changes, which tell copies of a state")

    def end(self, reason: str = "closed") -> None:
        """Give back the lock; no more lines are written."""
        self.ended = reason
        rest = self._at + 2 * _NEAR - self._ahead - time.time_ns()
        time.sleep(min(max(rest, 0), 2 * _NEAR) / 1e9)
        self.close()

    def __del__(self) -> None:
        if self._file >= 0:
            os.close(self._file)


held: WeakSet[StateFile] = WeakSet()


def _after_fork_in_child() -> None:
    for file in list(held):
        file.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
