"""What mechanisms share whose releases are objects that are made from noisy integers."""

from __future__ import annotations

from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast.laws import Law
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.random import RandomSource


class FromIntegers(Mechanism):
    """Base class of mechanisms that release an object, made from noisy integers by post-processing."""

    releases_numbers: ClassVar[bool] = False

    def release(
        self,
        x: Any,
        *,
        size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
        rng: RandomSource = None,
        workers: int = 1,
    ) -> Any:
        """Draw `size` independent releases of the noisy integers, in one array: EACH ONE spends the budget.

        Its last axes are those of one release: the cells. For None, return one object, as a call does.
        """
        return super().release(x, size=size, rng=rng, workers=workers)

    def sampled(self, law: Law, shape: tuple[int, ...], source: np.random.BitGenerator) -> NDArray[Any]:
        return np.asarray(law.sample(shape, rng=source))
