"""T36: Engines under injected faults: one charge and one release, or a clear error without a draw.

Spark has `tests/hosts/test_spark_faults.py`. `untouched` and `drawn_once` look at the source of the noise, so that
noise that is drawn twice, or in vain, is found although only one release is returned.
"""

import contextlib
import os
import signal
import threading
import warnings
from functools import partial

import numpy as np
import pytest

import dpfast as dpf
from dpfast.regression import Descent
from dpfast.statistics import Huber, Mean, Median
from tests.clusters import two_workers

pytestmark = pytest.mark.host

RECORDS = np.random.default_rng(0).normal(30, 8, 500)
GRID = dpf.Grid(-10, 100)
MEAN = dpf.GlobalSensitivity(Mean(), grid=GRID, epsilon=1.0)
HUBER = dpf.InverseSensitivity(Huber(2.0), grid=GRID, epsilon=1.0)
BLOCKS = dpf.SampleAndAggregate("normal", bounds={"mean": (0, 60), "sd": (1, 20)}, epsilon=1.0)


def source():
    return np.random.PCG64(1)


def untouched(rng):
    return rng.state == source().state


def drawn_once(rng, release):
    """Whether the noise was drawn as for the release in memory, and no further; the release by a fresh source."""
    expected = source()
    return release(expected), rng.state == expected.state


