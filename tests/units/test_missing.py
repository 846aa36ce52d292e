"""Missing records: a value, half of them at each bound by position, or left out."""

import dataclasses
import itertools
import math
from functools import partial

import numpy as np
import pytest

import dpfast as dpf
from dpfast import Grid, audit
from dpfast._kernels._calls import Parameters
from dpfast.core.grid import resolved
from dpfast.densities import KolmogorovSmirnov, PerturbedHistogram, RangeSums
from dpfast.domains import Ball, Box
from dpfast.laws import ClampedNoise, DiscreteLaplace
from dpfast.mechanisms import plan as base
from dpfast.mechanisms.methods import mechanism_for
from dpfast.statistics import Count, InterquartileRange, Mean, Median, OrderStatistic, Quantile, Sum, Variance
from dpfast.streaming import Codes
from tests.cases import every
from tests.central import central, name, outcome, same, shaped
from tests.reference.statistics import FUNCTIONS, one_of_each
from tests.untouchable import Untouchable

GRID = Grid(0, 100)
TINY = Grid(0, 4, step=1)
NAN = math.nan


def PCG(seed):
    return np.random.PCG64(seed)


def twin(x, grid):
    """The records that `x` stands for, one by one."""
    if grid.missing == "drop":
        return np.array([value for value in x if not math.isnan(value)])
    ends = grid.lower, grid.upper
    return np.array([ends[i % 2] if math.isnan(value) else value for i, value in enumerate(x)])


def on(mechanism, missing):
    """The mechanism with a policy; None if it has no grid, or refuses the policy."""
    try:
        if isinstance(mechanism, dpf.NoisySums):
            if isinstance(mechanism.domain, Ball):
                return None
            grids = tuple(grid.with_missing(missing) for grid in mechanism.domain.grids)
            return dataclasses.replace(mechanism, domain=Box(grids if len(grids) > 1 else grids[0]))
        if isinstance(mechanism, dpf.MEstimator):
            grid = mechanism.grid.with_missing(missing)
            return dpf.MEstimator(mechanism.psi, grid=grid, epsilon=mechanism.epsilon, prior=mechanism.prior)
        if isinstance(mechanism, dpf.SmoothSensitivity):
            grid = mechanism.grid.with_missing(missing)
            options = {"epsilon": mechanism.epsilon, "delta": mechanism.delta, "beta": mechanism.beta}
            return dpf.SmoothSensitivity(mechanism.statistic, grid=grid, noise=mechanism.noise, **options)
        fields = {field.name for field in dataclasses.fields(mechanism)}
        return dataclasses.replace(mechanism, grid=mechanism.grid.with_missing(missing)) if "grid" in fields else None
    except ValueError as error:
        if f"missing={missing!r}" not in str(error):
            raise
        return None


CENTRAL = [*central(GRID), *central(dpf.FloatGrid(), kinds={dpf.InverseSensitivity, dpf.Quantiles})]
LEAVES_OUT = dpf.PresentMean, dpf.Quantiles  # with a law of their own for missing records
HALVES = [(made, m) for m in CENTRAL if (made := on(m, "half")) is not None]
DROPS = [(made, m) for m in CENTRAL if (made := on(m, "drop")) is not None and not isinstance(m, LEAVES_OUT)]
pairs = every(("mechanism", "usual"), HALVES + DROPS, ids=lambda m: f"{name(m)}-{policies(m)}")


def policies(mechanism):
    return sorted({str(grid.missing) for grid in mechanism.points})


def policy(mechanism):
    return next(grid for grid in mechanism.points if grid.resolves).missing


def records(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.3, NAN, rng.normal(40, 20, n))


