"""The secure bit generator, and the sources of randomness derived from ``rng``."""

import contextlib
import copy
import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64
from scipy.stats import chi2

import dpfast as dpf
from dpfast import random
from dpfast._kernels import _samplers, _secure
from dpfast.errors import EntropyError
from dpfast.random import SecureBitGenerator, secure_generator
from tests.cases import every
from tests.central import central, outcome, same, shaped
from tests.scripted import ScriptedBits

pytestmark = pytest.mark.kernel

ALPHA = 1e-9

BUFFER = 2**13  # words
KEY = 2**21  # words drawn under one key
SEEDS = [bytes(range(i, i + 48)) for i in range(3)]


class Entropy:
    """Takes the place of ``os.urandom``: gives copies of known seeds, kept so that a test sees them wiped."""

    def __init__(self):
        self.given = []

    def __call__(self, size):
        assert size == 48
        self.given.append(bytes(bytearray(SEEDS[len(self.given)])))
        return self.given[-1]


class NoEntropy:
    """Takes the place of ``os.urandom`` and always fails."""

    def __init__(self, error):
        self.error = error
        self.calls = 0

    def __call__(self, size):
        self.calls += 1
        raise self.error


def keystream(seed, words):
    encryptor = Cipher(AES256(seed[:32]), CTR(seed[32:44] + b"\0\0\0\2")).encryptor()
    return np.frombuffer(encryptor.update(bytes(8 * words)), "<u8")


KEYSTREAM = keystream(SEEDS[0], 6 * BUFFER)


@pytest.fixture
def entropy(monkeypatch):
    entropy = Entropy()
    monkeypatch.setattr(os, "urandom", entropy)
    return entropy


def at_the_end_of_its_key():
    source = SecureBitGenerator()
    source.random_raw(KEY, output=False)
    return source


# The stream


def test_known_answer(entropy):
    np.testing.assert_array_equal(SecureBitGenerator().random_raw(3 * BUFFER), KEYSTREAM[: 3 * BUFFER])


def test_shapes_of_random_raw(entropy):
    source = SecureBitGenerator()
    assert source.random_raw() == KEYSTREAM[0]
    assert type(source.random_raw()) is int
    np.testing.assert_array_equal(source.random_raw((2, 3)), KEYSTREAM[2:8].reshape(2, 3))
    assert source.random_raw(output=False) is None
    assert source.random_raw(4, output=False) is None
    assert source.random_raw(0).shape == (0,)
    assert source.random_raw((3, 0)).shape == (3, 0)
    assert source.random_raw() == KEYSTREAM[13]


def test_functions_of_the_interface(entropy):
    source = SecureBitGenerator()
    interface = source.ctypes
    assert interface.next_uint64(interface.state) == KEYSTREAM[0]
    assert interface.next_uint32(interface.state) == KEYSTREAM[1] >> 32
    assert interface.next_double(interface.state) == (KEYSTREAM[2] >> 11) * 2.0**-53
    assert source.random_raw() == KEYSTREAM[3]


READ = {
    "bulk": lambda source, n: source.random_raw(n),
    "words": lambda source, n: np.array([source.random_raw() for _ in range(n % 50)], np.uint64),
    "doubles": lambda source, n: np.random.Generator(source).random(n),
}


@given(st.lists(st.tuples(st.sampled_from(sorted(READ)), st.integers(0, 3 * BUFFER)), max_size=8))
@settings(max_examples=50)
def test_every_way_of_reading_is_the_same_stream(reads):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", Entropy())
        source = SecureBitGenerator()
    at = 0
    expected = keystream(SEEDS[0], 8 * 3 * BUFFER)
    for kind, n in reads:
        got = READ[kind](source, n)
        words = expected[at : at + got.size]
        np.testing.assert_array_equal(got, (words >> 11) * 2.0**-53 if kind == "doubles" else words)
        at += got.size


