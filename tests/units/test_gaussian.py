"""The rounded Gaussian: the proved bounds of the inverse normal, exact laws, edges, moments."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from mpmath import mp, mpf
from numpy.random import PCG64

from dpfast._kernels import _samplers
from dpfast.laws import ClampedNoise, RoundedGaussian, RoundedGaussians
from tests.cases import every
from tests.reference import laws, normal
from tests.scripted import ScriptedBits
from tests.statistical import ALPHA, chi_square_rejects

pytestmark = pytest.mark.kernel

UNIT = 2.0**-53


def draws(sigma, n, seed=0, source=None, **options):
    out = np.empty(n, np.int64)
    _samplers.fill_rounded_gaussian(source or PCG64(seed), sigma, out, **options)
    return out


@pytest.fixture
def precision():
    with ctx.workprec(160):
        yield


# The inverse normal in doubles


@pytest.mark.usefixtures("precision")
class TestProof:
    """The bounds that src/shared/normal.h states, for every z of their ranges."""

    def test_center(self):
        ratios = [bound / (9.5 * z + 10) for z, bound in normal.center_errors()]
        assert max(ratios) < 1
        assert max(ratios) > 0.9, "the claim should not be loose"

    def test_shoulder(self):
        ratios = [bound / (9.5 * z + 8) for z, bound in normal.shoulder_errors()]
        assert max(ratios) < 1
        assert max(ratios) > 0.9

    def test_tail(self):
        ratios = [bound / (16 * z) for z, bound in normal.tail_errors()]
        assert max(ratios) < 1
        assert max(ratios) > 0.9

    @pytest.mark.parametrize("part", ["center", "shoulder", "tail"])
    def test_a_wrong_coefficient_is_found(self, part, monkeypatch):
        constants = normal.constants

        def changed(function):
            values = constants(function)
            values[-1] *= 1 + 2.0**-46
            return values

        monkeypatch.setattr(normal, "constants", changed)
        with pytest.raises(AssertionError, match="not below"):
            list(getattr(normal, f"{part}_errors")())


def words_of_all_lengths(n, seed):
    """Random words of every length, the ends of octaves, and both sides of the ends of the branches."""
    full = np.random.default_rng(seed).integers(2**63, 2**64, n, dtype=np.uint64)
    shifts = np.resize(np.append(np.arange(52), np.zeros(52)), n).astype(np.uint64)
    octaves = [2**k + d for k in range(13, 64) for d in (-5, -3, -1, 1, 3, 5)]
    branches = [2**k + d for k, reach in ((61, 600), (56, 64)) for d in range(-reach, reach)]
    branches += [2**64 - 1 - d for d in range(64)] + [2**12 + d for d in range(64)]
    return np.unique(np.concatenate([full >> shifts, np.array(octaves + branches, dtype=np.uint64)]))


def claimed(word, z):
    """The bound that the draws rely on, without what the other numbers of the word add."""
    if word > 2**61 - 2**7:
        return (9.5 * z + 10) * UNIT
    return (9.5 * z + 8) * UNIT if word > 2**56 - 4 else 16 * z * UNIT


def test_inverse_normal_against_mpmath():
    words = words_of_all_lengths(3000, seed=1)
    worst = 0.0
    with mp.workdps(40):
        for word, z in zip(words.tolist(), _samplers.normal_of_words(words).tolist(), strict=True):
            missing = 2 * laws.gaussian_tail(z) - mpf(word | 1) / 2**64
            error = abs(missing / (2 * mp.npdf(mpf(z))))  # a Newton step: right to the square of the error
            worst = max(worst, float(error) / claimed(word, z))
    assert 0.1 < worst < 1


@pytest.mark.slow
@pytest.mark.usefixtures("precision")
def test_inverse_normal_at_a_million_points():
    words = words_of_all_lengths(1_000_000, seed=2)
    root, worst = arb(2).sqrt(), 0.0
    for word, z in zip(words.tolist(), _samplers.normal_of_words(words).tolist(), strict=True):
        missing = (arb(z) / root).erfc() - arb(fmpq(word | 1, 2**64))
        worst = max(worst, float(abs(missing / (2 * normal.density(arb(z))))) / claimed(word, z))
    assert 0.1 < worst < 1


# Draws


def tail_words(edge):
    """The words next to where U is this number."""
    word = int(mp.floor(edge * 2**64))
    return [w for w in range(word - 3, word + 4) if 0 < w < 2**64]


@pytest.mark.parametrize("sigma", [1e-3, 0.3, 1.0, 7.3, Fraction(10, 3), 1000.0, 1e6, 2.0**33])
def test_edges_are_left_to_ball_arithmetic_and_decided_right(sigma):
    with mp.workdps(60):
        s = mpf(Fraction(sigma).numerator) / Fraction(sigma).denominator
        reach = [*range(1, 40), *(round(sigma * c) for c in (0.5, 1.53, 1.534, 1.54, 2.88, 2.885, 2.89, 5))]
        edges = [(k, 2 * laws.gaussian_tail((k - mpf("0.5")) / s)) for k in reach if 0 < k < 8 * sigma + 0.5]
        cases = [(k, edge, word) for k, edge in edges for word in tail_words(edge)]
        words = [word for *_, word in cases] or [2**63]
        fast = draws(sigma, len(words), source=ScriptedBits(words, PCG64(1)))
        slow = draws(sigma, len(words), source=ScriptedBits(words, PCG64(1)), exact=True)
        np.testing.assert_array_equal(fast, slow)
        for (k, edge, word), z in zip(cases, fast.tolist(), strict=False):
            inside = word >> 1 <= edge * 2**63 <= (word >> 1) + 1
            at_least = word < edge * 2**64
            if sigma < 1e9:  # beyond, one word covers more than one cell
                assert abs(z) in ((k - 1, k) if inside else (k,) if at_least else (k - 1,))
            assert (z <= 0) if word & 1 else (z >= 0)


def test_doubles_alone_decide_some_edges_wrongly():
    """Positive control: without the margin the words next to edges give other integers."""
    sigma = 2.0**30
    with mp.workdps(60):
        edges = [2 * laws.gaussian_tail((k + mpf("0.5")) / sigma) for k in range(2**28, 2**28 + 200)]
    words = [int(edge * 2**64) + d for edge in edges for d in (-2000, 2000)]
    exact = draws(sigma, len(words), source=ScriptedBits(words, PCG64(1)))
    naive = np.rint(sigma * _samplers.normal_of_words(np.array(words, np.uint64)))
    assert np.count_nonzero(naive != np.abs(exact)) > 0


@pytest.mark.parametrize("sigma", [1e-3, 0.3, 1.0, 7.3, Fraction(10, 3), 1e6, 2.0**30, 2.0**47, 2.0**50])
def test_every_branch_is_the_slow_path(sigma):
    words = (
        words_of_all_lengths(400, seed=3)[::3].tolist()
        + [2**k + d for k in (56, 61) for d in range(-40, 40)]
        + [1, 2, 3, 2**64 - 1]
    )
    fast = draws(sigma, len(words), source=ScriptedBits(words, PCG64(1)))
    slow = draws(sigma, len(words), source=ScriptedBits(words, PCG64(1)), exact=True)
    if sigma < 2**40:
        np.testing.assert_array_equal(fast, slow)
    else:  # more words are asked for, in another order
        assert np.abs(fast - slow).max() < 2.0**-11 * sigma


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [7.3, 1e6])
def test_a_million_draws_agree_with_the_slow_path(sigma):
    fast, slow = (draws(sigma, 1_000_000, seed=5, exact=exact) for exact in (False, True))
    np.testing.assert_array_equal(fast, slow)


def cells(sigma):
    """Integer ends of about 60 cells of the law, and the probabilities of the cells between them."""
    ends = np.unique(np.rint(float(sigma) * np.linspace(-3.5, 3.5, 60)).astype(np.int64))
    return ends, lambda s: np.diff([0.0, *(float(at_most(int(k), s)) for k in ends), 1.0])


def at_most(k, sigma):
    z = (mpf(k) + mpf("0.5")) / mpf(float(sigma))
    return 1 - laws.gaussian_tail(z) if z > 0 else laws.gaussian_tail(-z)


@every("sigma", [0.3, 1.0, 7.3, 1e6, 2.0**50])
def test_law(sigma):
    sample = draws(sigma, 20_000 if sigma == 2**50 else 400_000, seed=1)
    ends, probabilities = cells(sigma)
    counts = np.bincount(np.searchsorted(ends, sample), minlength=len(ends) + 1)
    for factor, wrong in ((1, False), (0.9, True), (1.1, True)):
        assert chi_square_rejects(counts, probabilities(sigma * factor)) == wrong


def test_the_least_sigmas_give_zero():
    for sigma in (5e-324, 1e-3, 0.05):
        assert not draws(sigma, 100_000).any()


@pytest.mark.parametrize("sigma", [0.3, 1.0, 7.3])
def test_moments(sigma):
    """The first four, against the law's own, and against those of 0.9 and 1.1 times sigma."""
    n, z = 300_000, np.arange(-100.0, 101.0)
    sample = draws(sigma, n, seed=2).astype(float)

    def worst(s):
        p = np.exp(RoundedGaussian(s).logpmf(z))
        exact = [p @ z**k for k in range(9)]
        moments = [np.mean(sample**k) for k in range(1, 5)]
        return max(
            abs(moment - exact[k]) / math.sqrt((exact[2 * k] - exact[k] ** 2) / n)
            for k, moment in enumerate(moments, 1)
        )

    limit = float(mp.sqrt(2) * mp.erfinv(1 - ALPHA / 4))
    assert worst(sigma) < limit
    assert worst(0.9 * sigma) > limit
    assert worst(1.1 * sigma) > limit


