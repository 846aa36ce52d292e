"""Promises of every central mechanism. Mechanisms are found by class: a new one is tested here, or fails here.

Streams are arrays, bit for bit; T5 (order and machine arithmetic), T10, T15 and T25 of docs/threats.md.
"""

import inspect
import pickle
import warnings

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import location
from dpfast.densities import KolmogorovSmirnov, SmoothedHistogram
from dpfast.mechanisms import NoisyProducts
from dpfast.robust import RangeFreeBoxes, TukeyDepth
from dpfast.statistics import InterquartileRange, Mean, Median, TrimmedMean
from dpfast.streaming import Reading, State
from tests.cases import every
from tests.central import (
    KINDS,
    OPTIONS,
    STATISTIC_CLASSES,
    STATISTICS,
    central,
    name,
    outcome,
    plain,
    same,
    shaped,
    takes_rows,
)
from tests.forks import answer_of_child, needs_fork
from tests.reference.statistics import FUNCTIONS
from tests.threads import in_threads

GRID = dpf.Grid(0, 100)  # two passes
FINE = dpf.Grid(-(2.0**17), 2.0**17, step=2.0**-30)  # three
INTEGERS = dpf.Grid(0, 100, step=1)  # one
EVERY = list(central(GRID))
FEW = {Median(), TrimmedMean(0.2), InterquartileRange(), None}  # one stretch of ranks, two with the sum between, two
RANKED = {dpf.InverseSensitivity, dpf.SmoothSensitivity, dpf.NestedBoxes, dpf.Quantiles}
ALSO = [
    mechanism
    for grid in (INTEGERS, FINE)
    for mechanism in central(grid, kinds=RANKED)
    if getattr(mechanism, "statistic", None) in FEW and not getattr(mechanism, "radius", 0.0)
]
ALSO += central(dpf.FloatGrid(), kinds={dpf.InverseSensitivity, dpf.Quantiles})


def stateful(mechanism):
    """Blocks, pairs and samples are positions: tests/units/test_aggregate.py, test_theil_sen.py, test_subsampled.py."""
    return not (mechanism.ordered or mechanism.counts_first)


STATES = [mechanism for mechanism in EVERY + ALSO if stateful(mechanism)]
each = every("mechanism", EVERY, ids=name)


