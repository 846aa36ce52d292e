"""Generalised linear models: composition, accuracy, awkward data, engines."""

import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64
from scipy.special import expit

import dpfast as dpf
from dpfast.domains import Ball
from dpfast.regression import Corrections, Descent, Fit, GradientSums, LogisticFit, PoissonFit, Schedule, schedule
from dpfast.regression.sequences import completed
from dpfast.streaming import Labelled
from tests.cases import every

RNG = np.random.default_rng(0)
N = 20_000
SLOPES = np.array([1.5, -1.0, 0.5])
ROWS = RNG.normal(size=(N, 3))
LABELS = RNG.random(N) < expit(ROWS @ SLOPES + 0.3)
COUNTS = RNG.poisson(np.exp(ROWS @ SLOPES / 4 + 0.5))
NUMBERS = ROWS @ SLOPES + 2 + RNG.standard_t(2, size=N)
MODELS = {
    "logistic": (LABELS, {}, SLOPES, 0.3),
    "poisson": (COUNTS, {"model": "poisson", "label_bound": 30.0}, SLOPES / 4, 0.5),
    "huber": (NUMBERS, {"model": "huber", "label_bound": 20.0, "k": 1.5}, SLOPES, 2.0),
}


def _bounds_of(model):
    return {name: value for name, value in MODELS[model][1].items() if name != "model"}


def descent(**options):
    options = {"n": 1000, "d": 2, "domain": Ball(3.0), "privacy": dpf.Privacy(1.0, 1e-6)} | options
    return Descent(options.pop("model", "logistic"), **options)


def finished(made, X, y, seed=1):
    """The descent after all releases, and its mechanisms."""
    mechanisms = []
    while made.mechanism is not None:
        mechanisms.append(made.mechanism)
        made.advance(made.mechanism((X, y), rng=PCG64(seed + made.done)))
    return made, mechanisms


def spent(mechanisms):
    """The square of mu, or epsilon, of releases together, exactly."""
    if mechanisms[0].gaussian_mu:
        return sum(Fraction(mechanism.privacy_profile.mu) ** 2 for mechanism in mechanisms)
    return sum(Fraction(mechanism.epsilon) for mechanism in mechanisms)


@every("kind", [dpf.Privacy(1.0, 1e-6), dpf.Privacy(2.0), "corrections"])
def test_calls_leave_the_sequence_that_they_share_at_its_start(kind):
    if kind == "corrections":
        labels = Ball(20.0)
        shared = Corrections(n=N, d=3, domain=Ball(4.0), labels=labels, privacy=dpf.Privacy(2.0))
        records = Labelled.of((ROWS, NUMBERS))
    else:
        shared, records = descent(n=N, d=3, privacy=kind), Labelled.of((ROWS, LABELS))
    first = shared.mechanism
    fits = [completed(shared, records, rng=PCG64(seed), workers=1) for seed in (1, 2, 1)]
    assert (shared.done, shared.mechanism) == (0, first)
    np.testing.assert_array_equal(fits[0].covariance, fits[2].covariance)
    np.testing.assert_array_equal(fits[0].coefficients, fits[2].coefficients)
    assert not np.array_equal(fits[0].coefficients, fits[1].coefficients)


