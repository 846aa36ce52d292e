"""T23 and T24 of docs/threats.md: M-estimators and monotone statistics."""

import itertools
import math
import operator
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

import dpfast
from dpfast import Grid, Privacy, audit
from dpfast.laws import ClampedNoise, RoundedLaplace
from dpfast.statistics import Huber
from tests.reference.statistics import RANK_CASES, one_of_each


class TestT24:
    """T24: the influence of a record is bounded by the box: its corners, a record at either bound, do the most."""

    LAST, K = 9, 2
    BOX = Grid(0, LAST, step=1)

    @classmethod
    def estimate(cls, psi, x):
        """The least code theta with sum(psi(theta - x)) >= 0, or the last."""
        return next((t for t in range(cls.LAST + 1) if sum(psi(t - v) for v in x) >= 0), cls.LAST)

    @classmethod
    def unlike(cls, psi, datasets):
        """Of the (dataset, replaced record) those where a record inside the box does more than one at a corner, or
        where the estimate leaves the attack range of Huber's estimate.
        """
        found = []
        for data in datasets:
            summary = Huber(cls.K).reading(cls.BOX, lambda _: 2).of(np.array(data, float))
            lower, upper = Huber(cls.K).attack_range(summary)
            for i in range(len(data)):
                moved = [cls.estimate(psi, (*data[:i], v, *data[i + 1 :])) for v in range(cls.LAST + 1)]
                corners = moved[0], moved[-1]
                bounded = min(corners) == min(moved) and max(corners) == max(moved)
                if not (bounded and lower[1] <= min(moved) and max(moved) <= upper[1]):
                    found.append((data, i))
        return found

    @staticmethod
    def huber(d):
        return max(-TestT24.K, min(d, TestT24.K))

    @staticmethod
    def redescending(d):
        """Hampel's idea: far records are left out."""
        return d if abs(d) <= TestT24.K else 0

    DATASETS: ClassVar = [
        *itertools.combinations_with_replacement((0, LAST), 4),
        *itertools.combinations_with_replacement((0, 4, 5, LAST), 3),
        (3, 4, 4, 5, 6),
        (0, 0, 4, 8, 9),
    ]

    def test_huber(self):
        assert self.unlike(self.huber, self.DATASETS) == []

    def test_the_score_is_bounded_on_the_corners(self):
        """One record changes the sum of psi by at most 2 k, and at the corners by that much: not by the distance."""
        for theta in range(self.LAST + 1):
            changes = [abs(self.huber(theta - v) - self.huber(theta - w)) for v in range(10) for w in range(10)]
            at_corners = abs(self.huber(theta) - self.huber(theta - self.LAST))
            assert max(changes) == at_corners <= 2 * self.K

    @classmethod
    def value(cls, statistic, data):
        lower, upper = statistic.attack_range(statistic.reading(cls.BOX, lambda _: 1).of(np.array(data, float)))
        assert lower[0] == upper[0]
        return int(lower[0])

    def test_every_statistic(self):
        """The attack range at one replacement is the range of the statistic with one record at a corner."""
        monotone = {name: case for name, case in RANK_CASES.items() if case.monotone}
        for statistic in (*one_of_each(monotone), Huber(self.K)):
            for data in self.DATASETS:
                lower, upper = statistic.attack_range(
                    statistic.reading(self.BOX, lambda _: 2).of(np.array(data, float))
                )
                replaced = [(*data[:i], v, *data[i + 1 :]) for i in range(len(data)) for v in range(self.LAST + 1)]
                corners = [(*data[:i], v, *data[i + 1 :]) for i in range(len(data)) for v in (0, self.LAST)]
                moved, extreme = ([self.value(statistic, d) for d in each] for each in (replaced, corners))
                assert (lower[1], upper[1]) == (min(moved), max(moved)) == (min(extreme), max(extreme))

    def test_control(self):
        """A redescending psi: the worst record is inside the box. The mean: its influence is not bounded by k."""
        assert self.unlike(self.redescending, self.DATASETS)
        assert self.unlike(lambda d: d, self.DATASETS)


class TestT23:
    """T23: an M-estimate comes from exact scores on the grid; no solver stops at a tolerance that data decide."""

    GRID = Grid(0, 30, step=1)

    def test_the_mode_is_the_exact_minimiser(self):
        mechanism = dpfast.MEstimator(dpfast.psi.Huber(3), grid=self.GRID, epsilon=1.0)
        for data in itertools.product((0, 7, 8, 30), repeat=4):
            scores = [abs(sum(max(-3, min(3, t - x)) for x in data)) for t in range(31)]
            logs = mechanism.law(np.array(data, float)).logpmf(np.arange(31))
            expected = -np.array(scores) / 12
            assert np.abs(logs - logs[0] - expected + expected[0]).max() < 1e-12
        assert audit.verify(mechanism, n=3, values=5).holds

    def test_control(self):
        """Exact Laplace noise for the sensitivity of the exact root, on a root that Newton's method leaves early."""

        class Newton:
            grid, privacy, steps_of_one = Grid(12, 18, step=1), Privacy(1.0), 256
            records = tuple(itertools.product((12.0, 14.0, 16.0, 18.0), repeat=3))

            def __init__(self, tolerance):
                self.tolerance = tolerance

            def code(self, data, tolerance):
                theta = 15.0
                while abs(value := sum(math.tanh((theta - x) / 3) for x in data)) > tolerance:
                    theta -= value / sum(1 / math.cosh((theta - x) / 3) ** 2 / 3 for x in data)
                return round(theta * self.steps_of_one)

            @cached_property
            def sensitivity(self):
                exact = {data: self.code(data, 1e-9) for data in self.records}
                pairs = [(a, b) for a in exact for b in exact if sum(map(operator.ne, a, b)) == 1]
                return max(abs(exact[a] - exact[b]) for a, b in pairs)

            def law(self, x):
                noise = RoundedLaplace(Fraction(self.sensitivity))
                center, last = self.code(x, self.tolerance), 30 * self.steps_of_one
                return ClampedNoise(noise, center=center, last=last, decode=lambda k: k / self.steps_of_one)

        assert audit.verify(Newton(1e-9), n=3, values=4).holds
        found = audit.verify(Newton(0.5), n=3, values=4)
        assert not found.holds
        assert found.epsilon > 1.05
