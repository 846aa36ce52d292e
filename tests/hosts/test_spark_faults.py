"""`dpfast.spark` under injected faults, on a cluster of two executors: one charge and one draw, or a clear error."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import dpfast as dpf
import dpfast.spark
from dpfast.statistics import Huber, Median

pa = pytest.importorskip("pyarrow")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the libraries among themselves
    pyspark = pytest.importorskip("pyspark")
    sql = pytest.importorskip("pyspark.sql")
if not (shutil.which("java") or "JAVA_HOME" in os.environ):
    pytest.skip("Spark needs Java 17", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("ignore:::pyspark", "ignore:PySpark", "ignore::ResourceWarning")

ROOT = Path(dpf.__file__).parents[1]
RECORDS = np.random.default_rng(0).normal(30, 8, 500)
GRID = dpf.Grid(-10, 100)
MECHANISMS = {
    "counted by Spark": dpf.InverseSensitivity(Median(), grid=GRID, epsilon=1.0),
    "states on Python workers": dpf.InverseSensitivity(Huber(2.0), grid=GRID, epsilon=1.0),
}
every_way = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A master and two workers of different addresses: Spark copies no task to the address where it runs already."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(), contextlib.ExitStack() as stack:
        warnings.simplefilter("ignore")
        home, folder = os.path.dirname(pyspark.__file__), tmp_path_factory.mktemp("spark")
        patch.setenv("SPARK_HOME", home)
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        master = f"spark://127.0.0.1:{(port := free_port())}"

        def start(name, *arguments):
            command = [
                Path(home, "bin", "spark-class"),
                f"org.apache.spark.deploy.{name}",
                "--webui-port",
                "0",
                *arguments,
            ]
            process = stack.enter_context(subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True))
            stack.callback(os.killpg, process.pid, signal.SIGTERM)

        start("master.Master", "--host", "127.0.0.1", "--port", str(port))
        for i in (2, 3):
            start(
                "worker.Worker", master, "--host", f"127.0.0.{i}", "-c", "1", "-m", "512m", "-d", str(folder / str(i))
            )
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.adaptive.enabled": "false",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "spark.speculation": "true",
            "spark.speculation.quantile": "0.1",
            "spark.speculation.multiplier": "1.1",
            "spark.speculation.minTaskRuntime": "200ms",
            "spark.task.maxFailures": "4",
        }
        started = sql.SparkSession.builder.master(master).config(map=settings).getOrCreate()
        stack.callback(started.stop)
        yield started


def faulty(session, folder, fault):
    """A frame of the records, whose first partition is read with a fault; each attempt leaves a mark."""
    folder.mkdir()

    def read(batches):
        context = pyspark.TaskContext.get()
        batches = list(batches)
        if any(7 in batch.column("i").to_pylist() for batch in batches):
            attempt = context.attemptNumber()
            (folder / f"{attempt}-{context.taskAttemptId()}").touch()
            fault(attempt, folder)
        yield from batches

    table = pa.table({"a": RECORDS, "i": np.arange(500)})
    return session.createDataFrame(table).repartition(4, "i").mapInArrow(read, "a double, i long")


def fails_twice(_, folder):
    """Not by the number of the attempt: that of a copy which Spark ended before it began is never seen."""
    for name in ("first", "second"):
        try:
            (folder / name).touch(exist_ok=False)
        except FileExistsError:
            continue
        raise OSError("the disk is gone")


def fails_always(attempt, _):
    raise OSError("the disk is gone")


def ends_its_executor(_, folder):
    """The parent of the daemon of Python workers."""
    try:
        (folder / "end").touch(exist_ok=False)
    except FileExistsError:
        return
    daemon = int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(daemon, signal.SIGKILL)
    time.sleep(60)


def dawdles(_, folder):
    """The copy that begins first: on a busy machine the attempt of number 0 may begin last."""
    with contextlib.suppress(FileExistsError):
        (folder / "first").touch(exist_ok=False)
        time.sleep(20)


def released(mechanism, frame, error=None):
    """The release under a ledger, which is charged once in any case, and whether the noise was drawn once, or never."""
    rng, fresh = np.random.PCG64(1), np.random.PCG64(1)
    with dpf.Ledger(1.5) as ledger:
        if error is None:
            release = dpfast.spark.release(mechanism, frame, "a", rng=rng)
        else:
            with pytest.raises(Exception, match=error):
                dpfast.spark.release(mechanism, frame, "a", rng=rng)
        assert [charge.times for charge in ledger.charges] == [1]
        with pytest.raises(dpf.BudgetError):  # to try again is another release
            dpfast.spark.release(mechanism, frame, "a")
    if error is None:
        assert release == mechanism(RECORDS, rng=fresh)
    assert rng.state == fresh.state


def attempts(folder):
    return {int(path.name.partition("-")[0]) for path in folder.glob("*-*")}


@every_way
def test_a_task_fails_twice(cluster, tmp_path, mechanism):
    released(mechanism, faulty(cluster, tmp_path / "marks", fails_twice))
    assert (tmp_path / "marks" / "second").exists()
    assert len(attempts(tmp_path / "marks")) >= 3


@every_way
def test_a_task_fails_always(cluster, tmp_path, mechanism):
    released(mechanism, faulty(cluster, tmp_path / "marks", fails_always), "the disk is gone")
    assert attempts(tmp_path / "marks") == {0, 1, 2, 3}


@every_way
def test_a_task_is_copied(cluster, tmp_path, mechanism):
    """Two copies of a task run at the same time, and Spark takes the result of the first that is done."""
    released(mechanism, faulty(cluster, tmp_path / "marks", dawdles))
    assert len(attempts(tmp_path / "marks")) >= 2


@every_way
def test_an_executor_is_lost(cluster, tmp_path, mechanism):
    released(mechanism, faulty(cluster, tmp_path / "marks", ends_its_executor))
    assert (tmp_path / "marks" / "end").exists()
    assert len(list((tmp_path / "marks").glob("*-*"))) > 1


def test_executors_without_the_library(cluster, tmp_path, monkeypatch):
    """What Spark counts needs none; states do."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['dpfast'] = None\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}:$PYTHONPATH exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    frame = cluster.createDataFrame(pa.table({"a": RECORDS}))
    monkeypatch.setattr(cluster.sparkContext, "pythonExec", str(python))
    counted, states = MECHANISMS.values()
    released(counted, frame)
    released(states, frame, "dpfast")
