"""The base class of statistics of scalar records: a functional with a public range of codes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dpfast.core import containers

__all__ = [
    "Distribution",
    "Statistic",
]


class Distribution(Protocol):
    """The methods of a distribution that `Statistic.functional` uses; levels and corners are exact."""

    def quantile(self, level: Fraction, *, above: bool = False) -> Any:
        """``inf{t : F(t) >= level}``; ``inf{t : F(t) > level}`` for `above`."""

    def between(self, start: Fraction, stop: Fraction) -> Any:
        """Return the integral of the quantile function over the levels from start to stop."""

    def variance(self) -> Any:
        """E X**2 - (E X)**2."""

    def huber(self, k: Fraction) -> Any:
        """``inf{theta : E clip(theta - X, -k, k) >= 0}``."""


class Statistic(ABC):
    """A statistic with one number as its value, described by public parameters. It never holds data."""

    def functional(self, distribution: Distribution) -> Any:
        """Return the value for a distribution: the limit of the statistic for large samples."""
        raise TypeError(f"the {self} is not a functional of a distribution")

    def turns(self, sample: Distribution, moved: Callable[[float], Distribution]) -> list[Any]:
        """Places, besides the ends of the domain, where a point may influence a statistic that is not monotone most.

        `moved(place)` is the sample after a share of its mass has moved to a place, which may be infinite. A statistic
        that is monotone in each record has none.
        """
        return []

    @abstractmethod
    def last(self, grid: Any, n: int) -> int:
        """Return the largest release code for n records on a grid that the statistic takes; the smallest is 0.

        Raises a ValueError if it is 2**63 - 1 or more, or if its value is beyond the range of float64.
        """

    @abstractmethod
    def value(self, grid: Any, n: int, code: int) -> float:
        """Return the float that is released for a code, correctly rounded."""

    def valued(self, grid: Any, n: int) -> Callable[[int], float]:
        """`value` for n records, as a function of the code."""
        return partial(self.value, grid, n)

    def decode(self, grid: Any, n: int, codes: ArrayLike | int) -> Any:
        """`value` for each code: a float for an integer, an array for an array."""
        if isinstance(codes, int):
            return self.value(grid, n, codes)
        k = containers.integers("codes", codes)
        values = [self.value(grid, n, code) for code in k.reshape(-1).tolist()]
        return np.array(values, dtype=np.float64).reshape(k.shape) if k.ndim else values[0]


def printed(value: float) -> Fraction:
    """Return the rational number that a float prints as: 1/10 for 0.1."""
    return Fraction(repr(value))


def scaled(numerator: int, denominator: int, unit: float) -> float:
    """``numerator / denominator * unit``, correctly rounded by a single division of integers."""
    top, bottom = unit.as_integer_ratio()
    return numerator * top / (denominator * bottom)


def between_points(grid: Any, parts: int, code: int) -> float:
    """``lower + code * step / parts``, correctly rounded."""
    return scaled(grid.first * parts + code, parts, grid.step)
