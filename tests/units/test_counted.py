"""Counted records: the law of the records in one array, in time of the distinct values."""

import pickle
from decimal import Decimal

import numpy as np
import pytest

import dpfast as dpf
from dpfast.laws import ScalarLaw
from dpfast.statistics import Count, InterquartileRange, Mean, Median, Quantile, Sum, TrimmedMean, Variance
from dpfast.streaming import State
from dpfast.streaming.reading import weighted_sum
from tests.cases import every
from tests.central import outcome, same, takes_rows
from tests.streams import ALL, DEFAULT, GRIDS, INTEGERS, PCG, name, records

pytestmark = pytest.mark.kernel

NUMBERS = [m for m in ALL if not (takes_rows(m) or isinstance(m, (dpf.PartitionSelection, dpf.TopK)))]


def counted(x, seed=0):
    """Distinct values in random order, one of them twice, their counts, and the records in that order."""
    values, counts = np.unique(x, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(values))
    values, counts = np.append(values[order], values[order[0]]), np.append(counts[order], 2)
    return values, counts, np.repeat(values, counts)


@pytest.mark.parametrize("kind", ["smooth", "ties"])
@every("mechanism", NUMBERS, ids=name)
def test_a_release_of_counts_equals_that_of_the_records(mechanism, kind):
    for n in (1, 700) if kind == "smooth" else (23,):
        values, counts, x = counted(records(mechanism, n, kind=kind))
        release = outcome(mechanism, x, rng=PCG(1))
        assert same(outcome(mechanism, dpf.Counted(values, counts), rng=PCG(1)), release)
        many = outcome(mechanism.release, x, size=3, rng=PCG(2))
        assert same(outcome(mechanism.release, dpf.Counted(values, counts), size=3, rng=PCG(2)), many)


@every("mechanism", [m for m in NUMBERS if m.points], ids=name)
def test_a_release_of_codes_equals_that_of_the_records(mechanism):
    values, counts, x = counted(records(mechanism, 700, kind="ties"))
    [grid], absent = mechanism.points, np.isnan(values)
    codes = grid.with_missing(grid.nan_value).encode(values)
    if grid.missing != "drop" or not absent.any():
        assert same(outcome(mechanism.release_counts, codes, counts, rng=PCG(1)), outcome(mechanism, x, rng=PCG(1)))
    with_null = [None if lacks else code for code, lacks in zip(codes.tolist(), absent, strict=True)]
    assert same(outcome(mechanism.release_counts, with_null, counts, rng=PCG(1)), outcome(mechanism, x, rng=PCG(1)))


@every("mechanism", NUMBERS, ids=name)
def test_the_law_is_that_of_the_records(mechanism):
    values, counts, x = counted(np.arange(5.0))
    law, expected = mechanism.law(dpf.Counted(values, counts)), mechanism.law(x)
    assert type(law) is type(expected)
    if isinstance(law, ScalarLaw) and law.support == expected.support:
        low, high = law.support
        codes = np.unique(np.linspace(low, high, 50).astype(np.int64))
        assert np.array_equal(law.logpmf(codes), expected.logpmf(codes))
        other = dpf.Counted(values, counts + 3 * (values == values.max()))
        if not mechanism.hides_n and mechanism.points[0] is INTEGERS:  # the comparison distinguishes laws
            assert not same(outcome(mechanism.release, other, size=40, rng=PCG(1)), law.sample(40, rng=PCG(1)))


@every("mechanism", NUMBERS, ids=name)
def test_states_of_counts_and_of_arrays_merge_and_survive_bytes(mechanism):
    values, counts, x = counted(records(mechanism, 150))
    split = np.cumsum(counts)[79]
    parts = dpf.Counted(values[:40], counts[:40]), dpf.Counted(values[40:80], counts[40:80]), x[split:]
    state = mechanism.start()
    while True:
        made = []
        for part in parts:
            made.append(State.from_bytes(state.to_bytes(), mechanism))
            made[-1].update(part)
        made[0].merge(made[1])
        made[0].merge(made[2])
        state = pickle.loads(pickle.dumps(made[0]))
        if state.number == state.passes:
            break
        state.next_pass()
    assert same(state.release(rng=PCG(3)), mechanism(x, rng=PCG(3)))
    assert same(mechanism(dpf.Chunks(parts), rng=PCG(3)), mechanism(x, rng=PCG(3)))