def resolved_records(mechanism, x):
    """The records of a mechanism, and those that stand for them, of its shape."""
    if mechanism.dimensions == 1:
        return x, twin(x, mechanism.points[0])
    columns = [twin(column, grid) for column, grid in zip((x, x[::-1]), (mechanism.points * 2)[:2], strict=True)]
    if policy(mechanism) == "half":
        return shaped(mechanism, x), np.stack(columns, axis=1)
    rows = shaped(mechanism, x)
    return rows, np.array([row for row in rows if not np.isnan(row).any()]).reshape(-1, 2)


# ---- policies and guarantees ----


def test_each_mechanism_takes_the_policies_of_its_guarantee():
    for mechanism in CENTRAL:
        has_grid = on(mechanism, 1.0) is not None
        hides_n = mechanism.privacy.neighbors == "add-remove"
        assert (on(mechanism, "half") is not None) == (has_grid and not hides_n), mechanism
        quantile = isinstance(mechanism, dpf.InverseSensitivity) and isinstance(mechanism.statistic, OrderStatistic)
        drops = hides_n or isinstance(mechanism, LEAVES_OUT) or (quantile and not mechanism.interpolate)
        assert (on(mechanism, "drop") is not None) == ((has_grid and drops) or mechanism.leaves_out), mechanism
    assert {type(made) for made, _ in DROPS} == {
        dpf.GlobalSensitivity,
        dpf.InverseSensitivity,
        dpf.NoisySums,
        PerturbedHistogram,
        RangeSums,
    }
    assert all(made.ordered for made, _ in HALVES)
    assert not any(made.ordered for made, _ in DROPS)


@pairs
def test_a_release_is_that_of_the_records_that_stand_for_the_missing_ones(mechanism, usual):
    for n in (1, 2, 29, 600):
        if isinstance(mechanism, KolmogorovSmirnov) and n > 29:
            continue
        x, y = resolved_records(mechanism, records(n))
        if len(y) or mechanism.hides_n:
            assert same(outcome(mechanism, x, rng=PCG(1)), outcome(usual, y, rng=PCG(1)))
        x, y = resolved_records(mechanism, np.full(n, NAN))
        if len(y) or mechanism.hides_n:
            assert same(outcome(mechanism, x, rng=PCG(2)), outcome(usual, y, rng=PCG(2)))
        else:
            assert type(mechanism(x)) is float


@pairs
def test_chunks_count_positions_from_their_own_start(mechanism, usual):
    n = 28 if isinstance(mechanism, KolmogorovSmirnov) else 150
    x = records(n, 1)
    pieces = np.split(x, [6, 6, 13, 20])
    if mechanism.dimensions == 1:
        x, y = pieces, np.concatenate([twin(piece, mechanism.points[0]) for piece in pieces])
    else:
        x, y = zip(*(resolved_records(mechanism, piece) for piece in pieces), strict=True)
        y = np.concatenate(y)
    release = outcome(usual, y, rng=PCG(1))
    assert same(outcome(mechanism, dpf.Chunks(list(x)), rng=PCG(1)), release)
    state = mechanism.start()
    while True:  # each piece by another state in each pass
        for order in ([0, 1, 2], [3, 4]):
            other = dpf.streaming.State.from_bytes(state.to_bytes(), mechanism)
            other.n = 0
            for i in order:
                other.update(x[i], workers=2)
            if order[0] == 0:
                first = other
        first.merge(other)
        state = first
        if state.number == state.passes:
            break
        state.next_pass()
    assert same(outcome(state.release, rng=PCG(1)), release)


@pairs
@pytest.mark.parametrize("copied", [8, 200])
def test_long_arrays_are_resolved_in_parts(mechanism, usual, copied, monkeypatch):
    monkeypatch.setattr(base, "_RESOLVED", 8)
    monkeypatch.setattr(base, "_COPIED", copied)
    n = 29 if isinstance(mechanism, KolmogorovSmirnov) else 200
    x, y = resolved_records(mechanism, records(n, 3))
    assert same(outcome(mechanism, x, rng=PCG(1)), outcome(usual, y, rng=PCG(1)))
    assert same(outcome(mechanism, dpf.Chunks([x]), rng=PCG(1)), outcome(usual, y, rng=PCG(1)))


