"""Matched gradients of logistic models: the shrunk moments, the expected gradients, the posterior. Seeds are fixed."""

import math

import numpy as np
import pytest

import dpfast as dpf
from dpfast.regression import descent, matching, schedule, schedules
from dpfast.regression.matching import Matching, NoisyGradient
from dpfast.regression.models import Logistic
from dpfast.regression.populations import NormalRows
from dpfast.regression.shrinkage import shrunk_moments
from tests.cases import every


def with_noise(moments, noise, rng):
    """Moments with noise on all entries but the last."""
    made = np.triu(rng.normal(size=moments.shape), 1)
    made += made.T + np.diag(math.sqrt(2) * rng.normal(size=len(moments)))
    made[-1, -1] = 0.0
    return moments + noise * made


def correlated(d, correlation, means=0.0):
    moments = np.eye(d + 1)
    moments[:d, :d] += correlation * (1 - np.eye(d)) + means**2
    moments[d, :d] = moments[:d, d] = means
    return moments


class TestShrunkMoments:
    @pytest.mark.parametrize("correlation", [0.0, 0.6])
    def test_closer_where_noise_hides_the_differences(self, correlation):
        rng, truth, squares, found = np.random.default_rng(3), correlated(8, correlation), np.zeros(2), 0
        for _ in range(200):
            released = with_noise(truth, 0.2, rng)
            shrunk = shrunk_moments(released, 0.2, means=True)
            np.testing.assert_array_equal(shrunk.moments, shrunk.moments.T)
            assert shrunk.noise < 0.2
            found += shrunk.structured
            squares += np.sum((released - truth) ** 2), np.sum((shrunk.moments - truth) ** 2)
        assert squares[1] < 0.35 * squares[0]
        assert found < 20

    @every("means", [True, False])
    @every("p", [1, 2, 3, 4, 9])
    def test_with_little_noise_they_stay(self, p, means):
        if p == means:
            return
        rows = np.random.default_rng(p).normal(size=(p, 20)) + 1
        moments = rows @ rows.T
        for noise in (1e-9, 1e-30):
            shrunk = shrunk_moments(moments, noise, means=means)
            np.testing.assert_allclose(shrunk.moments, moments, rtol=1e-3)
            assert shrunk.noise <= noise

    def test_differences_above_the_noise_are_found(self):
        rng = np.random.default_rng(5)
        scales = np.diag([*np.resize([1.0, 0.3], 8), 1.0])
        for truth in (scales @ correlated(8, 0.0) @ scales, correlated(8, 0.0) + np.outer(*[[1, -1] * 4 + [0]] * 2)):
            shrunk = shrunk_moments(with_noise(truth, 0.05, rng), 0.05, means=True)
            assert shrunk.structured
            assert np.abs(shrunk.moments - truth).max() < 0.25


class TestExpectedGradients:
    @pytest.mark.parametrize("clip", [0.6, 1.5, math.inf])
    def test_the_derivative_by_the_truth(self, clip):
        rows = NormalRows(Logistic(), np.eye(4), np.array([0.0, 0.0, 0.0, 1.0]), clip)
        theta, truth, step = np.array([0.3, -0.2, 0.4, 0.1]), np.array([0.5, 0.3, 0.1, 0.2]), 1e-5
        curvature = rows.gradient(theta, truth).by_truth
        moved = [
            rows.gradient(theta, truth + step * e).mean - rows.gradient(theta, truth - step * e).mean for e in np.eye(4)
        ]
        np.testing.assert_allclose(-np.array(moved) / (2 * step), curvature, atol=0.01 * np.abs(curvature).max())

    def test_without_a_clip_it_is_the_curvature(self):
        rows, theta = NormalRows(Logistic(), np.eye(3), np.zeros(3), math.inf), np.array([0.5, -1.0, 0.3])
        found = rows.gradient(theta, theta)
        np.testing.assert_allclose(found.by_truth, found.derivative, atol=1e-12)


MEAN = np.array([0.0, 0.0, 0.0, 1.0])


def matched(truth, deviation, rng, *, n=10**9, steps=3, clip=1.5):
    """The estimate from gradients of a normal population with this noise, and a root of its covariance."""
    made = Matching(mean=MEAN, clip=clip, moment_noise=np.zeros(4), n=n, start=np.zeros(4))
    population, theta = NormalRows(Logistic(), np.eye(4), MEAN, clip), np.zeros(4)
    for _ in range(steps):
        gradient = population.gradient(theta, truth).mean + deviation * rng.normal(size=4)
        theta, root = made.estimate(NoisyGradient(theta, gradient, deviation))
    return theta, root


class TestMatching:
    def test_exact_gradients_lead_to_the_truth(self, monkeypatch):
        monkeypatch.setattr(matching, "_CLIP_BIAS", (1.0, 0.0))
        rng, truth = np.random.default_rng(1), np.array([1.0, -2.0, 0.5, 0.7])
        theta, root = matched(truth, 1e-6, rng, steps=6)
        assert np.abs(theta - truth).max() < 0.01
        assert np.linalg.norm(root, axis=1).max() < 0.5

    def test_noise_leads_to_the_start(self):
        theta, root = matched(np.ones(4), 100.0, np.random.default_rng(1))
        assert np.abs(theta).max() < 0.1
        assert np.linalg.norm(root, axis=1).min() > 0.5

    def test_the_posterior_holds_the_truth(self):
        rng, held = np.random.default_rng(2), []
        for _ in range(60):
            truth = rng.normal(size=4)
            theta, root = matched(truth, 0.02, rng)
            held.append(np.abs(theta - truth) <= 1.96 * np.linalg.norm(root, axis=1))
        assert np.mean(held) > 0.9

    @pytest.mark.parametrize("deviation", [1e-12, 1.0, 1e9])
    def test_any_gradients_lead_to_finite_estimates(self, deviation):
        for size in (1e-3, 1.0, 1e6):
            noise = np.array([1.0, 1e-3, 1e3, 0.1])
            made = Matching(mean=MEAN, clip=1.5, moment_noise=noise, n=10, start=size * np.ones(4))
            for sign in (1.0, -1.0, 1.0):
                theta, root = made.estimate(NoisyGradient(size * np.ones(4), sign * np.ones(4), deviation))
                assert np.isfinite(theta).all()
                assert np.isfinite(root).all()


