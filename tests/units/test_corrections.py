"""Linear regression by the size of the residuals: the law of the scale, one guarantee, clips from releases, errors."""

import contextlib
import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy
from numpy.random import PCG64

import dpfast as dpf
from dpfast.core.divergences import gaussian_mu_down
from dpfast.domains import Ball
from dpfast.regression import Corrections, GradientSums, RegressionMoments, ResidualScale, Transform
from tests.cases import every

ROWS = dpf.Grid(-2, 2, step=1), dpf.Grid(-4, 4, step=1)


def scale(coefficients=(0.5,), constant=0.25, epsilon=2.0, q=0.5, **options):
    public = {"domain": Ball(2.0, step=0.5), "labels": Ball(4.0), **options}
    return ResidualScale(coefficients, constant, q=q, epsilon=epsilon, **public)


def normal(n, d, noise, seed=1):
    rng = np.random.default_rng(seed)
    X, slopes = rng.normal(size=(n, d)), rng.normal(size=d)
    slopes /= np.linalg.norm(slopes)
    return X, 0.3 + X @ slopes + noise * rng.normal(size=n), slopes


def public_of(d, noise=1.0):
    return {"radius": math.sqrt(d) + 2, "label_bound": 4 * math.hypot(1, noise)}


def completed(X, y, privacy, rng=None, **options):
    d = X.shape[1]
    bounds = {"domain": Ball(math.sqrt(d) + 2), "labels": Ball(6.0), **options}
    corrections, made = Corrections(n=len(X), d=d, privacy=privacy, **bounds), []
    while corrections.mechanism is not None:
        made.append(corrections.mechanism)
        corrections.advance(corrections.mechanism((X, y), rng=rng))
    return corrections, made


