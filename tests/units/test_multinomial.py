"""Multinomial regression: exact clipped sums, sensitivities by enumeration, composition, accuracy, awkward data."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64
from scipy.special import softmax

import dpfast as dpf
from dpfast.domains import Ball
from dpfast.laws import DiscreteLaplace
from dpfast.regression import Descent, Fit, GradientSums, LabelShares, MultinomialFit, Schedule
from dpfast.regression.models import Multinomial
from dpfast.regression.populations import SampledRows
from tests.cases import every
from tests.reference import gradients, products
from tests.reference.rows import adversarial_rows
from tests.units.test_glm import AWKWARD, finished, spent
from tests.units.test_gradient_sums import summed

RNG = np.random.default_rng(0)
LABELS = (0.0, 1.0, 2.0, 3.0, -1.0, 0.5, 1e300, np.inf, -np.inf, np.nan)  # of three classes, and others
FEW = {"n": 1000, "d": 2, "domain": Ball(3.0), "classes": 3}


def people(n, d=3, classes=3, seed=0, size=1.5):
    """Normal rows, labels of a multinomial model, its slopes and intercepts, which add up to 0."""
    rng = np.random.default_rng(seed)
    slopes, intercepts = rng.normal(size=(classes, d)), rng.normal(size=classes) / 2
    slopes, intercepts = slopes - slopes.mean(axis=0), intercepts - intercepts.mean()
    slopes *= size / np.linalg.norm(slopes, axis=1).max()
    X = rng.normal(size=(n, d))
    chances = softmax(X @ slopes.T + intercepts, axis=1)
    return X, (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=classes - 1), slopes, intercepts


def maximum_likelihood(X, y, classes):
    """Coefficients by Newton's method, with that of the last class at 0 and then centered; and standard errors."""
    design, truth = np.column_stack([X, np.ones(len(X))]), np.eye(classes)[y]
    p, free = design.shape[1], classes - 1
    theta = np.zeros((free, p))
    for _ in range(30):
        P = softmax(np.column_stack([design @ theta.T, np.zeros(len(X))]), axis=1)[:, :free]
        weights = P[:, :, None] * np.eye(free) - P[:, :, None] * P[:, None, :]
        hessian = np.einsum("iab,ij,ik->ajbk", weights, design, design, optimize=True).reshape(free * p, -1)
        theta -= np.linalg.solve(hessian, ((P - truth[:, :free]).T @ design).ravel()).reshape(free, p)
    center = np.kron(np.vstack([np.eye(free), np.zeros(free)]) - 1 / classes, np.eye(p))
    errors = np.sqrt(np.diag(center @ np.linalg.inv(hessian) @ center.T)).reshape(classes, p)
    return (center @ theta.ravel()).reshape(classes, p), errors


