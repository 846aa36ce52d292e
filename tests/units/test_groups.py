"""A release for each group equals releases one by one from the same streams, for every way to give groups."""

import collections
import contextlib
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64, Generator

import dpfast as dpf
from dpfast import GlobalSensitivity, Grid, InverseSensitivity, NestedBoxes, Quantiles, by_group, robust
from dpfast._kernels import _groups, _levels
from dpfast.groups import sorting
from dpfast.groups.sorting import sorted_by_label
from dpfast.laws import anywhere
from dpfast.random import streams
from dpfast.statistics import Count, Mean, Median, Quantile, Sum, TrimmedMean
from tests.cases import every
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.kernel

GRID = Grid(-50, 100)
BLOCK = 1024


def median(**options):
    return InverseSensitivity(Median(), **{"grid": GRID, "epsilon": 0.7, **options})


def one_by_one(mechanism, x, labels, count, rng):
    """The slow twin: a call for each group, groups of a block from one stream."""
    parts, out = streams(rng, -(-count // BLOCK)), []
    sources = list(itertools.chain.from_iterable([source] * BLOCK for source in parts))
    for g in range(count):
        group = x[labels == g]
        if len(group) == 0 and mechanism.privacy.neighbors == "replace-one":
            out.append(anywhere(mechanism.grid, sources[g], getattr(mechanism, "base_measure", None)))
        else:
            out.append(mechanism(group, rng=sources[g]))
    return np.array(out)


def records(n, groups, seed=0):
    rng = np.random.default_rng(seed)
    x, labels = rng.normal(20, 30, n), rng.integers(-1, groups + 1, n)
    x[::37] = np.nan
    x[::41] = np.inf
    return x, labels


class TestQuantiles:
    @every("neighbors", ["replace-one", "add-remove"])
    @every("q", [0.0, 1e-300, 0.1, 0.5, 0.93, 1.0])
    @every("radius", [0.0, 3.0])
    def test_bit_for_bit_the_calls_one_by_one(self, q, neighbors, radius):
        mechanism = InverseSensitivity(Quantile(q), grid=GRID, epsilon=0.7, radius=radius, neighbors=neighbors)
        x, labels = records(2000, 1100)
        found = by_group(mechanism, x, labels=labels, num_groups=1100, rng=PCG64(5))
        np.testing.assert_array_equal(found, one_by_one(mechanism, x, labels, 1100, PCG64(5)))

    @given(st.data())
    def test_any_sizes(self, draws):
        sizes = draws.draw(st.lists(st.integers(0, 150), min_size=1, max_size=8))
        labels = np.repeat(np.arange(len(sizes)), sizes)
        seed, dtype = draws.draw(st.integers(0, 99)), draws.draw(st.sampled_from(["f8", "f4", "i8", "u1", "?"]))
        x = np.random.default_rng(seed).integers(0, 7, len(labels)).astype(dtype)
        mechanism = median(
            grid=Grid(0, 6, step=1),
            epsilon=draws.draw(st.sampled_from([0.01, 1.0, 50.0])),
            neighbors=draws.draw(st.sampled_from(["replace-one", "add-remove"])),
        )
        order = np.random.default_rng(seed).permutation(len(labels))
        found = by_group(mechanism, x[order], labels=labels[order], num_groups=len(sizes), rng=PCG64(1))
        np.testing.assert_array_equal(found, one_by_one(mechanism, x, labels, len(sizes), PCG64(1)))
        sliced = by_group(mechanism, x, offsets=np.concatenate([[0], np.cumsum(sizes)]), rng=PCG64(1))
        np.testing.assert_array_equal(found, sliced)

    @every("neighbors", ["replace-one", "add-remove"])
    @every("selection", ["exponential", "permute-and-flip"])
    @every("measure", ["uniform", "auto", "decimal", tuple(range(1, 152))])
    @every("q", [0.0, 0.3, 0.5, 1.0])
    def test_groups_of_each_small_size(self, q, measure, selection, neighbors):
        """Fewer than 16 records take a kernel of their own, which encodes many groups at once."""
        grid = Grid(-50, 100, step=1) if isinstance(measure, tuple) else Grid(-50, 100, step=2.0**-10)
        mechanism = InverseSensitivity(
            Quantile(q), grid=grid, epsilon=0.4, measure=measure, selection=selection, neighbors=neighbors
        )
        sizes = np.concatenate([np.arange(40), np.random.default_rng(6).integers(0, 18, 200)])
        labels = np.repeat(np.arange(len(sizes)), sizes)
        x = np.random.default_rng(7).normal(20, 30, len(labels))
        x[::3] = np.rint(x[::3])
        x[::17], x[::19] = np.inf, np.nan
        found = by_group(mechanism, x, labels=labels, num_groups=len(sizes), rng=PCG64(8))
        np.testing.assert_array_equal(found, one_by_one(mechanism, x, labels, len(sizes), PCG64(8)))

    @every("neighbors", ["replace-one", "add-remove"])
    @every("radius", [1.5, 1e308])
    @every("grid", [GRID, Grid(-50, 100, step=1), Grid(-1.7e308, 1.7e308)])
    def test_large_groups_go_through_the_mechanism(self, neighbors, radius, grid):
        largest = _groups.LARGEST_GROUP
        labels = np.repeat([0, 1, 2, 3, 4], [largest, 3, largest + 1, 20_000, 5])
        x = np.random.default_rng(2).normal(20, 30, len(labels))
        mechanism = median(neighbors=neighbors, radius=radius, grid=grid)
        for data in (x, x.astype(np.float32), np.rint(x).astype(np.int64)):
            found = by_group(mechanism, data, labels=labels, num_groups=5, rng=PCG64(3))
            np.testing.assert_array_equal(found, one_by_one(mechanism, data, labels, 5, PCG64(3)))

    @pytest.mark.parametrize("groups", [2**17, 2**18 - 5, 5_000_000])
    def test_many_groups_are_sorted_by_ranges_of_labels(self, groups):
        """As one counting sort does, for any number of threads."""
        rng, n = np.random.default_rng(1), 150_000
        labels, x = rng.integers(-5, groups + 5, n), rng.random(n)
        labels[n // 2 :] %= 9000
        x[::7] = np.nan
        offsets, values = np.zeros(groups + 1, np.int64), np.empty(n)
        _groups.by_label(labels, x, 3.0, offsets, values)
        for threads in (1, 2, 3):
            found, ends = sorted_by_label(labels, x, 3.0, groups, threads)
            np.testing.assert_array_equal(ends, offsets)
            np.testing.assert_array_equal(found[: ends[-1]], values[: ends[-1]])

    def test_ranges_of_labels_have_at_most_sixteen_digits(self, monkeypatch):
        monkeypatch.setattr(sorting, "_MOST_RANGES", 2)
        groups, n = 2**18 + 7, 2**16
        labels, x = np.random.default_rng(2).permutation(groups)[:n], np.arange(float(n))
        found, ends = sorted_by_label(labels, x, 0.0, groups, 2)
        np.testing.assert_array_equal(found, np.argsort(labels))
        np.testing.assert_array_equal(np.diff(ends), np.bincount(labels, minlength=groups))

    @pytest.mark.parametrize("selection", ["exponential", "permute-and-flip"])
    def test_the_exact_path_takes_the_same_words(self, selection):
        x, labels = records(300, 40, seed=3)
        for neighbors in ("replace-one", "add-remove"):
            mechanism = median(neighbors=neighbors, selection=selection)
            offsets, values = np.zeros(41, np.int64), np.empty(300)
            _groups.by_label(labels, x, GRID.missing, offsets, values)
            plan = mechanism.plan().kernel(offsets)
            grid = {"lower": GRID.lower, "upper": GRID.upper, "step": GRID.step, "first": GRID.first}
            outs, used = [], []
            for exact in (False, True):
                source, out = ScriptedBits(rest=PCG64(8)), np.empty(40, np.int64)
                assert _groups.draw_quantiles(source, values, offsets, 0, out, exact=exact, **plan, **grid) == 40
                outs.append(out)
                used.append(source.used)
            np.testing.assert_array_equal(*outs)
            assert used[0] == used[1]

    @every("level", [0, 1])
    @every("change", [-1, 0, 1])
    def test_words_on_the_edge_are_decided_exactly(self, level, change):
        """A word next to the end of a level, which doubles cannot decide: the draw equals that of the single median."""
        weights = [(1 - math.exp(-0.35)), (1 - math.exp(-0.35)) * math.exp(-0.35) * 3, math.exp(-0.7) * 5]
        word = int(sum(weights[: level + 1]) / sum(weights) * 2**64) + change
        x, grid = np.array([1.0, 2.0, 3.0]), Grid(0, 4, step=1)
        bounds = {"lower": 0.0, "upper": 4.0, "step": 1.0, "first": 0.0}
        plan = median(grid=grid, selection="exponential").plan().kernel(np.array([0, 3]))
        out, words = np.empty(1, np.int64), ScriptedBits([word], PCG64(1))
        _groups.draw_quantiles(words, x, np.array([0, 3]), 0, out, **plan, **bounds)
        single = ScriptedBits([word], PCG64(1))
        assert out[0] == _levels.RankDraw(0.7, 0, 0.0, 4.0, 1.0, 0.0, 4).draw(single, x)
        assert words.used == single.used

    def test_groups_follow_their_laws(self):
        grid = Grid(0, 12, step=1)
        groups = [[], [3], [0, 12], [5, 5, 6, 7], [1, 2, 2, 9, 9, 9, 12]]
        for neighbors in ("replace-one", "add-remove"):
            mechanism = median(grid=grid, neighbors=neighbors)
            repeats = 3000
            x = np.concatenate(groups * repeats)
            sizes = [len(group) for group in groups] * repeats
            released = by_group(mechanism, x, offsets=np.concatenate([[0], np.cumsum(sizes)]), rng=PCG64(7))
            for i, group in enumerate(groups):
                counts = np.bincount(released.reshape(repeats, -1)[:, i].astype(int), minlength=13)
                uniform = np.full(13, 1 / 13)
                wanted = mechanism.law(group).pmf(np.arange(13)) if group else uniform
                assert not chi_square_rejects(counts, wanted)
            counts = np.bincount(released.reshape(repeats, -1)[:, 4].astype(int), minlength=13)
            assert chi_square_rejects(counts, np.full(13, 1 / 13))

    def test_groups_are_independent_of_each_other(self):
        x, labels = records(3000, 30)
        other = np.where(labels == 7, x + 5, x)
        a, b = (by_group(median(), data, labels=labels, num_groups=30, rng=PCG64(9)) for data in (x, other))
        np.testing.assert_array_equal(np.delete(a, 7), np.delete(b, 7))


class TestRoadsIn:
    def test_workers(self):
        x, labels = records(60_000, 5000)
        for mechanism in (median(), GlobalSensitivity(Mean(), grid=GRID, epsilon=1.0)):
            found = [by_group(mechanism, x, labels=labels, num_groups=5000, rng=PCG64(1), workers=w) for w in (1, 3)]
            np.testing.assert_array_equal(*found)

    @pytest.mark.parametrize("workers", [1, 3])
    def test_blocks_of_the_secure_generator(self, workers):
        """Blocks that one generator draws are drawn in one call; a small group of a large epsilon is its own median."""
        x, groups = np.round(np.random.default_rng(3).uniform(-50, 50, 70_001)), 70_001
        grid = Grid(-50, 50, step=1)
        mechanism = InverseSensitivity(Median(), grid=grid, epsilon=500.0)
        found = by_group(
            mechanism, np.tile(x, 3), labels=np.tile(np.arange(groups), 3), num_groups=groups, workers=workers
        )
        np.testing.assert_array_equal(found, x)

    @every("labels", [np.int8, np.uint16, np.int64, np.uint64, list, lambda values: np.repeat(values, 2)[::2]])
    def test_labels_of_any_kind(self, labels):
        x, plain = records(200, 20)
        plain = np.abs(plain)
        found = by_group(median(), x, labels=labels(plain), num_groups=20, rng=PCG64(1))
        np.testing.assert_array_equal(found, by_group(median(), x, labels=plain, num_groups=20, rng=PCG64(1)))

    def test_labels_far_out_of_range_are_dropped(self):
        x, labels = np.arange(6.0), np.array([0, 2**64 - 1, 2**63, 1, 7, 2**40], np.uint64)
        kept = by_group(median(), x[[0, 3]], labels=[0, 1], rng=PCG64(1))
        np.testing.assert_array_equal(by_group(median(), x, labels=labels, num_groups=2, rng=PCG64(1)), kept)
        mean = GlobalSensitivity(Mean(), grid=GRID, epsilon=1.0)
        kept = by_group(mean, x[[0, 3]], labels=[0, 1], rng=PCG64(1))
        np.testing.assert_array_equal(by_group(mean, x, labels=labels, num_groups=2, rng=PCG64(1)), kept)

    def test_data_are_not_changed_and_may_be_strided_or_read_only(self):
        x, labels = records(400, 20)
        both = np.repeat(x, 2)
        both.flags.writeable = False
        offsets = np.arange(0, 401, 20)
        before = x.copy()
        a = by_group(median(), both[::2], labels=labels, num_groups=20, rng=PCG64(1))
        np.testing.assert_array_equal(a, by_group(median(), x, labels=labels, num_groups=20, rng=PCG64(1)))
        b = by_group(median(), both[::2], offsets=offsets, rng=PCG64(1))
        np.testing.assert_array_equal(b, by_group(median(), x, offsets=offsets, rng=PCG64(1)))
        np.testing.assert_array_equal(x, before)

    def test_no_groups_and_no_records(self):
        assert by_group(median(), [], labels=[]).shape == (0,)
        assert by_group(median(), [], offsets=[0]).shape == (0,)
        released = by_group(median(), [], labels=[], num_groups=3)
        assert released.shape == (3,)
        assert ((released >= GRID.lower) & (released <= GRID.upper)).all()

    def test_the_secure_generator(self):
        x, labels = records(4000, 2000)
        a, b = (by_group(median(epsilon=0.01), x, labels=labels, num_groups=2000) for _ in range(2))
        assert (a != b).mean() > 0.9


class TestOtherMechanisms:
    @every(
        "mechanism",
        [
            GlobalSensitivity(Mean(), grid=GRID, epsilon=1.0),
            GlobalSensitivity(Sum(), grid=GRID, epsilon=1.0, neighbors="add-remove"),
            GlobalSensitivity(Count(), grid=GRID, epsilon=1.0, neighbors="add-remove"),
            InverseSensitivity(TrimmedMean(0.1), grid=GRID, epsilon=1.0),
            dpf.SmoothSensitivity(Median(), grid=GRID, epsilon=1.0),
        ],
    )
    def test_numbers(self, mechanism):
        x, labels = records(500, 60)
        found = by_group(mechanism, x, labels=labels, num_groups=60, rng=PCG64(5))
        np.testing.assert_array_equal(found, one_by_one(mechanism, x, labels, 60, PCG64(5)))

    def test_vectors(self):
        mechanism = Quantiles((0.2, 0.8), grid=GRID, epsilon=1.0)
        x, labels = records(500, 20)
        found = by_group(mechanism, x, labels=labels, num_groups=20, rng=PCG64(5))
        assert found.shape == (20, 2)
        np.testing.assert_array_equal(found, one_by_one(mechanism, x, labels, 20, PCG64(5)))
        with pytest.raises(ValueError, match="group 1 is empty: Quantiles needs records"):
            by_group(mechanism, [1.0, 2.0], labels=[0, 2])

    def test_rows(self):
        x, labels = np.random.default_rng(0).normal(size=(300, 3)), np.arange(300) % 4
        found = by_group(NestedBoxes(grid=Grid(-10, 10), epsilon=2.0), x, labels=labels, rng=PCG64(1))
        assert found.shape == (4, 3)

    def test_failures_are_nan(self):
        mechanism = robust.RangeFreeBoxes(step=2.0**-10, width=1.0, epsilon=2.0, delta=1e-3)
        x = np.concatenate([np.random.default_rng(0).normal(size=(2000, 1)), 1e6 * np.arange(2000.0)[:, None]])
        found = by_group(mechanism, x, offsets=[0, 2000, 4000], rng=Generator(PCG64(1)))
        assert abs(found[0, 0]) < 1
        assert math.isnan(found[1, 0])
        found = by_group(mechanism, x[2000:], offsets=[0, 1000, 2000], rng=Generator(PCG64(1)))
        np.testing.assert_array_equal(found, [[np.nan], [np.nan]])  # also where no test passes


def private_labels():
    """Labels of six records and their groups; missing labels do not change the other groups."""
    nan, inf = math.nan, math.inf
    yield np.array([0, 2**64 - 1, 2**63, 1, 7, 2**40], np.uint64), [0, None, None, 1, None, None]
    yield np.array([0, -1, -(2**63), 1, 2**63 - 1, 2]), [0, None, None, 1, None, None]
    yield np.array([0.0, nan, inf, 1.0, 0.5, -inf]), [0, None, None, 1, None, None]
    yield np.array([0.0, 1e308, -0.0, 2.0**63, -1.0, 2.0**53], np.float64), [0, None, 0, None, None, None]
    yield np.array([0, nan, inf, 1, 0.5, -1], np.float16), [0, None, None, 1, None, None]
    yield np.array([True, False, True, True, False, True]), [1, 0, 1, 1, 0, 1]
    yield np.ma.array([0, 1, 0, 1, 0, 1], mask=[0, 1, 1, 0, 0, 1]), [0, None, None, 1, 0, None]
    yield np.ma.array([0, 1, 0, 1, 0, 1.0], mask=[0, 1, 1, 0, 0, 1]), [0, None, None, 1, 0, None]
    yield np.ma.array([0, 1, 0, 1, 0, 1]), [0, 1, 0, 1, 0, 1]
    for sequence in (list, tuple, collections.deque):
        yield sequence([0, None, 2**63, 1, 2**70, -(2**2000)]), [0, None, None, 1, None, None]
        yield sequence([0, "a", 0.5, 1.0, [1], np.ma.masked]), [0, None, None, 1, None, None]
        yield sequence([0, 1, 0, 1, 0, 1]), [0, 1, 0, 1, 0, 1]
    holes = [0, None, 7, 1, 2**62, -1]
    with contextlib.suppress(ImportError):
        import pandas

        for dtype in ("Int64", "Float64", "int64[pyarrow]"):
            yield pandas.Series(holes, dtype=dtype), [0, None, None, 1, None, None]
        yield pandas.Series([2**63, None, 0, 1, 2**64 - 1, 2], dtype="UInt64"), [None, None, 0, 1, None, None]
    with contextlib.suppress(ImportError):
        import pyarrow

        yield pyarrow.array(holes), [0, None, None, 1, None, None]
        yield pyarrow.chunked_array([holes[:3], holes[3:]]), [0, None, None, 1, None, None]
        yield pyarrow.nulls(6), [None] * 6
    with contextlib.suppress(ImportError):
        import polars

        yield polars.Series(holes), [0, None, None, 1, None, None]
        yield polars.Series([2**63, None, 0, 1, 2**64 - 1, 2], dtype=polars.UInt64), [None, None, 0, 1, None, None]
        yield polars.Series([None] * 6), [None] * 6


def kind(labels):
    return f"{type(labels).__module__.split('.')[0]}-{type(labels).__name__}-{getattr(labels, 'dtype', '')}"


class TestPrivateLabels:
    """With a record added or removed labels are private: a label outside the public groups is in no group."""

    X = np.array([3.0, 20.0, 30.0, 40.0, 50.0, 60.0])

    @every("labels, groups", list(private_labels()), ids=lambda value: kind(value))
    def test_labels_outside_the_range_are_in_no_group(self, labels, groups):
        plain = np.array([-1 if group is None else group for group in groups])
        for mechanism in (
            median(neighbors="add-remove"),
            GlobalSensitivity(Count(), grid=GRID, epsilon=1.0, neighbors="add-remove"),
        ):
            found = by_group(mechanism, self.X, labels=labels, num_groups=2, rng=PCG64(1))
            expected = by_group(mechanism, self.X, labels=plain, num_groups=2, rng=PCG64(1))
            np.testing.assert_array_equal(found, expected)

    @pytest.mark.parametrize("labels", [np.array(list("001101")), np.array([0, 1, 0, 1, 0, None]), "001101", b"001101"])
    def test_a_dtype_without_numbers_is_an_error_for_all_values(self, labels):
        with pytest.raises(TypeError, match=r"labels without keys must hold numbers, not (dtype|text)"):
            by_group(median(neighbors="add-remove"), self.X, labels=labels, num_groups=2)

    def test_messages_do_not_tell_how_many_records_there_are(self):
        mechanism = median(neighbors="add-remove")
        for options in (
            {"labels": [0] * 5, "num_groups": 2},
            {"offsets": [0, 2, 5]},
            {"offsets": [[0, 6]]},
        ):
            with pytest.raises(ValueError, match=r"labels must have one|offsets must") as error:
                by_group(mechanism, self.X, **options)
            assert not set("56") & set(str(error.value))


class TestPublicLabels:
    @pytest.mark.host
    @pytest.mark.parametrize("wrap", [np.asarray, "pandas", "pyarrow", "polars"])
    def test_a_missing_label_of_declared_integers_is_in_no_group(self, wrap):
        if wrap is np.asarray:
            labels = np.ma.array([0, 1, 0, 1], mask=[False, True, False, False])
        else:
            library = pytest.importorskip(wrap)
            column = {"pandas": lambda x: library.Series(x, dtype="Int64"), "pyarrow": lambda x: library.array(x)}
            labels = column.get(wrap, lambda x: library.Series(x))([0, None, 0, 1])
        x = np.array([3.0, 20.0, 30.0, 40.0])
        found = by_group(median(), x, labels=labels, rng=PCG64(1))
        np.testing.assert_array_equal(found, by_group(median(), x[[0, 2, 3]], labels=[0, 0, 1], rng=PCG64(1)))

    def test_labels_all_outside_the_range(self):
        assert by_group(median(), [1.0, 2.0], labels=[-7, -9]).shape == (0,)

    @every("labels", [[0.0, 1.0], [0, None], [0, "1"], np.array([0.0, 1.0]), np.array([0, None])])
    def test_labels_without_a_declared_integer_type_are_an_error(self, labels):
        with pytest.raises(TypeError, match="labels without keys must be integers, not dtype"):
            by_group(median(), [1.0, 2.0], labels=labels)


class TestArguments:
    @every(
        "options, error, message",
        [
            ({}, TypeError, "either labels= or offsets="),
            ({"labels": [0, 1, 1], "offsets": [0, 3]}, TypeError, "either labels= or offsets="),
            ({"labels": [0, 1]}, ValueError, "one entry for each record of x"),
            ({"labels": [0.0, 1.0, 1.0]}, TypeError, "labels without keys must be integers"),
            ({"labels": [[0], [1], [2]]}, ValueError, "one entry for each"),
            ({"labels": [0, 1, 1], "num_groups": -1}, ValueError, "num_groups must be at least 0"),
            ({"offsets": [0, 2]}, ValueError, "rise from 0 to the number of records of x"),
            ({"offsets": [0, 4, 3]}, ValueError, "rise from 0"),
            ({"offsets": [1, 3]}, ValueError, "rise from 0"),
            ({"offsets": []}, ValueError, r"num_groups \+ 1 entries"),
            ({"offsets": [0, 3], "num_groups": 2}, ValueError, "offsets must have 3 entries"),
            ({"labels": [0, 1, 1], "rng": 3}, TypeError, "rng must be"),
            ({"labels": [0, 1, 1], "workers": 0}, ValueError, "workers"),
        ],
    )
    def test_wrong_ones(self, options, error, message):
        for mechanism in (median(), GlobalSensitivity(Mean(), grid=GRID, epsilon=1.0)):
            with pytest.raises(error, match=message):
                by_group(mechanism, [1.0, 2.0, 3.0], **options)

    def test_private_labels_need_a_public_number_of_groups(self):
        with pytest.raises(TypeError, match="num_groups or keys is needed"):
            by_group(median(neighbors="add-remove"), [1.0], labels=[0])
        with pytest.raises(TypeError, match="mechanism must be"):
            by_group(np.median, [1.0], labels=[0])
        with pytest.raises(ValueError, match="one-dimensional"):
            by_group(median(), [[1.0]], labels=[0])

    def test_one_charge_for_all_groups(self):
        with dpf.Ledger(1.0) as ledger:
            by_group(median(epsilon=0.5), np.arange(10.0), labels=np.arange(10) % 3)
            by_group(GlobalSensitivity(Mean(), grid=GRID, epsilon=0.5), np.arange(10.0), labels=np.arange(10) % 3)
        assert ledger.spent.epsilon == 1.0


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        (dpf.Selection(epsilon=1.0), "takes scores"),
        (dpf.densities.PerturbedHistogram(3, grid=GRID, epsilon=1.0), "does not release numbers"),
    ],
    ids=lambda p: type(p).__name__,
)
def test_mechanisms_without_releases_for_groups_are_not_charged(mechanism, message):
    ledger = dpf.Ledger(10.0)
    with ledger, pytest.raises(TypeError, match=message):
        by_group(mechanism, np.arange(6.0), labels=np.arange(6) % 2)
    assert ledger.charges == ()


@pytest.mark.parametrize(
    "grid", [dpf.Grid(0, 100, missing="half"), dpf.FloatGrid(missing="half")], ids=["grid", "floats"]
)
@pytest.mark.parametrize("how", [{"offsets": [0, 1000, 2000]}, {"labels": np.repeat([0, 1], 1000)}], ids=list)
def test_missing_records_are_not_replaced_in_the_array_of_the_caller(grid, how):
    x = np.random.default_rng(0).normal(50, 10, 2000)
    x[::7] = np.nan
    x.flags.writeable = False
    mechanism = dpf.InverseSensitivity(dpf.statistics.Median(), grid=grid, epsilon=1.0)
    released = dpf.by_group(mechanism, x, rng=np.random.PCG64(1), **how)
    assert np.abs(released - 50).max() < 5
    assert np.isnan(x).sum() == 286
