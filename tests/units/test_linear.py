"""Linear regression: exact sums, sensitivities by enumeration, laws on small lattices, the fit and its errors."""

import itertools
import math
import pickle

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast.domains import LIMB, Ball
from dpfast.laws import RoundedBall, WishartDifference
from dpfast.regression import Fit
from dpfast.streaming import LabelledProducts
from tests.cases import every
from tests.reference import products

RNG = np.random.default_rng(0)


def mechanism(radius=4.0, label_bound=3.0, epsilon=1.0, delta=1e-3, step=None, **options):
    domain, labels = Ball(radius, step=step), Ball(label_bound, step=step)
    return dpf.RegressionMoments(domain=domain, labels=labels, epsilon=epsilon, delta=delta, **options)


def data(n, d, noise=0.5, seed=1, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d)).astype(dtype)
    return X, (X @ np.arange(1.0, d + 1) / d + noise * rng.normal(size=n)).astype(dtype)


def exact(summary):
    return [(int(high) << LIMB) + int(low) for high, low in summary.sums.T]


def summed(X, y, made, threads=1):
    reading = made.reading()
    return exact(reading.of(reading.records((X, y)), threads))


def expected(X, y, made):
    """The slow twin: codes by the encoders of both balls, 0 where any number is not finite."""
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    codes = np.column_stack([made.domain.encode(X), made.labels.encode(y[:, None])])
    codes[~(np.isfinite(X).all(axis=1) & np.isfinite(y))] = 0
    return products.sums(codes, X.shape[1] + 1)


class TestSums:
    pytestmark = pytest.mark.kernel

    @every("d", [1, 2, 3, 6, 7, 8, 15, 20])
    @every("n", [0, 1, 31, 32, 33, 70])
    def test_sums_are_those_of_integers(self, n, d):
        made = mechanism(1.0)
        X, y = RNG.normal(size=(n, d)), 4 * RNG.normal(size=n)
        X[::7] *= 1e9
        X[1::9], y[2::9] = 0.0, 0.0
        X[3::11, -1], y[4::11], y[5::11] = np.nan, -np.inf, np.nan
        assert summed(X, y, made) == expected(X, y, made)

    def test_records_of_every_form(self):
        X, y = (100 * part for part in data(3000, 4))
        made = mechanism(150.0, 90.0)
        for form in (
            np.asfortranarray,
            lambda x: x[::-1],
            lambda x: x.astype(np.float32),
            lambda x: x.astype(np.int16),
        ):
            given, labels = form(X), form(y)
            assert summed(given, labels, made) == expected(given, labels, made)
        assert summed(X[:, ::2], np.repeat(y, 3)[::3], made) == expected(X[:, ::2], y, made)
        assert summed(X.astype(">f8"), y > 0, made) == expected(X, y > 0, made)
        reading = made.reading()
        assert exact(reading.of(reading.records(np.column_stack([X, y])))) == expected(X, y, made)

    def test_threads_and_chunks(self):
        X, y = data(700_000, 3)
        made = mechanism()
        assert summed(X, y, made) == summed(X, y, made, threads=3)
        release = made((X, y), rng=PCG64(1))
        assert np.array_equal(made((X, y), rng=PCG64(1), workers=2), release)
        pieces = [
            (X[:1000], y[:1000]),
            (X[:0], y[:0]),
            np.column_stack([X[1000:1003], y[1000:1003]]),
            (X[1003:], y[1003:]),
        ]
        assert np.array_equal(made(dpf.Chunks(pieces), rng=PCG64(1)), release)
        first, second = made.start(), made.start()
        first.update(pieces[0])
        second.read(pieces[1:])
        first = pickle.loads(pickle.dumps(first))
        first.merge(second)
        assert np.array_equal(first.release(rng=PCG64(1)), release)

    def test_states_are_checked(self):
        made = mechanism()
        state = made.start()
        state.update(data(10, 3))
        with pytest.raises(ValueError, match="chunks must have 3 columns like the first one, not 2"):
            state.update(data(10, 2))
        other = made.start()
        other.update(data(10, 2))
        with pytest.raises(ValueError, match="states of 3 and 2 columns do not merge"):
            state.merge(other)
        reading = LabelledProducts(made.domain, made.labels, lambda d: None)
        for size in (2, 4, 6, 13):  # one code, or none of the sizes
            with pytest.raises(ValueError, match="damaged"):
                reading.unpack([np.zeros(size, np.int64)] * 2, 1, 1)


