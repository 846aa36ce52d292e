"""The secure bit generator in forked processes and interrupted threads."""

import functools
import os
import platform
import signal
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.kernel


# Forks. In processes of their own: Python warns of a fork where there are threads, and the test run may have some.

FORKS = """
    import ctypes, os, signal, threading, time
    import numpy as np
    from dpfast.errors import EntropyError
    from dpfast.random import SecureBitGenerator, secure_generator

    signal.alarm(240)  # a deadlock fails
    fork = {fork}

    def settle():  # let other threads block first: a child of libc's fork inherits the locks of one that wants the GIL
        time.sleep(0.3)

    def in_child(work):
        readable, writable = os.pipe()
        child = fork()
        if child == 0:
            signal.alarm(60)
            try:
                answer = work()
                os.write(writable, answer.tobytes())
            finally:
                os._exit(0)
        os.close(writable)
        with os.fdopen(readable, "rb") as pipe:
            answer = pipe.read()
        assert os.waitpid(child, 0)[1] == 0
        return np.frombuffer(answer, np.uint64)

    def disjoint(*parts):
        words = np.concatenate(parts)
        assert words.size > 0 and all(part.size for part in parts)
        assert np.unique(words).size == words.size
"""

SYSTEM_CALL = "lambda: ctypes.PyDLL(None).syscall(*map(ctypes.c_long, ({}, signal.SIGCHLD, 0, 0, 0, 0)))"
CLONE = {"x86_64": 56, "aarch64": 220}.get(platform.machine(), 0)
FORK_CALLS = {"os": "os.fork", "libc": "ctypes.PyDLL(None).fork", "system call": SYSTEM_CALL.format(CLONE)}

WIPES = """
    import mmap

    page = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    page.madvise(18)  # MADV_WIPEONFORK
    page[0] = 1
    if mmap.PAGESIZE == 4096 and in_child(lambda: np.array([page[0]], np.uint64))[0] == 0:
        print("wipes")
"""

WORDS_DIFFER = """
    for used in (0, 1, 5000, 8192):
        for first in (lambda s: s.random_raw(100), lambda s: s.random_raw(20000),
                      lambda s: np.array([s.random_raw() for _ in range(5)], np.uint64),
                      lambda s: np.random.Generator(s).integers(0, 2**64, 100, dtype=np.uint64)):
            source = SecureBitGenerator()
            before = source.random_raw(used)
            draw = lambda: np.concatenate([first(source), source.random_raw(20000)])
            children = [in_child(draw) for _ in range(2)]
            disjoint(*([before] if used else []), draw(), *children)
    generator = secure_generator()
    generator.random()
    draw = lambda: secure_generator().integers(0, 2**64, 100, dtype=np.uint64)
    disjoint(in_child(draw), draw())
    grandchild = lambda: np.concatenate([draw(), in_child(draw), draw()])
    disjoint(in_child(grandchild), draw())
"""

LOCK_IS_FREE = """
    source = SecureBitGenerator()
    held, done = threading.Event(), threading.Event()

    def hold():
        with source.lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    settle()
    child = in_child(lambda: source.random_raw(100))
    assert not source.lock.acquire(blocking=False)
    done.set()
    thread.join()
    disjoint(child, source.random_raw(100))

    def leave():
        words = source.random_raw(10)
        source.lock.release()
        try:
            source.lock.release()
        except RuntimeError:
            return words

    with source.lock:  # held by the thread that forks, which goes on in the child
        child = in_child(leave)
    disjoint(child, source.random_raw(100))
"""

THREADS_OF_A_CHILD = """
    source = SecureBitGenerator()
    source.random_raw(10)

    def start(work, count):
        threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def refused():  # the thread that forked holds the lock, and did not use it since
        taken = []
        start(lambda i: taken.append(source.lock.acquire(timeout=0.1)), 3)
        assert taken == [False] * 3
        return source.random_raw(10)

    with source.lock:
        child = in_child(refused)
    disjoint(child, source.random_raw(10))

    def together():  # the first acquisitions after the fork
        words, barrier = [], threading.Barrier(8)
        start(lambda i: (barrier.wait(), words.append([source.random_raw() for _ in range(100)])), 8)
        return np.array(words, np.uint64).reshape(-1)

    disjoint(in_child(together), together())
"""

CHILD_WITHOUT_ENTROPY = """
    source = SecureBitGenerator()
    source.random_raw(10)

    calls = []

    def fails(size):
        calls.append(size)
        raise OSError("gone")

    def starve():
        urandom = os.urandom
        os.urandom = fails
        for draw in (lambda: np.random.Generator(source).random(10**6), lambda: source.random_raw(10**6),
                     lambda: source.random_raw()):
            try:
                draw()
            except EntropyError:
                continue
            return np.empty(0, np.uint64)
        os.urandom = urandom
        assert len(calls) < 200  # one for each buffer, not for each word
        return source.random_raw(100)

    disjoint(in_child(starve), source.random_raw(10**4))
"""

