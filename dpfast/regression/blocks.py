"""Linear regression without bounds of the labels: fits of disjoint blocks of records, released by nested boxes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast.core import checks
from dpfast.core.grid import FloatGrid, Points, check_points
from dpfast.core.traps import Trap
from dpfast.domains import Ball
from dpfast.errors import UtilityWarning
from dpfast.laws import Boxes, score_cap
from dpfast.mechanisms import BoundedRange
from dpfast.mechanisms.plan import Plan
from dpfast.regression.fit import Fit
from dpfast.statistics import Median
from dpfast.streaming import Chunks, Labelled, known_records

Values = NDArray[np.float64]

_LEAST_EIGENVALUE = 1e-9  # of the second moments of a block, relative to the greatest
_MOST_LABEL = 2.0**400  # magnitude, so that sums of products are doubles
_GRID = FloatGrid(16, resolution=2.0**-40, lower=-(2.0**60), upper=2.0**60)
_NEAR = 0.1  # of a coefficient: within this relative distance of it a release is useful
_SURE = 10.0  # negative logarithm of the probability of a release that is not


@dataclass(frozen=True, repr=False)
class BlockFits(BoundedRange):
    """Release coefficients near the median of those of least squares in disjoint blocks of the records.

    Pure epsilon-differential privacy under one replaced record, a row and its label, all others in the same places; the
    number of records is public. Labels need no bounds. A release has the shape (d + 1,), (d,) without an intercept: the
    coefficients of (x - center) / radius, and the constant.

    Parameters
    ----------
    domain : dpfast.domains.Ball
        The public domain of the rows, in data units.
    epsilon : float
        Positive; rounded down to a double.
    intercept : bool
        False: the fits go through the center of the rows, with the label 0 there.
    blocks : int or "auto"
        The number of blocks; "auto": that of least expected error for normal records, from public numbers.
    coefficient_grid : FloatGrid or Grid
        Of a release. Default: floats of 16 significant bits up to 1.2e18, evenly spaced below 9e-13.

    Raises
    ------
    TypeError, ValueError
        From the constructor: a wrong parameter. Few records raise no error: see `useful`.

    Notes
    -----
    A row outside of its ball is moved into it, a row with NaN or an infinity is the center, and a missing label 0.
    Privacy: record i is in block i modulo their number, so a replaced record changes one of the fits, whatever floats
    make of it. A point's score is the greatest, over the coordinates, of the number of fits to replace so that their
    median may be there: the approximate Tukey depth of Amin et al., counted from the middle. The release is a point
    with probability proportional to ``exp(-epsilon / 2 * score)``
    (https://dpfast.readthedocs.io/en/latest/proofs/block-fits.html).
    Cost: one pass over X, with d**2 products for each row; all records are needed at once.

    References
    ----------
    Amin, Joseph, Ribero and Vassilvitskii 2022, "Easy differentially private linear regression".

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> from dpfast.regression import BlockFits
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (50_000, 2))
    >>> y = 1e6 * (X @ [1.0, -2.0] + rng.normal(size=50_000))
    >>> mechanism = BlockFits(domain=dpf.domains.Ball(1.5), epsilon=1.0)
    >>> fit = mechanism.fit(mechanism((X, y)), 50_000)
    >>> bool(np.abs(fit.coefficients / 1e6 - [1, -2]).max() < 0.2)
    True
    """

    domain: Ball
    epsilon: float = field(kw_only=True)
    intercept: bool = field(kw_only=True, default=True)
    blocks: int | str = field(kw_only=True, default="auto")
    coefficient_grid: Points = field(kw_only=True, default=_GRID)

    counts_first: ClassVar[str] = "blocks are made by position, which requires all records in their order: use Chunks"
    ordered: ClassVar[bool] = True  # blocks are made by position

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Ball):
            raise TypeError(f"domain must be a dpfast.domains.Ball, not {type(self.domain).__name__}")
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        object.__setattr__(self, "intercept", checks.flag("intercept", self.intercept))
        if isinstance(self.blocks, str):
            checks.choice("blocks", self.blocks, ("auto",))
        else:
            object.__setattr__(self, "blocks", checks.whole("blocks", self.blocks, least=1))
        check_points(self.coefficient_grid)

    def __repr__(self) -> str:
        number = "" if self.blocks == "auto" else f" {self.blocks}"
        constant = "" if self.intercept else ", no intercept"
        return (
            f"<BlockFits release of the median of fits of{number} blocks, of rows in a {self.domain}{constant}: "
            f"{self.privacy}>"
        )

    @property
    def dimensions(self) -> int:
        return 2

    def _explained_missing(self) -> str:
        return "A row with NaN counts as the center, and a missing label as 0"

    def numbers(self, d: SupportsIndex) -> int:
        """Return the number of coefficients for rows of d columns, with the constant."""
        return checks.whole("d", d) + self.intercept

    def block_count(self, n: SupportsIndex, d: SupportsIndex) -> int:
        """Return the number of blocks for n records of d columns. Public."""
        n, d = checks.whole("n", n, least=1), checks.whole("d", d, least=1)
        if self.blocks != "auto":
            return min(int(self.blocks), n)
        p = self.numbers(d)
        return _best_count(n, p, self.epsilon, self._fewest(d), max(n // (p + 2), 1))

    def useful(self, n: SupportsIndex, d: SupportsIndex) -> bool:
        """Whether a release is near the coefficients, by public numbers: there are enough blocks for the points beyond,
        and enough records in each for a fit.

        For coefficients that are not small in comparison with their errors in a block.
        """
        n, d = checks.whole("n", n, least=1), checks.whole("d", d, least=1)
        count = self.block_count(n, d)
        return count >= self._fewest(d) and _variance(n, self.numbers(d), self.epsilon, count) < math.inf

    def _fewest(self, d: int) -> int:
        """Return the least number of blocks of which the middle half outweighs all other points."""
        grid = self.coefficient_grid
        near = _NEAR * 2.0**grid.digits if isinstance(grid, FloatGrid) else 1.0
        beyond = self.numbers(d) * math.log(grid.size / near) + _SURE
        return 4 * math.ceil(2 * beyond / self.epsilon)

    def traps_for(self, n: SupportsIndex, d: SupportsIndex) -> Iterator[Trap]:
        """Yield the trap of too few records for d columns."""
        n, d = checks.whole("n", n, least=1), checks.whole("d", d, least=1)
        if not self.useful(n, d):
            yield Trap(
                UtilityWarning,
                f"{n:,} records are too few for fits of blocks of {d} column{'s' * (d > 1)} at epsilon = "
                f"{self.epsilon:.3g}: a release may be far from all of them; give label_bound, or use more records or "
                f"a larger epsilon",
            )

    def error(self, n: SupportsIndex, d: SupportsIndex, *, deviation: float) -> float:
        """Return the expected deviation of the error of a coefficient of standard normal columns, see `useful`.

        Parameters
        ----------
        n, d : int
            The numbers of records and of columns.
        deviation : float
            The assumed deviation of the residuals.
        """
        n, d = checks.whole("n", n, least=1), checks.whole("d", d, least=1)
        variance = _variance(n, self.numbers(d), self.epsilon, self.block_count(n, d))
        return checks.positive("deviation", deviation) * math.sqrt(variance / n)

    def _check_columns(self, d: int) -> None:
        self.domain.check_columns(d)

    def values_of(self, x: Any) -> Labelled:
        """Return the rows and labels; of `Chunks` together, because blocks are made by position."""
        pieces = [Labelled.of(piece) for piece in (x if isinstance(x, Chunks) else (x,))]
        if not pieces:
            raise ValueError("X has no pieces: the first piece gives the number of columns")
        records = pieces[0]
        if len(pieces) > 1:
            records = Labelled(
                np.concatenate([piece.rows for piece in pieces]), np.concatenate([piece.labels for piece in pieces])
            )
        self._check_columns(records.columns)
        return records

    def _foresee(self, x: Any, threads: int) -> tuple[Plan | None, Any]:
        """Return a plan that warns by the number of columns, too; code of others is not called before the charge."""
        plan, x = super()._foresee(x, threads)
        pair = type(x) is tuple and all(known_records(part) is not None for part in x)
        if plan is None and not pair:
            return None, x
        records = self.values_of(x)
        return self.plan_for(records), records

    def plan_for(self, values: Labelled) -> Plan:
        return _Blocks(self, checks.records(len(values)), values.columns)

    def _make_plan(self, n: int | None) -> Plan:
        return super()._make_plan(n) if n is None else _Blocks(self, checks.records(n))

    def law_of(self, summary: Values) -> Boxes:
        """Return the exact law of the release, given the fits of the blocks, a row each. PRIVATE."""
        count, p = summary.shape
        grid, median = self.coefficient_grid.with_missing("lower"), Median()  # fits have no NaN
        levels = min(score_cap(self.epsilon, p * math.log(grid.size)), median.breakdown(count))
        lower, upper = np.zeros((levels + 1, p), np.int64), np.full((levels + 1, p), grid.size - 1)
        for j, column in enumerate(np.ascontiguousarray(summary.T)):
            read = median.reading(grid, lambda _: levels).of(column)
            lower[:-1, j], upper[:-1, j] = median.attack_range(read)
        return Boxes(lower, upper, epsilon=self.epsilon, decode=grid.decode)

    def fit(self, release: Any, n: SupportsIndex) -> Fit:
        """Return the fit of a release, in data units: post-processing, without cost of privacy. Its errors are NaN."""
        numbers = np.asarray(release, dtype=np.float64)
        d = len(numbers) - self.intercept
        slopes = numbers[:d] / self.domain.radius
        constant = float(numbers[d]) if self.intercept else 0.0
        constant -= float(self.domain.center_of(d) @ slopes)
        return Fit(slopes, constant, np.full(d, math.nan), math.nan, self.privacy, n=checks.whole("n", n))


class _Blocks(Plan):
    """A draw from the fits of blocks of a public number of records."""

    mechanism: BlockFits

    def __init__(self, mechanism: BlockFits, n: int, d: int = 1) -> None:
        super().__init__(mechanism, n)
        self.traps = tuple(mechanism.traps_for(n, d))

    def read(self, values: Labelled, threads: int = 1) -> tuple[Plan, Values]:
        """Return the plan and the fits. PRIVATE."""
        mechanism, n = self.mechanism, len(values)
        return self, block_fits(values, mechanism.domain, mechanism.block_count(n, values.columns), mechanism.intercept)


def block_fits(records: Labelled, domain: Ball, count: int, intercept: bool) -> Values:
    """Return the fit of least squares of each of `count` blocks, the records i, i + count, ...: an array of a row each.

    A fit is a function of the records of its block alone. Rows are in units of the radius, around the center.
    """
    n, d = records.rows.shape
    p = d + intercept
    products, scores = np.zeros((count, p, p)), np.zeros((count, p))
    with np.errstate(all="ignore"):  # labels may be NaN, infinite, huge or tiny, whatever a caller raises for
        labels = np.clip(np.nan_to_num(records.labels.astype(np.float64)), -_MOST_LABEL, _MOST_LABEL)
        for start in range(0, n, count):  # one record of each block
            codes = domain.encode(records.rows[start : start + count]) * (domain.step / domain.radius)
            rows = np.column_stack([codes, np.ones(len(codes))]) if intercept else codes
            products[: len(rows)] += rows[:, :, None] * rows[:, None, :]
            scores[: len(rows)] += rows * labels[start : start + count, None]
        values, vectors = np.linalg.eigh(products)
        values = np.maximum(values, np.maximum(values[:, -1:], 1.0) * _LEAST_EIGENVALUE)
        fits = np.einsum("bij,bj->bi", vectors, np.einsum("bij,bi->bj", vectors, scores) / values)
    return np.asarray(np.nan_to_num(fits))


def _variance(n: int, p: int, epsilon: float, count: int) -> float:
    """Return n times the expected variance of a coefficient of unit rows, for unit residuals; infinite for few records.

    That of the median of normal fits, and of a uniform point of a box of 2 (p + 1) / epsilon ranks on both sides.
    """
    left = n / count - p - 1
    if left <= 0:
        return math.inf
    ranks = 2 * (p + 1) / epsilon
    return math.pi / 2 * (1 + 4 / 3 * ranks * ranks / count) * (1 + (p + 1) / left)


@lru_cache(maxsize=256)
def _best_count(n: int, p: int, epsilon: float, least: int, most: int) -> int:
    """Return the number of blocks of the least expected variance, at least `least` of at most `most`."""
    counts = {max(round(most / 1.1**i), min(least, most)) for i in range(80)}
    return min(sorted(counts), key=lambda count: (_variance(n, p, epsilon, count), -count))
