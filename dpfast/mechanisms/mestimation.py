"""M-estimators by the exponential mechanism with a prior: the law of Chaudhuri and Hsu, with a corrected constant."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _samplers, _scores
from dpfast._kernels._samplers import in_one_piece
from dpfast.choosing import Explain, explained
from dpfast.core import checks, containers
from dpfast.core.callbacks import is_pointer
from dpfast.core.grid import Grid, check_grid, grid_for
from dpfast.core.traps import Trap, of_corner
from dpfast.core.types import Exact, Records
from dpfast.laws import TAIL, ScalarLaw
from dpfast.mechanisms.assumptions import Assumed, Cdf, error, error_under, even_records, normal_points
from dpfast.mechanisms.expectations import law_for
from dpfast.mechanisms.ranged import BoundedRange
from dpfast.mechanisms.score_sums import FewPieces, RecordSums, ScoreSums
from dpfast.mechanisms.usefulness import OF_SELECTION, enough_for_error
from dpfast.prior import Cauchy, PointWeights, edges
from dpfast.psi import Bivariate, Function, Huber, IntegerTable, Psi, RecordTable
from dpfast.random import RandomSource, bit_generator, blocks
from dpfast.streaming import Chunks, Gathered, Values

if TYPE_CHECKING:
    from scipy import LowLevelCallable

# The cost of a piece, and of a knot of sums for few pieces, relative to that of a record of a sort.
_BEND, _KNOT = 4, 2**11


@dataclass(frozen=True, repr=False)
class MEstimator(BoundedRange):
    """Release an M-estimate: grid point theta with weight ``prior(theta) exp(-epsilon / (2 W) |S(theta)|)``.

    ``S(theta) = sum(psi(theta - x))`` over the records; the M-estimate is the point where S crosses 0. W is the largest
    change of S(theta) by one record: the range of psi on the grid. Pure epsilon-differential privacy under one replaced
    record; the number of records is public.

    Parameters
    ----------
    psi : dpfast.psi.Psi, dpfast.psi.Bivariate or callable
        ``dpf.psi.Huber(2.0)``, ``Pinball(0.9)``, ``Table(knots, values)``, ``Logistic(1.0)``, or any bounded,
        nondecreasing function of one float, the difference theta - x in data units, also as a `scipy.LowLevelCallable`
        (`dpfast.psi.Function`). `dpfast.psi.Bivariate` is a function of record and parameter.
    grid : Grid
        Public bounds and granularity of data and release. Use ``prior.grid(step)`` for a parameter without bounds.
    epsilon : float
        Positive; rounded down to a double.
    prior : {"uniform"}, dpfast.prior.Cauchy or dpfast.prior.PointWeights
        Public weights of the grid points.

    Raises
    ------
    TypeError, ValueError
        A wrong parameter, for example a psi that decreases or does not change sign; raised before any data are read.

    Notes
    -----
    Privacy: |S(theta)| changes by at most W with one record, so the exponential mechanism of exponent epsilon / (2 W)
    is epsilon-DP for every prior. Proposition 3 of the paper omits the 2 (and has 2 K for W), which overlooks that the
    normaliser changes as well: in the last example a claim of epsilon = 1 has a loss of 1.951.
    S is an integer: psi is a table of integers (`dpfast.psi`), the same for every record. Magnitudes are capped at
    M + C, M the least magnitude on the grid, C a public number. ``min(|S(theta)|, M + C)`` also changes by at most W,
    and the capped points have less than e**-42 of the probability. (A cap on |S| itself would make the release uniform
    if equal records let S jump over 0.) There is no solver and no tolerance: the law is exact and no float decides it
    (https://dpfast.readthedocs.io/en/latest/proofs/score-laws.html).
    Cost: one pass over the data and two bytes per record, a sort of the few records at which S bends near its root, a
    few words of randomness. If epsilon is so small that S bends very often where theta may be, a release sorts all
    records, 24 bytes per record, and sums psi at about a hundred points. Timing is outside the guarantee: it depends on
    the number of distinct records near the root.
    For a quantile or Huber's estimate without a prior, `InverseSensitivity` is as accurate, and more accurate if many
    records are equal.

    References
    ----------
    Chaudhuri and Hsu 2012, section 5.2; McSherry and Talwar 2007.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> mechanism = dpf.MEstimator(dpf.psi.Huber(10.0), grid=dpf.Grid(0, 100, step=1), epsilon=1.0)
    >>> mechanism
    <MEstimator release of Huber's psi with corner 10, uniform prior, on 101 points from 0.0 to 100.0, step 1.0: \
epsilon = 1 (pure differential privacy) for one record replaced (the number of records is public)>
    >>> ages = np.random.default_rng(0).integers(18, 90, 1000)
    >>> 50 <= mechanism(ages) <= 57
    True

    The published exponent for epsilon = 1 is this mechanism's for epsilon = 2. Two records, psi the sign, 60
    replaced by 0:

    >>> published = dpf.MEstimator(dpf.psi.Pinball(0.5), grid=dpf.Grid(0, 60, step=1), epsilon=2.0)
    >>> before, after = (published.law(x).logpmf(np.arange(61)) for x in ([59, 60], [59, 0]))
    >>> round(float(np.abs(before - after).max()), 3)
    1.951
    """

    psi: Psi | Bivariate
    grid: Grid = field(kw_only=True)
    epsilon: float = field(kw_only=True)
    prior: str | Cauchy | PointWeights = field(kw_only=True, default="uniform")
    _table: IntegerTable | RecordTable = field(init=False, compare=False)
    _spread: int = field(init=False, compare=False)
    _edges: NDArray[np.int64] = field(init=False, compare=False)
    _center: int = field(init=False, compare=False, default=0)
    _width: int = field(init=False, compare=False, default=0)

    def __init__(
        self,
        psi: Psi | Bivariate | Callable[[float], float] | LowLevelCallable,
        *,
        grid: Grid,
        epsilon: float,
        prior: str | Cauchy | PointWeights = "uniform",
    ) -> None:
        check_grid(grid)
        if not isinstance(prior, (str, Cauchy, PointWeights)):
            raise TypeError(f"prior must be 'uniform' or one of dpfast.prior, not {type(prior).__name__}")
        if isinstance(prior, str) and prior != "uniform":
            raise ValueError(f"prior must be 'uniform' or one of dpfast.prior, not {prior!r}")
        if not isinstance(psi, Psi | Bivariate):
            if not (callable(psi) or is_pointer(psi)) or isinstance(psi, type):
                raise TypeError(f"psi must be one of dpfast.psi or a function, not {psi!r}")
            psi = Function(psi)
        epsilon = checks.positive_down("epsilon", epsilon)
        for name, value in {"psi": psi, "grid": grid, "epsilon": epsilon, "prior": prior}.items():
            object.__setattr__(self, name, value)
        self.check_missing()
        released = self.released_grid
        if isinstance(prior, PointWeights):
            prior.check(released)
        center, width = prior.codes(released) if isinstance(prior, Cauchy) else (0, 0)
        points = edges(center, width, released.size - 1) if width else np.empty(0, np.int64)
        table = psi.table(grid)
        known: dict[str, Any] = {"_table": table, "_spread": table.spread(grid.size - 1)}
        for name, value in {**known, "_edges": points, "_center": center, "_width": width}.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        grid = self.released_grid
        prior = f"{self.prior} prior" if isinstance(self.prior, str) else str(self.prior)
        return (
            f"<MEstimator release of {self.psi}, {prior}, on {grid.size} points from {grid.lower!r} to {grid.upper!r}, "
            f"step {grid.step!r}: {self.privacy}>"
        )

    def _traps(self) -> Iterator[Trap]:
        yield from super()._traps()
        if isinstance(self.psi, Huber):
            yield from of_corner(self.psi.k, self.grid.step)

    @property
    def released_grid(self) -> Grid:
        """The grid of theta: `grid`, unless a psi of two arguments has its own."""
        own = self.psi.grid if isinstance(self.psi, Bivariate) else None
        return self.grid if own is None else own

    @property
    def sensitivity(self) -> int:
        """W, the largest change of the sum of psi by one replaced record, in the units of its table."""
        return self._spread

    def reach(self, n: SupportsIndex) -> int:
        """C, the public distance from the least magnitude of S to the cap on magnitudes, for n records.

        ``1 + ceil(2 W / epsilon * (log V + 42))``, V the number of grid points times the largest ratio of prior
        weights; at most 1 + 2 n W, where the cap has no effect.
        """
        size = self.released_grid.size
        away = max(abs(self._center), abs(size - 1 - self._center)) / self._width if self._width else 0.0
        ratio = math.log1p(away**2)
        if isinstance(self.prior, PointWeights):
            ratio = math.log(max(self.prior.weights) / min(self.prior.weights))
        most = 2 / Fraction(self.epsilon) * Fraction(math.log(size) + ratio + TAIL)
        return 1 + math.ceil(self.sensitivity * min(most, Fraction(2 * checks.whole("n", n))))

    def error(self, n: SupportsIndex, *, distribution: Any, confidence: float = 0.95) -> float:
        """Predict the error of a release from n records of an assumed distribution. It reads no data, costs no privacy.

        With probability `confidence` the release is about this close to the theta at which the expected psi crosses 0,
        sampling error included.

        Parameters
        ----------
        n : int
            The number of records, at most 2**26.
        distribution : object
            The assumed distribution of the records, like a frozen distribution of ``scipy.stats``: see the `error` of
            statistics.
        confidence : float
            In (0, 1).

        Returns
        -------
        float
            In data units.

        Notes
        -----
        The law for one evenly spaced sample, shifted by the asymptotic normal error of the M-estimate.

        Examples
        --------
        >>> import dpfast as dpf
        >>> from scipy.stats import norm
        >>> mechanism = dpf.MEstimator(dpf.psi.Huber(20.0), grid=dpf.Grid(0, 100), epsilon=1.0)
        >>> round(mechanism.error(1000, distribution=norm(50, 15)), 1)
        1.0
        """
        n, confidence = checks.whole("n", n, least=1), checks.between("confidence", confidence, 0, 1)
        return float(error_under(self, n, distribution, confidence))

    def _error_under(self, n: int, assumed: Assumed, confidence: float) -> float:
        grid, last = self.released_grid, self.released_grid.size - 1
        codes, mass = self.grid.encode(assumed.nodes[0]), assumed.nodes[1]

        def expected(theta: int, power: int = 1) -> float:
            return float(np.sum(mass * self._table.of_records(codes, theta) ** power))

        def crossing(level: float) -> int:
            return bisect_left(range(last), level, key=expected)

        root = crossing(0.0)
        spread = math.sqrt(max(expected(root, 2) - expected(root) ** 2, 0.0) / n)
        shifts = np.rint(normal_points() * (crossing(spread) - crossing(-spread)) / 2).astype(np.int64)
        cdf = law_for(self.law_of, Gathered(even_records(assumed, n), 1)).cdf
        ends = grid.value(0), grid.value(last)
        averaged: Cdf = lambda k: np.asarray(cdf(k[:, None] - shifts).mean(axis=1))  # noqa: E731
        return error(averaged, last, ends, grid.value(root), confidence)

    def _enough(self) -> float:
        return enough_for_error(OF_SELECTION, self.epsilon)

    def reading(self) -> Values:
        return Values((self.grid,))

    def law_of(self, batch: Gathered) -> ScoreLaw | WeightedScores:
        (values, threads), grid, table = batch, self.grid, self._table
        reach, rate = self.reach(len(values)), Fraction(self.epsilon) / (2 * self.sensitivity)
        prior = {"center": self._center, "width": self._width}
        if isinstance(table, RecordTable):
            sums, released = RecordSums(grid.encode(values), table), self.released_grid
            drawn = FewPieces(sums.at, reach=reach, rate=rate, last=released.size - 1, **prior)
            cut: dict[str, Any] = {"gap": table.parameter_gap, "edges": self._edges, **prior}
            return self._weighted(RecordScores(drawn, rate=rate, grid=released, **cut))

        def pieces() -> _scores.Pieces:
            return _scores.Pieces(
                values,
                table.knots,
                table.values,
                table.slopes,
                reach=reach,
                rate=rate,
                last=grid.size - 1,
                first=grid.first,
                **grid.kernel,
                edges=self._edges,
                center=self._center,
                width=self._width,
                workers=threads,
            )

        def few() -> FewPieces:
            sums = ScoreSums(grid.encode(values), table)
            return FewPieces(sums.at, reach=reach, rate=rate, last=grid.size - 1, **prior)

        bends = min(len(values), reach // self.sensitivity) * table.knots.size  # about
        many = _BEND * bends > len(values) + _KNOT * table.knots.size
        return self._weighted(ScoreLaw(pieces, grid=grid, **prior, few=few if many else None))

    def _weighted(self, law: ScoreLaw) -> ScoreLaw | WeightedScores:
        return WeightedScores(law, self.prior.weights) if isinstance(self.prior, PointWeights) else law


class ScoreLaw(ScalarLaw):
    """P(k) proportional to ``w(k) exp(-rate min(|S(k)|, M + C))``, S piecewise linear, M its least magnitude.

    Parameters
    ----------
    pieces : callable
        Returns the pieces, a `dpfast._kernels._scores.Pieces`.
    grid : Grid
    center, width : int
        w(k) is ``1 / (width**2 + (k - center)**2)``, or 1 if width is 0.
    few : callable, optional
        Returns a `FewPieces` of the same law, for a single draw if there are very many pieces.

    Notes
    -----
    Drawn by rejection (https://dpfast.readthedocs.io/en/latest/proofs/score-laws.html): draw a piece of 0..last on
    which the weight varies by a factor of at most 4 e, draw a uniform point of it, and accept the point with
    probability weight / largest weight of the piece.
    """

    def __init__(
        self,
        pieces: Callable[[], _scores.Pieces],
        *,
        grid: Grid,
        center: int = 0,
        width: int = 0,
        few: Callable[[], FewPieces] | None = None,
    ) -> None:
        self.grid, self.center, self.width = grid, center, width
        self.support = (0, grid.size - 1)
        self._make, self._few = pieces, few

    @cached_property
    def _pieces(self) -> _scores.Pieces:
        return self._make()

    @cached_property
    def _parts(self) -> _Parts:
        return _Parts.of(self._pieces, self.center, self.width)

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = containers.integers("k", k)
        inside = np.clip(codes, *self.support)
        return np.where(codes == inside, self._parts.log_weight(inside) - self._parts.log_total, -np.inf)

    def cdf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = containers.integers("k", k)
        below = self._parts.below(np.clip(codes, *self.support))
        return np.select([codes < 0, codes >= self.support[1]], [0.0, 1.0], np.clip(below, 0.0, 1.0))

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        if size is None and self._few:
            few, source = self._few(), bit_generator(rng)
            with in_one_piece(source):
                return few.draw(source)
        shape = checks.shape(size)
        out = np.empty(math.prod(shape), np.int64)
        for source, block in [(bit_generator(rng), out)] if size is None else blocks(rng, out):
            self._pieces.fill(source, block)
        return int(out[0]) if size is None else out.reshape(shape)

    def value(self, k: ArrayLike) -> Any:
        values = self.grid.decode(k)
        return values if values.ndim else float(values)


class RecordScores(ScoreLaw):
    """P(k) proportional to ``w(k) exp(-rate min(|S(k)|, M + C))``, S the sum of a psi of two arguments.

    Parameters
    ----------
    few : FewPieces
        Draws from the law.
    gap : int
        S is linear between its multiples.
    rate : Fraction
    edges : ndarray of int64
        The points between which the weight w varies by a factor of at most 4.
    grid, center, width
        See `ScoreLaw`.
    """

    def __init__(
        self,
        few: FewPieces,
        *,
        gap: int,
        rate: Fraction,
        edges: NDArray[np.int64],
        grid: Grid,
        center: int = 0,
        width: int = 0,
    ) -> None:
        self.grid, self.center, self.width = grid, center, width
        self.support = (0, grid.size - 1)
        self._drawn, self._gap, self._rate, self._edges = few, gap, rate, edges

    @cached_property
    def _parts(self) -> _Parts:
        pieces = list(self._drawn.linear(self._gap, self._edges.tolist()))
        near, lengths, sides = np.array([piece[:3] for piece in pieces], np.int64).T
        falls = np.array([float(self._rate * piece[3]) for piece in pieces])
        steps = [float(self._rate * (piece[4] - piece[3])) / max(piece[1] - 1, 1) for piece in pieces]
        lows = np.where(sides > 0, near, near - lengths + 1)
        return _Parts(lows, lengths, near, sides, falls, np.array(steps), self.center, self.width)

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        shape, source = checks.shape(size), bit_generator(rng)
        with in_one_piece(source):
            drawn = [self._drawn.draw(source) for _ in range(math.prod(shape))]
        return drawn[0] if size is None else np.array(drawn, np.int64).reshape(shape)


class WeightedScores(ScalarLaw):
    """A law times positive integer weights of its points.

    Parameters
    ----------
    law : ScoreLaw
    weights : sequence of int

    Notes
    -----
    Drawn by rejection: a point of the law is kept if a uniform integer below the largest weight is below its own.
    """

    def __init__(self, law: ScoreLaw, weights: Sequence[int]) -> None:
        self._law, self._weights = law, np.array(weights, np.int64)
        self.support = law.support

    @cached_property
    def _logarithms(self) -> NDArray[np.float64]:
        unscaled = self._law.logpmf(np.arange(len(self._weights))) + np.log(self._weights)
        most = unscaled.max()
        return np.asarray(unscaled - most - math.log(math.fsum(np.exp(unscaled - most))))

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = containers.integers("k", k)
        inside = np.clip(codes, *self.support)
        return np.where(codes == inside, self._logarithms[inside], -np.inf)

    def cdf(self, k: ArrayLike) -> NDArray[np.float64]:
        codes = containers.integers("k", k)
        below = np.append(np.minimum(np.cumsum(np.exp(self._logarithms))[:-1], 1.0), 1.0)
        return np.where(codes < 0, 0.0, below[np.clip(codes, *self.support)])

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        source, shape = bit_generator(rng), checks.shape(size)
        kept, wanted = np.empty(0, np.int64), math.prod(shape)
        while len(kept) < wanted:
            left = wanted - len(kept)
            points = np.array([self._law.sample(rng=source)] if left == 1 else self._law.sample((left,), rng=source))
            coins = np.empty(left, np.uint64)
            _samplers.fill_uniform(source, int(self._weights.max()) - 1, coins)
            kept = np.concatenate([kept, points[coins < self._weights[points].astype(np.uint64)]])
        return int(kept[0]) if size is None else kept.reshape(shape)

    def value(self, k: ArrayLike) -> Any:
        return self._law.value(k)


@dataclass(frozen=True, eq=False)
class _Parts:
    """The pieces of a law from left to right, in doubles. Weights are in units of exp(-rate M) / width**2."""

    lows: NDArray[np.int64]
    lengths: NDArray[np.int64]
    near: NDArray[np.int64]
    sides: NDArray[np.int64]
    falls: NDArray[np.float64]
    slopes: NDArray[np.float64]
    center: int
    width: int

    @classmethod
    def of(cls, pieces: _scores.Pieces, center: int, width: int) -> _Parts:
        near, lengths, sides, falls, slopes = pieces.arrays()
        lows = np.where(sides > 0, near, near - lengths + 1)
        order = np.argsort(lows)
        return cls(lows[order], lengths[order], near[order], sides[order], falls[order], slopes[order], center, width)

    def log_weight(self, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        part = np.searchsorted(self.lows, codes, side="right") - 1
        away = np.abs(codes - self.near[part])
        return np.asarray(self._log_prior(codes) - self.falls[part] - self.slopes[part] * away)

    def _log_prior(self, codes: NDArray[Any]) -> NDArray[np.float64]:
        return -np.log1p(((codes - self.center) / self.width) ** 2) if self.width else np.zeros(np.shape(codes))

    def _masses(self, part: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weight of the first `lengths` points of each part, counted from its near end."""
        slopes, top = self.slopes[part], np.exp(-self.falls[part])
        if not self.width:
            with np.errstate(invalid="ignore"):
                return top * np.where(slopes > 0, np.expm1(-slopes * lengths) / np.expm1(-slopes), lengths)
        several, which = np.unique(lengths, return_inverse=True)
        nodes, weights = _sum_rule(several)
        steps = nodes[which]
        points = (self.near[part] - self.center)[:, None] + self.sides[part][:, None] * steps
        terms = np.exp(-slopes[:, None] * steps) / (1 + (points / self.width) ** 2)
        return np.asarray(top * (weights[which] * terms).sum(axis=1))

    @cached_property
    def masses(self) -> NDArray[np.float64]:
        return self._masses(np.arange(self.lows.size), self.lengths)

    @cached_property
    def log_total(self) -> float:
        return math.log(math.fsum(self.masses))

    def below(self, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the probability of all points up to the codes."""
        flat = codes.reshape(-1)
        part = np.searchsorted(self.lows, flat, side="right") - 1
        rising, inside = self.sides[part] > 0, flat - self.lows[part] + 1
        near_end = self._masses(part, np.where(rising, inside, self.lengths[part] - inside))
        before = np.concatenate([[0.0], np.cumsum(self.masses)])
        weight = np.where(rising, before[part] + near_end, before[part + 1] - near_end)
        return np.asarray(weight / math.exp(self.log_total)).reshape(codes.shape)


_NODES = 12


def _sum_rule(lengths: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights, a row for each length N: sum of f(0), ..., f(N - 1) = weights @ f(nodes), degree f < 24.

    The Gauss rule of the discrete uniform measure, from the recurrence of its orthogonal polynomials (Gram's). For N <=
    12 it is the sum itself; as N goes to infinity it becomes Gauss-Legendre quadrature.
    """
    n = lengths.astype(np.float64)[:, None]
    k = np.arange(1, _NODES)
    off = k / 2 * np.sqrt(np.maximum(1 - (k / np.maximum(n, 1)) ** 2, 0) / (4 * k * k - 1))
    matrices = np.zeros((lengths.size, _NODES, _NODES))
    matrices[:, k, k - 1] = off
    places, vectors = np.linalg.eigh(matrices)
    return places * n + (n - 1) / 2, n * vectors[:, 0, :] ** 2


def m_estimate(
    x: Records | Chunks,
    psi: Psi | Bivariate | Callable[[float], float] | LowLevelCallable,
    *,
    epsilon: Exact,
    bounds: tuple[float, float] | None = None,
    grid: Grid | None = None,
    step: float | None = None,
    prior: str | Cauchy | PointWeights = "uniform",
    missing: float | str | None = None,
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> float:
    """Release the M-estimate of x, where ``sum(psi(theta - x))`` crosses 0, epsilon-differentially private.

    Neighbours: one replaced record.

    Parameters
    ----------
    x : array_like of shape (n,)
        Private data: floats, integers or booleans of any stride, never modified. NaN and None count as the lower bound,
        with `step` as the center of the prior, unless `missing` says otherwise. n >= 1 is public. Also `dpfast.Chunks`,
        with all codes kept in memory.
    psi : dpfast.psi.Psi, dpfast.psi.Bivariate or callable
        See `MEstimator`.
    epsilon : float
        Positive.
    bounds : tuple of two floats
        Public bounds in data units; short for ``grid=Grid(*bounds)``, with step 1 if x has an integer or boolean dtype.
    grid : Grid
        Instead of `bounds`.
    step : float
        Instead of both, for estimation without bounds under a Cauchy prior. theta and the clamped records are among the
        2**52 - 1 multiples of `step` (a power of two) nearest to the prior's center. A step of 1e-6 reaches 2e9 on each
        side, and less than ``width / (2**51 step)`` of the prior is beyond.
    prior : {"uniform"}, dpfast.prior.Cauchy or dpfast.prior.PointWeights
    missing : float, "lower" or "half", optional
        See `dpfast.median`; not "drop", as the number of records is public.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Threads that read the data.
    explain : bool or callable
        See `dpfast.median`.

    Returns
    -------
    float
        A point of the grid.

    Raises
    ------
    TypeError
        Not exactly one of `bounds`, `grid` and `step`; `step` without a Cauchy prior; data that are not numbers.
    ValueError
        A parameter out of range; a psi that decreases; x empty or not one-dimensional.

    Notes
    -----
    Privacy, law and cost: see `MEstimator` and https://dpfast.readthedocs.io/en/latest/proofs/score-laws.html.

    References
    ----------
    Chaudhuri and Hsu 2012, section 5.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> pay = np.random.default_rng(0).lognormal(10.5, 0.6, 100_000)
    >>> 37_500 < dpf.m_estimate(pay, dpf.psi.Huber(20_000), bounds=(0, 1_000_000), epsilon=1.0) < 38_500
    True
    >>> guess = dpf.prior.Cauchy(0, 1000)
    >>> 39_000 < dpf.m_estimate(pay, dpf.psi.Logistic(20_000), step=0.5, prior=guess, epsilon=1.0) < 41_000
    True
    """
    if sum(option is not None for option in (bounds, grid, step)) != 1:
        raise TypeError("give one of bounds=(lower, upper), grid=Grid(...), or step=... with a Cauchy prior")
    if step is None:
        grid = grid_for(x, bounds, grid, missing)
    elif isinstance(prior, Cauchy):
        grid = prior.grid(step).with_missing(missing)
    else:
        raise TypeError("step=... without bounds needs prior=dpf.prior.Cauchy(center, width)")
    mechanism = MEstimator(psi, grid=grid, epsilon=checks.positive_down("epsilon", epsilon), prior=prior)
    value: float = explained(mechanism, explain, x)(x, rng=rng, workers=workers)
    return value