class TestComposition:
    @every("steps", ["auto", 1, 7, Schedule(0.1, 0.3, 3, 1.0, 0.5)])
    @every("privacy", [dpf.Privacy(1.0, 1e-6), dpf.Privacy(0.7), dpf.Privacy(mu=0.1)])
    def test_releases_add_up_to_the_whole(self, privacy, steps):
        """Also the control: with one gradient more they exceed it."""
        made, mechanisms = finished(descent(privacy=privacy, steps=steps), ROWS[:1000, :2], LABELS[:1000])
        whole = made.privacy_profile
        most = whole.mu_squared if whole.mu else Fraction(privacy.epsilon)
        assert most * (1 - Fraction(1, 2**40)) <= spent(mechanisms) <= most
        assert spent([*mechanisms, mechanisms[-1]]) > most
        assert len(mechanisms) == made.total == made.done == 2 + made.schedule.steps

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_one_charge(self, delta):
        with dpf.Ledger(1.0, delta) as ledger:
            dpf.glm(ROWS, LABELS, radius=4.0, epsilon=1.0, delta=delta)
        [charge] = ledger.charges
        assert charge.profile.privacy == dpf.Privacy(1.0, delta)
        assert (charge.profile.mu is not None) == (delta > 0)

    def test_the_mean_of_the_labels(self):
        """Its sensitivity is attained by labels at the ends of their interval, and by no others exceeded."""
        for model, options, low, high in (
            ("logistic", {}, 0.0, 1.0),
            ("poisson", {"label_bound": 8.0}, 0.0, 8.0),
            ("huber", {"label_bound": 8.0, "k": 1.0}, -8.0, 8.0),
        ):
            mechanism = descent(model=model, privacy=dpf.Privacy(1e5), **options).mechanism
            assert 2 * mechanism.clip == high - low
            means = [mechanism((np.zeros((100, 2)), np.full(100, y))) for y in (low, high, -np.inf, 1e9, np.nan)]
            middle = (low + high) / 2
            assert np.allclose(middle - np.ravel(means), [low, high, low, high, middle], atol=1e-2)

    def test_schedules(self):
        for privacy, least in ((dpf.Privacy(mu=0.2), 4), (dpf.Privacy(1.0), 1)):
            plans = [schedule(n, 11, privacy) for n in (1, 100, 1000, 10**4, 10**5, 10**6, 10**12)]
            steps, clips = [plan.steps for plan in plans], [plan.clip for plan in plans]
            assert steps == sorted(steps)
            assert clips == sorted(clips)
            assert (steps[0], steps[-1], clips[0]) == (least, 16, 0.5)
            assert clips[-1] > 10
            for plan in plans:
                assert plan.labels + plan.moments < 0.5

    def test_which_gradients_are_matched(self):
        """By public numbers: those of logistic models with pure noise that does not hide the second moments."""
        for model, delta, n, d, matched in (
            ("logistic", 0.0, 10**4, 10, True),
            ("logistic", 0.0, 10**3, 30, False),
            ("logistic", 0.0, 10**7, 64, False),
            ("logistic", 1e-6, 10**4, 10, False),
            ("poisson", 0.0, 10**4, 10, False),
        ):
            bound = {"label_bound": 9.0} if model == "poisson" else {}
            made = Descent(model, n=n, d=d, domain=Ball(1.0), privacy=dpf.Privacy(1.0, delta), **bound)
            assert made.schedule.matching is matched

    @pytest.mark.parametrize("alike", [True, False])
    def test_shares_of_matched_gradients(self, alike):
        """Columns of one variance leave more for the last gradient; the sum is that of the whole."""
        X = np.random.default_rng(1).normal(size=(5000, 3)) * (1.0 if alike else np.array([1.0, 0.1, 0.1]))
        made, mechanisms = finished(descent(n=5000, d=3, privacy=dpf.Privacy(5.0)), X, LABELS[:5000])
        assert made.schedule.matching
        assert Fraction(5) * (1 - Fraction(1, 2**40)) <= spent(mechanisms) <= 5
        parts = np.arange(1, made.schedule.steps + 1.0) ** (4 if alike else 2)
        epsilons = np.array([mechanism.epsilon for mechanism in mechanisms[2:]])
        np.testing.assert_allclose(epsilons, 5 * 0.73 * parts / parts.sum())

    def test_steps_of_each_model(self):
        """A Huber regression has at least 16 Gaussian or 10 pure gradients, from a start that may be far."""
        ball = dpf.domains.Ball(1.0)
        for model, delta, most, steps in (
            ("logistic", 1e-6, {}, 7),
            ("logistic", 0.0, {}, 3),
            ("huber", 1e-6, {"label_bound": 1.0, "k": 1.0}, 16),
            ("huber", 0.0, {"label_bound": 1.0, "k": 1.0}, 10),
        ):
            made = Descent(model, n=1000, d=10, domain=ball, privacy=dpf.Privacy(1.0, delta), **most)
            assert made.schedule.steps == steps == made.total - 2


