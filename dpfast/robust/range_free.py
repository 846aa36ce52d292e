"""The nested boxes mechanism without bounds, with a private test."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpfast.core import checks
from dpfast.core.grid import Grid
from dpfast.core.least import least
from dpfast.core.privacy import Privacy
from dpfast.core.rounding import down
from dpfast.laws import TAIL, BehindTest, Boxes
from dpfast.statistics import OrderStatistic, Summary
from dpfast.streaming import Columns, Integers, Reading

if TYPE_CHECKING:
    pass
from dpfast.robust.columns import CoordinateWise

_LEAST_EPSILON, _LARGEST_EPSILON = 2.0**-28, 64.0  # of a test; epsilon above 64 is not used


@dataclass(frozen=True, repr=False)
class RangeFreeBoxes(CoordinateWise):
    """Release a robust location in d dimensions without bounds, or None, by propose-test-release.

    A noisy count of replacements tests whether the middle of the data is closer together than `width`, in the mean of
    the coordinates. If so, a point of score at most T is released as by `NestedBoxes`; otherwise the release is None.
    (epsilon, delta)-differential privacy under one replaced record (row); the number of records is public.

    Parameters
    ----------
    statistic : dpfast.statistics.Median or Quantile
        The statistic of each column.
    step : float
        A power of two in data units: the granularity of data and release. Records are clamped to 2**51 steps from 0.
    width : float
        Public guess of the spread, in data units, at least one step: the test can pass if T + 1 + m records on each
        side of the statistic are about as close together as this; see `plan`.
    epsilon, delta : float
        Positive totals; rounded down to doubles.
    radius, scale, transform
        See `robust_mean`.

    Raises
    ------
    TypeError, ValueError
        From the constructor: a wrong parameter. From a call: a wrong shape, or too few records for the test to ever
        pass.

    Notes
    -----
    Privacy: https://dpfast.readthedocs.io/en/latest/proofs/nested-boxes.html, which also enumerates small cases, with
    None as one of the outcomes. The test uses exact integers and exact discrete Laplace noise. Cost: that of
    `NestedBoxes`, with a window of public width.

    References
    ----------
    Dwork and Lei 2009, "Differential privacy and robust statistics"; Hopkins, Kamath, Majid and Narayanan 2023.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> mechanism = dpf.robust.RangeFreeBoxes(step=2**-10, width=1.0, epsilon=1.0, delta=1e-6)
    >>> X = np.random.default_rng(0).normal(size=(5_000, 2)) + [1e6, -1e3]
    >>> bool(np.abs(mechanism(X) - [1e6, -1e3]).max() < 0.1)
    True
    >>> mechanism(1e6 * X) is None
    True
    """

    step: float = field(kw_only=True)
    width: float = field(kw_only=True)
    delta: float = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.statistic, OrderStatistic):
            raise TypeError(f"statistic must be an order statistic without bounds, not {self.statistic!r}")
        object.__setattr__(self, "step", checks.positive("step", self.step))
        object.__setattr__(self, "width", checks.positive("width", self.width))
        self._check_dimensions()
        delta = checks.delta_down(self.delta)
        if not delta:
            raise ValueError(f"delta must be positive without bounds, not {self.delta!r}")
        object.__setattr__(self, "delta", delta)
        if self.epsilon < _LEAST_EPSILON:
            raise ValueError(f"epsilon must be at least 2**-28 without bounds, not {self.epsilon!r}")
        for scale in self.scale if isinstance(self.scale, tuple) else (self._scale(0),):
            if not self.step <= self.width * scale <= self.step * 2**51:
                raise ValueError(f"width must be from 1 to 2**51 steps, not {self.width * scale / self.step:g}")
            if self.radius * scale > self.step * 2**50:
                raise ValueError(f"radius must be at most 2**50 steps, not {self.radius * scale / self.step:g}")
        _ = self.grid

    @property
    def grid(self) -> Grid:
        """All multiples of the step that are at most 2**51 steps from 0."""
        return Grid(-(2.0**51) * self.step, (2.0**51 - 1) * self.step, step=self.step, missing=0.0)

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    def __repr__(self) -> str:
        return (
            f"<RangeFreeBoxes release of the {self._described()} in steps of {self.step!r}, tested for a spread of "
            f"{self.width!r}: {self.privacy}>"
        )

    def test(self, d: int) -> SpreadTest:
        """The public numbers of the test in d dimensions."""
        radii = self._radii(d)
        widths = [math.floor(self.width * self._scale(j) / self.step) for j in range(d)]
        base = math.prod(2 * radius + 1 for radius in radii)
        allowed = math.prod(width + 1 + 2 * radius for width, radius in zip(widths, radii, strict=True))
        return _test(self.epsilon, self.delta, base, allowed)

    def _radii(self, d: int) -> list[int]:
        return [round(self.radius * self._scale(j) / self.step) for j in range(d)]

    def least_records(self, d: int) -> int:
        """Return the least n for which the test can pass with probability at least 1/2; raises a ValueError if none
        exists.
        """
        needed = self.test(d).needed
        return least(
            lambda n: self._room(n) >= needed,
            most=2**62,
            too_many=f"the {self.statistic} can be moved anywhere by one record: there is no release without bounds",
        )

    def _room(self, n: int) -> int:
        """Return the number of replaced records that can move the statistic anywhere."""
        assert isinstance(self.statistic, OrderStatistic)
        rank = self.statistic.rank(n)
        return min(rank, n - rank + 1)

    def reading(self) -> Columns:
        def reading(j: int, d: int) -> Reading:
            return self.statistic.reading(self.grid, lambda n: self._boxes(n, d))

        return Columns(reading, self._matrix, self._check_columns, reading(0, 1).passes, self._transformed)

    def _boxes(self, n: int, d: int) -> int:
        """Return the public number of boxes; raises a ValueError for too few records."""
        test = self.test(d)
        room = self._room(n)
        if room < test.needed:
            raise ValueError(
                f"X must have at least {self.least_records(d)} records, not {n}: with these parameters the test can "
                f"never pass"
            )
        return min(room, test.cap + 2 + test.reach)

    def law_of(self, summaries: list[Summary]) -> BehindTest:
        """Return the exact law of the release, failure included. PRIVATE."""
        d, first = len(summaries), int(self.grid.first)
        test, ranges = self.test(d), [self.statistic.attack_range(summary) for summary in summaries]
        lower, upper = (np.stack(ends, axis=1) for ends in zip(*ranges, strict=True))
        radii = np.array(self._radii(d))
        lower, upper = lower + (first - radii), upper + (first + radii)
        law = Boxes(lower[: test.cap + 1], upper[: test.cap + 1], epsilon=test.epsilon, decode=self._decode)
        return BehindTest(law, margin=test.threshold - test.slack(lower, upper), epsilon=test.test_epsilon)

    def _decode(self, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._restored(np.asarray(codes * self.step, dtype=np.float64))


@dataclass(frozen=True)
class SpreadTest:
    """The public numbers of a test (https://dpfast.readthedocs.io/en/latest/proofs/nested-boxes.html).

    Attributes
    ----------
    epsilon, test_epsilon : float
        The shares of the release and of the test.
    cap : int
        T: points with a larger score are never released.
    threshold : int
        m: the noisy count of replacements must be at least this.
    bound : int
        B: the test counts the replacements that are possible before box T + 1 may hold more than B points.
    reach : int
        The maximum of the count, at which the test passes except with probability e**-42.
    """

    epsilon: float
    test_epsilon: float
    cap: int
    threshold: int
    bound: int
    reach: int

    @property
    def needed(self) -> int:
        """T + 2 + m, a number of replacements that must not be able to move the statistic anywhere."""
        return self.cap + 2 + self.threshold

    def slack(self, lower: Integers, upper: Integers) -> int:
        """Return the largest r with at most `bound` points in box T + 1 + r, or -1; exact, by bisection. PRIVATE."""
        low, high = self.cap, len(lower) - 1  # box `low` is treated as within the bound
        while low < high:
            middle = (low + high + 1) // 2
            if math.prod((upper[middle] - lower[middle] + 1).tolist()) <= self.bound:
                low = middle
            else:
                high = middle - 1
        return low - self.cap - 1


@lru_cache(maxsize=64)
def _test(epsilon: float, delta: float, base: int, allowed: int) -> SpreadTest:
    """Return the split of epsilon, of 63, that needs the fewest records, if `base` points have score 0 and B is
    `allowed`.
    """
    from dpfast._kernels._balls import tested_bound, tested_threshold

    growth = math.log(allowed) - math.log(base)

    def shares(part: int) -> tuple[float, float]:
        release = min(epsilon, _LARGEST_EPSILON) * part / 64
        return release, down(Fraction(epsilon) - Fraction(release))

    def cap(release: float) -> int:
        log_small = math.log(delta) - release - math.log1p(math.exp(-release / 2))
        return max(0, math.ceil(2 / release * (growth - log_small)) - 1)

    def needed(part: int) -> float:
        release, test = shares(part)
        return cap(release) + max(0.0, -math.log(delta) / test)

    release, test = shares(min(range(1, 64), key=needed))
    levels = cap(release)
    threshold = tested_threshold(test, delta)
    bound = tested_bound(release, delta, levels + 1, base)
    return SpreadTest(release, test, levels, threshold, bound, threshold + math.ceil(TAIL / test))