class TestScale:
    def test_quantile_is_of_the_residuals(self):
        """For a huge epsilon: the quantile of |y - c - x b|, rounded to the grid, rows moved into the ball."""
        rng = np.random.default_rng(1)
        X, y = 3 * rng.normal(size=(501, 3)), rng.normal(size=501)
        ball, slopes = Ball(2.0, center=(0.5, 0.0, -1.0)), np.array([0.5, -1.0, 0.25])
        made = ResidualScale(slopes, -0.25, domain=ball, labels=Ball(4.0), q=0.8, epsilon=1e6)
        moved = ball.encode(X) * ball.step
        exact = np.sort(np.abs(y + 0.25 - moved @ slopes))[math.ceil(0.8 * 501) - 1]
        assert made((X, y)) == pytest.approx(exact, rel=2.0**-9)

    def test_residuals_are_those_of_a_loop(self):
        """To the bit, for rows of any type and order, in one order of the columns; overflows are infinite or 0."""
        rng = np.random.default_rng(2)
        for n, d in ((0, 3), (1, 1), (70, 3), (33, 40)):
            X, y = 4 * rng.normal(size=(n, d)), 10 * rng.normal(size=n)
            X[2:3], X[3:4, 0], y[4:5], y[5:6] = np.nan, np.inf, np.nan, -np.inf
            ball = Ball(3.0, center=0.1)
            for slopes, rows in itertools.product(
                (rng.normal(size=d), np.full(d, 1e308)), (X, np.asfortranarray(X), X.astype(np.float32))
            ):
                made = ResidualScale(slopes, 0.3, domain=ball, labels=Ball(20.0), q=0.8, epsilon=1.0)
                left = y - 0.3
                with np.errstate(all="ignore"):
                    for column, slope in zip(ball.encode(rows).T, slopes, strict=True):
                        left = left - column * (ball.step * slope)
                wanted = np.where(np.isnan(left), 0.0, np.abs(left))
                np.testing.assert_array_equal(made.reading().records((rows, y)), wanted)

    def test_law_is_that_of_inverse_sensitivity(self):
        X, y = np.array([[0.0], [1.0], [-2.0], [0.5]]), np.array([0.0, 2.0, 1.0, -3.0])
        made = scale()
        law = made.law((X, y))
        grid = dpf.FloatGrid(10, resolution=2.0**-25, lower=0.0, upper=16.0)
        options = {"epsilon": 2.0, "measure": "uniform", "selection": "exponential"}
        median = dpf.InverseSensitivity(dpf.statistics.Quantile(0.5), grid=grid, **options)
        wanted = median.law(np.abs(y - 0.25 - 0.5 * X[:, 0]))
        codes = np.arange(0, grid.size, 101)
        np.testing.assert_array_equal(law.logpmf(codes), wanted.logpmf(codes))

    @pytest.mark.parametrize("q", [0.5, 0.8])
    def test_audit_verifies_the_law(self, q):
        certificate = dpf.audit.verify(scale(q=q, epsilon=1.0), n=3, values=2, grids=ROWS)
        assert certificate.holds
        assert certificate.epsilon > 0.5

    def test_audit_rejects_a_shorter_score(self):
        """A law for a larger epsilon than the one that is claimed."""

        class Loud(ResidualScale):
            @property
            def privacy(self):
                return dpf.Privacy(self.epsilon / 2)

        loud = Loud((0.5,), 0.25, domain=Ball(2.0, step=0.5), labels=Ball(4.0), q=0.5, epsilon=2.0)
        assert not dpf.audit.verify(loud, n=3, values=2, grids=ROWS).holds

    def test_missing_numbers(self):
        X = np.array([[0.0], [np.nan], [np.inf], [1.0], [1.0]])
        y = np.array([1.25, 2.25, 3.25, np.nan, -np.inf])
        found = scale(epsilon=1e6, q=0.8)((X, y))
        assert found == pytest.approx(3.0, rel=1e-2)  # residuals 1, 2, 3 at the center, 0, and infinite

    def test_chunks_states_and_other_forms_give_the_same(self):
        X, y, _ = normal(3000, 3, 0.5)
        made = ResidualScale(np.ones(3), 0.1, domain=Ball(4.0), labels=Ball(5.0), q=0.8, epsilon=0.5)
        wanted = made((X, y), rng=PCG64(3))
        chunks = [(X[:7], y[:7]), (X[7:7], y[7:7]), (X[7:2001], y[7:2001]), (X[2001:], y[2001:])]
        state, other = made.start(), made.start()
        for part, of in zip(chunks, (state, other, state, other), strict=True):
            of.update(part)
        state.merge(type(state).from_bytes(other.to_bytes(), made))
        assert state.release(rng=PCG64(3)) == wanted
        for given in (dpf.Chunks(chunks), np.column_stack([X, y]), (np.asfortranarray(X), y[::-1][::-1])):
            assert made(given, rng=PCG64(3)) == wanted

    def test_parameters(self):
        for options, message in (
            ({"q": 1.5}, "q must be"),
            ({"epsilon": 0.0}, "epsilon must be"),
            ({"coefficients": (math.nan,)}, "coefficients"),
            ({"domain": 3.0}, r"domain must be a dpfast.domains.Ball"),
            ({"labels": None}, r"labels must be a dpfast.domains.Ball"),
        ):
            with pytest.raises((TypeError, ValueError), match=message):
                scale(**options)
        with pytest.raises(ValueError, match="X must have 1 columns, like coefficients, not 2"):
            scale()((np.zeros((3, 2)), np.zeros(3)))


