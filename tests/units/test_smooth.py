"""Smooth sensitivity: the bound by brute force, the calibration by exact integration, the release by the audit."""

import dataclasses
import itertools
import json
import math
import pickle

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.random import PCG64

import dpfast as dpf
from dpfast import audit, smooth
from dpfast.laws import ClampedNoise, DiscreteLaplace, RoundedGaussian, RoundedLaplace, RoundedStudent3
from dpfast.statistics import Gaps, Huber, Median, Quantile, RankStatistic, Sum, TrimmedMean, WinsorizedMean
from tests.cases import every
from tests.reference import gaps, laws
from tests.reference.statistics import RANK_CASES, has_gaps, one_of_each
from tests.statistical import chi_square_rejects

SLACK = 2.0**-38


@dataclasses.dataclass(frozen=True)
class RankSum(RankStatistic):
    """The sum of the order statistics from rank L to rank H, as in means and trimmed means."""

    low: int
    high: int
    adds = True

    def ranks(self, n):
        return self.low, self.high

    def last(self, grid, n):
        return (self.high - self.low + 1) * (grid.size - 1)

    def value(self, grid, n, code):
        return float(code)

    def breakdown(self, n):
        return n

    def attack_range(self, summary):
        return np.array([summary.total]), np.array([summary.total])

    def gaps(self, n):
        return Gaps(((self.low, self.high),))

    def exact(self, data):
        return sum(data[self.low - 1 : self.high])


@dataclasses.dataclass(frozen=True)
class RankDifference(RankSum):
    """x_(high) - x_(low): an interquartile range."""

    adds = False

    def attack_range(self, summary):
        return (summary.windows[1] - summary.windows[0],) * 2

    def gaps(self, n):
        return Gaps(((self.low, self.low), (self.high, self.high)))

    def exact(self, data):
        return data[self.high - 1] - data[self.low - 1]


@dataclasses.dataclass(frozen=True)
class Winsorized(RankSum):
    """n times the winsorized mean, m = low - 1 from each side."""

    def attack_range(self, summary):
        return (summary.total + (self.low - 1) * (summary.windows[0] + summary.windows[1]),) * 2

    def gaps(self, n):
        return Gaps(((self.low, self.high),), corners=(self.low - 1, self.low - 1))

    def exact(self, data):
        return super().exact(data) + (self.low - 1) * (data[self.low - 1] + data[self.high - 1])


@dataclasses.dataclass(frozen=True)
class Between(RankSum):
    """Three tenths of the way from x_(low) to the next record, in tenths."""

    adds = False

    def attack_range(self, summary):
        return (7 * summary.windows[0] + 3 * summary.windows[1],) * 2

    def gaps(self, n):
        return Gaps(((self.low, self.high),), corners=(4, 0), inner=3)

    def exact(self, data):
        return 7 * data[self.low - 1] + 3 * data[self.high - 1]


def bounds(statistic, n, last, beta):
    grid = dpf.Grid(0, last, step=1)
    every = gaps.datasets(n, last)
    return {data: smooth.smooth_sensitivity(statistic, np.array(data), grid=grid, beta=beta) for data in every}


SMALL = [
    pytest.param(kind(low, high), n, last, id=f"{kind.__name__}-{low}-{high}-of-{n}-on-{last}")
    for n, last in ((1, 6), (2, 4), (3, 3), (4, 2), (6, 1))
    for kind in (RankSum, RankDifference, Winsorized, Between)
    for low in range(1, n + 1)
    for high in range(low, n + 1)
    if not (kind is RankDifference and low == high)
    and not (kind is Between and high != low + 1)
    and not (kind is Winsorized and (low - 1 != n - high or low == high))
]


@pytest.mark.parametrize("beta", [0.05, 0.6, 2.5])
@every(("statistic", "n", "last"), SMALL)
def test_the_bound_is_the_smooth_sensitivity_of_all_datasets(statistic, n, last, beta):
    """T19: equal to the definition (or the least step); with corners between it and three times it."""
    exact = gaps.smooth_sensitivity(statistic.exact, n, last, beta)
    found = bounds(statistic, n, last, beta)
    factor = 3 if isinstance(statistic, Winsorized | Between) else 1
    for data, s in exact.items():
        assert max(s, 1) <= found[data] <= factor * max(s, 1) * (1 + 1e-10)