class TestKernel:
    pytestmark = pytest.mark.kernel

    @pytest.mark.parametrize("classes", [2, 3, 7])
    @pytest.mark.parametrize(("d", "p", "n"), [(1, 1, 1), (1, 2, 40), (2, 3, 31), (5, 4, 33), (20, 21, 65)])
    def test_sums_are_those_of_the_slow_twin(self, classes, d, p, n):
        domain = Ball(1.0, center=(0.25,) * d).with_digits(10)
        X, y = RNG.normal(size=(n, d)), RNG.integers(0, classes, n).astype(float)
        X[::7] *= 1e9
        X[3::11] = np.nan
        y[2::9] = RNG.choice(LABELS, len(y[2::9]))
        matrix = (RNG.normal(size=(d + 1, p)) * 4).astype(np.float32)
        theta = RNG.normal(size=(classes, p)) / 512
        for clip, bound in ((2.0**20, math.inf), (2.0**30, math.inf), (2.0**22, 0.25)):
            options = {"clip": clip, "scale": 2.0**10, "bound": bound}
            records = list(zip(domain.encode(X).tolist(), y.tolist(), strict=True))
            rows = [gradients.class_gradient(code, y, theta.tolist(), matrix, **options) for code, y in records]
            expected = [sum(column) for column in zip(*rows, strict=True)]
            assert summed(X, y, theta, matrix, domain=domain, model="multinomial", **options) == expected

    @every("form", [np.float32, np.int8, np.int64, np.uint64, bool])
    def test_labels_of_every_type(self, form):
        X, y = RNG.normal(size=(3000, 2)), RNG.integers(0, 2 if form is bool else 3, 3000)
        options = {"domain": Ball(4.0).with_digits(20), "model": "multinomial"}
        theta = RNG.normal(size=(3, 3)) / 2**20
        doubles = summed(X, y.astype(float), theta, np.eye(3), **options)
        assert summed(X, y.astype(form), theta, np.eye(3), **options) == doubles
        assert summed(X, y.astype(form)[::-1], theta, np.eye(3), **options, threads=2) != doubles

    @every("scale", [2.0**-3, 1.0, 2.0**20, 2.0**45])
    @every("size", [1e-6, 1.0, 1e4, 1e12])
    def test_no_record_exceeds_the_clip(self, size, scale):
        """Single records, of sizes where vectors and residuals round in every way; predictors that overflow, too."""
        domain, clip = Ball(1.0).with_digits(20), 2.0**20 * 1.3
        X = adversarial_rows(domain, 3, 2, RNG)
        matrix, largest = (RNG.normal(size=(3, 3)) * size).astype(np.float32), 0
        for theta in (np.zeros((3, 3)), RNG.choice([1e300, -1e300, 0.0], (5, 3)), RNG.normal(size=(2, 3)) / size):
            for row, y in zip(X, itertools.cycle(LABELS), strict=False):
                options = {"domain": domain, "clip": clip, "scale": scale, "model": "multinomial"}
                largest = max(
                    largest, gradients.squared_norm(summed(row[None], np.array([y]), theta, matrix, **options))
                )
        assert largest <= Fraction(clip) ** 2
        assert largest > 0.99 * clip**2 or scale < 2**40 or size > 1e-6  # of small vectors and exact residuals

    def test_the_largest_sums(self):
        """Blocks whose sums need all bits of a double."""
        options = {"domain": Ball(1.0).with_digits(20), "clip": math.nextafter(2.0**40, 0), "scale": 2.0**30}
        X, y, theta = np.tile([[0.6, -0.8]], (5000, 1)), np.zeros(5000), np.array([[-1e4, 1e4], [1e4, -1e4]])
        one = summed(X[:1], y[:1], theta, np.eye(3, 2), model="multinomial", **options)
        assert gradients.squared_norm(one) > (0.999 * options["clip"]) ** 2
        many = summed(X, y, theta, np.eye(3, 2), model="multinomial", **options)
        assert many == [5000 * part for part in one]


def gradients_of_all_records(seed, *, joint=True):
    """The gradients of all records with codes in a small ball and labels of every kind, and the clip."""
    rng = np.random.default_rng(seed)
    domain, clip = Ball(2.0, step=1.0), float(rng.uniform(10, 60))
    matrix, theta = (rng.normal(size=(3, 3)) * 3).astype(np.float32), rng.normal(size=(3, 3)) / 3
    records = [(code, y) for code in products.ball(domain.most, 2) for y in LABELS]
    if joint:
        options = {"domain": domain, "model": "multinomial", "clip": clip, "scale": 8.0}
        sums = [summed(np.array([code], float), np.array([y]), theta, matrix, **options) for code, y in records]
    else:
        options = {"clip": clip, "scale": 8.0, "joint": False}
        sums = [gradients.class_gradient(code, y, theta.tolist(), matrix, **options) for code, y in records]
    return sorted(set(map(tuple, sums))), clip


