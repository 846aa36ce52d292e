"""Vectors in a ball, |x| <= radius: one bit about a random half space, one of many directions, or a point in a cap."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import scipy
from numpy.random import BitGenerator
from numpy.typing import NDArray

from dpfast._kernels import _directions, _randomize, _samplers
from dpfast.core import checks
from dpfast.core.coin import Coin, coin
from dpfast.local.caps import Best, best_directions, best_height, cap_moment, cap_share
from dpfast.local.vectors import VectorRandomizer
from dpfast.theory.cube import gamma_ratio_half

_METHODS = ("auto", "halfspace", "directions", "privunit")
_REPORTS = {"auto": _METHODS, "vector": _METHODS, "sign": ("halfspace",), "index": ("directions",)}
_MOST_DIRECTIONS = 2**10

# Relative tolerance on the norm of a report.
_SLACK = 2.0**-20

# Relative bound on the error of SciPy's share of a cap, with a margin: shares are rounded up for shuffled reports.
_SHARE_SLACK = Fraction(1, 2**30)


@dataclass(frozen=True)
class L2Ball(VectorRandomizer):
    """Local randomiser for vectors of d numbers with Euclidean norm at most `radius`.

    A record is rounded to the sphere without bias. The report names the side of a random half space that contains it,
    or one of many random directions that is near it, and is true with odds e^epsilon. Pure epsilon-local differential
    privacy.

    Parameters
    ----------
    d : int
        At least 1.
    epsilon : float
        At least 2**-40; rounded down to a double. Values above 44.4 count as 44.4
        (https://dpfast.readthedocs.io/en/latest/proofs/reflection.html).
    radius : float
        Positive, in data units.
    method : {"auto", "halfspace", "directions", "privunit"}
        "halfspace", the default of "auto", and "directions" are exactly private, whatever the floating-point arithmetic
        does. "directions" draws many random directions by a public seed and reports one of those nearest to the record,
        or one of the others. "privunit" reports a point inside or outside a cap around the record, which is the limit
        of many directions: its variance is 1.16, 1.67, 3.9 times smaller than that of "halfspace" at epsilon = 1, 2, 4,
        but its guarantee assumes real arithmetic; see Notes. In one dimension all are "halfspace".
    report : {"auto", "vector", "sign", "index"}
        "vector": d floats, an unbiased estimate of the record. "sign" (only for "halfspace") and "index" (only for
        "directions"): one word with a public seed and one bit about the record, or the index of a direction; `decode`
        recovers the same vector from it. "auto" is "index" for "directions", else "vector".
    directions : int
        Their number for "directions", 2..1024. At epsilon = 1, 2, 4, the variance for 16 of them is 1.11, 1.13, 1.24
        times that of "privunit", for 64 1.03, 1.03, 1.06 times, for 256 less than 1.02 times.

    Attributes
    ----------
    scale : float
        The norm of a decoded report.
    method, report : str
        Those in use, never "auto".

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
    "directions": only the order of the directions depends on the record; a coin of odds e^epsilon m / (K - m) decides
    whether the report is a uniform one of the first m of K in this order or of the others, so every order is private.
    m has the least variance, and `scale` is that of random directions. Of "privunit": the coin is exact, but the
    released point is computed from the record's floats, so a set of doubles may be slightly likelier under one record
    than the real law says. The excess over epsilon is believed negligible but not proved; if in doubt, use
    "directions". Report: "sign": a uint64; its upper 63 bits are the seed of the direction u (SplitMix64, then Box and
    Muller), its last bit is 1 for +u, 0 for -u; "index": a uint64, itself the seed of the reported direction; its lower
    bits, as many as `directions` - 1 has, are the index among those that share its upper bits, and an index that is too
    large is refused; "vector": d float64. Bytes: little-endian. Variance: ``scale**2 - |x|^2`` in total. Run time: half
    that of ``Generator.standard_normal`` of the same size, for both report types, for `decode` and for `aggregate` of
    signs; for `randomize` by "directions", that of each direction. Timing is outside the guarantee.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, equation (25), on the sphere; Bhowmick et al. 2018 and Asi, Feldman and Talwar
    2022 for "privunit"; Shah et al. 2022, "Optimal compression of locally differentially private mechanisms", for the
    choice among random candidates, whose guarantee there is weaker than epsilon or needs more of them.

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
    report: str = field(kw_only=True, default="auto")
    directions: int = field(kw_only=True, default=64)
    scale: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "d", checks.whole("d", self.d, least=1))
        put(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        put(self, "radius", checks.radius(self.radius))
        checks.choice("method", self.method, _METHODS)
        checks.choice("report", self.report, tuple(_REPORTS))
        put(self, "directions", checks.whole("directions", self.directions, least=2))
        if self.directions > _MOST_DIRECTIONS:
            raise ValueError(f"directions must be at most {_MOST_DIRECTIONS}, not {self.directions}")
        if self.method == "auto":
            put(self, "method", "halfspace")
        if self.method not in _REPORTS[self.report]:
            raise ValueError(f"report={self.report!r} requires method={_REPORTS[self.report][0]!r}")
        if self.report == "auto":
            put(self, "report", "index" if self.method == "directions" else "vector")
        if self.d == 1:
            put(self, "method", "halfspace")
            put(self, "report", "sign" if self.report == "index" else self.report)
        scale = {"halfspace": self._halfspace_scale, "directions": self._best_scale, "privunit": self._cap_scale}
        put(self, "scale", checks.finite_scale(self.radius * scale[self.method]()))
        checks.finite_scale(self.second_moment)

    def _halfspace_scale(self) -> float:
        """``c sqrt(pi) Gamma((d + 1) / 2) / Gamma(d / 2)``, c = 1 / (2 P(keep) - 1): the ratio of c to E|U_1|."""
        return coin(self.epsilon).gain * math.sqrt(math.pi) * gamma_ratio_half(self.d / 2)

    def _cap_scale(self) -> float:
        """1 / E<V, r> where V is in the cap with the coin's probability, else outside."""
        _, share, inside = self._cap
        p = inside.probability - Fraction(share)
        return 1 / (cap_moment(self.d, self.height) * float(p / (Fraction(share) * (1 - Fraction(share)))))

    def _best_scale(self) -> float:
        """1 / E<u, r> where u is one of the m best directions with the coin's probability, else one of the others.

        All K directions together have the mean 0, so E<u, r> is ``(p - (1 - p) m / (K - m))`` times that of the best.
        """
        best, among_best = self._best
        p, others = among_best.probability, self.directions - best.m
        return 1 / (best.along * float(p - (1 - p) * Fraction(best.m, others)))

    @property
    def _best(self) -> tuple[Best, Coin]:
        """The directions that count as near the record, and the coin that decides whether one of them is reported."""
        best = best_directions(self.d, self.epsilon, self.directions)
        return best, coin(self.epsilon, Fraction(best.m, self.directions - best.m))

    @property
    def height(self) -> float:
        """Height at which the cap of "privunit" begins, in units of the radius; 0, half of the sphere, for others."""
        return best_height(self.d, self.epsilon) if self.method == "privunit" else 0.0

    @property
    def _cap(self) -> tuple[float, float, Coin]:
        """The height of the cap, its share of the sphere, and the coin that decides "inside"."""
        share = float(cap_share(self.d, self.height))
        return self.height, share, coin(self.epsilon, Fraction(share) / (1 - Fraction(share)))

    @property
    def share(self) -> Fraction:
        if self.method == "directions":
            return Fraction(self._best[0].m, self.directions)
        return Fraction(1, 2) if self.method == "halfspace" else Fraction(self._cap[1]) * (1 + _SHARE_SLACK)

    @property
    def row(self) -> tuple[tuple[int, ...], type]:
        return ((self.d,), np.float64) if self.report == "vector" else ((), np.uint64)

    def fill(self, source: BitGenerator, x: NDArray[np.float64], out: NDArray[Any]) -> None:
        if self.method == "directions":
            chosen = out if self.report == "index" else np.empty(len(x), np.uint64)
            self._choose(source, x, chosen)
            if self.report == "vector":
                _directions.expand(chosen, False, self.scale, out)
            return
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

    def _choose(self, source: BitGenerator, x: NDArray[np.float64], out: NDArray[np.uint64]) -> None:
        """Write the reports: a rank that does not depend on the record, then the direction of this rank."""
        best, among_best = self._best
        words, ranks = _words(source, len(x), 2), np.empty(len(x), np.uint32)
        none = np.zeros(len(x), np.uint32)
        _randomize.fill_windows(source, none, best.m, self.directions, among_best.threshold, ranks)
        _directions.choose_directions(words, ranks, self.directions, x, 1 / self.radius, out)

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
        if self.report == "index":
            bits = (self.directions - 1).bit_length()
            return np.asarray((reports & np.uint64(2**bits - 1)) < self.directions)
        right = np.empty(len(reports), np.bool_)
        _directions.have_length(reports, *self._lengths, right)
        return right

    def _counted(self, rows: NDArray[Any]) -> tuple[int, NDArray[Any]]:
        if self.report != "vector":
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
        if self.report == "vector":
            out[:] = reports
        else:
            _directions.expand(reports, self.report == "sign", self.scale, out)

    def sums(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        sums = np.zeros(self.d)
        _directions.add_directions(reports, self.report == "sign", self.scale, sums)
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
            return super().worst_variance  # antipodal symmetry: E[Z Z'] is a multiple of the identity
        along = self._square_along()
        return self.second_moment * max(along, (1 - along) / (self.d - 1))

    def _square_along(self) -> float:
        """E<V, r>^2. Of a cap, with f(x) the marginal density, x f = -((1 - x^2) f)' / (d - 1)."""
        if self.method == "directions":
            best, among_best = self._best
            p = float(among_best.probability)
            others = (self.directions / self.d - best.m * best.square) / (self.directions - best.m)
            return p * best.square + (1 - p) * others
        height, share, inside = self._cap
        above = share / self.d + (self.d - 1) / self.d * height * cap_moment(self.d, height)
        p = float(inside.probability)
        return p * above / share + (1 - p) * (1 / self.d - above) / (1 - share)

    def _meant(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        infinite = np.isinf(x)
        limit = infinite.any(axis=1, keepdims=True)
        missing = np.isnan(x).any(axis=1, keepdims=True)
        rows = np.where(missing, 0.0, np.where(limit, np.where(infinite, np.sign(x) * self.radius, 0.0), x))
        largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True), self.radius)
        rows = rows / largest  # a norm in data units may be beyond all doubles
        norms = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), self.radius / largest)
        return np.asarray(self.radius * (rows / norms))


def _words(source: BitGenerator, n: int, each: int) -> NDArray[np.uint64]:
    words = np.empty(n * each, np.uint64)
    _samplers.fill_words(source, words)
    return words.reshape(n, each)
