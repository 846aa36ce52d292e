"""The published algorithms of ``bench.published``: laws by enumeration, unbiased reports, and rows of the page."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from bench.published import __main__ as command
from bench.published import counts, lines, quantiles, reports
from bench.published.comparison import Case, Published, rows
from tests.cases import every
from tests.statistical import ALPHA, chi_square_rejects

TRIALS = 800


def _rejects(draws, law):
    """A chi-square test of draws, each a key of the law; weights need not sum to 1."""
    keys, total = list(law), sum(law.values())
    return chi_square_rejects([sum(draw == key for draw in draws) for key in keys], [law[key] / total for key in keys])


def _joint_law(x, levels, bounds, epsilon):
    """Weights of the gaps of sorted quantiles, each set of r in one gap with its width to the power r over r!."""
    points, n = np.array([bounds[0], *sorted(x), bounds[1]]), len(x)
    law = {}
    for gaps in itertools.combinations_with_replacement(range(n + 1), len(levels)):
        held, wanted = np.diff([0, *gaps, n]), np.diff([0, *levels, 1]) * n
        volume = math.prod(
            (points[i + 1] - points[i]) ** gaps.count(i) / math.factorial(gaps.count(i)) for i in set(gaps)
        )
        law[gaps] = volume * math.exp(-epsilon / 4 * np.abs(held - wanted).sum())
    return law


@every("epsilon", [1.0, 6.0])
def test_joint_quantiles_have_the_law_of_the_paper(epsilon):
    x, levels, bounds = np.array([1.0, 2.0, 4.5, 5.0]), (0.25, 0.5, 0.75), (0.0, 6.0)
    generator = np.random.default_rng(1)
    draws = [
        tuple(np.searchsorted(x, quantiles.joint_exponential(generator, x, levels, bounds, epsilon)).tolist())
        for _ in range(TRIALS)
    ]
    assert not _rejects(draws, _joint_law(x, levels, bounds, epsilon))
    assert _rejects(draws, _joint_law(x, levels, bounds, 3 * epsilon))


@every("epsilon", [0.5, 2.0])
def test_joint_top_keys_have_the_law_of_the_paper(epsilon):
    held, k = np.array([3, 9, 8, 5]), 2
    best = np.sort(held)[::-1][:k]
    law = {
        keys: math.exp(-epsilon / 2 * np.max(best - held[list(keys)])) for keys in itertools.permutations(range(4), k)
    }
    generator = np.random.default_rng(2)
    draws = [tuple(counts.joint_top(generator, held, k, epsilon).tolist()) for _ in range(TRIALS)]
    assert not _rejects(draws, law)
    assert _rejects(draws, {keys: weight**3 for keys, weight in law.items()})


def test_smooth_sensitivity_is_the_greatest_over_all_data_sets():
    """The local sensitivity at distance k, by trying all replacements on a small grid."""
    values, bounds, n = range(4), (0, 3), 3

    def brute(x, k):
        near = [z for z in itertools.product(values, repeat=n) if sum(a != b for a, b in zip(x, z, strict=True)) <= k]
        return max(
            abs(np.median(z) - np.median(y))
            for z in near
            for y in itertools.product(values, repeat=n)
            if sum(a != b for a, b in zip(z, y, strict=True)) <= 1
        )

    for x in itertools.combinations_with_replacement(values, n):
        found = list(quantiles.local_sensitivities(np.array(x, float), bounds))
        assert found[:2] == [brute(x, 0), brute(x, 1)]


def _mean_is(releases, exact):
    releases = np.asarray(releases, float)
    error = releases.std(axis=0, ddof=1) / math.sqrt(len(releases))
    return bool(np.all(np.abs(releases.mean(axis=0) - exact) < norm.isf(ALPHA) * error))


def test_local_reports_are_unbiased():
    generator, k, epsilon = np.random.default_rng(3), 7, 1.0
    x = generator.choice(k, 400, p=np.arange(1, k + 1) / 28)
    shares = np.bincount(x, minlength=k) / x.size
    for algorithm, options in (
        (reports.k_ary, {}),
        (reports.unary, {"symmetric": True}),
        (reports.unary, {"symmetric": False}),
        (reports.hashing, {}),
        (reports.subsets, {}),
        (reports.hadamard, {}),
    ):
        found = [algorithm(generator, x, k=k, epsilon=epsilon, **options) for _ in range(100)]
        assert _mean_is(found, shares), algorithm.__name__
        assert not _mean_is(found, np.roll(shares, 1)), algorithm.__name__
    y = generator.uniform(-1, 1, 300)
    for algorithm in (reports.two_points, reports.piecewise, reports.hybrid):
        found = [algorithm(generator, y, epsilon) for _ in range(200)]
        assert _mean_is(found, y.mean()), algorithm.__name__
        assert not _mean_is(found, y.mean() + 0.2), algorithm.__name__
    X = np.tile([0.6, 0.8, 0.0], (50, 1))
    for algorithm in (reports.ball_points, reports.private_unit):
        found = [algorithm(generator, X, 2.0) for _ in range(200)]
        assert _mean_is(found, X[0]), algorithm.__name__
        assert not _mean_is(found, X[0][::-1]), algorithm.__name__


def test_fits_without_noise_are_those_of_least_squares():
    generator = np.random.default_rng(4)
    X = generator.uniform(-1, 1, (3000, 3))
    y = X @ [1.0, -0.5, 0.25] + 0.1 * generator.normal(size=3000)
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    for options in ({}, {"rounds": 5, "clip": 10.0}):
        found = lines.adaptive_ridge(generator, X, y, 1e5, 1e-6, **options)
        np.testing.assert_allclose(found, best, atol=0.01)
    np.testing.assert_allclose(lines.tukey_fit(generator, X, y, 1e3, 1e-6, 100), best, atol=0.05)


def test_a_tree_of_counts_keeps_their_sums_without_noise():
    held = np.random.default_rng(5).integers(0, 50, 256)
    for release in (
        lambda generator: counts.tree(generator, held, 1e9, 2),
        lambda generator: counts.tree(generator, held, 1e9, 16),
        lambda generator: counts.wavelets(generator, held, 1e9),
    ):
        np.testing.assert_allclose(release(np.random.default_rng(6)), np.cumsum(held), atol=1e-3)


def _toy(factor, why=""):
    draw = lambda generator: (generator.normal(size=5),)  # noqa: E731
    algorithm = Published("doubled", lambda generator, x: factor * x[0], why)
    return Case("first", "normal", 5, "1", draw, lambda x: 2 * x[0], lambda released, x: abs(released), (algorithm,))


def test_a_row_says_why_dpfast_has_more_error():
    [lost] = rows(_toy(1.0, "told."), 1, seconds=1.0, quick=True)
    assert lost.lost
    assert lost.ratio == 2
    assert lost.reason == "told."
    [silent] = rows(_toy(1.0), 1, seconds=1.0, quick=True)
    assert silent.reason == ""
    [won] = rows(_toy(4.0), 1, seconds=1.0, quick=True)
    assert not won.lost
    assert won.ratio == 0.5


@pytest.mark.slow
@every("name", list(command.SECTIONS))
def test_each_section_compares_all_of_its_cases(name):
    module = command.SECTIONS[name]
    text, found = command.section(module, 1, seconds=0.01, quick=True)
    assert len(found) == sum(len(case.algorithms) for case in module.cases())
    assert text.startswith(f"## {module.TITLE}\n")
    assert all(np.isfinite(row.theirs) for row in found)
