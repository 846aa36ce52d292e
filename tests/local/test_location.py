"""Local medians and means: one exact bit, the kernel as the protocol, acceptance tables, privacy by enumeration."""

import itertools
import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64, Generator
from scipy.stats import norm

from dpfast import audit, local, theory
from dpfast._kernels import _descent
from dpfast.core.coin import Coin, coin
from tests.reference import descent as reference
from tests.scripted import ScriptedBits
from tests.statistical import ALPHA

pytestmark = pytest.mark.kernel

BOUNDS = (-1.0, 3.0)


def descend(source, threshold, x, pushes, theta, bounds=BOUNDS, missing=0.0, lean=0.0):
    theta, total = np.array(theta, float), np.zeros(len(theta))
    x, pushes = np.asarray(x, float), np.asarray(pushes, float)
    _descent.descend(source, threshold, x, pushes, lean, *bounds, missing, theta, total)
    return theta, total


# ---- the kernel ----


@pytest.mark.parametrize("runs", [1, 2, 3, 7])
@pytest.mark.parametrize("lean", [0.0, 0.375])
@pytest.mark.parametrize("epsilon", [2.0**-40, 0.7, 44.0])
def test_kernel_is_the_slow_twin(epsilon, runs, lean):
    rng, n = np.random.default_rng(runs), 400
    x, threshold = rng.choice([-1.0, 0.25, 0.5, 3.0], n), coin(epsilon).threshold
    words = PCG64(5).random_raw(n * runs)
    words[::50] |= np.uint64(threshold >> 48)  # open lanes now and then
    pushes = rng.choice([0.25, 0.5], n)
    theta, total = descend(ScriptedBits(words), threshold, x, pushes, [0.5] * runs, lean=lean)
    kept = np.reshape(reference.coins(threshold, n * runs, iter(words.tolist())), (n, runs))
    for r in range(runs):
        thetas = reference.descend(x, pushes, kept[:, r], *BOUNDS, 0.5, lean)
        assert theta[r] == thetas[-1]
        assert total[r] == sum(thetas[:-1])


def test_an_open_lane_takes_48_more_bits():
    threshold = coin(0.7).threshold
    top, rest = threshold >> 48, threshold & (2**48 - 1)
    for lane, further, keep in (
        (top - 1, [], True),
        (top + 1, [], False),
        (top, [rest - 1], True),
        (top, [rest], False),
        (top, [2**48 - 1], False),
        (0, [], True),
        (2**16 - 1, [], False),
    ):
        word = lane | 0xFFFF_FFFF_FFFF_0000 if lane != 2**16 - 1 else 2**64 - 1
        source = ScriptedBits([word, *(f << 16 for f in further)])
        theta, _ = descend(source, threshold, [3.0], [1.0], [0.0])
        assert theta[0] == (1.0 if keep else -1.0)
        assert source.used == 1 + len(further)


def test_the_law_of_the_coin_over_all_lanes():
    """P(keep) in units of 2**-64: every lane below the first 16 bits, and its share of the one that equals them."""
    threshold = coin(0.3).threshold
    lanes = np.arange(2**16, dtype=np.uint64)
    words = (lanes[::4] | lanes[1::4] << 16 | lanes[2::4] << 32 | lanes[3::4] << 48).tolist()
    for further, kept_open in ((0, 1), (2**64 - 1, 0)):
        theta, _ = descend(ScriptedBits([*words, further]), threshold, [3.0], [1.0], np.zeros(2**16))
        assert (theta == 1.0).sum() == (threshold >> 48) + kept_open
    assert (threshold >> 48 << 48) + (threshold & (2**48 - 1)) == threshold


@pytest.mark.parametrize("decay", [0.0, 0.5, 2 / 3, 1.0])
def test_pushes(decay):
    for first in (1, 100, 8190, 8200, 10**6 + 3, 2**40 + 5):
        out = np.empty(100)
        _descent.fill_pushes(first, 3.0, decay, out)
        expected = 3.0 * np.arange(first, first + 100, dtype=float) ** -decay
        np.testing.assert_allclose(out, expected, rtol=2.0**-43)
        single = np.empty(1)
        _descent.fill_pushes(first + 57, 3.0, decay, single)
        assert single[0] == out[57]


