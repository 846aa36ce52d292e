"""Columns of pandas, polars and Arrow: copies only where needed, nulls by rule, outcomes independent of values."""

import array
import collections
import math
import re
import warnings
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from numpy.random import PCG64, Generator

import dpfast as dpf
from dpfast import local
from dpfast.core import containers
from tests.cases import every
from tests.outcomes import FUNCTIONS, ROWS_OF

GRID = dpf.Grid(0, 10, step=1, missing=7)
KINDS = ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]
X = np.random.default_rng(0).normal(5, 2, 1000)


class Exported:
    """An array of another Arrow library: the C data interface only."""

    def __init__(self, x, method="__arrow_c_array__"):
        setattr(type(self), method, lambda self, requested_schema=None: getattr(x, method)(requested_schema))


def exported(x, method):
    return type("Exported", (Exported,), {})(x, method)


def address(x):
    return x.__array_interface__["data"][0]


class TestPolars:
    polars = property(lambda self: pytest.importorskip("polars"))

    @pytest.mark.parametrize("kind", KINDS)
    def test_integers(self, kind):
        kind = getattr(self.polars, kind)
        for values, codes in ([1, 2, 3], [1, 2, 3]), ([1, None, 3], [1, 7, 3]), ([None, None], [7, 7]), ([], []):
            x = self.polars.Series(values, dtype=kind)
            assert GRID.encode(x).tolist() == codes
            assert containers.numbers("x", x).dtype == np.float64  # whether any is missing or not
            assert containers.declares_integers(x)

    @pytest.mark.parametrize("kind", ["Float32", "Float64"])
    def test_floats(self, kind):
        x = self.polars.Series([1.5, None, math.nan, math.inf, -math.inf], dtype=getattr(self.polars, kind))
        assert GRID.encode(x).tolist() == [2, 7, 7, 10, 0]
        assert containers.numbers("x", x).dtype == containers.numbers("x", x[:1]).dtype == np.dtype(kind.lower())
        assert not containers.declares_integers(x)

    def test_booleans_and_nulls(self):
        for values in ([True, False], [True, None]):
            x = self.polars.Series(values, dtype=self.polars.Boolean)
            assert GRID.encode(x).tolist() == [1, 0 if values[1] is False else 7]
        assert GRID.encode(self.polars.Series([None, None])).tolist() == [7, 7]

    @pytest.mark.parametrize("values", [["secret"], [b"secret"], [[1.0]], [{"a": 1}]])
    def test_no_numbers(self, values):
        with pytest.raises(TypeError, match="values must hold numbers, not polars'") as caught:
            GRID.encode(self.polars.Series(values))
        assert "secret" not in str(caught.value)
        with pytest.raises(TypeError, match="scores must hold numbers, not polars'"):
            dpf.select(self.polars.Series(values), epsilon=1.0)

    def test_dates(self):
        for kind in (self.polars.Date, self.polars.Datetime):
            with pytest.raises(TypeError, match="values must hold numbers, not polars'"):
                GRID.encode(self.polars.Series([1, 2]).cast(kind))

    def test_one_record_changes_itself_only(self):
        changed = [self.polars.Series([2**60 + 1, other, 5]) for other in (1, None)]
        wide = dpf.Grid(0, 2.0**61)
        first, second = (wide.encode(x) for x in changed)
        assert first[[0, 2]].tolist() == second[[0, 2]].tolist()

    def test_no_copy(self):
        x = self.polars.Series(X)
        assert address(containers.numbers("x", x)) == address(x.to_numpy(allow_copy=False))

    def test_scores(self):
        for x in ([3, None, 1], [3.0, None, 1.0], [3.0, math.nan, 1.0]):
            law = dpf.Selection(epsilon=1.0).law(self.polars.Series(x))
            assert (
                law.logpmf([0, 1, 2]).tolist() == dpf.Selection(epsilon=1.0).law([3, 0, 1]).logpmf([0, 1, 2]).tolist()
            )
        large = self.polars.Series([2**62, 2**62 + 1])
        assert dpf.Selection(epsilon=100.0).law(large).pmf(1) > 0.99

    def test_frame(self):
        frame = self.polars.DataFrame({"a": [1, None, 3], "b": [0.5, 1.0, None], "c": [True, None, False]})
        expected = [[1, 0.5, 1], [math.nan, 1, math.nan], [3, math.nan, 0]]
        np.testing.assert_array_equal(containers.matrix("X", frame), expected)
        for empty in (self.polars.DataFrame(), frame[["a"]][:0]):
            with pytest.raises(ValueError, match=r"two-dimensional|empty"):
                dpf.robust_mean(empty, bounds=(0, 10), epsilon=1.0)

    def test_release(self):
        assert dpf.median(self.polars.Series(X), bounds=(0, 10), epsilon=1.0, rng=PCG64(1)) == dpf.median(
            X, bounds=(0, 10), epsilon=1.0, rng=PCG64(1)
        )


