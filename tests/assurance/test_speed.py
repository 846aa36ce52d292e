"""The scripts of assurance/speed: cases, verdicts, and what they say elsewhere; nothing that needs valgrind."""

import json

import pytest

from assurance.speed import __main__ as command
from assurance.speed import counts, worker

RECORD = json.loads(counts.RECORD.read_text())


def test_every_case_runs_and_is_recorded():
    made = worker.cases()
    for call in made.values():
        call()
    assert made.keys() - {worker.EMPTY} - worker.CONTROLS.keys() == RECORD["counts"].keys()
    assert set(worker.CONTROLS.values()) <= RECORD["counts"].keys()


def test_randomness_is_the_same_in_each_run_and_differs_at_each_request(monkeypatch):
    monkeypatch.setattr(worker, "_requests", iter([0, 1, 0]))
    first, second, again = (worker.bytes_in_order(48) for _ in range(3))
    assert len(first) == 48
    assert first == again != second


def _now(**factors):
    """The counts of the record, some of them changed, and slower controls."""
    now = {name: int(count * factors.get(name, 1)) for name, count in RECORD["counts"].items()}
    return now | {control: int(now[case] * 1.06) for control, case in worker.CONTROLS.items()}


def test_a_slower_version_is_rejected(capsys):
    before = RECORD["counts"]
    assert command.judged(_now(), before) == []
    for name in before:
        assert command.judged(_now(**{name: 1.04}), before) == []
        [failure] = command.judged(_now(**{name: 1.06}), before)
        assert failure.startswith(f"{name}: ")
    capsys.readouterr()
    assert command.judged(_now(**{"median, built": 0.5}), before) == []
    assert "Faster by more than 5 %: median, built." in capsys.readouterr().out


def test_a_control_that_passes_fails_and_so_do_cases_that_come_or_go():
    control, case = next(iter(worker.CONTROLS.items()))
    before = RECORD["counts"]
    [failure] = command.judged(_now() | {control: before[case]}, before)
    assert failure == f"{control}: it is slower and was not rejected"
    [failure] = command.judged(_now(), before | {"gone": 1})
    assert failure.startswith("gone: counted before, but not now")
    [failure] = command.judged(_now() | {"new": 1}, before)
    assert failure.startswith("new: no count before")


@pytest.fixture
def elsewhere(monkeypatch):
    monkeypatch.setattr(command.shutil, "which", lambda name: name)
    monkeypatch.setattr(counts, "environment", lambda: RECORD["environment"] | {"Python": "3.99.0, GCC 99"})
    monkeypatch.setattr(counts, "counted", lambda tree=counts.ROOT: _now())


def test_in_another_environment_builds_are_compared(elsewhere, monkeypatch, capsys):
    monkeypatch.setattr(command, "recorded_at", lambda: "0123abcd")
    monkeypatch.setattr(command, "tree_of", lambda revision: counts.ROOT)
    assert command.main([]) == 0
    text = capsys.readouterr().out
    assert f"in another environment: Python 3.99.0, GCC 99 instead of {RECORD['environment']['Python']}." in text
    assert "`python -m assurance.speed --record` in this environment records them" in text
    assert "Compared with a build of revision 0123abcd." in text


def test_without_a_repository_or_valgrind_it_says_that_it_is_skipped(elsewhere, monkeypatch, capsys):
    monkeypatch.setattr(command, "recorded_at", lambda: None)
    assert command.main([]) == 0
    assert "SKIPPED: the revision that wrote the record is not known here" in capsys.readouterr().out
    monkeypatch.setattr(command.shutil, "which", lambda name: None)
    assert command.main([]) == 0
    assert capsys.readouterr().out.startswith("SKIPPED: counts of instructions need valgrind")