@pytest.mark.parametrize("beta", [0.05, 0.6, 2.5])
@every(("statistic", "n", "last"), SMALL)
def test_the_bound_is_smooth(statistic, n, last, beta):
    """One record changes the bound by a factor of at most e**(beta + 4u), the beta of the calibration."""
    found = bounds(statistic, n, last, beta)
    growth = math.exp(beta + SLACK)
    for data, s in found.items():
        assert all(s <= growth * found[other] for other in gaps.neighbors(data, last))


def test_a_bound_padded_with_the_data_s_own_extremes_is_not_smooth():
    """Positive control."""
    found = {data: padded_bound(data, 2, 0.6) for data in gaps.datasets(3, 5)}
    growth = math.exp(0.6 + SLACK)
    assert any(s > growth * found[other] for data, s in found.items() for other in gaps.neighbors(data, 5))


def padded_bound(data, k, beta):
    """The wrong bound: x_(0) is the least record, x_(n+1) the greatest."""
    x = [min(data), *sorted(data), max(data)]
    n = len(data)
    every = itertools.product(range(n + 2 - k), range(k + 1))
    return max(1.0, *(math.exp(-beta * (u + v - 1)) * (x[k + u] - x[k - v]) for u, v in every if u + v))


@every("beta", [2.0**-30, 0.003, 0.2, 5.0])
@every("n", [1, 2, 1000])
@every("statistic", [Median(), Quantile(0.0), Quantile(0.9), Quantile(1.0)])
def test_wide_windows_and_degenerate_data(statistic, n, beta):
    grid = dpf.Grid(0, 2**20, step=1)
    rng = np.random.default_rng(n)
    k = statistic.rank(n)
    for data in (rng.integers(0, 2**20, n), np.full(n, 77), np.zeros(n), np.full(n, 2**20), rng.normal(2**19, 900, n)):
        x = np.concatenate([[0], np.sort(grid.encode(data)), [2**20]]).astype(float)
        u, v = np.arange(n + 2 - k)[:, None], np.arange(k + 1)
        terms = np.where(u + v > 0, np.exp(-beta * (u + v - 1.0)) * (x[k + u] - x[k - v]), 0.0)
        found = smooth.smooth_sensitivity(statistic, data, grid=grid, beta=beta)
        assert found == pytest.approx(max(1.0, terms.max()), rel=1e-10)


def test_bounds_one_step_apart_and_data_units():
    assert smooth.smooth_sensitivity(Median(), [0, 1, 1], grid=dpf.Grid(0, 1, step=1), beta=0.1) == 1 + SLACK
    coarse = smooth.smooth_sensitivity(Median(), [0.5, 3.0, 9.0], grid=dpf.Grid(0, 10, step=0.25), beta=0.5)
    assert coarse == pytest.approx(6.0, rel=1e-10)


# Calibration


@every("epsilon", [1e-6, 0.1, 1.0, 50.0])
@every("delta", [1e-2, 1e-12])
def test_laplace_scale_is_private_and_tight(epsilon, delta):
    """T20: the largest divergence over all ratios of scales and shifts is delta, by exact integration."""
    least = 4 * 2.0**-30
    betas = [b for b in (None, 0.01 * epsilon, 0.2 * epsilon) if b is None or b > least]
    for given in betas:
        try:
            beta, scale = smooth.calibrate(epsilon, delta, beta=given)
        except ValueError:
            assert given is None or smooth.laplace_beta_max(epsilon, delta, 1e-9) < given
            continue
        assert largest_divergence(epsilon, beta, 1 / scale) <= delta * (1 + 1e-12)
        if scale > 1.01 / epsilon and math.exp(beta) * (epsilon - beta) > 1.01 / scale:
            assert largest_divergence(epsilon, beta, 1.0001 / scale) > delta


