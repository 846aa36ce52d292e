"""Second moments and covariances of rows: exact sums, sensitivities by enumeration, noise, post-processing."""

import itertools
import math
import pickle
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from numpy.random import PCG64
from scipy.stats import chi2, norm

import dpfast as dpf
from dpfast._kernels import _rows
from dpfast.domains import LIMB, Ball, Box
from dpfast.streaming import RowProducts
from tests.cases import every
from tests.reference import products
from tests.statistical import ALPHA, kolmogorov_rejects

RNG = np.random.default_rng(0)


def second_moments(radius=4.0, epsilon=1.0, delta=1e-3, **options):
    return dpf.SecondMoments(domain=Ball(radius, **options), epsilon=epsilon, delta=delta)


def exact(sums):
    """The sums of a kernel as Python integers."""
    return [(int(high) << LIMB) + int(low) for high, low in sums.T]


def summed(domain, X, threads=1):
    sums = np.zeros((2, X.shape[1] * (X.shape[1] + 3) // 2), np.int64)
    domain.add_products(X, sums, threads)
    return exact(sums)


class TestSums:
    pytestmark = pytest.mark.kernel

    @every("d", [1, 2, 3, 4, 7, 8, 9, 16, 20, 25])
    @every("n", [0, 1, 31, 32, 33, 70])
    def test_sums_are_those_of_integers(self, n, d):
        domain = Ball(1.0, center=(0.25,) * d).for_products()
        X = RNG.normal(size=(n, d))
        X[::7] *= 1e9
        X[3::11] = np.nan
        assert summed(domain, X) == products.sums(domain.encode(X), d)

    @every("d", [1, 2, 9, 16])
    @every("sign", [1, -1])
    def test_sums_of_equal_rows_at_the_end_of_the_ball(self, d, sign):
        """Products of 32 rows then add up to 2^51, the most that a group may."""
        domain = Ball(1.0, center=(0.0,) * d).for_products()
        X = np.zeros((70, d))
        X[:, 0] = 3.0
        X[:, -1] = 3.0 * sign
        assert summed(domain, X) == products.sums(domain.encode(X), d)

    @every(
        "form",
        [
            np.asfortranarray,
            lambda X: X[::-1, ::-1],
            lambda X: np.repeat(X, 2, axis=1)[:, ::2],
            lambda X: X.astype(np.float32),
            lambda X: (100 * X).astype(np.int16),
            lambda X: (100 * X).astype(np.int64),
            lambda X: X > 0,
            lambda X: X.astype(">f8"),
        ],
    )
    def test_sums_of_arrays_of_every_form(self, form):
        X = form(RNG.normal(size=(3000, 5)))
        before, domain = X.copy(), Ball(100.0, center=0.5).for_products()
        X = domain.records(X)
        assert summed(domain, X) == products.sums(domain.encode(X), 5)
        assert np.array_equal(X, before)

    def test_the_largest_sums(self):
        """More rows on the surface of the largest ball than 64 bits hold products of."""
        domain = Ball(np.nextafter(1.0, 0.0)).for_products()
        assert 2**45.9 < domain.most < 2**46
        X = np.tile([[1.0, 0.0], [-1.0, 0.0], [0.8, -0.6]], (60_000, 1))
        codes = domain.encode(X[:3])
        assert summed(domain, X) == [60_000 * total for total in products.sums(codes, 2)]
        assert summed(domain, X)[0] > 2**63

    def test_threads_and_chunks(self):
        X, mechanism = RNG.normal(size=(700_000, 3)), second_moments()
        domain = mechanism.domain
        assert summed(domain, X) == summed(domain, X, threads=3)
        release = mechanism(X, rng=PCG64(1))
        assert np.array_equal(mechanism(X, rng=PCG64(1), workers=2), release)
        first, second = mechanism.start(), mechanism.start()
        first.update(X[:1000])
        second.read([X[1000:1003], X[:0], X[1003:]])
        first = pickle.loads(pickle.dumps(first))
        first.merge(second)
        assert np.array_equal(first.release(rng=PCG64(1)), release)

    def test_the_kernel_checks_its_tables(self):
        options = {"center": np.zeros(2), "inverse": 1.0, "radius": 4.0, "most": 16.0}
        with pytest.raises(ValueError, match="sums"):
            _rows.add_products(np.zeros((3, 2)), np.zeros((2, 4), np.int64), **options)
        with pytest.raises(ValueError, match="center"):
            _rows.add_products(np.zeros((3, 3)), np.zeros((2, 9), np.int64), **options)


def changes(domain, d):
    """Every change of the sums by one replaced record with codes in a ball."""
    sums = np.array([products.sums([v], d) for v in products.ball(domain.most, d)])
    rows, columns = np.triu_indices(len(sums), 1)
    return np.unique(np.abs(sums[rows] - sums[columns]), axis=0) if d == 1 else sums[rows] - sums[columns]


def spent(mechanism, changed, d):
    """The largest squared mu, or epsilon, that such changes of the sums spend with the scales of the mechanism."""
    scales = np.array(mechanism.scales(1, d))
    c, column = mechanism.weight(d), np.triu_indices(d + 1)[1][:-1]
    if not mechanism.with_sums:
        changed = np.where(column == d, 0, changed)
    if mechanism.gaussian_mu:
        kept = changed if mechanism.with_sums else changed[:, column < d]
        return np.sum((kept / scales) ** 2, axis=1).max() / mechanism.gaussian_mu**2
    scale = scales[1 if d > 1 else 0]
    losses = [products.nuclear_norm(change, c, d) for change in changed[:: max(1, len(changed) // 4000)]]
    return max(losses) / (2 * scale) / mechanism.epsilon


SMALL = [(1, 9), (2, 9), (3, 4)]  # columns, and the radius squared


class TestSensitivity:
    @every("delta", [0.0, 1e-3])
    @every("centered", [True, False])
    @every("d, most", SMALL)
    def test_every_replaced_record(self, d, most, centered, delta):
        """The budget is enough for every pair of rows, and for d > 1 almost or exactly used up."""
        mechanism = dpf.Covariance(domain=Ball(math.sqrt(most), step=1.0), epsilon=1.0, delta=delta, centered=centered)
        assert mechanism.domain.most == most
        assert mechanism.shift(1) == 0
        share = spent(mechanism, changes(mechanism.domain, d), d)
        assert share <= 1 + 1e-12
        assert d == 1 or share > 0.9

    @pytest.mark.parametrize("delta", [0.0, 1e-3])
    def test_controls(self, delta):
        """A radius one step too small, N for 2 N, no factor sqrt(2) between diagonal and the other entries."""
        domain = Ball(3.0, step=1.0)
        changed = changes(domain, 2)
        narrow = dpf.SecondMoments(domain=Ball(2.0, step=1.0), epsilon=1.0, delta=delta)
        assert spent(narrow, changed, 2) > 1.2

        class Half(dpf.SecondMoments):
            def scales(self, n, d):
                return [scale / (math.sqrt(2) if self.gaussian_mu else 2) for scale in super().scales(n, d)]

        class Unweighted(dpf.SecondMoments):
            def scales(self, n, d):
                scales = list(super().scales(n, d))
                return [min(scales[:2])] * 2 + scales[2:3] + [min(scales[:2])] + scales[4:]

        assert spent(Half(domain=domain, epsilon=1.0, delta=delta), changed, 2) > 1.7
        if delta:
            unweighted = Unweighted(domain=domain, epsilon=1.0, delta=delta)
            parallel = changed[np.abs(changed[:, 1]) == 0]
            assert spent(unweighted, parallel, 2) > 1.2

    def test_the_bound_with_sums(self):
        """The largest |v v' - w w'|^2 + 2 c^2 |v - w|^2 over norms up to 1 is 2 (1 + c^2)^2 for c <= 1, on a grid."""
        a, b = np.linspace(0, 1, 41)[:, None, None], np.linspace(0, 1, 41)[:, None]
        cosine = np.linspace(-1, 1, 2001)
        for c in (0.0, 0.3, 0.7, 1.0):
            norms = a**4 + b**4 - 2 * (a * b * cosine) ** 2 + 2 * c**2 * (a**2 + b**2 - 2 * a * b * cosine)
            assert norms.max() == pytest.approx(2 * (1 + c**2) ** 2, rel=1e-6)
            assert norms.max() <= 2 * (1 + c**2) ** 2 * (1 + 1e-12)

    @pytest.mark.parametrize("delta", [0.0, 1e-3])
    @pytest.mark.parametrize("n", [2, 50])
    def test_rounding_to_release_codes_is_paid_for(self, n, delta):
        """Neighbours of n rows in the largest ball: the change of the release codes, with what rounding adds."""
        d, mechanism = 3, second_moments(1.0, delta=delta)
        shift, scales = mechanism.shift(n), np.array(mechanism.scales(n, d))
        assert shift == 23
        shares = []
        for _ in range(200):
            X = RNG.normal(size=(n, d))
            Y = X.copy()
            Y[0] = np.cross(X[0], RNG.normal(size=3))  # orthogonal, where the sensitivity is attained
            X[0], Y[0] = 10 * X[0], 10 * Y[0]
            codes = [mechanism.law(Z).center.astype(object) for Z in (X, Y)]
            change = (codes[0] - codes[1]).astype(float)
            if delta:
                shares.append(np.sum((change / scales) ** 2) / mechanism.gaussian_mu**2)
            else:
                c = mechanism.weight(d) / 2**shift
                shares.append(products.nuclear_norm(change, c, d) / (2 * scales[1]))
        assert 0.6 < max(shares) <= 1

    def test_scales_are_rounded_up(self):
        """Against the formulas in exact numbers."""
        for d, n in itertools.product((1, 2, 5, 40), (1, 1000, 2**30)):
            for delta in (0.0, 1e-6):
                mechanism = second_moments(7.0, epsilon=0.3, delta=delta)
                c, shift, most = mechanism.weight(d), mechanism.shift(n), mechanism.domain.most
                size, budget = Fraction(most + c**2, 2**shift), Fraction(mechanism.gaussian_mu or mechanism.epsilon)
                added = Fraction(d if delta else d**1.5) / (math.sqrt(2) if delta else 2)
                scales = np.array(mechanism.scales(n, d))
                row, column = np.stack(np.triu_indices(d + 1))[:, :-1]
                off = scales[column == d].min() * c / 2**shift
                assert (size + Fraction(added)) / budget <= Fraction(off * (1 + 1e-15))
                assert off * float(budget) < float(size) * (1 + 1e-4)
                factor = math.sqrt(2) if delta else 1.0
                np.testing.assert_allclose(scales[row == column], factor * off, rtol=1e-14)
                np.testing.assert_allclose(scales[(row < column) & (column < d)], off, rtol=1e-14)

    def test_codes_stay_within_64_bits(self):
        mechanism = second_moments(1.0)
        for n in (1, 1000, 2**30, 2**37):
            assert n * mechanism.domain.most >> mechanism.shift(n) <= 2**60
        mechanism.plan(2**37)
        with pytest.raises(ValueError, match=r"2\*\*61"):
            mechanism.plan(2**39)


class TestNoise:
    @pytest.mark.parametrize("delta", [0.0, 1e-3])
    @pytest.mark.parametrize("kind", [dpf.SecondMoments, dpf.Covariance])
    def test_entries_have_the_stated_deviations(self, kind, delta):
        """Gaussian entries by chi-square; differences of Wishart matrices by the error of a second moment."""
        n, d, draws = 40, 3, 20_000
        options = {"centered": False, "psd": False} if kind is dpf.Covariance else {}
        mechanism = kind(domain=Ball(2.0, center=1.0), epsilon=1.0, delta=delta, **options)
        X = np.ones((n, d))
        sample = mechanism.release(X, size=draws, rng=PCG64(7))
        side = d + (kind is dpf.SecondMoments)
        assert sample.shape == (draws, side, side)
        assert np.array_equal(sample, np.swapaxes(sample, 1, 2))
        deviations = mechanism.noise_deviation(n, dimension=d)
        for i, j in zip(*np.triu_indices(side), strict=True):
            if i == d:
                assert (sample[:, i, j] == 1).all()
                continue
            squares = (sample[:, i, j] / deviations[i, j]) ** 2
            for factor, wrong in ((1.0, False), (0.9, True), (1.1, True)):
                total = factor**2 * squares.sum()
                if delta:
                    outside = not chi2.ppf(ALPHA, draws) < total < chi2.isf(ALPHA, draws)
                else:
                    outside = abs(total - draws) > norm.isf(ALPHA) * factor**2 * squares.std() * math.sqrt(draws)
                assert outside == wrong

    def test_the_law_of_gaussian_noise(self):
        """The probabilities are those of independent rounded normal numbers around the codes."""
        mechanism = second_moments(3.0, step=1.0)
        law = mechanism.law([[1.0, 2.0], [0.0, -1.0]])
        assert law.center.tolist() == [1, 2, 1, 5, 1]
        scales = mechanism.scales(2, 2)
        for k in ([1, 2, 1, 5, 1], [20, -30, 4, 0, 9]):
            single = [
                norm.cdf(x - c + 0.5, scale=s) - norm.cdf(x - c - 0.5, scale=s)
                for x, c, s in zip(k, law.center, scales, strict=True)
            ]
            assert law.logpmf(k) == pytest.approx(np.log(single).sum(), rel=1e-9)

    def test_the_loss_of_a_pure_release(self):
        """The difference of the variances of two columns, in which a row (R, 0) is replaced by (0, R).

        Its noise is 2 s times the difference of two sums of three exponential numbers, and its loss tends to epsilon.
        """
        epsilon = 1.5
        mechanism = dpf.Covariance(domain=Ball(2.0), epsilon=epsilon, centered=False, psd=False)
        step = mechanism.domain.step
        sample, other = (mechanism.release([row], size=100_000, rng=PCG64(4)) for row in ([2.0, 0.0], [0.0, 2.0]))
        scale = 2 * mechanism.scales(1, 2)[1] * 2.0 ** mechanism.shift(1) * step * step
        differences = sample[:, 0, 0] - sample[:, 1, 1]
        shift = np.mean(differences - (other[:, 0, 0] - other[:, 1, 1]))  # the same noise on both
        assert shift / scale == pytest.approx(epsilon, rel=1e-5)
        assert shift / scale <= epsilon

        def cdf(x):
            tail = np.exp(-np.abs(x)) * (x**2 + 5 * np.abs(x) + 8) / 16
            return np.where(x < 0, tail, 1 - tail)

        def density(x):
            return np.exp(-np.abs(x)) * (x**2 + 3 * np.abs(x) + 3) / 16

        for factor, wrong in ((1.0, False), (0.9, True), (1.1, True)):
            assert kolmogorov_rejects((differences - 4.0) / (factor * scale), cdf) == wrong
        x = np.linspace(-300, 300, 20_001)
        for change, within in ((shift / scale, True), (shift / scale * 1.1, False)):
            loss = np.log(density(x + change) / density(x))
            assert (np.abs(loss).max() <= epsilon) == within
        assert np.abs(np.log(density(x + shift / scale) / density(x))).max() > 0.97 * epsilon

    def test_charges(self):
        X = RNG.normal(size=(100, 2))
        with dpf.Ledger(mu=1.0) as ledger:
            mechanism = second_moments(epsilon=1.0, delta=1e-6)
            mechanism(X)
        assert ledger.spent.mu == mechanism.gaussian_mu
        assert mechanism.privacy.epsilon == 1.0
        assert second_moments(delta=0.0).privacy_profile.parts == (("pure", 1.0, 1),)


class TestReleases:
    X = RNG.normal(size=(2000, 4)) @ RNG.normal(size=(4, 4)) + [1, 0, -2, 5]
    RADIUS = 40.0

    @pytest.mark.parametrize("delta", [0.0, 1e-9])
    def test_with_a_large_epsilon_it_is_the_covariance(self, delta):
        options = {"radius": self.RADIUS, "epsilon": 1e8, "delta": delta}
        expected = np.cov(self.X, rowvar=False, ddof=0)
        tolerance = {"rtol": 0, "atol": 5e-3 if delta else 1e-5}
        np.testing.assert_allclose(dpf.covariance(self.X, **options), expected, **tolerance)
        np.testing.assert_allclose(dpf.covariance(self.X, **options, center=[1, 0, -2, 5]), expected, **tolerance)
        around = dpf.covariance(self.X, **options, center=[1, 0, -2, 5], centered=False)
        shifted = self.X - [1, 0, -2, 5]
        np.testing.assert_allclose(around, shifted.T @ shifted / len(shifted), **tolerance)
        ones = np.column_stack([shifted, np.ones(len(shifted))])
        ball = Ball(self.RADIUS, center=(1, 0, -2, 5))
        moments = dpf.SecondMoments(domain=ball, epsilon=1e8, delta=delta)(self.X)
        np.testing.assert_allclose(moments, ones.T @ ones / len(ones), **tolerance)

    def test_rows_outside_are_moved_to_the_surface(self):
        X = np.array([[300.0, 400.0], [math.nan, 1.0], [1.0, -math.inf], [3.0, 4.0]])
        release = dpf.covariance(X, radius=5.0, epsilon=1e9, centered=False)
        np.testing.assert_allclose(release, np.array([[9, 12], [12, 16]]) / 2, atol=1e-4)

    def test_psd_is_the_nearest_matrix(self):
        """Symmetric, without negative eigenvalues, and never farther from the covariance of the rows."""
        expected, negative = np.cov(self.X, rowvar=False, ddof=0), 0
        for seed in range(40):
            options = {"domain": Ball(self.RADIUS), "epsilon": 0.1, "delta": 1e-6}
            raw = dpf.Covariance(**options, psd=False)(self.X, rng=PCG64(seed))
            release = dpf.Covariance(**options)(self.X, rng=PCG64(seed))
            assert np.array_equal(release, release.T)
            least = np.linalg.eigvalsh(release).min()
            assert least > -1e-9 * np.abs(release).max()
            negative += np.linalg.eigvalsh(raw).min() < 0
            assert np.linalg.norm(release - expected) <= np.linalg.norm(raw - expected) * (1 + 1e-12)
        assert negative > 30

    def test_several_releases_at_once(self):
        mechanism = dpf.Covariance(domain=Ball(self.RADIUS), epsilon=1.0, delta=1e-6)
        assert mechanism.release(self.X, size=(2, 3), rng=PCG64(0)).shape == (2, 3, 4, 4)

    def test_groups(self):
        mechanism = dpf.Covariance(domain=Ball(self.RADIUS), epsilon=1e8, delta=1e-6)
        releases = dpf.by_group(mechanism, self.X, labels=np.arange(2000) % 2)
        np.testing.assert_allclose(releases[1], np.cov(self.X[1::2], rowvar=False, ddof=0), atol=1e-2)


class TestParameters:
    def test_a_fine_step_becomes_coarser(self):
        mechanism = second_moments(1.0)
        assert mechanism.domain.step == 2.0**-22
        assert mechanism.domain == Ball(1.0, step=2.0**-22)
        assert second_moments(1.0, step=0.25).domain.step == 0.25
        assert mechanism == second_moments(1.0)
        assert pickle.loads(pickle.dumps(mechanism)) == mechanism
        for radius in (1e-300, 0.7, 3.0, 4.0, 1e100):
            assert Ball(radius).for_products().most < 2**46

    def test_wrong_parameters(self):
        ball = Ball(1.0)
        for wrong in (Box(dpf.Grid(0, 1)), None, 1.0):
            with pytest.raises(TypeError, match="Ball"):
                dpf.Covariance(domain=wrong, epsilon=1.0)
        with pytest.raises(ValueError, match="epsilon"):
            dpf.Covariance(domain=ball, epsilon=0.0)
        with pytest.raises(ValueError, match="delta"):
            dpf.Covariance(domain=ball, epsilon=1.0, delta=1.0)
        with pytest.raises(TypeError, match="centered"):
            dpf.Covariance(domain=ball, epsilon=1.0, centered=1)
        with pytest.raises(TypeError, match="psd"):
            dpf.Covariance(domain=ball, epsilon=1.0, psd="yes")
        with pytest.raises(ValueError, match=r"2\*\*56"):
            dpf.Covariance(domain=ball, epsilon=1e-12)
        with pytest.raises(ValueError, match="float64"):
            dpf.Covariance(domain=Ball(1e160), epsilon=1.0)
        with pytest.raises(ValueError, match="2 columns"):
            dpf.covariance(np.zeros((3, 3)), radius=1.0, center=[0.0, 1.0], epsilon=1.0)
        with pytest.raises(ValueError, match="empty"):
            dpf.covariance(np.zeros((0, 3)), radius=1.0, epsilon=1.0)

    @every("kind", [dpf.SecondMoments, dpf.Covariance, partial(dpf.Covariance, psd=False)])
    @every("steps", [1.0, 2.0**22])
    def test_releases_of_the_largest_accepted_ball_are_finite(self, kind, steps):
        radii = [2.0**exponent for exponent in range(400, 700)]

        def mechanism(radius):
            return kind(domain=Ball(radius, step=radius / steps), epsilon=1e-6)

        accepted = []
        for radius in radii:
            try:
                accepted.append(mechanism(radius))
            except ValueError:
                break
        assert 0 < len(accepted) < len(radii)
        largest = accepted[-1]
        codes = 2**61 * np.array([[1] * 65, [-1] * 65, [1, -1] * 32 + [1]])[:, : len(largest.scales(1, 10))]
        for n in (1, 2**20):
            assert np.isfinite(largest._decode(codes, n=n, d=10)).all()

    def test_wrong_parameters_of_the_noise_deviation(self):
        for domain, options, error, message in [
            (Ball(1.0), {"n": 5}, TypeError, "give dimension=, the number of columns"),
            (Ball(1.0), {"n": 0, "dimension": 2}, ValueError, "n must be at least 1"),
            (Ball(1.0), {"n": 5, "dimension": 0}, ValueError, "dimension must be at least 1"),
            (Ball(1.0, center=[0.0, 1.0]), {"n": 5, "dimension": 3}, ValueError, "2 columns"),
        ]:
            with pytest.raises(error, match=message):
                dpf.SecondMoments(domain=domain, epsilon=1.0).noise_deviation(**options)

    def test_damaged_states_are_refused(self):
        mechanism = second_moments()
        reading = RowProducts(mechanism.domain, lambda d: None)
        for packed in ([np.zeros(3)], [0, 0], [[0], [0]]):
            with pytest.raises(ValueError, match="damaged"):
                reading.unpack(packed, 3, 1)

    def test_states_of_other_columns_do_not_merge(self):
        first, second = second_moments().start(), second_moments().start()
        first.update(np.zeros((3, 2)))
        second.update(np.zeros((3, 4)))
        with pytest.raises(ValueError, match="2 and 4 columns"):
            first.merge(second)
        with pytest.raises(ValueError, match="2 columns like the first one, not 3"):
            first.update(np.zeros((3, 3)))


@pytest.mark.host
def test_columns_of_one_name_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.zeros((30, 2)), columns=["a", "a"])
    for call in (
        lambda: dpf.covariance(frame, radius=1.0, epsilon=1.0),
        lambda: dpf.mean(frame, bounds=(0, 1), epsilon=1.0),
        lambda: dpf.sum(frame, radius=1.0, epsilon=1.0),
    ):
        with pytest.raises(ValueError, match="several columns are named 'a'"):
            call()