class TestAccuracy:
    @every("model", MODELS)
    @every("delta", [0.0, 1e-6])
    def test_near_the_truth(self, model, delta):
        y, options, slopes, constant = MODELS[model]
        fit = dpf.glm(ROWS, y, radius=5.0, epsilon=3.0, delta=delta, rng=PCG64(3), **options)
        assert np.abs(fit.coefficients - slopes).max() < 0.25
        assert abs(fit.intercept - constant) < 0.25
        assert type(fit) is {"logistic": LogisticFit, "poisson": PoissonFit, "huber": Fit}[model]
        assert (np.abs(fit.coefficients - slopes) < 6 * fit.standard_errors).all()
        assert (fit.standard_errors < 0.2).all()

    def test_almost_no_noise_is_the_maximum_likelihood_estimate(self):
        options = {"radius": 6.0, "epsilon": 1e6, "delta": 1e-6, "steps": Schedule(0.02, 0.2, 16, 50.0, 0.3)}
        fit = dpf.glm(ROWS, LABELS, **options)
        design, theta = np.column_stack([ROWS, np.ones(N)]), np.zeros(4)
        for _ in range(20):
            p = expit(design @ theta)
            theta += np.linalg.solve((design * (p * (1 - p))[:, None]).T @ design, design.T @ (LABELS - p))
        errors = np.append(fit.standard_errors, fit.intercept_error)
        information = np.linalg.inv((design * (p * (1 - p))[:, None]).T @ design)
        assert np.allclose(np.append(fit.coefficients, fit.intercept), theta, atol=0.01)
        assert np.allclose(errors, np.sqrt(np.diag(information)), rtol=0.05)

    def test_units_and_centers_do_not_matter(self):
        options = {"epsilon": 1.0, "delta": 1e-6}
        plain = dpf.glm(ROWS, LABELS, radius=4.0, rng=PCG64(2), **options)
        scaled = dpf.glm(ROWS * 1024 + 2.0**20, LABELS, radius=4096.0, center=2.0**20, rng=PCG64(2), **options)
        assert np.allclose(scaled.coefficients * 1024, plain.coefficients, rtol=1e-5)
        assert np.allclose(scaled.intercept + 2.0**20 * scaled.coefficients.sum(), plain.intercept, atol=1e-3)
        assert np.allclose(scaled.standard_errors * 1024, plain.standard_errors, rtol=1e-3)

    def test_no_intercept(self):
        y = RNG.random(N) < expit(ROWS @ SLOPES)
        fit = dpf.glm(ROWS, y, radius=4.0, epsilon=3.0, delta=1e-6, intercept=False, rng=PCG64(2))
        assert fit.intercept == 0.0 == fit.intercept_error
        assert np.abs(fit.coefficients - SLOPES).max() < 0.2

    def test_a_start(self):
        """The first gradient is at its linear predictor."""
        start = Fit(SLOPES, 0.3, np.zeros(3), 0.0, dpf.Privacy(1.0))
        made = descent(n=N, d=3, domain=Ball(5.0, center=(1.0, 2.0, -3.0)), start=start)
        for _ in range(2):
            made.advance(made.mechanism((ROWS, LABELS)))
        first = made.mechanism
        expected = [*SLOPES, 0.3 + SLOPES @ [1.0, 2.0, -3.0]]
        assert np.allclose(first.transform.matrix @ first.coefficients, expected, atol=1e-9)

    def test_predictions(self):
        fit = dpf.glm(ROWS, LABELS, radius=5.0, epsilon=3.0, delta=1e-6)
        assert np.array_equal(fit.predict(ROWS) > 0, fit.probability(ROWS) > 0.5)
        assert abs(np.mean(fit.predict(ROWS) == LABELS) - np.mean((ROWS @ SLOPES + 0.3 > 0) == LABELS)) < 0.02
        poisson = dpf.glm(ROWS, COUNTS, radius=5.0, epsilon=3.0, delta=1e-6, model="poisson", label_bound=30)
        assert abs(np.mean(poisson.predict(ROWS)) / np.mean(COUNTS) - 1) < 0.1


AWKWARD = {
    "separable": (ROWS[:200], ROWS[:200, 0] > 0),
    "one label": (ROWS[:200], np.ones(200)),
    "one row": (ROWS[:1], LABELS[:1]),
    "missing": (np.full((50, 3), np.nan), np.full(50, np.nan)),
    "wide": (RNG.normal(size=(5, 30)), np.array([0, 1, 1, 0, 1])),
    "collinear": (ROWS[:300, [0, 0, 0]], LABELS[:300]),
    "constant": (np.ones((300, 2)), LABELS[:300]),
    "scales": (ROWS[:300] * [1.0, 1e12, 1e-12], LABELS[:300]),
    "huge": (np.full((10, 2), 1e308), np.full(10, np.inf)),
}


