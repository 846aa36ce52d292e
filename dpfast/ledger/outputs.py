"""The files that results are written to: never an input or a ledger, another file only on request, complete or not."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from dpfast.ledger.journal import FORMAT
from dpfast.tables import TableError


class InputFile(NamedTuple):
    """A file that is read, which no output may replace: under any name, also after it was moved or made anew.

    Attributes
    ----------
    path : str
        Absolute; ``-`` for standard input.
    status : os.stat_result or None
        What it was when it was read; None if it could not be opened, or is not a file.
    """

    path: str
    status: os.stat_result | None

    @classmethod
    def at(cls, path: str) -> InputFile:
        """Return the file at a path, ``-`` for standard input."""
        place = path if path == "-" else os.path.abspath(path)
        return cls(place, _status_of_input(place))

    def is_at(self, found: os.stat_result) -> bool:
        """Whether the file with this status is the one that was read, or has its name now."""
        known = (self.status, _status_of_input(self.path))
        return any(each is not None and os.path.samestat(found, each) for each in known)


class Output:
    """A file that is written after a release.

    Parameters
    ----------
    path : str
        Where links are followed. A device or a pipe is written to as it is.
    inputs : sequence of InputFile, str or None
        The files that are read, or their paths. The output is none of them, under any name.
    force : bool
        Whether it may replace another file.

    Raises
    ------
    TableError
        Before the release, if the file is an input or a ledger, exists without `force`, or cannot be written.
    """

    def __init__(self, path: str, inputs: Sequence[InputFile | str | None], *, force: bool) -> None:
        self.path, self._force = path, force
        self._place = Path(os.path.realpath(path))
        try:
            found = _status(path)
            read = [InputFile.at(each) if isinstance(each, str) else each for each in inputs if each is not None]
            if found and any(each.is_at(found) for each in read):
                raise TableError(f"cannot write {path}: it is an input, which would be lost")
            self._plain = found is None or stat.S_ISREG(found.st_mode)
            if found and self._plain and _is_ledger(self._place):
                raise TableError(f"cannot write {path}: it is a ledger, and its budget would be forgotten")
            if found and self._plain and not force:
                raise TableError(f"cannot write {path}: it exists; give force=True to replace it")
            if self._plain:
                self._beside().unlink()
            else:
                self._place.open("a").close()
        except OSError as error:
            raise TableError(f"cannot write {path}: {error.strerror}") from None

    def _beside(self) -> Path:
        """Make an empty file in the same folder, with the same ending, and with the rights of the one it replaces."""
        made = self._place.with_name(f".{secrets.token_hex(8)}{self._place.suffix}")
        os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        with suppress(FileNotFoundError):
            shutil.copymode(self._place, made)
        return made

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """Yield the path of a new file to write to, which becomes the output at the end of the block.

        Raises an OSError for what cannot be written; the output is then as it was.
        """
        if not self._plain:
            yield self._place
            return
        made = self._beside()
        try:
            yield made
            if not self._force:  # take the name, which fails if another process has made a file meanwhile
                os.close(os.open(self._place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            made.replace(self._place)
        finally:
            made.unlink(missing_ok=True)


def _status(path: str) -> os.stat_result | None:
    """Return the status of a file, or None if there is none."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _is_ledger(path: Path) -> bool:
    """Whether a file begins like a `dpfast.Ledger`, also a damaged one."""
    with suppress(OSError), path.open("rb") as file:
        return FORMAT.encode() in file.read(64)
    return False


def _status_of_input(path: str) -> os.stat_result | None:
    """Return the status of an input, or None if it cannot be opened, or is not a file."""
    with suppress(OSError, ValueError, AttributeError):
        return os.fstat(sys.stdin.fileno()) if path == "-" else os.stat(path)
    return None
