"""One record added or removed: quantiles, sums and counts that do not use n, certified on all small data sets."""

import itertools
import math
from collections import deque
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64

import dpfast as dpf
from dpfast import GlobalSensitivity, Grid, InverseSensitivity, Mechanism, Privacy, audit
from dpfast.laws import NestedIntervals
from dpfast.mechanisms.inverse import private_ranks
from dpfast.statistics import Count, Huber, Mean, Median, Quantile, Sum, TrimmedMean, Variance
from tests.cases import every
from tests.statistical import chi_square_rejects

GRID = Grid(0, 12, step=1)
QS = [0.0, 0.1, 0.25, 0.3, 0.5, 0.7, 0.9, 1.0]


def quantile(q=0.5, epsilon=1.0, grid=GRID, **options):
    return InverseSensitivity(Quantile(q), grid=grid, epsilon=epsilon, neighbors="add-remove", **options)


def shortfall(q, data, g):
    below, at = sum(x < g for x in data), sum(x == g for x in data)
    return max(Fraction(0), below - q * len(data), q * len(data) - below - at)


def slow_law(q, data, epsilon, last):
    """Probabilities straight from the definition of the score."""
    q = Fraction(q)
    scores = [math.ceil(shortfall(q, data, g) / max(q, 1 - q)) for g in range(last + 1)]
    if q not in (0, 1) and scores.count(0) == 1:  # the depth
        scores[scores.index(0)] = 1 - min(score for score in scores if score)
    rate = epsilon if q in (0, 1) else epsilon / 2
    weights = [math.exp(-rate * score) for score in scores]
    return np.array(weights) / math.fsum(weights)


@dataclass(frozen=True)
class AtFullRate(Mechanism):
    """The control: each score at the cost of epsilon."""

    q: float
    grid = GRID

    @property
    def privacy(self):
        return Privacy(1.0, 0.0, "add-remove")

    def law(self, x, *, workers=1):
        return quantile(self.q, 2.0).law(x)


