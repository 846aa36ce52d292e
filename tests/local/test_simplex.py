"""Projection of frequencies onto the simplex, alone and as an option of `estimate`."""

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from dpfast import local
from tests.reference.local import simplex


@pytest.mark.parametrize("k", [1, 2, 5, 40])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_nearest_point(k, weighted):
    rng = np.random.default_rng(k)
    for spread in (0.01, 1.0, 1e4):
        values = rng.normal(1 / k, spread, k)
        variances = rng.uniform(0.1, 3.0, k) if weighted else None
        result = local.project(values, variances=variances)
        assert (result >= 0).all()
        assert result.sum() == pytest.approx(1, abs=1e-12 * max(1, spread))
        weights = np.ones(k) if variances is None else variances
        np.testing.assert_allclose(result, simplex(values.tolist(), weights.tolist()), atol=1e-11 * max(1, spread))
        best = ((result - values) ** 2 / weights).sum()
        for other in rng.dirichlet(np.full(k, 0.3), 50):
            assert best <= ((other - values) ** 2 / weights).sum() * (1 + 1e-9)


def test_points_of_the_simplex_stay():
    for frequencies in ([1.0], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5], [0.5, 0.5]):
        assert local.project(frequencies).tolist() == frequencies


@pytest.mark.parametrize(
    ("frequencies", "variances"),
    [([], None), ([np.nan, 1], None), ([np.inf], None), ([0.5, 0.5], [1]), ([0.5, 0.5], [1, 0]), ([1.0], [np.inf])],
)
def test_bad_arguments(frequencies, variances):
    with pytest.raises(ValueError, match="must be"):
        local.project(frequencies, variances=variances)


@pytest.mark.parametrize(("n", "gain"), [(1000, 3.5), (10_000, 1.5)])
def test_mean_square_error_of_the_option(n, gain):
    """At k = 64 the projection is several times more accurate, and never farther from the truth."""
    survey, source = local.Categorical(64, 1.0), Generator(PCG64(1))
    plain = projected = 0.0
    for weights in (np.ones(64), 1 / np.arange(1, 65)):
        for _ in range(20):
            x = source.choice(64, n, p=weights / weights.sum())
            total = survey.aggregate(survey.randomize(x, rng=source))
            truth = np.bincount(x, minlength=64) / n
            errors = [((survey.estimate(total, project=p) - truth) ** 2).sum() for p in (False, True)]
            assert errors[1] <= errors[0]
            plain, projected = plain + errors[0], projected + errors[1]
    assert plain > gain * projected


def test_binary_is_clipped():
    survey = local.Binary(0.5)
    for bit in (0, 1):
        reports = np.full(100, bit, np.uint8)
        assert survey.estimate(reports, project=True) == bit
        assert abs(survey.estimate(reports) - bit) > 1
