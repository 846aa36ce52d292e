"""The recorded table of outcomes on this machine, and that its comparison finds a difference."""

import copy
import functools

import pytest

from assurance.platforms import limited, lock, outcomes, table


@pytest.fixture(scope="module")
def here():
    return table.run()


def test_outcomes_are_those_recorded(here):
    recorded = table.read()
    assert table.differing(here, recorded) == []
    assert len(recorded) >= 500
    assert sum(isinstance(entry, str) for entry in recorded.values()) >= 500


def test_a_changed_entry_is_found(here):
    recorded = table.read()
    changed = copy.copy(recorded)
    exact = "release: GlobalSensitivity mean replace-one 1"
    near = "law: GlobalSensitivity mean replace-one 1"
    changed[exact] = f"{int(changed[exact], 16) ^ 1:032x}"
    changed[near] = [(float.fromhex(changed[near][0]) * (1 + 1e-9)).hex(), *changed[near][1:]]
    del changed["doubles: logs"]
    changed["another"] = "0"
    assert set(table.differing(here, changed)) == {exact, near, "doubles: logs", "another"}


def test_another_seed_or_record_is_another_outcome(here, monkeypatch):
    names = ["release: GlobalSensitivity mean replace-one 1", "noise: rounded Gaussian 3.5"]
    names += ["state: GlobalSensitivity mean replace-one 1"]
    calls = outcomes.outcomes()
    monkeypatch.setattr(outcomes, "PCG64", lambda seed: outcomes.np.random.PCG64(seed + 1))
    changed = table.run({name: calls[name] for name in names})
    assert [changed[name] == here[name] for name in names] == [False, False, True]
    record = outcomes.records(seed=2)
    record[0] += 1
    monkeypatch.setattr(outcomes, "records", lambda seed: record)
    assert table.run({names[2]: calls[names[2]]})[names[2]] != here[names[2]]


def test_near_entries_are_equal_within_the_tolerance_only():
    close = functools.partial(table.close, "law: any")
    assert close([(1.0).hex()], [(1 + 2.0**-40).hex()])
    assert close([(-0.0).hex(), "nan", "-inf"], [(0.0).hex(), "nan", "-inf"])
    for other in ((1 + 2.0**-30).hex(), "inf", "nan"):
        assert not close([(1.0).hex()], [other])
    assert not close(["inf"], ["-inf"])
    assert not close([(1.0).hex()], "0")
    assert not close("0", "1")


@pytest.mark.parametrize("name", lock.CONTROLS)
def test_a_control_of_the_lock_changes_its_header(name):
    old, new = lock.CONTROLS[name]
    assert new in lock.changed(old, new)
    with pytest.raises(LookupError, match="not once"):
        lock.changed("no such text", "")


@pytest.mark.parametrize(("number", "most", "kept"), [(3, 5, [0, 1, 2]), (7, 3, [0, 2, 4]), (4, 1, [0]), (0, 2, [])])
def test_tests_under_emulation_are_spread_over_a_file(number, most, kept):
    assert limited.spread(list(range(number)), most) == kept
