"""Releases from counts that DuckDB makes: the same as of the column."""

import numpy as np
import pytest

import dpfast as dpf
from dpfast.statistics import Count, InterquartileRange, Mean, Median
from tests.central import name, same

duckdb = pytest.importorskip("duckdb")
pytestmark = pytest.mark.host

PCG = np.random.PCG64
N = 20_000
GRID = dpf.Grid(0, 100, step=0.25)
DROP = dpf.Grid(0, 100, step=0.25, missing="drop")
B = {"grid": GRID, "epsilon": 1.0}
MECHANISMS = [
    dpf.InverseSensitivity(Median(), **B),
    dpf.InverseSensitivity(InterquartileRange(), **B),
    dpf.InverseSensitivity(Median(), grid=DROP, epsilon=1.0, neighbors="add-remove"),
    dpf.GlobalSensitivity(Mean(), **B),
    dpf.GlobalSensitivity(Count(), grid=DROP, epsilon=1.0, neighbors="add-remove"),
    dpf.Quantiles([0.1, 0.5, 0.9], **B),
    dpf.PerturbedHistogram(10, **B),
]


@pytest.fixture(scope="module", params=["no nulls", "nulls"])
def column(request):
    x = np.random.default_rng(0).normal(50, 20, N).round(1)
    if request.param == "nulls":
        x[::17] = np.nan
    return x


@pytest.fixture(scope="module")
def engine(column):
    made = duckdb.connect()
    rows = pytest.importorskip("pyarrow").table({"x": column, "key": np.array(["a", "b", "c"])[np.arange(N) % 3]})
    made.register("arrow", rows)
    made.execute("CREATE TABLE t AS SELECT nullif(x, 'NaN'::DOUBLE) AS x, key FROM arrow")
    return made


def fetched(engine, sql, form):
    """The columns of a result in one of DuckDB's forms."""
    if form == "rows":
        return list(zip(*engine.execute(sql).fetchall(), strict=True))
    if form == "numpy":
        return list(engine.execute(sql).fetchnumpy().values())
    return engine.sql(sql).to_arrow_table().columns


@pytest.mark.parametrize("form", ["numpy", "arrow", "rows"])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=name)
def test_a_release_of_codes_is_that_of_the_column(engine, column, mechanism, form):
    [grid] = mechanism.points
    codes, counts = fetched(engine, f"SELECT {grid.sql('x')} AS code, count(*) AS n FROM t GROUP BY code", form)
    assert same(mechanism.release_counts(codes, counts, rng=PCG(1)), mechanism(column, rng=PCG(1)))


@pytest.mark.parametrize("form", ["numpy", "arrow", "rows"])
def test_sums_of_counts_are_counts(engine, column, form):
    """HUGEINT, which is Arrow's decimal and NumPy's double."""
    daily = f"(SELECT {GRID.sql('x')} AS code, key, count(*) AS n FROM t GROUP BY code, key)"
    codes, counts = fetched(engine, f"SELECT code, sum(n) AS n FROM {daily} GROUP BY code", form)
    mechanism = MECHANISMS[0]
    assert same(mechanism.release_counts(codes, counts, rng=PCG(1)), mechanism(column, rng=PCG(1)))


@pytest.mark.parametrize("form", ["numpy", "arrow", "rows"])
def test_values_for_a_grid_of_floats(engine, column, form):
    values, counts = fetched(engine, "SELECT x, count(*) AS n FROM t GROUP BY x", form)
    assert dpf.median(dpf.Counted(values, counts), epsilon=1.0, rng=PCG(1)) == dpf.median(
        column, epsilon=1.0, rng=PCG(1)
    )


@pytest.mark.parametrize("form", ["numpy", "arrow"])
def test_the_type_of_integers_does_not_depend_on_nulls(form):
    """Both become steps of 1, and the same codes."""
    for rows in ("(1), (2), (90)", "(1), (2), (NULL)"):
        engine = duckdb.connect()
        engine.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {rows}) AS t(age)")
        values, counts = fetched(engine, "SELECT age, count(*) AS n FROM t GROUP BY age", form)
        assert dpf.Counted(values, counts).declares_integers()


def test_groups(engine, column):
    sql = f"SELECT key, {GRID.sql('x')} AS code, count(*) AS n FROM t GROUP BY key, code"
    found = engine.execute(sql).fetchnumpy()
    mechanism = dpf.GlobalSensitivity(Mean(), grid=GRID, epsilon=1e6)
    counted = dpf.Counted.of_codes(GRID, found["code"], found["n"])
    released = dpf.by_group(mechanism, counted, labels=found["key"], keys=["c", "a", "b"])
    for i, key in enumerate("abc"):
        assert released[key] == pytest.approx(mechanism(column[i::3]), abs=1e-3)
