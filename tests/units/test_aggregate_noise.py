"""Several parameters at once: laws, guarantees with controls, charges, and the noise that the plan assumes."""

import math
import pickle
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from numpy.random import PCG64, default_rng
from scipy.special import ndtri

import dpfast as dpf
from dpfast import Grid, Ledger, Privacy, SampleAndAggregate, audit
from dpfast.aggregate.laws import WinsorizedMeansLaw, noisy_sums
from dpfast.aggregate.noise import SumsNoise
from dpfast.core.divergences import gaussian_mu_down
from dpfast.laws import ClampedBox, IndependentLaws, RoundedBox, RoundedGaussian
from dpfast.theory.quantiles import normal_plus_box_error, normal_plus_laplace_error
from tests.cases import every
from tests.statistical import chi_square_rejects
from tests.untouchable import Untouchable

TWO: ClassVar = {"bounds": {"mean": (0, 3), "sd": (0, 2)}, "step": 0.5}
POINTS = {"n": 4, "values": 3, "grids": Grid(0, 3, step=1)}


def normal(epsilon=1.0, blocks=2, **options):
    return SampleAndAggregate("normal", epsilon=epsilon, blocks=blocks, **{**TWO, **options})


class Claiming:
    """The laws of another mechanism under a separate claim."""

    def __init__(self, mechanism, epsilon, delta=0.0):
        self.law, self.privacy = mechanism.law, Privacy(epsilon, delta)


class Narrow(SumsNoise):
    """A control: noise of 0.98 times the scale."""

    def scale(self, width):
        return super().scale(width) * (Fraction(49, 50) if self.kind == "k-norm" else 0.98)


