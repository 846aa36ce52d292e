"""Verification: exact comparison of the laws of a mechanism, and of sensitivities, on all small datasets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.core import checks, containers
from dpfast.core.grid import Grid, Points
from dpfast.core.privacy import Privacy
from dpfast.core.rounding import double_up

_LARGEST_SUPPORT = 2**20
_LARGEST_TABLE = 2**27
_MOST_DATASETS = 2**20
_QUICK = 1000  # points of a grid
_TOLERANCE = 1e-12
_TOTAL_TOLERANCE = 1e-9
OF_NUMBERS = ", if need be of an object with `privacy` and a `release` that makes numbers of what is released"


Record = float | tuple[float, ...]


@dataclass(frozen=True)
class Certificate:
    """The result of `verify`.

    Attributes
    ----------
    epsilon : float
        The largest loss of any output, for a pure claim; for a claim with delta > 0, the claimed epsilon.
    delta : float
        The largest hockey-stick divergence at the claimed epsilon, over all pairs, both ways.
    pairs : int
        The number of ordered pairs of neighbouring datasets compared.
    worst : tuple of two tuples
        The pair of datasets (values, or rows of values) with the largest loss or divergence.
    holds : bool
        Whether the claim is true for all pairs, up to 1e-12.
    claim : Privacy
        The declared guarantee of the mechanism.
    """

    epsilon: float
    delta: float
    pairs: int
    worst: tuple[tuple[Record, ...], tuple[Record, ...]]
    holds: bool
    claim: Privacy

    def __str__(self) -> str:
        rows = [
            ("claimed", str(self.claim)),
            ("found", f"epsilon = {self.epsilon:.12g}, delta = {self.delta:.6g} at the claimed epsilon"),
            ("pairs", f"{self.pairs:,} ordered pairs of neighbouring datasets, every output of each"),
            ("worst", f"{list(self.worst[0])} against {list(self.worst[1])}"),
            ("holds", "yes" if self.holds else "NO"),
        ]
        return "\n".join(f"{name:<8} {text}" for name, text in rows)


def verify(
    mechanism: Any,
    *,
    n: int = 3,
    values: int = 4,
    grids: Points | Sequence[Points] | None = None,
    ordered: bool = True,
) -> Certificate:
    """Check a mechanism's guarantee exactly on all datasets of n records over `values` evenly spaced grid points.

    It compares every pair of datasets that differ in one record, both ways, on every value that either can release. For
    "add-remove" it compares datasets of n - 1 and n records with those that have one more record. For a local
    randomiser (`dpfast.local`), whose report is of one record, it compares all pairs of records.

    Parameters
    ----------
    mechanism : Mechanism or local randomiser
        Any object with ``privacy``, ``grid`` or, for records of several numbers, ``grids``, and ``law(x)``. A law has
        ``outcomes()``, an array of all outcomes along its first axis, or for integers their ``support``;
        ``logpmf(outcomes)``; and ``value(outcomes)``, the released number or row of numbers for each outcome. Outcomes
        may include a failure; NaN is a value like any other.
    n : int
        The number of records in a dataset, at least 1; ignored for a local randomiser, where it is 1.
    values : int
        The number of distinct values of a record, or of each coordinate of it, at least 2, including both ends of the
        grid. If missing records are not a value of the grid, for ``missing="half"`` or "drop", NaN is another one.
    grids : Grid or sequence of Grids, optional
        The grids of the records, instead of the mechanism's own: one for numbers, several for rows.
    ordered : bool
        False uses only one order of each dataset. This is many times faster, and enough if the law does not depend on
        the order of the records, which it does not check; refused for a mechanism that says so (`Mechanism.ordered`).

    Returns
    -------
    Certificate
        `holds` is False for a broken mechanism, including one whose laws do not sum to 1; prints as a table.

    Raises
    ------
    TypeError
        For a mechanism without a law, such as `dpfast.local.L2Ball`; see `distinguish`. For one without a grid, unless
        `grids` is given, and for one whose outcomes cannot be listed.
    ValueError
        For a support of more than 2**20 points, or more than 2**27 points in all laws together; use a coarser grid,
        ``dataclasses.replace(mechanism, grid=dpfast.Grid(lower, upper, step=1))``. `grids` changes the records alone.
        For ``ordered=False`` and a mechanism whose law depends on the order of the records.

    Notes
    -----
    No privacy is spent, because no data are used. A certificate is for the grid that was enumerated. On a finer one the
    same code runs, with other numbers: there the guarantee rests on the proof. Cost: ``values**n * n * (values - 1)``
    comparisons of two laws, with values**d in place of values for d coordinates: for a median on 800 points 0.14 s, or
    0.03 s with ``ordered=False``, and 7 s with it on 800,000 points.

    Examples
    --------
    >>> import dpfast as dpf
    >>> mechanism = dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 20, step=1), epsilon=1.0)
    >>> dpf.audit.verify(mechanism, n=3, values=3).holds
    True
    >>> mechanism = dpf.NestedBoxes(grid=[dpf.Grid(0, 4, step=1)] * 2, epsilon=1.0)
    >>> dpf.audit.verify(mechanism, n=2, values=2).holds
    True
    >>> from dpfast import local
    >>> dpf.audit.verify(local.Categorical(5, 1.0), values=5).holds
    True
    """
    n, values = checks.whole("n", n, least=1), checks.whole("values", values, least=2)
    if isinstance(mechanism, type):
        raise TypeError(f"verify takes a mechanism, not a class: call {mechanism.__name__} with its parameters")
    name = type(mechanism).__name__
    if not hasattr(mechanism, "law"):
        hint = ", or verify its randomizer" if hasattr(mechanism, "randomizer") else ""
        raise TypeError(f"{name} has no exact law to verify: use audit.distinguish{hint}")
    if not getattr(mechanism, "reads_records", True):
        raise TypeError(f"{name} takes scores, not records: check their sensitivity by audit.lipschitz")
    if not getattr(mechanism, "releases_numbers", True):
        raise TypeError(f"{name} releases no numbers that can be listed: use audit.distinguish{OF_NUMBERS}")
    if not ordered and getattr(mechanism, "ordered", False):
        raise ValueError("ordered must be True for a mechanism whose law depends on the order of the records")
    claim = mechanism.privacy
    epsilon = double_up(claim.epsilon)
    if claim.neighbors == "local":
        n = 1
    records = _records(_grids(mechanism) if grids is None else grids, values)
    grown = claim.neighbors == "add-remove"
    datasets = [data for size in ((n - 1, n, n + 1) if grown else (n,)) for data in _datasets(records, size, ordered)]
    laws = _laws(mechanism, datasets)
    loss, divergence, pairs, worst = -math.inf, 0.0, 0, None
    for data, other in _grown(laws, records, n, ordered) if grown else _neighbors(laws, records, ordered):
        pairs += 1
        pair_loss, pair_divergence = laws[data].against(laws[other], epsilon)
        if worst is None or (pair_divergence > divergence if claim.delta else pair_loss > loss):
            worst = (data, other)
        loss, divergence = max(loss, pair_loss), max(divergence, pair_divergence)
    assert worst is not None
    if claim.delta:
        return Certificate(epsilon, divergence, pairs, worst, divergence <= claim.delta + _TOLERANCE, claim)
    return Certificate(loss, divergence, pairs, worst, loss <= epsilon + _TOLERANCE, claim)


def _laws(mechanism: Any, datasets: list[tuple[Record, ...]]) -> dict[tuple[Record, ...], _Outcomes]:
    """Return the law on each dataset. Equal arrays of values, the usual case, are stored once."""
    laws: dict[tuple[Record, ...], _Outcomes] = {}
    values, name = np.empty(0), type(mechanism).__name__
    for data in datasets:
        records = _array(data, datasets)
        try:
            law = mechanism.law(records)
        except (TypeError, ValueError, IndexError) as error:
            kind = f"rows of {records.shape[1]} numbers" if records.ndim > 1 else "numbers"
            raise type(error)(
                f"{error}: verify takes a dataset of {len(records)} records, {kind}; {name} may need another n, or "
                f"other grids=, a Grid for numbers or a list of one for each column of rows"
            ) from error
        try:
            laws[data] = outcomes = _Outcomes.of(law, values)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: {error}") from error
        values = outcomes.values
        if values.size * len(datasets) > _LARGEST_TABLE:
            raise ValueError(
                f"verify keeps all laws, here {values.size} points for each of {len(datasets)} datasets, at most 2**27 "
                f"numbers: use a coarser grid, or smaller n or values"
            )
    return laws


def _datasets(records: list[Record], n: int, ordered: bool) -> Iterator[tuple[Record, ...]]:
    return itertools.product(records, repeat=n) if ordered else itertools.combinations_with_replacement(records, n)


def _array(data: tuple[Record, ...], datasets: list[tuple[Record, ...]]) -> NDArray[np.float64]:
    """Return the dataset as an array, with all columns even if it has no records."""
    return np.array(data, dtype=np.float64).reshape((len(data), *np.shape(datasets[-1])[1:]))


def _grown(
    datasets: Iterable[tuple[Record, ...]], records: list[Record], n: int, ordered: bool
) -> Iterator[tuple[tuple[Record, ...], tuple[Record, ...]]]:
    """Yield each dataset of n - 1 or n records with each dataset that has one more record, both ways."""
    for data in datasets:
        if len(data) > n:
            continue
        for i, record in itertools.product(range(len(data) + 1), records):
            if not ordered and i < len(data):
                continue
            other = (*data[:i], record, *data[i:])
            other = other if ordered else _sorted(other, records)
            yield data, other
            yield other, data


def _grids(mechanism: Any) -> Points | Sequence[Points]:
    """Return the grids of the records; checks that laws on a grid, in the central model, are not too large."""
    grids: Any = getattr(mechanism, "grids", None)
    if isinstance(grids, Sequence) and grids and getattr(mechanism, "points", grids):
        return grids[0] if len(grids) == 1 and not _reads_rows(mechanism) else grids
    grid: Points | None = getattr(mechanism, "grid", None)
    if grid is None:
        raise TypeError(
            f"give grids=, the grids of the records: {type(mechanism).__name__} has no grid. It is a Grid for numbers, "
            f"or a list of one for each column of rows; if the outcomes are too many to list, use audit.distinguish"
        )
    if mechanism.privacy.neighbors != "local" and grid.size > _LARGEST_SUPPORT:
        raise ValueError(
            f"verify compares laws on a grid of at most 2**20 points, not {grid.size}, that of "
            f"{type(mechanism).__name__}: {_on_fewer_points(grid)}, or use audit.distinguish"
        )
    return grid


def _on_fewer_points(grid: Points) -> str:
    """Return how to verify the same code on a grid whose laws are compared in less than a second."""
    if not isinstance(grid, Grid):
        return "use a coarser grid"
    step = 2.0 ** math.ceil(math.log2((grid.upper - grid.lower) / _QUICK))
    coarse = f"dpf.Grid({grid.lower!r}, {grid.upper!r}, step={step!r})"
    return f"verify the same code on a coarser grid, dataclasses.replace(mechanism, grid={coarse})"


def _reads_rows(mechanism: Any) -> bool:
    """Whether records are rows, by the shape that a mechanism takes."""
    try:
        mechanism.reading().records(np.zeros((1, 1)))
    except AttributeError:  # a randomiser, which has grids for vectors alone
        return True
    except (TypeError, ValueError):
        return False
    return True


def _records(grids: Points | Sequence[Points], values: int) -> list[Record]:
    """Return the possible records: numbers or rows of numbers."""
    if isinstance(grids, Points):
        return list(_spaced_values(grids, values))
    return list(itertools.product(*(_spaced_values(grid, values) for grid in grids)))


def _spaced_values(grid: Points, values: int) -> list[float]:
    codes = sorted({round(i * (grid.size - 1) / (values - 1)) for i in range(values)})
    return [*map(float, grid.decode(codes)), *([math.nan] if grid.resolves else [])]


def _neighbors(
    datasets: Iterable[tuple[Record, ...]], records: list[Record], ordered: bool
) -> Iterator[tuple[tuple[Record, ...], tuple[Record, ...]]]:
    for data in datasets:
        for i, record in itertools.product(range(len(data)), records):
            if record is data[i] or record == data[i] or (not ordered and i and data[i] == data[i - 1]):
                continue
            other = (*data[:i], record, *data[i + 1 :])
            yield data, other if ordered else _sorted(other, records)


def _sorted(data: tuple[Record, ...], records: list[Record]) -> tuple[Record, ...]:
    """Return a dataset in the order of the list of possible records, which ends with NaN."""
    places = {record: place for place, record in enumerate(records)}
    return tuple(sorted(data, key=places.__getitem__))


@dataclass(frozen=True)
class _Outcomes:
    """Released values (rows as their bytes) and their log-probabilities."""

    values: NDArray[Any]
    logpmf: NDArray[np.float64]
    distinct: bool  # whether no value occurs twice
    proper: bool  # whether the probabilities sum to 1

    @classmethod
    def of(cls, law: Any, usual_values: NDArray[Any]) -> _Outcomes:
        if hasattr(law, "outcomes"):
            points = law.outcomes()
        else:
            first, last = law.support
            checks.outcomes(last - first + 1)
            points = np.arange(first, last + 1)
        values = np.asarray(law.value(points))
        if values.dtype.kind not in "iu":  # 64-bit integers do not fit float64
            values = values.astype(np.float64, copy=False)
        if values.ndim > 1:
            values = _rows(values)
        if np.array_equal(values, usual_values):
            values = usual_values
        logpmf = np.asarray(law.logpmf(points), dtype=np.float64)
        distinct = np.unique(values).size == values.size
        return cls(
            values, logpmf, distinct, proper=abs(math.fsum(np.exp(np.minimum(logpmf, 1.0))) - 1) < _TOTAL_TOLERANCE
        )

    def against(self, other: _Outcomes, epsilon: float) -> tuple[float, float]:
        """Return the largest log-ratio and the hockey-stick divergence at epsilon of this law from the other."""
        if not (self.proper and other.proper):
            return math.inf, 1.0
        mine, theirs = self._aligned(other)
        possible = mine > -np.inf
        ratios = mine[possible] - theirs[possible]
        excess = np.exp(mine[possible]) - np.exp(np.minimum(epsilon + theirs[possible], 700.0))
        return float(ratios.max()), math.fsum(excess[excess > 0])

    def _aligned(self, other: _Outcomes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Both laws on the union of their values; a value that a law cannot release has probability 0."""
        same = self.values is other.values or np.array_equal(self.values, other.values)
        if same and self.distinct:
            return self.logpmf, other.logpmf
        union = np.union1d(self.values, other.values)
        return self._on(union), other._on(union)

    def _on(self, union: NDArray[np.float64]) -> NDArray[np.float64]:
        spread = np.full(union.size, -np.inf)
        np.logaddexp.at(spread, np.searchsorted(union, self.values), self.logpmf)
        return spread


