"""Grid codes in SQL: the expression is `encode`, for every double."""

import math
import re

import numpy as np
import pytest

import dpfast as dpf
from tests.cases import every
from tests.reference.grid import encode

pytestmark = pytest.mark.host

GRIDS = [
    dpf.Grid(0, 100, step=1),
    dpf.Grid(-7, 9, step=2),
    dpf.Grid(-10, 100),
    dpf.Grid(-(2.0**20), 2.0**20, step=2.0**-30),
    dpf.Grid(0, 2.0**-1072, step=2.0**-1074),
    dpf.Grid(-(2.0**1000), 2.0**1000, step=2.0**950),
    dpf.Grid(2.0**53 - 100, 2.0**53, step=1),
    dpf.Grid(-(2.0**53), 100 - 2.0**53, step=1),
    dpf.Grid(1.5, 7.25, step=2.0**-40, missing=3),
]


def adversarial(grid, rng, n=40_000):
    """Doubles in the bounds, next to and at the midpoints, any bits, and the special ones."""
    middle = (grid.first + rng.integers(0, grid.size, n) + rng.choice([0.0, 0.5, -0.5], n)) * grid.step
    any_bits = rng.integers(0, 2**64, n, dtype=np.uint64).view(np.float64)
    special = [math.inf, -math.inf, math.nan, 0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, 0.5 - 2.0**-54]
    inside = grid.lower + rng.random(n) * (grid.upper - grid.lower)
    around = np.nextafter(middle, math.inf), np.nextafter(middle, -math.inf)
    return np.concatenate([inside, middle, *around, any_bits, special, -np.array(special)])


def codes_in(engine, grid, x):
    """The codes by SQL, with -1 for NULL."""
    arrow = pytest.importorskip("pyarrow")
    t = arrow.table({"x": x, "i": np.arange(len(x))})  # noqa: F841  # DuckDB finds it by name
    found = engine.execute(f"SELECT coalesce({grid.sql('x')}, -1) AS code FROM t ORDER BY i").fetchnumpy()["code"]
    return np.asarray(found)


@pytest.fixture(scope="module")
def engine():
    return pytest.importorskip("duckdb").connect()


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_codes_are_those_of_the_grid(engine, grid):
    with np.errstate(all="ignore"):
        x = adversarial(grid, np.random.default_rng(0))
    found = codes_in(engine, grid, x)
    absent = np.isnan(x)
    assert found.dtype == np.int64
    assert (found[absent] == -1).all()
    assert np.array_equal(found[~absent], grid.encode(x[~absent]))


def test_null_and_other_types(engine):
    grid = dpf.Grid(0, 10, step=1)
    rows = engine.execute(f"SELECT {grid.sql('x')} FROM (VALUES (2.5), (NULL), (3.5), (-1), (99)) AS t(x)").fetchall()
    assert [code for (code,) in rows] == [2, None, 4, 0, 10]
    [row] = engine.execute(f"SELECT {grid.sql('x + 1')} FROM (VALUES (2)) AS t(x)").fetchall()
    assert row == (3,)


def test_rounding_halves_away_from_zero_is_rejected(engine):
    """The control: SQL's own `round` differs from the grid."""
    grid = dpf.Grid(0, 100, step=1)
    x = adversarial(grid, np.random.default_rng(0), 1000)
    x = np.clip(x[~np.isnan(x)], 0, 100)
    t = pytest.importorskip("pyarrow").table({"x": x, "i": np.arange(len(x))})  # noqa: F841
    found = np.asarray(engine.execute("SELECT round(x) AS code FROM t ORDER BY i").fetchnumpy()["code"])
    assert not np.array_equal(found, grid.encode(x))


def evaluated(sql, x):
    """The value of the expression in Python, for one double that is a number."""
    cast = re.compile(r"CAST\(x AS DOUBLE\)")
    parts = re.fullmatch(
        r"CASE WHEN (.*) THEN CAST\((.*) AS BIGINT\) WHEN isnan\(x\) THEN NULL "
        r"WHEN (.*) THEN (\d+) WHEN (.*) THEN 0 END",
        cast.sub("x", sql),
    ).groups()
    inside, code, above, last, below = (
        re.sub(r"CASE WHEN (.*) THEN 1e0 ELSE 0e0 END", r"(1.0 if \1 else 0.0)", part)
        .replace(" = ", " == ")
        .replace(" OR ", " or ")
        .replace(" AND ", " and ")
        for part in parts
    )
    names = {"floor": lambda t: float(math.floor(t)), "x": x}
    if eval(inside, names):
        return int(eval(code, names))
    assert eval(above, names) != eval(below, names)
    return int(last) if eval(above, names) else 0


@every("grid", GRIDS, ids=str)
def test_the_expression_in_exact_arithmetic(grid):
    with np.errstate(all="ignore"):
        x = adversarial(grid, np.random.default_rng(1), 20)
    sql = grid.sql("x")
    values = x[~np.isnan(x)].tolist()
    assert [evaluated(sql, value) for value in values] == encode(values, grid)
