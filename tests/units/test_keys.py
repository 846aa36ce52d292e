import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64, Generator

from dpfast import keys
from dpfast._kernels import _keys
from dpfast.keys.cells import cell_bytes, cell_of
from tests.cases import every

pd, pl, pa = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))

pytestmark = [pytest.mark.kernel, pytest.mark.host]

TEXT = ["b", "a", None, "b", "ç漢😀", "", "a\0b", "abcdefgh", "abcdefghi", "abcdefgh\0", "\ud800"]
PLAIN = [key for key in TEXT if key != "\ud800"]


def slow(cells):
    """Codes and distinct keys by a dictionary, types kept apart."""
    seen, codes = {}, []
    for cell in cells:
        if isinstance(cell, (float, np.floating)):
            cell = float(cell)
            cell = int(cell) if cell.is_integer() else None if cell != cell else cell
        if isinstance(cell, (bool, np.bool_, np.integer)):
            cell = int(cell)
        known = isinstance(cell, (int, float, str, bytes))
        codes.append(seen.setdefault((type(cell), cell), len(seen)) if known else -1)
    return codes, [key for _, key in seen]


COLUMNS = {
    "list": lambda x: x,
    "objects": lambda x: np.array(x, object),
    "pandas": pd.Series,
    "pandas objects": lambda x: pd.Series(x, dtype=object),
    "pandas Arrow": lambda x: pd.Series(x, dtype=pd.ArrowDtype(pa.string())),
    "pandas index": pd.Index,
    "polars": pl.Series,
    "polars categorical": lambda x: pl.Series(x).cast(pl.Categorical),
    "Arrow": pa.array,
    "large": lambda x: pa.array(x, pa.large_string()),
    "view": lambda x: pa.array(x, pa.string_view()),
    "dictionary": lambda x: pa.array(x).dictionary_encode(),
    "chunked": lambda x: pa.chunked_array([x[:3], [], x[3:]]),
    "slice": lambda x: pa.array(["z", *x]).slice(1),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_text(name):
    codes, table = keys.read(COLUMNS[name](PLAIN))
    expected, distinct = slow(PLAIN)
    assert codes.tolist() == expected
    assert table.keys.tolist() == distinct
    assert table.values(table.order()).tolist() == sorted(distinct)
    assert table.find(["nowhere", "a"] if name in ("list", "objects") else pa.array(["nowhere", "a"])).tolist() == [
        -1,
        1,
    ]


def test_categories_without_records():
    column = pd.Series(pd.Categorical(["b", None, "a"], categories=["z", "b", "a"]))
    codes, table = keys.read(column)
    assert table.values(codes[[0, 2]]).tolist() == ["b", "a"]
    counts = keys.KeyCounts()
    counts.add(column)
    assert counts.sorted().keys().tolist() == ["a", "b"]


@every("cell", ["a", 5, 2.5, b"a", pd.Timestamp("2020"), pd.Interval(0, 1), (1, 2)])
def test_categories_that_pandas_guesses_from_records(cell):
    """Neither the dtype of the keys nor which public keys are accepted depends on the categories."""
    for cells in ([None], [cell]):
        column = pd.Series(pd.Categorical(cells))
        counts = keys.KeyCounts()
        counts.add(column)
        assert counts.sorted().keys().dtype == object
        for public in (["z"], [7], [b"z"]):
            assert keys.lookup(column, public).tolist() == [-1]


def test_fixed_width():
    text = np.array([key or "" for key in TEXT[:6]])
    codes, table = keys.read(text[::2])
    assert table.values(codes).tolist() == text[::2].tolist()
    swapped = text.astype(text.dtype.newbyteorder())
    assert keys.read(swapped)[1].keys.tolist() == keys.read(text)[1].keys.tolist()
    data = np.array([b"ab", b"a", b"", b"a"])
    codes, table = keys.read(data)
    assert (codes.tolist(), table.keys.tolist()) == ([0, 1, 2, 1], [b"ab", b"a", b""])
    beyond = np.array([0x110000, 97], np.uint32).view("U1")
    assert keys.read(beyond)[0].tolist() == [-1, 0]
    assert keys.read(np.array(["\ud800"]))[1].keys.tolist() == ["\ud800"]


def test_bytes_that_are_not_text():
    column = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"\xffa"))
    assert keys.read(column)[1].keys.tolist() == ["\udcff", "a"]
    same = pa.StringArray.from_buffers(
        2, pa.py_buffer(np.array([0, 1, 4], np.int32)), pa.py_buffer(b"\xff\xed\xb3\xbf")
    )
    codes, table = keys.read(same)
    assert (codes.tolist(), table.keys.tolist()) == ([0, 0], ["\udcff"])
    assert keys.read(pa.array([b"\xff", None, b"a"]))[1].keys.tolist() == [b"\xff", b"a"]
    assert keys.read(pa.array([b"ab", b"cd"], pa.binary(2)))[1].keys.tolist() == [b"ab", b"cd"]


