"""Where randomness comes from: a cryptographic generator by default, one for each thread, and streams for array fills.

Every mechanism takes ``rng``. None is the secure generator; a `numpy.random.Generator` or `numpy.random.BitGenerator`
makes the run reproducible, hence not private.
"""

import threading
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.random import PCG64, BitGenerator, Generator, SeedSequence
from numpy.typing import NDArray

from dpfast._kernels._secure import SecureBitGenerator

__all__ = ["SecureBitGenerator", "secure_generator"]

RandomSource: TypeAlias = Generator | BitGenerator | None

BLOCK = 2**16


class _Local(threading.local):
    """The generator of each thread, made when the thread first asks for it."""

    source: SecureBitGenerator
    generator: Generator


_local = _Local()


def secure_generator() -> Generator:
    """Return this thread's generator of numbers that cannot be predicted.

    Returns
    -------
    numpy.random.Generator
        On a `SecureBitGenerator`. The same object for every call of a thread, another one for every thread. After
        a fork it continues with a new key in the child.

    Raises
    ------
    EntropyError
        The operating system gave no randomness.

    Notes
    -----
    Handing the result to another thread is safe: its lock is held while it draws.

    Examples
    --------
    >>> from dpfast.random import secure_generator
    >>> secure_generator().integers(0, 6, size=3).shape
    (3,)
    """
    bit_generator(None)
    return _local.generator


def bit_generator(rng: RandomSource) -> BitGenerator:
    """Return the bit generator a mechanism draws from: the meaning of the parameter ``rng``.

    Parameters
    ----------
    rng : numpy.random.Generator, numpy.random.BitGenerator or None
        None: the secure generator of this thread.

    Returns
    -------
    numpy.random.BitGenerator
        To be drawn from under its ``lock``.

    Raises
    ------
    TypeError
        `rng` is something else. A seed is refused too: it would make a release predictable without saying so.
    EntropyError
        `rng` is None and the operating system gave no randomness.
    """
    if rng is None:
        try:
            return _local.source
        except AttributeError:
            source = SecureBitGenerator()
            _local.generator = Generator(source)
            _local.source = source
            return source
    if isinstance(rng, Generator):
        return rng.bit_generator
    if isinstance(rng, BitGenerator):
        return rng
    raise TypeError(
        "rng must be None (the secure generator), a numpy.random.Generator or a numpy.random.BitGenerator, not "
        f"{type(rng).__name__}; numpy.random.default_rng(seed) makes a reproducible run, which is not private"
    )


def secret_word() -> int:
    """A word of this thread's secure generator, for what decides time and never a result: where a kernel looks first.

    Raises `EntropyError` as `secure_generator` does. **Cost** 0.3 us.
    """
    return int(bit_generator(None).random_raw())


class Streams:
    """A source of randomness for each block of an array; what `streams` returns.

    ``len(streams)`` is the number of blocks, ``streams[i]`` the `numpy.random.BitGenerator` of block i, made when it is
    asked for. Ask in the thread that draws the block.
    """

    def __init__(self, count: int, entropy: int | None) -> None:
        self._count = count
        self._entropy = entropy

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, block: int) -> BitGenerator:
        if not 0 <= block < self._count:
            raise IndexError(f"block {block} of {self._count}")
        if self._entropy is None:
            return bit_generator(None)
        return PCG64(SeedSequence(self._entropy, spawn_key=(block,)))

    def __iter__(self) -> Iterator[BitGenerator]:
        return (self[block] for block in range(self._count))


def streams(rng: RandomSource, count: int) -> Streams:
    """Return independent sources for the `count` blocks of an array fill, whichever threads draw them.

    Parameters
    ----------
    rng : numpy.random.Generator, numpy.random.BitGenerator or None
        As for `bit_generator`.
    count : int
        How many blocks there are; public.

    Returns
    -------
    Streams
        Its item i is the bit generator of block i. For a secure `rng` that is the secure generator of the thread that
        asks, which costs nothing and keeps threads from waiting for one another. For any other `rng` it is a new
        ``PCG64(SeedSequence(words, spawn_key=(i,)))``, where `words` are four words drawn from `rng` by this call.

    Notes
    -----
    With a reproducible `rng` the values of block i depend on the state of `rng` and on i, not on the number of threads
    or the order in which blocks are drawn; two calls in a row give different streams.

    **Cost** 20 us for an item of a reproducible stream.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.random import streams
    >>> first, second = (source.random_raw() for source in streams(np.random.default_rng(1), 2))
    >>> second == streams(np.random.default_rng(1), 2)[1].random_raw()
    True
    """
    source = bit_generator(rng)
    if isinstance(source, SecureBitGenerator):
        return Streams(count, None)
    return Streams(count, int.from_bytes(source.random_raw(4).astype("<u8").tobytes(), "little"))


def blocks(rng: RandomSource, out: NDArray[np.int64]) -> Iterator[tuple[BitGenerator, NDArray[np.int64]]]:
    """The blocks of `BLOCK` entries of an array to be filled, each with its own source, in order."""
    parts = streams(rng, -(-out.size // BLOCK))
    return ((parts[i], out[i * BLOCK : (i + 1) * BLOCK]) for i in range(len(parts)))
