"""Grids: values of every container become codes exactly, one record at a time."""

import copy
import datetime
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpfast import Grid
from dpfast._kernels import _grid, _select
from dpfast.core.grid import MAX_SIZE
from tests.cases import every
from tests.reference import grid as reference

pytestmark = pytest.mark.kernel

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, np.float32, np.float64]
SPECIAL = [math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, -5e-324, 2.2e-308, 1e308, -1e308, 0.5, -0.5, 1.5, 2.5]


@st.composite
def grids(draw):
    """Grids of every step from 2**-1074 up, near zero and far from it."""
    exponent = draw(st.integers(-1074, 960) | st.integers(-6, 66) | st.integers(-1074, -1060))
    step = math.ldexp(1.0, exponent)
    first = draw(st.integers(-(2**53), 2**53) | st.integers(-20, 20))
    width = draw(st.integers(1, 40) | st.integers(1, MAX_SIZE - 1))
    last = min(first + width, 2**53)
    assume(first < last)
    missing = draw(st.none() | st.floats(allow_nan=False, allow_infinity=False))
    return Grid(first * step, last * step, step=step, missing=missing)


def near(grid):
    """Values at the points, halfway between them, and beside those."""

    def value(offset, quarters):
        return float((Fraction(grid.first + offset) + Fraction(quarters, 4)) * Fraction(grid.step))

    offsets = st.integers(-2, min(grid.size + 1, 50)) | st.integers(max(grid.size - 50, 0), grid.size + 1)
    points = st.builds(value, offsets, st.integers(0, 3))
    ways = (lambda x: x, lambda x: math.nextafter(x, math.inf), lambda x: math.nextafter(x, -math.inf))
    return st.builds(lambda x, way: way(x), points, st.sampled_from(ways))


@given(st.data(), grids())
def test_float64_is_exact(data, grid):
    x = data.draw(st.lists(near(grid) | st.sampled_from(SPECIAL) | st.floats(), max_size=12))
    assert grid.encode(np.array(x, dtype=np.float64)).tolist() == reference.encode(x, grid)


@settings(max_examples=100)
@given(st.data(), grids(), st.sampled_from(FLOATS))
def test_short_floats_are_exact(data, grid, dtype):
    with np.errstate(over="ignore"):
        x = np.array(data.draw(st.lists(near(grid) | st.floats(), max_size=12)), dtype=np.float64).astype(dtype)
    assert grid.encode(x).tolist() == reference.encode([float(v) for v in x], grid)


@given(st.data(), st.sampled_from(INTEGERS), grids())
def test_integers_are_exact(data, dtype, grid):
    info = np.iinfo(dtype)
    least, most = int(info.min), int(info.max)
    nearby = near(grid).filter(math.isfinite).map(lambda x: min(max(int(x), least), most))
    x = data.draw(st.lists(st.integers(least, most) | st.sampled_from([least, most]) | nearby, max_size=12))
    assert grid.encode(np.array(x, dtype=dtype)).tolist() == reference.encode(x, grid)


