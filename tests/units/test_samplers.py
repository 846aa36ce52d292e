"""The samplers: exact laws, the same output on the fast and the slow path, words used, saturation."""

import os
import subprocess
import sys
import textwrap
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.random import PCG64

from dpfast._kernels import _balls, _samplers
from tests.cases import every
from tests.reference import laws
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.kernel


def fill_staircase(source, scale, out, **options):
    _samplers.fill_staircase(source, scale, 2, 1, out, **options)


FILLS = {
    "geometric": (_samplers.fill_geometric, laws.geometric),
    "rounded_laplace": (_samplers.fill_rounded_laplace, laws.rounded_laplace),
    "rounded_student3": (_samplers.fill_rounded_student3, laws.rounded_student3),
    "rounded_gaussian": (_samplers.fill_rounded_gaussian, laws.rounded_gaussian),
    "discrete_laplace": (_samplers.fill_discrete_laplace, laws.discrete_laplace),
    "staircase": (fill_staircase, lambda z, scale: laws.staircase(z, scale, 2, 1)),
}
SCALES = [1e-3, 0.3, 1.0, 12.5, Fraction(10, 3), 2.0**20 / 3]


def draws(fill, scale, n, seed=0, **options):
    out = np.empty(n, np.int64)
    fill(PCG64(seed), scale, out, **options)
    return out


@pytest.mark.parametrize("name", FILLS)
@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5, Fraction(10, 3)])
def test_law(name, scale):
    fill, pmf = FILLS[name]
    sample = draws(fill, scale, 150_000, seed=1)
    reach = int(8 * scale) + 3
    cells = np.arange(-reach, reach + 1)
    counts = np.array([np.count_nonzero(sample == z) for z in cells])
    for claimed, wrong in ((1, False), (Fraction(9, 10), True), (Fraction(11, 10), True)):
        p = [pmf(int(z), float(scale) * float(claimed)) for z in cells]
        observed, expected = np.append(counts, len(sample) - counts.sum()), [*p, max(mpf(0), 1 - mp.fsum(p))]
        assert chi_square_rejects(observed, expected) == wrong


@pytest.mark.parametrize("name", FILLS)
@pytest.mark.parametrize("scale", [*SCALES, 2.0**47])
def test_fast_path_is_the_slow_path(name, scale):
    fill, _ = FILLS[name]
    n = 120 if name == "rounded_student3" else 1200
    np.testing.assert_array_equal(draws(fill, scale, n), draws(fill, scale, n, exact=True))


@pytest.mark.slow
def test_a_million_draws_agree_with_the_slow_path():
    n = 1_000_000
    fast, slow = (draws(_samplers.fill_rounded_laplace, 1e4, n, seed=5, exact=exact) for exact in (False, True))
    np.testing.assert_array_equal(fast, slow)


def edge_words(scale, offset):
    """Words whose uniform number lies next to the edges between integers: the hardest to decide."""
    with mp.workdps(60):
        for k in range(1, 40):
            u = mp.exp(-(mpf(k) - mpf(offset)) / mpf(scale))
            word = int(mp.floor(u * mpf(2) ** 64))
            yield from (w for w in range(word - 2, word + 3) if 0 < w < 2**64)


@pytest.mark.parametrize("scale", [0.7, 5.0, 1000.0])
def test_edges_are_left_to_ball_arithmetic_and_decided_right(scale):
    words = list(edge_words(scale, 0.5))
    out = np.empty(len(words), np.int64)
    _samplers.fill_rounded_laplace(ScriptedBits(words, PCG64(1)), scale, out)
    with mp.workdps(60):
        for word, z in zip(words, out, strict=True):
            ends = [mp.floor(-mpf(scale) * mp.log(mpf((word >> 1) + d) / mpf(2) ** 63) + mpf("0.5")) for d in (0, 1)]
            assert min(ends) <= abs(int(z)) <= max(ends)
            assert (z <= 0) if word & 1 else (z >= 0)