class TestSensitivity:
    @pytest.mark.parametrize("seed", range(4))
    def test_every_pair_of_tiny_records(self, seed):
        """Half the sensitivity, a control, is exceeded; and all of it with a clip for each class in place of all."""
        found, clip = gradients_of_all_records(seed)
        largest = max(math.dist(a, b) for a, b in itertools.combinations(found, 2))
        assert clip < largest <= 2 * clip
        by_class, _ = gradients_of_all_records(seed, joint=False)
        assert max(math.dist(a, b) for a, b in itertools.combinations(by_class, 2)) > 2 * clip

    def test_a_clip_before_rounding_is_not_enough(self):
        """The control: residuals clipped as floats and rounded then, not truncated, exceed the clip."""
        rng, clip, exceeded = np.random.default_rng(1), 300.0, False
        theta = rng.normal(size=(4, 3)) / 30
        for row in rng.normal(size=(300, 3)) * 9:
            options = {"domain": Ball(40.0, step=1.0), "model": "multinomial", "clip": clip, "scale": 16.0}
            sums = summed(row[None], np.zeros(1), theta, np.eye(4, 3), **options)
            assert gradients.squared_norm(sums) <= clip**2
            z = np.rint(row)
            r = (softmax(theta @ z) - np.eye(4)[0]) * 16
            r *= min(1.0, clip / (np.linalg.norm(r) * max(np.linalg.norm(z), 1)))
            exceeded |= np.linalg.norm(np.outer(np.rint(r), z)) > clip
        assert exceeded

    @every("n", [1, 2**21 - 1, 2**21, 10**9])
    @every("amount", [{"epsilon": 0.7}, {"epsilon": 1.0, "delta": 1e-3}, {"mu": 0.3}])
    def test_the_noise_is_that_of_the_sensitivity(self, n, amount):
        theta = np.zeros((4, 3))
        mechanism = GradientSums("multinomial", theta, transform=np.eye(3), domain=Ball(1.0), clip=1.0, **amount)
        shift = mechanism.shift(n)
        needed = (Fraction(2**40, 2**shift) + (4 if shift else 0)) / Fraction(
            mechanism.gaussian_mu or mechanism.epsilon
        )
        assert needed <= Fraction(mechanism.scale(n))  # sqrt(12) numbers are rounded if there is a shift
        assert Fraction(mechanism.scale(n)) <= needed * (1 + Fraction(1, 2**30))

    def test_the_laws_of_neighbours(self):
        """Pure noise on two numbers, at points of a lattice; with that of half the sensitivity, the control, not."""

        def loss(epsilon):
            options = {"transform": [[1.0], [0.0]], "domain": Ball(1.0), "clip": 0.5, "epsilon": epsilon}
            mechanism = GradientSums("multinomial", ((0.0,), (0.0,)), **options)
            tables = [([[1.0], [0.5]], [0.0, 1.0]), ([[1.0], [0.5]], [1.0, 1.0]), ([[-1.0], [0.5]], [0.0, 1.0])]
            laws = [mechanism.law(tuple(map(np.array, table))) for table in tables]
            steps = np.arange(-6, 7) * (mechanism.scale(2) / 3)
            k = (laws[0].center + np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2, 1)).astype(np.int64)
            return max(np.abs(a.logpmf(k) - b.logpmf(k)).max() for a, b in itertools.combinations(laws, 2))

        assert 0.95 < loss(1.0) <= 1.0
        assert loss(2.0) > 1.9

    def test_label_counts_of_every_pair_of_tiny_tables(self):
        """The change of the counts is sqrt(2) in the l2 norm, which 1, a control, does not cover; 2 in the l1 norm."""
        mechanism = LabelShares(3, epsilon=1.0)
        tables = {
            labels: mechanism.law((np.zeros((2, 1)), np.array(labels))).center
            for labels in itertools.product(LABELS, repeat=2)
        }
        changes = [
            tables[first, rest] - tables[second, rest] for first, second, rest in itertools.product(LABELS, repeat=3)
        ]
        assert max(np.sum(change**2) for change in changes) == 2
        assert max(np.abs(change).sum() for change in changes) == 2
        for mu in (0.3, 1.0, 1e5):
            scale = Fraction(LabelShares(3, mu=mu).scale)
            assert 2 <= (scale * Fraction(mu)) ** 2 < 2 + Fraction(1, 2**40)

    def test_the_laws_of_label_counts(self):
        """Noise of scale 2 / epsilon is epsilon-DP; that of scale 1 / epsilon, a control, is not."""
        laws = [LabelShares(3, epsilon=1.0).law((np.zeros((2, 1)), np.array([y, 0.0]))) for y in (0.0, 1.0, np.nan)]
        k = np.array(list(itertools.product(range(-3, 6), repeat=3)))

        def loss():
            return max(np.abs(a.logpmf(k) - b.logpmf(k)).max() for a, b in itertools.combinations(laws, 2))

        assert 0.999 < loss() <= 1 + 1e-12
        for law in laws:
            law.noise = type(law.noise)(DiscreteLaplace(1.0), 3)
        assert loss() > 1.9


