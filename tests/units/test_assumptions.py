"""Errors predicted from an assumed distribution, against releases: every statistic by every mechanism."""

import inspect
import itertools
import math

import numpy as np
import pytest
from numpy.random import PCG64, Generator
from scipy import integrate, optimize, stats

import dpfast as dpf
from dpfast import theory
from dpfast.laws import DiscreteLaplace, Staircase
from dpfast.mechanisms import assumptions
from dpfast.mechanisms.assumptions import Assumed, ImaginedRanks, sobol, summaries, target
from dpfast.mechanisms.integer_noise import integer_noise
from dpfast.statistics import (
    Huber,
    InterquartileRange,
    Mean,
    Median,
    Quantile,
    Sum,
    TrimmedMean,
    Variance,
    WinsorizedMean,
)
from tests.cases import every
from tests.reference.statistics import RANK_CASES, one_of_each
from tests.statistical import ALPHA, kolmogorov_rejects

GRID = dpf.Grid(-20, 20)
NORMAL, SKEWED, HEAVY = stats.norm(), stats.lognorm(0.6), stats.t(3)


def inverse(statistic, epsilon, grid=GRID):
    return dpf.InverseSensitivity(statistic, grid=grid, epsilon=epsilon)


def smooth(statistic, epsilon, delta):
    return dpf.SmoothSensitivity(statistic, grid=GRID, epsilon=epsilon, delta=delta)


def globally(statistic, epsilon):
    return dpf.GlobalSensitivity(statistic, grid=GRID, epsilon=epsilon)


CASES = [
    (inverse(Median(), 0.1), NORMAL, 2000),
    (inverse(Median(), 1.0), HEAVY, 100),
    (inverse(Quantile(0.9), 4.0), SKEWED, 300),
    (inverse(TrimmedMean(0.1), 1.0), SKEWED, 400),
    (inverse(TrimmedMean(0.3), 4.0), HEAVY, 60),
    (inverse(WinsorizedMean(0.1), 1.0), NORMAL, 500),
    (inverse(Mean(), 1.0), stats.uniform(-20, 40), 300),
    (inverse(Mean(), 4.0), NORMAL, 200),
    (inverse(Huber(1.5), 1.0), HEAVY, 300),
    (inverse(InterquartileRange(), 1.0), SKEWED, 400),
    (smooth(Median(), 1.0, 0.0), NORMAL, 200),
    (smooth(Median(), 1.0, 1e-6), NORMAL, 1000),
    (smooth(Quantile(0.2), 4.0, 1e-2), SKEWED, 200),
    (smooth(TrimmedMean(0.1), 1.0, 0.0), HEAVY, 300),
    (smooth(WinsorizedMean(0.2), 4.0, 1e-6), NORMAL, 300),
    (smooth(InterquartileRange(), 1.0, 1e-2), NORMAL, 500),
    (globally(Mean(), 0.1), NORMAL, 1000),
    (globally(Mean(), 4.0), SKEWED, 200),
    (globally(Sum(), 1.0), stats.uniform(-20, 40), 100),
    (globally(Variance(), 4.0), stats.uniform(-20, 40), 500),
]
KNOWN = {type(mechanism.statistic) for mechanism, _, _ in CASES}
CASES += [(inverse(other, 1.0), NORMAL, 300) for other in one_of_each(RANK_CASES) if type(other) not in KNOWN]
RUNS, CONFIDENCE = 500, 0.8


@pytest.fixture(scope="module")
def simulated():
    """For each case, the prediction, and the errors of releases on samples that were really drawn."""
    found = []
    for mechanism, distribution, n in CASES:
        rng = Generator(PCG64(7))
        samples = distribution.rvs((RUNS, n), random_state=rng)
        truth = n * distribution.mean() if mechanism.statistic == Sum() else None
        truth = target(mechanism.statistic, Assumed(distribution)) if truth is None else truth
        errors = np.abs([mechanism(x, rng=rng) - truth for x in samples])
        found.append((mechanism.error(n, distribution=distribution, confidence=CONFIDENCE), errors))
    return found


