"""Marginals of a table in one call: private bins, chosen pairs, and their noisy counts, under one budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _marginals
from dpfast.choosing import Explain, split, tell
from dpfast.core import checks, containers
from dpfast.core.grid import FloatGrid, Points
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.rounding import down, root_up, up
from dpfast.core.spending import spending
from dpfast.core.traps import Trap, of_delta, of_epsilon, warn
from dpfast.core.types import Exact
from dpfast.densities.adaptive import MODEL_CELLS, ROUNDS, SELECTION, SINGLE, Rounds, penalty
from dpfast.densities.budgets import BudgetShare
from dpfast.densities.columns import (
    Bins,
    Codes,
    Column,
    DataColumns,
    columns_of,
    resolved_columns,
    traps_of_columns,
)
from dpfast.densities.consistency import Names
from dpfast.densities.junctions import Junctions
from dpfast.densities.marginals import (
    CHANGED,
    MOST_CELLS,
    NoisyMarginals,
    checked_marginals,
    counted,
    encoded,
    gaussian_mu,
)
from dpfast.densities.released_marginals import Marginals
from dpfast.densities.trees import Components
from dpfast.laws import Independent, RoundedGaussian
from dpfast.mechanisms import Quantiles, Selection
from dpfast.random import RandomSource, bit_generator

_QUANTILES = Fraction(1, 10)  # the share of epsilon for private bins
_SINGLE, _SCORES = Fraction(3, 20), Fraction(1, 10)  # the shares of the rest for single columns and for the tree
_CELLS_A_PASS = 2**20
_NOISE = math.sqrt(2 / math.pi) / 3  # in a score, times the standard deviation in each cell
_FEWEST, _MOST = 8, 64  # bins by default
_MOST_ADAPTIVE = 32  # columns, for rounds by default: with more they take minutes
_LEAST_PRODUCT = 5000  # n epsilon from which rounds are measured to be better: docs/results/tables.md
# Records beyond an outermost quantile among floats, times epsilon, and more for each quantile: as many replacements as
# move the outermost one away let all others leave ties, between which there are up to e**5 times as many floats.
_LEAST_TAIL, _TAIL, _TAIL_OF_EACH = 50.0, 20.0, 10.0


def marginals(
    X: Any,
    columns: Any,
    pairs: str | Sequence[Sequence[Any]] = "auto",
    *,
    epsilon: Exact,
    delta: Exact = 0.0,
    neighbors: str = "replace-one",
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> Marginals:
    """Release low-order marginals of a table under one budget, (epsilon, delta)-differentially private.

    Parameters
    ----------
    X : data frame, table of Arrow, mapping, structured array, or array_like of shape (n, d)
        Private data, a record in each row.
    columns : mapping from names to domains
        Public. For each column: a list of categories, or `Categories`, which two numbers need; a tuple of bounds, a
        `Grid` or `Bins` for numbers; ``Bins()`` or a `FloatGrid` for numbers without bounds, whose bins are quantiles
        that a tenth of epsilon pays for. Of rows, the columns in their order. Other columns of X are not read.
    pairs : {"auto", "adaptive", "tree", "all"} or sequence of tuples of names
        The marginals: these tuples, of one or more columns; all pairs; each column and the pairs of a tree, which a
        tenth of the budget selects, those with a distance from independence that is large relative to the noise; or,
        for "adaptive", each column and pairs that are selected in rounds, where a model of the earlier counts is far
        from the records. "auto" is "adaptive" for 3 to 32 columns if n epsilon is at least 5000 or n is
        private, else "tree".
    epsilon : float
        Positive, for everything together.
    delta : float
        In [0, 1). Positive: with Gaussian noise where that is less.
    neighbors : {"replace-one", "add-remove"}
        With "add-remove", the number of records is private; all bins must then be given.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Threads that count.
    explain : bool or callable
        See `dpfast.median`.

    Returns
    -------
    Marginals

    Raises
    ------
    TypeError, ValueError
        For a wrong parameter, a missing column, columns of a wrong type, or no records where n is public.

    Notes
    -----
    Privacy: `NoisyMarginals` for the counts; the tree follows from noisy scores or from `Selection`, as do the rounds;
    the parts compose exactly (https://dpfast.readthedocs.io/en/latest/proofs/marginals.html,
    https://dpfast.readthedocs.io/en/latest/proofs/cliques.html). The default number of bins is about
    ``2 (n epsilon / d)**(1/3)``, from 8 to 64, and 16 if n is private.
    Cost: two bytes for each value; a pass over two columns for each pair. The rounds, at most four for each column,
    have models of at most 2**18 cells.

    References
    ----------
    McKenna, Mullins, Sheldon and Miklau 2022, "AIM: an adaptive and iterative mechanism for differentially private
    synthetic data"; McKenna, Miklau and Sheldon 2021, "Winning the NIST contest: a scalable and general approach to
    differentially private synthetic data"; Chow and Liu 1968.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> rng = np.random.default_rng(0)
    >>> age = rng.integers(18, 90, 10_000)
    >>> table = {"age": age, "retired": np.where(age > 65, "yes", "no"), "coin": rng.integers(0, 2, 10_000)}
    >>> domains = {"age": (0, 100), "retired": ["yes", "no"], "coin": dpf.Categories([0, 1])}
    >>> released = dpf.marginals(table, domains, epsilon=1.0)
    >>> ("age", "retired") in released.counts
    True
    """
    return release_marginals(X, columns, pairs, epsilon, delta, neighbors, rng, workers, explain, sampled=False)


def release_marginals(
    X: Any,
    columns: Any,
    pairs: str | Sequence[Sequence[Any]],
    epsilon: Exact,
    delta: Exact,
    neighbors: str,
    rng: RandomSource,
    workers: int,
    explain: Explain,
    *,
    sampled: bool,
) -> Marginals:
    """Release marginals as `marginals` does; if they are to be sampled, raise a ValueError before the charge for those
    with too large a junction tree.
    """
    epsilon, delta = checks.positive_down("epsilon", epsilon), checks.delta_down(delta)
    checks.choice("neighbors", neighbors, tuple(CHANGED))
    threads = checks.threads(workers)
    bit_generator(rng)  # reject invalid arguments before reading the data
    warn(of_epsilon(epsilon))
    warn(of_delta(delta))
    domains = columns_of(columns)
    names = [name for name, _ in domains]
    chosen = marginals_of(pairs, names)
    private = [name for name, column in domains if isinstance(column, Bins) and column.private]
    if private and neighbors != "replace-one":
        raise ValueError(f"column {private[0]!r} must have bounds, a Grid or edges with neighbors='add-remove'")
    table = DataColumns(X, names)
    if neighbors == "replace-one":
        checks.records(table.n)
    domains = resolved_columns(domains, table, _bins(table.n, epsilon, len(names), neighbors))
    bins_epsilon = Fraction(epsilon) * _QUANTILES if private else Fraction()
    rest = down(Fraction(epsilon) - bins_epsilon)
    m = len(chosen) if chosen is not None else 2 * len(names) - 1
    mu = gaussian_mu(rest, delta, m, neighbors)
    budget = BudgetShare(neighbors, *((Fraction(), Fraction(mu) ** 2) if mu else (Fraction(rest), Fraction())))
    product = table.n * epsilon if neighbors == "replace-one" else math.inf
    wanted = _Wanted(domains, budget, way_of(pairs, len(names), product), chosen, rng, threads)
    wanted.check(sampled)
    warn(traps_of_columns(domains))
    privacy = Privacy(epsilon, delta if mu else 0.0, neighbors)
    each = down(bins_epsilon / len(private)) if private else 0.0
    for _, column in domains:
        if isinstance(column, Bins) and column.private and column.grid is not None:
            warn(_traps_of(_levels(column, table.n, each), column.grid, table.n, each))
    if explain is not False:
        tell(_explanation(wanted, privacy, float(bins_epsilon), private), explain)
    parts = [*([("pure", up(bins_epsilon), 1)] if private else []), *wanted.parts]
    with spending(PrivacyProfile(privacy, tuple(parts), failure=0.0), label=f"marginals of {len(names)} columns"):
        if private:
            domains = _with_private_bins(domains, table, each, rng)
            wanted = replace(wanted, columns=domains)
        return replace(wanted.release(encoded(domains, X)), privacy=privacy)


def _explanation(wanted: _Wanted, privacy: Privacy, bins: float, private: Sequence[Any]) -> str:
    """Return the text about the marginals, the parts of the budget, and the noise on each count."""
    budget = wanted.budget
    what = _WHAT[wanted.way] if wanted.pairs is None else f"{len(wanted.pairs)} marginals"
    lines = [f"Release of the counts of marginals of {len(wanted.columns)} columns, {what}: {privacy}"]
    if private:
        edges = f"quantiles, the edges of the bins of {len(private)} columns"
        lines.append(split({edges: bins, "counts": privacy.epsilon - bins}))
    if wanted.pairs is None:
        lines.append(split(_SHARES[wanted.way], f"the {'mu squared' if budget.mu_squared else 'epsilon'} of counts"))
    if wanted.way == "adaptive":
        rounds = ROUNDS * len(wanted.columns)
        lines.append(
            f"At most {rounds} rounds, in models of at most {MODEL_CELLS:,} cells. By default they take the place of a "
            f"tree for 3 to {_MOST_ADAPTIVE} columns and n epsilon from {_LEAST_PRODUCT:,} on, where synthetic records "
            "are closer to the data"
        )
    counts = wanted.pairs or (wanted.singles[:1] if wanted.way == "adaptive" else wanted.singles[1:])
    noises = NoisyMarginals(_largest(wanted.columns), counts, **wanted.last.options).noises
    kind = "Gaussian" if budget.mu_squared else "discrete Laplace"
    when = " in the first round" if wanted.way == "adaptive" else ""
    lines.append(f"Expected error: {kind} noise of standard deviation {noises[0].deviation:.3g} on each count{when}")
    return "\n".join(f"{line}." for line in lines)


_WHAT = {"tree": "columns and pairs of a tree", "adaptive": "columns and pairs selected in rounds"}
_SHARES = {
    "tree": {"columns": _SINGLE, "the choice of the tree": _SCORES, "its pairs": 1 - _SINGLE - _SCORES},
    "adaptive": {
        "columns": SINGLE,
        "selections": (1 - SINGLE) * SELECTION,
        "selected columns and pairs": (1 - SINGLE) * (1 - SELECTION),
    },
}


def way_of(pairs: Any, d: int, product: float = math.inf) -> str:
    """Return how marginals of d columns are selected, by n epsilon where "auto" chooses: "adaptive", "tree", or "given"
    for those that are not. Public.
    """
    if not isinstance(pairs, str):
        return "given"
    checks.choice("pairs", pairs, ("auto", "adaptive", "tree", "all"))
    if d < 3 or pairs == "all":
        return "given"
    if pairs != "auto":
        return pairs
    return "adaptive" if d <= _MOST_ADAPTIVE and product >= _LEAST_PRODUCT else "tree"


def marginals_of(pairs: Any, names: Sequence[Any]) -> tuple[Names, ...] | None:
    """Return the marginals that are meant by the argument `pairs`; None for those to be selected."""
    if way_of(pairs, len(names)) != "given":
        return None
    if isinstance(pairs, str):
        return tuple(combinations(names, 2)) or ((names[0],),)
    return checked_marginals(pairs, names)


def _bins(n: int, epsilon: float, d: int, neighbors: str) -> int:
    """Return the default number of bins of a numeric column. Public."""
    if neighbors == "add-remove":
        return 16
    return int(min(max(round(2 * (min(n * epsilon, 1e9) / d) ** (1 / 3)), _FEWEST), _MOST))


def _largest(columns: Sequence[tuple[Any, Column]]) -> tuple[tuple[Any, Column], ...]:
    """Return the columns with some edges in place of private ones, at least as many as these can have."""
    return tuple((name, _some_edges(column)) for name, column in columns)


def _some_edges(column: Column) -> Column:
    if not (isinstance(column, Bins) and column.private):
        return column
    assert isinstance(column.bins, int)
    assert column.grid is not None
    codes = np.arange(1, min(2 * column.bins + 2, column.grid.size))
    return Bins(np.asarray(column.grid.decode(codes)).tolist(), grid=column.grid)


def _with_private_bins(
    columns: Sequence[tuple[Any, Column]], table: DataColumns, epsilon: float, rng: RandomSource
) -> tuple[tuple[Any, Column], ...]:
    """Return the columns with quantiles as edges of bins."""
    made = []
    for name, column in columns:
        if isinstance(column, Bins) and column.private:
            values = containers.vector(f"column {name!r}", table[name])
            column = _quantile_bins(column, values, epsilon, rng)
        made.append((name, column))
    return tuple(made)


def _levels(column: Bins, n: int, epsilon: float) -> tuple[float, ...]:
    """Return the levels of the quantiles that are the edges of bins: as many as n epsilon allows
    among floats. Public.
    """
    assert isinstance(column.bins, int)
    assert column.grid is not None
    for b in range(column.bins, int(column.bins == 1), -1):
        outer = 1 / (4 * b)
        if isinstance(column.grid, FloatGrid):
            outer = max(outer, max(_LEAST_TAIL, _TAIL + _TAIL_OF_EACH * (b + 1)) / (n * epsilon))
            if b > 2 and outer > 1 / b:
                continue
        inner = (i / b for i in range(1, b))
        levels = (outer, *(level for level in inner if outer < level < 1 - outer), 1 - outer)
        if outer < 0.5 and not (isinstance(column.grid, FloatGrid) and _traps_of(levels, column.grid, n, epsilon)):
            return levels
    return (0.5,)


def _traps_of(levels: Sequence[float], grid: Points, n: int, epsilon: float) -> tuple[Trap, ...]:
    return Quantiles(levels, grid=grid, epsilon=epsilon).plan(n).traps


def _quantile_bins(column: Bins, values: NDArray[Any], epsilon: float, rng: RandomSource) -> Bins:
    """Bins whose inner edges are released quantiles; a repeated one, and the outermost ones, have bins of their own."""
    grid = column.grid
    assert grid is not None
    edges = Quantiles(_levels(column, len(values), epsilon), grid=grid, epsilon=epsilon)
    codes = grid.encode(np.asarray(edges.plan(len(values)).draw(values, bit_generator(rng))))
    repeated = codes[1:][codes[1:] == codes[:-1]]
    cuts = np.unique(np.concatenate([codes, repeated + 1]))
    cuts = cuts[(cuts >= 1) & (cuts < grid.size)]
    return Bins(np.asarray(grid.decode(cuts)).tolist(), grid=grid)


@dataclass(frozen=True)
class _Wanted:
    """The marginals to release, or how to select them, and the budget."""

    columns: tuple[tuple[Any, Column], ...]
    budget: BudgetShare
    way: str
    pairs: tuple[Names, ...] | None
    rng: RandomSource
    threads: int

    @property
    def names(self) -> list[Any]:
        return [name for name, _ in self.columns]

    @property
    def singles(self) -> tuple[Names, ...]:
        return tuple((name,) for name in self.names)

    @property
    def last(self) -> BudgetShare:
        """The budget of the last counts; of the first round, for rounds."""
        if self.way == "adaptive":
            return self._rounds.smallest
        return self.budget if self.pairs else self.budget.share(1 - _SINGLE - _SCORES)

    @property
    def _rounds(self) -> Rounds:
        return Rounds(self.columns, self.budget, self.rng, self.threads)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The cost of the release, as parts of a `PrivacyProfile`."""
        if self.budget.mu_squared:
            return (("gaussian", root_up(self.budget.mu_squared), 1),)
        if self.pairs is None:
            return (("pure", down(self.budget.epsilon), 1),)
        return NoisyMarginals(_largest(self.columns), self.pairs, **self.budget.options).privacy_profile.parts

    def check(self, sampled: bool) -> None:
        """Raise a ValueError for too many cells or too small a budget, by public numbers."""
        columns = _largest(self.columns)
        if self.pairs is not None:
            NoisyMarginals(columns, self.pairs, **self.budget.options)
            places = {name: place for place, name in enumerate(self.names)}
            if sampled:
                sets = [tuple(sorted(places[name] for name in names)) for names in self.pairs]
                Junctions.of([column.size for _, column in columns], sets).check()
            return
        first = SINGLE if self.way == "adaptive" else _SINGLE
        for share in (self.budget.share(first), self.last):
            NoisyMarginals(columns, self.singles, **share.options)

    def release(self, codes: Codes) -> Marginals:
        """Release the marginals of the encoded records."""
        if self.pairs is not None:
            return self._counts(codes, self.pairs, self.budget)
        if self.way == "adaptive":
            return self._rounds.release(codes)
        singles = self._counts(codes, self.singles, self.budget.share(_SINGLE))
        tree = self._tree(codes, singles)
        paired = {name for pair in tree for name in pair}
        alone = [(name,) for name in self.names if name not in paired]
        last = self._counts(codes, (*tree, *alone), self.last)
        return replace(
            last, counts={**singles.counts, **last.counts}, deviations={**singles.deviations, **last.deviations}
        )

    def _counts(self, codes: Codes, marginals: tuple[Names, ...], budget: BudgetShare) -> Marginals:
        mechanism = NoisyMarginals(self.columns, marginals, **budget.options)
        summary = counted(self.columns, marginals, codes, self.threads), len(codes)
        released: Marginals = mechanism.plan(len(codes)).draw_from(summary, bit_generator(self.rng))
        return released

    def _tree(self, codes: Codes, singles: Marginals) -> list[Names]:
        """Return the pairs of a forest with high scores, of which one record changes each by at most 2, or 1."""
        sizes, d = {name: column.size for name, column in self.columns}, len(self.columns)
        most = (MOST_CELLS - sum(sizes.values())) // d  # so that no tree has too many cells
        candidates = [(a, b) for a, b in combinations(self.names, 2) if sizes[a] * sizes[b] <= most]
        if not candidates:
            return []
        scores = self._scores(codes, singles, candidates)
        budget, sensitivity = self.budget.share(_SCORES), CHANGED[self.budget.neighbors]
        if budget.mu_squared:
            return _by_noisy_scores(candidates, scores, sensitivity, budget.mu_squared, self.rng)
        each = down(budget.epsilon / (d - 1))
        selection = Selection(epsilon=each, sensitivity=sensitivity, neighbors=self.budget.neighbors)
        return _by_selection(candidates, scores, selection, self.rng)

    def _scores(self, codes: Codes, singles: Marginals, candidates: list[Names]) -> NDArray[np.int64]:
        """Return the l1 distance of each pair's counts from those of independent columns, less a third of the expected
        noise.

        In consistent tables most noise of empty cells is gone. The counts of independent columns are integers from the
        released counts of single columns.
        """
        consistent = singles.consistent()
        margins = [consistent[name,] for name in self.names]
        places = {name: i for i, name in enumerate(self.names)}
        pairs = np.array([[places[a], places[b]] for a, b in candidates])
        tree = NoisyMarginals(self.columns, self.singles[1:], **self.last.options)
        noise, single_noise = tree.noises[0].deviation, next(iter(singles.deviations.values()))
        sizes, scores = np.array([margin.size for margin in margins]), np.empty(len(candidates), np.int64)
        independent = (
            np.concatenate(margins),
            np.cumsum([0, *sizes]),
            np.array([max(float(margin.sum()), 1.0) for margin in margins]),
        )
        cells, first = np.cumsum([0, *sizes[pairs].prod(axis=1)]), 0
        while first < len(candidates):  # as many pairs in one pass as have few cells together
            last = max(int(np.searchsorted(cells, cells[first] + _CELLS_A_PASS)), first + 1)
            last = min(last, len(candidates))
            counts = counted(self.columns, candidates[first:last], codes, self.threads)
            _marginals.distances(counts, *independent, pairs[first:last], scores[first:last])
            first = last
        numbers = zip(np.diff(cells).tolist(), sizes[pairs].sum(axis=1).tolist(), strict=True)
        scores -= [penalty(_NOISE * (noise * both + single_noise * each)) for both, each in numbers]
        return scores


def _by_noisy_scores(
    candidates: list[Names], scores: NDArray[np.int64], sensitivity: int, mu_squared: Fraction, rng: RandomSource
) -> list[Names]:
    """Return a maximal spanning forest by scores with Gaussian noise, without pairs of negative scores."""
    scale = root_up(len(candidates) * sensitivity**2 / mu_squared)
    noise = Independent(RoundedGaussian(scale), len(candidates)).draws(None, rng)
    noisy = scores + np.clip(noise, -(2**61), 2**61)
    tree, found = Components(), list[Names]()
    for i in np.argsort(-noisy, kind="stable").tolist():
        if noisy[i] > 0 and tree.join(*candidates[i]):
            found.append(candidates[i])
    return found


def _by_selection(
    candidates: list[Names], scores: NDArray[np.int64], selection: Selection, rng: RandomSource
) -> list[Names]:
    """Return a spanning forest that grows by one selected pair at a time, until selection ends it: a candidate of score
    0.
    """
    tree, found, left = Components(), list[Names](), list(range(len(candidates)))
    while True:
        left = [i for i in left if tree.find(candidates[i][0]) != tree.find(candidates[i][1])]
        if not left:
            return found
        chosen = selection(np.append(scores[left], 0), rng=rng)
        if chosen == len(left):
            return found
        found.append(candidates[left[chosen]])
        tree.join(*candidates[left[chosen]])
