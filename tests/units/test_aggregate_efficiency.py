"""Sample and aggregate: numbers of blocks, and errors against the theory."""

import dataclasses
import math
from typing import ClassVar

import numpy as np
import pytest
import scipy.stats
from numpy.random import PCG64

from dpfast import SampleAndAggregate, theory
from dpfast.families import Ranges
from dpfast.laws import ClampedNoise
from tests.cases import every
from tests.families import draws

# family, truth, bounds, records, the public guess there, MSE n I by theory.
TABLE = [
    ("exponential", {"rate": 1.0}, (0.2, 5), 10**4, 500, 2.9432),
    ("exponential", {"rate": 1.0}, (0.2, 5), 10**5, 5000, 1.2843),
    ("exponential", {"rate": 1.0}, (0.2, 5), 10**6, 35851, 1.1088),
    ("geometric", {"p": 0.3}, (0.01, 0.99), 10**4, 500, 2.2896),
    ("geometric", {"p": 0.3}, (0.01, 0.99), 10**5, 5000, 1.1920),
    ("geometric", {"p": 0.3}, (0.01, 0.99), 10**6, 35184, 1.0743),
    ("normal", {"sd": 1.0}, (0.1, 5), 10**4, 500, 4.9041),
    ("normal", {"sd": 1.0}, (0.1, 5), 10**5, 5000, 1.4467),
    ("normal", {"sd": 1.0}, (0.1, 5), 10**6, 50000, 1.1009),
    ("gamma", {"shape": 2.0}, (0.1, 10), 10**4, 500, None),
    ("gamma", {"shape": 2.0}, (0.1, 10), 10**5, 4951, None),  # the specification has 4611, for a v2 of 40, not 31.8
]