@every("missing, neighbors", [("half", "replace-one"), ("drop", "add-remove"), ("drop", "replace-one")])
@every("grid", [GRID, TINY, dpf.FloatGrid()], ids=str)
@every("statistic", [Median(), Mean()], ids=str)
def test_groups_count_positions_within_each_group(missing, neighbors, grid, statistic):
    kind = dpf.InverseSensitivity if isinstance(statistic, Median) else dpf.GlobalSensitivity
    if isinstance(statistic, Mean) and (isinstance(grid, dpf.FloatGrid) or (missing, neighbors[:3]) == ("drop", "rep")):
        return
    made = kind(statistic, grid=grid.with_missing(missing), epsilon=1.0, neighbors=neighbors)
    usual = kind(statistic, grid=grid, epsilon=1.0, neighbors=neighbors)
    labels = np.random.default_rng(4).integers(-1, 5, 9000) // 2 * 2
    x = np.where(labels == 4, np.arange(9000.0), records(9000, 2)).astype(np.float32)
    x[:3] = NAN
    order, offsets = np.argsort(labels, kind="stable"), [0, *np.cumsum(np.bincount(labels[labels >= 0], minlength=5))]
    parts = [twin(x[labels == g], made.grid) for g in range(5)]
    edges = np.cumsum([0, *map(len, parts)])
    expected = dpf.by_group(usual, np.concatenate(parts), offsets=edges, rng=PCG(1))
    for values in (x, x.astype(np.float64)):
        assert np.array_equal(dpf.by_group(made, values, labels=labels, num_groups=5, rng=PCG(1)), expected)
        by_offsets = dpf.by_group(made, values[order][np.sum(labels < 0) :], offsets=offsets, rng=PCG(1))
        assert np.array_equal(by_offsets, expected)


def test_a_row_is_one_record():
    rows = np.array([[NAN, 1.0], [2.0, NAN], [3.0, 3.0]])
    half, drop, usual = (Grid(0, 10, step=1, missing=missing) for missing in ("half", "drop", 7))
    assert resolved(rows, (half, half)).tolist() == [[0.0, 1.0], [2.0, 10.0], [3.0, 3.0]]
    assert resolved(rows, (usual, half))[1].tolist() == [2.0, 10.0]
    assert resolved(rows, (drop, usual)).tolist() == [[2.0, pytest.approx(NAN, nan_ok=True)], [3.0, 3.0]]
    assert resolved(rows, (drop,)).tolist() == [[3.0, 3.0]]
    assert resolved(np.array([[1, 2]]), (drop, half)).tolist() == [[1, 2]]
    assert Box((drop, usual)).encode(rows).tolist() == [[2, 7], [3, 3]]
    assert half.encode([NAN, NAN, 4.0]).tolist() == [0, 10, 4]
    assert drop.encode(np.array([NAN, 4.0], np.float16)).tolist() == [4]
    assert dpf.FloatGrid(missing="drop").encode([NAN]).tolist() == []


# ---- containers ----


@pytest.mark.parametrize("missing", ["half", "drop"])
def test_nulls_are_missing(missing):
    x = np.where(np.arange(90) % 3, np.arange(90.0), NAN)
    options = {"grid": Grid(0, 100, step=1), "epsilon": 1.0, "missing": missing}
    options["neighbors"] = "add-remove" if missing == "drop" else "replace-one"
    expected = dpf.mean(x, rng=PCG(1), **options)
    forms = [
        [None if math.isnan(value) else value for value in x],
        np.ma.array(np.nan_to_num(x, nan=5.0), mask=np.isnan(x)),
        x.astype(np.float32),
        np.repeat(x, 2)[::2],
    ]
    for module, make in {
        "pandas": lambda pandas: [
            pandas.Series(x),
            pandas.Series(x).astype("Float64"),
            pandas.Series(x).astype("Int64"),
        ],
        "polars": lambda polars: [polars.Series([None if math.isnan(value) else value for value in x])],
        "pyarrow": lambda arrow: [arrow.array(x, from_pandas=True), arrow.chunked_array([x[:30], x[30:]])],
    }.items():
        library = None
        try:
            library = __import__(module)
        except ImportError:
            continue
        forms += make(library)
    for form in forms:
        assert dpf.mean(form, rng=PCG(1), **options) == expected
        assert dpf.median(form, rng=PCG(1), **options) == dpf.median(x, rng=PCG(1), **options)