def test_fill(entropy):
    out = np.zeros(2 * BUFFER + 5, np.uint64)
    source = SecureBitGenerator()
    source.fill(out[:0])
    source.fill(out)
    np.testing.assert_array_equal(out, KEYSTREAM[: out.size])
    with pytest.raises(ValueError, match="contiguous"):
        source.fill(out[::2])
    with pytest.raises(ValueError, match="dtype mismatch"):
        source.fill(np.zeros(3))


def test_kernels_that_read_in_bulk_and_word_by_word_share_the_stream(entropy):
    source, scripted = SecureBitGenerator(), ScriptedBits(KEYSTREAM)
    for n in (1, BUFFER, 3, BUFFER + 1):
        got, expected = np.empty((2, n), np.int64)
        _samplers.fill_rounded_laplace(source, 2.0**40, got)
        _samplers.fill_rounded_laplace(scripted, 2.0**40, expected)
        np.testing.assert_array_equal(got, expected)
        got, expected = np.empty((2, 5), np.uint64)
        _samplers.fill_uniform(source, 9, got)
        _samplers.fill_uniform(scripted, 9, expected)
        np.testing.assert_array_equal(got, expected)
    assert source.random_raw() == KEYSTREAM[scripted.used]


def test_a_kernel_that_reads_in_bulk_reports_missing_entropy(monkeypatch):
    source = at_the_end_of_its_key()
    monkeypatch.setattr(os, "urandom", NoEntropy(OSError("gone")))
    with pytest.raises(EntropyError):
        _samplers.fill_rounded_laplace(source, 1.0, np.empty(10, np.int64))


@pytest.mark.parametrize("read", ["bulk", "doubles"])
def test_a_key_is_replaced_after_16_mebibytes(entropy, read):
    source = SecureBitGenerator()
    READ[read](source, KEY - 1)
    assert len(entropy.given) == 1
    got = source.random_raw(BUFFER)
    assert len(entropy.given) == 2
    assert got[0] == keystream(SEEDS[0], KEY)[-1]
    np.testing.assert_array_equal(got[1:], keystream(SEEDS[1], BUFFER - 1))


@pytest.mark.parametrize("mode", [_secure.gcm, CTR], ids=["GCM", "CTR"])
def test_words_do_not_depend_on_the_mode_of_the_cipher(monkeypatch, entropy, mode):
    monkeypatch.setattr(_secure, "mode", mode)
    source = SecureBitGenerator()
    words = [source.random_raw(size) for size in (3, 2 * BUFFER, KEY - 3)]
    expected = [keystream(SEEDS[0], KEY), keystream(SEEDS[1], 2 * BUFFER)]
    np.testing.assert_array_equal(np.concatenate(words), np.concatenate(expected))


def test_key_material_is_wiped(entropy):
    source = SecureBitGenerator()
    assert entropy.given == [bytes(48)]
    source.random_raw(KEY + 1, output=False)
    assert entropy.given == [bytes(48)] * 2
    assert SEEDS[0] != bytes(48)


def test_numpy_generator():
    generator = np.random.Generator(SecureBitGenerator())
    assert ((x := generator.random(1000)) >= 0).all()
    assert (x < 1).all()
    assert set(generator.integers(0, 6, 1000).tolist()) == set(range(6))
    assert np.isfinite(generator.normal(size=1000)).all()
    items = np.arange(1000)
    generator.shuffle(items)
    assert sorted(items.tolist()) == list(range(1000))
    assert "SecureBitGenerator" in repr(generator)
    assert "SecureBitGenerator" in repr(generator.bit_generator)


def looks_random(words):
    """Two tests, each at level ALPHA: are bytes uniform, and is no word repeated (2**17 words: probability 2**-31)?"""
    counts = np.bincount(words.view(np.uint8), minlength=256)
    statistic = ((counts - words.size / 32) ** 2).sum() / (words.size / 32)
    return statistic < chi2.isf(ALPHA, 255), np.unique(words).size == words.size


def test_statistical_sanity():
    words = SecureBitGenerator().random_raw(2**17)
    assert looks_random(words) == (True, True)
    assert looks_random(np.tile(words[:BUFFER], 16)) == (False, False)


# Entropy fails