@every("seed", range(5))
@every("grid", GRIDS.values(), ids=str)
def test_passes_that_read_different_counts_do_not_fail(grid, seed):
    mechanism = dpf.InverseSensitivity(TrimmedMean(0.1), grid=grid, epsilon=1.0)
    rng, state = np.random.default_rng(seed), mechanism.start()
    while True:
        state.update(dpf.Counted(rng.normal(0, 1000, 50), rng.multinomial(1000, np.full(50, 0.02))))
        if state.number == state.passes:
            break
        state.next_pass()
    assert np.isfinite(state.release())


class TestMissing:
    X = np.array([3.0, 5.0, np.nan, 5.0, np.nan, 7.0, np.nan])

    def test_drop(self):
        grid = dpf.Grid(0, 10, step=1, missing="drop")
        mechanism = dpf.InverseSensitivity(Median(), grid=grid, epsilon=1.0, neighbors="add-remove")
        values, counts = np.unique(self.X, return_counts=True)
        expected = mechanism.release(self.X, size=50, rng=PCG(1))
        assert same(mechanism.release(dpf.Counted(values, counts), size=50, rng=PCG(1)), expected)
        assert same(mechanism.release_counts([3, 5, 7, None], [1, 2, 1, 3], size=50, rng=PCG(1)), expected)
        state = mechanism.start()
        state.update(dpf.Counted(values, counts))
        assert state.n == 7
        assert state.summary().n == 4

    def test_half_of_the_missing_records_take_each_end(self):
        grid = dpf.Grid(0, 10, step=1, missing="half")
        mechanism = dpf.GlobalSensitivity(Sum(), grid=grid, epsilon=1e6)
        values, counts = np.unique(self.X, return_counts=True)
        assert mechanism(dpf.Counted(values, counts)) == 20.0 + 10.0
        assert mechanism(np.sort(self.X)[::-1]) == 30.0  # missing ones first

    @every("missing", range(6))
    def test_one_replaced_missing_record_replaces_one_code(self, missing):
        grid = dpf.Grid(0, 10, step=1, missing="half")

        def codes(absent, known):
            values, counts = dpf.Counted([np.nan, *known], [absent, *(1 for _ in known)]).resolved((grid,))
            return np.bincount(np.repeat(grid.encode(values), counts), minlength=11)

        before, after = codes(missing + 1, [4.0]), codes(missing, [4.0, 6.0])
        assert before.sum() == after.sum() == missing + 2
        assert np.abs(before - after).sum() == 2