# ---- guarantees by enumeration ----

VERIFIED = [
    *(dpf.InverseSensitivity(s, grid=TINY, epsilon=1.0) for s in one_of_each() if hasattr(s, "attack_range")),
    *(dpf.GlobalSensitivity(s, grid=TINY, epsilon=1.0) for s in (Mean(), Sum(), Variance())),
    dpf.SmoothSensitivity(Median(), grid=TINY, epsilon=1.0, delta=0.01),
    dpf.NestedBoxes(grid=Grid(0, 2, step=1), epsilon=1.0),
    *(
        dpf.InverseSensitivity(Quantile(q), grid=TINY, epsilon=1.0, neighbors="add-remove", selection=selection)
        for q in (0.0, 0.3, 0.5)
        for selection in ("exponential", "permute-and-flip")
    ),
]


@pytest.mark.parametrize("mechanism", VERIFIED, ids=name)
def test_the_guarantee_holds_on_all_small_datasets_with_missing_records(mechanism):
    made = on(mechanism, "drop" if mechanism.hides_n else "half")
    n = 2 if mechanism.dimensions == 2 else 3
    grids = made.points * 2 if mechanism.dimensions == 2 else None
    found = audit.verify(made, n=n, values=2 if mechanism.dimensions == 2 else 3, grids=grids)
    assert found.holds, found
    assert found.pairs > 0
    if not mechanism.hides_n:
        with pytest.raises(ValueError, match="ordered must be True"):
            audit.verify(made, n=n, ordered=False)


@dataclasses.dataclass(frozen=True)
class Equal(dpf.Mechanism):
    """The number of rows whose two entries are on the same grid point, with discrete Laplace noise."""

    grids: tuple[Grid, Grid]

    @property
    def privacy(self):
        return dpf.Privacy(1.0)

    @property
    def dimensions(self):
        return 2

    def reading(self):
        return Codes(self.grids, lambda codes: codes[:, 0] == codes[:, 1], lambda x: np.reshape(x, (-1, 2)))

    def law_of(self, equal):
        return ClampedNoise(DiscreteLaplace(1.0), center=int(equal.sum()), last=len(equal), decode=lambda codes: codes)


class EqualByCount(Equal):
    """Wrong: the parity is that of the number of rows before with NaN, so that one row changes all later ones."""

    def resolved(self, values):
        out = values.copy()
        for column, grid in zip(out.T, self.grids, strict=True):
            absent = np.isnan(column)
            column[absent] = np.where(np.arange(absent.sum()) % 2, grid.upper, grid.lower)
        yield out


class MedianByCount(dpf.InverseSensitivity):
    """The same for numbers, where only one of the records changes, in any order."""

    def resolved(self, values):
        out, absent = values.copy(), np.isnan(values)
        out[absent] = np.where(np.arange(absent.sum()) % 2, self.grid.upper, self.grid.lower)
        yield out


def test_halves_by_the_count_of_missing_records_are_rejected():
    """The row (0, 0) replaced by (NaN, 0) swaps the ends that stand for all later NaN, and so the rows."""
    grids = Grid(0, 2, step=1, missing="half"), Grid(0, 2, step=1)
    assert audit.verify(Equal(grids), n=3, values=2).holds
    found = audit.verify(EqualByCount(grids), n=3, values=2)
    assert not found.holds
    assert found.epsilon > 1.5
    # The numbers that stand for missing ones are, in some order, the same but for one.
    assert audit.verify(MedianByCount(Median(), grid=TINY.with_missing("half"), epsilon=1.0), n=4, values=3).holds


