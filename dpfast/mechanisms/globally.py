"""The global sensitivity mechanism: an exact integer plus noise scaled to the largest effect of one record."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _balls, _select
from dpfast.core import checks, containers
from dpfast.core.composition import laplace_epsilon_up
from dpfast.core.grid import Grid, check_grid
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.rounding import outward
from dpfast.core.spending import imagined, paid_before
from dpfast.core.types import Exact
from dpfast.laws import ClampedNoise, IntegerNoise, NoisyIntegers, SumAndCount, add_clamped
from dpfast.mechanisms.assumptions import (
    Assumed,
    averaged_noise,
    code_moments,
    error,
    evenly_over,
    normal_plus_noise_error,
    normal_points,
    target,
)
from dpfast.mechanisms.expectations import law_for, mean_distances, mean_magnitude
from dpfast.mechanisms.foreseen import Foreseen
from dpfast.mechanisms.grouped_sums import GroupsOfSums
from dpfast.mechanisms.integer_noise import integer_noise, kind_of_noise
from dpfast.mechanisms.plan import Plan
from dpfast.mechanisms.prediction import Expected
from dpfast.mechanisms.statistic import StatisticMechanism
from dpfast.mechanisms.triples import Triples
from dpfast.mechanisms.usefulness import EVEN_VARIANCE, OF_NOISE, enough_for_error
from dpfast.statistics import Count, Mean, MomentStatistic, RankStatistic, Sum, UnboundedStatistic, Variance
from dpfast.streaming import Chunks, CodeSums, Reading, RecordCount, Sums

_NOISES = ("auto", "discrete-laplace", "staircase")

# Of a sum and a count with a private number of records. The bound of a mechanism's integers is 2**62.
_MOST_EXACT = 2**61 - 1
_MOST_NOISY = 2**62


class AddedNoise(GroupsOfSums):
    """The public parts of the law of a release with noise on an integer.

    Attributes
    ----------
    noise : IntegerNoise
    last : int
        The largest release code.
    decode : callable
        What codes mean.
    unit : int
        Of the codes, in which the exact statistic is rounded.
    """

    mechanism: GlobalSensitivity

    def __init__(
        self,
        mechanism: GlobalSensitivity,
        n: int | None,
        noise: IntegerNoise,
        last: int,
        decode: Callable[[Any], Any],
        unit: int,
    ) -> None:
        super().__init__(mechanism, n)
        self.noise, self.last, self.decode, self.unit = noise, last, decode, unit
        self._draw = paid_before(noise.draw)  # in a step, which asks for the charge
        grid = mechanism.grid
        self._value: Callable[[int], float]
        self._value = mechanism.statistic.valued(grid, n) if n is not None else decode
        self._moments: dict[str, Any] = {"first": grid.first, "squares": mechanism.statistic.squares, **grid.kernel}

    def draw(self, values: Any, source: np.random.BitGenerator, threads: int = 1) -> float:
        if self.n is None or self.mechanism.resolves or isinstance(values, Chunks):
            return float(super().draw(values, source, threads))
        total, squares, _ = _select.moments(values, workers=threads, **self._moments)
        return self._noisy(self.center(self.n, total, squares), source)

    def draw_from(self, sums: CodeSums, source: np.random.BitGenerator) -> float:
        return self._noisy(self.center(*sums), source)

    def _noisy(self, code: int, source: np.random.BitGenerator) -> float:
        """Return the release, from the exact statistic in release codes."""
        if self.last:
            code = min(max(code + self._draw(source), 0), self.last)
        return self._value(code)

    def center(self, n: int, total: int, squares: int) -> int:
        """Return the exact statistic in release codes; if n is private, a total that is clamped
        before the noise, too.
        """
        if self.n is not None:
            return (2 * self.mechanism.statistic.exact(n, total, squares) + self.unit) // (2 * self.unit)
        grid, statistic = self.mechanism.grid, self.mechanism.statistic
        assert isinstance(statistic, UnboundedStatistic)
        first, last = statistic.range(grid)
        return min(max(statistic.total(grid, n, total), first), last) - first


class NoisyQuotient(GroupsOfSums):
    """A draw of a mean for a private number of records, as from its law: without its arrays, in a third of the time."""

    mechanism: GlobalSensitivity

    def __init__(self, mechanism: GlobalSensitivity) -> None:
        super().__init__(mechanism, None)
        grid = mechanism.grid
        self._pair = _pair_noise(grid.size - 1, mechanism.epsilon)
        self._moments: dict[str, Any] = {"first": grid.first, "squares": False, **grid.kernel}

    def draw(self, values: Any, source: np.random.BitGenerator, threads: int = 1) -> float:
        if self.mechanism.resolves or isinstance(values, Chunks):
            return float(super().draw(values, source, threads))
        total, squares, _ = _select.moments(values, workers=threads, **self._moments)
        return self.draw_from(CodeSums(len(values), total, squares), source)

    def draw_from(self, sums: CodeSums, source: np.random.BitGenerator) -> float:
        pair = zip(self.mechanism._centered(sums), self._pair.draw(source), strict=True)
        total, n = (min(max(exact + noise, -_MOST_NOISY), _MOST_NOISY) for exact, noise in pair)
        return self.mechanism._mean(total, n)


@dataclass(frozen=True, repr=False)
class GlobalSensitivity(StatisticMechanism):
    """Release a mean, sum, count or variance with integer noise of scale sensitivity / epsilon, clamped to its range.

    Pure epsilon-differential privacy under one replaced record; the number of records is public. Also under one record
    added or removed, with a private number of records.

    Parameters
    ----------
    statistic : dpfast.statistics.Mean, Sum or Variance, or Count for "add-remove"
    grid : Grid
        Public bounds and granularity of the data, in data units; a count uses neither.
    epsilon : float
        Positive; rounded down to a double.
    neighbors : {"replace-one", "add-remove"}
        With "add-remove", an empty array is valid input. A sum or count is clamped to +-2**61 steps, or to 0 on a side
        where 0 is a bound. A mean is the quotient of a noisy sum and a noisy count, clamped to the bounds; the middle
        of the bounds if the noisy count is not positive.
    noise : {"auto", "discrete-laplace", "staircase"}
        "auto": the noise of `dpfast.noise.staircase` if its mean magnitude is at least 5 % less than that of
        `dpfast.noise.discrete_laplace`, by exact public numbers: for sensitivities of many steps above epsilon = 1.1,
        with a gain of 15 % at epsilon = 2 and 45 % at 4, and never for a count. Discrete Laplace noise costs less of a
        budget in rho (`privacy_profile`): choose it there. A mean or variance for "add-remove" has noise on several
        integers, and must have "auto".

    Raises
    ------
    TypeError, ValueError
        From the constructor: a wrong parameter. From a call, once n is known: n times the number of grid points
        is 2**63 or more, or the largest release exceeds float64.

    Notes
    -----
    Privacy: the statistic is an integer, computed exactly from integer codes in any order of the records. One record
    changes it by at most an integer sensitivity. The noise has scale exactly sensitivity / epsilon, and no float
    decides it; clamping and division are postprocessing
    (https://dpfast.readthedocs.io/en/latest/proofs/global-sensitivity.html,
    https://dpfast.readthedocs.io/en/latest/proofs/add-remove.html,
    https://dpfast.readthedocs.io/en/latest/proofs/staircase.html).
    A mean with a private number of records takes K-norm noise on the pair of the sum, centred at the middle of the
    bounds, and the count: `dpfast.laws.SumAndCount`. Its root mean squared error is about 1.4 times less than with
    epsilon split between the two (https://dpfast.readthedocs.io/en/latest/proofs/add-remove.html). A variance takes
    that of `dpfast.laws.LatticeBox` on the sum, the sum of squares and the count: for epsilon up to about 2 its error
    is at most about that for a public number, and a third of it for records around the middle of the bounds.
    Cost: one pass over x, about 1.3 times ``np.mean(x)``; 0.8 times ``np.var(x)`` for the variance.

    References
    ----------
    Dwork, McSherry, Nissim and Smith 2006, "Calibrating noise to sensitivity in private data analysis"; Ghosh,
    Roughgarden and Sundararajan 2009; Geng and Viswanath 2016, "The optimal noise-adding mechanism in differential
    privacy"; Casacuberta et al. 2022, "Widespread underestimation of sensitivity", on why to sum integers.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> mechanism = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=dpf.Grid(0, 100, step=1), epsilon=1.0)
    >>> ages = np.random.default_rng(0).integers(18, 90, 10_000)
    >>> bool(abs(mechanism(ages) - ages.mean()) < 0.5)
    True
    """

    statistic: MomentStatistic
    grid: Grid = field(kw_only=True)
    epsilon: float = field(kw_only=True)
    neighbors: str = field(kw_only=True, default="replace-one")
    noise: str = field(kw_only=True, default="auto")

    if TYPE_CHECKING:  # epsilon may be given exactly

        def __init__(
            self,
            statistic: MomentStatistic,
            *,
            grid: Grid,
            epsilon: Exact,
            neighbors: str = "replace-one",
            noise: str = "auto",
        ) -> None: ...

    def __post_init__(self) -> None:
        given: Any = self.statistic
        if not isinstance(given, MomentStatistic):
            of_ranks = isinstance(given, RankStatistic)
            others = ": dpf.InverseSensitivity and dpf.SmoothSensitivity take it" if of_ranks else ""
            raise TypeError(f"statistic must be a MomentStatistic, such as Mean() or Count(), not {given!r}{others}")
        check_grid(self.grid)
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        checks.choice("neighbors", self.neighbors, ("replace-one", "add-remove"))
        checks.choice("noise", self.noise, _NOISES)
        if self.hides_n and not isinstance(self.statistic, (Mean, Variance, UnboundedStatistic)):
            raise ValueError(f"neighbors must be 'replace-one' for the {self.statistic}, not 'add-remove'")
        self.check_missing()
        if isinstance(self.statistic, Count) and not self.hides_n:
            raise ValueError("neighbors must be 'add-remove' for the count, which is public under 'replace-one'")
        if self.jointly:
            if self.noise != "auto":
                raise ValueError(
                    f"noise must be 'auto' for the {self.statistic} with neighbors='add-remove', not {self.noise!r}"
                )
            self.scale(2)
            if not self.on_pairs:
                checks.released_range(lambda: (0.0, self._triples.largest))
            return
        self._noise(2)
        if self.hides_n:
            statistic, grid = self._total, self.grid
            least, greatest = statistic.range(grid)
            checks.released_range(lambda: statistic.decode_total(grid, [0, greatest - least]))

    @property
    def _total(self) -> UnboundedStatistic:
        """The statistic, where n is private."""
        assert isinstance(self.statistic, UnboundedStatistic)
        return self.statistic

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon, 0.0, self.neighbors)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        """Of the exact law, or, where the sensitivity in release codes depends on n, of laws that dominate it."""
        pure, epsilon = PrivacyProfile(self.privacy), self.epsilon
        if self.jointly:
            return pure
        steps = self.steps
        stairs = kind_of_noise(self.noise, steps, epsilon) == "staircase"
        r = _balls.staircase_r(steps / Fraction(epsilon), steps)
        if self.hides_n or self.statistic.steady:
            part = ("staircase", epsilon, 1, steps, r) if stairs else ("discrete-laplace", epsilon, 1, steps)
            return PrivacyProfile(self.privacy, (part,))
        if stairs:
            return PrivacyProfile(self.privacy, (("staircase", epsilon, 1, steps, r + 1),)) if 2 * r < steps else pure
        if epsilon > steps:  # far from continuous
            return pure
        laplace = PrivacyProfile(self.privacy, (("laplace", laplace_epsilon_up(epsilon, steps), 1),))
        return laplace if laplace.rho < pure.rho else pure

    def __repr__(self) -> str:
        grid = self.grid
        if isinstance(self.statistic, Count):
            return f"<GlobalSensitivity release of the {self.statistic}: {self.privacy}>"
        return (
            f"<GlobalSensitivity release of the {self.statistic} of records on {grid.size} points from {grid.lower!r} "
            f"to {grid.upper!r}, step {grid.step!r}: {self.privacy}>"
        )

    @cached_property
    def on_pairs(self) -> bool:
        """Whether the noise is on a sum and a count."""
        return self.hides_n and isinstance(self.statistic, Mean)

    @cached_property
    def jointly(self) -> bool:
        """Whether the noise is on sums and a count together."""
        return self.hides_n and isinstance(self.statistic, (Mean, Variance))

    @cached_property
    def _triples(self) -> Triples:
        return Triples(self.grid, self.epsilon)

    def _sensitivity(self, n: int) -> int:
        """Return the sensitivity in release codes."""
        if self.jointly and not self.on_pairs:
            return self._triples.changes[1]
        if self.on_pairs:
            return 2 * (self.grid.size - 1)
        if self.hides_n:
            return self._total.one_record(self.grid)
        statistic = self.statistic
        return -(-statistic.sensitivity(self.grid, n) // statistic.coarseness(self.grid, n))

    def scale(self, n: SupportsIndex) -> Fraction:
        """Return the scale of the noise in release codes, exact: sensitivity / epsilon. Public.

        For a mean with a private number of records, that of the noise on the sum, in half steps, before rejection; for
        a variance that on the sum of squares, in its codes.
        """
        return checks.noise_scale(self._sensitivity(checks.whole("n", n)), self.epsilon)

    @property
    def steps(self) -> int:
        """The sensitivity in release codes for every n, or a lower bound."""
        return self._total.one_record(self.grid) if self.hides_n else self.statistic.steps(self.grid)

    def _noise(self, n: int) -> IntegerNoise:
        return integer_noise(self.noise, self.steps, self._sensitivity(n), self.epsilon)

    def values_of(self, x: Any) -> Any:
        if isinstance(x, Chunks):
            return x
        values = containers.column("x", x)
        # Those that are counted: a tenth of a short count of all goes without, of others without `isinstance`.
        return self.reading().records(values) if self.statistic.selects else values

    def reading(self) -> Reading:
        if isinstance(self.statistic, Count):
            return RecordCount(self.statistic.kept, self.statistic.example)
        return Sums(self.grid, squares=self.statistic.squares)

    if TYPE_CHECKING:

        def plan(self, n: SupportsIndex | None = None) -> AddedNoise: ...

    def _make_plan(self, n: int | None) -> Plan:
        grid, statistic = self.grid, self.statistic
        if n is None:
            if self.on_pairs:
                return NoisyQuotient(self)
            if self.jointly or not self.hides_n:
                return GroupsOfSums(self, n)
            steps, (first, last) = self._total.one_record(grid), self._total.range(grid)
            noise = integer_noise(self.noise, steps, steps, self.epsilon)
            return AddedNoise(self, n, noise, last - first, partial(self._total.decode_total, grid), 1)
        last = statistic.last(grid, checks.records(n))
        checks.released_range(lambda: (statistic.value(grid, n, 0), statistic.value(grid, n, last)))
        decode, unit = partial(statistic.decode, grid, n), statistic.coarseness(grid, n)
        return AddedNoise(self, n, self._noise(n), last, decode, unit)

    def law_of(self, sums: CodeSums) -> ClampedNoise | NoisyIntegers:
        if self.jointly:
            return self._pair(sums) if self.on_pairs else self._triples.law(sums)
        plan = self.plan(sums.n)
        return ClampedNoise(plan.noise, center=plan.center(*sums), last=plan.last, decode=plan.decode)

    def _pair(self, sums: CodeSums) -> NoisyIntegers:
        center, noise = np.array(self._centered(sums), np.int64), _pair_noise(self.grid.size - 1, self.epsilon)
        return NoisyIntegers(center, noise=noise, most=_MOST_NOISY, decode=self._quotient)

    def _centered(self, sums: CodeSums) -> tuple[int, int]:
        """Return the sum of codes from -h to h, which are all even or all odd, and the count; h is size - 1.

        Both are clamped, the sum to a number as odd as before.
        """
        h, n = self.grid.size - 1, min(sums.n, _MOST_EXACT)
        most = _MOST_EXACT - (_MOST_EXACT - h * n) % 2
        return min(max(2 * sums.total - sums.n * h, -most), most), n

    def noisy_quotients(self, centers: NDArray[np.int64], source: np.random.BitGenerator) -> NDArray[np.float64]:
        """Draw a mean for each pair of the sum of codes from -h to h and their number, both below 2**61."""
        noise = np.empty(centers.shape, np.int64)
        _pair_noise(self.grid.size - 1, self.epsilon).fill(source, noise)
        means: NDArray[np.float64] = self._quotient(add_clamped(noise, centers, _MOST_NOISY))
        return means

    def _quotient(self, pairs: NDArray[np.int64]) -> Any:
        """Return the means of noisy sums and counts, of shape (..., 2)."""
        if pairs.ndim == 1:
            return self._mean(*pairs.tolist())
        total, n, h = pairs[..., 0], pairs[..., 1], self.grid.size - 1
        centred = np.where(n > 0, np.clip(total / np.maximum(n, 1), -h, h), 0.0)
        return (self.grid.first + (h + centred) / 2) * self.grid.step

    def _mean(self, total: int, n: int) -> float:
        """Return the mean of a noisy sum and count, as `_quotient` does."""
        h = float(self.grid.size - 1)
        centred = min(max(float(total) / float(n), -h), h) if n > 0 else 0.0
        return (self.grid.first + (h + centred) / 2) * self.grid.step

    def _explained_missing(self) -> str:
        if isinstance(self.statistic, Count):
            left_out = self.resolves or self.statistic.within is not None
            return f"Missing records (NaN, None, null) are {'not ' if left_out else ''}counted"
        return super()._explained_missing()

    def _enough(self) -> float:
        if isinstance(self.statistic, Count):
            return 0.0
        return enough_for_error(OF_NOISE, self.epsilon, spread=EVEN_VARIANCE if self.statistic.squares else None)

    def _foreseen_of_many(self, n: int) -> Foreseen | None:
        found = super()._foreseen_of_many(n)
        if found is None:
            return None
        deviation = math.sqrt(evenly_over(self.grid).moment("var"))
        return found._replace(root=2 * deviation * isinstance(self.statistic, Variance), even=self.jointly)

    def _unit(self, n: int) -> float:
        """Return the distance of neighbouring releases for n records."""
        if isinstance(self.statistic, (Mean, Sum)):
            return self.grid.step / (n if isinstance(self.statistic, Mean) else 1)
        return self.statistic.value(self.grid, n, 1)

    def noise_interval(
        self, release: float, confidence: float = 0.95, *, n: SupportsIndex | None = None
    ) -> tuple[float, float]:
        """Return the values of the exact statistic for which the noise leads to this release with probability
        `confidence`.

        It covers what the noise alone can have done, for any records: the statistic of the records clamped and rounded
        to the grid is inside with at least this probability. It is a function of public numbers and the release, and
        costs no privacy. `dpfast.interval` also covers the sampling error.

        Parameters
        ----------
        release : float
            A release of this mechanism.
        confidence : float
            In (0, 1).
        n : int
            The number of records, at least 1, where it is public; not for "add-remove".

        Returns
        -------
        low, high : float
            Within the range of releases, rounded outward to doubles. At an end of 2**61 steps, for a private number of
            records, the exact sum may be further out.

        Raises
        ------
        TypeError
            A missing n, an n that is private, or a mean or variance with "add-remove": a quotient of noisy numbers.
        ValueError
            A parameter out of range.

        Notes
        -----
        For a center c in release codes, noise Z and the least m with ``P(|Z| <= m) >= confidence``, the release
        ``clamp(c + Z)`` is within m of c with at least this probability. The ends are widened by the rounding of the
        statistic to a code and, where codes are finer than doubles, of the release to a double
        (https://dpfast.readthedocs.io/en/latest/proofs/intervals.html).

        Examples
        --------
        >>> import dpfast as dpf
        >>> count = dpf.GlobalSensitivity(
        ...     dpf.statistics.Count(), grid=dpf.Grid(0, 1), epsilon=0.5, neighbors="add-remove"
        ... )
        >>> count.noise_interval(1234.0)
        (1228.0, 1240.0)
        >>> mean = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=dpf.Grid(0, 100, step=1), epsilon=1.0)
        >>> mean.noise_interval(45.0, 0.9, n=1000)
        (44.769999999999996, 45.230000000000004)
        """
        if self.jointly:
            raise TypeError(f"no noise interval is known for a {self.statistic} with neighbors='add-remove'")
        if (n is None) is not self.hides_n:
            raise TypeError("n is private: leave it out" if self.hides_n else "n is public: give the number of records")
        value, share = checks.real("release", release), checks.between("confidence", confidence, 0, 1)
        count = 2 if n is None else checks.whole("n", n, least=1)
        self.plan(n)  # reject an n that is not supported
        (origin, unit), last, half = self._codes(count)
        code = (Fraction(value) - origin) / unit
        doubt = Fraction(math.ulp(value)) / 2 / unit  # the release is a rounded double
        center, reach = (Fraction(round(code)), half) if doubt < Fraction(1, 4) else (code, half + doubt)
        reach += self._noise(count).magnitude(share)
        low, high = (min(max(end, Fraction()), Fraction(last)) for end in (center - reach, center + reach))
        return outward(origin + low * unit, origin + high * unit)

    def _codes(self, n: int) -> tuple[tuple[Fraction, Fraction], int, Fraction]:
        """Return the value of code 0 and the step of the codes, the last code, and the error of rounding to a code."""
        statistic, grid = self.statistic, self.grid
        if not self.hides_n:
            rounded = statistic.coarseness(grid, n) > 1
            return statistic.scale_of_codes(grid, n), statistic.last(grid, n), Fraction(int(rounded), 2)
        (first, last), unit = self._total.range(grid), Fraction(self._total.unit(grid))
        return (first * unit, unit), last - first, Fraction()

    def _expected_under(self, n: int, assumed: Assumed) -> Expected:
        if self.hides_n:
            return self._expected_with_private_n(n, assumed)
        grid, statistic = self.grid, self.statistic
        population = n * target(Mean(), assumed) if isinstance(statistic, Sum) else target(statistic, assumed)
        last, unit = statistic.last(grid, n), statistic.coarseness(grid, n)
        center, deviation = _normal(statistic, assumed, grid, n)
        code, step = min(max(round(center / unit), 0), last), self._unit(n)
        law = ClampedNoise(self._noise(n), center=code, last=last, decode=partial(statistic.decode, grid, n))
        return Expected(mean_distances(law, population)[0], mean_magnitude(deviation / unit * step))

    def _expected_with_private_n(self, n: int, assumed: Assumed) -> Expected:
        mean, variance, fourth = code_moments(assumed, self.grid)
        sums = CodeSums(n, round(n * mean), round(n * (variance + mean * mean)))
        law: Any = law_for(self.law_of, sums)
        deviation = 0.0 if isinstance(self.statistic, Count) else math.sqrt(n * variance) * self.grid.step
        if not self.jointly:
            return Expected(mean_distances(law, None)[0], mean_magnitude(deviation))
        exact = law.value(law.center)
        noise = float(np.mean(np.abs(law.value(law.center + _imagined(law)) - exact)))
        if isinstance(self.statistic, Variance):
            deviation = math.sqrt(max(0.0, fourth - variance * variance) * n) * self.grid.step**2
        return Expected(noise, mean_magnitude(deviation / n))

    def _error_under(self, n: int, assumed: Assumed, confidence: float) -> float:
        if self.hides_n:
            raise TypeError("no error is known for neighbors='add-remove'")
        grid, statistic = self.grid, self.statistic
        is_sum = isinstance(statistic, Sum)
        population = n * target(Mean(), assumed) if is_sum else target(statistic, assumed)
        last, unit = statistic.last(grid, n), statistic.coarseness(grid, n)
        center, deviation = _normal(statistic, assumed, grid, n)
        centers = np.rint(np.clip((center + deviation * normal_points()) / unit, 0, last))
        cdf = averaged_noise(self._noise(n).log_tail, centers, last)
        ends = statistic.value(grid, n, 0), statistic.value(grid, n, last)
        return error(cdf, last, ends, population, confidence)

    def _error_of_noise(self, n: int, confidence: float) -> float:
        if self.jointly:
            raise TypeError(
                f"the noise of a {self.statistic} with neighbors='add-remove' depends on the records: use that for "
                f"'replace-one'"
            )
        unit = self._total.unit(self.grid) if self.hides_n else self._unit(n)
        return self._noise(n).magnitude(confidence) * unit

    def _error_at_deviation(self, n: int, deviation: float, confidence: float) -> float:
        statistic, grid = self.statistic, self.grid
        if self.hides_n:
            raise TypeError("no error is known for neighbors='add-remove'")
        if not isinstance(statistic, (Mean, Sum)):
            raise TypeError(f"a deviation does not determine the error of the {statistic}: give distribution=")
        last = statistic.last(grid, n)
        width = statistic.value(grid, n, last) - statistic.value(grid, n, 0)
        of_release = deviation * (math.sqrt(n) if isinstance(statistic, Sum) else 1 / math.sqrt(n))
        return min(width, normal_plus_noise_error(of_release, self._noise(n), width / last, confidence))


def _normal(statistic: MomentStatistic, assumed: Assumed, grid: Grid, n: int) -> tuple[float, float]:
    """Return the mean and standard deviation of the exact integer computed from n records."""
    mean, variance, fourth = code_moments(assumed, grid)
    if not statistic.squares:
        return n * mean, math.sqrt(n * variance)
    # The integer is n**2 times the variance of the records, whose own variance is
    # (n - 1)**2 / n**3 (mu4 - (n - 3)/(n - 1) sigma**4).
    spread = max(0.0, (n - 1) * ((n - 1) * fourth - (n - 3) * variance**2))
    return n * (n - 1) * variance, math.sqrt(n * spread)


_DRAWS = 2**12  # of noise on sums and a count: the mean of an error is then within 4 %


def _imagined(law: NoisyIntegers) -> NDArray[np.int64]:
    """Return draws of the noise of a law, always the same."""
    made = np.empty((_DRAWS, *law.center.shape), np.int64)
    with imagined():
        law.noise.fill(np.random.PCG64(0), made)
    return made


@lru_cache(maxsize=256)
def _pair_noise(half_width: int, epsilon: float) -> SumAndCount:
    return SumAndCount(half_width, Fraction(epsilon))