class TestReleases:
    def test_means_of_clipped_gradients(self):
        X, y = RNG.normal(size=(20_000, 2)), RNG.integers(0, 3, 20_000)
        theta, matrix = RNG.normal(size=(3, 3)), RNG.normal(size=(3, 3))
        mechanism = GradientSums(
            "multinomial", theta, transform=matrix, domain=Ball(3.0), clip=1.5, epsilon=1e3, delta=1e-3
        )
        inside = X * np.minimum(1, 3 / np.linalg.norm(X, axis=1))[:, None]
        z = np.column_stack([inside, np.ones(len(X))]) @ matrix
        r = softmax(z @ theta.T, axis=1) - np.eye(3)[y]
        r *= np.minimum(1, 1.5 / (np.linalg.norm(r, axis=1) * np.linalg.norm(z, axis=1)))[:, None]
        release = mechanism((X, y))
        assert release.shape == (3, 3)
        assert np.allclose(release, r.T @ z / len(X), atol=1e-4)
        assert mechanism.release((X, y), size=2).shape == (2, 3, 3)

    def test_shares(self):
        y = np.array([0.0, 1.0, 1.0, 2.0, np.nan, 5.0, -1.0, 0.5])
        for labels in (y, y.tolist(), y.astype(np.float32)):
            shares = LabelShares(3, epsilon=1e6)((np.zeros((8, 1)), labels))
            assert shares.tolist() == [0.125, 0.25, 0.125]
        noisy = LabelShares(3, mu=0.5).release((np.zeros((8, 1)), y), size=4000, rng=PCG64(1)) - [0.125, 0.25, 0.125]
        assert abs(np.std(noisy) / LabelShares(3, mu=0.5).noise_deviation(8) - 1) < 0.05

    def test_wrong_parameters(self):
        good = {"transform": np.eye(2), "domain": Ball(1.0), "clip": 1.0, "epsilon": 1.0}
        for theta, message in (
            ((0.0, 1.0), "sequence"),
            (np.zeros((1, 2)), "two classes"),
            (np.zeros((3, 3)), "2, like|2 entries"),
            (np.zeros((2**16 + 1, 2)), "2\\*\\*17"),
            ([[0.0, np.nan], [0.0, 0.0]], "coefficients"),
        ):
            with pytest.raises((TypeError, ValueError), match=message):
                GradientSums("multinomial", theta, **good)
        for options, message in (
            ({"classes": 1}, "at least 2"),
            ({"classes": 3.0}, "integer"),
            ({"classes": 2**16 + 1}, "2\\*\\*16"),
            ({"epsilon": 1e-20}, "larger epsilon"),
            ({"epsilon": None}, "mu"),
        ):
            with pytest.raises((TypeError, ValueError), match=message):
                LabelShares(**{"classes": 3, "epsilon": 1.0} | options)
        for options in ({}, {"classes": 1}, {"classes": "abc"}, {"classes": 3, "label_bound": 1.0}):
            with pytest.raises((TypeError, ValueError), match=r"classes|label_bound"):
                dpf.glm(np.zeros((5, 1)), np.zeros(5), model="multinomial", radius=1.0, epsilon=1.0, **options)
        with pytest.raises(TypeError, match="'logistic' does not take classes"):
            dpf.glm(np.zeros((5, 1)), np.zeros(5), classes=2, radius=1.0, epsilon=1.0)


class TestComposition:
    @every("steps", ["auto", 1, Schedule(0.1, 0.3, 3, 1.0, 0.5)])
    @every("privacy", [dpf.Privacy(1.0, 1e-6), dpf.Privacy(0.7), dpf.Privacy(mu=0.1)])
    def test_releases_add_up_to_the_whole(self, privacy, steps):
        """Also the control: with one gradient more they exceed it."""
        X, y, _, _ = people(1000, d=2)
        made, mechanisms = finished(Descent("multinomial", privacy=privacy, steps=steps, **FEW), X, y)
        whole = made.privacy_profile
        most = whole.mu_squared if whole.mu else Fraction(privacy.epsilon)
        assert most * (1 - Fraction(1, 2**40)) <= spent(mechanisms) <= most
        assert spent([*mechanisms, mechanisms[-1]]) > most
        assert [type(mechanism).__name__ for mechanism in mechanisms[:3]] == [
            "LabelShares",
            "DesignMoments",
            "GradientSums",
        ]

    def test_one_charge(self):
        X, y, _, _ = people(1000)
        with dpf.Ledger(1.0, 1e-6) as ledger:
            dpf.glm(X, y, model="multinomial", classes=3, radius=4.0, epsilon=1.0, delta=1e-6)
        [charge] = ledger.charges
        assert charge.profile.privacy == dpf.Privacy(1.0, 1e-6)


