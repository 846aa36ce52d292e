"""The commands that release one number, and their certification."""

import ast
import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.random import PCG64, Generator

import dpfast as dpf
from dpfast.cli import main
from dpfast.cli.keyed import number

COMMANDS = {
    "median": ([], dpf.median),
    "mean": ([], dpf.mean),
    "sum": ([], dpf.sum),
    "std": ([], dpf.std),
    "trimmed-mean": (["--trim", "0.2"], lambda x, **options: dpf.trimmed_mean(x, 0.2, **options)),
    "iqr": ([], dpf.iqr),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_release(command, tmp_path, capsys):
    x = np.random.default_rng(1).integers(0, 100, 500).astype(float)
    path = tmp_path / "column.csv"
    path.write_text("age\n" + "\n".join(map(str, x)))
    options, function = COMMANDS[command]
    arguments = [command, str(path), "--bounds", "0", "100", "--step", "1", "--epsilon", "1", "--seed", "7", *options]
    assert main([*arguments, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    expected = function(x, grid=dpf.Grid(0, 100, step=1), epsilon=1.0, rng=Generator(PCG64(7)))
    assert (report["statistic"], report["value"], report["n"]) == (command, expected, 500)
    assert main(arguments) == 0
    assert number(expected) in capsys.readouterr().out
    assert main([*arguments, "--method", "magic"]) == 2
    assert "method must be" in capsys.readouterr().err


def test_count(tmp_path, capsys):
    x = np.random.default_rng(1).integers(0, 100, 500).astype(float)
    x[:50] = np.nan
    path = tmp_path / "column.csv"
    path.write_text("age\n" + "\n".join(map(str, x)))
    given = ["count", str(path), "--epsilon", "1", "--seed", "7"]
    for options, parameters in (
        ([], {}),
        (["--missing", "drop"], {"missing": "drop"}),
        (["--within", "18", "inf"], {"within": (18, math.inf)}),
    ):
        assert main([*given, *options, "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        expected = dpf.count(x, epsilon=1.0, rng=Generator(PCG64(7)), **parameters)
        assert (report["value"], report["neighbors"]) == (expected, "add-remove")
        assert main([*given, *options]) == 0
        out = capsys.readouterr().out
        assert out.startswith(f"count = {expected}  (epsilon = 1 ")
        assert " records," not in out
        assert ("are not counted" in out) == bool(options)


def test_quantiles_may_be_given_one_by_one(tmp_path, capsys):
    path = tmp_path / "column.csv"
    path.write_text("age\n" + "\n".join(map(str, range(500))))
    given = ["quantiles", str(path), "--epsilon", "1", "--seed", "7", "--json"]
    outs = []
    for options in (["-q", ".5", "-q", ".9"], ["-q", ".5", ".9"]):
        assert main([*given, *options]) == 0
        outs.append(capsys.readouterr().out)
    assert outs[0] == outs[1]
    assert json.loads(outs[0])["q"] == [0.5, 0.9]


def test_explain(tmp_path, capsys):
    path = tmp_path / "column.csv"
    path.write_text("age\n" + "\n".join(map(str, range(500))))
    given = ["mean", str(path), "--epsilon", "1", "--seed", "7", "--bounds", "0", "500"]
    assert main(given) == 0
    plain = capsys.readouterr()
    assert main([*given, "--explain"]) == 0
    explained = capsys.readouterr()
    assert "PresentMean release of the mean" in explained.err
    assert explained.out.split(" records")[0] == plain.out.split(" records")[0]


def test_delimiters(tmp_path, capsys):
    path = tmp_path / "x.csv"
    for delimiter, option in ((";", ";"), ("\t", "tab"), ("\t", "\t"), ("|", "|")):
        path.write_text(delimiter.join(["a", "age"]) + "\n" + delimiter.join(["1,5", "7"]) + "\n")
        given = ["sum", str(path), "--column", "age", "--bounds", "0", "9", "--epsilon", "900", "--delimiter", option]
        assert main([*given, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["value"] == pytest.approx(7, abs=0.5)
    with pytest.raises(SystemExit):
        main([*given, "--delimiter", ";;"])
    assert "must be one ASCII character or tab" in capsys.readouterr().err


CERTIFIED = ["median", "mean", "trimmed-mean", "iqr", "quantile", "winsorized-mean"]


@pytest.mark.parametrize("command", [*CERTIFIED, "sum", "variance"])
def test_verify(command, capsys):
    assert main(["verify", command, "--epsilon", "0.5"]) == 0
    assert "holds    yes" in capsys.readouterr().out


@pytest.mark.parametrize("delta", ["0", "1e-3"])
@pytest.mark.parametrize("command", CERTIFIED)
def test_verify_smooth_sensitivity(command, delta, capsys):
    options = ["--method", "smooth-sensitivity", "--delta", delta, "--epsilon", "2", "--values", "3", "--json"]
    assert main(["verify", command, *options]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["holds"]
    assert (report["claimed_epsilon"], report["claimed_delta"]) == (
        2.0,
        0.0 if delta == "0" else math.nextafter(1e-3, 0),
    )
    assert report["delta"] <= float(delta)
    assert main(["verify", command, *options[:-1]]) == 0
    assert "<SmoothSensitivity release of" in capsys.readouterr().out


@pytest.mark.parametrize("method", ["inverse-sensitivity", "global-sensitivity"])
def test_verify_either_way(method, capsys):
    assert main(["verify", "mean", "--method", method]) == 0
    assert f"<{method.title().replace('-', '')} release of the mean" in capsys.readouterr().out


def test_verify_reports_a_broken_smooth_sensitivity(capsys, monkeypatch):
    """Control of the exit code: a mechanism that claims a tenth of its epsilon and delta."""
    claim = property(lambda self: dpf.Privacy(self.epsilon / 10, self.delta / 10))
    monkeypatch.setattr(dpf.SmoothSensitivity, "privacy", claim)
    assert main(["verify", "median", "--method", "smooth-sensitivity", "--delta", "1e-3"]) == 1
    assert "holds    NO" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["median", "--method", "magic"], "method must be"),
        (["median", "--delta", "1e-3"], "delta must be 0"),
        (["median", "--method", "global-sensitivity"], "method"),
        (["sum", "--method", "smooth-sensitivity"], "method"),
        (["mean", "--method", "smooth-sensitivity", "--delta", "2"], "delta must be at least 0 and below 1"),
    ],
)
def test_verify_rejects(options, message, capsys):
    assert main(["verify", *options]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error


@pytest.mark.parametrize(
    ("command", "more", "statistic"),
    [
        ("median", [], "median"),
        ("mean", [], "mean"),
        ("sum", [], "sum"),
        ("std", [], "std"),
        ("quantiles", ["-q", "0.9"], dpf.statistics.Quantile(0.9)),
    ],
)
def test_interval(command, more, statistic, tmp_path, capsys, monkeypatch):
    x = np.random.default_rng(1).integers(0, 100, 2000).astype(float)
    path = tmp_path / "column.csv"
    path.write_text("age\n" + "\n".join(map(str, x)))
    arguments = [command, str(path), "--bounds", "0", "100", "--epsilon", "1", "--seed", "7", *more]
    for given, confidence in (["--interval"], 0.95), (["--interval", "0.8"], 0.8):
        policy = {"missing": "drop"} if command in ("mean", "median", "quantiles") else {}
        expected = dpf.interval(
            statistic, x, bounds=(0, 100), epsilon=1.0, confidence=confidence, rng=Generator(PCG64(7)), **policy
        )
        assert main([*arguments, *given, "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert [report[key] for key in ("value", "low", "high", "confidence", "n", "epsilon")] == [
            *expected,
            confidence,
            2000,
            1.0,
        ]
        assert main([*arguments, *given]) == 0
        value, low, high = map(number, expected)
        between = f"{100 * confidence:.10g} % interval {low} to {high}"
        assert f" = {value}, {between}  (2,000 records; epsilon = 1 " in capsys.readouterr().out
    monkeypatch.setattr("dpfast.tables.files.IN_MEMORY", 1000)
    assert main([*arguments, "--interval", "0.8", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["high"] == expected.high


def test_interval_without_bounds_and_bad_intervals(tmp_path, capsys):
    path = tmp_path / "column.csv"
    path.write_text("age\n" + "\n".join(map(str, np.random.default_rng(1).normal(50, 9, 3000))))
    assert main(["median", str(path), "--epsilon", "1", "--seed", "1", "--interval", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert 45 < report["low"] < 50 < report["high"] < 55
    public = [str(path), "--bounds", "0", "100", "--epsilon", "1"]
    for command, message in (
        (["median", *public, "--interval", "95"], "confidence must be strictly between 0 and 1"),
        (
            ["median", *public, "--interval", "--delta", "1e-6"],
            "--interval cannot be combined with --delta or --method",
        ),
        (["quantiles", *public, "--interval"], "--interval is for a single quantile"),
    ):
        assert main(command) == 2
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["iqr", *public, "--interval"])


@pytest.fixture
def incomes(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "incomes.csv"
    path.write_text("income,age\n" + "".join(f"{x:.2f},{int(x) % 70}\n" for x in rng.lognormal(10, 0.5, 3000)))
    return str(path)


@pytest.mark.parametrize(
    ("command", "least", "most"),
    [("mean", 20_000, 30_000), ("sum", 6e7, 9e7), ("std", 8_000, 20_000), ("trimmed-mean", 20_000, 30_000)],
)
def test_bounds_that_are_found_privately(command, least, most, incomes, capsys):
    given = [command, incomes, "--column", "income", "--epsilon", "2"]
    assert main([*given, "--bounds", "private", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert least < report["value"] < most
    assert (report["epsilon"], report["step"], report["missing"]) == (2, None, None)
    errors = {
        ("--bounds", "private", "--step", "1"): "--step needs --bounds LOWER UPPER, not private ones",
        ("--bounds", "private", "--epsilon", "0.1"): "--bounds private needs 4481 records for --epsilon 0.1",
        (): "--bounds LOWER UPPER is needed, or --bounds private",
    }
    if command in ("mean", "sum"):
        errors["--bounds", "private", "--interval"] = "--interval needs --bounds LOWER UPPER"
    for more, message in errors.items():
        assert main([*given, *more]) == 2
        assert message in capsys.readouterr().err


def test_integers_within_private_bounds(incomes, capsys):
    assert main(["mean", incomes, "--column", "age", "--type", "integer", "--bounds", "private", "--epsilon", "5"]) == 0
    assert "read as type integer" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["number", "integer"])
def test_missing_cells_within_private_bounds(kind, tmp_path, capsys):
    """Cells of integers may be missing, too; a median stands for them."""
    path = tmp_path / "pay.csv"
    path.write_text("\n".join(["pay", *(str(900 + i % 201) if i % 4 else "" for i in range(4000))]))
    given = ["mean", str(path), "--column", "pay", "--type", kind, "--bounds", "private", "--epsilon", "5", "--json"]
    assert main(given) == 0
    report = json.loads(capsys.readouterr().out)
    assert abs(report["value"] - 1000) < 20
    assert report["missing"] is None
    assert "count as a median that is released first" in report["reading"]


@pytest.mark.parametrize("epsilon", ["0.1", "0.3", "1e-3", "0.7", "2", "12.5"])
def test_epsilon_is_printed_as_given(epsilon, incomes, capsys):
    given = ["sum", incomes, "--column", "income", "--bounds", "0", "1e5", "--epsilon", epsilon]
    assert main(given) == 0
    assert f"epsilon = {float(epsilon):g} (pure" in capsys.readouterr().out
    assert main([*given, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["epsilon"] == float(epsilon)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--missing", "half", "--neighbors", "add-remove"], "--missing half needs --neighbors replace-one"),
        (["--method", "magic"], "--method must be 'auto' or"),
        (["--epsilon", "-1"], "--epsilon must be positive"),
    ],
)
def test_messages_name_options(words, message, incomes, capsys):
    assert main(["mean", incomes, "--column", "income", "--bounds", "0", "9", "--epsilon", "1", *words]) == 2
    assert message in capsys.readouterr().err


def test_what_a_command_does_not_need_is_not_imported():
    """A start imports neither SciPy nor what other commands need."""
    heavy = ["dpfast.densities", "dpfast.local", "dpfast.mechanisms", "dpfast.reports", "dpfast.streaming", "scipy"]
    code = "import sys; from dpfast.cli import main\ntry: main({!r})\nexcept SystemExit: pass\n"
    code += f"print([name for name in {heavy} if name in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def imported(*words):
        command = [sys.executable, "-c", code.format(list(words))]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        return ast.literal_eval(done.stdout.splitlines()[-1])

    for words in (["--version"], ["--help"], ["median", "--help"]):
        assert imported(*words) == []
    assert imported("report", "nowhere.csv", "nowhere.toml") != []  # control
    assert not {"dpfast.densities", "dpfast.local", "dpfast.reports"} & {*imported("median", "x.csv", "--epsilon", "1")}