def covered(errors, predicted):
    return np.count_nonzero(errors <= predicted * (1 + 1e-3))


@pytest.mark.slow
def test_each_prediction_has_its_coverage(simulated):
    """Exact binomial limits for a coverage within 0.03; refuted at 1/1.6 and 1.9 of the prediction."""
    low, high = (stats.binom.ppf(ALPHA, RUNS, CONFIDENCE - 0.03), stats.binom.isf(ALPHA, RUNS, CONFIDENCE + 0.03))
    for (mechanism, _, n), (predicted, errors) in zip(CASES, simulated, strict=True):
        assert low <= covered(errors, predicted) <= high, (mechanism, n)
        assert covered(errors, predicted / 1.6) < low
        assert covered(errors, predicted * 1.9) > high


@pytest.mark.slow
def test_all_predictions_together(simulated):
    """The average coverage within 0.01; refuted at 0.9 and 1.1 of the prediction."""
    trials = RUNS * len(CASES)
    for factor, right in ((1.0, True), (0.9, False), (1.1, False)):
        hits = sum(covered(errors, factor * predicted) for predicted, errors in simulated)
        low, high = (
            stats.binom.ppf(ALPHA, trials, CONFIDENCE - 0.01),
            stats.binom.isf(ALPHA, trials, CONFIDENCE + 0.01),
        )
        assert (low <= hits <= high) == right


@pytest.mark.parametrize(("qs", "n", "epsilon"), [([0.5], 300, 1.0), ([0.1, 0.5, 0.9], 400, 1.0)])
def test_quantiles(qs, n, epsilon):
    mechanism = dpf.Quantiles(qs, grid=GRID, epsilon=epsilon)
    predicted = mechanism.error(n, distribution=NORMAL, confidence=CONFIDENCE)
    rng = Generator(PCG64(3))
    errors = np.abs([mechanism(rng.normal(size=n), rng=rng) - NORMAL.ppf(qs) for _ in range(RUNS)])
    low, high = (stats.binom.ppf(ALPHA, RUNS, CONFIDENCE - 0.04), stats.binom.isf(ALPHA, RUNS, CONFIDENCE + 0.04))
    assert predicted.shape == (len(qs),)
    for j in range(len(qs)):
        assert low <= covered(errors[:, j], predicted[j]) <= high
        assert covered(errors[:, j], predicted[j] / 1.6) < low
        assert covered(errors[:, j], predicted[j] * 1.9) > high


def test_without_privacy_noise_it_is_the_sampling_error():
    """n = 1e9, epsilon 1: the standard errors of the textbooks, at a cost that does not grow with n."""
    n, z = 10**9, stats.norm.ppf(0.975)
    for mechanism, deviation in (
        (inverse(Median(), 1.0), math.sqrt(math.pi / 2)),
        (smooth(Median(), 1.0, 1e-6), math.sqrt(math.pi / 2)),
        (smooth(InterquartileRange(), 1.0, 0.0), 1.573),
        (inverse(Mean(), 1.0), 1.0),
        (globally(Mean(), 1.0), 1.0),
        (globally(Variance(), 4.0), math.sqrt(2)),
    ):
        assert mechanism.error(n, distribution=NORMAL) * math.sqrt(n) == pytest.approx(z * deviation, rel=0.04)


@pytest.mark.parametrize(("n", "epsilon"), [(50, 1.0), (50, 4.0), (1000, 0.1), (10**6, 1.0)])
def test_deviation(n, epsilon):
    """A mean of normals is normal: both ways agree with each other and with a simulation of the two errors."""
    mean, total = globally(Mean(), epsilon), globally(Sum(), epsilon)
    predicted = mean.error(n, deviation=1.0, confidence=0.9)
    assert predicted == pytest.approx(mean.error(n, distribution=NORMAL, confidence=0.9), rel=5e-3)
    assert total.error(n, deviation=1.0, confidence=0.9) == pytest.approx(n * predicted, rel=1e-9)
    assert predicted == pytest.approx(error_in_simulation(mean, n, 1.0), rel=5e-3)


