"""Releases of Dask collections equal those of the same records in memory, on threads, processes and a cluster."""

import dataclasses
import os
import signal
import threading
import time

import numpy as np
import pytest

import dpfast as dpf
import dpfast.dask
from dpfast import local
from dpfast.densities import PerturbedHistogram, SeriesCoefficients
from dpfast.regression import Corrections, Descent
from dpfast.statistics import Huber, Median, Sum, TrimmedMean
from tests.clusters import two_workers

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

PCG = np.random.PCG64
GRID = dpf.Grid(-10, 100)
MECHANISMS = [
    dpf.InverseSensitivity(TrimmedMean(0.1), grid=GRID, epsilon=1.0),
    dpf.InverseSensitivity(Huber(2.0), grid=GRID, epsilon=1.0),
    dpf.SmoothSensitivity(Median(), grid=dpf.Grid(-(2.0**20), 2.0**20, step=2.0**-30), epsilon=2.0),
    dpf.GlobalSensitivity(Sum(), grid=GRID, epsilon=1.0),
    dpf.Quantiles([0.1, 0.9], grid=GRID, epsilon=2.0),
    PerturbedHistogram(5, grid=GRID, epsilon=1.0),
    SeriesCoefficients(5, grid=GRID, epsilon=1.0),
    dpf.NestedBoxes(grid=GRID, epsilon=2.0),
    dpf.robust.IndependentColumns(grid=GRID, dimension=2, epsilon=2.0, delta=1e-6),
]
RECORDS = np.random.default_rng(0).normal(30, 8, 500)


def records(mechanism):
    return np.stack([RECORDS, RECORDS[::-1]], axis=1) if mechanism.dimensions == 2 else RECORDS


def same(a, b):
    return np.array_equal(getattr(a, "counts", a), getattr(b, "counts", b))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("branches", [2, 8])
def test_an_array(mechanism, branches):
    x = records(mechanism)
    with dask.config.set(scheduler="threads"):
        collection = da.from_array(x, chunks=(70, 1)[: x.ndim])
        release = dpf.dask.release(mechanism, collection, rng=PCG(1), branches=branches)
        several = dpf.dask.release(mechanism, collection, size=2, rng=PCG(1), branches=branches)
    assert same(release, mechanism(x, rng=PCG(1)))
    assert same(several, mechanism.release(x, size=2, rng=PCG(1)))


def test_delayed_counts():
    values, counts = np.unique(RECORDS.round(), return_counts=True)
    chunks = [dask.delayed(dpf.Counted)(values[part], counts[part]) for part in (slice(9), slice(9, None))]
    release = dpf.dask.release(MECHANISMS[0], chunks, rng=PCG(1))
    assert release == MECHANISMS[0](RECORDS.round(), rng=PCG(1))


def test_delayed_chunks_and_none():
    chunks = [dask.delayed(RECORDS[:200]), dask.delayed(RECORDS[200:].tolist())]
    assert dpf.dask.release(MECHANISMS[0], chunks, rng=PCG(1)) == MECHANISMS[0](RECORDS, rng=PCG(1))
    with pytest.raises(ValueError, match="x is empty"):
        dpf.dask.release(MECHANISMS[0], [])


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_masked_entries_are_missing(mechanism):
    x = records(mechanism)
    hidden = np.random.default_rng(2).random(x.shape) < 0.3
    collection = da.from_array(np.ma.array(x, mask=hidden), chunks=(70, 1)[: x.ndim])
    expected = mechanism(np.where(hidden, np.nan, x), rng=PCG(1))
    assert same(dpf.dask.release(mechanism, collection, rng=PCG(1)), expected)


def test_columns_of_a_frame():
    pandas = pytest.importorskip("pandas")
    frames = pytest.importorskip("dask.dataframe")
    frame = pandas.DataFrame({"a": RECORDS, "b": RECORDS[::-1]})
    collection = frames.from_pandas(frame, npartitions=4)
    assert dpf.dask.release(MECHANISMS[0], collection["a"], rng=PCG(1)) == MECHANISMS[0](RECORDS, rng=PCG(1))
    boxes = MECHANISMS[-1]
    assert same(dpf.dask.release(boxes, collection, rng=PCG(1)), boxes(records(boxes), rng=PCG(1)))


