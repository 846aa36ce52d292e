"""The default source of randomness: a NumPy bit generator on an AES-256-CTR keystream keyed by the operating system.

Serves ``dpfast/random.py``. The design and its proofs are in ``docs/proofs/secure-bit-generator.md``.
"""

import os
import threading
from time import monotonic

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR, GCM
from numpy.random.bit_generator import SeedlessSeedSequence

from dpfast.errors import EntropyError

cimport cython
from cpython.buffer cimport PyBUF_WRITE
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.exc cimport PyErr_CheckSignals
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.pythread cimport (
    NOWAIT_LOCK,
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_free_lock,
    PyThread_release_lock,
    PyThread_type_lock,
)
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy
from numpy.random.bit_generator cimport BitGenerator


cdef extern from "pythread.h" nogil:
    int PyThread_acquire_lock_timed(PyThread_type_lock lock, long long microseconds, int interruptible)


cdef extern from "secure.h" nogil:
    enum:
        SECURE_WORDS
    ctypedef struct secure_stream:
        uint64_t *words
        size_t next
        uint64_t generation
        void (*refill)(void *owner) noexcept nogil
        void *owner
    uint64_t secure_generation()
    bint secure_survived(uint64_t thread, uint64_t generation)
    uint64_t secure_thread()
    uint64_t secure_load(uint64_t *number)
    void secure_store(uint64_t *number, uint64_t value)
    bint secure_try(uint64_t *lock)
    bint secure_try_awaited(uint64_t *lock)
    bint secure_free(uint64_t *lock)
    int secure_watch_forks()
    bint secure_gcm_is_fast()
    void secure_wipe(void *memory, size_t size)
    uint64_t secure_uint64(void *state)
    uint32_t secure_uint32(void *state)
    double secure_double(void *state)
    uint64_t secure_placeholders(uint64_t *words, uint64_t last)


if secure_watch_forks() != 0:
    raise MemoryError("pthread_atfork failed: forks would go unnoticed")

# The modes add the keystream to their input.
cdef bytes ZEROS = bytes(SECURE_WORDS * sizeof(uint64_t))

cdef Py_ssize_t KEY_BYTES = 32
cdef Py_ssize_t NONCE_BYTES = 12
cdef Py_ssize_t SEED_BYTES = 48  # the key and the first counter, which is the nonce and the number 2 in four bytes


def gcm(counter):
    """The mode whose keystream is that of ``CTR(counter)``, for a counter of the number 2 after the nonce."""
    return GCM(counter[:NONCE_BYTES])


mode = gcm if secure_gcm_is_fast() else CTR

# A key is used for 256 buffers, 16 MiB or 2**20 AES blocks; a new key takes 10 us, 1 % of the time of its words.
cdef int BUFFERS_PER_KEY = 256


