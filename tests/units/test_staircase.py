"""Staircase noise: the law by definition, the best r, both paths of the sampler, privacy by enumeration."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from numpy.random import PCG64
from numpy.testing import assert_allclose, assert_array_equal

from dpfast import noise
from dpfast._kernels import _balls, _samplers
from dpfast.laws import DiscreteLaplace, Staircase
from dpfast.random import streams
from tests.cases import every
from tests.reference import laws
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.kernel

STAIRS = [(1, 1), (2, 1), (2, 2), (3, 2), (10, 1), (10, 4), (10, 10), (1000, 18)]
SCALES = [Fraction(1, 10), 1.0, Fraction(10, 3), 40.0]


def draws(scale, s, r, n, seed=0, **options):
    out = np.empty(n, np.int64)
    _samplers.fill_staircase(PCG64(seed), scale, s, r, out, **options)
    return out


class TestLaw:
    @every("scale, s, r", [(scale, s, r) for s, r in STAIRS for scale in SCALES if s < 1000 or scale == 40])
    def test_equals_definition(self, scale, s, r):
        law, top = Staircase(scale, s, r), 2 * s + r
        with mp.workdps(50):
            masses = [laws.staircase(z, scale, s, r) for z in range(top + s)]
            period = mp.fsum(masses[top:])  # from there on, each period has exp(-epsilon) of the mass of the last
            beyond = period / (1 - masses[-1] / masses[-1 - s])
            tails = [mp.fsum(masses[z:top]) + beyond for z in range(1, top)]
            assert abs(masses[0] + 2 * tails[0] - 1) < 1e-40
            logs, log_tails = ([float(mp.log(p)) for p in column] for column in (masses, tails))
        z = np.arange(top + s, dtype=float)
        assert_allclose(law.logpmf(z), logs, rtol=1e-13, atol=1e-15)
        assert_allclose(law.logpmf(-z), logs, rtol=1e-13, atol=1e-15)
        assert_allclose(law.log_tail(z[1:top]), log_tails, rtol=1e-13, atol=1e-15)

    @pytest.mark.parametrize("scale", SCALES)
    def test_one_step_is_discrete_laplace(self, scale):
        z = np.arange(-30.0, 31.0)
        assert_allclose(Staircase(scale, 1).logpmf(z), DiscreteLaplace(scale).logpmf(z), rtol=1e-12)
        assert_allclose(Staircase(scale, 1).log_tail(z[31:]), DiscreteLaplace(scale).log_tail(z[31:]), rtol=1e-12)

    @every("scale, s, r", [(1.0, 10, 1), (Fraction(10, 3), 10, 10), (0.1, 3, 2), (40.0, 1000, 18)])
    def test_variance(self, scale, s, r):
        z = np.arange(1, 100 * s)
        expected = 2 * np.sum(z**2 * np.exp(Staircase(scale, s, r).logpmf(z.astype(float))))
        assert_allclose(Staircase(scale, s, r).variance, expected, rtol=1e-12)

    def test_variance_in_no_memory(self):
        """Of 2**56 levels and more."""
        assert_allclose(Staircase(2.0**56, 1).variance, DiscreteLaplace(2.0**56).variance, rtol=1e-12)
        assert_allclose(Staircase(2.0**56, 2**20).variance, 2.0**113, rtol=1e-6)

    @every("s, r", STAIRS[:-1])
    @every("scale", [Fraction(1, 2), 1.0, Fraction(10, 3)])
    def test_loses_epsilon_at_shifts_up_to_s_and_more_beyond(self, scale, s, r):
        law, epsilon, z = Staircase(scale, s, r), float(s / Fraction(scale)), np.arange(-300.0, 301.0)
        losses = [np.abs(law.logpmf(z) - law.logpmf(z + shift)).max() for shift in range(1, s + 2)]
        assert_allclose(losses[s - 1], epsilon, rtol=1e-12)
        assert max(losses[:s]) <= epsilon * (1 + 1e-12)
        assert losses[s] > 1.5 * epsilon

    @pytest.mark.parametrize("s", [2**30, 2**52, 2**56])
    def test_large_periods(self, s):
        """The masses of level 0 and of the levels beyond sum to 1."""
        for epsilon in (Fraction(1, 100), Fraction(4), Fraction(300)):
            law = Staircase(s / epsilon, s)
            top = (2 * law.r - 1) * math.exp(law.logpmf(np.array([0.0]))[0])
            assert top + 2 * math.exp(law.log_tail(np.array([float(law.r)]))[0]) == pytest.approx(1, rel=1e-9)


class TestBestR:
    @every("s", [1, 2, 3, 7])
    @every("epsilon", [0.5, 1.0, 2.0, 4.0, 8.0])
    def test_has_the_least_mean(self, s, epsilon):
        scale = Fraction(s) / Fraction(epsilon)
        with mp.workdps(50):
            assert _balls.staircase_r(scale, s) == laws.least_staircase(scale, s)

    @settings(max_examples=300, deadline=None)
    @given(st.integers(1, 2**56), st.fractions(Fraction(1, 2**60), 2000))
    def test_is_the_rounded_quotient(self, s, epsilon):
        with mp.workdps(400):
            exact = mp.ceil(s / (1 + mp.exp(mpf(epsilon.numerator) / epsilon.denominator / 2)))
        r = _balls.staircase_r(s / epsilon, s)
        assert r == int(exact)
        assert 1 <= r <= (s + 1) // 2

    def test_extreme_scales(self):
        assert _balls.staircase_r(5e-324, 2**56) == 1
        assert _balls.staircase_r(2.0**56, 1) == 1
        assert _balls.staircase_r(2.0**56, 2**56) == pytest.approx(2**56 / (1 + math.exp(0.5)), rel=1e-15)


def mean(law, reach):
    z = np.arange(1.0, reach)
    return 2 * math.fsum(z * np.exp(law.logpmf(z)))


class TestChoice:
    """Staircase noise counts as less if its mean magnitude is at least 5 % below that of discrete Laplace noise."""

    @pytest.mark.parametrize("s", [1, 2, 3, 10, 64])
    def test_compares_means(self, s):
        chosen = []
        for epsilon in (0.1, 0.5, 1.0, 1.1, 1.2, 1.3, 1.4, 2.0, 4.0, 8.0, 20.0):
            scale = s / Fraction(epsilon)
            stairs = Staircase(scale, s)
            ratio = mean(stairs, 3000 * s) / mean(DiscreteLaplace(scale), 3000 * s)
            chosen.append(_balls.staircase_is_less(scale, s, stairs.r))
            assert chosen[-1] == (ratio <= 0.95)
        assert any(chosen) == (s > 1)
        assert not all(chosen)

    def test_extremes(self):
        for s in (2, 10, 2**52, 2**56):
            for epsilon, less in ((Fraction(1, 2**40), False), (Fraction(2), True), (Fraction(600), True)):
                scale = s / epsilon
                assert _balls.staircase_is_less(scale, s, _balls.staircase_r(scale, s)) == less
            assert _balls.staircase_is_less(s / Fraction(1e308), s, 1)
        assert not _balls.staircase_is_less(Fraction(1) / Fraction(1e308), 1, 1)


class TestSampler:
    @every("s, r", STAIRS)
    @every("scale", [Fraction(10, 3), 40.0])
    def test_law(self, scale, s, r):
        sample, law = draws(scale, s, r, 400_000, seed=1), Staircase(scale, s, r)
        z = np.arange(-10 * s - r - 400, 10 * s + r + 401)
        counts = np.bincount(np.clip(sample, z[0], z[-1]) - z[0], minlength=z.size)
        assert not chi_square_rejects(counts, np.exp(law.logpmf(z.astype(float))))

    @pytest.mark.parametrize(("s", "r", "wrong"), [(10, 4, 3), (10, 1, 2), (3, 2, 1)])
    def test_the_r_of_another_epsilon_is_rejected(self, s, r, wrong):
        sample, z = draws(Fraction(10, 3), s, r, 400_000, seed=1), np.arange(-600, 601)
        counts = np.bincount(np.clip(sample, -600, 600) + 600, minlength=z.size)
        for tried, rejected in ((r, False), (wrong, True)):
            masses = np.exp(Staircase(Fraction(10, 3), s, tried).logpmf(z.astype(float)))
            assert chi_square_rejects(counts, masses) == rejected

    @every(("s", "r"), [*STAIRS, (2**52, 2**51 - 1), (2**56, 1), (2**56, 2**56)])
    @every("scale", [5e-324, *SCALES, 2.0**47, 2.0**56])
    def test_fast_path_is_the_slow_path(self, scale, s, r):
        assert_array_equal(draws(scale, s, r, 200), draws(scale, s, r, 200, exact=True))

    @pytest.mark.slow
    def test_a_million_draws_agree_with_the_slow_path(self):
        fast, slow = (draws(1e4, 10, 3, 1_000_000, seed=5, exact=exact) for exact in (False, True))
        assert_array_equal(fast, slow)

    @pytest.mark.parametrize(("scale", "s", "r"), [(5.0, 10, 3), (1000.0, 10, 5), (Fraction(1000, 3), 7, 1)])
    def test_words_next_to_edges(self, scale, s, r):
        """Level k begins at U = q**k / (share + (1 - share) q): both paths decide its neighbours alike, and right."""
        share = Fraction(2 * r - 1, 2 * s)
        with mp.workdps(60):
            q = mp.exp(-s / (mpf(Fraction(scale).numerator) / Fraction(scale).denominator))
            top = mpf(share.numerator) / share.denominator * (1 - q) + q
            edges = [(k, q**k / top) for k in range(1, 20) if q**k / top * 2**63 > 2**20]
            words = [int(mp.floor(edge * 2**64)) + d for _, edge in edges for d in (-2, -1, 0, 1, 2)]
            fast, slow = np.empty(len(words), np.int64), np.empty(len(words), np.int64)
            for out, exact in ((fast, False), (slow, True)):
                _samplers.fill_staircase(ScriptedBits(words, PCG64(1)), scale, s, r, out, exact=exact)
            assert_array_equal(fast, slow)
            for i, (word, z) in enumerate(zip(words, fast.tolist(), strict=True)):
                k, edge = edges[i // 5]
                inside = word >> 1 <= edge * 2**63 <= (word >> 1) + 1
                level = 0 if abs(z) < r else 1 + (abs(z) - r) // s
                assert level in ((k - 1, k) if inside else (k,) if word < edge * 2**64 else (k - 1,))

    def test_words(self):
        """One for the level, one for the place on it."""
        source = ScriptedBits(rest=PCG64(3))
        _samplers.fill_staircase(source, 100.0, 10, 4, np.empty(5000, np.int64))
        assert source.used == 10_000
        assert draws(1.0, 10, 3, 0).size == 0

    def test_saturation(self):
        for s, place, limit in ((1, 0, 2**63 - 1), (1, 2**64 - 1, 1 - 2**63), (2**56, 2**64 - 1, 1 - 2**63)):
            # a rate of 2**56 is halved: more digits of E, the place in a cell, and one further level
            refining = [5, 1, 0] if s == 1 else []
            source, out = ScriptedBits([0] * 40 + [1, *refining, place], PCG64(1)), np.empty(1, np.int64)
            _samplers.fill_staircase(source, 2.0**56, s, 1, out)
            assert out[0] == limit
        assert abs(draws(5e-324, 2**56, 1, 1000)).max() == 0

    def test_every_integer_of_a_level_is_equally_likely(self):
        """Level 0 by 2 r - 1 and the next by 2 s equal shares of the words."""
        s, r = 5, 3
        for level, size in ((0, 2 * r - 1), (1, 2 * s), (2, 2 * s)):
            word = 2**64 - 1 if level == 0 else int(2**64 * math.exp(-3.0 * (level + 0.1)))
            words = [(2 * i + 1) * 2**63 // size for i in range(size)]
            out = np.empty(size, np.int64)
            _samplers.fill_staircase(ScriptedBits([word] * size + words), Fraction(s, 3), s, r, out)
            low, high = (0, r) if level == 0 else (r + (level - 1) * s, r + level * s)
            assert sorted(out.tolist()) == [z for z in range(-high, high + 1) if low <= abs(z) < high]


class TestFunction:
    def test_draws_with_the_best_r(self):
        expected = np.empty(100, np.int64)
        _samplers.fill_staircase(streams(PCG64(3), 1)[0], 2.5, 10, 2, expected)
        assert_array_equal(noise.staircase(2.5, 10, 100, rng=PCG64(3)), expected)
        assert isinstance(noise.staircase(2.5, 10), int)
        assert noise.staircase(Fraction(5, 2), np.int8(10), (2, 3)).shape == (2, 3)

    @pytest.mark.parametrize(
        ("sensitivity", "error"), [(0, ValueError), (-1, ValueError), (2**56 + 1, ValueError), (1.0, TypeError)]
    )
    def test_bad_sensitivity(self, sensitivity, error):
        with pytest.raises(error, match="sensitivity must be"):
            noise.staircase(1.0, sensitivity)
