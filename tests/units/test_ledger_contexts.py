"""Ledgers in threads, tasks, processes and copies."""

import asyncio
import contextvars
import copy
import gc
import pickle
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import dpfast as dpf
from dpfast import BudgetError, Ledger, Privacy, local, noise
from dpfast.core import spending
from dpfast.core.foreign import active, blocks
from dpfast.core.spending import Ticket, known
from dpfast.ledger import ledger as ledgers
from dpfast.local import Randomizer
from tests.cases import every
from tests.forks import answer_of_child, needs_fork
from tests.releases import GRID, MEDIAN, B, X, in_thread
from tests.threads import in_threads
from tests.untouchable import Untouchable

ROOT = Path(__file__).parents[2]


STATE = MEDIAN.start().read([X])

# Whatever would have to be paid for, or be refused.
UNPAID = {
    "a call": lambda: MEDIAN(X),
    "a release": lambda: MEDIAN.release(X),
    "a function": lambda: dpf.median(X, **B),
    "groups": lambda: dpf.by_group(MEDIAN, X, labels=np.arange(100) % 7),
    "a state": STATE.release,
    "a report": lambda: local.Binary(0.25).randomize(np.zeros(4, np.int64)),
    "noise": lambda: noise.laplace(1.0),
    "a law": lambda: MEDIAN.law(X),
    "the law of a state": STATE.law,
}


