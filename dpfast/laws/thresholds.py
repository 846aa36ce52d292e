"""Gaussian noise and a threshold for counts of keys, proved for units with records of different keys.

https://dpfast.readthedocs.io/en/latest/proofs/partitions.html
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpfast.core.divergences import gaussian_mu_down, new_keys_delta_up
from dpfast.core.rounding import root_up, up
from dpfast.laws.keyed import MOST_NOISE, UnboundedNoise
from dpfast.laws.rounded import RoundedGaussian

_MOST_SCALE = 2**50  # a threshold is below 64 scales
_MOST_CHECKS = 2**9  # of blocks that are split to prove a threshold


class GaussianNoise(UnboundedNoise):
    """Rounded Gaussian noise X = center - J, for keys that have records. `thresholded` makes it."""

    def __init__(self, scale: float, center: int) -> None:
        self.noise, self.center = RoundedGaussian(scale), center

    def cdf(self, j: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.where(j > 0, super().cdf(j), 0.0)


def thresholded(epsilon: float, delta: float, k: int) -> GaussianNoise | None:
    """Gaussian noise for k records of different keys: the least scale, and the least threshold to one part in 2**20.

    None for a scale beyond 2**50.
    """
    whole, mu = Fraction(epsilon), gaussian_mu_down(epsilon, delta)
    if k.bit_length() > 100 or (scale := up(Fraction(root_up(Fraction(k))) / Fraction(mu))) > _MOST_SCALE:
        return None
    low, high = 1, 2
    while not _fits(whole, delta, k, scale, high):
        low, high = high, 2 * high
        if high > MOST_NOISE:
            return None
    while high - low > 1 + (high >> 20):
        middle = (low + high) // 2
        low, high = (low, middle) if _fits(whole, delta, k, scale, middle) else (middle, high)
    return GaussianNoise(scale, high - 1)


def _fits(epsilon: Fraction, delta: float, k: int, scale: float, threshold: int) -> bool:
    """Whether Gaussian noise with a threshold is proved to be (epsilon, delta)-private for k records of different keys.

    Numbers of new keys among the k are proved in blocks: by the largest number, and the Gaussian of the least one.
    """
    square, reach = Fraction(scale) ** 2, (threshold - Fraction(3, 2)) / Fraction(scale)
    blocks, checks = [(0, k), (k, k)], 0
    while blocks:
        first, last = blocks.pop()
        if new_keys_delta_up((k - first) / square, last, reach, epsilon) <= delta:
            continue
        checks += 1
        if first == last or checks > _MOST_CHECKS:
            return False
        middle = (first + last) // 2
        blocks += [(first, middle), (middle + 1, last)]
    return True