def test_records_with_labels():
    """Pairs of arrays, of a frame and a series, and a frame whose last column has the labels."""
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    domain, labels = dpf.domains.Ball(100.0), dpf.domains.Ball(50.0)
    mechanism = dpf.RegressionMoments(domain=domain, labels=labels, epsilon=1.0, delta=1e-6)
    X, y = np.stack([RECORDS, RECORDS[::-1]], axis=1), np.roll(RECORDS, 1)
    table = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y})
    frame = frames.from_pandas(table, npartitions=3)
    expected = mechanism((X, y), rng=PCG(1))
    with dask.config.set(scheduler="threads"):
        for given in (
            (da.from_array(X, chunks=(70, 1)), da.from_array(y, chunks=70)),
            (frame[["a", "b"]], frame["y"]),
            frame,
            [dask.delayed((X[:9], y[:9])), dask.delayed((X[9:], y[9:]))],
        ):
            assert np.array_equal(dpf.dask.release(mechanism, given, rng=PCG(1)), expected)
        with pytest.raises(ValueError, match="X and y must have the same chunks of rows, not 8 and 5 chunks"):
            dpf.dask.release(mechanism, (da.from_array(X, chunks=(70, 1)), da.from_array(y, chunks=100)))
        with pytest.raises(ValueError, match="equally long"):
            dpf.dask.release(mechanism, (da.from_array(X, chunks=(250, 2)), da.from_array(y, chunks=((200, 300),))))


PEOPLE = np.random.default_rng(3).normal(size=(600, 2))
CLASSES = np.argmax(2 * PEOPLE @ [[1, 0, -1], [0, 1, -1]] + np.random.default_rng(4).gumbel(size=(600, 3)), axis=1)
REGRESSIONS = [({"model": "logistic"}, np.minimum(CLASSES, 1)), ({"model": "multinomial", "classes": 3}, CLASSES)]
BUDGET = {"epsilon": 2.0, "delta": 1e-6}


class TestDescents:
    """All steps of a regression on collections: those on the records in memory, with one charge."""

    def descent(self, **options):
        privacy = dpf.Privacy(*BUDGET.values())
        return Descent(n=600, d=2, domain=dpf.domains.Ball(3.0), privacy=privacy, **options)

    @pytest.mark.parametrize(("model", "labels"), REGRESSIONS, ids=["logistic", "multinomial"])
    def test_arrays_and_frames(self, model, labels):
        pandas = pytest.importorskip("pandas")
        frames = pytest.importorskip("dask.dataframe")
        expected = dpf.glm(PEOPLE, labels, radius=3.0, rng=PCG(1), **model, **BUDGET)
        frame = frames.from_pandas(pandas.DataFrame({"a": PEOPLE[:, 0], "b": PEOPLE[:, 1], "y": labels}), npartitions=4)
        pair = (da.from_array(PEOPLE, chunks=(70, 1)), da.from_array(labels, chunks=70))
        for given in (pair, frame, (frame[["a", "b"]], frame["y"])):
            with dpf.Ledger(2.0, 1e-6) as ledger, dask.config.set(scheduler="threads"):
                fit = dpf.dask.release(self.descent(**model), given, rng=PCG(1))
            assert np.array_equal(fit.coefficients, expected.coefficients)
            assert np.array_equal(fit.standard_errors, expected.standard_errors)
            assert fit.privacy == expected.privacy
            [charge] = ledger.charges
            assert charge.label.startswith(f"<glm, {model['model']}, of rows in a ball")

    def test_corrections_of_a_linear_regression(self):
        y = PEOPLE @ [1.0, -1.0] + 0.1 * np.random.default_rng(5).normal(size=len(PEOPLE))
        public = {"n": 600, "d": 2, "domain": dpf.domains.Ball(3.0), "labels": dpf.domains.Ball(6.0)}
        options = {"radius": 3.0, "label_bound": 6.0, "method": "residuals", "epsilon": 8.0}
        expected = dpf.linear_regression(PEOPLE, y, rng=PCG(1), **options)
        pair = (da.from_array(PEOPLE, chunks=(70, 1)), da.from_array(y, chunks=70))
        with dpf.Ledger(8.0) as ledger, dask.config.set(scheduler="threads"):
            fit = dpf.dask.release(Corrections(privacy=dpf.Privacy(8.0), **public), pair, rng=PCG(1))
        assert np.array_equal(fit.coefficients, expected.coefficients)
        assert len(ledger.charges) == 1

    def test_a_cluster(self, tmp_path):
        pytest.importorskip("distributed")
        with two_workers(tmp_path):
            for model, labels in REGRESSIONS:
                pair = (da.from_array(PEOPLE, chunks=(100, 2)), da.from_array(labels, chunks=100))
                fit = dpf.dask.release(self.descent(**model), pair, rng=PCG(1), branches=3)
                expected = dpf.glm(PEOPLE, labels, radius=3.0, rng=PCG(1), **model, **BUDGET)
                assert np.array_equal(fit.coefficients, expected.coefficients)

    def test_is_charged_before_the_chunks_are_read(self):
        def read():
            raise AssertionError("the data were read")

        chunks = [dask.delayed(read)()]
        started = self.descent()
        started.advance([0.0])
        with dpf.Ledger(1.0, 1e-6) as ledger:
            with pytest.raises(dpf.BudgetError):
                dpf.dask.release(self.descent(), chunks)
            for descent, wrong in ((self.descent(), {"size": 2}), (started, {})):
                with pytest.raises(ValueError, match="all its releases at once"):
                    dpf.dask.release(descent, chunks, **wrong)
        assert ledger.charges == ()