def strange(n):
    """Data of one length that have little in common."""
    rng = np.random.default_rng(n)
    yield rng.normal(30, 8, n)
    yield np.full(n, np.nan)
    yield np.where(np.arange(n) % 2, np.inf, -np.inf)
    yield np.full(n, 2.0**53 + 2)
    yield np.full(n, -5e-324)
    yield np.where(np.arange(n) % 3 > 0, 50.0, np.nan)
    yield np.where(np.arange(n) == n // 2, 1e308, 0.5)
    yield 25.0 + (-1.0) ** np.arange(n) * np.arange(n) / 2


def test_nothing_is_missing():
    assert set(OPTIONS) == KINDS
    known = {type(statistic) for statistic in STATISTICS}
    assert known == STATISTIC_CLASSES, "CASES in tests/reference/statistics.py needs an entry for each class"
    functions = [
        f for _, f in inspect.getmembers(location, inspect.isfunction) if f.__module__.startswith(location.__name__)
    ]
    public = {function.__name__ for function in functions if not function.__name__.startswith("_")}
    assert public == set(FUNCTIONS), "FUNCTIONS in tests/reference/statistics.py needs an entry for each function"
    assert public <= set(dpf.__all__), "__all__ of a module of dpfast/location needs each of its functions"
    made = {(type(m), type(getattr(m, "statistic", None)), m.privacy.neighbors) for m in EVERY}
    assert {kind for kind, _, _ in made} == KINDS
    assert {statistic for _, statistic, _ in made} >= STATISTIC_CLASSES
    private = {kind for kind, _, neighbors in made if neighbors == "add-remove"}
    assert private - {dpf.Resized} == {kind for kind in KINDS if "neighbors" in kind.__dataclass_fields__}


# ---- streams ----


@every("mechanism", STATES, ids=name)
@pytest.mark.parametrize("n", [1, 29, 5000])
def test_an_array_is_read_like_a_stream(mechanism, n):
    """The fast form of each reading has the summary of its passes; a fused call draws from the law of that summary."""
    if isinstance(mechanism, KolmogorovSmirnov) and n > 29:
        pytest.skip("takes long")
    rng = np.random.default_rng(12)
    x = shaped(mechanism, np.where(rng.random(n) < 0.1, np.nan, rng.normal(30, 8, n).round(1)))
    reading = mechanism.reading()
    values = reading.records(x)
    try:
        plan = mechanism.plan(len(values))
        fast, slow = mechanism.reading().of(values, 2), Reading.of(reading, values)
    except ValueError:  # too few records, by their public number
        assert isinstance(outcome(mechanism, x), str)
        return
    laws = [mechanism.law_of(summary) for summary in (fast, slow)]
    draws = [law.sample(5, PCG64(1)) for law in laws]
    np.testing.assert_array_equal(*draws)
    assert same(mechanism(x, rng=PCG64(2)), plan.draw_from(slow, PCG64(2)))
    assert same(mechanism(x, rng=PCG64(2)), plan.draw(values, PCG64(2), 2))


@every("mechanism", EVERY + ALSO, ids=name)
def test_chunks_of_every_size(mechanism):
    n = 29 if isinstance(mechanism, RangeFreeBoxes) else 10
    x = np.random.default_rng(1).normal(30, 8, n).round(1)
    x[[3, 8]], x[5] = np.nan, x[4]
    x = shaped(mechanism, x)
    expected = outcome(mechanism, x, rng=PCG64(2))
    for size in (1, 2, 3, 7, 10) if n < 20 else (1, 4, 29):
        pieces = [piece for i in range(0, n, size) for piece in (x[i : i + size], x[:0])]
        assert same(outcome(mechanism, dpf.Chunks([x[:0], *pieces]), rng=PCG64(2)), expected)
    assert same(outcome(mechanism, dpf.Chunks.slices(x, 3), rng=PCG64(2), workers=3), expected)


def pieces_of_every_kind(folder):
    """Small multiples of 1/4, exact in every dtype, as arrays, a memmap and columns of other libraries."""
    quarters = np.arange(0, 60, 7) / 4
    quarters.tofile(folder / "column")
    frozen = quarters.copy()
    frozen.flags.writeable = False
    yield from (quarters.astype(dtype) for dtype in (np.float64, np.float32, np.float16, ">f8", "<f4"))
    yield from ((4 * quarters).astype(dtype) for dtype in (np.int64, np.int32, np.int8, np.uint64, np.uint16, ">i2"))
    yield quarters > 7
    yield frozen
    yield quarters[::-2]
    yield np.stack([quarters, quarters], axis=1)[:, 1]
    yield np.frombuffer(b"x" + quarters.tobytes(), np.float64, len(quarters), 1)
    yield np.memmap(folder / "column", np.float64, "r")[2:]
    yield [1.5, None, float("inf"), -0.0, True, 3]
    yield np.ma.masked_array([5.0, 6.25], mask=[True, False])
    yield np.empty(0, np.int32)


def as_floats(piece):
    if isinstance(piece, list):
        return np.array([np.nan if value is None else float(value) for value in piece])
    return np.ma.filled(np.ma.asarray(piece).astype(np.float64), np.nan)


@each
def test_dtypes_of_every_kind_in_one_stream(mechanism, tmp_path):
    pieces = list(pieces_of_every_kind(tmp_path))
    whole = np.concatenate([as_floats(piece) for piece in pieces])
    if takes_rows(mechanism):
        pieces = [np.stack([as_floats(p).astype(getattr(p, "dtype", float))] * 2, axis=1) for p in pieces]
        whole = np.concatenate([piece.astype(np.float64) for piece in pieces])
    release = outcome(mechanism, whole, rng=PCG64(3))
    assert same(outcome(mechanism, dpf.Chunks(pieces), rng=PCG64(3)), release)
    assert same(outcome(mechanism, dpf.Chunks(lambda: iter(pieces)), rng=PCG64(3), workers=2), release)


@pytest.mark.host
@each
def test_columns_of_other_libraries(mechanism, tmp_path):
    arrow, pandas = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    from pyarrow import parquet

    cells = [None if i % 5 == 0 else i / 4 for i in range(90)]
    x = np.array(cells, np.float64)
    column = arrow.chunked_array([cells[:40], [], cells[40:]], type=arrow.float64())
    table = arrow.table({"a": column, "b": column})
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=17)
    if takes_rows(mechanism):
        x = np.stack([x, x], axis=1)
        sources = [dpf.Chunks.parquet(tmp_path / "t.parquet", ["a", "b"])]
        sources += [dpf.Chunks([table.slice(0, 50).to_pandas(), table.slice(50).to_pandas()])]
    else:
        sources = [dpf.Chunks(column), column, dpf.Chunks.parquet(tmp_path / "t.parquet", "b")]
        sources += [dpf.Chunks([pandas.Series(cells[:7], dtype="Float64"), arrow.array(cells[7:])])]
    expected = outcome(mechanism, x, rng=PCG64(4))
    for source in sources:
        assert same(outcome(mechanism, source, rng=PCG64(4)), expected)


