"""Noise on vectors by a norm: law, privacy, edges, extreme words and scales, fast path against slow path."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.random import PCG64
from scipy.stats import gamma

from dpfast import noise
from dpfast._kernels import _knorm
from dpfast.laws import DiscreteLaplace, LatticeBox, RoundedBall, RoundedBox, RoundedLaplace
from dpfast.random import BLOCK, streams
from tests.cases import every
from tests.reference import knorm
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects, kolmogorov_rejects, row_counts

pytestmark = pytest.mark.kernel

LARGEST = 2**63 - 1
LAWS = {"box": RoundedBox, "ball": RoundedBall}
FILLS = {"box": _knorm.fill_box, "ball": _knorm.fill_ball, "lattice": _knorm.fill_lattice_box}
PUBLIC = {"box": noise.box, "ball": noise.ball}
WORDS = {
    "box": lambda d: (d, d + 1),
    "ball": lambda d: (d + d % 2, d // 2),
}  # of a row: for the direction, for the length


def array(scales):
    return np.array(scales, float if all(isinstance(s, float) for s in scales) else object)


def draws(kind, scales, m, seed=0, source=None, **options):
    out = np.empty((m, len(scales)), np.int64)
    FILLS[kind](source or PCG64(seed), array(scales), out, **options)
    return out


def from_words(kind, scales, words, **options):
    """One row from its words; further words come from a generator."""
    return draws(kind, scales, 1, source=ScriptedBits(words, PCG64(1)), **options)[0].tolist()


def lattice(*reaches):
    """All integer vectors within these reaches, shape (m, d)."""
    return np.array(list(itertools.product(*(range(-reach, reach + 1) for reach in reaches))), float)


# The law


@pytest.mark.parametrize(
    "scales",
    [[1.0], [0.3, 0.3], [2.0, 0.7], [Fraction(1, 3), 5.0], [0.02, 0.05], [1.5, 0.4, 1.0], [3.0, 3.0, 3.0, 0.5]],
)
def test_probabilities_of_the_box(scales):
    rng = np.random.default_rng(1)
    z = np.rint(rng.laplace(0, 2.0 * np.array(scales, float), (7, len(scales))))
    z[0], z[1] = 0, np.arange(len(scales))
    with mp.workdps(30):
        for row, found in zip(z.astype(int).tolist(), RoundedBox(scales).logpmf(z).tolist(), strict=True):
            assert abs(mp.log(knorm.box_probability(row, scales)) - mpf(found)) < 1e-12


def test_probabilities_of_the_box_far_out_and_in_many_dimensions():
    """Equal scales lose no digits to the size of z; in many dimensions a direct sum of the same integral."""
    z = [[10**12, 10**12 - 3], [5, 10**12]]
    found = RoundedBox([1e9, 1e9]).logpmf(np.array(z, float))
    with mp.workdps(40):
        for row, log_p in zip(z, found.tolist(), strict=True):
            assert abs(mp.log(knorm.box_probability(row, [1e9, 1e9])) - mpf(log_p)) < 2e-12
        row = [(7 * i) % 31 - 15 for i in range(30)]
        exact = mp.log(knorm.box_probability(row, [2.0] * 30))
        assert abs(exact - mpf(float(RoundedBox([2.0] * 30).logpmf(np.array(row, float))))) < 1e-11


def test_the_box_of_one_dimension_is_rounded_laplace():
    for scale in (0.05, 0.7, 30.0, Fraction(1, 3)):
        z = np.arange(-20.0, 21.0)
        np.testing.assert_allclose(RoundedBox([scale]).logpmf(z[:, None]), RoundedLaplace(scale).logpmf(z), atol=1e-12)


@pytest.mark.parametrize(
    ("scales", "reach"),
    [
        ([1.0], 5),
        ([0.05], 1),
        ([1.3, 1.3], 9),
        ([0.3, 2.0], 4),
        ([1000.0, 700.0], 4000),
        pytest.param([0.4] * 3, 2, marks=pytest.mark.slow),
    ],
)
def test_probabilities_of_the_ball(scales, reach):
    rng = np.random.default_rng(1)
    z = rng.integers(-reach, reach + 1, (6 if len(scales) < 3 else 2, len(scales))).astype(float)
    z[0] = 0
    z[1] = 0 if len(scales) == 3 else np.eye(len(scales))[0]
    z[1, -1] = 1
    with mp.workdps(25 if len(scales) < 3 else 16):
        for row, found in zip(z.astype(int).tolist(), RoundedBall(scales).logpmf(z).tolist(), strict=True):
            assert abs(mp.log(knorm.ball_probability(row, scales)) - mpf(found)) < 1e-12


def test_the_ball_of_one_dimension_is_rounded_laplace():
    for scale in (0.05, 0.7, 30.0, Fraction(1, 3)):
        z = np.arange(-20.0, 21.0)
        np.testing.assert_allclose(RoundedBall([scale]).logpmf(z[:, None]), RoundedLaplace(scale).logpmf(z), atol=1e-12)


@pytest.mark.parametrize("scales", [[1.0] * 4, [0.01], [1.0, 17.0]])
def test_limits_of_probabilities_of_the_ball(scales):
    with pytest.raises(TypeError, match="at most three"):
        RoundedBall(scales).logpmf(np.zeros(len(scales)))


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("scales", [[0.4, 0.9], [0.12, 0.12, 0.12]])
def test_probabilities_add_up(kind, scales):
    """By the points of one orthant: `test_law` looks at all signs."""
    reaches = [math.ceil(40 * max(s, 0.5)) if len(scales) == 2 else math.ceil(33 * s) for s in scales]
    z = np.array(list(itertools.product(*(range(reach + 1) for reach in reaches))), float)
    signs = 2.0 ** np.count_nonzero(z, axis=1)
    assert math.fsum(signs * np.exp(LAWS[kind](scales).logpmf(z))) == pytest.approx(1, abs=1e-11)


def greatest_loss(kind, scales, shifts, reach):
    """The greatest |log P(z) - log P(z - shift)| over a lattice of outcomes."""
    z, law = lattice(*[reach] * len(scales)), (LatticeBox if kind == "lattice" else LAWS[kind])(scales)
    return max(np.abs(law.logpmf(z) - law.logpmf(z - shift)).max() for shift in shifts)


@every("epsilon", [0.3, 1.0, 3.0])
@every("kind", ["box", "lattice"])
def test_privacy_of_the_box(kind, epsilon):
    """Over all integer shifts in the box of half-widths (2, 3); scales for half-widths 10 % too small lose more."""
    widths = np.array([2.0, 3.0])
    shifts = [v for v in lattice(2, 3) if v.any()]
    assert greatest_loss(kind, (widths / epsilon).tolist(), shifts, 9) <= epsilon * (1 + 1e-12)
    assert greatest_loss(kind, (0.9 * widths / epsilon).tolist(), shifts, 9) > epsilon


@pytest.mark.parametrize("epsilon", [1.0])
def test_privacy_of_the_ball(epsilon):
    """Over all integer shifts of l2 norm at most 2.3; a radius 10 % too small loses more."""
    shifts = [v for v in lattice(2, 2) if 0 < np.hypot(*v) <= 2.3]
    radius = math.sqrt(5)  # of (1, 2)
    assert greatest_loss("ball", [radius / epsilon] * 2, shifts, 8) <= epsilon * (1 + 1e-12)
    assert greatest_loss("ball", [0.9 * radius / epsilon] * 2, shifts, 8) > epsilon


# The bounds of the doubles


def rough_words(rng, n):
    """Words of all lengths above 13 bits, most of them long."""
    long = rng.integers(2**63, 2**64, n, dtype=np.uint64)
    return long >> np.where(rng.random(n) < 1 / (n + 9), rng.integers(0, 51, n), rng.integers(0, 8, n)).astype(
        np.uint64
    )


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 16, 120, 121, 129, 300])
def test_gamma_variables_against_their_bound(n):
    rng, ratios = np.random.default_rng(n), []
    with mp.workdps(40):
        for words in (
            *(rough_words(rng, n) for _ in range(12 if n < 300 else 6)),
            np.full(n, 2**64 - 1),
            np.full(n, 2**53 + 1),
        ):
            words = words.astype(np.uint64)
            r, error = _knorm.gamma_of_words(words)
            ratios += [float(abs(mpf(r) - end) / error) for end in knorm.gamma_between(words.tolist())]
    assert max(ratios) < 1
    assert max(ratios) > (0.01 if n < 300 else 0.003)  # many roundings average out


@pytest.mark.parametrize("d", [1, 2, 3, 16, 17, 257])
def test_units_of_the_ball_against_their_bound(d):
    (first, second), rng, ratios = WORDS["ball"](d), np.random.default_rng(d), []
    with mp.workdps(40):
        for _ in range(10 if d < 100 else 3):
            words = np.concatenate([rough_words(rng, first), rough_words(rng, second)])
            unit, error = _knorm.ball_unit_of_words(words, d)
            if error > 2.0**-6:
                continue
            exact = knorm.ball_unit(words[:first].tolist(), words[first:].tolist(), d)
            ratios.append(float(abs(exact / mpf(unit) - 1) / error))
    assert max(ratios) < 1
    assert max(ratios) > (0.01 if d < 100 else 1e-3)  # many roundings average out


# The draws


def with_rest(p):
    return np.append(p, max(0.0, 1 - math.fsum(p)))


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("scales", [[0.7], [1.0, 1.0], [0.4, 2.0], [0.8, 0.5, 0.8]])
def test_law(kind, scales):
    z = lattice(*[8 if len(scales) < 3 else 2] * len(scales))
    counts = row_counts(draws(kind, scales, 300_000, seed=1), z)
    for factor, wrong in ((1, False), (0.9, True), (1.1, True)):
        p = np.exp(LAWS[kind]([factor * s for s in scales]).logpmf(z))
        assert chi_square_rejects(counts, with_rest(p)) == wrong


def simulated(kind, d, shape, m, seed=3):
    """The continuous noise of scale 1 by NumPy, with a length of Gamma(shape)."""
    rng = np.random.default_rng(seed)
    directions = rng.uniform(-1, 1, (m, d)) if kind == "box" else rng.standard_normal((m, d))
    if kind == "ball":
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return rng.gamma(shape, size=(m, 1)) * directions


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("d", [2, 3])
def test_another_gamma_variable_is_rejected(kind, d):
    """Gamma(d + 1) for points in the box, Gamma(d) for points on the ball, and not the other way round."""
    right = {"box": d + 1, "ball": d}[kind]
    z = lattice(*[6 if d < 3 else 4] * d)
    p = with_rest(np.exp(LAWS[kind]([1.0] * d).logpmf(z)))
    for shape in (d, d + 1):
        counts = row_counts(np.rint(simulated(kind, d, shape, 200_000)).astype(np.int64), z)
        assert chi_square_rejects(counts, p) == (shape != right)


def size_of(kind, x):
    return np.abs(x).max(axis=1) if kind == "box" else np.linalg.norm(x, axis=1)


@every("kind", LAWS)
@every("d", [1, 2, 7, 8, 100, 333])
def test_sizes_and_moments(kind, d):
    """The norm is a Gamma(d) variable, whatever the norm; each coordinate has its mean and variance."""
    m = 20_000 if d < 100 else 4_000
    scales = np.linspace(1, 2, d) * 1e6
    x = draws(kind, scales.tolist(), m, seed=2) / scales
    size = size_of(kind, x)
    for shape, wrong in ((d, False), (d + 1, True), (d - 0.9, True)):
        if d < 100 or not wrong:
            assert kolmogorov_rejects(size, lambda t, shape=shape: gamma.cdf(t, shape)) == wrong
    law = LAWS[kind](scales)
    for power, exact in ((1, law.expected_size / scales), (2, law.variance / scales**2)):
        terms = np.abs(x) ** power / exact
        assert abs(terms.mean() - 1) < 6.2 * terms.mean(axis=1).std() / math.sqrt(m)
    assert np.abs((x / np.sqrt(law.variance) * scales).mean(axis=0)).max() < 6.5 / math.sqrt(m)


@every("kind", LAWS)
@every("d", [1, 2, 3, 16, 17, 40, 150])
@every("scale", [5e-324, 0.3, 1.0, Fraction(10, 3), 2.0**20, 2.0**30])
def test_fast_path_is_the_slow_path(kind, d, scale):
    m = max(2, 200 // d)
    fast, slow = (draws(kind, [scale] * d, m, seed=4, exact=exact) for exact in (False, True))
    np.testing.assert_array_equal(fast, slow)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("d", [2, 100])
def test_a_million_coordinates_agree_with_the_slow_path(kind, d):
    fast, slow = (draws(kind, [2.0**20] * d, 1_000_000 // d, seed=5, exact=exact) for exact in (False, True))
    np.testing.assert_array_equal(fast, slow)


@every("scale", [0.7, 5.0, 1000.0, 2.0**30])
@every("d", [1, 2, 30])
def test_words_next_to_edges_of_the_box(d, scale):
    """The words of a coordinate at which it changes, given those of the length: both paths, and the definition."""
    rng = np.random.default_rng(d)
    radii = [int(w) for w in rng.integers(2**50, 2**64, d + 1, dtype=np.uint64)]
    with mp.workdps(60):
        r = mp.fsum(knorm.gamma_between(radii)) / 2
        ks = [k for k in (1, 2, 5, int(0.3 * scale * d), int(0.9 * scale * d)) if 0 < k < scale * r]
        for k in ks:
            edge = int(mp.floor((k - mpf("0.5")) / (r * scale) * 2**64))
            for near in (-3000, -2, -1, 0, 1, 2, 3000):
                words = [(edge + near) % 2**64] * d
                fast = from_words("box", [scale] * d, words + radii)
                assert fast == from_words("box", [scale] * d, words + radii, exact=True)
                for z, (low, high) in zip(fast, knorm.box_between(words, radii, [scale] * d), strict=True):
                    assert low <= z <= high


def ball_edge(k, scale, others, radii):
    """The largest first word whose magnitude is above k + 1/2, by bisection: it decreases in the word."""
    low, high = 0, 2**64
    while high - low > 1:
        middle = (low + high) // 2
        point = knorm.ball_point([middle, *others], radii, [scale] * 2)[0]
        low, high = (middle, high) if point > k + mpf("0.5") else (low, middle)
    return low


@pytest.mark.parametrize("scale", [5.0, 1000.0, 2.0**30])
def test_words_next_to_edges_of_the_ball(scale):
    with mp.workdps(40):
        for others, radii, shares in (
            ([2**62 + 1], [2**63], (0.2, 1.9)),
            ([2**63 + 2**61], [2**60 + 7], (0.7,)),
        ):
            size = knorm.ball_point([2**62, *others], radii, [scale] * 2)[0]
            for share in shares:
                k = int(share * size)
                edge = ball_edge(k, scale, others, radii)
                for near in (-3000, -1, 0, 1, 3000):
                    words = [edge + near, *others, *radii]
                    fast = from_words("ball", [scale] * 2, words)
                    assert fast == from_words("ball", [scale] * 2, words, exact=True)
                    point = knorm.ball_point(words[:2], radii, [scale] * 2)
                    for word, z, exact in zip(words, fast, point, strict=False):
                        assert abs(abs(z) - exact) < mpf("0.5") + scale * mpf(2) ** -55
                        assert (z <= 0) if word & 1 else (z >= 0)
                    assert abs(near) < 3000 or scale > 1e6 or abs(fast[0]) == k + (near < 0)


@pytest.mark.parametrize("d", [1, 2, 3, 10, 100])
def test_the_ball_against_its_definition(d):
    """Words of all branches of the inverse normal; the result is within rounding of the real magnitudes."""
    first, second = WORDS["ball"](d)
    rng = np.random.default_rng(d)
    with mp.workdps(30):
        for _ in range(3 if d < 100 else 1):
            words = (
                rng.integers(2**63, 2**64, first, dtype=np.uint64) >> rng.integers(0, 40, first, dtype=np.uint64)
            ).tolist()
            radii = [int(w) for w in rng.integers(2**30, 2**64, second, dtype=np.uint64)]
            scales = np.exp2(rng.uniform(0, 8, d)).tolist()
            fast = from_words("ball", scales, words + radii)
            assert fast == from_words("ball", scales, words + radii, exact=True)
            for word, z, exact in zip(words, fast, knorm.ball_point(words, radii, scales), strict=False):
                assert abs(abs(z) - exact) < mpf("0.5") + 0.01
                assert (z <= 0) if word & 1 else (z >= 0)


def test_doubles_alone_decide_some_edges_wrongly():
    """Positive control: without the margin words next to edges give other integers."""
    scale, radii, wrong = 2.0**20, [2**63 + 12345, 2**62 + 99], 0
    with mp.workdps(60):
        r = mp.fsum(knorm.gamma_between(radii)) / 2
        for k in range(1, 400):
            word = int(mp.floor((k * 1000 + mpf("0.5")) / (r * scale) * 2**64)) & ~1
            naive = round(-math.log((radii[0] * 2.0**-64) * (radii[1] * 2.0**-64)) * scale * (word * 2.0**-64))
            wrong += naive != from_words("box", [scale], [word, *radii])[0]
    assert wrong > 0


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("d", [1, 2, 19])
@pytest.mark.parametrize("scale", [5e-324, 1.0, 1e6, 2.0**56])
def test_extreme_words(kind, d, scale):
    first, second = WORDS[kind](d)
    extremes = [0, 1, 2, 3, 2**12 - 1, 2**12, 2**53, 2**64 - 1, 2**64 - 2]
    for a, b in itertools.product(extremes, extremes if d < 19 else [0, 2**12, 2**64 - 1]):
        words = [a] * first + [b] * second
        fast, slow = (from_words(kind, [scale] * d, words, exact=exact) for exact in (False, True))
        if scale < 2**40:
            assert fast == slow
        assert all(abs(z) <= LARGEST for z in fast + slow)
        if scale < 1e-300:
            assert not any(fast)


def test_saturation():
    words = [2**64 - 2, 2**64 - 1, *[0] * 3, *[0] * 100]
    assert from_words("box", [2.0**56] * 2, words) == [LARGEST, -LARGEST]


def test_scripted_words_of_the_box():
    """r = -log of the product of the last words, the first bits are the sizes, the last bits the signs."""
    half, e = 2**63, 2**64 / math.e
    assert from_words("box", [100.0, 10.0], [half, half + 1, int(e), int(e), 2**64 - 1]) == [100, -10]


@every("kind", LAWS)
@every("d", [1, 2, 3, 50])
def test_words_of_a_row(kind, d):
    source = ScriptedBits([], PCG64(1))
    draws(kind, [1.0] * d, 5, source=source)
    assert source.used == 5 * sum(WORDS[kind](d))


# The lattice


def lattice_total(scales):
    """The sum over the lattice, where it has a closed form or few terms."""
    s = [knorm.exactly(scale) for scale in scales]
    q = mp.exp(-1 / s[0])
    if len(set(scales)) == 1:  # (2 m + 1)^d - (2 m - 1)^d points have the maximum m
        return (
            (1 + q) / (1 - q),
            1 + 8 * q / (1 - q) ** 2,
            1 + 24 * q * (1 + q) / (1 - q) ** 3 + 2 * q / (1 - q),
        )[len(scales) - 1]
    reaches = [range(-int(50 * scale) - 1, int(50 * scale) + 2) for scale in s]
    return mp.fsum(mp.exp(-max(abs(k) / c for k, c in zip(z, s, strict=True))) for z in itertools.product(*reaches))


EQUAL = [[scale] * d for d in (1, 2, 3) for scale in (0.01, 0.7, 40.0, 2.0**17, 2.0**40)]


@pytest.mark.parametrize("scales", [*EQUAL, [0.3, 1.1], [2.0, 0.05], [Fraction(1, 3), 0.5], [0.2, 0.3, 0.25]])
def test_probabilities_on_the_lattice(scales):
    tolerance = 1e-12 if scales.count(2.0**17) < 2 else 2e-11
    with mp.workdps(40):
        found = float(LatticeBox(scales).logpmf(np.zeros(len(scales))))
        assert abs(mpf(found) + mp.log(lattice_total(scales))) < tolerance


def test_the_lattice_of_one_dimension_is_discrete_laplace():
    z = np.arange(-20.0, 21.0)
    for scale in (0.05, 0.7, 30.0, Fraction(1, 3)):
        found = LatticeBox([scale]).logpmf(z[:, None])
        np.testing.assert_allclose(found, DiscreteLaplace(scale).logpmf(z), atol=1e-12)


@every("scales", [[0.01], [1.5], [0.3, 1.1], [2.0, 0.05], [2.5, 2.5], [0.2, 0.3, 0.25], [2000.0, 2000.0]])
def test_moments_on_the_lattice(scales):
    law = LatticeBox(scales)
    if max(scales) < 1000:
        reach = int({1: 60, 2: 60, 3: 100}[len(scales)] * max(scales)) + 100 * (min(scales) == 0.05) + 1
        z = lattice(*[reach] * len(scales))
        p = np.exp(law.logpmf(z))
        assert law.expected_size == pytest.approx(p @ np.abs(z), rel=1e-11)
        assert law.variance == pytest.approx(p @ z**2, rel=1e-11)
    else:  # near the continuous noise
        assert law.expected_size == pytest.approx(RoundedBox(scales).expected_size, rel=1e-7)
        assert law.variance == pytest.approx(RoundedBox(scales).variance, rel=1e-6)


@pytest.mark.parametrize("scales", [[0.7], [1.0, 1.0], [0.4, 2.0], [0.8, 0.5, 0.8], [1e-6, 1.0]])
def test_law_on_the_lattice(scales):
    """Controls: other scales, and the proposals without the rejection."""
    z = lattice(*[8 if len(scales) < 3 else 5] * len(scales))
    counts = row_counts(draws("lattice", scales, 200_000, seed=1), z)
    for factor, wrong in ((1, False), (0.9, True), (1.1, True)):
        p = np.exp(LatticeBox([factor * s for s in scales]).logpmf(z))
        assert chi_square_rejects(counts, with_rest(p)) == wrong
    if len(scales) > 1 and min(scales) > 0.1:
        proposed = sum(DiscreteLaplace(len(scales) * s).logpmf(column) for s, column in zip(scales, z.T, strict=True))
        assert chi_square_rejects(counts, with_rest(np.exp(proposed)))


@pytest.mark.parametrize(
    "scales", [[1.0], [3.0, Fraction(1, 3)], [2.0**30, 1.0], [2.0, 1e6, 0.3], [5e-324, 1.0], [2.0**54] * 3]
)
def test_fast_path_is_the_slow_path_on_the_lattice(scales):
    fast, slow = (draws("lattice", scales, 120, seed=4, exact=exact) for exact in (False, True))
    np.testing.assert_array_equal(fast, slow)


@every("scale", [0.5, 3.0, 1000.0])
@every("exact", [False, True])
def test_acceptance_next_to_edges(scale, exact):
    """Ten proposals (k, 0), k = 1, 2, ...: those with a word next above exp(-k / 2 scale) are refused."""
    with mp.workdps(40):
        first = [int(2**64 * mp.exp(-(k + mpf("0.5")) / (2 * mpf(scale)))) for k in range(1, 11)]
        edges = [int(mp.floor(2**64 * mp.exp(-k / (2 * mpf(scale))))) for k in range(1, 11)]
    below_one = [2**64 - 3] * 10
    for kept in range(10):
        words = [edge + 1 if k < kept else edge - 1 for k, edge in enumerate(edges)]
        source = ScriptedBits([*first, *below_one * 3, *words], PCG64(1))
        assert draws("lattice", [scale, scale], 1, source=source, exact=exact).tolist() == [[kept + 1, 0]]


@pytest.mark.parametrize(("scales", "error"), [([1.0] * 4, "at most three"), ([2.0**55], r"at most 2\*\*54")])
def test_limits_of_the_lattice(scales, error):
    with pytest.raises(ValueError, match=error):
        LatticeBox(scales)


# The public functions


@pytest.mark.parametrize("kind", PUBLIC)
def test_shapes(kind):
    for size, shape in ((None, (3,)), (0, (0, 3)), (2, (2, 3)), ((2, 5), (2, 5, 3)), ((), (3,))):
        x = PUBLIC[kind]([1.0, 2.0, Fraction(1, 3)], size, rng=PCG64(1))
        assert (x.shape, x.dtype) == (shape, np.int64)


@pytest.mark.parametrize("kind", PUBLIC)
def test_blocks_are_the_kernel_on_streams(kind):
    d, rows = 100, BLOCK // 100
    scales, m = np.full(d, 3.0), 2 * rows + 7
    expected = np.empty((m, d), np.int64)
    for i, source in enumerate(streams(PCG64(5), 3)):
        FILLS[kind](source, scales, expected[i * rows : (i + 1) * rows])
    for workers in (1, 3):
        np.testing.assert_array_equal(PUBLIC[kind](scales, m, rng=PCG64(5), workers=workers), expected)
    law = np.empty((m, d), np.int64)
    LAWS[kind](scales).fill_blocks(PCG64(5), law)
    np.testing.assert_array_equal(law, expected)


@every("kind", PUBLIC)
@every(
    "scales, error",
    [
        *(([1.0, bad], ValueError) for bad in (0, -1.0, math.nan, math.inf, 2.0**57)),
        *((np.array([1.0, bad]), ValueError) for bad in (0, -1.0, math.nan, math.inf, 2.0**57)),
        *((bad, ValueError) for bad in ([], np.empty(0), np.ones((2, 2)))),
        *((bad, TypeError) for bad in (1.0, None, "12", [1.0, True], [1.0, "2"], [[1.0]])),
    ],
)
def test_bad_scales(kind, scales, error):
    with pytest.raises(error, match="scales must be"):
        PUBLIC[kind](scales)


@pytest.mark.parametrize("kind", PUBLIC)
def test_exact_values_of_scales(kind):
    """A fraction that is no double remains exact; other numbers are the doubles that they equal."""
    assert LAWS[kind]([Fraction(1, 3), 1]).scales.tolist() == [Fraction(1, 3), 1.0]
    assert LAWS[kind]([Fraction(1, 2), 3]).scales.dtype == np.float64
    given = np.ones(2)
    law = LAWS[kind](given)
    given[0] = 7.0
    assert law.scales.tolist() == [1.0, 1.0]
