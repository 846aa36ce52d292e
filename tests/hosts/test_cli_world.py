"""The command line and its surroundings: types, names, streams that are closed, full or broken, interruptions."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dpfast as dpf
from dpfast.cli import densities
from dpfast.cli.records import OF_TEXT
from tests.commands import run

PUBLIC = ["--bounds", "0", "100", "--epsilon", "1"]
COMMANDS = ["median", "mean", "sum", "std", "trimmed-mean", "iqr", "quantiles", "histogram", "synthesize", "mle"]
FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")


def arguments(command, file, tmp_path, column="age"):
    """A command on a file, which makes a release for any column."""
    more = {"synthesize": ["-k", "3", "--force", "-o", str(tmp_path / "twins.csv")]}.get(command, [])
    public = ["--family", "normal", "--bounds", "mean=0,100", "--epsilon", "1"] if command == "mle" else PUBLIC
    return [command, str(file), "--column", column, *public, *more]


def process(given, closed="", **options):
    """A process of its own, some of whose streams are closed by the shell."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "dpfast", *given]
    return subprocess.run(command, env=environment, text=True, stderr=subprocess.PIPE, check=False, **options)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "ages.csv"
    ages = np.random.default_rng(1).integers(0, 100, 500)
    path.write_text("age,name\n" + "\n".join(f"{age},secret" for age in ages))
    return path


# ---- how a column is read ----


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("column", ["age", "name"])
def test_the_reading_of_cells_is_stated_for_all_values(command, column, file, tmp_path, capsys):
    code, out, err = run(capsys, *arguments(command, file, tmp_path, column))
    at_bound = command not in ("mean", "median", "quantiles", "mle")
    assert code == 0
    assert (f"dpfast: warning: a missing cell of {column} counts as the lower bound: " in err) is at_bound
    last = out.splitlines()[-1]
    assert last.startswith("(read as type number; empty or non-numeric cells")
    policy = "count as 0" if at_bound else "are left out"
    assert last.endswith(f"{policy} (--missing); {OF_TEXT})" if command != "mle" else "are left out)")
    code, out, _ = run(capsys, *arguments(command, file, tmp_path, column), "--json")
    assert f"({json.loads(out)['reading']})" == last


def test_missing(tmp_path, capsys):
    file = tmp_path / "x.csv"
    file.write_text("age\n" + "x\n\n5\n" * 400)
    for value, expected in (("80", 80), ("-3", 0), ("1e9", 100)):
        code, out, _ = run(capsys, "median", str(file), *PUBLIC, "--step", "1", "--missing", value, "--json")
        assert code == 0
        assert json.loads(out)["value"] == pytest.approx(expected, abs=3)
        assert json.loads(out)["missing"] == expected


def test_integers_are_declared(file, tmp_path, capsys):
    _, out, _ = run(capsys, *arguments("median", file, tmp_path), "--type", "integer", "--json")
    report = json.loads(out)
    assert (report["type"], report["step"]) == ("integer", 1)
    _, out, _ = run(capsys, *arguments("median", file, tmp_path), "--type", "integer", "--step", "0.5", "--json")
    assert json.loads(out)["step"] == 0.5
    _, out, _ = run(capsys, *arguments("median", file, tmp_path), "--json")
    assert json.loads(out)["step"] == dpf.Grid(0, 100).step
    code, _, err = run(capsys, *arguments("median", file, tmp_path), "--type", "text")
    assert (code, "secret" in err) == (2, False)


def test_the_schema_of_parquet_declares_the_type(tmp_path, capsys):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {
        "age": [5, None],
        "pay": [5.0, None],
        "name": ["1", "2"],
        "born": arrow.array([1, 2], arrow.timestamp("s")),
        "none": arrow.nulls(2),
    }
    for n in (2, 0):  # also without a record: cells do not show their type
        file = tmp_path / f"{n}.parquet"
        parquet.write_table(arrow.table(columns).slice(0, n), file)
        for command in COMMANDS:
            for column in ("name", "born", "none"):
                code, out, err = run(capsys, *arguments(command, file, tmp_path, column))
                assert (code, out) == (2, "")
                assert err == f"dpfast: error: column {column!r} does not hold numbers\n"
    file = tmp_path / "2.parquet"
    for column, kind in (("age", "integer"), ("pay", "number")):
        _, out, _ = run(capsys, *arguments("median", file, tmp_path, column), "--json")
        assert json.loads(out)["type"] == kind
        assert (json.loads(out)["step"] == 1) == (kind == "integer")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_of_two_columns_is_refused(command, tmp_path, capsys):
    file = tmp_path / "x.csv"
    file.write_text("age,name,age\n" + "1,2,3\n" * 300)
    code, out, err = run(capsys, *arguments(command, file, tmp_path))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "'age'" in err
    assert run(capsys, *arguments(command, file, tmp_path, "name"))[0] == 0