@pytest.mark.parametrize("scale", [0.7, 1000.0, 1e6])
def test_student_edges_are_left_to_ball_arithmetic_and_decided_right(scale):
    with mp.workdps(60):
        edges = [(k, laws.student3_tail((k - mpf("0.5")) / mpf(scale))) for k in (*range(1, 12), 1000)]
        words = [int(mp.floor(edge * 2**64)) + d for _, edge in edges for d in (-2, -1, 0, 1, 2)]
        fast, slow = np.empty(len(words), np.int64), np.empty(len(words), np.int64)
        _samplers.fill_rounded_student3(ScriptedBits(words, PCG64(1)), scale, fast)
        _samplers.fill_rounded_student3(ScriptedBits(words, PCG64(1)), scale, slow, exact=True)
        np.testing.assert_array_equal(fast, slow)
        for i, (word, z) in enumerate(zip(words, fast.tolist(), strict=True)):
            k, edge = edges[i // 5]
            inside = word >> 1 <= edge * 2**63 <= (word >> 1) + 1
            allowed = (k - 1, k) if inside else (k,) if word < edge * 2**64 else (k - 1,)
            assert abs(z) in allowed
            assert (z <= 0) if word & 1 else (z >= 0)


def test_student_saturation_and_extreme_scales():
    assert (draws(_samplers.fill_rounded_student3, 5e-324, 1000) == 0).all()
    huge = draws(_samplers.fill_rounded_student3, 2.0**56, 100)
    assert 0.6 < np.median(np.abs(huge)) / 2.0**56 < 1.0
    out = np.empty(1, np.int64)
    _samplers.fill_rounded_student3(ScriptedBits([0, 1], PCG64(1)), 2.0**56, out)
    assert out[0] == 2**63 - 1


def test_the_naive_double_decides_some_edges_wrongly():
    """Positive control: without the margin, doubles alone give other integers on these words."""
    scale, wrong = 1000.0, 0
    words = np.array(list(edge_words(scale, 0.5)), dtype=np.uint64)
    exact = [_balls.floor_exponential(int(w), lambda: 2**63, scale, Fraction(1, 2)) for w in words]
    naive = np.floor(-scale * np.log((words >> np.uint64(1)) * 2.0**-63) + 0.5)
    wrong = np.count_nonzero(naive != exact)
    assert wrong > 0


def test_undecided_words_ask_for_more_words():
    """The word 0 says only that U < 2**-63: one more word decides, and the time shows it (T6 of docs/threats.md)."""
    source = ScriptedBits([0, 2**63])
    out = np.empty(1, np.int64)
    _samplers.fill_geometric(source, 1.0, out)
    assert source.used == 2
    assert out[0] == int(mp.floor(-mp.log(mpf(2) ** -64)))


@pytest.mark.parametrize("name", ["geometric", "rounded_laplace", "rounded_student3", "rounded_gaussian"])
def test_one_word_per_draw(name):
    source = ScriptedBits(rest=PCG64(3))
    FILLS[name][0](source, 100.0, np.empty(5000, np.int64))
    assert source.used == 5000


def test_saturation_and_extreme_scales():
    source = ScriptedBits([0] * 40 + [1], PCG64(1))
    out = np.empty(1, np.int64)
    _samplers.fill_geometric(source, 2.0**56, out)
    assert out[0] == 2**63 - 1
    tiny = draws(_samplers.fill_rounded_laplace, 5e-324, 1000)
    assert (tiny == 0).all()
    huge = draws(_samplers.fill_rounded_laplace, 2.0**56, 400)
    assert 0.5 < np.abs(huge / 2.0**56).mean() < 1.6


@every("scale", [5e-324, 0.3, Fraction(10, 3), 2.0**47, 2.0**56])
def test_one_draw_is_that_of_a_fill(scale):
    """From the same words: seeded ones, and words that ask for more."""
    for seed in range(200):
        assert (
            _samplers.one_discrete_laplace(PCG64(seed), scale) == draws(FILLS["discrete_laplace"][0], scale, 1, seed)[0]
        )
    for words in ([0, 2**63, 5], [2**63, 0, 7], [0, 1, 0, 1], [2**64 - 1, 3]):
        one, filled, out = ScriptedBits(words, PCG64(1)), ScriptedBits(words, PCG64(1)), np.empty(1, np.int64)
        _samplers.fill_discrete_laplace(filled, scale, out)
        assert _samplers.one_discrete_laplace(one, scale, float(scale)) == out[0]
        assert one.used == filled.used


@every("scale", [5e-324, 0.3, Fraction(10, 3), 2.0**47, 2.0**56])
def test_one_rounded_laplace_is_that_of_a_fill(scale):
    for seed in range(200):
        drawn = draws(_samplers.fill_rounded_laplace, scale, 1, seed)[0]
        assert _samplers.one_rounded_laplace(PCG64(seed), scale) == drawn
    for words in ([0, 2**63, 5], [2**63, 0, 7], [1, 0, 1], [2**64 - 1, 3]):
        one, filled, out = ScriptedBits(words, PCG64(1)), ScriptedBits(words, PCG64(1)), np.empty(1, np.int64)
        _samplers.fill_rounded_laplace(filled, scale, out)
        assert _samplers.one_rounded_laplace(one, scale) == out[0]
        assert one.used == filled.used


def test_empty_fills():
    for fill, _ in FILLS.values():
        fill(PCG64(1), 1.0, np.empty(0, np.int64))


@every("last", [0, 1, 2, 9, 2**32, 2**63, 2**64 - 1])
def test_uniform_stays_in_range(last):
    out = np.empty(2000, np.uint64)
    _samplers.fill_uniform(PCG64(1), last, out)
    assert int(out.max()) <= last
    if last in (1, 2, 9):
        counts = np.bincount(out.astype(int), minlength=last + 1)
        assert not chi_square_rejects(counts, [1 / (last + 1)] * (last + 1))


def test_uniform_rejects_exactly_the_unfair_words():
    """2**64 = 1 mod 3: of all words only 0 is drawn again, so each of 0, 1, 2 has (2**64 - 1) / 3 words."""
    third = 2**64 // 3
    kept = [1, third, third + 1, 2 * third, 2 * third + 1, 2 * third + 2, 2**64 - 1]
    out = np.empty(len(kept), np.uint64)
    source = ScriptedBits([0, *kept])
    _samplers.fill_uniform(source, 2, out)
    assert out.tolist() == [word * 3 >> 64 for word in kept] == [0, 0, 1, 1, 2, 2, 2]
    assert source.used == 1 + len(kept)


def test_bernoulli_compares_digit_after_digit():
    out = np.empty(3, np.uint8)
    digits = 2**64 // 3  # 1/3 in base 2**64 is this digit, again and again
    source = ScriptedBits([digits, digits, digits - 1, digits + 1, digits, digits + 1])
    _samplers.fill_bernoulli(source, 1, 3, out)
    assert out.tolist() == [1, 0, 0]
    assert source.used == 6


@every("numerator, denominator", [(0, 1), (1, 1), (1, 3), (2**63, 2**64 - 1), (2**64 - 2, 2**64 - 1)])
def test_bernoulli_law(numerator, denominator):
    out = np.empty(200_000, np.uint8)
    _samplers.fill_bernoulli(PCG64(2), numerator, denominator, out)
    p = Fraction(numerator, denominator)
    assert not chi_square_rejects(np.bincount(out, minlength=2), [1 - p, p])


def test_bernoulli_dyadic():
    out = np.empty(4, np.uint8)
    _samplers.fill_bernoulli_dyadic(ScriptedBits([0, 9, 10, 2**64 - 1]), 10, out)
    assert out.tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("gamma", [0, 1e-18, 0.1, Fraction(1, 3), 3.0, 50.0, 1e6, 1e300])
def test_bernoulli_exp(gamma):
    fast, slow = np.empty(2000, np.uint8), np.empty(2000, np.uint8)
    _samplers.fill_bernoulli_exp(PCG64(3), gamma, fast)
    _samplers.fill_bernoulli_exp(PCG64(3), gamma, slow, exact=True)
    np.testing.assert_array_equal(fast, slow)
    many = np.empty(200_000, np.uint8)
    _samplers.fill_bernoulli_exp(PCG64(4), gamma, many)
    p = float(mp.exp(-mpf(float(gamma))))
    assert not chi_square_rejects(np.bincount(many, minlength=2), [1 - p, p])
    if 0.05 < p < 0.95:
        assert chi_square_rejects(np.bincount(many, minlength=2), [1 - 0.9 * p, 0.9 * p])


def test_slow_path_restores_the_precision_of_flint():
    from flint import ctx

    before = ctx.prec
    _balls.below_exp_neg(2**63, lambda: 0, 0.5)
    assert ctx.prec == before


REENTRY = """
    import os, signal
    import dpfast.noise
    from dpfast._kernels import _balls

    signal.alarm(20)  # a deadlock fails
    with _balls.working_bits(100):  # as a signal handler that draws or forks at the worst moment
        assert _balls.below_exp_neg(0, lambda: 0, 1.0)
        assert _balls.ctx.prec == 100
        child = os.fork()
        assert _balls.below_exp_neg(0, lambda: 0, 1.0)
    assert _balls._precision.acquire(blocking=False)
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_precision_lock_is_reentrant():
    subprocess.run([sys.executable, "-c", textwrap.dedent(REENTRY)], check=True)
