"""T45: Running totals: exact sensitivities of all small streams, laws by enumeration, errors; states without copies."""

import copy
import itertools
import math
import pickle
import threading
from contextlib import nullcontext, suppress
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
from numpy.random import PCG64
from scipy.stats import chi2

import dpfast as dpf
from dpfast import Bins, Categories, Running
from dpfast.core.divergences import gaussian_delta_up
from dpfast.laws import DiscreteLaplace, RoundedGaussian
from dpfast.mechanisms.factors import SquareRoot, WeightedRoot, square_root
from dpfast.running import RunningState, ThresholdState
from dpfast.running.files import StateFile
from dpfast.running.schemes import Factored, Tree, Weighted
from dpfast.statistics import Count, Mean, Sum
from tests.cases import every
from tests.forks import in_child, needs_fork
from tests.reference import running as slow
from tests.statistical import ALPHA
from tests.untouchable import Untouchable

LENGTHS = (24, 365, 10_000)
GRID = dpf.Grid(-3, 5, step=1)


class Recorded:
    """Totals whose noisy numbers are given, by default the exact ones, which are kept."""

    def __init__(self, scheme, shape=(), given=None):
        self.exact, self._given, self._totals = [], given, scheme.start(shape)

    def step(self, x):
        """The estimate after one more period."""
        exact, done = self._totals.exact(x), len(self.exact)
        self.exact += [np.array(number).tolist() for number in exact]
        self._totals.add(x, exact if self._given is None else self._given[done : len(self.exact)])
        return self._totals.estimate()


def exact_numbers(scheme, x):
    """The exact numbers to which the state adds noise, for the integers of each period, and the estimates."""
    recorded = Recorded(scheme, np.shape(x[0]))
    estimates = [recorded.step(np.array(part)) for part in x]
    return recorded.exact, estimates


ONE = {"square": 1, "per_unit": 1, "mu": 1.0}


class TestFactor:
    @pytest.mark.parametrize("periods", [1, 2, 3, 7, 24, 100])
    def test_estimates_are_exact_inverses(self, periods):
        factor = SquareRoot(periods)
        roots = [Fraction(math.comb(2 * k, k), 4**k) for k in range(periods)]
        assert factor.column.tolist() == [round(2**12 * c) for c in roots]
        exact = [float(g) for g in slow.estimates(factor.column.tolist(), 12)]
        assert np.allclose(factor.estimate, exact, rtol=0, atol=1e-14)

    def test_long_inverses(self):
        factor = square_root(10_000)
        short = SquareRoot(10_000)
        short.column = short.column[:300]
        assert np.allclose(factor.estimate[:300], short.estimate, rtol=0, atol=1e-13)
        a, b = factor.column / 2.0**12, factor.estimate
        assert all(abs(a[k::-1] @ b[: k + 1] - 1) < 1e-12 for k in (999, 5000, 9999))

    @every("periods, bits, width", itertools.product(range(1, 7), (1, 2, 12), (None, 1, 2, 4)))
    def test_the_first_columns_are_the_worst(self, periods, bits, width):
        factor = SquareRoot(periods, bits, width)
        assert not factor.column[width or periods :].any()
        for changed, distance in itertools.product(range(1, periods + 1), (1, 2, 3, 9)):
            expected = slow.greatest_square(factor.column.tolist(), changed, distance=distance)
            assert factor.square(changed, distance) == expected

    @every("per_unit, distance, gain", [(12, 30, 1.1), (52, 7, 1.2), (365, 1, 1.3), (7, 1, 1.0)])
    def test_widths_for_units(self, per_unit, distance, gain):
        """The error of a year for units, next to that of all entries."""
        whole, best = SquareRoot(365), square_root(365, per_unit, distance)
        errors = [math.sqrt(f.square(per_unit, distance)) * np.linalg.norm(f.estimate) for f in (whole, best)]
        assert errors[0] >= gain * errors[1]
        assert best.width == {12: 60, 52: 28, 365: 1, 7: 365}[per_unit]

    @pytest.mark.parametrize("periods", LENGTHS)
    def test_error(self, periods):
        """The noise of one total, times the sum of the squares; less with weights, up to 4,096 periods."""
        roots = np.cumprod(np.concatenate([[1.0], 1 - 0.5 / np.arange(1, periods)]))
        most = 1.001 if periods > 4096 else 0.94
        for mu in (0.1, 1.0):
            running = Running(Count(), periods=periods, mu=mu, neighbors="add-remove")
            assert most - 0.02 < running.error(periods) * mu / (roots**2).sum() < most

    @pytest.mark.parametrize("periods", [1, 2, 3, 7, 24])
    def test_weights(self, periods):
        """Estimates and errors are those of the matrix; the columns are no longer than the first, and about as long."""
        factor = WeightedRoot(periods)
        rows = np.array(slow.matrix(factor.column.tolist())) * factor.weights
        norms = np.sum(rows**2, axis=0)
        assert factor.square() == norms.max() == norms[0]
        assert norms.min() > 0.98 * norms[0]
        exact = np.tril(np.ones((periods, periods))) @ np.linalg.inv(rows) * 2**factor.bits
        assert np.allclose(factor.squares, np.sum(exact**2, axis=1), rtol=1e-12)
        for t in range(1, periods + 1):
            assert np.allclose(factor.row(t)[::-1], exact[t - 1, :t], rtol=0, atol=1e-15)
        scheme = Weighted(factor, square=1, mu=1.0)
        assert math.isclose(scheme.greatest_deviation(periods), max(map(scheme.deviation, range(1, periods + 1))))
        if periods > 2:
            found = scheme.difference(2, periods) * 2**factor.bits / math.sqrt(scheme.noise.variance)
            assert math.isclose(found, np.linalg.norm(exact[-1] - exact[1]), rel_tol=1e-12)

    def test_gain_of_weights(self):
        """Less error after each period than without weights."""
        with_weights, without = Weighted(WeightedRoot(365), square=1, mu=1.0), Factored(SquareRoot(365), **ONE)
        assert all(with_weights.deviation(t) < 1.001 * without.deviation(t) for t in range(1, 366))
        assert with_weights.deviation(365) < 0.82 * without.deviation(365)