@pytest.mark.parametrize("error", [OSError("gone"), NotImplementedError("no source")])
def test_no_entropy_at_construction(monkeypatch, error):
    monkeypatch.setattr(os, "urandom", NoEntropy(error))
    with pytest.raises(EntropyError, match="nothing was released") as caught:
        SecureBitGenerator()
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("answer", [b"\x07", b"", bytes(47), bytearray(48)])
def test_bad_seeds(monkeypatch, answer):
    monkeypatch.setattr(os, "urandom", lambda size: answer)
    with pytest.raises(EntropyError, match="nothing was released"):
        SecureBitGenerator()
    assert b"\x07"[0] == 7  # Python shares the bytes of length 1: wiping them would change them everywhere


DRAWS = {
    "random": lambda generator: generator.random(10**5),
    "random, float32": lambda generator: generator.random(10**5, dtype=np.float32),
    "random, one": lambda generator: generator.random(),
    "random, out": lambda generator: generator.random(out=np.empty(10**5)),
    "integers": lambda generator: generator.integers(0, 6, 10**5),
    "integers, one": lambda generator: generator.integers(0, 6),
    "integers, 64 bits": lambda generator: generator.integers(0, 2**63 - 1, 10**5),
    "integers, uint8": lambda generator: generator.integers(0, 200, 10**5, dtype=np.uint8),
    "normal": lambda generator: generator.normal(size=10**5),
    "exponential": lambda generator: generator.exponential(size=10**5),
    "gamma": lambda generator: generator.gamma(0.5, size=10**5),
    "gamma, large": lambda generator: generator.gamma(7.0, size=10**5),
    "poisson": lambda generator: generator.poisson(50, size=10**5),
    "binomial": lambda generator: generator.binomial(10**4, 0.5, size=10**5),
    "vonmises": lambda generator: generator.vonmises(0, 1, size=10**5),
    "zipf": lambda generator: generator.zipf(2.0, size=10**5),
    "hypergeometric": lambda generator: generator.hypergeometric(50, 50, 20, size=10**5),
    "dirichlet": lambda generator: generator.dirichlet([0.05, 0.05], size=10**4),
    "multinomial": lambda generator: generator.multinomial(100, [0.5, 0.5], size=10**4),
    "choice": lambda generator: generator.choice(100, 50, replace=False),
    "permutation": lambda generator: generator.permutation(100),
    "shuffle": lambda generator: generator.shuffle(np.arange(100)),
    "permuted": lambda generator: generator.permuted(np.arange(100)),
    "bytes": lambda generator: generator.bytes(100),
    "random_raw": lambda generator: generator.bit_generator.random_raw(10**5),
    "random_raw, few": lambda generator: generator.bit_generator.random_raw(10),
    "random_raw, one": lambda generator: generator.bit_generator.random_raw(),
    "random_raw, nothing": lambda generator: generator.bit_generator.random_raw(10, output=False),
    "fill": lambda generator: generator.bit_generator.fill(np.empty(10, np.uint64)),
}


@every("draw", [pytest.param(case, id=label) for label, case in DRAWS.items()])
def test_no_entropy_in_a_loop(monkeypatch, draw):
    generator = np.random.Generator(at_the_end_of_its_key())
    error = OSError("gone")
    with monkeypatch.context() as patch:
        patch.setattr(os, "urandom", NoEntropy(error))
        for _ in range(2):
            with pytest.raises(EntropyError, match="nothing was released") as caught:
                draw(generator)
            assert caught.value.__cause__ is error
    draw(generator)
    assert looks_random(generator.bit_generator.random_raw(2**14)) == (True, True)


def test_no_entropy_in_the_middle_of_a_loop(monkeypatch):
    source = SecureBitGenerator()
    source.random_raw(KEY - 5 * 10**5, output=False)
    entropy = NoEntropy(OSError("gone"))
    monkeypatch.setattr(os, "urandom", entropy)
    with pytest.raises(EntropyError, match="nothing was released"):
        np.random.Generator(source).random(10**6)
    assert entropy.calls > 1  # each refill of the loop tried again


