"""Draws of scales from 2**34 on: a draw of the scale halved, refined by one more word."""

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mpf
from numpy.random import PCG64

from dpfast import laws, noise
from dpfast._kernels import _samplers, _scale_balls
from tests.cases import every
from tests.reference import laws as slow
from tests.scripted import ScriptedBits
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.kernel


def fill_staircase(source, scale, out, **options):
    _samplers.fill_staircase(source, scale, 5, 2, out, **options)


REFINED = {
    "geometric": (_samplers.fill_geometric, _scale_balls.refined_geometric, slow.geometric),
    "laplace": (_samplers.fill_rounded_laplace, _scale_balls.refined_laplace, slow.rounded_laplace),
    "gaussian": (_samplers.fill_rounded_gaussian, _scale_balls.refined_gaussian, slow.rounded_gaussian),
}
FILLS = {
    **{name: fill for name, (fill, _, _) in REFINED.items()},
    "discrete_laplace": _samplers.fill_discrete_laplace,
    "staircase": fill_staircase,
}
SCALES = [2.0**34, 1e12, Fraction(10**16, 7), 2.0**56]


def draws(fill, scale, n, source=None, **options):
    out = np.empty(n, np.int64)
    fill(PCG64(1) if source is None else source, scale, out, **options)
    return out


@pytest.mark.parametrize("name", REFINED)
@pytest.mark.parametrize(("scale", "halvings"), [(Fraction(2, 3), 3), (4.0, 1)])
def test_refined_draws_of_a_small_scale_have_the_law_of_the_large_one(name, scale, halvings):
    """The slow path, at scales at which many words are rejected and all integers can be counted."""
    fill, refined, pmf = REFINED[name]
    n, words = 15_000, PCG64(2)
    coarse = draws(fill, scale, n).tolist()
    sample = np.array([refined(z, words.random_raw(), words.random_raw, scale, halvings) for z in coarse])
    large = float(scale) * 2**halvings
    cells = np.arange(-int(4 * large), int(4 * large) + 1)
    counts = np.array([np.count_nonzero(sample == z) for z in cells])
    observed = np.append(counts, n - counts.sum())
    for factor, wrong in ((1, False), (0.9, True), (1.1, True)):
        p = [pmf(int(z), large * factor) for z in cells]
        assert chi_square_rejects(observed, [*p, max(mpf(0), 1 - sum(p))]) == wrong


@pytest.mark.parametrize("name", REFINED)
def test_places_within_a_cell_are_not_uniform_at_a_small_scale(name):
    """Positive control: without the rejection, the law above would be rejected."""
    fill, _, pmf = REFINED[name]
    coarse = draws(fill, 0.7, 40_000)
    places = np.random.default_rng(3).integers(0, 8, coarse.size)
    sample = 8 * np.abs(coarse) + places if name == "geometric" else np.abs(8 * np.abs(coarse) - 4 + places)
    cells = np.arange(24)
    counts = np.array([np.count_nonzero(sample == z) for z in cells])
    p = [pmf(int(z), 5.6) * (1 if name == "geometric" or z == 0 else 2) for z in cells]
    assert chi_square_rejects(np.append(counts, coarse.size - counts.sum()), [*p, max(mpf(0), 1 - sum(p))])


@pytest.mark.parametrize("name", FILLS)
@pytest.mark.parametrize("scale", SCALES)
def test_fast_path_is_the_slow_path(name, scale):
    np.testing.assert_array_equal(draws(FILLS[name], scale, 800), draws(FILLS[name], scale, 800, exact=True))


@pytest.mark.parametrize("name", REFINED)
def test_doubtful_words_are_decided_in_ball_arithmetic(name):
    """The last half of the refining word is the number that must be below exp(-gamma): all ones at gamma > 0 is not."""
    first = 2**63 + 2**62 + 1
    doubtful = [2**64 - 1, 2**63 + 2**32 - 1, 2**32 - 1, 2**32 - 2**11, 2**63 - 2**31]
    for word in doubtful:
        fast, exact = (ScriptedBits([first, word], PCG64(5)) for _ in range(2))
        fill = REFINED[name][0]
        assert draws(fill, 2.0**40, 1, fast) == draws(fill, 2.0**40, 1, exact, exact=True)
        assert fast.used == exact.used
    rejected = ScriptedBits([first, 2**64 - 1], PCG64(5))
    draws(REFINED[name][0], 2.0**40, 1, rejected)
    assert rejected.used > 2


@every("name", FILLS)
@every("scale", [2.0**34, 1e12, 1e15])
def test_law_at_large_scales(name, scale):
    """Equally likely ranges of magnitudes, and the last digits of the integers."""
    sample = draws(FILLS[name], scale, 100_000)
    parts, share = 50, np.arange(1, 50) / 50
    if name == "geometric":
        edges = -scale * np.log1p(-share)
    else:
        law = {
            "laplace": laws.RoundedLaplace,
            "gaussian": laws.RoundedGaussian,
            "discrete_laplace": laws.DiscreteLaplace,
            "staircase": lambda s: laws.Staircase(s, 5, 2),
        }[name](scale)
        edges = np.array([law.magnitude(float(c)) for c in share], float)
    for factor, wrong in ((1, False), (0.9, True), (1.1, True)):
        counts = np.bincount(np.searchsorted(edges * factor, np.abs(sample)), minlength=parts)
        assert chi_square_rejects(counts, [1 / parts] * parts) == wrong
    if name != "staircase":
        assert not chi_square_rejects(np.bincount(sample & 15, minlength=16), [1 / 16] * 16)
    if name != "geometric":
        assert not chi_square_rejects([np.count_nonzero(sample > 0), np.count_nonzero(sample < 0)], [0.5, 0.5])