INTEGERS = {
    "int64": np.array([5, -3, 5, 2**62]),
    "uint64": np.array([2**64 - 1, 0, 2**64 - 1, 7], np.uint64),
    "int8": np.array([5, -3, 5, 100], np.int8),
    "bool": np.array([True, False, True]),
    "big-endian": np.array([5, -3, 5], ">i4"),
    "strided": np.arange(12)[::-3],
    "pandas": pd.Series([5, -3, 5], dtype="Int16"),
    "polars": pl.Series([5, -3, 5]),
    "Arrow": pa.array([5, -3, 5], pa.int32()),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name):
    column = INTEGERS[name]
    codes, table = keys.read(column)
    expected, distinct = slow(column.to_pylist() if name == "Arrow" else list(column))
    assert codes.tolist() == expected
    assert table.keys.tolist() == distinct
    assert table.values(table.order()).tolist() == sorted(distinct)
    counts = keys.KeyCounts()
    counts.add(column)
    counts.add(column)
    assert dict(zip(counts.sorted().keys().tolist(), counts.sorted().counts.tolist(), strict=True)) == {
        key: 2 * expected.count(code) for code, key in enumerate(distinct)
    }


def test_missing_integers():
    for column in (
        pd.Series([5, 3, None]),
        pd.Series([5, 3, None], dtype="Int8"),
        pl.Series([5, 3, None]),
        pa.array([5, 3, None]),
        np.ma.array([5, 3, 7], mask=[0, 0, 1]),
        np.array([5.0, 3.0, np.nan]),
    ):
        codes, table = keys.read(column)
        assert codes.tolist() == [0, 1, -1]
        assert table.keys.tolist() == [5, 3]


def test_floats():
    values = np.array([0.5, 2.0**63, -np.inf, 0.0, -0.0, np.nan, -1.5, np.inf, 5e-324, 0.5, -1e300, 3])
    signalling = np.array([0x7FF0000000000001], np.int64).view(np.float64)
    for column in (
        values,
        pd.Series(values),
        pd.Series(values, dtype="Float64"),
        pd.Series(values, dtype=pd.ArrowDtype(pa.float64())),
        pl.Series(values),
        pa.array(values),
        np.append(values, signalling)[:-1],
    ):
        codes, table = keys.read(column)
        assert codes.tolist() == [0, 1, 2, 3, 3, -1, 4, 5, 6, 0, 7, 8]
        assert table.keys.dtype == np.float64
        assert table.values(table.order()).tolist() == sorted(set(values[values == values].tolist()))
        assert keys.lookup(column, [3, 0.5, 2**63]).tolist() == [1, 2, -1, -1, -1, -1, -1, -1, -1, 1, -1, 0]
    assert keys.read(signalling)[0].tolist() == [-1]
    for single in (np.float16, np.float32):
        assert keys.read(np.array([0.1, 0.5], single))[1].keys.tolist() == [float(single(0.1)), 0.5]
    assert keys.lookup(np.array([0.5, 1.0]), [1, 0.5]).tolist() == [1, 0]
    for wrong, error in (([2**53 + 1], ValueError), ([2**2000], ValueError), (["a"], TypeError)):
        with pytest.raises(error, match="public keys must be"):
            keys.lookup(values, wrong)
    with pytest.raises(TypeError, match="keys must be numbers, text or bytes, or a list of other keys, not longdouble"):
        keys.read(np.array([1], np.longdouble))