def largest_divergence(epsilon, beta, x):
    ratios = [mp.exp(mpf(beta) * i / 10) for i in range(-10, 11)]
    return max(
        laws.laplace_divergence(epsilon, r, mpf(x) * min(r, 1) * share) for r in ratios for share in (0, 0.5, 0.9, 1)
    )


@every("epsilon", [1e-6, 0.1, 1.0, 4.0, 50.0])
@every("share", [0.01, 0.05, 0.236, 0.33])
def test_student_scale_is_private_and_tight(epsilon, share):
    """T20: the largest log-ratio of densities over all ratios of scales and shifts is epsilon."""
    beta, scale = smooth.calibrate(epsilon, 0.0, noise="student-t", beta=share * epsilon)
    assert largest_loss(beta, 1 / scale) <= epsilon * (1 + 1e-9)
    assert largest_loss(beta, 1 / (0.999 * scale)) > epsilon


def largest_loss(beta, x):
    """The critical points of log t(z) - log t((z - shift)/ratio)/ratio are roots of a quadratic."""
    worst = -math.inf
    for i in range(-10, 11):
        r = math.exp(beta * i / 10)
        for share in (0.5, 0.9, 1.0):
            d = x * min(r, 1) * share
            # d/dz: z (3 r^2 + (z - d)^2) = (z - d) (3 + z^2)
            for z in np.roots([-d, d * d + 3 * r * r - 3, 3 * d]):
                loss = -2 * np.log1p(z.real**2 / 3) + 2 * np.log1p(((z.real - d) / r) ** 2 / 3) + math.log(r)
                worst = max(worst, loss)
    return worst


def test_table_of_the_largest_beta():
    """Mechanisms-a 3.1."""
    deltas = (1e-3, 1e-6, 1e-9)
    found = [smooth.laplace_beta_max(1.0, delta, 0.5) for delta in deltas]
    np.testing.assert_allclose(found, [0.1424, 0.0530, 0.0316], atol=5e-5)
    gains = {
        e: [smooth.laplace_beta_max(e, d, 0.5) * 2 * math.log(1 / d) / e for d in deltas] for e in (0.1, 1, 5, 10, 20)
    }
    table = {0.1: [4.0, 1.9, 1.5], 1: [1.97, 1.46, 1.31], 5: [1.24, 1.17, 1.14], 10: [0.98, 1.03, 1.03]}
    for epsilon, row in (table | {20: [0.74, 0.86, 0.91]}).items():
        np.testing.assert_allclose(gains[epsilon], row, atol=0.05 if epsilon == 0.1 else 0.011)


def test_table_of_the_published_constants():
    """Mechanisms-a 3.2: divergence / delta, and where it reaches 1."""
    table = {
        0.3: [0.009, 0.11, 0.80, 1.13, 2.1, 2.6, 3.2, 3.3],
        0.1: [0.004, 0.05, 0.39, 0.57, 1.4, 2.3, 4.8, 7.2],
        1e-2: [0.002, 0.026, 0.20, 0.31, 0.86, 1.5, 4.4, 10],
        1e-3: [0.0014, 0.017, 0.14, 0.21, 0.64, 1.2, 4.2, 11],
        1e-6: [0.0007, 0.0085, 0.07, 0.11, 0.36, 0.69, 3.0, 11],
        1e-8: [0.0005, 0.0064, 0.05, 0.08, 0.27, 0.54, 2.5, 9.3],
    }
    for delta, row in table.items():
        regions = [smooth.valid_region(epsilon, delta) for epsilon in (0.1, 1, 4, 5, 8, 10, 15, 20)]
        np.testing.assert_allclose([region.ratio for region in regions], row, rtol=0.13)
        assert [region.holds for region in regions] == [ratio <= 1 for ratio in row]
    ends = {0.3: 4.6, 0.1: 6.7, 1e-2: 8.5, 1e-3: 9.4, 1e-4: 10.1, 1e-6: 11.2, 1e-8: 12.0, 1e-12: 13.1}
    for delta, end in ends.items():
        assert smooth.valid_region(1.0, delta).largest_epsilon == pytest.approx(end, abs=0.07)


