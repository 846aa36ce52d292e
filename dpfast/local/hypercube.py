"""Vectors in a cube, [-radius, radius]^d: random signs in packed bits."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.random import BitGenerator
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _bits
from dpfast.core import checks, containers
from dpfast.core.coin import Coin, coin
from dpfast.core.grid import Grid
from dpfast.local.scalar import unpadded
from dpfast.local.vectors import VectorRandomizer
from dpfast.theory.cube import Signs, masks, subset_coin

_METHODS = ("auto", "majority", "subset")

_MOST_OUTCOMES = 2**20

_CACHE = 2**18  # bytes of reports that are summed at once


@dataclass(frozen=True)
class Hypercube(VectorRandomizer):
    """Local randomiser for vectors of d numbers in [-radius, radius]; a report is a few random signs.

    A record is rounded to a corner of the cube without bias; then the signs of a random set of its coordinates, drawn
    independently of the record, are flipped. Pure epsilon-local differential privacy.

    Parameters
    ----------
    d : int
        At least 1.
    epsilon : float
        At least 2**-40; rounded down to a double. Values above 44.4 count as 44.4
        (https://dpfast.readthedocs.io/en/latest/proofs/reflection.html).
    radius : float
        Positive, in data units.
    method : {"auto", "majority", "subset"}
        "majority" reports all signs; more than half of them agree with the corner with odds e^epsilon. "subset" spends
        all of epsilon on a public random set of k of the d coordinates, at least tau of which agree; k and tau have the
        least variance. "auto" selects the method of smaller variance.

    Attributes
    ----------
    k, tau : int
        The number of signs in a report, and how many of them agree if the coin shows "keep".
    scale : float
        The entries of a decoded report are +-scale where the report has a sign, 0 elsewhere.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    Records: they are clamped to the cube; NaN counts as 0. Rounding shifts the mean of a coordinate by at most
    radius * 2**-48.
    Privacy: P(report | corner) takes two values, of ratio at most e^epsilon exactly, and rounding mixes corners
    (https://dpfast.readthedocs.io/en/latest/proofs/hypercube.html). The published majority for even d, which counts
    ties on both sides, loses log(1 + e^epsilon); here ties count as disagreement, which is private and has less
    variance.
    Report: uint64 words. k = d: ceil(d / 64) words; bit j is in word j // 64 at place j % 64, 1 for +scale, and the
    bits beyond d are zero. k < d: one word with the seed of the subset (`subset`), then ceil(k / 64) words with bit i
    for coordinate i of the subset. Bytes: the words in order, little-endian. Refused: nonzero bits beyond the last.
    Variance: ``d^2 B^2 / k - |x|^2`` in total, B = scale k / d. Run time: 1 to 2 ns and 2 bytes of randomness per
    requested coordinate; a sum of n reports takes about n d / 300 ns. Timing is outside the guarantee.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, equation (26), corrected; Nguyen et al. 2016 (Harmony) for even d.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> mechanism = local.Hypercube(3, epsilon=2.0)
    >>> mechanism.k, mechanism.tau
    (2, 2)
    >>> reports = mechanism.randomize(np.tile([1.0, -0.5, 0.0], (100_000, 1)))
    >>> bool(np.all(np.abs(mechanism.estimate(reports) - [1.0, -0.5, 0.0]) < 0.05))
    True
    """

    d: int
    epsilon: float
    radius: float = field(kw_only=True, default=1.0)
    method: str = field(kw_only=True, default="auto")
    k: int = field(init=False, repr=False, compare=False)
    tau: int = field(init=False, repr=False, compare=False)
    scale: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "d", checks.whole("d", self.d, least=1))
        put(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        put(self, "radius", checks.radius(self.radius))
        checks.choice("method", self.method, _METHODS)
        signs = Signs.of(self.d, self.epsilon, self.method)
        put(self, "method", signs.method)
        put(self, "k", signs.k)
        put(self, "tau", signs.tau)
        put(self, "scale", checks.finite_scale(self.radius * signs.scale * self.d / signs.k))
        checks.finite_scale(self.second_moment)

    @property
    def _coin(self) -> Coin:
        """The coin for the k signs; at least tau of them agree if it shows "keep"."""
        return coin(self.epsilon) if self.method == "majority" else subset_coin(self.k, self.tau, self.epsilon)

    @property
    def share(self) -> Fraction:
        """The share of masks by which a report agrees with a corner; of "majority" at most half."""
        inside = masks(self.k, self.tau)[0][-1] if self.method == "subset" else 1 << (self.k - 1)
        return Fraction(inside, 1 << self.k)

    @property
    def mask_law(self) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
        """Parameters of the mask of k signs: the coin's threshold, k, and `masks`, empty if half of k decides."""
        classes = ((), ()) if self.method == "majority" else masks(self.k, self.tau)
        return self._coin.threshold, self.k, *classes

    def mask_correlation(self) -> float:
        """Mean product of two signs of a report, relative to that of the record; k >= 2."""
        k, weights = self.k, _mask_weights(self._coin, self.k, self.tau)
        total = sum(math.comb(k, f) * weight * ((k - 2 * f) ** 2 - k) for f, weight in enumerate(weights))
        return float(total / (k * (k - 1)))

    def subset(self, reports: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the coordinates in each report, in the order of its bits: shape (n, k), or (k,) for one report."""
        rows, one = self.checked_reports(reports)
        out = np.empty((rows.shape[0], self.k), np.int64)
        if self.k == self.d:
            out[:] = np.arange(self.d)
        else:
            _bits.subsets(rows[:, 0], self.d, out)
        return out[0] if one else out

    def law(self, x: ArrayLike) -> HypercubeLaw:
        """Return the exact law of the signs in a decoded report of one record. PRIVATE.

        Raises
        ------
        ValueError
            If there are more than 2**20 outcomes.
        """
        rows, _ = self._records(x)
        if len(rows) != 1:
            raise ValueError(f"law takes one record, of shape ({self.d},), not {len(rows)} records")
        if math.comb(self.d, self.k) << self.k > _MOST_OUTCOMES:
            raise ValueError(f"the law of {self.k} of {self.d} signs has more than 2**20 outcomes")
        up = _up_codes(np.asarray(rows[0], dtype=np.float64), 1 / self.radius)
        return HypercubeLaw.of(up.tolist(), self.k, _mask_weights(self._coin, self.k, self.tau))

    @property
    def grids(self) -> tuple[Grid, ...]:
        """Grids of the cube, for `dpfast.audit.verify`: a clamped record is at or near one of these points."""
        return (Grid(-self.radius, self.radius),) * self.d

    @property
    def row(self) -> tuple[tuple[int, ...], type]:
        return ((self.k + 63) // 64 + (self.k < self.d),), np.uint64

    def fill(self, source: BitGenerator, x: NDArray[np.float64], out: NDArray[np.uint64]) -> None:
        if self.method == "majority":
            _bits.randomize_majority(source, x, 1 / self.radius, coin(self.epsilon).threshold, out)
        else:
            classes = _classes(self.k, self.tau)
            _bits.randomize_threshold(source, x, 1 / self.radius, self._coin.threshold, self.k, classes, out)

    def valid(self, reports: NDArray[np.uint64]) -> NDArray[np.bool_]:
        return unpadded(reports, self.k)  # any signs, and any seed

    @property
    def _together(self) -> int:
        return _CACHE // (8 * self.row[0][0])

    def decode_into(self, reports: NDArray[np.uint64], out: NDArray[np.float64]) -> None:
        octets = reports[:, self.k < self.d :].astype("<u8", copy=False)
        bits = np.unpackbits(np.ascontiguousarray(octets).view(np.uint8), axis=1, count=self.k, bitorder="little")
        signs = np.where(bits, self.scale, -self.scale)
        if self.k == self.d:
            out[:] = signs
        else:
            out[:] = 0.0
            np.put_along_axis(out, self.subset(reports), signs, axis=1)

    def sums(self, reports: NDArray[np.uint64]) -> NDArray[np.int64]:
        if self.k < self.d:
            sums = np.zeros(self.d, np.int64)
            _bits.add_subsets(reports, self.k, sums)
            return sums
        counts = np.zeros(64 * reports.shape[1], np.int64)
        _bits.count_columns(reports, counts)
        signed: NDArray[np.int64] = 2 * counts[: self.d] - reports.shape[0]
        return signed

    @property
    def unit(self) -> float:
        return self.scale

    @property
    def second_moment(self) -> float:
        return self.k * (self.scale * self.scale)

    def _meant(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.clip(np.where(np.isnan(x), 0.0, x), -self.radius, self.radius)


@dataclass(frozen=True, eq=False)
class HypercubeLaw:
    """The law of the signs in a report. PRIVATE. Outcome k is row k of `signs`, as for `dpfast.audit.verify`.

    Attributes
    ----------
    signs : ndarray of int8, shape (m, d)
        Every possible decoded report, in units of `Hypercube.scale`: +1, -1, or 0 for coordinates outside the subset.
    logs : ndarray, shape (m,)
        Their log probabilities.
    """

    signs: NDArray[np.int8]
    logs: NDArray[np.float64]

    def outcomes(self) -> NDArray[np.int64]:
        """0..m - 1."""
        return np.arange(self.logs.size)

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Log probability of outcomes k."""
        return np.asarray(self.logs[containers.integers("k", k)])

    def value(self, k: ArrayLike) -> NDArray[np.int8]:
        """Return the signs of outcomes k."""
        return np.asarray(self.signs[containers.integers("k", k)])

    @classmethod
    def of(cls, up: list[int], k: int, weights: list[Fraction]) -> HypercubeLaw:
        """Build the law from the codes of P(+), and the probability of a mask with each number of ones."""
        d, bits = len(up), np.arange(2**k)
        ones = np.array([bin(mask).count("1") for mask in range(2**k)])
        signs = (2 * (bits[:, None] >> np.arange(k) & 1) - 1).astype(np.int8)
        mask = np.array([float(weight) for weight in weights])[ones]
        every, logs = [], []
        for subset in itertools.combinations(range(d), k):
            rows = np.zeros((2**k, d), np.int8)
            rows[:, subset] = signs
            p = mask / math.comb(d, k)
            for i, j in enumerate(subset):
                p = p * (1 - up[j] / 2**48) + p[bits ^ (1 << i)] * (up[j] / 2**48)
            every.append(rows)
            logs.append(np.log(p))
        return cls(np.concatenate(every), np.concatenate(logs))


@lru_cache(maxsize=64)
def _classes(k: int, tau: int) -> _bits.Masks:
    """Return the masks of k bits in the form that the kernel expects."""
    return _bits.Masks(*masks(k, tau))


def _up_codes(x: NDArray[np.float64], inverse: float) -> NDArray[np.int64]:
    """Return the probability of rounding up in units of 2**-48, computed as in ``bits.h``."""
    with np.errstate(all="ignore"):
        y = np.clip(x * inverse, -1.0, 1.0)
    return np.rint((np.where(np.isnan(y), 0.0, y) + 1.0) * 2.0**47).astype(np.int64)


def _mask_weights(coin_shown: Coin, k: int, tau: int) -> list[Fraction]:
    """Return the probability of a mask with 0, ..., k ones."""
    inside, outside = masks(k, tau)
    least = 1 / (coin_shown.ratio * inside[-1] + outside[-1])
    return [coin_shown.ratio * least if ones <= k - tau else least for ones in range(k + 1)]
