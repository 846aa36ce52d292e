"""The command line: exit codes, one line for errors, no data in them, JSON, seeds."""

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dpfast
from dpfast import Grid
from dpfast._kernels import _sources
from dpfast.cli.records import OF_TEXT
from tests.commands import run

PAY = Path(__file__).parents[3] / "shared" / "data" / "uc_pay_2010_2023.csv.gz"


@pytest.fixture
def file(tmp_path):
    pay = np.random.default_rng(0).lognormal(10, 0.5, 2000)
    path = tmp_path / "pay.csv"
    path.write_text("name,pay\n" + "".join(f"secret{i},{v:.2f}\n" for i, v in enumerate(pay)))
    return str(path)


BOUNDS = ("--bounds", 0, 1e6)


def test_median(capsys, file):
    code, out, err = run(capsys, "median", file, "--column", "pay", *BOUNDS, "--epsilon", 1)
    assert code == 0
    assert err == ""
    assert out.count("\n") == 2
    assert out.startswith("median = ")
    assert "(2,000 records; epsilon" in out
    assert out.endswith(f"(read as type number; empty or non-numeric cells are left out (--missing); {OF_TEXT})\n")
    assert "epsilon = 1 (pure differential privacy) for one record replaced" in out
    assert 19_000 < float(out.split()[2]) < 25_000


def test_quantiles_need_no_bounds(capsys, file):
    column = (file, "--column", "pay", "--epsilon", 1)
    code, out, err = run(capsys, "median", *column)
    assert (code, err) == (0, "")
    assert 19_000 < float(out.split()[2]) < 25_000
    assert out.endswith(f"(read as type number; empty or non-numeric cells are left out (--missing); {OF_TEXT})\n")
    _, out, _ = run(capsys, "median", *column, "--interval", 0.95)
    assert out.endswith(f"(read as type number; empty or non-numeric cells are left out (--missing); {OF_TEXT})\n")
    code, out, _ = run(capsys, "quantiles", *column, "--type", "integer", "--missing", 3, "--json")
    report = json.loads(out)
    assert (report["step"], report["missing"]) == (None, 3)
    assert all(value % 1 == 0 for value in report["values"])
    _, out, _ = run(capsys, "iqr", *column)
    assert 12_000 < float(out.split()[3]) < 19_000


def test_json(capsys, file):
    arguments = ("median", file, "--column", "pay", *BOUNDS, "--epsilon", 0.5, "--json")
    code, out, _ = run(capsys, *arguments)
    report = json.loads(out)
    assert code == 0
    assert (report["n"], report["epsilon"], report["delta"], report["private"]) == (2000, 0.5, 0, True)
    assert report["neighbors"] == "replace-one"
    assert report["value"] % report["step"] == 0
    assert "text" not in report


def test_seed(capsys, file):
    arguments = ("median", file, "--column", "pay", *BOUNDS, "--epsilon", 0.01, "--json", "--seed", 5)
    (code, out, err), (_, again, _) = run(capsys, *arguments), run(capsys, *arguments)
    assert code == 0
    assert out == again
    assert json.loads(out)["private"] is False
    assert "NOT private" not in err
    told = run(capsys, *(word for word in arguments if word != "--json"))
    assert told[1].count("NOT private") == 1
    assert told[1].endswith("\n(a seed makes this reproducible, hence NOT private: for tests only)\n")
    assert "NOT private" not in told[2]
    x = np.loadtxt(file, delimiter=",", skiprows=1, usecols=1)
    expected = dpfast.median(x, grid=Grid(0, 1e6), epsilon=0.01, rng=np.random.default_rng(5))
    assert json.loads(out)["value"] == expected


def test_quantiles(capsys, file):
    qs = [0.9, 0.1, 0.5, 0.5, 0.51]
    for seed in range(20):
        arguments = ("--column", "pay", *BOUNDS, "--epsilon", 0.01, "-q", *qs, "--json", "--seed", seed)
        code, out, _ = run(capsys, "quantiles", file, *arguments)
        report = json.loads(out)
        assert code == 0
        assert report["q"] == qs
        assert report["epsilon"] == 0.01  # as given; it was rounded down
        ordered = [value for _, value in sorted(zip(qs, report["values"], strict=True))]
        assert ordered == sorted(ordered)
    code, out, _ = run(capsys, "quantiles", file, "--column", "pay", *BOUNDS, "--epsilon", 1)
    assert [line.split(" = ")[0] for line in out.splitlines()[:3]] == ["0.25-quantile", "0.5-quantile", "0.75-quantile"]
    assert "together epsilon = 1" in out