def test_the_published_ratio_is_the_exact_divergence():
    for epsilon, delta in ((1.0, 1e-3), (9.0, 1e-3), (20.0, 1e-2), (3.0, 0.3)):
        region = smooth.valid_region(epsilon, delta)
        exact = largest_divergence(epsilon, region.beta, 1 / region.scale) / delta
        assert region.ratio == pytest.approx(float(exact), rel=1e-8)


def test_defaults():
    grid = dpf.Grid(0, 100, step=1)
    for statistic, kappa, share in ((Median(), 0.5, 0.236), (RankSum(2, 900), 0.75, 0.05)):
        mechanism = dpf.SmoothSensitivity(statistic, grid=grid, epsilon=1.0, delta=1e-6)
        assert mechanism.beta == smooth.laplace_beta_max(1.0, 1e-6, kappa)
        assert mechanism.scale == pytest.approx(1 / kappa, rel=1e-9)
        assert dpf.SmoothSensitivity(statistic, grid=grid, epsilon=1.0).beta == share
    assert smooth.calibrate(1.0, 0, noise="student-t")[1] == pytest.approx(1 / 0.590, rel=1e-3)
    assert smooth.calibrate(1.0, 0, noise="student-t", beta=0.05)[1] == pytest.approx(1 / 0.847, rel=1e-3)


# Laws


@every("scale", [1e-70, 1e-3, 0.3, 0.577, 3.7, 1e3, 2.0**20 / 3, 2.0**50])
@every("kind", [RoundedLaplace, RoundedStudent3])
def test_log_probabilities_are_right_far_out(kind, scale):
    """To 1e-13 absolute where losses are compared, to rounding where they are large."""
    z = np.unique(np.concatenate([np.arange(1, 30), 2 ** np.arange(0, 51, 7)])).astype(float)
    pmf, tail = kind(scale).logpmf(np.append(z, 0.0)), kind(scale).log_tail(z)
    with mp.workdps(400):
        s = mpf(scale)
        for k, log_p, log_tail in zip(z, pmf, tail, strict=False):
            if kind is RoundedLaplace:
                exact = (mpf("0.5") - mpf(k)) / s - mp.log(2)
                cell = exact + mp.log(-mp.expm1(-1 / s))
            else:
                over = [student_tail(mpf(k) + d, s) / 2 for d in (-mpf("0.5"), mpf("0.5"))]
                exact, cell = mp.log(over[0]), mp.log(over[0] - over[1])
            assert abs(exact - mpf(float(log_tail))) <= 1e-13 + 4e-16 * abs(exact)
            assert abs(cell - mpf(float(log_p))) <= 1e-13 + 4e-16 * abs(cell)
        zero = -mp.expm1(-1 / (2 * s)) if kind is RoundedLaplace else 1 - student_tail(mpf("0.5"), s)
        assert abs(mp.log(zero) - mpf(float(pmf[-1]))) <= 1e-13


def student_tail(t, s):
    c = t / (s * mp.sqrt(3))
    return 1 - 2 / mp.pi * (mp.atan(c) + c / (1 + c * c))


@every("kind", [RoundedLaplace, RoundedStudent3, RoundedGaussian])
@every(("center", "last"), [(0, 20), (20, 20), (7, 20), (1, 1)])
@every("scale", [0.2, 3.0, 400.0])
def test_clamped_law(kind, center, last, scale):
    grid = dpf.Grid(0, last, step=1)
    law = ClampedNoise(kind(scale), center=center, last=last, decode=grid.decode)
    k = np.arange(last + 1)
    assert math.fsum(law.pmf(k)) == pytest.approx(1, abs=1e-13)
    np.testing.assert_allclose(law.cdf(k), np.cumsum(law.pmf(k)), atol=1e-13)
    assert law.pmf([-1, last + 1]).tolist() == [0, 0]
    assert law.cdf([-1, last + 1]).tolist() == [0, 1]
    assert law.support == (0, last)
    sample = law.sample(60_000, rng=PCG64(5))
    counts = np.bincount(sample, minlength=last + 1)
    assert not chi_square_rejects(counts, law.pmf(k))
    if last == 20 and scale == 3.0:
        for factor in (0.9, 1.1):
            other = ClampedNoise(kind(factor * scale), center=center, last=last, decode=grid.decode)
            assert chi_square_rejects(counts, other.pmf(k))
    assert law.value(law.sample(rng=PCG64(1))) in k


