"""The commands that release a histogram and synthetic records."""

import json

import numpy as np
import pytest
from numpy.random import PCG64, Generator

import dpfast as dpf
from dpfast.cli import main
from tests.commands import run

PUBLIC = ["--bounds", "0", "100", "--step", "1", "--epsilon", "1"]
GRID = dpf.Grid(0, 100, step=1)


@pytest.fixture
def x():
    return np.random.default_rng(1).integers(0, 100, 500).astype(float)


@pytest.fixture
def file(tmp_path, x):
    path = tmp_path / "ages.csv"
    path.write_text("age,name\n" + "\n".join(f"{v},secret" for v in x))
    return str(path)


def test_histogram(file, x, capsys):
    arguments = ["histogram", file, "--column", "age", *PUBLIC, "--bins", "7", "--seed", "7"]
    assert main([*arguments, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    expected = dpf.histogram(x, 7, grid=GRID, epsilon=1.0, rng=Generator(PCG64(7)))
    assert report["counts"] == expected.counts.tolist()
    assert report["edges"] == expected.edges.tolist()
    assert (report["n"], report["epsilon"], report["private"], report["noise_dominates"]) == (500, 1.0, False, False)
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert [int(line.split()[3]) for line in lines[:-3]] == expected.weights.tolist()
    assert max(line.count("#") for line in lines) == 50
    assert "500 records in 7 bins; epsilon = 1" in lines[-3]


@pytest.mark.parametrize(("epsilon", "delta", "paid"), [("1", "1e-6", 0.0), ("0.1", "0.1", 0.1)])
def test_delta_is_paid_for_less_noise_only(file, capsys, epsilon, delta, paid):
    options = ["--bounds", "0", "69", "--step", "1", "--bins", "70", "--epsilon", epsilon, "--delta", delta]
    assert main(["histogram", file, "--column", "age", *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["delta"] == pytest.approx(paid)


def test_many_bins_share_lines(file, capsys):
    assert main(["histogram", file, "--column", "age", *PUBLIC, "--bins", "101"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 36
    assert lines[0].split()[:3] == ["0", "..", "2"]
    assert lines[33].split()[:3] == ["99", "..", "100"]


def test_a_bar_for_each_rating(tmp_path, capsys):
    (tmp_path / "ratings.csv").write_text("stars\n" + "5\n1\n3\n" * 50)
    options = ["--column", "stars", "--bounds", "1", "5", "--type", "integer", "--epsilon", "20", "--bins", "5"]
    assert main(["histogram", str(tmp_path / "ratings.csv"), *options]) == 0
    lines = capsys.readouterr().out.splitlines()[:5]
    assert [line.split()[:2] for line in lines] == [["1", "50"], ["2", "0"], ["3", "50"], ["4", "0"], ["5", "50"]]
    assert len({line.index(line.split()[1][-1], 20) for line in lines}) == 1


def test_the_terminal_says_where_noise_dominates(file, capsys):
    arguments = ["--column", "age", "--bounds", "0", "99", "--step", "1", "--epsilon", "0.01", "--bins", "50"]
    assert main(["histogram", file, *arguments]) == 0
    assert "use fewer bins" in capsys.readouterr().out


def test_automatic_bins(file, capsys):
    assert main(["histogram", file, "--column", "age", *PUBLIC, "--json"]) == 0
    found = len(json.loads(capsys.readouterr().out)["counts"])
    assert (found,) == dpf.histogram(np.zeros(500), grid=GRID, epsilon=1.0).cells.bins


def test_plot(file, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    for name, start in (("x.png", b"\x89PNG"), ("x.svg", b"<?xml")):
        assert main(["histogram", file, "--column", "age", *PUBLIC, "--plot", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_bytes().startswith(start)
    capsys.readouterr()
    for name, message in (("x.exe", "cannot plot to"), ("nowhere/x.png", "cannot write")):
        assert main(["histogram", file, "--column", "age", *PUBLIC, "--plot", str(tmp_path / name)]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert message in err


@pytest.mark.parametrize("method", ["perturbed", "smoothed"])
def test_synthesize(file, x, tmp_path, capsys, method):
    out = tmp_path / "twins.csv"
    arguments = ["synthesize", file, "--column", "age", *PUBLIC, "-k", "30", "-o", str(out), "--method", method]
    assert main([*arguments, "--bins", "5", "--seed", "7", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["k"], report["n"], report["epsilon"], report["method"]) == (30, 500, 1.0, method)
    expected = dpf.synthesize(x, 30, grid=GRID, epsilon=1.0, bins=5, method=method, rng=Generator(PCG64(7)))
    assert out.read_text().split() == ["age", *map(repr, expected.tolist())]
    assert main([*arguments, "--force"]) == 0
    assert "30 synthetic records" in capsys.readouterr().out
    assert len(out.read_text().split()) == 31


def test_synthesize_by_public_numbers(file, x, tmp_path, capsys):
    out = tmp_path / "twins.csv"
    arguments = ["synthesize", file, "--column", "age", *PUBLIC, "-k", "30", "-o", str(out)]
    assert main([*arguments, "--seed", "7"]) == 0
    expected = dpf.synthesize(x, 30, grid=GRID, epsilon=1.0, method="quantiles", rng=Generator(PCG64(7)))
    assert out.read_text().split() == ["age", *map(repr, expected.tolist())]


def test_a_name_of_two_words_and_a_comma(tmp_path):
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text('"age, years",x\n30,1\n40,2\n')
    for file, made in ((source, out), (out, tmp_path / "again.csv")):  # the output is valid input
        options = ["--column", "age, years", *PUBLIC, "-k", "9", "-o", str(made), "--seed", "1"]
        assert main(["synthesize", str(file), *options]) == 0
    assert out.read_text().startswith('"age, years"\n')


BAD = {
    "bins": ["histogram", "FILE", *PUBLIC, "--bins", "0"],
    "bins of text": ["histogram", "FILE", *PUBLIC, "--bins", "many"],
    "more bins than numbers": ["histogram", "FILE", *PUBLIC, "--bins", "102"],
    "epsilon": ["histogram", "FILE", "--bounds", "0", "1", "--epsilon", "0"],
    "k": ["synthesize", "FILE", *PUBLIC, "-k", "0", "-o", "OUT"],
    "method": ["synthesize", "FILE", *PUBLIC, "-k", "5", "-o", "OUT", "--method", "magic"],
    "bins of synthesize": ["synthesize", "FILE", *PUBLIC, "-k", "5", "-o", "OUT", "--bins", "102"],
}


@pytest.mark.parametrize("name", BAD)
def test_parameters_are_checked_before_the_file(capsys, tmp_path, name):
    arguments = ["nowhere.csv" if a == "FILE" else str(tmp_path / "out") if a == "OUT" else a for a in BAD[name]]
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "nowhere" not in err
    assert not (tmp_path / "out").exists()


def test_a_file_that_cannot_be_written(file, tmp_path, capsys):
    out = str(tmp_path / "nowhere" / "x.csv")
    assert main(["synthesize", file, "--column", "age", *PUBLIC, "-k", "5", "-o", out]) == 2
    assert capsys.readouterr().err == f"dpfast: error: cannot write {out}: No such file or directory\n"


def test_synthetic_records_on_standard_output(file, x, capsys):
    given = ["synthesize", file, "--column", "age", *PUBLIC, "-k", "5", "-o", "-"]
    assert main([*given, "--seed", "7"]) == 0
    out, err = capsys.readouterr()
    expected = dpf.synthesize(x, 5, grid=GRID, epsilon=1.0, rng=Generator(PCG64(7)))
    assert out.splitlines() == ["age", *map(repr, expected.tolist())]
    assert "5 synthetic records in -  (from 500 records; epsilon = 1 (pure" in err
    assert main([*given, "--json"]) == 2
    assert "--json and -o - would both write" in capsys.readouterr().err