# ---- messages ----

WRONG = {
    "--bounds": ["x", "y"],
    "--epsilon": ["much"],
    "--step": ["half"],
    "--missing": ["none"],
    "--type": ["date"],
    "--seed": ["0.5"],
    "--bins": ["1.5"],
    "-q": ["half"],
    "--trim": ["a"],
    "--delta": ["a"],
    "-k": ["many"],
    "--rows": ["1e6"],
    "--blocks": ["few"],
    "--shuffle": ["yes"],
    "--family": ["magic"],
    "--combine": ["magic"],
    "--records": ["a"],
    "--values": ["a"],
    "--method": ["magic"],
}


@pytest.mark.parametrize("command", [*COMMANDS, "verify", "demo"])
def test_messages_do_not_name_functions(command, file, tmp_path, capsys):
    base = {"verify": ["verify", "median"], "demo": ["demo", "--rows", "10"]}.get(command)
    base = arguments(command, file, tmp_path) if base is None else base
    known = run(capsys, command, "--help")[1]
    for option, value in WRONG.items():
        if f" {option} " not in known.replace("[", " ").replace("]", " ").replace(",", " "):
            continue
        code, out, err = run(capsys, *base, option, *value)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert not re.search(r"invalid _|<|lambda|\b(float|int) value", err), err


@pytest.mark.parametrize("bounds", [["0", "2000000"], ["mean"], ["mean=1"], ["mean=1,2,3"], ["mean=a,b"], ["=1,2,3"]])
def test_bounds_of_a_family_are_explained(bounds, file, capsys):
    given = ["mle", str(file), "--column", "age", "--family", "normal", "--epsilon", "1", "--bounds", *bounds]
    code, out, err = run(capsys, *given)
    assert (code, out) == (2, "")
    assert err == (
        f"dpfast mle: error: argument --bounds: must be NAME=LOWER,UPPER, as in scale=0.1,50, not {bounds[0]!r}\n"
    )


def test_bounds_of_a_parameter_come_once(file, capsys):
    given = ["mle", str(file), "--column", "age", "--family", "normal", "--epsilon", "1"]
    code, _, err = run(capsys, *given, "--bounds", "mean=0,1", "mean=0,100")
    assert (code, err) == (2, "dpfast: error: --bounds must name each parameter once\n")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", ["missing", "directory", "empty", "header only", "no text", "half utf-16", "not gzip"])
def test_files_that_cannot_be_read(command, kind, tmp_path, capsys):
    file = tmp_path / ("x.csv.gz" if kind == "not gzip" else "x.csv")
    content = {
        "empty": b"",
        "header only": b"age,name\n",
        "no text": bytes(range(256)),
        "half utf-16": "age\n1\n".encode("utf-16-le"),
        "not gzip": b"age\n1\n",
    }
    if kind == "directory":
        file.mkdir()
    elif kind != "missing":
        file.write_bytes(content[kind])
    code, out, err = run(capsys, *arguments(command, file, tmp_path))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("dpfast: error: ")
    assert not (tmp_path / "twins.csv").exists()


def test_undecodable_cells_are_not_numbers(tmp_path, capsys):
    file = tmp_path / "x.csv"
    file.write_bytes(b"age\n\xff\xfe\n\x00\n5\n")
    code, out, err = run(capsys, *arguments("median", file, tmp_path), "--json")
    assert (code, json.loads(out)["n"]) == (0, 3)
    assert err.startswith("dpfast: warning: 3 records are too few for this release at epsilon = 1: ")


# ---- streams ----


