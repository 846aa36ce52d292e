"""The promises about what reads bytes from outside, as functions of bytes that raise where one does not hold.

Each returns for bytes that are refused by the documented exception, and for bytes that are accepted and then keep what
was promised. Any other exception, any warning of Python or NumPy, and any `Broken` is a fault.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import resource
import struct
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.random import PCG64

import dpfast as dpf
from dpfast import keys, local
from dpfast.streaming import State
from dpfast.streaming.wire import fingerprint
from dpfast.tables import Format, TableError, text
from tests.central import takes_rows
from tests.kinds import kind_of
from tests.local.test_refused import EVERY
from tests.reference import csv_columns
from tests.streams import ALL, records

MOST_MEMORY = 2**30  # bytes, for one input


class Broken(Exception):
    """A promise that did not hold."""


def require(holds: bool, message: str) -> None:
    if not holds:
        raise Broken(message)


# ---- states ----

MARK = b'"@"'  # stands for the digest of the mechanism
LARGEST = 2000  # records that are read again in the next pass


def sealed(header: bytes, rest: bytes) -> bytes:
    """The bytes of a state with this header, of the right length, and the right checksum."""
    body = struct.pack("<Q", len(header)) + header + rest
    return b"dpfast\0S" + struct.pack("<HI", 3, zlib.crc32(body)) + body


def state_of(data: bytes) -> tuple[Any, bytes]:
    """The mechanism and the bytes of a state: they follow as they are, or the length of the header, it and the rest."""
    mechanism, given = ALL[data[1] % len(ALL)], data[2:]
    if data[0] % 4 == 0 or len(given) < 2:
        return mechanism, given
    length = int.from_bytes(given[:2], "little")
    header = given[2 : 2 + length].replace(MARK, b'"%b"' % fingerprint(mechanism).encode())
    return mechanism, sealed(header, given[2 + length :])


def state(data: bytes) -> None:
    """`State.from_bytes`: a ValueError, or a state whose bytes give it again, that merges, and that can be finished."""
    if len(data) < 2:
        return
    mechanism, given = state_of(data)
    try:
        found = State.from_bytes(given, mechanism)
    except ValueError:
        return
    saved = found.to_bytes()
    other = State.from_bytes(saved, mechanism)
    require(other.to_bytes() == saved, "a state and its bytes differ")
    with contextlib.suppress(ValueError):  # more than 2**62 records
        other.merge(State.from_bytes(saved, mechanism))
        require(other.n == 2 * found.n, "a merged state has another number of records")
    number, size = data[1] % len(ALL), found.n if found.number == 1 else found._records
    if size > LARGEST or (found.number > 1 and found.n not in (0, size)):
        return
    columns = _columns(saved, mechanism)
    if columns is None:
        return
    finished, usual = _finished(found, _records(mechanism, size, columns)), _usual(number, size, columns)
    if isinstance(mechanism, dpf.PartitionSelection):  # the bytes say whether keys are integers, text or bytes
        finished, usual = finished[0], usual[0]
    require(finished == usual, "a state has another type of outcome")


def _columns(saved: bytes, mechanism: Any) -> int | None:
    """How many columns the rows of a state have, which its bytes say; None if they are many. 1 for numbers."""
    if not takes_rows(mechanism):
        return 1
    for columns in range(1, 9):
        with contextlib.suppress(ValueError):
            State.from_bytes(saved, mechanism).update(_records(mechanism, 1, columns))
            return columns
    return None


def _records(mechanism: Any, size: int, columns: int) -> Any:
    """Honest records, of so many columns if they are rows."""
    x = records(mechanism, size)
    return x[:, np.arange(columns) % x.shape[1]] if takes_rows(mechanism) else x


def _finished(found: State, x: Any) -> Any:
    """The type of the release of a state after the rest of its passes over these records."""
    try:
        if found.n == 0 and found.number > 1:
            found.update(x)
        while found.number < found.passes:
            found.next_pass()
            found.update(x)
        return kind_of(found.release(rng=PCG64(0)))
    except ValueError as error:
        return str(error)


@cache
def _usual(number: int, size: int, columns: int) -> Any:
    """The type of the release of so many honest records."""
    mechanism = ALL[number]
    x = _records(mechanism, size, columns)
    start = mechanism.start()
    start.update(x)
    return _finished(start, x)


def state_seeds() -> Iterator[bytes]:
    for i in range(0, len(ALL), 3):
        mechanism = ALL[i]
        made = mechanism.start()
        made.update(records(mechanism, 24))
        if made.passes > 1 and i % 2:
            made.next_pass()
            made.update(records(mechanism, 24))
        saved = made.to_bytes()
        (length,) = struct.unpack("<Q", saved[14:22])
        header = saved[22 : 22 + length].replace(fingerprint(mechanism).encode(), b"@")
        if len(saved) < 800:
            yield bytes([1, i]) + struct.pack("<H", len(header)) + header + saved[22 + length :]
    yield bytes([0, 0]) + ALL[0].start().to_bytes()


# ---- local reports ----

SURVEYS: list[Any] = [*(survey for survey, _, _ in EVERY.values() if getattr(survey, "k", 0) != 2**17)]
HONEST = [survey.randomize(np.broadcast_to(x, (8, *np.shape(x))), rng=PCG64(1)) for survey, x, _ in EVERY.values()
          if getattr(survey, "k", 0) != 2**17]  # fmt: skip


def reports(data: bytes) -> None:
    """Reports from bytes, as words and as aggregates: a ValueError, or an estimate of those that are not refused."""
    if len(data) < 2:
        return
    survey, honest, given = SURVEYS[data[0] % len(SURVEYS)], HONEST[data[0] % len(SURVEYS)], data[2:]
    try:
        if data[1] % 3 == 0:
            received = survey.from_bytes(given)
            again = survey.to_bytes(received)
            require(survey.to_bytes(survey.from_bytes(again)) == again, "reports and their bytes differ")
        elif data[1] % 3 == 1:
            width = honest[:1].nbytes
            given = given[: len(given) // width * width]
            received = np.frombuffer(given, honest.dtype).reshape(-1, *honest.shape[1:])
        else:
            return aggregates(survey, given)
        total = survey.aggregate(received)
    except ValueError:
        return
    require(total.n + total.refused == len(received), "a report is neither included nor refused")
    if len(received):
        refused = np.isnan(survey.decode(received).reshape(len(received), -1)).any(axis=1)
        require(total.refused == int(refused.sum()), "a refused report is decoded")
    require(bool(np.isfinite(total.sums).all()), "a report makes the sums infinite")
    if total.n:
        require(bool(np.isfinite(survey.estimate(total)).all()), "a report makes the estimate infinite")
    aggregates(survey, total.to_bytes())


def aggregates(survey: Any, given: bytes) -> None:
    """An aggregate from bytes: a ValueError, or an equal one; its estimate is one, or a ValueError or TypeError."""
    total = local.Aggregate.from_bytes(given)
    again = local.Aggregate.from_bytes(total.to_bytes())
    require(again.to_bytes() == total.to_bytes(), "an aggregate and its bytes differ")
    with contextlib.suppress(ValueError, TypeError), np.errstate(all="ignore"):
        survey.estimate(total)


def report_seeds() -> Iterator[bytes]:
    for i, (survey, honest) in enumerate(zip(SURVEYS, HONEST, strict=True)):
        yield bytes([i, 0]) + survey.to_bytes(honest[:3])
        yield bytes([i, 1]) + honest[:2].tobytes()
        if survey.aggregate(honest).sums.size < 40:
            yield bytes([i, 2]) + survey.aggregate(honest).to_bytes()


# ---- tables ----

DELIMITERS = ",;\t|"


def tables(data: bytes) -> None:
    """Columns of delimited text: a TableError, or the cells that the standard library finds, through a small buffer."""
    if len(data) < 1:
        return
    delimiter, header, texts = DELIMITERS[data[0] & 3], bool(data[0] & 4), bool(data[0] & 8)
    body = data[1:]
    if body in (b"\xef", b"\xef\xbb"):  # half of a mark, which Python's decoder drops
        return
    plain = body
    if header and body.startswith((b"\xff\xfe", b"\xfe\xff")):  # a header that says UTF-16
        plain = body.decode("utf-16", "backslashreplace").encode("utf-8", "surrogatepass")
    expected = csv_columns.rows(plain, delimiter)
    wanted = "1" if not header else "a" if data[0] & 16 else None
    before = text._BLOCK
    text._BLOCK = 16
    try:
        blocks = list(text.text_blocks(io.BytesIO(body), [wanted], [texts], Format(header, delimiter)))
    except TableError:
        return
    finally:
        text._BLOCK = before
    found = [cell for (column,) in blocks for cell in column.tolist()]
    first = expected[0] if expected else [""]
    index = first.index(wanted) if header and wanted else 0
    cells = csv_columns.cells(expected[1:] if header else expected, index)
    require(len(found) == len(cells), "another number of rows than the standard library")
    if not _is_utf8(body):  # removed quotes may join what was decoded apart
        return
    if texts:
        require(found == [cell or None for cell in cells], "other texts than the standard library")
    else:
        numbers = [csv_columns.number(cell) for cell in cells]
        same = len(found) == len(numbers) and all(
            a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(found, numbers, strict=True)
        )
        require(same, "other numbers than the standard library")


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def table_seeds() -> Iterator[bytes]:
    yield b'\x04a,b\n1.5,x\n-2e3,"y,z"\n,"""q"""\n'
    yield b"\x14b;a\r\n\r\n1e22,0.1\r"
    yield b'\x08\xef\xbb\xbf"a\nb"c\n\xff\xfe\n'
    yield b"\x03nan|inf|+1_0\n.5|5.\n123456789012345678901|1e-30\n"
    yield b"\x15b;a\n1;22\n;\n3\n4;0.1;7"


# ---- labels ----


def column_from(data: bytes) -> Any:
    """A column of keys in one of the containers, from bytes."""
    kind, width, body = data[0] % 12, 1 + data[1] % 5, data[2:]
    if kind < 6:
        dtype = np.dtype(["i1", "<i2", "<i8", "<u8", "?", "<f8"][kind])
        values = np.frombuffer(body[: len(body) // dtype.itemsize * dtype.itemsize], dtype)
        if dtype.kind == "b":
            values = values.view(np.uint8) > 99
        return np.ma.array(values, mask=np.arange(len(values)) % 3 == 1) if data[1] & 128 else values
    if kind < 8:
        dtype = np.dtype(f"S{width}" if kind == 6 else f"<U{width}")
        return np.frombuffer(body[: len(body) // dtype.itemsize * dtype.itemsize], dtype)
    cells = _cells(body)
    if kind == 8:
        return cells
    if kind == 9:
        return [cell if isinstance(cell, str) else str(cell) for cell in cells]
    made = np.empty(len(cells), object)
    made[:] = cells
    return made if kind == 10 else (cells, np.arange(len(cells)) % width)


def _cells(body: bytes) -> list[Any]:
    """Keys of Python: a byte of type and length, then the bytes."""
    cells: list[Any] = []
    at = 0
    while at < len(body):
        kind, length = body[at] % 6, body[at] // 6 % 12
        part = body[at + 1 : at + 1 + length]
        at += 1 + length
        number = int.from_bytes(part, "little", signed=True)
        cells.append(
            [
                number,
                part.decode("utf-8", "surrogateescape"),
                part,
                float(number) / 2,
                None,
                "".join(map(chr, part)),
            ][kind]
        )
    return cells


def _key(cell: Any) -> Any:
    """What makes two keys equal; None for a missing one."""
    if cell is np.ma.masked:
        return None
    if isinstance(cell, (int, np.integer, np.bool_)):
        return int, int(cell)
    if isinstance(cell, (float, np.floating)):
        return None if math.isnan(cell) else (int, float(cell))  # equal to an integer of the same value
    return (type(cell), cell) if isinstance(cell, (str, bytes)) else None


def _expected(column: Any) -> list[Any]:
    """The keys of a column by Python."""
    if isinstance(column, tuple):
        parts = [_expected(part) for part in column]
        return [None if None in row else row for row in zip(*parts, strict=True)]
    if not isinstance(column, np.ndarray):
        return [_key(cell) for cell in column]
    if column.dtype.kind == "U":  # a text beyond Unicode is missing
        points = [row.rstrip(b"\0") for row in np.ascontiguousarray(column).view(f"S{column.itemsize}").tolist()]
        rows = [np.frombuffer(row.ljust(-(-len(row) // 4) * 4, b"\0"), "<u4").tolist() for row in points]
        return [None if max(row, default=0) > 0x10FFFF else (str, "".join(map(chr, row))) for row in rows]
    if column.dtype.kind == "f":
        return [None if math.isnan(x) else (int, x) for x in np.ma.filled(column, math.nan).tolist()]
    return [_key(cell) for cell in column]


def labels(data: bytes) -> None:
    """Keys of a column: the codes by first appearance, the counts, the places in a public list, in parts or not."""
    if len(data) < 2:
        return
    column = column_from(data)
    codes, table = keys.read(column)
    counts = keys.KeyCounts()
    counts.add(column)
    expected = _expected(column)
    require(bool((table.order() < len(table)).all()) and codes.max(initial=-1) < len(table), "a code is out of range")
    require(sorted(table.order().tolist()) == list(range(len(table))), "an order leaves out keys")
    if len(codes):
        numbers = np.bincount(codes[codes >= 0], minlength=len(table))
        require(np.array_equal(counts.sorted().counts, numbers[table.order()]), "other counts than codes")
    first: dict[Any, int] = {}
    wanted = [-1 if key is None else first.setdefault(key, len(first)) for key in expected]
    require(codes.tolist() == wanted, "other codes than a dictionary")
    valid = sum(key is not None for key in expected)
    require(valid == int(counts.sorted().counts.sum()), "other counts than a dictionary")
    if len(table) and not isinstance(column, tuple):
        require(np.array_equal(keys.lookup(column, table.keys), codes), "a key is not found in its own list")
    if not isinstance(column, tuple):
        parts = keys.KeyTable()
        middle = len(column) // 2
        found = [parts.add(column[:middle]), parts.add(column[middle:])]
        require(np.array_equal(np.concatenate(found), codes), "other codes in parts")
    mechanism = dpf.GlobalSensitivity(dpf.statistics.Count(), grid=dpf.Grid(0, 1, step=1), epsilon=1.0,
                                      neighbors="add-remove")  # fmt: skip
    if isinstance(column, tuple) or len(column) == 0:
        return
    try:
        released = dpf.by_group(mechanism, np.zeros(len(column)), labels=column, keys=table.keys, rng=PCG64(0))
    except (TypeError, ValueError):
        return
    require(len(released) == len(table), "another number of groups")


def label_seeds() -> Iterator[bytes]:
    for kind in range(8):
        yield bytes([kind, 2]) + b"abcdefgh" * 2 + bytes(8) + b"\xff" * 16 + b"a\0\0\0b\0\0\0"
    mixed = bytes([12, 1, 0, 13, 97, 98, 14, 97, 98, 54]) + b"123456789" + bytes([6 * 2 + 5, 200, 10, 4, 9, 7])
    for kind in range(8, 12):
        yield bytes([kind, 1]) + mixed * 2


# ---- ledgers ----

MEDIAN = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 100, step=1), epsilon=0.25)
RECORDS = np.arange(9.0)
FOLDER = tempfile.TemporaryDirectory(prefix="fuzz-")


def ledger(data: bytes) -> None:
    """A ledger from JSON, or in a file: a ValueError, or a ledger that gives itself again and keeps to its budget."""
    if not data:
        return
    if data[0] % 2:
        return _ledger_file(data[1:])
    try:
        found = dpf.Ledger.from_json(data[1:].decode("utf-8", "replace"))
    except (ValueError, ImportError):  # a plan may need dp-accounting
        return
    saved = found.to_json()
    require(dpf.Ledger.from_json(saved).to_json() == saved, "a ledger and its JSON differ")
    _release(found)


def _release(found: dpf.Ledger) -> None:
    """Release once, if the budget has room for it; a charge is added, or none."""
    before = len(found.charges)
    repr((found, found.spent, found.remaining))
    try:
        found.release(MEDIAN, RECORDS)
    except (dpf.BudgetError, ValueError):  # refused, or of other neighbors
        require(len(found.charges) == before, "a refused release is charged")
    else:
        require(len(found.charges) == before + 1, "a release is not charged")


def _ledger_file(data: bytes) -> None:
    path = Path(FOLDER.name) / f"ledger-{os.getpid()}"
    path.write_bytes(data)
    try:
        found = dpf.Ledger.open(path)
    except (ValueError, ImportError):
        require(path.read_bytes() == data or data[: path.stat().st_size] == path.read_bytes(), "a file was changed")
        return
    _release(found)
    require(dpf.Ledger.open(path).charges == found.charges, "a file has other charges than its ledger")


def ledger_seeds() -> Iterator[bytes]:
    budgets: list[dict[str, Any]] = [
        {"epsilon": "1/2"},
        {"epsilon": 1.0, "delta": "1e-6", "composition": "renyi"},
        {"rho": 0.5, "delta": 1e-6},
        {"mu": 0.25},
        {"epsilon": 1.0, "neighbors": "add-remove", "per_unit": 3},
        {"epsilon": 0.5, "plan": [MEDIAN, MEDIAN]},
    ]
    for i, budget in enumerate(budgets):
        path = Path(FOLDER.name) / f"seed-{i}"
        found = dpf.Ledger(**budget, path=path)
        with contextlib.suppress(dpf.BudgetError, ValueError):
            found.release(MEDIAN, RECORDS)
        yield b"\0" + found.to_json().encode()
        yield b"\1" + path.read_bytes()
        path.unlink()


class Reader(NamedTuple):
    """A promise, inputs to begin with, and words that its inputs are made of."""

    check: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]
    words: tuple[str, ...] = ()
    longest: int = 1024


READERS = {
    "state": Reader(
        state,
        state_seeds,
        ('"mechanism":"@"', '"pass":', '"n":', '"records":', "null", '"held":', '{"size":', '"entries":',
         "9", "[", "]"),
        1200,
    ),
    "reports": Reader(reports, report_seeds, ("dpf2i", "dpf2f"), 400),
    "tables": Reader(tables, table_seeds, ('"', '""', "\\x0d\\x0a", "e-22", "inf", "nan", "a"), 300),
    "labels": Reader(labels, label_seeds, (), 300),
    "ledger": Reader(
        ledger,
        ledger_seeds,
        ('"dpfast-ledger": 1', '"epsilon": ', '"rho": ', '"mu": ', '"delta": ', '"neighbors": "replace-one"',
         '"composition": "basic"', '"charges": [', '"label": "a"', '"times": ', '"parts": ', '"failure": ',
         '"per_unit": ',
         '"plan": [', '"laplace"', '"pure"', '"1/10"', "1e-6", "\\x0a"),
        2000,
    ),
}  # fmt: skip


def run(name: str, data: bytes) -> None:
    """Check a promise for these bytes; a warning is an error, except those of the library, and so is much memory."""
    before = _peak()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for category in (dpf.PrivacyWarning, dpf.UtilityWarning):
            warnings.simplefilter("ignore", category)
        READERS[name].check(data)
    require(_peak() < before + MOST_MEMORY, f"an input of {len(data)} bytes takes {_peak() - before:,} bytes of memory")


def _peak() -> int:
    """The most bytes of memory that the process has held."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