@cython.final
cdef class Keystream:
    """The keystream of a `SecureBitGenerator` and the lock that guards it.

    One object is both, so that leaving the lock can raise `EntropyError` if a word drawn under it was not random. The
    lock is reentrant and has the methods of `threading.RLock`.

    **Law** Words are independent and uniform, up to the distinguishability of AES-256 from a random permutation; see
    `SecureBitGenerator`.

    **Assumes** Words are drawn by the thread that holds the lock (not checked; numpy and the kernels of dpfast do).

    **Cost** 10 us for a key, 0.4 ns for a word, without VAES and AVX-512 0.9; 60 ns to enter and leave the lock, of
    which Python's ``with`` takes 58; half as much as for an RLock.

    **Reference** NIST SP 800-38A, 6.5 (CTR mode).
    """

    cdef secure_stream stream
    cdef object view  # the buffer as a Python object, to which the cipher writes
    cdef object encryptor  # None: no key, the next refill draws one
    cdef int buffers_left
    cdef uint64_t turn  # the number of requests to the cipher
    cdef uint64_t placeholder
    cdef object error  # the error of a refill, until the lock raises it
    cdef uint64_t lock
    cdef PyThread_type_lock signal  # of the thread that leaves the lock, for one that waits
    cdef uint64_t lock_generation
    cdef uint64_t holder  # the thread that holds the lock, 0 if none; written by it alone, and by a child's first entry
    cdef Py_ssize_t depth  # the entries of the holder

    def __cinit__(self):
        self.stream.words = <uint64_t *>calloc(SECURE_WORDS, sizeof(uint64_t))
        if self.stream.words == NULL:
            raise MemoryError("no memory for the buffer of a SecureBitGenerator")
        self.stream.next = SECURE_WORDS
        self.stream.refill = refill
        self.stream.owner = <void *>self
        self.stream.generation = secure_generation()
        self.view = view_of(self.stream.words)
        self.signal = new_signal()
        self.lock_generation = self.stream.generation
        try:
            self.draw_key()
        except Exception as error:
            raise entropy_error() from error

    def __dealloc__(self):
        if self.signal != NULL:
            PyThread_free_lock(self.signal)
        if self.stream.words != NULL:
            secure_wipe(self.stream.words, SECURE_WORDS * sizeof(uint64_t))
            free(self.stream.words)

    # The stream

    cdef int draw_key(self) except -1:
        cdef bytes seed
        self.encryptor = None  # drops the old context, which OpenSSL cleanses; a failure leaves no key
        self.discard()
        seed = os.urandom(SEED_BYTES)
        # The check also keeps what is written below away from bytes objects that Python shares, of length 0 and 1.
        if len(seed) != SEED_BYTES:
            raise OSError(f"os.urandom({SEED_BYTES}) returned {len(seed)} bytes")
        try:
            # Writing to this bytes object is safe: it is not shared, and OpenSSL has expanded the key when it is wiped.
            memcpy(PyBytes_AS_STRING(seed) + KEY_BYTES + NONCE_BYTES, b"\0\0\0\2", 4)
            secret = memoryview(seed)
            self.encryptor = Cipher(AES256(secret[:KEY_BYTES]), mode(secret[KEY_BYTES:])).encryptor()
        finally:
            secure_wipe(PyBytes_AS_STRING(seed), SEED_BYTES)
        self.buffers_left = BUFFERS_PER_KEY
        return 0

    cdef void discard(self) noexcept:
        """Discard the words that are still in the buffer."""
        secure_wipe(self.stream.words, SECURE_WORDS * sizeof(uint64_t))
        self.stream.next = SECURE_WORDS

    cdef int write(self, object destination) except -1:
        """Write the next `SECURE_WORDS` words of keystream to `destination`, under a key of this process.

        The calls below may run other Python code (a signal handler, a finalizer), which may draw from this very stream
        or fork. Then the words written may already have been used, or be known to two processes: they are rewritten.
        """
        cdef uint64_t turn, generation
        while True:
            self.turn += 1
            turn = self.turn
            generation = secure_generation()
            if self.encryptor is None or self.buffers_left == 0 or self.stream.generation != generation:
                self.draw_key()
                self.stream.generation = generation
            self.buffers_left -= 1
            if self.encryptor.update_into(ZEROS, destination) != len(ZEROS):
                raise OSError("the cipher wrote less than it was asked for")
            if turn == self.turn and generation == secure_generation():
                return 0

    cdef void refill(self) noexcept:
        """Fill the buffer; without randomness, fill it with placeholders and record the error."""
        try:
            self.write(self.view)
        except BaseException as error:
            if self.error is None:
                self.error = error
            self.encryptor = None  # the next refill starts with a new key
            self.stream.generation = secure_generation()
            self.placeholder = secure_placeholders(self.stream.words, self.placeholder)
        self.stream.next = 0

    cdef int fill(self, uint64_t *out, size_t n) except -1:
        """Copy the next `n` words to `out`: those of the buffer first, whole buffers straight from the cipher.

        Raises the error of the cipher; then `out` is unspecified.
        """
        cdef secure_stream *stream = &self.stream
        cdef size_t count
        while n > 0:
            if stream.generation != secure_generation():
                self.discard()
            count = min(n, SECURE_WORDS - stream.next)
            if count > 0:
                memcpy(out, stream.words + stream.next, count * sizeof(uint64_t))
                stream.next += count
            elif n >= SECURE_WORDS:
                count = SECURE_WORDS
                self.write(view_of(out))
            else:
                self.write(self.view)
                stream.next = 0
            out += count
            n -= count
        return 0

    # The lock

    cdef int renew_lock(self) except -1:
        """In a child, free a lock held by a thread of the parent that does not exist here, and so would not release it.

        The signal of the parent is in an unknown state: it is left behind, not freed. A free-threaded interpreter
        suspends the section only where its thread waits or runs Python code: nowhere.
        """
        with cython.critical_section(self):
            if self.lock_generation != secure_generation():
                self.signal = new_signal()
                if not secure_survived(self.holder, self.lock_generation):
                    secure_store(&self.holder, 0)
                    secure_store(&self.lock, 0)
                secure_store(&self.lock_generation, secure_generation())
        return 0

    cdef bint enter(self, long long microseconds) except -1:
        """Enter the lock; wait for at most so long for another thread, without end if it is negative."""
        cdef uint64_t thread = secure_thread()
        if secure_load(&self.lock_generation) != secure_generation():
            self.renew_lock()
        if secure_load(&self.holder) == thread:
            self.depth += 1
            return True
        if not secure_try(&self.lock) and not (microseconds and self.wait(microseconds)):
            return False
        self.depth = 1
        secure_store(&self.holder, thread)
        return True

    cdef bint wait(self, long long microseconds) except -1:
        """Wait for a lock that another thread holds. Signal handlers run meanwhile; they may fork."""
        cdef long long left = microseconds
        cdef double end = monotonic() + microseconds * 1e-6
        while not secure_try_awaited(&self.lock):
            if left == 0:
                return False
            with nogil:
                PyThread_acquire_lock_timed(self.signal, left, True)
            try:
                PyErr_CheckSignals()
            except BaseException:
                if secure_load(&self.lock_generation) == secure_generation():  # else the signal is left behind
                    PyThread_release_lock(self.signal)  # to another that waits: this one may have taken it
                raise
            if secure_load(&self.lock_generation) != secure_generation():
                self.renew_lock()
            if microseconds > 0:
                left = max(<long long>((end - <double>monotonic()) * 1e6), 0)
        return True

    def acquire(self, blocking=True, timeout=-1):
        """Acquire the lock; see `threading.RLock.acquire`."""
        if not blocking and timeout != -1:
            raise ValueError("can't specify a timeout for a non-blocking call")
        if timeout < 0 and timeout != -1:
            raise ValueError("timeout value must be a non-negative number")
        if timeout > threading.TIMEOUT_MAX:
            raise OverflowError("timeout value is too large")
        return self.enter(0 if not blocking else -1 if timeout == -1 else <long long>(timeout * 1e6))

    def release(self):
        """Release the lock; see `threading.RLock.release`.

        Raises
        ------
        EntropyError
            Randomness was unavailable for words drawn under the lock. The lock is released and the words are discarded.
        """
        self.leave()

    # Plain functions of C, without what Cython adds for introspection: a `with` statement takes a twentieth less time.
    @cython.binding(False)
    @cython.always_allow_keywords(False)
    def __enter__(self):
        self.enter(-1)
        return self

    @cython.binding(False)
    @cython.always_allow_keywords(False)
    def __exit__(self, kind, value, traceback, /):
        self.leave()

    cdef int leave(self) except -1:
        if secure_load(&self.holder) != secure_thread():
            raise RuntimeError("cannot release un-acquired lock")
        if self.error is not None:
            self.raise_error()
        self.release_one()
        return 0

    cdef void release_one(self) noexcept:
        self.depth -= 1
        if self.depth == 0:
            secure_store(&self.holder, 0)
            if secure_free(&self.lock):
                PyThread_release_lock(self.signal)

    cdef int raise_error(self) except -1:
        error = self.error
        self.discard()  # remaining placeholders
        if self.depth == 1:  # else nested in other draws of this thread, which may also have placeholders
            self.error = None
        self.release_one()
        if not isinstance(error, Exception):  # KeyboardInterrupt, SystemExit
            raise error
        raise entropy_error() from error


