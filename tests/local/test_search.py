"""QuantileSearch: privacy of the transcript, the array as the conversation, tests, brackets, accuracy, the choice."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64, Generator
from scipy.stats import norm

from dpfast import local
from dpfast._kernels import _descent
from dpfast.core.coin import Coin
from tests.cases import every
from tests.local.test_location import ScriptedRaw
from tests.reference import descent as reference
from tests.statistical import exceeds

BOUNDS = (-1.0, 3.0)


def search(epsilon=1.0, bounds=BOUNDS, **options):
    return local.QuantileSearch(bounds=bounds, epsilon=epsilon, **options)


# ---- privacy ----


class RoundedUp(local.QuantileSearch):
    """A coin that is rounded away from privacy."""

    @property
    def coin(self):
        made = super().coin
        return Coin(made.threshold + 1, made.odds)


def worst_ratio(protocol):
    worst = Fraction(0)
    for others in ((0.0,) * 4, (3.0,) * 4, (-1.0, 1.0, 2.0, 1.5)):
        for place in range(5):
            laws = [
                reference.transcript_law(protocol, (*others[:place], own, *others[place:]))
                for own in (-1.0, 1.0, 1.5, 2.9)
            ]
            assert all(sum(law.values()) == 1 for law in laws)
            worst = max(worst, *(a[z] / b[z] for a, b in itertools.permutations(laws, 2) for z in a))
    return worst


@pytest.mark.parametrize("options", [{}, {"q": 0.9}, {"step": 2.0}, {"most": 1}, {"most": 0}])
def test_privacy_of_the_transcript_by_enumeration(options):
    """With epsilon = 9 a test decides after four reports, so that thetas move; the wrong coin is rejected."""
    protocol = search(9.0, **options)
    ratio = worst_ratio(protocol)
    assert ratio == protocol.coin.ratio
    assert not exceeds(ratio, 9.0)
    if not options:
        assert exceeds(worst_ratio(RoundedUp(bounds=BOUNDS, epsilon=9.0)), 9.0)


def test_control_the_true_side_in_one_transcript_of_two_questions():
    """A person who answers twice spends twice."""
    protocol = search(1.0)
    first, second = (protocol.probability(1.0, x) ** 2 for x in (0.0, 2.0))
    assert exceeds(first / second, 1.0)


# ---- the protocol ----


@every("options", [{}, {"q": 0.75}, {"step": 0.5}, {"most": 37}, {"bounds": (-1e6, 1e7)}])
def test_the_array_and_the_conversation_are_the_same(options):
    n, epsilon = 3000, 2.0
    x = np.random.default_rng(0).normal(1.0, 1.0, n)
    x[::7] = np.nan
    protocol = search(epsilon, **{"most": n // 2, **options})
    words = PCG64(3).random_raw(2 * n)
    threshold = protocol.coin.threshold
    state, kept = protocol.begin(), None
    for i, value in enumerate(x):
        if state.phase == "descent" and kept is None:
            kept, begun = reference.coins(threshold, n - i, iter(words[n:].tolist())), i
        keep = words[i] < threshold if kept is None else kept[i - begun]
        state = protocol.update(state, protocol.respond(state.theta, value, rng=ScriptedRaw(0 if keep else -1)))
    assert protocol(x, rng=ScriptedRaw(*words.tolist())) == protocol.estimate(state)
    assert state.phase == "descent"
    assert (state.users, state.asked) == (n, n - begun)


@every("first, count", [(1, 3), (1, 10_000), (8_000, 500), (8_192, 7), (10_000, 40)])
def test_pushes_are_those_of_the_kernel(first, count):
    """The powers that are kept give the same bits as the kernel, for every scale."""
    protocol = search(1.0)
    state, out = protocol.begin()._replace(lower=0.1, upper=1.9), np.empty(count)
    _descent.fill_pushes(first, 1.2 * (1.9 - 0.1), 2 / 3, out)
    np.testing.assert_array_equal(protocol._pushes(first, count, state), out)


@every("options", [{}, {"q": 0.9}, {"most": 0}, {"most": 5}, {"epsilon": 0.1}], ids=str)
def test_runs_side_by_side_are_runs_one_by_one(options):
    """The same bits and as many words, also where a search does not end, or ends at the last record."""
    protocol = search(**options)
    for n in (1, 2, 50, 700, 9000):
        x = np.random.default_rng(n).normal(0.5, 1, n)
        x[::50] = np.nan
        together, alone = PCG64(3), PCG64(3)
        released = protocol.release(x, size=19, rng=together)
        assert released.tolist() == [protocol.release(x, rng=alone) for _ in range(19)]
        assert together.random_raw() == alone.random_raw()


def test_tests_are_rarely_wrong():
    """A walk at the median decides for each side at most e^-4 of the time, as Ville's inequality says."""
    protocol, source = search(1.0), np.random.default_rng(1)
    ones = np.cumsum(source.random((4_000, 500)) < 0.5, axis=1)
    decisions = protocol._decision(ones, np.arange(1, 501) - ones)
    for side in (1, -1):
        assert (decisions == side).any(axis=1).mean() < math.exp(-4) + 5 * math.exp(-2) / math.sqrt(4_000)
    keep = float(protocol.coin.probability)
    for p, side in ((keep, 1), (1 - keep, -1)):
        ones = np.cumsum(source.random((2_000, protocol.limit)) < p, axis=1)
        decisions = protocol._decision(ones, np.arange(1, protocol.limit + 1) - ones)
        assert (decisions == side).any(axis=1).mean() > 0.98
        assert (decisions == -side).any(axis=1).mean() < 1e-3


