"""Files of JSON objects, one a line, that survive a crash: ledgers, and states of answers over time."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from dpfast.core import disk


class LineFormat(NamedTuple):
    """What a file of lines is, as its header and messages say.

    Parameters
    ----------
    word : str
        "ledger".
    name : str
        The field of the header that holds the version.
    version : int
    """

    word: str
    name: str
    version: int

    def parse(self, text: str | bytes) -> dict[str, Any]:
        """Read a text that is a JSON object, in which no name stands twice."""
        try:
            if isinstance(text, bytes):
                # What dpfast writes is ASCII, of which `detect_encoding` takes half the time of the scanner.
                text = text.decode(
                    "ascii" if text.isascii() and b"\0" not in text else json.detect_encoding(text), "surrogatepass"
                )
            fields = _DECODER.decode(text)
        except (ValueError, RecursionError):
            raise ValueError(f"not a {self.word}: it is not JSON, or a name stands twice") from None
        if not isinstance(fields, dict):
            raise ValueError(f"not a {self.word}: it is not a JSON object")
        return fields

    def check(self, header: dict[str, Any]) -> None:
        """Raise a ValueError unless the header is one of this version."""
        if self.name not in header:
            raise ValueError(f"not a {self.word}: it has no {self.name!r}")
        if header[self.name] != self.version:
            raise ValueError(
                f"this {self.word} has version {header[self.name]!r}: this dpfast reads only version {self.version}"
            )


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError
    return fields


_DECODER = json.JSONDecoder(object_pairs_hook=_distinct)  # `json.loads` makes one a text, in a third of the time


class LineFile:
    """A file of JSON lines, first a header and then entries, appended under a lock and flushed to disk.

    An incomplete last line is an entry whose writer crashed before anything followed from it; it is removed.

    Parameters
    ----------
    path : str
    header : dict
        What the first line must be.
    form : LineFormat
    """

    def __init__(self, path: str, header: dict[str, Any], form: LineFormat) -> None:
        self.path, self.form, self._header, self._file = os.path.abspath(path), form, header, -1
        self.seen = 0  # the owner has read the file up to this offset

    @contextmanager
    def locked(self, flags: int = 0) -> Iterator[Any]:
        """Open the file and hold its lock until the end of the block."""
        self.open(flags)
        try:
            yield self
        finally:
            self.close()

    def open(self, flags: int = 0, *, wait: bool = True) -> None:
        """Open the file and take its lock, or raise a BlockingIOError without waiting for another process."""
        self._file = os.open(self.path, os.O_RDWR | disk.BINARY | flags, 0o600)  # no program started by this has it
        try:
            disk.lock(self._file, wait=wait)
        except BaseException:
            file, self._file = self._file, -1
            os.close(file)
            raise

    def close(self) -> None:
        """Give back the lock, and close the file."""
        file, self._file = self._file, -1
        if file >= 0:
            disk.unlock(file)
            os.close(file)

    def after_fork(self) -> None:
        """In a child process: close the file that the parent had open, and read everything again."""
        self.seen = 0
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def begin(self) -> None:
        """Write the header of a new file, and flush file and directory. Leave any other file unchanged."""
        line = _line(self._header)
        size = os.fstat(self._file).st_size
        if size < len(line) and line.startswith(disk.read(self._file, size, 0)):  # new, or torn while it was created
            os.ftruncate(self._file, 0)
            self.append(self._header)
            disk.flush_directory(os.path.dirname(self.path))

    def entries(self) -> tuple[list[dict[str, Any]], int, bytes]:
        """Return the entries after `seen`, the offset of their end, and the incomplete line that may follow."""
        lines, end, torn = self.lines()
        return [self.form.parse(line) for line in lines], end, torn

    def lines(self) -> tuple[list[bytes], int, bytes]:
        """Return the lines of `entries`, and the same.

        Raises a ValueError for a file that is not one of the owner.
        """
        size = os.fstat(self._file).st_size
        new = disk.read(self._file, size - self.seen, self.seen)
        *lines, torn = new.split(b"\n")
        if self.seen == 0:
            if not lines:
                raise ValueError(f"{self.path} is not a {self.form.word}: its first line is incomplete")
            self._check_header(self.form.parse(lines.pop(0)))
        return lines, size - len(torn), torn

    def check_first(self, line: bytes) -> None:
        """Raise a ValueError for a first line that is neither the header of the owner nor the beginning of it."""
        if not _line(self._header).startswith(line):
            if not line.endswith(b"\n"):
                raise ValueError(f"{self.path} is not a {self.form.word}: its first line is incomplete")
            self._check_header(self.form.parse(line))

    def cut(self, end: int) -> None:
        """Remove the incomplete line after this offset. Call it once all others are valid."""
        os.ftruncate(self._file, end)

    def _check_header(self, header: dict[str, Any]) -> None:
        self.form.check(header)
        for name in sorted({*header, *self._header}):
            if header.get(name) != self._header.get(name):
                raise ValueError(
                    f"the {self.form.word} {self.path} has {name} = {header.get(name)!r}, "
                    f"not {self._header.get(name)!r}"
                )

    def append(self, entry: dict[str, Any]) -> None:
        """Append a line; it is on disk when this returns."""
        self.write(_line(entry))
        disk.flush(self._file)

    def write(self, text: bytes) -> None:
        """Append a line, which is on disk after `disk.flush`."""
        line = memoryview(text)
        os.lseek(self._file, 0, os.SEEK_END)
        while line:
            line = line[os.write(self._file, line) :]


def _line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry).encode() + b"\n"