def error_in_simulation(mean, n, deviation):
    """The 0.9-quantile of the errors by sampling and by the noise of the law."""
    rng, noise = Generator(PCG64(1)), np.empty(10**6, np.int64)
    mean.law(np.zeros(n)).noise.fill(PCG64(2), noise)
    unit = mean.grid.step / n
    return np.quantile(np.abs(rng.normal(0, deviation * n**-0.5, noise.size) + noise * unit), 0.9)


@every("n, epsilon, deviation, bounds", [(50, 1.0, 1.0, (0, 3)), (20, 4.0, 0.5, (0, 10)), (1000, 6.0, 2.0, (0, 40))])
@every("noise", ["discrete-laplace", "staircase"])
def test_deviation_of_integers(n, epsilon, deviation, bounds, noise):
    """Noise of few steps, which is far from continuous."""
    grid = dpf.Grid(*bounds, step=1)
    mean = dpf.GlobalSensitivity(Mean(), grid=grid, epsilon=epsilon, noise=noise)
    predicted = mean.error(n, deviation=deviation, confidence=0.9)
    assert predicted == pytest.approx(error_in_simulation(mean, n, deviation), rel=5e-3)


@pytest.mark.parametrize("noise", ["discrete-laplace", "staircase"])
def test_noise_alone(noise):
    """Of a negligible deviation: the least magnitude that the noise keeps with this probability, by its exact law."""
    mean = dpf.GlobalSensitivity(Mean(), grid=dpf.Grid(0, 10, step=1), epsilon=2.0, noise=noise)
    law, z = mean.law(np.zeros(7)).noise, np.arange(1, 200)
    for confidence in (0.3, 0.9, 0.99):
        least = int(np.argmax(2 * np.exp(law.log_tail(z.astype(float))) < 1 - confidence))
        assert mean.error(7, deviation=1e-6, confidence=confidence) * 7 == pytest.approx(least, abs=1e-3)


@pytest.mark.parametrize("q", [0.1, 0.5])
@pytest.mark.parametrize("n", [1000, 10**5])
def test_density(q, n):
    density = NORMAL.pdf(NORMAL.ppf(q))
    one = inverse(Quantile(q), 1.0).error(n, density=density)
    assert one == theory.quantile_error(n, q, density=density, width=40.0, epsilon=1.0)
    assert one == pytest.approx(inverse(Quantile(q), 1.0).error(n, distribution=NORMAL), rel=0.15)
    other = smooth(Quantile(q), 1.0, 0.0)
    assert other.error(n, density=density) == pytest.approx(other.error(n, distribution=NORMAL), rel=0.15)


def test_the_error_includes_clamping_by_the_bounds():
    narrow = dpf.GlobalSensitivity(Mean(), grid=dpf.Grid(0, 2), epsilon=1.0)
    bias = SKEWED.mean() - integrate.quad(lambda u: min(SKEWED.ppf(u), 2.0), 0, 1)[0]
    assert bias > 0.09
    assert narrow.error(10**6, distribution=SKEWED) == pytest.approx(bias, rel=0.02)
    with pytest.raises(ValueError, match=r"more than 2\*\*50 records"):
        dpf.GlobalSensitivity(Mean(), grid=dpf.Grid(0, 2, step=0.5), epsilon=1.0).sample_size(0.05, distribution=SKEWED)
    with pytest.raises(ValueError, match=r"records times grid points must be below 2\*\*63"):
        narrow.sample_size(bias / 2, distribution=SKEWED)


