"""Base class of the sequential protocols, in which each person answers whether a threshold is at least their number."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _samplers
from dpfast.core import checks, containers
from dpfast.core.coin import Coin, coin
from dpfast.core.spending import EXACT, refused
from dpfast.core.types import Records
from dpfast.local.randomizer import LocalMechanism
from dpfast.random import RandomSource, bit_generator


class ThresholdProtocol(LocalMechanism, ABC):
    """A sequential protocol: each person reveals one private bit, on a threshold that depends on earlier reports."""

    bounds: tuple[float, float]

    @property
    def coin(self) -> Coin:
        """The coin that decides whether a report is true; its gain is c in the formulas."""
        return coin(self.epsilon)

    # ---- the person ----

    def respond(self, theta: float, x: float | None, *, rng: RandomSource = None) -> int:
        """Return one person's report on the question theta: 1 for "theta >= x", 0 for "below"; it may be false.

        Parameters
        ----------
        theta : float
            From the server, which need not be trusted.
        x : float
            Private.
        rng : numpy.random.Generator or BitGenerator, optional
            Makes the report reproducible, hence not private. Default: the secure generator.
        """
        truth, source = self._truth(theta, x), bit_generator(rng)
        return int(truth == (_samplers.next_word(source) < self.coin.threshold))

    @refused(EXACT)
    def probability(self, theta: float, x: float | None) -> Fraction:
        """Return the exact probability of the report 1. PRIVATE: it depends on x; for audits."""
        keep = self.coin.probability
        return keep if self._truth(theta, x) else 1 - keep

    def _truth(self, theta: float, x: float | None) -> bool:
        value = float(containers.numbers("x", [x])[0])
        lower, upper = self.bounds
        return checks.real("theta", theta) >= clip(0.0 if math.isnan(value) else value, lower, upper)

    # ---- both, in one process ----

    def __call__(self, x: Records, *, rng: RandomSource = None) -> float:
        """Run the whole protocol on an array, one person after the other: `release` with one repetition."""
        return float(self.release(x, rng=rng))

    @abstractmethod
    def release(
        self,
        x: Records,
        *,
        size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
        rng: RandomSource = None,
    ) -> Any:
        """Run the protocol `size` times independently, for simulations: EACH RUN spends the epsilon of every person.

        Parameters
        ----------
        x : array_like of shape (n,)
            Private data of any numeric dtype, one number for each person, in the order in which they are asked; the
            order must not depend on the data. Never modified.
        size : int or tuple of ints, optional
            The shape of the result; None returns one run, a float.
        rng : numpy.random.Generator or BitGenerator, optional
            Makes the run reproducible, hence not private. Default: the secure generator.
        """


def ordered(bounds: tuple[float, float]) -> tuple[float, float]:
    """Finite ordered bounds as doubles, of finite width; -0.0 becomes 0.0, which the kernel requires."""
    lower, upper = (float(bound) + 0.0 for bound in checks.pair("bounds", bounds))
    if not lower < upper:
        raise ValueError(f"bounds must be in order, lower < upper, not {bounds!r}")
    if not math.isfinite(upper - lower):
        raise ValueError("the width of bounds overflows float64: use narrower bounds")
    return lower, upper


def clip(value: float, lower: float, upper: float) -> float:
    """Return the nearest number in [lower, upper]."""
    return min(max(value, lower), upper)


def doubles(x: NDArray[Any]) -> NDArray[np.float64]:
    """Return a contiguous array of doubles: x itself if it is one."""
    with np.errstate(all="ignore"):  # a signalling NaN
        return np.require(x, np.float64, ["C", "A"])
