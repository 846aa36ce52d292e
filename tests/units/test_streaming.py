"""Streams: a release of chunks is that of one array, states merge in any order, and bytes are never trusted."""

import json
import pickle
import struct
import sys
import zlib
from functools import cache

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dpf
from dpfast._kernels import _stream
from dpfast.densities import KolmogorovSmirnov, PerturbedHistogram, SeriesCoefficients, SmoothedHistogram
from dpfast.robust import RangeFreeBoxes
from dpfast.statistics import (
    Huber,
    InterquartileRange,
    Mean,
    Median,
    Quantile,
    Sum,
    TrimmedMean,
    Variance,
    WinsorizedMean,
)
from dpfast.streaming import State, ranks
from tests.threads import in_threads

pytestmark = pytest.mark.kernel

PCG = np.random.PCG64
INTEGERS = dpf.Grid(0, 100, step=1)  # one pass
DEFAULT = dpf.Grid(-10, 100)  # two
FINE = dpf.Grid(-(2.0**20), 2.0**20, step=2.0**-30)  # three
GRIDS = {1: INTEGERS, 2: DEFAULT, 3: FINE}
RANKED = [Median(), Quantile(0.9), TrimmedMean(0.1), WinsorizedMean(0.2), Mean(), InterquartileRange(), Huber(2.0)]


def mechanisms(grid):
    """Every central mechanism, with every statistic it takes."""
    for statistic in RANKED:
        if isinstance(statistic, Mean) and grid is FINE:
            continue  # n codes of it are beyond 64 bits in the larger tests
        yield dpf.InverseSensitivity(statistic, grid=grid, epsilon=3.0)
        if not isinstance(statistic, Huber):
            yield dpf.SmoothSensitivity(statistic, grid=grid, epsilon=5.0)
    for statistic in (Mean(), Sum(), Variance()):
        yield dpf.GlobalSensitivity(statistic, grid=grid, epsilon=1.0)
    yield dpf.Quantiles([0.1, 0.5, 0.9], grid=grid, epsilon=5.0)
    yield PerturbedHistogram(7, grid=grid, epsilon=1.0)
    yield PerturbedHistogram(7, grid=grid, epsilon=1.0, neighbors="add-remove")
    yield SmoothedHistogram(7, k=5, grid=grid, epsilon=1.0)
    yield SeriesCoefficients(4, grid=grid, epsilon=1.0)
    yield dpf.MEstimator(dpf.psi.Huber(2.0), grid=grid, epsilon=1.0)
    yield KolmogorovSmirnov(4, grid=grid, epsilon=1.0)
    yield dpf.NestedBoxes(grid=grid, epsilon=4.0)
    yield dpf.NestedBoxes(TrimmedMean(0.1), grid=(grid, INTEGERS), scale=(1.0, 2.0), epsilon=4.0)
    yield dpf.NestedBoxes(Huber(3.0), grid=grid, transform=((1.0, 1.0), (0.0, 1.0)), epsilon=4.0)
    yield RangeFreeBoxes(step=2.0**-10, width=8.0, epsilon=8.0, delta=1e-2)


ALL = [mechanism for grid in GRIDS.values() for mechanism in mechanisms(grid)]
# Scores of candidates are no records; blocks are positions (tests/units/test_aggregate.py).
WITHOUT = {dpf.Selection, dpf.SampleAndAggregate}


def name(mechanism):
    if not isinstance(mechanism, dpf.Mechanism):
        return str(mechanism)
    statistic = getattr(mechanism, "statistic", "")
    return f"{type(mechanism).__name__}-{statistic}-{mechanism.start().passes}".replace(" ", "-")


def columns(mechanism):
    return isinstance(mechanism, (dpf.NestedBoxes, RangeFreeBoxes))


def records(mechanism, n, seed=0, kind="smooth"):
    x = np.random.default_rng(seed).normal(30, 8, n)
    if kind == "ties":
        x = np.where(np.arange(n) % 3 > 0, 12.25, np.round(x))
        x[::7] = np.nan
    return np.stack([x, 2 * x[::-1]], axis=1) if columns(mechanism) else x


def plain(release):
    return getattr(release, "counts", release)


def same(a, b):
    return type(a) is type(b) and np.array_equal(plain(a), plain(b))


def outcome(release, x, **options):
    """A release, or the message for a public number of records that it is not made for."""
    try:
        return release(x, rng=PCG(1), **options)
    except ValueError as error:
        return str(error)


def states(mechanism, chunks, state=None):
    """A state for each chunk, all in one pass."""
    blank = mechanism.start() if state is None else state
    made = []
    for chunk in chunks:
        made.append(State.from_bytes(blank.to_bytes(), mechanism))
        made[-1].update(chunk)
    return made


def subclasses(kind):
    for child in kind.__subclasses__():
        yield child
        yield from subclasses(child)


def test_every_mechanism_is_tested_here():
    kinds = {
        kind
        for kind in subclasses(dpf.Mechanism)
        if kind.__module__.startswith("dpfast.") and not kind.__abstractmethods__
    }
    assert kinds - WITHOUT == {type(mechanism) for mechanism in ALL}


def test_a_selection_reads_no_records():
    mechanism = dpf.Selection(epsilon=1.0)
    with pytest.raises(TypeError, match="a Selection release does not read records from a stream"):
        mechanism.start()
    with pytest.raises(TypeError, match="Chunks"):
        mechanism(dpf.Chunks([[1.0]]))


