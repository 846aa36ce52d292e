"""What the command line prints beside releases: JSON that conforms to its schema, help, versions, completion."""

import argparse
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import dpfast as dpf
from dpfast.cli import main
from dpfast.cli.commands import _COMMANDS, make_parser
from dpfast.cli.schema import DEFINITIONS
from dpfast.cli.singles import DROP, LOWER, OF_IQR, SINGLE
from tests.cases import every
from tests.schemas import conforms

ON_AGES = ["--column", "age", "--epsilon", "1"]
BOUNDED = [*ON_AGES, "--bounds", "0", "100"]
ADDED = ["--neighbors", "add-remove"]
FIT = ["--features", "age", "pay", "--type", "number", "--epsilon", "1", "--radius", "100"]
# A definition of the schema, and a command whose report has it; FILE and OUT are replaced.
REPORTS = {
    "median": ("number", ["median", "FILE", *ON_AGES]),
    "median of integers": ("number", ["median", "FILE", *BOUNDED, "--type", "integer"]),
    "median with interval": ("number", ["median", "FILE", *ON_AGES, "--interval"]),
    "mean": ("number", ["mean", "FILE", *BOUNDED]),
    "mean without missing": ("number", ["mean", "FILE", *BOUNDED, "--missing", "drop", *ADDED]),
    "sum": ("number", ["sum", "FILE", *BOUNDED, "--missing", "half"]),
    "std": ("number", ["std", "FILE", *BOUNDED]),
    "trimmed-mean": ("number", ["trimmed-mean", "FILE", *BOUNDED]),
    "iqr": ("number", ["iqr", "FILE", *ON_AGES]),
    "count": ("count", ["count", "FILE", *ON_AGES]),
    "count within": ("count", ["count", "FILE", *ON_AGES, "--within", "18", "65", "--missing", "drop"]),
    "quantiles": ("quantiles", ["quantiles", "FILE", *ON_AGES]),
    "quantile with interval": ("number", ["quantiles", "FILE", *ON_AGES, "-q", "0.9", "--interval"]),
    "sum with interval": ("number", ["sum", "FILE", *BOUNDED, *ADDED, "--interval"]),
    "count with interval": ("count", ["count", "FILE", *ON_AGES, "--interval"]),
    "groups of counts": (
        "groups of counts",
        ["count", "FILE", "--epsilon", "1", "--delta", "1e-6", "--group-by", "kind", "--keys", "private", "--interval"],
    ),
    "groups with intervals": (
        "groups",
        ["mean", "FILE", *BOUNDED, "--group-by", "kind", "--keys", "KEYS", "--interval"],
    ),
    "groups": ("groups", ["median", "FILE", *BOUNDED, "--group-by", "kind", "--keys", "KEYS"]),
    "private groups": (
        "groups",
        ["mean", "FILE", *BOUNDED, "--delta", "1e-6", "--group-by", "kind", "--keys", "private", *ADDED],
    ),
    "groups of quantiles": ("groups", ["quantiles", "FILE", *ON_AGES, "--group-by", "kind", "--keys", "KEYS"]),
    "partitions": ("partitions", ["partitions", "FILE", "--column", "kind", "--epsilon", "1", "--delta", "1e-6"]),
    "mle": ("mle", ["mle", "FILE", *ON_AGES, "--family", "normal", "--bounds", "mean=0,100"]),
    "regress": ("regress", ["regress", "FILE", *FIT, "--label", "score", "--label-bound", "9"]),
    "logistic": (
        "regress",
        ["regress", "FILE", *FIT, "--label", "kind", "--label-values", "a", "b", "--model", "logistic"],
    ),
    "histogram": ("histogram", ["histogram", "FILE", *BOUNDED]),
    "synthesize": ("synthesize", ["synthesize", "FILE", *BOUNDED, "-k", "3", "-o", "OUT"]),
    "report": ("report", ["report", "FILE", "PLAN"]),
    "dry run": ("dry-run", ["report", "FILE", "PLAN", "--dry-run"]),
    "private bounds": ("number", ["mean", "FILE", "--column", "age", "--bounds", "private", "--epsilon", "1"]),
    "demo": ("demo", ["demo", "--rows", "100"]),
    "ledger": ("ledger", ["ledger", "OUT", "--rho", "0.5", "--delta", "1e-6"]),
    "verify": ("verify", ["verify", "median", "--records", "2", "--values", "2"]),
}