def test_floats_and_integers_together():
    table = keys.KeyTable()
    assert table.add(np.array([5, 3])).tolist() == [0, 1]
    assert table.add(np.array([0.5, 3.0, np.nan])).tolist() == [2, 1, -1]
    assert table.add([Decimal("0.5"), Fraction(10, 2)]).tolist() == [2, 0]
    assert table.keys.tolist() == [5, 3, 0.5]
    counts = keys.KeyCounts()
    for column in (np.array([0.5, 1.0]), np.array([1, 2]), [0.5, "a"]):
        counts.add(column)
    assert counts.sorted().keys().tolist() == [0.5, 1, 2, "a"]
    assert counts.sorted().counts.tolist() == [2, 2, 1, 1]


NUMBERS = (
    st.integers()
    | st.floats()
    | st.fractions(max_denominator=10**6)
    | st.decimals(-(10**20), 10**20, places=3)
    | st.sampled_from([Decimal("1e400"), 10**400, Decimal("-1e-400"), Decimal("nan"), Fraction(1, 3)])
    | st.floats(width=32).map(np.float32)
    | st.sampled_from([np.longdouble(1) / 3, np.int8(1), np.uint64(2**64 - 1), True, np.bool_(False)])
)


def stepped(key):
    """What decides the order of a key: a number in steps of 2**-64."""
    return key if isinstance(key, bytes) or key in (np.inf, -np.inf) else math.floor(Fraction(key) * 2**64)


@given(st.lists(NUMBERS))
@settings(max_examples=300, deadline=None)
def test_equal_numbers_are_the_same_key(cells):
    """As in a dictionary of Python."""
    present = [cell for cell in cells if cell == cell]
    exact = {}
    for cell in present:
        value = Fraction(*cell.as_integer_ratio()) if isinstance(cell, np.longdouble) else cell
        exact.setdefault(value if np.ndim(value) or not isinstance(value, np.generic) else value.item(), None)
    codes, table = keys.read(cells)
    assert [code < 0 for code in codes.tolist()] == [bool(cell != cell) for cell in cells]
    assert table.keys.tolist() == list(exact)
    steps = [stepped(key) for key in table.values(table.order()).tolist()]
    assert steps == sorted(steps)


def test_decimals_of_any_size():
    """Their ratios would not fit into memory."""
    cells = [Decimal("1E+999999"), Decimal("10E+999998"), Decimal("-1E-999999"), Decimal("1E+99999"), Decimal("-0E+99")]
    codes, table = keys.read(cells)
    assert codes.tolist() == [0, 0, 1, 2, 3]
    assert [str(key) for key in table.keys.tolist()] == ["1E+999999", "-1E-999999", "1E+99999", "0"]


ID = UUID("12345678123456781234567812345678")
ZONE = timezone(timedelta(hours=5))
OTHERS = [
    ID,
    date(2020, 2, 29),
    datetime(2020, 2, 29),
    datetime(2020, 2, 29, 1, 2, 3, 4),
    datetime(2020, 2, 29, tzinfo=UTC),
    time(1, 2, 3),
    timedelta(days=-3, microseconds=1),
    IPv4Address("10.0.0.1"),
    IPv6Address("::1"),
    ("ann", 1),
    ("ann", "1"),
    ("ann\0", b"\0\0", (1, ("x",))),
    ("ann", "\0", b"\0\0"),
    (),
    ("",),
    ("", ""),
    Decimal("0.1"),
    0.1,
    Fraction(1, 3),
    np.inf,
    -np.inf,
    np.datetime64("2020-02-29T00:00:00.000000001", "ns"),
    np.timedelta64(1, "ns"),
]


def test_other_keys():
    for cells in (OTHERS, np.array([*OTHERS, None], object)[:-1], pd.Series([*OTHERS, None], dtype=object).iloc[:-1]):
        codes, table = keys.read(cells)
        assert codes.tolist() == list(range(len(OTHERS)))
        found = table.keys.tolist()
        assert found == OTHERS
        assert [type(key) for key in found] == [type(key) for key in OTHERS]
        assert keys.lookup(cells, OTHERS[::-1]).tolist() == list(range(len(OTHERS)))[::-1]
        assert sorted(table.order().tolist()) == codes.tolist()


