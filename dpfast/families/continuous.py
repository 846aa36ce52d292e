"""Families on the real line whose estimates are functions of sums of x, its square, or logarithms.

The estimate of a block must not depend on other blocks, not even in its last bit. So only correctly rounded operations
of NumPy are used here: its vectorised logarithms and exponentials do not guarantee this.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _blocks
from dpfast._kernels._samplers import exp_negs
from dpfast.core import checks
from dpfast.families.family import (
    LARGEST,
    NOTHING,
    AdditiveFamily,
    Ranges,
    RecordSum,
    Theta,
    determined,
    digamma_deficits,
    for_counts,
    logarithms,
    reciprocal,
)

_LEAST = 5e-324
_Sums = tuple[NDArray[np.float64], ...]
_Estimates = Iterable[NDArray[np.float64]]


def _power_of_two(x: float) -> float:
    """Return the greatest power of two that is at most x, within the range allowed for a step."""
    return math.ldexp(0.5, min(max(math.frexp(x)[1], -900), 900))


@dataclass(frozen=True)
class Exponential(AdditiveFamily):
    """Exponential waiting times. Released: ``rate`` or ``mean``.

    For m records of sum S, the MLE m / S of the rate has the bias rate / (m - 1); the corrected estimate (m - 1) / S is
    unbiased, as is the sample mean.
    """

    names: ClassVar[tuple[str, ...]] = ("rate", "mean")
    skewness_factors: ClassVar[Theta] = MappingProxyType({"rate": 2.0})
    logarithmic: ClassVar[tuple[str, ...]] = names
    support: ClassVar[tuple[float, float]] = (0.0, LARGEST)

    def space(self, name: str) -> tuple[float, float]:
        return 0.0, LARGEST

    def columns(self, box: Ranges) -> tuple[RecordSum, ...]:
        # Covers 2**-20 of the least mean in the box to more than 2**7 times the greatest.
        means = [(1 / high, 1 / low if low else 0.0) for low, high in [box.range("rate")]] if "rate" in box else []
        means += [box.range("mean")] if "mean" in box else []
        least, most = min(low for low, _ in means), max(high for _, high in means)
        return (RecordSum("value", step=_power_of_two(max(least * 2.0**-20, most * 2.0**-43))),)

    def estimate(self, count: NDArray[np.float64], sums: _Sums, box: Ranges, *, corrected: bool) -> _Estimates:
        rate = (count - 1 if corrected else count) / sums[0]
        return [rate if name == "rate" else sums[0] / count for name in box.names]

    def reference(self, box: Ranges, known: Theta = NOTHING) -> dict[str, float]:
        rate = determined("rate", (known, box.middle()), mean=reciprocal)
        return {"rate": rate, "mean": 1 / rate, **known}

    def information(self, name: str, theta: Theta) -> float:
        return theta[name] ** -2

    def bias(self, name: str, theta: Theta) -> float:
        return theta["rate"] if name == "rate" else 0.0

    def second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        return (2 * theta["rate"] ** 2 if name == "rate" else 0.0), 0.0

    def log_bias(self, name: str, estimate: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
        return for_counts(_rate_log_bias if name == "rate" else _mean_log_bias, count)

    def log_second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        return 0.5, 0.0


def _rate_log_bias(m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the exact bias of log((m - 1) / S), S a gamma variate of shape m."""
    return digamma_deficits(m) + logarithms((m - 1) / m)


