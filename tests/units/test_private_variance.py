"""Variances with a private number of records: the law on triples, certified on all small data sets."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import GlobalSensitivity, Grid
from dpfast.laws import LatticeBox
from dpfast.mechanisms.triples import Triples
from dpfast.statistics import Variance
from dpfast.streaming import CodeSums
from tests.cases import every

GRIDS = [Grid(0, 1, step=1), Grid(-1, 2, step=1), Grid(0, 5, step=0.5), Grid(-3.0, 2.0**21, step=2.0**-8)]
WINDOW = np.array(list(itertools.product(range(-6, 7, 2), repeat=3)))


def variance(grid, epsilon=1.0):
    return GlobalSensitivity(Variance(), grid=grid, epsilon=epsilon, neighbors="add-remove")


def datasets(grid, most):
    values = [grid.lower, grid.value(grid.size // 3), grid.value(grid.size // 2), grid.upper]
    return [data for n in range(most + 1) for data in itertools.combinations_with_replacement(values, n)]


def loss(mechanism, x, y, noise=None):
    """The largest log ratio of the laws of the triples of two data sets, at points around both."""
    laws = [mechanism.law(np.array(data)) for data in (x, y)]
    z = np.concatenate([WINDOW + law.center for law in laws])
    logs = [(noise or law.noise).logpmf((z - law.center).astype(float)) for law in laws]
    return float(np.abs(logs[0] - logs[1]).max())


class TestPrivacy:
    @every("grid, epsilon", itertools.product(GRIDS, (0.1, 1.0, 4.0)), ids=str)
    def test_neighbours(self, grid, epsilon):
        mechanism, worst = variance(grid, epsilon), 0.0
        for data in datasets(grid, 2):
            for more in datasets(grid, 1)[1:]:
                worst = max(worst, loss(mechanism, data, data + more))
        assert worst <= epsilon * (1 + 1e-6)
        assert worst >= epsilon * (1 - 1e-6)

    @every("place", range(3))
    def test_less_noise_is_rejected(self, place):
        """The control: a scale of one of the three at nine tenths."""
        mechanism = variance(GRIDS[1])
        scales = [Fraction(change) for change in mechanism._triples.changes]
        scales[place] *= Fraction(9, 10)
        noise, data = LatticeBox(scales), datasets(GRIDS[1], 1)
        losses = [loss(mechanism, x, x + y, noise) for x, y in itertools.product(data, data[1:])]
        assert max(losses) > 1.1

    @every("grid", GRIDS, ids=str)
    def test_centers_change_by_what_is_stated(self, grid):
        triples = Triples(grid, 1.0)
        assert triples.changes[1] <= 2**32
        found = np.zeros(3, np.int64)
        for data in datasets(grid, 3):
            codes = grid.encode(np.array(data)).tolist()
            for code in grid.encode(np.array(datasets(grid, 1)[1:])[:, 0]).tolist():
                both = [
                    triples.center(CodeSums(len(c), sum(c), sum(k * k for k in c))) for c in (codes, [*codes, code])
                ]
                found = np.maximum(found, np.abs(both[1] - both[0]))
        assert np.all(found <= triples.changes)
        assert (found[0], found[2]) == (triples.half_width, 1)


class TestReleases:
    @every("grid", GRIDS, ids=str)
    def test_without_much_noise_it_is_the_variance(self, grid):
        for data in datasets(grid, 4):
            if data:
                found = variance(grid, 2.0**20)(np.array(data), rng=PCG64(1))
                exact = np.var(grid.decode(grid.encode(np.array(data))))
                assert abs(found - exact) <= 1e-4 * (grid.upper - grid.lower) ** 2
        assert math.isclose(variance(grid, 2.0**20)([]), (grid.upper - grid.lower) ** 2 / 12)

    def test_the_law_is_that_of_its_parts(self):
        grid, x = Grid(0, 5, step=0.5), [0.5, 3.0, 5.0, 5.0]
        mechanism = variance(grid)
        law = mechanism.law(x)
        u = 2 * np.array([1, 6, 10, 10]) - 10
        assert law.center.tolist() == [u.sum(), (2 * u**2 - 100).sum(), 4]
        drawn = law.sample(20_000, PCG64(1)) - law.center
        assert np.abs(drawn).mean(axis=0) == pytest.approx(mechanism._triples.noise.expected_size, rel=0.05)
        released = [mechanism(x, rng=rng) for rng in [PCG64(2)] for _ in range(2000)]
        assert np.mean(released) == pytest.approx(np.mean(law.value(law.sample(20_000, PCG64(3)))), rel=0.1)
        assert min(released) >= 0
        assert max(released) <= 6.25

    def test_many_records_are_clamped(self):
        triples = Triples(GRIDS[3], 1.0)
        n, last = 2**60, GRIDS[3].size - 1
        center = triples.center(CodeSums(n, n * last, n * last**2))
        assert np.abs(center).max() == 2**61 - 1

    def test_chunks_groups_and_missing_records(self):
        x = np.random.default_rng(0).normal(50, 9, 3000)
        holed = np.insert(x, range(0, 3000, 3), np.nan)
        options = {"bounds": (0, 100), "epsilon": 20.0, "neighbors": "add-remove"}
        for given, more in ((x, {}), (dpf.Chunks([x[:10], x[10:]]), {}), (holed, {"missing": "drop"})):
            assert dpf.std(given, **options, **more) == pytest.approx(x.std(), rel=0.05)
        mechanism = variance(Grid(0, 100), 20.0)
        found = dpf.by_group(mechanism, x, labels=np.arange(3000) % 2, keys=[1, 0, 7])
        assert found[0] == pytest.approx(np.var(x[::2]), rel=0.05)
        assert 0 <= found[7] <= 2500

    def test_less_error_than_for_a_public_number(self):
        """For records around the middle of the bounds."""
        x = np.random.default_rng(0).normal(50, 9, 3000)
        grid = Grid(0, 100)
        private = variance(grid).release(x, size=300, rng=PCG64(1))
        public = GlobalSensitivity(Variance(), grid=grid, epsilon=1.0).release(x, size=300, rng=PCG64(1))
        assert np.mean(np.abs(private - np.var(x))) < 0.6 * np.mean(np.abs(public - np.var(x)))

    def test_bad_parameters(self):
        with pytest.raises(ValueError, match="noise must be 'auto' for the variance"):
            GlobalSensitivity(Variance(), grid=GRIDS[0], epsilon=1.0, neighbors="add-remove", noise="staircase")
        with pytest.raises(ValueError, match="use a coarser step"):
            variance(Grid(0, 1), 1e-9)
        for call in (lambda m: m.noise_interval(1.0), lambda m: m.error(10)):
            with pytest.raises(TypeError, match="variance with neighbors='add-remove'"):
                call(variance(GRIDS[0]))
