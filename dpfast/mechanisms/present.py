"""The mean of the records that are not missing, for a public number of all records."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _samplers, _segments, _select
from dpfast.core import checks
from dpfast.core.grid import Grid, check_grid
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.spending import STEP, paid_before, refuse
from dpfast.laws import DiscreteLaplace, DiscreteLaplaces, NoisyIntegers
from dpfast.mechanisms.assumptions import Assumed
from dpfast.mechanisms.foreseen import Foreseen
from dpfast.mechanisms.globally import GlobalSensitivity
from dpfast.mechanisms.grouped_sums import GroupsOfSums
from dpfast.mechanisms.plan import Draw, Grouping, Plan
from dpfast.mechanisms.prediction import Expected
from dpfast.mechanisms.statistic import StatisticMechanism
from dpfast.mechanisms.usefulness import OF_NOISE, enough_for_error
from dpfast.statistics import Mean
from dpfast.streaming import Chunks, Counted, PresentSum, PresentSums, Reading

if TYPE_CHECKING:
    from dpfast.core.types import Exact

_MOST = 2**61  # of a sum with noise
# A released number of missing records up to so many scales of its noise counts as none, so that a column without
# missing records pays nothing: noise alone is above with a probability of 0.3 %, which adds at most 3 % to the error,
# where the mean is at a bound. With 3 scales these are 2.5 % and 10 %; with 7 up to 14 / epsilon missing records count
# as the middle of the bounds.
_SCALES = 5

Integers = NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class PresentMean(StatisticMechanism):
    """Release the mean of the records that are not missing, with noise on their sum and on the number of the others.

    Pure epsilon-differential privacy under one replaced record, where missing is a value like any other; the number of
    all records is public, that of the missing ones is not. If none are missing, the error is that of the mean by
    `GlobalSensitivity` with discrete Laplace noise: the number of missing records costs nothing.

    Parameters
    ----------
    statistic : dpfast.statistics.Mean
    grid : Grid
        Public bounds and granularity of the data, in data units, with ``missing="drop"``.
    epsilon : float
        Positive; rounded down to a double.

    Raises
    ------
    TypeError, ValueError
        From the constructor: a wrong parameter. From a call, once n is known: n times the number of grid points is
        2**62 or more, 2**61 if this is an even number.

    Notes
    -----
    Privacy: codes are counted from the middle of the bounds, and a missing record adds 0 to their sum. Another value of
    a record then changes the sum by at most the width of the bounds, and a record that becomes missing by half of it,
    and their number by 1. With noise of scale width / epsilon on the sum and 2 / epsilon on the number, either costs
    epsilon (https://dpfast.readthedocs.io/en/latest/proofs/missing.html). The mean is the middle plus the quotient of
    the noisy sum and n less the noisy number, within the bounds. A noisy number of up to 10 / epsilon counts as 0: so
    few missing records count as the middle of the bounds. For epsilon above 1.1, staircase noise on a mean has less
    error (`GlobalSensitivity`), but leaves nothing for the number of missing records. In rho it costs what noise on an
    integer of sensitivity 2 does: 7 % more than a mean of many points at epsilon = 1, 1 % at 0.1 (`privacy_profile`).
    Cost: one pass over x, about 1.3 times ``np.mean(x)``.

    References
    ----------
    Dwork, McSherry, Nissim and Smith 2006, "Calibrating noise to sensitivity in private data analysis".

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> mechanism = dpf.PresentMean(grid=dpf.Grid(0, 100, missing="drop"), epsilon=1.0)
    >>> ages = np.random.default_rng(0).normal(40, 10, 10_000)
    >>> ages[::4] = np.nan
    >>> bool(abs(mechanism(ages) - np.nanmean(ages)) < 0.5)
    True
    """

    statistic: Mean = field(default_factory=Mean)
    grid: Grid = field(kw_only=True)
    epsilon: float = field(kw_only=True)

    if TYPE_CHECKING:  # epsilon may be given exactly

        def __init__(self, statistic: Mean = ..., *, grid: Grid, epsilon: Exact) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Mean):
            raise TypeError(f"statistic must be Mean(), not {self.statistic!r}")
        check_grid(self.grid)
        if self.grid.missing != "drop":
            raise ValueError(
                f"a PresentMean leaves out missing records: the grid needs missing='drop'; "
                f"missing={self.grid.missing!r} is for dpf.GlobalSensitivity"
            )
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        checks.noise_scale(self._sensitivity, self.epsilon)
        checks.released_range(lambda: (self.mean(1, self.half_width, 0), self.mean(1, -self.half_width, 0)))

    def __repr__(self) -> str:
        grid = self.grid
        return (
            f"<PresentMean release of the {self.statistic} of records on {grid.size} points from {grid.lower!r} to "
            f"{grid.upper!r}, step {grid.step!r}: {self.privacy}>"
        )

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        """That of noise on an integer of sensitivity 2: a missing record is one of its two steps, twice."""
        return PrivacyProfile(self.privacy, (("discrete-laplace", self.epsilon, 1, 2),))

    @property
    def leaves_out(self) -> bool:
        return True

    @cached_property
    def half_width(self) -> int:
        """Half the width of the bounds, in half steps of the grid."""
        return self.grid.size - 1

    @cached_property
    def unit(self) -> int:
        """Of the noise on the sum, in half steps: sums are even where the half width is."""
        return 1 + (self.half_width + 1) % 2

    @property
    def _sensitivity(self) -> int:
        return 2 * self.half_width // self.unit

    @cached_property
    def noises(self) -> tuple[DiscreteLaplace, DiscreteLaplace]:
        """The noise on the sum, in units, and that on the number of missing records."""
        scale = checks.noise_scale(self._sensitivity, self.epsilon) or Fraction(1)
        return DiscreteLaplace(scale), DiscreteLaplace(2 / Fraction(self.epsilon))

    @cached_property
    def few(self) -> int:
        """The largest released number of missing records that counts as none."""
        return math.floor(2 * _SCALES / Fraction(self.epsilon))

    def reading(self) -> Reading:
        return PresentSums(self.grid, squares=False)

    if TYPE_CHECKING:

        def plan(self, n: SupportsIndex | None = None) -> MeanOfPresent: ...

    def _make_plan(self, n: int | None) -> Plan:
        if n is not None and checks.records(n) * self.half_width // self.unit > _MOST:
            raise ValueError(
                f"records times grid points must be below 2**61 for an even number of points and 2**62 for an odd one, "
                f"not {n} * {self.grid.size}: use a coarser step, or a number for missing records"
            )
        return MeanOfPresent(self, n)

    def law_of(self, sums: PresentSum) -> NoisyIntegers:
        """Return the exact law of the release, that of the noisy sum and the noisy number. PRIVATE."""
        noise = DiscreteLaplaces([each.scale for each in self.noises])
        center = np.array(self.centered(sums.n, sums.total, sums.absent), np.int64)
        return NoisyIntegers(center, noise=noise, most=_MOST, decode=partial(self._decode, n=sums.n))

    def centered(self, n: int, total: int, absent: int) -> tuple[int, int]:
        """Return the sum of the codes from the middle, in units, and the number of missing records."""
        return (2 * total - (n - absent) * self.half_width) // self.unit, absent

    def present(self, n: int, absent: int) -> int:
        """Return the number of records that are present, if so many of n are missing by a noisy number."""
        return n if absent <= self.few else n - absent

    def mean(self, n: int, total: int, absent: int) -> float:
        """Return the mean for a noisy sum, in units, and a noisy number of missing records among n."""
        present = self.present(n, absent)
        if present <= 0:
            total, present = 0, 1
        most = self.half_width * present
        total = min(max(self.unit * total, -most), most)
        top, bottom = self._step
        return (self._middle * present + total) * top / (2 * present * bottom)  # `scaled`, of parts that are kept

    @cached_property
    def _middle(self) -> int:
        """The middle of the bounds, in half steps."""
        return 2 * self.grid.first + self.half_width

    @cached_property
    def _step(self) -> tuple[int, int]:
        return self.grid.step.as_integer_ratio()

    def _decode(self, pairs: Integers, *, n: int) -> Any:
        made = [self.mean(n, *pair) for pair in pairs.reshape(-1, 2).tolist()]
        return np.array(made).reshape(pairs.shape[:-1]) if pairs.ndim > 1 else made[0]

    def _foreseen_of_many(self, n: int) -> Foreseen | None:
        return self._of_all._foreseen_of_many(n)

    @property
    def _of_all(self) -> GlobalSensitivity:
        """The mean of all records, whose error it is if none are missing."""
        grid = self.grid.with_missing("lower")
        return GlobalSensitivity(self.statistic, grid=grid, epsilon=self.epsilon, noise="discrete-laplace")

    def _enough(self) -> float:
        return enough_for_error(OF_NOISE, self.epsilon)

    def _expected_under(self, n: int, assumed: Assumed) -> Expected:
        return self._of_all._expected_under(n, assumed)

    def _error_under(self, n: int, assumed: Assumed, confidence: float) -> float:
        return self._of_all._error_under(n, assumed, confidence)

    def _error_of_noise(self, n: int, confidence: float) -> float:
        return self._of_all._error_of_noise(n, confidence)

    def _error_at_deviation(self, n: int, deviation: float, confidence: float) -> float:
        return self._of_all._error_at_deviation(n, deviation, confidence)


class MeanOfPresent(GroupsOfSums):
    """The plan of a `PresentMean`: of one group without the arrays of its law, of many by two kernels."""

    mechanism: PresentMean

    def __init__(self, mechanism: PresentMean, n: int | None) -> None:
        super().__init__(mechanism, n)
        self._of_sum, self._of_number = (paid_before(noise.draw) for noise in mechanism.noises)
        grid = mechanism.grid
        self._sums: dict[str, Any] = {"first": grid.first, "absent": True, **grid.with_missing("lower").kernel}

    def draw(self, values: Any, source: np.random.BitGenerator, threads: int = 1) -> float:
        n = self.n
        if n is None or isinstance(values, Chunks):
            return float(super().draw(values, source, threads))
        exact, _, unknown = _select.moments(values, workers=threads, **self._sums)
        total, absent = self.pair(n, exact, unknown, source)
        return self.mechanism.mean(n, total, absent)

    def draw_from(self, sums: PresentSum, source: np.random.BitGenerator) -> float:
        total, absent = self.pair(sums.n, sums.total, sums.absent, source)
        return self.mechanism.mean(sums.n, total, absent)

    def pair(self, n: int, total: int, absent: int, source: np.random.BitGenerator) -> tuple[int, int]:
        """Draw the noisy sum, in units, and the noisy number of missing records, from the exact ones."""
        total, absent = self.mechanism.centered(n, total, absent)
        total += self._of_sum(source)
        return total, absent + self._of_number(source)

    def groups(self, values: Any, groups: Grouping, threads: int = 1) -> Draw:
        if isinstance(values, Counted) or not self._fits(len(values)):
            return Plan.groups(self, values, groups, threads)
        mechanism = self.mechanism
        h, unit, epsilon = mechanism.half_width, mechanism.unit, mechanism.epsilon
        codes = self._codes(values)
        present, totals = groups.sums(codes, h, half=False, squares=False).T
        sizes = groups.sums(np.where(codes < 0, 0, codes), h, half=False, squares=False)[:, 0]
        centers = (2 * totals - present * h + sizes * h) // unit
        lasts = np.where(sizes == 0, -1, sizes * (2 * h) // unit)
        # Of each group the sum and the number, one after the other: a number has noise for 1 at epsilon / 2.
        exact, ends = np.stack([centers, sizes - present], axis=1), np.stack([lasts, sizes], axis=1)
        changes = np.tile(np.array([max(mechanism._sensitivity, 1), 2]), len(sizes))

        def draw(start: int, stop: int, source: np.random.BitGenerator) -> NDArray[np.float64]:
            refuse(STEP, mechanism)  # it may have been made outside of a ledger
            noisy, part = exact[start:stop].reshape(-1), slice(2 * start, 2 * stop)
            _samplers.add_discrete_laplace(source, changes[part], epsilon, ends.reshape(-1)[part], h, noisy)
            return self._means(noisy[::2], noisy[1::2], sizes[start:stop])

        return draw

    def _means(self, sums: Integers, absent: Integers, sizes: Integers) -> NDArray[np.float64]:
        """Return the means of groups, as `PresentMean.mean` does; of an empty group the point of code `sums`."""
        mechanism, grid = self.mechanism, self.mechanism.grid
        h, out = mechanism.half_width, np.empty(len(sums))
        present = np.where(absent <= mechanism.few, sizes, sizes - absent)
        totals = np.where(present > 0, mechanism.unit * sums - sizes * h, 0)
        present = np.maximum(present, 1)
        totals = np.minimum(np.maximum(totals, -h * present), h * present)
        _segments.quotients(mechanism._middle * present + totals, 2 * present, grid.step, out)
        empty = np.flatnonzero(sizes == 0)
        out[empty] = grid.decode(sums[empty])
        return out