def _rows(values: NDArray[Any]) -> NDArray[Any]:
    """Each row of numbers as one item, compared by its bytes; -0.0 becomes 0.0, and all NaN become one."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.nan, values + 0.0)
    rows = np.ascontiguousarray(values).reshape(len(values), -1)
    return rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).reshape(-1)


@dataclass(frozen=True)
class Sensitivity:
    """The result of `lipschitz`.

    Attributes
    ----------
    largest : Fraction or float
        The exact largest change of any score; inf if a score is infinite on only one of two neighbours.
    worst : tuple of two datasets
        The first pair of neighbours with this change.
    monotone : bool
        Whether no pair of neighbours raises one score and lowers another.
    holds : bool
        Whether `largest` is at most `claim`.
    pairs : int
        The number of pairs of neighbouring datasets compared.
    claim : Fraction
        The claimed sensitivity.
    """

    largest: Fraction | float
    worst: tuple[tuple[Any, ...], tuple[Any, ...]]
    monotone: bool
    holds: bool
    pairs: int
    claim: Fraction


def lipschitz(
    score: Callable[[Any], Any], domain: Sequence[Any] | NDArray[Any], n: int, *, sensitivity: float | Fraction = 1
) -> Sensitivity:
    """Check on all datasets of n records that a score changes by at most `sensitivity` when one record is replaced.

    Parameters
    ----------
    score : callable
        A function of a dataset that returns its score, or an array_like of the scores of all candidates, as for
        `dpfast.select`: integers, floats or Fractions, with NaN counting as 0. Its argument is a tuple of n records,
        or, if `domain` is an ndarray, an ndarray of n of its rows.
    domain : sequence or ndarray
        The distinct records, at least 2; public, not data.
    n : int
        At least 1.
    sensitivity : int, float or Fraction
        Positive.

    Returns
    -------
    Sensitivity
        Differences are exact: a score of sensitivity 1 that is rounded to floats may fail by a rounding error.

    Raises
    ------
    ValueError
        For more than 2**20 datasets, or a score with a varying number of entries.

    Notes
    -----
    No privacy is spent, because no data are used. A score that passes has this sensitivity on these records and this n;
    this proves nothing about others. Cost: ``len(domain)**n`` scores and ``n * (len(domain) - 1) / 2`` times as many
    comparisons.

    Examples
    --------
    >>> import dpfast as dpf
    >>> votes = lambda data: [data.count("yes"), data.count("no")]
    >>> found = dpf.audit.lipschitz(votes, ["yes", "no"], n=4)
    >>> found.holds, found.monotone
    (True, False)
    >>> dpf.audit.lipschitz(lambda data: sum(data), [0, 1, 3], n=2).largest
    Fraction(3, 1)
    """
    n, claim = checks.whole("n", n, least=1), checks.positive_rational("sensitivity", sensitivity)
    size = len(domain)
    if size < 2:
        raise ValueError(f"domain must have at least 2 records, not {size}")
    if size**n > _MOST_DATASETS:
        raise ValueError(f"lipschitz visits all {size}**{n} datasets, at most 2**20: use a smaller domain or n")

    def dataset(places: tuple[int, ...]) -> Any:
        return domain[list(places)] if isinstance(domain, np.ndarray) else tuple(domain[place] for place in places)

    scores = {places: _exact_scores(score(dataset(places))) for places in itertools.product(range(size), repeat=n)}
    largest: Fraction | float = -1
    worst: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    monotone, pairs = True, 0
    for places, mine in scores.items():
        for neighbor in _greater_neighbors(places, size):
            theirs, pairs = scores[neighbor], pairs + 1
            if len(mine) != len(theirs):
                raise ValueError(f"score must always have the same number of entries, not {len(mine)}, {len(theirs)}")
            changes = [_change(a, b) for a, b in zip(mine, theirs, strict=True)]
            least, most = min(changes), max(changes)
            monotone = monotone and not least < 0 < most
            change = max(-least, most)
            if change > largest:
                largest, worst = change, (places, neighbor)
    assert worst is not None
    shown = tuple(tuple(domain[place] for place in places) for places in worst)
    return Sensitivity(largest, (shown[0], shown[1]), monotone, largest <= claim, pairs, claim)


def _greater_neighbors(places: tuple[int, ...], size: int) -> Iterator[tuple[int, ...]]:
    """Yield the later datasets that differ in one record, so that each pair is visited once."""
    for i, place in enumerate(places):
        for other in range(place + 1, size):
            yield (*places[:i], other, *places[i + 1 :])


def _exact_scores(scores: Any) -> list[Fraction | float]:
    exact = containers.scores([scores] if np.ndim(scores) == 0 else scores)
    return [containers.exact_score(score) for score in (exact if isinstance(exact, list) else exact.tolist())]


def _change(before: Fraction | float, after: Fraction | float) -> Fraction | float:
    """Return the exact difference, after minus before; 0 for equal infinities."""
    if before == after:
        return Fraction(0)
    if isinstance(after, float):
        return after
    return -before if isinstance(before, float) else after - before
