"""T45: States in files: processes killed at every place, copies, backups, damaged lines."""

import ctypes
import ctypes.wintypes
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dpfast as dpf
from dpfast import AboveThreshold, Categories, Running
from dpfast.core import disk
from dpfast.running import files
from dpfast.statistics import Count, Mean, Sum
from tests.cases import every
from tests.forks import in_child

ROOT = Path(__file__).parents[2]
PERIODS = 4
COUNTS = Running(Count(), periods=PERIODS, mu=1.0, neighbors="add-remove")
PURE = Running(Count(), periods=PERIODS, epsilon=1.0, neighbors="add-remove")
CELLS = Running(Categories(["a", "b"]), periods=PERIODS, mu=1.0, neighbors="add-remove")
ALARM = AboveThreshold(50, epsilon=1.0, answers=3, neighbors="add-remove")


def records_of(running, period):
    return ["a"] * (10 * period) + ["b"] if running is CELLS else np.zeros(10 * period)


def run(running, folder, tell):
    """What a service does after each start: go on where the file says, in two portions for each period."""
    with dpf.Ledger(rho=10.0, neighbors="add-remove", path=folder / "ledger"):
        state = running.start(path=folder / "state")
    if state.period:
        tell(state.period, state.total)
    while state.period < PERIODS:
        period, portions = state.period + 1, np.array_split(records_of(running, state.period + 1), 2)
        for place in range(int((state.position or f"{period} 0").split()[1]) if state.position else 0, 2):
            state.update(portions[place].tolist() if running is CELLS else portions[place])
            state.position = f"{period} {place + 1}"
            if place == 0:
                state.save()
        state.position = f"{period} 0"
        total = state.release()
        tell(period, total)
    return state


TIME = 30  # bytes: the time of a line; without it, nobody can tell an incomplete line from one of an old backup


