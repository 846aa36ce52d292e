"""Rows and numbers of delimited text, against the standard library's csv and float."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest

from dpfast._kernels import _csv
from tests.reference import csv_columns as reference

pytestmark = pytest.mark.kernel


def read(data, columns, *, final=True, most=100, delimiter=","):
    """The cells of columns by the kernel, and how many bytes it takes; what it leaves to Python by the reference."""
    text = np.frombuffer(b"#" + data + b"#", np.uint8)
    places = np.empty((most, len(columns), 2), np.int64)
    wanted = np.array(columns, np.int64)
    count, after = _csv.rows(text, 1, 1 + len(data), ord(delimiter), final, wanted, places)
    places, hard = places[:count], np.empty(most, np.int64)
    found = []
    for j in range(len(columns) if count else 0):
        raw = [data[a:b] for a, b in places[:, j].tolist()]
        plain = [
            (reference.rows(cell, delimiter) or [[""]])[0][0] if cell[:1] == b'"' else cell.decode() for cell in raw
        ]
        texts = []
        left = hard[: _csv.texts(text, 1, places, j, {}, texts, hard, b"utf-8")].tolist()
        assert left == [i for i, value in enumerate(texts) if value is None]
        assert all(value in (None, expected) for value, expected in zip(texts, plain, strict=True))
        found.append(plain)
    return found, after - 1


TEXTS = [bytes(text) for size in range(1, 7) for text in itertools.product(b'",\n\r1', repeat=size)]


def test_rows_match_the_standard_library_for_all_short_texts():
    for data in TEXTS:
        expected = reference.rows(data)
        found, taken = read(data, [0, 2])
        assert taken == len(data)
        for cells, column in zip(found, (0, 2), strict=False):
            assert cells == reference.cells(expected, column), data


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "1"])
@pytest.mark.parametrize("columns", [[0], [1], [5], [0, 1, 2, 3]])
def test_rows_match_the_standard_library_for_long_texts(columns, delimiter):
    rng = random.Random(f"{columns}{delimiter}")
    parts = [
        '"',
        "\n",
        "\r\n",
        "\r",
        delimiter,
        delimiter,
        "a",
        "12345678",
        "x" * 15,
        " ",
        "\0",
        "\x0b",
        "\u2028",
        '""',
    ]
    for _ in range(700):
        data = "".join(rng.choices(parts, k=rng.randint(1, 60))).encode()
        found, taken = read(data, columns, delimiter=delimiter)
        assert taken == len(data)
        expected = [reference.cells(reference.rows(data, delimiter), column) for column in columns]
        assert found == expected


def test_rows_of_a_part_are_those_of_the_whole():
    """However a text is cut, the complete rows of the first part and those of the rest are the rows of the text."""
    rng = random.Random(2)
    for data in rng.sample(TEXTS, 2000):
        whole, _ = read(data, [0, 1])
        for cut in range(1, len(data)):
            first, taken = read(data[:cut], [0, 1], final=False)
            assert taken <= cut
            rest, _ = read(data[taken:], [0, 1])
            joined = [a + b for a, b in zip(first or [[], []], rest or [[], []], strict=True)]
            assert joined == (whole or [[], []]), (data, cut)


def test_at_most_as_many_rows_as_there_are_places():
    found, taken = read(b"1\n2\n3\n", [0], most=2)
    assert (found, taken) == ([["1", "2"]], 4)


# ---- numbers ----


def numbers(cells):
    """What the kernel reads in cells without delimiters and line ends, and which it leaves to Python."""
    data = b"".join(cell + b"," for cell in cells)
    text = np.frombuffer(data, np.uint8)
    ends = np.cumsum([len(cell) + 1 for cell in cells]) - 1
    places = np.array([[[end - len(cell), end]] for cell, end in zip(cells, ends, strict=True)], np.int64)
    out, hard = np.empty(len(cells)), np.empty(len(cells), np.int64)
    left = _csv.numbers(text, 0, places, 0, out, hard)
    return out, hard[:left].tolist()


def check(texts, most_hard):
    values, hard = numbers([text.encode() for text in texts])
    expected = np.array([reference.number(text) for text in texts])
    assert np.isnan(values[hard]).all()
    values[hard] = expected[hard]
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(np.signbit(values), np.signbit(expected) & ~np.isnan(expected))
    assert len(hard) <= most_hard * len(texts)


def test_all_short_words_are_read_as_float_reads_them():
    for alphabet, size in (("01.eE+-_ nai", 4), ("9.-e", 6), ("infINFanty ", 3), ("".join(map(chr, range(1, 160))), 2)):
        words = ["".join(word) for k in range(size + 1) for word in itertools.product(alphabet, repeat=k)]
        check([word for word in words if not word.startswith('"')], 1)


@pytest.mark.parametrize("digits", [1, 6, 15, 16, 17, 18, 19, 20, 25])
def test_decimals_are_read_to_the_nearest_double(digits):
    rng = random.Random(digits)
    texts = []
    for _ in range(4000):
        number = str(rng.randrange(10 ** (digits - 1), 10**digits))
        point = rng.randrange(digits + 1)
        exponent = rng.choice(["", "", f"e{rng.randrange(-12, 12)}", f"E+{rng.randrange(9):03d}"])
        texts.append(rng.choice(["", "-", "+", " ", "000"]) + number[:point] + "." + number[point:] + exponent)
    check(texts, 0 if digits <= 15 else 1)


def test_decimals_between_two_doubles_are_read_to_the_nearest_double():
    """Exact ties, and their neighbours in the last of up to 19 digits."""
    rng, texts = random.Random(1), []
    for _ in range(4000):
        mantissa, power = rng.randrange(2**52, 2**53), rng.randrange(-60, 12)
        tie = Fraction(2 * mantissa + 1) * Fraction(2) ** (power - 1)
        places = rng.randrange(0, 20)
        scaled = round(tie * 10**places)
        texts += [f"{scaled + d}e-{places}" for d in (-1, 0, 1)]
    texts += [f"{2**53 + 1 + d}" for d in range(-3, 4)] + [f"{2**63 + 2**10 + d}" for d in (-1, 0, 1)]
    check(texts, 1)


def test_doubles_as_python_prints_them_stay_in_the_kernel():
    rng = np.random.default_rng(3)
    check([repr(float(x)) for x in rng.normal(size=20_000)], 0)
    check([repr(float(x)) for x in rng.lognormal(10, 8, 20_000)], 0.01)
    check([f"{x:.2f}" for x in rng.lognormal(10, 2, 20_000)], 0)
    check(["NA", "N/A", "null", "None", "-", "", "unknown", "2-3"] * 10, 0.13)


def test_a_rounding_that_ignores_the_rest_is_rejected():
    """Control: some of the ties above are decided by the last digits alone."""
    rng = random.Random(1)
    mantissas = [rng.randrange(2**52, 2**53) for _ in range(100)]
    texts = [f"{2 * m + 1}.0000000001" for m in mantissas]
    check(texts, 1)
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal([float(text[: text.index(".")]) for text in texts], [float(t) for t in texts])


def test_texts():
    data = b'a,"b c","d""e","",\xff,"x"y,\n'
    text, wanted = np.frombuffer(data, np.uint8), np.arange(8)
    places = np.empty((1, 8, 2), np.int64)
    assert _csv.rows(text, 0, len(data), ord(","), True, wanted, places) == (1, len(data))
    found, hard, known = [], np.empty(1, np.int64), {"a": "A"}
    for j in range(8):
        cells = []
        left = _csv.texts(text, 0, places, j, known, cells, hard, b"utf-8")
        found += cells
        assert left == cells.count(None)
    assert found == ["A", "b c", None, "", "\udcff", None, "", ""]
    assert found[3] is found[6]
    assert known == {"a": "A", "b c": "b c", "": "", "\udcff": "\udcff"}