class TestTree:
    @every("periods, levels", [(1, 1), (5, 1), (8, 3), (9, 2), (13, 2), (27, 3), (16, 4)])
    def test_estimates_are_least_squares(self, periods, levels):
        tree = Tree(periods, levels=levels, change=1, per_unit=1, epsilon=0.1)
        unit = tree.noise.variance
        variances = [tree.deviation(t) ** 2 / unit for t in range(1, periods + 1)]
        for t, variance in enumerate(variances, 1):
            expected = slow.least_squares_variance(t, tree.blocks, levels)
            assert math.isclose(variance, expected, rel_tol=1e-9)
            assert math.isclose(tree.greatest_deviation(t) ** 2 / unit, max(variances[:t]), rel_tol=1e-12)

    @pytest.mark.parametrize("periods", LENGTHS)
    def test_error_is_less_than_that_of_a_binary_tree(self, periods):
        running = Running(Count(), periods=periods, epsilon=1.0, neighbors="add-remove")
        levels = (periods - 1).bit_length()
        binary = slow.equal_blocks(periods, 2, levels) * DiscreteLaplace(levels).variance
        assert running.error(periods) < 0.7 * math.sqrt(binary)

    @every("periods, gain", [(365, 1.14), (1000, 1.19), (10_000, 1.26)])
    def test_error_is_less_than_that_of_equal_blocks(self, periods, gain):
        running = Running(Count(), periods=periods, epsilon=1.0, neighbors="add-remove")
        bases = {levels: math.ceil(periods ** (1 / levels) - 1e-9) for levels in (2, 3, 4)}
        equal = [slow.equal_blocks(periods, b, h) * DiscreteLaplace(h).variance for h, b in bases.items()]
        assert running.error(periods) * gain < math.sqrt(min(equal))


SCHEMES = [
    lambda periods: Factored(SquareRoot(periods), square=1, per_unit=1, mu=1.0),
    lambda periods: Factored(SquareRoot(periods, 1), square=1, per_unit=1, mu=1.0),
    lambda periods: Weighted(WeightedRoot(periods), square=1, mu=1.0),
    lambda periods: Factored(SquareRoot(periods, width=3), square=1, per_unit=2, distance=3, mu=1.0),
    lambda periods: Tree(periods, levels=1, change=1, per_unit=1, epsilon=1.0),
    lambda periods: Tree(periods, levels=2, change=1, per_unit=1, epsilon=1.0),
    lambda periods: Tree(periods, levels=3, change=1, per_unit=1, epsilon=1.0),
]


class TestEstimates:
    @every("make, shape", itertools.product(SCHEMES, [(), (3,)]), ids=str)
    def test_without_noise_they_are_the_totals(self, make, shape):
        x = np.random.default_rng(1).integers(-50, 50, (20, *shape))
        _, estimates = exact_numbers(make(20), x)
        assert np.allclose(estimates, np.cumsum(x, axis=0), rtol=0, atol=1e-9)

    @every("make", SCHEMES, ids=str)
    def test_they_are_functions_of_the_noisy_numbers_alone(self, make):
        given, found = np.random.default_rng(2).integers(-50, 50, 100).tolist(), []
        for x in (np.zeros(15, np.int64), np.arange(15)):
            recorded = Recorded(make(15), given=given)
            found.append([float(recorded.step(part)) for part in x])
        assert found[0] == found[1]


def array_of_numbers(scheme, stream):
    return np.array(exact_numbers(scheme, stream)[0], dtype=object)


def norms(scheme, pair):
    """The l1 and the squared l2 distance of the exact numbers of two streams."""
    return distances(*(array_of_numbers(scheme, stream) for stream in pair))


def distances(a, b):
    difference = [abs(entry) for entry in (a - b).reshape(-1).tolist()]
    return sum(difference), sum(entry**2 for entry in difference)


def worst(make, periods, changed=1, values=(0, 1, 2)):
    """The greatest distances for all neighbours."""
    numbers = cache(lambda stream: array_of_numbers(make(), stream))
    found = [distances(numbers(x), numbers(y)) for x, y in slow.neighbours(periods, values, changed)]
    return [max(each) for each in zip(*found, strict=True)]


def coefficients(scheme, periods):
    """The coefficients of the noisy numbers in each estimate, in rows."""
    recorded = Recorded(scheme)
    for _ in range(periods):
        recorded.step(0)
    units = [Recorded(scheme, given=unit.tolist()) for unit in np.eye(len(recorded.exact))]
    return np.array([[float(unit.step(0)) for _ in range(periods)] for unit in units]).T


