"""Columns of files: records, missing cells, and errors of one line without data."""

import bz2
import csv
import gzip
import io
import lzma
import math
import os
import random
import sys
import zipfile
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfast.tables import (
    Format,
    TableError,
    WantedColumn,
    blocks,
    open_column,
    read_column,
    record_count,
    schema_type,
)
from tests.reference import csv_columns as reference


def write(folder, text, name="x.csv"):
    path = folder / name
    content = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return str(path)


NAN = math.nan
FILES = {
    "plain": ("a,pay\n1,2.5\n3,4\n", [2.5, 4]),
    "missing": ("a,pay\n1,\n2,NA\n3,-\n4,5\n5\n", [NAN, NAN, NAN, 5, NAN]),
    "spaces": ("pay\n 1\n2 \n\t3\n", [1, 2, 3]),
    "quoted": ('a,pay\n"x, y","1"\n"new\nline",2\n"quo""te",3\n', [1, 2, 3]),
    "byte order mark": ("\ufeffpay,a\n1,2\n", [1]),
    "carriage returns": ("a,pay\r\n1,2\r\n3,4\r\n", [2, 4]),
    "extremes": ("pay\n1e400\n-inf\nnan\n5e-324\n-0\n", [math.inf, -math.inf, NAN, 5e-324, 0]),
    "no end of line": ("a,pay\n1,2", [2]),
    "long rows": ("a,pay\n1,2,3,4\n", [2]),
    "blank lines between rows": ("a,pay\n\n1,2\n\n", [NAN, 2, NAN]),
    "blank cells of the only column": ("pay\n1\n\n2\n", [1, NAN, 2]),
    "two of another name": ("a,pay,a\n1,2,3\n", [2]),
    "quotes in a cell": ('a,pay\n5" x 6",1\n"a"b"c",2\n"a""","3" \n', [1, 2, 3]),
    "long cell in quotes": (f'a,pay\n"{"x," * 100_000}","1"\n', [1]),
    "quotation to the end of the file": ('pay,a\n1,"secret\n2,3\n', [1]),
    "bad bytes": (b"a,pay\n\xff\xfe,2\n1,\xff\n", [2, NAN]),
    "nul bytes": (b"a,pay\n1,\x00\n2,3\n", [NAN, 3]),
    "text as numbers": ("pay\n1_000\n0x10\n1d5\ntrue\n", [1000, NAN, NAN, NAN]),
    "huge cells": (f"a,pay\n{'x' * 200_000},2\n1,{'9' * 200_000}\n1,{'x' * 200_000}\n", [2, math.inf, NAN]),
    "header only": ("a,pay\n", []),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("file", ["x.csv", "x.csv.gz", "x.txt"])
def test_csv(tmp_path, name, file):
    text, expected = FILES[name]
    np.testing.assert_array_equal(read_column(write(tmp_path, text, file), "pay"), expected)


def test_many_blocks(tmp_path):
    x = np.arange(200_000) / 8
    x[123_456] = NAN
    text = "pay\n" + "".join("\n" if math.isnan(v) else f"{v}\n" for v in x)
    np.testing.assert_array_equal(read_column(write(tmp_path, text), None), x)


def test_without_header(tmp_path):
    path = write(tmp_path, "1,2\n3,4\n")
    assert read_column(path, "2", Format(header=False)).tolist() == [2, 4]
    assert read_column(write(tmp_path, "7\n8\n", "y.csv"), None, Format(header=False)).tolist() == [7, 8]
    for column in ("0", "3", "-1", "a", "", "\u00b2"):
        with pytest.raises(TableError, match="the column is a number from 1 to 2"):
            read_column(path, column, Format(header=False))


def test_a_missing_first_record_without_a_header(tmp_path):
    for text, expected in ("\n8\n", [NAN, 8]), ("7\n\n", [7, NAN]), ('""\n8\n', [NAN, 8]):
        np.testing.assert_array_equal(read_column(write(tmp_path, text), None, Format(header=False)), expected)


@pytest.mark.parametrize("seed", range(4))
def test_columns_match_the_standard_library(tmp_path, monkeypatch, seed):
    """Also with buffers and blocks of a few bytes and rows, which cut everything everywhere."""
    monkeypatch.setattr("dpfast.tables.text._BLOCK", 1 + seed)
    monkeypatch.setattr("dpfast.tables.text._ROWS", 1 + seed)
    rng, path = random.Random(seed), tmp_path / "x.csv"
    parts = ['"', '"', ",", ",", "\n", "\r", "\r\n", "a", " 7", "0", ".5", "\0", "\x0b", "\u2028", "\u0661", "\xff"]
    for _ in range(800):
        data = "".join(rng.choices(parts, k=rng.randint(1, 14))).encode("latin-1" if seed == 3 else "utf-8", "replace")
        path.write_bytes(data)
        rows = reference.rows(data)
        columns = len(rows[0]) or 1
        wanted = [WantedColumn(str(rng.randint(1, columns)), text) for text in (True, False, True)]
        found = list(blocks(str(path), wanted, Format(header=False)))
        for j, column in enumerate(wanted):
            cells = reference.cells(rows, int(column.name) - 1)
            read = [cell for block in found for cell in block[j].tolist()]
            assert not column.text or read == [cell or None for cell in cells]
            read = [cell or "" for cell in read] if column.text else read
            np.testing.assert_array_equal(list(map(reference.number, read)), list(map(reference.number, cells)))


@settings(max_examples=200, deadline=None)
@given(st.text(), st.text('",\n1.e- '), st.sampled_from([",", ";", "\t"]))
def test_any_text_is_read_as_by_the_standard_library(text, other, delimiter):
    data = f"1{delimiter}{text}\n{other}{delimiter}{text}".encode("utf-8", "surrogatepass")
    rows = reference.rows(data, delimiter)
    with mock.patch("sys.stdin", mock.Mock(buffer=io.BytesIO(data))):
        found = read_column("-", "2", Format(header=False, delimiter=delimiter)) if len(rows[0]) > 1 else None
    if found is not None:
        np.testing.assert_array_equal(found, list(map(reference.number, reference.cells(rows, 1))))


def test_delimiters(tmp_path):
    path = write(tmp_path, 'a;"pay;1"\n1,5;2\n')
    assert read_column(path, "pay;1", Format(delimiter=";")).tolist() == [2]
    for delimiter in ("", ";;", '"', "\n", "\u00e4"):
        with pytest.raises(TableError, match="must be one ASCII character"):
            Format(delimiter=delimiter)


def test_marks_of_numbers(tmp_path):
    path = write(tmp_path, "a;b\n1.234,5;x\n-2,25;1.5\n;7\n1 000;y\n")
    found = read_column(path, "a", Format(delimiter=";", decimal=",", thousands="."))
    np.testing.assert_array_equal(found, [1234.5, -2.25, NAN, NAN])
    found = read_column(path, "a", Format(delimiter=";", decimal=",", thousands=" "))
    np.testing.assert_array_equal(found, [NAN, -2.25, NAN, 1000])
    found = read_column(path, "b", Format(delimiter=";", decimal=","))
    np.testing.assert_array_equal(found, [NAN, NAN, 7, NAN])  # a point is then no mark of a number
    quoted = write(tmp_path, 'pay,n\n"12,345.5",1\n"7",2\n', "quoted.csv")
    assert read_column(quoted, "pay", Format(thousands=",")).tolist() == [12345.5, 7]
    for marks in ({"decimal": ";"}, {"thousands": "x"}, {"decimal": ",", "thousands": ","}):
        with pytest.raises(TableError, match="decimal"):
            Format(**marks)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "shift_jis", "gb18030", "utf-8-sig", "cp1252"])
