"""Families whose estimates need all records of a block: Weibull, Laplace, negative binomial."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _blocks, _fits
from dpfast.families.family import LARGEST, NOTHING, Family, Ranges, Theta

# Gumbel distribution of minima with scale 1, m records: m times the bias of the location, and the variances; the bias
# of 1 / scale. See docs/proofs/block-estimates.md.
_LOCATION_BIAS = -0.3698145384938331
_LOCATION_VARIANCE = 1.108664898959527
_SCALE_VARIANCE = 6 / math.pi**2
_SHAPE_BIAS = 1.3795306914316206
_SHAPE_BIAS_2 = 0.7  # next order, by simulation
_SCALE_BIAS_2 = 0.0275, -0.984, -0.0258, 0.141  # the same for the corrected scale, in powers of 1 / shape

# v2 by simulation, in units of the squared parameter (of the squared scale, for Laplace). For the median it replaces a
# term in m**-1.5, 1.6 / sqrt(m) of the variance, at 25 records.
_WEIBULL_V2 = 2.4
_MEDIAN_V2, _DEVIATION_V2 = 8.0, 0.8
# For logarithms, by simulation: of Weibull's shape and of Laplace's scale.
_LOG_SHAPE_BIAS_2, _LOG_SHAPE_BIAS_3, _LOG_SHAPE_V2 = 1.2, 8.0, 1.45
_LOG_DEVIATION_BIAS_2, _LOG_DEVIATION_V2 = 0.35, 1.1
# For the negative binomial, by simulation, in powers of its bias: docs/proofs/block-estimates.md.
_R_V2, _R_B2, _P_V2, _P_B2 = 1.4, 0.6, 0.7, 0.9
_FRAGILE = 10  # `reach` / (v2 I), if the likelihood of a block may have no finite maximum

_EXACT_SIZES = 4096
_LARGEST_COUNTS = 1e10

Estimates = dict[str, NDArray[np.float64]]


class Fitted(Family):
    """Base class of families fitted by a compiled kernel that reads each block in place, with any dtype and strides."""

    @abstractmethod
    def kernel(self, corrected: bool) -> Callable[..., None]:
        """Return the function that fills ``out`` and ``counts``; called with ``(*data, offsets, out, counts,
        workers=)``.
        """

    def better(self, fitted: Estimates, counts: NDArray[np.int64]) -> Estimates:
        """Subtract the part of the bias that the kernel does not correct."""
        return fitted

    def estimates(
        self, data: tuple[NDArray[Any], ...], blocks: int, box: Ranges, *, corrected: bool, workers: int
    ) -> NDArray[np.float64]:
        offsets = _blocks.offsets(data[0].shape[0], blocks)
        raw, counts = np.empty((blocks, len(self.names))), np.empty(blocks, np.int64)
        with np.errstate(all="ignore"):
            self.kernel(corrected)(*data, offsets, raw, counts, workers=workers)
            fitted = dict(zip(self.names, raw.T, strict=True))
            fitted = self.better(fitted, counts) if corrected else fitted
            m = np.maximum(counts, self.least).astype(np.float64)
            columns = [self.averaged(name, fitted[name], m, box, corrected=corrected) for name in box.names]
        out = np.stack(columns, axis=1)
        out[counts < self.least] = np.nan
        return out


def less_bias(estimate: NDArray[np.float64], relative: NDArray[np.float64]) -> NDArray[np.float64]:
    """Equal to estimate * (1 - relative) to first order, and positive for every `relative`."""
    return estimate * np.where(relative > 0, 1 / (1 + np.maximum(relative, 0.0)), 1 - relative)


def fragile(family: Family, names: Iterable[str], theta: Theta) -> float:
    """Return the `reach` of a family whose blocks may have no finite maximum, from the parameter
    with the largest v2 I.
    """
    return _FRAGILE * max(family.second_order(name, theta)[0] * family.information(name, theta) for name in names)


@dataclass(frozen=True)
class Weibull(Fitted):
    """Weibull distribution, P(X > x) = exp(-(x / scale)**shape). Released: ``shape``, ``scale``, or both.

    For m records, the MLE of the shape has the bias 1.3795306914 shape / m, and that of the scale
    ``scale (0.554332 / shape**2 - 0.369815 / shape) / m``, to first order; both and the next order are subtracted. If
    all records are equal, the shape is infinite: the upper end of the bounds.
    """

    names: ClassVar[tuple[str, ...]] = ("shape", "scale")
    skewness_factors: ClassVar[Theta] = MappingProxyType({"shape": 2.0, "scale": 1.5})
    logarithmic: ClassVar[tuple[str, ...]] = ("shape",)
    defaults: ClassVar[Theta] = MappingProxyType({"shape": 1.0, "scale": 1.0})

    def space(self, name: str) -> tuple[float, float]:
        return 0.0, LARGEST

    def kernel(self, corrected: bool) -> Callable[..., None]:
        return _fits.weibull

    def better(self, fitted: Estimates, counts: NDArray[np.int64]) -> Estimates:
        m = np.maximum(counts, 2)
        shape = fitted["shape"] * (1 - _SHAPE_BIAS / m - _SHAPE_BIAS_2 / m**2)
        scale = less_bias(fitted["scale"], (_scale_bias(shape) + _scale_bias_2(shape) / m) / m)
        return {"shape": shape, "scale": scale}

    def information(self, name: str, theta: Theta) -> float:
        k = theta["shape"]
        return 1 / (_SCALE_VARIANCE * k**2) if name == "shape" else k**2 / (_LOCATION_VARIANCE * theta["scale"] ** 2)

    def bias(self, name: str, theta: Theta) -> float:
        k = theta["shape"]
        return _SHAPE_BIAS * k if name == "shape" else theta["scale"] * float(_scale_bias(k))

    def second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        if name == "shape":
            return _WEIBULL_V2 * theta["shape"] ** 2, 0.0
        v2, deviation = 2 * self.bias("scale", theta) ** 2, self.information("scale", theta) ** -0.5
        return v2, 0.1 * deviation + 0.08 * v2 / deviation

    def reach(self, name: str, theta: Theta) -> float:
        return 4 * self.second_order(name, theta)[0] * self.information(name, theta) if name == "scale" else 0.0

    def log_bias(self, name: str, estimate: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
        return (-_SCALE_VARIANCE / 2 - (_LOG_SHAPE_BIAS_2 - _LOG_SHAPE_BIAS_3 / count) / count) / count

    def log_second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        return _LOG_SHAPE_V2, 0.1


def _scale_bias(shape: Any) -> Any:
    return _LOCATION_BIAS / shape + _LOCATION_VARIANCE / (2 * shape**2)


def _scale_bias_2(shape: Any) -> Any:
    first, second, third, fourth = _SCALE_BIAS_2
    y = 1 / shape
    return y * (first + y * (second + y * (third + y * fourth)))


@dataclass(frozen=True)
class Laplace(Fitted):
    """Laplace density exp(-|x - location| / scale) / (2 scale). Released: ``location``, ``scale``, or both.

    The location is the sample median (the midpoint if there are two), unbiased by symmetry. The scale is the mean
    deviation from it, divided by its expectation for scale 1 (1 - 1 / (2 m) to first order): exactly unbiased.
    """

    names: ClassVar[tuple[str, ...]] = ("location", "scale")
    logarithmic: ClassVar[tuple[str, ...]] = ("scale",)
    defaults: ClassVar[Theta] = MappingProxyType({"location": 0.0, "scale": 1.0})

    def space(self, name: str) -> tuple[float, float]:
        return (-LARGEST, LARGEST) if name == "location" else (0.0, LARGEST)

    def kernel(self, corrected: bool) -> Callable[..., None]:
        return _fits.laplace

    def better(self, fitted: Estimates, counts: NDArray[np.int64]) -> Estimates:
        return {**fitted, "scale": fitted["scale"] / deviation(counts)}

    def information(self, name: str, theta: Theta) -> float:
        return theta["scale"] ** -2

    def bias(self, name: str, theta: Theta) -> float:
        return -theta["scale"] / 2 if name == "scale" else 0.0

    def second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        return (_MEDIAN_V2 if name == "location" else _DEVIATION_V2) * theta["scale"] ** 2, 0.0

    def log_bias(self, name: str, estimate: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
        return (-0.5 - _LOG_DEVIATION_BIAS_2 / count) / count

    def log_second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        return _LOG_DEVIATION_V2, 0.1


def deviation(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the expectation of mean |x - median| for `counts` records of scale 1.

    Exact up to 4097 records; above, 1 - 1 / (2 m) - sqrt(2 / pi) / (3 m**1.5), with an error of less than 1 / m**2.
    """
    m = np.maximum(counts, 2).astype(np.float64)
    series = 1 - 1 / (2 * m) - math.sqrt(2 / math.pi) / (3 * m * np.sqrt(m))
    table = _deviations()
    exact = table[np.minimum(counts // 2, len(table) - 1)]
    return np.where(counts // 2 < len(table), np.where(counts < 2, 1.0, exact), series)


@lru_cache(maxsize=1)
def _deviations() -> NDArray[np.float64]:
    """`deviation` for 2 j (and 2 j + 1) records, by the recurrence of
    https://dpfast.readthedocs.io/en/latest/proofs/block-estimates.html.
    """
    j = np.arange(_EXACT_SIZES // 2, dtype=np.float64)
    central = np.concatenate([[1.0], np.cumprod((2 * j[:-1] + 1) / (2 * j[:-1] + 2))])  # C(2 j, j) / 4**j
    odd = -central / (4 * (j + 1))
    even = (2 * j + 1) * central / (8 * (j + 1) ** 2) + 1 / (4 * (j + 1) * (2 * j + 3))
    tilt = np.concatenate([[0.0], np.cumsum(odd + even)[:-1]])  # after 2 j records
    majority = np.cumsum(tilt + 1 / (2 * (2 * j + 1)) + tilt + odd)  # after 2 j + 2
    table = np.concatenate([[1.0], 1 - majority / (j + 1)])
    table.setflags(write=False)
    return table


@dataclass(frozen=True)
class NegativeBinomial(Fitted):
    """Negative binomial distribution of the failures before the r-th success. Released: ``r``, ``p``, ``mean``.

    p is the probability of success; the mean is r (1 - p) / p. Records are rounded to integers, negative ones left out.
    If the variance is at most the mean, the likelihood is greatest at infinite r and p = 1: the upper ends of the
    bounds. The bias of order 1 / m is subtracted from r and p (the expectations in it are means over the block); the
    mean is the sample mean.
    """

    names: ClassVar[tuple[str, ...]] = ("r", "p", "mean")
    skewness_factors: ClassVar[Theta] = MappingProxyType({"r": 2.0})

    @property
    def least_block(self) -> int:
        return 50

    def space(self, name: str) -> tuple[float, float]:
        return 0.0, 1.0 if name == "p" else LARGEST

    def kernel(self, corrected: bool) -> Callable[..., None]:
        return partial(_fits.negative_binomial, correct=corrected)

    def reference(self, box: Ranges, known: Theta = NOTHING) -> dict[str, float]:
        two: dict[str, float] = {}  # two parameters that determine the third
        for source in (known, box.middle(), {"r": 1.0, "p": 0.5}):
            for name in self.names:
                if name in source and len(two) < 2:
                    two.setdefault(name, source[name])
        if "mean" not in two:
            return {**two, "mean": two["r"] * (1 - two["p"]) / two["p"]}
        if "p" not in two:
            return {**two, "p": two["r"] / (two["r"] + two["mean"])}
        return {**two, "r": two["mean"] * two["p"] / (1 - two["p"])}

    def information(self, name: str, theta: Theta) -> float:
        r, m = theta["r"], theta["mean"]
        if name == "mean":
            return r / (m * (r + m))
        information, _ = _binomial(r, m)
        if name == "r":
            return information
        return 1 / ((m**2 / information + m * r * (r + m)) / (r + m) ** 4)

    def bias(self, name: str, theta: Theta) -> float:
        if name == "mean":
            return 0.0
        r, m = theta["r"], theta["mean"]
        information, bias = _binomial(r, m)
        return bias if name == "r" else (m * bias - m / (information * (r + m)) + m) / (r + m) ** 2

    def second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        if name == "mean":
            return 0.0, 0.0
        deviation, bias = self.information(name, theta) ** -0.5, abs(self.bias(name, theta))
        cube = bias**3 / deviation**2
        return (_R_V2 * bias**2, _R_B2 * cube) if name == "r" else (_P_V2 * cube * deviation, _P_B2 * cube)

    def skewness(self, name: str, theta: Theta) -> float:
        if name != "p":
            return super().skewness(name, theta)
        r, p = theta["r"], theta["r"] / (theta["r"] + theta["mean"])
        low, high = (1 / self.information("p", {**theta, "mean": r / (p * t) - r}) for t in (0.999, 1.001))
        return (high - low) / (0.002 * p) * math.sqrt(self.information("p", theta))

    def reach(self, name: str, theta: Theta) -> float:
        return 0.0 if name == "mean" else fragile(self, ("r",), theta)


@lru_cache(maxsize=64)
def _binomial(r: float, m: float) -> tuple[float, float]:
    """Return the information of one record about r, and the first-order bias of r, as sums over the distribution of
    mean m.
    """
    if max(r, m) > _LARGEST_COUNTS or min(r, m) < 1 / _LARGEST_COUNTS:
        raise OverflowError("counts are too large, or too rarely nonzero, to sum over their distribution")
    from scipy.stats import nbinom  # slow to import

    law = nbinom(r, r / (r + m))
    x = np.arange(min(int(law.isf(1e-14)) + 2, 10**6), dtype=np.float64)
    mass, t = law.pmf(x), 1 / (r + m)
    one, two, three = (np.concatenate([[0.0], np.cumsum((r + x[:-1]) ** -power)]) for power in (1.0, 2.0, 3.0))
    curvature = -two + 1 / r - 2 * t + (x + r) * t**2
    score = one - math.log1p(m / r) + (m - x) * t
    information = -float(mass @ curvature)
    third = float(mass @ (2 * three - r**-2 + 3 * t**2 - 2 * (x + r) * t**3))
    mixed = float(mass @ (score * curvature))
    return information, ((third / 2 + mixed) / information + m * t / (2 * r)) / information