class TestDifferences:
    @every("make", SCHEMES, ids=str)
    def test_deviations_are_those_of_the_estimates(self, make):
        periods = 16
        scheme, found = make(periods), coefficients(make(periods), periods)
        unit = math.sqrt(scheme.noise.variance)
        for late in range(1, periods + 1):
            assert math.isclose(scheme.deviation(late), unit * np.linalg.norm(found[late - 1]), rel_tol=1e-9)
            for early in range(1, late):
                exact = unit * np.linalg.norm(found[late - 1] - found[early - 1])
                assert math.isclose(scheme.difference(early, late), exact, rel_tol=1e-9)

    def test_intervals_cover(self):
        cells = 4000
        for options in ({"mu": 1.0}, {"epsilon": 1.0}, {"epsilon": 1.0, "periods": None}):
            given = {"periods": 9, "neighbors": "add-remove", **options}
            running = Running(Categories(range(cells)), **given)
            state = running.start(rng=PCG64(6))
            totals = [state.release()[:cells] for _ in range(9)]
            for value, exact in [((9,), totals[8]), ((9, 4), totals[8] - totals[3]), ((3, 2), totals[2] - totals[1])]:
                low, high = running.noise_interval(exact, *value, confidence=0.9)
                covered = np.mean((low <= 0) & (high >= 0))
                assert 0.88 < covered < (0.92 if "mu" in options else 0.97)

    def test_refusals(self):
        running = Running(Count(), periods=5, mu=1.0)
        for call, match in [
            (lambda: running.standard_error(6), "at most the number of periods"),
            (lambda: running.standard_error(3, 3), "since must be less"),
            (lambda: running.noise_interval(1.0, 2, confidence=1.0), "confidence"),
            (lambda: running.monotone([[1.0]]), "one row for each period"),
            (lambda: running.monotone([np.nan]), "finite"),
        ]:
            with pytest.raises(ValueError, match=match):
                call()
        mean = Running(Mean(), grid=GRID, periods=5, mu=1.0)
        for call in (lambda: mean.noise_interval(1.0, 2), lambda: mean.monotone([1.0])):
            with pytest.raises(TypeError, match=r"mean depends|of mean"):
                call()

    def test_monotone_totals(self):
        """Less error than the totals, where counts do not grow; the nearest ones, by weights."""
        running = Running(Count(), periods=100, mu=0.1, neighbors="add-remove")
        state = running.start(rng=PCG64(7))
        totals = [state.release() for _ in range(100)]
        found = running.monotone(totals)
        assert (np.diff(found) >= 0).all()
        assert found[0] >= 0
        assert np.sum(found**2) < np.sum(np.square(totals)) / 2
        assert np.allclose(running.monotone([3.0, 1.0]), slow.pooled([3.0, 1.0], running))
        cells = Running(Categories(["a", "b"]), periods=3, mu=1.0)
        assert cells.monotone([[1.0, 2.0, 0.0], [0.0, 3.0, 0.0]]).shape == (2, 3)


class TestPlots:
    @pytest.mark.host
    def test_band(self):
        figure = pytest.importorskip("matplotlib.figure")
        running = Running(Count(), periods=5, mu=1.0)
        ax = figure.Figure().add_subplot()
        assert running.plot([3.0, 8.0, 9.5], ax, unit="visits") is ax
        assert ax.get_ylabel() == "total (visits)"
        [line], [band] = ax.lines, ax.collections
        assert line.get_ydata().tolist() == [3.0, 8.0, 9.5]
        low, high = running.noise_interval(9.5, 3)
        assert {low, high} <= set(band.get_paths()[0].vertices[:, 1].tolist())
        assert "mu = 1" in ax.texts[0].get_text()

    def test_refusals(self):
        cells = Running(Categories(["a", "b"]), periods=3, mu=1.0)
        for running, totals in [(cells, [1.0]), (Running(Count(), mu=1.0), [[1.0]]), (Running(Count(), mu=1.0), [])]:
            with pytest.raises(ValueError, match="one number for each period"):
                running.plot(totals)


