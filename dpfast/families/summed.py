"""Families whose sufficient statistics are sums: the moments of the statistics of a record clamped to an interval.

A record is clamped to a public interval in its coordinate y (the record, its logarithm or its logit), and each
statistic is scaled to 0..1 there. The mean of the statistics is a function of the parameters, known also for narrow
intervals; it is inverted to estimate these, so clamping causes no bias. Everything here is public.

Arrays of parameters have the shape (m, p), one column for each parameter in the order of `names`; ends of intervals
have the shape (m,).
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast.core.quadrature import gauss_legendre
from dpfast.families.continuous import Beta, Exponential, Gamma, Lognormal, Normal, Pareto
from dpfast.families.counts import Bernoulli, Geometric, Poisson
from dpfast.families.family import Family

Values = NDArray[np.float64]
_TINY = 1e-300
_FARTHEST = 700.0  # exp(-700) is positive
_NODES, _WEIGHTS = gauss_legendre(40)
_NEGLIGIBLE = math.log(1e-18)  # of the mass that quadrature leaves out


class Summed(ABC):
    """A family in which all parameters are released, with sufficient statistics that are sums.

    Attributes
    ----------
    names : tuple of str
        The parameters, in the order of the columns of arrays of them.
    columns : tuple of str
        The statistics: "value", "log" (of the record), "log1m" (the logarithm of 1 - record).
    squares : bool
        Whether there is one column, whose squares around the middle of the interval are summed, too.
    whole : bool
        Whether records are integers.
    """

    columns: ClassVar[tuple[str, ...]] = ("value",)
    squares: ClassVar[bool] = False
    whole: ClassVar[bool] = False

    def __init__(self, family: Any, names: tuple[str, ...]) -> None:
        self.family, self.names = family, names

    @property
    def statistics(self) -> int:
        """p, the number of statistics and of parameters."""
        return len(self.names)

    @abstractmethod
    def quantile(self, theta: Values, u: Values) -> Values:
        """Return the u-quantile of the coordinate, of shape (m,)."""

    @abstractmethod
    def moments(self, theta: Values, low: Values, high: Values) -> tuple[Values, Values]:
        """Return the means, of shape (m, p), and covariances, (m, p, p), of the statistics of a clamped record."""

    @property
    def most(self) -> tuple[float, float]:
        """The ends of the coordinates of possible records; infinite where there is none."""
        return -math.inf, math.inf

    def record(self, y: float) -> float:
        """Return the record with this coordinate."""
        return math.exp(min(y, _FARTHEST)) if self.columns == ("log",) else y

    def coordinate(self, record: float) -> float:
        """Return the coordinate of a record."""
        return math.log(record) if self.columns == ("log",) else record

    def ends(self, low: float, high: float) -> tuple[tuple[float, float], ...]:
        """Return the range of each column for coordinates from low to high."""
        return ((low, high),)


def summed(family: Family, names: tuple[str, ...]) -> Summed | None:
    """Return the family with these parameters released, or None unless they are all of its parameters, each once."""
    for kind, parameters, model in _MODELS:
        given = len(names) == len(parameters) and all(any(name in which for name in names) for which in parameters)
        if type(family) is kind and given:
            return model(family, names)
    return None


def _clipped(x: Any, low: Any, high: Any) -> Any:
    """Return `numpy.clip`, in a quarter of the time for few numbers."""
    return np.minimum(np.maximum(x, low), high)


def _single(mean: Values, square: Values) -> tuple[Values, Values]:
    """One statistic, by its mean and mean square."""
    return mean[:, None], np.maximum(square - mean**2, 0.0)[:, None, None]


class _Exponential(Summed):
    """Exponential waiting times; for Pareto records their logarithms, above that of the minimum."""

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("log",) if isinstance(self.family, Pareto) else ("value",)

    @cached_property
    def most(self) -> tuple[float, float]:
        return (math.log(self.family.minimum) if isinstance(self.family, Pareto) else 0.0), math.inf

    def _mean(self, theta: Values) -> Values:
        """Of the coordinate above its least value."""
        only = np.maximum(theta[:, 0], _TINY)
        return only if self.names == ("mean",) else 1 / only

    def quantile(self, theta: Values, u: Values) -> Values:
        return self.most[0] - self._mean(theta) * np.log1p(-u)

    def moments(self, theta: Values, low: Values, high: Values) -> tuple[Values, Values]:
        mean, least, width = self._mean(theta), self.most[0], high - low
        start = np.minimum(np.maximum((low - least) / mean, 0.0), _FARTHEST)
        stop = np.minimum(np.maximum((high - least) / mean, 0.0), _FARTHEST)
        ratio = mean / width
        beyond, length = np.exp(-start), stop - start
        first = ratio * beyond * -np.expm1(-length)
        second = 2 * ratio**2 * beyond * (-np.expm1(-length) - length * np.exp(-length))
        return first[:, None], np.maximum(second - first**2, 0.0)[:, None, None]


class _Bernoulli(Summed):
    whole: ClassVar[bool] = True

    @property
    def most(self) -> tuple[float, float]:
        return 0.0, 1.0

    def quantile(self, theta: Values, u: Values) -> Values:
        return np.where(u > 1 - theta[:, 0], 1.0, 0.0)

    def moments(self, theta: Values, low: Values, high: Values) -> tuple[Values, Values]:
        p = np.clip(theta[:, 0], 0.0, 1.0)
        return _single(p, p)


class _Poisson(Summed):
    whole: ClassVar[bool] = True

    @property
    def most(self) -> tuple[float, float]:
        return 0.0, math.inf

    def quantile(self, theta: Values, u: Values) -> Values:
        """By the gamma distribution of the time of the next event, to about 1."""
        mean = theta[:, 0]
        z = scipy.special.ndtri(u)
        return np.asarray(np.maximum(np.round(mean + np.sqrt(mean) * z + (z * z - 1) / 6), 0.0))

    def moments(self, theta: Values, low: Values, high: Values) -> tuple[Values, Values]:
        mean, width = theta[:, 0], high - low

        def up_to(k: Values) -> Values:
            return np.where(k >= 0, scipy.special.pdtr(np.maximum(k, 0.0), mean), 0.0)

        # Sums of 1, X and X (X - 1) over low < X < high, by the masses of X - 1 and X - 2.
        masses = [up_to(high - 1 - j) - up_to(low - j) for j in range(3)]
        one, x, falling = masses[0], mean * masses[1], mean**2 * masses[2]
        above = 1 - up_to(high - 1)
        first = (x - low * one) / width + above
        second = (falling + x - 2 * low * x + low**2 * one) / width**2 + above
        return _single(first, second)


class _Geometric(Summed):
    whole: ClassVar[bool] = True

    @property
    def most(self) -> tuple[float, float]:
        return 1.0, math.inf

    def quantile(self, theta: Values, u: Values) -> Values:
        p = np.clip(theta[:, 0], _TINY, 1 - 1e-15)
        return np.maximum(np.ceil(np.minimum(np.log1p(-u) / np.log1p(-p), 2.0**62)), 1.0)

    def moments(self, theta: Values, low: Values, high: Values) -> tuple[Values, Values]:
        p, width = np.clip(theta[:, 0], 1e-18, 1 - 1e-15), high - low
        log_q = np.log1p(-p)
        left = np.exp((low - 1) * log_q)  # P(X >= low)
        beyond = np.exp(width * log_q)  # P(X > high | X > low)
        q = 1 - p
        first = q * left * -np.expm1(width * log_q) / (p * width)
        second = 2 * q * left * (-np.expm1(width * log_q) - width * p * beyond) / (p * width) ** 2 - first / width
        return _single(first, second)


class _Normal(Summed):
    """Normal records, or the logarithms of lognormal ones: the first four moments of a clamped normal number."""

    squares: ClassVar[bool] = True

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("log",) if isinstance(self.family, Lognormal) else ("value",)

    def _mean_and_deviation(self, theta: Values) -> tuple[Values, Values]:
        of = dict(zip(self.names, theta.T, strict=True))
        mean = of[self.family.mean]
        return mean, np.sqrt(np.maximum(of["variance"], 0.0)) if "variance" in of else of[self.family.deviation]

    def quantile(self, theta: Values, u: Values) -> Values:
        mean, deviation = self._mean_and_deviation(theta)
        return np.asarray(mean + deviation * scipy.special.ndtri(u))

    def moments(self, theta: Values, low: Values, high: Values) -> tuple[Values, Values]:
        mean, deviation = self._mean_and_deviation(theta)
        half = (high - low) / 2
        a, s = (mean - (low + high) / 2) / half, np.maximum(deviation, _TINY) / half
        alpha, beta = (np.minimum(np.maximum(end / s, -1e150), 1e150) for end in (-1 - a, 1 - a))
        below, above = scipy.special.ndtr(alpha), scipy.special.ndtr(-beta)
        bell = np.exp(-(np.array([alpha, beta]) ** 2) / 2) / math.sqrt(2 * math.pi)
        inner = [np.maximum(1 - below - above, 0.0)]  # the integrals of z**k from -1 to 1
        for k in range(1, 5):
            edge = bell[1] - (-1) ** (k - 1) * bell[0]
            before = (k - 1) * s**2 * inner[k - 2] if k > 1 else 0.0
            inner.append(a * inner[k - 1] + before - s * edge)
        _, z1, z2, z3, z4 = [part + above + (-1) ** k * below for k, part in enumerate(inner)]
        means = np.array([(1 + z1) / 2, z2]).T.copy()
        both = (z3 - z1 * z2) / 2
        covariance = np.array([[(z2 - z1**2) / 4, both], [both, z4 - z2**2]])
        return means, covariance.transpose(2, 0, 1)


class _ByQuadrature(Summed):
    """Two statistics, both monotone functions of the coordinate, whose density has one mode and exponential tails."""

    @abstractmethod
    def _density(self, theta: Values) -> tuple[Values, Values, Values, Any, Any]:
        """Return the mode, the ends of the range of almost all of the mass, the log density, and the distribution
        function.
        """

    @abstractmethod
    def _statistics(self, y: Values) -> tuple[Values, Values]:
        """Return the statistics of a record."""

    def ends(self, low: float, high: float) -> tuple[tuple[float, float], ...]:
        pairs = zip(*(self._statistics(np.array(end)) for end in (low, high)), strict=True)
        return tuple((min(map(float, pair)), max(map(float, pair))) for pair in pairs)

    def moments(self, theta: Values, low: Values, high: Values) -> tuple[Values, Values]:
        mode, least, most, log_density, masses = self._density(theta)
        start, stop = _clipped(least, low, high), _clipped(most, low, high)
        cuts = [start, *(_clipped(mode + shift, start, stop) for shift in (-4.0, 0.0, 4.0)), stop]
        panels = [((right + left) / 2, (right - left) / 2) for left, right in itertools.pairwise(cuts)]
        y = np.concatenate([middle[:, None] + half[:, None] * _NODES for middle, half in panels], axis=1)
        weights = np.concatenate([half[:, None] * _WEIGHTS for _, half in panels], axis=1)
        weights = weights * np.exp(log_density(y))
        below, above = masses(low, high)
        y = np.concatenate([low[:, None], y, high[:, None]], axis=1)
        weights = np.concatenate([below[:, None], weights, above[:, None]], axis=1)
        weights /= weights.sum(axis=1, keepdims=True)
        bottom, top = (np.stack(self._statistics(end)) for end in (low, high))
        least_of, width = np.minimum(bottom, top), np.abs(top - bottom)
        scaled = (np.stack(self._statistics(y)) - least_of[..., None]) / width[..., None]
        means = np.einsum("jmk,mk->mj", scaled, weights)
        left = scaled - means.T[..., None]
        return means, np.einsum("imk,jmk,mk->mij", left, left, weights)


class _Gamma(_ByQuadrature):
    """The coordinate is log x."""

    columns: ClassVar[tuple[str, ...]] = ("value", "log")

    def _shape_and_log_scale(self, theta: Values) -> tuple[Values, Values]:
        of = dict(zip(self.names, np.maximum(theta.T, _TINY), strict=True))
        return of["shape"], np.log(of["scale"]) if "scale" in of else -np.log(of["rate"])

    def record(self, y: float) -> float:
        return math.exp(min(y, _FARTHEST))

    def coordinate(self, record: float) -> float:
        return math.log(record)

    def quantile(self, theta: Values, u: Values) -> Values:
        shape, log_scale = self._shape_and_log_scale(theta)
        x = scipy.special.gammaincinv(shape, u)
        small = (np.log(np.maximum(u, _TINY)) + scipy.special.gammaln(shape + 1)) / shape  # where x would underflow
        return np.asarray(log_scale + np.where(x > 1e-200, np.log(np.maximum(x, _TINY)), small))

    def _density(self, theta: Values) -> tuple[Values, Values, Values, Any, Any]:
        shape, log_scale = self._shape_and_log_scale(theta)
        least = log_scale + np.minimum((_NEGLIGIBLE + scipy.special.gammaln(shape + 1)) / shape, np.log(shape))
        root = np.sqrt(shape)
        least = np.maximum(least, log_scale + np.log(shape) - 9 / root - 45 / shape)
        most = log_scale + np.log(shape + 9 * root + 45)

        def log_density(y: Values) -> Values:
            at = y - log_scale[:, None]
            return np.asarray(
                shape[:, None] * at - np.exp(np.minimum(at, _FARTHEST)) - scipy.special.gammaln(shape)[:, None]
            )

        def masses(low: Values, high: Values) -> tuple[Values, Values]:
            x = [np.exp(_clipped(end - log_scale, -_FARTHEST, _FARTHEST)) for end in (low, high)]
            return scipy.special.gammainc(shape, x[0]), scipy.special.gammaincc(shape, x[1])

        return log_scale + np.log(shape), least, most, log_density, masses

    def _statistics(self, y: Values) -> tuple[Values, Values]:
        return np.exp(_clipped(y, -_FARTHEST, _FARTHEST)), y


class _Beta(_ByQuadrature):
    """The coordinate is log(x / (1 - x))."""

    columns: ClassVar[tuple[str, ...]] = ("log", "log1m")

    def record(self, y: float) -> float:
        return 1 / (1 + math.exp(min(-y, _FARTHEST)))

    def coordinate(self, record: float) -> float:
        return math.log(record) - math.log1p(-record)

    def _shapes(self, theta: Values) -> tuple[Values, Values]:
        of = dict(zip(self.names, np.maximum(theta.T, 1e-9), strict=True))
        return of["a"], of["b"]

    def quantile(self, theta: Values, u: Values) -> Values:
        a, b = self._shapes(theta)
        x, rest = (
            np.maximum(scipy.special.betaincinv(a, b, u), _TINY),
            np.maximum(scipy.special.betaincinv(b, a, 1 - u), _TINY),
        )
        return np.asarray(np.log(x) - np.log(rest))

    def _density(self, theta: Values) -> tuple[Values, Values, Values, Any, Any]:
        a, b = self._shapes(theta)
        constant = scipy.special.betaln(a, b)
        mode = np.log(a) - np.log(b)
        least = np.minimum((_NEGLIGIBLE + np.log(a) + constant) / a, mode)
        most = np.maximum(-(_NEGLIGIBLE + np.log(b) + constant) / b, mode)

        def log_density(y: Values) -> Values:
            both = (a + b)[:, None] * np.logaddexp(0.0, y)
            return np.asarray(a[:, None] * y - both - constant[:, None])

        def masses(low: Values, high: Values) -> tuple[Values, Values]:
            x, rest = (1 / (1 + np.exp(_clipped(end, -_FARTHEST, _FARTHEST))) for end in (-low, high))
            return scipy.special.betainc(a, b, x), scipy.special.betainc(b, a, rest)

        return mode, least, most, log_density, masses

    def _statistics(self, y: Values) -> tuple[Values, Values]:
        return -np.logaddexp(0.0, -y), -np.logaddexp(0.0, y)


_MODELS: tuple[tuple[type[Family], tuple[tuple[str, ...], ...], type[Summed]], ...] = (
    (Bernoulli, (("p",),), _Bernoulli),
    (Poisson, (("mean",),), _Poisson),
    (Geometric, (("p",),), _Geometric),
    (Exponential, (("rate", "mean"),), _Exponential),
    (Pareto, (("shape",),), _Exponential),
    (Normal, (("mean",), ("sd", "variance")), _Normal),
    (Lognormal, (("mu",), ("sigma",)), _Normal),
    (Gamma, (("shape",), ("rate", "scale")), _Gamma),
    (Beta, (("a",), ("b",)), _Beta),
)
