"""Running totals: a count, sum, mean or histogram after each of many periods, under one guarantee."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn, SupportsIndex

from numpy.typing import NDArray

from dpfast.core import checks
from dpfast.core.divergences import gaussian_mu_down
from dpfast.core.grid import Grid, Points, check_missing
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.rounding import root_down, up
from dpfast.densities import Bins, Categories
from dpfast.mechanisms.factors import square_root
from dpfast.mechanisms.plan import resolutions
from dpfast.random import RandomSource
from dpfast.running.contents import Contents, contents_of
from dpfast.running.files import StateFile
from dpfast.running.schemes import MOST_PERIODS, Factored, Scheme, Tree, best_tree
from dpfast.running.started import Started
from dpfast.running.state import PeriodRecords, RunningState
from dpfast.statistics import Statistic
from dpfast.streaming import Reading

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
    periods : int
        The greatest number of releases, 1 to 2**20.
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
    the rounded square root of the matrix A of ones; the noise has the scale of the norm of its first column, and the
    estimates are ``A C**-1`` of the noisy numbers, without the exact ones. Without, the sums of blocks of 1, b, b**2,
    ... periods have discrete Laplace noise, and the estimates are by least squares. No float decides the noise, and
    records may depend on earlier releases (https://dpfast.readthedocs.io/en/latest/proofs/running.html).
    The greatest standard error of 24, 365 and 10,000 counts is 2.07, 2.94 and 4.00 times that of one count for the same
    mu; for the same epsilon, it is 0.6 times that of a binary tree with the same estimates. A sum whose steps are finer
    than 2**-16 of the change by one record is rounded to coarser steps.
    Cost: memory of all periods with Gaussian noise, and time proportional to those so far for each release: 10 us at
    1,000 periods. With trees, both are logarithmic.

    References
    ----------
    Fichtenberger, Henzinger and Upadhyay 2023, "Constant matters: fine-grained complexity of differentially private
    continual observation"; Honaker 2015, "Efficient use of differentially private binary trees".

    Examples
    --------
    >>> import dpfast as dpf
    >>> visits = dpf.Running(dpf.statistics.Count(), periods=365, rho=0.5, neighbors="add-remove")
    >>> round(visits.error(365), 2)
    2.94
    >>> state = visits.start()
    >>> for day in range(3):
    ...     state.update(range(100))
    ...     total = state.release()
    >>> state.period, abs(total - 300) < 30
    (3, True)
    """

    statistic: Statistic | Bins | Categories
    grid: Grid | None = field(kw_only=True, default=None)
    periods: int = field(kw_only=True)
    epsilon: float | None = field(kw_only=True, default=None)
    delta: float = field(kw_only=True, default=0.0)
    rho: float | None = field(kw_only=True, default=None)
    mu: float | None = field(kw_only=True, default=None)
    neighbors: str = field(kw_only=True, default="replace-one")
    per_unit: int = field(kw_only=True, default=1)
    noise: str = field(kw_only=True, default="auto")

    def __post_init__(self) -> None:
        given = [name for name in ("epsilon", "rho", "mu") if getattr(self, name) is not None]
        if len(given) != 1 or (given != ["epsilon"] and self.delta):
            raise TypeError("give epsilon, with or without delta, or rho, or mu")
        object.__setattr__(self, given[0], checks.positive_down(given[0], getattr(self, given[0])))
        object.__setattr__(self, "delta", checks.delta_down(self.delta))
        for name in ("periods", "per_unit"):
            object.__setattr__(self, name, checks.whole(name, getattr(self, name), least=1))
        if self.periods > MOST_PERIODS:
            raise ValueError(f"periods must be at most 2**20, not {self.periods}")
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
        contents = self.contents
        schemes: list[Scheme] = []
        if self.noise != "discrete-laplace" and self.gaussian_mu is not None:
            factor = square_root(self.periods)
            schemes.append(Factored(factor, square=contents.square, per_unit=self.per_unit, mu=self.gaussian_mu))
        if self.noise != "gaussian" and self.epsilon is not None:
            options = {"change": contents.change, "per_unit": self.per_unit, "epsilon": self.epsilon}
            schemes.append(best_tree(self.periods, **options))
        if not schemes:
            needed = "a positive delta, rho or mu" if self.noise == "gaussian" else "epsilon"
            raise ValueError(f"noise={self.noise!r} needs {needed}")
        return min(schemes, key=lambda scheme: scheme.greatest_deviation(self.periods))

    @property
    def privacy(self) -> Privacy:
        """The guarantee of all periods together."""
        one = self.per_unit == 1
        group = {} if one else {"per_unit": self.per_unit} if self.hides_n else {"records": self.per_unit}
        if self.epsilon is not None:
            delta = 0.0 if isinstance(self.scheme, Tree) else self.delta
            return Privacy(self.epsilon, delta, self.neighbors, **group)
        return Privacy(rho=self.rho, mu=self.mu, neighbors=self.neighbors, **group)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        """The guarantee that a `dpfast.Ledger` composes."""
        scheme, contents = self.scheme, self.contents
        if not isinstance(scheme, Tree):
            assert self.gaussian_mu is not None
            return PrivacyProfile(self.privacy, (("gaussian", self.gaussian_mu, 1),))
        if self.per_unit > 1:
            return PrivacyProfile(self.privacy)
        counts = contents.change if contents.shape else 1  # that a record changes, each by `steps`
        changed, steps = counts * scheme.levels, contents.change // counts
        assert self.epsilon is not None
        part = ("discrete-laplace", up(Fraction(self.epsilon) / changed), changed, steps)
        return PrivacyProfile(self.privacy, (part,))

    def __repr__(self) -> str:
        what = "histogram" if self.contents.shape else str(self.statistic)
        return f"<Running release of the {what} after each of {self.periods} periods: {self.privacy}>"

    def explanation(self) -> str:
        """Return a short text about the releases: guarantee, noise and error. Public.

        Examples
        --------
        >>> import dpfast as dpf
        >>> print(dpf.Running(dpf.statistics.Count(), periods=24, epsilon=1.0, neighbors="add-remove").explanation())
        Running release of the count after each of 24 periods: epsilon = 1 (pure differential privacy) for one record \
added or removed.
        Discrete Laplace noise on sums of blocks of 1 period.
        The standard error of a total is at most 6.65.
        """
        scheme = self.scheme
        if isinstance(scheme, Tree):
            sizes = ", ".join(str(scheme.branches**level) for level in range(scheme.levels))
            how = f"Discrete Laplace noise on sums of blocks of {sizes} period{'s' * (scheme.levels > 1)}"
        else:
            how = "Gaussian noise on sums weighted by the square root of the matrix of ones"
        error = f"The standard error of a total is at most {self.error(self.periods):.3g}"
        return "\n".join(f"{part}." for part in (repr(self).strip("<>"), how, error))

    def error(self, t: SupportsIndex) -> float:
        """Return the greatest standard error of the first t totals, in data units; of a mean that of the sums.

        It is public, and that of the noise alone.
        """
        period = checks.whole("t", t, least=1)
        if period > self.periods:
            raise ValueError(f"t must be at most the number of periods, {self.periods}, not {period}")
        return self.scheme.greatest_deviation(period) * self.contents.unit

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

    def resolved(self, values: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Yield the records of a chunk with missing ones resolved."""
        return resolutions(values, self.points) if any(grid.resolves for grid in self.points) else iter((values,))

    def plan(self, n: int | None = None) -> NoReturn:
        """Refuse: a part of a period has no release."""
        raise TypeError("a part has no release of its own: merge it into the RunningState of all periods")