cdef PyThread_type_lock new_signal() except NULL:
    """A lock of the interpreter that is held: releasing it lets one thread acquire it."""
    cdef PyThread_type_lock signal = PyThread_allocate_lock()
    if signal == NULL:
        raise MemoryError("no memory for the lock of a SecureBitGenerator")
    PyThread_acquire_lock(signal, NOWAIT_LOCK)
    return signal


cdef object entropy_error():
    return EntropyError("the operating system or the cipher gave no randomness; nothing was released")


cdef object view_of(uint64_t *words):
    """`SECURE_WORDS` words as an object with the writable buffer interface, valid as long as they are."""
    return PyMemoryView_FromMemory(<char *>words, SECURE_WORDS * sizeof(uint64_t), PyBUF_WRITE)


cdef void refill(void *keystream) noexcept with gil:
    (<Keystream>keystream).refill()


cdef uint64_t secure_word(object bit_generator) except? 1:
    """The next word.

    **Law** that of the generator; raises `EntropyError` as leaving the lock does. **Assumes** a `SecureBitGenerator`
    itself, not checked. **Cost** 20 ns.
    """
    cdef Keystream keystream = (<SecureBitGenerator> bit_generator).keystream
    cdef uint64_t word
    keystream.enter(-1)
    word = secure_uint64(&keystream.stream)
    keystream.leave()
    return word