ERRORS = {
    "no command": [],
    "unknown command": ["mode", "FILE"],
    "no file": ["median", "nowhere.csv", *BOUNDS, "--epsilon", 1],
    "no bounds": ["mean", "FILE", "--column", "pay", "--epsilon", 1],
    "step without bounds": ["median", "FILE", "--column", "pay", "--step", 1, "--epsilon", 1],
    "no epsilon": ["median", "FILE", "--column", "pay", *BOUNDS],
    "no column": ["median", "FILE", "--column", "wage", *BOUNDS, "--epsilon", 1],
    "two columns": ["median", "FILE", *BOUNDS, "--epsilon", 1],
    "bounds in disorder": ["median", "FILE", "--column", "pay", "--bounds", 5, 1, "--epsilon", 1],
    "bounds of text": ["median", "FILE", "--column", "pay", "--bounds", 0, "much", "--epsilon", 1],
    "bad epsilon": ["median", "FILE", "--column", "pay", *BOUNDS, "--epsilon", "nan"],
    "epsilon of text": ["median", "FILE", "--column", "pay", *BOUNDS, "--epsilon", "a tenth"],
    "epsilon without end": ["median", "FILE", "--column", "pay", *BOUNDS, "--epsilon", "1e999999999"],
    "zero epsilon": ["quantiles", "FILE", "--column", "pay", *BOUNDS, "--epsilon", 0],
    "bad step": ["median", "FILE", "--column", "pay", *BOUNDS, "--epsilon", 1, "--step", 0.3],
    "delta": ["median", "FILE", "--column", "pay", *BOUNDS, "--epsilon", 1, "--delta", 1e-6],
    "method": ["median", "FILE", "--column", "pay", *BOUNDS, "--epsilon", 1, "--method", "magic"],
    "seed": ["median", "FILE", "--column", "pay", *BOUNDS, "--epsilon", 1, "--seed", -1],
    "bad q": ["quantiles", "FILE", "--column", "pay", *BOUNDS, "--epsilon", 1, "-q", 0.5, 1.5],
    "q of text": ["quantiles", "FILE", "--column", "pay", *BOUNDS, "--epsilon", 1, "-q", "half"],
    "verify what": ["verify", "mode"],
    "verify one value": ["verify", "median", "--values", 1],
    "verify too fine": ["verify", "median", "--bounds", 0, 1e9],
    "demo of nobody": ["demo", "--rows", 0],
    "demo for nothing": ["demo", "--rows", 10, "--epsilon", 0],
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_one_line_without_data(capsys, file, name):
    code, out, err = run(capsys, *(file if a == "FILE" else a for a in ERRORS[name]))
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert "error: " in err
    assert "secret" not in err


@pytest.mark.parametrize("option", [("--delta", 1e-6), ("--seed", -1), ("--method", "magic"), ("--step", 3)])
def test_parameters_are_checked_before_the_file(capsys, option):
    code, _, err = run(capsys, "median", "nowhere.csv", *BOUNDS, "--epsilon", 1, *option)
    assert code == 2
    assert option[0][2:] in err
    assert "nowhere" not in err


@pytest.mark.parametrize("lower", ["-1e6", "-5", "-.5E+3", "-1.5e-3"])
def test_negative_bounds(capsys, file, lower):
    assert run(capsys, "median", file, "--column", "pay", "--bounds", lower, "1e6", "--epsilon", 1)[0] == 0


@pytest.mark.parametrize("content", ["", "pay\n", "\x00" * 100, "other\n1\n"])
def test_bad_files(capsys, tmp_path, content):
    (tmp_path / "x.csv").write_text(content)
    code, out, err = run(capsys, "median", tmp_path / "x.csv", "--column", "pay", *BOUNDS, "--epsilon", 1)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


def test_gzip_blank_cells_and_standard_input(capsys, tmp_path, monkeypatch):
    text = "pay\n" + "5\n\nx\n" * 100
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(text.encode()))
    arguments = ("--bounds", 0, 10, "--step", 1, "--epsilon", 4, "--missing", "lower", "--json")
    code, out, _ = run(capsys, "median", tmp_path / "x.csv.gz", *arguments)
    assert code == 0
    assert json.loads(out)["n"] == 300
    assert json.loads(out)["value"] == 0

    class Stdin:
        buffer = io.BytesIO(text.encode())

    monkeypatch.setattr("sys.stdin", Stdin)
    code, out, _ = run(capsys, "median", "-", *arguments)
    assert json.loads(out)["n"] == 300