class TestContexts:
    @every("name", UNPAID)
    def test_threads_without_the_ledger_are_refused(self, name):
        ledger = Ledger(1.0)
        with ThreadPoolExecutor(1) as before:
            before.submit(UNPAID[name]).result()
            with ledger:
                for start in (in_thread, lambda function: before.submit(function).result()):
                    with pytest.raises(BudgetError, match="active in another thread"):
                        start(UNPAID[name])
            before.submit(UNPAID[name]).result()
        assert ledger.charges == ()

    def test_threads_can_have_the_ledger(self):
        ledger = Ledger(1.0)

        def entered():
            with ledger:
                return MEDIAN(X)

        with ledger:
            in_thread(partial(ledger.release, MEDIAN, X))
            in_thread(partial(contextvars.copy_context().run, MEDIAN, X))
            in_thread(entered)
            with pytest.raises(BudgetError, match="active in another thread"):
                in_thread(partial(MEDIAN, X))
        assert ledger.spent.epsilon == 0.75

    def test_what_is_paid_as_a_whole_is_free_in_threads(self):
        """The workers of a release, and the threads of a block whose cost was declared."""
        ledger, threads = Ledger(1.0), set()

        class Seen(type(MEDIAN)):
            def values_of(self, x):
                threads.add(threading.get_ident())
                return super().values_of(x)

        with ledger:
            mechanism = Seen(MEDIAN.statistic, grid=GRID, epsilon=0.25, interpolate=True)  # without a kernel of groups
            dpf.by_group(mechanism, np.zeros(3000), labels=np.arange(3000), workers=2)
        assert threads
        assert threading.get_ident() not in threads
        assert ledger.spent.epsilon == 0.25
        with ledger.spend(Privacy(0.5)):
            in_thread(lambda: (noise.laplace(1.0), MEDIAN(X)))
        assert ledger.spent.epsilon == 0.75

    def test_a_ledger_that_is_not_active_refuses_no_release(self):
        ledger, free = Ledger(1.0), []

        class Both(type(MEDIAN)):
            def __call__(self, x, *, rng=None, workers=1):
                free.append(in_thread(partial(MEDIAN, X)))
                return free[-1]

        ledger.release(Both(MEDIAN.statistic, grid=GRID, epsilon=0.25), X)
        assert len(free) == 1
        assert ledger.spent.epsilon == 0.25

    @pytest.mark.parametrize("declared", [True, False])
    def test_a_task_that_outlives_its_payment_pays_itself_or_is_refused(self, declared):
        """One that an estimator started is refused, as all that an estimator releases."""
        ledger, tasks = Ledger(1.0), []

        async def later():
            await asyncio.sleep(0)
            return MEDIAN(X)

        def mean(x):
            if not tasks:
                tasks.append(asyncio.create_task(later()))
            return float(x.mean())

        async def main():
            if declared:
                with ledger.spend(Privacy(0.5)):
                    mean(X)
            else:
                ledger.release(dpf.SampleAndAggregate(mean, bounds=(0, 100), epsilon=0.5, blocks=1), X)
            await tasks[0]

        with nullcontext() if declared else pytest.raises(BudgetError, match="in the estimator of a block, is refused"):
            asyncio.run(main())
        assert ledger.spent.epsilon == (0.75 if declared else 0.5)

    def test_a_release_keeps_no_records(self):
        class Held(np.ndarray):
            pass

        x, collects = X.view(Held), gc.isenabled()
        seen = weakref.ref(x)
        gc.disable()
        try:
            with Ledger(1.0):
                MEDIAN(x)
                del x
                assert seen() is None  # without a search for cycles
        finally:
            if collects:
                gc.enable()

    def test_releases_that_a_source_of_chunks_makes_are_charged(self):
        ledger = Ledger(10.0)

        def opened():
            upper = dpf.quantile(X, 0.9, bounds=(0, 100), epsilon=1.0)
            return (np.minimum(part, upper) for part in (X, X))

        with ledger:
            MEDIAN(dpf.Chunks(opened))
        assert ledger.spent.epsilon == 0.25 + MEDIAN.start().passes
        with ledger.spend(Privacy(1.0)):
            MEDIAN(dpf.Chunks(opened))
        assert ledger.spent.epsilon == 1.25 + MEDIAN.start().passes

    def test_executors_and_older_tasks_of_asyncio_are_refused(self):
        ledger = Ledger(1.0)

        async def older(entered):
            await entered.wait()
            return MEDIAN(X)

        async def main():
            entered = asyncio.Event()
            task = asyncio.create_task(older(entered))
            await asyncio.sleep(0)
            with ledger:
                entered.set()
                with pytest.raises(BudgetError, match="another thread or task"):
                    await task
                with pytest.raises(BudgetError, match="another thread or task"):
                    await asyncio.get_running_loop().run_in_executor(None, MEDIAN, X)
                await asyncio.create_task(asyncio.to_thread(MEDIAN, X))

        asyncio.run(main())
        assert ledger.spent.epsilon == 0.25

    @needs_fork
    def test_a_child_that_another_thread_forked_is_refused(self):
        def refused():
            try:
                MEDIAN(X)
            except BudgetError:
                return True
            return False

        assert not in_thread(partial(answer_of_child, refused))  # without a ledger it releases
        with Ledger(1.0):
            assert in_thread(partial(answer_of_child, refused))

    @pytest.mark.parametrize("carried", [MEDIAN, local.Binary(0.25), STATE], ids=lambda c: type(c).__name__)
    def test_objects_sent_to_other_processes(self, tmp_path, carried):
        """Pickled inside a ledger it is charged to the file of the ledger, or refused."""
        neighbors = "local" if isinstance(carried, Randomizer) else "replace-one"
        in_memory = Ledger(1.0, neighbors=neighbors)
        in_file = Ledger(1.0, neighbors=neighbors, path=tmp_path / "ledger")
        outside = pickle.dumps(carried)
        with in_memory:
            refused, by_thread = pickle.dumps(carried), in_thread(partial(pickle.dumps, carried))
        with in_file:
            charged = pickle.dumps(carried)
        sent = [outside, refused, by_thread, charged]
        done = subprocess.run(
            [sys.executable, "-c", SENT], input=pickle.dumps(sent), cwd=ROOT, capture_output=True, check=True
        )
        assert done.stdout.decode().split() == ["released", "refused", "refused", "released"]
        assert in_memory.charges == ()
        assert in_file.spent.epsilon == 0.25

    def test_what_is_copied_in_a_ledger_is_equal_and_charged(self):
        ledger, other = Ledger(1.0), Ledger(1.0)
        with ledger:
            copies = [copy.copy(MEDIAN), copy.deepcopy(MEDIAN), pickle.loads(pickle.dumps(MEDIAN))]
        assert all(copied == MEDIAN and repr(copied) == repr(MEDIAN) for copied in copies)
        for copied in copies:
            copied(X)
        with other:
            copies[0](X)
        assert (ledger.spent.epsilon, other.spent.epsilon) == (0.75, 0.25)
        name = ledger._name
        pickled = pickle.dumps(copies)
        del ledger, copied, copies
        gc.collect()
        assert name not in known
        for copied in pickle.loads(pickled):
            with pytest.raises(BudgetError, match="cannot be charged from here"):
                copied(Untouchable())

    def test_threads_find_one_budget(self, monkeypatch):
        """Of copies that came from another process and are first used in several threads at once."""

        class Slow(dict):
            def __getitem__(self, key):  # the search in `setdefault`, which finds nothing in several threads
                try:
                    return super().__getitem__(key)
                except KeyError:
                    time.sleep(0.01)
                    raise

        monkeypatch.setattr(known, "data", Slow(known.data))
        tickets = [Ticket("of another process", (Ledger, (1.0,))) for _ in range(8)]
        budgets = in_threads(lambda i: tickets[i].budget())
        assert all(budget is budgets[0] for budget in budgets)

    def test_many_threads_neither_lose_nor_double_a_charge(self):
        ledger, refused = Ledger(100.0), []
        start = threading.Barrier(16)

        def work():
            start.wait()
            with ledger:
                for _ in range(50):
                    try:
                        MEDIAN(X)
                    except BudgetError:
                        refused.append(1)

        threads = [threading.Thread(target=work) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(ledger.charges) == 400
        assert len(refused) == 16 * 50 - 400
        assert ledger.spent.epsilon == 100.0

    def test_tasks_have_the_ledger_of_their_context(self):
        one, two = Ledger(1.0), Ledger(1.0)

        async def work(ledger, times):
            with ledger:
                for _ in range(times):
                    await asyncio.sleep(0)
                    await asyncio.to_thread(MEDIAN, X)

        async def both():
            await asyncio.gather(work(one, 2), work(two, 3))

        asyncio.run(both())
        assert (one.spent.epsilon, two.spent.epsilon) == (0.5, 0.75)


SENT = """
import pickle, sys
import numpy as np, dpfast as dpf

for sent in pickle.load(sys.stdin.buffer):
    carried = pickle.loads(sent)
    use = getattr(carried, "randomize", carried)
    try:
        carried.release() if hasattr(carried, "update") else use(np.zeros(4, np.int64))
        print("released")
    except dpf.BudgetError as error:
        assert "path=" in str(error)
        print("refused")
"""


class Interrupt:
    """Raises a KeyboardInterrupt at one of the places where CPython would, within the modules of blocks."""

    FILES = (ledgers.__file__, spending.__file__)

    def __init__(self, place):
        self.left = place

    def __call__(self, frame, event, _):
        if event in ("call", "c_return") and frame.f_code.co_filename in self.FILES:
            self.left -= 1
            if self.left == -1:
                sys.setprofile(None)
                raise KeyboardInterrupt


def interrupted(enter, place):
    """Return whether the block was entered, whether it is open afterwards, and whether there was such a place."""
    before, entered, interrupt = (active.get(), list(blocks), ledgers._entered.get()), False, Interrupt(place)
    try:
        with suppress(KeyboardInterrupt):
            sys.setprofile(interrupt)
            with enter():
                entered = True
    finally:
        sys.setprofile(None)
    after = active.get(), list(blocks), ledgers._entered.get()
    return entered, after != before, interrupt.left < 0, after


def test_an_interrupt_enters_or_leaves_no_block_by_half():
    """Those before a block has begun to be left let it open: what is released is charged."""
    ledger, open_ones = Ledger(1.0), 0
    for place in range(100):
        entered, still_open, there, after = interrupted(lambda: ledger, place)
        assert entered or not still_open
        if still_open:
            open_ones += 1
            assert after == (ledger, [ledger._name], ((ledger, None),))
            MEDIAN(X)
            assert len(ledger.charges) == open_ones
            ledger.__exit__()
        assert (active.get(), blocks, ledgers._entered.get()) == (None, [], ())
        if not there:
            break
    assert 10 < place < 99
    assert 1 <= open_ones <= 3


def test_an_interrupt_of_a_charge_pays_for_nothing_else():
    ledger = Ledger(100.0)
    with ledger:
        for place in range(1000):
            _, _, there, _ = interrupted(
                lambda: spending.spending(dpf.PrivacyProfile(Privacy(0.125)), label="a"), place
            )
            count = len(ledger.charges)
            MEDIAN(X)
            assert len(ledger.charges) == count + 1
            if not there:
                break
            active.set(ledger)
    assert 10 < place < 999


def test_a_call_is_charged_from_any_thread():
    """Unlike a block, it leaves releases of other threads alone."""
    ledger, started, done = dpf.Ledger(1), threading.Event(), threading.Event()

    def releases(epsilon):
        started.set()
        assert done.wait(10)
        return dpf.mean([1, 2, 3], bounds=(0, 9), epsilon=epsilon)

    found = []
    thread = threading.Thread(target=lambda: found.append(ledger.call(releases, epsilon=0.25)))
    thread.start()
    assert started.wait(10)
    dpf.mean([1, 2, 3], bounds=(0, 9), epsilon=5)  # free, in this thread
    done.set()
    thread.join()
    assert 0 <= found[0] <= 9
    assert ledger.spent.epsilon == 0.25
    with pytest.raises(BudgetError):
        ledger.call(releases, epsilon=0.8)