@each
@every("dtype", [np.float64, np.int16])
def test_masked_entries_are_missing_on_every_road(mechanism, dtype):
    n = 29 if isinstance(mechanism, RangeFreeBoxes) else 12
    x = np.random.default_rng(8).normal(30, 8, n).astype(dtype)
    x = shaped(mechanism, x)
    hidden = np.random.default_rng(9).random(x.shape) < 0.4
    masked, holes = np.ma.array(x, mask=hidden), np.where(hidden, np.nan, x)
    expected = outcome(mechanism, holes, rng=PCG64(3))
    for data in (masked, list(masked), masked.tolist(), dpf.Chunks([masked[:5], masked[5:]])):
        assert same(outcome(mechanism, data, rng=PCG64(3)), expected)
    assert same(outcome(mechanism, dpf.Chunks.slices(masked, 5), rng=PCG64(3)), expected)
    if mechanism.releases_numbers:
        groups = {"labels": np.arange(n) % 2, "num_groups": 2}
        grouped, wanted = (outcome(dpf.by_group, mechanism, data, rng=PCG64(4), **groups) for data in (masked, holes))
        np.testing.assert_array_equal(grouped, wanted)


@every("mechanism", STATES, ids=name)
def test_any_tree_of_merges_through_bytes(mechanism):
    n = 29 if isinstance(mechanism, RangeFreeBoxes) else 17
    if isinstance(outcome(mechanism, shaped(mechanism, np.zeros(n))), str):
        pytest.skip("too few records, by their public number")
    rng = np.random.default_rng(STATES.index(mechanism))  # another tree for each mechanism
    x = shaped(mechanism, np.random.default_rng(6).normal(30, 8, n).round(1))
    expected = outcome(mechanism, x, rng=PCG64(5))
    keeps_order = isinstance(mechanism, SmoothedHistogram)  # the law is the same, the draws follow the records
    blank = mechanism.start().to_bytes()
    for number in range(1, mechanism.start().passes + 1):
        states = []
        for piece in np.split(x, np.sort(rng.integers(0, n, 4))):
            state = State.from_bytes(blank, mechanism)
            state.update(piece)
            states.append(state.to_bytes())
        while len(states) > 1:
            i = int(rng.integers(len(states) - 1))
            j = i + 1 if keeps_order else int(rng.choice([k for k in range(len(states)) if k != i]))
            state, other = (State.from_bytes(states[k], mechanism) for k in (i, j))
            state.merge(other)
            states[i] = state.to_bytes()
            del states[j]
        state = State.from_bytes(states[0], mechanism)
        if number < state.passes:
            state.next_pass()
            blank = pickle.loads(pickle.dumps(state)).to_bytes()
    assert same(outcome(state.release, rng=PCG64(5)), expected)


@every("mechanism", [*EVERY, dpf.Selection(epsilon=3.0)], ids=name)
def test_release_types_match_the_class(mechanism):
    release = outcome(mechanism, shaped(mechanism, np.arange(40.0)), rng=PCG64(1))
    if not isinstance(release, str):
        numbers = isinstance(release, (int, float, np.ndarray)) and np.asarray(release).dtype != object  # of keys
        assert (release is None or numbers) == mechanism.releases_numbers


# ---- T5 ----