class TestGuarantee:
    def test_loss_of_a_range_is_gaussian(self):
        """Claim 2 of the note: the worst bit of each range, against mu = sqrt(pi / 8) epsilon; less is not enough."""
        ndtri, expit = scipy.special.ndtri, scipy.special.expit
        for epsilon in (1e-3, 0.1, 1.0, 5.0):
            low = np.linspace(-20, 20, 4001) - epsilon / 2
            distances = ndtri(expit(low + epsilon)) - ndtri(expit(low))
            assert distances.max() <= math.sqrt(math.pi / 8) * epsilon * (1 + 1e-9)
            if epsilon <= 0.1:
                assert distances.max() > 0.999 * math.sqrt(math.pi / 8) * epsilon

    @every("n", [300, 1000, 20_000, 10**7])
    @every("privacy", [dpf.Privacy(1.0), dpf.Privacy(0.7, 1e-6), dpf.Privacy(mu=0.5), dpf.Privacy(8.0, 1e-9)])
    def test_releases_add_up_to_the_whole(self, n, privacy):
        """The squares of mu, of a scale pi / 8 epsilon**2, or the epsilons; exact."""
        with warnings.catch_warnings(action="ignore", category=dpf.UtilityWarning):  # of few records
            corrections = Corrections(n=n, d=3, domain=Ball(2.0), labels=Ball(3.0), privacy=privacy)
        spent, step = Fraction(0), 0
        while corrections.mechanism is not None:
            made, step = corrections.mechanism, step + 1
            if privacy.unit == "epsilon" and not privacy.delta:
                spent += Fraction(made.epsilon)
            elif isinstance(made, ResidualScale):
                spent += Fraction(3141592653589794, 8 * 10**15) * Fraction(made.epsilon) ** 2
            else:
                spent += Fraction(made.mu) ** 2
            zeros = np.zeros((5, 5)) if step == 1 else 0.5 if isinstance(made, ResidualScale) else np.zeros(4)
            corrections.advance(zeros)
        assert step == corrections.total == corrections.done
        assert step in (5, 6)
        mu = privacy.mu or (gaussian_mu_down(privacy.epsilon, privacy.delta) if privacy.delta else None)
        whole = Fraction(mu) ** 2 if mu else Fraction(privacy.epsilon)
        assert whole * Fraction(99, 100) < spent <= whole

    def test_a_fit_is_charged_once(self):
        X, y, _ = normal(20_000, 3, 0.5)
        for delta in (0.0, 1e-6):
            ledger = dpf.Ledger(1.0, 1e-6)
            with ledger:
                dpf.linear_regression(X, y, epsilon=1.0, delta=delta, method="residuals", **public_of(3))
            assert len(ledger.charges) == 1
            with pytest.raises(dpf.BudgetError), ledger:
                dpf.median(y, epsilon=0.1)

    def test_clips_are_released_numbers(self):
        """Mechanisms are the same for other records, if the releases are the same."""
        X, y, _ = normal(5000, 2, 0.3)
        releases = [np.eye(4) / 3, 0.4, np.full(3, 0.01), 0.3, np.full(3, -0.01)]
        corrections = Corrections(n=5000, d=2, domain=Ball(2.0), labels=Ball(3.0), privacy=dpf.Privacy(1.0))
        other = Corrections(n=5000, d=2, domain=Ball(2.0), labels=Ball(3.0), privacy=dpf.Privacy(1.0))
        kinds = [RegressionMoments, ResidualScale, GradientSums, ResidualScale, GradientSums]
        for release, kind in zip(releases, kinds, strict=True):
            assert isinstance(corrections.mechanism, kind)
            assert corrections.mechanism == other.mechanism
            corrections.mechanism((X, y))
            other.mechanism((100 * X, 1e6 * y))
            corrections.advance(release)
            other.advance(release)
        np.testing.assert_array_equal(corrections.result.covariance, other.result.covariance)

    def test_audit_rejects_clips_of_the_residuals_themselves(self):
        """A gradient clipped at the largest residual, with the noise for that clip: its scale depends on a record."""
        rows, labels = (-1.0, 1.0), (-4.0, 0.0, 4.0)
        records = list(itertools.product(rows, labels))

        def law(data, clip):
            X, y = np.array(data)[:, :1], np.array(data)[:, 1]
            made = GradientSums(
                "huber",
                [0.0],
                transform=Transform([[1.0], [0.0]]),
                domain=Ball(1.0, step=0.5),
                clip=clip,
                bound=clip,
                epsilon=1.0,
            )
            return made.law((X, y)), made._unit(len(data))

        def losses(clip_of):
            worst = 0.0
            for one, first, second in itertools.product(records, repeat=3):
                (p, u), (q, v) = (law(data, clip_of(data)) for data in ((one, first), (one, second)))
                at = np.linspace(-60, 60, 61)
                a, b = (
                    found.logpmf(np.rint(at / unit)[:, None].astype(np.int64)) - math.log(unit)
                    for found, unit in ((p, u), (q, v))
                )
                worst = max(worst, float(np.abs(a - b).max()))
            return worst

        assert losses(lambda data: 2.0) <= 1.0 + 1e-6
        assert losses(lambda data: max(0.25, *(abs(y) for _, y in data))) > 2.0


