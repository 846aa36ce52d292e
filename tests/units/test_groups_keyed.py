"""Releases for groups with public keys: labels of text, bytes or integers, several columns and several mechanisms."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64, Generator

import dpfast as dpf
from dpfast import GlobalSensitivity, Grid, InverseSensitivity, Ledger, NestedBoxes, Quantiles, by_group
from dpfast.groups import KeyedReleases
from dpfast.groups.keyed import ReleasedColumn
from dpfast.statistics import Count, Mean, Median, Sum
from tests.cases import every
from tests.untouchable import Untouchable

GRID = Grid(0, 100, step=1)
MEDIAN = InverseSensitivity(Median(), grid=GRID, epsilon=0.5, selection="exponential")
PRIVATE = InverseSensitivity(Median(), grid=GRID, epsilon=0.5, selection="exponential", neighbors="add-remove")
MEAN = GlobalSensitivity(Mean(), grid=GRID, epsilon=0.25)
COUNT = GlobalSensitivity(Count(), grid=GRID, epsilon=0.25, neighbors="add-remove")
SUM = GlobalSensitivity(Sum(), grid=GRID, epsilon=0.25, neighbors="add-remove")
QUARTILES = Quantiles((0.25, 0.75), grid=GRID, epsilon=0.5)
NAMES = ["east", "west", "north", "south"]
NONE = ["south pole"]


def records(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(50, 20, n), rng.integers(0, 4, n)


def made(keys, array, **options):
    return KeyedReleases(keys, [ReleasedColumn("release", array)], dpf.Privacy(1.0), **options)


def values_of(released):
    assert isinstance(released, KeyedReleases)
    return released.array


class TestLabels:
    @every("mechanism", [MEDIAN, PRIVATE, MEAN, COUNT, SUM])
    @every(
        "wrap",
        [
            pytest.param(lambda names: names, id="list"),
            pytest.param(np.array, id="text"),
            pytest.param(lambda names: np.array(names, object), id="objects"),
            pytest.param(lambda names: np.array([name.encode() for name in names]), id="bytes"),
            pytest.param(lambda names: [name.encode() for name in names], id="list of bytes"),
            pytest.param(lambda names: list(np.array(names)), id="list of NumPy scalars"),
        ],
    )
    def test_the_releases_are_those_of_the_codes(self, mechanism, wrap):
        x, codes = records()
        labels, keys = wrap([NAMES[code] for code in codes]), list(wrap(NAMES))
        found = by_group(mechanism, x, labels=labels, keys=keys, rng=PCG64(3))
        assert list(found) == keys
        expected = by_group(mechanism, x, labels=codes, num_groups=4, rng=PCG64(3))
        np.testing.assert_array_equal(values_of(found), expected)

    @every("dtype", [np.int8, np.uint16, np.int64, np.uint64, np.float64, list])
    def test_integers_such_as_years(self, dtype):
        x, codes = records()
        years = 100 + codes
        labels = years.tolist() if dtype is list else years.astype(dtype)
        found = by_group(MEDIAN, x, labels=labels, keys=[100, 101, 102, 103], rng=PCG64(3))
        assert list(found) == [100, 101, 102, 103]
        np.testing.assert_array_equal(values_of(found), by_group(MEDIAN, x, labels=codes, num_groups=4, rng=PCG64(3)))

    @pytest.mark.parametrize("mechanism", [MEDIAN, PRIVATE, COUNT, MEAN], ids=repr)
    def test_the_result_has_the_order_of_the_keys(self, mechanism):
        x, codes = records()
        labels, order = [NAMES[code] for code in codes], [2, 0, 3, 1]
        found = by_group(mechanism, x, labels=labels, keys=[NAMES[i] for i in order], rng=PCG64(3))
        places = np.argsort(order)[codes]
        expected = by_group(mechanism, x, labels=places, num_groups=4, rng=PCG64(3))
        np.testing.assert_array_equal(values_of(found), expected)

    @pytest.mark.parametrize("mechanism", [MEDIAN, PRIVATE, COUNT], ids=repr)
    def test_missing_labels_and_labels_of_other_groups_are_in_no_group(self, mechanism):
        x, codes = records()
        labels = np.array([*NAMES, None, math.nan, "elsewhere", 0, b"east", 0.5, "East"], object)
        codes = np.random.default_rng(1).integers(0, len(labels), 400)
        kept = codes < 4
        found = by_group(mechanism, x, labels=labels[codes], keys=NAMES, rng=PCG64(3))
        expected = by_group(mechanism, x[kept], labels=codes[kept], num_groups=4, rng=PCG64(3))
        np.testing.assert_array_equal(values_of(found), expected)

    def test_several_columns(self):
        x, codes = records()
        names, years = np.array(NAMES)[codes % 2], 2000 + codes // 2
        keys = list(itertools.product(NAMES[:2], [2000, 2001]))
        expected = by_group(MEDIAN, x, labels=2 * (codes % 2) + codes // 2, num_groups=4, rng=PCG64(3))
        for labels in ((names, years), (names.tolist(), years.tolist())):
            for given_keys in (keys, itertools.product(NAMES[:2], [2000, 2001]), list(map(list, keys))):
                found = by_group(MEDIAN, x, labels=labels, keys=given_keys, rng=PCG64(3))
                assert list(found) == keys
                np.testing.assert_array_equal(values_of(found), expected)
        matrix = np.column_stack([codes % 2, codes // 2])
        found = by_group(MEDIAN, x, labels=matrix, keys=np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), rng=PCG64(3))
        assert list(found) == [(0, 0), (0, 1), (1, 0), (1, 1)]
        np.testing.assert_array_equal(values_of(found), expected)

    def test_many_groups(self):
        """More than 2**16, whose records are sorted in two passes."""
        rng = np.random.default_rng(4)
        labels, x = rng.integers(-3, 70_100, 200_000), rng.integers(0, 101, 200_000)
        exact = GlobalSensitivity(Sum(), grid=GRID, epsilon=1e9, neighbors="add-remove")
        found = by_group(exact, x, labels=labels, num_groups=70_000)
        kept = (labels >= 0) & (labels < 70_000)
        np.testing.assert_array_equal(found, np.bincount(labels[kept], x[kept], minlength=70_000))


class TestGroupsWithoutRecords:
    def test_public_ones_are_nan_and_the_others_unchanged(self):
        x, codes = records()
        labels = np.array(NAMES)[codes]
        for mechanism in (MEDIAN, MEAN):
            found = by_group(mechanism, x, labels=labels, keys=[*NAMES, *NONE], rng=PCG64(3))
            assert math.isnan(found["south pole"])
            expected = by_group(mechanism, x, labels=codes, num_groups=5, rng=PCG64(3))
            np.testing.assert_array_equal(values_of(found)[:4], expected[:4])

    @pytest.mark.parametrize("mechanism", [QUARTILES, NestedBoxes(grid=GRID, epsilon=0.5)], ids=repr)
    def test_vectors(self, mechanism):
        x, codes = records()
        data = x if mechanism is QUARTILES else np.column_stack([x, x])
        found = by_group(mechanism, data, labels=np.array(NAMES)[codes], keys=[*NONE, *NAMES], rng=PCG64(3))
        assert found.array.shape == (5, 2)
        assert np.isnan(found["south pole"]).all()
        assert not np.isnan(found.array[1:]).any()
        for keys in (NONE, []):
            assert by_group(mechanism, data, labels=np.array(NAMES)[codes], keys=keys).array.shape == (len(keys), 2)

    @pytest.mark.parametrize("mechanism", [PRIVATE, COUNT, SUM], ids=repr)
    def test_private_ones_are_drawn_like_all_others(self, mechanism):
        """Whether a group is empty is private: its release has the law of no records."""
        x, codes = records()
        found = by_group(mechanism, x, labels=np.array(NAMES)[codes], keys=[*NAMES, *NONE], rng=PCG64(3))
        expected = by_group(mechanism, x, labels=codes, num_groups=5, rng=PCG64(3))
        np.testing.assert_array_equal(values_of(found), expected)
        assert not np.isnan(values_of(found)).any()

    def test_without_keys_they_are_drawn_as_before(self):
        assert not np.isnan(by_group(MEDIAN, [1.0], labels=[1])).any()


def kind(outcome):
    """What may not depend on data: types, keys, shapes, dtypes, which numbers are NaN, and messages of errors."""
    if isinstance(outcome, Exception):
        return type(outcome), str(outcome)
    if isinstance(outcome, dict):
        return {name: kind(value) for name, value in outcome.items()}
    return type(outcome), list(outcome), outcome.array.shape, outcome.array.dtype, np.isnan(outcome.array).tolist()


def outcome(*args, **options):
    try:
        return by_group(*args, **options)
    except Exception as error:
        return error


CELLS = st.sampled_from([*NAMES, *NONE, "", "a\0b", "\ud800", None, math.nan, 0, 1, -1, True, 2**70, 0.5, 1.0, b"east"])
COLUMNS = {
    "list": lambda cells: cells,
    "objects": lambda cells: np.array([*cells, None], object)[:-1],
    "text": lambda cells: np.array([str(cell) for cell in cells], "U60"),
    "bytes": lambda cells: np.array([repr(cell).encode() for cell in cells], "S60"),
    "integers": lambda cells: np.array([len(repr(cell)) % 7 for cell in cells], np.int64),
    "floats": lambda cells: np.array([cell if isinstance(cell, (int, float)) else 0.3 for cell in cells], float),
}
KEYS = st.lists(st.sampled_from([*NAMES, *NONE, "", 0, 1, 5, b"east"]), unique=True, max_size=6)


class TestNeighbours:
    """T26: neighbours have the same type of outcome, keys, order, dtype and absent groups, and close laws."""

    @settings(max_examples=150, deadline=None)
    @given(
        st.lists(CELLS, max_size=12), CELLS, st.integers(0, 12), KEYS, st.sampled_from(list(COLUMNS)), st.integers(0, 2)
    )
    def test_a_record_added_with_its_label(self, cells, cell, place, keys, column, several):
        more = [*cells[:place], cell, *cells[place:]]
        mechanism = [PRIVATE, COUNT, {"sum": SUM, "count": COUNT}][several]
        found = [
            outcome(mechanism, np.arange(float(len(data))), labels=COLUMNS[column](data), keys=keys, rng=PCG64(1))
            for data in (cells, more)
        ]
        assert kind(found[0]) == kind(found[1])

    @settings(max_examples=150, deadline=None)
    @given(st.lists(CELLS, min_size=1, max_size=12), st.integers(0, 11), st.floats(), KEYS, st.integers(0, 2))
    def test_a_record_replaced(self, cells, place, value, keys, several):
        x = np.arange(float(len(cells)))
        other = x.copy()
        other[place % len(x)] = value
        mechanism = [MEDIAN, QUARTILES, {"median": MEDIAN, "quartiles": QUARTILES}][several]
        found = [outcome(mechanism, data, labels=cells, keys=keys, rng=PCG64(1)) for data in (x, other)]
        assert kind(found[0]) == kind(found[1])

    def test_a_control_that_leaves_out_empty_groups_is_found(self):
        """Releasing the groups that occur, as a groupby does, is not private: neighbours differ in their keys."""
        labels = ["east", "east", "west"]
        found = [
            by_group(PRIVATE, np.zeros(len(data)), labels=data, keys=list(dict.fromkeys(data)))
            for data in (labels, labels[:2])
        ]
        assert kind(found[0]) != kind(found[1])

    def test_counts_of_neighbours_differ_in_one_group_by_one(self):
        exact = GlobalSensitivity(Count(), grid=GRID, epsilon=1e9, neighbors="add-remove")
        cells = [*NAMES, *NAMES[:2], None, "elsewhere"]
        for label in [*cells, 5]:
            before, after = (
                by_group(exact, np.zeros(len(data)), labels=data, keys=NAMES).array for data in (cells, [label, *cells])
            )
            assert np.abs(after - before).sum() == (label in NAMES)


class TestSeveralMechanisms:
    def test_each_equals_its_own_call(self):
        x, codes = records()
        labels = np.array(NAMES)[codes]
        mechanisms = {"middle": MEDIAN, "mean": MEAN, "quartiles": QUARTILES}
        found = by_group(mechanisms, x, labels=labels, keys=[*NAMES, *NONE], rng=Generator(PCG64(3)))
        assert list(found.columns) == list(found["east"]) == list(mechanisms)
        source = Generator(PCG64(3))
        for name, mechanism in mechanisms.items():
            expected = by_group(mechanism, x, labels=labels, keys=[*NAMES, *NONE], rng=source)
            assert list(found.columns[name]) == list(expected) == list(found)
            np.testing.assert_array_equal(values_of(found.columns[name]), values_of(expected))
            np.testing.assert_array_equal([found[key][name] for key in found], values_of(expected))
        assert found.privacy == dpf.Privacy(1.25)
        assert values_of(found).shape == (5, 4)

    def test_a_list_is_named_by_statistics(self):
        x, codes = records()
        found = by_group([PRIVATE, COUNT], x, labels=np.array(NAMES)[codes], keys=NAMES)
        assert list(found.columns) == ["median", "count"]
        with pytest.raises(ValueError, match="distinct names"):
            by_group([PRIVATE, PRIVATE], x, labels=np.array(NAMES)[codes], keys=NAMES)

    def test_columns_of_records(self):
        x, codes = records()
        labels, data = np.array(NAMES)[codes], {"pay": x, "age": x[::-1]}
        found = by_group({"pay": (MEDIAN, "pay"), "age": (MEAN, "age")}, data, labels=labels, keys=NAMES, rng=PCG64(3))
        source = PCG64(3)
        for (name, column), mechanism in zip(data.items(), (MEDIAN, MEAN), strict=True):
            expected = by_group(mechanism, column, labels=labels, keys=NAMES, rng=source)
            np.testing.assert_array_equal(values_of(found.columns[name]), values_of(expected))
        with pytest.raises(ValueError, match="equally long"):
            by_group({"a": (MEDIAN, "a"), "b": (MEAN, "b")}, {"a": x, "b": x[1:]}, labels=labels, keys=NAMES)

    def test_codes_without_keys(self):
        x, codes = records()
        found = by_group({"middle": MEDIAN, "mean": MEAN}, x, labels=codes, rng=PCG64(3))
        source = PCG64(3)
        for name, mechanism in (("middle", MEDIAN), ("mean", MEAN)):
            np.testing.assert_array_equal(found[name], by_group(mechanism, x, labels=codes, rng=source))

    def test_all_or_none_are_charged(self):
        x, codes = records()
        labels = np.array(NAMES)[codes]
        with Ledger("0.625") as ledger:
            with pytest.raises(dpf.BudgetError, match=r"of 2 costs of one call, number 2: .* epsilon = 0.125 is left"):
                by_group([MEDIAN, MEAN], Untouchable(), labels=Untouchable(), keys=NAMES)
            assert ledger.charges == ()
            by_group(MEAN, x, labels=labels, keys=NAMES)
        assert ledger.spent.epsilon == 0.25
        with Ledger(1) as ledger:
            by_group([MEDIAN, MEAN], x, labels=labels, keys=NAMES)
        assert [charge.profile for charge in ledger.charges] == [MEDIAN.privacy_profile, MEAN.privacy_profile]
        assert [charge.label for charge in ledger.charges] == [f"{m!r} for each group" for m in (MEDIAN, MEAN)]

    def test_a_planned_ledger_and_one_with_a_file(self, tmp_path):
        x, codes = records()
        labels, file = np.array(NAMES)[codes], tmp_path / "ledger"
        with Ledger(1, path=file) as ledger:
            by_group([MEDIAN, MEAN], x, labels=labels, keys=NAMES)
            with pytest.raises(dpf.BudgetError, match="of 2 costs"):
                by_group([MEDIAN, MEAN], x, labels=labels, keys=NAMES)
        assert [charge.times for charge in Ledger(1, path=file).charges] == [1, 1]
        with Ledger(1, plan=[MEDIAN, MEAN]) as ledger:
            with pytest.raises(dpf.BudgetError, match="release 1 of the plan"):
                by_group([MEAN, MEDIAN], x, labels=labels, keys=NAMES)
            by_group([MEDIAN, MEAN], x, labels=labels, keys=NAMES)
        assert len(ledger.charges) == 2


SELECTION = dpf.PartitionSelection(0.25, 1e-3)


class TestPrivateKeys:
    def labels(self, seed=5):
        """Three frequent labels, and rare or missing ones."""
        rng = np.random.default_rng(seed)
        cells = [*np.array(NAMES[:3], object)[rng.integers(0, 3, 600)], *map(str, range(40)), None, math.nan]
        rng.shuffle(cells)
        return cells, rng.normal(50, 20, len(cells))

    @pytest.mark.parametrize("mechanism", [PRIVATE, COUNT, {"sum": SUM, "count": COUNT}], ids=repr)
    def test_the_keys_are_those_of_a_partition_selection(self, mechanism):
        cells, x = self.labels()
        for labels in (cells, np.array(cells, object), np.array(list(map(str, cells)))):
            found = by_group(mechanism, x, labels=labels, keys="private", partitions=SELECTION, rng=Generator(PCG64(3)))
            source = Generator(PCG64(3))
            keys = SELECTION(labels, rng=source).keys
            expected = by_group(mechanism, x, labels=labels, keys=keys, rng=source)
            assert list(found) == list(expected) == sorted(NAMES[:3])
            np.testing.assert_array_equal(found.array, expected.array)
            np.testing.assert_array_equal(found.counts, SELECTION(labels, rng=Generator(PCG64(3))).counts)
            several = isinstance(mechanism, dict)
            epsilon = 0.25 if mechanism is COUNT else 0.5
            assert expected.privacy == dpf.Privacy(epsilon, neighbors="add-remove")
            assert found.privacy == dpf.Privacy(0.25 + epsilon, 1e-3, "add-remove")
            assert expected.counts is None
            assert list(found.to_columns()) == ["key", "count", *(["sum", "count_"] if several else ["release"])]

    def test_several_columns_and_integers(self):
        cells, x = self.labels()
        years = np.where(np.arange(len(x)) % 2, 2001, 2002)
        found = by_group(PRIVATE, x, labels=(cells, years), keys="private", partitions=SELECTION, rng=PCG64(3))
        assert list(found) == list(itertools.product(sorted(NAMES[:3]), [2001, 2002]))
        source = Generator(PCG64(3))
        keys = SELECTION((cells, years), rng=source).keys
        np.testing.assert_array_equal(
            found.array, by_group(PRIVATE, x, labels=(cells, years), keys=keys, rng=source).array
        )
        found = by_group(PRIVATE, x, labels=years, keys="private", partitions=SELECTION, rng=PCG64(3))
        assert list(found) == [2001, 2002]
        listed = dpf.PartitionSelection(0.5, domain=("south", "east"))
        found = by_group(PRIVATE, x, labels=cells, keys="private", partitions=listed, rng=PCG64(3))
        assert list(found) == ["south", "east"]

    def test_both_are_charged_or_none(self):
        cells, x = self.labels()
        options = {"keys": "private", "partitions": SELECTION}
        with Ledger(1, 1e-3, neighbors="add-remove") as ledger:
            by_group(PRIVATE, x, labels=cells, **options)
            with pytest.raises(dpf.BudgetError, match="of 2 costs of one call, number 1"):
                by_group(COUNT, Untouchable(), labels=Untouchable(), **options)
        assert [charge.profile for charge in ledger.charges] == [SELECTION.privacy_profile, PRIVATE.privacy_profile]
        assert ledger.spent == dpf.Privacy(0.75, 1e-3, "add-remove")

    @pytest.mark.parametrize(
        "mechanism", [PRIVATE, dpf.NoisySums(Sum(), domain=dpf.domains.Box(GRID), epsilon=1.0, neighbors="add-remove")]
    )
    def test_without_a_released_key(self, mechanism):
        data = [1.0, 2.0] if mechanism is PRIVATE else [[1.0, 2.0], [3.0, 4.0]]
        full = by_group(mechanism, data, labels=["a", "b"], keys=["a", "b"])
        for labels in (["a", "b"], [None, None], np.array([1, 2])):
            empty = by_group(
                mechanism, data, labels=labels, keys="private", partitions=dpf.PartitionSelection(0.5, 1e-9)
            )
            assert empty.array.shape == (0, *full.array.shape[1:])

    @given(st.lists(CELLS, max_size=12), st.sampled_from(list(COLUMNS)))
    def test_the_type_of_outcome_depends_on_types_alone(self, cells, column):
        likely = dpf.PartitionSelection(5.0, 0.9)
        found = outcome(
            PRIVATE,
            np.zeros(len(cells)),
            labels=COLUMNS[column](cells),
            keys="private",
            partitions=likely,
            rng=PCG64(1),
        )
        assert isinstance(found, KeyedReleases)
        assert found.array.dtype == np.float64

    @every(
        "mechanism, options, error, message",
        [
            (PRIVATE, {"keys": "private"}, TypeError, "must be given together"),
            (PRIVATE, {"keys": NAMES, "partitions": SELECTION}, TypeError, "must be given together"),
            (PRIVATE, {"num_groups": 3, "partitions": SELECTION}, TypeError, "must be given together"),
            (PRIVATE, {"keys": "private", "partitions": 0.1}, TypeError, "must be a dpfast.PartitionSelection"),
            (MEDIAN, {"keys": "private", "partitions": SELECTION}, ValueError, "needs neighbors='add-remove'"),
            (
                PRIVATE,
                {"keys": "private", "partitions": dpf.PartitionSelection(0.5, 1e-6, neighbors="replace-one")},
                ValueError,
                "needs neighbors='add-remove'",
            ),
        ],
    )
    def test_wrong_ones(self, mechanism, options, error, message):
        with Ledger(100, 0.1, neighbors=mechanism.privacy.neighbors) as ledger, pytest.raises(error, match=message):
            by_group(mechanism, [1.0], labels=[1], **options)
        assert ledger.charges == ()

    def test_counted_values_have_no_records_to_select_by(self):
        with pytest.raises(TypeError, match="not counted"):
            by_group(COUNT, dpf.Counted([1.0], [3]), labels=["a"], keys="private", partitions=SELECTION)
        found = by_group(COUNT, dpf.Counted([1.0, 2.0], [300, 200]), labels=["a", "b"], keys=["b", "a"])
        assert found["a"] > found["b"] > 100


class TestArguments:
    @every(
        "options, error, message",
        [
            ({"keys": "east"}, TypeError, "'private' or a sequence"),
            ({"keys": {"east"}}, TypeError, "in their order"),
            ({"keys": 7}, TypeError, "'private' or a sequence"),
            ({"keys": ["east", "east"]}, ValueError, "must differ"),
            ({"keys": [1, True]}, ValueError, "must differ"),
            ({"keys": ["east", None, None]}, TypeError, "not None"),
            ({"keys": ["east"], "others": "east"}, ValueError, "others must differ from the keys"),
            ({"others": "east", "num_groups": 3}, TypeError, "give it with a list of keys="),
            ({"keys": [("east", None)], "labels": ([1, 2, 3], [1, 2, 3])}, TypeError, "not None"),
            ({"keys": [{0.5}]}, TypeError, "keys must be text, bytes, numbers, dates or UUIDs, not {0.5}"),
            ({"keys": [("east", 1)]}, ValueError, r"each column of labels \(1\)"),
            ({"keys": [("east", 1), "west"]}, ValueError, r"each column of labels \(1\)"),
            ({"keys": ["east"], "labels": ([1, 2, 3], [1, 2, 3])}, ValueError, r"each column of labels \(2\)"),
            ({"keys": [()]}, ValueError, r"each column of labels \(1\)"),
            ({"keys": NAMES, "num_groups": 4}, TypeError, "leave out offsets and num_groups"),
            ({"keys": NAMES, "labels": None, "offsets": [0, 3]}, TypeError, "leave out offsets and num_groups"),
            ({"keys": NAMES, "labels": ["east"]}, ValueError, "one entry for each record of x"),
            ({"keys": NAMES, "labels": np.array([1j, 2j, 3j])}, TypeError, "numbers, text or bytes"),
            ({"keys": NAMES, "rng": 3}, TypeError, "rng must be"),
        ],
    )
    @every("mechanism", [pytest.param(MEDIAN, id="public"), pytest.param(PRIVATE, id="private")])
    def test_wrong_ones(self, mechanism, options, error, message):
        with pytest.raises(error, match=message):
            by_group(mechanism, [1.0, 2.0, 3.0], **{"labels": ["east"] * 3, **options})

    @every(
        "mechanism, error, message",
        [
            ([], ValueError, "at least one mechanism"),
            ({}, ValueError, "at least one mechanism"),
            ({"a": MEDIAN, "b": PRIVATE}, ValueError, "neighbors must be the same"),
            ({"a": np.median}, TypeError, "must be a dpfast.Mechanism"),
            ([MEDIAN, dpf.Selection(epsilon=1.0)], TypeError, "takes scores"),
        ],
    )
    def test_wrong_mechanisms_cost_nothing(self, mechanism, error, message):
        with Ledger(100.0) as ledger, pytest.raises(error, match=message):
            by_group(mechanism, [1.0], labels=["east"], keys=NAMES)
        assert ledger.charges == ()


SOME_MISSING = ["a", None, "b", "c", "a", None, "d", "b"]


class TestMissingAndOtherLabels:
    @every("mechanism", [MEDIAN, COUNT, SUM])
    @every(
        "wrap",
        [
            list,
            lambda cells: np.array(cells, object),
            lambda cells: np.ma.masked_equal([ord(c or "?") for c in cells], 63),
        ],
    )
    def test_groups_of_their_own(self, mechanism, wrap):
        x, labels = np.arange(8.0), wrap(SOME_MISSING)
        a, b, rest = (97, 98, 0) if isinstance(labels, np.ma.MaskedArray) else ("a", "b", "rest")
        for keys, others, codes in (
            ([a, None, b], None, [0, 1, 2, -1, 0, 1, -1, 2]),
            ([None, b], rest, [2, 0, 1, 2, 2, 0, 2, 1]),
            ([b, a], rest, [1, -1, 0, 2, 1, -1, 2, 0]),
            ([None], None, [-1, 0, -1, -1, -1, 0, -1, -1]),
        ):
            found = by_group(mechanism, x, labels=labels, keys=keys, others=others, rng=PCG64(3))
            expected = by_group(mechanism, x, labels=codes, num_groups=len(found), rng=PCG64(3))
            assert list(found) == [*keys, *([] if others is None else [others])]
            np.testing.assert_array_equal(found.array, expected)

    def test_others_of_several_columns(self):
        labels = (["a", "a", None, "b"], [1, 2, 1, 1])
        exact = GlobalSensitivity(Count(), grid=GRID, epsilon=1e9, neighbors="add-remove")
        found = by_group(exact, np.zeros(4), labels=labels, keys=[("a", 1)], others=("other", 0))
        assert dict(found) == {("a", 1): 1.0, ("other", 0): 2.0}

    def test_neighbours_differ_in_one_group_by_one(self):
        exact = GlobalSensitivity(Count(), grid=GRID, epsilon=1e9, neighbors="add-remove")
        options = {"keys": ["a", None, "b"], "others": "rest"}
        for label in ("a", "b", "z", None, math.nan, 7):
            before, after = (
                by_group(exact, np.zeros(len(data)), labels=data, **options).array
                for data in (SOME_MISSING, [label, *SOME_MISSING])
            )
            assert np.abs(after - before).sum() == 1

    @pytest.mark.host
    def test_frames(self):
        pandas = pytest.importorskip("pandas")
        years = pandas.Series([2001, None, 2002, 2003], dtype="Int64", name="year")
        found = by_group(COUNT, np.zeros(4), labels=years, keys=[2001, None], others=0).to_pandas()
        assert (str(found["year"].dtype), found["year"].tolist()) == ("Int64", [2001, pandas.NA, 0])
        found = by_group(COUNT, np.zeros(4), labels=["x", None, "y", "z"], keys=["x", None], others="other")
        assert found.to_pandas()["key"].tolist()[::2] == ["x", "other"]
        assert found.to_polars()["key"].to_list() == found.to_arrow()["key"].to_pylist() == ["x", None, "other"]


class TestTheResult:
    def test_a_mapping_with_an_array(self):
        released = made(NAMES, np.array([1.0, 2.0, 3.0, math.nan]))
        assert dict(released) == pytest.approx({"east": 1.0, "west": 2.0, "north": 3.0, "south": math.nan}, nan_ok=True)
        assert type(released["east"]) is float
        assert (len(released), "west" in released, "pole" in released) == (4, True, False)
        np.testing.assert_array_equal(np.asarray(released), released.array)
        assert np.asarray(released, dtype=np.float32).dtype == np.float32
        assert repr(released).startswith("KeyedReleases({'east': 1, 'west': 2, 'north': 3, 'south': nan}; epsilon")
        assert "9: 0, ...}; epsilon = 1 (pure" in repr(made(range(11), np.zeros(11)))
        vectors = made([(1, "a")], np.array([[1.0, 2.0]]))
        np.testing.assert_array_equal(vectors[1, "a"], [1.0, 2.0])
        assert repr(vectors).startswith("KeyedReleases({(1, 'a'): [1, 2]}; ")
