"""Estimates from means of the statistics of clamped records: the parameters that have these moments. Public.

With g(theta) the means of the statistics, V the covariance of their noisy averages over n records, and J and G the
derivatives of g, an estimate with g(theta) = average has to first order the covariance A = J^-1 V J^-T, and the bias
-J^-1 tr(G A) / 2. Parameters that are positive are treated by their logarithms: arrays `phi` have these.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpfast.families.summed import Summed

Values = NDArray[np.float64]
_STEP = 1e-4  # of numerical derivatives: of a logarithm, or in the width of the interval for other parameters
_LEAST = 2.0**-40  # of the upper bound of a positive parameter: the logarithm of less is not needed
_ITERATIONS = 60
_CLOSE = 1e-13
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
        (m, p), steps = phi.shape, self._steps
        means, covariances = self.at((phi + self._shifts).reshape(-1, p))
        means = means.reshape(-1, m, p)
        slopes = (means[1 : p + 1] - means[p + 1 :]) / (2 * steps[:, None, None])
        return means[0], covariances[:m], slopes.transpose(1, 2, 0)

    @cached_property
    def _shifts(self) -> Values:
        """The shifts of phi by nothing, and by a step of each parameter forward and back; of shape (1 + 2 p, 1, p)."""
        steps = np.diag(self._steps)
        return np.concatenate([np.zeros((1, len(steps))), steps, -steps])[:, None]

    def covariance(self, phi: Values, n: int, noise: Values) -> Values:
        """Return a, for noise of these variances on the averages; infinite where the moments do not determine phi."""
        _, covariances, slopes = self.slopes(phi)
        spread = covariances / n + np.diag(noise)
        with np.errstate(all="ignore"):
            inverse = inverses(slopes)
            found = inverse @ spread @ inverse.transpose(0, 2, 1)
        return np.where(np.isfinite(found), found, np.inf)

    def bias(self, phi: Values, covariance: Values) -> Values:
        """Return the bias of second order of the parameters, of shape (m, p)."""
        (m, p), steps = phi.shape, self._steps
        *_, slopes = self.slopes(phi)
        curvature = np.empty((m, p, p, p))  # by statistic, then two parameters
        for i, j in itertools.combinations_with_replacement(range(p), 2):
            one, other = np.eye(p)[i] * steps[i], np.eye(p)[j] * steps[j]
            signs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
            stack = np.concatenate([phi + (s * one + t * other) / 2 for s, t in signs])
            corners = self.at(stack)[0].reshape(4, m, p)
            second = (corners[0] - corners[1] - corners[2] + corners[3]) / (steps[i] * steps[j])
            curvature[:, :, i, j] = curvature[:, :, j, i] = second
        with np.errstate(all="ignore"):
            bent = np.einsum("mkij,mij->mk", curvature, covariance)
            of_phi = -np.einsum("mij,mj->mi", inverses(slopes), bent) / 2
            own = np.einsum("mii->mi", covariance)
            return np.asarray(np.where(self._logs, self.theta(phi) * (of_phi + own / 2), of_phi))

    def deviations(self, phi: Values, covariance: Values) -> Values:
        """Return the standard deviations of the estimates, to first order; at most the distance to
        the farther bound.
        """
        theta = self.theta(phi)
        scale = np.where(self._logs, theta, 1.0)
        lower, upper = np.array(self.bounds).T
        farther = np.maximum(theta - lower, upper - theta)
        with np.errstate(all="ignore"):
            return np.asarray(np.fmin(scale * np.sqrt(np.einsum("mii->mi", covariance)), farther))

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
                covariance = self.covariance(phi, n, noise)
                trust, most = self._trust(covariance), self.deviations(phi, covariance) / 2
                correction = np.where(trust > 0, trust * self.bias(phi, covariance), 0.0)
                theta = theta - np.nan_to_num(np.clip(correction, -most, most))
        return np.clip(np.where(np.isnan(theta), (lower + upper) / 2, theta), lower, upper)

    def _trust(self, covariance: Values) -> Values:
        """How far expansions of second order hold, of shape (m, 1): 1 for small relative variances, 0 from 1 on."""
        relative = np.where(self._logs, np.einsum("mii->mi", covariance), 0.0).max(axis=1, keepdims=True)
        return np.asarray(np.where(relative < 1, 1 - relative, 0.0))

    def _monotone(self, averages: Values) -> Values:
        """Return the root of a monotone function of one parameter, by the secant in a bracket, or its middle."""
        lower, upper = (np.full(averages.shape, end[0]) for end in self._range)
        below, above = (self.at(end[:, None])[0][:, 0] - averages for end in (lower, upper))
        sign = np.where(above >= below, 1.0, -1.0)
        below, above = sign * below, sign * above
        lower, upper = np.where(above <= 0, upper, lower), np.where(below >= 0, lower, upper)
        every = np.logical_and.reduce
        for i in range(_ITERATIONS):
            at: Values = (lower + upper) / 2
            if i % 3 < 2:
                secant = lower - below * (upper - lower) / (above - below)
                inside = (secant > lower) & (secant < upper)
                at[inside] = secant[inside]
            value = sign * (self.at(at[:, None])[0][:, 0] - averages)
            left = value <= 0
            right = ~left
            lower[left], below[left] = at[left], value[left]
            upper[right], above[right] = at[right], value[right]
            if every(upper - lower <= _CLOSE * (1 + np.abs(upper))) or every(np.abs(value) < 1e-16):
                return at
        return np.asarray((lower + upper) / 2)

    def _nearest(self, averages: Values, n: int, noise: Values) -> Values:
        """Weighted least squares in the range, by Newton's method with steps that do not increase the distance."""
        (m, p), (lower, upper) = averages.shape, self._range
        middle = np.array([(lower + upper) / 2])
        covariance = self.at(middle)[1][0] / n + np.diag(noise)
        weight = np.linalg.inv(covariance / np.trace(covariance) + 1e-12 * np.eye(p))
        phi = np.repeat(middle, m, axis=0)

        def distance(points: Values, of: Values) -> Values:
            left = of - self.at(points)[0]
            return np.asarray(np.einsum("mi,ij,mj->m", left, weight, left))

        best = distance(phi, averages)
        longest = np.where(self._logs, _LONGEST, upper - lower)
        frees = np.ones(p, np.bool_), *np.eye(p, dtype=np.bool_)
        along = [(free, np.diag(np.where(free, 0.0, 1.0))) for free in frees]
        active = np.arange(m)
        for _ in range(_ITERATIONS):
            here = phi[active]
            means, _, slopes = self.slopes(here)
            left = averages[active] - means
            steps = []
            for free, fixed in along:
                reduced = np.where(free, slopes, 0.0)
                normal = reduced.transpose(0, 2, 1) @ weight @ reduced + fixed
                step = np.einsum("mij,mj->mi", inverses(normal), np.einsum("mji,jk,mk->mi", reduced, weight, left))
                steps.append(np.where(free, np.where(np.isfinite(step), step, 0.0).clip(-longest, longest), 0))
            tried = (
                (here + _SHARES[:, None, None] * np.array(steps)[:, None]).clip(lower, upper).reshape(-1, *here.shape)
            )
            of = averages[active][np.arange(tried.size // p) % len(active)]
            values = distance(tried.reshape(-1, p), of).reshape(len(tried), -1)
            values = np.where(np.isfinite(values), values, np.inf)
            pick = np.argmin(values, axis=0)
            found = values[pick, np.arange(len(active))]
            better = found < best[active]
            moved = np.where(better[:, None], tried[pick, np.arange(len(active))], here)
            going = better & (np.max(np.abs(moved - here), axis=1) > _CLOSE)
            phi[active], best[active] = moved, np.minimum(found, best[active])
            active = active[going]
            if not active.size:
                break
        return phi


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