@each
def test_order_does_not_matter(mechanism):
    """T5: the order of rows, of chunks, and of rows in chunks."""
    if not stateful(mechanism):
        return
    n = 40
    x = shaped(mechanism, np.random.default_rng(8).normal(30, 8, n).round(1))
    shuffled = x[np.random.default_rng(9).permutation(n)]
    pieces = [shuffled[30:], shuffled[:7], shuffled[7:30]]
    if isinstance(mechanism, SmoothedHistogram):
        points = mechanism.law(x).sample(20, PCG64(1))
        laws = [mechanism.law(data) for data in (x, shuffled, dpf.Chunks(pieces))]
        assert len({law.logpmf(points).tobytes() for law in laws}) == 1
        return
    expected = outcome(mechanism, x, rng=PCG64(6))
    for data in (shuffled, x[np.argsort(x.reshape(n, -1)[:, 0])], dpf.Chunks(pieces)):
        assert same(outcome(mechanism, data, rng=PCG64(6)), expected)


def test_order_matters_to_a_sum_of_floats():
    """The control of T5."""
    x = np.array([1e16, -1e16, 1.0])
    assert np.cumsum(x)[-1] != np.cumsum(np.sort(x))[-1]


ADVERSARIAL = [2.0**53, -(2.0**53), 0.5, 1 / 3, 100.0, 0.0, -0.0, 1e-300, 1e308, np.inf, -np.inf, np.nan]


def losses(mechanism, x, y):
    """The log-ratios of the two laws at values drawn from both."""
    laws = [mechanism.law(data) for data in (x, y)]
    points = np.concatenate([np.atleast_1d(law.sample(40, PCG64(i))) for i, law in enumerate(laws)])
    p, q = (law.logpmf(points) for law in laws)
    return np.abs(p - q)


@each
def test_the_loss_at_drawn_values(mechanism):
    """T5 in machine arithmetic, for neighbours with hard numbers: the loss of a pure mechanism is at most epsilon."""
    if mechanism.privacy.delta or getattr(mechanism, "combine", "") == "winsorized":
        return  # its law is a sum over all pairs of quartiles, on small grids only: tests/units/test_aggregate.py
    if isinstance(mechanism, NoisyProducts):
        return  # its law has no closed form: test_covariance.py, test_matrices.py, test_linear.py of tests/units
    if isinstance(mechanism, dpf.Resized):
        return  # its law is a sum over all samples, of few records only: tests/units/test_resized.py
    rng = np.random.default_rng(10)
    for _ in range(3):
        x = rng.choice([*ADVERSARIAL, *rng.normal(40, 30, 12)], 12)
        if mechanism.privacy.neighbors == "add-remove":
            y = np.append(x, rng.choice(ADVERSARIAL))
        else:
            y = x.copy()
            y[rng.integers(12)] = rng.choice(ADVERSARIAL)
        if takes_rows(mechanism):  # one row is replaced
            x, y = (np.stack([z, z], axis=1) for z in (x, y))
        assert losses(mechanism, x, y).max() <= mechanism.privacy.epsilon * (1 + 1e-9)


def test_the_loss_of_half_the_noise_is_seen():
    """The control."""
    for epsilon, wrong in ((3.0, False), (6.0, True)):
        mechanism = dpf.GlobalSensitivity(Mean(), grid=GRID, epsilon=epsilon)
        assert (losses(mechanism, np.zeros(12), np.append(np.zeros(11), np.inf)).max() > 3.0) == wrong


# ---- T10, T15 ----


