"""T35: Ledgers in files: crashes, forks, processes that share one, damaged text."""

import copy
import json
import math
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dpfast import BudgetError, Ledger, Privacy, PrivacyProfile
from dpfast.ledger import Charge
from tests.cases import every
from tests.forks import forked, in_child, needs_fork, status_of
from tests.releases import MEDIAN, X
from tests.untouchable import Untouchable

ROOT = Path(__file__).parents[2]


def open_ledger(path, epsilon=10.0):
    return Ledger(epsilon, path=path)


def spend_all(path):
    """In another process: release until the budget is spent."""
    ledger, done = open_ledger(path), 0
    try:
        while True:
            ledger.release(MEDIAN, X)
            done += 1
    except BudgetError:
        return done


CRASH = """
import os, sys
import numpy as np, dpfast as dpf

class Dying:
    def __array__(self, *args, **options):
        os._exit(9)  # between the reservation and the release

grid = dpf.Grid(0, 100, step=1)
mechanism = dpf.InverseSensitivity(dpf.statistics.Median(), grid=grid, epsilon=0.25)
ledger = dpf.Ledger(10.0, path=sys.argv[1])
ledger.release(mechanism, np.arange(10.0))
ledger.release(mechanism, Dying())
"""


class TestFiles:
    def test_a_ledger_outlives_its_process(self, tmp_path):
        path = tmp_path / "ledger"
        open_ledger(path).release(MEDIAN, X)
        again = open_ledger(path)
        assert again.charges == (Charge(repr(MEDIAN), MEDIAN.privacy_profile),)
        open_ledger(path).release(MEDIAN, X, size=39)
        assert again.spent.epsilon == 10.0
        with pytest.raises(BudgetError):
            again.release(MEDIAN, Untouchable())

    def test_a_crash_between_reservation_and_release_is_spent(self, tmp_path):
        path = tmp_path / "ledger"
        done = subprocess.run([sys.executable, "-c", CRASH, path], cwd=ROOT, check=False)
        assert done.returncode == 9
        assert open_ledger(path).spent.epsilon == 0.5

    @pytest.mark.parametrize("cut", [1, 10])
    def test_a_torn_line_is_cut_off(self, tmp_path, cut):
        path = tmp_path / "ledger"
        for _ in range(3):
            open_ledger(path).release(MEDIAN, X)
        path.write_bytes(path.read_bytes()[:-cut])
        ledger = open_ledger(path)
        assert len(ledger.charges) == 2
        ledger.release(MEDIAN, X)
        assert len(open_ledger(path).charges) == 3
        path.write_bytes(path.read_bytes()[:20])  # torn while the file was made
        assert open_ledger(path).charges == ()

    def test_processes_share_a_file(self, tmp_path):
        path = tmp_path / "ledger"
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            done = pool.map(spend_all, [path] * 2)
        assert sum(done) == 40
        assert len(open_ledger(path).charges) == 40

    def test_threads_share_a_file(self, tmp_path):
        path = tmp_path / "ledger"
        ledger = open_ledger(path)
        with ThreadPoolExecutor(8) as pool:
            done = list(pool.map(lambda i: spend_all(path) if i % 2 else _spend(ledger), range(8)))
        assert sum(done) == 40
        assert len(ledger.charges) == 40

    def test_other_parameters_or_versions_are_refused(self, tmp_path):
        path = tmp_path / "ledger"
        open_ledger(path)
        with pytest.raises(ValueError, match=r"epsilon = 10.0, not 11.0"):
            open_ledger(path, 11.0)
        with pytest.raises(ValueError, match="neighbors"):
            Ledger(10.0, neighbors="local", path=path)
        path.write_text(path.read_text().replace('"dpfast-ledger": 1', '"dpfast-ledger": 2'))
        with pytest.raises(ValueError, match="version 2"):
            open_ledger(path)
        path.write_text("notes\n")
        with pytest.raises(ValueError, match="not a ledger"):
            open_ledger(path)

    def test_a_missing_or_truncated_file_is_refused(self, tmp_path):
        path = tmp_path / "ledger"
        ledger = open_ledger(path)
        ledger.release(MEDIAN, X)
        full = path.read_bytes()
        path.write_bytes(full[: full.index(b"\n") + 1])
        with pytest.raises(ValueError, match=r"ledger is shorter .*open this one again, and reserve what is missing"):
            ledger.release(MEDIAN, Untouchable())
        path.unlink()
        with pytest.raises(FileNotFoundError):
            ledger.release(MEDIAN, Untouchable())

    def test_equal_lines_count_each(self, tmp_path):
        """They are read once: charges before and after them, and their numbers of releases, stay."""
        path = tmp_path / "ledger"
        ledger = open_ledger(path, 1000.0)
        ledger.release(MEDIAN, X, size=3)
        header, line = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(header + 100 * line)
        open_ledger(path, 1000.0).reserve(PrivacyProfile(Privacy(0.5)))
        path.write_bytes(path.read_bytes() + 7 * line)
        for read in (Ledger.open(path), Ledger.from_json(Ledger.open(path).to_json())):
            assert [charge.times for charge in read.charges] == [*[3] * 100, 1, *[3] * 7]
            assert read.spent.epsilon == 107 * 3 * MEDIAN.epsilon + 0.5

    def test_an_interrupt_while_it_is_read_leaves_no_charge_twice(self, tmp_path, monkeypatch):
        ledger, other = (Ledger(10.0, path=tmp_path / "ledger") for _ in range(2))
        for epsilon in (0.5, 0.25, 0.5):
            other.reserve(PrivacyProfile(Privacy(epsilon)))
        add, calls = type(ledger._account).add, []

        def interrupted(*arguments):
            calls.append(arguments)
            if len(calls) == 2:
                raise KeyboardInterrupt
            add(*arguments)

        monkeypatch.setattr(type(ledger._account), "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ledger.spent  # noqa: B018
        assert (ledger.spent, len(ledger.charges)) == (other.spent, 3)

    @every(
        ("line", "reason"),
        [
            (b'{"label": 3}', "a charge needs 'delta'"),
            (b"3 EUR", "it is not JSON"),
            (b'{"label": 3, "times": 1, "delta": 0, "neighbors": "local", "parts": [["pure"]]}', "it is not a charge"),
        ],
        ids=str,
    )
    def test_the_message_of_a_damaged_line_says_where_it_is_and_what_to_do(self, tmp_path, line, reason):
        path = tmp_path / "ledger"
        ledger = open_ledger(path)
        ledger.release(MEDIAN, X)
        path.write_bytes(path.read_bytes() + line + b"\n")
        message = rf"^line 3 of the ledger {re.escape(str(path))} is damaged: .*{reason}.*Put the line"
        for read in (lambda: open_ledger(path), lambda: ledger.spent):  # which has read the lines before
            with pytest.raises(ValueError, match=message):
                read()

    def test_a_damaged_line_is_refused_each_time_and_no_spending_is_lost(self, tmp_path):
        path = tmp_path / "ledger"
        ledger, other = open_ledger(path, 1.0), open_ledger(path, 1.0)
        other.release(MEDIAN, X, size=3)
        sound = path.read_bytes()
        for line in (b"{\n", b'{"label": 3}\n', b'{"label": 3}\n{"torn'):
            path.write_bytes(sound + line)
            for _ in range(3):
                with pytest.raises(ValueError, match="ledger"):
                    ledger.release(MEDIAN, Untouchable(), size=2)
            assert path.read_bytes() == sound + line
        path.write_bytes(sound)
        assert (ledger.spent.epsilon, len(ledger.charges)) == (0.75, 1)

    @every("text", ["notes", "notes\nand more", '{"another', '{"dpfast-ledger": 1, "epsilon": 1.0', None])
    def test_a_file_of_somebody_else_stays_as_it_is(self, tmp_path, text):
        path = tmp_path / "ledger"
        if text is None:
            ledger = Ledger(10.0)
            ledger.release(MEDIAN, X)
            text = ledger.to_json()
        path.write_text(text)
        with pytest.raises(ValueError, match="not a ledger"):
            open_ledger(path, 11.0)
        assert path.read_text() == text
        reopened = pickle.loads(pickle.dumps(open_ledger(tmp_path / "sound")))
        os.replace(path, tmp_path / "sound")
        with pytest.raises(ValueError, match="not a ledger"):
            reopened.release(MEDIAN, Untouchable())
        assert (tmp_path / "sound").read_text() == text

    @needs_fork
    def test_fork(self, tmp_path):
        path = tmp_path / "ledger"
        in_memory, in_file = Ledger(1.0), open_ledger(path)

        def spend():
            with pytest.raises(BudgetError):
                in_memory.release(MEDIAN, X)
            in_file.release(MEDIAN, X)

        in_memory._lock.acquire()  # held by another thread, say
        in_file._lock.acquire()
        assert in_child(spend) == 0
        in_memory._lock.release()
        in_file._lock.release()
        in_memory.release(MEDIAN, X)
        in_file.release(MEDIAN, X)
        assert in_file.spent.epsilon == 0.5

    @needs_fork
    def test_a_fork_while_a_thread_holds_the_file(self, tmp_path):
        """The lock ends with the thread's block, though the child lives; the child reads all charges, each once."""
        path = tmp_path / "ledger"
        ledger = open_ledger(path)
        ledger.release(MEDIAN, X)
        held, go, (out, into) = threading.Event(), threading.Event(), os.pipe()

        def hold():
            with ledger._current():
                ledger._charges.append("half of an addition")
                held.set()
                go.wait()
                ledger._charges.pop()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()

        def read():
            os.close(into)
            os.read(out, 1)  # until the parent is done
            assert [charge.times for charge in ledger.charges] == [1, 2]

        child = forked(read)
        go.set()
        thread.join()
        other = threading.Thread(target=lambda: open_ledger(path).release(MEDIAN, X, size=2), daemon=True)
        other.start()
        other.join(20)
        free = not other.is_alive()
        os.close(into)
        assert status_of(child) == 0
        os.close(out)
        assert free

    def test_copies(self, tmp_path):
        for make in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="spend twice"):
                make(Ledger(1.0))
        ledger = open_ledger(tmp_path / "ledger")
        again = pickle.loads(pickle.dumps(ledger))
        again.release(MEDIAN, X)
        assert ledger.spent.epsilon == 0.25