class TestUnknownPeriods:
    """Schemes one after the other: a record is in one of them."""

    @every("options", [{"mu": 1.0}, {"epsilon": 1.0}], ids=str)
    def test_estimates(self, options):
        x = np.random.default_rng(1).integers(0, 50, 300)
        _, found = exact_numbers(Running(Count(), **options).scheme, x.tolist())
        assert np.allclose(found, np.cumsum(x), rtol=0, atol=1e-6)

    @every("options", [{"mu": 1.0}, {"epsilon": 1.0}], ids=str)
    def test_each_period_has_the_guarantee(self, options):
        """The exact numbers of a changed record: the greatest change by one in a period of each of the schemes."""
        running = Running(Count(), **options)
        for place in (0, 15, 16, 30, 271, 272):
            streams = []
            for changed in (0, 1):
                scheme, exact = running.scheme, []
                totals = scheme.start(())
                for period in range(place + 20):
                    x = changed if period == place else 0
                    noise = scheme.next_part(period).noise
                    exact += [(number, noise) for number in totals.exact(x)]
                    totals.add(x, [0] * len(totals.exact(x)))
                streams.append(exact)
            assert len(streams[0]) == len(streams[1])
            changes = [(abs(a - b), noise) for (a, noise), (b, _) in zip(*streams, strict=True)]
            if "mu" in options:
                assert sum(Fraction(int(c)) ** 2 / Fraction(noise.scale) ** 2 for c, noise in changes) <= 1
            else:
                assert sum(int(c) / noise.scale for c, noise in changes) <= 1

    def test_errors(self):
        for options, most in [({"mu": 1.0}, 1.7), ({"epsilon": 1.0}, 1.9)]:
            unknown = Running(Count(), **options)
            for periods in (16, 24, 40, 365, 10_000):
                ratio = unknown.error(periods) / Running(Count(), periods=periods, **options).error(periods)
                assert 0.99 < ratio < most

    def test_differences_of_independent_parts(self):
        scheme = Running(Count(), mu=1.0).scheme
        first, second = scheme._of(16), scheme._of(256)
        expected = first.difference(10, 16) ** 2 + second.deviation(4) ** 2
        assert math.isclose(scheme.difference(10, 20) ** 2, expected)
        assert math.isclose(scheme.difference(16, 20), second.deviation(4))
        assert math.isclose(scheme.difference(17, 20), second.difference(1, 4))

    def test_distance_needs_units(self):
        with pytest.raises(ValueError, match="distance=7 needs per_unit above 1"):
            Running(Count(), periods=30, mu=1.0, distance=7)
        apart = Running(Count(), periods=365, mu=1.0, per_unit=12, distance=30)
        assert "at least 30 periods apart" in repr(apart)
        assert apart.error(365) < 0.6 * Running(Count(), periods=365, mu=1.0, per_unit=12).error(365)

    def test_units_and_numbers(self):
        with pytest.raises(ValueError, match="periods must be given for per_unit=2"):
            Running(Count(), mu=1.0, per_unit=2)
        state = Running(Count(), mu=1.0).start()
        for _ in range(20):
            state.release()
        assert state.period == 20
        assert "any number of periods" in repr(state)


class TestPrivacy:
    """The loss of noise on exact integers is a function of their distance, for all small streams, in rationals."""

    @every("periods, per_unit", [(1, 1), (2, 1), (4, 1), (5, 1), (3, 2), (4, 2), (4, 4), (2, 3)])
    def test_gaussian(self, periods, per_unit):
        mu = 0.5

        def scheme(per_unit=per_unit):
            return Factored(SquareRoot(periods), square=2**2, per_unit=per_unit, mu=mu)

        _, square = worst(scheme, periods, per_unit)
        variance = Fraction(scheme().noise.scale) ** 2
        assert square <= variance * Fraction(mu) ** 2 < square * (1 + Fraction(1, 10**12))
        if min(per_unit, periods) > 1:  # the sensitivity of one period
            assert square > 1.5 * Fraction(scheme(1).noise.scale) ** 2 * Fraction(mu) ** 2

    @every("periods", [1, 2, 3, 5])
    def test_weighted(self, periods):
        """The control are weights that do not count in the noise."""
        scheme = partial(Weighted, WeightedRoot(periods), square=2**2, mu=0.5)
        _, square = worst(scheme, periods, 1)
        variance = Fraction(scheme().noise.scale) ** 2
        assert square <= variance * Fraction(0.5) ** 2 < square * (1 + Fraction(1, 10**12))
        without = Factored(SquareRoot(periods, 8), square=2**2, per_unit=1, mu=0.5).noise
        assert square > Fraction(without.scale) ** 2 * Fraction(0.5) ** 2

    @every("periods, levels, per_unit", [(1, 1, 1), (4, 1, 1), (4, 2, 1), (5, 2, 1), (5, 3, 1), (4, 2, 2), (3, 1, 5)])
    def test_pure(self, periods, levels, per_unit):
        epsilon = 0.3

        def scheme(per_unit=per_unit):
            return Tree(periods, levels=levels, change=2, per_unit=per_unit, epsilon=epsilon)

        distance, _ = worst(scheme, periods, per_unit)
        tight = math.comb(scheme().blocks + levels - 1, levels - 1) <= periods  # the first of the greatest blocks ends
        loss = Fraction(distance) / scheme().noise.scale
        assert loss <= Fraction(epsilon)
        assert loss == Fraction(epsilon) or not tight or per_unit > 1
        if min(per_unit, periods) > 1:
            assert Fraction(distance) / scheme(1).noise.scale > Fraction(epsilon)

    def test_pure_distances(self):
        """A unit in two of four periods, at least three apart, or in one of two that are less."""
        far, near = (Tree(4, levels=2, change=2, per_unit=3, epsilon=0.3, distance=apart) for apart in (3, 5))
        for tree, apart in ((far, 3), (near, 5)):
            pairs = slow.neighbours(4, (0, 1, 2), 3, apart)
            distance = max(norms(copy.copy(tree), pair)[0] for pair in pairs)
            assert Fraction(distance) / tree.noise.scale <= Fraction(0.3)
        close = max(norms(copy.copy(far), pair)[0] for pair in slow.neighbours(4, (0, 1, 2), 3))
        assert Fraction(close) / far.noise.scale > Fraction(0.3)  # the control: the promise is broken

    @pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
    def test_histograms(self, neighbors):
        """A replaced record leaves a cell for another one."""
        statistic, periods = Categories([0, 1], missing=0), 3
        gaussian = Running(statistic, periods=periods, mu=1.0, neighbors=neighbors).scheme
        pure = Running(statistic, periods=periods, epsilon=1.0, neighbors=neighbors).scheme
        pairs = [([0], [1]), ([0, 1], [1, 1])] if neighbors == "replace-one" else [([], [0]), ([0], [0, 1])]
        most = 2 if neighbors == "replace-one" else 1
        for place, (a, b) in itertools.product(range(periods), pairs):
            streams = np.zeros((2, periods, 2), np.int64)
            for x, records in zip(streams, (a, b), strict=True):
                x[place] = np.bincount(np.array(records, np.int64), minlength=2)
            _, square = norms(copy.copy(gaussian), streams)
            distance, _ = norms(copy.copy(pure), streams)
            assert square <= Fraction(gaussian.noise.scale) ** 2
            assert place or 2 * square > Fraction(gaussian.noise.scale) ** 2
            assert distance == pure.noise.scale == most * pure.levels