class TestAccuracy:
    @every("delta", [0.0, 1e-6])
    @every("classes", [2, 3, 5])
    def test_near_the_truth(self, classes, delta):
        X, y, slopes, intercepts = people(30_000, classes=classes)
        options = {"classes": classes, "radius": 5.0, "epsilon": 3.0, "delta": delta}
        fit = dpf.glm(X, y, model="multinomial", rng=PCG64(3), **options)
        assert type(fit) is MultinomialFit
        assert fit.coefficients.shape == fit.standard_errors.shape == (classes, 3)
        assert fit.intercept.shape == fit.intercept_error.shape == (classes,)
        assert fit.covariance.shape == (4 * classes, 4 * classes)
        assert np.abs(fit.coefficients - slopes).max() < 0.2
        assert np.abs(fit.intercept - intercepts).max() < 0.2
        assert (np.abs(fit.coefficients - slopes) < 6 * fit.standard_errors).all()
        assert (fit.standard_errors < 0.2).all()
        assert np.abs(fit.coefficients.sum(axis=0)).max() < 1e-9 > abs(fit.intercept.sum())

    def test_almost_no_noise_is_the_maximum_likelihood_estimate(self):
        X, y, _, _ = people(20_000, classes=4)
        options = {"radius": 6.0, "epsilon": 1e6, "delta": 1e-6, "steps": Schedule(0.02, 0.2, 16, 50.0, 0.3)}
        fit = dpf.glm(X, y, model="multinomial", classes=4, **options)
        theta, errors = maximum_likelihood(X, y, 4)
        assert np.allclose(np.column_stack([fit.coefficients, fit.intercept]), theta, atol=0.01)
        assert np.allclose(np.column_stack([fit.standard_errors, fit.intercept_error]), errors, rtol=0.05)

    def test_two_classes_are_a_logistic_model(self):
        X, y, _, _ = people(20_000, classes=2, size=0.5)
        options = {"radius": 6.0, "epsilon": 1e6, "delta": 1e-6, "steps": Schedule(0.02, 0.2, 16, 50.0, 0.3)}
        two, one = dpf.glm(X, y, model="multinomial", classes=2, **options), dpf.glm(X, y, **options)
        assert np.allclose(two.coefficients[1] - two.coefficients[0], one.coefficients, atol=0.01)
        assert np.allclose(two.probability(X)[:, 1], one.probability(X), atol=0.01)
        assert np.allclose(2 * two.standard_errors[1], one.standard_errors, rtol=0.05)

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_predictions_are_nearly_as_good(self, delta):
        """The share of best predictions; the control, a single step, is worse."""
        X, y, slopes, intercepts = people(20_000, d=5, classes=3, size=2.0)
        fresh = np.random.default_rng(9).normal(size=(20_000, 5))
        chances = softmax(fresh @ slopes.T + intercepts, axis=1)

        def lost(**options):
            fit = dpf.glm(
                X, y, model="multinomial", classes=3, radius=3.5, epsilon=1.0, delta=delta, rng=PCG64(1), **options
            )
            assert np.array_equal(fit.predict(fresh), fit.probability(fresh).argmax(axis=1))
            chosen = chances[np.arange(len(fresh)), fit.predict(fresh).astype(int)]
            return 100 * np.mean(chances.max(axis=1) - chosen)

        assert lost() < 0.1
        assert lost(steps=1) > 2 * lost()

    @pytest.mark.parametrize("delta", [0.0, pytest.param(1e-6, marks=pytest.mark.slow)])
    def test_intervals(self, delta):
        inside = []
        for seed in range(20):
            X, y, slopes, intercepts = people(10_000, classes=3, seed=seed, size=1.0)
            options = {"radius": 4.0, "epsilon": 1.0, "delta": delta, "rng": PCG64(seed)}
            fit = dpf.glm(X, y, model="multinomial", classes=3, **options)
            (low, high), (least, most) = np.moveaxis(fit.interval(0.95), -1, 0), fit.intercept_interval(0.95).T
            inside.append(
                [*((low <= slopes) & (slopes <= high)).ravel(), *((least <= intercepts) & (intercepts <= most))]
            )
        assert 0.9 < np.mean(inside) < 1  # 240 intervals

    def test_a_start(self):
        """The first gradient is at its linear predictors."""
        X, y, slopes, intercepts = people(1000, d=2)
        start = Fit(slopes, intercepts, np.zeros((3, 2)), np.zeros(3), dpf.Privacy(1.0))
        options = FEW | {"domain": Ball(5.0, center=(1.0, 2.0))}
        made = Descent("multinomial", privacy=dpf.Privacy(1.0), start=start, **options)
        for _ in range(2):
            made.advance(made.mechanism((X, y)))
        first = made.mechanism
        expected = np.column_stack([slopes, intercepts + slopes @ [1.0, 2.0]])
        assert np.allclose(np.array(first.coefficients) @ first.transform.matrix.T, expected, atol=1e-9)
        with pytest.raises(TypeError, match="of 2 columns and 4 classes"):
            Descent("multinomial", privacy=dpf.Privacy(1.0), start=start, **options | {"classes": 4})

    def test_no_intercept(self):
        X, y, _, _ = people(5000)
        fit = dpf.glm(X, y, model="multinomial", classes=3, radius=4.0, epsilon=1.0, intercept=False)
        assert fit.intercept.tolist() == [0.0, 0.0, 0.0] == fit.intercept_error.tolist()

    def test_many_coefficients_have_no_errors(self):
        X = RNG.normal(size=(50, 40))
        fit = dpf.glm(X, np.zeros(50), model="multinomial", classes=26, radius=4.0, epsilon=1.0, delta=1e-6)
        assert np.isfinite(fit.coefficients).all()
        assert np.isnan(fit.standard_errors).all()
        assert fit.covariance is None
        assert np.isnan(fit.interval()).all()


