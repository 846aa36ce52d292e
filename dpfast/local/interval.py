"""Local randomiser for a bounded number; its decoded reports are unbiased."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.random import BitGenerator
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _randomize, _samplers
from dpfast.core import checks, containers
from dpfast.core.coin import Coin, coin
from dpfast.core.grid import Grid
from dpfast.local.randomizer import Aggregate
from dpfast.local.scalar import FiniteLaw, ScalarRandomizer, record, symbols

# Codebooks optimised at epsilon = 0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8: the width of the window, and the positive half of
# the symbols' values, in 1e-4. Only the proportions matter: values are scaled to the epsilon in use.
_SHAPES: tuple[tuple[int, tuple[int, ...]], ...] = (
    (1, (1,)),
    (8, (71941, 74219, 76555, 78979, 81466, 84044, 86691, 89434)),
    (8, (32621, 34711, 36872, 39226, 41676, 44330, 47104, 50098)),
    (8, (13902, 15727, 17536, 19779, 22106, 24887, 27856, 31323)),
    (7, (204, 11797, 12711, 15068, 17909, 19413, 19413, 19643)),
    (6, (714, 3621, 12848, 13976, 14105, 14105, 14362, 15647)),
    (5, (1695, 3913, 6098, 10460, 10934, 11744, 12125, 13121)),
    (6, (195, 2504, 4173, 5729, 6600, 7650, 9814, 10111, 10555, 10846, 11242, 11910)),
    (4, (21, 68, 656, 2020, 3010, 4100, 5358, 6172, 7075, 8077, 8626, 9210, 9889, 10064, 10285, 10557)),
    (
        3,
        (
            *(369, 1071, 1829, 2510, 3231, 3918, 4564, 5242, 5826, 6442),
            *(6995, 7507, 8026, 8440, 8880, 9232, 9546, 9846, 10038, 10250),
        ),
    ),
)

# Codebooks whose variance, averaged over the range, is the least at epsilon = 1, 1.5, 2, 3. Up to 1/2, those above are
# within 1e-5 of it.
_AVERAGE_SHAPES: tuple[tuple[int, tuple[int, ...]], ...] = (
    (7, (314, 5258, 5941, 6679, 7507, 8479, 9347, 10000)),
    (6, (427, 1299, 5524, 6512, 7414, 8124, 8953, 10000)),
    (7, (385, 1169, 2006, 5253, 5950, 6513, 7132, 7848, 8741, 10000)),
    (5, (496, 1414, 2261, 3081, 3950, 6221, 6814, 7498, 8400, 10000)),
)

_METHODS = ("two-point", "codebook", "even", "piecewise", "hybrid", "laplace")
_EVEN_FROM = 3.0  # up to this epsilon "codebook" has less variance than "even", for both objectives
_PIECES = 4094  # symbols of "even" and "piecewise"; with the two points of "hybrid" there are 2**12
_CELLS = 2**12  # cells of the grid of "laplace"
_HYBRID_FROM = 0.6093524930  # above this, the mixture is better than two points (Wang et al. 2019)
_REACH = 64  # largest distance of a report of "laplace" from the grid, in scales
_LEAST_WIDTH = 2.0**-500  # least distance between the bounds: its square does not underflow


@dataclass(frozen=True)
class Interval(ScalarRandomizer):
    """Local randomiser for numbers between public bounds; the mean of the decoded reports is unbiased.

    Pure epsilon-local differential privacy.

    Parameters
    ----------
    epsilon : float
        At least 2**-40; rounded down to a double.
    bounds : pair of float
        Public, in data units, between 2**-500 and the range of float64 apart. A number outside counts as the nearer
        bound; NaN and missing ones as 0, or as the bound nearest to 0.
    method : {"auto", "two-point", "codebook", "even", "piecewise", "hybrid", "laplace"}
        "auto" selects the one of "codebook" and "even" whose variance is smaller, in the sense of `objective`.
    objective : {"worst", "average"}
        The variance that "auto" compares and "codebook" minimises: that at the worst record, or the mean over records
        spread evenly between the bounds (`average_variance`), which suits data away from the bounds. The other methods
        do not depend on it.

    Attributes
    ----------
    method : str
        The method in use, never "auto".

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    A report is one of M public symbols (1 byte, or 2), drawn in two steps. First, the number is assigned at random to
    one of the two nearest windows of w consecutive symbols, without bias. Then a coin decides whether the symbol is
    uniform inside the window or uniform outside it. `decode` looks up the value of a symbol; the values are scaled so
    that the mean of a window at the end of the range equals the bound.

    - "two-point": M = 2, w = 1: randomised response on the bounds.
    - "codebook": M from 2 to 40, with optimised values; the codebook of the tables that is the best at this epsilon.
    - "even": M = 4094 equally spaced values, with w / M nearest to 1 / (e^(epsilon / 3) + 1). Over w, the average
      variance is within 0.2 % of its least value, and the variance at the worst record within 7 %.
    - "piecewise": the same with w / M nearest to 1 / (e^(epsilon / 2) + 1): the piecewise mechanism on a grid, hence
      without its floats. At epsilon = 4, 8, 14 the variance at its worst record is 1.5, 2.9, 7.6 times that of "even".
    - "hybrid": "piecewise" with probability 1 - e^(-epsilon / 2), else "two-point", for epsilon > 0.609; the report
      shows which one was used.
    - "laplace": has no window. The number is rounded to one of 4097 grid points, and rounded Laplace noise of scale
      4096 / epsilon is added exactly. A report is an int64, the noisy grid point, truncated at 64 scales from the grid;
      noise is that large once in 10**27. Worse than "codebook" for every epsilon up to 11.

    The sums of an aggregate count the symbols; for "laplace" they are the sums of the upper and of the lower 32 bits of
    the reports. A report beyond the last symbol, or beyond the truncation, is refused.

    Privacy: the coin is exact and its probability is rounded towards privacy; floats choose the window, and no choice
    of window can break the guarantee (https://dpfast.readthedocs.io/en/latest/proofs/local-interval.html). Estimates
    are unbiased apart from the rounding of the public values (relative to the lower bound) and of the choice between
    two windows (to 53 bits).
    Cost: three random words per report.

    References
    ----------
    Duchi, Jordan and Wainwright 2018; Wang et al. 2019, "Collecting and analyzing multidimensional data with local
    differential privacy" (piecewise, hybrid).

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> hours = np.random.default_rng(0).uniform(0, 10, 100_000)
    >>> survey = local.Interval(epsilon=1.0, bounds=(0, 10))
    >>> estimate = survey.estimate(survey.randomize(hours))
    >>> bool(abs(estimate - hours.mean()) < 0.2)
    True
    """

    epsilon: float
    bounds: tuple[float, float] = field(kw_only=True)
    method: str = field(default="auto", kw_only=True)
    objective: str = field(default="worst", kw_only=True)

    def __post_init__(self) -> None:
        epsilon = checks.positive_down("epsilon", self.epsilon)
        coin(epsilon)
        lower, upper = map(float, checks.pair("bounds", self.bounds))
        if not lower < upper:
            raise ValueError(f"bounds must be in order, lower < upper, not {self.bounds!r}")
        if upper - lower < _LEAST_WIDTH:
            raise ValueError(f"bounds must be at least 2**-500 apart, not {self.bounds!r}: use another unit")
        checks.choice("method", self.method, ("auto", *_METHODS))
        checks.choice("objective", self.objective, tuple(_OBJECTIVES))
        method = self.method
        if method == "auto":
            names = ("codebook", "even") if epsilon > _EVEN_FROM else ("codebook",)
            method = min(names, key=lambda name: codebook(name, epsilon, self.objective).variance)
        for name, value in (("epsilon", epsilon), ("bounds", (lower, upper)), ("method", method)):
            object.__setattr__(self, name, value)
        checks.released_range(lambda: self._method.ends)

    @property
    def _method(self) -> _Method:
        return _method(self.method, self.objective, self.epsilon, self.bounds)

    @property
    def report(self) -> np.dtype[Any]:
        return self._method.report

    @property
    def grid(self) -> Grid:
        """Grid of records, for `dpfast.audit.verify`: points between the bounds."""
        return Grid(*self.bounds)

    @property
    def share(self) -> Fraction:
        return self._method.share

    @property
    def values(self) -> NDArray[np.float64]:
        """The decoded value of each symbol, in data units; empty for "laplace"."""
        return self._method.values.copy()

    def fill(self, source: BitGenerator, x: NDArray[Any], out: NDArray[Any]) -> None:
        self._method.fill(source, containers.doubles(x), out)

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return self._method.valid(reports)

    def sums(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        return self._method.sums(reports)

    def law(self, x: ArrayLike) -> FiniteLaw:
        """Return the exact law of the report of one record. PRIVATE.

        Raises
        ------
        ValueError
            If the method is "laplace", which has infinitely many reports.
        """
        return self._method.law(self._clamped(record(x))[0])

    def _values(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        return self._method.decode(reports)

    def estimate(self, reports: NDArray[Any] | Aggregate) -> float:
        """Unbiased estimate of the mean of the records; may lie outside the bounds.

        Refused reports are left out; ``aggregate(reports).refused`` is their number.
        """
        total = self._aggregated(reports, self._method.size)
        return self._method.mean(total)

    def variance(self, x: ArrayLike | None = None) -> Any:
        if x is None:
            return self._method.worst_variance
        values = containers.numbers("x", x if hasattr(x, "__len__") else [x])
        variances = self._method.variance(self._clamped(values.reshape(-1)))
        return variances.reshape(values.shape) if hasattr(x, "__len__") else float(variances[0])

    @property
    def average_variance(self) -> float:
        """Variance of a decoded report, averaged over records spread evenly between the bounds."""
        return self._method.average_variance

    def _clamped(self, x: NDArray[Any]) -> NDArray[np.float64]:
        """Return the records in the form that the kernel expects."""
        with np.errstate(all="ignore"):
            numbers = x.astype(np.float64)
        return np.clip(np.where(np.isnan(numbers), 0.0, numbers), *self.bounds)


class Codebook:
    """M symbols, the M - w + 1 windows of w symbols each, and a coin that decides between inside and outside.

    The units are such that the range of the data is [-1, 1]. All numbers are rational.

    Parameters
    ----------
    width : int
    half : sequence of int
        Values of the upper half of the symbols, in any unit; the lower half is their mirror image.
    epsilon : float
    objective : {"worst", "average"}
        The meaning of `variance`.
    """

    def __init__(self, width: int, half: Sequence[int], epsilon: float, objective: str = "worst") -> None:
        self.objective = objective
        heights = (*(-y for y in reversed(half)), *half)
        self.width, self.size = width, len(heights)
        self.coin: Coin = coin(epsilon, Fraction(width, self.size - width))
        inside = self.coin.probability
        self.density = inside / width, (1 - inside) / (self.size - width)
        # A symbol inside the window is likelier by `surplus`; the values add up to 0.
        surplus = self.density[0] - self.density[1]
        sums, squares = _window_sums(heights, width), _window_sums([y * y for y in heights], width)
        self.scale = 1 / (surplus * sums[-1])
        self.values = [y * self.scale for y in heights]
        self.means = [Fraction(s, sums[-1]) for s in sums]
        # E[value^2] at each window: in doubles, for variances only
        everywhere = float(self.density[1] * sum(y * y for y in heights) * self.scale**2)
        factor = float(surplus * self.scale**2)
        self.second_moments = np.array([everywhere + factor * s for s in squares])

    @cached_property
    def variance(self) -> float:
        """The variance of a decoded report in the sense of the objective."""
        means = np.array([float(mean) for mean in self.means])
        return _OBJECTIVES[self.objective](means, self.second_moments)

    def pmf(self, start: int) -> list[Fraction]:
        """Return the law of the symbol, given the window."""
        inside, outside = self.density
        return [inside if start <= j < start + self.width else outside for j in range(self.size)]


def _window_sums(values: Sequence[int], width: int) -> list[int]:
    total = sum(values[:width])
    sums = [total]
    for old, new in zip(values, values[width:], strict=False):
        total += new - old
        sums.append(total)
    return sums


def _worst_variance(means: NDArray[np.float64], second_moments: NDArray[np.float64]) -> float:
    """Return the largest variance over [-1, 1]: a parabola between two consecutive means."""
    slopes = np.diff(second_moments) / np.diff(means)
    x = np.clip(slopes / 2, means[:-1], means[1:])
    return float((second_moments[:-1] + slopes * (x - means[:-1]) - x * x).max())


def _average_variance(means: NDArray[np.float64], second_moments: NDArray[np.float64]) -> float:
    """Return the mean over [-1, 1] of the second moment, linear between the means, less x^2."""
    return float(np.sum((second_moments[:-1] + second_moments[1:]) / 2 * np.diff(means)) / 2 - 1 / 3)


_OBJECTIVES = {"worst": _worst_variance, "average": _average_variance}
_BOOKS = {"worst": _SHAPES, "average": _SHAPES + _AVERAGE_SHAPES}
_PARTS = {"even": 3, "piecewise": 2}


@lru_cache(maxsize=32)
def codebook(method: str, epsilon: float, objective: str = "worst") -> Codebook:
    """Return the codebook of "two-point", "codebook", "even" or "piecewise" at this epsilon."""
    if method == "two-point":
        return Codebook(*_SHAPES[0], epsilon, objective)
    if method == "codebook":
        books = (Codebook(*shape, epsilon, objective) for shape in _BOOKS[objective])
        return min(books, key=lambda book: book.variance)
    # P(lie) of the coin of epsilon / 2 is 1 / (e^(epsilon / 2) + 1), in integers
    lie = 2**64 - coin(max(epsilon / _PARTS[method], 2.0**-40)).threshold
    return Codebook(max(1, (_PIECES * lie + 2**63) >> 64), range(1, _PIECES, 2), epsilon, objective)


class _Method(ABC):
    """A method for a given epsilon, in data units; knots are distances from the lower bound."""

    report: np.dtype[Any]
    size: int  # length of the sums of an aggregate
    values: NDArray[np.float64]
    ends: tuple[float, float]
    worst_variance: float
    average_variance: float
    share = Fraction(1, 2)  # see `LocalMechanism.share`

    @abstractmethod
    def fill(self, source: BitGenerator, x: NDArray[np.float64], out: NDArray[Any]) -> None: ...

    @abstractmethod
    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]: ...

    @abstractmethod
    def sums(self, reports: NDArray[Any]) -> NDArray[np.int64]: ...

    @abstractmethod
    def mean(self, total: Aggregate) -> float: ...

    @abstractmethod
    def decode(self, reports: NDArray[Any]) -> NDArray[np.float64]: ...

    @abstractmethod
    def variance(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Variance of a decoded report, at records inside the bounds."""

    @abstractmethod
    def law(self, x: float) -> FiniteLaw: ...


class _Codebooks(_Method):
    """One codebook, or two concatenated; then the first is used with the public probability first / 2**64."""

    def __init__(self, books: Sequence[Codebook], first: int, bounds: tuple[float, float]) -> None:
        self._lower, lower = bounds[0], Fraction(bounds[0])
        self._half = (Fraction(bounds[1]) - lower) / 2
        self._books, self._first = books, first
        self._knots = [np.array([float(self._half * (1 + mean)) for mean in book.means]) for book in books]
        self.size = sum(book.size for book in books)
        self.report, self.share = symbols(self.size), max(Fraction(book.width, book.size) for book in books)
        distances = [self._half * (1 + value) for book in books for value in book.values]
        self._distances = np.array([float(distance) for distance in distances])
        self.ends = float(lower + min(distances)), float(lower + max(distances))
        self.values = np.array([float(lower + distance) for distance in distances])
        self._weights = [Fraction(first, 2**64), 1 - Fraction(first, 2**64)][: len(books)]
        means = np.unique([float(mean) for book in books for mean in book.means])
        square, second_moments = float(self._half) ** 2, self._second_moment(means)
        self.worst_variance = square * _worst_variance(means, second_moments)
        self.average_variance = square * _average_variance(means, second_moments)

    def fill(self, source: BitGenerator, x: NDArray[np.float64], out: NDArray[Any]) -> None:
        if len(self._books) == 1:
            self._fill_from(0, source, x, out)
            return
        chosen, drawn = np.empty(len(x), np.uint8), np.empty_like(out)
        _samplers.fill_bernoulli_dyadic(source, self._first, chosen)
        self._fill_from(0, source, x, out)
        self._fill_from(1, source, x, drawn)
        np.copyto(out, drawn + out.dtype.type(self._books[0].size), where=chosen == 0)

    def _fill_from(self, i: int, source: BitGenerator, x: NDArray[np.float64], out: NDArray[Any]) -> None:
        """Write symbols of one codebook."""
        book, starts = self._books[i], np.empty(len(x), np.uint32)
        _randomize.fill_dither(source, x, self._lower, self._knots[i], starts)
        _randomize.fill_windows(source, starts, book.width, book.size, book.coin.threshold, out)

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(reports < self.size)

    def sums(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        return np.bincount(reports, minlength=self.size)

    def mean(self, total: Aggregate) -> float:
        return self._lower + math.fsum(total.sums * self._distances) / total.n

    def decode(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(self.values[reports])

    def _second_moment(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """E[value^2], in units such that the range is [-1, 1]; linear between the means of the windows."""
        total = np.zeros(u.shape)
        for weight, book in zip(self._weights, self._books, strict=True):
            total += float(weight) * np.interp(u, [float(mean) for mean in book.means], book.second_moments)
        return total

    def variance(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        half = float(self._half)
        u = np.clip((x - self._lower) / half - 1, -1.0, 1.0)
        return np.asarray(half * half * (self._second_moment(u) - u * u))

    def law(self, x: float) -> FiniteLaw:
        pmf: list[Fraction] = []
        for weight, book, knots in zip(self._weights, self._books, self._knots, strict=True):
            distance = x - self._lower
            s = min(int(np.searchsorted(knots, distance, side="right")) - 1, len(knots) - 2)
            part = (distance - float(knots[s])) / (float(knots[s + 1]) - float(knots[s]))  # as in the kernel
            up = Fraction(math.ceil(part * 2**53), 2**53)
            mixed = {(a, b): weight * ((1 - up) * a + up * b) for a in book.density for b in book.density}
            pmf += [mixed[pair] for pair in zip(book.pmf(s), book.pmf(s + 1), strict=True)]
        return FiniteLaw(np.arange(self.size, dtype=self.report), tuple(pmf))


class _LaplaceMethod(_Method):
    """Rounded Laplace noise on the grid points 0.._CELLS, scale _CELLS / epsilon."""

    def __init__(self, epsilon: float, bounds: tuple[float, float]) -> None:
        self._lower = Fraction(bounds[0])
        self._step = (Fraction(bounds[1]) - self._lower) / _CELLS
        self._scale = _CELLS / Fraction(epsilon)
        self._knots = np.array([float(i * self._step) for i in range(_CELLS + 1)])
        self.report, self.size, self.values = np.dtype(np.int64), 2, np.empty(0)
        self._reach = math.ceil(_REACH * self._scale)
        self.ends = (
            float(self._lower - self._reach * self._step),
            float(self._lower + (_CELLS + self._reach) * self._step),
        )
        rate = float(1 / self._scale)
        # the second moment of round(scale * Laplace(1)): cosh(1 / 2s) / (2 sinh(1 / 2s)^2)
        self._noise = math.cosh(rate / 2) / (2 * math.sinh(rate / 2) ** 2) if rate < 700 else 0.0
        self.worst_variance = float(self._step) ** 2 * (self._noise + 1 / 4)
        self.average_variance = float(self._step) ** 2 * (self._noise + 1 / 6)

    def fill(self, source: BitGenerator, x: NDArray[np.float64], out: NDArray[Any]) -> None:
        starts = np.empty(len(x), np.uint32)
        _randomize.fill_dither(source, x, float(self._lower), self._knots, starts)
        _samplers.fill_rounded_laplace(source, self._scale, out)
        np.clip(out, -self._reach - _CELLS, self._reach + _CELLS, out=out)  # before the addition, which could overflow
        out += starts
        np.clip(out, -self._reach, self._reach + _CELLS, out=out)  # same range for every record

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray((reports >= -self._reach) & (reports <= self._reach + _CELLS))

    def sums(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        return np.array([(reports >> 32).sum(), (reports & 0xFFFFFFFF).sum()], np.int64)

    def mean(self, total: Aggregate) -> float:
        upper, lower = map(int, total.sums)
        return float(self._lower + self._step * Fraction((upper << 32) + lower, total.n))

    def decode(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(float(self._lower) + reports * float(self._step))

    def variance(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        u = (x - float(self._lower)) / float(self._step)
        part = u - np.floor(u)
        return np.asarray(float(self._step) ** 2 * (self._noise + part * (1 - part)))

    def law(self, x: float) -> FiniteLaw:
        raise ValueError('the law of method="laplace" is not finite: use the grid point plus dpfast.noise.laplace')


@lru_cache(maxsize=32)
def _method(method: str, objective: str, epsilon: float, bounds: tuple[float, float]) -> _Method:
    if method == "laplace":
        return _LaplaceMethod(epsilon, bounds)
    if method == "hybrid" and epsilon > _HYBRID_FROM:
        first = min(int(-math.expm1(-epsilon / 2) * 2**64), 2**64 - 1)
        return _Codebooks([codebook("piecewise", epsilon), codebook("two-point", epsilon)], first, bounds)
    return _Codebooks([codebook("two-point" if method == "hybrid" else method, epsilon, objective)], 2**64, bounds)