class TestArrow:
    arrow = property(lambda self: pytest.importorskip("pyarrow"))

    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
    def test_no_copy(self, dtype):
        x = self.arrow.array(X.astype(dtype))
        start = x.buffers()[1].address
        for column in (x, self.arrow.chunked_array([x]), exported(x, "__arrow_c_array__")):
            seen = containers.numbers("x", column)
            assert address(seen) == start
            assert seen.dtype == dtype
        assert address(containers.numbers("x", x[10:])) == start + 10 * np.dtype(dtype).itemsize

    @pytest.mark.parametrize("kind", ["int8", "uint64", "bool", "float32", "float16", "float64"])
    def test_dtype_does_not_depend_on_nulls(self, kind):
        full, holes = ([1, 0], [1, None])
        if kind in ("float16", "bool"):
            one, zero = (np.float16(1), np.float16(0)) if kind == "float16" else (True, False)
            full, holes = ([one, zero], [one, None])
        type_ = getattr(self.arrow, kind + "_" if kind == "bool" else kind)()
        dtypes = {containers.numbers("x", self.arrow.array(values, type_)).dtype for values in (full, holes)}
        assert dtypes == {np.dtype(kind) if "float" in kind else np.dtype(float)}
        assert GRID.encode(self.arrow.array(holes, type_)).tolist() == [1, 7]

    def test_declared_types_without_numbers_are_errors_for_all_values(self):
        for declared in (
            self.arrow.string(),
            self.arrow.date32(),
            self.arrow.list_(self.arrow.float64()),
        ):
            for x in (self.arrow.nulls(3, declared), self.arrow.chunked_array([], declared)):
                with pytest.raises(TypeError, match="values must hold numbers, not Arrow's"):
                    GRID.encode(x)
        for values in ([1, 2], [1, None]):
            with pytest.raises(TypeError, match="values must hold numbers, not Arrow's dictionary"):
                GRID.encode(self.arrow.array(values).dictionary_encode())
        assert GRID.encode(self.arrow.nulls(2)).tolist() == [7, 7]

    @pytest.mark.parametrize("method", ["__arrow_c_array__", "__arrow_c_stream__"])
    def test_other_libraries(self, method):
        x = self.arrow.array([1, None, 30])
        x = exported(x if method == "__arrow_c_array__" else self.arrow.chunked_array([x[:1], x[1:]]), method)
        assert GRID.encode(x).tolist() == [1, 7, 10]
        assert containers.declares_integers(x)
        assert dpf.median(x, bounds=(0, 100), epsilon=1.0).is_integer()
        with pytest.raises(TypeError, match="values must hold numbers, not Arrow's string"):
            GRID.encode(exported(self.arrow.array(["secret"]), "__arrow_c_array__"))

    def test_other_libraries_without_pyarrow(self, monkeypatch):
        x = exported(self.arrow.array([1]), "__arrow_c_array__")
        monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
        with pytest.raises(TypeError, match="pyarrow is needed to read Exported"):
            GRID.encode(x)

    def test_table(self):
        table = self.arrow.table({"a": [1, None, 3], "b": [0.5, 1.0, None]})
        np.testing.assert_array_equal(containers.matrix("X", table), [[1, 0.5], [math.nan, 1], [3, math.nan]])


