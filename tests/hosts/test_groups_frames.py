"""`by_group` on columns of pandas, polars and Arrow: the result is in the user's library, its types by dtypes alone."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64

import dpfast as dpf
from dpfast import BudgetError, GlobalSensitivity, Grid, InverseSensitivity, Ledger, NestedBoxes, Quantiles, by_group
from dpfast.groups import KeyedReleases
from dpfast.statistics import Count, Mean, Median

pytestmark = pytest.mark.host

GRID = Grid(0, 100, step=1)
MEDIAN = InverseSensitivity(Median(), grid=GRID, epsilon=0.5)
PRIVATE = InverseSensitivity(Median(), grid=GRID, epsilon=0.5, neighbors="add-remove")
MEAN = GlobalSensitivity(Mean(), grid=GRID, epsilon=0.5)
COUNT = GlobalSensitivity(Count(), grid=GRID, epsilon=0.5, neighbors="add-remove")
QUARTILES = Quantiles((0.25, 0.75), grid=GRID, epsilon=0.5)
REGIONS, YEARS = ["south", "north", "west"], [2001, 2002]
KEYS = [*REGIONS, "nowhere"]


def table():
    """Two columns of keys, one of them with missing cells, and two of records."""
    rng = np.random.default_rng(0)
    region = np.array([*REGIONS, None, "elsewhere"], object)[rng.integers(0, 5, 300)]
    year = 2000 + rng.integers(0, 4, 300)
    return {"region": region, "year": year, "pay": rng.normal(50, 20, 300), "age": rng.normal(40, 5, 300)}


def expected(mechanism, column="pay", keys=KEYS):
    """The releases of the same groups by integer codes; NaN for public groups without records."""
    data = table()
    codes = np.array([keys.index(cell) if cell in keys else -1 for cell in data["region"]])
    released = by_group(mechanism, data[column], labels=codes, num_groups=len(keys), rng=PCG64(3))
    if not mechanism.hides_n:
        released[np.bincount(codes[codes >= 0], minlength=len(keys)) == 0] = math.nan
    return released


TEXT = ["object", "str", "string", "string[pyarrow]", "category", "large_string[pyarrow]"]


def pandas_column(pandas, cells, dtype):
    if dtype == "large_string[pyarrow]":
        import pyarrow

        dtype = pandas.ArrowDtype(pyarrow.large_string())
    return pandas.Series(cells, dtype=dtype, name="region")


class TestPandas:
    @pytest.mark.parametrize("mechanism", [MEDIAN, PRIVATE, MEAN, COUNT], ids=repr)
    @pytest.mark.parametrize("dtype", TEXT)
    def test_a_frame_with_the_keys(self, dtype, mechanism):
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        data = table()
        labels = pandas_column(pandas, data["region"], dtype)
        found = by_group(mechanism, pandas.Series(data["pay"], name="pay"), labels=labels, keys=KEYS, rng=PCG64(3))
        frame = found.to_pandas()
        assert (list(frame), frame["region"].tolist(), list(found)) == (["region", "pay"], KEYS, KEYS)
        np.testing.assert_array_equal(frame["pay"].to_numpy(), expected(mechanism))

    @pytest.mark.parametrize("dtype", TEXT)
    def test_the_type_of_the_keys_is_that_of_the_labels_whatever_they_hold(self, dtype):
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        found = [
            by_group(PRIVATE, [1.0, 2.0], labels=pandas_column(pandas, cells, dtype), keys=keys).to_pandas()["region"]
            for cells in (["south", "north"], [None, "east"], [None, None])
            for keys in (KEYS, [])
        ]
        wanted = pandas.Index(KEYS).dtype if dtype == "category" else pandas_column(pandas, [], dtype).dtype
        for index in found[:: 2 if dtype == "category" else 1]:
            assert index.dtype == wanted
        assert all(index.equals(found[0]) for index in found[::2])

    @pytest.mark.parametrize("dtype", ["int16", "uint64", "Int64", "float64", "int64[pyarrow]"])
    def test_years(self, dtype):
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        data = table()
        labels = pandas.Series(data["year"], dtype=dtype, name="year")
        codes = np.where(data["year"] == 2003, -1, data["year"] - 2000)
        for keys in ([2000, 2001, 2002], np.arange(2000, 2003), range(2000, 2003), pandas.Index([2000, 2001, 2002])):
            found = by_group(MEDIAN, data["pay"], labels=labels, keys=keys, rng=PCG64(3))
            assert found.to_pandas()["year"].tolist() == [2000, 2001, 2002]
            assert found.to_pandas()["year"].dtype.kind in "iu"
            wanted = by_group(MEDIAN, data["pay"], labels=codes, num_groups=3, rng=PCG64(3))
            np.testing.assert_array_equal(found.array, wanted)

    def test_several_columns_and_mechanisms(self):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(table())
        grid = list(itertools.product(REGIONS, YEARS))
        index = pandas.MultiIndex.from_product([REGIONS, YEARS], names=["region", "year"])
        data = table()
        codes = np.array(
            [
                grid.index(key) if (key := (region, int(year))) in grid else -1
                for region, year in zip(data["region"], data["year"], strict=True)
            ]
        )
        wanted = by_group([MEDIAN, MEAN], data["pay"], labels=codes, num_groups=6, rng=PCG64(3))
        for labels in (frame[["region", "year"]], (frame["region"], frame["year"])):
            for keys in (grid, itertools.product(REGIONS, YEARS), index, index.to_frame(index=False)):
                found = by_group([MEDIAN, MEAN], frame["pay"], labels=labels, keys=keys, rng=PCG64(3))
                made = found.to_pandas()
                assert list(made) == ["region", "year", "median", "mean"]
                assert pandas.MultiIndex.from_frame(made[["region", "year"]]).equals(index)
                for name in found.columns:
                    np.testing.assert_array_equal(made[name].to_numpy(), wanted[name])

    def test_vectors_have_a_column_for_each_number(self):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(table())
        found = by_group(QUARTILES, frame["pay"], labels=frame["region"], keys=KEYS)
        assert list(found.to_pandas()) == ["region", "q=0.25", "q=0.75"]
        assert np.isnan(found["nowhere"]).all()
        both = by_group(
            {"pay": (QUARTILES, "pay"), "age": (MEAN, "age")}, frame, labels=frame["region"], keys=KEYS, rng=PCG64(3)
        )
        assert list(both.to_pandas())[1:] == ["pay q=0.25", "pay q=0.75", "age"]
        rows = by_group(NestedBoxes(grid=GRID, epsilon=1.0), frame[["pay", "age"]], labels=frame["region"], keys=KEYS)
        assert list(rows.to_pandas())[1:] == ["pay", "age"]
        matrix = dpf.Covariance(domain=dpf.domains.Ball(200.0), epsilon=1.0)
        rows = by_group(matrix, frame[["pay", "age"]], labels=frame["region"], keys=REGIONS)
        assert list(rows.to_pandas())[1:] == ["0, 0", "0, 1", "1, 0", "1, 1"]

    def test_columns_of_the_same_name_are_refused(self):
        pandas = pytest.importorskip("pandas")
        twice = pandas.DataFrame(np.ones((9, 2)), columns=["a", "a"])
        for call in (
            lambda: by_group({"mean": (MEAN, "a")}, twice, labels=["x"] * 9, keys=["x"]),
            lambda: dpf.linear_regression(twice, np.ones(9), radius=2.0, label_bound=2.0, epsilon=1.0),
        ):
            with pytest.raises(ValueError, match=r"several columns (of x )?are named 'a': rename all but one"):
                call()
        with pytest.raises(ValueError, match="the columns of labels must have different names, not 'a', 'a'"):
            by_group(MEDIAN, np.ones(9), labels=twice, keys=[(1, 1)])

    def test_labels_alone_or_records_alone_may_be_of_pandas(self):
        pandas = pytest.importorskip("pandas")
        data = table()
        for x, labels in (
            (pandas.Series(data["pay"], name="pay"), data["region"].tolist()),
            (data["pay"], pandas.Series(data["region"], name="region")),
        ):
            found = by_group(MEDIAN, x, labels=labels, keys=KEYS, rng=PCG64(3))
            assert type(found) is KeyedReleases
            np.testing.assert_array_equal(found.array, expected(MEDIAN))
        named = by_group(MEDIAN, data["pay"], labels=data["region"], keys=pandas.Index(KEYS, name="place"))
        assert list(named.to_pandas()) == ["place", "release"]

    def test_without_keys_the_result_is_an_array(self):
        pandas = pytest.importorskip("pandas")
        labels = pandas.Series([0, 1, 0])
        assert type(by_group(MEDIAN, pandas.Series([1.0, 2.0, 3.0]), labels=labels)) is np.ndarray


class TestPolars:
    @pytest.mark.parametrize("dtype", ["String", "Categorical", "Enum"])
    @pytest.mark.parametrize("mechanism", [MEDIAN, PRIVATE], ids=repr)
    def test_a_frame_with_the_keys(self, mechanism, dtype):
        polars = pytest.importorskip("polars")
        data = table()
        kinds = {"String": polars.String, "Categorical": polars.Categorical, "Enum": polars.Enum(REGIONS)}
        cells = [cell if dtype != "Enum" or cell in REGIONS else None for cell in data["region"]]
        frame = polars.DataFrame({"region": polars.Series(cells, dtype=kinds[dtype]), "pay": data["pay"]})
        found = by_group(mechanism, frame["pay"], labels=frame["region"], keys=KEYS, rng=PCG64(3)).to_polars()
        assert found.schema == {"region": polars.String, "pay": polars.Float64}
        assert found["region"].to_list() == KEYS
        np.testing.assert_array_equal(found["pay"].to_numpy(), expected(mechanism))

    def test_several_columns_and_mechanisms(self):
        polars = pytest.importorskip("polars")
        data = table()
        frame = polars.DataFrame({**data, "region": data["region"].tolist()}).cast({"year": polars.Int32})
        keys = list(itertools.product(REGIONS, YEARS))
        mechanisms = {"pay": (MEDIAN, "pay"), "q": (QUARTILES, "age")}
        found = by_group(mechanisms, frame, labels=frame["region", "year"], keys=keys).to_polars()
        assert found.columns == ["region", "year", "pay", "q q=0.25", "q q=0.75"]
        assert found.schema["year"] == polars.Int32
        assert found.rows()[0][:2] == ("south", 2001)
        assert found.select("region", "year").rows() == keys
        assert found.join(frame, on=["region", "year"], how="inner").height > 0

    def test_columns_without_a_name_or_with_the_same(self):
        polars = pytest.importorskip("polars")
        data = table()
        labels = polars.Series(data["region"].tolist())
        assert by_group(MEDIAN, data["pay"], labels=labels, keys=KEYS).to_polars().columns == ["key", "release"]
        named, pay = labels.alias("pay"), polars.Series("pay", data["pay"])
        assert by_group(MEDIAN, pay, labels=named, keys=KEYS).to_polars().columns == ["pay", "pay_"]
        with pytest.raises(ValueError, match="must have different names, not 'pay', 'pay'"):
            by_group(MEDIAN, pay, labels=(named, named), keys=[("south", "south")])


class TestArrow:
    @pytest.mark.parametrize("chunks", [1, 3])
    def test_a_table(self, chunks):
        pyarrow = pytest.importorskip("pyarrow")
        data = table()
        parts = [cells.tolist() for cells in np.array_split(data["region"], chunks)]
        for kind in (pyarrow.string(), pyarrow.large_string(), pyarrow.dictionary(pyarrow.int8(), pyarrow.string())):
            labels = pyarrow.chunked_array([pyarrow.array(part, pyarrow.string()).cast(kind) for part in parts])
            found = by_group(MEDIAN, pyarrow.array(data["pay"]), labels=labels, keys=KEYS, rng=PCG64(3)).to_arrow()
            plain = getattr(kind, "value_type", kind)
            assert found.schema == pyarrow.schema({"key": plain, "release": pyarrow.float64()})
            assert found["key"].to_pylist() == KEYS
            np.testing.assert_array_equal(found["release"].to_numpy(), expected(MEDIAN))

    def test_columns_of_a_table(self):
        pyarrow = pytest.importorskip("pyarrow")
        rows = pyarrow.table({**table(), "region": table()["region"].tolist()})
        found = by_group(
            {"pay": (MEDIAN, "pay"), "age": (MEAN, "age")},
            rows,
            labels=rows.select(["region", "year"]),
            keys=itertools.product(REGIONS, YEARS),
        )
        assert found.to_arrow().column_names == ["region", "year", "pay", "age"]


def columns(cells):
    """The same labels as columns of several types."""
    import pandas
    import polars
    import pyarrow

    text = [cell if isinstance(cell, str) else None for cell in cells]
    yield from (pandas.Series(text, dtype=dtype) for dtype in ("object", "str", "string", "category"))
    yield pandas.Series([cell if isinstance(cell, int) else None for cell in cells], dtype="Int64")
    yield from (polars.Series(text, dtype=dtype) for dtype in (polars.String, polars.Categorical))
    yield polars.Series([cell if isinstance(cell, int) else None for cell in cells], dtype=polars.Int64)
    yield pyarrow.array(text, pyarrow.string())
    yield pyarrow.array(text, pyarrow.string()).dictionary_encode()


def kind(call):
    """What may not depend on data: types, keys, dtypes, absent groups, and messages of errors."""
    try:
        found = call()
    except Exception as error:
        return type(error), str(error)
    try:
        schema = str(found.to_arrow().schema)
    except TypeError as error:
        schema = str(error)
    dtypes = [*map(str, found.to_pandas().dtypes), str(found.to_polars().schema), schema]
    return dtypes, list(found), np.isnan(found.array).tolist()


class TestNeighbours:
    @settings(max_examples=40, deadline=None)
    @given(
        st.lists(st.sampled_from([*REGIONS, "", None, 7, -1]), max_size=8),
        st.sampled_from([*REGIONS, "elsewhere", None, 7]),
        st.sampled_from([KEYS, [], [7, 8], ["", "south"]]),
    )
    def test_a_record_added_changes_nothing_but_numbers(self, cells, cell, keys):
        for library in ("pandas", "polars", "pyarrow"):
            pytest.importorskip(library)
        for fewer, more in zip(columns(cells), columns([*cells, cell]), strict=True):
            found = [
                kind(lambda x=x: by_group(PRIVATE, np.zeros(len(x)), labels=x, keys=keys, rng=PCG64(1)))
                for x in (fewer, more)
            ]
            assert found[0] == found[1]

    def test_a_control_that_takes_the_keys_from_the_labels_is_found(self):
        pandas = pytest.importorskip("pandas")
        found = []
        for cells in (["south", "north"], ["south"]):
            labels = pandas.Series(cells)
            found.append(kind(lambda x=labels: by_group(PRIVATE, np.zeros(len(x)), labels=x, keys=x.unique())))
        assert found[0] != found[1]


class TestReleasedKeys:
    """With private keys the result is made of any keys, and its types do not depend on those that are released."""

    SELECTION = dpf.PartitionSelection(50.0, 0.4)
    CELLS = (["a", 1], ["a", b"a"], ["a", "\ud800"], [2**70, -(2**70)], ["a", "a"], [None, None])

    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
    @pytest.mark.parametrize("cells", CELLS, ids=ascii)
    def test_any_objects(self, library, cells):
        made = pytest.importorskip(library)
        x = made.array(np.zeros(200)) if library == "pyarrow" else made.Series(np.zeros(200))
        for labels in (100 * cells, (100 * cells, np.zeros(200, int))):
            found = by_group(PRIVATE, x, labels=labels, keys="private", partitions=self.SELECTION, rng=PCG64(1))
            assert len(found) == len({cell for cell in cells if cell is not None})

    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
    @pytest.mark.parametrize(
        "labels",
        [
            np.array(["a", "b"]),
            np.array([3, 4]),
            np.array([3, 2**64 - 1], np.uint64),
            np.array([True, False]),
            np.array([1.0, np.nan]),
        ],
        ids=lambda labels: str(labels.dtype),
    )
    def test_dtypes(self, library, labels):
        made = pytest.importorskip(library)
        wrap = made.array if library == "pyarrow" else made.Series
        for column in (np.tile(labels, 100), wrap(np.tile(labels, 100))):
            found = [
                kind(
                    lambda n=n, column=column: by_group(
                        PRIVATE,
                        wrap(np.zeros(n)),
                        labels=column[:n],
                        keys="private",
                        partitions=self.SELECTION,
                        rng=PCG64(1),
                    )
                )
                for n in (0, 200)
            ]
            assert found[0][0] == found[1][0]

    def test_levels_of_an_index(self):
        pandas = pytest.importorskip("pandas")
        labels = pandas.MultiIndex.from_product([["x", "y"], [1, 2]], names=["letter", "number"]).repeat(100)
        found = by_group(PRIVATE, np.zeros(400), labels=labels, keys="private", partitions=self.SELECTION)
        assert (list(found), list(found.to_pandas())[:2]) == (labels.unique().tolist(), ["letter", "number"])


class TestOtherContainers:
    def test_arrays_by_protocol(self):
        pyarrow = pytest.importorskip("pyarrow")
        data = table()
        text = pyarrow.array(data["region"].tolist())

        class Arrow:
            def __arrow_c_array__(self, requested_schema=None):
                return text.__arrow_c_array__(requested_schema)

        class Array:
            def __array__(self, dtype=None, copy=None):
                return data["region"]

        for labels in (Arrow(), Array()):
            found = by_group(MEDIAN, data["pay"], labels=labels, keys=KEYS, rng=PCG64(3))
            np.testing.assert_array_equal(np.asarray(found), expected(MEDIAN))


class TestGroupbysOfOthers:
    """A mechanism in a groupby is charged for each group; the refusal names by_group."""

    HINT = r"does not fit: epsilon = 0\.\d+ is left\. Here a group_?by of {} calls it for each group, .*by_group"

    @pytest.mark.parametrize("way", ["agg", "apply", "transform"])
    def test_pandas(self, way):
        pandas = pytest.importorskip("pandas")
        groups = pandas.DataFrame(table()).groupby("region")["pay"]
        with Ledger(10) as ledger:
            getattr(groups, way)(MEDIAN)
        assert len(ledger.charges) == 4
        with Ledger(1.25) as ledger, pytest.raises(BudgetError, match=self.HINT.format("pandas")):
            getattr(groups, way)(MEDIAN)
        assert len(ledger.charges) == 2

    def test_polars(self):
        polars = pytest.importorskip("polars")
        frame = polars.DataFrame({**table(), "region": table()["region"].tolist()})

        def release(group):
            return group.select("region").head(1).with_columns(pay=polars.lit(MEDIAN(group["pay"])))

        with Ledger(1.25) as ledger, pytest.raises(Exception, match=self.HINT.format("polars")):
            frame.group_by("region").map_groups(release)
        assert len(ledger.charges) == 2

    def test_other_callers(self):
        with Ledger(0.75) as ledger:
            MEDIAN(table()["pay"])
            with pytest.raises(BudgetError, match=r"is left$"):
                MEDIAN(table()["pay"])
        assert len(ledger.charges) == 1