@every("shift", [0, 1, 2, 11, 12, 62, 63, 64, 65, 100])
@every("dtype", [np.int64, np.uint64])
def test_sixty_four_bit_extremes(shift, dtype):
    """Bounds beyond 2**53, ties of every step."""
    step = 2.0**shift
    grid = Grid(-max(min(2.0**63, 2.0**51 * step), step), max(min(2.0**64, 2.0**51 * step) - step, step), step=step)
    info = np.iinfo(dtype)
    near_ends = [info.min, info.min + 1, info.max - 1, info.max]
    ties = [k * 2**shift + 2**shift // 2 + d for k in (-3, -2, 0, 1, 2, 2**10 + 1) for d in (-1, 0, 1)]
    big = [2**53 + 1, 2**62 + 2**10, 2**63 - 513, 2**64 - 1025, 2**53 + 8 + 3]
    x = sorted({int(v) for v in [*near_ends, *ties, *big] if info.min <= v <= info.max})
    assert grid.encode(np.array(x, dtype=dtype)).tolist() == reference.encode(x, grid)


def test_a_conversion_to_float64_would_round_twice():
    """Positive control: the reason for the exact path of 64-bit integers."""
    grid = Grid(0, 2.0**54, step=8)
    x = np.array([2**53 + 8 + 3, 2**53 + 24 + 3])
    assert grid.encode(x).tolist() == reference.encode(x.tolist(), grid)
    assert grid.encode(x.astype(np.float64)).tolist() != grid.encode(x).tolist()


def test_booleans():
    assert Grid(0, 1, step=1).encode(np.array([True, False, True])).tolist() == [1, 0, 1]
    assert Grid(0, 1, step=1).encode(np.array([True, False, True])[::-2]).tolist() == [1, 1]


def test_special_values():
    grid = Grid(-2, 2, step=1, missing=1)
    assert grid.encode(SPECIAL).tolist() == reference.encode(SPECIAL, grid)
    assert grid.encode([math.nan, math.inf, -math.inf, -0.0, 5e-324, 0.5, 1.5]).tolist() == [3, 4, 0, 2, 2, 2, 4]


def test_every_nan_is_missing():
    """Quiet and signalling, of both signs and every width: no warning, one code."""
    words = {np.uint16: (0x7C01, 0x7E00, 0xFC01), np.uint32: (0x7F800001, 0x7FC00000, 0xFF800001)}
    words[np.uint64] = (0x7FF0000000000001, 0x7FF8000000000000, 0xFFF0000000000001)
    grid = Grid(0, 10, step=1, missing=7)
    for (unsigned, bits), dtype in zip(words.items(), FLOATS, strict=True):
        x = np.array(bits, dtype=unsigned).view(dtype)
        big_endian = np.array(bits, dtype=unsigned).byteswap().view(np.dtype(dtype).newbyteorder(">"))
        for values in (x, big_endian, np.ma.array(x), x[::-1], np.repeat(x, 2)[::2]):
            assert grid.encode(values).tolist() == [7, 7, 7]


@settings(max_examples=100)
@given(st.data(), grids(), st.sampled_from(["contiguous", "strided", "reversed", "read-only", "masked", "big-endian"]))
def test_layouts(data, grid, layout):
    x = np.array(data.draw(st.lists(near(grid) | st.sampled_from(SPECIAL), min_size=1, max_size=9)))
    expected = reference.encode(x.tolist(), grid)
    if layout == "strided":
        wide = np.full((len(x), 3), 1e9)
        wide[:, 1] = x
        values = wide[:, 1]
    elif layout == "reversed":
        values = x[::-1].copy()[::-1]
    elif layout == "read-only":
        values = x.copy()
        values.flags.writeable = False
    elif layout == "masked":
        mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(x), max_size=len(x))))
        values = np.ma.array(x, mask=mask)
        expected = reference.encode([None if m else v for v, m in zip(x.tolist(), mask, strict=True)], grid)
    elif layout == "big-endian":
        values = x.astype(">f8")
    else:
        values = x
    before = np.array(values, copy=True)
    assert grid.encode(values).tolist() == expected
    np.testing.assert_array_equal(np.array(values), before)


def test_unaligned_records():
    raw = np.zeros(8 * 4 + 1, np.uint8)
    x = raw[1:].view(np.float64)
    x[:] = [0, 1, 2, math.nan]
    assert Grid(0, 4, step=1, missing=3).encode(x).tolist() == [0, 1, 2, 3]


def test_lists():
    grid = Grid(0, 10, step=1, missing=5)
    assert grid.encode([1, None, 2.5, True, np.float32(3), math.inf]).tolist() == [1, 5, 2, 1, 3, 10]
    assert grid.encode((Fraction(7, 2), Decimal("4.5"), np.int8(-1))).tolist() == [4, 4, 0]
    assert grid.encode([]).tolist() == []


def test_a_huge_integer_in_a_list_is_beyond_a_bound():
    """It is data: no error may reveal it (T10)."""
    assert Grid(0, 10, step=1).encode([10**400, -(10**400), 3, None, Fraction(10**400)]).tolist() == [10, 0, 3, 0, 10]
    assert Grid(0, 10, step=1).encode([Decimal("sNaN"), 3, Decimal("-sNaN7"), Decimal("NaN")]).tolist() == [0, 3, 0, 0]


def test_long_doubles():
    grid, huge = Grid(0, 10, step=1), np.finfo(np.longdouble).max  # that of a double on Windows
    x = np.array([huge, -huge, np.longdouble("nan"), 3], dtype=np.longdouble)
    assert grid.encode(x).tolist() == [10, 0, 0, 3]