@pytest.fixture
def file(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "people.csv"
    rows = zip(rng.integers(0, 100, 500), rng.normal(50, 9, 500), rng.normal(size=500), strict=True)
    path.write_text("age,pay,score,kind\n" + "".join(f"{age},{pay:.2f},{score},a\n" for age, pay, score in rows))
    (tmp_path / "keys.csv").write_text("a\nb\n")
    plan = "[columns.age]\nbounds = [0, 100]\n[[release]]\nstatistic = 'mean'\ncolumn = 'age'\nepsilon = 1\n"
    (tmp_path / "budgeted.toml").write_text(plan)
    (tmp_path / "plan.toml").write_text(f"epsilon = 1\n{plan}")
    return str(path)


def report(capsys, file, arguments):
    places = {"FILE": file, "OUT": f"{file}.out", "KEYS": file.replace("people", "keys")}
    places["PLAN"] = file.replace("people.csv", "budgeted.toml" if "--ledger" in arguments else "plan.toml")
    assert main([*(places.get(argument, argument) for argument in arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", REPORTS)
def test_json_conforms_to_its_schema(capsys, file, name):
    definition, arguments = REPORTS[name]
    found = report(capsys, file, arguments)
    assert [name for name, schema in DEFINITIONS.items() if conforms(found, schema)] == [definition]
    for field in found:  # control: the schema misses and tolerates no field
        if field in DEFINITIONS[definition]["required"]:
            assert not conforms({key: value for key, value in found.items() if key != field}, DEFINITIONS[definition])
    assert not conforms({**found, "secret": 1}, DEFINITIONS[definition])
    if "epsilon" in found:
        assert not conforms({**found, "epsilon": "1"}, DEFINITIONS[definition])


@pytest.mark.parametrize(
    "name", [name for name, (kind, _) in REPORTS.items() if kind not in ("demo", "dry-run", "ledger", "verify")]
)
def test_json_of_a_charged_release(capsys, file, tmp_path, name):
    definition, arguments = REPORTS[name]
    hidden = definition in ("count", "groups of counts", "partitions") or "add-remove" in arguments
    path = str(tmp_path / "budget")
    ledger = dpf.Ledger("1.5", "1e-6", path=path, neighbors="add-remove" if hidden else "replace-one")
    found = report(capsys, file, [*arguments, "--ledger", path])
    assert conforms(found, DEFINITIONS[definition])
    assert (found["ledger"], found["remaining"]["epsilon"]) == (path, 0.5)
    assert ledger.remaining.epsilon == 0.5


def test_an_end_without_a_bound_is_null(capsys, tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("age\n" + "30\n" * 60)
    command = ["median", str(path), "--column", "age", "--epsilon", "0.02", "--interval", "--json"]
    ends = []
    for _ in range(20):
        assert main(command) == 0
        found = json.loads(capsys.readouterr().out)
        assert conforms(found, DEFINITIONS["number"])
        ends += [found["low"], found["high"]]
    assert None in ends


def test_every_command_that_releases_is_in_the_schema():
    [commands] = [action for action in make_parser()._actions if action.choices and "demo" in action.choices]
    with_json = {name for name, command in commands.choices.items() if " [--json]" in command.format_usage()}
    assert with_json == {arguments[0] for _, arguments in REPORTS.values()}
    assert {definition for definition, _ in REPORTS.values()} == set(DEFINITIONS)


def test_schema(capsys):
    assert main(["schema"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["$defs"] == DEFINITIONS
    assert printed["anyOf"] == [{"$ref": f"#/$defs/{name}"} for name in DEFINITIONS]


def test_version_and_exit_codes(capsys):
    for option, expected in (("--version", f"dpfast {dpf.__version__}\n"), ("--help", "  4    over the budget")):
        with pytest.raises(SystemExit) as stop:
            main([option])
        assert stop.value.code == 0
        assert expected in capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(capsys, shell):
    pytest.importorskip("argcomplete")
    assert main(["completion", shell]) == 0
    assert "dpfast" in capsys.readouterr().out


def test_completion_without_argcomplete(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "argcomplete", None)
    assert main(["completion", "bash"]) == 2
    assert (
        capsys.readouterr().err == "dpfast: error: completion requires argcomplete: pip install 'dpfast[completion]'\n"
    )


@pytest.mark.parametrize(
    ("line", "expected"), [("dpfast qu", "quantiles"), ("dpfast regress x.csv --lab", "--label"), ("dpfast secret", "")]
)
def test_completions(line, expected):
    pytest.importorskip("argcomplete")
    request = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_SHELL": "bash", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line}
    request |= {"COMP_POINT": str(len(line)), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = ["sh", "-c", 'exec "$@" 8>&1', "sh", sys.executable, "-m", "dpfast"]
    done = subprocess.run(command, env={**os.environ, **request}, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert expected in done.stdout if expected else not done.stdout.strip()


def test_the_help_states_one_default_for_each_option_and_the_true_one():
    for name in _COMMANDS:
        parser = argparse.ArgumentParser()
        _COMMANDS[name].add(parser)
        for action in parser._actions:
            text = "" if action.help is argparse.SUPPRESS else action.help or ""
            assert text.count("default") <= (2 if (name, action.dest) == ("regress", "neighbors") else 1), (name, text)
            numbers = action.default if isinstance(action.default, (str, int, float, list)) else None
            if not numbers or action.default in (True, argparse.SUPPRESS) or action.dest == "output":
                continue
            said = re.sub(r"[,()]", "", text) if action.default != "," else text
            values = numbers if isinstance(numbers, list) else [numbers]
            shown = " ".join(each if isinstance(each, str) else f"{each:g}" for each in values)
            shown = {"1e+06": "1000000"}.get(shown, shown)
            assert f"default {shown}" in said or f"{shown} default" in said, (name, text, shown)


@every("name", SINGLE)
def test_the_help_lists_the_methods(capsys, file, name):
    given = [name, file, "--column", "age", "--bounds", "0", "100", "--epsilon", "1", "--missing", "lower"]
    assert main([*given, "--method", "none"]) == 2
    taken = re.findall(r"'([\w-]+)'", capsys.readouterr().err)
    assert [*SINGLE[name].methods.split(", ")] == taken[1:-1]
    assert taken[0] == "auto"


@pytest.mark.parametrize(
    ("name", "bounds", "neighbors"),
    [(name, bounds, neighbors) for name in SINGLE for bounds in (True, False) for neighbors in (True, False)],
)
def test_the_help_says_what_missing_cells_are_by_default(capsys, file, name, bounds, neighbors):
    if not bounds and SINGLE[name].bounded:
        return
    given = [name, file, "--column", "age", "--epsilon", "1", *["--bounds", "0", "100"] * bounds]
    assert main([*given, *["--neighbors", "add-remove"] * neighbors, "--json"]) == 0
    drops = {DROP: True, LOWER: neighbors, OF_IQR: neighbors or not bounds}[SINGLE[name].missing]
    assert json.loads(capsys.readouterr().out)["missing"] == ("drop" if drops else 0)
