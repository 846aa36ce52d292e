"""`dpfast.spark` on a local Spark, classic and Connect: releases equal those of the same records in memory."""

import datetime
import decimal
import doctest
import importlib.util
import os
import shutil
import socket
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import dpfast as dpf
import dpfast.spark
from dpfast.densities import PerturbedHistogram
from dpfast.regression import Descent
from dpfast.spark import counting
from dpfast.spark.frames import ChosenColumns
from dpfast.statistics import Huber, InterquartileRange, Mean, Median, TrimmedMean, Variance

pa = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the libraries among themselves
    pyspark = pytest.importorskip("pyspark.sql")
    connect = pytest.importorskip("pyspark.sql.connect.session", exc_type=ImportError)
if not (shutil.which("java") or "JAVA_HOME" in os.environ):
    pytest.skip("Spark needs Java 17", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("ignore:::pyspark", "ignore:PySpark", "ignore::ResourceWarning")

PCG = np.random.PCG64
GRID = dpf.Grid(-10, 100)
COARSE = dpf.Grid(-10, 100, step=0.5)
WIDE = dpf.Grid(-(2.0**20), 2.0**20, step=2.0**-30)
RECORDS = np.random.default_rng(0).normal(30, 8, 500)
RECORDS[::9] = np.nan
LABELS = np.random.default_rng(1).choice(["a", "b", "c"], 500).tolist()
LABELS[::7] = [None] * len(LABELS[::7])
NUMBERS = np.random.default_rng(2).integers(0, 3, 500)
COLUMNS = {"a": RECORDS, "b": RECORDS[::-1], "label": LABELS, "number": NUMBERS}


@pytest.fixture(scope="module")
def classic():
    """A session of two threads, whose Python workers import this dpfast, and which serves Spark Connect."""
    with socket.socket() as found:
        found.bind(("localhost", 0))
        port = found.getsockname()[1]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("PYTHONPATH", str(Path(dpf.__file__).parents[1]))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        settings = {
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # compile quickly: the queries are short
            "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.port": str(port),
        }
        started = pyspark.SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
        started.connect_port = port
        yield started
        started.stop()


@pytest.fixture
def remote(classic):
    """A session of Spark Connect."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = connect.SparkSession.builder.remote(f"sc://localhost:{classic.connect_port}").create()
        yield started
        started.stop()


@pytest.fixture(scope="module")
def frame(classic):
    return framed(classic, **COLUMNS)


def framed(session, partitions=2, **columns):
    return session.createDataFrame(pa.table(columns)).repartition(partitions)


MECHANISMS = [
    (dpf.GlobalSensitivity(Mean(), grid=GRID, epsilon=1.0), True),
    (dpf.GlobalSensitivity(Variance(), grid=WIDE, epsilon=1.0), True),
    (dpf.GlobalSensitivity(Mean(), grid=GRID.with_missing("drop"), epsilon=1.0, neighbors="add-remove"), True),
    (dpf.InverseSensitivity(Median(), grid=GRID.with_missing(70), epsilon=1.0), True),
    (dpf.InverseSensitivity(TrimmedMean(0.1), grid=GRID, epsilon=5.0), True),
    (dpf.InverseSensitivity(InterquartileRange(), grid=COARSE, epsilon=1.0), True),
    (dpf.SmoothSensitivity(Median(), grid=WIDE, epsilon=2.0), True),
    (dpf.Quantiles([0.1, 0.5, 0.9], grid=GRID, epsilon=2.0), True),
    (PerturbedHistogram(5, grid=COARSE, epsilon=1.0), True),
    (PerturbedHistogram(5, grid=GRID, epsilon=1.0), False),
    (dpf.InverseSensitivity(Huber(2.0), grid=GRID, epsilon=1.0), False),
    (dpf.InverseSensitivity(Median(), grid=dpf.FloatGrid(), epsilon=1.0), False),
]


@pytest.mark.parametrize(("mechanism", "counted"), MECHANISMS, ids=lambda m: type(m).__name__)
def test_a_release_is_that_of_one_array(frame, mechanism, counted):
    assert counting.counted(mechanism, ChosenColumns.of(frame, "a")) == counted
    released, expected = dpfast.spark.release(mechanism, frame, "a", rng=PCG(1)), mechanism(RECORDS, rng=PCG(1))
    assert np.array_equal(getattr(released, "counts", released), getattr(expected, "counts", expected))


@pytest.mark.parametrize("few", [0, 2**20])
@pytest.mark.parametrize("statistic", [Median(), TrimmedMean(0.25)], ids=str)
def test_cells_of_codes_are_refined(classic, monkeypatch, few, statistic):
    """For records in one cell, in far cells, at the ends, and all alike; by one more digit of the code or several."""
    monkeypatch.setattr(counting, "_FEW", few)
    monkeypatch.setattr(counting, "_near_sample", lambda *_: None)
    mechanism = dpf.InverseSensitivity(statistic, grid=WIDE, epsilon=3.0)
    near = 5 + np.random.default_rng(3).integers(0, 50, 60) * 2.0**-30
    far = np.random.default_rng(4).normal(0, 1e6, 60)
    for values in (near, far, np.full(9, 7.0), np.array([-np.inf] * 30 + [np.inf] * 31), np.concatenate([near, far])):
        released = dpfast.spark.release(mechanism, framed(classic, a=values), "a", size=3, rng=PCG(1))
        assert np.array_equal(released, mechanism.release(values, size=3, rng=PCG(1)))


@pytest.mark.parametrize(
    "mechanism",
    [
        dpf.InverseSensitivity(Median(), grid=WIDE, epsilon=3.0),
        dpf.InverseSensitivity(TrimmedMean(0.25), grid=WIDE, epsilon=3.0),
        dpf.Quantiles([0.01, 0.3, 0.5], grid=WIDE, epsilon=9.0),
    ],
    ids=repr,
)
def test_the_first_records_show_where_the_others_are(classic, monkeypatch, mechanism):
    """In a frame in random order two queries are enough; any other frame is read as if there were no sample."""
    monkeypatch.setattr(counting, "_SAMPLE", 512)
    plain, tried = counting._refined, []
    monkeypatch.setattr(counting, "_refined", lambda *given: tried.append(1) or plain(*given))
    values = np.random.default_rng(3).lognormal(3, 1, 5000)
    for records, refined in (
        (values, 0),
        (np.round(values, -1), 0),
        (np.full(5000, 7.0), 0),
        (values[:511], 0),
        (values[:512], 0),
        (np.sort(values), 1),
    ):
        tried.clear()
        frame = classic.createDataFrame(pa.table({"a": records})).coalesce(1)
        released = dpfast.spark.release(mechanism, frame, "a", size=3, rng=PCG(1))
        assert np.array_equal(released, mechanism.release(records, size=3, rng=PCG(1)))
        assert len(tried) == refined


def test_codes_are_those_of_the_grid(classic):
    """The SQL of a code, at ties, ends and doubles of all sizes; nulls, integers, floats and booleans."""
    from dpfast.spark.frames import code

    words = np.random.default_rng(5).integers(-(2**63), 2**63, 400)
    for grid in (GRID, COARSE.with_missing(3), WIDE, dpf.Grid(2.0**-1060, 2.0**-1050), dpf.Grid(-1e300, 1e300)):
        points = grid.decode(np.random.default_rng(6).integers(0, grid.size, 50))
        ties = points + grid.step / 2
        values = np.concatenate(
            [words.view(np.float64), words % 100 - 20.0, points, ties, [np.inf, -np.inf, np.nan, -0.0]]
        )
        frame = framed(classic, 1, x=pa.array(values, from_pandas=True))
        codes = frame.selectExpr(f"{code(grid, 'x')} AS code").toArrow().column("code").to_numpy()
        assert np.array_equal(codes, grid.encode(values))
    table = pa.table({"x`y": [True, False, None], "z": pa.array([5, -3, None], pa.int8())})
    codes = classic.createDataFrame(table).selectExpr(code(COARSE, "x`y"), code(COARSE, "z")).toArrow().to_pydict()
    assert list(codes.values()) == [[22, 20, 0], [30, 14, 0]]


def test_sums_of_large_codes_are_exact(classic):
    grid = dpf.Grid(0, 2.0**52 - 1, step=1)
    values = np.array([2.0**52 - 1] * 300 + [2.0**51 + 12345.0] * 7)
    mechanism = dpf.GlobalSensitivity(Variance(), grid=grid, epsilon=1.0)
    total, squares = sum(map(int, values)), sum(int(value) ** 2 for value in values)
    plan, sums = counting.summary(mechanism, ChosenColumns.of(framed(classic, a=values), "a"))
    assert plan.n == 307
    assert sums == (307, total, squares)


def test_releases_of_spark_connect(remote):
    """By sums, counts, refined counts and states; by group, counted and by states; of keys."""
    frame = framed(remote, **COLUMNS)
    for mechanism in (MECHANISMS[0][0], MECHANISMS[5][0], MECHANISMS[6][0], MECHANISMS[11][0]):
        assert dpfast.spark.release(mechanism, frame, "a", rng=PCG(1)) == mechanism(RECORDS, rng=PCG(1))
    for mechanism in (MECHANISMS[0][0], MECHANISMS[3][0]):
        released = dpfast.spark.by_group(mechanism, frame, "a", labels="number", keys=[2, 0, 9], rng=PCG(1))
        expected = dpf.by_group(mechanism, RECORDS, labels=NUMBERS, keys=[2, 0, 9], rng=PCG(1))
        np.testing.assert_array_equal(released, [expected[key] for key in (2, 0, 9)])
    options = {"epsilon": 1.0, "delta": 1e-3, "rng": PCG(1)}
    released = dpfast.spark.partitions(frame, "number", **options)
    assert released.keys.tolist() == [0, 1, 2]
    assert np.array_equal(released.counts, dpf.partitions(NUMBERS, **options | {"rng": PCG(1)}).counts)


def test_rows_and_labels(frame):
    X = np.stack([RECORDS[::-1], RECORDS], axis=1)
    boxes = dpf.NestedBoxes(grid=GRID, epsilon=2.0)
    np.testing.assert_array_equal(dpfast.spark.release(boxes, frame, ["b", "a"], rng=PCG(1)), boxes(X, rng=PCG(1)))
    domain, labels = dpf.domains.Ball(100.0), dpf.domains.Ball(5.0)
    moments = dpf.RegressionMoments(domain=domain, labels=labels, epsilon=1.0, delta=1e-6)
    expected = moments((X, NUMBERS), rng=PCG(1))
    for given in ({"columns": ["b", "a"], "y": "number"}, {"columns": ["b", "a", "number"]}):
        assert np.array_equal(dpfast.spark.release(moments, frame, **given, rng=PCG(1)), expected)


def test_a_logistic_regression(classic):
    rng = np.random.default_rng(7)
    X = rng.uniform(-1, 1, (2000, 2))
    y = (rng.random(2000) < 1 / (1 + np.exp(-X @ [3.0, -1.0]))).astype(float)
    frame = framed(classic, u=X[:, 0], v=X[:, 1], y=y).persist()
    options = {"n": 2000, "d": 2, "domain": dpf.domains.Ball(1.5), "privacy": dpf.Privacy(2.0, 1e-6), "steps": 3}
    here, there = Descent("logistic", **options), Descent("logistic", **options)
    while there.mechanism is not None:
        seed = there.done
        there.advance(dpfast.spark.release(there.mechanism, frame, ["u", "v"], y="y", mergers=2, rng=PCG(seed)))
        here.advance(here.mechanism((X, y), rng=PCG(seed)))
    assert np.array_equal(there.result.coefficients, here.result.coefficients)


def test_partitions_without_records_and_none_at_all(classic):
    frame = framed(classic, partitions=20, a=RECORDS[1:4])
    for mechanism in (MECHANISMS[0][0], MECHANISMS[3][0], MECHANISMS[10][0]):
        assert dpfast.spark.release(mechanism, frame, "a", rng=PCG(1)) == mechanism(RECORDS[1:4], rng=PCG(1))
        with pytest.raises(ValueError, match="x is empty"):
            dpfast.spark.release(mechanism, frame.limit(0), "a")
    hidden = MECHANISMS[2][0]
    assert dpfast.spark.release(hidden, frame.limit(0), "a", rng=PCG(1)) == hidden([], rng=PCG(1))


def test_a_frame_that_changes_is_refused(classic):
    start = time.time()

    def shorter_and_shorter(_):
        rows = 2**20 + int(1e3 * (start - time.time()))  # fewer every millisecond
        yield pa.record_batch({"a": np.full(rows, 7.0)})

    changing = classic.range(1, numPartitions=1).mapInArrow(shorter_and_shorter, "a double")
    with pytest.raises(ValueError, match="the frame had different records in two passes: persist it"):
        dpfast.spark.release(MECHANISMS[3][0], changing, "a")


BY_GROUP = [
    MECHANISMS[0][0],
    MECHANISMS[2][0],
    dpf.InverseSensitivity(Median(), grid=GRID, epsilon=1.0),
    dpf.InverseSensitivity(InterquartileRange(), grid=COARSE, epsilon=1.0),
    dpf.Quantiles([0.1, 0.9], grid=GRID, epsilon=2.0),
]


@pytest.mark.parametrize("mechanism", BY_GROUP, ids=lambda m: type(m).__name__)
def test_releases_by_group_are_those_in_memory(frame, mechanism):
    """Of one column of keys and of two, with keys that are publicly absent.

    In memory, means of groups of private sizes take the noise of all groups at once, but for counted records.
    """
    table = pandas.DataFrame({"a": RECORDS, "label": LABELS, "number": NUMBERS})
    x = dpf.Counted(RECORDS, np.ones(len(RECORDS), np.int64)) if mechanism.hides_n else table["a"]
    for labels, keys in (("label", ["c", "a", "absent"]), (["label", "number"], [("b", 1), ("a", 2), ("c", 9)])):
        released = dpfast.spark.by_group(mechanism, frame, "a", labels=labels, keys=keys, rng=PCG(1))
        expected = dpf.by_group(mechanism, x, labels=table[labels], keys=keys, rng=PCG(1))
        assert released.to_pandas().equals(expected.to_pandas().rename(columns={"release": "a"}))
        assert released.privacy == expected.privacy


def test_rows_by_group(classic):
    frame = framed(classic, a=RECORDS, b=RECORDS[::-1], flag=NUMBERS > 1, raw=pa.array([b"x", b"y"] * 250))
    mechanism = dpf.NestedBoxes(grid=GRID, epsilon=5.0)
    table = pandas.DataFrame({"a": RECORDS, "b": RECORDS[::-1]})
    for labels, groups, keys in (("flag", (NUMBERS > 1).astype(int), [0, 1]), ("raw", [b"x", b"y"] * 250, [b"y"])):
        released = dpfast.spark.by_group(mechanism, frame, ["a", "b"], labels=labels, keys=keys, rng=PCG(1))
        expected = dpf.by_group(mechanism, table, labels=groups, keys=keys, rng=PCG(1))
        assert list(released.to_pandas())[1:] == ["a", "b"]
        assert list(released) == keys
        np.testing.assert_array_equal(released, expected)


def test_releases_are_charged_once_before_anything_is_read(classic):
    frame, mechanism = framed(classic, a=RECORDS, k=NUMBERS), MECHANISMS[0][0]
    with dpf.Ledger(2.5) as ledger:
        dpfast.spark.release(mechanism, frame, "a")
        dpfast.spark.by_group(mechanism, frame, "a", labels="k", keys=[0, 1, 2])
        assert ledger.spent.epsilon == 2.0
        unreadable = frame.selectExpr("raise_error('the records were read') AS a", "k").selectExpr(
            "CAST(a AS DOUBLE) a", "k"
        )
        with pytest.raises(dpf.BudgetError, match="does not fit"):
            dpfast.spark.release(mechanism, unreadable, "a")
        with pytest.raises(dpf.BudgetError, match="does not fit"):
            dpfast.spark.by_group(mechanism, unreadable, "a", labels="k", keys=[0])
    assert ledger.spent.epsilon == 2.0


INNER = dpf.GlobalSensitivity(Mean(), grid=GRID, epsilon=2.0**-10)


def shifted(frame):
    """A lazy frame, whose tasks release before the records are read."""
    inner = INNER

    def run(batches):
        for batch in batches:
            yield batch[["a"]] - inner(batch["a"].to_numpy())

    return frame.mapInPandas(run, "a double")


def test_tasks_that_release_are_charged_to_the_ledger_that_they_carry(frame, tmp_path):
    """Workers have no ledger; what is sent to them from a block has a ticket."""
    median = dpf.InverseSensitivity(Median(), grid=COARSE, epsilon=0.25)
    with dpf.Ledger(1.0, path=tmp_path / "ledger"):
        dpfast.spark.release(median, shifted(frame), "a")
    epsilons = [charge.profile.privacy.epsilon for charge in dpf.Ledger.open(tmp_path / "ledger").charges]
    assert epsilons.count(0.25) == 1
    assert epsilons.count(2.0**-10) >= len(RECORDS) // 64
    assert set(epsilons) == {0.25, 2.0**-10}


def test_tasks_that_release_are_refused_without_a_file_of_the_ledger(frame):
    median = dpf.InverseSensitivity(Median(), grid=COARSE, epsilon=0.25)
    with dpf.Ledger(1.0) as ledger, pytest.raises(Exception, match="cannot be charged from here"):
        dpfast.spark.release(median, shifted(frame), "a")
    assert [charge.profile.privacy.epsilon for charge in ledger.charges] == [0.25]


def test_wrong_arguments_cost_nothing(classic):
    table = {
        "a": RECORDS,
        "t": ["x"] * 500,
        "c": pa.array([decimal.Decimal("1.5")] * 500),
        "d": [datetime.date(2000, 1, 1)] * 500,
    }
    frame, mechanism = framed(classic, **table), MECHANISMS[0][0]
    blocks = dpf.SampleAndAggregate("normal", bounds={"mean": (0, 60), "sd": (1, 20)}, epsilon=5.0)
    half = dpf.GlobalSensitivity(Mean(), grid=GRID.with_missing("half"), epsilon=1.0)
    with dpf.Ledger(5.0) as ledger:
        for error, match, arguments in (
            (ValueError, "the frame has no column 'z'", (mechanism, frame, "z")),
            (TypeError, "column 't' must hold numbers, not string: cast it to double", (mechanism, frame, "t")),
            (TypeError, r"column 'c' must hold numbers, not decimal\(2,1\)", (mechanism, frame, "c")),
            (ValueError, "several columns of the frame are named 'a'", (mechanism, frame.select("a", "a"), "a")),
            (TypeError, "a column is given by its name, not by a Column", (mechanism, frame, [frame["a"]])),
            (ValueError, "columns must name at least one column", (mechanism, frame, [])),
            (ValueError, "x must be one-dimensional", (mechanism, frame, ["a", "a"])),
            (ValueError, "must be two-dimensional", (dpf.NestedBoxes(grid=GRID, epsilon=2.0), frame, "a")),
            (TypeError, "SampleAndAggregate forms blocks by the positions of records", (blocks, frame, "a")),
            (ValueError, 'missing="half" depends on the positions', (half, frame, "a")),
            (TypeError, r"mechanism must be a dpfast\.Mechanism, not int", (3, frame, "a")),
        ):
            with pytest.raises(error, match=match):
                dpfast.spark.release(*arguments)
        for options, match in (({"rng": 3}, "rng"), ({"mergers": 0.5}, "mergers")):
            with pytest.raises(TypeError, match=match):
                dpfast.spark.release(mechanism, frame, "a", **options)
        with pytest.raises(TypeError, match="column 'd' must hold text, binary or integers, not date"):
            dpfast.spark.by_group(mechanism, frame, "a", labels="d", keys=[1])
        with pytest.raises(ValueError, match="a key must have an entry for each column of labels"):
            dpfast.spark.by_group(mechanism, frame, "a", labels="t", keys=[("x", "y")])
        with pytest.raises(TypeError, match="does not release numbers"):
            dpfast.spark.by_group(PerturbedHistogram(5, grid=GRID, epsilon=1.0), frame, "a", labels="t", keys=["x"])
    assert ledger.spent.epsilon == 0


COUNTS = {"x": 300, "y": 200, "rare": 3, "z": 40}
WORDS = [word for word, count in COUNTS.items() for _ in range(count)]


def test_partitions_are_those_in_memory(classic):
    """Of text, integers and binary in one column or two, with nulls, over domains, and of no keys at all."""
    rng = np.random.default_rng(8)
    words = [None if rng.random() < 0.1 else word for word in rng.permutation(WORDS)]
    numbers, flags = rng.integers(-3, 3, len(words)), rng.random(len(words)) < 0.5
    raw = [str(word).encode() for word in words]
    frame = framed(classic, word=pa.array(words), number=pa.array(numbers, pa.int32()), flag=flags, raw=raw)
    for columns, keys, options in (
        ("word", words, {"delta": 1e-3}),
        ("raw", raw, {"delta": 1e-3}),
        ("number", numbers.astype(np.int32), {"delta": 1e-3, "neighbors": "replace-one"}),
        (["word", "flag"], (words, flags.astype(np.int32)), {"delta": 1e-2, "contributions": 2}),
        ("word", words, {"delta": 1e-3, "contributions": 9, "per_key": 1}),
        ("number", numbers.astype(np.int32), {"domain": 1000}),
        ("word", words, {"domain": ["x", "absent", "z"]}),
    ):
        released = dpfast.spark.partitions(frame, columns, epsilon=1.0, rng=PCG(1), **options)
        expected = dpf.partitions(keys, epsilon=1.0, rng=PCG(1), **options)
        assert np.array_equal(released.counts, expected.counts)
        parts = (released.keys, expected.keys) if isinstance(columns, list) else ([released.keys], [expected.keys])
        assert all(np.array_equal(mine, its) for mine, its in zip(*parts, strict=True))
        assert len(released) > 0
    assert len(dpfast.spark.partitions(frame.where("false"), "word", epsilon=1.0, delta=1e-6)) == 0


def test_groups_of_private_keys(classic):
    words = pa.array([*WORDS, None])
    values = np.random.default_rng(9).normal(30, 8, len(words))
    frame = framed(classic, word=words, a=values)
    selection = dpf.PartitionSelection(1.0, 1e-3)
    mean = dpf.GlobalSensitivity(Mean(), grid=GRID, epsilon=1.0, neighbors="add-remove")
    with dpf.Ledger(2.0, 1e-3, neighbors="add-remove") as ledger:
        released = dpfast.spark.by_group(mean, frame, "a", labels="word", keys="private", partitions=selection)
        with pytest.raises(dpf.BudgetError, match="does not fit"):
            dpfast.spark.by_group(mean, frame, "a", labels="word", keys="private", partitions=selection)
    assert ledger.spent.epsilon == 2.0
    assert {"x", "y"} <= set(released) <= {"x", "y", "z", "rare"}
    assert list(released) == sorted(released)
    assert max(abs(released[key] - 30) for key in "xy") < 5
    assert released.counts.shape == (len(released),)
    assert released.privacy == ledger.spent


def test_wrong_keys_cost_nothing(classic):
    frame = framed(classic, a=RECORDS, number=NUMBERS, when=[datetime.date(2000, 1, 1)] * 500)
    pure, private = MECHANISMS[0][0], MECHANISMS[2][0]
    selection = dpf.PartitionSelection(1.0, 1e-3)
    with dpf.Ledger(5.0, 1e-2, neighbors="add-remove") as ledger:
        with pytest.raises(TypeError, match="column 'when' must hold text, binary or integers, not date: cast it"):
            dpfast.spark.partitions(frame, "when", epsilon=1.0, delta=1e-6)
        with pytest.raises(ValueError, match="columns must name at least one column"):
            dpfast.spark.partitions(frame, [], epsilon=1.0, delta=1e-6)
        with pytest.raises(TypeError, match="keys must be in one column for a number as domain"):
            dpfast.spark.partitions(frame, ["number", "number"], epsilon=1.0, domain=5)
        with pytest.raises(ValueError, match="keys of the domain must have 1 entries each"):
            dpfast.spark.partitions(frame, "number", epsilon=1.0, domain=[(1, 2)])
        with pytest.raises(TypeError, match="must be given together"):
            dpfast.spark.by_group(private, frame, "a", labels="number", keys="private")
        with pytest.raises(ValueError, match="needs neighbors='add-remove'"):
            dpfast.spark.by_group(pure, frame, "a", labels="number", keys="private", partitions=selection)
        with pytest.raises(TypeError, match="labels"):
            dpfast.spark.by_group(pure, frame, "a", labels="number", keys=["x"])
    assert ledger.spent.epsilon == 0


def test_the_guide(classic):
    guide = Path(__file__).parents[2] / "docs" / "guides" / "spark.md"
    assert doctest.testfile(str(guide), module_relative=False).failed == 0


def test_the_example(classic, capsys):
    spec = importlib.util.spec_from_file_location("example", Path(__file__).parents[2] / "examples" / "spark.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.main(["--rows", "20000", "--epsilon", "10"])  # stops the session: the last test
    out = capsys.readouterr().out
    [released] = [line.partition("quartiles: ")[2] for line in out.splitlines() if line.startswith("20,000 rows")]
    quartiles = [float(value.replace(",", "")) for value in released.split(", ")]
    np.testing.assert_allclose(quartiles, 48_000 * np.exp(0.55 * np.array([-0.6745, 0, 0.6745])), rtol=0.05)
    assert "regions found: {'east': " in out
    assert "spent: epsilon = 30, delta = 1e-06" in out