def test_equal_keys_of_different_types():
    for first, *others in (
        (datetime(2020, 1, 1, 5, tzinfo=ZONE), datetime(2020, 1, 1, tzinfo=UTC), pd.Timestamp("2020-01-01", tz="UTC")),
        (
            datetime(2020, 1, 1),
            pd.Timestamp("2020-01-01"),
            np.datetime64("2020-01-01", "s"),
            np.datetime64("2020", "ns"),
        ),
        (date(2020, 1, 1), np.datetime64("2020-01-01")),
        (timedelta(seconds=1), pd.Timedelta(seconds=1), np.timedelta64(1, "s"), np.timedelta64(10**9, "ns")),
        (pd.Timestamp("2020-01-01T00:00:00.000000001"), np.datetime64("2020-01-01T00:00:00.000000001")),
        (pd.Timedelta(1, "ns"), np.timedelta64(1, "ns")),
        (("a", 1), ["a", 1.0], ("a", True)),
        (b"a", bytearray(b"a")),
    ):
        assert keys.read([first, *others])[0].tolist() == [0] * (1 + len(others))
    missing = [pd.NaT, np.datetime64("NaT"), np.timedelta64("NaT"), Decimal("nan"), Decimal("sNaN"), ("a", None), 1j]
    missing += [[float("nan")], datetime(1, 1, 1, tzinfo=ZONE), object(), np.complex128(1), {"a"}, np.float32("nan")]
    assert keys.read(missing)[0].tolist() == [-1] * len(missing)


@given(st.binary())
@settings(max_examples=500, deadline=None)
def test_any_bytes_are_a_key(data):
    """Of a damaged state."""
    cell_of(data)
    cell_of(bytes([len(data) % 14]) + data)


class Odd:
    __hash__ = None

    def __eq__(self, other):
        raise ValueError

    @property
    def __class__(self):
        raise ValueError


class Shouting(str):
    __hash__ = None

    def __eq__(self, other):
        raise ValueError

    def encode(self, *args):
        raise ValueError


def test_objects():
    cells = [1, True, 1.0, "1", b"1", np.int64(1), 1.5, None, np.nan, Odd(), pd.NA, [1], 2**70, -(2**70), np.float32(7)]
    codes, table = keys.read(cells)
    assert codes.tolist() == [0, 0, 0, 1, 2, 0, 3, -1, -1, -1, -1, 4, 5, 6, 7]
    assert table.keys.tolist() == [1, "1", b"1", 1.5, (1,), 2**70, -(2**70), 7]
    assert table.values(table.order()).tolist() == [-(2**70), 1, 1.5, 7, 2**70, "1", b"1", (1,)]
    assert keys.read(["x", Shouting("x")])[0].tolist() == [0, 0]


@given(st.lists(st.integers() | st.text() | st.binary() | st.none() | st.floats()))
@settings(max_examples=200, deadline=None)
def test_any_objects(cells):
    codes, table = keys.read(cells)
    expected, distinct = slow(cells)
    assert codes.tolist() == expected
    found = table.keys.tolist()
    assert [(type(a), a) for a in found] == [(type(a), a) for a in distinct]
    kind = {int: 0, float: 0, str: 1, bytes: 2}

    def place(key):
        return kind[type(key)], key.encode("utf-8", "surrogatepass") if type(key) is str else stepped(key)

    assert [place(key) for key in table.values(table.order()).tolist()] == sorted(map(place, distinct))
    assert all(cell_of(cell_bytes(key)) == key for key in distinct)


@given(st.lists(st.lists(st.sampled_from([b"\0", b"a", b"abcdefgh"]), max_size=5)))
@settings(max_examples=200, deadline=None)
def test_order_of_bytes(parts):
    cells = pa.array([b"".join(part) for part in parts], pa.binary())
    table = keys.read(cells)[1]
    assert table.values(table.order()).tolist() == sorted(set(cells.to_pylist()))


def test_many_keys():
    rng = Generator(PCG64(1))
    x = rng.integers(0, 50_000, 200_000)
    codes, table = keys.read(x)
    assert np.array_equal(table.keys[codes], x)
    assert len(table) == len(np.unique(x))
    codes, table = keys.read(pa.array(x).cast("string"))
    assert np.array_equal(table.keys[codes].astype(np.int64), x)


