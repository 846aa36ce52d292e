"""Plans: what is public for a number of records, by which everything is released."""

import copy
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import Grid, Ledger
from dpfast.groups.draws import Groups
from dpfast.statistics import Count, Mean, Median, Sum
from tests.cases import every
from tests.central import same, shaped
from tests.releases import GRID, MECHANISMS, X

MEDIAN = dpf.InverseSensitivity(Median(), grid=GRID, epsilon=0.25)
ARRAYS = [m for m in MECHANISMS if isinstance(shaped(m, X), np.ndarray) and m.reads_records and m.releases_numbers]


class Hidden:
    """A container of another library, which says its length only when it is read."""

    def __init__(self, values):
        self._values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._values, dtype)


class TestPlan:
    def test_it_is_made_once_for_the_last_n(self):
        mechanism = copy.copy(MEDIAN)
        plan = mechanism.plan(10)
        assert mechanism.plan(np.int32(10)) is plan
        assert mechanism.plan(11) is not plan
        assert mechanism.plan(11).n == 11
        for made in (copy.copy(mechanism), pickle.loads(pickle.dumps(mechanism))):
            assert made == mechanism
            assert "_recent" not in vars(made)

    @every("mechanism", [m for m in MECHANISMS if m.hides_n or not m.releases_numbers])
    def test_a_private_number_is_never_kept(self, mechanism):
        mechanism = copy.copy(mechanism)
        mechanism(shaped(mechanism, X))
        if mechanism.hides_n:
            assert vars(mechanism)["_recent"].n is None

    def test_the_number_of_records_with_keys_of_a_domain_is_private(self):
        keys = ["a", "b", "c", "c"]
        mechanism = dpf.PartitionSelection(1.0, neighbors="replace-one", domain=["a", "b"])
        mechanism(keys)
        mechanism.start().read([keys]).release()
        assert vars(mechanism)["_recent"].n is None

    @every("mechanism", MECHANISMS)
    def test_a_call_a_draw_and_several_draws_are_those_of_the_law(self, mechanism):
        x = shaped(mechanism, X)
        values = mechanism.values_of(x)
        plan = mechanism.plan(mechanism.number_of(values))
        same_plan, summary = plan.read(values)
        assert same_plan.n == plan.n
        release = mechanism(x, rng=PCG64(3))
        assert same(plan.draw(values, PCG64(3)), release)
        assert same(plan.draw_from(summary, PCG64(3)), release)
        several, expected = plan.draws(summary, (2, 3), PCG64(4)), mechanism.release(x, size=(2, 3), rng=PCG64(4))
        assert str(several) == str(expected)
        assert same(mechanism.plan().draw(values, PCG64(3)), release)

    @every("mechanism", ARRAYS)
    def test_groups_are_drawn_one_after_another(self, mechanism):
        x, together = shaped(mechanism, X), getattr(mechanism, "on_pairs", False)
        ends = np.array([0, 100] if together else [0, 60, 100])  # noise on pairs is drawn for all groups at once
        groups = Groups(len(ends) - 1, offsets=ends)
        drawn = mechanism.plan().groups(x, groups)(0, groups.count, source := PCG64(5))
        again = PCG64(5)
        for i in range(groups.count):
            values = mechanism.values_of(x[ends[i] : ends[i + 1]])
            expected = mechanism.plan(mechanism.number_of(values)).draw(values, again)
            assert drawn is None or same(
                np.nan if expected is None else expected, drawn[i] if drawn.ndim > 1 else float(drawn[i])
            )
        assert source.random_raw() == again.random_raw()


