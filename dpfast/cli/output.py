"""What the command line prints and writes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpfast.tables import TableError


class UnwrittenError(Exception):
    """The result cannot be written."""

    def __init__(self, where: str, error: OSError, *, spent: bool) -> None:
        release = ": the release is made, and its epsilon is spent" if spent else ""
        super().__init__(f"cannot write {where}: {error.strerror}{release}")


def show(text: str, *, spent: bool) -> None:
    """Print to standard output."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except OSError as error:
        with suppress(OSError, ValueError):  # the rest of the buffer would fail again when Python exits
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise UnwrittenError("standard output", error, spent=spent) from None


def warn(line: str) -> None:
    """Print a line to standard error."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(line, file=sys.stderr, flush=True)


def check_writable(path: str) -> None:
    """Check that a file can be written, before a release is made."""
    try:
        Path(path).open("a").close()
    except OSError as error:
        raise TableError(f"cannot write {path}: {error.strerror}") from None


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Turn a failure to write into an `UnwrittenError`."""
    try:
        yield
    except OSError as error:
        raise UnwrittenError(path, error, spent=True) from None