class MeanOfTheRest(dpf.GlobalSensitivity):
    """Wrong: missing records are left out (but one stays), while the guarantee is for one replaced record."""

    def check_missing(self):
        pass

    def resolved(self, values):
        yield values[~np.isnan(values)] if len(values) > np.isnan(values).sum() else np.zeros(1)


def test_dropped_records_with_a_public_count_are_rejected():
    drop = TINY.with_missing("drop")
    with pytest.raises(ValueError, match="missing='drop' makes the number of records private"):
        dpf.GlobalSensitivity(Mean(), grid=drop, epsilon=1.0)
    found = audit.verify(MeanOfTheRest(Mean(), grid=drop, epsilon=1.0), n=3, values=3)
    assert not found.holds
    for made in (
        lambda: dpf.InverseSensitivity(Median(), grid=drop, epsilon=1.0, interpolate=True),
        lambda: dpf.InverseSensitivity(InterquartileRange(), grid=drop, epsilon=1.0),
    ):
        with pytest.raises(ValueError, match="missing='drop' makes the number of records private"):
            made()


@pytest.mark.parametrize("statistic", [Count(), Count((1.0, 3.0)), Sum()], ids=str)
def test_dropped_records_change_totals_as_one_record_does(statistic):
    """The exact center of the law, over all datasets of at most 3 records with NaN and all that have one more."""
    grid = Grid(-2, 3, step=1, missing="drop")
    made = dpf.GlobalSensitivity(statistic, grid=grid, epsilon=1.0, neighbors="add-remove")
    values = [-2.0, 0.0, 3.0, NAN]
    center = {
        x: made.law(np.array(x, np.float64)).center for n in range(5) for x in itertools.product(values, repeat=n)
    }
    changes = [
        abs(center[x] - center[(*x[:i], value, *x[i:])])
        for x in center
        if len(x) < 4
        for i in range(len(x) + 1)
        for value in values
    ]
    assert max(changes) == made.scale(1)
    assert center[(NAN, NAN)] == center[()]


def test_the_error_does_not_depend_on_the_policy():
    for neighbors, missing in (("add-remove", "drop"), ("replace-one", "half")):
        usual = dpf.InverseSensitivity(Quantile(0.3), grid=TINY, epsilon=1.0, neighbors=neighbors)
        assert on(usual, missing).error(50, density=0.2) == usual.error(50, density=0.2)


@every("record", [1, 1.0])
@every("missing", [None, "half", 3.0])
def test_private_bounds_follow_the_order_for_halves(record, missing):
    """Of the statistic, and of the median that stands for missing floats."""
    public = Parameters("private", None, 1.0, method="global-sensitivity", missing=missing)
    made = mechanism_for(Mean(), np.array([record]), public)
    assert made.ordered == (missing == "half" or (isinstance(record, float) and missing is None))


def test_counts():
    x = np.where(np.arange(1000) % 4, 1.0, NAN)
    count = {missing: dpf.count(x, epsilon=50.0, missing=missing) for missing in (None, "lower", 3.0, "drop")}
    assert count == {None: 1000, "lower": 1000, 3.0: 1000, "drop": 750}
    assert dpf.count(x, within=(-math.inf, math.inf), epsilon=50.0) == 750
    with pytest.raises(ValueError, match="'drop', not 'half'"):
        dpf.count(Untouchable(), epsilon=1.0, missing="half")


# ---- functions ----


def call(function, x, **options):
    arguments, _ = FUNCTIONS[function]
    bounds = {} if function == "count" else {"bounds": (0, 100)}
    return getattr(dpf, function)(x, *arguments, epsilon=1.0, **bounds, **options)