@pytest.mark.parametrize("passes", GRIDS)
def test_the_number_of_passes_is_that_of_the_grid(passes):
    for statistic in (Median(), TrimmedMean(0.1)):
        assert dpf.InverseSensitivity(statistic, grid=GRIDS[passes], epsilon=1.0).start().passes == passes
    assert dpf.GlobalSensitivity(Sum(), grid=GRIDS[passes], epsilon=1.0).start().passes == 1


@pytest.mark.parametrize("passes", GRIDS)
@pytest.mark.parametrize("q", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("chunks", [[], [[]], [[], []], [[3.0]], [[], [3.0], []], [[np.nan]]], ids=str)
def test_a_private_number_of_records_may_be_zero(passes, q, chunks):
    mechanism = dpf.InverseSensitivity(Quantile(q), grid=GRIDS[passes], epsilon=1.0, neighbors="add-remove")
    whole = np.concatenate([np.empty(0), *chunks])
    expected = mechanism.release(whole, size=20, rng=PCG(1))
    assert same(mechanism.release(dpf.Chunks(chunks), size=20, rng=PCG(1)), expected)


@pytest.mark.parametrize(("points", "passes"), [(2**18, 1), (2**18 + 1, 2), (2**36, 2), (2**36 + 1, 3), (2**52, 3)])
def test_passes_at_the_limits(points, passes):
    grid = dpf.Grid(0, points - 1, step=1)
    mechanism = dpf.InverseSensitivity(Median(), grid=grid, epsilon=1.0)
    x = np.random.default_rng(0).integers(0, points, 500).astype(float)
    x[:2] = 0, points - 1
    assert (grid.size, mechanism.start().passes) == (points, passes)
    assert mechanism(dpf.Chunks([x]), rng=PCG(1)) == mechanism(x, rng=PCG(1))


@pytest.mark.parametrize("kind", ["smooth", "ties"])
@pytest.mark.parametrize("mechanism", ALL, ids=name)
def test_a_release_of_chunks_is_that_of_one_array(mechanism, kind):
    for n, size in [(1, 1), (23, 1), (23, 7), (23, 23), (700, 300)]:
        x = records(mechanism, n, kind=kind)
        pieces = [x[:0], *(x[i : i + size] for i in range(0, n, size)), x[:0]]
        release = outcome(mechanism, x)
        assert same(outcome(mechanism, dpf.Chunks(pieces)), release)
        assert same(outcome(mechanism.release, dpf.Chunks(lambda p=pieces: iter(p)), workers=2), release)


@pytest.mark.parametrize("mechanism", ALL, ids=name)
def test_several_releases_and_the_law_are_those_of_one_array(mechanism):
    x = records(mechanism, 60)
    chunks = dpf.Chunks(np.array_split(x, 7))
    many = mechanism.start().read(chunks).release(size=3, rng=PCG(2))
    assert np.array_equal(many, mechanism.release(x, size=3, rng=PCG(2)), equal_nan=True)
    assert type(mechanism.law(chunks)) is type(mechanism.law(x))


@pytest.mark.parametrize("mechanism", ALL, ids=name)
def test_states_merge_in_any_tree_and_survive_bytes_at_every_point(mechanism):
    n = 150
    x = records(mechanism, n, kind="ties" if n % 2 else "smooth")
    chunks = np.array_split(x, 5)
    ordered = isinstance(mechanism, SmoothedHistogram)  # its law is the same, its draws follow the order of records
    state = mechanism.start()
    for number in range(1, state.passes + 1):
        assert state.number == number
        a, b, c, d, e = states(mechanism, chunks, state)
        right = [b, [c, d]] if ordered else [d, [c, b]]
        inner, [first, second] = right
        first.merge(second)
        inner.merge(first)
        inner.merge(e)
        a.merge(inner)
        empty = State.from_bytes(state.to_bytes(), mechanism)
        a.merge(empty)
        state = pickle.loads(pickle.dumps(a))
        assert state.to_bytes() == State.from_bytes(state.to_bytes(), mechanism).to_bytes()
        if number < state.passes:
            with pytest.raises(ValueError, match="call next_pass"):
                state.release(rng=PCG(3))
            state.next_pass()
    with pytest.raises(ValueError, match="is the last"):
        state.next_pass()
    assert same(state.release(rng=PCG(3)), mechanism(x, rng=PCG(3)))


@pytest.mark.parametrize("mechanism", [m for m in ALL if not isinstance(m, SmoothedHistogram)], ids=name)
def test_the_order_of_chunks_does_not_matter(mechanism):
    chunks = np.array_split(records(mechanism, 90), 6)
    shuffled = [chunks[i][::-1] for i in (3, 0, 5, 1, 4, 2)]
    assert same(mechanism(dpf.Chunks(shuffled), rng=PCG(4)), mechanism(dpf.Chunks(chunks), rng=PCG(4)))


def test_draws_of_a_smoothed_histogram_follow_the_order_of_records_as_in_memory():
    mechanism = SmoothedHistogram(50, k=40, grid=DEFAULT, epsilon=50.0)
    x = records(mechanism, 400)
    assert not same(mechanism(x[::-1].copy(), rng=PCG(4)), mechanism(x, rng=PCG(4)))


@pytest.mark.parametrize("grid", GRIDS.values(), ids=str)
def test_codes_are_those_of_the_grid_for_every_dtype_and_stride(grid):
    rng = np.random.default_rng(5)
    wide = np.repeat(rng.normal(30, 30, 4000), 2)
    if grid is FINE:  # sums are beyond 64 bits of more records
        wide = wide[:800]
    pieces = [
        wide[::2],
        wide.astype(np.float32)[::-1],
        wide.astype(np.float16),
        wide.astype(np.int64),
        wide.astype(np.int16),
        np.abs(wide).astype(np.uint8),
        wide > 30,
        wide.astype(">f8"),
        [1.0, None, float("inf"), -float("inf"), -0.0],
        np.ma.masked_array([5.0, 6.0], mask=[True, False]),
        np.frombuffer(b"x" + np.arange(9.0).tobytes(), np.float64, 9, 1),
        (2**62 + np.arange(3)).astype(np.uint64),
    ]
    codes = np.sort(np.concatenate([grid.encode(piece) for piece in pieces]))
    mechanism = dpf.InverseSensitivity(TrimmedMean(0.2), grid=grid, epsilon=0.5)
    law = mechanism.law(dpf.Chunks(pieces))
    expected = mechanism.law(grid.decode(codes))
    assert np.array_equal([law.lower, law.upper], [expected.lower, expected.upper])


@settings(max_examples=60)
@given(
    x=hnp.arrays(np.float64, st.integers(1, 40), elements=st.floats(allow_nan=True, allow_infinity=True)),
    cuts=st.lists(st.integers(0, 40), max_size=4),
    bits=st.integers(1, 52),
    trim=st.sampled_from([0.0, 0.1, 0.3]),
)
def test_windows_and_sums_of_any_records(x, cuts, bits, trim):
    size = 2**bits
    grid = dpf.Grid(-(size // 2), size - 1 - size // 2, step=1, missing=0)
    chunks = np.split(x, sorted(cuts))
    reading = TrimmedMean(trim).reading(grid, lambda n: 3)
    for number in range(reading.passes):
        if number:
            reading.advance(len(x))
        for chunk in chunks:
            reading.add(chunk, 1)
    summary, expected = reading.summary(len(x)), TrimmedMean(trim).reading(grid, lambda _: 3).of(x)
    assert summary.total == expected.total
    assert all(np.array_equal(mine, its) for mine, its in zip(summary.windows, expected.windows, strict=True))


@settings(max_examples=150)
@given(
    x=hnp.arrays(np.int16, st.integers(1, 60), elements=st.integers(-5, 520), fill=st.nothing()),
    cuts=st.lists(st.integers(0, 60), max_size=3),
    last=st.integers(1, 511),
    reach=st.integers(1, 4),
    digit=st.sampled_from([3, 4, 9]),
    trim=st.sampled_from([0.0, 0.1, 0.3]),
)
def test_cells_that_are_counted_further(x, cuts, last, reach, digit, trim):
    """With short digits a few records are many for a cell: tables in every pass."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranks, "_DIGIT", digit)
        grid, statistic = dpf.Grid(0, last, step=1), TrimmedMean(trim)
        reading, merged = (statistic.reading(grid, lambda n: reach) for _ in range(2))
        assert reading.passes == -(-last.bit_length() // digit)
        for number in range(reading.passes):
            if number:
                reading.advance(len(x))
                merged.advance(len(x))
            for chunk in np.split(x, sorted(cuts)):
                reading.add(chunk, 1)
            merged.merge(reading)
        summary, expected = merged.summary(len(x)), statistic.reading(grid, lambda _: reach).of(x)
        assert summary.total == expected.total
        assert all(np.array_equal(mine, its) for mine, its in zip(summary.windows, expected.windows, strict=True))


@pytest.mark.parametrize("grid", [DEFAULT, FINE], ids=["two", "three"])
@pytest.mark.parametrize("shape", ["smooth", "ties"])
def test_many_records(grid, shape):
    x = np.random.default_rng(13).normal(30, 0.5, 600_000)
    x[: 300_000 * (shape == "ties")] = 30.0
    for mechanism in [
        dpf.InverseSensitivity(TrimmedMean(0.1), grid=dpf.Grid(-10, 100, step=2.0**-25), epsilon=1.0),
        dpf.InverseSensitivity(InterquartileRange(), grid=grid, epsilon=1.0),
        dpf.Quantiles([0.01, 0.3, 0.5, 0.7], grid=grid, epsilon=1.0),
    ]:
        for workers in (1, 2):
            release = mechanism(dpf.Chunks.slices(x, 2**19 + 1), rng=PCG(1), workers=workers)
            assert same(release, mechanism(x, rng=PCG(1)))


def test_records_held_are_few():
    mechanism = dpf.InverseSensitivity(TrimmedMean(0.1), grid=dpf.Grid(0, 1), epsilon=1.0)
    chunks = [np.random.default_rng(i).normal(0.5, 1e-3, 20_000) for i in range(20)]
    state = mechanism.start().read(chunks)
    assert len(state.to_bytes()) < 2**20  # 3.2 MB of records
    assert len(mechanism.start().to_bytes()) < 1000


def test_workers_share_a_chunk():
    x = np.random.default_rng(6).normal(30, 8, 2**20)
    for grid in GRIDS.values():
        mechanism = dpf.InverseSensitivity(Quantile(0.3), grid=grid, epsilon=0.01)
        assert mechanism(dpf.Chunks([x]), rng=PCG(1), workers=3) == mechanism(x, rng=PCG(1))


# ---- functions ----


FUNCTIONS = {
    "median": lambda x, **o: dpf.median(x, **o),
    "quantile": lambda x, **o: dpf.quantile(x, [0.1, 0.9], **o),
    "mean": lambda x, **o: dpf.mean(x, **o),
    "std": lambda x, **o: dpf.std(x, **o),
    "iqr": lambda x, **o: dpf.iqr(x, **o),
    "huber": lambda x, **o: dpf.huber(x, 2.0, **o),
    "m_estimate": lambda x, **o: dpf.m_estimate(x, dpf.psi.Huber(2.0), **o),
    "smooth": lambda x, **o: dpf.trimmed_mean(x, 0.1, method="smooth-sensitivity", **o),
    "histogram": lambda x, **o: dpf.histogram(x, **o).counts,
    "density": lambda x, **o: dpf.density(x, **o).coefficients,
    "perturbed": lambda x, **o: dpf.synthesize(x, 9, method="perturbed", **o),
    "smoothed": lambda x, **o: dpf.synthesize(x, 9, method="smoothed", **o),
    "ks": lambda x, **o: dpf.synthesize(x, 9, method="ks", **o),
    "series": lambda x, **o: dpf.synthesize(x, 9, method="series", **o),
    "robust_mean": lambda x, **o: dpf.robust_mean(
        dpf.Chunks([c[:, None] for c in x]) if isinstance(x, dpf.Chunks) else x[:, None], **o
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_functions_take_chunks(name, dtype):
    x = np.random.default_rng(7).normal(40, 15, 300).astype(dtype)
    options = {"bounds": (0, 100), "epsilon": 2.0}
    for chunks in (dpf.Chunks(np.array_split(x, 4)), dpf.Chunks(lambda: iter(np.array_split(x, 4)))):
        released = FUNCTIONS[name](chunks, rng=PCG(8), **options)
        assert np.array_equal(released, FUNCTIONS[name](x, rng=PCG(8), **options))


def test_tables_of_several_columns_in_chunks():
    X = np.random.default_rng(7).normal(40, 15, (300, 2))
    chunks, options = dpf.Chunks(np.array_split(X, 3)), {"bounds": (0, 100), "epsilon": 2.0}
    for function in (
        lambda x: dpf.histogram(x, rng=PCG(1), **options).counts,
        lambda x: dpf.synthesize(x, 5, rng=PCG(1), **options),
    ):
        assert np.array_equal(function(chunks), function(X))
    with pytest.raises(ValueError, match="2 columns like the first one"):
        dpf.robust_mean(dpf.Chunks([X, X[:, :1]]), **options)


# ---- chunks ----


def test_chunks_can_be_visited_again():
    for source in (iter([[1.0]]), (x for x in [[1.0]])):
        with pytest.raises(TypeError, match="can be read only once"):
            dpf.Chunks(source)
    with pytest.raises(TypeError, match="iterable of arrays or a function"):
        dpf.Chunks(3)
    assert "private" in repr(dpf.Chunks([[1.0]]))


@pytest.mark.parametrize(
    ("source", "step"),
    [
        ([np.arange(3), np.arange(2) > 0], 1.0),
        ([np.arange(3), np.arange(3.0)], None),
        ([[1, 2]], None),
        ([], None),
        (lambda: iter([np.arange(3), np.arange(3.0)]), 1.0),
        (lambda: iter([np.arange(3.0), np.arange(3)]), None),
    ],
)
def test_the_rule_of_dtypes(source, step):
    assert dpf.Chunks(source).declares_integers() is (step == 1.0)


def test_slices_of_a_memmap(tmp_path):
    x = np.random.default_rng(9).normal(30, 5, 3000)
    x.tofile(tmp_path / "x")
    memmap = np.memmap(tmp_path / "x", np.float64, "r")
    chunks = dpf.Chunks.slices(memmap, 1000)
    assert [len(piece) for piece in chunks] == [1000, 1000, 1000]
    assert chunks.records() == 3000
    assert dpf.median(chunks, bounds=(0, 100), epsilon=1.0, rng=PCG(1)) == dpf.median(
        x, bounds=(0, 100), epsilon=1.0, rng=PCG(1)
    )


@pytest.mark.host
def test_arrow_and_parquet(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    x = np.random.default_rng(10).normal(30, 5, 300)
    cells = [None if i % 5 == 0 else v for i, v in enumerate(x.tolist())]
    column = arrow.chunked_array([cells[:100], cells[100:], []], type=arrow.float64())
    options = {"bounds": (0, 100), "epsilon": 1.0}
    expected = dpf.median(cells, rng=PCG(1), **options)
    assert dpf.median(dpf.Chunks(column), rng=PCG(1), **options) == expected
    assert dpf.median(column, rng=PCG(1), **options) == expected
    parquet.write_table(arrow.table({"a": column, "b": range(300)}), tmp_path / "t.parquet", row_group_size=70)
    assert dpf.median(dpf.Chunks.parquet(tmp_path / "t.parquet", "a"), rng=PCG(1), **options) == expected
    both = dpf.Chunks.parquet(tmp_path / "t.parquet", ["a", "b"])
    table = np.stack([np.array(cells, np.float64), np.arange(300.0)], axis=1)
    assert np.array_equal(dpf.robust_mean(both, rng=PCG(1), **options), dpf.robust_mean(table, rng=PCG(1), **options))
    assert dpf.Chunks.parquet(tmp_path / "t.parquet", "b").declares_integers()


# ---- refusals ----


def test_no_records():
    mechanism = dpf.InverseSensitivity(Median(), grid=DEFAULT, epsilon=1.0)
    with pytest.raises(ValueError, match="x is empty"):
        mechanism(dpf.Chunks([]))
    with pytest.raises(ValueError, match="x is empty"):
        mechanism.start().next_pass()
    counts = PerturbedHistogram(3, grid=DEFAULT, epsilon=1.0, neighbors="add-remove")
    assert counts(dpf.Chunks([]), rng=PCG(1)).counts.tolist() == counts([], rng=PCG(1)).counts.tolist()


def test_passes_over_other_records():
    mechanism = dpf.InverseSensitivity(TrimmedMean(0.1), grid=DEFAULT, epsilon=1.0)
    x = np.random.default_rng(11).normal(30, 8, 500)
    state = mechanism.start()
    state.update(x)
    state.next_pass()
    state.update(x[1:])
    with pytest.raises(ValueError, match="read 499 records, the first pass 500"):
        state.release()


@pytest.mark.parametrize("grid", [DEFAULT, FINE], ids=["two", "three"])
@pytest.mark.parametrize("statistic", [Median(), TrimmedMean(0.1), InterquartileRange()], ids=str)
def test_as_many_but_other_records_are_no_error(statistic, grid):
    mechanism = dpf.InverseSensitivity(statistic, grid=grid, epsilon=1.0)
    rng = np.random.default_rng(12)
    kinds = [rng.normal(30, 8, 4000), np.full(4000, 30.0), rng.uniform(-10, 100, 4000), np.full(4000, np.nan)]
    for first in kinds:
        for second in kinds:
            state = mechanism.start()
            state.update(first)
            while state.number < state.passes:
                state.next_pass()
                state.update(second)
            law = state.law()
            ends = [0, *law.lower[::-1], *law.upper, statistic.last(grid, 4000)]
            assert np.all(np.diff(ends) >= 0)
            assert np.isfinite(state.release())


def test_states_that_do_not_belong_together():
    grid, x = DEFAULT, np.arange(50.0)
    mechanism = dpf.InverseSensitivity(Median(), grid=grid, epsilon=1.0)
    state, other = mechanism.start(), dpf.InverseSensitivity(Median(), grid=grid, epsilon=2.0).start()
    with pytest.raises(ValueError, match="different mechanisms"):
        state.merge(other)
    with pytest.raises(TypeError, match="not with int"):
        state.merge(3)
    with pytest.raises(ValueError, match="with itself"):
        state.merge(state)
    state.update(x)
    state.next_pass()
    with pytest.raises(ValueError, match="pass 2 and pass 1"):
        state.merge(mechanism.start())
    longer, elsewhere = mechanism.start(), mechanism.start()
    longer.update(np.arange(60.0))
    longer.next_pass()
    with pytest.raises(ValueError, match="50 and 60 records"):
        state.merge(longer)
    elsewhere.update(x + 1)
    elsewhere.next_pass()
    with pytest.raises(ValueError, match="different first passes"):
        state.merge(elsewhere)
    wide, narrow = dpf.NestedBoxes(grid=grid, epsilon=1.0).start(), dpf.NestedBoxes(grid=grid, epsilon=1.0).start()
    wide.update(np.zeros((3, 3)))
    narrow.update(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="3 and 2 columns"):
        wide.merge(narrow)


def test_a_wrong_rng_is_told_before_the_data_are_read():
    def read():
        raise AssertionError("the data were read")

    for mechanism in (
        dpf.InverseSensitivity(Median(), grid=DEFAULT, epsilon=1.0),
        dpf.NestedBoxes(grid=DEFAULT, epsilon=1.0),
    ):
        with pytest.raises(TypeError, match="rng"):
            mechanism(dpf.Chunks(read), rng=3)


def test_a_release_that_is_wrong_without_the_data_costs_nothing():
    state, ledger = dpf.InverseSensitivity(Median(), grid=DEFAULT, epsilon=1.0).start(), dpf.Ledger(1.0)
    state.update(np.arange(50.0))
    with ledger, pytest.raises(ValueError, match="pass 1 of 2"):
        state.release()
    state.next_pass()
    state.update(np.arange(50.0))
    with ledger, pytest.raises(TypeError, match="rng"):
        state.release(rng=3)
    assert ledger.charges == ()
    with ledger:
        state.release()
    assert ledger.spent.epsilon == 1.0


def test_the_fingerprint_tells_parameters_apart():
    from dpfast.streaming.wire import fingerprint

    prints = {fingerprint(mechanism) for mechanism in ALL if not isinstance(mechanism, RangeFreeBoxes)}
    assert len(prints) == len([m for m in ALL if not isinstance(m, RangeFreeBoxes)])
    again = pickle.loads(pickle.dumps(ALL))
    assert [fingerprint(m) for m in again] == [fingerprint(m) for m in ALL]


def named(t):
    return max(-1.0, min(1.0, t))


def test_functions_without_a_name_are_not_taken_for_one_another():
    def mechanism(function):
        return dpf.MEstimator(function, grid=INTEGERS, epsilon=1.0)

    one, other = (mechanism(lambda t, c=c: max(-c, min(c, t))) for c in (1.0, 2.0))
    state, same_one = one.start(), one.start()
    state.update([1, 2])
    same_one.update([3, 4])
    state.merge(same_one)  # they share the function
    assert state.release(rng=PCG(1)) == one([1, 2, 3, 4], rng=PCG(1))
    data = mechanism(named).start().to_bytes()
    for refused in (state.to_bytes, lambda: state.merge(other.start()), lambda: State.from_bytes(data, one)):
        with pytest.raises(TypeError, match="no name in its module"):
            refused()
    assert State.from_bytes(data, mechanism(named)).n == 0
    with pytest.raises(ValueError, match="another mechanism"):
        State.from_bytes(data, mechanism(np.tanh))


# ---- bytes ----


HEAD = 14  # magic, version, checksum


def forged(data, change):
    """Bytes with another header and a checksum that is right."""
    (length,) = struct.unpack("<Q", data[HEAD : HEAD + 8])
    header = json.loads(data[HEAD + 8 : HEAD + 8 + length])
    text = json.dumps(change(header)).encode()
    body = struct.pack("<Q", len(text)) + text + data[HEAD + 8 + length :]
    return data[:10] + struct.pack("<I", zlib.crc32(body)) + body


def second_pass(mechanism, n=80):
    x = records(mechanism, n)
    state = mechanism.start()
    for chunk in np.array_split(x, 2):
        state.update(chunk)
    if state.passes > 1:
        state.next_pass()
        state.update(x)
    return state


@cache
def sound(at):
    """The bytes of a state in its second pass, or the only one."""
    return second_pass(ALL[at]).to_bytes()


def test_versions_and_other_mechanisms_are_refused():
    mechanism = dpf.InverseSensitivity(Median(), grid=DEFAULT, epsilon=1.0)
    data = second_pass(mechanism).to_bytes()
    assert data[:10] == b"dpfast\x00S\x02\x00"
    for version in (1, 3):
        with pytest.raises(ValueError, match=f"format {version}: this version of dpfast reads format 2"):
            State.from_bytes(data[:8] + struct.pack("<H", version) + data[10:], mechanism)
    other = dpf.InverseSensitivity(Median(), grid=dpf.Grid(-10, 101), epsilon=1.0)
    with pytest.raises(ValueError, match="another mechanism"):
        State.from_bytes(data, other)
    with pytest.raises(ValueError, match="not a state"):
        State.from_bytes(b"", mechanism)


@settings(max_examples=150)
@given(data=st.data())
def test_damaged_bytes_are_a_value_error(data):
    at = data.draw(st.integers(0, len(ALL) - 1))
    mechanism, good = ALL[at], sound(at)
    kind = data.draw(st.sampled_from(["flip", "cut", "more", "noise"]))
    if kind == "flip":
        at = data.draw(st.integers(0, len(good) - 1))
        bad = bytearray(good)
        bad[at] ^= data.draw(st.integers(1, 255))
    elif kind == "cut":
        bad = good[: data.draw(st.integers(0, len(good) - 1))]
    elif kind == "more":
        bad = good + data.draw(st.binary(min_size=1, max_size=9))
    else:
        bad = data.draw(st.binary(max_size=60))
    with pytest.raises(ValueError, match=r"damaged|format|another mechanism"):
        State.from_bytes(bytes(bad), mechanism)


LEAF = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=3)
TREE = st.recursive(
    LEAF | st.builds(lambda s, e: {"size": s, "entries": e}, LEAF, LEAF), lambda t: st.lists(t, max_size=4)
)


def paths(node, path=()):
    yield path
    parts = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, part in parts:
        yield from paths(part, (*path, key))


@settings(max_examples=150)
@given(data=st.data())
def test_forged_bytes_are_a_value_error_or_a_state(data):
    at = data.draw(st.integers(0, len(ALL) - 1))
    mechanism, good = ALL[at], sound(at)

    def change(header):
        places = [path for path in paths(header) if path and path[0] != "mechanism"]
        *path, last = places[data.draw(st.integers(0, len(places) - 1))]
        node = header
        for key in path:
            node = node[key]
        node[last] = data.draw(TREE)
        return header

    body = forged(good, change)
    if data.draw(st.booleans()) and len(body) > 400:  # other numbers in the arrays, too
        at = data.draw(st.integers(300, len(body) - 8))
        body = body[:at] + struct.pack("<q", data.draw(st.integers(-(2**63), 2**63 - 1))) + body[at + 8 :]
        body = body[:10] + struct.pack("<I", zlib.crc32(body[HEAD:])) + body[HEAD:]
    use(body, mechanism)


def use(body, mechanism):
    """Whatever a state is made of, it is refused by a ValueError or works."""
    try:
        state = State.from_bytes(body, mechanism)
        assert state.to_bytes()
        other = State.from_bytes(body, mechanism)
        other.merge(second_pass(mechanism) if state.number == mechanism.start().passes else mechanism.start())
    except ValueError:
        pass
    try:
        state = State.from_bytes(body, mechanism)
        while state.number < state.passes:
            state.next_pass()
        state.law()
    except ValueError:
        pass


def sealed(body):
    """Any header and arrays, with the right magic, version and checksum."""
    return b"dpfast\x00S\x02\x00" + struct.pack("<I", zlib.crc32(body)) + body


@settings(max_examples=200)
@given(data=st.data())
def test_bits_that_flip_under_a_right_checksum(data):
    at = data.draw(st.integers(0, len(ALL) - 1))
    mechanism, body = ALL[at], bytearray(sound(at)[HEAD:])
    for _ in range(data.draw(st.integers(1, 4))):
        first = data.draw(st.sampled_from([0, len(body) - 64]))  # the header, and the arrays
        at = data.draw(st.integers(max(first, 0), len(body) - 1))
        body[at] = data.draw(st.integers(0, 255) | st.sampled_from(list(b'0123456789[]{},:"-nulE.')))
    use(sealed(bytes(body)), mechanism)


@pytest.mark.parametrize("depth", [9, 300, 500, 990, 100_000])
@pytest.mark.parametrize("brackets", ["[]", ('{"x":', "}")])
def test_deep_json(depth, brackets):
    for mechanism in (ALL[0], dpf.NestedBoxes(grid=DEFAULT, epsilon=4.0)):
        header = second_pass(mechanism).to_bytes()
        (length,) = struct.unpack("<Q", header[HEAD : HEAD + 8])
        text = header[HEAD + 8 : HEAD + 7 + length].decode()
        text += ',"held":' + brackets[0] * depth + "1" + brackets[1] * depth + "}"  # said twice: the last one holds
        with pytest.raises(ValueError, match="damaged"):
            State.from_bytes(sealed(struct.pack("<Q", len(text)) + text.encode()), mechanism)


@pytest.mark.parametrize("n", [2**22 + 1, 2**30, 2**40, 2**62])
@pytest.mark.parametrize(
    "mechanism",
    [
        dpf.MEstimator(dpf.psi.Huber(2.0), grid=DEFAULT, epsilon=1.0),
        dpf.InverseSensitivity(Median(), grid=DEFAULT, epsilon=1.0),
        PerturbedHistogram(7, grid=DEFAULT, epsilon=1.0),
    ],
    ids=name,
)
def test_few_bytes_do_not_stand_for_much_memory(mechanism, n):
    """As many zeros as a header says there are."""

    def change(header):
        return {**header, "n": n, "held": [{"size": n, "entries": 0}]}

    with pytest.raises(ValueError, match="damaged"):
        State.from_bytes(forged(mechanism.start().to_bytes(), change), mechanism)


@pytest.mark.parametrize(
    "places", [[1, -(2**63), -1], [-1, 0, 1], [0, 0, 1], [2, 1, 3], [99, 100, 101], [1, 2, 2**63 - 1]]
)
def test_places_that_are_no_places(places):
    mechanism = dpf.InverseSensitivity(Median(), grid=dpf.Grid(0, 100, step=1), epsilon=1.0)
    state = mechanism.start()
    state.update([1, 2, 3])

    body = state.to_bytes()
    good = struct.pack("<6q", 1, 2, 3, 1, 1, 1)
    assert body.endswith(good)
    with pytest.raises(ValueError, match="damaged"):
        State.from_bytes(sealed(body[HEAD : -len(good)] + struct.pack("<6q", *places, 1, 1, 1)), mechanism)


@pytest.mark.parametrize(
    "cells",
    [
        ([1280], [0], [40]),  # no such place
        ([-1], [0], [40]),
        ([3], [1], [40]),  # more records than there are
        ([3], [0], [41]),
        ([3], [0], [2**63 - 1]),
        ([3], [2**63 - 1], [2**63 - 1]),
        ([3], [-1], [40]),
        ([3], [0], [-1]),
        ([3], [0], [5]),  # without a wanted rank,
        ([3], [0], [20]),  # and without some of them
        ([3, 3], [0, 20], [20, 20]),  # not apart
        ([4, 3], [0, 20], [20, 20]),
        ([3, 4], [0, 20], [20]),
        ([3, 4], [0, 19], [20, 21]),
    ],
)
def test_cells_that_no_counts_give(cells):
    grid = dpf.Grid(0, 10 * 2**18 - 1, step=1)
    mechanism = dpf.InverseSensitivity(Median(), grid=grid, epsilon=20.0)
    state = mechanism.start()
    state.update(np.full(40, 3 << 11))
    state.next_pass()
    assert [part.tolist() for part in state._reading._looked[0]] == [[3], [0], [40]]
    State.from_bytes(state.to_bytes(), mechanism)
    state._reading._looked[0] = tuple(np.array(part, np.int64) for part in cells)
    with pytest.raises(ValueError, match="damaged"):
        State.from_bytes(state.to_bytes(), mechanism)


def test_counts_of_32_bits_are_added_up_in_time(monkeypatch):
    """As if there were no more than 9 bits."""
    monkeypatch.setattr("dpfast.streaming.ranks._PIECE", 2**8)
    for mechanism in ALL:
        x = records(mechanism, 2100)
        chunks = [x[:900], x[900:1000], x[1000:]]
        assert same(outcome(mechanism, dpf.Chunks(chunks)), outcome(mechanism, x))


def test_a_state_that_is_read_does_not_change():
    """Other threads may merge it and send it at the same time."""
    mechanism = dpf.InverseSensitivity(Median(), grid=DEFAULT, epsilon=1.0)
    state = mechanism.start()
    state.update(records(mechanism, 20_000))
    expected = State.from_bytes(state.to_bytes(), mechanism).to_bytes()

    def read(i):
        if i % 2:
            return state.to_bytes()
        other = mechanism.start()
        other.merge(state)
        return other.to_bytes()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(10):
            assert in_threads(read) == [expected] * 8
    finally:
        sys.setswitchinterval(interval)


def test_codes_that_are_mostly_zero_are_few_bytes_up_to_a_limit():
    mechanism = dpf.MEstimator(dpf.psi.Huber(2.0), grid=dpf.Grid(0, 1), epsilon=1.0)
    for n, dense in ((2**22, False), (2**22 + 1, True)):
        state = mechanism.start()
        state.update(np.zeros(n, np.int8))
        data = state.to_bytes()
        assert (len(data) > 8 * n) == dense
        assert State.from_bytes(data, mechanism).n == n


def test_more_records_than_can_be_counted():
    mechanism = dpf.GlobalSensitivity(Sum(), grid=INTEGERS, epsilon=1.0, neighbors="add-remove")
    data = forged(mechanism.start().to_bytes(), lambda header: {**header, "n": 2**62})
    state = State.from_bytes(data, mechanism)
    with pytest.raises(ValueError, match=r"more than 2\*\*62 records"):
        state.merge(State.from_bytes(data, mechanism))


# ---- the kernel ----


def test_the_kernel_checks_its_tables():
    options = {**DEFAULT.kernel, "first": DEFAULT.first}
    with pytest.raises(ValueError, match="fewer counts"):
        _stream.count(np.zeros(3), np.zeros(10, np.uint32), 0, **options)
    marks, counts, room = np.zeros((1, 4), np.int32), np.zeros((0, 4), np.uint32), np.zeros(0, np.int64)
    for levels in ([], [(marks, 0)]):
        with pytest.raises(ValueError, match="marks"):
            _stream.refine(np.zeros(3), np.zeros(4, np.uint8), levels, counts, room, 0, **options)
    with pytest.raises(TypeError, match="no keys"):
        _stream.count(np.zeros(3, np.complex128), np.zeros(2**16, np.uint32), 16, **options)


@pytest.mark.parametrize("step", [2.0**-1074, 2.0**-1000, 2.0**-30, 1.0, 2.0**60, 2.0**970])
def test_codes_of_every_step(step):
    grid = dpf.Grid(-1000 * step, 3000 * step, step=step, missing=7 * step)
    x = np.concatenate([np.arange(-1010, 3010) * step, np.arange(-1000, 3000) * step * 0.5, [np.nan, 5e-324, -1e308]])
    counts = np.zeros(grid.size, np.uint32)
    _stream.count(x, counts, 0, first=grid.first, **grid.kernel)
    assert np.array_equal(counts, np.bincount(grid.encode(x), minlength=grid.size))


SHIFTED = [
    dpf.Grid(0, 1e6),
    dpf.Grid(-999, 3001, step=1),  # an odd first step: ties go to the even step, not to the even code
    dpf.Grid(-999 * 2.0**-10, 3.0, step=2.0**-10, missing=0.5),
    dpf.Grid(0, 2.0**51, step=1),  # the last for which steps are counted by one sum,
    dpf.Grid(-(2.0**51), 2.0**51 - 1, step=1),
    dpf.Grid(0, 2.0**51 + 2, step=1),  # and the first beyond
    dpf.Grid(2.0**53 - 2.0**20, 2.0**53, step=1),
    dpf.Grid(-(2.0**-1000), 2.0**-1000, step=2.0**-1022),
    dpf.Grid(-1.5e308, 1.5e308),  # wider than the largest double
]


def hard(grid, n, kind, rng):
    """n records around the middles and the ends of the steps of a grid."""
    values, step = grid.decode(rng.integers(0, grid.size, n)), grid.step
    if kind == "ties":
        values = rng.choice(values[:3], n)
    if kind == "runs":
        values = np.sort(values)
    with np.errstate(over="ignore"):
        near = values + step * rng.choice([0.0, 0.5, -0.5, 0.25, 1.0], n)
        near = np.nextafter(near, rng.choice([-np.inf, 0.0, np.inf], n))
    x = np.where(rng.random(n) < 0.5, values, near)
    beyond = rng.random(n) < 0.05
    x[beyond] = rng.choice([np.nan, np.inf, -np.inf, -0.0, 1e308, -1e308, 5e-324], np.count_nonzero(beyond))
    return x


@pytest.mark.parametrize("kind", ["smooth", "ties", "runs"])
@pytest.mark.parametrize("grid", SHIFTED, ids=str)
def test_digits_are_those_of_encode(grid, kind):
    rng = np.random.default_rng(14)
    bits = (grid.size - 1).bit_length()
    for n in (0, 1, 15, 16, 17, 31, 32, 33, 2047, 2049, 5000):
        x = hard(grid, n, kind, rng)
        shift = max(bits - 10, 0)
        counts = np.zeros(((grid.size - 1) >> shift) + 1, np.uint32)
        for values in (x, np.repeat(x, 2)[::2]):
            counts[:] = 0
            _stream.count(values, counts, shift, first=grid.first, **grid.kernel)
            assert np.array_equal(counts, np.bincount(grid.encode(x) >> shift, minlength=counts.size))


def walked(codes, levels, counts, capacity, shift):
    """What `_stream.refine` does, one code after another."""
    copied, last = [], counts.shape[1] - 1
    for code in codes.tolist():
        mark = 2
        for marks, at in levels:
            if mark > 1:
                digit = code >> at if marks is levels[0][0] else (code >> at) % marks.shape[1]
                mark = int(marks[mark - 2, digit])
        if mark > 1:
            counts[mark - 2, (code >> shift) & last] += 1
        elif mark == 1 and len(copied) < capacity:
            copied.append(code)
    return copied


@pytest.mark.parametrize("kind", ["smooth", "ties", "runs"])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
def test_marked_cells_are_counted_and_copied_in_order(kind, depth, share):
    rng, grid = np.random.default_rng(15), dpf.Grid(-999, 2**15 - 1000, step=1)
    for n in (0, 1, 31, 32, 33, 1024, 5000):
        x = hard(grid, n, kind, rng)
        marks = np.where(rng.random((1, 2**5)) < share, rng.integers(1, 4, (1, 2**5)), 0).astype(np.int32)
        levels, shift = [(marks, 10)], 6
        if depth == 2:
            levels.append((rng.integers(0, 4, (2, 2**4)).astype(np.int32), 6))
            shift = 0
        digits = 2 ** (levels[-1][1] - shift)
        counts, expected = np.zeros((2, digits), np.uint32), np.zeros((2, digits), np.int64)
        room = np.zeros(n // 2, np.int64)
        found = (marks[0] != 0).view(np.uint8)
        filled = _stream.refine(x, found, levels, counts, room, shift, first=grid.first, **grid.kernel)
        assert room[:filled].tolist() == walked(grid.encode(x), levels, expected, room.size, shift)
        assert np.array_equal(counts, expected)
