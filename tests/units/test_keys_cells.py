"""Codes of Python objects, which a table finds by address, by ASCII bytes or by a call of the encoder."""

import math

import numpy as np
import pytest

from dpfast import keys
from dpfast.keys.cells import cell_bytes, text_bytes

pytestmark = pytest.mark.kernel


class Text(str):
    """A subclass of str."""


def objects(seed=0):
    """Cells of all kinds, equal ones as the same object and as different ones."""
    rng = np.random.default_rng(seed)
    pool = [
        "",
        "a",
        "a\0",
        "é",
        "\ud800",
        "x" * 255,
        "x" * 256,
        "x" * 257,
        "x" * 300,
        b"a",
        b"",
        1,
        True,
        1.0,
        -1,
        2**70,
    ]
    pool += [None, math.nan, 0.5, Text("a"), np.str_("a"), np.int8(1), np.float64(1.0), object(), "\x03a"]
    pool += [f"key {i}" for i in range(3000)]
    cells = [pool[i] for i in rng.integers(0, len(pool), 20_000)]
    return [type(cell)(cell) if isinstance(cell, str) and i % 3 else cell for i, cell in enumerate(cells)]


def reference(cells, encode):
    """The codes by a dict of the encoded cells."""
    places = {}
    codes = [-1 if (made := encode(cell)) is None else places.setdefault(made, len(places)) for cell in cells]
    return np.array(codes)


def test_codes_of_objects():
    cells = objects()
    codes, table = keys.read(cells)
    np.testing.assert_array_equal(codes, reference(cells, cell_bytes))
    np.testing.assert_array_equal(table.find(cells), codes)
    np.testing.assert_array_equal(table.find(list(map(str, range(10)))), np.full(10, -1))


@pytest.mark.host
def test_codes_of_text():
    cells = objects(1)
    column = np.array([cell if text_bytes(cell) is not None else None for cell in cells], object)
    pandas = pytest.importorskip("pandas")
    labels = pandas.Series([str(c) if c is not None else None for c in column], dtype=pandas.StringDtype("python"))
    codes, _ = keys.read(labels)
    np.testing.assert_array_equal(codes, reference(column, text_bytes))


def test_more_objects_than_are_remembered():
    """2**16 addresses are remembered: others replace them, and the codes stay those of the values."""
    cells = [f"{i % 70_000}" for i in range(150_000)]
    np.testing.assert_array_equal(keys.read(cells)[0], np.arange(150_000) % 70_000)


def test_addresses_that_are_used_again():
    """Cells of one call are freed before the next, whose cells may have their addresses."""
    table = keys.KeyTable()
    for _ in range(3):
        np.testing.assert_array_equal(table.add([f"{i}" for i in range(1000)]), np.arange(1000))
        np.testing.assert_array_equal(table.add([f"{i + 500}" for i in range(1000)]), np.arange(500, 1500))


@pytest.mark.parametrize("width", [1, 2])
def test_public_keys_are_found_like_those_of_a_lookup(width):
    column = ["b", "z", "a", None, "b"]
    public = ["a", "b"] if width == 1 else [("a", 1), ("b", 1)]
    labels = column if width == 1 else (column, [1, 1, 1, 1, 2])
    expected = [1, -1, 0, -1, 1 if width == 1 else -1]
    np.testing.assert_array_equal(keys.lookup(labels, public), expected)
    empty = [] if width == 1 else ([], [])
    np.testing.assert_array_equal(keys.public_table(public, empty).find(labels), expected)


@pytest.mark.parametrize(
    ("column", "wrong"), [(np.array(["a"]), [1]), (np.array([1]), ["a"]), (np.array([b"a"]), ["a"])]
)
def test_public_keys_of_another_kind(column, wrong):
    with pytest.raises(TypeError, match=r"public keys must be [a-z]*, like the keys of the records"):
        keys.lookup(column, wrong)


@pytest.mark.host
def test_a_categorical_without_categories_is_all_missing():
    pandas = pytest.importorskip("pandas")
    for dtype in ("int64", "str", "object"):
        column = pandas.Series(pandas.Categorical([None, None], categories=pandas.Index([], dtype=dtype)))
        for public in (["a"], [1], [b"a"]):
            np.testing.assert_array_equal(keys.lookup(column, public), [-1, -1])