def product_law(noise, center, reach):
    """Probabilities of all vectors of noisy integers within a box around 0."""
    z = np.arange(-reach, reach + 1, dtype=float)
    out = np.ones(())
    for c in center:
        out = np.multiply.outer(out, np.exp(noise.logpmf(z - c)))
    return out


def excess(p, q, epsilon):
    """The hockey-stick divergence, both ways."""
    growth = math.exp(epsilon)
    return max(np.maximum(p - growth * q, 0).sum(), np.maximum(q - growth * p, 0).sum())


class TestLaws:
    """All laws of all small streams of coarse factors, whose noise is small enough to enumerate."""

    def losses(self, noise, rows, periods, changed, mu, reach, distance=1):
        for x, y in slow.neighbours(periods, (0, 1), changed, distance):
            p, q = (product_law(noise, slow.times(rows, z), reach) for z in (x, y))
            for epsilon in (0.0, 0.5, 1.5, 4.0):
                yield excess(p, q, epsilon) - gaussian_delta_up(Fraction(mu) ** 2, Fraction(epsilon))

    @every("periods, per_unit", [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2)])
    def test_gaussian(self, periods, per_unit):
        mu, factor = 2.0, SquareRoot(periods, 1)
        scheme = Factored(factor, square=1, per_unit=per_unit, mu=mu)
        rows, reach = slow.matrix(factor.column.tolist()), 24
        assert max(self.losses(scheme.noise, rows, periods, per_unit, mu, reach)) < 1e-9

    @every("width", [None, 2])
    def test_distances(self, width):
        """Units in two periods with one between; the control are neighbouring periods."""
        mu, factor = 2.0, SquareRoot(3, 1, width)
        scheme = Factored(factor, square=1, per_unit=2, distance=2, mu=mu)
        rows = slow.matrix(factor.column.tolist())
        assert max(self.losses(scheme.noise, rows, 3, 2, mu, 24, distance=2)) < 1e-9
        assert max(self.losses(scheme.noise, rows, 3, 2, mu, 24)) > 1e-3

    def test_controls(self):
        """Noise for one period where a unit is in two, and noise of one total on the exact sums."""
        mu, factor = 2.0, SquareRoot(3, 1)
        rows = slow.matrix(factor.column.tolist())
        for_one = Factored(factor, square=1, per_unit=1, mu=mu).noise
        assert max(self.losses(for_one, rows, 3, 2, mu, 24)) > 0.1
        sums = slow.matrix([1, 1, 1])
        assert max(self.losses(RoundedGaussian(1 / mu), sums, 3, 1, mu, 24)) > 0.1
        slightly = RoundedGaussian(float(for_one.scale) * 0.97)
        assert max(self.losses(slightly, rows, 3, 1, mu, 24)) > 1e-4

    @every("seed", range(20))
    def test_adaptive_streams(self, seed):
        """Records of later periods that depend on earlier noisy numbers: the joint law of a tree of five periods."""
        rng, epsilon = np.random.default_rng(seed), 2.0
        tree = Tree(5, levels=2, change=1, per_unit=1, epsilon=epsilon)
        blocks = slow.blocks(5, tree.blocks, 2)
        assert blocks == [(0, 1), (1, 2), (2, 3), (0, 3), (3, 4), (4, 5), (3, 5)]
        noisy = np.stack(np.meshgrid(*[np.arange(-2, 3)] * 7, indexing="ij"), axis=-1).reshape(-1, 7)
        answers, challenge = rng.integers(0, 3, 2**12), int(rng.integers(5))
        logs = np.zeros((2, len(noisy)))
        for changed in (0, 1):
            known, x = np.zeros(len(noisy), np.int64), {}
            for (start, stop), column in zip(blocks, noisy.T, strict=True):
                if stop - start == 1:
                    x[start] = answers[known % 2**12] + changed * (start == challenge)
                exact = sum(x[period] for period in range(start, stop))
                logs[changed] += tree.noise.logpmf((column - exact).astype(float))
                known = known * 7 + column + 3
        loss = np.abs(logs[0] - logs[1]).max()
        assert math.isclose(loss, epsilon, rel_tol=1e-12)
        # The control is the noise of a single level.
        assert math.isclose(loss * float(tree.noise.scale) * epsilon, 2 * epsilon, rel_tol=1e-12)


