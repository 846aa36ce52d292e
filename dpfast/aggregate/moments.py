"""Estimates from means of the statistics of clamped records: the parameters that have these moments. Public.

With g(theta) the means of the statistics, V the covariance of their noisy averages over n records, and J and G the
derivatives of g, an estimate with g(theta) = average has to first order the covariance A = J^-1 V J^-T, and the bias
-J^-1 tr(G A) / 2. Parameters that are positive are treated by their logarithms: arrays `phi` have these.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast.core.recent import recent
from dpfast.families.family import Family
from dpfast.families.summed import Summed, summed

Values = NDArray[np.float64]
_STEP = 1e-4  # of numerical derivatives: of a logarithm, or in the width of the interval for other parameters
_LEAST = 2.0**-40  # of the upper bound of a positive parameter: the logarithm of less is not needed
_TABLE = 257, 25  # values of a single parameter, and of each of two, from which estimates start
_ITERATIONS = 60
_FITS = 1e-10  # a squared distance, relative to the trace of the covariance
_CLOSE = 1e-12  # a step, relative to the units of phi,
_NEAR, _FASTER = 1e-6, 1e-3  # or this and this share of the step before: the error is then about the square of it
_LONGEST = 2.0  # step of a logarithm
_SHARES = np.array([1.0, 0.5, 0.2, 0.05, 0.005])  # of a step that are tried


@dataclass(frozen=True)
class Moments:
    """The moments of the statistics of a clamped record as functions of the parameters, and their inverse.

    Parameters
    ----------
    model : Summed
    bounds : sequence of pairs
        The range of each parameter.
    low, high : float
        The interval of the coordinates of records.
    """

    model: Summed
    bounds: Sequence[tuple[float, float]]
    low: float
    high: float

    @cached_property
    def _logs(self) -> NDArray[np.bool_]:
        return positive(self.model)

    @cached_property
    def _all_logs(self) -> bool:
        return bool(self._logs.all())

    @cached_property
    def _range(self) -> tuple[Values, Values]:
        """The lower and upper ends of phi."""
        pairs = [scaled_range(low, high, logs=log) for (low, high), log in zip(self.bounds, self._logs, strict=True)]
        lower, upper = np.array(pairs).T
        return lower, upper

    def phi(self, theta: Values) -> Values:
        """Return the scale on which estimates are computed."""
        with np.errstate(divide="ignore"):
            return np.clip(np.where(self._logs, np.log(np.where(self._logs, theta, 1.0)), theta), *self._range)

    def theta(self, phi: Values) -> Values:
        """Return the parameters."""
        if self._all_logs:
            return np.asarray(np.exp(phi))
        return np.where(self._logs, np.exp(np.where(self._logs, phi, 0.0)), phi)

    def at(self, phi: Values) -> tuple[Values, Values]:
        """Return the means, of shape (m, p), and covariances of the statistics of one record."""
        low, high = self._ends.repeat(len(phi), axis=1)
        return self.model.moments(self.theta(phi), low, high)

    @cached_property
    def _ends(self) -> Values:
        return np.array([[self.low], [self.high]])

    @cached_property
    def _steps(self) -> Values:
        return np.where(self._logs, _STEP, _STEP / 8 * (self.high - self.low))

    def slopes(self, phi: Values) -> tuple[Values, Values, Values]:
        """Return the means, the covariances, and the derivatives of the means, of shape (m, p, p), by statistic,
        parameter.
        """
        m, p = phi.shape
        means, covariances = self.at((phi + self._shifts).reshape(-1, p))
        means = means.reshape(len(self._shifts), m, p)
        return means[0], covariances[:m], self._slopes(means)

    def _slopes(self, means: Values) -> Values:
        """Return the derivatives from the means at the shifts."""
        p = len(self._steps)
        return ((means[1 : p + 1] - means[p + 1 :]) / (2 * self._steps[:, None, None])).transpose(1, 2, 0)

    def _expanded(self, phi: Values) -> tuple[Values, Values, Values]:
        """Return the covariances, the derivatives and, by statistic and two parameters, the second derivatives."""
        (m, p), first = phi.shape, len(self._shifts)
        means, covariances = self.at((phi + self._all_shifts).reshape(-1, p))
        means = means.reshape(len(self._all_shifts), m, p)
        corners = means[first:].reshape(len(_pairs(p)), 4, m, p)
        second = np.empty((m, p, p, p))
        for (i, j), (both, one, other, none) in zip(_pairs(p), corners, strict=True):
            bent = (both - one - other + none) / (self._steps[i] * self._steps[j])
            second[:, :, i, j] = second[:, :, j, i] = bent
        return covariances[:m], self._slopes(means[:first]), second

    @cached_property
    def _shifts(self) -> Values:
        """The shifts of phi by nothing, and by a step of each parameter forward and back; of shape (1 + 2 p, 1, p)."""
        steps = np.diag(self._steps)
        return np.concatenate([np.zeros((1, len(steps))), steps, -steps])[:, None]

    def covariance(self, phi: Values, n: int, noise: Values) -> Values:
        """Return a, for noise of these variances on the averages; infinite where the moments do not determine phi."""
        return covariance_of(*self.slopes(phi)[1:], n, noise)

    def bias(self, phi: Values, covariance: Values) -> Values:
        """Return the bias of second order of the parameters, of shape (m, p)."""
        return self._bias(phi, covariance, *self._expanded(phi)[1:])

    def _bias(self, phi: Values, covariance: Values, slopes: Values, curvature: Values) -> Values:
        with np.errstate(all="ignore"):
            bent = np.einsum("mkij,mij->mk", curvature, covariance)
            of_phi = -np.einsum("mij,mj->mi", inverses(slopes), bent) / 2
            own = covariance.diagonal(0, 1, 2)
            return np.asarray(np.where(self._logs, self.theta(phi) * (of_phi + own / 2), of_phi))

    @cached_property
    def _all_shifts(self) -> Values:
        """The shifts of phi, then those by half a step of two parameters, forward or back: four for each pair."""
        steps = np.diag(self._steps)
        signs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
        corners = [(s * steps[i] + t * steps[j]) / 2 for i, j in _pairs(len(steps)) for s, t in signs]
        return np.concatenate([self._shifts, np.array(corners)[:, None]])

    def deviations(self, phi: Values, covariance: Values) -> Values:
        """Return the standard deviations of the estimates, to first order; at most the distance to
        the farther bound.
        """
        theta = self.theta(phi)
        scale = np.where(self._logs, theta, 1.0)
        lower, upper = np.array(self.bounds).T
        farther = np.maximum(theta - lower, upper - theta)
        with np.errstate(all="ignore"):
            return np.asarray(np.fmin(scale * np.sqrt(covariance.diagonal(0, 1, 2)), farther))

    def estimates(self, averages: Values, n: int, noise: Values, *, corrected: bool) -> Values:
        """Return the parameters within the bounds whose moments are nearest to the averages, of shape (m, p).

        With several parameters, "nearest" is in units of the covariance of the averages at the middle of the bounds.
        """
        p = averages.shape[1]
        lower, upper = np.array(self.bounds).T
        with np.errstate(all="ignore"):
            phi = self._monotone(averages[:, 0])[:, None] if p == 1 else self._nearest(averages, n, noise)
            theta = self.theta(phi)
            if corrected:
                covariances, *expansion = self._expanded(phi)
                covariance = covariance_of(covariances, expansion[0], n, noise)
                trust, most = self._trust(covariance), self.deviations(phi, covariance) / 2
                correction = np.where(trust > 0, trust * self._bias(phi, covariance, *expansion), 0.0)
                theta = theta - np.nan_to_num(correction.clip(-most, most))
        return np.where(np.isnan(theta), (lower + upper) / 2, theta).clip(lower, upper)

    def _trust(self, covariance: Values) -> Values:
        """How far expansions of second order hold, of shape (m, 1): 1 for small relative variances, 0 from 1 on."""
        relative = np.where(self._logs, covariance.diagonal(0, 1, 2), 0.0).max(axis=1, keepdims=True)
        return np.asarray(np.where(relative < 1, 1 - relative, 0.0))

    @cached_property
    def _table(self) -> tuple[Values, Values, Values]:
        """Values of phi that are spread over the range, from which estimates start; the means and slopes there."""
        return _table_of(self.model.family, self.model.names, tuple(self.bounds), self.low, self.high)

    @cached_property
    def _ascending(self) -> tuple[Values, Values, Values]:
        """The table of one parameter in the order of the means, and the derivative of phi by the mean."""
        with np.errstate(all="ignore"):
            parts = self._table[0][:, 0], self._table[1][:, 0], 1 / self._table[2][:, 0, 0]
        phi, means, rises = parts if parts[1][-1] >= parts[1][0] else (part[::-1] for part in parts)
        return phi, means, rises

    def _monotone(self, averages: Values) -> Values:
        """Return the root of a monotone function of one parameter, by the secant in a bracket from a table.

        It begins at the cubic through both ends of the bracket with the slopes there, about 1e-9 from the root.
        """
        phi, means, rises = self._ascending
        place = np.minimum(np.maximum(means.searchsorted(averages), 1), len(phi) - 1)
        lower, upper, below, above = phi[place - 1], phi[place], means[place - 1] - averages, means[place] - averages
        lower, upper = np.where(above <= 0, upper, lower), np.where(below >= 0, lower, upper)
        share, height = below / (below - above), above - below
        ends = np.array([phi[place - 1], phi[place], height * rises[place - 1], height * rises[place]])
        start = np.einsum("im,im->m", _cubic(share), ends)
        at: Values = np.where(np.abs(below) < np.abs(above), lower, upper)
        side = np.zeros(len(at))
        for i in range(_ITERATIONS):
            before, at = at, (lower + upper) / 2
            if i < 8 or i % 2:
                secant = lower - below * (upper - lower) / (above - below)
                if not i:
                    secant = np.where((start - lower) * (upper - start) > 0, start, secant)
                between = (secant - lower) * (upper - secant) >= 0  # at an end, if that is the root to rounding
                at[between] = secant[between]
            if np.logical_and.reduce(np.abs(at - before) <= _CLOSE * (1 + np.abs(at))):
                break
            value = self.at(at[:, None])[0][:, 0] - averages
            left = value <= 0
            above = np.where(left & (side < 0), above / 2, above)  # of an end that stays (Illinois)
            below = np.where(~left & (side > 0), below / 2, below)
            side = np.where(left, -1.0, 1.0)
            lower, below = np.where(left, at, lower), np.where(left, value, below)
            upper, above = np.where(left, upper, at), np.where(left, above, value)
        return at

    def _nearest(self, averages: Values, n: int, noise: Values) -> Values:
        """Weighted least squares in the range, from the nearest point of a table; where this does not fit, also from
        the middle.
        """
        weight, root, tree = self._weighted(n, tuple(noise.tolist()))
        size = len(self._table[0])
        found = tree.query(np.nan_to_num(averages @ root))[1]  # `size` where all distances are beyond doubles
        phi, left = self._descended(averages, np.where(found < size, found, size // 2), weight)
        again = np.flatnonzero(left > _FITS)
        if again.size:
            other, value = self._descended(averages[again], np.full(again.size, size // 2), weight)
            phi[again] = np.where((value < left[again])[:, None], other, phi[again])
        return phi

    def _descended(self, averages: Values, start: NDArray[np.intp], weight: Values) -> tuple[Values, Values]:
        """Return phi by Newton's method from these points of the table, and the squared distances.

        Where a whole step does not halve the distance, shorter ones, and steps of one parameter alone, are tried, too.
        """
        phi, means, slopes = (part[start] for part in self._table)

        def distance(left: Values) -> Values:
            found = np.einsum("mi,ij,mj->m", left, weight, left)
            return np.asarray(np.where(np.isfinite(found), found, np.inf))

        every, (lower, upper) = np.ones(len(weight), np.bool_), self._range
        best, active, before = distance(averages - means), np.arange(len(phi)), np.full(len(phi), np.inf)
        for _ in range(_ITERATIONS):
            here, of = phi[active], averages[active]
            tried = (here + self._step(of - means, slopes, weight, every)).clip(lower, upper)
            moved = np.max(np.abs(tried - here) / self._units, axis=1)
            close = (moved <= _CLOSE) | ((moved <= _NEAR) & (moved <= _FASTER * before[active]))
            phi[active[close]], before[active] = tried[close], moved
            keep = ~close
            active, here, of, tried, means, slopes = (part[keep] for part in (active, here, of, tried, means, slopes))
            if not active.size:
                break
            found, _, steeper = self.slopes(tried)
            value = distance(of - found)
            rest = np.flatnonzero(~(value < best[active] / 2))
            if rest.size:
                tried[rest] = self._searched(here[rest], of[rest], means[rest], slopes[rest], weight, distance)
                found[rest], _, steeper[rest] = self.slopes(tried[rest])
                value[rest] = distance(of[rest] - found[rest])
            better = value < best[active]
            phi[active[better]], best[active[better]] = tried[better], value[better]
            active, means, slopes = active[better], found[better], steeper[better]
        return phi, best

    @recent
    def _weighted(self, n: int, noise: tuple[float, ...]) -> tuple[Values, Values, Any]:
        """Return the weights of squared distances, a root of them, and the table for a search by these distances."""
        lower, upper = self._range
        covariance = self.at((lower + upper)[None] / 2)[1][0] / n + np.diag(noise)
        weight = np.linalg.inv(covariance / np.trace(covariance) + 1e-12 * np.eye(len(noise)))
        values, vectors = np.linalg.eigh(np.nan_to_num(weight))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return weight, root, scipy.spatial.KDTree(np.nan_to_num(self._table[1]) @ root)

    @cached_property
    def _longest(self) -> Values:
        """The longest step of each parameter."""
        lower, upper = self._range
        return np.where(self._logs, _LONGEST, upper - lower)

    @cached_property
    def _units(self) -> Values:
        """What steps are compared with."""
        return np.where(self._logs, 1.0, self.high - self.low)

    def _step(self, left: Values, slopes: Values, weight: Values, free: NDArray[np.bool_]) -> Values:
        """Return the step of least squares of the free parameters."""
        reduced = np.where(free, slopes, 0.0)
        normal = reduced.transpose(0, 2, 1) @ weight @ reduced + np.diag(np.where(free, 0.0, 1.0))
        step = np.einsum("mij,mj->mi", inverses(normal), np.einsum("mji,jk,mk->mi", reduced, weight, left))
        return np.where(free, np.where(np.isfinite(step), step, 0.0).clip(-self._longest, self._longest), 0.0)

    def _searched(
        self,
        here: Values,
        of: Values,
        means: Values,
        slopes: Values,
        weight: Values,
        distance: Callable[[Values], Values],
    ) -> Values:
        """Return the best of steps of several lengths, of all parameters and of each alone."""
        (m, p), (lower, upper) = here.shape, self._range
        frees = np.ones(p, np.bool_), *np.eye(p, dtype=np.bool_)
        steps = np.array([self._step(of - means, slopes, weight, free) for free in frees])
        tried = (here + _SHARES[:, None, None, None] * steps).clip(lower, upper).reshape(-1, m, p)
        values = distance((of - self.at(tried.reshape(-1, p))[0].reshape(-1, m, p)).reshape(-1, p))
        pick = np.argmin(values.reshape(-1, m), axis=0)
        return np.asarray(tried[pick, np.arange(m)])


@lru_cache(maxsize=32)
def _table_of(
    family: Family, names: tuple[str, ...], bounds: tuple[tuple[float, float], ...], low: float, high: float
) -> tuple[Values, Values, Values]:
    """Return the table of these moments, which mechanisms share whose epsilons lead to the same interval.

    Each with a table of its own took eight times as long for the first release of gamma parameters as for others.
    """
    model = summed(family, names)
    assert model is not None
    moments = Moments(model, bounds, low, high)
    one = [np.linspace(*ends, _TABLE[len(names) - 1]) for ends in zip(*moments._range, strict=True)]
    phi = np.stack([part.ravel() for part in np.meshgrid(*one, indexing="ij")], axis=1)
    means, _, slopes = moments.slopes(phi)
    return phi, means, slopes


def _cubic(t: Values) -> Values:
    """Return the weights at t of the values at 0 and 1, and of the slopes there, of the cubic that they determine."""
    bent = t * t * (3 - 2 * t)
    return np.array([1 - bent, bent, t * (1 - t) ** 2, t * t * (t - 1)])


def covariance_of(covariances: Values, slopes: Values, n: int, noise: Values) -> Values:
    """Return a from the covariances and the slopes of one record; see `Moments.covariance`."""
    spread = covariances / n + np.diag(noise)
    with np.errstate(all="ignore"):
        inverse = inverses(slopes)
        found = inverse @ spread @ inverse.transpose(0, 2, 1)
    return np.where(np.isfinite(found), found, np.inf)


def _pairs(p: int) -> list[tuple[int, int]]:
    return list(itertools.combinations_with_replacement(range(p), 2))


def positive(model: Summed) -> NDArray[np.bool_]:
    """Which parameters are treated by their logarithms."""
    return np.array([model.family.space(name)[0] == 0 for name in model.names])


def scaled_range(low: float, high: float, *, logs: bool) -> tuple[float, float]:
    """Return the range of a parameter, or of its logarithm."""
    return (math.log(max(low, high * _LEAST)), math.log(high)) if logs else (low, high)


def inverses(matrices: Values) -> Values:
    """Return the inverses of matrices of one or two rows; infinite or NaN for a singular one, without a warning where
    the caller ignores these.
    """
    if matrices.shape[-1] == 1:
        return 1 / matrices
    (a, b), (c, d) = matrices.transpose(1, 2, 0)
    return np.asarray((np.array([[d, -b], [-c, a]]) / (a * d - b * c)).transpose(2, 0, 1))