class TestQuantiles:
    @pytest.mark.parametrize("q", QS)
    def test_the_law_is_that_of_the_definition(self, q):
        for n in range(5):
            for data in itertools.combinations_with_replacement([0, 3, 7, 12], n):
                law = quantile(q, selection="exponential").law(np.array(data, dtype=np.float64))
                assert law.pmf(np.arange(13)) == pytest.approx(slow_law(q, data, 1.0, 12), rel=1e-12)

    @every("q", QS)
    @every("epsilon", [0.1, 1.0, 4.0])
    def test_certified_on_all_sizes(self, q, epsilon):
        for n in (1, 2, 3) if epsilon == 1.0 else (2,):
            found = audit.verify(quantile(q, epsilon), n=n, values=4, ordered=False)
            assert found.holds
            assert found.claim == Privacy(epsilon, 0.0, "add-remove")
        assert audit.verify(quantile(q, epsilon, radius=2.0), n=3, values=3, ordered=False).holds

    def test_all_of_epsilon_is_used(self):
        """A record below the median raises the score above it, where most points are, and lowers it between them."""
        mechanism = quantile(0.5, 4.0, Grid(0, 10_000, step=1))
        p, q = (mechanism.law(x).logpmf(np.arange(10_001)) for x in ([10.0, 10.0], [0.0, 10.0, 10.0]))
        assert 0.95 < np.abs(p - q).max() / 4.0 <= 1.0

    @pytest.mark.parametrize("q", [0.0, 1.0])
    def test_all_of_epsilon_is_used_at_the_ends(self, q):
        """A record moves all scores one way there, so that each costs epsilon. The control: at no other q."""
        found = audit.verify(quantile(q, 1.0), n=3, values=4, ordered=False)
        assert found.holds
        assert found.epsilon > 0.85
        assert quantile(q, 1e308)([3.0, 5.0], rng=PCG64(1)) in ([0, 1, 2, 3] if q == 0 else range(5, 13))

    @every("q", [5e-324, 2.0**-20, 0.1, 0.5, 0.9, 1 - 2.0**-53])
    def test_a_score_costs_half_of_epsilon_elsewhere(self, q):
        assert quantile(q, 1.0).law([3.0]).epsilon == 1.0
        if 0.01 < q < 0.99:
            assert not audit.verify(AtFullRate(q), n=3, values=4, ordered=False).holds

    def test_order_does_not_matter(self):
        assert audit.verify(quantile(0.3), n=2, values=3).holds

    @pytest.mark.parametrize("q", [0.25, 0.4, 0.5, 0.6])
    def test_ranks_of_replaced_records_are_rejected(self, q):
        """The control: n used in the rank, charged at the rate for added or removed records."""

        @dataclass(frozen=True)
        class Naive(Mechanism):
            grid = GRID

            @property
            def privacy(self):
                return Privacy(1.0, 0.0, "add-remove")

            def law(self, x, *, workers=1):
                rate = 1.0 / max(q, 1 - q)
                if len(x) == 0:
                    whole = np.array([0]), np.array([12])
                    return NestedIntervals(*whole, epsilon=rate, last=12, grid=GRID)
                return InverseSensitivity(Quantile(q), grid=GRID, epsilon=rate).law(x)

        found = audit.verify(Naive(), n=5, values=3, ordered=False)
        assert not found.holds
        assert found.epsilon > 1.02

    def test_a_mechanism_that_reveals_n_is_rejected(self):
        @dataclass(frozen=True)
        class Telling(Mechanism):
            grid = GRID

            @property
            def privacy(self):
                return Privacy(1.0, 0.0, "add-remove")

            def law(self, x, *, workers=1):
                at = np.array([min(len(x), 12)])
                return NestedIntervals(at, at, epsilon=4.0, last=12, grid=GRID)

        assert not audit.verify(Telling(), n=2, values=2).holds

    @every("q", [0.0, 0.25, 0.3, 0.5, 0.9, 1.0])
    def test_what_the_score_means(self, q):
        """The least number of added and removed records, by search over (below, at, above); or one less."""
        q, most = Fraction(q), 13
        c = max(q, 1 - q)
        states = {s for s in itertools.product(range(most), repeat=3) if sum(s) < most}

        def short(state):
            below, at, _ = state
            return max(Fraction(0), below - q * sum(state), q * sum(state) - below - at)

        steps = {state: 0 for state in states if short(state) == 0}
        queue = deque(steps)
        while queue:
            state = queue.popleft()
            for i, change in itertools.product(range(3), (1, -1)):
                near = tuple(count + change * (j == i) for j, count in enumerate(state))
                if near in states and near not in steps:
                    steps[near] = steps[state] + 1
                    queue.append(near)
        slack = {steps[state] - math.ceil(short(state) / c) for state in states if sum(state) <= 6}
        assert slack <= ({0} if q in (0, Fraction(1, 2), 1) else {0, 1})

    def test_no_data_are_uniform(self):
        law = quantile(0.3).law([])
        assert law.pmf(np.arange(13)) == pytest.approx(np.full(13, 1 / 13), rel=1e-14)
        draws = [int(quantile(0.3)([], rng=PCG64(seed))) for seed in range(1300)]
        assert not chi_square_rejects(np.bincount(draws, minlength=13), np.full(13, 1 / 13))

    @pytest.mark.parametrize("n", [0, 1, 2, 9])
    def test_draws_follow_the_law(self, n):
        mechanism, x = quantile(0.7), np.random.default_rng(n).integers(0, 13, n)
        rng = PCG64(4)
        for draws in (mechanism.release(x, size=4000, rng=rng), [mechanism(x, rng=rng) for _ in range(2000)]):
            counts = np.bincount(np.asarray(draws, dtype=int), minlength=13)
            assert not chi_square_rejects(counts, mechanism.law(x).pmf(np.arange(13)))
            assert chi_square_rejects(counts, quantile(0.2).law([0, 0, 12, *x]).pmf(np.arange(13)))

    @every("grid", [Grid(-4, 60, step=0.25), Grid(-4, 60, missing=3.0), Grid(-4, 60, missing="drop"), dpf.FloatGrid()])
    @every("q", [0.0, 0.3, 0.5, 1.0])
    @every("selection", ["exponential", "permute-and-flip"])
    def test_arrays_are_drawn_from_as_their_law(self, grid, q, selection):
        """By the same words, a kernel draws from an array what the law of its summary draws; others by other ranks."""
        different = 0
        for seed, n in itertools.product(range(4), (0, 1, 7, 60, 700)):
            rng = np.random.default_rng(seed)
            x = np.round(rng.normal(10, 8, n), seed % 3)
            x[rng.random(n) < (0, 0.2, 1)[seed % 3]] = np.nan
            options = {} if isinstance(grid, dpf.FloatGrid) else {"radius": (0.0, 2.5)[seed % 2]}
            mechanism, other = (quantile(level, 2.0, grid, selection=selection, **options) for level in (q, 0.4))
            drawn = mechanism(x, rng=PCG64(seed))
            assert drawn == mechanism.law(x).value(mechanism.law(x).sample(rng=PCG64(seed)))
            different += drawn != other.law(x).value(other.law(x).sample(rng=PCG64(seed)))
        assert different >= 4

    @given(
        st.fractions(0, 1, max_denominator=2**20) | st.sampled_from([5e-324, 1e-300, math.nextafter(1, 0)]),
        st.integers(0, 60) | st.integers(0, 10**12),
        st.integers(1, 40),
    )
    def test_ranks_are_exact(self, q, n, levels):
        q, levels = Fraction(float(q)), min(levels, n + 1)
        c = max(q, 1 - q)
        first, final = private_ranks(q, n, levels)
        for t in range(levels):
            assert first[t] == math.ceil(q * n - t * c)
            assert final[t] == math.floor(q * n + t * c) + 1

    @pytest.mark.parametrize("n", [1, 7, 1000, 50_000])
    def test_the_window_is_wide_enough(self, n):
        """Against the same law from a sort of everything."""
        x = np.random.default_rng(n).normal(50, 20, n)
        mechanism = quantile(0.3, 0.5, Grid(0, 100))
        first, final = private_ranks(Fraction(0.3), n, min(mechanism.cap(n), n))
        padded = np.concatenate([[0], np.sort(mechanism.grid.encode(x)), [mechanism.grid.size - 1]])
        law = mechanism.law(x)
        np.testing.assert_array_equal(law.lower, padded[np.clip(first, 0, n + 1)])
        np.testing.assert_array_equal(law.upper, padded[np.clip(final, 0, n + 1)])

    def test_half_the_noise_of_a_replaced_record(self):
        x, rng = np.arange(10_001.0), np.random.default_rng(1)
        grid = Grid(0, 10_000, step=1)
        replaced, added = (
            InverseSensitivity(Median(), grid=grid, epsilon=0.1, neighbors=neighbors, measure="uniform").release(
                x, size=20_000, rng=rng
            )
            for neighbors in ("replace-one", "add-remove")
        )
        assert 0.45 < np.std(added) / np.std(replaced) < 0.55

    @every("q", [0.0, 0.3, 1.0])
    @every("n", [0, 1, 2, 7])
    def test_levels_beyond_the_number_of_records_are_all_points(self, q, n):
        """So they are left out, and a small epsilon costs no more than the records do."""
        x, mechanism = np.random.default_rng(n).integers(0, 13, n), quantile(q, 1e-12)
        law = mechanism.law(x)
        assert len(law.lower) == max(n, 1) < mechanism.cap(n)
        levels = np.arange(n + 3)
        more = NestedIntervals(
            np.append(law.lower, [0, 0, 0])[levels],
            np.append(law.upper, [12, 12, 12])[levels],
            epsilon=mechanism._rate,
            last=12,
            grid=mechanism.grid,
        )
        assert law.pmf(np.arange(13)) == pytest.approx(more.pmf(np.arange(13)), rel=1e-14)
        assert 0 <= mechanism(x) <= 12

    def test_error_is_that_of_ranks_that_cost_less(self):
        median = InverseSensitivity(Median(), grid=Grid(0, 100), epsilon=0.5, neighbors="add-remove")
        twice = InverseSensitivity(Median(), grid=Grid(0, 100), epsilon=1.0)
        assert median.error(1000, density=0.02) == twice.error(1000, density=0.02)

    def test_only_quantiles(self):
        for statistic in (Mean(), TrimmedMean(0.1), Huber(1.0)):
            with pytest.raises(ValueError, match="neighbors must be 'replace-one' for the"):
                InverseSensitivity(statistic, grid=GRID, epsilon=1.0, neighbors="add-remove")


