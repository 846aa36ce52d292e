"""Means and sums of records in rows, with noise on all coordinates at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpfast import _checks
from dpfast._divergences import gaussian_mu_down
from dpfast.domains import Ball, Box, Domain
from dpfast.laws import Independent, NoisyIntegers, RoundedGaussian, RoundedGaussians, VectorNoise
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.privacy import Privacy, PrivacyProfile
from dpfast.rounding import root_up
from dpfast.statistics import Mean, Statistic, Sum
from dpfast.streaming import RowSums, VectorSums

_MOST = 2**61  # steps in a sum
_MOST_SCALE = 2.0**56


@dataclass(frozen=True, repr=False)
class NoisySums(Mechanism):
    """Release the mean or the sum of records in d dimensions with Gaussian noise, moved into the public domain.

    (epsilon, delta)-differential privacy under one replaced record (row); the number of records is public. For
    sums also under one record added or removed, with a private number of records.

    Parameters
    ----------
    statistic : dpfast.statistics.Mean or Sum
    domain : dpfast.domains.Box or Ball
        The public domain of the rows, in data units. For the sum with a private number of records the center of a ball
        must be 0.
    epsilon : float
        Positive, for all coordinates together; rounded down to a double.
    delta : float
        In (0, 1); rounded down to a double.
    neighbors : {"replace-one", "add-remove"}
        With "add-remove", an array without rows is valid input, and the release is clamped to +-2**61 steps, or to 0 on
        a side of a box where 0 is a bound.

    Raises
    ------
    TypeError, ValueError
        From the constructor: a wrong parameter. From a call: a wrong shape; once n is known: n times the number of grid
        points, or of steps in the radius, is 2**61 or more, or the largest release exceeds float64.

    Notes
    -----
    Privacy: the sum of the codes of the rows is a vector of integers, computed exactly. One record changes it by at
    most D in the l2 norm: 2 R for one replaced record in a ball of radius R, R for one added or removed. The noise is
    ``round(D / mu Z)``, Z standard normal, for the largest mu that epsilon and delta allow. In a box, coordinate j
    changes by at most its width w_j, and its noise is ``round(sqrt(d) w_j / mu Z)``. No float decides the noise or the
    norm of a code. The rest is post-processing: clamping to the box, or moving to the nearest point of the ball, which
    brings no release farther from a mean in the domain (docs/proofs/rows.md).
    Cost: one pass over X.

    References
    ----------
    Balle and Wang 2018, "Improving the Gaussian mechanism for differential privacy".

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

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, (Mean, Sum)):
            raise TypeError(f"statistic must be Mean() or Sum() for rows, not {self.statistic!r}")
        if not isinstance(self.domain, (Box, Ball)):
            raise TypeError(f"domain must be a dpfast.domains.Box or Ball, not {type(self.domain).__name__}")
        object.__setattr__(self, "epsilon", _checks.positive_down("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _checks.delta_down(self.delta))
        _checks.choice("neighbors", self.neighbors, ("replace-one", "add-remove"))
        if not self.delta:
            raise ValueError("delta must be positive for Gaussian noise, not 0.0")
        if self.hides_n:
            self._check_private_n()
        self._check_columns(self.domain.columns or 1)

    def _check_private_n(self) -> None:
        domain = self.domain
        if not isinstance(self.statistic, Sum):
            raise ValueError(f"neighbors must be 'replace-one' for the {self.statistic} of rows, not 'add-remove'")
        if isinstance(domain, Ball) and np.any(domain.center):
            raise ValueError("neighbors='add-remove' needs a ball around 0, as n times another center is private")
        _checks.finite_scale(float(domain.free_sums(np.array(_MOST), _MOST).max()))
        _checks.finite_scale(float(domain.free_sums(np.array(-_MOST), _MOST).min()))

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, self.delta, self.neighbors)

    @property
    def mu(self) -> float:
        """The guarantee in Gaussian differential privacy."""
        return gaussian_mu_down(self.epsilon, self.delta)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        return PrivacyProfile(self.privacy, (("gaussian", self.mu, 1),))

    @property
    def dimensions(self) -> int:
        return 2

    def __repr__(self) -> str:
        return f"<NoisySums release of the {self.statistic} of rows in a {self.domain}: {self.privacy}>"

    def _scales(self, d: int) -> NDArray[np.float64]:
        """The standard deviations of the noise, in steps: one for all of d coordinates, or d. Public."""
        domain, square = self.domain, Fraction(self.mu) ** 2
        if isinstance(domain, Ball):
            return np.array([root_up(domain.most * (1 if self.hides_n else 4) / square)])
        assert isinstance(domain, Box)
        changes = domain.distances if self.hides_n else domain.widths
        return np.asarray(np.nextafter(changes * root_up(d / square), math.inf))

    def _check_columns(self, d: int) -> None:
        if self._scales(d).max() > _MOST_SCALE:
            raise ValueError(
                f"epsilon={self.epsilon!r} and delta={self.delta!r} need noise of more than 2**56 steps: use a coarser "
                f"step"
            )

    def _noise(self, d: int) -> VectorNoise:
        scales: list[float] = self._scales(d).tolist()
        if len(set(scales)) == 1:
            return Independent(RoundedGaussian(scales[0]), d)
        return RoundedGaussians(scales)

    def check_records(self, n: int) -> int:
        if self.hides_n:
            return n
        if super().check_records(n) * self.domain.reach >= _MOST:
            raise ValueError(
                f"n times the steps of the domain must be below 2**61, not {n * self.domain.reach}: use a coarser step"
            )
        if isinstance(self.statistic, Sum):
            _checks.finite_scale(n * self.domain.magnitude)
        return n

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