@every("function", [f for f in FUNCTIONS if f != "count"])
def test_missing_values_of_each_function(function):
    x = records(600)
    default, lower, zero = (call(function, x, rng=PCG(1), **o) for o in ({}, {"missing": "lower"}, {"missing": -1e9}))
    assert lower == zero == call(function, np.nan_to_num(x, nan=0.0), rng=PCG(1))
    free = function in ("mean", "median", "quantile")  # those that leave out missing records at no cost
    assert default == (call(function, x, missing="drop", rng=PCG(1)) if free else lower)
    whole = np.ones(60, np.int64)  # of which none can be missing
    assert call(function, whole, rng=PCG(1)) == call(function, whole, missing="lower", rng=PCG(1))
    assert call(function, x, missing=60, rng=PCG(1)) == call(function, np.nan_to_num(x, nan=60.0), rng=PCG(1))
    assert call(function, x, missing="half", rng=PCG(1)) == call(
        function, twin(x, GRID.with_missing("half")), rng=PCG(1)
    )
    if function in ("median", "quantile"):
        assert call(function, x, missing="drop", rng=PCG(1)) == call(function, x[~np.isnan(x)], rng=PCG(1))
    refusals = [
        ("drop", ValueError, "missing='drop' makes the number of records private: it needs neighbors='add-remove'")
    ]
    for missing, error, message in [
        *([] if free else refusals),
        ("upper", ValueError, "missing must be one of 'lower', 'half', 'drop', not 'upper'"),
        (NAN, ValueError, "missing must be finite"),
        (True, TypeError, "missing must be a real number, not bool"),
        (b"half", TypeError, "missing must be a real number, not bytes"),
    ]:
        with pytest.raises(error, match=message):
            call(function, Untouchable(), missing=missing)


@pytest.mark.parametrize("function", ["mean", "sum", "median", "quantile"])
def test_functions_that_leave_out_missing_records(function):
    x = records(600)
    there = x[~np.isnan(x)]
    options = {"neighbors": "add-remove", "rng": PCG(1)}
    release = call(function, x, missing="drop", **options)
    assert release == call(function, there, neighbors="add-remove", rng=PCG(1))
    assert release == call(function, x, neighbors="add-remove", rng=PCG(1))  # the default
    if function != "sum":  # in a sum from 0 on, the lower bound adds nothing
        assert release != call(function, x, missing="lower", neighbors="add-remove", rng=PCG(1))
    with pytest.raises(ValueError, match="missing='half' needs neighbors='replace-one'"):
        call(function, Untouchable(), missing="half", neighbors="add-remove")