def test_encodings(tmp_path, monkeypatch, encoding):
    town = "Z\u00fcrich" if encoding == "cp1252" else "\u6771\u4eac"
    text = f"{town},pay\n" + f"{town},12\n,\n" * 50
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode(encoding))
    for size in (1, 7, 2**20):
        monkeypatch.setattr("dpfast.tables.text._BLOCK", size)
        found = list(blocks(str(path), [WantedColumn(town, text=True), WantedColumn("pay")], Format(encoding=encoding)))
        assert [cell for block, _ in found for cell in block] == [town, None] * 50
        np.testing.assert_array_equal(np.concatenate([block for _, block in found]), [12, NAN] * 50)


def test_a_header_says_that_a_file_is_utf_16_and_a_record_does_not(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes("pay\n1\n2\n".encode("utf-16"))
    assert read_column(str(path), "pay").tolist() == [1, 2]
    assert len(read_column(str(path), "1", Format(header=False))) == 4


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["utf-16", "utf-32-be", "shift_jis", "gb18030", "iso2022_jp", "hz"]))
def test_no_bytes_fail(data, encoding):
    with mock.patch("sys.stdin", mock.Mock(buffer=io.BytesIO(data))):
        next(blocks("-", [WantedColumn("1")], Format(header=False, encoding=encoding)), None)


