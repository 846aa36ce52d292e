"""The base classes of laws, and the law of independent coordinates."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.core import checks, containers
from dpfast.core.spending import guard
from dpfast.random import RandomSource, bit_generator


class Law(ABC):
    """A distribution on grid codes, or on vectors of codes, and the values of the codes.

    In the block of a `dpfast.Ledger` only the steps of a release draw from it.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        guard(cls)

    @abstractmethod
    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return the natural logarithm of P(K = k); -inf outside the support."""

    @abstractmethod
    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        """Draw exactly: an array of int64 of shape `size`, or one draw for None."""

    def outcomes(self) -> NDArray[np.int64]:
        """All possible k, along the first axis; raises a ValueError for more than 2**20."""
        raise TypeError("the outcomes of this law cannot be listed, as they are too many: use audit.distinguish")

    @abstractmethod
    def value(self, k: ArrayLike) -> Any:
        """Return the floats that are released for k."""


class ScalarLaw(Law):
    """A distribution on the integers first..last of `support`."""

    support: tuple[int, int]

    def outcomes(self) -> NDArray[np.int64]:
        first, last = self.support
        checks.outcomes(last - first + 1)
        return np.arange(first, last + 1)

    def pmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """P(K = k)."""
        return np.exp(self.logpmf(k))

    @abstractmethod
    def cdf(self, k: ArrayLike) -> NDArray[np.float64]:
        """P(K <= k)."""

    @abstractmethod
    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        """Draw exactly: an int for size None, else an array of int64."""

    @abstractmethod
    def value(self, k: ArrayLike) -> Any:
        """Return the float that is released for k; an array for an array."""


class IndependentLaws(Law):
    """The law of a vector of independent integers. The last axis of k has the coordinates.

    Parameters
    ----------
    laws : sequence of ScalarLaw
        One for each coordinate.
    decode : callable, optional
        Converts vectors of integers, an array of shape (..., d), to values. Default: by the law of each coordinate.
    """

    def __init__(self, laws: Sequence[ScalarLaw], *, decode: Callable[[NDArray[np.int64]], Any] | None = None) -> None:
        self.laws, self._decode = tuple(laws), decode

    def _columns(self, k: ArrayLike) -> list[tuple[ScalarLaw, NDArray[np.int64]]]:
        return list(zip(self.laws, np.moveaxis(containers.integers("k", k), -1, 0), strict=True))

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(np.sum([law.logpmf(column) for law, column in self._columns(k)], axis=0))

    def outcomes(self) -> NDArray[np.int64]:
        checks.outcomes(math.prod(law.support[1] - law.support[0] + 1 for law in self.laws))
        axes = [law.outcomes() for law in self.laws]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        source = bit_generator(rng)
        return np.stack([np.asarray(law.sample(size, rng=source)) for law in self.laws], axis=-1)

    def value(self, k: ArrayLike) -> Any:
        if self._decode is not None:
            return self._decode(containers.integers("k", k))
        return np.stack([np.asarray(law.value(column)) for law, column in self._columns(k)], axis=-1)
