"""Joint quantiles from narrow windows: the outputs, words and odds of the whole chain, whatever is in doubt."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64
from numpy.testing import assert_array_equal

import dpfast as dpf
from dpfast._kernels._chain import Chain
from dpfast._kernels._narrow import NarrowChain
from tests.joint import stage
from tests.scripted import ScriptedBits

pytestmark = pytest.mark.kernel

N, M, LAST = 2000, 40, 2**20 - 1
RANKS = np.arange(1, M + 1) * N // (M + 1)


def records(kind):
    rng = np.random.default_rng(5)
    return np.sort(
        {
            "uniform": rng.integers(0, LAST, N),
            "ties": rng.integers(0, 400, N) * 2000,
            "one point": np.full(N, LAST // 2),
            "far apart": np.repeat(rng.integers(0, LAST, 10), N // 10),
        }[kind]
    )


def second_stage(kind, epsilon, seed=0, shift=0):
    """The second stage of 40 targets, every seventh of which is pinned near the record of its rank."""
    data, rng = records(kind), np.random.default_rng(seed)
    coarse = range(6, M, 7)
    at = np.clip(RANKS[coarse] - 1 + rng.integers(-shift, shift + 1, len(coarse)), 0, N - 1)
    pins = dict(zip(coarse, np.sort(data[at] + rng.integers(0, 2, len(coarse))).tolist(), strict=True))
    return stage(data, RANKS, LAST, epsilon, N, pins)


def narrow(law, near, make_whole=None):
    make_whole = make_whole or partial(Chain, *law._arguments)
    return NarrowChain(make_whole, near, law._log_prefixes(), *law._arguments)


@given(
    st.sampled_from(["uniform", "ties", "far apart"]),
    st.sampled_from([0.3, 1.0, 4.0]),
    st.sampled_from([60, 150, 400, 1000]),
    st.integers(0, 2**32),
    st.sampled_from([0, 3, 50]),
)
def test_the_output_the_words_and_the_odds_of_the_whole_chain(kind, epsilon, near, seed, shift):
    law = second_stage(kind, epsilon, seed, shift)
    if not law._holds_pins(near) or not (chain := narrow(law, near)).is_bounded:
        return
    whole, sources = law._fast.chain, [ScriptedBits(rest=PCG64(seed)) for _ in range(2)]
    for _ in range(3):
        o, other = chain.draw(sources[0]), whole.draw(sources[1])
        assert_array_equal(o, other)
        assert (chain.certain, sources[0].used) == (whole.certain, sources[1].used)
        assert chain.score(o) == whole.score(o)
    (odds, runs), (same, places) = chain.odds(), whole.odds()
    assert runs == places
    assert [weight for weight, _ in odds] == [weight for weight, _ in same]
    logs = [math.log(c.total) + c.exponent * math.log(2) for c in (chain, whole)]
    assert abs(logs[0] - logs[1]) < chain.margin


def places_of_words(odds, runs):
    """Which word of a draw decides each choice: a run of r targets takes r words of its own."""
    places, word, lengths = [0], 1, iter(length for _, _, length in runs)
    while len(places) < len(odds):
        weight, (_, of_gap) = odds[len(places)]  # the kind
        choices = 3 if weight == of_gap else 2
        places += range(word, word + choices - 1)
        word += choices - 1
        word += next(lengths) if choices == 3 else 0
        places.append(word)
        word += 1
    return places


@pytest.mark.parametrize(("kind", "near"), [("uniform", 400), ("ties", 1000)])
def test_a_doubt_at_any_choice_goes_on_in_the_whole_chain(kind, near):
    """A word next to the edge of one choice of the whole chain, for each choice."""
    law = second_stage(kind, 1.0)
    whole, free = law._fast.chain, ScriptedBits(rest=PCG64(3))
    whole.draw(free)
    odds, runs = whole.odds()
    words = PCG64(3).random_raw(free.used)
    for place, (weight, weights) in zip(places_of_words(odds, runs), odds, strict=True):
        below = math.fsum(weights[: np.flatnonzero(weights == weight)[0]])
        script = words.copy()
        script[place] = min(math.ceil(below / math.fsum(weights) * 2**64) + 1, 2**64 - 1)
        made, sources = [], [ScriptedBits(script, rest=PCG64(4)) for _ in range(2)]
        chain = narrow(law, near, lambda made=made: made.append(Chain(*law._arguments)) or made[0])
        assert chain.is_bounded
        o, other = chain.draw(sources[0]), whole.draw(sources[1])
        assert_array_equal(o, other)
        assert len(made) == 1
        assert (chain.certain, sources[0].used) == (whole.certain, sources[1].used)
        assert chain.score(o) == whole.score(o)
        again, same = chain.odds(), whole.odds()
        assert again[1] == same[1]
        assert [weight for weight, _ in again[0]] == [weight for weight, _ in same[0]]


@pytest.mark.parametrize("kind", ["uniform", "ties"])
def test_narrow_windows_without_bounds_are_rejected(kind):
    """The control: narrower windows, without doubts, give other outputs than the whole chain."""
    law, near = second_stage(kind, 1.0, shift=3), 20
    codes, bases, ranks, firsts, lasts, lowers, uppers = law._windows
    windows = np.maximum(ranks - near, firsts), np.minimum(ranks + near, lasts)
    cut = Chain(codes, bases, ranks, *windows, lowers, uppers, 0.25, N)
    assert not narrow(law, near).is_bounded
    outputs = [(cut.draw(PCG64(seed)), law._fast.chain.draw(PCG64(seed))) for seed in range(20)]
    assert any(not np.array_equal(*pair) for pair in outputs)


def mechanism(n, m=99, epsilon=1.0):
    grid = dpf.Grid(0, 1e6)
    return dpf.Quantiles(np.arange(1, m + 1) / (m + 1), grid=grid, epsilon=epsilon)


class TestStage:
    def test_a_release_is_that_of_exact_arithmetic(self, monkeypatch):
        """The same words and outputs with narrow windows, without them, and in exact arithmetic."""
        x = np.random.default_rng(1).lognormal(10.5, 0.6, 100_000)
        law = mechanism(len(x)).law(x)
        pinned = law._first.draw(PCG64(2))
        outputs, used = [], []
        for exact, narrow in ((False, True), (False, False), (True, True)):
            stage = law._second(pinned)
            if not narrow:
                stage.__dict__["_narrow"] = None
            assert (stage._narrow is not None) == narrow
            source = ScriptedBits(rest=PCG64(7))
            outputs.append(stage.draw(source, exact=exact))
            used.append(source.used)
        assert_array_equal(outputs[0], outputs[1])
        assert_array_equal(outputs[0], outputs[2])
        assert len(set(used)) == 1

    @pytest.mark.parametrize("spread", [0.0, 1000.0])
    def test_equal_records_take_the_whole_chain(self, spread):
        x = np.random.default_rng(1).uniform(-spread, spread, 20_000).round(-3) + 5e5
        law = mechanism(len(x)).law(x)
        assert law._second(law._first.draw(PCG64(2)))._narrow is None

    def test_one_stage_has_no_narrow_windows(self):
        x = np.random.default_rng(1).uniform(0, 1e6, 1000)
        assert mechanism(len(x), 3).law(x)._first._narrow is None