def total(statistic, grid, epsilon=1.0, noise="auto"):
    return GlobalSensitivity(statistic, grid=grid, epsilon=epsilon, neighbors="add-remove", noise=noise)


GRIDS = [Grid(0, 3, step=1), Grid(-2, 1, step=0.5), Grid(-3, 0, step=1), Grid(1, 2, step=1)]


def ratio(mechanism, x, y):
    """The largest log-ratio of two laws: at the ends, and all between the centers and beyond, where it repeats."""
    laws = [mechanism.law(np.array(data)) for data in (x, y)]
    last = laws[0].support[1]
    assert laws[1].support[1] == last
    near = np.arange(min(law.center for law in laws) - 50, max(law.center for law in laws) + 51)
    points = np.unique(np.clip(np.concatenate([near, [0, last]]), 0, last))
    p, q = (law.logpmf(points) for law in laws)
    inside = np.maximum(p, q) > -700  # both ends are at 2**61 steps, where doubles have no logarithm
    return float(np.abs(p - q)[inside].max())


class TestTotals:
    @every("grid", GRIDS)
    @every("statistic", [Sum(), Count(), Count((-1, 1)), Count((-math.inf, 1))], ids=str)
    @every("noise", ["discrete-laplace", "staircase"])
    def test_one_record_more_or_less(self, statistic, grid, noise):
        mechanism, worst = total(statistic, grid, noise=noise), 0.0
        values = [grid.lower, grid.lower + grid.step, grid.upper]
        for n in range(3):
            for x in itertools.product(values, repeat=n):
                worst = max(worst, *(ratio(mechanism, x, (*x, more)) for more in values))
        assert 0.95 < worst <= 1.0 + 1e-12

    def test_the_sensitivity_of_a_replaced_record_is_rejected(self):
        """The control: on bounds from 1 to 2 one record can add 2, though replacing it changes 1."""
        grid = GRIDS[3]
        mechanism = total(Sum(), grid, epsilon=2.0)  # noise for a sensitivity of 1 at epsilon = 1
        assert ratio(mechanism, [1.0], [1.0, 2.0]) > 1.5

    @pytest.mark.parametrize("n", [0, 1, 100])
    def test_centers(self, n):
        x = np.random.default_rng(n).normal(0, 1, n)
        grid = Grid(-1, 2, step=2.0**-10)
        first = -(2**61)
        exact = sum(int(code) + grid.first for code in grid.encode(x))
        assert total(Sum(), grid).law(x).center + first == exact
        assert total(Count(), grid).law(x).center == n
        released = total(Sum(), grid, epsilon=2.0**20)(x, rng=PCG64(1))
        assert released == pytest.approx(exact * grid.step, abs=1e-2)

    def test_parameters(self):
        with pytest.raises(ValueError, match="beyond the range of float64"):
            total(Variance(), Grid(0, 2.0**1000, step=2.0**990))
        with pytest.raises(ValueError, match="the count, which is public"):
            GlobalSensitivity(Count(), grid=GRIDS[0], epsilon=1.0)
        with pytest.raises(ValueError, match="beyond the range of float64"):
            total(Sum(), Grid(0, 2.0**1000, step=2.0**990))
        with pytest.raises(ValueError, match="beyond the range of float64"):
            total(Sum(), Grid(-(2.0**1000), 0, step=2.0**990))
        with pytest.raises(TypeError, match="no error is known"):
            total(Sum(), GRIDS[0]).error(100, deviation=1.0)
        assert total(Sum(), GRIDS[0]).privacy == Privacy(1.0, 0.0, "add-remove")
        with pytest.raises(ValueError, match="one of"):
            GlobalSensitivity(Sum(), grid=GRIDS[0], epsilon=1.0, neighbors="local")


