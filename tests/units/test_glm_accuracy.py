"""The accuracy of generalised linear models, and their answers for records of all kinds. Seeds are fixed."""

import itertools
import math

import numpy as np
import pytest

import dpfast as dpf
from dpfast.regression import descent, models, schedule
from dpfast.regression.populations import NormalRows

GUARANTEES = [1e-6, 0.0]  # delta


def people(n, d, seed, *, size=2.0, intercept=0.5):
    """Normal rows, labels of a logistic model, its coefficients, and the source for the releases."""
    rng = np.random.default_rng(seed)
    slopes = rng.normal(size=d)
    slopes *= size / np.linalg.norm(slopes)
    X = rng.normal(size=(n, d))
    y = rng.random(n) < 1 / (1 + np.exp(-(X @ slopes + intercept)))
    return X, y, slopes, rng


def points(fit, slopes, intercept, seed=99):
    """Percentage points of correct predictions of new rows, lost relative to the best prediction."""
    X = np.random.default_rng(seed).normal(size=(20_000, len(slopes)))
    t = X @ slopes + intercept
    wrong = (fit.predict(X) > 0) != (t > 0)
    return 100 * np.mean(wrong * np.abs(np.tanh(t / 2)))


def losses(delta, *, runs=5, n=10_000, d=6, size=2.0, **options):
    lost = []
    for seed in range(runs):
        X, y, slopes, rng = people(n, d, seed, size=size)
        fit = dpf.glm(X, y, radius=math.sqrt(d) + 1, epsilon=1.0, delta=delta, rng=rng, **options)
        lost.append(points(fit, slopes, 0.5))
    return np.mean(lost)


@pytest.mark.parametrize("delta", GUARANTEES)
def test_private_predictions_are_nearly_as_good(delta):
    loss = losses(delta)
    assert loss < 0.1  # without privacy 0.02
    one = schedule(10_000, 7, dpf.Privacy(1.0))._replace(steps=1)
    assert losses(delta, steps=one) > 2 * loss  # a control: one step does not reach the solution


def test_matched_gradients_lose_less_than_steps():
    steps = schedule(10_000, 7, dpf.Privacy(1.0))
    assert losses(0.0, steps=steps, size=1.0, runs=30) > 1.1 * losses(0.0, size=1.0, runs=30)


@pytest.mark.parametrize("delta", GUARANTEES)
def test_units_do_not_matter(delta):
    X, y, _, _ = people(5000, 3, 1)
    units, center = np.full(3, 2.0**40), np.array([3.0, -2.0, 1.0]) * 2.0**40
    one = dpf.glm(X, y, radius=3.0, epsilon=1.0, delta=delta, rng=np.random.default_rng(5))
    other = dpf.glm(
        X * units + center,
        y,
        radius=3.0 * 2.0**40,
        center=center,
        epsilon=1.0,
        delta=delta,
        rng=np.random.default_rng(5),
    )
    np.testing.assert_allclose(other.coefficients * units, one.coefficients, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(other.linear_predictor(center[None])[0], one.intercept, rtol=1e-3, atol=1e-4)


def hard_cases():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(400, 3))
    flags = X[:, 0] > 0
    holes = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    return {
        "separable": (X, flags),
        "all labels 0": (X, np.zeros(400)),
        "all labels 1": (X, np.ones(400)),
        "missing labels": (X, np.full(400, np.nan)),
        "missing values": (holes, np.where(flags, np.nan, 1.0)),
        "infinite values": (X * np.inf, flags),
        "all rows alike": (np.ones((400, 3)), flags),
        "collinear columns": (X[:, [0, 0, 0]], flags),
        "columns of zeros": (np.zeros((400, 3)), flags),
        "columns far apart": (X * [1e-12, 1.0, 1e12], flags),
        "largest doubles": (np.full((400, 3), 1.7e308) * np.sign(X), flags),
        "more columns than rows": (rng.normal(size=(5, 12)), np.array([0, 1, 0, 1, 1])),
        "one record": (X[:1], flags[:1]),
    }


