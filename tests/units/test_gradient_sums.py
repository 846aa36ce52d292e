"""Clipped gradients: exact sums, sensitivities by enumeration, noise, streams."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64
from scipy.stats import chi2, kstest

import dpfast as dpf
from dpfast._kernels import _rows
from dpfast.domains import LIMB, Ball
from dpfast.regression import DesignMoments, GradientSums, Transform
from tests.cases import every
from tests.reference import gradients, products
from tests.reference.rows import adversarial_rows
from tests.statistical import ALPHA

RNG = np.random.default_rng(0)
SQUARE = np.array([[1.0, 0.25, 0.0], [0.0, 2.0, -0.5], [0.5, 0.0, 1.0]])


def made(model="logistic", theta=(0.3, -0.2, 0.1), transform=SQUARE, radius=2.0, clip=1.0, **options):
    options = {"epsilon": 1.0, "delta": 1e-3} | options
    return GradientSums(model, theta, transform=transform, domain=Ball(radius), clip=clip, **options)


def summed(X, y, theta, matrix, *, domain, model="logistic", clip=2.0**30, scale=2.0**20, bound=math.inf, threads=1):
    """The sums of the kernel as Python integers; theta has a row for each class in a multinomial model."""
    theta = np.atleast_2d(theta)
    sums = np.zeros((2, theta.size), np.int64)
    domain.add_gradients(
        X,
        y,
        sums,
        threads,
        family=["logistic", "poisson", "huber", "multinomial"].index(model),
        bound=bound,
        scale=scale,
        clip=clip,
        matrix=matrix.astype(np.float32),
        theta=theta,
    )
    return [(int(high) << LIMB) + int(low) for high, low in sums.T]


class TestKernel:
    pytestmark = pytest.mark.kernel

    @pytest.mark.parametrize("model", ["logistic", "poisson", "huber"])
    @pytest.mark.parametrize(("d", "p", "n"), [(1, 1, 1), (1, 2, 40), (2, 3, 31), (5, 4, 33), (8, 9, 70), (20, 21, 65)])
    def test_sums_are_those_of_the_slow_twin(self, model, d, p, n):
        domain = Ball(1.0, center=(0.25,) * d).with_digits(10)
        X, y = RNG.normal(size=(n, d)), RNG.normal(size=n) * 3
        X[::7] *= 1e9
        X[3::11] = np.nan
        y[2::9] = np.nan
        matrix = (RNG.normal(size=(d + 1, p)) * 4).astype(np.float32)
        theta = RNG.normal(size=p) / 4096
        options = {"model": model, "clip": 2.0**22, "scale": 2.0**10, "bound": 2.0 if model == "huber" else math.inf}
        codes = domain.encode(X).tolist()
        rows = [
            gradients.gradient(code, label, theta.tolist(), matrix, **options)
            for code, label in zip(codes, y.tolist(), strict=True)
        ]
        expected = [sum(column) for column in zip(*rows, strict=True)]
        assert summed(X, y, theta, matrix, domain=domain, **options) == expected

    @every(
        "form",
        [
            lambda x: x.astype(np.float32),
            lambda x: (8 * x).astype(np.int8),
            lambda x: (8 * x).astype(np.int64),
            lambda x: x > 0,
            lambda x: np.repeat(x, 2, axis=0)[::2],
            lambda x: x[::-1],
            np.asfortranarray,
        ],
    )
    def test_arrays_of_every_form(self, form):
        X, y = form(RNG.normal(size=(3000, 4))), form(RNG.normal(size=(3000, 1)))[:, 0]
        before, domain, matrix = X.copy(), Ball(4.0).with_digits(20), RNG.normal(size=(5, 3))
        theta = [1e-7, 1e-7, 0.0]
        doubles = summed(X.astype(float), y.astype(float), theta, matrix, domain=domain)
        assert summed(X, y, theta, matrix, domain=domain) == doubles
        assert np.array_equal(X, before)

    @every("scale", [2.0**-3, 1.0, 2.0**20, 2.0**45])
    @every("size", [1e-6, 1.0, 1e4, 1e12])
    @every("model", ["logistic", "poisson", "huber"])
    def test_no_record_exceeds_the_clip(self, model, size, scale):
        """Single records, of sizes where vectors and residuals round in every way; infinite and huge ones, too."""
        domain, clip = Ball(1.0).with_digits(20), 2.0**20 * 1.3
        X = adversarial_rows(domain, 3, 2, RNG)
        labels = RNG.choice([0.0, 1.0, -np.inf, np.inf, 1e308, 5e-324, 7.5], len(X))
        matrix = (RNG.normal(size=(3, 3)) * size).astype(np.float32)
        for theta in ([0.0, 0.0, 0.0], [1e300, -1e300, 1e300], [1e-6, 1e-6, -1e-6]):
            for row, y in zip(X, labels, strict=True):
                sums = summed(row[None], y[None], theta, matrix, domain=domain, clip=clip, scale=scale, model=model)
                assert gradients.squared_norm(sums) <= Fraction(clip) ** 2

    def test_the_largest_sums(self):
        """Blocks whose sums need all bits of a double."""
        domain, clip = Ball(1.0).with_digits(20), math.nextafter(2.0**40, 0)
        X, y = np.tile([[0.6, -0.8]], (5000, 1)), np.zeros(5000)
        one = summed(X[:1], y[:1], [0.0, 0.0], np.eye(3, 2), domain=domain, clip=clip, scale=2.0**30)
        assert gradients.squared_norm(one) > (0.999 * clip) ** 2
        many = summed(X, y, [0.0, 0.0], np.eye(3, 2), domain=domain, clip=clip, scale=2.0**30)
        assert many == [5000 * part for part in one]

    def test_the_kernel_checks_its_tables(self):
        domain = Ball(4.0)
        for matrix, theta, y, p in (
            (np.eye(3), np.zeros((1, 2)), np.zeros(2), 3),
            (np.eye(4), np.zeros((1, 4)), np.zeros(2), 4),
            (np.eye(3), np.zeros((1, 3)), np.zeros(5), 3),
            (np.eye(3), np.zeros((1, 3)), np.zeros(2), 2),
            (np.eye(3), np.zeros((2, 3)), np.zeros(2), 6),
        ):
            sums = np.zeros((2, p), np.int64)
            with pytest.raises(ValueError, match=r"theta|matrix|labels|sums"):
                _rows.add_gradients(
                    np.zeros((2, 2)),
                    y,
                    sums,
                    **domain._kernel(2),
                    family=0,
                    bound=math.inf,
                    scale=1.0,
                    clip=1.0,
                    matrix=matrix.astype(np.float32),
                    theta=theta,
                )


def changes(model, matrix, theta, *, domain, clip, scale, d=2):
    """The gradients of all records with codes in a small ball and labels of every kind."""
    codes = np.array(products.ball(domain.most, d), dtype=float) * domain.step
    records = [(row, y) for row in codes for y in (0.0, 1.0, -2.0, np.inf, np.nan)]
    sums = [
        summed(row[None], np.array([y]), theta, matrix, domain=domain, clip=clip, scale=scale, model=model, bound=4.0)
        for row, y in records
    ]
    return np.array(sorted(set(map(tuple, sums))), dtype=float)


class TestSensitivity:
    @every("model", ["logistic", "poisson", "huber"])
    @every("seed", range(4))
    def test_every_pair_of_tiny_records(self, model, seed):
        """Half the sensitivity, a control, is exceeded."""
        rng = np.random.default_rng(seed)
        domain, clip = Ball(2.0, step=1.0), float(rng.uniform(5, 60))
        matrix, theta = (rng.normal(size=(3, 3)) * 3).astype(np.float32), rng.normal(size=3) / 3
        found = changes(model, matrix, theta.tolist(), domain=domain, clip=clip, scale=8.0)
        largest = max(math.dist(a, b) for a, b in itertools.combinations(found.tolist(), 2))
        assert clip < largest <= 2 * clip

    def test_a_clip_before_rounding_is_not_enough(self):
        """The control: floats clipped to the norm, then rounded, exceed it."""
        rng = np.random.default_rng(1)
        z, clip = rng.normal(size=(1000, 3)) * 9, 5.0
        clipped = np.rint(z * np.minimum(1, clip / np.linalg.norm(z, axis=1))[:, None])
        assert (np.linalg.norm(clipped, axis=1) > clip).any()
        domain = Ball(30.0, step=1.0)
        for row in z:
            sums = summed(row[None], np.zeros(1), [0.0] * 3, np.eye(4, 3), domain=domain, clip=clip, scale=2.0)
            assert gradients.squared_norm(sums) <= clip**2

    @every("n", [1, 2**21 - 1, 2**21, 10**9])
    @every("options", [{}, {"delta": 0.0}, {"epsilon": None, "delta": 0.0, "mu": 0.3}])
    def test_the_noise_is_that_of_the_sensitivity(self, n, options):
        mechanism = made(**options)
        shift, clip = mechanism.shift(n), Fraction(mechanism.clip) * 2**39  # 1.0 is 2**39 units
        rounded = Fraction(7, 4) if shift else 0  # above sqrt(3)
        amount = Fraction(mechanism.gaussian_mu or mechanism.epsilon)
        assert (n * 2 * clip) / 2**shift <= 2**61
        needed = (2 * clip / 2**shift + rounded) / amount
        assert needed <= Fraction(mechanism.scale(n)) <= needed * (1 + Fraction(1, 2**30))

    def test_the_laws_of_neighbours(self):
        """One number: discrete Laplace noise, epsilon-DP; with that of half the sensitivity, the control, not."""
        y = np.array([1.0, 0.0])

        def loss(epsilon, row):
            options = {"theta": (0.0,), "transform": [[1.0], [0.0]], "radius": 1.0, "delta": 0.0, "clip": 0.5}
            mechanism = made(epsilon=epsilon, **options)
            laws = [mechanism.law((np.array([[x], [0.5]]), y)) for x in (1.0, row)]
            centers = [int(law.center[0]) for law in laws]
            k = np.array([[min(centers) - 5], [max(centers) + 5]])
            return float(np.abs(laws[0].logpmf(k) - laws[1].logpmf(k)).max())

        assert 0.2 < loss(1.0, 0.5) < 0.3
        assert 0.999 < loss(1.0, -1.0) <= 1.0
        assert loss(2.0, -1.0) > 1.9


class TestReleases:
    def test_means_of_clipped_gradients(self):
        X, y = RNG.normal(size=(20_000, 2)), RNG.random(20_000) < 0.4
        mechanism = made(epsilon=1e3, delta=1e-3, radius=3.0, clip=1.5)
        inside = X * np.minimum(1, 3 / np.linalg.norm(X, axis=1))[:, None]
        z = np.column_stack([inside, np.ones(len(X))]) @ SQUARE
        r = 1 / (1 + np.exp(-z @ [0.3, -0.2, 0.1])) - y
        r *= np.minimum(1, 1.5 / (np.abs(r) * np.linalg.norm(z, axis=1)))
        assert np.allclose(mechanism((X, y)), r @ z / len(X), atol=1e-4)

    @pytest.mark.parametrize("options", [{}, {"delta": 0.0}, {"epsilon": None, "delta": 0.0, "mu": 0.5}])
    def test_noise_has_the_stated_deviation(self, options):
        X, y, mechanism = np.zeros((50, 2)), np.zeros(50), made(**options)
        draws = mechanism.release((X, y), size=4000, rng=PCG64(5)) - mechanism.law((X, y)).value(
            mechanism.law((X, y)).center
        )
        deviation = mechanism.noise_deviation(50)
        for factor, holds in ((1.0, True), (0.9, False), (1.1, False)):
            if mechanism.gaussian_mu:
                p = 2 * min(
                    chi2.sf(np.sum((draws / deviation / factor) ** 2), draws.size),
                    chi2.cdf(np.sum((draws / deviation / factor) ** 2), draws.size),
                )
            else:
                radius = np.linalg.norm(draws, axis=1) / deviation * math.sqrt(4) / factor
                p = kstest(radius, "gamma", (3,)).pvalue
            assert (p > ALPHA) == holds

    def test_chunks_threads_and_states(self):
        X, y = RNG.normal(size=(600_000, 2)), RNG.random(600_000) < 0.5
        for mechanism in (made(), DesignMoments(domain=Ball(3.0), epsilon=1.0)):
            release = mechanism((X, y), rng=PCG64(1))
            assert np.array_equal(mechanism((X, y), rng=PCG64(1), workers=2), release)
            assert np.array_equal(mechanism(np.column_stack([X, y]), rng=PCG64(1)), release)
            first, second = mechanism.start(), mechanism.start()
            first.update((X[:1000], y[:1000]))
            second.read([(X[1000:1003], y[1000:1003]), (X[:0], y[:0]), (X[1003:], y[1003:])])
            first = pickle.loads(pickle.dumps(first))
            first.merge(second)
            assert np.array_equal(first.release(rng=PCG64(1)), release)

    def test_missing_records(self):
        domain = Ball(2.0)
        mechanism = GradientSums("logistic", (0.0, 0.0), transform=np.eye(2), domain=domain, clip=2.0, epsilon=1e6)
        X, y = np.array([[np.nan], [1.0], [np.inf]]), np.array([1.0, np.nan, 0.0])
        assert np.allclose(mechanism((X, y)), [0.0, 0.0], atol=1e-4)  # the center with residuals of -1/2 and 1/2

    def test_labels_are_moved_into_their_domain(self):
        """Whatever their type; a missing one stays missing. Otherwise a label far away would count with the bound."""
        X = RNG.normal(size=(50, 2))
        labels, options = Ball(2.0, center=1.0), {"model": "huber", "bound": 50.0, "clip": 20.0, "epsilon": 1e7}
        for y in (8 * RNG.normal(size=50), RNG.integers(-9, 9, 50), np.array([np.nan, np.inf, -np.inf, 3.5, 0.0] * 10)):
            found = made(**options, labels=labels)((X, y), rng=PCG64(1))
            wanted = made(**options)((X, np.clip(y.astype(float), -1, 3)), rng=PCG64(1))
            np.testing.assert_array_equal(found, wanted)
        with pytest.raises(TypeError, match=r"labels must be a dpfast.domains.Ball"):
            made(**options, labels=3.0)
        with pytest.raises(ValueError, match="labels must be left out for the model 'logistic'"):
            made(labels=labels)

    def test_wrong_parameters(self):
        for options, message in (
            ({"theta": (0.0, 1.0)}, "3 entries"),
            ({"theta": (0.0, 1.0, math.nan)}, "coefficients"),
            ({"theta": 1.0}, "sequence"),
            ({"transform": np.eye(3) * 1e300}, "2\\*\\*60"),
            ({"transform": np.full((3, 3), np.inf)}, "finite"),
            ({"transform": np.zeros(3)}, "shape"),
            ({"clip": 0.0}, "clip"),
            ({"clip": 1e300}, "within"),
            ({"bound": -1.0}, "bound"),
            ({"model": "linear"}, "model"),
            ({"mu": 1.0}, "mu"),
            ({"epsilon": None}, "mu"),
            ({"epsilon": 1e-12, "delta": 0.0}, "larger epsilon"),
        ):
            with pytest.raises((TypeError, ValueError), match=message):
                made(**options)
        with pytest.raises(TypeError, match="Ball"):
            GradientSums("logistic", (0.0,), transform=[[1.0], [0.0]], domain=None, clip=1.0, epsilon=1.0)
        with pytest.raises(ValueError, match="2 columns"):
            made()((np.zeros((4, 3)), np.zeros(4)))

    def test_equal_mechanisms(self):
        assert made() == made(transform=Transform(SQUARE)) == pickle.loads(pickle.dumps(made()))
        assert hash(made()) == hash(made())
        assert made() != made(transform=SQUARE * 2)
        assert made(mu=0.5, epsilon=None, delta=0.0).privacy == dpf.Privacy(mu=0.5)