# ---- sensitivity ----


def records(made, d):
    """All codes of a record."""
    labels = range(-made.labels.reach, made.labels.reach + 1)
    return [(*v, w) for v in products.ball(made.domain.most, d) for w in labels]


def changes(made, d, codes=None):
    """Every change of the sums by one replaced record, of all or of the given codes."""
    sums = np.array([products.sums([v], d + 1) for v in codes or records(made, d)])
    rows, columns = np.triu_indices(len(sums), 1)
    changed = sums[rows] - sums[columns]
    return changed if made.with_sums else changed[:, np.triu_indices(d + 2)[1][:-1] <= d]


def matrices(changed, weights):
    """The changes of a a' for codes with these weights."""
    side = len(weights)
    i, j = np.stack(np.triu_indices(side))[:, : changed.shape[1]]
    out = np.zeros((len(changed), side, side))
    out[:, i, j] = out[:, j, i] = changed * (weights[i] * weights[j])
    return out


def spent(made, changed, d):
    """The largest squared mu, or epsilon, that such changes spend with the scales of the mechanism, as a share."""
    scales = np.array(made.scales(1, d))
    if made.gaussian_mu:
        return np.sum((changed / scales) ** 2, axis=1).max() / made.gaussian_mu**2
    if isinstance(made._noise(1, d), RoundedBall):
        return np.sqrt(np.sum((changed / scales) ** 2, axis=1).max())
    s, c = map(float, made.weights(d))
    weights = np.array([1.0] * d + [s] + [c] * made.with_sums)
    values = np.abs(np.linalg.eigvalsh(matrices(changed[:: max(1, len(changed) // 4000)], weights))).sum(axis=1)
    return values.max() / (2 * scales[0])


SMALL = [(1, 9, 4), (1, 4, 9), (2, 4, 2), (2, 5, 1), (3, 2, 1)]  # columns, squared radius, label bound


class TestSensitivity:
    @every("delta", [0.0, 1e-3])
    @every("intercept", [True, False])
    @every("d, most, bound", SMALL)
    def test_every_replaced_record(self, d, most, bound, intercept, delta):
        """The budget is enough for every pair of records, and almost used up for d > 1."""
        made = mechanism(math.sqrt(most), float(bound), step=1.0, delta=delta, intercept=intercept)
        assert (made.domain.most, made.labels.reach, made.shift(1)) == (most, bound, 0)
        share = spent(made, changes(made, d), d)
        assert share <= 1 + 1e-12
        assert share > (0.8 if d > 1 else 0.4)

    @pytest.mark.parametrize("delta", [0.0, 1e-3])
    def test_controls(self, delta):
        """A radius or a label bound one step too small; the hull without sqrt(2); the sum of squares of the issue."""
        made = mechanism(math.sqrt(5), 2.0, step=1.0, delta=delta)
        changed = changes(made, 2)
        assert spent(mechanism(math.sqrt(2), 2.0, step=1.0, delta=delta), changed, 2) > 1.2
        assert spent(mechanism(math.sqrt(5), 1.0, step=1.0, delta=delta), changed, 2) > 1.01

        class Hull(dpf.RegressionMoments):
            def scales(self, n, d):
                return [scale / math.sqrt(2) for scale in super().scales(n, d)]

        hull = Hull(domain=made.domain, labels=made.labels, epsilon=1.0, delta=delta)
        assert spent(hull, changed, 2) > 1.3

    def test_clipping_before_rounding_is_not_enough(self):
        """Rows moved to the surface of the ball and then rounded have codes outside; the library's do not."""
        made = mechanism(2.2, 1.0, step=1.0)
        assert made.domain.most == 4
        circle = 2.2 * np.array([[math.cos(t), math.sin(t)] for t in np.linspace(0, 2 * math.pi, 65)])
        naive = [(*map(int, row), w) for row in np.rint(circle) for w in (-1, 1)]
        right = [(*map(int, row), w) for row in made.domain.encode(circle) for w in (-1, 1)]
        assert spent(made, changes(made, 2, right), 2) <= 1
        assert spent(made, changes(made, 2, naive), 2) > 1.5

    def test_the_bound_of_the_hull(self):
        """The squared norm 2 (B^2 + L^2)^2, for s = 1 and c = 0, is attained, which exceeds 2 B^4 + 4 B^2 L^2 + L^4."""
        made = mechanism(1.0, 1.0, step=1.0, intercept=False)
        weights = np.array([1.0, 1.0])
        norms = np.sum(matrices(changes(made, 1), weights) ** 2, axis=(1, 2))
        assert norms.max() == 8.0 == 2 * (1 + 1) ** 2 > 2 + 4 + 1

    @pytest.mark.parametrize("delta", [0.0, 1e-3])
    @pytest.mark.parametrize("n", [2, 50])
    def test_rounding_to_release_codes_is_paid_for(self, n, delta):
        made, d, shares = mechanism(1.0, 1.0, delta=delta), 3, []
        shift, scales = made.shift(n), np.array(made.scales(n, d))
        assert shift == 23
        s, c = map(float, made.weights(d))
        weights = np.array([1.0] * d + [s, c / 2.0**shift])
        for _ in range(200):
            X, y = RNG.normal(size=(n, d)), RNG.choice([-2.0, 2.0], n)
            Z, z = X.copy(), y.copy()
            X[0] *= 10
            Z[0], z[0] = 10 * np.cross(X[0], RNG.normal(size=3)), -y[0]
            before, after = (made.law(pair).center.astype(float) for pair in ((X, y), (Z, z)))
            if delta:
                shares.append(np.sum(((before - after) / scales) ** 2) / made.gaussian_mu**2)
            else:
                values = np.linalg.eigvalsh(matrices((before - after)[None], weights))
                shares.append(np.abs(values).sum() / (2 * scales[0]))
        assert 0.4 < max(shares) <= 1

    def test_codes_stay_within_64_bits(self):
        made = mechanism(1.0, 1e6)
        for n in (1, 1000, 2**30, 2**37):
            assert n * made._most >> made.shift(n) <= 2**60
        with pytest.raises(ValueError, match=r"2\*\*61"):
            made.plan(2**39)


# ---- laws ----


def lattice(made, width):
    """All points within `width` deviations of 0, as rows, for the tiny mechanisms here."""
    ends = [math.ceil(width * scale) for scale in made.scales(1, 1)]
    return np.stack(np.meshgrid(*(np.arange(-end, end + 1) for end in ends), indexing="ij"), axis=-1).reshape(
        -1, len(ends)
    )


TINY = [((float(v),), float(w)) for v, w in ((0, 0), (0, 1), (1, 0), (1, 1), (1, -1))]  # all, up to a common sign


def law(made, record):
    return made.law((np.array([record[0]]), np.array([record[1]])))


class TestLaws:
    def test_gaussian_noise_on_a_lattice(self):
        """The divergences of all pairs of laws, by summation, are at most delta; those of less noise are not."""
        points = lattice(made := mechanism(1.0, 1.0, step=1.0, epsilon=2.0, delta=0.05, intercept=False), 6)

        class Hull(dpf.RegressionMoments):
            def scales(self, n, d):
                return [scale / math.sqrt(2) for scale in super().scales(n, d)]

        hull = Hull(domain=made.domain, labels=made.labels, epsilon=2.0, delta=0.05, intercept=False)
        for tested, fails in ((made, False), (hull, True)):
            mass = np.exp([law(tested, record).logpmf(points) for record in TINY])
            assert mass.sum(axis=1).min() > 0.999
            worst = max(np.maximum(p - math.exp(2.0) * q, 0).sum() for p, q in itertools.permutations(mass, 2))
            assert (worst > 0.05) == fails
            assert worst > 0.02

    def test_pure_noise_on_a_lattice(self):
        """The losses of all pairs of laws at all points near 0 are at most epsilon; those of less noise are not."""
        made = mechanism(1.0, 1.0, step=1.0, epsilon=2.0, delta=0.0, intercept=False)
        assert isinstance(law(made, TINY[0]).noise, RoundedBall)

        def losses(made, points):
            logs = [law(made, record).logpmf(points) for record in TINY]
            return np.max([p - q for p, q in itertools.permutations(logs, 2)], axis=0)

        points = lattice(made, 1)
        found = losses(made, points)
        assert 0.7 * 2 < found.max() <= 2 + 1e-9
        weak = mechanism(1.0, 1.0, step=1.0, epsilon=3.0, delta=0.0, intercept=False)
        assert losses(weak, points[[found.argmax()]]) > 2.1

    def test_the_kind_of_pure_noise(self):
        """That of less variance for every entry."""
        for d, intercept in ((1, True), (1, False), (2, False), (2, True), (5, True)):
            made = mechanism(delta=0.0, intercept=intercept)
            entries, side = len(made.scales(1, d)), d + 1 + intercept
            noise = made._noise(10, d)
            assert isinstance(noise, RoundedBall if entries + 1 < 2 * (side + 1) else WishartDifference)
            assert noise.dimension == entries

    @pytest.mark.parametrize("delta", [0.0, 1e-3])
    @pytest.mark.parametrize("d", [1, 3])
    def test_entries_have_the_stated_deviations(self, d, delta):
        made, n = mechanism(delta=delta), 100
        X, y = data(n, d)
        draws = made.release((X, y), size=4000, rng=PCG64(1))
        a = np.column_stack([X, y, np.ones(n)])
        stated = made.noise_deviation(n, dimension=d)
        assert stated[-1, -1] == 0
        z = (draws.mean(axis=0) - a.T @ a / n) / np.where(stated, stated / math.sqrt(4000), 1)
        assert np.abs(z).max() < 6
        np.testing.assert_allclose(draws.std(axis=0), stated, rtol=0.15)


# ---- the fit ----


class TestFit:
    def test_an_interval_of_a_huge_error_is_infinite(self):
        fit = Fit(np.array([1.0]), 0.0, np.array([1.7e308]), 1.7e308, dpf.Privacy(1.0))
        assert fit.interval().tolist() == [[-np.inf, np.inf]]
        assert fit.intercept_interval().tolist() == [-np.inf, np.inf]
        assert "inf" in repr(fit)

    def test_least_squares_without_noise(self):
        """For a huge epsilon: estimates and errors of least squares."""
        for d, intercept, center in ((1, True, 0.3), (4, True, (0.1, 0.2, -0.3, 0.0)), (3, False, 0.0)):
            X, y = data(5000, d)
            y = y + intercept
            fit = dpf.linear_regression(
                X,
                y,
                radius=3.0,
                label_bound=9.0,
                epsilon=1e9,
                intercept=intercept,
                center=center,
                label_center=0.7 * intercept,
            )
            A = np.column_stack([X, np.ones(5000)]) if intercept else X
            exact, (rss, *_) = np.linalg.lstsq(A, y, rcond=None)[:2]
            errors = np.sqrt(np.diag(np.linalg.inv(A.T @ A)) * rss / 5000)
            found = np.append(fit.coefficients, fit.intercept)[: len(exact)]
            np.testing.assert_allclose(found, exact, atol=1e-4)
            np.testing.assert_allclose(
                np.append(fit.standard_errors, fit.intercept_error)[: len(exact)], errors, rtol=1e-3
            )
            assert intercept or (fit.intercept, fit.intercept_error) == (0.0, 0.0)
            assert fit.privacy == dpf.Privacy(1e9)
            assert fit.n == 5000

    def test_units_and_centers(self):
        """Data in other units and around other centers give the same fit in those units."""
        X, y = data(2000, 2)
        options = {"epsilon": 1.0, "delta": 1e-6}
        plain = dpf.linear_regression(X, y, radius=1.5, label_bound=3.0, rng=PCG64(3), **options)
        scaled = dpf.linear_regression(
            8 * X + 16,
            y / 4 - 2,
            radius=12.0,
            label_bound=0.75,
            center=16.0,
            label_center=-2.0,
            rng=PCG64(3),
            **options,
        )
        np.testing.assert_allclose(32 * scaled.coefficients, plain.coefficients, rtol=1e-6)
        np.testing.assert_allclose(32 * scaled.standard_errors, plain.standard_errors, rtol=1e-9)
        np.testing.assert_allclose(scaled.predict(8 * X + 16), plain.predict(X) / 4 - 2, atol=1e-9)
        assert plain.coefficients == pytest.approx([0.5, 1.0], abs=0.5)

    def test_chunks_and_tables_give_the_same(self):
        X, y = data(1000, 3)
        options = {"radius": 2.0, "label_bound": 3.0, "epsilon": 1.0}
        wanted = dpf.linear_regression(X, y, rng=PCG64(1), **options)
        for given in (dpf.Chunks([(X[:9], y[:9]), (X[9:], y[9:])]), dpf.Chunks([np.column_stack([X, y])])):
            found = dpf.linear_regression(given, rng=PCG64(1), **options)
            np.testing.assert_array_equal(found.covariance, wanted.covariance)
            np.testing.assert_array_equal(found.coefficients, wanted.coefficients)

    def test_groups(self):
        """A fit for each group, from a matrix whose last column is the label."""
        X, y = data(3000, 2)
        made, groups = mechanism(2.0, 3.0, epsilon=50.0), np.arange(3000) % 2
        y = np.where(groups, -y, y)
        moments = dpf.by_group(made, np.column_stack([X, y]), labels=groups, num_groups=2)
        first, second = (made.fit(part, 1500) for part in moments)
        np.testing.assert_allclose(first.coefficients, -second.coefficients, atol=0.2)

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    @pytest.mark.parametrize("epsilon", [0.1, 1e3])
    def test_strange_records_have_finite_fits(self, epsilon, delta):
        """Collinear columns, constant labels, one record, d > n, missing rows, a column times 1e12."""
        X, y = data(60, 3)
        cases = {
            "collinear": (np.column_stack([X, X[:, 0], X[:, 0] + X[:, 1]]), y),
            "constant column": (np.ones_like(X), y),
            "constant label": (X, np.full(60, 2.0)),
            "zeros": (0 * X, 0 * y),
            "one record": (X[:1], y[:1]),
            "wide": (np.tile(X[:5], 4), y[:5]),
            "missing": (np.full_like(X, np.nan), y),
            "missing labels": (X, np.full(60, np.nan)),
            "huge": (X * [1e12, 1.0, 1e-12], 1e300 * y),
        }
        for X, y in cases.values():
            for intercept in (True, False):
                options = {
                    "radius": 2.0,
                    "label_bound": 3.0,
                    "epsilon": epsilon,
                    "delta": delta,
                    "intercept": intercept,
                }
                for seed in range(2):
                    fit = dpf.linear_regression(X, y, rng=PCG64(seed), **options)
                    numbers = [fit.coefficients, fit.covariance.ravel(), fit.standard_errors, fit.interval().ravel()]
                    assert np.isfinite(np.concatenate(numbers)).all()
                    assert np.isfinite([fit.intercept, fit.intercept_error]).all()
                    assert fit.standard_errors.min() > 0

    def test_missing_records_are_at_the_centers(self):
        X, y = data(400, 2)
        holes, labels = X.copy(), y.copy()
        holes[::4, 1], labels[1::4] = np.nan, np.inf
        filled = np.where((np.arange(400) % 4 < 2)[:, None], 0.5, X), np.where(np.arange(400) % 4 < 2, 0.25, y)
        options = {"radius": 2.0, "label_bound": 3.0, "epsilon": 1.0, "center": 0.5, "label_center": 0.25}
        found, wanted = (dpf.linear_regression(*pair, rng=PCG64(1), **options) for pair in ((holes, labels), filled))
        np.testing.assert_array_equal(found.covariance, wanted.covariance)

    def test_a_ledger_is_charged_once(self):
        """For the noise of less deviation, of the same kind for chunks."""
        for d, delta, spends in ((2, 0.0, 0.0), (2, 1e-6, 0.0), (20, 1e-6, 1e-6), (2, 0.1, 0.1)):
            X, y = data(100, d)
            for given in ((X, y), (dpf.Chunks([(X, y)]),)):
                with dpf.Ledger(10.0, 0.5) as ledger:
                    fit = dpf.linear_regression(*given, radius=2.0, label_bound=3.0, epsilon=1.0, delta=delta)
                [charge] = ledger.charges
                assert charge.profile.privacy == fit.privacy == dpf.Privacy(1.0, spends)
                assert (charge.profile.mu is not None) == bool(spends)

    def test_the_noise_of_less_deviation(self):
        for d, epsilon, intercept in ((5, 1.0, True), (6, 1.0, True), (1, 4.0, False), (1, 9.0, True), (2, 0.1, False)):
            options = {"epsilon": epsilon, "intercept": intercept}
            gaussian, pure = mechanism(delta=1e-6, **options), mechanism(delta=0.0, **options)
            deviations = [made.noise_deviation(1000, dimension=d)[0] for made in (pure, gaussian)]
            assert (deviations[0] < deviations[1]).all() == gaussian.pure_is_quieter(d) == (d < 6)
            assert not pure.pure_is_quieter(d)

    def test_bad_parameters(self):
        X, y = data(20, 2)
        good = {"radius": 2.0, "label_bound": 3.0, "epsilon": 1.0}
        for name, value in {
            "radius": 0.0,
            "label_bound": -1.0,
            "epsilon": 0.0,
            "delta": 1.0,
            "center": (0.0, 0.0, 0.0),
            "label_center": math.nan,
        }.items():
            with pytest.raises(ValueError, match=r"radius|epsilon|delta|columns|finite|positive"):
                dpf.linear_regression(X, y, **{**good, name: value})
        with pytest.raises(TypeError, match="intercept must be True or False"):
            dpf.linear_regression(X, y, intercept=1, **good)
        with pytest.raises(TypeError, match="y must be given"):
            dpf.linear_regression(X, **good)
        with pytest.raises(TypeError, match="y must be left out"):
            dpf.linear_regression(dpf.Chunks([(X, y)]), y, **good)
        with pytest.raises(ValueError, match="equally long"):
            dpf.linear_regression(X, y[1:], **good)
        with pytest.raises(ValueError, match="at least one record"):
            dpf.linear_regression(X[:0], y[:0], **good)
        with pytest.raises(ValueError, match="beyond the range of float64"):
            dpf.linear_regression(X, y, radius=1e-150, label_bound=1e100, epsilon=1.0)
        with pytest.raises(TypeError, match=r"labels must be a dpfast.domains.Ball"):
            dpf.RegressionMoments(domain=Ball(1.0), labels=3.0, epsilon=1.0)
        with pytest.raises(ValueError, match="labels must be a ball of one column, not 2"):
            dpf.RegressionMoments(domain=Ball(1.0), labels=Ball(1.0, center=(0, 0)), epsilon=1.0)
        made = mechanism()
        for shape in ((3,), (2, 2), (4, 3)):
            with pytest.raises(ValueError, match="moments must be a release"):
                made.fit(np.zeros(shape), 10)
        assert "2" not in repr(made.start().n)


# ---- errors ----


def covered(n, d, epsilon, delta, runs, naive=False, seed=5):
    """How many of the true coefficients are in their 95 % intervals, over several runs with random slopes."""
    rng, inside = np.random.default_rng(seed), 0
    for _ in range(runs):
        X, slopes = rng.uniform(-1, 1, (n, d)), rng.normal(size=d)
        slopes *= math.sqrt(3) / np.linalg.norm(slopes)
        y = 0.3 + X @ slopes + 0.5 * rng.normal(size=n)
        options = {"radius": math.sqrt(d), "label_bound": 5.0, "epsilon": epsilon, "delta": delta, "rng": rng}
        fit = dpf.linear_regression(X, y, **options)
        half = 1.96 * (0.5 * math.sqrt(3 / n) if naive else fit.standard_errors)
        inside += np.sum(np.abs(fit.coefficients - slopes) <= half)
    return inside / (runs * d)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "d", "epsilon", "delta"),
    [(1000, 1, 1.0, 0.0), (1000, 3, 4.0, 0.0), (10_000, 5, 1.0, 1e-6), (10_000, 3, 0.3, 0.0), (30_000, 10, 1.0, 1e-6)],
)
def test_intervals_cover(n, d, epsilon, delta):
    """docs/results has more settings, with more runs; here: nominal up to .02 and six standard deviations."""
    runs = 300 if n <= 10_000 else 100
    assert abs(covered(n, d, epsilon, delta, runs) - 0.95) < 0.02 + 6 * math.sqrt(0.05 * 0.95 / runs / d)


def test_intervals_of_sampling_alone_do_not_cover():
    assert covered(1000, 3, 1.0, 0.0, 50, naive=True) < 0.5


def correlated(n, correlation, slopes, epsilon, runs, seed=6, **options):
    """Estimates and their errors, over several runs, for normal rows with correlated first and second columns."""
    rng, columns = np.random.default_rng(seed), len(slopes)
    moments = np.eye(columns)
    moments[0, 1] = moments[1, 0] = correlation
    root = 0.35 * math.sqrt(3 / columns) * np.linalg.cholesky(moments).T
    fits, public = [], {"radius": 1.2, "label_bound": 5.0, "epsilon": epsilon, "delta": 1e-6, **options}
    for _ in range(runs):
        X = rng.normal(size=(n, columns)) @ root
        y = 0.3 + X @ slopes + 0.5 * rng.normal(size=n)
        fits.append(dpf.linear_regression(X, y, rng=rng, **public))
    return tuple(np.array([getattr(fit, name) for fit in fits]) for name in ("coefficients", "standard_errors"))


@pytest.mark.parametrize(
    ("n", "correlation", "slopes", "epsilon"),
    [
        (5000, 0.8, (1.0, -0.5, 0.3), 1.0),
        (30_000, 0.95, (1.0, 1.0, 1.0), 1.0),
        pytest.param(5000, 0.95, (1.0, -0.5, 0.3), 1.0, marks=pytest.mark.slow),
        pytest.param(30_000, 0.95, (1.0, -0.5, 0.3), 0.3, marks=pytest.mark.slow),
        (5000, 0.9, (1.0, -0.5, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0), 1.0),
    ],
)
def test_intervals_cover_coefficients_along_directions_hidden_by_the_noise(n, correlation, slopes, epsilon):
    """Nominal up to .02 and six standard deviations, or above it, for slopes that nearly cancel, too."""
    runs = 100
    found, errors = correlated(n, correlation, slopes, epsilon, runs)
    inside = np.mean(np.abs(found - slopes) <= 1.96 * errors, axis=0)
    assert inside.min() > 0.93 - 6 * math.sqrt(0.05 * 0.95 / runs)


def test_intervals_of_the_spread_of_shrunk_estimates_do_not_cover():
    slopes = (1.0, -0.5, 0.3)
    found, _ = correlated(5000, 0.95, slopes, 1.0, 60, method="sums")
    assert np.mean(np.abs(found - slopes)[:, :2] <= 1.96 * found.std(axis=0)[:2]) < 0.5
