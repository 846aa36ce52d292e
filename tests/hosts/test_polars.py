"""Releases in expressions of polars: one for each evaluation, of all records, in every engine."""

import datetime
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dpfast as dpf
from dpfast.statistics import Mean, Median

pl = pytest.importorskip("polars")
pytest.importorskip("dpfast.polars")
pytestmark = pytest.mark.host

PCG = np.random.PCG64
N = 20_000
X = np.random.default_rng(0).normal(50, 9, N)
FRAME = pl.DataFrame(
    {
        "x": X,
        "age": X.astype(np.int64),
        "key": np.arange(N) % 3,
        "time": [datetime.datetime(2020, 1, 1) + datetime.timedelta(minutes=i) for i in range(N)],
        "pair": [[1.0, 2.0]] * N,
    }
)
B = {"bounds": (0, 100), "epsilon": 1.0}
MEDIAN = dpf.InverseSensitivity(Median(), grid=dpf.Grid(0, 100), epsilon=1.0)
QUANTILES = dpf.Quantiles([0.25, 0.75], grid=dpf.Grid(0, 100), epsilon=1.0)
METHODS = {
    "median": lambda x: x.median(**B, rng=PCG(1)),
    "quantile": lambda x: x.quantile(0.9, **B, rng=PCG(1)),
    "quantile of several": lambda x: x.quantile([0.1, 0.9], **B, rng=PCG(1)),
    "iqr": lambda x: x.iqr(**B, rng=PCG(1)),
    "trimmed_mean": lambda x: x.trimmed_mean(0.1, **B, rng=PCG(1)),
    "mean": lambda x: x.mean(**B, rng=PCG(1)),
    "sum": lambda x: x.sum(**B, rng=PCG(1)),
    "variance": lambda x: x.variance(**B, rng=PCG(1)),
    "std": lambda x: x.std(**B, rng=PCG(1)),
    "count": lambda x: x.count(epsilon=1.0, rng=PCG(1)),
    "m_estimate": lambda x: x.m_estimate(dpf.psi.Huber(5.0), **B, rng=PCG(1)),
    "release": lambda x: x.release(MEDIAN, rng=PCG(1)),
    "release of several": lambda x: x.release(QUANTILES, rng=PCG(1)),
}


def plain(value):
    return value.to_list() if isinstance(value, pl.Series) else np.asarray(value).tolist()


@pytest.mark.filterwarnings("ignore:a missing cell counts as the lower bound")
@pytest.mark.parametrize("column", ["x", "age"])
@pytest.mark.parametrize("name", METHODS)
def test_a_release_is_that_of_the_array(name, column):
    expression = METHODS[name](pl.col(column).dpfast)
    expected = plain(METHODS[name](FRAME[column].dpfast))
    frame = FRAME.select(expression)
    assert plain(frame.item()) == expected
    assert frame.columns == [column]
    assert frame.schema == FRAME.lazy().select(expression).collect_schema()
    if name == "median":
        assert expected == dpf.median(FRAME[column].to_numpy(), **B, rng=PCG(1))


