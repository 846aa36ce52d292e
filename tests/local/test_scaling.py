"""Random scaling: critical values in closed form, coverage of Brownian paths, intervals of private descents."""

import math

import numpy as np
import pytest
from numpy.random import PCG64, Generator
from scipy.stats import norm

from dpfast import local
from dpfast.local.scaling import critical_value, half_widths
from tests.cases import every
from tests.statistical import ALPHA


def equal(parts):
    return tuple((np.arange(1, parts + 1) / parts).tolist())


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_two_parts_have_the_quantiles_of_cauchy(confidence):
    """sqrt(r B(r)^2) is sqrt(r r (1 - r)) times a normal."""
    for r in (0.5, 0.2):
        exact = math.tan(math.pi / 2 * confidence) / math.sqrt(r * r * (1 - r))
        assert critical_value(confidence, (r, 1.0)) == pytest.approx(exact, rel=1e-8)


def test_many_parts_have_the_published_critical_values():
    for confidence, published in ((0.9, 5.323), (0.95, 6.747), (0.98, 8.613)):
        assert critical_value(confidence, equal(250)) == pytest.approx(published, rel=1e-3)
    assert critical_value(0.95, equal(64)) == pytest.approx(6.754, rel=1e-3)
    assert critical_value(0.95, equal(8)) > critical_value(0.95, equal(16)) > critical_value(0.95, equal(64))


@every("ends", [equal(8), equal(64), (0.1, 0.15, 0.4, 0.6, 0.65, 0.9, 0.95, 1.0)])
def test_coverage_of_random_walks(ends):
    """Averages of independent normals, whose partial sums are Brownian at the ends exactly; against other widths."""
    n, runs = 1000, 40_000
    counts = np.rint(np.array(ends) * n).astype(int)
    steps = Generator(PCG64(1)).normal(size=(len(ends), runs)) * np.sqrt(np.diff(counts, prepend=0))[:, None]
    totals = np.cumsum(steps, axis=0) * 3
    widths, limit = half_widths(totals, counts, 0.9), norm.isf(ALPHA / 2) * math.sqrt(runs * 0.09)
    for factor, rejected in ((1.0, False), (0.9, True), (1.1, True)):
        covered = np.count_nonzero(np.abs(totals[-1] / n) <= factor * widths)
        assert (abs(covered - 0.9 * runs) > limit) == rejected


def test_intervals_are_those_of_the_states():
    """The protocol message by message gives the same numbers, with a burn-in and an intercept."""
    study = local.GradientDescent(2, 1.0, intercept=True, radius=2.0, burn_in=3)
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(131, 2)), rng.random(131) < 0.5
    together = study.release(X, y, confidence=0.8, rng=PCG64(2))
    assert together.shape == (3, 3)
    np.testing.assert_array_equal(together[:, 0], study.release(X, y, rng=PCG64(2)))
    source, state, states = PCG64(2), study.begin(), []
    for i, (row, label) in enumerate(zip(X, y, strict=True)):
        state = study.update(state, study.respond(state.theta, row, label, rng=source))
        if i >= 4 and i % 2 == 0:
            states.append(state)
    assert len(states) == 64
    np.testing.assert_allclose(study.interval(states, 0.8), together[:, 1:], rtol=1e-12)
    assert (together[:, 1] < together[:, 0]).all()
    assert (together[:, 0] < together[:, 2]).all()


def test_intervals_cover_linear_coefficients():
    """0.93 to 0.97 for a nominal 0.95, within the noise of 300 runs of 5000 people; those of half the width do not."""
    rng, beta = np.random.default_rng(0), np.array([1.0, -0.5])
    X = rng.choice([-1.0, 1.0], (5000, 2))
    y = X @ beta + rng.normal(size=5000)
    options = {"epsilon": 2.0, "model": "linear", "clip": 3.0, "radius": math.sqrt(2), "size": 300}
    found = local.glm(X, y, **options, confidence=0.95, rng=PCG64(3))
    assert found.shape == (300, 2, 3)
    estimate, low, high = np.moveaxis(found, -1, 0)
    covered = ((low <= beta) & (beta <= high)).mean(axis=0)
    assert ((covered > 0.9) & (covered < 0.99)).all()
    narrow = (np.abs(estimate - beta) <= (high - low) / 4).mean(axis=0)
    assert (narrow < 0.85).all()


def test_parameters():
    study = local.GradientDescent(1, 1.0, burn_in=10)
    X, y = np.zeros((73, 1)), np.zeros(73)
    with pytest.raises(ValueError, match="at least 64 people after the burn-in, not 63"):
        study.release(X, y, confidence=0.95)
    for wrong in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="confidence"):
            study.release(np.zeros((99, 1)), np.zeros(99), confidence=wrong)
    state = study.begin()
    with pytest.raises(ValueError, match="at least 8 of one run"):
        study.interval([state] * 9)
    later = [state._replace(users=11 + i) for i in range(9)]
    with pytest.raises(ValueError, match="at least 8 of one run"):
        study.interval(later[::-1])
    with pytest.raises(ValueError, match="1 coefficients"):
        study.interval([step._replace(total=np.zeros(2)) for step in later])
    assert study.interval(later).tolist() == [[0.0, 0.0]]