class TestCount:
    KINDS = (
        np.array([0.1, 0.5, np.nan, np.inf, -np.inf, -0.0, 2.0**53]),
        np.array([0.1, 0.5, 7.0], np.float32),  # 0.1 is above the double 0.1 there
        np.array([0, 1, 2**62]),
        np.array([], np.int16),
        np.array([True, False, True]),
        [0.1, None, 0.5],
        np.ma.masked_array([0.25, 0.3], mask=[True, False]),
        np.arange(10.0)[::-3],
    )

    @every("within", [None, (0.1, 0.5), (0, 0.1), (0, math.inf), (-math.inf, math.inf), (0.5, 0.5), (3, 4)])
    def test_what_is_counted(self, within):
        lower, upper = within or (-math.inf, math.inf)
        mechanism = GlobalSensitivity(Count(within), grid=GRID, epsilon=1.0, neighbors="add-remove")
        for x in self.KINDS:
            values = (
                np.ma.filled(np.ma.asarray(x, np.float64), np.nan) if not isinstance(x, list) else [0.1, np.nan, 0.5]
            )
            expected = len(values) if within is None else sum(lower <= float(v) <= upper for v in values)
            assert mechanism.law(x).center == expected
            state = mechanism.start()
            state.update(x)
            again = type(state).from_bytes(state.to_bytes(), mechanism)
            assert again.law().center == expected
            assert dpf.count(x, within=within, epsilon=2.0**20, rng=PCG64(1)) == expected

    def test_chunks_of_all_kinds(self):
        total = sum(map(len, self.KINDS))
        assert dpf.count(dpf.Chunks(self.KINDS), epsilon=1e9, rng=PCG64(1), workers=2) == total
        assert dpf.count(dpf.Chunks([]), epsilon=1e9, rng=PCG64(1)) == 0

    def test_draws_follow_the_law(self):
        x = np.zeros(20)
        mechanism = total(Count(), GRID, 0.5)
        assert all(dpf.count(x, epsilon=0.5, rng=PCG64(i)) == mechanism(x, rng=PCG64(i)) for i in range(20))
        counts = np.bincount(mechanism.release(x, size=100_000, rng=PCG64(1)).astype(int))
        for epsilon, wrong in ((0.5, False), (0.45, True), (0.55, True)):
            p = total(Count(), GRID, epsilon).law(x).pmf(np.arange(len(counts)))
            assert chi_square_rejects([*counts, 0], [*p, max(0.0, 1 - math.fsum(p))]) == wrong

    def test_a_release(self):
        released = dpf.count([1.0] * 5, epsilon=0.1)
        assert type(released) is int
        assert released >= 0
        assert "count of values from 0.0 to 1.0: epsilon" in repr(total(Count((0, 1)), GRID))
        with dpf.Ledger(1.0, neighbors="add-remove") as ledger:
            dpf.count([1.0], epsilon=0.75)
        assert ledger.remaining.epsilon == 0.25
        with dpf.Ledger(1.0), pytest.raises(dpf.BudgetError, match=r"epsilon = 1\.5 does not fit"):
            dpf.count([1.0], epsilon=0.75)

    def test_of_groups(self):
        labels = np.array([0, 2, 2, 1, 2, 9, -1])
        counts = dpf.by_group(total(Count(), GRID, 1e6), np.zeros(7), labels=labels, num_groups=4, rng=PCG64(1))
        assert counts.tolist() == [1, 1, 3, 0]

    @every(
        "within, error, message",
        [
            ((1, 0), ValueError, r"within must be in order, not \(1.0, 0.0\)"),
            ((math.nan, 1), ValueError, "in order"),
            (3, TypeError, "within must be a pair"),
            ((1, 2, 3), TypeError, "within must be a pair"),
            (("a", "b"), TypeError, "within must be a pair"),
        ],
    )
    def test_parameters(self, within, error, message):
        with pytest.raises(error, match=message):
            dpf.count([1.0], within=within, epsilon=1.0)


def test_histograms_pass_the_audit_of_added_records():
    grid = Grid(0, 3, step=1)
    mechanism = dpf.densities.PerturbedHistogram(2, grid=grid, epsilon=1.0, neighbors="add-remove")
    for x, y in [([0.0], [0.0, 3.0]), ([], [1.0])]:
        points = np.array(list(itertools.product(range(-6, 7), repeat=2)))
        p, q = (mechanism.law(np.array(data)).logpmf(points) for data in (x, y))
        assert np.abs(p - q).max() == pytest.approx(1.0)
