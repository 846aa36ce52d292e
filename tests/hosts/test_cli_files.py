"""T43: What the commands write: outputs that replace no input and no other file, and the warnings of the library."""

import io
import json
import os
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import dpfast as dpf
from dpfast.cli import densities
from tests.commands import run

PUBLIC = ["--bounds", "0", "100", "--epsilon", "1"]
TWINS = ["-k", "3", "-o"]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "ages.csv"
    path.write_text("age\n" + "\n".join(map(str, np.random.default_rng(1).integers(0, 100, 500))))
    return path


# ---- outputs ----


def _same(file):
    return file


def _symbolic(file):
    link = file.with_name("symbolic.csv")
    link.symlink_to(file)
    return link


def _hard(file):
    link = file.with_name("hard.csv")
    os.link(file, link)
    return link


def _in_a_linked_folder(file):
    folder = file.parent / "folder"
    folder.symlink_to(file.parent, target_is_directory=True)
    return folder / file.name


def _with_dots(file):
    (file.parent / "inner").mkdir()
    return file.parent / "inner" / ".." / file.name


NAMES = [_same, _symbolic, _hard, _in_a_linked_folder, _with_dots]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_an_output_is_no_input(file, capsys, name, force):
    before, path = file.read_bytes(), name(file)
    for given, output in ((file, path), (path, file)):
        code, out, err = run(capsys, "synthesize", given, *PUBLIC, *TWINS, output, *force)
        assert (code, out, err) == (
            2,
            "",
            f"dpfast: error: cannot write {output}: it is an input, which would be lost\n",
        )
    assert file.read_bytes() == before


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_plot_is_no_input(tmp_path, capsys, force):
    pytest.importorskip("matplotlib")
    file = tmp_path / "ages.png"  # CSV by any other name
    file.write_text("age\n1\n2\n")
    code, _, err = run(capsys, "histogram", file, *PUBLIC, "--plot", file, *force)
    assert (code, err) == (2, f"dpfast: error: cannot write {file}: it is an input, which would be lost\n")
    assert file.read_text() == "age\n1\n2\n"


def test_an_output_is_no_ledger(file, capsys, tmp_path):
    ledger = tmp_path / "budget"
    assert run(capsys, "ledger", ledger, "--epsilon", 1)[0] == 0
    before = ledger.read_bytes()
    for force in ([], ["--force"]):
        given = ["synthesize", file, *PUBLIC, "--ledger", ledger, *TWINS, ledger, *force]
        assert run(capsys, *given)[0] == 2
        assert ledger.read_bytes() == before  # nothing is charged


