"""A source of given 64-bit words that the kernels accept as a bit generator; it counts the words used."""

import ctypes
import threading

import numpy as np

_NEXT64 = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)
_NEXT32 = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)
_NEXT_DOUBLE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)


class _BitGen(ctypes.Structure):
    _fields_ = [
        ("state", ctypes.c_void_p),
        ("next_uint64", _NEXT64),
        ("next_uint32", _NEXT32),
        ("next_double", _NEXT_DOUBLE),
        ("next_raw", _NEXT64),
    ]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class ScriptedBits:
    """Hands out `words`, then words of `rest` (a numpy BitGenerator); `used` counts them."""

    def __init__(self, words=(), rest=None):
        self._words = [int(word) for word in words]
        self._rest = rest
        self.used = 0
        self.lock = threading.RLock()
        take = _NEXT64(self._next)
        self._struct = _BitGen(
            None,
            take,
            _NEXT32(lambda _: self._next(_) >> 32),
            _NEXT_DOUBLE(lambda _: (self._next(_) >> 11) * 2.0**-53),
            take,
        )
        self.capsule = _new_capsule(ctypes.addressof(self._struct), b"BitGenerator", None)

    def _next(self, _):
        self.used += 1
        if self.used <= len(self._words):
            return self._words[self.used - 1]
        return int(self._rest.random_raw())


def words(seed, threshold, n=40_000):
    """Random words with many at the edges of a decision."""
    rng = np.random.default_rng(seed)
    special = np.array([0, 1, 2**63, 2**64 - 1, threshold - 1, threshold, threshold + 1, (2**64 // 3) + 1], np.uint64)
    drawn = rng.integers(0, 2**64, n, dtype=np.uint64)
    return [int(w) for w in np.where(rng.random(n) < 0.3, special[rng.integers(0, special.size, n)], drawn)]