CASES = AWKWARD | {
    "other labels": (RNG.normal(size=(50, 2)), np.full(50, 1e300)),
    "a class without records": (RNG.normal(size=(90, 2)), np.repeat([0.0, 1.0], 45)),
}


class TestNamedClasses:
    """Labels of any kind by public classes: the fit is that of their places, and others are missing."""

    WORDS = ("red", "green", "blue")

    @pytest.mark.parametrize("kind", ["text", "list", "numbers", "missing"])
    def test_the_fit_is_that_of_places(self, kind):
        X, y, _, _ = people(2000)
        labels, classes, places = np.array(self.WORDS)[y], self.WORDS, y.astype(float)
        if kind == "list":
            labels = labels.tolist()
        elif kind == "numbers":
            labels, classes = y * 10 - 3, np.array([-3, 7, 17])
        elif kind == "missing":
            labels = [None, "violet", *labels[2:].tolist()]
            places[:2] = np.nan
        options = {"model": "multinomial", "radius": 4.0, "epsilon": 1.0, "delta": 1e-6}
        named = dpf.glm(X, labels, classes=classes, rng=PCG64(1), **options)
        plain = dpf.glm(X, places, classes=3, rng=PCG64(1), **options)
        np.testing.assert_array_equal(named.coefficients, plain.coefficients)
        np.testing.assert_array_equal(named.predict(X), np.array(classes)[plain.predict(X).astype(int)])
        assert named.classes == tuple(np.array(classes).tolist())
        assert f"{named.classes[2]}: intercept" in repr(named)

    def test_two_words(self):
        X, y, _, _ = people(2000, classes=2)
        options = {"radius": 4.0, "epsilon": 1.0, "delta": 1e-6}
        named = dpf.glm(X, np.array(["no", "yes"])[y], classes=["no", "yes"], rng=PCG64(1), **options)
        plain = dpf.glm(X, y, rng=PCG64(1), **options)
        np.testing.assert_array_equal(named.probability(X), plain.probability(X))
        np.testing.assert_array_equal(named.predict(X) == "yes", plain.predict(X) == 1)
        assert plain.classes is None

    @every(
        "classes, model, error, match",
        [
            ("ab", "logistic", TypeError, "classes must be a number or a list of labels, not str"),
            (["a"], "multinomial", ValueError, "classes must be at least two labels, not 1"),
            (["a", "b", "c"], "logistic", ValueError, "classes must be two labels for the model 'logistic', not 3"),
            (["a", "a"], "multinomial", ValueError, "the public classes must be distinct"),
            (["a", None], "multinomial", TypeError, "must be text, like the classes of the records"),
            ([1, 2], "multinomial", TypeError, "must be text, like the classes of the records"),
            (["a", "b"], "poisson", TypeError, "model='poisson' does not take classes"),
        ],
    )
    def test_wrong_classes(self, classes, model, error, match):
        X, options = np.zeros((5, 2)), {"radius": 1.0, "epsilon": 1.0}
        options |= {"label_bound": 1.0} if model == "poisson" else {}
        with dpf.Ledger(1.0) as ledger, pytest.raises(error, match=match):
            dpf.glm(X, np.array(["a"] * 5), model=model, classes=classes, **options)
        assert not ledger.charges
        chunks = dpf.Chunks([(X, np.zeros(5))])
        with pytest.raises(TypeError, match="named classes need y"):
            dpf.glm(chunks, classes=["a", "b"], model="multinomial", **options)