def test_processes():
    mechanism, chunks = MECHANISMS[0], [dask.delayed(RECORDS[:200]), dask.delayed(RECORDS[200:])]
    with dask.config.set(scheduler="processes", num_workers=2):
        assert dpf.dask.release(mechanism, chunks, rng=PCG(1)) == mechanism(RECORDS, rng=PCG(1))


SUMS = dpf.SampleAndAggregate("normal", bounds={"mean": (0, 60), "sd": (1, 20)}, epsilon=5.0)
CUTS = [0, 1, 77, 77, 300]


@pytest.mark.parametrize("mechanism", [SUMS, dataclasses.replace(SUMS, blocks=7)], ids=["auto", "7 blocks"])
def test_blocks_by_position(mechanism):
    x = np.sort(RECORDS)  # blocks of another order have other estimates
    known = da.from_array(x, chunks=70)
    parts = [dask.delayed(part) for part in np.split(x, CUTS)]
    with dask.config.set(scheduler="threads"):
        for collection in (known, known[known > -np.inf], parts, [dask.delayed(x)]):
            for branches in (2, 8):
                release = dpf.dask.release(mechanism, collection, rng=PCG(1), branches=branches)
                np.testing.assert_array_equal(release, mechanism(x, rng=PCG(1)))
            several = dpf.dask.release(mechanism, collection, size=2, rng=PCG(1))
            np.testing.assert_array_equal(several, mechanism.release(x, size=2, rng=PCG(1)))
        there, back = (dpf.dask.release(mechanism, y, rng=PCG(1)) for y in (parts, parts[::-1]))
        assert not np.array_equal(there, back)
        for empty in ([], [dask.delayed([])]):
            with pytest.raises(ValueError, match="x is empty"):
                dpf.dask.release(mechanism, empty)


def test_blocks_of_a_column():
    pandas = pytest.importorskip("pandas")
    frames = pytest.importorskip("dask.dataframe")
    column = frames.from_pandas(pandas.DataFrame({"a": RECORDS}), npartitions=4)["a"]
    np.testing.assert_array_equal(dpf.dask.release(SUMS, column, rng=PCG(1)), SUMS(RECORDS, rng=PCG(1)))