def test_policies_of_missing_cells(capsys, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("pay\n" + "7\n\nx\n" * 100)

    def report(*arguments):
        code, out, err = run(capsys, *arguments, "--epsilon", 50, "--json", "--seed", 1)
        assert code == 0, err
        return json.loads(out)

    bounds = ("--bounds", 0, 10)
    half = report("mean", path, *bounds, "--missing", "half")
    assert half["value"] == pytest.approx((7 + 10 * 0.5 + 0 * 0.5 + 5) / 3, abs=0.1)
    assert half["missing"] == "half"
    assert "count as 0 at even positions and as 10 at odd ones (--missing)" in half["reading"]
    assert report("mean", path, *bounds, "--missing", "lower")["value"] == pytest.approx(7 / 3, abs=0.1)
    assert report("mean", path, *bounds)["value"] == report("mean", path, *bounds, "--missing", "drop")["value"]
    assert report("mean", path, *bounds)["value"] == pytest.approx(7, abs=0.2)
    drop = ("--missing", "drop", "--neighbors", "add-remove")
    for command in ("mean", "median"):
        left = report(command, path, *bounds, *drop)
        assert left["value"] == pytest.approx(7, abs=0.2)
        assert (left["n"], left["missing"], left["neighbors"]) == (None, "drop", "add-remove")
        assert "are left out (--missing)" in left["reading"]
    bars = report("histogram", path, *bounds, *drop, "--bins", 2)
    assert (bars["n"], sum(bars["counts"])) == (None, 100)
    _, out, _ = run(capsys, "median", path, *bounds, *drop, "--epsilon", 1)
    assert "(epsilon = 1 " in out  # without run times, which grow with n
    assert "300" not in out
    assert " ms" not in out
    _, out, _ = run(capsys, "histogram", path, *bounds, *drop, "--epsilon", 1, "--bins", 2)
    assert "(records in 2 bins; " in out
    path.write_text("pay\n")  # no records are as good as any number of them
    assert report("mean", path, *bounds, *drop)["n"] is None
    for command in ("std", "histogram"):
        code, _, err = run(capsys, command, path, *bounds, "--missing", "drop", "--epsilon", 1)
        assert code == 2
        assert "--missing drop makes the number of records private" in err
    code, _, err = run(capsys, "mean", path, *bounds, "--missing", "none", "--epsilon", 1)
    assert code == 2
    assert "--missing: must be a number, lower, half or drop, not 'none'" in err


def test_n_does_not_depend_on_missing_cells(capsys, tmp_path):
    """Neighbours: one record of the only column is a number or a blank."""
    reports = []
    for cell in ("7", "", "x", "nan"):
        (tmp_path / "x.csv").write_text(f"pay\n1\n{cell}\n3\n")
        _, out, _ = run(capsys, "median", tmp_path / "x.csv", "--bounds", 0, 10, "--epsilon", 1, "--json")
        reports.append({key: value for key, value in json.loads(out).items() if key != "value"})
    assert all(report == reports[0] for report in reports)


def test_parquet(capsys, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"pay": [5, None] * 100, "name": ["secret"] * 200}), tmp_path / "x.parquet")
    arguments = ("--bounds", 0, 10, "--epsilon", 1, "--json")
    code, out, _ = run(capsys, "median", tmp_path / "x.parquet", "--column", "pay", *arguments)
    assert (code, json.loads(out)["n"]) == (0, 200)
    code, _, err = run(capsys, "median", tmp_path / "x.parquet", "--column", "name", *arguments)
    assert (code, err.count("\n"), "secret" in err) == (2, 1, False)