class TestAwkwardData:
    @pytest.mark.parametrize("name", CASES)
    @pytest.mark.parametrize(("epsilon", "delta"), [(1e-3, 1e-6), (1.0, 1e-6), (1.0, 0.0), (1e4, 0.0)])
    def test_fits_are_finite(self, name, epsilon, delta):
        X, y = CASES[name]
        fit = dpf.glm(X, y, model="multinomial", classes=3, radius=3.0, epsilon=epsilon, delta=delta, rng=PCG64(1))
        for part in (fit.coefficients, fit.intercept, fit.standard_errors, fit.intercept_error, fit.covariance):
            assert np.isfinite(part).all()
        rows = np.array([[1.0], [1e308], [np.nan], [np.inf]]) * np.ones(X.shape[1])
        assert np.isfinite(fit.probability(rows)).all()
        assert np.isfinite(fit.predict(rows)).all()

    @pytest.mark.parametrize("gradients", ["noise", "ends", "alternating"])
    def test_any_releases_give_a_finite_fit(self, gradients):
        rng = np.random.default_rng(3)
        for n, privacy in ((1, dpf.Privacy(1e-2)), (10**6, dpf.Privacy(100.0, 1e-6)), (10**9, dpf.Privacy(1e4, 1e-6))):
            made = Descent("multinomial", privacy=privacy, steps=16, **FEW | {"n": n})
            signs = rng.choice([-1.0, 1.0], (3, 3))
            while made.mechanism is not None:
                if made.done == 0:
                    release = np.array([1.5, -0.5, 0.0])
                elif made.done == 1:
                    release = np.diag([9.0, 1e-3, 1.0])
                else:
                    sign = -1.0 if gradients == "alternating" and made.done % 2 else 1.0
                    noise = 30 * made.mechanism.noise_deviation(n) * rng.normal(size=(3, 3))
                    release = noise if gradients == "noise" else made.mechanism.clip * sign * signs
                made.advance(release)
            fit = made.result
            assert np.isfinite([*fit.coefficients.ravel(), *fit.standard_errors.ravel(), *fit.covariance.ravel()]).all()

    def test_bounds(self):
        """Columns scaled by their bounds, a start in the units of the data, and errors where there are none."""
        X, y, slopes, intercepts = people(20_000)
        units, shift = np.array([1.0, 1e6, 1e-6]), np.array([3.0, -1e7, 0.0])
        options = {"model": "multinomial", "classes": 3, "epsilon": 100.0, "delta": 1e-3, "rng": PCG64(1)}
        bounds = np.column_stack([shift - 5 * units, shift + 5 * units])
        fit = dpf.glm(X * units + shift, y, bounds=bounds, **options)
        assert np.abs(fit.coefficients * units - slopes).max() < 0.15
        assert (np.abs(fit.coefficients - slopes / units) < 6 * fit.standard_errors).all()
        assert np.abs(fit.intercept + fit.coefficients @ shift - intercepts).max() < 0.15
        again, fresh = (
            dpf.glm(X * units + shift, y, bounds=bounds, steps=1, start=start, **options) for start in (fit, None)
        )
        distances = [np.abs((other.coefficients - fit.coefficients) * units).max() for other in (again, fresh)]
        assert 2 * distances[0] < distances[1]
        wide = dpf.glm(np.zeros((5, 40)), np.zeros(5), bounds=(0.0, 1.0), **options | {"classes": 26})
        assert wide.covariance is None
        assert np.isnan(wide.standard_errors).all()

    def test_columns_far_apart(self):
        X, y, _, _ = people(2000)
        one = dpf.glm(X, y, model="multinomial", classes=3, radius=4.0, epsilon=1.0, rng=PCG64(1))
        other = dpf.glm(X * 2.0**40, y, model="multinomial", classes=3, radius=2.0**42, epsilon=1.0, rng=PCG64(1))
        np.testing.assert_allclose(other.coefficients * 2.0**40, one.coefficients, rtol=1e-3, atol=1e-4)