class TestRefusals:
    """A number of records that is known and not supported costs nothing."""

    WIDE = dpf.GlobalSensitivity(Sum(), grid=Grid(0, 2.0**52 - 2, step=1), epsilon=0.25)

    @pytest.mark.parametrize(
        "x", [[], np.empty(0), dpf.Chunks([np.empty(0), np.empty(0)]), dpf.Counted([], [])], ids=repr
    )
    def test_no_records(self, x):
        with Ledger(1.0) as ledger, pytest.raises(ValueError, match="x is empty"):
            MEDIAN(x)
        assert ledger.charges == ()
        with Ledger(1.0) as ledger, pytest.raises(ValueError, match="x is empty"):
            MEDIAN.release(x, size=3)
        assert ledger.charges == ()

    def test_too_many_records(self):
        with Ledger(1.0) as ledger, pytest.raises(ValueError, match="records times grid points must be below"):
            self.WIDE(np.ones(2**12))
        assert ledger.charges == ()

    def test_a_number_that_is_not_known_before_is_refused_later(self):
        with Ledger(1.0) as ledger, pytest.raises(ValueError, match="x is empty"):
            MEDIAN(Hidden([]))
        assert len(ledger.charges) == 1

    def test_a_private_number_is_never_refused(self):
        with Ledger(1.0, neighbors="add-remove"):
            for statistic in (Count(), Sum(), Mean()):
                made = dpf.GlobalSensitivity(statistic, grid=GRID, epsilon=0.25, neighbors="add-remove")
                assert np.isfinite(made([]))


class Always(int):
    """An integer that calls itself equal to every other."""

    __hash__ = int.__hash__

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False


def test_the_number_is_a_plain_integer():
    plan = MEDIAN.plan(Always(1000))
    assert type(plan.n) is int
    assert MEDIAN.plan(3).n == 3


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("known", [True, False])
def test_pairs_of_rows_and_labels_are_counted_by_their_rows(pieces, known):
    """A pair has two entries, but as many records as rows: a plan for two would charge a hundredth of what is due."""
    x, y = np.random.default_rng(0).normal(size=(2, 400))
    made = list(zip(np.array_split(x[:, None], pieces), np.array_split(y, pieces), strict=True))
    line = dpf.TheilSen(dpf.Grid(-16, 16, step=0.25), dpf.Grid(-16, 16, step=0.25), epsilon=1.0)
    chunks = dpf.Chunks(made if known else lambda: iter(made))
    assert line(chunks, rng=np.random.PCG64(1)).tolist() == line((x, y), rng=np.random.PCG64(1)).tolist()
    assert line.plan(2).read(line.values_of((x, y)))[0].n == 400
    model = dpf.SampleAndAggregate(dpf.families.LinearRegression(1), bounds=(-4, 4), epsilon=5.0, blocks=4)
    by_pair = model((x[:, None], y), rng=np.random.PCG64(1))
    assert np.array_equal(model(chunks, rng=np.random.PCG64(1)), by_pair)


def test_a_mechanism_that_is_not_frozen_is_charged_what_it_costs_now():
    @dataclass
    class Changing(dpf.Mechanism):
        epsilon: float

        @property
        def privacy(self):
            return dpf.Privacy(self.epsilon)

        def reading(self):
            return MEDIAN.reading()

        def law_of(self, summary):
            return MEDIAN.law_of(summary)

    changing = Changing(1.0)
    with dpf.Ledger(10.0) as ledger:
        changing(X)
        changing.epsilon = 5.0
        changing(X)
    assert ledger.spent.epsilon == 6.0


@pytest.mark.parametrize(
    "release",
    [
        lambda: dpf.select([], epsilon=1.0),
        lambda: MEDIAN(range(0)),
        lambda: dpf.linear_regression(np.zeros((0, 2)), np.zeros(0), radius=1.0, label_bound=1.0, epsilon=1.0),
    ],
    ids=["scores", "range", "pair"],
)
def test_a_number_of_records_that_is_known_and_wrong_costs_nothing(release):
    with dpf.Ledger(10.0) as ledger, pytest.raises(ValueError, match=r"empty|at least|record"):
        release()
    assert ledger.charges == ()
