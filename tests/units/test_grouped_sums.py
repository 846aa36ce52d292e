"""Sums of many groups by kernels: each group has the release of the single mechanism, from the same words."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64

import dpfast as dpf
from dpfast import GlobalSensitivity, Grid, by_group
from dpfast._kernels import _samplers, _segments
from dpfast.laws import anywhere
from dpfast.random import streams
from dpfast.statistics import Count, Mean, Sum, Variance
from tests.cases import every
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.kernel

PUBLIC, PRIVATE = (Mean(), Sum(), Variance()), (Sum(), Count(), Count((-1.0, 3.0)))
GRIDS = {
    "of integers": Grid(-2, 5, step=1),
    "of 2**32 points": Grid(-50, 100),
    "of 2**45 points": Grid(-3, 4, step=2.0**-42),
    "far from 0": Grid(2.0**46, 2.0**46 + 64, step=1),
    "wide steps": Grid(-(2.0**90), 2.0**90, step=2.0**60),
}


def mechanisms(grid, epsilon):
    for statistic, noise in itertools.product(PUBLIC, ("auto", "discrete-laplace", "staircase")):
        for missing in (None, "half", grid.upper):
            yield GlobalSensitivity(statistic, grid=grid.with_missing(missing), epsilon=epsilon, noise=noise)
    for statistic, missing in itertools.product(PRIVATE, (None, "drop", grid.upper)):
        yield GlobalSensitivity(statistic, grid=grid.with_missing(missing), epsilon=epsilon, neighbors="add-remove")


def one_by_one(mechanism, x, labels, count, rng):
    """The slow twin: a call for each group, of one stream."""
    [source], out = streams(rng, 1), []
    for g in range(count):
        group = x[labels == g]
        empty = len(group) == 0 and not mechanism.hides_n
        out.append(anywhere(mechanism.grid, source) if empty else mechanism(group, rng=source))
    return np.array(out)


def records(grid, dtype, n=90, groups=20):
    rng = np.random.default_rng(3)
    width = min(grid.upper - grid.lower, 2.0**30)
    x = (grid.lower + width * rng.uniform(-0.1, 1.1, n)).astype(dtype)
    if x.dtype.kind == "f":
        x[::5], x[1::17] = np.nan, np.inf
    return x, rng.permutation(np.concatenate([[0], rng.integers(-1, groups, n - 1)]))


@every("grid", GRIDS)
@every("epsilon", [0.01, 3.0])
def test_bit_for_bit_the_calls_one_by_one(grid, epsilon):
    x, labels = records(GRIDS[grid], np.float64)
    for mechanism in mechanisms(GRIDS[grid], epsilon):
        found = by_group(mechanism, x, labels=labels, num_groups=20, rng=PCG64(5))
        np.testing.assert_array_equal(found, one_by_one(mechanism, x, labels, 20, PCG64(5)), repr(mechanism))


@every("dtype", ["f2", "f4", "i1", "i8", "u8", "?"])
def test_records_of_any_dtype_strided_and_read_only(dtype):
    x, labels = records(GRIDS["of integers"], dtype)
    both = np.repeat(x, 2)
    both.flags.writeable = False
    strided = np.repeat(labels, 3)[::3]
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels + 1, minlength=21)
    for mechanism in mechanisms(GRIDS["of integers"], 0.7):
        wanted = one_by_one(mechanism, x, labels, 20, PCG64(5))
        found = by_group(mechanism, both[::2], labels=strided, num_groups=20, rng=PCG64(5))
        np.testing.assert_array_equal(found, wanted)
        ends = np.concatenate([[0], np.cumsum(sizes[1:])])
        found = by_group(mechanism, x[order][sizes[0] :], offsets=ends, rng=PCG64(5))
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("groups", [0, 3, 5000])
@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_threads_and_of_groups(groups, workers):
    x = np.random.default_rng(1).uniform(-2, 5, 4000)
    labels = np.random.default_rng(2).integers(-3, max(groups, 1), 4000)
    for mechanism in mechanisms(GRIDS["of integers"], 0.7):
        found = [
            by_group(mechanism, x, labels=labels, num_groups=groups, rng=PCG64(1), workers=w) for w in (1, workers)
        ]
        np.testing.assert_array_equal(*found)
        assert by_group(mechanism, x, labels=labels, num_groups=groups, workers=workers).shape == (groups,)


def test_records_that_the_kernels_cannot_add_take_the_general_road():
    """More records times points than an integer of 64 bits holds, tiny steps and tiny epsilons."""
    x, labels = np.linspace(0, 1, 1200), np.arange(1200) % 7
    for mechanism in (
        GlobalSensitivity(Variance(), grid=Grid(0, 1, step=2.0**-51), epsilon=1.0),
        GlobalSensitivity(Mean(), grid=Grid(0, 2.0**-500, step=2.0**-510), epsilon=1.0),
        GlobalSensitivity(Mean(), grid=Grid(0, 1, step=0.5), epsilon=2.0**-40, noise="staircase"),
    ):
        found = by_group(mechanism, x, labels=labels, num_groups=8, rng=PCG64(1))
        np.testing.assert_array_equal(found, one_by_one(mechanism, x, labels, 8, PCG64(1)))


def test_counted_records():
    mechanism, values = GlobalSensitivity(Mean(), grid=Grid(0, 4, step=1), epsilon=500.0), [1.0, 2.0, 4.0]
    found = by_group(mechanism, dpf.Counted(values, [3, 1, 2]), labels=[0, 0, 1], rng=PCG64(1))
    np.testing.assert_array_equal(found, [1.25, 4.0])


class TestMeansOfPrivateSizes:
    """Their noise is drawn for all groups of a block at once, from other words than one by one."""

    GROUPS = ([], [0], [3, 1], [2, 2, 0, 3, np.nan])

    def test_one_group_is_one_call(self):
        for missing, group in itertools.product((None, "drop", 2.0), self.GROUPS):
            grid = Grid(-1, 3, step=0.25, missing=missing)
            mechanism = GlobalSensitivity(Mean(), grid=grid, epsilon=0.7, neighbors="add-remove")
            found = by_group(mechanism, group, offsets=[0, len(group)], rng=PCG64(4))
            assert found[0] == mechanism(group, rng=streams(PCG64(4), 1)[0])

    def test_groups_follow_their_laws(self):
        repeats, edges = 4000, np.linspace(0, 3, 8)
        mechanism = GlobalSensitivity(Mean(), grid=Grid(0, 3, step=1), epsilon=1.0, neighbors="add-remove")
        wrong = GlobalSensitivity(Mean(), grid=Grid(0, 3, step=1), epsilon=1.4, neighbors="add-remove")
        x, sizes = np.concatenate(self.GROUPS * repeats), list(map(len, self.GROUPS)) * repeats
        ends = np.concatenate([[0], np.cumsum(sizes)])
        for made, rejected in ((mechanism, False), (wrong, True)):
            released = by_group(made, x, offsets=ends, rng=PCG64(7)).reshape(repeats, -1)
            found = []
            for column, group in zip(released.T, self.GROUPS, strict=True):
                law, pairs = mechanism.law(group), np.stack(np.mgrid[-150:151, -50:51], axis=-1).reshape(-1, 2)
                places = np.digitize(law.value(pairs), edges[1:-1])
                with np.errstate(divide="ignore"):
                    wanted = np.bincount(places, np.exp(law.logpmf(pairs)), minlength=7)
                assert abs(wanted.sum() - 1) < 1e-9
                counts = np.bincount(np.digitize(column, edges[1:-1]), minlength=7)
                found.append(chi_square_rejects(counts[wanted > 0], wanted[wanted > 0] / wanted.sum()))
            assert any(found) if rejected else not any(found)


class TestKernels:
    @settings(max_examples=200)
    @given(st.integers(-(2**62), 2**62), st.integers(1, 2**62), st.integers(-60, 60))
    def test_quotients_are_rounded_once(self, numerator, denominator, exponent):
        out = np.empty(1)
        _segments.quotients(np.array([numerator]), np.array([denominator]), 2.0**exponent, out)
        assert out[0] == numerator / denominator * 2.0**exponent  # Python rounds a quotient of integers once

    @settings(max_examples=200)
    @given(st.integers(1, 2**60), st.sampled_from([1, 7, 2**26 - 1, 2**32 - 1]), st.integers(0, 54))
    def test_quotients_next_to_the_middle_of_two_doubles(self, denominator, above, bits):
        """Numerators that are a unit above or below a point halfway between doubles, and on it."""
        middle = (above << 1 | 1) << bits
        for numerator in (middle * denominator % 2**62 + change for change in (-1, 0, 1)):
            out = np.empty(1)
            _segments.quotients(np.array([numerator]), np.array([denominator]), 1.0, out)
            assert out[0] == numerator / denominator

    @settings(max_examples=200)
    @given(st.integers(1, 2**28), st.integers(1, 2**32), st.data())
    def test_variances_equal_those_of_the_statistic(self, n, last, data):
        grid, statistic = Grid(0, last, step=1), Variance()
        total = data.draw(st.integers(0, n * last))
        squares = data.draw(st.integers(-(-(total**2) // n), total * last))
        words = np.array([n, total, squares % 2**64, squares >> 64], object).astype(np.uint64).view(np.int64)
        codes, lasts, sensitivities = np.zeros((3, 1), np.int64)
        _segments.spreads(words[None], last, codes, lasts, sensitivities)
        unit = statistic.coarseness(grid, n)
        assert lasts[0] == statistic.last(grid, n)
        assert sensitivities[0] == -(-statistic.sensitivity(grid, n) // unit)
        assert codes[0] == (2 * statistic.exact(n, total, squares) + unit) // (2 * unit)
        for code in {0, int(codes[0]), int(lasts[0]), data.draw(st.integers(0, int(lasts[0])))}:
            out = np.empty(1)
            _segments.spread_values(np.array([code]), np.array([n]), last, 1.0, out)
            assert out[0] == statistic.value(grid, n, code)

    @settings(max_examples=100)
    @given(
        st.lists(st.tuples(st.integers(-2, 4), st.sampled_from([-1, 0, 1, 5, 2**40])), max_size=30),
        st.booleans(),
        st.sampled_from([2, 4]),
    )
    def test_sums_equal_those_of_integers(self, rows, half, width):
        last, groups = 2**40, 4
        wanted = [[] for _ in range(groups)]
        for label, code in rows:
            if 0 <= label < groups and (half or code >= 0):
                wanted[label].append(code if code >= 0 else (0, last)[len(wanted[label]) % 2])
        labels = np.array([label for label, _ in rows], np.int64)
        codes = np.array([code for _, code in rows], np.int64)
        sums = np.zeros((groups, width), np.int64)
        _segments.add_by_label(labels, codes, last, half, sums)
        kept = np.isin(labels, range(groups))
        ends = np.concatenate([[0], np.cumsum(np.bincount(labels[kept], minlength=groups))])
        sliced = np.zeros((groups, width), np.int64)
        _segments.add_by_offset(ends, codes[kept][np.argsort(labels[kept], kind="stable")], last, half, sliced)
        np.testing.assert_array_equal(sums, sliced)
        for group, row in zip(wanted, sums.view(np.uint64).tolist(), strict=True):
            squares = [sum(code**2 for code in group)] if width == 4 else []
            assert row == [len(group), sum(group), *(word for s in squares for word in (s % 2**64, s >> 64))]

    @pytest.mark.parametrize("epsilon", [0.3, 2.0**-20])
    def test_the_exact_path_takes_the_same_words(self, epsilon):
        sensitivities = np.array([1, 7, 2**20, 2**34 - 1, 0, 3] * 4)
        lasts = np.array([2**40, 9, 2**50, 2**61, 0, -1] * 4)
        for kernel, options in (
            (_samplers.add_discrete_laplace, (sensitivities, epsilon)),
            (_samplers.add_staircase, (np.arange(24) % 3, epsilon, (1, 9, 2**30), (1, 4, 2**20))),
        ):
            outs, used = [], []
            for exact in (False, True):
                source, out = ScriptedBits(rest=PCG64(8)), np.full(24, 4)
                out[lasts == 0] = 0
                kernel(source, *options, lasts, 99, out, exact=exact)
                outs.append(out)
                used.append(source.used)
            np.testing.assert_array_equal(*outs)
            assert used[0] == used[1]
            assert (outs[0] >= 0).all()
            assert (outs[0] <= np.where(lasts < 0, 99, lasts)).all()

    def test_a_word_that_doubles_cannot_decide(self):
        """Next to the edge of a geometric draw: as `one_discrete_laplace` decides it."""
        scale = Fraction(7) / Fraction(0.3)
        edge = int(np.exp(-5 / float(scale)) * 2.0**64)
        for change in range(-3000, 3001, 1500):
            one, many = (ScriptedBits([edge + change], PCG64(2)) for _ in range(2))
            out = np.array([1000])
            _samplers.add_discrete_laplace(many, np.array([7]), 0.3, np.array([2000]), 5, out)
            assert out[0] - 1000 == _samplers.one_discrete_laplace(one, scale)
            assert one.used == many.used


def test_several_mechanisms_are_charged_once_each():
    x, labels = np.arange(10.0), np.array(list("aabbbccabc"))
    made = [GlobalSensitivity(statistic, grid=Grid(0, 9, step=1), epsilon=0.25) for statistic in PUBLIC]
    with dpf.Ledger(1.0) as ledger:
        released = by_group(made, x, labels=labels, keys=["a", "d", "b"], rng=PCG64(1))
    assert ledger.spent.epsilon == 0.75
    assert np.isnan(released["d"]["mean"])


def test_a_draw_outside_of_its_ledger_is_refused():
    for mechanism in mechanisms(GRIDS["of integers"], 0.5):
        with dpf.Ledger(9.0), pytest.raises(dpf.BudgetError):
            mechanism.plan().groups(np.arange(3.0), dpf.groups.draws.Groups(1, offsets=np.array([0, 3])))
