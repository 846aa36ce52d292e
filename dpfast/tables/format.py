"""How text files are written: delimiters, encodings, and marks of numbers."""

from __future__ import annotations

import codecs
from _multibytecodec import MultibyteIncrementalDecoder
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dpfast.tables.errors import TableError

_BLOCK = 2**20  # bytes of a read
_MARKS = {
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
}


def check_encoding(name: str) -> str:
    """Return the name of an encoding if it extends ASCII by one byte for each character, or is one of Unicode or of
    East Asia, whose decoders fail at no bytes; a LookupError else.
    """
    found = codecs.lookup(name).name
    if found in ("utf-8", "utf-8-sig"):
        return "utf-8"
    if not (keeps_bytes(found) or found.startswith(("utf-16", "utf-32")) or _is_multibyte(found)):
        raise LookupError(f"{name} is no encoding of text that can be read whatever the bytes are")
    return found


def _is_multibyte(encoding: str) -> bool:
    """Whether an encoding is one of Python's for East Asia."""
    decoder: Any = codecs.lookup(encoding).incrementaldecoder
    return decoder is not None and issubclass(decoder, MultibyteIncrementalDecoder)


def keeps_bytes(encoding: str) -> bool:
    """Whether an encoding is UTF-8, or has one byte for each character and extends ASCII.

    Cells can then be cut at ASCII delimiters before they are decoded, and different bytes are different texts.
    """
    if encoding == "utf-8":
        return True
    try:
        ascii = all(bytes([byte]).decode(encoding) == chr(byte) for byte in range(128))
        text = bytes(range(256)).decode(encoding, "surrogateescape") if ascii else ""
    except UnicodeError:
        return False
    return len(set(text)) == 256


@dataclass(frozen=True)
class Format:
    """How CSV is written.

    Parameters
    ----------
    header : bool
        Whether the first row names the columns.
    delimiter : str
        The character between the cells, in ASCII; none of ``"``, the ends of lines and the marks of numbers.
    encoding : str
        A text encoding of Python. A header that begins with the mark of UTF-16 says that the file is UTF-16.
    decimal : {".", ","}
        The mark before the decimals of a number.
    thousands : {",", ".", " ", "'", "_"}, optional
        The mark between thousands, which is left out of numbers; " " is any space.
    """

    header: bool = True
    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str | None = None

    def __post_init__(self) -> None:
        if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '"\r\n':
            raise TableError(
                f"the delimiter must be one ASCII character, not a quote or the end of a line: {self.delimiter!r}"
            )
        if self.decimal not in (".", ",") or self.thousands not in (None, ",", ".", " ", "'", "_"):
            raise TableError("decimal must be . or , and thousands one of , . ' _ and a space")
        if self.decimal == self.thousands:
            raise TableError(f"decimal and thousands must be different marks, not both {self.decimal!r}")
        try:
            object.__setattr__(self, "encoding", check_encoding(self.encoding))
        except LookupError as error:
            raise TableError(str(error)) from None

    @property
    def marks(self) -> dict[int, str | None]:
        """Return what becomes of characters in numbers; empty for what ``float`` reads."""
        if self.decimal == "." and self.thousands is None:
            return {}
        marks: dict[int, str | None] = {ord(" "): None, 0xA0: None, 0x202F: None} if self.thousands == " " else {}
        if self.thousands is not None:
            marks[ord(self.thousands)] = None
        if self.decimal == ",":
            marks |= {ord("."): marks.get(ord("."), "?"), ord(","): "."}  # a point is not a decimal mark then
        return marks


PLAIN = Format()


class Recoded:
    """A stream of bytes of another encoding, as UTF-8: of a byte that is no text, its number behind a backslash."""

    def __init__(self, file: BinaryIO, encoding: str, begin: bytes) -> None:
        self._file, self._left = file, b""
        wide = encoding in ("utf-16", "utf-32") and not begin.startswith(_MARKS[encoding])
        encoding = f"{encoding}-le" if wide else encoding  # its decoder would fail without a mark
        self._decoder = codecs.getincrementaldecoder(encoding)("backslashreplace")
        self._next = begin

    def readinto(self, out: NDArray[np.uint8]) -> int:
        """Fill an array; return how much of it."""
        while not self._left:
            read, self._next = self._next or self._file.read(_BLOCK), b""
            self._left = self._decoder.decode(read, final=not read).encode("utf-8", "surrogatepass")
            if not read:
                break
        taken, self._left = self._left[: len(out)], self._left[len(out) :]
        out[: len(taken)] = np.frombuffer(taken, np.uint8)
        return len(taken)
