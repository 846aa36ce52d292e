"""Private implies robust: bounds against enumerated mechanisms, all data sets and all adversaries."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import dpfast as dpf
from dpfast import theory
from dpfast.statistics import Mean, Median
from tests.cases import every


def step(b, epsilon, delta):
    return min(1.0, math.exp(epsilon) * b + delta, 1 - math.exp(-epsilon) * (1 - b - delta))


def slow_failure(t, b, *, epsilon, delta=0.0):
    for _ in range(t):
        b = step(b, epsilon, delta)
    return max(b, 0.0)


def forgets_delta(t, b, *, epsilon, delta=0.0):
    return min(1.0, math.exp(t * epsilon) * b)


def adds_delta(t, b, *, epsilon, delta=0.0):
    return min(1.0, math.exp(t * epsilon) * b + t * delta)


def half_epsilon(t, b, *, epsilon, delta=0.0):
    return min(1.0, math.exp(t * epsilon / 2) * b)


def distance(x, y):
    return sum(a != b for a, b in zip(x, y, strict=True))


def holds_for(mechanism, records, n, bound):
    """Whether the bound covers all pairs of data sets and all sets of releases on one side of a point."""
    data = list(itertools.product(records, repeat=n))
    laws = [mechanism.law(np.array(x, float)).pmf(np.arange(mechanism_size(mechanism, n))).cumsum() for x in data]
    laws = [np.minimum(law[:-1], 1.0) for law in laws]
    for (x, p), (y, q) in itertools.product(zip(data, laws, strict=True), repeat=2):
        for mine, theirs in ((p, q), (1 - p, 1 - q)):
            for b, found in zip(mine, theirs, strict=True):
                most = bound(distance(x, y), float(b), epsilon=mechanism.epsilon)
                if found > most + 1e-12:
                    return False
    return True


def mechanism_size(mechanism, n):
    low, high = mechanism.law(np.zeros(n)).support
    assert low == 0
    return high + 1


SUMS = dpf.GlobalSensitivity(Mean(), grid=dpf.Grid(0, 1, step=1), epsilon=0.7)
MEDIANS = dpf.InverseSensitivity(Median(), grid=dpf.Grid(0, 8, step=1), epsilon=1.5)


def test_bound_covers_every_adversary_of_noisy_means():
    assert holds_for(SUMS, (0, 1), 4, theory.implied_failure)


def test_bound_covers_every_adversary_of_medians():
    assert holds_for(MEDIANS, (0, 3, 8), 3, theory.implied_failure)


def test_half_the_exponent_is_rejected():
    assert not holds_for(SUMS, (0, 1), 4, half_epsilon)


def bit_mechanism(n, epsilon, delta, b):
    """Claim 4: for each data set of n bits, the probability of a failure, with rational E = exp(epsilon)."""
    growth = Fraction(math.exp(epsilon)).limit_denominator(1000)
    probabilities = [Fraction(b)]
    for _ in range(n):
        p = probabilities[-1]
        probabilities.append(min(Fraction(1), growth * p + delta, 1 - (1 - p - delta) / growth))
    return math.log(growth), {x: probabilities[sum(x)] for x in itertools.product((0, 1), repeat=n)}


@pytest.mark.parametrize(("delta", "b"), [(Fraction(0), "1/1000"), (Fraction(1, 50), "0"), (Fraction(1, 50), "1/100")])
def test_bound_is_attained_by_a_private_bit(delta, b):
    epsilon, failure = bit_mechanism(6, 0.5, delta, b)
    growth = Fraction(math.exp(epsilon)).limit_denominator(1000)
    for x, y in itertools.product(failure, repeat=2):
        if distance(x, y) == 1:  # the mechanism is private, exactly
            for p, q in ((failure[x], failure[y]), (1 - failure[x], 1 - failure[y])):
                assert p <= growth * q + delta
    clean = (0,) * 6
    for y, found in failure.items():
        bound = theory.implied_failure(sum(y), float(failure[clean]), epsilon=epsilon, delta=float(delta))
        assert bound == pytest.approx(float(found), rel=1e-12)


@pytest.mark.parametrize("wrong", [forgets_delta, adds_delta])
def test_bounds_that_compose_delta_wrongly_are_rejected(wrong):
    epsilon, failure = bit_mechanism(6, 0.5, Fraction(1, 50), "0")
    worst = max(float(p) - wrong(sum(y), 0.0, epsilon=epsilon, delta=0.02) for y, p in failure.items())
    assert worst > 0.01


def test_closed_form_is_the_recursion():
    rng = np.random.default_rng(22)
    for _ in range(2000):
        epsilon, b = 10 ** rng.uniform(-3, 1.3), rng.choice([0.0, 10 ** rng.uniform(-12, 0), rng.random()])
        delta, t = rng.choice([0.0, 10 ** rng.uniform(-9, -0.3)]), int(rng.choice([0, 1, 2, 3, 7, 30, 200]))
        expected = slow_failure(t, b, epsilon=epsilon, delta=delta)
        found = theory.implied_failure(t, b, epsilon=epsilon, delta=delta)
        assert found == pytest.approx(expected, rel=1e-11, abs=1e-300)
        need = theory.required_failure(t, epsilon=epsilon, delta=delta)
        again = theory.implied_failure(t, need, epsilon=epsilon, delta=delta)
        assert again == pytest.approx(0.05, rel=1e-6) or need < 1e-300


def test_extreme_numbers_neither_overflow_nor_fail():
    for epsilon, b, t in itertools.product((1e-12, 1.0, 800.0, 1e6), (0.0, 5e-324, 0.5, 1.0), (0, 1, 10**9)):
        for delta in (0.0, 1e-300, 0.5):
            found = theory.implied_failure(t, b, epsilon=epsilon, delta=delta)
            assert b * (1 - 1e-9) <= found <= 1
            assert 0 <= theory.required_failure(t, epsilon=epsilon, delta=delta) <= 0.05 * (1 + 1e-9)
            if b <= 0.05:
                theory.implied_robustness(0.1, b, n=10**6, epsilon=epsilon, delta=delta)


def test_implied_robustness_is_the_last_number_of_records_that_fits():
    for epsilon, delta, failure in ((1.0, 0.0, 1e-20), (0.1, 1e-6, 1e-9), (3.0, 0.0, 1e-30), (0.5, 0.04, 0.0)):
        found = theory.implied_robustness(0.3, failure, n=500, epsilon=epsilon, delta=delta)
        bounds = [slow_failure(found.replaced + i, failure, epsilon=epsilon, delta=delta) for i in (0, 1)]
        assert bounds[0] <= 0.05 * (1 + 1e-9)
        assert bounds[1] > 0.05 or found.replaced == 500
        assert (found.contamination, found.error, found.confidence) == (found.replaced / 500, 0.3, 0.95)
    everything = theory.implied_robustness(0.3, 0.0, n=500, epsilon=1.0)
    assert (everything.replaced, everything.mixture) == (500, 1.0)


@pytest.mark.parametrize(("delta", "b"), [(Fraction(0), "1/10000"), (Fraction(1, 1000), "0")])
def test_mixtures_of_records_fail_as_bounded(delta, b):
    """Records 0 with probability 1 - eta: the private bit of claim 4, its failure over all numbers of ones."""
    n = 30
    epsilon, failure = bit_mechanism(10, 0.5, delta, b)
    by_count = [float(failure[(1,) * t + (0,) * (10 - t)]) for t in range(11)]
    while len(by_count) <= n:
        by_count.append(step(by_count[-1], epsilon, float(delta)))
    found = theory.implied_robustness(1.0, float(Fraction(b)), n=n, epsilon=epsilon, delta=float(delta))

    def failing(eta):
        return sum(math.comb(n, t) * eta**t * (1 - eta) ** (n - t) * p for t, p in enumerate(by_count))

    assert 0.9 * 0.05 < failing(found.mixture) <= 0.05
    assert failing(1.2 * found.mixture) > 0.05


@every(
    "name, options",
    [
        ("failure", {"failure": 0.06}),
        ("failure", {"failure": -0.1}),
        ("epsilon", {"epsilon": 0}),
        ("delta", {"delta": 1.0}),
        ("error", {"error": -1}),
        ("n", {"n": 0}),
        ("confidence", {"confidence": 1.0}),
    ],
)
def test_implied_robustness_rejects(name, options):
    with pytest.raises(ValueError, match=f"{name} must be"):
        theory.implied_robustness(**{"error": 0.1, "failure": 0.01, "n": 10, "epsilon": 1.0} | options)


def test_replaced_is_checked():
    with pytest.raises(ValueError, match="replaced must be"):
        theory.implied_failure(-1, 0.1, epsilon=1.0)
    with pytest.raises(ValueError, match="replaced must be"):
        theory.required_failure(-1, epsilon=1.0)