class TestCounts:
    MEDIAN = dpf.InverseSensitivity(Median(), grid=INTEGERS, epsilon=1.0)

    @every(
        "kind",
        [np.int8, np.uint8, np.int64, np.uint64, np.float32, np.float64, ">i4", bool, object, int, Decimal],
        ids=str,
    )
    def test_any_type_of_counts(self, kind):
        plain = [1, 0, 1, 1, 1] if kind is bool else [3, 0, 100, 7, 50]
        given = [kind(count) for count in plain] if kind in (int, Decimal) else np.array(plain, dtype=kind)
        expected = self.MEDIAN.release_counts([9, 1, 4, 7, 99], plain, size=20, rng=PCG(1))
        assert same(self.MEDIAN.release_counts([9, 1, 4, 7, 99], given, size=20, rng=PCG(1)), expected)

    @pytest.mark.host
    def test_counts_of_arrow_pandas_and_polars(self):
        pandas, polars, arrow = (pytest.importorskip(library) for library in ("pandas", "polars", "pyarrow"))
        codes, counts = [9, 4, None], [3, 100, 7]
        expected = self.MEDIAN.release_counts(codes, counts, size=20, rng=PCG(1))
        for given in (
            arrow.array([Decimal(count) for count in counts], arrow.decimal128(38, 0)),
            arrow.chunked_array([counts[:1], counts[1:]]),
            pandas.Series(counts, dtype="Int64"),
            polars.Series([Decimal(count) for count in counts]),
            polars.Series(counts, dtype=polars.Int128),
        ):
            assert same(self.MEDIAN.release_counts(codes, given, size=20, rng=PCG(1)), expected)

    def test_counts_that_are_none_become_zero(self):
        nasty = [np.nan, -1.0, -np.inf, None, 0.75, "text", Decimal("NaN"), 5]
        assert dpf.Counted(range(8), nasty).counts.tolist() == [0, 0, 0, 0, 0, 0, 0, 5]
        assert dpf.Counted([0, 1], np.array([-(2**63), 2**63 - 1])).counts.tolist() == [0, 2**52]
        assert dpf.Counted([0], np.array([2**64 - 1], np.uint64)).counts.tolist() == [2**52]

    def test_records_beyond_the_limit_are_left_out(self):
        made = dpf.Counted([5, 1, 3, 9], [2**51, 2**50, 2**51, 2**60])
        assert made.records() == made.counts.sum() == 2**52
        assert dict(zip(made.values.tolist(), made.counts.tolist(), strict=True)) == {
            1: 2**50,
            3: 2**51,
            5: 2**50,
            9: 0,
        }
        assert dpf.Counted(np.arange(5000.0), np.full(5000, 2.0**70)).records() == 2**52

    def test_codes_outside_the_grid_take_the_nearest_one(self):
        made = dpf.Counted.of_codes(dpf.Grid(-1, 1, step=0.5), [-7, 2, 10**18, np.nan, np.inf], [1] * 5)
        assert np.array_equal(made.values, [-1.0, 0.0, 1.0, np.nan, 1.0], equal_nan=True)
        floats = dpf.FloatGrid()
        assert floats.encode(dpf.Counted.of_codes(floats, [0, 12345, floats.size], [1] * 3).values).tolist() == [
            0,
            12345,
            floats.size - 1,
        ]

    def test_bad_arguments(self):
        with pytest.raises(ValueError, match="equally long"):
            dpf.Counted([1.0, 2.0], [1])
        with pytest.raises(ValueError, match="one-dimensional"):
            dpf.Counted([1.0], [[1]])
        with pytest.raises(TypeError, match="must hold numbers"):
            dpf.Counted(np.array(["a"]), [1])
        with pytest.raises(TypeError, match=r"must be a dpfast\.Grid"):
            dpf.Counted.of_codes(3, [1], [1])


