"""Combiners for PipelineDP: quantiles, means, sums, counts and other exact releases on its local and Beam backends.

    >>> import pipeline_dp
    >>> import dpfast as dpf, dpfast.pipeline_dp as dpf_pipeline
    >>> rows = [(person, "north" if person % 2 else "south", 30 + person % 7) for person in range(2000)]
    >>> accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=2.0, total_delta=1e-6)
    >>> engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    >>> params = pipeline_dp.AggregateParams(
    ...     metrics=[],
    ...     max_partitions_contributed=1,
    ...     max_contributions_per_partition=1,
    ...     custom_combiners=[dpf_pipeline.quantile(0.5, grid=dpf.Grid(0, 100, step=1)), dpf_pipeline.count()],
    ... )
    >>> extractors = pipeline_dp.DataExtractors(
    ...     privacy_id_extractor=lambda row: row[0],
    ...     partition_extractor=lambda row: row[1],
    ...     value_extractor=lambda row: row[2],
    ... )
    >>> result = engine.aggregate(rows, params, extractors, public_partitions=["north", "south"])
    >>> accountant.compute_budgets()
    >>> for partition, (median, number) in sorted(result):
    ...     print(partition, 30 <= median <= 36, 950 <= number <= 1050)
    north True True
    south True True

PipelineDP bounds the contributions of each privacy id and splits the budget; these combiners make the release. See
https://dpfast.readthedocs.io/en/latest/guides/pipeline-dp.html.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pipeline_dp.aggregate_params import MechanismType
from pipeline_dp.combiners import CustomCombiner

from dpfast.core import checks, containers
from dpfast.core.grid import Grid
from dpfast.mechanisms import GlobalSensitivity, InverseSensitivity, Mechanism
from dpfast.statistics import Count, Mean, Quantile, Sum
from dpfast.streaming import State

__all__ = ["Accumulator", "MechanismCombiner", "count", "mean", "quantile", "sum"]

_HELD = 4096  # records of an accumulator that are not yet in a state, at most


class Accumulator:
    """The records of one partition, so far: a state, and records that are not in it yet. PRIVATE, and picklable.

    Merging makes a new accumulator. A state may have a table of counts, which the few records of one privacy id do not
    need.
    """

    __slots__ = ("_held", "_pieces", "_state")

    def __init__(self, pieces: tuple[NDArray[Any], ...], state: State | None = None) -> None:
        self._pieces, self._state = pieces, state
        self._held = int(np.sum([len(piece) for piece in pieces], dtype=np.int64))

    def __repr__(self) -> str:
        return "<Accumulator of private records>"

    def merged(self, other: Accumulator, mechanism: Callable[[], Mechanism]) -> Accumulator:
        """Return the records of both; the mechanism is made only if they need a state."""
        pieces = self._pieces + other._pieces
        states = [one._state for one in (self, other) if one._state is not None]
        if self._held + other._held <= _HELD and len(states) < 2:
            return Accumulator(pieces, *states)
        return Accumulator((), _read(mechanism(), states, pieces))

    def read(self, mechanism: Mechanism) -> State:
        """Return the state of all records."""
        return _read(mechanism, [] if self._state is None else [self._state], self._pieces)


def _read(mechanism: Mechanism, states: list[State], pieces: tuple[NDArray[Any], ...]) -> State:
    state = mechanism.start()
    for other in states:
        state.merge(other)
    if pieces:
        state.update(np.concatenate(pieces))
    return state


class MechanismCombiner(CustomCombiner):
    """The release of a mechanism in each partition, for `pipeline_dp.AggregateParams(custom_combiners=[...])`.

    Parameters
    ----------
    make : callable
        ``make(epsilon=...)`` returns the mechanism: pure, for "add-remove", with one pass over a stream, such as
        ``functools.partial(dpf.GlobalSensitivity, dpf.statistics.Sum(), grid=grid, neighbors="add-remove")``. It must
        be picklable for Beam.
    name : str
        The name in PipelineDP's reports.
    weight : float
        The share of the budget, relative to other combiners.

    Notes
    -----
    **Privacy**: if PipelineDP assigns epsilon to this combiner, and each privacy id has at most k records in all
    partitions together (max_partitions_contributed * max_contributions_per_partition, or max_contributions), the
    mechanism of each partition has epsilon / k, rounded down: all its releases together are epsilon-DP for one privacy
    id added or removed. https://dpfast.readthedocs.io/en/latest/proofs/pipeline-dp.html
    A release is made each time that `compute_metrics` runs. PipelineDP's accountant is the only one: a `dpfast.Ledger`
    that is active would be charged for each partition.

    Raises
    ------
    TypeError, ValueError
        If `make` returns another kind of mechanism.
    """

    def __init__(self, make: Callable[..., Mechanism], *, name: str, weight: float = 1.0) -> None:
        made = make(epsilon=1.0)
        if not isinstance(made, Mechanism):
            raise TypeError(f"make must return a dpfast.Mechanism, not {type(made).__name__}")
        privacy = made.privacy
        if privacy.neighbors != "add-remove":
            raise ValueError(
                f"neighbors must be 'add-remove' in PipelineDP, whose privacy ids are added or removed, not "
                f"{privacy.neighbors!r}"
            )
        if privacy.unit != "epsilon" or privacy.delta or privacy.per_unit is not None or privacy.epsilon > 1.0:
            raise ValueError(f"the mechanism must be pure, with the epsilon that it is given, not {privacy}")
        if (passes := made.start().passes) > 1:
            raise ValueError(
                f"the mechanism must read the records once, not {passes} times: a grid of at most 2**18 points is "
                f"enough for quantiles"
            )
        self._make, self._name = make, name
        self._weight = checks.positive_down("weight", weight)
        self._dimensions = made.dimensions
        self._spec: Any = None
        self._per_unit = 0

    def request_budget(self, budget_accountant: Any) -> None:
        """Request a share of the epsilon; PipelineDP calls it."""
        self._spec = budget_accountant.request_budget(MechanismType.LAPLACE, weight=self._weight)

    def set_aggregate_params(self, aggregate_params: Any) -> None:
        """Take the number of records of a privacy id; PipelineDP calls it.

        Raises a ValueError at a second call: PipelineDP computes aggregations after all of them are declared, so that
        the first one would be released with the budget and bounds of the second.
        """
        if self._per_unit:
            raise ValueError("a combiner serves one aggregation: make another one for each call of aggregate")
        super().set_aggregate_params(aggregate_params)
        total = aggregate_params.max_contributions
        if total is None:
            total = aggregate_params.max_partitions_contributed * aggregate_params.max_contributions_per_partition
        self._per_unit = checks.whole("the number of records of a privacy id", total, least=1)

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism of each partition, after ``budget_accountant.compute_budgets()``."""
        return self._make(epsilon=checks.positive_down("epsilon", Fraction(self._spec.eps) / self._per_unit))

    def create_accumulator(self, values: Iterable[Any]) -> Accumulator:
        """Return the records of one privacy id in one partition, which PipelineDP has bounded."""
        records = containers.numbers("values", list(values), dimensions=self._dimensions)
        return Accumulator((records,) if len(records) else ())

    def merge_accumulators(self, accumulator1: Accumulator, accumulator2: Accumulator) -> Accumulator:
        """Return the records of both."""
        return accumulator1.merged(accumulator2, lambda: self.mechanism)

    def compute_metrics(self, accumulator: Accumulator) -> Any:
        """Return the release of a partition, a float or an array."""
        return accumulator.read(self.mechanism).release()

    def metrics_names(self) -> list[str]:
        """Return the name."""
        return [self._name]

    def explain_computation(self) -> Callable[[], str]:
        """Return a sentence for PipelineDP's report, which is made after the budgets are known."""
        return lambda: (
            f"Computed {self._name} by dpfast: {self.mechanism!r}, for {self._per_unit} records of a privacy id"
        )