def test_levels_of_a_high_rate_are_one_more_with_the_probability_of_the_law():
    """Of E / epsilon, the fraction is nearly uniform, and the offset carries it over the next integer."""
    rate, s, r = Fraction(2**40), 5, 2
    share = Fraction(2 * r - 1, 2 * s)
    assert abs(_scale_balls.staircase_threshold(rate, s, r) / 2**64 - float(1 - share)) < 2**-38
    rate = Fraction(3, 2)  # where the probability is not nearly 1 - share
    q = np.exp(-2 / 3)
    assert _scale_balls.staircase_threshold(rate, s, r) / 2**64 == pytest.approx(0.7 * q / (0.3 + 0.7 * q), rel=1e-14)
    with_more = draws(_samplers.fill_geometric, rate, 40_000) + (
        np.random.default_rng(9).random(40_000) < _scale_balls.staircase_threshold(rate, s, r) / 2**64
    )
    total = 2 * r - 1 + 2 * s * q / (1 - q)
    p = [(2 * r - 1 if level == 0 else 2 * s) * q**level / total for level in range(8)]
    counts = np.bincount(np.minimum(with_more, 8), minlength=9)
    assert not chi_square_rejects(counts, [*p, 1 - sum(p)])
    word = _scale_balls.staircase_threshold(rate, s, r)
    assert _scale_balls.staircase_further(word - 1, lambda: 0, rate, s, r)
    assert not _scale_balls.staircase_further(word + 1, lambda: 0, rate, s, r)


@every("name", REFINED)
@every("scale", SCALES)
def test_two_words_for_each_draw(name, scale):
    source = ScriptedBits(rest=PCG64(3))
    draws(REFINED[name][0], scale, 500, source)
    assert source.used == pytest.approx(1000, abs=2)
    source = ScriptedBits(rest=PCG64(3))
    draws(REFINED[name][0], 2.0**34 - 1, 500, source)
    assert source.used == pytest.approx(500, abs=2)


@every("name", ["geometric", "laplace", "gaussian", "discrete_laplace"])
@every("scale", [0.3, *SCALES])
def test_one_draw_is_that_of_a_fill(name, scale):
    one = {
        "geometric": _samplers.one_geometric,
        "laplace": _samplers.one_rounded_laplace,
        "gaussian": _samplers.one_rounded_gaussian,
        "discrete_laplace": _samplers.one_discrete_laplace,
    }[name]
    for seed in range(100):
        assert one(PCG64(seed), scale) == draws(FILLS[name], scale, 1, PCG64(seed))[0]
    for words in ([0, 2**63, 5], [5, 2**64 - 1, 3, 2**64 - 1, 2**64 - 1, 9], [1, 0, 1]):
        drawn, filled = (ScriptedBits(words, PCG64(1)) for _ in range(2))
        assert one(drawn, scale) == draws(FILLS[name], scale, 1, filled)[0]
        assert drawn.used == filled.used


@every("draw", [noise.laplace, noise.gaussian, noise.geometric, noise.discrete_laplace])
@every("scale", [10, 2.5, Fraction(10**13, 3)])
def test_one_number_is_the_only_one_of_an_array(draw, scale):
    for seed in range(20):
        one = draw(scale, rng=PCG64(seed))
        assert type(one) is int
        assert one == draw(scale, 1, rng=PCG64(seed))[0]
    assert type(draw(scale)) is int


@pytest.mark.parametrize("name", REFINED)
def test_saturation(name):
    source = ScriptedBits([0] * 40 + [1], PCG64(1))
    largest = draws(REFINED[name][0], 2.0**56, 1, source)
    assert largest == 2**63 - 1 if name != "gaussian" else largest > 2**60
    assert _scale_balls.refined_geometric(2**39, 0, lambda: 0, 2.0**28, 24) == 2**63 - 1
    assert _scale_balls.refined_laplace(-(2**39), 0, lambda: 0, 2.0**28, 25) == -(2**63 - 1)


def test_columns_of_different_scales():
    sigmas = [3.0, 1e13, Fraction(10**14, 3)]
    fast, exact = np.empty((500, 3), np.int64), np.empty((500, 3), np.int64)
    _samplers.fill_rounded_gaussians(PCG64(4), sigmas, fast)
    _samplers.fill_rounded_gaussians(PCG64(4), sigmas, exact, exact=True)
    np.testing.assert_array_equal(fast, exact)
    spread = fast.std(axis=0) / [float(sigma) for sigma in sigmas]
    assert np.abs(spread - 1).max() < 0.2


@pytest.mark.parametrize("name", REFINED)
def test_a_fraction_stays_exact_when_it_is_halved(name, monkeypatch):
    scale, seen = Fraction(2**40, 3), []

    def refined(draw, word, next_word, coarse, halvings):
        seen.append((coarse, halvings))
        return draw

    monkeypatch.setattr(_scale_balls, f"refined_{name}", refined)
    draws(REFINED[name][0], scale, 2, exact=True)
    assert all(isinstance(coarse, Fraction) and coarse * 2**halvings == scale for coarse, halvings in seen)
    assert len(seen) == 2
