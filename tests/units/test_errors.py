"""The `error` of mechanisms against simulation, and that every mechanism has one or says what to use."""

import math

import numpy as np
import pytest
from numpy.random import PCG64
from scipy.stats import norm

import dpfast as dpf
from dpfast import Grid, Selection, domains, local
from dpfast.regression import DesignMoments, GradientSums, LabelShares
from dpfast.robust import RangeFreeBoxes
from dpfast.statistics import Count, Mean, Sum
from tests.cases import every
from tests.central import central

GRID = Grid(0, 100)
BALL = domains.Ball(10.0)


def root_mean_square(releases, exact):
    return np.sqrt(np.mean((releases - exact) ** 2, axis=0))


@every(
    "mechanism, confidence",
    [
        (dpf.GlobalSensitivity(Mean(), grid=GRID, epsilon=0.5), 0.95),
        (dpf.GlobalSensitivity(Mean(), grid=GRID, epsilon=4.0), 0.5),
        (dpf.GlobalSensitivity(Sum(), grid=GRID, epsilon=0.5), 0.8),
        (dpf.GlobalSensitivity(Sum(), grid=GRID, epsilon=0.5, neighbors="add-remove"), 0.8),
        (dpf.GlobalSensitivity(Count(), grid=GRID, epsilon=0.1, neighbors="add-remove"), 0.9),
    ],
)
def test_noise_alone(mechanism, confidence):
    n = 1000
    x = np.full(n, 40.0)
    exact = {"mean": 40.0, "sum": 40.0 * n, "count": n}[str(mechanism.statistic)]
    distance = np.abs(mechanism.release(x, size=40_000, rng=PCG64(1)) - exact)
    least = mechanism.error(n, confidence=confidence)
    assert np.mean(distance <= least * (1 + 1e-9)) == pytest.approx(confidence, abs=0.02)
    assert np.mean(distance <= 0.8 * least) < confidence - 0.03


@every("delta", [0.0, 1e-6])
@every(
    "make",
    [
        pytest.param(lambda **public: dpf.SecondMoments(domain=BALL, **public), id="second moments"),
        pytest.param(lambda **public: dpf.Covariance(domain=BALL, psd=False, **public), id="covariance"),
        pytest.param(lambda **public: dpf.Covariance(domain=BALL, psd=False, centered=False, **public), id="centered"),
        pytest.param(lambda **public: dpf.NoisySums(Mean(), domain=BALL, **public), id="mean"),
        pytest.param(
            lambda **public: dpf.NoisySums(Sum(), domain=domains.Box((Grid(-5, 5), Grid(-10, 10))), **public), id="sum"
        ),
    ],
)
def test_noise_on_rows(make, delta):
    n, mechanism = 500, make(epsilon=0.5, delta=delta)
    X = np.random.default_rng(2).choice([-1.0, 1.0], (n, 2))
    X -= X.mean(axis=0)
    exact = mechanism.release(X, size=4000, rng=PCG64(3))
    measured = root_mean_square(exact, np.mean(exact, axis=0))
    predicted = mechanism.error(n, dimension=2)
    assert measured.shape == predicted.shape
    np.testing.assert_allclose(measured, predicted, rtol=0.08, atol=1e-12)


def test_noise_on_labelled_rows():
    rng = np.random.default_rng(4)
    X, y, n = rng.uniform(-1, 1, (400, 2)), rng.integers(0, 3, 400), 400
    public = {"epsilon": 1.0, "delta": 1e-6}
    gradient = GradientSums("logistic", np.zeros(3), transform=np.eye(3), domain=domains.Ball(2.0), clip=1.0, **public)
    moments = dpf.RegressionMoments(domain=domains.Ball(2.0), labels=domains.Ball(3.0), **public)
    design = DesignMoments(domain=domains.Ball(2.0), **public)
    for mechanism, predicted in [
        (LabelShares(3, **public), LabelShares(3, **public).error(n)),
        (gradient, gradient.error(n)),
        (moments, moments.error(n, dimension=2)),
        (design, design.error(n, dimension=2)),
    ]:
        releases = mechanism.release((X, y), size=4000, rng=PCG64(5))
        measured = root_mean_square(releases, releases.mean(axis=0))
        np.testing.assert_allclose(measured, np.broadcast_to(predicted, measured.shape), rtol=0.08, atol=1e-12)


@pytest.mark.parametrize(
    "mechanism",
    [
        dpf.PartitionSelection(0.5, 1e-3),
        dpf.PartitionSelection(0.5, 1e-3, neighbors="replace-one"),
        dpf.PartitionSelection(1.0, 1e-4, contributions=2),
        dpf.PartitionSelection(0.2, domain=1000),
        dpf.PartitionSelection(0.2, domain=(3, 5, 7)),
    ],
)
@pytest.mark.parametrize("n", [pytest.param(15, marks=pytest.mark.slow), 30, pytest.param(200, marks=pytest.mark.slow)])
def test_counts_of_keys(mechanism, n):
    counts = [
        int(released.counts[list(released.keys).index(3)])
        for released in mechanism.release(np.full(n, 3), size=1500, rng=PCG64(6))
        if 3 in released.keys
    ]
    if len(counts) > 200:
        assert np.mean(np.abs(np.array(counts) - n)) == pytest.approx(mechanism.error(n), rel=0.1)
    assert len(counts) / 1500 == pytest.approx(mechanism.probability(n), abs=0.04)


def test_a_key_that_is_never_released():
    assert math.isnan(dpf.PartitionSelection(0.5, 1e-3).error(0))