def test_saturated_noise_is_clamped():
    law = ClampedNoise(RoundedStudent3(2.0**56), center=2**51, last=2**52 - 1, decode=float)
    sample = law.sample(50, rng=PCG64(1))
    assert set(np.unique(sample)) >= {0, 2**52 - 1}
    assert sample.min() >= 0
    assert sample.max() <= 2**52 - 1


# The mechanism


GRID = dpf.Grid(0, 12, step=1)
NOISES = [(0.0, "student-t"), (1e-2, "laplace"), (1e-6, "laplace")]


@every("epsilon", [0.1, 1.0, 4.0])
@every("delta, noise", NOISES)
@every("q", [0.0, 0.5])
def test_the_audit_certifies(q, delta, noise, epsilon):
    mechanism = dpf.SmoothSensitivity(Quantile(q), grid=GRID, epsilon=epsilon, delta=delta)
    assert mechanism.noise == noise
    assert audit.verify(mechanism, n=3, values=5, ordered=False).holds


@pytest.mark.parametrize("n", [1, 3])
@every(("delta", "noise"), NOISES)
@every("statistic", [s for s in one_of_each(RANK_CASES) if has_gaps(s)], ids=str)
def test_the_audit_certifies_every_statistic(statistic, delta, noise, n):
    mechanism = dpf.SmoothSensitivity(statistic, grid=dpf.Grid(0, 6, step=1), epsilon=1.0, delta=delta, noise=noise)
    assert audit.verify(mechanism, n=n, values=4, ordered=False).holds


@every("n", [1, 2, 4])
@every("delta, noise", NOISES)
def test_the_audit_certifies_few_records_and_fine_values(delta, noise, n):
    mechanism = dpf.SmoothSensitivity(Median(), grid=dpf.Grid(0, 6, step=1), epsilon=2.0, delta=delta, noise=noise)
    assert audit.verify(mechanism, n=n, values=7 if n < 4 else 4, ordered=False).holds


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-2), (4.0, 1e-6), (8.0, 1e-2)])
def test_the_audit_certifies_the_published_estimator_where_it_is_offered(epsilon, delta):
    mechanism = dpf.SmoothSensitivity.as_published(Median(), grid=GRID, epsilon=epsilon, delta=delta)
    assert mechanism.beta == epsilon / (2 * math.log(1 / delta))
    assert mechanism.scale == 2 / epsilon
    assert audit.verify(mechanism, n=3, values=4, ordered=False).holds


def with_constants(mechanism, beta, scale):
    object.__setattr__(mechanism, "beta", beta)
    object.__setattr__(mechanism, "scale", scale)
    return mechanism


def test_the_audit_rejects_the_published_constants_beyond_their_region():
    """Epsilon 20, delta 0.01: two records on nine points are enough."""
    parameters = {"grid": dpf.Grid(0, 8, step=1), "epsilon": 20.0, "delta": 0.01}
    assert audit.verify(dpf.SmoothSensitivity(Median(), **parameters), n=2, values=9, ordered=False).holds
    tight = dpf.SmoothSensitivity(Median(), **parameters)
    certificate = audit.verify(with_constants(tight, 20 / (2 * math.log(100)), 2 / 20), n=2, values=9)
    assert not certificate.holds
    assert certificate.delta > 5 * 0.01
    with pytest.raises(ValueError, match=r"not private at epsilon=20.0, delta=0.01.*hold up to epsilon=8.5"):
        dpf.SmoothSensitivity.as_published(Median(), grid=GRID, epsilon=20.0, delta=0.01)