def test_a_ledger_is_no_input(file, capsys):
    before = file.read_bytes()
    assert run(capsys, "ledger", file, "--epsilon", 1)[0] == 2
    assert run(capsys, "median", file, *PUBLIC, "--ledger", file)[0] == 2
    assert file.read_bytes() == before


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_an_output_is_no_ledger_of_another_budget(file, tmp_path, capsys, force):
    """Its charges would be forgotten."""
    path = tmp_path / "ledger.csv"
    with dpf.Ledger(1.0, path=path):
        dpf.median(np.arange(9.0), bounds=(0, 9), epsilon=0.5)
    before = path.read_bytes()
    code, out, err = run(capsys, "synthesize", file, *PUBLIC, *TWINS, path, *force)
    assert (code, out) == (2, "")
    assert "it is a ledger, and its budget would be forgotten" in err
    assert path.read_bytes() == before


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_an_output_is_not_redirected_standard_input(file, force):
    before = file.read_bytes()
    command = [sys.executable, "-m", "dpfast", "synthesize", "-", *PUBLIC, *TWINS, str(file), *force]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with file.open("rb") as given:
        done = subprocess.run(command, stdin=given, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"dpfast: error: cannot write {file}: it is an input, which would be lost\n"
    assert file.read_bytes() == before


@pytest.mark.parametrize("command", ["synthesize", "histogram"])
def test_another_file_is_replaced_only_by_force(file, tmp_path, capsys, command):
    other = tmp_path / "other.svg"
    other.write_text("precious\n")
    other.chmod(0o640)
    if command == "histogram":
        pytest.importorskip("matplotlib")
        given = [command, file, *PUBLIC, "--plot", other]
    else:
        given = [command, file, *PUBLIC, *TWINS, other]
    code, out, err = run(capsys, *given)
    message = f"dpfast: error: cannot write {other}: it exists; give --force to replace it\n"
    assert (code, out, err) == (2, "", message)
    assert other.read_text() == "precious\n"
    assert run(capsys, *given, "--force")[0] == 0
    assert "precious" not in other.read_text()
    assert stat.S_IMODE(other.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ages.csv", "other.svg"]


def test_an_output_follows_links(file, tmp_path, capsys):
    place, link = tmp_path / "place.csv", tmp_path / "link.csv"
    link.symlink_to(place)
    assert run(capsys, "synthesize", file, *PUBLIC, *TWINS, link)[0] == 0
    assert link.is_symlink()
    assert place.read_text().startswith("value\n")


def test_the_rights_of_a_new_output_are_usual(file, tmp_path, capsys):
    made, usual = tmp_path / "made.csv", tmp_path / "usual"
    usual.touch()
    assert run(capsys, "synthesize", file, *PUBLIC, *TWINS, made)[0] == 0
    assert made.stat().st_mode == usual.stat().st_mode


def test_an_output_is_complete_or_as_it_was(file, tmp_path, capsys, monkeypatch):
    other = tmp_path / "other.csv"
    other.write_text("precious\n")

    class Failing(io.StringIO):
        def write(self, text):
            raise OSError(28, "No space left on device")

    opened = Path.open
    monkeypatch.setattr(
        Path, "open", lambda self, mode="r", **options: Failing() if mode == "w" else opened(self, mode, **options)
    )
    code, out, err = run(capsys, "synthesize", file, *PUBLIC, *TWINS, other, "--force")
    monkeypatch.undo()
    assert (code, out) == (3, "")
    assert "No space left on device: the release is made, and its epsilon is spent" in err
    assert other.read_text() == "precious\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ages.csv", "other.csv"]


def test_a_file_that_appears_meanwhile_is_kept(file, tmp_path, capsys, monkeypatch):
    other, synthesize = tmp_path / "other.csv", densities.synthesize

    def slow(*args, **options):
        other.write_text("precious\n")
        return synthesize(*args, **options)

    monkeypatch.setattr(
        densities,
        "read",
        lambda arguments, read=densities.read: (monkeypatch.setattr(densities, "synthesize", slow), read(arguments))[1],
    )
    code, out, err = run(capsys, "synthesize", file, *PUBLIC, *TWINS, other)
    assert (code, out) == (3, "")
    assert "File exists: the release is made, and its epsilon is spent" in err
    assert other.read_text() == "precious\n"


# ---- warnings ----

WEAK = "dpfast: warning: epsilon = 1000 is above 20: "
REGRESS = [
    "regress",
    "PAIRS",
    "--features",
    "a",
    "--label",
    "b",
    "--radius",
    "9",
    "--type",
    "number",
    "--missing",
    "half",
]
LINEAR = [*REGRESS, "--label-bound", 9, "--epsilon"]
COMMANDS = {
    **{
        name: [name, "FILE", "--bounds", 0, 100, "--epsilon", 1000]
        for name in ("median", "mean", "sum", "std", "trimmed-mean", "iqr", "quantiles", "histogram")
    },
    "median without bounds": ["median", "FILE", "--epsilon", 1000],
    "median with an interval": ["median", "FILE", "--epsilon", 1000, "--interval"],
    "auto": ["trimmed-mean", "FILE", "--bounds", 0, 100, "--epsilon", 1000, "--method", "auto"],
    "add-remove": ["mean", "FILE", "--bounds", 0, 100, "--epsilon", 1000, "--neighbors", "add-remove"],
    "count": ["count", "FILE", "--epsilon", 1000],
    "partitions": ["partitions", "FILE", "--column", "age", "--epsilon", 1000, "--delta", 1e-6],
    "mle": ["mle", "FILE", "--family", "normal", "--bounds", "mean=0,100", "--epsilon", 1000],
    "regress": [*LINEAR, 1000],
    "logistic": [*REGRESS, "--model", "logistic", "--epsilon", 1000, "--label-values", 2, 3],
    "synthesize": ["synthesize", "FILE", "--bounds", 0, 100, "--epsilon", 1000, "-k", 3, "-o", "OUT"],
    "groups": [
        "mean",
        "PAIRS",
        "--column",
        "a",
        "--bounds",
        0,
        9,
        "--epsilon",
        1000,
        "--group-by",
        "b",
        "--keys",
        "KEYS",
    ],
    "ledger": ["ledger", "OUT", "--epsilon", 1000],
    "demo": ["demo", "--rows", 100, "--epsilon", 1000],
}


@pytest.fixture
def filled(file, tmp_path):
    """Fill the names of files into a command."""
    places = {"FILE": file, "OUT": tmp_path / "out", "PAIRS": tmp_path / "pairs.csv", "KEYS": tmp_path / "keys.csv"}
    places["PAIRS"].write_text("a,b\n" + "1,2\n2,3\n4,2\n" * 50)
    places["KEYS"].write_text("2\n3\n")
    return lambda given: [places.get(argument, argument) for argument in given]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("filters", ["error", "ignore"])
def test_a_warning_is_one_line_on_standard_error(command, filled, capsys, filters):
    with warnings.catch_warnings():
        warnings.simplefilter(filters)  # whatever filters a program has
        code, out, err = run(capsys, *filled(COMMANDS[command]), "--json")
    assert code == 0, err
    assert err.count(WEAK) == 1
    assert err.count("warning") == err.count("\n") - (command == "demo")
    assert isinstance(json.loads(out), dict)


@pytest.mark.parametrize(
    "given",
    [
        ["partitions", "FILE", "--column", "age", "--epsilon", 1],
        ["histogram", "FILE", "--bounds", 0, 100, "--epsilon", 1, "--missing", "lower"],
        [*LINEAR, 1],
        ["median", "FILE", "--bounds", 0, 100, "--epsilon", 1, "--missing", "lower", "--method", "smooth-sensitivity"],
        ["ledger", "OUT", "--epsilon", 1],
    ],
)
def test_a_large_delta_is_told(filled, capsys, given):
    code, _, err = run(capsys, *filled(given), "--delta", 0.5)
    assert code == 0, err
    assert err.startswith("dpfast: warning: delta = 0.5 is not below 0.001: ")
    assert err.count("\n") == 1


def test_all_warnings_of_the_library_are_told_once_and_no_others(file, capsys, monkeypatch):
    """Also those that a release tells of the number of records, but not those of a call that checks parameters."""
    release = densities.histogram

    def telling(x, *args, **options):
        for _ in range(2):
            warnings.warn(f"few\nrecords: {len(x)}", dpf.UtilityWarning, stacklevel=1)
        return release(x, *args, **options)

    monkeypatch.setattr(densities, "histogram", telling)
    code, _, err = run(capsys, "histogram", file, *PUBLIC, "--missing", "lower")
    assert (code, err) == (0, "dpfast: warning: few records: 500\n")


def test_warnings_contain_no_data(file, capsys):
    told = set()
    for cell in ("secret", "1e300", "", "7"):
        file.write_text("age\n" + f"{cell}\n" * 500)
        told.add(run(capsys, "median", file, "--epsilon", 1000)[2])
    assert len(told) == 1
    assert "secret" not in told.pop()