class TestManyRecords:
    """Totals that no array could hold."""

    @pytest.mark.parametrize("seed", range(3))
    def test_exact_sums(self, seed):
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, 2**52, 1000)
        counts = rng.multinomial(2**52, rng.dirichlet(np.ones(1000)))
        assert weighted_sum(codes, counts) == sum(a * b for a, b in zip(codes.tolist(), counts.tolist(), strict=True))
        grid = dpf.Grid(0, 2**52 - 1, step=1)
        state = dpf.GlobalSensitivity(Variance(), grid=grid, epsilon=1.0).start()
        state._reading.add_counted(codes.astype(float), counts)
        sums = state._reading.summary(2**52)
        assert sums.total == sum(a * b for a, b in zip(codes.tolist(), counts.tolist(), strict=True))
        assert sums.squares == sum(a * a * b for a, b in zip(codes.tolist(), counts.tolist(), strict=True))
        assert weighted_sum(codes[:0], counts[:0]) == 0

    @every("n", [10**12, 2**52])
    @every("grid", GRIDS.values(), ids=str)
    @every("neighbors", ["replace-one", "add-remove"])
    def test_order_statistics(self, grid, n, neighbors):
        """Where few records are near the rank, the law is that of a sample with the same ones and others far away."""
        mechanism = dpf.InverseSensitivity(Median(), grid=grid, epsilon=1.0, neighbors=neighbors)
        near, far = np.arange(15.0, 45.0), n // 2 - 15
        law = mechanism.law(dpf.Counted([*near, grid.lower, grid.upper], [*np.ones(30), far, n - 30 - far]))
        few = 10**4
        small = np.concatenate([np.full(few // 2 - 15, grid.lower), near, np.full(few // 2 - 15, grid.upper)])
        codes = grid.encode(np.linspace(grid.lower, grid.upper, 99))
        assert np.allclose(law.logpmf(codes), mechanism.law(small).logpmf(codes), rtol=1e-6, atol=1e-6)

    def test_each_statistic(self):
        values, counts = np.arange(101), np.full(101, 10**10)
        x = dpf.Counted(values, counts)
        assert dpf.mean(x, bounds=(0, 100), epsilon=1.0) == pytest.approx(50, abs=1e-6)
        assert dpf.variance(x, bounds=(0, 100), epsilon=1.0) == pytest.approx(850, abs=1e-3)
        assert dpf.iqr(x, bounds=(0, 100), epsilon=1.0) == 50
        assert dpf.trimmed_mean(x, 0.1, bounds=(0, 100), epsilon=1.0) == pytest.approx(50, abs=1e-6)
        assert dpf.count(x, epsilon=1.0) == pytest.approx(101 * 10**10, abs=100)
        assert dpf.count(x, epsilon=1.0, within=(10, 19)) == pytest.approx(10**11, abs=100)
        assert dpf.mean(x, bounds=(0, 100), epsilon=1.0, neighbors="add-remove") == pytest.approx(50, abs=1e-6)
        assert dpf.quantile(x, [0.25, 0.5], bounds=(0, 100), epsilon=1.0).tolist() == [25, 50]
        found = dpf.histogram(x, 10, bounds=(0, 100), epsilon=1.0).counts
        assert found == pytest.approx([10**11] * 4 + [11 * 10**10] + [10**11] * 5)


# Functions that choose a mechanism by the records.
FUNCTIONS = {
    "median": lambda x: dpf.median(x, epsilon=5.0, rng=PCG(1)),
    "median, private bounds": lambda x: dpf.median(
        x, bounds="private", method="smooth-sensitivity", epsilon=5.0, delta=1e-6, rng=PCG(1)
    ),
    "mean, private bounds": lambda x: dpf.mean(x, bounds="private", epsilon=5.0, rng=PCG(1)),
    "bounds": lambda x: dpf.bounds(x, epsilon=5.0, rng=PCG(1)),
    "interval of a median": lambda x: tuple(dpf.interval("median", x, epsilon=5.0, rng=PCG(1))),
    "interval of a mean": lambda x: tuple(dpf.interval("mean", x, bounds=(0, 100), epsilon=5.0, rng=PCG(1))),
    "interval of a count": lambda x: tuple(dpf.interval("count", x, epsilon=5.0, rng=PCG(1))),
    "histogram": lambda x: dpf.histogram(x, bounds=(0, 100), epsilon=5.0, rng=PCG(1)).counts.tolist(),
    "density": lambda x: dpf.density(x, bounds=(0, 100), epsilon=5.0, rng=PCG(1)).coefficients.tolist(),
    "synthesize": lambda x: dpf.synthesize(x, 5, bounds=(0, 100), epsilon=5.0, rng=PCG(1)).tolist(),
    "synthesize by ks": lambda x: dpf.synthesize(x, 5, method="ks", bounds=(0, 100), epsilon=5.0, rng=PCG(1)).tolist(),
    "m_estimate": lambda x: dpf.m_estimate(x, dpf.psi.Huber(2.0), bounds=(0, 100), epsilon=5.0, rng=PCG(1)),
}


@every("function", FUNCTIONS)
@every("integers", [False, True])
def test_functions_take_counts(function, integers):
    values, counts, x = counted(np.random.default_rng(0).normal(50, 9, 2000).round())
    if integers:
        values, x = values.astype(np.int64), x.astype(np.int64)
    assert FUNCTIONS[function](dpf.Counted(values, counts)) == FUNCTIONS[function](x)


class TestBins:
    def test_the_value_of_a_bin(self):
        edges, counts = [-np.inf, 0, 10, 30, np.inf], [1, 2, 3, 4]
        assert dpf.Counted.of_bins(edges, counts).values.tolist() == [0, 5, 20, 30]
        assert dpf.Counted.of_bins(edges, counts, at="lower").values.tolist() == [0, 0, 10, 30]
        assert dpf.Counted.of_bins(edges, counts, at="upper").values.tolist() == [0, 10, 30, 30]
        assert dpf.Counted.of_bins([-1e308, 1.5e308], [1]).values.tolist() == [2.5e307]

    @every("edges", [[1.0], [1, 1], [2, 1], [0, np.nan, 2], [-np.inf, np.inf]])
    def test_bad_edges(self, edges):
        with pytest.raises(ValueError, match="edges must be at least two numbers in ascending order"):
            dpf.Counted.of_bins(edges, [1] * (len(edges) - 1))
        with pytest.raises(ValueError, match="at must be one of"):
            dpf.Counted.of_bins(edges, [1] * (len(edges) - 1), at="mean")

    @pytest.mark.parametrize("counts", [[1], [1, 2, 3]])
    def test_one_count_for_each_bin(self, counts):
        with pytest.raises(ValueError, match="counts must have one entry for each bin"):
            dpf.Counted.of_bins([0, 1, 2], counts)

    def test_the_median_is_within_half_a_bin(self):
        x = np.random.default_rng(0).normal(50, 9, 20_000)
        counts, edges = np.histogram(x, np.linspace(0, 100, 41))
        released = dpf.median(dpf.Counted.of_bins(edges, counts), bounds=(0, 100), epsilon=100.0)
        assert abs(released - np.median(x)) < 1.25 + 0.1


class TestRefused:
    ROWS = dpf.Counted([1.0], [5])

    def test_mechanisms_of_other_records(self):
        box = dpf.domains.Box((INTEGERS, INTEGERS))
        rows = dpf.NoisySums(Mean(), domain=box, epsilon=1.0)
        with pytest.raises(TypeError, match="only an array or chunks can hold"):
            rows(self.ROWS)
        with pytest.raises(TypeError, match="takes no counts"):
            rows.release_counts([1], [5])
        blocks = dpf.SampleAndAggregate("exponential", bounds=(0.1, 10), epsilon=1.0, blocks=1)
        with pytest.raises(TypeError, match="only an array or chunks can hold"):
            blocks(self.ROWS)
        with pytest.raises(TypeError, match="only an array or chunks can hold"):
            dpf.PerturbedHistogram((2, 2), grid=(INTEGERS, INTEGERS), epsilon=1.0)(self.ROWS)
        with pytest.raises(TypeError, match="only an array or chunks can hold"):
            dpf.robust_mean(self.ROWS, bounds=(0, 1), epsilon=1.0)
        with pytest.raises(ValueError, match="two-dimensional"):
            dpf.mean(self.ROWS, radius=1.0, epsilon=1.0)

    @pytest.mark.parametrize("public", [{"delta": 1e-6}, {"domain": range(5)}])
    def test_keys(self, public):
        selection = dpf.PartitionSelection(1.0, **public)
        with pytest.raises(TypeError, match="only an array or chunks can hold"):
            selection(self.ROWS)
        with pytest.raises(TypeError, match="takes no counts"):
            selection.release_counts([1], [5])

    def test_a_state_of_too_many_records(self):
        state = dpf.GlobalSensitivity(Count(), grid=INTEGERS, epsilon=1.0, neighbors="add-remove").start()
        state.n = 2**62 - 4
        with pytest.raises(ValueError, match=r"more than 2\*\*62 records"):
            state.update(self.ROWS)


def test_a_release_is_charged_once():
    ledger = dpf.Ledger(10.0)
    mechanism = dpf.InverseSensitivity(InterquartileRange(), grid=DEFAULT, epsilon=0.5)
    with ledger:
        mechanism.release_counts([1, 2], [5, 6])
        mechanism.release_counts([1, 2], [5, 6], size=3)
        dpf.median(dpf.Counted([1.0], [9]), epsilon=1.0)
        with pytest.raises(ValueError, match="one-dimensional"):
            mechanism.release_counts([1, 2], 3)
    charges = [(charge.profile.privacy.epsilon, charge.times) for charge in ledger.charges]
    assert charges == [
        (0.5, 1),
        (0.5, 3),
        (1.0, 1),
    ]
    with ledger, pytest.raises(dpf.BudgetError):
        mechanism.law(dpf.Counted([1.0], [9]))


def test_counts_are_private():
    made = dpf.Counted([1.5, 2.5], [3, 4])
    assert repr(made) == "<Counted private records>"
    assert pickle.loads(pickle.dumps(made)).records() == 7


def test_audit_of_a_mechanism_that_counts():
    """The guarantee holds for counted records, as for the records."""

    class Counting(dpf.InverseSensitivity):
        def law(self, x, *, workers=1):
            return super().law(dpf.Counted(x, np.ones(len(x))))

    mechanism = Counting(Quantile(0.3), grid=dpf.Grid(0, 4, step=1), epsilon=1.0)
    assert dpf.audit.verify(mechanism, n=3, values=5, ordered=False).holds

    class Doubling(dpf.InverseSensitivity):
        def law(self, x, *, workers=1):
            return super().law(dpf.Counted(x, np.full(len(x), 2)))

    assert not dpf.audit.verify(
        Doubling(Quantile(0.3), grid=dpf.Grid(0, 4, step=1), epsilon=1.0), n=3, values=5, ordered=False
    ).holds


class TestGroups:
    """Groups of counted values, as a GROUP BY of keys and codes gives them."""

    VALUES = np.array([40.0, 41.0, 50.0, 60.0, 61.0, 99.0, 70.0])
    COUNTS = np.array([3, 4, 10**9, 2 * 10**9, 3, 0, 5])
    LABELS = np.array([0, 0, 1, 1, 1, 2, 7])
    GRID = dpf.Grid(0, 100, step=1)

    @pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
    def test_each_group_has_the_law_of_its_records(self, neighbors):
        mechanism = dpf.InverseSensitivity(Median(), grid=self.GRID, epsilon=1.0, neighbors=neighbors)
        x = dpf.Counted(self.VALUES, self.COUNTS)
        draws = np.array(
            [dpf.by_group(mechanism, x, labels=self.LABELS, num_groups=4, rng=PCG(seed)) for seed in range(300)]
        )
        for group in range(4):
            inside = group == self.LABELS
            if not inside.any() or not self.COUNTS[inside].any():
                assert len(np.unique(draws[:, group])) > 60  # any point of the grid
                continue
            law = mechanism.law(dpf.Counted(self.VALUES[inside], self.COUNTS[inside]))
            expected = np.exp(law.logpmf(np.arange(101)))
            found = np.bincount(draws[:, group].astype(int), minlength=101)
            assert expected[found > 0].min() > 1e-4
            assert abs(found / 300 - expected).max() < 0.2

    def test_keys_offsets_and_several_mechanisms(self):
        mechanisms = {
            "median": dpf.InverseSensitivity(Median(), grid=self.GRID, epsilon=20.0),
            "mean": dpf.GlobalSensitivity(Mean(), grid=self.GRID, epsilon=1e6),
        }
        x, keys = dpf.Counted(self.VALUES, self.COUNTS), np.array(["a", "a", "b", "b", "b", "c", "z"])
        with dpf.Ledger(1e9) as ledger:
            released = dpf.by_group(mechanisms, x, labels=keys, keys=["b", "a", "c", "none"])
        assert len(ledger.charges) == 2
        assert [released[key]["median"] for key in "ba"] == [60, 41]
        assert [released[key]["mean"] for key in "ba"] == pytest.approx([170 / 3, 284 / 7], abs=1e-3)
        assert np.isnan([released["c"]["median"], released["none"]["median"]]).all()
        whole = dpf.by_group(mechanisms["median"], x, offsets=[0, 2, 2, 7])
        assert whole[0] == 41
        assert whole[2] == 60

    def test_labels_are_those_of_the_values(self):
        with pytest.raises(ValueError, match="one entry for each record"):
            dpf.by_group(
                dpf.InverseSensitivity(Median(), grid=self.GRID, epsilon=1.0),
                dpf.Counted(self.VALUES, self.COUNTS),
                labels=self.LABELS[:-1],
            )