def test_an_interrupt_in_a_refill_stays_an_interrupt(monkeypatch):
    generator = np.random.Generator(at_the_end_of_its_key())
    monkeypatch.setattr(os, "urandom", NoEntropy(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        generator.random(10)


def test_a_nested_exit_does_not_take_the_error_of_the_outer_one(monkeypatch):
    """Code that draws in a refill may swallow its error; the loop around it holds placeholders all the same."""
    source = at_the_end_of_its_key()
    urandom = os.urandom
    calls = []

    def interrupted(size):
        calls.append(size)
        if len(calls) == 1:
            raise OSError("gone")
        if len(calls) == 2:
            with pytest.raises(EntropyError, match="nothing was released"):
                source.random_raw()
        return urandom(size)

    monkeypatch.setattr(os, "urandom", interrupted)
    with pytest.raises(EntropyError, match="nothing was released"):
        np.random.Generator(source).random(BUFFER + 1)
    assert len(calls) == 3
    source.random_raw()


def test_without_the_lock_an_error_waits_for_the_next_exit(monkeypatch):
    source = at_the_end_of_its_key()
    interface = source.ctypes
    with monkeypatch.context() as patch:
        patch.setattr(os, "urandom", NoEntropy(OSError("gone")))
        assert interface.next_uint64(interface.state) == 0
    with pytest.raises(EntropyError, match="nothing was released"):
        source.random_raw()
    source.random_raw()


def test_the_exit_raises_after_any_error_inside(monkeypatch):
    generator = np.random.Generator(at_the_end_of_its_key())
    interface = generator.bit_generator.ctypes
    monkeypatch.setattr(os, "urandom", NoEntropy(OSError("gone")))
    with pytest.raises(EntropyError, match="nothing was released") as caught, generator.bit_generator.lock:  # noqa: PT012
        interface.next_uint64(interface.state)
        raise ValueError("a result was checked")
    assert isinstance(caught.value.__context__, ValueError)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(generator.bit_generator.lock.acquire, blocking=False).result()


def test_code_that_runs_in_a_refill_may_draw(monkeypatch):
    """A signal handler or a finalizer may run in the middle of a refill and draw from the same generator."""
    source = at_the_end_of_its_key()
    urandom = os.urandom
    inside = []

    def interrupted(size):
        if not inside:
            inside.append(None)
            inside[:] = source.random_raw(10).tolist()
        return urandom(size)

    monkeypatch.setattr(os, "urandom", interrupted)
    outside = source.random_raw(100).tolist()
    assert len(set(inside + outside)) == 110


def test_code_that_runs_after_a_refill_may_draw(monkeypatch):
    """As above, when the keystream is in the buffer already: the words drawn inside must not be given again."""
    inside = []

    class Interrupted:
        def __init__(self, *arguments):
            self.cipher = Cipher(*arguments).encryptor()

        def encryptor(self):
            return self

        def update_into(self, data, out):
            count = self.cipher.update_into(data, out)
            if not inside:
                inside.append(None)
                inside[:] = source.random_raw(10).tolist()
            return count

    monkeypatch.setattr(_secure, "Cipher", Interrupted)
    source = SecureBitGenerator()
    outside = source.random_raw(100).tolist()
    assert len(set(inside + outside)) == 110


# The lock


def test_the_lock_is_reentrant_and_knows_its_holder():
    lock = SecureBitGenerator().lock
    with lock, lock:
        assert lock.acquire()
        lock.release()
        with ThreadPoolExecutor(1) as pool:
            assert not pool.submit(lock.acquire, blocking=False).result()
            assert not pool.submit(lock.acquire, timeout=0.01).result()
            with pytest.raises(RuntimeError, match="release"):
                pool.submit(lock.release).result()
    with pytest.raises(RuntimeError, match="release"):
        lock.release()


def test_one_thread_at_a_time_holds_the_lock():
    """Threads that wait are woken; the control does the same without the lock."""
    lock = SecureBitGenerator().lock
    inside = overlaps = 0

    def enter(_):
        nonlocal inside, overlaps
        with lock:
            inside += 1
            time.sleep(1e-6)  # gives way to another thread
            overlaps += inside != 1
            inside -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(enter, range(2000)))
        assert (inside, overlaps) == (0, 0)
        with lock:
            waiting = [pool.submit(lock.acquire, timeout=0.05) for _ in range(4)]
            assert not any(future.result() for future in waiting)
        assert pool.submit(lambda: lock.acquire() and lock.release() is None).result(timeout=10)
    lock = contextlib.nullcontext()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(enter, range(2000)))
    assert overlaps


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"blocking": False, "timeout": 1}, ValueError),
        ({"timeout": -2}, ValueError),
        ({"timeout": 1e30}, OverflowError),
    ],
)
def test_the_lock_rejects_what_an_rlock_rejects(options, error):
    for lock in (SecureBitGenerator().lock, threading.RLock()):
        with pytest.raises(error):
            lock.acquire(**options)