class TestPandas:
    pandas = property(lambda self: pytest.importorskip("pandas"))

    def test_no_copy(self):
        series = self.pandas.Series(X)
        assert np.shares_memory(containers.numbers("x", series), series.to_numpy())
        nullable = self.pandas.Series(X, dtype="Float64")
        assert np.shares_memory(containers.numbers("x", nullable), nullable.to_numpy(dtype=float, na_value=np.nan))

    @pytest.mark.parametrize("kind", ["Int64", "boolean", "Float64"])
    def test_frame_of_nullable_columns(self, kind):
        for values in ([1, 0, 1], [1, None, 1]):
            frame = self.pandas.DataFrame({"a": self.pandas.Series(values, dtype=kind), "b": [0.5, 1.0, 2.0]})
            expected = np.column_stack([np.array(values, dtype=float), [0.5, 1.0, 2.0]])
            np.testing.assert_array_equal(containers.matrix("X", frame), expected)

    @pytest.mark.parametrize(
        "kind",
        [
            "Int8",
            "UInt64",
            "Float32",
            "boolean",
            "int64[pyarrow]",
            "float[pyarrow]",
            "bool[pyarrow]",
            "Sparse[float64]",
        ],
    )
    def test_dtypes_do_not_depend_on_nulls(self, kind):
        pytest.importorskip("pyarrow")
        seen = set()
        for values in ([True, False, True], [True, None, False], [None] * 3):
            cells = values if "bool" in kind else [None if value is None else int(value) for value in values]
            x = self.pandas.Series(cells, dtype=kind)
            for column in (x, x.array, x[::-1], x[1:], self.pandas.Index(x)):
                seen.add((containers.numbers("x", column).dtype, containers.scores(column).dtype))
            expected = [math.nan if value is None else value for value in values]
            np.testing.assert_array_equal(containers.numbers("x", x), expected)
            np.testing.assert_array_equal(containers.scores(x), np.nan_to_num(expected))
        assert len(seen) == 1

    def test_frame_of_numpy_columns(self):
        np.testing.assert_array_equal(containers.matrix("X", self.pandas.DataFrame({"a": [1], "b": [2.5]})), [[1, 2.5]])


@pytest.mark.parametrize("x", [array.array("d", X), memoryview(X), memoryview(X.tobytes()).cast("d")])
def test_buffers_are_not_copied(x):
    assert np.shares_memory(containers.numbers("x", x), np.frombuffer(x))


def test_an_array_by_name_is_not_copied():
    class Tensor:
        def __array__(self, dtype=None, copy=None):
            return X

    assert containers.numbers("x", Tensor()) is X


class Odd(Exception):
    pass


class Hostile:
    """A cell that raises an error on every use."""

    def __init__(self, error):
        self.error = error

    def __float__(self):
        raise self.error

    __gt__ = __len__ = __iter__ = __index__ = __float__


class Row:
    """A sequence of a class of its own."""

    def __init__(self, cells):
        self.cells = list(cells)

    def __len__(self):
        return len(self.cells)

    def __getitem__(self, i):
        return self.cells[i]


# Cells of a sequence and their values.
CELLS = [
    (2.5, 2.5),
    (None, math.nan),
    (True, 1.0),
    (2**70, 2.0**70),
    (-(2**2000), -math.inf),
    (Fraction(1, 4), 0.25),
    (Fraction(10**400), math.inf),
    (Decimal("0.5"), 0.5),
    (Decimal("1e999999"), math.inf),
    (Decimal("sNaN"), math.nan),
    (np.float32(0.5), 0.5),
    (np.longdouble(3), 3.0),
    (np.array(7), 7.0),
    (np.ma.masked, math.nan),
    (np.ma.array(5.0, mask=True), math.nan),
    (np.ma.array(5.0, mask=False), 5.0),
    ("4", 4.0),
    ("four", math.nan),
    (b"4", 4.0),
    (1j, math.nan),
    (np.complex128(1), math.nan),
    (np.datetime64("2020"), math.nan),
    (np.array([1.0, 2.0]), math.nan),
    ([1.0], math.nan),
    (range(0), math.nan),
    (collections.deque([1]), math.nan),
    ({}, math.nan),
    (object(), math.nan),
    (Hostile(TypeError()), math.nan),
    (Hostile(OverflowError()), math.nan),
    (Hostile(KeyError("secret")), math.nan),
    (Hostile(RecursionError()), math.nan),
    (Hostile(RuntimeWarning("secret")), math.nan),
    (Hostile(Odd("secret")), math.nan),
]
SEQUENCES = [list, tuple, collections.deque, collections.UserList, Row]