class TestReleases:
    @every("options", [{"mu": 1.0}, {"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian"}], ids=str)
    def test_standard_errors(self, options):
        """The squared errors of many cells; a fifth more or less is rejected."""
        cells = 20_000
        state = Running(Categories(range(cells)), periods=5, neighbors="add-remove", **options).start(rng=PCG64(3))
        for period in range(1, 6):
            state.update(range(cells))
            errors = state.release()[:cells] - period
            kurtosis = 3.5 if isinstance(state.mechanism.scheme, Tree) else 1.0  # more than that of Laplace noise
            low, high = chi2.isf([1 - ALPHA, ALPHA], cells / kurtosis) / (cells / kurtosis)
            ratio = (errors**2).mean() / state.standard_error**2
            assert low < ratio < high
            assert ratio * 0.8 < low
            assert ratio * 1.25 > high

    def test_values(self):
        """With little noise: sums, means, counts and cells of what was read."""
        x = [np.array([1.0, 5.0, 9.0]), np.array([]), np.array([-7.0, np.nan])]
        cases = {
            (Sum(), "replace-one"): [11, 11, 5],
            (Sum(), "add-remove"): [11, 11, 5],
            (Mean(), "replace-one"): [11 / 3, 11 / 3, 1.0],
            (Count(), "add-remove"): [3, 3, 5],
            (Count((0, 6)), "replace-one"): [2, 2, 2],
        }
        for (statistic, neighbors), expected in cases.items():
            for options in ({"mu": 1e4}, {"epsilon": 1e5}):
                running = quiet(statistic, grid=GRID, periods=3, neighbors=neighbors, **options)
                state, found = running.start(), []
                for part in x:
                    state.update(part)
                    found.append(state.release())
                assert all(type(value) is float for value in found)
                assert np.allclose(found, expected, atol=0.02)
        state = quiet(Mean(), grid=GRID, periods=1, mu=1e4).start()
        assert state.release() == 1.0  # the middle of the bounds, of no records

    def test_cells(self):
        for statistic, x, expected in [
            (Bins(2, bounds=(0, 10)), [1.0, 2.0, 7.0], [2, 1]),
            (Bins([5.0], grid=dpf.Grid(0, 10, step=1)), [1, 5, 7], [1, 2]),
            (Categories(["a", "b"]), ["a", "b", "c", "a"], [2, 1, 1]),
        ]:
            state = quiet(statistic, periods=2, mu=1e4).start()
            state.update(x)
            assert np.allclose(state.release(), expected, atol=0.02)
            state.update(x)
            assert np.allclose(state.release(), np.array(expected) * 2, atol=0.02)
            assert isinstance(state.standard_error, float)

    def test_fine_grids_are_rounded(self):
        """The sum of steps much finer than the noise; a record changes it by at most 2**16 coarse ones."""
        for neighbors in ("replace-one", "add-remove"):
            running = quiet(Sum(), grid=dpf.Grid(-100, 300), periods=2, mu=1e3, neighbors=neighbors)
            contents = running.contents
            assert 2**15 < contents.change <= 2**16
            width = 400 if neighbors == "replace-one" else 300
            assert math.isclose(contents.change * contents.unit, width, rel_tol=1e-4)
            state = running.start()
            state.update(np.linspace(-120, 320, 1001))
            assert abs(state.release() - np.linspace(-120, 320, 1001).clip(-100, 300).sum()) < 10

    def test_rounded_sums_change_by_one_record(self):
        grid = dpf.Grid(0, 2**20 - 3, step=1)
        contents = Running(Sum(), grid=grid, periods=1, mu=1.0).contents

        def integers(code):
            return contents.integers(dpf.streaming.CodeSums(2, code, 0), 2**40)

        starts = range(0, 2**6)
        changes = {integers(start + grid.size - 1) - integers(start) for start in starts}
        assert max(changes) == contents.change

    def test_readings(self):
        """Arrays, lists, chunks, counts and parts of workers, in any division: the same releases."""
        x = np.random.default_rng(4).integers(-5, 8, 1000).astype(float)
        values, counts = np.unique(x, return_counts=True)
        running = Running(Sum(), grid=GRID, periods=2, mu=1.0)
        forms = {
            "array": [x],
            "list": [x.tolist()],
            "pieces": [x[:10], x[10:], []],
            "chunks": [dpf.Chunks([x[:500], x[500:]])],
            "counted": [dpf.Counted(values, counts)],
        }
        found = set()
        for pieces in forms.values():
            state = running.start(rng=PCG64(5))
            for piece in pieces:
                state.update(piece)
            found.add((state.release(), state.release()))
        state, parts = running.start(rng=PCG64(5)), [running.part() for _ in range(2)]
        parts[0].update(x[::2])
        parts[1].update(x[1::2])
        for part in parts:
            state.merge(pickle.loads(pickle.dumps(part)))
        found.add((state.release(), state.release()))
        assert len(found) == 1

    def test_missing(self):
        x = [1.0, np.nan, np.nan, 2.0]
        state = quiet(Sum(), grid=dpf.Grid(-3, 5, step=1, missing="half"), periods=1, mu=1e4).start()
        state.update(x)
        assert abs(state.release() - 5) < 0.05
        grid = dpf.Grid(-3, 5, step=1, missing="drop")
        for statistic, expected in [(Sum(), 3), (Count(), 2)]:
            state = quiet(statistic, grid=grid, periods=1, mu=1e4, neighbors="add-remove").start()
            state.update(x)
            assert abs(state.release() - expected) < 0.05
        with pytest.raises(ValueError, match="missing='drop' makes"):
            Running(Sum(), grid=grid, periods=1, mu=1.0)

    @every("options", [{"mu": 1.0}, {"epsilon": 1.0}], ids=str)
    def test_the_type_of_outcome_does_not_depend_on_records(self, options):
        nasty = [[], [np.nan], [np.inf, -np.inf], [1e308, -5e-324], np.full(3, 2**63, np.uint64), [None, 3]]
        for statistic, grid, kind in [
            (Sum(), GRID, float),
            (Mean(), GRID, float),
            (Bins(3, bounds=(0, 9)), None, None),
        ]:
            state = Running(statistic, grid=grid, periods=len(nasty), **options).start()
            for x in nasty:
                state.update(x)
                released = state.release()
                assert type(released) is (kind or np.ndarray)
                assert np.shape(released) == (() if kind else (3,))
                assert np.isfinite(released).all()

    def test_sums_beyond_64_bits_are_clamped(self):
        running = Running(Sum(), grid=dpf.Grid(0, 1), periods=3, mu=1.0)
        state = running.start()
        state.update(dpf.Counted([1.0], [2**52]))
        assert math.isfinite(state.release())


