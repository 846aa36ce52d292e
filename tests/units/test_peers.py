"""The harness of ``bench.peers``: the loop and the protocol of its workers, ratios, and what the page says."""

import math
import shutil
import sys

import numpy as np
import pytest

from bench.peers import comparison, environments
from bench.peers.comparison import Job, Peer, quotient, ratio, rows
from bench.peers.environments import Environments, PeerError
from bench.peers.workers.serve import collect

WORKER = """
import serve

def scaled(factor):
    def release(x, y):
        print("noise of a library on standard output")
        return factor * x.sum() + y
    return release

def broken(factor):
    raise ValueError("no such job for this library")

if __name__ == "__main__":
    serve.main(globals(), "1.2.3")
"""


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """An environment of one peer, "toy", whose interpreter is this one."""
    (tmp_path / "workers").mkdir()
    (tmp_path / "workers" / "toy_jobs.py").write_text(WORKER)
    shutil.copy(environments.HERE / "workers" / "serve.py", tmp_path / "workers")
    (tmp_path / "toy" / "bin").mkdir(parents=True)
    # A link would lose the packages of this environment.
    start = tmp_path / "toy" / "bin" / "python"
    start.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    start.chmod(0o755)
    monkeypatch.setattr(environments, "HERE", tmp_path)
    monkeypatch.setattr(environments, "PEERS", {"toy": "Toy"})
    monkeypatch.setattr(comparison, "PEERS", {"toy": "Toy"})
    with Environments(tmp_path) as found:
        yield found


def _datasets(count):
    return [(np.arange(3.0) + d, np.array([d, -d])) for d in range(count)]


def test_the_loop_keeps_data_sets_and_rounds_apart():
    counter = iter(range(100))
    releases, seconds = collect(lambda x, y: [next(counter), x[0]], _datasets(3), rounds=4, seconds=60)
    assert releases.shape == (3, 4, 2)
    np.testing.assert_array_equal(releases[:, :, 0], np.arange(12).reshape(4, 3).T)
    np.testing.assert_array_equal(releases[:, :, 1], [[0] * 4, [1] * 4, [2] * 4])
    assert seconds > 0


def test_the_loop_makes_one_round_however_little_time_there_is():
    releases, _ = collect(lambda: 1.0, [()], rounds=10**9, seconds=0.0)
    assert releases.shape == (1, 1)


def test_a_worker_returns_the_releases_of_its_interpreter(toy):
    datasets = _datasets(3)
    jobs = [("broken", {"factor": 1.0}), ("scaled", {"factor": 2.0})]
    version, [failure, (releases, seconds)] = toy.run("toy", jobs, datasets, rounds=2, seconds=60)
    assert "no such job for this library" in str(failure)
    for found, (x, y) in zip(releases, datasets, strict=True):
        np.testing.assert_array_equal(found, [2 * x.sum() + y] * 2)
    assert seconds > 0
    assert version == "1.2.3"


def test_a_worker_that_does_not_start_fails_all_its_jobs(toy):
    (environments.HERE / "workers" / "toy_jobs.py").write_text("import a_package_that_is_not_there")
    version, failures = toy.run("toy", [("scaled", {})] * 2, _datasets(1), rounds=1, seconds=1)
    assert version == ""
    assert all("toy_jobs.py stopped" in str(failure) for failure in failures)
    assert [type(failure) for failure in failures] == [PeerError] * 2


def test_an_absent_peer_is_named(toy, tmp_path):
    assert toy.absent() == []
    assert Environments(None).absent() == Environments(tmp_path / "workers").absent() == ["Toy"]


def _job(ours, **options):
    def draw(generator):
        return generator.integers(1, 9, 3).astype(float), np.array([1.0])

    return Job(
        "job", "data", 3, "1, replace-one", draw, ours, lambda r, x, y: float(np.sum(np.abs(r - x.sum()))),
        (Peer("toy", "scaled", {"factor": 3.0}), Peer("toy", "broken", {"factor": 3.0}, "variant")), **options,
    )  # fmt: skip


def test_the_errors_of_both_sides_are_those_of_the_same_records(toy, capsys):
    [row] = rows(_job(lambda x, y: 3 * x.sum() + y, datasets=12, rounds=3), toy, quick=False, seconds=60)
    assert (row.peer, row.ratio, row.error) == ("Toy", 1.0, 0.0)
    assert row.ours == row.theirs > 0
    assert "FAILED: job, data, Toy, variant" in capsys.readouterr().out


def test_roots_are_those_of_mean_squares(toy):
    [row] = rows(_job(lambda x, y: 6 * x.sum(), root=True, datasets=12), toy, quick=True, seconds=60)
    [plain] = rows(_job(lambda x, y: 6 * x.sum(), datasets=12), toy, quick=True, seconds=60)
    assert row.ratio == pytest.approx(math.sqrt(plain.ratio))
    assert row.theirs == pytest.approx(math.sqrt(plain.theirs))


def test_without_peers_dpfast_runs_alone():
    [row] = rows(_job(lambda x, y: 0.0), Environments(None), quick=True, seconds=1)
    assert row.peer == "-"
    assert math.isnan(row.ratio)
    assert row.ours > 0


@pytest.mark.parametrize("sets", [1, 40])
def test_the_standard_error_of_a_ratio_is_its_deviation(sets):
    """Over repeated simulations; with many data sets their own spread, which both sides share, cancels."""
    rng, found = np.random.default_rng(1), []
    for _ in range(400):
        scale = 1 + 5 * rng.random((sets, 1)) if sets > 1 else 1.0
        ours, theirs = scale * rng.exponential(1.0, (sets, 50)), scale * rng.exponential(2.0, (sets, 50))
        found.append(ratio(ours, theirs))
    ratios, errors = np.transpose(found)
    assert abs(ratios.mean() - 0.5) < 0.02
    assert 0.8 < errors.mean() / ratios.std() < 1.25


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [(1.234, 0.02, "1.23(2)"), (0.0123, 0.001, "0.012(1)"), (math.nan, math.nan, "-")],
)
def test_standard_errors_are_in_units_of_the_last_digit(value, error, text):
    assert quotient(value, error) == text
