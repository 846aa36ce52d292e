"""Means, interquartile ranges, Huber's estimates and joint quantiles of many groups: each is the single release."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64

import dpfast as dpf
from dpfast import FloatGrid, Grid, InverseSensitivity, Quantiles, by_group
from dpfast._kernels import _groups, _levels
from dpfast._kernels._chain import draw_groups
from dpfast.laws import anywhere
from dpfast.mechanisms.quantiles import StageOfGroups
from dpfast.random import streams
from dpfast.statistics import Huber, InterquartileRange, Mean, Median, Quantile, TrimmedMean, WinsorizedMean
from tests.cases import every
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.kernel

STATISTICS = (Mean(), TrimmedMean(0.1), TrimmedMean(0.4), WinsorizedMean(0.2), InterquartileRange(), Huber(1.5))
GRIDS = {
    "of integers": Grid(-2, 5, step=1),
    "of 2**32 points": Grid(-50, 100),
    "of 2**50 points": Grid(-3, 5, step=2.0**-47),
    "far from 0": Grid(2.0**40, 2.0**40 + 64, step=1),
}


def mechanisms(grid, epsilon):
    for statistic, missing in itertools.product(STATISTICS, (None, "half", grid.upper)):
        yield InverseSensitivity(statistic, grid=grid.with_missing(missing), epsilon=epsilon)
    for statistic in STATISTICS:
        yield InverseSensitivity(statistic, grid=grid, epsilon=epsilon, radius=1.5)
        yield InverseSensitivity(statistic, grid=grid, epsilon=epsilon, selection="permute-and-flip")
    for statistic in (InterquartileRange(), Huber(0.7)):
        if grid.step <= 0.25 and grid.size <= 2**40:
            yield InverseSensitivity(statistic, grid=grid, epsilon=epsilon, measure="decimal")


def one_by_one(mechanism, x, labels, count, rng):
    """The slow twin: a call for each group, of one stream."""
    [source], out = streams(rng, 1), []
    for g in range(count):
        group = x[labels == g]
        made = (
            mechanism(group, rng=source)
            if len(group)
            else anywhere(mechanism.grid, source, getattr(mechanism, "base_measure", None))
        )
        out.append(made)
    return np.array(out)


def records(grid, dtype, n=180, groups=20):
    rng = np.random.default_rng(3)
    x = (grid.lower + (grid.upper - grid.lower) * rng.uniform(-0.1, 1.1, n)).astype(dtype)
    x[: n // 3] = x[0]  # ties
    if x.dtype.kind == "f":
        x[::5], x[1::17] = np.nan, np.inf
    return x, rng.permutation(np.concatenate([[0], np.repeat(1, 60), rng.integers(-1, groups, n - 61)]))


@every("grid", GRIDS)
@every("epsilon", [0.01, 0.7, 30.0])
def test_bit_for_bit_the_calls_one_by_one(grid, epsilon):
    x, labels = records(GRIDS[grid], np.float64)
    for mechanism in mechanisms(GRIDS[grid], epsilon):
        found = by_group(mechanism, x, labels=labels, num_groups=20, rng=PCG64(5))
        np.testing.assert_array_equal(found, one_by_one(mechanism, x, labels, 20, PCG64(5)), repr(mechanism))


@pytest.mark.parametrize("dtype", ["f4", "i8", "u1", "?"])
def test_records_of_any_dtype_strided_and_read_only(dtype):
    x, labels = records(GRIDS["of integers"], dtype)
    both = np.repeat(x, 2)
    both.flags.writeable = False
    order, sizes = np.argsort(labels, kind="stable"), np.bincount(labels + 1, minlength=21)
    for mechanism in mechanisms(GRIDS["of integers"], 0.7):
        wanted = one_by_one(mechanism, x, labels, 20, PCG64(5))
        found = by_group(mechanism, both[::2], labels=labels, num_groups=20, rng=PCG64(5))
        np.testing.assert_array_equal(found, wanted)
        ends = np.concatenate([[0], np.cumsum(sizes[1:])])
        np.testing.assert_array_equal(by_group(mechanism, x[order][sizes[0] :], offsets=ends, rng=PCG64(5)), wanted)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_large_groups_go_through_the_mechanism(dtype):
    largest, grid = _groups.LARGEST_GROUP, Grid(-50, 100, step=2.0**-20)
    labels = np.repeat([0, 1, 3, 4], [3, largest + 1, largest, 5])
    x = np.random.default_rng(2).normal(20, 30, len(labels)).astype(dtype)
    for statistic in (TrimmedMean(0.1), InterquartileRange(), Huber(5.0)):
        mechanism = InverseSensitivity(statistic, grid=grid, epsilon=1.0)
        found = by_group(mechanism, x, labels=labels, num_groups=5, rng=PCG64(3))
        np.testing.assert_array_equal(found, one_by_one(mechanism, x, labels, 5, PCG64(3)))


def test_threads():
    x, labels = np.random.default_rng(1).normal(1, 2, 9000), np.random.default_rng(2).integers(0, 3000, 9000)
    for statistic in STATISTICS:
        mechanism = InverseSensitivity(statistic, grid=Grid(-2, 5), epsilon=0.7)
        found = [by_group(mechanism, x, labels=labels, num_groups=3000, rng=PCG64(1), workers=w) for w in (1, 3)]
        np.testing.assert_array_equal(*found)


def test_records_that_the_kernel_cannot_add_take_the_general_road():
    x, labels = np.linspace(0, 1, 1200), np.arange(1200) % 7
    for grid in (Grid(0, 1, step=2.0**-51), Grid(0, 2.0**-500, step=2.0**-510)):
        mechanism = InverseSensitivity(TrimmedMean(0.1), grid=grid, epsilon=1.0)
        found = by_group(mechanism, x, labels=labels, num_groups=8, rng=PCG64(1))
        np.testing.assert_array_equal(found, one_by_one(mechanism, x, labels, 8, PCG64(1)))


def test_groups_follow_their_laws():
    grid, repeats = Grid(0, 8, step=1), 2000
    groups = [[3], [0, 8], [5, 5, 6, 7], [1, 2, 2, 8, 8, 8, 4]]
    x, sizes = np.concatenate(groups * repeats), [len(group) for group in groups] * repeats
    for statistic in (InterquartileRange(), Huber(2.0), TrimmedMean(0.3)):
        mechanism = InverseSensitivity(statistic, grid=grid, epsilon=1.0, selection="exponential")
        released = by_group(mechanism, x, offsets=np.concatenate([[0], np.cumsum(sizes)]), rng=PCG64(7))
        for column, group in zip(released.reshape(repeats, -1).T, groups, strict=True):
            law = mechanism.law(group)
            codes = np.arange(law.support[0], law.support[1] + 1)
            counts = np.array([np.count_nonzero(column == value) for value in law.value(codes)])
            assert counts.sum() == repeats
            assert not chi_square_rejects(counts, law.pmf(codes))
        assert chi_square_rejects(counts, np.full(len(codes), 1 / len(codes)))


@settings(max_examples=100)
@given(st.data(), st.integers(1, 40))
def test_ranges_of_huber_equal_their_definition(data, last):
    codes = sorted(data.draw(st.lists(st.integers(0, last), min_size=1, max_size=9)))
    corner, n = data.draw(st.integers(1, last)), len(codes)
    lower, upper = np.empty(n, np.int64), np.empty(n, np.int64)
    _levels.huber_ranges(np.array(codes), corner, last, lower, upper)
    theta = np.arange(last + 1)[:, None]
    for t in range(n):
        for changed, found in ((codes[: n - t] + [0] * t, lower[t]), (codes[t:] + [last] * t, upper[t])):
            sums = np.clip(theta - np.array(changed), -corner, corner).sum(axis=1)
            assert found == np.argmax(sums >= 0)


def test_the_exact_path_takes_the_same_words():
    x, offsets, grid = np.random.default_rng(1).uniform(-2, 5, 60), np.arange(0, 61, 6), Grid(-2, 5, step=0.25)
    where = {"lower": grid.lower, "upper": grid.upper, "step": grid.step, "first": grid.first, "whole": grid.size - 1}
    for statistic, selection in itertools.product(STATISTICS, ("exponential", "permute-and-flip")):
        plan = InverseSensitivity(statistic, grid=grid, epsilon=0.7, selection=selection).plan()
        outs, used = [], []
        for exact in (False, True):
            source, out, sizes = ScriptedBits(rest=PCG64(8)), np.empty(10, np.int64), np.zeros((7, 6), np.int64)
            sizes[6] = plan.row(6)
            options = {**plan.options, **where, "sizes": sizes, "exact": exact}
            assert _levels.draw_groups(source, x, offsets, 0, out, **options) == 10
            outs.append(out)
            used.append(source.used)
        np.testing.assert_array_equal(*outs)
        assert used[0] == used[1]


def test_one_charge_for_all_groups():
    grid, x = Grid(0, 9, step=1), np.arange(10.0)
    with dpf.Ledger(1.0) as ledger:
        by_group(InverseSensitivity(InterquartileRange(), grid=grid, epsilon=0.5), x, labels=np.arange(10) % 3)
        by_group(Quantiles((0.3, 0.7), grid=grid, epsilon=0.25), x, labels=np.arange(10) % 3)
    assert ledger.spent.epsilon == 0.75


class TestSmoothNoise:
    STATISTICS = (Median(), Quantile(0.9), Mean(), TrimmedMean(0.1), WinsorizedMean(0.4), InterquartileRange())

    @pytest.mark.parametrize("grid", GRIDS)
    @pytest.mark.parametrize("options", [{"epsilon": 4.0}, {"epsilon": 1.0, "delta": 1e-6}], ids=["student", "laplace"])
    def test_bit_for_bit_the_calls_one_by_one(self, grid, options):
        x, labels = records(GRIDS[grid], np.float64)
        for statistic, missing in itertools.product(self.STATISTICS, (None, "half")):
            if grid == "of 2**50 points" and options["epsilon"] < 4:
                continue  # noise of more than 2**56 steps
            mechanism = dpf.SmoothSensitivity(statistic, grid=GRIDS[grid].with_missing(missing), **options)
            found = by_group(mechanism, x, labels=labels, num_groups=20, rng=PCG64(5))
            np.testing.assert_array_equal(found, one_by_one(mechanism, x, labels, 20, PCG64(5)), repr(mechanism))

    def test_dtypes_large_groups_and_threads(self):
        labels = np.repeat([0, 1, 3, 4], [3, _groups.LARGEST_GROUP + 1, 40, 5])
        x = np.random.default_rng(2).integers(0, 200, len(labels))
        for statistic in self.STATISTICS:
            mechanism = dpf.SmoothSensitivity(statistic, grid=Grid(0, 100, step=0.5), epsilon=1.0, delta=1e-6)
            for data in (x, x.astype(np.float32), x.astype(np.uint8)):
                found = by_group(mechanism, data, labels=labels, num_groups=5, rng=PCG64(3))
                np.testing.assert_array_equal(found, one_by_one(mechanism, data, labels, 5, PCG64(3)))
            many = np.arange(len(x)) % 3000
            found = [by_group(mechanism, x, labels=many, rng=PCG64(1), workers=w) for w in (1, 3)]
            np.testing.assert_array_equal(*found)


class TestJointQuantiles:
    """The chain of all groups of one size, whose codes change, draws as the chain of each."""

    @pytest.mark.parametrize("grid", [*GRIDS.values(), FloatGrid()], ids=[*GRIDS, "of floats"])
    @pytest.mark.parametrize("epsilon", [0.05, 20.0])
    def test_bit_for_bit_the_calls_one_by_one(self, grid, epsilon):
        within = Grid(-50, 100) if isinstance(grid, FloatGrid) else grid
        x, labels = records(within, np.float64)
        places, sizes = np.unique(labels[labels >= 0]), np.bincount(labels[labels >= 0])
        labels = np.searchsorted(places, labels) - (labels < 0) * 10**6  # groups without records are an error
        for qs, missing in itertools.product([(0.5,), (0.25, 0.5, 0.75), (0.9, 0.1, 0.9, 0.5)], (None, "half")):
            mechanism = Quantiles(qs, grid=grid.with_missing(missing), epsilon=epsilon)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", dpf.UtilityWarning)
                found = by_group(mechanism, x, labels=labels, num_groups=len(places), rng=PCG64(5))
                wanted = one_by_one(mechanism, x, labels, len(places), PCG64(5))
            np.testing.assert_array_equal(found, wanted, repr(mechanism))
        assert len(set(sizes.tolist())) < len(places)  # some groups have equal sizes

    @pytest.mark.parametrize(
        "options", [{"measure": "uniform"}, {"measure": tuple(range(1, 9))}, {"stages": 2}], ids=str
    )
    def test_measures_and_stages(self, options):
        grid = Grid(-2, 5, step=1)
        mechanism = Quantiles((0.1, 0.4, 0.5, 0.8), grid=grid, epsilon=0.7, **options)
        x, labels = np.random.default_rng(1).uniform(-2, 5, 300), np.random.default_rng(2).integers(0, 20, 300)
        found = by_group(mechanism, x, labels=labels, num_groups=20, rng=PCG64(5))
        np.testing.assert_array_equal(found, one_by_one(mechanism, x, labels, 20, PCG64(5)))

    def test_large_groups_and_dtypes(self):
        labels = np.repeat([0, 1, 2], [5, _groups.LARGEST_GROUP + 1, 40])
        x = np.random.default_rng(2).integers(0, 200, len(labels))
        mechanism = Quantiles((0.2, 0.8), grid=Grid(0, 100, step=0.5), epsilon=1.0)
        for data in (x, x.astype(np.float32), x.astype(np.uint8)):
            found = by_group(mechanism, data, labels=labels, rng=PCG64(3))
            np.testing.assert_array_equal(found, one_by_one(mechanism, data, labels, 3, PCG64(3)))

    def test_threads_and_public_empty_groups(self):
        x, labels = np.random.default_rng(1).normal(1, 2, 9000), np.random.default_rng(2).integers(0, 3000, 9000)
        mechanism = Quantiles((0.2, 0.8), grid=Grid(-2, 5), epsilon=0.7)
        keys = list(range(3000))
        found = [by_group(mechanism, x, labels=labels, keys=keys, rng=PCG64(1), workers=w) for w in (1, 3)]
        first, second = (np.array([table[key] for key in keys]) for table in found)
        np.testing.assert_array_equal(first, second)
        np.testing.assert_array_equal(np.isnan(first).any(axis=1), np.bincount(labels, minlength=3000) == 0)

    def test_the_exact_path_and_the_wide_chain_draw_by_the_same_law(self):
        """Exact decisions take the same words; the wide chain, for rounds in vain, has the same law."""
        grid, repeats = Grid(0, 4, step=1), 3000
        mechanism = Quantiles((0.3, 0.7), grid=grid, epsilon=1.5)
        x = np.array([0.0, 1.0, 1.0, 2.0, 4.0, 3.0])
        stages = [None] * 7
        stages[6] = StageOfGroups(mechanism.plan(6)).draws
        where = {"lower": grid.lower, "upper": grid.upper, "step": grid.step, "first": grid.first}
        law = mechanism.law(x)
        outcomes = law.outcomes()
        wanted = np.exp(law.logpmf(outcomes))
        outs, used = [], []
        for rounds, exact in ((8, False), (8, True), (0, False)):
            source, out = ScriptedBits(rest=PCG64(8)), np.empty((repeats, 2), np.int64)
            offsets = 6 * np.arange(repeats + 1)
            values = np.tile(x, repeats)
            assert draw_groups(source, values, offsets, 0, out, stages, rounds=rounds, exact=exact, **where) == repeats
            counts = np.array([np.count_nonzero((out == outcome).all(axis=1)) for outcome in outcomes])
            assert not chi_square_rejects(counts, wanted)
            outs.append(out)
            used.append(source.used)
        np.testing.assert_array_equal(outs[0], outs[1])
        assert used[0] == used[1]
        assert chi_square_rejects(counts, np.full(len(outcomes), 1 / len(outcomes)))