class TestEngines:
    def test_chunks_threads_and_states(self):
        X, y, _, _ = people(200_000)
        options = {"model": "multinomial", "classes": 3, "radius": 4.0, "epsilon": 1.0}
        fit = dpf.glm(X, y, rng=PCG64(1), **options)
        parts = [(X[:7], y[:7]), (X[7:90_000], y[7:90_000]), (X[:0], y[:0]), (X[90_000:], y[90_000:])]
        for other in (
            dpf.glm(dpf.Chunks(parts), rng=PCG64(1), **options),
            dpf.glm(X, y, rng=PCG64(1), workers=2, **options),
            dpf.glm((X, y.astype(float)), rng=PCG64(1), **options),
        ):
            assert np.array_equal(other.coefficients, fit.coefficients)
            assert np.array_equal(other.covariance, fit.covariance)

    def test_a_descent_by_merged_states(self):
        X, y, _, _ = people(1000, d=2)
        one, two = (Descent("multinomial", privacy=dpf.Privacy(1.0), **FEW) for _ in range(2))
        finished(one, X, y)
        while two.mechanism is not None:
            states = [two.mechanism.start() for _ in range(2)]
            states[0].update((X[:5], y[:5]))
            states[1].update((X[5:], y[5:]))
            states[0].merge(dpf.streaming.State.from_bytes(states[1].to_bytes(), two.mechanism))
            two.advance(pickle.loads(pickle.dumps(states[0])).release(rng=PCG64(1 + two.done)))
        assert np.array_equal(one.result.coefficients, two.result.coefficients)


class TestPopulations:
    """Expected gradients of a sample of rows against simulated records."""

    @pytest.mark.parametrize("clip", [0.8, 2.5, math.inf])
    def test_like_a_simulation(self, clip):
        rng, m, model = np.random.default_rng(5), 100_000, Multinomial(3)
        theta, truth = rng.normal(size=(2, 2, 3)) / 3
        z = np.column_stack([rng.normal(size=(m, 2)), np.ones(m)])
        here, true = (softmax(z @ part.T @ model.basis.T, axis=1) for part in (theta, truth))
        y = (true.cumsum(axis=1) < rng.random((m, 1))).sum(axis=1).clip(max=2)
        r = here - np.eye(3)[y]
        sizes = np.linalg.norm(r, axis=1) * np.linalg.norm(z, axis=1)
        clipped = r * np.minimum(1, clip / sizes)[:, None]
        records = np.einsum("ik,kb,ij->ibj", clipped, model.basis, z, optimize=True).reshape(m, -1)
        population = SampledRows(model, np.eye(3), np.array([0.0, 0.0, 1.0]), clip)
        gradient = population.gradient(theta.ravel(), truth.ravel())
        for computed, values in ((gradient.mean, records), (gradient.outer, records[:, :, None] * records[:, None, :])):
            errors = np.abs(computed - values.mean(axis=0)) - 6 * values.std(axis=0) / math.sqrt(m)
            assert errors.max() < 0.03 * np.abs(computed).max()
        assert gradient.outer.shape == gradient.derivative.shape == (6, 6)

    @pytest.mark.parametrize("clip", [0.8, 2.5, math.inf])
    def test_the_derivative(self, clip):
        """By differences; it is symmetrised, so along a direction twice."""
        rng, model = np.random.default_rng(6), Multinomial(4)
        population = SampledRows(model, np.diag([1.0, 0.5, 1.0]), np.array([0.0, 0.0, 1.0]), clip)
        theta, truth, direction = rng.normal(size=(3, 9)) / 3
        step = 1e-5 * direction
        ahead, behind = (population.gradient(theta + sign * step, truth).mean for sign in (1, -1))
        difference = (ahead - behind) @ direction / 2e-5
        derivative = population.gradient(theta, truth).derivative
        assert np.allclose(derivative, derivative.T)
        assert direction @ derivative @ direction == pytest.approx(difference, rel=2e-3)

    def test_the_basis(self):
        for classes in (2, 3, 10):
            basis = Multinomial(classes).basis
            assert np.allclose(basis.T @ basis, np.eye(classes - 1))
            assert np.allclose(basis.sum(axis=0), 0)
