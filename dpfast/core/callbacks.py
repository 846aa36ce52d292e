"""User functions: of few arguments, or C pointers, SciPy's LowLevelCallable, made by Numba, cffi, ctypes or Cython."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpfast._kernels import _callbacks

# The signatures by the number of dimensions of the points, as in SciPy's `quad`: for a number, or for the count and the
# entries of a row.
_SIGNATURES = {
    1: ("double (double)", "double (double, void *)"),
    2: ("double (int, double *)", "double (int, double *, void *)"),
}
_NUMBERS = {1: "one argument", 2: "two arguments", 3: "three arguments"}


def is_pointer(function: Any) -> bool:
    """Whether a function is a `scipy.LowLevelCallable`."""
    if callable(function) or not isinstance(function, tuple):
        return False
    from scipy import LowLevelCallable

    return isinstance(function, LowLevelCallable)


def check_takes(name: str, function: Any, *arguments: str) -> None:
    """Raise a TypeError for a function that cannot be called with these arguments, before anything is charged.

    Where errors of a function become missing values, as those of blocks do, nothing else would tell of it.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of functions in C, many of which have none
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        *first, last = arguments
        number, named = _NUMBERS[len(arguments)], f"{', '.join(first)} and {last}" if first else last
        raise TypeError(f"{name} must be a function of {number}, {named}: {error}") from None


def identity(function: Any) -> int:
    """Return a hash that is the same for equal LowLevelCallables, which are not hashable."""
    return id(tuple.__getitem__(function, 0))


def over(name: str, function: Any, points: ArrayLike) -> Callable[[], list[float]]:
    """Return a function that evaluates a LowLevelCallable at each point, a number or a row of numbers.

    Only the signature is checked immediately. The calls are made without the GIL.
    """
    array = np.array(points, dtype=np.float64, order="C")
    known = _SIGNATURES.get(array.ndim, ())
    signature = _plain(function.signature)
    if signature not in map(_plain, known):
        expected = " or ".join(map(repr, known)) or "no function of arrays of more than two dimensions"
        raise ValueError(f"{name} must have the signature {expected} here, not {function.signature!r}")
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
