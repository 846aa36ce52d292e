"""The Spark example: a release of a column equals that of the same records in one array."""

import importlib.util
import os
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import dpfast as dpf
from dpfast.statistics import Huber, Mean, Median, TrimmedMean

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pandas")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the libraries among themselves
    pytest.importorskip("pyspark.sql.functions")
if not (shutil.which("java") or "JAVA_HOME" in os.environ):
    pytest.skip("Spark needs Java", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("ignore:::pyspark", "ignore:PySpark", "ignore::ResourceWarning")

FILE = Path(__file__).parents[2] / "examples" / "spark.py"
_spec = importlib.util.spec_from_file_location("spark", FILE)
spark = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(spark)

PCG = np.random.PCG64
GRID = dpf.Grid(-10, 100)
WIDE = dpf.Grid(-(2.0**20), 2.0**20, step=2.0**-30)
RECORDS = np.random.default_rng(0).normal(30, 8, 500)


@pytest.fixture(scope="module")
def session():
    """Two threads, whose Python workers import this dpfast."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("PYTHONPATH", str(Path(dpf.__file__).parents[1]))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setattr(spark, "MERGERS", 2)
        builder = spark.SparkSession.builder.master("local[2]")
        settings = {"spark.ui.enabled": "false", "spark.sql.execution.arrow.maxRecordsPerBatch": "64"}
        started = builder.config(map=settings).getOrCreate()
        yield started
        started.stop()


def framed(session, partitions=3, **columns):
    return session.createDataFrame(pa.table(columns)).repartition(partitions)


@pytest.mark.parametrize(
    "mechanism",
    [
        dpf.GlobalSensitivity(Mean(), grid=GRID, epsilon=1.0),
        dpf.InverseSensitivity(TrimmedMean(0.1), grid=GRID, epsilon=1.0),
        dpf.InverseSensitivity(Huber(2.0), grid=GRID, epsilon=1.0),
        dpf.SmoothSensitivity(Median(), grid=WIDE, epsilon=2.0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_a_release_is_that_of_one_array(session, mechanism):
    frame = framed(session, a=RECORDS)
    assert spark.release(mechanism, frame, "a", rng=PCG(1)) == mechanism(RECORDS, rng=PCG(1))


def test_nulls_are_missing_and_integers_are_numbers(session):
    mechanism = dpf.InverseSensitivity(Median(), grid=dpf.Grid(0, 100, missing=90), epsilon=5.0)
    column = pa.array([None, 3, None, 50, None] * 20, pa.int32())
    holes = [90.0, 3.0, 90.0, 50.0, 90.0] * 20
    for name, kind in (("a", pa.int32()), ("b", pa.float32())):
        frame = framed(session, **{name: column.cast(kind)})
        assert spark.release(mechanism, frame, name, rng=PCG(1)) == mechanism(holes, rng=PCG(1))


def test_several_columns(session):
    mechanism = dpf.NestedBoxes(grid=GRID, epsilon=2.0)
    frame = framed(session, a=RECORDS, b=RECORDS[::-1], other=np.zeros(500))
    here = mechanism(np.stack([RECORDS[::-1], RECORDS], axis=1), rng=PCG(1))
    np.testing.assert_array_equal(spark.release(mechanism, frame, ["b", "a"], rng=PCG(1)), here)


def test_partitions_without_records_and_none_at_all(session):
    mechanism = dpf.GlobalSensitivity(Mean(), grid=GRID, epsilon=1.0)
    frame = framed(session, partitions=20, a=RECORDS[:3])
    assert spark.release(mechanism, frame, "a", rng=PCG(1)) == mechanism(RECORDS[:3], rng=PCG(1))
    with pytest.raises(ValueError, match="x is empty"):
        spark.release(mechanism, frame.limit(0), "a")


def test_a_release_is_charged(session):
    mechanism, frame = dpf.GlobalSensitivity(Mean(), grid=GRID, epsilon=1.0), framed(session, a=RECORDS)
    with dpf.Ledger(1.5) as ledger:
        spark.release(mechanism, frame, "a")
        with pytest.raises(dpf.BudgetError, match="does not fit"):
            spark.release(mechanism, None, "a")  # before the frame is read
    assert ledger.spent.epsilon == 1.0


def test_the_command_line(session, capsys):
    spark.main(["--rows", "20000", "--epsilon", "10"])  # stops the session: the last test
    first, second = capsys.readouterr().out.splitlines()
    quartiles = [float(value.replace(",", "")) for value in first.removeprefix("quartiles: ").split(", ")]
    np.testing.assert_allclose(quartiles, 48_000 * np.exp(0.55 * np.array([-0.6745, 0, 0.6745])), rtol=0.05)
    assert second.startswith("20,000 rows in ")