def test_a_tie_counts_as_above_for_zeros_of_either_sign():
    for value, bounds in itertools.product((0.0, -0.0), ((-1.0, 1.0), (-0.0, 1.0), (-1.0, -0.0))):
        for start in (0.0, -0.0):
            protocol = local.MedianDescent(bounds=bounds, epsilon=44.0, start=start, steps=(0.5, 0.0), burn_in=1)
            down = max(-0.5, bounds[0])
            assert protocol([value, value], rng=PCG64(1)) == down
            assert protocol.release([value, value], size=3, rng=PCG64(1)).tolist() == [down] * 3


# ---- the protocol ----

PROTOCOL = local.MedianDescent(bounds=BOUNDS, epsilon=0.7)


def test_the_array_and_the_conversation_are_the_same():
    x = np.random.default_rng(0).normal(1.0, 1.0, 3000)
    for options in ({}, {"burn_in": 700}, {"steps": "minimax", "start": 2.5}, {"steps": (0.1, 1.0)}):
        protocol = local.MedianDescent(bounds=BOUNDS, epsilon=0.7, **options)
        words = PCG64(3).random_raw(4000)
        threshold, burn_in = protocol.coin.threshold, protocol.burn_in
        kept = reference.coins(threshold, burn_in, iter(words[: burn_in // 4].tolist()))
        kept += reference.coins(threshold, 3000 - burn_in, iter(words[burn_in // 4 :].tolist()))
        state = protocol.begin()
        for value, keep in zip(x, kept, strict=True):
            state = protocol.update(state, protocol.respond(state.theta, value, rng=ScriptedRaw(0 if keep else -1)))
        assert protocol(x, rng=ScriptedRaw(*words.tolist())) == protocol.estimate(state)


class ScriptedRaw(PCG64):
    """A bit generator that numpy accepts, with the given words."""

    def __init__(self, *words):
        super().__init__(1)
        self._scripted = ScriptedBits([word % 2**64 for word in words])

    capsule = property(lambda self: self._scripted.capsule)
    lock = property(lambda self: self._scripted.lock)


def test_every_report_flips_both_ways_also_at_a_tie():
    for theta, x in ((0.5, 0.5), (0.5, 0.0), (0.5, 1.0), (3.0, math.inf), (-1.0, -math.inf), (0.0, math.nan)):
        truth = int(theta >= (0.0 if math.isnan(x) else min(max(x, -1.0), 3.0)))
        assert PROTOCOL.respond(theta, x, rng=ScriptedRaw(0)) == truth
        assert PROTOCOL.respond(theta, x, rng=ScriptedRaw(-1)) == 1 - truth
        assert PROTOCOL.probability(theta, x) == (PROTOCOL.coin.probability if truth else 1 - PROTOCOL.coin.probability)


def largest_ratio(law):
    """Over the transcripts of all datasets of three numbers, and all changes of one of them."""
    numbers = (-1.0, 1.0, 1.5, 3.0, math.nan)
    laws = {x: law(x) for x in itertools.product(numbers, repeat=3)}
    worst = Fraction(0)
    for x in laws:
        for i, value in itertools.product(range(3), numbers):
            y = (*x[:i], value, *x[i + 1 :])
            for z, p in laws[x].items():
                other = laws[y].get(z, Fraction(0))
                worst = max(worst, p / other if other else Fraction(10**9) if p else worst)
    return worst


def test_privacy_of_the_transcript_by_enumeration():
    ratio = largest_ratio(lambda x: reference.transcript_law(PROTOCOL, x))
    assert ratio == PROTOCOL.coin.ratio
    with mpmath.workdps(40):
        assert mpmath.mpf(ratio.numerator) / ratio.denominator <= mpmath.exp(mpmath.mpf(0.7))
    assert PROTOCOL.privacy.epsilon == 0.7
    assert PROTOCOL.privacy.neighbors == "local"


def test_the_sign_of_zero_is_refuted():
    """Control: numpy's sign(theta - x) is 0 at a tie, and so is then the report: other reports become impossible."""

    def law(x):
        theta, keep = 1.0, PROTOCOL.coin.probability
        g = int(np.sign(theta - (0.0 if math.isnan(x[0]) else x[0])))
        return {g: Fraction(1)} if g == 0 else {g: keep, -g: 1 - keep}

    assert largest_ratio(law) > PROTOCOL.coin.ratio


def test_a_coin_rounded_up_is_refuted():
    """Control: with the threshold above, and with truthful reports, the ratio exceeds e**epsilon."""
    e = Fraction(math.exp(0.7)) * (1 + Fraction(1, 2**50))
    assert PROTOCOL.coin.ratio < e
    up = Coin(PROTOCOL.coin.threshold + 2**16)
    assert up.ratio > e
    assert Coin(2**64 - 1).ratio > e


def test_black_box_audit():
    one = local.MedianDescent(bounds=BOUNDS, epsilon=1.0, start=0.0, burn_in=1)
    for x, y in (([-1.0, 0.0], [3.0, 0.0]), ([0.0, 0.0], [0.5, 0.0])):
        bound = audit.distinguish(one, x, y, trials=100_000, rng=PCG64(1))
        assert 0.9 < bound <= 1.0
    honest = local.MedianDescent(bounds=BOUNDS, epsilon=2.0, start=0.0, burn_in=1)
    assert audit.distinguish(honest, [-1.0, 0.0], [3.0, 0.0], trials=100_000, rng=PCG64(1)) > 1.0


# ---- estimates ----

LOGNORMAL = {
    # (epsilon, r): (gap, its error), for steps "minimax" and "averaging"
    (0.5, 4.0): ((0.00302, 18e-5), (0.00144, 10e-5)),
    (0.5, 16.0): ((0.04085, 86e-5), (0.00962, 39e-5)),
    (1.0, 1.5): ((0.00029, 2e-5), (0.00030, 2e-5)),
    (1.0, 16.0): ((0.01006, 20e-5), (0.00226, 8e-5)),
    (2.0, 4.0): ((0.00033, 2e-5), (0.00016, 1e-5)),
}
NAIVE = {(0.5, 4.0): 0.05142, (1.0, 4.0): 0.04263, (2.0, 4.0): 0.03156}


def lognormal_loss(theta):
    """E|X - theta| for a lognormal(0, 1) X."""
    a = np.log(np.maximum(theta, 1e-300))
    return theta * (2 * norm.cdf(a) - 1) + math.exp(0.5) * (1 - 2 * norm.cdf(a - 1))


def gaps(estimates):
    return lognormal_loss(np.asarray(estimates)) - lognormal_loss(1.0)


def close_to_table(values, expected, error):
    return abs(np.mean(values) - expected) <= 4 * math.hypot(np.std(values) / math.sqrt(len(values)), error)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "r"), LOGNORMAL)
def test_acceptance_of_the_median(epsilon, r):
    """Mechanisms-b 6, 400 repetitions on data of their own; all rows: bench/median_descent.py."""
    rng = np.random.default_rng(1)
    for steps, (expected, error) in zip(("minimax", "averaging"), LOGNORMAL[epsilon, r], strict=True):
        protocol = local.MedianDescent(bounds=(0.0, r), epsilon=epsilon, steps=steps, start=0.0)
        found = gaps([protocol(rng.lognormal(size=10_000), rng=rng) for _ in range(400)])
        assert close_to_table(found, expected, error)
        assert not close_to_table(2 * found, expected, error)
        if steps == "minimax":
            bound = protocol.gap_bound(10_000)
            assert found.mean() < bound
            assert bound == pytest.approx(theory.local_median_upper_bound(10_000, epsilon=epsilon, width=r), rel=0.01)


@pytest.mark.slow
def test_acceptance_of_the_naive_median():
    rng = np.random.default_rng(1)
    for (epsilon, r), expected in NAIVE.items():
        found = [
            local.median_naive(rng.lognormal(size=10_000), bounds=(0, r), epsilon=epsilon, rng=rng) for _ in range(50)
        ]
        assert close_to_table(gaps(found), expected, 108e-5)


@pytest.mark.slow
def test_the_promised_error_covers():
    """Mechanisms-b 6: n MSE about c**2 / (4 f**2); intervals of 95 % hold in about 95 % of the runs."""
    rng, n, density = np.random.default_rng(2), 10_000, norm.pdf(0)
    protocol = local.MedianDescent(bounds=(0.0, 1.5), epsilon=1.0, start=0.0)
    found = np.array([protocol(rng.lognormal(size=n), rng=rng) for _ in range(400)])
    limit = (protocol.coin.gain / (2 * density)) ** 2
    assert limit == pytest.approx(7.356, abs=1e-3)
    spread = n * np.mean((found - 1) ** 2)
    assert abs(spread - 7.66) < 4 * 7.66 * math.sqrt(2 / 400 + 2 / 400)
    for factor, holds in ((1.0, True), (0.8, False)):
        inside = np.mean(np.abs(found - 1) < factor * protocol.error(n, density=density))
        assert (abs(inside - 0.95) < 0.035) == holds
    with pytest.raises(ValueError, match="decay"):
        local.MedianDescent(bounds=(0, 1), epsilon=1.0, steps="minimax").error(n, density=1.0)


def test_repetitions_are_independent_runs():
    x = np.random.default_rng(0).lognormal(size=2000)
    many = local.median(x, bounds=(0, 4), epsilon=1.0, size=(20, 20), rng=PCG64(1))
    assert many.shape == (20, 20)
    assert len(np.unique(many)) == 400
    single = [local.median(x, bounds=(0, 4), epsilon=1.0, rng=Generator(PCG64(i))) for i in range(400)]
    difference = many.mean() - np.mean(single)
    assert abs(difference) < 5 * math.hypot(many.std(), np.std(single)) / 20
    assert 0.7 < many.std() / np.std(single) < 1.4


def test_bad_numbers_go_by_rule():
    odd = [math.nan, math.inf, -math.inf, 5e-324, -0.0, 1e300]
    even = [0.0, 3.0, -1.0, 5e-324, 0.0, 3.0]
    for make in (
        lambda x: local.median(x, bounds=BOUNDS, epsilon=1.0, rng=PCG64(1)),
        lambda x: local.median_naive(x, bounds=BOUNDS, epsilon=1.0, rng=PCG64(1)),
        lambda x: local.mean(x, bounds=BOUNDS, epsilon=1.0, rng=PCG64(1)),
        lambda x: local.mean(x, bounds=BOUNDS, epsilon=1.0, method="laplace", rng=PCG64(1)),
    ):
        assert make(odd) == make(even)
        assert type(make(odd)) is float
    above = local.MedianDescent(bounds=(2.0, 3.0), epsilon=1.0)
    assert above([math.nan] * 9, rng=PCG64(1)) == above([2.0] * 9, rng=PCG64(1))


@settings(max_examples=25)
@given(st.sampled_from(["?", "i1", "u8", "f2", "f4", ">f8", "f8"]), st.integers(1, 50), st.integers(1, 3))
def test_any_dtype_and_stride(kind, n, stride):
    x = np.random.default_rng(n).integers(0, 2, n * stride).astype(kind)[::stride]
    x.flags.writeable = False
    before = x.copy()
    for make in (local.median, local.mean, local.median_naive):
        found = make(x, bounds=(0, 2), epsilon=1.0, rng=PCG64(1))
        assert found == make(x.astype(float).tolist(), bounds=(0, 2), epsilon=1.0, rng=PCG64(1))
        assert 0 <= found <= 2
    np.testing.assert_array_equal(x, before)


def test_parameters():
    for options, error, message in (
        ({"bounds": (1, 1), "epsilon": 1.0}, ValueError, "bounds"),
        ({"bounds": (-1.7e308, 1.7e308), "epsilon": 1.0}, ValueError, "width"),
        ({"bounds": (0, math.inf), "epsilon": 1.0}, ValueError, "upper"),
        ({"bounds": (0, 1), "epsilon": 0.0}, ValueError, "epsilon"),
        ({"bounds": (0, 1), "epsilon": 1.0, "steps": "fast"}, ValueError, "steps"),
        ({"bounds": (0, 1), "epsilon": 1.0, "steps": (0.0, 0.6)}, ValueError, "scale of steps"),
        ({"bounds": (0, 1), "epsilon": 1.0, "steps": (1.0, 1.1)}, ValueError, "decay of steps"),
        ({"bounds": (0, 1), "epsilon": 1.0, "burn_in": -1}, ValueError, "burn_in"),
        ({"bounds": (0, 1), "epsilon": 1.0, "start": math.nan}, ValueError, "start"),
    ):
        with pytest.raises(error, match=message):
            local.median([0.5], **options)
    with pytest.raises(ValueError, match="burn_in"):
        local.median([0.5] * 3, bounds=(0, 1), epsilon=1.0, burn_in=3)
    for function in (local.median, local.median_naive, local.mean):
        with pytest.raises(ValueError, match="empty"):
            function([], bounds=(0, 1), epsilon=1.0)
        with pytest.raises(TypeError, match="rng"):
            function([0.5], bounds=(0, 1), epsilon=1.0, rng=7)
    with pytest.raises(TypeError, match="bounds and moment"):
        local.mean([0.5], epsilon=1.0)
    with pytest.raises(ValueError, match="moment"):
        local.mean([0.5], epsilon=1.0, moment=1.0)
    with pytest.raises(ValueError, match="method"):
        local.mean([0.5], epsilon=1.0, bounds=(0, 1), method="gauss")
    with pytest.raises(ValueError, match="truncation"):
        local.mean([0.5], epsilon=1.0, moment=2, truncation="none")


def test_protocols_are_values():
    other = local.MedianDescent(bounds=[-1, 3], epsilon=0.7)
    assert other == PROTOCOL
    assert hash(other) == hash(PROTOCOL)
    assert pickle.loads(pickle.dumps(other)) == other
    with pytest.raises(AttributeError):
        other.epsilon = 2.0


# ---- means ----

# method, truncation: T, MSE, its error, bound
MEANS = {
    ("laplace", "paper"): (11.892, 0.05479, 303e-5, 0.05706),
    ("laplace", "optimal"): (3.5355, 0.00493, 28e-5, 0.01005),
    ("two-point", "optimal"): (4.0421, 0.00360, 21e-5, 0.00765),
}


@pytest.mark.slow
@pytest.mark.parametrize(("method", "truncation"), MEANS)
def test_acceptance_of_the_mean(method, truncation):
    cut, expected, error, bound = MEANS[method, truncation]
    options = {"epsilon": 1.0, "moment": 2, "method": method, "truncation": truncation}
    assert theory.local_truncation(20_000, **options) == pytest.approx(cut, abs=6e-4)
    assert theory.local_mean_upper_bound(20_000, **options) == pytest.approx(bound, abs=1e-5)
    rng, spread = np.random.default_rng(1), math.sqrt((1 - 0.09) / 3)
    found = [local.mean(0.3 + spread * rng.standard_t(3, 20_000), **options, rng=rng) for _ in range(300)]
    squares = np.square(np.subtract(found, 0.3))
    assert close_to_table(squares, expected, error)
    assert not close_to_table(2 * squares, expected, error)
    assert squares.mean() < bound + 4 * squares.std() / math.sqrt(300)


@pytest.mark.parametrize("x", [-1.0, 0.2, 3.0])
def test_two_points_are_unbiased(x):
    n, c = 400_000, coin(1.0).gain
    found = local.mean(np.full(n, x), epsilon=1.0, bounds=(-5.0, 5.0), method="two-point", rng=PCG64(1))
    deviation = math.sqrt((25 * c * c - x * x) / n)
    assert abs(found - x) < norm.isf(ALPHA) * deviation
    assert not abs(found - 2 * x - 0.3) < norm.isf(ALPHA) * deviation


@pytest.mark.parametrize("method", ["auto", "two-point", "laplace"])
def test_the_mean_is_that_of_private_reports(method):
    """Nothing but reports of `Interval`, whose privacy is tested there, reaches the estimate."""
    x = [0.1, 0.7, math.nan, 7.0, -math.inf] * 20
    randomizer = local.Interval(1.0, bounds=(0.0, 1.0), method=method)
    expected = float(randomizer.estimate(randomizer.randomize(x, rng=PCG64(1))))
    found = local.mean(x, epsilon=1.0, bounds=(0.0, 1.0), method=method, rng=PCG64(1))
    assert found == min(max(expected, 0.0), 1.0)


def test_a_wider_scale_is_another_unit():
    x = np.random.default_rng(0).normal(size=1000)
    for method in ("two-point", "laplace"):
        one = local.mean(x, epsilon=1.0, moment=2, method=method, rng=PCG64(1))
        eight = local.mean(8 * x, epsilon=1.0, moment=2, scale=8, method=method, rng=PCG64(1))
        assert eight == pytest.approx(8 * one, rel=1e-6)
    assert abs(local.mean(x, epsilon=0.01, moment=math.inf, scale=0.5, rng=PCG64(1))) <= 0.5