def _spend(ledger):
    done = 0
    try:
        while True:
            ledger.release(MEDIAN, X)
            done += 1
    except BudgetError:
        return done


@every(
    "budget",
    [
        {"epsilon": "1/10"},
        {"epsilon": 1.0, "delta": "1e-6", "composition": "renyi"},
        {"rho": 0.5, "delta": 1e-6},
        {"mu": 0.25},
        {"epsilon": 1.0, "neighbors": "add-remove", "per_unit": 3},
        {"epsilon": 0.5, "plan": [MEDIAN, MEDIAN]},
    ],
    ids=str,
)
def test_open_takes_the_budget_from_the_file(tmp_path, budget):
    made = Ledger(**budget, path=tmp_path / "ledger")
    opened = Ledger.open(tmp_path / "ledger")
    assert opened.privacy == made.privacy
    assert opened.to_json() == made.to_json()
    with opened.spend(MEDIAN if "plan" in budget else made.remaining):
        assert len(made.charges) == 1


def test_open_makes_no_file(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=rf"^no ledger {tmp_path}/ledger: make it by dpf.Ledger\(epsilon, path="
    ):
        Ledger.open(tmp_path / "ledger")
    assert not (tmp_path / "ledger").exists()
    for text in ("", "pay\n1\n", '{"a": 1}\n', '{"dpfast-ledger": 1}\n', '{"dpfast-ledger": 9, "epsilon": 1}\n'):
        (tmp_path / "other").write_text(text)
        with pytest.raises(ValueError, match="ledger"):
            Ledger.open(tmp_path / "other")
        assert (tmp_path / "other").read_text() == text