def moved(noise, widths, last=160):
    """The natural logarithms of two laws of sums that differ by their widths, on all vectors."""
    centers = [(last - width) // 2 for width in widths]
    shifted = [center + width for center, width in zip(centers, widths, strict=True)]
    decodes = [np.asarray] * len(widths)
    laws = [noisy_sums(noise, totals, widths, [last] * len(widths), decodes) for totals in (centers, shifted)]
    points = laws[0].outcomes()
    return [law.logpmf(points) for law in laws]


class TestPrivacy:
    @pytest.mark.parametrize(("epsilon", "blocks"), [(0.3, 2), (1.0, 4), (4.0, 2)])
    def test_several_parameters(self, epsilon, blocks):
        """Mean and deviation of records on four points; half of the noise is rejected."""
        mechanism = normal(epsilon, blocks)
        assert isinstance(mechanism.law([0.0, 1.0, 2.0, 3.0]), ClampedBox)
        assert audit.verify(mechanism, **POINTS).holds
        assert not audit.verify(Claiming(normal(2.5 * epsilon, 2), epsilon), **POINTS).holds

    @pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.2), (1.0, 0.05), (3.0, 0.01)])
    def test_gaussian(self, epsilon, delta):
        mechanism = normal(epsilon, 2, noise="gaussian", delta=delta)
        law = mechanism.law([0.0, 1.0, 2.0, 3.0])
        assert isinstance(law, IndependentLaws)
        assert all(isinstance(part.noise, RoundedGaussian) for part in law.laws)
        assert audit.verify(mechanism, **POINTS).holds
        wrong = normal(4 * epsilon, 2, noise="gaussian", delta=delta)
        assert not audit.verify(Claiming(wrong, epsilon, delta / 4), **POINTS).holds

    @pytest.mark.parametrize("kind", ["k-norm", "gaussian"])
    def test_winsorized(self, kind, monkeypatch):
        """Quartiles of both parameters, then the noise of their windows."""
        monkeypatch.setattr("dpfast.aggregate.blocks._widening", lambda k: 0.5)
        monkeypatch.setattr(SampleAndAggregate, "_winsorizes", lambda self, n, k: (True, False))
        options = {"bounds": {"mean": (0, 2), "sd": (0, 1)}, "step": 0.5, "combine": "winsorized", "margin": 0}
        mechanism = normal(1.0, 2, delta=0.1, noise=kind, **options)
        points = {"n": 4, "values": 2, "grids": Grid(0, 2, step=2)}
        law = mechanism.law([0, 2, 0, 2])
        assert isinstance(law, WinsorizedMeansLaw)
        assert law._noise.epsilon == Fraction(3, 4)
        assert np.exp(law.logpmf(law.outcomes())).sum() == pytest.approx(1)
        assert audit.verify(mechanism, **points).holds
        assert not audit.verify(Claiming(normal(8.0, 2, delta=0.1, noise=kind, **options), 1.0, 0.01), **points).holds

    @every("epsilon", [0.2, 1.0, 4.0])
    @every("widths", [(5, 5), (1, 9)])
    def test_the_scale_of_the_norm_is_the_least(self, epsilon, widths):
        p, q = moved(SumsNoise("k-norm", 2, Fraction(epsilon), 0.0), widths, last=60)
        assert np.max(np.abs(p - q)) == pytest.approx(epsilon, rel=1e-9)
        narrow = Narrow("k-norm", 2, Fraction(epsilon), 0.0)
        assert np.max(np.abs(np.subtract(*moved(narrow, widths, last=60)))) > 1.01 * epsilon

    @pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.1), (1.0, 0.02)])
    def test_the_deviation_of_the_gaussian_is_nearly_the_least(self, epsilon, delta):
        def divergence(noise):
            p, q = (np.exp(logs) for logs in moved(noise, (12, 9)))
            return np.maximum(p - math.exp(epsilon) * q, 0).sum()

        found = divergence(SumsNoise("gaussian", 2, Fraction(epsilon), delta))
        assert 0.98 * delta < found <= delta
        assert divergence(Narrow("gaussian", 2, Fraction(epsilon), delta)) > delta

    @every("parameters", [1, 2, 7, 100])
    @every("epsilon, delta", [(1e-3, 1e-9), (1.0, 1e-6), (50.0, 0.5)])
    def test_deviations_are_rounded_up(self, parameters, epsilon, delta):
        """The sum of (width / sigma)**2 is at most mu**2, in rationals."""
        noise = SumsNoise("gaussian", parameters, Fraction(epsilon), delta)
        assert noise.mu == gaussian_mu_down(epsilon, delta)
        widths = default_rng(1).integers(1, 2**33, parameters).tolist()
        total = sum(Fraction(width) ** 2 / Fraction(noise.scale(width)) ** 2 for width in widths)
        assert Fraction(noise.mu) ** 2 * (1 - Fraction(1, 2**49)) < total <= Fraction(noise.mu) ** 2

    def test_charges(self):
        x, public = default_rng(0).normal(1, 1, 400), {**TWO, "blocks": 20, "epsilon": 0.5}
        gaussian = SampleAndAggregate("normal", noise="gaussian", delta=1e-6, **public)
        mu = gaussian_mu_down(0.5, 1e-6)
        assert gaussian.privacy == Privacy(0.5, 1e-6)
        assert gaussian.privacy_profile.parts == (("gaussian", mu, 1),)
        assert gaussian.privacy_profile.failure == 0
        norm = SampleAndAggregate("normal", delta=1e-6, **public)
        assert (norm.privacy, norm.privacy_profile.parts) == (Privacy(0.5), (("pure", 0.5, 1),))
        one = SampleAndAggregate("normal", bounds={"mean": (0, 3)}, blocks=20, epsilon=0.5)
        assert one.privacy_profile.parts == (("laplace", 0.5, 1),)
        both = SampleAndAggregate("normal", noise="gaussian", delta=1e-6, combine="winsorized", **public)
        assert both.privacy_profile.parts == (("pure", 0.5, 1),)
        assert both.privacy_profile.failure == 1e-6
        for ledger, mechanism in ((Ledger(0.5, 1e-6), gaussian), (Ledger(mu=mu), gaussian), (Ledger(0.5), norm)):
            ledger.release(mechanism, x)
            with pytest.raises(dpf.BudgetError):
                ledger.release(mechanism, Untouchable())