FORK_IN_A_REFILL = """
    urandom = os.urandom

    def interrupted(size):  # as a signal handler that forks at the worst moment
        seed = urandom(size)
        if not child:
            child.append(None)
            child[0] = fork()
        return seed

    for draw in (lambda: np.array([source.random_raw()], np.uint64), lambda: source.random_raw(100),
                 lambda: source.random_raw(8192)):
        source = SecureBitGenerator()
        source.random_raw(2**21)
        readable, writable = os.pipe()
        child = []
        os.urandom = interrupted
        words = draw()
        if child[0] == 0:
            os.write(writable, words[:1000].tobytes())
            os._exit(0)
        os.urandom = urandom
        assert os.waitpid(child[0], 0)[1] == 0
        disjoint(words, np.frombuffer(os.read(readable, 8000), np.uint64))
"""


def run(script, fork):
    code = textwrap.dedent(FORKS).format(fork=fork) + script
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    return subprocess.run(command, check=True, timeout=300, stdout=subprocess.PIPE, text=True).stdout


@functools.cache
def kernel_wipes():
    """Whether the kernel wipes pages of children that the C library does not know of; some emulators do not."""
    try:
        return "wipes" in run(textwrap.dedent(WIPES), FORK_CALLS["system call"])
    except subprocess.CalledProcessError:
        return False


IDENTITY_TAKEN_AGAIN = """
    lock, held, done = SecureBitGenerator().lock, threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            done.wait()

    def enters(result):
        entered = lock.acquire(timeout=5)
        result.append(entered)
        if entered:
            lock.release()

    def fork_again(status):  # in a child that has not used the lock, from a thread with the identity of its holder
        if threading.get_ident() != holder.ident:
            return
        settle()
        if (pid := fork()) == 0:
            with lock:
                pass
            result = []
            other = threading.Thread(target=enters, args=(result,))
            other.start()
            other.join()
            os._exit(not result[0])
        status.append(os.waitpid(pid, 0)[1])

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    settle()
    if (pid := fork()) == 0:
        status = []
        for _ in range(50):
            thread = threading.Thread(target=fork_again, args=(status,))
            thread.start()
            thread.join()
            if status:
                break
        os._exit(any(status))  # where no thread gets the identity, nothing is tested
    assert os.waitpid(pid, 0)[1] == 0
    done.set()
    holder.join()
"""


SCRIPTS = {
    "words_differ": WORDS_DIFFER,
    "lock_is_free": LOCK_IS_FREE,
    "threads_of_a_child": THREADS_OF_A_CHILD,
    "identity_taken_again": IDENTITY_TAKEN_AGAIN,
    "child_without_entropy": CHILD_WITHOUT_ENTROPY,
    "fork_in_a_refill": FORK_IN_A_REFILL,
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("fork", FORK_CALLS.values(), ids=FORK_CALLS)
def test_fork(fork):
    """The scripts one after another in one process, each in a function that names it where it fails."""
    if fork == FORK_CALLS["system call"] and not kernel_wipes():
        pytest.skip("the kernel wipes no pages")
    run("\n".join(f"def {name}():\n{script}\n{name}()" for name, script in SCRIPTS.items()), fork)


UNKNOWN_FORKS = """
    source = SecureBitGenerator()
    seen = [source.random_raw(100)]

    def grow(depth):  # each process draws or not, forks twice, and draws again
        words = [source.random_raw(100)] if depth % 2 else []
        for _ in range(2 if depth else 0):
            words += [in_child(lambda: grow(depth - 1)), source.random_raw(100)]
        return np.concatenate(words or [source.random_raw(100)])

    seen.append(in_child(lambda: grow(3)))
    unknown, fork = fork, os.fork
    for make in (unknown, os.fork, unknown):  # a known fork in the middle
        seen.append(in_child(lambda: globals().update(fork=make) or grow(2)))
    seen.append(source.random_raw(20000))
    disjoint(*seen)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_generations_of_forks_that_the_c_library_does_not_know():
    """Also in turn with forks that it knows: no two processes of the tree share a word."""
    if not kernel_wipes():
        pytest.skip("the kernel wipes no pages")
    run(textwrap.dedent(UNKNOWN_FORKS), FORK_CALLS["system call"])


INTERRUPTED = """
    import signal, threading
    from dpfast.random import SecureBitGenerator

    class Interrupted(Exception):
        pass

    def interrupt(*_):
        raise Interrupted

    signal.signal(signal.SIGUSR1, interrupt)
    signal.alarm(240)
    lock, main, interrupted = SecureBitGenerator().lock, threading.get_ident(), 0
    for _ in range(200):
        held, waits = threading.Event(), threading.Event()

        def hold():
            with lock:
                held.set()
                waits.wait()
                threading.Event().wait(0.002)  # both others wait
            signal.pthread_kill(main, signal.SIGUSR1)

        def wait():
            with lock:
                pass

        threads = [threading.Thread(target=hold), threading.Thread(target=wait)]
        threads[0].start()
        held.wait()
        threads[1].start()
        try:
            waits.set()
            with lock:
                pass
            for _ in range(6000):  # a signal that comes just before a wait is handled after it
                threading.Event().wait(0.01)
        except Interrupted:
            interrupted += 1
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    assert interrupted == 200
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to a thread")
def test_an_interrupted_thread_leaves_its_signal_to_another():
    subprocess.run([sys.executable, "-c", textwrap.dedent(INTERRUPTED)], check=True, timeout=300)
