"""The calculators of local privacy: the contraction against random and extremal channels, and the order of bounds."""

import itertools
import math

import numpy as np
import pytest

from dpfast import local, theory
from tests.cases import every
from tests.reference import descent as reference

EPSILONS = [0.01, 0.69, 0.7, 2.0, 5.0]


def staircase(rng, epsilon, inputs, reports):
    """A random channel of columns of entries s and E s: extremal; its rows add up to 1 by a last, balancing report."""
    while True:
        columns = np.exp(epsilon * rng.integers(0, 2, (inputs, reports)))
        weights = np.linalg.lstsq(columns, np.ones(inputs), rcond=None)[0]
        if (weights > 1e-9).all() and np.allclose(columns @ weights, 1, atol=1e-12):
            return columns * weights


def pairs(rng, count):
    for _ in range(count):
        p, q = rng.dirichlet(np.full(3, 0.5), 2)
        yield p, q


@every("epsilon", EPSILONS)
def test_no_channel_beats_the_contraction(epsilon):
    rng, largest = np.random.default_rng(1), 0.0
    for _ in range(40):
        channel = staircase(rng, epsilon, 3, 3)
        assert (channel.max(0) <= channel.min(0) * math.exp(epsilon) * (1 + 1e-9)).all()
        for p, q in pairs(rng, 25):
            t = min(1.0, np.abs(p - q).sum() / 2)
            one, other = reference.divergences(channel, p, q)
            exact = theory.local_contraction(t, epsilon=epsilon)
            assert one + other <= exact * (1 + 1e-9) + 1e-14
            assert max(one, other) <= theory.local_contraction(t, epsilon=epsilon, directions=1) * (1 + 1e-9) + 1e-14
            largest = max(largest, (one + other) / exact) if t > 0.01 else largest
    assert largest > 0.5


@every("epsilon", EPSILONS)
@every("directions", [1, 2])
def test_the_exact_contraction_is_the_linear_programme(epsilon, directions):
    for t in (0.01, 0.1, 0.4, 0.7, 0.95, 1.0):
        exact = theory.local_contraction(t, epsilon=epsilon, directions=directions)
        assert exact == pytest.approx(reference.worst_divergence(t, epsilon, directions), rel=2e-6)
        sharp, published = (
            theory.local_contraction(t, epsilon=epsilon, directions=directions, form=form)
            for form in ("sharp", "published")
        )
        assert exact <= sharp * (1 + 1e-12)
        assert sharp <= published
        assert 0.9 * sharp > exact or t < 0.5 or epsilon < 1


def test_the_sharp_constant_is_attained_and_no_smaller_one_holds():
    for epsilon in EPSILONS:
        ratio = [theory.local_contraction(1e-5, epsilon=epsilon, form=f) for f in ("exact", "sharp")]
        assert ratio[0] == pytest.approx(ratio[1], rel=1e-3)
    e = math.exp(2.0)  # "which of three", one of them kept more often
    channel = (np.ones((3, 3)) + (e - 1) * np.eye(3)) / (e + 2)
    t = 0.01
    one, other = reference.divergences(channel, np.array([1 - t, t, 0]), np.array([1 - t, 0, t]))
    assert one + other == pytest.approx(theory.local_contraction(t, epsilon=2.0), rel=1e-12)
    assert one + other > 1.5 * (e - 1) ** 2 / e * t * t  # the value for randomised response on two answers