REFUSED = {
    "object": np.array([1, "secret"], dtype=object),
    "string": np.array(["secret"]),
    "bytes": np.array([b"1"]),
    "complex": np.array([1 + 2j]),
    "date": np.array(["2020-01-01"], dtype="M8[D]"),
    "duration": np.array([5], dtype="m8[s]"),
    "masked string": np.ma.array(["secret"]),
    "masked number as text": np.ma.array(["1"]),
    "masked complex": np.ma.array([1j]),
    "masked object": np.ma.array([1, "secret"], dtype=object),
    "masked date": np.ma.array(np.array([5], dtype="M8[s]")),
    "structured": np.array([(1,)], dtype=[("secret", int)]),
    "ragged list": [[1, 2], [3]],
    "ragged arrays": [np.array([1.0, 2.0]), np.array([3.0])],
    "none": None,
    "text": "secret",
    "dict": {"secret": 1},
    "generator": (i for i in range(3)),
}


@every("name", REFUSED)
def test_refused_types_are_type_errors_without_data(name):
    with pytest.raises(TypeError, match="values must hold numbers") as error:
        Grid(0, 1).encode(REFUSED[name])
    if name != "structured":
        assert "secret" not in str(error.value)


@every(
    "cell, code",
    [
        ("secret", 7),
        ("", 7),
        ("4", 4),
        (b"4", 4),
        ("inf", 10),
        (4j, 7),
        (np.complex64(4), 7),
        (np.datetime64(4, "D"), 7),
        (np.timedelta64(4, "D"), 7),
        (datetime.date(2020, 1, 1), 7),
        (object(), 7),
        ({"secret": 1}, 7),
        (Decimal("sNaN"), 7),
        (10**400, 10),
        (np.array(4.0), 4),
    ],
)
def test_a_list_cell_that_is_not_a_number_is_missing(cell, code):
    """No record can raise an error, nor change how another one is read."""
    grid = Grid(0, 10, step=1, missing=7)
    others = [1, 2.0, None, True, Decimal(5), 6.0]
    expected = [1, 2, 7, 1, 5, 6]
    assert grid.encode(others).tolist() == expected
    for i in range(len(others) + 1):
        assert grid.encode([*others[:i], cell, *others[i:]]).tolist() == [*expected[:i], code, *expected[i:]]
    assert grid.encode([cell]).tolist() == [code]


@every("values", [3.0, [[1.0, 2.0]], [["secret"]], np.zeros((2, 2)), np.ma.zeros((2, 2)), np.zeros((0, 3))])
def test_refused_shapes(values):
    with pytest.raises(ValueError, match="values must be one-dimensional, not of shape"):
        Grid(0, 1).encode(values)


class TestTables:
    """Columns of pandas and Arrow: null is missing, and a null changes its own record only."""

    @pytest.mark.host
    def test_pandas(self):
        pandas = pytest.importorskip("pandas")
        grid = Grid(0, 10, step=1, missing=7)
        for dtype, values, codes in [
            ("Int64", [1, None, 3], [1, 7, 3]),
            ("UInt8", [1, None, 255], [1, 7, 10]),
            ("Float64", [0.5, None, 3.5], [0, 7, 4]),
            ("boolean", [True, None, False], [1, 7, 0]),
            ("float64", [0.5, None, 3.5], [0, 7, 4]),
            ("int16", [1, 2, 3], [1, 2, 3]),
        ]:
            series = pandas.Series(values, dtype=dtype)
            assert grid.encode(series).tolist() == codes
            assert grid.encode(series.array).tolist() == codes
            assert grid.encode(series[series.notna()]).tolist() == [c for c in codes if c != 7]
        for wrong in (["secret"], pandas.to_datetime(["2020-01-01"]), pandas.Series([1, "secret"])):
            with pytest.raises(TypeError, match="must hold numbers") as error:
                grid.encode(pandas.Series(wrong))
            assert "secret" not in str(error.value)
        with pytest.raises(ValueError, match="one-dimensional"):
            grid.encode(pandas.DataFrame({"a": [1.0]}))

    @pytest.mark.host
    def test_arrow(self):
        arrow = pytest.importorskip("pyarrow")
        grid = Grid(0, 10, step=1, missing=7)
        for type_, values, codes in [
            (arrow.int64(), [1, None, 3], [1, 7, 3]),
            (arrow.uint64(), [1, None, 2**64 - 1], [1, 7, 10]),
            (arrow.float64(), [0.5, None, math.nan], [0, 7, 7]),
            (arrow.float32(), [0.5, None, math.inf], [0, 7, 10]),
            (arrow.float16(), [np.float16(0.5), None], [0, 7]),
            (arrow.bool_(), [True, None, False], [1, 7, 0]),
            (arrow.decimal128(3, 1), [Decimal("1.5"), None, Decimal("12.5")], [2, 7, 10]),
            (arrow.null(), [None, None], [7, 7]),
        ]:
            array = arrow.array(values, type_)
            assert grid.encode(array).tolist() == codes
            assert grid.encode(arrow.chunked_array([array[:1], array[1:]])).tolist() == codes
            present = [code for code, value in zip(codes, values, strict=True) if value is not None]
            assert grid.encode(array.drop_null()).tolist() == present
        for wrong in (arrow.array(["secret"]), arrow.array([5], arrow.timestamp("s"))):
            with pytest.raises(TypeError, match="must hold numbers") as error:
                grid.encode(wrong)
            assert "secret" not in str(error.value)

    @pytest.mark.host
    @pytest.mark.parametrize("make", ["pandas", "arrow", "masked", "list"])
    def test_a_null_does_not_move_other_records(self, make):
        """The reading of a nullable column may not depend on whether it has a null: it rounds large integers."""
        rows = [2**53 + 8 + 3, 2**53 + 24 + 3]
        if make == "pandas":
            pandas = pytest.importorskip("pandas")
            column = lambda x: pandas.Series(x, dtype="Int64")  # noqa: E731
        elif make == "arrow":
            column = pytest.importorskip("pyarrow").array
        elif make == "masked":
            column = lambda x: np.ma.array([0 if v is None else v for v in x], mask=[v is None for v in x])  # noqa: E731
        else:
            column = list
        grid = Grid(0, 2.0**54, step=8)
        assert grid.encode(column([*rows, 5])).tolist()[:2] == grid.encode(column([*rows, None])).tolist()[:2]


