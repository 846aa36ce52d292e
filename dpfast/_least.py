"""The least number that is enough, by doubling and bisection."""

from __future__ import annotations

from collections.abc import Callable


def least(enough: Callable[[int], bool], *, most: int | None = None, too_many: str = "", exact: bool = True) -> int:
    """A number from 1 that is enough: the least, if all greater ones are too; or one within 1 in 200 of it.

    Parameters
    ----------
    enough : callable
    most : int, optional
        A power of two: the greatest that is tried.
    too_many : str
        Message of the ValueError where that is not enough.
    exact : bool
    """
    high = 1
    while not enough(high):
        high *= 2
        if most is not None and high > most:
            raise ValueError(too_many)
    low = high // 2  # not enough, or 0
    while high - low > (1 if exact else max(1, high // 200)):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