class TestLargeResiduals:
    """Residuals that are large for the labels: sums are released again, and no correction."""

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_the_fit_is_that_of_the_mean_of_both_sums(self, delta):
        X, y, _ = normal(20_000, 2, 1.0)
        privacy = dpf.Privacy(1.0, delta)
        corrections, made = completed(X, y, privacy, rng=PCG64(1))
        assert [type(one) for one in made] == [dpf.RegressionMoments, ResidualScale, dpf.RegressionMoments]
        assert (corrections.total, corrections.done) == (3, 3)
        fit, [first, _, second] = corrections.result, made
        assert fit.privacy == privacy
        shares = [one.noise_deviation(len(X), dimension=2)[0, 0] ** -2 for one in (first, second)]
        moments = first((X, y), rng=PCG64(1))
        corrections._begin()
        for release in (moments, 2.5, moments):
            corrections.advance(release)
        of_one = first.fit(moments, len(X))
        np.testing.assert_allclose(corrections.result.coefficients, of_one.coefficients, rtol=1e-2)
        assert corrections.result.standard_errors[0] < of_one.standard_errors[0]
        ideal = dpf.RegressionMoments(domain=first.domain, labels=first.labels, epsilon=1.0, delta=delta)
        more = 1 / ideal.noise_deviation(len(X), dimension=2)[0, 0] / math.sqrt(sum(shares))
        assert 1 <= more <= (1.06 if delta else 1.5)

    @pytest.mark.parametrize(("noise", "again"), [(0.05, False), (0.1, False), (0.5, True), (2.0, True)])
    def test_the_way_is_by_the_size_of_residuals(self, noise, again):
        X, y, _ = normal(50_000, 2, noise)
        bounds = {"domain": Ball(math.sqrt(2) + 2), "labels": Ball(4 * math.hypot(1, noise))}
        for seed in range(5):
            made = Corrections(n=len(X), d=2, privacy=dpf.Privacy(1.0), **bounds)
            for _ in range(2):
                made.advance(made.mechanism((X, y), rng=PCG64(seed)))
            assert (made.total == 3) is again

    def test_labels_of_unknown_variance_are_corrected(self):
        """Where noise hides the variance of the labels, sums would be useless."""
        X, y, _ = normal(5000, 3, 0.5)
        made = Corrections(n=5000, d=3, domain=Ball(4.0), labels=Ball(100.0), privacy=dpf.Privacy(1.0))
        for _ in range(2):
            made.advance(made.mechanism((X, y), rng=PCG64(1)))
        assert made.total > 3

    def test_skewed_residuals_are_covered(self):
        """Labels that are mostly noise, skewed and larger for larger rows: least squares, not Huber's coefficients."""
        rng, covered = np.random.default_rng(3), []
        X = rng.uniform(0, 1, (20_000, 1))
        y = 0.2 * X[:, 0] + 0.2 * X[:, 0] * rng.exponential(size=20_000)
        slope = np.polyfit(X[:, 0], np.clip(y, 0, 2), 1)[0]
        for seed in range(30):
            fit = dpf.linear_regression(
                X, y, bounds=(0, 1), label_bound=1, label_center=1, epsilon=1.0, rng=PCG64(seed)
            )
            low, high = fit.interval(0.95)[0]
            covered.append(low <= slope <= high)
        assert np.mean(covered) > 0.8