def test_verify(capsys):
    code, out, _ = run(capsys, "verify", "quantile", "-q", 0.9, "--epsilon", 0.5, "--json")
    report = json.loads(out)
    assert code == 0
    assert report["holds"]
    assert report["epsilon"] <= report["claimed_epsilon"] == 0.5
    code, out, _ = run(capsys, "verify", "median", "--records", 2, "--bounds", -1, 1, "--step", 0.25)
    assert code == 0
    assert "holds    yes" in out


def test_verify_reports_a_broken_mechanism(capsys, monkeypatch):
    """Positive control of the exit code: a mechanism that claims half of its epsilon."""
    claim = property(lambda self: dpfast.Privacy(self.epsilon / 2))
    monkeypatch.setattr(dpfast.InverseSensitivity, "privacy", claim)
    code, out, _ = run(capsys, "verify", "median")
    assert code == 1
    assert "holds    NO" in out


def test_demo(capsys):
    code, out, err = run(capsys, "demo", "--rows", 3000, "--seed", 1)
    assert code == 0
    assert "NOT private" not in err
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["0.25", "0.5", "0.75"]
    assert "guarantee: epsilon = 1" in lines[-2]
    assert "NOT private" in lines[-1]
    code, out, _ = run(capsys, "demo", "--rows", 3000, "--json")
    report = json.loads(out)
    assert report["private"]
    assert report["values"] == sorted(report["values"])
    np.testing.assert_allclose(report["values"], report["numpy"], rtol=0.2)


def test_no_entropy_is_one_line(capsys, file, monkeypatch):
    monkeypatch.delattr(_sources.local, "source", raising=False)
    monkeypatch.setattr(os, "urandom", lambda size: (_ for _ in ()).throw(OSError("no entropy")))
    code, out, err = run(capsys, "median", file, "--column", "pay", *BOUNDS, "--epsilon", 1)
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_as_a_module(file):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "dpfast", "median", file, "--bounds", "0", "1e6", "--epsilon", "1"]
    good = subprocess.run([*command, "--column", "pay"], capture_output=True, text=True, env=environment, check=False)
    assert (good.returncode, good.stderr) == (0, "")
    bad = subprocess.run([*command, "--column", "x"], capture_output=True, text=True, env=environment, check=False)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "dpfast: error: no column 'x' in the header: it has 'name', 'pay'\n"


@pytest.mark.skipif(not PAY.exists(), reason="needs the shared data")
def test_public_payroll(capsys):
    arguments = ("--column", "gross", "--bounds", 0, 2_000_000, "--epsilon", 1, "--json")
    code, out, _ = run(capsys, "median", PAY, *arguments)
    assert code == 0
    assert abs(json.loads(out)["value"] - 12_054) < 100


@pytest.mark.parametrize("command", ["median", "mean", "iqr", "quantiles", "histogram", "synthesize"])
def test_a_long_file_is_streamed_to_the_same_release(capsys, file, monkeypatch, tmp_path, command):
    options = ["-k", 5, "-o", tmp_path / "twins.csv", "--force"] if command == "synthesize" else []
    arguments = (command, file, "--column", "pay", *BOUNDS, "--epsilon", 1, "--seed", 3, "--json", *options)
    _, out, _ = run(capsys, *arguments)
    monkeypatch.setattr("dpfast.tables.files.IN_MEMORY", 1000)
    code, streamed, _ = run(capsys, *arguments)
    assert code == 0
    assert json.loads(streamed) == json.loads(out)


@pytest.mark.parametrize("row", ["5", "5,6", "5,6,7"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_blank_line_is_a_record_in_every_file(capsys, tmp_path, row, end):
    """One rule: with one column, n must not depend on missing cells."""
    path, columns = tmp_path / "x.csv", row.count(",") + 1
    head = ",".join("abc"[:columns])
    path.write_bytes((head + end + (row + end + end) * 100 + end * 3).encode())
    _, out, _ = run(capsys, "median", path, "--column", "a", "--bounds", 0, 10, "--epsilon", 1, "--json")
    assert json.loads(out)["n"] == 203
    _, out, _ = run(capsys, "median", path, "--column", "1", "--no-header", "--bounds", 0, 10, "--epsilon", 1, "--json")
    assert json.loads(out)["n"] == 204
