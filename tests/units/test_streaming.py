"""Streams: a release of chunks equals that of one array, and states merge in any order."""

import pickle

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dpf
from dpfast.densities import SmoothedHistogram
from dpfast.statistics import InterquartileRange, Median, Quantile, Sum, TrimmedMean
from dpfast.streaming import State, ranks
from dpfast.streaming.chunks import joined
from tests.cases import every
from tests.central import KINDS, outcome, same
from tests.streams import ALL, BY_POSITION, DEFAULT, FINE, GRIDS, PCG, STREAMED, name, records, states

pytestmark = pytest.mark.kernel


def test_every_mechanism_is_tested_here():
    assert {type(mechanism) for mechanism in ALL} == STREAMED == KINDS - BY_POSITION


def test_a_selection_does_not_read_records():
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


@every("passes", GRIDS)
@every("q", [0.0, 0.3, 1.0])
@every("chunks", [[], [[]], [[], []], [[3.0]], [[], [3.0], []], [[np.nan]]], ids=str)
def test_a_private_number_of_records_may_be_zero(passes, q, chunks):
    mechanism = dpf.InverseSensitivity(Quantile(q), grid=GRIDS[passes], epsilon=1.0, neighbors="add-remove")
    whole = np.concatenate([np.empty(0), *chunks])
    expected = mechanism.release(whole, size=20, rng=PCG(1))
    assert same(mechanism.release(dpf.Chunks(chunks), size=20, rng=PCG(1)), expected)


@every("points, passes", [(2**18, 1), (2**18 + 1, 2), (2**36, 2), (2**36 + 1, 3), (2**52, 3)])
def test_passes_at_the_limits(points, passes):
    grid = dpf.Grid(0, points - 1, step=1)
    mechanism = dpf.InverseSensitivity(Median(), grid=grid, epsilon=1.0)
    x = np.random.default_rng(0).integers(0, points, 500).astype(float)
    x[:2] = 0, points - 1
    assert (grid.size, mechanism.start().passes) == (points, passes)
    assert mechanism(dpf.Chunks([x]), rng=PCG(1)) == mechanism(x, rng=PCG(1))


@pytest.mark.parametrize("kind", ["smooth", "ties"])
@every("mechanism", ALL, ids=name)
def test_a_release_of_chunks_equals_that_of_one_array(mechanism, kind):
    for n, size, workers in [(1, 1, 1), (23, 7, 1), (700, 300, 2)] if kind == "smooth" else [(23, 1, 1), (23, 6, 2)]:
        x = records(mechanism, n, kind=kind)
        pieces = [x[:0], *(x[i : i + size] for i in range(0, n, size)), x[:0]]
        chunks = dpf.Chunks(pieces if workers == 1 else lambda: iter(pieces))  # noqa: B023
        released = outcome(mechanism.release, chunks, rng=PCG(1), workers=workers)
        assert same(released, outcome(mechanism, x, rng=PCG(1)))


@every("mechanism", ALL, ids=name)
def test_several_releases_and_the_law_match_one_array(mechanism):
    x = records(mechanism, 60)
    chunks = dpf.Chunks(np.array_split(x, 7))
    many = mechanism.start().read(chunks).release(size=3, rng=PCG(2))
    expected = mechanism.release(x, size=3, rng=PCG(2))
    if many.dtype == object:
        assert all(map(same, many, expected))
    else:
        assert np.array_equal(many, expected, equal_nan=True)
    assert type(mechanism.law(chunks)) is type(mechanism.law(x))


@every("mechanism", ALL, ids=name)
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


@every("mechanism", [m for m in ALL if not isinstance(m, SmoothedHistogram)], ids=name)
def test_the_order_of_chunks_does_not_matter(mechanism):
    chunks = np.array_split(records(mechanism, 90), 6)
    shuffled = [chunks[i][::-1] for i in (3, 0, 5, 1, 4, 2)]
    assert same(mechanism(dpf.Chunks(shuffled), rng=PCG(4)), mechanism(dpf.Chunks(chunks), rng=PCG(4)))


def test_draws_of_a_smoothed_histogram_follow_the_order_of_records_as_in_memory():
    mechanism = SmoothedHistogram(50, k=40, grid=DEFAULT, epsilon=50.0)
    x = records(mechanism, 400)
    assert not same(mechanism(x[::-1].copy(), rng=PCG(4)), mechanism(x, rng=PCG(4)))


@pytest.mark.parametrize("grid", GRIDS.values(), ids=str)
def test_codes_match_the_grid_for_every_dtype_and_stride(grid):
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


def test_small_chunks_are_read_together():
    """Of one dtype, in their order, and copied before the source goes on: it may fill one array again and again."""
    rng, room = np.random.default_rng(7), np.empty(100)
    x = rng.uniform(0, 100, 70_000)

    def refilled():
        for start in range(0, len(x), 100):
            room[:] = x[start : start + 100]
            yield room

    mixed = [x[:50], x[50:90].astype(np.float32), [1, 2], np.arange(5), x[90:60_000], x[:1].astype(">f8"), x[60_000:]]
    whole = np.concatenate([np.asarray(piece, np.float64) for piece in mixed])
    assert [len(piece) for piece in joined(refilled())] == [32_700, 32_700, 4_600]
    for release in (dpf.median, dpf.mean):
        options = {"bounds": (0, 100), "epsilon": 1.0}
        assert release(dpf.Chunks(refilled), **options, rng=PCG(1)) == release(x, **options, rng=PCG(1))
        assert release(dpf.Chunks(mixed), **options, rng=PCG(1)) == release(whole, **options, rng=PCG(1))


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
    "quantiles": lambda x, **o: dpf.synthesize(x, 9, method="quantiles", **o),
    "series": lambda x, **o: dpf.synthesize(x, 9, method="series", **o),
    "robust_mean": lambda x, **o: dpf.robust_mean(
        dpf.Chunks([c[:, None] for c in x]) if isinstance(x, dpf.Chunks) else x[:, None], **o
    ),
}


@every("name", FUNCTIONS)
@every("dtype", [np.float64, np.int32])
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


@every(
    "source, step",
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
