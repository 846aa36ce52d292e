"""Mechanisms that release a statistic of scalar records, and their error."""

from __future__ import annotations

from typing import Any, SupportsIndex

from dpfast import _checks
from dpfast.mechanisms.assumptions import Assumed
from dpfast.mechanisms.mechanism import Mechanism


class StatisticMechanism(Mechanism):
    """A mechanism that releases a statistic of scalar records."""

    def error(
        self,
        n: SupportsIndex,
        *,
        distribution: Any = None,
        density: float | None = None,
        deviation: float | None = None,
        confidence: float = 0.95,
    ) -> Any:
        """The error to expect of a release, from public assumptions: it never sees data and costs no privacy.

        With probability `confidence` the release is about this close to the population value, that of the assumed
        distribution itself: the chance of the sample, the noise of the mechanism and what the bounds cut off together.

        Parameters
        ----------
        n : int
            Records, at least 1.
        distribution : object
            Assumed for each record, independent of the others: like a frozen distribution of ``scipy.stats``, with a
            quantile function `ppf`, for means also `mean`, for variances also `var`. For every statistic.
        density : float
            Instead, for one quantile: the assumed density of the records at the target, per data unit. Where n is too
            small for a density to tell the error, as for extreme quantiles in wide bounds, the answer is the width of
            the bounds (`dpfast.theory.quantile_error`); a `distribution` tells more.
        deviation : float
            Instead, for a mean or sum by `GlobalSensitivity`: the assumed standard deviation of a record, whose tails
            the bounds do not cut.
        confidence : float
            In (0, 1).

        Returns
        -------
        float
            In data units; an array, one for each quantile, for `Quantiles`.

        Raises
        ------
        TypeError
            None or several of the assumptions, one that this release needs more than, or an object without `ppf`.
        ValueError
            A parameter out of range; a population value that is not finite.

        Notes
        -----
        With `distribution`, the mechanism's exact law is averaged over 256 imagined samples, drawn evenly with a fixed
        seed. In 20 settings, n from 60 to 2000, of 1000 simulated releases each, a confidence of 0.8 was kept with a
        frequency of 0.81 on average, at most 0.04 off (0.95: 0.951, 0.015). Sample moments and Huber's estimate are
        taken as normal, and so is the sum of the records far from the ends of a mean; with `Quantiles`, 64 samples for
        more than four of them. Cost: that of the laws and windows, not of n records, 0.1 to 1 s; more for an epsilon
        below 0.1 and for many `Quantiles`; O(n) for `Huber`.
        With `density`, inverse sensitivity uses `dpfast.theory.quantile_error`, within 15 %, in microseconds; other
        mechanisms imagine a uniform distribution of this density. With `deviation` the sample mean is taken as normal.

        Examples
        --------
        >>> import dpfast as dpf
        >>> from scipy.stats import norm
        >>> grid = dpf.Grid(0, 100)
        >>> mean = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=grid, epsilon=0.5)
        >>> round(mean.error(1000, deviation=15.0), 2)
        1.09
        >>> trimmed = dpf.InverseSensitivity(dpf.statistics.TrimmedMean(0.1), grid=grid, epsilon=0.5)
        >>> round(trimmed.error(1000, distribution=norm(50, 15)), 1)
        1.1
        """
        n, confidence = _checks.whole("n", n, least=1), _checks.between("confidence", confidence, 0, 1)
        if sum(assumption is not None for assumption in (distribution, density, deviation)) != 1:
            raise TypeError("give one assumption: distribution=, density= or deviation=")
        if density is not None:
            return self._error_at_density(n, _checks.positive("density", density), confidence)
        if deviation is not None:
            return self._error_at_deviation(n, _checks.positive("deviation", deviation), confidence)
        return self._error_under(n, Assumed(distribution), confidence)

    def _error_under(self, n: int, assumed: Assumed, confidence: float) -> Any:
        raise TypeError(f"no error is known for a {type(self).__name__} release")

    def _error_at_density(self, n: int, density: float, confidence: float) -> Any:
        raise TypeError("a density tells the error of one quantile only: give distribution=")

    def _error_at_deviation(self, n: int, deviation: float, confidence: float) -> Any:
        raise TypeError("a deviation tells the error of a mean or sum by GlobalSensitivity only: give distribution=")
