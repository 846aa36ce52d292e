"""The bytes of files that are compressed, by the ends of their names."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from dpfast.tables.errors import TableError

_PACKED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@contextmanager
def opened(path: str) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Yield the bytes of a file, to show the progress, and what they are once unpacked; ``-`` is standard input.

    Raises a `TableError` for what cannot be read, then and in the block.
    """
    if path == "-":
        if sys.stdin is None:
            raise TableError("standard input is closed")
        yield sys.stdin.buffer, sys.stdin.buffer
        return
    try:
        with Path(path).open("rb") as raw, _unpacked(path, raw) as plain:
            yield raw, plain
    except (zlib.error, zipfile.BadZipFile, lzma.LZMAError):
        raise TableError(f"cannot read {path}: damaged") from None
    except (OSError, EOFError) as error:
        raise TableError(f"cannot read {path}: {getattr(error, 'strerror', None) or type(error).__name__}") from None


@contextmanager
def _unpacked(path: str, raw: BinaryIO) -> Iterator[BinaryIO]:
    end = Path(path).suffix
    if end == ".zip":
        with zipfile.ZipFile(raw) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            if len(members) != 1:
                raise TableError(f"{path} has {len(members)} files: it must have one")
            with archive.open(members[0]) as plain:
                yield plain  # type: ignore[misc]
    elif end == ".zst":
        with _zstandard(raw) as plain:
            yield plain
    elif end in _PACKED:
        with _PACKED[end](raw) as plain:
            yield plain
    else:
        yield raw


def _zstandard(raw: BinaryIO) -> Any:
    """Return what a file of Zstandard contains, by Python 3.14 or by Arrow."""
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.open(raw)
    try:
        import pyarrow
    except ImportError:
        raise TableError("reading .zst requires pyarrow: pip install 'dpfast[parquet]'") from None
    return io.BufferedReader(pyarrow.CompressedInputStream(raw, "zstd"))