def test_standard_input_that_is_closed(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    code, out, err = run(capsys, "median", "-", *PUBLIC)
    assert (code, out, err) == (2, "", "dpfast: error: standard input is closed\n")


def test_closed_streams_of_a_process(file, tmp_path):
    given = arguments("median", file, tmp_path)
    no_input = process(["median", "-", *PUBLIC], closed="<&-", stdout=subprocess.PIPE)
    assert (no_input.returncode, no_input.stdout) == (2, "")
    assert no_input.stderr == "dpfast: error: standard input is closed\n"
    no_output = process(given, closed=">&-")
    assert no_output.returncode == 2
    assert no_output.stderr == "dpfast: error: standard output is closed: nothing is released\n"
    no_errors = process(given, closed="2>&-", stdout=subprocess.PIPE)
    assert (no_errors.returncode, no_errors.stdout.count("\n")) == (0, 2)


@FULL
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_full_disk(file, tmp_path, options):
    with open("/dev/full", "w") as full:
        done = process([*arguments("median", file, tmp_path), *options], stdout=full)
    assert done.returncode == 3
    assert done.stderr == (
        "dpfast: error: cannot write standard output: No space left on device: the release is made, and its epsilon "
        "is spent\n"
    )


@FULL
@pytest.mark.parametrize("given", [["--help"], ["median", "--help"], ["verify", "median"]])
def test_a_full_disk_for_commands_without_a_release(given):
    with open("/dev/full", "w") as full:
        done = process(given, stdout=full)
    assert done.returncode == 3
    assert done.stderr == "dpfast: error: cannot write standard output: No space left on device\n"


def test_a_pipe_that_nobody_reads(file, tmp_path):
    read, write = os.pipe()
    os.close(read)
    done = process(arguments("quantiles", file, tmp_path), stdout=write)
    os.close(write)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "Broken pipe: the release is made, and its epsilon is spent" in done.stderr


@FULL
def test_outputs_on_a_full_disk(file, capsys):
    given = ["synthesize", str(file), "--column", "age", *PUBLIC, "--missing", "lower", "-k", "3", "-o", "/dev/full"]
    code, out, err = run(capsys, *given)
    assert (code, out) == (3, "")
    assert err == (
        "dpfast: error: cannot write /dev/full: No space left on device: the release is made, and its epsilon is "
        "spent\n"
    )


@pytest.mark.parametrize("command", ["synthesize", "histogram"])
def test_an_output_that_cannot_be_opened_is_not_charged(command, file, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(densities, command, _only_once(getattr(densities, command)))
    if command == "histogram":
        pytest.importorskip("matplotlib")
        more = ["--plot", str(tmp_path / "nowhere" / "x.png")]
    else:
        more = ["-k", "3", "-o", str(tmp_path / "nowhere" / "x.csv")]
    code, out, err = run(capsys, command, str(file), "--column", "age", *PUBLIC, *more)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "cannot write" in err


def _only_once(function):
    """The function, which is called once with public numbers, as a check; a second call would be a release."""
    calls = []

    def once(*args, **options):
        assert not calls
        calls.append(args)
        return function(*args, **options)

    return once


def test_an_output_is_not_emptied_before_there_is_something_to_write(file, tmp_path, capsys):
    old = tmp_path / "twins.csv"
    old.write_text("precious\n")
    for wrong in ("wage", "name,age"):
        assert run(capsys, *arguments("synthesize", file, tmp_path, wrong))[0] == 2
        assert old.read_text() == "precious\n"


def test_an_interruption_is_one_line(tmp_path):
    pipe = tmp_path / "x.csv"
    os.mkfifo(pipe)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    code = (  # background jobs of a shell ignore the signal
        "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "runpy.run_module('dpfast', run_name='__main__')"
    )
    command = [sys.executable, "-c", code, *arguments("median", pipe, tmp_path)]
    waiting = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        with open(pipe, "w"):  # opens when the command does
            time.sleep(0.2)
            waiting.send_signal(signal.SIGINT)
            out, err = waiting.communicate(timeout=60)
    finally:
        waiting.kill()
        waiting.wait()
    assert (waiting.returncode, out) == (130, "")
    assert err == "dpfast: interrupted: if a release was made, it is lost and its epsilon is spent\n"


def test_an_output_name_that_the_terminal_cannot_show(file, tmp_path):
    given = [*arguments("synthesize", file, tmp_path), "--missing", "lower"]
    given[given.index("-o") + 1] = str(tmp_path / "\N{GREEK SMALL LETTER EPSILON}.csv")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "dpfast", *given]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u03b5" in done.stdout


def test_no_run_time_stands_next_to_a_release(file, tmp_path, capsys):
    for command in COMMANDS:
        _, out, _ = run(capsys, *arguments(command, file, tmp_path))
        assert not re.search(r"\d m?s\b|read in|released in", out)