class TestLaw:
    @pytest.mark.parametrize("scales", [[2.0, 5.0], [0.7, 0.3], [1.0, 2.0, 3.0], [30.0, 1.0]])
    def test_clamped_box(self, scales):
        """Inside, the law of the noise; all mass; and the frequencies of draws."""
        noise, d = RoundedBox(scales), len(scales)
        center, last = [1, 4, 2][:d], [6, 4, 3][:d]
        law = ClampedBox(noise, center=center, last=last, decode=np.asarray)
        points = law.outcomes()
        logs = law.logpmf(points)
        assert math.fsum(np.exp(logs)) == pytest.approx(1, abs=1e-13)
        inside = np.all((points > 0) & (points < last), axis=-1)
        np.testing.assert_allclose(logs[inside], noise.logpmf((points[inside] - center).astype(float)), rtol=1e-12)
        assert law.logpmf([[-1] * d, [9] * d]).tolist() == [-math.inf] * 2
        draws = law.sample(100_000, PCG64(1))
        counts = np.bincount(np.ravel_multi_index(draws.T, np.add(last, 1)), minlength=len(points))
        assert not chi_square_rejects(counts, np.exp(logs))
        for factor in (0.9, 1.1):
            wrong = ClampedBox(RoundedBox(np.array(scales) * factor), center=center, last=last, decode=np.asarray)
            assert chi_square_rejects(counts, np.exp(wrong.logpmf(points)))
        assert law.sample((2, 3), PCG64(1)).shape == (2, 3, d)

    def test_scales(self):
        law = SampleAndAggregate("normal", bounds={"sd": (0, 2), "mean": (0, 4)}, epsilon=1.0, blocks=2, step=0.5).law(
            np.arange(8.0) / 2
        )
        assert law.noise.scales.tolist() == [4, 8]
        draws = law.sample(1000, PCG64(0))
        assert draws.shape == (1000, 2)
        assert len({tuple(draw) for draw in draws.tolist()}) > 20
        assert law.value(draws[0]).shape == (2,)

    @pytest.mark.parametrize("kind", ["k-norm", "gaussian"])
    def test_winsorized_frequencies(self, kind):
        law = self.winsorized(kind)
        points = law.outcomes()
        draws = law.sample(2000, PCG64(1))
        assert law.sample((2, 3), PCG64(1)).shape == (2, 3, 2)
        counts = np.bincount(np.ravel_multi_index(draws.T, points.max(axis=0) + 1), minlength=len(points))
        assert not chi_square_rejects(counts, np.exp(law.logpmf(points)))
        assert chi_square_rejects(counts, np.exp(self.winsorized(kind, 4).logpmf(points)))

    @staticmethod
    def winsorized(kind, factor=1):
        from dpfast.aggregate.laws import Windowed

        columns = [
            Windowed(np.array([0, 1, 1, 1, 3]), Grid(0, 3, step=1), 0.5, Fraction(2)),
            Windowed(np.array([2, 2, 1, 0, 2]), Grid(0, 2, step=1), None, Fraction(2)),
        ]
        noise = SumsNoise(kind, 2, Fraction(factor), 0.1)
        return WinsorizedMeansLaw(columns, noise, [np.asarray, np.asarray])

    def test_a_call_is_a_draw(self):
        x = default_rng(0).gamma(2.0, 3.0, 4000)
        bounds = {"shape": (0.1, 10), "rate": (0.01, 10)}
        for options in ({}, {"noise": "gaussian", "delta": 1e-6}, {"combine": "winsorized", "epsilon": 900.0}):
            mechanism = SampleAndAggregate("gamma", **{"bounds": bounds, "epsilon": 1.0, **options})
            law = mechanism.law(x)
            for seed in range(3):
                expected = law.value(law.sample(rng=PCG64(seed)))
                np.testing.assert_array_equal(mechanism(x, rng=PCG64(seed), workers=2), expected)
                np.testing.assert_array_equal(mechanism(dpf.Chunks([x[:9], x[9:]]), rng=PCG64(seed)), expected)
            options |= {"method": "blocks"}
            mle = dpf.mle(x, "gamma", **{"bounds": bounds, "epsilon": 1.0, **options}, rng=PCG64(2))
            np.testing.assert_array_equal(mle, expected)
            assert pickle.loads(pickle.dumps(mechanism)) == mechanism

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"noise": "laplace"}, "noise must be one of"),
            ({"noise": "gaussian"}, "delta must be positive for Gaussian noise"),
            ({"delta": 1.0}, "delta must be at least 0 and below 1"),
            ({"noise": "gaussian", "delta": 1e-20, "epsilon": 1e-20}, "use a coarser step"),
        ],
    )
    def test_parameters(self, options, message):
        with pytest.raises(ValueError, match=message):
            SampleAndAggregate("normal", **{"bounds": {"mean": (0, 1)}, "epsilon": 1.0, "blocks": 2, **options})