def test_a_wrong_bracket_is_left():
    """A run of decisions towards an end of the bracket leads to a test of that end, and beyond it."""
    protocol, source = search(4.0, (0.0, 1000.0)), PCG64(1)
    state = protocol.begin()._replace(lower=0.0, upper=125.0, theta=62.5)
    for _ in range(400):
        state = protocol.update(state, protocol.respond(state.theta, 700.0, rng=source))
    assert state.lower <= 700 <= state.upper


def test_a_narrow_bracket_is_widened():
    """Tests of the ends double a bracket in which the numbers are spread evenly, and move one beside the median."""
    source = np.random.default_rng(1)
    for lower, upper in ((499.0, 501.0), (540.0, 541.0), (450.0, 460.0)):
        protocol = search(4.0, (0.0, 1000.0))
        state = protocol.begin()._replace(lower=lower, upper=upper, phase="upper", theta=upper)
        while state.phase != "descent":
            report = protocol.respond(state.theta, source.normal(500, 100), rng=PCG64(state.users))
            state = protocol.update(state, report)
        assert state.lower < 500 < state.upper
        assert 50 < state.upper - state.lower < 800
        assert state.users < 1000


def test_impossible_reports_are_counted_only():
    protocol = search()
    state = protocol.begin()
    for report in (2, -1, 0.5, math.nan, "1", None):
        state = protocol.update(state, report)
    assert state == protocol.begin()._replace(refused=6)


@every("value", [0.0, 1.0, 3.0, -1.0, math.nan, math.inf])
@every("step", [None, 0.1])
def test_equal_numbers(value, step):
    found = search(2.0, step=step)(np.full(5000, value), rng=PCG64(1))
    assert found == pytest.approx(0.0 if math.isnan(value) else min(max(value, -1.0), 3.0), abs=0.2)


def test_the_narrowest_bounds():
    survey = local.QuantileSearch(bounds=(0.0, 5e-324), epsilon=1.0)
    assert survey(np.zeros(100), rng=PCG64(1)) in (0.0, 5e-324)


# ---- accuracy ----


@pytest.mark.parametrize(("q", "n", "limit"), [(0.5, 5000, 1.5), (0.5, 50_000, 1.3), (0.9, 50_000, 1.8)])
def test_wide_bounds_cost_little(q, n, limit):
    """Bounds 275 and 1e6 standard deviations wide: near the error of an oracle that starts at the quantile."""
    source = Generator(PCG64(1))
    target, density = norm.ppf(q), norm.pdf(norm.ppf(q))
    for width in (275, 1e6):
        protocol = search(1.0, (-0.3 * width, 0.7 * width), q=q)
        oracle = protocol.error(10**12, density=density, confidence=0.6827) * math.sqrt(1e12 / n)
        errors = [protocol(source.standard_normal(n), rng=source) - target for _ in range(25)]
        assert math.sqrt(np.mean(np.square(errors))) < limit * oracle * (1 + 4 / math.sqrt(50))
        descent = local.MedianDescent(bounds=protocol.bounds, epsilon=1.0)
        if q == 0.5 and n == 5000:
            lost = [descent(source.standard_normal(n), rng=source) for _ in range(25)]
            assert np.mean(np.square(lost)) > 10 * np.mean(np.square(errors))


# ---- the choice ----


def test_the_method_depends_on_public_numbers_only():
    source = PCG64(1)
    x = np.random.default_rng(0).normal(size=2000)
    for bounds, density, expected in (
        ((-2, 3), 0.4, "descent"),
        ((-100, 175), 0.4, "search"),
        ((-2, 3), None, "descent"),
    ):
        chosen = local.median(x, bounds=bounds, epsilon=2.0, density=density, rng=PCG64(1))
        assert chosen == local.median(x, bounds=bounds, epsilon=2.0, method=expected, rng=PCG64(1))
    many = np.tile(x, 10)
    assert local.median(many, bounds=(-9, 9), epsilon=1.0, rng=PCG64(2)) == local.median(
        many, bounds=(-9, 9), epsilon=1.0, method="search", rng=PCG64(2)
    )
    assert local.median(x, bounds=(-9, 9), epsilon=2.0, steps="minimax", rng=source) is not None
    with pytest.raises(ValueError, match="parameters of method='descent'"):
        local.median(x, bounds=(-9, 9), epsilon=2.0, method="search", burn_in=10)


# ---- parameters ----


@every(
    "options",
    [
        {"q": 0.0},
        {"q": 1.0},
        {"q": math.nan},
        {"step": 0.0},
        {"most": -1},
        {"epsilon": 0.0},
        {"bounds": (1.0, 1.0)},
        {"bounds": (-1e308, 7e307)},
    ],
)
def test_bad_parameters(options):
    with pytest.raises(ValueError, match=r"must|overflow"):
        search(**options)


def test_protocols_are_values():
    assert search() == search(1.0, [-1, 3]) != search(q=0.4)
    assert pickle.loads(pickle.dumps(search())) == search()
    x = np.arange(100.0)
    assert search().release(x, size=(2, 3), rng=PCG64(1)).shape == (2, 3)
    assert search().release(x, size=(), rng=PCG64(1)).shape == ()