def test_functions_of_several_columns_densities_and_bounds():
    x = records(600)
    there, half = x[~np.isnan(x)], twin(x, GRID.with_missing("half"))
    bounded = {"bounds": (0, 100), "epsilon": 1.0}
    rows = np.stack([x, x[::-1]], axis=1)
    halves = np.stack([half, twin(x[::-1], GRID.with_missing("half"))], axis=1)

    def equal(function, one, other, *arguments, **options):
        """The same release of two arrays, by `missing` for the first one."""
        missing = {"missing": options.pop("missing")}
        releases = [
            function(values, *arguments, rng=PCG(1), **options, **extra)
            for values, extra in ((one, missing), (other, {}))
        ]
        first, second = (getattr(release, "counts", getattr(release, "coefficients", release)) for release in releases)
        return np.array_equal(first, second)

    assert equal(dpf.histogram, x, half, 5, missing="half", **bounded)
    assert equal(dpf.histogram, rows, halves, 5, missing="half", **bounded)
    assert equal(dpf.histogram, x, there, 5, missing="drop", neighbors="add-remove", **bounded)
    assert equal(dpf.density, x, half, missing="half", **bounded)
    assert equal(dpf.synthesize, x, half, 50, missing="half", **bounded)
    assert equal(dpf.robust_mean, rows, halves, missing="half", **bounded)
    assert equal(dpf.robust_mean, rows, np.nan_to_num(rows, nan=9.0), missing=9, **bounded)
    assert equal(dpf.mean, rows, halves, missing="half", **bounded)
    assert equal(dpf.sum, rows, rows[~np.isnan(rows).any(axis=1)], missing="drop", neighbors="add-remove", **bounded)
    assert equal(dpf.m_estimate, x, half, dpf.psi.Huber(5.0), missing="half", **bounded)
    cauchy = {"step": 0.5, "prior": dpf.prior.Cauchy(0, 100), "epsilon": 1.0}
    assert equal(dpf.m_estimate, x, np.nan_to_num(x, nan=40.0), dpf.psi.Logistic(5.0), missing=40, **cauchy)
    for function, options in ((dpf.bounds, {"coverage": 0.5}), (dpf.mean, {"bounds": "private"})):
        given = partial(function, missing=40.0)  # without a number, a median would be released first
        assert equal(given, x, np.nan_to_num(x, nan=40.0), missing=40.0, epsilon=1.0, **options)
    assert equal(dpf.iqr, x, np.nan_to_num(x, nan=40.0), missing=40.0, epsilon=1.0)
    for values, missing in ((half, "half"), (np.nan_to_num(x, nan=3.0), 3.0)):
        given = values.copy()
        given[(values == 0) | (values == 100)] = np.where(
            missing == "half", np.sign(values - 50)[(values == 0) | (values == 100)] * np.inf, 3.0
        )
        assert equal(dpf.median, x, given, missing=missing, epsilon=1.0)
        assert equal(dpf.quantile, x, given, [0.4, 0.6], missing=missing, epsilon=1.0)


def test_refusals_of_functions_before_they_read():
    bounded = {"bounds": (0, 100), "epsilon": 1.0}
    public = "missing='drop' makes the number of records private"
    for function, arguments in (
        (dpf.density, ()),
        (dpf.m_estimate, (dpf.psi.Huber(5.0),)),
        (dpf.robust_mean, ()),
    ):
        with pytest.raises(ValueError, match=public):
            function(Untouchable(), *arguments, missing="drop", **bounded)
    with pytest.raises(ValueError, match=public):
        dpf.bounds(Untouchable(), epsilon=1.0, missing="drop")
    with pytest.raises(ValueError, match=public):
        dpf.mean(Untouchable(), epsilon=1.0, bounds="private", missing="drop")
    with pytest.raises(ValueError, match=public):
        dpf.histogram([NAN], 5, missing="drop", **bounded)
    with pytest.raises(TypeError, match="in a ball, a row with NaN or an infinity is the center"):
        dpf.mean(np.ones((3, 2)), radius=1.0, epsilon=1.0, missing=0.0)
    with pytest.raises(TypeError, match="without bounds NaN counts as 0"):
        dpf.robust_mean(Untouchable(), epsilon=1.0, delta=1e-6, step=1.0, width=4.0, missing=0.0)
    with pytest.raises(TypeError, match="grid must be a dpfast"):
        dpf.mean(Untouchable(), grid=3, epsilon=1.0, missing=0.0)
    half = GRID.with_missing("half")
    for use in (
        lambda: dpf.noise.add_laplace(Untouchable(), scale=1.0, grid=half),
        lambda: dpf.local.SeriesReports(2, 1.0, grid=half),
        lambda: dpf.robust.score(Median(), Untouchable(), 1.0, grid=half),
        lambda: dpf.smooth.smooth_sensitivity(Median(), Untouchable(), grid=half, beta=0.1),
        lambda: dpf.NestedBoxes(grid=half, epsilon=1.0, transform=((1.0, 0.0), (0.0, 1.0))),
    ):
        with pytest.raises(ValueError, match="missing must be a number or 'lower' here, not 'half'"):
            use()


