"""Vectors in a ball, |x| <= radius: one bit about a random half space, or a point in a random cap."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.random import BitGenerator
from numpy.typing import NDArray

from dpfast._kernels import _directions, _samplers
from dpfast.core import checks
from dpfast.core.coin import Coin, coin
from dpfast.local.vectors import VectorRandomizer
from dpfast.theory.cube import gamma_ratio_half

_METHODS = ("auto", "halfspace", "privunit")
_REPORTS = ("vector", "sign")

# A cap this many standard deviations of a coordinate away is too rare for a coin of 64 bits.
_HIGHEST = 12.0

# Relative tolerance on the norm of a report.
_SLACK = 2.0**-20


@dataclass(frozen=True)
class L2Ball(VectorRandomizer):
    """Local randomiser for vectors of d numbers with Euclidean norm at most `radius`.

    A record is rounded to the sphere without bias. The report names the side of a random half space that contains it,
    and is true with odds e^epsilon. Pure epsilon-local differential privacy.

    Parameters
    ----------
    d : int
        At least 1.
    epsilon : float
        At least 2**-40; rounded down to a double. Values above 44.4 count as 44.4
        (https://dpfast.readthedocs.io/en/latest/proofs/reflection.html).
    radius : float
        Positive, in data units.
    method : {"auto", "halfspace", "privunit"}
        "halfspace", the default of "auto", is exactly private, whatever the floating-point arithmetic does. "privunit"
        reports a point inside or outside a cap around the record: its variance is 1.16, 1.67, 3.9 times smaller at
        epsilon = 1, 2, 4, but its guarantee assumes real arithmetic; see Notes. In one dimension it equals "halfspace".
    report : {"vector", "sign"}
        "vector": d floats, an unbiased estimate of the record. "sign" (only for "halfspace"): one word that holds one
        bit about the record and a public seed; `decode` recovers the same vector from it.

    Attributes
    ----------
    scale : float
        The norm of a decoded report.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    Records: a longer record is projected onto the ball; one with NaN counts as the zero vector; one with infinities
    counts as the limit: these coordinates are +-1, all others 0, at the full radius.
    Privacy of "halfspace": only the bit depends on the record, and an exact coin keeps or flips it, so rounding, NaN or
    a poor direction cannot weaken the guarantee (https://dpfast.readthedocs.io/en/latest/proofs/reflection.html). Of
    "privunit": the coin is exact, but the released point is computed from the record's floats, so a set of doubles may
    be slightly likelier under one record than the real law says. The excess over epsilon is believed negligible but not
    proved; if in doubt, use "halfspace". Report: "sign": a uint64; its upper 63 bits are the seed of the direction u
    (SplitMix64, then Box and Muller), its last bit is 1 for +u, 0 for -u; "vector": d float64. Bytes: little-endian.
    Variance: ``scale**2 - |x|^2`` in total. Run time: half that of ``Generator.standard_normal`` of the same size, for
    both report types, for `decode` and for `aggregate` of signs. Timing is outside the guarantee.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, equation (25), on the sphere; Bhowmick et al. 2018 and Asi, Feldman and Talwar
    2022 for "privunit".

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> mechanism = local.L2Ball(3, epsilon=1.0, report="sign")
    >>> round(mechanism.scale, 6)
    4.327907
    >>> reports = mechanism.randomize(np.tile([0.6, -0.8, 0.0], (100_000, 1)))
    >>> bool(np.all(np.abs(mechanism.estimate(reports) - [0.6, -0.8, 0.0]) < 0.06))
    True
    """

    d: int
    epsilon: float
    radius: float = field(kw_only=True, default=1.0)
    method: str = field(kw_only=True, default="auto")
    report: str = field(kw_only=True, default="vector")
    scale: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "d", checks.whole("d", self.d, least=1))
        put(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        put(self, "radius", checks.radius(self.radius))
        checks.choice("method", self.method, _METHODS)
        checks.choice("report", self.report, _REPORTS)
        if self.method == "privunit" and self.report == "sign":
            raise ValueError("report='sign' requires method='halfspace': a point in a cap is not a sign")
        if self.method == "auto" or self.d == 1:
            put(self, "method", "halfspace")
        scale = self._halfspace_scale() if self.method == "halfspace" else self._cap_scale()
        put(self, "scale", checks.finite_scale(self.radius * scale))
        checks.finite_scale(self.second_moment)

    def _halfspace_scale(self) -> float:
        """``c sqrt(pi) Gamma((d + 1) / 2) / Gamma(d / 2)``, c = 1 / (2 P(keep) - 1): the ratio of c to E|U_1|."""
        return coin(self.epsilon).gain * math.sqrt(math.pi) * gamma_ratio_half(self.d / 2)

    def _cap_scale(self) -> float:
        """1 / E<V, r> where V is in the cap with the coin's probability, else outside."""
        _, share, inside = self._cap
        p = inside.probability - Fraction(share)
        return 1 / (_cap_moment(self.d, self.height) * float(p / (Fraction(share) * (1 - Fraction(share)))))

    @property
    def height(self) -> float:
        """Height at which the cap begins, in units of the radius; 0 (half of the sphere) for a half space."""
        return best_height(self.d, self.epsilon) if self.method == "privunit" else 0.0

    @property
    def _cap(self) -> tuple[float, float, Coin]:
        """The height of the cap, its share of the sphere, and the coin that decides "inside"."""
        share = _cap_share(self.d, self.height)
        return self.height, share, coin(self.epsilon, Fraction(share) / (1 - Fraction(share)))

    @property
    def row(self) -> tuple[tuple[int, ...], type]:
        return ((), np.uint64) if self.report == "sign" else ((self.d,), np.float64)

    def fill(self, source: BitGenerator, x: NDArray[np.float64], out: NDArray[Any]) -> None:
        if self.method == "privunit":
            words = _words(source, len(x), 4)
            heights = self._heights(words[:, 2], words[:, 3])
            _directions.fill_caps(words, x, 1 / self.radius, heights, self.scale, out)
            return
        words, threshold = _words(source, len(x), 3), coin(self.epsilon).threshold
        if self.report == "sign":
            _directions.randomize_halfspace(words, x, 1 / self.radius, threshold, out)
        else:
            _directions.randomize_vectors(words, x, 1 / self.radius, threshold, self.scale, out)

    def _heights(self, coins: NDArray[np.uint64], words: NDArray[np.uint64]) -> NDArray[np.float64]:
        """<V, r> of each report, by inversion; q is the share of the sphere above it."""
        _, share, inside = self._cap
        u = (words.astype(np.float64) + 0.5) * 2.0**-64
        q = np.where(coins < np.uint64(inside.threshold), share * u, share + (1 - share) * u)
        rarer, a = 2 * np.minimum(q, 1 - q), (self.d - 1) / 2
        square = np.where(
            rarer < 0.02, 1 - scipy.special.betaincinv(a, 0.5, rarer), scipy.special.betaincinv(0.5, a, 1 - rarer)
        )
        heights: NDArray[np.float64] = np.copysign(np.sqrt(np.clip(square, 0.0, 1.0)), 0.5 - q)
        return heights

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        if self.report == "sign":
            return np.ones(len(reports), np.bool_)  # any seed, any bit
        right = np.empty(len(reports), np.bool_)
        _directions.have_length(reports, *self._lengths, right)
        return right

    def _counted(self, rows: NDArray[Any]) -> tuple[int, NDArray[Any]]:
        if self.report == "sign":
            return super()._counted(rows)
        sums = np.zeros(self.d)
        return _directions.add_vectors(rows, *self._lengths, sums), sums

    @property
    def _lengths(self) -> tuple[float, float, float]:
        """A factor (a power of two), and the bounds on the squared norm of a report times that factor.

        A report has norm `scale` up to rounding; the d rounded numbers may have a larger norm if they are subnormal.
        """
        factor = math.ldexp(1.0, min(-math.frexp(self.scale)[1], 1000))
        length, slack = self.scale * factor, _SLACK * self.scale * factor + self.d * 2.0**-1074 * factor
        return factor, max(length - slack, 0.0) ** 2, (length + slack) ** 2

    def decode_into(self, reports: NDArray[Any], out: NDArray[np.float64]) -> None:
        if self.report == "sign":
            _directions.expand(reports, self.scale, out)
        else:
            out[:] = reports

    def sums(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        sums = np.zeros(self.d)
        _directions.add_directions(reports, self.scale, sums)
        return sums

    @property
    def unit(self) -> float:
        return 1.0

    @property
    def second_moment(self) -> float:
        return self.scale * self.scale

    @property
    def worst_variance(self) -> float:
        if self.method == "halfspace":
            return self.scale**2 / self.d  # antipodal symmetry: E[Z Z'] is a multiple of the identity
        along = self._square_along()
        return self.scale**2 * max(along, (1 - along) / (self.d - 1))

    def _square_along(self) -> float:
        """E<V, r>^2: with f(x) the marginal density, x f = -((1 - x^2) f)' / (d - 1)."""
        height, share, inside = self._cap
        above = share / self.d + (self.d - 1) / self.d * height * _cap_moment(self.d, height)
        p = float(inside.probability)
        return p * above / share + (1 - p) * (1 / self.d - above) / (1 - share)

    def _meant(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        infinite = np.isinf(x)
        limit = infinite.any(axis=1, keepdims=True)
        missing = np.isnan(x).any(axis=1, keepdims=True)
        rows = np.where(missing, 0.0, np.where(limit, np.where(infinite, np.sign(x), 0.0), x / self.radius))
        largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1.0)
        norm = np.linalg.norm(rows / largest, axis=1, keepdims=True) * largest
        shrink = np.where(limit, norm, np.maximum(norm, 1.0))
        return self.radius * (rows / np.where(missing, 1.0, shrink))


def _words(source: BitGenerator, n: int, each: int) -> NDArray[np.uint64]:
    words = np.empty(n * each, np.uint64)
    _samplers.fill_words(source, words)
    return words.reshape(n, each)


def _cap_share(d: int, height: float) -> float:
    """P(U_1 >= height) for U uniform on the sphere, height >= 0."""
    return float(scipy.special.betainc((d - 1) / 2, 0.5, (1 - height) * (1 + height))) / 2


def _cap_moment(d: int, height: float) -> float:
    """E[U_1; U_1 >= height]: ``(1 - height^2)^((d - 1) / 2) / (2 sqrt(pi) gamma_ratio_half(d / 2))``."""
    return math.exp(_log_cap_moment(d, height))


def _log_cap_moment(d: int, height: float) -> float:
    return (d - 1) / 2 * math.log1p(-height * height) - math.log(2 * math.sqrt(math.pi) * gamma_ratio_half(d / 2))


@lru_cache(maxsize=256)
def best_height(d: int, epsilon: float) -> float:
    """Return the height h of the cap with the least scale: it minimises ``(1 + (E - 1) Q(h)) / E[U_1; U_1 >= h]``."""
    from scipy.optimize import minimize_scalar  # slow to import

    gain = math.expm1(min(epsilon, 44.36))

    def log_scale(height: float) -> float:
        return math.log1p(gain * _cap_share(d, height)) - _log_cap_moment(d, height)

    bounds = (0.0, min(1.0, _HIGHEST / math.sqrt(d)))
    return float(minimize_scalar(log_scale, bounds=bounds, method="bounded", options={"xatol": 1e-10 * bounds[1]}).x)
