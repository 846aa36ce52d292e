"""What every mechanism of the library can do, and promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from dpfast import _checks
from dpfast.laws import Law
from dpfast.privacy import Privacy
from dpfast.random import RandomSource, bit_generator


class Mechanism(ABC):
    """A private release: public parameters and a guarantee, no data and no state.

    Subclasses are frozen dataclasses: picklable, hashable, equal when their parameters are.
    """

    @property
    @abstractmethod
    def privacy(self) -> Privacy:
        """The guarantee for one changed record."""

    def privacy_map(self, d_in: SupportsIndex) -> Privacy:
        """The guarantee for `d_in` changed records (group privacy), rounded up; none for 0."""
        return self.privacy.group_up(_checks.whole("d_in", d_in))

    @abstractmethod
    def law(self, x: ArrayLike, *, workers: int = 1) -> Law:
        """The exact distribution of the release. PRIVATE: it depends on the data; for audits, tests and simulation."""

    def __call__(self, x: ArrayLike, *, rng: RandomSource = None, workers: int = 1) -> Any:
        """One release of the statistic of x, a float or an ndarray; spends the budget of `privacy` once.

        Parameters
        ----------
        x : array_like of shape (n,)
            Private data: floats, integers or booleans of any stride, never modified; NaN and None are missing.
        rng : numpy.random.Generator or BitGenerator, optional
            Makes the run reproducible, hence not private. Default: the secure generator.
        workers : int
            Threads that read the data, -1 for one per core; the result does not depend on it.
        """
        bit_generator(rng)  # a wrong rng is told before data are looked at
        law = self.law(x, workers=workers)
        return law.value(law.sample(rng=rng))

    def release(
        self,
        x: ArrayLike,
        *,
        size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
        rng: RandomSource = None,
        workers: int = 1,
    ) -> Any:
        """`size` independent releases, for audits and simulations: EACH ONE spends the budget.

        Parameters as for a call; `size` is a shape, or None for one release as by a call.
        """
        if size is None:
            return self(x, rng=rng, workers=workers)
        shape = _checks.shape(size)
        bit_generator(rng)  # a wrong rng is told before data are looked at
        law = self.law(x, workers=workers)
        values: Any = law.value(law.sample(shape, rng=rng))
        return np.asarray(values, dtype=np.float64)
