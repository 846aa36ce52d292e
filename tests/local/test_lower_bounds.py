"""Lower bounds with constants: each divergence against the worst channel, and every bound below an attained error."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog

from dpfast import Grid, local, theory
from dpfast.theory import local_lower_bounds as bounds
from tests.cases import every

FORMS = ("sharp", "published")
UNIT = Grid(0, 1)


def worst_channel(gains, points, epsilon):
    """The largest sum of gains(columns) over the columns of a channel: columns of 1 and E, each with a weight."""
    columns = np.exp(epsilon * np.array(list(itertools.product((0, 1), repeat=points))))
    each = gains(columns)
    found = linprog(-each / each.max(), A_eq=columns.T, b_eq=np.ones(points))
    assert found.success
    return -found.fun * each.max()


def worst_sum(base, others, epsilon):
    """The largest sum of the divergences of one report from `base` to the others."""

    def gains(columns):
        seen, told = columns @ base, columns @ np.array(others).T
        return (seen[:, None] * np.log(seen[:, None] / told)).sum(1)

    return worst_channel(gains, base.size, epsilon)


def corner(v, b):
    points = np.array(list(itertools.product((-1, 1), repeat=len(v))))
    return np.prod(1 + b * points * v, axis=1) / len(points)


@every("epsilon", [0.05, 0.5, 1.0, 3.0])
@every("b", [0.02, 0.3, 0.8, 1.0])
def test_no_channel_beats_the_divergence_of_corners(b, epsilon):
    for d in (1, 2, 3):
        flipped = [corner([1 - 2 * (i == j) for i in range(d)], b) for j in range(d)]
        worst = worst_sum(corner([1] * d, b), flipped, epsilon)
        sharp, published = (bounds._corner_divergence(b, d, epsilon, form) for form in FORMS)
        assert worst <= sharp * (1 + 1e-7) <= published * (1 + 1e-6)
        if b == 0.02 and epsilon <= 0.5:
            assert worst > 0.85 * sharp


@every("epsilon", [0.05, 0.5, 1.0, 3.0])
@every("b", [0.02, 0.3, 0.8])
def test_no_channel_beats_the_divergence_from_the_mean_zero(b, epsilon):
    for d in (1, 2, 3):
        points = np.array(list(itertools.product((-1, 1), repeat=d)))
        none = np.full(len(points), 1 / len(points))
        worst = worst_sum(none, [none * (1 + b * points[:, j]) for j in range(d)], epsilon)
        factor = bounds._least_factor(epsilon, 1 - b)
        assert worst <= b * b * factor * (1 + 1e-7)
        if b == 0.02 and epsilon <= 0.5:
            assert worst > 0.85 * b * b * factor


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 3.0])
def test_no_channel_beats_the_information_about_one_of_many(epsilon):
    for d, b in itertools.product((1, 2, 3), (0.05, 0.5, 0.9)):
        points = np.array(list(itertools.product((-1, 1), repeat=d)))
        laws = np.array([(1 + b * sign * points[:, j]) / len(points) for j in range(d) for sign in (-1, 1)])

        def gains(columns, laws=laws):
            told = laws @ columns.T
            return (told * np.log(told / told.mean(0))).mean(0)

        worst = worst_channel(gains, len(points), epsilon)
        apart = ((1 + b) * math.log1p(b) + (1 - b) * math.log1p(-b)) / 2
        limit = apart * math.sinh(epsilon / 2) ** 2 / d
        assert worst <= limit * (1 + 1e-7)
        if b == 0.05 and epsilon <= 0.5:
            assert worst > 0.85 * limit


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_no_channel_beats_the_divergence_of_densities(epsilon):
    """Densities 1 + a (v_1 cos + v_2 sin) on 8 cells of the circle, of which the library's bound knows nothing."""
    cells, a = 8, 0.2
    edges = 2 * np.pi * np.arange(cells + 1) / cells
    waves = np.sqrt(2) * np.array([np.diff(np.sin(edges)), -np.diff(np.cos(edges))]) / (2 * np.pi)
    corners = [np.diff(edges) / (2 * np.pi) + a * np.array(v) @ waves for v in ((1, 1), (-1, 1), (1, -1))]
    worst = worst_sum(corners[0], corners[1:], epsilon)
    limit = 4 * a * a * bounds._least_factor(epsilon, 1 - 2 * a, alone=2)
    assert 0.3 * limit < worst <= limit


