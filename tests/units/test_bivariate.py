"""M-estimators by a psi of record and parameter: laws against enumeration, draws, extremes, the right constant."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64
from numpy.testing import assert_allclose
from scipy.stats import norm

import dpfast as dpf
from dpfast import audit
from dpfast.mechanisms.score_sums import RecordSums
from dpfast.prior import Cauchy, PointWeights
from dpfast.psi import Bivariate, Huber
from tests.cases import every
from tests.reference import scores as reference
from tests.statistical import chi_square_rejects


def huber(x, theta):
    return min(max(theta - x, -2.0), 2.0)


def scaled(x, theta):
    """Its slope and its range depend on the record: no function of theta - x."""
    return (1 + x / 8) * math.tanh((theta - 0.7 * x) / 3)


def sign(x, theta):
    return 1.0 if theta >= x else -1.0


def mechanism(psi, size=9, released=None, prior="uniform", epsilon=1.0):
    own = None if released is None else dpf.Grid(-4, released - 5, step=1)
    return dpf.MEstimator(Bivariate(psi, own), grid=dpf.Grid(0, size - 1, step=1), epsilon=epsilon, prior=prior)


def check_law(m, codes):
    """pmf, cdf and the constant against enumeration, record by record."""
    table, last = m.psi.table(m.grid), m.released_grid.size - 1
    psi = reference.bilinear(table)
    if m.grid.size * last < 5000:
        spread = reference.spread_of_two(psi, m.grid.size, last + 1)
        assert spread <= m.sensitivity <= spread * (1 if table.record_gap == table.parameter_gap == 1 else 1.1)
    magnitudes = [abs(sum(psi(x, theta) for x in codes)) for theta in range(last + 1)]
    prior = reference.uniform
    if isinstance(m.prior, PointWeights):
        prior = lambda theta: Fraction(m.prior.weights[theta])  # noqa: E731
    elif m.prior != "uniform":
        prior = reference.cauchy(*m.prior.codes(m.released_grid))
    rate = Fraction(m.epsilon) / (2 * m.sensitivity)
    expected = [float(p) for p in reference.law_of(magnitudes, rate, prior, m.reach(len(codes)))]
    law, points = m.law(m.grid.decode(codes)), np.arange(last + 1)
    assert law.support == (0, last)
    assert_allclose(law.pmf(points), expected, rtol=1e-11, atol=1e-300)
    assert_allclose(law.cdf(points), np.cumsum(expected), rtol=0, atol=1e-12)
    assert law.logpmf([-1, last + 1]).tolist() == [-np.inf, -np.inf]
    return law, expected


@every("prior", ["uniform", Cauchy(3.0, 1.0), Cauchy(-50.0, 4.0), PointWeights([1, 5, 2, 2, 9, 1, 1, 1, 30])])
@every("psi", [huber, scaled, sign])
def test_the_law_is_that_of_enumeration(psi, prior):
    for codes in ([0], [8, 8, 8], [0, 8], [1, 1, 4, 7], list(range(9)) * 30):
        check_law(mechanism(psi, prior=prior), np.array(codes))


@every("size, released", [(2, 600), (600, 9), (300, 258)])
@every("prior", ["uniform", Cauchy(20.0, 5.0)])
@every("epsilon", [0.01, 20.0])
def test_the_law_between_the_points_of_a_table(size, released, prior, epsilon):
    check_law(mechanism(scaled, size, released, prior, epsilon), np.random.default_rng(size).integers(0, size, 20))


def test_on_a_grid_of_few_points_it_is_the_psi_of_a_difference():
    grid, points = dpf.Grid(0, 200, step=1), np.arange(201)
    x = np.random.default_rng(1).normal(90, 30, 300)
    two = dpf.MEstimator(Bivariate(huber), grid=grid, epsilon=0.5).law(x)
    one = dpf.MEstimator(Huber(2.0), grid=grid, epsilon=0.5).law(x)
    assert_allclose(two.pmf(points), one.pmf(points), rtol=1e-9)


def test_sums_are_exact_for_large_codes_and_many_records():
    grid = dpf.Grid(0, 2.0**52 - 1, step=1)
    table = Bivariate(lambda x, theta: 1.0 if theta >= x else -0.3).table(grid)
    psi = reference.bilinear(table)
    codes = np.random.default_rng(1).integers(0, grid.size, 3000)
    codes[:2] = 0, grid.size - 1
    sums = RecordSums(codes, table)
    for theta in (0, 1, 2**44, 2**50 + 12345, grid.size - 1):
        assert sums.at(theta) == sum(psi(x, theta) for x in codes.tolist())


@every("psi", [huber, scaled, sign])
@every("prior", ["uniform", Cauchy(3.0, 1.0)])
def test_the_audit_certifies(psi, prior):
    assert audit.verify(mechanism(psi, prior=prior), n=3, values=4).holds
    assert audit.verify(mechanism(psi, 5, 12), n=2, values=5).holds


class Published(dpf.MEstimator):
    """Wrong: the exponent of proposition 3, epsilon / W."""

    @property
    def sensitivity(self):
        return self._spread // 2


class OfOneRecord(dpf.MEstimator):
    """Wrong: the range of psi over theta for one record, in place of the range over records for one theta."""

    @property
    def sensitivity(self):
        table = self.psi.table(self.grid)
        return int(np.ptp(table.values, axis=1).min()) * table.record_gap * table.parameter_gap


def test_the_audit_rejects_wrong_constants():
    """Positive controls."""
    far = Bivariate(lambda x, theta: (-1.0 if x > 30 else 1.0) + theta / 1000)
    wide = {"grid": dpf.Grid(0, 60, step=1), "epsilon": 1.0}
    every_pair = {"n": 2, "values": 21, "ordered": False}
    narrow = {"grid": dpf.Grid(0, 20, step=1), "epsilon": 1.0}
    assert audit.verify(dpf.MEstimator(Bivariate(sign), **narrow), **every_pair).holds
    assert not audit.verify(Published(Bivariate(sign), **narrow), **every_pair).holds
    assert audit.verify(dpf.MEstimator(far, **wide), n=2, values=3).holds
    assert not audit.verify(OfOneRecord(far, **wide), n=2, values=3).holds


@every("released", [9, 700])
@every("prior", ["uniform", Cauchy(3.0, 1.0)])
def test_draws(released, prior):
    m = mechanism(scaled, 9, released, prior, epsilon=3.0)
    law, expected = check_law(m, np.array([1, 1, 4, 7]))
    drawn = law.sample(5000, rng=PCG64(1))
    counts = np.bincount(drawn, minlength=released)
    assert not chi_square_rejects(counts, np.array(expected))
    for factor in (0.6, 1.6):
        other = mechanism(scaled, 9, released, prior, epsilon=3.0 * factor).law([1, 1, 4, 7])
        assert chi_square_rejects(counts, other.pmf(np.arange(released)))
    assert m([1, 1, 4, 7], rng=PCG64(3)) == law.value(law.sample(rng=PCG64(3)))


def test_a_parameter_on_another_scale_than_the_records():
    """The log-odds of a share, whose score is x - 1 / (1 + exp(-theta)), with its sign turned."""
    odds = Bivariate(lambda x, theta: 1 / (1 + math.exp(-theta)) - x, dpf.Grid(-6, 6))
    x = np.random.default_rng(1).random(20_000) < 0.9
    released = dpf.m_estimate(x, odds, bounds=(0, 1), epsilon=1.0, rng=PCG64(1))
    assert released == pytest.approx(math.log(x.mean() / (1 - x.mean())), abs=0.02)
    m = dpf.MEstimator(odds, grid=dpf.Grid(0, 1, step=1), epsilon=1.0)
    assert m.released_grid == odds.grid
    assert "psi <lambda> of two arguments, uniform prior, on" in repr(m)
    assert np.isin(m.law([1.0]).value([0, m.released_grid.size - 1]), [-6.0, 6.0]).all()
    grouped = dpf.by_group(m, x[:600].astype(float), labels=np.arange(600) % 2)
    assert all(-6 <= value <= 6 for value in np.ravel(grouped))


def test_predicted_errors_are_those_of_releases():
    m = dpf.MEstimator(Bivariate(scaled), grid=dpf.Grid(0, 20), epsilon=1.0)
    rng, n = np.random.default_rng(1), 300
    assumed = norm(8, 2)
    target = m.law(assumed.ppf((np.arange(2**14) + 0.5) / 2**14))
    center = target.value(int(np.argmax(target.pmf(np.arange(0, m.grid.size, 2**20)))) * 2**20)
    errors = [abs(m(rng.normal(8, 2, n), rng=rng) - center) for _ in range(400)]
    assert m.error(n, distribution=assumed) == pytest.approx(np.quantile(errors, 0.95), rel=0.2)


@every("missing", [None, 3.0, "half"])
def test_streams_and_missing_records(missing):
    m = dpf.MEstimator(Bivariate(scaled), grid=dpf.Grid(0, 20, missing=missing), epsilon=1.0)
    x = np.array([1.0, np.nan, 7.0, 3.0, np.nan, 30.0])
    before = x.copy()
    assert m(x, rng=PCG64(1)) == m(dpf.Chunks([x[:2], x[2:]]), rng=PCG64(1))
    assert np.array_equal(x, before, equal_nan=True)


@every("prior", ["uniform", Cauchy(0.0, 1e3)])
@every("epsilon", [1e-6, 1.0, 1e6])
def test_extreme_grids_and_epsilons(epsilon, prior):
    grid = dpf.Grid(-(2.0**51), 2.0**51 - 1, step=1)
    m = dpf.MEstimator(
        Bivariate(lambda x, theta: math.atan((theta - x) / 1e14)), grid=grid, epsilon=epsilon, prior=prior
    )
    for x in (np.zeros(3), np.full(5, 2.0**51), np.array([-(2.0**51), 2.0**51])):
        law = m.law(x)
        assert grid.lower <= m(x, rng=PCG64(1)) <= grid.upper
        assert law.cdf([law.support[1]]).tolist() == [1.0]
        assert np.isfinite(law.logpmf([0, 2**51, law.support[1]])).all()


@every(
    "function, options, error, told",
    [
        (lambda x: x, {}, TypeError, "psi must be a function of two arguments, the record x and the parameter theta"),
        (3, {}, TypeError, "function must be callable"),
        (huber, {"grid": (0, 1)}, TypeError, "Grid"),
        (lambda x, theta: theta * (x - 1), {}, ValueError, "psi must not decrease in theta, .* from 0.0 to 1.0 for"),
        (lambda x, theta: x + 1.0, {}, ValueError, "psi must be at most 0 for the least theta"),
        (lambda x, theta: -x - 1.0, {}, ValueError, "at least 0 for the largest; it goes from -9.0 to -1.0"),
        (lambda x, theta: theta - 4, {}, ValueError, "psi must depend on the record"),
        (lambda x, theta: 0.0, {}, ValueError, "psi must depend on the record"),
        (lambda x, theta: math.nan, {}, ValueError, "each value of psi must be finite"),
        (lambda x, theta: "a", {}, TypeError, "each value of psi must be a real number"),
    ],
)
def test_a_psi_is_checked_when_a_mechanism_is_built(function, options, error, told):
    with pytest.raises(error, match=told):
        dpf.MEstimator(Bivariate(function, **options), grid=dpf.Grid(0, 8, step=1), epsilon=1.0)


def test_values_of_any_magnitude():
    for unit in (5e-324, 1e-300, 1.7e308):
        check_law(mechanism(lambda x, theta, unit=unit: unit if theta >= x else -unit), np.array([1, 5]))


def test_it_is_a_parameter():
    m = mechanism(scaled, 9, 12)
    assert pickle.loads(pickle.dumps(m)) == m
    assert hash(m) == hash(mechanism(scaled, 9, 12))
    assert m != mechanism(scaled, 9)
    with pytest.raises(TypeError, match=r"of one argument, .* use dpfast.psi.Bivariate"):
        dpf.MEstimator(scaled, grid=m.grid, epsilon=1.0)
    with pytest.raises(ValueError, match="a weight for each of the 12 points"):
        mechanism(scaled, 9, 12, PointWeights([1, 2, 3]))