@pytest.mark.parametrize("moments", ["of rows", "zeros", "of many sizes", "with negative eigenvalues"])
def test_any_releases_give_a_finite_fit(moments):
    rng = np.random.default_rng(6)
    for _ in range(6):
        n, d, epsilon = int(10 ** rng.uniform(0, 9)), int(rng.integers(1, 12)), 10 ** rng.uniform(-1.4, 1.3)
        intercept = bool(rng.integers(2))
        plan = schedule(10**6, 5, dpf.Privacy(1.0), logistic=True)._replace(steps=int(rng.integers(1, 5)))
        options = {"privacy": dpf.Privacy(epsilon), "intercept": intercept, "steps": plan}
        made = descent.Descent("logistic", n=n, d=d, domain=dpf.domains.Ball(1.0), **options)
        p = d + intercept
        roots = rng.normal(size=(p, p))
        released = {
            "of rows": roots @ roots.T / p,
            "zeros": np.zeros((p, p)),
            "of many sizes": np.diag(10 ** rng.uniform(-30, 0, p)),
            "with negative eigenvalues": roots + roots.T,
        }[moments]
        while made.mechanism is not None:
            if made.done < 2:
                made.advance(released if made.done else [rng.choice([-0.5, 0.0, 0.5])])
                continue
            noise = made.mechanism.noise_deviation(n) * rng.normal(size=p)
            made.advance([noise, made.mechanism.clip * np.ones(p), np.zeros(p), 1e3 * noise][rng.integers(4)])
        assert np.isfinite(made.result.coefficients).all()
        assert np.isfinite(made.result.covariance).all()


def descent_of(steps, d=5):
    public = {"n": 100_000, "d": d, "domain": dpf.domains.Ball(1.0), "privacy": dpf.Privacy(10.0)}
    return descent.Descent("logistic", steps=steps, **public)


class TestManyGradients:
    def test_up_to_16_are_matched(self):
        assert descent_of(16).schedule.matching

    @pytest.mark.parametrize("steps", [17, 100])
    def test_more_are_steps(self, steps):
        assert descent_of(steps).schedule == schedule(100_000, 6, dpf.Privacy(10.0))._replace(steps=steps)

    def test_a_schedule_with_more_than_memory_holds_is_refused(self):
        plan = descent_of("auto").schedule
        with pytest.raises(ValueError, match="4096"):
            descent_of(plan._replace(steps=100), d=50)


def coverage(runs=16, n=10_000, d=10):
    """The share of slopes within their intervals, for correlated columns of two scales, with strong signals."""
    held, scales = [], np.resize([1.0, 0.3], d)
    for seed in range(runs):
        rng = np.random.default_rng([9, seed])
        slopes = rng.normal(size=d)
        Z = math.sqrt(0.5) * (rng.normal(size=(n, d)) + rng.normal(size=(n, 1)))
        slopes *= 2 / np.std(Z @ slopes)
        y = rng.random(n) < 1 / (1 + np.exp(-Z @ slopes))
        fit = dpf.glm(Z * scales, y, radius=math.sqrt(d), epsilon=1.0, rng=rng)
        held.append(np.abs(fit.coefficients - slopes / scales) <= 1.96 * fit.standard_errors)
    return np.mean(held)


def test_intervals_allow_for_the_noise_of_the_moments(monkeypatch):
    """Also the control: without it they do not hold the slopes."""
    covered = coverage()
    assert covered > 0.9
    whole = descent.Matching
    monkeypatch.setattr(
        descent, "Matching", lambda **given: whole(**given | {"moment_noise": np.zeros_like(given["moment_noise"])})
    )
    assert coverage() < covered - 0.06


def covered_of_hours(runs=8, n=30_000):
    """The share of intervals that hold the slope of most likelihood, of a column like hours of work: long tails."""
    rng = np.random.default_rng(5)
    hours = np.where(rng.random(n) < 0.5, 0.0, np.clip(0.3 * rng.standard_t(3, n), -1, 1))
    y = rng.random(n) < 1 / (1 + np.exp(1.3 - 2.3 * hours))
    design, exact = np.column_stack([hours, np.ones(n)]), np.zeros(2)
    for _ in range(20):
        chance = 1 / (1 + np.exp(-design @ exact))
        exact += np.linalg.solve((design.T * (chance * (1 - chance))) @ design, design.T @ (y - chance))
    held = []
    for seed in range(runs):
        made = descent.Descent("logistic", n=n, d=1, domain=dpf.domains.Ball(1.0), privacy=dpf.Privacy(1.0))
        while made.mechanism is not None:
            made.advance(made.mechanism((hours[:, None], y), rng=np.random.PCG64(100 * seed + made.done)))
        held.append(abs(made.result.coefficients[0] - exact[0]) <= 1.96 * made.result.standard_errors[0])
    return np.mean(held)


def test_a_column_with_long_tails_is_covered(monkeypatch):
    """Also the control: not with the clip that suffices for normal columns."""
    assert covered_of_hours() > 0.85
    monkeypatch.setattr(schedules, "_WIDE_CLIP", 0.0)
    assert covered_of_hours() < 0.3