ADD_REMOVE = {"neighbors": "add-remove"}
WHOLE = {"epsilon": 8.0, "delta": 1e-3}
COSTS = {
    "epsilon": (WHOLE, PrivacyProfile(Privacy(0.25))),
    "epsilon and delta": (WHOLE, PrivacyProfile(Privacy("1/3", 1e-6), [("bounded-range", 0.3, 1)])),
    "a failure": (WHOLE, PrivacyProfile(Privacy(0.5, 1e-6), [("gaussian", 0.05, 1)], failure=1e-6)),
    "rho": ({"rho": 2.0, "delta": 1e-3}, PrivacyProfile(Privacy(rho=0.125, delta=1e-6))),
    "renyi": ({**WHOLE, "composition": "renyi"}, PrivacyProfile(Privacy(rho=0.01, delta=1e-6))),
    "renyi of pure": ({**WHOLE, "composition": "renyi"}, PrivacyProfile(Privacy(0.25))),
    "mu": ({"mu": 2.0}, PrivacyProfile(Privacy(mu=0.25))),
    "units": ({**WHOLE, **ADD_REMOVE, "per_unit": 3}, PrivacyProfile(Privacy(0.125, **ADD_REMOVE))),
    "plan": ({**WHOLE, "plan": [PrivacyProfile(Privacy(0.25))] * 3}, PrivacyProfile(Privacy(0.25))),
}
# Nothing, or what is not an amount. Larger amounts are another sound file.
VALUES = [0, -1, 0.0, -0.0, 0.5, 1.0, True, False, None, math.nan, math.inf, [], {}]
VALUES += ["", "0", "0/7", "-1/3", "nan", "local", "add-remove", "replace-one", 10**400]
MISSING = object()


def left(ledger):
    """What tells how much is spent, the larger the less."""
    rest, spent = ledger.remaining, ledger.spent
    return (rest.amount, rest.delta, -float(spent.amount), -float(spent.delta))


