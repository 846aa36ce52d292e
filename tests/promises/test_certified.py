"""The proved bounds of src/shared/certified.h against ball arithmetic (docs/proofs/certified-doubles.md)."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq, fmpz

from dpfast._kernels import _samplers

pytestmark = pytest.mark.kernel


@pytest.fixture(autouse=True)
def precision():
    with ctx.workprec(200):
        yield


def words():
    rng = np.random.default_rng(1)
    full = rng.integers(1, 2**64, 4000, dtype=np.uint64)
    shifted = [full >> np.uint64(shift) for shift in range(64)]
    near_one = [~(full >> np.uint64(shift)) for shift in range(8, 64, 4)]
    powers = np.array([2**k + d for k in range(64) for d in (-1, 0, 1)] + [2**64 - 1], dtype=np.uint64)
    halves = (np.sqrt(0.5) * 2.0 ** np.arange(12, 64)).astype(np.uint64)
    every = np.concatenate([*shifted, *near_one, powers, halves, halves + np.uint64(1)])
    return np.unique(every[every > 0])


def test_neg_log_word_bound():
    w = words()[::7].copy()
    got = _samplers.neg_log_words(w)
    worst = max(
        abs(arb(g) + (arb(fmpz(int(word))) / arb(2) ** 64).log()) / (1 + g) for word, g in zip(w, got, strict=True)
    )
    assert worst < arb(2) ** -50
    assert worst > arb(2) ** -54, "the bound should be within a factor 16 of what is attained"


def exponents():
    rng = np.random.default_rng(2)
    u = rng.random(4000)
    log2 = np.log(2) * np.arange(1, 1022) / 2
    return np.concatenate(
        [[0.0], *(u * top for top in (1e-12, 1e-3, 0.35, 1.0, 40.0, 707.9)), log2, np.nextafter(log2, 0)]
    )


def rational(y):
    f = Fraction(float(y))
    return arb(fmpq(f.numerator, f.denominator))


def test_exp_neg_bound():
    y = exponents()
    got = _samplers.exp_negs(y)
    worst = max(abs(arb(g) / (-rational(v)).exp() - 1) / (1 + v) for v, g in zip(y, got, strict=True))
    assert worst < arb(2) ** -50
    assert worst > arb(2) ** -54


def test_exp_neg_is_zero_beyond_708():
    assert (_samplers.exp_negs(np.array([708.0, 709.0, 1e300, np.inf])) == 0).all()


def test_one_minus_exp_neg_bound():
    y = exponents()[1:]
    y = np.concatenate([y[y > 0], 2.0 ** -np.arange(1.0, 1000.0), [5e-324, 0.35, np.nextafter(0.35, 1)]])
    got = _samplers.one_minus_exp_negs(y)
    worst = max(abs(arb(g) / -(-rational(v)).expm1() - 1) for v, g in zip(y[y > 1e-300], got[y > 1e-300], strict=True))
    assert worst < arb(2) ** -47
    assert (got > 0).all()


def test_student_tail_bound():
    c = np.concatenate([10.0 ** np.linspace(-9, 21, 900), np.linspace(0.01, 4, 900)])
    c = np.append(c, [1.0, np.nextafter(1.0, 0), 2.5, np.nextafter(2.5, 0)])
    got = _samplers.student_tails(c)
    worst = arb(0)
    with ctx.workprec(600):
        for v, g in zip(c, got, strict=True):
            x = rational(v)
            worst = max(worst, abs(arb(g) / (1 - 2 / arb.pi() * (x.atan() + x / (1 + x * x))) - 1))
    assert worst < arb(2) ** -44
    assert worst > arb(2) ** -49
    assert _samplers.student_tails(np.array([0.0, np.inf])).tolist() == [1.0, 0.0]