class TestAwkwardData:
    def test_a_fit_does_not_depend_on_what_a_caller_raises_for(self):
        x = np.random.default_rng(0).normal(size=5_000)
        for epsilon in (1.0, 100.0):
            for column in (x, np.full(5_000, 1e308)):
                given = np.column_stack([column, column]), column
                fits = []
                for error in ("ignore", "raise"):
                    with np.errstate(all=error), warnings.catch_warnings(action="ignore"):
                        fits.append(dpf.glm(*given, radius=2.0, epsilon=epsilon, rng=PCG64(1)).coefficients)
                np.testing.assert_array_equal(*fits)

    @every("name", AWKWARD)
    @pytest.mark.parametrize("model", MODELS)
    @every(("epsilon", "delta"), [(1e-3, 1e-6), (1.0, 0.0), (1e4, 0.0)])
    def test_fits_are_finite(self, name, model, epsilon, delta):
        X, y = AWKWARD[name]
        fit = dpf.glm(X, y, radius=3.0, epsilon=epsilon, delta=delta, rng=PCG64(1), **MODELS[model][1])
        assert np.isfinite([*fit.coefficients, fit.intercept, *fit.standard_errors, fit.intercept_error]).all()
        assert np.isfinite(fit.predict(np.ones((2, X.shape[1])))).all()

    @every("size", [2.0**-200, 2.0**200])
    @every("model", MODELS)
    def test_sizes(self, size, model):
        X, options = ROWS[:100] * size, dict(MODELS[model][1])
        if model == "huber":
            options |= {"label_bound": size, "k": 1 / size}
        fit = dpf.glm(X, LABELS[:100], radius=size, epsilon=1.0, delta=1e-6, **options)
        assert np.isfinite([*fit.coefficients, fit.intercept, *fit.standard_errors, fit.intercept_error]).all()

    def test_steps_that_diverge(self):
        """Releases with which the mean of a count is beyond float64: errors are large, and finite."""
        made = descent(model="poisson", label_bound=99.0, privacy=dpf.Privacy(1e6, 1e-6))
        while made.mechanism is not None:
            release = made.mechanism((ROWS[:1000, :2], COUNTS[:1000]))
            made.advance(release if made.done < 2 else np.full(3, -1e5))
        assert np.isfinite([*made.result.coefficients, *made.result.standard_errors]).all()

    @every("gradients", ["noise", "ends", "alternating"])
    @every("start", [None, 1e8])
    @every("model", MODELS)
    def test_any_releases_give_a_finite_fit(self, model, start, gradients):
        """Releases at the ends of their ranges lead far away, where curvatures are extreme."""
        rng = np.random.default_rng(3)
        for n, privacy in ((1, dpf.Privacy(1e-2)), (10**6, dpf.Privacy(100.0, 1e-6)), (10**9, dpf.Privacy(1e4, 1e-6))):
            begin = None if start is None else Fit(np.full(2, start), 0.0, np.ones(2), 1.0, dpf.Privacy(1.0))
            made = descent(model=model, n=n, privacy=privacy, start=begin, steps=16, **_bounds_of(model))
            while made.mechanism is not None:
                if made.done == 1:
                    release = np.diag([9.0, 1e-3, 1.0])
                else:
                    p = len(made.mechanism.coefficients)
                    signs = np.array([1.0, -0.5, -1.0])[:p] * (
                        -1.0 if gradients == "alternating" and made.done % 2 else 1.0
                    )
                    noise = 30 * made.mechanism.noise_deviation(n) * rng.normal(size=p)
                    release = noise if gradients == "noise" else made.mechanism.clip * signs
                made.advance(release)
            fit = made.result
            numbers = [fit.coefficients, fit.covariance.ravel(), fit.standard_errors, fit.interval().ravel()]
            assert np.isfinite(np.concatenate(numbers)).all()
            assert (fit.standard_errors >= 0).all()

    def test_noise_is_checked_before_the_first_release(self):
        """A clip, which depends on releases, must not lead to an error in the middle."""
        refused = 0
        for mu in np.geomspace(1e-4, 1e-3, 20):
            for moments in (np.zeros((3, 3)), np.diag([0.1, 0.2, 1.0]), np.diag([9.0, 9.0, 1.0])):
                try:
                    made = descent(privacy=dpf.Privacy(mu=mu), steps=16)
                except ValueError:
                    refused += 1
                    continue
                while made.mechanism is not None:
                    made.advance(moments if made.done == 1 else np.zeros(len(made.mechanism.coefficients)))
        assert 0 < refused < 60

    def test_wrong_parameters_are_rejected_before_a_charge(self):
        good = {"radius": 1.0, "epsilon": 1.0}
        with dpf.Ledger(5.0) as ledger:
            for options, message in (
                ({"model": "probit"}, "model"),
                ({"radius": 2.0**201}, "2\\*\\*200"),
                ({"epsilon": 0.0}, "epsilon"),
                ({"epsilon": 1e-9}, "larger epsilon"),
                ({"steps": 0}, "steps"),
                ({"steps": "many"}, "steps"),
                ({"steps": Schedule(0.5, 0.5, 1, 1.0, 0.3)}, "share"),
                ({"steps": Schedule(0.02, 0.2, 1, -1.0, 0.3)}, "clip"),
                ({"steps": Schedule(0.02, 0.2, 1, 1.0, np.nan)}, "ridge"),
                ({"steps": Schedule(0.02, 0.2, 3, 1.0, 0.3, matching=True), "delta": 1e-6}, "matching"),
                ({"start": 3.0}, "start"),
                ({"start": Fit(np.array([np.nan, 0, 0]), 0.0, np.ones(3), 1.0, dpf.Privacy(1.0))}, "start"),
                ({"start": Fit(np.full(3, 1e200), 0.0, np.ones(3), 1.0, dpf.Privacy(1.0))}, "start"),
                ({"label_bound": 3.0}, "label_bound"),
                ({"model": "poisson"}, "label_bound"),
                ({"model": "huber", "label_bound": 3.0}, "needs k"),
                ({"center": (1.0, 2.0)}, "columns"),
                ({"workers": 0}, "workers"),
                ({"rng": "seed"}, "rng"),
                ({"progress": 1}, "progress"),
            ):
                with pytest.raises((TypeError, ValueError), match=message):
                    dpf.glm(ROWS[:50], LABELS[:50], **good | options)
            for X, y in ((ROWS, LABELS[:4]), (ROWS[:0], LABELS[:0]), (ROWS, None), (dpf.Chunks([]), None)):
                with pytest.raises((TypeError, ValueError)):
                    dpf.glm(X, y, **good)
        assert not ledger.charges


