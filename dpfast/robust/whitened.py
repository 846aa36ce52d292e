"""Robust location in d dimensions in coordinates that are whitened by a private covariance."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast.choosing import split
from dpfast.core import checks, containers
from dpfast.core.grid import Grid, check_number, coarser
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.spending import spending
from dpfast.core.tabular import Declared
from dpfast.core.traps import Cautious
from dpfast.core.types import Records
from dpfast.domains import Ball
from dpfast.mechanisms import Covariance
from dpfast.random import RandomSource, bit_generator
from dpfast.robust.boxes import NestedBoxes
from dpfast.robust.grids import OnGrids
from dpfast.robust.independent import IndependentColumns
from dpfast.statistics import InterquartileRange, Median, RankStatistic

Values = NDArray[np.float64]

_LOCATION, _SCALE, _COVARIANCE = (
    Fraction(1, 8),
    Fraction(1, 8),
    Fraction(1, 4),
)  # of epsilon; the rest is for the release
_NORMAL_RANGE = 1.3489795003921634  # the interquartile range of the standard normal distribution
_FIRST_SIZE = 2**24  # points of a grid for location and scale
_REACH, _STEP = 64.0, 2.0**-20  # of the grid in whitened coordinates
_LEAST_VARIANCE = 2.0**-20  # of a direction, relative to the columns


@dataclass(frozen=True)
class Whitened(Declared, Cautious):
    """The steps of a robust location in whitened coordinates, by public numbers; a call makes them, with one charge.

    A location and a scale of each column, with an eighth of epsilon each, standardise the columns; a quarter is for the
    covariance of the standardised records, in which rows far from the location are moved to the surface of a ball; the
    medians of the whitened records get the rest, and are mapped back. Each step is private given the releases of the
    earlier ones, so that their budgets add up to epsilon and delta. The number of records is public; neighbours differ
    in one.

    Parameters
    ----------
    grids : tuple of Grid
        One for each column.
    epsilon, delta : float
        Of all steps together. With a delta, the covariance has Gaussian noise, for half of it.
    statistic : RankStatistic
        Of the columns of whitened records.
    """

    grids: tuple[Grid, ...]
    epsilon: float = field(kw_only=True)
    delta: float = field(kw_only=True, default=0.0)
    statistic: RankStatistic = field(kw_only=True, default_factory=Median)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        object.__setattr__(self, "delta", checks.delta_down(self.delta))
        for grid in self.grids:
            check_number(grid)
            InterquartileRange().last(grid, 1)  # reject bounds whose distance is not a double
        self.steps  # noqa: B018  # reject parameters that a step does not support

    def _share(self, part: Fraction) -> float:
        return checks.positive_down("epsilon", part * Fraction(self.epsilon))

    @cached_property
    def steps(self) -> tuple[NestedBoxes, NestedBoxes, Covariance, OnGrids]:
        """The mechanisms of location, scale, covariance and release."""
        d, grids = len(self.grids), tuple(coarser(grid, _FIRST_SIZE) for grid in self.grids)
        whitened, rest = Grid(-_REACH, _REACH, step=_STEP), self._share(1 - _LOCATION - _SCALE - _COVARIANCE)
        release: OnGrids = NestedBoxes(self.statistic, grid=whitened, epsilon=rest)
        if self.delta:
            half = self.delta / 2
            columns = IndependentColumns(self.statistic, grid=whitened, dimension=d, epsilon=rest, delta=half)
            release = columns if columns.favoured else release
        return (
            NestedBoxes(grid=grids, epsilon=self._share(_LOCATION)),
            NestedBoxes(InterquartileRange(), grid=grids, epsilon=self._share(_SCALE)),
            Covariance(
                domain=Ball(math.sqrt(2 * (d + 2))),
                epsilon=self._share(_COVARIANCE),
                delta=self.delta / 2,
                centered=False,
            ),
            release,
        )

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        parts = [part for step in self.steps for part in step.privacy_profile.parts]
        return PrivacyProfile(self.privacy, tuple(parts), failure=0.0)

    def explanation(self, n: SupportsIndex | None = None) -> str:
        """Return a short text about the release, from public numbers; see `Mechanism.explanation`."""
        *_, release = self.steps
        parts = {"locations": _LOCATION, "scales": _SCALE, "the covariance": _COVARIANCE}
        rest = 1 - _LOCATION - _SCALE - _COVARIANCE
        parts[f"a {type(release).__name__} release in whitened coordinates"] = rest
        return (
            f"Release of the coordinate-wise {self.statistic} of {len(self.grids)} whitened columns: {self.privacy}.\n"
            f"{split(parts)}.\n"
            "A row with NaN counts as one at the lower bounds, and for the covariance as the center."
        )

    def __call__(self, X: Records, *, rng: RandomSource = None, workers: int = 1) -> Values:
        source, threads = bit_generator(rng), checks.threads(workers)
        location, scale, covariance, release = self.steps
        rows = containers.matrix("X", X)
        if rows.shape[1] != len(self.grids):
            raise ValueError(f"X must have {len(self.grids)} columns, like grid, not {rows.shape[1]}")
        n = checks.records(len(rows))
        options: dict[str, Any] = {"rng": source, "workers": threads}
        with spending(self.privacy_profile, label=f"robust_mean of {rows.shape[1]} whitened columns"):
            center = location(rows, **options)
            width = np.maximum(scale(rows, **options) / _NORMAL_RANGE, [grid.step for grid in self.grids])
            lower, upper = np.array([(grid.lower, grid.upper) for grid in self.grids]).T
            with np.errstate(all="ignore"):  # overflow to infinity, NaN
                standard = (np.clip(rows.astype(np.float64), lower, upper) - center) / width
            variances, axes = np.linalg.eigh(covariance(standard, **options))
            deviations = np.sqrt(np.maximum(variances, self.least_variance(n)))
            whitening = tuple(map(tuple, ((axes / deviations) @ axes.T).tolist()))
            moved = replace(release, transform=whitening)(standard, **options)
            with np.errstate(over="ignore"):
                found: Values = np.clip(center + width * moved, lower, upper)
            return found

    def least_variance(self, n: SupportsIndex) -> float:
        """About the size of the noise in the eigenvalues of the covariance, which are not known below it. Public."""
        covariance, n, d = self.steps[2], checks.whole("n", n, least=1), len(self.grids)
        noise = (
            covariance.domain.radius**2 / (n * covariance.amount) * (1 if covariance.gaussian_mu else math.sqrt(2 * d))
        )
        return min(max(2 * math.sqrt(d) * noise, _LEAST_VARIANCE), 1.0)