def test_scripted_words():
    """The last bit is the sign; a short word asks for further ones."""
    half = int(2 * laws.gaussian_tail(1) * 2**64) & ~1
    assert draws(10.0, 2, source=ScriptedBits([half, half + 1])).tolist() == [10, -10]
    assert draws(1e6, 1, source=ScriptedBits([2**64 - 1])).tolist() == [0]
    source = ScriptedBits([1, 2**63])  # U begins with 63 zeros: U is about 2**-64
    assert draws(1000.0, 1, source=source).tolist() == [-9155]
    assert source.used == 2
    with mp.workdps(40):
        assert 2 * laws.gaussian_tail(mpf("9.1555")) < mpf(2) ** -64 < 2 * laws.gaussian_tail(mpf("9.1545"))


def test_saturation():
    assert draws(2.0**56, 1, source=ScriptedBits([1] + [0] * 200, PCG64(1))).tolist() == [1 - 2**63]


# The law


@every("sigma", [1e-3, 0.05, 0.3, 0.5, 1.0, Fraction(10, 3), 7.3, 300.0, 1e6, 2.0**50])
def test_log_probabilities_to_40_sigma(sigma):
    steps = np.unique(np.rint(float(sigma) * np.linspace(0, 40, 40))).astype(np.int64)
    z = np.unique(np.concatenate([steps, np.arange(1 + int(min(40 * float(sigma), 30)))])).astype(float)
    pmf, tail = RoundedGaussian(sigma).logpmf(-z), RoundedGaussian(sigma).log_tail(np.maximum(z, 1))
    np.testing.assert_array_equal(pmf, RoundedGaussian(sigma).logpmf(z))
    with mp.workdps(60):
        s = mpf(Fraction(sigma).numerator) / Fraction(sigma).denominator

        def above(t):
            return mp.erfc(mpf(t) / s / mp.sqrt(2)) / 2

        for k, log_p, log_tail in zip(z.tolist(), pmf.tolist(), tail.tolist(), strict=True):
            exact = above(mpf(k) - mpf("0.5")) - above(mpf(k) + mpf("0.5")) if k else 1 - 2 * above(mpf("0.5"))
            assert abs(mp.log(exact) - mpf(log_p)) < 1e-12
            exact = mp.log(above(max(k, 1) - mpf("0.5")))
            assert abs(exact - mpf(log_tail)) < 1e-12 + 4e-16 * max(0, -exact - 800)  # 800 at 40 sigma