each = every("cell, number", CELLS, ids=lambda value: type(value).__name__)
in_each = every("sequence", SEQUENCES)


class TestCells:
    """Of a sequence only that it is one decides how it is read: no cell raises, warns, or changes another one."""

    @in_each
    @each
    def test_of_a_vector(self, sequence, cell, number):
        x = containers.vector("x", sequence([1, cell, 3]))
        assert x.dtype == np.float64
        np.testing.assert_array_equal(x, [1, number, 3])
        assert len(containers.numbers("x", sequence([cell, cell]), dimensions=1)) == 2

    @in_each
    @each
    def test_of_rows(self, sequence, cell, number):
        for rows in ([[1, 2], [cell, 4]], sequence([sequence([1, 2]), sequence([cell, 4])]), [[1, 2], Row([cell, 4])]):
            np.testing.assert_array_equal(containers.matrix("X", rows), [[1, 2], [number, 4]])

    @in_each
    @each
    def test_of_scores(self, sequence, cell, number):
        kinds = {type(dpf.select(sequence([0, other]), epsilon=1.0)) for other in (1, cell)}
        assert kinds == {int}
        exact = containers.scores(sequence([0.5, cell]))[1]
        assert exact == (0 if math.isnan(number) else exact if isinstance(cell, (int, Fraction)) else number)

    @in_each
    @each
    def test_of_releases(self, sequence, cell, number):
        read = dpf.median(sequence([1, cell, 3]), bounds=(0, 10), epsilon=1.0, rng=PCG64(1))
        assert read == dpf.median([1.0, number, 3.0], bounds=(0, 10), epsilon=1.0, rng=PCG64(1))
        mechanism = dpf.InverseSensitivity(dpf.statistics.Median(), grid=GRID, epsilon=1.0)
        assert dpf.by_group(mechanism, sequence([1, cell, 3]), labels=[0, 0, 1]).shape == (2,)
        assert dpf.robust_mean(sequence([[1, cell], [2, 3]]), bounds=(0, 10), epsilon=1.0).shape == (2,)
        histogram = dpf.densities.PerturbedHistogram(11, grid=GRID, epsilon=1.0)
        assert histogram(sequence([1, cell, 3])).counts.shape == (11,)
        assert dpf.local.Interval(1.0, bounds=(0, 10)).randomize(sequence([1, cell, 3])).shape == (3,)


def read_as_cells():
    """What takes a number for each record, as functions of a list."""
    wide = dpf.Grid(0, 10)
    mechanisms = [
        dpf.InverseSensitivity(dpf.statistics.Median(), grid=wide, epsilon=1.0),
        dpf.MEstimator(dpf.psi.Huber(2.0), grid=wide, epsilon=1.0),
        dpf.densities.KolmogorovSmirnov(3, grid=wide, epsilon=1.0),
        dpf.densities.SeriesCoefficients(4, grid=wide, epsilon=1.0),
        dpf.SampleAndAggregate("exponential", bounds=(0.1, 10), epsilon=1.0, blocks=2),
    ]
    for mechanism in mechanisms:
        yield pytest.param(
            lambda x, mechanism=mechanism: dpf.by_group(mechanism, x, labels=[0, 1] * 10, rng=PCG64(1)),
            id=f"groups of {type(mechanism).__name__}",
        )
    for options in ({"bounds": (0, 10)}, {"grid": [wide]}):
        yield pytest.param(
            lambda x, options=options: dpf.histogram(x, 4, epsilon=1.0, rng=PCG64(1), **options).counts,
            id=f"histogram by {next(iter(options))}",
        )
    for method in ("perturbed", "ks", "series"):
        yield pytest.param(
            lambda x, method=method: dpf.synthesize(
                x, 3, bounds=(0, 10), epsilon=1.0, method=method, rng=np.random.default_rng(1)
            ),
            id=f"synthesize by {method}",
        )


