"""Means and sums of records in rows, with noise on all coordinates at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import SupportsIndex, cast

import numpy as np
from numpy.typing import NDArray

from dpfast.core import checks
from dpfast.core.divergences import gaussian_mu_down
from dpfast.core.grid import Points
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.rounding import root_up, up
from dpfast.domains import Ball, Box, Domain
from dpfast.laws import (
    DiscreteLaplace,
    Independent,
    LatticeBox,
    NoisyIntegers,
    RoundedBall,
    RoundedBox,
    RoundedGaussian,
    RoundedGaussians,
    VectorNoise,
)
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.plan import Plan
from dpfast.mechanisms.usefulness import enough_for_error
from dpfast.statistics import Mean, Statistic, Sum
from dpfast.streaming import RowSums, VectorSums

_MOST = 2**61  # steps in a sum
_MOST_SCALE = 2.0**54


@dataclass(frozen=True, repr=False)
class NoisySums(Mechanism):
    """Release the mean or the sum of records in d dimensions, with noise on all coordinates at once.

    (epsilon, delta)-differential privacy under one replaced record (row); the number of records is public. For
    sums also under one record added or removed, with a private number of records. Pure for noise by a norm.

    Parameters
    ----------
    statistic : dpfast.statistics.Mean or Sum
    domain : dpfast.domains.Box or Ball
        The public domain of the rows, in data units. For the sum with a private number of records the center of a ball
        must be 0.
    epsilon : float
        Positive, for all coordinates together; rounded down to a double.
    delta : float
        At least 0 and below 1; rounded down to a double.
    neighbors : {"replace-one", "add-remove"}
        With "add-remove", an array without rows is valid input, and the release is clamped to +-2**61 steps, or to 0 on
        a side of a box where 0 is a bound.
    noise : {"auto", "gaussian", "k-norm"}
        "gaussian" needs a positive delta. "k-norm" has a density proportional to ``exp(-epsilon ||z||)``; the unit ball
        of the norm is the box or ball of the possible changes of a sum. "auto" takes the noise of less expected size if
        the domain gives the number of columns, else Gaussian noise if delta is positive; the attribute holds the
        choice.

    Raises
    ------
    TypeError, ValueError
        From the constructor: a wrong parameter. From a call: a wrong shape; once n is known: n times the number of grid
        points, or of steps in the radius, is 2**61 or more, or the largest release exceeds float64.

    Notes
    -----
    Privacy: the sum of the codes of the rows is a vector of integers, computed exactly. In a ball of radius R, one
    replaced record changes it by at most 2 R in the l2 norm, one added or removed by R. In a box, coordinate j changes
    by at most its width w_j. Gaussian noise has the deviation 2 R / mu, or ``sqrt(d) w_j / mu``, for the largest mu
    that epsilon and delta allow. All noise is rounded to integers, and no float decides it or the norm of a code. The
    rest is post-processing: means and sums of a box are clamped to the bounds; those of a ball are moved to its nearest
    point, which is never farther from a mean in the ball (https://dpfast.readthedocs.io/en/latest/proofs/rows.html,
    https://dpfast.readthedocs.io/en/latest/proofs/knorm.html).
    K-norm noise is discrete Laplace for one column, and that of `dpfast.laws.LatticeBox` for two or three of a box.
    Cost: one pass over X, about half of ``X.mean(axis=0)`` in a box, 0.8 times in a ball.

    References
    ----------
    Balle and Wang 2018, "Improving the Gaussian mechanism for differential privacy"; Hardt and Talwar 2010, "On the
    geometry of differential privacy"; Awan and Slavkovic 2021, "Structure and sensitivity in differential privacy".

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> X = np.random.default_rng(0).normal(size=(10_000, 3)) / 4
    >>> mechanism = dpf.NoisySums(dpf.statistics.Mean(), domain=dpf.domains.Ball(1.0), epsilon=1.0, delta=1e-6)
    >>> mechanism
    <NoisySums release of the mean of rows in a ball of radius 1.0 around 0.0, step 2.9802322387695312e-08: \
epsilon = 1, delta = 1e-06 for one record replaced (the number of records is public)>
    >>> bool(np.abs(mechanism(X)).max() < 0.01)
    True
    """

    statistic: Statistic
    domain: Domain = field(kw_only=True)
    epsilon: float = field(kw_only=True)
    delta: float = field(kw_only=True, default=0.0)
    neighbors: str = field(kw_only=True, default="replace-one")
    noise: str = field(kw_only=True, default="auto")

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, (Mean, Sum)):
            raise TypeError(f"statistic must be Mean() or Sum() for rows, not {self.statistic!r}")
        if not isinstance(self.domain, (Box, Ball)):
            raise TypeError(f"domain must be a dpfast.domains.Box or Ball, not {type(self.domain).__name__}")
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        object.__setattr__(self, "delta", checks.delta_down(self.delta))
        checks.choice("neighbors", self.neighbors, ("replace-one", "add-remove"))
        checks.choice("noise", self.noise, ("auto", "gaussian", "k-norm"))
        if self.noise == "auto":
            object.__setattr__(self, "noise", better_noise(self.domain, self.domain.columns, self.epsilon, self.delta))
        if self.noise == "gaussian" and not self.delta:
            raise ValueError("delta must be positive for Gaussian noise, not 0.0")
        self.check_missing()
        if self.hides_n:
            self._check_private_n()
        self._check_columns(self.domain.columns or 1)

    def _check_private_n(self) -> None:
        domain = self.domain
        if not isinstance(self.statistic, Sum):
            raise ValueError(
                f"neighbors must be 'replace-one' for the {self.statistic} of rows, not 'add-remove': "
                "release a sum and a count, and divide"
            )
        if isinstance(domain, Ball) and np.any(domain.center):
            raise ValueError("neighbors='add-remove' needs a ball around 0: n times another center is private")
        checks.finite_scale(_MOST * domain.coarsest)

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta if self.noise == "gaussian" else 0.0, self.neighbors)

    @property
    def gaussian_mu(self) -> float | None:
        """The guarantee of Gaussian noise in Gaussian differential privacy; None for other noise."""
        return gaussian_mu_down(self.epsilon, self.delta) if self.noise == "gaussian" else None

    @property
    def privacy_profile(self) -> PrivacyProfile:
        if self.gaussian_mu is not None:
            return PrivacyProfile(self.privacy, (("gaussian", self.gaussian_mu, 1),))
        if self.domain.columns == 1:
            return PrivacyProfile(self.privacy, (("discrete-laplace", self.epsilon, 1, int(self._changes[0])),))
        return PrivacyProfile(self.privacy, (("pure", self.epsilon, 1),))

    @property
    def dimensions(self) -> int:
        return 2

    def __repr__(self) -> str:
        return f"<NoisySums release of the {self.statistic} of rows in a {self.domain}: {self.privacy}>"

    @cached_property
    def _square(self) -> int:
        """The square of the largest change of the sum in a ball, in the l2 norm, in steps."""
        assert isinstance(self.domain, Ball)
        return self.domain.most * (1 if self.hides_n else 4)

    @cached_property
    def _changes(self) -> NDArray[np.int64]:
        """The largest change of each coordinate of the sum by one record, in steps; a single one if all are equal."""
        if isinstance(self.domain, Ball):
            return np.array([self.domain.reach * (1 if self.hides_n else 2)])
        assert isinstance(self.domain, Box)
        return self.domain.distances if self.hides_n else self.domain.widths

    def _scales(self, d: int) -> NDArray[np.float64]:
        """Return the standard deviations of Gaussian noise, or the scales of other noise, in steps, for d columns.
        Public.
        """
        if self.gaussian_mu is not None:
            square = Fraction(self.gaussian_mu) ** 2
            if isinstance(self.domain, Ball):
                return np.full(d, root_up(self._square / square))
            factor = root_up(d / square)
        elif isinstance(self.domain, Ball) and d > 1:
            return np.full(d, root_up(self._square / Fraction(self.epsilon) ** 2))
        else:
            factor = up(1 / Fraction(self.epsilon))
        with np.errstate(over="ignore"):
            return np.broadcast_to(np.nextafter(self._changes * factor, math.inf), (d,))

    def _check_columns(self, d: int) -> None:
        if self._scales(d).max() > _MOST_SCALE:
            raise ValueError(
                f"{self.privacy} needs noise of more than 2**54 steps: use a larger epsilon or a coarser step"
            )

    def _noise(self, d: int) -> VectorNoise:
        scales = self._scales(d)
        if self.noise == "gaussian":
            same = scales.min() == scales.max()
            return Independent(RoundedGaussian(float(scales[0])), d) if same else RoundedGaussians(scales.tolist())
        if d == 1:
            return Independent(DiscreteLaplace(int(self._changes[0]) / Fraction(self.epsilon)), 1)
        if isinstance(self.domain, Ball):
            return RoundedBall(scales)
        return LatticeBox(scales) if d <= 3 else RoundedBox(scales)

    def noise_deviation(self, n: SupportsIndex, *, dimension: SupportsIndex | None = None) -> NDArray[np.float64]:
        """Return the standard deviation of the noise of each coordinate, in data units, before rounding and clamping.

        Parameters
        ----------
        n : int
            The number of records, at least 1.
        dimension : int, optional
            d; required if the domain is for any number of columns.

        Returns
        -------
        ndarray of shape (d,)

        Examples
        --------
        >>> import dpfast as dpf
        >>> box = dpf.domains.Box([dpf.Grid(0, 1), dpf.Grid(0, 100)])
        >>> mean = dpf.NoisySums(dpf.statistics.Mean(), domain=box, epsilon=1.0)
        >>> mean.noise_deviation(1000).round(4)
        array([0.002, 0.2  ])
        """
        n, d = checks.whole("n", n, least=1), self.domain.columns_of(dimension)
        self._check_columns(d)
        domain = self.domain
        steps = domain.steps if isinstance(domain, Box) else np.array([domain.coarsest])
        if self.noise == "gaussian":
            factor = 1.0
        else:
            factor = math.sqrt((d + 1) * (d + 2) / 3 if isinstance(domain, Box) else d + 1)
        return np.asarray(factor * self._scales(d) * steps / (n if isinstance(self.statistic, Mean) else 1))

    def error(
        self, n: SupportsIndex, *, deviation: float = 0.0, dimension: SupportsIndex | None = None
    ) -> NDArray[np.float64]:
        """Return the root of the expected squared error of each coordinate, for independent rows inside the domain.

        An upper bound where clamping, or moving into the ball, removes noise.

        Parameters
        ----------
        n : int
            The number of records, at least 1.
        deviation : float
            The assumed standard deviation of each coordinate, at least 0, in data units.
        dimension : int, optional
            See `noise_deviation`.

        Returns
        -------
        ndarray of shape (d,)

        Examples
        --------
        >>> import dpfast as dpf
        >>> mean = dpf.NoisySums(dpf.statistics.Mean(), domain=dpf.domains.Ball(1.0), epsilon=1.0, delta=1e-6)
        >>> round(float(mean.error(1000, deviation=0.1, dimension=50).max()), 4)
        0.009
        """
        noise, sampling = self.noise_deviation(n, dimension=dimension), checks.nonnegative("deviation", deviation)
        growth = 1 / math.sqrt(n) if isinstance(self.statistic, Mean) else math.sqrt(n)
        return np.hypot(noise, sampling * growth)

    def _make_plan(self, n: int | None) -> Plan:
        if n is not None and n * self.domain.reach >= _MOST:
            raise ValueError(
                f"n times the steps of the domain must be below 2**61, not {n * self.domain.reach}: use a coarser step"
            )
        if n is not None and isinstance(self.statistic, Sum):
            checks.finite_scale(n * self.domain.magnitude)
        return super()._make_plan(n)

    @property
    def points(self) -> tuple[Points, ...]:
        return self.domain.grids if isinstance(self.domain, Box) else ()

    def _explained_missing(self) -> str:
        if isinstance(self.domain, Box):
            return super()._explained_missing()
        return "A row with NaN or an infinity counts as the center of the ball"

    def _enough(self) -> float:
        """By the widest noise; for any number of columns by that of one, as more need more records."""
        domain = self.domain
        widths = domain.widths * domain.steps if isinstance(domain, Box) else 2 * cast(Ball, domain).radius
        deviations = self.noise_deviation(1, dimension=domain.columns or 1)
        return enough_for_error(float(np.max(deviations / widths)))

    def _explained_error(self, n: int | None) -> str:
        kind = "Gaussian" if self.noise == "gaussian" else "of the K-norm mechanism"
        return f"The noise is {kind}; the mechanism's noise_deviation(n, ...) is its size"

    def reading(self) -> RowSums:
        return RowSums(self.domain, self._check_columns)

    def law_of(self, summary: VectorSums) -> NoisyIntegers:
        origins = self.domain.origins if self.hides_n and isinstance(self.domain, Box) else None
        center, noise = summary.totals(_MOST, origins), self._noise(summary.dimension)
        return NoisyIntegers(center, noise=noise, most=_MOST, decode=partial(self._decode, summary.n))

    def _decode(self, n: int, sums: NDArray[np.int64]) -> NDArray[np.float64]:
        if self.hides_n:
            return self.domain.free_sums(sums, _MOST)
        return self.domain.means(sums, n) if isinstance(self.statistic, Mean) else self.domain.sums(sums, n)


def better_noise(domain: Domain, d: int | None, epsilon: float, delta: float) -> str:
    """Return the noise of less expected size in d columns, "gaussian" or "k-norm"; Gaussian for an unknown d if delta >
    0.
    """
    if not delta or d is None:
        return "gaussian" if delta else "k-norm"
    gaussian = math.sqrt(2 / math.pi) / gaussian_mu_down(epsilon, delta)
    if isinstance(domain, Ball):
        by_norm = d / epsilon * math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2)) / math.sqrt(math.pi)
    else:
        by_norm, gaussian = (d + 1) / 2 / epsilon, gaussian * math.sqrt(d)
    return "gaussian" if gaussian < by_norm else "k-norm"
