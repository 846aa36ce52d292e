"""Cliques of columns, selected and counted in rounds where a model of earlier counts is far from the records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.core.divergences import range_of_mu_down
from dpfast.core.rounding import down
from dpfast.densities.budgets import BudgetShare
from dpfast.densities.columns import Codes, Column
from dpfast.densities.consistency import Names
from dpfast.densities.graphical import Graphical, Noisy, Values, estimated_total, fitted
from dpfast.densities.junctions import CellCounts, Junctions, Places, cells_of, graph, with_pair
from dpfast.densities.marginals import CHANGED, MOST_CELLS, NoisyMarginals, counted
from dpfast.densities.released_marginals import LEAST_VARIANCE, Marginals
from dpfast.mechanisms import Selection
from dpfast.random import RandomSource, bit_generator

MODEL_CELLS = 2**18  # of the junction tree
ROUNDS = 4  # at most so many for each column
SINGLE = Fraction(3, 10)  # the share of the budget for single columns, before the rounds
SELECTION = Fraction(1, 10)  # the share of each round for its selection
_SWEEPS, _LAST_SWEEPS = 10, 200
_TOLERANCE = 1e-3  # of the records that a sweep moves

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Rounds:
    """A release of single columns, then of cliques that are selected in rounds.

    The first rounds have equal shares of the budget. After one that changes the model by less than its noise, the next
    ones have noise of half the standard deviation, so that there are never more rounds than with equal shares
    (https://dpfast.readthedocs.io/en/latest/proofs/cliques.html).
    """

    columns: tuple[tuple[Any, Column], ...]
    budget: BudgetShare
    rng: RandomSource
    threads: int

    @property
    def most_rounds(self) -> int:
        """The largest number of rounds. Public."""
        return ROUNDS * len(self.columns)

    @property
    def first_share(self) -> Fraction:
        """The share of the budget of the first round."""
        return (1 - SINGLE) / self.most_rounds

    @property
    def smallest(self) -> BudgetShare:
        """The budget of the counts of the first round, the smallest one of counts. Public."""
        return self.budget.share(self.first_share * (1 - SELECTION))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(column.size for _, column in self.columns)

    @cached_property
    def candidates(self) -> tuple[Places, ...]:
        """Single columns, and pairs that fit into a model, those with the fewest cells first, up to a limit. Public."""
        d = len(self.sizes)
        pairs = sorted(combinations(range(d), 2), key=self._size)
        limit, found = MOST_CELLS - sum(self.sizes), [(place,) for place in range(d)] + list[Places]()
        for pair in pairs:
            limit -= self._size(pair)
            if limit >= 0 and self._size(pair) + sum(self.sizes) <= MODEL_CELLS:
                found.append(pair)
        return tuple(found)

    def _size(self, places: Places) -> int:
        return math.prod(self.sizes[place] for place in places)

    def release(self, codes: Codes) -> Marginals:
        """Release the counts of the encoded records."""
        exact = self._exact(codes)
        singles = [(place,) for place in range(len(self.sizes))]
        noisy = self._counted(exact, singles, SINGLE, len(codes))
        total = float(len(codes)) if self.budget.neighbors == "replace-one" else estimated_total(noisy)
        model = self._model(noisy, total, {}, _LAST_SWEEPS)
        candidates, left, share = list(self.candidates), 1 - SINGLE, self.first_share
        while left:
            share = left if left < 2 * share else share
            left -= share
            noise = self._mechanism([candidates[0]], share * (1 - SELECTION)).noises[0].deviation
            candidates = self._fitting(candidates, model.junctions, noisy)
            expected = model.pairs() | {places: model.margin(places) for places in singles}
            chosen = self._selected(candidates, exact, expected, noise, share * SELECTION)
            counts = self._counted(exact, [chosen], share * (1 - SELECTION), len(codes))[chosen]
            noisy[chosen] = noisy[chosen].and_also(counts) if chosen in noisy else counts
            model = self._model(noisy, total, model.potentials, _SWEEPS)
            if np.abs(model.margin(chosen) - expected[chosen]).sum() <= _expected_distance(noise, counts.counts.size):
                share *= 4 if self.budget.mu_squared else 2
        return self._released(noisy, len(codes))

    def _exact(self, codes: Codes) -> dict[Places, Counts]:
        """Return the counts of all candidates. PRIVATE."""
        counts = counted(self.columns, self._names(self.candidates), codes, self.threads)
        ends = np.cumsum([self._size(places) for places in self.candidates])[:-1]
        return dict(zip(self.candidates, np.split(counts, ends), strict=True))

    def _names(self, sets: Sequence[Places]) -> list[Names]:
        return [tuple(self.columns[place][0] for place in places) for places in sets]

    def _mechanism(self, sets: Sequence[Places], part: Fraction) -> NoisyMarginals:
        """Return the release of the counts of sets of columns with a part of the budget."""
        return NoisyMarginals(self.columns, self._names(sets), **self.budget.share(part).options)

    def _counted(
        self, exact: dict[Places, Counts], sets: Sequence[Places], part: Fraction, n: int
    ) -> dict[Places, Noisy]:
        """Release the counts of sets of columns with a part of the budget."""
        summary = np.concatenate([exact[places] for places in sets]), n
        released: Marginals = self._mechanism(sets, part).plan(n).draw_from(summary, bit_generator(self.rng))
        return {
            places: Noisy(table.reshape(-1).astype(np.float64), max(deviation**2, LEAST_VARIANCE))
            for places, table, deviation in zip(
                sets, released.counts.values(), released.deviations.values(), strict=True
            )
        }

    def _model(
        self, noisy: dict[Places, Noisy], total: float, start: Mapping[Places, Values], sweeps: int
    ) -> Graphical:
        tree = Junctions.of(self.sizes, noisy)
        return fitted(tree, noisy, total, start=start, sweeps=sweeps, tolerance=_TOLERANCE * total)

    def _fitting(self, candidates: Sequence[Places], tree: Junctions, noisy: Mapping[Places, Noisy]) -> list[Places]:
        """Return the candidates with which the junction tree has few cells; this follows from what is released."""
        cells, before = CellCounts(self.sizes), graph(len(self.sizes), noisy)
        return [
            places
            for places in candidates
            if tree.has(places) or cells_of(cells, with_pair(before, places)) <= MODEL_CELLS
        ]

    def _selected(
        self,
        candidates: Sequence[Places],
        exact: dict[Places, Counts],
        expected: Mapping[Places, Values],
        noise: float,
        part: Fraction,
    ) -> Places:
        """Select a candidate on which the model is far from the records, relative to the noise in its counts.

        The score is the l1 distance of the counts from the model's, which are integers, less the expected noise: one
        replaced record changes it by at most 2, one more or less by at most 1.
        """
        scores = np.array(
            [
                beyond_noise(exact[places], expected[places], _expected_distance(noise, exact[places].size))
                for places in candidates
            ]
        )
        budget, changed = self.budget.share(part), CHANGED[self.budget.neighbors]
        epsilon = range_of_mu_down(budget.mu_squared) if budget.mu_squared else down(budget.epsilon)
        selection = Selection(epsilon=epsilon, sensitivity=changed, neighbors=self.budget.neighbors)
        chosen: int = selection(scores, rng=self.rng)
        return candidates[chosen]

    def _released(self, noisy: dict[Places, Noisy], n: int) -> Marginals:
        names = dict(zip(noisy, self._names(list(noisy)), strict=True))
        return Marginals(
            dict(self.columns),
            {
                names[places]: np.rint(each.counts).astype(np.int64).reshape([self.sizes[place] for place in places])
                for places, each in noisy.items()
            },
            {names[places]: math.sqrt(each.variance) for places, each in noisy.items()},
            n if self.budget.neighbors == "replace-one" else None,
            self._mechanism([(0,)], Fraction(1)).privacy,
        )


def beyond_noise(exact: Counts, expected: Values, noise: float) -> int:
    """Return the l1 distance of counts from those of a model, rounded, less what noise is expected to make."""
    distance: int = np.abs(exact - np.rint(expected).astype(np.int64)).sum()
    return distance - penalty(noise)


def penalty(noise: float) -> int:
    """Return an expected l1 norm of noise as an integer."""
    return math.ceil(min(noise, 2.0**60))


def _expected_distance(noise: float, cells: int) -> float:
    """Return the expected l1 norm of Gaussian noise on counts."""
    return math.sqrt(2 / math.pi) * noise * cells