def fails(chunk, folder, times, end):
    """A chunk whose first reads fail, by an exception or by the end of the process; a mark in the folder for each."""
    for i in range(times):
        try:
            (folder / str(i)).touch(exist_ok=False)
        except FileExistsError:
            continue
        if end:
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError("the disk is gone")
    return chunk


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Workers in which a task that ends a process twice has ended it for good."""
    dask = pytest.importorskip("dask")
    pytest.importorskip("distributed")
    folder = tmp_path_factory.mktemp("workers")
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        two_workers(folder, silence_logs=50) as client,
    ):
        yield client


class TestDask:
    @pytest.fixture(autouse=True)
    def _dask(self):
        pytest.importorskip("dask.array")
        self.distributed = pytest.importorskip("distributed")
        pytest.importorskip("dpfast.dask")

    @pytest.fixture
    def workers(self, cluster):
        """Both workers, after those that a test ended have started again."""
        cluster.wait_for_workers(2)

    def chunks(self, folder, times, *, end, retries=0):
        import dask

        folder.mkdir()
        first, *others = np.array_split(RECORDS, 5)
        with dask.annotate(retries=retries):
            faulty = dask.delayed(fails, pure=False)(first, folder, times, end)
        return [faulty, *map(dask.delayed, others)]

    def released(self, mechanism, chunks, error=None):
        """The release under a ledger, which is charged once in any case; None if it raises the error."""
        rng = source()
        with dpf.Ledger(1.5, 1e-5) as ledger:
            if error is None:
                release = dpf.dask.release(mechanism, chunks, rng=rng)
            else:
                with pytest.raises(error[0], match=error[1]):
                    dpf.dask.release(mechanism, chunks, rng=rng)
                assert untouched(rng)
            assert [charge.times for charge in ledger.charges] == [1]
            with pytest.raises(dpf.BudgetError):  # to try again is another release
                dpf.dask.release(MEAN, chunks)
        return (release, rng) if error is None else None

    @pytest.mark.parametrize("mechanism", [MEAN, HUBER, BLOCKS], ids=["mean", "huber", "blocks"])
    def test_a_worker_is_killed(self, workers, tmp_path, mechanism):
        release, rng = self.released(mechanism, self.chunks(tmp_path / "marks", 1, end=True))
        expected, once = drawn_once(rng, lambda fresh: mechanism(RECORDS, rng=fresh))
        np.testing.assert_array_equal(release, expected)
        assert once

    def test_a_worker_is_killed_in_a_regression(self, workers, tmp_path):
        import dask

        X, budget = np.stack([RECORDS, RECORDS[::-1]], axis=1), {"epsilon": 1.0, "delta": 1e-6}
        y = (RECORDS > 30).astype(int)
        privacy = dpf.Privacy(*budget.values())
        descent = Descent("logistic", n=500, d=2, domain=dpf.domains.Ball(60.0), privacy=privacy)
        chunks = self.chunks(tmp_path / "marks", 1, end=True)
        parts = zip(chunks, np.array_split(X, 5), np.array_split(y, 5), strict=True)
        pairs = [dask.delayed(lambda _, rows, labels: (rows, labels))(*part) for part in parts]
        fit, rng = self.released(descent, pairs)
        made, once = drawn_once(rng, lambda fresh: dpf.glm(X, y, model="logistic", radius=60.0, rng=fresh, **budget))
        np.testing.assert_array_equal(fit.coefficients, made.coefficients)
        assert once

    def test_a_task_fails_twice(self, workers, tmp_path):
        release, rng = self.released(HUBER, self.chunks(tmp_path / "marks", 2, end=False, retries=2))
        assert (release, True) == drawn_once(rng, lambda fresh: HUBER(RECORDS, rng=fresh))
        assert len(list((tmp_path / "marks").iterdir())) == 2

    def test_a_task_fails_always(self, workers, tmp_path):
        self.released(HUBER, self.chunks(tmp_path / "marks", 99, end=False), (OSError, "the disk is gone"))

    def test_a_task_ends_every_worker(self, workers, tmp_path):
        self.released(
            HUBER, self.chunks(tmp_path / "marks", 99, end=True), (self.distributed.KilledWorker, "fails|died while")
        )

    def test_workers_without_the_library(self, tmp_path):
        """They cannot read the tasks, for whose results Dask would wait for ever."""
        chunks, rng = self.chunks(tmp_path / "marks", 0, end=False), source()
        randomizer = dpf.local.Categorical(3, 1.0)
        without = {"preload": ["import sys\nsys.modules['dpfast'] = None"], "silence_logs": 50}
        with two_workers(tmp_path, start="spawn", **without), dpf.Ledger(1.5) as ledger:
            for call in (
                lambda: dpf.dask.release(HUBER, chunks, rng=rng),
                lambda: dpf.dask.state(HUBER, chunks),
                lambda: dpf.dask.aggregate(randomizer, chunks),
            ):
                with pytest.raises(ImportError, match="dpfast cannot be imported on the workers tcp://"):
                    call()
        assert ledger.charges == ()
        assert untouched(rng)


class TestDuckDB:
    @pytest.fixture
    def engine(self):
        pytest.importorskip("pyarrow")
        made = pytest.importorskip("duckdb").connect()
        made.execute("CREATE TABLE t AS SELECT range % 100 AS x FROM range(1000000)")
        return made

    def test_an_interrupted_count_costs_nothing(self, engine):
        import duckdb

        rng, over = source(), threading.Event()

        def interrupt():
            while not over.wait(0.1):  # one that comes before the query is lost
                engine.interrupt()

        thread = threading.Thread(target=interrupt)
        thread.start()

        def count_and_release():
            slow = f"SELECT {GRID.sql('t.x')} AS code, count(*) AS n FROM t, range(5000) AS u GROUP BY code"
            counted = engine.execute(slow).fetchnumpy()
            return MEAN.release_counts(counted["code"], counted["n"], rng=rng)

        with dpf.Ledger(1.0) as ledger, pytest.raises(duckdb.InterruptException, match="Interrupted"):
            count_and_release()
        over.set()
        thread.join()
        assert ledger.charges == ()
        assert untouched(rng)

    def test_an_interrupted_stream_of_records_is_no_shorter_column(self, engine):
        """It raises; it is not taken for a column that ends there."""
        rng, read = source(), []

        def batches():
            relation = engine.sql("SELECT x FROM t")
            reader = relation.to_arrow_reader if hasattr(relation, "to_arrow_reader") else relation.fetch_arrow_reader
            for batch in reader(10_000):
                read.append(batch.num_rows)
                yield batch.column(0)
                engine.interrupt()

        with dpf.Ledger(1.5) as ledger:
            with pytest.raises(Exception, match="Interrupted"):
                MEAN(dpf.Chunks(batches), rng=rng)
            assert ledger.charges == ()  # records of unknown number are counted before the charge
        assert 0 < sum(read) < 1_000_000
        assert untouched(rng)


class TestPolars:
    @pytest.fixture
    def pl(self):
        made = pytest.importorskip("polars")
        pytest.importorskip("dpfast.polars")
        return made

    @pytest.mark.parametrize("engine", ["in-memory", "streaming"])
    @pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
    def test_a_source_that_breaks_costs_nothing(self, pl, engine, error):
        """Polars reads all records of an expression before it evaluates it."""
        from polars.io.plugins import register_io_source

        def broken(*_):
            yield pl.DataFrame({"x": RECORDS})
            raise error("the disk is gone")

        rng = source()
        with dpf.Ledger(1.0) as ledger:
            lazy = register_io_source(broken, schema={"x": pl.Float64}).select(
                pl.col("x").dpfast.release(MEAN, rng=rng)
            )
            with pytest.raises((error, pl.exceptions.ComputeError), match="the disk is gone"):
                lazy.collect(engine=engine)
        assert ledger.charges == ()
        assert untouched(rng)

    @pytest.mark.parametrize("engine", ["in-memory", "streaming"])
    def test_a_query_that_breaks_after_a_release(self, pl, engine):
        """The release is lost and stays charged: once for one draw, and again when the query is run again."""
        broken = []

        def breaks(x):
            if not broken:
                broken.append(1)
                raise OSError("the disk is gone")
            return x

        rng = source()
        with dpf.Ledger(2.5) as ledger:
            made = pl.col("x").dpfast.release(MEAN, rng=rng).map_batches(breaks, return_dtype=pl.Float64)
            lazy = pl.LazyFrame({"x": RECORDS}).select(made)
            with pytest.raises((OSError, pl.exceptions.ComputeError), match="the disk is gone"):
                lazy.collect(engine=engine)
        assert len(ledger.charges) == 1
        assert drawn_once(rng, lambda fresh: MEAN(RECORDS, rng=fresh))[1]
        lazy.collect(engine=engine)
        assert len(ledger.charges) == 2

    def test_a_query_that_is_cancelled(self, pl):
        """In the background, while the records are read: none, or one charge and one draw."""
        entered, go = threading.Event(), threading.Event()

        def waits(x):
            entered.set()
            go.wait(30)
            return x

        rng = source()
        with dpf.Ledger(5.0) as ledger:
            made = pl.col("x").map_batches(waits, return_dtype=pl.Float64).dpfast.release(MEAN, rng=rng)
            query = pl.LazyFrame({"x": RECORDS}).select(made).collect(background=True)
            entered.wait(30)
            query.cancel()
            go.set()
            with contextlib.suppress(pl.exceptions.ComputeError):  # it may be over before it is cancelled
                query.fetch_blocking()
        assert (len(ledger.charges), untouched(rng)) in ((0, True), (1, False))
        if ledger.charges:
            assert drawn_once(rng, lambda fresh: MEAN(RECORDS, rng=fresh))[1]


class TestBeam:
    """The combiners of PipelineDP draw on the workers: each attempt of a bundle draws anew, and Beam keeps one."""

    def test_a_bundle_that_is_retried(self, tmp_path):
        beam = pytest.importorskip("apache_beam")
        pipeline_dp = pytest.importorskip("pipeline_dp")
        from apache_beam.options.pipeline_options import PipelineOptions

        import dpfast.pipeline_dp as dpf_pipeline

        marks, out = tmp_path / "marks", tmp_path / "out"
        marks.mkdir()

        class Breaking(dpf_pipeline.MechanismCombiner):
            def compute_metrics(self, accumulator):
                return fails(super().compute_metrics(accumulator), marks, 2, False)

        make = partial(dpf.InverseSensitivity, Median(), grid=dpf.Grid(0, 100, step=1), neighbors="add-remove")
        rows = [(person, place, 40) for person in range(60) for place in "ab"]
        params = pipeline_dp.AggregateParams(
            metrics=[],
            custom_combiners=[Breaking(make, name="median")],
            max_partitions_contributed=2,
            max_contributions_per_partition=1,
        )
        extractors = pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: row[1],
            value_extractor=lambda row: row[2],
        )
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=1e-6)
        options = PipelineOptions(["--runner=BundleBasedDirectRunner"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with beam.Pipeline(options=options) as pipeline:
                engine = pipeline_dp.DPEngine(accountant, pipeline_dp.BeamBackend())
                result = engine.aggregate(
                    pipeline | beam.Create(rows), params, extractors, public_partitions=["a", "b"]
                )
                accountant.compute_budgets()
                _ = result | beam.io.WriteToText(str(out), num_shards=1)
        [text] = tmp_path.glob("out-*")
        assert len(list(marks.iterdir())) == 2
        assert len(text.read_text().splitlines()) == 2