def test_compressed_files(tmp_path):
    text = b"pay,n\n" + b"1,2\n" * 1000
    files = {"x.csv.gz": gzip.compress(text), "x.csv.bz2": bz2.compress(text), "x.csv.xz": lzma.compress(text)}
    arrow = pytest.importorskip("pyarrow")
    files["x.csv.zst"] = arrow.Codec("zstd").compress(text, asbytes=True)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("inner/x.csv", text)
    for name, packed in files.items():
        (tmp_path / name).write_bytes(packed)
    for name in (*files, "x.zip"):
        assert read_column(str(tmp_path / name), "pay").sum() == 1000, name
        if name.endswith(".zst"):
            continue  # Arrow does not notice
        (tmp_path / f"cut.{name}").write_bytes((tmp_path / name).read_bytes()[:-30])
        with pytest.raises(TableError, match="cannot read"):
            read_column(str(tmp_path / f"cut.{name}"), "pay")
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv", text)
        archive.writestr("b.csv", text)
    with pytest.raises(TableError, match="has 2 files: it must have one"):
        read_column(str(tmp_path / "two.zip"), "pay")


def test_booleans_and_decimals_of_parquet(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from decimal import Decimal

    path = str(tmp_path / "x.parquet")
    columns = {"a": [True, None, False], "b": [Decimal("1.25"), None, Decimal("-3.50")]}
    columns["c"] = arrow.array([1, 2, None], arrow.decimal128(20, 0))
    parquet.write_table(arrow.table(columns), path)
    np.testing.assert_array_equal(read_column(path, "a"), [1, NAN, 0])
    np.testing.assert_array_equal(read_column(path, "b"), [1.25, NAN, -3.5])
    assert [schema_type(path, name) for name in "abc"] == ["integer", "number", "integer"]
    assert record_count(path) == 3
    with pytest.raises(TableError, match="it has 'a', 'b', 'c'"):
        read_column(path, "d")


def test_a_missing_column_lists_the_others(tmp_path):
    path = write(tmp_path, "a,b\n1,2\n")
    for column in ("c", None):
        with pytest.raises(TableError, match=r"it has 'a', 'b'$"):
            read_column(path, column)
    assert record_count(path) is None


def test_a_row_longer_than_the_buffer(tmp_path):
    path = write(tmp_path, f'a,pay\n"{"x," * 2**21}",1\n2,3\n"{"y" * 2**22}')
    np.testing.assert_array_equal(read_column(path, "pay"), [1, 3, NAN])


def test_readers_share_no_state_of_the_process(tmp_path):
    """`csv.field_size_limit` is one for all threads: a reader that is done may not stop another at a long cell."""
    path = write(tmp_path, "a,pay\n" + "x,1\n" * 70_000 + f"{'x' * 200_000},2\n")
    limit = csv.field_size_limit()
    first, second = (blocks(path, [WantedColumn("pay")]) for _ in range(2))
    assert next(first)[0].sum() + next(second)[0].sum() == 2 * 2**16
    assert csv.field_size_limit() == limit
    assert sum(len(x) for (x,) in first) == sum(len(x) for (x,) in second) == 70_001 - 2**16
    assert csv.field_size_limit() == limit


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(b"pay\n1\n2\n")

    monkeypatch.setattr("sys.stdin", Stdin)
    assert read_column("-", "pay").tolist() == [1, 2]
    assert not Stdin.buffer.closed


def test_a_cell_is_read_independently_of_the_others(tmp_path):
    cells = ["1", " 1", "1_0", "\u0661", "\uff11", "1e400", "-inf", "nan", "1\x00", "0x1", "1.5", "", "--1", "1.", ".5"]
    cells += ["\u00a01", "\x1c1", "\u200b1", "1__0", "infinity", "1j", "True", "1e1_0", "+1", "1f", "-nan", "+Inf"]
    together = read_column(write(tmp_path, "pay,a\n" + "".join(f"{cell},\n" for cell in cells)), "pay")
    np.testing.assert_array_equal(together, [reference.number(cell) for cell in cells])
    for cell, value in zip(cells, together, strict=True):
        np.testing.assert_array_equal(read_column(write(tmp_path, f"pay,a\n{cell},\n"), "pay"), [value])


BROKEN = {
    "no such file": (None, "nowhere.csv", "No such file"),
    "empty": ("", "x.csv", "the file is empty"),
    "two of a name": ("pay,secret,pay\n1,2,3\n", "x.csv", "several columns in the header are named 'pay'"),
    "no column": ("rent,b\nsecret,2\n", "x.csv", "no column 'pay' in the header"),
    "binary": (bytes(range(256)) * 40, "x.csv", "no column|not a CSV"),
    "truncated gzip": (gzip.compress(b"pay\n" + os.urandom(3000))[:1000], "x.gz_", "no column|not a CSV"),
    "utf-16": ("pay\n1\n".encode("utf-16-le"), "x.csv", "no column"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(tmp_path, name):
    content, file, message = BROKEN[name]
    path = str(tmp_path / file) if content is None else write(tmp_path, content, file)
    with pytest.raises(TableError, match=message) as error:
        read_column(path, "pay")
    assert "\n" not in str(error.value)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("damage", ["truncated", "not gzip", "flipped", "checksum"])
def test_damaged_gzip(tmp_path, damage):
    whole = bytearray(gzip.compress(b"pay\n" + b"".join(b"%d\n" % i for i in range(5000))))
    if damage == "truncated":
        whole = whole[:300]
    elif damage == "not gzip":
        whole = bytearray(b"pay\n1\n")
    elif damage == "flipped":
        whole[200] ^= 0xFF
        whole[201] ^= 0x55
    else:
        whole[-8] ^= 1
    (tmp_path / "x.csv.gz").write_bytes(whole)
    with pytest.raises(TableError, match="cannot read"):
        read_column(str(tmp_path / "x.csv.gz"), "pay")


def test_a_folder(tmp_path):
    with pytest.raises(TableError, match="Is a directory"):
        read_column(str(tmp_path), "pay")


def test_an_empty_file_without_a_header_has_no_records(tmp_path):
    """As a file whose only record was removed."""
    path = write(tmp_path, "")
    for column in (None, "1", "7"):
        assert read_column(path, column, Format(header=False)).shape == (0,)
    for column in ("0", "pay"):
        with pytest.raises(TableError, match=f"a number from 1, not '{column}'"):
            read_column(path, column, Format(header=False))


@pytest.mark.parametrize("distinct", [3, 5000])
def test_few_and_many_distinct_keys_of_parquet(tmp_path, distinct):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    whole = [None if i % 7 == 0 else (i * 31) % distinct for i in range(9000)]
    texts = [None if cell is None else f"k{cell}" for cell in whole]
    parquet.write_table(arrow.table({"whole": arrow.array(whole), "text": arrow.array(texts)}), tmp_path / "x.parquet")
    for name, wanted in (("whole", whole), ("text", texts)):
        [(found,)] = blocks(str(tmp_path / "x.parquet"), [WantedColumn(name, text=True)])
        assert found.tolist() == wanted
        assert set(map(type, found)) == set(map(type, wanted))


@pytest.mark.parametrize("encode", [lambda cells: cells, lambda cells: cells.dictionary_encode()])
def test_texts_of_parquet_that_are_not_utf8(tmp_path, encode):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    ends = arrow.py_buffer(np.array([0, 1, 2, 3, 3], np.int32).tobytes())
    cells = arrow.Array.from_buffers(arrow.string(), 4, [None, ends, arrow.py_buffer(b"a\xffb")])
    parquet.write_table(arrow.table({"name": encode(cells)}), tmp_path / "x.parquet")
    [(found,)] = blocks(str(tmp_path / "x.parquet"), [WantedColumn("name", text=True)])
    assert found.tolist() == ["a", "\udcff", "b", ""]


def test_several_columns_need_a_name(tmp_path):
    with pytest.raises(TableError, match="2 columns: name one with --column"):
        read_column(write(tmp_path, "a,b\n1,2\n"), None)


class TestParquet:
    def write(self, folder, columns):
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table(columns), folder / "x.parquet")
        return str(folder / "x.parquet")

    def test_read(self, tmp_path):
        columns = {"a": [1, None, 2**53], "b": [0.5, None, NAN], "c": ["secret"] * 3}
        path = self.write(tmp_path, columns)
        np.testing.assert_array_equal(read_column(path, "a"), [1, NAN, 2**53])
        np.testing.assert_array_equal(read_column(path, "b"), [0.5, NAN, NAN])
        for column, message in (("c", "does not hold numbers"), ("d", "no column 'd'"), (None, "name a column")):
            with pytest.raises(TableError, match=message) as error:
                read_column(path, column)
            assert "secret" not in str(error.value)

    def test_two_of_a_name(self, tmp_path):
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        table = arrow.Table.from_arrays([arrow.array([1.0])] * 3, ["a", "b", "a"])
        parquet.write_table(table, tmp_path / "x.parquet")
        with pytest.raises(TableError, match=r"several columns in .* are named 'a'"):
            read_column(str(tmp_path / "x.parquet"), "a")
        assert read_column(str(tmp_path / "x.parquet"), "b").tolist() == [1]

    def test_texts_and_integers_keep_their_type(self, tmp_path):
        arrow = pytest.importorskip("pyarrow")
        words = arrow.array(["x", None, "x"])
        path = self.write(tmp_path, {"a": [1, None, 3], "b": words, "c": words.dictionary_encode(), "d": [0.5] * 3})
        [found] = blocks(path, [WantedColumn(name, text=True) for name in "abc"])
        assert [column.tolist() for column in found] == [[1, None, 3], ["x", None, "x"], ["x", None, "x"]]
        assert [schema_type(path, name, text=True) for name in "abc"] == ["integer", "text", "text"]
        with pytest.raises(TableError, match="column 'd' does not hold texts or integers"):
            next(blocks(path, [WantedColumn("d", text=True)]))

    def test_only_column_and_no_rows(self, tmp_path):
        arrow = pytest.importorskip("pyarrow")
        assert read_column(self.write(tmp_path, {"a": [1.0, 2.0]}), None).tolist() == [1, 2]
        assert read_column(self.write(tmp_path, {"a": arrow.array([], arrow.float32())}), "a").shape == (0,)

    def test_broken(self, tmp_path):
        pytest.importorskip("pyarrow")
        with pytest.raises(TableError, match="cannot read"):
            read_column(write(tmp_path, b"no parquet", "x.parquet"), "a")
        with pytest.raises(TableError, match="cannot read"):
            read_column(str(tmp_path / "nowhere.parquet"), "a")


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.parquet"])
def test_a_long_file_is_read_in_chunks(tmp_path, monkeypatch, name):
    x = np.arange(150_000) / 8
    if name.endswith("parquet"):
        arrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        path = str(tmp_path / name)
        parquet.write_table(arrow.table({"pay": x}), path)
    else:
        path = write(tmp_path, "pay\n" + "".join(f"{value}\n" for value in x), name)
    assert isinstance(open_column(path, "pay"), np.ndarray)
    monkeypatch.setattr("dpfast.tables.files.IN_MEMORY", 1000)
    chunks = open_column(path, "pay")
    for _ in range(2):
        np.testing.assert_array_equal(np.concatenate(list(chunks)), x)
    with pytest.raises(TableError, match="no column 'rent'"):
        open_column(path, "rent")


@pytest.mark.parametrize("bar", ["tqdm", None])
def test_progress_on_a_terminal(tmp_path, monkeypatch, bar):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    if bar:
        pytest.importorskip(bar)
    else:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    path = write(tmp_path, "pay\n" + "1\n" * 200_000)
    assert read_column(path, "pay", progress=True).sum() == 200_000
    assert "reading" in terminal.getvalue()
    assert "%" in terminal.getvalue()
