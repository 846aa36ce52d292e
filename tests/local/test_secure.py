"""Secure aggregation: laws of the shares and of their sums, guarantees with dropouts, reports modulo 2**bits."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.random import PCG64
from scipy.stats import chisquare

import dpfast as dpf
from dpfast import Grid
from dpfast._kernels import _balls, _samplers
from dpfast.domains import Ball, Box
from dpfast.laws.shares import GaussianShare, LaplaceShare
from dpfast.local import SecureSum
from dpfast.local.secure import _tail
from tests.cases import every

LEAST = 1e-9  # p-values of simulations


# ---- slow twins ----


def binomial_series(size, q, terms):
    """P(k) of a negative binomial number of this size, k < terms."""
    masses = [(1 - q) ** size]
    for k in range(1, terms):
        masses.append(masses[-1] * q * (k - 1 + size) / k)
    return masses


def difference(masses):
    """The law of the difference of two such numbers, on -half..half."""
    half = len(masses) // 2
    return [
        mp.fsum(masses[k] * masses[k + abs(z)] for k in range(len(masses) - abs(z))) for z in range(-half, half + 1)
    ]


def discrete_gaussian(variance, reach):
    masses = [mp.exp(-(mpf(z) ** 2) / (2 * variance)) for z in range(-reach, reach + 1)]
    total = mp.fsum(masses)
    return [mass / total for mass in masses]


def convolved(masses, times):
    """The law of the sum of `times` independent numbers; exact arithmetic of the given masses."""
    result = masses
    for _ in range(times - 1):
        out = [mpf(0)] * (len(result) + len(masses) - 1)
        for i, x in enumerate(result):
            for j, y in enumerate(masses):
                out[i + j] += x * y
        result = out
    return result


def p_value(draws, law, least=20):
    """Of draws against P(z), z in -half..half, with cells of at least `least` expected draws and one for the rest."""
    half = len(law) // 2
    expected = np.array([float(x) for x in law]) * draws.size
    found = np.array([np.count_nonzero(draws == z) for z in range(-half, half + 1)])
    cells = expected >= least
    found, expected = (
        [*found[cells], draws.size - found[cells].sum()],
        [*expected[cells], draws.size - expected[cells].sum()],
    )
    if expected[-1] < 1e-9:
        found, expected = found[:-1], expected[:-1]
    return chisquare(found, np.array(expected) * sum(found) / sum(expected)).pvalue


# ---- laws of shares ----


class TestLaplaceShare:
    @pytest.mark.parametrize(("m", "scale"), [(2, 1.5), (3, 4), (5, 0.5)])
    def test_m_shares_are_discrete_laplace(self, m, scale):
        with mp.workdps(40):
            q = mp.exp(-1 / mpf(scale))
            for shares, right in ((m, True), (m + 1, False)):
                total = convolved(binomial_series(1 / mpf(shares), q, 40), m)[:40]
                off = max(abs(mass / ((1 - q) * q**k) - 1) for k, mass in enumerate(total))
                assert (off < mpf(10) ** -30) == right

    @pytest.mark.parametrize(
        ("m", "scale"), [(3, Fraction(2)), (1, Fraction(5, 2)), (2, Fraction(1, 3)), (40, Fraction(30))]
    )
    def test_draws(self, m, scale):
        draws = np.empty(8_000, np.int64)
        LaplaceShare(scale, m).fill(PCG64(1), draws)
        q = mp.exp(-1 / mpf(scale.numerator) * scale.denominator)
        laws = [difference(binomial_series(1 / mpf(shares), q, max(40, int(14 * scale)))) for shares in (m, m + 1)]
        assert p_value(draws, laws[0]) > LEAST
        if m < 40:
            assert p_value(draws, laws[1]) < LEAST

    def test_poisson(self):
        words = iter(PCG64(2).random_raw(30_000).tolist())
        draws = np.array(
            [_balls.poisson(next(words), lambda: next(words), lambda: _balls.arb(3).sqrt()) for _ in range(20_000)]
        )
        law = [mp.exp(-mp.sqrt(3)) * mp.sqrt(3) ** k / mp.factorial(k) for k in range(15)]
        assert p_value(draws, [mpf(0)] * 14 + law) > LEAST

    def test_many_terms_are_drawn_in_parts(self):
        draws = np.empty(400, np.int64)
        LaplaceShare(Fraction(10**6), 1).fill(PCG64(3), draws)
        assert 0.7 < draws.std() / (math.sqrt(2) * 1e6) < 1.4


class TestGaussianShare:
    @pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(4), Fraction(50)])
    def test_draws(self, variance):
        draws = np.empty(40_000, np.int64)
        GaussianShare(variance).fill(PCG64(4), draws)
        reach = 8 * math.isqrt(math.ceil(variance)) + 6
        assert p_value(draws, discrete_gaussian(mpf(variance.numerator) / variance.denominator, reach)) > LEAST
        assert p_value(draws, discrete_gaussian(mpf(variance.numerator) / variance.denominator * 0.9, reach)) < LEAST

    @pytest.mark.kernel
    @pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(10**8), Fraction(2**70)])
    def test_doubles_and_balls_agree(self, variance):
        fast, slow = np.empty((2, 200), np.int64)
        _samplers.fill_discrete_gaussian(PCG64(5), variance, fast)
        _samplers.fill_discrete_gaussian(PCG64(5), variance, slow, exact=True)
        assert (fast == slow).all()

    @pytest.mark.parametrize(("m", "variance"), [(2, Fraction(1, 2)), (3, Fraction(1)), (4, Fraction(7, 10))])
    def test_sums_are_nearly_discrete_gaussian(self, m, variance):
        with mp.workdps(40):
            share = mpf(variance.numerator) / variance.denominator
            total = convolved(discrete_gaussian(share, 25), m)
            half = len(total) // 2
            law = discrete_gaussian(m * share, half)
            off = max(abs(mp.log(total[half + z] / law[half + z])) for z in range(-6, 7))
        bound = GaussianShare(variance).log_ratio_up(m)
        assert off <= bound <= 60 * off
        assert off > GaussianShare(2 * variance).log_ratio_up(m)  # a share of another variance
        assert GaussianShare(Fraction(1, 9)).log_ratio_up(m) == math.inf
        assert GaussianShare(variance).log_ratio_up(1) == 0.0


# ---- guarantees ----


def largest_loss(mechanism, honest):
    """The largest privacy loss of the sum of `honest` shares of one column with Laplace noise, when it moves by 1."""
    with mp.workdps(40):
        share = mechanism._shares[0]
        q = mp.exp(-mpf(share.scale.denominator) / share.scale.numerator)
        law = difference(binomial_series(mpf(honest) / share.shares, q, 160))
        half = len(law) // 2
        return max(mp.log(law[half + z] / law[half + z + 1]) for z in range(40))


class TestGuarantees:
    """T28: honest clients alone, as few as promised; noise for more of them is rejected."""

    @pytest.mark.parametrize(("n", "dropouts"), [(3, 1), (4, 0), (5, 3)])
    def test_laplace_with_dropouts(self, n, dropouts):
        """Two columns of counts change by 1; all honest clients are needed."""
        poll = SecureSum(3, n=n, epsilon=2.0, dropouts=dropouts)
        least = n - dropouts
        for honest in range(least, n + 1):
            assert 2 * largest_loss(poll, honest) <= 2.0 * (1 + mpf(10) ** -30)
        assert 2 * largest_loss(poll, least) > 1.999
        if least > 1:  # noise calibrated to more clients than there are
            assert 2 * largest_loss(poll, least - 1) > 2.01

    def test_gaussian_with_dropouts(self):
        poll = SecureSum(
            Box(Grid(0, 4, step=1)), n=6, epsilon=1.0, delta=1e-3, dropouts=2, dimension=1, noise="gaussian"
        )
        share = poll._shares[0].variance

        def delta(honest):
            with mp.workdps(30):
                shift = 4 * poll.multiplier
                reach = 9 * math.isqrt(int(share * honest)) + shift
                law = discrete_gaussian(mpf(share.numerator) / share.denominator * honest, reach)
                return mp.fsum(max(0, law[i] - mp.e * law[i + shift]) for i in range(len(law) - shift))

        assert 2e-4 < delta(4) <= 1e-3
        assert delta(6) < delta(4)
        assert delta(2) > 1e-3  # noise calibrated to more clients than there are
        assert poll._failure(poll.multiplier) <= Fraction(1e-3) / 2**20

    def test_scales(self):
        box = Box([Grid(0, 1, step=1), Grid(0, 10, step=1)])
        laplace = SecureSum(box, n=10, epsilon=1.0)
        assert [share.scale for share in laplace._shares] == [2, 20]
        gaussian = SecureSum(box, n=10, epsilon=1.0, delta=1e-6, noise="gaussian")
        rho = sum(width**2 / float(v) / 2 for width, v in zip((1, 10), gaussian._variances, strict=True))
        assert rho == pytest.approx(gaussian.rho, rel=1e-12)
        ball = SecureSum(Ball(1.0, step=2.0**-10), n=10, epsilon=1.0, delta=1e-6, dimension=3)
        assert 4 * 2**20 / (2 * float(ball._variances[0])) == pytest.approx(ball.rho, rel=1e-12)
        assert dpf.Privacy(rho=ball.rho).delta_up(1.0) <= 1e-6
        assert dpf.Privacy(rho=ball.rho * 1.001).delta_up(1.0) > 1e-6
        assert SecureSum(100, n=10, epsilon=1.0, delta=1e-6).noise == "laplace"
        assert SecureSum(Box(Grid(0, 1)), n=10, epsilon=1.0, delta=1e-6, dimension=50).noise == "gaussian"

    def test_multiplier(self):
        poll = SecureSum(3, n=10**6, epsilon=1.0, delta=1e-6, noise="gaussian")
        assert poll.multiplier > 1
        assert poll._failure(poll.multiplier // 2) > Fraction(1e-6) / 2**20 >= poll._failure(poll.multiplier)

    def test_guarantee_of_fewer_clients(self):
        gaussian = SecureSum(Ball(1.0), n=100, epsilon=1.0, delta=1e-6, dimension=2, dropouts=20)
        assert gaussian.privacy_of(40).rho == pytest.approx(2 * gaussian.rho)
        assert gaussian.privacy_of(80).delta_up(1.0) <= 1e-6
        counts = SecureSum(3, n=10, epsilon=1.0, delta=1e-6, dropouts=5, noise="gaussian")
        for honest in (1, 5, 10):
            ratios = [Fraction(share.log_ratio_up(honest)) for share in counts._shares]
            assert sum(ratios) <= Fraction(counts.privacy_of(honest).delta) <= 2 * sum(ratios)
        laplace = SecureSum(3, n=100, epsilon=1.0, dropouts=20)
        assert laplace.privacy_of(80) == laplace.privacy == dpf.Privacy(1.0)
        with pytest.raises(ValueError, match="honest must be at least 80"):
            laplace.privacy_of(79)
        with pytest.raises(ValueError, match="honest must be at most n"):
            laplace.privacy_of(101)

    def test_ledger(self):
        poll = SecureSum(Ball(1.0), n=5, epsilon=1.0, delta=1e-6, dimension=2)
        with dpf.Ledger(1.0, 1e-6) as ledger:
            with pytest.raises(dpf.BudgetError, match="one report is not private"):
                poll.report(np.zeros((1, 2)))
            with ledger.spend(poll):
                reports = poll.report(np.zeros((5, 2)))
        assert ledger.spent == dpf.Privacy(1.0, 1e-6)
        assert reports.shape == (5, 2)
        concentrated = dpf.Ledger(rho=poll.rho * 2, delta=1e-9)
        assert concentrated.affords(poll, times=2)
        assert not concentrated.affords(poll, times=3)


# ---- reports and sums ----

CASES = {
    "ball": (
        {"domain": Ball(2.0, center=1.0), "delta": 1e-6, "dimension": 3},
        lambda rng: 1 + rng.uniform(-1, 1, (60, 3)),
    ),
    "box": (
        {"domain": Box([Grid(-5, 5), Grid(0, 1), Grid(3, 4)])},
        lambda rng: rng.uniform((-5, 0, 3), (5, 1, 4), (60, 3)),
    ),
    "gaussian box": (
        {"domain": Box(Grid(-5, 5)), "dimension": 40, "delta": 1e-6},
        lambda rng: rng.uniform(-5, 5, (60, 40)),
    ),
    "categories": ({"domain": 4}, lambda rng: rng.integers(0, 4, 60)),
    "gaussian categories": ({"domain": 4, "delta": 1e-6, "noise": "gaussian"}, lambda rng: rng.integers(0, 4, 60)),
}


class TestReports:
    @every("name", CASES)
    def test_sums_of_those_who_report(self, name):
        options, draw = CASES[name]
        poll, rng = SecureSum(n=60, epsilon=20.0, dropouts=10, **options), np.random.default_rng(6)
        X = draw(rng)
        reports = poll.report(X, rng=rng)
        assert reports.dtype == np.uint64
        assert reports.shape == (60, poll.dimension)
        assert int(reports.max()) < 2**poll.bits
        for reported in (60, 51):
            total = poll.aggregate(reports[:reported])
            halves = np.stack([poll.aggregate(reports[:20]), poll.aggregate(reports[20:reported])])
            assert (poll.aggregate(halves) == total).all()
            rows = X[:reported] if X.ndim == 2 else np.eye(4)[X[:reported]]
            sums, means = poll.sums(total, reported=reported), poll.means(total, reported=reported)
            assert (np.abs(sums - rows.sum(axis=0)) <= 12 * poll.deviation + 0.01).all()
            assert np.abs(means * reported - sums).max() < 1e-6
        assert pickle.loads(pickle.dumps(poll)) == poll

    def test_noise_of_sums(self):
        """The deviation of estimates over repeated rounds, with a control."""
        poll, rng = SecureSum(2, n=20, epsilon=0.5, dropouts=5), np.random.default_rng(7)
        X = np.repeat([0, 1, 1, 1], 5)
        estimates = np.array([poll.sums(poll.aggregate(poll.report(X, rng=rng)), reported=20) for _ in range(400)])
        errors = estimates - [5, 15]
        assert np.abs(errors.mean(axis=0)).max() < 7 * poll.deviation[0] / 20
        ratio = errors.std() / poll.deviation[0]
        assert 0.8 < ratio < 1.25
        assert poll.deviation[0] / SecureSum(2, n=20, epsilon=0.5).deviation[0] == pytest.approx(math.sqrt(20 / 15))

    def test_a_report_has_the_same_type_for_any_record(self):
        poll = SecureSum(Ball(1.0), n=5, epsilon=1.0, delta=1e-6, dimension=2)
        for row in ([np.nan, 0], [np.inf, -np.inf], [1e308, 1e308], [0, 0]):
            report = poll.report([row])
            assert (report.dtype, report.shape) == (np.uint64, (1, 2))
        counts = SecureSum(3, n=5, epsilon=1.0)
        for value in (np.nan, 2, -1, 1e300, 0.5):
            assert counts.report([value]).shape == (1, 3)
        assert counts.report(np.array([], np.int64)).shape == (0, 3)
        with pytest.raises(ValueError, match="one-dimensional"):
            counts.report([[0, 1], [2, 0]])  # two answers of each client

    @pytest.mark.parametrize("share", [LaplaceShare(Fraction(3), 10), GaussianShare(Fraction(1, 2))])
    def test_range_of_the_noise(self, share):
        """P(|noise of n = 20 shares| > tail) <= 2**-40, summed in mpmath."""
        bound = _tail(share, 20, 1)
        with mp.workdps(40):
            if isinstance(share, LaplaceShare):
                masses = binomial_series(mpf(2), mp.exp(-mpf(1) / 3), 3 * bound)
                outside = 2 * mp.fsum(masses[bound:])
                assert 2 * mp.fsum(masses[bound // 3 :]) > mpf(2) ** -40
            else:
                law = discrete_gaussian(mpf(10), 3 * bound)
                outside = 2 * mp.fsum(law[4 * bound :])
                assert 2 * mp.fsum(law[3 * bound + bound // 2 :]) > mpf(2) ** -40
        assert outside <= mpf(2) ** -40

    @every(
        "options, error, message",
        [
            ({"domain": 1}, ValueError, "domain"),
            ({"domain": "x"}, TypeError, "domain"),
            ({"n": 0}, ValueError, "n must be"),
            ({"epsilon": 0}, ValueError, "epsilon"),
            ({"epsilon": 2000}, ValueError, "2\\*\\*10"),
            ({"dropouts": 9}, ValueError, "dropouts must be below n = 9"),
            ({"dropouts": -1}, ValueError, "dropouts"),
            ({"domain": Ball(1.0), "dimension": 2}, ValueError, "a ball needs Gaussian noise"),
            ({"domain": Ball(1.0), "delta": 1e-6}, TypeError, "dimension"),
            ({"noise": "gaussian"}, ValueError, "delta must be positive"),
            ({"noise": "cauchy"}, ValueError, "noise"),
            ({"domain": Box(Grid(0, 1, missing="drop")), "dimension": 2}, ValueError, "missing"),
            ({"domain": Box(Grid(0, 1, step=2.0**-40)), "dimension": 2, "epsilon": 2.0**-30}, ValueError, "bits"),
        ],
    )
    def test_bad_parameters(self, options, error, message):
        with pytest.raises(error, match=message):
            SecureSum(**{"domain": 3, "n": 9, "epsilon": 1.0, **options})

    def test_bad_reports(self):
        poll = SecureSum(3, n=9, epsilon=1.0)
        for reports in (np.zeros((2, 4), np.uint64), np.zeros((2, 3)), np.zeros(3, np.uint64)):
            with pytest.raises(ValueError, match="reports must be rows of 3"):
                poll.aggregate(reports)
        with pytest.raises(ValueError, match="total must be 3"):
            poll.sums(np.zeros(2, np.uint64), reported=2)
        for reported in (0, 10):
            with pytest.raises(ValueError, match="reported must be"):
                poll.means(np.zeros(3, np.uint64), reported=reported)
        with pytest.raises(ValueError, match="columns"):
            SecureSum(Ball(1.0), n=9, epsilon=1.0, delta=1e-6, dimension=2).report(np.zeros((1, 3)))