def test_the_audit_rejects_a_bound_padded_with_the_data_s_own_extremes():
    @dataclasses.dataclass(frozen=True, repr=False)
    class Padded(dpf.SmoothSensitivity):
        def law(self, x, *, workers=1):
            law = super().law(x)
            law.noise = type(law.noise)(self.scale * padded_bound(self.grid.encode(x).tolist(), 2, self.beta))
            return law

    for delta in (0.0, 1e-2):
        assert not audit.verify(
            Padded(Median(), grid=GRID, epsilon=1.0, delta=delta), n=3, values=4, ordered=False
        ).holds


class WorstCase:
    """One record, two values: bounds e**beta and 1, in units, and a statistic that moves by the smaller of the two."""

    def __init__(self, noise, beta, scale, privacy, unit=1, size=41):
        self.noise, self.beta, self.scale, self.privacy, self.unit = noise, beta, scale, privacy, unit
        self.grid = dpf.Grid(0, size - 1, step=1)

    def law(self, x):
        bound, center = (math.exp(self.beta), 0) if x[0] == 0 else (1.0, self.unit)
        middle = (self.grid.size - 1) // 2
        noise = self.noise(self.scale * self.unit * bound)
        return ClampedNoise(noise, center=middle + center, last=self.grid.size - 1, decode=self.grid.decode)


def test_the_audit_rejects_discrete_laplace_with_the_delta_of_the_continuous():
    """Epsilon 4, delta 1e-3, bounds from 1 step: rounded Laplace holds, discrete Laplace does not."""
    epsilon, delta = 4.0, 1e-3
    privacy = dpf.Privacy(epsilon, delta)
    found = []
    for kappa in np.linspace(0.2, 0.9, 15):
        beta, scale = smooth.calibrate(epsilon, delta, beta=smooth.laplace_beta_max(epsilon, delta, kappa))
        assert audit.verify(WorstCase(RoundedLaplace, beta, scale, privacy), n=1, values=2).holds
        found.append(audit.verify(WorstCase(DiscreteLaplace, beta, scale, privacy), n=1, values=2))
    worst = max(found, key=lambda certificate: certificate.delta)
    assert not worst.holds
    assert worst.delta > 1.1 * delta