def mixed(x):
    """The last steps of SplitMix64."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def test_keys_of_equal_hash_are_different():
    """16 bytes each, whose hashes with seed 0 are equal: the second word undoes the difference of the first."""
    cells = []
    for first in range(500):
        product = (mixed(16) ^ first) * 0x9E3779B97F4A7C15
        second = product % 2**64 ^ product >> 64
        cells.append(first.to_bytes(8, "little") + second.to_bytes(8, "little"))
    records, codes = np.frombuffer(b"".join(2 * cells), np.uint8).reshape(1000, 16), np.empty(1000, np.int64)
    spans = _keys.Spans(0)
    spans.group_fixed(records, "rows", None, codes, True, False)
    assert np.array_equal(codes, np.tile(np.arange(500), 2))


def test_several_columns():
    frame = pd.DataFrame({"a": ["x", "y", "x", None, "x"], "b": [1, 2, 1, 3, 2]})
    for columns in (frame, pl.DataFrame(frame), pa.table(frame), (frame.a, frame.b), (list(frame.a), frame.b)):
        codes, table = keys.read(columns)
        assert codes.tolist() == [0, 1, 0, -1, 2]
        assert [part.tolist() for part in table.values(table.order())] == [["x", "x", "y"], [1, 2, 2]]
    matrix = np.array([[1, 2], [3, 4], [1, 2]])
    assert keys.read(matrix)[0].tolist() == [0, 1, 0]
    assert keys.read(matrix[:, :1])[1].keys.tolist() == [1, 3]
    other = keys.read(pd.DataFrame({"a": ["q", "x"], "b": [9, 1]}))[1]
    codes, table = keys.read(frame)
    assert table.merge(other).tolist() == [3, 0]
    assert [part.tolist() for part in table.keys] == [["x", "y", "x", "q"], [1, 2, 2, 9]]


def test_the_levels_of_an_index():
    codes, table = keys.read(pd.MultiIndex.from_tuples([("x", 1), ("y", 2), ("x", 1)]))
    assert codes.tolist() == [0, 1, 0]
    assert [part.tolist() for part in table.keys] == [["x", "y"], [1, 2]]


def test_objects_of_polars():
    """Equal texts at different addresses are one key."""
    column = pl.Series(["ab", "".join(["a", "b"]), 1, None, "1"], dtype=pl.Object)
    codes, table = keys.read(column)
    assert (codes.tolist(), table.keys.tolist()) == ([0, 0, 1, -1, 2], ["ab", 1, "1"])


@pytest.mark.parametrize("cells", [[5, 7], ["x", "y"]])
def test_dictionaries_of_dictionaries(cells):
    inner = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(cells))
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), inner)
    counts = keys.KeyCounts()
    counts.add(column)
    assert (counts.sorted().keys().tolist(), counts.sorted().counts.tolist()) == (cells, [2, 1])


def test_empty_bytes_without_a_buffer():
    spans = _keys.Spans(0)
    codes = np.empty(2, np.int64)
    spans.group_offsets(np.zeros(3, np.int32), np.zeros(0, np.uint8), None, codes, True, False)
    assert codes.tolist() == [0, 0]


def test_columns_of_several_kinds():
    table = keys.KeyTable()
    assert table.add(np.array([1, 2])).tolist() == [0, 1]
    assert table.add(["a", 2, None]).tolist() == [2, 1, -1]
    assert table.add(np.array([2**63, 1], np.uint64)).tolist() == [3, 0]
    assert table.keys.tolist() == [1, 2, "a", 2**63]
    counts = keys.KeyCounts()
    for column in (np.array([1, 1, 2]), pa.array(["a"]), np.array([2], np.uint64), pa.nulls(3)):
        counts.add(column)
    assert (counts.sorted().keys().tolist(), counts.sorted().counts.tolist()) == ([1, 2, "a"], [2, 2, 1])


def test_merged_tables():
    one, other = keys.read(["a", "b"])[1], keys.read(["c", "a"])[1]
    assert one.merge(other).tolist() == [2, 0]
    assert one.keys.tolist() == ["a", "b", "c"]
    assert one.merge(keys.KeyTable()).tolist() == []


@pytest.mark.parametrize(
    "column", [COLUMNS["Arrow"](PLAIN), PLAIN, np.arange(30) % 7, pa.array(PLAIN).dictionary_encode()]
)
def test_counts_do_not_depend_on_chunks(column):
    whole = keys.KeyCounts()
    whole.add(column)
    parts = keys.KeyCounts()
    for piece in (column[6:], column[:2], column[2:6]):
        one = keys.KeyCounts()
        one.add(piece)
        parts.merge(one)
    assert whole.sorted().keys().tolist() == parts.sorted().keys().tolist()
    assert whole.sorted().counts.tolist() == parts.sorted().counts.tolist()
    assert whole.sorted().counts.sum() == (keys.read(column)[0] >= 0).sum()


@every(
    "column",
    [
        lambda places: places,
        lambda places: np.ma.array(places, mask=places == 3),
        lambda places: places.astype("U6"),
        lambda places: np.array([b"a", None, b"", b"abc", b"d"], object)[places % 5],
        lambda places: pa.array([f"key {i}" if i % 7 else None for i in places.tolist()])[5:],
        lambda places: (places, places.astype("S3")),
    ],
)
def test_threads_find_the_same_places(column, monkeypatch):
    """Of pieces of few records, also where the first ones are left out, keys are missing or not in the table."""
    monkeypatch.setattr("dpfast.keys.table._PIECE", 64)
    rng = np.random.default_rng(0)
    table = keys.KeyTable()
    table.add(column(rng.integers(0, 50, 100)))
    looked_up = column(rng.integers(0, 99, 5000))
    one = table.find(looked_up)
    assert len(set(one.tolist())) > 3
    for threads in (2, 3, 1000):
        np.testing.assert_array_equal(table.find(looked_up, threads=threads), one)


class TestLookup:
    def test_places(self):
        assert keys.lookup(["b", "z", "a", None], ["a", "b"]).tolist() == [1, -1, 0, -1]
        assert keys.lookup(pa.array(["b", None]), np.array(["a", "b"])).tolist() == [1, -1]
        assert keys.lookup(np.array([3, 5, 4]), [5, 3]).tolist() == [1, 0, -1]
        assert keys.lookup(np.array([3, 5], np.uint64), pd.Series([5, 3])).tolist() == [1, 0]
        assert keys.lookup([1, "1"], np.array(["1"])).tolist() == [-1, 0]
        assert keys.lookup(pa.nulls(2), ["a"]).tolist() == [-1, -1]
        frame = pd.DataFrame({"a": ["x", "y"], "b": [1, 2]})
        assert keys.lookup(frame, [("y", 2), ("x", 2)]).tolist() == [-1, 0]
        assert keys.lookup(frame, frame[::-1]).tolist() == [1, 0]

    @every(
        "column, public, error, message",
        [
            (["a"], ["a", "a"], ValueError, "must be distinct"),
            (["a"], ["a", None], ValueError, "must not be missing"),
            (pa.array(["a"]), [1], TypeError, "must be text"),
            (np.array([1]), ["a"], TypeError, "must be integers"),
            (np.array([1], np.int64), [2**70], ValueError, "in the range"),
            (["a"], "a", TypeError, "must be a sequence"),
            (np.ones((2, 2), int), [(1, 2, 3)], ValueError, "tuples of 2 keys"),
            (np.ones((2, 2), int), np.ones((2, 3), int), ValueError, "must have 2 columns"),
        ],
    )
    def test_refused(self, column, public, error, message):
        with pytest.raises(error, match=message):
            keys.lookup(column, public)


@every(
    "column, error, message",
    [
        (
            np.array(["2020"], "datetime64[Y]"),
            TypeError,
            "numbers, text or bytes, or a list of other keys, not datetime64",
        ),
        (np.array([1j]), TypeError, "not complex128"),
        (pa.array([1.5]).cast(pa.decimal128(5, 2)), TypeError, "not Arrow's decimal"),
        (pd.Series(pd.arrays.SparseArray([1, 2, 0])), TypeError, "not dtype Sparse"),
        ("text", TypeError, "a column of keys, not str"),
        ({"a"}, TypeError, "a column of keys, not set"),
        (np.zeros((2, 2, 2)), ValueError, "one or two dimensions"),
        (([1], [1, 2]), ValueError, "equally long"),
        (np.zeros((2, 0)), ValueError, "at least one column"),
    ],
)
def test_refused(column, error, message):
    with pytest.raises(error, match=message):
        keys.read(column)