def test_extremes_of_the_contraction():
    assert theory.local_contraction(0.0, epsilon=1.0) == 0
    assert theory.local_contraction(1.0, epsilon=1.0) == pytest.approx(2 * math.tanh(0.5))
    assert theory.local_contraction(1.0, epsilon=1000.0) == math.inf
    for directions in (1, 2):
        near = [theory.local_contraction(t, epsilon=1.0, directions=directions) / t**2 for t in (5.8e-5, 5.9e-5)]
        assert near[0] == pytest.approx(near[1], rel=1e-4)
    for options in ({"form": "loose"}, {"directions": 3}, {"epsilon": 0.0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            theory.local_contraction(0.5, **({"epsilon": 1.0} | options))


def test_le_cam_is_below_the_error_of_every_test():
    """Randomised response of n people who are the same person's copies: the exact error of the best test."""
    for n, epsilon in itertools.product((1, 3, 10), (0.3, 1.0)):
        keep = 1 / (1 + math.exp(-epsilon))
        counts = np.arange(n + 1)
        binomial = np.array([math.comb(n, k) for k in counts], float)
        one = binomial * keep**counts * (1 - keep) ** (n - counts)
        best = np.minimum(one, one[::-1]).sum() / 2
        for form in ("exact", "sharp", "published"):
            assert theory.local_le_cam(1.0, 1.0, epsilon=epsilon, n=n, form=form) <= best
    assert theory.local_le_cam(1.0, 0.0, epsilon=1.0, n=9) == 0.5
    assert theory.local_testing_error(epsilon=1.0) == pytest.approx(1 - 1 / (1 + math.exp(-1)))


def test_fano_and_assouad_are_below_attained_errors():
    """Two or four hypotheses on one coordinate or two, answered by randomised response."""
    epsilon, n, delta = 0.5, 400, 0.05
    c = 1 / math.tanh(epsilon / 2)
    # Assouad, d = 1: the mean of +-1 with bias +-delta, squared error delta**2 = 2 (delta**2 / 2)
    attained = c * c / n
    assert 0 < theory.local_assouad(delta**2 / 2, 1, (2 * delta) ** 2, epsilon=epsilon, n=n) < attained
    best = max(theory.local_assouad(b * b / 2, 1, 4 * b * b, epsilon=epsilon, n=n) for b in np.logspace(-3, -0.5, 200))
    assert attained / 100 < best < attained
    assert theory.local_assouad(1.0, 1, 4.0, epsilon=5.0, n=10**6) == 0
    # Fano: information about which of 2**10 corners, each person one random coordinate of bias delta
    d = 10
    information = (1 - 2 * math.log(2) / math.log(2**d)) * 0.5
    assert theory.local_fano(1.0, 2**d, delta**2 / d, epsilon=epsilon, n=n) > information
    assert theory.local_fano(1.0, 2**d, 1.0, epsilon=3.0, n=n) == 0
    for i in (1, 4, 8):  # more of each gives more information
        assert theory.local_fano(1.0, 2**d, 1e-3, epsilon=0.5, n=i * n) >= theory.local_fano(
            1.0, 2**d, 1e-3, epsilon=0.5, n=(i + 1) * n
        )


def test_information_is_below_fanos_bound():
    """Exactly, for one report about four hypotheses."""
    rng = np.random.default_rng(1)
    for epsilon in (0.3, 1.0, 2.0):
        laws = rng.dirichlet(np.ones(3), 4)
        mean = laws.mean(0)
        signs = np.array(list(itertools.product((-1, 1), repeat=3)))
        correlation = (((laws - mean) @ signs.T) ** 2).mean(0).max()
        bound = math.expm1(epsilon) ** 2 / 8 * correlation
        for _ in range(30):
            channel = staircase(rng, epsilon, 3, 3)
            told = laws @ channel
            information = (told * np.log(told / told.mean(0))).sum(1).mean()
            assert information <= bound
        vacuous = theory.local_fano(1.0, 2, correlation, epsilon=epsilon, n=1)
        assert vacuous == 0
        assert theory.local_fano(1.0, 2**20, correlation, epsilon=epsilon, n=1) == pytest.approx(
            1 - (min(bound, epsilon) + math.log(2)) / (20 * math.log(2))
        )


def test_corollary_1():
    """Mechanisms-b 9; its upper bounds are for Laplace noise."""
    for n, epsilon, lower, upper in ((100_000, 0.5, 7.39e-4, 8.95e-3), (1000, 1.0, 2.30e-3, 4.57e-2)):
        assumed = {"epsilon": epsilon, "moment": 2}
        assert theory.local_mean_lower_bound(n, **assumed, form="published") == pytest.approx(lower, rel=3e-3)
        assert theory.local_mean_upper_bound(n, **assumed, method="laplace") == pytest.approx(upper, rel=1e-3)
        exact, two_point = theory.local_mean_lower_bound(n, **assumed), theory.local_mean_upper_bound(n, **assumed)
        assert 4 * lower < exact < two_point < upper


@every("moment", [1.2, 1.5, 2, 3, 10, math.inf])
def test_lower_bounds_are_below_upper_bounds(moment):
    for n, epsilon, scale in itertools.product((10, 10_000), (0.2, 1.0, 4.0), (1.0, 8.0)):
        assumed = {"epsilon": epsilon, "moment": moment, "scale": scale}
        low = [theory.local_mean_lower_bound(n, **assumed, form=f) for f in ("published", "sharp", "exact")]
        assert low == sorted(low)
        for method, truncation in itertools.product(("two-point", "laplace"), ("optimal", "paper")):
            options = {"method": method, "truncation": truncation}
            upper = theory.local_mean_upper_bound(n, **assumed, **options)
            assert 0 < low[-1] < upper
            assert (
                theory.local_mean_upper_bound(n, **assumed, method=method) <= upper * (1 + 1e-12) or method == "laplace"
            )
            assert theory.local_truncation(n, **assumed, **options) == pytest.approx(
                scale * theory.local_truncation(n, epsilon=epsilon, moment=moment, **options)
            )


def test_the_truncation_is_the_minimum_of_its_bound():
    for moment, epsilon in itertools.product((1.3, 2, 5), (0.3, 2.0)):
        n, b = 5000, (moment - 1) ** (moment - 1) / moment**moment
        a = 1 / math.tanh(epsilon / 2) ** 2

        def bound(t, a=a, b=b, n=n, moment=moment):
            return a * t * t / n + b * b * t ** (2 - 2 * moment)

        best = theory.local_truncation(n, epsilon=epsilon, moment=moment)
        assert bound(best) < min(bound(1.01 * best), bound(best / 1.01))
        assert theory.local_mean_upper_bound(n, epsilon=epsilon, moment=moment) == pytest.approx(bound(best))
        x = np.linspace(0, 100 * best, 1_000_001)[1:]
        assert np.max(np.maximum(x - best, 0) / x**moment) == pytest.approx(b * best ** (1 - moment), rel=1e-4)


def test_corollary_2():
    for n, epsilon, width in itertools.product((10, 1000, 10**6), (0.2, 1.0, 4.0), (1.0, 50.0)):
        lower = [
            theory.local_median_lower_bound(n, epsilon=epsilon, width=width, form=f) for f in ("published", "exact")
        ]
        upper = theory.local_median_upper_bound(n, epsilon=epsilon, width=width)
        assert 0 < lower[0] < lower[1] < upper <= width / 2
    # the same order: their quotient does not change with n
    ratio = [
        theory.local_median_upper_bound(n, epsilon=0.5, width=1.0)
        / theory.local_median_lower_bound(n, epsilon=0.5, width=1.0)
        for n in (10**5, 10**9)
    ]
    assert ratio[0] == pytest.approx(ratio[1], rel=1e-2)
    assert theory.local_median_upper_bound(10_000, epsilon=1.0, width=16.0) == pytest.approx(0.4896, abs=1e-4)


def test_the_lower_bound_of_medians_holds_for_the_descent():
    """On its own worst pair of distributions."""
    n, epsilon, delta = 400, 0.5, 0.2
    rng = np.random.default_rng(1)
    protocol = local.MedianDescent(bounds=(-1.0, 1.0), epsilon=epsilon)
    excess = []
    for side in (-1, 1):
        x = [side * np.where(rng.random(n) < (1 + delta) / 2, 1.0, -1.0) for _ in range(200)]
        excess.append(np.mean([delta * (1 - side * protocol(row, rng=rng)) for row in x]))
    assert max(excess) > theory.local_median_lower_bound(n, epsilon=epsilon, width=2.0)


def test_effective_sample_size_is_the_ratio_of_variances():
    n = 1000
    gain = local.MedianDescent(bounds=(0, 1), epsilon=0.8).coin.gain
    assert theory.local_effective_sample_size(n, epsilon=0.8) == pytest.approx(n / gain**2)