class TestRowsAmongCells:
    """A row where a number is expected is a missing record: it changes neither the shape nor how others are read."""

    @pytest.mark.parametrize("row", [[2.0], [2.0, 3.0], (), [[1.0]], np.array([1.0, 2.0])], ids=str)
    @pytest.mark.parametrize("read", list(read_as_cells()))
    def test_in_a_vector(self, read, row):
        x = [1.0, 2.0, 3.0, 4.0] * 5
        np.testing.assert_array_equal(read([*x[:7], row, *x[8:]]), read([*x[:7], None, *x[8:]]))

    @pytest.mark.parametrize(
        "read",
        [
            lambda x: dpf.histogram(x, 3, bounds=[(0, 10)] * 2, epsilon=1.0, rng=PCG64(1)).counts,
            local.L2Ball(2, 1.0).randomize,
            lambda x: dpf.robust_mean(x, bounds=(0, 10), epsilon=1.0),
        ],
        ids=["histogram", "randomize", "robust_mean"],
    )
    @pytest.mark.parametrize("row", [[[2.0], 1.0], [None, [1.0, 2.0]], None, 3.0], ids=str)
    def test_in_a_table(self, read, row):
        rows = [[1.0, 2.0], [2.0, 3.0], [3.0, 1.0]] * 5
        assert read([*rows, row]).shape == read([*rows, [1.0, 2.0]]).shape


@pytest.mark.parametrize("cell", [None, 3, np.ma.masked, Hostile(Odd())], ids=lambda cell: type(cell).__name__)
def test_an_invalid_row_is_missing(cell):
    np.testing.assert_array_equal(containers.matrix("X", [[1, 2], cell]), [[1, 2], [math.nan, math.nan]])


def test_masked_rows_keep_their_masks():
    rows = [np.ma.array([1, 2], mask=[True, False]), np.array([3, 4])]
    np.testing.assert_array_equal(containers.matrix("X", rows), [[math.nan, 2], [3, 4]])


def test_rows_of_other_libraries():
    arrow, polars, pandas = map(pytest.importorskip, ("pyarrow", "polars", "pandas"))
    for row in (arrow.array([1, None]), polars.Series([1, None]), pandas.Series([1, None], dtype="Int64")):
        np.testing.assert_array_equal(containers.matrix("X", [row, (3, 4)]), [[1, math.nan], [3, 4]])


def test_numbers_of_any_type_are_read():
    for number in (2, 2.0, 2**70, Fraction(1, 3), Decimal(2), True):
        assert (containers.numbers("x", number).shape, containers.numbers("x", number).dtype) == ((), np.float64)


OF_TEXT = ": dpfast.partitions(x, domain=[...], epsilon=...) counts text and other keys"


@pytest.mark.parametrize(
    ("x", "name"),
    [
        ("secret", "text"),
        (b"secret", f"dtype bytes{OF_TEXT}"),
        (np.array(["secret"]), f"dtype str{OF_TEXT}"),
        (np.array([b"secret"]), f"dtype bytes{OF_TEXT}"),
        (np.array([1, None]), "dtype object: convert it first, such as by x.astype(float)"),
        (np.array([1, 2], dtype=object), "dtype object: convert it first, such as by x.astype(float)"),
        (1j, "a complex"),
        ({1: 2}, "a mapping: pass a list of its values"),
        ({1: 2}.values(), "a dict_values: pass a list"),
        ({1, 2}, "a set, which has no equal records: pass a list"),
        ((number for number in [1]), "a generator, which can be read once: pass a list, or pieces by dpfast.Chunks"),
        (None, "None"),
    ],
)
def test_the_type_alone_decides_whether_a_column_holds_numbers(x, name):
    for read in (containers.numbers, containers.vector, containers.matrix):
        with pytest.raises(TypeError, match=f"^x must hold numbers, not {re.escape(name)}$"):
            read("x", x)


