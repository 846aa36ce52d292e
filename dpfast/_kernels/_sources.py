"""The secure generator of each thread, from which kernels take words that no result depends on."""

import threading

from numpy.random import Generator

from dpfast._kernels._secure import SecureBitGenerator


class Local(threading.local):
    """The generator of each thread, created at its first use."""

    source: SecureBitGenerator
    generator: Generator


local = Local()


def thread_source() -> SecureBitGenerator:
    """Return the secure generator of this thread.

    Raises `EntropyError` if the operating system provided no randomness.
    """
    try:
        return local.source
    except AttributeError:
        source = SecureBitGenerator()
        local.generator = Generator(source)
        local.source = source
        return source


def secret_word() -> int:
    """Return a word that affects only running time, never a result: a kernel's first pivot. It costs 0.3 us.

    Raises `EntropyError` like `thread_source`.
    """
    return int(thread_source().random_raw())
