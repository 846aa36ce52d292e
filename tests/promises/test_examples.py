"""The programs of docs/guides/examples.md and local.md run; the commands name files and extras that exist."""

import http.client
import importlib.util
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

import dpfast as dpf

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guides/examples.md").read_text()
COMMANDS = re.findall(r"^\.venv/bin/python (examples/\w+\.py)(.*)$", GUIDE, re.M)
SERVICE = "examples/service.py"


def arguments(file):
    """What the guide gives an example."""
    [text] = [text for name, text in COMMANDS if name == file]
    return shlex.split(text, comments=True)


def started(file, *more):
    """The example in a process of its own, as the guide says and with arguments to be quick."""
    environment = os.environ | {"PYTHONPATH": str(Path(dpf.__file__).parents[1])}
    command = [sys.executable, str(ROOT / file), *arguments(file), *more]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def needs(*modules):
    """Skips where an example's libraries are not installed."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")


def test_commands_name_files_and_extras_that_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    [named] = re.findall(r"^\.venv/bin/pip install '\.\[([\w,]+)\]' ", GUIDE, re.M)
    assert set(named.split(",")) <= set(extras)
    assert {file for file, _ in COMMANDS} == {f"examples/{path.name}" for path in (ROOT / "examples").glob("*.py")}


@pytest.mark.host
def test_dask():
    needs("distributed")
    process = started("examples/dask_quantiles.py", "--rows", "100000", "--epsilon", "20")
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    first, second = out.splitlines()
    low, middle, high = (float(value.replace(",", "")) for value in first.removeprefix("quartiles: ").split(", "))
    assert 33_000 < low < 35_000 < 48_000 < middle < 50_000 < 70_000 < high < 72_500
    assert second.startswith("100,000 rows in ")


def test_dashboard(tmp_path):
    """Processes are killed at random; the program checks charges and totals."""
    process = started("examples/dashboard.py", "--folder", str(tmp_path), "--quick")
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    first, *bands, _, year, medians = out.splitlines()
    assert first.startswith("26 hours, 26,000 visits: totals within ")
    assert len(bands) == 8
    found = [[float(number) for number in re.findall(r"-?\d[\d.]*", line.replace(",", ""))] for line in bands]
    assert all(low < total < high and abs(total - visits) < 100 for total, _, low, high, visits in found)
    assert year == "year: 2 charges, rho = 0.0946655 of 0.095 is spent"
    assert re.match("medians: [1-3] charges", medians)


def asked(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


@pytest.mark.host
def test_service():
    needs("starlette", "uvicorn")
    [(method, path, body)] = re.findall(r"^curl -X (\w+) localhost:8000(/\w+) -d '(.*)'$", GUIDE, re.M)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = started(SERVICE, "--port", str(port))
    try:
        assert process.stdout.readline().startswith(f"http://localhost:{port}")
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert process.poll() is None
                time.sleep(0.1)
        answers = [asked(port, method, path, body) for _ in range(11)]
        assert [status for status, _ in answers] == [200] * 10 + [403]
        assert all(48_000 < answer["release"] < 50_000 for _, answer in answers[:10])
        assert asked(port, "GET", "/budget")[1]["releases"] == 10
    finally:
        process.kill()
        process.communicate()


def test_local_survey(tmp_path):
    """The client and the server of docs/guides/local.md, as they stand."""
    text = (ROOT / "docs/guides/local.md").read_text()
    programs = {name: code for code, name in re.findall(r"```python\n(# (\w+\.py)\b.*?)```", text, re.DOTALL)}
    assert set(programs) == {"survey.py", "client.py", "server.py"}
    for name, code in programs.items():
        (tmp_path / name).write_text(code)
    [commands] = [block for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if "client.py" in block]
    environment = os.environ | {"PYTHONPATH": str(Path(dpf.__file__).parents[1])}
    commands = commands.replace("python", shlex.quote(sys.executable))
    out = subprocess.run(
        commands, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert out.stdout.startswith("2 reports, each frequency within ")
    assert sum(float(line.split()[1]) for line in out.stdout.splitlines()[1:]) == pytest.approx(1, abs=2e-3)
