"""Linear regression by the size of the residuals: sums of products, then clipped corrections with a released scale."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast.choosing import split
from dpfast.core import checks
from dpfast.core.privacy import Privacy
from dpfast.core.rounding import root_down
from dpfast.core.traps import Trap
from dpfast.domains import Ball
from dpfast.errors import UtilityWarning
from dpfast.mechanisms import Mechanism
from dpfast.regression.fit import Fit
from dpfast.regression.gradients import GradientSums, Transform
from dpfast.regression.moments import RegressionMoments
from dpfast.regression.residuals import ResidualScale
from dpfast.regression.schedules import amount_of, amounts, check_units
from dpfast.regression.sequences import Sequence

Values = NDArray[np.float64]

# The share of the sums is what second moments need, within limits, for Gaussian and for pure noise: of mu**2, or of
# epsilon; the first of two gradients has three tenths of what is left. Tried with 3 to 20 columns, n = 2,000 to 100,000
# and errors of 2 % to 100 % of the labels: one correction has 1.5 to 5 times the error where labels are much larger
# than their errors, and three are as good as two; sums with a tenth less have up to 4 times the error there, with a
# tenth more 3 % more elsewhere.
_LEAST_SUMS, _MOST_SUMS = (Fraction(25, 100), Fraction(40, 100)), (Fraction(35, 100), Fraction(45, 100))
_WANTED_NOISE = 0.3  # of second moments, as for _MOST_NOISE
_FIRST = Fraction(3, 10)
_LEAST_SCALE, _MOST_SCALES = Fraction(2, 100), Fraction(10, 100)  # of each of the two scales
# Residuals are clipped at a multiple of a released quantile, where a quantile of this level of normal ones is: in the
# first gradient of a very high one, so that its solution is close to least squares whatever the errors are. In the
# second, and for the length of gradients, where the errors of sampling and of the noise together are least. With a
# first level of 0.98, slopes of working hours (a census of 49,000 people) were a third too large at epsilon = 2,
# outside of nearly all intervals; with 0.995 within nearly all, for the same error where errors are normal. 0.9995, or
# alarms of 0.3 below, have half of the rest of that bias, for up to three times the error of normal errors.
_WIDE, _LEVELS, _LENGTHS = (0.995, 1.5), (0.6, 0.7, 0.8, 0.9, 0.95), (0.9, 1.0, 1.2)
_LEAST_LEVEL, _LEAST_SPLIT_LEVEL = 0.8, 0.7  # of the quantiles that are released
_LEAST_TAIL = 20.0  # records beyond a quantile, times epsilon, with which it is hardly ever absurd
_LEAST_RESIDUAL = 0.02  # in label bounds: where sums have little noise even for these, they are enough
_RIDGE = 0.3  # added to the second moments, in units of the largest eigenvalue of their noise
_LEAST_EIGENVALUE = 1e-9
_CURVATURE_DOUBT = 0.05  # of the share of residuals that are not clipped
_MOST_NOISE = 0.7  # of second moments, relative to those of rows of half the radius
_ENOUGH, _FEWEST = 120.0, 100.0  # n epsilon of a scale; with the fewest it is absurd with a probability of 1 %
_MOST_COEFFICIENT = 2.0**20  # length of the coefficients of whitened rows, in label bounds
# Chances of a false alarm that clipping moved the first estimate, whose target has much more noise, and the last.
_FALSE_ALARMS = 1e-4, 0.05
# Normal residuals of one spread have a known ratio of a high quantile to the median. Where that of released ones is
# larger, by the first number in its logarithm and by the second, in deviations of the noise, they spread more for some
# rows than for others, or have long tails: 3 to 17 times larger for pay by base pay, 2 to 3 times for hours by age.
# Then the last clip is as wide as a share of the errors of the first fit allows for its noise. With fewer deviations,
# the third number, the clip is narrow and intervals are as wide as those of the first fit. For pay, hours and hourly
# pay by one to three columns and epsilon of 0.3 or more, intervals of 95 % held 2 to 73 % of coefficients of least
# squares without this, and 87 to 100 % with it. Of 300 fits to normal errors of one spread, 4 were taken for others.
_LEAST_SPREAD, _SPREAD_DEVIATIONS = 0.2, (5.0, 2.0)
_TAILED = 0.2
_MIDDLE = 0.5  # the level of the second scale; that of 0.8 has the same precision for normal residuals
_CONTAMINATED = 0.05  # the share of the errors of a fit in squared residuals from which on they hide their shape
_MISFIT_ALARM = 0.01  # the chance of a false alarm that the last step is longer than its errors allow
# Corrections follow if the residuals are less than this share of the deviation of the labels. On working hours, age and
# hourly pay by one or two columns, whose residuals are nearly as large as the labels, they had 1.3 to 18 times the
# error of sums alone for epsilon from 0.1 to 3, and intervals that covered in 44 to 100 %. With a sixth, one of six
# fits with residuals of a tenth of the labels, ten columns and 20,000 records at mu = 0.24 had no corrections, and 20
# times the error; now none of 24.
_SMALL = 1 / 5
_SEEN = 10.0  # deviations of its noise, from which on the variance of the labels is known
_GDP = Fraction(22, 7 * 8)  # at least pi / 8


class Corrections(Sequence):
    """A private linear regression by the size of its residuals as a sequence of releases, for engines that make each.

    While `mechanism` is not None, release it from the records, a pair (X, y) or a matrix whose last column is y, and
    call `advance` with the release. Then `result` is the fit. The parameters of each mechanism depend on the earlier
    releases; the guarantee `privacy` is that of all of them together.

    Parameters
    ----------
    n, d : int
        The public numbers of records and of columns of X.
    domain, labels : dpfast.domains.Ball
        The public domains of the rows and of the labels. Without an intercept the labels' center must be 0.
    privacy : Privacy
        The guarantee in mu, in epsilon and a positive delta, or in epsilon alone.
    intercept : bool

    Attributes
    ----------
    mechanism : Mechanism or None
    total : int
        The number of releases. Public.
    done : int
        The number of releases so far.

    Raises
    ------
    TypeError, ValueError
        From the constructor: a wrong parameter, or public numbers for which a release is not possible.

    Notes
    -----
    The releases are those of `RegressionMoments`; then twice a quantile of the residuals (`ResidualScale`), the second
    time two quantiles where the first fit is too far off to show their shape, and the mean gradient of Huber's loss
    with that scale (`GradientSums`), of rows transformed by the inverse root of their released second moments, so that
    a step against the gradient goes nearly to the solution. What is clipped depends on released numbers only. Where the
    first quantile shows residuals above a fifth of the deviation of the labels, what is left goes to a second release
    of `RegressionMoments` instead, and the fit is that of the mean of both: least squares. Otherwise, where the result
    and the fit of the first release differ by more than their errors allow, as where errors are skewed, the result
    moves towards that fit: least squares, with more noise. Else its target is that of Huber's loss. Where the quantiles
    show residuals that are not normal with one spread for all rows, the last clip is so wide that the target is least
    squares, nearly. Where they may be, or the two gradients differ more than that allows, intervals are as wide as
    those of the first fit. So 87 to 100 % of the intervals of 95 % hold the coefficients of least squares of pay by
    base pay, and of hours by age, for 8000 to 50,000 records and epsilon of 0.3 or more, but 72 to 100 % at 0.1: shapes
    are then hidden by noise, as for 2000 to 5000 records with skewed errors, of which 33 to 85 % are held.
    ``method="sums"`` of `dpfast.linear_regression` is least squares for any records.
    Everything between the releases is post-processing in floats. Privacy: the squares of mu of Gaussian releases and of
    pi / 8 times epsilon squared of the scales, or the epsilons of pure ones, add up to at most the square of the whole
    mu, or the whole epsilon, whichever way is taken
    (https://dpfast.readthedocs.io/en/latest/proofs/residuals.html).

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> from dpfast.regression import Corrections
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (100_000, 2))
    >>> y = X @ [1.0, -2.0] + 0.05 * rng.normal(size=100_000)
    >>> public = {"domain": dpf.domains.Ball(1.5), "labels": dpf.domains.Ball(6.0)}
    >>> corrections = Corrections(n=100_000, d=2, privacy=dpf.Privacy(1.0), **public)
    >>> while corrections.mechanism is not None:
    ...     corrections.advance(corrections.mechanism((X, y)))
    >>> bool(np.abs(corrections.result.coefficients - [1, -2]).max() < 0.01)
    True
    """

    def __init__(
        self,
        *,
        n: SupportsIndex,
        d: SupportsIndex,
        domain: Ball,
        labels: Ball,
        privacy: Privacy,
        intercept: bool = True,
    ) -> None:
        self.n, self.d = checks.whole("n", n, least=1), checks.whole("d", d, least=1)
        if not isinstance(privacy, Privacy):
            raise TypeError(f"privacy must be a dpfast.Privacy, not {type(privacy).__name__}")
        self.privacy, self._mu, self._epsilon = privacy, *amounts(privacy)
        self.intercept = checks.flag("intercept", intercept)
        self._parts = (Fraction(1),)
        public: dict[str, Any] = {"domain": domain, "labels": labels, "intercept": intercept}
        self._sums = RegressionMoments(**{**public, **self._amount(0)})
        self._sums.domain.check_columns(self.d)
        self._p = self.d + self.intercept
        self._planned = _shares(self.n, self._moments_noise, self._mu, self._epsilon)
        self._parts = self._planned
        self._sums = RegressionMoments(**{**public, **self._amount(0)})
        self.domain, self.labels = self._sums.domain, self._sums.labels
        if not self.intercept and self.labels.center_of(1)[0]:
            raise ValueError("labels must have the center 0 without an intercept: subtract it from them")
        check_units(self.domain, self.labels.radius, center=float(self.labels.center_of(1)[0]))
        candidates = [Clip.of(self._p, normal_limit(level), length) for level in _LEVELS for length in _LENGTHS]
        self._wide, self._narrow = (
            Clip.of(self._p, normal_limit(_WIDE[0]), _WIDE[1]),
            min(candidates, key=self._variance),
        )
        self._least_scale, self._most_scale = ResidualScale.range_of(self.labels)
        self._begin()
        self._check_noise()

    def _begin(self) -> None:
        self.done, self._parts = 0, self._planned
        self._theta, self._whitening = np.zeros(self._p), np.zeros((self._p, self._p))
        self._shares, self._moment_noise = np.ones(self._p), np.zeros(self._p)
        self._scale, self._clip = 0.0, self._wide
        self._tailed = self._doubtful = False
        self._quantiles: list[_Quantile] = []
        # The covariance of the error of theta, without that of sampling, and that of the first fit.
        self._errors = self._first_errors = np.zeros((self._p, self._p))
        self._first: Fit | None = None
        self._moments, self._again = np.zeros((0, 0)), False  # whether sums are released again
        self._stages: list[_Reached] = []
        self.mechanism = self._sums

    def _traps(self) -> Iterator[Trap]:
        yield from super()._traps()
        yield from self.few_records()

    def few_records(self) -> Iterator[Trap]:
        """Yield the trap of too few records for the size of the residuals."""
        if (enough := math.ceil(_FEWEST * self.n / self._scale_product)) > self.n:
            yield Trap(
                UtilityWarning,
                f"{self.n:,} records are too few for the size of the residuals at {self.privacy.unit} = "
                f"{self.privacy.amount:.3g}: corrections may be clipped too far, or hardly; use method='sums', or at "
                f"least {enough:,} records",
            )

    @property
    def useful(self) -> bool:
        """Whether it has less error than `RegressionMoments` in general, by public numbers.

        There must be enough records for the scale, noise must not hide the second moments of rows whose length is half
        the radius, and the noise of sums must not be little in comparison with sampling. In simulations of 3 to 20
        columns the error was then 2 to 15 times less.
        """
        of_labels = float(self._sums.noise_deviation(self.n, dimension=self.d)[0, self.d])
        sampling = _LEAST_RESIDUAL * self.labels.radius * math.sqrt(self._square / self.n)
        enough = self._scale_product >= _FEWEST and self._moments_noise <= _MOST_NOISE
        return enough and of_labels > sampling / 3

    @property
    def _square(self) -> float:
        """The second moments of rows of half the radius, in any direction."""
        return self.domain.radius**2 / (4 * self.d)

    @property
    def _moments_noise(self) -> float:
        """The size of the noise on the second moments, relative to those of rows of half the radius."""
        deviation = float(self._sums.noise_deviation(self.n, dimension=self.d)[0, 0])
        return deviation * math.sqrt(2 * self._p) * 4 * self.d / self._sums.domain.radius**2

    @property
    def _scale_product(self) -> float:
        """The number of records times the epsilon of a scale."""
        return self.n * _scale_epsilon(self._parts[1], self._mu, self._epsilon)

    @property
    def noise(self) -> float:
        """The deviation of the error of a coefficient of whitened rows, in deviations of the residuals."""
        return math.sqrt(self._variance(self._narrow) / self.n)

    def _variance(self, clip: Clip) -> float:
        """Return n times the variance of a step from a gradient in the last share, of sampling and of the noise."""
        scale = self.n * self._noise(clip.length)
        return (clip.outer + scale * scale / self.n) * (clip.limit / clip.curvature) ** 2

    def _noise(self, length: float) -> float:
        """Return the deviation of the noise of the last gradient, in units of the scale."""
        amount, share = self._mu or self._epsilon, float(self._parts[-1])
        assert amount is not None
        scale = 2 * length * math.sqrt(self._p) / (self.n * amount)
        return scale * (1 / math.sqrt(share) if self._mu else math.sqrt(self._p + 1) / share)

    def __repr__(self) -> str:
        return (
            f"<linear regression by the size of residuals, of rows in a {self.domain}, labels in a {self.labels}: "
            f"{self.privacy}>"
        )

    def explanation(self, n: SupportsIndex | None = None) -> str:
        """Return a short text about the releases, from public numbers; see `Mechanism.explanation`."""
        sums, scale, first, _, second = self._planned
        parts = {"sums of products": sums, "sizes of residuals": 2 * scale, "2 corrections": first + second}
        of = split(parts, f"{self._unit} squared" if self._mu else self._unit)
        return (
            f"{repr(self).strip('<>')}, in 5 or 6 releases from {self.n:,} records.\n{of}.\n"
            f"If the first size is above a fifth of the deviation of the labels, the rest is for sums again.\n"
            f"A row with NaN counts as the center, and a missing label adds 0 to the corrections."
        )

    @property
    def _unit(self) -> str:
        return "mu" if self._mu else "epsilon"

    # ---- releases ----

    @property
    def total(self) -> int:
        return 3 if self._again else len(self._parts)

    @property
    def _second_sums(self) -> RegressionMoments:
        """The second release of sums, with all that is left."""
        amount = amount_of(sum(self._parts[2:], Fraction()), self._mu, self._epsilon)
        return RegressionMoments(domain=self.domain, labels=self.labels, intercept=self.intercept, **amount)

    def _check_noise(self) -> None:
        """Raise a ValueError, before the first release, for public numbers with which a release is not possible."""
        self._sums.plan(self.n)
        self._second_sums.plan(self.n)
        self._scale_mechanism(_LEAST_LEVEL, self._parts[1])
        for scale in (self._most_scale, self._least_scale):
            self._scale = scale
            for step in (2, 4):
                self._gradient(step, worst=True)
        self._scale = 0.0

    def _scale_mechanism(self, level: float, share: Fraction, most: float = math.inf) -> ResidualScale:
        """Return the release of a quantile of the residuals, which is expected to be below `most`."""
        slopes, labels = self._whitening @ self._theta, self.labels
        if most < labels.radius:  # fewer sizes to mistake for it; powers of two share a plan
            labels = Ball(math.ldexp(1.0, math.frexp(most)[1]))
        return ResidualScale(
            tuple(slopes[: self.d].tolist()),
            float(slopes[self.d]) if self.intercept else 0.0,
            domain=self.domain,
            labels=labels,
            q=level,
            epsilon=_scale_epsilon(share, self._mu, self._epsilon),
        )

    def _high_level(self, share: Fraction, least: float) -> float:
        """Return the level of a high quantile: not so high that there are too few records beyond it."""
        product = self.n * _scale_epsilon(share, self._mu, self._epsilon)
        return max(min(_WIDE[0], 1 - _LEAST_TAIL / product), least)

    def _gradient(self, step: int, *, worst: bool = False) -> GradientSums:
        """Return the gradient of a step; or one with the clip that has the most noise in its units."""
        clip = self._clip.length * self._scale * math.sqrt(self._p)
        if worst:
            clip = math.nextafter(2.0 ** math.frexp(clip)[1], 0.0)
        matrix = np.zeros((self.d + 1, self._p))
        matrix[: self._p] = self._whitening
        return GradientSums(
            "huber",
            tuple(self._theta.tolist()),
            transform=Transform(matrix),
            domain=self.domain,
            clip=clip,
            bound=self._scale,
            labels=self.labels,
            **self._amount(step),
        )

    def _next(self) -> Mechanism:
        if self._again:
            return self._second_sums
        if self.done in (2, len(self._parts) - 1):
            return self._gradient(self.done)
        share = self._parts[self.done]
        if self.done == 1:
            return self._scale_mechanism(self._high_level(share, _LEAST_LEVEL), share)
        most = max(self._quantiles[0].value, self._least_scale)
        level = _MIDDLE if self.done == 3 else self._high_level(share, _LEAST_SPLIT_LEVEL)
        return self._scale_mechanism(level, share, most)

    def _read(self, mechanism: Mechanism, values: Values) -> None:
        if isinstance(mechanism, RegressionMoments):
            if self._again:
                self._average(values, mechanism)
            else:
                self._whiten(values)
        elif isinstance(mechanism, ResidualScale):
            self._quantiles.append(_Quantile(float(values), mechanism.q, self.n * mechanism.epsilon))
            if self.done == 1:
                self._choose_way()
            elif self.done == len(self._parts) - 2:
                self._choose_last_clip()
        else:
            assert isinstance(mechanism, GradientSums)
            self._step(values, mechanism.noise_deviation(self.n))

    def _bounded(self, scale: float) -> float:
        return min(max(scale, self._least_scale), self._most_scale)

    def _choose_way(self) -> None:
        """Choose from the first scale whether sums are released again, and whether the second is of two quantiles.

        It is, with half of its share each, where the errors of the first fit hide the shape of the residuals.
        """
        self._scale = self._bounded(self._wide.limit * self._quantiles[0].deviation)
        deviation = self._scale / self._wide.limit
        self._again = self._are_large(deviation)
        if not self._again and float(np.trace(self._errors)) > _CONTAMINATED * deviation**2:
            sums, first, gradient, second, last = self._parts
            self._parts = sums, first, gradient, second / 2, second / 2, last

    def _choose_last_clip(self) -> None:
        """Choose the last clip: narrow for residuals that may be normal with one spread, else as wide as noise allows.

        A high quantile that is not below the first one is absurd, and no evidence; nor is the first one, if it says
        that residuals are twice as large as labels.
        """
        first, middle, high = self._quantiles[0], self._quantiles[1], self._quantiles[-1]
        if high is middle:
            high = first
        variance, noise = self._label_variance()
        most = (
            first.value
            if high is not first
            else 2 * math.sqrt(max(variance + _SEEN * noise, 0.0)) * normal_limit(first.level)
        )
        absurd = high.value > most
        found = math.log(max(high.deviation, self._least_scale) / max(middle.deviation, self._least_scale))
        relative = math.hypot(middle.relative_error, high.relative_error)
        clear, possible = (not absurd and found > max(_LEAST_SPREAD, more * relative) for more in _SPREAD_DEVIATIONS)
        self._tailed, self._doubtful = clear, possible
        if self._tailed:
            widest = _TAILED * math.sqrt(float(np.trace(self._first_errors)) / self._p) / self._noise(self._wide.length)
            self._scale = self._bounded(max(widest, high.value))
            ratio = self._scale / high.value if high.value > 0 else 1.0
            # Of the squares of residuals up to the scale, if there are at most as many large ones as variances allow.
            squares = middle.value**2 * middle.level + high.value**2 * (high.level - middle.level)
            squares += high.value**2 * (1 - high.level) * (1 + 2 * math.log(max(ratio, 1.0)))
            self._clip = Clip(self._wide.length, 1.0, 1.0, squares / self._scale**2)
            self._errors = self._first_errors  # the first correction may be as far away
            return
        deviation = middle.deviation
        if high is not first and not absurd:
            deviation = math.sqrt(deviation * high.deviation)
        self._clip = self._narrow
        self._scale = self._bounded(self._narrow.limit * deviation)

    def _are_large(self, deviation: float) -> bool:
        """Whether residuals of this deviation are large for the labels, whose variance must be known for that.

        What the errors of the first fit add to residuals is not theirs; it may be twice what is expected.
        """
        variance, noise = self._label_variance()
        own = deviation**2 - 2 * float(np.trace(self._errors))
        return variance > _SEEN * noise and own > _SMALL**2 * variance

    def _label_variance(self) -> tuple[float, float]:
        """Return the released variance of the labels, and the deviation of its noise."""
        moments, d = self._moments, self.d
        variance = float(moments[d, d]) - (float(moments[d, d + 1]) ** 2 if self.intercept else 0.0)
        return variance, float(self._sums.noise_deviation(self.n, dimension=d)[d, d])

    def _average(self, moments: Values, mechanism: RegressionMoments) -> None:
        """Fit to the mean of both releases of sums, by the inverses of their variances."""
        first, second = (made.noise_deviation(self.n, dimension=self.d) for made in (self._sums, mechanism))
        share = float(second[0, 0] ** 2 / (first[0, 0] ** 2 + second[0, 0] ** 2))  # all entries have this ratio
        mean = share * self._moments + (1 - share) * moments
        self._first = self._sums.fit_with(mean, np.hypot(share * first, (1 - share) * second), self.n)

    def _whiten(self, moments: Values) -> None:
        """Choose the transform and the start from the moments of (x - center, y - label center, 1)."""
        self._first, self._moments = self._sums.fit(moments, self.n), moments
        p, d, radius = self._p, self.d, self.domain.radius
        deviations = self._sums.noise_deviation(self.n, dimension=d)
        units = np.full(p, 1 / radius)  # in which the noise on all entries off the diagonal has one deviation
        noise = float(deviations[0, 0]) / math.sqrt(2) * units[0] ** 2
        if self.intercept:
            units[d] = noise / (float(deviations[0, d + 1]) * units[0]) if deviations[0, d + 1] else 1.0
        kept = [*range(d), d + 1] if self.intercept else [*range(d)]
        second = moments[np.ix_(kept, kept)] * units * units[:, None]
        most = 1 + units[-1] ** 2
        ridge = min(max(2 * _RIDGE * math.sqrt(p) * noise, _LEAST_EIGENVALUE * most), most)
        eigenvalues, vectors = np.linalg.eigh(second)
        eigenvalues = np.clip(eigenvalues, 0.0, most)
        roots = np.sqrt(eigenvalues + ridge)
        self._shares, self._moment_noise = eigenvalues / (eigenvalues + ridge), math.sqrt(noise) / roots
        self._whitening = vectors / roots * units[:, None]
        back = (vectors * roots).T / units  # the inverse
        to_center = np.eye(d + 1)  # from (coefficients, intercept) to the coefficients of (x - center, 1)
        to_center[d, :d] = self.domain.center_of(d)
        back = back @ to_center[:p]
        assert self._first.covariance is not None
        self._theta = self._shortened(back @ np.append(self._first.coefficients, self._first.intercept))
        self._errors = self._first_errors = back @ self._first.covariance @ back.T

    def _shortened(self, theta: Values) -> Values:
        """Return the nearest vector of a length that gradients support."""
        most, largest = _MOST_COEFFICIENT * self.labels.radius, float(np.abs(theta).max())
        length = largest * float(np.linalg.norm(theta / largest)) if largest else 0.0
        return theta * (most / length) if length > most else theta

    def _step(self, gradient: Values, deviation: float) -> None:
        """Take the step against a gradient that would lead to the solution for normal rows and errors.

        Unless the error would grow, as where an absurd scale, or noise in the second moments, hides the solution.
        """
        clip, left = self._clip, np.diag(1 - self._shares)
        squares = self._moment_noise**2
        spread = np.diag(squares * float(squares @ np.diag(self._errors)))  # by the noise of the second moments
        errors = left @ self._errors @ left + spread + _CURVATURE_DOUBT**2 * self._errors
        errors += (deviation / clip.curvature) ** 2 * np.eye(self._p)
        if np.trace(errors) < np.trace(self._errors):
            self._errors, self._theta = errors, self._shortened(self._theta - gradient / clip.curvature)
        sampling = clip.outer * (self._scale / clip.curvature) ** 2 / self.n
        self._stages.append(_Reached(self._theta, self._errors, sampling * np.diag(self._shares)))

    # ---- the result ----

    @property
    def result(self) -> Fit:
        """The fit, after the last release; before it, a ValueError is raised."""
        self._check_complete()
        assert self._first is not None
        assert self._first.covariance is not None
        if self._again:
            return replace(self._first, privacy=self.privacy)
        d, (wide, last) = self.d, self._stages
        last = self._doubted(wide, last)
        back = np.zeros((d + 1, self._p))  # from (x - center, 1) to (coefficients, intercept)
        back[: self._p] = np.eye(self._p)
        back[d, :d] -= self.domain.center_of(d)
        back = back @ self._whitening

        def in_data_units(matrix: Values) -> Values:
            return np.asarray(back @ matrix @ back.T)

        target = np.append(self._first.coefficients, self._first.intercept), self._first.covariance
        errors = in_data_units(wide.errors + wide.sampling)
        apart = target[1] + in_data_units(last.errors)
        if not self._tailed:
            target = self._guarded(back @ wide.theta, errors, *target, target[1] + errors, _FALSE_ALARMS[0])
            apart = in_data_units(last.errors + wide.errors + np.abs(wide.sampling - last.sampling))
        errors = in_data_units(last.errors + last.sampling)
        chance = _FALSE_ALARMS[0 if self._tailed else 1]
        values, covariance = self._guarded(back @ last.theta, errors, *target, apart, chance)
        deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        return Fit(values[:d], float(values[d]), deviations[:d], float(deviations[d]), self.privacy, self.n, covariance)

    def _doubted(self, wide: _Reached, last: _Reached) -> _Reached:
        """Return the last estimate, with the doubt that its distance from the first one raises; or the mean of both.

        They have the same target for normal residuals of one spread, and the same curvature as presumed.
        """
        away = last.theta - wide.theta
        if self._tailed:
            return last._replace(errors=last.errors + np.outer(away, away))
        apart = last.errors + wide.errors + np.abs(wide.sampling - last.sampling)
        size = float(away @ np.linalg.pinv(apart, hermitian=True) @ away)
        if self._doubtful or size > scipy.special.chdtri(self._p, _MISFIT_ALARM):
            return last._replace(errors=last.errors + np.outer(away, away) + self._first_errors)
        own, others = float(np.trace(last.errors)), float(np.trace(wide.errors))
        share = own / (own + others) if own else 0.0  # of the first estimate in the best mean of both
        errors = share**2 * wide.errors + (1 - share) ** 2 * last.errors
        return _Reached(last.theta - share * away, errors, last.sampling)

    def _guarded(
        self, values: Values, covariance: Values, target: Values, errors: Values, apart: Values, chance: float
    ) -> tuple[Values, Values]:
        """Return an estimate, moved towards one that is clipped less if they differ by more than their errors allow.

        Slopes and the intercept are moved each by themselves: skewed errors move the intercept most. `errors` is the
        covariance of the target, `apart` that of the difference.
        """
        d = self.d
        away, pull = target - values, np.zeros(d + 1)
        units = np.array([self.domain.radius] * d + [1.0]) / self.labels.radius
        relative, apart = away * units, apart * units * units[:, None]
        for part in (slice(0, d), slice(d, d + 1)):
            size = float(relative[part] @ np.linalg.pinv(apart[part, part], hermitian=True) @ relative[part])
            allowed = float(scipy.special.chdtri(part.stop - part.start, chance))
            pull[part] = max(0.0, 1 - allowed / size) if size else 0.0
        left = (1 - pull) * away * (pull > 0)
        return values + pull * away, covariance + pull * pull[:, None] * errors + np.outer(left, left)


class _Quantile(NamedTuple):
    """A released quantile of the residuals, its level, and the number of records times its epsilon."""

    value: float
    level: float
    product: float

    @property
    def deviation(self) -> float:
        """The deviation of normal residuals with this quantile."""
        return self.value / normal_limit(self.level)

    @property
    def relative_error(self) -> float:
        """The relative deviation of the noise for normal residuals; that of its rank is of a Laplace law."""
        limit = normal_limit(self.level)
        return 2 * math.sqrt(math.pi) * math.exp(limit * limit / 2) / (limit * self.product)


class _Reached(NamedTuple):
    """An estimate, the covariance of its error without that of sampling, and of sampling."""

    theta: Values
    errors: Values
    sampling: Values


def _shares(n: int, noise: float, mu: float | None, epsilon: float | None) -> tuple[Fraction, ...]:
    """Return the share of each release, which add up to 1: of sums and scales what they need, within limits.

    `noise` is that of second moments by the whole budget.
    """
    needed = _ENOUGH / n / _scale_epsilon(Fraction(1), mu, epsilon)  # of the epsilon that a scale could have
    needed = min(needed if mu is None else needed * needed, 1.0)
    scale = min(max(Fraction(needed), _LEAST_SCALE), _MOST_SCALES)
    needed = noise / _WANTED_NOISE  # the noise is as 1 / epsilon, or 1 / mu
    needed = min(needed if mu is None else needed * needed, 1.0)
    sums = min(max(Fraction(needed), _LEAST_SUMS[mu is None]), _MOST_SUMS[mu is None])
    left = 1 - sums - 2 * scale
    return sums, scale, _FIRST * left, scale, (1 - _FIRST) * left


def _scale_epsilon(share: Fraction, mu: float | None, epsilon: float | None) -> float:
    """Return the epsilon of a scale with this share: a loss of this range is Gaussian with sqrt(pi / 8) times it."""
    if mu is not None:
        return root_down(share * Fraction(mu) ** 2 / _GDP)
    return amount_of(share, mu, epsilon)["epsilon"]


def normal_limit(level: float) -> float:
    """Return the distance from 0 within which this share of standard normal numbers is."""
    return float(scipy.special.ndtri((1 + level) / 2))


class Clip(NamedTuple):
    """How a gradient is clipped: for whitened normal rows, and normal residuals.

    Attributes
    ----------
    length : float
        Where gradients are clipped, in units of the scale times the root mean square length of rows.
    limit : float
        Where residuals are clipped, in their deviations: their scale.
    curvature : float
        The derivative of the mean gradient, in any direction.
    outer : float
        The mean square of a gradient in any direction, in units of the squared scale.
    """

    length: float
    limit: float
    curvature: float
    outer: float

    @staticmethod
    @lru_cache(maxsize=256)
    def of(p: int, limit: float, length: float) -> Clip:
        """Return that for rows of p numbers."""
        shares = (np.arange(256) + 0.5) / 256
        squares = 2 * scipy.special.gammaincinv(p / 2, shares) / p  # squared lengths of rows, in units of their mean
        limits = np.minimum(1.0, length / np.sqrt(squares)) * limit
        inside = 2 * scipy.special.ndtr(limits) - 1
        second = inside - 2 * limits * np.exp(-(limits**2) / 2) / math.sqrt(2 * math.pi) + limits**2 * (1 - inside)
        curvature, outer = float(np.mean(squares * inside)), float(np.mean(squares * second))
        return Clip(length, limit, curvature, outer / limit**2)