class TestPlan:
    def test_the_kind_of_less_variance(self):
        kinds = [SumsNoise.chosen("auto", p, Fraction(1), 1e-6).kind for p in (1, 10, 50, 51, 100)]
        assert kinds == ["k-norm"] * 3 + ["gaussian"] * 2
        assert SumsNoise.chosen("auto", 100, Fraction(1), 0.0).kind == "k-norm"

    @every("parameters", [1, 2, 5, 30])
    @every("kind", ["k-norm", "gaussian"])
    def test_the_variance_is_that_of_the_noise(self, kind, parameters):
        """`laplace_epsilon`, by which blocks and margins are chosen, has the variance of the draws; one share has p."""
        noise, width = SumsNoise(kind, parameters, Fraction(1), 1e-6), 10**6
        law = noisy_sums(
            noise, [2**40] * parameters, [width] * parameters, [2**41] * parameters, [np.asarray] * parameters
        )
        draws = law.sample(40_000, PCG64(1)).reshape(40_000, -1) - 2**40
        assert np.mean(draws.astype(float) ** 2) == pytest.approx(2 * (width / noise.laplace_epsilon) ** 2, rel=0.05)
        for deviation in (0.0, 0.4 * width, 5.0 * width):
            both = draws[:, 0] + deviation * default_rng(2).normal(size=len(draws))
            stated = noise.error(max(deviation, 1e-9), width, 0.9)
            assert np.mean(np.abs(both) <= stated) == pytest.approx(0.9, abs=0.01)

    def test_errors_of_the_box(self):
        for deviation, scale, confidence in ((1.0, 1.0, 0.95), (0.1, 3.0, 0.99), (5.0, 0.2, 0.5)):
            one = normal_plus_laplace_error(deviation, scale, confidence)
            assert normal_plus_box_error(deviation, scale, 1, confidence) == one
            assert normal_plus_box_error(deviation, 1e-9, 4, confidence) == pytest.approx(
                deviation * ndtri((1 + confidence) / 2), rel=1e-6
            )
            rng = default_rng(3)
            noise = rng.gamma(4.0, 1.0, 400_000) * rng.uniform(-1, 1, 400_000)
            both = np.abs(deviation * rng.normal(size=400_000) + scale * noise)
            stated = normal_plus_box_error(deviation, scale, 3, confidence)
            assert np.mean(both <= stated) == pytest.approx(confidence, abs=0.004)

    @pytest.mark.parametrize("options", [{}, {"noise": "gaussian", "delta": 1e-6}])
    def test_coverage(self, options):
        """The stated errors of both parameters, at the truth, are kept by 95 % of the releases."""
        n, truth = 20_000, {"shape": 2.0, "scale": 3.0}
        bounds = {"shape": (0.2, 10), "scale": (0.2, 20)}
        mechanism = SampleAndAggregate("gamma", bounds=bounds, epsilon=0.5, **options)
        stated = mechanism.error(n, truth)
        rng = default_rng(4)
        away = []
        for _ in range(60):
            law = mechanism.law(rng.gamma(2.0, 3.0, n))
            away.append(np.abs(law.value(law.sample(50, rng)) - [2.0, 3.0]) <= stated)
        assert 0.92 <= np.mean(away) <= 0.985

    def test_more_blocks_are_not_needed(self):
        """With less noise the plan takes fewer blocks than for shares of epsilon, and states a smaller error."""
        bounds = {"shape": (0.2, 10), "scale": (0.2, 20)}
        together = SampleAndAggregate("gamma", bounds=bounds, epsilon=1.0)
        alone = SampleAndAggregate("gamma", bounds={"shape": (0.2, 10)}, guess={"scale": 2.0}, epsilon=0.5)
        truth = {"shape": 2.0, "scale": 3.0}
        assert together.error(10**5, truth)[0] < 0.99 * alone.error(10**5, truth)