def test_another_thread_cannot_take_the_error(monkeypatch):
    source = at_the_end_of_its_key()
    monkeypatch.setattr(os, "urandom", NoEntropy(OSError("gone")))
    source.lock.acquire()
    source.ctypes.next_uint64(source.ctypes.state)
    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="release"):
        pool.submit(source.lock.release).result()
    with pytest.raises(EntropyError, match="nothing was released"):
        source.lock.release()


def test_the_lock_outlives_its_generator():
    lock = SecureBitGenerator().lock
    with lock:
        pass


def test_threads_share_one_instance():
    source = SecureBitGenerator()
    generator = np.random.Generator(source)

    def draw(_):
        return [source.random_raw(100), generator.integers(0, 2**64, 50, dtype=np.uint64)]

    with ThreadPoolExecutor(4) as pool:
        words = np.concatenate([part for parts in pool.map(draw, range(500)) for part in parts])
    assert np.unique(words).size == words.size == 75_000


# No state


@pytest.mark.parametrize(
    "use", [copy.copy, copy.deepcopy, pickle.dumps, lambda source: pickle.dumps(np.random.Generator(source))]
)
def test_no_pickle_and_no_copy(use):
    with pytest.raises(TypeError, match="a SecureBitGenerator has no state to pickle"):
        use(SecureBitGenerator())


def test_no_state():
    source = SecureBitGenerator()
    with pytest.raises(AttributeError, match="no state to read"):
        source.state  # noqa: B018
    with pytest.raises(AttributeError, match="no state to set"):
        source.state = {}
    with pytest.raises(TypeError, match="no state to pickle"):
        source.__getstate__()
    with pytest.raises(TypeError, match="no state to set"):
        source.__setstate__({})
    with pytest.raises(AttributeError, match="no seed sequence"):
        source.seed_seq  # noqa: B018
    for parent in (source, np.random.Generator(source)):
        with pytest.raises(TypeError, match="no seed to spawn from"):
            parent.spawn(2)
    with pytest.raises(TypeError, match="argument"):
        SecureBitGenerator(1)
    with pytest.raises(TypeError, match="argument"):
        SecureBitGenerator(seed=1)


# Which source


def test_one_secure_generator_for_each_thread():
    assert secure_generator() is secure_generator()
    assert isinstance(secure_generator().bit_generator, SecureBitGenerator)
    found = []
    thread = threading.Thread(target=lambda: found.extend([secure_generator(), secure_generator().random(100)]))
    thread.start()
    thread.join()
    assert found[0] is not secure_generator()
    assert found[0].bit_generator is not secure_generator().bit_generator
    assert not np.isin(found[1], secure_generator().random(100)).any()


def test_a_thread_without_entropy_may_ask_again(monkeypatch):
    def ask():
        with monkeypatch.context() as patch:
            patch.setattr(os, "urandom", NoEntropy(OSError("gone")))
            with pytest.raises(EntropyError, match="nothing was released"):
                secure_generator()
        return secure_generator().random()

    with ThreadPoolExecutor(1) as pool:
        assert 0 <= pool.submit(ask).result() < 1


