"""The inverse sensitivity mechanism: pure epsilon, for every statistic with an attack range."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast import _checks
from dpfast._kernels import _levels, _select
from dpfast.grid import Grid
from dpfast.laws import NestedIntervals
from dpfast.mechanism import Mechanism
from dpfast.privacy import Privacy
from dpfast.random import RandomSource, bit_generator
from dpfast.statistics import OrderStatistic, Statistic

# The cap leaves at most e**-42 < 2**-60 of the probability to outputs beyond the window.
_TAIL = 42.0


@dataclass(frozen=True, repr=False)
class InverseSensitivity(Mechanism):
    """Release a statistic by inverse sensitivity: each grid point g with weight ``exp(-epsilon / 2 * score(g))``.

    score(g) is the least number of records to replace so that the statistic becomes g. Pure epsilon-differential
    privacy under one replaced record; the number of records is public.

    Parameters
    ----------
    statistic : dpfast.statistics.Statistic
        For example ``Median()`` or ``Quantile(0.9)``.
    grid : Grid
        Public bounds and granularity of data and release, in data units.
    epsilon : float
        Positive; rounded down to a double. Above 20 or so the release is, but for negligible probability, the exact
        statistic: private in name only.
    radius : float
        At least 0, in data units, rounded to a multiple of the step: every value within `radius` of a possible value of
        the statistic scores as well as that value. 0 by default.
    neighbors : {"replace-one"}

    Raises
    ------
    TypeError, ValueError
        Before any data are looked at.

    Notes
    -----
    Privacy: the score changes by at most 1 with one record, so the exponential mechanism of exponent epsilon / 2 is
    epsilon-DP; capping the score at a public number keeps that, and lets a window of order statistics suffice
    (docs/proofs/nested-intervals.md). The law is exact: no float decides it.
    Cost: O(n) to select, about the time of two or three sums of x, and O(window) to draw, window = 4 (log(size) + 42) /
    epsilon order statistics. Timing is outside the guarantee.

    References
    ----------
    Asi and Duchi 2020, "Near instance-optimality in differential privacy"; Chaudhuri and Hsu 2012 for the problem.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> from dpfast.statistics import Median
    >>> mechanism = dpf.InverseSensitivity(Median(), grid=dpf.Grid(0, 100, step=1), epsilon=1.0)
    >>> mechanism
    <InverseSensitivity release of the median on 101 points from 0.0 to 100.0, step 1.0: epsilon = 1 (pure \
differential privacy) for one record replaced (the number of records is public)>
    >>> ages = np.random.default_rng(0).integers(18, 90, 1000)
    >>> 50 <= mechanism(ages) <= 58
    True
    """

    statistic: Statistic
    grid: Grid = field(kw_only=True)
    epsilon: float = field(kw_only=True)
    radius: float = field(kw_only=True, default=0.0)
    neighbors: str = field(kw_only=True, default="replace-one")
    _cap: int = field(init=False, repr=False, compare=False)
    _radius_steps: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic):
            raise TypeError(f"statistic must be one of dpfast.statistics, not {type(self.statistic).__name__}")
        if not isinstance(self.grid, Grid):
            raise TypeError(f"grid must be a dpfast.Grid, not {type(self.grid).__name__}")
        if self.neighbors != "replace-one":
            raise ValueError(f"neighbors must be 'replace-one' here, not {self.neighbors!r}")
        epsilon = _checks.positive_down("epsilon", self.epsilon)
        radius = _checks.real("radius", self.radius)
        if radius < 0:
            raise ValueError(f"radius must be at least 0, not {radius!r}")
        last = self.statistic.last(self.grid)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "_cap", _cap(epsilon, last + 1))
        object.__setattr__(self, "_radius_steps", round(min(radius / self.grid.step, last)))

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, 0.0, self.neighbors)

    def __repr__(self) -> str:
        grid = self.grid
        within = f" within {self.radius!r}" if self.radius else ""
        return (
            f"<InverseSensitivity release of the {self.statistic}{within} on {grid.size} points from {grid.lower!r} to "
            f"{grid.upper!r}, step {grid.step!r}: {self.privacy}>"
        )

    def __call__(self, x: ArrayLike, *, rng: RandomSource = None, workers: int = 1) -> float:
        if not isinstance(self.statistic, OrderStatistic):
            return float(super().__call__(x, rng=rng, workers=workers))
        source = bit_generator(rng)
        grid = self.grid
        code = _levels.draw_order_statistic(
            source,
            self._window(x, workers),
            self.epsilon,
            self._radius_steps,
            grid.lower,
            grid.upper,
            grid.step,
            grid.first,
            grid.size - 1,
        )
        return grid.value(code)

    def law(self, x: ArrayLike, *, workers: int = 1) -> NestedIntervals:
        """The exact law of the release. PRIVATE."""
        last = self.statistic.last(self.grid)
        lower, upper = self.statistic.attack_range(self.grid.encode(self._window(x, workers)))
        return NestedIntervals(
            np.maximum(lower - self._radius_steps, 0),
            np.minimum(upper + self._radius_steps, last),
            epsilon=self.epsilon,
            last=last,
            grid=self.grid,
        )

    def _window(self, x: ArrayLike, workers: int) -> NDArray[np.float64]:
        """The order statistics that the levels below the cap look at: how many depends on public numbers only."""
        threads = _checks.threads(workers)
        values = _checks.vector("x", x)
        n = _checks.records(values.shape[0])
        first, last = self.statistic.ranks(n, min(self._cap, self.statistic.breakdown(n)))
        grid = self.grid
        return _select.window(
            values,
            first,
            last,
            lower=grid.lower,
            upper=grid.upper,
            step=grid.step,
            missing=grid.missing,
            workers=threads,
        )


def _cap(epsilon: float, size: int) -> int:
    """The public number of levels, ``1 + ceil(2 / epsilon * (log(size) + 42))``: beyond it all scores count alike."""
    levels = 2 / epsilon * (math.log(size) + _TAIL)
    return 1 + math.ceil(min(levels, 2.0**62))