class TestEngines:
    """A lazy plan passes the whole column once, in every engine."""

    @pytest.fixture
    def path(self, tmp_path):
        FRAME.select("x", "key").write_parquet(tmp_path / "x.parquet", row_group_size=N // 7)
        return tmp_path / "x.parquet"

    @pytest.mark.parametrize("engine", ["in-memory", "streaming"])
    def test_one_release_of_all_records(self, path, engine):
        lazy, expected, ledger = pl.scan_parquet(path), MEDIAN(X, rng=PCG(1)), dpf.Ledger(100.0)
        for plan in (
            lambda made: lazy.select(made),
            lambda made: lazy.with_columns(a=made).select("a").head(1),
            lambda made: lazy.select(a=made + 0, b=pl.lit(1)).select("a"),
            lambda made: lazy.with_columns(a=made).filter(pl.col("key") == 1).select("a").unique(),
            lambda made: lazy.select(a=pl.when(pl.col("x") > -1e9).then(made)).unique(),
        ):
            before = len(ledger.charges)
            with ledger:
                released = plan(pl.col("x").dpfast.release(MEDIAN, rng=PCG(1))).collect(engine=engine)
            assert released.item() == expected
            assert len(ledger.charges) == before + 1
        part = lazy.filter(pl.col("key") == 1).select(pl.col("x").dpfast.release(MEDIAN, rng=PCG(1)))
        assert part.collect(engine=engine).item() == MEDIAN(X[1::3], rng=PCG(1))

    @pytest.mark.parametrize("engine", ["in-memory", "streaming"])
    def test_each_evaluation_draws_and_is_charged(self, engine):
        """The same expression, used three times in a plan, is evaluated once or three times."""
        with dpf.Ledger(100.0) as ledger:
            made = pl.col("x").dpfast.release(MEDIAN)
            values = FRAME.lazy().select(a=made, b=made, c=made).collect(engine=engine).row(0)
            assert len(ledger.charges) == len(set(values))
            again = {FRAME.lazy().select(made).collect(engine=engine).item() for _ in range(5)}
            assert len(ledger.charges) == len(set(values)) + 5
        assert len(again) == 5

    def test_an_unused_release_costs_nothing(self):
        with dpf.Ledger(100.0) as ledger:
            made = pl.col("x").dpfast.release(MEDIAN)
            FRAME.lazy().with_columns(a=made).select("key").collect()
            FRAME.lazy().select(made).collect_schema()
        assert not ledger.charges

    def test_a_plan_that_polars_computes_once_is_one_release(self):
        with dpf.Ledger(100.0) as ledger:
            lazy = FRAME.lazy().select(pl.col("x").dpfast.release(MEDIAN))
            both = pl.concat([lazy, lazy]).collect()["x"]
        assert (both[0] == both[1]) == (len(ledger.charges) == 1)


class TestGroups:
    @pytest.mark.parametrize("engine", ["in-memory", "streaming"])
    @pytest.mark.parametrize(
        "grouped",
        [
            lambda frame, made: frame.group_by("key").agg(made),
            lambda frame, made: frame.group_by("key").agg(made + 1),
            lambda frame, made: frame.with_columns(one=1).group_by("one").agg(made),
            lambda frame, made: frame.select(made.over("key")),
            lambda frame, made: frame.rolling("time", period="2m").agg(made),
            lambda frame, made: frame.select(made.rolling("time", period="2m")),
            lambda frame, made: frame.group_by_dynamic("time", every="1d").agg(made),
            lambda frame, made: frame.select(pl.col("pair").list.eval(pl.element().dpfast.release(MEDIAN))),
        ],
    )
    def test_refused(self, grouped, engine):
        with dpf.Ledger(100.0) as ledger:
            lazy = grouped(FRAME.lazy(), pl.col("x").dpfast.release(MEDIAN))
            with pytest.raises(TypeError, match=r"use dpfast\.by_group"):
                lazy.collect(engine=engine)
        assert not ledger.charges

    def test_one_group_by_a_constant_is_the_frame(self):
        made = pl.col("x").dpfast.release(MEDIAN, rng=PCG(1))
        assert FRAME.group_by(pl.lit(1)).agg(made)["x"].item() == MEDIAN(X, rng=PCG(1))

    def test_a_column_without_a_name_is_not_a_group(self):
        frame = FRAME.select(pl.col("x").alias(""))
        assert frame.select(pl.col("").dpfast.median(**B, rng=PCG(1))).item() == dpf.median(X, **B, rng=PCG(1))


class TestLedger:
    def test_a_budget_that_is_spent(self):
        with dpf.Ledger(1.5) as ledger:
            made = pl.col("x").dpfast.release(MEDIAN)
            FRAME.select(made)
            with pytest.raises(dpf.BudgetError, match="does not fit"):
                FRAME.select(made)
        assert len(ledger.charges) == 1

    def test_the_ledger_of_an_expression_pays_wherever_it_is_evaluated(self):
        with dpf.Ledger(100.0) as ledger:
            made = pl.col("x").dpfast.release(MEDIAN)
        FRAME.select(made)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(FRAME.select, made).result()
        assert len(ledger.charges) == 2

    def test_an_expression_without_a_ledger(self):
        made = pl.col("x").dpfast.release(MEDIAN)
        FRAME.select(made)
        with dpf.Ledger(100.0) as ledger:
            try:
                FRAME.select(a=made, b=made)
            except dpf.BudgetError as error:  # polars evaluates in threads of its own, where no ledger is active
                assert "active in another thread" in str(error)  # noqa: PT017
                assert not ledger.charges
            else:
                assert len(ledger.charges) == 2

    def test_series(self):
        with dpf.Ledger(100.0) as ledger:
            FRAME["x"].dpfast.median(**B)
        assert [charge.profile.privacy.epsilon for charge in ledger.charges] == [1.0]


class TestRefused:
    def test_mechanisms(self):
        with pytest.raises(TypeError, match=r"must be a dpfast\.Mechanism, with its epsilon, not str"):
            pl.col("x").dpfast.release("median")
        histogram = dpf.PerturbedHistogram(5, grid=dpf.Grid(0, 100), epsilon=1.0)
        with pytest.raises(TypeError, match="releases an object"):
            pl.col("x").dpfast.release(histogram)

    def test_parameters(self):
        with pytest.raises(ValueError, match="epsilon must be positive"):
            FRAME.select(pl.col("x").dpfast.mean(bounds=(0, 1), epsilon=-1))
        with pytest.raises(TypeError, match="must hold numbers"):
            FRAME.select(pl.col("time").dpfast.mean(bounds=(0, 1), epsilon=1.0))

    def test_nulls_are_missing_records(self):
        x = pl.Series([1.0, None, 3.0] * 100)
        made = dpf.GlobalSensitivity(Mean(), grid=dpf.Grid(0, 4, step=1, missing=4), epsilon=1e6)
        assert pl.DataFrame({"x": x}).select(pl.col("x").dpfast.release(made)).item() == pytest.approx(8 / 3)
        left_out = dpf.InverseSensitivity(Median(), grid=dpf.FloatGrid(), epsilon=5.0)
        least = dpf.InverseSensitivity(Median(), grid=dpf.FloatGrid(missing="lower"), epsilon=5.0)
        x = pl.Series([1.0, 3.0, 3.0, None, None] * 200)
        assert x.dpfast.release(left_out) == 3.0
        assert x.dpfast.release(least) == 1.0


@pytest.mark.parametrize("order", [("opendp.prelude", "dpfast.polars"), ("dpfast.polars", "opendp.prelude")])
def test_beside_the_namespace_of_opendp(order):
    pytest.importorskip("opendp")
    lines = [
        *(f"import {module}" for module in order),
        "import polars as pl",
        "print(type(pl.col('x').dp).__module__, type(pl.col('x').dpfast).__module__)",
    ]
    found = subprocess.run([sys.executable, "-W", "error", "-c", "\n".join(lines)], capture_output=True, text=True)
    assert not found.stderr
    assert found.stdout.split() == ["opendp.extras.polars", "dpfast.polars"]
