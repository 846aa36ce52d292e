"""The serialisation of a state, in a documented, versioned format without pickle."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import struct
import sys
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast.core.grid import Points

if TYPE_CHECKING:
    pass

Integers = NDArray[np.int64]
_MAGIC = b"dpfast\x00S"
_VERSION = 3  # 3: bins divide whole numbers, and keys are of more types; tests/units/test_streaming_bytes.py notes it
_MOST_SPARSE = 2**22  # entries of a sparse array: the memory that a few bytes can claim
_MOST_DEEP = 8  # levels of nested lists
DAMAGED = "damaged bytes: not a state of dpfast"
_HEAD = len(_MAGIC) + 6


class Blob(NamedTuple):
    """A serialised array of int64 with `size` entries: all entries, or the nonzero entries and their indices."""

    size: int
    places: Integers | None
    entries: Integers


def _described(node: Any, blobs: list[bytes]) -> Any:
    """Convert a packed tree to JSON; append its arrays to `blobs`."""
    if isinstance(node, list):
        return [_described(part, blobs) for part in node]
    if not isinstance(node, np.ndarray):
        return node
    places = np.flatnonzero(node)
    sparse = 2 * places.size < node.size <= _MOST_SPARSE
    for part in (places, node[places]) if sparse else (node,):
        blobs.append(part.astype("<i8").tobytes())
    return {"size": node.size, "entries": places.size if sparse else None}


def sealed(header: dict[str, Any], packed: Any) -> bytes:
    """Serialise a state: its header and the value of `Reading.pack`."""
    blobs: list[bytes] = []
    text = json.dumps({**header, "held": _described(packed, blobs)}, separators=(",", ":")).encode()
    body = b"".join([struct.pack("<Q", len(text)), text, *blobs])
    return _MAGIC + struct.pack("<HI", _VERSION, zlib.crc32(body)) + body


def opened(data: bytes) -> tuple[dict[str, Any], Any]:
    """Read the header and the packed tree of a state, with a `Blob` for each array."""
    if data[: len(_MAGIC)] != _MAGIC or len(data) < _HEAD + 8:
        raise ValueError(DAMAGED)
    version, check = struct.unpack("<HI", data[len(_MAGIC) : _HEAD])
    if version != _VERSION:
        old = "an earlier" if version < _VERSION else "a later"
        raise ValueError(
            f"a state of format {version}, saved by {old} version of dpfast, in which its counts may mean something "
            f"else: this version of dpfast reads format {_VERSION}; read the records again"
        )
    body = data[_HEAD:]
    if zlib.crc32(body) != check:
        raise ValueError(DAMAGED)
    (length,) = struct.unpack("<Q", body[:8])
    try:
        header = json.loads(body[8 : 8 + length])
    except (ValueError, RecursionError):
        raise ValueError(DAMAGED) from None
    if not isinstance(header, dict):
        raise ValueError(DAMAGED)
    blobs = _Blobs(body[8 + length :])
    held = blobs.tree(header.get("held"))
    if blobs.left:
        raise ValueError(DAMAGED)
    return header, held


class _Blobs:
    """A reader of the consecutive arrays after the header."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def _next(self, size: int) -> Integers:
        if 8 * size > self.left:
            raise ValueError(DAMAGED)
        part = np.frombuffer(self._data, "<i8", size, self._at).astype(np.int64)
        self._at += 8 * size
        return part

    def tree(self, node: Any, depth: int = 0) -> Any:
        if depth > _MOST_DEEP:
            raise ValueError(DAMAGED)
        if isinstance(node, list):
            return [self.tree(part, depth + 1) for part in node]
        if not isinstance(node, dict):
            return node
        entries = node.get("entries")
        size = read_whole(node.get("size"), len(self._data) if entries is None else _MOST_SPARSE)
        if entries is None:
            return Blob(size, None, self._next(size))
        entries = read_whole(entries, size)
        return Blob(size, self._next(entries), self._next(entries))


def read_items(node: Any, count: int | None = None) -> list[Any]:
    """Read a list, of `count` items if given."""
    if not isinstance(node, list) or (count is not None and len(node) != count):
        raise ValueError(DAMAGED)
    return node


def read_whole(node: Any, most: int) -> int:
    """Read an integer from 0 to `most`."""
    if type(node) is not int or not 0 <= node <= most:
        raise ValueError(DAMAGED)
    return node


def read_array(node: Any, most: int) -> Integers:
    """Read an array of at most `most` entries; check its size before allocating it."""
    if not isinstance(node, Blob) or node.size > most:
        raise ValueError(DAMAGED)
    if node.places is None:
        return node.entries
    places = node.places
    if np.any((places < 0) | (places >= node.size)) or np.any(places[1:] <= places[:-1]):
        raise ValueError(DAMAGED)
    array = np.zeros(node.size, np.int64)
    array[places] = node.entries
    return array


def read_counts(node: Any, size: int, n: int, *, exact: bool = True) -> Integers:
    """Read counts that sum to n, or to any 64-bit integer if not `exact`."""
    counts = read_array(node, size)
    if counts.size != size or np.any(counts < 0) or np.sum(counts, dtype=np.float64) > 2.0**62:
        raise ValueError(DAMAGED)
    if exact and int(counts.sum()) != n:
        raise ValueError(DAMAGED)
    return counts


def read_codes(node: Any, grid: Points, most: int, exactly: int | None = None) -> Integers:
    """Read at most `most` codes of a grid, or exactly `exactly` of them."""
    codes = read_array(node, most)
    if np.any((codes < 0) | (codes >= grid.size)) or exactly not in (None, codes.size):
        raise ValueError(DAMAGED)
    return codes


def fingerprint(mechanism: Any) -> str:
    """Return a digest of the class and public parameters of a mechanism; raises a TypeError for functions without a
    name.
    """
    return hashlib.sha256(repr(_named(mechanism)).encode()).hexdigest()[:32]


def check_same(mechanism: Any, other: Any) -> None:
    """Raise a ValueError unless the states of two mechanisms may merge: their class and parameters are equal."""
    if other != mechanism and fingerprint(other) != fingerprint(mechanism):
        raise ValueError("states of different mechanisms do not merge")


def _named(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [f.name for f in dataclasses.fields(value) if f.init or f.compare]
        return [type(value).__qualname__, *((name, _named(getattr(value, name))) for name in fields)]
    if isinstance(value, (tuple, list)):
        return [_named(part) for part in value]
    if isinstance(value, np.ndarray):
        return [value.dtype.str, value.shape, hashlib.sha256(np.ascontiguousarray(value)).hexdigest()]
    if callable(value):
        return _name(value)
    return [type(value).__name__, repr(value)]


def _name(function: Any) -> list[str]:
    """Return the module and the name that identify a function."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    found: Any = sys.modules.get(module) if isinstance(module, str) else None
    for part in name.split(".") if isinstance(name, str) else [""]:
        found = getattr(found, part, None)
    if found is not function:
        raise TypeError(
            "a state with a function that has no name in its module (a lambda, a local function, a callable object) "
            "cannot be serialised: define the function with `def` in a module"
        )
    return [str(module), str(name)]
