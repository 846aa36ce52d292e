"""Columns of pandas, polars and Arrow: no copies where that can be, nulls by rule, nothing that depends on values."""

import array
import math

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import _checks

GRID = dpf.Grid(0, 10, step=1, missing=7)
KINDS = ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]
X = np.random.default_rng(0).normal(5, 2, 1000)


class Exported:
    """An array of another Arrow library: nothing but the C data interface."""

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
            assert _checks.numbers("x", x).dtype == np.float64  # whether any is missing or not
            assert _checks.declares_integers(x)

    @pytest.mark.parametrize("kind", ["Float32", "Float64"])
    def test_floats(self, kind):
        x = self.polars.Series([1.5, None, math.nan, math.inf, -math.inf], dtype=getattr(self.polars, kind))
        assert GRID.encode(x).tolist() == [2, 7, 7, 10, 0]
        assert _checks.numbers("x", x).dtype == _checks.numbers("x", x[:1]).dtype == np.dtype(kind.lower())
        assert not _checks.declares_integers(x)

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

    def test_dates_and_decimals(self):
        for kind in (self.polars.Date, self.polars.Datetime, self.polars.Decimal(10, 2)):
            with pytest.raises(TypeError, match="values must hold numbers, not polars'"):
                GRID.encode(self.polars.Series([1, 2]).cast(kind))

    def test_one_record_changes_itself_only(self):
        changed = [self.polars.Series([2**60 + 1, other, 5]) for other in (1, None)]
        wide = dpf.Grid(0, 2.0**61)
        first, second = (wide.encode(x) for x in changed)
        assert first[[0, 2]].tolist() == second[[0, 2]].tolist()

    def test_no_copy(self):
        x = self.polars.Series(X)
        assert address(_checks.numbers("x", x)) == address(x.to_numpy(allow_copy=False))

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
        np.testing.assert_array_equal(_checks.matrix("X", frame), expected)
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
            seen = _checks.numbers("x", column)
            assert address(seen) == start
            assert seen.dtype == dtype
        assert address(_checks.numbers("x", x[10:])) == start + 10 * np.dtype(dtype).itemsize

    @pytest.mark.parametrize("kind", ["int8", "uint64", "bool", "float32", "float16", "float64"])
    def test_dtype_does_not_depend_on_nulls(self, kind):
        full, holes = ([1, 0], [1, None])
        if kind in ("float16", "bool"):
            one, zero = (np.float16(1), np.float16(0)) if kind == "float16" else (True, False)
            full, holes = ([one, zero], [one, None])
        type_ = getattr(self.arrow, kind + "_" if kind == "bool" else kind)()
        dtypes = {_checks.numbers("x", self.arrow.array(values, type_)).dtype for values in (full, holes)}
        assert dtypes == {np.dtype(kind) if "float" in kind else np.dtype(float)}
        assert GRID.encode(self.arrow.array(holes, type_)).tolist() == [1, 7]

    @pytest.mark.parametrize("method", ["__arrow_c_array__", "__arrow_c_stream__"])
    def test_other_libraries(self, method):
        x = self.arrow.array([1, None, 30])
        x = exported(x if method == "__arrow_c_array__" else self.arrow.chunked_array([x[:1], x[1:]]), method)
        assert GRID.encode(x).tolist() == [1, 7, 10]
        assert _checks.declares_integers(x)
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
        np.testing.assert_array_equal(_checks.matrix("X", table), [[1, 0.5], [math.nan, 1], [3, math.nan]])


class TestPandas:
    pandas = property(lambda self: pytest.importorskip("pandas"))

    def test_no_copy(self):
        series = self.pandas.Series(X)
        assert np.shares_memory(_checks.numbers("x", series), series.to_numpy())
        nullable = self.pandas.Series(X, dtype="Float64")
        assert np.shares_memory(_checks.numbers("x", nullable), nullable.to_numpy(dtype=float, na_value=np.nan))

    @pytest.mark.parametrize("kind", ["Int64", "boolean", "Float64"])
    def test_frame_of_nullable_columns(self, kind):
        for values in ([1, 0, 1], [1, None, 1]):
            frame = self.pandas.DataFrame({"a": self.pandas.Series(values, dtype=kind), "b": [0.5, 1.0, 2.0]})
            expected = np.column_stack([np.array(values, dtype=float), [0.5, 1.0, 2.0]])
            np.testing.assert_array_equal(_checks.matrix("X", frame), expected)

    def test_frame_of_numpy_columns(self):
        np.testing.assert_array_equal(_checks.matrix("X", self.pandas.DataFrame({"a": [1], "b": [2.5]})), [[1, 2.5]])


@pytest.mark.parametrize("x", [array.array("d", X), memoryview(X), memoryview(X.tobytes()).cast("d")])
def test_buffers_are_not_copied(x):
    assert np.shares_memory(_checks.numbers("x", x), np.frombuffer(x))


def test_an_array_by_name_is_not_copied():
    class Tensor:
        def __array__(self, dtype=None, copy=None):
            return X

    assert _checks.numbers("x", Tensor()) is X