class Exchanged:
    """Numbers behind DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack():
    x = np.arange(40.0)
    assert np.shares_memory(containers.vector("x", Exchanged(x)), x)
    assert containers.matrix("x", Exchanged(x.reshape(20, 2))).shape == (20, 2)


def test_decimals():
    cells = [Decimal("1.5"), None, Decimal("-2.25")]
    expected = [1.5, np.nan, -2.25]
    arrow, pandas, polars = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars"))
    column = pandas.Series(cells, dtype=pandas.ArrowDtype(arrow.decimal128(5, 2)))
    for x in (cells, arrow.array(cells), polars.Series(cells), column):
        np.testing.assert_array_equal(containers.vector("x", x), expected)
    lazy = polars.DataFrame({"a": [1.0]}).lazy()
    with pytest.raises(TypeError, match=r"x must hold numbers, not a lazy frame: pass x.collect\(\)"):
        containers.vector("x", lazy)


def test_frames_that_mix_booleans_and_numbers():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1.5, 2.0], "smokes": [True, False], "visits": [3, 4]})
    np.testing.assert_array_equal(containers.matrix("X", frame), [[1.5, 1, 3], [2, 0, 4]])
    assert containers.matrix("X", frame[["smokes"]]).dtype == bool
    with pytest.raises(TypeError, match="column 'name' of X must hold numbers, not dtype"):
        containers.matrix("X", frame.assign(name=["a", "b"]))


@pytest.mark.parametrize("values", [["a"], [1, 2], [1, None]])
def test_categories_are_not_numbers(values):
    series = pytest.importorskip("pandas").Series(values, dtype="category")
    with pytest.raises(TypeError, match="x must hold numbers, not dtype category"):
        containers.numbers("x", series)
    with pytest.raises(TypeError, match="scores must hold numbers, not dtype category"):
        containers.scores(series)


def test_messages_do_not_tell_how_many_records_there_are():
    for x, shape in ([[1, 2]] * 7, "(n, 2)"), (np.zeros((7, 2, 3)), "(n, 2, 3)"), (5, "()"):
        with pytest.raises(ValueError, match=f"x must be one-dimensional, not of shape {re.escape(shape)}$"):
            containers.vector("x", x)
    with pytest.raises(ValueError, match=r"not of shape \(n,\)$"):
        containers.matrix("x", np.zeros(7))


class TestMasks:
    """A masked record is a missing one, in every container; central mechanisms: test_central.py."""

    def check(self, call, columns):
        rng = Generator(PCG64(3))
        x = rng.random((200, columns) if columns else 200).round(0 if columns else 2)
        hidden = rng.random(x.shape) < 0.4
        masked, holes = call(np.ma.array(x, mask=hidden), PCG64(1)), call(np.where(hidden, np.nan, x), PCG64(1))
        assert str(getattr(masked, "counts", masked)) == str(getattr(holes, "counts", holes))

    @pytest.mark.filterwarnings("ignore:a missing cell counts as the lower bound")
    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_of_functions(self, name):
        self.check(lambda x, source: FUNCTIONS[name](x, source, 5.0), ROWS_OF.get(name, 0))

    @pytest.mark.parametrize(
        ("randomizer", "columns"),
        [
            (local.Binary(5.0), 0),
            (local.Categorical(2, 5.0), 0),
            (local.Interval(5.0, bounds=(0, 1)), 0),
            (local.SeriesReports(4, 5.0, grid=dpf.Grid(0, 1)), 0),
            (local.Hypercube(2, 5.0), 2),
            (local.L2Ball(2, 5.0), 2),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_of_randomizers(self, randomizer, columns):
        self.check(lambda x, source: randomizer.randomize(x, rng=source), columns)


class TestParts:
    """Columns that kernels read in parts: the same numbers, releases and refusals as those of one array."""

    DTYPES = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
    STATISTICS = (
        dpf.InverseSensitivity(dpf.statistics.Median(), grid=GRID, epsilon=1.0),
        dpf.InverseSensitivity(dpf.statistics.TrimmedMean(0.2), grid=GRID, epsilon=1.0),
        dpf.InverseSensitivity(dpf.statistics.Huber(2.0), grid=GRID, epsilon=1.0),
        dpf.SmoothSensitivity(dpf.statistics.Median(), grid=GRID, epsilon=1.0),
        dpf.Quantiles([0.1, 0.25, 0.5, 0.75, 0.9], grid=GRID, epsilon=1.0),
        dpf.Quantiles([0.1, 0.5, 0.9], grid=dpf.FloatGrid(missing="drop"), epsilon=1.0),
        dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=GRID, epsilon=1.0),
        dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=GRID.with_missing("half"), epsilon=1.0),
        dpf.GlobalSensitivity(dpf.statistics.Count((2, 5)), grid=GRID, epsilon=1.0, neighbors="add-remove"),
        dpf.MomentPair(grid=GRID, epsilon=1.0),
    )

    @staticmethod
    def containers_of(x, absent):
        """The records in containers, each with the doubles that it stands for."""
        arrow, polars, pandas = map(pytest.importorskip, ("pyarrow", "polars", "pandas"))
        known, some = x.astype(np.float64), np.where(absent, np.nan, x.astype(np.float64))
        whole, cut, swapped = arrow.array(x, mask=absent), len(x) // 3, x.dtype.newbyteorder(">")
        chunks = [whole[:cut], whole[cut:cut], whole[cut : cut + 1], arrow.array(x[cut + 1 :])]
        mixed = np.concatenate([some[: cut + 1], known[cut + 1 :]])
        yield from ((whole, some), (arrow.array(x), known), (arrow.chunked_array(chunks), mixed))
        yield from ((whole[start:], some[start:]) for start in (1, 3, 8, 9))  # bits that begin within a byte
        yield from ((polars.from_arrow(whole), some), (polars.from_arrow(whole)[5:], some[5:]))
        yield (
            polars.concat([polars.from_arrow(whole)[:7], polars.Series(x)[7:]], rechunk=False),
            np.r_[some[:7], known[7:]],
        )
        yield from ((np.ma.MaskedArray(x, absent), some), (np.ma.MaskedArray(x, absent)[::-2], some[::-2]))
        yield from ((np.ma.MaskedArray(x), known), (x.astype(swapped), known), (x.astype(swapped)[::-3], known[::-3]))
        if x.dtype != np.float16:  # pandas has no nullable ones
            kind = pandas.arrays.FloatingArray if x.dtype.kind == "f" else pandas.arrays.IntegerArray
            yield pandas.Series(kind(x.copy(), absent.copy())), some
            yield pandas.Series(pandas.arrays.ArrowExtensionArray(arrow.chunked_array([whole]))), some
            yield kind(x.copy(), absent.copy()), some
            yield pandas.Index(kind(x.copy(), absent.copy())), some
            yield pandas.arrays.ArrowExtensionArray(arrow.chunked_array([whole])), some
            yield pandas.arrays.NumpyExtensionArray(some), some

    @every("dtype", DTYPES)
    def test_numbers(self, dtype):
        for n in (10, 17, 5000):
            rng = np.random.default_rng(n)
            x = np.abs(rng.normal(0, 50, n)).astype(dtype)
            x[0] = 2**60 + 1 if dtype[1:] == "8" and dtype[0] != "f" else 1
            for container, wanted in self.containers_of(x, rng.random(n) < 0.3):
                column = containers.column("x", container)
                np.testing.assert_array_equal(np.asarray(column, dtype=np.float64), wanted)
                np.testing.assert_array_equal(np.asarray(containers.vector("x", container), np.float64), wanted)
                np.testing.assert_array_equal(np.asarray(column[2:9], dtype=np.float64), wanted[2:9])
                np.testing.assert_array_equal(np.asarray(column[[-1, 0]], dtype=np.float64), wanted[[-1, 0]])

    def test_a_class_of_masked_arrays_keeps_its_mask(self):
        class Masked(np.ma.MaskedArray):
            pass

        for dtype in (">f8", "<f8", ">i4"):
            x = np.ma.MaskedArray(np.arange(4).astype(dtype), [True, False, False, True]).view(Masked)
            np.testing.assert_array_equal(np.asarray(containers.column("x", x)), [np.nan, 1, 2, np.nan])

    @every("mechanism", STATISTICS)
    def test_releases(self, mechanism):
        for n in (20, 3000):
            rng = np.random.default_rng(n)
            x, absent = rng.normal(5, 3, n).round(1), rng.random(n) < 0.3
            for container, wanted in self.containers_of(x, absent):
                assert np.array_equal(mechanism(container, rng=PCG64(1)), mechanism(wanted, rng=PCG64(1)))
                chunks = dpf.Chunks([container, container])
                twice = mechanism(np.r_[wanted, wanted], rng=PCG64(1))
                if not mechanism.ordered:
                    assert np.array_equal(mechanism(chunks, rng=PCG64(1)), twice)

    def test_long_columns_in_threads(self):
        rng = np.random.default_rng(0)
        x, absent = rng.normal(5, 3, 2**21 + 5), rng.random(2**21 + 5) < 0.1
        column = pytest.importorskip("pyarrow").array(x, mask=absent)
        for mechanism in (self.STATISTICS[0], self.STATISTICS[4], self.STATISTICS[5], self.STATISTICS[6]):
            wanted = mechanism(np.where(absent, np.nan, x), rng=PCG64(1))
            for workers in (1, 2):
                assert np.array_equal(mechanism(column, rng=PCG64(1), workers=workers), wanted)

    def test_rows(self):
        arrow, polars = map(pytest.importorskip, ("pyarrow", "polars"))
        rng = np.random.default_rng(0)
        for n in (3, 20_000):
            X, absent = rng.normal(0, 1, (n, 3)), rng.random((n, 3)) < 0.2
            whole = np.arange(n) % 5
            columns = {name: arrow.array(X[:, j], mask=absent[:, j]) for j, name in enumerate("abc")}
            table = arrow.table(columns | {"d": arrow.array(whole)})
            wanted = np.column_stack([np.where(absent, np.nan, X), whole])
            for frame in (table, polars.from_arrow(table)):
                np.testing.assert_array_equal(np.asarray(containers.rows("X", frame)), wanted)
                for options in [{"bounds": (-2, 3), "missing": policy} for policy in ("lower", "half")] + [
                    {"radius": 3.0}
                ]:
                    of_frame, of_array = (
                        dpf.mean(rows, epsilon=1.0, rng=PCG64(1), **options)
                        for rows in (frame, np.asfortranarray(wanted))
                    )
                    assert np.array_equal(of_frame, of_array)
                    assert np.array_equal(of_frame, dpf.mean(wanted, epsilon=1.0, rng=PCG64(1), **options))

    def test_a_column_is_not_copied(self):
        arrow = pytest.importorskip("pyarrow")
        x = arrow.array(np.arange(1000), mask=np.arange(1000) == 3)
        column = containers.column("x", x)
        assert column.parts[0, 1] == x.buffers()[1].address
        assert column.parts[0, 6] == x.buffers()[0].address
        assert containers.column("x", column) is column
        assert "999" not in repr(column)


class TestMissingCells:
    """A warning says that a missing cell of a table counts as the lower bound: by the type, whatever its cells are."""

    pandas = property(lambda self: pytest.importorskip("pandas"))
    arrow = property(lambda self: pytest.importorskip("pyarrow"))

    X = np.arange(200.0) % 7

    def columns(self):
        whole = self.X.astype(np.int64)
        yield True, self.pandas.Series(self.X)
        yield True, self.pandas.Series(whole, dtype="Int64")
        yield True, self.arrow.array(self.X)
        yield True, self.arrow.array(whole)
        yield False, self.pandas.Series(whole)

    def test_of_numbers(self):
        for warned, x in self.columns():
            for call in (dpf.std, dpf.iqr, partial(dpf.interval, "std"), partial(dpf.trimmed_mean, trim=0.1)):
                assert told(call, x) == warned, (x, call)
                assert not told(call, x, missing="lower")
            intervals = (partial(dpf.interval, statistic) for statistic in ("median", "mean"))
            for free in (dpf.mean, dpf.sum, dpf.median, partial(dpf.quantile, q=0.2), *intervals):
                assert not told(free, x), (x, free)

    def test_of_rows(self):
        for warned, x in self.columns():
            table = self.pandas.DataFrame if isinstance(x, self.pandas.Series) else self.arrow.table
            frame = table({"a": x, "b": x})
            assert told(dpf.mean, frame) == warned
            assert not told(dpf.sum, frame)  # it adds nothing
            for call in (dpf.mean, dpf.sum):
                assert not told(call, frame, missing=3.0)


def told(call, x, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(x, bounds=(0, 7), epsilon=5.0, **options)
    return any("counts as the lower bound" in str(each.message) for each in caught)