def test_the_contracted_variance_against_mpmath():
    """max of p (1 - p) (E - 1)^2 / (1 + (E - 1) p)^2 is sinh(epsilon / 2)^2."""
    with mpmath.workdps(30):
        for epsilon in (0.1, 1.0, 4.0):
            gain = mpmath.expm1(epsilon)
            p = 1 / (gain + 2)
            top = gain**2 * p * (1 - p) / (1 + gain * p) ** 2
            assert bounds._contracted(epsilon) == pytest.approx(float(top), rel=1e-14)
            around = (gain**2 * q * (1 - q) / (1 + gain * q) ** 2 for q in (p * 0.9, p * 1.1))
            assert all(value < top for value in around)


def test_mixtures_refute_the_published_theorem_3():
    """Three signs choose one of three laws of a bit; the mixtures agree for each sign, and two reports tell v_1."""
    epsilon, t = 1.0, 1.0
    keep = 1 / (1 + math.exp(-epsilon))
    corners = list(itertools.product((-1, 1), repeat=3))
    bits = {v: (1 + t * (1 + v[0]) / 2 * v[1] * v[2]) / 2 for v in corners}
    for j in range(3):  # the mixtures of one record are equal, so that the published correlation is 0
        assert sum(bits[v] * v[j] for v in corners) == 0

    def reports(sign, n):
        found = np.zeros(2**n)
        for v in corners:
            if v[0] == sign:
                one = bits[v] * keep + (1 - bits[v]) * (1 - keep)
                found += np.array(
                    [one ** sum(z) * (1 - one) ** (n - sum(z)) for z in itertools.product((0, 1), repeat=n)]
                )
        return found / 4

    one, two = [[reports(sign, n) for sign in (-1, 1)] for n in (1, 2)]
    assert one[0] == pytest.approx(one[1], abs=1e-15)
    assert (two[1] * np.log(two[1] / two[0])).sum() == pytest.approx(0.0230, abs=1e-4)  # of which the paper says: 0
    # the correlation of neighbours is not 0: flips of v_1 = 1 move the mean by t, of v_2 and v_3 by 2 t
    assert (
        theory.local_assouad(1.0, 3, 9 * t * t, epsilon=epsilon, n=1)
        < 3
        == theory.local_assouad(1.0, 3, 0.0, epsilon=epsilon, n=10**9)
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_bounds_are_below_attained_errors(epsilon):
    for n, d in itertools.product((10, 1000, 10**6), (1, 2, 10, 100)):
        ball = [theory.local_ball_mean_lower_bound(n, d, epsilon=epsilon, form=form) for form in FORMS]
        upper = theory.local_ball_mean_upper_bound(n, d, epsilon=epsilon)
        assert 0 < ball[1] < ball[0] < upper
        assert upper == pytest.approx(min(1.0, local.L2Ball(d, epsilon).second_moment / n), rel=1e-9)
        sparse = [theory.local_sparse_mean_lower_bound(n, d, epsilon=epsilon, form=form) for form in FORMS]
        rounds = theory.local_sparse_mean_lower_bound(n, d, epsilon=epsilon, interactive=True)
        assert 0 < sparse[1] < sparse[0] < 1
        assert 0 < rounds <= sparse[0]
        assert sparse[0] < 4 * theory.local_sparse_threshold(n, d, epsilon=epsilon) ** 2
        logistic = [theory.local_logistic_lower_bound(n, d, epsilon=epsilon, form=form) for form in FORMS]
        assert 0 < logistic[1] < logistic[0] < d
    for n, smoothness in itertools.product((10, 1000, 10**6), (0.6, 1.0, 2.5)):
        density = [
            theory.local_density_lower_bound(n, epsilon=epsilon, smoothness=smoothness, form=form) for form in FORMS
        ]
        least = min(
            local.SeriesReports(k, epsilon, grid=UNIT, method="one-frequency", basis="trigonometric").mise_bound(
                n, smoothness=smoothness, roughness=1.0
            )
            for k in (2, 4, 8, 16, 32, 64)
        )
        assert 0 < density[1] < density[0] < least


def test_orders_of_the_bounds():
    """Multiples of the orders of Corollaries 4 to 7, for n from 1e6 to 1e12."""

    def slope(bound, *arguments, **options):
        return math.log10(bound(10**12, *arguments, **options) / bound(10**8, *arguments, **options)) / 4

    for form in FORMS:
        options = {"epsilon": 0.5, "form": form}
        for bound in (theory.local_ball_mean_lower_bound, theory.local_logistic_lower_bound):
            assert slope(bound, 30, **options) == pytest.approx(-1, abs=0.01)
        assert slope(theory.local_sparse_mean_lower_bound, 300, **options) == pytest.approx(-1, abs=0.01)
        for smoothness in (1.0, 2.0):
            found = slope(theory.local_density_lower_bound, smoothness=smoothness, **options)
            assert found == pytest.approx(-smoothness / (smoothness + 1), abs=0.02)
    for n in (10**6, 10**9):
        with_d = [theory.local_sparse_mean_lower_bound(n, d, epsilon=0.5, interactive=True) for d in (20, 200)]
        assert with_d[1] == pytest.approx(10 * with_d[0], rel=0.05)
        alone = [theory.local_ball_mean_lower_bound(n, d, epsilon=0.5) for d in (20, 200)]
        assert alone[1] == pytest.approx(10 * alone[0], rel=0.1)


def test_limits():
    for epsilon in (40.0, 400.0):  # the error of means without privacy bounds that of means with it
        assert 1e-7 < theory.local_ball_mean_lower_bound(10**5, 10, epsilon=epsilon) < 1e-5
        assert theory.local_ball_mean_lower_bound(10**5, 10, epsilon=epsilon, form="published") < 1e-20
        assert 0 < theory.local_sparse_mean_lower_bound(10**5, 10, epsilon=epsilon) < 1e-3
        assert 0 < theory.local_density_lower_bound(10**5, epsilon=epsilon, smoothness=1.0) < 1e-3
        assert 0 < theory.local_logistic_lower_bound(10**5, 10, epsilon=epsilon) < 1e-2
    near = theory.local_fano(1.0, 1024, 1e-4, epsilon=0.5, n=10_000, neighborhood=4)
    assert near == pytest.approx(1 - (10_000 * math.expm1(0.5) ** 2 / 8 * 1e-4 + math.log(2)) / math.log(256))
    assert theory.local_fano(1.0, 4, 0.0, epsilon=0.5, n=1, neighborhood=4) == 0
    with pytest.raises(ValueError, match="form must be 'sharp' for interactive"):
        theory.local_sparse_mean_lower_bound(10, 2, epsilon=1.0, interactive=True, form="published")
    for call in (
        lambda form: theory.local_fano(1.0, 8, 0.1, epsilon=0.5, n=1, form=form),
        lambda form: theory.local_assouad(1.0, 8, 0.1, epsilon=0.5, n=1, form=form),
        lambda form: theory.local_ball_mean_lower_bound(10, 2, epsilon=1.0, form=form),
        lambda form: theory.local_sparse_mean_lower_bound(10, 2, epsilon=1.0, form=form),
        lambda form: theory.local_logistic_lower_bound(10, 2, epsilon=1.0, form=form),
        lambda form: theory.local_density_lower_bound(10, epsilon=1.0, smoothness=1.0, form=form),
    ):
        with pytest.raises(ValueError, match="form must be"):
            call("exact")