@pytest.mark.parametrize("sigma", [0.3, 1.0, 7.3, Fraction(10, 3)])
def test_probabilities_add_up(sigma):
    law = ClampedNoise(RoundedGaussian(sigma), center=100, last=1000, decode=np.asarray)
    k = np.arange(1001)
    assert math.fsum(law.pmf(k)) == pytest.approx(1, abs=1e-13)
    np.testing.assert_allclose(law.cdf(k), np.cumsum(law.pmf(k)), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize(("epsilon", "delta", "ratio"), [(0.5, 1e-6, 8.057618481), (1, 1e-6, 4.224678889)])
@pytest.mark.parametrize("shift", [1, 100])
def test_privacy_of_the_continuous_mechanism(epsilon, delta, ratio, shift):
    """What the law loses between two integers at this distance is at most delta; with sigma 2 % less it is more."""
    z = np.arange(-12 * ratio * shift, 12 * ratio * shift).round()

    def lost(sigma):
        law = RoundedGaussian(sigma)
        return math.fsum(np.maximum(0, np.exp(law.logpmf(z)) - np.exp(epsilon + law.logpmf(z + shift))))

    assert lost(ratio * shift) <= delta * (1 + 1e-8)
    assert lost(0.98 * ratio * shift) > delta


# A standard deviation for each coordinate


SIGMAS = [0.3, 1.0, Fraction(22, 3), 7.3, 2.0**30, 2.0**50 + 1]


@pytest.mark.parametrize("exact", [False, True])
def test_rows_of_sigmas_are_single_draws_of_the_same_words(exact):
    n, d = 200, len(SIGMAS)
    out, words = np.empty((n, d), np.int64), np.empty(n * d + n, np.uint64)
    _samplers.fill_rounded_gaussians(PCG64(3), SIGMAS, out, exact=exact)
    _samplers.fill_words(PCG64(3), words)
    own, refining = words[: n * d].reshape(n, d), words[n * d :].tolist()
    for j, sigma in enumerate(SIGMAS):
        single = draws(sigma, n, source=ScriptedBits(own[:, j].tolist() + refining * (sigma >= 2**34)))
        assert np.array_equal(out[:, j], single)
    with pytest.raises(ValueError, match="a sigma for each entry"):
        _samplers.fill_rounded_gaussians(PCG64(3), SIGMAS[1:], out)


def test_the_law_of_rows_is_a_product():
    noise, z = RoundedGaussians(SIGMAS[:4]), np.random.default_rng(0).integers(-9, 9, (50, 4)).astype(float)
    wanted = sum(RoundedGaussian(sigma).logpmf(z[:, j]) for j, sigma in enumerate(SIGMAS[:4]))
    assert noise.logpmf(z) == pytest.approx(wanted, rel=1e-13)
    out = np.empty((200_000, 4), np.int64)
    noise.fill_blocks(PCG64(0), out)
    deviations = np.sqrt(np.array([float(sigma) for sigma in SIGMAS[:4]]) ** 2 + 1 / 12)
    assert out[:, 1:].std(axis=0) == pytest.approx(deviations[1:], rel=0.01)
