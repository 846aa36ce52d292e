"""The commands that release one number, and their certification."""

import json

import numpy as np
import pytest
from numpy.random import PCG64, Generator

import dpfast as dpf
from dpfast.cli import main

COMMANDS = {
    "median": ([], dpf.median),
    "mean": ([], dpf.mean),
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
    assert f"{expected:.12g}" in capsys.readouterr().out
    assert main([*arguments, "--method", "magic"]) == 2
    assert "method must be" in capsys.readouterr().err


@pytest.mark.parametrize("command", [*COMMANDS, "quantile"])
def test_verify(command, capsys):
    assert main(["verify", command, "--epsilon", "0.5"]) == 0
    assert "holds    yes" in capsys.readouterr().out
