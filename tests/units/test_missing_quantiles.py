"""Quantiles of the records that are not missing, for a public number of all records."""

import itertools
import math
import warnings
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import dpfast as dpf
from dpfast import Grid, audit
from dpfast.laws import score_cap
from dpfast.mechanisms import inverse
from dpfast.mechanisms.slots import Slots
from dpfast.statistics import Median, Quantile
from dpfast.streaming import State
from tests.cases import every

NAN = math.nan
LEVELS = (0.0, 0.1, 0.3, 0.5, 0.62, 0.9, 1.0)


def PCG(seed):
    return np.random.PCG64(seed)


def made(q, grid, *, epsilon=1.0, **options):
    return dpf.InverseSensitivity(Quantile(q), grid=grid.with_missing("drop"), epsilon=epsilon, **options)


def column(n=100_000, share=0.24, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(87_000, 24_000, n)
    x[rng.random(n) < share] = NAN
    return x


def present(x):
    return x[~np.isnan(x)]


# ---- the law ----


def scores(x, q, last, cap, radius=0):
    """The signed score of each point by counts of the records that are present, below 0 where they are tied."""
    there = [value for value in x if not math.isnan(value)]
    if not there:
        return [0] * (last + 1)
    k = max(1, math.ceil(q * len(there)))

    def score(g):
        above = k - sum(value <= g for value in there) if g < last else -cap
        below = sum(value < g for value in there) - k + 1 if g > 0 else -cap
        return max(1 - cap, min(cap, max(above, below)))

    return [min(score(h) for h in range(max(0, g - radius), min(last, g + radius) + 1)) for g in range(last + 1)]


@pytest.mark.parametrize("radius", [0, 1])
def test_the_score_changes_by_at_most_one_with_one_record_missing_or_not(radius):
    changes = set()
    for q, last, cap, n in itertools.product(LEVELS, (1, 3), (1, 2, 3, 100), (1, 2, 4, 5)):
        values = [*range(last + 1), NAN]
        found = {
            places: scores([values[i] for i in places], q, last, cap, radius)
            for places in itertools.combinations_with_replacement(range(last + 2), n)
        }
        for places, i, other in itertools.product(found, range(n), range(last + 2)):
            replaced = found[tuple(sorted((*places[:i], other, *places[i + 1 :])))]
            changes |= {a - b for a, b in zip(found[places], replaced, strict=True)}
    assert changes == {-1, 0, 1}


@every("q", LEVELS)
def test_the_law_is_that_of_the_scores(q):
    grid, weights = Grid(0, 4, step=1), [3, 1, 2, 1, 5]
    mechanism = made(q, grid, measure=weights, selection="exponential", radius=1.0 if q == 0.3 else 0.0)
    for x in itertools.combinations_with_replacement([0.0, 2.0, 4.0, NAN], 4):
        s = scores(x, q, 4, mechanism.cap(4), int(mechanism.radius))
        expected = np.array(weights) * np.exp(-0.5 * np.array(s))
        found = np.exp(mechanism.law(np.array(x)).logpmf(np.arange(5)))
        assert np.allclose(found, expected / expected.sum(), rtol=1e-12)


def test_ranks_rise_by_at_most_one_with_a_record():
    for q in (*LEVELS, 1 - 2.0**-53, 0.7, 2.0**-40, *np.random.default_rng(0).random(50)):
        ranks = [Quantile(float(q)).rank(m) for m in (*range(1, 400), *range(2**51, 2**51 + 50))]
        steps = np.diff([rank for rank in ranks if rank < 400])
        assert set(steps.tolist()) <= {0, 1}
        assert set(np.diff(ranks[-50:]).tolist()) <= {0, 1}
    assert set(np.diff([Median().rank(m) for m in range(1, 400)]).tolist()) == {0, 1}


@every("selection", ["exponential", "permute-and-flip"])
@every("radius, measure", [(0.0, "auto"), (1.0, "auto"), (0.0, [4, 1, 1, 9, 1])])
def test_the_audit_certifies_the_guarantee_for_one_replaced_record(selection, radius, measure):
    for q in (0.0, 0.3, 0.5, 1.0):
        mechanism = made(q, Grid(0, 4, step=1), selection=selection, radius=radius, measure=measure)
        assert mechanism.privacy == dpf.Privacy(1.0)
        for n in (1, 3):
            found = audit.verify(mechanism, n=n, values=3, ordered=n == 1)
            assert found.holds, found


@dataclass(frozen=True)
class EvenRank(Quantile):
    """Wrong: the rank is rounded up to an even number, so that one record which becomes missing moves it by two."""

    def rank(self, n):
        return min(n, 2 * math.ceil(super().rank(n) / 2))


def test_ranks_that_move_by_two_are_rejected():
    grid = Grid(0, 4, step=1, missing="drop")
    options = {"grid": grid, "epsilon": 1.0, "selection": "exponential", "measure": "uniform"}
    right, wrong = (dpf.InverseSensitivity(kind(0.5), **options) for kind in (Quantile, EvenRank))
    assert audit.verify(right, n=5, values=2, ordered=False).holds
    found = audit.verify(wrong, n=5, values=2, ordered=False)
    assert not found.holds
    assert any(math.isnan(value) for dataset in found.worst for value in dataset)
    usual = dpf.InverseSensitivity(EvenRank(0.5), **{**options, "grid": Grid(0, 4, step=1)})
    assert audit.verify(usual, n=5, values=2, ordered=False).holds  # without missing records the rank is public


# ---- the default without bounds ----


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_a_release_without_bounds_is_among_the_records_that_are_present(neighbors):
    x, options = column(), {"epsilon": 1.0, "neighbors": neighbors}
    for q, expected in ((0.1, 56_200), (0.5, 87_000), (0.9, 117_800)):
        assert abs(dpf.quantile(x, q, **options) - expected) < 1000
        assert dpf.quantile(x, q, rng=PCG(1), **options) == dpf.quantile(present(x), q, rng=PCG(1), **options)
    assert dpf.median(x, rng=PCG(1), **options) == dpf.median(x, missing="drop", rng=PCG(1), **options)
    assert dpf.quantile(x, 0.1, missing="lower", epsilon=1.0) < -1e300
    assert dpf.FloatGrid().missing == "drop"


def test_records_without_missing_values_are_released_as_before():
    for x in (column(5000, 0.0), np.arange(5000), np.arange(5000) % 2 == 0, column(5000, 0.0).astype(np.float32)):
        for q in (0.1, 0.5):
            assert dpf.quantile(x, q, epsilon=1.0, rng=PCG(2)) == dpf.quantile(
                x, q, missing="lower", epsilon=1.0, rng=PCG(2)
            )


def test_the_explanation_says_so():
    said = []
    dpf.median(column(1000), epsilon=1.0, explain=said.append)
    assert "Missing records (NaN, None, null) are left out." in "\n".join(said)


# ---- roads ----


@pytest.mark.parametrize("grid", [Grid(0, 100), Grid(0, 4, step=1), dpf.FloatGrid(), Grid(0, 2000, step=1)], ids=str)
def test_all_roads_draw_the_quantile_of_the_records_that_are_present(grid):
    rng = np.random.default_rng(3)
    for q, epsilon, n in itertools.product((0.0, 0.1, 1.0), (0.1, 1.0), (1, 2, 5, 3000)):
        mechanism, usual = (
            made(q, grid, epsilon=epsilon),
            dpf.InverseSensitivity(Quantile(q), grid=grid, epsilon=epsilon),
        )
        for share in (0.0, 0.6, 1.0):
            x = np.where(rng.random(n) < share, NAN, rng.normal(40, 20, n))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", dpf.UtilityWarning)
                releases = [
                    mechanism(x, rng=PCG(1)),
                    mechanism(x[::-1], rng=PCG(1), workers=2),
                    mechanism(dpf.Chunks([x]), rng=PCG(1)),
                    mechanism(dpf.Chunks(lambda x=x: iter(np.array_split(x, 3))), rng=PCG(1)),
                    mechanism(dpf.Counted(x, np.ones(n, int)), rng=PCG(1)),
                    mechanism.release(x, rng=PCG(1)),
                ]
                if len(there := present(x)):
                    releases.append(usual(there, rng=PCG(1)))
            assert len(set(releases)) == 1, (q, epsilon, n, share)


def test_long_arrays_are_scanned_and_counted():
    x = column(300_000)
    for values in (x, x.astype(np.float32), np.repeat(x, 2)[::2], np.full(300_000, NAN)):
        release = made(0.1, dpf.FloatGrid())(values, rng=PCG(1), workers=2)
        if len(there := present(values)):
            assert release == dpf.quantile(there, 0.1, epsilon=1.0, rng=PCG(1))


def test_very_many_levels(monkeypatch):
    monkeypatch.setattr(inverse, "MOST_LEVELS", 8)
    x = column(400, 0.3)
    mechanism = made(0.3, Grid(0, 200_000), epsilon=0.5)
    assert isinstance(mechanism.plan(400), inverse.FromFewLevels)
    monkeypatch.undo()
    usual = dpf.InverseSensitivity(Quantile(0.3), grid=Grid(0, 200_000), epsilon=0.5)
    assert mechanism(x, rng=PCG(1)) == usual(present(x), rng=PCG(1))


def test_states_count_all_records_and_hold_those_that_are_present():
    x, mechanism = column(900, 0.4), made(0.3, dpf.FloatGrid(), epsilon=5.0)
    expected = mechanism(x, rng=PCG(1))
    state = mechanism.start()
    while True:
        parts = [State.from_bytes(state.to_bytes(), mechanism) for _ in range(3)]
        for part, chunk in zip(parts, (x[:300], np.full(0, NAN), x[300:]), strict=True):
            part.update(chunk)
        state = parts[0]
        for part in parts[1:]:
            state.merge(State.from_bytes(part.to_bytes(), mechanism))
        assert state.n == 900
        if state.number == state.passes:
            break
        state.next_pass()
    assert state.release(rng=PCG(1)) == expected
    absent = mechanism.start().read([np.full(900, NAN)])
    assert type(absent.release()) is float
    with pytest.raises(ValueError, match="at least one record"):
        mechanism.start().read([np.empty(0)]).release()


DROPPING = (made(0.3, Grid(0, 200_000)), dpf.Quantiles([0.25, 0.75], grid=dpf.FloatGrid(missing="drop"), epsilon=1.0))


@pytest.mark.host
@pytest.mark.parametrize("mechanism", DROPPING, ids=repr)
def test_dask_merges_the_states_of_parts(mechanism):
    array = pytest.importorskip("dask.array")
    dask = pytest.importorskip("dpfast.dask")
    for x in (column(900, 0.4), np.full(900, NAN)):
        released = dask.release(mechanism, array.from_array(x, chunks=200), rng=PCG(1))
        assert np.array_equal(released, mechanism(x, rng=PCG(1)))


@pytest.mark.host
def test_opendp_takes_them_for_one_changed_record():
    dp = pytest.importorskip("opendp.prelude")
    from dpfast.opendp import array_domain, make_measurement

    dp.enable_features("contrib", "honest-but-curious")
    for metric in (dp.hamming_distance(), dp.change_one_distance()):
        measurement = make_measurement(array_domain(4), metric, made(0.3, Grid(0, 200_000)))
        assert measurement.map(1) == 1.0
        assert 0 <= measurement(np.array([NAN, NAN, 1.0, 2.0])) <= 200_000


def test_counts_of_codes_have_null_for_missing_records():
    mechanism, x = made(0.5, Grid(0, 10, step=1)), np.array([3.0, 5.0, NAN, 5.0, NAN, 7.0, NAN])
    expected = mechanism.release(x, size=50, rng=PCG(1))
    assert np.array_equal(mechanism.release_counts([3, 5, 7, None], [1, 2, 1, 3], size=50, rng=PCG(1)), expected)
    assert np.isfinite(mechanism.release_counts([None], [5]))


@pytest.mark.host
def test_nulls_of_integers_are_left_out():
    pandas = pytest.importorskip("pandas")
    values = np.arange(2000)
    x = pandas.Series(values).astype("Int64").where(values % 4 > 0)
    expected = dpf.median(values[values % 4 > 0].astype(np.int32), epsilon=1.0, rng=PCG(1))
    assert dpf.median(x, epsilon=1.0, rng=PCG(1)) == expected


def test_groups_of_missing_records_draw():
    x = np.where(np.arange(60) < 30, NAN, np.arange(60.0))
    labels = np.arange(60) // 15
    for grid in (Grid(0, 100), Grid(0, 4, step=1), dpf.FloatGrid()):
        mechanism = made(0.5, grid)
        releases = dpf.by_group(mechanism, x, labels=labels, num_groups=4)
        assert np.isfinite(releases).all()
        counted = dpf.by_group(mechanism, dpf.Counted(x, np.ones(60, int)), labels=labels, num_groups=4)
        assert np.isfinite(counted).all()


# ---- several quantiles ----

JOINT = ((0.25, 0.75), (0.2, 0.5, 0.8), (0.0, 1.0), (0.4, 0.5), (0.1, 0.3, 0.5, 0.7, 0.9))


def slots_of(qs, n):
    return Slots(n, tuple(sorted({Quantile(q).rank(n) for q in qs})))


def test_missing_records_take_places_away():
    """Against the places themselves: which are taken away, and how many can be while the ranks are distinct."""
    for qs, n in itertools.product((*JOINT, tuple(i / 20 for i in range(21))), (1, 2, 3, 5, 8, 37, 100, 101)):
        slots = slots_of(qs, n)
        order = [1 + i * slots.stride % n for i in range(1, n + 1)]
        assert sorted(order) == [*range(1, n + 1)]
        assert order[-1] == 1
        ranks = [[rank - sum(place <= rank for place in order[:k]) for rank in slots.ranks] for k in range(n + 1)]
        assert [slots.ranks_without(k) for k in range(n + 1)] == ranks
        distinct = [min(np.diff([0, *each]), default=1) >= 1 for each in ranks]
        assert distinct == sorted(distinct, reverse=True)
        assert [slots.left_out(k) for k in range(n + 1)] == [sum(distinct[1 : k + 1]) for k in range(n + 1)]


def test_ranks_of_several_quantiles_stay_near_their_levels():
    for n in (1000, 10_007, 10**6, 10**9):
        slots, qs = slots_of((0.1, 0.25, 0.5, 0.9), n), np.array([0.1, 0.25, 0.5, 0.9])
        for absent in np.random.default_rng(0).integers(0, n // 2, 100).tolist():
            assert np.abs(slots.ranks_without(absent) - qs * (n - absent)).max() < 12


def joint_score(x, o, ranks, last):
    """The least number of records to replace so that the order statistics of the ranks are o: n less a matching."""
    places = range(1, len(x) + 1)
    low = [max([value for rank, value in zip(ranks, o, strict=True) if rank <= place], default=0) for place in places]
    high = [
        min([value for rank, value in zip(ranks, o, strict=True) if rank >= place], default=last) for place in places
    ]
    fits = np.array([[a <= value <= b for a, b in zip(low, high, strict=True)] for value in x])
    rows, columns = linear_sum_assignment(fits, maximize=True)
    return len(x) - int(fits[rows, columns].sum())


@every("qs", JOINT, ids=str)
def test_the_joint_law_is_that_of_scores_that_change_by_at_most_one(qs):
    last, values, weights = 2, [0.0, 1.0, 2.0, NAN], np.array([1, 2, 1])
    for n in (1, 2, 4, 5):
        slots = slots_of(qs, n)
        outputs = [*itertools.combinations_with_replacement(range(last + 1), len(slots.ranks))]
        grid = Grid(0, last, step=1, missing="drop")
        mechanism = dpf.Quantiles(qs, grid=grid, epsilon=1.0, stages=1, measure=weights)
        found = {}
        for places in itertools.combinations_with_replacement(range(4), n):
            x = np.array([values[i] for i in places])
            left_out = slots.left_out(int(np.isnan(x).sum()))
            records, ranks = np.sort(np.nan_to_num(x, nan=-1.0))[left_out:], slots.ranks_without(left_out)
            s = found[places] = [joint_score(np.maximum(records, 0), o, ranks, last) for o in outputs]
            law = np.exp(mechanism.law(x).logpmf(np.array(outputs)[:, mechanism.plan(n).places]))
            expected = np.exp(-0.5 * np.array(s)) * np.prod(weights[np.array(outputs)], axis=1)
            assert np.allclose(law, expected / expected.sum(), rtol=1e-9)
        for places, i, other in itertools.product(found, range(n), range(4)):
            replaced = found[tuple(sorted((*places[:i], other, *places[i + 1 :])))]
            assert max(abs(a - b) for a, b in zip(found[places], replaced, strict=True)) <= 1


@every("qs", JOINT, ids=str)
@every("stages", [1, 2])
def test_the_audit_certifies_several_quantiles(qs, stages):
    mechanism = dpf.Quantiles(qs, grid=Grid(0, 2, step=1, missing="drop"), epsilon=1.0, stages=stages)
    assert mechanism.privacy == dpf.Privacy(1.0)
    for n in (1, 2, 4):
        found = audit.verify(mechanism, n=n, values=3, ordered=False)
        assert found.holds, found


def test_a_missing_record_that_takes_two_places_away_is_rejected(monkeypatch):
    """Wrong: it lowers the distances of the first and the last rank from the ends, and raises that between them."""
    grid = Grid(0, 8, step=1, missing="drop")
    mechanism = dpf.Quantiles((0.3, 0.6), grid=grid, epsilon=1.0, stages=1, measure="uniform")
    assert slots_of((0.3, 0.6), 6).ranks == (2, 4)
    assert audit.verify(mechanism, n=6, values=3, ordered=False).holds
    monkeypatch.setattr(Slots, "ranks_without", lambda self, absent: [1, 4])
    monkeypatch.setattr(Slots, "left_out", lambda self, absent: min(absent, 1))
    found = audit.verify(mechanism, n=6, values=3, ordered=False)
    assert not found.holds
    assert any(math.isnan(value) for dataset in found.worst for value in dataset)


@pytest.mark.parametrize("grid", [Grid(0, 100), Grid(0, 4, step=1), dpf.FloatGrid()], ids=str)
def test_all_roads_draw_the_same_several_quantiles(grid):
    rng = np.random.default_rng(3)
    for qs, n in itertools.product(((0.25, 0.75), tuple(np.linspace(0.02, 0.98, 20)), (0.5,)), (1, 2, 60, 3000)):
        mechanism, usual = (dpf.Quantiles(qs, grid=each, epsilon=2.0) for each in (grid.with_missing("drop"), grid))
        for share in (0.0, 0.6, 1.0):
            x = np.where(rng.random(n) < share, NAN, rng.normal(40, 20, n))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", dpf.UtilityWarning)
                releases = [
                    mechanism(x, rng=PCG(1)),
                    mechanism(x[::-1], rng=PCG(1)),
                    mechanism(dpf.Chunks([x]), rng=PCG(1)),
                    mechanism(dpf.Chunks(lambda x=x: iter(np.array_split(x, 3))), rng=PCG(1)),
                    mechanism(dpf.Counted(x, np.ones(n, int)), rng=PCG(1)),
                ]
                if not np.isnan(x).any():
                    releases.append(usual(x, rng=PCG(1)))
                groups = dpf.by_group(mechanism, x, labels=np.zeros(n, int), num_groups=1)
            assert len({each.tobytes() for each in releases}) == 1, (qs, n, share)
            assert np.isfinite(groups).all()


def test_several_quantiles_without_bounds_are_among_the_records_that_are_present():
    x = column()
    for neighbors in ("replace-one", "add-remove"):
        options = {"epsilon": 1.0, "neighbors": neighbors}
        released = dpf.quantile(x, [0.1, 0.5, 0.9], **options)
        assert np.abs(released - [56_200, 87_000, 117_800]).max() < 2000
        assert abs(dpf.iqr(x, **options) - 32_400) < 2000
    with pytest.raises(ValueError, match="missing='drop' makes the number of records private"):
        dpf.iqr(x, bounds=(0, 1e6), epsilon=1.0, missing="drop")
    with pytest.raises(ValueError, match=r"missing='drop' is for method='quantiles' of one.*not for 'perturbed'"):
        dpf.synthesize(x, bounds=(0, 1e6), epsilon=1.0, missing="drop", method="perturbed")


def test_a_grid_of_floats_leaves_missing_records_out_in_every_way_of_release():
    """The release of a mechanism, of its state, in groups, from a sample and by a function; within its bounds, too."""
    x, median = column(), dpf.InverseSensitivity(Median(), grid=dpf.FloatGrid(), epsilon=1.0)
    joint = dpf.Quantiles([0.1, 0.5], grid=dpf.FloatGrid(), epsilon=1.0)
    releases = [
        median(x),
        median(dpf.Chunks([x])),
        median.start().read([x]).release(),
        joint(x)[1],
        joint(dpf.Chunks([x]))[1],
        dpf.Subsampled(median, 0.5)(x),
        dpf.Subsampled(joint, 0.5)(x)[1],
        *dpf.by_group(median, x, labels=np.arange(len(x)) % 2, num_groups=2),
        dpf.median(x, grid=dpf.FloatGrid(), epsilon=1.0),
        dpf.median(x, grid=dpf.FloatGrid(), epsilon=1.0, neighbors="add-remove"),
        float(np.median(dpf.synthesize(x, 10_000, epsilon=1.0))),
    ]
    assert np.abs(np.array(releases) - np.nanmedian(x)).max() < 1500
    assert "missing: 'drop'" in repr(median)
    assert "missing" not in repr(dpf.InverseSensitivity(Median(), grid=Grid(0, 100), epsilon=1.0))
    lower = dpf.InverseSensitivity(Median(), grid=dpf.FloatGrid(missing="lower"), epsilon=1.0)
    assert lower(x) < 83_000
    with pytest.raises(ValueError, match="where there is no such parameter, give a number, 'lower' or 'half'"):
        dpf.InverseSensitivity(Median(), grid=dpf.FloatGrid(), epsilon=1.0, interpolate=True)


def test_synthetic_tables_have_missing_numbers_where_there_are_no_bounds():
    x = column(5000)
    for columns in ({"a": dpf.Bins()}, {"a": dpf.Bins([80_000.0])}, {"a": Grid(0, 200_000, missing="drop")}):
        twins = dpf.synthesize({"a": x}, columns=columns, epsilon=1.0)["a"]
        assert abs(np.isnan(twins).mean() - np.isnan(x).mean()) < 0.05
        assert np.nanmin(twins) > 0
        assert dpf.marginals({"a": x}, columns, epsilon=1.0).columns["a"].labels[-1] is None
    whole = dpf.marginals({"a": np.arange(5000)}, {"a": dpf.Bins()}, epsilon=1.0)
    assert None not in whole.columns["a"].labels  # integers of NumPy are never missing
    with pytest.raises(ValueError, match="missing must be a number, 'lower' or 'drop' for a column of a table"):
        dpf.Bins(grid=Grid(0, 1, missing="half"))
    least = dpf.synthesize(column(300), 50, bounds=(0, 200_000), epsilon=1.0, missing="drop")
    assert not np.isnan(least).any()


# ---- warnings ----


def warned(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in caught]


def test_warnings_depend_on_the_number_of_all_records_only():
    mechanism = made(0.5, dpf.FloatGrid())
    for n, trapped in ((1000, False), (20, True)):
        few, none = np.full(n, NAN), np.arange(float(n))
        few[0] = 1.0
        said = []
        for x in (few, none, np.full(n, NAN)):
            labels = np.arange(n) % 2
            joint = dpf.Quantiles([0.25, 0.75], grid=dpf.FloatGrid(missing="drop"), epsilon=1.0)
            said.append(
                [
                    warned(lambda x=x: mechanism(x)),
                    warned(lambda x=x: dpf.median(x, epsilon=1.0)),
                    warned(lambda x=x: mechanism(dpf.Chunks([x]))),
                    warned(lambda x=x: mechanism(dpf.Chunks(lambda: iter([x])))),
                    warned(lambda x=x: mechanism.start().read([x]).release()),
                    warned(lambda x=x: mechanism(dpf.Counted(x, np.ones(len(x), int)))),
                    warned(lambda x=x, joint=joint: joint(x)),
                    warned(lambda x=x, joint=joint: joint(dpf.Chunks(lambda: iter([x])))),
                    warned(lambda x=x, labels=labels: dpf.by_group(mechanism, x, labels=labels, num_groups=2)),
                ]
            )
        assert said[0] == said[1] == said[2]
        assert all(bool(each) == trapped for each in said[0][:8])


def test_the_cap_is_public():
    """The cap does not depend on how many records are present, so that all laws have the same."""
    mechanism = made(0.5, Grid(0, 100))
    assert {mechanism.cap(m) for m in (1, 10, 1000)} == {
        score_cap(1.0, math.log(Fraction(mechanism.base_measure.total) / mechanism.base_measure.least))
    }