MODELS = {"logistic": {}, "poisson": {"label_bound": 10.0}, "huber": {"label_bound": 10.0, "k": 1.0}}


@pytest.mark.parametrize("case", hard_cases())
@pytest.mark.parametrize("model", MODELS)
def test_all_records_have_an_answer(case, model):
    X, y = hard_cases()[case]
    for delta, epsilon in itertools.product(GUARANTEES, (0.01, 1e4)):
        rng = np.random.default_rng(3)
        fit = dpf.glm(X, y, model=model, radius=2.0, epsilon=epsilon, delta=delta, rng=rng, **MODELS[model])
        for part in (fit.coefficients, fit.intercept, fit.standard_errors, fit.intercept_error, fit.covariance):
            assert np.isfinite(part).all(), (delta, epsilon)


@pytest.mark.parametrize("delta", GUARANTEES)
def test_without_budget_the_fit_is_the_start(delta):
    X, y, _, rng = people(20, 5, 2)
    fit = dpf.glm(X, y, radius=3.0, epsilon=0.01, delta=delta, rng=rng)
    assert np.abs(fit.linear_predictor(X)).max() < 0.1


@pytest.mark.parametrize("delta", GUARANTEES)
def test_noise_is_not_taken_for_signal(delta, monkeypatch):
    """Labels without relation to the rows: with 200 records the slopes are noise, and shrunk in part or altogether."""

    def length():
        lengths = []
        for seed in range(30):
            rng = np.random.default_rng([4, seed])
            X, y = rng.normal(size=(200, 5)), rng.random(200) < 0.5
            fit = dpf.glm(X, y, radius=3.0, epsilon=0.3, delta=delta, rng=rng)
            lengths.append(np.linalg.norm(fit.coefficients))
        return np.mean(lengths)

    shrunk = length()
    monkeypatch.setattr(descent.Descent, "_shrunk", lambda self, theta, weights: (theta, 1.0))
    assert shrunk < 0.87 * length()


@pytest.mark.parametrize("delta", GUARANTEES)
def test_intervals_of_a_logistic_model_include_the_effect_of_clipping(delta):
    covered = []
    for seed in range(12):
        X, y, slopes, rng = people(20_000, 3, seed, size=1.2)
        low, high = dpf.glm(X, y, radius=4.0, epsilon=1.0, delta=delta, rng=rng).interval(0.95).T
        covered.append((low <= slopes) & (slopes <= high))
    assert np.mean(covered) > 0.85


@pytest.mark.parametrize(("model", "delta"), [(model, 1e-6) for model in MODELS] + [("poisson", 0.0), ("huber", 0.0)])
def test_intervals_cover_the_coefficients(model, delta):
    covered = []
    for seed in range(12):
        X, flags, slopes, rng = people(10_000, 4, seed, size=0.7)
        t = X @ slopes + 0.5
        labels = {"logistic": flags, "poisson": rng.poisson(np.exp(t)), "huber": t + rng.standard_t(3, size=10_000)}
        fit = dpf.glm(X, labels[model], model=model, radius=4.5, epsilon=1.0, delta=delta, rng=rng, **MODELS[model])
        low, high = fit.interval(0.95).T
        covered.append((low <= slopes) & (slopes <= high))
    assert np.mean(covered) > 0.8


def rows_of(kind, n, rng):
    """Rows of 5 columns, and a radius that covers them."""
    if kind == "normal":
        return rng.normal(size=(n, 5)), 5.0
    if kind == "uniform":
        return rng.uniform(-1.7, 1.7, size=(n, 5)), 4.0
    return 2.0 * (rng.random((n, 5)) < 0.4), 4.5