def changed(fields):
    """The same fields with one change: of a value at any depth, of a name, or a value that is missing."""
    for name in fields if isinstance(fields, dict) else range(len(fields)):
        if name == "label":
            continue
        inner = [*changed(fields[name])] if isinstance(fields[name], (dict, list)) else []
        for value in (MISSING, *VALUES, *inner):
            if name == "failure" and value in (MISSING, 0, "0", "0/7"):
                continue  # another sound charge, whose delta is that of its parts
            other = copy.deepcopy(fields)
            if value is MISSING:
                del other[name]
            else:
                other[name] = value
            yield other
        if isinstance(name, str):
            yield {key + "s" * (key == name): value for key, value in fields.items()}


@pytest.mark.parametrize(("budget", "cost"), COSTS.values(), ids=COSTS)
def test_no_changed_field_of_a_charge_gives_budget_back(tmp_path, budget, cost):
    path = tmp_path / "ledger"
    with Ledger(**budget, path=path).spend(cost, times=2):
        pass
    header, line = path.read_text().splitlines()
    sound, refused, kept = left(Ledger.open(path)), 0, []
    fields = json.loads(line)
    for other in changed(fields):
        text = f"{header}\n{json.dumps(other)}\n"
        path.write_text(text)
        whole = json.dumps({**json.loads(header), "charges": [other]})
        for read in (lambda: Ledger.open(path), lambda whole=whole: Ledger.from_json(whole)):
            try:
                now = left(read())
            except ValueError:
                refused += 1
                continue
            assert path.read_text() == text
            assert all(mine <= before for mine, before in zip(now, sound, strict=True)), other
            kept.append(other)
    assert refused > 2 * len(kept) > 0


@every("times", [0, -1, 1.0, 0.5, True, None, "1", MISSING])
def test_times_that_are_not_a_positive_integer_are_refused(tmp_path, times):
    path = tmp_path / "ledger"
    open_ledger(path).release(MEDIAN, X)
    header, line = path.read_text().splitlines()
    fields = {name: value for name, value in {**json.loads(line), "times": times}.items() if value is not MISSING}
    path.write_text(f"{header}\n{json.dumps(fields)}\n")
    for read in (open_ledger, Ledger.open):
        with pytest.raises(ValueError, match=r"damaged.*times"):
            read(path)
    with pytest.raises(ValueError, match=r"damaged.*times"):
        Ledger.from_json(json.dumps({**json.loads(header), "charges": [fields]}))


def test_a_name_that_stands_twice_is_refused(tmp_path):
    path = tmp_path / "ledger"
    open_ledger(path).release(MEDIAN, X, size=3)
    path.write_text(path.read_text().replace('"times": 3', '"times": 3, "times": 1'))
    with pytest.raises(ValueError, match="stands twice"):
        open_ledger(path)


def test_no_release_and_costs_of_nothing(tmp_path):
    """What costs nothing is not in the file, or can be read again."""
    path = tmp_path / "ledger"
    ledger = open_ledger(path)
    ledger.release(MEDIAN, X, size=0)
    assert ledger.charges == ()
    with ledger.spend(Privacy(0.0)):
        pass
    for cost in (PrivacyProfile(Privacy(0.25), [("pure", 0.25, 0)]), PrivacyProfile(Privacy(0.0), [("pure", 0.25, 1)])):
        with pytest.raises(ValueError, match="positive, or all 0"), ledger.spend(cost):
            raise AssertionError
    assert [charge.profile.privacy.epsilon for charge in open_ledger(path).charges] == [0.0]


@pytest.mark.parametrize("written", [None, 2], ids=str)
def test_a_charge_for_other_units_or_neighbors_is_refused(tmp_path, written):
    path = tmp_path / "ledger"
    made = Ledger(2.0, **ADD_REMOVE, per_unit=3, path=path)
    cost = json.dumps(
        {"label": "mine", "times": 1, "epsilon": 0.25, "delta": 0.0, **ADD_REMOVE, "parts": [["pure", 0.25, 1]]}
        | ({} if written is None else {"per_unit": written})
    )
    path.write_text(f"{path.read_text()}{cost}\n", newline="\n")
    for read in (lambda: made.spent, lambda: Ledger.open(path)):
        with pytest.raises(ValueError, match=r"damaged.*per_unit"):
            read()
    other = tmp_path / "other"
    open_ledger(other)
    other.write_text(f"{other.read_text()}{cost}\n", newline="\n")
    with pytest.raises(ValueError, match=r"damaged.*neighbors must be 'replace-one'"):
        open_ledger(other)