def _mean_log_bias(m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the exact bias of log(S / m), S a gamma variate of shape m."""
    return -digamma_deficits(m)


def _variance_log_bias(m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the exact bias of the logarithm of the unbiased variance of m normal variates."""
    return -digamma_deficits((m - 1) / 2)


def _deviation_log_bias(m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the exact bias of the logarithm of their unbiased standard deviation."""
    return _variance_log_bias(m) / 2 - logarithms(_blocks.normal_corrections(m))


class _Gaussian(AdditiveFamily):
    """Base class: estimates from the mean and the squared deviations of normal numbers."""

    mean: ClassVar[str]
    deviation: ClassVar[str]

    def space(self, name: str) -> tuple[float, float]:
        return (-LARGEST, LARGEST) if name == self.mean else (0.0, LARGEST)

    def estimate(self, count: NDArray[np.float64], sums: _Sums, box: Ranges, *, corrected: bool) -> _Estimates:
        out = []
        for name in box.names:
            if name == self.mean:
                out.append(sums[0] / count)
            elif name == self.deviation:
                correction = _blocks.normal_corrections(count) if corrected else 1.0
                out.append(np.sqrt(sums[1] / (count - 1 if corrected else count)) / correction)
            else:
                out.append(sums[1] / (count - 1 if corrected else count))
        return out

    def reference(self, box: Ranges, known: Theta = NOTHING) -> dict[str, float]:
        middle = box.middle()
        deviation = determined(self.deviation, (known, middle, {self.deviation: 1.0}), variance=math.sqrt)
        return {**middle, self.deviation: deviation, "variance": deviation**2, **known}

    def _variance(self, theta: Theta) -> float:
        return theta[self.deviation] ** 2

    def information(self, name: str, theta: Theta) -> float:
        variance = self._variance(theta)
        if name == self.mean:
            return 1 / variance
        return 2 / variance if name == self.deviation else 1 / (2 * variance**2)

    def bias(self, name: str, theta: Theta) -> float:
        variance = self._variance(theta)
        if name == self.mean:
            return 0.0
        return -0.75 * math.sqrt(variance) if name == self.deviation else -variance

    def second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        variance = self._variance(theta)
        if name == self.mean:
            return 0.0, 0.0
        return (0.625 * variance if name == self.deviation else 2 * variance**2), 0.0

    def skewness(self, name: str, theta: Theta) -> float:
        if name == self.mean:
            return 0.0
        return math.sqrt(0.5) if name == self.deviation else math.sqrt(8.0)

    def log_bias(self, name: str, estimate: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
        """Exact: the sum of squared deviations is distributed as the sum of m - 1 squared normal variates."""
        return for_counts(_deviation_log_bias if name == self.deviation else _variance_log_bias, count)

    def log_second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        return (1.0 if name == self.deviation else 4.0), 0.0


@dataclass(frozen=True)
class Normal(_Gaussian):
    """Normal records. Released: ``mean``, ``sd``, ``variance``, or several of them.

    The MLE of the standard deviation has the bias -3 sd / (4 m); corrected, it is exactly unbiased, like the variance.

    Parameters
    ----------
    center : float
        A public number near the records. Used to estimate a deviation or variance without bounds on the mean: records
        are clamped to within 2**27 times the upper end of the deviation from it.
    """

    center: float = 0.0
    names: ClassVar[tuple[str, ...]] = ("mean", "sd", "variance")
    logarithmic: ClassVar[tuple[str, ...]] = ("sd", "variance")
    mean: ClassVar[str] = "mean"
    deviation: ClassVar[str] = "sd"

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", checks.real("center", self.center))

    def columns(self, box: Ranges) -> tuple[RecordSum, ...]:
        center, width = self.center, 0.0
        if "mean" in box:
            low, high = box.range("mean")
            center, width = low / 2 + high / 2, high - low
        if box.names == ("mean",):
            return (RecordSum("value", center, _power_of_two(width * 2.0**-30)),)
        ranges = [box.range("sd")] if "sd" in box else []
        ranges += (
            [(math.sqrt(low), math.sqrt(high)) for low, high in [box.range("variance")]] if "variance" in box else []
        )
        least, most = min(low for low, _ in ranges), max(high for _, high in ranges)
        step = max(least * 2.0**-12, width * 2.0**-38, most * 2.0 ** (-38 if width else -20))
        return (RecordSum("square", center, _power_of_two(step)),)


@dataclass(frozen=True)
class Lognormal(_Gaussian):
    """Positive records with normal logarithms. Released: ``mu``, ``sigma`` (of the logarithm), or both."""

    names: ClassVar[tuple[str, ...]] = ("mu", "sigma")
    logarithmic: ClassVar[tuple[str, ...]] = ("sigma",)
    support: ClassVar[tuple[float, float]] = (_LEAST, LARGEST)
    mean: ClassVar[str] = "mu"
    deviation: ClassVar[str] = "sigma"

    def columns(self, box: Ranges) -> tuple[RecordSum, ...]:
        return (RecordSum("log" if box.names == ("mu",) else "log-square"),)


@dataclass(frozen=True)
class Pareto(AdditiveFamily):
    """Pareto distribution, density shape minimum**shape / x**(shape + 1) above a public minimum. Released: ``shape``.

    For m records, the MLE m / sum log(x / minimum) has the bias shape / (m - 1); the corrected estimate (m - 1) / ...
    is unbiased. The minimum is not estimated: its MLE, the least record, has an error of about minimum / (shape n), and
    a mean over blocks has at least sqrt(n / m) times that error, so it is not efficient. Use a known bound, or a
    released low quantile (`dpfast.quantile`): the shape above any threshold is the same.

    Parameters
    ----------
    minimum : float
        Positive and public; records below it are left out.
    """

    minimum: float = 1.0
    names: ClassVar[tuple[str, ...]] = ("shape",)
    skewness_factors: ClassVar[Theta] = MappingProxyType({"shape": 2.0})
    logarithmic: ClassVar[tuple[str, ...]] = names

    def __post_init__(self) -> None:
        object.__setattr__(self, "minimum", checks.positive("minimum", self.minimum))

    @property
    def support(self) -> tuple[float, float]:
        return self.minimum, LARGEST

    def space(self, name: str) -> tuple[float, float]:
        return 0.0, LARGEST

    def columns(self, box: Ranges) -> tuple[RecordSum, ...]:
        return (RecordSum("log"),)

    def estimate(self, count: NDArray[np.float64], sums: _Sums, box: Ranges, *, corrected: bool) -> _Estimates:
        excess = np.maximum(sums[0] - count * math.log(self.minimum), 0.0)
        return [(count - 1 if corrected else count) / excess]

    def information(self, name: str, theta: Theta) -> float:
        return theta["shape"] ** -2

    def bias(self, name: str, theta: Theta) -> float:
        return theta["shape"]

    def second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        return 2 * theta["shape"] ** 2, 0.0

    def log_bias(self, name: str, estimate: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
        return for_counts(_rate_log_bias, count)

    def log_second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        return 0.5, 0.0


@dataclass(frozen=True)
class Gamma(AdditiveFamily):
    """Gamma distribution. Released: ``shape``, ``rate``, ``scale`` (1 / rate), or several of them.

    The shape k solves log k - digamma k = log(mean x) - mean(log x). Its first-order bias for m records, b1 / m with
    ``b1 = (k psi' - k**2 psi'' - 2) / (2 (k psi' - 1)**2)``, is subtracted; rate and scale are corrected accordingly
    (the sample mean is independent of the estimate of the shape).

    Parameters
    ----------
    unit : float
        A public number of the same magnitude as the records; means from 1e-12 to 1e12 times it are resolved.
    """

    unit: float = 1.0
    names: ClassVar[tuple[str, ...]] = ("shape", "rate", "scale")
    skewness_factors: ClassVar[Theta] = MappingProxyType({"shape": 2.0, "rate": 2.0})
    logarithmic: ClassVar[tuple[str, ...]] = ("shape",)
    support: ClassVar[tuple[float, float]] = (_LEAST, LARGEST)

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", checks.positive("unit", self.unit))

    def space(self, name: str) -> tuple[float, float]:
        return 0.0, LARGEST

    def columns(self, box: Ranges) -> tuple[RecordSum, ...]:
        return RecordSum("wide", step=_power_of_two(self.unit)), RecordSum("log")

    def estimate(self, count: NDArray[np.float64], sums: _Sums, box: Ranges, *, corrected: bool) -> _Estimates:
        mean = sums[0] / count
        shape = _blocks.gamma_shapes(mean, sums[1] / count)
        raw = {"shape": shape, "rate": shape / mean, "scale": mean / shape}
        if not corrected:
            return [raw[name] for name in box.names]
        bias, spread = _gamma_bias(shape)
        better = np.maximum(shape - bias / count, 0.0)
        inverse = spread / shape**2 - bias / shape, _inverse_bias_2(shape, spread)  # relative bias of 1 / shape
        corrections = {
            "shape": better,
            "rate": (better - 1 / count) / mean,
            "scale": raw["scale"] * (1 - (inverse[0] + inverse[1] / count) / count),
        }
        return [corrections[name] for name in box.names]

    def reference(self, box: Ranges, known: Theta = NOTHING) -> dict[str, float]:
        middle = box.middle()
        rate = determined("rate", (known, middle, {"rate": 1.0}), scale=reciprocal)
        return {"shape": 1.0, **middle, "rate": rate, "scale": 1 / rate, **known}

    def information(self, name: str, theta: Theta) -> float:
        k = theta["shape"]
        _, excess, _ = _blocks.polygammas(np.array([k]))[:, 0].tolist()
        if name == "shape":
            return float(excess)  # trigamma k - 1 / k
        relative = 1 - 1 / (k * (excess + 1 / k))
        return float(k * relative / theta[name] ** 2)

    def bias(self, name: str, theta: Theta) -> float:
        k = theta["shape"]
        [bias], [spread] = _gamma_bias(np.array([k]))
        if name == "shape":
            return float(bias)
        return float((bias + 1) / k if name == "rate" else spread / k**2 - bias / k) * theta[name]

    def second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        """v2 agrees with simulations within a quarter; for the shape it is between 2 shape**2 and 10 shape**2."""
        k = theta["shape"]
        b2 = float(_shape_bias_2(k)) + 0.05 * k
        if name == "shape":
            _, [spread] = _gamma_bias(np.array([k]))
            return float((3.6 * spread / k**2 - 1.6) * spread), b2
        if name == "scale":
            return 1 / self.information("scale", theta), 0.1 * theta["scale"]
        return (10 + 3 / k**2) * theta["rate"] ** 2, b2 / k * theta["rate"]

    def reach(self, name: str, theta: Theta) -> float:
        return 4 * self.second_order("rate", theta)[0] * self.information("rate", theta) if name == "rate" else 0.0

    def log_bias(self, name: str, estimate: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
        """In u = 1 / (I shape**2) - 1, from 0 for small shapes to 1 for large ones; second order from simulations."""
        _, spread = _gamma_bias(estimate)
        u = spread / estimate**2 - 1
        second = 2.33 + 1.06 * u - 0.75 / np.sqrt(np.maximum(u, 0.01)) + 7 * u / count
        bias = -((1 + u) / 2 + second / count) / count
        return np.where(np.isfinite(bias), bias, 0.0)

    def log_second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        _, spread = _gamma_bias(np.array([theta["shape"]]))
        return float(3.4 * spread[0] / theta["shape"] ** 2 - 2.4), 0.2


def _gamma_bias(shape: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """b1 of the MLE of the shape, and m times its variance, k / (k psi' - 1)."""
    _, first, second = _blocks.polygammas(shape)
    first, second = shape * first, shape**2 * second  # k psi' - 1, -k^2 psi'' - 1
    return (first + second) / (2 * first**2), shape / first


def _shape_bias_2(shape: Any) -> Any:
    """b2 of the corrected shape, to 0.02 shape: https://dpfast.readthedocs.io/en/latest/proofs/block-estimates.html."""
    third = shape / 0.36
    return 0.085 / (1 + third * third * third)


def _inverse_bias_2(shape: NDArray[np.float64], spread: NDArray[np.float64]) -> NDArray[np.float64]:
    """Relative b2 of 1 / shape minus its first-order bias, to 0.04; u is 0 for small shapes and 1 for large ones."""
    u = spread / (shape * shape) - 1
    second: NDArray[np.float64] = (1.45 * u - 2.17) * u - 0.25 - _shape_bias_2(shape) / shape
    return second


@dataclass(frozen=True)
class Beta(AdditiveFamily):
    """Beta distribution on (0, 1). Released: ``a``, ``b``, or both; the bias of Cox and Snell is subtracted."""

    names: ClassVar[tuple[str, ...]] = ("a", "b")
    skewness_factors: ClassVar[Theta] = MappingProxyType({"a": 2.0, "b": 2.0})
    defaults: ClassVar[Theta] = MappingProxyType({"a": 1.0, "b": 1.0})
    support: ClassVar[tuple[float, float]] = (_LEAST, 1 - 2.0**-53)

    def space(self, name: str) -> tuple[float, float]:
        return 0.0, LARGEST

    def columns(self, box: Ranges) -> tuple[RecordSum, ...]:
        return RecordSum("log"), RecordSum("log1m")

    def estimate(self, count: NDArray[np.float64], sums: _Sums, box: Ranges, *, corrected: bool) -> _Estimates:
        a, b = _beta_shapes(sums[0] / count, sums[1] / count)
        if corrected:
            bias_a, bias_b = _beta_bias(a, b)
            a, b = a - bias_a / count, b - bias_b / count
        return [a if name == "a" else b for name in box.names]

    def information(self, name: str, theta: Theta) -> float:
        a, b, both = (1 / c + _blocks.polygammas(np.array([c]))[1, 0] for c in _with_sum(theta["a"], theta["b"]))
        own, other = (a, b) if name == "a" else (b, a)
        return max(float(own - both - both**2 / (other - both)), 0.0)  # where nothing is left of the differences

    def bias(self, name: str, theta: Theta) -> float:
        biases = _beta_bias(np.array([theta["a"]]), np.array([theta["b"]]))
        return float(biases[0 if name == "a" else 1][0])

    def second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        """v2 agrees with simulations within a third; b2 is an upper bound, within a factor 2 where it matters."""
        deviation, least = self.information(name, theta) ** -0.5, min(theta["a"], theta["b"])
        skew = abs(theta["a"] - theta["b"]) / (theta["a"] + theta["b"])
        rest = 0.1 + skew * float(_shape_bias_2(least)) / least
        return 0.6 * abs(self.bias(name, theta)) ** 3 / deviation, rest * deviation

    def reach(self, name: str, theta: Theta) -> float:
        return 3 * self.second_order(name, theta)[0] * self.information(name, theta)


def _with_sum(a: float, b: float) -> tuple[float, float, float]:
    return a, b, a + b


_BETA_STEPS = 12


def _beta_shapes(
    log_x: NDArray[np.float64], log_rest: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the a, b with digamma(a) - digamma(a + b) = log_x, and correspondingly for b: Newton's method in log a,
    log b.

    The start is that of Johnson and Kotz for geometric means; NaN if there is no solution.
    """
    g, h = exp_negs(-log_x), exp_negs(-log_rest)
    slack = 1 - g - h
    slack = np.where(slack > 1e-12, slack, np.nan)
    a, b = 0.5 + g / (2 * slack), 0.5 + h / (2 * slack)
    for _ in range(_BETA_STEPS):
        (a0, a1), (b0, b1), (c0, c1) = (_digamma(c) for c in (a, b, a + b))
        u, v = log_x - a0 + c0, log_rest - b0 + c0
        determinant = (a1 - c1) * (b1 - c1) - c1 * c1
        step_a, step_b = (u * (b1 - c1) + v * c1) / determinant, (v * (a1 - c1) + u * c1) / determinant
        a, b = _moved(a, step_a), _moved(b, step_b)
    return a, b


def _moved(x: NDArray[np.float64], step: NDArray[np.float64]) -> NDArray[np.float64]:
    """Equal to x + step to first order, and between x / 3 and 3 x."""
    t = np.clip(step / x, -2, 2)
    return np.where(t < 0, x / (1 - t), x * (1 + t))


def _digamma(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return digamma and trigamma."""
    excess, first, _ = _blocks.polygammas(x)
    return _blocks.logs(x) - excess, first + 1 / x


def _beta_bias(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """b1 of the MLEs: -1/2 I^ri I^jk A_ijk with the derivatives A of log B(a, b), as for any natural parameter."""
    (a1, a2), (b1, b2), (c1, c2) = (_derivatives(c) for c in (a, b, a + b))
    determinant = (a1 - c1) * (b1 - c1) - c1 * c1
    aa, bb, ab = (b1 - c1) / determinant, (a1 - c1) / determinant, c1 / determinant  # the inverse information
    everything = c2 * (aa + 2 * ab + bb)
    along_a, along_b = aa * a2 - everything, bb * b2 - everything
    return -(aa * along_a + ab * along_b) / 2, -(ab * along_a + bb * along_b) / 2


def _derivatives(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return trigamma and its derivative."""
    _, first, second = _blocks.polygammas(x)
    return first + 1 / x, -second - 1 / x**2