def test_wrong_arguments_are_told_before_the_data_are_read():
    def read():
        raise AssertionError("the data were read")

    chunks = [dask.delayed(read)()]
    with pytest.raises(TypeError, match="rng"):
        dpf.dask.release(MECHANISMS[0], chunks, rng=3)
    with pytest.raises(ValueError, match="branches must be at least 2"):
        dpf.dask.release(MECHANISMS[0], chunks, branches=1)
    with pytest.raises(TypeError, match="does not read records"):
        dpf.dask.release(dpf.Selection(epsilon=1.0), chunks)
    with pytest.raises(TypeError, match="needs whole blocks"):
        dpf.dask.release(dpf.SampleAndAggregate(np.median, bounds=(0, 1), epsilon=1.0), chunks)
    with pytest.raises(TypeError, match="cannot be shuffled"):
        dpf.dask.release(dataclasses.replace(SUMS, shuffle=1), chunks)


@pytest.mark.parametrize("randomizer", [local.Categorical(9, 1.0), local.Hypercube(5, 1.0)], ids=str)
def test_local_reports(randomizer):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 9, 1000) if isinstance(randomizer, local.Categorical) else rng.normal(size=(1000, 5)) / 3
    reports = randomizer.randomize(x, rng=PCG(2))
    chunks = [dask.delayed(reports[i : i + 300]) for i in range(0, 1000, 300)]
    for branches in (2, 8):
        assert dpf.dask.aggregate(randomizer, chunks, branches=branches) == randomizer.aggregate(reports)
    if reports.dtype.names is None:
        whole = da.from_array(reports, chunks=(400, *reports.shape[1:]))
        assert dpf.dask.aggregate(randomizer, whole) == randomizer.aggregate(reports)
    with pytest.raises(ValueError, match="no chunks"):
        dpf.dask.aggregate(randomizer, [])


def slow(chunk, folder):
    """A chunk that leaves a mark with the worker's process and takes its time."""
    (folder / f"{os.getpid()}-{time.time_ns()}").touch()
    time.sleep(0.3)
    return chunk


def test_a_worker_is_killed_in_the_middle(tmp_path):
    pytest.importorskip("distributed")
    with two_workers(tmp_path) as client:
        victims = client.run(os.getpid).values()
        folder = tmp_path / "marks"
        folder.mkdir()
        chunks = [dask.delayed(slow)(chunk, folder) for chunk in np.array_split(RECORDS, 10)]

        def kill():
            """End the first worker that holds a chunk and reads another one."""
            while not (busy := [pid for pid in victims if len(list(folder.glob(f"{pid}-*"))) >= 2]):
                time.sleep(0.02)
            os.kill(busy[0], signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        release = dpf.dask.release(MECHANISMS[0], chunks, rng=PCG(1))
        killer.join()
        assert len(list(folder.iterdir())) > 20  # two passes over ten chunks, and the lost ones
    assert release == MECHANISMS[0](RECORDS, rng=PCG(1))


def test_a_release_is_charged_before_the_chunks_are_read():
    def read():
        raise AssertionError("the data were read")

    ledger, chunks = dpf.Ledger(1.5), [dask.delayed(read)()]
    with ledger:
        for wrong in ({"rng": 3}, {"branches": 1}, {"size": -1}):
            with pytest.raises((TypeError, ValueError)):
                dpf.dask.release(MECHANISMS[0], chunks, **wrong)
        with pytest.raises(TypeError, match="does not read records"):
            dpf.dask.release(dpf.Selection(epsilon=1.0), chunks)
        with pytest.raises(dpf.BudgetError, match="do not fit"):
            dpf.dask.release(MECHANISMS[0], chunks, size=2)
        for wrong in (5, None, dask.delayed):
            with pytest.raises(TypeError, match="not iterable"):
                dpf.dask.release(MECHANISMS[0], wrong)
        assert ledger.charges == ()
        with dask.config.set(scheduler="threads"):
            release = dpf.dask.release(MECHANISMS[0], dask.delayed(RECORDS), rng=PCG(1))
            with pytest.raises(dpf.BudgetError, match="does not fit"):
                dpf.dask.release(SUMS, chunks)
    assert release == MECHANISMS[0](RECORDS, rng=PCG(1))
    assert ledger.spent.epsilon == 1.0
    with (ledger := dpf.Ledger(5.0)), dask.config.set(scheduler="threads"):
        dpf.dask.release(SUMS, [dask.delayed(RECORDS)])
    assert ledger.spent.epsilon == 5.0