def test_bit_generator():
    assert random.bit_generator(None) is secure_generator().bit_generator
    source = np.random.PCG64(1)
    assert random.bit_generator(source) is source
    assert random.bit_generator(np.random.Generator(source)) is source


@every("rng", [0, 1.5, "seed", np.random.RandomState(1), np.random, np.random.PCG64, object()])
@every("use", [random.bit_generator, lambda rng: random.streams(rng, 2)])
def test_bad_sources(use, rng):
    with pytest.raises(TypeError, match=r"rng must be None .*numpy\.random\.default_rng\(seed\)"):
        use(rng)


@pytest.mark.parametrize("source", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_streams_are_reproducible(source):
    def draw(order):
        rng = np.random.Generator(source(5))
        calls = [random.streams(rng, 4), random.streams(rng, 4)]
        words = {(call, block): calls[call][block].random_raw(3).tolist() for call in (1, 0) for block in order}
        return [words[call, block] for call in (0, 1) for block in range(4)]

    words = draw([0, 1, 2, 3])
    assert words == draw([3, 1, 0, 2])
    assert len({word for block in words for word in block}) == 24


def test_streams_known_answer():
    rng = np.random.PCG64(5)
    entropy = sum(int(word) << (64 * i) for i, word in enumerate(np.random.PCG64(5).random_raw(4)))
    expected = np.random.PCG64(np.random.SeedSequence(entropy, spawn_key=(7,)))
    assert random.streams(rng, 8)[7].state == expected.state


@pytest.mark.parametrize("rng", [None, np.random.default_rng(1), SecureBitGenerator()])
def test_streams_are_made_when_asked_for(rng):
    many = random.streams(rng, 10**12)
    assert len(many) == 10**12
    assert many[10**12 - 1].random_raw() != many[0].random_raw()
    for outside in (-1, 10**12):
        with pytest.raises(IndexError, match="of 1000000000000"):
            many[outside]
    assert len(list(random.streams(rng, 3))) == 3
    assert list(random.streams(rng, 0)) == []


@pytest.mark.parametrize("rng", [None, SecureBitGenerator()])
def test_streams_of_a_secure_source_belong_to_the_thread(rng):
    blocks = random.streams(rng, 2)
    assert blocks[0] is blocks[1] is random.bit_generator(None)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(blocks.__getitem__, 1).result()
    assert isinstance(other, SecureBitGenerator)
    assert other is not blocks[1]


class Once(PCG64):
    """A seeded generator whose lock is that of NumPy before 2.4: a thread cannot enter it twice."""

    def __init__(self, seed):
        super().__init__(seed)
        self.lock_of_old = threading.Lock()

    lock = property(lambda self: self.lock_of_old)


def quartiles_of_groups(generator):
    """With other seeds: few draws ask for words that enter the lock."""
    made = np.random.default_rng(0)
    x, labels = made.normal(50, 20, 400), made.integers(0, 4, 400)
    mechanism = dpf.Quantiles([0.25, 0.75], grid=dpf.Grid(0, 100, step=1), epsilon=0.5)
    return [dpf.by_group(mechanism, x, labels=labels, num_groups=4, rng=generator(seed)) for seed in range(20)]


def test_no_release_enters_a_lock_twice(monkeypatch):
    """In a thread of its own, which would wait for ever. Control: what enters it twice is found."""
    groups = quartiles_of_groups(PCG64)
    monkeypatch.setattr(random, "PCG64", Once)  # of blocks of groups

    def run():
        for mechanism in central(dpf.Grid(0, 100, step=1)):
            x = shaped(mechanism, np.arange(500) % 50)
            for seed in range(2):
                one, other = (outcome(mechanism, x, rng=rng(seed)) for rng in (Once, PCG64))
                assert same(one, other), mechanism
        assert np.array_equal(quartiles_of_groups(Once), groups)
        done.append(True)

    def twice():
        rng = Once(1)
        with rng.lock:
            _samplers.fill_words(rng, np.empty(1, np.uint64))
        done.append(False)

    done = []
    for wait, call in ((120, run), (1, twice)):
        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        thread.join(wait)
    assert done == [True]
