"""T45: Answers above a threshold: the law of all answers for all neighbours, against slightly wrong ones; states."""

import copy
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import AboveThreshold
from dpfast.laws import DiscreteLaplace
from dpfast.running import threshold as module
from dpfast.running.files import StateFile
from tests.cases import every
from tests.reference import threshold as slow
from tests.statistical import chi_square_rejects

CASES = list(itertools.product((1, 2), (False, True)))


def changes(given, length, monotone):
    """The changes of values by at most 1 that can make a sequence of answers most, and least, likely.

    Each no is more likely for a smaller value, each yes for a larger one.
    """
    toward = [2 * answer - 1 for answer in given] + [0] * (length - len(given))
    if not monotone:
        return [toward, [-change for change in toward]]
    up = [max(change, 0) for change in toward]
    down = [min(change, 0) for change in toward]
    return [up, down, [-change for change in up], [-change for change in down]]


def loss(values, answers, monotone, scales, law=slow.law):
    """The greatest privacy loss of all neighbours of a list of values."""
    here = law(values, 0, answers, scales)
    found = 0.0
    for given, probability in here.items():
        for change in changes(given, len(values), monotone):
            moved = [a + b for a, b in zip(values, change, strict=True)]
            there = law(moved, 0, answers, scales).get(given, 0.0)
            found = max(found, abs(math.log(probability / there)) if there else math.inf)
    return found


class TestPrivacy:
    @every("answers, monotone", CASES)
    def test_all_short_lists(self, answers, monotone):
        """All pairs of lists of three values, without the argument of `changes`."""
        scales = AboveThreshold(0, epsilon=1.5, answers=answers, monotone=monotone).scales
        laws = {q: slow.law(q, 0, answers, scales) for q in itertools.product(range(-2, 3), repeat=3)}
        for q in itertools.product(range(-1, 2), repeat=3):
            assert math.isclose(sum(laws[q].values()), 1, rel_tol=1e-12)
            most = 0.0
            for change in itertools.product((0, 1) if monotone else (-1, 0, 1), repeat=3):
                other = laws[tuple(a + b for a, b in zip(q, change, strict=True))]
                most = max(most, *(abs(math.log(laws[q][given] / other[given])) for given in other))
            assert most <= 1.5 + 1e-12
            if not monotone:
                assert math.isclose(most, loss(q, answers, monotone, scales), rel_tol=1e-9)

    @every("answers, monotone", CASES)
    def test_lists_of_eight(self, answers, monotone):
        """The bound is nearly attained, so that noise of a twentieth less is rejected."""
        threshold, of_value = AboveThreshold(0, epsilon=1.5, answers=answers, monotone=monotone).scales
        rng = np.random.default_rng(1)
        lists = [[0] * 8, [5] * 8, *rng.integers(-3, 4, (1, 8)).tolist()]
        found = max(loss(values, answers, monotone, (threshold, of_value)) for values in lists)
        assert 1.46 < found <= 1.5 + 1e-12
        for wrong in ((threshold * Fraction(9, 10), of_value), (threshold, of_value * Fraction(9, 10))):
            assert max(loss(values, answers, monotone, wrong) for values in lists[:2]) > 1.5 + 1e-3

    def test_controls(self):
        """Noise for monotone values where they are not, for fewer answers, and one noise for all values."""
        scales = AboveThreshold(0, epsilon=1.5, answers=1, monotone=True).scales
        assert loss([5] * 8, 1, False, scales) > 1.7
        scales = AboveThreshold(0, epsilon=1.5, answers=1).scales
        assert loss([5] * 8, 2, False, scales) > 1.7
        assert loss([0, 1], 1, False, scales, slow.law_of_one_noise) == math.inf

    @every("answers, monotone, epsilon", [(1, False, 1.0), (2, True, 0.3), (50, False, 7.5)])
    def test_epsilon_is_split_exactly(self, answers, monotone, epsilon):
        threshold, value = AboveThreshold(0, epsilon=epsilon, answers=answers, monotone=monotone).scales
        times = answers * (1 if monotone else 2)
        assert 1 / threshold + times / value == Fraction(epsilon)
        assert math.isclose(threshold * times / value, times ** (2 / 3), rel_tol=1e-4)


