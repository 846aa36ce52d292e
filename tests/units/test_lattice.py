"""Noise on lattices by rejection: weights and moments by enumeration, draws, and draws beyond 64 bits."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.random import PCG64

from dpfast._kernels import _samplers
from dpfast.laws import SumAndCount, ZeroSumLaplace
from dpfast.laws.lattice import RejectedLaplace, geometrics
from tests.cases import every
from tests.statistical import chi_square_rejects, row_counts


def zero_sum_vectors(k, reach):
    free = np.array(list(itertools.product(range(-reach, reach + 1), repeat=k - 1)), float)
    return np.column_stack([free, -free.sum(axis=1)])


def pairs(h, reach):
    s, c = np.meshgrid(np.arange(-reach * h, reach * h + 1), np.arange(-reach, reach + 1))
    z = np.stack([s, c], axis=-1).reshape(-1, 2)
    return z[(z[:, 0] - h * z[:, 1]) % 2 == 0].astype(float)


def drawn(law, m, seed=1):
    out = np.empty((m, law.dimension), np.int64)
    law.fill(PCG64(seed), out)
    return out


def chi_square(draws, outcomes, expected):
    """Frequencies of the outcomes, and of all others together."""
    return chi_square_rejects(row_counts(draws, outcomes), np.append(expected, max(0.0, 1 - expected.sum())))


class TestZeroSum:
    @every("k, reach", [(2, 200), (3, 80), (4, 30)])
    @every("epsilon", [1.0, 3.0, 8.0])
    def test_weights_and_variance(self, k, reach, epsilon):
        law, z = ZeroSumLaplace(k, Fraction(2 / epsilon)), zero_sum_vectors(k, reach)
        weights = np.exp(-epsilon / 2 * np.abs(z).sum(axis=1))
        p = np.exp(law.logpmf(z))
        assert p.sum() == pytest.approx(1, abs=1e-9)
        np.testing.assert_allclose(p, weights / weights.sum(), rtol=1e-6)
        assert (p * z[:, 0] ** 2).sum() == pytest.approx(law.variance, rel=1e-6)
        single = np.array([math.tanh(epsilon / 4) * math.exp(-epsilon / 2 * abs(j)) for j in range(-reach, reach + 1)])
        free = np.prod([single[z[:, j].astype(int) + reach] for j in range(k - 1)], axis=0)
        assert law.acceptance == pytest.approx((free * np.exp(-epsilon / 2 * np.abs(z[:, -1]))).sum(), rel=1e-6)
        assert law.logpmf(np.eye(k)[0]) == -math.inf

    @every("epsilon", [1e-6, 0.1, 1.0, 30.0])
    @every("k", [2, 5, 64, 200])
    def test_variance_of_many(self, k, epsilon):
        """Against sums over s, the sum of the positive part of two compositions, in mpmath."""
        law = ZeroSumLaplace(k, 2 / Fraction(epsilon))
        with mp.workdps(60):
            x, one = mp.exp(-mpf(epsilon)), mpf(1)

            def squares(n, x):
                return mp.fsum(mp.binomial(n, i) ** 2 * x**i for i in range(n + 1))

            def generating(t):
                return mp.log(squares(k - 1, x * t) / (1 - x * t) ** (2 * k - 1))

            # the derivatives at t = 1 are the first two factorial cumulants
            step = (1 - x) * mpf(10) ** -15
            mean = (generating(one + step) - generating(one - step)) / (2 * step)
            second = (generating(one + step) - 2 * generating(one) + generating(one - step)) / step**2
            moment = second + mean + mean**2
            assert law.variance == pytest.approx(
                float(2 * (k - 1) / mpf(k * k * (k + 1)) * (moment + k * mean)), rel=1e-9
            )

    def test_the_error_state_of_a_caller_does_not_decide(self):
        with np.errstate(all="raise"):
            law = ZeroSumLaplace(3000, Fraction(1, 50))
            found = law.variance, law.acceptance
        assert found == (ZeroSumLaplace(3000, law.scale).variance, 1.0)

    def test_a_single_integer_has_no_noise(self):
        law = ZeroSumLaplace(1, Fraction(2))
        assert (law.variance, law.acceptance, float(law.logpmf(np.zeros(1)))) == (0, 1, 0)
        assert not drawn(law, 10).any()

    @pytest.mark.parametrize(("k", "epsilon"), [(2, 1.0), (3, 0.7), (4, 3.0)])
    def test_draws(self, k, epsilon):
        law, m = ZeroSumLaplace(k, 2 / Fraction(epsilon)), 100_000
        draws, z = drawn(law, m), zero_sum_vectors(k, 6)
        assert not draws.sum(axis=1).any()
        for factor, wrong in ((1, False), (Fraction(9, 10), True), (Fraction(11, 10), True)):
            other = ZeroSumLaplace(k, factor * law.scale)
            assert chi_square(draws, z, np.exp(other.logpmf(z))) == wrong

    def test_many_rows_are_those_of_few(self):
        """Rounds of a limited size, more of them for more rows; the moments are those of the law."""
        law, m = ZeroSumLaplace(64, Fraction(20)), 20_000
        draws = drawn(law, m)
        assert draws.shape == (m, 64)
        assert not draws.sum(axis=1).any()
        assert abs(draws.var() / law.variance - 1) < 0.01

    @pytest.mark.parametrize("k", [2, 64])
    def test_draws_beyond_64_bits(self, k):
        """Noise of a scale of 2**56: sums of draws may exceed 64 bits; the law is that of smaller scales."""
        law, m = ZeroSumLaplace(k, Fraction(2**56)), (1600 if k == 2 else 640) // k
        draws = drawn(law, m).astype(float)
        np.testing.assert_allclose(draws.sum(axis=1), 0, atol=2.0**12)
        assert abs(draws.var() / law.variance - 1) < 6 * 2.5 / math.sqrt(m * (k - 1))


class TestSumAndCount:
    @every("h", [1, 2, 3, 10])
    @every("epsilon", [0.8, 2.0, 9.0])
    def test_weights(self, h, epsilon):
        law, z = SumAndCount(h, Fraction(epsilon)), pairs(h, 50)
        norm = np.maximum(np.abs(z[:, 0]) / h, np.abs(z[:, 1]))
        weights = np.exp(-epsilon * norm)
        np.testing.assert_allclose(np.exp(law.logpmf(z)), weights / weights.sum(), rtol=1e-9)
        free = math.tanh(epsilon / 4) * math.tanh(epsilon / (4 * h))
        assert law.acceptance == pytest.approx(free * weights.sum(), rel=1e-9)
        assert law.acceptance > 0.2
        assert law.logpmf(np.array([h + 1.0, 1.0])) == -math.inf

    def test_of_bits_it_is_independent_noise_of_ones_and_zeros(self):
        law, z = SumAndCount(1, Fraction(1)), pairs(1, 20)
        ones, zeros = (z[:, 1] + z[:, 0]) / 2, (z[:, 1] - z[:, 0]) / 2
        expected = 2 * math.log(math.tanh(0.5)) - np.abs(ones) - np.abs(zeros)
        np.testing.assert_allclose(law.logpmf(z), expected, rtol=1e-12)

    @pytest.mark.parametrize("h", [1, 2, 5])
    def test_draws(self, h):
        law = SumAndCount(h, Fraction(3, 2))
        draws, z = drawn(law, 100_000), pairs(h, 5)
        assert not ((draws[:, 0] - h * draws[:, 1]) % 2).any()
        for factor, wrong in ((1, False), (Fraction(9, 10), True), (Fraction(11, 10), True)):
            assert chi_square(draws, z, np.exp(SumAndCount(h, factor * law.epsilon).logpmf(z))) == wrong

    @every("h", [1, 100, 2**52])
    @every("epsilon", [2.0**-25, 0.5, 9.0])
    def test_one_pair_is_drawn_as_by_arrays(self, h, epsilon):
        """From the same words; another scale draws other pairs, unless nearly all of its noise is 0."""
        width = min(h, int(2**55 * epsilon))
        law, other = (SumAndCount(width, Fraction(epsilon) * times) for times in (1, 2))
        found, different = np.empty((1, 2), np.int64), 0
        for seed in range(100):
            RejectedLaplace.fill(law, PCG64(seed), found)
            assert law.draw(PCG64(seed)) == tuple(found[0].tolist()) == tuple(drawn(law, 1, seed)[0].tolist())
            different += other.draw(PCG64(seed)) != tuple(found[0].tolist())
        assert different or epsilon > 1

    @pytest.mark.parametrize(("h", "epsilon"), [(2**32, 1.0), (2**52, 1.0), (2**30, 2.0**-25), (1, 2.0**-55)])
    def test_draws_of_any_size(self, h, epsilon):
        """The variances tend to 4 / epsilon**2 in units of h and of 1 as epsilon falls."""
        law = SumAndCount(h, Fraction(epsilon))
        draws = drawn(law, 2000)
        assert not ((draws[:, 0].astype(object) - h * draws[:, 1].astype(object)) % 2).any()
        scaled = draws / [h / epsilon, 1 / epsilon]
        assert abs(scaled[:, 0].var() / 4 - 1) < 0.25
        if epsilon < 1e-3:
            assert abs(scaled[:, 1].var() / 4 - 1) < 0.25

    @pytest.mark.parametrize("epsilon", [1e3, 1e9, 1e308])
    def test_large_epsilon(self, epsilon):
        law = SumAndCount(3, Fraction(epsilon))
        assert 0.2 < law.acceptance <= 1
        assert not drawn(law, 100).any()
        assert float(law.logpmf(np.zeros(2))) == pytest.approx(0)
        assert not drawn(ZeroSumLaplace(4, 2 / Fraction(epsilon)), 100).any()


class TestGeometrics:
    def test_a_draw_beyond_the_limit_goes_on(self):
        """A limit of 3 instead of 2**56: most draws pass it, and the law is the same."""
        scale, m = Fraction(5), 100_000
        draws = geometrics(PCG64(1), scale, (m,), 3)
        assert draws.dtype == object
        k = np.arange(60)
        for factor, wrong in ((1.0, False), (0.9, True), (1.1, True)):
            p = -math.expm1(-1 / (5 * factor)) * np.exp(-k / (5 * factor))
            found = np.bincount(np.minimum(draws.astype(int), 60), minlength=61)
            assert chi_square_rejects(found, np.append(p, 1 - p.sum())) == wrong

    @every("epsilon, ends", [(Fraction(2, 2**56), True), (Fraction(2, 2**56 + 1), False)])
    def test_a_scale_of_which_no_draw_would_end_is_refused(self, epsilon, ends):
        if ends:
            assert SumAndCount(1, epsilon).scale == 2**56
        else:
            with pytest.raises(ValueError, match=r"at most 2\*\*56"):
                SumAndCount(1, epsilon)

    def test_shapes(self):
        assert geometrics(PCG64(1), Fraction(5), (3, 2), 2**60).dtype == np.int64
        assert geometrics(PCG64(1), Fraction(2**56), (3, 0), 4).shape == (3, 0)
        assert geometrics(PCG64(1), Fraction(2**56), (3, 2), 2**56).shape == (3, 2)


@pytest.mark.kernel
@pytest.mark.parametrize("most", [1, 3, 2**60])
def test_zero_sums_have_their_law_whatever_is_far(most):
    """Draws of `most` or above are made in Python's integers, with the same law."""
    law, m = ZeroSumLaplace(3, Fraction(2)), 10_000
    out, filled, source = np.empty((m, 3), np.int64), 0, PCG64(7)
    while filled < m:
        filled += _samplers.fill_zero_sums(source, law.scale, 5000, most, out[filled:])
    assert (out.sum(axis=1) == 0).all()
    z = zero_sum_vectors(3, 4)
    assert not chi_square(out, z, np.exp(law.logpmf(z)))
    assert chi_square(out, z, np.exp(ZeroSumLaplace(3, Fraction(9, 4)).logpmf(z)))
