"""Budgets of several commands: charges, refusals, and a ledger that several processes share."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dpfast as dpf
from dpfast.cli import numbers, records
from tests.commands import run


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "ages.csv"
    path.write_text("age\n" + "\n".join(map(str, np.random.default_rng(0).integers(0, 100, 500))))
    return str(path)


def test_a_budget_of_several_commands(capsys, file, tmp_path):
    ledger = tmp_path / "budget"
    code, out, err = run(capsys, "ledger", ledger, "--epsilon", "1")
    assert (code, err) == (0, "")
    assert out.endswith("left: epsilon = 1\n")
    spend = ("--epsilon", "0.4", "--ledger", ledger)
    code, out, _ = run(capsys, "median", file, *spend)
    assert (code, out.splitlines()[-1]) == (0, f"(charged epsilon = 0.4; left: epsilon = 0.6 in {ledger})")
    code, out, _ = run(capsys, "mean", file, "--bounds", 0, 100, *spend)
    assert (code, out.splitlines()[-1]) == (0, f"(charged epsilon = 0.4; left: epsilon = 0.2 in {ledger})")
    before = ledger.read_bytes()
    code, out, err = run(capsys, "median", file, *spend)
    assert (code, out) == (4, "")
    assert err == (
        "dpfast: error: a release of epsilon = 0.4 does not fit: epsilon = 0.2 is left: nothing is released\n"
    )
    assert ledger.read_bytes() == before
    code, out, _ = run(capsys, "ledger", ledger, "--json")
    report = json.loads(out)
    assert (report["budget"]["epsilon"], len(report["charges"])) == (1, 2)
    assert report["spent"]["epsilon"] == 0.8
    assert run(capsys, "ledger", ledger, "--epsilon", "2")[0] == 2
    assert run(capsys, "ledger", ledger, "--epsilon", "1")[0] == 0


@pytest.mark.parametrize("command", ["histogram", "synthesize", "mle", "regress"])
def test_a_refusal_of_any_command(capsys, file, tmp_path, command):
    ledger, out_file = dpf.Ledger("0.5", path=tmp_path / "budget"), tmp_path / "out.csv"
    public = ["--column", "age", "--bounds", 0, 100]
    options = {
        "histogram": public,
        "synthesize": [*public, "-k", 3, "-o", out_file, "--force"],
        "mle": ["--family", "normal", "--bounds", "mean=0,100"],
        "regress": ["--features", "age", "--label", "age2", "--radius", 100, "--label-bound", 9, "--type", "number"],
    }[command]
    if command == "regress":
        with open(file, "w") as rows:
            rows.write("age,age2\n" + "1,2\n" * 500)
    for epsilon, expected in ((0.25, 0), (0.5, 4)):
        code, out, err = run(capsys, command, file, *options, "--epsilon", epsilon, "--ledger", tmp_path / "budget")
        assert (code, bool(out)) == (expected, expected == 0)
        assert ("does not fit" in err) == (expected == 4)
    assert len(ledger.charges) == 1
    assert ledger.spent.epsilon == 0.25


def test_a_release_that_does_not_fit_is_refused_before_the_file_is_read(capsys, file, tmp_path, monkeypatch):
    dpf.Ledger("0.5", path=tmp_path / "budget")
    reads = []
    monkeypatch.setattr(records, "read", lambda arguments: reads.append(arguments))
    monkeypatch.setattr(numbers, "read", lambda arguments: reads.append(arguments))
    for options in ([], ["--interval"]):
        assert run(capsys, "median", file, "--epsilon", 1, "--ledger", tmp_path / "budget", *options)[0] == 4
    assert not reads


def test_errors_cost_nothing(capsys, file, tmp_path):
    path = tmp_path / "budget"
    ledger = dpf.Ledger("1", path=path)
    given = ("--epsilon", 0.5, "--ledger", path)
    for arguments, message in (
        (("median", file, "--column", "pay"), "no column 'pay'"),
        (("median", "nowhere.csv"), "cannot read nowhere.csv: No such file"),
        (("mean", file, "--bounds", 5, 1), "lower must be below upper"),
    ):
        code, out, err = run(capsys, *arguments, *given)
        assert (code, out) == (2, "")
        assert message in err
    assert ledger.charges == ()


def test_a_count_costs_a_budget_for_a_replaced_record_twice(capsys, file, tmp_path):
    ledger = dpf.Ledger("1", path=tmp_path / "budget")
    assert run(capsys, "count", file, "--epsilon", 0.5, "--ledger", tmp_path / "budget")[0] == 0
    assert ledger.spent.epsilon == 1
    code, _, err = run(capsys, "count", file, "--epsilon", 0.5, "--ledger", tmp_path / "budget")
    assert code == 4
    assert "epsilon = 0 is left" in err


def test_files_that_are_not_ledgers(capsys, file, tmp_path):
    code, _, err = run(capsys, "median", file, "--epsilon", 1, "--ledger", tmp_path / "none")
    assert (code, err.count("\n")) == (2, 1)
    assert f"no ledger {tmp_path / 'none'}: make it with dpfast ledger {tmp_path / 'none'} --epsilon" in err
    before = Path(file).read_text()
    for arguments in (
        ("median", file, "--epsilon", 1, "--ledger", file),
        ("ledger", file),
        ("ledger", file, "--mu", 1),
    ):
        code, out, err = run(capsys, *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "not a ledger" in err
    assert Path(file).read_text() == before
    assert run(capsys, "ledger", tmp_path / "new", "--epsilon", 1, "--rho", 1)[0] == 2


def test_an_empty_name_of_a_ledger_is_refused(capsys, file):
    """As of a shell variable that is not set: the release would not be charged."""
    code, out, err = run(capsys, "median", file, "--epsilon", "1", "--ledger", "")
    assert (code, out) == (2, "")
    assert err == "dpfast: error: Is a directory: .\n"


def test_budgets_of_other_units(capsys, file, tmp_path):
    for name, options in (
        ("rho", ["--rho", 0.5]),
        ("renyi", ["--epsilon", 1, "--delta", 1e-6, "--composition", "renyi"]),
    ):
        assert run(capsys, "ledger", tmp_path / name, *options)[0] == 0
        code, out, _ = run(capsys, "median", file, "--epsilon", 0.5, "--ledger", tmp_path / name, "--json")
        assert code == 0
        assert set(json.loads(out)["remaining"]) == {
            "rho" if name == "rho" else "epsilon",
            "delta",
            "neighbors",
            "per_unit",
        }
        assert run(capsys, "median", file, "--epsilon", 9, "--ledger", tmp_path / name)[0] == 4


def test_a_budget_of_units(capsys, file, tmp_path):
    path = tmp_path / "units"
    code, out, _ = run(capsys, "ledger", path, "--epsilon", 2, "--neighbors", "add-remove", "--per-unit", 2, "--json")
    assert (code, json.loads(out)["budget"]["per_unit"]) == (0, 2)
    code, out, _ = run(capsys, "count", file, "--epsilon", 0.75, "--ledger", path, "--json")
    assert (code, json.loads(out)["remaining"]["epsilon"]) == (0, 0.5)
    assert run(capsys, "count", file, "--epsilon", 0.375, "--ledger", path)[0] == 4
    assert run(capsys, "count", file, "--epsilon", 0.25, "--ledger", path)[0] == 0


def test_processes_share_a_budget(file, tmp_path):
    """Four processes at once, for two of which there is a budget."""
    path = tmp_path / "budget"
    ledger = dpf.Ledger("1", path=path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "dpfast", "median", file, "--epsilon", "1/2", "--ledger", str(path)]
    started = [subprocess.Popen(command, env=environment, stdout=-3, stderr=-3) for _ in range(4)]
    assert sorted(process.wait() for process in started) == [0, 0, 4, 4]
    assert len(ledger.charges) == 2


def test_the_last_line_says_what_was_charged_and_why_twice(tmp_path, capsys):
    """A count is for an added record, which costs a ledger for a replaced one twice; no bracket is left."""
    data, ledger = tmp_path / "x.csv", tmp_path / "ledger"
    data.write_text("age\n" + "5\n" * 100)
    assert run(capsys, "ledger", ledger, "--epsilon", "1")[0] == 0
    _, out, _ = run(capsys, "count", data, "--epsilon", "0.2", "--ledger", ledger)
    why = "twice its epsilon, because the ledger is for one replaced record"
    assert out.splitlines()[-1] == f"(charged epsilon = 0.4 ({why}); left: epsilon = 0.6 in {ledger})"
    assert "release of the count, charged for one record replaced (" in run(capsys, "ledger", ledger)[1]