class TestEngines:
    def test_chunks_threads_and_states(self):
        options = {"radius": 4.0, "epsilon": 1.0, "delta": 1e-6}
        fit = dpf.glm(ROWS, LABELS, rng=PCG64(1), **options)
        parts = [(ROWS[:7], LABELS[:7]), (ROWS[7:9000], LABELS[7:9000]), (ROWS[9000:], LABELS[9000:])]
        for other in (
            dpf.glm(dpf.Chunks(parts), rng=PCG64(1), **options),
            dpf.glm((ROWS, LABELS), rng=PCG64(1), workers=2, **options),
            dpf.glm(ROWS.tolist(), LABELS.tolist(), rng=PCG64(1), **options),
        ):
            assert np.array_equal(other.coefficients, fit.coefficients)
            assert np.array_equal(other.covariance, fit.covariance)

    def test_a_descent_by_merged_states(self):
        one, _ = finished(descent(n=N, d=3), ROWS, LABELS)
        two = descent(n=N, d=3)
        while two.mechanism is not None:
            states = [two.mechanism.start() for _ in range(2)]
            states[0].update((ROWS[:5], LABELS[:5]))
            states[1].update((ROWS[5:], LABELS[5:]))
            states[0].merge(pickle.loads(pickle.dumps(states[1])))
            two.advance(states[0].release(rng=PCG64(1 + two.done)))
        assert np.array_equal(one.result.coefficients, two.result.coefficients)

    def test_a_result_needs_all_releases(self):
        made = descent()
        assert isinstance(made.mechanism, GradientSums)
        with pytest.raises(ValueError, match="missing"):
            _ = made.result
        made, _ = finished(made, ROWS[:1000, :2], LABELS[:1000])
        with pytest.raises(ValueError, match="all releases"):
            made.advance(0.0)
        for options, message in (
            ({"privacy": 1.0}, "Privacy"),
            ({"privacy": dpf.Privacy(rho=0.1)}, "rho"),
            ({"privacy": dpf.Privacy(1.0, 0.0, "add-remove")}, "replaced"),
            ({"domain": dpf.domains.Box(dpf.Grid(0, 1))}, "Ball"),
            ({"n": 0}, "n must"),
        ):
            with pytest.raises((TypeError, ValueError), match=message):
                descent(**options)

    def test_progress_needs_a_terminal(self, capsys, monkeypatch):
        options = {"radius": 4.0, "epsilon": 1.0, "steps": 2, "progress": True}
        dpf.glm(ROWS[:500], LABELS[:500], **options)
        assert capsys.readouterr().err == ""
        monkeypatch.setattr("sys.stderr.isatty", lambda: True)
        dpf.glm(ROWS[:500], LABELS[:500], **options)
        assert capsys.readouterr().err.endswith("\rrelease 4 of 4\n")