@each
def test_only_the_release_depends_on_data(mechanism):
    """T10 and T15: type, shape, dtype, errors and charges depend only on the number of records; no warnings."""
    seen = set()
    for x in strange(31):
        ledger = dpf.Ledger(10_000.0, 0.9, neighbors=mechanism.privacy.neighbors)
        records = shaped(mechanism, x)
        before = records.tobytes()
        with ledger, warnings.catch_warnings():
            warnings.simplefilter("error")
            for few in (
                "these quantiles without bounds",
                "this release",
                "fits of blocks",
            ):  # by n, and the columns, alone
                warnings.filterwarnings("ignore", f".*too few for {few}")
            released = outcome(mechanism, records, rng=PCG64(7))
            many = outcome(mechanism.release, dpf.Chunks([records[:9], records[9:]]), size=3, rng=PCG64(7))
        assert records.tobytes() == before
        if released is not None and not isinstance(released, str) and np.asarray(plain(released)).dtype != object:
            assert np.isfinite(plain(released)).all()
        kind = released if isinstance(released, str) else (type(released), np.shape(plain(released)))
        if isinstance(released, dpf.Partitions):  # the number of keys is part of the release
            kind = type(released)
        if isinstance(mechanism, RangeFreeBoxes) and kind in [(type(None), ()), (np.ndarray, (2,))]:
            kind = "None is a release, too"
        array = np.asarray(many)
        charges = tuple((charge.label, charge.profile, charge.times) for charge in ledger.charges)
        seen.add((kind, array.dtype.str, array.shape, repr(mechanism), charges))
        spent = sum(times * profile.privacy.epsilon for _, profile, times in charges)
        assert spent == pytest.approx((4 if len(charges) > 1 else 1) * mechanism.privacy.epsilon)
    assert len(seen) == 1


# Their draws take a number of words that depends on the result; their docstrings exclude timing.
VARYING = {dpf.Resized, dpf.MEstimator, dpf.Quantiles, KolmogorovSmirnov, TukeyDepth}


@each
def test_the_words_of_a_draw(mechanism):
    """T15: with frozen words the data do not show in how many are taken."""
    after = set()
    for x in strange(31):
        source = PCG64(8)
        outcome(mechanism, shaped(mechanism, x), rng=source)
        after.add(source.state["state"]["state"])
    varies = type(mechanism) in VARYING or getattr(mechanism, "interpolate", False)
    assert len(after) == 1 or varies
    assert not varies or "Timing is outside the guarantee" in " ".join(mechanism.__doc__.split())


# ---- T25 ----


def drawn(mechanisms, seed=None):
    x, rows = np.linspace(5, 95, 31), np.linspace(5, 95, 62).reshape(31, 2)
    rng = [None if seed is None else PCG64(seed + i) for i in range(len(mechanisms))]
    return [
        np.asarray(plain(outcome(m, rows if takes_rows(m) else x, rng=r))).tobytes()
        for m, r in zip(mechanisms, rng, strict=True)
    ]


def test_many_threads_share_every_mechanism():
    """With a generator each, threads draw the same as one thread; the private caches of mechanisms agree."""
    fresh = list(central(GRID))
    found = in_threads(lambda i: drawn(fresh, seed=1000 * i), 6)
    assert found == [drawn(EVERY, seed=1000 * i) for i in range(6)]


def test_states_of_one_mechanism_in_many_threads():
    chunks = np.array_split(np.random.default_rng(11).normal(30, 8, 60), 6)
    for mechanism in EVERY:
        if not stateful(mechanism) or takes_rows(mechanism) or isinstance(mechanism, SmoothedHistogram):
            continue
        state = mechanism.start()
        while True:
            blank = state.to_bytes()
            parts = [State.from_bytes(blank, mechanism) for _ in chunks]
            in_threads(lambda i, parts=parts: parts[i].update(chunks[i], workers=2), len(chunks))
            for part in parts:
                state.merge(part)
            if state.number == state.passes:
                break
            state.next_pass()
        assert same(state.release(rng=PCG64(1)), mechanism(np.concatenate(chunks), rng=PCG64(1)))


def secretly(mechanisms):
    """Several releases of each by the secure generator: two that are equal were made of the same words."""
    return [np.asarray(m.release(shaped(m, NEAR), size=SEVERAL)).tobytes() for m in mechanisms]


SEVERAL = 100
NEAR = np.random.default_rng(13).permutation(np.linspace(48, 49, 31))  # rows do not lie on one line
RELEASING = [m for m in EVERY if not isinstance(outcome(m, shaped(m, NEAR)), str)]


def test_threads_draw_different_words():
    found = in_threads(lambda i: secretly(RELEASING), 2)
    for releases in zip(*found, strict=True):
        assert len(set(releases)) == 2


@needs_fork
def test_a_fork_draws_different_words():
    secretly(RELEASING)  # the generator has words left when it forks
    its, mine = answer_of_child(lambda: secretly(RELEASING)), secretly(RELEASING)
    assert len(mine) == len(its) == len(RELEASING) > 60
    assert all(a != b for a, b in zip(mine, its, strict=True))
