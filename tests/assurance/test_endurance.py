"""Each check of the long runs holds, and finds its faults; the runs themselves are by assurance.endurance."""

import pytest

from assurance.endurance import flat
from assurance.endurance.__main__ import CHECKS, Run
from assurance.endurance.check import found

FAULTS = [(kind, fault) for kind in CHECKS for fault in kind.faults]


@pytest.mark.parametrize(("kind", "fault"), FAULTS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_faults_are_found(kind, fault, tmp_path):
    assert found(kind(tmp_path / "files", 0, fault))


def test_a_run_of_a_second(tmp_path, capsys):
    checks = [kind(tmp_path / kind.__name__) for kind in CHECKS]
    try:
        run = Run(checks, 1 / 60, None)
        run.go()
        run.table()
    finally:
        for check in checks:
            check.close()
    assert [violation for violation in run.violations if not violation.startswith("memory")] == []
    assert "s of processor time" in capsys.readouterr().out
    assert all(check.counts["steps"] for check in checks)


def test_what_grows_is_found():
    """The bound is for what is added between the first and the last quarter."""
    first = flat.sample()

    def samples(field, added):
        return [first._replace(**{field: getattr(first, field) + added * (i >= 20)}) for i in range(40)]

    for field, (name, bound) in zip(first._fields, flat.BOUNDS.items(), strict=True):
        assert flat.grown(samples(field, bound)) == set()
        assert flat.grown(samples(field, bound + 1)) == {name}
