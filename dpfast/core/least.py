"""Search for the least sufficient number by doubling and bisection."""

from __future__ import annotations

from collections.abc import Callable


def least(enough: Callable[[int], bool], *, most: int | None = None, too_many: str = "", exact: bool = True) -> int:
    """Return the least sufficient number from 1 on, if all larger ones are sufficient; some sufficient number
    otherwise.

    Parameters
    ----------
    enough : callable
        Whether a number is sufficient.
    most : int, optional
        A power of two: the largest number to try.
    too_many : str
        The message of the ValueError if this number is not sufficient.
    exact : bool
        Whether to find the least number; else the result is within 1 / 200 of it.
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
