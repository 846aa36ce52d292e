"""Families on the integers, estimated from sums of counts. Records are rounded to the nearest integer, half to even."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpfast.families.family import LARGEST, AdditiveFamily, Ranges, RecordSum, Theta

_Sums = tuple[NDArray[np.float64], ...]


@dataclass(frozen=True)
class Bernoulli(AdditiveFamily):
    """Bernoulli distribution, P(1) = p. Released: ``p``, estimated by the share of ones, unbiased."""

    names: ClassVar[tuple[str, ...]] = ("p",)
    support: ClassVar[tuple[float, float]] = (0.0, 1.0)
    least: ClassVar[int] = 1

    def space(self, name: str) -> tuple[float, float]:
        return 0.0, 1.0

    def columns(self, box: Ranges) -> tuple[RecordSum, ...]:
        return (RecordSum("value"),)

    def estimate(
        self, count: NDArray[np.float64], sums: _Sums, box: Ranges, *, corrected: bool
    ) -> Iterable[NDArray[np.float64]]:
        return [sums[0] / count]

    def information(self, name: str, theta: Theta) -> float:
        p = theta["p"]
        return 1 / (p * (1 - p))

    def bias(self, name: str, theta: Theta) -> float:
        return 0.0

    def second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        return 0.0, 0.0


@dataclass(frozen=True)
class Poisson(AdditiveFamily):
    """Poisson distribution. Released: ``mean``, the sample mean, unbiased. Counts above 2**51 count as 2**51."""

    names: ClassVar[tuple[str, ...]] = ("mean",)
    support: ClassVar[tuple[float, float]] = (0.0, LARGEST)
    least: ClassVar[int] = 1

    def space(self, name: str) -> tuple[float, float]:
        return 0.0, LARGEST

    def columns(self, box: Ranges) -> tuple[RecordSum, ...]:
        return (RecordSum("value"),)

    def estimate(
        self, count: NDArray[np.float64], sums: _Sums, box: Ranges, *, corrected: bool
    ) -> Iterable[NDArray[np.float64]]:
        return [sums[0] / count]

    def information(self, name: str, theta: Theta) -> float:
        return 1 / theta["mean"]

    def bias(self, name: str, theta: Theta) -> float:
        return 0.0

    def second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        return 0.0, 0.0


@dataclass(frozen=True)
class Geometric(AdditiveFamily):
    """Geometric distribution: number of trials 1, 2, ... up to the first success. Released: ``p``, its probability.

    For m records of sum S, the MLE m / S has the bias p (1 - p) / m; the corrected (m - 1) / (S - 1) is unbiased.
    """

    names: ClassVar[tuple[str, ...]] = ("p",)
    skewness_factors: ClassVar[Theta] = MappingProxyType({"p": 2.0})
    support: ClassVar[tuple[float, float]] = (1.0, LARGEST)

    def space(self, name: str) -> tuple[float, float]:
        return 0.0, 1.0

    def columns(self, box: Ranges) -> tuple[RecordSum, ...]:
        return (RecordSum("value"),)

    def estimate(
        self, count: NDArray[np.float64], sums: _Sums, box: Ranges, *, corrected: bool
    ) -> Iterable[NDArray[np.float64]]:
        return [(count - 1) / (sums[0] - 1) if corrected else count / sums[0]]

    def information(self, name: str, theta: Theta) -> float:
        p = theta["p"]
        return 1 / (p * p * (1 - p))

    def bias(self, name: str, theta: Theta) -> float:
        p = theta["p"]
        return p * (1 - p)

    def second_order(self, name: str, theta: Theta) -> tuple[float, float]:
        p = theta["p"]
        return 2 * (p * (1 - p)) ** 2, 0.0