class Killed:
    """Kills its process at the k-th call of `os.write` or `os.fsync`: before it, in the middle of it, or after it."""

    def __init__(self, place, how):
        self.left, self.how = place, how

    def __call__(self, function):
        def called(file, *arguments):
            if os.path.basename(os.readlink(f"/proc/self/fd/{file}")) not in ("state", "ledger"):
                return function(file, *arguments)
            self.left -= 1
            if self.left == 0 and self.how != "after":
                if self.how == "middle" and arguments:
                    line = bytes(arguments[0])
                    function(file, line[: max(len(line) // 2, min(TIME, len(line) - 1))])
                os.kill(os.getpid(), signal.SIGKILL)
            result = function(file, *arguments)
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return called


def killed_at(place, how, work):
    def dying():
        killed = Killed(place, how)
        os.write, os.fsync = killed(os.write), killed(os.fsync)
        work()

    status = in_child(dying)
    assert status in (0, -signal.SIGKILL)
    return status != 0


def said(folder):
    """Each period with all totals that were told of it, by all processes."""
    found = {}
    for line in (folder / "told").read_text().splitlines():
        period, total = json.loads(line)
        found.setdefault(period, set()).add(str(total))
    return found


def teller(folder):
    def tell(period, total):
        with (folder / "told").open("a") as file:
            file.write(json.dumps([period, np.asarray(total).tolist()]) + "\n")

    return tell


class TestCrashes:
    @every("running, how", [(COUNTS, "before"), (CELLS, "middle"), (PURE, "after")], ids=str)
    def test_killed_at_every_place(self, running, how, tmp_path):
        """No period has two totals, the charge came first, and no record is lost or counted twice."""
        place, killed = 0, True
        while killed:
            place += 1
            folder = tmp_path / f"{how}{place}"
            folder.mkdir()
            killed = killed_at(place, how, lambda folder=folder: run(running, folder, teller(folder)))
            if killed:
                assert in_child(lambda folder=folder: run(running, folder, teller(folder))) == 0
            told, charges = said(folder), dpf.Ledger.open(folder / "ledger").charges
            assert sorted(told) == list(range(1, PERIODS + 1))
            assert all(len(totals) == 1 for totals in told.values())
            assert 1 <= len(charges) <= 2
            lines = [json.loads(line) for line in (folder / "state").read_text().splitlines()]
            numbers = [line["records"] for line in lines if "period" in line]
            assert numbers == [len(records_of(running, period)) for period in range(1, PERIODS + 1)]
        assert place > 20

    @pytest.mark.slow
    @every("running", [COUNTS, PURE, CELLS], ids=str)
    @every("how", ["before", "middle", "after"])
    def test_killed_at_every_place_in_every_way(self, running, how, tmp_path):
        self.test_killed_at_every_place.__wrapped__(self, running, how, tmp_path)

    def test_killed_again_and_again(self, tmp_path):
        """Each process is killed at its n-th line; the charge was before the first one."""
        folder, process = tmp_path, 0
        while killed_at(8 + process % 5, "after", lambda: run(COUNTS, folder, teller(folder))):
            process += 1
            assert process < 50
        assert process > 2
        assert all(len(totals) == 1 for totals in said(folder).values())
        assert len(dpf.Ledger.open(folder / "ledger").charges) == 1

    def test_a_line_on_disk_is_released_as_it_is(self, tmp_path):
        """A process that is killed after it has written a release, but before it tells."""
        state = COUNTS.start(path=tmp_path / "state")
        state.update(np.zeros(10))
        total = state.release()
        state.close()
        again = COUNTS.start(path=tmp_path / "state")
        assert (again.period, again.total) == (1, total)

    def test_killed_by_another_process(self, tmp_path):
        """A real process that gets SIGKILL from outside, at any time."""
        script = (
            "import sys; from pathlib import Path; from tests.units import test_running_files as t\n"
            "folder = Path(sys.argv[1]); tell = t.teller(folder)\n"
            "def slow(period, total): tell(period, total); print(period, flush=True)\n"
            "state = t.run(t.COUNTS, folder, slow); sys.stdin.read()"
        )
        for _ in range(2):
            command = [sys.executable, "-c", script, str(tmp_path)]
            with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stdin=subprocess.PIPE) as process:
                assert process.stdout.readline()
                with pytest.raises(ValueError, match="open elsewhere"):
                    COUNTS.start(path=tmp_path / "state")
                process.kill()
                process.wait()
        state = run(COUNTS, tmp_path, teller(tmp_path))
        assert all(len(totals) == 1 for totals in said(tmp_path).values())
        assert state.period == PERIODS
        assert len(dpf.Ledger.open(tmp_path / "ledger").charges) == 1

    def test_alarms(self, tmp_path):
        """No answer by yes is given after the last one, whatever was killed; the threshold keeps its noise."""

        def ask(folder, tell):
            with dpf.Ledger(100.0, neighbors="add-remove", path=folder / "ledger"):
                state = ALARM.start(path=folder / "state")
            while not state.closed:
                if state(10**6):
                    tell(1, "yes")

        for how in ("before", "middle", "after"):
            place, killed = 0, True
            while killed:
                place += 1
                folder = tmp_path / f"{how}{place}"
                folder.mkdir()
                (folder / "told").touch()
                killed = killed_at(place, how, lambda folder=folder: ask(folder, teller(folder)))
                if killed:
                    assert in_child(lambda folder=folder: ask(folder, teller(folder))) == 0
                assert len((folder / "told").read_text().splitlines()) <= 3
                entries = [json.loads(line) for line in (folder / "state").read_text().splitlines()]
                assert len([entry for entry in entries if "positive" in entry]) == 3
                assert len([entry for entry in entries if "threshold" in entry]) == 1
            assert place > 8

    def test_a_full_disk(self, tmp_path):
        """A line that may not be on disk is not released, and the state goes on from its file only."""

        def work():
            state = COUNTS.start(path=tmp_path / "state")
            state.update([1.0])
            state.release()

            def full(*_):
                raise OSError(28, "No space left on device")

            real, os.write = os.write, full
            for message in ("No space", "start it again", "start it again"):
                with pytest.raises((OSError, ValueError), match=message):
                    state.release()
                os.write = real
            assert state.period == 1
            assert COUNTS.start(path=tmp_path / "state").period == 1

        assert in_child(work) == 0


def aged(path, seconds=3600):
    """Change the file so that its last line is old, as if it had last been written then."""
    lines = path.read_text().splitlines()
    last = json.loads(lines[-1])
    last["at"] -= seconds * 10**9
    path.write_text("\n".join([*lines[:-1], json.dumps(last)]) + "\n")


class TestCopies:
    def started(self, path, releases=1):
        state = COUNTS.start(path=path)
        for _ in range(releases):
            state.release()
        return state

    def test_one_process_at_a_time(self, tmp_path):
        path = tmp_path / "state"
        state = self.started(path)
        with pytest.raises(ValueError, match="open elsewhere"):
            COUNTS.start(path=path)
        state.close()
        with pytest.raises(ValueError, match="is closed"):
            state.release()
        again = COUNTS.start(path=path)
        del again  # the file is closed with its state
        assert COUNTS.start(path=path).period == 1

    def test_copies_and_backups_are_told(self, tmp_path):
        path, backup = tmp_path / "state", tmp_path / "backup"
        state = self.started(path)
        shutil.copy2(path, backup)
        state.release()
        state.close()
        for restored in (path, backup):
            shutil.copy2(backup, restored) if restored == path else None  # in place: the same number of the file
            aged(restored)
            with pytest.raises(ValueError, match="copied, moved, restored or changed"):
                COUNTS.start(path=restored)
        assert COUNTS.start(path=backup, moved=True).period == 1

    @every("copy", [shutil.copy, shutil.copy2, lambda a, b: b.write_bytes(a.read_bytes())])
    def test_a_backup_that_is_restored_at_once_is_told(self, copy, tmp_path):
        """However fast: closing takes longer than the times of two files that may be one can be apart."""
        path, backup = tmp_path / "state", tmp_path / "backup"
        for _ in range(5):
            state = self.started(path)
            state.close()
            copy(path, backup)
            state = COUNTS.start(path=path)
            state.release()
            state.close()
            copy(backup, path)
            with pytest.raises(ValueError, match="copied, moved, restored or changed"):
                COUNTS.start(path=path)
            path.unlink()

    def test_lines_are_confirmed_by_the_file_system(self, tmp_path, monkeypatch):
        """A clock of its own is learned, in whole seconds are allowed for, and none is refused."""
        path, true = tmp_path / "state", disk.changed
        monkeypatch.setattr(disk, "changed", lambda file: true(file) + 5 * 10**9)  # of a network, five seconds ahead
        self.started(path).close()
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert lines[-1]["within"] < 10**8 if "within" in lines[-1] else "period" in lines[-1]
        assert COUNTS.start(path=path).period == 1
        path.unlink()
        monkeypatch.setattr(disk, "changed", lambda file: true(file) // (3 * 10**9) * 3 * 10**9)
        time.sleep(max(0, 0.5 - time.time() % 3))  # away from the beginning of its seconds
        self.started(path).close()
        assert COUNTS.start(path=path).period == 1
        changed = iter(range(0, 10**15, 10**11))
        monkeypatch.setattr(disk, "changed", lambda file: next(changed))
        with pytest.raises(ValueError, match="keeps no times of changes"):
            COUNTS.start(path=tmp_path / "other")

    def test_a_backup_with_a_torn_line_is_told(self, tmp_path):
        """An incomplete last line says nothing of the time of the file, unless it has its own."""
        path = tmp_path / "state"
        self.started(path).close()
        aged(path)
        whole = path.read_bytes()
        for torn in (b"{", b'{"at": 17', b"\0" * 60, b'{"at": 1764000000000000000, "per'):
            path.write_bytes(whole + torn)
            with pytest.raises(ValueError, match="copied, moved, restored or changed"):
                COUNTS.start(path=path)
        path.write_bytes(whole + b'{"at": %d, "per' % time.time_ns())
        assert COUNTS.start(path=path).period == 1

    def test_copies_of_a_header_are_charged(self, tmp_path):
        """A process that was killed before its first line, and whose file was copied, has answered nothing."""
        path = tmp_path / "state"
        self.started(path).close()
        header = path.read_bytes().splitlines(keepends=True)[0]
        for k, torn in enumerate((b"", b'{"at": 17')):
            copied = tmp_path / f"copy{k}"
            copied.write_bytes(header + torn)
            with pytest.raises(FileNotFoundError, match="there is no state"):
                COUNTS.start(path=copied, moved=True)
            with dpf.Ledger(mu=1.0, neighbors="add-remove") as ledger:
                COUNTS.start(path=copied).close()
            assert len(ledger.charges) == 1
            assert COUNTS.start(path=copied).period == 0

    def test_a_fresh_copy_has_another_number(self, tmp_path):
        path, copied = tmp_path / "state", tmp_path / "copy"
        self.started(path).close()
        shutil.copy2(path, copied)
        with pytest.raises(ValueError, match="copied"):
            COUNTS.start(path=copied)

    def test_promises_are_asked_for_once(self, tmp_path):
        path = tmp_path / "state"
        self.started(path).close()
        aged(path)
        COUNTS.start(path=path, moved=True).close()
        assert COUNTS.start(path=path).period == 1
        with pytest.raises(TypeError, match="moved needs path"):
            COUNTS.start(moved=True)
        ledger, missing = dpf.Ledger(rho=10.0, neighbors=COUNTS.privacy.neighbors), tmp_path / "typo"
        with ledger, pytest.raises(FileNotFoundError, match=r"there is no state in .*typo"):
            COUNTS.start(path=missing, moved=True)
        assert not missing.exists()
        assert ledger.charges == ()

    def test_what_a_copy_would_do(self, tmp_path):
        """The control: with the promise broken, a copy releases the same period with other noise."""
        path, copied = tmp_path / "state", tmp_path / "copy"
        self.started(path, 0).close()
        shutil.copy2(path, copied)
        states = COUNTS.start(path=path), COUNTS.start(path=copied, moved=True)
        totals = [[state.release() for _ in range(PERIODS)] for state in states]
        assert totals[0] != totals[1]

    def test_forks_close_the_file(self, tmp_path):
        state = self.started(tmp_path / "state")

        def work():
            for refused in (state.release, state.save, state.close):
                with pytest.raises(RuntimeError, match="fork"):
                    refused()
            with pytest.raises(ValueError, match="open elsewhere"):
                COUNTS.start(path=tmp_path / "state")

        assert in_child(work) == 0
        state.release()
        assert len(files.held) >= 1


class TestFiles:
    @every("running", [COUNTS, PURE, CELLS], ids=str)
    def test_restarts_change_no_number(self, running, tmp_path):
        """Totals of a state that restarts before each period, against one that does not: the same noise, in turn."""
        rngs = [np.random.PCG64(1) for _ in range(2)]
        whole, parts = running.start(rng=rngs[0]), []
        for period in range(1, PERIODS + 1):
            state = running.start(path=tmp_path / "state", rng=rngs[1])
            part = running.part()
            part.update(records_of(running, period))
            for each in (whole, state):
                each.update(records_of(running, period))
                each.merge(part)
            parts.append((np.asarray(whole.release()).tolist(), np.asarray(state.release()).tolist()))
            assert state.standard_error == whole.standard_error
            state.close()
        assert all(a == b for a, b in parts)

    def test_means_know_the_numbers_of_records(self, tmp_path):
        running = Running(Mean(), grid=dpf.Grid(0, 10, step=1), periods=3, mu=1e4)
        for period in range(1, 4):
            state = running.start(path=tmp_path / "state")
            state.update([2.0 * period] * 3)
            assert abs(state.release() - (period + 1)) < 0.01
            state.close()

    def test_the_file_is_charged_once(self, tmp_path):
        with dpf.Ledger(mu=1.0, neighbors="add-remove") as ledger:
            COUNTS.start(path=tmp_path / "state").close()
            COUNTS.start(path=tmp_path / "state").close()
            with pytest.raises(dpf.BudgetError):
                COUNTS.start(path=tmp_path / "other")
        assert not (tmp_path / "other").exists()
        assert len(ledger.charges) == 1

    def test_a_ledger_that_did_not_pay_refuses_the_answers(self, tmp_path):
        path, ledger = tmp_path / "state", dpf.Ledger(mu=2.0, neighbors="add-remove")
        state = COUNTS.start(path=path)
        with ledger, pytest.raises(dpf.BudgetError, match="not charged to this ledger"):
            state.release()
        assert state.period == 0
        state.release()
        state.close()
        with ledger, pytest.raises(dpf.BudgetError, match="not charged to this ledger"):
            COUNTS.start(path=path)
        ledger.reserve(COUNTS.privacy_profile, label=repr(COUNTS))
        with ledger:
            state = COUNTS.start(path=path)
            state.release()
        assert len(ledger.charges) == 1
        with dpf.Ledger(mu=2.0, neighbors="add-remove"), pytest.raises(dpf.BudgetError, match="not charged"):
            state.release()
        assert state.period == 2

    def test_a_file_of_others_is_refused(self, tmp_path):
        path = tmp_path / "state"
        COUNTS.start(path=path).close()
        other = Running(Count(), periods=PERIODS, mu=2.0, neighbors="add-remove")
        of = r"other parameters, as Running release .* mu = 1 .*, not as "
        for started, match in [(other, f"{of}Running release .* mu = 2 "), (ALARM, f"{of}AboveThreshold answers")]:
            with pytest.raises(ValueError, match=match):
                started.start(path=path)
        whole = path.read_text()
        path.write_text(whole.replace("Running release", "Running totals"))  # as another version may call it
        COUNTS.start(path=path, moved=True).close()
        later = whole.replace('"dpfast-running": 1', '"dpfast-running": 2')
        header = later.split("\n")[0] + "\n"
        notes = [(text, "not a state") for text in ("notes\n", "notes", "[]\n")]
        for text, match in (*notes, (header, "version 2"), (later, "version 2")):
            path.write_text(text)
            with dpf.Ledger(rho=1.0, neighbors="add-remove") as ledger, pytest.raises(ValueError, match=match):
                COUNTS.start(path=path)
            assert ledger.charges == ()
            assert path.read_text() == text

    def test_damaged_lines(self, tmp_path):
        path = tmp_path / "state"
        state = COUNTS.start(path=path)
        state.update([1.0])
        state.save()
        state.release()
        state.release()
        state.close()
        whole = path.read_text()
        for old, new in [
            ('"period": 1', '"period": 2'),
            ('"period": 2', '"period": 1'),
            ('"records": 1', '"record": 1'),
            ('"integers": 1', '"integers": 1.5'),
            ('"integers": 1', '"integers": "1"'),
            ('"noisy": [', '"noisy": [1, '),
        ]:
            damaged = whole.replace(old, new)
            assert damaged != whole
            path.write_text(damaged)
            with pytest.raises(ValueError, match="damaged"):
                COUNTS.start(path=path, moved=True)
        path.write_text(whole)
        assert COUNTS.start(path=path, moved=True).period == 2

    def test_positions(self, tmp_path):
        state = COUNTS.start(path=tmp_path / "state")
        for place in ("page 3", 17):
            state.position = place
            state.update([1.0] * 5)
            state.save()
            state.close()
            state = COUNTS.start(path=tmp_path / "state")
            assert state.position == place
        state.position = 1.5
        with pytest.raises(TypeError, match="position must be"):
            state.release()
        state.position = None
        state.release()
        state.close()
        lines = [json.loads(line) for line in (tmp_path / "state").read_text().splitlines()]
        assert [line["records"] for line in lines if "period" in line] == [10]
        assert COUNTS.start(path=tmp_path / "state").position is None

    def test_only_states_with_a_file_are_saved(self):
        with pytest.raises(ValueError, match="without a file"):
            COUNTS.start().save()

    def test_the_file_is_private(self, tmp_path):
        COUNTS.start(path=tmp_path / "state")
        assert (tmp_path / "state").stat().st_mode & 0o077 == 0

    def test_times_are_those_of_the_file_system(self, tmp_path):
        """What `resume` compares: the time in the last line, and the last change of the file."""
        state = Running(Sum(), grid=dpf.Grid(0, 1), periods=1, mu=1.0).start(path=tmp_path / "state")
        time.sleep(0.05)
        state.release()
        last = json.loads((tmp_path / "state").read_text().splitlines()[-1])
        with (tmp_path / "state").open() as file:
            assert abs(disk.changed(file.fileno()) - last["at"]) < 10**10

    def test_the_time_of_windows(self, monkeypatch):
        """The module as Windows imports it, with a stand-in for the call: the last of the four times, from 1970 on."""

        class Kernel:
            LockFileEx, UnlockFileEx = SimpleNamespace(), SimpleNamespace()

            def GetFileInformationByHandleEx(self, handle, kind, found, size):
                assert (handle.value, kind, size) == (7, 0, 40)
                times = np.array(["1700-01-01", "1970-01-01", "1970-01-01", "2026-11-29T12:00:00.1234567"], "M8[ns]")
                ticks = (times.astype("M8[s]").astype(np.int64) + 11_644_473_600) * 10**7
                ticks += times.astype(np.int64) % 10**9 // 100
                ctypes.memmove(found, ticks.tobytes(), 32)
                return 1

        monkeypatch.setattr(sys, "platform", "win32")
        monkeypatch.setattr(ctypes, "WinDLL", lambda *names, **options: Kernel(), raising=False)
        monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(get_osfhandle=lambda file: file + 4))
        spec = importlib.util.spec_from_file_location("disk_of_windows", disk.__file__)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert module.changed(3) == np.datetime64("2026-11-29T12:00:00.123456700", "ns").astype(np.int64)


@pytest.mark.parametrize("with_file", [False, True])
def test_an_interrupted_release_ends_the_state(with_file, tmp_path, monkeypatch):
    """Another try would count the records twice, or write the period again with other noise."""
    path = tmp_path / "state"
    options = {"path": path} if with_file else {}
    state = COUNTS.start(**options)
    state.update(np.zeros(50))

    def interrupt(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(state), "_end", interrupt)
        with pytest.raises(KeyboardInterrupt):
            state.release()
    for call in (state.release, lambda: state.update(np.zeros(1))):
        with pytest.raises(ValueError, match="interrupted"):
            call()
    if with_file:
        again = COUNTS.start(path=path)
        assert (again.period, abs(again.total - 50) < 40) == (1, True)
