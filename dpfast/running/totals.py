"""Running totals: a count, sum, mean or histogram after each of many periods, under one guarantee."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import Any, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression

from dpfast.core import checks, plotting
from dpfast.core.divergences import gaussian_mu_down
from dpfast.core.grid import Grid, Points, check_missing
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.rounding import root_down, up
from dpfast.densities import Bins, Categories
from dpfast.mechanisms.plan import resolutions
from dpfast.random import RandomSource
from dpfast.running.contents import Binned, Contents, Numbered, contents_of
from dpfast.running.files import StateFile
from dpfast.running.schemes import MOST_PERIODS, Growing, Scheme, Tree, best_tree, factored
from dpfast.running.started import Started
from dpfast.running.state import PeriodRecords, RunningState
from dpfast.statistics import Mean, Statistic
from dpfast.streaming import Reading

_USUAL_PERIODS = 4096  # for the choice of the noise, if their number is not known
_NOISES = ("auto", "gaussian", "discrete-laplace")


@dataclass(frozen=True, repr=False)
class Running(Started["RunningState"]):
    """Release the total of all records so far after each of many periods, under one guarantee for all of them.

    Epsilon, delta, rho or mu is that of all periods together, and charged once, when a state is started. A record is in
    one period.

    Parameters
    ----------
    statistic : dpfast.statistics.Count, Sum or Mean, or Bins or Categories
        What is released after each period; for Bins and Categories the number of records in each cell. Bins without
        a grid divide floats within their bounds.
    grid : Grid
        Public bounds and granularity of the records of a sum or mean; a count needs none.
    periods : int, optional
        The greatest number of releases, 1 to 2**20. Default: not known, for 1.4 to 1.9 times the standard error.
    epsilon : float
        Positive, for all periods; rounded down to a double. Or `rho`, or `mu`.
    delta : float
        In [0, 1), with epsilon. If it is positive, the noise may be Gaussian.
    rho, mu : float
        The guarantee in zero-concentrated or Gaussian differential privacy, instead of epsilon.
    neighbors : {"replace-one", "add-remove"}
        "replace-one": a record is replaced by another one in the same period, and the number of records of each period
        is public; the noise of a count is enough for a record more or less. "add-remove": the numbers are private.
    per_unit : int
        The guarantee is for a unit, such as a person, with at most one record in each of so many periods, all of which
        change together.
    distance : int
        Two records of a unit are at least so many periods apart: a promise of yours, which makes the noise smaller.
    noise : {"auto", "gaussian", "discrete-laplace"}
        "auto" takes the noise with the lesser greatest error, from public numbers. "discrete-laplace" is pure and needs
        epsilon; "gaussian" needs delta, rho or mu.

    Raises
    ------
    TypeError, ValueError
        An invalid parameter, before any data are read.

    Notes
    -----
    Privacy: with Gaussian noise, the sums x of the periods, which are integers, are multiplied by an integer matrix C,
    the rounded square root of the matrix A of ones; for units of one record and up to 4,096 periods its columns are
    made equally long. The noise has the scale of the greatest norm of a column, and the estimates are ``A C**-1`` of
    the noisy numbers, without the exact ones. Without, the sums of nested blocks of periods have discrete Laplace
    noise, and the estimates are by least squares. No float decides the noise, and records may depend on earlier
    releases (https://dpfast.readthedocs.io/en/latest/proofs/running.html).
    The greatest standard error of 24, 365 and 10,000 counts is 1.91, 2.76 and 4.00 times that of one count for the same
    mu; for the same epsilon, it is 0.47 to 0.56 times that of a binary tree with the same estimates. A sum whose steps
    are finer than 2**-16 of the change by one record is rounded to coarser steps.
    Cost: memory of all periods with Gaussian noise, and time proportional to those so far for each release: 10 us at
    1,000 periods. With trees, both are logarithmic.

    References
    ----------
    Fichtenberger, Henzinger and Upadhyay 2023, "Constant matters: fine-grained complexity of differentially private
    continual observation"; Kalinin, McKenna, Upadhyay and Lampert 2025, "Back to square roots"; Honaker 2015,
    "Efficient use of differentially private binary trees".

    Examples
    --------
    >>> import dpfast as dpf
    >>> visits = dpf.Running(dpf.statistics.Count(), periods=365, rho=0.5, neighbors="add-remove")
    >>> round(visits.error(365), 2)
    2.76
    >>> state = visits.start()
    >>> for day in range(3):
    ...     state.update(range(100))
    ...     total = state.release()
    >>> state.period, abs(total - 300) < 30
    (3, True)
    """

    statistic: Statistic | Bins | Categories
    grid: Grid | None = field(kw_only=True, default=None)
    periods: int | None = field(kw_only=True, default=None)
    epsilon: float | None = field(kw_only=True, default=None)
    delta: float = field(kw_only=True, default=0.0)
    rho: float | None = field(kw_only=True, default=None)
    mu: float | None = field(kw_only=True, default=None)
    neighbors: str = field(kw_only=True, default="replace-one")
    per_unit: int = field(kw_only=True, default=1)
    distance: int = field(kw_only=True, default=1)
    noise: str = field(kw_only=True, default="auto")

    def __post_init__(self) -> None:
        given = [name for name in ("epsilon", "rho", "mu") if getattr(self, name) is not None]
        if len(given) != 1 or (given != ["epsilon"] and self.delta):
            raise TypeError("give epsilon, with or without delta, or rho, or mu")
        object.__setattr__(self, given[0], checks.positive_down(given[0], getattr(self, given[0])))
        object.__setattr__(self, "delta", checks.delta_down(self.delta))
        object.__setattr__(self, "per_unit", checks.whole("per_unit", self.per_unit, least=1))
        object.__setattr__(self, "distance", checks.whole("distance", self.distance, least=1))
        if self.distance > 1 and self.per_unit == 1:
            raise ValueError(f"distance={self.distance} needs per_unit above 1: it is that of two records of a unit")
        if self.periods is not None:
            object.__setattr__(self, "periods", checks.whole("periods", self.periods, least=1))
            if self.periods > MOST_PERIODS:
                raise ValueError(f"periods must be at most 2**20, or left out, not {self.periods}")
        elif self.per_unit > 1:
            raise ValueError(f"periods must be given for per_unit={self.per_unit}")
        checks.choice("neighbors", self.neighbors, ("replace-one", "add-remove"))
        checks.choice("noise", self.noise, _NOISES)
        self.contents  # noqa: B018  # reject a statistic or a grid
        self.check_missing()
        self.scheme  # noqa: B018  # reject too small a budget

    @property
    def hides_n(self) -> bool:
        """Whether the numbers of records are private."""
        return self.neighbors == "add-remove"

    @cached_property
    def contents(self) -> Contents:
        """What is totalled."""
        return contents_of(self.statistic, self.grid, hides_n=self.hides_n)

    @property
    def gaussian_mu(self) -> float | None:
        """The guarantee of Gaussian noise in Gaussian differential privacy; None without delta, rho or mu."""
        if self.mu is not None:
            return self.mu
        if self.rho is not None:
            return root_down(2 * Fraction(self.rho)) or None
        assert self.epsilon is not None
        return gaussian_mu_down(self.epsilon, self.delta) if self.delta else None

    @cached_property
    def scheme(self) -> Scheme:
        """The noise and the estimates, chosen by public numbers."""
        contents, units = self.contents, {"per_unit": self.per_unit, "distance": self.distance}
        makers: list[Callable[[int], Scheme]] = []
        if self.noise != "discrete-laplace" and (mu := self.gaussian_mu) is not None:
            makers.append(lambda periods: factored(periods, square=contents.square, mu=mu, **units))
        if self.noise != "gaussian" and self.epsilon is not None:
            changed: dict[str, Any] = {"change": contents.change, "epsilon": self.epsilon, **units}
            makers.append(lambda periods: best_tree(periods, **changed))
        if not makers:
            needed = "a positive delta, rho or mu" if self.noise == "gaussian" else "epsilon"
            raise ValueError(f"noise={self.noise!r} needs {needed}")
        periods = self.periods
        schemes = [Growing(make) if periods is None else make(periods) for make in makers]
        return min(schemes, key=lambda scheme: scheme.greatest_deviation(periods or _USUAL_PERIODS))

    @property
    def privacy(self) -> Privacy:
        """The guarantee of all periods together."""
        one = self.per_unit == 1
        group = {} if one else {"per_unit": self.per_unit} if self.hides_n else {"records": self.per_unit}
        if self.epsilon is not None:
            delta = self.delta if self.scheme.gaussian else 0.0
            return Privacy(self.epsilon, delta, self.neighbors, **group)
        return Privacy(rho=self.rho, mu=self.mu, neighbors=self.neighbors, **group)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        """The guarantee that a `dpfast.Ledger` composes."""
        scheme, contents = self.scheme, self.contents
        if scheme.gaussian:
            assert self.gaussian_mu is not None
            return PrivacyProfile(self.privacy, (("gaussian", self.gaussian_mu, 1),))
        if self.per_unit > 1 or not isinstance(scheme, Tree):
            return PrivacyProfile(self.privacy)
        counts = contents.change if contents.shape else 1  # that a record changes, each by `steps`
        changed, steps = counts * scheme.levels, contents.change // counts
        assert self.epsilon is not None
        part = ("discrete-laplace", up(Fraction(self.epsilon) / changed), changed, steps)
        return PrivacyProfile(self.privacy, (part,))

    def __repr__(self) -> str:
        what = "histogram" if self.contents.shape else str(self.statistic)
        periods = "any number of" if self.periods is None else self.periods
        apart = f", at least {self.distance} periods apart" if self.distance > 1 else ""
        return f"<Running release of the {what} after each of {periods} periods: {self.privacy}{apart}>"

    def explanation(self) -> str:
        """Return a short text about the releases: guarantee, noise and error. Public.

        Examples
        --------
        >>> import dpfast as dpf
        >>> print(dpf.Running(dpf.statistics.Count(), periods=24, epsilon=1.0, neighbors="add-remove").explanation())
        Running release of the count after each of 24 periods: epsilon = 1 (pure differential privacy) for one record \
added or removed.
        Discrete Laplace noise on sums of single periods, of which a total takes at most 24.
        The standard error of a total is at most 6.65.
        """
        scheme, periods = self.scheme, self.periods
        if scheme.gaussian:
            how = "Gaussian noise on sums weighted by the square root of the matrix of ones"
        elif isinstance(scheme, Tree):
            nested = f"nested blocks of periods of {scheme.levels} levels" if scheme.levels > 1 else "single periods"
            how = f"Discrete Laplace noise on sums of {nested}, of which a total takes at most {scheme.blocks}"
        else:
            how = "Discrete Laplace noise on sums of blocks of periods"
        first = "" if periods else f" after {_USUAL_PERIODS} periods"
        error = f"The standard error of a total is at most {self.error(periods or _USUAL_PERIODS):.3g}{first}"
        return "\n".join(f"{part}." for part in (repr(self).strip("<>"), how, error))

    def error(self, t: SupportsIndex) -> float:
        """Return the greatest standard error of the first t totals, in data units; of a mean that of the sums.

        It is public, and that of the noise alone.
        """
        return self.scheme.greatest_deviation(self._period("t", t)) * self.contents.unit

    def standard_error(self, t: SupportsIndex, since: SupportsIndex = 0) -> float:
        """Return the standard error of the total after period t, or of its difference to that after period `since`.

        It is public, in data units; of a mean that of the sums. The difference is the sum of the periods between.

        Examples
        --------
        >>> import dpfast as dpf
        >>> visits = dpf.Running(dpf.statistics.Count(), periods=365, mu=1.0)
        >>> [round(visits.standard_error(*t), 2) for t in [(365,), (365, 364), (365, 335)]]
        [2.4, 1.13, 2.44]
        """
        late, early = self._period("t", t), checks.whole("since", since)
        if early >= late:
            raise ValueError(f"since must be less than t, {late}, not {early}")
        scheme = self.scheme
        return (scheme.difference(early, late) if early else scheme.deviation(late)) * self.contents.unit

    def noise_interval(
        self, total: ArrayLike, t: SupportsIndex, since: SupportsIndex = 0, *, confidence: float = 0.95
    ) -> tuple[Any, Any]:
        """Return the exact totals for which the noise leads to this one with probability `confidence`, for each entry.

        Parameters
        ----------
        total : float, or array_like
            The release of a count, sum or cells after period t, or its difference to that after `since`. Of a mean:
            `RunningState.standard_error`.
        t, since : int
            See `standard_error`.
        confidence : float
            In (0, 1). The sum of several discrete Laplace draws is taken for one, or normal, whichever is wider, and
            half a step added.

        Returns
        -------
        low, high : float or ndarray

        Examples
        --------
        >>> import dpfast as dpf
        >>> visits = dpf.Running(dpf.statistics.Count(), periods=365, mu=1.0)
        >>> [round(end, 1) for end in visits.noise_interval(1000.0, 365)]
        [995.3, 1004.7]
        """
        if isinstance(self.statistic, Mean):
            raise TypeError("the error of a mean depends on the number of records: use standard_error of the state")
        missed = 1 - checks.between("confidence", confidence, 0, 1)
        width, pure = NormalDist().inv_cdf(1 - missed / 2), not self.scheme.gaussian
        if pure:
            width = max(width, -math.log(missed) / math.sqrt(2))
        reach = width * self.standard_error(t, since) + pure * self.contents.unit / 2
        value: Any = np.asarray(total, np.float64)
        return (value - reach, value + reach) if value.ndim else (float(value) - reach, float(value) + reach)

    def monotone(self, totals: ArrayLike) -> NDArray[np.float64]:
        """Return the nearest totals that do not decrease and are not negative, for counts and cells.

        Post-processing of the releases after the first periods, in order, in an array of shape (t,) or (t, cells), for
        a look back: each depends on all of them. It is least squares, weighted by the inverse of their variances.
        """
        values = np.asarray(totals, np.float64)
        if not isinstance(self.contents, (Numbered, Binned)):
            raise TypeError(f"totals of {self.statistic} may decrease: only numbers of records do not")
        if not values.size or values.shape[1:] != self.contents.shape or not np.isfinite(values).all():
            raise ValueError(f"totals must be finite, one row for each period, not of shape {values.shape}")
        weights = [self.standard_error(t) ** -2 for t in range(1, len(values) + 1)]
        increasing = np.apply_along_axis(lambda column: isotonic_regression(column, weights=weights).x, 0, values)
        return np.asarray(np.maximum(increasing, 0.0))

    def plot(self, totals: ArrayLike, ax: Any = None, *, confidence: float = 0.95, unit: str | None = None) -> Any:
        """Plot the totals of a count or sum after the first periods with Matplotlib, and the range of their noise.

        Parameters
        ----------
        totals : array_like of shape (t,)
            The releases, in order.
        ax : matplotlib.axes.Axes, optional
            Default: the current axes.
        confidence : float
            Of the range of each total, see `noise_interval`.
        unit : str, optional
            The unit of the totals, for the label.

        Returns
        -------
        matplotlib.axes.Axes
        """
        values = np.asarray(totals, np.float64)
        if values.ndim != 1 or not values.size or self.contents.shape:
            raise ValueError(f"totals must be one number for each period, not of shape {values.shape}")
        periods = np.arange(1, len(values) + 1)
        ends = [self.noise_interval(value, t, confidence=confidence) for t, value in zip(periods, values, strict=True)]
        low, high = np.array(ends).T
        ax = plotting.axes(ax)
        ax.fill_between(periods, low, high, step="post", color=plotting.SKY, alpha=0.6, linewidth=0)
        ax.step(periods, values, where="post", color=plotting.ink(ax), linewidth=1)
        ax.set_xlabel("period")
        ax.set_ylabel(plotting.with_unit("total", unit))
        plotting.whole_ticks(ax.xaxis)
        band = f"band: the noise of each total with probability {plotting.percent(confidence)}"
        plotting.entitle(ax, f"Running {self.statistic}", f"{self.privacy}; {band}")
        return ax

    def _period(self, name: str, t: SupportsIndex) -> int:
        period = checks.whole(name, t, least=1)
        if self.periods is not None and period > self.periods:
            raise ValueError(f"{name} must be at most the number of periods, {self.periods}, not {period}")
        return period

    @property
    def header(self) -> dict[str, Any]:
        return {"noise": self.scheme.described}

    def _begin(self, rng: RandomSource, file: StateFile | None) -> RunningState:
        return RunningState(self, rng, file)

    # ---- the readings of the records of a period ----

    def part(self) -> PeriodRecords:
        """Return an empty part of a period, for the records of one of several workers."""
        return PeriodRecords(self)

    @property
    def points(self) -> tuple[Points, ...]:
        return self.contents.points

    def check_missing(self) -> None:
        """Raise a ValueError if the policy for missing records does not fit the guarantee."""
        check_missing(type(self).__name__, self.points, hides_n=self.hides_n)

    def reading(self) -> Reading:
        """Return an empty reading of the records of a period."""
        return self.contents.reading()

    @property
    def resolving(self) -> tuple[Points, ...]:
        """The grids by which missing records are resolved before they are read; none if none are."""
        return self.points if any(grid.resolves for grid in self.points) else ()

    def resolved(self, values: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Yield the records of a chunk with missing ones resolved."""
        return resolutions(values, self.resolving) if self.resolving else iter((values,))

    def plan(self, n: int | None = None) -> NoReturn:
        """Refuse: a part of a period has no release."""
        raise TypeError("a part has no release of its own: merge it into the RunningState of all periods")
