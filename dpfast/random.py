"""Sources of randomness: by default a cryptographic generator, one per thread, and streams for array fills.

Every mechanism takes ``rng``. None is the secure generator; a `numpy.random.Generator` or `numpy.random.BitGenerator`
makes the run reproducible, hence not private.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.random import PCG64, BitGenerator, Generator, SeedSequence
from numpy.typing import NDArray

from dpfast._kernels._secure import SecureBitGenerator
from dpfast._kernels._sources import local, thread_source
from dpfast._kernels._threads import each

__all__ = ["SecureBitGenerator", "secure_generator"]

RandomSource: TypeAlias = Generator | BitGenerator | None

BLOCK = 2**16


def secure_generator() -> Generator:
    """Return this thread's cryptographically secure generator.

    Returns
    -------
    numpy.random.Generator
        A generator on a `SecureBitGenerator`. All calls in a thread return the same object; each thread has its own.
        After a fork it continues with a new key in the child.

    Raises
    ------
    EntropyError
        If the operating system provided no randomness.

    Notes
    -----
    It is safe to pass the result to another thread: it holds its lock while it draws.

    Examples
    --------
    >>> from dpfast.random import secure_generator
    >>> secure_generator().integers(0, 6, size=3).shape
    (3,)
    """
    thread_source()
    return local.generator


def bit_generator(rng: RandomSource) -> BitGenerator:
    """Return the bit generator for the parameter ``rng`` of a mechanism.

    Parameters
    ----------
    rng : numpy.random.Generator, numpy.random.BitGenerator or None
        None: the secure generator of this thread.

    Returns
    -------
    numpy.random.BitGenerator
        Hold its ``lock`` to draw from it.

    Raises
    ------
    TypeError
        If `rng` is anything else. This includes a seed, which would silently make a release predictable.
    EntropyError
        If `rng` is None and the operating system provided no randomness.
    """
    if rng is None:
        try:
            return local.source  # without a call
        except AttributeError:
            return thread_source()
    if isinstance(rng, Generator):
        return rng.bit_generator
    if isinstance(rng, BitGenerator):
        return rng
    raise TypeError(
        "rng must be None (the secure generator), a numpy.random.Generator or a numpy.random.BitGenerator, not "
        f"{type(rng).__name__}; numpy.random.default_rng(seed) makes a reproducible run, which is not private"
    )


def is_secure(rng: RandomSource) -> bool:
    """Whether a release with this ``rng`` is private: it is from the secure generator, and not reproducible."""
    return isinstance(bit_generator(rng), SecureBitGenerator)


class Streams:
    """The sources of randomness for the blocks of an array, returned by `streams`.

    ``len(streams)`` is the number of blocks; ``streams[i]`` creates the `numpy.random.BitGenerator` of block i. Access
    it in the thread that draws the block.
    """

    def __init__(self, count: int, entropy: int | None) -> None:
        self._count = count
        self._entropy = entropy

    def __len__(self) -> int:
        return self._count

    @property
    def shared(self) -> bool:
        """Whether all items are the same one in a thread: the secure generator."""
        return self._entropy is None

    def __getitem__(self, block: int) -> BitGenerator:
        if not 0 <= block < self._count:
            raise IndexError(f"block {block} of {self._count}")
        if self._entropy is None:
            return bit_generator(None)
        return PCG64(SeedSequence(self._entropy, spawn_key=(block,)))

    def __iter__(self) -> Iterator[BitGenerator]:
        return (self[block] for block in range(self._count))


def streams(rng: RandomSource, count: int) -> Streams:
    """Return independent sources for the `count` blocks of an array fill, independent of the threads that draw them.

    Parameters
    ----------
    rng : numpy.random.Generator, numpy.random.BitGenerator or None
        See `bit_generator`.
    count : int
        The public number of blocks.

    Returns
    -------
    Streams
        Item i is the bit generator of block i. For a secure `rng` it is the secure generator of the accessing thread,
        which costs nothing, and threads do not wait for one another. For any other `rng` it is a new
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


def stream(rng: RandomSource) -> BitGenerator:
    """Return the source of a single block: the only item of ``streams(rng, 1)``."""
    return bit_generator(None) if rng is None else streams(rng, 1)[0]


def over_blocks(
    fill: Callable[[BitGenerator, slice], None], rng: RandomSource, n: int, step: int, threads: int
) -> None:
    """Call ``fill(source, block)`` for each block of at most `step` of n records, each with its source of `streams`."""
    if rng is None and 0 < n <= step:
        fill(bit_generator(None), slice(0, n))
        return
    sources = streams(rng, -(-n // step))
    each(lambda i: fill(sources[i], slice(i * step, (i + 1) * step)), range(len(sources)), threads)


def blocks(rng: RandomSource, out: NDArray[np.int64]) -> Iterator[tuple[BitGenerator, NDArray[np.int64]]]:
    """Yield the blocks of `BLOCK` entries of an array to fill, in order, each with its own source."""
    parts = streams(rng, -(-out.size // BLOCK))
    return ((parts[i], out[i * BLOCK : (i + 1) * BLOCK]) for i in range(len(parts)))