def test_a_mechanism_of_the_user_is_checked_before_it_reads():
    @dataclasses.dataclass(frozen=True)
    class Total(dpf.Mechanism):
        grid: Grid
        neighbors: str = "replace-one"

        @property
        def privacy(self):
            return dpf.Privacy(1.0, 0.0, self.neighbors)

        def reading(self):
            return dpf.streaming.Sums(self.grid, squares=False)

    for missing, neighbors in (("drop", "replace-one"), ("half", "add-remove")):
        total = Total(TINY.with_missing(missing), neighbors)
        for use in (total.start, lambda total=total: total(Untouchable())):
            with pytest.raises(ValueError, match=f"missing={missing!r}"):
                use()
    assert Total(TINY.with_missing("half")).start().read([[NAN, NAN, 1.0]]).summary() == (3, 5, 0)


@pytest.mark.host
def test_opendp_takes_halves_only_where_the_order_is_kept():
    dp = pytest.importorskip("opendp.prelude")
    from dpfast.opendp import array_domain, make_measurement

    dp.enable_features("contrib", "honest-but-curious")
    median = dpf.InverseSensitivity(Median(), grid=TINY.with_missing("half"), epsilon=1.0)
    with pytest.raises(ValueError, match="input_metric must be one of"):
        make_measurement(array_domain(4), dp.symmetric_distance(), median)
    measurement = make_measurement(array_domain(4), dp.hamming_distance(), median)
    assert 0 <= measurement(np.array([NAN, NAN, 1.0, 2.0])) <= 4
    drop = dpf.GlobalSensitivity(Count(), grid=TINY.with_missing("drop"), epsilon=50.0, neighbors="add-remove")
    measurement = make_measurement(array_domain(), dp.symmetric_distance(), drop)
    assert measurement(np.array([NAN, NAN, 1.0, 2.0])) == 2
    assert measurement.map(1) == 50.0


@pytest.mark.parametrize("function", ["std", "iqr", "trimmed_mean", "huber"])
def test_masked_arrays_are_warned_of(function):
    """By their type: whatever is masked, and not where somebody says what becomes of missing records."""
    x = records(600)
    words = "a missing cell counts as the lower bound"
    for masked in (np.ma.masked_invalid(x), np.ma.array(np.ones(600)), np.ma.array(np.ones(600, np.int64))):
        with pytest.warns(dpf.UtilityWarning, match=words):
            call(function, masked)
        for said in ({"missing": "lower"}, {"missing": "drop", "neighbors": "add-remove"}):
            call(function, masked, **said)
    for values in (x, list(x), np.ones(600, np.int64)):
        call(function, values)
    with pytest.warns(dpf.UtilityWarning, match=words):
        dpf.interval("std", np.ma.masked_invalid(x), bounds=(0, 100), epsilon=1.0)
    with pytest.warns(dpf.UtilityWarning, match=words):
        dpf.sum(np.ma.masked_invalid(x), bounds=(1, 100), epsilon=1.0)
    for free in ("mean", "median", "sum"):
        call(free, np.ma.masked_invalid(x))


def test_a_sum_takes_nothing_for_missing_records():
    x = records(600)
    made = dpf.sum(x, bounds=(-50, 100), epsilon=1.0, rng=PCG(1))
    assert made == dpf.sum(np.nan_to_num(x, nan=0.0), bounds=(-50, 100), epsilon=1.0, rng=PCG(1))


def test_warnings_of_methods_that_find_bounds_and_of_private_numbers():
    masked = np.ma.masked_invalid(records(2000))
    with pytest.warns(dpf.UtilityWarning, match="a missing cell counts as the lower bound"):
        dpf.mean(masked, bounds=(0, 1e6), epsilon=1.0, method="private-bounds")
    for function in ("iqr", "trimmed_mean", "huber"):
        call(function, masked, neighbors="add-remove")
    dpf.quantile(masked, [0.1, 0.9], bounds=(0, 100), epsilon=1.0, neighbors="add-remove")
