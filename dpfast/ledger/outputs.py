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

from dpfast.ledger.journal import FORMAT
from dpfast.tables import TableError


class Output:
    """A file that is written after a release.

    Parameters
    ----------
    path : str
        Where links are followed. A device or a pipe is written to as it is.
    inputs : sequence of str or None
        The files that are read, ``-`` for standard input. The output is none of them, under any name.
    force : bool
        Whether it may replace another file.

    Raises
    ------
    TableError
        Before the release, if the file is an input or a ledger, exists without `force`, or cannot be written.
    """

    def __init__(self, path: str, inputs: Sequence[str | None], *, force: bool) -> None:
        self.path, self._force = path, force
        self._place = Path(os.path.realpath(path))
        try:
            found = _status(path)
            if found and any(_is_input(found, name) for name in inputs if name is not None):
                raise TableError(f"cannot write {path}: the command reads it")
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


def _is_input(found: os.stat_result, name: str) -> bool:
    """Whether a file is an input: the same file, also by another name, a link, or redirected standard input."""
    with suppress(OSError, ValueError, AttributeError):  # an input that cannot be opened, or is not a file
        given = os.fstat(sys.stdin.fileno()) if name == "-" else os.stat(name)
        return os.path.samestat(found, given)
    return False