def pay(n, seed):
    """Labels whose errors are skewed, and larger for larger rows, as those of pay by base pay."""
    rng = np.random.default_rng(seed)
    X = np.minimum(rng.exponential(size=(n, 1)) / 4, 1.0)
    return X, X[:, 0] + 0.2 * X[:, 0] ** 2 * rng.exponential(size=n)


def covered_of_pay(n, runs, **options):
    """The share of intervals that hold the coefficients of least squares of the clamped labels, and of clear shapes."""
    held, (X, y) = [], pay(n, 1)
    exact = np.polyfit(X[:, 0], np.minimum(y, 2.0), 1)
    for seed in range(runs):
        fit = dpf.linear_regression(
            X, y, bounds=(0, 1), label_bound=2.0, method="residuals", rng=PCG64(seed), **options
        )
        errors = fit.coefficients[0] - exact[0], fit.intercept - exact[1]
        held.append(np.abs(errors) <= 1.96 * np.array([fit.standard_errors[0], fit.intercept_error]))
    return np.mean(held)


class TestUnequalSpread:
    """Residuals that spread more for larger rows: least squares, by the ratio of two released quantiles."""

    @staticmethod
    def of_quantiles(first, *others, moments=None):
        corrections = Corrections(n=20_000, d=2, domain=Ball(2.0), labels=Ball(3.0), privacy=dpf.Privacy(1.0))
        corrections.advance(np.diag([0.3, 0.3, 0.3, 1.0]) if moments is None else moments)
        corrections.advance(first)
        corrections.advance(np.zeros(3))
        for quantile in others:
            assert isinstance(corrections.mechanism, ResidualScale)
            corrections.advance(quantile)
        return corrections

    def test_the_last_clip_is_by_the_ratio_of_quantiles(self):
        """Of normal residuals with deviation 0.1, the quantile of level 0.95 is 0.2 and the median 0.07."""
        narrow, wide = (self.of_quantiles(0.2, middle).mechanism for middle in (0.07, 0.0125))
        assert narrow.bound < 0.25 < wide.bound
        assert wide.labels == narrow.labels == Ball(3.0).for_products()

    def test_the_second_scale_is_split_where_the_first_fit_hides_the_shape(self):
        corrections = self.of_quantiles(1e-3, 3e-4, 5e-4)
        assert corrections.total == 6
        assert sum(corrections._parts) == 1
        assert corrections._parts[3] == corrections._parts[4]
        assert isinstance(corrections.mechanism, GradientSums)
        tailed = self.of_quantiles(1e-3, 3e-5, 5e-4)
        assert tailed.mechanism.bound > 10 * corrections.mechanism.bound
        absurd = self.of_quantiles(1e-3, 3e-5, 1.0)
        assert absurd.mechanism.bound < corrections.mechanism.bound

    @pytest.mark.parametrize(
        ("n", "runs", "epsilon", "delta"),
        [
            (20_000, 12, 1.0, 0.0),
            pytest.param(30_000, 100, 0.3, 0.0, marks=pytest.mark.slow),
            pytest.param(30_000, 100, 0.3, 1e-6, marks=pytest.mark.slow),
            pytest.param(30_000, 100, 1.0, 0.0, marks=pytest.mark.slow),
        ],
    )
    def test_intervals_hold_least_squares(self, n, runs, epsilon, delta):
        assert covered_of_pay(n, runs, epsilon=epsilon, delta=delta) > 0.85


