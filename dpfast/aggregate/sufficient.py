"""Maximum likelihood from noisy sufficient statistics: sums over clamped records, for exponential families."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _balls
from dpfast.aggregate.blocks import computable, named_numbers, ranges_of
from dpfast.aggregate.clamping import USELESS, clamping, relative_errors, span_too_much, within
from dpfast.aggregate.moments import Moments
from dpfast.aggregate.noise import NOISE, SumsNoise
from dpfast.core import checks
from dpfast.core.grid import Grid
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.traps import Trap
from dpfast.errors import UtilityWarning
from dpfast.families.family import Ranges
from dpfast.families.summed import Summed, summed
from dpfast.families.user import family_of
from dpfast.laws import (
    ClampedBox,
    ClampedNoise,
    DiscreteLaplace,
    NoisyIntegers,
    RoundedBox,
    RoundedGaussian,
    RoundedGaussians,
    Staircase,
)
from dpfast.mechanisms import Mechanism
from dpfast.mechanisms.integer_noise import integer_noise, kind_of_noise
from dpfast.mechanisms.plan import Plan
from dpfast.mechanisms.usefulness import EVEN_VARIANCE, enough_for_error
from dpfast.streaming import ColumnSums, TransformedSums
from dpfast.theory.quantiles import normal_plus_box_error

_MOST = 2**61  # of a sum
_BITS, _BITS_OF_SQUARES = 30, 16  # of the codes
PLANNED_N = 10_000
_ABSURD = 10.0  # error relative to a parameter from which on a release warns: at 1/2, common bounds would


@dataclass(frozen=True, repr=False)
class SufficientStatistics(Mechanism):
    """Release the parameters of an exponential family by sums of its sufficient statistics, with noise on the sums.

    Pure epsilon-differential privacy, or (epsilon, delta) with Gaussian noise, under one replaced record; the number of
    records is public.

    Parameters
    ----------
    family : str, Family or scipy.stats distribution
        Bernoulli, Poisson, geometric, exponential, Pareto, normal, lognormal, gamma or beta.
    bounds : pair (lower, upper), or mapping from names to pairs
        Public range of each parameter. The family must not have other parameters: a normal family needs bounds on the
        mean and on either the deviation or the variance.
    epsilon : float
        Positive; rounded down to a double. For all parameters together.
    delta : float
        At least 0 and below 1; used by Gaussian noise only.
    noise : {"auto", "k-norm", "gaussian"}
        "k-norm": for one statistic discrete Laplace noise, for two noise of density proportional to the exponential of
        the largest coordinate, in ranges over epsilon. "gaussian": for delta > 0. "auto" takes the one of less
        variance; for one statistic with pure privacy also the staircase noise of `GlobalSensitivity`.
    bias_correction : bool
        Whether to subtract the bias of second order, of sampling and noise.
    guess : mapping from names to float, optional
        Public guess of the parameters, for the choice of the interval that records are clamped to. Default: any in the
        bounds (see Notes).
    planned_n : int
        The number of records for which that interval is chosen, a public guess. Releases take any number.
    record_bounds : pair of float, optional
        The interval that records are clamped to, instead of the chosen one.
    missing : float, optional
        The value of NaN, None and null records, public. Default: the median of the family at the middle of the bounds.
    step : float, optional
        The rounding step of a single statistic, a power of two. Default: 1 for counts; for others the statistics have
        at most 2**30 steps, or 2**16 if squares are summed.

    Raises
    ------
    TypeError, ValueError
        From the constructor: a wrong parameter; a family without sums, or bounds that are not for all of its
        parameters. From a call, once n is known: sums of 2**61 steps or more.

    Notes
    -----
    Privacy: each record is clamped to a public interval, and its statistics (x, log x, log(1 - x), or x and the squared
    distance from the middle of the interval) are rounded to grids. Their sums are exact integers, which one record
    changes by at most the widths of the ranges. The noise has exactly the scale that this requires; all else is
    postprocessing (https://dpfast.readthedocs.io/en/latest/proofs/sufficient-statistics.html). Records outside the
    support of the family count as its nearest point. (`SampleAndAggregate` leaves them out, and missing ones, too.)
    Estimate: the parameters for which the statistics of a *clamped* record have the noisy means. So clamping causes no
    bias, and the interval may be narrow. The bias of second order is that of this inverse for the covariance of the
    means, from sampling and noise.
    Interval: of a set of candidates, the one whose error, relative to the least, is least on average over parameters
    that are spread evenly over the bounds (the logarithms of positive ones); with a guess, the one of least error.
    Cost: one pass, about 1.3 times ``np.mean(x)`` for one statistic that is the record; a logarithm takes about 2 ns.
    The first mechanism with some public parameters takes up to 0.4 s to choose the interval, which is then cached; an
    estimate from the sums takes 0.5 to 3 ms, and the first one of two parameters 50 ms more.

    References
    ----------
    Vu and Slavkovic 2009, "Differential privacy for clinical trial data: preliminary evaluations"; Bernstein and
    Sheldon 2018, "Differentially private Bayesian inference for exponential families", for clamped statistics.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> mechanism = dpf.SufficientStatistics("poisson", bounds=(0, 500), epsilon=1.0)
    >>> counts = np.random.default_rng(0).poisson(20, 10_000)
    >>> bool(abs(mechanism(counts) - 20) < 1)
    True
    >>> round(mechanism.error(10_000, 20.0), 3)
    0.164
    """

    family: Any
    bounds: Any = field(kw_only=True)
    epsilon: float = field(kw_only=True)
    delta: float = field(kw_only=True, default=0.0)
    noise: str = field(kw_only=True, default="auto")
    bias_correction: bool = field(kw_only=True, default=True)
    guess: Any = field(kw_only=True, default=None)
    planned_n: int = field(kw_only=True, default=PLANNED_N)
    record_bounds: Any = field(kw_only=True, default=None)
    missing: float | None = field(kw_only=True, default=None)
    step: float | None = field(kw_only=True, default=None)

    def __post_init__(self) -> None:
        family = family_of(self.family)
        bounds = ranges_of(family, self.bounds)
        names = tuple(name for name, _ in bounds)
        model = summed(family, names)
        if model is None:
            raise ValueError(
                f"sums need an exponential family with bounds for all of its parameters, each once, not "
                f"{type(family).__name__} with bounds for {', '.join(names)}"
            )
        checked = {
            "family": family,
            "bounds": bounds,
            "epsilon": checks.positive_down("epsilon", self.epsilon),
            "delta": checks.delta_down(self.delta),
            "noise": checks.choice("noise", self.noise, NOISE),
            "bias_correction": checks.flag("bias_correction", self.bias_correction),
            "guess": None if self.guess is None else named_numbers("guess", self.guess, family),
            "planned_n": checks.whole("planned_n", self.planned_n, least=1),
            "record_bounds": None if self.record_bounds is None else _interval(model, self.record_bounds),
            "missing": None if self.missing is None else checks.real("missing", self.missing),
            "step": None if self.step is None else checks.positive("step", self.step),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.noise == "gaussian" and not self.delta:
            raise ValueError("delta must be positive for Gaussian noise, not 0.0")
        with computable(bounds, " are too extreme for sums of clamped records", "method='blocks' of dpf.mle"):
            widths = self.widths
        for width in widths:
            self._scale(width)

    # ---- the public plan ----

    @cached_property
    def model(self) -> Summed:
        """The statistics, and their moments."""
        found = summed(self.family, tuple(name for name, _ in self.bounds))
        assert found is not None
        return found

    @property
    def _ranges(self) -> tuple[tuple[float, float], ...]:
        return tuple(pair for _, pair in self.bounds)

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The interval that the coordinates of records are clamped to, before rounding to a grid."""
        if self.record_bounds is not None:
            low, high = (self.model.coordinate(end) for end in self.record_bounds)
            return low, high
        low, high, _ = self.clamping
        return low, high

    @property
    def clamping(self) -> Any:
        """The chosen interval, with the errors that it leads to (`dpfast.aggregate.clamping`)."""
        model, ranges = self.model, self._ranges
        return clamping(self.family, model.names, ranges, self.guessed, self.planned_n, self._unit_variance)

    @property
    def guessed(self) -> tuple[float, ...] | None:
        """The guess of each parameter, within its bounds; the middle for one that the guess does not determine."""
        if self.guess is None:
            return None
        lower, upper = zip(*self._ranges, strict=True)
        known = self.family.reference(Ranges(self.model.names, lower, upper), dict(self.guess))
        return tuple(
            min(max(known[name], low), high) for name, low, high in zip(self.model.names, lower, upper, strict=True)
        )

    @cached_property
    def grids(self) -> tuple[Grid, ...]:
        """The public grid of each function of the records that is summed; see `Summed.columns`."""
        model, (low, high) = self.model, self.interval
        middle = Moments(model, self._ranges, low, high)
        center = middle.theta(
            (
                middle.phi(np.array([pair[0] for pair in self._ranges]))
                + middle.phi(np.array([pair[1] for pair in self._ranges]))
            )[None]
            / 2
        )
        with np.errstate(all="ignore"):
            median = float(np.clip(np.nan_to_num(model.quantile(center, np.array([0.5]))[0]), low, high))
        absent = median if self.missing is None else self._coordinate_of_missing(low, high)
        filled = [least for least, _ in model.ends(absent, absent)]
        ends = model.ends(low, high)
        return tuple(self._grid(a, b, missing) for (a, b), missing in zip(ends, filled, strict=True))

    def _coordinate_of_missing(self, low: float, high: float) -> float:
        """Return the coordinate of `missing`, in the interval."""
        assert self.missing is not None
        try:
            return min(max(self.model.coordinate(self.missing), low), high)
        except (ValueError, ArithmeticError):  # at or outside an end of the support
            return low if self.missing <= 0 else high

    def _grid(self, low: float, high: float, missing: float) -> Grid:
        """Return the grid of one function; with an odd number of points if squares around the middle one are summed."""
        squares = self.model.squares
        step = self.step
        if not low < high:
            raise OverflowError("the ends of a statistic are the same double")
        if step is None:
            bits = _BITS_OF_SQUARES if squares else _BITS
            least = max((high - low) * 2.0**-bits, max(abs(low), abs(high)) * 2.0**-51, 2.0**-1000)
            step = math.ldexp(1.0, math.frexp(least)[1])
            if self.model.whole:
                step = max(step, 1.0)
        grid = Grid(low, high, step, missing)
        return Grid(grid.lower, grid.upper + grid.step, step, missing) if squares and grid.size % 2 == 0 else grid

    @cached_property
    def moments(self) -> Moments:
        """The moments of the statistics of a clamped record as functions of the parameters."""
        low, high = self.interval
        if len(self.grids) == 1:
            low, high = self.grids[0].lower, self.grids[0].upper
        return Moments(self.model, self._ranges, low, high)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The largest change of the sum of each statistic by one record, in codes."""
        last = [grid.size - 1 for grid in self.grids]
        return (last[0], (last[0] // 2) ** 2) if self.model.squares else tuple(last)

    # ---- noise and guarantee ----

    @cached_property
    def sums_noise(self) -> SumsNoise:
        """The kind of noise of the sums, and its size."""
        return SumsNoise.chosen(self.noise, len(self.bounds), Fraction(self.epsilon), self.delta)

    @cached_property
    def _unit_variance(self) -> float:
        """The variance of the noise on the sum of a statistic of width 1, without rounding."""
        return 2 / min(max(self.sums_noise.laplace_epsilon, 1e-100), 1e100) ** 2

    def _scale(self, width: int) -> Fraction | float:
        return self.sums_noise.scale(width)

    @property
    def _kind(self) -> str:
        return "auto" if self.noise == "auto" else "discrete-laplace"

    @cached_property
    def _noise_of_one(self) -> DiscreteLaplace | Staircase | RoundedGaussian:
        """The noise of a single sum."""
        [width] = self.widths
        if self.sums_noise.kind == "gaussian":
            return RoundedGaussian(self._scale(width))
        return integer_noise(self._kind, width, width, self.epsilon)

    @cached_property
    def _noise_of_several(self) -> RoundedBox | RoundedGaussians:
        """The noise of several sums together."""
        scales = [self._scale(width) for width in self.widths]
        return RoundedGaussians(scales) if self.sums_noise.kind == "gaussian" else RoundedBox(scales)

    def _noise_variances(self, n: int) -> NDArray[np.float64]:
        """Return the variances of the noise on the means of the statistics, in units of their widths."""
        if len(self.widths) == 1:
            return np.array([self._noise_of_one.variance / self.widths[0] ** 2 / n**2])
        return np.full(len(self.widths), self._unit_variance / n**2)

    @property
    def privacy(self) -> Privacy:
        """(epsilon, delta) for Gaussian noise, else epsilon alone."""
        return Privacy(self.epsilon, self.delta if self.sums_noise.kind == "gaussian" else 0.0)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        if self.sums_noise.kind == "gaussian":
            return PrivacyProfile(self.privacy, (("gaussian", self.sums_noise.mu, 1),))
        if len(self.widths) > 1:
            return PrivacyProfile(self.privacy, (("pure", self.epsilon, 1),))
        [width] = self.widths
        if kind_of_noise(self._kind, width, self.epsilon) == "staircase":
            r = _balls.staircase_r(width / Fraction(self.epsilon), width)
            return PrivacyProfile(self.privacy, (("staircase", self.epsilon, 1, width, r),))
        return PrivacyProfile(self.privacy, (("discrete-laplace", self.epsilon, 1, width),))

    def __repr__(self) -> str:
        ranges = ", ".join(f"{name} in [{low!r}, {high!r}]" for name, (low, high) in self.bounds)
        low, high = (self.model.record(end) for end in self.interval)
        return (
            f"<SufficientStatistics release, {self.family!r}, {ranges}, records clamped to [{low:.6g}, {high:.6g}]: "
            f"{self.privacy}>"
        )

    # ---- the release ----

    def _enough(self) -> float:
        return enough_for_error(
            math.sqrt(self._unit_variance), spread=4 * EVEN_VARIANCE if self.model.squares else None
        )

    def _make_plan(self, n: int | None) -> Plan:
        if n is not None and n * max(self.widths) >= _MOST:
            raise ValueError(f"n times the steps of a statistic must be below 2**61, not {n * max(self.widths)}")
        return _SumsPlan(self, n)

    @property
    def points(self) -> tuple[Grid, ...]:
        """The grid, if it is one of records."""
        return self.grids if self.model.columns == ("value",) else ()

    def reading(self) -> TransformedSums:
        return TransformedSums(self.model.columns, self.grids, squares=self.model.squares)

    def law_of(self, summary: ColumnSums) -> ClampedNoise | ClampedBox | NoisyIntegers:
        n, columns = summary
        self.plan(n)  # reject an n that is not supported
        last = [n * width for width in self.widths]
        totals = [column.total for column in columns]
        if self.model.squares:
            [(_, total, squares)], half = columns, (self.grids[0].size - 1) // 2
            totals.append(squares - 2 * half * total + n * half**2)
        center = [min(max(total, 0), most) for total, most in zip(totals, last, strict=True)]

        def decode(codes: ArrayLike) -> Any:
            return self._decode(np.asarray(codes), n)

        if len(center) == 1:
            return ClampedNoise(self._noise_of_one, center=center[0], last=last[0], decode=decode)
        noise = self._noise_of_several
        if isinstance(noise, RoundedGaussians):
            return NoisyIntegers(np.array(center), noise=noise, most=2**62 - 1, decode=decode)
        return ClampedBox(noise, center=center, last=last, decode=decode)

    def _decode(self, codes: NDArray[np.int64], n: int) -> Any:
        """Return the estimates from noisy sums, of shape (..., p) for p > 1 statistics."""
        p = len(self.widths)
        shape = codes.shape if p == 1 else codes.shape[:-1]
        averages = codes.reshape(-1, p) / (n * np.array(self.widths, np.float64))
        averages = averages.clip(0.0, 1.0)
        if self.model.squares:
            if not self.model.whole:  # the squares of rounded numbers are larger, by a twelfth of a squared step
                averages[:, 1] -= 1 / (12 * self.widths[1])
        elif p > 1:
            averages = self._rescaled(averages)
        found = self.moments.estimates(averages, n, self._noise_variances(n), corrected=self.bias_correction)
        return found.reshape(*shape, p) if p > 1 else found.reshape(shape)[()]

    def _rescaled(self, averages: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert means in units of the grids, which are a little wider than the ranges, to units of the ranges."""
        ends = self.model.ends(*self.interval)
        columns = []
        for average, grid, (low, high) in zip(averages.T, self.grids, ends, strict=True):
            columns.append((grid.lower - low + average * (grid.upper - grid.lower)) / (high - low))
        return np.stack(columns, axis=1)

    def _explained_missing(self) -> str:
        absent = self.grids[0].nan_value
        value = math.exp(absent) if self.model.columns[0] == "log" else absent
        return (
            f"Missing records (NaN, None, null) count as {value:.6g}, records outside the support as its nearest point"
        )

    def deviations(self, n: int, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the standard deviations of the estimates at assumed parameters, both of shape (m, p)."""
        phi = self.moments.phi(theta)
        with np.errstate(all="ignore"):
            return self.moments.deviations(phi, self.moments.covariance(phi, n, self._noise_variances(n)))

    def worst(self, n: SupportsIndex) -> tuple[float, dict[str, float]]:
        """Return the largest expected error of a positive parameter relative to its value, and for which parameters.

        It is 0 with a guess or `record_bounds`, from which the bounds do not follow.
        """
        n = checks.whole("n", n, least=1)
        if self.guess is not None or self.record_bounds is not None:
            return 0.0, {}
        theta = within(self.model, self._ranges)
        errors = relative_errors(self.model, theta, self.deviations(n, theta))
        place = int(np.argmax(errors))
        return float(errors[place]), dict(zip(self.model.names, theta[place].tolist(), strict=True))

    def error(self, n: SupportsIndex, theta: Any = None, *, confidence: float = 0.95) -> Any:
        """Predict the error if the records follow the family at `theta`. Public: it reads no data.

        With probability `confidence` the release is about this close to the parameter. The error includes sampling, the
        information that clamping loses, and the noise.

        Parameters
        ----------
        n : int
            The number of records.
        theta : float or mapping from names to float
            The assumed parameters of the records, or a release, in the order of the bounds; a float for one parameter.
        confidence : float
            In (0, 1).

        Returns
        -------
        float or ndarray
            In units of the parameter; an array for several. At most the distance from theta to the farther bound.

        Raises
        ------
        TypeError
            If theta is missing.
        ValueError
            If a parameter is outside its bounds.

        Notes
        -----
        To first order: the release is a linear function of the noisy sums, the sampling error is normal, and several
        noises together have the shape of one.

        Examples
        --------
        >>> import dpfast as dpf
        >>> mechanism = dpf.SufficientStatistics("exponential", bounds=(0.2, 5), epsilon=1.0, planned_n=10**6)
        >>> round(mechanism.error(10**6, 1.0), 5)
        0.00196
        """
        n, confidence = checks.whole("n", n, least=1), checks.between("confidence", confidence, 0, 1)
        at = self._assumed(theta)
        phi, noise = self.moments.phi(at[None]), self._noise_variances(n)
        with np.errstate(all="ignore"):
            whole = self.moments.deviations(phi, self.moments.covariance(phi, n, noise))[0]
            sampling = self.moments.deviations(phi, self.moments.covariance(phi, n, 0 * noise))[0]
        errors = []
        for value, (low, high), total, sampled in zip(at, self._ranges, whole, sampling, strict=True):
            spread = math.sqrt(max(total**2 - sampled**2, 0.0))
            farther = max(high - value, value - low)
            reach = self._quantile(min(float(sampled), farther), spread, confidence)
            errors.append(min(reach, farther))
        return errors[0] if len(errors) == 1 else np.array(errors)

    def _quantile(self, sampled: float, spread: float, confidence: float) -> float:
        """Return the error of a normal variable and of noise with these standard deviations."""
        if self.sums_noise.kind == "gaussian" or not spread:
            return math.hypot(sampled, spread) * float(scipy.special.ndtri((1 + confidence) / 2))
        p = len(self.widths)
        scale = spread / math.sqrt((p + 1) * (p + 2) / 3)
        return normal_plus_box_error(max(sampled, 1e-9 * spread), scale, p, confidence)

    def _assumed(self, theta: Any) -> NDArray[np.float64]:
        """Return the values of theta, in the order of the bounds."""
        if theta is None:
            raise TypeError("give theta, the assumed parameters")
        names = self.model.names
        if isinstance(theta, Mapping):
            known = dict(named_numbers("theta", theta, self.family))
            if set(known) != set(names):
                raise ValueError(f"theta must give {', '.join(names)}")
            values = [known[name] for name in names]
        else:
            values = [checks.real("theta", value) for value in np.atleast_1d(theta).tolist()]
            if len(values) != len(names):
                raise ValueError(f"theta must give {', '.join(names)}")
        for name, value, (low, high) in zip(names, values, self._ranges, strict=True):
            if not low <= value <= high:
                raise ValueError(f"theta must give {name} in its bounds [{low!r}, {high!r}], not {value!r}")
        return np.array(values)


class _SumsPlan(Plan):
    """A release of sums, which warns of bounds that span so much that records are clamped too narrowly."""

    mechanism: SufficientStatistics

    def __init__(self, mechanism: SufficientStatistics, n: int | None) -> None:
        super().__init__(mechanism, n)
        self.traps = self.traps or tuple(self._of_clamping())

    def _of_clamping(self) -> Iterator[Trap]:
        """Yield the trap of parameters within the bounds that only a guess would make known."""
        mechanism, n = self.mechanism, self.n
        if (
            n is None
            or not span_too_much(mechanism.model, mechanism._ranges)
            or (found := mechanism.worst(n))[0] <= _ABSURD
        ):
            return
        error, at = found
        guessing, theta = replace(mechanism, guess=at), np.array([list(at.values())])
        if relative_errors(mechanism.model, theta, guessing.deviations(n, theta))[0] <= USELESS:
            low, high = (mechanism.model.record(end) for end in mechanism.interval)
            values = ", ".join(f"{name} = {value:.3g}" for name, value in at.items())
            yield Trap(
                UtilityWarning,
                f"the bounds span so much that records are clamped to ({low:.3g}, {high:.3g}): for {values}, the "
                f"expected error is {error:.3g} times the value; give guess=, narrower bounds, record_bounds= of "
                f"SufficientStatistics, or method='blocks' of dpf.mle",
            )


def _interval(model: Summed, bounds: Any) -> tuple[float, float]:
    """Bounds of records, inside the support."""
    low, high = checks.interval("record_bounds", bounds)
    try:
        ends = [model.coordinate(end) for end in (low, high)]
    except (ValueError, ArithmeticError):
        ends = [math.nan]
    least, most = model.most
    if not all(math.isfinite(end) and least <= end <= most for end in ends):
        raise ValueError(f"record_bounds must lie inside the support of the family, not {bounds!r}")
    return low, high