def coverage(kind, delta, *, size=0.8, n=20_000, runs=30):
    """The share of slopes within their intervals of 95 %, and the mean of the slopes relative to the truth."""
    covered, ratios = [], []
    for seed in range(runs):
        rng = np.random.default_rng([seed, n])
        slopes = rng.normal(size=5)
        slopes *= size / np.linalg.norm(slopes)
        X, radius = rows_of(kind, n, rng)
        y = rng.random(n) < 1 / (1 + np.exp(-(X - X.mean(axis=0)) @ slopes))
        fit = dpf.glm(X, y, radius=radius, epsilon=1.0, delta=delta, rng=rng)
        covered.append(np.abs(fit.coefficients - slopes) <= 1.96 * fit.standard_errors)
        ratios.append(fit.coefficients @ slopes / size**2)
    return np.mean(covered), np.mean(ratios)


@pytest.mark.parametrize(
    ("kind", "delta"),
    [
        ("normal", 1e-6),
        ("binary", 0.0),
        pytest.param("normal", 0.0, marks=pytest.mark.slow),
        pytest.param("uniform", 1e-6, marks=pytest.mark.slow),
        pytest.param("uniform", 0.0, marks=pytest.mark.slow),
        pytest.param("binary", 1e-6, marks=pytest.mark.slow),
    ],
)
def test_intervals_of_logistic_slopes(kind, delta):
    covered, ratio = coverage(kind, delta)
    assert 0.91 < covered < 0.99  # 150 slopes of 30 fits
    assert abs(ratio - 1) < 0.05


def test_without_the_correction_intervals_do_not_hold_the_slopes(monkeypatch):
    """The control of `test_intervals_of_logistic_slopes`."""
    assert coverage("normal", 1e-6, size=1.5, n=10_000)[0] > 0.91
    monkeypatch.setattr(descent, "_CLIP_BIAS", (0.0, 0.0))
    covered, ratio = coverage("normal", 1e-6, size=1.5, n=10_000)
    assert covered < 0.85
    assert ratio > 1.05


class TestPopulations:
    """Expected gradients against simulated records."""

    @pytest.mark.parametrize("model", MODELS)
    @pytest.mark.parametrize("clip", [1.0, 2.5, math.inf])
    def test_like_a_simulation(self, model, clip):
        rng, m = np.random.default_rng(5), 130_000
        theta, truth = np.array([0.3, -0.2, 0.4, 0.1]), np.array([0.5, 0.3, 0.1, 0.2])
        z = np.column_stack([rng.normal(size=(m, 3)), np.ones(m)])  # whitened rows, the last direction the constant
        made = models.model_of(model, MODELS[model].get("label_bound"), MODELS[model].get("k"))
        chance, first, second = made.labels(z @ theta, z @ truth)
        residuals = np.where(rng.random(m) < chance, first, second)
        limits = clip / np.linalg.norm(z, axis=1)
        clipped = z * np.clip(residuals, -limits, limits)[:, None]
        weights = made.curvature(z @ theta) * (np.abs(residuals) < limits)
        mean = np.array([0.0, 0.0, 0.0, 1.0])
        found = NormalRows(made, np.eye(4), mean, clip).gradient(theta, truth)
        for computed, values, error in (  # of the quadrature; the weights in the derivative jump
            (found.mean, clipped, 0.02),
            (found.derivative, np.einsum("i,ij,ik->ijk", weights, z, z), 0.12),
            (found.outer, np.einsum("ij,ik->ijk", clipped, clipped), 0.04),
        ):
            errors = np.abs(computed - values.mean(axis=0)) - 6 * values.std(axis=0) / math.sqrt(m)
            assert errors.max() < error * np.abs(computed).max()

    def test_clipped_less_at_the_truth_is_less_biased(self):
        made, theta = models.model_of("logistic", None, None), np.array([1.0, 0.5])
        sizes = [
            np.linalg.norm(NormalRows(made, np.eye(2), np.zeros(2), clip).gradient(theta, theta).mean)
            for clip in (0.7, 1.0, 2.0, math.inf)
        ]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[0] > 0.01
        assert sizes[-1] < 1e-6
