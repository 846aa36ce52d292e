"""Functions of a user that are pointers: SciPy's LowLevelCallable, made by Numba, cffi, ctypes or Cython."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpfast._kernels import _callbacks

# By dimensions of the points: a number, or the entries of a row with their count before; SciPy's for `quad`.
_SIGNATURES = {
    1: ("double (double)", "double (double, void *)"),
    2: ("double (int, double *)", "double (int, double *, void *)"),
}


def is_pointer(function: Any) -> bool:
    """Whether a function is a `scipy.LowLevelCallable`."""
    if callable(function) or not isinstance(function, tuple):
        return False
    from scipy import LowLevelCallable

    return isinstance(function, LowLevelCallable)


def identity(function: Any) -> int:
    """The same for LowLevelCallables that are equal: they are not hashable."""
    return id(tuple.__getitem__(function, 0))


def over(name: str, function: Any, points: ArrayLike) -> Callable[[], list[float]]:
    """What a LowLevelCallable gives for each of the points, numbers or rows of numbers, when it is asked for.

    The signature is checked at once, and nothing called. The calls are made without the GIL.
    """
    array = np.array(points, dtype=np.float64, order="C")
    known = _SIGNATURES.get(array.ndim, ())
    signature = _plain(function.signature)
    if signature not in map(_plain, known):
        expected = " or ".join(map(repr, known)) or "no function of arrays of more than two dimensions"
        raise ValueError(f"{name} must be of signature {expected} here, not {function.signature!r}")
    capsule = tuple.__getitem__(function, 0)

    def values() -> list[float]:
        out = np.empty(len(array))
        rows = array.reshape(len(array), -1).copy()  # the function may write to its argument
        _callbacks.evaluate(capsule, array.ndim == 2, "void" in signature, rows, out)
        results: list[float] = out.tolist()
        return results

    return values


def _plain(signature: str) -> str:
    return signature.replace(" ", "").replace("noexcept", "").replace("nogil", "")
