"""Streams and states that a release refuses, without a charge."""

import pickle

import numpy as np
import pytest

import dpfast as dpf
from dpfast.densities import PerturbedHistogram
from dpfast.statistics import InterquartileRange, Median, TrimmedMean
from dpfast.streaming import State
from dpfast.streaming.wire import fingerprint
from tests.cases import every
from tests.streams import ALL, DEFAULT, FINE, INTEGERS, PCG

pytestmark = pytest.mark.kernel


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


@every("grid", [pytest.param(DEFAULT, id="two"), pytest.param(FINE, id="three")])
@every("statistic", [Median(), TrimmedMean(0.1), InterquartileRange()], ids=str)
def test_other_records_of_the_same_number_raise_no_error(statistic, grid):
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


def test_a_bad_rng_is_rejected_before_reading_the_data():
    def read():
        raise AssertionError("the data were read")

    for mechanism in (
        dpf.InverseSensitivity(Median(), grid=DEFAULT, epsilon=1.0),
        dpf.NestedBoxes(grid=DEFAULT, epsilon=1.0),
    ):
        with pytest.raises(TypeError, match="rng"):
            mechanism(dpf.Chunks(read), rng=3)


def test_a_release_with_bad_parameters_is_not_charged():
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


def test_fingerprints_of_different_parameters_differ():
    assert len({fingerprint(mechanism) for mechanism in ALL}) == len(set(ALL))
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