class TestSelection:
    @pytest.mark.parametrize("method", ["exponential", "permute-and-flip"])
    @pytest.mark.parametrize("monotone", [False, True])
    def test_the_loss_is_below_for_all_scores(self, method, monotone):
        mechanism = Selection(epsilon=0.7, selection=method, monotone=monotone)
        rng = np.random.default_rng(8)
        for confidence in (0.5, 0.95):
            worst = mechanism.error(20, confidence=confidence)
            scores = [np.append(np.full(19, -gap), 0.0) for gap in np.linspace(0.1, 2, 9) * worst]
            scores += [rng.exponential(worst, 20) for _ in range(20)]
            for each in scores:
                probabilities = mechanism.law(each).pmf(np.arange(20))
                assert probabilities[each.max() - each <= worst * (1 + 1e-9)].sum() >= confidence - 1e-9

    def test_it_is_reached(self):
        mechanism = Selection(epsilon=0.7)
        scores = np.append(np.full(19, -1.001 * mechanism.error(20)), 0.0)
        assert mechanism.law(scores).pmf(19) == pytest.approx(0.95, abs=0.002)
        assert mechanism.error(1) == 0


@pytest.mark.parametrize(
    ("mechanism", "distribution"),
    [
        (dpf.MEstimator(dpf.psi.Huber(20.0), grid=GRID, epsilon=1.0), norm(50, 15)),
        (dpf.MEstimator(dpf.psi.Huber(20.0), grid=GRID, epsilon=0.1), norm(50, 5)),
        pytest.param(
            dpf.MEstimator(dpf.psi.Logistic(5.0), grid=GRID, epsilon=1.0), norm(30, 10), marks=pytest.mark.slow
        ),
        (dpf.MEstimator(dpf.psi.Pinball(0.75), grid=GRID, epsilon=0.5), norm(50, 15)),
        (dpf.MEstimator(dpf.psi.Huber(9.0), grid=GRID, epsilon=0.5, prior=dpf.prior.Cauchy(40, 5)), norm(50, 15)),
    ],
)
def test_m_estimates(mechanism, distribution):
    n, rng = 400, np.random.default_rng(9)
    center = distribution.ppf(0.75) if isinstance(mechanism.psi, dpf.psi.Pinball) else distribution.mean()
    samples = distribution.rvs((400, n), random_state=rng)
    distance = np.abs([mechanism.release(x, size=4, rng=PCG64(i)) - center for i, x in enumerate(samples)])
    predicted = mechanism.error(n, distribution=distribution, confidence=0.8)
    assert np.quantile(distance, 0.8) == pytest.approx(predicted, rel=0.1)


@pytest.mark.parametrize(
    ("epsilon", "matchings", "center"), [pytest.param(1.0, "auto", 0.0, marks=pytest.mark.slow), (4.0, 2, 3.0)]
)
def test_lines(epsilon, matchings, center):
    n, rng, mechanism = 2000, np.random.default_rng(10), dpf.TheilSen(epsilon=epsilon, matchings=matchings)
    lines = []
    for i in range(400):
        x = rng.normal(center, 2.0, n)
        lines.append(mechanism((x, 1.0936 + 2.8173 * x + rng.normal(0, 0.5, n)), rng=PCG64(i)))  # not round
    measured = root_mean_square(np.array(lines), [2.8173, 1.0936])
    np.testing.assert_allclose(measured, mechanism.error(n, deviation=0.5, spread=2.0, center=center), rtol=0.1)


def test_histograms():
    mechanism = dpf.PerturbedHistogram(8, grid=GRID, epsilon=0.5)
    x = np.random.default_rng(11).uniform(0, 100, (300, 2000))
    heights = np.array([mechanism.release(row, size=1, rng=PCG64(i))[0] for i, row in enumerate(x)]) / 2000 * 8
    assert np.mean((heights - 1) ** 2) == pytest.approx(mechanism.error(2000), rel=0.1)


ONE_MECHANISM_OF_EACH = {type(m).__name__: m for m in central(Grid(0, 100), 3.0)}


@every("name", ONE_MECHANISM_OF_EACH)
def test_every_mechanism_has_an_error_or_says_what_to_use(name):
    found, message = 0.0, ""
    try:
        found = ONE_MECHANISM_OF_EACH[name].error(1000)
    except TypeError as error:
        message = str(error)
    assert np.all(np.asarray(found) >= 0)
    assert not message or any(word in message for word in ("=", "required", "instead", "give ")), message


def test_what_has_no_error():
    boxes = RangeFreeBoxes(step=2.0**-10, width=8.0, delta=0.1, epsilon=40.0)
    with pytest.raises(TypeError, match="imagined records instead"):
        boxes.error(1000)
    with pytest.raises(TypeError, match="use that for 'replace-one'"):
        dpf.GlobalSensitivity(Mean(), grid=GRID, epsilon=1.0, neighbors="add-remove").error(1000)
    with pytest.raises(TypeError, match="so give one assumption: distribution=, density= or deviation="):
        dpf.InverseSensitivity(dpf.statistics.Median(), grid=GRID, epsilon=1.0).error(1000)


@pytest.mark.parametrize(
    ("randomizer", "x"),
    [
        (local.Binary(1.0), np.repeat([0, 1], 500)),
        (local.Interval(1.0, bounds=(0, 1)), np.repeat([0.0, 1.0], 500)),
    ],
)
def test_local_randomizers(randomizer, x):
    means = [randomizer.estimate(randomizer.randomize(x, rng=PCG64(i))) for i in range(600)]
    distance = np.abs(np.array(means).reshape(600, -1)[:, -1] - 0.5)
    assert np.mean(distance <= randomizer.error(1000, confidence=0.8)) >= 0.77
