"""The commands in docs/guides/command-line.md run as they stand."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from dpfast.cli import main
from dpfast.cli.commands import make_parser

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "command-line.md").read_text()
BLOCKS = [block.splitlines() for block in re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)]
[BUDGET] = [block for block in BLOCKS if block[0].startswith("dpfast ledger")]
COMMANDS = [line for block in BLOCKS if block is not BUDGET for line in block]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path, rng = tmp_path_factory.mktemp("guide"), np.random.default_rng(0)
    with (path / "pay.csv").open("w") as file:
        file.write("gross,age,hours,union,region\n")
        for gross in rng.lognormal(10.5, 0.5, 3000):
            region = rng.choice(["north", "south", "east"])
            file.write(f"{gross:.2f},{rng.integers(18, 90)},{rng.integers(5, 45)},{rng.integers(2)},{region}\n")
    (path / "regions.csv").write_text("north\nsouth\nwest\n")
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    program, *arguments = shlex.split(command)
    assert program == "dpfast"
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert out
    assert not err or "--explain" in arguments or arguments[0] == "demo"


def test_the_commands_of_a_budget_run_in_their_order(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    for command in BUDGET:
        assert main(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out.endswith("left: epsilon = 0\n")
    assert len(Path("pay.ledger").read_text().splitlines()) == 3  # the budget, and both charges


def test_every_command_and_exit_code_is_in_the_guide():
    [commands] = [action for action in make_parser()._actions if action.choices and "demo" in action.choices]
    for name in commands.choices:
        assert f"`{name}`" in GUIDE
    for code in re.findall(r"^  (\d+) ", make_parser().epilog, re.MULTILINE):
        assert f"\n| {code} | " in GUIDE