class TestEfficiency:
    @every("name, theta, bounds, n, blocks, ratio", TABLE)
    def test_block_counts(self, name, theta, bounds, n, blocks, ratio):
        """The table's numbers of blocks, and the theory's errors there (with its third-order terms left out)."""
        options = {"guess": theta, "combine": "mean", "margin": 0}
        mechanism = SampleAndAggregate(name, bounds=dict.fromkeys(theta, bounds), epsilon=1.0, **options)
        assert mechanism.block_count(n) == blocks
        [parameter] = theta
        family, known = mechanism.family, mechanism.family.reference(mechanism.box, theta)
        terms = {"width": bounds[1] - bounds[0], "epsilon": 1.0, "v2": family.second_order(parameter, known)[0]}
        got = theory.aggregate_efficiency(n, information=family.information(parameter, known), **terms)
        if ratio is not None:
            assert got == pytest.approx(ratio, abs=0.012)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("name", "theta", "draw", "bounds", "worst"),
        [
            ("exponential", 1.0, lambda rng, n: rng.exponential(size=n), (0.2, 5), 1.60),
            ("geometric", 0.3, lambda rng, n: rng.geometric(0.3, n), (0.01, 0.99), 1.48),
            ("normal", 1.0, lambda rng, n: rng.normal(5, 1, n), (0.1, 5), 1.80),
        ],
    )
    def test_simulated(self, name, theta, draw, bounds, worst):
        """n = 1e5 in one pass: estimates of 40 samples, 500 draws of noise each, against the theory."""
        parameter = {"exponential": "rate", "geometric": "p", "normal": "sd"}[name]
        mechanism = SampleAndAggregate(name, bounds={parameter: bounds}, epsilon=1.0, guess={parameter: theta})
        rng, n, times = np.random.default_rng(3), 10**5, 40
        errors = np.concatenate([mechanism.release(draw(rng, n), size=500, rng=rng) - theta for _ in range(times)])
        information = mechanism.family.information(
            parameter, mechanism.family.reference(mechanism.box, {parameter: theta})
        )
        ratio = np.mean(errors**2) * n * information
        # the sample's own chance, 40 squared normals, dominates the tolerance
        assert ratio < worst * 1.25
        assert ratio > 0.6

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("name", "bounds", "truths", "draw"),
        [
            ("exponential", {"rate": (0.2, 5)}, (0.2, 0.25, 4.0, 5.0), lambda rng, n, t: rng.exponential(1 / t, n)),
            ("normal", {"sd": (0.1, 5)}, (0.1, 0.11, 4.0, 5.0), lambda rng, n, t: rng.normal(3, t, n)),
            ("poisson", {"mean": (1, 4)}, (1.0, 1.1, 3.5, 4.0), lambda rng, n, t: rng.poisson(t, n)),
            ("gamma", {"shape": (0.5, 5)}, (0.5, 0.6, 4.0, 5.0), lambda rng, n, t: rng.gamma(t, 3.0, n)),
        ],
    )
    def test_near_the_ends_of_the_bounds(self, name, bounds, truths, draw):
        """As efficient as in the middle, about, and the predicted error holds; clamped at the bounds, neither."""
        n, rng, [(parameter, _)] = 10**5, np.random.default_rng(17), bounds.items()
        mechanism = SampleAndAggregate(name, bounds=bounds, epsilon=1.0)
        [clamped] = SampleAndAggregate(name, bounds=bounds, epsilon=1.0, margin=0, combine="mean").bounds
        k, biases = mechanism.block_count(n), []
        for truth in truths:
            x = draw(rng, 4 * n, truth)
            within = mechanism.error(n, truth, confidence=0.9)
            release = [mechanism.release(part, size=50, rng=rng) - truth for part in np.split(x, 4)]
            assert np.mean(np.abs(release) <= within) > 0.6  # of four samples
            family = mechanism.family
            information = family.information(parameter, family.reference(mechanism.box, {parameter: truth}))
            assert np.mean(np.square(release)) * n * information < 8
            plain = family.estimates((x,), 4 * k, Ranges((parameter,), *zip(clamped[1])), corrected=True, workers=1)
            biases.append(abs(np.clip(plain, *clamped[1]).mean() - truth) * math.sqrt(n * information))
        assert max(biases[0], biases[3]) > 6  # of the control, in standard errors of the MLE

    def test_uncorrected_is_worse(self):
        """The bias of the raw rate, 1 / 20, does not average out."""
        x = np.random.default_rng(0).exponential(size=10**5)
        options = {"bounds": (0.2, 5), "epsilon": 1.0, "blocks": 5000, "combine": "mean"}
        raw = SampleAndAggregate("exponential", bias_correction=False, **options).release(x, size=200, rng=PCG64(1))
        better = SampleAndAggregate("exponential", **options).release(x, size=200, rng=PCG64(1))
        assert abs(raw.mean() - 1) > 0.04
        assert abs(better.mean() - 1) < 0.015

    def test_uncorrected_takes_fewer_blocks(self):
        options = {"bounds": (0.2, 5), "epsilon": 1.0}
        raw = SampleAndAggregate("exponential", bias_correction=False, **options).block_count(10**8)
        assert raw < SampleAndAggregate("exponential", **options).block_count(10**8) / 10

    def test_wide_range(self):
        """20 times as wide, n = 1e6: winsorized is within 1.2 of efficient, plain is not within 5."""
        rng, n, options = (
            np.random.default_rng(4),
            10**6,
            {"bounds": (0.01, 96.01), "epsilon": 1.0, "guess": {"rate": 1.0}},
        )
        plain, better = (SampleAndAggregate("exponential", combine=c, **options) for c in ("mean", "winsorized"))
        assert better.winsorizes(n) == (True,)
        x = rng.exponential(size=n)
        center = np.mean(plain.family.estimates((x,), better.block_count(n), plain.box, corrected=True, workers=1))
        noise = better.release(x, size=60, rng=PCG64(0)) - center
        assert 1 + n * np.mean(noise**2) < 1.2
        assert n * np.var(plain.release(x, size=400, rng=PCG64(0))) > 5

    def test_fallback(self):
        """Too few blocks to find the quartiles, or a range that is no wider than the window: the plain mean."""
        wide = SampleAndAggregate(
            "exponential", bounds=(0.01, 96.01), epsilon=1.0, combine="winsorized", guess={"rate": 1.0}
        )
        assert wide.winsorizes(5000) == (False,)
        assert isinstance(wide.law(np.ones(5000)), ClampedNoise)
        narrow = SampleAndAggregate("exponential", bounds=(0.9, 1.1), epsilon=1.0, combine="winsorized")
        assert narrow.winsorizes(10**6) == (False,)

    def test_error(self):
        """Released this close with the probability it says."""
        mechanism = SampleAndAggregate("exponential", bounds=(0.2, 5), epsilon=1.0)
        bound = mechanism.error(20_000, 1.0, confidence=0.8)
        rng = np.random.default_rng(2)
        errors = np.abs([mechanism(rng.exponential(size=20_000), rng=rng) - 1 for _ in range(400)])
        for factor, off in ((1, False), (0.7, True), (1.4, True)):  # the power: a bound this far off is detected
            hits = int(np.sum(errors <= bound * factor))
            assert (scipy.stats.binomtest(hits, 400, 0.8).pvalue < 1e-6) == off

    ALIKE: ClassVar = [  # family, all its parameters at two points, the determining ones, draws
        ("exponential", [{"rate": 0.5, "mean": 2.0}, {"rate": 4.0, "mean": 0.25}], [("rate",), ("mean",)]),
        (
            "normal",
            [{"mean": 3.0, "sd": v**0.5, "variance": v} for v in (0.1, 50.0)],
            [("mean", "sd"), ("sd",), ("variance",)],
        ),
        (
            "gamma",
            [{"shape": 2.0, "rate": 0.25, "scale": 4.0}, {"shape": 0.5, "rate": 2.0, "scale": 0.5}],
            [("shape", "rate"), ("shape", "scale")],
        ),
        (
            "negativebinomial",
            [{"r": 2.0, "p": 0.25, "mean": 6.0}, {"r": 8.0, "p": 0.5, "mean": 8.0}],
            [("r", "p"), ("p", "mean"), ("r", "mean")],
        ),
        ("lognormal", [{"mu": 0.5, "sigma": 2.0}, {"mu": 0.5, "sigma": 0.5}], [("sigma",)]),
        ("beta", [{"a": 2.0, "b": 3.0}, {"a": 9.0, "b": 1.0}], [("a", "b")]),
        ("weibull", [{"shape": 2.0, "scale": 3.0}, {"shape": 1.0, "scale": 9.0}], [("shape", "scale")]),
        ("laplace", [{"location": 1.0, "scale": 2.0}, {"location": 1.0, "scale": 9.0}], [("scale",)]),
        ("pareto", [{"shape": 3.0}, {"shape": 1.0}], [("shape",)]),
        ("poisson", [{"mean": 2.0}, {"mean": 30.0}], [("mean",)]),
        ("geometric", [{"p": 0.3}, {"p": 0.9}], [("p",)]),
        ("bernoulli", [{"p": 0.3}, {"p": 0.01}], [("p",)]),
    ]

    @every("name, thetas, ways", ALIKE, ids=lambda value: value if isinstance(value, str) else "")
    def test_error_is_that_of_theta(self, name, thetas, ways):
        """As simulated at both of two points, for all released parameters and all forms of the guess."""
        more = {
            "negativebinomial": lambda rng, n, r, p, mean: rng.negative_binomial(r, p, n),
            "weibull": lambda rng, n, shape, scale: scale * rng.weibull(shape, n),
            "laplace": lambda rng, n, location, scale: rng.laplace(location, scale, n),
        }
        rng, n, k = np.random.default_rng(11), 300_000, 200
        for theta in thetas:
            x = more[name](rng, n, **theta) if name in more else draws(name, theta, n, rng)
            for parameter, value in theta.items():
                high = 1.0 if parameter == "p" else 50 * value
                mechanism = SampleAndAggregate(name, bounds={parameter: (value / 50, high)}, epsilon=1e9, blocks=k)
                estimates = mechanism.family.estimates((x,), k, mechanism.box, corrected=True, workers=1)
                want = 1.96 * estimates.std() / k**0.5 * (value if parameter in mechanism.box.logs else 1)
                told = [mechanism.error(n, {key: theta[key] for key in way}) for way in ways]
                assert told == pytest.approx([told[0]] * len(ways), rel=1e-9)
                assert told[0] == pytest.approx(want, rel=0.3)  # the deviation of 200 estimates: 5 %

    @every(
        "name, bounds, guess, same",
        [
            ("normal", {"sd": (0.01, 100)}, {"variance": 25.0}, {"sd": 5.0}),
            ("normal", {"variance": (0.01, 100)}, {"sd": 5.0}, {"variance": 25.0}),
            ("gamma", {"rate": (0.01, 100)}, {"shape": 3.0, "scale": 0.5}, {"shape": 3.0, "rate": 2.0}),
            ("exponential", {"rate": (0.01, 100)}, {"mean": 0.1}, {"rate": 10.0}),
            ("negativebinomial", {"r": (0.1, 100)}, {"r": 4.0, "mean": 4.0}, {"r": 4.0, "p": 0.5}),
        ],
    )
    def test_a_guess_in_another_parametrisation(self, name, bounds, guess, same):
        counts = [
            SampleAndAggregate(
                name, bounds=bounds, epsilon=1.0, guess=told, bias_correction=False, combine="mean", margin=0
            ).block_count(10**8)
            for told in (guess, same, None)
        ]
        assert counts[0] == counts[1] != counts[2]

    def test_sample_size(self):
        mechanism = SampleAndAggregate("exponential", bounds=(0.2, 5), epsilon=1.0)
        n = mechanism.sample_size(0.01, theta=1.0)
        assert mechanism.error(n, 1.0) <= 0.01
        assert mechanism.error(int(n / 1.02), 1.0) > 0.01
        several = SampleAndAggregate("gamma", bounds={"shape": (0.1, 10), "scale": (0.1, 10)}, epsilon=1.0)
        assert several.error(10**5, {"shape": 2.0, "scale": 1.0}).shape == (2,)

    @every("combine", ["mean", "geometric"])
    @every("margin", [0, "auto"])
    @every("epsilon", [0.1, 1.0, 8.0])
    def test_the_best_number_of_blocks(self, combine, margin, epsilon):
        """By the theory that includes the clamp, evaluated at all numbers of blocks."""
        for name, bounds in [("gamma", {"shape": (0.5, 5)}), ("exponential", {"rate": (0.9, 1.3)})]:
            for guess in (None, "worst"):
                options = {"bounds": bounds, "epsilon": epsilon, "margin": margin, "combine": combine, "guess": guess}
                mechanism, n, [parameter] = SampleAndAggregate(name, **options), 10**6, bounds
                points = mechanism._points(parameter)
                tried = np.unique(np.round(np.geomspace(1, n // 20, 70)).astype(int)).tolist()
                *worst, chosen = (
                    max(mechanism._excess(n, k, parameter, point, mechanism._ends(n, k, parameter)) for point in points)
                    for k in [*tried, mechanism.block_count(n)]
                )
                assert chosen < 1.02 * min(worst)

    def test_many_blocks_are_spared(self):
        """Beyond 2**16 the fewest whose mean squared error is within 1/200 of the least one."""
        n = 10**8
        mechanism = SampleAndAggregate("exponential", bounds=(0.2, 5), epsilon=1.0, combine="mean", margin=0)
        k, best = mechanism.block_count(n), theory.block_count(n, width=4.8, epsilon=1.0, v2=2.0)

        def efficiency(blocks):
            return theory.aggregate_efficiency(n, information=1.0, width=4.8, epsilon=1.0, v2=2.0, blocks=blocks)

        assert 2**16 <= k < 0.7 * best
        assert efficiency(k) <= 1.0051 * efficiency(best) < efficiency(k * 16 // 18)
        proportion = SampleAndAggregate("bernoulli", bounds=(0, 1), epsilon=1.0)
        assert proportion.error(10**9, 0.5) < 1.001 * 1.96 / math.sqrt(4 * 10**9)  # efficient in the end

    def test_ends_of_the_bounds_and_another_parametrisation(self):
        """The deviations at the ends do not depend on the guess."""
        options = {"bounds": {"variance": (0.1, 10)}, "combine": "mean", "epsilon": 1.0, "blocks": 5000}
        guesses = ({"sd": 1.0}, {"variance": 1.0}, {"variance": 1.0, "mean": 3.0})
        scales = [SampleAndAggregate("normal", guess=guess, **options)._scales for guess in guesses]
        assert scales[0] == scales[1] == scales[2]
        assert scales[0]["variance"].above[0] == pytest.approx(10 * math.sqrt(2))
        counts = SampleAndAggregate(
            "negativebinomial", bounds={"mean": (0.1, 50)}, guess={"r": 2, "p": 0.5}, epsilon=1.0
        )
        assert counts._scales["mean"].above[0] > 10 * counts._scales["mean"].below[0]

    def test_extreme_ranges_of_counts(self):
        for bounds in ((1, 1e16), (1e-300, 1e300), (1e-12, 1)):
            mechanism = SampleAndAggregate("negativebinomial", bounds={"r": bounds}, epsilon=1.0, blocks=50)
            assert bounds[0] <= mechanism(np.zeros(1000), rng=PCG64(1)) <= bounds[1]

    def test_beyond_the_bounds_the_error_is_the_distance_at_least(self):
        mechanism = SampleAndAggregate("exponential", bounds=(0.2, 5), epsilon=1.0)
        assert mechanism.error(10**6, 6.0) == pytest.approx(1.0)
        assert mechanism.error(10**6, 5.2) >= 0.2 - 1e-12

    def test_families_that_are_not_hashable(self):
        @dataclasses.dataclass
        class Trim:
            share: float = 0.1

            def __call__(self, x):
                return np.mean(x)

        assert 0 <= SampleAndAggregate(Trim(), bounds=(0, 1), epsilon=1.0)(np.full(1000, 0.5), rng=PCG64(1)) <= 1

    def test_the_worst_of_the_bounds(self):
        """The greatest error is less than with another guess; an end where the family degenerates does not count."""
        n, bounds = 10**6, (0.2, 5)
        for combine in ("mean", "geometric"):
            options = {"bounds": bounds, "epsilon": 1.0, "combine": combine, "margin": 0}
            points, errors = SampleAndAggregate("exponential", guess="worst", **options)._points("rate"), []
            for guess in ("worst", None, {"rate": 0.2}):
                mechanism = SampleAndAggregate("exponential", guess=guess, **options)
                k = mechanism.block_count(n)
                ends = mechanism._ends(n, k, "rate")
                squares = (point.deviation**2 / n + mechanism._excess(n, k, "rate", point, ends) for point in points)
                errors.append(math.sqrt(max(squares)))
            assert errors[0] < errors[1] / 2
            assert errors[0] <= errors[2]
        certain = SampleAndAggregate("geometric", bounds=(0.1, 1), epsilon=1.0, guess="worst")
        assert certain.block_count(n) > 1000

    def test_which_mean(self):
        """Geometric where a family supports it, the bounds are positive and its noise is less at the guess."""

        def logs(name, bounds, **options):
            return SampleAndAggregate(name, bounds=bounds, epsilon=1.0, **options).box.logs

        assert logs("exponential", (0.2, 5)) == ("rate",)
        assert logs("exponential", (0.0, 5)) == ()
        assert logs("exponential", (0.2, 5), guess={"rate": 1.4}) == ("rate",)
        assert logs("exponential", (0.2, 5), guess={"rate": 1.6}) == ()  # 1.6 log 25 > 4.8
        assert logs("exponential", (0.2, 5), guess={"mean": 1 / 1.6}) == ()
        for combine in ("mean", "winsorized"):
            assert logs("exponential", (0.2, 5), combine=combine) == ()
        assert logs("normal", {"mean": (1, 9), "sd": (1, 9)}) == ("sd",)
        assert logs("poisson", (1, 9)) == ()
        for name, bounds in [("poisson", (1, 9)), ("exponential", (0, 9))]:
            with pytest.raises(ValueError, match='combine="geometric" is for positive bounds of parameters'):
                logs(name, bounds, combine="geometric")

    def test_a_wide_range_of_a_scale(self):
        """20 times as wide each way: the noise of a geometric mean is on its logarithm, for all rates."""
        n, rng = 10**6, np.random.default_rng(18)
        mechanism = SampleAndAggregate("exponential", bounds=(0.01, 100), epsilon=1.0)
        for rate in (0.05, 1.0, 20.0):
            x = rng.exponential(1 / rate, n)
            errors = mechanism.release(x, size=400, rng=rng) * x.mean() - 1
            assert n * np.mean(errors**2) < 0.4  # beside the chance of the sample, 1

    def test_clamp(self):
        """The bias of a clamped normal number by quadrature; the margin for a bias."""
        for deviation, below, above in [(1.0, 0.5, 2.0), (0.3, 0.0, math.inf), (2.0, -1.0, 3.0), (5.0, 0.1, 0.1)]:
            z = deviation * scipy.stats.norm.ppf((np.arange(10**6) + 0.5) / 10**6)
            exact = np.clip(z, -below, above).mean()
            assert theory.clamp_bias(deviation, below, above) == pytest.approx(exact, abs=1e-5)
        assert theory.clamp_bias(0.0, 1.0, -2.0) == -2.0
        for bias, deviation in [(0.01, 1.0), (1e-9, 3.0), (0.1, 0.5)]:
            margin = theory.clamp_margin(bias, deviation)
            assert -theory.clamp_bias(deviation, math.inf, margin) == pytest.approx(bias, rel=1e-3)
        assert theory.clamp_margin(0.4, 1.0) == 0.0

    def test_blocks_where_the_clamp_biases(self):
        """The chosen number of blocks is near the best; far ends do not change it; at an end it is small."""
        terms = {"width": 2.0, "epsilon": 0.5, "v2": 3.0, "deviation": 1.0, "above": 1.0}
        n, counts = 10**5, []
        for below in (0.0, 0.02, 0.1, 0.5, 1.0):
            k = theory.block_count(n, below=below, **terms)
            all_of_them = [theory.block_excess(n, k, below=below, **terms) for k in range(1, 5001)]
            assert theory.block_excess(n, k, below=below, **terms) < 1.01 * min(all_of_them)
            counts.append(k)
        assert counts[:3] == sorted(set(counts[:3]))
        assert counts[-1] == theory.block_count(n, width=2.0, epsilon=0.5, v2=3.0)
        near, far = (
            theory.aggregate_efficiency(n, information=1.0, width=2.0, epsilon=0.5, v2=3.0, below=below)
            for below in (0.02, 1.0)
        )
        assert near > 1.5 * far

    def test_theory(self):
        terms = {"width": 2.0, "epsilon": 0.5, "v2": 3.0, "b1": 0.5, "b2": 2.0}
        n = 10**5
        best = theory.block_count(n, least=1, **terms)
        excess = [theory.block_excess(n, k, **terms) for k in (best - 1, best, best + 1, best / 2, best * 2)]
        assert min(excess) == excess[1]
        assert theory.block_count(n, least=20, width=2.0, epsilon=0.5, v2=0.0) == n // 20
        size = theory.aggregate_sample_size(1.3, information=1.0, width=2.0, epsilon=1.0, v2=2.0)
        options = {"information": 1.0, "width": 2.0, "epsilon": 1.0, "v2": 2.0}
        assert theory.aggregate_efficiency(size, **options) <= 1.3 < theory.aggregate_efficiency(size - 40, **options)
        slope = [
            (theory.aggregate_efficiency(10**e, **options) - 1) * 10 ** (e / 3) for e in (9, 12, 15)
        ]  # the excess is of order n^(-1/3)
        assert slope == pytest.approx([1.5 * (4 * 4 * 4) ** (1 / 3)] * 3, rel=1e-2)
