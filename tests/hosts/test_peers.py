"""The jobs of ``bench.peers`` and its page. The jobs of regressions need scikit-learn, no peer is needed."""

import ast

import numpy as np
import pytest

pytestmark = pytest.mark.host
pytest.importorskip("sklearn")

from bench.peers import __main__ as command  # noqa: E402
from bench.peers import page  # noqa: E402
from bench.peers.environments import HERE, PEERS  # noqa: E402
from bench.peers.jobs import SECTIONS  # noqa: E402
from bench.peers.jobs.quantiles import distance  # noqa: E402

JOBS = [job for section in SECTIONS.values() if hasattr(section, "jobs") for job in section.jobs()]


def _functions(worker):
    tree = ast.parse((HERE / "workers" / f"{worker}_jobs.py").read_text())
    return {node.name: {a.arg for a in node.args.args} for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_job_of_a_peer_is_a_function_of_its_public_numbers():
    functions = {worker: _functions(worker) for worker in PEERS}
    for job in JOBS:
        for peer in job.peers:
            assert functions[peer.worker][peer.job] == set(peer.public), (job.name, peer.name)


def test_every_peer_has_a_worker_and_pins():
    assert {path.stem for path in (HERE / "pins").iterdir()} == set(PEERS)
    assert all("==" in line for path in (HERE / "pins").iterdir() for line in path.read_text().split())


def test_there_are_at_least_sixty_comparisons_with_distinct_names():
    named = [(job.name, job.records, job.n, job.guarantee, peer.name) for job in JOBS for peer in job.peers]
    assert len(named) >= 60
    assert len(named) == len(set(named))


@pytest.mark.parametrize(
    ("q", "n", "released", "error"),
    [(0.5, 5, 3.0, 0.0), (0.5, 5, 2.5, 0.5), (0.5, 6, 3.4, 0.0), (0.5, 6, 4.25, 0.25), (0.9, 10, 9.5, 0.0)],
)
def test_the_distance_from_a_quantile_is_that_from_the_nearest_one(q, n, released, error):
    x = np.random.default_rng(1).permutation(np.arange(1.0, n + 1))
    assert distance(q)(released, x) == error


ROW = {
    "name": "median", "records": "normal", "n": 1000, "guarantee": "4, replace-one", "peer": "diffprivlib",
    "version": "1.0", "ours": 2.0, "theirs": 1.0, "ratio": 2.0, "error": 0.01, "times": 0.1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "listed", "said"),
    [
        ({}, False, "for an even n dpfast releases the lower"),
        ({"records": "no such records"}, True, "not explained"),
        ({"records": "no such records", "ratio": 1.06}, False, "within two standard errors"),
        ({"ratio": 1.04}, False, "0 of the ratios"),
    ],
)
def test_losses_without_a_reason_are_listed(change, listed, said, tmp_path, capsys):
    row = ROW | change
    stored = {"rows": [row], "lines": [], "commit": "abc", "load": 1.0, "date": "today"}
    page.store(tmp_path / "quantiles.json", stored)
    page.write(tmp_path / "peers.md", tmp_path)
    assert ("UNEXPLAINED" in capsys.readouterr().out) == (page.unexplained({"quantiles": stored}) == [row]) == listed
    text = " ".join((tmp_path / "peers.md").read_text().split())
    assert ("**2.00(1)**" in text) == (row["ratio"] == 2.0)
    assert said in text


def test_a_quick_run_prints_rows_and_writes_nothing(tmp_path, capsys):
    command.main(["--quick", "--only", "counts", "--job", "count", "--results", str(tmp_path / "none")])
    printed = capsys.readouterr().out
    assert "OpenDP is not installed: its rows are left out" in printed
    assert "count | any | 1,000 | 1, add-remove" in printed
    assert not (tmp_path / "none").exists()
