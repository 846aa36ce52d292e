"""Robust scores, and releases reduced to them."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64

import dpfast as dpf
from dpfast import Grid, InverseSensitivity, NestedBoxes, robust
from dpfast.robust import reduction
from dpfast.statistics import Huber, InterquartileRange, Mean, Median, Quantile, Sum
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.kernel

GRID = Grid(0, 100, step=1)


class TestScore:
    @given(
        st.lists(st.integers(0, 3), min_size=1, max_size=3),
        st.sampled_from([Median(), Quantile(0.3), Huber(1.0)]),
        st.sampled_from([(0, 0), (0.5, 0.5), (2, 1), (1.5, 0.75), (-1, 1), (1, 0)]),
    )
    def test_is_the_least_number_of_replaced_records(self, x, statistic, target):
        grid, (theta, radius) = Grid(0, 3, step=1), target
        least = math.inf
        for y in itertools.product(range(4), repeat=len(x)):
            value = InverseSensitivity(statistic, grid=grid, epsilon=1.0).law(y).lower[0]
            if abs(value - theta) <= radius:
                least = min(least, sum(a != b for a, b in zip(x, y, strict=True)))
        assert robust.score(statistic, x, theta, radius, grid=grid) == least

    def test_sums_and_ranges(self):
        x, grid = [0, 2, 4, 8, 10], Grid(0, 10, step=1)
        assert robust.score(Mean(), x, 4.8, 1e-9, grid=grid) == 0
        assert robust.score(Mean(), x, 6.8, 1e-9, grid=grid) == 1
        assert robust.score(InterquartileRange(), x, 6.0, grid=grid) == 0
        assert robust.score(Median(), x, -1.0, 1.0, grid=grid) == 2

    def test_parameters(self):
        for bad in ({"theta": math.nan}, {"radius": -1}, {"estimator": Sum()}, {"theta": 120.0}):
            arguments = {"estimator": Median(), "theta": 1.0, "radius": 0.0, **bad}
            with pytest.raises((TypeError, ValueError), match=r"theta|radius|estimator"):
                robust.score(x=[1, 2], grid=GRID, **arguments)
        with pytest.raises(TypeError, match=r"grid must be a dpfast\.Grid, not tuple"):
            robust.score(Median(), [1, 2], 1.0, grid=(0, 4))


class TestReduce:
    @pytest.mark.slow
    def test_frequencies(self):
        scores = {"a": 3, "b": 0, "c": 1.7, "d": 1, "e": math.inf, "f": math.nan}
        counts = dict.fromkeys(scores, 0)
        source = PCG64(1)
        for _ in range(20_000):
            counts[robust.reduce(scores.get, scores, epsilon=1.5, rng=source)] += 1
        weights = {c: math.exp(-0.75 * s) for c, s in {"a": 3, "b": 0, "c": 1.7, "d": 1, "e": 99, "f": 99}.items()}
        for factor, wrong in ((1.0, False), (0.9, True), (1.1, True)):
            p = np.array([w**factor for w in weights.values()])
            assert chi_square_rejects(list(counts.values()), p / p.sum()) == wrong

    def test_extremes(self):
        assert robust.reduce(lambda c: 7, ["only"], epsilon=1.0) == "only"
        assert robust.reduce(lambda c: abs(c - 4), range(9), epsilon=1e3) == 4
        assert {robust.reduce(lambda c: math.inf, "ab", epsilon=1.0, rng=PCG64(s)) for s in range(40)} == {"a", "b"}
        assert robust.reduce(lambda c: 10**400 * c, range(3), epsilon=1e-6) == 0
        assert robust.reduce(lambda c: Fraction(10**400 * c), range(3), epsilon=1e-6) == 0
        assert robust.reduce(lambda c: [None, np.array(3)][c], range(2), epsilon=1.0) == 1
        with pytest.raises(ValueError, match="candidates must not be empty"):
            robust.reduce(float, [], epsilon=1.0)
        with pytest.raises(ValueError, match="epsilon must be positive"):
            robust.reduce(float, [1], epsilon=0)
        with pytest.raises(TypeError, match="score must be a function of a candidate, not list"):
            robust.reduce([0, 1], [0, 1], epsilon=1)

    def test_scores_count_exactly(self):
        """A score that changes by 1 must not change by more in the conversion; as doubles these do."""
        low, high = Fraction(2, 3), Fraction(5, 3)
        assert np.subtract(*reduction._exact([high, low])) == 1
        assert Fraction(float(high)) - Fraction(float(low)) > 1
        exact = [3, Fraction(2, 3), 2**60 + 1, 2**70 + 1]
        assert reduction._exact([np.array(value) for value in exact]) == exact
        assert reduction._exact([math.nan, None]) == [math.inf, math.inf]

    def test_is_the_median(self):
        """With the score of the median the choice among all points of the grid is the mechanism on that grid."""
        x, grid = [1, 1, 4, 7], Grid(0, 8, step=1)
        scores = {c: robust.score(Median(), x, c, grid=grid) for c in range(9)}
        law = InverseSensitivity(Median(), grid=grid, epsilon=1.0).law(x)
        assert law.score(np.arange(9)).tolist() == list(scores.values())


class TestError:
    MECHANISM = NestedBoxes(grid=Grid(-1000, 1000), epsilon=1.0)

    @pytest.mark.slow
    def test_covers_normal_records(self):
        """In data units, contaminated or not; the bound is at most six times the error."""
        rng = np.random.default_rng(3)
        for n, d, deviation in ((2000, 2, 3.0), (8000, 5, 0.5)):
            bound = self.MECHANISM.error(n, deviation=deviation, dimension=d)
            errors = [np.abs(self.MECHANISM(rng.normal(0, deviation, (n, d)), rng=rng)).max() for _ in range(40)]
            assert max(errors) < bound < 6 * max(errors)
            assert bound < self.MECHANISM.error(n, deviation=deviation, dimension=d, contamination=0.05)

    def test_is_the_theorem(self):
        grids = (Grid(0, 100), Grid(0, 400))
        found = NestedBoxes(grid=grids, epsilon=0.5).error(5000, deviation=2.0)
        expected = dpf.theory.gaussian_mean_error(
            5000, dimension=2, epsilon=0.5, width=200.0, step=max(g.step for g in grids) / 2
        )
        assert found == 2 * expected

    def test_sample_size_is_the_inverse(self):
        n = self.MECHANISM.sample_size(0.5, deviation=1.0, dimension=3)
        assert self.MECHANISM.error(n, deviation=1.0, dimension=3) <= 0.5
        assert self.MECHANISM.error(n - 1, deviation=1.0, dimension=3) > 0.5

    def test_errors_without_a_theory(self):
        with pytest.raises(TypeError, match="dimension="):
            self.MECHANISM.error(100, deviation=1.0)
        for options in ({"statistic": Mean()}, {"radius": 1.0}, {"scale": 2.0}):
            with pytest.raises(TypeError, match="medians"):
                NestedBoxes(**{"grid": Grid(0, 1), "epsilon": 1.0, **options}).error(100, deviation=1.0, dimension=2)