def quantile(q: float, *, grid: Grid, weight: float = 1.0) -> MechanismCombiner:
    """Return the q-quantile of the values of each partition by inverse sensitivity, on a grid of at
    most 2**18 points.
    """
    make = partial(InverseSensitivity, Quantile(q), grid=grid, neighbors="add-remove")
    return MechanismCombiner(make, name=f"{q:g}-quantile", weight=weight)


def mean(*, grid: Grid, weight: float = 1.0) -> MechanismCombiner:
    """Return the mean of the values of each partition."""
    return MechanismCombiner(
        partial(GlobalSensitivity, Mean(), grid=grid, neighbors="add-remove"), name="mean", weight=weight
    )


def sum(*, grid: Grid, weight: float = 1.0) -> MechanismCombiner:
    """Return the sum of the values of each partition; the bounds of the grid should include 0."""
    return MechanismCombiner(
        partial(GlobalSensitivity, Sum(), grid=grid, neighbors="add-remove"), name="sum", weight=weight
    )


def count(*, weight: float = 1.0) -> MechanismCombiner:
    """Return the number of records of each partition, values of any kind."""
    records = Grid(0, 1, step=1)
    return _Counter(
        partial(GlobalSensitivity, Count(), grid=records, neighbors="add-remove"), name="count", weight=weight
    )


class _Counter(MechanismCombiner):
    """Counts records without reading them."""

    def create_accumulator(self, values: Iterable[Any]) -> Accumulator:
        """As many records."""
        return super().create_accumulator([0.0] * len(list(values)))