cdef class SecureBitGenerator(BitGenerator):
    """SecureBitGenerator()
    --

    Random bits that cannot be predicted: an AES-256-CTR keystream (OpenSSL) keyed by the operating system.

    A `numpy.random.BitGenerator`: ``numpy.random.Generator(SecureBitGenerator())`` has every method of NumPy's
    generator. It has no seed and no state to get, set, copy or pickle: a run cannot be repeated. A child process draws
    a new key before its first word, whether Python, C or, on Linux, a system call forked it; a key is replaced after 16
    MiB.

    Attributes
    ----------
    lock : Keystream
        A reentrant lock. Draw while you hold it, as NumPy does: leaving it raises `EntropyError` if randomness was
        unavailable for a word drawn under it, so a number made of other bits is never returned.

    Raises
    ------
    EntropyError
        The operating system did not provide randomness.

    Notes
    -----
    Without randomness there is no fallback to another generator. The functions of the ``ctypes``, ``cffi`` and
    ``capsule`` interfaces cannot raise: without randomness they return words of a fixed public sequence until a
    refill succeeds. A caller without the lock is notified only when the lock is next left.

    A double takes one word; a draw of 32 bits also takes one word and uses its upper half. All methods draw from one
    stream of words, in the byte order of the machine.

    An instance may be shared between threads, through its lock. Threads with separate instances do not wait for each
    other; see `dpfast.random.secure_generator`. A process duplicated without the C library's ``fork`` (the ``clone``
    system call, ``_Fork``) is detected by Linux 4.14 or later with pages of 4 KiB; a snapshot of a virtual machine is
    not detected.

    **Law** Each word is uniform on [0, 2**64) and independent of the others, up to the advantage of an adversary
    against AES-256 and at most 2**-89 for each 16 MiB drawn (``docs/proofs/secure-bit-generator.md``).

    **Assumes** Words are drawn by the thread that holds `lock`.

    **Cost** 12 us and 64 KiB for an instance, 10 us more before its first word; 0.4 ns for a word in bulk, 2 ns one by
    one; without VAES and AVX-512 0.5 ns more.

    **Reference** NIST SP 800-38A, 6.5 (CTR mode).

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.random import SecureBitGenerator
    >>> generator = np.random.Generator(SecureBitGenerator())
    >>> bool(0 <= generator.random() < 1)
    True
    """

    cdef Keystream keystream

    def __cinit__(self):
        self.keystream = Keystream()

    def __init__(self):
        # A SeedSequence would draw and keep entropy that is never used.
        BitGenerator.__init__(self, SeedlessSeedSequence())
        self.lock = self.keystream
        self._bitgen.state = <void *>&self.keystream.stream
        self._bitgen.next_uint64 = secure_uint64
        self._bitgen.next_uint32 = secure_uint32
        self._bitgen.next_double = secure_double
        self._bitgen.next_raw = secure_uint64

    def fill(self, uint64_t[::1] out not None):
        """Overwrite an array with random words.

        Parameters
        ----------
        out : ndarray of uint64, one-dimensional, C-contiguous
            Receives the words that ``random_raw(out.size)`` would have returned.

        Raises
        ------
        EntropyError
            Randomness was unavailable; `out` is unspecified.
        """
        cdef Keystream keystream = self.keystream
        if out.shape[0] == 0:
            return
        with keystream:
            try:
                keystream.fill(&out[0], out.shape[0])
            except Exception as error:
                raise entropy_error() from error

    def random_raw(self, size=None, output=True):
        """Return random words, or draw and discard them.

        Parameters
        ----------
        size : int or tuple of int, optional
            Shape of the result. None: a single word.
        output : bool, optional
            False: draw the words and return None.

        Returns
        -------
        int or ndarray of uint64, shape `size`
            Uniform on [0, 2**64); the same words as from that many calls of ``next_uint64``.

        Raises
        ------
        EntropyError
            Randomness was unavailable.
        """
        if size is None:
            word = secure_word(self)
            return word if output else None
        words = np.empty(size, np.uint64)
        self.fill(words.reshape(-1))
        return words if output else None

    @property
    def state(self):
        """Not available: the state is secret."""
        raise AttributeError("a SecureBitGenerator has no state to read: it is secret and cannot be repeated")

    @state.setter
    def state(self, value):
        raise AttributeError("a SecureBitGenerator has no state to set: its key comes from the operating system")

    @property
    def seed_seq(self):
        """Not available: the key comes from the operating system."""
        raise AttributeError("a SecureBitGenerator has no seed sequence: its key comes from the operating system")

    def spawn(self, n_children):
        """Not available: create another `SecureBitGenerator`; it is independent of this one."""
        raise TypeError("a SecureBitGenerator has no seed to spawn from; make another one, it is independent of this")

    def __reduce__(self):
        raise TypeError("a SecureBitGenerator has no state to pickle or copy; make another one where you need it")

    def __getstate__(self):
        raise TypeError("a SecureBitGenerator has no state to pickle or copy; make another one where you need it")

    def __setstate__(self, state):
        raise TypeError("a SecureBitGenerator has no state to set: its key comes from the operating system")