def test_population_values():
    exponential = Assumed(stats.expon())
    inner = integrate.quad(lambda u: -math.log1p(-u), 0.1, 0.9)[0]
    ends = -0.1 * (math.log(0.9) + math.log(0.1))
    root = optimize.brentq(
        lambda t: integrate.quad(lambda x: np.clip(t - x, -0.5, 0.5) * math.exp(-x), 0, 50, points=[t - 0.5, t + 0.5])[
            0
        ],
        0.6,
        2,
    )
    for statistic, expected in (
        (Mean(), 1.0),
        (Variance(), 1.0),
        (Quantile(0.9), math.log(10)),
        (InterquartileRange(), math.log(3)),
        (TrimmedMean(0.1), inner / 0.8),
        (WinsorizedMean(0.1), inner + ends),
        (Huber(0.5), root),
    ):
        assert target(statistic, exponential) == pytest.approx(expected, rel=1e-6)


class TestImagined:
    """The windows follow the law of samples: spacings against exact laws, refuted at 3/5 and 5/3 of the records."""

    @pytest.mark.parametrize(
        ("n", "ranks", "reach", "spans"),
        [
            (9, [5], 20, [(1, 9)]),
            (1000, [100, 900], 30, [(70, 130), (870, 930)]),
            (1000, [100, 140], 30, [(70, 170)]),
            (10**9, [1, 10**9], 5, [(1, 6), (10**9 - 5, 10**9)]),
        ],
    )
    def test_spacings(self, n, ranks, reach, spans):
        imagined = ImaginedRanks(n, ranks, reach, sobol(len(ranks)))
        assert imagined.spans == spans
        u = np.array(list(imagined))
        assert u.shape[1] == sum(last - first + 1 for first, last in spans)
        assert np.all(np.diff(u, axis=1) > 0)
        cuts = np.cumsum([0, *(last - first + 1 for first, last in spans)])
        for (first, last), start, stop in zip(spans, cuts, cuts[1:], strict=False):
            across = u[:, stop - 1] - u[:, start]  # a gap of k spacings is Beta(k, n + 1 - k)
            near = u[:, start + 1] - u[:, start] if n < 10**9 else across
            for gap, k in ((across, last - first), (near, 1 if n < 10**9 else last - first)):
                for size, wrong in ((n, False), (5 * n, True), (n // 5, True)):
                    law = stats.beta(k, max(size + 1 - k, 1))
                    assert kolmogorov_rejects(gap, law.cdf) == wrong or (wrong and n == 9)

    def test_summaries_are_those_of_samples(self):
        """Window codes and totals have the means that samples give; the seed is fixed, and so is the prediction."""
        statistic, n, levels = TrimmedMean(0.1), 400, 20
        imagined = list(summaries(statistic, Assumed(SKEWED), GRID, n, levels))
        rng = Generator(PCG64(1))
        real = [statistic.reading(GRID, lambda _: levels).of(SKEWED.rvs(n, random_state=rng)) for _ in range(2000)]
        for part in (
            lambda s: float(s.total),
            *(lambda s, i=i, j=j: float(s.windows[i][j]) for i in (0, 1) for j in (0, 38)),
        ):
            a, b = np.array([part(s) for s in imagined]), np.array([part(s) for s in real])
            assert abs(a.mean() - b.mean()) < 6 * b.std() * math.sqrt(1 / 256 + 1 / 2000)
            assert a.std() == pytest.approx(b.std(), rel=0.25)
        again = list(summaries(statistic, Assumed(SKEWED), GRID, n, levels))
        assert [s.total for s in again] == [s.total for s in imagined]


class TestSampleSize:
    @pytest.mark.parametrize("error", [0.3, 0.01])
    def test_inverts_the_closed_forms(self, error):
        for mechanism, assumption in ((inverse(Median(), 1.0), "density"), (globally(Mean(), 0.5), "deviation")):
            n = mechanism.sample_size(error, **{assumption: 0.4})
            assert mechanism.error(n, **{assumption: 0.4}) <= error < mechanism.error(n - 1, **{assumption: 0.4})
        assert inverse(Median(), 1.0).sample_size(0.1, density=0.4) == theory.sample_size(
            0.1, density=0.4, width=40.0, epsilon=1.0
        )

    def test_inverts_a_distribution(self):
        mechanism = globally(Variance(), 1.0)
        n = mechanism.sample_size(0.5, distribution=NORMAL)
        assert mechanism.error(n, distribution=NORMAL) <= 0.5 < mechanism.error(int(0.99 * n), distribution=NORMAL)

    def test_nonsense(self):
        with pytest.raises(ValueError, match="error must be positive"):
            globally(Mean(), 1.0).sample_size(0.0, deviation=1.0)


@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_on_a_coarse_grid(confidence):
    """Whole numbers: the prediction is the next atom of the error that holds the confidence."""
    mechanism, ages = inverse(Median(), 1.0, dpf.Grid(0, 200, step=1)), stats.binom(200, 0.4)
    predicted = mechanism.error(30, distribution=ages, confidence=confidence)
    assert predicted == pytest.approx(round(predicted), rel=1e-3)
    rng = Generator(PCG64(2))
    errors = np.abs([mechanism(ages.rvs(30, random_state=rng), rng=rng) - 80 for _ in range(2000)])
    assert np.mean(errors < round(predicted)) < confidence + 0.03
    assert np.mean(errors <= round(predicted)) > confidence - 0.03


@pytest.mark.parametrize("statistic", one_of_each(RANK_CASES), ids=str)
def test_degenerate(statistic):
    """One or two records, two grid points, equal ranks: an answer, at most the width of the grid."""
    two, many = dpf.Grid(0, 1, step=1), dpf.Grid(0, 100)
    for grid, n, epsilon in ((two, 1, 1e-6), (two, 2, 50.0), (many, 1, 50.0), (many, 2, 1e-6)):
        error = inverse(statistic, epsilon, grid).error(n, distribution=stats.uniform(0, 1))
        assert 0 <= error <= grid.upper * (1 + 1e-9)


def test_no_error_at_all():
    assert globally(Variance(), 1.0).error(1, distribution=NORMAL) == pytest.approx(1)
    assert inverse(Median(), 50.0, dpf.Grid(0, 8, step=1)).error(99, distribution=stats.binom(1, 0.01)) == 0


def every_subclass(kind):
    for direct in kind.__subclasses__():
        yield direct
        yield from every_subclass(direct)


def test_every_mechanism_predicts_without_data():
    of_statistics = {"self", "n", "distribution", "density", "deviation", "confidence"}
    for kind in (dpf.InverseSensitivity, dpf.SmoothSensitivity, dpf.GlobalSensitivity, dpf.Quantiles):
        assert set(inspect.signature(kind.error).parameters) == of_statistics
    assumed = {
        "args",
        "assumptions",
        "center",
        "contamination",
        "d",
        "dimension",
        "probabilities",
        "roughness",
        "smoothness",
        "spread",
        "square_integral",
        "theta",
    }
    for kind in every_subclass(dpf.Mechanism):
        assert set(inspect.signature(kind.error).parameters) <= of_statistics | assumed


class Nothing(dpf.Mechanism):
    privacy = dpf.Privacy(1.0)

    def law(self, x, *, workers=1):
        raise NotImplementedError


class Half:
    def ppf(self, u):
        return np.where(u < 0.5, u, np.nan)


@every(
    "mechanism, options, error, message",
    [
        (inverse(Mean(), 1.0), {}, TypeError, "depends on the records, so give one assumption"),
        (globally(Mean(), 1.0), {"density": 1.0, "deviation": 1.0}, TypeError, "give one assumption"),
        (globally(Mean(), 1.0), {"density": 1.0}, TypeError, "a density gives"),
        (globally(Variance(), 1.0), {"deviation": 1.0}, TypeError, "does not determine the error of the variance"),
        (inverse(Mean(), 1.0), {"deviation": 1.0}, TypeError, "a deviation gives"),
        (
            inverse(TrimmedMean(0.1), 1.0),
            {"density": 1.0},
            TypeError,
            "does not determine the error of the 0.1-trimmed mean",
        ),
        (smooth(Mean(), 1.0, 0.0), {"density": 1.0}, TypeError, "does not determine the error of the mean"),
        (dpf.Quantiles([0.5], grid=GRID, epsilon=1.0), {"density": 1.0}, TypeError, "a density gives"),
        (
            dpf.InverseSensitivity(Median(), grid=GRID, epsilon=1.0, radius=1.0),
            {"density": 1.0},
            TypeError,
            "with a radius",
        ),
        (inverse(Quantile(1.0), 1.0), {"density": 1.0}, ValueError, "q must be strictly between"),
        (inverse(Quantile(1.0), 1.0), {"distribution": NORMAL}, ValueError, "the 1-quantile of .* is not finite"),
        (globally(Mean(), 1.0), {"distribution": stats.cauchy()}, ValueError, "the mean of .* is not finite"),
        (globally(Variance(), 1.0), {"distribution": stats.t(2)}, ValueError, "the variance of .* is not finite"),
        (inverse(Median(), 1.0), {"distribution": [1.0, 2.0]}, TypeError, "must have a quantile function ppf, .* list"),
        (inverse(Median(), 1.0), {"distribution": Half()}, ValueError, "must give a number for every level"),
        (inverse(Mean(), 1.0), {"distribution": Half()}, TypeError, "must have a method mean"),
        (inverse(Median(), 1.0), {"density": 0.0}, ValueError, "density must be positive"),
        (globally(Mean(), 1.0), {"deviation": math.nan}, ValueError, "deviation must be finite"),
        (globally(Mean(), 1.0), {"deviation": 1.0, "confidence": 1.0}, ValueError, "confidence must be strictly"),
        (inverse(Huber(1.0), 1.0), {"distribution": NORMAL, "n": 2**27}, ValueError, "at most 2.*26 records"),
        (Nothing(), {"distribution": NORMAL}, TypeError, "no error is known for a Nothing release"),
    ],
)
def test_unavailable_predictions_say_why(mechanism, options, error, message):
    with pytest.raises(error, match=message):
        mechanism.error(**{"n": 100, **options})


def test_records_are_counted():
    for n, error in ((0, ValueError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(error, match="n must be"):
            globally(Mean(), 1.0).error(n, deviation=1.0)


class Counting:
    """A distribution with a hash of its values, which counts the calls of its quantile function."""

    def __init__(self, center):
        self.center, self.calls = center, 0

    def ppf(self, u):
        self.calls += 1
        return stats.norm.ppf(u, self.center, 10)  # of a frozen one, most of the time is for its documentation

    def __hash__(self):
        return hash(self.center)

    def __eq__(self, other):
        return type(other) is type(self) and other.center == self.center


class Changing(Counting):
    """A distribution with a hash of its identity, which stays the same while it changes."""

    __hash__, __eq__ = object.__hash__, object.__eq__


class Hashless(Counting):
    __hash__ = None


@pytest.mark.parametrize(
    "mechanism",
    [
        dpf.InverseSensitivity(dpf.statistics.Median(), grid=dpf.Grid(0, 128, step=2.0**-6), epsilon=1.0),
        dpf.Quantiles([0.75], grid=dpf.Grid(0, 128, step=2.0**-6), epsilon=1.0),
        dpf.MEstimator(dpf.psi.Huber(20.0), grid=dpf.Grid(0, 128, step=2.0**-6), epsilon=1.0),
    ],
)
def test_errors_are_kept(mechanism):
    """A second call computes nothing, and what a caller does to its result does not show; objects that may change are
    asked each time.
    """
    public, confident = Counting(50), {"confidence": 0.3}
    first = mechanism.error(200, distribution=public)
    calls = public.calls
    first *= 1.0  # an array is the caller's own
    np.testing.assert_array_equal(mechanism.error(200, distribution=public), first)
    assert public.calls == calls
    assert np.all(mechanism.error(200, distribution=public, **confident) < first)
    assert np.all(mechanism.error(20_000, distribution=public) < first)
    for changing in (Changing(50), Hashless(50)):
        np.testing.assert_array_equal(mechanism.error(200, distribution=changing), first)
        changing.center = 0
        assert np.any(mechanism.error(200, distribution=changing) != first)


def test_explanations_are_kept():
    public = Counting(50)
    given = {"n": 200, "bounds": (0, 128), "epsilon": 1.0}
    first = dpf.explain("median", **given, distribution=public)
    text, calls = str(first), public.calls
    second = dpf.explain("median", **given, distribution=public)
    assert str(second) == text
    assert public.calls == calls
    second.candidates.clear()  # the caller's own
    assert str(dpf.explain("median", **given, distribution=public)) == text
    assert str(dpf.explain("median", **given, distribution=Changing(50))) == text
    with pytest.raises(ValueError, match="typical values"):
        dpf.explain("median", **given, distribution=(3, 3))


def test_a_distribution_that_changes_is_asked_again():
    """By the choice of a mechanism, its cache of calls, and the traps of its grid."""
    x, public, assumed = np.full(500, 64.0), {"bounds": (0, 128), "epsilon": 1.0}, Changing(50)
    for _ in range(2):
        calls = assumed.calls
        dpf.median(x, **public, distribution=assumed)
        assert assumed.calls > calls
    first = str(dpf.explain("median", n=500, **public, distribution=assumed))
    assumed.center = 127.9
    assert str(dpf.explain("median", n=500, **public, distribution=assumed)) != first


def test_the_error_state_of_a_caller_does_not_decide_about_intervals():
    """Masses times probabilities may be below all doubles."""
    for scale, deviation, unit in itertools.product((0.01, 1.0, 2.0**40), (1e-300, 1e-3, 30.0), (1e-300, 0.25, 1e9)):
        arguments = deviation, DiscreteLaplace(scale), unit, 0.95
        with np.errstate(all="raise"):
            found = assumptions.normal_plus_noise_error(*arguments)
        assert found == assumptions.normal_plus_noise_error(*arguments)


def test_few_nodes_find_the_same_double(monkeypatch):
    """The error of a normal variable plus noise by Gauss's rule and by all cells; a rule of two nodes differs."""
    source = np.random.default_rng(1)

    def errors():
        found = []
        for epsilon, last, wide, confidence in settings:
            noise = integer_noise("auto", last, last, epsilon)
            deviation = wide * float(noise.scale) * 0.25
            found.append(assumptions.normal_plus_noise_error(deviation, noise, 0.25, confidence))
        return found

    settings = [
        (10 ** source.uniform(-2, 1), 2 ** int(source.integers(1, 40)) - 1, 10 ** source.uniform(-1, 2), confidence)
        for confidence in (0.5, 0.9, 0.95, 0.99, 0.999)
        for _ in range(20)
    ]
    few = errors()
    monkeypatch.setattr(assumptions, "_NODES", (2, 2))
    assert errors() != few
    monkeypatch.setattr(assumptions, "_DOUBT", 0.0)  # no rule is good enough
    monkeypatch.setattr(assumptions, "_NODES", (32, 40))
    with np.errstate(invalid="ignore", divide="ignore"):
        assert errors() == few


@pytest.mark.parametrize("noise", [DiscreteLaplace(3.0), DiscreteLaplace(1e6), Staircase(4, 10), DiscreteLaplace(0.01)])
def test_gauss_rules_have_the_moments_of_the_cells(noise):
    masses, places = assumptions._magnitudes(noise, 1.0)
    weights, nodes = assumptions._unit_rule(noise, 16)
    assert (weights >= 0).all()
    for power in range(12):
        expected = np.sum(masses * (places / places[-1]) ** power)
        np.testing.assert_allclose(np.sum(weights * (nodes / places[-1]) ** power), expected, rtol=1e-10)