class TestAnswers:
    def test_law(self):
        mechanism = AboveThreshold(50, epsilon=2.0, answers=2)
        values, trials, rng = (49, 52, 50), 10_000, PCG64(1)
        counts = dict.fromkeys(slow.law(values, 50, 2, mechanism.scales), 0)
        for _ in range(trials):
            state, given = mechanism.start(rng=rng), []
            for value in values:
                if not state.closed:
                    given.append(int(state(value)))
            counts[tuple(given)] += 1
        law = slow.law(values, 50, 2, mechanism.scales)
        assert not chi_square_rejects(list(counts.values()), list(law.values()))
        for factor in (0.8, 1.25):
            wrong = slow.law(values, 50, 2, [float(scale) * factor for scale in mechanism.scales])
            assert chi_square_rejects([trials * p for p in law.values()], wrong.values())

    def test_it_closes(self):
        state = AboveThreshold(0, epsilon=1.0, answers=2).start()
        assert [state(10**6), state(-(10**6)), state(10**6)] == [True, False, True]
        assert (state.closed, state.positive) == (True, 2)
        with pytest.raises(ValueError, match="all 2 answers by yes are given"):
            state(0)

    @pytest.mark.filterwarnings("ignore:with this epsilon")
    @every(
        "value, whole",
        [
            (3, 3),
            (True, 1),
            (np.int8(-3), -3),
            (np.uint64(2**64 - 1), 2**61),
            (2.999, 2),
            (-0.5, -1),
            (np.float32(7.25), 7),
            (math.nan, -(2**61)),
            (math.inf, 2**61),
            (-math.inf, -(2**61)),
            (10**30, 2**61),
            (-1e300, -(2**61)),
        ],
    )
    def test_values(self, value, whole, monkeypatch):
        monkeypatch.setattr(module, "unbounded", lambda noise, source: 0)
        if abs(whole) < 2**61:
            assert AboveThreshold(whole, epsilon=1.0).start()(value)
            assert not AboveThreshold(whole + 1, epsilon=1.0).start()(value)
        assert AboveThreshold(0, epsilon=1.0).start()(value) is (whole >= 0)

    @every("value", ["3", None, np.array([1]), Fraction(1, 2), np.longdouble(1)])
    def test_other_types(self, value):
        state = AboveThreshold(0, epsilon=1.0).start()
        with pytest.raises(TypeError, match="a value must be an int or a float"):
            state(value)

    def test_saturated_noise_goes_on(self, monkeypatch):
        class Saturated(DiscreteLaplace):
            def draw(self, source):
                return -(2**63 - 1)

        drawn, noise = iter([2**63 - 1, 5]), Saturated(Fraction(1))
        monkeypatch.setattr(module._samplers, "one_geometric", lambda source, scale: next(drawn))
        assert module.unbounded(noise, None) == -(2 * (2**63 - 1) + 5)

    def test_errors(self):
        mechanism, rng = AboveThreshold(100, epsilon=1.0), PCG64(2)
        error, wrong = mechanism.error(10, confidence=0.9), 0
        for _ in range(1000):
            state = mechanism.start(rng=rng)
            early = any(state(100 - error) for _ in range(9))
            wrong += early or not state(100 + error)
        assert wrong < 150


class TestStates:
    def test_one_charge(self):
        mechanism = AboveThreshold(0, epsilon=0.5, answers=3)
        with dpf.Ledger(0.5) as ledger:
            state = mechanism.start()
            for _ in range(3):
                state(10**6)
            with pytest.raises(dpf.BudgetError, match="does not fit"):
                mechanism.start()
        assert [charge.times for charge in ledger.charges] == [1]
        assert ledger.spent == dpf.Privacy(0.5)

    def test_copies_are_refused(self):
        state = AboveThreshold(0, epsilon=0.5).start()
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                attempt(state)
        mechanism = state.mechanism
        assert pickle.loads(pickle.dumps(mechanism)) == mechanism
        assert hash(copy.copy(mechanism)) == hash(mechanism)

    def test_guarantee(self):
        mechanism = AboveThreshold(0, epsilon=0.5, neighbors="add-remove")
        assert mechanism.privacy == mechanism.privacy_profile.privacy == dpf.Privacy(0.5, neighbors="add-remove")
        assert mechanism.privacy_map(2).epsilon == 1.0

    @every(
        "options, error, match",
        [
            ({"threshold": 0.5}, ValueError, "threshold must be a whole number"),
            ({"threshold": 2**62}, ValueError, "threshold must be a whole number"),
            ({"threshold": "many"}, (TypeError, ValueError), "threshold"),
            ({"epsilon": 0.0}, ValueError, "epsilon must be positive"),
            ({"epsilon": 1e-20}, ValueError, "needs noise of more"),
            ({"answers": 0}, ValueError, "answers must be at least 1"),
            ({"answers": 10**400}, ValueError, "needs noise of more"),
            ({"monotone": 3}, TypeError, "monotone"),
            ({"neighbors": "local"}, ValueError, "neighbors"),
        ],
        ids=str,
    )
    def test_bad_parameters(self, options, error, match):
        given = {"threshold": 3, "epsilon": 1.0, **options}
        with pytest.raises(error, match=match):
            AboveThreshold(given.pop("threshold"), **given)


def test_a_ledger_that_did_not_pay_refuses_the_answers():
    alarm = dpf.AboveThreshold(100, epsilon=1.0)
    state = alarm.start()
    with dpf.Ledger(9) as ledger:
        with pytest.raises(dpf.BudgetError, match="not charged to this ledger"):
            state(3)
        assert isinstance(alarm.start()(3), bool)
        assert isinstance(state(3), bool)  # of the same parameters: one of them is paid
    assert len(ledger.charges) == 1


def test_a_closed_state_gives_no_answers(tmp_path):
    """Not even by the kind of outcome: a no that answers, and a yes that raises, would be free."""
    for options in ({}, {"path": tmp_path / "state"}):
        state = AboveThreshold(1000, epsilon=1.0).start(**options)
        state.close()
        for value in (5000, 0):
            with pytest.raises(ValueError, match="closed"):
                state(value)
        assert state.positive == 0


def test_an_interrupted_answer_ends_the_state(tmp_path, monkeypatch):
    """The file counts the answer, and goes on with those that are left."""
    mechanism = AboveThreshold(0, epsilon=1.0, answers=3)
    state, note = mechanism.start(path=tmp_path / "state"), StateFile.note

    def interrupt(*args):
        note(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StateFile, "note", interrupt)
        with pytest.raises(KeyboardInterrupt):
            state(10**6)
    with pytest.raises(ValueError, match="interrupted"):
        state(10**6)
    again = mechanism.start(path=tmp_path / "state")
    assert [again.positive, again(10**6), again(10**6), again.closed] == [1, True, True, True]