@given(st.data(), grids())
def test_decode_is_exact_and_inverts(data, grid):
    codes = [*data.draw(st.lists(st.integers(0, grid.size - 1), max_size=8)), 0, grid.size - 1]
    values = grid.decode(codes)
    assert [Fraction(v) for v in values.tolist()] == [(grid.first + c) * Fraction(grid.step) for c in codes]
    assert [grid.value(c) for c in codes] == values.tolist()
    assert grid.encode(values).tolist() == codes
    assert values[-2] == grid.lower
    assert values[-1] == grid.upper


@given(st.data(), grids())
def test_grid_and_window_kernels_agree(data, grid):
    """Encoding the window is the window of the encoded records, NaN, 64-bit integers and all."""
    dtype = data.draw(st.sampled_from([np.float64, np.int64, np.uint64]))
    if dtype is np.float64:
        records = near(grid) | st.sampled_from(SPECIAL)
    else:
        info = np.iinfo(dtype)
        least, most = int(info.min), int(info.max)
        nearby = near(grid).filter(math.isfinite).map(lambda x: min(max(int(x), least), most))
        records = st.sampled_from([least, least + 1, most - 1, most]) | nearby
    x = np.array(data.draw(st.lists(records, min_size=1, max_size=9)), dtype=dtype)
    parameters = {"lower": grid.lower, "upper": grid.upper, "step": grid.step, "missing": grid.missing}
    window = _select.window(x, 0, len(x) + 1, **parameters)
    assert grid.encode(window).tolist() == [0, *sorted(grid.encode(x).tolist()), grid.size - 1]


def test_kernel_wants_numbers():
    with pytest.raises(TypeError):
        _grid.encode(np.zeros(2, complex), np.zeros(2, np.int64), lower=0, upper=1, step=1, missing=0, first=0, shift=0)


def default_step(lower, upper):
    """By definition: the smallest power of two that satisfies both conditions."""
    far_too_small = max(math.frexp(max(abs(lower), abs(upper)))[1] - 60, -1074)
    step = Fraction(2) ** far_too_small
    while True:
        first, last = math.floor(Fraction(lower) / step), math.ceil(Fraction(upper) / step)
        if last - first < 2**32 and max(abs(first), abs(last)) <= 2**53:
            return float(step)
        step *= 2


@given(
    st.floats(-1e300, 1e300) | st.floats(-1e6, 1e6) | st.integers(-(2**60), 2**60).map(float),
    st.floats(5e-324, 1e300) | st.floats(1e-6, 1e6),
)
def test_default_step(lower, width):
    upper = lower + width
    assume(lower < upper)
    grid = Grid(lower, upper)
    assert grid.step == default_step(lower, upper)
    assert grid.size <= 2**32
    assert grid.lower <= lower < upper <= grid.upper
    assert Fraction(lower) - Fraction(grid.lower) < Fraction(grid.step)
    assert Fraction(grid.upper) - Fraction(upper) < Fraction(grid.step)
    assert Fraction(grid.upper) - Fraction(grid.lower) == (grid.size - 1) * Fraction(grid.step)