class TestFit:
    def test_methods(self):
        """By public numbers: residuals, if there are enough records, and noise is not little already."""
        for n, d, epsilon, delta, wanted in (
            (20_000, 10, 1.0, 1e-6, "residuals"),
            (5000, 5, 1.0, 0.0, "residuals"),
            (300, 5, 1.0, 1e-6, "sums"),
            (5000, 30, 0.5, 0.0, "sums"),
            (5000, 2, 1e6, 0.0, "sums"),
        ):
            X, y, _ = normal(n, d, 0.5)
            told = []
            public = {**public_of(d), "epsilon": epsilon, "delta": delta, "explain": told.append}
            with pytest.warns(dpf.PrivacyWarning) if epsilon > 20 else contextlib.nullcontext():
                dpf.linear_regression(X, y, **public)
            assert ("size of residuals" in told[0]) == (wanted == "residuals"), (n, d)

    @pytest.mark.parametrize(
        ("n", "d", "noise", "delta"),
        [
            (20_000, 10, 0.1, 0.0),
            (5000, 5, 0.5, 1e-6),
            pytest.param(20_000, 10, 0.1, 1e-6, marks=pytest.mark.slow),
            pytest.param(50_000, 5, 0.02, 0.0, marks=pytest.mark.slow),
        ],
    )
    def test_error_is_near_that_of_hubers_loss_of_known_scale(self, n, d, noise, delta):
        """In 9 runs at most 1.3 times that for a corner of 1.5 deviations, and half of that of the sums."""
        found = {"residuals": [], "sums": [], 1.5: []}
        for seed in range(9):
            X, y, slopes = normal(n, d, noise, seed)
            public = {**public_of(d, noise), "epsilon": 1.0, "delta": delta, "rng": PCG64(100 + seed)}
            for kind, errors in found.items():
                if isinstance(kind, str):
                    fit = dpf.linear_regression(X, y, method=kind, **public)
                else:
                    fit = dpf.glm(X, y, model="huber", k=kind * noise, **public)
                errors.append(np.linalg.norm(fit.coefficients - slopes))
        size = {kind: np.linalg.norm(errors) for kind, errors in found.items()}
        assert size["residuals"] <= 1.3 * size[1.5]
        assert size["residuals"] <= 0.5 * size["sums"]

    @pytest.mark.parametrize(
        ("n", "d", "noise", "epsilon", "delta"),
        [
            (3000, 2, 0.3, 1.0, 0.0),
            (2000, 5, 1.0, 4.0, 1e-6),
            pytest.param(5000, 5, 0.5, 1.0, 1e-6, marks=pytest.mark.slow),
            pytest.param(20_000, 10, 0.1, 1.0, 1e-6, marks=pytest.mark.slow),
        ],
    )
    def test_intervals_cover(self, n, d, noise, epsilon, delta):
        """Nominal up to .02 and six standard deviations."""
        runs, inside = 60, []
        for seed in range(runs):
            X, y, slopes = normal(n, d, noise, seed)
            public = {**public_of(d, noise), "epsilon": epsilon, "delta": delta, "rng": PCG64(seed)}
            fit = dpf.linear_regression(X, y, method="residuals", **public)
            inside.append(np.abs(fit.coefficients - slopes) <= 1.96 * fit.standard_errors)
        assert abs(np.mean(inside) - 0.95) < 0.02 + 6 * math.sqrt(0.05 * 0.95 / runs / d)

    def test_skewed_errors_move_the_fit_to_least_squares(self):
        rng = np.random.default_rng(4)
        X = rng.normal(size=(50_000, 3))
        y = X @ [1.0, 0.0, -1.0] + 3 * (rng.random(50_000) < 0.15)  # a share of Huber's estimate is 0
        exact = np.linalg.lstsq(np.column_stack([X, np.ones(50_000)]), y, rcond=None)[0]
        fit = dpf.linear_regression(X, y, radius=4.0, label_bound=8.0, epsilon=1.0, method="residuals", rng=PCG64(1))
        assert fit.intercept == pytest.approx(exact[3], abs=0.06)
        assert abs(fit.intercept - exact[3]) < 3 * fit.intercept_error
        np.testing.assert_allclose(fit.coefficients, exact[:3], atol=0.06)

    def test_forms_of_records_give_the_same(self):
        X, y, _ = normal(3000, 2, 0.5)
        public = {**public_of(2), "epsilon": 2.0, "method": "residuals"}
        wanted = dpf.linear_regression(X, y, rng=PCG64(1), **public)
        for given in (dpf.Chunks([(X[:9], y[:9]), (X[9:], y[9:])]), dpf.Chunks([np.column_stack([X, y])])):
            found = dpf.linear_regression(given, rng=PCG64(1), **public)
            np.testing.assert_array_equal(found.covariance, wanted.covariance)
            np.testing.assert_array_equal(found.coefficients, wanted.coefficients)
        by_hand, _ = completed(X, y, dpf.Privacy(2.0), PCG64(1), labels=Ball(public["label_bound"]))
        assert by_hand.result.coefficients.shape == (2,)

    def test_bounds_centers_and_units(self):
        X, y, slopes = normal(30_000, 2, 0.1)
        fit = dpf.linear_regression(
            X * [1, 100] + [0, 1000],
            y + 50,
            bounds=[(-5, 5), (500, 1500)],
            label_bound=5.0,
            label_center=50.0,
            epsilon=2.0,
        )
        np.testing.assert_allclose(fit.coefficients * [1, 100], slopes, atol=0.05)
        assert fit.predict([[0.0, 1000.0]])[0] == pytest.approx(50.3, abs=0.05)
        ledger_free = dpf.linear_regression(
            X, y - 0.3, radius=5.0, label_bound=5.0, epsilon=2.0, intercept=False, method="residuals"
        )
        assert ledger_free.intercept == 0.0
        np.testing.assert_allclose(ledger_free.coefficients, slopes, atol=0.05)

    def test_fits_are_finite(self):
        """For constant and for huge records, and for bounds of every size."""
        for X, y in (
            (np.zeros((400, 2)), np.zeros(400)),
            (np.full((400, 2), 1e300), np.full(400, -1e300)),
            (np.full((400, 2), np.nan), np.full(400, np.nan)),
            (np.full((400, 2), np.inf), np.full(400, np.inf)),
        ):
            for radius, label_bound in ((1.0, 1.0), (1e-20, 1e20), (1e50, 1e-50), (1e60, 1e60)):
                for delta in (0.0, 1e-6):
                    public = {"radius": radius, "label_bound": label_bound, "epsilon": 5.0, "delta": delta}
                    fit = dpf.linear_regression(X, y, method="residuals", **public)
                    for part in (fit.coefficients, fit.covariance, fit.standard_errors, fit.intercept):
                        assert np.all(np.isfinite(part)), (radius, label_bound, delta)

    def test_parameters(self):
        X, y, _ = normal(100, 2, 0.5)
        public = {"radius": 2.0, "label_bound": 3.0, "epsilon": 5.0}
        with pytest.raises(ValueError, match="method must be"):
            dpf.linear_regression(X, y, method="least", **public)
        with pytest.raises(ValueError, match="labels must have the center 0 without an intercept"):
            dpf.linear_regression(X, y, method="residuals", intercept=False, label_center=1.0, **public)
        with pytest.raises(ValueError, match="within 2\\*\\*-200 and 2\\*\\*200"):
            dpf.linear_regression(X, y, method="residuals", **{**public, "radius": 1e80})
        with pytest.warns(dpf.UtilityWarning, match="100 records are too few for the size of the residuals"):
            dpf.linear_regression(X, y, method="residuals", **{**public, "epsilon": 1.0})
        good = {"n": 100, "d": 2, "domain": Ball(2.0), "labels": Ball(3.0), "privacy": dpf.Privacy(9.0)}
        for options, message in (
            ({"privacy": 1.0}, "privacy must be a dpfast.Privacy"),
            ({"privacy": dpf.Privacy(rho=1.0)}, "not rho"),
            ({"n": 0}, "n must be"),
            ({"domain": Ball(1.0, center=(0.0, 0.0, 0.0))}, "columns"),
        ):
            with pytest.raises((TypeError, ValueError), match=message):
                Corrections(**{**good, **options})
        corrections = Corrections(**{**good, "privacy": dpf.Privacy(19.0)})
        with pytest.raises(ValueError, match="5 of 5 releases are missing"):
            corrections.result  # noqa: B018
        assert "100" not in repr(corrections)
