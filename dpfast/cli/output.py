"""What the command line prints: results, errors and warnings."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpfast.cli.messages import in_options
from dpfast.core.traps import CATEGORIES

if TYPE_CHECKING:
    from dpfast.ledger.outputs import Output


class UnfinishedError(Exception):
    """A command failed after a release was made."""


class UnwrittenError(UnfinishedError):
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


@contextmanager
def released_to(output: Output) -> Iterator[Path]:
    """Yield the path of a file to write a release to; raise an `UnwrittenError` if it cannot be written."""
    try:
        with output.writing() as place:
            yield place
    except OSError as error:
        raise UnwrittenError(output.path, error, spent=True) from None


def warn(line: str) -> None:
    """Print a line to standard error."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(line, file=sys.stderr, flush=True)


@contextmanager
def telling(options: Mapping[str, Any]) -> Iterator[None]:
    """Print each warning of the library, which depends on no data, as one line on standard error, and only once.

    In the words of a command with these options.
    """
    told: set[str] = set()
    with warnings.catch_warnings():
        for category in CATEGORIES:
            warnings.simplefilter("always", category)
        others = warnings.showwarning

        def tell(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            line = in_options(" ".join(str(message).split()), options)
            if not issubclass(category, CATEGORIES):
                others(message, category, *where, **more)
            elif line not in told:
                told.add(line)
                warn(f"dpfast: warning: {line}")

        warnings.showwarning = tell
        yield