@every(
    "bounds, step, size",
    [
        ((0, 100), 2.0**-25, 100 * 2**25 + 1),
        ((0, 2.0**32 - 1), 1.0, 2**32),
        ((0, 2.0**32), 2.0, 2**31 + 1),
        ((2.0**60, 2.0**60 + 2**10), 2.0**8, 5),
        ((0, 5e-324), 5e-324, 2),
    ],
)
def test_default_step_known(bounds, step, size):
    grid = Grid(*bounds)
    assert (grid.step, grid.size) == (step, size)


def test_bounds_widen_outward():
    grid = Grid(-0.3, 0.3, step=0.25)
    assert (grid.lower, grid.upper, grid.size) == (-0.5, 0.5, 5)
    assert Grid(0.1, 0.2, step=1).size == 2


def test_missing():
    assert Grid(0, 10, step=1).missing == 0
    assert Grid(0, 10, step=1, missing=99).missing == 10
    assert Grid(0, 10, step=1, missing=-0.0).missing == 0
    assert Grid(0, 10, step=1, missing=2.5).encode([math.nan]).tolist() == [2]
    with pytest.raises(ValueError, match="missing must be finite"):
        Grid(0, 1, missing=math.nan)


@every(
    "arguments, message",
    [
        ({"lower": 1, "upper": 1}, "lower must be below upper, not lower=1, upper=1"),
        ({"lower": 2, "upper": 1}, "lower must be below upper"),
        ({"lower": -math.inf, "upper": 1}, "lower must be finite, not -inf"),
        ({"lower": 0, "upper": math.nan}, "upper must be finite, not nan"),
        ({"lower": 0, "upper": 10**400}, "upper must be finite"),
        ({"lower": 0, "upper": 1, "step": 0.3}, r"step must be a power of two, such as 2\*\*-2, not 0\.3"),
        ({"lower": 0, "upper": 1, "step": 0}, "step must be a power of two, not 0"),
        ({"lower": 0, "upper": 1, "step": -1}, "step must be a power of two, not -1"),
        ({"lower": 0, "upper": 1, "step": math.inf}, "step must be finite"),
        ({"lower": 0, "upper": 2.0**52, "step": 1}, r"2\*\*52 points.*use step=2\.0 or more, .*or narrower bounds"),
        ({"lower": 2.0**60, "upper": 2.0**60 + 256, "step": 1}, r"2\*\*53 steps from 0.*use step=256\.0 or more"),
        ({"lower": 0, "upper": 1, "step": 5e-324}, "or narrower bounds"),
        ({"lower": 0, "upper": 1.7976931348623157e308}, "use narrower bounds"),
    ],
)
def test_refused_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        Grid(**arguments)


@every("value", ["1", None, True, 1j, np.complex128(1), np.array(1.0), np.timedelta64(1, "s")])
def test_bounds_of_wrong_type(value):
    with pytest.raises(TypeError, match="upper must be a real number, not"):
        Grid(0, value)


@settings(max_examples=100)
@given(st.floats(-1e300, 1e300), st.floats(1e-300, 1e300), st.integers(-1074, 900))
def test_the_advice_of_the_error_works(lower, width, exponent):
    step, upper = math.ldexp(1.0, exponent), lower + width
    assume(lower < upper)
    try:
        grid = Grid(lower, upper, step=step)
    except ValueError as error:
        advised = float(str(error).split("use step=")[1].split(" ")[0])
        assert Grid(lower, upper, step=advised).size <= MAX_SIZE
        with pytest.raises(ValueError, match="narrower bounds"):
            Grid(lower, upper, step=advised / 2)
    else:
        assert grid.step == step


def test_grid_is_a_value():
    grid = Grid(0, 10, step=0.5)
    assert grid == Grid(0.0, 10.0, step=0.5, missing=0)
    assert grid != Grid(0, 10, step=0.5, missing=1)
    assert len({grid, Grid(0, 10, step=0.5), Grid(0, 10, step=1)}) == 2
    for twin in (pickle.loads(pickle.dumps(grid)), copy.deepcopy(grid)):
        assert twin == grid
        assert twin.encode([3.2]).tolist() == [6]
    with pytest.raises(AttributeError):
        grid.step = 1.0
    assert eval(repr(grid)) == grid
    assert eval(repr(Grid(0, 10, step=1, missing=3))).missing == 3