def quiet(*args, **options):
    """Running totals with hardly any noise."""
    with pytest.warns(dpf.PrivacyWarning) if "epsilon" in options else nullcontext():
        return Running(*args, **options)


class TestStates:
    def test_no_record_is_lost_between_threads(self):
        """A period ends once a thread that reads its records has read them all: none goes into a part that is over."""
        state = quiet(Count(), periods=2, mu=1e6, neighbors="add-remove").start()
        begun, go_on = threading.Event(), threading.Event()

        class Slow:
            def __iter__(self):
                yield np.zeros(5)
                begun.set()
                assert go_on.wait(60)
                yield np.zeros(5)

        reader = threading.Thread(target=state.update, args=(dpf.Chunks(Slow()),))
        reader.start()
        assert begun.wait(60)
        ender = threading.Thread(target=state.release)
        ender.start()
        ender.join(0.2)
        assert state.period == 0
        go_on.set()
        reader.join()
        ender.join()
        assert (state.period, round(state.total)) == (1, 10)

    def test_no_chunk_ends_its_own_period(self):
        state = quiet(Count(), periods=2, mu=1e6, neighbors="add-remove").start()

        def pieces():
            yield np.zeros(3)
            with pytest.raises(ValueError, match="release after update"):
                state.release()
            yield np.zeros(4)

        state.update(dpf.Chunks(pieces))
        assert (round(state.release()), state.period) == (7, 1)

    def test_no_error_state_ends_a_release(self):
        """Least steps, of which estimates are whole numbers and fractions: the total is rounded, not refused."""
        least = 5e-324
        for noise in ("gaussian", "discrete-laplace"):
            grid = dpf.Grid(0, 8 * least, step=least)
            totals = Running(Sum(), grid=grid, periods=2, epsilon=1.0, delta=1e-6, noise=noise)
            state = totals.start(rng=PCG64(1))
            with np.errstate(all="raise"):
                assert all(isinstance(state.release(), float) for _ in range(2))

    def test_a_state_that_nobody_charged_is_refused(self, tmp_path):
        """In the block of a ledger a state is made by `start` alone; outside there is nothing to charge."""
        totals, alarm = Running(Count(), periods=2, epsilon=1.0), dpf.AboveThreshold(0, epsilon=1.0)
        for mechanism, state in [(totals, RunningState), (alarm, ThresholdState)]:
            state(mechanism).close()
            for made in (lambda: state(mechanism), lambda: state(mechanism, None, StateFile(tmp_path / "a", {}))):  # noqa: B023
                with dpf.Ledger(2.0) as ledger, pytest.raises(dpf.BudgetError, match="none covers it"):
                    made()
                assert not ledger.charges
            path = tmp_path / state.__name__
            with dpf.Ledger(2.0) as ledger:
                for place in (None, path, path):  # the last one goes on
                    mechanism.start(path=place).close()
            assert len(ledger.charges) == 2

    def test_one_charge_for_all_periods(self):
        running = Running(Count(), periods=4, mu=0.25, neighbors="add-remove")
        with dpf.Ledger(mu=0.25, neighbors="add-remove") as ledger:
            state = running.start()
            for _ in range(4):
                state.update([1.0])
                state.release()
            assert len(ledger.charges) == 1
            with pytest.raises(dpf.BudgetError, match="does not fit"):
                running.start()
            with pytest.raises(TypeError, match="rng must be"):
                running.start(rng=3)
        assert len(ledger.charges) == 1

    def test_ledgers_of_units(self):
        running = Running(Count(), periods=4, mu=0.25, neighbors="add-remove", per_unit=3)
        with dpf.Ledger(mu=0.25, neighbors="add-remove", per_unit=3) as ledger:
            running.start()
        assert ledger.spent.mu == 0.25

    @every("options", [{"mu": 1.0}, {"epsilon": 1.0}], ids=str)
    def test_copies_are_refused(self, options):
        state = Running(Count(), periods=4, **options).start()
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                attempt(state)
        assert copy.deepcopy(state.mechanism) == pickle.loads(pickle.dumps(state.mechanism)) == state.mechanism

    @needs_fork
    def test_forks_are_refused(self):
        state = Running(Count(), periods=4, mu=1.0).start()

        def release():
            with pytest.raises(RuntimeError):
                state.release()

        assert in_child(release) == 0
        assert isinstance(state.release(), float)

    def test_threads_share_the_periods(self):
        state, released = Running(Count(), periods=200, mu=1.0).start(), []

        def release():
            with suppress(ValueError):
                while True:
                    released.append(state.release())

        threads = [threading.Thread(target=release) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(released) == state.period == 200

    def test_the_last_period(self):
        state = Running(Count(), periods=2, mu=1.0).start()
        assert (state.period, state.standard_error) == (0, 0.0)
        state.release()
        state.release()
        assert state.period == 2
        for attempt in (state.release, lambda: state.update(Untouchable()), lambda: state.merge(None)):
            with pytest.raises(ValueError, match="all 2 periods are over"):
                attempt()

    def test_parts(self):
        running = Running(Count(), periods=2, mu=1.0)
        state, part = running.start(), running.part()
        with pytest.raises(TypeError, match="no release of its own"):
            part.release()
        with pytest.raises(TypeError, match="merges with a PeriodRecords"):
            state.merge(3)
        with pytest.raises(ValueError, match="different mechanisms"):
            state.merge(Running(Count(), periods=3, mu=1.0).part())

    def test_a_reproducible_state(self):
        running = Running(Count(), periods=3, epsilon=1.0)
        runs = []
        for _ in range(2):
            state = running.start(rng=PCG64(6))
            runs.append([state.release() for _ in range(3)])
        assert runs[0] == runs[1]


class TestParameters:
    def test_guarantees(self):
        options = {"periods": 365, "neighbors": "add-remove"}
        assert Running(Count(), mu=0.5, **options).privacy == dpf.Privacy(mu=0.5, neighbors="add-remove")
        concentrated = Running(Count(), rho=0.5, **options)
        assert concentrated.privacy == dpf.Privacy(rho=0.5, neighbors="add-remove")
        assert concentrated.privacy_profile.rho <= 0.5
        pure = Running(Count(), epsilon=1.0, **options)
        assert pure.privacy == dpf.Privacy(1.0, neighbors="add-remove")
        assert pure.privacy_profile.parts == (("discrete-laplace", 0.5, 2),)
        assert Running(Count(), epsilon=1.0, delta=1e-6, **options).privacy.delta == 1e-6
        cells = Running(Categories(["a", "b"]), epsilon=1.0, periods=10)
        assert cells.privacy_profile.parts == (("discrete-laplace", 0.5, 2),)
        total = Running(Sum(), grid=GRID, epsilon=1.0, periods=10)
        assert total.privacy_profile.parts == (("discrete-laplace", 1.0, 1, 8),)
        units = Running(Count(), epsilon=1.0, per_unit=2, **options)
        assert units.privacy.per_unit == 2
        assert units.privacy_profile.parts == (("pure", 1.0, 1),)
        assert Running(Sum(), grid=GRID, mu=1.0, periods=9, per_unit=2).privacy.records == 2
        assert units.privacy_map(2).epsilon == 2.0

    def test_noise_is_chosen_by_public_numbers(self):
        few = Running(Count(), periods=2, epsilon=1.0, delta=1e-6)
        many = Running(Count(), periods=10_000, epsilon=1.0, delta=1e-6)
        assert isinstance(few.scheme, Tree)
        assert few.privacy.delta == 0
        assert isinstance(many.scheme, Factored)
        assert many.error(10_000) < Running(Count(), periods=10_000, epsilon=1.0).error(10_000)

    @every(
        "options, error, match",
        [
            ({"statistic": dpf.statistics.Median()}, TypeError, "statistic must be Count"),
            ({"grid": None}, TypeError, "grid must be a dpfast.Grid"),
            ({"statistic": Bins(3)}, ValueError, "Bins must have"),
            ({"statistic": Categories([1]), "grid": GRID}, TypeError, "grid must be left out"),
            ({"statistic": Mean(), "neighbors": "add-remove"}, ValueError, "running mean"),
            ({"periods": 0}, ValueError, "periods must be at least 1"),
            ({"periods": 2**20 + 1}, ValueError, "periods must be at most"),
            ({"per_unit": 0}, ValueError, "per_unit must be at least 1"),
            ({"mu": None}, TypeError, "give epsilon"),
            ({"rho": 1.0}, TypeError, "give epsilon"),
            ({"delta": 1e-6}, TypeError, "give epsilon"),
            ({"mu": -1.0}, ValueError, "mu must be positive"),
            ({"mu": 1e-20}, ValueError, "needs noise of more"),
            ({"mu": None, "epsilon": 1e-20}, ValueError, "needs noise of more"),
            ({"noise": "discrete-laplace"}, ValueError, "needs epsilon"),
            ({"mu": None, "epsilon": 1.0, "noise": "gaussian"}, ValueError, "needs a positive delta"),
            ({"noise": "none"}, ValueError, "noise must be"),
            ({"neighbors": "local"}, ValueError, "neighbors must be"),
        ],
        ids=str,
    )
    def test_bad_parameters(self, options, error, match):
        given = {"statistic": Sum(), "grid": GRID, "periods": 3, "mu": 1.0, **options}
        if isinstance(given["statistic"], Bins):
            given["grid"] = None
        with pytest.raises(error, match=match):
            Running(given.pop("statistic"), **given)

    def test_errors_of_t(self):
        running = Running(Count(), periods=3, mu=1.0)
        with pytest.raises(ValueError, match="t must be at most"):
            running.error(4)
        assert running.error(1) < running.error(3)
