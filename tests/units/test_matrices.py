"""Noise on symmetric matrices: differences of Wishart matrices."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64
from scipy.stats import norm

from dpfast._kernels._vector_balls import round_wishart
from dpfast.laws import RoundedLaplace, WishartDifference
from tests.cases import every
from tests.scripted import ScriptedBits
from tests.statistical import ALPHA, chi_square_rejects


def draws(noise, n, seed=0):
    out = np.empty((n, noise.dimension), np.int64)
    noise.fill(PCG64(seed), out)
    return out


def twin(words, scales, more):
    """All entries of one draw in ball arithmetic, from words of shape (2, side, side + 1)."""
    above = itertools.combinations_with_replacement(range(words.shape[1]), 2)
    return round_wishart(words.tolist(), more, [(i, j, s) for (i, j), s in zip(above, scales, strict=False)])


class TestWishartDifference:
    @every("scale", [Fraction(1, 1000), Fraction(1), Fraction(73, 10), 2**20, 2**34, 2**44, 2**56])
    @every("side", [1, 2, 4])
    def test_doubles_and_balls_agree(self, side, scale):
        entries, count = side * (side + 1) // 2, 6 if side < 4 else 1
        scales = [Fraction(scale)] * (entries - (side > 1))
        sample = draws(WishartDifference(side, scales), count, seed=5)
        source = PCG64(5)
        words = source.random_raw(count * 2 * side * (side + 1)).astype(np.uint64).reshape(count, 2, side, side + 1)
        for row, drawn in zip(words, sample, strict=True):
            assert drawn.tolist() == twin(row, scales, lambda: int(source.random_raw()))

    def test_words_at_the_ends(self):
        """Words that no double decides, the greatest magnitudes and the smallest."""
        noise = WishartDifference(2, [Fraction(2**20)] * 3)
        for words in (
            [0, 1, 4095, 4096] * 3,
            [2**64 - 1, 2**64 - 2, 2**63, 2**56] * 3,
            [4097, 2**57 - 1, 2**61, 1] * 3,
        ):
            rest = [2**63 + 12345, 77, 2**40 + 9] * 40
            out = np.empty((1, 3), np.int64)
            noise.fill(ScriptedBits([*words, *rest]), out)
            following = iter(rest)
            exact = twin(np.array(words, np.uint64).reshape(2, 2, 3), noise.scales, lambda f=following: next(f))
            assert out[0].tolist() == exact

    def test_one_by_one_is_the_laplace_law(self):
        """Two squares of normal numbers add up to twice an exponential one."""
        sample = draws(WishartDifference(1, [Fraction(3)]), 100_000)[:, 0]
        k = np.arange(-80, 81)
        counts = np.bincount(np.clip(sample, -80, 80) + 80, minlength=161)

        def law(scale):
            probabilities = np.exp(RoundedLaplace(scale).logpmf(k.astype(float)))
            probabilities[[0, -1]] = np.exp(RoundedLaplace(scale).log_tail(np.array([80.0])))
            return probabilities

        assert not chi_square_rejects(counts, law(6.0))
        assert chi_square_rejects(counts, law(5.4))
        assert chi_square_rejects(counts, law(6.6))

    def test_entries_have_their_scales(self):
        """Second moments: 4 (side + 1) scale^2 on the diagonal, half of it off the diagonal."""
        side, scales = 3, [Fraction(s) for s in (100, 100, 300, 100, 300)]
        sample = draws(WishartDifference(side, scales), 100_000, seed=3) / np.array([float(s) for s in scales])
        expected = np.array([4.0, 2, 2, 4, 2]) * (side + 1)
        squares = sample**2
        errors = squares.std(axis=0) / np.sqrt(len(sample))
        distance = np.abs(squares.mean(axis=0) - expected) / errors
        assert distance.max() < norm.isf(ALPHA)
        for factor in (0.9, 1.1):
            assert (
                np.abs((factor**2 * squares.mean(axis=0) - expected) / (factor**2 * errors)) > norm.isf(ALPHA)
            ).all()
        assert (np.abs(sample.mean(axis=0)) < norm.isf(ALPHA) * sample.std(axis=0) / np.sqrt(len(sample))).all()

    def test_has_no_probabilities(self):
        with pytest.raises(TypeError, match="closed form"):
            WishartDifference(2, [Fraction(1)] * 3).logpmf(np.zeros(3))


def density(a, nodes=60):
    """exp(-tr(W) - tr(W + A)) over all 2 x 2 matrices W with W and W + A positive semidefinite: that of W' - W = A.

    `a` has the eigenvalues of A. The entry off the diagonal lies between plus and minus the lesser of two roots.
    """
    first, second = np.maximum(-np.asarray(a), 0)
    x, weights = np.polynomial.legendre.leggauss(nodes)
    t, weights = (x + 1) * 15, weights * 15
    t, weights = t**2 / 30, weights * t / 15  # more nodes near 0, where the roots vanish
    u, v = first + t[:, None], second + t
    most = np.minimum(np.sqrt(u * v), np.sqrt((u + a[0]) * (v + a[1])))
    return weights @ (2 * most * np.exp(-2 * (u + v) - sum(a))) @ weights


def test_the_loss_of_a_difference_is_at_most_the_trace():
    """f(A) <= exp(tr P) f(A + P), P of rank 1, where W has the density exp(-tr W), and it is almost attained."""
    rng = np.random.default_rng(0)
    largest = 0.0
    for _ in range(60):
        a = np.diag(rng.normal(size=2) * rng.choice([0.3, 2.0, 4.0], 2))
        p = rng.normal(size=2) * rng.choice([0.3, 1.0])
        for sign in (1, -1):
            b = a + sign * np.outer(p, p)
            loss = np.log(density(np.diag(a)) / density(np.linalg.eigvalsh(b)))
            largest = max(largest, loss / (p @ p))
    assert 0.95 < largest < 1 + 1e-3