@pytest.mark.parametrize(("delta", "noise"), [(0.0, RoundedStudent3), (1e-3, RoundedLaplace)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_audit_rejects_nine_tenths_of_the_scale(delta, noise, epsilon):
    """The calibration is tight: on a fine grid a tenth less noise is not private, the noise itself is."""
    name = "laplace" if delta else "student-t"
    beta, scale = smooth.calibrate(epsilon, delta, noise=name)
    for factor, holds in ((1.0, True), (0.9, False)):
        mechanism = WorstCase(noise, beta, factor * scale, dpf.Privacy(epsilon, delta), unit=500, size=2**17)
        assert audit.verify(mechanism, n=1, values=2).holds == holds


@every("epsilon", [1e-6, 1.0, 50.0])
@every("delta", [0.0, 1e-6])
@every("data", [[3.0], [3.0, 9.0], [5.0] * 9, [0.0] * 4, [100.0] * 4, [np.nan, np.inf, -np.inf]])
@every("grid", [dpf.Grid(0, 100), dpf.Grid(0, 100, step=1), dpf.Grid(0, 1, step=1)])
def test_degenerate_data_and_budgets(data, delta, epsilon, grid):
    mechanism = dpf.SmoothSensitivity(Median(), grid=grid, epsilon=epsilon, delta=delta)
    values = mechanism.release(data, size=50, rng=PCG64(1))
    assert ((values >= grid.lower) & (values <= grid.upper)).all()
    assert (values % grid.step == 0).all()
    assert (
        mechanism(data, rng=PCG64(1)) in (mechanism.release(data, size=1, rng=None), *grid.decode([0]), *values) or True
    )


def test_a_release_is_the_law():
    mechanism = dpf.SmoothSensitivity(Median(), grid=GRID, epsilon=1.0, delta=1e-2)
    data = [3, 4, 5, 5, 5, 6, 6, 7, 9]
    law = mechanism.law(data)
    assert law.center == 5
    counts = np.bincount(mechanism.release(data, size=100_000, rng=PCG64(3)).astype(int), minlength=13)
    assert not chi_square_rejects(counts, law.pmf(np.arange(13)))
    assert mechanism(data, rng=PCG64(4)) == law.value(law.sample(rng=PCG64(4)))
    assert mechanism(np.array(data)[::-1], rng=PCG64(4), workers=2) == mechanism(data, rng=PCG64(4))


def test_frozen_picklable_hashable():
    mechanism = dpf.SmoothSensitivity(Median(), grid=GRID, epsilon=1.0, delta=1e-2)
    published = dpf.SmoothSensitivity.as_published(Median(), grid=GRID, epsilon=1.0, delta=1e-2)
    for m in (mechanism, published):
        copy = pickle.loads(pickle.dumps(m))
        assert copy == m
        assert hash(copy) == hash(m)
        assert copy.scale == m.scale
    assert mechanism != published
    assert mechanism == dpf.SmoothSensitivity(Median(), grid=GRID, epsilon=1, delta=1e-2, noise="laplace")
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.beta = 1.0
    assert mechanism.privacy == dpf.Privacy(1.0, 1e-2)


@every(
    "parameters, error, message",
    [
        ({"epsilon": 0.0}, ValueError, "epsilon must be positive"),
        ({"epsilon": 1.0, "delta": 1.0}, ValueError, "delta must be"),
        ({"epsilon": 1.0, "delta": 1e-6, "noise": "student-t"}, ValueError, "delta must be 0"),
        ({"epsilon": 1.0, "noise": "laplace"}, ValueError, "delta must be positive"),
        ({"epsilon": 1.0, "noise": "cauchy"}, ValueError, "noise must be"),
        ({"epsilon": 1.0, "beta": 1e-12}, ValueError, "beta must be at least"),
        ({"epsilon": 1.0, "beta": 0.34}, ValueError, "too large"),
        ({"epsilon": 1.0, "delta": 1e-6, "beta": 0.5}, ValueError, "too large"),
        ({"epsilon": 1.0, "delta": 1e-6, "beta": 2.0}, ValueError, "too large"),
        ({"epsilon": 1.0, "beta": math.nan}, ValueError, "beta must be finite"),
        ({"epsilon": 1e-10}, ValueError, "beta must be at least"),
        ({"epsilon": 1e-6, "grid": dpf.Grid(0, 2**51, step=1)}, ValueError, "too small for a grid"),
        ({"epsilon": 1.0, "grid": (0, 1)}, TypeError, "Grid"),
        ({"epsilon": 1.0, "statistic": "median"}, TypeError, "statistic"),
    ],
)
def test_parameters_are_checked_before_data(parameters, error, message):
    with pytest.raises(error, match=message):
        dpf.SmoothSensitivity(**({"statistic": Median(), "grid": GRID} | parameters))


@pytest.mark.parametrize("statistic", [WinsorizedMean(0.1), TrimmedMean(0.1)])
def test_too_many_records_for_the_grid_are_refused_before_they_are_read(statistic):
    mechanism = dpf.SmoothSensitivity(statistic, grid=dpf.Grid(0, 2**52 - 1, step=1), epsilon=1.0, delta=1e-6)
    told = set()
    for x in (np.zeros(5000), np.full(5000, np.inf), np.linspace(0, 2.0**52, 5000), dpf.Chunks([np.zeros(5000)])):
        with pytest.raises(ValueError, match="records times grid points must be below") as error:
            mechanism(x)
        told.add(str(error.value))
    assert len(told) == 1


def test_other_errors():
    mechanism = dpf.SmoothSensitivity(Median(), grid=GRID, epsilon=1.0)
    with pytest.raises(ValueError, match="x is empty"):
        mechanism([])
    with pytest.raises(ValueError, match="kappa"):
        smooth.laplace_beta_max(1.0, 1e-6, 1.0)
    with pytest.raises(ValueError, match="1/e"):
        smooth.valid_region(1.0, 0.5)
    with pytest.raises(ValueError, match="beta"):
        smooth.smooth_sensitivity(Median(), [1.0], grid=GRID, beta=0.0)

    with pytest.raises(TypeError, match="Huber has no gap form"):
        dpf.SmoothSensitivity(Huber(1.0), grid=GRID, epsilon=1.0)
    with pytest.raises(TypeError, match="not Sum"):
        dpf.SmoothSensitivity(Sum(), grid=GRID, epsilon=1.0)


def test_median_and_quantile_by_name():
    x = np.random.default_rng(1).normal(size=1001)
    for delta in (0.0, 1e-6):
        options = {"epsilon": 1.0, "delta": delta, "method": "smooth-sensitivity"}
        mechanism = dpf.SmoothSensitivity(Quantile(0.5), grid=dpf.Grid(-8, 8), epsilon=1.0, delta=delta)
        expected = mechanism(x, rng=PCG64(1))
        assert dpf.median(x, bounds=(-8, 8), rng=PCG64(1), **options) == expected
        assert dpf.quantile(x, 0.5, grid=dpf.Grid(-8, 8), rng=PCG64(1), **options) == expected
        trimmed = dpf.SmoothSensitivity(TrimmedMean(0.1), grid=dpf.Grid(-8, 8), epsilon=1.0, delta=delta)
        assert dpf.trimmed_mean(x, 0.1, bounds=(-8, 8), rng=PCG64(1), **options) == trimmed(x, rng=PCG64(1))
        assert abs(trimmed(x, rng=PCG64(1))) < 0.5
    with pytest.raises(ValueError, match="delta must be 0 for method='inverse-sensitivity'"):
        dpf.median(x, bounds=(-8, 8), epsilon=1.0, delta=1e-6, method="inverse-sensitivity")


def test_command_line(tmp_path, capsys):
    from dpfast.cli import main

    path = tmp_path / "x.csv"
    path.write_text("x\n" + "\n".join(map(str, range(101))))
    arguments = ["median", str(path), "--bounds", "0", "100", "--step", "1", "--epsilon", "1", "--json", "--seed", "1"]
    assert main([*arguments, "--method", "smooth-sensitivity", "--delta", "1e-6"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["epsilon"], report["delta"], report["n"]) == (1.0, 1e-6, 101)
    assert report["value"] in range(101)
    assert main([*arguments, "--delta", "1e-6"]) == 2
    assert "delta must be 0" in capsys.readouterr().err


@pytest.mark.slow
def test_error_of_the_median():
    """Mechanisms-a 1: N(0, 1) in [-20, 20], about 2**20 points, n = 1000, epsilon 1, delta 1e-6; E|error| exactly."""
    grid = dpf.Grid(-20, 20, step=2.0**-15)
    x = np.random.default_rng(1).normal(size=1000)
    parameters = {"statistic": Median(), "grid": grid, "epsilon": 1.0}
    published = dpf.SmoothSensitivity.as_published(**parameters, delta=1e-6)
    tight = dpf.SmoothSensitivity(**parameters, delta=1e-6)
    student = dpf.SmoothSensitivity(**parameters)
    inverse = dpf.InverseSensitivity(**parameters)
    assert 0.055 < mean_error(published, x) < 0.075
    assert mean_error(tight, x) < 0.050
    assert mean_error(student, x) < 0.0125
    assert mean_error(inverse, x) < 0.0060


def mean_error(mechanism, x):
    law = mechanism.law(x)
    k = np.arange(law.support[1] + 1)
    center = np.sort(mechanism.grid.encode(x))[len(x) // 2 - 1]
    return float((law.pmf(k) * np.abs(k - center)).sum()) * mechanism.grid.step
